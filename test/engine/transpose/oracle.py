#!/usr/bin/env python3
"""The Transpose Engine against an enumeration: which streams it turns into which, and that what it turns is right.

A stage is possible when some numbers of rows, packets and columns of the engine (docs/isa.md, transpose) bring every live cell of the
stream that comes in to the place that the mappings of the one that goes out name, with nothing but padding around it. All numbers are
tried, cell by cell; map(i) is meaning.py's, and nothing else is known of mappings. What is possible must be accepted and give what the
reference gives (--check, which is numbers and algebra), what is not must be refused.
Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from stage_oracle import Call, Maker as Axes, live, meaning, run  # noqa: E402

BITS = {"i4": 4, "i8": 8, "i16": 16, "i32": 32, "f8e4m3": 8, "f8e5m2": 8, "bf16": 16, "f32": 32}
COLUMNS = {4: (16, 32), 8: (8, 16, 32), 16: (8, 16, 32), 32: (8, 16, 32)}
MOST_CELLS = 1 << 15


class Stage(Call):
    """One call: axes, element type, and the four mappings: Time and Packet of what comes in, of what goes out."""

    def __init__(self, sizes, dtype, *maps):
        super().__init__(sizes, maps)
        self.dtype = dtype

    def source(self, name):
        t, p, ot, op = (f"m![{m}]" for m in self.maps)
        units = "m![1], m![1], m![1]"
        axes = ", ".join(f"{n} = {s}" for n, s in self.sizes.items()) or "Nothing = 2"
        return (f"mod m{name} {{\naxes![{axes}];\nfn f(x: CollectTensor<{self.dtype}, {units}, {t}, {p}>) -> TransposeTensor<{self.dtype}, {units}, {ot}, {op}> "
                f"{{ x.transpose::<{ot}, {op}>() }}\n}}")


def joined(axes, outer, inner):
    """[step][lane] -> index or None."""
    return [[live(axes, a, b) for b in inner] for a in outer]


def widths(bits, stream):
    """How many elements of each flit are read; [] when live ones follow all that can be read."""
    last = max((lane for row in stream for lane, c in enumerate(row) if c is not None), default=-1) + 1
    first = 16 if bits == 4 else 8
    return [w for w in ((first, 16) if bits in (8, 16) else (first,)) if last <= w][:1]


def possible(stage):
    bits = BITS[stage.dtype]
    axes, (time, packet, out_time, out_packet) = stage.tables()
    flit = 256 // bits
    if len(packet) != flit or len(out_packet) != flit:
        return None
    stream, wanted = joined(axes, time, packet), joined(axes, out_time, out_packet)
    for width in widths(bits, stream):
        for rows in range(1, 64 // bits + 1):
            for columns in COLUMNS[bits]:
                each = columns // width
                if columns % width or len(stream) % (rows * each):
                    continue
                outer = len(stream) // (rows * each)
                if len(wanted) % outer or len(wanted) // outer > columns:
                    continue
                if turned(stream, wanted, flit, width, rows, each, outer):
                    return width, rows, each, len(wanted) // outer
    return None


def turned(stream, wanted, flit, width, rows, each, outer):
    out_rows = len(wanted) // outer
    for o in range(outer):
        for c in range(out_rows):
            line = wanted[o * out_rows + c]
            for r in range(flit):
                cell = stream[(o * rows + r) * each + c // width][c % width] if r < rows else None
                if cell != line[r]:
                    return False
    return True


# ---- random stages ----


class Maker(Axes):
    def digit(self, size):
        """Text of `size` positions: an axis, an inner digit of a larger one (its outer digit too), padding, a pair, a hole."""
        rng = self.rng
        kind = rng.choice(("axis", "axis", "axis", "padded", "digit", "hole", "pair", "split"))
        if size == 1:
            return rng.choice(("1", self.axis(1))), None
        if kind == "padded":
            live = rng.randrange(1, size + 1)
            return f"{self.axis(live)} # {size}" if live < size else self.axis(size), None
        if kind == "digit":
            more = rng.choice((2, 3))
            name = self.axis(size * more - rng.choice((0, 0, 1)))
            whole = f"{name} # {size * more}"
            return f"{whole} % {size}", f"{whole} / {size}"
        if kind == "hole":
            return f"1 # {size}", None
        if kind == "pair":
            parts = [d for d in range(2, size) if size % d == 0]
            if parts:
                inner = rng.choice(parts)
                a, b = self.axis(size // inner), self.axis(inner)
                return f"[{a}, {b}]", None
        if kind == "split":
            parts = [d for d in range(2, size) if size % d == 0]
            if parts:
                inner = rng.choice(parts)
                name = self.axis(size)
                return f"{name} % {inner}, {name} / {inner}", None
        return self.axis(size), None


def pad(text, size, to):
    if size == to:
        return text
    return f"[{text}] # {to}" if "," in text else f"{text} # {to}"


def size_of(text, sizes):
    return meaning.size(meaning.parse(text), meaning.Axes(sizes))


def make(rng):
    """A stage that is possible or nearly so."""
    m = Maker(rng)
    dtype = rng.choice(list(BITS))
    bits = BITS[dtype]
    flit, most = 256 // bits, 64 // bits
    width = 16 if bits == 4 or (bits in (8, 16) and rng.random() < 0.2) else 8
    rows = rng.choice((1, most, most, rng.randrange(1, most + 1), rng.randrange(1, most + 3)))
    each = rng.choice((1, 1, 1, 2, 32 // width, rng.randrange(1, 6)))
    live = rng.choice((width, width, rng.randrange(1, width + 1)))
    outer = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        outer.append(m.digit(rng.choice((1, 2, 3, 4, 5)))[0])
    row, above = m.digit(rows)
    if above:
        outer.insert(rng.randrange(len(outer) + 1), above)
    kind = rng.choice(("apart", "apart", "split", "hole"))
    if kind == "split" and each > 1:
        whole = width * each
        e = m.axis(rng.choice((whole, whole, rng.randrange(1, whole + 1))))
        packet, steps = f"{e} # {whole} % {width}", [f"{e} # {whole} / {width}"]
        columns = [e, f"{e} # {whole}", f"{e} # {whole} / {width}, {e} # {whole} % {width}"]
    else:
        packet, upper = m.digit(live)
        if upper:
            outer.append(upper)
        steps = [] if each == 1 else [f"1 # {each}" if kind == "hole" else m.digit(each)[0]]
        wide = pad(packet, live, width)
        columns = [", ".join(steps + [packet]), ", ".join(steps + [wide])]
        if rng.random() < 0.3:
            part = rng.randrange(1, width * each + 1)
            columns.append(f"[{', '.join(steps + [wide])}] = {part}")
    time = outer + [row] + steps
    out = outer + [rng.choice(columns)]
    out_packet = pad(row, size_of(row, m.sizes), flit) if size_of(row, m.sizes) <= flit else row
    maps = [", ".join(time) or "1", pad(packet, size_of(packet, m.sizes), flit), ", ".join(out) or "1", out_packet]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        maps = perturbed(rng, m, maps, time, out, flit)
    return Stage(m.sizes, dtype, *maps)


def perturbed(rng, m, maps, time, out, flit):
    maps = list(maps)
    which = rng.randrange(7)
    if which == 0 and len(time) > 1:
        time = time[:]
        i = rng.randrange(len(time) - 1)
        time[i], time[i + 1] = time[i + 1], time[i]
        maps[0] = ", ".join(time)
    elif which == 1 and len(out) > 1:
        out = out[:]
        i = rng.randrange(len(out) - 1)
        out[i], out[i + 1] = out[i + 1], out[i]
        maps[2] = ", ".join(out)
    elif which == 2:
        n = size_of(maps[2], m.sizes)
        maps[2] = f"[{maps[2]}] # {n + rng.choice((1, n, 8))}"
    elif which == 3:
        n = size_of(maps[2], m.sizes)
        maps[2] = f"[{maps[2]}] = {rng.randrange(1, n + 1)}"
    elif which == 4:
        maps[3] = f"{rng.choice(list(m.sizes) or ['1'])} # {flit}"
    elif which == 5:
        maps[1] = f"{rng.choice(list(m.sizes) or ['1'])} # {flit}"
    elif which == 6:
        n = size_of(maps[0], m.sizes)
        maps[0] = f"[{maps[0]}] # {n + rng.choice((1, n, n, 2 * n))}"
    return maps


def draw(rng):
    while True:
        stage = make(rng)
        sizes = stage.positions()
        if sizes and max(sizes[0], sizes[2]) * max(sizes[1], sizes[3]) <= MOST_CELLS:
            return stage, bool(possible(stage))


if __name__ == "__main__":
    sys.exit(run(draw, 300))
