#!/usr/bin/env python3
"""examples/library: files are what `visac tune` answers (one of them; all with VISA_LONG=1), compute their question, and take the cycles that they say."""
import importlib.util
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

HERE = os.path.join(visa_tools.SOURCE, "examples", "library")
ONE = "attention_decode"


MOST_KIB = 1 << 20


def memory_of_parts():
    """A sum that slices share is checked in the memory of its parts: of the products with whole axes it would be 17 GB."""
    path = os.path.join(visa_tools.SOURCE, "examples/library/gemm_i8.vm")
    program = os.path.join(visa_tools.bin_dir(), "visac")
    pid = os.posix_spawn(program, [program, path, "--check=numbers"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)])
    _, status, usage = os.wait4(pid, 0)
    return [f"gemm_i8.vm --check=numbers: status {status}, {usage.ru_maxrss} KiB"] if status or usage.ru_maxrss > MOST_KIB else []


def main():
    os.environ["VISA_BIN"] = visa_tools.bin_dir()
    spec = importlib.util.spec_from_file_location("kernels", os.path.join(HERE, "library.py"))
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    failures = []
    named = {kernel[0] + ".vm" for kernel in kernels.KERNELS}
    found = {name for name in os.listdir(HERE) if name.endswith(".vm")}
    if named != found:
        failures.append(f"library.py and the folder have other kernels: {sorted(named ^ found)}")
    for kernel in kernels.KERNELS:
        text = kernels.read(kernel[0] + ".vm")
        path = os.path.join(HERE, kernel[0] + ".vm")
        if (kernel[0] == ONE or visa_tools.LONG) and kernels.answer(kernel) != text:
            failures.append(f"{kernel[0]}.vm: not what visac tune answers; library.py --update")
        said = int(re.search(r"// (\d+) cycles", text)[1])
        report = visa_tools.run(["visac", path, "--report"]).text()
        cycles = int(re.search(r"kernel \S+: (\d+) cycles", report)[1])
        least = int(re.search(r"^attainable: .* = (\d+) cycles; reached", report, re.M)[1])
        if not least <= cycles:
            failures.append(f"{kernel[0]}: {cycles} cycles, and no kernel takes less than {least}")
        if cycles != said or kernels.row(kernel, text) not in kernels.read("README.md"):
            failures.append(f"{kernel[0]}: {cycles} cycles, its text says {said}; README.md: {kernels.row(kernel, text)}")
        if kernel[0] == ONE or visa_tools.LONG:
            ran = visa_tools.run(["visac", path, "--check"])
            if ran.status or "agree" not in ran.text() or "proven" not in ran.text():
                failures.append(f"{kernel[0]}: " + ran.text())
    failures += memory_of_parts() if visa_tools.SLOWER == 1 else []
    for failure in failures:
        print(failure)
    print(f"library: {len(named)} kernels, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
