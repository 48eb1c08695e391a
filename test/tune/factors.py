#!/usr/bin/env python3
"""visac tune: products of several factors, and of two without a sum: numbers against loops in Python, the same answer in every order of the factors."""
import itertools
import math
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from asking import check, tune, verdict
from flows import computed

SIZES = dict(b=2, k=16, l=16, m=8, n=24, z=1)
# Result, axes that are summed, factors, what follows; and whether all orders of the factors have the same cycles.
QUESTIONS = [("m", "n", ["X[m, n]", "s[n]", "t[n]"], ""), ("m", "n", ["X[m, n]", "s[n]", "t[n]", "r[m]"], ""), ("n", "m", ["X[m, n]", "s[m]", "t[m]"], ""),
             ("m", "n", ["X[m, n]", "Y[m, n]", "Z[m, n]"], ""), ("m, n", "k", ["A[m, k]", "B[n, k]", "s[k]"], ""), ("m, n", "k", ["A[m, k]", "B[k, n]", "s[k]"], " + c[n]"),
             ("m, n", "k", ["A[m, k]", "B[n, k]", "D[m, k]"], ""), ("b, m, n", "k", ["A[b, m, k]", "B[b, n, k]", "s[b, k]"], ""),
             ("m, n", "k, l", ["A[m, k]", "B[k, l]", "D[l, n]"], ""), ("m", "k, l", ["x[m, k]", "A[k, l]", "y[m, l]"], ""), ("m, n", None, ["a[m]", "b[n]"], ""),
             ("b, m, n", None, ["a[b, m]", "c[b, n]"], ""), ("m, n", None, ["a[m]", "b[n]"], " + X[m, n]"), ("m, n", None, ["a[m, z]", "b[n]"], " + c[n]")]


def axes_of(text):
    return re.findall(r"[a-z]", text[text.index("[") + 1:]) if "[" in text else re.findall(r"[a-z]", text)


def expected(out, summed, factors, more, inputs):
    names = axes_of(out) + axes_of(summed or "")
    values = {}
    at = lambda text, place: inputs[text.split("[")[0].lower()][1][sum(place[a] * stride for a, stride in zip(axes_of(text), strides(axes_of(text))))]
    for place in itertools.product(*(range(SIZES[name]) for name in names)):
        place = dict(zip(names, place), z=0)
        product = 1
        for factor in factors:
            product *= at(factor, place)
        where = tuple(place[a] for a in axes_of(out))
        values[where] = values.get(where, 0) + product
    extra = more.replace(" + ", "")
    return [v + (at(extra, dict(zip(axes_of(out), where))) if extra else 0) for where, v in sorted(values.items())]


def strides(names):
    out = []
    for i in range(len(names)):
        stride = 1
        for name in names[i + 1:]:
            stride *= SIZES[name]
        out.append(stride)
    return out


def ask(out, summed, factors, more, inputs, wanted):
    """The answer's cycles; its numbers are judged."""
    question = f"Q[{out}] = " + (f"sum({summed}) " if summed else "") + " * ".join(factors) + more
    of = {name: SIZES[name] for name in SIZES if any(name in axes_of(text) for text in factors + [more])}
    made = tune(question, of, "--dtype=bf16", "--budget=0s", "--no-cache")
    check(made.status == 0, f"{question}: " + made.text())
    if made.status != 0:
        return 0
    proof = tune(question, of, "--dtype=bf16", "--budget=0s", "--check")
    check(proof.status == 0 and "proven" in proof.text(), f"{question}: " + proof.text())
    found = computed(question, of, inputs, len(wanted), "bf16")
    check(found is not None and list(found) == wanted, f"{question}: {str(found)[:200]} in place of {str(wanted)[:200]}")
    return int(re.search(r"(\d+) cycles", made.text())[1])


def gates():
    """Two sums that meet, which slices share: each is where the other one is."""
    of, rng = dict(t=4, f=64, k=512), random.Random(5)
    values = {name: (shape, [rng.choice([-0.5, -0.25, 0, 0.25, 0.5]) for _ in range(shape[0] * shape[1])]) for name, shape in (("x", [4, 512]), ("g", [64, 512]), ("u", [64, 512]))}
    question = "C[t, f] = silu(sum(k) X[t, k] * G[f, k]) * (sum(k) X[t, k] * U[f, k])"
    found = computed(question, of, values, 4 * 64, "bf16", "1s")
    total = lambda name, t, f: sum(a * b for a, b in zip(values["x"][1][512 * t:512 * t + 512], values[name][1][512 * f:512 * f + 512]))
    wanted = [total("g", t, f) / (1 + math.exp(-total("g", t, f))) * total("u", t, f) for t in range(4) for f in range(64)]
    check(found is not None and all(abs(a - b) <= 1e-4 * (1 + abs(b)) for a, b in zip(found, wanted)), f"{question}: {found and found[:4]} in place of {wanted[:4]}")
    made = tune(question, of, "--dtype=bf16", "--no-cache")
    check(re.search(r"//   K: [0-9]+ slices", made.text()), f"{question}: no slices share the sum: {made.text()[:500]}")


# Spellings of one value of s = sum(k) a[m, k] * b[n, k], and what they are: numbers stand anywhere, terms come in any order.
SPELT = [("0.5 * sum(k) A[m, k] * B[n, k]", lambda s, u, v, k: s / 2), ("sum(k) 0.5 * A[m, k] * B[n, k]", lambda s, u, v, k: s / 2), ("sum(k) A[m, k] / 2 * B[n, k]", lambda s, u, v, k: s / 2),
         ("sum(k) (A[m, k] * B[n, k] * 0.5)", lambda s, u, v, k: s / 2), ("sum(k) (A[m, k] * 2 * (B[n, k] / 4))", lambda s, u, v, k: s / 2), None,
         ("sum(k) -A[m, k] * B[n, k]", lambda s, u, v, k: -s), ("-sum(k) A[m, k] * B[n, k]", lambda s, u, v, k: -s), None,
         ("mean(k) A[m, k] * B[n, k]", lambda s, u, v, k: s / k), ("mean(k) (A[m, k] * B[n, k])", lambda s, u, v, k: s / k), None,
         ("u[m] + v[n] - 2 * sum(k) A[m, k] * B[n, k]", lambda s, u, v, k: u + v - 2 * s), ("u[m] - 2 * (sum(k) A[m, k] * B[n, k]) + v[n]", lambda s, u, v, k: u + v - 2 * s), None,
         ("u[m] - (v[n] - sum(k) A[m, k] * B[n, k])", lambda s, u, v, k: u - v + s), ("(sum(k) A[m, k] * B[n, k]) - v[n] + u[m]", lambda s, u, v, k: u - v + s), None,
         ("(sum(k) A[m, k] * B[n, k]) * u[m] * v[n]", lambda s, u, v, k: u * v * s), ("u[m] * v[n] * (sum(k) A[m, k] * B[n, k])", lambda s, u, v, k: u * v * s),
         ("(u[m] * v[n]) * (sum(k) A[m, k] * B[n, k])", lambda s, u, v, k: u * v * s), None,
         ("(sum(k) A[m, k] * B[n, k]) * sigmoid(sum(k) A[m, k] * B[n, k])", lambda s, u, v, k: s / (1 + math.exp(-s))),
         ("silu(sum(k) A[m, k] * B[n, k])", lambda s, u, v, k: s / (1 + math.exp(-s))),
         ("(sum(k) A[m, k] * B[n, k]) / (exp(-(sum(k) A[m, k] * B[n, k])) + 1)", lambda s, u, v, k: s / (1 + math.exp(-s)))]


def spelt():
    of, rng = dict(m=8, n=16, k=32), random.Random(8)
    values = {name: (shape, [rng.choice([-1, -0.5, 0, 0.5, 1]) for _ in range(math.prod(shape))]) for name, shape in (("a", [8, 32]), ("b", [16, 32]), ("u", [8]), ("v", [16]))}
    a, b, u, v = (values[name][1] for name in "abuv")
    cycles = set()
    for each in SPELT:
        if each is None:
            cycles = set()
            continue
        question = f"C[m, n] = {each[0]}"
        wanted = [each[1](sum(x * y for x, y in zip(a[32 * m:32 * m + 32], b[32 * n:32 * n + 32])), u[m], v[n], 32) for m in range(8) for n in range(16)]
        found = computed(question, of, {name: values[name] for name in "abuv" if re.search(rf"\b{name}\[", question.lower())}, 8 * 16, "bf16")
        check(found is not None and all(abs(x - y) <= 1e-4 * (1 + abs(y)) for x, y in zip(found, wanted)), f"{question}: {found and found[:4]} in place of {wanted[:4]}")
        cycles.add(int(re.search(r"(\d+) cycles", tune(question, of, "--dtype=bf16", "--budget=0s", "--no-cache").text())[1]))
        check(max(cycles) <= 1.01 * min(cycles), f"{question}: cycles by the spelling: {cycles}")


def main():
    gates()
    spelt()
    rng = random.Random(3)
    for out, summed, factors, more in QUESTIONS:
        inputs = {}
        for text in factors + ([more.replace(" + ", "")] if more else []):
            shape = [SIZES[a] for a in axes_of(text)]
            count = 1
            for size in shape:
                count *= size
            inputs[text.split("[")[0].lower()] = (shape, [rng.randint(-2, 2) for _ in range(count)])
        orders = list(itertools.permutations(factors))
        wanted = expected(out, summed, factors, more, inputs)
        cycles = [ask(out, summed, list(order), more, inputs, wanted) for order in (orders if len(orders) <= 6 else rng.sample(orders, 4))]
        if len(factors) == 2 or factors[0][0] != "X":  # which of equals streams, and in which order they meet it, is the text's
            check(max(cycles) <= min(cycles) * 1.05, f"{factors}: cycles by their order: {cycles}")
    ran = tune("C[m, n] = sum(k) A[m, k] * B[n, k] * s[k]", dict(m=8, n=8, k=32), "--dtype=i8", "--budget=0s")
    check(ran.status != 0 and "E-TUNE-AXIS" in ran.text(), "of integers, whose products no operand holds: " + ran.text())
    return verdict("factors")


if __name__ == "__main__":
    sys.exit(main())
