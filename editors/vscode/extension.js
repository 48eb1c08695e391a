// Starts visa-lsp for .vm files; everything else is the server's.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("visa").get("server");
  const files = workspace.createFileSystemWatcher("**/*.vm");
  client = new LanguageClient("visa", "visac", { command }, { documentSelector: [{ language: "vm" }], synchronize: { fileEvents: files } });
  return client.start();
};

exports.deactivate = () => client && client.stop();
