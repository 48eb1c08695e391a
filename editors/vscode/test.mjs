// npm test: a session with visa-lsp (on PATH) by the protocol library of VS Code's own client, of what the extension shows; and the preview, with
// as much of VS Code around it as it calls.
import assert from "node:assert";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";

const require = createRequire(import.meta.url);
const { createProtocolConnection, StreamMessageReader, StreamMessageWriter, InitializeRequest, DidOpenTextDocumentNotification, PublishDiagnosticsNotification,
  SemanticTokensRequest, InlayHintRequest, SignatureHelpRequest, CallHierarchyPrepareRequest, ShutdownRequest, ExitNotification } = require("vscode-languageserver-protocol/node");

const file = process.argv[2] ?? new URL("../../examples/matmul.vm", import.meta.url), text = readFileSync(file, "utf8"), uri = "file:///session/matmul.vm";
const server = spawn("visa-lsp", { stdio: ["pipe", "pipe", "inherit"] });
const client = createProtocolConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));
const published = new Promise((resolve) => client.onNotification(PublishDiagnosticsNotification.type, resolve));
client.listen();
const { capabilities } = await client.sendRequest(InitializeRequest.type, { processId: process.pid, rootUri: null, capabilities: {} });
await client.sendNotification(DidOpenTextDocumentNotification.type, { textDocument: { uri, languageId: "vm", version: 1, text } });
assert.deepEqual((await published).diagnostics, []);

const textDocument = { uri }, lines = text.split("\n");
const { data } = await client.sendRequest(SemanticTokensRequest.type, { textDocument });
const legend = capabilities.semanticTokensProvider.legend.tokenTypes, scopes = JSON.parse(readFileSync(new URL("package.json", import.meta.url))).contributes.semanticTokenScopes[0].scopes;
const words = [];
for (let i = 0, line = 0, column = 0; i < data.length; i += 5) {
  line += data[i];
  column = data[i] ? data[i + 1] : column + data[i + 1];
  words.push(`${lines[line].slice(column, column + data[i + 2])}: ${legend[data[i + 3]]}`);
}
for (const wanted of ["N: enumMember", "fetch: method", "weights: variable", "bf16: class", "matmul: function"]) assert(words.includes(wanted), wanted);
for (const scope of Object.keys(scopes)) assert(legend.includes(scope.split(".")[0]), `package.json colours ${scope}, which visa-lsp does not have`);

const range = { start: { line: 0, character: 0 }, end: { line: lines.length, character: 0 } };
const hints = await client.sendRequest(InlayHintRequest.type, { textDocument, range });
assert(hints.some((h) => h.label === "[32:32, 32:1]") && hints.some((h) => h.label.endsWith(" cycles")) && hints.some((h) => h.kind === 1), "hints");
const line = lines.findIndex((l) => l.includes(".fetch::<")), help = await client.sendRequest(SignatureHelpRequest.type, { textDocument, position: { line, character: lines[line].indexOf("<") + 1 } });
assert.equal(help.signatures[0].label, "fetch::<Time, Packet>()");
const at = lines.findIndex((l) => l.startsWith("fn matmul")), items = await client.sendRequest(CallHierarchyPrepareRequest.type, { textDocument, position: { line: at, character: 4 } });
assert.equal(items[0].name, "matmul");
await client.sendRequest(ShutdownRequest.type);
const ended = new Promise((resolve) => server.on("exit", resolve));
await client.sendNotification(ExitNotification.type);
assert.equal(await ended, 0);

// ---- the preview ----

import Module from "node:module";

const events = {}, panels = [], subscriptions = [], settings = { compiler: "visac" };
const on = (name) => (call) => ((events[name] = call), { dispose() {} });
const panel = () => {
  const made = { webview: { html: "" }, title: "", reveal() {}, onDidDispose: on("dispose") };
  return panels.push(made), made;
};
const document = { languageId: "vm", fileName: "/session/matmul.vm", uri: { scheme: "untitled" }, text, getText() { return this.text; } };
const vscode = {
  ViewColumn: { Beside: -2 },
  commands: { registerCommand: (name, call) => (assert.equal(name, "visa.preview"), (events.command = call)) },
  window: { activeTextEditor: { document }, createWebviewPanel: panel, onDidChangeActiveTextEditor: on("editor"), showInformationMessage: (said) => said },
  workspace: { getConfiguration: () => ({ get: (name) => settings[name] }), onDidChangeTextDocument: on("text"), onDidChangeConfiguration: on("configuration") },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
require("./preview.js").register({ subscriptions });
const page = async (wanted) => {
  for (let i = 0; i < 1000 && !panels.at(-1).webview.html.includes(wanted); i++) await new Promise((later) => setTimeout(later, 20));
  assert(panels.at(-1).webview.html.includes(wanted), wanted);
  return panels.at(-1).webview.html;
};
await events.command();
assert((await page("<h1>matmul: ")).includes("<svg") && panels[0].webview.html.includes("sequencer: dm read") && panels[0].title.startsWith("matmul.vm"));
document.text = text.replace("K % 16", "K % 8");
events.text({ document });
assert((await page("error[E-COLLECT-FLIT]")).includes("<h1>matmul: "), "the last page stays below the messages");
for (const sizes of ["M = 64", "M = 128", "M = 16"]) events.editor({ document: { ...document, text: text.replace("M = 32", sizes) } }); // the newest counts
await page("axes![M = 16");
assert(!panels[0].webview.html.includes("error["), "messages go when the text is accepted");
settings.compiler = "/no/such/visac";
events.configuration({ affectsConfiguration: (name) => name === "visa" });
await page("visa.compiler");
settings.compiler = "visac";
settings.server = join(process.env.PATH.split(delimiter).find((folder) => existsSync(join(folder, "visa-lsp"))), "visa-lsp");
const path = process.env.PATH;
process.env.PATH = "/no/such"; // as in an editor that was not started from a shell
events.configuration({ affectsConfiguration: (name) => name === "visa" });
assert((await page("<h1>matmul: ")).includes("--vscode-editor-background"), "the colours are the editor's");
process.env.PATH = path;
settings.server = undefined;
vscode.window.activeTextEditor = { document: { languageId: "c" } };
assert.match(await events.command(), /open one/);
events.dispose();
vscode.window.activeTextEditor = { document };
settings.compiler = "visac";
document.text = text;
await events.command();
await page("<h1>matmul: ");
assert.equal(panels.length, 2);

// ---- a server that is not on PATH, and one that is named then ----

const clients = [], shown = [], opened = [];
class LanguageClient {
  constructor(_id, _name, { command }) {
    clients.push(this);
    this.command = command;
  }
  async start() {
    this.running = true;
  }
  async dispose() {
    this.running = false;
  }
}
Object.assign(vscode.window, { showErrorMessage: async (said, button) => (shown.push(said), button) });
Object.assign(vscode.commands, { registerCommand() {}, executeCommand: async (...called) => opened.push(called) });
Object.assign(vscode.workspace, { createFileSystemWatcher: () => ({ dispose() {} }), onDidChangeConfiguration: on("server") });
Module._load = (name, ...rest) => (name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest));
const extension = require("./extension.js");
const changed = async (server, done) => {
  settings.server = server;
  events.server({ affectsConfiguration: (name) => name === "visa.server" });
  for (let i = 0; i < 1000 && !done(); i++) await new Promise((later) => setTimeout(later, 20));
  assert(done(), server);
};
settings.server = "/no/such/visa-lsp";
await extension.activate({ subscriptions });
assert.equal(clients.length, 0);
assert.match(shown[0], /\/no\/such\/visa-lsp cannot be started.*visa\.server/);
assert.deepEqual(opened, [["workbench.action.openSettings", "visa.server"]]);
await changed("visa-lsp", () => clients[0]?.running);
await changed("/no/such/either", () => shown.length === 2 && !clients[0].running);
await changed("visa-lsp", () => clients[1]?.running);
await extension.deactivate();
assert(!clients[1].running);
console.log(`${words.length} names, ${hints.length} hints: as they should be`);
process.exit(0);
