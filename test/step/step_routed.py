"""Functions of a program's own in a mixture of experts, through the paper's transformations: random functions of a tile of rows and an expert's weights,
random routings (experts without rows, too), dynamic tiling, time multiplexing and hierarchical tiling in any order that may be. What leaves is bit for bit the
same with and without them (of three experts and more their sum is taken in the order in which they end), is what Python makes row by row of the same expression, and is judged (--check); what visac derives with the sizes of the
run is what visa-run counts. Usage: step_routed.py [SEED [COUNT]]; VISA_LONG=1: many more."""
import math
import os
import random
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import step_transformations

PROGRAM = """
{own}
#[stream(depth = 0)]
fn routed(w: &Hbm<Tile<f32, D, C>, {{[E, N]}}>, x: &Hbm<Tile<f32, 1, D>, {{[B]}}>, routing: Stream<Selector<E, K>, {{[B]}}>, y: &mut Hbm<Tile<f32, 1, {columns}>, {{[B]}}>) {{
    let batch = x.linear_load(once()).flatten(0, 1).partition(0, &routing);
    let mut outs = [];
    for e in 0..E {{
        let tile = batch[e].reshape(0, T, 0).0.accum(1, retile_rows).broadcast();
        let weights = w.linear_load(&tile, [1, N], [0, 1], e * N).flatten(0, 1);
        let out = tile.repeat(N).map({call}, weights).accum(1, {fold});
        outs.push(out.flat_map(0, valid_rows));
    }}
    y.linear_store(reassemble(0, outs, &routing).accum(1, add).reshape(0, 1).0);
}}
"""


# ---- expressions: of one row `a` and weights `w`, as lists of rows ----

def each(f, *tiles):
    rows, columns = max(len(t) for t in tiles), max(len(t[0]) for t in tiles)
    return [[f(*(t[r if len(t) > 1 else 0][c if len(t[0]) > 1 else 0] for t in tiles)) for c in range(columns)] for r in range(rows)]


def product(x, y):
    return [[sum(p * q for p, q in zip(r, c)) for c in zip(*y)] for r in x]


UNARY = {"exp": math.exp, "tanh": math.tanh, "relu": lambda v: max(v, 0.0), "silu": lambda v: v / (1 + math.exp(-v)),
         "gelu": lambda v: v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))}
BINARY = {"+": lambda p, q: p + q, "-": lambda p, q: p - q, "*": lambda p, q: p * q}


def rows(rng, depth, d, c):
    """What acts on each row alone: (text, value of (a, w), columns). Columns are d, c or 1."""
    if depth == 0:
        return ("a", lambda a, w: a, d) if rng.random() < 0.4 else ("matmul(a, w)", product, c)
    text, value, columns = rows(rng, depth - 1, d, c)
    kind = rng.randrange(9)
    if kind <= 2:
        other, second, wide = rows(rng, depth - 1, d, c)
        if wide != columns and 1 not in (wide, columns):
            return text, value, columns
        if kind == 0:
            return f"max({text}, {other})", lambda a, w: each(max, value(a, w), second(a, w)), max(wide, columns)
        op = rng.choice(list(BINARY))
        return f"({text} {op} {other})", lambda a, w: each(BINARY[op], value(a, w), second(a, w)), max(wide, columns)
    if kind == 3:
        fold = rng.choice(["row_sum", "row_max"])
        return f"{fold}({text})", lambda a, w: [[(sum if fold == "row_sum" else max)(r)] for r in value(a, w)], 1
    if kind == 4:
        name = rng.choice(list(UNARY))
        return f"{name}({text} * 0.125)", lambda a, w: each(lambda v: UNARY[name](v * 0.125), value(a, w)), columns
    if kind == 5:
        return f"({text} * rsqrt(row_sum({text} * {text}) + 1))", lambda a, w: each(lambda v, s: v / math.sqrt(s + 1), value(a, w), [[sum(v * v for v in r)] for r in value(a, w)]), columns
    if kind == 6 and columns == c:
        return f"({text} + col_sum(w))", lambda a, w: each(lambda v, s: v + s, value(a, w), [[sum(col) for col in zip(*w)]]), c
    if kind == 6 and columns == d:
        return f"matmul({text}, w)", lambda a, w: product(value(a, w), w), c
    if kind == 7 and columns == d:
        return f"select(a < {text}, a, {text} * 0.5)", lambda a, w: each(lambda p, v: p if p < v else v * 0.5, a, value(a, w)), d
    number = rng.choice([0.5, -1.0, 2.0, 0.25])
    return f"({text} * {number} + 1)", lambda a, w: each(lambda v: v * number + 1, value(a, w)), columns


# ---- a program, its streams, its passes ----

def draw(rng):
    size = {"B": rng.randrange(1, 8), "E": rng.choice([2, 3, 4]), "D": rng.choice([1, 2, 4]), "C": rng.choice([1, 2, 4]), "N": rng.choice([1, 1, 2, 3]), "T": rng.choice([1, 2, 3, 4])}
    size["K"] = rng.randrange(1, size["E"] + 1)
    text, value, columns = rows(rng, rng.randrange(1, 4), size["D"], size["C"])
    named = rng.random() < 0.5
    own = f"#[stream]\nfn own(a: T, w: T) {{\n    let made = {text};\n    made\n}}" if named else ""
    fold = rng.choice(["add", "max"])
    source = "".join(f"const {n}: usize = {v};\n" for n, v in size.items()) + PROGRAM.format(
        own=own, call="own" if named else f"|a, w| {text}", columns={"D": size["D"], "C": size["C"]}.get(columns, columns), fold=fold)
    picked = rng.sample(range(size["E"]), rng.randrange(size["K"], size["E"] + 1))  # the others have no rows
    routing = [sorted(rng.sample(picked, size["K"])) for _ in range(size["B"])]
    tile = lambda r, c: [[rng.randrange(-8, 9) / 4 for _ in range(c)] for _ in range(r)]
    x, w = [tile(1, size["D"]) for _ in range(size["B"])], [[tile(size["D"], size["C"]) for _ in range(size["N"])] for _ in range(size["E"])]
    return size, source, text, value, fold, routing, x, w


def passes(rng, size, text):
    """In an order that may be: hierarchical tiling last, and its rows in one piece of what dynamic tiling leaves open."""
    chosen = rng.choice([["dynamic-tiling"], [], ["dynamic-tiling"]])
    chosen += rng.choice([[], [f"time-multiplex:from=tile,to=out,regions={rng.choice([n for n in (1, 2, 3, 4) if size['E'] % n == 0])}"]])
    rng.shuffle(chosen)
    if "matmul(a, w)" in text and rng.random() < 0.5:
        chosen.append(f"hierarchical-tiling:inner={rng.choice([1, 2])},columns={rng.choice([1, 2])}")
    return chosen or ["dynamic-tiling"]


def expected(size, value, fold, routing, x, w):
    out = []
    for row, experts in zip(x, routing):
        sums = None
        for e in experts:
            made = value(row, w[e][0])
            for piece in w[e][1:]:
                made = each(max if fold == "max" else lambda p, q: p + q, made, value(row, piece))
            sums = made if sums is None else each(lambda p, q: p + q, sums, made)
        out += sums[0]
    return out


def packed(tiles):
    numbers = [v for t in tiles for r in t for v in r]
    return struct.pack(f"<{len(numbers)}f", *numbers)


def try_one(folder, rng):
    size, source, text, value, fold, routing, x, w = draw(rng)
    inputs = {"x": packed(x), "w": packed([t for expert in w for t in expert]), "routing": routing}
    chosen = passes(rng, size, text)
    try:
        before, _ = step_transformations.run(folder, source, inputs, [], "y")
        after, _ = step_transformations.run(folder, source, inputs, chosen, "y")
    except AssertionError as fault:
        return f"{chosen}: {fault}", chosen
    ours, theirs = [v[0] for v in struct.iter_unpack("<f", before)], expected(size, value, fold, routing, x, w)
    near = lambda p, q: abs(p - q) <= 2e-4 * max(1.0, abs(p), abs(q))
    again = [v[0] for v in struct.iter_unpack("<f", after)]
    if not step_transformations.same_values(before, after) and (size["K"] <= 2 or not all(map(near, ours, again))):
        return f"{chosen}: y is not what it was\n{source}", chosen
    if len(ours) != len(theirs) or not all(map(near, ours, theirs)):
        return f"y is {ours} and not {theirs}\n{source}", chosen
    return None, chosen


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else visa_tools.few(40)
    faults, taken = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(seed, seed + count):
            fault, chosen = try_one(folder, random.Random(i))
            for p in chosen:
                taken[p.split(":")[0]] = taken.get(p.split(":")[0], 0) + 1
            faults += [f"seed {i}: {fault}"] if fault else []
            if len(faults) == 5:
                break
    print("\n".join(faults))
    print(f"step_routed: {count} programs, {len(faults)} fail; with {', '.join(f'{name} {n}' for name, n in sorted(taken.items()))}")
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main())
