#!/usr/bin/env python3
"""The public kernels and the chapters of the public book, as far as visac takes them.

    VISA_CORPUS=DIRECTORY test/corpus.py [--page FILE]

DIRECTORY holds `furiosa-visa-examples/src` and `docs/src` of the public repository as of April 2026; nothing of it is part
of this one. Every file and every Rust block is a unit. Each is read by visac; the table counts the constructs of the
language in them, and how many of the units with a construct visac parses and compiles. Without VISA_CORPUS the test
is skipped. It fails when visac crashes, when a kernel-relevant unit does not parse, or when docs/coverage.md is not
what the runs give (--page writes it)."""
import collections
import glob
import json
import os
import re
import sys

import visa_tools

PAGE = os.path.join(visa_tools.SOURCE, "docs", "coverage.md")
SYNTAX = {"E-LEX", "E-DELIMITER", "E-PARSE", "E-MAP-SYNTAX", "E-NESTING"}

Unit = collections.namedtuple("Unit", "part place text ids")  # ids: of its errors, in order

TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|'[A-Za-z_]\w*(?!')|[A-Za-z_]\w*|\d[\w]*(?:\.\d\w*)?|::|->|=>|\.\.=?|==|!=|<=|<<|&&|\|\||\S""", re.S)

LIBRARY = re.compile(r"\b(struct|enum|impl|trait|self|Self)\b|\b(assert_eq|assert) ! \(|# \[ test \]|type \w+ <|[<,] [A-Z]\w* : (?!Tu\b)[A-Z]")

CONSTRUCTS = [
    ("use", r"\buse (?=[\w:{])"), ("use: glob", r"\buse [^;]*\* ;"), ("use: rename", r"(?<=\w )as \w+ (?=[,};])"), ("use: group", r"\buse [^;]*\{"),
    ("extern crate", r"\bextern crate "), ("inner attribute", r"# ! \["), ("outer attribute: device", r"# \[ device "),
    ("outer attribute: others", r"# \[ (?!device )"), ("axes!", r"\baxes ! "), ("m! type", r"\bm ! "), ("type alias", r"\btype \w+ ="),
    ("fn", r"\bfn \w+"), ("return type", r"\) ->"), ("&T in types", r": & (?:'\w+ )?(?!mut )"), ("&mut T in types", r": & (?:'\w+ )?mut "),
    ("lifetime", r"'[A-Za-z_]\w*"), ("const parameter", r"[<,] const \w+ :"), ("{Enum::Variant} argument", r"[<,] \{ \w+ (?::: \w+ )*\}"),
    ("mod foo;", r"\bmod \w+ ;"), ("mod foo {}", r"\bmod \w+ \{"), ("pub", r"\bpub (?!\()"), ("pub(crate), pub(super)", r"\bpub \("),
    ("let", r"\blet "), ("let with a type", r"\blet (?:mut )?\w+ :"), ("let mut", r"\blet mut "), ("assignment", r"[;{}] [a-z_]\w* = "),
    ("method call", r"\. [a-z_]\w* (?:\(|:: <)"), ("method call with type arguments", r"\. [a-z_]\w* :: <"), ("`_` argument", r"[<,] _ (?=[,>])"),
    ("integer argument", r"[<,] \d\w* (?=[,>])"), ("type arguments on a path", r"(?<!\. )\b[A-Z]\w* :: <"), ("function call", r"(?<![.!] )(?<!\bfn )\b[a-z_]\w* \("),
    ("path of several segments", r"\b\w+ :: (?=\w)"), ("field", r"(?<=[\w)\]] )\. [a-z_]\w* (?!\(|::)"), ("& borrow", r"[(,=] & (?!mut |')"), ("&mut borrow", r"[(,=] & mut "),
    ("struct literal", r":: [A-Z]\w* \{ \w+ :"), ("unsafe block", r"\bunsafe \{"), ("integer", r"(?<![\w.])\d\w*(?![\w.])"), ("hexadecimal", r"\b0x\w+"),
    ("float", r"\b\d+\.\d\w*|\b\d+f(?:32|64)"), ("bool", r"\b(?:true|false)\b"), ("arithmetic * + - / % <<", r"(?<=[\w)\]] )(?:\*|\+|-|/|%|<<) (?=[\w(<])"),
    ("comparison == <", r"(?<=[\w)\]] )== |\bif \w+ <"), ("if", r"\bif "), ("else", r"\belse "), ("for", r"\bfor [\w(]"), ("range", r"\.\. "), ("tuple pattern", r"\blet \(|\bfor \("),
    ("array", r"[(=,&] \[ "), ("const item", r"[;{}\]] (?:pub )?const \w+ :"), ("dereference", r"[(,=] (?:& (?:mut )?)?\* \w"), ("async fn", r"\basync fn "), (".await", r"\. await\b"),
]


def tokens_of(text, book):
    """The text's tokens with one blank between them; mappings are emptied, so that their operators do not count as arithmetic."""
    if book:
        text = re.sub(r"^([ \t]*)#(?=[ \t\r#]|$)", r"\1 ", text, flags=re.M)
    flat = " ".join(t for t in TOKEN.findall(text) if not t.startswith(("//", "/*"))) + " "
    return re.sub(r"\bm ! \[ (?:[^\[\]]|\[[^\[\]]*\])*\] ", "m ! [ ] ", flat)


def errors_of(result):
    return [d for d in json.loads(result.err) if d["severity"] == "error" and d["file"]]


def run(arguments):
    result = visa_tools.run(["visac", "--diagnostics-format=json", "-ferror-limit=0", *arguments], timeout=600)
    if result.crashed or result.status == 124:
        sys.exit(f"visac {' '.join(arguments)}: status {result.status}\n{result.text()[-2000:]}")
    return result


def examples(root):
    """Each file is parsed alone; its types are judged in the crate that it is a module of."""
    base = os.path.join(root, "furiosa-visa-examples", "src")
    in_crate = collections.defaultdict(list)
    for d in errors_of(run([os.path.join(base, "lib.rs"), "--emit=ir"])):
        in_crate[os.path.realpath(d["file"])].append(d["id"])
    for path in sorted(glob.glob(os.path.join(base, "**", "*.rs"), recursive=True)):
        alone = [d["id"] for d in errors_of(run([path, "--emit=ir"])) if d["file"] == path and d["id"] in SYNTAX]
        with open(path, encoding="utf-8") as file:
            yield Unit("examples", os.path.relpath(path, root), file.read(), alone or in_crate[os.path.realpath(path)])


def chapters(root):
    base = os.path.join(root, "docs", "src")
    for path in sorted(glob.glob(os.path.join(base, "**", "*.md"), recursive=True)):
        result = run(["--from-markdown", path])
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        starts = [int(n) for n in re.findall(r"^.*?:(\d+): (?:accepted|refused)", result.out.decode(), re.M)]
        errors = errors_of(result)
        for start in starts:
            end = next(i for i in range(start - 1, len(lines)) if lines[i].lstrip().startswith(("```", "~~~")) or i + 1 == len(lines))
            ids = [d["id"] for d in errors if start <= d["range"]["begin"]["line"] <= end + 1]
            yield Unit("book", f"{os.path.relpath(path, root)}:{start}", "\n".join(lines[start - 1:end]), ids)


def parses(unit):
    return not SYNTAX.intersection(unit.ids)


def kind_of(unit):
    """"include", "pseudo", "library" or "kernel"."""
    if "{{#include" in unit.text:
        return "include"
    if re.search(r"\.\.\.(?!\w)(?![^\n]*\*/)", re.sub(r"//[^\n]*", "", unit.text)) or not parses(unit):
        return "pseudo"
    return "library" if unit.part == "book" and LIBRARY.search(tokens_of(unit.text, True)) else "kernel"


def share(part, total):
    return f"{part} of {total}" if total else "-"


def table(units):
    flat = [(u, tokens_of(u.text, u.part == "book")) for u in units]
    yield "| construct | examples: uses / files | book: uses / blocks | parsed by visac | accepted by visac |"
    yield "|---|---|---|---|---|"
    for name, pattern in CONSTRUCTS:
        found = [(u, len(re.findall(pattern, text))) for u, text in flat]
        cells = [f"{sum(n for u, n in found if u.part == part)} / {sum(n > 0 for u, n in found if u.part == part)}" for part in ("examples", "book")]
        having = [u for u, n in found if n]
        yield (f"| {name.replace('|', chr(92) + '|')} | {cells[0]} | {cells[1]} | {share(sum(map(parses, having)), len(having))} | "
               f"{share(sum(not u.ids for u in having), len(having))} |")


def page(units):
    kinds = collections.Counter((u.part, kind_of(u)) for u in units)
    relevant = [u for u in units if kind_of(u) == "kernel"]
    waiting = [u for u in relevant if "E-UNSUPPORTED" in u.ids]
    judged = [u for u in relevant if u.ids and "E-UNSUPPORTED" not in u.ids]
    yield "# Coverage of the published kernels\n"
    yield "How much of the public examples and of the public book of April 2026 visac takes. The numbers are counted from runs,"
    yield "one for each file and each Rust block; the texts are not part of this repository. The page is made by\n"
    yield "```sh\nVISA_CORPUS=DIRECTORY test/corpus.py --page docs/coverage.md\n```\n"
    yield "where DIRECTORY holds `furiosa-visa-examples/src` and `docs/src` of the public repository. The test `corpus` compares"
    yield "it when VISA_CORPUS is set, and skips otherwise. One case file for each construct runs always (`test/cases/syntax-*.vm`).\n"
    yield "| part | units | kernels | library code | pseudo-code | includes of files |\n|---|---|---|---|---|---|"
    for part in ("examples", "book"):
        yield f"| {part} | {sum(u.part == part for u in units)} | " + " | ".join(str(kinds[part, kind]) for kind in ("kernel", "library", "pseudo", "include")) + " |"
    yield f"\nOf the {len(relevant)} kernel-relevant units visac parses {sum(map(parses, relevant))}. It accepts {sum(not u.ids for u in relevant)} as they stand."
    yield f"{len(waiting)} use something that is refused by name as not supported ([E-UNSUPPORTED](diagnostics.md)): mostly the Vector,"
    yield f"Switch and Transpose Engines. The other {len(judged)} break a rule; their first errors, by rule:\n"
    yield "| rule | units |\n|---|---|"
    for rule, count in sorted(collections.Counter(u.ids[0] for u in judged).items(), key=lambda c: (-c[1], c[0])):
        yield f"| {rule} | {count} |"
    yield "\nThe table counts the units that are neither includes nor pseudo-code. Uses are counted on tokens, without what stands"
    yield "inside `m![..]`. A unit is accepted when visac has no error for it, parsed when none of its errors is one of syntax.\n"
    yield from table([u for u in units if kind_of(u) in ("kernel", "library")])


def main(arguments):
    root = os.environ.get("VISA_CORPUS")
    if not root:
        print("skipped: VISA_CORPUS does not name the public corpus")
        return visa_tools.SKIPPED
    units = [*examples(root), *chapters(root)]
    text = "\n".join(page(units)) + "\n"
    unparsed = [u.place for u in units if kind_of(u) == "kernel" and not parses(u)]
    if "-v" in arguments:
        for u in units:
            print(u.place, kind_of(u), dict(collections.Counter(u.ids)))
    if "--page" in arguments:
        with open(arguments[arguments.index("--page") + 1], "w") as file:
            file.write(text)
        return 0
    for place in unparsed:
        print(f"{place} does not parse")
    with open(PAGE) as file:
        same = file.read() == text
    if not same:
        print("docs/coverage.md is not what the runs give: write it with --page docs/coverage.md")
    print(f"{len(units)} units")
    return 1 if unparsed or not same else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
