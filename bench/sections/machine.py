#!/usr/bin/env python3
"""Multiplications per second of the simulated machine on one core, by type and packet shape, beside a packet loop
written by hand.

The levels (--cpu of visa-run) take turns, so that what else the computer does meets all of them; medians are shown.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEVELS = ["best", "avx512", "avx2", "plain", "steps"]


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def measure(program, levels, rounds):
    """{name: {level: [G/s]}} of interleaved runs."""
    speeds = {}
    for _ in range(rounds):
        for level in levels:
            done = subprocess.run([program, level], check=True, capture_output=True, text=True)
            for line in done.stdout.splitlines():
                row = json.loads(line)
                at = speeds.setdefault(row["name"], {})
                at.setdefault(level if "by hand" not in row["name"] else "best", []).append(row["macs"] / row["ns"])
    return speeds


def main():
    parser = argparse.ArgumentParser(description="MAC/s of the machine on one core, beside a loop by hand")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--level", action="append", choices=LEVELS, help="only this one (may be repeated)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds takes a positive number")
    levels = options.level or LEVELS
    speeds = measure(options.bin.resolve() / "bench_machine", levels, options.rounds)
    rows = {name: {level: statistics.median(values) for level, values in at.items()} for name, at in speeds.items()}
    if options.json:
        print(json.dumps({"cpu": cpu_name(), "rounds": options.rounds, "unit": "1e9 MAC/s", "median": rows}, indent=2))
        return
    print(f"{cpu_name()}, one core, 1e9 multiplications a second, medians of {options.rounds} rounds\n")
    print(f"{'':26}" + "".join(f"{level:>9}" for level in levels))
    for name, at in rows.items():
        print(f"{name:26}" + "".join(f"{at[level]:9.1f}" if level in at else f"{'':9}" for level in levels))


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"machine.py: {error}")
