#!/usr/bin/env python3
"""What the algebra finds: faults are planted in good binaries, and it must find each in every output that it touches and name the terms.

What a changed binary computes is worked out by test/field/field_machine.py with polynomials for values: every output then is a list of terms by
name. The number of outputs that differ must be the algebra's, and each note of it ("out[M=3, N=1] lacks a[M=3, K=30] * b[N=1, K=30]")
must hold. A change after which every output is the same polynomial must not be reported.

    field_power.py [DEPTH..]  a sample of 32 and 512; VISA_LONG=1: of 4096 and all types too, and what a check of numbers finds (the table of
                              docs/numerics.md is that of 32 512 4096 16384)
"""
import collections
import json
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import field_machine
import mutations
import second_decoder

LONG = bool(os.environ.get("VISA_LONG"))
TYPES = {"i4": ("i32", 128, 16), "i8": ("i32", 64, 8), "f8e4m3": ("f32", 64, 8), "f8e5m2": ("f32", 64, 8), "bf16": ("f32", 32, 4)}
MOST_WORK = 60_000_000
ROWS = mutations.rows(visa_tools.SOURCE)

SOURCE = """axes![M = {m}, N = {n}, K = {k}];
#[device(chip = 1)]
fn product(ctx: &mut Context, a: &HbmTensor<{t}, m![1], m![M, K]>, b: &HbmTensor<{t}, m![1], m![N, K]>) -> HbmTensor<{s}, m![1], m![M, N]> {{
    let a: DmTensor<{t}, m![1], m![1 # 2], m![1 # 256], m![M, K # {p}]> = a.to_dm(&mut ctx.tdma, 0);
    let b: DmTensor<{t}, m![1], m![1 # 2], m![1 # 256], m![N, K # {p}]> = b.to_dm(&mut ctx.tdma, 1 << 18);
    let weights: TrfTensor<{t}, m![1], m![1 # 2], m![1 # 256], m![N], m![K # {p}]> = ctx.sub
        .begin(b.view())
        .fetch::<{t}, m![N], m![K # {p}]>()
        .collect()
        .to_trf(TrfAddress::Full);
    let c: DmTensor<{s}, m![1], m![1 # 2], m![1 # 256], m![M, N # 8]> = ctx.main
        .begin(a.view())
        .fetch::<{t}, m![M], m![K # {p}]>()
        .collect()
        .align::<m![M, K # {p} / {lanes}], m![K # {p} % {lanes}], _, _>(&weights)
        .contract::<m![1]>()
        .accumulate::<m![M], m![N # 8]>(AccumulationKind::Interleaved)
        .commit(3 << 17);
    c.to_hbm(&mut ctx.tdma, 1 << 30)
}}
"""


class Subject:
    """A good binary, and what it is to compute."""

    def __init__(self, folder, dtype, depth, m, n, isa):
        sums, lanes, less = TYPES[dtype]
        padded = max(depth, lanes)
        self.isa, self.m, self.n, self.k, self.name = isa, m, n, depth - less, f"{dtype} K={depth - less}"
        self.lanes = lanes
        source = os.path.join(folder, "k.vm")
        with open(source, "w", encoding="ascii") as file:
            file.write(SOURCE.format(m=m, n=n, k=self.k, p=padded, t=dtype, s=sums, lanes=lanes))
        self.good, self.bad = os.path.join(folder, "good.bin"), os.path.join(folder, "bad.bin")
        done = visa_tools.run(["visac", source, "-o", self.good])
        if done.status != 0:
            sys.exit(f"{self.name} does not compile: {done.text()}")
        with open(self.good, "rb") as file:
            self.binary = file.read()
        self.dump = json.loads(visa_tools.run(["visa-objdump", "--json", self.good]).out)
        self.fields = list(mutations.changes(self.binary, self.dump, ROWS))
        self.should = {i * n + j: collections.Counter({((0, i * self.k + x), (1, j * self.k + x)): 1 for x in range(self.k)}) for i in range(m) for j in range(n)}

    def value(self, context, op, name, entry=None):
        return self.find(context, op, name, entry)[1]

    def find(self, context, op, name, entry):
        for f in self.fields:
            offset, low, width, command, field, _, of_entry, _, in_context, _ = f
            if (in_context, command["op"], field) == (context, op, name) and (None if of_entry is None else of_entry["entry"]) == entry:
                given = of_entry[name] if of_entry is not None else next(x["value"] for x in command["fields"] if x["name"] == name)
                return (offset, low, width), given
        return None, None

    def changed(self, changes):
        """The binary with (context, op, field, entry, difference) applied; None: it has no such field."""
        data = bytearray(self.binary)
        for context, op, name, entry, difference in changes:
            place, _ = self.find(context, op, name, entry)
            if not place:
                return None
            offset, low, width = place
            word, mask = struct.unpack_from("<Q", data, offset)[0], (1 << width) - 1
            struct.pack_into("<Q", data, offset, word & ~(mask << low) | ((((word >> low) & mask) + difference) & mask) << low)
        return bytes(data)


def planted(s, rng):
    """(what, the changes): of each kind that the subject has room for."""
    element = {"i": 1}.get(s.name[0], 1)
    yield "a term dropped: the mask's limit one less", [("main", "mask", "limit", None, -1)]
    yield "the mask's limit one more", [("main", "mask", "limit", None, 1)]
    yield "several terms dropped", [("main", "mask", "limit", None, -rng.randrange(2, s.k))]
    stride = s.value("main", "fetch", "stride", 0)
    if stride and stride > 1:
        yield "a stride off by one: rows of a", [("main", "fetch", "stride", 0, rng.choice((-1, 1)) * element)]
        yield "the same row of a again", [("main", "fetch", "stride", 0, -stride)]
    stride = s.value("sub", "fetch", "stride", 0)
    if stride and stride > 1:
        yield "a wrong Row: all hold the first one's weights", [("sub", "fetch", "stride", 0, -stride)]
        yield "a stride off by one: Rows", [("sub", "fetch", "stride", 0, rng.choice((-1, 1)))]
    stride, size = s.value("main", "trf_read", "stride", 0), s.value("main", "trf_read", "size", 0)
    if stride and size and size > 1:
        yield "terms misplaced: the same weights at each step", [("main", "trf_read", "stride", 0, -stride)]
    stride, size = s.value("main", "commit", "stride", 0), s.value("main", "commit", "size", 0)
    if stride and size == s.m:
        bytes_each = stride * 4
        yield "outputs exchanged", [("main", "commit", "stride", 0, -2 * stride), ("main", "commit", "base", None, bytes_each * (size - 1))]
    stride, size = s.value("dma", "dma", "source_stride", 0), s.value("dma", "dma", "size", 0)
    if stride and size == s.m:
        yield "rows of a exchanged", [("dma", "dma", "source_stride", 0, -2 * stride), ("dma", "dma", "source_base", None, stride * (size - 1))]
    yield "zeros in place of a", [("dma", "dma", "source", None, 2)]  # none
    yield "a misplaced: elements further", [("dma", "dma", "source_base", None, 8)]
    fields = [f for f in s.fields if f[3]["op"] not in ("wait", "units", "loop", "advance")]
    for _ in range(4 if LONG else 2):
        offset, low, width, command, name, _, entry, _, context, _ = rng.choice(fields)
        number = None if entry is None else entry["entry"]
        yield f"a bit of {command['op']}.{name}", [(context, command["op"], name, number, 1 << rng.randrange(min(width, 12)))]


# ---------------------------------------------------------------- what is reported

ELEMENT = r"(\w+)\[([^\]]*)\]|(a value that is no tensor's)"
AXES = {"a": ("M", "K"), "b": ("N", "K"), "out": ("M", "N")}


class Words:
    """The claims of a note."""

    def __init__(self, subject):
        self.s = subject
        self.sizes = {"M": subject.m, "N": subject.n, "K": subject.k}

    def element(self, text):
        found = re.fullmatch(r"(\w+)\[([^\]]*)\]", text.strip())
        if not found:
            return (-1, -1) if text.strip() in ("a value that is no tensor's", "memory that nobody wrote") else None
        at = dict(part.split("=") for part in found[2].split(", "))
        number = 0
        for axis in AXES[found[1]]:
            number = number * self.sizes[axis] + int(at[axis])
        return ({"a": 0, "b": 1, "out": 2}[found[1]], number)

    def term(self, text):
        return tuple(sorted(self.element(part) for part in text.split(" * ")))

    def holds(self, note, has):
        """None, or what is wrong with a note."""
        whole = re.match(r"note: (out\[[^\]]*\]) (.*)", note)
        number = self.element(whole[1])[1]
        should, given = self.s.should[number], has[number]
        known = re.fullmatch(r"is what (out\[[^\]]*\]) should be", whole[2])
        if known:
            return None if given == self.s.should[self.element(known[1])[1]] else note
        if whole[2] == "is memory that nobody wrote":
            return None if given == {((-1, -1),): 1} else note
        claims = re.split(r", (?=lacks|has|and \d)", whole[2])
        for claim in claims:
            if not self.claim(claim, should, given):
                return f"{claim}, of {whole[1]}"
        return None

    def claim(self, text, should, given):
        other = re.fullmatch(r"has (.*) in place of (.*)", text)
        times = re.fullmatch(r"has (.*) (?:twice|(\d+) times)", text)
        if re.fullmatch(r"and \d+ more", text):
            return True
        if text.startswith("lacks "):
            return self.lacks(self.term(text[6:]), should, given)
        if other:
            return self.too_many(self.term(other[1]), should, given) and self.lacks(self.term(other[2]), should, given)
        if times:
            return given[self.term(times[1])] == int(times[2] or 2)
        if text.endswith(" too many"):
            return self.too_many(self.term(text[4:-9]), should, given)
        return False

    @staticmethod
    def lacks(term, should, given):
        return should[term] > given[term]

    @staticmethod
    def too_many(term, should, given):
        if any(factor == (-1, -1) for factor in term):
            return any((-1, -1) in monomial for monomial in given)
        return given[term] > should[term]


def judge(s, data):
    """{element: terms} of the changed binary; None: the machine refuses it, or nobody knows."""
    try:
        kernel = second_decoder.decode(data, s.isa)["kernels"][0]
        out = field_machine.outputs(kernel, field_machine.Polynomials(), MOST_WORK)
    except (second_decoder.Refused, field_machine.Faulty, field_machine.TooLarge, IndexError, KeyError, TypeError, StopIteration):
        return None
    plain = field_machine.Polynomials.plain
    return {e: collections.Counter({m: c for m, c in plain(v).items() if c}) for e, v in out[2].items()}


def try_one(s, what, changes, count):
    data = s.changed(changes)
    if data is None:
        return None
    with open(s.bad, "wb") as file:
        file.write(data)
    done = visa_tools.run(["visa-run", s.bad, "--check=algebra"])
    if done.status not in (0, 1, 3) or done.crashed:
        return f"{s.name}, {what}: status {done.status}: {done.text()}"
    if done.status == 1:
        count["refused"] += 1
        return None
    has = judge(s, data)
    if has is None:
        count["not judged"] += 1
        return None
    wrong = [e for e in s.should if has.get(e) != s.should[e]]
    found = re.search(r"algebra: (\d+) of (?:all )?\d+ value", done.text())
    said = int(found[1]) if done.status == 3 and found else 0
    if said != len(wrong):
        return f"{s.name}, {what}: {said} outputs differ, the judge has {len(wrong)}: {done.text()}"
    if not wrong:
        count["the same"] += 1
        return None
    notes = [line for line in done.text().splitlines() if line.startswith("note: out[")]
    bad = [b for b in (Words(s).holds(note, has) for note in notes) if b] if notes else ["nothing is named"]
    if bad:
        return f"{s.name}, {what}: wrong: {bad[0]}\n{done.text()}"
    count["named"] += 1
    count["outputs"] += len(wrong)
    if LONG:
        for order in ("hardware", "free"):
            numbers = visa_tools.run(["visa-run", s.bad, "--check=numbers", f"--reference-order={order}"]).status == 3
            table[what if not what.startswith("a bit") else "a bit of any field", s.name[s.name.index("K"):]][order] += numbers
        table[what if not what.startswith("a bit") else "a bit of any field", s.name[s.name.index("K"):]]["planted"] += 1
    return None


table = collections.defaultdict(collections.Counter)


def print_table():
    """What both checks found of the faults that change a polynomial; the algebra found all."""
    depths = collections.defaultdict(collections.Counter)
    for (what, depth), found in sorted(table.items()):
        number = 1 << (int(depth[2:]) - 1).bit_length()
        depths[what, number] += found
    for (what, depth), found in sorted(depths.items(), key=lambda x: (x[0][1], x[0][0])):
        print(f"| {depth} | {what} | {found['planted']} | {found['hardware']} | {found['free']} | {found['planted']} |")


def main():
    isa = second_decoder.Isa(os.path.join(visa_tools.SOURCE, "docs", "isa.md"))
    rng = random.Random(7)
    depths = [(32, 4, 4), (512, 3, 2), (4096, 2, 2), (16384, 2, 2)]
    wanted = [int(word) for word in sys.argv[1:]] or [32, 512] + ([4096] if LONG else [])
    depths = [d for d in depths if d[0] in wanted]
    count, failed = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for dtype in TYPES:
            for depth, m, n in depths:
                if not LONG and depth > 32 and dtype not in ("bf16", "i4"):
                    continue
                s = Subject(folder, dtype, max(depth, 2 * TYPES[dtype][2]), m, n, isa)
                done = visa_tools.run(["visa-run", s.good, "--check=algebra"])
                if done.status != 0:
                    sys.exit(f"{s.name} is not good: {done.text()}")
                for what, changes in planted(s, rng):
                    fault = try_one(s, what, changes, count)
                    failed += bool(fault)
                    print(fault) if fault else None
    print_table()
    print(f"{count['named']} faults found in {count['outputs']} outputs and named, {count['the same']} changes are the same polynomials, "
          f"{count['refused']} refused, {count['not judged']} not judged, {failed} failed")
    return 1 if failed or count["named"] < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
