#!/usr/bin/env python3
"""Outputs are written exactly as declared, or the first cell that is not is named; mismatches are told as patterns.

The binaries are good ones with one number changed: a copy that is left out, a stride, an address."""
import json
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import mutations

COPIES = """axes![S = 4, C = 2, K = 64];
#[device(chip = 1)]
fn k(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![K]>) -> DmTensor<bf16, m![1], m![C], m![S # 256], m![K]> {
    a.to_dm(&mut ctx.tdma, 0)
}
"""


class Binary:
    """A kernel file compiled, and a way to change it."""

    def __init__(self, folder, text):
        self.folder, source = folder, os.path.join(folder, "k.vm")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        target = os.path.join(folder, "k.bin")
        done = visa_tools.run(["visac", source, "-o", target])
        assert done.status == 0, done.text()
        self.bytes = open(target, "rb").read()
        self.dump = json.loads(visa_tools.run(["visa-objdump", "--json", target]).out)
        self.at = mutations.sections(self.bytes)

    def check(self, context, op, word, value, *options, low=0, width=64, nth=0):
        """What visa-run says when bits of a word of the nth command of that kind are replaced."""
        kernel = self.dump["kernels"][0]
        command = [c for c in kernel["streams"][context] if c["op"] == op][nth]
        place = self.at[f".visa.{context}.{kernel['name']}"] + command["offset"] + 8 * word
        changed = bytearray(self.bytes)
        mask = ((1 << width) - 1) << low
        old, = struct.unpack_from("<Q", changed, place)
        struct.pack_into("<Q", changed, place, (old & ~mask) | (value << low & mask))
        path = os.path.join(self.folder, "changed.bin")
        with open(path, "wb") as file:
            file.write(changed)
        return visa_tools.run(["visa-run", path, *options])

    def entry(self, context, op, column, value, nth=0):
        """The word of the entry whose column has that value."""
        command = [c for c in self.dump["kernels"][0]["streams"][context] if c["op"] == op][nth]
        for i, entry in enumerate(command["table"]["entries"]):
            if entry[column] == value:
                return i
        raise AssertionError(f"no entry of {op} has {column} {value}")


def main():
    passed = failed = 0

    def expect(name, done, status, *texts):
        nonlocal passed, failed
        missing = [t for t in texts if t not in done.text()]
        good = done.status == status and not missing
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"FAIL {name}: exit {done.status}, missing {missing}\n{done.text()}")

    with tempfile.TemporaryDirectory() as folder:
        copies = Binary(folder, COPIES)
        cluster = 4 + 3 * copies.entry("dma", "dma", "size", 2)
        slices = 4 + 3 * copies.entry("dma", "dma", "size", 4)
        expect("as it is", copies.check("dma", "dma", cluster, 1, "--check", width=16), 0, "512 values agree")
        expect("the second cluster left out", copies.check("dma", "dma", cluster, 0, "--check", width=16), 3,
               "E-RUN-UNDEFINED", "never written, first at C=1, S=0, K=0")
        expect("the last slice left out", copies.check("dma", "dma", slices, 2, "--check", width=16), 3,
               "E-RUN-UNDEFINED", "never written, first at C=0, S=3, K=0")
        expect("half of a packet left out", copies.check("dma", "dma", 1, 64, "--check", low=16, width=16), 3, "E-RUN-UNDEFINED", "K=32")
        with open(os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), encoding="utf-8") as file:
            matmul = Binary(folder, file.read())
        expect("rows of a read one element early", matmul.check("main", "fetch", 3, 31, "--check", low=32, width=32), 3,
               "E-CHECK-MISMATCH", "248 of 256 values differ", "note: differing: M 1..31, N all 8", "written by slice 0, Row all 8, time 1..31")
        # Half of the sums are lost, in f32 words: far outside a bound.
        expect("a tree of one level less", matmul.check("main", "contract", 1, 4, "--check", low=4, width=3), 3,
               "E-CHECK-MISMATCH", "note: differing: M all 32, N all 8")
        expect("a commit one row late", matmul.check("main", "commit", 1, 8192 + 16, "--check", width=20), 3,
               "E-RUN-UNDEFINED", "first at M=0, N=0")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
