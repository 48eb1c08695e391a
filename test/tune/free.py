#!/usr/bin/env python3
"""Layouts that are the kernel's to choose, --free=NAME,.. and `_` in a file: what visac tune answers computes the question, says how each such tensor lies, and
does not pay for rows that are no whole blocks of HBM or lie turned."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, tune, verdict

PRODUCT = "C[m, n] = sum(k) A[m, k] * B[n, k]"
CONVOLUTION = "O[n, y, x, f] = sum(r, s, c) I[n, y + r, x + s, c] * W[f, r, s, c]"
# What is free, and a mapping that the text has.
ASKED = [(PRODUCT, "m=96,n=77,k=64", "i8", "C", "c lies as its copies take it: m!["), ("C[m, n] = sum(k) A[k, m] * B[k, n]", "m=48,n=40,k=128", "bf16", "a,B", "m![M, K]>,"),
         ("C[b, m, n] = relu(sum(k) A[b, m, k] * B[b, k, n] + bias[n])", "b=3,m=20,n=40,k=72", "bf16", "A,B,C,bias", "b lies as"),
         ("y[n] = sum(k, l) x[l, k] * W[k, n, l]", "n=200,k=4,l=40", "i8", "W,x,y", "y lies as"), ("C[m, n] = sum(k) A[m, k] * B[n, k]", "m=61,n=83,k=100", "i4", "A,B,C", "c lies as"),
         (CONVOLUTION, "n=2,y=5,x=6,r=3,s=2,c=24,f=20", "i8", "O", "o lies as"), ("O[y, x, c] = sum(r, s) I[y + r, x + s, c] * W[r, s, c]", "y=6,x=6,r=3,s=3,c=40", "bf16", "O", "o lies as"),
         ("Y[r, c] = softmax(c) X[r, c]", "r=32,c=40", "bf16", "X,Y", "m![R, C]")]


def cycles(text):
    found = re.search(r"^// (\d+) cycles", text, re.M)
    return int(found[1]) if found else 0


def sizes(text):
    return dict(pair.split("=") for pair in text.split(","))


def answers():
    for question, of, dtype, free, text in ASKED:
        made = tune(question, sizes(of), f"--dtype={dtype}", f"--free={free}", "--budget=0s")
        check(made.status == 0 and text in made.text(), f"{question} {of} --free={free}: no `{text}`: {made.text()[:3000]}")
        ran = visa_tools.run(["visac", "-", "-Werror", "--check"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text(), f"{question} {of} --free={free}: {ran.text()}")


def gains():
    """Rows of 77 and blocks, a twelfth; a tensor that lies turned costs nothing where it need not."""
    of = {"m": 400, "n": 77, "k": 128}
    fixed, free = (cycles(tune(PRODUCT, of, "--dtype=i8", "--budget=0s", *more).text()) for more in ([], ["--free=C"]))
    check(0 < 3 * free < fixed, f"rows of 77: {fixed} cycles, {free} where they need not be rows")
    of = {"m": 64, "n": 96, "k": 256}
    straight, turned = (tune(q, of, "--dtype=i8", "--budget=0s", "--free=B").text() for q in (PRODUCT, PRODUCT.replace("B[n, k]", "B[k, n]")))
    check(straight.split("\n", 1)[1] == turned.split("\n", 1)[1], "how a free tensor is written counts")
    measured = tune("y[n] = sum(k) x[k] * W[n, k]", {"n": 512, "k": 1024}, "--dtype=i8", "--budget=0s", "--free=W", "--timing=measured").text()
    check("K % 256]" in measured and "blocks of 256 bytes of all slices side by side" in measured, "no blocks side by side: " + measured[:3000])


FILE = """axes![M = 40, N = 24, K = 64];
type Chip = m![1];
#[einsum("C[m, n] = sum(k) A[m, k] * B[k, n]")]
fn product(
    device: &mut Device,
    a: &HbmTensor<i8, Chip, %s>,
    b: &HbmTensor<i8, Chip, %s>,
) -> HbmTensor<i32, Chip, %s>;
"""


def in_files():
    for a, b, c, free in [("m![M, K]", "_", "_", {"b", "c"}), ("_", "m![K, N]", "m![M, N]", {"a"}), ("m![M, K]", "m![K, N]", "m![M, N]", set())]:
        made = visa_tools.run(["visac", "tune", "-", "--budget=0s"], stdin=(FILE % (a, b, c)).encode())
        check(made.status == 0 and set(re.findall(r"// (\w) lies as", made.text())) == free, f"{a} {b} {c}: {made.text()}")
        ran = visa_tools.run(["visac", "-", "--check=numbers"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text(), f"{a} {b} {c}: {ran.text()}")
    refused = visa_tools.run(["visac", "tune", "-", "--budget=0s"], stdin=(FILE % ("m![K, M]", "_", "_")).encode())
    check(refused.status == 1 and "E-TUNE-LAYOUT" in refused.text(), refused.text())


def refused():
    for name in ["D", "m", "A,", ",A"]:
        ran = tune(PRODUCT, {"m": 8, "n": 8, "k": 64}, f"--free={name}", "--budget=0s")
        known = name == "A,"
        check(ran.status == (0 if known else 1) and (known or "of --free is no tensor of the question" in ran.text()), f"--free={name}: {ran.text()}")
    ran = visa_tools.run(["visac", "tune", "-", "--free=a"], stdin=(FILE % ("_", "_", "_")).encode())
    check(ran.status == 2 and "--free" in ran.text(), ran.text())


if __name__ == "__main__":
    answers()
    gains()
    in_files()
    refused()
    sys.exit(verdict("tune, free"))
