#!/usr/bin/env python3
"""docs/diagnostics.md from the rows of support/diagnostics.def. Compares; --update writes it anew."""
import os
import re
import sys

import visa_tools

ROWS = os.path.join(visa_tools.SOURCE, "support", "diagnostics.def")
PAGE = os.path.join(visa_tools.SOURCE, "docs", "diagnostics.md")
STRING = r'"(?:[^"\\]|\\.)*"'
ROW = re.compile(rf'DIAG\(\s*(\w+)\s*,\s*({STRING})\s*,\s*(\w+)\s*,\s*((?:{STRING}\s*)+),\s*((?:{STRING}\s*)+)\)', re.S)
GROUP = re.compile(r"^/\* (.+?) \*/$", re.M)

HEAD = """# Diagnostics

What visac, visa-run and visa-objdump say, in the order of the pipeline. `visac --explain ID` prints the same text.
A message begins with file, line and column where there is a source text, then the severity and the id; notes point
at what else takes part, `help:` says what would be accepted. Programs read them with `--diagnostics-format=json`
or `sarif`. A warning is named on the command line by its id without `W-`, in lower case: `-Wno-dma-granule`,
`-Werror=discarded`. [complaints.md](complaints.md) shows what messages look like.

This page is made from `support/diagnostics.def` (`test/diagnostics_doc.py --update`).
"""


def text_of(strings):
    return "".join(part[1:-1].replace('\\"', '"') for part in re.findall(STRING, strings))


def rows(source):
    """(group, name, severity, title, explanation), in the file's order."""
    head_end = source.index("*/") + 2
    groups = [(m.start(), m.group(1)) for m in GROUP.finditer(source, head_end)]
    for m in ROW.finditer(source, head_end):
        group = [name for at, name in groups if at < m.start()][-1]
        yield group, m.group(2)[1:-1], m.group(3).lower(), text_of(m.group(4)), text_of(m.group(5))


def page(source):
    out, last = [HEAD], None
    for group, name, severity, title, explanation in rows(source):
        if group != last:
            out.append(f"\n## {group}\n")
            last = group
        kind = {"warning": " (warning)", "performance": " (warning, -Wperformance)"}.get(severity, "")
        out.append(f"\n### {name}{kind}\n\n{title[0].upper()}{title[1:]}.\n\n{explanation}\n")
    return "".join(out)


def main(arguments):
    with open(ROWS) as file:
        source = file.read()
    declared, found = source.count("\nDIAG("), len(list(rows(source)))
    if declared != found:
        print(f"{ROWS}: {declared} rows, {found} of them understood")
        return 1
    print(f"docs/diagnostics.md: {found} diagnostics")
    return visa_tools.page_is(PAGE, page(source), "support/diagnostics.def", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
