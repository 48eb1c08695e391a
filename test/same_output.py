#!/usr/bin/env python3
"""Do two builds say the same? Compiles every case, example and code block of the documentation with both and compares, byte by byte,
what they print, write and return: binary, tables, JSON, IR, messages, schedule.

For a change that must change nothing. Usage: same_output.py OLD-BIN NEW-BIN [-j N] [PART-OF-A-NAME ...]
OLD-BIN and NEW-BIN are directories that hold `visac` and `visa-objdump`. Exit status: 0 the same, 3 something differs."""
import argparse
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FORMS = (
    ["--emit=tables"],
    ["--emit=json", "--diagnostics-format=json"],
    ["--emit=ir"],
    ["--print-after-all", "--emit=ir", "-Wall"],
    ["--report=json"],
    ["--timing=schedule", "--report"],
)
FENCE = re.compile(r"^```rust ([\w.-]+\.vm)\n(.*?)^```$", re.M | re.S)


def sources(folder):
    """Files as they stand, and the code blocks of the documentation written to `folder`."""
    found = sorted(glob.glob(os.path.join(SOURCE, "test", "cases", "*.vm")) + glob.glob(os.path.join(SOURCE, "examples", "*.vm")))
    for page in sorted(glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True)):
        with open(page, encoding="utf-8") as file:
            for name, text in FENCE.findall(file.read()):
                path = os.path.join(folder, os.path.basename(page) + "." + name)
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text)
                found.append(path)
    return found


def run(command, folder):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=1800, check=False)
    return done.returncode, done.stdout, done.stderr


def outputs(tools, path, forms):
    """(what, status, bytes, messages) of every form; the binary with what visa-objdump says of it."""
    folder, name = os.path.split(path)
    visac = os.path.join(tools, "visac")
    found = [(" ".join(form), *run([visac, name, *form], folder)) for form in forms]
    with tempfile.TemporaryDirectory() as kept:
        binary = os.path.join(kept, "out.bin")
        status, out, messages = run([visac, name, "-o", binary], folder)
        if os.path.exists(binary):
            with open(binary, "rb") as file:
                out += hashlib.sha256(file.read()).hexdigest().encode()
            out += run([os.path.join(tools, "visa-objdump"), "out.bin"], kept)[1]
        found.append(("-o", status, out, messages))
    return found


def first_difference(old, new):
    a, b = old.decode("utf-8", "replace").splitlines(), new.decode("utf-8", "replace").splitlines()
    for i in range(max(len(a), len(b))):
        left, right = (lines[i] if i < len(lines) else "(nothing)" for lines in (a, b))
        if left != right:
            return f"    line {i + 1}\n    - {left[:200]}\n    + {right[:200]}"
    return "    (bytes that are no text)"


def compare(old_tools, new_tools, path, forms):
    told = []
    for old, new in zip(outputs(old_tools, path, forms), outputs(new_tools, path, forms)):
        for what, left, right in zip(("status", "output", "messages"), old[1:], new[1:]):
            if left != right:
                place = f"    {left} -> {right}" if what == "status" else first_difference(left, right)
                told.append(f"{os.path.basename(path)} {old[0]}: {what} differs\n{place}")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("parts", nargs="*")
    a = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(a.j) as pool:
        paths = [p for p in sources(folder) if not a.parts or any(part in p for part in a.parts)]
        results = list(pool.map(lambda p: compare(os.path.abspath(a.old), os.path.abspath(a.new), p, FORMS), paths))
    for told in results:
        print("\n".join(told), end="\n" if told else "")
    different = sum(1 for told in results if told)
    print(f"{len(paths)} files, {len(FORMS) + 1} outputs of each: {different} files differ")
    return 3 if different else 0


if __name__ == "__main__":
    sys.exit(main())
