"""The Vector Engine as docs/isa.md, docs/engine/vector.md and docs/math.md say it, for the machine over a field in Python
(test/field/field_machine.py).

Sums, differences and products are the ring's; any other operation is a function of its operands, a keyed hash of its code in math.md and
of their values, one after the other. Each operation of the engine is written here as such an expression, in postfix: a, b and c are its
operands, a number in decimal a constant, in hexadecimal a code."""

MASK, PRIME = (1 << 64) - 1, (1 << 61) - 1
SUM, LESS, TIMES, FUSED, NEGATIVE = ("0x10", "0x30"), ("0x11", "0x31"), ("0x12", "0x32"), ("0x34",), ("0x17", "0x35")
ARITY = {1: "0x17 0x18 0x23 0x35 0x36 0x3a 0x40 0x41 0x42 0x43 0x44 0x45 0x64 0x65".split(), 3: "0x34 0x5e 0x5f".split()}
EXPRESSIONS = {
    0x10: "a b 0x20", 0x11: "a b 0x21", 0x12: "a b 0x22", 0x13: "a b 0x24", 0x14: "a b 0x25", 0x15: "a b 0x26",
    0x18: "a 0x64 b 0x64 0x20 0x65", 0x19: "a 0x64 b 0x64 0x21 0x65", 0x1a: "a 0x64 b 0x64 0x22 0x65",
    0x20: "a b 0x10", 0x21: "a b 0x13", 0x22: "a b 0x11", 0x23: "a b 0x14", 0x24: "a b 0x24",
    0x25: "b 31 0x54 a 1 b 0x24 0x15 a 1073741824 0x15 4 0x15 0x5e", 0x26: "a b 0x16", 0x27: "a b 0x12", 0x28: "a b 0x25", 0x29: "a b 0x26",
    0x30: "a b 0x62", 0x31: "a b 0x63", 0x32: "a 0x65", 0x33: "a 0x64",
    0x40: "a 0x40", 0x41: "a 0x35 0x40", 0x42: "a 0x3a", 0x43: "a 0x42", 0x44: "a 0x43", 0x45: "a 0x41", 0x46: "a 0x44", 0x47: "a 0x45",
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


def begin(at, command, data, dtype, *_):
    at.stash = []
    return data, dtype


def aside(at, command, data, dtype, *_):
    at.stash = list(data)
    return data, dtype


def operation(at, command, data, dtype, *_):
    f, ring = command["f"], at.ring
    to = "f32" if f["operation"] in FLOATS else "i32"
    if not hasattr(ring, "seed"):  # polynomials have no other functions
        return [UNKNOWN] * len(data), to  # noqa: F821
    is_float = dtype == "f32" and f["operation"] != 0x31
    given = [None, constant(ring, f["constant1"], is_float), constant(ring, f["constant2"], is_float)]
    out = []
    for i, x in enumerate(data):
        if f["stash"]:
            given[1] = at.stash[i]
        operands = {name: given[f[name]] if f[name] else x for name in "abc"}
        out.append(evaluate(ring, EXPRESSIONS[f["operation"]], operands))
    return out, to


def width(at, command, data, dtype, *_):
    at.stash = packets(command["f"]["kind"], at.stash)
    return packets(command["f"]["kind"], data), dtype


def packets(kind, data):
    if kind == 1:  # trim
        return [x for at in range(0, len(data), 8) for x in data[at:at + 4]]
    if kind == 3:  # pad
        return [x for at in range(0, len(data), 4) for x in data[at:at + 4] + [UNKNOWN] * 4]  # noqa: F821
    return data


def same(at, command, data, dtype, *_):
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
STAGES = {"vector_slices": slices, "vector_reduce": reduce, "valid_count": same,"vector": begin, "vector_tag": same, "vector_stash": aside, "vector_op": operation, "vector_width": width, "vector_final": same}
