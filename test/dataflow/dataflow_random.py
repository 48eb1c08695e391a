#!/usr/bin/env python3
"""Dataflow models against brute force. Random items: a loop nest stepped cycle by cycle (input blocks, groups of weight blocks, chunks of a
block) counts cycles and elements. Design spaces: every pair of numbers is tried. Kernels that --explore writes: compiled, run against the
reference, and their cycles explained. Usage: dataflow_random.py [SEED]"""
import fractions
import itertools
import json
import math
import random
import re
import subprocess
import sys

import os
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import dataflow_conformance as conformance


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def face(rng, key):
    """An interface of 1 to 3 dimensions: sizes, and a parallelism that tiles block (input) or number of blocks (weight)."""
    rank = rng.randint(1, 3)
    block = [rng.choice([1, 2, 3, 4, 6]) for _ in range(rank)]
    blocks = [rng.choice([1, 1, 2, 3, 4]) for _ in range(rank)]
    of = block if key == "iPar" else blocks
    return {"tensor": [a * b for a, b in zip(block, blocks)], "block": block, key: [rng.choice(divisors(n)) for n in of]}


def nest(sizes):
    """A counter per dimension, as hardware counts; yields once per step."""
    counter = [0] * len(sizes)
    while True:
        yield
        for d in reversed(range(len(sizes))):
            counter[d] += 1
            if counter[d] < sizes[d]:
                break
            counter[d] = 0
        else:
            return


def count_input(one, weights):
    """Cycles of a calculation, an execution, an inference, and the elements that streamed in, by walking."""
    groups = max([sum(1 for _ in nest([t // b // p for t, b, p in zip(w["tensor"], w["block"], w["wPar"])])) for w in weights], default=1)
    cycles = elements = calculation = execution = 0
    for _ in nest([t // b for t, b in zip(one["tensor"], one["block"])]):
        at_block = cycles
        for group in range(groups):
            at_group = cycles
            for _ in nest([b // p for b, p in zip(one["block"], one["iPar"])]):
                cycles += 1
                if group == 0:  # a block arrives once; the other groups use it again
                    elements += math.prod(one["iPar"])
            calculation = cycles - at_group
        execution = cycles - at_block
    assert elements == math.prod(one["tensor"])
    return {"cII": calculation, "eII": execution, "latency": cycles}


def rational(x):
    return fractions.Fraction(x)


def value(formula, names):
    """A formula at numbers for its names, exactly."""
    return eval(re.sub(r"\b\d+\b", r"F(\g<0>)", formula), {"F": fractions.Fraction, "max": max, "ceil": math.ceil, **names})  # pylint: disable=eval-used


def symbols(m):
    """What iPar and wPar that are written as numbers are called."""
    found = {}
    for kind, key, faces in (("i", "iPar", m[0]), ("w", "wPar", m[1])):
        for number, f in enumerate(faces):
            room = f["block"] if key == "iPar" else [t // b for t, b in zip(f["tensor"], f["block"])]
            for d, (n, p) in enumerate(zip(room, f[key])):
                if n > 1:
                    found[f"{key}_{kind}{number}" + (f"_{d}" if sum(r > 1 for r in room) > 1 else "")] = rational(p)
    return found


def rename(rng, text):
    """Constants instead of some of the numbers in lists, and their values."""
    names = {}

    def one(match):
        if rng.random() < 0.5:
            return match[0]
        name = f"N{len(names)}"
        names[name] = rational(int(match[0]))
        return name
    text = re.sub(r"(?<=[\[ ])\d+(?=[,\]])", one, text)
    return "".join(f"const {n}: u32 = {v};\n" for n, v in names.items()) + text, names


def check_formulas(rng, count):
    """Formulas of an item say its figures, and those of the same item with other numbers for iPar and wPar."""
    faults = []
    for n in range(count):
        m = tiling_model(rng)
        while True:
            other = tuple([{**f, key: [rng.choice(divisors(b if key == "iPar" else t // b)) for t, b in zip(f["tensor"], f["block"])]} for f in faces]
                          for key, faces in zip(("iPar", "wPar"), m[:2]))
            if None not in sum(conformance.words(*other, [{"block": [1]}]), []):
                break
        text, names = rename(rng, re.sub(r"([iw])_par: \[.*?\]", lambda p: p[0].replace(", ", " , ").replace("[", "[ ").replace("]", " ]"),
                                         conformance.item(*m)))
        got, there = (conformance.model(t)["items"][0] for t in (text, conformance.item(*other, [{"block": [1]}])))
        for figures, at in ((got, symbols(m)), (there, symbols(other))):
            at.update(names)
            pairs = [(got["formula_L"], figures["L"])] + [(a["formulas"][k], b[k]) for a, b in zip(got["inputs"], figures["inputs"])
                                                          for k in ("cII", "eII", "latency", "stream_elements")]
            pairs += [(a["formulas"]["stream_elements"], b["stream_elements"]) for a, b in zip(got["weights"], figures["weights"])]
            pairs += [(a["formulas"]["stream_elements"], a["stream_elements"]) for a in got["outputs"] if figures is got]
            faults += [f"F{n}: {formula} is {value(formula, at)} and not {figure}" for formula, figure in pairs if value(formula, at) != rational(figure)]
    return count, faults


def random_model(rng):
    return ([face(rng, "iPar") for _ in range(rng.randint(1, 3))], [face(rng, "wPar") for _ in range(rng.randint(0, 3))], [{"block": [rng.randint(1, 6)]}])


def tiling_model(rng):
    """One whose streams tile their blocks."""
    while True:
        m = random_model(rng)
        if None not in sum(conformance.words(*m), []):
            return m


def check_models(rng, count):
    texts, refused, models, bad = "", "", [], 0
    for n in range(count):
        m = random_model(rng)
        if None in sum(conformance.words(*m), []):
            bad += sum(conformance.words(*m), []).count(None)
            refused += conformance.item(*m, f"R{n}")
            continue
        models.append(m)
        texts += conformance.item(*m, f"M{n}")
    faults = []
    status, _, error = conformance.run(refused, "--emit=dataflow", "-ferror-limit=0")
    if status != 1 or error.count("error[E-DATAFLOW-STREAM]") != bad or error.count("error[") != bad:
        faults.append(f"{bad} streams tile no block: status {status}, {error[:300]}")
    for n, ((inputs, weights, outputs), got) in enumerate(zip(models, conformance.model(texts)["items"])):
        expect = [count_input(i, weights) for i in inputs]
        faults += [f"M{n}{d}" for d in conformance.differences({"inputs": expect, "L": max(e["latency"] for e in expect)}, got)]
        worst = max(range(len(inputs)), key=lambda i: expect[i]["eII"])
        for i, e in zip(got["inputs"], expect):
            if i["stream_elements"] * e["cII"] != math.prod(i["block"]):
                faults.append(f"M{n}: {i['name']}: stream x cII is not the block")
        if len(inputs) == 1 and len(weights) == 1 and rational(got["weights"][0]["stream_elements"]) * expect[0]["eII"] != math.prod(weights[0]["tensor"]):
            faults.append(f"M{n}: stream_W x eII is not the weight tensor")
        o = got["outputs"][0]
        if rational(o["stream_elements"]) * expect[worst]["cII"] != math.prod(o["block"]):
            faults.append(f"M{n}: stream_O x cII is not the output block")
        faults += [f"M{n}: {fault}" for fault in check_shapes(inputs, weights, outputs, got, worst)]
    return count, faults


def check_shapes(inputs, weights, outputs, got, worst):
    """Words tile their tensors: put down one after the other, in the grid of the folded shape, they cover every element once. So many move per cycle."""
    of_weights, of_outputs = conformance.words(inputs, weights, outputs)
    blocks = max([math.prod(t // b for t, b in zip(w["tensor"], w["block"])) for w in weights], default=1)
    groups = max([math.prod(t // b // p for t, b, p in zip(w["tensor"], w["block"], w["wPar"])) for w in weights], default=1)
    calculated = math.prod(t // b for t, b in zip(inputs[worst]["tensor"], inputs[worst]["block"])) * blocks * math.prod(outputs[0]["block"])
    faults = []
    for g, elements, side in [(g, math.prod(i["iPar"]), 1) for g, i in zip(got["inputs"], inputs)] + \
            [(g, n, math.prod(w["wPar"])) for g, n, w in zip(got["weights"], of_weights, weights)] + [(got["outputs"][0], of_outputs[0], -(-blocks // groups))]:
        tensor = g.get("tensor", g.get("calculated_tensor"))
        shape, grid, word = g["tiled_shape"], g["folded_shape"][:-1], g["tiled_shape"]["word"]
        if math.prod(word) != elements * side or g["folded_shape"][-1] != elements * side:
            faults.append(f"{g['name']}: a word {word} is not {elements} of each of {side} blocks")
        if [a * b for a, b in zip(shape["blocks"], shape["words"])] != grid:
            faults.append(f"{g['name']}: {grid} are not {shape}")
        whole = (side == 1 or g in got["weights"] or blocks % side == 0) and math.prod(g["block"]) % elements == 0
        for t, n, w in zip(tensor, grid, word):
            covered = [e for k in range(n) for e in range(k * w, k * w + w)]
            if (covered != list(range(t))) if whole else len(covered) < t:
                faults.append(f"{g['name']}: {n} words of {w} do not tile {t} elements")
    if math.prod(got["outputs"][0]["calculated_tensor"]) != calculated:
        faults.append(f"{got['outputs'][0]['calculated_tensor']} are not {calculated} elements")
    for g in got["inputs"] + got["weights"]:
        if math.prod(g["block"]) % (g["word_elements"] // math.prod(g.get("wPar", [1]))) == 0 and g["word_elements"] != rational(g["stream_elements"]) * rational(g["cycles_per_word"]):
            faults.append(f"{g['name']}: a word every {g['cycles_per_word']} cycles is not the stream")
    return faults


def check_outputs(rng, count):
    """A stated output tensor: taken where it has as many blocks as are calculated, else refused with both numbers and one that is taken."""
    faults = []
    for n in range(count):
        m = tiling_model(rng)
        m = (m[0][:1], m[1][:1], [{"block": [1]}])
        blocks = math.prod(t // b for f in m[0] + m[1] for t, b in zip(f["tensor"], f["block"]))
        if None in sum(conformance.words(*m), []):
            continue
        for tensor in ([blocks], [1, blocks], [blocks, 1], [blocks + rng.randint(1, 9)], [1, 2 * blocks]):
            text = conformance.item(m[0], m[1], [{"tensor": tensor, "block": [1] * len(tensor)}])
            status, _, error = conformance.run(text, "--emit=dataflow")
            if math.prod(tensor) == blocks:
                faults += [f"O{n}: {tensor} of {blocks}: {error[:200]}"] if status else []
                continue
            if status != 1 or "error[E-DATAFLOW-OUTPUT]" not in error or f"has {math.prod(tensor)} block" not in error or f"and {blocks} " not in error:
                faults.append(f"O{n}: {tensor} of {blocks}: status {status} {error[:200]}")
                continue
            better = re.search(r"help: take `(tensor: \[.*?\])`", error)[1]
            if conformance.run(text.replace(f"tensor: {tensor}", better), "--emit=dataflow")[0]:
                faults.append(f"O{n}: {better} is refused, too")
    return count, faults


def check_help(rng, count):
    """What a refused stream is told to take is taken."""
    faults, seen = [], 0
    while seen < count:
        m = random_model(rng)
        m = (m[0][:1], [], m[2])
        if None not in sum(conformance.words(*m), []):
            continue
        seen += 1
        text = conformance.item(*m)
        _, _, error = conformance.run(text, "--emit=dataflow")
        said = re.search(r"note: iPar of `i0` in dimension (\d+)", error)
        values = re.search(r"help: take (\d+)(?: or (\d+))? there", error)
        choices = [{**m[0][0], "iPar": m[0][0]["block"]}]
        if values:
            choices = [{**m[0][0], "iPar": [int(v) if d == int(said[1]) else p for d, p in enumerate(m[0][0]["iPar"])]} for v in values.groups() if v]
        for one in choices:
            status, _, again = conformance.run(conformance.item([one], *m[1:]), "--emit=dataflow")
            faults += [f"{text}: told {one['iPar']}: {again[:200]}"] if status else []
        if conformance.run(conformance.item(*m, extra="pads: true"), "--emit=dataflow")[0]:
            faults.append(f"{text}: refused with pads")
    return seen, faults


def pareto(points):
    """Points of which no other has fewer of one and not more of the other, with all their ways."""
    costs = {(p[0], p[1]) for p in points}
    front = {c for c in costs if not any(o != c and o[0] <= c[0] and o[1] <= c[1] for o in costs)}
    return sorted(p for p in points if (p[0], p[1]) in front)


def check_spaces(rng, count):
    faults = []
    for _ in range(count):
        (a, b), blocks, other, rows = (rng.randint(1, 64), rng.choice([1, 1, 4, 6])), rng.randint(1, 64), rng.choice([0, 0, 12]), rng.randint(1, 5)
        inputs = [{"tensor": [rows * b, a], "block": [b, a]}] + ([{"tensor": [other * 2], "block": [other]}] if other else [])
        text = conformance.item(inputs, [{"tensor": [blocks, a], "block": [1, a], "dtype": "u3"}], [{"block": [1, 1]}])
        most = rng.choice([0, 0, rng.randint(1, 200)])
        target = rng.choice([0, 0, rng.randint(1, 4000)])
        options = ([f"--limit=multipliers={most}"] if most else []) + ([f"--target-cycles={target}"] if target else [])
        points = []
        for p, q, o, w in itertools.product(range(1, b + 1), range(1, a + 1), range(1, other + 1) if other else [0], range(1, blocks + 1)):
            if b % p or a % q or (o and other % o) or blocks % w:
                continue
            latency = max(a * b // (p * q) * (blocks // w) * rows, other // o * (blocks // w) * 2 if o else 0)
            multipliers = (p * q + o) * w
            if (most and multipliers > most) or (target and latency > target):
                continue
            points.append((latency, multipliers, p, q, o, w))
        tiling = [c for c in points if None not in sum(conformance.words([{"block": [b, a], "iPar": [c[2], c[3]]}] + ([{"block": [other], "iPar": [c[4]]}] if other else []),
                                                                         [{"block": [1, a]}], [{"block": [1, 1]}]), [])]
        legal, table = conformance.explore(text, *options)
        got = sorted((r["L"], r["multipliers"], r.get("i0.0", 1), r.get("i0.1", 1), r.get("i1.0", 1 if other else 0), r.get("w0.0", 1)) for r in table)
        if legal != len(points) or got != pareto(tiling):
            faults.append(f"{text.strip()} {options}: {legal} points instead of {len(points)}, or another front: {got} instead of {pareto(tiling)}")
    return count, faults


SHAPES = [(32, 8, 32, "bf16", None), (32, 8, 64, "bf16", None), (32, 16, 32, "bf16", None), (32, 8, 16, "bf16", None), (64, 4, 64, "bf16", None), (128, 8, 256, "i8", None),
          (5, 3, 30, "bf16", None), (7, 10, 100, "i8", None), (4, 1, 48, "bf16", None), (1, 17, 34, "i4", None), (32, 16, 32, "bf16", "multipliers=64"),
          (3, 24, 70, "bf16", "rows=4"), (9, 20, 40, "f8e4m3", "input-bits=256"), (6, 6, 6, "f8e5m2", "rows=1"), (13, 64, 96, "i8", "target"),
          (3, 10, 70, "i8", None, 5), (4, 8, 64, "bf16", "input-bits=768", 3), (2, 9, 20, "i4", None, 256)]


def kernel(shape):
    m, n, k, dtype, limit = shape[:5]
    batch = shape[5] if len(shape) > 5 else 1
    text = conformance.item([{"tensor": [m, k], "block": [1, k], "dtype": dtype}], [{"tensor": [n, k], "block": [1, k], "dtype": dtype}], [{"block": [1, 1]}], extra=f"batch: {batch}")
    status, written, error = conformance.run(text, "--explore", "--emit=vm", *([f"--limit={limit}"] if limit else []))
    if status:
        return [error]
    if visa_tools.run(["visac", "-", "--format-check"], written.encode()).status:
        return ["not in the canonical layout"]
    done = subprocess.run([conformance.VISAC, "-", "--check", "--emit=dataflow-json"], input=written, capture_output=True, text=True, env=visa_tools.environment(), check=False)
    if done.returncode:
        return [done.stdout + done.stderr]
    if f": {batch * m * n} values agree" not in done.stdout:
        return [f"{done.stdout.splitlines()[0]}: not {batch * m * n} values"]
    got = json.loads(done.stdout[done.stdout.index("{"):])["contractions"][0]
    packet, rows = got["inputs"][0]["iPar"][-1], got["weights"][0]["wPar"][0]
    lanes = {"bf16": 32, "i4": 128}.get(dtype, 64)
    said = int(written.split(", L ")[1].split()[0])
    point = int(written.split("iPar ")[1].split(",")[0])
    expect = m * -(-k // point) * -(-n // rows)
    measured = got["cycle_model"]
    faults = conformance.differences({"L": said, "compute_cycles": expect}, got)
    stages = {s["engine"]: s for s in got["stages"]}
    faults += [f"{s['engine']}: L {s['L']}, measured {s['measured_cycles']}" for s in got["stages"] if s["L"] != s["measured_cycles"]]
    if not {"fetch", "collect", "trf", "reducer", "commit"} <= set(stages) or [rational(stages["reducer"][k]) for k in ("cII", "eII", "L")] != [got["inputs"][0][k] for k in ("cII", "eII")] + [got["L"]]:
        faults.append(f"stages: {stages}")
    if packet != lanes or point not in (lanes, lanes // 2):
        faults.append(f"a packet of {point} of {lanes} elements")
    if measured["cycles"] - measured["fill_cycles"] - measured["drain_cycles"] != max(got["compute_cycles"], got["stream_cycles"]):
        faults.append(f"{measured} is not L {got['compute_cycles']}, flits {got['stream_cycles']} and the fill")
    return faults


def check_points(rng, count):
    """Points that are written: a kernel that agrees, with the item's cycles and shapes, or a refusal whose next step is one."""
    faults = []
    for n in range(count):
        dtype = rng.choice(["bf16", "i8", "f8e4m3", "i4"])
        flit = {"bf16": 16, "i4": 64}.get(dtype, 32)
        k, rows, batch = rng.choice([flit, 2 * flit, 3 * flit, 6 * flit, flit // 2, flit + 2]), rng.choice([1, 2, 4, 8, 3, 16]), rng.choice([1, 1, 3])
        packet = rng.choice([d for d in divisors(k) if d * 4 >= flit])
        m, blocks = rng.randint(1, 6), rows * rng.randint(1, 3)
        pads = rng.choice(["", "", "pads: true, "])

        def text(packet=packet, rows=rows, pads=pads):
            return conformance.item([{"tensor": [m, k], "block": [1, k], "iPar": [1, packet], "dtype": dtype}], [{"tensor": [blocks, k], "block": [1, k], "wPar": [rows, 1], "dtype": dtype}],
                                    [{"tensor": [m, blocks], "block": [1, 1], "dtype": "f32" if "f" in dtype else "i32"}], extra=f"{pads}batch: {batch}")
        good = packet in (flit, 2 * flit) and rows in (1, 2, 4, 8)
        status, written, error = conformance.run(text(), "--emit=vm")
        if not good:
            told = re.search(r"help: write `(i_par|w_par): (\d+)`( and `pads: true`)?", error)
            if status != 1 or "error[E-DATAFLOW-KERNEL]" not in error or not (told or "help: --explore --emit=vm" in error):
                faults.append(f"point {n}: {packet} x {rows} of {dtype}: status {status} {error[:300]}")
            elif told:
                better = {"packet": int(told[2])} if told[1] == "i_par" else {"rows": int(told[2])}
                status, _, again = conformance.run(text(**better, pads="pads: true, " if told[3] else pads), "--emit=vm")
                if status and (told[1] == "w_par" or "iPar" in again):
                    faults.append(f"point {n}: told {told[0]}: {again[:300]}")
            elif conformance.run(text(), "--explore", "--emit=vm")[0]:
                faults.append(f"point {n}: told to explore, which finds nothing")
            continue
        done = subprocess.run([conformance.VISAC, "-", "--check", "--emit=dataflow-json"], input=written, capture_output=True, text=True, env=visa_tools.environment(), check=False)
        if status or done.returncode or f": {batch * m * blocks} values agree" not in done.stdout:
            faults.append(f"point {n}: {m} {blocks} {k} {dtype} {packet} x {rows}: {error[:300]} {done.stdout[:200]} {done.stderr[:300]}")
            continue
        item, got = conformance.model(text())["items"][0], json.loads(done.stdout[done.stdout.index("{"):])["contractions"][0]
        figures = [got["L"], got["inputs"][0]["cII"], got["inputs"][0]["eII"], got["weights"][0]["wPar"][0]]
        expect = [item["L"], item["inputs"][0]["cII"], item["inputs"][0]["eII"], item["weights"][0]["wPar"][0]]
        if figures != expect:
            faults.append(f"point {n}: {m} {blocks} {k} {dtype} {packet} x {rows}: {figures} and not {expect}")
    return count, faults


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    rng, failed = random.Random(seed), 0
    for what, (count, faults) in (("models", check_models(rng, 150)), ("output tensors", check_outputs(rng, 12)), ("refusals", check_help(rng, 15)), ("formulas", check_formulas(rng, 20)), ("design spaces", check_spaces(rng, 25)),
                                  ("written points", check_points(rng, 15)), ("kernels", (len(SHAPES), [f"{s}: {f}" for s in SHAPES for f in kernel(s)]))):
        print("\n".join(faults[:5] + [f"{count} {what}, {len(faults)} faults"]))
        failed += len(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
