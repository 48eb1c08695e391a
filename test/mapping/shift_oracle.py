#!/usr/bin/env python3
"""Shift-and-reuse and transposed flits against an enumeration: random streams, random OutTime and OutPacket.

The enumeration knows positions and coordinates only. It lists which element every lane of every step wants, and tries all numbers of
flits, transposes, first offsets, strides and loop sizes of the machine's rule (docs/isa.md, shift). What visac accepts must be possible and its
run must agree with the reference; what is possible and of the ordinary order must be accepted. VISA_LONG=1: many more.
Usage: shift_oracle.py [SEED]"""
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

BITS = {"i4": 4, "i8": 8, "f8e4m3": 8, "bf16": 16}
ROWS = {"i4": (1, 4), "i8": (1, 2, 4), "f8e4m3": (1, 2, 4), "bf16": (1, 2)}
UNITS = "m![1], m![1], m![1]"


class Digit:
    """Positions 0 .. extent-1 of a digit; `live` of them move axis `name` by `weight` each. name None: a hole."""

    def __init__(self, text, name, weight, live, extent):
        self.text, self.name, self.weight, self.live, self.extent = text, name, weight, live, extent


def whole(name, size):
    return Digit(name, name, 1, size, size)


def size_of(digits):
    total = 1
    for d in digits:
        total *= d.extent
    return total


def at(digits, position, sizes):
    """Coordinates at a position of a list of digits, outermost first; None: padding."""
    coords = {}
    for d in reversed(digits):
        value, position = position % d.extent, position // d.extent
        if value >= d.live:
            return None
        if d.name:
            coords[d.name] = coords.get(d.name, 0) + value * d.weight
    return None if any(c >= sizes[n] for n, c in coords.items()) else coords


def text_of(digits, padded):
    body = ", ".join(d.text for d in digits) or "1"
    return body if size_of(digits) == padded else f"[{body}] # {padded}"


class Spec:
    """A convolution of one dimension: window W over X and F in the flits, next to it what else there is."""

    def __init__(self, rng):
        self.dtype = rng.choice(list(BITS))
        self.flit, self.lanes = 256 // BITS[self.dtype], 512 // BITS[self.dtype]
        s, d = rng.choice((1, 1, 1, 2, 3)), rng.choice((1, 1, 2, 3, 5))
        taps, pairs = rng.choice((2, 3, 3, 4, 5)), rng.random() < 0.3
        x = rng.randrange(2, 24)
        self.sizes = {"A": rng.choice((1, 2, 3)), "X": x, "F": taps, "T": 2, "C": rng.choice((2, 3, 4))}
        self.stride, self.dilation = s, d
        places = 1 + (x - 1) * s + (taps - 1) * d
        self.first, last = 0, places
        if rng.random() < 0.25:
            self.first, last = rng.randrange(0, min(5, places - 1)), places - rng.randrange(0, 2)
        self.held = max(1, last - self.first)
        border = f" | {self.first}..{self.first + self.held}" if self.held < places else ""
        self.sizes["W"] = self.held
        window = Digit(f"$(X:{s}, F:{d}{border})", "W", 1, self.held, self.held)
        channel = whole("C", self.sizes["C"])
        order = rng.choice(("w", "w", "wc", "wc", "cw"))
        inner = {"w": [window], "wc": [window, channel], "cw": [channel, window]}[order]
        self.port = rng.choice(("FetchTensor", "CollectTensor"))
        self.live = size_of(inner)
        if "c" in order and self.sizes["C"] == 3:
            self.port = "FetchTensor"  # flits of a group that they cut are known as one only where Collect made them
        self.padded = -(-self.live // self.flit) * self.flit
        self.flits = self.padded // self.flit
        self.packet = text_of(inner, self.live)
        self.collected, self.inner = text_of(inner, self.padded), inner
        taps_digit = whole("F", taps)
        kept, time = [], [taps_digit]
        if pairs:
            even = -(-taps // 2) * 2
            pad = "" if even == taps else f" # {even}"
            kept = [Digit(f"F{pad} % 2", "F", 1, 2, 2)]
            time = [Digit(f"F{pad} / 2", "F", 2, even // 2, even // 2)]
        gap = rng.choice((1, 1, 1, 2, 3, s, s, s))
        lanes = [whole("X", x)]
        if pairs:
            lanes += kept
        elif gap > 1:
            lanes.append(Digit(f"1 # {gap}", None, 0, 1, gap))
        if "c" in order:
            lanes = lanes + [channel] if order == "wc" or rng.random() < 0.3 else [channel] + lanes
        if rng.random() < 0.2:
            rng.shuffle(lanes)
        self.lane_digits = lanes
        steps = [whole("A", self.sizes["A"])] + time
        self.tile = rng.random() < 0.3
        if self.tile:
            steps.append(whole("T", 2))
        self.ordinary = rng.random() > 0.1
        if not self.ordinary:
            rng.shuffle(steps)
        self.step_digits = [d for d in steps if d.extent > 1]
        # weights: what the lanes can read together, and the loops; four bits in pairs of lanes
        stored = [d for d in time] + ([whole("T", 2)] if self.tile else [])
        element, small = ", ".join(d.text for d in stored), self.lane_digits[-1]
        if BITS[self.dtype] == 4:
            element = f"{element}, {small.text}" if small.extent % 2 == 0 and small.name != "F" else f"{element}, 1 # 2"
        self.element = element if not pairs or small.name != "F" else f"{element}, {small.text}"

    def fits(self):
        return size_of(self.lane_digits) <= self.lanes and self.flits <= 6

    def text(self, name):
        a = [whole("A", self.sizes["A"])] if self.sizes["A"] > 1 else []
        time = ", ".join(d.text for d in a) or "1"
        if self.port == "FetchTensor":
            given, call = (time, self.packet), "input.collect().align(w)"
        elif self.flits == 1:
            given, call = (time, self.collected), "input.align(w)"
        else:
            given, call = (f"{time}, [{self.collected}] / {self.flit}", f"[{self.collected}] % {self.flit}"), "input.align(w)"
        out = (", ".join(d.text for d in self.step_digits) or "1", text_of(self.lane_digits, self.lanes))
        return (f"fn {name}(input: {self.port}<{self.dtype}, {UNITS}, m![{given[0]}], m![{given[1]}]>, "
                f"w: &TrfTensor<{self.dtype}, {UNITS}, m![N], m![{self.element}]>) -> "
                f"AlignedPair<{self.dtype}, {UNITS}, m![N], m![{out[0]}], m![{out[1]}]> {{\n    {call}\n}}\n")

    def wanted(self, step, lane):
        """The stream's coordinates that a lane of a step needs; None: it does not count, "zero": the border."""
        first, second = at(self.step_digits, step, self.sizes), at(self.lane_digits, lane, self.sizes)
        if first is None or second is None:
            return None
        c = {n: first.get(n, 0) + second.get(n, 0) for n in self.sizes}
        if c["F"] >= self.sizes["F"] or lane >= size_of(self.lane_digits):
            return None
        place = c["X"] * self.stride + c["F"] * self.dilation - self.first
        if not 0 <= place < self.held:
            return "zero"
        return (c["A"], place, c["C"] if any(d.name == "C" for d in self.inner) else 0)

    def source(self, pop, flits, rows):
        """What the collected flits of a pop hold; "zero" where Collect put zeros, None: nobody knows."""
        out = []
        for i in range(pop * flits * self.flit, (pop + 1) * flits * self.flit):
            flit, e = divmod(i, self.flit)
            e = e % rows * (self.flit // rows) + e // rows
            a, element = divmod(flit * self.flit + e, self.padded)
            coords = at(self.inner, element, self.sizes) if element < self.live else None
            if coords is None:
                out.append("zero" if self.port == "FetchTensor" else None)
            else:
                out.append((a, coords["W"], coords.get("C", 0)))
        return out


def offsets(spec, step, source):
    """All offsets that give every lane of the step what it wants; None: any."""
    wants = [(lane, spec.wanted(step, lane)) for lane in range(spec.lanes)]
    wants = [w for w in wants if w[1] is not None]
    if not wants:
        return None
    good = set()
    for offset in range(-spec.lanes, len(source) + 1):
        if all((source[lane + offset] if 0 <= lane + offset < len(source) else "zero") == want for lane, want in wants):
            good.add(offset)
    return good


def shifts(per_step, each, spec):
    """Is there tiling x shifts = each, with one first offset and one stride, for all pops?"""
    quarter = spec.flit // 4
    for count in range(1, each + 1):
        if each % count:
            continue
        tiling = each // count
        for first in range(1 - quarter, quarter + 1):
            for stride in range(1, 2 * quarter) if count > 1 else (0,):
                if all(good is None or first + stride * (t % each // tiling) in good for t, good in enumerate(per_step)):
                    return True
    return False


def possible(spec):
    steps, packets = size_of(spec.step_digits), spec.sizes["A"] * spec.flits
    for flits in (1, 2, 3):
        pops = packets // flits
        if packets % flits or steps % pops:
            continue
        each = steps // pops
        for rows in ROWS[spec.dtype]:
            sources = [spec.source(pop, flits, rows) for pop in range(pops)]
            per_step = [offsets(spec, t, sources[t // each]) for t in range(steps)]
            if all(g is None or g for g in per_step) and shifts(per_step, each, spec):
                return True
    return False


def verdicts(specs, directory):
    """What visac says of each, by function."""
    sizes, refused, runs = {}, {}, {}
    for i, spec in enumerate(specs):
        path = os.path.join(directory, f"s{i}.vm")
        with open(path, "w") as file:
            file.write("axes![" + ", ".join(f"{n} = {v}" for n, v in dict(spec.sizes, N=2).items() if n != "W") + "];\n" + spec.text("f"))
        done = visa_tools.run(["visac", path, "--check"])
        if done.crashed:
            sys.exit(f"visac crashed:\n{open(path).read()}{done.text()}")
        refused[i] = re.findall(r"error\[([A-Z0-9-]+)\]", done.text()) if done.status == 1 else []
        runs[i] = done
    return refused, runs


def main():
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    specs = []
    while len(specs) < visa_tools.few(120):
        spec = Spec(rng)
        if spec.fits():
            specs.append(spec)
    count = {"accepted": 0, "impossible and refused": 0, "weights refused": 0, "possible out of order, refused": 0}
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        refused, runs = verdicts(specs, directory)
        for i, spec in enumerate(specs):
            ids, able = refused[i], possible(spec)
            shown = f"{spec.text('f')}{spec.sizes}\n{runs[i].text()}"
            if ids and all(x.startswith("E-TRF") or x in ("E-ALIGN-UNUSED", "E-ALIGN-TILING-TRF", "E-FETCH-ALIGN", "E-COLLECT-BYTES") for x in ids):
                count["weights refused"] += 1
            elif runs[i].status not in (0, 1) or (not ids and runs[i].status):
                failures += 1
                print(f"differs from the reference:\n{shown}")
            elif not ids and not able:
                failures += 1
                print(f"accepted, but no command does it:\n{shown}")
            elif not ids:
                count["accepted"] += 1
            elif not able:
                count["impossible and refused"] += 1
            elif spec.ordinary:
                failures += 1
                print(f"possible, but refused:\n{shown}")
            else:
                count["possible out of order, refused"] += 1
    print(", ".join(f"{n} {what}" for what, n in count.items()))
    print(f"{sum(count.values())} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
