#!/usr/bin/env python3
"""Instructions of ten fixed runs, as callgrind counts them, against the recorded ones (bench/instructions.json).

    bench/instructions.py BIN_DIR [--update]

Time differs from machine to machine and from minute to minute; the number of instructions of our own code does not. So only what is in visac
itself is counted: the C library and the dynamic linker choose other code for other processors. What the compiler makes of the sources differs,
so a count belongs to a version of gcc and to one preset (`dev`, which CI builds anyway; sanitizers would count their own checks); under another
one this says so and does nothing. 3 % more or less is a failure: more wants a reason, less wants to be recorded, or the next 3 % would go unseen.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sections import growth  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "bench/instructions.json"
ALLOWANCE = 0.03 # chosen, not derived: instructions of one build do not vary, and another version of the system's libraries is to pass
SKIPPED = 77


def runs(bin_dir, folder):
    """{name: command}: what people do all day, each less than two seconds here."""
    many, terms, wrong, binary = folder / "kernels.vm", folder / "terms.vm", folder / "wrong.vm", folder / "matmul.bin"
    matmul = ROOT / "examples/matmul.vm"
    many.write_text(growth.kernels(100))
    terms.write_text(growth.terms(200))
    wrong.write_text(matmul.read_text().replace("m![K % 16]>()", "m![K % 8]>()", 1))
    visac, out = [str(bin_dir / "visac"), "--jobs=1"], ["-o", str(folder / "out")]
    subprocess.run([*visac, str(matmul), "-o", str(binary)], check=True)
    return {"compile matmul.vm": [*visac, str(matmul), *out],
            "compile attention.vm": [*visac, str(ROOT / "examples/attention.vm"), *out],
            "compile 100 kernels": [*visac, str(many), *out],
            "compile 200 terms": [*visac, str(terms), *out],
            "refuse a packet": [*visac, str(wrong), *out],
            "tables of conv2d.vm": [*visac, str(ROOT / "examples/conv2d.vm"), "--emit=json", *out],
            "report of softmax.vm": [*visac, str(ROOT / "examples/softmax.vm"), "--report"],
            "stream program swiglu.vm": [*visac, str(ROOT / "examples/step/swiglu.vm"), "--emit=step-report", *out],
            "tune 16 x 16 x 64": [visac[0], "tune", "C[m, n] = sum(k) A[m, k] * B[n, k]", "-D", "m=16,n=16,k=64", "--dtype=i8", "--budget=0s", "--no-cache", *out],
            "run matmul.bin": [str(bin_dir / "visa-run"), str(binary), "--cpu=plain", "--threads=1"]}


def count(command, folder):
    """Instructions executed in the program itself."""
    profile = folder / "callgrind.out"
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", "--compress-strings=no", *command], capture_output=True, check=False)
    if done.returncode > 1:  # 1: refused
        sys.exit(f"{' '.join(command)}: status {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
    total, ours, known, skip = 0, False, False, False
    for line in profile.read_text().splitlines():
        if line.startswith("ob="):
            ours = line[3:] == command[0]
        elif line.startswith("fl="):
            known = line[3:] != "???"  # the C library stands in the program, without the names of its sources
        elif line.startswith("calls="):
            skip = True  # the next line is what the callee costs
        elif re.match(r"[+\-*\d]", line):
            total += 0 if skip or not (ours and known) else int(line.split()[1])
            skip = False
    return total


def skip(text):
    print(f"skipped: {text}")
    sys.exit(SKIPPED)


def compiler():
    done = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False)
    return f"gcc {done.stdout.strip()}" if done.returncode == 0 else "no gcc"


def compare(recorded, counted):
    """Lines of the table, and the names of those beyond the allowance."""
    lines, beyond = [], []
    for name, instructions in counted.items():
        change = instructions / recorded[name] - 1
        lines.append(f"{name:26} {instructions:12,} instructions, recorded {recorded[name]:12,}: {100 * change:+.2f} %")
        if abs(change) > ALLOWANCE:
            beyond.append(name)
    return lines, beyond


def main():
    parser = argparse.ArgumentParser(description="instructions of ten runs against the recorded ones")
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="record what is counted now")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        skip("valgrind is missing: apt-get install valgrind")
    recorded, preset = json.loads(RECORD.read_text()), options.bin.resolve().parent.name
    if preset != recorded["preset"]:
        skip(f"the counts are of the preset {recorded['preset']}, this is {preset}")
    if not options.update and recorded["compiler"] != compiler():
        skip(f"recorded for {recorded['compiler']}, this is {compiler()}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        counted = {name: count(command, folder) for name, command in runs(options.bin.resolve(), folder).items()}
    lines, beyond = compare(recorded["instructions"], counted) if not options.update else ([f"{name:26} {n:12,} instructions" for name, n in counted.items()], [])
    print("\n".join(lines))
    if options.update:
        RECORD.write_text(json.dumps({"compiler": compiler(), "preset": recorded["preset"], "instructions": counted}, indent=1) + "\n")
    if beyond:
        sys.exit(f"more than {100 * ALLOWANCE:.0f} % away: {', '.join(beyond)}; look why, then record them: bench/instructions.py build/{recorded['preset']}/bin --update")


if __name__ == "__main__":
    main()
