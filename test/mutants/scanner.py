"""Small changes of C text, found token by token: each is one that a tired author might have made.

Only bodies of functions are changed, and numbers in initialisers; never comments, strings, preprocessor lines or assertions. What looks
right to a scanner and is not (a `*` that declares a pointer) does not compile, and is counted apart.
"""
import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<line>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
  | (?P<text>[LuU8]*"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S | re.M)

COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=", ">=", "<="), "!=": ("==", ">", "<")}
OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "%=": "/=", "|=": "&=", "&=": "|=", "++": "--", "--": "++", "<<=": ">>=", ">>=": "<<="}
CONNECTIVES = {"&&": "||", "||": "&&"}
NOT_OPERANDS = {"return", "case", "sizeof", "else", "do", "goto"}
NO_STATEMENTS = NOT_OPERANDS | {"if", "for", "while", "switch", "break", "continue", "default", "static", "const", "struct", "enum", "union",
                               "typedef", "extern", "unsigned", "signed", "assert", "static_assert", "_Static_assert"}
ALLOCATIONS = {"ARENA_ARRAY", "arena_alloc", "malloc", "calloc", "realloc"}
ASSERTIONS = {"assert", "static_assert", "_Static_assert"}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    at: int
    line: int

    @property
    def end(self):
        return self.at + len(self.text)


@dataclass(frozen=True)
class Mutant:
    operator: str  # the kind of change
    line: int
    at: int  # bytes of the text in front of it
    before: str
    after: str

    def apply(self, text):
        assert text[self.at:self.at + len(self.before)] == self.before
        # The lines that follow keep their numbers: __LINE__ must not be a difference.
        return text[:self.at] + self.after + "\n" * (self.before.count("\n") - self.after.count("\n")) + text[self.at + len(self.before):]


def tokens(text):
    found, line, last = [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        if match.lastgroup not in ("skip", "line"):
            found.append(Token(match.lastgroup, match.group(), match.start(), line))
    return found


def partners(listed):
    """Index of each bracket -> that of the other one."""
    found, open_ = {}, []
    for i, token in enumerate(listed):
        if token.kind == "sign" and token.text in "([{":
            open_.append(i)
        elif token.kind == "sign" and token.text in ")]}" and open_:
            found[i] = open_.pop()
            found[found[i]] = i
    return found


class Scan:
    def __init__(self, text):
        self.text, self.tokens = text, tokens(text)
        self.partner = partners(self.tokens)
        self.found = []
        self.heads = []  # where the heads of the loops so far end
        self.room = 0  # where the last allocation's arguments end: more room is no bug

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def change(self, operator, first, last, after):
        """The tokens from first to last become `after`."""
        a, b = self.tokens[first], self.tokens[last]
        before = self.text[a.at:b.end]
        if before != after:
            self.found.append(Mutant(operator, a.line, a.at, before, after))

    def is_operand_end(self, i):
        token = self.tokens[i] if i >= 0 else None
        return token is not None and (token.kind == "number" or token.kind == "text" or (token.kind == "name" and token.text not in NOT_OPERANDS)
                                      or token.text in (")", "]"))

    def declares(self, i):
        """Whether `name *` at i is the beginning of a declaration: the name begins a statement or a parameter."""
        return self.word(i - 1) in (";", "{", "}", "(", ",", "const", "static", "struct", "enum") and self.tokens[i - 1].kind != "number" and \
            self.tokens[i - 1].text != "static" or self.word(i - 2) in ("const", "static", "struct")

    def operand(self, i, step):
        """The index of the last token of the simple operand at i in direction step: a number, or names with . -> [] and calls."""
        last = None
        while 0 <= i < len(self.tokens):
            token = self.tokens[i]
            if token.kind == "number" and last is None:
                return i
            if token.kind == "name" and token.text not in NO_STATEMENTS:
                last = i
                following = self.word(i + step)
                if step > 0 and following in ("(", "["):
                    while self.word(i + 1) in ("(", "[") and i + 1 in self.partner:
                        last = i = self.partner[i + 1]
                    following = self.word(i + 1)
                if following not in (".", "->"):
                    return last
                i += 2 * step
            elif step < 0 and token.text in (")", "]") and i in self.partner:
                i = self.partner[i] - 1
                if i < 0 or self.tokens[i].kind != "name" or self.tokens[i].text in NO_STATEMENTS:
                    return None
            else:
                return None
        return None

    def number(self, i):
        token = self.tokens[i]
        match = re.fullmatch(r"(\d+)([uUlL]*)", token.text)
        if match and (match[1] == "0" or match[1][0] != "0"):
            value = int(match[1])
            if self.room <= i:
                self.change("constant", i, i, f"{value + 1}{match[2]}")
            if value > 1:
                self.change("constant", i, i, f"{value - 1}{match[2]}")
            elif value == 1:
                self.change("constant", i, i, f"0{match[2]}")
        elif re.fullmatch(r"0[xX][0-9a-fA-F]+[uUlL]*", token.text):
            self.change("constant", i, i, f"({token.text} ^ 1)")
        elif "." in token.text or "e" in token.text:
            self.change("constant", i, i, f"(2 * {token.text})")

    def operator(self, i):
        token = self.tokens[i]
        if token.text in COMPARISONS:
            for other in COMPARISONS[token.text]:
                self.change("comparison", i, i, other)
        elif token.text in CONNECTIVES:
            self.change("condition", i, i, CONNECTIVES[token.text])
        elif token.text in ASSIGNMENTS:
            self.change("operator", i, i, ASSIGNMENTS[token.text])
        elif token.text == "!" and self.word(i + 1) != "!":
            self.change("condition", i, i, " ")
        elif token.text in OPERATORS and self.is_operand_end(i - 1):
            if token.text == "*" and self.tokens[i - 1].kind == "name" and self.declares(i - 1):
                return
            self.change("operator", i, i, OPERATORS[token.text])
            if token.text in "-/%":
                left, right = self.operand(i - 1, -1), self.operand(i + 1, 1)
                if left is not None and right is not None and self.word(i + 1) not in ("(", "-"):
                    a, b = self.text[self.tokens[left].at:self.tokens[i - 1].end], self.text[self.tokens[i + 1].at:self.tokens[right].end]
                    self.change("operands", left, right, f"{b} {token.text} {a}")

    def condition(self, i):
        """if (C), while (C)"""
        if self.word(i + 1) != "(" or i + 1 not in self.partner:
            return
        end = self.partner[i + 1]
        if end <= i + 2:
            return
        inside = self.text[self.tokens[i + 2].at:self.tokens[end - 1].end]
        self.change("condition", i + 2, end - 1, "false" if len(inside) < 5 else f"!({inside})")
        self.change("condition", i + 2, end - 1, "0")
        if self.word(i) == "if":
            self.change("condition", i + 2, end - 1, "1")

    def member(self, i):
        """x.a and x->a: another member that was asked of a value of this name just before or after."""
        if self.word(i - 1) not in (".", "->") or self.tokens[i - 2].kind != "name" or self.word(i + 1) == "(":
            return
        base = self.word(i - 2), self.word(i - 1)
        others = []
        for j in range(max(2, i - 120), min(len(self.tokens), i + 120)):
            if (self.word(j - 2), self.word(j - 1)) == base and self.word(j) not in others + [self.word(i)] and self.word(j + 1) != "(":
                others.append(self.word(j))
        for other in others[:3]:
            self.change("member", i, i, other)

    def arguments(self, i):
        """f(.., a, b, ..): two simple arguments side by side."""
        if self.word(i + 1) != "(" or i + 1 not in self.partner or self.word(i) in NO_STATEMENTS:
            return
        end, j, parts = self.partner[i + 1], i + 2, []
        begin = j
        while j <= end:
            if self.word(j) == "," and self.tokens[j].kind == "sign" or j == end:
                parts.append((begin, j - 1))
                begin = j + 1
            j = self.partner[j] + 1 if self.word(j) in ("(", "[", "{") and j in self.partner and j < end else j + 1
        for (a, b), (c, d) in zip(parts, parts[1:]):
            if a <= b and c <= d and all(self.operand(x, 1) == y and self.tokens[x].kind != "text" for x, y in ((a, b), (c, d))):
                left, right = (self.text[self.tokens[x].at:self.tokens[y].end] for x, y in ((a, b), (c, d)))
                self.change("operands", a, d, f"{right}, {left}")

    def statement(self, i, end):
        """A call or an assignment that is a statement of its own, from i: dropped."""
        if self.heads and self.heads[-1] > i or self.word(i - 1) not in (";", "{", "}", ")", "else", ":") or self.tokens[i].kind != "name" and self.word(i) != "*":
            return
        if self.word(i) in ("break", "continue") and self.word(i + 1) == ";":
            self.change("statement", i, i, "")
            return
        if self.word(i) in NO_STATEMENTS or self.tokens[i + 1].kind == "name" or self.word(i) != "*" and self.word(i + 1) in ("*", ":"):
            return
        j = i
        while j < end and self.word(j) != ";":
            if self.word(j) in ("{", ")"):  # the head of a for ends with a bracket
                return
            j = self.partner[j] + 1 if self.word(j) in ("(", "[") and j in self.partner else j + 1
        if j < end and (self.word(i + 1) == "(" or any(self.word(k) == "=" or self.word(k) in ASSIGNMENTS for k in range(i, j))):
            self.change("statement", i, j - 1, "(void)0")

    def body(self, first, last):
        i = first
        while i < last:
            token = self.tokens[i]
            if token.text in ALLOCATIONS and i + 1 in self.partner:
                self.room = self.partner[i + 1]
            if token.text == "for" and i + 1 in self.partner:
                self.heads.append(self.partner[i + 1])
            if token.text in ASSERTIONS and i + 1 in self.partner:
                i = self.partner[i + 1] + 1
                continue
            self.statement(i, last)
            if token.kind == "number":
                self.number(i)
            elif token.kind == "sign":
                self.operator(i)
            elif token.text in ("if", "while"):
                self.condition(i)
            elif token.text in ("true", "false"):
                self.change("constant", i, i, "false" if token.text == "true" else "true")
            elif token.kind == "name":
                self.member(i)
                self.arguments(i)
            i += 1

    def all(self):
        i = 0
        while i < len(self.tokens):
            if self.word(i) == "{" and self.tokens[i].kind == "sign" and i in self.partner:
                end = self.partner[i]
                if self.word(i - 1) == ")":
                    self.body(i + 1, end)
                elif self.word(i - 1) == "=":
                    for j in range(i + 1, end):
                        if self.tokens[j].kind == "number":
                            self.number(j)
                i = end
            i += 1
        return self.found


def mutants(text):
    return Scan(text).all()
