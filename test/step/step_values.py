"""Values of whole stream programs against plain loops over matrices: the SwiGLU layer, and small mixtures of experts (static tiles with padding,
dynamic tiles, time-multiplexed). All in f32, so that only the order of sums differs."""
import array
import math
import os
import random
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("VISA_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BIN = os.environ.get("VISA_BIN", os.path.join(SOURCE, "build/dev/bin"))
EXAMPLES = os.path.join(SOURCE, "examples/step")
sys.path.insert(0, EXAMPLES)
import routing  # noqa: E402
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402


def matrix(rng, rows, columns):
    return [[rng.uniform(-1, 1) for _ in range(columns)] for _ in range(rows)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def layer(x, w1, w3, w2):
    gate, up = product(x, w1), product(x, w3)
    return product([[g / (1 + math.exp(-g)) * u for g, u in zip(*rows)] for rows in zip(gate, up)], w2)


def tiled(m, rows, columns):
    """Tile after tile, tiles row by row."""
    return [m[r + i][c + k] for r in range(0, len(m), rows) for c in range(0, len(m[0]), columns) for i in range(rows) for k in range(columns)]


def run(name, defines, tensors, streams, count):
    with open(f"{EXAMPLES}/{name}.vm") as f:
        text = f.read().replace("bf16", "f32")
    with tempfile.TemporaryDirectory() as d:
        with open(f"{d}/p.vm", "w") as f:
            f.write(text)
        routing.write(d, streams)
        command = [f"{BIN}/visa-run", f"{d}/p.bin", "--output", f"y={d}/y.raw"]
        for key, content in tensors.items():
            with open(f"{d}/{key}.raw", "wb") as f:
                array.array("f", content).tofile(f)
            command += ["--input", f"{key}={d}/{key}.raw"]
        for key in streams:
            command += ["--input", f"{key}={d}/{key}.json"]
        subprocess.run([f"{BIN}/visac", f"{d}/p.vm", "-o", f"{d}/p.bin"] + [a for k, v in defines.items() for a in ("-D", f"{k}={v}")], check=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        out = array.array("f")
        with open(f"{d}/y.raw", "rb") as f:
            out.fromfile(f, count)
    return out


def agree(what, got, wanted):
    worst = max(abs(a - b) / (1 + abs(b)) for a, b in zip(got, wanted))
    # A value goes through fewer than 32 roundings of f32, of 2^-24 each (dots of up to 8 terms, silu, a product, weights); 9e-8 is the worst that was seen.
    # Elements are at most some units in size: one of them off by 2e-6 of that is seen, a term left out of a sum is.
    good = len(got) == len(wanted) and worst < 32 * 2 ** -24
    if not good:
        print(f"{what}: worst error {worst}")
    return good


def swiglu(rng):
    tm, tn, d = rng.choice([1, 2, 4]), rng.choice([1, 2, 4]), rng.choice([2, 5, 8])
    b, f = tm * rng.randint(1, 3), tn * rng.randint(1, 4)
    x, w1, w3, w2 = matrix(rng, b, d), matrix(rng, d, f), matrix(rng, d, f), matrix(rng, f, d)
    tensors = {"x": tiled(x, tm, d), "w1": tiled(w1, d, tn), "w3": tiled(w3, d, tn), "w2": tiled(w2, tn, d)}
    got = run("swiglu", {"B": b, "D": d, "F": f, "TM": tm, "TN": tn}, tensors, {}, b * d)
    return agree(f"swiglu {b} {d} {f} {tm} {tn}", got, tiled(layer(x, w1, w3, w2), tm, d))


def moe(rng, name, tile, regions):
    b, e, k, d, ft = rng.randint(1, 10), 4, rng.choice([1, 2]), 4, 2
    f = ft * rng.randint(1, 3)
    x, w = matrix(rng, b, d), [(matrix(rng, d, f), matrix(rng, d, f), matrix(rng, f, d)) for _ in range(e)]
    rows = routing.draw(b, e, k, 1.0, rng.randint(1, 1 << 30))
    scales = [[rng.uniform(0, 1) for _ in row] for row in rows]
    wanted = []
    for i in range(b):
        outs = [[s * v for v in layer([x[i]], *w[expert])[0]] for s, expert in zip(scales[i], rows[i])]
        wanted += [sum(column) for column in zip(*outs)]
    tensors = {"x": tiled(x, 1, d), "scale": [s for row in scales for s in row], "w1": [v for m in w for v in tiled(m[0], d, ft)],
               "w3": [v for m in w for v in tiled(m[1], d, ft)], "w2": [v for m in w for v in tiled(m[2], ft, d)]}
    defines = {"B": b, "E": e, "K": k, "D": d, "F": f, "FT": ft, "T": tile, "DEPTH": 0}
    if regions:
        defines["R"] = regions
    return agree(f"{name} tile {tile} rows {rows}", run(name, defines, tensors, routing.moe_tokens(rows), b * d), wanted)


def main():
    rng = random.Random(7)
    rounds = visa_tools.few(12)
    good = [swiglu(rng) for _ in range(rounds)]
    for i in range(rounds):
        good += [moe(rng, "moe_mixtral", i % 4, 0), moe(rng, "moe_time_multiplexed", (i + 1) % 4, [1, 2, 4][i % 3])]
    print(f"{sum(good)} of {len(good)} programs give the values of plain loops")
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())
