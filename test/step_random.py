"""Random stream programs against whole nested lists: each operator's rule is written here once more, on lists, with no stream and no stop.
Groups may be empty. Usage: step_random.py [SEED [COUNT]]; VISA_LONG=1 makes 20,000 programs."""
import json
import os
import random
import subprocess
import sys
import tempfile

BIN = os.environ.get("VISA_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/dev/bin"))


# ---- between nested lists and tokens. A value of rank 0 is {"v": number}: lists are dimensions. ----

def values(x, depth):
    """The lists `depth` dimensions down, in order."""
    return [x] if depth == 0 else [v for part in x for v in values(part, depth - 1)]


def mapped(x, depth, f):
    return f(x) if depth == 0 else [mapped(part, depth - 1, f) for part in x]


def tokens(x, rank):
    """x has rank + 1 dimensions. A bare stop of level k closes one empty innermost group and all around it."""
    out = []
    for part in x:
        body(part, rank, out)
    return out


def body(x, level, out):
    if level == 0:
        out.append(x)
        return
    for part in x:
        body(part, level - 1, out)
    if x and level > 1:  # the last inner stop rises
        out[-1] = f"S{level}"
    else:
        out.append(f"S{level}")


# ---- operators on nested lists: (text of the call, rank of the result, the result); None when the operator does not apply ----

def op_map(r, x, rank):
    return ".map(add, {0})", rank, mapped(x, rank + 1, lambda v: 2 * v)


def op_accum(r, x, rank):
    if rank == 0:
        return None
    b = r.randint(1, rank)
    return f".accum({b}, add)", rank - b, mapped(x, rank + 1 - b, lambda part: sum(values(part, b)))


def op_scan(r, x, rank):
    if rank == 0:
        return None
    b = r.randint(1, rank)

    def scan(part, depth, state):
        if depth == 0:
            state[0] += part
            return state[0]
        return [scan(p, depth - 1, state) for p in part]
    return f".scan({b}, add)", rank, mapped(x, rank + 1 - b, lambda part: scan(part, b, [0]))


def op_flatten(r, x, rank):
    if rank == 0:
        return None
    low = r.randint(0, rank - 1)
    high = r.randint(low + 1, rank)
    return f".flatten({low}, {high})", rank - (high - low), mapped(x, rank - high, lambda part: values(part, high - low + 1))


def op_reshape(r, x, rank):
    size = r.randint(1, 4)

    def chunks(part):
        out = [part[i:i + size] for i in range(0, len(part), size)]
        if out:
            out[-1] = out[-1] + [7] * (size - len(out[-1]))
        return out or ([[]] if rank > 0 else [])  # the canonical reading of an empty group
    return f".reshape(0, {size}, 7).0", rank + 1, mapped(x, rank, chunks)


def op_promote(r, x, rank):
    return ".promote()", rank + 1, [x] if x else []


def op_repeat(r, x, rank):
    n = r.randint(1, 3)
    empty = (lambda part: [[v] * n for v in part] or [[]]) if rank > 0 else (lambda part: [[v] * n for v in part])
    return f".repeat({n})", rank + 1, mapped(x, rank, empty)


OPERATORS = [op_map, op_accum, op_scan, op_flatten, op_reshape, op_promote, op_repeat]


def canonical(x, rank):
    """Deeper emptiness: a group without groups is read as one empty group."""
    if rank == 0:
        return x
    return [canonical(part, rank - 1) if part or rank == 1 else canonical([[]], rank - 1) for part in x]


def nested(r, rank):
    if rank < 0:
        return r.randint(-4, 4)
    return [nested(r, rank - 1) for _ in range(r.choice([0, 1, 1, 2, 3]) if r.random() < 0.9 else 5)]


def program(r):
    """A chain of operators on one random stream: source text, tokens in, tokens out."""
    rank = r.randint(0, 3)
    x = canonical(nested(r, rank), rank)
    fed = tokens(x, rank)
    dims = [f"const D{i}: {'Ragged' if 0 < i else 'Dim'}" for i in range(rank + 1)]
    text, shape = "", ", ".join(f"D{i}" for i in range(rank + 1))
    for k in range(r.randint(1, 6)):
        made = None
        while made is None:
            made = r.choice(OPERATORS)(r, x, rank)
            if made and made[1] > 6:
                made = None
        call, rank, x = made
        x = canonical(x, rank)
        hop = r.choice(["", ".broadcast()"])
        text += f"    let s{k + 1} = s{k}{call.format(f's{k}')}{hop};\n"
        last = k + 1
    depth = r.choice([0, 0, 2])
    source = (f"#[stream(depth = {depth})]\nfn p<{', '.join(dims)}>(s0: Stream<Tile<f32, 1, 1>, {{[{shape}]}}>) {{\n{text}    s{last}\n}}\n")
    return source, fed, tokens(x, rank)


def run(d, source, fed):
    for name, content in (("p.vm", source), ("s0.json", json.dumps(fed))):
        with open(os.path.join(d, name), "w") as f:
            f.write(content)
    r = subprocess.run([f"{BIN}/visac", f"{d}/p.vm", "-o", f"{d}/p.bin"], capture_output=True, text=True)
    if r.returncode != 0:
        return None, r.stderr
    r = subprocess.run([f"{BIN}/visa-run", f"{d}/p.bin", "--input", f"s0={d}/s0.json", "--output", f"out={d}/out.json"], capture_output=True, text=True)
    if r.returncode != 0:
        return None, r.stderr
    with open(f"{d}/out.json") as f:
        return json.load(f), ""


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20000 if os.environ.get("VISA_LONG") else 300
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        for i in range(seed, seed + count):
            source, fed, wanted = program(random.Random(i))
            got, why = run(d, source, fed)
            if got is None or [flat(t) for t in got] != wanted:
                bad += 1
                if bad <= 5:
                    print(f"seed {i}:\n{source}in  {fed}\nout {got and [flat(t) for t in got]}\nwant {wanted}\n{why}")
    print(f"{count - bad} of {count} random programs agree with nested lists")
    return bad > 0


def flat(token):
    """The number of a 1 x 1 tile; a stop as it is."""
    if isinstance(token, dict):
        token = token["tile"]
    return token[0][0] if isinstance(token, list) else token


if __name__ == "__main__":
    sys.exit(main())
