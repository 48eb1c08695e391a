// The binary as visa-objdump prints it: a block for each command, which knows its line.
import { useMemo, useState } from "preact/hooks";

const STEP = 400; // blocks drawn at a time

export function blocksOf(text) {
  const blocks = [];
  let depth = 0;
  for (const line of text.split("\n")) {
    const indent = line.search(/\S/), command = line.match(/^\s+0x[0-9a-f]+ .*, line (\d+)$/), last = blocks.at(-1);
    if (command) {
      depth = indent;
      blocks.push({ line: Number(command[1]), head: line, rest: [] });
    } else if (last?.line && (indent > depth || indent < 0)) {
      last.rest.push(line);
    } else if (last && !last.line) {
      last.rest.push(line);
    } else {
      blocks.push({ head: line, rest: [] });
    }
  }
  return blocks;
}

export function Commands({ told }) {
  const [most, setMost] = useState(STEP), blocks = useMemo(() => blocksOf(told), [told]);
  return (
    <div class="commands">
      {blocks.slice(0, most).map((b) => <pre data-lines={b.line} tabIndex={b.line ? 0 : undefined}><b>{b.head}</b>{b.rest.length > 0 && "\n" + b.rest.join("\n")}</pre>)}
      {blocks.length > most && <button onClick={() => setMost(most + STEP)}>{blocks.length - most} more</button>}
    </div>
  );
}
