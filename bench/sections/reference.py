"""The reference kernel beside the libraries that people use for products, as bench_reference pairs them."""
import os
import re

from measure import Missing
from report import table

TITLE = "the reference kernel beside libraries and a compiled loop nest, GFlop/s"
LINE = re.compile(r"(?P<type>\w+)\s+(?P<shape>\d+x\s*\d+x\s*\d+)\s+(?P<threads>\d+) threads?\s+(?P<ours>[\d.]+) GFlop/s\s+(?P<peer>\S+)\s+(?P<theirs>[\d.]+)\s+ratio\s+(?P<ratio>[\d.]+)")


def measure(bench, threads, seconds, largest):
    """Rows of what bench_reference prints: each line is ours and a peer's, in turns."""
    command = [bench.program("bench_reference"), str(threads), str(seconds), "all", str(largest)]
    text = bench.run(command, env={**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)})
    return [[re.sub(r"\s", "", m["shape"]), m["type"], int(m["threads"]), m["peer"], float(m["ours"]), float(m["theirs"]), float(m["ratio"])] for m in LINE.finditer(text)]


def run(bench, section):
    threads = [1] if bench.mode == "smoke" else sorted({1, os.cpu_count()})
    rows = [row for n in threads for row in measure(bench, n, bench.count(1, 0.2, 0.001), bench.count(4096, 1024, 32))]
    if not rows:
        raise Missing("bench_reference says nothing that can be read")
    section["tables"].append(table("products, row-major operands", ["shape", "type", "threads", "peer", "ours", "theirs", "ours / theirs"], rows))
