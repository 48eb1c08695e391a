"""Stream programs that run vISA kernels of the same file: values against the stream function that computes the same, time against the kernel's own
report, FLOPs against what is derived, and what is refused."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

SOURCE = os.environ.get("VISA_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BIN = os.environ.get("VISA_BIN", os.path.join(SOURCE, "build/dev/bin"))
with open(os.path.join(SOURCE, "examples/step/linear.vm")) as f:
    KERNEL = f.read().split("#[stream]")[0]
# The same product of integers, whose sums leave as they are.
INTEGERS = re.sub(r"        \.cast::<[^\n]*\n        \.commit", "        .commit", KERNEL.replace("fn matmul", "fn integers")).replace("bf16", "i8").replace(
    "-> HbmTensor<i8", "-> HbmTensor<i32").replace("let c: DmTensor<i8", "let c: DmTensor<i32").replace("axes![M = 32, N = 8, K = 32];", "")
INTEGERS = INTEGERS.replace("collect::<m![N, K / 16], m![K % 16]>", "collect::<m![N], m![K]>").replace("collect::<m![M, K / 16], m![K % 16]>", "collect::<m![M], m![K]>")
INTEGERS = INTEGERS.replace("align::<m![M], m![K]", "align::<m![M], m![K # 64]")
TWO = """
#[stream(depth = DEPTH)]
fn two<const B: Dim>(x: Stream<Tile<TYPE, 32, 32>, {[B]}>, w: Stream<Tile<TYPE, 8, 32>, {[B]}>) {
    (x.CALL, x.map::<RESULT>(matmul_t, w))
}
"""

# A sum of two tiles, the accumulator and what comes.
TOTAL = """
#[device(chip = 1)]
fn total(device: &mut Device, sum: &HbmTensor<bf16, m![1], m![M, K]>, x: &HbmTensor<bf16, m![1], m![M, K]>) -> HbmTensor<bf16, m![1], m![M, K]> {
    let x: DmTensor<bf16, m![1], m![1 # 2], m![M / 8 # 256], m![M % 8, K]> = x.to_dm(&mut device.tdma);
    let sum: DmTensor<bf16, m![1], m![1 # 2], m![M / 8 # 256], m![M % 8, K]> = sum.to_dm(&mut device.tdma);
    let sum: VrfTensor<f32, m![1], m![1 # 2], m![M / 8 # 256], m![M % 8, K]> = device.sub
        .begin(sum.view())
        .fetch::<m![M % 8], m![K]>()
        .fetch_cast::<f32>()
        .collect::<m![M % 8, K / 8], m![K % 8]>()
        .to_vrf();
    let y: DmTensor<bf16, m![1], m![1 # 2], m![M / 8 # 256], m![M % 8, K]> = device.main
        .begin(x.view())
        .fetch::<m![M % 8], m![K]>()
        .fetch_cast::<f32>()
        .collect::<m![M % 8, K / 8], m![K % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_clip(ClipBinaryOpF32::Add, &sum)
        .vector_final()
        .cast::<bf16, m![K % 8 # 16]>()
        .commit_trim::<m![K % 8]>()
        .commit();
    y.to_hbm(&mut device.tdma)
}
"""
FOLD = """
#[stream]
fn fold<const B: Dim, const R: Ragged>(x: Stream<Tile<bf16, 32, 32>, {[B, R]}>) {
    (x.APPLY(1, kernel::total), x.APPLY(1, add))
}
"""
# Calls of one kernel in a row, of two operators or one; weights that are the same for all calls, by each way to say so, or not.
CALLS = """
#[stream(depth = DEPTH)]
fn calls<const B: Dim>(x: &Hbm<Tile<bf16, 32, 32>, {[N]}>, w: &Hbm<Tile<bf16, 8, 32>, {[N]}>, go: Stream<Address, {[B]}>) {
    let rows = x.random_load(go);
    let weights = WEIGHTS;
    let y = rows.map(kernel::matmul, weights)BACK;
    TWICE
}
"""
WEIGHTS = {  # how they are written, and whether they are the same
    "w.random_load(go.map(signal))": True,
    "w.linear_load(&go, [1], [1], 1).flatten(0, 1)": True,
    "w.linear_load(once(), [1], [1], 1).flatten(0, 1).promote().flatten(0, 1).expand(1, &go.promote()).flatten(0, 1).assume(&go)": True,
    "w.random_load(go)": False,
}
# An expert that is a kernel: n rows in tiles of 32.
PADDED = """
#[stream]
fn padded<const B: Dim>(x: Stream<Tile<bf16, 1, 32>, {[B]}>, w: &Hbm<Tile<bf16, 8, 32>, {[1]}>) {
    let tile = x.reshape(0, 32, 0).0.accum(1, retile_rows);
    let weights = w.random_load(tile.map(signal));
    (tile.map(kernel::matmul, weights).flat_map(0, valid_rows), tile.map(matmul_t, weights).flat_map(0, valid_rows))
}
"""
# A kernel of several outputs: the product, and its first tile; PART of them leaves next to the stream function that makes the same.
BOTH = KERNEL.replace("fn matmul", "fn both").replace("-> HbmTensor<bf16, m![1], m![M, N]> {", "-> (HbmTensor<bf16, m![1], m![M, N]>, HbmTensor<bf16, m![1], m![M, K]>) {").replace(
    "    c.to_hbm(&mut ctx.tdma, 1 << 20)", "    (c.to_hbm(&mut ctx.tdma, 1 << 20), a.to_hbm(&mut ctx.tdma, 1 << 21))")
SEVERAL = """
#[stream]
fn several<const B: Dim>(x: Stream<Tile<bf16, 1, 32>, {[B]}>, w: &Hbm<Tile<bf16, 8, 32>, {[1]}>) {
    let tile = x.reshape(0, 32, 0).0.accum(1, retile_rows);
    let weights = w.random_load(tile.map(signal));
    let made = tile.map(kernel::both, weights);
    (made.PART.flat_map(0, valid_rows), tile.SAME.flat_map(0, valid_rows))
}
"""


def tool(*command):
    done = subprocess.run([f"{BIN}/{command[0]}", *command[1:]], capture_output=True, text=True)
    if done.returncode == 3 and "has a value: nothing was compared" in done.stderr: # streams that were drawn empty: they are compared here
        return tool(*(word for word in command if word != "--check"))
    return done


def report_of(binary, kernel, preset="documented"):
    done = tool("visa-run", binary, f"--kernel={kernel}", "--report=json", f"--timing={preset}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_a_row(report, calls, kept=()):
    """Cycles of calls whose inputs are there, from the pieces of one: copies before the first chain, chains, copies after them. The first call
    makes all copies, the others leave out those at the places in `kept`. Copies are made one after the other; a call computes when the one before it
    has, and its first copies wait until the call before the last one has."""
    items = report["items"]
    chains = [i for i in items if i["context"] != "dma"]
    begin, end = min(i["start"] for i in chains), max(i["end"] for i in chains)
    first = [i["cycles"] for i in items if i["context"] == "dma" and i["start"] < begin]
    last = sum(i["cycles"] for i in items if i["context"] == "dma" and i["start"] >= begin)
    heads = [sum(c for at, c in enumerate(first) if n == 0 or at not in kept) for n in range(calls)]
    queue, loaded, computed = heads[0], [heads[0]], []
    for n in range(calls):
        if n + 1 < calls:
            queue = max(queue, computed[n - 1] if n > 0 else 0) + heads[n + 1]
            loaded.append(queue)
        computed.append(max(loaded[n], computed[-1] if computed else 0) + end - begin)
        queue = max(queue, computed[n]) + last
    return queue


def two(folder, rng):
    """A kernel next to the stream function."""
    integers = rng.random() < 0.5
    name, kind, result = ("integers", "i8", "i32") if integers else ("matmul", "bf16", "bf16")
    call = rng.choice([f"map(kernel::{name}, w)", f"zip(w).map(kernel::{name})", f"map(kernel::{name}, w).write_back()"])
    text = KERNEL + INTEGERS * integers + TWO.replace("CALL", call).replace("TYPE", kind).replace("RESULT", result).replace("DEPTH", rng.choice("012"))
    count = rng.randrange(0, 4)
    number = (lambda: rng.randrange(-128, 128)) if integers else (lambda: rng.randrange(-8, 9) / 4)
    inputs = {n: [[[number() for _ in range(32)] for _ in range(rows)] for _ in range(count)] for n, rows in (("x", 32), ("w", 8))}
    path, binary = os.path.join(folder, "p.vm"), os.path.join(folder, "p.bin")
    with open(path, "w") as f:
        f.write(text)
    done = tool("visac", path, "-o", binary)
    assert done.returncode == 0, done.stderr
    command = ["visa-run", binary, "--kernel=two"]
    for n, tokens in inputs.items():
        with open(os.path.join(folder, n + ".json"), "w") as f:
            json.dump(tokens, f)
        command += ["--input", f"{n}={folder}/{n}.json"]
    preset = rng.choice(["documented", "schedule"])
    done = tool(*command, "--check", "--report=json", f"--timing={preset}", "--output", f"out0={folder}/a.json", "--output", f"out1={folder}/b.json")
    assert done.returncode == 0, done.stderr
    with open(f"{folder}/a.json") as a, open(f"{folder}/b.json") as b:
        ours, theirs = json.load(a), json.load(b)
    if ours != theirs or len(ours) != count:
        return f"values differ\n{text}"
    report, quick = json.loads(done.stdout), json.loads(tool(*command, "--report=json", f"--timing={preset}", "--timing-only").stdout)
    if report["cycles"] != quick["cycles"]:
        return "time depends on values"
    alone = report_of(binary, name, preset)
    moved = alone["use"]["hbm_read_bytes"] + alone["use"]["hbm_written_bytes"]
    below = [(k["kernel"], k["runs"], k["cycles"], k["next_cycles"], k["offchip_bytes"], k["next_offchip_bytes"], k["kept"]) for k in report["kernels"]]
    if below != [(name, count, alone["cycles"], alone["cycles"], moved, moved, [])] or report["kernel_offchip_bytes"] != count * moved:
        return f"the kernel's level is {below}, its own report has {alone['cycles']} cycles and {moved} bytes"
    shortest, longest = 0.9 * alone["cycles"], count * alone["cycles"]  # the presets charge the beginning of a row once
    if count > 0 and not any(o["operator"] == "map" and shortest < o["busy_cycles"] <= longest for o in report["operators"]):
        return f"no map is busy for {count} runs of {alone['cycles']} cycles: {report['operators']}"
    derived = json.loads(tool("visac", path, "--emit=step-json", "-D", f"B={count}").stdout)[0]["total"]["flops"]["value"]
    return None if report["flops"] == derived == 2 * count * 2 * 32 * 8 * 32 else f"FLOPs: counted {report['flops']}, derived {derived}"


def compared(folder, text, name, kernel, inputs):
    """Both outputs of the program, and its report next to the kernel's own cycles."""
    path, binary = os.path.join(folder, "p.vm"), os.path.join(folder, "p.bin")
    with open(path, "w") as f:
        f.write(text)
    done = tool("visac", path, "-o", binary)
    assert done.returncode == 0, done.stderr
    command = ["visa-run", binary, f"--kernel={name}", "--check", "--report=json", f"--sizes={folder}/sizes.json"]
    for n, tokens in inputs.items():
        with open(os.path.join(folder, n + ".json"), "w") as f:
            json.dump(tokens, f)
        command += ["--input", f"{n}={folder}/{n}.json"]
    done = tool(*command, "--output", f"out0={folder}/a.json", "--output", f"out1={folder}/b.json")
    assert done.returncode == 0, done.stderr
    with open(f"{folder}/a.json") as a, open(f"{folder}/b.json") as b:
        outputs = json.load(a), json.load(b)
    derived = tool("visac", path, "--emit=step-json", f"--sizes={folder}/sizes.json")
    assert derived.returncode == 0, derived.stderr
    report = json.loads(done.stdout)
    assert json.loads(derived.stdout)[0]["total"]["flops"]["value"] == report["flops"], "FLOPs derived and counted differ"
    return outputs, report, json.loads(tool("visa-run", binary, f"--kernel={kernel}", "--report=json").stdout)["cycles"]


def calls(folder, rng):
    """Both levels, derived and counted; time in a row by a model that knows only the kernel's own report."""
    said, kept = rng.choice([w for w in WEIGHTS.items() if "once" not in w[0]])
    count, twice = rng.choice([0, 1, 2, 3, rng.randrange(4, 9)]), rng.random() < 0.4
    tail = "(y, x.random_load(go).map(kernel::matmul, w.random_load(go)))" if twice else "(y, rows)"
    text = KERNEL + CALLS.replace("WEIGHTS", said).replace("DEPTH", rng.choice("0123")).replace("TWICE", tail).replace("BACK", "").replace("N]", f"{max(count, 2)}]")
    path, binary, command = os.path.join(folder, "p.vm"), os.path.join(folder, "p.bin"), ["visa-run"]
    with open(path, "w") as f:
        f.write(text)
    done = tool("visac", path, "-o", binary)
    assert done.returncode == 0, done.stderr + text
    with open(os.path.join(folder, "go.json"), "w") as f:
        json.dump(rng.sample(range(max(count, 2)), count), f)
    done = tool("visa-run", binary, "--kernel=calls", "--input", f"go={folder}/go.json", "--report=json", "--check", "--output", "out0=/dev/null", "--output", "out1=/dev/null")
    assert done.returncode == 0, done.stderr + text
    report, alone = json.loads(done.stdout), report_of(binary, "matmul")
    derived = json.loads(tool("visac", path, "--emit=step-json", "-D", f"B={count}").stdout)[0]
    for d, o in zip(derived["operators"], report["operators"]):
        pairs = [(d["offchip_bytes"]["value"], o["offchip_bytes"]), (d["flops"]["value"], o["flops"])] + [(d["onchip_bytes"][e]["value"], o["onchip_bytes"][e]) for e in ("paper", "artifact")]
        if any(a != b for a, b in pairs):
            return f"{d['name']}: derived and counted are {pairs}\n{text}"
    if derived["total"]["offchip_bytes"]["value"] != report["offchip_bytes"]:
        return "totals off the chip differ"
    one = 2 * (32 * 32 + 8 * 32 + 32 * 8)
    bytes_of = {k["node"]: one * k["runs"] - (k["runs"] > 0) * (k["runs"] - 1) * 512 * bool(k["kept"]) for k in report["kernels"]}
    if [k["kept"] for k in report["kernels"]] != [["b"] if kept else []] + [[]] * twice or report["kernel_offchip_bytes"] != sum(bytes_of.values()):
        return f"{report['kernels']} of {count} calls\n{text}"
    if not twice:  # what waits for tiles takes longer; the loads are far quicker than the kernel
        busy = [o["busy_cycles"] for o in report["operators"] if o["name"] == report["kernels"][0]["node"]][0]
        model = in_a_row(alone, count, (1,) if kept else ()) if count else 0
        if not model <= report["cycles"] <= model + 200 or busy > model:
            return f"{count} calls take {report['cycles']} cycles, busy {busy}; one after the other by hand {model}\n{text}"
    elif report["cycles"] > 2 * count * alone["cycles"] + 200:
        return f"two operators on one machine: {report['cycles']} cycles for {2 * count} calls of {alone['cycles']}"
    return None


def fold(folder, rng):
    """A kernel that folds, groups without tiles among them."""
    groups = [rng.randrange(0, 4) for _ in range(rng.randrange(1, 4))]
    tokens = [t for n in groups for t in [[[rng.randrange(-8, 9) / 4 for _ in range(32)] for _ in range(32)] for _ in range(n)] + ["S1"]]
    operator = rng.choice(["accum", "scan"])
    (ours, theirs), report, alone = compared(folder, KERNEL + TOTAL + FOLD.replace("APPLY", operator), "fold", "total", {"x": tokens})
    if ours != theirs:
        return f"a kernel folds otherwise\n{ours}\n{theirs}"
    busy = [o["busy_cycles"] for o in report["operators"] if o["operator"] == operator]
    return None if sum(groups) * alone in busy else f"busy for {busy} cycles, {sum(groups)} runs of {alone}"


def padded(folder, rng):
    """Rows of padding go into the kernel and do not come out."""
    rows = rng.choice([1, 31, 32, 33, 40, rng.randrange(1, 80)])
    (ours, theirs), _, _ = compared(folder, KERNEL + PADDED, "padded", "matmul", {"x": [[[rng.randrange(-8, 9) / 4 for _ in range(32)]] for _ in range(rows)]})
    return None if ours == theirs and len(ours) == rows else f"{rows} rows became {len(ours)}"


def several(folder, rng):
    """Several outputs leave as pairs, each with its own valid rows."""
    rows = rng.choice([1, 32, 33, rng.randrange(1, 80)])
    part, same = rng.choice([("map(first)", "map(matmul_t, weights)"), ("map(second)", "map(identity)"),
                             ("map(|a, _| a)", "map(matmul_t, weights)"), ("map(|_, b| b)", "map(|a| a)")])
    feed = [[[rng.choice([-1, 1]) * rng.randrange(1, 9) / 4 for _ in range(32)]] for _ in range(rows)]
    text = BOTH + SEVERAL.replace("PART", part).replace("SAME", same)
    (ours, theirs), report, alone = compared(folder, text, "several", "both", {"x": feed})
    if ours != theirs or len(ours) != rows:
        return f"{rows} rows: a kernel of two outputs gives {len(ours)}, others\n{text}"
    return None if [k["cycles"] for k in report["kernels"]] == [alone] else f"its calls take {report['kernels']}, alone {alone}"


# (id, what is in the message, body of a program on x: 32 x 32 and w: 8 x 32 in bf16, n: 32 x 32 in i8, m: 8 x 32 in i8)
REFUSED = [
    ("E-STEP-PROGRAM", "there is no kernel `absent`", "x.map(kernel::absent, w)"),
    ("E-STEP-PROGRAM", "`wide` is no function of tiles", "x.map(kernel::wide)"),
    ("E-STEP-PROGRAM", "takes its own cycles", "x.map(kernel::matmul, w).compute(4)"),
    ("E-STEP-PROGRAM", "`kernel` is neither", "x.map(kernel, w)"),
    ("E-STEP-TYPE", "takes 2 tiles, not 1", "x.map(kernel::matmul)"),
    ("E-STEP-TYPE", "input 0 of the kernel `matmul` is a tile bf16 32 x 32, not bf16 tiles 8 x 32", "w.map(kernel::matmul, x)"),
    ("E-STEP-TYPE", "input 0 of the kernel `matmul` is a tile bf16 32 x 32, not i8 tiles 32 x 32", "n.map(kernel::matmul, w)"),
    ("E-STEP-TYPE", "makes bf16", "x.map::<f32>(kernel::matmul, w)"),
    ("E-STEP-TYPE", "takes 2 tiles, one of them the accumulator, not 3", "x.promote().accum(1, kernel::matmul, w.promote())"),
    ("E-STEP-TYPE", "makes another tile than its first input, the accumulator", "w.promote().accum(1, kernel::matmul)"),
    ("E-STEP-TYPE", "makes 2 tiles, and an accumulator is one", "w.promote().accum(1, kernel::both)"),
    ("E-STEP-TYPE", "no function for flat_map", "x.flat_map(0, kernel::matmul)"),
]
WIDE = """
#[device(chip = 1)]
fn wide(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![M, K]>) -> HbmTensor<bf16, m![1], m![L]> {
    let a: DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![M, K]> = a.to_dm(&mut ctx.tdma, 0);
    a.to_hbm(&mut ctx.tdma, 1 << 20)
}
"""


def refused(folder):
    faults = []
    head = "#[stream]\nfn p<const B: Dim>(x: Stream<Tile<bf16, 32, 32>, {[B]}>, w: Stream<Tile<bf16, 8, 32>, {[B]}>, n: Stream<Tile<i8, 32, 32>, {[B]}>) {\n    "
    path = os.path.join(folder, "r.vm")
    for code, words, body in REFUSED:
        kernel = KERNEL + BOTH[BOTH.index("#[device"):] * ("both" in body)
        if "wide" in body:
            kernel += WIDE.replace("m![L]", "m![M, K]").replace("a: &HbmTensor<bf16, m![1], m![M, K]>", ", ".join(f"{p}: &HbmTensor<bf16, m![1], m![M, K]>" for p in "abcdef"))
        with open(path, "w") as f:
            f.write(kernel + head + body + "\n}\n")
        done = tool("visac", path, "-o", os.path.join(folder, "r.bin"))
        if done.returncode != 1 or f"error[{code}]" not in done.stderr or words not in done.stderr or done.stderr.count("error[") != 1:
            faults.append(f"{body}: {done.stderr}")
    return faults


def main():
    rounds = visa_tools.few(8)
    with tempfile.TemporaryDirectory() as folder:
        faults = refused(folder)
        for seed in range(rounds):
            for what in (two, calls, fold, padded, several):
                fault = what(folder, random.Random(seed))
                if fault:
                    faults.append(f"{what.__name__}, seed {seed}: {fault}")
    return visa_tools.ended(faults, f"{5 * rounds + len(REFUSED) - len(faults)} agree, {len(faults)} differ")


if __name__ == "__main__":
    sys.exit(main())
