// What a check found: the kernel's binary, run on the simulated machine and compared with its mathematics.
const WORDS = { agrees: ["The kernel agrees with its mathematics", "good"], differs: ["The kernel differs from its mathematics", "bad"], "not checked": ["Not checked", "so-so"] };

export function Verdict({ told, onClose }) {
  const [title, mood] = WORDS[told.verdict] ?? WORDS["not checked"];
  return (
    <div id="verdict" class={"verdict " + mood} role="status">
      <p><b class={mood}>{title}</b>{told.kernel && `: ${told.kernel}`}<button class="link" onClick={onClose}>Close</button></p>
      {told.report && <pre>{told.report.trim()}</pre>}
      {told.error && <pre>{told.error.trim()}</pre>}
    </div>
  );
}
