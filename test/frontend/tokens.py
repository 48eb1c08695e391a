#!/usr/bin/env python3
"""One verdict: what is accepted early is not refused late.

Every token of the case files, the examples and some random contractions is left out once and written twice once, and every name and number is replaced by
another one of the file. visac must refuse the file where it is wrong
(each error with its place), or make a binary; a fault of the binary's writer, a place that is missing, or a crash is a failure.
Some of what still compiles is also run and compared.

    tokens.py [--all] FILE.vm...     a random sample, or every token
"""
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

from contraction import make  # noqa: E402

TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|[A-Za-z_][A-Za-z_0-9]*|\d\w*|::|->|=>|<<|>>|\S", re.S)
CHANGES, RUNS, SEED = 400, 12, 7
ONLY_COMPILED = {"matmul_4096.vm", "report-bounds.vm"}  # a run under the sanitizers takes minutes; the second has an input of 4 GiB
KERNELS = 10  # random ones
LATE = re.compile(r"E-BIN-|E-INTERNAL|internal error|Sanitizer|runtime error:|Assertion")


def variants(text, chance):
    """(line, what was done, begin, end, what is there now) for every token."""
    tokens = [match for match in TOKEN.finditer(text) if not match[0].startswith(("//", "/*"))]
    alike = {kind: sorted({m[0] for m in tokens if kind(m[0])}) for kind in (str.isidentifier, str.isdigit)}
    for match in tokens:
        line = text.count("\n", 0, match.start()) + 1
        yield line, f"without `{match[0]}`", match.start(), match.end(), ""
        yield line, f"with `{match[0]}` twice", match.start(), match.end(), f"{match[0]} {match[0]}"
        for kind, others in alike.items():
            if kind(match[0]):
                other = chance.choice(others)
                yield line, f"with `{other}` for `{match[0]}`", match.start(), match.end(), other


def fault_of(status, output, source):
    """What is wrong with this answer to a changed file, or None."""
    if status not in (0, 1) or LATE.search(output):
        return f"exit {status}"
    for line in output.splitlines():
        if re.search(r"\berror\[", line) and not line.startswith(source + ":"):
            return "an error without a place"
    return None


def main():
    chance = random.Random(SEED)
    texts = [(path, open(path, encoding="utf-8").read()) for path in sys.argv[1:] if path != "--all"]
    texts += [(f"random kernel {i}", make(random.Random(f"kernel/{i}")).source() + "\n") for i in range(KERNELS * visa_tools.LONGER)]
    todo = [(path, text, *v) for path, text in texts for v in variants(text, chance)]
    if "--all" not in sys.argv:
        todo = chance.sample(todo, min(visa_tools.few(CHANGES), len(todo)))
    accepted, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "changed.vm")

        def answer(text, begin, end, now, *arguments):
            with open(source, "w", encoding="utf-8") as file:
                file.write(text[:begin] + now + text[end:])
            done = visa_tools.run(["visac", source, "-ferror-limit=0", *arguments])
            return done.status, done.text()

        for path, text, line, what, *change in todo:
            status, output = answer(text, *change, "-o", os.path.join(folder, "changed.bin"))
            wrong = fault_of(status, output, source)
            if wrong:
                failed += 1
                print(f"{path}:{line} {what}: {wrong}\n{output[:600]}")
            elif status == 0:
                accepted.append((path, text, line, what, *change))
        quick = [file for file in accepted if os.path.basename(file[0]) not in ONLY_COMPILED]
        runs = quick if "--all" in sys.argv else chance.sample(quick, min(visa_tools.few(RUNS), len(quick)))
        for path, text, line, what, *change in runs:
            status, output = answer(text, *change, "--check")
            if status != 0 and "[E-CHECK-NOTHING]: there is no kernel to check" not in output:
                failed += 1
                print(f"{path}:{line} {what}: compiles, and --check exits {status}\n{output[-600:]}")
    print(f"{len(todo)} changed files: {len(todo) - len(accepted)} refused, {len(accepted)} compiled, of these {len(runs)} run")
    print(f"{len(todo) + len(runs) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
