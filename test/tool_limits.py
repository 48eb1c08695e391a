#!/usr/bin/env python3
"""Every limit of the tools at its edge, from its row: what is at the limit is done, what is one beyond it is refused or cut, and a message says so.

The rows of support/limits.def are read, not repeated: each name has a function here that is given the row's value and makes both sides. (test/limits.py
does the same for the machine's.)"""
import json
import os
import re
import struct
import sys
import tempfile

import bounded
import limit_rows
import visa_tools

HEAD = "axes![A = 32, B = 2];\n"
ANY_TIME = "--time-limit=1000000"  # milliseconds: these limits are numbers of things, on a slow machine too
# A limit of time has no edge that two machines share: a libcheck program sees that the clock is looked at, ./visa bench what answers take.
LIMITS = limit_rows.Limits("support/limits.def", {"EDITOR_MILLISECONDS": "test/frontend/test_answers.c", "EDITOR_UNASKED_TIMES": "test/frontend/test_compile.c"})
limit = LIMITS.limit


# Numbers of steps, bytes and comparisons, the same in every build, which take long with sanitizers.
OF_WORK = {"COMPILE_STEPS_MAX", "COMPILE_BYTES_MAX", "RUN_CYCLES_MAX", "SUGGESTIONS_MAX"}


class Fault(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise Fault(" ".join(str(w) for w in what))


def visac(folder, text, *options):
    path = os.path.join(folder, "limit.vm")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = visa_tools.run(["visac", path, "-o", os.devnull, *options])
    return done.status, done.text()


def ids(text):
    return re.findall(r"error\[([A-Z0-9-]+)\]", text)


def same(what, ours, wanted):
    check(ours == wanted, f"{what}: {ours} and not {wanted}")


# ---- nesting, work, memory, cycles ----

@limit
def NESTING_MAX(most, folder):
    """Arrays of a file of tokens, and brackets of a source."""
    stream, tokens = os.path.join(folder, "s.bin"), os.path.join(folder, "tokens.json")
    path = os.path.join(folder, "s.vm")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#[stream]\nfn p(x: Stream<Tile<bf16, 16, 64>, {[4]}>) -> Stream<Tile<bf16, 16, 64>, {[4]}> {\n    x.map(silu)\n}\n")
    check(visa_tools.run(["visac", path, "-o", stream]).status == 0, "the stream program does not compile")
    for depth, over in ((most, False), (most + 1, True)):
        with open(tokens, "w", encoding="utf-8") as file:
            file.write("[" * depth + "]" * depth)
        said = ids(visa_tools.run(["visa-run", stream, "--input", f"x={tokens}"]).text())
        same(f"{depth} arrays in each other", "E-NESTING" in said, over)
        said = ids(visac(folder, HEAD + f"const C: usize = {'(' * depth}1{')' * depth};\n")[1])
        same(f"{depth} brackets in each other", said, ["E-NESTING" if over else "E-NO-KERNEL"])


def spent(text, unit):
    return int(re.search(rf"^ *(\d+) {unit}$", text, re.M)[1])


def of_a_compilation(most, folder, option, unit):
    """There is a least number that is enough, one less is not, and both are reported; the default is the row's, in both programs' words."""
    text = HEAD + bounded.KERNEL % "for i in 0..1000 { let x = i; }"
    least, takes = 0, spent(visac(folder, text, "--time-report")[1], unit) # that with the report itself
    same(f"{option}={takes}", visac(folder, text, f"{option}={takes}")[0], 0)
    while least + 1 < takes:
        middle = (least + takes) // 2
        least, takes = (least, middle) if visac(folder, text, f"{option}={middle}")[0] == 0 else (middle, takes)
    status, said = visac(folder, text, f"{option}={takes - 1}")
    same(f"{option}={takes - 1}", (status, ids(said)), (1, ["E-BUDGET"]))
    check(f"more than {takes - 1} {unit}" in said, said)
    for program in ("visac", "visa-lsp"):
        wanted = rf"{option}=N(?s:.{{0,160}}?)\(?default {most}\b"
        check(re.search(wanted, visa_tools.run([program, "--help"]).text()), program, "--help does not say that the default is", most)


@limit
def COMPILE_STEPS_MAX(most, folder):
    of_a_compilation(most, folder, "--max-steps", "steps")


@limit
def COMPILE_BYTES_MAX(most, folder):
    of_a_compilation(most, folder, "--max-bytes", "bytes")


def kernel_of_cycles(folder, cycles):
    """A binary that passes so many flits on, one in a cycle."""
    path, binary = os.path.join(folder, "c.vm"), os.path.join(folder, "c.bin")
    of = "CollectTensor<i8, m![1], m![1], m![1], m![T], m![P]>"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"axes![T = {cycles}, P = 32];\nfn k(input: {of}) -> {of} {{\n    input\n}}\n")
    check(visa_tools.run(["visac", path, "-o", binary]).status == 0, cycles, "cycles do not compile")
    return binary


@limit
def RUN_CYCLES_MAX(most, folder):
    """One more is refused; as many take gigabytes, and are told by limits that are given."""
    for cycles, options, over in ((most + 1, [], True), (500, ["--max-cycles=500"], False), (500, ["--max-cycles=499"], True)):
        done = visa_tools.run(["visa-run", kernel_of_cycles(folder, cycles), *options])
        check(options or f"may take {most}" in done.text(), "the default is not", most)
        same(f"{cycles} cycles {options}", (done.status, ids(done.text())), (1, ["E-RUN-CYCLES"]) if over else (0, []))


@limit
def RUN_CYCLES_ANNOUNCED(least, folder):
    for cycles, over in ((least - 1, False), (least, True)):
        # The length is announced before an input is read, and an empty one ends it there.
        said = visa_tools.run(["visa-run", kernel_of_cycles(folder, cycles), "--input", f"input={os.devnull}"]).text()
        check("E-TENSOR-FILE" in said, said)
        same(f"{cycles} cycles are announced", f"takes {cycles} cycles" in said, over)


# ---- what is shown ----

def errors(count):
    return HEAD + bounded.KERNEL % "".join(f"let x{i} = unknown{i};\n" for i in range(count))


@limit
def SHOWN_ERRORS_MAX(most, folder):
    for limit_of, options in ((most, []), (3, ["-ferror-limit=3"]), (1, ["-ferror-limit=1"])):
        for count in (limit_of, limit_of + 1):
            said = ids(visac(folder, errors(count), *options)[1])
            same(f"{count} errors {options}", (said.count("E-NAME"), said[limit_of:]), (limit_of, ["E-ERROR-LIMIT"] if count > limit_of else []))
    same("without a limit", ids(visac(folder, errors(most + 1), "-ferror-limit=0")[1]), ["E-NAME"] * (most + 1))


@limit
def SHOWN_LINE_MAX(most, folder):
    end = "type T = m![Unknown];" # far from the line's begin: of a longer line the begin is not shown
    for bytes_, whole in ((most, True), (most + 1, False)):
        line = "/*" + "x" * (bytes_ - len(end) - 4) + "*/" + end
        shown = re.search(r"^ +2 \| (.*)$", visac(folder, HEAD + line + "\n")[1], re.M)[1]
        same(f"a line of {bytes_} bytes is shown whole", line in shown, whole)
        check(end in shown, "the place is not shown")


@limit
def SHOWN_WORD_MAX(most, folder):
    for bytes_, whole in ((most, True), (most + 1, False)):
        word = "x" * bytes_
        said = visac(folder, HEAD + f"const C: usize = 1 {word};\n")[1].split("\n")[0]
        same(f"a word of {bytes_} bytes is repeated", (word in said, "a long name" in said), (whole, not whole))


@limit
def LISTED_MAX(most, folder):
    """The longest list that was ever seen has four; there is none that the row would cut, and none is longer."""
    seen = 4
    longest = 0
    words = ["axes![A", "type T = ", "const C: usize = 1 +", "fn f(", "fn f() -> ", "use a::", "mod", "fn f() { let x", "fn f() { for i", "type T = m![A", "type T = m![A = ", "pub", "#[", "fn f() { x.",
             "fn f() { if x", "fn f(x", "fn f(x: &", "type T = m![$(A", "const C: usize", "axes![A =", "fn f() { let x: [usize", "fn f() { g(1", "fn f() { [1", "struct"]
    for word in words:
        for token in (")", "]", "}", ";", "1", "=", "fn"):
            for listed in re.findall(r"expected (`.*?), found|expected (.*?), ", visac(folder, f"{word} {token}\n")[1]):
                text = listed[0] or listed[1]
                longest = max(longest, len(re.split(r", | or ", text)))
    same("tokens in the longest list", longest, min(seen, most))


@limit
def SUGGESTIONS_MAX(most, folder):
    """A name that is not known is compared with all names, as a variable and as a constant; the first constant is near. The n-th use finds it as long as a
    comparison is left when the constants' turn comes: (2 n - 1) times the names are less than the limit."""
    uses, turns = 150, 99
    edge = -(-most // turns)
    for names, found in ((edge - 1, (turns + 1) // 2), (edge, turns // 2)):
        text = ("const nearest: usize = 1;\n" + "".join(f"const c{i}: usize = 1;\n" for i in range(names - 3)) +
                "fn k(a: HbmTensor<i8, m![1], m![1]>) {\n" + "let _ = nearesu;\n" * uses + "}\n")
        said = visac(folder, text, "-ferror-limit=0")[1]
        same(f"suggestions next to {names} names", (said.count("did you mean `nearest`"), said.count("[E-NAME]")), (found, uses))


# ---- the language server ----

def symbols(count):
    return "".join(f"axes![A{i:06} = 2];\n" for i in range(count))


@limit
def PUBLISHED_ERRORS_MAX(most, folder):
    del folder
    server = bounded.Server(ANY_TIME)
    for count in (most, most + 1):
        same(f"{count} errors", server.open(errors(count)), ["E-NAME"] * most + (["E-ERROR-LIMIT"] if count > most else []))
    server.end()


@limit
def EDITOR_VALUES_MAX(most, folder):
    """A symbol is 16 values, and less than 64 bytes of text."""
    del folder
    server = bounded.Server(ANY_TIME)
    for count, over in ((most // 16, False), (most // 16 + 1, True)):
        server.open(symbols(count))
        answer = server.ask("textDocument/documentSymbol", {"textDocument": {"uri": "file:///nowhere/bounded.vm"}})
        same(f"{count} symbols are given up", "error" in answer, over)
        check(over or len(answer["result"]) == count, len(answer.get("result", [])), "symbols of", count)
    server.end()


@limit
def EDITOR_FIRST_BYTES(most, folder):
    """Kernels of one length, and an edit that concerns all: as many as begin below the limit are judged before something is said."""
    del folder
    def kernel(number):
        words = " ".join(["// of this many bytes"] * 600)
        return (f"fn kernel{number:04}(device: &mut Device, x: &HbmTensor<i8, m![1], m![A]>) -> HbmTensor<i8, m![1], m![A]> {{\n{words}\n"
                "x.to_hbm(&mut device.tdma)\n}\n")
    enough = -(-most // len(kernel(0).rstrip()))
    for count, left in ((enough, None), (enough + 1, 1)):
        server = bounded.Server(ANY_TIME)
        text = HEAD + "".join(kernel(i) for i in range(count))
        server.open(text)
        server.send(json.dumps({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
            "textDocument": {"uri": "file:///nowhere/bounded.vm", "version": 2}, "contentChanges": [{"text": text.replace("A = 32", "A = 64")}]}}).encode())
        same(f"of {count} kernels are put off", server.receive()["params"].get("pending"), left)
        if left:
            same("and then", server.receive()["params"].get("pending"), None)
        server.end()


def main():
    with tempfile.TemporaryDirectory() as folder:
        def faults(name, function, value):
            try:
                if name in sys.argv[1:] or not (sys.argv[1:] or (name in OF_WORK and visa_tools.SLOWER > 1)):
                    function(value, folder)
                return []
            except (Fault, bounded.Fault) as fault:
                return [fault]
        return LIMITS.judge(LIMITS.rows(), faults)


if __name__ == "__main__":
    sys.exit(main())
