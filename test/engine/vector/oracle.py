#!/usr/bin/env python3
"""Random passes through the Vector Engine against their meaning.

A pass is drawn stage by stage in the published order, with operations, modes and constants at random; what leaves the machine is compared
word by word with the operations of model.py, applied to each element alone: NaNs are equal to NaNs, all else bit for bit. The same passes
are compared with the reference, in numbers and in algebra (visac --check). Others break one rule (a unit twice, a stage too late, the
other element type) and must be refused for it. Which unit does what, and the order, are the tables of this file.
Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: 20,000 passes."""
import os
import random
import re
import runpy
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import visa_tools  # noqa: E402

MODEL = runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.py"))
OF = {**MODEL["UNARY"], **MODEL["BINARY"], **MODEL["TERNARY"]}
EDGES = MODEL["edges"]()

# enumeration, variant, unit, meaning; by stage
LOGIC = [("BitAnd", "LogicAnd", "AND_I32"), ("BitOr", "LogicOr", "OR_I32"), ("BitXor", "LogicXor", "XOR_I32")]
SHIFTS = [("LeftShift", "LogicLshift", "LOGIC_SHL"), ("LogicRightShift", "LogicRshift", "LOGIC_SHR"), ("ArithRightShift", "LogicRshift", "LOGIC_SAR")]
FXP = [("AddFxp", "FxpAdd", "ADD_FXP"), ("AddFxpSat", "FxpAdd", "ADD_FXP_SAT"), ("SubFxp", "FxpAdd", "SUB_FXP"), ("SubFxpSat", "FxpAdd", "SUB_FXP_SAT"),
       ("LeftShift", "FxpLshift", "FXP_SHL"), ("LeftShiftSat", "FxpLshift", "FXP_SHL_SAT"), ("MulFxp", "FxpMul", "MUL_FXP"), ("MulInt", "FxpMul", "MUL_INT"),
       ("LogicRightShift", "FxpRshift", "FXP_SHR"), ("ArithRightShift", "FxpRshift", "FXP_SAR")]
FP_UNARY = [("Exp", "FpExp", "EXP"), ("NegExp", "FpExp", "NEG_EXP"), ("Sqrt", "FpFpu", "SQRT"), ("Tanh", "FpFpu", "TANH"), ("Sigmoid", "FpFpu", "SIGMOID"),
            ("Log", "FpFpu", "LOG"), ("Sin", "FpFpu", "SIN"), ("Cos", "FpFpu", "COS")]
FP_BINARY = [("AddF", "FpFma", "ADD_F"), ("SubF", "FpFma", "SUB_F"), ("MulF(FpMulAlu::Mul0)", "FpMul0", "MUL_F0"), ("MulF(FpMulAlu::Mul1)", "FpMul1", "MUL_F1"),
             ("MulF(FpMulAlu::Fma)", "FpFma", "MUL_FMA"), ("DivF", "FpFpu", "DIV_F")]
CLIP_I32 = [("Min", "ClipMin", "CLIP_MIN_I32"), ("Max", "ClipMax", "CLIP_MAX_I32"), ("AbsMin", "ClipMin", "CLIP_ABS_MIN_I32"), ("AbsMax", "ClipMax", "CLIP_ABS_MAX_I32"),
            ("AddFxp", "ClipAdd", "CLIP_ADD_FXP"), ("AddFxpSat", "ClipAdd", "CLIP_ADD_FXP_SAT")]
CLIP_F32 = [("Min", "ClipMin", "CLIP_MIN_F32"), ("Max", "ClipMax", "CLIP_MAX_F32"), ("AbsMin", "ClipMin", "CLIP_ABS_MIN_F32"), ("AbsMax", "ClipMax", "CLIP_ABS_MAX_F32"),
            ("Add", "ClipAdd", "CLIP_ADD_F32")]
STAGES = {  # by stage and element type: enumeration, operations
    ("vector_logic", "i32"): ("LogicBinaryOpI32", LOGIC + SHIFTS),
    ("vector_logic", "f32"): ("LogicBinaryOpF32", [(v, u, m.replace("I32", "F32")) for v, u, m in LOGIC]),
    ("vector_fxp", "i32"): ("FxpBinaryOp", FXP),
    ("vector_fp_unary", "f32"): ("FpUnaryOp", FP_UNARY),
    ("vector_fp_binary", "f32"): ("FpBinaryOp", FP_BINARY),
    ("vector_fp_ternary", "f32"): ("FpTernaryOp", [("FmaF", "FpFma", "FMA_F")]),
    ("vector_fp_div", "f32"): ("FpDivBinaryOp", [("DivF", "ReduceFpDiv", "FP_DIV")]),
    ("vector_clip", "i32"): ("ClipBinaryOpI32", CLIP_I32),
    ("vector_clip", "f32"): ("ClipBinaryOpF32", CLIP_F32),
}
MODES = {2: ["00", "01", "10", "11"], 3: ["012", "002", "102", "112", "020", "021", "120"]}
STEPS, LANES = 6, {"B": 8, "C # 8": 4, "F # 8": 5}


def text_of(word, dtype):
    if dtype == "i32":
        return str(MODEL["signed"](word))
    value = struct.unpack("<f", struct.pack("<I", word))[0]
    return repr(value) if "e" in repr(value) or "." in repr(value) else f"{value!r}.0"


class Pass:
    def __init__(self, rng):
        self.rng, self.used, self.calls, self.steps, self.stashed = rng, set(), [], [], None
        self.dtype = self.input = rng.choice(["i32", "f32"])
        self.packet = rng.choice(list(LANES))
        self.draw()

    def constant(self, dtype):
        while True:
            word = self.rng.choice(EDGES) if self.rng.random() < 0.6 else self.rng.getrandbits(32)
            if self.rng.random() < 0.3:
                word = self.rng.randrange(40) if dtype == "i32" else struct.unpack("<I", struct.pack("<f", self.rng.choice([0.5, -1.5, 2.0, 3.25, 100.0])))[0]
            if dtype == "i32" or word & 0x7FFFFFFF < 0x7F800000:
                return word

    def operation(self, stage):
        enumeration, rows = STAGES[stage, self.dtype]
        rows = [r for r in rows if r[1] not in self.used]
        if rows:
            self.add(stage, enumeration, *self.rng.choice(rows))

    def add(self, stage, enumeration, variant, unit, meaning):
        self.used.add(unit)
        arity = 1 if stage == "vector_fp_unary" else 3 if stage == "vector_fp_ternary" else 2
        reads = arity > 1 and self.stashed == self.dtype and self.rng.random() < 0.6
        constants = [self.constant(self.dtype) for _ in range(arity - 1)]
        given = "" if arity == 1 else ", " + text_of(constants[0], self.dtype) if arity == 2 else ", ({}, {})".format(*(text_of(c, self.dtype) for c in constants))
        if reads:
            given = ", Stash" if arity == 2 else f", (Stash, {text_of(constants[1], self.dtype)})"
        mode = {1: "0", 2: "01", 3: "012"}[arity]
        if arity > 1 and self.rng.random() < 0.4:
            mode = self.rng.choice(MODES[arity])
            self.calls.append(f".{stage}_with_mode({enumeration}::{variant}, {'BinaryArgMode' if arity == 2 else 'TernaryArgMode'}::Mode{mode}{given})")
        else:
            self.calls.append(f".{stage}({enumeration}::{variant}{given})")
        self.steps.append(lambda x, stash: (OF[meaning](*((x, stash if reads else constants[0] if constants else None, *constants[1:])[int(i)] for i in mode)), stash))

    def convert(self, to):
        width = self.rng.choice([31, 31, self.rng.randrange(32)])
        name, meaning = ("vector_fxp_to_fp", "FXP_TO_FP") if to == "f32" else ("vector_fp_to_fxp", "FP_TO_FXP")
        self.calls.append(f".{name}({width})")
        self.steps.append(lambda x, stash: (OF[meaning](x, width), stash))
        self.dtype = to

    def reinterpret(self):
        came = [c for c in self.calls if not c.startswith(".vector_reinterpret")][-1:]
        late = came and came[0].startswith((".vector_concat", ".vector_pad", ".vector_fxp_to_fp", ".vector_fp_to_fxp"))
        if self.stashed is None and not late and self.rng.random() < 0.15:
            self.stashed = self.dtype
            self.calls.append(".vector_stash()")
            self.steps.append(lambda x, stash: (x, x))
        if self.rng.random() < 0.12:
            self.dtype = "f32" if self.dtype == "i32" else "i32"
            self.calls.append(f".vector_reinterpret::<{self.dtype}>()")

    def draw(self):
        rng = self.rng
        self.reinterpret()
        for _ in range(rng.choice([0, 0, 1, 2, 4])):
            self.operation("vector_logic")
            self.reinterpret()
        for _ in range(rng.choice([0, 1, 2, 4])):
            if self.dtype == "i32":
                self.operation("vector_fxp")
            self.reinterpret()
        if self.dtype == "i32" and rng.random() < 0.5:
            self.convert("f32")
        if rng.random() < 0.6:
            self.narrow()
        if self.dtype == "f32" and rng.random() < 0.5:
            self.convert("i32")
        self.reinterpret()
        for _ in range(rng.choice([0, 1, 2, 3])):
            self.operation("vector_clip")
            self.reinterpret()

    def narrow(self):
        """Trim where the back half is padding; then concat or pad, whichever was not the way in."""
        trims = LANES[self.packet] <= 4 and self.rng.random() < 0.5
        self.calls.append(".vector_trim_way4()" if trims else ".vector_split()")
        for _ in range(self.rng.choice([0, 1, 2, 4]) if self.dtype == "f32" else 0):
            self.operation(self.rng.choice(["vector_fp_unary", "vector_fp_binary", "vector_fp_binary", "vector_fp_ternary"]))
            self.reinterpret()
            if self.dtype != "f32":
                break
        if self.dtype == "f32" and self.rng.random() < 0.3:
            self.operation("vector_fp_div")
        self.calls.append(self.rng.choice([".vector_concat()", ".vector_pad_way8()"]))

    def source(self, name, broken=None):
        calls = list(self.calls)
        if broken:
            calls = broken(calls)
        return (f"fn {name}(x: CollectTensor<{self.input}, m![1], m![1], m![1], m![T], m![{self.packet}]>) -> VectorFinalTensor<_, m![1], m![1], m![1], _, _> {{\n"
                f"    x.vector_init().vector_intra_slice_branch(BranchMode::Unconditional)\n        {''.join(calls)}\n        .vector_final()\n}}\n")

    def wanted(self, words):
        out = []
        for word in words:
            stash = None
            for step in self.steps:
                word, stash = step(word, stash)
            out.append(word)
        return out


AXES = f"axes![T = {STEPS}, B = 8, C = 4, F = 5];\n"


def inputs(rng, count):
    return [rng.choice(EDGES) if rng.random() < 0.7 else rng.getrandbits(32) for _ in range(count)]


def same(a, b, dtype):
    return a == b or (dtype == "f32" and MODEL["is_nan"](a) and MODEL["is_nan"](b))


def compare(directory, passes, rng):
    """Faults of a file of passes, each run by itself."""
    path, faults = os.path.join(directory, "passes.vm"), []
    with open(path, "w") as file:
        file.write(AXES + "".join(p.source(f"p{i}") for i, p in enumerate(passes)))
    made = visa_tools.run(["visac", path, "-o", path + ".bin"], timeout=600)
    checked = visa_tools.run(["visac", path, "--check"], timeout=600)
    nothing = re.sub(r"error\[E-CHECK-NOTHING\].*", "", checked.text())  # infinite and NaN in both
    if made.status != 0 or checked.status not in (0, 1, 3) or checked.crashed or "error[" in nothing:
        return [(made.text() + checked.text())[-1500:]]
    for i, p in enumerate(passes):
        words = inputs(rng, STEPS * LANES[p.packet])
        with open(path + ".raw", "wb") as file:
            file.write(struct.pack(f"<{len(words)}I", *words))
        done = visa_tools.run(["visa-run", path + ".bin", "--kernel", f"p{i}", "--input", f"x={path}.raw", "--output", f"out={path}.out"])
        if done.status != 0:
            faults.append(f"{p.source(f'p{i}')}{done.text()}")
            continue
        with open(path + ".out", "rb") as file:
            got = struct.unpack(f"<{len(words)}I", file.read())
        for w, g, r in zip(words, got, p.wanted(words)):
            if not same(g, r, p.dtype):
                faults.append(f"{p.source(f'p{i}')}of {w:08x}: {g:08x}, by the model {r:08x}")
                break
    return faults


def near_legal(rng):
    """A pass that breaks one rule, and the rule's id."""
    p = Pass(rng)
    while p.stashed:
        p = Pass(rng)
    kind = rng.randrange(3)
    if kind == 0:  # a unit twice
        stage, enumeration, rows = ("vector_clip", "ClipBinaryOpF32", CLIP_F32) if p.dtype == "f32" else ("vector_clip", "ClipBinaryOpI32", CLIP_I32)
        row = rng.choice(rows)
        constant = "1.0" if p.dtype == "f32" else "1"
        call = f".{stage}({enumeration}::{row[0]}, {constant})"
        return p.source("p", lambda calls: calls + [call, call]), "E-VECTOR-ALU"
    if kind == 1:  # a stage too late
        clip = f".vector_clip({'ClipBinaryOpF32::Max, 1.0' if p.dtype == 'f32' else 'ClipBinaryOpI32::Max, 1'})"
        last = [c for c in p.calls if not c.startswith(".vector_clip")]
        return p.source("p", lambda calls: last + [clip, rng.choice([".vector_split()", ".vector_fp_to_fxp(31)", ".vector_fxp_to_fp(31)"])]), "E-METHOD"
    other = "ClipBinaryOpI32::Max, 1" if p.dtype == "f32" else "ClipBinaryOpF32::Max, 1.0"
    kept = [c for c in p.calls if not c.startswith(".vector_clip")]
    flips = sum(c.startswith(".vector_reinterpret") for c in p.calls) != sum(c.startswith(".vector_reinterpret") for c in kept)
    return (None, None) if flips else (p.source("p", lambda calls: kept + [f".vector_clip({other})"]), "E-VECTOR-TYPE")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20000 if visa_tools.LONG else 200 // visa_tools.SLOWER
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 23
    faults, refused = [], 0
    with tempfile.TemporaryDirectory() as directory:
        for first in range(0, count, 50):
            rng = random.Random(seed * 1000003 + first)
            faults += compare(directory, [Pass(rng) for _ in range(min(50, count - first))], rng)
        for n in range(count // 4):
            source, rule = near_legal(random.Random(seed * 7919 + n))
            if not source:
                continue
            path = os.path.join(directory, "near.vm")
            with open(path, "w") as file:
                file.write(AXES + source)
            done = visa_tools.run(["visac", path])
            refused += 1
            if done.status != 1 or f"error[{rule}]" not in done.text():
                faults.append(f"{source}should be {rule}:\n{done.text()[:600]}")
    for fault in faults[:5]:
        print(fault)
    print(f"{count} passes, {refused} that break a rule, {len(faults)} wrong")
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main())
