#!/usr/bin/env python3
"""How long a compile takes: visac on examples/matmul.vm beside C compilers on the same loop nest (bench/matmul.c).

    bench/compile.py [--bin DIR] [--rounds N] [--json]

Every round runs each command once, in an order that rotates, so that whatever the machine does meanwhile meets all
of them; ratios are taken within a round. `true` is the floor: what starting any program costs. It reports and
judges nothing: there is no time at which this fails.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARM_UP = 3


def candidates(programs, work):
    """(name, command) of everything that is compared; the first is ours."""
    loop_nest = str(ROOT / "bench/matmul.c")
    return [
        ("visac", [str(programs / "visac"), str(ROOT / "examples/matmul.vm"), "-o", str(work / "matmul.bin")]),
        ("clang-19 -O2 -c", ["clang-19", "-O2", "-c", loop_nest, "-o", str(work / "clang.o")]),
        ("gcc -O2 -c", ["gcc", "-O2", "-c", loop_nest, "-o", str(work / "gcc.o")]),
        ("true", ["true"]),
    ]


def measure(spawn, command):
    done = subprocess.run([str(spawn), *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()}")
    wall_ns, peak_kib, user_us, system_us = map(int, done.stdout.split())
    return {"wall_ms": wall_ns / 1e6, "peak_mib": peak_kib / 1024, "cpu_ms": (user_us + system_us) / 1e3}


def rounds(spawn, runs, count):
    samples = {name: [] for name, _ in runs}
    for index in range(-WARM_UP, count):
        start = index % len(runs)
        for name, command in runs[start:] + runs[:start]:
            sample = measure(spawn, command)
            if index >= 0:
                samples[name].append(sample)
    return samples


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def summarise(samples):
    rows = []
    ours = [s["wall_ms"] for s in next(iter(samples.values()))]
    for name, taken in samples.items():
        wall = [s["wall_ms"] for s in taken]
        rows.append({"name": name, "wall_ms": spread(wall), "cpu_ms": spread([s["cpu_ms"] for s in taken]),
                     "peak_mib": max(s["peak_mib"] for s in taken),
                     "wall_over_visac": spread([theirs / mine for theirs, mine in zip(wall, ours)])})
    return rows


def libraries_of(command):
    """Shared libraries that the dynamic linker initialises in a run."""
    done = subprocess.run(command, env=dict(os.environ, LD_DEBUG="libs"), capture_output=True, text=True)
    return sorted(set(re.findall(r"calling init: \S*/(\S+)", done.stderr)))


def cpu_name():
    try:
        return re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()).group(1)
    except (OSError, AttributeError):
        return platform.machine()


def print_text(report):
    print(f"{report['cpu']}, {report['cores']} cores; {report['rounds']} rounds behind {WARM_UP} to warm up\n")
    print(f"{'command':18} {'wall ms: median (min .. max)':32} {'cpu ms':>8} {'peak MiB':>9}   {'wall / visac: median (min .. max)'}")
    for row in report["commands"]:
        wall, ratio = row["wall_ms"], row["wall_over_visac"]
        times = f"{wall['median']:.2f} ({wall['min']:.2f} .. {wall['max']:.2f})"
        ratios = f"{ratio['median']:.2f} ({ratio['min']:.2f} .. {ratio['max']:.2f})"
        print(f"{row['name']:18} {times:32} {row['cpu_ms']['median']:8.2f} {row['peak_mib']:9.1f}   {ratios}")
    for name in report["skipped"]:
        print(f"{name:18} skipped: not installed")
    print(f"\nlibraries of a compile: {', '.join(report['libraries'])}")
    print(f"libLLVM among them: {'yes' if report['loads_llvm'] else 'no'}")


def main():
    parser = argparse.ArgumentParser(description="wall time of a compile, beside C compilers")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds takes a positive number")
    with tempfile.TemporaryDirectory() as temporary:
        runs = candidates(options.bin.resolve(), pathlib.Path(temporary))
        present = [run for run in runs if shutil.which(run[1][0])]
        if not present or present[0][0] != "visac":
            raise OSError(f"{runs[0][1][0]} is not built: ./visa bench builds it")
        libraries = libraries_of(present[0][1])
        samples = rounds(options.bin.resolve() / "bench_spawn", present, options.rounds)
    report = {"cpu": cpu_name(), "cores": os.cpu_count(), "rounds": options.rounds, "commands": summarise(samples),
              "skipped": [name for name, command in runs if (name, command) not in present],
              "libraries": libraries, "loads_llvm": any("LLVM" in library for library in libraries)}
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        print_text(report)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"compile.py: {error}")
