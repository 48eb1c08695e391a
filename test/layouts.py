#!/usr/bin/env python3
"""visac's objects are compiled against the system's C library and linked with another one, musl (cmake/dependencies.cmake): what the headers of
the two lay down must be the same (layouts.c), and the program must ask for no table of the one that the other has shorter."""
import os
import re
import subprocess
import sys

import visa_tools

# Where a program's tables of letters are behind macros, glibc's go to 255, musl's to 127: __NO_CTYPE (CMakeLists.txt) has them called.
NOT_ASKED_FOR = ("__ctype_tolower_loc", "__ctype_toupper_loc")


def lines(program):
    return subprocess.run([os.path.join(visa_tools.bin_dir(), program)], check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    system, musl = lines("layouts_system"), lines("layouts_musl")
    faults = [f"{a} | musl: {b}" for a, b in zip(system, musl) if a != b] if len(system) == len(musl) else ["not as many lines"]
    with open(os.path.join(visa_tools.bin_dir(), "visac.map"), encoding="utf-8") as file:
        link_map = file.read()
    if not re.search(r"musl\S*/libc\.a\(", link_map):
        faults.append("visac is not linked with musl")
    faults += [f"visac asks for {name}" for name in NOT_ASKED_FOR if re.search(rf"\({name}\.l?o\)", link_map)]
    print("\n".join(faults), end="\n" if faults else "")
    print(f"{len(system)} lines of layouts compared, {len(faults)} faults")
    return 1 if faults or len(system) < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
