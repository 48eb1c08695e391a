#!/usr/bin/env python3
"""The Switch Engine against an enumeration: what is accepted, which way every packet goes, and the size of the ring.

A packet is followed from the slice and time step at which it goes in to those at which it leaves: for a named topology by the table of
docs/engine/switch.md, position by position; for a custom one by asking which slice holds what the mappings want at a place, and whether a slice
that copies what passes by, in the order in which slices inject, meets exactly that. map(i) is meaning.py's, and nothing else is known of mappings.
What is possible must be accepted and give what the reference gives (--check: numbers and algebra); the rest must be refused.
Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from stage_oracle import Call, Maker as Axes, live, meaning, run  # noqa: E402

NAMED = ("Broadcast01", "Broadcast1", "Transpose", "InterTranspose", "TransposedBroadcast1")
SLICES = (64, 128, 256)
LANES = {"i8": (8, 16, 32), "i4": (16, 64), "f8e4m3": (8, 32), "f8e5m2": (8,), "bf16": (4, 8, 16), "f32": (2, 4, 8), "i32": (2, 8)}  # packets of 8 to 32 bytes
LEVELS = ("m![1], m![1]", "m![1], m![1]", "m![1], m![Half]", "m![1], m![1 # 2]", "m![1], m![2]", "m![Quad], m![Half]", "m![Quad # 4], m![2]", "m![2], m![1 # 2]")


class Stage(Call):
    """One call: axes, configuration, and InSlice, InTime, OutSlice, OutTime as text."""

    def __init__(self, sizes, config, fields, maps, moved=()):
        super().__init__(sizes, maps)
        self.config, self.fields, self.moved = config, dict(fields), moved
        self.data = "i8", 8, LEVELS[0]  # element type, its number in a packet, Chip and Cluster: nothing of it matters
        self.kind = f"{config} accepted"

    def source(self, name):
        i, t, o, ot = (f"m![{m}]" for m in self.maps)
        dtype, lanes, levels = self.data
        axes = ", ".join(f"{n} = {s}" for n, s in dict(self.sizes, Lane=lanes, Half=2, Quad=4 if "Quad]" in levels else 3).items())
        flit = max(LANES[dtype]) if dtype in ("i8", "i4", "bf16", "f32", "i32") else 32
        packet = "m![Lane]" if lanes == flit else f"m![Lane # {flit}]"
        fields = ", ".join(f"{n}: {v}" for n, v in self.fields.items())
        config = f"SwitchConfig::{self.config}" + (f" {{ {fields} }}" if fields else "")
        return (f"mod m{name} {{\naxes![{axes}];\nfn f(x: FetchTensor<{dtype}, {levels}, {i}, {t}, m![Lane]>) -> CollectTensor<{dtype}, {levels}, {o}, {ot}, {packet}> "
                f"{{ x.switch::<{o}, {ot}>({config}).collect() }}\n}}")


def fields_of(codes, axes):
    return meaning.mentioned(codes, axes)


def equal(axes, left, right):
    return len(left) == len(right) and meaning.final(left, axes) == meaning.final(right, axes)


def cross(*tables):
    """The table of a pair of tables, outermost first."""
    out = [0]
    for t in tables:
        out = [None if a is None or b is None else a + b for a in out for b in t]
    return out


# ---- named topologies: what leaves, cut from what comes in ----


def named(stage, axes, tables):
    """Is the call what the topology does? Digits are cut by position."""
    i, t, o, ot = tables
    s1, s0, t0 = (stage.fields.get(k, 1) for k in ("slice1", "slice0", "time0"))
    inner = s1 * s0
    if min(s1, s0, t0) < 1 or len(i) % inner:
        return False
    i2, i1, i0 = i[::inner], i[::s0][:s1], i[:s0]
    o2, old = o[::inner], fields_of(i, axes) | fields_of(t, axes)
    axes_of = lambda codes: fields_of(codes, axes) & old
    if stage.config == "Transpose":
        return equal(axes, t, ot) and equal(axes, o, cross(i2, i0, i1))
    if not equal(axes, i2, o2):
        return False
    if stage.config == "Broadcast01":
        if len(t) % t0:
            return False
        return not axes_of(o[:inner]) and equal(axes, ot, cross(t[::t0], i1, t[:t0], i0))
    if stage.config == "Broadcast1":
        return not axes_of(o[::s0][:s1]) and equal(axes, o[:s0], i0) and equal(axes, ot, cross(t, i1))
    if stage.config == "TransposedBroadcast1":
        return not axes_of(o[::s1][:s0]) and equal(axes, o[:s1], i1) and equal(axes, ot, cross(t, i0))
    if len(t) % (s1 * t0) or len(ot) != len(t):
        return False
    return (equal(axes, o[:s0], i0) and equal(axes, o[::s0][:s1], t[::t0][:s1]) and equal(axes, ot[::s1 * t0], t[::s1 * t0]) and
            equal(axes, ot[::s1][:t0], t[:t0]) and equal(axes, ot[:s1], i1))


def origin(stage, tables, d, u):
    """Where the packet of slice d at step u of what leaves went in, by the table."""
    i, t = tables[0], tables[1]
    s1, s0, t0 = (stage.fields.get(k, 1) for k in ("slice1", "slice0", "time0"))
    d0, d1, d2 = d % s0, d // s0 % s1, d // s0 // s1
    at = lambda k2, k1, k0: (k2 * s1 + k1) * s0 + k0
    if stage.config == "Broadcast01":
        b, u = u % s0, u // s0
        x, u = u % t0, u // t0
        a, u = u % s1, u // s1
        return at(d2, a, b), u * t0 + x
    if stage.config == "Broadcast1":
        return at(d2, u % s1, d0), u // s1
    if stage.config == "TransposedBroadcast1":
        return at(d2, d % s1, u % s0), u // s0
    if stage.config == "Transpose":
        return at(d2, d % s1, d // s1 % s0), u
    a, rest = u % s1, u // s1
    return at(d2, a, d0), (rest // t0 * s1 + d1) * t0 + rest % t0


def traced(stage, axes, tables):
    """Does every packet that leaves bring what the mappings name? Axes that are new do not matter."""
    i, t, o, ot = tables
    old = fields_of(i, axes) | fields_of(t, axes)
    for d, a in enumerate(o):
        for u, b in enumerate(ot):
            want = live(axes, a, b)
            if want is None:
                continue
            s, v = origin(stage, tables, d, u)
            if live(axes, i[s], t[v]) != want & old:
                return False
    return True


# ---- custom ----


def padded_new(axes, o, new):
    """A new axis may not have padding outside of it, nor stand there twice: published, though packets would find their way."""
    for name, size in axes.sizes.items():
        if axes.field(name) & new:
            if sum(c == 1 << axes.shift[name] for c in o) > 1:
                return True
            weight = next((p for p, c in enumerate(o) if c == 1 << axes.shift[name]), None)
            if weight and size * weight < len(o) and o[size * weight] is None:
                return True
    return False


def hole(axes, part):
    """Padding that moves to time by itself: it is no digit of a slice."""
    codes = meaning.final(meaning.table(meaning.parse(part), axes), axes)
    return len(codes) > 1 and not any(c is not None for c in codes[1:])


def twice(axes, mapping):
    """Two digits count through the same coordinates: refused as published, whatever the packets."""
    steps = [set(meaning.table(meaning.parse(part), axes)) - {0, None} for part in mapping.split(", ")]
    return any(a & b for i, a in enumerate(steps) for b in steps[:i])


def custom(stage, axes, tables):
    """The ring that is needed, or None where the call cannot be."""
    i, t, o, ot = tables
    if len(i) != len(o) or not t or len(ot) % len(t):
        return None
    held, timed = fields_of(i, axes), fields_of(t, axes)
    new = fields_of(o, axes) & ~held
    moved, outer = ot[:len(ot) // len(t)], ot[::len(ot) // len(t)]
    if new & timed or held & timed or fields_of(moved, axes) & ~held or not equal(axes, outer, t):
        return None
    if padded_new(axes, o, new) or any(hole(axes, part) for part in stage.moved):
        return None
    where = {}
    for s, code in enumerate(i):
        if code is not None and axes.live(code):
            where.setdefault(code, []).append(s)
    ring = 1
    for d, a in enumerate(o):
        if a is None or not axes.live(a):
            continue
        last = -1
        for b in moved:
            want = live(axes, a, b)
            if want is None:
                continue
            sources = where.get(want & held)
            if not sources:
                return None
            best = [s for s in sources if s > last]
            if not best:
                return None
            last = min(best, key=lambda s: (s ^ d).bit_length())
            ring = max(ring, 1 << (last ^ d).bit_length())
    return ring


# ---- random stages ----


class Maker(Axes):
    """Digits of axes, as text; `count` positions each."""

    def part(self, size):
        """Digits, outermost first, that are together `size` positions: [(text, positions)]."""
        rng = self.rng
        kind = rng.choice(("axis", "axis", "axis", "padded", "hole", "cut", "cut"))
        if size == 1:
            return []
        if kind == "hole":
            return [(f"1 # {size}", size)]
        if kind == "padded":
            name = self.axis(rng.randrange(1, size + 1))
            cut = rng.choice([n for n in range(1, size + 1) if size % n == 0])
            if cut in (1, size):
                return [(f"{name} # {size}", size)]
            return [(f"{name} # {size} / {cut}", size // cut), (f"{name} # {size} % {cut}", cut)]
        name = self.axis(size)
        cuts = [n for n in range(2, size) if size % n == 0]
        if kind == "cut" and cuts:
            cut = rng.choice(cuts)
            return [(f"{name} / {cut}", size // cut), (f"{name} % {cut}", cut)]
        return [(name, size)]


def split(rng, n):
    """Powers of two whose product is n."""
    out = []
    while n > 1:
        p = 1 << rng.randrange(1, n.bit_length())
        out.append(p)
        n //= p
    return out


def text(digits):
    return ", ".join(t for t, _ in digits if t != "1") or "1"


def cut(rng, m, n):
    """A mapping's digits for n positions."""
    digits = []
    for p in split(rng, n):
        digits += m.part(p)
    return digits


def make_named(rng):
    m, n = Maker(rng), rng.choice(SLICES)
    config = rng.choice(NAMED)
    s1 = 1 << rng.randrange(0, n.bit_length())
    s0 = 1 << rng.randrange(0, (n // s1).bit_length())
    fields = {"slice1": s1, "slice0": s0}
    two, one, zero = cut(rng, m, n // s1 // s0), cut(rng, m, s1), cut(rng, m, s0)
    new = lambda size: [] if size == 1 else [rng.choice((f"1 # {size}", m.axis(size)))] if rng.random() < 0.8 else [m.axis(rng.randrange(1, size + 1)) + f" # {size}"]
    names = lambda digits: [t for t, _ in digits]
    outer = names(m.part(rng.choice((1, 2, 3))))
    inner = names(m.part(rng.choice((1, 2, 4))))
    t0 = 1
    for t in inner:
        t0 *= meaning.size(meaning.parse(t), meaning.Axes(m.sizes))
    two, one, zero = names(two), names(one), names(zero)
    i, t = two + one + zero, outer + inner
    if config == "Broadcast01":
        fields["time0"] = t0
        o, ot = two + new(s1) + new(s0), outer + one + inner + zero
    elif config == "Broadcast1":
        o, ot = two + new(s1) + zero, t + one
    elif config == "Transpose":
        o, ot = two + zero + one, t
    elif config == "TransposedBroadcast1":
        o, ot = two + new(s0) + one, t + zero
    else:
        moved = names(cut(rng, m, s1))
        fields["time0"] = t0
        t = outer + moved + inner
        o, ot = two + moved + zero, outer + inner + one
    maps = [i, t, o, ot]
    for _ in range(rng.choice((0, 0, 1))):
        disturb(rng, m, maps, fields)
    joined = [", ".join(x) or "1" for x in maps]
    return Stage(m.sizes, config, fields, joined)


def disturb(rng, m, maps, fields):
    which = rng.randrange(4)
    at = rng.randrange(4)
    if which == 0 and len(maps[at]) > 1:
        i = rng.randrange(len(maps[at]) - 1)
        maps[at][i], maps[at][i + 1] = maps[at][i + 1], maps[at][i]
    elif which == 1:
        name = rng.choice(list(fields))
        fields[name] = max(1, fields[name] * 2 if rng.random() < 0.5 else fields[name] // 2)
    elif which == 2 and maps[at]:
        i = rng.randrange(len(maps[at]))
        size = meaning.size(meaning.parse(maps[at][i]), meaning.Axes(m.sizes))
        maps[at][i] = rng.choice((m.axis(size), f"1 # {size}"))
    elif which == 3:
        a, b = rng.randrange(4), rng.randrange(4)
        if maps[a] and maps[b]:
            i, k = rng.randrange(len(maps[a])), rng.randrange(len(maps[b]))
            maps[a][i], maps[b][k] = maps[b][k], maps[a][i]


def make_custom(rng):
    m, n = Maker(rng), rng.choice(SLICES)
    i, t = cut(rng, m, n), m.part(rng.choice((1, 2, 3, 5)))
    o, moved = [list(d) for d in i], []
    for _ in range(rng.choice((0, 1, 1, 2))):
        k = rng.randrange(len(o))
        if o[k] is not None and not o[k][0].startswith("*"):
            size = o[k][1]
            if rng.random() < 0.7 and not i[k][0].startswith("1 #"):
                moved.append(k)
            o[k] = ["*", size]
    moved.sort()
    for d in o:
        if d[0] == "*":
            d[0] = rng.choice((m.axis(d[1]), m.axis(d[1]), f"1 # {d[1]}"))
    for _ in range(rng.choice((0, 0, 1, 2))):
        a, b = rng.randrange(len(o)), rng.randrange(len(o))
        o[a], o[b] = o[b], o[a]
    if rng.random() < 0.1 and len(moved) > 1:
        moved.reverse()
    inner = [i[k][0] for k in moved]
    if inner and rng.random() < 0.15:
        k = rng.randrange(len(inner))
        size = i[moved[k]][1]
        inner[k] = f"{inner[k]} = {rng.randrange(1, size + 1)}"
    maps = [[d[0] for d in i], [d[0] for d in t], [d[0] for d in o], [d[0] for d in t] + inner]
    if rng.random() < 0.15:
        disturb(rng, m, maps, {"ring_size": 1})
    joined = [", ".join(x) or "1" for x in maps]
    return Stage(m.sizes, "CustomBroadcast", {"ring_size": 1}, joined, maps[3][len(t):])


def verdict(stage):
    """Is the call possible? Of a custom one: with which ring."""
    axes, tables = stage.tables()
    if stage.config == "CustomBroadcast":
        return custom(stage, axes, tables)
    able = len(tables[0]) == len(tables[2]) and named(stage, axes, tables)
    assert not able or traced(stage, axes, tables), stage.source(0)
    return able and not blocks(stage)


def blocks(stage):
    """0.9 refuses it: packets, each a flit, that pass a slice of an InterTranspose in a row."""
    return stage.config == "InterTranspose" and stage.fields["slice1"] * stage.fields.get("time0", 1) > 16


def padded(stage):
    """April counts padding to a ring: with it a larger ring than is needed may be right as well."""
    return any("#" in m for m in stage.maps[:1] + stage.maps[2:3])


def draw(rng):
    while True:
        stage = make_named(rng) if rng.random() < 0.6 else make_custom(rng)
        sizes = stage.positions()
        if sizes and sizes[0] <= 256 and sizes[2] <= 256 and max(sizes[1], sizes[3]) * 256 <= 1 << 17:
            break
    able = verdict(stage)
    if rng.random() < 0.5:
        dtype = rng.choice(sorted(LANES))
        stage.data = dtype, rng.choice(LANES[dtype]), rng.choice(LEVELS)
    if stage.config == "CustomBroadcast":
        wrong = rng.random() < 0.15
        ring = stage.fields["ring_size"] = rng.choice((1, 2, 4, 8, 16, 32, 64, 128, 256)) if wrong or not able else able
        able = able == ring or (None if padded(stage) else False)
        if able and any(twice(meaning.Axes(stage.sizes), m) for m in (stage.maps[0], stage.maps[2])):
            able = None
    return stage, able


if __name__ == "__main__":
    sys.exit(run(draw, 200, 100))
