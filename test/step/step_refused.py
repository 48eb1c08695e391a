"""Stream programs, token files and runs that are refused: which diagnostic, and that nothing crashes."""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

BIN = os.environ.get("VISA_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/dev/bin"))
HEAD = "#[stream(depth = 1)]\nfn p<const N: Dim, const R: Ragged>(x: Stream<Tile<f32, 1, 1>, {[N, R]}>, y: Stream<Tile<f32, 1, 1>, {[N, R]}>, s: Stream<Selector<2, 1>, {[N, R]}>) {\n"

# (id, body)
COMPILED = [
    ("E-STEP-SHAPE", "x.flatten(0, 1).map(add, y)"),
    ("E-STEP-SHAPE", "let f = feedback::<Tile<f32, 1, 1>>([N]); let z = f.map(exp); f.connect(&x); z"),
    ("E-STEP-SHAPE", "let f = feedback::<Selector<2>>([N, R]); x.partition(0, &f)[0]"),
    ("E-STEP-SHAPE", "let f = feedback::<Selector<2>>([N, R]); let z = x.partition(0, &f); f.connect(&s); z[0]"),
    ("E-STEP-SHAPE", "let f = feedback::<Selector<2>>([N, R]); f.connect(&s); x.partition(0, &f)[0]"),
    ("E-STEP-SHAPE", "let f = feedback::<Selector<2>>([N, R]); f.connect(&s); f.connect(&s); x"),
    ("E-STEP-TYPE", "s.map(exp)"),
    ("E-STEP-TYPE", "s.flat_map(1, rows)"),
    ("E-STEP-TYPE", "x.flat_map(1, last)"),
    ("E-STEP-TYPE", "x.map(select::<Selector<2, 1>>(1))"),
    ("E-STEP-TYPE", "x.map(signal).map(select::<Selector<2>>(1))"),
    ("E-STEP-NUMBER", "x.map(signal).map(select::<Selector<2, 1>>(0))"),
    ("E-STEP-PROGRAM", "x.map(signal).map(select(1))"),
    ("E-STEP-NUMBER", "x.repeat(0)"),
    ("E-STEP-NUMBER", "x.accum(0, add)"),
    ("E-STEP-PROGRAM", "x.map(kernel::matmul)"),
    ("E-STEP-PROGRAM", "x.nothing()"),
    ("E-STEP-PROGRAM", "feedback([N])"),
    ("E-STEP-PROGRAM", "let f = feedback::<Selector<2>>([N, R]); f.compute(3)"),
]

GOOD = {"x": [1, 2, "S1"], "y": [3, 4, "S1"], "s": [[0], [1], "S1"]}
# (id, body, tokens that differ)
RUN = [
    ("E-STEP-TOKENS", "x", {"x": [1, 2]}),
    ("E-STEP-TOKENS", "x", {"x": [1, "S2"]}),
    ("E-STEP-TOKENS", "x", {"x": ["S0"]}),
    ("E-STEP-TOKENS", "x", {"x": [[[1, 2]], "S1"]}),
    ("E-STEP-TOKENS", "x", {"x": "no list"}),
    ("E-STEP-TOKENS", "x", {"x": [{"at": -1, "token": 1}, "S1"]}),
    ("E-STEP-TOKENS", "x", {"x": [{"at": 2 ** 51, "token": 1}, "S1"]}),
    ("E-STEP-TOKENS", "x", {"x": [{"at": 3, "tile": 1}, "S1"]}),
    ("E-STEP-TOKENS", "x", {"x": [{"at": 3, "token": {"at": 4, "token": 1}}, "S1"]}),
    ("E-STEP-TOKENS", "x.partition(0, &s)[0]", {"s": [[2], "S1"]}),
    ("E-STEP-TOKENS", "x.partition(0, &s)[0]", {"s": [[0], [0, 1], "S1"]}),
    ("E-STEP-TOKENS", "x.partition(0, &s)[0]", {"s": [[0], [], "S1"]}),
    ("E-STEP-RUN", "x.map(add, y)", {"y": [3, "S1", 4, "S1"]}),
    ("E-STEP-RUN", "x.reshape(0, 3).0", {}),
    ("E-STEP-RUN", "x.partition(0, &s)[0]", {"s": [[0], "S1"]}),
    ("E-STEP-RUN", "x.partition(0, &s)[0]", {"s": [[0], [1], [1], "S1"]}),
    ("E-STEP-DEADLOCK", "x.map(add, x.accum(1, add).repeat(3).assume(&x))", {"x": [1, 2, 3, "S1"]}),
    ("E-STEP-DEADLOCK", "let f = feedback::<Tile<f32, 1, 1>>([N, R]); let z = x.map(add, f); f.connect(&z); z", {}),
]


def compile_(d, body):
    with open(f"{d}/p.vm", "w") as f:
        f.write(f"{HEAD}    {body}\n}}\n")
    return subprocess.run([f"{BIN}/visac", f"{d}/p.vm", "-o", f"{d}/p.bin"], capture_output=True, text=True)


def run(d, tokens):
    command = [f"{BIN}/visa-run", f"{d}/p.bin"]
    for name, content in {**GOOD, **tokens}.items():
        with open(f"{d}/{name}.json", "w") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        command += ["--input", f"{name}={d}/{name}.json"]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=1800)


def hostile(d, count):
    """Token files with bytes changed: read or refused."""
    rng, bad = random.Random(3), 0
    compile_(d, "x.map(add, y).partition(0, &s)[0]")
    text = json.dumps(GOOD["x"] + [{"tile": [[5]], "valid": 0}, {"at": 30, "token": "S1"}])
    for _ in range(count):
        changed = list(text)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.choice('[]{}",:S0129eE.-tnf \\u\x00\x7f')
        r = run(d, {"x": "".join(changed)})
        if r.returncode not in (0, 1) or (r.returncode == 1 and "error[" not in r.stderr):
            bad += 1
            print(f"{''.join(changed)!r}: exit status {r.returncode}\n{r.stderr}")
    return bad


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        for wanted, body in COMPILED:
            r = compile_(d, body)
            if r.returncode != 1 or f"[{wanted}]" not in r.stderr:
                bad += 1
                print(f"{wanted}: {body}\n{r.stderr}")
        for wanted, body, tokens in RUN:
            c = compile_(d, body)
            r = run(d, tokens) if c.returncode == 0 else c
            if r.returncode != 1 or f"[{wanted}]" not in r.stderr:
                bad += 1
                print(f"{wanted}: {body} {tokens}\n{r.stderr}")
        bad += hostile(d, visa_tools.few(120))
    print(f"{len(COMPILED) + len(RUN)} refusals, {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
