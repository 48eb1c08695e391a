#!/usr/bin/env python3
"""Two commits against each other, on this machine (./visa bench --compare A B).

    bench/compare.py A B [--quick] [--json FILE] [--bin DIR] [--built DIR DIR]

The one idea: only pairs count on a machine that does other work too, so each commit is built in a worktree of its own (build/compare, kept
for the next time) and both run in turns on the same inputs, those of this tree. A ratio is B's processor time over A's within a round.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import kernels
import measure
import report

TARGETS = ("visac", "visa-run", "visa_reference")
FOLDER = measure.ROOT / "build/compare"


def shown(command, **more):
    print("$ " + " ".join(map(str, command)), flush=True)
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        raise OSError(f"status {done.returncode} from: {' '.join(map(str, command))}\n{done.stdout[-2000:]}")
    return done.stdout


def commit_of(name):
    done = subprocess.run(["git", "-C", str(measure.ROOT), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise measure.Missing(f"{name} is no commit of this repository")
    return done.stdout.strip()


def built(commit):
    """The folder of its programs, built in its own worktree."""
    tree = FOLDER / commit[:12]
    if not tree.exists():
        shown(["git", "-C", measure.ROOT, "worktree", "prune"])
        shown(["git", "-C", measure.ROOT, "worktree", "add", "--detach", tree, commit])
    shown(["cmake", "--preset", "release"], cwd=tree)
    shown(["cmake", "--build", "--preset", "release", "--target", *TARGETS], cwd=tree)
    return tree / "build/release/bin"


def jobs(bench, side):
    """[(what, [program, arguments])]: of each the same inputs for both, but binaries, whose format may be another: they are the side's own."""
    sizes = bench.count((512, 512, 2048), (512, 512, 2048), (128, 256, 256))
    product, binary = bench.file("product.vm", kernels.matmul(*sizes, "i8")), bench.file(f"product-{side}.bin")
    floats = bench.file("floats.vm", kernels.matmul(*bench.count((512, 512, 2048), (512, 512, 512), (128, 256, 256)), "bf16"))
    example = str(measure.ROOT / "examples/matmul.vm")
    return [("compile, examples/matmul.vm", ["visac", example, "-o", bench.file(f"example-{side}.bin")]),
            ("compile, i8 product", ["visac", product, "-o", binary]),
            ("--report, i8 product", ["visac", product, "--report"]),
            ("run, i8 product", ["visa-run", binary]),
            ("--check=numbers, i8 product", ["visac", product, "--check=numbers"]),
            ("--check=numbers, bf16 product", ["visac", floats, "--check=numbers"]),
            ("--check=algebra, i8 product", ["visac", product, "--check=algebra"])]


def processor(samples):
    return [s["user"] + s["system"] for s in samples]


def compare(bench, sides, section):
    rows = []
    for (what, a), (_, b) in zip(jobs(bench, "a"), jobs(bench, "b")):
        commands = [(name, [str(folder / program), *rest]) for (name, folder), (program, *rest) in zip(sides, (a, b))]
        try:
            samples = bench.processes(commands, bench.count(40, 10), warm_up=2)
        except OSError as failure:
            bench.skip(f"{what}: {failure}")
            continue
        (_, a), (_, b) = samples.items()
        rows.append([what, measure.spread(processor(a)), measure.spread(processor(b)), measure.ratios(processor(b), processor(a)),
                     measure.ratios(measure.of(b, "wall"), measure.of(a, "wall")), *(f(measure.of(x, field)) for f, field in ((max, "peak"), (statistics.median, "faults")) for x in (a, b))])
    section["tables"].append(report.table("processes", ["what", "A, processor ms", "B, processor ms", "B / A", "B / A, wall", "A, MiB", "B, MiB", "A, page faults", "B, page faults"], rows))


def arguments():
    parser = argparse.ArgumentParser(prog="./visa bench --compare", description="two commits in turns on the same inputs")
    parser.add_argument("commits", nargs=2, metavar=("A", "B"), help="any names of commits")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", action="store_const", dest="mode", const="quick", help="fewer rounds")
    mode.add_argument("--smoke", action="store_const", dest="mode", const="smoke", help="each thing once, at its smallest")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--bin", type=pathlib.Path, default=measure.ROOT / "build/release/bin", metavar="DIR", help="where bench_spawn is")
    parser.add_argument("--built", nargs=2, type=pathlib.Path, metavar="DIR", help="programs of A and B that are built already")
    parser.set_defaults(mode="full")
    return parser.parse_args()


def main():
    options = arguments()
    if options.built:
        names, folders = options.commits, [folder.resolve() for folder in options.built]
    else:
        names = [commit_of(name)[:12] for name in options.commits]
        folders = [built(commit_of(name)) for name in options.commits]
    with measure.work_folder() as work:
        bench = measure.Bench(options.bin, options.mode, work)
        section = {"name": "compare", "title": f"A is {names[0]}, B is {names[1]}", "tables": [], "targets": [], "failed": None}
        environment = measure.environment()
        print(report.text_of_environment(environment), flush=True)
        compare(bench, [(f"A {names[0]}", folders[0]), (f"B {names[1]}", folders[1])], section)
        section.update(skipped=bench.skipped, seconds=0)
    print("\n" + report.text_of_section(section))
    if options.json:
        options.json.write_text(json.dumps({"mode": options.mode, "environment": environment, "sections": [section]}, indent=1) + os.linesep)
    if not section["tables"][0]["rows"]:
        sys.exit("bench: nothing could be compared")


if __name__ == "__main__":
    try:
        main()
    except (OSError, measure.Missing) as error:
        sys.exit(f"bench: {error}")
