#!/usr/bin/env python3
"""Random mapping pairs through visac; every emitted table is walked, every refusal weighed (docs/oracle.md).

    pairs.py [--count N] [--seed N] [--kind K] [--case SEED] [--jobs N] [--keep DIR]
"""
import argparse
import collections
import copy
import multiprocessing
import os
import random
import sys
import time

import generate
import harness
import judge
import judge_trf
import nest
import shrink
import visa_tools



def _judge_copy(spec, kernel):
    return judge.judge_fetch(spec, kernel) + judge.judge_commit(spec, kernel)


def _possible_copy(spec):
    both = (judge.possible_fetch(spec), judge.possible_commit(spec))
    return False if False in both else None if None in both else True


def _open_copy(spec):
    return min(judge.open_fetch(spec), judge.open_commit(spec))


# kind: (generator, walker, decision about a refusal without padding, search for one with padding)
KINDS = {"fetch": (generate.fetch, judge.judge_fetch, judge.possible_fetch, judge.open_fetch),
         "commit": (generate.commit, judge.judge_commit, judge.possible_commit, judge.open_commit),
         "copy": (generate.copy, _judge_copy, _possible_copy, _open_copy),
         "to_dm": (generate.to_dm, judge.judge_dma, judge.possible_dma, judge.open_dma),
         "to_hbm": (generate.to_hbm, judge.judge_dma, judge.possible_dma, judge.open_dma),
         "align": (generate.align, judge_trf.judge_spec, judge_trf.possible_spec, judge_trf.open_spec)}
BATCH = 60


def make(kind, seed):
    return KINDS[kind][0](random.Random(f"{kind}/{seed}"))


def findings(spec, verdict):
    """[(class, text)] that are wrong about a verdict; None where a refusal stays open."""
    _, walk, possible, _ = KINDS[spec.kind]
    if verdict.kind == "crashed":
        return [("crash", verdict.text)]
    if verdict.kind == "accepted":
        return walk(spec, verdict.kernel)
    answer = possible(spec)
    if answer is None:
        return None
    return [(f"refused {verdict.ids[0]}", f"a legal table exists; {verdict.message}")] if answer else []


class Damaged:
    """An accepted verdict about a table that visac did not emit."""
    kind = "accepted"

    def __init__(self, kernel):
        self.kernel = kernel


def examine(spec):
    """Classes of what is wrong with one kernel alone."""
    verdict = harness.compile_all([spec.source()])[0]
    found = findings(spec, verdict) or []
    if not found and verdict.kind == "accepted":
        found = [("check", text) for text in harness.check_all([spec.source()], ["kernel"]).values()]
    return found


WANTED = {"fetch": judge.wanted_fetch, "commit": lambda spec: judge.wanted_commit(spec)[0]}


def shorter(spec, kernel):
    """Whether other addresses at padding would have made a shorter table of a small padded walk (counted, no failure)."""
    wanted = WANTED[spec.kind](spec)
    if len(wanted) > 256 or None not in wanted or "absent" in wanted:
        return False
    found = nest.search(wanted)
    if found in (None, "unknown"):
        return False
    return len(nest.merge(found)) < len(nest.merge(judge.entries_of(kernel["ops"][0]["sequencer"])))


def damaged(rng, kernel):
    """The same JSON with one stride of one table changed."""
    kernel = copy.deepcopy(kernel)
    tables = [op.get("sequencer") or op.get("align", {}).get("trf_sequencer") or rng.choice(op["dma"])
              for op in kernel["ops"] if {"sequencer", "align", "dma"} & set(op)]
    entries = [entry for t in tables for entry in t["entries"] if entry["size"] > 1]
    if not entries:
        return None
    entry = rng.choice(entries)
    entry[rng.choice([key for key in entry if "stride" in key])] += rng.choice((-8, 8, 32))
    return kernel


def batch(job):
    kind, seeds, share = job
    specs = [make(kind, seed) for seed in seeds]
    verdicts = harness.compile_all([spec.source(f"k{i}", f"_{i}") for i, spec in enumerate(specs)])
    tally, failures, sound, examples = collections.Counter(), [], [], {}
    for seed, spec, verdict in zip(seeds, specs, verdicts):
        found = findings(spec, verdict)
        if verdict.kind == "accepted":
            tally["accepted"] += 1
            if kind in WANTED and not found and seed % 4 == 0:
                tally["shorter"] += shorter(spec, verdict.kernel)
            worse = damaged(random.Random(seed), verdict.kernel) if seed % 8 == 0 and not found else None
            if worse:
                tally["damaged"] += 1
                tally["noticed"] += any(k in ("walk", "cover", "weight") for k, _ in findings(spec, Damaged(worse)))
        elif found is None:
            key = "padded", verdict.ids[0], KINDS[kind][3](spec)
            tally[key] += 1
            examples.setdefault(key, seed)
        elif not found:
            tally["impossible", verdict.ids[0]] += 1
            examples.setdefault(("impossible", verdict.ids[0]), seed)
        if found:
            failures.append((kind, seed, found))
        elif verdict.kind == "accepted" and random.Random(seed).random() < share:
            sound.append((seed, spec))
    for seed, text in harness.check_all([spec.source(f"k{seed}", f"_{seed}") for seed, spec in sound],
                                        [seed for seed, _ in sound]).items():
        failures.append((kind, seed, [("check", text)]))
    tally["checked"] += len(sound)
    return tally, failures, examples


def report(failure, keep):
    """Shrinks a failing pair and says how to see it again."""
    kind, seed, found = failure
    spec, wrong = make(kind, seed), found[0][0]
    small = shrink.shrink(spec, lambda s: any(k == wrong for k, _ in examine(s)))
    os.makedirs(keep, exist_ok=True)
    path = os.path.join(keep, f"{kind}-{seed}-{wrong.replace(' ', '-')}.vm")
    with open(path, "w", encoding="utf-8") as file:
        file.write(small.source() + "\n")
    print(f"FAILED {kind} {seed}: {wrong}")
    for k, text in examine(small)[:4]:
        print(f"  {k}: {text}")
    print("  " + small.source().replace("\n", "\n  "))
    print(f"  again: visac {path} --emit=json; pairs.py --kind {kind} --case {seed}")


def run(kinds, count, first, jobs, share):
    work = [(kind, list(range(at, min(at + BATCH, first + count // len(kinds)))), share)
            for kind in kinds for at in range(first, first + count // len(kinds), BATCH)]
    tallies, failures, examples = {kind: collections.Counter() for kind in kinds}, [], {kind: {} for kind in kinds}
    done, shown = 0, time.monotonic()
    with multiprocessing.Pool(jobs) as pool:
        for (tally, failed, some), (kind, seeds, _) in zip(pool.imap(batch, work), work):
            tallies[kind].update(tally)
            failures += failed
            examples[kind] = {**some, **examples[kind]}
            done += len(seeds)
            if sys.stderr.isatty() and time.monotonic() - shown > 2:
                shown = time.monotonic()
                print(f"\r{done} of {count}", end="", file=sys.stderr)
    return tallies, failures, examples


def table(tallies, examples):
    """Prints the counts; returns the number of kinds whose walker misses damage (padding hides a little of it)."""
    blind = 0
    for kind, tally in tallies.items():
        checked, worse, noticed, less = (tally.pop(key, 0) for key in ("checked", "damaged", "noticed", "shorter"))
        total = sum(tally.values())
        print(f"{kind}: {total} pairs, {tally['accepted']} accepted and walked, {checked} of them run; "
              f"{noticed} of {worse} damaged tables noticed"
              + (f"; {less} padded ones could be shorter" if less else ""))
        blind += worse > 20 and noticed < 0.8 * worse
        for key, n in sorted((k, n) for k, n in tally.items() if k != "accepted"):
            why = "nothing could do it" if key[0] == "impossible" else \
                {"none": "with padding; a search finds no table either", "some": "with padding; a search finds a table",
                 "unknown": "with padding; not searched to the end"}[key[2]]
            print(f"  {n:7} {key[1]:22} {why} (for one, case {examples[kind][key]})")
    return blind


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=visa_tools.few(600))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=sorted(KINDS))
    parser.add_argument("--case", type=int)
    parser.add_argument("--check", type=float, default=0.4,
                        help="share of the accepted pairs that are also run and compared with the reference kernel")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", default="oracle-failures")
    parser.add_argument("--show", type=int, default=10, help="failures that are shrunk and shown")
    options = parser.parse_args()
    if options.case is not None:
        spec = make(options.kind, options.case)
        verdict = harness.compile_all([spec.source()])[0]
        print(spec.source(), verdict.kind, verdict.message if verdict.kind == "refused" else "", sep="\n")
        found = findings(spec, verdict)
        found = examine(spec) if found == [] else found
        print("open:", KINDS[spec.kind][3](spec)) if found is None else print(*(found or ["agrees"]), sep="\n")
        return 1 if found else 0
    began = time.monotonic()
    tallies, failures, examples = run([options.kind] if options.kind else sorted(KINDS), options.count, options.seed, options.jobs, options.check)
    blind = table(tallies, examples)
    classes = collections.Counter((f[0], f[2][0][0]) for f in failures)
    shown = collections.Counter()
    for failure in failures:
        key = (failure[0], failure[2][0][0])
        if shown[key] < max(1, options.show // len(classes)):
            shown[key] += 1
            report(failure, options.keep)
    for (kind, wrong), n in sorted(classes.items()):
        print(f"{n} {kind} pairs fail: {wrong}")
    print(f"{time.monotonic() - began:.1f} s, {len(failures)} failures" + (", a walker is blind" if blind else ""))
    return 1 if failures or blind else 0


if __name__ == "__main__":
    sys.exit(main())
