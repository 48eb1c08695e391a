"""A whole process: compile, simulate, run the reference and compare, against one compile of a loop nest by clang."""
import re

import kernels
from measure import ROOT, of, ratios, spread
from report import at_most, table

TITLE = "compile, simulate, reference and compare in one process: int8, 512 x 512 x 2048"


def run(bench, section):
    visac, source, binary = bench.program("visac"), bench.file("matmul.vm", kernels.matmul(*bench.count((512, 512, 2048), (512, 512, 2048), (128, 256, 256)), "i8")), bench.file("matmul.bin")
    bench.program("libvisa_reference.so")
    compile_it, clang = [visac, source, "-o", binary], bench.peer("clang-19", "clang-19")
    bench.run(compile_it)
    todo = [("visac --check", [visac, source, "--check"]), ("visac --check=numbers", [visac, source, "--check=numbers"]),
            ("visa-run", [bench.program("visa-run"), binary]), ("visac", compile_it)]
    if clang:
        todo.append(("clang-19 -O2 -c", [clang, "-O2", "-c", str(ROOT / "bench/matmul.c"), "-o", bench.file("clang.o")]))
    samples = bench.processes(todo, bench.count(40, 10))
    wall = {name: of(taken, "wall") for name, taken in samples.items()}
    base = wall.get("clang-19 -O2 -c")
    rows = [[name, spread(wall[name]), spread(of(taken, "user"))["median"], spread(of(taken, "system"))["median"], max(of(taken, "peak")), spread(of(taken, "faults"))["median"], ratios(wall[name], base) if base else ""] for name, taken in samples.items()]
    said = re.search(r"built in ([\d.]+) ms", bench.run([visac, source, "--check"]))
    note = f"of `--check`, building the reference kernel: {said.group(1)} ms in a run of its own" if said else ""
    section["tables"].append(table("whole processes", ["command", "wall ms", "user ms", "system ms", "peak MiB", "page faults", "wall / clang-19 -O2 -c"], rows, note))
    section["targets"] = [at_most(f"{name} / clang-19 -O2 -c, wall", 1, ratios(wall[name], base) if base else None) for name in ("visac --check", "visac --check=numbers")]
