"""Random kernels that only move data: loads, gathers or rows that a launch chooses, then any of switches, lifts, transposes, casts, copies and
redistributions, in chains of several commands, some of them tile by tile or only where a number of the launch says so, then stores or scatters.

Every tensor is an order of bits: of the numbers of its axes, each bit in Chip, Cluster, Slice or Element. A step permutes them as the pages of the engines
say: a switch moves bits inside Slice and between Slice and Time, a lift takes one from Element to a unit's level, a transpose exchanges the innermost bits
of Time with those of the packet, a cast puts bits of Time in the packet, a slice of a chip or cluster drops some, a copy orders all anew. So each kernel is
possible by its construction, with its ring and its mappings. There are 1, 2 and 4 chips, 1 and 2 clusters, 64, 128 and 256 slices, with padding and
without; axes of size 1 stand anywhere, and change nothing."""
import collections

from stage_oracle import Maker

GRANULE_BITS = {"i4": 4, "i8": 3, "f8e4m3": 3, "f8e5m2": 3, "i16": 2, "bf16": 2, "i32": 1, "f32": 1}  # 8 bytes: what a copy moves at least
DTYPES = ("i8", "i8", "i8", "bf16", "bf16", "i32", "f32", "f32", "i4", "f8e4m3", "f8e5m2", "i16")
CASTS = {"i4": ("i32",), "i8": ("i32",), "i16": ("i32",), "bf16": ("f32",), "f8e4m3": ("f32",), "f8e5m2": ("f32",)}  # of the Fetch Adapter
TABLES = {"f8e4m3": "bf16", "f8e5m2": "bf16"}
COMMIT_CASTS = {"f32": ("bf16",)}
MEMSET = {"i8": "-3", "i16": "500", "i32": "-70000", "f32": "1.5", "bf16": "const { bf16::from_f32(1.5) }"}  # what stands where nothing was written
NUMBERS = ("i32", "u32", "usize", "i64")  # of a launch, that conditions compare
PAD, SAME = "pad", "same"  # bits of Slice without an axis: one slice of two, or both the same
MOST_ENTRIES = 8  # of a fetch sequencer
MOST_PASSING_BITS = 4  # of packets that pass a slice of an InterTranspose in a row (0.9)
MOST_BITS = 15  # of a tensor with its padding: 2^15 granules
SPM_SLICES = 64  # of a PE


def text(bits, pad="#"):
    """m![..] of bits from the outside in: neighbours of an axis become one digit. A bit of an axis of size 1 is (name, 0, 0)."""
    parts, i = [], 0
    while i < len(bits):
        bit, j = bits[i], i + 1
        if bit in (PAD, SAME):
            while j < len(bits) and bits[j] == bit:
                j += 1
            parts.append(f"1 {pad} {1 << j - i}" if bit == PAD else str(1 << j - i))
        elif bit[2] == 0:
            parts.append(bit[0])
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
    MACHINES = ((1, 0, 6), (2, 0, 7), (4, 0, 8), (8, 1, 8))  # PEs, bits of Cluster, bits of Slice
    STEPS = 1, 5  # so many, not the last
    X_BITS = 5, 12  # of how many granules x has, likewise

    def __init__(self, rng):
        self.rng, self.axes, self.lines, self.names, self.used = rng, Maker(rng), [], 0, collections.Counter()
        self.details = collections.Counter()  # what `kind` does not tell apart
        self.dtype = rng.choice(DTYPES)
        self.pe, self.cluster_bits, self.slice_bits = rng.choice(self.MACHINES)
        self.chip_bits = rng.choice((0, 0, 0, 1, 2))
        self.units = [(self.axes.axis(1), 0, 0) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
        self.numbers = {}
        self.begin()
        for _ in range(rng.randrange(*self.STEPS)):
            steps = [self.switch, self.switch, self.switch, self.copy, self.transpose, self.cast]
            steps += [self.start] if self.rng.random() < 0.6 else []
            steps += [self.cast] * 2 if self.dtype in COMMIT_CASTS else []
            rng.choice(steps + [self.redistribute] * (1 + 2 * (self.chip_bits + self.cluster_bits > 0)))()
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

    def text(self, bits, pad="#"):
        """text(), with axes of size 1 here and there."""
        bits = list(bits)
        for unit in self.units:
            if self.rng.random() < 0.25:
                bits.insert(self.rng.randrange(len(bits) + 1), unit)
        return text(bits, pad)

    def hbm(self, dtype, bits):
        return f"HbmTensor<{dtype}, {self.text(self.chip)}, {self.text(bits)}>"

    def tensor(self):
        parts = (self.chip, self.cluster, self.slices, self.time + self.grain)
        return f"DmTensor<{self.dtype}, {', '.join(map(self.text, parts))}>"

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

    def spread_bits(self, count):
        """How many of so many live bits lie in Slice, where they fit: as many as can."""
        return count

    def spread(self, bits):
        """Cluster, Slice, Time of live bits; None: they do not fit."""
        bits = self.mixed(bits)
        cluster = [bits.pop()] if self.cluster_bits and bits and self.rng.random() < 0.6 else [PAD] * self.cluster_bits
        pads = self.rng.choice((0, 0, 1, 2, 3))
        count = min(self.spread_bits(len(bits)), self.slice_bits - pads)
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

    # ---- numbers of a launch ----

    def number(self, types=NUMBERS):
        name, dtype = f"n{len(self.numbers)}", self.rng.choice(types)
        self.numbers[name] = dtype
        return name, dtype

    def condition(self):
        """Of one or two numbers; what a launch gives is mostly small."""
        rng, parts = self.rng, []
        for _ in range(rng.choice((1, 1, 2))):
            name, dtype = self.number() if not self.numbers or rng.random() < 0.5 else rng.choice(sorted(self.numbers.items()))
            low = -3 if dtype in ("i32", "i64") else 0
            parts.append(f"{name} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {rng.randrange(low, 5)}")
        joined = rng.choice((" && ", " || ")).join(parts)
        return f"!({joined})" if rng.random() < 0.2 else joined

    # ---- begin ----

    def begin(self):
        """x: in HBM; in DM from there, or some of its rows."""
        rng = self.rng
        total = rng.randrange(*self.X_BITS)
        self.parameters, self.grain = [], self.axis(GRANULE_BITS[self.dtype])
        bits = []
        while len(bits) < total:
            bits += self.axis(min(total - len(bits), rng.randrange(1, 6)))
        self.chip = []
        lift = rng.random() < 0.25
        if self.chip_bits and lift and rng.random() < 0.5:  # chips that hold the same
            self.chip = [SAME] * self.chip_bits
        else:
            for _ in range(self.chip_bits):
                self.chip.append(bits.pop(rng.randrange(len(bits))))
        if not lift and rng.random() < 0.4:
            return rng.choice((self.begin_gather, self.begin_gather, self.begin_row))(bits)
        self.parameters.append(f"x: &{self.hbm(self.dtype, self.mixed(bits) + self.grain)}")
        cluster, slices, time = self.spread(bits)
        if lift and time:
            levels = [level for level, there in (("chip", SAME in self.chip), ("cluster", PAD in cluster), ("slice", PAD in slices)) if there]
            if levels:
                return self.begin_lift(rng.choice(levels), cluster, slices, time)
        return self.load("x.to_dm(&mut device.tdma)", cluster, slices, time, "load")

    def load(self, call, cluster, slices, time, kind):
        self.cluster, self.slices, self.time, self.at = cluster, slices, time, self.name()
        self.lines.append(f"let {self.at}: {self.tensor()} = {call};")
        self.used[kind] += 1

    def spm_list(self, entries, name):
        """A list of row numbers in the SPM of PE 0, from HBM through DM: its expression."""
        rng = self.rng
        slices = entries[:rng.randrange(min(len(entries), self.slice_bits) + 1)]
        rest = entries[len(slices):]
        cluster = text([SAME] * self.cluster_bits)
        pes = 1 << self.slice_bits - 6
        dm, spm = self.name(), self.name()
        chip = text(self.chip) if self.own_list else text([SAME] * self.chip_bits)
        placed = slices + [PAD] * (self.slice_bits - len(slices))
        if rng.random() < 0.5:
            placed = [PAD] * (self.slice_bits - len(slices)) + slices
        if 4 << len(rest) < 8:  # copies to DM are of 8 bytes
            placed, rest = [PAD] * self.slice_bits, entries
        self.lines.append(f"let {dm}: DmTensor<i32, {chip}, {cluster}, {self.text(placed)}, {self.text(rest)}> = {name}.to_dm(&mut device.tdma);")
        pe = f"m![1 # {pes}]" if pes > 1 else "m![1]"
        self.lines.append(f"let {spm}: SpmTensor<i32, {chip}, {cluster}, {pe}, {self.text(entries)}> = {dm}.to_spm(&mut device.tdma);")
        return spm

    def by_list(self, entries, reference, name="list"):
        """How a plan of rows gets its list; `reference`: the list as one of byte offsets is handed on."""
        self.own_list = live(self.chip) == self.chip and self.rng.random() < 0.5
        chip = text(self.chip) if self.own_list else text([SAME] * self.chip_bits)
        self.parameters.append(f"{name}: &HbmTensor<i32, {chip}, {self.text(entries)}>")
        if len(entries) > 1 and self.rng.random() < 0.4:
            self.used["spm"] += 1
            return f".by_positions::<{self.text(entries)}>(&{self.spm_list(entries, name)})"
        plan = f".by_byte_offsets::<{self.text(entries)}>({reference})"
        if reference == "list" and self.rng.random() < 0.4:
            self.used["prefix"] += 1
            plan += f".sparse_prefix({self.number(('i32',))[0]})"
        return plan

    def between_axes(self, payload):
        at = self.rng.randrange(len(payload) + 1)
        while 0 < at < len(payload) and payload[at][0] == payload[at - 1][0]:
            at -= 1
        return at

    def begin_gather(self, payload):
        rows, entries = self.axis(self.rng.randrange(1, 5)), self.axis(self.rng.randrange(1, 5))
        payload = payload[:max(1, len(payload) - len(entries))]
        at = self.between_axes(payload)
        self.parameters.append(f"x: &{self.hbm(self.dtype, payload[:at] + rows + payload[at:] + self.grain)}")
        plan = self.by_list(entries, "list")
        call = f"x.gather::<{self.text(rows)}, {self.text(payload + self.grain)}>(){plan}.to_dm(&mut device.tdma)"
        self.load(call, *self.spread(payload + entries), "gather")

    def begin_row(self, payload):
        """One row, whose number the launch says."""
        rows, at = self.axis(self.rng.randrange(1, 4)), self.between_axes(payload)
        self.parameters.append(f"x: &{self.hbm(self.dtype, payload[:at] + rows + payload[at:] + self.grain)}")
        left = payload[:at] + [PAD] * len(rows) + payload[at:] + self.grain
        number, _ = self.number(("u32", "i32"))
        self.load(f"x.view().tile::<{self.text(rows)}, 1, {self.text(left)}>({number} as usize).to_dm(&mut device.tdma)", *self.spread(payload), "row")

    def begin_lift(self, level, cluster, slices, time):
        """Units that hold the same, each reads its part."""
        self.details[f"{level} lift"] += 1
        rng = self.rng
        places = {"chip": self.chip, "cluster": cluster, "slice": slices}
        slot = rng.choice([i for i, b in enumerate(places[level]) if b in (PAD, SAME)])
        moved = rng.choice(time)
        places[level] = places[level][:slot] + [SAME] + places[level][slot + 1:]
        self.chip = places["chip"]
        self.load("x.to_dm(&mut device.tdma)", places["cluster"], places["slice"], time, "load")
        rest = [b for b in time if b != moved]
        order = self.walk(rest)
        at = rng.randrange(len(order) + 1)
        after = places[level][:slot] + [moved] + places[level][slot + 1:]
        lifted = lambda left: f".fetch_{level}_lift::<{self.text(after)}, {self.text(left)}>()"
        self.chain(order[:at] + [moved] + order[at:], lifted, {level: after}, order, "lift")

    # ---- steps ----

    def chain(self, fetched, stage, units, time, kind, packet=None, casts="", dtype=None, tiled=True, begins=""):
        """begin, fetch, a stage, collect, commit: of the whole, or tile by tile, or where a number says so. `stage`: its text for a Time; `units`:
        levels that it changes; packet: what leaves, with its dtype after `casts`; begins: the tile that is read."""
        rng, old, old_time, grain = self.rng, self.at, self.time, self.grain
        context = "main" if kind not in ("switch", "lift", "start", "start of several") or rng.random() < 0.7 else "sub"
        guarded = rng.random() < 0.15 and (dtype or self.dtype) in MEMSET
        tiles = [b for b in time if b in old_time and b in fetched] if kind in ("switch", "lift") and tiled else []
        tile = rng.choice(tiles) if tiles and rng.random() < 0.15 else None
        self.chip, self.cluster, self.slices = (units.get(level, now) for level, now in (("chip", self.chip), ("cluster", self.cluster), ("slice", self.slices)))
        self.time, self.at, self.dtype, self.grain = time, self.name(), dtype or self.dtype, packet or grain
        self.used[kind] += 1
        without = lambda bits: [b for b in bits if b != tile]
        view, target = f"{old}.view(){begins}", f"{self.at}.view_mut()"
        if tile:
            hole = lambda bits: [PAD if b == tile else b for b in bits]
            view += f".tile::<{self.text([tile])}, 1, {self.text(hole(old_time) + grain)}>(i)"
            target += f".tile::<{self.text([tile])}, 1, {self.text(hole(time) + self.grain, '#{!}')}>(i)"
        call = (f"device.{context}.begin({view}).fetch::<{self.text(without(fetched))}, {self.text(grain)}>(){stage(without(time)) if stage else ''}"
                f"{casts or f'.collect().commit_trim::<{self.text(self.grain)}>()'}")
        if not tile and not guarded:
            self.lines.append(f"let {self.at}: {self.tensor()} = {call}.commit();")
            return
        self.lines.append(f"let mut {self.at}: {self.tensor()} = DmTensor::new();")
        call += f".commit_view({target});"
        if tile:
            self.used["tiles"] += 1
            call = f"for i in 0..2 {{ {call} }}"
        if guarded:
            self.used["guard"] += 1
            self.lines.append(f"{self.at}.view_mut().memset({MEMSET[self.dtype]}, &mut device.sub);")
            call = f"if {self.condition()} {{ {call} }}"
            if rng.random() < 0.3:
                call += f" else {{ {self.at}.view_mut().memset({MEMSET[self.dtype].replace('5', '3')}, &mut device.sub); }}"
        self.lines.append(call)

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
        self.details[config.split()[0]] += 1
        stage = lambda left: f".switch::<{self.text(slices)}, {self.text(left)}>(SwitchConfig::{config})"
        self.chain(fetched, stage, {"slice": slices}, time, "switch", tiled="time0" not in config)  # which counts steps of Time: a tile's are fewer

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
        self.load(f"{self.at}.to_dm(&mut device.tdma)", cluster, slices, time, "copy")

    def redistribute(self):
        """A plan: chips and clusters take what others hold, and keep of some bits of Time the part that is theirs."""
        rng, plan, time, kinds = self.rng, self.at, self.time, []
        if self.chip_bits and live(self.chip) == self.chip and rng.random() < 0.7:
            plan += f".chip_shuffle({rng.sample(range(1 << self.chip_bits), 1 << self.chip_bits)})"
            kinds.append("chips")
        if self.cluster_bits and live(self.cluster) and rng.random() < 0.7:
            plan += ".cluster_swap()"
            kinds.append("swap")
        for level, bits in (("chip", self.chip), ("cluster", self.cluster)):
            if bits and live(bits) == bits and len(time) > 1 and rng.random() < 0.6:
                first = rng.randrange(len(time) - 1)
                axis = time[first:first + 1]
                if rng.random() < 0.4 and time[first + 1] == (axis[0][0], axis[0][1] - 1, axis[0][2]):
                    axis = time[first:first + 2]
                time = [b for b in time if b not in axis]
                indices = [rng.randrange(1 << len(axis)) for _ in range(1 << len(bits))]
                plan += f".{level}_slice::<{self.text(axis)}, {self.text(time + self.grain)}>({indices})"
                kinds.append(f"{level}_slice")
        if not kinds:
            return self.copy()
        for kind in kinds[1:]:
            self.used[kind] += 1
        return self.load(f"{plan}.to_dm(&mut device.tdma)", self.cluster, self.slices, time, kinds[0])

    def start(self):
        """One position of some bits of Time, or a run of them, which the launch says where it begins."""
        rng = self.rng
        if len(self.time) < 2:
            return self.switch()
        first = rng.randrange(len(self.time) - 1)
        axis = self.time[first:first + 1]
        while rng.random() < 0.7 and first + len(axis) < len(self.time) and self.time[first + len(axis)] == (axis[0][0], axis[-1][1] - 1, axis[0][2]):
            axis.append(self.time[first + len(axis)])
        number, dtype = self.number(("u32", "i32", "usize", "u64", "i64"))
        place = number if dtype == "usize" else f"{number} as usize"
        kept = rng.randrange(1, len(axis)) if len(axis) > 1 and rng.random() < 0.7 else 0  # bits of which all positions are taken
        most = (1 << len(axis)) - (1 << kept)
        place += f" + {rng.randrange(1, most + 1)}" if rng.random() < 0.3 else ""
        chosen, length = text(axis), 1 << kept
        axis = axis[:len(axis) - kept]
        left = [PAD if b in axis else b for b in self.time]
        rest = [b for b in self.time if b not in axis]
        fetched = self.walk(rest)
        return self.chain(fetched, None, {}, fetched, "start of several" if kept else "start", begins=f".tile::<{chosen}, {length}, {self.text(left + self.grain)}>({place})")

    def transpose(self):
        """The packet's 8 bytes with as many steps of Time inside."""
        inside = GRANULE_BITS[self.dtype]
        if len(self.grain) != inside or len(self.time) < inside:
            return self.switch()
        fetched = self.walk(self.time)
        rows, outer = fetched[-inside:], fetched[:-inside]
        lanes = 4 << inside
        time = outer + self.grain
        stage = f".collect().transpose::<{self.text(time)}, m![[{text(rows)[3:-1]}] # {lanes}]>().commit_trim::<{self.text(rows)}>()"
        return self.chain(fetched, None, {}, time, "transpose", rows, stage)

    def cast(self):
        """Of the Fetch Adapter, which widens, or of the Commit Adapter, which narrows."""
        rng, dtype = self.rng, self.dtype
        fetched = self.walk(self.time)
        if dtype in COMMIT_CASTS and fetched:
            to = rng.choice(COMMIT_CASTS[dtype])
            kept = len(fetched) - max(0, GRANULE_BITS[to] - len(self.grain))  # what leaves is 8 bytes as well
            time, self.grain = fetched[:kept], fetched[kept:] + self.grain
            self.details["commit cast to " + to] += 1
            relu = "_relu" if rng.random() < 0.5 else ""
            return self.chain(time, None, {}, time, "commit cast", self.grain, f".collect().commit_trim::<{self.text(self.grain)}>().commit_cast{relu}::<{to}>()", to)
        to = TABLES.get(dtype) if rng.random() < 0.4 else None
        call = f".fetch_table_lookup::<{to}>()" if to else ""
        self.details["table lookup"] += 1 if to else 0
        if not to or rng.random() < 0.3:
            to = rng.choice(CASTS.get(to or dtype, ("",)))
            call += f".fetch_cast::<{to}>()"
        if not to:
            return self.switch()
        wide = max(0, len(self.grain) - GRANULE_BITS[to] - 2)  # what leaves is a flit at most
        fetched, self.grain = fetched + self.grain[:wide], self.grain[wide:]
        return self.chain(fetched, None, {}, fetched, "cast", self.grain, f"{call}.collect().commit_trim::<{self.text(self.grain)}>()", to)

    # ---- end ----

    def end(self):
        bits = live(self.cluster + self.slices) + self.time
        if self.rng.random() < 0.2 and self.end_scatter(bits):
            self.result = ""
            return
        self.result = f" -> {self.hbm(self.dtype, self.mixed(bits) + self.grain)}"
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
        self.parameters.append(f"cache: &mut {self.hbm(self.dtype, rows + payload + self.grain)}")
        plan = self.by_list(entries, "to.view()", "to")
        call = f"cache.view_mut().scatter::<{self.text(rows)}, {self.text(payload + self.grain)}>(){plan}.from_dm(&mut device.tdma, {self.at});"
        if self.rng.random() < 0.3:
            self.used["guard"] += 1
            call = f"if {self.condition()} {{ {call} }}"
        self.lines.append(call)
        self.used["scatter"] += 1
        return True

    def source(self, name):
        axes = ", ".join(f"{n} = {s}" for n, s in self.axes.sizes.items())
        parameters = self.parameters + [f"{n}: &HbmScalar<{t}>" for n, t in self.numbers.items()]
        lines = "\n    ".join([f"let {n} = {n}.to_spm(&mut device.tdma);" for n in self.numbers] + self.lines)
        return (f"mod m{name} {{\naxes![{axes}];\n#[device(chip = {1 << self.chip_bits}, pe = {self.pe})]\n"
                f"fn f(device: &mut Device, {', '.join(parameters)}){self.result} {{\n    {lines}\n}}\n}}")


class SmallKernel(Kernel):
    """The same with few slices, granules and steps: of each there are many where every change of a field is judged."""
    MACHINES = ((1, 0, 6),) * 6 + ((2, 0, 7), (4, 0, 8), (8, 1, 8))
    STEPS = 1, 3  # a lift or a row that a launch chooses is one more
    X_BITS = 3, 6

    def spread_bits(self, count):
        return self.rng.randrange(count + 1)
