// The command `visa.preview`: tables, pictures and timeline of a kernel at the side of its source, made again while it is written.
const { commands, window, workspace, ViewColumn } = require("vscode");
const { existsSync } = require("node:fs");
const { dirname, basename, isAbsolute, join } = require("node:path");
const { report, shown } = require("./page");

const PAUSE_MS = 250; // of typing, before the page is made again

// The setting; without one the program next to the server, where that is said.
function compilerNamed() {
  const settings = workspace.getConfiguration("visa"), compiler = settings.get("compiler"), server = settings.get("server");
  const beside = server && isAbsolute(server) && join(dirname(server), "visac");
  return compiler === "visac" && beside && existsSync(beside) ? beside : compiler;
}

class Preview {
  constructor(panel) {
    this.panel = panel;
    this.last = ""; // page of a text that was accepted
  }

  // The newest text counts: a run for an older one is ended.
  async show(document) {
    clearTimeout(this.timer);
    this.run?.abort();
    const run = (this.run = new AbortController());
    if (document !== this.document) this.last = "";
    this.document = document;
    const compiler = compilerNamed();
    const folder = document.uri.scheme === "file" ? dirname(document.uri.fsPath) : undefined;
    let made;
    try {
      made = await report(compiler, document.getText(), folder, run.signal);
    } catch (error) {
      made = { html: "", messages: `${compiler}: ${error.message}.\nThe setting visa.compiler says where it is.` };
    }
    if (run.signal.aborted) return;
    this.panel.title = `${basename(document.fileName)}: tables and pictures`;
    this.panel.webview.html = shown(made, this.last);
    this.last = made.html || this.last;
  }

  soon(document) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(document), PAUSE_MS);
  }

  end() {
    clearTimeout(this.timer);
    this.run?.abort();
  }
}

const isKernel = (document) => document?.languageId === "vm";

exports.register = (context) => {
  let preview;
  context.subscriptions.push(
    commands.registerCommand("visa.preview", async () => {
      const document = window.activeTextEditor?.document;
      if (!isKernel(document)) return window.showInformationMessage("visac: the preview is of a .vm file; open one.");
      if (!preview) {
        const made = (preview = new Preview(window.createWebviewPanel("visa.preview", "visac", { viewColumn: ViewColumn.Beside, preserveFocus: true }, { enableScripts: false })));
        made.panel.onDidDispose(() => {
          made.end();
          preview = undefined;
        });
      }
      preview.panel.reveal(undefined, true);
      return preview.show(document);
    }),
    workspace.onDidChangeTextDocument(({ document }) => isKernel(document) && preview?.soon(preview.document ?? document)),
    workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("visa") && preview?.document && preview.soon(preview.document)),
    window.onDidChangeActiveTextEditor((editor) => isKernel(editor?.document) && preview?.show(editor.document)),
  );
};
