// Starts visa-lsp for .vm files, which has everything that an editor asks of a text; the preview is visac's own page.
const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { execFile } = require("node:child_process");
const { promisify } = require("node:util");
const preview = require("./preview");

let client;

// An editor that was not started from a shell often has another PATH than the shell: what to do about it is said, with the setting a click away.
async function missing(command, error) {
  const settings = "Open the setting";
  const said = `visac: ${command} cannot be started (${error.message.split("\n")[0]}): no diagnostics, completion or hover. The setting visa.server says where it is.`;
  if ((await window.showErrorMessage(said, settings)) === settings) await commands.executeCommand("workbench.action.openSettings", "visa.server");
}

async function start(files) {
  const command = workspace.getConfiguration("visa").get("server");
  try {
    await promisify(execFile)(command, ["--version"]);
  } catch (error) {
    missing(command, error); // not awaited: the message stands until it is answered
    return;
  }
  client = new LanguageClient("visa", "visac", { command }, { documentSelector: [{ language: "vm" }], synchronize: { fileEvents: files } });
  await client.start();
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.dispose();
}

exports.activate = (context) => {
  preview.register(context);
  const files = workspace.createFileSystemWatcher("**/*.vm");
  let turn = start(files); // one after the other
  context.subscriptions.push(files, workspace.onDidChangeConfiguration((change) => {
    if (change.affectsConfiguration("visa.server")) turn = turn.then(stop).then(() => start(files));
  }));
  return turn;
};

exports.deactivate = stop;
