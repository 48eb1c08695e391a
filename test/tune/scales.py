#!/usr/bin/env python3
"""visac tune: sums of groups that meet their scales, and operands that are stored narrower than they are multiplied. Numbers against loops in Python, answers pass
their check, one answer however a question is spelt."""
import itertools
import math
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, tune, verdict
from flows import Formula

SCALED = "C[m, n] = sum(g) s[n, g] * sum(k) A[m, g, k] * W[n, g, k]"
# One value in many spellings.
SPELT = [SCALED, "C[m, n] = sum(g, k) A[m, g, k] * W[n, g, k] * s[n, g]", "C[m, n] = sum(k, g) s[n, g] * W[n, g, k] * A[m, g, k]",
         "C[m, n] = sum(g) (sum(k) A[m, g, k] * W[n, g, k]) * s[n, g]", "C[m, n] = sum(g) sum(k) W[n, g, k] * A[m, g, k] * s[n, g]", "C[m, n] = sum(g) (s[n, g] * (sum(k) A[m, g, k] * W[n, g, k]))",
         "OUT[a, b, o] = sum(i, j, l) X[a, i, j, l, o] * Y[b, i, j, l] * t[b, i]"]
ALIKE = dict(m=3, n=64, g=4, k=64, a=3, b=64, i=4, j=8, l=8, o=1)
# What else meets sums of groups: scales of both sides, of groups alone, in other orders, of several axes; and what is done to the results.
QUESTIONS = [("C[m, n] = sum(g) r[m, g] * s[n, g] * sum(k) A[m, g, k] * W[n, g, k]", "m=3,n=64,g=4,k=64"), ("C[m, n] = sum(g) r[m, g] * sum(k) A[m, g, k] * W[n, g, k]", "m=8,n=24,g=5,k=32"),
             ("C[m, n] = sum(g) s[g] * sum(k) A[m, g, k] * W[n, g, k]", "m=2,n=16,g=6,k=64"), ("C[m, n] = sum(g) s[g, n] * sum(k) A[m, g, k] * W[n, g, k]", "m=3,n=40,g=3,k=64"),
             ("C[m, n] = sum(g) r[g, m] * s[g, n] * sum(k) A[m, g, k] * W[n, g, k]", "m=4,n=16,g=3,k=32"), ("C[m, n] = relu(sum(g) s[n, g] * sum(k) A[m, g, k] * W[n, g, k] + b[n]) * t[n]", "m=2,n=24,g=3,k=64"),
             ("C[m, n] = 2 * (sum(g) s[n, g] * 0.25 * t[n] * sum(k) A[m, g, k] * W[n, g, k])", "m=2,n=24,g=3,k=64"), ("C[m, n] = sum(g) s[m, n, g] * sum(k) A[m, g, k] * W[n, g, k]", "m=3,n=16,g=4,k=32"),
             ("y[n] = sum(g) s[n, g] * sum(k) x[g, k] * W[n, g, k]", "n=70,g=5,k=32"), ("C[n, m] = sum(g) s[n, g] * sum(k) A[m, g, k] * W[n, g, k]", "m=16,n=8,g=3,k=32"),
             ("C[m, n] = sum(g) s[n, g] * sum(k) A[m, g, k] * W[g, k, n]", "m=4,n=64,g=4,k=64"), ("C[b, m, n] = sum(g) s[b, n, g] * sum(k) A[b, m, g, k] * W[b, n, g, k]", "b=2,m=3,n=16,g=4,k=32"),
             ("C[m, n] = sum(g) s[n, g] * sum(k) A[m, g, k] * W[n, g, k]", "m=2,n=16,g=16,k=16"), ("C[m, n] = sum(g) s[n, g] * sum(k) A[m, g, k] * W[n, g, k]", "m=1,n=16,g=3,k=96"),
             ("C[m, n] = sum(g) s[n, g] * sum(k) A[m, g, k] * W[n, g, k]", "m=33,n=50,g=3,k=32"), ("C[m, n] = sum(g, k) A[m, g, k] * W[n, g, k] * s[n, g]", "m=4,n=16,g=1,k=64")]
# Weights, and rows, that are stored narrower than bf16, or as f32; which of the types --dtype gives is nobody's.
WIDENED = [("C[m, n] = sum(k) A[m, k] * W[n, k]: i8", "m=3,n=64,k=96", "bf16"), ("C[m, n] = sum(k) A[m, k]: bf16 * W[n, k]", "m=3,n=64,k=96", "i8"), ("C[m, n] = sum(k) A[m, k]: i8 * W[n, k]: i8", "m=17,n=40,k=64", "bf16"),
           ("C[n, m] = sum(k) A[m, k] * W[n, k]: i8", "m=16,n=24,k=128", "bf16"), ("C[m, n] = (sum(k) A[m, k] * W[n, k]: i8) * s[n] + b[n]", "m=3,n=64,k=96", "bf16"), ("C[m, n] = sum(k) A[m, k]: f32 * W[n, k]: f32", "m=9,n=40,k=72", "bf16"),
           ("y[n] = sum(g) s[n, g] * sum(k) x[g, k] * W[n, g, k]: i8", "n=512,g=4,k=128", "bf16"), ("C[b, m, n] = sum(k) A[b, m, k] * W[b, n, k]: f8e4m3", "b=2,m=3,n=16,k=64", "bf16"),
           ("C[m, n] = sum(g) s[g, n] * r[m, g] * sum(k) A[m, g, k]: f32 * W[n, g, k]: i8", "m=5,n=48,g=3,k=32", "bf16"), ("C[m, n] = sum(k) A[m, k] * W[n, k]: i4", "m=33,n=200,k=208", "bf16"),
           ("C[m, n] = sum(k) A[m, k] * W[k, n]: i8", "m=5,n=48,k=80", "bf16"), ("C[m, n] = sum(k) A[k, m]: i8 * W[k, n]: f32", "m=16,n=24,k=64", "bf16"),
           ("C[m, n] = sum(g) s[g, n] * sum(k) A[m, g, k] * (W[g, k, n]: i4 - 8)", "m=5,n=64,g=3,k=32", "bf16")]
# Zero points, of groups or of all, of either operand.
ZEROS = [("C[m, n] = sum(k) A[m, k] * (W[n, k]: i8 - z[n])", "m=3,n=64,k=96", "bf16"), ("C[m, n] = sum(k) A[m, k] * (W[n, k]: i4 - 8)", "m=3,n=64,k=96", "bf16"), ("C[m, n] = sum(k) (A[m, k] - z[m]) * (W[n, k] - y[n])", "m=16,n=24,k=64", "i8"),
         ("C[n, m] = sum(k) A[m, k] * (W[n, k] - z[n])", "m=16,n=24,k=64", "i8"), ("C[m, n] = (sum(k) (A[m, k] - 3) * B[n, k]) * s[n]", "m=5,n=40,k=64", "i8"), ("C[m, n] = sum(k) (A[m, k] + 3) * (W[n, k] - 5)", "m=5,n=40,k=64", "i8"),
         ("C[m, n] = sum(g) s[n, g] * sum(k) A[m, g, k] * (W[n, g, k]: i4 - z[n, g])", "m=3,n=48,g=5,k=32", "bf16"), ("C[m, n] = sum(g) s[n, g] * sum(k) A[m, g, k] * (W[n, g, k]: i8 - z[n, g])", "m=1,n=256,g=4,k=128", "bf16"),
         ("C[m, n] = sum(g, k) A[m, g, k] * (W[n, g, k]: i8 - z[n, g])", "m=3,n=24,g=3,k=32", "bf16"), ("C[m, n] = sum(g, k) A[m, g, k] * (W[n, g, k]: i8 - z[g, n]) * s[g, n]", "m=3,n=24,g=3,k=32", "bf16"),
         ("C[m, n] = sum(g) s[n, g] * sum(k) A[m, g, k] * (W[n, g, k]: i8 - z[n])", "m=3,n=24,g=3,k=32", "bf16"), ("C[b, m, n] = sum(k) A[b, m, k] * (W[b, n, k]: i8 - z[b, n])", "b=2,m=3,n=16,k=64", "bf16")]
LETTERS = dict(i8="b", f32="f", i32="i")


def sizes_of(text):
    return {axis: int(size) for axis, size in (pair.split("=") for pair in text.split(","))}


def inputs_of(question, sizes, least, most, rng):
    """By tensor: axes, values by place."""
    out = {}
    for name, axes in re.findall(r"(\w+)\[([^\]]*)\]", question.split("=", 1)[1]):
        axes = [x for x in axes.replace(" ", "").split(",") if x]
        is_scale, is_zero = name in ("s", "r", "t", "b"), name in ("z", "y")
        places = itertools.product(*(range(sizes[x]) for x in axes))
        out.setdefault(name.lower(), (axes, {place: rng.choice([0.5, 1, -0.25, 2, 0.125]) if is_scale else rng.randint(-8, 7) if is_zero else rng.randint(least, most) for place in places}))
    return out


def computed(question, sizes, inputs, dtype, options):
    """What the kernel makes of inputs; its message where there is none."""
    with tempfile.TemporaryDirectory() as work:
        path = lambda name: os.path.join(work, name)
        made = tune(question, sizes, f"--dtype={dtype}", "--budget=0s", *options, "--emit=bin", "-o", path("q.bin"))
        if made.status:
            return made.text()
        listed, given = visa_tools.run(["visa-run", path("q.bin"), "--list"]).text(), []
        for name, (_, values) in inputs.items():
            port = re.search(rf"^in ({name}|{name}_port): (\w+) (.*)", listed, re.M)
            letter = "b" if port[2] in ("i4", "i8") else "f"
            visa_tools.write_npy(path(port[1] + ".npy"), map(int, re.findall(r"=(\d+)", port[3])), [(int if letter == "b" else float)(values[x]) for x in sorted(values)], letter)
            given += ["--input", f"{port[1]}={path(port[1] + '.npy')}"]
        out = re.search(r"^out (\w+): (\w+) (.*)", listed, re.M)
        ran = visa_tools.run(["visa-run", path("q.bin"), "--convert", *given, "--output", f"{out[1]}={path('out.npy')}"])
        if ran.status:
            return ran.text()
        count = math.prod(map(int, re.findall(r"=(\d+)", out[3])))
        with open(path("out.npy"), "rb") as file:
            return struct.unpack(f"<{count}{LETTERS[out[2]]}", file.read()[-struct.calcsize(LETTERS[out[2]]) * count:])


FACTOR = r"(?:\w+\[[^\]]*\]|\(\w+\[[^\]]*\] [-+] (?:\d|\w+\[[^\]]*\])\))"


def flat(question):
    """Scales in one sum with what they scale, as Formula reads it."""
    text = re.sub(r":\s*\w+", "", question)
    while found := re.search(r"sum\((\w(?:, \w)*)\) ((?:\w+\[[^\]]*\] \* |[0-9.]+ \* )+)sum\((\w(?:, \w)*)\) (" + FACTOR + r"(?: \* " + FACTOR + ")*)", text):
        text = text.replace(found[0], f"sum({found[1]}) ({found[2]}(sum({found[3]}) ({found[4]})))")
    return re.sub(rf"(sum\([^)]*\)) ({FACTOR}(?: \* {FACTOR})+)", r"\1 (\2)", text)


def ask(question, sizes, dtype, options=(), least=-3, most=3, seed=1, form=None):
    """The answer's cycles; its numbers are judged."""
    what = f"{question} {sizes} {dtype} {' '.join(options)}: "
    inputs = inputs_of(question, sizes, least, most, random.Random(seed))
    proof = tune(question, sizes, f"--dtype={dtype}", "--budget=0s", *options, "--check")
    check(proof.status == 0 and "agree" in proof.text() and "proven" in proof.text(), what + proof.text())
    found = computed(question, sizes, inputs, dtype, options)
    wanted = Formula(form or flat(question), sizes, {name: {k if len(k) else (): v for k, v in values.items()} for name, (_, values) in inputs.items()}).results()
    if isinstance(found, str):
        check(False, what + found)
        return 0
    worst = max(abs(a - b) / (1 + abs(b)) for a, b in zip(found, wanted))
    check(len(found) == len(wanted) and worst < 1e-4, what + f"{worst} from what Python computes: {found[:4]} in place of {wanted[:4]}")
    made = tune(question, sizes, f"--dtype={dtype}", "--budget=0s", *options)
    return int(re.search(r"(\d+) cycles", made.text())[1])


def axes_in(question):
    return set(re.findall(r"\b[a-z]\b(?!\[)", question))


def spelt():
    for dtype, questions in (("i8", SPELT), ("bf16", SPELT[:2])):
        cycles = []
        for question in questions:
            form = SCALED if "A[" in question else question
            cycles.append(ask(question, {x: ALIKE[x] for x in axes_in(question)}, dtype, form=flat(form)))
        check(max(cycles) <= 1.05 * min(cycles), f"{dtype}: cycles by the spelling: {cycles}")


def refused():
    for question, of, dtype, id_, words in [("C[m, n] = sum(k) A[m, k] * (W[n, k] - z[n])", "m=8,n=64,k=64", "bf16", "E-TUNE-TYPE", "`w` has a zero point"),
                                            ("C[m, n] = sum(k) A[m, k] * (W[n, k]: i8 - z[n]: i16)", "m=8,n=64,k=64", "bf16", "E-TUNE-TYPE", "a zero point is of i4 or i8"),
                                            ("C[m, n] = sum(k) A[m, k] * W[k, n]: i8", "m=8,n=77,k=64", "bf16", "E-TUNE-LAYOUT", "its rows are no whole 8 elements"),
                                            ("C[m, n] = sum(k) A[m, k] * (W[k, n]: i8 - z[n])", "m=8,n=64,k=64", "bf16", "E-TUNE-LAYOUT", "its zero points meet no rows"),
                                            ("C[m, n] = sum(k) A[m, k] * W[n, k]: i16", "m=8,n=64,k=64", "bf16", "E-TUNE-TYPE", "is multiplied"),
                                            (SCALED, "m=8,n=64,g=3,k=24", "i8", "E-TUNE-SIZE", "in groups of 24"),
                                            # no flow that has such scales has room for them: why there is no contraction is said
                                            ("C[m, h, n] = sum(g) (sum(k) A[m, h, g, k] * B[h, n, g, k]) * s[n, h, g]", "m=1,h=2,n=256,g=4,k=128", "bf16", "E-TUNE-LAYOUT", "`s` has its axes in another order"),
                                            ("C[m, h, n] = sum(g) (sum(k) A[m, h, g, k] * B[h, n, g, k]) * s[n, g, h]", "m=1,h=2,n=256,g=4,k=128", "bf16", "E-TUNE-LAYOUT", "than the result and the sum have them"),
                                            ("C[m, n] = sum(g) s[n, g] * sum(k) A[m, k, g] * W[n, k, g]", "m=4,n=64,g=4,k=32", "i8", "E-TUNE", "")]:
        ran = tune(question, sizes_of(of), f"--dtype={dtype}")
        check(ran.status == 1 and id_ in ran.text() and words in ran.text() and "help: " in ran.text(), f"{question}: " + ran.text())


# Questions in a file have the types of its parameters: of what is multiplied, and not of the first tensor that stands there.
FILE = """axes![M = 2, N = 64, G = 4, K = 32];

#[einsum("C[m, n] = sum(g) s[n, g]: bf16 * sum(k) A[m, g, k] * W[n, g, k]")]
fn grouped(a: &HbmTensor<i8, m![1], m![M, G, K]>, w: &HbmTensor<i8, m![1], m![N, G, K]>, s: &HbmTensor<bf16, m![1], m![N, G]>) -> HbmTensor<f32, m![1], m![M, N]>;

#[einsum("C[m, n] = sum(k) A[m, k] * (W[n, k]: i8 - z[n])")]
fn zeros(a: &HbmTensor<bf16, m![1], m![M, K]>, w: &HbmTensor<i8, m![1], m![N, K]>, z: &HbmTensor<i8, m![1], m![N]>) -> HbmTensor<f32, m![1], m![M, N]>;
"""


def files():
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "file.vm")
        with open(path, "w", encoding="utf-8") as file:
            file.write(FILE)
        made = visa_tools.run(["visac", "tune", path, "--budget=0s"])
        ran = visa_tools.run(["visac", "-", "--check"], stdin=made.out) if made.status == 0 else made
        check(ran.status == 0 and ran.text().count("proven") == 2, "questions of a file: " + ran.text())


def vectors():
    """Near the copies: a vector by 4096 columns in groups of 128."""
    for dtype, most in (("i8", 1.3), ("bf16", 1.3), ("i4", 1.4)):
        made = tune(SCALED.replace("s[n, g]", "s[n, g]: bf16"), sizes_of("m=1,n=4096,g=32,k=128"), f"--dtype={dtype}", "--budget=0s").text()
        times = re.search(r"cycles, ([0-9.]+) times the least", made)
        check(times and float(times[1]) <= most, f"{dtype}: {made[:300]}")
    question = "C[m, n] = sum(g) s[n, g]: bf16 * sum(k) A[m, g, k] * W[n, g, k]: i8"
    made = tune(question, sizes_of("m=1,n=4096,g=32,k=128"), "--budget=0s").text()
    times = re.search(r"cycles, ([0-9.]+) times the least", made)
    check(times and float(times[1]) <= 1.4, f"{question}: {made[:300]}")


def drawn(rng):
    """A question in two spellings, sizes of both, types and options."""
    groups, kept = rng.random() < 0.7, rng.choice(["m, n", "m, n", "n, m", "b, m, n", "n"])
    size = lambda least, most: rng.choice([8, 16, 32, 64]) if rng.random() < 0.5 else rng.randint(least, most)
    of = dict(b=rng.randint(1, 3), m=rng.choice([1, 1, 2, 3]) if rng.random() < 0.5 else size(1, 40), n=size(2, 300), g=rng.randint(2, 9), k=rng.choice([16, 32, 64, 96, 128]) if groups else 16 * rng.randint(1, 24), o=1)
    dtype, stored = rng.choice([("i8", None), ("bf16", None), ("i4", None), ("bf16", "i8"), ("bf16", "i4"), ("bf16", "f8e4m3"), ("bf16", "f32")])
    batch, sums = "b, " if "b" in kept else "", "g, k" if groups else "k"
    a, w = f"A[{batch}{'m, ' if 'm' in kept else ''}{sums}]", f"W[{batch}n, {sums}]" + (f": {stored}" if stored else "")
    if stored in ("i8", "i4") and rng.random() < 0.4:
        w = f"({w} - {rng.choice(['8', f'z[{batch}n]'] + ([f'z[{batch}n, g]', 'z[g, n]'[:0] or f'z[{batch}n, g]'] if groups else []))})"
    scales = rng.sample([f"s[{batch}n, g]", "s[g, n]" if not batch else f"s[{batch}n, g]", f"s[{batch}n, g]: bf16"], 1) if groups and rng.random() < 0.8 else []
    if groups and "m" in kept and rng.random() < 0.3:
        scales.append(f"r[{batch}m, g]" if rng.random() < 0.7 or batch else "r[g, m]")
    factors = [a, w] + scales
    around = rng.choice(["{}", "{}", "{}", "relu({} + b1[n]: f32)", "({}) * t[n]: f32", "silu({})"])
    one = f"sum({sums}) " + " * ".join(rng.sample(factors, len(factors)))
    two = f"sum(g) {' * '.join(rng.sample(scales, len(scales)))} * sum(k) {w} * {a}" if scales else f"sum({', '.join(reversed(sums.split(', ')))}) ({' * '.join(rng.sample(factors, len(factors)))})"
    # an axis of one position, somewhere
    two = re.sub(r"A\[", "A[o, ", two) if rng.random() < 0.5 else two
    used = lambda text: {x: of[x] for x in of if re.search(rf"\b{x}\b(?!\[)", text)}
    options = ["--budget=0s", *rng.choice([[], [], [], ["--clusters=1"], ["--out=bf16"], ["--timing=measured"], ["--free=W"], ["--chips=2"]])]
    texts = [f"C[{kept}] = " + around.format(one), f"C[{kept}] = " + around.format(two)]
    if re.search(r"\bo\b", texts[1]) and rng.random() < 0.5:
        texts[1] = texts[1].replace(f"C[{kept}]", f"C[o, {kept}]")
    return [(text, used(text)) for text in texts], dtype, options


def random_questions(seed, count):
    """An answer that passes its check, or a refusal that says why; the same however the question is spelt."""
    rng, answered = random.Random(seed), 0
    for _ in range(count):
        spellings, dtype, options = drawn(rng)
        cycles = []
        for question, of in spellings:
            what = f"{question} {of} {dtype} {' '.join(options)} (seed {seed}): "
            ran = tune(question, of, f"--dtype={dtype}", *options, "--check")
            check(not ran.crashed and ran.status in (0, 1), what + ran.text())
            check(ran.status != 0 or ("agree" in ran.text() and "proven" in ran.text()), what + ran.text())
            check(ran.status != 1 or re.search(r"error\[E-TUNE-\w+\]: ", ran.text()), what + ran.text())
            cycles.append(int(re.search(r"(\d+) cycles", tune(question, of, f"--dtype={dtype}", *options).text())[1]) if ran.status == 0 else None)
            answered += ran.status == 0
            if ran.status and "-v" in sys.argv:
                print(what + " ".join(x for x in ran.text().splitlines() if "error" in x or "note" in x), flush=True)
        check(cycles[0] == cycles[1], f"{spellings} {dtype} {options} (seed {seed}): cycles by the spelling: {cycles}")
    print(f"scales: {answered} of {2 * count} random questions have an answer")


def main():
    if len(sys.argv) > 2:
        random_questions(int(sys.argv[2]), int(sys.argv[1]))
        return verdict("tune_scales")
    spelt()
    for number, (question, of) in enumerate(QUESTIONS):
        ask(question, sizes_of(of), ("i8", "bf16", "i8")[number % 3])
    random_questions(1, 4)
    for sizes, options in (("m=8,n=64,g=4,k=32", ["--chips=2"]), ("m=64,n=64,g=4,k=32", ["--free=W,C"])):
        proof = tune(SCALED, sizes_of(sizes), "--dtype=i8", "--budget=0s", *options, "--check")
        check(proof.status == 0 and "agree" in proof.text() and "proven" in proof.text(), f"{options}: " + proof.text())
    ask(SCALED, sizes_of("m=8,n=64,g=4,k=32"), "i8", ["--clusters=1", "--slices=64"])
    for question, of, dtype in WIDENED + ZEROS:
        ask(question, sizes_of(of), dtype)
    # differences that no i8 holds
    question, of = "C[m, n] = sum(k) (A[m, k] - 3) * (W[n, k] - z[n])", sizes_of("m=4,n=16,k=32")
    inputs = inputs_of(question, of, -128, -125, random.Random(3))
    found = computed(question, of, inputs, "i8", ["--out=f32"])
    wanted = Formula(flat(question), of, {name: values for name, (_, values) in inputs.items()}).results()
    check(list(found) == wanted, f"{question}: {found[:4]} in place of {wanted[:4]}")
    whole = "C[m, n] = sum(g) s[n, g]: i8 * sum(k) A[m, g, k] * W[n, g, k]"
    proof = tune(whole, sizes_of("m=3,n=64,g=4,k=64"), "--dtype=i8", "--budget=0s", "--check")
    check(proof.status == 0 and "proven" in proof.text(), f"{whole}: " + proof.text())
    refused()
    files()
    vectors()
    return verdict("tune_scales")


if __name__ == "__main__":
    sys.exit(main())
