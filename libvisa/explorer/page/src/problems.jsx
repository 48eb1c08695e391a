// What the compiler says, with fixes to take and rules to read.
import { useState } from "preact/hooks";
import { written } from "./editor.js";

function Problem({ problem: p, lineOf, onFix, onSelect }) {
  const [open, setOpen] = useState(false), line = lineOf(p.from);
  return (
    <li class={"problem " + (p.error ? "error" : "warning")} data-lines={line}>
      <div class="problem-head">
        <span class="severity">{p.error ? "error" : "warning"}</span>
        <button class="link" onClick={() => setOpen(!open)} aria-expanded={open} title="what the rule is">{p.id}</button>
        <button class="link place" onClick={() => onSelect(p.from, p.to)}>line {line}</button>
        {p.edits.length > 0 && <button class="fix" onClick={() => onFix(p)}>Fix: write <code>{written(p)}</code></button>}
      </div>
      <p class="message">{p.message}</p>
      {p.notes.map((note) => (
        <p class="note">{note.message}
          {note.from !== undefined && <> <button class="link place" onClick={() => onSelect(note.from, note.to)}>line {lineOf(note.from)}</button></>}
        </p>
      ))}
      {p.help && <p class="help">{p.help}</p>}
      {open && <div class="rule"><strong>{p.title}</strong><p>{p.rule}</p></div>}
    </li>
  );
}

export function Problems({ problems, ...rest }) {
  return <ul class="problems">{problems.map((p) => <Problem key={`${p.id} ${p.from} ${p.message}`} problem={p} {...rest} />)}</ul>;
}
