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


def begin(at, command, data, dtype):
    at.stash = []
    return data, dtype


def aside(at, command, data, dtype):
    at.stash = list(data)
    return data, dtype


def operation(at, command, data, dtype):
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


def width(at, command, data, dtype):
    at.stash = packets(command["f"]["kind"], at.stash)
    return packets(command["f"]["kind"], data), dtype


def packets(kind, data):
    if kind == 1:  # trim
        return [x for at in range(0, len(data), 8) for x in data[at:at + 4]]
    if kind == 3:  # pad
        return [x for at in range(0, len(data), 4) for x in data[at:at + 4] + [UNKNOWN] * 4]  # noqa: F821
    return data


STAGES = {"vector": begin, "vector_tag": lambda _, command, data, dtype: (data, dtype), "vector_stash": aside, "vector_op": operation, "vector_width": width, "vector_final": lambda _, command, data, dtype: (data, dtype)}
