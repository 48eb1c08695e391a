// The page: a source, and what came from it.
import { render } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, isReplaced } from "./ask.js";
import { Commands } from "./commands.jsx";
import { applyFix, makeEditor, replaceAll, select, showProblems } from "./editor.js";
import { linkOf, stateOf } from "./link.js";
import { relight } from "./lit.js";
import { Memory } from "./memory.jsx";
import { Pictures } from "./pictures.jsx";
import { placesOf } from "./places.js";
import { Problems } from "./problems.jsx";
import { Splitter } from "./splitter.jsx";
import { Tables } from "./tables.jsx";
import { Text } from "./text.jsx";
import { Timeline } from "./timeline.jsx";
import { Tune } from "./tune.jsx";
import { Verdict } from "./verdict.jsx";

const VIEWS = { tables: ["Tables", Tables], pictures: ["Pictures", Pictures], timeline: ["Timeline", Timeline], memory: ["Memory", Memory],
  commands: ["Commands", Commands], order: ["Order", Text], stream: ["Stream", Text] };
const PAUSE = 180; // milliseconds without a key before the source is compiled
const START = { source: "", place: "source", order: "auto", timing: "documented", dialect: "", define: "", kernel: "", views: ["tables", "timeline"], split: [46, 76, 58] };

// "M=64, L=2,0,5" as an object; what is not a definition yet is left away.
export function definitions(text) {
  const out = {};
  for (const [, name, values] of text.matchAll(/(\w+)\s*=\s*(-?\d+(?:\s*,\s*-?\d+(?!\s*=))*)/g)) {
    const numbers = values.split(",").map(Number).filter(Number.isSafeInteger);
    out[name] = numbers.length === 1 ? numbers[0] : numbers;
  }
  return out;
}

function problemsOf(told, source) {
  const places = placesOf(source), at = ([begin, end]) => ({ from: places.toUnit(begin), to: places.toUnit(end) });
  return told.diagnostics.map((d) => ({ ...d, ...at(d.range), edits: d.edits.map((e) => ({ ...at(e.range), text: e.text })),
    notes: d.notes.map((n) => (n.range ? { message: n.message, ...at(n.range) } : { message: n.message })) }));
}

function Pane({ id, view, onView, told, kernel, programs }) {
  const names = Object.keys(VIEWS).filter((name) => name !== "stream" || programs), [, View] = VIEWS[view], one = told?.views?.[view], tabs = useRef(null);
  const move = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -names.length, End: names.length }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = names[Math.min(names.length - 1, Math.max(0, names.indexOf(view) + by))];
    onView(next);
    tabs.current.querySelector(`[data-view=${next}]`).focus();
  };
  useEffect(relight);
  return (
    <section class="pane">
      <div class="tabs" role="tablist" aria-label={id} ref={tabs} onKeyDown={move}>{names.map((name) => (
        <button role="tab" id={`${id}-tab-${name}`} data-view={name} aria-selected={name === view} aria-controls={id} tabIndex={name === view ? 0 : -1} onClick={() => onView(name)}>{VIEWS[name][0]}</button>))}</div>
      <div class={"view view-" + view} id={id} role="tabpanel" aria-labelledby={`${id}-tab-${view}`} tabIndex={0}>
        {one?.left_out ? <p class="empty">Not shown: {one.left_out}.</p>
          : one ? <View told={one} tables={told.views.tables} kernel={told.kernel} />
          : <p class="empty">{told?.drawing && view === "pictures" ? "Drawing…" : told?.errors ? "There is nothing to show until the errors are gone." : told ? "This source has nothing of the kind." : "…"}</p>}
      </div>
    </section>
  );
}

const Choice = ({ label, id, value, values, onChange }) => (
  <label>{label}<select id={id} value={value} onChange={(e) => onChange(e.target.value)}>{values.map(([v, text]) => <option value={v}>{text}</option>)}</select></label>
);

function Settings({ state, set, dialects }) {
  return (
    <details class="menu">
      <summary>Options</summary>
      <div class="sheet">
        <Choice label="Place memory" id="place" value={state.place} onChange={(place) => set({ place })} values={[["source", "as the source says"], ["auto", "all by visac"]]} />
        <Choice label="Order of work" id="order" value={state.order} onChange={(order) => set({ order })} values={[["auto", "auto"], ["source", "as written"], ["free", "as it ends first"]]} />
        <Choice label="Timing" id="timing" value={state.timing} onChange={(timing) => set({ timing })} values={[["documented", "documented rates"], ["schedule", "published schedules"], ["measured", "measured costs"]]} />
        <Choice label="Release" id="dialect" value={state.dialect} onChange={(dialect) => set({ dialect })} values={[["", "all releases"], ...dialects.map((d) => [d, d])]} />
        <label>Other sizes<input id="define" value={state.define} placeholder="M=64, K=128" spellcheck={false} onInput={(e) => set({ define: e.target.value })} /></label>
      </div>
    </details>
  );
}

const ADDRESS_AFTER_MS = 200;

function App({ start, first }) {
  const [state, setState] = useState(first), [told, setTold] = useState(null), [fault, setFault] = useState(""), [tuning, setTuning] = useState(false);
  const [verdict, setVerdict] = useState(null), [checking, setChecking] = useState(false);
  const [notice, setNotice] = useState(""), [waiting, setWaiting] = useState(true);
  const [theme, setTheme] = useState(() => localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  const editor = useRef(null), host = useRef(null), current = useRef(state), link = useRef("");
  current.current = state;
  const set = useCallback((change) => setState((s) => ({ ...s, ...change })), []);
  const options = () => { const { place, order, timing, dialect, define } = current.current; return { place, order, timing, dialect, define: definitions(define) }; };

  useEffect(() => {
    editor.current = makeEditor(host.current, state.source, (source) => set({ source }), options);
    editor.current.focus();
    const follow = async () => {
      const other = location.hash !== link.current && (await stateOf(location.hash));
      if (other) { setState(clean(other)); replaceAll(editor.current, other.source); }
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => { document.documentElement.dataset.theme = theme; localStorage.setItem("theme", theme); }, [theme]);
  // The address follows when typing stops: a browser ignores who changes it with every key, and a slow link must not replace a later one.
  useEffect(() => {
    let old = false;
    const follow = async () => {
      const text = await linkOf(state);
      if (!old) { link.current = text; history.replaceState(null, "", text); }
    };
    const timer = setTimeout(follow, ADDRESS_AFTER_MS);
    return () => { old = true; clearTimeout(timer); };
  }, [state]);

  // A verdict is of one text: another one has none yet.
  useEffect(() => setVerdict(null), [state.source, state.kernel, state.place, state.order, state.dialect, state.define]);
  const check = async () => {
    const asked = current.current, same = () => ["source", "kernel", "place", "order", "dialect", "define"].every((name) => current.current[name] === asked[name]);
    setChecking(true);
    setVerdict(null);
    try {
      const kernel = told?.kernel ?? "", answer = await ask("check", { ...options(), source: asked.source, kernel });
      if (same()) setVerdict({ ...answer, kernel });
    } catch (error) {
      if (!isReplaced(error) && same()) setVerdict({ verdict: "not checked", error: error.message });
    }
    setChecking(false);
  };

  const wanted = [...new Set(["tables", ...state.views])];
  useEffect(() => {
    setWaiting(true);
    const timer = setTimeout(async () => {
      try {
        // Pictures of large tensors take longest: nothing else waits for them.
        const question = { ...options(), source: state.source, kernel: state.kernel }, slow = wanted.filter((name) => name === "pictures");
        const answer = await ask("compile", { ...question, views: wanted.filter((name) => name !== "pictures") });
        setTold((last) => ({ ...answer, source: state.source, views: { ...(last?.source === state.source && slow.length && { pictures: last.views.pictures }), ...answer.views }, drawing: slow.length > 0 && !answer.errors }));
        setFault("");
        if (slow.length && !answer.errors) {
          const drawn = await ask("compile", { ...question, views: slow }, "pictures");
          setTold((now) => (now.source === state.source ? { ...now, views: { ...now.views, ...drawn.views }, drawing: false } : now));
        }
        setWaiting(false);
      } catch (error) {
        if (isReplaced(error)) return;
        setFault(error instanceof TypeError ? "the server does not answer: is visa-explorer still running?" : error.message);
        setWaiting(false);
      }
    }, told ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [state.source, state.kernel, state.place, state.order, state.timing, state.dialect, state.define, wanted.join()]);

  const problems = useMemo(() => (told ? problemsOf(told, told.source) : []), [told]);
  useEffect(() => { if (editor.current && told?.source === editor.current.state.doc.toString()) showProblems(editor.current, problems); }, [problems]);
  // While there are errors the last good views stay, faded.
  const good = useRef(null);
  if (told && !told.errors) good.current = told;
  const shown = told?.errors && good.current ? { ...good.current, stale: true } : told;

  const say = (text) => { setNotice(text); setTimeout(() => setNotice(""), 2500); };
  const share = async () => {
    link.current = await linkOf(state);
    const text = new URL(link.current, location.href).href;
    history.replaceState(null, "", text);
    try { await navigator.clipboard.writeText(text); say("Link copied"); } catch { say("The link is in the address bar"); }
  };
  const format = async () => {
    try {
      const answer = await ask("format", { source: state.source });
      if (answer.source !== undefined) replaceAll(editor.current, answer.source); else say("A source with a syntax error stays as it is");
    } catch (error) { if (!isReplaced(error)) say(error.message); }
  };
  const fixAll = async () => {
    try {
      const answer = await ask("fix", { ...options(), source: state.source });
      replaceAll(editor.current, answer.source);
      say(answer.changes === 1 ? "1 fix" : `${answer.changes} fixes`);
    } catch (error) { if (!isReplaced(error)) say(error.message); }
  };
  const open = (source, change = {}) => { set({ ...change, define: "", kernel: "" }); replaceAll(editor.current, source); };
  const lineOf = (at) => { const doc = editor.current.state.doc; return doc.lineAt(Math.min(at, doc.length)).number; };
  const view = (i) => (name) => set({ views: state.views.map((v, k) => (k === i ? name : v)) });
  const split = (i) => (value) => set({ split: state.split.map((v, k) => (k === i ? value : v)) });
  const [across, left, right] = state.split;
  const status = fault ? fault : !told ? "…" : told.gave_up ? "given up: too much work" : told.errors ? `${told.errors} error${told.errors > 1 ? "s" : ""}`
    : told.warnings ? `${told.warnings} warning${told.warnings > 1 ? "s" : ""}` : "compiled";

  return (
    <>
      <header>
        <h1><img src="/icon.svg" alt="" width="22" height="22" />visa explorer</h1>
        <label class="inline">Example<select id="examples" value="" onChange={(e) => { const x = start.examples.find((one) => one.name === e.target.value); if (x) open(x.source); e.target.value = ""; }}>
          <option value="">choose…</option>{start.examples.map((x) => <option value={x.name}>{x.title}</option>)}</select></label>
        <button id="tune" onClick={() => setTuning(true)}>Tune…</button>
        <button id="check" onClick={check} disabled={checking || !told || told.errors > 0 || !told.kernel} title="run it on the simulated machine and compare it with its mathematics">{checking ? "Checking…" : "Check"}</button>
        <button id="format" onClick={format}>Format</button>
        <Settings state={state} set={set} dialects={start.dialects} />
        {told?.kernels.length > 1 && <label class="inline">Kernel<select id="kernel" value={shown.kernel} onChange={(e) => set({ kernel: e.target.value })}>{shown.kernels.map((k) => <option>{k}</option>)}</select></label>}
        <span class="grow" />
        <output id="status" class={fault || told?.errors ? "bad" : told?.warnings ? "so-so" : "good"} data-waiting={waiting || undefined} aria-live="polite">{notice || status}
          {!notice && !fault && told && !told.errors && shown?.views.timeline?.cycles !== undefined && ` · ${shown.views.timeline.cycles.toLocaleString("en-US")} cycles`}</output>
        <button id="share" onClick={share}>Copy link</button>
        <button id="theme" onClick={() => setTheme(theme === "dark" ? "light" : "dark")} aria-label={theme === "dark" ? "light theme" : "dark theme"} title={theme === "dark" ? "light theme" : "dark theme"}>{theme === "dark" ? "☀" : "☾"}</button>
      </header>
      <main style={{ gridTemplateColumns: `minmax(0, ${across}fr) 7px minmax(0, ${100 - across}fr)` }}>
        <div class="column" style={{ gridTemplateRows: `minmax(0, ${left}fr) 7px minmax(0, ${100 - left}fr)` }}>
          <div class="source" ref={host} />
          <Splitter vertical value={left} onChange={split(1)} label="height of the source" />
          <section class="pane" aria-label="diagnostics"><div class="tabs"><h2>Diagnostics</h2>
            {problems.some((p) => p.edits.length) && <button id="fix-all" class="link" onClick={fixAll} title="write what the diagnostics say to write, until nothing more is known">Fix all</button>}</div><div class="view" id="problems">
            {verdict && <Verdict told={verdict} onClose={() => setVerdict(null)} />}
            {problems.length ? <Problems problems={problems} lineOf={lineOf} onFix={(p) => applyFix(editor.current, p)} onSelect={(a, b) => select(editor.current, a, b)} />
              : <p class="empty">{told ? "Nothing is wrong." : "…"}</p>}</div></section>
        </div>
        <Splitter value={across} onChange={split(0)} label="width of the source" />
        <div class={"column pane-right" + (shown?.stale ? " stale" : "")} style={{ gridTemplateRows: `minmax(0, ${right}fr) 7px minmax(0, ${100 - right}fr)` }}>
          <Pane id="upper" view={state.views[0]} onView={view(0)} told={shown} programs={told?.has_programs} />
          <Splitter vertical value={right} onChange={split(2)} label="height of the upper view" />
          <Pane id="lower" view={state.views[1]} onView={view(1)} told={shown} programs={told?.has_programs} />
        </div>
      </main>
      <Tune open={tuning} onClose={() => setTuning(false)} onSource={(source) => open(source)} />
    </>
  );
}

function clean(state) {
  const s = { ...START, ...state };
  s.views = Array.isArray(s.views) && s.views.length === 2 && s.views.every((v) => VIEWS[v]) ? s.views : START.views;
  s.split = Array.isArray(s.split) && s.split.length === 3 && s.split.every((v) => v >= 15 && v <= 85) ? s.split : START.split;
  for (const name of ["place", "order", "timing", "dialect", "define", "kernel"]) s[name] = typeof s[name] === "string" ? s[name] : START[name];
  return Object.fromEntries(Object.keys(START).map((name) => [name, s[name]]));
}

async function begin() {
  const root = document.getElementById("app");
  try {
    const start = await ask("start");
    const given = await stateOf(location.hash);
    root.replaceChildren();
    render(<App start={start} first={clean(given ?? { source: start.examples[0].source })} />, root);
  } catch (error) {
    root.textContent = `visa explorer: ${error.message}`;
  }
}
begin();
