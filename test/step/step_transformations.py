"""visac --pass=..: what leaves a stream program is the same with and without each transformation, and what visac derives of it is what visa-run counts.
Both sides are run by visa-run on the same random tensors and routings, many sizes of each. Usage: step_transformations.py [-v] [--runs=N]"""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402
import step_shapes

sys.path.insert(0, os.path.join(step_shapes.SOURCE, "examples/step"))
import routing  # noqa: E402

BIN = step_shapes.BIN

PRODUCT = """
#[stream]
fn product(a: &Hbm<Tile<f32, M, K>, {[N]}>, b: &Hbm<Tile<f32, RIGHT>, {[N]}>, y: &mut Hbm<Tile<f32, M, COLS>, {[TILES]}>) {
    let left = a.linear_load(once(), [N], [1]);
    let right = b.linear_load(once(), [N], [1]);
    let out = left.APPLY(FN, right).compute(1);
    y.linear_store(out);
}
"""


def derived(folder, text, passes):
    """Totals as visac derives them, with the sizes of the run."""
    done = step_shapes.visac(folder, text, "--emit=step-json", f"--sizes={folder}/sizes.json", *[f"--pass={p}" for p in passes])
    assert done.returncode == 0, done.stderr + text
    t = json.loads(done.stdout)[0]["total"]
    return [t["offchip_bytes"]["value"], t["flops"]["value"], t["onchip_bytes"]["paper"]["value"], t["onchip_bytes"]["artifact"]["value"]]


def counted_of(report):
    return [report["offchip_bytes"], report["flops"], report["onchip_bytes"]["paper"], report["onchip_bytes"]["artifact"]]


def run(folder, text, inputs, passes, output):
    """The bytes of the output after a run, and the report."""
    binary, out = os.path.join(folder, "p.bin"), os.path.join(folder, "y.raw")
    done = step_shapes.visac(folder, text, "-o", binary, *[f"--pass={p}" for p in passes])
    assert done.returncode == 0, done.stderr + text
    command = [f"{BIN}/visa-run", binary, "--check", "--report=json", "--output", f"{output}={out}", f"--sizes={folder}/sizes.json"]
    for name, data in inputs.items():
        path = os.path.join(folder, name + (".raw" if isinstance(data, bytes) else ".json"))
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else json.dumps(data).encode())
        command += ["--input", f"{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + text
    report = json.loads(done.stdout)
    figures = derived(folder, text, passes)
    assert figures == counted_of(report), f"derived {figures}, counted {counted_of(report)}\n{passes} {text}"
    with open(out, "rb") as f:
        return f.read(), report


def bf16(rng, n):
    """Quarters between -2 and 2."""
    return b"".join(struct.pack("<f", rng.randrange(-8, 9) / 4)[2:] for _ in range(n))


def f32(rng, n):
    return b"".join(struct.pack("<f", rng.randrange(-8, 9) / 4) for _ in range(n))


def same_values(a, b):
    """Equal, without a tolerance: sums of products of such quarters are exact in f32 in any order, and no transformation changes what comes into the others."""
    x, y = (struct.unpack(f"<{len(d) // 4}f", d) for d in (a, b))
    return x == y


def same(folder, text, inputs, passes, output="y"):
    before, counted = run(folder, text, inputs, [], output)
    after, transformed = run(folder, text, inputs, passes, output)
    if not (before == after or same_values(before, after)) or not any(before):
        return f"{passes}: y differs, or is all zero\n{text}", None, None
    return None, counted, transformed


def layer(rng, experts):
    k, batch, d, f = rng.choice([1, 2]), rng.randrange(1, 9), 8, 12
    routing = [sorted(rng.sample(range(experts), k)) for _ in range(batch)]
    text = step_shapes.moe({"B": batch, "E": experts, "K": k, "D": d, "F": f, "FT": 4, "T": rng.choice([2, 3, 4])})
    inputs = {"x": bf16(rng, batch * d), "scale": bf16(rng, batch * k), "routing": routing, "picks": [[e] for r in routing for e in r]}
    inputs.update({w: bf16(rng, experts * d * f) for w in ("w1", "w3", "w2")})
    return text, inputs


def dynamic_tiling(folder, rng):
    text, inputs = layer(rng, rng.choice([2, 3]))
    text = text.replace(".map(silu)", rng.choice([".map(silu)", ".map(|a| silu(a))", ".map(|a| a * rsqrt(row_sum(a * a) + 1))"]))
    fault, before, after = same(folder, text, inputs, ["dynamic-tiling"])
    if not fault and (after["offchip_bytes"] > before["offchip_bytes"] or after["flops"] > before["flops"]):
        return "dynamic tiling costs more traffic or work"
    return fault


def time_multiplex(folder, rng):
    text, inputs = layer(rng, 4)
    both = rng.random() < 0.5
    chosen = ["dynamic-tiling"] * both + [f"time-multiplex:from=tile,to=down,regions={rng.choice([1, 2, 4])}"]
    fault, before, after = same(folder, text, inputs, chosen)
    if not fault and not both and (after["offchip_bytes"], after["flops"]) != (before["offchip_bytes"], before["flops"]):
        return "sharing changes traffic or work"
    return fault


def hierarchical_tiling(folder, rng):
    rows, inner, columns = (rng.choice([1, 2, 4]) for _ in range(3))
    m, k, n, tiles = rows * rng.randrange(1, 4), inner * rng.randrange(1, 4), columns * rng.randrange(1, 4), rng.randrange(1, 4)
    folds, turned = rng.random() < 0.5, rng.random() < 0.5
    scans = not folds and rng.random() < 0.5
    apply, name = ("accum" if folds else "scan", "matmul_t_add" if turned else "matmul_add") if folds or scans else ("map", "matmul_t" if turned else "matmul")
    text = "".join(f"const {x}: usize = {v};\n" for x, v in {"M": m, "K": k, "N": tiles, "COLS": n, "TILES": 1 if folds else tiles}.items())
    text += PRODUCT.replace("RIGHT", "COLS, K" if turned else "K, COLS").replace("APPLY(FN", f"{apply}(1, {name}" if folds or scans else f"map({name}")
    inputs = {"a": f32(rng, tiles * m * k), "b": f32(rng, tiles * k * n)}
    fault, before, after = same(folder, text, inputs, [f"hierarchical-tiling:node=out,rows={rows},inner={inner},columns={columns}"])
    if not fault and after["offchip_bytes"] != before["offchip_bytes"]:
        return "tiling on the chip changes traffic"
    if not fault and after["cycles"] < 2 * tiles * m * k * n:
        return "the small products take less time than their work at one FLOP a cycle"
    return fault


def paper(folder, rng):
    """The paper's own workloads, as they are in examples/step but for their sizes, through its transformations in any order; without one, with T = 0,
    they cost what dynamic tiling makes of them."""
    name = rng.choice(["moe_qwen.vm", "moe_mixtral.vm", "moe_time_multiplexed.vm"])
    experts, k, batch, d, f, ft, t = 4, rng.choice([1, 2]), rng.randrange(1, 12), 8, 12, 4, rng.choice([1, 2, 3, 4])
    with open(os.path.join(os.path.dirname(routing.__file__), name)) as file:
        text = file.read()
    for size, value in {"B": batch, "E": experts, "K": k, "D": d, "F": f, "FT": ft, "T": t, "R": rng.choice([1, 2]), "DEPTH": 0}.items():
        text = re.sub(rf"(const {size}: usize) = \d+;", rf"\1 = {value};", text)
    rows = [sorted(rng.sample(range(experts), k)) for _ in range(batch)]
    inputs = {"x": bf16(rng, batch * d), "scale": bf16(rng, batch * k), **routing.moe_tokens(rows), **{w: bf16(rng, experts * d * f) for w in ("w1", "w3", "w2")}}
    shares = [] if "multiplexed" in name else [f"time-multiplex:from=tile,to=out,regions={rng.choice([1, 2])}"]
    chosen = rng.choice([["dynamic-tiling"], []]) + rng.choice([[], shares])
    rng.shuffle(chosen)
    node = rng.choice(["", ",node=out", ",node==map"] if shares else ["", ",node==map+=map.2"])
    chosen += rng.choice([[]] * ("dynamic-tiling" in chosen) + [["hierarchical-tiling" + node.replace(",", ":", 1)], [f"hierarchical-tiling:rows={rng.randrange(1, 20) if not node else rng.choice([i for i in (1, 2, 3, 4) if t % i == 0])},inner=4,columns={rng.choice([2, 4])}{node}"]])
    fault, before, after = same(folder, text, inputs, chosen)
    if fault or after["offchip_bytes"] > before["offchip_bytes"]:
        return fault or "dynamic tiling costs more traffic"
    if chosen == ["dynamic-tiling"] and run(folder, re.sub(r"(const T: usize) = \d+;", r"\1 = 0;", text), inputs, [], "y")[1]["cycles"] != after["cycles"]:
        return "T = 0 takes another time than dynamic tiling\n" + text
    if chosen == ["dynamic-tiling"]:
        with open(os.path.join(folder, "d.vm"), "w") as file:
            file.write(text)
        derived = subprocess.run([f"{BIN}/visac", f"{folder}/d.vm", "--emit=step-json", "--pass=dynamic-tiling"], capture_output=True, text=True)
        if json.loads(derived.stdout)[0]["total"]["flops"]["value"] != after["flops"]:
            return f"FLOPs without any count: {derived.stdout[-900:]}, counted {after['flops']}"
    return None


GROUPS = """
#[stream(depth = 0)]
fn groups<const B: Dim, const R: Ragged>(a: Stream<Tile<f32, M, K>, {[B, R]}>, b: Stream<Tile<f32, RIGHT>, {[B, R]}>, y: &mut Hbm<Tile<f32, M, COLS>, {[TILES]}>) {
    let out = a.APPLY(FN, b);
    y.linear_store(out.flatten(0, 1));
}
"""


def groups(folder, rng):
    """Products in groups, some of them empty, cut into pieces."""
    m, k, n, sizes = rng.choice([1, 2, 4]), rng.choice([2, 3, 6]), rng.choice([1, 2, 4]), [rng.choice([0, 0, 1, 2, 3]) for _ in range(rng.randrange(1, 5))]
    sizes[rng.randrange(len(sizes))] = 2
    folds, turned, tiles = rng.random() < 0.5, rng.random() < 0.5, sum(sizes)
    scans = not folds and rng.random() < 0.5
    text = "".join(f"const {x}: usize = {v};\n" for x, v in {"M": m, "K": k, "COLS": n, "TILES": len(sizes) if folds else tiles}.items())
    text += GROUPS.replace("RIGHT", "COLS, K" if turned else "K, COLS")
    text = text.replace("APPLY(FN", f"{'accum' if folds else 'scan'}(1, matmul{'_t' if turned else ''}_add" if folds or scans else f"map(matmul{'_t' if turned else ''}")
    text = text.replace("out.flatten(0, 1)", "out") if folds else text
    tile = lambda rows, columns: [[rng.randrange(-8, 9) / 4 for _ in range(columns)] for _ in range(rows)]
    stream = lambda rows, columns: [t for s in sizes for t in [*[tile(rows, columns) for _ in range(s)], "S1"]]
    inputs = {"a": stream(m, k), "b": stream(n, k) if turned else stream(k, n)}
    fault, before, after = same(folder, text, inputs, [f"hierarchical-tiling:node=out,inner={rng.choice([i for i in (1, 2, 3) if k % i == 0])},columns=1"])
    return fault or (before["offchip_bytes"] != after["offchip_bytes"] and "tiling on the chip changes traffic") or None


FUNCTIONS = """
#[stream(depth = DEPTH)]
fn functions<const B: Dim, const R: Ragged>(a: Stream<Tile<f32, M, K>, {[B, R]}>, b: Stream<Tile<f32, K, M>, {[B, R]}>, c: Stream<Tile<f32, K, K>, {[B, R]}>, y: &mut Hbm<Tile<f32, M, COLS>, {[TILES]}>) {
    let out = APPLY;
    y.linear_store(out.flatten(0, 1));
}
"""
# What is applied, the columns of its result ("M" or "K"), whether it folds, and how many of its products can be cut: not those of a state, or of what it makes.
APPLIED = [("a.map(|a, b| matmul(a, b) * 2, b)", "M", False, 1), ("a.zip(&b).map(|a, b| matmul(a, b) + row_sum(a))", "M", False, 1),
           ("a.map(|a, b, c| matmul(matmul(a, c), b) + matmul(a, b), b, c)", "M", False, 2), ("a.zip(b.zip(&c)).map(|a, b, c| a + matmul(a, c) + matmul_t(a, c))", "K", False, 2),
           ("a.map(|a, b, c| matmul_t(a, c) + matmul(a, c) * row_sum(matmul(a, b)), b, c)", "K", False, 3),
           ("a.zip(&c).accum(1, |s, n, a, c| (s + matmul(a, c), n + a), (zeros(M, K), zeros(M, K))).map(|s, n| s + n)", "K", True, 1),
           ("a.accum(1, |s, a, c| matmul(s, c) + matmul(a, c), zeros(M, K), &c)", "K", True, 1), ("a.scan(1, |s, a, b| s + matmul(a, b), zeros(M, M), &b)", "M", False, 1),
           ("a.zip(b.zip(&c)).map(|a, b, c| matmul(a, b) + row_sum(matmul(a, c)))", "M", False, 2),
           ("a.zip(&b).accum(1, |s, a, b, c| s + matmul(a, b) + row_sum(matmul(a, c)) + row_sum(a), zeros(M, M), &c)", "M", True, 2)]


def functions(folder, rng, seed=None):
    """Products in functions of tiles are computed outside of them, in pieces."""
    applied, columns, folds, count = rng.choice(APPLIED) if seed is None else APPLIED[seed % len(APPLIED)]
    m, k, sizes = rng.choice([1, 2, 4]), rng.choice([2, 3, 4, 6]), [rng.choice([0, 0, 1, 2, 3]) for _ in range(rng.randrange(1, 5))]
    sizes[rng.randrange(len(sizes))] = 2
    text = "".join(f"const {x}: usize = {v};\n" for x, v in {"M": m, "K": k, "COLS": {"M": m, "K": k}[columns], "TILES": len(sizes) if folds else sum(sizes)}.items())
    text += FUNCTIONS.replace("APPLY", applied).replace("DEPTH", rng.choice("0123"))
    text = text.replace("out.flatten(0, 1)", "out") if folds else text
    stream = lambda rows, columns: [t for s in sizes for t in [*[[[rng.randrange(-2, 3) / 2 for _ in range(columns)] for _ in range(rows)] for _ in range(s)], "S1"]]
    inputs = {"a": stream(m, k), "b": stream(k, m), "c": stream(k, k)}
    piece = rng.choice([i for i in (1, 2, 3) if k % i == 0])
    chosen = f"hierarchical-tiling:{rng.choice(['', 'node=out,'])}inner={piece},columns=1" if "state" not in applied and ".map(|s" not in applied else f"hierarchical-tiling:inner={piece}"
    fault, before, after = same(folder, text, inputs, [chosen])
    made = after and sum("_small" in o["name"] for o in after["operators"])
    return fault or (made != count and f"{made} products are cut, not {count}\n{text}") or (before["flops"] > after["flops"] and "work is lost") or None


REGIONS = """
#[stream(depth = DEPTH)]
fn regions(x: &Hbm<Tile<f32, 1, 4>, {[N, L]}>, w: &Hbm<Tile<f32, 4, 4>, {[3]}>, place: Stream<Address, {[N]}>, y: &mut Hbm<Tile<f32, 1, 4>, {[N]}>) {
    let rows = x.linear_load(once()).flatten(1, 2).parallelize(1, R);
    let places = place.parallelize(0, R);
    for i in 0..R {
        BODY
        y.random_store(places[i], sum);
    }
}
"""
# What a region does with a row of tiles; the names a report may come from.
BODIES = [("let sum = rows[i].map(exp).compute(1 + 3 * i).accum(1, add);", ["sum"]),
          ("let each = rows[i].map(matmul, w.random_load(rows[i].map(signal)));\n        let sum = each.scan(1, add).compute(2 + i).accum(1, max);", ["each", "sum"]),
          ("let one = rows[i].accum(1, add);\n        let many = one.repeat(3).map(matmul, w.linear_load(&one, [3], [1]));\n        let sum = many.compute(5).accum(1, add);", ["one", "many", "sum"]),
          ("let whole = rows[i].bufferize(1);\n        let again = whole.streamify(&whole, 0);\n        let sum = again.reshape(0, 2, 0).0.accum(1, add).accum(1, mul);", ["whole", "again", "sum"])]


def dynamic_parallel(folder, rng):
    regions = rng.choice([1, 2, 3])
    chunks, length = regions + rng.randrange(1, 8), rng.randrange(1, 4)
    body, names = rng.choice(BODIES)
    text = f"const N: usize = {chunks};\nconst L: usize = {length};\nconst R: usize = {regions};\n"
    text += REGIONS.replace("BODY", body).replace("DEPTH", rng.choice("0123"))
    places = list(range(chunks))
    rng.shuffle(places)
    inputs = {"x": f32(rng, chunks * length * 4), "w": f32(rng, 3 * 16), "place": places}
    fault, before, after = same(folder, text, inputs, [f"dynamic-parallel:done={rng.choice(names)}"])
    if not fault and (after["offchip_bytes"], after["flops"]) != (before["offchip_bytes"], before["flops"]):
        return "the choice of regions changes traffic or work"
    return fault


def attention(folder, rng):
    """Decoding with requests of random lengths: interleaved against dynamic placement."""
    regions, longest, n, h, q = rng.choice([1, 2, 3]), rng.randrange(2, 6), 4, 4, rng.choice([1, 2])
    tiles = [rng.randrange(1, longest + 1) for _ in range(regions + rng.randrange(1, 6))]
    with open(os.path.join(os.path.dirname(routing.__file__), "attention.vm")) as f:
        text = f.read()
    sizes = {"B": len(tiles), "R": regions, "N": n, "H": h, "Q": q, "MAX": longest, "META": rng.choice([1, 4]), "SAFE": rng.choice([0, 1])}
    for name, value in sizes.items():
        text = re.sub(rf"(const {name}: usize) = \d+;", rf"\1 = {value};", text)
    b = len(tiles)
    inputs = {"queries": bf16(rng, b * q * h), "new_keys": bf16(rng, b * h), "new_values": bf16(rng, b * h), "keys": bf16(rng, b * longest * n * h),
              "values": bf16(rng, b * longest * n * h), **routing.attention_tokens(tiles, regions, "static-interleave", tokens_per_tile=rng.randrange(1, n + 1))}
    chosen = ["dynamic-parallel:done=keys_read"]
    small = not sizes["SAFE"] and rng.random() < 0.5
    fault, before, after = same(folder, text, inputs, chosen + ["hierarchical-tiling:inner=2"] * small, "out")
    if not fault and not small and (after["offchip_bytes"], after["flops"]) != (before["offchip_bytes"], before["flops"]):
        return "the choice of regions changes traffic or work"
    return fault


def main():
    runs = next((int(a[7:]) for a in sys.argv if a.startswith("--runs=")), visa_tools.few(12))
    agree, faults = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for what in (paper, dynamic_tiling, time_multiplex, hierarchical_tiling, groups, functions, dynamic_parallel, attention):
            for seed in range(runs):
                fault = what(folder, random.Random(seed), seed) if what is functions else what(folder, random.Random(seed))
                agree += fault is None
                if fault:
                    faults.append(f"{what.__name__}, seed {seed}: {fault}")
    return visa_tools.ended(faults, f"{agree} agree, {len(faults)} differ")


if __name__ == "__main__":
    sys.exit(main())
