"""The tests in small pieces, each with its command: a case file, a page, a libcheck case, or a whole test of ctest."""
import glob
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time

# They look at no line of C in a library or program, or measure, or write next to the sources.
LEFT_OUT = {"bench_smoke", "instructions", "host_matmul", "mnist", "corpus", "layers", "grammar", "case_table", "mutants_smoke", "explore_mpi"}
# A mutant that allocates without an end must not take the machine with it.
DATA_BYTES = 6 << 30
FILE_BYTES = 1 << 30


class Unit:
    def __init__(self, name, command, environment, case=None):
        self.name, self.command, self.environment, self.case = name, command, environment, case

    def __repr__(self):
        return self.name


def libcheck_cases(build, name):
    """Names of the TCases of a libcheck program, as its source has them."""
    paths = glob.glob(os.path.join(build.tree, "test", "**", name + ".c"), recursive=True)
    if not paths:
        return []
    with open(paths[0], encoding="utf-8") as file:
        return sorted(set(re.findall(r"= *\w*case(?:_create)?\(\"([^\"]+)\"\)", file.read())))


def units(build):
    """All of them in the order of their names."""
    found = []
    for name, (command, environment) in sorted(build.tests().items()):
        if name in LEFT_OUT or not command:
            continue
        if name == "cases":
            folder = os.path.join(build.tree, "test", "cases")
            found += [Unit(f"cases/{case}", None, environment, os.path.join(folder, case)) for case in sorted(os.listdir(folder)) if case.endswith(".vm")]
        elif name == "doc_examples":
            pages = [word for word in command if word.endswith(".md")]
            rest = [word for word in command if not word.endswith(".md")]
            found += [Unit(f"{name}/{os.path.basename(page)}", rest + [page], environment) for page in pages]
        elif name.startswith("test_") and os.path.dirname(command[0]) == build.programs:
            cases = libcheck_cases(build, name)
            found += [Unit(f"{name}/{case}", command, dict(environment, CK_RUN_CASE=case)) for case in cases] if len(cases) > 1 else [Unit(name, command, environment)]
        else:
            found.append(Unit(name, command, environment))
    return found


def in_child(unit, environment, folder, tree):
    """In a process of its own group: becomes the test, or runs the case file in this interpreter, which has loaded what that needs."""
    os.setsid()
    for what, most in ((resource.RLIMIT_DATA, DATA_BYTES), (resource.RLIMIT_FSIZE, FILE_BYTES), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, resource.getrlimit(what)[1]))  # a test may set its own
    nothing, log = os.open(os.devnull, os.O_RDWR), os.open(os.path.join(folder, "log"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(nothing, 0), os.dup2(log, 1), os.dup2(log, 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if not unit.case:
        os.execvp(unit.command[0], unit.command)
    import run_cases
    wrong = run_cases.run_case(unit.case, run_cases.file_check(), VALIDATOR)
    os.write(1, (wrong or "").encode())
    return 1 if wrong else 0


VALIDATOR = None


def prepare(tree):
    """Loads what case files need, once for all children of this process."""
    global VALIDATOR
    if VALIDATOR is None and os.path.exists(os.path.join(tree, "test", "run_cases.py")):
        os.environ["VISA_SOURCE"] = tree
        sys.path.insert(0, os.path.join(tree, "test"))
        sys.dont_write_bytecode = True
        import run_cases
        VALIDATOR = run_cases.schema_validator()


def execute(unit, build, programs, limit, extra=None):
    """(passed, seconds, how it failed) of the unit with the programs of another folder."""
    def moved(word):
        return word.replace(build.programs, programs)
    prepare(build.tree)
    folder = tempfile.mkdtemp(prefix="unit-")
    environment = dict(os.environ, VISA_BIN=programs, VISA_SOURCE=build.tree, LC_ALL="C", PYTHONDONTWRITEBYTECODE="1", TMPDIR=folder)
    environment.pop("VISA_LONG", None)
    environment.update({k: moved(v) for k, v in unit.environment.items()})
    environment.update(extra or {})
    child = Unit(unit.name, [moved(word) for word in unit.command] if unit.command else None, None, unit.case)
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            status = in_child(child, environment, folder, build.tree)
        finally:
            os._exit(status)
    status, pause = None, 0.002
    while status is None:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(code)
        elif time.monotonic() - begin > limit:
            break
        else:
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
    seconds = time.monotonic() - begin
    try:
        os.killpg(pid, signal.SIGKILL)  # what a test left running, too
    except (ProcessLookupError, PermissionError):
        pass
    if status is None:
        os.waitpid(pid, 0)
    try:
        with open(os.path.join(folder, "log"), "rb") as file:
            text = file.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        text = ""
    shutil.rmtree(folder, ignore_errors=True)
    if status in (0, 77):
        return True, seconds, ""
    return False, seconds, "time limit" if status is None else f"status {status}: " + text.strip()[-300:]
