"""A second decoder: what docs/isa.md and docs/format.md say, and nothing else.

It takes the commands' tables out of isa.md itself, so what it can decode is what the page tells; container, ports,
einsum and lines follow format.md by hand. `decode(bytes)` gives the dump that format.md describes under "The dump as JSON",
or raises Refused. It shares no line and no table with codegen/.
"""
import math
import os
import re
import struct

CONTEXTS = ("main", "sub", "dma")
LIMIT = 1 << 62


class Refused(Exception):
    """The bytes break a rule of the two pages."""


def need(condition, what):
    if not condition:
        raise Refused(what)


# ---------------------------------------------------------------- isa.md


def cells(line):
    return [c.strip().strip("`") for c in line.strip().strip("|").split("|")]


def word_and_bits(row):
    low, _, high = row[1].partition("..")
    return int(row[0]), int(low), int(high or low)


def limits(text):
    """'1 to 15' -> (1, 15); 'any' -> None."""
    found = re.fullmatch(r"(-?\d+) to (-?\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


class Field:
    def __init__(self, row):
        self.word, self.low, self.high = word_and_bits(row)
        self.name, self.form, self.limits, self.unit, self.meaning = row[2], row[3], limits(row[4]), row[5], row[6]

    def mask(self):
        return ((1 << (self.high - self.low + 1)) - 1) << self.low

    def value(self, words):
        bits = (words[self.word] & self.mask()) >> self.low
        if self.form == "signed" and bits >> (self.high - self.low):
            bits -= 1 << (self.high - self.low + 1)
        elif self.form == "minus 1":
            bits += 1
        elif self.form == "log2":
            bits = 1 << bits
        if self.limits:
            need(self.limits[0] <= bits <= self.limits[1], f"{self.name} {bits} outside {self.limits}")
        return bits


class Command:
    """One section of isa.md: fields, the entry count, the columns of an entry."""

    def __init__(self, name, opcode, text):
        self.name, self.opcode = name, opcode
        self.contexts = re.search(r"^Contexts: (.*?)\. Length", text, re.M)[1].split(", ")
        length = re.search(r"Length: (\d+) words(?: and (\d+) for each entry, of which there are (\d+) to (\d+))?\.", text)
        self.front, self.per_entry = int(length[1]), int(length[2] or 0)
        self.order = (re.search(r"Each entry \(entry 0 first; (.*?)\):", text) or [None, None])[1]
        rows = [cells(line) for line in text.splitlines() if re.match(r"\| \d", line)]
        front = [Field(r) for r in rows]
        count = [i for i, f in enumerate(front) if f.name == "(entry count)"]
        self.count = front[count[0]] if count else None
        self.fields = front[:count[0]] if count else front
        self.columns = front[count[0] + 1:] if count else []


class Math:
    """The generated tables of math.md."""

    class Statement:
        def __init__(self, row):
            self.name, self.sources, self.indexed = row[0], [int(n) for n in row[2].split(" to ")], row[5]
            self.sums, self.expression = row[3] == "yes", row[4] == "yes"

    class Scalar:
        def __init__(self, row):
            self.name, self.operands, self.result, self.folds = row[0], row[2].split(", "), row[3], bool(row[5])

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            rows = [cells(line.replace("\\|", "")) for line in file if line.startswith("| `")]
        self.statements = {int(r[1]): Math.Statement(r) for r in rows if len(r) == 7}
        self.scalars = {int(r[1], 16): Math.Scalar(r) for r in rows if len(r) == 8}


class Isa:
    def __init__(self, page):
        text = open(page, encoding="utf-8").read()
        block = text[text.index("<!-- generated"):text.index("<!-- end of the generated block")]
        parts = re.split(r"^### ", block, flags=re.M)
        self.dtypes = {int(r[0]): r[1] for r in map(cells, re.findall(r"^\| \d+ \|.*$", parts[1], re.M))}
        self.step = Step(os.path.join(os.path.dirname(page), "step.md"))
        self.math = Math(os.path.join(os.path.dirname(page), "math.md"))
        self.commands = {}
        for part in parts[2:]:
            title = re.match(r"`(\w+)`, opcode 0x([0-9a-f]+)", part)
            self.commands[int(title[2], 16)] = Command(title[1], int(title[2], 16), part)
        self.by_name = {c.name: c for c in self.commands.values()}

    def meaning(self, field, value):
        """What a code stands for, or None: the last table of format.md says which units have names."""
        if field.unit == "dtype code":
            return self.dtypes[value]
        if field.unit == "context code":
            return CONTEXTS[value]
        if field.unit in ("address mode", "kind code", "memory code", "list code", "topology code"):
            name = re.search(rf"\b{value} (\w+)", field.meaning)[1]
            return name.lower() if field.unit == "memory code" else name
        return None

    def command(self, words, context):
        """One command at the beginning of the words; its JSON and its length."""
        header = words[0]
        command = self.commands.get(header & 0xff)
        need(command, f"opcode {header & 0xff:#x}")
        need((header >> 8) & 3 == context and CONTEXTS[context] in command.contexts, "context")
        need(not header & 0xffffffff0000fc00, "reserved bits of the header")
        length = (header >> 16) & 0xffff
        need(command.front <= length <= len(words), "length")
        entries = command.count.value(words) if command.count else 0
        need(length == command.front + entries * command.per_entry, "length")
        self.reserved(words[:command.front], command.fields + ([command.count] if command.count else []), 1)
        fields = [self.field(f, words) for f in command.fields]
        out = {"op": command.name, "words": [f"0x{w:016x}" for w in words[:length]], "fields": fields}
        if command.count:
            at = [words[command.front + i * command.per_entry:][:command.per_entry] for i in range(entries)]
            for entry in at:
                self.reserved(entry, command.columns, 0)
            out["table"] = self.table(command, [[c.value(e) for c in command.columns] for e in at])
        return out, length

    @staticmethod
    def reserved(words, fields, first):
        for i in range(first, len(words)):
            known = 0
            for f in fields:
                known |= f.mask() if f.word == i else 0
            need(not words[i] & ~known, f"reserved bits of word {i}")

    def field(self, field, words):
        value = field.value(words)
        out = {"name": field.name, "value": f"{value:#x}" if field.unit == "bit mask" else value, "unit": field.unit}
        meaning = self.meaning(field, value)
        if meaning is not None:
            out["meaning"] = meaning
        return out

    @staticmethod
    def table(command, entries):
        names = [c.name for c in command.columns]
        units = {c.name: c.unit for c in command.columns}
        out = {"order": command.order, "units": units,
               "entries": [dict([("entry", i)] + list(zip(names, e))) for i, e in enumerate(entries)]}
        size = next((n for n in names if units[n] == "iterations"), None)
        if size is None:
            return out
        numbers = list(range(len(entries)))
        if command.order == "innermost first":
            numbers.reverse()
        out["loops"] = []
        for depth, number in enumerate(numbers):
            entry, counter = dict(zip(names, entries[number])), f"i{depth}"
            what = {"stride": "addr", "source_stride": "source", "destination_stride": "destination", "slot_stride": "slot", "list_stride": "list"}
            steps = [f"{what[n]} += {counter}*{entry[n]} {units[n]}" for n in names if n in what]
            steps = ["reduced"] * entry.get("reduced", 0) + ([f"place = {entry['place']}"] if "place" in entry else []) + steps
            out["loops"].append({"entry": number, "counter": counter, "size": entry[size], "steps": ", ".join(steps)})
        return out


# ---------------------------------------------------------------- format.md: words and strings


class Words:
    """A section's words, read in order; reading past the end is a refusal."""

    def __init__(self, data, what):
        need(len(data) % 8 == 0, f"{what}: not whole words")
        self.words = struct.unpack(f"<{len(data) // 8}Q", data)
        self.at, self.what = 0, what

    def next(self):
        need(self.at < len(self.words), f"{self.what} is too short")
        self.at += 1
        return self.words[self.at - 1]

    def strings_behind(self, size):
        """The string area at the section's end, when it is asked for at the front."""
        count = (size + 7) // 8
        need(self.at + count <= len(self.words), f"{self.what}: string area")
        tail = Words(b"", self.what)
        tail.words, self.words = self.words[len(self.words) - count:], self.words[:len(self.words) - count]
        return tail.strings(size)

    def strings(self, size):
        """The string area, the rest of the section."""
        rest = b"".join(struct.pack("<Q", w) for w in self.words[self.at:])
        need(len(rest) == (size + 7) // 8 * 8 and not any(rest[size:]), f"{self.what}: string area")
        area = rest[:size]
        need(not size or (size > 1 and area[-1] == 0 and area[-2] != 0), f"{self.what}: the area's last byte")
        return area


def bits(word, low, high):
    return (word >> low) & ((1 << (high - low + 1)) - 1)


def string(area, offset, most=1024):
    need(offset < len(area) and b"\0" in area[offset:], "a name's offset")
    text = area[offset:area.index(b"\0", offset)]
    need(1 <= len(text) <= most and all(0x20 <= b <= 0x7e for b in text), "a name")
    return text.decode("ascii")


# ---------------------------------------------------------------- format.md: ports


SPACES = ("hbm", "dm", "trf", "stream", "vrf")
COMPONENTS = {"hbm": ("chip", "element"), "dm": ("chip", "cluster", "slice", "element"), "vrf": ("chip", "cluster", "slice", "element"),
              "trf": ("chip", "cluster", "slice", "row", "element"),
              "stream": ("chip", "cluster", "slice", "row", "time", "packet")}
MODES = ("Full", "FirstHalf", "SecondHalf")


def mapping(words, axes):
    """The postfix program as text, and its SIZE. A pair before an operator stands in brackets."""
    count = words.next()
    need(1 <= count <= 1024, "a mapping's length")
    stack = []
    for _ in range(count):
        word = words.next()
        operator, n = word & 0xff, word >> 8
        if operator == 1:
            need(n < len(axes), "an axis' number")
            stack.append((axes[n]["name"], axes[n]["size"], False))
        elif operator == 2:
            need(0 < n < LIMIT, "a broadcast")
            stack.append((str(n), n, False))
        elif operator == 7:
            need(n == 0 and len(stack) >= 2, "a pair")
            right, left = stack.pop(), stack.pop()
            need(left[1] * right[1] < LIMIT, "a pair's SIZE")
            stack.append((f"{left[0]}, {right[0]}", left[1] * right[1], True))
        else:
            need(3 <= operator <= 6 and stack and n > 0, "an operator")
            text, size, pair = stack.pop()
            need(operator != 3 or size % n == 0, "stride")
            need(operator not in (4, 3) or size % n == 0, "modulo")
            need(operator != 5 or n <= size, "resize")
            need(operator != 6 or size <= n < LIMIT, "pad")
            sign = {3: "/", 4: "%", 5: "=", 6: "#"}[operator]
            stack.append((f"[{text}] {sign} {n}" if pair else f"{text} {sign} {n}", size // n if operator == 3 else n, False))
        need(len(stack) <= 256, "the stack")
    need(len(stack) == 1, "the mapping's end")
    return stack[0][0], stack[0][1]


def ports(data, isa):
    words = Words(data, "ports")
    head, size = words.next(), words.next()
    axis_count, port_count = bits(head, 0, 31), bits(head, 32, 63)
    need(axis_count <= 65535 and port_count <= 65535 and size < 1 << 32, "ports: counts")
    axes = []
    for _ in range(axis_count):
        axes.append({"name": words.next(), "size": words.next()})
        need(1 <= axes[-1]["size"] < LIMIT, "an axis' size")
    # Mappings name axes by number; the names come last, so the texts are made in a second reading.
    first = words.at
    for _ in range(port_count):
        port(words, axes, isa)
    area = words.strings(size)
    for axis in axes:
        axis["name"] = string(area, axis["name"])
    need(len({a["name"] for a in axes}) == len(axes), "two axes of one name")
    words.at = first
    out = [port(words, axes, isa) for _ in range(port_count)]
    for p in out:
        p["name"] = string(area, p["name"])
    need(len({(p["name"], p["direction"]) for p in out}) == len(out), "two ports of one name and direction")
    return axes, out


def port(words, axes, isa):
    word, address = words.next(), words.next()
    direction, space, dtype, mode = bits(word, 32, 39), bits(word, 40, 47), bits(word, 48, 55), bits(word, 56, 63)
    need(direction <= 1 and space <= 4 and dtype in isa.dtypes and mode <= 2, "a port's codes")
    out = {"name": bits(word, 0, 31), "direction": ("in", "out")[direction], "dtype": isa.dtypes[dtype], "space": SPACES[space]}
    if out["space"] == "trf":
        out["trf_address"] = MODES[mode]
    need(out["space"] == "trf" or mode == 0, "an address mode outside the TRF")
    need(address < {"hbm": 51539607552, "dm": 524288, "vrf": 8192}.get(out["space"], 1), "a port's address")
    out["address"], out["mapping"], out["positions"], total = address, {}, {}, 1
    for component in COMPONENTS[out["space"]]:
        out["mapping"][component], out["positions"][component] = mapping(words, axes)
        total *= out["positions"][component]
    need(total < LIMIT, "a port's positions")
    return out


# ---------------------------------------------------------------- format.md: einsum


def einsum(data, axes, port_list, isa):
    words = Words(data, "einsum")
    head, sizes = words.next(), words.next()
    tensor_count, window_count, statement_count = bits(head, 0, 15), bits(head, 16, 31), bits(head, 32, 63)
    need(tensor_count >= 1, "einsum: no tensor")
    windows = [window(words, axes) for _ in range(window_count)]
    slid = [w["axis"] for w in windows]
    need(len(set(slid)) == len(slid) and not any(t["axis"] == w["axis"] for w in windows for t in w["terms"]), "einsum: a window twice")
    tensors = [tensor(words, axes, isa) for _ in range(tensor_count)]
    statements = [statement(words, axes, tensors, isa) for _ in range(statement_count)]
    area = words.strings(bits(sizes, 32, 63))
    for t in tensors:
        t["name"] = string(area, t["name"])
    check_order(statements, tensors, port_list)
    sizes_of = {a["name"]: a["size"] for a in axes}
    for t in tensors:
        need(product(sizes_of[a] for a in t["axes"]) < LIMIT, "einsum: a tensor's elements")
    for s in statements:
        check_digits(s, tensors)
        check_broadcast(s, tensors, windows)
        check_windows(s, tensors, windows, sizes_of)
        need(not any(x["axis"] in slid for x in s["indices"]), "einsum: an index of a window")
    for s in statements:
        s["destination"] = tensors[s["destination"]]["name"]
        s["sources"] = [tensors[t]["name"] for t in s["sources"]]
    used = [t["port"] for t in tensors if t["port"] is not None]
    need(len(set(used)) == len(used) and all(p < len(port_list) for p in used), "einsum: a port's number")
    return {"text": string(area, bits(sizes, 0, 31), len(area)), "windows": windows, "tensors": tensors, "statements": statements}


def product(sizes):
    total = 1
    for size in sizes:
        total *= size
    return total


def check_order(statements, tensors, port_list):
    """Who is assigned before it is read; directions."""
    assigned, read = set(), set()
    for s in statements:
        for source in s["sources"]:
            need(tensors[source]["port"] is not None or source in assigned, "einsum: read before it is assigned")
        read.update(s["sources"])
        need(s["destination"] not in s["sources"], "einsum: a statement reads what it assigns")
        need(s["destination"] not in read or s["destination"] in assigned, "einsum: assigned after it was read")
        assigned.add(s["destination"])
    for number, t in enumerate(tensors):
        if t["port"] is not None and t["port"] < len(port_list):
            need((number in assigned) == (port_list[t["port"]]["direction"] == "out"), "einsum: a port's direction")


def check_digits(s, tensors):
    live = [d for d in s["digits"] if d["size"] > 1]
    for d in live:
        of_index = s["op"] == "scatter" and any(d["axis"] in tensors[n]["axes"] and i not in d["broadcast"] for i, n in enumerate(s["sources"]) if i)
        need(not d["kept"] or d["axis"] in tensors[s["destination"]]["axes"] or of_index, "einsum: a kept digit")
        for other in live:
            if other is not d and other["axis"] == d["axis"]:
                low, high = sorted((d, other), key=lambda x: x["weight"])
                need((low["size"] - 1) * low["weight"] < high["weight"], "einsum: digits overlap")
    need(product(d["size"] for d in s["digits"]) < LIMIT, "einsum: combinations")


def check_broadcast(s, tensors, windows):
    for d in s["digits"]:
        for source in d["broadcast"]:
            need(source < len(s["sources"]) and d["size"] > 1, "einsum: broadcast over what")
            axes = tensors[s["sources"][source]]["axes"]
            terms = [t for x in windows if x["axis"] in axes for t in x["terms"] if t["axis"] == d["axis"]]
            moved = [t for t in terms if d["weight"] % (t["weight"] * t["extent"]) and d["weight"] * d["size"] > t["weight"]]
            need(d["axis"] in axes or moved, "einsum: broadcast over a digit that does not move the source")


def check_windows(s, tensors, windows, sizes):
    for place, number in enumerate([s["destination"]] + s["sources"]):
        live = [d for d in s["digits"] if d["size"] > 1 and place - 1 not in d["broadcast"]]
        for x in windows:
            if x["axis"] not in tensors[number]["axes"]:
                continue
            by_terms = False
            for t in x["terms"]:
                end, inside = t["weight"] * t["extent"], []
                for d in live:
                    if d["axis"] != t["axis"] or d["weight"] % end == 0 or d["weight"] * d["size"] <= t["weight"]:
                        continue
                    need(d["weight"] % t["weight"] == 0 and (d["size"] - 1) * d["weight"] < end, "einsum: inside and outside")
                    inside.append((d["size"] - 1) * (d["weight"] // t["weight"]))
                by_terms = by_terms or bool(inside)
                need(sum(inside) < t["extent"] or end >= sizes[t["axis"]], "einsum: more than a term")
            own = any(d["axis"] == x["axis"] for d in live)
            need(not by_terms or not (own or place == 0), "einsum: both kinds of digits")


def axis_name(axes, number):
    need(number < len(axes), "einsum: an axis' number")
    return axes[number]["name"]


def window(words, axes):
    head, terms = words.next(), []
    count, bordered = bits(head, 32, 39), bits(head, 40, 40)
    need(1 <= count <= 8 and not bits(head, 41, 63), "einsum: a window")
    first = words.next() if bordered else 0
    for _ in range(count):
        axis, weight, extent, stride = (words.next() for _ in range(4))
        name = axis_name(axes, axis)
        need(1 <= weight <= axes[axis]["size"] and extent >= 1 and stride >= 1, "einsum: a term")
        need((extent - 1) * weight < axes[axis]["size"], "einsum: a term's extent")
        terms.append({"axis": name, "weight": weight, "extent": extent, "stride": stride})
    for i, a in enumerate(terms):
        for b in terms[:i]:
            meet = a["weight"] < b["weight"] * b["extent"] and b["weight"] < a["weight"] * a["extent"]
            need(a["axis"] != b["axis"] or not meet, "einsum: two terms count through the same coordinates")
    name = axis_name(axes, bits(head, 0, 31))
    places, size = 1 + sum((t["extent"] - 1) * t["stride"] for t in terms), axes[bits(head, 0, 31)]["size"]
    need(places < LIMIT and (size < places and first + size <= places if bordered else size == places), "einsum: a window's size")
    return {"axis": name, "terms": terms, **({"first": first} if bordered else {})}


def tensor(words, axes, isa):
    word, port_number = words.next(), words.next()
    need(bits(word, 0, 7) in isa.dtypes and not bits(word, 24, 31), "einsum: a tensor's codes")
    numbers = [words.next() for _ in range(bits(word, 8, 23))]
    need(len(set(numbers)) == len(numbers), "einsum: an axis twice")
    return {"name": bits(word, 32, 63), "dtype": isa.dtypes[bits(word, 0, 7)],
            "port": port_number - 1 if port_number else None, "axes": [axis_name(axes, n) for n in numbers]}


def statement(words, axes, tensors, isa):
    head, second = words.next(), words.next()
    need(bits(head, 0, 7) in isa.math.statements and bits(head, 8, 15) in isa.dtypes and not bits(head, 57, 63), "einsum: a statement's codes")
    row, accumulator = isa.math.statements[bits(head, 0, 7)], isa.dtypes[bits(head, 8, 15)]
    need(row.sources[0] <= bits(head, 16, 23) <= row.sources[1], "einsum: how many sources")
    need(bits(head, 32, 47) <= 256 and (row.sums or not bits(head, 48, 55)), "einsum: a statement")
    need(1 <= bits(second, 32, 47) <= 256 if row.expression else not bits(second, 32, 47), "einsum: an expression's steps")
    sources = [words.next() for _ in range(bits(head, 16, 23))]
    need(all(n < len(tensors) for n in sources + [bits(second, 0, 31)]), "einsum: a tensor's number")
    operands = [tensors[n] for n in [bits(second, 0, 31)] + sources]
    counted = bits(head, 56, 56)
    need(not counted or row.name == "gather" and len(sources) > 2 and not operands[-1]["axes"] and operands[-1]["dtype"] == "i32", "einsum: a count")
    check_accumulator(row, accumulator, operands)
    digits = [digit(words, axes) for _ in range(bits(head, 32, 47))]
    need(sorted(digits, key=lambda d: not d["kept"]) == digits, "einsum: kept digits first")
    pieces = [piece(words) for _ in range(bits(head, 48, 55))]
    summed = [d for d in digits if not d["kept"]]
    need(row.sums or not summed, "einsum: only contract and reduce sum")
    need(not any(d["lane"] or d["group"] or d["stride"] for d in digits if d["kept"]), "einsum: a place of a kept digit")
    check_lanes(pieces if pieces else summed)
    need(not pieces or not any(d["lane"] for d in summed), "einsum: lanes of a digit next to pieces")
    check_groups(summed, pieces, {a["name"]: a["size"] for a in axes})
    shifts = [shift(words, axes, operands) for _ in range(bits(head, 24, 31))]
    need(len({(s["operand"], s["axis"]) for s in shifts}) == len(shifts), "einsum: an axis shifted twice")
    steps = expression(words, bits(second, 32, 47), operands[1:], accumulator, isa)
    fold = fold_name(bits(second, 48, 63), row.name, accumulator, isa)
    indexed = {"source a": 1, "the destination": 0}.get(row.indexed)
    indices = [index(words, axes, operands, i, indexed) for i in range(1, len(sources) - counted)] if indexed is not None else []
    need(len({x["axis"] for x in indices}) == len(indices), "einsum: two index tensors of an axis")
    for d in digits:
        reads_list = any(d["axis"] in operands[i]["axes"] and i - 1 not in d["broadcast"] for i in range(2, len(operands)))
        need(not d["of_sources"] or row.name == "scatter" and reads_list and d["axis"] in operands[0]["axes"], "einsum: a digit of the sources")
    span = words.next() if counted else None
    need(not counted or 1 <= span and product(a["size"] for a in axes if a["name"] in operands[2]["axes"]) % span == 0, "einsum: spans of a count")
    element = words.next() if row.name == "fill" else None
    need(element is None or element >> dtype_bits(operands[0]["dtype"]) == 0, "einsum: a fill's element")
    return {"op": row.name, "destination": bits(second, 0, 31), "sources": sources, "accumulator": accumulator, "digits": digits, "pieces": pieces,
            "shifts": shifts, "expression": steps, "fold": fold, "indices": indices, "count_span": span, "bits": None if element is None else f"0x{element:x}"}


def dtype_bits(name):
    return {"i4": 4, "i8": 8, "i16": 16, "i32": 32, "f8e4m3": 8, "f8e5m2": 8, "bf16": 16, "f32": 32, "u8": 8, "f4e2m1": 4, "i5": 4, "i9": 8}[name]


def widened(name):
    return "i32" if name[0] in "iu" else "f32"


def check_accumulator(row, accumulator, operands):
    if row.name == "contract" or row.expression:
        need(accumulator in ("i32", "f32"), "einsum: the accumulator")
    if row.name == "fill" or row.indexed:
        need(accumulator == operands[0 if row.name == "fill" else 1]["dtype"], "einsum: the accumulator of what is moved")
    if row.name not in ("copy", "contract"):
        need(widened(accumulator) == widened(operands[0]["dtype"]), "einsum: what the destination takes")


def expression(words, count, sources, accumulator, isa):
    stack, steps, named = [], [], set()
    for _ in range(count):
        word = words.next()
        code, argument = bits(word, 0, 15), bits(word, 32, 63)
        need(not bits(word, 16, 31), "einsum: a step")
        if code == 1:
            need(argument < len(sources), "einsum: a source of an expression")
            named.add(argument)
            stack.append(widened(sources[argument]["dtype"]))
            steps.append({"op": "source", "source": argument})
        elif code in (2, 3):
            stack.append("i32" if code == 2 else "f32")
            steps.append({"op": stack[-1], "bits": f"0x{argument:08x}"})
        else:
            need(code in isa.math.scalars and not argument, "einsum: an operation of an expression")
            row = isa.math.scalars[code]
            first = len(stack) - len(row.operands)
            need(first >= 0 and stack[first:] == row.operands, "einsum: the operands of an operation")
            stack[first:] = [row.result]
            steps.append({"op": row.name})
        need(len(stack) <= 32, "einsum: values at once")
    need(not count or (stack == [accumulator] and len(named) == len(sources)), "einsum: what an expression gives")
    return steps


def fold_name(code, statement_name, accumulator, isa):
    if statement_name != "reduce":
        need(code == 0, "einsum: a fold")
        return None
    need(code in isa.math.scalars and isa.math.scalars[code].folds and isa.math.scalars[code].result == accumulator, "einsum: a fold's operation")
    return isa.math.scalars[code].name


def index(words, axes, operands, source, indexed):
    axis, unit, step, div, mod, positions = (words.next() for _ in range(6))
    name = axis_name(axes, axis)
    need(1 <= step < 1 << 48 and 1 <= div < 1 << 48 and mod <= axes[axis]["size"] and positions < 1 << 48, "einsum: what an index counts")
    need(widened(operands[source + 1]["dtype"]) == "i32" and name in operands[indexed]["axes"], "einsum: an index")
    need(1 <= unit <= axes[axis]["size"], "einsum: an index's unit")
    return {"axis": name, "source": source, "unit": unit, "step": step, "div": div, "mod": mod, "positions": positions}


def check_groups(summed, pieces, axis_sizes):
    numbers = [d["group"] for d in summed]
    count = max(numbers, default=0)
    need(not pieces or numbers == sorted(numbers) and set(numbers) == set(range(1, count + 1)), "einsum: the groups' numbers")
    need(pieces or not any(numbers), "einsum: groups without pieces")
    need(all(1 <= p["group"] <= count for p in pieces) and product(p["size"] for p in pieces) < LIMIT, "einsum: the pieces")
    for group in range(1, count + 1):
        taken, run = 1, []  # the digits of an axis that count on from each other, the innermost first
        for d in reversed([d for d in summed if d["group"] == group and d["size"] > 1]):
            on = run and d["axis"] == run[-1]["axis"] and all(d[k] == run[-1][k] * run[-1]["size"] for k in ("weight", "stride"))
            need(on or d["stride"] >= taken, "einsum: two terms at a position")
            run = run + [d] if on else [d]
            values = min(product(x["size"] for x in run), (axis_sizes[d["axis"]] - 1) // run[0]["weight"] + 1)
            taken = values * run[0]["stride"]
            need(taken < LIMIT, "einsum: a group's positions")
        end = 1
        for p in sorted((p for p in pieces if p["group"] == group), key=lambda p: p["weight"]):
            need(p["weight"] == end, "einsum: the pieces of a group")
            end *= p["size"]
        need(end >= taken, "einsum: positions that no piece counts")


def piece(words):
    head, weight, size = words.next(), words.next(), words.next()
    need(not bits(head, 16, 63) and weight >= 1 and size >= 2 and weight * size <= LIMIT, "einsum: a piece")
    return {"group": bits(head, 0, 7), "weight": weight, "size": size, "lane": bits(head, 8, 15)}


def check_lanes(summed):
    room = 0  # of lanes inside a step of the one before; 0: none of the packet yet
    for d in summed:
        need(d["lane"] or not room, "einsum: a digit over time after one of the packet")
        need(d["size"] * d["lane"] <= (room or 256), "einsum: a digit's lanes")
        room = d["lane"]


def shift(words, axes, operands):
    head, offset = words.next(), words.next()
    axis, operand = axis_name(axes, bits(head, 0, 31)), bits(head, 32, 63)
    need(operand < len(operands) and axis in operands[operand]["axes"], "einsum: a shift")
    need(1 <= offset < axes[bits(head, 0, 31)]["size"], "einsum: a shift's offset")
    return {"operand": "destination" if operand == 0 else "abcdefgh"[operand - 1], "axis": axis, "offset": offset}


def digit(words, axes):
    head, weight, size = words.next(), words.next(), words.next()
    name = axis_name(axes, bits(head, 0, 31))
    need(not bits(head, 58, 63) and 1 <= weight <= axes[bits(head, 0, 31)]["size"], "einsum: a digit")
    group = bits(head, 49, 56)
    stride = words.next() if group else 0
    need(not group or 1 <= stride < LIMIT, "einsum: a digit's stride")
    need(size >= 1 and (size - 1) * weight < axes[bits(head, 0, 31)]["size"], "einsum: a digit's size")
    return {"axis": name, "weight": weight, "size": size, "kept": bool(bits(head, 32, 32)),
            "broadcast": [i for i in range(8) if bits(head, 33 + i, 33 + i)], "of_sources": bool(bits(head, 57, 57)), "lane": bits(head, 41, 48), "group": group, "stride": stride}


# ---------------------------------------------------------------- format.md: the file


class Section:
    def __init__(self, data, header):
        self.type, flags, address, self.offset, self.size, self.link, _, align = header[1:9]
        need(flags == 0 and address == 0, "a section's flags or address")
        need(self.type not in (0, 8), "a section without content")
        need(self.offset + self.size <= len(data), "a section outside the file")
        need(align == 0 or (align & (align - 1) == 0 and self.offset % align == 0), "a section's alignment")
        self.bytes = data[self.offset:self.offset + self.size]


def is_names(section):
    return section.type == 3 and section.size > 0 and section.bytes[-1] == 0


def sections(data):
    """All sections, with their names; number 0 is None."""
    need(len(data) >= 64 and data[:16] == b"\x7fELF\x02\x01\x01\xff" + bytes(8), "the ELF header")
    fixed = struct.unpack_from("<HHIQQ", data, 16) + struct.unpack_from("<IHHHH", data, 48)
    need(fixed == (1, 0, 1, 0, 0, 0, 64, 0, 0, 64), "the ELF header")
    shoff, (shnum, shstrndx) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HH", data, 60)
    need(shoff % 8 == 0 and 2 <= shnum <= 65279 and shoff + 64 * shnum <= len(data), "the section headers")
    need(not any(data[shoff:shoff + 64]) and 1 <= shstrndx < shnum, "section header 0, or the names' number")
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(shnum)]
    found = [None] + [Section(data, h) for h in headers[1:]]
    need(all(s.link < shnum for s in found[1:]), "a section's link")
    taken = sorted([(0, 64), (shoff, shoff + 64 * shnum)] + [(s.offset, s.offset + s.size) for s in found[1:] if s.size])
    need(all(a[1] <= b[0] for a, b in zip(taken, taken[1:])), "parts overlap")
    need(is_names(found[shstrndx]), "the section names")
    for section, header in zip(found, headers):
        table = found[shstrndx].bytes
        need(header[0] < len(table), "a section's name")
        text = table[header[0]:table.index(b"\0", header[0])]
        need(len(text) <= 1024 and all(0x21 <= b <= 0x7e for b in text), "a section's name")
        if section:
            section.name = text.decode("ascii")
    return found


def note(data):
    need(len(data) >= 32 and len(data) % 8 == 0, "the note")
    name_size, description, kind = struct.unpack_from("<III", data)
    need(name_size == 5 and kind == 1 and data[12:20] == b"visa\0\0\0\0" and 20 + description == len(data), "the note")
    need(struct.unpack_from("<I", data, 20)[0] == 12, "the format version")
    target, _, rest = data[24:].partition(b"\0")
    need(target == b"rngd" and not any(rest), "the target")
    return "rngd"


def stream(data, context, lines, isa, room):
    words, at, out = Words(data, CONTEXTS[context]).words, 0, []
    while at < len(words):
        command, length = isa.command(words[at:], context)
        out.append({"offset": 8 * at, "line": lines.pop((context, 8 * at), None), **command})
        at += length
    nested, run = nest(out, 0, isa, []) if any(c["op"] in ("loop", "advance") for c in out) else (out, 0)
    room[0] -= run
    need(room[0] >= 0, "more commands than loops may make")
    return nested


# ---------------------------------------------------------------- isa.md, "Loops"


def end_of(command):
    return command["offset"] + 8 * len(command["words"])


def field_of(command, name):
    return next(f["value"] for f in command["fields"] if f["name"] == name)


def nest(commands, depth, isa, around):
    """The list in which each loop holds its body, and how many commands are run. `around`: (count, {(offset, field, entry): step}) of the loops around."""
    out, run, at = [], 0, 0
    while at < len(commands):
        command = commands[at]
        need(command["op"] != "advance", "an advance without its loop")
        at += 1
        out.append(command)
        if command["op"] != "loop":
            in_limits(command, isa, around)
            run += 1
            continue
        need(depth < 8, "loops inside each other")
        advances = []
        while at < len(commands) and commands[at]["op"] == "advance":
            advances.append(commands[at])
            at += 1
        begin = end_of((advances or [command])[-1])
        end = begin + 8 * field_of(command, "body_words")
        body = [c for c in commands[at:] if c["offset"] < end]
        need(body and end_of(body[-1]) == end, "a loop's body")
        at += len(body)
        steps = {}
        places = [e["word"] * 64 + e["low_bit"] for a in advances for e in a["table"]["entries"]]
        need(all(a < b for a, b in zip(places, places[1:])), "places that do not ascend")
        for advance in advances:
            advance["advances"] = [advanced(e, begin, body, isa) for e in advance["table"]["entries"]]
            steps.update({(a["offset"], a["name"], a["entry"]): a["step"] for a in advance["advances"]})
        count = field_of(command, "count")
        inside, each = nest(body, depth + 1, isa, around + [(count, steps)])
        command.update(advances=advances, body=inside)
        run += count * each
    return out, run


def advanced(entry, begin, body, isa):
    offset = begin + 8 * entry["word"]
    command = next((c for c in body if c["offset"] <= offset < end_of(c)), None)
    need(command and command["op"] not in ("loop", "advance"), "a place outside the body's commands")
    rows, word = isa.by_name[command["op"]], (offset - command["offset"]) // 8
    fields, number = rows.fields, None
    if word >= rows.front:
        fields, (number, word) = rows.columns, divmod(word - rows.front, rows.per_entry)
    field = next((f for f in fields if (f.word, f.low) == (word, entry["low_bit"])), None)
    need(field and field.form != "log2" and not field.unit.endswith(("code", "mode", "mask", "flag")), "a place that is no number")
    return {"offset": command["offset"], "op": command["op"], "entry": number, "name": field.name, "step": entry["step"], "unit": field.unit}


def in_limits(command, isa, around):
    rows = isa.by_name[command["op"]]
    values = [(f, None, next(x["value"] for x in command["fields"] if x["name"] == f.name)) for f in rows.fields]
    values += [(f, e["entry"], e[f.name]) for e in command.get("table", {}).get("entries", []) for f in rows.columns]
    for field, entry, value in values:
        steps = [(count - 1) * loop[command["offset"], field.name, entry] for count, loop in around if (command["offset"], field.name, entry) in loop]
        for end in (sum(s for s in steps if s > 0), sum(s for s in steps if s < 0)):
            low, high = field.limits or (-(1 << 63), (1 << 63) - 1)
            need(not end or low <= value + end <= high, f"{field.name} in a loop")


def source_lines(data):
    words, out, last = Words(data, "lines"), {}, (-1, -1)
    while words.at < len(words.words):
        where, line = words.next(), words.next()
        key = bits(where, 32, 39), bits(where, 0, 31)
        need(not bits(where, 40, 63) and key > last and 1 <= line < 1 << 32, "lines")
        out[key], last = line, key
    return out


def symbols(found):
    table = next((s for s in found[1:] if s.name == ".symtab"), None)
    if table is None:
        return []
    names, out = found[table.link], []
    need(table.type == 2 and table.size >= 24 and table.size % 24 == 0 and not any(table.bytes[:24]), "the symbol table")
    need(names is not None and is_names(names), "the symbols' names")
    for at in range(24, table.size, 24):
        name, _, _, number, value, size = struct.unpack_from("<IBBHQQ", table.bytes, at)
        need(1 <= number < len(found) and value + size <= found[number].size, "a symbol's section")
        out.append({"name": string(names.bytes, name, 2048), "section": found[number].name, "offset": value, "size": size})
    return out


def decode(data, isa):
    found = sections(data)
    by_name, kernels = {}, []
    for section in found[1:]:
        kernels += re.findall(r"^\.visa\.ports\.(.*)", section.name)
    for section in found[1:]:
        part = re.match(r"\.visa\.(main|sub|dma|ports|einsum|lines)\.(.*)", section.name)
        need(not part or (part[2] in kernels and section.type == 1 and section.name not in by_name), section.name)
        by_name.setdefault(section.name, section)
    need(".note.visa" in by_name and by_name[".note.visa"].type == 7, "no note")
    content = {name: section.bytes for name, section in by_name.items()}
    room = [1 << 20]  # of commands that loops may make
    programs = [program(section.bytes, section.name[len(".visa.step."):], isa) for section in found[1:] if section.name.startswith(".visa.step.")]
    return {"format": 12, "target": note(content[".note.visa"]), "kernels": [kernel(k, content, isa, room) for k in kernels],
            "programs": programs, "symbols": symbols(found)}


# ---------------------------------------------------------------- format.md: stream programs, step.md: their codes


class Step:
    """The generated tables of step.md."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            tables = re.split(r"\n\n", file.read().split("<!-- generated", 1)[1])
        rows = {t.split("|")[1].strip() + "/" + t.split("|")[2].strip(): [cells(r) for r in t.splitlines()[2:]] for t in tables if t.startswith("| ")}
        self.operators = {int(r[1], 16): r for r in rows["operator/code"]}
        self.functions = {0: "", **{int(r[1]): r[0] for r in rows["function/code"]}}
        self.numbers = rows["operator/function"]
        self.formula = {int(r[1]): (r[0], int(r[2])) for r in rows["in a function of your own/code"]}

    def of(self, operator, function, slots):
        """The numbers of a node by name."""
        out = {}
        for name, only, slot, number, values, *_ in self.numbers:
            if name == operator and only in ("any", function):
                low, high = limits(values)
                need(low <= slots[int(slot)] <= high, f"{operator}: {number}")
                out[number] = slots[int(slot)]
        return out


KINDS = ("tile", "selector", "buffer", "pair", "bool", "address")
MACHINE = ("onchip_bytes_per_cycle", "memory_channels", "requests_per_cycle", "request_bytes", "memory_latency_cycles", "memory_interval_cycles",
           "memory_startup_cycles", "compute_tile", "onchip_bytes")


def signed(word):
    return word - (1 << 64) if word >> 63 else word


def step_type(words, isa):
    head, rows, columns, width, parts = (words.next() for _ in range(5))
    need(bits(head, 24, 31) == 0 and bits(head, 0, 7) < len(KINDS), "a type")
    kind = KINDS[bits(head, 0, 7)]
    out = {"kind": kind}
    if kind == "tile":
        out.update(dtype=isa.dtypes[bits(head, 8, 15)], rows=None if signed(rows) < 0 else rows, columns=None if signed(columns) < 0 else columns)
    if kind == "selector":
        out["width"], out["names"] = width, bits(head, 32, 63) or None
        need(bits(head, 32, 63) <= width, "a selector")
    else:
        need(bits(head, 32, 63) == 0, "a type")
    if kind in ("buffer", "pair"):
        out["first"] = bits(parts, 0, 31)
    if kind == "pair":
        out["second"] = bits(parts, 32, 63)
    if kind == "buffer":
        out["rank"] = bits(head, 16, 23)
    return out


def step_tensor(words, isa):
    head, rows, columns = (words.next() for _ in range(3))
    return {"name": words.name(bits(head, 0, 31)), "dtype": isa.dtypes[bits(head, 32, 39)], "written": bool(bits(head, 40, 47)), "rows": rows,
            "columns": columns, "shape": [words.next() for _ in range(bits(head, 48, 63))]}


def step_float(words):
    """A finite number, or None."""
    word = words.next()
    need(word < 1 << 32, "a number of a function")
    value = struct.unpack("<f", struct.pack("<I", word))[0]
    return value if math.isfinite(value) else None


def step_instruction(words, step, at, leaves):
    head = words.next()
    need(bits(head, 0, 15) in step.formula, "an instruction")
    operation, count = step.formula[bits(head, 0, 15)]
    given = [bits(head, low, low + 15) for low in (16, 32, 48)]
    out = {"operation": operation, "operands": given[:1 if operation == "value" else count]}
    need(not any(given[len(out["operands"]):]), "an operand that is not used")
    need(all(g < (leaves if operation == "value" else at) for g in out["operands"]), "an operand of an instruction")
    number = step_float(words)
    return {**out, "number": number} if operation == "number" else out


def step_formula(words, step, folds):
    head = words.next()
    count, results, states, values = (bits(head, low, low + 15) for low in (0, 16, 32, 48))
    need(1 <= count <= 4096 and 1 <= results <= 16 and 1 <= values <= 16 and states == (results if folds else 0), "a function of its own")
    out = {"results": [words.next() for _ in range(results)]}
    need(all(r < count for r in out["results"]), "a result")
    out["instructions"] = [step_instruction(words, step, i, states + values) for i in range(count)]
    out["states"] = [{"rows": words.next(), "columns": words.next(), "value": step_float(words)} for _ in range(states)]
    need(all(1 <= s[side] <= 1 << 20 for s in out["states"] for side in ("rows", "columns")), "a state")
    return out


def step_node(words, step):
    head, counts, name, compute = (words.next() for _ in range(4))
    need(bits(head, 0, 15) in step.operators and bits(head, 16, 31) in step.functions and not bits(head, 57, 63), "a node")
    operator, function = step.operators[bits(head, 0, 15)][0], step.functions[bits(head, 16, 31)]
    stored = operator in ("linear_load", "linear_store", "random_load", "random_store")
    out = {"name": words.name(bits(name, 0, 31)), "operator": operator, "line": bits(name, 32, 63), "function": function,
           "kernel": words.name(words.next()) if function == "kernel" else None,
           **({"formula": step_formula(words, step, operator in ("accum", "scan"))} if function == "formula" else {}),
           "flops_per_cycle": compute, "written_back": bool(bits(head, 56, 56)),
           "tensor": bits(head, 32, 47) if stored else None, "numbers": step.of(operator, function, [signed(words.next()) for _ in range(4)])}
    inputs = [(words.next(), words.next()) for _ in range(bits(counts, 0, 31))]
    outputs = [words.next() for _ in range(bits(counts, 32, 63))]
    out["walk"] = [{"size": words.next(), "stride": signed(words.next())} for _ in range(bits(head, 48, 55))]
    out["inputs"] = [{"node": bits(w, 0, 31), "port": bits(w, 32, 63), "depth": depth} for w, depth in inputs]
    out["outputs"] = [{"type": bits(w, 32, 55), "rank": bits(w, 56, 63), "shape": words.name(bits(w, 0, 31))} for w in outputs]
    return out


def program(data, name, isa):
    words = Words(data, "step")
    counts, more = words.next(), words.next()
    area = words.strings_behind(bits(more, 32, 63))
    words.name = lambda offset: string(area, offset)
    need(words.name(words.next()) == name, "a stream program's name")
    machine = {what: words.next() for what in MACHINE}
    out = {"name": name, "machine": machine, "types": [step_type(words, isa) for _ in range(bits(counts, 32, 63))]}
    out["tensors"] = [step_tensor(words, isa) for _ in range(bits(more, 0, 31))]
    out["nodes"] = [step_node(words, isa.step) for _ in range(bits(counts, 0, 31))]
    need(words.at == len(words.words), "words after a stream program")
    return out


def kernel(name, content, isa, room):
    need(re.fullmatch(r"[A-Za-z0-9_:]{1,255}", name), "a kernel's name")
    need(all(content.get(f".visa.{part}.{name}", b"?") for part in CONTEXTS + ("lines",)), "an empty section")
    axes, port_list = ports(content[f".visa.ports.{name}"], isa)
    lines = source_lines(content.get(f".visa.lines.{name}", b""))
    streams = {c: stream(content.get(f".visa.{c}.{name}", b""), i, lines, isa, room) for i, c in enumerate(CONTEXTS)}
    need(not lines, "a line of no command")
    text = content.get(f".visa.einsum.{name}")
    return {"name": name, "axes": axes, "ports": port_list, "einsum": einsum(text, axes, port_list, isa) if text is not None else None,
            "streams": streams}
