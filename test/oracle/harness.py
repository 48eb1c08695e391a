"""Runs visac on many kernels at once and says for each what became of it.

A kernel is a piece of source with axes of its own, so any number of them can stand in one file. A file with an error
emits nothing; the refused kernels are taken out (their diagnostics name the line) and the rest is compiled again.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import visa_tools  # noqa: E402

# Memories of units come and go with each of many kernels: their pages are kept, an eighth of the time.
KEPT_PAGES = "glibc.malloc.mmap_threshold=268435456:glibc.malloc.trim_threshold=268435456"
DAMAGE = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "Assertion", "internal error")


def visac():
    path = os.environ.get("VISA_BIN") or os.path.join(os.path.dirname(__file__), "..", "..", "build", "dev", "bin")
    return os.path.abspath(os.path.join(path, "visac"))


class Verdict:
    """kind: accepted (kernel: its JSON), refused (ids, messages) or crashed (text)."""

    def __init__(self, kind, kernel=None, diagnostics=(), text=""):
        self.kind, self.kernel, self.diagnostics, self.text = kind, kernel, list(diagnostics), text

    @property
    def ids(self):
        return sorted({d["id"] for d in self.diagnostics if d["severity"] == "error"})

    @property
    def message(self):
        for diagnostic in self.diagnostics:
            if diagnostic["severity"] == "error":
                return f"{diagnostic['id']}: {diagnostic['message']}"
        return self.text[-400:]


def _run(arguments, source, timeout):
    with tempfile.NamedTemporaryFile("w", suffix=".vm", dir=os.environ.get("VISA_ORACLE_TMP")) as file:
        file.write(source)
        file.flush()
        try:
            env = {**os.environ, "LC_ALL": "C", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""), "GLIBC_TUNABLES": KEPT_PAGES}
            done = visa_tools.without_tracer_crash(env, lambda env: subprocess.run(
                [visac(), file.name, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False, env=env))
        except subprocess.TimeoutExpired:
            return 124, "", "time limit"
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def _damaged(status, text):
    return status not in (0, 1, 3) or any(word in text for word in DAMAGE)


def _join(kernels):
    """The file and, for each kernel, its first and last line."""
    lines, spans = 0, []
    for source in kernels:
        count = source.count("\n") + 1
        spans.append((lines + 1, lines + count))
        lines += count
    return "\n".join(kernels) + "\n", spans


def compile_all(kernels, timeout=1800):
    """Verdicts of the kernels, each a source text that holds exactly one function."""
    verdicts = [None] * len(kernels)
    todo = list(range(len(kernels)))
    while todo:
        source, spans = _join([kernels[i] for i in todo])
        status, out, err = _run(["--emit=json", "--diagnostics-format=json", "-ferror-limit=0"], source, timeout)
        if _damaged(status, err):
            if len(todo) == 1:
                verdicts[todo[0]] = Verdict("crashed", text=f"status {status}: {err[-1500:]}")
                break
            half = len(todo) // 2
            for part in (todo[:half], todo[half:]):
                for i, verdict in zip(part, compile_all([kernels[i] for i in part], timeout)):
                    verdicts[i] = verdict
            break
        try:
            diagnostics = json.loads(err) if err.strip() else []
        except ValueError:
            for i in todo:
                verdicts[i] = Verdict("crashed", text="diagnostics are not JSON: " + err[:500])
            break
        found = {}
        for diagnostic in diagnostics:
            line = diagnostic["range"]["begin"]["line"]
            for i, (first, last) in zip(todo, spans):
                if first <= line <= last:
                    found.setdefault(i, []).append(diagnostic)
        if status == 0:
            emitted = json.loads(out)["kernels"]
            for i, kernel in zip(todo, emitted):
                verdicts[i] = Verdict("accepted", kernel, found.get(i, ()))
            break
        bad = [i for i in todo if any(d["severity"] == "error" for d in found.get(i, ()))]
        if not bad:
            for i in todo:
                verdicts[i] = Verdict("crashed", text="an error without a kernel: " + err[:500])
            break
        for i in bad:
            verdicts[i] = Verdict("refused", None, found[i])
        todo = [i for i in todo if verdicts[i] is None]
    return verdicts


def check_all(kernels, names, timeout=1800):
    """Runs --check on kernels that compile; {name: text} of those that do not check."""
    if not kernels:
        return {}
    source, _ = _join(kernels)
    status, out, err = _run(["--check"], source, timeout)
    if status == 0 and not _damaged(status, err):
        return {}
    if len(kernels) == 1:
        wrong = [line for line in (out + err).splitlines() if "error" in line or "differ" in line]
        return {names[0]: f"status {status}: " + "; ".join(wrong or [(out + err)[-800:]])}
    half = len(kernels) // 2
    failed = check_all(kernels[:half], names[:half], timeout)
    failed.update(check_all(kernels[half:], names[half:], timeout))
    return failed

