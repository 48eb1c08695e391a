#!/usr/bin/env python3
"""Random contraction kernels: compiled, run against the reference kernel, and every table of them walked.

    kernels.py [--count N] [--seed N] [--case SEED] [--jobs N] [--keep DIR]
"""
import argparse
import collections
import multiprocessing
import os
import random
import sys
import time

import harness
import judge
import judge_trf
from contraction import make
from meaning import Axes, parse
from spec import Spec
import visa_tools

BATCH = 25


def _maps(mapping):
    return {role: parse(judge.SUFFIX.sub("", text)) for role, text in mapping.items()}


def _spec(kind, kernel, dtype, units, out=None, **maps):
    spec = Spec(kind, kernel.sizes, dtype, {**{r: units[r] for r in ("chip", "cluster", "slice") if r in units}, **maps}, out=out)
    return spec


def walk(kernel, emitted):
    """Judges every table of a kernel by the types that JSON states."""
    bad, axes = judge.Problems(), Axes(kernel.sizes)
    tensors = [{**port, "maps": _maps(port["mapping"])} for port in emitted["ports"]]
    hbm = [t for t in tensors if t["space"] == "hbm" and t["direction"] == "in"]
    memory = [t for t in tensors if t["space"] == "dm"]
    stream = next((t for t in tensors if t["space"] == "stream" and t["direction"] == "in"), None)
    weights = next((t for t in tensors if t["space"] == "trf"), None)
    for op in emitted["ops"]:
        here = {**op, "maps": _maps(op["mapping"])}
        maps, found = here["maps"], []
        if op["op"] == "to_dm":
            source = hbm.pop(0)
            spec = _spec("to_dm", kernel, op["dtype"], maps, source=source["maps"]["element"], element=maps["element"])
            spec.address = op["address"]
            found = judge.judge_dma(spec, {"ops": [op], "ports": [source]})
            memory.append(here)
        elif op["op"] == "to_hbm":
            source = memory[-1]
            spec = _spec("to_hbm", kernel, op["dtype"], {**source["maps"], "chip": maps["chip"]},
                         element=source["maps"]["element"], target=maps["element"])
            spec.address = op["address"]
            found = judge.judge_dma(spec, {"ops": [op], "ports": [source]})
        elif op["op"] == "fetch":
            source = next(t for t in reversed(memory) if t["address"] == op["sequencer"]["base"])
            spec = _spec("fetch", kernel, source["dtype"], source["maps"], out=op["dtype"], element=source["maps"]["element"],
                         time=maps["time"], packet=maps["packet"])
            spec.context = op["context"]
            found = judge.judge_fetch(spec, {"ops": [op], "ports": [source]})
        elif op["op"] == "to_trf":
            weights = here
        elif op["op"] == "align":
            units = {r: maps[r] for r in ("chip", "cluster", "slice")}
            parts = judge_trf.Parts(axes, op["dtype"], {
                **units, "row": maps["row"], "element": weights["maps"]["element"], "time": stream["maps"]["time"],
                "packet": stream["maps"]["packet"], "out_time": maps["time"], "out_packet": maps["packet"]})
            judge_trf.judge_align(parts, op["align"], bad)
        elif op["op"] == "commit":
            spec = _spec("commit", kernel, op["dtype"], maps, time=stream["maps"]["time"], packet=stream["maps"]["packet"],
                         element=maps["element"])
            spec.address, spec.context = op["address"], op["context"]
            found = judge.judge_commit(spec, {"ops": [op]})
            memory.append(here)
        if op["op"] not in ("to_dm", "to_hbm"):
            stream = here
        bad += [(f"{op['op']} {kind}", text) for kind, text in found]
    return bad


def examine(kernel):
    verdict = harness.compile_all([kernel.source()])[0]
    if verdict.kind == "crashed":
        return verdict, [("crash", verdict.text)]
    if verdict.kind == "refused":
        return verdict, []
    found = walk(kernel, verdict.kernel)
    failed = harness.check_all([kernel.source()], ["kernel"])
    return verdict, list(found) + [("check", text) for text in failed.values()]


def batch(seeds):
    kernels = [make(random.Random(f"kernel/{seed}")) for seed in seeds]
    sources = [kernel.source(f"k{seed}", f"_{seed}") for seed, kernel in zip(seeds, kernels)]
    tally, failures, good = collections.Counter(), [], []
    for seed, kernel, source, verdict in zip(seeds, kernels, sources, harness.compile_all(sources)):
        if verdict.kind == "crashed":
            failures.append((seed, [("crash", verdict.text)]))
        elif verdict.kind == "refused":
            tally[verdict.ids[0]] += 1
        else:
            tally["accepted"] += 1
            for feature in kernel.features:
                tally["with", feature] += 1
            found = walk(kernel, verdict.kernel)
            if found:
                failures.append((seed, list(found)))
            good.append((seed, source))
    failed = harness.check_all([source for _, source in good], [seed for seed, _ in good])
    for seed, text in failed.items():
        failures.append((seed, [("check", text)]))
    return tally, failures


def report(seed, found, keep):
    """Takes features out of a failing kernel as long as it fails alike, and says how to see it again."""
    wrong = found[0][0]
    small = make(random.Random(f"kernel/{seed}"))
    going = True
    while going:
        going = False
        for kernel in small.simpler():
            if any(kind == wrong for kind, _ in examine(kernel)[1]):
                small, going = kernel, True
                break
    os.makedirs(keep, exist_ok=True)
    path = os.path.join(keep, f"kernel-{seed}-{wrong.replace(' ', '-')}.vm")
    with open(path, "w", encoding="utf-8") as file:
        file.write(small.source() + "\n")
    print(f"FAILED kernel {seed}: {wrong}")
    for kind, text in examine(small)[1][:4]:
        print(f"  {kind}: {text.strip()}")
    print("  " + small.source().replace("\n", "\n  "))
    print(f"  again: visac {path} --check; kernels.py --case {seed}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=visa_tools.few(60))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", default="oracle-failures")
    parser.add_argument("--show", type=int, default=8)
    options = parser.parse_args()
    if options.case is not None:
        kernel = make(random.Random(f"kernel/{options.case}"))
        verdict, found = examine(kernel)
        print(kernel.source(), verdict.kind, verdict.message if verdict.kind == "refused" else "", sep="\n")
        print(*(found or ["agrees"]), sep="\n")
        return 1 if found else 0
    began, seeds = time.monotonic(), range(options.seed, options.seed + options.count)
    work = [list(seeds[at:at + BATCH]) for at in range(0, options.count, BATCH)]
    tally, failures = collections.Counter(), []
    with multiprocessing.Pool(options.jobs) as pool:
        for i, (counted, failed) in enumerate(pool.imap(batch, work)):
            tally.update(counted)
            failures += failed
            if sys.stderr.isatty():
                print(f"\r{(i + 1) * BATCH} of {options.count}", end="", file=sys.stderr)
    features = sorted((k[1], n) for k, n in tally.items() if k[0] == "with")
    print(f"{options.count} kernels, {tally['accepted']} accepted, walked and run; of these",
          ", ".join(f"{n} {name}" for name, n in features))
    for key, n in sorted((k, n) for k, n in tally.items() if isinstance(k, str) and k != "accepted"):
        print(f"  {n:7} refused with {key}")
    shown = collections.Counter()
    for seed, found in failures:
        shown[found[0][0]] += 1
        if shown[found[0][0]] <= options.show // len({f[1][0][0] for f in failures}) + 1:
            report(seed, found, options.keep)
    print(f"{time.monotonic() - began:.1f} s, {len(failures)} failures", dict(shown) or "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
