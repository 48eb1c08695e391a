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
    mutations.py BIN_DIR --moves COUNT [SEED]        every field of so many drawn kernels that only move data (test/engine/move_kernels.py)

Kernels of engines, test/engine/*/mutations.vm, are added to those. Changes are judged in one process for each binary (judge_changes.c).
"""
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
from move_kernels import Kernel as Movement  # noqa: E402

SEEDS = (2, 3, 5, 7)  # of the other inputs
GUARD_SEEDS = range(100, 106)  # of other numbers of a launch, besides the one that decides
RANDOM = 4  # random kernels, contractions and movements by turns
SAMPLE = 24  # quick: changes of a file of the command line
SAMPLE_RANDOM = 12  # changes of a random kernel
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


class Subject:
    """A good binary, a change of it, and what the check says."""

    def __init__(self, folder, name, source):
        self.name, self.path, self.bad = name, os.path.join(folder, "good.bin"), os.path.join(folder, "bad.bin")
        self.folder, self.process, self.mask = folder, None, (0, 0)
        self.proven, self.converts = False, True
        done = visa_tools.run(["visac", source, "-o", self.path])
        self.compiles = done.status == 0
        if not self.compiles:
            return
        with open(self.path, "rb") as file:
            self.binary = file.read()
        self.dump = self.decode(self.path)
        for kernel in self.dump["kernels"]:
            if self.ask(kernel["name"], 1)[0] != 0:
                sys.exit(f"{name}, kernel {kernel['name']}, is not good: {self.check(self.path, kernel['name']).text()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def change(self, offset, mask):
        """From now on the word of 8 bytes there is changed by the mask."""
        self.mask = offset, mask
        with open(self.bad, "wb") as file:
            file.write(masked(self.binary, offset, mask))

    def ask(self, kernel, seed):
        """The check's exit status, and whether the outputs are those of the good binary; None: it crashed."""
        if not self.process:
            program = os.path.join(visa_tools.bin_dir(), "judge_changes")
            self.process = subprocess.Popen([program, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=visa_tools.environment())
        try:
            self.process.stdin.write(f"{kernel} {seed} {self.mask[0]} {self.mask[1]:x}\n")
            self.process.stdin.flush()
            said = self.process.stdout.readline().split()
        except BrokenPipeError:
            said = []
        if len(said) != 3:
            self.process.kill()
            self.process.wait()
            self.process = None
            return None, False
        self.proven = said[2] == "1"
        return int(said[0]), said[1] == "1"

    @staticmethod
    def decode(path):
        done = visa_tools.run(["visa-objdump", "--json", path])
        return json.loads(done.out) if done.status == 0 else None

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
        after = self.decode(self.bad)
        if after:
            before = self.command(self.dump, kernel, context, number)
            why = same_steps(before, self.command(after, kernel, context, number))
            if why:
                return why
            if before["op"] == "guard" and self.decides_otherwise(kernel, fields_of(before), fields_of(self.command(after, kernel, context, number))):
                return "noticed with other numbers of the launch"
        return self.same_elements(kernel)

    def decides_otherwise(self, kernel, before, after):
        """Does the check notice with one of the numbers at the ends of the two ranges?"""
        port = next((p["name"] for p in next(k for k in self.dump["kernels"] if k["name"] == kernel)["ports"] if p.get("address") == before["base"]), None)
        file, numbers = os.path.join(self.folder, "number.raw"), set()
        for guard in (before, after):
            first, last = guard["first"], guard["first"] + guard["span"] % (1 << 64)
            numbers |= {n % (1 << before["bits"]) for n in (first - 1, first, last, last + 1)}
        for number in sorted(numbers):
            with open(file, "wb") as out:
                out.write(number.to_bytes(before["bits"] // 8, "little"))
            given = [f"--input={port}={file}"] if port else []
            if any(visa_tools.run(["visa-run", self.bad, f"--kernel={kernel}", f"--seed={seed}", "--check", *given]).status == 3 for seed in GUARD_SEEDS):
                return True
        return False

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
    for (offset, _, _, command, name, _, _, kernel, context, number), mask in todo:
        subject.change(offset, mask)
        status, _ = subject.ask(kernel, 1)
        if status in (1, 3):
            count["noticed" if status == 3 else "refused"] += 1
            continue
        why = subject.reason(kernel, context, number) if status == 0 else None
        count[why or "missed"] = count.get(why or "missed", 0) + 1
        if not why:
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


def movements(count, seed):
    """Every field of drawn kernels, each changed in two ways."""
    table, found, made = rows(visa_tools.SOURCE), {"refused": 0, "noticed": 0, "missed": 0}, 0
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "random.vm")
        while made < count:
            name = f"{seed}/{made}"
            chance = random.Random(f"moves/{name}")
            with open(source, "w", encoding="utf-8") as file:
                drawn = Movement(chance)
                file.write(drawn.source(made) + "\n")
            with Subject(folder, f"movement {name}", source) as subject:
                subject.converts = any(kind in drawn.used for kind in CONVERTING)
                todo = [(c, mask) for c in changes(subject.binary, subject.dump, table) for mask in masks(subject.binary, *c[:3], chance)]
                try_changes(subject, todo, found)
            made += 1
            sys.stdout.flush()
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
    return summary(count, len(kernels) + len(engines) + made)


if __name__ == "__main__":
    sys.exit(main())
