// What was derived for each stage, from --emit=json: every member that a stage has, whatever its engine calls it.
import { useState } from "preact/hooks";

const OWN = new Set(["index", "op", "context", "line", "dtype", "mapping", "address"]);
const STEP = 120; // stages drawn at a time

const wordOf = (name) => name.replaceAll("_", " ");
const textOf = (value) => (value === true ? "yes" : value === false ? "no" : typeof value === "number" ? value.toLocaleString("en-US") : String(value));
const isRows = (value) => Array.isArray(value) && value.length > 0 && value.every((row) => row && typeof row === "object" && !Array.isArray(row));

function Rows({ name, rows }) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((c) => rows.every((row) => typeof row[c] !== "object"));
  return (
    <table class="entries">
      <caption>{wordOf(name)}{name === "entries" && ", outermost first"}</caption>
      <thead><tr>{columns.map((c) => <th scope="col" class={typeof rows[0][c] === "number" ? "number" : ""}>{wordOf(c)}</th>)}</tr></thead>
      <tbody>{rows.map((row) => <tr>{columns.map((c) => <td class={typeof row[c] === "number" ? "number" : ""}>{row[c] === undefined ? "" : textOf(row[c])}</td>)}</tr>)}</tbody>
    </table>
  );
}

function Config({ name, config }) {
  const scalars = Object.entries(config).filter(([, value]) => value === null || typeof value !== "object" || (Array.isArray(value) && !isRows(value)));
  const nested = Object.entries(config).filter(([, value]) => value && typeof value === "object" && (!Array.isArray(value) || isRows(value)));
  return (
    <div class="config">
      <h4>{wordOf(name)}</h4>
      {nested.filter(([, v]) => isRows(v)).map(([key, rows]) => <Rows name={key} rows={rows} />)}
      <dl>{scalars.map(([key, value]) => <div><dt>{wordOf(key)}</dt><dd>{Array.isArray(value) ? value.map(textOf).join(", ") : textOf(value)}</dd></div>)}</dl>
      {nested.filter(([, v]) => !isRows(v)).map(([key, value]) => <Config name={key} config={value} />)}
    </div>
  );
}

const Mapping = ({ parts }) => (
  <p class="mapping">{Object.entries(parts).map(([part, mapping]) => <span><b>{part}</b> <code>{mapping}</code></span>)}</p>
);

function Stage({ op }) {
  const configs = Object.entries(op).filter(([name]) => !OWN.has(name));
  return (
    <section class={"stage " + op.context} data-lines={op.line} tabIndex={0} aria-label={`${op.op}, line ${op.line}`}>
      <h3><code>{op.op}</code><span class={"tag " + op.context}>{op.context}</span><span class="type">{op.dtype}</span>
        {op.address !== undefined && <span class="type">at {op.address.toLocaleString("en-US")}</span>}
        <span class="where">line {op.line}</span></h3>
      <Mapping parts={op.mapping} />
      {configs.map(([name, config]) => (Array.isArray(config) && isRows(config)
        ? config.slice(0, 8).map((one, i) => <Config name={config.length > 1 ? `${name} ${i + 1} of ${config.length}` : name} config={one} />)
        : config && typeof config === "object" ? <Config name={name} config={config} /> : <p class="mapping"><span><b>{wordOf(name)}</b> {textOf(config)}</span></p>))}
    </section>
  );
}

export function Tables({ told, kernel }) {
  const [most, setMost] = useState(STEP);
  const k = told.kernels?.find((one) => one.name === kernel) ?? told.kernels?.[0];
  if (!k) return <p class="empty">There is no kernel.</p>;
  return (
    <>
      <table class="ports">
        <caption><code>{k.name}</code>: <code>{k.einsum}</code></caption>
        <thead><tr><th scope="col">port</th><th scope="col">type</th><th scope="col">mapping</th><th scope="col">in</th><th scope="col" class="number">address</th></tr></thead>
        <tbody>{k.ports.map((p) => (
          <tr><td>{p.direction === "out" ? "→" : "←"} {p.name}</td><td>{p.dtype}</td>
            <td>{Object.entries(p.mapping).map(([part, m]) => `${part} ${m}`).join(" · ")}</td><td>{p.space}</td><td class="number">{p.address.toLocaleString("en-US")}</td></tr>))}
        </tbody>
      </table>
      {k.ops.slice(0, most).map((op) => <Stage key={op.index} op={op} />)}
      {k.ops.length > most && <button onClick={() => setMost(most + STEP)}>{k.ops.length - most} more stages</button>}
    </>
  );
}
