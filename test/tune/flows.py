#!/usr/bin/env python3
"""visac tune, questions without a contraction: elementwise maps, reductions, softmax, norms. Each answer passes its check; numbers of some against Python.
Usage: flows.py [SEED [QUESTIONS]]: random questions of another seed, that many, and nothing else."""
import math
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

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
            "O[b, r, n] = sum(c) (softmax(c) ((sum(k) A[b, r, k] * B[b, c, k]) * 0.1) * V[b, c, n])", "C[r, c] = sum(k) A[r, k] * B[c, k] + sum(k) A[r, k] * D[c, k]"]
OPERANDS = [("bf16", "f32"), ("bf16", "bf16"), ("i8", None), ("f8e4m3", "bf16"), ("i8", "i8")]
TYPES = [("bf16", "f32"), ("bf16", "bf16"), ("f32", "f32"), ("f32", "bf16"), ("i8", None), ("i8", "i8"), ("i32", "i32"), ("f8e4m3", "bf16"), ("i16", None)]
LEAST = [1, 2, 3, 5, 8, 16, 32, 64, 96]
MOST_ELEMENTS = 1 << 16  # of a random question, so that its check is short
MOST_PRODUCTS = 1 << 20
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def tune(question, sizes, *more):
    given = ",".join(f"{axis}={size}" for axis, size in sizes.items())
    return visa_tools.run(["visac", "tune", question, "-D", given, *more])


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
        check(ran.status != 1 or re.search(r"error\[E-TUNE-\w+\]: ", ran.text()), what + ran.text())
        answered += ran.status == 0
        if ran.status and "-v" in sys.argv:
            print(what + " ".join(x for x in ran.text().splitlines() if "error" in x or "note" in x), flush=True)
    print(f"flows: {answered} of {count} random questions have an answer")


def main():
    arguments = [x for x in sys.argv[1:] if x != "-v"]
    seed = int(arguments[0]) if arguments else 25
    random_questions(seed, int(arguments[1]) if len(arguments) > 1 else visa_tools.few(12, 200))
    for failure in failures:
        print(failure)
    print(f"flows: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
