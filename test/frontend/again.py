#!/usr/bin/env python3
"""visa-lsp after random edits answers as one that has just been started: what it recalls of a text is what it would find again.

Usage: again.py [ROUNDS] [SEED]. Texts of several kernels, from examples and case files; after every edit diagnostics and answers of a server that
has seen all of them are compared with those of a document that was opened with the text as it is now."""
import os
import pathlib
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lsp_session
from lsp_session import Server, check

SOURCE = pathlib.Path(lsp_session.visa_tools.SOURCE)
URI = "untitled:again.vm"
HELPERS = """
fn helper<const N: usize>(x: usize) -> usize { x + N }
fn %s_copy(device: &mut Device, x: &HbmTensor<bf16, m![1], m![1]>) -> HbmTensor<bf16, m![1], m![1]> { x.to_hbm(&mut device.tdma) }
const WIDE: usize = helper::<2>(3);
"""
# Kernels that need functions, one after the other and each other's.
CALLED = """
mod called%d {
axes![Q = 256, R = 16];
type S = m![Q];
fn first<const N: usize>(device: &mut Device, x: &HbmTensor<i8, m![1], m![Q, R]>) -> DmTensor<i8, m![1], m![1 # 2], S, m![R]> {
    let size = N + 1;
    x.to_dm(&mut device.tdma)
}
fn second<E: M>(device: &mut Device, x: &HbmTensor<i8, m![1], m![Q, R]>) -> DmTensor<i8, m![1], m![1 # 2], S, E> {
    let y = first::<3>(device, x);
    device.main.begin(y.view()).fetch::<m![1], m![R]>().collect().commit_trim::<m![R]>().commit()
}
#[device(chip = 1)]
fn one(device: &mut Device, x: &HbmTensor<i8, m![1], m![Q, R]>) -> HbmTensor<i8, m![1], m![Q, R]> {
    let y = second::<m![R]>(device, x);
    y.to_hbm(&mut device.tdma)
}
#[device(chip = 1)]
fn two(device: &mut Device, x: &HbmTensor<i8, m![1], m![Q, R]>) -> HbmTensor<i8, m![1], m![R, Q]> {
    let y = first::<4>(device, x);
    y.to_hbm(&mut device.tdma)
}
#[device(chip = 1)]
fn three(device: &mut Device, x: &HbmTensor<i8, m![1], m![Q, R]>) -> HbmTensor<i8, m![1], m![Q, R]> {
    let y: DmTensor<i8, m![1], m![1 # 2], S, m![R]> = x.to_dm(&mut device.tdma);
    y.to_hbm(&mut device.tdma)
}
}
"""
# What reaches a kernel by way of other items: aliases of aliases, constants of constants, imports, functions, errors that several kernels share.
FAR = """
axes![Q = 256, R = 16, S = 4];
const A: usize = 16;
const B: usize = A;
type E = m![R];
type F = E;
type T = m![Q];
mod inner { use super::*; pub type G = m![R]; }
use inner::G as H;
const WRONG: usize = 32;
fn helper(device: &mut Device, x: &HbmTensor<i8, m![1], m![Q, R]>) -> DmTensor<i8, m![1], m![1 # 2], m![Q], F> {
    x.to_dm(&mut device.tdma)
}
"""
KERNEL = """
#[device(chip = 1)]
fn %s(device: &mut Device, x: &HbmTensor<i8, m![1], m![Q, R]>) -> HbmTensor<i8, m![1], m![Q, R]> {
    let y%s = %s;
    y.to_hbm(&mut device.tdma)
}
"""
USES = {"alias": "F", "constant": "m![R % { B }]", "import": "H", "bad": "m![R % { WRONG }]", "worse": "m![R % { WRONG }]", "plain": "m![R]", "typo": "m![Rs]", "two": "F", "shared": "m![Q / 16 % S]"}
STEPS = [("R = 16", "R = 24"), ("A: usize = 16", "A: usize = 4"), ("A: usize = 16", "A: usize = "), ("type E = m![R]", "type E = m![R % 8]"), ("pub type G = m![R]", "pub type G = m![R % 8]"),
         ("WRONG: usize = 32", "WRONG: usize = 1 / 0"), ("type T = m![Q];", "axes![Rss = 4, Rt = 2];\ntype T = m![Q];"), ("S = 4", "S = 1"), ("as H", "as K"), ("x.to_dm(&mut device.tdma)\n}", "x\n}"),
         ("type F = E;\n", ""), ("mod inner", "mod outer"), ("fn plain", "fn two"), ("R = 16, S = 4", "S = 4, R = 16"), ("type F = E;", "type F = m![Missing];"), ("const B: usize = A", "const B: usize = C")]
PIECES = ["{", "}", "(", ")", "[", "]", "/*", "*/", "//", "\"", "'", ";", ",", "\n", " ", "#", "m![", "let x = 1;", "const N: usize = 2;", "fn f() {}", "}\nfn g() {",
          "mod q {", "axes![Q = 3];", "use a::b;", "type T = m![1];", "helper::<1>(2);", "for i in 0..2 {", "macro_rules! m { () => { 1 } }", "m!()", "ä", "\r\n", "#[stream]",
          ".fetch::<m![1], m![1]>()", "return;", "_", "\\", "0x", "\f"]


def files():
    found = sorted(SOURCE.glob("examples/*.vm")) + sorted(SOURCE.glob("test/cases/*.vm"))
    return [f for f in found if 300 < f.stat().st_size < 9000]


def text_of(rng, known):
    """Kernels of some files, each file a module or not; what collides is part of it."""
    out = []
    for i in range(rng.randint(2, 5)):
        text = rng.choice(known).read_text(encoding="utf-8")
        out.append(f"mod part{i} {{\n{text}\n}}\n" if rng.random() < 0.8 else text)
    if rng.random() < 0.3:
        out.insert(rng.randint(0, len(out)), HELPERS % rng.choice("abc"))
    for i in range(rng.choice((0, 0, 1, 2))):
        out.insert(rng.randint(0, len(out)), CALLED % i)
    return "".join(out)


def edited(rng, text, outside):
    """(begin, end, what comes there): most edits are as one types them, inside of a body; or as often as said, of what stands outside of all."""
    kind, at = rng.random(), rng.randrange(len(text) + 1)
    outer = [m for m in re.finditer(r"(?m)^(axes!|type|const|use|pub).*$", text)]
    if rng.random() < outside and outer:
        line = rng.choice(outer)
        words = [m for m in re.finditer(r"\w+|[^\w\s]", line.group())]
        word = rng.choice(words)
        begin, end = line.start() + word.start(), line.start() + word.end()
        other = rng.choice(["1", "2", "16", "32", "m![1]", ""] + [w.group() for w in words] + [m.group() for m in re.finditer(r"\w+", rng.choice(outer).group())])
        pick = rng.random()
        if pick < 0.7:
            return begin, end, other
        if pick < 0.85:
            return line.start(), line.end() + 1, rng.choice(["", line.group() + "\n" + rng.choice(outer).group() + "\n"])
        return line.start(), line.start(), rng.choice(["axes![Fresh = 8];\n", "axes![Unit = 1];\n", "pub ", "const NEW: usize = 3;\n", "type Own = m![1];\n", "#[allow(x)]\n",
                                                       "fn added(device: &mut Device, x: &HbmTensor<i8, m![1], m![1]>) -> HbmTensor<i8, m![1], m![1]> { x.to_hbm(&mut device.tdma) }\n"])
    words = [m for m in re.finditer(r"\w+", text)]
    if kind < 0.35:
        word = rng.choice(words)
        return word.start(), word.end(), rng.choice(words).group() if rng.random() < 0.8 else ""
    if kind < 0.5:
        mark = rng.choice([m for m in re.finditer(r"[^\w\s]", text)])
        return mark.start(), mark.end(), rng.choice(["", rng.choice(PIECES), mark.group() * 2])
    if kind < 0.75:
        return at, at, rng.choice(PIECES)
    if kind < 0.82:  # comments, often on a line of their own and outside of all functions
        at = rng.choice([m.end() for m in re.finditer(r"^|\n(?=[#a-z/\n]|$)", text)] + [at])
        return at, at, rng.choice(["// ", "// as it is\n", "\n", " // ä \"\n\n", "// a */ // b\n", "/* a\n", "//\r\n"])
    if kind < 0.9:
        lines = [m for m in re.finditer(r"[^\n]*\n", text)]
        line = rng.choice(lines)
        return line.start(), line.end(), rng.choice(["", line.group() * 2, rng.choice(lines).group() + line.group()])
    return at, min(len(text), at + rng.randint(1, 40)), ""


def place(text, offset):
    before = text[:offset]
    return {"line": before.count("\n"), "character": len(before[before.rfind("\n") + 1:].encode("utf-16-le")) // 2}


METHODS = ["hover", "definition", "completion", "signatureHelp", "references", "documentHighlight", "prepareRename", "inlayHint", "semanticTokens/full",
           "semanticTokens/range", "documentSymbol", "foldingRange", "codeAction", "prepareCallHierarchy", "formatting"]


def ask(server, method, text, begin, end):
    params = {"textDocument": {"uri": URI}, "position": place(text, begin), "range": {"start": place(text, begin), "end": place(text, end)},
              "context": {"diagnostics": []}, "options": {}}
    server.number += 1
    server.send({"jsonrpc": "2.0", "id": server.number, "method": f"textDocument/{method}", "params": params})
    answer = server.response(server.number)
    return answer.get("result", answer.get("error"))


def apply(server, text, edit):
    begin, end, new = edit
    server.notes.clear()
    said = server.change({"range": {"start": place(text, begin), "end": place(text, end)}, "text": new}, uri=URI)
    return text[:begin] + new + text[end:], said


def opened(fresh, text):
    fresh.tell("textDocument/didClose", {"textDocument": {"uri": URI}})
    fresh.ask("textDocument/hover", {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}, error=-32602)
    fresh.notes.clear()
    return fresh.open(text, URI)


def compare(rng, server, fresh, text, said, edits):
    def same(what, now, then):
        check(now == then, f"{what} after {edits}:\n{now}\nand of a document that was just opened:\n{then}\n----\n{text}")
    same("diagnostics", said, opened(fresh, text))
    near = edits[-1][0]
    for method in rng.sample(METHODS, 4):
        begin = min(len(text), max(0, near + rng.randint(-200, 200))) if rng.random() < 0.6 else rng.randrange(len(text) + 1)
        end = min(len(text), begin + rng.choice([0, 10, 400, 5000]))
        same(f"{method} at {begin}..{end}", ask(server, method, text, begin, end), ask(fresh, method, text, begin, end))


def far(first):
    """Steps that are taken back, each alone and while something else is wrong."""
    text = FAR + "".join(KERNEL % (name, f": DmTensor<i8, m![1], m![1 # 2], m![Q], {of}>", "x.to_dm(&mut device.tdma)") for name, of in USES.items())
    text += KERNEL % ("calling", "", "helper(device, x)")
    rng, done = random.Random(1), 0
    with Server(options=[f"--first-bytes={first}"]) as server, Server() as fresh:
        server.open(text, URI)
        plain = (text.index("m![R]>", text.index("fn plain")), "m![R]", "m![R % 3]")
        shared = (text.index("{ WRONG }", text.index("fn bad")), "{ WRONG }", "16")
        for wrong in (None, plain, shared, (text.index("32;"), "32;", "1 / 0;")):
            steps = [(text.index(old), old, new) for old, new in STEPS] + [plain, shared]
            edits = []
            for step in ([wrong] if wrong else []) + steps:
                at = step[0] + (len(wrong[2]) - len(wrong[1]) if edits and wrong[0] < step[0] else 0) if wrong else step[0]
                if not text.startswith(step[1], at):
                    continue
                for old, new in (step[1:], step[:0:-1])[:1 if step is wrong and not edits else 2]:
                    edits.append((at, at + len(old), new, old))
                    text, said = apply(server, text, edits[-1][:3])
                    compare(rng, server, fresh, text, said, edits)
                    done += 1
            if wrong:
                text, said = apply(server, text, (wrong[0], wrong[0] + len(wrong[2]), wrong[1]))
        check((server.put_off > 0) == (first > 0), server.put_off, "were put off")
        check(done > 100, "only", done, "edits fitted")


def run(rounds, seed):
    known, put_off = files(), 0
    try:
        for first in (0, 1):
            far(first)
    except lsp_session.Fault as fault:
        raise SystemExit(f"far: {fault}")
    for number in range(rounds):
        rng = random.Random(seed * 1000003 + number)
        gentle = number % 2 == 0 # nearly every edit is taken back, so that much is known when the next one comes
        text, edits = text_of(rng, [k for k in known if k.parent.name == "examples"] if gentle else known), []
        first = rng.choice(["0", "1", "400", "3000"]) # bytes
        with Server(options=[f"--first-bytes={first}"]) as server, Server() as fresh:
            server.open(text, URI)
            taken_back = False
            for _ in range(12):
                if edits and not taken_back and rng.random() < (0.9 if gentle else 0.25): # what was wrong is mended: the text as it was before
                    edit = (edits[-1][0], edits[-1][0] + len(edits[-1][2]), edits[-1][3])
                    taken_back = gentle
                else:
                    edit, taken_back = edited(rng, text, 0.7 if gentle else 0.2), False
                edits.append((*edit, text[edit[0]:edit[1]]))
                try:
                    text, said = apply(server, text, edit)
                    compare(rng, server, fresh, text, said, edits)
                except lsp_session.Fault as fault:
                    raise SystemExit(f"round {number} of seed {seed}: {fault}\n{edits[-1]}")
            put_off += server.put_off
    print(f"{rounds} texts, 12 edits each: as if just opened; {put_off} times something was put off")


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 6 * lsp_session.visa_tools.LONGER, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
