"""What the compiled kernels are worth: sequencer entries against the fewest that walk the same addresses, simulated cycles against the lower bound."""
import json
import sys

import kernels
from measure import ROOT
from report import table, target

sys.path.insert(0, str(ROOT / "test/oracle"))
import nest  # noqa: E402

TITLE = "entries against the fewest, cycles against the lower bound"
EXHAUSTIVE = 96     # addresses of a walk for which every nest is tried
ENUMERATED = 1 << 16  # addresses of a walk that is looked at address by address


# ---- entries ----

def tables_of(node):
    """Every table of sequencer entries in --emit=json."""
    if isinstance(node, dict):
        if "entries" in node:
            yield node
        for name, value in node.items():
            yield from tables_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from tables_of(value)


def loops_of(t):
    """[(size, strides)], outermost first, without entries of one iteration."""
    return [(e["size"], tuple(value for name, value in e.items() if name.endswith("stride"))) for e in t["entries"] if e["size"] > 1]


def addresses_of(loops):
    addresses = [(0,) * len(loops[0][1])]
    for size, strides in loops:
        addresses = [tuple(a + i * s for a, s in zip(address, strides)) for address in addresses for i in range(size)]
    return addresses


def fewest(loops):
    """(entries that the same addresses need, is it by trying every nest there is)."""
    if not loops:
        return 0, True
    volume = nest.volume(loops)
    if len(loops[0][1]) == 1 and volume <= EXHAUSTIVE:
        return nest.fewest([a for a, in addresses_of(loops)]), True
    if volume <= ENUMERATED:
        return nest.entries_needed(nest.shortest(addresses_of(loops))), False
    merged = []
    for size, strides in loops:
        if merged and all(outer == size * inner for outer, inner in zip(merged[-1][1], strides)):
            merged[-1] = (merged[-1][0] * size, strides)
        else:
            merged.append((size, strides))
    return nest.entries_needed(merged), False


def split_at_packet(t, loops):
    """Time and Packet are counted apart: a walk may not run over their boundary into one entry."""
    inside = 1
    for i in range(len(loops), 0, -1):
        if inside == t["packet"]:
            return loops[:i], loops[i:]
        inside *= loops[i - 1][0]
    return loops, []


def entries(kernel):
    """(tables, entries used, fewest, tables for which every nest was tried)."""
    used = least = tried = count = 0
    for t in tables_of(kernel["ops"]):
        loops = loops_of(t)
        parts = [fewest(part) for part in split_at_packet(t, loops)]
        count += 1
        used += max(len(loops), 1)
        least += max(sum(n for n, _ in parts), 1)
        tried += all(whole for _, whole in parts)
    return count, used, least, tried


# ---- cycles ----

def rows_of(bench, name, path):
    visac = bench.program("visac")
    emitted = json.loads(bench.run([visac, path, "--emit=json"]))["kernels"]
    out = []
    for kernel in emitted:
        report = json.loads(bench.run([visac, path, f"--kernel={kernel['name']}", "--report=json"]))
        count, used, least, tried = entries(kernel)
        bound, use = report["lower_bound"], report["use"]
        out.append([name if len(emitted) == 1 else f"{name}: {kernel['name']}", count, used, least, tried, report["cycles"], bound["cycles"], report["cycles"] / max(bound["cycles"], 1),
                    f"{100 * bound['multiplications'] / report['cycles']:.1f} %", f"{100 * use['multiplications'] / max(use['lane_products'], 1):.1f} %", report["engines"]])
    return out


COLUMNS = ["kernel", "tables", "entries", "fewest", "tables with every nest tried", "cycles", "lower bound", "cycles / bound", "MACs of the chip", "lanes that count", "busiest engine"]


def finish(rows):
    """The engine that is busy most, and how much of the time."""
    for row in rows:
        engine, cycles = max(row[-1].items(), key=lambda item: item[1])
        row[-1] = f"{engine}, {100 * cycles / row[5]:.0f} %"
    return rows


def grid(bench):
    sizes = [(m, n, k) for m in bench.count((128, 512, 2048), (512,), (128,)) for n in bench.count((256, 512, 1024), (256, 1024), (256,)) for k in bench.count((256, 1024, 2048), (256, 2048), (256,))]
    for dtype in ("i8", "bf16"):
        for m, n, k in sizes:
            if kernels.fits(m, n, k, dtype):
                for blocks in (False, True):
                    yield f"{dtype} {m} x {n} x {k}, result in {'blocks' if blocks else 'rows'}", kernels.matmul(m, n, k, dtype, blocks)


def run(bench, section):
    examples = sorted((ROOT / "examples").glob("*.vm"))
    if bench.mode == "smoke":
        examples = [path for path in examples if path.name in ("matmul.vm", "gemv.vm")]
    rows = finish([row for path in examples for row in rows_of(bench, path.stem, str(path))])
    shapes = finish([row for name, text in grid(bench) for row in rows_of(bench, name, bench.file("shape.vm", text))])
    section["tables"] += [table("examples", COLUMNS, rows), table("matmul shapes", COLUMNS, shapes,
                          "lower bound: the larger of the multiplications on all lanes of the chip and the bytes of the ports at 1,500 per cycle (docs/timing.md)")]
    more = [row[0] for row in rows + shapes if row[2] > row[3]]
    section["targets"] = [target("kernels with more entries than the fewest", "none", ", ".join(more) or "none", not more)]
