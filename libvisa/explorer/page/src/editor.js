// The source: CodeMirror 6 with what the server knows of it.
import { autocompletion, completionKeymap, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { rustLanguage } from "@codemirror/lang-rust";
import { bracketMatching, codeFolding, foldGutter, foldKeymap, HighlightStyle, indentOnInput, LanguageSupport, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, StateEffect, StateField, Transaction } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { ask, isReplaced } from "./ask.js";
import { light, listen } from "./lit.js";
import { placesOf } from "./places.js";

// Colours are those of the page (style.css), so that one sheet has both themes.
const style = HighlightStyle.define([
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: "var(--syntax-comment)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.modifier, tags.controlKeyword, tags.definitionKeyword], color: "var(--syntax-keyword)" },
  { tag: [tags.typeName, tags.className], color: "var(--syntax-type)" },
  { tag: [tags.macroName, tags.function(tags.variableName), tags.function(tags.propertyName), tags.propertyName], color: "var(--syntax-function)" },
  { tag: [tags.number, tags.bool, tags.string, tags.literal], color: "var(--syntax-number)" },
  { tag: [tags.meta, tags.attributeName], color: "var(--syntax-meta)" },
]);

const setLit = StateEffect.define();
const litLines = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    marks = marks.map(change.changes);
    for (const effect of change.effects)
      if (effect.is(setLit))
        marks = Decoration.set(effect.value.filter((n) => n >= 1 && n <= change.state.doc.lines)
          .sort((a, b) => a - b).map((n) => Decoration.line({ class: "cm-lit" }).range(change.state.doc.line(n).from)));
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

// Paragraphs, `code` and ``` blocks, which is all that the compiler's answers have.
export function markdown(text) {
  const out = document.createElement("div");
  out.className = "markdown";
  text.split(/^```.*$/m).forEach((part, i) => {
    const trimmed = part.replace(/^\n+|\n+$/g, "");
    if (!trimmed) return;
    for (const paragraph of i % 2 ? [trimmed] : trimmed.split(/\n{2,}/)) {
      const element = out.appendChild(document.createElement(i % 2 ? "pre" : "p"));
      if (i % 2) element.textContent = paragraph;
      else paragraph.split("`").forEach((piece, k) => {
        const node = element.appendChild(document.createElement(k % 2 ? "code" : "span"));
        node.textContent = piece.replaceAll("**", "");
      });
    }
  });
  return out;
}

const hover = (options) => hoverTooltip(async (view, position) => {
  const source = view.state.doc.toString(), places = placesOf(source);
  try {
    const told = await ask("hover", { ...options(), source, offset: places.toByte(position) });
    if (!told.markdown || view.state.doc.toString() !== source) return null;
    return { pos: places.toUnit(told.range[0]), end: places.toUnit(told.range[1]), above: true, create: () => ({ dom: markdown(told.markdown) }) };
  } catch (error) {
    if (!isReplaced(error)) console.error(error);
    return null;
  }
});

const complete = (options) => async (context) => {
  const before = context.matchBefore(/[\w]*/), after = context.state.sliceDoc(before.from - 1, before.from);
  if (!context.explicit && before.from === before.to && after !== "." && after !== ":") return null;
  const source = context.state.doc.toString();
  try {
    const told = await ask("complete", { ...options(), source, offset: placesOf(source).toByte(context.pos) });
    return { from: before.from, options: told.completions, validFor: /^\w*$/ };
  } catch {
    return null;
  }
};

// `changed(text)` after each edit; `options()` are those of a compilation.
export function makeEditor(parent, text, changed, options) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), foldGutter(), codeFolding(), lintGutter(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(), bracketMatching(),
        closeBrackets(), highlightActiveLine(), highlightActiveLineGutter(), highlightSelectionMatches(), EditorState.tabSize.of(4),
        new LanguageSupport(rustLanguage), syntaxHighlighting(style), litLines, hover(options),
        autocompletion({ override: [complete(options)] }),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap]),
        EditorView.contentAttributes.of({ "aria-label": "source of the kernel" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed(update.state.doc.toString());
          if (update.selectionSet && update.transactions.some((t) => t.isUserEvent("select")))
            light([update.state.doc.lineAt(update.state.selection.main.head).number], "source", true);
        }),
        EditorView.domEventHandlers({
          mousemove(event, editor) {
            const at = editor.posAtCoords({ x: event.clientX, y: event.clientY }, false);
            const line = editor.state.doc.lineAt(at).number;
            if (line !== editor.litLine) light([(editor.litLine = line)], "source");
          },
          mouseleave: (event, editor) => { editor.litLine = 0; light([], "source"); },
        }),
      ],
    }),
  });
  listen((lines, from, chosen) => {
    view.dispatch({ effects: setLit.of(from === "source" && !chosen ? [] : lines) });
    if (chosen && from !== "source" && lines.length) goTo(view, lines[0]);
  });
  return view;
}

function goTo(view, line) {
  const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines)).from;
  view.dispatch({ effects: EditorView.scrollIntoView(at, { y: "nearest", yMargin: 60 }) });
}

export function select(view, from, to) {
  view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  view.focus();
}

export function replaceAll(view, text) {
  if (view.state.doc.toString() !== text)
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 }, annotations: Transaction.userEvent.of("input.replace") });
}

// What a fix writes, to be read.
export const written = (problem) => problem.edits.map((e) => e.text.trim()).join(", ");

export function applyFix(view, problem) {
  view.dispatch({ changes: problem.edits.map((e) => ({ from: e.from, to: e.to, insert: e.text })), annotations: Transaction.userEvent.of("input.fix") });
  view.focus();
}

// Underlines, with the fix to take in their tooltips.
export function showProblems(view, problems) {
  view.dispatch(setDiagnostics(view.state, problems.filter((p) => p.to <= view.state.doc.length).map((p) => ({
    from: p.from,
    to: Math.max(p.to, Math.min(p.from + 1, view.state.doc.length)),
    severity: p.error ? "error" : "warning",
    source: p.id,
    message: p.help ? `${p.message}\n${p.help}` : p.message,
    actions: p.edits.length ? [{ name: `write ${written(p)}`, apply: (v) => applyFix(v, p) }] : [],
  }))));
}
