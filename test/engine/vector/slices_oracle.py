#!/usr/bin/env python3
"""Reductions over slices against an enumeration.

Slice is an outer part and a group that is reduced; what takes the group's place is drawn digit by digit: padding, new axes, digits taken out of Time,
in any order and from anywhere in Time. map(i) (meaning.py) says which element every lane of every packet of every slice holds, in front and
after; what must come out is folded from the slices of the group in ascending order, beginning with the identity, with the operations of
model.py, and compared bit for bit. Others break one rule and must be refused as E-VECTOR-SLICES. What is accepted is compared with the reference, in
numbers and in algebra.
Usage: slices_oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import struct
import sys
import tempfile

import reductions
from reductions import EDGES, MODEL, dense, edge_words, is_same, names_in_order  # reductions finds the modules of the oracles, too
import meaning
import visa_tools
from harness import compile_all

OPS = {"i32": [("Add", "SLICES_ADD_I32", 0), ("AddSat", "SLICES_ADD_SAT", 0), ("Max", "SLICES_MAX_I32", 0x80000000), ("Min", "SLICES_MIN_I32", 0x7FFFFFFF)],
       "f32": [("Add", "SLICES_ADD_F32", 0), ("Max", "SLICES_MAX_F32", 0xFF800000), ("Min", "SLICES_MIN_F32", 0x7F800000), ("Mul", "SLICES_MUL_F32", 0x3F800000)]}
BREAKS = ["slice kept in another order", "axis of the stream as a new one", "promoted digit left in Time", "Time in another order", "a promoted digit that Time lacks"]


class Case:
    def __init__(self, rng):
        self.rng = rng
        self.dtype = rng.choice(["i32", "f32"])
        self.op = rng.choice(OPS[self.dtype])
        r = rng.choice([2, 3, 4, 6, 8])
        padded = r + rng.choice([0, 0, 1, 2])
        self.sizes = {"R": r, "O": rng.choice([2, 3]), "A": rng.choice([2, 3]), "T": rng.choice([4, 8]), "V": rng.choice([2, 3]), "P": 8}
        group = [f"R # {padded}" if padded > r else "R"]
        if rng.random() < 0.3:  # two digits of it
            padded = r + r % 2
            group = [f"R # {padded} / 2" if padded > r else "R / 2", f"R # {padded} % 2" if padded > r else "R % 2"]
        self.ring = padded
        self.outer = rng.choice([[], ["O"], ["O"], ["O # 4"]])
        time = [("A", 1), ("T / 2", 1), ("T % 2", 1), ("V", 1)]
        rng.shuffle(time)
        if time.index(("T / 2", 1)) + 1 == time.index(("T % 2", 1)) and rng.random() < 0.5:
            time = [("T", 1) if t == ("T / 2", 1) else t for t in time if t != ("T % 2", 1)]
        self.time = [t for t, _ in time]
        # fill the places
        left, self.places, self.promoted, fresh = self.ring, [], [], 0
        candidates = ["A", "T % 2", "T / 2", "V"]
        rng.shuffle(candidates)
        while left > 1:
            choice = rng.random()
            divisors = [d for d in range(2, left + 1) if left % d == 0]
            if choice < 0.35:
                d = rng.choice(divisors)
                self.places.append(f"1 # {d}")
            elif choice < 0.65:
                d, fresh = rng.choice(divisors), fresh + 1
                self.sizes[f"X{fresh}"] = d
                self.places.append(f"X{fresh}")
            else:
                fits = [(c, self.count(c)) for c in candidates if left % self.count(c) == 0 and c not in self.promoted]
                if not fits:
                    continue
                c, d = fits[0]
                if not self.in_time(c):
                    continue
                self.promoted.append(c)
                self.places.append(c)
            left //= d
        rng.shuffle(self.places)
        self.out_time = [t for t in self.time if t not in self.promoted]
        if "T" in self.time:
            kept = [t for t in ("T / 2", "T % 2") if t not in self.promoted]
            at = self.out_time.index("T")
            self.out_time[at:at + 1] = ["T"] if len(kept) == 2 else kept
        self.slice = ", ".join(self.outer + group)
        self.before, self.behind = rng.random() < 0.3, rng.random() < 0.3
        self.broken = None
        if rng.random() < 0.2:
            self.break_one(rng.choice(BREAKS))
        self.out_slice = ", ".join(self.outer + self.places) or "1"

    def count(self, text):
        name = text[0]
        return self.sizes[name] if text == name else 2 if "%" in text else self.sizes[name] // 2

    def in_time(self, text):
        return text in self.time or (text[0] == "T" and "T" in self.time)

    def break_one(self, how):
        if how == BREAKS[0] and self.outer == ["O"] and self.places:
            self.outer, self.slice = ["O"], self.slice
            self.places = self.places + self.outer
            self.outer = []
        elif how == BREAKS[1] and self.ring == 8:
            self.places = ["P"]
            self.out_time, self.promoted = list(self.time), []
        elif how == BREAKS[2] and self.promoted:
            self.out_time = list(self.time)
        elif how == BREAKS[3] and len(self.out_time) > 1 and len(set(self.out_time)) > 1 and "T / 2" not in self.out_time:
            self.out_time = self.out_time[::-1]
        elif how == BREAKS[4] and "A" not in self.promoted and self.ring == self.sizes["A"]:
            self.places, self.time = ["A"], [t for t in self.time if t != "A"]
            self.promoted, self.out_time = [], list(self.time)
            self.fresh_a = True
            return  # an axis that Time lacks is a new one: accepted
        else:
            return
        self.broken = how

    def tables(self):
        self.axes = meaning.Axes(self.sizes)

        def table(parts):
            tree = meaning.parse(", ".join(parts) or "1")
            meaning.check(tree, self.axes)
            return meaning.table(tree, self.axes)
        self.s, self.t, self.lanes = table([self.slice]), table(self.time), table(["P"])
        self.os, self.ot = table([self.out_slice]), table(self.out_time)

    def source(self, name):
        axes = ", ".join(f"{n} = {s}" for n, s in self.sizes.items())
        kind = "I32" if self.dtype == "i32" else "F32"
        tag = ".vector_intra_slice_tag(TagMode::Zero)"
        step = ".vector_fxp(FxpBinaryOp::AddFxp, 7)" if self.dtype == "i32" else ".vector_logic(LogicBinaryOpF32::BitXor, -0.0)"
        after = ".vector_clip(ClipBinaryOpI32::Max, -5)" if self.dtype == "i32" else ".vector_clip(ClipBinaryOpF32::Max, 0.25)"
        before = tag + step if self.before else ""
        behind = tag + after if self.behind and not self.before else ""
        return (f"mod m{name} {{\naxes![{axes}];\nfn {name}(x: CollectTensor<{self.dtype}, m![1], m![1], m![{self.slice}], m![{', '.join(self.time) or '1'}], m![P]>)"
                f" -> VectorFinalTensor<{self.dtype}, m![1], m![1], _, _, m![P]> {{\n    x.vector_init(){before}"
                f".vector_inter_slice_reduce::<m![{self.out_slice}], m![{', '.join(self.out_time) or '1'}]>(InterSliceReduceOp{kind}::{self.op[0]}){behind}.vector_final()\n}}\n}}")

    def first(self, word):
        if not self.before:
            return word
        return word + 7 & 0xFFFFFFFF if self.dtype == "i32" else word ^ 0x80000000

    def last(self, word):
        if not self.behind or self.before:
            return word
        return MODEL["BINARY"]["CLIP_MAX_I32" if self.dtype == "i32" else "CLIP_MAX_F32"](word, 0xFFFFFFFB if self.dtype == "i32" else 0x3E800000)

    def expected(self, words):
        op, cells = MODEL["BINARY"][self.op[1]], {}
        drop = self.axes.field("R")
        for s, a in enumerate(self.s):
            for b in self.t:
                for c in self.lanes:
                    code = None if None in (a, b, c) or not self.axes.live(a + b + c) else a + b + c
                    if code is not None:
                        key = code & ~drop
                        cells[key] = op(cells.get(key, self.op[2]), self.first(words[code]))
        return {k: self.last(v) for k, v in cells.items()}


def input_words(case, rng, count):
    if case.op[0] not in ("Add", "Mul") or case.dtype != "f32":
        return edge_words(rng, count)
    return [struct.unpack("<I", struct.pack("<f", rng.choice([0.5, -1.5, 3.25, 1e8, -1e8, -0.0, rng.uniform(-4, 4)])))[0] if rng.random() < 0.98 else rng.choice(EDGES)
            for _ in range(count)]


def run_one(case, name, binary, rng, directory):
    failed, names, words, got = reductions.run_kernel(case, name, binary, directory, [*case.slice.split(", "), *case.time, "P"],
                                                      lambda count: input_words(case, rng, count))
    if failed:
        return failed
    by_code = {}
    for a in case.s:
        for b in case.t:
            for c in case.lanes:
                if None not in (a, b, c) and case.axes.live(a + b + c):
                    by_code[a + b + c] = words[dense(case.axes, names, a + b + c)]
    wanted = case.expected(by_code)
    out_names = names_in_order([*case.out_slice.split(", "), *case.out_time, "P"], case.axes)
    seen = fresh = 0
    for n in case.sizes:
        fresh |= case.axes.field(n) if n[0] == "X" else 0
    for a in case.os:
        for b in case.ot:
            for c in case.lanes:
                if None in (a, b, c) or not case.axes.live(a + b + c):
                    continue
                code, word = a + b + c, wanted.get((a + b + c) & ~fresh & ~(case.axes.field("A") if getattr(case, "fresh_a", False) else 0))
                found = got[dense(case.axes, out_names, code)]
                seen += 1
                if word is None or not is_same(case.dtype, found, word):
                    return f"{case.axes.show(code)}: {found:08x}, by the enumeration {word if word is None else format(word, '08x')}"
    return None if seen else "nothing was compared"


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(80)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 23
    faults, verdicts = [], {"accepted": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as directory:
        for rng, cases in reductions.drawn(Case, count, seed):
            sources = [c.source(f"p{i}") for i, c in enumerate(cases)]
            good = []
            for i, (case, verdict) in enumerate(zip(cases, compile_all(sources))):
                if case.broken:
                    verdicts["refused"] += 1
                    if verdict.ids != ["E-VECTOR-SLICES"]:
                        faults.append(f"{sources[i]}\nshould be refused ({case.broken}): {verdict.kind} {verdict.message}")
                elif verdict.kind != "accepted":
                    faults.append(f"{sources[i]}\nshould be accepted: {verdict.message}")
                else:
                    verdicts["accepted"] += 1
                    good.append(i)
            faults += reductions.judge_good(cases, sources, good, directory,
                                            lambda case, name, binary: run_one(case, name, binary, rng, directory))
    for fault in faults[:4]:
        print(fault)
    print(f"{verdicts['accepted']} reductions over slices, {verdicts['refused']} that break a rule, {len(faults)} wrong")
    return len(faults) > 0 or (visa_tools.SLOWER == 1 and not verdicts["refused"])


if __name__ == "__main__":
    sys.exit(main())
