#!/usr/bin/env python3
"""The mutation score: every configuration field of a good binary is changed, and the check must notice.

A change is *refused* (visa-run says why and exits 1), *noticed* (the output differs from the reference, exit 3), or it
survives. A survivor is fine only when the change is provably without effect on any value; RULES below says which
and why, and those are counted apart. Anything else that survives is a failure of the check.

    mutations.py BIN_DIR KERNEL.vm...     quick: a sample of the fields; VISA_LONG=1: all of them
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

TIMING = "only timing depends on it"
RULES = {
    ("fetch", "access_bytes"): TIMING,
    ("commit", "commit_bytes"): TIMING,
    ("trf_store", "short_command"): TIMING,
    ("trf_store", "reg_type"): "types of one width share a layout",
    ("trf_read", "reg_type"): "types of one width share a layout",
    ("dma", "granular"): "lifts a limit that this copy keeps",
    ("wait", "context"): "an order that this run did not need",
    ("wait", "count"): "an order that this run did not need",
}


def equivalent(command, name, column, entry, grew):
    """Why this change cannot matter, or None."""
    op = command["op"]
    if op == "dma" and name in ("size", "packet_bytes") and grew:
        return "copies more than the tensor, into cells that nothing reads"
    if op in ("trf_read", "trf_store") and name == "address":
        return "FirstHalf is the lower half of Full"
    if (op, name) in RULES:
        return RULES[op, name]
    if op == "units":
        return "more slices run, and nobody reads what they make"
    if column and "stride" in name and entry is not None and entry["size"] == 1:
        return "the stride of a loop that does not step"
    if op == "accumulate" and name == "slots":
        return "a bound that is kept"
    if op == "accumulate" and name == "slot_stride":
        return "slots of a loop that keeps no partial results"
    return None


def rows(source):
    """(op, name) -> (word, low bit, width, is column, words in front of the table, words per entry), from the command rows."""
    import re
    text = open(os.path.join(source, "target", "command.def")).read()
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
    """Every field of every command: (file offset, low bit, width, command, name, is column, entry, kernel)."""
    where = sections(binary)
    for kernel in dump["kernels"]:
        for context, commands in kernel["streams"].items():
            start = where.get(f".visa.{context}.{kernel['name']}")
            for command in commands:
                for op, name, word, low, width, column, front, per_entry in table:
                    if op != command["op"]:
                        continue
                    at = start + command["offset"]
                    if not column:
                        yield at + 8 * word, low, width, command, name, False, None, kernel["name"]
                        continue
                    for i, entry in enumerate(command["table"]["entries"]):
                        yield at + 8 * (front + i * per_entry + word), low, width, command, name, True, entry, kernel["name"]


def mutated(binary, offset, low, width, bit):
    """The binary with one bit of the field changed, and whether the field grew."""
    word, = struct.unpack_from("<Q", binary, offset)
    mask = 1 << (low + bit % width)
    out = bytearray(binary)
    struct.pack_into("<Q", out, offset, word ^ mask)
    return bytes(out), not word & mask


def main():
    bin_dir, kernels = sys.argv[1], sys.argv[2:]
    source = os.environ.get("VISA_SOURCE", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    long_run = bool(os.environ.get("VISA_LONG"))
    table, chance = rows(source), random.Random(1)
    count = {"refused": 0, "noticed": 0, "without effect": 0, "missed": 0}
    with tempfile.TemporaryDirectory() as folder:
        for kernel in kernels:
            good = os.path.join(folder, "good.bin")
            subprocess.run([f"{bin_dir}/visac", kernel, "-o", good], check=True)
            binary = open(good, "rb").read()
            dump = json.loads(subprocess.run([f"{bin_dir}/visa-objdump", "--json", good], check=True, capture_output=True).stdout)
            for one in dump["kernels"]:
                subprocess.run([f"{bin_dir}/visa-run", good, f"--kernel={one['name']}", "--check"], check=True, stdout=subprocess.DEVNULL)
            todo = [(c, bit) for c in changes(binary, dump, table) for bit in ((0, 1, 3, 5) if long_run else (chance.randrange(4),))]
            if not long_run:
                shifts = [t for t in todo if t[0][3]["op"] == "shift"]  # few, and each is a rule of its own
                todo = shifts + chance.sample(todo, min(60, len(todo)))
            for (offset, low, width, command, name, column, entry, run), bit in todo:
                bad = os.path.join(folder, "bad.bin")
                content, grew = mutated(binary, offset, low, width, bit)
                open(bad, "wb").write(content)
                r = subprocess.run([f"{bin_dir}/visa-run", bad, f"--kernel={run}", "--check"], capture_output=True, text=True, timeout=120)
                place = f"{os.path.basename(kernel)}: {command['op']} at {command['offset']:#x}, {name}, bit {bit % width}"
                if r.returncode in (1, 3) and "error[" in r.stderr:
                    count["refused" if r.returncode == 1 else "noticed"] += 1
                elif r.returncode == 0 and equivalent(command, name, column, entry, grew):
                    count["without effect"] += 1
                else:
                    count["missed"] += 1
                    print(f"missed (exit {r.returncode}): {place}\n{r.stdout}{r.stderr}")
    total = sum(count.values())
    print(f"{total} changes: " + ", ".join(f"{n} {what}" for what, n in count.items()))
    print(f"{total - count['missed']} passed, {count['missed']} failed")
    return 1 if count["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
