#!/usr/bin/env python3
"""Two decoders, one answer: test/binary/second_decoder.py, written from the pages, and `visa-objdump --json`.

Every kernel of the suite (cases, examples, and the seeds' listings where they are present) is compiled, and the two dumps
must be equal, key by key. Then single bytes are changed: a file that the pages refuse must be refused by both, and one
that both take must read the same in both: a sample, of loops a larger one; with --all every byte of these binaries.
"""
import collections
import glob
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import mutations
import second_decoder

ISA = os.path.join(visa_tools.SOURCE, "docs", "isa.md")


def binaries(folder):
    """(name, bytes) of every kernel file that compiles."""
    for pattern in ("examples/*.vm", "examples/step/*.vm", "test/cases/*.vm", "../shared/seeds/listings/*.vm"):
        for path in sorted(glob.glob(os.path.join(visa_tools.SOURCE, pattern))):
            target = os.path.join(folder, "k.bin")
            if visa_tools.run(["visac", path, "-o", target]).status == 0:
                yield os.path.basename(path), open(target, "rb").read()
    yield "math_binary", visa_tools.run(["math_binary"]).out


def dump(data):
    r = visa_tools.run(["visa-objdump", "--json", "-"], stdin=data)
    return (json.loads(r.out) if r.status == 0 else None), r


def difference(ours, theirs, path=""):
    """The first place where two dumps differ, or None. Keys that the pages do not promise are differences too."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(set(ours) | set(theirs)):
            if key not in ours or key not in theirs:
                return f"{path}/{key}: only in {'objdump' if key in theirs else 'the second decoder'}"
            found = difference(ours[key], theirs[key], f"{path}/{key}")
            if found:
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return next(filter(None, (difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(ours, theirs)))), None)
    return None if ours == theirs else f"{path}: {ours!r} and {theirs!r}"


def loop_bytes(data):
    """Where the words of loops and their advance commands are in the file."""
    where = mutations.sections(data)
    for kernel in dump(data)[0]["kernels"]:
        for context, stream in kernel["streams"].items():
            for command in visa_tools.commands(stream):
                if command["op"] in ("loop", "advance"):
                    start = where[f".visa.{context}.{kernel['name']}"] + command["offset"]
                    yield from range(start, start + 8 * len(command["words"]))


def piece_bytes(data):
    """Where the einsums whose statements have pieces are in the file, but their strings."""
    where = mutations.sections(data)
    for kernel in dump(data)[0]["kernels"]:
        if any(s["pieces"] for s in kernel["einsum"]["statements"]):
            start = where[f".visa.einsum.{kernel['name']}"]
            words = 2 + sum(2 + len(t["axes"]) for t in kernel["einsum"]["tensors"])
            words += sum(2 + len(s["sources"]) + sum(4 if d["group"] else 3 for d in s["digits"]) + 3 * len(s["pieces"]) for s in kernel["einsum"]["statements"])
            yield from range(start, start + 8 * words)


def einsum_bytes(data):
    """Where the einsum of the hand-made binary is, but its strings."""
    where, statements = mutations.sections(data), dump(data)[0]["kernels"][0]["einsum"]["statements"]
    tensors = dump(data)[0]["kernels"][0]["einsum"]["tensors"]
    words = 2 + sum(2 + len(t["axes"]) for t in tensors)
    words += sum(2 + len(s["sources"]) + 3 * len(s["digits"]) + 2 * len(s["shifts"]) + len(s["expression"]) + 6 * len(s["indices"]) + (s["op"] == "fill") + (s["count_span"] is not None)
                 for s in statements)
    start = where[".visa.einsum.math"]
    return range(start, start + 8 * words)


def second(data, isa):
    try:
        return second_decoder.decode(data, isa), None
    except second_decoder.Refused as why:
        return None, str(why)


def main():
    isa = second_decoder.Isa(ISA)
    failed, count, chance = 0, collections.Counter(), random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        found = list(binaries(folder))
    for name, data in found:
        theirs, r = dump(data)
        ours, why = second(data, isa)
        wrong = (r.text() if theirs is None else None) or why or difference(ours, theirs)
        count["binaries"] += 1
        if wrong:
            failed += 1
            print(f"{name}: {wrong}")
    by_name = dict(found)
    special = {"loop-command.vm": loop_bytes, "masks.vm": piece_bytes, "math_binary": einsum_bytes}
    for name in ("matmul.vm", "conv2d.vm", "double_buffer.vm", *special):
        data = by_name[name]
        places = range(len(data))
        if "--all" not in sys.argv:
            own = list(special[name](data)) if name in special else []
            places = chance.sample(places, min(len(data), visa_tools.few(40))) + chance.sample(own, min(len(own), visa_tools.few(400 if name == "math_binary" else 60)))
        for at in places:
            bad = bytearray(data)
            bad[at] ^= 1 << chance.randrange(8)
            theirs, r = dump(bytes(bad))
            ours, why = second(bytes(bad), isa)
            wrong = None
            if r.crashed:
                wrong = r.text()
            elif (ours is None) != (theirs is None):
                wrong = f"the second decoder says {why or 'good'}, objdump {r.text().strip() if theirs is None else 'good'}"
            elif ours is not None:
                wrong = difference(ours, theirs)
            count["refused by both" if ours is None else "read alike"] += 1
            if wrong:
                failed += 1
                print(f"{name}, byte {at:#x} {data[at]:#04x} -> {bad[at]:#04x}: {wrong}")
    print(", ".join(f"{n} {what}" for what, n in count.items()))
    print(f"{sum(count.values()) - failed} passed, {failed} failed")
    return 1 if failed or not count["binaries"] else 0


if __name__ == "__main__":
    sys.exit(main())
