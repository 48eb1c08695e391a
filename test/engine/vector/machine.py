"""The Vector Engine as docs/isa.md, docs/engine/vector.md and docs/math.md say it, for the machine over a field in Python
(test/field/field_machine.py).

Sums, differences and products are the ring's; any other operation is a function of its operands, a keyed hash of its code in math.md and
of their values, one after the other. Each operation of the engine is written here as such an expression, in postfix: a, b and c are its
operands, a number in decimal a constant, in hexadecimal a code."""

MASK, PRIME = (1 << 64) - 1, (1 << 61) - 1
SUM, LESS, TIMES, FUSED, NEGATIVE = ("0x10", "0x30"), ("0x11", "0x31"), ("0x12", "0x32"), ("0x34",), ("0x17", "0x35")
ARITY = {1: "0x17 0x18 0x23 0x35 0x36 0x3a 0x40 0x41 0x42 0x43 0x44 0x45 0x47 0x5c 0x64 0x65".split(), 3: "0x34 0x5e 0x5f".split()}
EXPRESSIONS = {
    0x10: "a b 0x20", 0x11: "a b 0x21", 0x12: "a b 0x22", 0x13: "a b 0x24", 0x14: "a b 0x25", 0x15: "a b 0x26",
    0x18: "a 0x64 b 0x64 0x20 0x65", 0x19: "a 0x64 b 0x64 0x21 0x65", 0x1a: "a 0x64 b 0x64 0x22 0x65",
    0x20: "a b 0x10", 0x21: "a b 0x13", 0x22: "a b 0x11", 0x23: "a b 0x14", 0x24: "a b 0x24",
    0x25: "b 31 0x54 a 1 b 0x24 0x15 a 1073741824 0x15 4 0x15 0x5e", 0x26: "a b 0x16", 0x27: "a b 0x12", 0x28: "a b 0x25", 0x29: "a b 0x26",
    0x2a: "1 b 0x24 1 0x11 1 0x25 a 31 0x26 0x11 a 1 b 0x24 1 0x11 0x20 0x52 a b 0x26 1 0x10 a b 0x26 0x5e",
    0x30: "a b 0x62", 0x31: "a b 0x63", 0x32: "a 0x65", 0x33: "a 0x64",
    0x40: "a 0x40", 0x41: "a 0x35 0x40", 0x42: "a 0x3a", 0x43: "a 0x42", 0x44: "a 0x43", 0x45: "a 0x41", 0x46: "a 0x44", 0x47: "a 0x45", 0x48: "a 0x47",
    0x50: "a b 0x30", 0x51: "a b 0x31", 0x52: "a b 0x32", 0x53: "a b 0x32", 0x54: "a b 0x32", 0x55: "a b 0x33", 0x58: "a b c 0x34", 0x5c: "a b 0x33",
    0x60: "a b 0x19", 0x61: "a b 0x1a", 0x62: "a 0x18 b 0x18 0x54 a b 0x5e", 0x63: "b 0x18 a 0x18 0x54 a b 0x5e", 0x64: "a b 0x10", 0x65: "a b 0x13",
    0x68: "a b 0x37", 0x69: "a b 0x38", 0x6a: "a 0x36 b 0x36 0x57 a b 0x5f", 0x6b: "b 0x36 a 0x36 0x57 a b 0x5f", 0x6c: "a b 0x30",
}
FLOATS = {0x18, 0x19, 0x1a, 0x32, *range(0x40, 0x5d), *range(0x68, 0x6d), 0x30}  # what leaves


def mix(x):
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def keyed(key, x):
    return mix(mix((key + 0x9e3779b97f4a7c15) & MASK) ^ ((x + 0x9e3779b97f4a7c15) & MASK))


def function(ring, code, arguments):
    state = keyed(keyed(ring.seed, 0x200000000), code)
    for x in arguments:
        state = keyed(state, x)
    return 0 if mix(state) >> 3 == PRIME else mix(state) >> 3


def constant(ring, bits, is_float):
    return function(ring, 3 if is_float else 2, [bits])


def evaluate(ring, text, operands):
    stack = []
    for word in text.split():
        if word in operands:
            stack.append(operands[word])
            continue
        if not word.startswith("0x"):
            stack.append(constant(ring, int(word), False))
            continue
        count = 1 if word in ARITY[1] else 3 if word in ARITY[3] else 2
        x, stack = stack[-count:], stack[:-count]
        if any(v is UNKNOWN for v in x):  # noqa: F821
            stack.append(UNKNOWN)  # noqa: F821
        elif word in SUM:
            stack.append((x[0] + x[1]) % PRIME)
        elif word in LESS:
            stack.append((x[0] - x[1]) % PRIME)
        elif word in TIMES:
            stack.append(x[0] * x[1] % PRIME)
        elif word in FUSED:
            stack.append((x[0] * x[1] + x[2]) % PRIME)
        elif word in NEGATIVE:
            stack.append(-x[0] % PRIME)
        else:
            stack.append(function(ring, int(word, 16), x))
    return stack[0]


# Comparisons, of i32 and of f32: a is the element, b the constant.
COMPARE = {2: ("a b 0x50", "a b 0x55"), 3: ("a b 0x52", "a b 0x57"), 4: ("b a 0x52", "b a 0x57"), 5: ("a b 0x54", "a 0x64 b 0x64 0x54"),
           6: ("b a 0x54", "b 0x64 a 0x64 0x54")}


def in_set(ring, at, tags, bit, element):
    """Is the element's tag in the set of the tags of so many bits? True, False or a value: the highest bit that says something first,
    where it is set and where it is not; with neither the other one is left out."""
    if tags in (0, (1 << (1 << bit)) - 1):
        return tags != 0
    half = 1 << (bit - 1)
    low, high = tags & (1 << half) - 1, tags >> half
    kind, word = at.compares.get(bit - 1, (0, 0))
    if low == high or kind < 2:
        return in_set(ring, at, high if kind == 1 else low, bit - 1, element)
    is_float = at.tagged[1] == "f32"
    said = evaluate(ring, COMPARE[kind][is_float], {"a": element, "b": constant(ring, word, is_float)})
    halves = []
    for value, rest in ((said, in_set(ring, at, high, bit - 1, element)), (function(ring, 0x5c, [said]), in_set(ring, at, low, bit - 1, element))):
        if rest is not False:
            halves.append(value if rest is True else function(ring, 0x5a, [value, rest]))
    return False if not halves else halves[0] if len(halves) == 1 else function(ring, 0x5b, halves)


def begin(at, command, data, dtype, _):
    at.stash, at.tagged, at.compares, at.guard, at.read, at.lanes = [], ([], dtype), {}, None, None, 8
    at.other, at.groups, at.zip = None, 3, False
    return data, dtype


def tag(at, command, data, dtype, _):
    at.tagged = list(data), dtype
    return data, dtype


def compare(at, command, data, dtype, _):
    f = command["f"]
    at.compares[f["bit"]] = f["comparison"], f["with"]
    return data, dtype


def guard(at, command, data, dtype, _):
    at.guard = command["f"]["tags"] if command["f"]["tags"] != 0xffff else None
    at.groups = command["f"]["groups"]
    return data, dtype


def read(at, command, data, dtype, _):
    f, words, packets = command["f"], [], [0]
    for e in command["t"]:
        packets = [p + e["stride"] * n for p in packets for n in range(e["size"])]
    for p in packets:
        for lane in range(at.lanes):
            words.append(at.m.read("vrf", at.unit, 8 * (f["base"] + p + (4 * lane if f["lanes"] > 1 else 0)), dtype))
    at.read = words
    return data, dtype


def aside(at, command, data, dtype, _):
    at.stash = list(data)
    return data, dtype


def unzip(at, command, data, dtype, _):
    turn = 8 * command["f"]["inside"]
    groups = [[x for n in range(start, len(data), 2 * turn) for x in data[n:n + turn]] for start in (0, turn)]
    at.other = groups[1]
    return groups[0], dtype


def zipped(at, command, data, dtype, _):
    at.zip = True
    return data, dtype


def operation(at, command, data, dtype, _):
    groups, at.groups = at.groups, 3
    if at.zip:
        f, out = command["f"], []
        for a, b in zip(data, at.other):
            known = hasattr(at.ring, "seed") and a is not UNKNOWN and b is not UNKNOWN  # noqa: F821
            out.append(evaluate(at.ring, EXPRESSIONS[f["operation"]], {name: (a, b)[f[name]] for name in "ab"}) if known else UNKNOWN)  # noqa: F821
        at.zip, at.other = False, None
        return out, "f32" if f["operation"] in FLOATS else "i32"
    words, tags, to = at.read, at.guard, dtype
    if at.other is not None and groups & 2:
        at.other, to = stream_operation(at, command, at.other, dtype)
    at.read, at.guard = words, tags
    if groups & 1:
        data, to = stream_operation(at, command, data, dtype)
    at.read = at.guard = None
    return data, to


def stream_operation(at, command, data, dtype):
    f, ring = command["f"], at.ring
    to = "f32" if f["operation"] in FLOATS else "i32"
    words, tags = at.read, at.guard
    at.read = at.guard = None
    if not hasattr(ring, "seed"):  # polynomials have no other functions
        return [UNKNOWN] * len(data), to  # noqa: F821
    is_float = dtype == "f32" and f["operation"] != 0x31
    given = [None, constant(ring, f["constant1"], is_float), constant(ring, f["constant2"], is_float)]
    out = []
    for i, x in enumerate(data):
        if f["stash"]:
            given[1] = at.stash[i]
        if words:
            given[1] = words[i]
        operands = {name: given[f[name]] if f[name] else x for name in "abc"}
        done, element = evaluate(ring, EXPRESSIONS[f["operation"]], operands), at.tagged[0][i] if tags is not None else None
        taken = True if tags is None else UNKNOWN if element is UNKNOWN else in_set(ring, at, tags, 4, element)  # noqa: F821
        if taken is not True and taken is not False:
            unknown = any(v is UNKNOWN for v in (taken, done, x))  # noqa: F821
            done = UNKNOWN if unknown else function(ring, 0x5f if to == "f32" else 0x5e, [taken, done, x])  # noqa: F821
        out.append(x if taken is False else done)
    return out, to


def width(at, command, data, dtype, _):
    kind = command["f"]["kind"]
    at.stash, at.tagged = packets(kind, at.stash), (packets(kind, at.tagged[0]), at.tagged[1])
    at.lanes = 4 if kind < 2 else 8
    at.other = at.other if at.other is None else packets(kind, at.other)
    return packets(kind, data), dtype


def packets(kind, data):
    if kind == 1:  # trim
        return [x for at in range(0, len(data), 8) for x in data[at:at + 4]]
    if kind == 3:  # pad
        return [x for at in range(0, len(data), 4) for x in data[at:at + 4] + [UNKNOWN] * 4]  # noqa: F821
    return data


def same(at, command, data, dtype, _):
    return data, dtype


# ---- reductions: sums are the ring's; of other operations the multiset of what is reduced ----

FOLDS = {0x80: 0x10, 0x81: 0x13, 0x82: 0x1a, 0x83: 0x19, 0x88: 0x30, 0x89: 0x38, 0x8a: 0x37, 0x8b: 0x32, 0x70: 0x13, 0x71: 0x1a, 0x72: 0x19, 0x78: 0x30, 0x79: 0x38, 0x7a: 0x37}  # the code in math.md


def fold(ring, code, terms):
    if any(v is UNKNOWN for v in terms):  # noqa: F821
        return UNKNOWN  # noqa: F821
    if FOLDS[code] in (0x10, 0x30):
        return sum(terms) % PRIME
    if FOLDS[code] == 0x32:
        product = 1
        for x in terms:
            product = product * x % PRIME
        return product
    if not hasattr(ring, "seed"):
        return UNKNOWN  # noqa: F821
    start = keyed(keyed(ring.seed, 0x200000000), FOLDS[code])
    state = (start + sum(keyed(start, x) for x in terms)) & MASK
    return 0 if mix(state) >> 3 == PRIME else mix(state) >> 3


def lanes_that_count(counts, slice_, flit):
    """Of 8, from the front."""
    valid = 8
    for c in counts:
        f, index, at = c["f"], 0, flit
        for loop in reversed(c["t"]):
            index += at % loop["size"] * loop["stride"]
            at //= loop["size"]
        masked = slice_ & f["slice_mask"]
        if f["kind"] == 0:
            valid = min(valid, max(0, min(f["limit"] - index, f["span"])))
        elif not (masked < f["slice"] or (not (masked > f["slice"] and f["kind"] == 1) and index < f["limit"])):
            valid = 0
    return valid


def reduce(at, command, data, dtype, commands):
    """Packets of 4 by their time step; a result for each combination of the kept loops."""
    behind = commands[next(i for i, c in enumerate(commands) if c is command) + 1:]
    counts = []
    for c in behind:
        if c["op"] != "valid_count":
            break
        counts.append(c)
    f, loops, results = command["f"], command["t"], {}
    splits = any(c["op"] == "vector_width" and c["f"]["kind"] == 0 for c in commands)
    for packet in range(len(data) // 4):
        valid = lanes_that_count(counts, at.unit % SLICES, packet // 2 if splits else packet)  # noqa: F821
        valid = max(0, min(4, valid - (packet % 2 * 4 if splits else 0)))
        key, step = [], packet
        for loop in reversed(loops):
            if not loop["reduced"]:
                key.append(step % loop["size"])
            step //= loop["size"]
        cells = results.setdefault(tuple(reversed(key)), [[] for _ in range(4)])
        for lane in range(valid):
            cells[0 if f["tree"] else lane].append(data[packet * 4 + lane])
    out = []
    for key in sorted(results):
        for lane in range(4):
            hidden = f["tree"] and lane > 0
            out.append(UNKNOWN if hidden else fold(at.ring, f["operation"], results[key][lane]))  # noqa: F821
    return out, dtype


def arrives(here, unit, command, commands):
    """All elements that come to the reduction over slices in a slice; None: it does not send."""
    key = ("slices", unit)
    if key not in here.m.gathered:
        at = next(i for i, c in enumerate(commands) if c is command)
        there = type(here)(here.m, unit)
        there.recording = command
        senders = set(here.m.senders)
        for c in commands[:at]:
            if c["op"] == "switch":
                senders = {u for u in range(len(senders) and max(senders) // SLICES * SLICES + SLICES) if masked(c, u % SLICES)}  # noqa: F821
        if unit in senders:
            there.run(commands[:at + 1])
            here.m.gathered[key] = there.recorded
        else:
            here.m.gathered[key] = None
    return here.m.gathered[key]


def masked(command, slice_):
    return command["f"][f"out_slices_{slice_ // 64}"] >> slice_ % 64 & 1


def slices(at, command, data, dtype, commands):
    """Packets of 8: each is folded from the packets of one step in all slices of the group."""
    if getattr(at, "recording", None) is command:
        at.recorded = list(data)
        return data, dtype
    f, loops, me = command["f"], command["t"], at.unit % SLICES  # noqa: F821
    first = at.unit - me % f["ring"]
    sent = [d for d in (arrives(at, first + i, command, commands) for i in range(f["ring"])) if d is not None]
    packets = 1
    for loop in loops:
        packets *= 1 if loop["place"] else loop["size"]
    out = []
    for packet in range(packets):
        step, rest = 0, packet
        for loop in reversed(loops):
            if loop["place"]:
                step += me % f["ring"] // loop["place"] % loop["size"] * loop["stride"]
            else:
                step += rest % loop["size"] * loop["stride"]
                rest //= loop["size"]
        out += [fold(at.ring, f["operation"], [d[step * 8 + lane] for d in sent]) for lane in range(8)]
    return out, dtype


def receivers(units, command):
    return dict(units, **{f"slices_{i}": command["f"][f"out_slices_{i}"] for i in range(4)})


RECEIVERS = {"vector_slices": receivers}
STAGES = {"vector_slices": slices, "vector_reduce": reduce, "valid_count": same, "vector": begin, "vector_tag": tag, "vector_unzip": unzip, "vector_zip": zipped, "vector_compare": compare, "vector_guard": guard,
          "vector_read": read, "vector_stash": aside, "vector_op": operation, "vector_width": width, "vector_final": same}
