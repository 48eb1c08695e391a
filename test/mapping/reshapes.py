#!/usr/bin/env python3
"""Reshapes of what copies were made of, drawn: chips, cluster and slices are digits of axes or copies, before and after, of which some stay. Each is
refused with a reason, or computes what the machine does, by numbers and algebra. Usage: reshapes.py [KERNELS [SEED]]"""
import collections
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

NAMED = ["N / 4", "N / 2 % 2", "N % 2", "P / 2", "P % 2", "C"]
COPIES = "2"
SAME = 0.4     # how often a place keeps its digit
IN_PORT = 0.6  # how often a digit of the memory is one of the port, and not made by the copy
ALLOWED = {"E-RESHAPE", "E-SEQ-INSUFFICIENT"}  # digits that are no digits of the other; a result in HBM that the slices do not hold


def are_apart(digits):
    named = [digit for digit in digits if digit != COPIES]
    return len(set(named)) == len(named)


def places(rng):
    """Digits of chips, clusters, and twice of slices."""
    while True:
        digits = [rng.choice(NAMED + [COPIES]) for _ in range(4)]
        if are_apart(digits):
            return digits


def kernel(rng):
    while True:
        before, after = places(rng), places(rng)
        after = [old if rng.random() < SAME else new for old, new in zip(before, after)]
        if are_apart(after):
            break
    chips = rng.random() < 0.5
    if not chips:
        before[0] = after[0] = "1"
    port = ", ".join([digit for digit in before[1:] if digit != COPIES and rng.random() < IN_PORT] + ["M"])
    result = ", ".join([digit for digit in after[1:] if digit != COPIES] + ["M"])
    chip, cluster, slices = ([digits[0] for digits in (before, after)], [digits[1] for digits in (before, after)],
                             [f"{digits[2]}, {digits[3]}, M / 8" for digits in (before, after)])
    return f"""axes![M = 512, N = 8, P = 4, C = 2];
#[device(chip = {2 if chips else 1})]
fn spread(device: &mut Device, a: &HbmTensor<i8, m![{chip[0]}], m![{port}]>) -> HbmTensor<i8, m![{chip[1]}], m![{result}]> {{
    let rows: DmTensor<i8, m![{chip[0]}], m![{cluster[0]}], m![{slices[0]}], m![M % 8]> = a.to_dm(&mut device.tdma);
    let rows: DmTensor<i8, m![{chip[1]}], m![{cluster[1]}], m![{slices[1]}], m![M % 8]> = unsafe {{ rows.reshape() }};
    rows.to_hbm(&mut device.tdma)
}}
"""


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(40)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    found, failures = collections.Counter(), 0
    for n in range(count):
        source = kernel(random.Random(seed * 100000 + n))
        ran = visa_tools.run(["visac", "-", "--check"], stdin=source.encode())
        ids = re.findall(r"error\[(E-[A-Z-]+)\]", ran.text())
        agrees = ran.status == 0 and "agree" in ran.text() and "proven" in ran.text()
        found[ids[0] if ids else "agree"] += 1
        if ran.crashed or not (agrees or (ids and ids[0] in ALLOWED)):
            failures += 1
            print(f"kernel {n} of seed {seed}:\n{source}{ran.text()}")
    if found["agree"] < count // 4:
        failures += 1
        print("too few are accepted to say something")
    print(f"reshapes: {count} kernels, {dict(found)}, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
