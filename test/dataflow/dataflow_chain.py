#!/usr/bin/env python3
"""Items folded together: `--search=chain` against every combination of every iPar and wPar of small chains: front, targets in cycles and in inferences
per second, limits; what is told where nothing fits is taken. What programs read (--explore and --emit=dataflow-json) is as docs/explore.schema.json and
docs/dataflow.schema.json say, and the points of its choices are those of items that are written so. --sweep over
items has the rows of the same enumeration. Usage: dataflow_chain.py [SEED]"""
import itertools
import json
import math
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import dataflow_conformance as conformance
import dataflow_random

CLOCK = 1000


def schema(name):
    try:
        import jsonschema
    except ImportError:
        sys.exit("the Python module jsonschema is missing: install python3-jsonschema")
    with open(os.path.join(visa_tools.SOURCE, "docs", f"{name}.schema.json"), encoding="utf-8") as file:
        return jsonschema.Draft202012Validator(json.load(file))


def draw(rng):
    """An item: rows of K against N weights, or rows alone, or a block of two dimensions."""
    k, n, m = rng.choice([1, 4, 6, 7, 12]), rng.choice([1, 3, 4, 8]), rng.choice([1, 2, 5])
    tall = rng.choice([1, 1, 2])
    inputs = [{"tensor": [m * tall, k], "block": [tall, k]}]
    weights = [{"tensor": [n, k], "block": [1, k], "dtype": "u3"}] if rng.random() < 0.8 else []
    return inputs, weights, [{"block": [1, 1]}]


def points(m, most):
    """All points within the limits: cycles, multipliers."""
    (face,), weights = m[0], m[1]
    rows = math.prod(face["tensor"]) // math.prod(face["block"])
    blocks = weights[0]["tensor"][0] if weights else 1
    for p, q, w in itertools.product(*[dataflow_random.divisors(n) for n in (*face["block"], blocks)]):
        if (most and w > most) or None in sum(conformance.words([{**face, "iPar": [p, q]}], *m[1:]), []):
            continue
        yield math.prod(face["block"]) // (p * q) * (blocks // w) * rows, p * q * w


def combinations(chain, rows):
    """Each way to take one point of each: cycles of the slowest, multipliers together."""
    return {(max(p[0] for p in one), sum(p[1] for p in one)) for one in itertools.product(*[set(points(m, rows)) for m in chain])}


def front(every):
    best, found = math.inf, []
    for latency, multipliers in sorted(every):
        if multipliers < best:
            best = multipliers
            found.append({"L": latency, "multipliers": multipliers})
    return found


def choices_agree(items, source, got):
    """Items at the choices that are listed have the cycles that are reported."""
    faults = []
    for item, m in zip(got["items"], items):
        point = item["front"][0]
        for way in point["choices"]:
            at = ([{**m[0][0], "iPar": way["parallel"]["i0"]}], [{**w, "wPar": way["parallel"]["w0"]} for w in m[1]], m[2])
            if conformance.model(conformance.item(*at))["items"][0]["L"] != point["L"]:
                faults.append(f"{source}: {item['model']} at {way['parallel']} is not done in {point['L']}")
    return faults


def check_chains(rng, count):
    validator, faults = schema("explore"), []
    for _ in range(count):
        items = [draw(rng) for _ in range(rng.randint(1, 3))]
        source = "".join(conformance.item(*m, f"L{n}", f"clock_hz: {CLOCK}") for n, m in enumerate(items))
        rows = rng.choice([0, 0, 2])
        every = combinations(items, rows)
        options = ["--explore", "--search=chain", "--emit=json"] + ([f"--limit=rows={rows}"] if rows else [])
        status, out, error = conformance.run(source, *options)
        if status or json.loads(out)["front"] != front(every):
            faults.append(f"{source}: the front is {out[:300]} {error[:300]} and not {front(every)}")
            continue
        for _ in range(3):
            target, most = rng.choice([0, rng.choice(list(every))[0] + rng.choice([0, 0, 1, -1])]), rng.choice([0, 0, rng.choice(list(every))[1] + rng.choice([0, 0, 1, -1])])
            if target < 0 or most < 0 or (rows and most):
                continue
            fitting = [c for c in every if (not target or c[0] <= target) and (not most or c[1] <= most)]
            best = (min(fitting, key=lambda c: (c[1], c[0])) if target else min(fitting)) if fitting else None
            as_rate = target and rng.random() < 0.5 and CLOCK // (CLOCK // target or 1) == target
            said = ([f"--target-rate={CLOCK // target}"] if as_rate else [f"--target-cycles={target}"] if target else []) + ([f"--limit=multipliers={most}"] if most else [])
            status, out, error = conformance.run(source, *options, *said)
            if best is None:
                told = [re.findall(r"--[a-z=-]+=\d+", way) for way in error.split("help: ")[-1].split(", or ")]
                if status != 1 or "E-DATAFLOW-EXPLORE" not in error or not told[0]:
                    faults.append(f"{source} {said}: nothing fits, and status is {status} {error[:300]}")
                for way in told:
                    keys = [one.rsplit("=", 1)[0].replace("cycles", "rate" if as_rate else "cycles") for one in way]
                    again = [s for s in said if not s.startswith(tuple(keys))] + way
                    if way and conformance.run(source, *options, *again)[0]:
                        faults.append(f"{source} {said}: told {way}, which fits neither")
                continue
            got = json.loads(out) if status == 0 else {"items": []}
            if status or (got["L"], got["multipliers"]) != best:
                faults.append(f"{source} {said}: {error[:200]} {got.get('L')}, {got.get('multipliers')} and not {best}")
                continue
            faults += [f"{source}: {e.message}" for e in validator.iter_errors(got)] + choices_agree(items, source, got)
            slowest = [i["front"][0]["L"] for i in got["items"]]
            if max(slowest) != got["L"] or sum(i["front"][0]["multipliers"] for i in got["items"]) != got["multipliers"] or got["bottleneck"] != f"L{slowest.index(got['L'])}":
                faults.append(f"{source}: the items are not their sum")
    return count, faults


def check_links():
    """What leaves an item and what enters the next: words at the points that are taken, and tensors that differ."""
    faults = []
    items = [([{"tensor": [1, 8], "block": [1, 8]}], [{"tensor": [6, 8], "block": [1, 8]}], [{"block": [1, 1], "dtype": "i4"}]),
             ([{"tensor": [1, 6], "block": [1, 6], "dtype": "i4"}], [{"tensor": [5, 6], "block": [1, 6]}], [{"block": [1, 1]}]),
             ([{"tensor": [1, 4], "block": [1, 4]}], [], [{"block": [1, 4]}])]
    source = "".join(conformance.item(*m, f"L{n}") for n, m in enumerate(items))
    for options in (["--search=chain", "--target-cycles=6"], ["--search=folding", "--target-cycles=7"], ["--search=chain", "--target-cycles=48"]):
        status, out, error = conformance.run(source, "--explore", "--emit=json", *options)
        if status:
            faults.append(f"{options}: {error}")
            continue
        got = json.loads(out)
        faults += [f"{options}: {e.message}" for e in schema("explore").iter_errors(got)]
        text = ""
        for n, (m, item) in enumerate(zip(items, got["items"])):
            chosen = item["front"][0]["choices"][0]["parallel"]
            text += conformance.item([{**m[0][0], "iPar": chosen["i0"]}], [{**w, "wPar": chosen["w0"]} for w in m[1]], m[2], f"L{n}")
        at = conformance.model(text)["items"]
        for n, link in enumerate(got["links"]):
            out_face, in_face = at[n]["outputs"][0], at[n + 1]["inputs"][0]
            expect = {"from": f"L{n}", "to": f"L{n + 1}", "output": "o0", "input": "i0", "word_out": out_face["word_elements"], "word_in": in_face["word_elements"],
                      "elements_out": math.prod(out_face["calculated_tensor"]), "elements_in": math.prod(in_face["tensor"]), "width_converter": out_face["word_bits"] != in_face["word_bits"]}
            if link != expect:
                faults.append(f"{options}: {link} instead of {expect}")
    return 3, faults


def check_schemas(rng, count):
    """Single items and listings, too; the schemas refuse what is not in them."""
    spaces, listings, faults = schema("explore"), schema("dataflow"), []
    for _ in range(count):
        m = dataflow_random.tiling_model(rng)
        text = conformance.item(*m, extra=rng.choice(["", "batch: 2, clock_hz: 7,", 'config: [Config { name: "c", a: 1 }], pads: true,']))
        faults += [f"{text}: {e.message}" for e in listings.iter_errors(conformance.model(text))]
        for options in ([], ["--target-cycles=20"], ["--limit=multipliers=4,rows=2"], ["--search=folding", "--target-cycles=9"], ["--search=chain"]):
            status, out, error = conformance.run(text, "--explore", "--emit=json", *options)
            faults += [f"{text} {options}: {e.message}" for e in spaces.iter_errors(json.loads(out))] if status == 0 else [] if "E-DATAFLOW" in error else [f"{text} {options}: {error}"]
    listing = json.loads(visa_tools.run(["visac", os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), "--emit=dataflow-json"]).out)
    faults += [f"matmul.vm: {e.message}" for e in listings.iter_errors(listing)]
    space = json.loads(conformance.run(text, "--explore", "--emit=json")[1])
    for good, validator, change in ((space, spaces, {"front": [{}]}), (space, spaces, {"more": 1}), (space, spaces, {"format": 2}), (listing, listings, {"items": [{}]}), (listing, listings, {"more": 1})):
        if validator.is_valid({**good, **change}):
            faults.append(f"{change} is taken by the schema")
    return count, faults


def check_sweeps(rng, count):
    """--sweep over iPar and wPar: every combination a row, with the cycles and multipliers of the enumeration and the bits of its listing; what does not
    tile is refused; the front is that of --explore. Items, kernels and stream programs of one file have a table each."""
    faults = []
    for _ in range(count):
        (face,), weights, outputs = draw(rng)
        tall, k = face["block"]
        weights = weights or [{"tensor": [3, k], "block": [1, k], "dtype": "u3"}]
        n = weights[0]["tensor"][0]
        text = f"const I: u32 = 1;\nconst W: u32 = 1;\n{conformance.item([{**face, 'iPar': [1, 'I']}], [{**weights[0], 'wPar': ['W', 1]}], outputs, 'L', f'clock_hz: {CLOCK}')}".replace('"I"', "I").replace('"W"', "W")
        most = {(p, w): (cycles, all) for p in dataflow_random.divisors(k) for w in dataflow_random.divisors(n)
                for cycles, all in [(tall * (k // p) * (n // w) * (math.prod(face["tensor"]) // (tall * k)), p * w)]}
        named, wrong = [list(dataflow_random.divisors(k)), list(dataflow_random.divisors(n))], k + 1
        rng.shuffle(named[0])
        status, out, error = conformance.run(text, f"--sweep=I={','.join(map(str, named[0] + [wrong]))},W={','.join(map(str, named[1]))}")
        lines, rows = out.splitlines(), []
        for line in lines[1:1 + (len(named[0]) + 1) * len(named[1])]:
            word = line.split()
            if word[2] == "legal":
                rows.append((int(word[0]), int(word[1]), *map(int, word[4:8]), word[8]))
        legal = {}
        for p, w in most:
            listed, wrote, _ = conformance.run(text.replace("I: u32 = 1", f"I: u32 = {p}").replace("W: u32 = 1", f"W: u32 = {w}"), "--emit=dataflow-json")
            if listed == 0:
                at = json.loads(wrote)["items"][0]
                legal[p, w] = (*most[p, w], at["weights"][0]["stream_bits"], at["inputs"][0]["stream_bits"], f"{CLOCK / most[p, w][0]:.1f}")
        if status or {r[:2]: r[2:] for r in rows} != legal or f"{wrong:10} {named[1][0]:10}  refused  " not in out or not lines[0].endswith("inferences/s"):
            faults.append(f"{text}: swept {rows} and not {legal}: {out[:500]} {error[:300]}")
            continue
        ends = [line.split() for line in lines[lines.index("front: fewer cycles take more multipliers") + 2:]]
        if [{"L": int(e[3]), "multipliers": int(e[4])} for e in ends][::-1] != front(v[:2] for v in legal.values()):
            faults.append(f"{text}: the front is {ends} of {legal}")
    with open(os.path.join(visa_tools.SOURCE, "examples/matmul.vm"), encoding="utf-8") as kernel, \
            open(os.path.join(visa_tools.SOURCE, "examples/step/swiglu.vm"), encoding="utf-8") as program:
        both = kernel.read() + "const K_PAR: usize = 4;\n" + program.read() + conformance.item([{"tensor": [8], "block": [8], "iPar": ["K_PAR"]}], [], [{"block": [8]}], "EACH").replace('"K_PAR"', "K_PAR")
    status, out, error = conformance.run(both, "--sweep=K_PAR=2,8,3")
    said = [line.split()[:3] for line in out.splitlines() if " legal " in line]
    if status or out.count("K_PAR  ") != 3 or out.count("  refused  ") != 3 or said != [[n, "legal", w] for w in ("matmul", "swiglu", "EACH") for n in "28"]:
        faults.append(f"a kernel, a program and an item: {out[:900]} {error[:300]}")
    if conformance.run(both, "--sweep=K_PAR=3,5")[0] != 1:
        faults.append("a sweep without a legal value succeeds")
    return count, faults


def main():
    rng, failed = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1), 0
    for what, (count, faults) in (("chains", check_chains(rng, 25 * visa_tools.LONGER)), ("chains with links", check_links()), ("items by schema", check_schemas(rng, 12)), ("sweeps", check_sweeps(rng, 6))):
        print("\n".join([f[:600] for f in faults[:5]] + [f"{count} {what}, {len(faults)} faults"]))
        failed += len(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
