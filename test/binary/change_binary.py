#!/usr/bin/env python3
"""Changes single fields of a binary, for cases about damaged or foreign ones.

    change_binary.py IN OUT CHANGE...

A CHANGE is OP.FIELD=BITS (the raw bits of a field of the first such command; docs/isa.md), OP.COLUMN[N]=BITS (of its
N-th table entry), CONTEXT/OP.FIELD=BITS (the first one in that context), or @SECTION+OFFSET=HEX (bytes in place)."""
import json
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import mutations

CHANGE = re.compile(r"(?:(\w+)/)?(\w+)\.(\w+)(?:\[(\d+)\])?=(-?\w+)")
BYTES = re.compile(r"@([\w.]+)\+(\w+)=([0-9a-f]+)")


def find(fields, contexts, context, op, name, entry):
    """(offset in the file, low bit, width) of the field."""
    for at, low, width, command, field, _, of_entry, *_ in fields:
        number = None if of_entry is None else of_entry["entry"]
        if (command["op"], field, number) == (op, name, entry) and (context is None or command in visa_tools.commands(contexts[context])):
            return at, low, width
    sys.exit(f"no command {op} with a field {name}")


def main(arguments):
    source, target, *wanted = arguments
    data = bytearray(open(source, "rb").read())
    tool = os.path.join(visa_tools.bin_dir(), "visa-objdump")
    dump = json.loads(subprocess.run([tool, "--json", source], check=True, capture_output=True).stdout)
    contexts = dump["kernels"][0]["streams"]
    for change in wanted:
        in_place = BYTES.fullmatch(change)
        if in_place:
            at = mutations.sections(bytes(data))[in_place[1]] + int(in_place[2], 0)
            data[at:at + len(in_place[3]) // 2] = bytes.fromhex(in_place[3])
            continue
        context, op, name, entry, bits = CHANGE.fullmatch(change).groups()
        fields = mutations.changes(bytes(data), dump, mutations.rows(visa_tools.SOURCE))
        at, low, width = find(fields, contexts, context, op, name, None if entry is None else int(entry))
        word, mask = struct.unpack_from("<Q", data, at)[0], (1 << width) - 1
        struct.pack_into("<Q", data, at, word & ~(mask << low) | (int(bits, 0) & mask) << low)
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main(sys.argv[1:])
