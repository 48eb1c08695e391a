#!/usr/bin/env python3
"""A part of the machine: kernels of visac tune for so many clusters and slices have no more of them at work, compute the question, and their bound is that
of what they have."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, tune, verdict

PRODUCT = "C[m, n] = sum(k) A[m, k] * B[n, k]"
QUESTIONS = [(PRODUCT, {"m": 96, "n": 72, "k": 128}, "i8"), ("C[b, m, n] = relu(sum(k) A[b, m, k] * B[b, k, n] + bias[n])", {"b": 3, "m": 20, "n": 48, "k": 64}, "bf16"),
             ("O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]", {"y": 7, "x": 7, "r": 3, "s": 3, "c": 32, "f": 32}, "i8"),
             ("O[y, x, c] = sum(r, s) I[y + r, x + s, c] * W[r, s, c]", {"y": 8, "x": 8, "r": 3, "s": 3, "c": 64}, "bf16"),
             ("Y[r, c] = softmax(c) X[r, c]", {"r": 96, "c": 64}, "bf16")]
PARTS = [(1, 64), (1, None), (None, 16), (1, 8), (2, 128)]


def positions(mapping):
    """Those of m![..] that are no padding alone: [1 # 4, M # 64 / 4 % 8] has 8, where M is a number in `axes`."""
    count = 1
    for digit in re.sub(r"\[(.*)\] # \d+$", r"\1", mapping).split(","):
        size = None
        for symbol, number in re.findall(r"(^|[#/%])\s*(\w+)", digit.strip()):
            value = AXES.get(number) or int(number)
            size = value if not symbol or symbol == "#" else -(-size // value) if symbol == "/" else value
        count *= 1 if digit.strip().startswith("1 #") else size
    return count


def most_at_work(text):
    """Clusters and slices that any tensor in DM is in."""
    AXES.clear()
    AXES.update((name, int(size)) for name, size in re.findall(r"(\w+) = (\d+)", re.search(r"axes!\[([^;]*)\];", text)[1]))
    alias = dict(re.findall(r"type (\w+) = m!\[(.*)\];", text))
    clusters, slices = [], []
    for tensor in re.findall(r"DmTensor<(.*?)>[ ,;=]", re.sub(r"\s+", " ", text)):
        parts = [one or alias[two] for one, two in re.findall(r"m!\[((?:[^\[\]]|\[[^\]]*\])*)\]|\b(Chip|Cluster|Slice)\b", tensor)]
        clusters.append(positions(parts[1]))
        slices.append(positions(parts[2]))
    return max(clusters), max(slices)


AXES = {}


def parts():
    for n, (question, of, dtype) in enumerate(QUESTIONS):
        for clusters, slices in PARTS if visa_tools.LONG else (PARTS[n], PARTS[(n + 2) % len(PARTS)]):
            options = [f"--{name}={n}" for name, n in (("clusters", clusters), ("slices", slices)) if n]
            ran = tune(question, of, f"--dtype={dtype}", "--budget=0s", *options)
            what = f"{question} {of} {dtype} {options}: "
            check(ran.status == 0, what + ran.text())
            if ran.status:
                continue
            used = most_at_work(ran.text())
            check(used[0] <= (clusters or 2) and used[1] <= (slices or 256), what + f"{used} at work: {ran.text()}")
            pes = re.search(r"device\(chip = 1(?:, pe = (\d))?\)", ran.text())[1]
            check(pes == (None if clusters != 1 else "4" if slices is None else "1"), what + f"pe = {pes}")
            judged = visa_tools.run(["visac", "-", "-Werror", "--check=numbers"], stdin=ran.out)
            check(judged.status == 0 and "agree" in judged.text(), what + judged.text())


def bound(*options):
    found = re.search(r"allows, (\d+) \(copies (\d+), products (\d+)", tune(PRODUCT, {"m": 1024, "n": 1024, "k": 1024}, "--dtype=i8", "--budget=0s", *options).text())
    return [int(n) for n in found.groups()]


def bounds():
    """Half of the lanes take twice as long; 4 DMA engines of 256 bytes a cycle are less than HBM's 1,545.6, and one is a quarter of them."""
    whole, one, quarter, few = bound(), bound("--clusters=1"), bound("--clusters=1", "--slices=64"), bound("--slices=1")
    check(bound("--clusters=2", "--slices=256") == whole, "all of the machine is another machine")
    bytes_ = 6 << 20
    for of, rate, lanes in [(one, 1024, 2), (quarter, 256, 8), (few, 2 * 128, 256)]:
        check(of[1] >= bytes_ // rate, f"copies {of[1]}: less than {bytes_} bytes take at {rate} a cycle")
        check(of[2] == 1500 + 4096 * lanes, f"products {of[2]}, {lanes} times as long")


def refused():
    for options, text in [(["--clusters=3"], "error[E-TUNE-MACHINE]: --clusters=3: a chip has 2 of them"), (["--clusters=4"], "E-TUNE-MACHINE"),
                          (["--slices=100"], "error[E-TUNE-MACHINE]: --slices=100 is no power of two"), (["--slices=512"], "help: take a power of two, 256 at most")]:
        ran = tune(PRODUCT, {"m": 8, "n": 8, "k": 64}, *options)
        check(ran.status == 1 and text in ran.text(), f"{options}: {ran.text()}")
    for options in [["--clusters=0"], ["--slices=x"], ["--slices=-1"]]:
        ran = tune(PRODUCT, {"m": 8, "n": 8, "k": 64}, *options)
        check(ran.status == 2 and "takes a number from 1 on" in ran.text(), f"{options}: {ran.text()}")


FILE = """axes![M = 24, N = 16, K = 64];
%s
#[einsum("C[m, n] = sum(k) A[m, k] * B[n, k]")]
fn product();
#[einsum("y[m] = sum(k) W[m, k] * x[k]")]
fn second();
"""


def in_files():
    """What a function says of itself is in place of what options say of all."""
    for attribute, options, first, second in [("#[device(pe = 2)]", [], ", pe = 2", ""), ("#[device(chip = 1, pe = 8)]", ["--clusters=1"], "", ", pe = 4"),
                                              ("", ["--clusters=1", "--slices=64"], ", pe = 1", ", pe = 1")]:
        ran = visa_tools.run(["visac", "tune", "-", "--budget=0s", *options], stdin=(FILE % attribute).encode())
        found = re.findall(r"device\(chip = 1(.*?)\)", ran.text())
        check(found == [first, second], f"{attribute} {options}: {found} {ran.text()}")
    for attribute in ["pe = 3", "pe = 16", "pe = 0", "size = 1"]:
        ran = visa_tools.run(["visac", "tune", "-"], stdin=(FILE % f"#[device({attribute})]").encode())
        check(ran.status == 1 and "E-TUNE-MACHINE" in ran.text(), f"{attribute}: {ran.text()}")


if __name__ == "__main__":
    parts()
    bounds()
    refused()
    in_files()
    sys.exit(verdict("tune, machine"))
