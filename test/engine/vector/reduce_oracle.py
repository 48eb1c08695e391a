#!/usr/bin/env python3
"""Reductions inside slices against an enumeration.

An axis R, padded, is cut into digits that are spread over Slice, Time and Packet among other axes; map(i) (meaning.py) says of every lane of every
flit which element it holds. What has to come out is folded from that alone, lane by lane and step by step in the machine's order, with the
operations of model.py, and compared bit for bit. Whether the Valid Count Generator can say which lanes count is asked by trying all of its
numbers: each slice, flit and lane is looked at. What it can say must be accepted, the rest refused as E-VALID-COUNT; more than 8 slots, and results that
lack or keep something, as E-VECTOR-REDUCE. What is accepted is compared with the reference as well, in numbers and in algebra.
Usage: reduce_oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import re
import struct
import sys
import tempfile

import reductions
from reductions import EDGES, MODEL, dense, edge_words, is_same, names_in_order  # reductions finds the modules of the oracles, too
import meaning
import visa_tools
from harness import compile_all

OPS = {"i32": [("AddSat", "REDUCE_ADD_SAT", 0), ("Max", "REDUCE_MAX_I32", 0x80000000), ("Min", "REDUCE_MIN_I32", 0x7FFFFFFF)],
       "f32": [("Add", "REDUCE_ADD_F32", 0), ("Max", "REDUCE_MAX_F32", 0xFF800000), ("Min", "REDUCE_MIN_F32", 0x7F800000)]}


class Case:
    """Mappings as text; `time` and `out_time` of the stream in packets of 4."""

    def __init__(self, rng):
        self.dtype = rng.choice(["i32", "f32"])
        self.op = rng.choice(OPS[self.dtype])
        while not self.draw(rng):
            pass

    def draw(self, rng):
        n = rng.choice([1, 2, 3, 4, 5, 7, 8, 10, 11, 12, 13, 14, 16, 17, 19, 20, 24, 31, 32])
        self.sizes = {"R": n, "A": rng.choice([1, 2, 3]), "B": rng.choice([2, 3, 4]), "X": rng.choice([2, 4]), "L": rng.choice([2, 4])}
        parts, padded = [], 1
        for _ in range(rng.choice([1, 2, 2, 3, 3, 4])):
            parts.append(rng.choice([2, 2, 2, 4, 4, 3, 5, 8]))
            padded *= parts[-1]
        if padded < n or padded > 4 * n + 8 or padded > 128:
            return False
        digits, weight = [], padded
        pad = "R" if padded == n else f"R # {padded}"
        for i, p in enumerate(parts):
            weight //= p
            digits.append((f"{pad}" + (f" / {weight}" if weight > 1 else "") + (f" % {p}" if i else ""), p, weight))
        places = [rng.choice(["slice", "time", "time", "packet"]) for _ in digits]
        if rng.random() < 0.4:  # the order that is asked for: slices, time, packet
            places.sort(key=["slice", "time", "packet"].index)
        of = lambda where: [d for d, p in zip(digits, places) if p == where]
        packet, lanes = of("packet"), 1
        if rng.random() < 0.7:
            packet = packet[-1:]
            places = [p if p != "packet" or i == len(places) - 1 else "time" for i, p in enumerate(places)]
            packet = of("packet")
        for _, p, _ in packet:
            lanes *= p
        kept_lanes = None
        if not packet or (rng.random() < 0.1 and lanes * self.sizes["L"] <= 8):
            kept_lanes = "L"
            lanes *= self.sizes["L"]
        if lanes > 8:
            return False
        inner = [d[0] for d in packet] + ([kept_lanes] if kept_lanes else [])
        if kept_lanes and packet and rng.random() < 0.5:
            inner.reverse()
        self.packet_digits = packet
        self.lane_weight = packet[-1][2] if packet else 1
        self.over = bool(of("slice")) and any(n <= w for _, _, w in of("time"))
        self.packet = ", ".join(inner) + ("" if lanes == 8 else " # 8")
        if len(inner) > 1 and lanes < 8:
            self.packet = f"[{', '.join(inner)}] # 8"
        self.splits = lanes > 4 or rng.random() < 0.3
        if self.splits and len(inner) > 1 and (lanes <= 4 or kept_lanes):  # the halves are steps, and R may be in these alone
            return False
        time, slices = [(t, False) for t in rng.sample(["A", "B"], rng.choice([0, 1, 2]))], ["X"] * rng.choice([0, 1])
        for d in of("time"):
            time.insert(rng.randrange(len(time) + 1), (d[0], True))
        self.slice_digits = of("slice")
        used = self.sizes["X"] if slices else 1
        for _, p, _ in self.slice_digits:
            used *= p
        if used > 256:  # of a cluster
            return False
        for d in self.slice_digits if rng.random() < 0.8 else self.slice_digits[::-1]:
            slices.insert(rng.randrange(len(slices) + 1) if rng.random() < 0.3 else len(slices), d[0])
        self.time, self.kept = [t for t, _ in time], [t for t, r in time if not r]
        self.slice = ", ".join(slices) or "1"
        self.tree = any(w < n for _, _, w in packet)
        self.mixed = self.tree and bool(kept_lanes)
        self.before = rng.random() < 0.3
        self.written = rng.random() < 0.5 or (self.splits and lanes <= 4) or any(n <= w for _, _, w in of("time"))
        return not self.mixed or rng.random() < 0.5

    def tables(self):
        self.axes = meaning.Axes(self.sizes)

        def table(text):
            tree = meaning.parse(text)
            meaning.check(tree, self.axes)
            return meaning.table(tree, self.axes)
        t, packet = table(", ".join(self.time) or "1"), table(self.packet)
        self.s, self.flits, self.lanes = table(self.slice), t, packet
        if self.splits and not any(c is not None and self.axes.live(c) for c in packet[4:]):
            self.written = True  # steps of padding alone, which an OutTime that is inferred keeps

    def live(self, s, t, lane):
        a, b, c = self.s[s], self.flits[t], self.lanes[lane]
        return None if None in (a, b, c) or not self.axes.live(a + b + c) else a + b + c

    def without(self, code):
        return code & ~self.axes.field("R")

    def source(self, name):
        axes = ", ".join(f"{n} = {s}" for n, s in self.sizes.items())
        narrow = ".vector_narrow_split()" if self.splits else ".vector_narrow_trim()"
        kind = "I32" if self.dtype == "i32" else "F32"
        out = "_, _"
        if self.written:
            kept = list(self.kept)
            if self.splits and not self.tree:
                kept.append(f"[{self.packet}] / 4")
            packet = "1 # 4" if self.tree else f"[{self.packet}] % 4"
            out = f"m![{', '.join(kept) or '1'}], m![{packet}]"
        before = ""
        if self.before:
            before = ".vector_fxp(FxpBinaryOp::AddFxp, 7)" if self.dtype == "i32" else ".vector_clip(ClipBinaryOpF32::Max, -2.5)"
        if self.before and self.dtype == "f32":
            before = ".vector_logic(LogicBinaryOpF32::BitXor, -0.0)"
        return (f"mod m{name} {{\naxes![{axes}];\nfn {name}(x: CollectTensor<{self.dtype}, m![1], m![1], m![{self.slice}], m![{', '.join(self.time) or '1'}], m![{self.packet}]>)"
                f" -> VectorFinalTensor<{self.dtype}, m![1], m![1], _, _, _> {{\n    x.vector_init().vector_intra_slice_tag(TagMode::Zero){before}{narrow}"
                f".vector_intra_slice_reduce::<R, {out}>(IntraSliceReduceOp{kind}::{self.op[0]}).vector_widen_pad().vector_final()\n}}\n}}")

    # ---- what must be refused ----

    def slots(self):
        """Kept positions of Time, in packets of 4, inside the outermost reduced digit."""
        inside, found = 1, False
        size = lambda text: meaning.size(meaning.parse(text), self.axes)
        halves = [] if not self.splits else [("half", self.tree)]
        for text, reduced in [(t, t not in self.kept) for t in self.time] + halves:
            n = 2 if text == "half" else size(text)
            found = found or (reduced and n > 1)
            if found and not reduced:
                inside *= n
        return inside if found else 1

    def wanted(self):
        """By slice and flit: for each lane whose result is live, whether it counts."""
        out = {}
        for s in range(len(self.s)):
            if self.s[s] is None or not self.axes.live(self.s[s]):
                continue
            for t in range(len(self.flits)):
                row = []
                for lane in range(8 if self.splits else 4):
                    kept_t = self.kept_live(self.flits_kept, t)
                    kept_l = self.kept_live(self.lanes_kept, lane)
                    row.append((self.live(s, t, lane) is not None) if kept_t and kept_l else None)
                out[s, t] = row
        return out

    def kept_live(self, table, i):
        return table is None or table[i] is not None

    def expressible(self):
        """Try the generator's numbers."""
        self.flits_kept = self.lanes_kept = None
        trees = [meaning.parse(t) for t in self.time]
        digit = {}  # index of R by flit
        for t, code in enumerate(self.flits):
            digit[t] = self.index(t, trees, [t in self.kept for t in self.time])
        if not self.tree:
            table = self.lanes
            self.lanes_kept = table
        wanted = self.wanted()
        if all(v is not False for row in wanted.values() for v in row):
            return True
        live = [d for d in self.slice_digits if d[2] < self.sizes["R"]]  # else it is padding alone
        mask, powers = self.bits()
        lanes = 8 if self.splits else 4
        most = 4 * max(self.sizes["R"], 8) + 8
        unit = self.lane_weight
        # published: the clipper counts an axis that is in the packet and in no slice; else it says how many lanes there are
        clips = [(None, span, span) for span in range(1, lanes + 1)]
        if self.tree and not live and self.counts_up():
            clips += [(unit, limit, span) for limit in range(0, most) for span in range(1, lanes + 1)]
        top = max(digit.values())
        filters = [None] + [(thres, limit, mode, m) for m in ([0] if not live else [mask] if powers else []) for thres in sorted({s & m for s in range(len(self.s))})
                            for limit in sorted(set(digit.values()) | {top + 1}) for mode in (0, 1)]
        counts = {}
        for key, row in wanted.items():
            counts[key] = self.possible(row)
            if not counts[key]:
                return False
        for f in filters:
            if f and f[2] == 1 and f[1] != top:
                continue  # time major cuts the last value off and no other
            shut = {key for key in wanted if f and not self.through(f, key[0], digit[key[1]])}
            if any(0 not in counts[key] for key in shut):
                continue
            need = {}
            for (s, t), c in counts.items():
                if (s, t) not in shut:
                    need[digit[t]] = need.get(digit[t], set(range(9))) & c
            if all(need.values()) and (all(lanes in c for c in need.values()) or self.clipped(need, clips)):
                return True
        return False

    def counts_up(self):
        """Do the packet's lanes, as far as they are live, go on along R by one step?"""
        field = [None if c is None else (c >> self.axes.shift["R"]) & meaning.MASK for c in self.lanes]
        front = [c for c in field[:next((i for i, c in enumerate(field) if c is None), 8)]]
        return all(c == i * self.lane_weight for i, c in enumerate(front))

    @staticmethod
    def clipped(need, clips):
        for clip in clips:
            unit, limit, span = clip
            if all(max(0, min(span, limit - (digit // unit if unit else 0))) in c and not (unit and digit % unit) for digit, c in need.items()):
                return True
        return False

    def possible(self, row):
        """The counts that leave in what counts and nothing else."""
        return {c for c in range(len(row) + 1) if all(v is None or v == (i < c) for i, v in enumerate(row))}

    def through(self, f, s, index):
        masked = s & f[3]
        return masked < f[0] or (not (masked > f[0] and f[2] == 0) and index < f[1])

    def index(self, t, trees, kept):
        """What the time step adds to the index of R, padding included: each digit by its own position."""
        total = 0
        sizes = [meaning.size(tree, self.axes) for tree in trees]
        for tree, size, keep, text in reversed(list(zip(trees, sizes, kept, self.time))):
            value, t = t % size, t // size
            if not keep:
                weight = re.search(r"/ (\d+)", text)
                total += value * (int(weight.group(1)) if weight else 1)
        return total

    def slice_places(self):
        place, out = 1, {}
        for text in reversed(self.slice.split(", ")):
            out[text] = place
            place *= meaning.size(meaning.parse(text), self.axes)
        return out

    def bits(self):
        """(mask, whether it says R): as published, R's digits in Slice have sizes and places that are powers of two. Digits that go on in each other are
        one, however they are written, and positions at the end of one that hold padding alone are a digit of their own. Of all slices that hold
        something, equal bits must be equal R, and more bits more R."""
        places, mask, digits = self.slice_places(), 0, []  # place, positions, weight
        for text, p, weight in sorted(self.slice_digits, key=lambda d: places[d[0]]):
            place = places[text]
            if digits and digits[-1][0] * digits[-1][1] == place and digits[-1][2] * digits[-1][1] == weight:
                digits[-1][1] *= p
            else:
                digits.append([place, p, weight])
        for place, p, weight in digits:
            values = min(p, -(-self.sizes["R"] // weight))
            sizes = [size for size in (1, 2, 4, 8, 16, 32, 64, 128, 256) if size >= values and p % size == 0]
            if values > 1 and (place & (place - 1) or not sizes):
                return 0, False
            mask |= ((sizes or [1])[0] - 1) * place
        seen = {(s & mask, code >> self.axes.shift["R"] & meaning.MASK) for s, code in enumerate(self.s) if code is not None and self.axes.live(code)}
        in_order = [r for _, r in sorted(seen)]
        return mask, len({m for m, _ in seen}) == len(seen) and all(a < b for a, b in zip(in_order, in_order[1:]))

    # ---- what must come out ----

    def expected(self, words):
        """By code of the result: word."""
        _, name, identity = self.op
        op = MODEL["BINARY"][name]
        cells = {}
        for s in range(len(self.s)):
            for t in range(len(self.flits)):
                for half in range(2 if self.splits else 1):
                    lane = [self.live(s, t, half * 4 + i) for i in range(4)]
                    terms = [None if c is None else self.first(words[c]) for c in lane]
                    if not self.tree:
                        for code, term in zip(lane, terms):
                            if code is not None:
                                key = self.without(code) + (self.s[s] & self.axes.field("R"))
                                cells[key] = op(cells.get(key, identity), term)
                        continue
                    join = lambda a, b: b if a is None else a if b is None else op(a, b)
                    term = join(join(terms[0], terms[1]), join(terms[2], terms[3]))
                    code = next((c for c in lane if c is not None), None)
                    if code is not None:
                        key = self.without(code) + (self.s[s] & self.axes.field("R"))
                        cells[key] = op(cells.get(key, identity), term)
        return cells

    def first(self, word):
        if not self.before:
            return word
        return word + 7 & 0xFFFFFFFF if self.dtype == "i32" else word ^ 0x80000000


def input_words(case, rng, count):
    if case.op[0] == "Add":
        floats = [rng.choice([0.5, -1.5, 3.25, 1e-3, 1e8, -1e8, 7.0, -0.0]) if rng.random() < 0.4 else rng.uniform(-4, 4) for _ in range(count)]
        words = list(struct.unpack(f"<{count}I", struct.pack(f"<{count}f", *floats)))
        return [rng.choice(EDGES) if rng.random() < 0.02 else w for w in words]
    return edge_words(rng, count)


def run_one(case, name, binary, rng, directory):
    failed, names, words, got = reductions.run_kernel(case, name, binary, directory, [*case.slice.split(", "), *case.time, case.packet],
                                                      lambda count: input_words(case, rng, count))
    if failed:
        return failed
    by_code = {}
    for s in range(len(case.s)):
        for t in range(len(case.flits)):
            for lane in range(8):
                code = case.live(s, t, lane)
                if code is not None:
                    by_code[code] = words[dense(case.axes, names, code)]
    wanted = case.expected(by_code)
    out_names = names_in_order([*case.slice.split(", "), *case.kept, *([] if case.tree else [case.packet])], case.axes)
    for code, word in wanted.items():
        found = got[dense(case.axes, out_names, code)]
        if not is_same(case.dtype, found, word):
            return f"{case.axes.show(code)}: {found:08x}, by the enumeration {word:08x}"
    return None


def cuts_in_halves(case):
    """Do the halves of a split packet, each by itself, hold what the packet held?"""
    halves = [meaning.table(meaning.parse(f"[{case.packet}] {cut} 4"), case.axes) for cut in "/%"]
    for lane in range(8):
        codes = [halves[0][lane // 4], halves[1][lane % 4]]
        got = None if None in codes or not case.axes.live(sum(codes)) else sum(codes)
        if got != (case.lanes[lane] if case.axes.live(case.lanes[lane]) else None):
            return False
    return True


def verdict_of(case):
    if case.splits and not cuts_in_halves(case):
        return "E-VECTOR-WIDTH"
    if case.mixed:
        return "E-VECTOR-REDUCE"
    if case.slots() > 8:
        return "E-VECTOR-REDUCE"
    return "accepted" if case.expressible() else "E-VALID-COUNT"


def batch(cases, rng, directory, count):
    faults = []
    sources = [c.source(f"p{i}") for i, c in enumerate(cases)]
    verdicts, good = compile_all(sources), []
    for i, (case, verdict) in enumerate(zip(cases, verdicts)):
        wanted = verdict_of(case)
        got = "accepted" if verdict.kind == "accepted" else (verdict.ids or ["?"])[0]
        count[wanted] = count.get(wanted, 0) + 1
        alone = verdict.kind != "accepted" and "no digit of it alone" in verdict.message  # halves of a packet that are no digits
        if wanted != got and not (alone and wanted == "E-VALID-COUNT") and not (case.over and {wanted, got} == {"accepted", "E-VALID-COUNT"}):
            faults.append(f"{sources[i]}\nshould be {wanted}: {got} {verdict.message if verdict.kind != 'accepted' else ''}")
        elif got == "accepted":
            good.append(i)
    return faults + reductions.judge_good(cases, sources, good, directory, lambda case, name, binary: run_one(case, name, binary, rng, directory))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(160)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 23
    faults, verdicts = [], {}
    with tempfile.TemporaryDirectory() as directory:
        for rng, cases in reductions.drawn(Case, count, seed):
            faults += batch(cases, rng, directory, verdicts)
    for fault in faults[:4]:
        print(fault)
    print(f"{count} reductions: " + ", ".join(f"{n} {v}" for v, n in sorted(verdicts.items())) + f"; {len(faults)} wrong")
    return len(faults) > 0 or (visa_tools.SLOWER == 1 and not {"accepted", "E-VALID-COUNT", "E-VECTOR-REDUCE"} <= set(verdicts))


if __name__ == "__main__":
    sys.exit(main())
