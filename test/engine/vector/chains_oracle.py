#!/usr/bin/env python3
"""Random chains through the Vector Engine: what they compute, and which are none.

A chain is a list of calls: blocks inside slices and a reduction over slices in any order that there is, tags and pairs, operations with every kind of
operand, changes of width, reductions, the stash. `Judge` walks it by the published rules (order of the stages, each unit once, element types, operands,
widths, slots) and says which of them it breaks, None of which is taken from visac. Chains that break none are computed here: the stream is a
set of elements, by coordinates (meaning.py), and each call changes their words, with the operations of model.py; a reduction goes through the packets in the
machine's order. The machine's words must be the same, bit for bit. Then calls of good chains are exchanged, left out, doubled or changed at random; what
the judge refuses must be refused, each message for a reason that the judge has, and what it accepts accepted.
Usage: chains_oracle.py [COUNT [SEED [NEAR]]]; VISA_LONG=1: many more."""
import copy
import os
import random
import re
import runpy
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..", "..", "oracle")]
import meaning  # noqa: E402
import visa_tools  # noqa: E402
from harness import compile_all  # noqa: E402

PASSES = runpy.run_path(os.path.join(HERE, "oracle.py"))
SLICES = runpy.run_path(os.path.join(HERE, "slices_oracle.py"))
REDUCE = runpy.run_path(os.path.join(HERE, "reduce_oracle.py"))
MODEL, STAGES, MODES, EDGES = PASSES["MODEL"], PASSES["STAGES"], PASSES["MODES"], PASSES["EDGES"]
OF, COMPARE, text_of = PASSES["OF"], PASSES["COMPARE"], PASSES["text_of"]
names_in_order, dense = SLICES["names_in_order"], SLICES["dense"]
AXES = {"S": 4, "U": 3, "O": 2, "T": 4, "A": 3, "G": 5, "V": 2, "P": 8, "C": 4, "E": 3, "F": 5, "Q": 2, "D": 4, "I": 2, "X": 2, "Y": 3, "Z": 4, "W": 8, "L": 1}
FRESH = {2: "X", 3: "Y", 4: "Z", 8: "W"}
# Where a stage may stand: what a pass has come to. Packets have 4 elements between narrow and widen.
LOGIC, FXP, FXP_TO_FP, NARROW, FP, REDUCED, FP_DIV, WIDEN, FP_TO_FXP, CLIP = range(1, 11)
INIT, OVER_SLICES = "init", "slices"
WIDE = (0, LOGIC, FXP, FXP_TO_FP, WIDEN, FP_TO_FXP, CLIP)
BEFORE = {"vector_logic": (LOGIC, (0, LOGIC)), "vector_fxp": (FXP, (0, LOGIC, FXP)), "vector_fp_unary": (FP, (NARROW, FP)), "vector_fp_binary": (FP, (NARROW, FP)),
          "vector_fp_ternary": (FP, (NARROW, FP)), "vector_fp_div": (FP_DIV, (NARROW, FP, REDUCED)), "vector_clip": (CLIP, WIDE)}
STASHED_AFTER = (0, LOGIC, FXP, NARROW, FP, FP_DIV, CLIP)
ARITY = {"vector_fp_unary": 1, "vector_fp_ternary": 3}
ENUMERATION = {"FxpBinaryOp": "i32", "LogicBinaryOpI32": "i32", "ClipBinaryOpI32": "i32"}  # the others are of f32


def join(parts):
    return ", ".join(parts) or "1"


class Shape:
    """Mappings of a stream as lists of parts, and what is asked of them by enumeration."""
    axes = meaning.Axes(AXES)

    def __init__(self, slices, time, packet):
        self.slice, self.time, self.packet = list(slices), list(time), packet

    def table(self, text):
        tree = meaning.parse(text)
        meaning.check(tree, self.axes)
        return meaning.table(tree, self.axes)

    def size(self, text):
        return meaning.size(meaning.parse(text), self.axes)

    def live(self, *codes):
        return None if None in codes or not self.axes.live(sum(codes)) else sum(codes)

    def has(self, text, name):
        """Does the part hold more than one coordinate of the axis?"""
        return any(c is not None and self.axes.live(c) and c & self.axes.field(name) for c in self.table(text))

    def names(self):
        return names_in_order([*self.slice, *self.time, self.packet], self.axes)

    def same(self, one, other):
        return meaning.equal(meaning.parse(one), meaning.parse(other), self.axes)

    def lanes(self):
        return self.size(self.packet)


class Operand:
    """kind: word, stash, vrf, unit (a group that is left alone)."""

    def __init__(self, kind, dtype="i32", word=0, name=None, second=None):
        self.kind, self.dtype, self.word, self.name, self.second = kind, dtype, word, name, second

    def text(self):
        first = {"word": lambda: text_of(self.word, self.dtype), "stash": lambda: "Stash", "vrf": lambda: self.name, "unit": lambda: "()"}[self.kind]()
        return first if self.second is None else f"({first}, {text_of(self.second, self.dtype)})"


class Register:
    def __init__(self, name, dtype, slices, element, words):
        self.name, self.dtype, self.slice, self.element, self.words = name, dtype, slices, element, words

    def of(self, code):
        axes = Shape.axes
        return self.words[dense(axes, names_in_order([*self.slice, *self.element], axes), code)]


class Chain:
    def __init__(self, since, dtype, shape):
        self.since, self.dtype, self.shape, self.items, self.registers = since, dtype, shape, [], {}

    def copy(self):
        other = copy.copy(self)
        other.items, other.registers, other.shape = [dict(i) for i in self.items], dict(self.registers), copy.deepcopy(self.shape)
        return other

    def source(self, name):
        used = [r for r in self.registers.values() if any(r.name in re.findall(r"\w+", self.call(i)) for i in self.items)]
        registers = "".join(f", {r.name}: &VrfTensor<{r.dtype}, m![1], m![1], m![{join(r.slice)}], m![{join(r.element)}]>" for r in used)
        s = self.shape
        axes = ", ".join(f"{n} = {size}" for n, size in AXES.items())
        return (f"mod m{name} {{\naxes![{axes}];\nfn {name}(x: CollectTensor<{self.dtype}, m![1], m![1], m![{join(s.slice)}], m![{join(s.time)}], m![{s.packet}]>{registers})"
                f" -> VectorFinalTensor<_, m![1], m![1], _, _, _> {{\n    x.vector_init()\n        {''.join(map(self.call, self.items))}\n        .vector_final()\n}}\n}}")

    def call(self, i):
        kind, since = i["kind"], self.since
        if kind == "tag":
            if not i["compare"]:
                return ".vector_intra_slice_tag(TagMode::Zero)" if since else ".vector_intra_slice_branch(BranchMode::Unconditional)"
            kinds = [(k, text_of(w, i["dtype"]) if k in COMPARE else None) for k, w in i["compare"]]
            if since:
                return f".vector_intra_slice_tag(TagMode::Comparison([{', '.join(f'Cmp::{k}' + (f'({w})' if w else '') for k, w in kinds)}]))"
            upper = i["dtype"].upper()
            return (".vector_intra_slice_branch(BranchMode::Comparison(["
                    + ", ".join(f"InputCmp::{upper}(InputCmp{upper}::{k}" + (f" {{ boundary: {w} }})" if w else ")") for k, w in kinds) + "]))")
        if kind == "unzip":
            return f".vector_intra_slice_unzip::<I, m![{join(i['tiled'])}], m![{join(i['time'])}]>()"
        if kind == "width":
            return f".vector_{({'split': 'narrow_split', 'trim': 'narrow_trim', 'concat': 'widen_concat', 'pad': 'widen_pad'} if since else {'split': 'split', 'trim': 'trim_way4', 'concat': 'concat', 'pad': 'pad_way8'})[i['how']]}()"
        if kind == "convert":
            return f".vector_{i['how']}({i['width']})"
        if kind == "reinterpret":
            return f".vector_reinterpret::<{i['to']}>()"
        if kind == "stash":
            return ".vector_stash()"
        if kind == "reduce":
            return f".vector_intra_slice_reduce::<{i['axis']}, m![{join(i['time'])}], m![{i['packet']}]>(IntraSliceReduceOp{i['dtype'].upper()}::{i['op'][0]})"
        if kind == "slices":
            return f".vector_inter_slice_reduce::<m![{join(i['slice'])}], m![{join(i['time'])}]>(InterSliceReduceOp{i['dtype'].upper()}::{i['op'][0]})"
        stage, arity, mode = i["stage"], ARITY.get(i["stage"], 2), i["mode"]
        given = [] if stage == "vector_fp_div" and since else [f"{i['enumeration']}::{i['variant']}"]
        if mode is not None:
            given.append(f"{ {1: 'UnaryArgMode', 2: 'BinaryArgMode', 3: 'TernaryArgMode'}[len(mode)]}::Mode{mode}")
        if i["zip"]:
            stage = ("vector_fp" if stage == "vector_fp_binary" else stage) + "_zip"
        elif i["groups"]:
            given += [str(g.kind != "unit").lower() if arity == 1 else g.text() for g in i["groups"]]
        elif arity > 1:
            given.append(self.operands(i["operands"], arity))
        return f".{stage}{'_with_mode' if mode is not None else ''}({', '.join(given)})"

    @staticmethod
    def operands(slots, arity):
        if slots[0]["when"] is None:
            return slots[0]["operand"].text()
        if slots[0]["when"] in ("always", "Zero", "One"):
            name, texts = "TernaryOperand" if arity == 3 else "VeBranchOperand", []
            for s in slots:
                inner = s["operand"].text()[1:-1] if arity == 3 else s["operand"].text()
                texts.append(f"{name}::always({inner})" if s["when"] == "always" else f"{name}::group({inner}, GroupId::{s['when']})")
            return texts[0] if len(texts) == 1 else f"ArrayVec::new([{', '.join(texts)}])"
        return "Branched::" + ".".join(f"{s['port']}({s['when'][0]}, {s['operand'].text()})" for s in slots)


class Judge:
    """Walks a chain by the rules. `wrong`: ids of those that were broken; `may_be`: of those of which nothing is known, since a mapping is not;
    `stopped`: nothing is known of what follows."""
    OF_MAPPINGS = {"E-VECTOR-WIDTH", "E-VECTOR-REDUCE", "E-VECTOR-SLICES", "E-VRF-UNITS", "E-VRF-WALK", "E-VALID-COUNT"}

    def __init__(self, chain):
        self.chain, self.wrong, self.may_be, self.stopped = chain, set(), set(), False
        self.rank, self.way8, self.dtype = INIT, True, chain.dtype
        self.shape = copy.deepcopy(chain.shape)
        self.used, self.blocks, self.pair, self.paired = set(), [], False, False
        self.stash, self.stash_read, self.tagged, self.reduced = None, False, False, False

    def no(self, rule, stop=False):
        (self.may_be if self.may_be and rule in self.OF_MAPPINGS else self.wrong).add(rule)
        if stop and rule in self.OF_MAPPINGS:
            self.may_be |= self.OF_MAPPINGS
        else:
            self.stopped = self.stopped or stop
        return False

    def whole(self):
        for item in self.chain.items:
            if not self.stopped:
                self.step(item)
        if not self.stopped and (self.paired or self.rank not in (*WIDE, OVER_SLICES)):
            self.no("E-METHOD")
        return self.wrong

    def step(self, i):
        getattr(self, "on_" + i["kind"])(i)

    def may(self, *ranks):
        return self.rank in ranks or self.no("E-METHOD", True)

    def begin(self, block):
        """One block inside slices and one over them, in any order."""
        self.blocks.append(block)
        return self.blocks.count(block) == 1 or self.no("E-VECTOR-SLICES", True)

    def on_tag(self, i):
        if not self.may(INIT, OVER_SLICES):
            return
        self.begin("inside")
        self.rank, self.tagged, self.reduced = 0, True, False
        if i["compare"] and i["dtype"] != self.dtype and (not self.chain.since or any(k in COMPARE for k, _ in i["compare"])):
            self.no("E-VECTOR-OPERAND", True)

    def on_unzip(self, i):
        if not self.may(INIT):
            return
        self.begin("inside")
        if "I" not in self.shape.time:
            self.no("E-VECTOR-PAIR", True)
            return
        at = self.shape.time.index("I")
        inside = 8
        for part in self.shape.time[at + 1:]:
            inside *= self.shape.size(part)
        tiled = self.shape.time[:at] + ["1 # 2"] + self.shape.time[at + 1:]
        self.shape.time = self.shape.time[:at] + self.shape.time[at + 1:]
        if inside > 256 or not self.shape.same(join(i["tiled"]), join(tiled)) or not self.shape.same(join(i["time"]), join(self.shape.time)):
            self.no("E-VECTOR-PAIR", True)
        self.rank, self.pair, self.paired = 0, True, True

    def on_op(self, i):
        stage = i["stage"]
        rank, after = BEFORE[stage]
        if not self.may(*after):
            return
        pairs = i["zip"] or bool(i["groups"])
        if self.paired != pairs:  # another number of operands, or no such method
            if stage == "vector_fp_div" and not self.chain.since:
                self.wrong.add("E-VECTOR-OPERAND")  # as many as 0.6 takes, where an operation is no operand
            self.no("E-METHOD" if i["zip"] else "E-ARGUMENTS", True)
            return
        self.rank = rank
        if stage == "vector_fp_div" and self.chain.since:
            takes = "f32"
        else:
            takes = ENUMERATION.get(i["enumeration"], "f32")
        if takes != self.dtype:
            self.no("E-VECTOR-TYPE", True)
        arity = ARITY.get(stage, 2)
        if i["mode"] is not None and len(i["mode"]) != arity:
            self.no("E-VECTOR-OPERAND", True)
        if i["unit"] in self.used:
            self.no("E-VECTOR-ALU")
        self.used.add(i["unit"])
        if i["zip"]:
            self.paired = False
            return
        if arity == 1:
            if i["groups"] and all(g.kind == "unit" for g in i["groups"]):
                self.no("E-VECTOR-OPERAND", True)
            return
        named = "1" in (i["mode"] or "012"[:arity])
        if i["groups"]:
            given = [g for g in i["groups"] if g.kind != "unit"]
            if not given:
                self.no("E-VECTOR-OPERAND", True)
            for g in given:
                self.operand(g, takes, named, False)
            return
        self.slots(i["operands"], takes, named)

    def slots(self, slots, takes, named):
        """Operands by tag. Since 0.6 at most three constants, then one register; in April at most one unconditional one."""
        by_tag = slots[0]["when"] is not None
        if by_tag and not self.tagged:
            self.no("E-VECTOR-PAIR", True)
        registers = constants = 0
        over = False
        for s in slots:
            o = s["operand"]
            conditional = by_tag and s["when"] != "always" and not (isinstance(s["when"], tuple) and len(s["when"][1]) == 16)
            if conditional and self.reduced:
                self.no("E-VECTOR-OPERAND")
            if s["port"]:
                constants += s["port"] == "imm"
                if not s["when"][1] or registers or constants > 3 or over or (s["port"] == "imm") != (o.kind == "word"):
                    self.no("E-VECTOR-OPERAND", True)
                registers += s["port"] == "rf"
                over = over or len(s["when"][1]) == 16
            self.operand(o, takes, named, len(slots) > 1)
        if [s["when"] for s in slots].count("always") > 1:
            self.no("E-VECTOR-OPERAND", True)

    def operand(self, o, takes, named, several):
        if o.kind == "word" and o.dtype != takes:
            self.no("E-VECTOR-OPERAND", True)
        if o.second is not None and o.dtype != takes:
            self.no("E-VECTOR-OPERAND", True)
        if o.kind == "vrf":
            r = self.chain.registers[o.name]
            if r.dtype != takes:
                self.no("E-VECTOR-TYPE", True)
            if named and self.may_be:
                return
            if named and not self.shape.same(join(r.slice), join(self.shape.slice)):
                self.no("E-VRF-UNITS")
            elif named and not self.readable(r):
                self.no("E-VRF-WALK")
        if o.kind == "stash":
            if self.stash is None or self.stash["dtype"] != takes:
                self.no("E-VECTOR-OPERAND", True)
                return
            if self.chain.since and self.stash_read:
                self.no("E-VECTOR-OPERAND", True)
            if named:
                self.stash_read = True
                if self.stash["reduced"] or (self.chain.since and self.stash["way8"] != self.way8):
                    self.no("E-VECTOR-OPERAND")

    def readable(self, r):
        """Each packet reads one element for all lanes, or consecutive ones, each the lane's own."""
        s, element = self.shape, {}
        for n, code in enumerate(s.table(join(r.element))):
            if code is not None and s.axes.live(code):
                element.setdefault(code, n)
        field = sum(s.axes.field(n) for n in re.findall(r"[A-Z]", join(r.element)))
        if any(not any(s.has(p, n) for p in [*s.time, s.packet]) for n in re.findall(r"[A-Z]", join(r.element)) if s.axes.sizes[n] > 1):
            return False
        for t in s.table(join(s.time)):
            lanes = [s.live(t, c) if t is not None and c is not None else None for c in s.table(s.packet)]
            places = {lane: element.get(code & field) for lane, code in enumerate(lanes) if code is not None}
            if any(p is None for p in places.values()):
                return False
            if len(set(places.values())) > 1 and any(p - lane != next(iter(places.values())) - next(iter(places)) for lane, p in places.items()):
                return False
        return True

    def on_convert(self, i):
        to_fp = i["how"] == "fxp_to_fp"
        if not self.may(*((0, LOGIC, FXP) if to_fp else (0, LOGIC, FXP, FXP_TO_FP, WIDEN))):
            return
        if not 0 <= i["width"] <= 31:
            self.no("E-VECTOR-OPERAND", True)
        if self.dtype != ("i32" if to_fp else "f32"):
            self.no("E-VECTOR-TYPE", True)
        self.rank, self.dtype = (FXP_TO_FP, "f32") if to_fp else (FP_TO_FXP, "i32")

    def on_reinterpret(self, i):
        self.dtype = i["to"]

    def on_stash(self, i):
        if self.paired or not self.may(*STASHED_AFTER):
            self.no("E-METHOD", True)
            return
        if self.pair:
            self.no("E-VECTOR-PAIR")
        elif self.stash:
            self.no("E-VECTOR-ALU")
        self.stash, self.stash_read = {"dtype": self.dtype, "way8": self.way8, "reduced": False}, False

    def on_width(self, i):
        how, s = i["how"], self.shape
        narrows = how in ("split", "trim")
        if self.paired and how in ("trim", "pad"):
            self.no("E-METHOD", True)
            return
        if not self.may(*((0, LOGIC, FXP, FXP_TO_FP) if narrows else (NARROW, FP, REDUCED, FP_DIV))):
            return
        self.rank, self.way8 = (NARROW, False) if narrows else (WIDEN, True)
        self.widen(how)

    def widen(self, how):
        s = self.shape
        if self.may_be:
            return
        if how == "trim" and any(c is not None for c in s.table(s.packet)[4:]):
            self.no("E-VECTOR-WIDTH", True)
        elif how == "split":
            s.time, s.packet = s.time + [f"[{s.packet}] / 4"], f"[{s.packet}] % 4"
        elif how == "trim":
            s.packet = f"[{s.packet}] % 4"
        elif how == "pad":
            s.packet = f"[{s.packet}] # 8"
        else:
            last = next((n for n in reversed(range(len(s.time))) if s.size(s.time[n]) > 1), None)  # an axis of one position is nowhere
            if last is None or s.size(s.time[last]) % 2:
                self.no("E-VECTOR-WIDTH", True)
            else:
                part = s.time[last]
                s.time[last], s.packet = f"[{part}] / 2", f"[{part}] % 2, {s.packet}"

    def on_reduce(self, i):
        if self.paired or not self.may(NARROW, FP):
            self.no("E-METHOD", True)
            return
        if i["dtype"] != self.dtype:
            self.no("E-VECTOR-TYPE", True)
        self.used.add("ReduceAccTree")
        self.rank, self.reduced = REDUCED, True
        if self.pair:
            self.no("E-VECTOR-PAIR")
        if self.stash:
            self.stash["reduced"] = True
        self.reduce(i)

    def reduce(self, i):
        s, label = self.shape, i["axis"]
        if self.may_be:
            return
        kept = [p for p in s.time if not s.has(p, label)]
        tree = s.has(s.packet, label)
        if tree and any(s.has(s.packet, n) for n in AXES if n != label):
            self.no("E-VECTOR-REDUCE", True)
        packet = "1 # 4" if tree else s.packet
        first = next((n for n, p in enumerate(s.time) if p not in kept), len(kept))  # those in front of what is reduced are open one by one
        ways = [w for w in self.without_padding(kept) if s.same(join(i["time"]), join(w))]
        if not any(s.size(join(w[first:])) <= 8 for w in ways) or not s.same(i["packet"], packet):
            self.no("E-VECTOR-REDUCE", True)
        s.time, s.packet = list(i["time"]), packet

    def without_padding(self, parts):
        """The parts, and where the back of one is padding also those without a piece of it: what is padding alone may go."""
        ways = [[]]
        for p in parts:
            codes = self.shape.table(p)
            live = max((n + 1 for n, c in enumerate(codes) if c is not None and self.shape.axes.live(c)), default=1)
            sizes = [d for d in range(live, len(codes) + 1) if len(codes) % d == 0]
            ways = [w + [p if d == len(codes) else f"[{p}] % {d}"] for w in ways for d in sizes]
        return ways

    def on_slices(self, i):
        s = self.shape
        if self.paired or not self.may(INIT, *WIDE):
            self.no("E-METHOD", True)
            return
        if i["dtype"] != self.dtype:
            self.no("E-VECTOR-TYPE", True)
        first = self.begin("over")
        if self.pair:
            self.no("E-VECTOR-PAIR")
            self.may_be |= self.OF_MAPPINGS
        if first and not self.may_be and not self.fits(i):
            self.no("E-VECTOR-SLICES", True)
        self.rank, self.tagged = OVER_SLICES, False
        if self.stash:
            self.stash["reduced"] = True
        s.slice, s.time = list(i["slice"]), list(i["time"])

    def fits(self, i):
        """Outer parts stay, if all do each slice is a group of its own; the places of the others take padding, new axes or parts of Time, which Time
        then lacks."""
        s, kept = self.shape, 0
        if s.size(join(s.slice)) != s.size(join(i["slice"])):
            return False
        while kept < min(len(s.slice), len(i["slice"])) and s.slice[kept] == i["slice"][kept]:
            kept += 1
        promoted = []
        for part in i["slice"][kept:]:
            if part in s.time and part not in promoted:
                promoted.append(part)
            elif not part.startswith("1") and any(s.has(p, n) for n in re.findall(r"[A-Z]", part) for p in [*s.slice, *s.time, s.packet]):
                return False
        return s.same(join(i["time"]), join([p for p in s.time if p not in promoted]))


# ---- what a chain computes ----

class Machine:
    """The stream as elements by coordinates: {code: state}."""

    def __init__(self, chain, words):
        self.chain, self.judge = chain, Judge(chain)  # the judge knows the mappings at each place
        self.cells = {code: {"x": word, "tag": 0, "stash": None, "other": None} for code, word in words.items()}

    def run(self):
        for item in self.chain.items:
            getattr(self, "on_" + item["kind"], lambda i: None)(item)
            self.judge.step(item)
        return {code: cell["x"] for code, cell in self.cells.items()}

    def on_tag(self, i):
        is_float = i["dtype"] == "f32"
        for cell in self.cells.values():
            cell["tag"] = sum((k == "True" or (k in COMPARE and COMPARE[k](cell["x"], w, is_float))) << n for n, (k, w) in enumerate(i["compare"] or []))

    def on_unzip(self, i):
        field = Shape.axes.field("I")
        both = {}
        for code, cell in self.cells.items():
            both.setdefault(code & ~field, {})["other" if code & field else "x"] = cell["x"]
        self.cells = {code: {"tag": 0, "stash": None, **cell} for code, cell in both.items()}

    def on_stash(self, i):
        for cell in self.cells.values():
            cell["stash"] = cell["x"]

    def on_convert(self, i):
        f = MODEL["BINARY"]["FXP_TO_FP" if i["how"] == "fxp_to_fp" else "FP_TO_FXP"]
        for cell in self.cells.values():
            for key in ("x", "other") if self.judge.paired else ("x",):
                cell[key] = f(cell[key], i["width"])

    def on_op(self, i):
        f, mode = OF[i["meaning"]], i["mode"] or "012"[:ARITY.get(i["stage"], 2)]
        for code, cell in self.cells.items():
            if i["zip"]:
                cell["x"] = f(*((cell["x"], cell["other"])[int(m)] for m in mode))
            elif i["groups"]:
                for key, g in zip(("x", "other"), i["groups"]):
                    if g.kind != "unit":
                        cell[key] = f(*((cell[key], self.first(g, code, cell), g.second)[int(m)] for m in mode))
            elif len(mode) == 1:
                cell["x"] = f(cell["x"])
            else:
                self.by_tag(f, mode, i["operands"], code, cell)

    def by_tag(self, f, mode, slots, code, cell):
        for s in slots:
            when = s["when"]
            tags = when[1] if isinstance(when, tuple) else None
            if when in (None, "always") or (tags is not None and cell["tag"] in tags) or (when in ("Zero", "One") and bool(cell["tag"] >> 3) == (when == "One")):
                cell["x"] = f(*((cell["x"], self.first(s["operand"], code, cell), s["operand"].second)[int(m)] for m in mode))
                if tags is not None:
                    return  # the first one that matches; in April each

    def first(self, o, code, cell):
        return cell["stash"] if o.kind == "stash" else self.chain.registers[o.name].of(code) if o.kind == "vrf" else o.word

    def on_reduce(self, i):
        s, (_, name, identity) = self.judge.shape, i["op"]
        f, out, drop = MODEL["BINARY"][name], {}, Shape.axes.field(i["axis"])
        tree = s.has(s.packet, i["axis"])
        both = lambda a, b: b if a is None else a if b is None else f(a, b)
        for a in s.table(join(s.slice)):
            for b in s.table(join(s.time)):
                codes = [s.live(a, b, c) for c in s.table(s.packet)]
                words = [None if c is None else self.cells[c]["x"] for c in codes]
                if tree:
                    words = [both(both(words[0], words[1]), both(words[2], words[3]))]
                    codes = [next((c for c in codes if c is not None), None)]
                for code, word in zip(codes, words):
                    if code is not None:  # what Slice has of the axis stays
                        key = a + (code - a & ~drop)
                        out[key] = f(out.get(key, identity), word)
        self.cells = {code: {"x": word, "tag": 0, "stash": None, "other": None} for code, word in out.items()}

    def on_slices(self, i):
        s, (_, name, identity) = self.judge.shape, i["op"]
        f, kept, sums = MODEL["BINARY"][name], 0, {}
        while kept < min(len(s.slice), len(i["slice"])) and s.slice[kept] == i["slice"][kept]:
            kept += 1
        outer, inner, out_inner = (s.table(join(p)) for p in (s.slice[:kept], s.slice[kept:], i["slice"][kept:]))
        packets = [(b, c) for b in s.table(join(s.time)) for c in s.table(s.packet)]
        for o in outer:
            for r in inner:
                for b, c in packets:
                    code = s.live(o, r, b, c)
                    if code is not None:
                        key = o + b + c
                        sums[key] = f(sums.get(key, identity), self.cells[code]["x"])
        fresh = sum(Shape.axes.field(p) for p in i["slice"][kept:] if re.fullmatch(r"[A-Z]", p) and p not in s.time)
        self.cells = {}
        for o in outer:
            for r in out_inner:
                for b in s.table(join(i["time"])):
                    for c in s.table(s.packet):
                        code = s.live(o, r, b, c)
                        if code is not None and code & ~fresh in sums:
                            self.cells[code] = {"x": sums[code & ~fresh], "tag": 0, "stash": None, "other": None}


# ---- how chains are drawn ----

class Maker:
    """Draws calls; each that breaks no rule goes into the chain."""

    def __init__(self, rng):
        self.rng = rng

    def word(self, dtype):
        rng = self.rng
        while True:
            word = rng.choice(EDGES) if rng.random() < 0.4 else rng.getrandbits(32)
            if rng.random() < 0.4:
                word = rng.randrange(40) if dtype == "i32" else struct.unpack("<I", struct.pack("<f", rng.choice([0.5, -1.5, 2.0, 3.25, 100.0, 1e-3])))[0]
            if dtype == "i32" or word & 0x7FFFFFFF < 0x7F800000:
                return word

    def chain(self):
        rng = self.rng
        pair = rng.random() < 0.2
        slices = rng.choice([[], [], ["S"], ["U"], ["O", "S"], ["O", "U # 4"], ["S / 2", "S % 2"], ["U", "V"], ["S", "L"]])
        time = rng.sample(["T", "A", "G", "T # 5", "A # 4", "Q", "L"], rng.choice([0, 1, 1, 2, 2]))
        if len({p[0] for p in time}) < len(time):
            time = time[:1]
        if "V" not in slices and rng.random() < 0.2:
            time.insert(rng.randrange(len(time) + 1), "V")
        if pair:
            time.insert(rng.randrange(len(time) + 1), "I")
        packet = rng.choice(["P", "P", "C # 8", "E # 8", "F # 8", "Q, D" if "Q" not in time else "P"])
        self.made = Chain(rng.random() < 0.5, rng.choice(["i32", "f32"]), Shape(slices, time, packet))
        self.judge = Judge(self.made)
        over = slices and not pair and rng.random() < 0.6
        first = over and rng.random() < 0.5
        if first:
            self.add(self.over_slices)
        if not first or rng.random() < 0.7:
            self.inside(pair)
        if over and not first:
            self.add(self.over_slices)
        if self.made.since and not self.judge.stash_read:  # since 0.6 what is set aside is read
            self.made.items = [i for i in self.made.items if i["kind"] != "stash"]
        return self.made

    def add(self, draw, tries=3):
        """True if one was found that the rules allow."""
        for _ in range(tries):
            kept = set(self.made.registers)
            item = draw()
            if not item:
                continue
            trial = copy.deepcopy({k: v for k, v in vars(self.judge).items() if k != "chain"})
            self.judge.step(item)
            if not self.judge.wrong:
                self.made.items.append(item)
                return True
            vars(self.judge).update(trial)
            self.made.registers = {n: r for n, r in self.made.registers.items() if n in kept}
        return False

    def inside(self, pair):
        rng = self.rng
        if not self.add(self.unzip if pair else self.tag):
            return
        plan = [("vector_logic", rng.choice([0, 0, 1, 2])), ("vector_fxp", rng.choice([0, 1, 2]))]
        for stage, count in plan:
            for _ in range(count):
                self.add(lambda: self.operation(stage))
                self.aside()
        if self.judge.dtype == "i32" and rng.random() < 0.6:
            self.add(lambda: self.convert("fxp_to_fp"))
            self.aside()
        if rng.random() < 0.7 and self.add(self.narrow):
            self.aside()
            for _ in range(rng.choice([0, 1, 2, 3])):
                self.add(lambda: self.operation(rng.choice(["vector_fp_unary", "vector_fp_binary", "vector_fp_binary", "vector_fp_ternary"])))
                self.aside()
            if rng.random() < 0.6 and not pair:
                self.add(self.reduction)
                self.aside()
            if rng.random() < 0.3:
                self.add(lambda: self.operation("vector_fp_div"))
                self.aside()
            if not self.add(self.widening):
                self.add(lambda: {"kind": "width", "how": "concat" if self.judge.paired else "pad"})
        if self.judge.dtype == "f32" and rng.random() < 0.4:
            self.add(lambda: self.convert("fp_to_fxp"))
        for _ in range(rng.choice([0, 1, 2])):
            self.add(lambda: self.operation("vector_clip"))
            self.aside()
        while self.judge.paired:
            self.add(lambda: self.operation("vector_clip", zips=True), 20)
            if self.judge.paired and {"ClipAdd", "ClipMax", "ClipMin"} <= self.judge.used:
                self.made.items.pop()
                self.judge = Judge(self.made)
                for item in self.made.items:
                    self.judge.step(item)

    def aside(self):
        if self.rng.random() < 0.12:
            self.add(lambda: {"kind": "stash"}, 1)
        if self.made.since and self.rng.random() < 0.08:
            self.add(lambda: {"kind": "reinterpret", "to": "f32" if self.judge.dtype == "i32" else "i32"}, 1)

    def tag(self):
        compare = None
        if self.rng.random() < 0.6:
            compare = [(self.rng.choice(["True", "False", *COMPARE]), self.word(self.judge.dtype)) for _ in range(4)]
        return {"kind": "tag", "dtype": self.judge.dtype, "compare": compare}

    def unzip(self):
        time = self.judge.shape.time
        return {"kind": "unzip", "tiled": ["1 # 2" if p == "I" else p for p in time], "time": [p for p in time if p != "I"]}

    def convert(self, how):
        return {"kind": "convert", "how": how, "width": self.rng.choice([31, 31, self.rng.randrange(32)])}

    def narrow(self):
        return {"kind": "width", "how": self.rng.choice(["split", "trim"])}

    def widening(self):
        return {"kind": "width", "how": self.rng.choice(["concat", "pad"])}

    def reduction(self):
        s, rng = self.judge.shape, self.rng
        present = [n for n in AXES if any(s.has(p, n) for p in [*s.time, s.packet])]
        label = rng.choice(present if present and rng.random() < 0.85 else list(AXES))  # of which Time and Packet have nothing: each element by itself
        return {"kind": "reduce", "axis": label, "dtype": self.judge.dtype, "op": rng.choice(REDUCE["OPS"][self.judge.dtype]),
                "time": [p for p in s.time if not s.has(p, label)], "packet": "1 # 4" if s.has(s.packet, label) else s.packet}

    def over_slices(self):
        s, rng = self.judge.shape, self.rng
        if not s.slice:
            return None
        kept = s.slice[:rng.choice([*range(len(s.slice)), *range(len(s.slice) + 1)])]  # all: each slice by itself
        left, places, promoted = s.size(join(s.slice[len(kept):])), [], []
        while left > 1:
            size = rng.choice([d for d in range(2, left + 1) if left % d == 0])
            fits = [p for p in s.time if p not in promoted and "#" not in p and s.size(p) == size]
            how = rng.random()
            if fits and how < 0.5:
                promoted.append(rng.choice(fits))
                places.append(promoted[-1])
            elif how < 0.7 and FRESH.get(size) and FRESH[size] not in places:
                places.append(FRESH[size])
            else:
                places.append(f"1 # {size}")
            left //= size
        rng.shuffle(places)
        return {"kind": "slices", "dtype": self.judge.dtype, "op": rng.choice(SLICES["OPS"][self.judge.dtype]), "slice": kept + places,
                "time": [p for p in s.time if p not in promoted]}

    def operation(self, stage, zips=None):
        rng, judge = self.rng, self.judge
        if (stage, judge.dtype) not in STAGES:
            return None
        enumeration, rows = STAGES[stage, judge.dtype]
        variant, unit, meant = rng.choice(rows)
        arity = ARITY.get(stage, 2)
        mode = rng.choice(MODES[arity]) if arity > 1 and rng.random() < 0.3 else None
        item = {"kind": "op", "stage": stage, "enumeration": enumeration, "variant": variant, "unit": unit, "meaning": meant, "mode": mode, "zip": False, "groups": None, "operands": None}
        if judge.paired:
            if arity == 2 and stage != "vector_fp_div" and (zips or rng.random() < 0.25):
                return {**item, "zip": True}
            alone = rng.choice([None, None, 0, 1])
            groups = [Operand("unit") if n == alone else Operand("word") if arity == 1 else self.operand(arity, judge.dtype, mode) for n in range(2)]
            return {**item, "groups": groups}
        if arity > 1:
            item["operands"] = self.by_tag(arity, mode) if judge.tagged and rng.random() < 0.4 else [{"when": None, "port": None, "operand": self.operand(arity, judge.dtype, mode)}]
        return item

    def operand(self, arity, dtype, mode, port=None):
        rng, second = self.rng, self.word(dtype) if arity == 3 else None
        named = "1" in (mode or "01")
        how = rng.random()
        if port != "imm" and self.judge.stash and how < 0.4 and named:
            return Operand("stash", dtype, second=second)
        if port != "imm" and (how < 0.65 or port == "rf") and len(self.made.registers) < 4:
            return Operand("vrf", dtype, name=self.register(dtype), second=second)
        return Operand("word", dtype, self.word(dtype), second=second)

    def register(self, dtype):
        s, rng = self.judge.shape, self.rng
        whole = [p for p in s.time if "#" not in p and "/" not in p]
        element = rng.choice([["1 # 8"], [rng.choice(whole)] if whole else ["1 # 8"], [self.made.shape.packet], [*whole, self.made.shape.packet], [self.made.shape.packet, *whole]])
        slices = list(s.slice)
        axes, count = Shape.axes, 1
        for n in names_in_order([*slices, *element], axes):
            count *= axes.sizes[n]
        name = f"s{len(self.made.registers)}"
        self.made.registers[name] = Register(name, dtype, slices, element, [self.word(dtype) for _ in range(count)])
        return name

    def guard(self):
        rng = self.rng
        bits = [rng.choice(["One", "Zero", "Ignore", "Ignore"]) for _ in range(4)]
        matches = {t for t in range(16) if all(b == "Ignore" or (b == "One") == bool(t >> n & 1) for n, b in enumerate(bits))}
        listed = ", ".join(f"BitReq::{b}" for b in bits)
        how = rng.random()
        if how < 0.25:
            return f"TagGuard::not_matches([{listed}])", set(range(16)) - matches
        if how < 0.5:
            one = rng.random() < 0.5
            return f"TagGuard::group(GroupId::{'One' if one else 'Zero'})", {t for t in range(16) if bool(t >> 3) == one}
        if how < 0.6:
            return "TagGuard::all()", set(range(16))
        return f"TagGuard::matches([{listed}])", matches

    def by_tag(self, arity, mode):
        rng, dtype = self.rng, self.judge.dtype
        if self.made.since:
            ports = ["imm"] * rng.choice([0, 1, 2, 3]) + rng.choice([[], ["rf"]])
            return [{"when": self.guard(), "port": p, "operand": self.operand(arity, dtype, mode, p)} for p in ports or ["imm"]]
        groups = rng.sample(["always", "Zero", "One"], rng.choice([1, 2, 3]))
        return [{"when": g, "port": None, "operand": self.operand(arity, dtype, mode)} for g in groups]


def change(rng, chain):
    """The chain with one thing otherwise, which may break a rule."""
    c = chain.copy()
    maker = Maker(rng)
    maker.made, maker.judge = c, Judge(c)
    items, n = c.items, len(c.items)
    at = rng.randrange(n)
    how = rng.choice(["exchange", "leave out", "twice", "insert", "type", "operand", "width", "part", "enumeration", "mode", "guard", "number"])
    if how == "exchange" and n > 1:
        at = rng.randrange(n - 1)
        items[at], items[at + 1] = items[at + 1], items[at]
    elif how == "leave out":
        del items[at]
    elif how == "twice":
        items.insert(rng.randrange(n + 1), dict(items[at]))
    elif how == "insert":
        for item in items[:at]:
            maker.judge.step(item)
        new = rng.choice([maker.tag, maker.narrow, maker.widening, maker.reduction, maker.over_slices, lambda: {"kind": "stash"}, lambda: maker.convert(rng.choice(["fxp_to_fp", "fp_to_fxp"])),
                          lambda: maker.operation(rng.choice(list(BEFORE)))])()
        if new:
            items.insert(at, new)
    elif how == "type":
        c.dtype = "f32" if c.dtype == "i32" else "i32"
    elif how == "operand":
        for i in items:
            if i["kind"] == "op" and i["operands"]:
                slots = i["operands"] = [dict(s) for s in i["operands"]]
                s = rng.choice(slots)
                s["operand"] = rng.choice([Operand("stash", s["operand"].dtype, second=s["operand"].second),
                                           Operand("word", "i32" if s["operand"].dtype == "f32" else "f32", maker.word("f32"), second=s["operand"].second)])
                break
    elif how == "width":
        for i in items:
            if i["kind"] == "width" and rng.random() < 0.6:
                i["how"] = {"split": "trim", "trim": "split", "concat": "pad", "pad": "concat"}[i["how"]]
    elif how == "part":
        parts = rng.choice([c.shape.time, c.shape.slice])
        if parts:
            parts[rng.randrange(len(parts))] = rng.choice(["T", "A", "G", "W", "U", "1 # 2"])
        else:
            parts.append(rng.choice(["T", "G", "U"]))
        names = re.findall(r"[A-Z]", join([*c.shape.time, *c.shape.slice, c.shape.packet]))
        if len(set(names)) < len(names):
            return None
    elif how == "enumeration":
        for i in items:
            if i["kind"] == "op" and i["stage"] in ("vector_logic", "vector_clip"):
                other = "f32" if i["enumeration"].endswith("I32") else "i32"
                i["enumeration"], rows = STAGES[i["stage"], other]
                i["variant"], i["unit"], i["meaning"] = rng.choice(rows)
                break
    elif how == "mode":
        for i in items:
            if i["kind"] == "op" and i["stage"] != "vector_fp_unary":
                i["mode"] = rng.choice(MODES[2] + MODES[3])
                break
    elif how == "guard":
        for i in items:
            if i["kind"] == "op" and i["operands"] and i["operands"][0]["port"]:
                slots = i["operands"] = [dict(s) for s in i["operands"]]
                extra = {"when": maker.guard(), "port": rng.choice(["imm", "rf"]), "operand": Operand("word", slots[0]["operand"].dtype, 3, second=slots[0]["operand"].second)}
                rng.choice([lambda: slots.reverse(), lambda: slots.append(extra), lambda: slots[0].update(when=("TagGuard::all()", set(range(16)))),
                            lambda: slots[0].update(when=("TagGuard::not_matches([BitReq::Ignore, BitReq::Ignore, BitReq::Ignore, BitReq::Ignore])", set()))])()
                break
    elif how == "number":
        for i in items:
            if i["kind"] == "convert":
                i["width"] = rng.choice([32, 33, 31, 0])
            if i["kind"] == "reduce":
                i["axis"] = rng.choice(list(AXES))
    return c if items else None


# ---- against visac ----

RELEASES = {True: "fn release(x: CollectTensor<i32, m![1], m![1], m![1], m![1], m![P]>) -> VectorFinalTensor<i32, m![1], m![1], m![1], _, _> {{ x.vector_init().vector_intra_slice_tag(TagMode::Zero).vector_final() }}",
            False: "fn release(x: CollectTensor<i32, m![1], m![1], m![1], m![1], m![P]>) -> VectorFinalTensor<i32, m![1], m![1], m![1], _, _> {{ x.vector_init().vector_intra_slice_branch(BranchMode::Unconditional).vector_final() }}"}


def release(since):
    """Words that say which release a file is of."""
    return "mod first {\naxes![P = 8];\n" + RELEASES[since].replace("{{", "{").replace("}}", "}") + "\n}"


def total_of(names):
    count = 1
    for n in names:
        count *= AXES[n]
    return count


def input_words(rng, chain, count):
    if rng.random() < 0.5 and chain.dtype == "f32":
        return [struct.unpack("<I", struct.pack("<f", rng.choice([0.5, -1.5, 3.25, 1e8, -1e8, -0.0, rng.uniform(-4, 4)])))[0] for _ in range(count)]
    return [rng.choice(EDGES) if rng.random() < 0.6 else rng.getrandbits(32) for _ in range(count)]


def run_one(chain, name, binary, rng, directory):
    """Words of the machine against those of the chain; a fault's text."""
    s, axes = chain.shape, Shape.axes
    names = s.names()
    words = input_words(rng, chain, total_of(names))
    by_code = {}
    for a in s.table(join(s.slice)):
        for b in s.table(join(s.time)):
            for c in s.table(s.packet):
                code = s.live(a, b, c)
                if code is not None:
                    by_code[code] = words[dense(axes, names, code)]
    machine = Machine(chain, by_code)
    wanted, end = machine.run(), machine.judge
    arguments, source = [], chain.source(name)
    for port, given in [("x", words)] + [(r.name, r.words) for r in chain.registers.values() if f", {r.name}:" in source]:
        path = os.path.join(directory, port + ".raw")
        with open(path, "wb") as file:
            file.write(struct.pack(f"<{len(given)}I", *given))
        arguments += ["--input", f"{port}={path}"]
    out = os.path.join(directory, "out.raw")
    done = visa_tools.run(["visa-run", binary, "--kernel", name, *arguments, "--output", f"out={out}"])
    if done.status != 0:
        return done.text()
    with open(out, "rb") as file:
        data = file.read()
    got, out_names = struct.unpack(f"<{len(data) // 4}I", data), end.shape.names()
    if len(got) != total_of(out_names):
        return f"{len(got)} words, not those of {out_names}"
    for code, word in sorted(wanted.items()):
        found = got[dense(axes, out_names, code)]
        if found != word:
            return f"{axes.show(code)}: {found:08x}, by the chain {word:08x}"
    return None if wanted else "nothing is computed"


def judged(faults, counts, drawn):
    """Of chains of one release those that visac accepts, as it must or must not."""
    sources = [release(drawn[0].since)] + [c.source(f"p{n}") for n, c in enumerate(drawn)]
    good = []
    for n, (c, verdict) in enumerate(zip(drawn, compile_all(sources)[1:])):
        judge = Judge(c)
        wrong = judge.whole()
        if verdict.kind == "crashed" or (verdict.kind == "accepted") != (not wrong) or not set(verdict.ids) <= wrong | judge.may_be or bool(wrong) != bool(wrong & set(verdict.ids)):
            faults.append(f"{sources[n + 1]}\nby the rules {sorted(wrong) or 'right'}: {verdict.kind} {verdict.ids} {verdict.message}")
        elif wrong:
            counts["refused"] += 1
            for rule in verdict.ids:
                counts[rule] = counts.get(rule, 0) + 1
        else:
            counts["accepted"] += 1
            good.append(n)
    return sources, good


def compare(faults, counts, drawn, rng, directory):
    sources, good = judged(faults, counts, drawn)
    path = os.path.join(directory, "chains.vm")
    with open(path, "w") as file:
        file.write("\n".join([sources[0]] + [sources[n + 1] for n in good]) + "\n")
    made = visa_tools.run(["visac", path, "-o", path + ".bin"])
    if made.status != 0:
        faults.append(made.text()[-1500:])
        return
    checked = visa_tools.run(["visac", path, "--check"])
    bad = re.sub(r"error\[E-CHECK-NOTHING\].*", "", checked.text())
    if checked.crashed or "error[" in bad:
        named = re.search(r"^(p\d+): .*(?:other polynomials|differ)", bad, re.M)
        faults.append((sources[int(named.group(1)[1:]) + 1] + "\n" if named else "") + bad[-1200:])
    for n in good:
        fault = run_one(drawn[n], f"p{n}", path + ".bin", rng, directory)
        if fault:
            faults.append(f"{sources[n + 1]}\n{fault}")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(80)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 23
    near = int(sys.argv[3]) if len(sys.argv) > 3 else count // 4
    faults, ran, changed = [], {"accepted": 0, "refused": 0}, {"accepted": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as directory:
        for first in range(0, max(count, near), 60):
            rng = random.Random(seed * 1000003 + first)
            drawn = [Maker(rng).chain() for _ in range(min(60, count - first))]
            for since in (True, False):
                of = [c for c in drawn if c.since == since and c.items]
                if of:
                    compare(faults, ran, of, rng, directory)
            changes = []
            while len(changes) < min(60, near - first):
                base = Maker(rng).chain()
                c = change(rng, base) if base.items else None
                if c:
                    changes.append(c)
            for since in (True, False):
                of = [c for c in changes if c.since == since]
                if of:
                    judged(faults, changed, of)
    for fault in faults[:int(os.environ.get("VISA_SHOW", "4"))]:
        print(fault)
    rules = ", ".join(f"{n} {rule}" for rule, n in sorted(changed.items()) if rule.startswith("E-"))
    print(f"{ran['accepted']} chains; {changed['accepted']} changed ones that break no rule, {changed['refused']} that do ({rules}); {len(faults)} wrong")
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main())
