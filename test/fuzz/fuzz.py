#!/usr/bin/env python3
"""Runs the fuzzers of the preset `fuzz`, one after the other: from the committed corpora, the case files and examples, with the language's words as a
dictionary.

Usage: fuzz.py BUILD [TARGET ...] [--time=SECONDS of each target, 60] [--merge]

What is found is kept in BUILD/fuzz/TARGET, so that the next run goes on there; an input that crashes, hangs (10 s, of the processor where it
is run once more: libFuzzer goes by the clock, and a machine may be busy) or leaks is in BUILD/fuzz/faults, and makes the status 1. --merge replaces the committed corpora by the smallest set of small inputs that reaches all
that they and the found ones reach."""
import os
import random
import re
import resource
import shutil
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(SOURCE, "test", "fuzz", "corpus")
# Largest input of the committed set, bytes: the suite runs it in every build.
TARGETS = {"source": 700, "binary": 6000, "tensor": 400, "editor": 700, "lsp": 900, "session": 700, "step": 700}
LONGEST = 1 << 14 # bytes of an input while fuzzing
HANGS = 10 # seconds
# Where the words stand: files, or folders whose tables are all read.
WORDS = [("frontend/lexer.l", r'"([a-z_!#]{2,})"'), ("target", r'"([A-Za-z]\w{2,30})"'), ("frontend/running.c", r'"(\w+)"'), ("frontend/type.c", r'"(\w+)"'),
         ("ir/tensor.def", r'(\w+Tensor)'), ("lsp/request.c", r'"(textDocument/\w+)"'), ("lsp/server.c", r'"(textDocument/\w+)"')]
PIECES = ["m![", "axes![", "::<", " # ", " % ", " / ", "$(", " | ", "1 << ", "..", "->", "=>", "&mut ", "#[device(chip = 1)]", "#[stream]", "#[einsum]", "#[unroll]", "if ", "while ", "match ", "const { ", "macro_rules! ", "{[", "]}", '"S1"', '"S2"',
          '{"at": ', '"token": ', '{"tile": ', '"valid": ', "Content-Length: ", "\\x0d\\x0a\\x0d\\x0a", "\\x93NUMPY\\x01\\x00", "'descr': '<f4'", "'shape': (", "'fortran_order': "]


def dictionary(path):
    words = set()
    for name, pattern in WORDS:
        full = os.path.join(SOURCE, name)
        tables = sorted(os.path.join(place, n) for place, _, names in os.walk(full) for n in names if n.endswith(".def")) if os.path.isdir(full) else [full]
        for table in tables:
            with open(table, encoding="utf-8") as file:
                found = re.findall(pattern, file.read())
            if not found and not os.path.isdir(full):
                sys.exit(f"{table}: holds no word of the pattern {pattern}")
            words.update(found)
    with open(path, "w", encoding="utf-8") as file:
        for word in sorted(words) + PIECES:
            file.write('"' + word.replace('"', '\\"') + '"\n')


def sources():
    for folder in ("test/cases", "examples", "test/fuzz"):
        for place, _, names in sorted(os.walk(os.path.join(SOURCE, folder))):
            for name in sorted(n for n in names if n.endswith(".vm")):
                path = os.path.join(place, name)
                yield os.path.relpath(path, SOURCE).replace(os.sep, "-"), path


def session(text, r):
    """A document that is opened, asked about, edited at random and closed (the language of fuzz_session.c)."""
    text = text.replace("|", "/").replace("\n", "|")
    lines = text.count("|") + 1
    out = ["oa0000" + text]
    for _ in range(6):
        line, column = min(r.randrange(lines), 70), r.randrange(30)
        at = chr(48 + line) + chr(48 + column) + chr(48 + line) + chr(48 + column + r.randrange(3))
        kind = r.choice("hdcefsau")
        out.append(kind + "a" + at + (r.choice(["x", "[", "m![A]", "|", ""]) if kind == "e" else ""))
    return r.choice("01") + "\n".join(out + ["xa0000"])


def seed_binary(build, path, binary):
    subprocess.run([os.path.join(build, "bin", "visac"), path, "-o", binary], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}, check=False)
    if os.path.exists(binary) and os.path.getsize(binary) > LONGEST:
        os.remove(binary)


def seed(folder, build, targets):
    """Inputs from what the repository has: sources, their binaries where these are asked for, sessions about them."""
    r = random.Random(1)
    for target in TARGETS:
        os.makedirs(os.path.join(folder, target), exist_ok=True)
    for name, path in sources():
        for target in ("source", "editor"):
            shutil.copy(path, os.path.join(folder, target, name))
        if "binary" in targets:
            seed_binary(build, path, os.path.join(folder, "binary", name + ".bin"))
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if len(text) < 3000:
            with open(os.path.join(folder, "session", name), "w", encoding="utf-8") as file:
                file.write(session(text, r))


def program(build, target):
    return os.path.join(build, "bin", "fuzz_" + target)


def hangs(build, target, path):
    """Once more: does it take that long on a processor? What does not is removed."""
    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    before = spent()
    done = subprocess.run([program(build, target), "-timeout=600", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    slow = done.returncode != 0 or spent() - before > HANGS
    if not slow:
        os.remove(path)
    return slow


def fuzz(build, target, seconds, folder):
    found, faults, log = (os.path.join(folder, n) for n in (target, "faults", target + ".log"))
    for path in (found, faults):
        os.makedirs(path, exist_ok=True)
    before = set(os.listdir(faults))
    with open(log, "wb") as out: # in jobs of its own, so that one fault does not end the search
        subprocess.run([program(build, target), "-fork=1", "-ignore_crashes=1", "-ignore_timeouts=1", "-ignore_ooms=1", f"-max_total_time={seconds}", f"-timeout={HANGS}",
                        "-rss_limit_mb=2048", f"-max_len={LONGEST}", f"-dict={folder}/words", f"-artifact_prefix={faults}/{target}-", found,
                        os.path.join(CORPUS, target), os.path.join(folder, "seeds", target)], stdout=out, stderr=out, check=False)
    with open(log, encoding="utf-8", errors="replace") as out:
        said = re.findall(r"^#(\d+): cov: (\d+)", out.read(), re.M)
    new = sorted(n for n in set(os.listdir(faults)) - before if n.startswith(target + "-") and "slow-unit" not in n)
    new = [n for n in new if not n.startswith(f"{target}-timeout-") or hangs(build, target, os.path.join(faults, n))]
    runs, covered = said[-1] if said else ("no", "nothing")
    print(f"{target}: {runs} runs, {covered} edges covered, {len(os.listdir(found))} inputs kept, {len(new)} faults", flush=True)
    for name in new:
        print(f"  {os.path.join(faults, name)}")
    return len(new) + (not said)


def merge(build, target, folder):
    limit, small, least = TARGETS[target], os.path.join(folder, target + ".small"), os.path.join(folder, target + ".least")
    for path in (small, least):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    for place in (os.path.join(folder, target), os.path.join(folder, "seeds", target), os.path.join(CORPUS, target)):
        for name in os.listdir(place) if os.path.isdir(place) else []:
            if os.path.getsize(os.path.join(place, name)) <= limit:
                shutil.copy(os.path.join(place, name), os.path.join(small, name))
    subprocess.run([program(build, target), "-set_cover_merge=1", "-timeout=60", least, small], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}, check=False)
    if not os.listdir(least):
        sys.exit(f"{target}: nothing is left of the corpus")
    shutil.rmtree(os.path.join(CORPUS, target), ignore_errors=True)
    shutil.copytree(least, os.path.join(CORPUS, target))
    names = os.listdir(least)
    print(f"{target}: {len(names)} inputs, {sum(os.path.getsize(os.path.join(least, n)) for n in names)} bytes", flush=True)


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    seconds = next((int(a[7:]) for a in sys.argv if a.startswith("--time=")), 60)
    unknown = [a for a in sys.argv[1:] if a.startswith("-") and not re.fullmatch(r"--time=\d+|--merge", a)] + [n for n in names[1:] if n not in TARGETS]
    if not names or unknown:
        sys.exit(f"unknown: {' '.join(unknown)}\n{__doc__}" if names else __doc__)
    build, targets = names[0], names[1:] or list(TARGETS)
    folder, faults = os.path.join(build, "fuzz"), 0
    os.makedirs(folder, exist_ok=True)
    dictionary(os.path.join(folder, "words"))
    seed(os.path.join(folder, "seeds"), build, targets)
    for target in targets:
        faults += merge(build, target, folder) or 0 if "--merge" in sys.argv else fuzz(build, target, seconds, folder)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
