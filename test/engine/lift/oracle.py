#!/usr/bin/env python3
"""Lifts of a fetch against an enumeration: which placements and Times they take, and that each unit reads its own part.

A lift is possible when every unit has in its own DM what the placement after the lift names for it, the place where it begins to read is the sum of
one step for each bit of its number that is 1, steps are multiples of 8 bytes, the units that begin elsewhere held the same before, and Time has the
steps of OutTime in their order with only the units' part taken out. All units, steps and elements are tried; map(i) is meaning.py's, and nothing
else is known of mappings. What is possible must be accepted and give what the reference gives (--check, which is numbers and algebra), what is not
must be refused. Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from stage_oracle import Call, Maker, live, run  # noqa: E402

BITS = {"i4": 4, "i8": 8, "f8e4m3": 8, "f8e5m2": 8, "i16": 16, "bf16": 16, "i32": 32, "f32": 32}
LEVELS = ("chip", "cluster", "slice")
UNITS = {"chip": (2, 4), "cluster": (2,), "slice": (64, 128, 256, 256)}
STEP_BITS = 64


class Lift(Call):
    """Mappings: placement before and after, Element in DM, Time, Packet, OutTime."""

    def __init__(self, sizes, dtype, level, context, tile, *maps):
        super().__init__(sizes, maps)
        self.tile = tile  # an axis outside of Element: it is done in a loop over the tensor's tiles
        self.dtype, self.level, self.context, self.kind = dtype, level, context, f"accepted, {level}"

    def source(self, name):
        before, after, element, time, packet, out_time = (f"m![{m}]" for m in self.maps)
        slices = self.positions()[0] if self.level == "slice" else 256
        units = {"chip": "m![1]", "cluster": "m![1 # 2]" if slices == 256 else "m![1]", "slice": "m![1 # 256]"}
        old, new = (", ".join((dict(units, **{self.level: m})).values()) for m in (before, after))
        chips = self.positions()[0] if self.level == "chip" else 1
        pes = {64: ", pe = 1", 128: ", pe = 2", 256: ""}[slices]
        axes = ", ".join(f"{n} = {s}" for n, s in self.sizes.items())
        chain = f".fetch::<{time}, {packet}>().fetch_{self.level}_lift::<{after}, {out_time}>().collect().commit_trim::<{packet}>()"
        held, left = self.maps[2], f"{self.maps[5]}, {self.maps[4]}"
        if self.tile:
            count = self.sizes[self.tile]
            body = (f"let mut y: DmTensor<{self.dtype}, {new}, m![{self.tile}, {left}]> = DmTensor::new();\n    for i in 0..{count} {{ device.{self.context}.begin(x.view().tile::<m![{self.tile}], 1, m![1 # {count}, {held}]>(i))"
                    f"{chain}.commit_view(y.view_mut().tile::<m![{self.tile}], 1, m![1 #{{!}} {count}, {left}]>(i)); }}\n    y")
            held, left = f"{self.tile}, {held}", f"{self.tile}, {left}"
        else:
            body = f"device.{self.context}.begin(x.view()){chain}.commit()"
        return (f"mod m{name} {{\naxes![{axes}];\n#[device(chip = {chips}{pes})]\nfn f(device: &mut Device, x: &DmTensor<{self.dtype}, {old}, m![{held}]>) -> DmTensor<{self.dtype}, {new}, m![{left}]> {{\n"
                f"    {body}\n}}\n}}")


def bits(number):
    return [j for j in range(16) if number >> j & 1]


def possible(call):
    """By enumeration; None: a matter of other rules (no unit could tell)."""
    axes, (before, after, element, time, packet, out_time) = call.tables()
    if len(before) != len(after) or len(before) & (len(before) - 1):
        return False
    places, held = {}, {}
    for address, cell in enumerate(element):
        places.setdefault(cell, []).append(address)

    def found(unit, cell):
        """Addresses at which a unit that is `unit` before the lift has the cell."""
        if unit not in held:
            held[unit] = {}
            for address, code in enumerate(element):
                held[unit].setdefault(live(axes, unit, code), []).append(address)
        return held[unit].get(cell, [])

    begins = []
    for was, now in zip(before, after):
        if (was is None) != (now is None):
            return False
        if now is None:
            begins.append(None)
            continue
        offset = None
        for t in out_time:
            for lane in packet:
                first, wanted = live(axes, t, lane), live(axes, now, live(axes, t, lane))
                if first is None or wanted is None:
                    continue
                own, base = found(was, wanted), places.get(first, [])
                if len(own) != 1 or len(base) != 1 or (offset is not None and own[0] - base[0] != offset):
                    return False
                offset = own[0] - base[0]
        begins.append(offset)
    if None in begins:
        return None
    steps = [begins[1 << j] for j in range(len(begins).bit_length() - 1)]
    if any(begins[u] != sum(steps[j] for j in bits(u)) for u in range(len(begins))) or not any(steps):
        return False
    if any(s < 0 or s * BITS[call.dtype] % STEP_BITS for s in steps):
        return False
    if any(s and before[1 << j] != before[0] for j, s in enumerate(steps)):
        return False
    parts = {live(axes, before[0], 0) if before[0] is None else after[u] - before[u] for u in range(len(after))}
    kept = [t for t in time if t in set(out_time)]
    return len(time) == len(out_time) * len(parts) and kept == list(out_time) and {p + t for p in parts for t in out_time} == set(time)


def draw(rng):
    maker, level = Maker(rng), rng.choice(LEVELS)
    dtype, units = rng.choice(sorted(BITS)), rng.choice(UNITS[level])
    own, lifted, before, after, left = [], [], [], [], units
    while left > 1:
        size = rng.choice([s for s in (2, 4, 8, 16) if s <= left])
        if (rng.random() < 0.4 and len(lifted) < 3 and size <= 4) or (left == 2 and not lifted and rng.random() < 0.9):
            axis = maker.axis(size)
            lifted.append(axis)
            before.append(str(size))
            after.append(axis)
        else:
            axis = maker.axis(size)
            own.append(axis)
            before.append(axis)
            after.append(axis)
        left //= size
    steps, lane = [maker.axis(rng.choice((1, 2, 3, 4, 5))) for _ in range(rng.randint(0, 2))], maker.axis(rng.choice((8, 16, 32)) * 8 // BITS[dtype])
    loops = steps + lifted
    rng.shuffle(loops)
    element = loops[:] if rng.random() < 0.4 else rng.sample(loops, len(loops))
    out_time = [x for x in loops if x not in lifted]
    time, packet = loops[:], lane
    fault = rng.random()
    if fault < 0.06 and lifted:
        before[after.index(lifted[0])] = f"1 # {maker.sizes[lifted[0]]}"
    elif fault < 0.12 and len(out_time) > 1:
        out_time.reverse()
    elif fault < 0.18 and lifted:
        time = [x for x in time if x != lifted[0]]
    elif fault < 0.24 and lifted:
        out_time = out_time + [lifted[-1]]
    elif fault < 0.30 and lifted:
        element = element + [maker.axis(2)] if rng.random() < 0.5 else [x for x in element if x != lifted[0]]
    elif fault < 0.36 and len(after) > 1:
        i, j = rng.sample(range(len(after)), 2)
        after[i], after[j] = after[j], after[i]
    elif fault < 0.42:
        element = [lane] + element  # the lifted digits are inside of the packet
        lane = None
    if lane:
        element = element + [lane]

    def text(parts):
        return ", ".join(parts) or "1"
    tile = maker.axis(rng.choice((1, 2, 3))) if rng.random() < 0.2 else None
    call = Lift(maker.sizes, dtype, level, rng.choice(("main", "sub")), tile, text(before), text(after), text(element), text(time), packet, text(out_time))
    positions = call.positions()
    if positions is None or positions[2] > 1 << 12 or positions[2] * positions[0] > 1 << 15:
        return draw(rng)
    able = possible(call)
    if able and positions[4] * BITS[dtype] % 64:
        able = None
    if able and element[-1:] != [packet]:
        able = None  # the walk decides, too
    return call, able


if __name__ == "__main__":
    sys.exit(run(draw, 75))
