#!/usr/bin/env python3
"""test/mutants at its smallest: what its scanner changes and leaves alone, and every verdict once, on a project of one library and one test
(test/mutants/toy). The tool itself is run by hand (docs/mutants.md)."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "mutants")
sys.path.insert(0, TOOL)
sys.dont_write_bytecode = True
import scanner  # noqa: E402

TEXT = r'''
#define LIMIT (1 < 2 ? 3 : 4) \
    + 5
static const int table[] = {7, 8};
struct pair { int a[9]; };
/* if (a < b) return 1; */
static int f(const pair *p, int a, int b) // a < b
{
    pair *q = p;
    assert(a < 6);
    for (int i = a; i < b; i++)
        g(p->low, "a < b", ',', p->high);
    if (!a && p->high == 0x10)
        return a - b;
    x = ARENA_ARRAY(m, int, a + 1);
    q->low = 2;
    return 1;
}
'''
# operator, line, before, after: all of them and no other.
WANTED = {
    ("constant", 4, "7", "8"), ("constant", 4, "7", "6"), ("constant", 4, "8", "9"), ("constant", 4, "8", "7"),
    ("comparison", 11, "<", "<="), ("comparison", 11, "<", ">="), ("operator", 11, "++", "--"),
    ("statement", 12, "g(p->low, \"a < b\", ',', p->high)", "(void)0"), ("member", 12, "low", "high"), ("member", 12, "high", "low"),
    ("condition", 13, "!a && p->high == 0x10", "!(!a && p->high == 0x10)"), ("condition", 13, "!a && p->high == 0x10", "0"),
    ("condition", 13, "!a && p->high == 0x10", "1"), ("condition", 13, "!", " "), ("condition", 13, "&&", "||"), ("member", 13, "high", "low"),
    ("comparison", 13, "==", "!="), ("comparison", 13, "==", ">="), ("comparison", 13, "==", "<="), ("constant", 13, "0x10", "(0x10 ^ 1)"),
    ("operator", 14, "-", "+"), ("operands", 14, "a - b", "b - a"),
    ("statement", 15, "x = ARENA_ARRAY(m, int, a + 1)", "(void)0"), ("operands", 15, "m, int", "int, m"), ("operator", 15, "+", "-"),
    ("constant", 15, "1", "0"),
    ("statement", 16, "q->low = 2", "(void)0"), ("constant", 16, "2", "3"), ("constant", 16, "2", "1"),
    ("constant", 17, "1", "2"), ("constant", 17, "1", "0"),
}
PLANTS = {
    "src/toy.c:7:sum += i=>sum -= i": "caught",
    "src/toy.c:6:i++=>i--": "caught",  # never ends
    "src/toy.c:14:a > b=>a >= b": "survived",
    "src/toy.c:19:n == 0=>n <= 0": "same",
    "src/toy.c:24:n + 1=>n + 2": "unreached",
    "src/toy.c:8:return sum=>return some": "refused",
}


def scans():
    found = {(m.operator, m.line, m.before, m.after) for m in scanner.mutants(TEXT)}
    for kind, others in (("missing", WANTED - found), ("too many", found - WANTED)):
        for other in sorted(others):
            print(f"FAIL {kind}: {other}")
    for mutant in scanner.mutants(TEXT):
        if mutant.apply(TEXT).count("\n") != TEXT.count("\n"):
            print(f"FAIL {mutant}: lines after it have other numbers")
            return False
    return found == WANTED


def run(*words):
    done = subprocess.run([sys.executable, TOOL, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode()


def judges():
    good = True
    with tempfile.TemporaryDirectory() as folder:
        toy = os.path.join(folder, "toy")
        shutil.copytree(os.path.join(TOOL, "toy"), toy)
        common = ["--source", toy, "--folder", "src", "--build", os.path.join(folder, "build")]
        lists = [run(*common, "--list", "--count", "9", "--seed", seed)[1] for seed in ("1", "1", "2")]
        if lists[0] != lists[1] or lists[0] == lists[2] or lists[0].count("\n") != 9:
            print(f"FAIL a seed draws the same changes each time, another seed others:\n{lists}")
            good = False
        status, text = run(*common, "--grace", "1", *[word for plant in PLANTS for word in ("--plant", plant)])
        verdicts = {line.split()[1].split(":")[1] + " " + line.split("=> ")[1].split("  ")[0]: line.split()[0] for line in text.splitlines() if " planted: " in line}
        for plant, verdict in PLANTS.items():
            _, line, change = plant.split(":")
            got = verdicts.get(line + " " + change.split("=>")[1])
            if got != verdict:
                print(f"FAIL {plant}: {got} instead of {verdict}")
                good = False
        if "check_toy: time limit" not in text or status != 1:
            print(f"FAIL status {status}, or no time limit")
            good = False
        if not good:
            print(text)
        kept = open(os.path.join(toy, "src", "toy.c"), "rb").read()
        if kept != open(os.path.join(TOOL, "toy", "src", "toy.c"), "rb").read():
            print("FAIL the sources were changed")
            good = False
    return good


def main():
    for program in ("cmake", "ninja", "objdump", "cc"):
        if not shutil.which(program):
            print(f"skipped: {program} is missing")
            return 77
    good = [scans(), judges()]
    print("test/mutants: " + ("as expected" if all(good) else "failed"))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
