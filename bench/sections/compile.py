"""A compile of examples/matmul.vm against C compilers on the same loop nest and MLIR on the same product."""
import os
import re
import subprocess

from measure import ROOT, of, ratios, spread
from report import at_most, table, target

TITLE = "a compile of examples/matmul.vm; `true` is what starting any program costs"
LOOP_NEST, PRODUCT = ROOT / "bench/matmul.c", ROOT / "bench/matmul.mlir"
LOWERING = ["--convert-linalg-to-loops", "--convert-scf-to-cf", "--convert-arith-to-llvm", "--finalize-memref-to-llvm", "--convert-cf-to-llvm",
            "--convert-func-to-llvm", "--reconcile-unrealized-casts"]


def commands(bench):
    """[(name, command)]: ours, the floor, and the peers that are there."""
    ours = [("visac", [bench.program("visac"), str(ROOT / "examples/matmul.vm"), "-o", bench.file("matmul.bin")]), ("true", ["true"])]
    gcc, clang, mlir = bench.peer("gcc", "gcc"), bench.peer("clang-19", "clang-19"), bench.peer("mlir-opt-19", "mlir-19-tools")
    peers = [("gcc -O2 -c", gcc, ["-O2", "-c", str(LOOP_NEST), "-o", bench.file("gcc.o")]),
             ("clang-19 -O2 -c", clang, ["-O2", "-c", str(LOOP_NEST), "-o", bench.file("clang.o")]),
             ("mlir-opt-19, to the LLVM dialect", mlir, [str(PRODUCT), *LOWERING, "-o", bench.file("lowered.mlir")])]
    return ours + [(name, [program, *rest]) for name, program, rest in peers if program]


def libraries(command):
    """What the dynamic linker initialises in a run."""
    done = subprocess.run(command, env=dict(os.environ, LD_DEBUG="libs"), capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"calling init: \S*/(\S+)", done.stderr)))


def run(bench, section):
    todo = commands(bench)
    samples = bench.processes(todo, bench.count(200, 40), warm_up=3)
    wall = {name: of(taken, "wall") for name, taken in samples.items()}
    rows = []
    for name, taken in samples.items():
        processor = spread([s["user"] + s["system"] for s in taken])
        rows.append([name, spread(wall[name]), processor["median"], spread(of(taken, "user"))["median"], max(of(taken, "peak")),
                     ratios(wall[name], wall["true"]), ratios(wall[name], wall["visac"])])
    section["tables"].append(table("a compile", ["command", "wall ms", "processor ms", "of it user ms", "peak MiB", "wall / true", "wall / visac"], rows))
    loaded = libraries(todo[0][1])
    section["targets"] = [
        at_most("visac / true, wall", 1.3, ratios(wall["visac"], wall["true"])),
        at_most("visac / gcc -O2 -c, wall", 0.05, ratios(wall["visac"], wall["gcc -O2 -c"]) if "gcc -O2 -c" in wall else None),
        at_most("resident memory of visac", 2.5, max(of(samples["visac"], "peak")), "MiB"),
        target("libraries of a compile", "none", ", ".join(loaded) or "none", not loaded),
    ]
