"""Mapping expressions by enumeration: an evaluator that shares nothing with ir/.

A mapping is a function from positions to tensor indices. `parse` turns the text inside m![..] into that function
and its size, following the published constructors literally; nothing is normalised, so what it says about a
mapping that visac printed is independent of how visac works with mappings."""
import re

TOKEN = re.compile(r"\s*(?:([A-Za-z_][A-Za-z_0-9]*)|(\d+)|(.))")


class MappingError(ValueError):
    pass


class Mapping:
    """size, and at(i): {axis: coordinate} without zero coordinates, or None for padding."""

    def __init__(self, size, at):
        self.size, self._at = size, at

    def raw(self, i):
        return self._at(i) if 0 <= i < self.size else None


class _Parser:
    def __init__(self, text, axes):
        self.axes = axes
        self.tokens = [match.group().strip() for match in TOKEN.finditer(text) if match.group().strip()]
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise MappingError(f"expected {wanted or 'a token'}, got {token or 'the end'}")
        self.at += 1
        return token

    def mapping(self):
        left = self.postfix()
        if self.peek() != ",":
            return left
        self.take(",")
        right = self.mapping()
        n = right.size

        def pair(i):
            a, b = left.raw(i // n), right.raw(i % n)
            if a is None or b is None:
                return None
            out = dict(a)
            for axis, value in b.items():
                out[axis] = out.get(axis, 0) + value
            return out
        return Mapping(left.size * n, pair)

    def postfix(self):
        m = self.primary()
        while self.peek() in ("/", "%", "=", "#"):
            operator, n = self.take(), int(self.take())
            m = self.apply(m, operator, n)
        return m

    @staticmethod
    def apply(m, operator, n):
        if n < 1 or (operator in "/%" and m.size % n):
            raise MappingError(f"{operator} {n} of a mapping with {m.size} positions")
        if (operator == "=" and n > m.size) or (operator == "#" and n < m.size):
            raise MappingError(f"{operator} {n} of a mapping with {m.size} positions")
        if operator == "/":
            return Mapping(m.size // n, lambda i: m.raw(i * n))
        return Mapping(n, m.raw)

    def primary(self):
        token = self.take()
        if token in "([":
            m = self.mapping()
            self.take(")" if token == "(" else "]")
            return m
        if token == "1":
            return Mapping(1, lambda i: {})
        if token not in self.axes:
            raise MappingError(f"unknown axis {token}")
        return Mapping(self.axes[token], lambda i: {token: i} if i else {})


def parse(text, axes):
    parser = _Parser(text, axes)
    m = parser.mapping()
    if parser.peek():
        raise MappingError(f"{parser.peek()} after the mapping")
    live = m.raw

    def at(i):
        index = live(i)
        if index is None or any(value >= axes[axis] for axis, value in index.items()):
            return None
        return {axis: value for axis, value in index.items() if value}
    return Mapping(m.size, at)


def size(text, axes):
    return parse(text, axes).size


def equal(left, right, axes):
    a, b = parse(left, axes), parse(right, axes)
    return a.size == b.size and all(a.raw(i) == b.raw(i) for i in range(a.size))


def walk(entries):
    """Addresses of a loop nest of (size, stride), outermost first."""
    addresses = [0]
    for count, stride in entries:
        addresses = [a + i * stride for a in addresses for i in range(count)]
    return addresses
