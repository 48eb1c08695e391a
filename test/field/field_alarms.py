#!/usr/bin/env python3
"""Good kernels, proven by algebra in one process (test/field/field_alarms.c): how many proofs, how many false alarms.

    field_alarms.py [KERNELS] [SEED] [PROOFS OF EACH]

Kernels are those of field_random.py. What the suite draws is a sample; 25000 kernels with 4 proofs each are the 100,000 of docs/numerics.md.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402
import field_random  # noqa: E402


def main():
    kernels = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(40)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    proofs = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    runner = subprocess.Popen([os.path.join(visa_tools.bin_dir(), "field_alarms"), str(proofs), str(seed)], stdin=subprocess.PIPE)
    for number in range(1, kernels + 1):
        runner.stdin.write(field_random.text_of(random.Random(f"alarms/{seed}/{number}"), number).encode() + b"\0")
    runner.stdin.close()
    return runner.wait()


if __name__ == "__main__":
    sys.exit(main())
