#!/usr/bin/env python3
"""Runs what the documentation shows: every command of every ```console block, and compares the output.

    test/doc_examples.py [--update] [--third] FOLDER-OF-PROGRAMS FILE.md...

A line `$ COMMAND` is run by bash in a scratch folder that has examples/ in it; the lines after it are its
output, standard error included. What they write into pictures/ is compared with docs/pictures/, where nothing else lies. A line
`...` stands for any lines. Blocks "```rust NAME.vm" and "```json NAME.json" are written to
the scratch folder, so that later commands can use them. --update writes what the commands print now over blocks that
differ, and leaves those with a `...` line to be mended by hand; pictures are replaced. --third runs every third page.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

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


def run(command, folder, programs):
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", LC_ALL="C")
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    printed = done.stdout.decode()
    return printed if printed.endswith("\n") or not printed else printed + "\n"


class Page:
    def __init__(self, path, programs, update):
        self.path, self.programs, self.update = path, programs, update
        self.passed = self.failed = 0
        self.drawn = set()

    def block(self, match, folder):
        language, name, body = match.groups()
        if language in ("rust", "json") and name:
            (folder / name).write_text(body)
        if language != "console":
            return match.group(0)
        now = ""
        for command, shown in steps(body):
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
            now = FENCE.sub(lambda match: self.block(match, folder), text)
            for picture in sorted((folder / "pictures").iterdir()):
                self.picture(picture, text)
        if self.update and now != text:
            self.path.write_text(now)


def main():
    words = [word for word in sys.argv[1:] if word not in ("--update", "--third")]
    programs, pages = pathlib.Path(words[0]).resolve(), words[1:]
    some = "--third" in sys.argv and not os.environ.get("VISA_LONG")
    passed = failed = 0
    drawn = set()
    for name in pages[::3] if some else pages:
        page = Page(pathlib.Path(name), programs, "--update" in sys.argv)
        page.check()
        print(f"{page.path.name}: {page.passed} commands as shown, {page.failed} not")
        passed, failed, drawn = passed + page.passed, failed + page.failed, drawn | page.drawn
    for picture in sorted(PICTURES.iterdir()) if drawn and not some else []:
        if picture.name not in drawn:
            failed += 1
            print(f"FAIL  docs/pictures/{picture.name}: no page draws it")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
