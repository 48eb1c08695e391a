"""Functions of tiles that a program brings along: random closures and #[stream] functions, as map, accum and scan, with tuples, numbers and pairs,
against an evaluation in Python of the same expressions, and judged (--check); FLOPs as derived against those counted; values against --timing-only in time; the same in pieces, where
they have products; what is refused. What the judge leaves open is counted, and bounded. Usage: step_functions.py [SEED [COUNT]]; VISA_LONG=1: many more."""
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

SOURCE = os.environ.get("VISA_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BIN = os.environ.get("VISA_BIN", os.path.join(SOURCE, "build/dev/bin"))
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else visa_tools.few(150)


# ---- tiles as lists of rows; the mathematics, not the simulator ----

def shape(t):
    return len(t), len(t[0])


def each(f, *tiles):
    rows, columns = max(len(t) for t in tiles), max(len(t[0]) for t in tiles)
    pick = lambda t, r, c: t[r if len(t) > 1 else 0][c if len(t[0]) > 1 else 0]
    return [[f(*(pick(t, r, c) for t in tiles)) for c in range(columns)] for r in range(rows)]


def guarded(f):
    def run(*x):
        try:
            return f(*x)
        except OverflowError:
            return math.inf
    return run


UNARY = {  # name: (function, FLOPs of an element)
    "exp": (guarded(math.exp), 4), "tanh": (math.tanh, 8), "relu": (lambda x: max(x, 0.0), 1),
    "silu": (lambda x: x / (1 + guarded(math.exp)(-x)), 8),
    "gelu": (lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))), 14),
}
BINARY = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


class Expression:
    """text, value of the tiles by name, shape, FLOPs."""

    def __init__(self, text, value, size, flops):
        self.text, self.value, self.size, self.flops = text, value, size, flops


def leaf(name, size):
    return Expression(name, lambda of: of[name], size, 0)


def elements(size):
    return size[0] * size[1]


def joined(a, b):
    return None if any(x != y and 1 not in (x, y) for x, y in zip(a, b)) else tuple(max(x, y) for x, y in zip(a, b))


def grow(rng, leaves, depth):
    """A random expression over the leaves."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(leaves)
    a = grow(rng, leaves, depth - 1)
    kind = rng.random()
    if kind < 0.30:
        b = grow(rng, leaves, depth - 1)
        size = joined(a.size, b.size)
        if size is None:
            return a
        op = rng.choice(list(BINARY))
        return Expression(f"({a.text} {op} {b.text})", lambda of: each(BINARY[op], a.value(of), b.value(of)), size, a.flops + b.flops + elements(size))
    if kind < 0.45:
        name = rng.choice(["row_sum", "row_max", "col_sum", "col_max"])
        fold = sum if "sum" in name else max
        along = (lambda t: [[fold(r)] for r in t]) if "row" in name else (lambda t: [[fold(c) for c in zip(*t)]])
        return Expression(f"{name}({a.text})", lambda of: along(a.value(of)), (a.size[0], 1) if "row" in name else (1, a.size[1]),
                          a.flops + elements(a.size))
    if kind < 0.60:
        name = rng.choice(list(UNARY))
        f, cost = UNARY[name]
        small = Expression(f"({a.text} * 0.125)", lambda of: each(lambda x: x * 0.125, a.value(of)), a.size, a.flops + elements(a.size))
        text = f"{name}({small.text})" if rng.random() < 0.5 else f"{small.text}.{name}()"
        return Expression(text, lambda of: each(f, small.value(of)), a.size, small.flops + cost * elements(a.size))
    if kind < 0.70:
        name, cost, f = rng.choice([("sqrt", 4, math.sqrt), ("rsqrt", 5, lambda x: 1 / math.sqrt(x)), ("ln", 4, math.log)])
        return Expression(f"{name}({a.text} * {a.text} + 1)", lambda of: each(lambda x: f(x * x + 1), a.value(of)), a.size,
                          2 * a.flops + (2 + cost) * elements(a.size))
    if kind < 0.80:  # compares what comes in, so that rounding decides nothing
        b, c, d = rng.choice(leaves), rng.choice(leaves), rng.choice(leaves)
        op, f = rng.choice([("<", lambda x, y: x < y), (">", lambda x, y: x > y), ("<=", lambda x, y: x <= y), (">=", lambda x, y: x >= y),
                            ("==", lambda x, y: x == y), ("!=", lambda x, y: x != y)])
        size = joined(b.size, c.size) and joined(joined(b.size, c.size), a.size)
        size = size and joined(size, d.size)
        if not size or b.flops or c.flops or not all(x.text.isidentifier() for x in (b, c)):
            return a
        if rng.random() < 0.3 and joined(b.size, joined(a.size, d.size)) and joined(a.size, d.size):  # what is not 0 holds, below 0 too
            size = joined(b.size, joined(a.size, d.size))
            return Expression(f"select({b.text}, {a.text}, {d.text})",
                              lambda of: each(lambda x, p, q: p if x != 0 else q, b.value(of), a.value(of), d.value(of)), size, a.flops + d.flops + elements(size))
        if op == "==" and rng.random() < 0.5:  # the other way round
            return Expression(f"select(!({b.text} == {c.text}), {d.text}, {a.text})",
                              lambda of: each(lambda x, y, p, q: p if x == y else q, b.value(of), c.value(of), a.value(of), d.value(of)), size,
                              a.flops + d.flops + 2 * elements(joined(b.size, c.size)) + elements(size))
        return Expression(f"select({b.text} {op} {c.text}, {a.text}, {d.text})",
                          lambda of: each(lambda x, y, p, q: p if f(x, y) else q, b.value(of), c.value(of), a.value(of), d.value(of)), size,
                          a.flops + d.flops + elements(joined(b.size, c.size)) * (2 if op == "!=" else 1) + elements(size))
    if kind < 0.88:
        name, f = rng.choice([("max", max), ("min", min)])
        b = grow(rng, leaves, depth - 1)
        size = joined(a.size, b.size)
        if size is None:
            return a
        return Expression(f"{name}({a.text}, {b.text})", lambda of: each(f, a.value(of), b.value(of)), size, a.flops + b.flops + elements(size))
    b = grow(rng, leaves, depth - 1)
    if a.size[1] == b.size[1]:
        rows = (a.size[0], b.size[0])
        product = lambda x, y: [[sum(p * q for p, q in zip(r, s)) for s in y] for r in x]
        return Expression(f"matmul_t({a.text}, {b.text})", lambda of: product(a.value(of), b.value(of)), rows,
                          a.flops + b.flops + 2 * elements(a.size) * b.size[0])
    if a.size[1] == b.size[0]:
        rows = (a.size[0], b.size[1])
        product = lambda x, y: [[sum(p * q for p, q in zip(r, s)) for s in zip(*y)] for r in x]
        return Expression(f"matmul({a.text}, {b.text})", lambda of: product(a.value(of), b.value(of)), rows,
                          a.flops + b.flops + 2 * elements(a.size) * b.size[1])
    return Expression(f"(-{a.text})", lambda of: each(lambda x: -x, a.value(of)), a.size, a.flops + elements(a.size))


def same(ours, theirs):
    if isinstance(ours, (int, float)) and isinstance(theirs, list) and shape(theirs) == (1, 1):  # tokens write such a tile as its number
        theirs = theirs[0][0]
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs))
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and same(ours["pair"], theirs["pair"])
    if isinstance(ours, str) or isinstance(theirs, str) or ours is None:
        return ours == theirs
    return abs(ours - theirs) <= 2e-4 * max(1.0, abs(ours), abs(theirs))


def magnitude(t):
    return max((abs(x) for row in t for x in row), default=0)


def nested(parts):
    """Results of a function as the stream's pairs."""
    return parts[0] if len(parts) == 1 else {"pair": [parts[0], nested(parts[1:])]}


def tool(*command):
    return subprocess.run([f"{BIN}/{command[0]}", *command[1:]], capture_output=True, text=True)


# What the judge may leave open: an output without a number, where the streams were drawn empty; an output of which every number may be anything, where
# a state is compared that has an error. Both end a check with status 3.
OPEN = ("has a value: nothing was compared", "each of them may be anything")


def run_checked(command):
    """visa-run with --check; without it once more where that was all that it had to say, with the verdict of the first run."""
    done = tool(*command, "--check")
    if done.returncode == 3 and "E-CHECK-MISMATCH" not in done.stderr and any(words in done.stderr for words in OPEN):
        verdict, done = done.stderr, tool(*command)
        done.stderr += verdict
    return done


JUDGED = {"programs": 0, "numbers": 0, "anything": 0, "outputs": 0, "open": 0, "large": 0, "cut": 0}


def judged(text, sizes):
    """Counts what a verdict compared; there are as many numbers as the mathematics gives for each output."""
    lines = re.findall(r"^\w+: (\d+) values are what the graph's mathematics gives(?:.*; (\d+) of them may be anything)?", text, re.M)
    if [int(n) for n, _ in lines] != sizes:
        return f"the judge is to compare {sizes} numbers and says: {text}"
    JUDGED["programs"] += 1
    for n, anything in ((int(n), int(m or 0)) for n, m in lines):
        JUDGED["numbers"] += n
        JUDGED["anything"] += anything
        JUDGED["outputs"] += n > 0
        JUDGED["open"] += 0 < n == anything
    return None


def left_open():
    """The judge is to decide nearly everything: one that leaves much open agrees with any simulator."""
    return [f"the judge leaves {JUDGED[part]} of {JUDGED[whole]} {whole} open" for part, whole in (("anything", "numbers"), ("open", "outputs"))
            if JUDGED[part] * 50 > JUDGED[whole]] + (["too many values are too large"] if JUDGED["large"] * 10 > JUDGED["programs"] else [])


def count_numbers(x):
    """Of what a stream or value holds."""
    if isinstance(x, dict):
        return count_numbers(x["pair"])
    return sum(map(count_numbers, x)) if isinstance(x, list) else int(not isinstance(x, str))


def program(rng):
    """A program with a map, and a fold or a scan, of functions of its own: (text, sizes of x, y, w, the functions)."""
    sizes = {n: (rng.choice([1, 2, 3, 4]), rng.choice([1, 2, 3, 4])) for n in "xyw"}
    if rng.random() < 0.6:
        sizes["y"] = sizes["x"]
    bools = rng.random() < 0.2  # w is a stream of bools: numbers, 1 or 0
    if bools:
        sizes["w"] = (1, 1)
    leaves = [leaf(n, sizes[n]) for n in "xyw"]
    mapped = [grow(rng, leaves, rng.randrange(1, 4)) for _ in range(rng.choice([1, 1, 2, 3]))]
    state_sizes = [(rng.choice([1, 2, 3]), rng.choice([1, 2, 3])) for _ in range(rng.choice([1, 2, 3]))]
    states = [leaf(f"s{i}", s) for i, s in enumerate(state_sizes)]
    starts = [rng.choice([0.0, 1.0, -2.5, 0.25]) for _ in states]
    updates = []
    for s in states:
        for _ in range(200):
            part = grow(rng, [*states, leaf("x", sizes["x"]), leaf("y", sizes["y"])], rng.randrange(0, 3))
            size = joined(part.size, s.size)
            if size == s.size:
                break
        else:
            part = s
        half = Expression(f"({s.text} * 0.5 + tanh({part.text}))",
                          lambda of, s=s, part=part: each(lambda a, b: a * 0.5 + math.tanh(b), s.value(of), part.value(of)), s.size,
                          part.flops + elements(s.size) + 8 * elements(part.size) + elements(s.size))
        updates.append(half)
    op = rng.choice(["accum", "scan"])
    result = lambda parts: parts[0].text if len(parts) == 1 else "(" + ", ".join(p.text for p in parts) + ")"
    own = rng.random() < 0.5
    head = f"#[stream]\nfn own(x: T, y: T, w: T) {{\n    {result(mapped)}\n}}\n" if own else ""
    closure = "own" if own else f"|x, /* comment */ y, w| {{ {result(mapped)} }}"
    tuple_of = "(" + ", ".join(s.text for s in states) + ")" if len(states) > 1 else "s0"
    start = ", ".join(f"full({s.size[0]}, {s.size[1]}, {v})" for s, v in zip(states, starts))
    initial = f"({start})" if len(states) > 1 else start
    zipped = rng.random() < 0.4
    call = f"x.zip(y).{op}(1, |{tuple_of}, (x, y)| {result(updates)}, {initial})" if zipped else \
        f"x.{op}(1, |{tuple_of}, x, y| {result(updates)}, {initial}, y)"
    if len(updates) > 1 and rng.random() < 0.5:
        names = ", ".join(f"p{i}" for i in range(len(updates)))
        call += f".map(|{names}| ({', '.join(f'p{i}' for i in reversed(range(len(updates))))}))"
        order = -1
    else:
        order = 1
    tile = lambda n: f"Stream<{'bool' if n == 'w' and bools else f'Tile<f32, {sizes[n][0]}, {sizes[n][1]}>'}, {{[B, R]}}>"
    text = (f"{head}#[stream(depth = 0)]\nfn p<const B: Dim, const R: Ragged>(x: {tile('x')}, y: {tile('y')}, w: {tile('w')}) {{\n"
            f"    let made = x.map({closure}, y, w);\n    let folded = {call};\n    (made, folded)\n}}\n")
    return text, sizes, mapped, updates, states, starts, op, order, bools


PRODUCT = re.compile(r"\bmatmul(?:_t)?\(([xyw]), ([xyw])\)")


def cut(folder, rng, text, command, groups, bools):
    """Where the function has a product of tiles that come in: the same program with pieces of it, what is derived against what is counted; a fault, or
    None, and the results of both outputs, or None where there is nothing to cut."""
    has = any(not (bools and "w" in names) for names in PRODUCT.findall(text))
    binary, pieces = os.path.join(folder, "p.bin"), f"rows={rng.choice([1, 2, 4])},inner={rng.choice([1, 2, 3])},columns={rng.choice([1, 2])}"
    chosen = f"--pass=hierarchical-tiling:{pieces}"
    done = tool("visac", os.path.join(folder, "p.vm"), chosen, "-o", binary)
    if not has and done.returncode == 1 and "no product can be cut" in done.stderr:
        return None, None
    if done.returncode != 0 or not has:
        return f"{chosen}: status {done.returncode} {done.stderr}", None
    done = run_checked([*command, "--report=json", f"--sizes={folder}/sizes.json", "--output", f"out0={folder}/a.json", "--output", f"out1={folder}/b.json"])
    if done.returncode != 0:
        return f"{chosen}: {done.stderr}", None
    report = json.loads(done.stdout)
    costs = json.loads(tool("visac", os.path.join(folder, "p.vm"), chosen, "--emit=step-json", f"--sizes={folder}/sizes.json", "-DB=%d" % len(groups)).stdout)[0]["total"]
    said = [costs["flops"]["value"], costs["offchip_bytes"]["value"], *(costs["onchip_bytes"][k]["value"] for k in ("paper", "artifact"))]
    seen = [report["flops"], report["offchip_bytes"], *(report["onchip_bytes"][k] for k in ("paper", "artifact"))]
    JUDGED["cut"] += 1
    return None if said == seen else f"{chosen}: derived {said}, counted {seen}", report


def try_one(folder, rng):
    text, sizes, mapped, updates, states, starts, op, order, bools = program(rng)
    path, binary = os.path.join(folder, "p.vm"), os.path.join(folder, "p.bin")
    with open(path, "w") as f:
        f.write(text)
    done = tool("visac", path, "-o", binary)
    if done.returncode != 0:
        return f"refused: {done.stderr}\n{text}"
    groups = [rng.randrange(0, 4) for _ in range(rng.randrange(1, 4))]
    tiles = {n: [[[[rng.randrange(-8, 9) / 4 for _ in range(s[1])] for _ in range(s[0])] for _ in range(g)] for g in groups] for n, s in sizes.items()}
    if bools:
        tiles["w"] = [[[[float(rng.random() < 0.5)]] for _ in g] for g in tiles["w"]]
    command = ["visa-run", binary]
    for n in "xyw":
        tokens = [bool(t[0][0]) if n == "w" and bools and t != "S1" else t for g in tiles[n] for t in [*g, "S1"]]
        with open(os.path.join(folder, n + ".json"), "w") as f:
            json.dump(tokens, f)
        command += ["--input", f"{n}={folder}/{n}.json"]
    done = run_checked([*command, "--report=json", "--output", f"out0={folder}/a.json", "--output", f"out1={folder}/b.json"])
    if done.returncode != 0:
        return f"run: {done.stderr}\n{text}"
    report, made, folded = json.loads(done.stdout), [], []
    largest = 0
    for x, y, w in zip(*(tiles[n] for n in "xyw")):
        state = [[[v] * s.size[1] for _ in range(s.size[0])] for s, v in zip(states, starts)]
        for one in zip(x, y, w):
            of = dict(zip("xyw", one))
            results = [m.value(of) for m in mapped]
            largest = max([largest, *map(magnitude, results)])
            made.append(nested(results))
            inner = {**of, **{s.text: t for s, t in zip(states, state)}}
            state = [u.value(inner) for u in updates]
            if op == "scan":
                folded.append(nested(state[::order]))
        made.append("S1")
        if op == "scan":
            folded.append("S1")
        else:
            folded.append(nested(state[::order]))
    problem = judged(done.stderr, [count_numbers(made), count_numbers(folded)])
    if problem:
        return f"{problem}\n{text}"
    if largest > 1e5:  # rounding of f32 has the word there: the judge's bounds say how much
        JUDGED["large"] += 1
        return None
    def differing():
        with open(f"{folder}/a.json") as a, open(f"{folder}/b.json") as b:
            for name, theirs, ours in (("map", json.load(a), made), (op, json.load(b), folded)):
                if not same(theirs, ours):
                    return f"{name} differs: {theirs} not {ours}\n{text}"
        return None
    problem = differing()
    if problem:
        return problem
    flops = {o["name"]: o["flops"] for o in report["operators"]}
    values = sum(groups)
    want = {"made": values * sum(m.flops for m in mapped)}
    fold = next(o["name"] for o in report["operators"] if o["operator"] == op)
    want[fold] = values * sum(u.flops for u in updates)
    for name, number in want.items():
        if flops[name] != number:
            return f"`{name}` counts {flops[name]} FLOPs, by hand {number}\n{text}"
    quick = json.loads(tool(*command, "--report=json", "--timing-only").stdout)
    if quick["cycles"] != report["cycles"] or quick["flops"] != report["flops"]:
        return f"time depends on values\n{text}"
    costs = json.loads(tool("visac", path, "--emit=step-json", "-DB=%d" % len(groups), "-DR=" + ",".join(map(str, groups))).stdout)[0]
    if costs["total"]["flops"]["value"] != report["flops"]:
        return f"derived {costs['total']['flops']} FLOPs, counted {report['flops']}\n{text}"
    problem, pieces = cut(folder, rng, text, command, groups, bools)
    if problem:
        return f"{problem}\n{text}"
    return "in pieces " + differing() if pieces and differing() else None


# ---- a decoder layer, by its mathematics ----

def product(x, y):
    return [[sum(p * q for p, q in zip(r, s)) for s in zip(*y)] for r in x]


def norm(x, weight):
    mean = sum(v * v for v in x) / len(x) + 1e-5
    return [v / math.sqrt(mean) * w for v, w in zip(x, weight)]


def decoder_layer(folder, rng):
    """examples/step/decoder_layer.vm against softmax and sums over all keys at once."""
    d = {"B": rng.randrange(1, 4), "G": rng.choice([1, 2, 3]), "H": 4, "D": 8, "F": 8, "FT": rng.choice([4, 8]), "N": rng.choice([1, 2, 3]),
         "TILES": rng.choice([1, 2, 4])}
    b, g, h, n, tiles = d["B"], d["G"], d["H"], d["N"], d["TILES"]
    matrix = lambda rows, columns: [[rng.randrange(-16, 17) / 8 for _ in range(columns)] for _ in range(rows)]
    pieces = d["F"] // d["FT"]
    t = {"x": [matrix(1, d["D"]) for _ in range(b)], "norms": [matrix(1, d["D"]) for _ in range(2)], "wq": [matrix(d["D"], h) for _ in range(g)],
         "wk": [matrix(d["D"], h) for _ in range(g)], "wv": [matrix(d["D"], h) for _ in range(g)], "wo": [matrix(h, d["D"]) for _ in range(g)],
         "keys": [matrix(n, h) for _ in range(g * b * tiles)], "values": [matrix(n, h) for _ in range(g * b * tiles)],
         "gate": [matrix(d["D"], d["FT"]) for _ in range(pieces)], "up": [matrix(d["D"], d["FT"]) for _ in range(pieces)],
         "down": [matrix(d["FT"], d["D"]) for _ in range(pieces)]}
    binary = os.path.join(folder, "l.bin")
    done = tool("visac", f"{SOURCE}/examples/step/decoder_layer.vm", "-o", binary, *(f"-D{k}={v}" for k, v in d.items()))
    if done.returncode != 0:
        return done.stderr
    command = ["visa-run", binary, "--output", f"y={folder}/y.raw"]
    for name, values in t.items():
        with open(f"{folder}/{name}.raw", "wb") as f:
            f.write(struct.pack(f"<{sum(len(r) for m in values for r in m)}f", *(v for m in values for r in m for v in r)))
        command += ["--input", f"{name}={folder}/{name}.raw"]
    done = tool(*command, "--check")
    problem = done.stderr if done.returncode != 0 else judged(done.stdout + done.stderr, [b * d["D"]])
    if problem:
        return problem
    with open(f"{folder}/y.raw", "rb") as f:
        ours = [v[0] for v in struct.iter_unpack("<f", f.read())]
    theirs = []
    for i in range(b):
        row = t["x"][i][0]
        normed = [norm(row, t["norms"][0][0])]
        for head in range(g):
            q, k, v = (product(normed, t[w][head])[0] for w in ("wq", "wk", "wv"))
            first = (head * b + i) * tiles
            keys = [r for m in t["keys"][first:first + tiles] for r in m] + [k]
            values = [r for m in t["values"][first:first + tiles] for r in m] + [v]
            scores = [sum(x * y for x, y in zip(q, r)) / math.sqrt(h) for r in keys]
            weights = [math.exp(s - max(scores)) for s in scores]
            mixed = [[sum(w * r[c] for w, r in zip(weights, values)) / sum(weights) for c in range(h)]]
            row = [x + y for x, y in zip(row, product(mixed, t["wo"][head])[0])]
        again, out = [norm(row, t["norms"][1][0])], row
        for p in range(pieces):
            gates, ups = product(again, t["gate"][p])[0], product(again, t["up"][p])[0]
            hidden = [[x / (1 + math.exp(-x)) * y for x, y in zip(gates, ups)]]
            out = [x + y for x, y in zip(out, product(hidden, t["down"][p])[0])]
        theirs += out
    return None if same(ours, theirs) else f"the decoder layer {d} gives {ours}, by its mathematics {theirs}"


# ---- padding that is left out ----

PADDING = """#[stream(depth = 0)]
fn p<const B: Dim>(x: Stream<Tile<f32, 1, 2>, {[B]}>) {
    let (rows, padding) = x.reshape(0, 4, 7);
    rows.partition(0, padding.map(select::<Selector<2, 1>>(1)))[0]
}
"""


def padding(folder):
    with open(f"{folder}/pad.vm", "w") as f:
        f.write(PADDING)
    rows = [[[i, -i]] for i in range(6)]
    with open(f"{folder}/rows.json", "w") as f:
        json.dump(rows, f)
    done = tool("visac", f"{folder}/pad.vm", "-o", f"{folder}/pad.bin")
    done = done if done.returncode else tool("visa-run", f"{folder}/pad.bin", "--input", f"x={folder}/rows.json", "--output", f"out={folder}/left.json")
    if done.returncode != 0:
        return done.stderr
    with open(f"{folder}/left.json") as f:
        left = [t for t in json.load(f) if not isinstance(t, str)]
    return None if left == rows else f"without padding {left} is left of {rows}"


HEAD = "#[stream]\nfn p<const B: Dim>(x: Stream<Tile<f32, 2, 4>, {[B, 3]}>, y: Stream<Tile<f32, 3, 4>, {[B, 3]}>, s: Stream<Selector<2, 1>, {[B, 3]}>) {\n"
REFUSED = [
    ("E-STEP-TYPE", "x.map(|a, b| a + b, y)"),
    ("E-STEP-TYPE", "x.map(|a, b| matmul(a, b), y)"),
    ("E-STEP-PROGRAM", "x.map(|a, b| a)"),
    ("E-STEP-PROGRAM", "x.map(|a| a.reverse())"),
    ("E-STEP-PROGRAM", "x.map(|a| exp(a, a))"),
    ("E-STEP-PROGRAM", "x.map(|a| x)"),
    ("E-STEP-PROGRAM", "x.map(|a| a % a)"),
    ("E-STEP-PROGRAM", "s.map(|a| a)"),
    ("E-STEP-PROGRAM", "x.accum(1, |m, a| m + a)"),
    ("E-STEP-PROGRAM", "x.accum(1, |m, a| m + a, 0.0)"),
    ("E-STEP-PROGRAM", "x.accum(1, |(m, n), a| m + a, (zeros(2, 4), zeros(2, 4)))"),
    ("E-STEP-TYPE", "x.accum(1, |m, a| row_sum(a), zeros(2, 4))"),
    ("E-STEP-PROGRAM", "x.accum(1, |m, a| a, zeros(0, 4))"),
    ("E-STEP-PROGRAM", "x.flat_map(1, |a| a)"),
]


def main():
    failures, rng = [], random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(SEED, SEED + COUNT):
            problem = try_one(folder, random.Random(i))
            if problem:
                failures.append(f"seed {i}: {problem}")
            if len(failures) == 5:
                break
        for _ in range(8):
            problem = decoder_layer(folder, rng)
            failures += [problem] if problem else []
        problem = padding(folder)
        failures += [problem] if problem else []
        for rule, body in REFUSED:
            path = os.path.join(folder, "r.vm")
            with open(path, "w") as f:
                f.write(HEAD + "    " + body + "\n}\n")
            done = tool("visac", path, "-o", os.path.join(folder, "r.bin"))
            if done.returncode != 1 or (f"[{rule}]" not in done.stderr and "[E-STEP-TYPE]" not in done.stderr):
                failures.append(f"{body}: status {done.returncode}, no {rule}: {done.stderr}")
    failures += left_open()
    print("step_functions: products of {cut} programs in pieces".format(**JUDGED))
    print("step_functions: {programs} programs judged; {anything} of {numbers} numbers may be anything, {open} of {outputs} outputs are open; "
          "{large} programs with values past 1e5 are not compared with Python".format(**JUDGED))
    return visa_tools.ended(failures, f"step_functions: {COUNT} programs, {len(REFUSED)} refusals, {len(failures)} fail")


if __name__ == "__main__":
    sys.exit(main())
