#!/usr/bin/env python3
"""The TextMate grammar of editors/vscode against the compiler's own tables.

Every pattern compiles; what the grammar includes exists; every keyword of the scanner, stage, tensor and element type has its
colour in a text of its own; and all examples and cases are read to their end with every comment, string and m![..] closed."""
import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

FOLDER = os.path.join(visa_tools.SOURCE, "editors", "vscode")


def read(*parts):
    with open(os.path.join(visa_tools.SOURCE, *parts), encoding="utf-8") as f:
        return f.read()


class Grammar:
    """As much of TextMate's machine as the grammar uses: match, begin/end with patterns, include."""

    def __init__(self, rules):
        self.repository, self.patterns = rules["repository"], rules["patterns"]
        self.compiled, self.lists = {}, {}

    def regex(self, text):
        if text not in self.compiled:
            self.compiled[text] = re.compile(text, re.M)
        return self.compiled[text]

    def rules(self, patterns, seen=()):
        """With every include replaced by what it names."""
        for p in patterns:
            name = p.get("include")
            if name is None and ("match" in p or "begin" in p):
                yield p
            elif name is None:
                yield from self.rules(p["patterns"], seen)
            elif name not in seen:
                target = self.repository[name[1:]]
                yield from self.rules([target], seen + (name,))

    def scopes(self, text):
        """[(begin, end, scope)] and the scopes that are still open at the end. Line by line, as editors do it."""
        found, open_rules, begin = [], [], 0
        for line in text.splitlines(keepends=True):
            at = 0
            while (step := self.step(line, at, open_rules)) is not None:
                m, rule = step
                if rule is None:
                    open_rules.pop()
                else:
                    found.append((begin + m.start(), begin + m.end(), rule.get("name", "")))
                    for number, capture in {**rule.get("captures", {}), **rule.get("beginCaptures", {})}.items():
                        found.append((begin + m.start(int(number)), begin + m.end(int(number)), capture["name"]))
                    if "begin" in rule:
                        open_rules.append(rule)
                at = m.end() + (m.end() == m.start())
            begin += len(line)
        return found, [r.get("name", "") for r in open_rules]

    def step(self, line, at, open_rules):
        """The next match and its rule; None for the rule: the innermost one ends. None: nothing more in this line."""
        top = open_rules[-1] if open_rules else None
        best = self.regex(top["end"]).search(line, at) if top else None
        rule = None
        for r in self.listed(top):
            m = self.regex(r.get("match") or r["begin"]).search(line, at)
            if m and (best is None or m.start() < best.start()):
                best, rule = m, r
        return None if best is None else (best, rule)

    def listed(self, top):
        if id(top) not in self.lists:
            self.lists[id(top)] = list(self.rules(top.get("patterns", []) if top else self.patterns))
        return self.lists[id(top)]


def main():
    failures = []

    def check(condition, *what):
        if not condition:
            failures.append(" ".join(str(w) for w in what))

    rules = json.loads(read("editors", "vscode", "syntaxes", "vm.tmLanguage.json"))
    package = json.loads(read("editors", "vscode", "package.json"))
    json.loads(read("editors", "vscode", "language-configuration.json"))
    source, bundle = re.match(r"esbuild (\S+) .*--outfile=(\S+)$", package["scripts"]["build"]).groups()
    check(os.path.normpath(package["main"]) == os.path.normpath(bundle), "package.json runs", package["main"], "and builds", bundle)
    for path in [source, package["contributes"]["languages"][0]["configuration"], package["contributes"]["grammars"][0]["path"]]:
        check(os.path.exists(os.path.join(FOLDER, path)), "package.json names", path)
    check(package["contributes"]["grammars"][0]["scopeName"] == rules["scopeName"], "scope names differ")
    grammar = Grammar(rules)

    def every(node):
        if isinstance(node, dict):
            for key in ("match", "begin", "end"):
                if key in node:
                    grammar.regex(node[key])
            if "include" in node:
                check(node["include"][1:] in grammar.repository, "include of", node["include"])
            for kid in node.values():
                every(kid)
        elif isinstance(node, list):
            for kid in node:
                every(kid)

    every(rules)

    def coloured(text, word, scope):
        at = text.index(word)
        got = {name for begin, end, name in grammar.scopes(text)[0] if (begin, end) == (at, at + len(word))}
        check(any(name.startswith(scope) for name in got), repr(text), "gives", word, got, "and not", scope)

    keywords = [w for w in re.findall(r'\{"(\w+)", T_', read("frontend", "token.c")) if w != "_"]
    stages = sorted(set(re.findall(r'^FORM(?:_ON)?\(\w+, [^"]*"(\w+)"', visa_tools.engine_rows(), re.M)) - {"from_addr", "new"})  # which are called on a type
    tensors = re.findall(r'^TENSOR\(\w+, "(\w+)"', read("ir", "tensor.def"), re.M)
    dtypes = re.findall(r'^DTYPE\(\w+, "(\w+)"', read("target", "dtype.def"), re.M)
    check(len(keywords) > 30 and len(stages) > 10 and len(tensors) > 8 and len(dtypes) > 6, "the tables are not found")
    for word in keywords:
        coloured(f"; {word} ;", word, ("keyword", "constant.language", "variable.language"))
    for word in stages:
        coloured(f"x.{word}::<_>(y)", word, "support.function.stage")
    for word in tensors:
        coloured(f"a: &{word}<", word, "support.type.tensor")
    for word in dtypes:
        coloured(f"fetch::<{word}, _>", word, "storage.type.element")
    coloured("m![A, Kk / 16]", "Kk", "variable.other.axis")
    coloured("m![A #{!} 16]", "#{!}", "keyword.operator.padding")
    coloured("m![{Chip}, A]", "Chip", "entity.name.type")
    coloured("axes![Ab = 8]", "Ab", "variable.other.axis")
    coloured("fn matmul(", "matmul", "entity.name.function")
    coloured("/* a /* b */ c */ let", "let", "keyword")
    coloured('"// no" 0x1f_usize', "0x1f_usize", "constant.numeric")

    paths = glob.glob(os.path.join(visa_tools.SOURCE, "examples", "*.vm"))
    paths += [p for p in glob.glob(os.path.join(visa_tools.SOURCE, "test", "cases", "*.vm")) if "refused" not in p and "unended" not in p]
    for path in sorted(paths):
        found, left = grammar.scopes(read(path))
        check(not left, os.path.basename(path), "leaves open", left)
        check(sum(name == "meta.mapping.vm" for _, _, name in found) == len(re.findall(r"\bm\s*!\s*[\[({]", re.sub(r'//.*|"[^"]*"', "", read(path)))),
              os.path.basename(path), "has other mappings")
    for failure in failures:
        print("FAIL ", failure)
    words = len(keywords) + len(stages) + len(tensors) + len(dtypes)
    print(f"{words} words, {len(paths)} files; {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
