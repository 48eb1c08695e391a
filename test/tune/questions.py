#!/usr/bin/env python3
"""Random questions to visac tune: an answer that passes its check, or a refusal with its reason, within its budget; and the same kernel however the
question is spelt. Usage: questions.py [QUESTIONS [SEED]]; the long form asks 2,000."""
import math
import os
import random
import re
import resource
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

ROLES = "batch", "row", "column", "sum"
TYPES = ["i4", "i8", "f8e4m3", "f8e5m2", "bf16"]
RESULTS = [None, None, "i32", "f32", "bf16", "i8"]
# What is done to sums, each in ways to write it that are the same.
EPILOGUES = [["relu({s})", "max({s}, 0)", "max(0, ({s}))"], ["{s} + {bias}[{c}]", "{bias}[{c}] + {s}", "({s} + ({bias}[{c}]))"],
             ["relu({s} + {bias}[{c}]: bf16)", "max(0, {bias}[{c}]: bf16 + {s})"], ["silu({s} * 0.25)", "silu(0.25 * {s})", "silu(({s}) / 4)"],
             ["gelu({s} * 0.01) * {bias}[{c}]", "{bias}[{c}] * gelu(0.01 * {s})"], ["min(max({s}, -6), 6)", "min(6, max(-6, {s}))", "clip({s}, -6, 6)"],
             ["1 / (1 + exp(-({s}) * 0.01))", "1 / (exp(-(0.01 * {s})) + 1)"], ["tanh(relu({s}) * 0.5) - 2 * 0.25", "tanh(0.5 * max(0, {s})) - 0.5"],
             ["3 - {s} - {bias}[{o}]", "(3 - {s}) - ({bias}[{o}])"], ["sqrt(max({s}, 0)) / 3", "sqrt(relu({s})) / 3"],
             ["sigmoid({s}) + {bias}[{o}]: bf16", "{bias}[{o}]: bf16 + sigmoid(({s}))"],
             ["relu(({s} + {bias}[{c}]) * 0.001)", "max(0, 0.001 * ({bias}[{c}] + {s}))"], ["0.5 * {s} + 0.25 * {bias}[{o}]", "{bias}[{o}] / 4 + {s} / 2"],
             ["clip({s} / 8, -3, 3)", "min(3, max(-3, 0.125 * {s}))"]]
AXES, TENSORS = "bhmpnqklcdefgijstuvwxyz", ["A", "B", "C", "x", "W", "out", "q_1", "Keys", "vm", "result", "T", "image"]
MOST_PRODUCTS = 1 << 23  # multiplications of a question, so that its check is short
LARGE = 1 << 36          # of one that is compiled only
SECOND = 1.0             # of processor time: the most that the median of the answers takes


class Question:
    """What is asked, apart from how it is spelt: sizes of the axes of each role, which operands lie turned, what is done to the sums, types."""

    def __init__(self, rng):
        self.axes = {"batch": [], "row": [], "column": [], "sum": []}
        self.large = rng.random() < 0.1
        most = LARGE if self.large else MOST_PRODUCTS
        while True:
            for role in ROLES:
                count = {"batch": rng.choice([0, 0, 0, 1, 2]), "row": rng.choice([0, 1, 1, 1, 2]), "column": rng.choice([0, 1, 1, 1, 2]), "sum": rng.choice([1, 1, 1, 2, 3])}[role]
                self.axes[role] = [self.size(rng, role, count) for _ in range(count)]
            if self.products() <= most:
                break
        self.turned = [rng.random() < 0.25, rng.random() < 0.25]
        self.dtype, self.out = rng.choice(TYPES), rng.choice(RESULTS)
        self.epilogue = rng.choice(EPILOGUES) if rng.random() < 0.4 and self.axes["column"] else None
        self.window = None
        if rng.random() < 0.12:
            self.window = dict(zip("nyxfrsc", (rng.choice([None, 1, 2, 3]), rng.randint(1, 14), rng.randint(1, 14), rng.choice([8 * rng.randint(1, 8), rng.randint(1, 40)]), rng.randint(1, 4),
                                               rng.randint(1, 4), rng.choice([16, 32, 48, 64, 96, rng.randint(1, 40)]))))
            self.channels = rng.random() < 0.3  # with filters of their own
            self.steps = [rng.randint(1, 3) for _ in range(4)]
            self.epilogue = None
            self.large = False
        self.options = []  # what of the machine it is for
        if rng.random() < 0.2:
            self.options = [f"--{name}={n}" for name, n in (("chips", rng.choice([None, None, 2, 4])), ("clusters", rng.choice([None, 1, 2])), ("slices", rng.choice([None, 2, 16, 64, 128]))) if n]
        self.free = rng.choice([None] * 8 + ["result", "all"])  # tensors whose layout is the kernel's choice

    def size(self, rng, role, axes):
        most = {"batch": 12, "sum": 400}.get(role, 300) * (20 if self.large else 1)
        if axes > 1:
            most = 2 + int(most ** (1 / axes)) * 2
        return rng.choice([1, 2, 3, 8, 16, 32, 64, 128]) if rng.random() < 0.5 else rng.randint(1, most)

    def products(self):
        return math.prod(math.prod(sizes) for sizes in self.axes.values())


def spelling(q, rng, plain=False):
    """A way to ask it: (text, sizes as -D has them). `plain`: axes as they are, the operands in their order."""
    names = iter(AXES if plain else rng.sample(AXES, len(AXES)))
    tensors = iter(TENSORS if plain else rng.sample(TENSORS, len(TENSORS)))
    if q.window:
        return window_spelling(q, rng, plain, names, tensors)
    sizes, of = [], {}
    for role in ROLES:
        here = list(q.axes[role])
        if not plain:
            here = respelt(here, rng)
        of[role] = [(next(names), size) for size in here]
        sizes += of[role]
    called = {role: [name for name, _ in of[role]] for role in ROLES}
    kept = [called["row"], called["column"]]
    single = [name for name, size in sizes if size == 1]
    if not plain and rng.random() < 0.3:  # one that stands wherever it likes
        single.append(next(names))
        sizes.append((single[-1], 1))
    lie = (lambda axes: ", ".join(axes)) if plain else lambda axes: ", ".join(strewn(axes, single, rng))
    operands = [f"{next(tensors)}[{lie(called['batch'] + (called['sum'] + kept[i] if q.turned[i] else kept[i] + called['sum']))}]" for i in range(2)]
    summed = called["sum"] if plain else rng.sample(called["sum"], len(called["sum"]))
    if not plain and rng.random() < 0.5:
        operands.reverse()
    out = called["batch"] + called["row"] + called["column"]
    contraction = f"sum({', '.join(summed)}) {operands[0]} * {operands[1]}"
    result, bias = next(tensors), next(tensors)
    text = f"{result}[{lie(out)}] = "
    ways = q.epilogue or ["{s}"]
    of_sum = contraction if not q.epilogue else f"({contraction})"
    text += (ways[0] if plain else rng.choice(ways)).format(s=of_sum, bias=bias, c=lie(called["column"]), o=lie(out))
    if not plain:
        stand = {name for inside in re.findall(r"\[(.*?)\]", text) for name in inside.split(", ")}
        sizes = [(name, size) for name, size in sizes if name in stand]
        rng.shuffle(sizes)
        text = text.replace(", ", rng.choice([",", ", ", " ,  "]))
    return text, sizes


def strewn(axes, single, rng):
    """The axes of a tensor, those of one position anywhere, and some more of these."""
    axes = list(axes)
    for name in single:
        if name in axes:
            axes.remove(name)
            axes.insert(rng.randrange(len(axes) + 1), name)
        elif rng.random() < 0.15:
            axes.insert(rng.randrange(len(axes) + 1), name)
    return axes


def respelt(sizes, rng):
    """The same elements in other axes: axes side by side are one, one is two, and some have size 1."""
    for _ in range(rng.randint(1, 3)):
        way = rng.randrange(4)
        if way == 0 and len(sizes) > 1:
            at = rng.randrange(len(sizes) - 1)
            sizes = sizes[:at] + [sizes[at] * sizes[at + 1]] + sizes[at + 2:]
        if way == 1 and sizes and len(sizes) < 4:
            at = rng.randrange(len(sizes))
            factors = [d for d in range(2, sizes[at]) if sizes[at] % d == 0]
            if factors:
                d = rng.choice(factors)
                sizes = sizes[:at] + [d, sizes[at] // d] + sizes[at + 1:]
        if way == 2 and len(sizes) < 4:
            at = rng.randrange(len(sizes) + 1)
            sizes = sizes[:at] + [1] + sizes[at:]
    return sizes


def window_spelling(q, rng, plain, names, tensors):
    w = dict(q.window)
    if not plain and w["n"] in (None, 1):
        w["n"] = rng.choice([None, 1])
    called = {axis: next(names) for axis in "nyxfrsc"}
    image, filters, result = next(tensors), next(tensors), next(tensors)
    first = called["n"] + ", " if w["n"] else ""
    times = lambda axis, by: called[axis] + (f"*{by}" if by > 1 else "")
    image = (f"{image}[{first}{times('y', q.steps[0])} + {times('r', q.steps[1])}, {times('x', q.steps[2])} + {times('s', q.steps[3])}, {called['c']}]")
    window = f"{called['r']}, {called['s']}"
    axes = "nyxrsc" if q.channels else "nyxfrsc"
    filters = f"{filters}[{window}, {called['c']}]" if q.channels else f"{filters}[{called['f']}, {window}, {called['c']}]"
    summed, operands = [called[axis] for axis in ("rs" if q.channels else "rsc")], [image, filters]
    sizes = [(called[axis], w[axis]) for axis in axes if w[axis]]
    if not plain:
        for those in summed, operands, sizes:
            rng.shuffle(those)
    text = f"{result}[{first}{called['y']}, {called['x']}, {called['c' if q.channels else 'f']}] = sum({', '.join(summed)}) {operands[0]} * {operands[1]}"
    return text, sizes


def ask(question, sizes, q, budget):
    """The run, and the seconds of processor time that it took."""
    given = [word for name, size in sizes for word in ("-D", f"{name}={size}")]
    tensors = re.findall(r"(\w+)\s*\[", question)
    if q.free:
        given.append("--free=" + ",".join(tensors[:1] if q.free == "result" else dict.fromkeys(tensors)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = visa_tools.run(["visac", "tune", question, *given, f"--dtype={q.dtype}", *([f"--out={q.out}"] if q.out else []), *q.options, f"--budget={budget}s"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ran, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# What was found once: more results than any walk over them may follow; a sum that only eleven parts bring into the TRF; an axis whose divisors
# cannot be looked for one by one; results in i4 of several packets of columns, each with its padding; padded columns in halves, which a reshape
# gives another name.
FOUND = [("C[b, h, m] = sum(n) A[b, h, n] * B[m, n]", [("b", 41), ("h", 62), ("m", 11088), ("n", 64)], "i8", "i32", False),
         ("C[b, h] = sum(m, p, n) A[b, h, m, p, n] * B[m, p, n]", [("b", 32), ("h", 2), ("m", 32), ("p", 39), ("n", 33)], "bf16", None, True),
         ("C[m, n] = sum(k) A[m, k] * B[n, k]", [("m", 1000000000), ("n", 8), ("k", 64)], "i8", "i32", False),
         ("C[m, n] = sum(k) A[m, k] * B[n, k]", [("m", 8), ("n", 64), ("k", 8)], "i8", "i4", True),
         ("C[b, m, n] = sum(k) A[b, m, k] * B[b, n, k]", [("b", 3), ("m", 5), ("n", 72), ("k", 130)], "i4", "i4", True),
         ("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]", [("y", 5), ("x", 4), ("r", 2), ("s", 3), ("c", 24), ("f", 36)], "i8", "i4", True),
         ("C[b, h, m] = sum(p) A[b, p] * B[p, h, m]", [("b", 128), ("h", 21), ("m", 3), ("p", 1)], "f8e5m2", "bf16", True)]


class Found:
    def __init__(self, dtype, out):
        self.dtype, self.out, self.options, self.free = dtype, out, [], None


def ask_found():
    """Faults: each is answered within its budget of no time, or refused since no slice has room, and the answer holds."""
    failures = []
    for question, sizes, dtype, out, checks in FOUND:
        ran, seconds = ask(question, sizes, Found(dtype, out), 0)
        if (ran.status and "E-TUNE-NONE" not in ran.text()) or (ran.status and checks) or seconds > 3 * visa_tools.SLOWER:
            failures.append(f"{question} {sizes}: status {ran.status}, {seconds:.1f} s of processor time: {ran.text()[-600:]}")
        elif checks and "agree" not in (judged := visa_tools.run(["visac", "-", "-Werror", "--check"], stdin=ran.out)).text():
            failures.append(f"{question} {sizes}: its answer: {judged.text()[-600:]}")
    return failures


def told(ran):
    """What is the same for all spellings: the lines about cycles, and the shares without the names of axes, but not of an axis that one of them may lack;
    or the refusal's id."""
    if ran.status == 0:
        lines = [line.split(":")[-1].strip() for line in ran.out.decode().splitlines()[3:10] if line.startswith("//") and "Made by" not in line]
        return [line for line in lines if line != "1 in a slice"]
    return re.findall(r"error\[(E-[A-Z-]+)\]", ran.text())


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(40)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 2025
    failures, times, answered, ids, flips = ask_found(), [], 0, {}, 0
    begun = time.time()
    for n in range(seed, seed + count):
        rng = random.Random(n)
        q = Question(rng)
        budget = rng.choice([0, 1, 2])
        text, sizes = spelling(q, rng, plain=True)
        what = f"question {n}: visac tune '{text}' -D {','.join(f'{a}={s}' for a, s in sizes)} --dtype={q.dtype}{f' --out={q.out}' if q.out else ''} {' '.join(q.options)} free: {q.free} --budget={budget}s: "
        ran, seconds = ask(text, sizes, q, budget)
        times.append(seconds)
        if ran.crashed or ran.status not in (0, 1):
            failures.append(what + f"status {ran.status}: {ran.text()[-600:]}")
        elif ran.status:
            found = told(ran)
            ids[found[0] if found else "none"] = ids.get(found[0] if found else "none", 0) + 1
            if not found or not re.search(r"help: ", ran.text()):
                failures.append(what + "a refusal without its reason or a next step: " + ran.text()[-600:])
            if count > 100:
                print(what + ran.text().splitlines()[0], flush=True)
        else:
            answered += 1
            judged = visa_tools.run(["visac", "-", "-Werror", *([f"--emit=bin", "-o", os.devnull] if q.large else ["--check"])], stdin=ran.out)
            if judged.crashed or judged.status or (not q.large and "agree" not in judged.text() and "proven" not in judged.text()):
                failures.append(what + f"its answer, status {judged.status}: {judged.text()[-600:]}")
        if seconds > 3 * (budget + 1):
            failures.append(what + f"{seconds:.1f} s of processor time")
        other, other_sizes = spelling(q, rng)
        again, _ = ask(other, other_sizes, q, budget)
        if told(again) != told(ran):
            flips += 1
            failures.append(what + f"another answer to '{other}' -D {','.join(f'{a}={s}' for a, s in other_sizes)}: {told(ran)} and {told(again)}")
        if failures and count > 100:
            print(*failures, sep="\n", flush=True)
            times_failed = len(failures)
            kept = globals().setdefault("KEPT", [])
            kept += failures
            failures.clear()
    failures = globals().get("KEPT", []) + failures
    median = statistics.median(times)
    if median > SECOND and visa_tools.SLOWER == 1:
        failures.append(f"the median answer takes {median:.2f} s of processor time")
    for failure in failures if count <= 100 else []:
        print(failure)
    print(f"tune: {count} questions, {answered} answers, refusals {ids}, {flips} flips, {len(failures)} failures; {median:.2f} s in the middle, {max(times):.2f} s at most")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
