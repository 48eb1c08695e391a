// Starts visa-lsp for .vm files, which has everything that an editor asks of a text; the preview is visac's own page.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const preview = require("./preview");

let client;

exports.activate = (context) => {
  preview.register(context);
  const command = workspace.getConfiguration("visa").get("server");
  const files = workspace.createFileSystemWatcher("**/*.vm");
  client = new LanguageClient("visa", "visac", { command }, { documentSelector: [{ language: "vm" }], synchronize: { fileEvents: files } });
  return client.start();
};

exports.deactivate = () => client && client.stop();
