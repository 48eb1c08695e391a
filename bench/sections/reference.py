"""The reference kernel against the libraries that people use for products, as bench_reference pairs them, and what generating it costs."""
import json
import os
import statistics

from measure import Missing, environment
from report import none_of, table, target

TITLE = "the reference kernel against libraries and compiled loop nests"


# A lesser CPU than this one, as each side is told of it; clang's loops are compiled for each level.
LEVELS = {"x86-64-v4": {"DNNL_MAX_CPU_ISA": "AVX512_CORE", "OPENBLAS_CORETYPE": "SkylakeX"},
          "x86-64-v3": {"DNNL_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Haswell"},
          "x86-64-v2": {"DNNL_MAX_CPU_ISA": "SSE41", "OPENBLAS_CORETYPE": "Nehalem"}}
MOST_LEVELS = 3
KINDS = ("f32", "bf16", "i8")


def levels(has):
    """This machine's CPU, and lesser ones, at most three in all; `has`: what it has beyond AVX2."""
    lesser = [level for level, needs in zip(LEVELS, ("AMX", "AVX-512", "AVX2")) if needs in has]
    return ["native"] + lesser[:MOST_LEVELS - 1]


def measure(bench, threads, *options, program="bench_reference", level="native"):
    """bench_reference's rows: each is ours and a peer's, in turns."""
    command = [bench.program(program), "--json", f"--threads={threads}", *options]
    told = {"VISA_MCPU": level, **LEVELS[level]} if level in LEVELS else {}
    text = bench.run(command, env={**os.environ, **told})
    return json.loads(text)["rows"]


def shape(row):
    return f"{row['m']}x{row['n']}x{row['k']}"


def product_row(row):
    flops = 2e-9 * row["m"] * row["n"] * row["k"]
    return [shape(row), row["type"], row["threads"], row["against"], round(flops / row["seconds"], 1), round(flops / row["theirs"], 1), round(row["ratio"], 2)]


def build_row(row):
    return [shape(row), row["type"], row["against"], round(1e3 * row["seconds"], 1), round(1e3 * row["theirs"], 1), round(row["ratio"], 2)]


def sums_alike(row):
    """A peer that comes to other sums is faster at something else: it is shown, and judged is the next one."""
    return "other sums" not in row["against"]


def worst(rows):
    """{(shape, type): the row of the fastest peer}."""
    found = {}
    for row in filter(sums_alike, rows):
        key = shape(row), row["type"]
        if key not in found or row["ratio"] < found[key]["ratio"]:
            found[key] = row
    return found


def matrix_table(level, threads, found):
    """Shape by shape: ours / the fastest peer's, by type."""
    names = list(dict.fromkeys(name for name, _ in found))
    kinds = [kind for kind in KINDS if any(key[1] == kind for key in found)]
    rows = [[name] + [f"{found[name, kind]['ratio']:.2f} {found[name, kind]['against']}" if (name, kind) in found else "" for kind in kinds] for name in names]
    return table(f"the matrix, {level}, {threads} thread{'s' if threads > 1 else ''}: speed of ours / the fastest of the others, and which one that is", ["shape"] + kinds, rows)


def matrix_targets(level, threads, found):
    made = []
    of = f"{level}, {threads} thread{'s' if threads > 1 else ''}"
    for kind in KINDS:
        shares = {f"{name} {row['against']} {row['ratio']:.2f}": row["ratio"] for (name, k), row in found.items() if k == kind}
        if shares:
            made.append(none_of(f"{kind} products of the matrix under 0.9 of the fastest, {of}", [text for text, value in shares.items() if value < 0.9], len(shares)))
    mean = statistics.geometric_mean([max(row["ratio"], 0.01) for row in found.values()])
    return made + [target(f"geometric mean of ours / the fastest, {of}", "over 1", round(mean, 2), mean > 1)]


def run(bench, section):
    threads = [1] if bench.mode == "smoke" else sorted({1, os.cpu_count()})
    most = (f"--seconds={bench.count(1, 0.2, 0.001)}", f"--largest={bench.count(4096, 1024, 32)}")
    columns = ["shape", "type", "threads", "against", "ours", "theirs", "ours / theirs"]
    products = [product_row(row) for n in threads for row in measure(bench, n, *most)]
    if not products:
        raise Missing("bench_reference pairs nothing")
    section["tables"].append(table("products, row-major operands, 1e9 operations a second", columns, products))
    alike = [row for row in products if "other sums" not in row[3]]
    slow = [f"{row[1]} {row[0]}, {row[2]} thread{'s' if row[2] > 1 else ''}, {row[3]} {row[6]}" for row in alike if row[6] < 0.9]
    section["targets"].append(none_of("products under 0.9 of a library or of clang", slow, len(alike)))
    has = environment()["levels"]
    for level in levels(has) if bench.mode == "full" else ["native"]:
        for n in threads if bench.mode == "full" else [1]:
            matrix = measure(bench, n, "--matrix", f"--seconds={bench.count(0.3, 0.1, 0.001)}", f"--largest={bench.count(4096, 4096, 16)}", level=level)
            found, others = worst(matrix), [row for row in matrix if not sums_alike(row)]
            section["tables"].append(matrix_table(level, n, found))
            if others:
                section["tables"].append(table("what comes to other sums, and does not count", columns, [product_row(row) for row in others]))
            section["targets"] += matrix_targets(level, n, found)
    order = [product_row(row) for kind in ("f32", "bf16") for row in measure(bench, 1, "--order", f"--kind={kind}", f"--seconds={bench.count(1, 0.2, 0.001)}", f"--largest={bench.count(1024, 256, 32)}")]
    section["tables"].append(table("the machine's order of sums (ours) against a free one (theirs)", columns, order))
    section["targets"] += [target(f"the machine's order / free order, f32, {row[0]}", "at least 0.6", row[6], row[6] >= 0.6) for row in order if row[1] == "f32"]
    builds = [build_row(row) for row in measure(bench, 1, "--builds", f"--largest={bench.count(512, 512, 32)}", program="bench_reference_build")]
    section["tables"].append(table("generating and compiling, whole processes, ms of processor time", ["shape", "type", "against", "ours", "theirs", "ours / theirs"], builds))
