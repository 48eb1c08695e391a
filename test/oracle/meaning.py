"""What a mapping expression means, straight from its definition.

map(i) is the tensor index at position i, or nothing for padding. An expression is a tree of tuples
(`("axis", name)`, `("one",)`, `("pair", left, right)`, `(operator, inner, n)`), and `table` writes map(0), map(1), ...
as a list by the recursive definition of each constructor; nothing is normalised or factorised, so this file shares no
reasoning with a compiler. An index is one integer, a field of FIELD bits per axis: adding indices adds coordinates axis
by axis. A coordinate that reaches the axis size makes the whole index dead (`Axes.live`): each field is tested by adding what
is missing from the size to the field's top bit, all fields at once.
"""
import re

FIELD = 24
MASK = (1 << FIELD) - 1
ONE = ("one",)
TOKEN = re.compile(r"\s*(?:([A-Za-z_][A-Za-z_0-9]*)|(\d+)|(\S))")


class MappingError(ValueError):
    pass


class Axes:
    """Names with sizes; which field of an index belongs to whom."""

    def __init__(self, sizes):
        self.sizes = dict(sizes)
        self.shift = {name: FIELD * i for i, name in enumerate(self.sizes)}
        self.fields = [(self.shift[name], size) for name, size in self.sizes.items()]
        self.top = sum(1 << shift + FIELD - 1 for shift, _ in self.fields)
        self.missing = sum((1 << FIELD - 1) - size << shift for shift, size in self.fields)

    def live(self, code):
        """Whether a sum of coordinates is an index of the tensor."""
        return code is not None and not code + self.missing & self.top

    def field(self, name):
        return MASK << self.shift[name]

    def show(self, code):
        if code is None:
            return "padding"
        parts = [f"{name}:{(code >> self.shift[name]) & MASK}" for name in self.sizes
                 if (code >> self.shift[name]) & MASK]
        return "{" + ", ".join(parts) + "}"


def axis(name):
    return ("axis", name)


def pair(*parts):
    """Right-associative list; without parts the identity."""
    parts = [p for p in parts if p is not None]
    if not parts:
        return ONE
    tree = parts[-1]
    for part in reversed(parts[:-1]):
        tree = ("pair", part, tree)
    return tree


def flatten(tree):
    """The comma-separated elements of a list."""
    return flatten(tree[1]) + flatten(tree[2]) if tree[0] == "pair" else [tree]


def size(tree, axes):
    kind = tree[0]
    if kind == "axis":
        return axes.sizes[tree[1]]
    if kind == "one":
        return 1
    if kind == "copies":
        return tree[1]
    if kind == "pair":
        return size(tree[1], axes) * size(tree[2], axes)
    return size(tree[1], axes) // tree[2] if kind == "/" else tree[2]


def check(tree, axes):
    """Raises MappingError where a static condition of a constructor is broken."""
    kind = tree[0]
    if kind == "axis":
        if tree[1] not in axes.sizes:
            raise MappingError(f"unknown axis {tree[1]}")
    elif kind == "pair":
        check(tree[1], axes)
        check(tree[2], axes)
    elif kind not in ("one", "copies"):
        check(tree[1], axes)
        inner, n = size(tree[1], axes), tree[2]
        if n < 1 or (kind in "/%" and inner % n) or (kind == "=" and n > inner) or (kind == "#" and n < inner):
            raise MappingError(f"{kind} {n} of a mapping with {inner} positions")


def table(tree, axes):
    """[map(0), map(1), ...], coordinates not yet checked against the axis sizes."""
    kind = tree[0]
    if kind == "axis":
        shift = axes.shift[tree[1]]
        return [i << shift for i in range(axes.sizes[tree[1]])]
    if kind == "one":
        return [0]
    if kind == "copies":
        return [0] * tree[1]
    if kind == "pair":
        right = table(tree[2], axes)
        out = []
        for a in table(tree[1], axes):
            if a is None:
                out += [None] * len(right)
            elif a == 0:
                out += right
            else:
                out += [None if b is None else a + b for b in right]
        return out
    inner, n = table(tree[1], axes), tree[2]
    if kind == "/":
        return inner[::n]
    if kind == "#":
        return inner + [None] * (n - len(inner))
    return inner[:n]


def at(tree, axes, i):
    """map(i) alone, for mappings that are too large to write down."""
    kind = tree[0]
    if not 0 <= i < size(tree, axes):
        return None
    if kind == "axis":
        return i << axes.shift[tree[1]]
    if kind in ("one", "copies"):
        return 0
    if kind == "pair":
        n = size(tree[2], axes)
        a, b = at(tree[1], axes, i // n), at(tree[2], axes, i % n)
        return None if a is None or b is None else a + b
    return at(tree[1], axes, i * tree[2] if kind == "/" else i)


def final(codes, axes):
    """The table with the overshooting sums dead."""
    missing, top = axes.missing, axes.top
    return [None if code is None or code + missing & top else code for code in codes]


def mentioned(codes, axes):
    """The fields of the axes that have a coordinate other than 0 at some live position."""
    union = 0
    for code in codes:
        if code is not None:
            union |= code
    keep = 0
    for shift, _ in axes.fields:
        if (union >> shift) & MASK:
            keep |= MASK << shift
    return keep


def text(tree, rename=None):
    kind = tree[0]
    if kind == "axis":
        return rename(tree[1]) if rename else tree[1]
    if kind in ("one", "copies"):
        return str(size(tree, None))
    if kind == "pair":
        left = text(tree[1], rename)
        return f"{'[' + left + ']' if tree[1][0] == 'pair' else left}, {text(tree[2], rename)}"
    inner = text(tree[1], rename)
    return f"{'[' + inner + ']' if tree[1][0] == 'pair' else inner} {kind} {tree[2]}"


class _Parser:
    def __init__(self, source):
        self.tokens = [m.group().strip() for m in TOKEN.finditer(source) if m.group().strip()]
        self.place = 0

    def peek(self):
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self):
        token = self.peek()
        if not token:
            raise MappingError("the mapping ends early")
        self.place += 1
        return token

    def mapping(self):
        left = self.postfix()
        if self.peek() != ",":
            return left
        self.take()
        return ("pair", left, self.mapping())

    def postfix(self):
        tree = self.primary()
        while self.peek() and self.peek() in "/%=#":
            tree = (self.take(), tree, int(self.take()))
        return tree

    def primary(self):
        token = self.take()
        if token in "([":
            tree = self.mapping()
            if self.take() != (")" if token == "(" else "]"):
                raise MappingError("brackets do not match")
            return tree
        if token == "1":
            return ONE
        if token.isdigit() and int(token) > 0:
            return ("copies", int(token))  # each position is the same cell
        if not token[0].isalpha():
            raise MappingError(f"unexpected {token}")
        return ("axis", token)


def parse(source):
    parser = _Parser(source)
    tree = parser.mapping()
    if parser.peek():
        raise MappingError(f"{parser.peek()} after the mapping")
    return tree


def equal(left, right, axes):
    """Same size and the same index at every position."""
    return size(left, axes) == size(right, axes) and final(table(left, axes), axes) == final(table(right, axes), axes)


# What the reference says equal mappings are (section 6.1 of the mapping reference), and two that are not.
EQUAL = [({"R": 5}, "R # 16 / 4", "1 # 2, [R # 8] / 4"), ({"R": 3}, "R # 64 / 8", "1 # 8"),
         ({"R": 3, "A": 5}, "R # 16 / 4, A", "A # 20"), ({"R": 3, "A": 5}, "R # 64 / 8, A", "A # 40"),
         ({"R": 5, "A": 5}, "R # 16 / 4, A", "[[[R # 8] / 4] # 4], A"), ({"A": 5}, "[A # 16 / 4] / 2", "1 # 2"),
         ({"R": 14}, "R # 16 / 4, R # 16 % 4", "R # 16"), ({"A": 8}, "A % 1", "1"), ({"A": 6}, "A / 3, A % 3", "A"),
         ({"A": 4, "B": 8}, "[A, B] / 8", "A"), ({"A": 4, "B": 8}, "[A, B] % 8", "B"), ({"B": 64}, "B / 32 = 1", "1")]
DIFFERENT = [({"A": 8}, "A / 4", "A % 2"), ({"R": 14}, "R # 16 / 4, R # 16 % 4", "1 # 16")]


def _self_test():
    for wanted, cases in ((True, EQUAL), (False, DIFFERENT)):
        for sizes, left, right in cases:
            axes = Axes(sizes)
            trees = parse(left), parse(right)
            for tree in trees:
                check(tree, axes)
                assert [at(tree, axes, i) for i in range(size(tree, axes))] == table(tree, axes), (left, right)
                assert parse(text(tree)) == tree, text(tree)
            assert equal(*trees, axes) == wanted, (left, right)


if __name__ == "__main__":
    _self_test()
    print(f"{len(EQUAL)} equal and {len(DIFFERENT)} different pairs of the reference agree")
