#!/usr/bin/env python3
"""visac tune: contractions of batches whose rows of results are no whole blocks of HBM, which take a detour over it: numbers against loops in Python, the same
cycles in every spelling. Usage: detour.py [SEED [QUESTIONS]]: random ones of that seed alone, which may be answered otherwise."""
import math
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, computed, tune, verdict

MARK = "the first ones once more"  # in front of the weights of a detour


class Scores:
    """h heads, q x k results each, over e; a softmax of each row, or the sums."""

    def __init__(self, h, q, k, e, dtype="i8", softmax=False):
        self.h, self.q, self.k, self.e, self.dtype, self.softmax = h, q, k, e, dtype, softmax

    def spellings(self):
        yield self.spelling("S[h, q, k] = {0}sum(e) Q[h, q, e] * K[h, k, e]{1}", h=self.h, q=self.q, k=self.k, e=self.e)
        yield self.spelling("out[a, wide, b] = {0}sum(z) B[a, b, z] * A[a, wide, z]{1}", a=self.h, wide=self.q, b=self.k, z=self.e)
        yield self.spelling("S[h, one, q, k] = {0}sum(e, f) Q[h, q, e, f] * K[h, k, e, f]{1}", h=self.h, one=1, q=self.q, k=self.k, e=self.e // 8, f=8)
        split = next((d for d in (2, 3, 5, 7) if self.h % d == 0), 1)
        yield self.spelling("S[g, h, q, k] = {0}sum(e) K[g, h, k, e] * Q[g, h, q, e]{1}", g=split, h=self.h // split, q=self.q, k=self.k, e=self.e)

    def spelling(self, text, **sizes):
        column = text[text.index("]") - 1]
        return text.format(*((f"softmax({column}) (", " / 8)") if self.softmax else ("", ""))), sizes

    def expected(self, stream, weights):
        rows = []
        for h in range(self.h):
            for q in range(self.q):
                a = stream[(h * self.q + q) * self.e:][:self.e]
                row = [sum(x * y for x, y in zip(a, weights[(h * self.k + k) * self.e:][:self.e])) for k in range(self.k)]
                if self.softmax:
                    powers = [math.exp((s - max(row)) / 8) for s in row]
                    row = [p / sum(powers) for p in powers]
                rows += row
        return rows


def judge(scores, question, text, work):
    """Its numbers, by a run of the kernel alone."""
    rng = random.Random(7)
    pack = {"i8": lambda v: struct.pack("b", v), "bf16": lambda v: struct.pack("<f", v)[2:]}[scores.dtype]
    stream, weights = ([rng.randint(-3, 3) for _ in range(scores.h * count * scores.e)] for count in (scores.q, scores.k))
    names = re.findall(r"(\w+): &HbmTensor<", text)
    found = computed(work, {name: b"".join(map(pack, values)) for name, values in zip(names, (stream, weights))}, question)
    if found is None:
        return
    found, expected = struct.unpack(f"<{len(found) // 4}{'i' if scores.dtype == 'i8' else 'f'}", found), scores.expected(stream, weights)
    same = len(found) == len(expected) and all(a == b or (scores.softmax and abs(a - b) < 1e-4) for a, b in zip(found, expected))
    check(same, f"{question}: other numbers than loops give")
    proof = visa_tools.run(["visac", os.path.join(work, "o.vm"), "--check"])
    check(proof.status == 0 and "proven" in proof.text(), f"{question}: " + proof.text())


def ask(scores, work, takes):
    cycles = set()
    for spelling, (question, sizes) in enumerate(scores.spellings()):
        made = tune(question, sizes, f"--dtype={scores.dtype}", "--budget=0s", "--no-cache", "--emit=vm,bin,report", "-o", os.path.join(work, "o"))
        check(made.status == 0 and "warning" not in made.text(), f"{question} {sizes}: " + made.text())
        if made.status != 0:
            continue
        with open(os.path.join(work, "o.vm")) as file:
            text = file.read()
        check(not takes or MARK in text, f"{question} {sizes} takes no detour")
        if MARK in text:  # other answers are other tests' matter
            cycles.add(int(re.search(r"(\d+) cycles", text)[1]))
        if spelling == 0:
            judge(scores, f"{question} {sizes}", text, work)
    check(len(cycles) <= 1, f"{scores.h} x {scores.q} x {scores.k} x {scores.e}: {cycles} cycles by spelling")


def in_a_file(work):
    """Two questions of a file, whose declarations have the question's axes."""
    path = os.path.join(work, "questions.vm")
    declared = "fn {}(device: &mut Device, q: &HbmTensor<bf16, m![1], m![H, Q, E]>, {}: &HbmTensor<bf16, m![1], m![H, {}, E]>) -> HbmTensor<f32, m![1], m![H, Q, {}]>;\n"
    with open(path, "w") as file:
        file.write("axes![H = 12, Q = 50, K = 77, N = 145, E = 64];\n")
        for name, tensor, axis in (("scores", "k", "K"), ("others", "n", "N")):
            file.write(f'#[einsum("S[h, q, {tensor}] = sum(e) Q[h, q, e] * {axis}[h, {tensor}, e]")]\n' + declared.format(name, tensor, axis, axis))
    made = visa_tools.run(["visac", "tune", path, "--budget=0s", "-o", os.path.join(work, "answers.vm")])
    check(made.status == 0, made.text())
    if made.status == 0:
        with open(os.path.join(work, "answers.vm")) as file:
            check(file.read().count(MARK) == 2, "questions of a file take no detour")
        ran = visa_tools.run(["visac", os.path.join(work, "answers.vm"), "--check=numbers"])
        check(ran.status == 0, ran.text())


SCORES = [Scores(12, 50, 77, 32), Scores(6, 49, 77, 64, "bf16", True), Scores(7, 66, 99, 32, "bf16", True)]


def main():
    with tempfile.TemporaryDirectory() as work:
        if len(sys.argv) > 1:
            rng = random.Random(int(sys.argv[1]))
            for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
                ask(Scores(rng.randint(2, 20), rng.randint(2, 150), rng.randint(9, 150), rng.choice([16, 32, 64]), rng.choice(["i8", "bf16"])), work, False)
                ask(Scores(rng.randint(2, 20), rng.randint(2, 100), rng.randint(9, 100), rng.choice([16, 32, 64]), "bf16", True), work, False)
        else:
            for scores in SCORES:
                ask(scores, work, True)
            in_a_file(work)
    return verdict("detour")


if __name__ == "__main__":
    sys.exit(main())
