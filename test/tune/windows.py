#!/usr/bin/env python3
"""visac tune: layers of known networks: what is done to the results of a convolution goes over parts of them where the VRF has no room for all."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, tune, verdict

LINE, IMAGE = "sum(s, c) X[t + s, c] * W[f, s, c]", "sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]"
# Question, sizes, slices, and the loops that its kernel has.
PARTS = [
    # of rows: a gate; a residual that waits in DM; both
    (f"Y[t, f] = gelu({LINE} + b[f])", dict(t=30, s=3, c=16, f=96), 1, ["for i in 0..2 {", "values.view().tile::<m![T / 15], 1, _>(i)"]),
    (f"Y[t, f] = relu({LINE} + b[f] + R[t, f]: bf16)", dict(t=30, s=3, c=16, f=96), 1, ["for i in 0..2 {", "r.view().tile::<m![T / 15], 1, _>(i)"]),
    (f"Y[t, f] = gelu({LINE} + R[t, f]: bf16)", dict(t=30, s=3, c=16, f=96), 1, ["for i in 0..2 {", "for l in 0..2 {"]),
    # of a prime number of rows columns are parts
    (f"Y[t, f] = gelu({LINE} + b[f])", dict(t=47, s=3, c=16, f=64), 1, ["for l in 0..2 {"]),
    # of places, where a row is too many; of columns, where a place is
    (f"O[y, x, f] = gelu({IMAGE} + b[f])", dict(y=2, x=6, r=3, s=3, c=16, f=384), 1, ["for i in 0..2 {", "for j in 0..2 {"]),
    (f"O[y, x, f] = gelu({IMAGE})", dict(y=1, x=2, r=1, s=3, c=16, f=2048), 1, ["for l in 0..2 {"]),
    # of each image, and of images as rows; of channels that have a filter each
    ("O[n, y, x, f] = gelu(sum(r, s, c) I[n, y + r, x + s, c] * W[f, r, s, c] + b[f])", dict(n=3, y=6, x=5, r=3, s=2, c=16, f=96), 1, ["for i in 0..2 {"]),
    ("O[n, y, x, f] = gelu(sum(r, s, c) I[n, y + r, x + s, c] * W[f, r, s, c] + b[f])", dict(n=4, y=6, x=5, r=3, s=2, c=16, f=96), 4, ["for i in 0..2 {"]),
    ("O[y, x, c] = gelu(sum(r, s) I[y + r, x + s, c] * W[r, s, c] + b[c])", dict(y=6, x=6, r=3, s=3, c=64), 1, ["for i in 0..2 {"]),
    # columns in turns have a gate, too
    (f"Y[t, f] = gelu({LINE} + b[f])", dict(t=8, s=3, c=64, f=256), 1, ["for n in 0..2 {", "let gate"])]


def parts():
    for question, sizes, slices, texts in PARTS:
        made = tune(question, sizes, "--out=bf16", "--budget=0s", "--clusters=1", f"--slices={slices}", "--no-cache")
        check(made.status == 0 and all(text in made.text() for text in texts), f"{question} {sizes}: no {texts}: " + made.text()[-6000:])
        ran = visa_tools.run(["visac", "-", "--check"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text() and "proven" in ran.text(), f"{question} {sizes}: " + ran.text())


# Zeros around an image: sizes, what the kernel has, cycles at most: more than those where rows of zeros are written by copies of their own.
BORDERS = [
    # rows of the image and of zeros are written together, one for each slice; the copy of the weights is in front of them
    ("O[y, x, f] = sum(r, s, c) I[h = y + r - 1, w = x + s - 1, c] * W[f, r, s, c]", dict(y=28, x=28, h=28, w=28, r=3, s=3, c=64, f=64), "slice_tile::<m![H_WIDE], 28", 4800),
    # rows of 160 bytes, which begin inside of blocks of HBM: so many in a slice that they are blocks
    ("Y[t, f] = relu(sum(s, c) X[x = t + s - 1, c] * W[f, s, c] + b[f])", dict(t=600, x=600, s=3, c=80, f=64), "X_WIDE / 8", 5000),
    ("Y[t, f] = sum(s, c) X[x = t*2 + s - 1, c] * W[f, s, c]", dict(t=300, x=600, s=3, c=80, f=64), "X_WIDE / 8", 4500),
    # zeros apart, which are copied while DM is filled: rows of both clusters are faster then
    ("O[y, x, c] = silu(sum(r, s) I[h = y*2 + r - 2, w = x*2 + s - 2, c] * W[r, s, c] + b[c])", dict(y=28, x=28, h=56, w=56, r=5, s=5, c=144), "In front of it and behind", 10200)]


def borders():
    for question, sizes, text, most in BORDERS:
        made = tune(question, sizes, "--out=bf16", "--no-cache")
        found = re.search(r"^// (\d+) cycles", made.text(), re.M)
        check(made.status == 0 and text in made.text() and int(found[1]) <= most, f"{question} {sizes}: no {text}, {most} cycles at most: " + made.text())
        ran = visa_tools.run(["visac", "-", "--check=numbers"], stdin=made.out)
        check(ran.status == 0 and "agree" in ran.text(), f"{question} {sizes}: " + ran.text())


# Layers whose operands after the sums are more than the VRF of any slice has room for, and cycles at most.
LAYERS = [("Y[t, f] = gelu(sum(s, c) X[x = t*2 + s - 1, c] * W[f, s, c] + b[f])", dict(t=1500, s=3, c=768, f=768, x=3000), 110000),
          ("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c] + b[f] + R[y, x, f]: bf16", dict(y=64, x=64, r=3, s=3, c=64, f=320), 40000)]


def layers():
    for question, sizes, most in LAYERS:
        made = tune(question, sizes, "--out=bf16", "--budget=0s", "--no-cache")
        found = re.search(r"^// (\d+) cycles", made.text(), re.M)
        check(made.status == 0 and found and int(found[1]) <= most, f"{question} {sizes}: {most} cycles at most: " + made.text()[:600])


def main():
    parts()
    borders()
    layers()
    return verdict("windows: layers of known networks have an answer")


if __name__ == "__main__":
    sys.exit(main())
