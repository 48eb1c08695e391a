"""Multiplications per second of the simulated machine on one core, by type and packet shape, against the shape's loop written by hand for the level.

Levels (--cpu of visa-run) take turns, and within one the machine and the loop do, so that what else the computer does meets all of them. A level that
this processor does not have is reported as missing.
"""
import re

from measure import ratios, spread
from report import none_of, table

TITLE = "the simulated machine on one core, 1e9 multiplications a second"
SMALL = {False: [], True: ["i8 K=64 N=8", "1"]}
BY_HAND = ("tiles", "dot", "avx512", "avx2")  # packet_loop.c


def speeds(bench, levels, rounds):
    """{name: {level, or "level by hand": [1e9 multiplications a second]}}"""
    out = {}
    for _ in range(rounds):
        for level in levels:
            for line in bench.lines_of([bench.program("bench_machine"), level, *SMALL[bench.mode == "smoke"]]):
                out.setdefault(line["name"], {}).setdefault(line["level"], []).append(line["macs"] / line["ns"])
    return out


def share(at, level):
    return ratios(at[level], at[f"{level} by hand"]) if f"{level} by hand" in at else ""


def goal(name):
    """Of the loop by hand."""
    return 0.7 if int(re.search(r"K=(\d+)", name)[1]) >= 512 else 0.5


def share_target(measured, level):
    shares = {name: share(at, level)["median"] for name, at in measured.items() if share(at, level)}
    missed = [f"{name} {value:.2f}" for name, value in shares.items() if value < goal(name)]
    return none_of(f"shapes under 0.5 of the loop by hand, 0.7 with K of 512 or more, {level}", missed, len(shares))


def run(bench, section):
    levels = bench.count(["tiles", "dot", "avx512", "avx2", "plain", "steps"], ["tiles", "dot", "avx512", "avx2", "plain"], ["best"])
    measured = speeds(bench, levels, bench.count(5, 3))
    there = [level for level in levels if any(level in at for at in measured.values())]
    rows = [[name, *(spread(at[level]) if level in at else "" for level in there)] for name, at in measured.items()]
    section["tables"].append(table("by type and shape", ["shape", *there], rows))
    hand = [level for level in BY_HAND if level in there]
    rows = [[name, *(cell for level in hand for cell in (spread(at[f"{level} by hand"]), share(at, level)))] for name, at in measured.items()
            if any(f"{level} by hand" in at for level in hand)]
    if rows:
        section["tables"].append(table("the loop by hand, and the machine's share of it", ["shape", *(c for level in hand for c in (f"{level} by hand", f"{level} / by hand"))], rows))
    section["targets"] = [share_target(measured, level) for level in hand]
    for level in levels:
        if level not in there and bench.mode != "smoke":
            bench.skip(f"level {level}: this processor does not have it")
