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


def edited(rng, text):
    """(begin, end, what comes there): most edits are as one types them, inside of a body."""
    kind, at = rng.random(), rng.randrange(len(text) + 1)
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


def run(rounds, seed):
    known = files()
    for number in range(rounds):
        rng = random.Random(seed * 1000003 + number)
        text, edits = text_of(rng, known), []
        with Server() as server, Server() as fresh:
            server.open(text, URI)
            for _ in range(12):
                if rng.random() < 0.25 and edits: # what was wrong is mended: the text as it was before
                    edit = (edits[-1][0], edits[-1][0] + len(edits[-1][2]), edits[-1][3])
                else:
                    edit = edited(rng, text)
                edits.append((*edit, text[edit[0]:edit[1]]))
                try:
                    text, said = apply(server, text, edit)
                    compare(rng, server, fresh, text, said, edits)
                except lsp_session.Fault as fault:
                    raise SystemExit(f"round {number} of seed {seed}: {fault}\n{edits[-1]}")
    print(f"{rounds} texts, 12 edits each: as if just opened")


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 6 * lsp_session.visa_tools.LONGER, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
