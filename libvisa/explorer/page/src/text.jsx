// A view that is text; what names a line lights it.
export const Text = ({ told }) => (
  <div class="commands">{told.split("\n").map((line) => {
    const lines = [...line.matchAll(/\bline (\d+)/g)].map((m) => m[1]);
    return <pre data-lines={lines.length ? lines.join(" ") : undefined}>{line || " "}</pre>;
  })}</div>
);
