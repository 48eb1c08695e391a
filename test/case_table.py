#!/usr/bin/env python3
"""The table of test/cases/README.md names cases and modules or functions in them: each of them is there, and no case is left out that
the table's material has a file for."""
import glob
import os
import re
import sys

import visa_tools

FOLDER = os.path.join(visa_tools.SOURCE, "test", "cases")
ROW = re.compile(r"^\| (.*?) \| (.*) \|$", re.M)
FILE = re.compile(r"`([\w*-]+\.vm)`")
NAME = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b(?!\*)")


def text_of(pattern):
    return "".join(open(path).read() for path in glob.glob(os.path.join(FOLDER, pattern)))


def main():
    with open(os.path.join(FOLDER, "README.md")) as file:
        table = file.read()
    faults, names, named_files = [], 0, set()
    for material, cell in ROW.findall(table):
        for part in cell.split(";"):
            files = FILE.findall(part)
            texts = {name: text_of(name) for name in files}
            named_files |= {os.path.basename(p) for name in files for p in glob.glob(os.path.join(FOLDER, name))}
            faults += [f"{material}: there is no {name}" for name, text in texts.items() if not text]
            for name in NAME.findall(re.sub(r"`[^`]*`", "", part)) if files else []:
                names += 1
                if not re.search(rf"\b(mod|fn) {name}\b", "".join(texts.values())):
                    faults.append(f"{material}: no module or function {name} in {', '.join(files)}")
    examples = {os.path.basename(p) for p in glob.glob(os.path.join(FOLDER, "*-sizes*.vm")) + glob.glob(os.path.join(FOLDER, "*-examples*.vm"))}
    faults += [f"{name} is in no row of the table" for name in sorted(examples - named_files)]
    print("\n".join(faults + [f"{names} names, {len(faults)} faults"]))
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main())
