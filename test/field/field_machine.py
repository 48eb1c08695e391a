"""The machine over a field, in Python: what docs/isa.md, docs/format.md and docs/numerics.md say, on top of the second decoder.

It shares no line with runtime/. Values come from a ring: residues modulo 2^61 - 1 (Residues), or polynomials whose variables are the
inputs' elements (Polynomials), which say by name what an output is. A memory is a dictionary of cells of 4 bits.
"""
import glob
import os
import re
import runpy
import struct

PRIME = (1 << 61) - 1
MASK = (1 << 64) - 1
BITS = {"i4": 4, "i8": 8, "i16": 16, "i32": 32, "f8e4m3": 8, "f8e5m2": 8, "bf16": 16, "f32": 32, "u8": 8, "f4e2m1": 4, "i5": 4, "i9": 8}
CONTEXTS = ("main", "sub", "dma")
CHIPS, CLUSTERS, SLICES = 4, 2, 256
FLIT, MAC = 32, 64
ROWS, BANK_ROWS, LINE = 8, 128, 64  # of the TRF: bank rows, lines of one, bytes of a line
DM_BYTES, DM_WINDOW, HBM_BYTES, HBM_WINDOW = 512 * 1024, 4194304, 48 << 30, 1 << 36
SPM_BASE, SPM_BYTES, SLICES_PER_PE = 2097152, 4096, 64


def unit_of(chip, cluster, s):
    return (chip * CLUSTERS + cluster) * SLICES + s


def place_of(unit):
    """(chip, cluster, slice)"""
    return unit // SLICES // CLUSTERS, unit // SLICES % CLUSTERS, unit % SLICES


def holds(space, address, size, window, limit):
    """Is there memory? After the DM of the first slice of a PE follows the PE's SPM."""
    offset, number = address % window, address // window
    if space == "dm" and offset >= SPM_BASE:
        return number % SLICES % SLICES_PER_PE == 0 and offset + size <= SPM_BASE + SPM_BYTES
    return address >= 0 and offset + size <= limit


def drawn(value, unit, count, counts):
    """Of what says how many each fourth time none, one, all, and any."""
    if not counts:
        return value % count * unit
    return (0, min(1, count - 1), count - 1, value // 4 % count)[value % 4] * unit


class TooLarge(Exception):
    """More work than is wanted."""


class Faulty(Exception):
    """The machine refuses this."""


# ---------------------------------------------------------------- values


def mix(x):
    x ^= x >> 30
    x = x * 0xbf58476d1ce4e5b9 & MASK
    x ^= x >> 27
    x = x * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def keyed(key, x):
    return mix(mix((key + 0x9e3779b97f4a7c15) & MASK) ^ ((x + 0x9e3779b97f4a7c15) & MASK))


def residue(hashed):
    return 0 if hashed >> 3 == PRIME else hashed >> 3


class Unknown:
    """A value of memory that nobody wrote, or that was read otherwise than it was written."""


UNKNOWN = Unknown()
ZERO = (0, "any", 0)  # a cell that is zero in whatever type it is read


class Residues:
    zero = 0

    def __init__(self, seed):
        self.seed = keyed(seed, 0x616c6765627261)

    def input(self, port, element):
        return residue(keyed(keyed(self.seed, 0x100000000 + port), element))

    @staticmethod
    def add(a, b):
        return UNKNOWN if a is UNKNOWN or b is UNKNOWN else (a + b) % PRIME

    @staticmethod
    def multiply(a, b):
        if a is UNKNOWN or b is UNKNOWN:
            return UNKNOWN if a != 0 and b != 0 else 0
        return a * b % PRIME


class Polynomials:
    """{monomial: coefficient}; a monomial is a sorted tuple of (port, element), (-1, -1) stands for any unknown."""
    zero = {}

    @staticmethod
    def input(port, element):
        return {((port, element),): 1}

    @staticmethod
    def plain(a):
        return {((-1, -1),): 1} if a is UNKNOWN else a

    def add(self, a, b):
        a, b = self.plain(a), self.plain(b)
        out = dict(a)
        for m, c in b.items():
            out[m] = out.get(m, 0) + c
        return out

    def multiply(self, a, b):
        a, b = self.plain(a), self.plain(b)
        out = {}
        for m, c in a.items():
            for n, d in b.items():
                key = tuple(sorted(m + n))
                out[key] = out.get(key, 0) + c * d
        return out


# ---------------------------------------------------------------- mappings


class Layout:
    """A mapping of the dump as a function: position -> {axis: coordinate}, or None where it is dead."""

    def __init__(self, text, sizes):
        self.sizes = sizes
        self.tokens = re.findall(r"[\[\],/%=#]|[^\s\[\],/%=#(]+(?:\([^)]*\))?", text)
        self.at = 0
        self.tree = self.pair()
        assert self.at == len(self.tokens), text

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def pair(self):
        parts = [self.factor()]
        while self.peek() == ",":
            self.take()
            parts.append(self.factor())
        tree = parts[0]
        for right in parts[1:]:
            tree = (",", tree, right, tree_size(tree) * tree_size(right))
        return tree

    def factor(self):
        word = self.take()
        if word == "[":
            tree = self.pair()
            assert self.take() == "]"
        elif word in self.sizes:
            tree = ("axis", word, None, self.sizes[word])
        else:
            tree = ("many", int(word), None, int(word))
        while self.peek() in ("/", "%", "=", "#"):
            sign, n = self.take(), int(self.take())
            tree = (sign, tree, n, tree_size(tree) // n if sign == "/" else n)
        return tree

    @property
    def size(self):
        return tree_size(self.tree)

    def index(self, position):
        out = {}
        return out if self.walk(self.tree, position, out) else None

    def walk(self, tree, i, out):
        sign, left, right, size = tree
        if i >= size:
            return False
        if sign == "axis":
            out[left] = out.get(left, 0) + i
            return out[left] < self.sizes[left]
        if sign == "many":
            return True
        if sign == ",":
            inner = tree_size(right)
            return self.walk(left, i // inner, out) and self.walk(right, i % inner, out)
        if sign == "#" and i >= tree_size(left):
            return False
        return self.walk(left, i * right if sign == "/" else i, out)


def tree_size(tree):
    return tree[3]


# ---------------------------------------------------------------- commands


def expanded(stream):
    """Loops replaced by the copies of their bodies (isa.md, Loops)."""
    out = []
    for command in stream:
        if command["op"] != "loop":
            out.append({"op": command["op"], "f": {x["name"]: int(x["value"], 16) if isinstance(x["value"], str) else x["value"] for x in command["fields"]},
                        "m": {x["name"]: x.get("meaning") for x in command["fields"]}, "t": [dict(e) for e in command.get("table", {}).get("entries", [])],
                        "offset": command["offset"]})
            continue
        count = next(x["value"] for x in command["fields"] if x["name"] == "count")
        body = expanded(command["body"])
        steps = [(a["offset"], a["entry"], a["name"], a["step"]) for adv in command["advances"] for a in adv["advances"]]
        for n in range(count):
            for c in body:
                copy = {"op": c["op"], "f": dict(c["f"]), "m": dict(c["m"]), "t": [dict(e) for e in c["t"]], "offset": c["offset"]}
                for offset, entry, name, step in steps:
                    if offset == c["offset"]:
                        where = copy["f"] if entry is None else copy["t"][entry]
                        where[name] += n * step
                out.append(copy)
    return out


def walk(sizes, strides, base):
    """Addresses of a nest of loops, outermost first."""
    addresses = [base]
    for size, stride in zip(sizes, strides):
        addresses = [a + i * stride for a in addresses for i in range(size)]
    return addresses


def trf_byte(row, rows, mode, byte):
    bank_lines = BANK_ROWS if mode == "Full" else BANK_ROWS // 2
    line = byte // LINE
    bank = row * (ROWS // rows) + line // bank_lines
    in_bank = line % bank_lines + (BANK_ROWS // 2 if mode == "SecondHalf" else 0)
    return (bank * BANK_ROWS + in_bank) * LINE + byte % LINE


class Machine:
    def __init__(self, kernel, ring, most_work):
        self.k, self.ring, self.left = kernel, ring, most_work
        self.sizes = {a["name"]: a["size"] for a in kernel["axes"]}
        self.cells = {}  # (space, number, cell) -> (value, type, part)
        self.layouts = [{c: Layout(t, self.sizes) for c, t in p["mapping"].items()} for p in kernel["ports"]]
        self.done = [0, 0, 0]
        self.units = [None, None, None]
        self.cursors = {}  # (port, unit) -> steps
        self.step = None

    def work(self, amount):
        self.left -= amount
        if self.left < 0:
            raise TooLarge()

    # ---- memory

    def write(self, space, number, bit, dtype, value):
        for i in range(BITS[dtype] // 4):
            self.cells[space, number, bit // 4 + i] = (value, dtype, i)

    def read(self, space, number, bit, dtype):
        count = BITS[dtype] // 4
        found = [self.cells.get((space, number, bit // 4 + i)) for i in range(count)]
        whole = all(c is not None and c[0] is found[0][0] and c[1:] == (dtype, i) for i, c in enumerate(found)) if found[0] else False
        if all(c is ZERO for c in found):
            return self.ring.zero
        return found[0][0] if whole else UNKNOWN

    # ---- ports

    def positions(self, number):
        """(place, element) of every live position: place (space, number, bit), element row-major."""
        port, layouts = self.k["ports"][number], self.layouts[number]
        components = list(layouts)
        total = 1
        for c in components:
            total *= layouts[c].size
        self.work(total)
        order = logical_axes(port, self.sizes)
        bits = BITS[port["dtype"]]
        for position in range(total):
            rest, at, coords, live = position, {}, {}, True
            for c in reversed(components):
                at[c], rest = rest % layouts[c].size, rest // layouts[c].size
                index = layouts[c].index(at[c])
                live = live and index is not None
                for axis, i in (index or {}).items():
                    coords[axis] = coords.get(axis, 0) + i
            live = live and all(i < self.sizes[a] for a, i in coords.items())
            if not live:
                continue
            element = 0
            for axis in order:
                element = element * self.sizes[axis] + coords.get(axis, 0)
            unit = unit_of(at.get("chip", 0), at.get("cluster", 0), at.get("slice", 0))
            if port["space"] == "hbm":
                yield ("hbm", at["chip"], port["address"] * 8 + at["element"] * bits), element
            elif port["space"] == "dm":
                yield ("dm", unit, port["address"] * 8 + at["element"] * bits), element
            elif port["space"] == "vrf":
                yield ("vrf", unit, port["address"] * 8 + at["element"] * bits), element
            elif port["space"] == "trf":
                bit = at["element"] * bits
                yield ("trf", unit, trf_byte(at["row"], layouts["row"].size, port["trf_address"], bit // 8) * 8 + bit % 8), element
            else:
                yield ("port", number, position * bits), element

    def load(self):
        rows = self.lists()
        for number, port in enumerate(self.k["ports"]):
            if port["direction"] == "in":
                for place, element in self.positions(number):
                    value = self.ring.input(number, element)
                    if number in rows:
                        value = drawn(value, *rows[number])
                    self.write(*place, port["dtype"], value)

    def output(self, number):
        out = {}
        for place, element in self.positions(number):
            out.setdefault(element, self.read(*place, self.k["ports"][number]["dtype"]))
        return out

    # ---- contexts

    def run(self):
        self.load()
        streams = [expanded(self.k["streams"][c]) for c in CONTEXTS]
        moved = True
        while moved:
            moved = False
            for i in range(3):
                while self.done[i] < len(streams[i]):
                    c = streams[i][self.done[i]]
                    if c["op"] == "wait" and self.done[c["f"]["context"]] < c["f"]["count"]:
                        break
                    self.command(streams[i], i, c)
                    moved = True
        if any(self.done[i] < len(streams[i]) for i in range(3)):
            raise Faulty("deadlock")

    def command(self, stream, i, c):
        if c["op"] == "units":
            self.units[i] = c["f"]
        elif c["op"] == "dma":
            self.dma(c)
        elif c["op"] == "dma_indirect":
            self.rows(c)
        elif c["op"] != "wait":
            end = self.done[i]
            while stream[end]["op"] not in ("trf_store", "vrf_store", "commit", "stream_out"):
                end += 1
            self.chain(stream[self.done[i]:end + 1], self.units[i])
            self.done[i] = end
        self.done[i] += 1

    def dma(self, c):
        f, t = c["f"], c["t"]
        sizes = [e["size"] for e in t]
        total = 1
        for s in sizes:
            total *= s
        self.work(total * f["packet_bytes"] * 2)
        spaces = [("hbm", HBM_WINDOW, HBM_BYTES), ("dm", DM_WINDOW, DM_BYTES)]
        zeros, destination = f["source"] == 2, spaces[f["destination"]]
        source = destination if zeros else spaces[f["source"]]
        for x, y in zip(walk(sizes, [e["source_stride"] for e in t], f["source_base"]), walk(sizes, [e["destination_stride"] for e in t], f["destination_base"])):
            packet = []
            for address, (space, window, limit) in ((y if zeros else x, source), (y, destination)):
                if not holds(space, address, f["packet_bytes"], window, limit):
                    raise Faulty("outside")
            for i in range(f["packet_bytes"] * 2):
                packet.append(ZERO if zeros else self.cells.get((source[0], x // source[1], x % source[1] * 2 + i)))
            for i, cell in enumerate(packet):
                key = (destination[0], y // destination[1], y % destination[1] * 2 + i)
                if cell is None:
                    self.cells.pop(key, None)
                else:
                    self.cells[key] = cell

    def lists(self):
        """{port: (unit, count, does it say how many?)}: inputs that are lists of rows keep numbers."""
        found = {}
        if not self.k["einsum"]:
            return found
        statements = self.k["einsum"]["statements"]
        for at, s in enumerate(statements):
            for x in s["indices"]:
                name = s["sources"][x["source"]]
                for before in reversed(statements[:at]):
                    if before["destination"] == name and before["op"] == "copy":
                        name = before["sources"][0]
                port = next((t["port"] for t in self.k["einsum"]["tensors"] if t["name"] == name and t["port"] is not None and
                             self.k["ports"][t["port"]]["direction"] == "in"), None)
                if x["positions"] and port is not None:
                    rows = (x["step"], min(x["positions"], ((1 << 31) - 1) // x["step"] + 1), False)
                    found[port] = min(found.get(port, rows), rows, key=lambda r: r[1])
            if s["count_span"]:
                count = next(t["port"] for t in self.k["einsum"]["tensors"] if t["name"] == s["sources"][-1])
                if count is not None:
                    found[count] = (1, s["count_span"] + 1, True)
        for port in self.unused(statements):
            found.setdefault(port, (1, 1, False))  # the list of a table of one row says 0
        return found

    def unused(self, statements):
        """Inputs of i32 of which no output is made."""
        tensors = self.k["einsum"]["tensors"]
        made = {t["name"] for t in tensors if t["port"] is not None and self.k["ports"][t["port"]]["direction"] == "out"}
        for s in reversed(statements):
            if s["destination"] in made:
                made.update(s["sources"])
        used = {t["port"] for t in tensors if t["name"] in made}
        return [i for i, p in enumerate(self.k["ports"]) if p["direction"] == "in" and p["dtype"] == "i32" and i not in used]

    def rows(self, c):
        """A gather or scatter: an element of the list moves the HBM side."""
        f, t = c["f"], c["t"]
        sizes = [e["size"] for e in t]
        spaces = [("hbm", HBM_WINDOW, HBM_BYTES), ("dm", DM_WINDOW, DM_BYTES)]
        source, destination, of = spaces[f["scatter"]], spaces[1 - f["scatter"]], spaces[f["list"] % 2]  # 2: elements of 64 bits, whose high half is 0
        total = 1
        for s in sizes:
            total *= s
        self.work(total * (f["packet_bytes"] * 2 + 8))
        step = lambda name: walk(sizes, [e[name + "_stride"] for e in t], f[name + "_base"])
        count = self.read("hbm", f["count_base"] // HBM_WINDOW, f["count_base"] % HBM_WINDOW * 8, "i32") if f["counted"] else None
        if count is UNKNOWN or (f["scatter"] or f["list"]) and f["counted"]:
            raise Faulty("no count")
        for x, y, z in zip(step("source"), step("destination"), step("list")):
            element = self.read(of[0], z // of[1], z % of[1] * 8, "i32")
            if element is UNKNOWN or element % f["unit"] or not 0 <= element // f["unit"] < f["positions"]:
                raise Faulty("no row")
            moved = element // f["unit"] * f["stride"]
            taken = not f["counted"] or f["first"] + (z % HBM_WINDOW - f["list_base"] % HBM_WINDOW) // 4 < count
            x, y = (x, y + moved) if f["scatter"] else (x + moved, y)
            for address, (space, window, limit) in ((x, source), (y, destination)):
                if not holds(space, address, f["packet_bytes"], window, limit):
                    raise Faulty("outside")
            packet = [self.cells.get((source[0], x // source[1], x % source[1] * 2 + i)) for i in range(f["packet_bytes"] * 2)]
            for i, cell in enumerate(packet):
                key = (destination[0], y // destination[1], y % destination[1] * 2 + i)
                if cell is None:
                    self.cells.pop(key, None)
                else:
                    self.cells[key] = cell if taken else (0, *cell[1:])

    def active(self, u):
        for chip in range(CHIPS):
            for cluster in range(CLUSTERS):
                for s in range(SLICES):
                    if u["chips"] >> chip & 1 and u["clusters"] >> cluster & 1 and u[f"slices_{s // 64}"] >> s % 64 & 1:
                        yield unit_of(chip, cluster, s)

    def chain(self, commands, units):
        writes = []
        self.senders = set(self.active(units))
        self.gathered = {}
        for c in commands:
            units = RECEIVERS[c["op"]](units, c) if c["op"] in RECEIVERS else units
        for unit in self.active(units):
            slice_writes, ports = Slice(self, unit).run(commands)
            writes += slice_writes
            for port, steps in ports.items():
                self.cursors[port, unit] = self.cursors.get((port, unit), 0) + steps
        for place, dtype, value in writes:
            self.write(*place, dtype, value)

    # ---- stream ports

    def unit_place(self, number, unit):
        """The position of a unit in a stream port; None: it has none."""
        l = self.layouts[number]
        chip, cluster, s = place_of(unit)
        if chip >= l["chip"].size or cluster >= l["cluster"].size or s >= l["slice"].size:
            return None
        if any(l[c].index(i) is None for c, i in (("chip", chip), ("cluster", cluster), ("slice", s))):
            return None
        return (chip * l["cluster"].size + cluster) * l["slice"].size + s

    def port_bit(self, number, unit, row, step, element):
        l, place = self.layouts[number], self.unit_place(number, unit)
        if place is None:
            return None
        step += self.cursors.get((number, unit), 0)
        return (((place * l["row"].size + row) * l["time"].size + step) * l["packet"].size + element) * BITS[self.k["ports"][number]["dtype"]]


def logical_axes(port, sizes):
    order = []
    for text in port["mapping"].values():
        for word in re.findall(r"[^\s\[\],/%=#(]+(?:\([^)]*\))?", text):
            if word in sizes and word not in order:
                order.append(word)
    return order


# Engines that have their own file, test/engine/NAME/machine.py: STAGES has for each command a function of the slice, the command, the elements
# that come and their type, and all commands of the chain, which gives the elements that leave and their type. RECEIVERS: the slices in which
# a chain with that command ends.
ENGINES, RECEIVERS = {}, {}
for _path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "engine", "*", "machine.py"))):
    _file = runpy.run_path(_path, {"UNKNOWN": UNKNOWN, "BITS": BITS, "FLIT": FLIT, "SLICES": SLICES})
    ENGINES.update(_file["STAGES"])
    RECEIVERS.update(_file.get("RECEIVERS", {}))


def named(ring, code, arguments):
    """A function of which nothing is known but its name and arguments; polynomials have none."""
    if not hasattr(ring, "seed") or any(x is UNKNOWN for x in arguments):
        return UNKNOWN
    state = keyed(keyed(ring.seed, 0x200000000), code)
    for x in arguments:
        state = keyed(state, x)
    return residue(mix(state))


def constant(ring, number, is_float):
    return named(ring, 3 if is_float else 2, [number & 0xffffffff])


def code_bits(dtype, code):
    """The number that a code stands for, as the bits of an i32 or f32."""
    bits = BITS[dtype]
    if dtype == "f32":
        return code, True
    if dtype == "bf16":
        return code << 16, True
    if dtype == "f8e4m3":
        sign, e, f = code >> 7, code >> 3 & 15, code & 7
        number = (8 + f) * 2.0 ** (e - 10) if e else f * 2.0 ** -9
        return struct.unpack("<I", struct.pack("<f", -number if sign else number))[0], True
    return code - (code >> bits - 1 << bits), False


class Slice:
    """A chain in one slice: every stage as a list of all that leaves it."""

    def __init__(self, machine, unit):
        self.m, self.unit, self.ring = machine, unit, machine.ring

    def run(self, commands):
        self.ports = {}
        self.writes = []
        kind, data, dtype = None, None, None
        self.pair = None
        masks = []
        i = 0
        while i < len(commands):
            c = commands[i]
            op, f = c["op"], c["f"]
            if op == "fetch":
                first, count = self.begins(commands[i + 1:])
                kind, data, dtype = "packets", self.fetch(c, first), c["m"]["dtype_out"]
                i += count
                self.packet = f["packet_elements"]
            elif op == "stream_in":
                kind, data, dtype = self.stream_in(c, commands[i + 1]["op"])
            elif op == "collect":
                kind, data = "flits", self.collect(data, dtype, f["packet_elements"], f["flits_per_packet"])
            elif op == "align":
                shift = commands[i + 1] if commands[i + 1]["op"] == "shift" else None
                read = commands[i + (2 if shift else 1)]
                self.pair = self.align(data, dtype, f, shift, read)
                kind = "pair"
                i += 2 if shift else 1
            elif op == "contract":
                masks = []
                while commands[i + 1]["op"] == "mask":
                    i += 1
                    masks.append(commands[i])
                kind, data = "partials", self.contract(dtype, f, masks)
                dtype = "i32" if dtype[0] == "i" else "f32"
            elif op == "accumulate":
                kind, data = "flits", self.accumulate(data, c)
            elif op == "cast":
                to = c["m"]["to"]
                each = FLIT * 8 // BITS[to]
                data = [v for at in range(0, len(data), 8) for v in data[at:at + 8] + [UNKNOWN] * (each - 8)]
                dtype = to
            elif op == "snoop":
                pass
            elif op == "generate":
                kind, data, dtype = "flits", self.generate(c), c["m"]["dtype"]
            elif op in ENGINES:
                data, dtype = ENGINES[op](self, c, data, dtype, commands)
            elif op == "commit":
                self.commit(data, dtype, c)
            elif op == "trf_store":
                self.store(data, dtype, c)
            elif op == "vrf_store":
                for n, v in enumerate(data):
                    self.writes.append((("vrf", self.unit, f["base"] * 8 + 32 * n), dtype, v))
            elif op == "stream_out":
                self.stream_out(kind, data, dtype, c)
            i += 1
        return self.writes, self.ports

    def begins(self, commands):
        """Bytes that this slice begins after the base, by what follows the fetch; how many commands that are."""
        first = count = 0
        while commands[count]["op"] in ("lift", "start"):
            first += self.lifted(commands[count]) if commands[count]["op"] == "lift" else self.started(commands[count]["f"])
            count += 1
        return first, count

    def lifted(self, lift):
        """Bytes that this slice begins after the base."""
        place = place_of(self.unit)
        return sum(e["stride"] * (place[e["level"]] // e["div"] % 2) for e in lift["t"])

    def started(self, f):
        """Bytes that it begins after the base, by a number of the launch."""
        number = self.m.read("hbm", 0, f["base"] * 8, "i32")
        if number is UNKNOWN or not 0 <= number < f["positions"]:
            raise Faulty("no position")
        return number * f["stride"]

    def fetch(self, c, first=0):
        bits = BITS[c["m"]["dtype_in"]]
        sizes = [e["size"] for e in c["t"]]
        total = 1
        for s in sizes:
            total *= s
        self.m.work(total)
        out = []
        for a in walk(sizes, [e["stride"] * bits for e in c["t"]], (c["f"]["base"] + first) * 8):
            if a < 0 or a + bits > DM_BYTES * 8:
                raise Faulty("outside")
            out.append(self.m.read("dm", self.unit, a, c["m"]["dtype_in"]))
        if c["m"]["dtype_out"] in ("i5", "i9"):
            less = constant(self.ring, c["f"]["zero_point"], False)
            out = [UNKNOWN if less is UNKNOWN or v is UNKNOWN else (v - less) % PRIME for v in out]
        return out

    def generate(self, c):
        dtype, word = c["m"]["dtype"], c["f"]["word"]
        bits = BITS[dtype]
        each = FLIT * 8 // bits
        values = [constant(self.ring, *code_bits(dtype, word >> i * bits % 32 & (1 << bits) - 1)) for i in range(32 // bits)]
        return [values[i % len(values)] for i in range(c["f"]["flits"] * each)]

    def stream_in(self, c, following):
        f, dtype = c["f"], c["m"]["dtype"]
        self.packet = f["packet_elements"]
        self.ports[f["port"]] = f["packets"]
        self.m.work(f["packets"] * f["rows"] * f["packet_elements"])

        def at(step, row, element):
            bit = self.m.port_bit(f["port"], self.unit, row, step, element)
            return UNKNOWN if bit is None else self.m.read("port", f["port"], bit, dtype)
        if f["rows"] > 1 or following == "accumulate":
            steps = [[[at(s, r, g) for g in range(f["packet_elements"])] for r in range(f["rows"])] for s in range(f["packets"])]
            return "partials", steps, dtype
        return "packets", [at(s, 0, e) for s in range(f["packets"]) for e in range(f["packet_elements"])], dtype

    def collect(self, data, dtype, packet, flits):
        whole = flits * FLIT * 8 // BITS[dtype]
        out = []
        for at in range(0, len(data), packet):
            out += data[at:at + packet] + [self.ring.zero] * (whole - packet)
        return out

    # ---- contraction

    def align(self, data, dtype, f, shift, read):
        bits = BITS[dtype]
        each, lanes = FLIT * 8 // bits, MAC * 8 // bits
        steps = f["packets"] * f["tiling"]
        self.m.work(steps * lanes * f["rows"])
        packets = []
        for pop in range(f["packets"]):
            flits = data[pop * f["collect_flits"] * each:(pop + 1) * f["collect_flits"] * each]
            for step in range(f["tiling"]):
                if shift:
                    packets.append(self.shifted(flits, each, lanes, pop, step, shift))
                else:
                    packets.append((flits + [self.ring.zero] * lanes)[:lanes])
        rf, rows = read["f"], read["f"]["rows"]
        sizes = [e["size"] for e in reversed(read["t"])]
        addresses = walk(sizes, [e["stride"] for e in reversed(read["t"])], rf["base"])
        capacity = 65536 // rows // (1 if read["m"]["address"] == "Full" else 2)
        size, weights = rf["reg_read_size"], []
        count = size * 8 // bits
        stored = "i8" if rf["reg_type"] == 1 else read["m"]["dtype"]
        for a in addresses:
            if a < 0 or a + size > capacity:
                weights.append(None)
                continue
            per_row = []
            for row in range(rows):
                one = []
                for e in range(count):
                    bit = a * 8 + e * bits
                    one.append(self.m.read("trf", self.unit, trf_byte(row, rows, read["m"]["address"], bit // 8) * 8 + bit % 8, stored))
                per_row.append((one * lanes)[:lanes])
            weights.append(per_row)
        return packets, weights

    def shifted(self, flits, each, lanes, pop, step, shift):
        f, t = shift["f"], shift["t"]
        rows = f["transpose_rows"]
        columns = each // rows
        turned = []
        for at in range(0, len(flits), each):
            flit = flits[at:at + each]
            turned += [flit[(i % rows) * columns + i // rows] for i in range(each)]
        counters, s, p = [], step, pop
        for i, e in enumerate(t):
            if i < f["pop_dim"]:
                counters.append(s % e["limit"])
                s //= e["limit"]
            else:
                counters.append(p % e["limit"])
                p //= e["limit"]
        k = 0 if f["initial_shift_dim"] == 8 else counters[f["initial_shift_dim"]]
        offset = t[k]["initial_shift"] + (0 if f["shift_dim"] == 8 else f["shift_stride"] * counters[f["shift_dim"]])
        return [turned[i + offset] if 0 <= i + offset < len(turned) else self.ring.zero for i in range(lanes)]

    def live(self, masks, step, lane):
        chip, cluster, s = place_of(self.unit)
        counters = (step, lane, s, cluster, chip)
        return all(sum(counters[e["counter"]] // e["div"] % e["mod"] * e["weight"] for e in c["t"]) < c["f"]["limit"] for c in masks)

    def contract(self, dtype, f, masks):
        packets, weights = self.pair
        width, out = 1 << f["tree_depth"], []
        for step, (packet, rows) in enumerate(zip(packets, weights)):
            lanes = [self.live(masks, step, lane) for lane in range(f["columns"] * width)]
            if rows is None and any(lanes):
                raise Faulty("outside the partition")
            sums = []
            for row in range(len(rows or weights[0] or [])):
                sums.append([])
                for g in range(f["columns"]):
                    total = self.ring.zero
                    for lane in range(g * width, (g + 1) * width):
                        if lanes[lane]:
                            total = self.ring.add(total, self.ring.multiply(packet[lane], rows[row][lane]))
                    sums[row].append(total)
            out.append(sums)
        return out

    def accumulate(self, steps, c):
        f, t = c["f"], c["t"]
        slots, out = {}, []
        for number, partial in enumerate(steps):
            rest, counters = number, []
            for e in reversed(t):
                counters.insert(0, rest % e["size"])
                rest //= e["size"]
            inside, slot, first, last = False, 0, True, True
            for e, n in zip(t, counters):
                inside = inside or bool(e["reduced"])
                if e["reduced"]:
                    first, last = first and n == 0, last and n == e["size"] - 1
                elif inside:
                    slot += n * e["slot_stride"]
            if first:
                slots[slot] = [list(row[:f["columns"]]) for row in partial]
            else:
                slots[slot] = [[self.ring.add(a, b) for a, b in zip(x, y)] for x, y in zip(slots[slot], partial)]
            if last:
                out += self.beats(slots[slot], f)
        return out

    def beats(self, sums, f):
        out = []
        if f["kind"] == 0:
            for g in range(f["columns"]):
                out += [row[g] for row in sums] + [UNKNOWN] * (8 - len(sums))
        else:
            for row in sums:
                out += row + [self.ring.zero] * (-len(row) % 8)
        return out

    # ---- sinks

    def commit(self, data, dtype, c):
        to, bits = c["m"]["dtype"], BITS[c["m"]["dtype"]]
        each, kept = FLIT * 8 // BITS[dtype], c["f"]["commit_in_bytes"] * 8 // BITS[dtype]
        values = [v for at in range(0, len(data), each) for v in data[at:at + kept]]
        if c["f"]["cast"] == 2:
            zero = constant(self.ring, 0, True)
            values = [named(self.ring, 0x5f, [named(self.ring, 0x58, [v, zero]), zero, v]) for v in values]
        addresses = walk([e["size"] for e in c["t"]], [e["stride"] * bits for e in c["t"]], c["f"]["base"] * 8)
        for a, v in zip(addresses, values):
            if a < 0 or a + bits > DM_BYTES * 8:
                raise Faulty("outside")
            self.writes.append((("dm", self.unit, a), to, v))

    def store(self, data, dtype, c):
        f = c["f"]
        row_elements = f["flits_per_row"] * FLIT * 8 // BITS[dtype]
        dtype = "i8" if f["reg_type"] == 1 else dtype
        bits = BITS[dtype]
        for i, v in enumerate(data):
            row, bit = i // row_elements, f["base"] * 8 + i % row_elements * bits
            self.writes.append((("trf", self.unit, trf_byte(row, f["rows"], c["m"]["address"], bit // 8) * 8 + bit % 8), dtype, v))

    def stream_out(self, kind, data, dtype, c):
        f = c["f"]
        self.ports[f["port"]] = f["packets"]

        def give(port, row, step, element, value):
            bit = self.m.port_bit(port, self.unit, row, step, element)
            if bit is not None:
                self.writes.append((("port", port, bit), dtype, value))
        if kind == "pair":
            self.ports[f["port"] + 1] = f["packets"]
            for step, (packet, rows) in enumerate(zip(*self.pair)):
                for row, weights in enumerate(rows):
                    for lane, (a, b) in enumerate(zip(packet, weights)):
                        give(f["port"], row, step, lane, a)
                        give(f["port"] + 1, row, step, lane, b)
        elif kind == "partials":
            for step, rows in enumerate(data):
                for row, sums in enumerate(rows):
                    for g, v in enumerate(sums):
                        give(f["port"], row, step, g, v)
        else:
            for i, v in enumerate(data):
                give(f["port"], 0, i // f["packet_elements"], i % f["packet_elements"], v)


def outputs(kernel, ring, most_work):
    """{port number: {element: value}} of all outputs."""
    machine = Machine(kernel, ring, most_work)
    machine.run()
    return {i: machine.output(i) for i, p in enumerate(kernel["ports"]) if p["direction"] == "out"}
