#!/usr/bin/env python3
"""Do the tests catch bugs? Plants small changes in the C sources, runs the tests that reach the changed line, prints those that nothing noticed.

    test/mutants [--count N] [--seed S] [--only PART]... [--line FILE:LINE]... [--plant FILE:LINE:BEFORE=>AFTER]... [-j N]

A change (scanner.py) is a comparison and its boundary, an operator, an operand exchanged, a condition turned or dropped, a constant, another
member, a statement left out. They are drawn by the seed, each folder's share in proportion to its lines; a longer run begins with those of
a shorter one. Built is a copy of the tree (tree.py) under build/mutants; the tests of a line are known from one run of each (coverage.py),
made anew where the sources changed (--coverage old keeps it). Those that know most of a file for
their time run first, until one fails or exceeds its time.

    refused    the compiler takes no such text         same       the compiler makes the same code of it
    caught     a test failed, or did not end            survived   all tests passed
    unreached  no test comes to the line

Exit status: 0 where every judged mutant was caught, 1 otherwise.
"""
import argparse
import hashlib
import json
import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import coverage  # noqa: E402
import judge  # noqa: E402
import scanner  # noqa: E402
import tree  # noqa: E402
import units  # noqa: E402

FOLDERS = ("passes", "ir", "codegen", "runtime", "frontend", "libvisa", "tools", "lsp", "support", "target")
NOT_JUDGED = ("refused", "same", "not built")
# Kinds of changes are drawn with equal weight, then a change of the kind: members are many and dull.
WEIGHTS = {"comparison": 4, "condition": 4, "constant": 3, "operator": 3, "operands": 2, "member": 2, "statement": 2}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sources(source, folders):
    """folder -> its C files, sorted."""
    found = {}
    for folder in folders:
        for where, _, names in os.walk(os.path.join(source, folder)):
            found.setdefault(folder, []).extend(os.path.relpath(os.path.join(where, n), source) for n in names if n.endswith(".c"))
    return {folder: sorted(files) for folder, files in found.items()}


def shares(lines, count):
    """How many of `count` each folder gets, in proportion to its lines; each one at least."""
    total = sum(lines.values())
    found = {folder: max(1, count * n // total) for folder, n in lines.items()}
    for folder in sorted(lines, key=lambda f: (-(count * lines[f] % total), f)):
        if sum(found.values()) < count:
            found[folder] += 1
    return found


def drawn(source, files, seed, folder):
    """All mutants of a folder, in the order in which this seed draws them: (file, mutant, text). Each one's place follows from its own line,
    so that a change elsewhere leaves most of the order as it was."""
    found, kinds, seen = [], {}, {}
    for path in files:
        text = read(os.path.join(source, path))
        lines = text.splitlines()
        for mutant in scanner.mutants(text):
            name = (seed, path, lines[mutant.line - 1].strip(), mutant.before, mutant.after)
            seen[name] = seen.get(name, 0) + 1
            found.append((name + (seen[name],), (path, mutant, text)))
            kinds[mutant.operator] = kinds.get(mutant.operator, 0) + 1
    places = {}
    for name, job in found:
        chance = (int.from_bytes(hashlib.sha256(repr(name).encode()).digest()[:8], "big") + 1) / (2 ** 64 + 1)
        places[name] = -math.log(chance) * kinds[job[1].operator] / WEIGHTS[job[1].operator]
    for name, job in sorted(found, key=lambda entry: (places[entry[0]], entry[0])):
        yield job


def planted(source, word):
    path, line, change = word.split(":", 2)
    before, after = change.split("=>")
    text = read(os.path.join(source, path))
    begin = sum(len(part) for part in text.splitlines(True)[:int(line) - 1])
    at = text.find(before, begin)
    if at < 0 or text.count("\n", 0, at) + 1 != int(line):
        sys.exit(f"{path}:{line} has no {before}")
    return path, scanner.Mutant("planted", int(line), at, before, after), text


def of_line(source, word):
    path, line = word.split(":")
    text = read(os.path.join(source, path))
    return [(path, mutant, text) for mutant in scanner.mutants(text) if mutant.line == int(line)]


class Store:
    """Verdicts so far, one a line; a verdict counts while the tests and the file are what they were."""

    def __init__(self, path, state):
        self.path, self.state, self.known = path, state, {}
        if os.path.exists(path):
            with open(path) as file:
                for line in file:
                    entry = json.loads(line)
                    self.known[tuple(entry["key"])] = entry

    def verdict(self, job, budget):
        """What is known of it, where nothing more could be found out with so many seconds of tests."""
        entry = self.known.get(self.key(*job))
        cut_short = entry and entry["verdict"] == "survived" and len(entry["passed"]) < entry["of"] and entry["budget"] < budget
        return None if cut_short else entry

    def passed(self, job):
        entry = self.known.get(self.key(*job))
        return entry.get("passed", []) if entry else []

    def key(self, path, mutant, text):
        return (path, mutant.at, mutant.before, mutant.after, hashlib.sha256(text.encode()).hexdigest()[:16], self.state)

    def add(self, path, mutant, text, verdict):
        entry = dict(key=self.key(path, mutant, text), file=path, line=mutant.line, operator=mutant.operator, before=mutant.before, after=mutant.after, **verdict)
        self.known[self.key(path, mutant, text)] = entry
        with open(self.path, "a") as file:
            file.write(json.dumps(entry) + "\n")
        return entry


def state_of(folder, endings):
    """A digest of the files below a folder with these endings."""
    whole = hashlib.sha256()
    for where, folders, names in sorted(os.walk(folder)):
        folders.sort()
        for name in sorted(names):
            if name.endswith(endings) and "__pycache__" not in where:
                whole.update(name.encode() + b"\0" + open(os.path.join(where, name), "rb").read())
    return whole.hexdigest()[:16]


def shown(entry):
    flat = " ".join(entry["before"].split()), " ".join(entry["after"].split())
    if entry["verdict"] == "caught":
        more = f"  {entry['by']}: {entry['why'][:60]}"
    elif entry["verdict"] == "survived":
        more = f"  {len(entry['passed'])} of {entry['of']} tests"
    else:
        more = ""
    return f"{entry['verdict']:9} {entry['file']}:{entry['line']} {entry['operator']}: {flat[0][:80]} => {flat[1][:80]}{more}"


def run(jobs, executor, store, quota, budget, say):
    """Judges what the iterator yields until `quota` mutants have a verdict that counts; the entries in the order drawn."""
    found, waiting, counted = [], [], 0

    def settle():
        nonlocal counted
        job, future = waiting.pop(0)
        entry = future if isinstance(future, dict) else store.add(*job, future.result())
        found.append(entry)
        counted += entry["verdict"] not in NOT_JUDGED
        say(entry)

    for job in jobs:
        known = store.verdict(job, budget)
        waiting.append((job, known if known else executor.submit(judge.work, job + (store.passed(job),))))
        while waiting and counted < quota and (len(waiting) > 4 or counted + len(waiting) >= quota):
            settle()
        if counted >= quota:
            break
    while waiting and counted < quota:
        settle()
    for _, future in waiting:
        if not isinstance(future, dict):
            future.cancel()
    return found


def main():
    parser = argparse.ArgumentParser(prog="test/mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40, help="mutants that are judged (default 40)")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="only files whose path has this part")
    parser.add_argument("--plant", action="append", default=[], metavar="FILE:LINE:BEFORE=>AFTER", help="this change, in the place of drawn ones")
    parser.add_argument("--line", action="append", default=[], metavar="FILE:LINE", help="all changes of this line")
    parser.add_argument("--list", action="store_true", help="only say which mutants would be drawn")
    parser.add_argument("--coverage", choices=("new", "old"), default="new", help="old: which test reaches which line as it was found last")
    parser.add_argument("--longest", type=float, default=coverage.LONGEST, help=f"seconds of a test that is run against mutants (default {coverage.LONGEST}); asked when coverage is new")
    parser.add_argument("--tests-seconds", type=float, default=300, help="of tests for a mutant (default 300)")
    parser.add_argument("--grace", type=float, default=20, help="seconds of a test next to ten times what it took (default 20)")
    parser.add_argument("--source", default=os.path.dirname(os.path.dirname(HERE)), help="another project with CMakeLists.txt and tests of ctest")
    parser.add_argument("--folder", action="append", default=[], help="folders of sources; default: visac's")
    parser.add_argument("--build", help="where everything is built (default: build/mutants)")
    parser.add_argument("-j", type=int, default=2)
    arguments = parser.parse_args()
    source = os.path.abspath(arguments.source)
    base = os.path.abspath(arguments.build or os.path.join(source, "build", "mutants"))
    folders = sources(source, arguments.folder or FOLDERS)
    if arguments.only:
        folders = {folder: [f for f in files if any(part in f for part in arguments.only)] for folder, files in folders.items()}
        folders = {folder: files for folder, files in folders.items() if files}
    lines = {folder: sum(read(os.path.join(source, f)).count("\n") for f in files) for folder, files in folders.items()}
    jobs = {folder: drawn(source, files, arguments.seed, folder) for folder, files in folders.items()}
    quotas = shares(lines, arguments.count)
    if arguments.plant or arguments.line:
        wanted = [planted(source, word) for word in arguments.plant] + [job for word in arguments.line for job in of_line(source, word)]
        jobs, quotas = {"planted": iter(wanted)}, {"planted": len(wanted)}
    if arguments.list:
        for folder in jobs:
            for path, mutant, _ in (next(jobs[folder]) for _ in range(quotas[folder])):
                print(f"{path}:{mutant.line} {mutant.operator}: {' '.join(mutant.before.split())} => {' '.join(mutant.after.split())}")
        return 0

    def say(text):
        print(text, flush=True)

    copied = os.path.join(base, "tree")
    tree.copy(source, copied)
    plain, traced = (tree.Build(name, copied, os.path.join(base, name)) for name in ("plain", "coverage"))
    plain.make(arguments.j)
    map_path = os.path.join(base, "lines.json.gz")
    state = state_of(copied, (".c", ".h", ".def", ".py", ".vm", ".md", ".y", ".l", ".sh"))
    mark = os.path.join(base, "state")
    fresh = os.path.exists(map_path) and (arguments.coverage == "old" or os.path.exists(mark) and read(mark) == state)
    listed = units.units(plain)
    if not fresh:
        traced.make(arguments.j)
        coverage.measure(traced, units.units(traced), map_path, arguments.j, arguments.longest, say)
        with open(mark, "w") as file:
            file.write(state)
    seconds, left_out, _ = coverage.load(map_path)
    say(f"{len(seconds)} tests; left out: " + (", ".join(f"{name} ({why})" for name, why in left_out.items()) or "none"))
    store = Store(os.path.join(base, "verdicts.jsonl"), read(mark))
    entries = []
    with ProcessPoolExecutor(arguments.j, initializer=judge.begin, initargs=(plain, base, listed, map_path, arguments.tests_seconds, arguments.grace)) as executor:
        for folder, iterator in jobs.items():
            entries += run(iterator, executor, store, quotas[folder], arguments.tests_seconds, lambda entry: say(shown(entry)))
    counts = {}
    for entry in entries:
        folder = entry["file"].split("/")[0]
        counts.setdefault(folder, {}).setdefault(entry["verdict"], 0)
        counts[folder][entry["verdict"]] += 1
    say("\n| folder | judged | caught | survived | unreached | same code | refused |\n|---|---|---|---|---|---|---|")
    names = ("caught", "survived", "unreached", "same", "refused")
    whole = {name: sum(c.get(name, 0) for c in counts.values()) for name in names}
    for folder, count in list(counts.items()) + [("all", whole)]:
        say(f"| {folder} | {sum(count.get(n, 0) for n in names[:3])} | " + " | ".join(str(count.get(n, 0)) for n in names) + " |")
    missed = [entry for entry in entries if entry["verdict"] in ("survived", "unreached")]
    say("")
    for entry in missed:
        say(shown(entry))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
