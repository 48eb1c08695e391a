"""The Vector Engine: elements a second of the simulated machine on one core, and the reference's maps and reductions against clang's loops.

A pass of the machine is what 24 turns of a loop over 4 million elements take of processor time more than 8 turns do: reading, the pass, writing. The loops by hand are
bench/vector_nest.c, compiled for this processor; both sides take turns in one process.
"""
import json

from measure import ROOT, of, spread
from report import table

TITLE = "the Vector Engine on one core, and its mathematics"
ELEMENTS = 1 << 22
HEAD = f"axes![A = {ELEMENTS}];\ntype Dm = DmTensor<f32, m![1], m![1 # 2], m![A / 16384], m![A % 16384]>;\n"
READ = "ctx.main.begin(y.view()).fetch::<f32, m![A / 8 % 2048], m![A % 8]>().collect::<_, _>().vector_init().vector_intra_slice_branch(BranchMode::Unconditional)"
PASSES = {
    "add, max": ".vector_clip(ClipBinaryOpF32::Add, 1.0).vector_clip(ClipBinaryOpF32::Max, 0.0)",
    "exp, add, division": ".vector_split::<_, _>().vector_fp_unary(FpUnaryOp::NegExp).vector_fp_binary(FpBinaryOp::AddF, 1.0).vector_fp_div(FpDivBinaryOp::DivF, 3.0).vector_concat::<_, _>()",
    "tanh": ".vector_split::<_, _>().vector_fp_unary(FpUnaryOp::Tanh).vector_concat::<_, _>()",
    "ln": ".vector_split::<_, _>().vector_fp_unary(FpUnaryOp::Log).vector_concat::<_, _>()",
    "sin": ".vector_split::<_, _>().vector_fp_unary(FpUnaryOp::Sin).vector_concat::<_, _>()",
    "erf": ".vector_split::<_, _>().vector_fp_unary(FpUnaryOp::Erf).vector_concat::<_, _>()",
    "i32 and back": ".vector_fp_to_fxp(16).vector_clip(ClipBinaryOpI32::AddFxpSat, 7).vector_reinterpret::<f32>()",
    "sum of a slice": ".vector_split::<_, _>().vector_intra_slice_reduce::<A, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Add).vector_pad_way8::<_>()",
}
KERNELS = ("softmax", "rmsnorm", "gelu", "rope", "layer")


def source(turns):
    text = HEAD
    for n, (name, calls) in enumerate(PASSES.items()):
        out = "m![1 # 8]" if "sum" in name else "m![A % 16384]"
        keep = "let z" if "sum" in name else "y"
        to = f": DmTensor<f32, m![1], m![1 # 2], m![A / 16384], {out}>" if keep == "let z" else ""
        text += (f"#[device(chip = 1)]\nfn p{n}(ctx: &mut Context, x: &HbmTensor<f32, m![1], m![A]>) -> HbmTensor<f32, m![1], m![A]> {{\n"
                 f"    let mut y: Dm = x.to_dm(&mut ctx.tdma, 0);\n    for i in 0..{turns} {{\n        {keep}{to} = {READ}{calls}.vector_final().commit({65536 if to else 0});\n    }}\n"
                 f"    y.to_hbm(&mut ctx.tdma, 0)\n}}\n")
    return text


def machine(bench, section):
    binaries, counts = [], bench.count((8, 32), (8, 32), (1, 2))
    for turns in counts:
        path = bench.file(f"vector{turns}.vm", source(turns))
        bench.run([bench.program("visac"), path, "-o", f"{path}.bin"])
        binaries.append(f"{path}.bin")
    levels, rows = bench.count(["best", "avx2", "plain"], ["best", "avx2"], ["best"]), []
    for n, name in enumerate(PASSES):
        speeds = []
        for level in levels:
            commands = [(str(turns), [bench.program("visa-run"), binary, f"--kernel=p{n}", f"--cpu={level}", "--threads=1"]) for turns, binary in zip(counts, binaries)]
            taken = bench.processes(commands, bench.count(5, 3), 0)
            few, many = (sorted(a + b for a, b in zip(of(taken[str(t)], "user"), of(taken[str(t)], "system"))) for t in counts)
            speeds.append(spread([(counts[1] - counts[0]) * ELEMENTS / 1e6 / (b - a) for a, b in zip(few, many) if b > a] or [0]))
        rows.append([name, *speeds])
    section["tables"].append(table("passes of the machine, 1e9 elements a second", ["pass", *levels], rows))


def mathematics(bench, section):
    clang = bench.peer("clang-19", "clang-19")
    if not clang:
        return
    folder, objects = bench.work, []
    for name in KERNELS:
        for kind, ending in (("obj", "o"), ("header", "h")):
            bench.run([bench.program("visac"), ROOT / f"examples/{name}.vm", f"--emit={kind}", "--mcpu=native", "-o", folder / f"{name}.{ending}"])
        objects.append(folder / f"{name}.o")
    bench.run([clang, "-O3", "-march=native", f"-I{folder}", ROOT / "bench/vector_nest.c", *objects, "-lm", "-o", folder / "nest"])
    rows = []
    for line in bench.run([folder / "nest", str(bench.count(50, 20))]).splitlines():
        taken = json.loads(line)
        rows.append([taken["name"], f"{taken['reference'] / 1e3:.0f}", f"{taken['clang'] / 1e3:.0f}", f"{taken['clang'] / taken['reference']:.2f}"])
    section["tables"].append(table("the reference, one thread, microseconds", ["kernel", "reference", "clang -O3 -march=native", "clang / reference"], rows))


def run(bench, section):
    machine(bench, section)
    mathematics(bench, section)
