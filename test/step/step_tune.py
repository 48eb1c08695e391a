"""`visac tune` of stream programs: every point is what visac and visa-run give for it, the front is that of the points, the best is that of all
combinations, the printed commands give it again; the same twice; what is no question of that kind is refused. Usage: step_tune.py"""
import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import step_matrix  # noqa: E402

BIN, EXAMPLES = step_matrix.BIN, os.path.join(step_matrix.SOURCE, "examples/step")
SWIGLU = ["-D", "B=16", "-D", "D=32", "-D", "F=64"]
failures = []


def check(good, text):
    if not good:
        failures.append(text)


def call(d, *command):
    return subprocess.run([f"{BIN}/{command[0]}", *command[1:]], capture_output=True, text=True, cwd=d)


def tuned(d, *options, file=f"{EXAMPLES}/swiglu.vm"):
    done = call(d, "visac", "tune", file, "--emit=json", *options)
    check(done.returncode == 0, f"tune {options}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def figures(report):
    return report["cycles"], report["onchip_bytes"]["paper"], report["offchip_bytes"]


def run(d, file, values, passes=(), feeds=(), options=()):
    """What the two programs give for a point; None: it is refused."""
    made = call(d, "visac", file, "-o", "p.bin", *options, *(f"-D{n}={v}" for n, v in values.items()), *(f"--pass={p}" for p in passes))
    done = call(d, "visa-run", "p.bin", "--timing-only", "--report=json", *(x for f in feeds for x in ("--input", f))) if made.returncode == 0 else made
    return figures(json.loads(done.stdout)) if done.returncode == 0 else None


def beaten(a, others):
    return any(all(x <= y for x, y in zip(b, a)) and b != a for b in others)


def judge(d, file, answer, feeds=(), options=()):
    points = [p for p in answer["points"] if "refused" not in p]
    got = {i: figures(p) for i, p in enumerate(answer["points"]) if "refused" not in p}
    for i, p in enumerate(answer["points"]):
        real = run(d, file, p["values"], p["passes"], feeds, options)
        # a combination that compiles and stands around otherwise is no point, though it runs
        check(real == got.get(i) or ("refused" in p and "are others" in p["refused"]), f"{p}: {real} by hand")
    for i, p in enumerate(answer["points"]):
        if i in got:
            twin = any(got[k] == got[i] for k in got if k < i)
            check(p["front"] == (not beaten(got[i], got.values()) and not twin), f"front: {p}")
    best = answer["points"][answer["best"]]
    check(best["cycles"] == min(p["cycles"] for p in points), f"best: {best}")
    made, ran = (shlex.split(c) for c in answer["commands"])
    again = call(d, *made)
    again = call(d, *ran) if again.returncode == 0 else again
    check(f": {best['cycles']} cycles" in again.stdout, f"{answer['commands']}: {again.stdout[:200]}{again.stderr}")
    return points


def swiglu(d):
    tm, tn = (2, 4, 8, 16), (4, 8, 16, 32, 64)
    options = [*SWIGLU, f"--sweep=TM={','.join(map(str, tm))},TN={','.join(map(str, tn))}"]
    for more in ([], ["--onchip-bytes=9000", "--compute-tile=4"]):
        answer = tuned(d, *options, *more)
        if not answer:
            continue
        check(answer == tuned(d, *options, *more), "another answer the second time")
        check(not answer["stopped"] and not any("refused" in p for p in answer["points"] if not p["passes"]), f"swiglu {more}")
        judge(d, f"{EXAMPLES}/swiglu.vm", answer, options=[*SWIGLU, *more])
        every = [run(d, f"{EXAMPLES}/swiglu.vm", {"TM": a, "TN": b}, options=[*SWIGLU, *more]) for a, b in itertools.product(tm, tn)]
        found = min(every)[0]
        check(answer["points"][answer["best"]]["cycles"] <= found, f"{found} cycles by all combinations, {answer['points'][answer['best']]}")
    answer = tuned(d, *SWIGLU, "--budget=1s")
    check(answer and set(answer["constants"]) == {"TM", "TN", "DEPTH"}, f"constants: {answer and answer['constants'].keys()}")
    check(answer["points"][0]["values"] == {"TM": 16, "TN": 32, "DEPTH": 1} and not answer["points"][0]["passes"], "the first point is not the file as it is")
    text = call(d, "visac", "tune", f"{EXAMPLES}/swiglu.vm", *options)
    check(text.returncode == 0 and "<- fewest cycles" in text.stdout and "fewest cycles again" in text.stdout, f"text: {text.stdout}{text.stderr}")
    check(len(tuned(d, *options, "--budget=0s")["points"]) == 1, "without work there is one point")


def experts(d):
    sizes = step_matrix.MOE
    subprocess.run([sys.executable, f"{EXAMPLES}/routing.py", "moe", d, "--rows", "8", "--experts", "4", "--top", "2"], check=True, capture_output=True)
    feeds = ["routing=routing.json", "picks=picks.json"]
    given = [x for f in feeds for x in ("--input", f)]
    file = f"{EXAMPLES}/moe_mixtral.vm"
    rest = [s for s in sizes if not s.startswith(("-DFT", "-DT"))]
    answer = tuned(d, *rest, *given, "--sweep=FT=4,8,16,T=0,2,4,8", file=file)
    if answer:
        judge(d, file, answer, feeds, rest)
        check(answer["passes"] == ["dynamic-tiling", "hierarchical-tiling"] and any(p["passes"] for p in answer["points"] if "refused" not in p), "no pass is a point")
    file = f"{EXAMPLES}/attention.vm"
    subprocess.run([sys.executable, f"{EXAMPLES}/routing.py", *step_matrix.EXAMPLES["attention"][2].replace("OUT", d).split()], check=True, capture_output=True)
    given = [x for n in ("index", "count", "valid", "place") for x in ("--input", f"{n}={n}.json")]
    answer = tuned(d, *step_matrix.EXAMPLES["attention"][1], *given, "--pass=dynamic-parallel:done=keys_read", file=file)
    check(answer and "SAFE" not in answer["constants"] and "R" not in answer["constants"] and "META" in answer["constants"], f"attention: {answer and answer['constants']}")


def refused(d):
    with open(f"{d}/two.vm", "w") as f:
        f.write("const N: usize = 2;\n#[stream]\nfn a(x: Stream<Tile<f32, 1, 1>, {[N]}>) { x }\n#[stream]\nfn b(x: Stream<Tile<f32, 1, 1>, {[N]}>) { x }\n")
    with open(f"{d}/bad.vm", "w") as f:
        f.write("#[stream]\nfn a(x: Stream<Tile<f32, 1, 1>, {[2]}>) { x.accum(1, add) }\n")
    moe, swiglu_file = f"{EXAMPLES}/moe_mixtral.vm", f"{EXAMPLES}/swiglu.vm"
    for status, text, command in [
            (1, "E-TUNE-NONE", [moe, *step_matrix.MOE]), (1, "--kernel=NAME", ["two.vm"]), (1, "E-STEP-SHAPE", ["bad.vm"]), (1, "E-FILE-READ", ["none.vm"]),
            (2, "--dtype", [swiglu_file, "--dtype=i8"]), (2, "--report", [swiglu_file, "--report"]), (2, "--emit=text or json", [swiglu_file, "--emit=ir"]),
            (2, "values of `TM` twice", [swiglu_file, "--sweep=TM=4,TM=8"]), (2, "a value from -D", [swiglu_file, "--sweep=TM=4", "-D", "TM=2"]),
            (2, "no stream program", [f"{step_matrix.SOURCE}/examples/matmul.vm", "--sweep=M=4"])]:
        done = call(d, "visac", "tune", *command)
        check(done.returncode == status and text in done.stderr and not done.stdout, f"{command}: status {done.returncode}: {done.stderr[:300]}")
    done = call(d, "visac", swiglu_file, "--input", "x=y")
    check(done.returncode == 2, "--input without tune")
    with open(swiglu_file) as f:
        done = subprocess.run([f"{BIN}/visac", "tune", "-", *SWIGLU, "--sweep=TM=8,16"], stdin=f, capture_output=True, text=True, cwd=d)
    check(done.returncode == 0 and "fewest cycles" in done.stdout, f"from standard input: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as d:
        swiglu(d)
        experts(d)
        refused(d)
    print("".join(f"FAIL {f}\n" for f in failures) or "points, fronts and commands are what visac and visa-run give")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
