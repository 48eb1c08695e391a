#!/usr/bin/env python3
"""The benchmarks run: each section once, at its smallest, into JSON and into a page. No time is judged.

    bench_smoke.py BIN_DIR
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUN = [sys.executable, os.path.join(ROOT, "bench/run.py")]
COMPARE = [sys.executable, os.path.join(ROOT, "bench/compare.py")]
sys.path.insert(0, os.path.join(ROOT, "bench"))
from report import update_page  # noqa: E402
PAGES = [os.path.join(ROOT, page) for page in ("docs/performance.md", "docs/performance-avx2.md", "docs/tune-measured.md")]  # tune's table is where its answers are judged
BLOCK = re.compile(r"<!-- bench: (\w+) -->(.*?)<!-- end -->", re.S)


def must(condition, text):
    if not condition:
        sys.exit(f"bench_smoke: {text}")


def run(arguments, status=0):
    done = subprocess.run(RUN + arguments, capture_output=True, text=True, check=False)
    must(done.returncode == status, f"{' '.join(arguments)} ended with status {done.returncode}, not {status}: {done.stdout}{done.stderr}")
    return done.stdout


def compare(programs):
    """Two builds in turns; one that is not there is left out with a word, and a commit that is none is refused."""
    both = COMPARE + ["A", "B", "--smoke", "--bin", programs, "--built", programs]
    done = subprocess.run(both + [programs], capture_output=True, text=True, check=False)
    must(done.returncode == 0 and done.stdout.count("--check") == 3 and "B / A" in done.stdout, f"compare.py: {done.stdout}{done.stderr}")
    done = subprocess.run(both + [os.path.join(programs, "nowhere")], capture_output=True, text=True, check=False)
    must(done.returncode == 1 and "nothing could be compared" in done.stderr, f"compare.py of nothing: {done.stdout}{done.stderr}")
    done = subprocess.run(COMPARE + ["no-such-commit", "HEAD"], capture_output=True, text=True, check=False)
    must(done.returncode == 1 and "no-such-commit is no commit" in done.stderr, f"compare.py of no commit: {done.stdout}{done.stderr}")


def main():
    programs = ["--bin", sys.argv[1]]
    with tempfile.TemporaryDirectory() as work:
        page, file = os.path.join(work, "page.md"), os.path.join(work, "all.json")
        text = ""
        for path in PAGES:
            with open(path, encoding="utf-8") as source:
                text += source.read()
        with open(page, "w", encoding="utf-8") as copy:
            copy.write(text)
        said = run(programs + ["--smoke", "--json", file, "--update", page])
        with open(file, encoding="utf-8") as stream:
            report = json.load(stream)
        with open(page, encoding="utf-8") as stream:
            updated = stream.read()
    sections = {section["name"]: section for section in report["sections"]}
    for name, section in sections.items():
        must(section["tables"] or section["skipped"], f"{name} measured nothing and does not say why")
        must(f"== {name}:" in said, f"the text leaves {name} out")
        for t in section["tables"]:
            must(t["rows"] and all(len(row) == len(t["columns"]) for row in t["rows"]), f"{name}: {t['title']}: rows and columns differ")
    blocks = {name for name, _ in BLOCK.findall(text)}
    must(blocks == set(sections) | {"environment", "targets"}, f"the pages have blocks for {sorted(blocks)}, the driver has {sorted(sections)}")
    must(BLOCK.sub("", updated) == BLOCK.sub("", text), "--update changed text outside of its blocks")
    must(all(body.strip() for name, body in BLOCK.findall(updated) if not sections.get(name, {}).get("skipped")), "--update left a block empty")
    for section in report["sections"]:  # what a run of one section leaves as it is
        must(update_page(updated, {**report, "sections": [section]}) == updated, f"--update with {section['name']} alone changed what is of other sections")
    one = update_page(updated, {**report, "sections": [dict(sections["compile"], load=-1, targets=[])]})
    must("load average -1 " in one and "| compile |" not in one and "| growth |" in one, "--update with a section that was measured anew does not show it")
    run(programs + ["--smoke", "nothing"], 2)
    compare(sys.argv[1])
    print(f"{len(sections)} sections ran, {sum(len(s['targets']) for s in sections.values())} targets")


if __name__ == "__main__":
    main()
