#!/usr/bin/env python3
"""Runs what the documentation shows: every command of every ```console block, and compares the output.

    test/doc_examples.py [--update] [--some] FOLDER-OF-PROGRAMS FILE.md...

A line `$ COMMAND` is run by bash in a scratch folder that has examples/ in it; the lines after it are its
output, standard error included. What they write into pictures/ is compared with docs/pictures/, where nothing else lies. A line
`...` stands for any lines. Blocks "```rust NAME.vm", "```json NAME.json", "```python NAME.py" and "```c NAME.c" are written to
the scratch folder, so that later commands can use them. `python3` is one with NumPy, and finds the package and the library of this build, as `cc` does by
$VISA_CFLAGS; where there is no NumPy, or the library is built with sanitizers, the rest of a page from the first such command on is left out. --update writes what the commands print now over blocks that
differ, and leaves those with a `...` line to be mended by hand; pictures are replaced. --some runs every seventh page, all with VISA_LONG.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401, for the commands of the pages
    NUMPY = True
except ImportError:
    NUMPY = False
    if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3") and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # Debian's NumPy belongs to Debian's Python

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PICTURES = SOURCE / "docs" / "pictures"
FENCE = re.compile(r"^```(\w*) ?(\S*)\n(.*?)^```$", re.M | re.S)


def matches(shown, printed):
    """Equal line by line, where `...` stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, printed) is not None


def steps(block):
    """(command, shown output lines) of a console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"a console block begins with output: {line}")
    return found


def library_is_usable(programs):
    """By a program that is not of this build: there is a library, without sanitizers, and NumPy."""
    library = programs / "libvisa.so.0"
    return NUMPY and library.exists() and b"__asan_init" not in library.read_bytes()


def run(command, folder, programs):
    flags = f"-I{SOURCE / 'include'} -L{programs} -Wl,-rpath,{programs} -lvisa"
    environment = dict(os.environ, PATH=f"{folder}/bin:{programs}:{os.environ['PATH']}", LC_ALL="C", XDG_CACHE_HOME=f"{folder}/.cache", PYTHONPATH=str(SOURCE / "python"),
                       VISA_LIBRARY=f"{programs}/libvisa.so.0", VISA_CFLAGS=flags, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    printed = done.stdout.decode()
    return printed if printed.endswith("\n") or not printed else printed + "\n"


class Page:
    def __init__(self, path, programs, update):
        self.path, self.programs, self.update = path, programs, update
        self.passed = self.failed = self.left_out = 0
        self.usable = library_is_usable(programs)
        self.drawn = set()

    def block(self, match, folder):
        language, name, body = match.groups()
        if language in ("rust", "json", "python", "c") and name:
            (folder / name).write_text(body)
        if language != "console":
            return match.group(0)
        now = ""
        for command, shown in steps(body):
            if self.left_out or (not self.usable and command.split()[0] in ("python3", "cc")):
                self.left_out += 1
                now += "".join(line + "\n" for line in [f"$ {command}", *shown])
                continue
            printed = run(command, folder, self.programs)
            good = matches(shown, printed)
            self.passed += good
            self.failed += not good
            if not good:
                print(f"FAIL  {self.path.name}: $ {command}\n----- shown\n" + "\n".join(shown) + f"\n----- printed\n{printed}-----")
            kept = shown if good or "..." in shown else printed.splitlines()
            now += "".join(line + "\n" for line in [f"$ {command}", *kept])
        return match.group(0).replace(body, now)

    def picture(self, drawn, text):
        """Drawn by a command of the page, kept next to it and shown on it."""
        self.drawn.add(drawn.name)
        kept = PICTURES / drawn.name
        if self.update:
            kept.write_bytes(drawn.read_bytes())
        good = kept.exists() and kept.read_bytes() == drawn.read_bytes() and f"(pictures/{drawn.name})" in text
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAIL  {self.path.name}: docs/pictures/{drawn.name} is not what visac draws, or is not shown")

    def check(self):
        text = self.path.read_text()
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            (folder / "examples").symlink_to(SOURCE / "examples")
            (folder / "pictures").mkdir()
            (folder / "bin").mkdir()
            (folder / "bin" / "python3").symlink_to(sys.executable)
            now = FENCE.sub(lambda match: self.block(match, folder), text)
            for picture in sorted((folder / "pictures").iterdir()):
                self.picture(picture, text)
        if self.update and now != text:
            self.path.write_text(now)


def main():
    words = [word for word in sys.argv[1:] if word not in ("--update", "--some")]
    programs, pages = pathlib.Path(words[0]).resolve(), words[1:]
    some = "--some" in sys.argv and not os.environ.get("VISA_LONG")
    passed = failed = 0
    drawn = set()
    for name in pages[::7] if some else pages:
        page = Page(pathlib.Path(name), programs, "--update" in sys.argv)
        page.check()
        left_out = f", {page.left_out} left out: they need NumPy and a library without sanitizers" if page.left_out else ""
        print(f"{page.path.name}: {page.passed} commands as shown, {page.failed} not{left_out}")
        passed, failed, drawn = passed + page.passed, failed + page.failed, drawn | page.drawn
    for picture in sorted(PICTURES.iterdir()) if drawn and not some else []:
        if picture.name not in drawn:
            failed += 1
            print(f"FAIL  docs/pictures/{picture.name}: no page draws it")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
