"""Shapes and costs of stream programs as visac derives them (--emit=step-json), against
 - the `shape:` and `step-traffic` cases of shared/conformance/step-dataflow.json (skipped where the file is absent), and
 - what visa-run counts: of the examples, a mixture of experts, and random graphs with ragged sizes and routing.
Usage: step_shapes.py [-v] [--random=N] [ID ...]"""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

SOURCE = os.environ.get("VISA_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BIN = os.environ.get("VISA_BIN", os.path.join(SOURCE, "build/dev/bin"))
CASES = os.path.join(SOURCE, "../shared/conformance/step-dataflow.json")
SWIGLU = os.path.join(SOURCE, "examples/step/swiglu.vm")

NOT_COMPARED = {
    "active_regions": "a step of the published derivation of the allocation",
    "allocated_flops_per_cycle": "a choice of the published graph (which operators share a unit); ours makes it per operator",
}

# B rows, each to K of E experts; T rows in a tile of an expert, 0: all that it has.
MOE = """
#[stream(depth = 0)]
fn moe(x: &Hbm<Tile<bf16, 1, D>, {[B]}>, scale: &Hbm<Tile<bf16, 1, 1>, {[B * K]}>,
       w1: &Hbm<Tile<bf16, D, FT>, {[E, F / FT]}>, w3: &Hbm<Tile<bf16, D, FT>, {[E, F / FT]}>, w2: &Hbm<Tile<bf16, FT, D>, {[E, F / FT]}>,
       y: &mut Hbm<Tile<f32, 1, D>, {[B]}>, routing: Stream<Selector<E, K>, {[B]}>, picks: Stream<Selector<E, 1>, {[B * K]}>) {
    let batch = x.linear_load::<f32>(once()).flatten(0, 1).partition(0, &routing);
    let scales = scale.linear_load::<f32>(once()).flatten(0, 1).partition(0, &picks);
    let mut results = [];
    for e in 0..E {
        let group = if T > 0 { batch[e].reshape(0, T, 0).0 } else { batch[e].promote() };
        let tile = group.accum(1, retile_rows);
        let many = tile.repeat(F / FT);
        let up = many.map(matmul, w1.linear_load(&tile, [F / FT], [1], e * (F / FT))).map(silu);
        let hidden = up.map(mul, many.map(matmul, w3.linear_load(&tile, [F / FT], [1], e * (F / FT))));
        let down = hidden.accum(1, matmul_add, w2.linear_load(&tile, [F / FT], [1], e * (F / FT)));
        results.push(down.flat_map(0, valid_rows).assume([SIZES]).map(mul, scales[e]));
    }
    y.linear_store(reassemble(0, results, &routing).accum(1, add).reshape(0, 1).0);
}
"""


def moe(sizes):
    text = "".join(f"const {n}: usize = {v};\n" for n, v in sizes.items())
    # After the loop's own padding is removed each expert has as many rows as weights for them.
    return text + MOE.replace(".assume([SIZES])", ".assume(&scales[e])")


def visac(folder, text, *options):
    path = os.path.join(folder, "p.vm")
    with open(path, "w") as f:
        f.write(text)
    return subprocess.run([f"{BIN}/visac", path, *options], capture_output=True, text=True)


def report(folder, text, bind, *more):
    options = [x for name, value in bind.items() for x in ("-D", f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}")]
    done = visac(folder, text, "--emit=step-json", *options, *more)
    assert done.returncode == 0, done.stderr + text
    return json.loads(done.stdout)[0]


# ---- shapes ----

def sized(dims):
    return "{[" + ", ".join(str(d).replace("~", "") for d in dims) + "]}"


def generics(*shapes):
    names = {}
    for d in (d for s in shapes for d in s if isinstance(d, str)):
        names[d.replace("~", "")] = "Ragged" if d[0] == "~" else "Dim"
    return "<" + ", ".join(f"const {n}: {k}" for n, k in names.items()) + ">" if names else ""


def shape_program(c):
    op, shapes = c["op"].split(":")[1], c["shapes"]
    tile, buffered = "Tile<f32, 4, 4>", c.get("buffer", [])
    data = [tile] * len(shapes)
    body = {"flatten": lambda: f"a.flatten({c['min']}, {c['max']})", "reshape": lambda: f"a.reshape({c['b']}, {c['chunk']}{', 0' if c['pad'] else ''})",
            "promote": lambda: "a.promote()", "expand": lambda: f"a.expand(&b, {c['b']})", "zip": lambda: "a.zip(&b)",
            "flatmap": lambda: f"a.flat_map({c['fn_rank']}, valid_rows)", "partition": lambda: f"a.partition({c['b']}, &b)",
            "reassemble": lambda: f"reassemble({c['b']}, [{', '.join('abcdefgh'[:len(shapes) - 1])}], &{'abcdefgh'[len(shapes) - 1]})",
            "eager_merge": lambda: f"eager_merge([{', '.join('abcdefgh'[:len(shapes)])}])",
            "streamify": lambda: f"a.bufferize({len(buffered)}).streamify(&b, {c['c']})"}[op]()
    if op == "partition":
        data[1] = f"Selector<{c['outputs']}>"
    if op == "reassemble":
        data[-1] = f"Selector<{len(shapes) - 1}, {c['khot']}>" if c.get("khot") else f"Selector<{len(shapes) - 1}>"
    shapes = [shapes[0] + buffered] + shapes[1:] if buffered else shapes
    params = ", ".join(f"{n}: Stream<{d}, {sized(s)}>" for n, d, s in zip("abcdefgh", data, shapes))
    return f"#[stream]\nfn p{generics(*shapes)}({params}) {{\n    {body}\n}}\n"


def same_class(kinds, known, dims):
    return [d["class"] for d in dims] == kinds and len(dims) == len(known)


def shape_case(folder, case):
    c, expect = case["input"], case["expect"]
    text = shape_program(c)
    done = visac(folder, text, "--emit=step-json")
    if "error" in expect:
        wanted = "error[E-STEP-" in done.stderr and "help: " in done.stderr
        return None if done.returncode == 1 and wanted else f"accepted, or refused without a word: {done.stderr}"
    if done.returncode:
        return done.stderr
    first = json.loads(done.stdout)[0]
    made = [n for n in first["operators"] if n["operator"] not in ("source", "sink", "bufferize")][0]["outputs"]
    for i, want in enumerate(expect["shapes"]):
        fresh = [d["expr"] for o in made for d in o["shape"]]
        for at in want["at"]:
            bind = {k: v for k, v in at["bind"].items() if not k.startswith("new")}
            bind.update({fresh[int(k[3:])]: v for k, v in at["bind"].items() if k.startswith("new")})
            known = report(folder, text, bind)
            dims = [n for n in known["operators"] if n["name"] == [m for m in first["operators"] if m["outputs"] == made][0]["name"]][0]["outputs"][i]["shape"]
            if not same_class(want["class"], at["shape"], dims) or [d["value"] for d in dims] != at["shape"]:
                return f"output {i} is {dims} at {at}"
    return None


# ---- costs of one operator ----

def op_program(c):
    op, tile = c["op"], c.get("tile") or c.get("in_tile") or c.get("out_tile")
    dims = c.get("stream_shape", [2, 2])
    t = f"Tile<{c['dtype']}, {tile[0]}, {tile[1]}>"
    stored = f"w: &mut Hbm<{t}, {{[1 << 20]}}>"
    params = {"random_offchip_load": [stored, f"a: Stream<Address, {sized(dims)}>"], "partition": [f"a: Stream<{t}, {sized(dims)}>", f"s: Stream<Selector<2>, {sized(dims)}>"],
              "reassemble": [f"a: Stream<{t}, {{[2]}}>", f"b: Stream<{t}, {{[2]}}>", "s: Stream<Selector<2, 1>, {[4]}>"]}
    if c.get("fn") == "matmul":
        w = c["weight_tile"]
        params["map"] = [f"a: Stream<{t}, {{[2]}}>", f"b: Stream<Tile<{c['dtype']}, {w[0]}, {w[1]}>, {{[2]}}>"]
    if op == "linear_offchip_load":
        inner = dims[1:] # the reference is the outermost dimension
        body = f"w.linear_load(&a, {inner}, {[0] * len(inner)})" if inner else "w.linear_load(&a, [1], [0])"
        params[op] = [stored, f"a: Stream<Address, {sized(dims[:1])}>"]
        if any(isinstance(d, str) for d in inner):
            body, params[op] = "w.random_load(a)", params["random_offchip_load"]
    else:
        body = {"linear_offchip_store": "w.linear_store(&a)", "random_offchip_load": "w.random_load(a)", "partition": "a.partition(0, &s)", "flatten": "a.flatten(0, 1)",
                "scan": "a.scan(1, add)", "map": "a.map(matmul, b)" if c.get("fn") == "matmul" else "a.map(silu)", "zip": "a.zip(&a)", "reshape": "a.reshape(0, 2)",
                "reassemble": "reassemble(0, [a, b], &s)"}[op]
    if op == "linear_offchip_store":
        params[op] = [stored, f"a: Stream<{t}, {sized(dims)}>"]
    return f"#[stream]\nfn p{generics(dims)}({', '.join(params.get(op, [f'a: Stream<{t}, {sized(dims)}>']))}) {{\n    {body}{';' if 'store' in body else ''}\n}}\n"


def op_case(folder, case):
    c, expect = case["input"], case["expect"]
    bind = {k.replace("~", ""): v for k, v in c.get("bind", {}).items()}
    if c["op"] == "linear_offchip_load" and "~R" in c.get("bind", {}) and c["stream_shape"][0] == "~R":
        bind["sum(~R)"] = sum(bind.pop("R"))
    total = report(folder, op_program(c), bind)["total"]
    if "tiles" in expect:
        tile = c.get("tile") or c.get("in_tile") or c.get("out_tile")
        got = total["offchip_bytes"]["value"] / (tile[0] * tile[1] * {"f32": 4, "bf16": 2}[c["dtype"]])
        if got != expect["tiles"]:
            return f"{got} tiles"
    if "onchip_bytes" in expect:
        got = total["onchip_bytes"][c["equations"]]["value"]
        return None if got in [expect["onchip_bytes"]] + expect.get("also_accept", []) else f"{got} bytes on the chip"
    got = total["offchip_bytes"]["value"]
    return None if got == expect["offchip_bytes"] else f"{got} bytes off the chip: {total}"


# ---- costs of whole graphs ----

def swiglu_case(folder, case):
    c, expect = case["input"], case["expect"]
    with open(SWIGLU) as f:
        text = f.read()
    if c.get("elem_bytes", 4) == 2:
        text = text.replace("f32", "bf16")
    found = report(folder, text, {"B": c["B"], "D": c["D"], "F": c["F"], "TM": c["tile_b"], "TN": c["tile_f"]})
    total = found["total"]
    loads, stores = ([o["offchip_bytes"]["value"] for o in found["operators"] if o["operator"] == name] for name in ("linear_load", "linear_store"))
    got = {"offchip_bytes": total["offchip_bytes"]["value"], "flops": total["flops"]["value"], "input_bytes": loads[0], "weight_bytes": sum(loads[1:]),
           "output_bytes": sum(stores), "flops_per_byte": round(total["flops"]["value"] / total["offchip_bytes"]["value"], 6)}
    return disagreement(got, expect)


def disagreement(got, expect):
    wrong = {k: (v, expect[k]) for k, v in got.items() if k in expect and v != expect[k]}
    return f"(derived, expected): {wrong}" if wrong else None


def moe_case(folder, case):
    c, expect = case["input"], case["expect"]
    counts = c["tokens_per_expert"]
    tile = 0 if c["tiling"] == "dynamic" else c["tiling"]
    text = moe({"B": c["batch"], "E": c["experts"], "K": c["topk"], "D": c["D"], "F": c["F"], "FT": c["tile_f"], "T": tile})
    bind = {f"{who}{e}": n for e, n in enumerate(counts) for who in ("routing", "picks")}
    shared = c.get("experts_per_region", 1) > 1
    passes = [f"--pass=time-multiplex:from=tile,to=down,regions={c.get('time_mux_regions')}"] * shared
    found = report(folder, text, bind, *passes)
    total = found["total"]
    onchip = total["onchip_bytes"][c["equations"]]["value"]
    experts = total["flops"]["value"] - 2 * c["batch"] * c["topk"] * c["D"] # the rest: weights of the rows, and their sum
    rows = sum(-(-n // tile) * tile for n in counts) if tile else sum(counts)
    weight = 2 * c["D"] * c["tile_f"] # bytes of a tile of one of the three matrices
    weights = sum(o["offchip_bytes"]["value"] for o in found["operators"] if o["operator"] in ("linear_load", "random_load") and is_weight(o, c))
    got = {"offchip_bytes": total["offchip_bytes"]["value"], "flops": experts, "onchip_bytes": onchip,
           "flops_as_published": experts + 8 * rows * c["F"] * (c["D"] - 1), # SiLU counts 8 x D x F of each row there (reference/step.md section 5)
           # A row: three products, SiLU and an element-wise product.
           "rows": experts / (6 * c["D"] * c["F"] + 9 * c["F"]), "weight_tiles_per_matrix": weights / 3 / weight}
    if "onchip_bytes_all_experts" in expect:
        one = {k: max(n, 1) for k, n in bind.items()}
        got["onchip_bytes_all_experts"] = report(folder, text, one, *passes)["total"]["onchip_bytes"][c["equations"]]["value"]
    return disagreement(got, expect)


def is_weight(operator, c):
    """Its tiles are D x FT or FT x D; those of the rows and their scales have one row."""
    return operator["outputs"][0]["type"].endswith((f" {c['D']} x {c['tile_f']}", f" {c['tile_f']} x {c['D']}"))


def conformance_case(folder, case):
    c = case["input"]
    if str(c.get("op", "")).startswith("shape:"):
        return shape_case(folder, case)
    if c["level"] == "op":
        return op_case(folder, case)
    return {"swiglu-validation": swiglu_case, "moe": moe_case}.get(c["workload"], unknown)(folder, case)


def unknown(folder, case):
    raise NotImplementedError(f"the workload {case['input']['workload']}")


# ---- against the simulator ----

def simulate(folder, text, inputs, *passes):
    binary = os.path.join(folder, "p.bin")
    done = visac(folder, text, "-o", binary, *passes)
    assert done.returncode == 0, done.stderr + text
    command = [f"{BIN}/visa-run", binary, "--timing-only", "--report=json", f"--sizes={folder}/sizes.json"]
    for name, tokens in inputs.items():
        path = os.path.join(folder, name + ".json")
        with open(path, "w") as f:
            json.dump(tokens, f)
        command += ["--input", f"{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + text
    return json.loads(done.stdout)


def compare(folder, what, text, inputs, bind, *passes):
    """Every operator's values, traffic, memory and FLOPs: with the sizes that the writer knows, and with those of the run."""
    counted = simulate(folder, text, inputs, *passes)
    for given in (bind, f"--sizes={folder}/sizes.json"):
        said = report(folder, text, bind, *passes) if given is bind else report(folder, text, {}, given, *passes)
        for a, b in zip(said["operators"], counted["operators"], strict=True):
            values, onchip = [o["values"]["value"] for o in a["outputs"]], {k: v["value"] for k, v in a["onchip_bytes"].items()}
            derived = (a["name"], a["offchip_bytes"]["value"], onchip, a["flops"]["value"], None if None in values else sum(values))
            seen = (b["name"], b["offchip_bytes"], b["onchip_bytes"], b["flops"], b["values_out"])
            if derived != seen:
                return f"{what}: derived {derived}, counted {seen} (name, off-chip bytes, on-chip bytes, FLOPs, values out), given {given}\n{text}"
    return None


def stops(rows, top):
    """Tokens of a list of lists: S1 after each row, the last one as high as `top`."""
    tokens = []
    for i, row in enumerate(rows):
        tokens += row + ["S1" if i + 1 < len(rows) else f"S{top}"]
    return tokens


def moe_run(folder, rng):
    experts, k = rng.choice([2, 3, 4]), rng.choice([1, 2])
    batch, tile = rng.randrange(1, 12), rng.choice([0, 2, 4])
    routing = [sorted(rng.sample(range(experts), k)) for _ in range(batch)]
    text = moe({"B": batch, "E": experts, "K": k, "D": 8, "F": 12, "FT": 4, "T": tile})
    counts = [sum(e in r for r in routing) for e in range(experts)]
    bind = {f"{who}{e}": n for e, n in enumerate(counts) for who in ("routing", "picks")}
    return compare(folder, "mixture of experts", text, {"routing": routing, "picks": [[e] for r in routing for e in r]}, bind,
                   *rng.choice([[], ["--pass=dynamic-tiling"] * (tile > 0), ["--pass=time-multiplex:from=tile,to=down"]]))


def chain(rng, value, rank):
    """A few operators after a stream [.., ~R] of 2 x 4 tiles."""
    tile = (2, 4)
    for _ in range(rng.randrange(1, 6)):
        kind = rng.choice(["map", "accum", "repeat", "reshape", "flatten", "promote", "scan", "rows", "load", "sum", "retile"])
        if kind == "map":
            value += f".map({rng.choice(['silu', 'exp', 'identity'])})"
        elif kind == "accum" and rank >= 1:
            value, rank = value + f".accum({1}, {rng.choice(['add', 'max'])})", rank - 1
        elif kind == "repeat" and rank < 5:
            value, rank = value + f".repeat({rng.randrange(1, 4)})", rank + 1
        elif kind == "reshape" and rank < 5:
            value, rank = value + f".reshape(0, {rng.randrange(1, 4)}, 0).0", rank + 1
        elif kind == "flatten" and rank >= 1:
            low = rng.randrange(rank)
            high = rng.randrange(low + 1, rank + 1)
            value, rank = value + f".flatten({low}, {high})", rank - (high - low)
        elif kind == "promote" and rank < 5:
            value, rank = value + ".promote()", rank + 1
        elif kind == "scan" and rank >= 1:
            value += f".scan({rng.randrange(1, rank + 1)}, add)"
        elif kind == "rows":
            value, tile = value + ".flat_map(0, rows)", (1, tile[1])
        elif kind == "load":
            value, rank, tile = f"w.linear_load(&{value}, [{rng.randrange(1, 4)}, 2], [0, 1])", rank + 2, (2, 4)
        elif kind == "sum" and tile[1] > 1:
            value, tile = value + ".map(row_sum)", (tile[0], 1)
        elif kind == "retile" and rank >= 1 and tile[1] == 4:
            return value + ".accum(1, retile_rows).map(silu).flat_map(0, rows)"
        if rank >= 6:
            break
    return value


def random_run(folder, rng):
    outer = rng.randrange(0, 5)
    rows = [rng.randrange(0, 5) for _ in range(outer)]
    tokens = stops([[[[0] * 4] * 2] * n for n in rows], 1)
    body = chain(rng, "x", 1)
    text = f"#[stream(depth = 0)]\nfn p<const B: Dim, const R: Ragged>(w: &Hbm<Tile<f32, 2, 4>, {{[2]}}>, x: Stream<Tile<f32, 2, 4>, {{[B, R]}}>) {{\n    {body}\n}}\n"
    return compare(folder, "random graph", text, {"x": tokens}, {"B": outer, "R": rows if rows else 0})


def main():
    only = [a for a in sys.argv[1:] if not a.startswith("-")]
    count = next((int(a[9:]) for a in sys.argv if a.startswith("--random=")), visa_tools.few(40))
    agree, faults, left = 0, [], {}
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        if os.path.exists(CASES):
            with open(CASES) as f:
                cases = [c for c in json.load(f) if c["kind"] == "step-traffic" or str(c["input"].get("op", "")).startswith("shape:")]
        else:
            print("shared/conformance is absent: its cases are left out")
        for c in cases:
            c["expect"] = visa_tools.Watched(c["expect"])
        runs = [(c["id"], lambda c=c: conformance_case(folder, c)) for c in cases]
        with open(SWIGLU) as f:
            runs.append(("swiglu", lambda text=f.read(): compare(folder, "swiglu", text, {}, {})))
        for seed in range(count):
            runs.append((f"random-{seed}", lambda seed=seed: random_run(folder, random.Random(seed))))
            if seed % 4 == 0:
                runs.append((f"moe-{seed}", lambda seed=seed: moe_run(folder, random.Random(seed))))
        for name, run in runs:
            if only and name not in only:
                continue
            try:
                fault = run()
            except NotImplementedError as why:
                left[str(why)] = left.get(str(why), 0) + 1
                continue
            agree += fault is None
            if fault:
                faults.append(f"{name}: {fault}")
    judged = [c for c in cases if c["expect"].seen]
    if not only:
        faults += visa_tools.unread(judged, NOT_COMPARED)
    print("\n".join(faults))
    for why, n in sorted(left.items()):
        print(f"{n} left out: {why}")
    print(f"{agree} agree, {len(faults)} differ, {sum(left.values())} left out")
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main())
