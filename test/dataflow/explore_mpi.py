#!/usr/bin/env python3
"""`mpirun -n N visac --explore` writes what `visac --explore` writes, with 1, 2 and 3 processes. Skips where the plugin or mpirun is absent."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

# Streams of different widths: ways of one cost differ in their bits, whichever process finds them first.
ITEM = """const SPACE: Dataflow = Dataflow {
    inputs: [Input { name: "x", tensor: [60, 720], block: [12, 720], dtype: i8 }, Input { name: "z", tensor: [48, 24], block: [48, 24], dtype: i4 }],
    weights: [Weight { name: "w", tensor: [360, 720], block: [1, 720], dtype: u2 }, Weight { name: "v", tensor: [30], block: [1], dtype: i8 }],
    outputs: [Output { name: "y", block: [1, 1] }],
};
const POINT: Dataflow = Dataflow {
    inputs: [Input { name: "x", tensor: [5], block: [1], dtype: i8 }],
    outputs: [Output { name: "y", block: [1] }],
};
"""
QUESTIONS = [["--explore=SPACE", "--emit=csv"], ["--explore=SPACE", "--emit=svg", "--limit=multipliers=300,weight-bits=4000"],
             ["--explore=SPACE", "--target-cycles=5000"], ["--explore=POINT"], ["--explore=SPACE", "--search=folding", "--target-cycles=90000"], ["--explore=NONE"]]
RANKS = (1, 2, 3)


def main():
    found = visa_tools.mpi()
    if not found:
        return visa_tools.SKIPPED
    mpirun, env = found
    faults = []

    def said(text):
        """Errors, but for those of processes that mpirun stops because another one has ended."""
        return text.count(b"error[") - text.count(b"error[E-STOPPED]: stopped by SIGTERM")

    def compare(what, one, several):
        if (one.returncode, one.stdout) != (several.returncode, several.stdout) or one.stderr not in several.stderr or said(several.stderr) != said(one.stderr):
            faults.append(f"{what}: status {several.returncode} and not {one.returncode}, or other bytes: {several.stdout[:300]} {several.stderr[:1500]}")

    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "space.vm")
        with open(path, "w", encoding="utf-8") as file:
            line = "// a source that goes in several messages of 4096 bytes, one of which ends in the item\n"
            before = (4096 - len(ITEM) // 2) // len(line)
            file.write(line * before + ITEM + line * 100)
        for n, question in enumerate(QUESTIONS):
            one = visa_tools.mpi_run(env, ["visac", path, *question])
            for ranks in RANKS if n == 0 or "VISA_LONG" in os.environ else RANKS[2:]:
                compare(f"{ranks} processes, {question}", one, visa_tools.mpi_run(env, [mpirun, "-n", str(ranks), "visac", path, *question]))
                compared += 1
        one = visa_tools.mpi_run(env, ["visac", "-", "--explore=SPACE", "--emit=csv"], ITEM.encode())
        out = os.path.join(folder, "front.csv")
        visa_tools.mpi_run(env, [mpirun, "-n", "3", "visac", "-", "--explore=SPACE", "--emit=csv", "-o", out], ITEM.encode())
        with open(out, "rb") as file:
            if file.read() != one.stdout:
                faults.append("standard input to a file: other bytes")
        compare("a file that is not there", visa_tools.mpi_run(env, ["visac", "no.vm", "--explore"]), visa_tools.mpi_run(env, [mpirun, "-n", "2", "visac", "no.vm", "--explore"]))
    print("\n".join(faults + [f"{compared + 2} runs, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
