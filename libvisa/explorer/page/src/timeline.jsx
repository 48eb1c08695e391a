// When each piece of work runs, from --report=json.
import { useState } from "preact/hooks";

const ROWS = ["dma", "main", "sub"], HEIGHT = 30, GAP = 8, LEFT = 44, TOP = 22;
const FOCUSED_MAX = 120; // bars that the keyboard visits

// 1, 2 or 5 times a power of ten, so that there are about `count` of them.
export function tickOf(span, count) {
  const rough = Math.max(span / count, 1), power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((f) => f * power >= rough);
}

const number = (n) => n.toLocaleString("en-US");

// Bars narrower than half a pixel are drawn as one with their neighbours.
function merge(items, scale) {
  const out = [];
  for (const item of items) {
    const last = out.at(-1), lines = item.commands.map((c) => c.line);
    if (last && (item.end - item.start) * scale < 0.5 && (item.start - last.end) * scale < 0.5 && (last.end - last.start) * scale < 4) {
      last.end = item.end;
      last.items.push(item);
      last.lines = [...new Set([...last.lines, ...lines])].slice(0, 40);
    } else {
      out.push({ start: item.start, end: item.end, items: [item], lines: [...new Set(lines)] });
    }
  }
  return out;
}

function Bar({ bar, y, scale, focusable }) {
  const [first] = bar.items, x = LEFT + bar.start * scale, width = Math.max((bar.end - bar.start) * scale - 0.6, 0.6);
  const name = first.commands.map((c) => c.command).filter((c) => c !== "wait" && c !== "units").join(" → ");
  const label = bar.items.length > 1 ? `${bar.items.length} pieces of work, cycles ${number(bar.start)} to ${number(bar.end)}`
    : `${name}\ncycles ${number(first.start)} to ${number(first.end)}: ${first.formula.text}\nbound by ${first.formula.bound}${first.critical ? ", on the critical path" : `, ${number(first.slack)} cycles of slack`}`;
  return (
    <g class={"bar" + (bar.items.some((i) => i.critical) ? " critical" : "")} data-lines={bar.lines.join(" ")} tabIndex={focusable ? 0 : undefined}
      role="img" aria-label={label.replaceAll("\n", ", ")}>
      <title>{label}</title>
      <rect x={x} y={y} width={width} height={HEIGHT} rx="2" />
      {width > 60 && <text x={x + 6} y={y + HEIGHT / 2 + 4}>{(bar.items.length > 1 ? `${bar.items.length} ×` : `${number(first.cycles)}  ${name}`).slice(0, Math.floor(width / 7.4))}</text>}
    </g>
  );
}

export function Timeline({ told }) {
  const [zoom, setZoom] = useState(1), [room, setRoom] = useState(640);
  const measure = (element) => element && element.clientWidth !== room && setRoom(element.clientWidth);
  const width = Math.max(room - 4, 300) * zoom, scale = (width - LEFT - 16) / Math.max(told.cycles, 1), tick = tickOf(told.cycles, width / 110);
  const ticks = Array.from({ length: Math.floor(told.cycles / tick) + 1 }, (_, i) => i * tick).slice(0, 2000);
  const rows = ROWS.filter((row) => told.items.some((item) => item.context === row) || told.busy[row] !== undefined);
  const height = TOP + rows.length * (HEIGHT + GAP) + 6;
  const busy = (row) => Math.round(100 * told.busy[row] / Math.max(told.cycles, 1));
  return (
    <>
      <div class="figures">
        <span><b>{number(told.cycles)}</b> cycles</span><span>one after the other <b>{number(told.serial_cycles)}</b></span>
        <span>at least <b>{number(told.lower_bound.cycles)}</b></span>
        <span class="zoom" role="group" aria-label="zoom"><button onClick={() => setZoom(Math.max(zoom / 2, 1))} disabled={zoom === 1} aria-label="zoom out">−</button>
          <button onClick={() => setZoom(Math.min(zoom * 2, 64))} disabled={zoom === 64} aria-label="zoom in">+</button></span>
      </div>
      <div class="scroll-x" ref={measure}>
        <svg class="timeline" width={width} height={height} role="group" aria-label="timeline">
          {ticks.map((t) => <g><line class="tick" x1={LEFT + t * scale} x2={LEFT + t * scale} y1={TOP - 6} y2={height} /><text class="tick" x={LEFT + t * scale} y={12} text-anchor={t ? "middle" : "start"}>{number(t)}</text></g>)}
          {rows.map((row, r) => {
            const bars = merge(told.items.filter((item) => item.context === row), scale), y = TOP + r * (HEIGHT + GAP);
            return <g class={row}><text class="row" x="4" y={y + HEIGHT / 2 - 1}>{row}</text><text class="tick" x="4" y={y + HEIGHT / 2 + 12}>{busy(row)} %</text>
              {bars.map((bar, i) => <Bar bar={bar} y={y} scale={scale} focusable={i < FOCUSED_MAX} />)}</g>;
          })}
        </svg>
      </div>
      <p class="legend"><span class="swatch critical" /> on the critical path; the figure under a name is how much of the time it works.</p>
      {told.lints.length > 0 && <h3>What would be faster</h3>}
      <ul class="lints">{told.lints.map((l) => (
        <li data-lines={l.line} tabIndex={0}><span><code>{l.rule}</code> line {l.line}: {l.found}{l.nearest && <>; nearest: <code>{l.nearest}</code></>}</span>
          <span class="cost">{number(l.cost_cycles)} cycles</span></li>))}</ul>
      <details><summary>Use of the machine</summary>
        <dl class="use">{Object.entries(told.use).map(([name, value]) => <div><dt>{name.replaceAll("_", " ")}</dt><dd>{number(value)}</dd></div>)}</dl></details>
    </>
  );
}
