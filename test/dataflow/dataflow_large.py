#!/usr/bin/env python3
"""Dataflow items with sizes of 1, primes, and powers up to 2^62, against integers without a limit: every figure exact, or refused where one passes
2^62. Design spaces of large sizes, against all points. What is no model at all: refused, quickly. Usage: dataflow_large.py [SEED]"""
import fractions
import itertools
import math
import random
import sys

import os
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import dataflow_conformance as conformance

LIMIT = 1 << 62
PRIMES = [2, 3, 5, 7, 97, 8191, 131071, 1000003, 2147483647, 1099511627689]


def size(rng, most_bits):
    """A size and its prime factors: 1, a prime, a power of two, or a product."""
    kind, n, factors = rng.randint(0, 4), 1, []
    if kind == 1:
        factors = [rng.choice(PRIMES)]
    if kind == 2:
        factors = [2] * rng.randint(1, most_bits)
    if kind > 2:
        factors = [rng.choice(PRIMES[:6]) for _ in range(rng.randint(1, 4))]
    for f in list(factors):
        if n * f > 1 << most_bits:
            factors.remove(f)
        else:
            n *= f
    return n, factors


def part(rng, factors):
    """A divisor."""
    return math.prod(f for f in factors if rng.random() < 0.5)


def face(rng, key):
    rank = rng.choice([1, 1, 2, 3, 8])
    found = {"tensor": [], "block": [], key: []}
    for _ in range(rank):
        (block, of_block), (blocks, of_blocks) = size(rng, 44 // rank + 4), size(rng, 40 // rank + 2)
        found["tensor"].append(block * blocks)
        found["block"].append(block)
        found[key].append(part(rng, of_block if key == "iPar" else of_blocks))
    return found


def blocks_of(f):
    return math.prod(f["tensor"]) // math.prod(f["block"])


def figures(inputs, weights, output, batch):
    """Every figure, by the seed's formulas, and the largest number that occurs in one."""
    groups = max([blocks_of(w) // math.prod(w["wPar"]) for w in weights], default=1)
    cii = [math.prod(i["block"]) // math.prod(i["iPar"]) for i in inputs]
    streams = [math.prod(i["iPar"]) for i in inputs]
    latencies = [c * groups * blocks_of(i) for c, i in zip(cii, inputs)]
    worst = cii.index(max(cii))
    per_weight = [max(fractions.Fraction(math.prod(w["wPar"]) * s * math.prod(w["block"]), math.prod(i["block"])) for s, i in zip(streams, inputs)) for w in weights]
    out = fractions.Fraction(streams[worst] * batch * math.prod(output), math.prod(inputs[worst]["block"]))
    physical = out * max([math.prod(w["wPar"]) for w in weights], default=1)
    seen = [math.prod(f["tensor"]) for f in inputs + weights] + [math.prod(f["block"]) * batch for f in inputs] + [math.prod(output) * batch]
    seen += [c * groups for c in cii] + latencies + [s * batch * 8 for s in streams] + [math.ceil(s) * 8 for s in per_weight + [out, physical]]
    seen += [n for s in per_weight + [out, physical] for n in (s.numerator, s.denominator)]
    expect = {"inputs": [{"cII": c, "eII": c * groups, "latency": latency, "stream_elements": s * batch, "num_blocks": blocks_of(i)}
                         for c, latency, s, i in zip(cii, latencies, streams, inputs)],
              "weights": [{"num_blocks": blocks_of(w), "stream_elements": ratio(s)} for w, s in zip(weights, per_weight)],
              "outputs": [{"stream_elements": ratio(out), "physical_elements": ratio(physical)}], "L": max(latencies)}
    parts = conformance.words(inputs, weights, [{"block": output}])
    blocks = max([blocks_of(w) for w in weights], default=1)
    seen.append(blocks_of(inputs[worst]) * blocks * math.prod(output))
    words = [math.prod(w["wPar"]) * (n or 1) * 8 for n, w in zip(parts[0], weights)] + [-(-blocks // groups) * (parts[1][0] or 1) * batch * 8]
    return expect, max(seen), None in sum(parts, []), max(words)


def ratio(f):
    return f.numerator if f.denominator == 1 else str(f)


def check_models(rng, count):
    faults, refused = [], 0
    for n in range(count):
        inputs, weights = [face(rng, "iPar") for _ in range(rng.randint(1, 3))], [face(rng, "wPar") for _ in range(rng.randint(0, 2))]
        output, batch = [size(rng, 20)[0]], rng.choice([1, 1, 3, 1 << 20])
        expect, most, irregular, words = figures(inputs, weights, output, batch)
        text = conformance.item(inputs, weights, [{"block": output}], extra=f"batch: {batch}")
        status, out, error = conformance.run(text, "--emit=dataflow-json")
        if most <= LIMIT and (irregular or words > LIMIT):
            refused += 1
            if status != 1 or not (irregular and "error[E-DATAFLOW-STREAM]" in error or words > LIMIT and "error[E-DATAFLOW-SIZE]" in error):
                faults.append(f"model {n}: {irregular} {words}: status {status} {error[:200]}")
        elif most > LIMIT:
            refused += 1
            if status != 1 or not ("error[E-DATAFLOW-SIZE]" in error and "2^62" in error or "error[E-LEX]" in error and "63 bits" in error):
                faults.append(f"model {n}: {most} is past 2^62: status {status} {error[:200]}")
        elif status:
            faults.append(f"model {n}: nothing is past 2^62: {error[:200]}")
        else:
            faults += [f"model {n}{d}" for d in conformance.differences(expect, conformance.json.loads(out)["items"][0])]
    return f"{count} models of large sizes, {refused} refused", faults


def divisors(factors):
    found = {1}
    for f in factors:
        found |= {d * f for d in found}
    return sorted(found)


def check_spaces(rng, count):
    """All points by enumeration: how many, the front, and each way's cycles and multipliers."""
    faults = []
    for n in range(count):
        dims = [size(rng, 24 if k == 1 else 14) for k in range(3)]  # two of the input's block, then the weight's blocks
        rows = rng.choice([1, 7, 4096])
        (a, b, w), lists = [d[0] for d in dims], [divisors(d[1]) for d in dims]
        text = conformance.item([{"tensor": [a * rows, b], "block": [a, b]}], [{"tensor": [w, 3], "block": [1, 3], "dtype": "u3"}], [{"block": [1, 1]}])
        most = rng.choice([0, 0, 100, 1 << 16])
        points = [(a * b // (p * q) * (w // r) * rows, p * q * r, p, q, r) for p, q, r in itertools.product(*lists) if not most or p * q * r <= most]
        tiling = [p for p in points if None not in sum(conformance.words([{"block": [a, b], "iPar": p[2:4]}], [{"block": [1, 3]}], [{"block": [1, 1]}]), [])]
        best, front = math.inf, set()
        for multipliers, latency in sorted({(p[1], p[0]) for p in tiling}):
            if latency < best:
                best = latency
                front.add((latency, multipliers))
        ways = {c: sum(1 for p in tiling if p[:2] == c) for c in front}
        legal, table = conformance.explore(text, *([f"--limit=multipliers={most}"] if most else []))
        shown = {(r["L"], r["multipliers"]): r["ways"] for r in table}
        rows_of = sorted((r["L"], r["multipliers"], r.get("i0.0", 1), r.get("i0.1", 1), r.get("w0.0", 1)) for r in table)
        expect = sorted(p for p in tiling if p[:2] in front)
        if legal != len(points) or shown != ways or (max(ways.values()) <= 64 and rows_of != expect) or not set(rows_of) <= set(expect):
            faults.append(f"space {n}: {text.strip()}: {legal} points instead of {len(points)}, or another front")
    return f"{count} design spaces of large sizes", faults


HOSTILE = [("tensor: [1 << 63], block: [1]", "E-"), ("tensor: [-1], block: [1]", "E-"), ("tensor: [4], block: [0]", "E-DATAFLOW-SIZE"), ("tensor: [4], block: [5]", "E-DATAFLOW-TILE"),
           ("tensor: [4611686018427387847], block: [2]", "E-DATAFLOW-TILE"), ("tensor: [4], block: [4], i_par: [1 << 62]", "E-DATAFLOW-PARALLEL"),
           ("tensor: [4], block: [4], i_par: -4", "E-DATAFLOW-PARALLEL"), ("tensor: [4, 4], block: [4]", "E-DATAFLOW-RANK"), ("tensor: [[4]], block: [4]", "E-"),
           ("tensor: [1, 1, 1, 1, 1, 1, 1, 1, 1], block: [1]", "E-DATAFLOW-ITEM"), ("tensor: [4 / 0], block: [4]", "E-"), ("tensor: x, block: [4]", "E-"), ("tensor: , block: [4]", "E-"),
           ("tensor: [4611686018427387904], block: [1], i_par: 1, latency: 4611686018427387904", ""), ("tensor: [4], block: [4], cii: 1 << 62, eii: 9", ""),
           ("tensor: [4611686018427387904], block: [4611686018427387904], i_par: 4611686018427387904", "E-DATAFLOW-SIZE")]


STEPS = 10_000_000  # of a compilation: a hostile item that took more would be refused for that, with another id


def check_hostile():
    faults = []
    for fields, rule in HOSTILE:
        text = f'const X: Dataflow = Dataflow {{ inputs: [Input {{ name: "x", {fields}, dtype: i8 }}], outputs: [Output {{ name: "y", block: [1], dtype: i64 }}] }};\n'
        for options in (["--emit=dataflow"], ["--emit=dataflow-json"], ["--explore"], ["--explore", "--emit=vm"]):
            done = visa_tools.run(["visac", "-", *options, f"--max-steps={STEPS}"], text.encode())
            if done.crashed or done.status not in ((1,) if rule else (0, 1)) or rule.encode() not in done.err or (done.status and done.out):
                faults.append(f"{fields} {options}: status {done.status} {done.text()[:300]}")
    for extra in ("batch: 0", "batch: -1", "batch: 4611686018427387904", "clock_hz: -1"):
        done = visa_tools.run(["visac", "-", "--emit=dataflow"], conformance.item([{"tensor": [4], "block": [4]}], [], [{"block": [1]}], extra=extra).encode())
        if done.crashed or done.status != 1 or b"E-DATAFLOW-SIZE" not in done.err:
            faults.append(f"{extra}: status {done.status} {done.text()[:300]}")
    return f"{len(HOSTILE) + 4} hostile items", faults


def main():
    rng, failed = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1), 0
    for what, faults in (check_models(rng, 60), check_spaces(rng, 20), check_hostile()):
        print("\n".join(faults[:5] + [f"{what}, {len(faults)} faults"]))
        failed += len(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
