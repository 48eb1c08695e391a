#!/usr/bin/env python3
"""Which code a compile runs, as lines of a linker script that put it together:

    cmake/start_order.py build/release/bin build/dev/bin > /tmp/order && mv /tmp/order cmake/start_order.ld

Each is a build's folder of programs, with the map that the linker wrote next to visac; what one build has in line is a function in the other.
Each example is compiled under callgrind; a section of the map that holds an instruction that was run is a line of the script. What most examples
run stands first: these pages are the ones that every compile maps. A line whose section is not there any more says nothing, one that is missing
costs a page fault: the script has no influence on what is computed. test/start.py says when it wants to be made anew."""
import bisect
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = "/* The code that a compile runs, in one place; cmake/start_order.py made this (docs/performance.md, a compile). */\n"


def sections(path):
    """[(address, end, pattern)] of the code in a link map."""
    text = path.read_text()
    text = text[text.index("Linker script and memory map"):]
    found = []
    for name, address, size, place in re.findall(r"^ (\.text\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$", text, re.M):
        begin, length = int(address, 16), int(size, 16)
        if length and pattern(name, place):
            found.append((begin, begin + length, pattern(name, place)))
    return sorted(found)


def pattern(name, place):
    """A section of ours has its function's name; in an archive of the system a section is a member's."""
    member = re.search(r"/(lib(?:c|elf|jansson|z|gcc|gcc_eh)\.a)\((\S+)\)$", place)
    if member:
        # Which form of a string function is run depends on the processor.
        form = re.fullmatch(r"(\w+)-(?:sse|avx|evex)\S*\.o", member[2])
        return f"*{member[1]}:{form[1]}-*.o(.text .text.*)" if form else f"*{member[1]}:{member[2]}({name})"
    if name == ".text":
        return None  # of the code in front of main
    # Copies that the compiler makes of a function are numbered by whatever else is in the file.
    whole = re.sub(r"(\.(?:part|isra|constprop)(\.\d+)?)+$", "", name)
    return f"*({whole} {whole}.*)"


def executed(program, source, folder):
    """Addresses of the instructions that a compile runs."""
    out = pathlib.Path(folder, "callgrind")
    subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={out}", program, source, "-o", f"{folder}/out.bin"],
                   check=True, capture_output=True)
    at, found = 0, set()
    for line in out.read_text().splitlines():
        word = line.split(" ", 1)[0]
        if word.startswith("0x"):
            at = int(word, 16)
        elif re.fullmatch(r"[+-]\d+", word):
            at += int(word)
        elif word != "*":
            continue
        found.add(at)
    return found


def sections_run(programs, sources, folder):
    """{pattern: how many of the sources run it}"""
    known = sections(programs / "visac.map")
    begins = [begin for begin, _, _ in known]
    users = collections.Counter()
    for source in sources:
        used = set()
        for address in executed(programs / "visac", source, folder):
            k = bisect.bisect_right(begins, address) - 1
            if k >= 0 and address < known[k][1]:
                used.add(known[k][2])
        users.update(used)
    return users


def main():
    examples = sorted((ROOT / "examples").glob("*.vm"))
    users = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for programs in sys.argv[1:]:
            users |= sections_run(pathlib.Path(programs), examples, folder)
    print(HEAD, end="")
    for wanted in (lambda n: 2 * n > len(examples), lambda n: 2 * n <= len(examples)):
        for line in sorted(p for p, n in users.items() if wanted(n)):
            print(line)


if __name__ == "__main__":
    main()
