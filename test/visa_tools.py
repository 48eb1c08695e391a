"""Where the programs are and how the test scripts run them."""
import importlib
import os
import shutil
import struct
import subprocess
import sys

SOURCE = os.environ.get("VISA_SOURCE") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIPPED = 77
# A script uses what lies in other rooms of test/ by its name alone.
sys.path += sorted(entry.path for entry in os.scandir(os.path.dirname(os.path.abspath(__file__))) if entry.is_dir() and entry.name not in ("fuzz", "mutants"))
LONG = bool(os.environ.get("VISA_LONG"))
# Sanitizers make each run several times as dear: samples are so many times smaller there (CMakeLists.txt says how many). What differs by chance
# alone is drawn in full in the other build.
SLOWER = int(os.environ.get("VISA_SLOWER", "1"))
# In the long form samples are so many times larger: it has to end within the hour, both builds.
LONGER = (8 if SLOWER == 1 else 3) if LONG else 1


def few(short):
    """How many of a sample, `short` in the short form."""
    return max(1, short * LONGER // SLOWER)


def every(step):
    """Every so many of a row, every `step`-th in the short form."""
    return max(1, step * SLOWER // LONGER)


# What a sanitizer or a crash prints.
DAMAGE = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:", "Assertion `", "internal error")


def bin_dir():
    path = os.environ.get("VISA_BIN") or os.path.join(SOURCE, "build", "dev", "bin")
    path = os.path.abspath(path)
    if not os.path.exists(os.path.join(path, "visac")):
        sys.exit(f"{path} has no visac: set VISA_BIN to the directory with the programs")
    return path


def environment(path=None):
    env = dict(os.environ)
    env["PATH"] = (path or bin_dir()) + os.pathsep + env.get("PATH", "")
    env["LC_ALL"] = "C"
    env["XDG_CACHE_HOME"] = "/dev/null"  # no answer of a search is kept from run to run
    # A tensor too large to allocate is an error that the programs report; a sanitizer must not end them for it.
    env["ASAN_OPTIONS"] = "allocator_may_return_null=1:" + env.get("ASAN_OPTIONS", "")
    return env


def mpi():
    """mpirun and the environment in which it starts several processes here; None, and a word, where MPI is not installed."""
    mpirun = shutil.which("mpirun")
    if not os.path.exists(os.path.join(bin_dir(), "libvisa_mpi.so")) or not mpirun:
        print("skipped: no libvisa_mpi.so or no mpirun: apt-get install libopenmpi-dev openmpi-bin")
        return None
    env = {**environment(), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
           "OMPI_MCA_mpi_yield_when_idle": "1"}
    env["ASAN_OPTIONS"] += ":detect_leaks=0"  # MPI's own
    return mpirun, env


def mpi_run(env, command, text=None):
    """A command in that environment, with a text as its input or none."""
    return subprocess.run(command, input=text, stdin=None if text else subprocess.DEVNULL, capture_output=True, env=env, timeout=HANGS, check=False)


def without_tracer_crash(env, start):
    """start(env), again without a search for leaks where LeakSanitizer's own tracer crashed: it does so at the end of some runs that map JIT-compiled
    code (test/cases/CMakeLists.txt)."""
    done = start(env)
    if b"LeakSanitizer has encountered a fatal error" not in (done.stdout or b"") + (done.stderr or b""):
        return done
    return start({**env, "ASAN_OPTIONS": env["ASAN_OPTIONS"] + ":detect_leaks=0"})


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def crashed(self):
        text = self.out + self.err
        return self.status < 0 or self.status > 3 or any(word.encode() in text for word in DAMAGE)

    def text(self):
        return (self.out + self.err).decode("utf-8", "replace")


# Seconds, against hanging only: no verdict depends on how fast the machine is.
HANGS = 1800


def run(arguments, stdin=None, cwd=None, timeout=HANGS):
    """Runs one of the programs without a shell. Status 124 stands for a time limit that was reached."""
    command = [os.path.join(bin_dir(), arguments[0])] + [str(a) for a in arguments[1:]]
    try:
        done = without_tracer_crash(environment(), lambda env: subprocess.run(
            command, input=stdin if stdin is not None else b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, timeout=timeout, env=env,
            check=False))
    except subprocess.TimeoutExpired as late:
        return Result(124, late.stdout or b"", late.stderr or b"")
    return Result(done.returncode, done.stdout, done.stderr)


def of_debian(module, package):
    """A module that belongs to Debian's Python: the script begins again with that one where this one has none, and is skipped where neither has."""
    try:
        return importlib.import_module(module)
    except ImportError:
        if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3") and os.path.exists("/usr/bin/python3"):
            os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
        print(f"skipped: {module} is missing: apt-get install {package}")
        sys.exit(SKIPPED)


def write_npy(path, shape, values, letter="f"):
    """Values of the struct letter as a NumPy file of that shape, without NumPy."""
    header = f"{{'descr': '{dict(f='<f4', b='|i1')[letter]}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}{letter}", *values))


def ended(faults, summary, most=None):
    """The exit status of a test: each fault is printed, of many the first `most`, and then what was done."""
    for fault in faults[:most]:
        print(fault)
    print(summary)
    return 1 if faults else 0


def page_is(path, text, rows, arguments):
    """The exit status of a test whose page is made of rows: with --update it is written, else compared."""
    name, program = os.path.relpath(path, SOURCE), os.path.relpath(sys.argv[0], SOURCE)
    if "--update" in arguments:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return 0
    print(f"{name} is not what {rows} says: run {program} --update")
    return 1


def commands(stream):
    """The commands of a context in a dump of visa-objdump, those of loops too, in the order of the section."""
    for command in stream:
        yield command
        yield from command.get("advances", ()) if command["op"] == "loop" else ()
        yield from commands(command.get("body", ()))


def shared(*parts):
    """A file of the reference material next to the repository, or None."""
    path = os.path.join(SOURCE, "..", "shared", *parts)
    return path if os.path.exists(path) else None


class Watched(dict):
    """What a case expects, which knows what of it was looked at: an expectation that no test reads would be agreed with whatever it says."""

    def __init__(self, items):
        super().__init__(items)
        self.seen = set()

    def __getitem__(self, key):
        self.seen.add(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.seen.add(key)
        return super().get(key, default)

    def items(self):
        self.seen.update(self)
        return super().items()


def unread(cases, not_compared):
    """Lines about expectations of the cases that were judged: those that nobody read and that `not_compared` ({key: reason}) does not name,
    and those that it names although somebody reads them all."""
    by_key = {}
    for c in cases:
        for key in c["expect"]:
            row = by_key.setdefault(key, [0, []])
            row[0] += 1
            if key not in c["expect"].seen:
                row[1].append(c["id"])
    lines = [f"expectation `{key}` is compared by nobody in {len(ids)} of {count} cases ({ids[0]}, ..)"
             for key, (count, ids) in sorted(by_key.items()) if ids and key not in not_compared]
    return lines + [f"expectation `{key}` is compared: take it off the list of those that are not" for key, (_, ids) in sorted(by_key.items())
                    if not ids and key in not_compared]


def engine_rows(source=SOURCE):
    """The text of all rows of the engines, in datapath order."""
    text = ""
    with open(os.path.join(source, "target", "engines.def"), encoding="utf-8") as engines:
        for line in engines:
            if line.startswith('#include "'):
                with open(os.path.join(source, line.split('"')[1]), encoding="utf-8") as rows:
                    text += rows.read()
    return text
