#!/usr/bin/env python3
"""Every row of support/diagnostics.def is provoked, with its full text: by a case file (its check lines are what FileCheck compares
whole lines with) or, where no program says it, by a string of a libcheck test. Also: a refusal of a case says what to do next,
unless its rule's message does. Names what is missing."""
import glob
import os
import re
import sys

import diagnostics_doc
import visa_tools

CASES = os.path.join(visa_tools.SOURCE, "test", "cases", "*.vm")
UNITS = os.path.join(visa_tools.SOURCE, "test", "**", "test_*.c")
SAID = re.compile(r"^// ([A-Z0-9_]+?)(?:-NEXT|-LABEL)?:(?:.*: )?(error|warning)\[([EW]-[A-Z-]+)\]: ", re.M)
HELP = re.compile(r"^// [A-Z0-9_]+?(?:-NEXT)?:help: ", re.M)

# "expected X, found Y", "takes 2 arguments, got 1": the message is the next step. After these there is no text to change:
# a binary is compiled again, a file is another one.
MESSAGE_IS_ENOUGH = {"E-LEX", "E-PARSE", "E-MAP-SYNTAX", "E-DELIMITER", "E-ARGUMENTS", "E-CONST", "E-INFER", "E-NAME", "E-MISMATCH",
                     "E-UNSUPPORTED", "E-FILE-READ", "E-FILE-WRITE", "E-STOPPED", "E-BIN-FORMAT", "E-BIN-VERSION", "E-BIN-COMMAND", "E-TENSOR-FILE",
                     "E-TENSOR-SHAPE", "E-TENSOR-TYPE", "E-PORT", "E-RUN-ACCESS", "E-RUN-CHAIN", "E-RUN-DEADLOCK", "E-RUN-INDEX", "E-RUN-LIMIT",
                     "E-CHECK-MISMATCH", "E-PLAN", "E-PLAN-NAME", "E-PLAN-FIT", "E-PLAN-STEP", "E-STEP-PROGRAM", "E-STEP-TOKENS", "E-STEP-RUN"}


def provoked_by_cases():
    """{id: files}, and the places of refusals without a help line."""
    found, helpless = {}, []
    for path in sorted(glob.glob(CASES)):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        said = list(SAID.finditer(text))
        for one, after in zip(said, said[1:] + [None]):
            found.setdefault(one[3], set()).add(os.path.basename(path))
            block = text[one.end():after.start() if after else len(text)]
            if one[3] not in MESSAGE_IS_ENOUGH and not HELP.search(block):
                helpless.append(f"{os.path.basename(path)}:{text.count(chr(10), 0, one.start()) + 1}: {one[3]} has no help line")
    return found, helpless


def provoked_by_units(names):
    """Ids with which an expected text of a libcheck test begins."""
    found = {}
    for path in sorted(glob.glob(UNITS, recursive=True)):
        with open(path) as file:
            text = file.read()
        for name in names:
            if f'"{name}: ' in text:
                found.setdefault(name, set()).add(os.path.basename(path))
    return found


def main():
    with open(diagnostics_doc.ROWS) as file:
        names = [name for _, name, _, _, _ in diagnostics_doc.rows(file.read())]
    cases, helpless = provoked_by_cases()
    units = provoked_by_units(names)
    missing = [name for name in names if name not in cases and name not in units]
    unknown = sorted(set(cases) - set(names))
    for name in missing:
        print(f"{name}: no case or test provokes it")
    for name in unknown:
        print(f"{name}: cases expect it ({', '.join(sorted(cases[name]))}), but there is no such row")
    for place in helpless:
        print(place)
    print(f"{len(names) - len(missing)} of {len(names)} diagnostics are provoked")
    return 1 if missing or unknown or helpless else 0


if __name__ == "__main__":
    sys.exit(main())
