#!/usr/bin/env python3
"""Matrix multiplications from model to machine: the point that --explore finds within the machine's limits, the kernel that it writes, checked
against the reference, and the cycles of its contraction in the simulated machine's report. Every difference from L is accounted for. The table of
docs/dataflow.md is what comes out. Usage: dataflow_table.py [--update]; VISA_LONG=1: random shapes after the table's.
And every contraction of the examples and cases: its cycles are L or its flits, the fill, the drain, and an engine that is named."""
import csv
import glob
import io
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import dataflow_conformance as conformance

PAGE = os.path.join(visa_tools.SOURCE, "docs", "dataflow.md")
BEGIN, END = "<!-- made by test/dataflow/dataflow_table.py --update -->\n", "<!-- end -->\n"
SHAPES = [(32, 8, 32, "bf16"), (32, 16, 64, "bf16"), (64, 32, 256, "i8"), (128, 64, 128, "bf16"), (1, 128, 512, "i8"), (256, 8, 64, "f8e4m3"),
          (7, 10, 100, "i8"), (13, 13, 97, "bf16"), (16, 24, 48, "bf16"), (100, 8, 16, "bf16"), (9, 20, 200, "i4"), (48, 96, 384, "f8e5m2")]
ENGINES = ("fetch", "switch", "output", "commit")  # what can be slower than L and its flits: the report names one of them
HEAD = "| M | N | K | type | explored | L | kernel | L | simulated | the difference |\n|---|---|---|---|---|---|---|---|---|---|\n"


def explored(text):
    """The fastest point within the limits of the machine: iPar, wPar, L."""
    _, rows = conformance.explore(text, "--limit=target")
    best = rows[-1]
    return best.get("i0.1", 1), best.get("w0.0", 1), best["L"]


def simulated(folder, written):
    """The kernel is checked; the cycles of its main chain from the binary alone."""
    source, binary = os.path.join(folder, "kernel.vm"), os.path.join(folder, "kernel.bin")
    with open(source, "w", encoding="utf-8") as file:
        file.write(written)
    steps = [["visac", source, "-o", binary], ["visa-run", binary, "--check"], ["visa-run", binary, "--report=csv"]]
    done = [visa_tools.run(s) for s in steps]
    if any(d.status for d in done):
        raise AssertionError("".join(d.text() for d in done))
    chains = [r for r in csv.DictReader(io.StringIO(done[-1].out.decode())) if r["context"] == "main"]
    assert len(chains) == 1
    return int(chains[0]["cycles"])


def row(folder, m, n, k, dtype):
    """The cells of the table; raises where a figure is not accounted for."""
    text = conformance.item([{"tensor": [m, k], "block": [1, k], "dtype": dtype}], [{"tensor": [n, k], "block": [1, k], "dtype": dtype}], [{"block": [1, 1]}])
    i_par, w_par, cycles = explored(text)
    status, written, error = conformance.run(text, "--explore", "--emit=vm")
    if status == 1 and error.count("error[E-DATAFLOW-KERNEL]") == 1 and "VISA_LONG" in os.environ:  # too large, or half a byte
        return None
    assert status == 0, error
    got = conformance.model(written)["contractions"][0]
    machine, model = simulated(folder, written), got["cycle_model"]
    packet, rows = int(written.split("iPar ")[1].split(",")[0]), int(written.split("wPar ")[1].split(",")[0])
    k_padded, n_padded = -(-k // packet) * packet, -(-n // rows) * rows
    assert cycles == m * (k // i_par) * (n // w_par), "the explored L is not its formula"
    assert got["L"] == m * (k_padded // packet) * (n_padded // rows), "the kernel's L is not its formula"
    assert machine == model["cycles"], "the report has other cycles than the model's listing"
    assert (k_padded, n_padded) != (k, n) or (i_par, w_par, cycles) == (packet, rows, got["L"]), "a shape that tiles has another point"
    stream = max(got["stream_cycles"] - got["L"], 0)
    rest = machine - got["L"] - stream - model["fill_cycles"] - model["drain_cycles"]
    why = [f"K padded to {k_padded}"] * (k_padded != k) + [f"N padded to {n_padded}"] * (n_padded != n)
    why += [f"{stream} for flits, one per cycle"] * (stream > 0) + [f"{model['fill_cycles']} to fill"]
    why += [f"{model['drain_cycles']} to drain"] * (model["drain_cycles"] > 0) + [f"{rest} for {model['binds']}"] * (rest != 0)
    assert rest >= 0 and (rest == 0 or model["binds"] in ENGINES), "a difference without an engine"
    return [m, n, k, dtype, f"{i_par} × {w_par}", cycles, f"{packet} × {rows}", got["L"], machine, ", ".join(why)]


def random_shapes(count):
    rng = random.Random(7)
    return [(rng.randint(1, 200), rng.randint(1, 64), rng.randint(1, 400), rng.choice(["bf16", "i8", "i4", "f8e4m3", "f8e5m2"])) for _ in range(count)]


def compiled():
    """Every contraction of the examples and cases: L, the model's intervals and the cycle model's figure hang together."""
    count, faults = 0, []
    paths = sorted(glob.glob(os.path.join(visa_tools.SOURCE, "examples", "*.vm")) + glob.glob(os.path.join(visa_tools.SOURCE, "test", "cases", "*.vm")))
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            if ".contract::" not in file.read() or path.endswith("-refused.vm"):
                continue
        done = visa_tools.run(["visac", path, "--emit=dataflow-json"])
        if done.status:
            continue  # a library of kernels for other commands
        for c in json.loads(done.out)["contractions"]:
            count += 1
            one, model, bound = c["inputs"][0], c["cycle_model"], max(c["compute_cycles"], c["stream_cycles"])
            rest = model["cycles"] - bound - model["fill_cycles"] - model["drain_cycles"]
            if c["L"] != c["compute_cycles"] or one["eII"] * one["num_blocks"] != c["L"] or c["cycles"] != bound or rest < 0 or (rest and model["binds"] not in ENGINES):
                faults.append(f"{os.path.basename(path)}: {c['name']}, line {c['line']}: L {c['L']}, bound {bound}, {model}")
    return count, faults


def main():
    faults, lines, refused = [], HEAD, 0
    with tempfile.TemporaryDirectory() as folder:
        shapes = SHAPES + (random_shapes(200) if "VISA_LONG" in os.environ else [])
        for number, shape in enumerate(shapes):
            try:
                cells = row(folder, *shape)
                refused += cells is None
                lines += "| " + " | ".join(map(str, cells)) + " |\n" if number < len(SHAPES) else ""
            except AssertionError as fault:
                faults.append(f"{shape}: {fault}")
    count, more = compiled()
    print("\n".join(more + [f"{count} contractions of examples and cases, {len(more)} faults"]))
    faults += more
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    if page[begin:end] != lines and "--update" in sys.argv and not faults:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(page[:begin] + lines + page[end:])
    elif page[begin:end] != lines:
        faults.append("the table of docs/dataflow.md is another one: dataflow_table.py --update")
    print("\n".join(faults + [f"{len(shapes)} shapes, {refused} without a kernel, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
