#!/usr/bin/env python3
"""Instructions of three fixed compiles, as callgrind counts them, against the recorded ones (bench/instructions.json).

    bench/instructions.py BIN_DIR [--update]

Time differs from machine to machine and from minute to minute; the number of instructions of our own code does not. So only what is in visac
itself is counted: the C library and the dynamic linker choose other code for other processors. What the compiler makes of the sources differs,
so a count belongs to a version of gcc and to one preset (`dev`, which CI builds anyway; sanitizers would count their own checks); under another
one this says so and does nothing. 5 % more or less is a failure: more wants a reason, less wants to be recorded, or the next 5 % would go unseen.
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
ALLOWANCE = 0.05 # chosen, not derived: instructions of one build do not vary, and another version of the system's libraries is to pass
SKIPPED = 77


def sources(folder):
    """{name: path} of what is compiled."""
    many, terms = folder / "kernels.vm", folder / "terms.vm"
    many.write_text(growth.kernels(100))
    terms.write_text(growth.terms(200))
    return {"examples/matmul.vm": ROOT / "examples/matmul.vm", "100 kernels": many, "200 terms": terms}


def count(visac, source, folder):
    """Instructions executed in the program itself."""
    profile = folder / "callgrind.out"
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", "--compress-strings=no", visac, "--jobs=1", str(source), "-o", str(folder / "out.bin")],
                   check=True, capture_output=True)
    total, ours, known, skip = 0, False, False, False
    for line in profile.read_text().splitlines():
        if line.startswith("ob="):
            ours = line[3:] == visac
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
        lines.append(f"{name:20} {instructions:12,} instructions, recorded {recorded[name]:12,}: {100 * change:+.2f} %")
        if abs(change) > ALLOWANCE:
            beyond.append(name)
    return lines, beyond


def main():
    parser = argparse.ArgumentParser(description="instructions of three compiles against the recorded ones")
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="record what is counted now")
    options = parser.parse_args()
    visac = str((options.bin / "visac").resolve())
    if not shutil.which("valgrind"):
        skip("valgrind is missing: apt-get install valgrind")
    recorded, preset = json.loads(RECORD.read_text()), options.bin.resolve().parent.name
    if preset != recorded["preset"]:
        skip(f"the counts are of the preset {recorded['preset']}, this is {preset}")
    if not options.update and recorded["compiler"] != compiler():
        skip(f"recorded for {recorded['compiler']}, this is {compiler()}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        counted = {name: count(visac, source, folder) for name, source in sources(folder).items()}
    lines, beyond = compare(recorded["instructions"], counted) if not options.update else ([f"{name:20} {n:12,} instructions" for name, n in counted.items()], [])
    print("\n".join(lines))
    if options.update:
        RECORD.write_text(json.dumps({"compiler": compiler(), "preset": recorded["preset"], "instructions": counted}, indent=1) + "\n")
    if beyond:
        sys.exit(f"more than {100 * ALLOWANCE:.0f} % away: {', '.join(beyond)}; look why, then record them: bench/instructions.py build/{recorded['preset']}/bin --update")


if __name__ == "__main__":
    main()
