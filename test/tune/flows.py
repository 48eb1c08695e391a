#!/usr/bin/env python3
"""visac tune, questions without a contraction: elementwise maps, reductions, softmax, norms. Each answer passes its check; numbers of some against Python.
Usage: flows.py [SEED [QUESTIONS]]: random questions of another seed, that many, and nothing else."""
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

# Forms over an outer axis r, another one b, and the innermost one c; what is not there is not reduced.
FORMS = ["Y[r, c] = relu(X[r, c])", "Y[r, c] = X[r, c] + Z[r, c]", "Y[r, c] = max(X[r, c] + bias[c], 0)", "Y[r, c] = silu(X[r, c]) * Z[r, c]",
         "Y[r, c] = gelu(X[r, c])", "Y[r, c] = X[r, c] * s[r] - 3", "y[r] = sum(c) X[r, c]", "y[r] = max(c) X[r, c]", "y[r] = min(c) X[r, c] * 2",
         "y[c] = sum(r) X[r, c]", "y[c] = max(r) abs2[r, c] / 4", "t[] = sum(r, c) X[r, c]", "y[b] = sum(r, c) X[b, r, c]", "y[b, c] = max(r) X[b, r, c]",
         "y[r, b] = mean(c) X[r, b, c]", "Y[r, c] = softmax(c) X[r, c]", "Y[r, c] = softmax(c) (X[r, c] * 0.125)", "Y[b, r, c] = softmax(c) X[b, r, c]",
         "Y[r, c] = softmax(r) X[r, c]", "Y[r, c] = exp(X[r, c] - max(c) X[r, c]) / sum(c) exp(X[r, c] - max(c) X[r, c])",
         "Y[r, c] = X[r, c] / sqrt(mean(c) X[r, c] * X[r, c] + 0.001) * g[c]",
         "Y[r, c] = (X[r, c] - mean(c) X[r, c]) / sqrt(mean(c) square(X[r, c] - mean(c) X[r, c]) + 0.001) * g[c] + b1[c]",
         "y[r] = sqrt(sum(c) X[r, c] * X[r, c])", "y[r] = sum(c) (X[r, c] * w[c] * 2)", "Y[b, c] = X[b, c] / max(b, c) abs1[b, c]",
         "y[n] = tanh(x[n]) * 0.5 + 0.5", "y[n] = x[n] * x[n] + z[n]: f32", "Y[b, r, c] = X[b, r, c] + bias[r, c]", "Y[b, r, c] = X[b, r, c] * s[b, r]", "y[r] = sum(c) exp(X[r, c] * 0.0001) + s[r]"]
# With a contraction over k, or two of them.
PRODUCTS = ["P[r, c] = softmax(c) (sum(k) A[r, k] * B[c, k])", "P[r, c] = softmax(c) ((sum(k) A[r, k] * B[c, k]) * 0.125)",
            "P[b, r, c] = softmax(c) (sum(k) A[b, r, k] * B[b, c, k])", "P[r, c] = softmax(c) (sum(k) B[c, k] * A[r, k])",
            "y[r] = max(c) (sum(k) A[r, k] * B[c, k])", "Y[r, c] = (sum(k) A[r, k] * B[c, k]) / sqrt(mean(c) square(sum(k) A[r, k] * B[c, k]) + 1) * g[c]",
            "P[r, c] = softmax(c) (sum(k) A[r, k] * B[k, c] + bias[c])", "O[r, n] = sum(c) (softmax(c) (sum(k) A[r, k] * B[c, k]) * V[c, n])",
            "O[r, n] = sum(c) (softmax(c) ((sum(k) A[r, k] * B[c, k]) * 0.125) * V[n, c])", "p[c] = softmax(c) (sum(k) a[k] * B[c, k])",
            "O[b, r, n] = sum(c) (softmax(c) ((sum(k) A[b, r, k] * B[b, c, k]) * 0.1) * V[b, c, n])", "C[r, c] = sum(k) A[r, k] * B[c, k] + sum(k) A[r, k] * D[c, k]",
            "C[r, c] = silu(sum(k) A[r, k] * B[c, k]) * (sum(k) A[r, k] * D[c, k])"]
OPERANDS = [("bf16", "f32"), ("bf16", "bf16"), ("i8", None), ("f8e4m3", "bf16"), ("i8", "i8")]
TYPES = [("bf16", "f32"), ("bf16", "bf16"), ("f32", "f32"), ("f32", "bf16"), ("i8", None), ("i8", "i8"), ("i32", "i32"), ("f8e4m3", "bf16"), ("i16", None)]
LEAST = [1, 2, 3, 5, 8, 16, 32, 64, 96]
MOST_ELEMENTS = 1 << 16  # of a random question, so that its check is short
MOST_PRODUCTS = 1 << 20


def random_question(rng):
    has_product = rng.random() < 0.4
    form = rng.choice(PRODUCTS if has_product else FORMS)
    names = sorted(set(re.findall(r"\b[bcknr]\b", " ".join(re.findall(r"\[([^\]]*)\]", form)))))
    while True:
        of = {name: rng.choice(LEAST) if rng.random() < 0.5 else rng.randint(1, 300) for name in names}
        if math.prod(of.values()) <= (MOST_PRODUCTS if has_product else MOST_ELEMENTS):
            return form, of, *rng.choice(OPERANDS if has_product else TYPES)


def random_questions(seed, count):
    """An answer that passes its check, or a refusal that says why."""
    rng = random.Random(seed)
    answered = 0
    for _ in range(count):
        form, of, dtype, out = random_question(rng)
        ran = tune(form, of, f"--dtype={dtype}", *([f"--out={out}"] if out else []), "--budget=0s", "--check")
        what = f"{form} {of} {dtype} {out} (seed {seed}): "
        check(not ran.crashed and ran.status in (0, 1), what + ran.text())
        check(ran.status != 0 or ("agree" in ran.text() and "proven" in ran.text()), what + ran.text())
        made = tune(form, of, f"--dtype={dtype}", *([f"--out={out}"] if out else []), "--budget=0s").text() if ran.status == 0 and "softmax" in form else ""
        cycles = re.search(r"^// (\d+) cycles, [0-9.]+ times the least that the timing model allows, (\d+)", made, re.M)
        check(not cycles or int(cycles[1]) >= int(cycles[2]), what + f"{cycles and cycles[0]}: a kernel below the bound")
        check(ran.status != 1 or re.search(r"error\[E-TUNE-\w+\]: ", ran.text()), what + ran.text())
        answered += ran.status == 0
        if ran.status and "-v" in sys.argv:
            print(what + " ".join(x for x in ran.text().splitlines() if "error" in x or "note" in x), flush=True)
    print(f"flows: {answered} of {count} random questions have an answer")


def computed(question, sizes, inputs, count, dtype="f32", budget="0s", options=()):
    """What the kernel for a question makes of inputs, name: (shape, values); nothing where there is none."""
    with tempfile.TemporaryDirectory() as work:
        path = lambda name: os.path.join(work, name)
        made = tune(question, sizes, f"--dtype={dtype}", f"--budget={budget}", *options, "--emit=bin", "-o", path("q.bin"))
        if made.status:
            check("E-TUNE-NONE" in made.text(), f"{question} {sizes}: {made.text()}")
            return None
        listed = visa_tools.run(["visa-run", path("q.bin"), "--list"]).text()
        out = re.findall(r"^out (\w+):", listed, re.M)[0]
        inputs = {x + "_port" if f"{x}_port:" in listed else x: given for x, given in inputs.items()}
        for name, (_, values) in inputs.items(): # axes that lie side by side are one of the kernel's
            shape = re.findall(r"=(\d+)", re.search(rf"^in {name}: .*", listed, re.M)[0])
            visa_tools.write_npy(path(name + ".npy"), map(int, shape), values)
        ran = visa_tools.run(["visa-run", path("q.bin"), "--convert", *sum((["--input", f"{x}={path(x + '.npy')}"] for x in inputs), []), "--output", f"{out}={path('out.npy')}"])
        check(ran.status == 0, ran.text())
        with open(path("out.npy"), "rb") as file:
            return struct.unpack(f"<{count}f", file.read()[-4 * count:])


class Formula:
    """A question, computed position by position: what visac tune has no part in."""

    def __init__(self, question, sizes, tensors):
        self.text, self.at, self.sizes, self.tensors = re.sub(r"\s+", "", question), 0, sizes, tensors
        self.out = self.axes_of_tensor()[1]
        self.take("=")
        self.of = self.expression()

    def take(self, word):
        found = self.text.startswith(word, self.at)
        self.at += len(word) * found
        return found

    def name(self):
        found = re.compile(r"\w+").match(self.text, self.at)
        self.at = found.end()
        return found[0]

    def axes_of_tensor(self):
        name, end = self.name(), self.text.index("]", self.at)
        axes = [x for x in self.text[self.at + 1:end].split(",") if x]
        self.at = end + 1
        if self.take(":"):
            self.name()
        return name.lower(), axes

    def expression(self):
        a = self.term()
        while self.text[self.at:self.at + 1] in ("+", "-"):
            plus, x, self.at = self.text[self.at] == "+", a, self.at + 1
            a = (lambda x, y, plus: lambda at: x(at) + (y(at) if plus else -y(at)))(x, self.term(), plus)
        return a

    def term(self):
        negative = self.take("-")
        a = self.factor()
        while self.text[self.at:self.at + 1] in ("*", "/"):
            times, self.at = self.text[self.at] == "*", self.at + 1
            a = (lambda x, y, times: lambda at: x(at) * y(at) if times else x(at) / y(at))(a, self.factor(), times)
        return (lambda at: -a(at)) if negative else a

    def tensor(self):
        name, axes = self.axes_of_tensor()
        return lambda at: self.tensors[name][tuple(at[x] for x in axes)]

    def factor(self):
        if self.take("("):
            a = self.expression()
            self.take(")")
            return a
        if number := re.compile(r"[0-9.]+").match(self.text, self.at):
            self.at = number.end()
            return lambda at: float(number[0])
        if over := re.compile(r"(sum|max|min|mean|softmax)\(([a-z](?:,[a-z])*)\)").match(self.text, self.at):
            self.at = over.end()
            return self.fold(over[1], over[2].split(","))
        if call := re.compile(r"(\w+)\(").match(self.text, self.at):
            self.at = call.end()
            arguments = [self.expression()]
            while self.take(","):
                arguments.append(self.expression())
            self.take(")")
            return lambda at: FUNCTIONS[call[1]](*(x(at) for x in arguments))
        return self.tensor()

    def fold(self, kind, axes):
        a = self.factor()
        if re.compile(r"\*\w+\[").match(self.text, self.at) and re.search(r"\w\[[^\]]*\](:\w+)?$", self.text[:self.at]) and self.at and not self.text[self.at - 1] == ")":
            self.at += 1
            a = (lambda x, y: lambda at: x(at) * y(at))(a, self.tensor())
        known = {}

        def values(at):
            key = tuple(sorted((x, y) for x, y in at.items() if x not in axes))
            if key not in known:
                known[key] = [a({**at, **dict(zip(axes, place))}) for place in itertools.product(*(range(self.sizes[x]) for x in axes))]
            return known[key]

        if kind == "softmax":
            return lambda at: math.exp(a(at) - max(values(at))) / sum(math.exp(x - max(values(at))) for x in values(at))
        return lambda at: {"sum": sum, "max": max, "min": min, "mean": lambda x: sum(x) / len(x)}[kind](values(at))

    def results(self):
        return [self.of(dict(zip(self.out, place))) for place in itertools.product(*(range(self.sizes[x]) for x in self.out))]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


FUNCTIONS = {"relu": lambda x: max(x, 0), "max": max, "exp": math.exp, "sqrt": math.sqrt, "tanh": math.tanh, "silu": lambda x: x * sigmoid(x),
             "gelu": lambda x: x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)), "square": lambda x: x * x}
MOST_TERMS = 1 << 13  # of a question that Python computes


def formulas(rng, count):
    """Random questions, the kernel's numbers against the formula: --check compares a kernel with itself, and not with its question."""
    for _ in range(count):
        has_product = rng.random() < 0.4
        question = rng.choice(PRODUCTS if has_product else FORMS)
        names = sorted(set(re.findall(r"\b[bcknr]\b", " ".join(re.findall(r"\[([^\]]*)\]", question)))))
        of = {}
        while not of or math.prod(of.values()) > MOST_TERMS:
            of = {name: rng.choice([8, 16, 32, 64]) if rng.random() < 0.5 else rng.randint(1, 100) for name in names}
        tensors, inputs = {}, {}
        for name, axes in re.findall(r"(\w+)\[([^\]]*)\]", question.split("=")[1]):
            shape = tuple(of[x] for x in axes.replace(" ", "").split(",") if x)
            places = list(itertools.product(*(range(x) for x in shape)))
            if name.lower() not in tensors:
                given = [rng.choice([-1.0, 0.0, 1.0]) if has_product else rng.choice([-1, 1]) * rng.uniform(0.25, 1) for _ in places]
                tensors[name.lower()], inputs[name.lower()] = dict(zip(places, given)), (shape if len(shape) != 1 else f"({shape[0]},)", given)
        typed = re.sub(r"\](: f32)?", "]: f32", question.split("=")[1])
        if "B[k, c]" in question or "V[c, n]" in question or "V[b, c, n]" in question: # what is turned is not cast
            continue
        expected = Formula(question, of, tensors).results()
        found = computed(question.split("=")[0] + "=" + typed, of, inputs, len(expected), "bf16" if has_product else "f32")
        if found:
            worst = max(abs(x - y) / max(1, abs(y)) for x, y in zip(found, expected))
            check(worst < (2e-2 if "O[" in question else 1e-3), f"{question} {of}: {worst} from what the formula says")


def close(found, expected, what):
    worst = max(abs(x - y) for x, y in zip(found, expected))
    check(len(found) == len(expected) and worst < 1e-4, f"{what}: {worst} from what Python computes")


# Keys that slices hand on, in parts of all lanes, and of some of them; scores that are multiplied again, and not kept.
HANDED = [({"h": 2, "q": 64, "s": 32, "d": 16}, "0s", 1), ({"h": 8, "q": 16, "s": 64, "d": 16}, "0s", 1), ({"h": 1, "q": 512, "s": 64, "d": 16}, "1s", 3)]


def scores():
    question, rng = "P[h, q, s] = softmax(s) (sum(d) Q[h, q, d]: f32 * K[h, s, d]: f32)", random.Random(7)
    for of, budget, products in HANDED:
        made = tune(question, of, f"--budget={budget}").text()
        check("hands them on" in made and made.count("contract_outer") == products, f"{of}: nothing is handed on, or multiplied again: this question no longer tests it")
        h, d = of["h"], of["d"]
        rows = {x: [[rng.choice([-1.0, 0.0, 1.0]) for _ in range(d)] for _ in range(h * of[x])] for x in "qs"}
        powers = [[math.exp(sum(map(float.__mul__, q, k))) for k in rows["s"][i // of["q"] * of["s"]:][:of["s"]]] for i, q in enumerate(rows["q"])]
        found = computed(question, of, {"q": ((h, of["q"], d), sum(rows["q"], [])), "k": ((h, of["s"], d), sum(rows["s"], []))}, h * of["q"] * of["s"], "bf16", budget)
        close(found, [x / sum(row) for row in powers for x in row], f"softmax of scores {of}")


# Powers that meet the values before they are divided: slices that share the keys keep a part of the queries each, or their first one has all.
# Queries that are fewer than these slices, of which each brings a packet. Keys that are no whole flits: the largest is of packets of two. Values
# that stream as they lie, past powers of all queries, a part of them, and fewer than 8, in Rows of the TRF; slices that have half a flit of the keys.
# Keys that go around by both contexts.
ATTENTIONS = [({"h": 1, "q": 512, "s": 128, "d": 32, "e": 8}, r"(?s)memset.*inter_slice_reduce::<m!\[[^\]]*Q / \d+ % \d\], m!\[Q % \d+\]>"),
              ({"h": 2, "q": 100, "s": 128, "d": 16, "e": 8}, r"(?s)memset.*inter_slice_reduce::<m!\[[^\]]*1 # 4\], m!\[Q % 25\]>"),
              ({"h": 6, "q": 4, "s": 256, "d": 64, "e": 16}, r"takes them around, in the sub context"),
              ({"h": 2, "q": 4, "s": 330, "d": 64, "e": 8}, r"(?s)The largest over S, in each slice and then.*?m!\[S # \d+ % 2 # 8\]>"),
              ({"h": 1, "q": 512, "s": 64, "d": 32, "e": 32}, r"m!\[Q / 8 % 2, Q % 8, E / 8\], m!\[E % 8\]>\(LaneMode::Sequential\)"),
              ({"h": 2, "q": 6, "s": 256, "d": 32, "e": 64}, r"(?s)a half by the sub context and a half by main.*m!\[Q # 8 % 2\], m!.*LaneMode::Sequential"),
              ({"h": 2, "q": 3, "s": 72, "d": 64, "e": 64}, r"(?s)m!\[E / 32, S # 128 % 32\], m!\[E % 32\].*LaneMode::Sequential"),
              ({"h": 1, "q": 4, "s": 1024, "d": 64, "e": 64}, r"S: 128 slices x 8 in a slice")]


def attentions():
    rng = random.Random(8)
    for number, (of, how) in enumerate(ATTENTIONS):
        lies = number >= len(ATTENTIONS) - 4
        types = ["", "h, s, e"] if lies else [": f32", "h, e, s"]
        question = "O[h, q, e] = sum(s) (softmax(s) (sum(d) Q[h, q, d]X * K[h, s, d]X) * V[Y]X)".replace("X", types[0]).replace("Y", types[1])
        made = tune(question, of, "--budget=0s").text()
        check(re.search(how, made), f"{of}: nothing like {how}: this question no longer tests it")
        h, q, s, d, e = (of[x] for x in "hqsde")
        rows = [[rng.choice([-0.5, 0.0, 0.5]) for _ in range(d)] for _ in range(h * (q + s))]
        values = [[rng.choice([-1.0, 0.0, 0.5, 2.0]) for _ in range(s)] for _ in range(h * e)]
        expected = []
        for i, row in enumerate(rows[:h * q]):
            powers = [math.exp(sum(map(float.__mul__, row, k))) for k in rows[h * q + i // q * s:][:s]]
            expected += [sum(map(float.__mul__, powers, v)) / sum(powers) for v in values[i // q * e:][:e]]
        given = ((h, s, e), [values[a * e + c][b] for a in range(h) for b in range(s) for c in range(e)]) if lies else ((h, e, s), sum(values, []))
        found = computed(question, of, {"q": ((h, q, d), sum(rows[:h * q], [])), "k": ((h, s, d), sum(rows[h * q:], [])), "v": given},
                         h * q * e, "bf16")
        worst = max(abs(x - y) for x, y in zip(found, expected))
        check(worst < 5e-3, f"attention {of}: {worst} from what Python computes")


def shared_folds():
    """Whole flits of a row are folded over slices first; keys come in two copies, of which each half goes around by one context."""
    rng = random.Random(9)
    r, c, options = 64, 512, ["--clusters=1", "--slices=8"]
    question = "Y[r, c] = X[r, c] - max(c) X[r, c]"
    made = tune(question, {"r": r, "c": c}, "--dtype=f32", "--budget=0s", *options).text()
    check("flit by flit" in made, f"{question}: no fold of whole flits: this question no longer tests it: {made[:300]}")
    rows = [[rng.randint(-1000, 1000) for _ in range(c)] for _ in range(r)]
    found = computed(question, {"r": r, "c": c}, {"x": ((r, c), sum(rows, []))}, r * c, options=options)
    check(list(found) == [v - max(row) for row in rows for v in row], f"{question}: not what Python computes")
    question = "P[h, q, s] = softmax(s) (sum(d) Q[h, q, d] * K[h, s, d])"
    made = re.sub(r"\s+", "", tune(question, {"h": 8, "q": 512, "s": 512, "d": 128}, "--budget=0s").text())
    copies = re.findall(r"k\.view\(\)\.tile::<m!\[(\S+?)\],1,_>\((\d)\)\.to_dm_view\(&mutdevice\.tdma,(\w+)\.view_mut\(\)\.tile::<m!\[\1\],1,_>\(\2\)", made)
    check([x[1] for x in copies] == ["0", "1"], f"{question}: its keys do not come in two copies: this question no longer tests it")
    around = re.findall(r"device\.(sub|main)\.begin\(halves_\d+\.view\(\)\.tile::<m!\[\S+?\],1,_>\((\d)\)\.tile::<m!\[\S+?\],1,_>\((\d)\)\)"
                        r".*?view_mut\(\)\.tile::<m!\[\S+?\],1,_>\((\d)\)", made)
    check(around == [("sub", "0", "0", "0"), ("main", "0", "1", "1"), ("sub", "1", "0", "2"), ("main", "1", "1", "3")], f"{question}: {around}")


# What the main context does for a softmax, in cycles of 512 slices: for the largest, of sums alone, for powers, for shares or products with them; and of copies
# in front and after, how many.
SOFTMAXES = [("Y[r, c] = softmax(c) X[r, c]", {"r": 4096, "c": 1024}, lambda r, c: 2 * (r * c / 2048), 2),
             ("P[r, c] = softmax(c) (sum(k) A[r, k] * B[c, k])", {"r": 2048, "c": 1024, "k": 64},
              lambda r, c, k: r * c * k / 131072 + 2 * (r * c / 2048), 3),
             ("P[r, c] = softmax(c) (sum(k) A[r, k] * B[c, k])", {"r": 2048, "c": 1024, "k": 16}, lambda r, c, k: r * c / 4096 + 2 * (r * c / 2048), 3),
             ("O[h, q, e] = sum(s) (softmax(s) (sum(d) Q[h, q, d] * K[h, s, d]) * V[h, s, e])", {"h": 4, "q": 1024, "s": 512, "d": 64, "e": 32},
              lambda h, q, s, d, e: h * q * s * (d + e) / 131072 + h * q * s / 2048, 3)]


def bounds():
    """Passes of a softmax are in the bound, as Python counts them; nothing takes less, and the order of the operands is nothing to it."""
    for question, of, cycles, copies in SOFTMAXES:
        made = tune(question, of, "--budget=0s", "--out=bf16").text()
        head = re.search(r"// (\d+) cycles, [0-9.]+ times the least that the timing model allows, (\d+) \(copies \d+, passes (\d+)", made)
        check(head, f"{question} {of}: no bound: {made[:300]}")
        if head:
            passes = int(cycles(**of)) + 500 * copies
            check(int(head[3]) == passes, f"{question} {of}: passes {head[3]} in the bound, Python counts {passes}")
            check(int(head[3]) <= int(head[2]) <= int(head[1]), f"{question} {of}: {head[1]} cycles, below the bound {head[2]}")


def numbers():
    """The formulas in Python."""
    rng = random.Random(3)
    r, c = 5, 37
    rows = [[rng.uniform(-4, 4) for _ in range(c)] for _ in range(r)]
    g = [rng.uniform(-1, 1) for _ in range(c)]
    x = {"x": ((r, c), sum(rows, []))}
    powers = [[math.exp(v) for v in row] for row in rows]
    close(computed("Y[r, c] = softmax(c) X[r, c]", {"r": r, "c": c}, x, r * c), [v / sum(row) for row in powers for v in row], "softmax")
    columns = [sum(row[k] for row in powers) for k in range(c)]
    close(computed("Y[r, c] = softmax(r) X[r, c]", {"r": r, "c": c}, x, r * c), [row[k] / columns[k] for row in powers for k in range(c)], "softmax of columns")
    root = [math.sqrt(sum(v * v for v in row) / c + 0.5) for row in rows]
    close(computed("Y[r, c] = X[r, c] / sqrt(mean(c) X[r, c] * X[r, c] + 0.5) * w[c]", {"r": r, "c": c}, {**x, "w": ((c,), g)}, r * c),
          [v / root[i] * g[k] for i, row in enumerate(rows) for k, v in enumerate(row)], "norm")
    close(computed("y[r] = max(c) X[r, c] - min(c) X[r, c]", {"r": r, "c": c}, x, r), [max(row) - min(row) for row in rows], "range")
    scores()
    attentions()
    shared_folds()
    bounds()
    close(computed("t[] = sum(r, c) X[r, c]", {"r": r, "c": c}, x, 1), [sum(map(sum, rows))], "sum of all")


# Question, sizes and options, status, words of the answer.
ANSWERS = [("Y[r, c] = X[r, c] / sqrt(mean(c) X[r, c] * X[r, c] + 0.001) * g[c]", "r=2048,c=256", [], 0, ".vector_fp_div(&"),
           ("O[h, e] = sum(s) (softmax(s) (sum(d) Q[h, d] * K[h, s, d]) * V[h, s, e])", "h=2,s=64,d=32,e=32", ["--check"], 0, "all 64 values proven"), # an operand
           ("O[h, q, e] = sum(s) (softmax(s) (sum(d) Q[h, q, d] * K[h, s, d]) * V[h, s, e])", "h=32,q=1,s=2048,d=128,e=128", [], 0, ".begin(q.view().tile::<m![H / "), # ahead of the loop
           ("O[h, q, e] = sum(s) (softmax(s) (sum(d) Q[h, q, d] * K[h, s, d]) * V[h, s, e])", "h=2,q=2,s=331,d=64,e=16", ["--check"], 0, "all 64 values proven"), # one by one
           ("O[q, h, e] = sum(s) (softmax(s) (sum(d) Q[q, h, d] * K[s, h, d]) * V[s, h, e])", "h=6,q=3,s=64,d=32,e=16", ["--check"], 0, "all 288 values proven"), # batches inside
           ("O[h, q, e] = sum(s) (softmax(s) (sum(d) Q[h, q, d] * K[h, s, d]) * V[h, s, e])", "h=6,q=16,s=256,d=64,e=64", [], 0, "type Cluster = m![H / 3];\ntype Slice = m![H % 3 # 4, "), # evenly
           ("O[h, q, e] = sum(s) (softmax(s) (sum(d) Q[h, q, d] * K[h, s, d] + M[q, s]) * V[h, s, e])", "h=16,q=64,s=64,d=32,e=16", ["--check"], 0, "all 16384 values proven"),
           ("O[h, q, e] = sum(s) (softmax(s) (sum(d) Q[h, q, d] * K[h, s, d] + M[q, s]) * V[h, s, e])", "h=16,q=64,s=64,d=32,e=16", [], 0, ".switch::<Slice, m![Q / 16 % 2, Q % 16]>("), # a mask, handed on
           ("y[r] = sum(c) X[r, c]", "r=4,c=4096", [], 0, "in each slice and then over"), ("y[r] = max(c) X[r, c]", "r=2048,c=256", [], 0, ".transpose::<"),
           ("Y[n] = relu(X[n])", "n=16777216", [], 0, "iterations"),
           ("Y[n] = gelu(X[n])", "n=1000000", [], 0, "// The DMA Engine works"), # gates wait in the VRF
           ("Y[r, c] = softmax(c) X[r, c]", "r=300,c=37", ["--out=bf16", "--check"], 0, "all 11100 values proven"), # rows of 74 bytes, one after the other
           ("Y[h, r, c] = softmax(c) (X[h, r, c] + M[r, c])", "h=4,r=52,c=37", ["--out=bf16", "--check"], 0, "all 7696 values proven"),
           ("Y[r] = softmax(c) X[r, c]", "r=8,c=8", [], 1, "axis `c` is not in the result"), ("Y[r, c] = sum(c) X[r, c]", "r=8,c=8", [], 1, "is reduced and stands in the result"),
           ("Y[r] = sum(c) X[r]", "r=8,c=8", [], 1, "stands in no operand"), ("Y[c, r] = relu(X[r, c])", "r=8,c=8", [], 1, "E-TUNE-LAYOUT"),
           ("Y[r, c] = X[r, c] * exp(a[r] + b[c])", "r=8,c=8", [], 1, "each of these two has axes"), ("Y[r, c] = X[r, c]", "r=8,c=8", ["--dtype=i64"], 1, "E-TUNE-TYPE"),
           ("Y[r, c] = X[r, c]", "r=8,c=8", ["--out=i4"], 1, "E-TUNE-TYPE"), ("Y[r, c] = X[r, c]: i1", "r=8,c=8", [], 1, "E-TUNE-TYPE"),
           ("Y[r, c] = X[r, c] + Y[r, c]", "r=8,c=8", [], 1, "two tensors are called `Y`"),
           # names that differ in case alone are two, and one tensor may be read in two ways
           ("C[m, n] = sum(k) A[m, k] * B[n, k] + b[n]", "m=8,n=8,k=64", ["--check"], 0, "all 64 values proven"),
           ("C[m, n] = sum(k) A[m, k] * B[n, k] + b[n]", "m=8,n=8,k=64", [], 0, "b_2: &HbmTensor<f32, Chip, m![N]>"),
           ("G[i, j] = sum(n) X[n, i] * X[n, j]", "i=64,j=32,n=64", [], 0, "x_2: &HbmTensor<bf16, Chip, m![N, J]>"),
           # axes of one position, wherever they stand; nothing that is summed over
           ("Y[r, c] = X[r, c] * s[]", "r=64,c=64", ["--check"], 0, "all 4096 values proven"), ("Y[r, c] = X[r, c] * s[o]", "r=64,c=64,o=1", ["--check"], 0, "all 4096 values proven"),
           ("Y[r, o] = mean(c) X[r, c]", "r=64,c=64,o=1", ["--check"], 0, "all 64 values proven"), ("Y[b, r] = X[b, o, r] * Z[b, r]", "b=2,r=64,o=1", ["--check"], 0, "all 128 values proven"),
           ("C[m, n] = sum() a[m] * e[n]", "m=64,n=64", ["--check"], 0, "all 4096 values proven"),
           # no contraction as its operands lie, but a flow
           ("Y[t, d] = sum(e) G[t, e] * X[e, t, d]", "t=64,e=8,d=64", ["--check"], 0, "all 4096 values proven"),
           ("Q[b, h, s, d] = sum(k) X[b, s, k] * W[h, d, k]", "b=2,h=4,s=16,d=16,k=64", ["--check"], 0, "all 2048 values proven"),
           ("Y[b, s, o] = sum(h, d) A[b, h, s, d] * W[o, h, d]", "b=2,h=4,s=16,d=16,o=64", [], 1, "stands apart from its kind"),
           ("D[m, n] = max(a[m], e[n]) + (sum(k) A[m, k] * B[n, k])", "m=8,n=8,k=64", ["--dtype=i8"], 1, "begin with the sum"),
           ("Y[r, c] = X[r + c, c]", "r=8,c=8", [], 1, "axis `c` stands here twice"),
           ("Y[r] = sum(c) X[r + c]", "r=8,c=8", [], 1, "E-TUNE-LAYOUT"), ("O[r, n] = sum(c) (softmax(c) (sum(k) A[k, r] * B[c, k]) * V[c, n])", "r=8,n=8,k=64,c=64", [], 1, "not turned here"),
           ("P[r, c] = softmax(c) (sum(k) A[r, k] * B[c, k])", "r=8,c=64,k=64", ["--dtype=i16"], 1, "does not multiply here"), ("Y[r] = 3", "r=8", [], 1, "stands in no operand"),
           ("Y[r, c] = max(c, 2) X[r, c]", "r=8,c=8", [], 1, "E-TUNE-QUESTION"), ("Y[r] = X[r]" + " + 1 * X[r]" * 40, "r=8", [], 1, "more than 24 operations")]


# Sizes that slices do not divide: a word of the answer, and at most so many cycles. Rows that are no whole 8 bytes are packed before they are
# stored: row by row these take 5 to 6 times as long. Tiles are whole blocks of HBM: without it 9,163 and 3,821. Pieces of whole blocks begin inside of
# them where rows are none; each packet of a run that is none ends inside of one; and iterations end where copies that bring rows together do: 136,989,
# 39,594 and 2,847,546 where estimates did not know.
RAGGED = [("Y[r, c] = softmax(c) X[r, c]", "r=1024,c=197", "let packed", 4200), ("Y[b, h, q, s] = softmax(s) (X[b, h, q, s] * 0.125)", "b=1,h=12,q=197,s=197", "let packed", 10700),
          ("Y[r, c] = X[r, c] + b[c]", "r=2000,c=500", "a copy brings", 14000), ("Y[r, c] = softmax(c) X[r, c]", "r=1500,c=1500", "a copy brings", 28000),
          ("Y[h, q, k] = softmax(k) X[h, q, k]", "h=8,q=1500,k=1500", "a copy brings 32 of", 165000),
          ("Y[n] = relu(X[n])", "n=1000000", "N # 1048576 % 2048", 6000), ("Y[r, c] = X[r, c] + Z[r, c]", "r=197,c=768", "in a slice, padded", 3400)]


def answers():
    for question, sizes, options, status, words in ANSWERS:
        ran = visa_tools.run(["visac", "tune", question, "-D", sizes, "--budget=0s", *options])
        check(ran.status == status and words in ran.text(), f"{question}: status {ran.status}, no `{words}`: {ran.text()[:600]}")
    norm = tune(ANSWERS[0][0], {"r": 2048, "c": 256}, "--budget=0s").text()
    check(norm.count(".begin(x.view())") == 2, "a norm reads its rows more than twice: " + norm)
    for question, sizes, word, most in RAGGED:
        answer = visa_tools.run(["visac", "tune", question, "-D", sizes, "--out=bf16", "--budget=0s"]).text()
        check(word in answer and int(re.search(r"// (\d+) cycles", answer)[1]) <= most, f"{question} of {sizes}: {answer[:300]}")


# What a sum takes of the factors after a value: those over an axis that nothing else ends. Each with brackets that say so.
BOUND = [("O[q, e] = sum(s) softmax(s) (sum(d) Q[q, d] * K[s, d] / sqrt(64)) * V[s, e]", "O[q, e] = sum(s) (softmax(s) ((sum(d) Q[q, d] * K[s, d]) * 0.125) * V[s, e])"),
         ("Y[r] = sum(c) exp(X[r, c]) * g[c]", "Y[r] = sum(c) (exp(X[r, c]) * g[c])"), ("Y[r] = sum(c) exp(X[r, c]) * g[r]", "Y[r] = (sum(c) (exp(X[r, c]))) * g[r]"),
         ("Y[r, c] = X[r, c] + mean(c) square(X[r, c]) * g[c]", "Y[r, c] = X[r, c] + (mean(c) (square(X[r, c]))) * g[c]"),
         ("Y[m, n] = sum(h) relu(sum(k) X[m, k] * G[h, k]) * D[n, h]", "Y[m, n] = sum(h) (relu(sum(k) X[m, k] * G[h, k]) * D[n, h])"),
         ("Y[m, n] = sum(k) A[m, k] * B[n, k] * s[n]", "Y[m, n] = (sum(k) A[m, k] * B[n, k]) * s[n]")]


def bindings():
    """The kernel is the same, or the refusal."""
    sizes = dict(q=8, s=64, d=64, e=32, r=16, c=64, m=8, n=16, k=32, h=64)
    for pair in BOUND:
        made = [tune(question, {x: sizes[x] for x in sorted(set(re.findall(r"\b[a-z]\b", re.sub(r"\w+\[", "[", question))))}, "--budget=0s", "--no-cache") for question in pair]
        told = [[line for line in ran.text().splitlines() if "=" not in line or not line.startswith("//")] for ran in made]
        check(made[0].status == made[1].status, f"{pair}: {made[0].text()[:300]} {made[1].text()[:300]}")
        check(made[0].status != 0 or told[0] == told[1], f"{pair}: other kernels")
        check(made[0].status == 0 or "mean" in pair[0], f"{pair}: " + made[0].text()[:300])


# Sums that slices share: cycles at most, and what a kernel has. Columns that are 43 blocks of HBM: slices write parts of blocks in each iteration, or all
# that they have at the end, which is brought together there; their bias comes in one copy. Operands of what follows a fold are in the first slice of
# those that share it alone.
SHARED = [("Y[i, s, o] = relu(sum(e) W[o, e] * X[i, s, e] + bias[o])", dict(i=2, s=16, o=11008, e=4096), 87500, ["Results of all iterations", "bias.view().tile::<"]),
          ("y[c] = sum(r) X[r, c] * w[r] + b[c]", dict(r=688, c=512), 2700, ["let b: DmTensor<bf16, Chip, Cluster, m![C / 128 % 2, 1 # 128], m![C % 128]>"]),
          ("O[h, q, e] = (sum(s) softmax(s) (sum(d) Q[h, q, d] * K[h, s, d]) * V[h, s, e]) * g[e]", dict(h=3, q=4, s=300, d=64, e=64), 3300, [])]


def shared():
    for question, sizes, most, texts in SHARED:
        made = tune(question, sizes, "--dtype=bf16")
        cycles = int(re.search(r"^// (\d+) cycles", made.text(), re.M)[1]) if made.status == 0 else 0
        check(0 < cycles <= most and all(text in made.text() for text in texts), f"{question}: {cycles} cycles, {most} expected, {texts}: {made.text()[:3000]}")
        ran = visa_tools.run(["visac", "-", "--check=numbers"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text(), f"{question}: " + ran.text())


def main():
    arguments = [x for x in sys.argv[1:] if x != "-v"]
    seed = int(arguments[0]) if arguments else 25
    if len(arguments) < 2 and visa_tools.SLOWER == 1:
        numbers()
        formulas(random.Random(seed), visa_tools.few(20))
        answers()
        bindings()
        shared()
    random_questions(seed, int(arguments[1]) if len(arguments) > 1 else visa_tools.few(24))
    return verdict("flows")


if __name__ == "__main__":
    sys.exit(main())
