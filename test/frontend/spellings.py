#!/usr/bin/env python3
"""Random programs, each written as every release writes it: the commands are the same, byte for byte.

    test/frontend/spellings.py [COUNT [FIRST-SEED]]

A program is a list of steps: copies, relayouts inside DM, streams with conversions and operations of the Vector Engine, weights and contractions in both
kinds, memory that is written in tiles. The writers of April, 0.6, 0.7, 0.8 and 0.9 share nothing but the steps, and vary what must not matter: the order
of declarations, whether a mapping is written or named, commas at ends, names of variables and parameters, white space, type arguments that follow by
themselves. Each text is compiled with --dialect of its release and --place=auto; --upgrade of the older ones gives the commands once more."""
import json
import os
import random
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

RELEASES = ["April", "0.6", "0.7", "0.8", "0.9"]
IN_FILE = 20  # kernels of one text
BITS = {"i8": 8, "bf16": 16, "i32": 32, "f32": 32}
WIDE = {"i8": "i32", "bf16": "f32"}


class Steps:
    """One kernel: what is done, in no spelling."""

    def __init__(self, rng, sizes):
        self.rng, self.sizes, self.steps, self.values = rng, sizes, [], []
        self.dtype = rng.choice(["i8", "bf16"])
        for _ in range(rng.randint(1, 4)):
            rng.choice([self.load, self.stream, self.stream, self.contract, self.tiles, self.relayout])()
        self.load()
        self.result = rng.choice(self.values)

    def new(self, dtype, time, row):
        """A tensor [time, row] of DM in every slice; row: elements of it that lie together."""
        self.values.append((len(self.values), dtype, time, row))
        return self.values[-1]

    def load(self):
        self.steps.append(("load", self.new(self.dtype, "M", "K")))
        return self.values[-1]

    def source(self):
        known = [v for v in self.values if v[2] == "M" and v[3] == "K"]
        return self.rng.choice(known) if known else self.load()

    def stream(self):
        x = self.source()
        to = self.rng.choice([x[1], WIDE.get(x[1], x[1])])
        vector = to in ("i32", "f32") and self.rng.random() < 0.6
        operations = self.rng.randint(1, 3) if vector else 0
        self.steps.append(("stream", x, to, operations, self.rng.random() < 0.5, self.new(to, "M", "K")))

    def contract(self):
        x = next((v for v in self.values if v[3] == "K" and v[1] == self.dtype), None) or self.load()
        kind, rows = self.rng.choice(["Interleaved", "Sequential"]), self.sizes["N"]
        narrow = kind == "Interleaved" and rows == 8 and self.rng.random() < 0.5
        lanes = 512 // BITS[x[1]]  # of the multipliers
        columns = f"K % {lanes} / 8" + ("" if lanes == 64 else " # 8")
        out = self.new(x[1] if narrow else WIDE[x[1]], "M", columns if kind == "Sequential" else "N" if rows == 8 else "N # 8")
        self.steps.append(("contract", x, kind, narrow, self.rng.choice(["FirstHalf", "SecondHalf", "Full"]), out))

    def tiles(self):
        x = self.source()
        self.steps.append(("tiles", x, self.rng.random() < 0.5, self.new(x[1], "M", "K")))

    def relayout(self):
        x = self.source()
        self.steps.append(("relayout", x, self.rng.choice([2, 4]), self.new(x[1], "M ", "K"))) # "M ": in slices, not for streams


class Writer:
    """One release's text of several kernels."""

    def __init__(self, rng, release, sizes):
        self.rng, self.release, self.sizes = rng, RELEASES.index(release), sizes
        self.aliases, self.address = {}, 0

    def comma(self):
        return self.rng.choice(["", "", ","])

    def mapping(self, text):
        """Written, or by a name."""
        if self.rng.random() < 0.3:
            name = self.aliases.setdefault(text, f"Map{len(self.aliases)}")
            return name
        return f"m![{text}{',' if self.release and self.rng.random() < 0.2 else ''}]"

    def place(self):
        if self.release:
            return ""
        self.address += 1 << 12
        return f", {self.rng.choice([str, hex])(self.address)}"

    def types(self, *parts):
        return f"::<{', '.join(parts)}{self.comma()}>"

    def tensor(self, dtype, slices, element):
        return f"DmTensor<{dtype}, {self.mapping('1')}, {self.mapping('1 # 2')}, {self.mapping(slices)}, {self.mapping(element)}{self.comma()}>"

    def dm(self, v):
        return self.tensor(v[1], "1 # 256", f"{v[2].strip()}, {v[3]}")

    def flit(self, dtype):
        return 256 // BITS[dtype]

    def fetch(self, dtype, to, time, packet):
        named = to if to != dtype or self.rng.random() < 0.5 else "_"
        if self.release == 0:
            return f".fetch{self.types(named, self.mapping(time), self.mapping(packet))}()"
        cast = f".fetch_cast::<{to}>()" if to != dtype or self.rng.random() < 0.3 else ""
        return f".fetch{self.types(self.mapping(time), self.mapping(packet))}(){cast}"

    def collect(self, dtype, time, packet):
        n = self.flit(dtype)
        return ".collect()" if self.rng.random() < 0.4 else f".collect{self.types(self.mapping(f'{time}, {packet} / {n}'), self.mapping(f'{packet} % {n}'))}()"

    def vector(self, dtype, operations):
        tag = "vector_intra_slice_branch(BranchMode::Unconditional)" if self.release == 0 else "vector_intra_slice_tag(TagMode::Zero)"
        text = f".vector_init().{tag}"
        if dtype == "i32":
            text += "".join([".vector_logic(LogicBinaryOpI32::BitXor, 0x55)", ".vector_fxp(FxpBinaryOp::AddFxp, 100)", ".vector_clip(ClipBinaryOpI32::Max, -5)"][:operations])
        else:
            split, back = ("vector_split", "vector_concat") if self.release == 0 else ("vector_narrow_split", "vector_widen_concat")
            divide = ".vector_fp_div(FpDivBinaryOp::DivF, 3.0f32)" if self.release == 0 else ".vector_fp_div(3.0f32)"
            work = [".vector_fp_unary(FpUnaryOp::Exp)", ".vector_fp_binary(FpBinaryOp::AddF, 2.5f32)", divide][:operations]
            text += f".{split}()" + "".join(work) + f".{back}()"
        return text + ".vector_final()"

    def commit(self, packet, view=None):
        trim = "" if self.release == 0 else f".commit_trim{self.types(self.mapping(packet))}()"
        if view:
            return f"{trim}.commit_view({view}{self.comma()})"
        return f"{trim}.commit({self.place()[2:]})"

    def let(self, v, value):
        return f"let {self.name(v)}: {self.dm(v)} = {value};"

    def name(self, v):
        return self.names.setdefault(v[0], f"{self.rng.choice(['t', 'value', 'x_', 'tmp'])}{len(self.names)}")

    def unit(self, context):
        return f"{self.context}.{context}"

    def copy(self, method):
        return f".{method}(&mut {self.unit('tdma')}{self.place()}{self.comma()})"

    def write(self, step):
        what, out = step[0], step[-1]
        if what == "load":
            return [self.let(out, f"{self.inputs[0]}{self.copy('to_dm')}")]
        x = step[1]
        if what == "stream":
            _, _, to, operations, named, _ = step
            chain = self.fetch(x[1], to, "M", "K") + self.collect(to, "M", "K")
            chain += (self.vector(to, operations) if operations else "") + self.commit(f"K % {self.flit(to)}")
            unit = "main" if named or operations else "sub"
            return [self.let(out, f"{self.unit(unit)}.begin({self.name(x)}.view()){chain}")]
        if what == "relayout":
            parts, slices, element = step[2], f"1 # {256 * step[2] // self.sizes['M']}, M / {step[2]}", f"M % {step[2]}, K"
            there = {0: [self.mapping("1 # 2"), self.mapping(slices), self.mapping(element)],
                     1: [self.mapping(slices), self.mapping(element)], 2: [self.mapping(slices), self.mapping(element)]}
            four = [self.rng.choice(["_", self.mapping("1")]), "_", self.mapping(slices), self.mapping(element)]
            middle = f"between{parts}_{out[0]}"
            copied = f"{self.name(x)}.to_dm{self.types(*there.get(self.release, four))}(&mut {self.unit('tdma')}{self.place()})"
            return [f"let {middle} = {copied};", self.let(out, f"{middle}{self.copy('to_dm')}")]
        if what == "tiles":
            half = self.sizes["K"] // 2
            part = f"M, K = {half} # {self.sizes['K']}"
            kind, n = self.dm(out), self.flit(x[1])
            path = "::".join([re.sub("<", "::<", kind, count=1), "new()" if self.release else f"from_addr({self.place()[2:]})"])
            made = path if self.release else f"unsafe {{ {path} }}"
            lines = [f"let mut {self.name(out)} = {made};"]
            for h in range(2):
                tile = f".tile{self.types(self.mapping('K'), str(half), self.mapping(part))}({half * h})"
                lines.append(f"{self.unit('main')}.begin({self.name(x)}.view(){tile}){self.fetch(x[1], x[1], 'M', f'K = {half}')}"
                             f".collect{self.types(self.mapping(f'M, K = {half} / {n}'), self.mapping(f'K = {half} % {n}'))}()"
                             f"{self.commit(f'K = {half} % {n}', f'{self.name(out)}.view_mut(){tile}')};")
            return lines
        _, _, kind, narrow, half, _ = step
        rows = "N" if kind == "Interleaved" else "1"
        weights, stored = f"weights{out[0]}", f"w{out[0]}"
        lines = [f"let {stored}: {self.tensor(x[1], '1 # 256', f'{rows}, K')} = {self.inputs[1 if rows == 'N' else 2]}{self.copy('to_dm')};",
                 f"let {weights}: TrfTensor<{x[1]}, _, _, _, {self.mapping(rows)}, {self.mapping('K')}> = {self.unit('sub')}.begin({stored}.view())"
                 f"{self.fetch(x[1], x[1], rows, 'K')}{self.collect(x[1], rows, 'K')}.to_trf({'' if self.release else f'TrfAddress::{half}'});"]
        lanes = 512 // BITS[x[1]]
        packet = self.mapping("1" if kind == "Interleaved" else f"K % {lanes} / 8")
        chain = self.fetch(x[1], x[1], "M", "K") + self.collect(x[1], "M", "K")
        outer = [self.mapping(f"M, K / {lanes}"), self.mapping(f"K % {lanes}"), "_", "_"]
        last = [self.mapping("M"), self.rng.choice(["_", self.mapping(out[3])])]
        if self.release == 0:
            chain += f".align{self.types(*outer)}(&{weights}).contract{self.types(packet)}().accumulate{self.types(*last)}(AccumulationKind::{kind})"
        else:
            chain += (f".contract_outer{self.types(*outer, '_')}(&{weights}).contract_packet{self.types(packet)}()"
                      f".contract_time{self.types(self.mapping('M'))}().contract_lane{self.types(*last)}(LaneMode::{kind})")
        if narrow:
            chain += f".cast{self.types(x[1], '_')}()"
        return lines + [self.let(out, f"{self.unit('main')}.begin({self.name(x)}.view()){chain}{self.commit(out[3])}")]

    def kernel(self, number, steps):
        rng = self.rng
        self.names = {}
        self.context = rng.choice(["ctx", "device", "c"])
        self.inputs = [rng.choice(["x", "input", "a"]), rng.choice(["w", "b"]), "row"]
        lines = [line for step in steps.steps for line in self.write(step)]
        kind = "Device" if self.release >= 3 else "Context"
        result = steps.result
        element = f"M, {result[3]}"
        hbm = lambda dtype, e: f"HbmTensor<{dtype}, {self.mapping('1')}, {self.mapping(e)}>"  # noqa: E731
        parameters = [f"{self.context}: &mut {kind}", f"{self.inputs[0]}: &{hbm(steps.dtype, 'M, K')}", f"{self.inputs[1]}: &{hbm(steps.dtype, 'N, K')}",
                      f"{self.inputs[2]}: &{hbm(steps.dtype, 'K')}"]
        body = "\n    ".join([*lines, f"{self.name(result)}{self.copy('to_hbm')}"])
        blank = rng.choice(["", "\n", "// " + kind + "\n"])
        return f"{blank}#[device(chip = 1)]\nfn kernel_{number}({', '.join(parameters)}{self.comma()}) -> {hbm(result[1], element)} {{\n    {body}\n}}\n"

    def text(self, programs):
        parts = [self.kernel(i, p) for i, p in enumerate(programs)]
        axes = [f"{name} = {size}" for name, size in self.sizes.items()]
        self.rng.shuffle(axes)
        cut = self.rng.randint(0, len(axes))
        parts += [f"axes![{', '.join(part)}{self.comma()}];\n" for part in (axes[:cut], axes[cut:]) if part]
        parts += [f"type {name} = m![{text}];\n" for text, name in self.aliases.items()]
        self.rng.shuffle(parts)
        return "".join(parts).encode()


def commands(path):
    """Of each kernel: the words of its streams."""
    dump = json.loads(visa_tools.run(["visa-objdump", "--json", path]).out)
    return {k["name"]: {name: [c["words"] for c in visa_tools.commands(stream)] for name, stream in k["streams"].items()} for k in dump["kernels"]}


def compiled(text, folder, name, *options):
    path = os.path.join(folder, name + ".bin")
    done = visa_tools.run(["visac", "--place=auto", "-Wno-discarded", *options, "-", "-o", path], stdin=text)
    if done.status or done.crashed:
        return None, done.text()
    words = commands(path)
    os.remove(path)
    return words, ""


def differs(seed, folder):
    """None, or what is wrong with the programs of one seed."""
    rng = random.Random(seed)
    sizes = {"M": rng.choice([8, 16, 32]), "N": rng.choice([1, 2, 4, 8, 8]), "K": rng.choice([64])}
    programs = [Steps(rng, sizes) for _ in range(IN_FILE)]
    first = None
    for release in RELEASES:
        text = Writer(rng, release, sizes).text(programs)
        words, error = compiled(text, folder, f"{seed}", f"--dialect={release}")
        if words is None:
            return f"seed {seed}, {release} is refused:\n{error[:1500]}"
        first = first or words
        if words != first:
            return f"seed {seed}, {release}: other commands than April's in {[k for k in words if words[k] != first.get(k)]}\n{text.decode()}"
        upgraded = visa_tools.run(["visac", "--upgrade", "-"], stdin=text)
        if upgraded.status:
            return f"seed {seed}, {release} is not upgraded:\n{upgraded.text()[:1500]}"
        words, error = compiled(upgraded.out, folder, f"{seed}", f"--dialect={RELEASES[-1]}")
        if words != first:
            return f"seed {seed}, {release} upgraded: {error[:500] or 'other commands'}"
    return None


def main(arguments):
    count = int(arguments[0]) if arguments else visa_tools.few(240)
    first = int(arguments[1]) if len(arguments) > 1 else 1
    seeds = range(first, first + (count + IN_FILE - 1) // IN_FILE)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        wrong = [w for w in pool.map(lambda seed: differs(seed, folder), seeds) if w]
    print("\n".join(wrong[:3]))
    print(f"{len(seeds) * IN_FILE} programs in {len(RELEASES)} spellings, {len(wrong)} texts of {IN_FILE} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
