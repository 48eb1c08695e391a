// A question to `visac tune`, as a form.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, isReplaced } from "./ask.js";

const EXAMPLES = [
  ["matrix product", "C[m, n] = sum(k) A[m, k] * B[n, k]"],
  ["matrix times vector", "y[n] = sum(k) x[k] * W[n, k]"],
  ["batches of products", "C[b, m, n] = sum(k) A[b, m, k] * B[b, n, k]"],
];

// The axes of the question in the order in which they stand.
const axesOf = (question) => [...new Set([...question.matchAll(/\[([^\]]*)\]/g)].flatMap((m) => m[1].split(",")).map((a) => a.trim()).filter((a) => /^\w+$/.test(a)))];

export function Tune({ open, onClose, onSource }) {
  const dialog = useRef(null);
  const [question, setQuestion] = useState(EXAMPLES[0][1]), [sizes, setSizes] = useState({}), [dtype, setDtype] = useState("bf16"), [out, setOut] = useState("");
  const [seconds, setSeconds] = useState(2), [busy, setBusy] = useState(false), [problems, setProblems] = useState([]);
  useEffect(() => { if (open && !dialog.current.open) dialog.current.showModal(); else if (!open && dialog.current.open) dialog.current.close(); }, [open]);
  const axes = axesOf(question), sizeOf = (axis) => sizes[axis] ?? "256";
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblems([]);
    try {
      const told = await ask("tune", { question, sizes: Object.fromEntries(axes.map((a) => [a, Number(sizeOf(a))])), dtype, out, seconds });
      if (told.source) { onSource(told.source); onClose(); } else setProblems(told.diagnostics);
    } catch (error) {
      if (!isReplaced(error)) setProblems([{ id: "", message: error.message, notes: [] }]);
    }
    setBusy(false);
  };
  return (
    <dialog ref={dialog} class="tune" onClose={onClose} aria-labelledby="tune-title">
      <form onSubmit={submit}>
        <h2 id="tune-title">A fast kernel for a contraction</h2>
        <label>Question<input id="tune-question" value={question} onInput={(e) => setQuestion(e.target.value)} spellcheck={false} /></label>
        <p class="presets">{EXAMPLES.map(([name, text]) => <button type="button" class="link" onClick={() => setQuestion(text)}>{name}</button>)}</p>
        <fieldset><legend>Sizes</legend>{axes.map((a) => (
          <label key={a}>{a}<input type="number" min="1" max="1048576" id={"tune-size-" + a} value={sizeOf(a)} onInput={(e) => setSizes({ ...sizes, [a]: e.target.value })} /></label>))}</fieldset>
        <fieldset><legend>Types</legend>
          <label>operands<select id="tune-dtype" value={dtype} onChange={(e) => setDtype(e.target.value)}>{["bf16", "i8", "i4", "f8e4m3", "f8e5m2"].map((t) => <option>{t}</option>)}</select></label>
          <label>result<select id="tune-out" value={out} onChange={(e) => setOut(e.target.value)}><option value="">as summed</option>{["bf16", "f32", "i8", "i32", "f8e4m3", "f8e5m2"].map((t) => <option>{t}</option>)}</select></label>
          <label>search, s<input type="number" min="1" max="10" value={seconds} onInput={(e) => setSeconds(Number(e.target.value))} /></label></fieldset>
        {problems.map((p) => <div class="problem error" role="alert"><p class="message">{p.id} {p.message}</p>{p.notes.map((n) => <p class="note">{n.message}</p>)}{p.id === "E-TUNE-QUESTION" ? <p>{p.rule}</p> : p.help && <p class="help">{p.help}</p>}</div>)}
        <menu><button type="button" onClick={onClose}>Cancel</button><button type="submit" class="primary" disabled={busy} id="tune-go">{busy ? "Searching…" : "Find a kernel"}</button></menu>
      </form>
    </dialog>
  );
}
