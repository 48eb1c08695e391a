#!/usr/bin/env python3
"""Published figures of the dataflow model: expected cycles of FINN's layers, networks and folding search, Brainsmith's examples, the sizes of design
spaces and the answers to questions about them. Nothing is read from elsewhere: layer by layer as FINN's tests and notebooks have them."""
import csv
import io
import itertools
import json
import random
import sys

import os
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402, F401 (finds the rooms)
import dataflow_conformance as conformance

NETWORKS = {  # (MW, MH, SIMD, PE, input vectors) of each layer, cycles
    "TFC 784-64-64-64-10": ([(784, 64, 49, 16, 1), (64, 64, 8, 8, 1), (64, 64, 8, 8, 1), (64, 10, 8, 10, 1)], [64, 64, 64, 8]),
    "LFC 784-1024-1024-1024-10": ([(784, 1024, 49, 32, 1), (1024, 1024, 32, 64, 1), (1024, 1024, 64, 32, 1), (1024, 10, 8, 10, 1)], [512, 512, 512, 128]),
    "CNV, large folding": ([(27, 64, 3, 16, 900), (576, 64, 32, 32, 784), (576, 128, 32, 16, 144), (1152, 128, 32, 16, 100), (1152, 256, 32, 4, 9),
                            (2304, 256, 32, 1, 1), (256, 512, 4, 1, 1), (512, 512, 8, 1, 1), (512, 10, 1, 5, 1)],
                           [32400, 28224, 20736, 28800, 20736, 18432, 32768, 32768, 1024]),
}
LAYERS = [  # FINN's layer, its parameters, cycles by its formula
    ("VVAU", {"Ch": 32, "k": 3, "PE": 8, "SIMD": 3, "oh": 8, "ow": 8}, 32 * 9 // 8 // 3 * 64), ("VVAU", {"Ch": 4, "kh": 5, "kw": 1, "PE": 1, "oh": 3, "ow": 2}, 120),
    ("Thresholding", {"C": 64, "PE": 16, "N": 2, "H": 8, "W": 4}, 256), ("AddStreams", {"C": 64, "PE": 16, "H": 8, "W": 8}, 256), ("Concat", {"C": 48, "PE": 12, "H": 5, "W": 7}, 140),
    ("ChannelwiseOp", {"C": 6, "PE": 3, "H": 4, "W": 4}, 32), ("DuplicateStreams", {"C": 7, "PE": 7, "N": 3, "H": 2, "W": 2}, 12),
    ("Pool", {"C": 32, "k": 2, "PE": 8, "out": 4, "batch": 3}, 32 * 4 // 8 * 16 * 3), ("GlobalAccPool", {"C": 64, "PE": 8, "H": 7, "W": 7}, 400),
    ("LabelSelect", {"Labels": 1000, "PE": 20}, 50), ("FMPadding", {"C": 32, "SIMD": 8, "out": [34, 34], "batch": 1}, 4624),
    ("DownSampler", {"C": 32, "SIMD": 8, "in": 16, "batch": 1}, 1024), ("UpsampleNearestNeighbour", {"out": 32, "batch": 2}, 2048), ("Lookup", {"inputs": 77}, 77),
]
FOLDING = [  # MW, MH, vectors, weight bits, target cycles: SIMD, PE, cycles; at most 36 bits per PE
    ((128, 128, 1, 4, 166666), (1, 1, 16384)), ((128, 128, 1, 4, 2000), (16, 1, 1024)), ((128, 128, 1, 4, 20), (8, 128, 16)), ((784, 64, 1, 1, 1000), (28, 2, 896)),
]


def item_cycles(mw, mh, simd, pe, vectors):
    return {"MW": mw, "MH": mh, "SIMD": simd, "PE": pe, "numInputVectors": vectors}


def check_mvau():
    """(item, cycles) of the matrix-vector unit's tests, all in one file."""
    cases = [(item_cycles(16, 16, 16 // sf, 16 // nf, 1), sf * nf) for nf, sf in itertools.product((16, 2, 1), repeat=2)]
    cases += [(item_cycles(128, 18, simd, pe, 9), 9 * (18 // pe) * (128 // simd)) for pe in (1, 9, 18) for simd in (1, 64, 128)]
    cases += [(item_cycles(128, 128, 1, 1, 1), 16384), (item_cycles(32, 32, 4, 4, 1), 64), (item_cycles(600, 64, 1, 1, 1), 38400), (item_cycles(600, 64, 5, 2, 1), 3840)]
    items = conformance.model("".join(conformance.mvau(p, f"M{n}") for n, (p, _) in enumerate(cases)))["items"]
    return len(cases), [f"{p}: {i['L']} and not {cycles}" for i, (p, cycles) in zip(items, cases) if i["L"] != cycles] + [
        f"{p}: the weights' stream is not PE x SIMD" for i, (p, _) in zip(items, cases) if i["weights"][0]["stream_elements"] != p["PE"] * p["SIMD"]]


def check_networks():
    faults = []
    for name, (layers, cycles) in NETWORKS.items():
        text = "".join(conformance.mvau(item_cycles(*layer), f"L{n}", "clock_hz: 100_000_000") for n, layer in enumerate(layers))
        items = conformance.model(text)["items"]
        got = [i["L"] for i in items]
        worst = got.index(max(got))
        if got != cycles:
            faults.append(f"{name}: {got} and not {cycles}")
        if name.startswith("CNV") and round(items[worst]["inferences_per_second"], 1) != 3051.8:
            faults.append(f"{name}: {items[worst]['inferences_per_second']} images/s")
    return len(NETWORKS), faults


def check_layers():
    got = [(layer, p, conformance.model(conformance.finn_layer(layer, p))["items"][0]["L"], cycles) for layer, p, cycles in LAYERS]
    return len(got), [f"{layer} {p}: {cycles} and not {expect}" for layer, p, cycles, expect in got if cycles != expect]


def check_folding():
    faults = []
    for (mw, mh, vectors, bits, target), (simd, pe, cycles) in FOLDING:
        faults += conformance.check_finn_folding({"MW": mw, "MH": mh, "numInputVectors": vectors, "weight_bits": bits, "target_cycles": target, "max_weight_stream_bits_per_pe": 36},
                                                 {"SIMD": simd, "PE": pe, "cycles": cycles})
    return len(FOLDING), faults


def fold(mw, mh, bits, target, limit):
    """FINN's folding of one layer: SIMD, PE, cycles."""
    divisors = lambda n: [d for d in range(1, n + 1) if n % d == 0]
    simd, pe, before = 1, 1, 1
    for simd in divisors(mw):
        if mh * (mw // simd) < target:
            break
        if simd > 1 and bits * simd > limit:
            simd = before
            break
        before = simd
    if mh * (mw // simd) >= target:
        for pe in divisors(mh):
            if mh // pe * (mw // simd) < target:
                break
    return simd, pe, mh // pe * (mw // simd)


def check_chains():
    """Networks folded together, the second pass included, against the rule; JSON against CSV of each item."""
    faults, rng, again = [], random.Random(1), 0
    for n in range(30):
        layers = [(rng.choice([8, 12, 27, 64, 96]), rng.choice([4, 10, 16, 64]), rng.choice([1, 2, 4])) for _ in range(rng.randrange(2, 6))]
        target = rng.choice([2, 5, 17, 40, 65, 200, 1000])
        text = "".join(conformance.mvau({"MW": mw, "MH": mh, "numInputVectors": 1, "SIMD": 1, "PE": 1}, f"L{i}").replace("dtype: i8 }], outputs", f"dtype: u{bits} }}], outputs")
                       for i, (mw, mh, bits) in enumerate(layers))
        status, out, error = conformance.run(text, "--explore", "--search=folding", f"--target-cycles={target}", "--limit=block-bits=36", "--emit=json")
        if status:
            faults.append(error)
            continue
        got, want = json.loads(out), [fold(mw, mh, bits, target, 36) for mw, mh, bits in layers]
        slowest = max(w[2] for w in want)
        if slowest > target:
            again += 1
            want = [fold(mw, mh, bits, slowest, 36) for mw, mh, bits in layers]
        ours = [(next(iter(c["i0"][1:2]), 1), c["w0"][0], i["front"][0]["L"]) for i in got["items"] for c in [i["front"][0]["choices"][0]["parallel"]]]
        if ours != want or got["L"] != max(w[2] for w in want) or got["multipliers"] != sum(s * p for s, p, _ in want):
            faults.append(f"{layers} to {target}: {ours}, by the rule {want}")
        status, out, _ = conformance.run(text, "--explore=L1", "--emit=json")
        front = json.loads(out)["front"]
        _, table, _ = conformance.run(text, "--explore=L1", "--emit=csv")
        rows = [(int(r["L"]), int(r["multipliers"])) for r in csv.DictReader(io.StringIO(table))]
        if [(p["L"], p["multipliers"]) for p in front for _ in p["choices"]] != rows:
            faults.append(f"JSON and CSV of {layers[1]} differ")
    if again < 5:
        faults.append(f"{again} networks needed a second pass; too few to say anything")
    return 30, faults


def check_spaces():
    """How many points, and what is asked of them."""
    faults = []
    for block, blocks, points in ((600, 64, 168), (784, 64, 105), (97, 13, 4), (1024, 1024, 121)):
        legal, _ = conformance.explore(conformance.space({"block_I": block, "num_blocks_W": blocks}))
        faults += [] if legal == points else [f"{block} x {blocks}: {legal} points and not {points}"]
    for block, cycles, multipliers, choices in ((784, 512, 98, [[49, 2], [98, 1]]), (600, 3840, 10, [[5, 2], [10, 1]])):
        faults += conformance.check_dse_min({"block_I": block, "num_blocks_W": 64, "max_eII": cycles}, {"min_multipliers": multipliers, "choices": choices})
    _, rows = conformance.explore(conformance.space({"block_I": 600, "num_blocks_W": 64, "weight_bits": 2}), "--limit=weight-bits=64")
    fastest = [r for r in rows if r["L"] == min(row["L"] for row in rows)]
    if fastest[0]["L"] != 1200 or fastest[0]["ways"] != 4 or len(fastest) != 4:
        faults.append(f"64 bits of weights: {fastest}")
    return 7, faults


def check_padding():
    """Brainsmith rounds up; its documentation's 99,456 for the second is a slip."""
    faults = []
    for tensor, block, stream, cycles in (([100, 64], [32, 16], [8, 4], 256), ([1, 224, 224, 64], [1, 32, 32, 64], [1, 1, 1, 32], 100352), ([768], [768], [64], 12)):
        got = conformance.model(conformance.item([{"tensor": tensor, "block": block, "iPar": stream}], [], [{"block": [1]}], extra="pads: true"))["items"][0]["L"]
        faults += [] if got == cycles else [f"{tensor} in {block} by {stream}: {got} and not {cycles}"]
    return 3, faults


def main():
    failed = 0
    for what, (count, faults) in (("matrix-vector units", check_mvau()), ("networks", check_networks()), ("layers", check_layers()), ("foldings", check_folding()), ("networks folded together", check_chains()),
                                  ("questions about design spaces", check_spaces()), ("padded tensors", check_padding())):
        print("\n".join(faults + [f"{count} {what}, {len(faults)} faults"]))
        failed += len(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
