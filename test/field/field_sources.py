#!/usr/bin/env python3
"""Sources with a mistake, held against the mathematics of the source without it: who notices, the numbers or the algebra?

    field_sources.py [COUNT] [SEED]

A random kernel (field_random.py) is compiled. Then a number of its text (a size, an offset, a divisor), two parts of a mapping or two names in it
are changed; what still compiles has other commands, and the einsum of the unchanged kernel (field_transplant.c). It is what a compiler that
misunderstood the kernel would write. COUNT are the changed kernels whose commands differ. Where the compiler says of the changed kernel that it
computes something else, somebody has to notice.
"""
import collections
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402
import field_random  # noqa: E402

TRIES = 12  # changes of a kernel
KINDS = (("numbers", ["--check=numbers"]), ("free order", ["--check=numbers", "--reference-order=free"]), ("algebra", ["--check=algebra"]))
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]|x)")
MAPPING = re.compile(r"m!\[([^\[\]]*,[^\[\]]*)\]")
NAME = re.compile(r"(?<![\w.])[A-Z](?!\w)")


def changed(text, chance):
    """One mistake after the first line, which has the axes; None: the text has no such place."""
    head, _, body = text.partition("\n")
    kind = chance.choice(("number", "number", "swap", "name"))
    if kind == "number":
        at = chance.choice(list(NUMBER.finditer(body)))
        n = int(at.group())
        new = chance.choice([m for m in (n - 1, n + 1, n * 2, n // 2) if m != n and m >= 0])
        return head + "\n" + body[:at.start()] + str(new) + body[at.end():]
    if kind == "swap":
        found = list(MAPPING.finditer(body))
        if not found:
            return None
        at = chance.choice(found)
        parts = [p.strip() for p in at.group(1).split(",")]
        i = chance.randrange(len(parts) - 1)
        parts[i], parts[i + 1] = parts[i + 1], parts[i]
        return head + "\n" + body[:at.start()] + "m![" + ", ".join(parts) + "]" + body[at.end():]
    found = list(NAME.finditer(body))
    at = chance.choice(found)
    return head + "\n" + body[:at.start()] + chance.choice(sorted({m.group() for m in found})) + body[at.end():]


def compiled(text, path):
    source = path + ".vm"
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    return visa_tools.run(["visac", source, "-o", path]).status == 0


def words(path):
    """What the machine runs, and what is computed, as text: kernels without their names of lines."""
    dump = visa_tools.run(["visa-objdump", path]).text()
    return re.sub(r"line \d+|^.*\.bin.*$", "", dump, flags=re.M)


def noticed(path, arguments):
    status = visa_tools.run(["visa-run", path, *arguments]).status
    return {0: "agrees", 1: "refused", 3: "noticed"}.get(status, f"status {status}")


def einsum(dump):
    return "\n".join(re.findall(r"^  einsum .*(?:\n    .*)*", dump, flags=re.M))


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(12)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count, made, number, failed = collections.Counter(), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        good, bad, mixed = (os.path.join(folder, f"{name}.bin") for name in ("good", "bad", "mixed"))
        while made < wanted:
            number += 1
            chance = random.Random(f"sources/{seed}/{number}")
            text = field_random.text_of(chance, number)
            if not compiled(text, good):
                continue
            meant = words(good)
            for _ in range(TRIES):
                other = changed(text, chance)
                if other is None or other == text:
                    continue
                if not compiled(other, bad):
                    count["the compiler refuses"] += 1
                    continue
                done = words(bad)
                if done == meant:
                    count["the same binary"] += 1
                    continue
                status = visa_tools.run(["field_transplant", good, bad, mixed]).status
                if status != 0:
                    count["other inputs or outputs"] += 1
                    continue
                found = {name: noticed(mixed, arguments) for name, arguments in KINDS}
                if "refused" in found.values():
                    count["the machine refuses"] += 1
                    continue
                made += 1
                differs = einsum(done) != einsum(meant)
                who = ", ".join(name for name, what in found.items() if what == "noticed") or "nobody"
                count[("other mathematics" if differs else "the same mathematics") + ", noticed by " + who] += 1
                crashed = any(what.startswith("status") for what in found.values())
                if crashed or (found["algebra"] == "noticed") != (found["numbers"] == "noticed") or (not differs and who != "nobody"):
                    failed += crashed or (not differs and who != "nobody")
                    print(f"number {number}, {found}, {'other' if differs else 'same'} mathematics:")
                    print("\n".join(f"- {a}\n+ {b}" for a, b in zip(text.splitlines(), other.splitlines()) if a != b))
                if made == wanted:
                    break
    for name, n in sorted(count.items()):
        print(f"{n:6} {name}")
    print(f"{made - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
