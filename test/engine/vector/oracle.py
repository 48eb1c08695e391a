#!/usr/bin/env python3
"""Random passes through the Vector Engine against their meaning.

A pass is drawn stage by stage in the published order, with operations, modes and operands at random: constants, the stash, tensors of the VRF
in every form of Element that the packets can read, and operands by tag, of which the first one that matches is taken (Branched) or each (an
array); or two streams by turns, each with operands of its own, which a zip makes one. What leaves the machine is compared word by word with
the operations of model.py, applied to each element alone: NaNs are equal to NaNs, all else bit for bit. The same passes are compared with the
reference, in numbers and in algebra (visac --check). Others break one rule and must be refused for it; the rule that is broken is known from
how the pass was made. Which unit does what, the order, and what a tag is, are the tables of this file.
Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
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
# of i32 and f32; what is of i32 alone is with SHIFTS
LOGIC = [("BitAnd", "LogicAnd", "AND_I32"), ("BitOr", "LogicOr", "OR_I32"), ("BitXor", "LogicXor", "XOR_I32")]
SHIFTS = [("LeftShift", "LogicLshift", "LOGIC_SHL"), ("LogicRightShift", "LogicRshift", "LOGIC_SHR"), ("ArithRightShift", "LogicRshift", "LOGIC_SAR")]
FXP = [("AddFxp", "FxpAdd", "ADD_FXP"), ("AddFxpSat", "FxpAdd", "ADD_FXP_SAT"), ("SubFxp", "FxpAdd", "SUB_FXP"), ("SubFxpSat", "FxpAdd", "SUB_FXP_SAT"),
       ("LeftShift", "FxpLshift", "FXP_SHL"), ("LeftShiftSat", "FxpLshift", "FXP_SHL_SAT"), ("MulFxp", "FxpMul", "MUL_FXP"), ("MulInt", "FxpMul", "MUL_INT"),
       ("LogicRightShift", "FxpRshift", "FXP_SHR"), ("ArithRightShift", "FxpRshift", "FXP_SAR"),
       ("ArithRightShiftRound", "FxpRshift", "FXP_SAR_ROUND")]
FP_UNARY = [("Exp", "FpExp", "EXP"), ("NegExp", "FpExp", "NEG_EXP"), ("Sqrt", "FpFpu", "SQRT"), ("Tanh", "FpFpu", "TANH"), ("Sigmoid", "FpFpu", "SIGMOID"),
            ("Log", "FpFpu", "LOG"), ("Sin", "FpFpu", "SIN"), ("Cos", "FpFpu", "COS"), ("Erf", "FpFpu", "ERF")]
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


COMPARE = {"Equal": lambda x, y, f: as_number(x, f) == as_number(y, f), "Less": lambda x, y, f: as_number(x, f) < as_number(y, f),
           "Greater": lambda x, y, f: as_number(x, f) > as_number(y, f), "LessUnsigned": lambda x, y, f: x < y, "GreaterUnsigned": lambda x, y, f: x > y}
# Elements of the VRF, and where (step, lane) reads them; by the layout of the packets those that these can read.
ELEMENTS = {"T, {p}": lambda t, lane, lanes: t * lanes + lane, "{p}": lambda t, lane, lanes: lane, "T": lambda t, lane, lanes: t, "T / 2": lambda t, lane, lanes: t // 2 * 2,
            "1 # 8": lambda t, lane, lanes: 0}
READABLE = {"whole": list(ELEMENTS), "pieces": ["T", "T / 2", "1 # 8"], "joined": ["T / 2", "1 # 8"]}


def as_number(word, is_float):
    return struct.unpack("<f", struct.pack("<I", word))[0] if is_float else MODEL["signed"](word)


class Pass:
    def __init__(self, rng):
        self.rng, self.used, self.calls, self.steps, self.stashed = rng, set(), [], [], None
        self.dtype = self.input = rng.choice(["i32", "f32"])
        self.packet, self.layout, self.tagged, self.registers = rng.choice(list(LANES)), "whole", None, []
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

    def register(self, dtype):
        """A tensor of the VRF: its name, and a function of (step, lane)."""
        element = self.rng.choice(READABLE[self.layout])
        lanes, at, name = LANES[self.packet], ELEMENTS[element], f"s{len(self.registers)}"
        count = {"T, {p}": STEPS * lanes, "{p}": lanes, "T": STEPS, "T / 2": STEPS, "1 # 8": 1}[element]  # of T / 2 the file has all of T
        words = [self.constant(dtype) for _ in range(count)]
        self.registers.append((name, dtype, element.format(p=self.packet), words))
        return name, lambda t, lane: words[at(t, lane, lanes)]

    def operand(self, immediate=None):
        """Operand 1 as text, and as a function of (step, lane, stash)."""
        kind = self.rng.random()
        if immediate is None and self.stashed == self.dtype and kind < 0.4:
            return "Stash", lambda at, stash: stash
        if immediate is not True and (kind < 0.7 or immediate is False) and len(self.registers) < 4:
            name, word = self.register(self.dtype)
            return name, lambda at, stash: word(*at)
        word = self.constant(self.dtype)
        return text_of(word, self.dtype), lambda at, stash: word

    def given(self, arity, immediate=None):
        """The operand besides the stream, and the operands 1 and 2."""
        text, first = self.operand(immediate)
        if arity < 3:
            return text, first, 0
        second = self.constant(self.dtype)
        return f"({text}, {text_of(second, self.dtype)})", first, second

    def guard(self):
        """A guard of Branched, and the set of tags that it admits."""
        bits = [self.rng.choice(["One", "Zero", "Ignore", "Ignore"]) for _ in range(4)]
        matches = {t for t in range(16) if all(b == "Ignore" or (b == "One") == bool(t >> i & 1) for i, b in enumerate(bits))}
        listed = ", ".join(f"BitReq::{b}" for b in bits)
        if self.rng.random() < 0.3 and len(matches) < 16:
            return f"TagGuard::not_matches([{listed}])", set(range(16)) - matches
        if self.rng.random() < 0.3:
            one = self.rng.random() < 0.5
            return f"TagGuard::group(GroupId::{'One' if one else 'Zero'})", {t for t in range(16) if bool(t >> 3) == one}
        return f"TagGuard::matches([{listed}])", matches

    def by_tag(self, arity):
        """Operands by tag: text, and in order (tags, first, second); whether the first one that matches is all."""
        slots, texts = [], []
        if self.rng.random() < 0.5:
            count = self.rng.choice([1, 2, 3])
            for n in range(count):
                guard, tags = self.guard()
                port = n == count - 1 and self.rng.random() < 0.5 and len(self.registers) < 4
                text, *rest = self.given(arity, immediate=not port)
                texts.append(f"{'rf' if port else 'imm'}({guard}, {text})")
                slots.append((tags, *rest))
                if len(tags) == 16:
                    break
            return "Branched::" + ".".join(texts), slots, True
        name = "TernaryOperand" if arity == 3 else "VeBranchOperand"
        groups = self.rng.sample(["always", "Zero", "One"], self.rng.choice([1, 2, 3]))
        for group in groups:
            text, *rest = self.given(arity)
            inner = text[1:-1] if arity == 3 else text
            texts.append(f"{name}::always({inner})" if group == "always" else f"{name}::group({inner}, GroupId::{group})")
            slots.append((set(range(16)) if group == "always" else {t for t in range(16) if bool(t >> 3) == (group == "One")}, *rest))
        return (texts[0] if len(texts) == 1 else f"ArrayVec::new([{', '.join(texts)}])"), slots, False

    def add(self, stage, enumeration, variant, unit, meaning):
        self.used.add(unit)
        arity = 1 if stage == "vector_fp_unary" else 3 if stage == "vector_fp_ternary" else 2
        text, slots, only_first = "", [(set(range(16)), None, 0)], True
        if arity > 1 and self.tagged and self.rng.random() < 0.5:
            text, slots, only_first = self.by_tag(arity)
        elif arity > 1:
            text, first, second = self.given(arity)
            slots = [(set(range(16)), first, second)]
        mode = {1: "0", 2: "01", 3: "012"}[arity]
        if arity > 1 and self.rng.random() < 0.4:
            mode = self.rng.choice(MODES[arity])
            argument = f"{'BinaryArgMode' if arity == 2 else 'TernaryArgMode'}::Mode{mode}"
            if stage == "vector_fp_div" and self.rng.random() < 0.5:
                self.calls.append(f".{stage}({enumeration}::{variant}.with_mode({argument}), {text})")
            else:
                self.calls.append(f".{stage}_with_mode({enumeration}::{variant}, {argument}, {text})")
        else:
            self.calls.append(f".{stage}({enumeration}::{variant}{', ' if text else ''}{text})")

        def step(s, at):
            for tags, first, second in slots:
                if s["tag"] in tags:
                    one = first(at, s["stash"]) if first else None
                    s["x"] = OF[meaning](*((s["x"], one, second)[int(i)] for i in mode))
                    if only_first:
                        break
        self.steps.append(step)

    def convert(self, to):
        width = self.rng.choice([31, 31, self.rng.randrange(32)])
        name, meaning = ("vector_fxp_to_fp", "FXP_TO_FP") if to == "f32" else ("vector_fp_to_fxp", "FP_TO_FXP")
        self.calls.append(f".{name}({width})")
        self.steps.append(lambda s, at: s.update(x=OF[meaning](s["x"], width)))
        self.dtype = to

    def reinterpret(self):
        came = [c for c in self.calls if not c.startswith(".vector_reinterpret")][-1:]
        late = came and came[0].startswith((".vector_concat", ".vector_pad", ".vector_fxp_to_fp", ".vector_fp_to_fxp"))
        if self.stashed is None and not late and self.rng.random() < 0.15:
            self.stashed = self.dtype
            self.calls.append(".vector_stash()")
            self.steps.append(lambda s, at: s.update(stash=s["x"]))
        if self.rng.random() < 0.12:
            self.dtype = "f32" if self.dtype == "i32" else "i32"
            self.calls.append(f".vector_reinterpret::<{self.dtype}>()")

    def tag(self):
        """Four comparisons, or none."""
        kinds = [self.rng.choice(["True", "False", *COMPARE]) for _ in range(4)]
        words, is_float = [self.constant(self.dtype) for _ in range(4)], self.dtype == "f32"
        self.tagged = self.rng.random() < 0.6
        if not self.tagged:
            self.calls.append(".vector_intra_slice_branch(BranchMode::Unconditional)")
            return
        enumeration = f"InputCmp{self.dtype.upper()}"
        april = self.rng.random() < 0.5
        texts = [(f"InputCmp::{self.dtype.upper()}({enumeration}::{k}" + (f" {{ boundary: {text_of(w, self.dtype)} }})" if k in COMPARE else ")")) if april
                 else f"Cmp::{k}" + (f"({text_of(w, self.dtype)})" if k in COMPARE else "") for k, w in zip(kinds, words)]
        self.calls.append(f".vector_intra_slice_branch(BranchMode::Comparison([{', '.join(texts)}]))")
        self.steps.append(lambda s, at: s.update(tag=sum((k == "True" or (k in COMPARE and COMPARE[k](s["x"], w, is_float))) << i
                                                         for i, (k, w) in enumerate(zip(kinds, words)))))

    def draw(self):
        rng = self.rng
        self.tag()
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
        self.layout = "whole" if trims or self.packet == "B" else "pieces"
        for _ in range(self.rng.choice([0, 1, 2, 4]) if self.dtype == "f32" else 0):
            self.operation(self.rng.choice(["vector_fp_unary", "vector_fp_binary", "vector_fp_binary", "vector_fp_ternary"]))
            self.reinterpret()
            if self.dtype != "f32":
                break
        if self.dtype == "f32" and self.rng.random() < 0.3:
            self.operation("vector_fp_div")
        joins = self.rng.random() < 0.5
        self.calls.append(".vector_concat()" if joins else ".vector_pad_way8()")
        self.layout = "joined" if trims and joins else "whole" if joins and not trims else self.layout

    TIME = "T"

    def source(self, name, broken=None):
        calls = list(self.calls)
        if broken:
            calls = broken(calls)
        registers = "".join(f", {n}: &VrfTensor<{d}, m![1], m![1], m![1], m![{e}]>" for n, d, e, _ in self.registers)
        return (f"fn {name}(x: CollectTensor<{self.input}, m![1], m![1], m![1], m![{self.TIME}], m![{self.packet}]>{registers}) -> VectorFinalTensor<_, m![1], m![1], m![1], _, _> {{\n"
                f"    x.vector_init()\n        {''.join(calls)}\n        .vector_final()\n}}\n")

    def count(self):
        return STEPS * LANES[self.packet]

    def wanted(self, words):
        out = []
        for i, word in enumerate(words):
            state = {"x": word, "stash": None, "tag": 0}
            for step in self.steps:
                step(state, divmod(i, LANES[self.packet]))
            out.append(state["x"])
        return out


class Pair(Pass):
    """Two streams by turns: the axis I is anywhere in Time."""
    PLACES = {"T, I": ("T, 1 # 2", lambda g, t: 2 * t + g), "I, T": ("1 # 2, T", lambda g, t: g * STEPS + t),
              "T / 2, I, T % 2": ("T / 2, 1 # 2, T % 2", lambda g, t: 2 * t + g)}  # a file has T before I

    def tag(self):
        self.packet, self.tagged = "B", False
        self.TIME = self.rng.choice(list(self.PLACES))
        tiled, self.at = self.PLACES[self.TIME]
        self.calls.append(f".vector_intra_slice_unzip::<I, m![{tiled}], m![T]>()")
        self.paired = True

    def reinterpret(self):
        if self.rng.random() < 0.12:
            self.dtype = "f32" if self.dtype == "i32" else "i32"
            self.calls.append(f".vector_reinterpret::<{self.dtype}>()")

    def add(self, stage, enumeration, variant, unit, meaning):
        if not self.paired:
            super().add(stage, enumeration, variant, unit, meaning)
            return
        self.used.add(unit)
        arity = 1 if stage == "vector_fp_unary" else 3 if stage == "vector_fp_ternary" else 2
        zips = arity == 2 and stage != "vector_fp_div" and self.rng.random() < 0.4
        mode, with_mode = {1: "0", 2: "01", 3: "012"}[arity], ""
        if arity > 1 and self.rng.random() < 0.4:
            mode = self.rng.choice(MODES[arity])
            with_mode = f", {'BinaryArgMode' if arity == 2 else 'TernaryArgMode'}::Mode{mode}"
        suffix = "_with_mode" if with_mode else ""
        if zips:
            self.paired = False
            name = "vector_fp" if stage == "vector_fp_binary" else stage
            self.calls.append(f".{name}_zip{suffix}({enumeration}::{variant}{with_mode})")
            self.steps.append(lambda s, at: s.update(x=OF[meaning](*((s["x"], s["other"])[int(i)] for i in mode))))
            return
        taken = self.rng.choice([(True, True), (True, False), (False, True)])
        if arity == 1:
            self.calls.append(f".{stage}({enumeration}::{variant}, {', '.join(str(t).lower() for t in taken)})")
            given = [("", None, 0) if t else None for t in taken]
        else:
            given = [self.given(arity) if t else None for t in taken]
            self.calls.append(f".{stage}{suffix}({enumeration}::{variant}{with_mode}, {', '.join(g[0] if g else '()' for g in given)})")

        def step(s, at):
            for key, g in zip(("x", "other"), given):
                if g:
                    one = g[1](at, None) if g[1] else None
                    s[key] = OF[meaning](*((s[key], one, g[2])[int(i)] for i in mode))
        self.steps.append(step)

    def convert(self, to):
        paired = self.paired
        super().convert(to)
        both = self.steps.pop()

        def step(s, at):
            both(s, at)
            if paired:
                other = {"x": s["other"]}
                both(other, at)
                s["other"] = other["x"]
        self.steps.append(step)

    def narrow(self):
        self.calls.append(".vector_split()")
        for _ in range(self.rng.choice([0, 1, 2, 4]) if self.dtype == "f32" else 0):
            self.operation(self.rng.choice(["vector_fp_unary", "vector_fp_binary", "vector_fp_binary", "vector_fp_ternary"]))
            self.reinterpret()
            if self.dtype != "f32":
                break
        self.calls.append(".vector_concat()")

    def draw(self):
        super().draw()
        if self.paired:  # a clip is always there: each of its units at most once
            rows = [r for r in (CLIP_F32 if self.dtype == "f32" else CLIP_I32) if r[1] not in self.used]
            if not rows:
                self.__init__(self.rng)
                return
            name, _, meaning = self.rng.choice(rows)
            self.calls.append(f".vector_clip_zip(ClipBinaryOp{self.dtype.upper()}::{name})")
            self.steps.append(lambda s, at: s.update(x=OF[meaning](s["x"], s["other"])))

    def count(self):
        return 2 * STEPS * 8

    def wanted(self, words):
        out = []
        for t in range(STEPS):
            for lane in range(8):
                state = {"x": words[8 * self.at(0, t) + lane], "other": words[8 * self.at(1, t) + lane], "stash": None, "tag": 0}
                for step in self.steps:
                    step(state, (t, lane))
                out.append(state["x"])
        return out


def drawn(rng):
    return Pair(rng) if rng.random() < 0.35 else Pass(rng)


AXES = f"axes![T = {STEPS}, B = 8, C = 4, F = 5, I = 2];\n" + """fn april(x: CollectTensor<i32, m![1], m![1], m![1], m![T], m![B]>) -> VectorFinalTensor<i32, m![1], m![1], m![1], _, _> {
    x.vector_init().vector_intra_slice_branch(BranchMode::Unconditional).vector_final()
}
"""  # the first words say the release, in which a stash is read as often as one likes


def inputs(rng, count):
    return [rng.choice(EDGES) if rng.random() < 0.7 else rng.getrandbits(32) for _ in range(count)]


def same(a, b, dtype):
    return a == b or (dtype == "f32" and MODEL["is_nan"](a) and MODEL["is_nan"](b))


def compare(directory, passes, rng):
    """Faults of a file of passes, each run by itself."""
    path, faults = os.path.join(directory, "passes.vm"), []
    with open(path, "w") as file:
        file.write(AXES + "".join(p.source(f"p{i}") for i, p in enumerate(passes)))
    made = visa_tools.run(["visac", path, "-o", path + ".bin"])
    checked = visa_tools.run(["visac", path, "--check"])
    nothing = re.sub(r"error\[E-CHECK-NOTHING\].*", "", checked.text())  # infinite and NaN in both
    if made.status != 0 or checked.status not in (0, 1, 3) or checked.crashed or "error[" in nothing:
        return [(made.text() + checked.text())[-1500:]]
    for i, p in enumerate(passes):
        words, wanted = inputs(rng, p.count()), None
        files = [("x", words)] + [(name, given) for name, _, _, given in p.registers]
        for name, given in files:
            with open(f"{path}.{name}", "wb") as file:
                file.write(struct.pack(f"<{len(given)}I", *given))
        done = visa_tools.run(["visa-run", path + ".bin", "--kernel", f"p{i}", "--output", f"out={path}.out"]
                              + [a for name, _ in files for a in ("--input", f"{name}={path}.{name}")])
        if done.status != 0:
            faults.append(f"{p.source(f'p{i}')}{done.text()}")
            continue
        wanted = p.wanted(words)
        with open(path + ".out", "rb") as file:
            got = struct.unpack(f"<{len(wanted)}I", file.read())
        for n, (g, r) in enumerate(zip(got, wanted)):
            if not same(g, r, p.dtype):
                faults.append(f"{p.source(f'p{i}')}element {n}: {g:08x}, by the model {r:08x}")
                break
    return faults


def breaks(rng, p):
    """A call that breaks a rule after a legal pass without clips, and the rule; what the call reads from the VRF."""
    enumeration, type_name = ("ClipBinaryOpF32", "f32") if p.dtype == "f32" else ("ClipBinaryOpI32", "i32")
    constant, clip = "1.0" if p.dtype == "f32" else "1", f".vector_clip({enumeration}::Max, "
    guard = "TagGuard::group(GroupId::One)"
    other = "i32" if p.dtype == "f32" else "f32"
    lanes = {"whole": p.packet, "pieces": "T", "joined": "T"}[p.layout]
    return rng.choice([
        (clip + constant + ")" + clip + constant + ")", "E-VECTOR-ALU", None),  # a unit twice
        (clip + constant + ")" + rng.choice([".vector_split()", ".vector_fp_to_fxp(31)", ".vector_fxp_to_fp(31)"]), "E-METHOD", None),  # a stage too late
        (f".vector_clip(ClipBinaryOp{other.upper()}::Max, {'1' if other == 'i32' else '1.0'})", "E-VECTOR-TYPE", None),
        (clip + "1" + (")" if p.dtype == "f32" else ".5)"), "E-VECTOR-OPERAND", None),
        (clip + "s9)", "E-VECTOR-TYPE", f"s9: &VrfTensor<{other}, m![1], m![1], m![1], m![1 # 8]>"),
        (clip + "s9)", "E-VRF-UNITS", f"s9: &VrfTensor<{type_name}, m![1], m![1], m![I], m![1 # 8]>"),
        (clip + "s9)", "E-VRF-WALK", f"s9: &VrfTensor<{type_name}, m![1], m![1], m![1], m![I]>"),  # an axis that the stream does not have
        (clip + "s9)", "E-VRF-WALK", f"s9: &VrfTensor<{type_name}, m![1], m![1], m![1], m![{lanes} #{{!}} {16 if lanes != 'T' else 7}]>" if lanes in ("B", "T") else
         f"s9: &VrfTensor<{type_name}, m![1], m![1], m![1], m![{lanes.split()[0]} #{{!}} 9]>"),
        (clip + f"Branched::imm(TagGuard::all(), {constant}).imm({guard}, {constant}))", "E-VECTOR-OPERAND", None),
        (clip + f"Branched::rf({guard}, {constant}))", "E-VECTOR-OPERAND", None),
        (clip + f"Branched::imm({guard}, {constant})" + f".imm({guard}, {constant})" * 3 + ")", "E-VECTOR-OPERAND", None),
        (clip + f"Branched::imm(TagGuard::not_matches([BitReq::Ignore, BitReq::Ignore, BitReq::Ignore, BitReq::Ignore]), {constant}))", "E-VECTOR-OPERAND", None),
        (clip + f"[VeBranchOperand::always({constant}), VeBranchOperand::always({constant})])", "E-VECTOR-OPERAND", None),
        (f".vector_clip_zip({enumeration}::Max)", "E-METHOD", None),  # there is one stream
    ])


def near_legal(rng):
    """A pass that breaks one rule, and the rule's id. It has no stash and no clips of its own."""
    while True:
        p = Pass(rng)
        if not p.stashed and not any(c.startswith(".vector_clip") for c in p.calls):
            break
    call, rule, register = breaks(rng, p)
    source = p.source("p", lambda calls: calls + [call])
    return (source.replace(") -> VectorFinal", f", {register}) -> VectorFinal", 1) if register else source), rule


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(100)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 23
    faults, refused = [], 0
    with tempfile.TemporaryDirectory() as directory:
        for first in range(0, count, 50):
            rng = random.Random(seed * 1000003 + first)
            faults += compare(directory, [drawn(rng) for _ in range(min(50, count - first))], rng)
        for n in range(count // 4):
            source, rule = near_legal(random.Random(seed * 7919 + n))
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
