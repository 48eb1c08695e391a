"""The formulas of kernels-meaning.json that say what an element of a result is: `out[a,b] = wrap32(x[a,b] + v1[b]) ..`.

A formula is read up to the end of its expression; what follows (a remark in parentheses, after a comma or a semicolon) says nothing about values. An index that is a
name counts the axis of that name; the others count those axes of the tensor that no name counts, in the order of its mapping. Integers have no size but what wrap32 and
sat32 give them; f32 is rounded after each operation. Nothing of visac has a part in this."""
import fractions
import itertools
import math
import re
import struct

TOKENS = re.compile(r"0x[0-9a-fA-F]+|\d+\.\d+f?|\d+|[A-Za-z_]\w*|\S")
REDUCE = re.compile(r"(sum|max|satsum|fmin|fold)_(\w*)$")


class Unread(Exception):
    pass


class Unwritten(Exception):
    """Of a cell that the formula does not speak of."""


# ---- values ----

def f32(value):
    """The nearest f32."""
    value = float(value)
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def bits(value):
    return struct.unpack("<i", struct.pack("<f", value))[0]


def from_bits(code):
    return struct.unpack("<f", struct.pack("<I", code & 0xffffffff))[0]


def bf16(value):
    """The nearest bf16, ties to even, as an f32; a subnormal is a zero."""
    code = bits(f32(value)) & 0xffffffff
    if code & 0x7f800000 == 0x7f800000:
        return value
    code = (code + 0x7fff + (code >> 16 & 1)) & 0xffff0000
    return from_bits(code if code & 0x7f800000 else code & 0x80000000)


def e2m1(code):
    return (-1.0 if code & 8 else 1.0) * (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)[code & 7]


def wrap(n, value):
    return (int(value) + (1 << n - 1)) % (1 << n) - (1 << n - 1)


def saturate(value):
    if isinstance(value, float) and math.isnan(value):
        return 0
    return int(max(-(1 << 31), min((1 << 31) - 1, value)))


def half_away(value):
    return math.copysign(math.floor(abs(value) + 0.5), value) if math.isfinite(value) else value


def fma(a, b, c):
    """One rounding: the exact sum is rounded to f32 at once, not by way of a double."""
    if not all(math.isfinite(v) for v in (a, b, c)):
        return float(a) * float(b) + float(c)
    exact = fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)
    near = f32(float(exact))
    if exact == 0 or not math.isfinite(near):
        return near
    around = {near} | {from_bits(bits(near) + d) for d in (-1, 1)}
    return min((v for v in around if math.isfinite(v)), key=lambda v: (abs(fractions.Fraction(v) - exact), bits(v) & 1))


def divide(a, b):
    if not isinstance(a, float) and not isinstance(b, float):
        return a // b
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return f32(float(a) / float(b))


def rounded(exact):
    """f32 where an operand is one: sums and products of two f32 are rounded right by way of a double."""
    return lambda a, b: f32(exact(float(a), float(b))) if isinstance(a, float) or isinstance(b, float) else exact(a, b)


OPERATORS = [{"|": lambda a, b: a | b}, {"^": lambda a, b: a ^ b}, {"&": lambda a, b: a & b},
             {"+": rounded(lambda a, b: a + b), "-": rounded(lambda a, b: a - b)},
             {"*": rounded(lambda a, b: a * b), "/": divide, "%": lambda a, b: a % b}]

FUNCTIONS = {
    "i32": int, "f32": f32, "bf16": bf16, "f8e4m3": lambda v: v if isinstance(v, float) else e2m1(v), "i32sat": saturate, "sat32": saturate,
    "wrap32": lambda v: wrap(32, v), "i8wrap": lambda v: wrap(8, v), "fma": fma, "max": max, "min": min, "fmax": max, "fmin": min,
    "clamp": lambda v, low, high: max(low, min(high, v)), "round_half_away": half_away, "bits": bits, "f32_from_bits": from_bits,
    "sqrt": lambda v: f32(math.sqrt(v)) if v >= 0 else math.nan,
    "exp": lambda v: f32(math.exp(v)) if v < 89 else math.inf,
}

FOLDS = {"sum": (0, OPERATORS[3]["+"]), "max": (None, max), "fmin": (math.inf, min), "satsum": (0, lambda a, b: saturate(a + b))}


# ---- expressions: closures over {name: value} ----

class Reader:
    """`ports`: name to port; `axes`: name to size."""

    def __init__(self, text, ports, axes, read):
        self.text, self.ports, self.axes, self.read = text, ports, axes, read
        self.tokens, self.next = [(m.group(), m.end()) for m in TOKENS.finditer(text)], 0

    def peek(self):
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if wanted not in (None, token) or not token:
            raise Unread
        self.next += 1
        return token

    def rest(self):
        return self.text[self.tokens[self.next - 1][1]:].strip()

    def axis_of(self, name):
        """The axis that an index counts: of its name, or the only one that begins with its letter."""
        if name.upper() in self.axes:
            return name.upper()
        found = [a for a in self.axes if a[0] == name[0].upper()]
        return found[0] if len(found) == 1 and len(name) == 1 else None

    def expression(self, level=0, bars=True):
        if level == len(OPERATORS):
            return self.unary(bars)
        value = self.expression(level + 1, bars)
        while self.peek() in OPERATORS[level] and self.peek() and (bars or self.peek() != "|"):
            apply, left = OPERATORS[level][self.take()], value
            right = self.expression(level + 1, bars)
            value = lambda env, f=apply, a=left, b=right: f(a(env), b(env))
        return value

    def unary(self, bars):
        if self.peek() == "-":
            self.take()
            value = self.unary(bars)
            return lambda env: -value(env)
        return self.primary()

    def list_until(self, end):
        parts = []
        while self.peek() != end:
            parts.append(self.expression())
            if self.peek() == ",":
                self.take()
        self.take(end)
        return parts

    def primary(self):
        token = self.take()
        if token == "(":
            value = self.expression()
            self.take(")")
            return value
        if token == "|":
            value = self.expression(bars=False)
            self.take("|")
            return lambda env: abs(value(env))
        if token[0].isdigit():
            number = int(token, 0) if token.isdigit() or token.startswith("0x") else float(token.rstrip("f"))
            if self.peek()[:1].isalpha() and self.tokens[self.next][1] - len(self.peek()) == self.tokens[self.next - 1][1]:  # 96k
                value = self.primary()
                return lambda env: number * value(env)
            return lambda env: number
        if not (token[0].isalpha() or token[0] == "_"):
            raise Unread
        if REDUCE.match(token):
            return self.reduction(*REDUCE.match(token).groups())
        if self.peek() == "(" and token in FUNCTIONS:
            self.take()
            arguments = self.list_until(")")
            return lambda env: FUNCTIONS[token](*(a(env) for a in arguments))
        if token in self.ports:
            return self.element(self.ports[token])
        if self.peek() in ("(", "["):
            raise Unread
        return lambda env: self.variable(env, token)

    def variable(self, env, name):
        if name in env:
            found = env[name]
            return found(env) if callable(found) else found
        axis = self.axis_of(name)
        if axis is None:
            raise Unread
        return env.get(axis, 0)

    def indices(self, port):
        """[(axis, closure)] of `[..]`."""
        begin, parts = self.next, []
        self.take("[")
        while self.peek() != "]":
            if self.peek() == ":":
                parts.append((self.take(), None))
            else:
                at = self.next
                value = self.expression()
                parts.append((self.tokens[at][0] if self.next == at + 1 else "", value))
            if self.peek() == ",":
                self.take()
        self.take("]")
        assert begin < self.next
        named = [self.axis_of(n) if n[:1].isalpha() else None for n, _ in parts]
        named = [n if n in port.order else None for n in named]
        left = [n for n in port.order if n not in named]
        return [(n or (left.pop(0) if left else None), value) for n, (_, value) in zip(named, parts)]

    def element(self, port):
        if self.peek() != "[":
            return lambda env: self.read(port, env)
        parts = self.indices(port)

        def value(env):
            at = {a: env.get(a, 0) for a in port.order}
            at.update({a: index(env) for a, index in parts if a and index})
            return self.read(port, at)
        return value

    def reduction(self, fold, name):
        """sum_k BODY, sum_{a,b} BODY, sum_{b<2} BODY, fold_{r ascending} BODY of acc."""
        names = [name] if name else []
        if not names:
            self.take("{")
            while self.peek() != "}":
                token = self.take()
                if self.axis_of(token) and (not names or self.tokens[self.next - 2][0] == ","):
                    names.append(token)
            self.take("}")
        axes = [self.axis_of(n) for n in names]
        if not axes or None in axes:
            raise Unread
        body = self.expression(4)
        ranges = [range(self.axes[a]) for a in axes]

        def value(env):
            total = 0 if fold == "fold" else FOLDS[fold][0]
            for digits in itertools.product(*ranges):
                here = {**env, **dict(zip(names, digits)), **dict(zip(axes, digits)), "acc": total}
                one = body(here)
                total = one if fold == "fold" or total is None else FOLDS[fold][1](total, one)
            return total
        return value


def rewritten(text):
    """One spelling for what is spelled in several ways."""
    text = re.sub(r"^([\w ]+ Mode\d+( with [^:]*)?|same bytes under new names): ", "", text)
    text = re.sub(r"saturating sum over (\w)=0\.\.\d+ of ", r"satsum_\1 ", text)
    return re.sub(r"(fmin|max) over (\w), identity \S+", r"\1_\2 x", text)


def ended(rest):
    return not rest or rest[0] in ";,=([" or re.match(r"(where|for|in|from) ", rest)


def defined(text, make):
    """`a = i*16 + c, b = ..`, each an expression of the others' letters."""
    found = {}
    while True:
        reader = make(text)
        name = reader.take()
        reader.take("=")
        found[name] = reader.expression()
        text = reader.rest()
        if not re.match(r",\s*\w+ = ", text):
            return found
        text = text[1:]


def values_of(text, ports, out, axes, read):
    """at -> value of a cell of `out`; Unread if the text says it in another way."""
    text = rewritten(text)

    def make(t):
        return Reader(t, ports, axes, read)
    lets = {}
    while re.match(r"[a-z]\w* = ", text) and not text.startswith("out"):
        reader = make(text)
        name = reader.take()
        reader.take("=")
        lets[name] = reader.expression()
        text = reader.rest().partition(";")[2].strip()
    reader = make(text)
    reader.take("out")
    parts = reader.indices(out) if reader.peek() == "[" else []
    names = re.match(r"out(?:\[([^\]]*)\])?", text).group(1) or ""
    names = [n.strip() for n in names.split(",")]
    reader.take("=")
    if reader.peek() == "[":  # out[a,:] = [in[a,3], ..]
        reader.take()
        listed = reader.list_until("]")
        last = parts[-1][0]
        return lambda at: listed[at.get(last, 0)](at)
    value, rest = reader.expression(), reader.rest()
    if not ended(rest):
        raise Unread
    if rest.startswith("where "):
        given = defined(rest[len("where "):], make)
        if set(given) <= set(names):  # the result's indices of the operand's
            cells = {tuple(given[n](at) for n in names): read(ports["in"], at) for at in ports["in"].live}
            return lambda at: cells[tuple(at.get(a, 0) for a, _ in parts)]
        lets.update(given)
    bound = re.match(r"for (\w) ?(?:<|in 0\.\.) ?(\d+)", rest)
    if bound:
        letter, count = bound.group(1), int(bound.group(2))
        cells = {tuple(index({letter: n, **({(reader.axis_of(letter) or letter): n})}) for _, index in parts if mentions(names, parts, letter, index)): n for n in range(count)}
        counted = [a for a, index in parts if mentions(names, parts, letter, index)]

        def written(at):
            place = tuple(at.get(a, 0) for a in counted)
            if place not in cells:
                raise Unwritten
            return value({**at, **lets, letter: cells[place]})
        if counted:
            return written
    if any(not (n.isidentifier() or n == ":" or not n) for n in names):
        raise Unread
    return lambda at: value({**at, **lets})


def mentions(names, parts, letter, index):
    at = next(i for i, (_, value) in enumerate(parts) if value is index)
    return re.search(rf"(?<![A-Za-z_]){letter}\b", names[at]) is not None


def unwritten(at):
    raise Unwritten


# ---- meanings given in words ----

def windows(text, ports, out, axes, read):
    """out[2..258)=in[0..256); then ..: rows, the later write wins."""
    moves = [tuple(map(int, m)) for m in re.findall(r"out\[(\d+)\.\.(\d+)\)=in\[(\d+)\.\.\d+\)", text)]
    row = out.order[0]

    def value(at):
        for first, end, source in reversed(moves):
            if first <= at.get(row, 0) < end:
                return read(ports["in"], {**at, row: at.get(row, 0) - first + source})
        raise Unwritten
    return value


def split_fold(text, ports, out, axes, read):
    """out[s1,a] = fold over s0=0..3 of sat32(acc + x[4*s1+s0, a]), only s=4*s1+s0 < 15"""
    count, size, live = map(int, re.search(r"s0=0\.\.(\d).*x\[(\d)\*s1\+s0, a\]\), only .* < (\d+)", text).groups())
    assert count + 1 == size

    def value(at):
        total = 0
        for s0 in range(size):
            s = at.get("S", 0) // size * size + s0
            if s < live:
                total = saturate(total + read(ports["in"], {**at, "S": s}))
        return total
    return value


def marks(text, ports, out, axes, read):
    """x==0 -> 0x100; x==5 -> 5; other x<10 -> x | 0x200; x>1000 -> x | 0x400; else x"""
    def value(at):
        x = read(ports["in"], at)
        return 0x100 if x == 0 else 5 if x == 5 else x | 0x200 if x < 10 else x | 0x400 if x > 1000 else x
    return value


def branches(text, ports, out, axes, read):
    """by the sign of x, in the words of the entry; no NaN is drawn."""
    def value(at):
        x, scale = read(ports["in"], at), read(ports["scale"], at)
        return max(0.0, scale) if x == 0 else max(fma(x, -2.0, 10.0), scale) if x > 0 else 10.0
    return value


def one_row(text, ports, out, axes, read):
    """copies one row of a table into one row of another: the ports are the rows."""
    return lambda at: read(ports["in"], at)


WORDS = [
    (r"copies one row of a \[C,H\] table, chosen by a tile on the host, into one row of another", one_row),
    (r"windows of \d+ rows: ", windows),
    (r"out\[s1,a\] = fold over s0=", split_fold),
    (r"x==0 -> 0x100; x==5 -> 5; other x<10 -> x \| 0x200; x>1000 -> x \| 0x400; else x", marks),
    (r"per element, tags from the input x: zero -> max\(0, scale\); x>0 -> max\(fma\(x,-2,10\), scale\); x<0 -> .* -> max\(10, 1\)=10;", branches),
]


def meaning(text, inputs, outputs, axes, read):
    """[at -> value] for each output."""
    ports = {p.name: p for p in inputs}
    for name in ("in", "x", "input"):
        ports.setdefault(name, inputs[0])
    for i, p in enumerate(inputs[1:]):
        ports.setdefault(f"v{i + 1}", p)
        ports.setdefault("trf", p)
    if text.startswith("no output"):
        return [unwritten] * len(outputs)
    if text.startswith("by_ref = for_ref; by_view (first of 2 places of an outer padded digit) = for_view; returns for_return"):
        sources = [ports[{"by_ref": "for_ref", "by_view": "for_view"}.get(out.name, "for_return")] for out in outputs]
        return [lambda at, s=s: read(s, at) for s in sources]
    if len(outputs) != 1:
        raise Unread
    make = next((f for pattern, f in WORDS if re.match(pattern, text)), values_of)
    return [make(text, ports, outputs[0], axes, read)]
