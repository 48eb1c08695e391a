"""Multiplications per second of the simulated machine on one core, by type and packet shape, against a packet loop written by hand.

The levels (--cpu of visa-run) take turns, so that what else the computer does meets all of them.
"""
from measure import ratios, spread
from report import table

TITLE = "the simulated machine on one core, 1e9 multiplications a second"
SMALL = {False: [], True: ["i8 K=64 N=8", "1"]}
BY_HAND = {"i8": "i8 by hand", "bf16": "bf16 by hand"}


def speeds(bench, levels, rounds):
    """{name: {level: [1e9 multiplications a second]}}"""
    out = {}
    for _ in range(rounds):
        for level in levels:
            for line in bench.lines_of([bench.program("bench_machine"), level, *SMALL[bench.mode == "smoke"]]):
                at = out.setdefault(line["name"], {})
                at.setdefault(level if "by hand" not in line["name"] else "best", []).append(line["macs"] / line["ns"])
    return out


def run(bench, section):
    levels = bench.count(["best", "avx512", "avx2", "plain", "steps"], ["best", "plain"], ["best"])
    measured = speeds(bench, levels, bench.count(5, 3))
    rows = []
    for name, at in measured.items():
        hand = measured.get(BY_HAND.get(name.split()[0]), {}).get("best")
        beside = ratios(at["best"], hand) if hand and "by hand" not in name else ""
        rows.append([name, *(spread(at[level]) if level in at else "" for level in levels), beside])
    section["tables"].append(table("by type and shape", ["shape", *levels, "best / by hand"], rows))
    if bench.mode != "smoke" and not any("by hand" in name for name in measured):
        bench.skip("the loop by hand: this processor has no AVX-512 VNNI")
