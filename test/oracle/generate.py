"""Random kernels: mappings of buffers and streams that mostly, but not always, fit each other.

The pieces are *atoms* (an axis, a padded axis, a padded group), each cut into digits at random radices, once for the
buffer and once for the stream; both lists are then shuffled and decorated with padding, gaps, cuts and broadcasts.
"""
from meaning import ONE, Axes, axis, pair, size
from spec import BITS, Spec

SIZES = (1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 7, 8, 8, 8, 9, 10, 12, 15, 16, 16, 16, 20, 24, 30, 32, 32, 48, 64, 96, 128)
NAMES = "ABCDEFGH"


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def chain(rng, n, cuts):
    """1 = d0 | d1 | ... | dk = n with at most `cuts` inner members."""
    out, low = [1], 1
    for _ in range(cuts):
        choice = [d for d in divisors(n // low)[1:-1]]
        if not choice:
            break
        low *= rng.choice(choice)
        out.append(low)
    return out + [n] if low != n else out


def cut(tree, n, bounds):
    """The digits of a mapping of n positions between the bounds, outermost first."""
    out = []
    for low, high in zip(bounds, bounds[1:]):
        digit = tree if low == 1 else ("/", tree, low)
        if high != n:
            digit = ("%", digit, high // low)
        out.append((digit, high // low))
    return [d for d in out[::-1] if d[1] > 1]


class Maker:
    """Builds the parts of one kernel; `self.sizes` collects its axes."""

    def __init__(self, rng, limit=1024):
        self.rng, self.limit, self.sizes = rng, limit, {}

    def chance(self, p):
        return self.rng.random() < p

    def axis(self, n=None):
        name = NAMES[len(self.sizes)] if len(self.sizes) < len(NAMES) else f"X{len(self.sizes)}"
        self.sizes[name] = n or self.rng.choice(SIZES)
        return axis(name)

    def atom(self, padded, room):
        """A tree that is cut as a whole, and its size."""
        fitting = [n for n in SIZES if n <= room] or [1]
        tree = self.axis(self.rng.choice(fitting))
        if padded and self.chance(0.15):
            tree = pair(tree, self.axis(self.rng.choice([n for n in (2, 3, 4, 5, 8) if n <= room] or [1])))
        n = size(tree, Axes(self.sizes))
        if padded and self.chance(0.3):
            n = self.rng.choice([m for m in (n, n + 1, n + 2, 2 * n, -(-n // 4) * 4, -(-n // 8) * 8, 16, 24, 32, 64) if m >= n])
            tree = ("#", tree, n) if n > size(tree, Axes(self.sizes)) else tree
        return tree, n

    def cut_twice(self, count, padded, most):
        """So many atoms, each in two ways."""
        first, second = [], []
        for _ in range(count):
            tree, n = self.atom(padded, most)
            a, b = self.two_cuts(tree, n)
            first += a
            second += b
        return first, second

    def two_cuts(self, tree, n):
        """Digits for the buffer and for the stream, usually with common boundaries."""
        fine = chain(self.rng, n, self.rng.choice((0, 0, 1, 1, 2, 3)))
        if self.chance(0.12):
            other = chain(self.rng, n, self.rng.choice((0, 1, 2)))
        else:
            other = fine

        def thin(bounds):
            keep = [b for b in bounds[1:-1] if self.chance(0.6)]
            return [1] + keep + ([n] if n > 1 else [])
        return cut(tree, n, thin(fine)), cut(tree, n, thin(other))

    def shuffle(self, digits, p):
        digits = list(digits)
        if self.chance(p):
            self.rng.shuffle(digits)
        return digits

    def pad(self, digit, choices=(1, 2, 3)):
        tree, n = digit
        more = self.rng.choice([n + k for k in choices] + [2 * n, -(-n // 8) * 8, -(-n // 16) * 16])
        return (("#", tree, more), more) if more > n else digit

    def gap(self):
        n = self.rng.choice((2, 3, 4, 8))
        return ("#", ONE, n), n

    def join(self, digits, group=0.0):
        """A list; with the chance `group` a tail of it is bracketed and padded."""
        trees, n = [d[0] for d in digits], 1
        for d in digits:
            n *= d[1]
        if len(digits) > 1 and self.chance(group):
            at = self.rng.randrange(len(digits) - 1)
            inner = 1
            for d in digits[at:]:
                inner *= d[1]
            more = self.rng.choice((inner + 1, inner + 2, -(-inner // 8) * 8, -(-inner // 16) * 16))
            if more > inner:
                return pair(*trees[:at], ("#", pair(*trees[at:]), more)), n // inner * more
        return pair(*trees), n

    def units(self, digits):
        """Takes some digits out into Slice and Cluster: (chip, cluster, slice, the digits that are left)."""
        cluster, inside = ("#", ONE, 2), ONE
        left = list(digits)
        twos = [d for d in left if d[1] == 2]
        if twos and self.chance(0.15):
            digit = self.rng.choice(twos)
            left.remove(digit)
            cluster = digit[0]
        if left and self.chance(0.3):
            digit = self.rng.choice(left)
            if digit[1] <= 32:
                left.remove(digit)
                inside = digit[0]
                if left and self.chance(0.3):
                    more = self.rng.choice(left)
                    if more[1] * digit[1] <= 128:
                        left.remove(more)
                        inside = pair(inside, more[0])
        return ONE, cluster, ("#", inside, 256), left


def _product(digits):
    n = 1
    for _, m in digits:
        n *= m
    return n


def _split_packet(maker, digits, bits, padded):
    """Time, and a Packet of the innermost digits that is filled up to whole 8 bytes, mostly with padding."""
    rng, unit = maker.rng, 64 // bits if bits < 64 else 1
    at = len(digits)
    goal = rng.choice((unit, unit, 2 * unit, 4 * unit, 8 * unit, 16 * unit))
    while at and _product(digits[at:]) < goal:
        at -= 1
    packet, n = maker.join(digits[at:])
    fitted = -(-n // unit) * unit
    if fitted > n and (padded or maker.chance(0.9)):
        fitted = rng.choice((fitted, fitted, -(-n // (4 * unit)) * 4 * unit))
        packet = ("#", packet, fitted)
    time, _ = maker.join(digits[:at], 0.08 if padded else 0)
    return time, packet


def _long_fetch(rng):
    """Loops of more than 65,536 iterations, which a table holds in two entries where a divisor exists."""
    n, p = rng.choice((65536, 65537, 65538, 131072, 98304, 70000)), rng.choice((1, 2))
    sizes = {"A": n, "B": p, "C": 8}
    element = [axis("A"), axis("C")] if n * 8 <= 1 << 19 and rng.random() < 0.3 else [axis("A")]
    time = [axis("B"), axis("A")] if len(element) == 2 or rng.random() < 0.7 else [axis("A"), axis("B")]
    return Spec("fetch", sizes, "i8", {"element": pair(*element), "time": pair(*time), "packet": axis("C")})


def fetch(rng, context=None):
    """DM Element against Time and Packet."""
    if rng.random() < 0.0005:
        return _long_fetch(rng)
    while True:
        maker = Maker(rng)
        padded = maker.chance(0.6)
        context = context or rng.choice(("main", "main", "main", "sub"))
        dtype = rng.choice(("i4", "i8", "i8", "i8", "bf16", "bf16", "f8e4m3", "f32", "i32", "i16", "f8e5m2"))
        out = rng.choice([b for a, b in (("i4", "i32"), ("i8", "i32"), ("bf16", "f32"), ("f8e4m3", "f32"),
                                         ("f32", "bf16"), ("i16", "i32"), ("f8e5m2", "f32")) if a == dtype] or [dtype]) \
            if maker.chance(0.15) and context == "main" else dtype
        stored, streamed = maker.cut_twice(rng.choice((1, 2, 2, 3, 3, 4)), padded, 64)
        stored = maker.shuffle(stored, 0.5)
        inner = stored[-1:] if stored else []
        streamed = maker.shuffle(streamed, 0.6)
        if inner and maker.chance(0.6) and inner[0] in streamed:
            streamed.remove(inner[0])
            streamed.append(inner[0])
        chip, cluster, inside, left = maker.units([d for d in stored if d in streamed])
        gone = [d for d in stored if d in streamed and d not in left]
        stored = [d for d in stored if d not in gone]
        streamed = [d for d in streamed if d not in gone]
        if streamed and maker.chance(0.12):
            streamed.remove(rng.choice(streamed))
        if padded:
            stored = [maker.pad(d) if maker.chance(0.2) else d for d in stored]
            streamed = [maker.pad(d) if maker.chance(0.08) else d for d in streamed]
            for digits in (stored, streamed):
                if maker.chance(0.1):
                    digits.insert(rng.randrange(len(digits) + 1), maker.gap())
        for digits, p in ((streamed, 0.12), (stored, 0.06)):
            for i, (tree, n) in enumerate(digits):
                if n > 2 and maker.chance(p):
                    m = rng.randrange(1, n)
                    digits[i] = ((("#", ("=", tree, m), n), n) if digits is stored and maker.chance(0.6) else (("=", tree, m), m))
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
            fresh = maker.axis(rng.choice((2, 3, 4, 5, 8)))
            streamed.insert(rng.randrange(len(streamed) + 1), (fresh, maker.sizes[fresh[1]]))
        if _product(stored) > 16384 or _product(streamed) > maker.limit * 2:
            continue
        element, n = maker.join(stored, 0.15 if padded else 0)
        if BITS[dtype] == 4 and n % 2:
            element = ("#", element, n + 1)
        time, packet = _split_packet(maker, streamed, BITS[out], padded)
        spec = Spec("fetch", maker.sizes, dtype, {"chip": chip, "cluster": cluster, "slice": inside, "element": element,
                                                  "time": time, "packet": packet}, out=out, context=context)
        if spec.valid() and size(pair(time, packet), spec.axes) <= maker.limit * 4:
            return spec


def _digits_of(maker, live, whole):
    """At most three axes, of at most `live` positions, in any order; `whole`: how likely the rest is one axis."""
    packet, done = [], 1
    while done < live and len(packet) < 3:
        n = live // done if maker.chance(whole) or len(packet) == 2 else maker.rng.choice(divisors(live // done))
        if n > 1:
            packet.append((maker.axis(n), n))
            done *= n
    maker.rng.shuffle(packet)
    return packet


def _flit_stream(maker, dtype, padded):
    """Digits of Time and of the live packet, and the Packet tree of one flit."""
    rng, flit = maker.rng, 256 // BITS[dtype]
    live = rng.choice([n for n in (flit, flit, flit // 2, flit // 4, 3 * flit // 4, rng.randrange(1, flit + 1)) if n])
    packet = _digits_of(maker, live, 0.6)
    tree, n = maker.join(packet)
    return packet, ("#", tree, flit) if n < flit else tree


def commit(rng, kind="commit"):
    """Time and Packet of whole flits against DM Element."""
    while True:
        maker = Maker(rng)
        padded = maker.chance(0.5)
        dtype = rng.choice(("i4", "i8", "i8", "bf16", "bf16", "i32", "f32", "f8e4m3", "f8e5m2", "i16"))
        unit = 64 // BITS[dtype]
        kept, packet = _flit_stream(maker, dtype, padded)
        stored, streamed = maker.cut_twice(rng.choice((0, 1, 1, 2, 2, 3)), padded, 24)
        stored, streamed = maker.shuffle(stored, 0.6), maker.shuffle(streamed, 0.4)
        whole = _product(kept)
        if len(kept) > 1 and maker.chance(0.25):
            at = rng.randrange(1, len(kept))
            outer, kept = kept[:at], kept[at:]
            for digit in outer:
                stored.insert(rng.randrange(len(stored) + 1), digit)
            whole = _product(kept)
        elif kept and maker.chance(0.2):
            tree, n = kept[0]
            m = rng.randrange(1, n + 1)
            kept[0] = (tree if m == n else ("=", tree, m), m)
            whole = _product(kept)
        inner, n = maker.join(kept)
        fitted = -(-n // unit) * unit
        if fitted > n and maker.chance(0.85):
            inner = ("#", inner, fitted)
        elif maker.chance(0.1):
            inner = ("#", inner, rng.choice((fitted + unit, 4 * unit if 4 * unit > n else 2 * fitted)))
        chip, cluster, inside, left = maker.units([d for d in stored if d in streamed])
        gone = [d for d in stored if d in streamed and d not in left]
        stored = [d for d in stored if d not in gone]
        streamed = [d for d in streamed if d not in gone]
        if padded:
            for i, digit in enumerate(stored):
                if maker.chance(0.2):
                    stored[i] = maker.pad(digit)
                    if digit in streamed and maker.chance(0.5):
                        streamed[streamed.index(digit)] = stored[i]
            if maker.chance(0.1):
                stored.insert(rng.randrange(len(stored) + 1), maker.gap())
            if maker.chance(0.05):
                streamed.insert(rng.randrange(len(streamed) + 1), maker.gap())
        for digits in (stored, streamed):
            if digits and maker.chance(0.04):
                digits.remove(rng.choice(digits))
        for i, (tree, n) in enumerate(streamed):
            if n > 2 and maker.chance(0.06) and (tree, n) in stored:
                m = rng.randrange(2, n)
                streamed[i] = (("=", tree, m), m)
                stored[stored.index((tree, n))] = (("#", ("=", tree, m), n), n) if maker.chance(0.4) else streamed[i]
        element, n = maker.join(stored + [(inner, size(inner, Axes(maker.sizes)))])
        time, steps = maker.join(streamed, 0.05 if padded else 0)
        if steps * 256 // BITS[dtype] > 8 * maker.limit or n > 16384:
            continue
        maps = {"chip": chip, "cluster": cluster, "slice": inside, "element": element, "time": time, "packet": packet}
        address, context = rng.choice((0, 0, 8, 64, 1024, 4)), "main"
        if kind == "copy":
            context, address = rng.choice(("main", "sub")), 1 << 18
            source = maker.shuffle(streamed, 0.5)
            maps["source"], n = maker.join(source + [(packet, 256 // BITS[dtype])])
            if n * BITS[dtype] > 8 << 18:
                continue
        spec = Spec(kind, maker.sizes, dtype, maps, context=context, address=address)
        if spec.valid():
            return spec


def copy(rng):
    """DM to DM through fetch and commit, in both contexts."""
    return commit(rng, "copy")


def dma(rng, kind):
    while True:
        maker = Maker(rng)
        padded = maker.chance(0.5)
        dtype = rng.choice(("i4", "i8", "i8", "bf16", "f32", "i32", "f8e4m3"))
        near, far = maker.cut_twice(rng.choice((1, 2, 2, 3, 3)), padded, 32)
        near, far = maker.shuffle(near, 0.5), maker.shuffle(far, 0.5)
        chips = maker.axis(rng.choice((2, 4))) if maker.chance(0.08) else ONE
        _, cluster, inside, near = maker.units(near)
        if maker.chance(0.85):
            n = rng.choice((8, 16, 16, 32, 64)) * 8 // BITS[dtype]
            n = rng.choice((n, n, n, n // 2 or 1, 3 * n))
            if BITS[dtype] == 4:
                n += n % 2
            tail = maker.axis(n - 1 if padded and n > 1 and maker.chance(0.3) else n)
            digit = (("#", tail, n) if maker.sizes[tail[1]] < n else tail, n)
            near.append(digit)
            far.append(digit)
        for digits in (near, far):
            if padded and maker.chance(0.3) and digits:
                i = rng.randrange(len(digits))
                digits[i] = maker.pad(digits[i])
            if padded and maker.chance(0.15):
                digits.insert(rng.randrange(len(digits) + 1), maker.gap())
        if maker.chance(0.12):
            target = near if kind == "to_dm" else far
            n = rng.choice((2, 3, 4))
            target.insert(rng.randrange(len(target) + 1), (maker.axis(n), n))
        if maker.chance(0.03) and near:
            near.remove(rng.choice(near))
        element, n = maker.join(near, 0.1 if padded else 0)
        other, m = maker.join(far, 0.1 if padded else 0)
        unit = 64 // BITS[dtype] if BITS[dtype] < 64 else 1
        if padded and n % unit and maker.chance(0.5):
            element = ("#", element, -(-n // unit) * unit)
        if max(n, m) > 2048 or size(inside, Axes(maker.sizes)) != 256:
            continue
        spec = Spec(kind, maker.sizes, dtype, {"chip": chips, "cluster": cluster, "slice": inside, "element": element,
                                               ("source" if kind == "to_dm" else "target"): other},
                    address=rng.choice((0, 0, 1024, 65536)))
        cells = n * sum(1 for _ in range(1))
        if spec.valid() and cells * _live_units(spec) <= 16384 and m <= 16384:
            return spec


def _live_units(spec):
    from meaning import table
    return sum(code is not None for code in table(pair(spec.maps["cluster"], spec.maps["slice"]), spec.axes))


def to_dm(rng):
    return dma(rng, "to_dm")


def to_hbm(rng):
    return dma(rng, "to_hbm")


def align(rng):
    """A stream of flits and a TRF tensor against a computation mapping."""
    while True:
        maker = Maker(rng)
        padded = maker.chance(0.5)
        dtype = rng.choice(("i4", "i8", "i8", "bf16", "bf16", "f8e4m3", "f8e5m2"))
        flit, two = 256 // BITS[dtype], maker.chance(0.6)
        live = flit if not padded or maker.chance(0.6) else rng.randrange(1, flit + 1)
        lanes, packet, spread = [], _digits_of(maker, live, 0.5), None
        if two:
            whole = maker.axis(rng.choice((2, 2, 4, 8, 6)))
            n = maker.sizes[whole[1]]
            if packet and maker.chance(0.5):
                old, m = packet[0]
                if old[0] == "axis":
                    maker.sizes[old[1]] = m * n
                    del maker.sizes[whole[1]]
                    digits = cut(old, m * n, sorted({1, m, 2 * m, m * n}))
                    packet[0], lanes, spread = digits[-1], [digits[-2]], digits[:-2]
            if not lanes:
                digits = cut(whole, n, sorted({1, 2, n}))
                lanes, spread = [digits[-1]], digits[:-1]
        tree, n = maker.join(packet)
        packet_tree = ("#", tree, flit) if n < flit else tree
        out_packet = pair(lanes[0][0], packet_tree) if two else ("#", packet_tree if maker.chance(0.5) or n == flit else tree,
                                                                2 * flit)
        outer = list(spread or [])
        for _ in range(rng.choice((0, 1, 1, 2))):
            tree, m = maker.atom(padded and maker.chance(0.4), 16)
            outer += maker.two_cuts(tree, m)[0]
        rng.shuffle(outer)
        tiling = []
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            m = rng.choice((2, 3, 4, 5, 8))
            tiling.append((maker.axis(m), m))
        rows = rng.choice((1, 2, 4, 8, 8))
        row = maker.axis(rows) if rows > 1 else ONE
        if rows > 2 and maker.chance(0.15):
            maker.sizes[row[1]] = rows - 1
            row = ("#", row, rows)
        # what the TRF holds: the tiling axes, some of the outer digits, and the packet or a tail of it
        inner = [(packet_tree, flit)] if maker.chance(0.7) else packet[-1:] if maker.chance(0.7) else packet
        if two and maker.chance(0.7):
            inner = lanes + inner
        elif two and maker.chance(0.3):
            inner = inner[-1:] if maker.chance(0.5) else lanes
        stored = tiling + [d for d in outer if maker.chance(0.6)]
        stored = maker.shuffle(stored, 0.7)
        if padded:
            stored = [maker.pad(d) if maker.chance(0.15) else d for d in stored]
            if maker.chance(0.1):
                inner = [maker.pad(d) if maker.chance(0.3) else d for d in inner]
        element, cells = maker.join(stored + inner)
        out_time = list(outer)
        if maker.chance(0.05):
            rng.shuffle(out_time)
        if maker.chance(0.05) and tiling:
            out_time.insert(0, tiling.pop())
        if padded and out_time and maker.chance(0.12):
            i = rng.randrange(len(out_time))
            fat = maker.pad(out_time[i])
            outer = [fat if d == out_time[i] else d for d in outer]
            out_time[i] = fat
        time, steps = maker.join(outer + lanes)
        out_time, out_steps = maker.join(out_time + maker.shuffle(tiling, 0.2))
        if cells * BITS[dtype] % 8 or out_steps * rows * 2 * flit > 48 * maker.limit or steps > 512:
            continue
        if cells * BITS[dtype] % 256:
            fitted = -(-cells * BITS[dtype] // 256) * 256 // BITS[dtype]
            if maker.chance(0.7):
                element = ("#", element, fitted)
        spec = Spec("align", maker.sizes, dtype, {"time": time, "packet": packet_tree, "row": row, "element": element,
                                                  "out_time": out_time, "out_packet": out_packet})
        if spec.valid():
            return spec
