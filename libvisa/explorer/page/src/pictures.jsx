// The walks as visac draws them. A picture has styles of its own, so it lives in a root of its own.
import { useEffect, useRef } from "preact/hooks";

function Picture({ svg, line }) {
  const host = useRef(null);
  useEffect(() => {
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const parsed = new DOMParser().parseFromString(svg.replace("<svg ", '<svg style="display:block;max-width:100%;height:auto" '), "image/svg+xml");
    root.replaceChildren(document.importNode(parsed.documentElement, true));
  }, [svg]);
  return <div class="picture" data-lines={line} tabIndex={0} role="img" aria-label={svg.match(/<title>(.*?)<\/title>/)?.[1]}><div ref={host} />
    {line && <span class="where">line {line}</span>}</div>;
}

export function Pictures({ told, tables, kernel }) {
  const k = tables?.kernels?.find((one) => one.name === kernel), all = told.split(/(?=<svg )/).filter((one) => one.startsWith("<svg "));
  if (!all.length) return <p class="empty">No walk of this kernel is small enough to be drawn. A smaller axis has the same entries but for their sizes.</p>;
  return <div class="pictures">{all.map((svg, i) => {
    const index = Number(svg.match(/, operation (\d+)/)?.[1]);
    return <Picture key={i} svg={svg} line={k?.ops.find((op) => op.index === index)?.line} />;
  })}</div>;
}
