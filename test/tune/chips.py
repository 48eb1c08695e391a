#!/usr/bin/env python3
"""Work shared over chips: kernels of visac tune for 2 and 4 of them compute the question, each chip with its part in its own HBM, and take less for it."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, tune, verdict

PRODUCT = "C[m, n] = sum(k) A[m, k] * B[n, k]"
CONVOLUTION = "O[n, y, x, f] = relu(sum(r, s, c) I[n, y + r, x + s, c] * W[f, r, s, c] + bias[f])"
# What is asked, chips, more options.
ASKED = [(PRODUCT, "m=96,n=72,k=128", "i8", 4, []), (PRODUCT, "m=3,n=40,k=64", "bf16", 2, []), (PRODUCT, "m=90,n=64,k=96", "i8", 2, ["--free=A,B,C"]),
         ("C[b, m, n] = relu(sum(k) A[b, m, k] * B[b, k, n] + bias[n])", "b=4,m=20,n=48,k=64", "bf16", 4, []), ("y[n] = sum(k) x[k] * W[n, k] + s[n]", "n=512,k=256", "i8", 4, []),
         (CONVOLUTION, "n=4,y=5,x=6,r=3,s=2,c=16,f=16", "i8", 4, []), (CONVOLUTION.replace("n, ", ""), "y=5,x=6,r=3,s=2,c=16,f=32", "i8", 2, ["--clusters=1"]),
         ("O[y, x, g, f] = relu(sum(r, s, c) I[y + r, x + s, g, c] * W[g, f, r, s, c] + bias[g, f])", "y=6,x=6,g=4,f=8,r=3,s=3,c=8", "bf16", 2, []),
         ("O[y, x, g, f] = sum(r, s, c) I[y + r, x + s, g, c] * W[g, f, r, s, c]", "y=6,x=6,g=2,f=16,r=3,s=3,c=16", "i8", 2, []),
         ("O[y, x, c] = sum(r, s) I[y + r, x + s, c] * W[r, s, c]", "y=6,x=6,r=3,s=3,c=64", "bf16", 2, []), ("Y[r, c] = softmax(c) X[r, c] * g[c]", "r=64,c=48", "bf16", 4, []),
         ("Y[r, c] = X[r, c] / sqrt(mean(c) X[r, c] * X[r, c] + 1e-6) * g[c] + b[r]", "r=64,c=256", "bf16", 4, []),
         ("O[h, q, e] = sum(s) (softmax(s) ((sum(d) Q[h, q, d] * K[h, s, d]) * 0.125) * V[h, s, e])", "h=3,q=32,s=64,d=64,e=64", "bf16", 2, []),
         # what lacks the columns that chips share, in clusters and slices that have parts of them
         (PRODUCT, "m=512,n=512,k=256", "i8", 2, []), (PRODUCT, "m=8,n=8,k=64", "i8", 2, []),
         # parts that are padded, and one column of each chip
         (PRODUCT, "m=97,n=142,k=64", "i8", 2, ["--clusters=1"]), ("y[n] = sum(k) x[k] * W[n, k] + s[n]", "n=1003,k=96", "bf16", 4, []),
         ("C[b, m, n] = relu(sum(k) A[b, m, k] * B[b, k, n] + bias[n])", "b=3,m=20,n=50,k=64", "bf16", 2, []), (PRODUCT, "m=143,n=2,k=8", "bf16", 2, []),
         ("Y[r, c] = softmax(c) X[r, c]", "r=31,c=48", "bf16", 4, [])]


def cycles_and_bound(text):
    found = re.search(r"^// (\d+) cycles, \S+ times the least that the timing model allows, (\d+)", text, re.M)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def sizes(text):
    return dict(pair.split("=") for pair in text.split(","))


def answers():
    for question, of, dtype, chips, more in ASKED if visa_tools.LONG else ASKED[::2]:
        what = f"{question} {of} --chips={chips} {more}: "
        made = tune(question, sizes(of), f"--dtype={dtype}", f"--chips={chips}", "--budget=0s", *more)
        check(made.status == 0 and f"device(chip = {chips}" in made.text(), what + made.text()[:3000])
        ran = visa_tools.run(["visac", "-", "-Werror", "--check=numbers"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text(), what + ran.text())
        check(f" {chips} chips x " in made.text() or " 2 chips x " in made.text(), what + "it does not say what chips share: " + made.text()[:1500])


def gains():
    """A quarter of the rows and columns each: products take a quarter, and the answer is faster."""
    of = {"m": 512, "n": 512, "k": 512}
    one, four = (cycles_and_bound(tune(PRODUCT, of, "--dtype=i8", "--budget=0s", *more).text()) for more in ([], ["--chips=4"]))
    check(0 < four[0] < one[0] and 0 < four[1] < one[1] and four[1] <= four[0], f"four chips: {four}, one: {one}")
    same = [tune(PRODUCT, of, "--dtype=i8", "--budget=0s", *more).out for more in ([], ["--chips=1"])]
    check(same[0] == same[1], "one chip is another machine")


FILE = """axes![M = 24, N = 16, K = 64];
#[device(chip = %s)]
#[einsum("C[m, n] = sum(k) A[m, k] * B[n, k]")]
fn product();
"""
DECLARED = """axes![M = 40, N = 24, K = 64];
type Chip = m![1];
type Chips = m![2];
#[device(chip = 2)]
#[einsum("C[m, n] = sum(k) A[m, k] * B[n, k]")]
fn product(device: &mut Device, a: &HbmTensor<i8, %s, _>, b: &HbmTensor<i8, _, _>) -> HbmTensor<i32, %s, _>;
"""


def refused():
    for chips, of, text in [(3, {"m": 9, "n": 9, "k": 64}, "--chips=3 is no power of two"), (8, {"m": 8, "n": 8, "k": 64}, "--chips=8: the machine has 4 of them"), (8, {"m": 8, "n": 8, "k": 64}, "help: take a power of two, 4 at most"),
                            (4, {"m": 3, "n": 1, "k": 64}, "the result has no axis of which each of 4 chips has a part")]:
        ran = tune(PRODUCT, of, f"--chips={chips}")
        check(ran.status == 1 and "E-TUNE-MACHINE" in ran.text() and text in ran.text(), f"--chips={chips}: {ran.text()}")
    for chips, status, text in [(4, 0, "device(chip = 4)"), (3, 1, "E-TUNE-MACHINE"), (0, 1, "E-TUNE-MACHINE")]:
        ran = visa_tools.run(["visac", "tune", "-", "--budget=0s"], stdin=(FILE % chips).encode())
        check(ran.status == status and text in ran.text(), f"chip = {chips}: {ran.text()}")


def declared():
    """A declared Chip is that of the kernel, by an alias or not, or is left open."""
    for a, c, status in [("_", "_", 0), ("Chips", "m![N / 12]", 0), ("m![2]", "_", 0), ("Chip", "_", 1), ("_", "Chip", 1), ("m![M / 20]", "_", 1)]:
        made = visa_tools.run(["visac", "tune", "-", "--budget=0s"], stdin=(DECLARED % (a, c)).encode())
        check(made.status == status and (status == 0 or "E-TUNE-LAYOUT" in made.text()), f"Chip {a}, {c}: {made.text()}")


if __name__ == "__main__":
    declared()
    answers()
    gains()
    refused()
    sys.exit(verdict("tune, chips"))
