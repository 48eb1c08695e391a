#!/usr/bin/env python3
"""Addresses and orders that visac chooses, over all cases and examples that compile, and the published device functions where VISA_CORPUS names them: no
slower than those of the source by the timing model, and the same values.

  source      addresses and order as written
  order       --order=free: never slower than the text's
  place       --place=auto: the kernel without its addresses: no slower than with them
  text        --place=auto --order=source: placement alone

`--values` also checks what two of them compute (visac --check=numbers). Usage: placement.py [-j N] [--values] [PART-OF-A-NAME ...]"""
import argparse
import glob
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "corpus"))
import visa_tools  # noqa: E402
import published  # noqa: E402

FORMS = {"source": ["--order=source"], "order": ["--order=free"], "place": ["--place=auto"], "text": ["--place=auto", "--order=source"]}
KERNEL = re.compile(r"^kernel (\S+): (\d+) cycles", re.M)


def visac(unit, *options):
    command = [os.path.join(visa_tools.bin_dir(), "visac"), *unit, *options]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=1800, check=False)


def verdicts(done):
    """What a check says of values, without the time that it took."""
    return [line for line in done.stdout.splitlines() if not line.startswith("reference: ")]


def cycles(unit, options):
    done = visac(unit, "--report", *options)
    return dict((name, int(count)) for name, count in KERNEL.findall(done.stdout)) if done.returncode == 0 else None, done.stderr


def units(parts):
    """What visac is told to compile: a file, or one device function of a published crate."""
    folders = (os.path.join(visa_tools.SOURCE, "test", "cases"), os.path.join(visa_tools.SOURCE, "examples"))
    found = [(p,) for f in folders for p in sorted(glob.glob(os.path.join(f, "*.vm")))]
    root = os.environ.get("VISA_CORPUS")
    for function in published.functions(root) if root else []:
        found.append((os.path.join(function.crate, "src", "lib.rs"), f"--kernel={function.path}"))
    if not (parts or root or visa_tools.LONG):
        found = found[::2]  # of what the repository has, a half
    return [unit for unit in found if not parts or any(part in " ".join(unit) for part in parts)]


def judge(unit, values):
    """(lines of faults, kernels, kernels that are faster in another order, without addresses)"""
    name, faults = unit[1] if unit[1:] else os.path.basename(unit[0]), []
    source, _ = cycles(unit, FORMS["source"])
    if not source:
        return faults, 0, 0, 0
    found = {}
    for form in ("order", "place", "text"):
        found[form], said = cycles(unit, FORMS[form])
        if found[form] is None:
            faults.append(f"{name} {' '.join(FORMS[form])}: refused\n{said}")
            return faults, 0, 0, 0
        for kernel, count in found[form].items():
            if count > source[kernel]:
                faults.append(f"{name} {kernel} {' '.join(FORMS[form])}: {count} cycles, as written {source[kernel]}")
    if values:
        for form in ("order", "place"):
            before, after = visac(unit, "--check=numbers"), visac(unit, "--check=numbers", *FORMS[form])
            if (before.returncode, verdicts(before)) != (after.returncode, verdicts(after)):
                faults.append(f"{name} {' '.join(FORMS[form])}: values differ\n{after.stdout}{after.stderr}")
    faster = {form: sum(found[form][k] < source[k] for k in source) for form in found}
    return faults, len(source), faster["order"], faster["place"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--values", action="store_true")
    parser.add_argument("parts", nargs="*")
    a = parser.parse_args()
    with ThreadPoolExecutor(a.j) as pool:
        results = list(pool.map(lambda unit: judge(unit, a.values), units(a.parts)))
    faults = [fault for result in results for fault in result[0]]
    print("\n".join(faults), end="\n" if faults else "")
    kernels, order, place = (sum(result[i] for result in results) for i in (1, 2, 3))
    print(f"{kernels} kernels, {order} faster in another order, {place} without their addresses; {len(faults)} faults")
    if kernels == 0:
        sys.exit("no kernel was judged")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
