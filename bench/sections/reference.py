"""The reference kernel against the libraries that people use for products, as bench_reference pairs them, and what generating it costs."""
import json
import os

from measure import Missing
from report import table

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
    builds = [build_row(row) for row in measure(bench, 1, "--builds", f"--largest={bench.count(512, 512, 32)}", program="bench_reference_build")]
    section["tables"].append(table("generating and compiling, whole processes, ms of processor time", ["shape", "type", "against", "ours", "theirs", "ours / theirs"], builds))
