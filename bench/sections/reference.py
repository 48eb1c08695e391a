"""The reference kernel against the libraries that people use for products, as bench_reference pairs them, and what generating it costs."""
import json
import os
import statistics

from measure import Missing
from report import none_of, table, target

TITLE = "the reference kernel against libraries and compiled loop nests"


def measure(bench, threads, *options, program="bench_reference"):
    """bench_reference's rows: each is ours and a peer's, in turns."""
    command = [bench.program(program), "--json", f"--threads={threads}", *options]
    text = bench.run(command, env={**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)})
    return json.loads(text)["rows"]


def shape(row):
    return f"{row['m']}x{row['n']}x{row['k']}"


def product_row(row):
    flops = 2e-9 * row["m"] * row["n"] * row["k"]
    return [shape(row), row["type"], row["threads"], row["against"], round(flops / row["seconds"], 1), round(flops / row["theirs"], 1), round(row["ratio"], 2)]


def build_row(row):
    return [shape(row), row["type"], row["against"], round(1e3 * row["seconds"], 1), round(1e3 * row["theirs"], 1), round(row["ratio"], 2)]


def targets(rows, order):
    """Of products against what people use, and of the machine's order of sums."""
    made = []
    for kind in ("f32", "bf16", "i8"):
        shares = {f"{row[0]}, {row[2]} thread{'s' if row[2] > 1 else ''}, {row[3]} {row[6]}": row[6] for row in rows if row[1] == kind}
        made.append(none_of(f"{kind} products under 0.9 of a library or of clang", [text for text, value in shares.items() if value < 0.9], len(shares)))
    mean = statistics.geometric_mean([max(row[6], 0.01) for row in rows])
    made.append(target("geometric mean of ours / theirs", "over 1", round(mean, 2), mean > 1))
    made += [target(f"the machine's order / free order, f32, {row[0]}", "at least 0.6", row[6], row[6] >= 0.6) for row in order if row[1] == "f32"]
    return made


def run(bench, section):
    threads = [1] if bench.mode == "smoke" else sorted({1, os.cpu_count()})
    most = (f"--seconds={bench.count(1, 0.2, 0.001)}", f"--largest={bench.count(4096, 1024, 32)}")
    products = [product_row(row) for n in threads for row in measure(bench, n, *most)]
    if not products:
        raise Missing("bench_reference pairs nothing")
    section["tables"].append(table("products, row-major operands, 1e9 operations a second", ["shape", "type", "threads", "against", "ours", "theirs", "ours / theirs"], products))
    odd = [product_row(row) for row in measure(bench, 1, "--odd", f"--seconds={bench.count(1, 0.1, 0.001)}", f"--largest={bench.count(4096, 1024, 8)}")]
    section["tables"].append(table("odd shapes, one thread, 1e9 operations a second", ["shape", "type", "threads", "against", "ours", "theirs", "ours / theirs"], odd))
    order = [product_row(row) for kind in ("f32", "bf16") for row in measure(bench, 1, "--order", f"--kind={kind}", f"--seconds={bench.count(1, 0.2, 0.001)}", f"--largest={bench.count(1024, 256, 32)}")]
    section["tables"].append(table("the machine's order of sums (ours) against a free one (theirs)", ["shape", "type", "threads", "against", "ours", "theirs", "ours / theirs"], order))
    section["targets"] = targets(products + odd, order)
    builds = [build_row(row) for row in measure(bench, 1, "--builds", f"--largest={bench.count(512, 512, 32)}", program="bench_reference_build")]
    section["tables"].append(table("generating and compiling, whole processes, ms of processor time", ["shape", "type", "against", "ours", "theirs", "ours / theirs"], builds))
