#!/usr/bin/env python3
"""`if` of numbers that a launch gives: random conditions of comparisons, `!`, `&&`, `||`, casts and sums, blocks in blocks with `else`, against an
interpreter of the text in Python: each kernel runs with numbers around those it compares with, and what stands in memory is what the last block that
is taken wrote. What is refused, is refused for its number of conditions. Usage: conditions.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import random
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

TYPES = {"i32": (32, True, "i"), "u32": (32, False, "I"), "i64": (64, True, "q"), "u64": (64, False, "Q"), "usize": (64, False, "Q")}
NUMBERS = {"n": "i32", "m": "u32", "w": "i64", "v": "usize", "k": "i32"}
COMPARE = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b}


def wrap(value, name):
    bits, signed, _ = TYPES[name]
    value %= 1 << bits
    return value - (1 << bits) if signed and value >> (bits - 1) else value


class Atom:
    """A comparison of one number, cast and added to; or the bool."""

    def __init__(self, rng, interesting):
        self.flag = rng.random() < 0.15
        self.name = rng.choice(sorted(NUMBERS))
        self.type = NUMBERS[self.name]
        self.cast = rng.choice(sorted(TYPES)) if rng.random() < 0.25 else None
        self.more = rng.randrange(1, 9) if rng.random() < 0.25 else 0
        last = self.cast or self.type
        low = -3 if TYPES[last][1] else 0
        self.operator, self.turned, self.constant = rng.choice(sorted(COMPARE)), rng.random() < 0.4, rng.randrange(low, 12)
        interesting.add(self.constant - self.more)

    def text(self):
        if self.flag:
            return "f"
        one = f"({self.name} as {self.cast})" if self.cast else self.name
        one = f"({one} + {self.more})" if self.more else one
        return f"{self.constant} {self.operator} {one}" if self.turned else f"{one} {self.operator} {self.constant}"

    def holds(self, values):
        if self.flag:
            return bool(values["f"])
        last = self.cast or self.type
        x = wrap(wrap(values[self.name], last) + self.more, last)
        return COMPARE[self.operator](self.constant, x) if self.turned else COMPARE[self.operator](x, self.constant)


class Formula:
    def __init__(self, rng, atoms, interesting):
        self.negated = rng.random() < 0.3
        self.parts = [Atom(rng, interesting)] if atoms == 1 else []
        self.operator = rng.choice(("&&", "||"))
        if atoms > 1:
            first = rng.randrange(1, atoms)
            self.parts = [Formula(rng, first, interesting), Formula(rng, atoms - first, interesting)]

    def text(self):
        inner = f" {self.operator} ".join(p.text() for p in self.parts)
        return f"!({inner})" if self.negated else inner if len(self.parts) == 1 else f"({inner})"

    def holds(self, values):
        each = [p.holds(values) for p in self.parts]
        return (all(each) if self.operator == "&&" else any(each)) != self.negated


class Block:
    """Numbers that are written, and an `if` among them perhaps."""

    def __init__(self, rng, depth, interesting, count):
        self.first = count[0] = count[0] + 1
        self.condition = Formula(rng, rng.choice((1, 2, 2, 3) if depth else (1, 1, 2)), interesting) if depth >= 0 and rng.random() < (1 if depth == 1 else 0.5) else None
        self.then = Block(rng, depth - 1, interesting, count) if self.condition else None
        self.other = Block(rng, depth - 1, interesting, count) if self.condition and rng.random() < 0.6 else None

    def text(self, indent):
        space = "    " * indent
        out = f"{space}y.view_mut().memset({self.first}, &mut device.sub);\n"
        if self.condition:
            out += f"{space}if {self.condition.text()} {{\n{self.then.text(indent + 1)}{space}}}"
            out += f" else {{\n{self.other.text(indent + 1)}{space}}}\n" if self.other else "\n"
        return out

    def last(self, values):
        if self.condition and self.condition.holds(values):
            return self.then.last(values)
        return self.other.last(values) if self.condition and self.other else self.first


def source(block):
    ports = ", ".join(f"{n}: &HbmScalar<{t}>" for n, t in NUMBERS.items())
    reads = "".join(f"    let {n} = {n}.to_spm(&mut device.tdma);\n" for n in [*NUMBERS, "f"])
    return (f"axes![A = 64, B = 8];\n#[device(chip = 1, pe = 1)]\nfn k(device: &mut Device, {ports}, f: &HbmScalar<bool>) -> HbmTensor<i32, m![1], m![A, B]> {{\n"
            f"    let mut y: DmTensor<i32, m![1], m![1], m![A], m![B]> = DmTensor::new();\n{reads}{block.text(1)}    y.to_hbm(&mut device.tdma)\n}}\n")


def values_of(rng, interesting):
    near = sorted(interesting | {0})
    values = {n: wrap(rng.choice(near) + rng.randrange(-1, 2) + rng.choice((0, 0, 0, 1 << 31, 1 << 32)), t) for n, t in NUMBERS.items()}
    return dict(values, f=rng.choice((0, 1)))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30 * visa_tools.LONGER
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    runs = refused = 0
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        path, binary, out = (os.path.join(folder, n) for n in ("k.vm", "k.bin", "out"))
        for _ in range(count):
            interesting = set()
            block = Block(rng, 1, interesting, [0])
            text = source(block)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = visa_tools.run(["visac", "-Wno-all", path, "-o", binary])
            if done.status:
                refused += 1
                if b"E-EINSUM" not in done.err and b"more than 64 cases" not in done.err:
                    faults.append(f"refused: {done.text()[:1000]}\n{text}")
                continue
            for i in range(8):
                values = values_of(rng, interesting)
                inputs = []
                for name, value in values.items():
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(struct.pack("<" + (TYPES[NUMBERS[name]][2] if name in NUMBERS else "B"), value))
                    inputs += ["--input", f"{name}={os.path.join(folder, name)}"]
                ran = visa_tools.run(["visa-run", binary, *inputs, "--output", f"out={out}", *(["--check=numbers"] if i == 0 else [])])
                runs += 1
                with open(out, "rb") as file:
                    found = set(struct.unpack("<512i", file.read())) if not ran.status else ran.text()[:500]
                if found != {block.last(values)}:
                    faults.append(f"{values}: {found}, expected {block.last(values)}\n{text}")
                    break
    print("\n".join("FAIL " + f for f in faults[:5]))
    few = refused * 4 > count
    print(f"{count} kernels, {refused} refused, {runs} runs; {len(faults)} failed" + ("; too many are refused" if few else ""))
    return 1 if faults or few else 0


if __name__ == "__main__":
    sys.exit(main())
