"""Whole checks of cubes, as visac tune writes them: numbers and algebra, time, memory and page faults, at each level that this processor has."""
from measure import environment
from report import at_most, table

TITLE = "cubes with their check, as visac tune writes them, all processors"
QUESTION = "C[m, n] = sum(k) A[m, k] * B[n, k]"
LEVELS = (("best", "native"), ("avx2", "x86-64-v3"))  # of the machine, of the reference
CUBES = (("i8", 4096, {}), ("bf16", 4096, {"best": 6, "avx2": 10}), ("i8", 16384, {"best": 60, "avx2": 120}))
MOST_MIB = 4096


def levels():
    """Where AVX2 is the best that there is, it is measured once."""
    return LEVELS if "AVX-512" in environment()["levels"] else LEVELS[1:]


def made(bench, dtype, size):
    """The binary of the cube."""
    visac, source, binary = bench.program("visac"), bench.file("cube.vm"), bench.file("cube.bin")
    bench.run([visac, "tune", "--no-cache", QUESTION, "-D", f"m={size},n={size},k={size}", f"--dtype={dtype}", "-o", source])
    bench.run([visac, source, "-o", binary])
    return binary


def run(bench, section):
    rows, shrink = [], bench.count(1, 4, 64)
    for dtype, whole, goals in CUBES:
        size = whole // shrink
        binary = made(bench, dtype, size)
        for level, cpu in levels()[:bench.count(2, 2, 1)]:
            taken = bench.process(["env", f"VISA_MCPU={cpu}", bench.program("visa-run"), binary, "--check", "--max-cycles=0", f"--cpu={level}"])
            seconds = taken["wall"] / 1e3
            rows.append([f"{dtype} {size}", level, seconds, (taken["user"] + taken["system"]) / 1e3, taken["peak"], taken["faults"]])
            what = f"{dtype} {whole} with its check, --cpu={level}"
            if level in goals:
                section["targets"].append(at_most(f"{what}, wall", goals[level], seconds if shrink == 1 else None, "s"))
            if whole > 4096:
                section["targets"].append(at_most(f"{what}, resident", MOST_MIB, taken["peak"] if shrink == 1 else None, "MiB"))
    section["tables"].append(table("one run each", ["cube", "--cpu", "wall s", "processor s", "peak MiB", "page faults"], rows))
