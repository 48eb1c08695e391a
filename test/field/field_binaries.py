#!/usr/bin/env python3
"""Fields of good binaries, changed one at a time (test/binary/mutations.py): what each of three checks notices, numbers in the machine's order,
numbers in a free order, and algebra. Where one notices what another agrees with, the change is shown.

    field_binaries.py [CHANGES OF EACH KERNEL] [SEED]
"""
import glob
import os
import random
import sys
import tempfile

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TEST, os.path.join(TEST, "binary")]
import mutations  # noqa: E402
import visa_tools  # noqa: E402

EXAMPLES = ("matmul", "mnist_fc2", "conv2d_shift", "split_k")
CHECKS = {"numbers": ["--check=numbers"], "free order": ["--check=numbers", "--reference-order=free"], "algebra": ["--check=algebra"]}


def verdict(path, kernel, options):
    """Of a run: refused, noticed or agreed."""
    status = visa_tools.run(["visa-run", path, f"--kernel={kernel}", *options]).status
    return {0: "agreed", 3: "noticed"}.get(status, "refused")


def main():
    most, seed = [int(a) for a in sys.argv[1:3] + ["4", "1"][len(sys.argv) - 1:]]
    os.environ["VISA_BIN"] = visa_tools.bin_dir()
    table, chance, count = mutations.rows(visa_tools.SOURCE), random.Random(seed), {}
    sources = [os.path.join(visa_tools.SOURCE, "examples", e + ".vm") for e in EXAMPLES]
    sources += sorted(glob.glob(os.path.join(visa_tools.SOURCE, "test", "engine", "*", "mutations.vm")))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "changed.bin")
        for source in sources:
            with mutations.Subject(folder, os.path.basename(source), source) as subject:
                todo = [(c, chance.randrange(8)) for c in mutations.changes(subject.binary, subject.dump, table)]
                for (offset, low, width, command, name, _, _, kernel, _, _), bit in chance.sample(todo, min(most, len(todo))):
                    with open(path, "wb") as f:
                        f.write(mutations.mutated(subject.binary, offset, low, width, bit))
                    found = tuple(verdict(path, kernel, options) for options in CHECKS.values())
                    count[found] = count.get(found, 0) + 1
                    if {"agreed", "noticed"} <= set(found):
                        print(f"{subject.name}, kernel {kernel}, {command['op']}.{name}, bit {bit}: "
                              + ", ".join(f"{check} {what}" for check, what in zip(CHECKS, found)))
    for found, n in sorted(count.items()):
        print(f"{n:6}  " + ", ".join(f"{name} {what}" for name, what in zip(CHECKS, found)))
    seen = [sum(n for found, n in count.items() if found[i] == "noticed") for i in range(3)]
    print(f"{sum(count.values())} changes; noticed: " + ", ".join(f"{n} by {name}" for n, name in zip(seen, CHECKS)))
    return 0 if seen[2] else 1


if __name__ == "__main__":
    sys.exit(main())
