// Which lines of the source are lit, here and there.
// The one idea: whatever came from lines says so in data-lines="12 23"; who lights lines up tells everybody else.

const listeners = new Set();
let lit = [];

export const linesOf = (element) => (element?.dataset.lines ?? "").split(" ").filter(Boolean).map(Number);

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function mark(root) {
  for (const element of root.querySelectorAll("[data-lines]"))
    element.classList.toggle("lit", linesOf(element).some((line) => lit.includes(line)));
}

// `from` is "source" or the element that they were chosen on; `chosen`: by a click, not by passing over it.
export function light(lines, from, chosen = false) {
  lit = lines;
  mark(document);
  for (const listener of listeners) listener(lines, from, chosen);
  if (from !== "source" || !chosen) return;
  for (const pane of document.querySelectorAll(".view")) {
    const found = [...pane.querySelectorAll(".lit")];
    if (!found.length) continue;
    const box = pane.getBoundingClientRect();
    const seen = found.some((e) => { const b = e.getBoundingClientRect(); return b.bottom > box.top + 8 && b.top < box.bottom - 8; });
    if (!seen) pane.scrollTo({ top: pane.scrollTop + found[0].getBoundingClientRect().top - box.top - 24 });
  }
}

// What was drawn anew shows what is lit, too.
export const relight = () => mark(document);

for (const [event, chosen] of [["mouseover", false], ["focusin", false], ["click", true]])
  document.addEventListener(event, (e) => {
    const element = e.target.closest?.("[data-lines]");
    if (element && !e.target.closest("button, a, summary")) light(linesOf(element), element, chosen);
    else if (event === "mouseover" && e.target.closest?.(".pane-right") && lit.length) light([], null);
  });
document.addEventListener("keydown", (e) => {
  const element = e.target.closest?.("[data-lines]");
  if (element === e.target && element && (e.key === "Enter" || e.key === " ")) {
    e.preventDefault();
    light(linesOf(element), element, true);
  }
});
