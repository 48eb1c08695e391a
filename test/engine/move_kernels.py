"""Random kernels that only move data: loads or gathers, then any of switches, lifts, transposes, copies and swaps, in chains of several commands,
then stores or scatters.

Every tensor is an order of bits: of the numbers of its axes, each bit in Cluster, Slice or Element. A step permutes them as the pages of the engines
say: a switch moves bits inside Slice and between Slice and Time, a lift takes one from Element to Slice, a transpose exchanges the innermost bits of
Time with those of the packet, a copy orders all anew. So each kernel is possible by its construction, with its ring and its mappings. Slices are 64,
128 and 256, with padding and without."""
import collections

from stage_oracle import Maker

GRANULE_BITS = {"i8": 3, "bf16": 2, "i32": 1}  # 8 bytes: what a copy moves at least
PAD, SAME = "pad", "same"  # bits of Slice without an axis: one slice of two, or both the same
MOST_ENTRIES = 8  # of a fetch sequencer
MOST_PASSING_BITS = 4  # of packets that pass a slice of an InterTranspose in a row (0.9)
MOST_BITS = 15  # of a tensor with its padding: 2^15 granules


def text(bits):
    """m![..] of bits from the outside in: neighbours of an axis become one digit."""
    parts, i = [], 0
    while i < len(bits):
        bit, j = bits[i], i + 1
        if bit in (PAD, SAME):
            while j < len(bits) and bits[j] == bit:
                j += 1
            parts.append(f"1 # {1 << j - i}" if bit == PAD else str(1 << j - i))
        else:
            while j < len(bits) and bits[j] not in (PAD, SAME) and bits[j] == (bit[0], bits[j - 1][1] - 1, bit[2]):
                j += 1
            low, count = bits[j - 1][1], j - i
            digit = bit[0] + (f" / {1 << low}" if low else "")
            parts.append(digit + (f" % {1 << count}" if low + count < bit[2] else ""))
        i = j
    return "m![" + (", ".join(parts) or "1") + "]"


def live(bits):
    return [b for b in bits if b not in (PAD, SAME)]


class Kernel:
    """What is made: `kind` is what it is counted as."""

    def __init__(self, rng):
        self.rng, self.axes, self.lines, self.names, self.used = rng, Maker(rng), [], 0, collections.Counter()
        self.dtype = rng.choice(("i8", "i8", "bf16", "i32"))
        self.pe, self.cluster_bits, self.slice_bits = rng.choice(((1, 0, 6), (2, 0, 7), (4, 0, 8), (8, 1, 8)))
        self.begin()
        for _ in range(rng.randrange(1, 5)):
            rng.choice((self.switch, self.switch, self.switch, self.copy, self.transpose, self.swap))()
        self.end()
        self.kind = "+".join(sorted(self.used))

    # ---- axes and bits ----

    def axis(self, count):
        """The bits of a new axis, from the outside in."""
        name = self.axes.axis(1 << count)
        return [(name, i, count) for i in reversed(range(count))]

    def name(self):
        self.names += 1
        return f"t{self.names}"

    def tensor(self, cluster, slices, time, grain):
        return f"DmTensor<{self.dtype}, m![1], {text(cluster)}, {text(slices)}, {text(time + grain)}>"

    def shuffled(self, bits):
        return self.rng.sample(bits, len(bits))

    def mixed(self, bits):
        """Runs of bits in another order: digits rather than single bits."""
        if not bits or self.rng.random() < 0.2:
            return self.shuffled(bits)
        runs, i = [], 0
        while i < len(bits):
            j = i + self.rng.randrange(1, 4)
            runs.append(bits[i:j])
            i = j
        return [b for r in self.shuffled(runs) for b in r]

    def spread(self, bits):
        """Cluster, Slice, Time of live bits; None: they do not fit."""
        bits = self.mixed(bits)
        cluster = [bits.pop()] if self.cluster_bits and bits and self.rng.random() < 0.6 else [PAD] * self.cluster_bits
        pads = self.rng.choice((0, 0, 1, 2, 3))
        count = min(len(bits), self.slice_bits - pads)
        slices = bits[:count] + [PAD] * (self.slice_bits - count)
        if self.rng.random() < 0.5:  # padding in the middle, in one run
            at = self.rng.randrange(count + 1)
            slices = bits[:at] + [PAD] * (self.slice_bits - count) + bits[at:count]
        return cluster, slices, bits[count:]

    def walk(self, bits):
        """Time of a fetch: bits of Element in an order that the sequencer's entries can walk, the packet's among them."""
        order = self.mixed(bits)
        places = [self.time.index(b) for b in order]
        runs = sum(i == 0 or places[i] != places[i - 1] + 1 for i in range(len(places)))
        return order if runs < MOST_ENTRIES else list(bits)

    # ---- begin ----

    def begin(self):
        """x: in HBM; in DM from there, or some of its rows."""
        rng = self.rng
        total = rng.randrange(5, 12)
        self.parameters, self.grain = [], self.axis(GRANULE_BITS[self.dtype])
        bits = []
        while len(bits) < total:
            bits += self.axis(min(total - len(bits), rng.randrange(1, 6)))
        self.lifted = None
        if rng.random() < 0.25:
            return self.begin_gather(bits)
        self.parameters.append(f"x: &HbmTensor<{self.dtype}, m![1], {text(self.mixed(bits) + self.grain)}>")
        cluster, slices, time = self.spread(bits)
        if time and PAD in slices and rng.random() < 0.5:
            return self.begin_lift(cluster, slices, time)
        return self.load("x.to_dm(&mut device.tdma)", cluster, slices, time, "load")

    def load(self, call, cluster, slices, time, kind):
        self.cluster, self.slices, self.time, self.at = cluster, slices, time, self.name()
        self.lines.append(f"let {self.at}: {self.tensor(cluster, slices, time, self.grain)} = {call};")
        self.used[kind] += 1

    def begin_gather(self, payload):
        rows, entries = self.axis(self.rng.randrange(1, 5)), self.axis(self.rng.randrange(1, 5))
        payload = payload[:max(1, len(payload) - len(entries))]
        at = self.rng.randrange(len(payload) + 1)
        while 0 < at < len(payload) and payload[at][0] == payload[at - 1][0]:
            at -= 1  # between axes
        self.parameters += [f"x: &HbmTensor<{self.dtype}, m![1], {text(payload[:at] + rows + payload[at:] + self.grain)}>",
                            f"list: &HbmTensor<i32, m![1], {text(entries)}>"]
        call = f"x.gather::<{text(rows)}, {text(payload + self.grain)}>().by_byte_offsets::<{text(entries)}>(list).to_dm(&mut device.tdma)"
        self.load(call, *self.spread(payload + entries), "gather")

    def begin_lift(self, cluster, slices, time):
        """A slice of two holds the same, and reads its part."""
        slot = self.rng.choice([i for i, b in enumerate(slices) if b == PAD])
        moved = self.rng.choice(time)
        self.load("x.to_dm(&mut device.tdma)", cluster, slices[:slot] + [SAME] + slices[slot + 1:], time, "load")
        rest = [b for b in time if b != moved]
        order = self.walk(rest)
        at = self.rng.randrange(len(order) + 1)
        lifted = slices[:slot] + [moved] + slices[slot + 1:]
        self.chain(order[:at] + [moved] + order[at:], f".fetch_slice_lift::<{text(lifted)}, {text(order)}>()", lifted, order, "lift")

    # ---- steps ----

    def chain(self, fetched, stage, slices, time, kind):
        """begin, fetch, a stage, collect, commit."""
        context = "main" if kind != "switch" or self.rng.random() < 0.7 else "sub"
        self.lines.append(f"let {self.next(slices, time)} = device.{context}.begin({self.old}.view()).fetch::<{text(fetched)}, {text(self.grain)}>()"
                          f"{stage}.collect().commit_trim::<{text(self.grain)}>().commit();")
        self.used[kind] += 1

    def next(self, slices, time, grain=None):
        self.old, self.at = self.at, self.name()
        self.slices, self.time, self.grain = slices, time, grain or self.grain
        return f"{self.at}: {self.tensor(self.cluster, slices, time, self.grain)}"

    def room(self, more):
        return len(self.slices) + len(self.time) + more <= MOST_BITS

    def switch(self):
        rng, n = self.rng, self.slice_bits
        fetched = self.walk(self.time)
        s0 = rng.randrange(0, n)
        s1 = rng.randrange(1, min(n - s0, 4) + 1)
        outer, one, zero = self.slices[:n - s0 - s1], self.slices[n - s0 - s1:n - s0], self.slices[n - s0:]
        sizes = f"slice1: {1 << s1}, slice0: {1 << s0}"
        kind = rng.choice(("Transpose", "Broadcast1", "TransposedBroadcast1", "Broadcast01", "InterTranspose", "Custom", "Custom", "Custom"))
        if kind == "Transpose":
            slices, time, config = outer + zero + one, fetched, f"Transpose {{ {sizes} }}"
        elif kind == "Broadcast1" and PAD not in one and s1 <= 3 and self.room(s1):
            slices, time, config = outer + self.axis(s1) + zero, fetched + one, f"Broadcast1 {{ {sizes} }}"
        elif kind == "TransposedBroadcast1" and PAD not in zero and 0 < s0 <= 3 and self.room(s0):
            slices, time, config = outer + self.axis(s0) + one, fetched + zero, f"TransposedBroadcast1 {{ {sizes} }}"
        elif kind == "Broadcast01" and PAD not in one + zero and s0 + s1 <= 3 and self.room(s0 + s1):
            t0 = rng.randrange(0, len(fetched) + 1)
            outer_time, inner_time = fetched[:len(fetched) - t0], fetched[len(fetched) - t0:]
            slices, time = outer + self.axis(s1) + (self.axis(s0) if s0 else []), outer_time + one + inner_time + zero
            config = f"Broadcast01 {{ {sizes}, time0: {1 << t0} }}"
        elif kind == "InterTranspose" and PAD not in one and s1 <= len(fetched):
            t0 = rng.randrange(0, min(len(fetched) - s1, MOST_PASSING_BITS - s1) + 1)
            at = len(fetched) - t0 - s1
            slices, time = outer + fetched[at:at + s1] + zero, fetched[:at] + fetched[at + s1:] + one
            config = f"InterTranspose {{ {sizes}, time0: {1 << t0} }}"
        else:
            slices, time, config = self.custom(fetched)
        self.chain(fetched, f".switch::<{text(slices)}, {text(time)}>(SwitchConfig::{config})", slices, time, "switch")

    def custom(self, fetched):
        """Bits of Slice in any places, some of them to Time, new ones where they or padding were."""
        rng, n = self.rng, self.slice_bits
        low = rng.randrange(n)
        places = self.slices[:low] + self.mixed(self.slices[low:])
        moved = [b for b in live(self.slices) if rng.random() < 0.1][:2] if self.room(2) else []
        out = []
        for bit in places:
            free = bit in moved or (bit == PAD and rng.random() < 0.3 and self.room(3))
            new = free and (not out or out[-1] != PAD)  # `1 # 2, X` is `X # 4`: new axes are not padded
            out.append(self.axis(1)[0] if new else PAD if free else bit)
        ring = 1
        for i, bit in enumerate(out):
            height = n - i  # of this place: 1 is the innermost
            if bit == PAD or bit in self.slices:
                ends = [] if bit == PAD or self.slices.index(bit) == i else [height, n - self.slices.index(bit)]
            else:
                ends = [height]
            ring = max([ring] + [1 << e for e in ends])
        ring = max([ring] + [1 << n - self.slices.index(b) for b in moved])
        return out, fetched + [b for b in self.slices if b in moved], f"CustomBroadcast {{ ring_size: {ring} }}"

    def copy(self):
        """DM to DM: all bits anew."""
        cluster, slices, time = self.spread(live(self.cluster + self.slices) + self.time)
        old = self.at
        self.load(f"{old}.to_dm(&mut device.tdma)", cluster, slices, time, "copy")

    def swap(self):
        if not live(self.cluster):
            return self.copy()
        old = self.at
        return self.load(f"{old}.cluster_swap().to_dm(&mut device.tdma)", self.cluster, self.slices, self.time, "swap")

    def transpose(self):
        """The packet's 8 bytes with as many steps of Time inside."""
        if self.dtype != "i8" or len(self.time) < 3:
            return self.switch()
        fetched = self.walk(self.time)
        rows, outer = fetched[-3:], fetched[:-3]
        columns = self.grain
        self.lines.append(f"let {self.next(self.slices, outer + columns, rows)} = device.main.begin({self.old}.view()).fetch::<{text(fetched)}, {text(columns)}>()"
                          f".collect().transpose::<{text(outer + columns)}, {padded(rows)}>().commit_trim::<{text(rows)}>().commit();")
        self.used["transpose"] += 1
        return None

    # ---- end ----

    def end(self):
        bits = live(self.cluster + self.slices) + self.time
        if self.rng.random() < 0.2 and self.end_scatter(bits):
            self.result = ""
            return
        order = text(self.mixed(bits) + self.grain)
        self.result = f" -> HbmTensor<{self.dtype}, m![1], {order}>"
        self.lines.append(f"{self.at}.to_hbm(&mut device.tdma)")

    def end_scatter(self, bits):
        """An axis of which all bits are there is the list's."""
        whole = [b for b in bits if sum(c[0] == b[0] for c in bits) == b[2] and b[1] == b[2] - 1]
        if not whole:
            return False
        chosen = self.rng.choice(whole)
        entries = [(chosen[0], i, chosen[2]) for i in reversed(range(chosen[2]))]
        payload = sorted((b for b in bits if b[0] != chosen[0]), key=lambda b: (b[0], -b[1]))
        rows = self.axis(len(entries) + self.rng.randrange(2))
        self.parameters += [f"to: &HbmTensor<i32, m![1], {text(entries)}>", f"cache: &mut HbmTensor<{self.dtype}, m![1], {text(rows + payload + self.grain)}>"]
        self.lines.append(f"cache.view_mut().scatter::<{text(rows)}, {text(payload + self.grain)}>().by_byte_offsets::<{text(entries)}>(to.view())"
                          f".from_dm(&mut device.tdma, {self.at});")
        self.used["scatter"] += 1
        return True

    def source(self, name):
        axes = ", ".join(f"{n} = {s}" for n, s in self.axes.sizes.items())
        lines = "\n    ".join(self.lines)
        return (f"mod m{name} {{\naxes![{axes}];\n#[device(chip = 1, pe = {self.pe})]\nfn f(device: &mut Device, {', '.join(self.parameters)}){self.result} {{\n"
                f"    {lines}\n}}\n}}")


def padded(rows):
    return f"m![[{text(rows)[3:-1]}] # 32]"
