#!/usr/bin/env python3
"""The algebra next to the numbers, on random kernels: good ones are never accused, and of changed ones it is counted who notices.

    field_random.py [COUNT] [SEED]

Kernels are those of the oracle (test/oracle/contraction.py) and of test/machine/machine_order.py. Each is proven as a whole and from a sample that is traced
back. Then single bits of its binary are changed. What only the numbers notice must be a matter of numbers: a type, a cast, a context's order; what only
the algebra notices is a kernel that agrees within the numbers' bounds and computes something else.
"""
import collections
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402
import machine_order  # noqa: E402
import mutations  # noqa: E402
from contraction import make  # noqa: E402

CHANGES = 4  # of each kernel
OF_NUMBERS = ("dtype", "from", "to", "context", "count", "kind")


def alarm(path, kernel, arguments):
    done = visa_tools.run(["visa-run", path, f"--kernel={kernel}", "--check=algebra", *arguments])
    return None if done.status == 0 else f"{' '.join(arguments)}: status {done.status}: {done.text()}"


def noticed(path, kernel, kind):
    done = visa_tools.run(["visa-run", path, f"--kernel={kernel}", f"--check={kind}"])
    return "crashed" if done.crashed else {0: "agrees", 1: "refused", 3: "noticed"}.get(done.status, "failed")


def change(folder, binary, dump, chance, count):
    """Some changed binaries of a good one; the words of a fault."""
    fields = list(mutations.changes(binary, dump, machine_rows))
    path = os.path.join(folder, "bad.bin")
    for offset, low, width, command, name, _, _, kernel, _, _ in chance.sample(fields, min(CHANGES, len(fields))):
        with open(path, "wb") as file:
            file.write(mutations.mutated(binary, offset, low, width, chance.randrange(8)))
        found = noticed(path, kernel, "numbers"), noticed(path, kernel, "algebra")
        count[found] += 1
        if "crashed" in found or "failed" in found:
            return f"a bit of {command['op']}.{name}: {found}"
        if found == ("noticed", "agrees") and not any(word in name for word in OF_NUMBERS):
            return f"a bit of {command['op']}.{name}: the numbers differ, the algebra agrees"
    return None


machine_rows = mutations.rows(visa_tools.SOURCE)


def text_of(chance, number):
    """A random kernel: every third one of test/machine/machine_order.py, the others of the oracle."""
    return machine_order.kernel(chance) if number % 3 == 0 else make(chance).source() + "\n"


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(12)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count, made, runs, failed, number = collections.Counter(), 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "k.vm"), os.path.join(folder, "k.bin")
        while made < wanted:
            number += 1
            chance = random.Random(f"field/{seed}/{number}")
            text = text_of(random.Random(f"kernel/{seed}/{number}"), number)
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            if visa_tools.run(["visac", source, "-o", path]).status != 0:
                continue
            made += 1
            with open(path, "rb") as file:
                binary = file.read()
            dump = json.loads(visa_tools.run(["visa-objdump", "--json", path]).out)
            for kernel in dump["kernels"]:
                for arguments in ([], [f"--seed={number}", "--samples=7"]):
                    runs += 1
                    fault = alarm(path, kernel["name"], arguments)
                    if fault:
                        failed += 1
                        print(f"number {number}: {fault}\n{text}")
            fault = change(folder, binary, dump, chance, count)
            if fault:
                failed += 1
                print(f"number {number}: {fault}\n{text}")
    print(f"{runs} proofs of {made} good kernels; changed ones, numbers and algebra: " + ", ".join(f"{a}/{b} {n}" for (a, b), n in sorted(count.items())))
    print(f"{runs + sum(count.values()) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
