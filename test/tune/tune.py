#!/usr/bin/env python3
"""visac tune: what it answers compiles, computes the question, and is no slower than what a sweep by hand found; the same answer twice.
Usage: tune.py [SEED [QUESTIONS]]: random questions of another seed, that many, and nothing else."""
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

PRODUCT = "C[m, n] = sum(k) A[m, k] * B[n, k]"
# Sizes, type, and cycles: of seven questions the best that a sweep of two constants over a template found, of the next one a kernel by hand, of the
# last one 1.5 times its bound.
AT_MOST = [("64,64,256", "i8", 2789), ("128,64,128", "bf16", 3556), ("256,64,512", "i8", 7141), ("64,32,256", "i8", 2213), ("32,8,32", "bf16", 1570),
           ("256,256,512", "i8", 10725), ("1024,64,512", "i8", 13797), ("1024,1024,1024", "i8", 99217),
           ("1024,1024,1024", "bf16", 15320)]
FORMS = [PRODUCT, "y[n] = sum(k) x[k] * W[n, k]", "C[b, m, n] = sum(k) A[b, m, k] * B[b, n, k]", "C[b, m, n] = sum(k) A[b, m, k] * B[n, k]",
         "C[m, n] = sum(k, l) A[m, k, l] * B[n, k, l]", "C[n, m] = sum(k) A[m, k] * B[n, k]", "d[] = sum(k) v[k] * w[k]"]
TURNED = ["C[m, n] = sum(k) A[m, k] * B[k, n]", "C[m, n] = sum(k) A[k, m] * B[n, k]", "C[m, n] = sum(k) A[k, m] * B[k, n]", "y[n] = sum(k) x[k] * W[k, n]",
          "C[b, m, n] = sum(k) A[b, m, k] * B[b, k, n]", "C[n, m] = sum(k, l) A[k, l, m] * B[k, l, n]", "C[b, n] = sum(k) A[b, k] * B[b, k, n]"]
TYPES = [("i4", "i32"), ("i4", "i8"), ("i8", "i32"), ("i8", "i8"), ("f8e4m3", "f32"), ("f8e5m2", "f32"), ("bf16", "f32"), ("bf16", "bf16")]
# What is done to a sum: of any operands, and of such as make integers of it.
EPILOGUES = ["relu({s})", "{s} + bias[{c}]", "relu({s} + bias[{c}]: bf16)", "silu({s} * 0.25)", "gelu({s} * 0.01) * s[{r}]", "min(max({s}, -6), 6)",
             "1 / (1 + exp(-({s}) * 0.01))", "tanh(relu({s}) * 0.5) - 2 * 0.25", "3 - {s} - R[{o}]", "sqrt(max({s}, 0)) / 3", "sigmoid({s}) + R[{o}]: bf16",
             "relu(({s} + bias[{c}]) * 0.001)"]
LEAST_SIZES = [1, 2, 3, 8, 16, 32, 64]  # half of the sizes; the others are any up to 300
MOST_PRODUCTS = 1 << 24  # multiplications of a random question, so that its check is short
# Matrix by vector: sizes, type, and how often the bound at most: in hundredths.
VECTOR, VECTORS = "y[n] = sum(k) x[k] * W[n, k]", [((4096, 4096), "bf16", 130), ((4096, 4096), "i8", 130), ((11008, 4096), "bf16", 130), ((4096, 11008), "bf16", 130),
                                                   ((3000, 5000), "bf16", 130), ((4096, 4097), "bf16", 150)]
# Words of the language, and names that a kernel has itself.
TAKEN = ["true", "while", "return", "loop", "where", "dyn", "sums", "next", "before", "l", "contract", "rows", "i8", "device"]


def cycles_of(text):
    return int(re.search(r"kernel \S+: (\d+) cycles", text)[1])


def goals():
    """Cycles as the report of the answer's own binary has them; the comment in its text says the same."""
    for sizes, dtype, most in AT_MOST:
        of = dict(zip("mnk", map(int, sizes.split(","))))
        answer = tune(PRODUCT, of, f"--dtype={dtype}")
        check(answer.status == 0, f"{sizes} {dtype}: {answer.text()}")
        report = visa_tools.run(["visac", "-", "--report"], stdin=answer.out)
        if report.status or answer.status:
            check(False, f"{sizes} {dtype}: {report.text()}")
            continue
        cycles, said = cycles_of(report.text()), int(re.search(r"// (\d+) cycles", answer.text())[1])
        check(cycles <= most, f"{sizes} {dtype}: {cycles} cycles, at most {most}")
        check(cycles == said, f"{sizes} {dtype}: {cycles} cycles, its text says {said}")
        check(visa_tools.run(["visac", "-", "--format-check"], stdin=answer.out).status == 0, f"{sizes} {dtype}: not in the canonical layout")


def turned_ahead():
    """Parts of an operand that lies turned are turned while the one before is multiplied: each in front of its own products is 1.34 times the bound."""
    answer = tune(TURNED[0], {"m": 4096, "n": 4096, "k": 4096}).text()
    times = re.search(r"cycles, ([0-9.]+) times", answer)
    check(times and float(times[1]) <= 1.25 and "The next part" in answer, f"4096 cubed, turned: {times and times[1]} times the bound: {answer[:3000]}")


def vectors():
    """An iteration takes one row of each bank; results are joined and stay in DM, so that what is written is in long pieces."""
    for (n, k), dtype, most in VECTORS:
        times = re.search(r"cycles, ([0-9.]+) times", tune(VECTOR, {"n": n, "k": k}, f"--dtype={dtype}").text())
        check(times and float(times[1]) * 100 <= most, f"vector, n={n}, k={k} {dtype}: {times and times[1]} times the bound, at most {most} %")
    for n, k in [(1376, 4096), (600, 1000), (1, 4096), (257, 320)]: # of the first two a cluster's part is padded
        ran = tune(VECTOR, {"n": n, "k": k}, "--check", "--budget=1s")
        check(ran.status == 0 and "agree" in ran.text(), ran.text())
    inside = tune(VECTOR, {"n": 1376, "k": 4096}, "--budget=0s").text()
    check(re.search(r"N % \d+ # \d+ / ", inside) and "Broadcast1 " in inside, "no padding in a cluster's part, nothing joined: this question no longer tests them: " + inside)


def names():
    """Any name of a tensor gives a kernel that compiles, here one with sums in parts."""
    for name in TAKEN:
        ran = tune(f"{name}y[m, n] = sum(k) {name}[m, k] * B[n, k]", {"m": 256, "n": 256, "k": 2048}, "--out=bf16", "--budget=0s", "--emit=bin", "-o", os.devnull)
        check(ran.status == 0, f"a tensor called {name}: " + ran.text())


def numbers(a_turned, b_turned):
    """A product in Python. What lies turned is given as its columns."""
    m, n, k = 24, 40, 96
    rng = random.Random(5)
    a = [[rng.randint(-128, 127) for _ in range(k)] for _ in range(m)]
    b = [[rng.randint(-128, 127) for _ in range(k)] for _ in range(n)]
    with tempfile.TemporaryDirectory() as work:
        path = lambda name: os.path.join(work, name)
        question = f"C[m, n] = sum(k) A[{'k, m' if a_turned else 'm, k'}] * B[{'k, n' if b_turned else 'n, k'}]"
        made = tune(question, {"m": m, "n": n, "k": k}, "--dtype=i8", "--emit=bin", "-o", path("c.bin"))
        check(made.status == 0, made.text())
        for name, rows, turned in [("a", a, a_turned), ("b", b, b_turned)]:
            lies = [list(column) for column in zip(*rows)] if turned else rows
            visa_tools.write_npy(path(name + ".npy"), (len(lies), len(lies[0])), sum(lies, []), "b")
        names = re.findall(r"^out (\w+):", visa_tools.run(["visa-run", path("c.bin"), "--list"]).text(), re.M)
        ran = visa_tools.run(["visa-run", path("c.bin"), "--input", "a=" + path("a.npy"), "--input", "b=" + path("b.npy"), "--output",
                              f"{names[0]}=" + path("c.npy")])
        check(ran.status == 0, ran.text())
        with open(path("c.npy"), "rb") as file:
            data = file.read()
        found = struct.unpack(f"<{m * n}i", data[-4 * m * n:])
    expected = tuple(sum(x * y for x, y in zip(row, column)) for row in a for column in b)
    check(found == expected, f"numbers: another product than {question}")


def same_twice():
    """The same bytes again, and no worse with more work."""
    of = {"m": 96, "n": 64, "k": 256}
    none = tune(PRODUCT, of, "--budget=0s").text()
    check("visac tune: 1 kernel compiled, 0 of them" in none, "--budget=0s: more than the first kernel is compiled: " + none)
    first, again = tune(PRODUCT, of, "--budget=1s"), tune(PRODUCT, of, "--budget=1s")
    check(first.status == 0 and first.out == again.out, "two answers to one question")
    least = None
    for budget in ["0s", "1s", "4s"]:
        cycles = cycles_of(tune(PRODUCT, of, f"--budget={budget}", "--report").text())
        check(least is None or cycles <= least, f"--budget={budget}: {cycles} cycles, {least} with less work")
        least = cycles
    # where a sum of one position stands is nothing to choose by
    cycles = [re.search(r"^// (\d+) cycles", tune(f"C[b, h] = relu((sum(m) {a} * {b}) + x[h])", {"b": 296, "h": 3, "m": 1}, "--dtype=f8e5m2", "--out=bf16").text(), re.M)[1]
              for a, b in (("A[b, m]", "B[h, m]"), ("A[m, b]", "B[m, h]"), ("A[b, m]", "B[m, h]"))]
    check(len(set(cycles)) == 1, f"a sum of one position in other places: {cycles}")


def random_question(rng):
    """Form, sizes, types: sizes 1 to 300, primes and all, of a contraction that is soon computed."""
    form = rng.choice(FORMS + TURNED)
    names = sorted(set(re.findall(r"\b[bklmn]\b", form)))
    while True:
        of = {name: rng.choice(LEAST_SIZES) if rng.random() < 0.4 else rng.randint(1, 12 if name in "bl" else 300) for name in names}
        if math.prod(of.values()) <= MOST_PRODUCTS:
            return form, of, *rng.choice(TYPES)


def with_epilogue(rng, form):
    """The form with something done to its sum, where it has axes that the operands keep."""
    out, left, right = (re.findall(r"\b[bklmn]\b", axes) for axes in re.findall(r"\[([^\]]*)\]", form))
    columns = [x for x in out if x not in left or x not in right]
    if not columns:
        return form
    last = columns[-1]
    row = [x for x in columns if (x in left) != (last in left)]
    result, contraction = form.split(" = ")
    epilogue = rng.choice(EPILOGUES).format(s=f"({contraction})", c=last, r=row[0] if row else last, o=", ".join(out))
    return f"{result} = {epilogue}"


def random_questions(seed, count):
    """An answer that passes its check, or a refusal that says why."""
    rng = random.Random(seed)
    answered = 0
    for _ in range(count):
        form, of, dtype, out = random_question(rng)
        if rng.random() < 0.5:
            form, out = with_epilogue(rng, form), rng.choice(["f32", "bf16", "i8"])
        ran = tune(form, of, f"--dtype={dtype}", f"--out={out}", f"--budget={rng.choice([0, 1])}s", "--check")
        what = f"{form} {of} {dtype} {out} (seed {seed}): "
        check(not ran.crashed and ran.status in (0, 1), what + ran.text())
        check(ran.status != 0 or "agree" in ran.text() or "proven" in ran.text(), what + ran.text())
        check(ran.status != 1 or re.search(r"error\[E-TUNE-\w+\]: ", ran.text()), what + ran.text())
        check(ran.status != 1 or "E-TUNE-NONE" not in ran.text() or "note: the first one: E-" in ran.text() or " 0 that" in ran.text(), what + ran.text())
        answered += ran.status == 0
        if count > 100 and ran.status:
            print(what + ran.text().splitlines()[0], flush=True)
    print(f"tune: {answered} of {count} random questions have an answer")


def parts():
    """A question whose weights are waited for: sums in parts, added by the Vector Engine."""
    of = {"m": 256, "n": 256, "k": 2048}
    answer = tune("C[m, n] = relu(sum(k) A[m, k] * B[n, k] + bias[n])", of, "--dtype=i8") # of floats, or without a bias, slices have parts of the sum
    check("before: VrfTensor" in answer.text(), "no sums in parts: this question no longer tests them: " + answer.text())
    ran = visa_tools.run(["visac", "-", "--check=numbers", "-Werror"], stdin=answer.out)
    check(ran.status == 0 and "agree" in ran.text(), ran.text())


def epilogues():
    """Each by --check; and numbers by hand, for what is rounded to integers."""
    of = {"m": 32, "n": 48, "k": 64}
    for epilogue in EPILOGUES:
        question = "C[m, n] = " + epilogue.format(s="(sum(k) A[m, k] * B[n, k])", c="n", r="m", o="m, n")
        for dtype, out in [("bf16", "bf16"), ("i8", "i8")]:
            ran = tune(question, of, f"--dtype={dtype}", f"--out={out}", "--budget=0s", "--check")
            check(ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"{question} {dtype} {out}: " + ran.text())
    for text, k, out in [(PRODUCT, 96, "bf16"), (PRODUCT, 96, "f32"), (PRODUCT, 96, "f8e4m3"), (PRODUCT + " * 0.5", 69632, "bf16")]: # of integers; of the last one in parts
        ran = tune(text, {"m": 8, "n": 16, "k": k}, "--dtype=i8", f"--out={out}", "--budget=0s", "--check")
        check(ran.status == 0 and "agree" in ran.text(), f"{text} i8 {out}: " + ran.text())
    fused = tune("C[m, n] = relu(sum(k) A[m, k] * B[n, k] + bias[n])", {"m": 256, "n": 256, "k": 128}, "--out=bf16").text()
    check(fused.count(".vector_init()") == 1 and "vector_narrow" not in fused, "bias and rectifier are more than one pass of whole flits: " + fused)
    ran = tune("C[m, n] = gelu(sum(k) A[m, k] * B[n, k] + bias[n]) + R[m, n]: bf16", {"m": 256, "n": 256, "k": 2048}, "--out=bf16", "--check=numbers")
    check(ran.status == 0 and "agree" in ran.text(), ran.text())


def rounded():
    """min(relu((sum + bias) * 0.5), 6) of integers, in Python: halves away from zero; bounds that are whole numbers need no pass of their own after it."""
    m, n, k = 16, 16, 32
    rng = random.Random(7)
    a, b = ([[rng.randint(-3, 3) for _ in range(k)] for _ in range(m)] for _ in range(2))
    bias = [rng.randint(-9, 9) for _ in range(n)]
    with tempfile.TemporaryDirectory() as work:
        path = lambda name: os.path.join(work, name)
        made = tune("C[m, n] = min(relu((sum(k) A[m, k] * B[n, k] + bias[n]: f32) * 0.5), 6)", {"m": m, "n": n, "k": k}, "--dtype=i8", "--out=i32", "--emit=vm,bin,report", "-o",
                    path("c"))
        check(made.status == 0, made.text())
        with open(path("c.vm"), encoding="utf-8") as file:
            check(file.read().count(".vector_init()") == 1, "bounds after a rounding are another pass")
        visa_tools.write_npy(path("a.npy"), (m, k), sum(a, []), "b")
        visa_tools.write_npy(path("b.npy"), (n, k), sum(b, []), "b")
        visa_tools.write_npy(path("bias.npy"), (n,), bias)
        names = re.findall(r"^out (\w+):", visa_tools.run(["visa-run", path("c.bin"), "--list"]).text(), re.M)
        ran = visa_tools.run(["visa-run", path("c.bin"), *sum((["--input", f"{x}=" + path(x + ".npy")] for x in ("a", "b", "bias")), []), "--output",
                              f"{names[0]}=" + path("c.npy")])
        check(ran.status == 0, ran.text())
        with open(path("c.npy"), "rb") as file:
            found = struct.unpack(f"<{m * n}i", file.read()[-4 * m * n:])
    expected = tuple(min(6, max(0, math.floor(abs(x) / 2 + 0.5) * (1 if x >= 0 else -1))) for row in a for column, y in zip(b, bias)
                     for x in [sum(p * q for p, q in zip(row, column)) + y])
    check(found == expected, "rounded: other numbers than min(relu((sum + bias) * 0.5), 6)")


# What is done to a sum s, c[m, n] and g[n], and the same in Python: the numbers are such that nothing rounds.
MEANINGS = [("2 * {s} + 0.5 * c[m, n]", lambda s, c, g: 2 * s + c / 2), ("c[m, n] * 3 - {s}", lambda s, c, g: 3 * c - s), ("{s} - c[m, n] / 4 + -g[n]", lambda s, c, g: s - c / 4 - g),
            ("0.5 * g[n] * {s} + 0.75 * c[m, n]", lambda s, c, g: g * s / 2 + 0.75 * c), ("{s} / sqrt(16) * -0.5", lambda s, c, g: -s / 8), ("-{s} * c[m, n]", lambda s, c, g: -s * c),
            ("relu6({s} - 3 * g[n])", lambda s, c, g: min(max(s - 3 * g, 0), 6)), ("clip({s}, -2, 5) - -1", lambda s, c, g: min(max(s, -2), 5) + 1),
            ("{s} + (c[m, n] + g[n])", lambda s, c, g: s + c + g), ("max({s} * square(g[n]), c[m, n])", lambda s, c, g: max(s * g * g, c))]


def meanings():
    """Numbers of the kernels of MEANINGS against Python's."""
    m, n, k = 6, 16, 32
    rng = random.Random(11)
    a, b = ([[rng.randint(-3, 3) for _ in range(k)] for _ in range(m)] for m in (m, n))
    c, g = [[rng.randint(-9, 9) for _ in range(n)] for _ in range(m)], [rng.randint(-4, 4) for _ in range(n)]
    sums = [[sum(p * q for p, q in zip(row, column)) for column in b] for row in a]
    bf16 = lambda x: struct.unpack("<I", struct.pack("<f", x))[0] >> 16
    with tempfile.TemporaryDirectory() as work:
        path = lambda name: os.path.join(work, name)
        write = lambda name, values, pack: open(path(name + ".raw"), "wb").write(b"".join(pack(x) for x in values))
        for i, (text, meaning) in enumerate(MEANINGS):
            spelt = ("A[m, k] * B[n, k]", "B[n, k] * A[m, k]")[i % 2]
            question = "Y[m, n] = " + text.format(s=f"sum(k) {spelt}")
            types = ["--dtype=i8", "--out=f32"] if i in (0, 3, 6) else []
            made = tune(question, {"m": m, "n": n, "k": k}, *types, "--budget=0s", "--no-cache", "--emit=vm,bin,report", "-o", path("y"))
            check(made.status == 0, f"{question}: " + made.text())
            if made.status != 0:
                continue
            ports = dict(re.findall(r"^in  *(\w+): .*?(bf16|f32|i8)", visa_tools.run(["visa-run", path("y.bin"), "--list"]).text(), re.M))
            given = {"a": sum(a, []), "b": sum(b, []), "c": sum(c, []), "g": g}
            for name, dtype in ports.items():
                write(name, given[name[0]], {"bf16": lambda x: struct.pack("<H", bf16(x)), "i8": lambda x: struct.pack("b", x), "f32": lambda x: struct.pack("<f", x)}[dtype])
            ran = visa_tools.run(["visa-run", path("y.bin"), *(f"--input={name}={path(name)}.raw" for name in ports), f"--output={path('found.raw')}"])
            check(ran.status == 0, f"{question}: " + ran.text())
            if ran.status != 0:
                continue
            with open(path("found.raw"), "rb") as file:
                found = struct.unpack(f"<{m * n}f", file.read())
            expected = tuple(meaning(sums[p][j], c[p][j], g[j]) for p in range(m) for j in range(n))
            check(found == expected, f"{question}: {found[:4]}.., not {expected[:4]}..")


CONVOLUTION = "O[n, y, x, f] = sum(r, s, c) I[n, y*{a} + r*{b}, x*{a} + s*{b}, c] * W[f, r, s, c]"


# What is done to the sums of a convolution, and the types of its operands.
LAYERS = [("relu({s} + bias[f])", "i8", "i32"), ("relu(({s} + bias[f]) * scale[f]: f32)", "i8", "i8"),
          ("relu({s} + bias[f] + R[n, y, x, f]: bf16)", "bf16", "bf16"), ("gelu({s} * 0.01)", "bf16", "bf16"), ("min(relu({s}), 6)", "f8e4m3", "bf16")]


def convolutions():
    """Strides and dilations by --check, one of them with numbers from loops in Python."""
    for a, b, of, dtype, out in [(1, 1, (1, 6, 6, 16, 3, 3, 32), "i8", "i32"), (2, 1, (2, 5, 7, 8, 3, 2, 64), "i8", "i8"), (1, 3, (3, 4, 4, 24, 2, 3, 16), "bf16", "f32"),
                                 (3, 2, (1, 7, 3, 32, 1, 5, 48), "bf16", "bf16"), (2, 1, (1, 8, 8, 8, 1, 1, 32), "f8e4m3", "f32")]:
        ran = tune(CONVOLUTION.format(a=a, b=b), dict(zip("nyxfrsc", of)), f"--dtype={dtype}", f"--out={out}", "--check")
        check(ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"convolution {a} {b} {of} {dtype}: " + ran.text())
    ran = tune("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c]: f32 * W[f, r, s, c]: f32", dict(zip("yxfrsc", (5, 7, 8, 3, 3, 32))), "--budget=0s", "--check")
    check(ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), "convolution of f32: " + ran.text())
    for epilogue, dtype, out in LAYERS:
        question = "O[n, y, x, f] = " + epilogue.format(s=CONVOLUTION.format(a=2, b=1).split(" = ")[1])
        ran = tune(question, dict(zip("nyxfrsc", (2, 5, 7, 16, 3, 2, 32))), f"--dtype={dtype}", f"--out={out}", "--budget=0s", "--check")
        check(ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"{question} {dtype}: " + ran.text())
    y, x, f, r, s, c, stride, dilation = 4, 3, 8, 3, 2, 32, 2, 3
    high, wide = (y - 1) * stride + (r - 1) * dilation + 1, (x - 1) * stride + (s - 1) * dilation + 1
    rng = random.Random(11)
    image, weights = ([rng.randint(-8, 7) for _ in range(n)] for n in (high * wide * c, f * r * s * c))
    with tempfile.TemporaryDirectory() as work:
        path = lambda name: os.path.join(work, name)
        made = tune("O[y, x, f] = sum(r, s, c) P[y*2 + r*3, x*2 + s*3, c] * W[f, r, s, c]", {"y": y, "x": x, "f": f, "r": r, "s": s, "c": c}, "--dtype=i8",
                    "--emit=bin", "-o", path("o.bin"))
        check(made.status == 0, made.text())
        visa_tools.write_npy(path("p.npy"), (high, wide, c), image, "b")
        visa_tools.write_npy(path("w.npy"), (f, r, s, c), weights, "b")
        names = re.findall(r"^out (\w+):", visa_tools.run(["visa-run", path("o.bin"), "--list"]).text(), re.M)
        ran = visa_tools.run(["visa-run", path("o.bin"), "--input", "p=" + path("p.npy"), "--input", "w=" + path("w.npy"), "--output", f"{names[0]}=" + path("o.npy")])
        check(ran.status == 0, ran.text())
        with open(path("o.npy"), "rb") as file:
            found = struct.unpack(f"<{y * x * f}i", file.read()[-4 * y * x * f:])
    expected = tuple(sum(image[((i * stride + u * dilation) * wide + j * stride + v * dilation) * c + k] * weights[((g * r + u) * s + v) * c + k]
                         for u in range(r) for v in range(s) for k in range(c)) for i in range(y) for j in range(x) for g in range(f))
    check(found == expected, "convolution: other numbers than loops give")


IMAGE = "sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]"
# Of a convolution: sizes, types, what the first plan has, cycles at most: without it it takes more.
WEIGHTS = [
    # those of the same rows bring a part of the weights each, and the slices of other rows the same once more
    ("relu({})", dict(y=32, x=32, r=3, s=3, c=64, f=64), "bf16", "bf16", ["Y / 4 % 4, F % 8, F / 8 % 4]"], 4379),
    # slices with parts of the channels stand between those that bring parts: rows of the window, groups of columns, channels
    ("relu({} + bias[f])", dict(y=14, x=14, r=3, s=3, c=256, f=128), "bf16", "bf16", ["F / 16, R # 4, F / 8 % 2, C / 64 % 2, C / 128]", "slice0: 2 }"], 8267),
    # groups of columns that are no power of two: rows of the window are parts, too, with padding
    ("relu({})", dict(y=14, x=14, r=3, s=3, c=96, f=96), "bf16", "bf16", ["m![F / 8 % 2, R # 4, S, C]>"], 3800),
    # more columns than the TRF has room for, in two turns
    ("relu({})", dict(y=56, x=56, r=3, s=3, c=64, f=64), "bf16", "bf16", ["for n in 0..2 {", "columns.view().tile::<m![F / 32], 1, _>(n)"], 5570),
    # the sums wait for a bias, and the pass over them has its type
    ("relu(({} + bias[f]) * scale[f]: f32)", dict(y=14, x=28, r=3, s=3, c=256, f=64), "i8", "i8", ["i32, Chip, Cluster, Slice", "when its operands have come"], 0)]


def weights_of_windows():
    """How weights come into the TRF of slices that share them, and what waits for them; by numbers, since others prove the same with fewer elements."""
    for question, sizes, dtype, out, texts, most in WEIGHTS:
        made = tune("O[y, x, f] = " + question.format(IMAGE), sizes, f"--dtype={dtype}", f"--out={out}", "--budget=0s")
        check(made.status == 0 and all(text in made.text() for text in texts), f"{question} {sizes}: no {texts}: " + made.text()[-5000:])
        cycles = int(re.search(r"^// (\d+) cycles", made.text(), re.M)[1]) if made.status == 0 else 0
        check(not most or cycles <= most, f"{question} {sizes}: {cycles} cycles, {most} expected")
        ran = visa_tools.run(["visac", "-", "--check=numbers"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text(), f"{question} {sizes} {dtype}: " + ran.text())


# Spellings of one convolution: with both windows, of which one has one place, or without that one; sizes of all axes; types; cycles at most.
ONE_WINDOW = [
    (["O[t, f] = sum(r, c) I[t*2 + r, c] * W[f, r, c] + bias[f]", "O[t, u, f] = sum(r, s, c) I[t*2 + r, u + s, c] * W[f, r, s, c] + bias[f]",
      "O[u, t, f] = sum(s, r, c) I[u + s, t*2 + r, c] * W[f, s, r, c] + bias[f]"], dict(t=120, u=1, r=3, s=1, c=80, f=64), "bf16", 2550),
    (["O[t, c] = sum(r) I[t + r, c] * W[r, c] + bias[c]", "O[u, t, c] = sum(s, r) I[u + s, t + r, c] * W[s, r, c] + bias[c]"],
     dict(t=50, u=1, r=4, s=1, c=48), "i8", 0),
    (["O[y, x, f] = sum(s, c) I[y, x + s, c] * W[f, s, c]", "O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]"],
     dict(y=6, x=12, r=1, s=7, c=32, f=48), "bf16", 0),
    (["O[n, y, x, f] = sum(r, c) I[n, y + r*2, x, c] * W[f, r, c]", "O[n, y, x, f] = sum(r, s, c) I[n, y + r*2, x + s, c] * W[f, r, s, c]"],
     dict(n=2, y=8, x=5, r=3, s=1, c=32, f=16), "i8", 0),
    (["O[n, t, f] = sum(s, c) I[n, t + s, c] * W[f, s, c]", "O[n, t, f] = sum(r, s, c) I[n + r, t + s, c] * W[f, r, s, c]"],
     dict(n=3, t=16, r=1, s=3, c=32, f=16), "bf16", 0)]


def one_window():
    """A window of one place is none, and what has one axis of places is the same question along either."""
    for spellings, sizes, dtype, most in ONE_WINDOW:
        found = set()
        for question in spellings:
            made = tune(question, {axis: n for axis, n in sizes.items() if re.search(rf"\b{axis}\b", question)}, f"--dtype={dtype}", *([] if most else ["--budget=0s"]))
            check(made.status == 0, f"{question}: " + made.text())
            ran = visa_tools.run(["visac", "-", "--check"], stdin=made.out)
            check(ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"{question}: " + ran.text())
            found.add(int(re.search(r"^// (\d+) cycles", made.text(), re.M)[1]) if made.status == 0 else 0)
        check(len(found) == 1 and (not most or found.pop() <= most), f"{spellings}: cycles {found}, {most} at most")


# Of tensors whose layout is the kernel's choice, which other questions are the same; sizes, types, and what is free.
ARRANGED = [("O[f, y, x] = sum(c, r, s) I[c, y + r, x + s] * W[f, c, r, s] + bias[f]", "O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c] + bias[f]",
             dict(y=8, x=6, r=3, s=3, c=32, f=32), "bf16", "i,w,o"),
            ("O[y, x, f] = sum(c, r, s) I[c, x + s, y + r] * W[r, s, c, f]", "O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]",
             dict(y=8, x=6, r=3, s=2, c=32, f=32), "i8", "i,w"),
            ("O[n, c, y, x] = sum(r, s) I[n, c, y + r, x + s] * W[c, r, s]", "O[n, y, x, c] = sum(r, s) I[n, y + r, x + s, c] * W[r, s, c]",
             dict(n=2, y=8, x=6, r=3, s=3, c=32), "i8", "i,w,o"),
            ("O[f, t] = sum(c, r) I[c, t*2 + r] * W[f, c, r]", "O[t, f] = sum(r, c) I[t*2 + r, c] * W[f, r, c]", dict(t=20, r=3, c=32, f=16), "bf16", "i,w,o"),
            ("O[f, y, x] = sum(c, s) I[c, y, x + s] * W[f, c, s]", "O[y, x, f] = sum(s, c) I[y, x + s, c] * W[f, s, c]", dict(y=5, x=8, s=3, c=32, f=16), "bf16", "i,w,o")]


def arranged():
    """Where layouts are free, those of NCHW and of NHWC are one question; where they are not, the former is brought into order."""
    for other, question, sizes, dtype, free in ARRANGED:
        found = []
        for text in (other, question):
            made = tune(text, sizes, f"--dtype={dtype}", f"--free={free}", "--budget=0s")
            ran = visa_tools.run(["visac", "-", "--check"], stdin=made.out)
            check(made.status == 0 and ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"{text} --free={free}: " + made.text()[-3000:] + ran.text())
            found.append([line for line in made.text().split("\n")[1:] if not line.startswith("axes![")])
        check(found[0] == found[1], f"{other}: another kernel than {question} has: {found}")
        fixed = tune(other, sizes, f"--dtype={dtype}", "--budget=0s")
        ran = visa_tools.run(["visac", "-", "--check"], stdin=fixed.out)
        check(fixed.status == 0 and "fn lay_" in fixed.text() and ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"{other}: " + fixed.text()[-3000:] + ran.text())


FILTERS = "O[n, y, x, c] = sum(r, s) I[n, y*2 + r, x*2 + s, c] * W[r, s, c]"
# Question, sizes, types of the operands and the result, what the kernel has (a choice), cycles at most: without the choice it takes more.
CHOICES = [
    # what is done to sums that slices share, between their reducer and DM; tensors may have the names that the kernel has itself
    ("C[m, n] = sum(k) lower[m, k] * parts[n, k] + own_x[n]", dict(m=1024, n=1024, k=1024), "bf16", "f32", "&lower_own_x_port)", 15741),
    ("C[m, n] = (sum(k) A[m, k] * B[n, k]) * s[m]", dict(m=1024, n=1024, k=1024), "i8", "i32", ".vector_inter_slice_reduce::<", 11200),
    # what has an element for each result meets the sums that slices share, too, and several passes follow
    ("C[m, n] = R[m, n] + sum(k) A[m, k] * B[n, k]", dict(m=256, n=1024, k=1024), "bf16", "f32", "lower_r: VrfTensor<", 9700),
    # sums of integers that cannot saturate are shared with whole operations after them as well
    ("P[j, i] = relu(sum(s) X[i, s] * Y[j, s]) * 3", dict(i=4096, j=64, s=4096), "i8", "i32", "SHARERS", 27000),
    # an operand that lies turned goes around as it lies: columns, rows, pairs of the sum in a packet; what is done to the sums follows
    ("C[m, n] = sum(k) A[m, k] * B[k, n]", dict(m=512, n=512, k=512), "bf16", "f32", "contract_packet::<m![N % 32]>", 5570),
    ("P[j, i] = relu(sum(s) X[i, s] * Y[s, j])", dict(i=1024, j=256, s=1024), "i8", "i32", "m![J % 32, S % 2]", 7650),
    # a flow answers a contraction: slices have parts of the sum
    ("O[h, q, d] = sum(s) P[h, q, s] * V[h, s, d]", dict(h=2, q=4, s=512, d=64), "bf16", "bf16", ".vector_inter_slice_reduce::<", 2138),
    ("c[b] = sum(m) A[b, m] * B[b, m]", dict(b=224, m=144), "bf16", "bf16", ".vector_intra_slice_reduce::<M", 2636),
    # a vector is one row or none: with one it is multiplied by the Reducer, too, without one by the Vector Engine, too
    ("y[n] = sum(k) x[k] * W[n, k]", dict(n=1000, k=768), "bf16", "f32", "x: &HbmTensor<bf16, Chip, m![K]>", 3934),
    ("C[n, m] = sum(k) W[k, n] * x[m, k]", dict(m=1, n=2335, k=1000), "f8e4m3", "f32", "x: &HbmTensor<f8e4m3, Chip, m![M, K]>", 7705),
    # what streams is in front of the weights, however it is spelt: where tensors lie in HBM counts
    ("O[h, q, d] = sum(s) V[h, s, d] * P[h, q, s]", dict(h=2, q=4, s=512, d=64), "bf16", "bf16", "p: &HbmTensor<bf16, Chip, m![H, Q, S]>,\n    v:", 2138),
    # channels with filters of their own stay side by side; in packets of 32, 16 and 8, of which some is padding
    (FILTERS, dict(n=1, y=5, x=6, r=3, s=3, c=64), "i8", "i32", "contract_packet::<m![C % 32]>", 0),
    (FILTERS, dict(n=2, y=5, x=6, r=3, s=2, c=48), "bf16", "bf16", "LaneMode::Sequential", 0),
    ("O[y, x, c] = relu((sum(r, s) W[r, s, c] * I[y + r*2, x + s*2, c] + bias[c]) * scale[c]: f32)", dict(y=4, x=3, r=2, s=3, c=13), "i8", "i8", "C # 16", 0),
    ("O[y, x, c] = gelu(sum(r, s) I[y + r, x + s, c] * W[r, s, c])", dict(y=3, x=7, r=5, s=1, c=24), "bf16", "bf16", "gate", 0),
    # neighbours bring places of the filters, rows and parts of them, which go around
    ("O[y, x, c] = sum(r, s) I[y + r, x + s, c] * W[r, s, c]", dict(y=16, x=32, r=7, s=7, c=32), "bf16", "bf16", "m![R # 8, S # 8 / 4, S # 8 % 4, C]", 2850),
    # few channels: a packet has places of the window, which its padding ends
    ("O[y, x, f] = sum(r, s, c) I[y*2 + r, x*2 + s, c] * W[f, r, s, c] + bias[f]", dict(y=6, x=8, r=7, s=7, c=3, f=16), "i8", "i32", "m![S # 8, C # 8]", 0),
    ("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]", dict(y=6, x=8, r=3, s=5, c=3, f=10), "bf16", "f32", "C # 4", 0),
    ("O[y, x, f] = sum(r, s, c) I[y + r, x + s*2, c] * W[f, r, s, c]", dict(y=6, x=8, r=3, s=3, c=5, f=8), "f8e4m3", "f32", "C # 8", 0),
    ("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]", dict(y=6, x=8, r=3, s=3, c=80, f=9), "i8", "i32", "F # 16", 0),
    # rows in both clusters, of which each has padding
    ("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]", dict(y=6, x=8, r=3, s=3, c=32, f=32), "i8", "i32", "Y % 3 # 4", 0),
    # weights of more than the TRF: parts of the channels, whose sums slices add
    ("O[y, x, f] = relu(sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c] + bias[f])", dict(y=4, x=4, r=3, s=3, c=512, f=64), "bf16", "bf16", "vector_inter_slice_reduce", 0),
    ("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]", dict(y=3, x=5, r=3, s=3, c=1024, f=16), "i8", "i32", "InterSliceReduceOpI32::Add", 0),
    ("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]", dict(y=16, x=4, r=3, s=3, c=256, f=128), "bf16", "bf16", "Y / 2 % 4], m![Y % 2, X", 5000),
    # what meets the sums is handed on, of slices that have padding in both clusters, and places that have some
    ("O[y, x, f] = relu(sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c] + bias[f])", dict(y=28, x=28, r=3, s=3, c=32, f=32), "i8", "i8", "Broadcast1 {", 3700),
    ("O[y, x, f] = relu(sum(c) I[y, x, c] * W[f, c] + bias[f])", dict(y=56, x=56, c=64, f=256), "i8", "i8", "Broadcast1 { slice1: 32, slice0: 1 }", 3100),
    # in short rings, the filters of channels too; of rows that end inside the slices
    ("O[y, x, f] = relu((sum(c) I[y, x, c] * W[f, c] + bias[f]) * scale[f]: f32)", dict(y=28, x=28, c=512, f=128), "i8", "i8", "1 # 4, F / 16], m![F % 16]>", 3500),
    ("O[y, x, c] = relu(sum(r, s) I[y + r, x + s, c] * W[r, s, c] + bias[c])", dict(y=28, x=28, r=3, s=3, c=192), "bf16", "bf16", "unsafe { columns.reshape() }", 3700),
    # small weights, which many slices share: a few bring them and hand them on, in one flit or in three, of which a packet has two
    ("O[y, x, f] = relu((sum(c) I[y, x, c] * W[f, c] + bias[f]) * scale[f]: f32)", dict(y=56, x=56, c=24, f=144), "i8", "i8", "1 # 4, C]>", 4100),
    ("O[y, x, f] = sum(c) I[y, x, c] * W[f, c]", dict(y=56, x=56, c=96, f=24), "i8", "i8", "And on to the others", 2300),
    # clusters of rows with padding each; clusters of columns
    ("O[y, x, f] = relu(sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c] + bias[f])", dict(y=14, x=14, r=3, s=3, c=64, f=128), "i8", "i8", "Y % 7 # 8", 3400),
    ("O[y, x, f] = relu(sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c] + bias[f])", dict(y=7, x=7, r=3, s=3, c=64, f=512), "i8", "i8", "type Cluster = m![F / 256]", 3400),
    # pieces of 7 rows: 49 of them side by side would be packets that end inside blocks, and the blocks in one channel
    ("O[y, x, f] = sum(c) I[y, x, c] * W[f, c] + bias[f]", dict(y=7, x=7, c=576, f=160), "bf16", "bf16", "a copy brings 7 whole rows", 4200),
    # rows that are no whole blocks of HBM, brought together in both clusters; slices with 4 rows each, and no last one with less
    (PRODUCT, dict(m=256, n=1000, k=64), "bf16", "bf16", "m![M / 128], m![M / 16 % 8", 4300),
    (PRODUCT, dict(m=120, n=480, k=96), "bf16", "bf16", "a copy brings 4 whole rows", 2900),
    # the same of what has no contraction, with tiles of 6 rows, and of results one by one
    ("Y[r, c] = softmax(c) X[r, c]", dict(r=1024, c=300), "bf16", "bf16", "a copy brings 32 of R", 3700),
    ("Y[r, c] = softmax(c) X[r, c]", dict(r=3000, c=300), "bf16", "bf16", "a copy brings 96 of R", 10000),
    ("y[r] = max(c) X[r, c]", dict(r=4096, c=300), "bf16", "f32", "a copy brings 64 of R", 4300),
    # rows of 288 bytes lie in DM without padding, and slices that write whole rows have padding in each cluster
    ("O[y, x, f] = sum(c) I[y, x, c] * W[f, c] + bias[f]", dict(y=56, x=56, c=144, f=24), "bf16", "bf16", "m![Y_X % 32, C]>", 3800),
    # a vector goes around a ring of slices that are apart, under all DMNs
    ("y[n] = sum(k) x[k] * W[n, k]", dict(n=520, k=2048), "bf16", "f32", "Broadcast1 { slice1: 128, slice0: 2 }", 4800),
    # queries go around the slices that share keys, of which each has half a flit
    ("O[h, q, e] = sum(s) (softmax(s) ((sum(d) Q[h, q, d] * K[h, s, d]) * 0.125) * V[h, s, e])", dict(h=4, q=64, s=128, d=64, e=64), "bf16", "bf16",
     "Broadcast01 { slice1: 16, slice0: 1, time0: 2 }", 0),
    # an operand with one element is padded alone; the columns are those of the other axis
    ("C[m, n] = sum(k) A[m, k] * B[n, k] + bias[n]", dict(m=1024, n=1, k=1024), "bf16", "bf16", "m![N # 2]", 5000),
    # slices have parts of the sum, rows stay and columns go around: rows in halves, rows with padding, columns in pieces
    (PRODUCT, dict(m=1024, n=512, k=512), "bf16", "f32", ".tile::<m![M / 512], 1, _>(h)", 7000),
    (PRODUCT, dict(m=768, n=512, k=512), "bf16", "f32", "M # 1024 / 32, K / 128]", 6900),
    (PRODUCT, dict(m=1024, n=512, k=512), "bf16", "bf16", "if i == 0 {", 7700),
    # or columns stay, in halves of the TRF, and rows go around; columns with padding, and an operation after the sums
    ("C[m, n] = relu(sum(k) A[m, k] * B[n, k] * 0.25)", dict(m=768, n=768, k=768), "bf16", "f32", "N # 1024 / 64, K / 96]", 10500),
    (PRODUCT, dict(m=512, n=512, k=1024), "bf16", "f32", "let lower: TrfTensor", 9000),
    # columns of these that lie turned: slices exchange parts of the sum for them; rows that lie turned: turned once
    (TURNED[2], dict(m=512, n=512, k=512), "i8", "i32", "InterTranspose { slice1: ", 0),
    (TURNED[2], dict(m=512, n=512, k=512), "i8", "i32", "rows_by_flit.to_dm", 6200),
    # a sum that no slice has room for: slices share it, as a flow
    ("d[] = sum(k) v[k] * w[k]", dict(k=65536), "bf16", "f32", ".vector_inter_slice_reduce", 0),
    # 8 columns of i4 are turned with 8 of padding, which nothing is multiplied with
    (TURNED[0], dict(m=64, n=8, k=128), "i4", "i32", "N # 16 % 8", 0),
    # sums wait for operands that are copied last, and neighbours send columns of a row, or its places, to one of them
    ("O[y, x, f] = (sum(c) I[y, x, c] * W[f, c] + bias[f]) * scale[f]: f32", dict(y=14, x=14, c=384, f=96), "i8", "i8", "when its operands have come", 4100),
    ("O[y, x, c] = min(relu((sum(r, s) I[y*2 + r, x*2 + s, c] * W[r, s, c] + bias[c]) * scale[c]: f32), 6)", dict(y=56, x=56, r=3, s=3, c=96), "i8", "i8",
     "places of a row from 8 slices into one", 4700),
    # slices share images as they do rows; a digit of all rows ends with an image, or inside of one
    ("O[n, y, x, f] = relu(sum(r, s, c) I[n, y + r, x + s, c] * W[f, r, s, c] + R[n, y, x, f])", dict(n=4, y=6, x=14, r=3, s=3, c=64, f=64), "bf16", "bf16", "N, Y / 3", 4200),
    ("O[n, y, x, c] = sum(r, s) I[n, y + r, x + s, c] * W[r, s, c] + bias[c]", dict(n=5, y=7, x=7, r=3, s=3, c=40), "bf16", "bf16", "N", 3700),
    # a product is a convolution of one place, whose slices hand weights on
    ("O[y, x, f] = min(relu(sum(c) I[y, x, c] * W[f, c] + bias[f]), 6)", dict(y=14, x=14, c=64, f=384), "bf16", "bf16", "The window goes over", 2500)]


def choices():
    """Each choice: the kernel has it, and what it computes is proven. Of those that are searched for, seconds each, every third; with VISA_LONG all."""
    searched = [c for c in CHOICES if c[5]]
    some = [c for c in CHOICES if not c[5] or visa_tools.LONG or searched.index(c) % 3 == 0]
    for question, sizes, dtype, out, text, most in some:
        options = (f"--dtype={dtype}", f"--out={out}", *([] if most else ["--budget=0s"]))
        made = tune(question, sizes, *options)
        check(made.status == 0 and text in made.text(), f"{question} {sizes}: no `{text}`: " + made.text()[-3000:])
        cycles = int(re.search(r"^// (\d+) cycles", made.text(), re.M)[1]) if made.status == 0 else 0
        check(not re.search(r"//.*(?<!\S)1 [a-z]+s\b", made.text()), f"{question} {sizes}: one, and written in the plural: " + made.text()[:3000])
        check(not most or cycles <= most, f"{question} {sizes}: {cycles} cycles, {most} expected")
        ran = visa_tools.run(["visac", "-", "--check"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"{question} {sizes} {dtype}: " + ran.text())


def padded():
    """Slices that share a sum may have less of it, or of the rows, or of the columns: steps of rows are their innermost digit then, and a copy brings
    rows that are no whole blocks of HBM together."""
    for question, sizes, dtype, out, texts, most in [
            (PRODUCT, dict(m=512, n=1024, k=1000), "i8", "i32", ("K # 1024 / 256]",), 8200),
            ("P[j, i] = sum(s) X[i, s] * Y[j, s]", dict(i=700, j=500, s=300), "bf16", "bf16", ("J % 4, S # 384 % 96]", "a copy brings 32 whole rows"),
             11700)]:
        made = tune(question, sizes, f"--dtype={dtype}", f"--out={out}")
        check(made.status == 0 and all(text in made.text() for text in texts), f"{question} {sizes}: no {texts}: " + made.text()[-3000:])
        cycles = int(re.search(r"^// (\d+) cycles", made.text(), re.M)[1]) if made.status == 0 else 0
        check(0 < cycles <= most, f"{question} {sizes}: {cycles} cycles, {most} expected")
        ran = visa_tools.run(["visac", "-", "--check"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"{question} {sizes} {dtype}: " + ran.text())


def loads(operands, steps):
    """Copies that bring operands, one of them cut in two, or both of two: of each the shares of all that are there after it, as far as a grid has them."""
    cuts = [[(1,)] + [(x / steps, 1) for x in range(1, steps)]] * operands
    for shares in itertools.product(*cuts):
        copies = [of for of, some in enumerate(shares) for _ in some]
        if len(copies) > max(4, operands + 1):
            continue
        for order in set(itertools.permutations(copies)):
            there, seen = [0] * operands, []
            for of in order:
                there[of] = next(x for x in shares[of] if x > there[of])
                seen.append(tuple(there))
            yield seen


ATTENTION = "O[h, q, e] = sum(s) (softmax(s) ((sum(d) Q[h, q, d] * K[h, s, d]) * 0.125) * V[h, s, e])"


def bounds():
    """Where copies and products wait for each other: no more than a schedule that is followed here, of the best shares on a grid, and not much less."""
    # question, sizes, type, bytes of an element, products by 2^20, operands and result by 2^20 bytes
    for question, of, dtype, width, products, operands, out in [
            *[(PRODUCT, dict(m=size, n=size, k=size), dtype, width, size ** 3 / 2 ** 20, [size * size * width / 2 ** 20] * 2, 4 * size * size / 2 ** 20)
              for size, dtype, width in [(1024, "i8", 1), (512, "i8", 1), (512, "bf16", 2)]],
            (ATTENTION, dict(h=8, q=256, s=256, d=64, e=64), "bf16", 2, 32, [0.25] * 3, 0.5),
            (ATTENTION, dict(h=1, q=512, s=512, d=256, e=256), "bf16", 2, 64, [0.25] * 3, 0.5),
            (ATTENTION, dict(h=1, q=64, s=512, d=256, e=512), "bf16", 2, 16, [1 / 32, 0.25, 0.5], 0.125)]:
        head = tune(question, of, f"--dtype={dtype}", "--budget=0s").text()
        found = re.search(r"allows, (\d+) \(copies (\d+), (?:products|passes) (\d+), where stores wait for them (\d+)\)", head)
        check(found, f"{of} {dtype}: {head[:400]}")
        if not found:
            continue
        least, copies, alone, waits = map(int, found.groups())
        carry, multiply = 2 ** 20 * 1325 / 1000 / 64 / 32, products * 2 ** 20 / (131072 * 2 / width)  # cycles for 2^20 bytes; of all products
        check(least == waits == max(copies, alone, waits), f"{of} {dtype}: {found[0]}")
        steps, best = 8 if len(operands) == 2 else 4, math.inf
        cuts = [[0, *(x / steps for x in some), 1] for stores in range(1, 5) for some in itertools.combinations(range(1, steps), stores - 1)]
        for there in loads(len(operands), steps):
            ends = [500 * (m + 1) + carry * sum(x * share for x, share in zip(operands, shares)) for m, shares in enumerate(there)]
            before = [0, *map(min, there)]  # of all products those whose operands have come, before each copy ends
            done = {x: max(end + (x - some) * multiply for end, some in zip(ends, before) if some < x) for x in {x for shares in cuts for x in shares[1:]}}
            for shares in cuts:
                now = ends[-1]
                for a, b in zip(shares, shares[1:]):
                    now = max(now, done[b]) + 500 + (b - a) * out * carry
                best = min(best, now)
        check(waits <= best + 1, f"{of} {dtype}: a bound of {waits}, and {best:.0f} are enough")
        check(waits >= 0.91 * best, f"{of} {dtype}: a bound of {waits}, where {best:.0f} are enough")


# What is done to 12,544 x 96 sums of 16 products, operands with an element for each column, values of the last operation in a cycle and slice.
MEETING = [("sum(k) A[m, k] * B[n, k] + bias[n]", 1, 8 + 2), ("(sum(k) A[m, k] * B[n, k] + bias[n]) * scale[n]: f32", 2, 4 + 2)]


def results_that_wait():
    """All results meet what came last, or it comes in two copies: no more than the better schedule of these, and not much less."""
    m, n, k, carry, steps = 12544, 96, 16, 1325 / 1000 / 64 / 32, 16
    for text, extras, rate in MEETING:
        head = tune("C[m, n] = " + text, dict(m=m, n=n, k=k), "--dtype=i8", "--out=i8", "--budget=0s").text()
        found = re.search(r"allows, (\d+) \(copies (\d+), products \d+, where stores wait for them (\d+)\)", head)
        check(found, f"{text}: {head[:400]}")
        if not found:
            continue
        least, copies, waits = map(int, found.groups())
        out, made, loaded = m * n * carry, m * n / 512 / rate, 500 * (2 + extras) + (m * k + n * k + 4 * n * extras) * carry
        best = loaded + 500 + 500 + out
        for stores in range(1, 4):
            for some in itertools.combinations(range(1, steps), stores - 1):
                now, shares = loaded, [0, *(x / steps for x in some), 1]
                for a, b in zip(shares, shares[1:]):
                    now = max(now, loaded + b * made) + 500 + (b - a) * out
                best = min(best, now)
        check(least == waits > copies and best - 5 <= waits <= best + 1, f"{text}: a bound of {waits}, and {best:.0f} are enough")


def places_that_are_passed():
    """What no window takes is in no bound, and a copy leaves it out where that is faster."""
    for step, summed, used in [(2, 1, 28 * 28), (3, 2, 56 * 56), (2, 3, 57 * 57), (1, 3, 30 * 30)]:
        answer = tune(f"O[y, x, f] = sum(r, s, c) I[y*{step} + r, x*{step} + s, c] * W[f, r, s, c]", dict(y=28, x=28, r=summed, s=summed, c=256, f=64),
                      "--dtype=bf16", "--out=bf16", "--budget=0s").text()
        found = re.search(r"\(copies (\d+)", answer)
        copies = 1500 + (2 * 256 * (used + 64 * summed ** 2) + 2 * 28 * 28 * 64) * 1325 / 1000 / 64 / 32
        check(found and abs(int(found[1]) - copies) < 2, f"by steps of {step}, windows of {summed}: {copies:.0f} cycles of copies: {answer[:400]}")
    answer = tune("O[y, x, f] = sum(r, s, c) I[y*2 + r, x*2 + s, c] * W[f, r, s, c]", dict(y=28, x=28, r=1, s=1, c=256, f=512), "--dtype=bf16", "--budget=1s")
    check(re.search(r"let rows: .*Slice, m!\[Y % 7, R, S, C\]>", answer.text()), "the image comes with places that no window has: " + answer.text())
    ran = visa_tools.run(["visac", "-", "--check", "-Werror"], stdin=answer.out)
    check("values agree" in ran.text(), f"places that are passed: {ran.text()}")


def turned():
    """Weights that lie turned are turned once, aside; or copied in long runs, so that more slices share rows, and exchange them."""
    product = "sum(k) A[m, k] * B[k, n]"
    for dtype, m, n, k, sums, way in [("i4", 256, 512, 512, product, ".transpose::<"), ("i8", 2048, 512, 1024, f"relu({product} + R[m, n])", "by_flit"),
                                      ("i8", 1024, 640, 512, f"({product}) * s[m]", "exchange its parts"), ("bf16", 512, 640, 384, product, "exchange its parts")]:
        answer = tune(f"C[m, n] = {sums}", {"m": m, "n": n, "k": k}, f"--dtype={dtype}", "--out=i8" if dtype == "i4" else "--budget=1s")
        check(".transpose::<" in answer.text(), "nothing is turned: " + answer.text())
        check(way in answer.text(), f"no {way}: this question no longer tests it: " + answer.text())
        ran = visa_tools.run(["visac", "-", "--check", "-Werror"], stdin=answer.out)
        check(ran.status == 0 and "agree" in ran.text(), ran.text())


FILE = """axes![M = 64, N = {n}, K = 256];
// stays
{types}
#[einsum("C[m, n] = sum(k) A[m, k] * B[n, k]")]
fn first_product(device: &mut Device, a: &HbmTensor<{a}, m![1], m![{order}]>, b: &HbmTensor<{a}, m![1], m![N, K]>) -> HbmTensor<i32, m![1], m![M, N]>;
{more}
"""
SECOND = '#[einsum("y[m] = sum(n, k) W[m, n, k] * x[n, k]")]\nfn second();'


def in_files():
    """Questions on functions without a body: kernels in their places, the rest of the file as it was; refusals."""
    good = {"n": 32, "types": "", "a": "i8", "order": "M, K", "more": ""}
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "asked.vm")

        def answer(*arguments, **changes):
            with open(path, "w", encoding="utf-8") as file:
                file.write(FILE.format(**{**good, **changes}))
            return visa_tools.run(["visac", "tune", path, *arguments], timeout=300)

        alone = answer("--budget=0s")
        check(alone.status == 0 and alone.text().startswith("axes![M = 64, N = 32, K = 256];\n// stays\n") and "type Slice = " in alone.text()
              and "fn first_product(" in alone.text() and "einsum" not in alone.text(), alone.text())
        ran = answer("--budget=0s", "--check", types="type Slice = m![1];", more=SECOND)
        check(ran.status == 0 and ran.text().count("agree") >= 2, ran.text())
        text = answer("--budget=0s", more=SECOND).text()
        check("type FirstProductSlice = " in text and "axes![N_K = 8192];" in text and "fn second(" in text, text)
        for status, words, arguments, changes in [(1, "has no size", [], {"more": SECOND.replace("m]", "p]").replace("[m,", "[p,")}), (1, "E-TUNE-LAYOUT", [], {"order": "K, M"}),
                                                  (1, "E-TUNE-TYPE", [], {"a": "i64"}), (1, "takes one string", [], {"more": "#[einsum(7)]\nfn second();"}),
                                                  (1, "E-TUNE-QUESTION", [], {"more": SECOND.replace("fn second()", "fn second(z: &HbmTensor<i8, m![1], m![K]>)")}),
                                                  (2, "no -D", ["-D", "m=8"], {}), (2, "no -D", ["--dtype=i8"], {})]:
            ran = answer("--budget=0s", *arguments, **changes)
            check(ran.status == status and words in ran.text(), f"{words}: {ran.status}: {ran.text()}")
        plain = visa_tools.run(["visac", path])
        check(plain.status == 1 and "`visac tune FILE.vm` writes it" in plain.text(), plain.text())
        with open(path, "w", encoding="utf-8") as file:
            file.write("axes![M = 8];\nfn f() {}\n")
        ran = visa_tools.run(["visac", "tune", path])
        check(ran.status == 1 and "no function of this file is a question" in ran.text(), ran.text())


def outputs():
    """Source, binary and report at once, each as it is alone, all or none; the fastest by another preset."""
    asked = (PRODUCT, {"m": 40, "n": 24, "k": 96}, "--dtype=i8", "--budget=0s")
    source = tune(*asked).out
    check(tune(*asked, "--emit=vm").out == source, "--emit=vm is another source")
    with tempfile.TemporaryDirectory() as work:
        for stem, given in [("three", "three"), ("four", "four.vm")]:
            ran = tune(*asked, "--emit=vm,bin,report", "-o", os.path.join(work, given))
            check(ran.status == 0 and ran.out == b"", ran.text())
            path = os.path.join(work, stem)
            visa_tools.run(["visac", path + ".vm", "-o", path + ".alone"])
            report = visa_tools.run(["visa-run", path + ".bin", "--report"]).out
            for ending, expected in [(".vm", source), (".txt", report), (".bin", read(path + ".alone"))]:
                check(read(path + ending) == expected, f"--emit=vm,bin,report: another {ending}")
        os.mkdir(os.path.join(work, "five.bin"))
        ran = tune(*asked, "--emit=vm,bin,report", "-o", os.path.join(work, "five"))
        check(ran.status == 1 and not os.path.exists(os.path.join(work, "five.vm")), "one of three outputs cannot be written: " + ran.text())
    measured, documented = (tune(VECTOR, {"n": 1024, "k": 1024}, "--dtype=i8", *more) for more in (["--timing=measured"], []))
    cycles = [cycles_of(visa_tools.run(["visac", "-", "--report", "--timing=measured"], stdin=ran.out).text()) for ran in (measured, documented)]
    check(f"// {cycles[0]} cycles by --timing=measured, " in measured.text() and cycles[0] <= cycles[1], f"--timing=measured: {cycles}, {measured.text()[:300]}")
    check("by --timing=schedule.\n" in tune(*asked, "--timing=schedule").text(), "--timing=schedule")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def command_line():
    for arguments, status, text in [
            (["tune"], 2, "tune takes a question"),
            (["tune", PRODUCT, "-D", "m=8,n=8,k"], 2, "-D of a question takes"),
            (["tune", PRODUCT, "more", "-D", "m=8,n=8,k=64"], 2, "more than one question"),
            (["tune", "y[n]", "=", "x[k]", "README.md", "docs", "W[n,", "k]", "-D", "n=8,k=64"], 2, "put the question in quotes"),
            (["tune", "C[m,n]", "-D", "m=8,n=8,k=64"], 1, "write it in quotes, 'C[m, n] = sum(k)"),
            (["tune", PRODUCT, "-D", "m=8,n=8,k=64", "--explore"], 2, "visac tune"),
            (["tune", PRODUCT, "-D", "m=8,n=8,k=64", "--budget=2"], 2, "--budget takes seconds"),
            (["x.vm", "--dtype=i8"], 2, "belong to `visac tune`"),
            (["tune", PRODUCT, "-D", "m=8,n=8,k=64,j=2"], 1, "has no axis `j`"),
            (["tune", PRODUCT, "-D", "m=1073741824,n=1073741824,k=64"], 1, "2^52"),
            (["tune", "C[" + "m, " * 5000 + "m] = A[m] * B[m]", "-D", "m=2"], 1, "at most 4096 bytes"),
            (["tune", PRODUCT, "-D", "m=8,n=8,m=16,k=64"], 1, "gives axis `m` a size twice"),
            (["x.vm", "--budget=0s"], 2, "belong to `visac tune`"),
            (["x.vm", "--emit=vm,bin,report"], 2, "belongs to `visac tune`"),
            (["tune", PRODUCT, "-D", "m=8,n=8,k=64", "--emit=vm,bin,report", "--check"], 2, "all that is written"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k] + bias[k]", "-D", "m=8,n=8,k=64"], 1, "has an axis that is summed"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k] + R[n, m]", "-D", "m=8,n=8,k=64"], 1, "in another order than the result"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k] + s[]", "-D", "m=8,n=8,k=64"], 1, "write a number in its place"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k] + s[n]: f64", "-D", "m=8,n=8,k=64"], 1, "E-TUNE-TYPE"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k] + s[n] * t[n]", "-D", "m=8,n=8,k=64", "--dtype=i8"], 1, "an operation without the sum"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k] + sin(s[n])", "-D", "m=8,n=8,k=64", "--dtype=i8"], 1, "a function without the sum"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k] / (3 * s[n])", "-D", "m=8,n=8,k=64", "--dtype=i8"], 1, "a tensor with a factor"),
            (["tune", "C[m, n] = erf(sum(k) A[m, k] * B[n, k])", "-D", "m=8,n=8,k=64"], 1, "`erf` is no function"),
            (["tune", "C[m, n] = sum(k) +A[m, k] * B[n, k]", "-D", "m=8,n=8,k=64"], 1, "the name of a tensor is expected"),
            (["tune", "Y[m] = X[m] + log(0)", "-D", "m=64"], 1, "none of f32"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k] + 1e99", "-D", "m=8,n=8,k=64"], 1, "none of f32"),
            (["tune", "C[m, n] = relu(sum(k) A[m, k] * B[n, k]", "-D", "m=8,n=8,k=64"], 1, "`)` is expected"),
            (["tune", "C[m, n] = " + "(" * 4000 + "1", "-D", "m=8"], 1, "E-NESTING"),
            (["tune", "C[m, n] = sum(k) A[m, k] * B[n, k]" + " + 1" * 25, "-D", "m=8,n=8,k=64"], 1, "at most 24 operations"),
            (["tune", "O[y, x, f] = sum(r, s, c) I[c, y + r, x + s] * W[f, r, s, c]", "-D", "y=4,x=4,r=3,s=3,c=32,f=8", "--chips=2"], 1, "channels are innermost"),
            (["tune", "O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, c, r, s]", "-D", "y=4,x=4,r=3,s=3,c=32,f=8", "--chips=2"], 1, "no convolution of images"),
            (["tune", "O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c] + b[y, x]", "-D", "y=4,x=4,r=3,s=3,c=32,f=8"], 1, "an element for each column"),
            (["tune", "O[y, x, f] = sum(r, s, c) I[y + r, x + s, c]: i8 * W[f, r, s, c]", "-D", "y=4,x=4,r=3,s=3,c=32,f=8"], 1, "and bf16 is multiplied"),
            (["tune", "C[m, n] = sum(k) A[m, k]: i16 * B[n, k]", "-D", "m=8,n=8,k=64"], 1, "and bf16 is multiplied"),
            (["tune", "O[y, x, f] = sum(r, s, c) I[y*0 + r, x + s, c] * W[f, r, s, c]", "-D", "y=4,x=4,r=3,s=3,c=32,f=8"], 1, "counts by 1 to"),
            (["tune", "O[y, x, c] = sum(r, s) I[y + r, x + s, c] * W[c, r, s]", "-D", "y=4,x=4,r=3,s=3,c=16", "--chips=2"], 1, "[r, s, c] for each channel"),
            (["tune", "O[y, x, c] = sum(r, s) I[y + r, x + s, c] * W[r, s, c]", "-D", "y=4,x=4,r=3,s=3,c=8", "--dtype=i4"], 1, "more than 8"),
            (["tune", "O[y, x, f] = sum(r, s, c) I[y*99999 + r, x*99999 + s, c] * W[f, r, s, c]", "-D", "y=99999,x=99999,r=1,s=1,c=16,f=8"], 1, "more than 2^52 elements"),
            (["tune", "", "-D", "m=2"], 1, "the name of a tensor"),
            (["tune", PRODUCT, "-D", "m=8,n=8,k=64", "--out=f64"], 1, "E-TUNE-TYPE"),
            (["tune", "C[m, M] = sum(k) A[m, k] * B[M, k]", "-D", "m=2,M=2,k=64"], 1, "differ in case alone")]:
        ran = visa_tools.run(["visac", *arguments])
        check(ran.status == status and text in ran.text(), f"{arguments[:3]}: status {ran.status}: {ran.text()[:400]}")


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    if visa_tools.SLOWER > 1:  # what is computed is compared in the other build, on the same answers
        names()
        parts()
        command_line()
    elif len(sys.argv) < 3:
        goals()
        for a_turned in (False, True):
            for b_turned in (False, True):
                numbers(a_turned, b_turned)
        epilogues()
        convolutions()
        weights_of_windows()
        one_window()
        arranged()
        choices()
        padded()
        bounds()
        results_that_wait()
        places_that_are_passed()
        rounded()
        meanings()
        turned()
        turned_ahead()
        vectors()
        names()
        same_twice()
        parts()
        in_files()
        outputs()
        command_line()
    random_questions(seed, int(sys.argv[2]) if len(sys.argv) > 2 else visa_tools.few(36) if visa_tools.SLOWER > 1 else visa_tools.few(12))
    return verdict("tune")


if __name__ == "__main__":
    sys.exit(main())
