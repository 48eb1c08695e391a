"""Which test reaches which line: each test once in the coverage build, its traces (coverage.c) read with the line tables of its objects."""
import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor

import units


def blocks(path, build):
    """Place after the call of each basic block -> {(source, line)} of its instructions, for a library or program. A compiler that is told so
    (ccache with a base folder) names sources from the folder it builds in."""
    calls = []
    dump = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    behind = False
    for line in dump.splitlines():
        address, colon, text = line.partition(":\t")
        if not colon:
            continue
        if behind:
            calls.append(int(address, 16))
        behind = "call" in text and "__sanitizer_cov_trace_pc>" in text
    rows, source = [], None
    table = subprocess.run(["objdump", "-WL", "--wide", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode("utf-8", "replace")
    for line in table.splitlines():
        header = re.fullmatch(r"(?:CU: )?(\S+):", line)
        if header:
            source = os.path.relpath(os.path.join(build.folder, header[1]), build.tree)
            continue
        row = re.match(r"\S+\s+(\d+)\s+0x([0-9a-f]+)", line)
        if row and source and not source.startswith(".."):
            rows.append((int(row[2], 16), source, int(row[1])))
    rows.sort(key=lambda r: r[0])
    found, i = {}, 0
    for call, following in zip(calls, calls[1:] + [1 << 62]):
        while i < len(rows) and rows[i][0] < call - 5:
            i += 1
        at = max(0, i - 1)  # the row in which the call itself lies
        lines = set()
        while at < len(rows) and rows[at][0] < following - 5:
            lines.add((rows[at][1], rows[at][2]))
            at += 1
        found[call] = lines
    return found


def reached(job):
    unit, build, longest = job
    folder = tempfile.mkdtemp(prefix="traces-")
    passed, seconds, why = units.execute(unit, build, build.programs, longest, {"MUTANTS_COVERAGE": folder})
    hits = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        hits[name] = [match.start() for match in re.finditer(b"\x01", data)]
    shutil.rmtree(folder)
    return unit.name, passed, seconds, why, hits


LONGEST = 90  # seconds; a test that takes longer is not run against mutants


def measure(build, listed, path, jobs, longest, say):
    """Writes {"units": {name: seconds}, "left_out": {name: why}, "lines": {source: {line: [number of unit]}}}."""
    known = {}
    times, left_out, lines, order = {}, {}, {}, []
    with ProcessPoolExecutor(jobs) as pool:
        for name, passed, seconds, why, hits in pool.map(reached, [(unit, build, longest) for unit in listed]):
            say(f"{seconds:7.2f} s  {name}{'' if passed else '  ' + why}")
            if not passed:
                left_out[name] = why.splitlines()[0] if why else "failed"
                continue
            number = len(order)
            order.append(name)
            times[name] = round(seconds, 3)
            for module, places in hits.items():
                if module not in known:
                    known[module] = blocks(os.path.join(build.programs, module), build)
                for place in places:
                    for source, line in known[module].get(place, ()):
                        lines.setdefault(source, {}).setdefault(line, set()).add(number)
    for module in known:  # lines that no test reached are lines too
        for found in known[module].values():
            for source, line in found:
                lines.setdefault(source, {}).setdefault(line, set())
    text = json.dumps({"units": times, "left_out": left_out, "lines": {s: {str(n): sorted(u) for n, u in sorted(f.items())} for s, f in sorted(lines.items())}})
    with gzip.open(path, "wt") as file:
        file.write(text)


def load(path):
    with gzip.open(path, "rt") as file:
        found = json.load(file)
    names = list(found["units"])
    return found["units"], found["left_out"], {s: {int(n): [names[u] for u in us] for n, us in f.items()} for s, f in found["lines"].items()}
