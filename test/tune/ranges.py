#!/usr/bin/env python3
"""visac tune: contractions of many columns that nothing divides, which come in ranges and a last one: numbers against loops in Python, the same cycles in every
spelling, fewer of them than without ranges. Usage: ranges.py [SEED [QUESTIONS]]: random ones of that seed alone, which may be answered otherwise."""
import operator
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, computed, tune, verdict

MARK = r"//   [A-Z_]+: \d+ ranges?( and a last one)?, "
PACK = {"i8": lambda v: struct.pack("b", v), "i32": lambda v: struct.pack("<i", v), "bf16": lambda v: struct.pack("<f", v)[2:], "f32": lambda v: struct.pack("<f", v)}
UNPACK = {"i32": "<{}i", "f32": "<{}f"}


class Head:
    """m rows, n columns over k; with a bias for each column, which is a tensor of that type."""

    def __init__(self, m, n, k, dtype, bias=None, relu=False):
        self.m, self.n, self.k, self.dtype, self.bias, self.relu = m, n, k, dtype, bias, relu

    def spellings(self):
        yield self.spelling("C[m, n] = {0}sum(k) A[m, k] * B[n, k]{1}", "n", m=self.m, n=self.n, k=self.k)
        yield self.spelling("Y[rows, j] = {0}sum(z) W[j, z] * columns[rows, z]{1}", "j", rows=self.m, j=self.n, z=self.k)
        if self.k % 8 == 0:
            yield self.spelling("C[m, one, n] = {0}sum(k, l) A[m, k, l] * B[n, k, l]{1}", "n", m=self.m, one=1, n=self.n, k=self.k // 8, l=8)
        if self.m == 1:
            yield self.spelling("y[n] = {0}sum(k) x[k] * W[n, k]{1}", "n", n=self.n, k=self.k)

    def spelling(self, text, column, **sizes):
        after = f" + bias[{column}]: {self.bias}" if self.bias else ""
        return text.format("relu(" if self.relu else "", after + (")" if self.relu else "")), sizes

    def expected(self, stream, weights, bias):
        rows = []
        for m in range(self.m):
            a = stream[m * self.k:][:self.k]
            row = [sum(map(operator.mul, a, weights[n * self.k:(n + 1) * self.k])) + (bias[n] if self.bias else 0) for n in range(self.n)]
            rows += [max(x, 0) for x in row] if self.relu else row
        return rows


def judge(head, question, text, work):
    """Its numbers, by a run of the kernel alone."""
    rng = random.Random(11)
    values = [[rng.randint(-3, 3) for _ in range(count)] for count in (head.m * head.k, head.n * head.k, head.n)]
    ports = re.findall(r"(\w+): &HbmTensor<(\w+),", text)
    found = computed(work, {name: b"".join(map(PACK[dtype], given)) for (name, dtype), given in zip(ports, values)}, question)
    if found is None:
        return
    out = re.search(r"(?:&mut |-> )HbmTensor<(\w+),", text)[1]
    same = list(struct.unpack(UNPACK[out].format(len(found) // 4), found)) == head.expected(*values)
    check(same, f"{question}: other numbers than loops give")
    proof = visa_tools.run(["visac", os.path.join(work, "o.vm"), "-Werror", "--check"])
    check(proof.status == 0 and "proven" in proof.text(), f"{question}: " + proof.text())


def ask(head, work, most):
    cycles = set()
    for spelling, (question, sizes) in enumerate(head.spellings()):
        made = tune(question, sizes, f"--dtype={head.dtype}", "--budget=0s", "--no-cache", "--emit=vm,bin,report", "-o", os.path.join(work, "o"))
        check(made.status == 0 and "warning" not in made.text(), f"{question} {sizes}: " + made.text())
        if made.status != 0:
            continue
        with open(os.path.join(work, "o.vm")) as file:
            text = file.read()
        found = int(re.search(r"(\d+) cycles", text)[1])
        check(not most or (re.search(MARK, text) and found <= most), f"{question} {sizes}: {found} cycles, no ranges, or more than {most}")
        cycles.add(found)
        if spelling == 0:
            judge(head, f"{question} {sizes}", text, work)
    check(len(cycles) <= 1, f"{head.m} x {head.n} x {head.k}: {cycles} cycles by spelling")


def in_a_file(work):
    """Two questions of a file."""
    path = os.path.join(work, "questions.vm")
    declared = "fn {0}(device: &mut Device, x: &HbmTensor<bf16, m![1], m![M, K]>, w: &HbmTensor<bf16, m![1], m![{1}, K]>) -> HbmTensor<f32, m![1], m![M, {1}]>;\n"
    with open(path, "w") as file:
        file.write("axes![M = 8, V = 5003, N = 10007, K = 128];\n")
        for name, axis in (("head", "V"), ("other", "N")):
            file.write(f'#[einsum("C[m, {axis.lower()}] = sum(k) X[m, k] * W[{axis.lower()}, k]")]\n' + declared.format(name, axis))
    made = visa_tools.run(["visac", "tune", path, "--budget=0s", "-o", os.path.join(work, "answers.vm")])
    check(made.status == 0, made.text())
    if made.status == 0:
        with open(os.path.join(work, "answers.vm")) as file:
            check(len(re.findall(r"a range of \d+", file.read())) > 1, "questions of a file have no ranges")
        ran = visa_tools.run(["visac", os.path.join(work, "answers.vm"), "--check=numbers"])
        check(ran.status == 0, ran.text())


# Cycles that it takes at most; without ranges it took more.
HEADS = [(Head(8, 5003, 128, "bf16"), 7000), (Head(16, 5003, 96, "i8"), 8000), (Head(32, 5003, 100, "bf16"), 11000),
         (Head(8, 5003, 512, "bf16", bias="f32", relu=True), 12200), (Head(24, 4099, 257, "bf16", bias="bf16"), 16000), (Head(128, 2049, 64, "bf16"), 16000)]
# Without numbers of its own: long ones.
LONG = [("m=8,n=50257,k=768", "bf16", [], 94000), ("m=1,n=50257,k=768", "bf16", [], 86000), ("m=16,n=151936,k=896", "bf16", [], 295000), ("m=1,n=250002,k=768", "bf16", ["--out=bf16"], 405000),
        ("m=128,n=30522,k=768", "bf16", ["--out=bf16"], 114000), ("m=300,n=32001,k=768", "bf16", [], 495000), ("m=8,n=50257,k=768", "i8", ["--out=bf16"], 60000)]


def main():
    with tempfile.TemporaryDirectory() as work:
        if len(sys.argv) > 1:
            rng = random.Random(int(sys.argv[1]))
            for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
                k = rng.choice([32, 64, 96, 100, 128, 257])
                n = rng.randint(1024, 9000)
                bias = rng.choice([None, None, "f32", "bf16"])
                ask(Head(rng.choice([1, 2, 3, 5, 8, 13, 16, 33, 64]), n, k, "bf16" if bias else rng.choice(["bf16", "i8"]), bias, rng.random() < 0.3), work, None)
        else:
            for head, most in HEADS:
                ask(head, work, most)
            for sizes, dtype, more, most in LONG:
                made = tune("C[m, n] = sum(k) A[m, k] * B[n, k]", dict(x.split("=") for x in sizes.split(",")), f"--dtype={dtype}", "--budget=0s", "--no-cache", *more)
                found = int((re.findall(r"^// (\d+) cycles", made.text(), re.M) or [0])[0])
                check(made.status == 0 and 0 < found <= most and re.search(MARK, made.text()), f"{sizes} {dtype} {more}: {found} cycles, {most} at most")
            in_a_file(work)
    return verdict("ranges")


if __name__ == "__main__":
    sys.exit(main())
