#!/usr/bin/env python3
"""Every step of every program towards a file fails, comes short, or is the last: no data of the user's is lost.

A scenario is a command with its outputs. It runs once undisturbed; then at each call that makes, fills, syncs, renames or removes a file
(test/files/inject.c counts them) the call fails, a write is done by half, the disk is full from there on, the program is killed before or after
it, or is told to end. Afterwards every output is what it was, or what it should be; all of one run are the same, but for kill -9;
inputs are as they were; an end without success is reported with an id; only kill -9 leaves a file of a known name, and the
next run works next to it. A scenario runs with outputs that are there already, and without.

Usage: write_faults.py [-v] [PART-OF-A-NAME ..]. Prints the calls of each. VISA_LONG=1: all of them, else a sample of what is alike."""
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

LONG = bool(os.environ.get("VISA_LONG"))
INJECT = os.path.join(visa_tools.bin_dir(), "inject")
OLD = b"what the user had\n" * 40
LEFT = re.compile(r"\.visa-[0-9a-f]{16}\.tmp$")
SAID = re.compile(rb"error\[E-[A-Z-]+\]: ")
KILLED, TERMINATED = 128 + 9, 128 + 15
MODES = {"no space": f"error={errno.ENOSPC}", "fault": f"error={errno.EIO}", "full disk": f"full={errno.ENOSPC}", "short": "short", "kill before": "kill",
         "kill after": "late", "SIGTERM": "signal=15"}

I4 = """axes![A = 8, B = 64];
fn pass(a: SwitchTensor<i4, m![1], m![1], m![1], m![A], m![B]>) -> CollectTensor<i4, m![1], m![1], m![1], m![A], m![B]> {
    a.collect()
}
"""
SUMS = """#[stream(compute = 1)]
fn sums(x: &Hbm<Tile<f32, 1, 4>, {[4, 3]}>, y: &mut Hbm<Tile<f32, 1, 4>, {[4]}>, index: Stream<Address, {[4]}>, count: Stream<Address, {[4]}>) -> Stream<Address, {[4]}> {
    let sum = x.random_load(index.flat_map(1, addresses(3), count)).map(exp).accum(1, add);
    y.random_store(index, sum);
    count
}
"""
STREAM = "#[stream]\nfn p(x: Stream<Tile<bf16, 16, 64>, {[4]}>) -> Stream<Tile<bf16, 16, 64>, {[4]}> {\n    x.map(silu)\n}\n"
PLAN = {"plan": 1, "kernels": {"matmul": {"file": "matmul.bin"}},
        "buffers": {"a": {"type": "bf16", "shape": [32, 32]}, "b": {"type": "bf16", "shape": [8, 32]}, "c": {"type": "bf16", "shape": [32, 8]}},
        "steps": [{"run": "matmul", "ports": {"a": "a", "b": "b", "out": "c"}}], "outputs": {"c": "c.raw", "a": "a.raw"}}
QUESTION = "C[m, n] = sum(k) A[m, k] * B[n, k]"
BOOK = "A listing:\n```rust\naxes![A = 8];\n```\n"


def prepare(folder):
    """The inputs of all scenarios."""
    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    for source in (("examples", "matmul.vm"), ("test", "cases", "upgrade.vm")):
        shutil.copy(os.path.join(visa_tools.SOURCE, *source), folder)
    with open(os.path.join(visa_tools.SOURCE, "docs", "dataflow.md"), encoding="utf-8") as page:
        write("mvau.vm", re.search(r"```rust mvau.vm\n(.*?)```", page.read(), re.S)[1])
    with open(os.path.join(folder, "matmul.vm"), encoding="utf-8") as file:
        matmul = file.read()
    for name, text in (("loose.vm", matmul.replace("    ", "\t ")),
                       ("stream.vm", STREAM), ("plan.json", json.dumps(PLAN)),
                       ("asked.vm", "axes![M = 16, K = 32];\n#[einsum(\"Y[m] = sum(k) A[m, k] * x[k]\")]\n" +
                        "fn k(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![M, K]>, x: &HbmTensor<bf16, m![1], m![K]>) -> HbmTensor<f32, m![1], m![M]>;\n"),
                       ("i4.vm", I4), ("sums.vm", SUMS), ("book.md", BOOK), ("index.json", "[0, 1, 2, 3]"), ("count.json", "[3, 1, 2, 1]")):
        write(name, text)
    for name in ("matmul", "i4", "sums"):
        done = visa_tools.run(["visac", f"{name}.vm", "-o", f"{name}.bin"], cwd=folder)
        if done.status:
            sys.exit(f"{name}.vm is not compiled: {done.text()}")
    body = "".join(f"Content-Length: {len(m)}\r\n\r\n{m}" for m in (
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}),
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}), json.dumps({"jsonrpc": "2.0", "method": "exit"})))
    write("session", body)


STEP = ["visa-run", "sums.bin", "--input", "index=index.json", "--input", "count=count.json"]
# name: (command, outputs, standard input); an output `-` is standard output.
SCENARIOS = {
    "visac, binary": (["visac", "matmul.vm", "-o", "new"], ["new"], None),
    "visac, default name": (["visac", "matmul.vm"], ["matmul.bin"], None),
    **{f"visac, {kind}": (["visac", "matmul.vm", f"--emit={kind}", "-o", "new"], ["new"], None)
       for kind in ("tables", "json", "ir", "ast", "llvm", "bc", "asm", "obj", "header", "dataflow", "dataflow-json")},
    **{f"visac, {kind}": (["visac", "sums.vm", f"--emit={kind}", "-o", "new"], ["new"], None) for kind in ("step-report", "step-json")},
    "visac, tables printed": (["visac", "matmul.vm", "--emit=tables"], ["-"], None),
    "visac, binary printed": (["visac", "matmul.vm", "-o", "-"], ["-"], None),
    "visac, picture": (["visac", "matmul.vm", "--draw=commit", "-o", "new"], ["new"], None),
    **{f"visac, report {form} and trace": (["visac", "matmul.vm", f"--report={form}", "--trace=trace", "-o", "new"], ["new", "trace"], None)
       for form in ("text", "csv", "json", "html")},
    "visac, report printed and trace": (["visac", "matmul.vm", "--report", "--trace=trace"], ["trace", "-"], None),
    "visac, trace": (["visac", "matmul.vm", "--trace=trace"], ["trace"], None),
    "visac, sweep": (["visac", "matmul.vm", "--sweep=M=32,64", "-o", "new"], ["new"], None),
    "visac, diff": (["visac", "diff", "matmul.vm", "matmul.bin", "-o", "new"], ["new"], None),
    "visac, format": (["visac", "--format", "matmul.vm", "-o", "new"], ["new"], None),
    "visac, book": (["visac", "--from-markdown", "book.md", "-o", "new"], ["new"], None),
    "visac, check and tables": (["visac", "matmul.vm", "--check", "--emit=tables", "-o", "new"], ["new"], None),
    **{f"visac, explore {form}": (["visac", "mvau.vm", "--explore", f"--emit={form}", "--limit=multipliers=98", "-o", "new"], ["new"], None)
       for form in ("text", "csv", "svg")},
    **{f"visa-run, {form}": (["visa-run", "matmul.bin", "--output", f"out={form}"], [form.split(":")[0]], None)
       for form in ("new.npy", "new.raw", "new.safetensors:c")},
    "visa-run, axes": (["visa-run", "matmul.bin", "--output", "out[N,M]=new.npy"], ["new.npy"], None),
    "visa-run, buffer": (["visa-run", "matmul.bin", "--output", "out:buffer=new"], ["new"], None),
    "visa-run, i4": (["visa-run", "i4.bin", "--output", "new.npy"], ["new.npy"], None),
    "visa-run, three and trace": (["visa-run", "matmul.bin", "--output", "out=a.npy", "--output", "out=b.raw", "--output", "out=c.safetensors:c", "--trace=t"],
                                  ["a.npy", "b.raw", "c.safetensors", "t"], None),
    "visa-run, one and printed": (["visa-run", "matmul.bin", "--output", "out=-", "--output", "out=new.npy"], ["new.npy", "-"], None),
    "visa-run, report and trace": (["visa-run", "matmul.bin", "--report=csv", "--trace=t"], ["t", "-"], None),
    "visa-run, check": (["visa-run", "matmul.bin", "--check", "--reference-order=hardware", "--output", "new"], ["new"], None),
    "visa-run, tokens, tensor, sizes": (STEP + ["--output", "y=y.npy", "--output", "out=tokens", "--sizes=sizes"], ["y.npy", "tokens", "sizes"], None),
    "visa-run, stream report printed": (STEP + ["--report", "--output", "y=y.npy"], ["y.npy", "-"], None),
    "visa-run, list": (["visa-run", "matmul.bin", "--list"], ["-"], None),
    "visa-objdump, text": (["visa-objdump", "matmul.bin", "-o", "new"], ["new"], None),
    "visa-objdump, JSON of two": (["visa-objdump", "--json", "matmul.bin", "i4.bin", "-o", "new"], ["new"], None),
    "visa-objdump, printed": (["visa-objdump", "matmul.bin"], ["-"], None),
    **{f"visac, {kind}": (["visac", "matmul.vm", f"--emit={kind}", "-o", "new"], ["new"], None) for kind in ("memory", "memory-json", "memory-svg", "order")},
    **{f"visac, stream {kind}": (["visac", "stream.vm", f"--emit={kind}", "-o", "new"], ["new"], None) for kind in ("dot", "svg")},
    "visac, finn": (["visac", "mvau.vm", "--emit=finn", "-o", "new"], ["new"], None),
    "visac, explore json": (["visac", "mvau.vm", "--explore", "--emit=json", "--limit=multipliers=98", "-o", "new"], ["new"], None),
    "visac, explain-mapping": (["visac", "matmul.vm", "--explain-mapping", "-o", "new"], ["new"], None),
    "visac, check as JSON, and certificate": (["visac", "matmul.vm", "--check", "--check-format=json", "--certificate=proof"], ["proof", "-"], None),
    "visac, check and binary": (["visac", "matmul.vm", "--check=algebra", "--certificate=proof", "-o", "new"], ["proof", "new"], None),
    "visac, advise": (["visac", "advise", "matmul.vm", "--apply", "-o", "new"], ["new"], None),
    "visac, in place: format": (["visac", "--format", "loose.vm", "-o", "loose.vm"], ["loose.vm"], None),
    "visac, in place: upgrade": (["visac", "--upgrade", "upgrade.vm", "-o", "upgrade.vm"], ["upgrade.vm"], None),
    "visac, tune": (["visac", "tune", QUESTION, "-D", "m=16,n=16,k=32", "--no-cache", "-o", "new"], ["new"], None),
    "visac, tune, three files": (["visac", "tune", QUESTION, "-D", "m=16,n=16,k=32", "--no-cache", "--emit=vm,bin,report", "-o", "new"],
                                 ["new.vm", "new.bin", "new.txt"], None),
    "visac, tune of a file": (["visac", "tune", "asked.vm", "--no-cache", "-o", "new"], ["new"], None),
    "visac, a new project": (["visac", "init", "."], [".gitignore", "Makefile", "README.md", "kernel.vm"], None),
    "visa-run, certificate and output": (["visa-run", "matmul.bin", "--check", "--certificate=proof", "--output", "out=new.npy"], ["new.npy", "proof"], None),
    "visa-run, plan": (["visa-run", "--plan", "plan.json", "--check"], ["c.raw", "a.raw"], None),
    "visa-run, report of a plan": (["visa-run", "--plan", "plan.json", "--report=html"], ["c.raw", "a.raw", "-"], None),
    "visa-lsp, a session": (["visa-lsp"], ["-"], "session"),
    **{f"{program} --help": ([program, "--help"], ["-"], None) for program in ("visac", "visa-run", "visa-objdump", "visa-lsp")},
}
# These go the same way to the file as another one does.
ALIKE = re.compile(r"visac, (json|ir|ast|llvm|bc|asm|dataflow|dataflow-json|step-.*|report (csv|json).*|explore (csv|svg|json)|memory.*|order|stream .*|finn|explain-mapping|tune|tune of a file|check as JSON.*)$|visa-run, (axes|buffer|certificate and output|report of a plan)$|--help$")

# Never over what is there: test/files/project.py.
NEW = ("visac, a new project",)
# Without files that are there already.
FIRST = ("visac, binary", "visa-run, three and trace", "visa-objdump, text")


class Scenario:
    def __init__(self, name, inputs, there):
        self.name, self.inputs, self.there = name, inputs, there
        self.command, self.outputs, self.stdin = SCENARIOS[name]
        self.files = [o for o in self.outputs if o != "-"]
        self.faults, self.runs = [], 0
        self.old = {f: OLD if there else None for f in self.files}
        if ", in place" in name:  # the source is what the user had
            self.old = {f: self.contents(inputs)[f] for f in self.files}

    def run(self, mode="none", point=0, folder=None):
        """(status, standard output, standard error, calls, {file: bytes}) of a run in a fresh copy of the inputs."""
        with tempfile.TemporaryDirectory() as fresh:
            folder = folder or fresh
            shutil.copytree(self.inputs, folder, dirs_exist_ok=True)
            for name in self.files:
                if self.old[name] is not None:
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(self.old[name])
                elif os.path.exists(os.path.join(folder, name)): # an input of other scenarios
                    os.unlink(os.path.join(folder, name))
            log = os.path.join(folder, "calls")
            program = os.path.join(visa_tools.bin_dir(), self.command[0])
            environment = visa_tools.environment()
            environment["ASAN_OPTIONS"] = "detect_leaks=0:" + environment["ASAN_OPTIONS"] # LeakSanitizer is a tracer itself
            with open(os.path.join(folder, self.stdin) if self.stdin else os.devnull, "rb") as stdin, open(os.path.join(folder, "printed"), "wb") as out:
                done = subprocess.run([INJECT, log, mode, str(point), program] + self.command[1:], cwd=folder, stdin=stdin, stdout=out,
                                      stderr=subprocess.PIPE, env=environment, timeout=1800, check=False)
            files = {}
            for entry in os.listdir(folder):
                with open(os.path.join(folder, entry), "rb") as file:
                    files[entry] = file.read()
            self.runs += 1
            calls = files.pop("calls").decode().splitlines()
            return done.returncode, files.pop("printed"), done.stderr, calls, files

    def fault(self, where, *what):
        self.faults.append(" ".join([f"{self.name}{' (replaced)' if self.there else ''}: {where}:"] + [str(w) for w in what]))

    def judge(self, point, mode, result):
        status, printed, said, _, files = result
        call = self.calls[point - 1]
        where = f"{mode} at {point}, {call}"
        killed = status == KILLED
        states = set()
        for name in self.files:
            content, old = files.get(name), self.old[name]
            states.add("old" if content == old else "new" if content == self.new[name] else f"{name} is damaged ({content and len(content)} bytes)")
        for name in self.given:
            if name not in self.files and files.get(name) != self.given[name]:
                self.fault(where, "the input", name, "is changed")
        left = [name for name in files if name not in self.given and name not in self.files]
        if any(not LEFT.match(name) for name in left) or (left and not killed and not call.startswith("unlink")):
            self.fault(where, "left", left)
        if not states <= {"old", "new"} or (len(states) > 1 and not killed):
            self.fault(where, states)
        if killed:
            return
        if status == 0 and (states - {"new"} or ("-" in self.outputs and printed != self.printed)):
            self.fault(where, "exit status 0,", states, f"{len(printed)} of {len(self.printed)} bytes printed")
        if status != 0 and (status != (TERMINATED if mode == "SIGTERM" else 1) or not SAID.search(said)):
            self.fault(where, "exit status", status, said[:300])
        if status != 0 and mode != "full disk" and states - {"old"} and not any(c.startswith(("rename", "exchange")) for c in self.calls[:point]):
            self.fault(where, "exit status", status, "and", states)
        if mode in ("no space", "fault") and status == 0 and not call.startswith("fchown"): # the owner is kept where that is permitted
            self.fault(where, "is not reported")
        if mode == "short" and status != 0:
            self.fault(where, "a short write is no fault:", said[:300])
        if mode == "SIGTERM" and status == TERMINATED and self.files:
            truth = b"no file was written" if states == {"old"} else b"were written before"
            if truth not in said:
                self.fault(where, states, said[:300])

    def run_all(self):
        undisturbed = self.run()
        if undisturbed[0] != 0:
            self.fault("undisturbed", undisturbed[0], undisturbed[2][:400])
            return self
        self.given = {name: content for name, content in self.contents(self.inputs).items()}
        self.new, self.printed, self.calls = {f: undisturbed[4].get(f) for f in self.files}, undisturbed[1], undisturbed[3]
        if not self.calls or None in self.new.values():
            self.fault("undisturbed", self.calls, {f: c is not None for f, c in self.new.items()})
            return self
        self.check_order()
        for point, call in enumerate(self.calls, 1):
            for mode in self.modes_at(point, call):
                self.judge(point, mode, self.run(MODES[mode], point))
        return self

    def check_order(self):
        """Every file is on the disk before the first takes its place, and the folders after the last."""
        words = [c.split()[0] for c in self.calls]
        moves = [i for i, w in enumerate(words) if w in ("rename", "exchange")]
        if len(moves) != len(self.files) or (moves and (words[:moves[0]].count("fsync") != len(moves) or words[moves[-1]:].count("fsync") != len(moves))):
            self.fault("undisturbed", "files are not synced, moved and synced:", words)

    def modes_at(self, point, call):
        """All that make sense; without VISA_LONG the ends of a row of equal calls, no mode that differs from another in its errno only, and who is
        killed before the next call was killed after this one."""
        inside = 1 < point < len(self.calls) and self.calls[point - 2] == call == self.calls[point]
        for mode in MODES:
            sensible = mode != "short" or call.startswith("write ")
            differs = mode != "fault" or call.startswith(("fsync", "close"))
            last = mode != "kill after" or point == len(self.calls)
            if sensible and (LONG or (differs and last and not inside)):
                yield mode

    @staticmethod
    def contents(folder):
        found = {}
        for entry in os.listdir(folder):
            with open(os.path.join(folder, entry), "rb") as file:
                found[entry] = file.read()
        return found


def works_beside_what_is_left(inputs):
    """kill -9 in the middle, and then the same again."""
    s = Scenario("visac, binary", inputs, True)
    with tempfile.TemporaryDirectory() as folder:
        calls = s.run()[3]
        s.run("late", next(i for i, c in enumerate(calls, 1) if c.startswith("fchmod")), folder)
        left = [f for f in os.listdir(folder) if LEFT.match(f)]
        again = s.run("none", 0, folder)
        if len(left) != 1 or again[0] != 0 or left[0] not in again[4] or again[4]["new"] == OLD:
            return [f"after kill -9 {left} is left, and the next run gives {again[0]}, {again[2][:200]}"]
    return []


def answers_that_are_kept():
    """The cache of `visac tune` is none of the user's files: whatever happens to it, the answer is written, or reported as not written, and
    the next run has the same answer."""
    faults, points, runs = [], 0, 0
    command = [os.path.join(visa_tools.bin_dir(), "visac"), "tune", QUESTION, "-D", "m=16,n=16,k=32", "-o", "new"]
    environment = dict(visa_tools.environment(), ASAN_OPTIONS="detect_leaks=0:" + visa_tools.environment()["ASAN_OPTIONS"])

    def run(folder, mode, point):
        environment["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
        done = subprocess.run([INJECT, os.path.join(folder, "calls"), mode, str(point)] + command, cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, timeout=1800, check=False)
        path = os.path.join(folder, "new")
        with open(os.path.join(folder, "calls")) as log:
            calls = log.read().splitlines()
        answer = open(path, "rb").read() if os.path.exists(path) else None
        if answer is not None:
            os.unlink(path)
        return done, answer, calls

    for there in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            if there:
                run(folder, "none", 0)
            done, right, calls = run(folder, "none", 0)
            if done.returncode != 0 or right is None or (not there and not any(c.startswith("mkdir") for c in calls)):
                return [f"undisturbed: {done}, {calls}"], 0, 0
        points += len(calls)
        for point, call in enumerate(calls, 1):
            for mode in MODES:
                if mode == "short" and not call.startswith("write "):
                    continue
                if not LONG and (mode == "fault" or (mode == "kill after" and point < len(calls))):
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    if there:
                        run(folder, "none", 0)
                    done, answer, _ = run(folder, MODES[mode], point)
                    where = f"answers, {mode} at {point}, {call}{' (kept)' if there else ''}"
                    if answer not in (None, right) or (done.returncode == 0) != (answer is not None) and done.returncode not in (KILLED, TERMINATED, 1):
                        faults.append(f"{where}: exit status {done.returncode}, {answer and len(answer)} bytes")
                    if done.returncode not in (0, KILLED) and not SAID.search(done.stderr):
                        faults.append(f"{where}: {done.returncode} {done.stderr[:200]}")
                    left = [f for _, _, names in os.walk(folder) for f in names if f.endswith(".tmp")]
                    if left and done.returncode != KILLED and not call.startswith("unlink"):
                        faults.append(f"{where}: left {left}")
                    again, answer, _ = run(folder, "none", 0)
                    if again.returncode != 0 or answer != right:
                        faults.append(f"{where}: the next run gives {again.returncode}, {answer and len(answer)} of {len(right)} bytes")
                    runs += 1
    return faults, points, runs


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    chosen = [n for n in SCENARIOS if (any(part in n for part in names) if names else LONG or not ALIKE.search(n))]
    if visa_tools.SLOWER > 1 and not names:  # the ways of a fault through the programs, and not every program's way to the same functions
        chosen = list(FIRST)
    with tempfile.TemporaryDirectory() as inputs:
        prepare(inputs)
        probe = subprocess.run([INJECT, os.devnull, "none", "0", "true"], stderr=subprocess.PIPE, check=False)
        if probe.returncode != 0:
            print(probe.stderr.decode().strip())
            return visa_tools.SKIPPED
        scenarios = [Scenario(n, inputs, there) for n in chosen for there in (True, False)
                     if (n not in NEW if there else n in NEW or (SCENARIOS[n][1] != ["-"] and ", in place" not in n and (LONG or names or n in FIRST)))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(Scenario.run_all, scenarios))
        faults = works_beside_what_is_left(inputs) + [f for s in done for f in s.faults]
        kept = answers_that_are_kept() if not names and visa_tools.SLOWER == 1 else ([], 0, 0)
        faults += kept[0]
    totals = {}
    for s in done:
        kinds = sorted({c.split()[0] for c in s.calls}) if hasattr(s, "calls") else []
        if "-v" in sys.argv:
            print(f"{s.name}{' (replaced)' if s.there else ''}: {len(s.calls)} calls ({', '.join(kinds)}), {s.runs} runs")
        program = totals.setdefault(s.command[0], [0, 0, 0])
        for i, n in enumerate((1, len(getattr(s, "calls", ())), s.runs)):
            program[i] += n
    for program, (count, calls, runs) in totals.items():
        print(f"{program}: {count} scenarios, {calls} write points, {runs} runs")
    print(f"answers of visac tune that are kept: {kept[1]} write points, {kept[2]} runs")
    return visa_tools.ended(faults, f"{len(faults)} faults", 60)


if __name__ == "__main__":
    sys.exit(main())
