// What a source says, as a page: `visac --report=html` of a text that need not be saved. The page is self-contained and has no scripts.
const { spawn } = require("node:child_process");

const escaped = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

// {html, messages}: what visac prints to either side; html is "" where the text is refused. A `signal` ends the run and with it the promise.
// Modules of the text are looked for in `folder`.
exports.report = (compiler, text, folder, signal) =>
  new Promise((resolve, reject) => {
    const visac = spawn(compiler, ["-", "--report=html"], { cwd: folder, signal, env: { ...process.env, NO_COLOR: "1" } });
    const out = [], said = [];
    visac.stdout.on("data", (piece) => out.push(piece));
    visac.stderr.on("data", (piece) => said.push(piece));
    visac.on("error", reject);
    visac.stdin.on("error", () => {}); // it may end before it has read all
    visac.on("close", (status) => resolve({ html: status === 0 ? Buffer.concat(out).toString() : "", messages: Buffer.concat(said).toString() }));
    visac.stdin.end(text);
  });

// The page's colours are those of the editor's theme, which need not be the system's.
const theme = `<style>:root{--ink:var(--vscode-editor-foreground);--paper:var(--vscode-editor-background);--line:var(--vscode-editorWidget-border);--box:var(--vscode-textCodeBlock-background)}
.vscode-dark,.vscode-high-contrast{color-scheme:dark;--path:#463a17}.vscode-light,.vscode-high-contrast-light{color-scheme:light;--path:#fff3d6}</style>`;

// What is shown: the page; of a text that is refused the messages, and below them the last page that there was.
exports.shown = ({ html, messages }, last) => {
  const told = messages && `<pre style="border-left:3px solid #c33;padding:8px;overflow-x:auto">${escaped(messages)}</pre>`;
  const page = html || last || "<!doctype html><html><body></body></html>";
  return page.replace(/<body[^>]*>/, (body) => body + theme + told);
};
