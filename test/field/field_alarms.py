#!/usr/bin/env python3
"""Good kernels, proven by algebra in one process (test/field/field_alarms.c): how many proofs, how many false alarms.

    field_alarms.py [KERNELS] [SEED] [PROOFS OF EACH]

Kernels are those of field_random.py. What the suite draws is a sample; 25000 kernels with 4 proofs each are the 100,000 of docs/numerics.md.
Before them products that fill a grid of slices, whose sums are joined (runtime/field/sums.c): each is proven by its projection, where a wrong
sum would only make it slower.
"""
import os
import random
import runpy
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
import visa_tools  # noqa: E402
import field_random  # noqa: E402

GRIDS = [(64, 256, 128, "i8"), (32, 512, 64, "i8"), (64, 512, 128, "bf16")]


def grids_are_projected(runner):
    products = runpy.run_path(os.path.join(os.path.dirname(TESTS), "bench", "kernels.py"))
    texts = b"".join(products["matmul"](*grid).encode() + b"\0" for grid in GRIDS)
    told = subprocess.run([runner, "1", "1"], input=texts, capture_output=True).stdout.decode()
    wanted = [f"{len(GRIDS)} of them by projection", "0 texts refused", " 0 false alarms"]
    if not all(words in told for words in wanted):
        print(f"grids of slices: {told}")
    return all(words in told for words in wanted)


def main():
    kernels = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(40)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    proofs = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    program = os.path.join(visa_tools.bin_dir(), "field_alarms")
    if not grids_are_projected(program):
        return 1
    runner = subprocess.Popen([program, str(proofs), str(seed)], stdin=subprocess.PIPE)
    for number in range(1, kernels + 1):
        runner.stdin.write(field_random.text_of(random.Random(f"alarms/{seed}/{number}"), number).encode() + b"\0")
    runner.stdin.close()
    return runner.wait()


if __name__ == "__main__":
    sys.exit(main())
