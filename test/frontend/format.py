#!/usr/bin/env python3
"""The formatter's promise: the same tokens and comments, the same program, and formatting twice changes nothing.

What must stay is judged by a scanner of this file's own, character by character: a text without white space outside of
strings, with its comments, is the same before and after. Texts: every case, example and listing, each also squeezed into
few lines, torn into many, with comments put between its tokens, with CRLF, and with random damage, where the formatter
either refuses and prints nothing or keeps its promise."""
import glob
import os
import random
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

TOKEN = re.compile(rb"""//[^\n]*|[bc]?r(#*)".*?"\1|"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\[^\n])'|[A-Za-z_0-9]+|\s+|.""", re.S)


def block_comment_end(text, at):
    depth = 0
    while at < len(text):
        if text.startswith(b"/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith(b"*/", at):
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    return at


def pieces(text):
    """Tokens and comments in order; a comment's lines lose the blanks at their ends."""
    found, at = [], 3 if text.startswith(b"\xef\xbb\xbf") else 0
    while at < len(text):
        if text.startswith(b"/*", at):
            end = block_comment_end(text, at)
        else:
            end = TOKEN.match(text, at).end()
        piece = text[at:end]
        if piece[:2] in (b"//", b"/*"):
            piece = b"\n".join(line.rstrip() for line in piece.split(b"\n"))
        if not piece.isspace():
            found.append(piece)
        at = end
    return found


def fmt(text):
    return visa_tools.run(["visac", "--format", "-"], stdin=text)


def program(text, folder):
    """What the text means: its tree, and its binary."""
    path = os.path.join(folder, f"{random.getrandbits(64):x}.bin")
    tree = visa_tools.run(["visac", "--emit=ast", "-"], stdin=text)
    visa_tools.run(["visac", "-o", path, "-"], stdin=text)
    # The tree keeps an attribute's text, with its blanks.
    items = re.sub(rb"#!?\[[^\]]*\]", lambda m: b"".join(m[0].split()), tree.out)
    return items, path


def same_binary(one, other):
    """But for the source lines. Commands of one line may be a loop where those of two are none: then those that are run are compared."""
    if not (os.path.exists(one) and os.path.exists(other)):
        return os.path.exists(one) == os.path.exists(other)
    words = [re.sub(rb"line \d+", b"line", visa_tools.run(["visa-objdump", path]).out) for path in (one, other)]
    if words[0] == words[1]:
        return True
    rest = [re.sub(rb"(?m)^  (?:main|sub|dma) context, .*\n(?:    .*\n)*|, offset 0x.*", b"", w) for w in words]
    told = visa_tools.run(["visac", "diff", one, other]).out
    return rest[0] == rest[1] and told and not re.sub(rb"kernel .*\n  the same commands\n", b"", told)


def same_program(text, other, folder):
    one, two = program(text, folder), program(other, folder)
    same = one[0] == two[0] and same_binary(one[1], two[1])
    for _, path in (one, two):
        if os.path.exists(path):
            os.remove(path)
    return same


def broken_promise(text, folder):
    """None, or what is wrong."""
    done = fmt(text)
    if visa_tools.Result(done.status, b"", done.err).crashed: # a comment may well speak of a crash
        return "crash: " + done.text()[:500]
    if done.status:
        return "refused, and printed something" if done.out or not done.err else None
    if pieces(text) != pieces(done.out):
        for a, b in zip(pieces(text), pieces(done.out)):
            if a != b:
                return f"{a!r} became {b!r}"
        return "tokens were lost or added"
    again = fmt(done.out)
    if again.out != done.out:
        for a, b in zip(done.out.split(b"\n"), again.out.split(b"\n")):
            if a != b:
                return f"formatting twice: {a!r} became {b!r}"
        return "formatting twice changes the end"
    if re.search(rb"[ \t]$", re.sub(rb'"[^"]*"', b'""', done.out), re.M) and not re.search(rb"match|while|loop|macro|struct|impl|enum|static", text):
        return "blanks at the end of a line"
    if folder and not same_program(text, done.out, folder):
        return "another program"
    return None


def squeezed(text):
    return b" ".join(p + b"\n" if p.startswith(b"//") else p for p in pieces(text))


def torn(text):
    return b"\n".join(pieces(text))


def commented(text, rng):
    out = []
    for piece in pieces(text):
        out.append(piece)
        out.append(rng.choice([b" ", b" ", b" ", b" ", b" ", b"\n", b" // c\n", b" /* d */ ", b"\n\n// e\n\n", b"\n/* f\n   g */\n", b" /* h */\n"]))
    return b"".join(out)


def damaged(text, rng):
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        cut = rng.randrange(6)
        put = rng.choice([b"", b"", b"(", b")", b"{", b"}", b"<", b">", b"//", b"/*", b"*/", b'"', b";", b",", b" - ", b"\n", b"&", b"::", b"if ", b"let ", b".x()", b"=", b"# "])
        text = text[:at] + put + text[at + cut:]
    return text


def variants(text, rng):
    yield "as it is", text, True
    yield "squeezed", squeezed(text), True
    yield "torn", torn(text), True
    yield "CRLF", text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), False
    for _ in range(visa_tools.few(1)):
        yield "commented", commented(text, rng), False
    for _ in range(visa_tools.few(3)):
        yield "damaged", damaged(text, rng), False


# rustfmt's habits that the layout follows, as "before", "after".
LAYOUTS = [
    (b"axes![A=8,B =16] ;fn f( x:&T , y : & mut U )->V{ }\n", b"axes![A = 8, B = 16];\nfn f(x: &T, y: &mut U) -> V {}\n"),
    (b"type M=m ! [ A,B/2%4#8,$( C : 2 , D:1 ),{Chip},A# { 0 }16 ];\n", b"type M = m![A, B / 2 % 4 # 8, $(C:2, D:1), {Chip}, A #{0} 16];\n"),
    (b"fn f(){let x=a . b( 1 );}\n", b"fn f() {\n    let x = a.b(1);\n}\n"),
    (b"fn f(){\n\n\nlet a=-1;\n\n\n\nlet b=a- -1;\n\n}\n", b"fn f() {\n    let a = -1;\n\n    let b = a - -1;\n}\n"),
    (b"fn f(){if a<b{c}else{d}let x=if a<b{c}else{d};}\n",
     b"fn f() {\n    if a < b {\n        c\n    } else {\n        d\n    }\n    let x = if a < b { c } else { d };\n}\n"),
    (b"fn f(){for i in 0..4{g(i,);}}\n", b"fn f() {\n    for i in 0..4 {\n        g(\n            i,\n        );\n    }\n}\n"),
    (b"#[device(chip=1)] pub(crate) fn f<'l,const T:Tu>(x:A<'l,{T},m![1]>){}\n",
     b"#[device(chip = 1)]\npub(crate) fn f<'l, const T: Tu>(x: A<'l, { T }, m![1]>) {}\n"),
    (b"fn f(){let a=1;// one\nlet bcd=2;// two\n}\n", b"fn f() {\n    let a = 1; // one\n    let bcd = 2; // two\n}\n"),
    (b"fn f(){let a=1;  // one\nlet b=22; // two\n}\n", b"fn f() {\n    let a = 1; // one\n    let b = 22; // two\n}\n"),
    (b"fn f(){let a=10; // one\nlet bc=2; // two\n}\n", b"fn f() {\n    let a = 10; // one\n    let bc = 2; // two\n}\n"),
    (b"fn f(){\nlet a=1;   // one\nlet bcd=2; // two\n}\n", b"fn f() {\n    let a = 1;   // one\n    let bcd = 2; // two\n}\n"),
    (b"fn f() {\n    let x = ctx.main.begin(a.view()).fetch::<bf16, m![M], m![K]>().collect::<m![M, K / 16], m![K % 16]>();\n}\n",
     b"fn f() {\n    let x = ctx.main\n        .begin(a.view())\n        .fetch::<bf16, m![M], m![K]>()\n        .collect::<m![M, K / 16], m![K % 16]>();\n}\n"),
    (b"fn f<const N: usize>(a: &HbmTensor<bf16, m![1], m![A, B]>, bbbbbbbbb: &HbmTensor<bf16, m![1], m![A, B]>) where N: X, {}\n",
     b"fn f<const N: usize>(\n    a: &HbmTensor<bf16, m![1], m![A, B]>,\n    bbbbbbbbb: &HbmTensor<bf16, m![1], m![A, B]>\n)\nwhere N: X,\n{}\n"),
    (b"const N: usize = 1000000000000000000 * (2000000000000 + 3000000000000) - 40000000000000 + 5000000000000;\n",
     b"const N: usize =\n    1000000000000000000 * (2000000000000 + 3000000000000) - 40000000000000 + 5000000000000;\n"),
    (b"#! [ allow ( a,b :: c ) ]\nfn f(){#[expect(x,reason=\"y\")]let a=! b;}\n",
     b"#![allow(a, b::c)]\nfn f() {\n    #[expect(x, reason = \"y\")]\n    let a = !b;\n}\n"),
    (b"\xef\xbb\xbfuse a::{b,c as d,*};\n", b"\xef\xbb\xbfuse a::{b, c as d, *};\n"),
    (b"fn f(){\r\n}\r\n// x\r\n", b"fn f() {}\r\n// x\r\n"),
    (b"", b""),
    (b"\n\n// only\n\n", b"// only\n"),
]


def sources():
    """Examples, cases and published listings."""
    paths = sorted(glob.glob(os.path.join(visa_tools.SOURCE, "examples", "*.vm")) + glob.glob(os.path.join(visa_tools.SOURCE, "test", "cases", "*.vm")))
    if visa_tools.shared("seeds", "listings"):
        paths += sorted(glob.glob(os.path.join(visa_tools.shared("seeds", "listings"), "*.vm")))
    return paths


def main():
    rng = random.Random(1)
    paths = sources()
    failures = []
    for before, after in LAYOUTS:
        done = fmt(before)
        if done.out != after:
            failures.append(f"{before!r}\n  wanted {after!r}\n  got    {done.out!r} {done.err!r}")
    work = []
    paths = paths[::visa_tools.every(3)]
    for path in paths:
        with open(path, "rb") as f:
            text = f.read()
        # A case file holds many programs, each after a line of its own: as a whole most are one text that parses.
        for kind, variant, whole in variants(text, rng):
            work.append((os.path.basename(path), kind, variant, whole))
    formatted = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for (name, kind, text, _), wrong in zip(work, pool.map(lambda w: broken_promise(w[2], folder if w[3] else None), work)):
            formatted += wrong is None
            if wrong:
                failures.append(f"{name}, {kind}: {wrong}")
                if os.environ.get("KEEP"):
                    with open(os.path.join(os.environ["KEEP"], f"{len(failures)}-{name}"), "wb") as f:
                        f.write(text)
    for path in sources():
        if os.path.basename(os.path.dirname(path)) == "examples" and visa_tools.run(["visac", "--format-check", path]).status:
            failures.append(f"{path} is not in its canonical layout: visac --format {path} -o {path}")
    accepted = sum(fmt(text).status == 0 for _, kind, text, _ in work if kind == "as it is")
    if accepted < len(paths) // 2:
        failures.append(f"only {accepted} of {len(paths)} texts can be formatted")
    for failure in failures:
        print("FAIL ", failure)
    print(f"{len(LAYOUTS) + len(work) - len(failures)} passed, {len(failures)} failed; {accepted} of {len(paths)} files parse")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
