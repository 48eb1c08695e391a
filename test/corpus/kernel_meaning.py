#!/usr/bin/env python3
"""Published device functions that visac accepts compute what is documented.

    VISA_CORPUS=DIRECTORY test/corpus/kernel_meaning.py [-v] [PART OF A NAME]..

../shared/conformance/kernels-meaning.json says in words what about half of the functions compute. The formulas of movements and
contractions are read here, those of single elements in formula.py, and evaluated over coordinates of axes, on memory images laid out by this
file's own reading of mappings; nothing of visac has a part in what is expected. Cells that no formula speaks of are not compared. Skipped without VISA_CORPUS or shared/."""
import itertools
import json
import math
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402
import formula as formulas  # noqa: E402
import published  # noqa: E402
from formula import Unread, Unwritten  # noqa: E402

# ---- mappings: position to coordinates ----

TOKENS = re.compile(r"\s*(#\s*\{\s*[!0*]\s*\}|\w+|\S)")


class Mapping:
    """`at(i)`: {what is counted: by how much}, None for padding. What is counted is an axis, or a group of axes by the text of its list."""

    def __init__(self, text, axes):
        self.axes, self.groups, self.tokens = axes, {}, TOKENS.findall(text.strip()[2:] if text.strip().startswith("m!") else text)
        self.next, self.known = 0, {}
        self.size, self.of = self.list_of() if self.peek() not in "[" else self.atom()

    def peek(self):
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def take(self):
        self.next += 1
        return self.tokens[self.next - 1]

    def list_of(self):
        parts = [self.factor()]
        while self.peek() == ",":
            self.take()
            if self.peek() in ("]", ")", "}", ""):
                break
            parts.append(self.factor())
        return pair(parts)

    def atom(self):
        t = self.take()
        if t in "[({":
            begin = self.next
            inner = self.list_of()
            text = " ".join(self.tokens[begin:self.next])
            self.take()
            self.groups[text] = inner
            return inner if self.peek() not in ("/", "%") else (inner[0], lambda i: {("group", text): i})
        if t.isdigit():
            return int(t), lambda i: {}
        return self.axes[t], lambda i: {t: i}

    def factor(self):
        size, of = self.atom()
        while self.peek()[:1] in ("/", "%", "#", "="):
            operator = self.take()
            n = int(self.take())
            if operator == "/":
                size, of = -(-size // n), (lambda i, f=of, n=n: f(i * n))
            elif operator == "%":
                size, of = n, of
            elif operator == "=":
                size = n
            else:
                size, of = n, (lambda i, f=of, m=size: f(i) if i < m else None)
        return size, of

    def coordinates(self, i):
        """{axis: coordinate}, or None: padding. Looked up from the second time on; nobody changes it."""
        if i not in self.known:
            self.known[i] = self.coordinates_of(i)
        return self.known[i]

    def coordinates_of(self, i):
        found, pending = {}, [self.of(i)]
        while pending:
            part = pending.pop()
            if part is None:
                return None
            for what, amount in part.items():
                found[what] = found.get(what, 0) + amount
            groups = [w for w in found if isinstance(w, tuple)] if self.groups and not pending else []
            if groups:
                size, of = self.groups[groups[0][1]]
                at = found.pop(groups[0])
                pending.append(of(at) if at < size else None)
        return None if any(at >= self.axes[a] for a, at in found.items()) else found


def pair(parts):
    size = 1
    for n, _ in parts:
        size *= n

    def of(i):
        total = {}
        for n, f in reversed(parts):
            part = f(i % n)
            if part is None:
                return None
            for what, amount in part.items():
                total[what] = total.get(what, 0) + amount
            i //= n
        return total
    return size, of


# ---- elements ----

SIZES = re.compile(r"'sizes': \[([\d, ]+)\]")
BITS = {"i4": 4, "i8": 8, "u8": 8, "i16": 16, "i32": 32, "f8e4m3": 8, "f8e5m2": 8, "bf16": 16, "f32": 32, "f4e2m1": 4}
SMALL = [-2, -1, 0, 1, 2]  # every type but u8 holds them exactly
WIDE = {
    "i32": SMALL + [3, 5, 9, 100, 1000, 1001, -80, 12345678, 1 << 30, -(1 << 30), (1 << 31) - 1, -(1 << 31)],
    "f32": SMALL + [-0.0, 0.5, -0.5, 1.5, 3.25, -0.75, -80.0, 120.0, 16777216.0, 1.0000001192092896],
}
MOST_CELLS = 1 << 21  # of one tensor: more take a minute here
MOST_JUDGED = 1 << 13  # of a chip's output, drawn among all; VISA_LONG=1: all


def encode(dtype, value):
    if dtype == "f32":
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if dtype == "bf16":
        return encode("f32", value) >> 16
    if dtype in ("f8e4m3", "f8e5m2"):
        bias, mantissa = (7, 3) if dtype == "f8e4m3" else (15, 2)
        if value == 0:
            return 0x80 if math.copysign(1, value) < 0 else 0
        exponent = math.frexp(value)[1] - 1
        return (0x80 if value < 0 else 0) | (exponent + bias) << mantissa | int((abs(value) / 2 ** exponent - 1) * 2 ** mantissa)
    return int(value) & ((1 << BITS[dtype]) - 1)


def joined(chip, at):
    """The coordinates of a position: the chip's and the element's digits of an axis add up."""
    if not chip:
        return at
    total = dict(chip)
    for what, amount in at.items():
        total[what] = total.get(what, 0) + amount
    return total


def image(mapping, dtype, value_at):
    """The bytes of a chip's tensor; padding holds 0x55."""
    bits = BITS[dtype]
    out = bytearray(b"\x55" * (mapping.size * bits // 8))
    for i in range(mapping.size):
        at = mapping.coordinates(i)
        if at is not None:
            code = encode(dtype, value_at(at))
            if bits == 4:
                out[i // 2] = out[i // 2] & (0xf0 if i % 2 == 0 else 0x0f) | code << (i % 2 * 4)
            else:
                out[i * bits // 8:(i + 1) * bits // 8] = code.to_bytes(bits // 8, "little")
    return bytes(out)


def judged(size):
    if size <= MOST_JUDGED or visa_tools.LONG:
        return range(size)
    return sorted({0, size - 1, *random.Random(size).sample(range(size), MOST_JUDGED)})


def code_at(data, dtype, i):
    bits = BITS[dtype]
    if bits == 4:
        return data[i // 2] >> (i % 2 * 4) & 15
    return int.from_bytes(data[i * bits // 8:(i + 1) * bits // 8], "little")


# ---- formulas ----

def key(coordinates, names):
    return tuple(coordinates.get(n, 0) for n in names)


def contraction(entry, read):
    """contraction m![..], m![..] -> m![..]; summed: B, C; .. : the sum over the named axes' coordinates that the operands have."""
    summed = [n.strip() for n in re.search(r"summed: ([^;]*);", entry["formula"]).group(1).split(",")]
    left, right = entry["inputs"][:2]
    steps = [sorted({c.get(n, 0) for c in left.live}) for n in summed]

    def value(at):
        total = 0
        for digits in itertools.product(*steps):
            here = {**at, **dict(zip(summed, digits))}
            total += read(left, here) * read(right, here)
        return total
    return [value]


def movement(entry, read):
    """copy, `out = in`, and out[..] = TYPE(in[..]) with indices that are axes: the element of the same coordinates."""
    source = entry["inputs"][0]
    return [lambda at: read(source, at)]


def sum_over_k(entry, read):
    """out[a,r] = sum_k input[a,k]*trf[r,k]"""
    left, right = entry["inputs"][:2]
    axis = [n for n in left.names if n not in entry["outputs"][0].names]
    if len(axis) != 1:
        raise Unread
    steps = sorted({c.get(axis[0], 0) for c in left.live})
    return [lambda at: sum(read(left, {**at, axis[0]: k}) * read(right, {**at, axis[0]: k}) for k in steps)]


def several(order):
    return lambda entry, read: [lambda at, s=entry["inputs"][i]: read(s, at) for i in order]


def shuffled(entry, read):
    """out[a,b] = in[a with its digit c = a/4%4 replaced by [1,2,3,0][c], b]"""
    axis, div, size, pattern = re.search(r"in\[(\w) with its digit \w = \w/(\d+)%(\d+) replaced by \[([\d,]+)\]", entry["formula"]).groups()
    name, div, size, pattern = axis.upper(), int(div), int(size), [int(n) for n in pattern.split(",")]

    def value(at):
        digit = at.get(name, 0) // div % size
        return read(entry["inputs"][0], {**at, name: at.get(name, 0) + (pattern[digit] - digit) * div})
    return [value]


def kept_by_unit(entry, read):
    """on cluster u keep B/512%2 == u: .. with u = a/2%2: the coordinate that is not in the result is the unit's number."""
    axis, div, size, unit, unit_div, unit_size = re.search(r"keep (\w)/(\d+)%(\d+) == \w: .* with \w = (\w)/(\d+)%(\d+)", entry["formula"]).groups()

    def value(at):
        number = at.get(unit.upper(), 0) // int(unit_div) % int(unit_size)
        return read(entry["inputs"][0], {**at, axis: at.get(axis, 0) + number % int(size) * int(div)})
    return [value]


def unit_of(formula):
    """Of an index: bytes, where it is divided, for one row."""
    found = re.search(r"index\[[\w,]+\]/(\d+)", formula)
    return int(found.group(1)) if found else 1


def gathered(entry, read):
    table, index = entry["inputs"][:2]
    row = [n for n in table.names if n not in entry["outputs"][0].names]
    if len(row) != 1:
        raise Unread
    return [lambda at: read(table, {**at, row[0]: read(index, at) // unit_of(entry["formula"])})]


def scattered(entry, read):
    data, index, before = entry["inputs"]
    row = next(n for n in before.names if n not in data.names)
    last = {}
    for at in index.live:
        last[read(index, at) // unit_of(entry["formula"])] = at
    return [lambda at: read(data, {**at, **last[at.get(row, 0)]}) if at.get(row, 0) in last else read(before, at)]


def draw_rows(port, rows, unit):
    choice = random.Random(port.name)
    port.values = {place: choice.randrange(rows) * unit for place in port.values}


def rows_of(entry):
    """How many rows an index may name: the axis of the table, or of what is written, that the others have not."""
    scatters = entry["formula"].startswith("cache[")
    indexed, others = entry["inputs"][2 if scatters else 0], entry["inputs"][0] if scatters else entry["outputs"][0]
    name = next(n for n in indexed.names if n not in others.names)
    return max(at.get(name, 0) for at in indexed.live) + 1


def constant(entry, read):
    """every cell = v"""
    number = float(re.match(r"every cell = (-?[\d.]+)", entry["formula"]).group(1))
    return [lambda at: number]


def table(entry, read):
    """out[b,a] = TYPE(e2m1 code) of in[a,b]: the drawn numbers are codes."""
    numbers = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    source = entry["inputs"][0]

    def value(at):
        code = read(source, at) & 15
        return -numbers[code & 7] if code & 8 else numbers[code]
    return [value]


FORMULAS = [
    (r"out\[a,b\] = in\[\w with its digit ", shuffled),
    (r"on \w+ \w keep ", kept_by_unit),
    (r"out\[[\w,]+,:\] = table\[index\[", gathered),
    (r"cache\[index\[", scattered),
    (r"every cell = -?[\d.]+", constant),
    (r"out\[b,a\] = \w+\((\w+\()?e2m1 code\)+ of in\[a,b\]", table),
    (r"out\[b,a\] = bf16\(f8e\dm\d\) of in\[a,b\]", movement),
    (r"contraction m!\[.*; summed: ", contraction),
    (r"copy: |copy through the switch: every output element equals the input element with the same named digits ", movement),
    (r"out = in\b", movement),
    (r"out = inputs\.", movement),
    (r"out\[\w+(, ?\w+)*\] = (\w+\()?(in|input|bias)\[\w+(, ?\w+)*\]\)?(?! (with|where|for))", movement),
    (r"out\[a1,a0,b\] = in\[2\*a1\+a0, b\]", movement),
    (r"out\[a,r\] = sum_k input\[a,k\]\*trf\[r,k\]", sum_over_k),
    (r"\(lhs, rhs\) unchanged", several([0, 1])),
    (r"8 outputs: a,b,a,b,a,b,a,b", several([0, 1] * 4)),
]


# ---- runs ----

class Port:
    """A port of the binary: its mapping, and for an input the value of each coordinate."""

    def __init__(self, port, axes):
        self.name, self.dtype = port["name"], port["dtype"]
        self.element, self.chip = Mapping(port["mapping"]["element"], axes), Mapping(port["mapping"].get("chip", "1"), axes)
        self.live = []
        for c in range(self.chip.size):
            chip = self.chip.coordinates(c)
            for i in range(self.element.size):
                at = self.element.coordinates(i)
                if at is not None and chip is not None:
                    self.live.append(joined(chip, at))
        self.names = sorted({n for at in self.live for n in at})
        text = port["mapping"].get("chip", "1") + " " + port["mapping"]["element"]
        self.order = [n for n in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text)) if n in axes]

    def draw(self, seed, values):
        choice = random.Random(seed)
        self.values = {key(at, self.names): choice.choice(values) for at in self.live}


def read(port, at):
    value = port.values[key(at, port.names)]
    return float(value) if port.dtype[0] in "fb" and port.dtype != "f4e2m1" else value  # of f4e2m1 a code is drawn


def drawn_from(formula, dtype, single):
    """What inputs hold: where single elements are computed in a given order, also what rounds, wraps and saturates."""
    if dtype == "u8":
        return [0, 1, 2]
    exact_only = re.search(r"sum_[\w{]|contraction|orders can differ", formula) and "satsum" not in formula and "wrap32(satsum" not in formula
    return WIDE.get(dtype, SMALL) if single and not exact_only else SMALL


def same(dtype, found, expected, formula):
    """f32: NaN equals NaN, +0 equals -0; of exp a few units in the last place are not decided."""
    if dtype != "f32":
        return found == expected
    a, b = (struct.unpack("<f", struct.pack("<I", code))[0] for code in (found, expected))
    near = "exp(" in formula and math.isfinite(b) and abs(a - b) <= abs(b) * 2 ** -21
    return found == expected or a == b or (a != a and b != b) or near


def judge(function, entry, scratch):
    """None: right; else what is wrong. Raises Unread where the formula is not one of those above or in formula.py."""
    formula = entry["formula"]
    make = next((f for pattern, f in FORMULAS if re.match(pattern, formula)), None)
    single = make is None
    if re.search(r"\brms\(|\bh = bf16\(max", formula):
        raise Unread  # a model's layer: model_kernels.py judges it
    for words in SIZES.findall(str(entry["shapes"])):
        if math.prod(map(int, words.split(","))) > MOST_CELLS:
            raise Unread
    binary = os.path.join(scratch, "kernel.bin")
    library = os.path.join(function.crate, "src", "lib.rs")
    done = visa_tools.run(["visac", library, f"--kernel={function.path}", "-o", binary])
    if done.status:
        return "is refused"
    kernel = json.loads(visa_tools.run(["visa-objdump", "--json", binary]).out)["kernels"][0]
    axes = {a["name"]: a["size"] for a in kernel["axes"]}
    ports = {d: [Port(p, axes) for p in kernel["ports"] if p["direction"] == d] for d in ("in", "out")}
    if make is None:
        make = lambda entry, read: formulas.meaning(formula, entry["inputs"], entry["outputs"], axes, read)  # noqa: E731
    arguments = ["visa-run", binary]
    for i, port in enumerate(ports["in"]):
        port.draw(i + 1, drawn_from(formula, port.dtype, single))
    if "index[" in formula:
        draw_rows(ports["in"][1], rows_of({**entry, "inputs": ports["in"], "outputs": ports["out"]}), unit_of(formula))
    for i, port in enumerate(ports["in"]):
        path = os.path.join(scratch, f"in{i}")
        with open(path, "wb") as file:
            for c in range(port.chip.size):
                chip = port.chip.coordinates(c) or {}
                file.write(image(port.element, port.dtype, lambda at, chip=chip, port=port: read(port, joined(chip, at))))
        arguments += ["--input", f"{port.name}:buffer={path}"]
    for i, port in enumerate(ports["out"]):
        arguments += ["--output", f"{port.name}:buffer={os.path.join(scratch, f'out{i}')}"]
    done = visa_tools.run(arguments)
    if done.status:
        return "does not run: " + done.text()[:300]
    values = make({**entry, "inputs": ports["in"], "outputs": ports["out"]}, read)
    if len(values) != len(ports["out"]):
        return f"has {len(ports['out'])} outputs, the formula {len(values)}"
    for i, (port, value) in enumerate(zip(ports["out"], values)):
        with open(os.path.join(scratch, f"out{i}"), "rb") as file:
            data = file.read()
        unit = port.element.size * BITS[port.dtype] // 8
        for c in range(port.chip.size):
            chip = port.chip.coordinates(c)
            for j in judged(port.element.size):
                at = port.element.coordinates(j)
                if at is None or chip is None:
                    continue
                at = joined(chip, at)
                found = code_at(data[c * unit:], port.dtype, j)
                try:
                    expected = encode(port.dtype, value(at))
                except Unwritten:
                    continue
                except KeyError as missing:
                    return f"{port.name} at {at}: an input has no element at {missing}, of which the formula speaks"
                if not same(port.dtype, found, expected, formula):
                    return f"{port.name} at {at}: {found:#x}, the meaning is {expected:#x}"
    return None


def entries():
    with open(visa_tools.shared("conformance", "kernels-meaning.json"), encoding="utf-8") as file:
        for entry in json.load(file)["functions"]:
            if entry["verdict"] == "accept":
                yield entry


def place_of(function):
    """Snapshot, file and name: what an entry says, too."""
    return function.snapshot.replace(".", ""), os.path.relpath(function.file, os.path.join(function.crate, "src")), function.path.split("::")[-1]


def matching(places, entry):
    for function in places.get((entry["dialect"].replace(".", ""), entry["file"], entry["name"]), []):
        if not entry["module"] or entry["module"].split("::")[-1] == function.path.split("::")[-2]:
            yield function


def main(arguments):
    root = os.environ.get("VISA_CORPUS")
    if not root or not visa_tools.shared("conformance", "kernels-meaning.json"):
        print("skipped: VISA_CORPUS or shared/ is absent")
        return visa_tools.SKIPPED
    places = {}
    for function in published.functions(root):
        places.setdefault(place_of(function), []).append(function)
    wanted = [a for a in arguments if a != "-v"]
    right, wrong, unread, refused = 0, [], [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for entry in entries():
            for function in matching(places, entry):
                if wanted and not any(w in f"{function.snapshot} {function.path}" for w in wanted):
                    continue
                library = os.path.join(function.crate, "src", "lib.rs")
                if visa_tools.run(["visac", library, f"--kernel={function.path}", "--emit=ir"]).status:
                    refused += 1
                    continue
                try:
                    fault = judge(function, entry, scratch)
                except Unread:
                    unread.append(f"{function.snapshot} {function.path}: {entry['formula'][:100]}")
                    continue
                right += fault is None
                if "-v" in arguments:
                    print(f"{function.snapshot} {function.path}: {fault or 'right'}", flush=True)
                if fault:
                    wrong.append(f"{function.snapshot} {function.path}: {fault}")
    for line in wrong:
        print(line)
    if "-v" in arguments:
        print("\n".join("not judged: " + line for line in unread))
    print(f"{right} right, {len(wrong)} wrong, {len(unread)} accepted whose formula is not read here, {refused} refused")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
