#!/usr/bin/env python3
"""What the programs write, and what they leave alone: outputs that are inputs by any name, files that keep what they are, pipes, devices,
closed and full streams, signals, names that are no text. Faults at every single write are test/files/write_faults.py's.

Usage: outputs.py [-v]"""
import glob
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

MATMUL = os.path.join(visa_tools.SOURCE, "examples", "matmul.vm")
STREAM = "#[stream(compute = 1)]\nfn twice(x: Stream<Tile<f32, 1, 2>, {[2]}>) -> Stream<Tile<f32, 1, 2>, {[2]}> { x.map(exp) }\n"
NASTY = b"n\nl\x1b[31m\xff"
NASTY_SHOWN = "n\\nl\\x1b[31m\\xff"
NOBODY = 65534
IS_ROOT = os.geteuid() == 0

checks, faults = 0, []


def check(good, *what):
    global checks
    checks += 1
    if not good:
        faults.append(" ".join(str(w)[:400] for w in what))
    return good


class Done:
    def __init__(self, process, out, err):
        self.status, self.out, self.err = process.returncode, out, err.decode("utf-8", "backslashreplace")


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def start(folder, command, as_user=None, limit=None, closed=(), ignored=(), **streams):
    def prepare():
        for number in STOPS: # whoever runs the tests may have been started by nohup, or with &
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if as_user is not None:
            os.setgroups([])
            os.setgid(as_user)
            os.setuid(as_user)
        for fd in closed:
            os.close(fd)
    program = [os.path.join(visa_tools.bin_dir(), command[0])] + list(command[1:])
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(program, cwd=folder, env=visa_tools.environment(), preexec_fn=prepare, **streams)


def run(folder, *command, text=None, **how):
    process = start(folder, command, **({"stdin": subprocess.PIPE, **how} if text is not None else how))
    out, err = process.communicate(text, timeout=1800)
    done = Done(process, out or b"", err or b"")
    check(0 <= done.status <= 3 and not any(word in done.err for word in visa_tools.DAMAGE), command, done.status, done.err)
    return done


def content(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def put(folder, name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def snapshot(folder):
    """Every file by its name: type, mode, owner and bytes, or the link."""
    found = {}
    for entry in os.listdir(os.fsencode(folder)):
        path = os.path.join(os.fsencode(folder), entry)
        st = os.lstat(path)
        regular = stat.S_ISREG(st.st_mode)
        found[entry] = (st.st_mode, st.st_uid, st.st_gid, content(folder, entry.decode("utf-8", "surrogateescape")) if regular else None)
    return found


def prepare(folder):
    shutil.copy(MATMUL, os.path.join(folder, "k.vm"))
    put(folder, "step.vm", STREAM.encode())
    put(folder, "tokens.json", b"[[[1, 2]], [[3, 4]]]")
    with open(MATMUL, encoding="utf-8") as file:
        os.mkdir(os.path.join(folder, "deep"))
        put(folder, "deep/inner.vm", file.read().encode())
    put(folder, "outer.vm", b"mod deep { mod inner; }\n")
    put(folder, "has.vm", b"mod inner;\n")
    put(folder, "other.vm", b"pub const SIZE: usize = 4;\n")
    put(folder, "two.vm", b"mod other;\nmod inner;\n")
    shutil.copy(os.path.join(folder, "deep/inner.vm"), os.path.join(folder, "inner.vm"))
    for name in ("k", "step"):
        run(folder, "visac", f"{name}.vm", "-o", f"{name}.bin")
    run(folder, "visa-run", "k.bin", "--output", "c.npy")
    run(folder, "visa-run", "step.bin", "--input", "x=tokens.json", "--output", "out=/dev/null", "--sizes=sizes.json")
    put(folder, "a.raw", bytes(2048))


# ---- an output that is an input, or another output ----

def names_of(folder, name):
    """Other names of a file: itself, through a folder, a link, a link to the link, a hard link."""
    os.symlink(name, os.path.join(folder, "link"))
    os.symlink("link", os.path.join(folder, "link2"))
    os.link(os.path.join(folder, name), os.path.join(folder, "hard"))
    return [name, "./deep/../" + name, os.path.join(folder, name), "link", "link2", "hard"]


def refuses_inputs(folder):
    runs = [
        ("k.vm", ["visac", "k.vm"], ["-o={}", "--trace={}", "--report --trace={} -o=x", "--emit=tables -o={}", "--sweep=M=32 -o={}", "--draw=commit -o={}", "--check -o={}"]),
        ("k.vm", ["visac", "diff", "k.bin", "k.vm"], ["-o={}"]),
        ("inner.vm", ["visac", "has.vm"], ["-o={}", "--trace={}", "--emit=obj -o={}", "--report -o={}", "--format -o={}", "--upgrade -o={}"]),
        ("inner.vm", ["visac", "two.vm"], ["-o={}"]),
        ("tokens.json", ["visac", "tune", "step.vm", "--input=x=tokens.json"], ["-o={}"]),
        ("sizes.json", ["visac", "step.vm", "--sizes=sizes.json", "--emit=step-json"], ["-o={}"]),
        ("k.bin", ["visa-run", "k.bin"], ["--output={}", "--output=out={}", "--output=out:buffer={}", "--output=out[N,M]={}", "--trace={}", "--check --output={}"]),
        ("a.raw", ["visa-run", "k.bin", "--input=a=a.raw"], ["--output={}", "--trace={}"]),
        ("a.raw", ["visa-run", "k.bin", "--input=a:buffer=a.raw"], ["--output=out={}"]),
        ("step.bin", ["visa-run", "step.bin", "--input=x=tokens.json"], ["--output=out={}", "--sizes={}"]),
        ("tokens.json", ["visa-run", "step.bin", "--input=x=tokens.json"], ["--output=out={}", "--sizes={}"]),
        ("k.bin", ["visa-objdump", "step.bin", "k.bin"], ["-o={}", "--json -o={}"]),
    ]
    for name, command, outputs in runs:
        for output in outputs:
            for other in names_of(folder, name):
                before = snapshot(folder)
                words = [part for w in output.split() for part in (w.format(other).split("=", 1) if w.startswith("-o=") else [w.format(other)])]
                done = run(folder, *command, *words)
                check(done.status == 2 and "error[E-OUTPUT-INPUT]" in done.err and other in done.err and name in done.err and "help: " in done.err,
                      command, words, "gives", done.status, done.err)
                check(snapshot(folder) == before, command, words, "changed a file")
            for other in ("link", "link2", "hard"):
                os.unlink(os.path.join(folder, other))
    before = snapshot(folder)
    with open(os.path.join(folder, "k.vm"), "rb") as stdin:
        done = run(folder, "visac", "-", "-o", "k.vm", stdin=stdin)
    check(done.status == 2 and "E-OUTPUT-INPUT" in done.err, "standard input:", done.err)
    with open(os.path.join(folder, "k.vm"), "ab") as stdout:
        done = run(folder, "visac", "k.vm", "--emit=tables", stdout=stdout)
    check(done.status == 2 and "E-OUTPUT-INPUT" in done.err, "standard output:", done.err)
    check(snapshot(folder) == before, "a standard stream changed a file")
    done = run(folder, "visac", "--format", "k.vm", "-o", "k.vm")
    check(done.status == 0 and content(folder, "k.vm"), "--format is to write over its input:", done.err)
    before = snapshot(folder)
    done = run(folder, "visac", "k.vm", "-o", "new.bin", "--trace=new.json")
    check(done.status == 2 and "-o new.bin" in done.err and snapshot(folder) == before, "-o of --trace alone is dropped:", done.status, done.err)


def refuses_two(folder):
    os.symlink("new", os.path.join(folder, "to-new"))
    os.symlink("c.npy", os.path.join(folder, "to-c"))
    os.symlink("deep", os.path.join(folder, "to-deep"))
    pairs = [("new", "new"), ("new", "./new"), ("new", "to-new"), ("c.npy", "to-c"), ("deep/x", "to-deep/x"), ("c.npy", "deep/../c.npy")]
    for first, second in pairs:
        before = snapshot(folder)
        for words in ([f"--output=out={first}", f"--output=out:buffer={second}"], [f"--output={first}", f"--trace={second}"]):
            done = run(folder, "visa-run", "k.bin", *words)
            check(done.status == 2 and "error[E-OUTPUT-TWICE]" in done.err and first in done.err and second in done.err and "help: " in done.err, words, done.status, done.err)
        done = run(folder, "visac", "k.vm", "--report", "-o", first, f"--trace={second}")
        check(done.status == 2 and "error[E-OUTPUT-TWICE]" in done.err, first, second, done.err)
        check(snapshot(folder) == before, first, second, "changed a file")
    done = run(folder, "visa-run", "k.bin", "--output=out=w.safetensors:a", "--output=out:buffer=w.safetensors:b")
    check(done.status == 2 and "E-OUTPUT-TWICE" in done.err, "two tensors of one file:", done.err)
    check(run(folder, "visa-run", "k.bin", "--output=/dev/null", "--trace=/dev/null").status == 0, "/dev/null takes several")
    done = run(folder, "visa-run", "k.bin", "--output=out=one", "--output=out=two.npy")
    check(done.status == 0 and len(content(folder, "one")) == 512, "a port may go to two files", done.err)


# ---- what is replaced keeps what it is ----

def keeps(folder):
    expected = content(folder, "c.npy")
    for mode in (0o600, 0o640, 0o664, 0o755, 0o4755, 0o222 if IS_ROOT else 0o622):
        put(folder, "kept", b"old")
        os.chmod(os.path.join(folder, "kept"), mode)
        done = run(folder, "visa-run", "k.bin", "--output", "kept")
        check(done.status == 0 and stat.S_IMODE(os.stat(os.path.join(folder, "kept")).st_mode) == mode, f"mode {mode:o}:", done.err)
    os.unlink(os.path.join(folder, "kept"))
    mask = os.umask(0o027)
    run(folder, "visa-run", "k.bin", "--output", "made.npy")
    os.umask(mask)
    check(stat.S_IMODE(os.stat(os.path.join(folder, "made.npy")).st_mode) == 0o640, "the mask of a new file")
    os.mkdir(os.path.join(folder, "far"))
    put(folder, "far/target.npy", b"old")
    os.symlink("far/target.npy", os.path.join(folder, "l1"))
    os.symlink(os.path.join(folder, "l1"), os.path.join(folder, "l2"))
    os.symlink("far/none.npy", os.path.join(folder, "l3"))
    for link, target in (("l2", "far/target.npy"), ("l3", "far/none.npy")):
        done = run(folder, "visa-run", "k.bin", "--output", f"{link}")
        check(done.status == 0 and os.path.islink(os.path.join(folder, link)) and len(content(folder, target)) == 512, link, done.err)
    done = run(folder, "visa-run", "k.bin", "--output", "c.npy")
    check(content(folder, "c.npy") == expected, "the same input, the same bytes")
    try:
        os.setxattr(os.path.join(folder, "c.npy"), "user.note", b"mine")
    except OSError:
        print("skipped: no extended attributes here")
    else:
        run(folder, "visa-run", "k.bin", "--output", "c.npy")
        check(os.getxattr(os.path.join(folder, "c.npy"), "user.note") == b"mine", "an attribute is lost")
    if not IS_ROOT:
        print("skipped: only root can give files away")
        return
    os.chown(os.path.join(folder, "c.npy"), 1234, 2345)
    run(folder, "visa-run", "k.bin", "--output", "c.npy")
    st = os.stat(os.path.join(folder, "c.npy"))
    check((st.st_uid, st.st_gid) == (1234, 2345), "the owner is lost", st)
    # Another user may write it by its group, and cannot give the new one away: its group is another, and gets what everybody had.
    os.chmod(folder, 0o777)
    os.chown(os.path.join(folder, "c.npy"), 1234, NOBODY)
    os.chmod(os.path.join(folder, "c.npy"), 0o664)
    done = run(folder, "visa-run", "k.bin", "--output", "c.npy", as_user=NOBODY)
    st = os.stat(os.path.join(folder, "c.npy"))
    check(done.status == 0 and (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (NOBODY, NOBODY, 0o664), "by the group:", st, done.err)
    os.chown(os.path.join(folder, "c.npy"), 1234, 2345)
    os.chmod(os.path.join(folder, "c.npy"), 0o646)
    done = run(folder, "visa-run", "k.bin", "--output", "c.npy", as_user=NOBODY)
    st = os.stat(os.path.join(folder, "c.npy"))
    check(done.status == 0 and stat.S_IMODE(st.st_mode) == 0o646, "by everybody:", oct(st.st_mode), done.err)
    os.chmod(folder, 0o755)


def respects_read_only(folder):
    put(folder, "fixed", b"old")
    for mode, user in ((0o444, None), (0o400, None), (0o000, None)) + (((0o644, NOBODY),) if IS_ROOT else ()):
        os.chmod(os.path.join(folder, "fixed"), mode)
        os.chmod(folder, 0o777)
        for command in (["visac", "k.vm", "-o", "fixed"], ["visa-run", "k.bin", "--output", "fixed"], ["visa-run", "k.bin", "--trace=fixed"], ["visa-objdump", "k.bin", "-o", "fixed"]):
            before = snapshot(folder)
            done = run(folder, *command, as_user=user)
            check(done.status == 1 and "error[E-OUTPUT-READ-ONLY]" in done.err and "fixed" in done.err and "help: " in done.err, command, oct(mode), user, done.err)
            check(snapshot(folder) == before, command, "changed a file")
        os.chmod(folder, 0o755)
    if IS_ROOT:
        done = run(folder, "visac", "k.vm", "-o", "other.bin", as_user=NOBODY)
        check(done.status == 1 and "takes no other file" in done.err, "a folder of another user:", done.err)


# ---- what is no file ----

def pipes_and_devices(folder):
    binary, raw = content(folder, "k.bin"), None
    run(folder, "visa-run", "k.bin", "--output", "c.raw")
    raw = content(folder, "c.raw")
    os.mkfifo(os.path.join(folder, "pipe"))
    for command, wanted in ((["visac", "k.vm", "-o", "pipe"], binary), (["visa-run", "k.bin", "--output", "pipe"], raw)):
        reader = subprocess.Popen(["cat", "pipe"], cwd=folder, stdout=subprocess.PIPE)
        done = run(folder, *command)
        check(done.status == 0 and reader.communicate(timeout=1800)[0] == wanted and stat.S_ISFIFO(os.stat(os.path.join(folder, "pipe")).st_mode), command, done.err)
    for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        done = run(folder, "visac", "k.vm", "-o", name)
        check(done.status == 0 and done.out == binary, name, done.err)
        with open(os.path.join(folder, "appended"), "wb") as out:
            out.write(b"before")
            out.flush()
            done = run(folder, "visac", "k.vm", "-o", name, stdout=out)
        check(done.status == 0 and content(folder, "appended") == b"before" + binary, name, "appended:", done.err)
        done = run(folder, "visac", "k.vm", "-o", name, closed=[1])
        check(done.status == 1 and "E-FILE-WRITE" in done.err, name, "closed:", done.status, done.err)
    end = os.open(os.path.join(folder, "third"), os.O_WRONLY | os.O_CREAT, 0o600)
    done = run(folder, "visac", "k.vm", "-o", f"/dev/fd/{end}", pass_fds=[end])
    os.close(end)
    check(done.status == 0 and content(folder, "third") == binary, "/dev/fd/N:", done.err)
    for source in ("tokens.json", "/dev/stdin", "-", "pipe"):
        writer = subprocess.Popen(["cp", "tokens.json", "pipe"], cwd=folder) if source == "pipe" else None
        done = run(folder, "visa-run", "step.bin", "--input", f"x={source}", "--output", "out=t.json", text=content(folder, "tokens.json"))
        check(done.status == 0 and json.loads(content(folder, "t.json")), source, done.err)
        if writer:
            writer.wait(60)
    for words in (["--input", "a=-", "--input", "b=-"], ["--input", "a=pipe", "--input", "b=pipe"], ["--input", "a=/dev/stdin", "--input", "b=-"]):
        done = run(folder, "visa-run", "k.bin", *words, text=b"")
        check(done.status == 2 and "error[E-INPUT-TWICE]" in done.err and "help: " in done.err, words, done.err)
    done = run(folder, "visa-run", "k.bin", "--input", "a=a.raw", "--input", "a=a.raw")
    check(done.status == 1 and "error[E-PORT]" in done.err and "twice" in done.err, "a port twice:", done.err)
    done = run(folder, "visa-run", "step.bin", "--input", "x=tokens.json", "--input", "x=tokens.json")
    check(done.status == 1 and "error[E-PORT]" in done.err and "twice" in done.err, "a stream twice:", done.err)
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(folder, "socket"))
    os.symlink("loop", os.path.join(folder, "loop"))
    for name, word in (("socket", "socket"), ("deep", "directory"), ("deep/", "directory"), (".", "directory"), ("", "No such file"), ("none/x", "No such file"),
                       ("k.vm/x", "Not a directory"), ("loop", "ymbolic link"), ("x" * 300, "name too long"), ("/dev/full", "No space"), ("/proc/1/fd/0", "another process")):
        before = snapshot(folder)
        for command in (["visac", "k.vm", "-o", name], ["visa-run", "k.bin", f"--output=out={name}"], ["visa-run", "k.bin", f"--trace={name}"], ["visa-objdump", "k.bin", "-o", name]):
            done = run(folder, *command)
            check(done.status == 1 and "error[E-FILE-WRITE]: cannot write " in done.err and (word.lower() in done.err.lower() or (name.startswith("/proc/1") and not IS_ROOT)),
                  command, done.status, done.err)
        check(snapshot(folder) == before, name, "changed a file")
    server.close()


def closed_and_full(folder):
    printing = (["visac", "k.vm", "--emit=tables"], ["visac", "k.vm", "--check"], ["visac", "--help"], ["visa-run", "k.bin", "--report"], ["visa-run", "k.bin", "--list"],
                ["visa-run", "k.bin", "--report", "--output", "n.npy"], ["visa-run", "k.bin", "--check", "--report", "--trace=n.npy"], ["visa-objdump", "k.bin"], ["visa-lsp", "--help"])
    for command in printing:
        before = snapshot(folder)
        with open("/dev/full", "wb") as full:
            done = run(folder, *command, stdout=full)
        check(done.status == 1 and "error[E-FILE-WRITE]" in done.err, command, "full:", done.status, done.err)
        done = run(folder, *command, closed=[1])
        check(done.status == 1 and "error[E-FILE-WRITE]" in done.err, command, "closed:", done.status, done.err)
        gone, end = os.pipe()
        os.close(gone)
        with os.fdopen(end, "wb") as pipe:
            done = run(folder, *command, stdout=pipe)
        check(done.status == 1 and "error[E-FILE-WRITE]" in done.err and "Broken pipe" in done.err, command, "no reader:", done.status, done.err)
        check(snapshot(folder) == before, command, "left a file")
    binary = content(folder, "k.bin")
    for closed in ([0], [1], [2], [0, 1], [1, 2], [0, 1, 2]):
        done = run(folder, "visac", "k.vm", "-o", "n.bin", "-Wperformance", "--time-report", "--print-after-all", closed=closed)
        check(done.status == 0 and content(folder, "n.bin") == binary, "closed", closed, "what is printed went into a file", done.status, done.err)
    check(run(folder, "visac", "-", closed=[0]).status == 1, "a closed standard input")
    for limit in (0, 100):
        put(folder, "n.bin", b"old" * 100)
        done = run(folder, "visac", "k.vm", "-o", "n.bin", limit=limit)
        check(done.status == 1 and "error[E-FILE-WRITE]" in done.err and content(folder, "n.bin") == b"old" * 100, "SIGXFSZ:", done.status, done.err)
    os.unlink(os.path.join(folder, "n.bin"))


def signals(folder):
    """While one output waits for the reader of a pipe, the other one is unfinished."""
    os.mkfifo(os.path.join(folder, "slow"))
    put(folder, "n.npy", b"old")
    before = snapshot(folder)
    for number in STOPS:
        process = start(folder, ["visa-run", "k.bin", "--output=out=slow", "--output=out=n.npy"])
        while not glob.glob(os.path.join(folder, ".visa-*.tmp")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=1800)
        name = signal.Signals(number).name
        check(process.returncode == -number and f"visa-run: error[E-STOPPED]: stopped by {name}: no file was written\n" == err.decode(), name, process.returncode, err)
        check(snapshot(folder) == before, name, "left or changed a file")
    process = start(folder, ["visa-run", "k.bin", "--output=out=slow", "--output=out=n.npy"], ignored=[signal.SIGHUP])
    while not glob.glob(os.path.join(folder, ".visa-*.tmp")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGHUP)
    reader = subprocess.run(["cat", "slow"], cwd=folder, stdout=subprocess.PIPE, timeout=1800, check=False)
    _, err = process.communicate(timeout=1800)
    check(process.returncode == 0 and len(reader.stdout) == 512 and content(folder, "n.npy") != b"old", "nohup:", process.returncode, err)
    os.unlink(os.path.join(folder, "slow"))


# ---- names that are no text ----

def names(folder):
    nasty = os.fsdecode(NASTY)
    shutil.copy(os.path.join(folder, "k.vm"), os.path.join(folder, nasty))
    done = run(folder, "visac", nasty, "-o", nasty + ".bin")
    check(done.status == 0 and content(folder, nasty + ".bin") == content(folder, "k.bin"), "a file of any name", done.err)
    put(folder, nasty, b"axes![\n")
    commands = (["visac", nasty], ["visac", nasty + ".none"], ["visac", "k.vm", "-o", nasty + "/x"], ["visac", "k.vm", nasty], ["visa-run", nasty], ["visa-run", nasty + ".none"],
                ["visa-run", "k.bin", f"--input=a={nasty}"], ["visa-run", "k.bin", f"--output=out={nasty}/x"], ["visa-run", nasty + ".bin", f"--trace={nasty}.bin"],
                ["visa-objdump", nasty], ["visac", "--format-check", nasty], ["visac", "step.vm", f"--sizes={nasty}", "--emit=step-json"],
                ["visac", "k.vm", f"--kernel={nasty}"], ["visac", f"--emit={nasty}", "k.vm"], ["visa-run", "k.bin", f"--output={nasty}=x"], ["visac", "diff", nasty + ".bin", nasty])
    for command in commands:
        done = run(folder, *command)
        visible = [line for line in done.err.split("\n") if line]
        check(done.status in (1, 2) and all(c >= " " for line in visible for c in line) and "\\xff" in done.err, command, "shows", repr(done.err))
        check("\x1b" not in done.err and not any(line.startswith("l\\x1b") for line in visible), command, "breaks a line:", repr(done.err))
    for form in ("json", "sarif"):
        for command in (["visac", nasty], ["visac", nasty + ".none"], ["visac", "k.vm", "-o", nasty + "/x"], ["visac", "k.vm", "-o", "k.vm"], ["visac", "k.vm", "-o", "/dev/full"],
                        ["visac", "has.vm", "-o", "inner.vm"], ["visac", "k.vm", "--emit=tables"]):
            with open("/dev/full" if command[-1] == "--emit=tables" else os.devnull, "wb") as out:
                done = run(folder, *command, f"--diagnostics-format={form}", stdout=out)
            try:
                document = json.loads(done.err)
            except ValueError:
                check(False, command, form, "is no JSON:", done.err)
                continue
            ids = [d["id"] for d in document] if form == "json" else [r["ruleId"] for r in document["runs"][0]["results"]]
            check(done.status in (1, 2) and len(ids) == 1 and ids[0].startswith("E-"), command, form, ids)
    for rest in (nasty, nasty + ".bin"):
        os.unlink(os.path.join(folder, rest))


def large(folder):
    with open(os.path.join(folder, "sparse"), "wb") as file:
        file.truncate(1 << 40)
    for command in (["visac", "sparse"], ["visa-run", "sparse"], ["visa-objdump", "sparse"], ["visa-run", "k.bin", "--input=a=sparse"], ["visa-run", "step.bin", "--input=x=sparse"],
                    ["visac", "deep"], ["visa-run", "deep"], ["visa-run", "k.bin", "--input=a=deep"]):
        done = run(folder, *command)
        check(done.status == 1 and "error[E-" in done.err, command, done.status, done.err)
    os.unlink(os.path.join(folder, "sparse"))


# ---- one way ----

WRITES = re.compile(r'\b(fopen|fdopen|freopen)\s*\([^;]*"[wa]|\bO_(WRONLY|RDWR|CREAT)\b|\b(rename|renameat2?|mkstemps?|mkdtemp|tmpfile|unlink|unlinkat|remove|creat|ftruncate|truncate|linkat?)\s*\(|'
                    r'\bp?writev?\s*\((?!`)')
# MPI's other processes are silent; the language server's own function is called write; memory that is shared is a file without a name.
ALLOWED = {("tools/ranks_load.c", "freopen("), ("tools/musl.c", "renameat2("), ("runtime/machine/memory.c", "ftruncate("), ("lsp/server.c", "s->write("), ("lsp/server.h", "write)("), ("lsp/server.c", "write)(")}


def one_way():
    folders = ["codegen", "frontend", "include", "ir", "libvisa", "lsp", "passes", "runtime", "support", "target", "tools"]
    seen = 0
    for path in sorted(p for f in folders for p in glob.glob(os.path.join(visa_tools.SOURCE, f, "**", "*.[ch]"), recursive=True)):
        name = os.path.relpath(path, visa_tools.SOURCE)
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                seen += 1
                if WRITES.search(line) and not line.strip().startswith(("/*", "*", "//")) and name not in ("support/output.c", "support/stop.c"):
                    check(any(name == n and word in line for n, word in ALLOWED), f"{name}:{number}: a file is written next to support/output.c:", line.strip())
    check(seen > 100000, "sources were read:", seen)


def main():
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)) # files of 1 TiB are made here, of nothing
    for test in (refuses_inputs, refuses_two, keeps, respects_read_only, pipes_and_devices, closed_and_full, signals, names, large):
        before = len(faults)
        with tempfile.TemporaryDirectory() as folder:
            prepare(folder)
            test(folder)
            left = [f for f in os.listdir(folder) if f.startswith(".visa-")]
            check(not left, test.__name__, "left", left)
        if "-v" in sys.argv:
            print(f"{test.__name__}: {len(faults) - before} faults")
    one_way()
    return visa_tools.ended(faults, f"{checks - len(faults)} passed, {len(faults)} failed", 60)


if __name__ == "__main__":
    sys.exit(main())
