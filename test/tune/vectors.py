#!/usr/bin/env python3
"""Vectors and few rows: what slices share comes once and goes around, and by --timing=measured no run of a copy is longer than is fast. Answers pass
their check."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, tune, verdict

VECTOR, ROWS = "y[n] = sum(k) x[k] * W[n, k]", "C[m, n] = sum(k) A[m, k] * B[n, k]"
TURNED = "y[n] = relu(sum(k) x[k] * W[k, n] + b[n])"
SCALED = "y[n] = (sum(k) x[k] * W[n, k]) * s[n]: bf16"
AROUND = r"And around to all of these by the Switch Engine"
# The text that an answer has, and cycles that it takes at most: without rows that go around, or runs that are short, it took more.
ASKED = [(VECTOR, "n=2048,k=512", "i8", [], AROUND, 2500), (VECTOR, "n=1024,k=1024", "i4", [], AROUND, 2200), (ROWS, "m=2,n=2048,k=1024", "bf16", [], AROUND, 5400),
         (TURNED, "n=1024,k=8192", "i8", [], AROUND, 29500),
         (ROWS, "m=16,n=512,k=2048", "i8", ["--budget=1s"], r"K: .*\d+ slices", 3200), (SCALED, "n=1000,k=768", "bf16", [], AROUND, 4300),
         (SCALED, "n=2048,k=1280", "f8e4m3", ["--timing=measured"], r"let columns: [^=]*, m!\[K / 256, N % \d+, K % 256\]", 13900),
         (SCALED, "n=2048,k=3840", "i4", ["--timing=measured"], r"let columns: [^=]*, m!\[N / 2 % 2, N / 4 % 2, N % 2, K\]", 18000),
         (SCALED, "n=4096,k=1920", "i4", ["--timing=measured", "--free=W"], r"w lies as its copies take it: .*, N % 4, K % 128\], blocks of 256", 15900)]


def cycles(text):
    found = re.search(r"^// (\d+) cycles", text, re.M)
    return int(found[1]) if found else 0


def main():
    for question, of, dtype, more, text, most in ASKED:
        made = tune(question, dict(pair.split("=") for pair in of.split(",")), f"--dtype={dtype}", "--no-cache", *(more if "--budget=1s" in more else ["--budget=0s", *more]))
        one_line = re.sub(r"\s+", " ", made.text())
        check(made.status == 0 and re.search(text, one_line), f"{question} {of} {more}: no `{text}`: {made.text()}")
        check(0 < cycles(made.text()) <= most, f"{question} {of} {more}: {cycles(made.text())} cycles, {most} at most")
        ran = visa_tools.run(["visac", "-", "-Werror", "--check"], stdin=made.out)
        check(ran.status == 0 and re.search("agree|proven", ran.text()), f"{question} {of} {more}: {ran.text()}")
    return verdict("tune_vectors")


sys.exit(main())
