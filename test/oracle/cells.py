"""Kernels that move elements, with inputs cell by cell and outputs read back: what is where is compared, not whether two parts of visac agree.

A tensor here is a dictionary from the code of a coordinate (meaning.py) to a number."""
import itertools
import os
import random
import struct
import sys
import tempfile

import meaning
from harness import visa_tools

FORMATS = {"i32": "i", "i16": "h", "i8": "b"}
BYTES = {"i32": 4, "i16": 2, "i8": 1}


def table(text, axes):
    return meaning.table(meaning.parse(text), axes)


def named(texts, axes):
    """Axes in the order in which the mappings first name them."""
    found = []
    for text in texts:
        for name in sorted((n for n in axes.sizes if n in text.replace("/", " ").replace(",", " ").replace("[", " ").replace("]", " ").split()),
                           key=lambda n: (text + " ").replace(",", " ").find(n)):
            if name not in found:
                found.append(name)
    return found


def logical(order, axes):
    """Codes of all elements of whole axes, row by row."""
    return [sum(c << axes.shift[n] for c, n in zip(at, order)) for at in itertools.product(*(range(axes.sizes[n]) for n in order))]


def wrap(value, dtype):
    bits = 8 * BYTES[dtype]
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


class Port:
    """Name, element type, mappings (texts), and for an input its cells."""

    def __init__(self, name, dtype, maps, cells=None):
        self.name, self.dtype, self.maps, self.cells = name, dtype, maps, cells

    def pack(self, axes):
        codes = logical(named(self.maps, axes), axes)
        return struct.pack(f"<{len(codes)}{FORMATS[self.dtype]}", *(self.cells.get(c, 0) for c in codes))

    def unpack(self, data, axes):
        codes = logical(named(self.maps, axes), axes)
        return dict(zip(codes, struct.unpack(f"<{len(codes)}{FORMATS[self.dtype]}", data)))


class Kernel:
    def __init__(self, name, source, sizes, inputs, output, expected):
        self.name, self.source, self.axes, self.inputs, self.output, self.expected = name, source, meaning.Axes(sizes), inputs, output, expected


def run(kernels, check=True):
    """{name: what is wrong} of kernels, each a module m_NAME with a function f."""
    wrong = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("VISA_ORACLE_TMP")) as folder:
        at = lambda *parts: os.path.join(folder, *parts)
        for k in kernels:
            with open(at("k.vm"), "w", encoding="ascii") as f:
                f.write(k.source)
            done = visa_tools.run(["visac", at("k.vm"), "-o", at("k.bin")], timeout=1800)
            if done.status:
                wrong[k.name] = f"status {done.status}: {done.text()}"
                continue
            command = ["visa-run", at("k.bin"), "--output", f"{k.output.name}={at('out.raw')}"]
            for p in k.inputs:
                with open(at(p.name + ".raw"), "wb") as f:
                    f.write(p.pack(k.axes))
                command += ["--input", f"{p.name}={at(p.name + '.raw')}"]
            done = visa_tools.run(command + ["--check"] * check, timeout=1800)
            if done.status:
                wrong[k.name] = f"visa-run, status {done.status}: {done.text()}"
                continue
            with open(at("out.raw"), "rb") as f:
                found = k.output.unpack(f.read(), k.axes)
            bad = [c for c, v in k.expected.items() if found.get(c) != v]
            if bad:
                wrong[k.name] = (f"{len(bad)} of {len(k.expected)} cells differ, first {k.axes.show(bad[0])}: {found.get(bad[0])}, "
                                 f"expected {k.expected[bad[0]]}")
    return wrong


def judge(make, count):
    """make(rng, number): what sort of kernel, whether its run must end with E-RUN-INDEX, and the kernel. COUNT and SEED are the script's arguments.
    The exit status."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(count)
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    seen, failures = {}, 0
    for i in range(count):
        kind, no_row, kernel = make(rng, i)
        wrong = run([kernel]).get(kernel.name)
        if no_row and wrong and "E-RUN-INDEX" in wrong:
            kind, wrong = "no row", None
        elif no_row and not wrong:
            wrong = "the list names no row, and the run went on"
        seen[kind] = seen.get(kind, 0) + 1
        if wrong:
            failures += 1
            print(f"{wrong}\n{kernel.source}")
    print(", ".join(f"{n} {kind}" for kind, n in sorted(seen.items())))
    print(f"{count - failures} passed, {failures} failed")
    return 1 if failures else 0
