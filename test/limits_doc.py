#!/usr/bin/env python3
"""The tables of docs/limits.md from the LIMIT rows of target/, of its engines and of support/, and the names that no engine has yet.
Compares; --update writes them anew. What stands outside of the marks is prose, and kept."""
import os
import re
import sys

import visa_tools

PAGE = os.path.join(visa_tools.SOURCE, "docs", "limits.md")
BEGIN, END = "<!-- generated from the LIMIT rows: do not edit -->\n", "<!-- end of the generated block -->\n"
ROW = re.compile(r'^LIMIT\((\w+), ([^,]+), ("(?:[^"\\]|\\.)*"), ("(?:[^"\\]|\\.)*")\)$', re.M)
NAME = re.compile(r'^OTHER_NAME\((\w+), "(\w+)", (\w+)\)$', re.M)


def read(*path):
    with open(os.path.join(visa_tools.SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def engines():
    """Those of target/engines.def, in datapath order."""
    return re.findall(r'^#include "target/engine/(\w+)\.def"', read("target", "engines.def"), re.M)


def number(name, expression):
    digits = re.sub(r"(\d)[uUlL]+", r"\1", expression)
    if not re.fullmatch(r"[-\d\s()*<]+", digits):
        sys.exit(f"{name} is {expression}, which this script cannot read")
    return f"{eval(digits):,}"  # noqa: S307: digits and operators only


def rows(path):
    text = read(*path)
    found = ROW.findall(text)
    if len(found) != len(re.findall(r"^LIMIT\(", text, re.M)):
        sys.exit(f'{"/".join(path)}: a row has another form than LIMIT(name, value, "unit", "words")')
    return [(name, number(name, value), unit[1:-1], words[1:-1]) for name, value, unit, words in found]


def table(heads, lines):
    return "".join("| " + " | ".join(line) + " |\n" for line in [heads, ["---"] * len(heads), *lines])


def generated():
    out = ["\n## The machine\n\n", "From [target/limits.def](../target/limits.def).\n\n"]
    heads = ["number", "value", "unit", "source"]
    out.append(table(heads, [[f"`{n}`", v, u, w] for n, v, u, w in rows(("target", "limits.def"))]))
    out.append("\n## Its engines\n\nFrom the file of each engine, in the order in which a stream meets them.\n\n")
    lines = []
    for engine in engines():
        lines += [[engine, f"`{n}`", v, u, w] for n, v, u, w in rows(("target", "engine", f"{engine}.def"))]
    out.append(table(["engine", *heads], lines))
    out.append("\n## The tools\n\nWhat a program does at most for one input, from [support/limits.def](../support/limits.def).\n\n")
    out.append(table(["number", "value", "unit", "of what"], [[f"`{n}`", v, u, w] for n, v, u, w in rows(("support", "limits.def"))]))
    names = NAME.findall(read("target", "engine", "unbuilt.def"))
    out.append("\n## Names that are known and not built\n\n")
    out.append(table(["name", "engine", "since"], [[f"`{name}`", engine, release.replace("V", "").replace("_", ".")] for engine, name, release in names]))
    return "".join(out) + "\n"


def main(arguments):
    page = read("docs", "limits.md")
    head, old, tail = page.partition(BEGIN)[0], page.partition(BEGIN)[2].partition(END)[0], page.partition(END)[2]
    if not old:
        sys.exit("docs/limits.md has no marks to write between")
    wanted = generated()
    print(f"docs/limits.md: {wanted.count('| `')} rows")
    return visa_tools.page_is(PAGE, head + BEGIN + wanted + END + tail, "the LIMIT rows", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
