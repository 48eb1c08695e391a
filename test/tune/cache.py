#!/usr/bin/env python3
"""Answers of visac tune on disk: the same bytes without a search, never of another question, damaged ones not taken, several processes at once."""
import os
import re
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, failures, verdict

PRODUCT = "C[m, n] = sum(k) A[m, k] * B[n, k]"
CONVOLUTION = "O[y, x, f] = sum(r, s, c) I[y*2 + r, x + s, c] * W[f, r, s, c]"
QUESTIONS = [(PRODUCT, "m=24,n=40,k=96", "i8"), (CONVOLUTION, "y=5,x=6,r=3,s=2,c=32,f=16", "i8")]
MARK = b"// not what a search finds\n"


def tune(base, question, sizes, *more, environment=None):
    env = {**visa_tools.environment(), "XDG_CACHE_HOME": base, **(environment or {})}
    return subprocess.run([os.path.join(visa_tools.bin_dir(), "visac"), "tune", question, "-D", sizes, *more], stdin=subprocess.DEVNULL, capture_output=True, env=env,
                          timeout=visa_tools.HANGS, check=False)


def entries(base):
    folder = os.path.join(base, "visac")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []


def marked(path):
    """Puts a line in front of the answer that an entry has, with its digest: what is found there shows that it was taken."""
    import hashlib
    with open(path, "rb") as file:
        data = file.read()
    at = data.index(b"question of ")
    size = int(re.match(rb"question of (\d+) bytes\n", data[at:])[1])
    answer = data.index(b"\n", at) + 1 + size + 1
    rest = data[64:answer] + MARK + data[answer:]
    write(path, hashlib.sha256(rest).hexdigest().encode() + rest)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def taken(base, *asked):
    return MARK in tune(base, *asked).stdout


def one_question(work, question, sizes, dtype):
    base = os.path.join(work, "deep", dtype + str(len(sizes)))
    asked = (question, sizes, f"--dtype={dtype}", "--budget=0s")  # how long is searched changes nothing here
    os.makedirs(os.path.dirname(base), exist_ok=True)
    first = tune(base, *asked)
    check(first.returncode == 0 and len(entries(base)) == 1, f"{question}: nothing is kept: {first.stderr}")
    if failures:
        return
    path, = entries(base)
    check(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700, "others may read the folder")
    check(tune(base, *asked).stdout == first.stdout, f"{question}: other bytes from the cache")
    with open(path, "rb") as file:
        whole = file.read()
    marked(path)
    check(taken(base, *asked), f"{question}: an answer that is there is not taken")
    check(taken(base, question, ",".join(reversed(sizes.split(","))), *asked[2:]), "the order of -D counts")
    check(tune(base, *asked, "--no-cache").stdout == first.stdout, "--no-cache takes what is kept")
    check(taken(base, *asked), "--no-cache writes")
    with open(path, "rb") as file:
        good = file.read()
    for what, other in [("budget", asked[:-1]), ("type of the result", (*asked, "--out=i8")), ("type", (question, sizes, "--dtype=f8e4m3", asked[-1])),
                        ("number of clusters", (*asked, "--clusters=1")), ("number of chips", (*asked, "--chips=2")), ("number of slices", (*asked, "--slices=64")), ("layout", (*asked, "--free=" + question[0])),
                        ("question", (question.replace("C[", "D[").replace("O[", "P["), *asked[1:]))]:
        write(path, good)
        check(not taken(base, *other), f"an answer to another {what} is taken")
    for at in [0, 63, 64, 80, len(good) // 2, len(good) - 1]:
        write(path, good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
        check(tune(base, *asked).stdout == first.stdout, f"an entry with byte {at} changed is taken")
        with open(path, "rb") as file:
            check(file.read() == whole, "a damaged entry is not written over")
    for data in [b"", good[:10], good[:-1], good + b"x", b"\0" * 5000, good + b"\0" * (1 << 20)]:
        write(path, data)
        check(tune(base, *asked).stdout == first.stdout, f"an entry of {len(data)} bytes is taken")
    os.unlink(path)
    os.mkdir(path)
    check(tune(base, *asked).stdout == first.stdout, "a folder in the place of an entry")
    os.rmdir(path)
    os.mkfifo(path)
    check(tune(base, *asked).stdout == first.stdout, "a pipe in the place of an entry")
    os.unlink(path)
    write(path, good)
    fresh = os.path.join(work, "program")  # a link to it is the same build
    os.makedirs(fresh)
    subprocess.run(["cp", "--no-preserve=timestamps", os.path.join(visa_tools.bin_dir(), "visac"), fresh], check=True)
    os.utime(os.path.join(fresh, "visac"), (1, 1))
    ran = subprocess.run([os.path.join(fresh, "visac"), "tune", question, "-D", *asked[1:]], stdin=subprocess.DEVNULL, capture_output=True,
                         env={**visa_tools.environment(), "XDG_CACHE_HOME": base}, check=False)
    check(ran.returncode == 0 and MARK not in ran.stdout, "an answer of another build is taken")
    subprocess.run(["rm", "-r", fresh], check=True)


def at_once(work):
    """Processes that write the same entry."""
    base, asked = os.path.join(work, "together"), ["tune", PRODUCT, "-D", "m=16,n=16,k=64", "--budget=0s"]
    env = {**visa_tools.environment(), "XDG_CACHE_HOME": base}
    running = [subprocess.Popen([os.path.join(visa_tools.bin_dir(), "visac"), *asked], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
               for _ in range(8)]
    ended = [(*one.communicate(), one.returncode) for one in running]
    check(all(status == 0 and err == b"" and out == ended[0][0] for out, err, status in ended), f"eight at once: {[x[1:] for x in ended]}")
    check(len(entries(base)) == 1, f"eight at once left {entries(base)}")
    marked(entries(base)[0])
    check(taken(base, PRODUCT, "m=16,n=16,k=64", "--budget=0s"), "eight at once wrote a damaged entry")


def places(work):
    """Where it is, and where none can be."""
    home = os.path.join(work, "home")
    os.mkdir(home)
    asked = (PRODUCT, "m=16,n=8,k=32", "--budget=0s")
    for base in ["", "relative"]:  # no absolute path: as if it were not set
        ran = tune(base, *asked, environment={"HOME": home})
        check(ran.returncode == 0 and len(entries(os.path.join(home, ".cache"))) == 1, f"XDG_CACHE_HOME={base!r}: not in ~/.cache/visac: {ran.stderr}")
    for base, of_home in [("/dev/null", home), ("/proc/none", home), ("", "")]:
        ran = tune(base, *asked, environment={"HOME": of_home})
        check(ran.returncode == 0 and ran.stderr == b"", f"no folder in {base!r}: {ran.stderr}")
    ran = visa_tools.run(["visac", "--no-cache", os.path.join(visa_tools.SOURCE, "examples", "matmul.vm")])
    check(ran.status == 2 and "--no-cache belong" in ran.text(), ran.text())


def main():
    with tempfile.TemporaryDirectory() as work:
        for question in QUESTIONS:
            one_question(work, *question)
        at_once(work)
        places(work)
    return verdict("tune's answers on disk")


if __name__ == "__main__":
    sys.exit(main())
