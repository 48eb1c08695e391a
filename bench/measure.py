"""Measuring things against each other.

The one idea: on a machine that does other work too, only pairs count. Whatever is compared runs in turns, in an order that rotates from
round to round, and ratios are taken within a round; medians and ranges are over rounds.
"""
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = ("full", "quick", "smoke")


class Missing(Exception):
    """Something that a section needs is not there; the text says what."""


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def ratios(numerators, denominators):
    """Pair by pair."""
    return spread([a / b for a, b in zip(numerators, denominators)])


def take_turns(runs, rounds, warm_up):
    """{name: [sample of each round]} of runs = [(name, function that takes a sample)]."""
    samples = {name: [] for name, _ in runs}
    for index in range(-warm_up, rounds):
        start = index % len(runs)
        for name, take in runs[start:] + runs[:start]:
            sample = take()
            if index >= 0:
                samples[name].append(sample)
    return samples


class Bench:
    """What every section needs: the programs, how much is wanted, a place for files, and the list of what was skipped."""

    def __init__(self, programs, mode, work):
        self.programs, self.mode, self.work = pathlib.Path(programs).resolve(), mode, pathlib.Path(work)
        self.skipped = []

    def count(self, full, quick, smoke=1):
        return {"full": full, "quick": quick, "smoke": smoke}[self.mode]

    def warm_up(self, rounds=2):
        return 0 if self.mode == "smoke" else rounds

    def program(self, name):
        path = self.programs / name
        if not path.exists():
            raise Missing(f"{name} is not built")
        return str(path)

    def peer(self, command, package):
        """The path of somebody else's program, or None, which is noted."""
        path = shutil.which(command)
        if not path:
            self.skip(f"{command}: not installed (apt-get install {package})")
        return path

    def skip(self, text):
        if text not in self.skipped:
            self.skipped.append(text)

    def file(self, name, text=None):
        path = self.work / name
        if text is not None:
            path.write_text(text)
        return str(path)

    def run(self, command, **more):
        """Standard output of a command that must succeed."""
        done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
        if done.returncode != 0:
            raise OSError(f"{' '.join(map(str, command))} ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def lines_of(self, command, **more):
        """What a C benchmark prints: one JSON object a line."""
        return [json.loads(line) for line in self.run(command, **more).splitlines() if line.startswith("{")]

    def process(self, command):
        """Starts a program once: wall and processor time in ms, peak resident memory in MiB, page faults."""
        wall_ns, peak_kib, user_us, system_us, faults = map(int, self.run([self.program("bench_spawn"), *command]).split())
        return {"wall": wall_ns / 1e6, "user": user_us / 1e3, "system": system_us / 1e3, "peak": peak_kib / 1024, "faults": faults}

    def processes(self, commands, rounds, warm_up=2):
        return take_turns([(name, lambda command=command: self.process(command)) for name, command in commands], rounds, self.warm_up(warm_up))


def of(samples, field):
    return [sample[field] for sample in samples]


def work_folder():
    """A folder for outputs, in memory where there is such a place: no disk is measured."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="visa-bench-", dir=memory if os.access(memory, os.W_OK) else None)


# ---- what it was measured on ----

def _first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.splitlines()[0].strip() if done.returncode == 0 and done.stdout else None


def _cpu():
    try:
        return re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()).group(1)
    except (OSError, AttributeError):
        return platform.machine()


def _levels():
    """What the processor has beyond AVX2, of what the machine or the reference makes use of."""
    try:
        flags = set(re.search(r"^flags\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M).group(1).split())
    except (OSError, AttributeError):
        return []
    named = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_vnni": "VNNI", "avx512_bf16": "BF16", "amx_tile": "AMX"}
    return [name for flag, name in named.items() if flag in flags]


def load():
    return round(os.getloadavg()[0], 2)


def _memory_gib():
    try:
        return round(int(re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) / 2**20)
    except (OSError, AttributeError):
        return None


def _package(name):
    line = _first_line(["dpkg-query", "-W", "-f", "${Version}", name])
    return line or None


def environment():
    versions = {"gcc": _first_line(["gcc", "-dumpfullversion"]), "glibc": platform.libc_ver()[1], "linux": platform.release()}
    for package in ("clang-19", "mlir-19-tools", "libisl23", "libdnnl2", "libopenblas0-pthread", "libelf1", "libjansson4"):
        versions[package] = _package(package)
    return {"cpu": _cpu(), "levels": _levels(), "cores": os.cpu_count(), "memory_gib": _memory_gib(), "load": load(),
            "commit": _first_line(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]),
            "versions": {name: version for name, version in versions.items() if version}}
