// A line between two panes that the pointer and the arrow keys move. `value` is the share of the first pane, in percent.
export function Splitter({ vertical, value, onChange, label }) {
  const clamp = (v) => Math.min(85, Math.max(15, v));
  const drag = (down) => {
    down.preventDefault();
    const box = down.currentTarget.parentElement.getBoundingClientRect();
    const move = (e) => onChange(clamp(100 * (vertical ? (e.clientY - box.top) / box.height : (e.clientX - box.left) / box.width)));
    const up = () => { removeEventListener("pointermove", move); removeEventListener("pointerup", up); };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
  };
  const keys = (e) => {
    const by = { ArrowLeft: -2, ArrowUp: -2, ArrowRight: 2, ArrowDown: 2 }[e.key];
    if (by) { e.preventDefault(); onChange(clamp(value + by)); }
  };
  return <div class={"splitter " + (vertical ? "horizontal" : "vertical")} role="separator" tabIndex={0} aria-label={label} aria-valuenow={Math.round(value)}
    aria-orientation={vertical ? "horizontal" : "vertical"} onPointerDown={drag} onKeyDown={keys} />;
}
