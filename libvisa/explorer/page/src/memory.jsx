// What lies where and for how long, from --emit=memory-json.
import { useState } from "preact/hooks";
import { tickOf } from "./timeline.jsx";

const TITLES = { hbm: "HBM of a chip", dm: "DM of a slice", trf: "TRF of a slice", vrf: "VRF of a slice" };
const LEFT = 76, HEIGHT = 190, TOP = 10, BOTTOM = 26;
const number = (n) => n.toLocaleString("en-US");
const WORDS = { port: "a port", given: "placed by the source", chosen: "placed by visac" };

// HBM is nearly empty: gaps of more than what is used are not drawn, and their ends say so.
function layersOf(memories) {
  const edges = [...new Set(memories.flatMap((m) => [m.begin, m.end]))].sort((a, b) => a - b);
  const used = memories.reduce((sum, m) => Math.max(sum, m.end - m.begin), 1);
  let at = 0, before = 0;
  const places = new Map([[0, 0]]), gaps = [];
  for (const edge of edges) {
    const covered = memories.some((m) => m.begin < edge && m.end > before), size = edge - before;
    const drawn = covered || size < used ? size : used / 4;
    if (drawn < size) gaps.push(at + drawn / 2);
    at += drawn;
    places.set(edge, at);
    before = edge;
  }
  return { places, gaps, height: Math.max(at, 1) };
}

function Space({ name, space, works, width }) {
  const { places, gaps, height } = layersOf(space.memories), y = (byte) => TOP + HEIGHT - (places.get(byte) / height) * HEIGHT;
  const x = (work) => LEFT + (work / Math.max(works, 1)) * (width - LEFT - 12), step = tickOf(works, 12);
  let lastLabel = Infinity;
  const labels = [...places.keys()].sort((a, b) => a - b).filter((byte) => (lastLabel - y(byte) >= 13 ? ((lastLabel = y(byte)), true) : false));
  return (
    <figure class="memory">
      <figcaption><b>{TITLES[name] ?? name}</b>: {number(space.peak)} bytes used of {number(space.limit)}, at most {number(space.least)} live at once</figcaption>
      <svg width={width} height={TOP + HEIGHT + BOTTOM} role="group" aria-label={TITLES[name] ?? name}>
        <rect class="frame" x={LEFT} y={TOP} width={width - LEFT - 12} height={HEIGHT} />
        {labels.map((byte) => <text class="tick" x={LEFT - 5} y={y(byte) + 4} text-anchor="end">{number(byte)}</text>)}
        {Array.from({ length: Math.floor(works / step) + 1 }, (_, i) => i * step).map((w) => <text class="tick" x={x(w)} y={TOP + HEIGHT + 14} text-anchor="middle">{w}</text>)}
        {gaps.map((at) => <line class="gap" x1={LEFT} x2={width - 12} y1={TOP + HEIGHT - (at / height) * HEIGHT} y2={TOP + HEIGHT - (at / height) * HEIGHT} />)}
        {space.memories.map((m) => {
          const w = Math.max(x(m.work[1]) - x(m.work[0]), 2), h = Math.max(y(m.begin) - y(m.end), 2);
          const label = `${m.name}: bytes ${number(m.begin)} to ${number(m.end)}, lines ${m.lines[0]} to ${m.lines[1]}, ${WORDS[m.by]}`;
          return <g class={"block " + m.by} data-lines={[...new Set(m.lines)].join(" ")} tabIndex={space.memories.length <= 120 ? 0 : undefined} role="img" aria-label={label}>
            <title>{label}</title><rect x={x(m.work[0])} y={y(m.end)} width={w} height={h} rx="2" />
            {h > 12 && w > 7.2 * m.name.length + 8 && <text x={x(m.work[0]) + 6} y={(y(m.begin) + y(m.end)) / 2 + 4}>{m.name}</text>}</g>;
        })}
      </svg>
    </figure>
  );
}

export function Memory({ told, kernel }) {
  const [room, setRoom] = useState(600);
  const k = told.kernels?.find((one) => one.name === kernel) ?? told.kernels?.[0];
  if (!k) return <p class="empty">There is no kernel.</p>;
  return (
    <div ref={(element) => element && element.clientWidth !== room && setRoom(element.clientWidth)}>
      <p class="legend"><span class="swatch chosen" /> placed by visac <span class="swatch given" /> by the source <span class="swatch port" /> ports. Across: pieces of work in the order of issue; up: bytes.</p>
      {Object.entries(k).filter(([, space]) => space?.memories?.length).map(([name, space]) => <Space name={name} space={space} works={k.works} width={Math.max(room, 300)} />)}
    </div>
  );
}
