#!/usr/bin/env python3
"""visac against what one would otherwise use, on this machine (./visa bench).

    bench/run.py [--quick] [--json FILE] [--update PAGE] [--bin DIR] [NAME...]

Reports and judges nothing: there is no time at which this fails. What is missing is skipped with a word; what ends with an error fails, after
everything else.
"""
import argparse
import importlib
import json
import pathlib
import sys
import time

import measure
import report

SECTIONS = ("compile", "growth", "derive", "quality", "process", "cubes", "machine", "vector", "reference", "step", "paper", "explore", "tune", "editor")


def run_section(name, bench):
    module = importlib.import_module(f"sections.{name}")
    bench.skipped = []
    begin = time.monotonic()
    section = {"name": name, "title": module.TITLE, "tables": [], "targets": [], "failed": None, "load": measure.load()}
    try:
        module.run(bench, section)
    except measure.Missing as missing:
        bench.skip(str(missing))
    except OSError as failure:  # the other sections are worth having
        section["failed"] = str(failure)
    section.update(skipped=bench.skipped, seconds=round(time.monotonic() - begin, 1))
    return section


def arguments():
    parser = argparse.ArgumentParser(prog="./visa bench", description="visac against what one would otherwise use, on this machine")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these sections: {', '.join(SECTIONS)}")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", action="store_const", dest="mode", const="quick", help="fewer rounds and smaller sizes: under two minutes")
    mode.add_argument("--smoke", action="store_const", dest="mode", const="smoke", help="each thing once, at its smallest: does it run at all?")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--update", type=pathlib.Path, metavar="PAGE", help="write the tables of docs/performance.md anew")
    parser.add_argument("--bin", type=pathlib.Path, default=measure.ROOT / "build/release/bin", metavar="DIR", help="the programs (default build/release/bin)")
    parser.set_defaults(mode="full")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]}; there are {', '.join(SECTIONS)}")
    return options


def main():
    options = arguments()
    with measure.work_folder() as work:
        bench = measure.Bench(options.bin, options.mode, work)
        bench.program("visac")
        everything = {"mode": options.mode, "environment": measure.environment(), "order": SECTIONS, "sections": []}
        print(report.text_of_environment(everything["environment"]), flush=True)
        for name in SECTIONS:
            if not options.names or name in options.names:
                section = run_section(name, bench)
                everything["sections"].append(section)
                print("\n" + report.text_of_section(section), flush=True)
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")
    if options.update:
        options.update.write_text(report.update_page(options.update.read_text(), everything))
    failed = [section["name"] for section in everything["sections"] if section["failed"]]
    if failed:
        sys.exit(f"bench: failed: {', '.join(failed)}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, measure.Missing) as error:
        sys.exit(f"bench: {error}")
