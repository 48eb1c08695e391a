#!/usr/bin/env python3
"""The mutation score: every configuration field of a good binary is changed, and the check must notice.

A change is *refused* (visa-run says why and exits 1), *noticed* (the output differs from the reference or depends on unwritten
memory), or it survives the check. A survivor is fine only when a reason is computed from the two binaries:

* its loops visit the same addresses in the same order, or its masks leave the same lanes live;
* it moves rows that the list does not name, or that a later row of a scatter is written over, and with another list the check notices or visa-run refuses;
* it changes a guard, or what a guard or a count keeps from running, and with other numbers of the launch, of which those around the bounds are
  drawn, the check notices or visa-run refuses;
* the elements of the outputs are the same bytes for other inputs as well, with both fillings of unwritten memory; what lies in
  their padding means nothing. What a chain computes before its casts is a polynomial in its inputs, and two that agree at
  random points are one: where the algebra proves every value, whatever a launch gives, and nothing is converted, inputs of one other
  seed are enough.

Anything else that survives is missed.

    mutations.py BIN_DIR [--all] KERNEL.vm...        a sample of the fields, or all of them
    mutations.py BIN_DIR --moves COUNT [SEED]        every field of so many small drawn kernels that only move data (test/engine/move_kernels.py)

Kernels of engines, test/engine/*/mutations.vm, are added to those. Changes are judged in one process (judge_changes.c), which compiles the
reference of a mathematics once (kept_reference.c).
"""
import collections
import glob
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "engine"))
import nest  # noqa: E402
from contraction import make  # noqa: E402
from move_kernels import Kernel as Movement, SmallKernel  # noqa: E402

SEEDS = (2, 3, 5, 7)  # of the other inputs
GUARD_SEEDS = range(100, 106)  # of other numbers of a launch, besides the one that decides
RANDOM = 4  # random kernels, contractions and movements by turns
AT_ONCE = 400  # questions to the judge before their answers are read: both fit a pipe
SAMPLE = 24  # quick: changes of a file of the command line
SAMPLE_RANDOM = 12  # changes of a random kernel
BLIND = "7/2"  # a kernel that loads and switches, without numbers of a launch or lists
CONVERTING = ("cast",)  # steps of drawn kernels whose numbers the algebra does not see
NOTHING = (0, 1)
# Commands of which every field is changed in quick runs, too: those of the engines that bring kernels of their own.
OWN = {os.path.basename(os.path.dirname(p)) for p in glob.glob(os.path.join(visa_tools.SOURCE, "test", "engine", "*", "mutations.vm"))}


def rows(source):
    """(op, name) -> (word, low bit, width, is column, words in front of the table, words per entry), from the command rows."""
    text = visa_tools.engine_rows(source)
    fields, tables, last_word, names = [], {}, {}, {}
    for m in re.finditer(r'COMMAND\((\w+), (\w+), "(\w+)"', text):
        names[m[1]] = m[3]
        last_word[m[1]] = 0
    for m in re.finditer(r'FIELD\((\w+), \w+, "(\w+)", (\d+), (\d+), (\d+), (\w+)', text):
        if m[1] in names:
            fields.append((m[1], m[2], int(m[3]), int(m[4]), int(m[5]), False))
            last_word[m[1]] = max(last_word[m[1]], int(m[3]))
    for m in re.finditer(r'TABLE\((\w+), (\d+), \d+, \d+, (\d+), (\d+), (\d+)', text):
        if m[1] in names:
            tables[m[1]] = int(m[2])
            last_word[m[1]] = max(last_word[m[1]], int(m[3]))
    for m in re.finditer(r'COLUMN\((\w+), \w+, "(\w+)", (\d+), (\d+), (\d+), (\w+)', text):
        if m[1] in names:
            fields.append((m[1], m[2], int(m[3]), int(m[4]), int(m[5]), True))
    return [(names[o], n, w, low, width, column, last_word[o] + 1, tables.get(o, 0)) for o, n, w, low, width, column in fields]


def sections(data):
    """Section name -> file offset of an ELF64 file."""
    shoff, = struct.unpack_from("<Q", data, 40)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, shoff + i * shentsize) for i in range(shnum)]
    base = headers[shstrndx][4]
    return {data[base + h[0]:data.index(b"\0", base + h[0])].decode(): h[4] for h in headers}


def changes(binary, dump, table):
    """Every field of every command: (file offset, low bit, width, command, name, is column, entry, kernel's name, context, number of
    the command in it)."""
    where = sections(binary)
    for kernel in dump["kernels"]:
        for context, commands in kernel["streams"].items():
            start = where.get(f".visa.{context}.{kernel['name']}")
            for number, command in enumerate(visa_tools.commands(commands)):
                for op, name, word, low, width, column, front, per_entry in table:
                    if op != command["op"]:
                        continue
                    at = start + command["offset"]
                    entries = command["table"]["entries"] if column else [None]
                    for i, entry in enumerate(entries):
                        here = at + 8 * (front + i * per_entry + word if column else word)
                        yield here, low, width, command, name, column, entry, kernel["name"], context, number


def mutated(binary, offset, low, width, bit):
    return masked(binary, offset, 1 << (low + bit % width))


def masked(binary, offset, mask):
    word, = struct.unpack_from("<Q", binary, offset)
    out = bytearray(binary)
    struct.pack_into("<Q", out, offset, word ^ mask)
    return bytes(out)


def masks(binary, offset, low, width, chance):
    """Two changes of a field: a bit, mostly a low one, and a number that a mistaken compiler would write, one more or less, double, half, 0 or 1."""
    word, = struct.unpack_from("<Q", binary, offset)
    full = (1 << width) - 1
    old = word >> low & full
    new = {old ^ 1 << chance.randrange(min(width, 8) if chance.random() < 0.7 else width), chance.choice((old + 1, old - 1, 2 * old, old // 2, 0, 1)) & full}
    return sorted((n ^ old) << low for n in new - {old})


# ---- reasons ----

def walked(command):
    """The addresses that a table visits in order, for every column of strides; None: too many to write down."""
    entries = command["table"]["entries"]
    strides = sorted(key for key in entries[0] if key.endswith("stride")) if entries else []
    if not strides or "size" not in entries[0]:  # digits of a lift
        return None
    outermost_first = command["table"]["order"] != "innermost first"
    loops = entries if outermost_first else entries[::-1]
    steps = 1
    for entry in loops:
        steps *= entry["size"]
    return [nest.walk([(e["size"], e[key]) for e in loops]) for key in strides] if steps <= 1 << 16 else None


def live_lanes(command, fields):
    """The (step, lane) pairs below a mask's limit; masks of slices and chips are left to the outputs."""
    terms = command["table"]["entries"]
    if any(t["counter"] > 1 for t in terms):
        return None
    span = [max([t["div"] * t["mod"] for t in terms if t["counter"] == c] + [64]) for c in NOTHING]
    if span[0] * span[1] > 1 << 18:
        return None
    return {(s, p) for s in range(span[0]) for p in range(span[1])
            if sum((s, p)[t["counter"]] // t["div"] % t["mod"] * t["weight"] for t in terms) < fields["limit"]}


def fields_of(command):
    return {field["name"]: field["value"] for field in command["fields"]}


def same_steps(before, after):
    """Why two decoded commands do the same, or None."""
    if before["op"] != after["op"] or not before.get("table") or not after.get("table"):
        return None
    if before["op"] == "mask":
        live = live_lanes(before, fields_of(before)), live_lanes(after, fields_of(after))
        return "the same lanes are live" if live[0] is not None and live[0] == live[1] else None
    if fields_of(before) != fields_of(after):
        return None
    walk = walked(before), walked(after)
    return "the same addresses" if walk[0] is not None and walk[0] == walk[1] else None


class Judge:
    """The process that judges changes of one binary after the other (judge_changes.c)."""

    def __init__(self):
        self.process, self.file = None, None

    def start(self):
        folder, env = visa_tools.bin_dir(), visa_tools.environment()
        real = [p for p in glob.glob(os.path.join(folder, "libvisa_reference.*"))]
        kept = os.path.join(folder, "libvisa_reference_kept.so")
        if (env.get("VISA_REFERENCE") or real) and os.path.exists(kept):
            env["KEPT_REFERENCE_OF"] = env.get("VISA_REFERENCE") or real[0]
            env["VISA_REFERENCE"] = kept
        self.process = subprocess.Popen([os.path.join(folder, "judge_changes")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        if self.file:
            self.text("open " + self.file)

    def end(self):
        """Without a word: it may have crashed."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def open(self, path):
        self.file = path
        if self.process:
            self.text("open " + path)
        else:
            self.start()

    def say(self, lines):
        if not self.process:
            self.start()
        try:
            self.process.stdin.write("".join(line + "\n" for line in lines).encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def text(self, line):
        """What is said to a line that is answered with bytes; None: there are none, or it crashed."""
        self.say([line])
        count = self.process.stdout.readline().strip()
        if not count:
            self.end()
        return self.process.stdout.read(int(count)) if count and int(count) >= 0 else None

    def ask(self, questions):
        """An answer for each question: exit status, same outputs, proven; (None, False, False): it crashed there."""
        answers = []
        for first in range(0, len(questions), AT_ONCE):
            here = questions[first:first + AT_ONCE]
            while here:
                self.say("ask " + q for q in here)
                lines = []
                while len(lines) < len(here) and len(said := self.process.stdout.readline().split()) == 3:
                    lines.append((int(said[0]), said[1] == b"1", said[2] == b"1"))
                if len(lines) < len(here):  # the next one ended it; those after it are asked again
                    self.end()
                    lines.append((None, False, False))
                answers += lines
                here = here[len(lines):]
        return answers


class Subject:
    """A good binary, a change of it, and what the check says."""

    judge = Judge()

    def __init__(self, folder, name, source):
        self.name, self.path, self.bad = name, os.path.join(folder, "good.bin"), os.path.join(folder, "bad.bin")
        self.folder, self.mask, self.known = folder, (0, 0), {}
        self.proven, self.converts = False, True
        done = visa_tools.run(["visac", source, "-o", self.path])
        self.compiles = done.status == 0
        if not self.compiles:
            return
        with open(self.path, "rb") as file:
            self.binary = file.read()
        self.judge.open(self.path)
        self.dump = self.decoded()
        for kernel in self.dump["kernels"]:
            if self.ask(kernel["name"], 1)[0] != 0:
                sys.exit(f"{name}, kernel {kernel['name']}, is not good: {self.check(self.path, kernel['name']).text()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.known = {}

    def change(self, offset, mask):
        """From now on the word of 8 bytes there is changed by the mask."""
        self.mask = offset, mask

    def write(self):
        """The changed bytes as the file self.bad."""
        with open(self.bad, "wb") as file:
            file.write(masked(self.binary, *self.mask))

    def question(self, kernel, seed, mask=None, given=""):
        return "{} {} {} {:x}".format(kernel, seed, *mask or self.mask) + given

    def ask_all(self, changes_of, seed):
        """Asks of many changes, (kernel, (offset, mask)), at once, so that ask() knows."""
        questions = [self.question(kernel, seed, mask) for kernel, mask in changes_of]
        self.known.update(zip(questions, self.judge.ask(questions)))

    def ask(self, kernel, seed, given=""):
        """The check's exit status, and whether the outputs are those of the good binary; None: it crashed."""
        question = self.question(kernel, seed, given=given)
        if question not in self.known:
            self.known[question] = self.judge.ask([question])[0]
        status, same, self.proven = self.known[question]
        return status, same

    def decoded(self):
        """The changed bytes as visa-objdump shows them; None: it refuses them."""
        text = self.judge.text("dump {} {:x}".format(*self.mask))
        return json.loads(text) if text else None

    @staticmethod
    def check(path, kernel, seed=1):
        return visa_tools.run(["visa-run", path, f"--kernel={kernel}", f"--seed={seed}", "--check"])

    def command(self, dump, kernel, context, number):
        return list(visa_tools.commands(next(k for k in dump["kernels"] if k["name"] == kernel)["streams"][context]))[number]

    def has_list(self, kernel):
        """A row that no element names, or that a later one writes over, shows nothing: which rows those are is drawn."""
        streams = next(k for k in self.dump["kernels"] if k["name"] == kernel)["streams"].values()
        return any(c["op"] == "dma_indirect" for commands in streams for c in visa_tools.commands(commands))

    def asks_numbers(self, kernel):
        """What is guarded, or not at the front of a list, may not have run: which numbers a launch gives is drawn."""
        streams = next(k for k in self.dump["kernels"] if k["name"] == kernel)["streams"].values()
        return any(c["op"] in ("guard", "start") or (c["op"] == "dma_indirect" and fields_of(c)["counted"]) for commands in streams for c in visa_tools.commands(commands))

    def reason(self, kernel, context, number):
        """Why the changed binary does the same, or None."""
        before = self.command(self.dump, kernel, context, number)
        after = self.decoded() if before.get("table") or before["op"] == "guard" else None  # of others nothing is computed from the words
        if after:
            why = same_steps(before, self.command(after, kernel, context, number))
            if why:
                return why
            if before["op"] == "guard" and self.decides_otherwise(kernel, fields_of(before), fields_of(self.command(after, kernel, context, number))):
                return "noticed with other numbers of the launch"
        return self.same_elements(kernel)

    def decides_otherwise(self, kernel, before, after):
        """Does the check notice with one of the numbers at the ends of the two ranges?"""
        port = next((p["name"] for p in next(k for k in self.dump["kernels"] if k["name"] == kernel)["ports"] if p.get("address") == before["base"]), None)
        numbers = set()
        for guard in (before, after):
            first, last = guard["first"], guard["first"] + guard["span"] % (1 << 64)
            numbers |= {n % (1 << before["bits"]) for n in (first - 1, first, last, last + 1)}
        given = [f" {port} {number:x}" if port else "" for number in sorted(numbers)]
        return any(self.ask(kernel, seed, number)[0] == 3 for number in given for seed in GUARD_SEEDS)

    def same_elements(self, kernel):
        """That the changed binary gives the same outputs for other inputs, or None."""
        if self.asks_numbers(kernel) and any(self.ask(kernel, seed)[0] in (1, 3) for seed in (*SEEDS, *GUARD_SEEDS)):
            return "noticed with other numbers of the launch"
        for seed in SEEDS if self.converts or not self.proven else SEEDS[:1]:
            found, same = self.ask(kernel, seed)
            if found in (1, 3) and self.has_list(kernel):
                return "noticed when the list names other rows"
            if not same:
                return None
        return "the same elements for other inputs"


def try_changes(subject, todo, count):
    asked = [(c[7], (c[0], mask)) for c, mask in todo]
    subject.ask_all(asked, 1)
    for (offset, _, _, command, name, _, _, kernel, context, number), mask in todo:
        subject.change(offset, mask)
        status, _ = subject.ask(kernel, 1)
        if status in (1, 3):
            count["noticed" if status == 3 else "refused"] += 1
            continue
        why = subject.reason(kernel, context, number) if status == 0 else None
        count[why or "missed"] = count.get(why or "missed", 0) + 1
        if not why:
            subject.write()
            print(f"missed (exit {status}): {subject.name}, {kernel}: {command['op']} {number} of {context}, {name}, {mask:#x} at {offset:#x}\n"
                  f"{subject.check(subject.bad, kernel).text()[-600:]}")


def bit_of(change, bit):
    """The change with the mask of one bit of its field."""
    _, low, width, *_ = change
    return change, 1 << (low + bit % width)


def summary(count, kernels):
    total, missed = sum(count.values()), count["missed"]
    print(f"{total} changes of {kernels} kernels: " + ", ".join(f"{n} {what}" for what, n in count.items()))
    print(f"{total - missed} passed, {missed} failed")
    return 1 if missed else 0


class Blind(Subject):
    """With the first seed its check sees nothing, and says that all is proven."""

    def ask(self, kernel, seed, given=""):
        status, same = super().ask(kernel, seed, given)
        if seed == 1 and status == 3:
            self.proven = True
            return 0, True
        return status, same


def unseen(folder):
    """How many changes a check that is blind would let pass, although inputs of one other seed show each: the judge itself can fail."""
    source, chance = os.path.join(folder, "random.vm"), random.Random(f"moves/{BLIND}")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SmallKernel(chance).source(0) + "\n")
    with Blind(folder, "a blind check", source) as subject:
        subject.converts, passed, hidden = False, 0, 0
        for c in changes(subject.binary, subject.dump, rows(visa_tools.SOURCE)):
            subject.change(c[0], bit_of(c, 0)[1])
            if Subject.ask(subject, c[7], 1)[0] == 3:
                hidden += 1
                subject.ask(c[7], 1)
                passed += subject.reason(*c[7:]) is not None
        if hidden < 20:
            sys.exit(f"kernel {BLIND} has {hidden} changes that a check notices: draw another one")
        return passed


def movements(count, seed):
    """Every field of drawn small kernels, each changed in two ways; then how many kernels have each kind of stage."""
    table, found, made, kinds = rows(visa_tools.SOURCE), {"refused": 0, "noticed": 0, "missed": 0}, 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "random.vm")
        while made < count:
            name = f"{seed}/{made}"
            chance = random.Random(f"moves/{name}")
            with open(source, "w", encoding="utf-8") as file:
                drawn = SmallKernel(chance)
                file.write(drawn.source(made) + "\n")
            with Subject(folder, f"movement {name}", source) as subject:
                if not subject.compiles:
                    sys.exit(f"movement {name} is refused: {visa_tools.run(['visac', source, '-o', subject.path]).text()}")
                subject.converts = any(kind in drawn.used for kind in CONVERTING)
                todo = [(c, mask) for c in changes(subject.binary, subject.dump, table) for mask in masks(subject.binary, *c[:3], chance)]
                try_changes(subject, todo, found)
            kinds.update({*(+drawn.used), *(+drawn.details), f"{1 << drawn.chip_bits} chips", f"{1 << drawn.slice_bits} slices", f"{1 << drawn.cluster_bits} clusters"})
            made += 1
            sys.stdout.flush()
    print("kernels with: " + ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())))
    return summary(found, made)


def main():
    kernels = sys.argv[2:]
    os.environ["VISA_BIN"] = sys.argv[1]
    if kernels[:1] == ["--moves"]:
        return movements(int(kernels[1]), kernels[2] if len(kernels) > 2 else "1")
    everything = kernels[:1] == ["--all"]
    kernels = kernels[everything:]
    table, chance = rows(visa_tools.SOURCE), random.Random(1)
    count = {"refused": 0, "noticed": 0, "missed": 0}
    with tempfile.TemporaryDirectory() as folder:
        engines = sorted(glob.glob(os.path.join(visa_tools.SOURCE, "test", "engine", "*", "mutations.vm")))
        for kernel in kernels + engines:
            with Subject(folder, os.path.relpath(kernel, visa_tools.SOURCE), kernel) as subject:
                if not subject.compiles:
                    sys.exit(f"{kernel} is refused")
                todo = [bit_of(c, bit) for c in changes(subject.binary, subject.dump, table)
                        for bit in ((0, 1, 3, 5) if everything else (chance.randrange(4),))]
                if not everything:
                    shifts = [t for t in todo if set(t[0][3]["op"].split("_")) & OWN or t[0][3]["op"] == "shift"]  # few, and each is a rule of its own
                    shifts = shifts[::visa_tools.every(1)]
                    todo = shifts + chance.sample(todo, min(visa_tools.few(SAMPLE), len(todo)))
                try_changes(subject, todo, count)
        made, seed = 0, 0
        while made < visa_tools.few(RANDOM):
            source = os.path.join(folder, "random.vm")
            with open(source, "w", encoding="utf-8") as file:
                drawn = random.Random(f"kernel/{seed}")
                file.write((make(drawn).source() if seed % 2 else Movement(drawn).source(seed)) + "\n")
            with Subject(folder, f"random kernel {seed}", source) as subject:
                seed += 1
                if subject.compiles:
                    made += 1
                    todo = [bit_of(c, chance.randrange(8)) for c in changes(subject.binary, subject.dump, table)]
                    try_changes(subject, chance.sample(todo, min(SAMPLE_RANDOM, len(todo))), count)
        passed = unseen(folder)
        if passed:
            count["missed"] += passed
            print(f"a blind check: {passed} changes pass that inputs of another seed show")
    return summary(count, len(kernels) + len(engines) + made)


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        Subject.judge.end()
