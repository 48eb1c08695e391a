#!/usr/bin/env python3
"""No input makes a program work, remember or nest without bound.

Usage: bounded.py [NAME...]

Each input is generated, small, and costs far more than its size where nobody counts. It is run with a small stack and little address
space, and has to end with the status and the ids that are asserted; what it cost is read from --time-report. A clock is looked at in one place
only: what is long has to be done, or given up, in a time that its steps explain."""
import json
import os
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile

import visa_tools

STACK, SPACE = 256 << 10, 1536 << 20  # bytes
HEAD = "axes![A = 32, B = 2];\n"
KERNEL = "#[device(chip = 1)]\nfn k(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![A]>) -> HbmTensor<bf16, m![1], m![A]> {\n%s\n    a.to_hbm(&mut ctx.tdma, 1 << 20)\n}\n"
TILES = "Stream<Tile<bf16, 16, 64>, {[4]}>"
STREAM = f"#[stream]\nfn p<const D: Dim>(x: {TILES}) -> {TILES} {{\n    let y = %s;\n    x.map(silu)\n}}\n"


class Fault(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise Fault(" ".join(str(w) for w in what))


def sanitized():
    return b"__asan_init" in open(os.path.join(visa_tools.bin_dir(), "visac"), "rb").read()


LIMITED = not sanitized()  # a sanitizer maps terabytes, and its frames are larger


def limit():
    if LIMITED:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
        resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))


def run(*words):
    done = subprocess.run([os.path.join(visa_tools.bin_dir(), words[0]), *words[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=visa_tools.environment(), preexec_fn=limit, check=False)
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    check(done.returncode >= 0 and not any(word in text for word in visa_tools.DAMAGE), " ".join(words), "ended with", done.returncode, text[-300:])
    return done.returncode, text


def ids(text):
    return sorted(set(re.findall(r"error\[([A-Z0-9-]+)\]", text)))


def spent(text, unit):
    return int(re.search(rf"^ *(\d+) {unit}$", text, re.M)[1])


# ---- work: what is written in a few lines and repeats itself ----

def doubling(last, item):
    return "".join(item % {"i": i, "n": i - 1} for i in range(1, last))


def wide(count, text):
    return "".join(text % i for i in range(count))


# name: (source, the ids that are reported and no others, at most so many steps, at most so many bytes)
WORK = {
    "constants": (HEAD + "const C0: usize = 0;\n" + doubling(60, "const C%(i)d: usize = C%(n)d + C%(n)d;\n") + KERNEL % "let x = C59;", [], 10_000, 4 << 20),
    "constants of mappings": (HEAD + "const C0: usize = 0;\n" + doubling(60, "const C%(i)d: usize = C%(n)d + C%(n)d;\n") + "type T = m![A # { C59 + 32 }];\n" +
                              KERNEL % "", [], 10_000, 4 << 20),
    "constants without a value": (HEAD + "const C0: usize = unknown;\n" + doubling(60, "const C%(i)d: usize = C%(n)d + C%(n)d;\n") + KERNEL % "let x = C59;",
                                  ["E-NAME"], 10_000, 4 << 20),
    "aliases without a meaning": (HEAD + "type T0 = m![Z];\n" + doubling(60, "type T%(i)d = m![{T%(n)d}, {T%(n)d}];\n") + KERNEL % "", ["E-AXIS-UNKNOWN"], 10_000, 4 << 20),
    "sizes of aliases": (HEAD + "type T0 = m![A];\n" + doubling(60, "type T%(i)d = m![A # { T%(n)d::SIZE / 2 + T%(n)d::SIZE / 2 }];\n") + KERNEL % "", [], 10_000, 4 << 20),
    "parts of mappings": (HEAD + "type T0 = m![A];\n" + doubling(60, "type T%(i)d = m![[[{T%(n)d}] = 19, [{T%(n)d}] = 17] = 31];\n") + KERNEL % "", [], 300_000_000, 64 << 20),
    "calls": (HEAD + "fn f40() -> usize { 1 }\n" + "".join(f"fn f{i}() -> usize {{ f{i + 1}() + f{i + 1}() }}\n" for i in range(40)) + KERNEL % "let x = f0();",
              ["E-UNROLL"], 10_000_000, 16 << 20),
    "a loop in a loop": (HEAD + KERNEL % "for i in 0..100000 { for j in 0..100000 { let x = i + j; } }", ["E-UNROLL"], 20_000_000, 16 << 20),
    "views in a loop": (HEAD + KERNEL % "for i in 0..100000 { for j in 0..100000 { let x = a.view(); } }", ["E-BUDGET", "E-UNROLL"], 210_000_000, 1100 << 20),
    "unknown names": (HEAD + KERNEL % wide(20_000, "let x%d = unknown;\n"), ["E-ERROR-LIMIT", "E-NAME"], 2_000_000, 64 << 20),
    "shadowed names": (HEAD + KERNEL % ("let x = unknown;\n" * 20_000), ["E-ERROR-LIMIT", "E-NAME"], 2_000_000, 64 << 20),
    "imports of imports": (HEAD + "mod a { pub mod b { type T = m![A]; } }\n" + wide(2_000, "use a::b::T as T%d;\n") + KERNEL % "", [], 50_000_000, 64 << 20),
    "lists of lists": (HEAD + KERNEL % ("let mut v = [1];\n" + "for i in 0..100000 { v = [v, v]; }"), [], 10_000_000, 256 << 20),
    "stream constants": ("const C0: usize = 1;\n" + doubling(60, "const C%(i)d: usize = C%(n)d + C%(n)d;\n") + STREAM % "C59", [], 10_000, 4 << 20),
    "stream calls": ("".join(f"#[stream]\nfn f{i}(x: {TILES}) -> {TILES} {{ f{i + 1}(x); f{i + 1}(x) }}\n" for i in range(40)) + f"#[stream]\nfn f40(x: {TILES}) -> {TILES} {{ x }}\n" +
                     STREAM % "f0(x)", ["E-STEP-PROGRAM"], 210_000_000, 1100 << 20),
    "stream loops": (STREAM % "{ for i in 0..100000 { for j in 0..100000 { let z = i + j; } } 1 }", ["E-STEP-PROGRAM"], 50_000_000, 64 << 20),
    "stream pairs": (STREAM % "{ let mut z = x; for i in 0..100 { z = z.zip(z); } 1 }", None, 600_000_000, 1100 << 20),
    "stream sizes": (STREAM % "{ let mut z = D; for i in 0..100 { z = (z * z + 1).div_ceil(3); } 1 }", None, 300_000_000, 1100 << 20),
    "stream lists": (f"#[stream]\nfn p(x: {TILES}) -> {TILES} {{\n    let mut z = x;\n    for i in 0..100000 {{ z = [z]; }}\n    z\n}}\n", ["E-NESTING"], 20_000_000, 256 << 20),
}


def work(name, folder):
    source, expected, steps, size = WORK[name]
    path = os.path.join(folder, "work.vm")
    with open(path, "w") as file:
        file.write(source)
    status, text = run("visac", path, "-o", os.devnull, "--time-report")
    said = ids(text)
    if expected is None:
        check(said in ([], ["E-BUDGET"], ["E-NESTING"], ["E-STEP-SHAPE"], ["E-STEP-PROGRAM"]), said, text[:500])
    elif "E-BUDGET" in expected:
        check(said and set(said) <= set(expected), said, text[:500])
    else:
        check(said == expected, said, "and not", expected, text[:500])
    check(status == (1 if said else 0), "status", status)
    check(spent(text, "steps") <= steps, spent(text, "steps"), "steps, at most", steps)
    most = size if LIMITED else 2 * size # under AddressSanitizer an arena shuts 8 bytes after each piece, which has 8 at least
    check(spent(text, "bytes") <= most, spent(text, "bytes"), "bytes, at most", most)


# ---- work that nobody counts ----

# With so few steps, what is counted ends early, and so does what grows as its input does: such a program takes tenths of a second here. Where
# something looks at all others and counts none of it, it takes ten times the seconds that are allowed, or the memory.
FEW_STEPS, SECONDS = 40_000_000, 4
DM = "DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![A]>"
PASS = "ctx.main.begin(x.view()).fetch::<bf16, m![1], m![A]>().collect().commit(ADDRESS);"
ONE_KERNEL = "#[device(chip = 1)]\nfn k%d(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![A]>) -> HbmTensor<bf16, m![1], m![A]> {\n    a.to_hbm(&mut ctx.tdma, 1 << 20)\n}\n"

# name: (source, options); in what order work is issued is looked for with a share of the steps that the rest then lacks
AS_WRITTEN = ["--order=source"]
LONG = {
    "copies": (HEAD + KERNEL % f"for i in 0..100000 {{ let x: {DM} = a.to_dm(&mut ctx.tdma); }}", AS_WRITTEN),
    "passes in a row": (HEAD + KERNEL % f"let mut x: {DM} = a.to_dm(&mut ctx.tdma, 0);\nfor i in 0..7000 {{ x = {PASS.replace('ADDRESS', '4096')} x = {PASS.replace('ADDRESS', '0')} }}", AS_WRITTEN),
    "stored weights": (HEAD + KERNEL % (f"let x: {DM} = a.to_dm(&mut ctx.tdma);\n" + "for i in 0..40000 { let w: TrfTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![1], m![A]> = "
                       "ctx.sub.begin(x.view()).fetch::<m![1], m![A]>().collect::<m![1, A / 16], m![A % 16]>().to_trf(); }"), AS_WRITTEN),
    "ports": (HEAD + (KERNEL % "").replace("ctx: &mut Context, ", "ctx: &mut Context, " + wide(4000, "p%d: &HbmTensor<bf16, m![1], m![A]>, ")), AS_WRITTEN),
    "fields": ("struct S { " + wide(20_000, "x%d: usize, ") + "}\n" + HEAD + KERNEL % ("let s = S { " + wide(20_000, "x%d: 1, ") + "};"), AS_WRITTEN),
    "reports": (HEAD + wide(1500, ONE_KERNEL), [*AS_WRITTEN, "--report"]),
    "stream operators": (f"#[stream]\nfn p(x: {TILES}) -> {TILES} {{\n    let mut z = x;\n    for i in 0..40000 {{ z = z.zip(x).map(add); }}\n    z\n}}\n", []),
    "stream ports": (f"#[stream]\nfn p({wide(20_000, f'x%d: {TILES}, ')}) -> {TILES} {{ x0.map(silu) }}\n", []),
}


def counted(name, folder):
    source, options = LONG[name]
    path = os.path.join(folder, "long.vm")
    with open(path, "w") as file:
        file.write(source)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def within():
        limit()
        resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
    done = subprocess.run([os.path.join(visa_tools.bin_dir(), "visac"), path, "-o", os.devnull, f"--max-steps={FEW_STEPS}", *options],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=visa_tools.environment(), preexec_fn=within, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = ids(done.stderr.decode("utf-8", "replace"))
    check(seconds < SECONDS, f"{seconds:.1f} seconds for at most {FEW_STEPS} steps: something is done that is not counted")
    check((done.returncode == 0 and not said) or (done.returncode == 1 and said == ["E-BUDGET"]), "ends with", done.returncode, said, done.stderr[:300])


# ---- nesting: every way to go one level deeper ----

def bracketed(before, inner, after, count):
    return before * count + inner + after * count


NESTED = {
    "parentheses": lambda n: KERNEL % f"let x = {bracketed('(', '1', ')', n)};",
    "blocks": lambda n: KERNEL % f"let x = {bracketed('{ ', '1', ' }', n)};",
    "lets": lambda n: KERNEL % f"let x = {bracketed('{ let y = ', '1', '; y }', n)};",
    "signs": lambda n: KERNEL % f"let x = {'-' * n}1;",
    "negations": lambda n: KERNEL % f"let x = {'!' * n}true;",
    "borrows": lambda n: KERNEL % f"let x = {'& ' * n}1;",
    "sums": lambda n: KERNEL % f"let x = {'1 + ' * n}1;",
    "sums in brackets": lambda n: KERNEL % f"let x = {bracketed('1 + (', '1', ')', n)};",
    "methods": lambda n: KERNEL % f"let x = [1]{'.iter()' * n};",
    "arguments": lambda n: "fn f(x: usize) -> usize { x }\n" + KERNEL % f"let x = {bracketed('f(', '1', ')', n)};",
    "calls": lambda n: "".join(f"fn f{i}(x: usize) -> usize {{ let y = f{i + 1}(x); y }}\n" for i in range(n)) + f"fn f{n}(x: usize) -> usize {{ x }}\n" + KERNEL % "let x = f0(1);",
    "conditions": lambda n: KERNEL % f"let x = {bracketed('if true { ', '1', ' } else { 2 }', n)};",
    "alternatives": lambda n: KERNEL % f"let x = {'if false { 1 } else ' * n}{{ 2 }};",
    "loops": lambda n: KERNEL % bracketed("for i in 0..1 { ", "", "}", n),
    "endless loops": lambda n: KERNEL % bracketed("loop { ", "", "break; }", n),
    "matches": lambda n: KERNEL % bracketed("match 1 { 1 => { ", "", "} _ => {} }", n),
    "patterns of matches": lambda n: KERNEL % f"let y = match {bracketed('Some(', '1', ')', n)} {{ {bracketed('Some(', 'x', ')', n)} => 1, _ => 2 }};",
    "conditions of a build": lambda n: f"#[cfg({bracketed('all(', 'test', ')', n)})]\nfn f() {{}}\n" + KERNEL % "",
    "arrays": lambda n: KERNEL % f"let x: {bracketed('[', 'usize', '; 1]', n)} = {bracketed('[', '1', ']', n)};",
    "indexes": lambda n: KERNEL % f"let x = {bracketed('[0][', '0', ']', n)};",
    "patterns": lambda n: KERNEL % f"let {bracketed('(', 'x', ',)', n)} = {bracketed('(', '1', ',)', n)};",
    "casts": lambda n: KERNEL % f"let x = 1{' as usize' * n};",
    "ranges": lambda n: KERNEL % f"let x = {bracketed('0..(', '1', ')', n)};",
    "references": lambda n: KERNEL % f"let x: {'&' * n}usize = 1;",
    "type arguments": lambda n: KERNEL % f"let x: {bracketed('Vec<', 'usize', '>', n)} = 1;",
    "closures": lambda n: KERNEL % f"let x = {'|a| ' * n}1;",
    "chains in arguments": lambda n: KERNEL % f"let x = {bracketed('f(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b(1).c(', '1', '))', n)};",
    "mapping lists": lambda n: f"type T = m![{bracketed('[', 'A', ']', n)}];\n" + KERNEL % "",
    "mapping operators": lambda n: f"type T = m![A{' # 40 = 36' * n}];\n" + KERNEL % "",
    "mapping parts": lambda n: "".join(f"type T{i + 1} = m![[B, {{T{i}}}] = {50 + i}];\n" for i in range(n)) + "type T0 = m![A];\n" + KERNEL % "",
    "windows": lambda n: f"type T = m![{bracketed('$(', 'A', ':1, B:1)', n)}];\n" + KERNEL % "",
    "aliases": lambda n: "".join(f"type T{i} = m![{{ T{i + 1} }}];\n" for i in range(n)) + f"type T{n} = m![A];\n" + KERNEL % "",
    "aliases of aliases": lambda n: "".join(f"type T{i} = T{i + 1};\n" for i in range(n)) + f"type T{n} = m![A];\ntype U = m![{{ T0 }}];\n" + KERNEL % "",
    "aliases of tensors": lambda n: "".join(f"type T{i} = T{i + 1};\n" for i in range(n)) + f"type T{n} = HbmTensor<bf16, m![1], m![A]>;\n" + KERNEL % "let x: T0 = a;",
    "aliases of types": lambda n: "".join(f"type T{i} = T{i + 1};\n" for i in range(n)) + f"type T{n} = bf16;\n" + KERNEL % "let x: HbmTensor<T0, m![1], m![A]> = a;",
    "constants": lambda n: "".join(f"const C{i}: usize = C{i + 1} + 1;\n" for i in range(n)) + f"const C{n}: usize = 1;\n" + KERNEL % "let x = C0;",
    "constants of mappings": lambda n: "".join(f"const C{i}: usize = C{i + 1} + 1;\n" for i in range(n)) + f"const C{n}: usize = 1;\ntype U = m![A # {{ C0 + 32 }}];\n" + KERNEL % "",
    "sizes": lambda n: "".join(f"const C{i}: usize = T{i + 1}::SIZE + 1;\ntype T{i} = m![A # {{ C{i} + 32 }}];\n" for i in range(n)) + f"type T{n} = m![A];\n" + KERNEL % "",
    "modules": lambda n: bracketed("mod a { ", "", "}", n) + KERNEL % "",
    "imports": lambda n: f"use a::{bracketed('{b::', 'c', '}', n)};\n" + KERNEL % "",
    "imports of all": lambda n: "".join(f"mod a{i} {{ use super::a{i + 1}::*; }}\n" for i in range(n)) + f"mod a{n} {{ type T = m![A]; }}\nuse a0::*;\ntype U = m![{{ T }}];\n" + KERNEL % "",
    "functions": lambda n: bracketed("fn f() { ", "", "}", n) + KERNEL % "",
    "stream brackets": lambda n: STREAM % bracketed("1 + (", "1", ")", n),
    "stream signs": lambda n: STREAM % f"{'-' * n}1",
    "stream lists": lambda n: STREAM % bracketed("[", "1", "]", n),
    "stream blocks": lambda n: STREAM % bracketed("{ let z = ", "1", "; z }", n),
    "stream methods": lambda n: STREAM % ("x" + ".promote().flatten(0, 1)" * n),
    "stream conditions": lambda n: STREAM % bracketed("if true { ", "1", " } else { 2 }", n),
    "stream constants": lambda n: "".join(f"const C{i}: usize = C{i + 1};\n" for i in range(n)) + f"const C{n}: usize = 0;\n" + STREAM % "C0",
    "stream calls": lambda n: "".join(f"#[stream]\nfn f{i}(x: {TILES}) -> {TILES} {{ f{i + 1}(x) }}\n" for i in range(n)) + f"#[stream]\nfn f{n}(x: {TILES}) -> {TILES} {{ x }}\n" + STREAM % "f0(x)",
    "stream sizes": lambda n: STREAM % ("D" + ".div_ceil(3)" * n),
    "stream pairs": lambda n: STREAM % f"{{ let mut z = x; for i in 0..{n} {{ z = z.zip(x); }} 1 }}",
}
FORMS = [("--emit=ir",), ("--emit=ast",), ("--format",)]
DEPTHS = (20, 84, 127, 250, 5000)


def nested(name, folder):
    """Reported once, however deep it is, and not at all in some depth."""
    path = os.path.join(folder, "nested.vm")
    refused = {}
    for number, depth in enumerate(DEPTHS, 1):
        with open(path, "w") as file:
            file.write(HEAD + NESTED[name](depth))
        for form in FORMS if visa_tools.SLOWER == 1 or visa_tools.LONG else [FORMS[number % len(FORMS)]]:  # by turns, with sanitizers
            status, text = run("visac", path, *form, "-o", os.devnull)
            count = text.count("error[E-NESTING]")
            check(status in (0, 1) and count <= 1, depth, form, "status", status, count, "times E-NESTING")
            refused[depth, form] = count
    check(not refused[DEPTHS[0], FORMS[1]], DEPTHS[0], "levels are too deep to be read")


# ---- limits that are given ----

def limits(folder):
    path = os.path.join(folder, "limits.vm")
    with open(path, "w") as file:
        file.write(HEAD + KERNEL % "for i in 0..1000 { let x = i; }")
    status, plain = run("visac", path, "-o", os.devnull, "--time-report")
    check(status == 0, plain)
    steps, size = spent(plain, "steps"), spent(plain, "bytes")
    check(spent(run("visac", path, "-o", os.devnull, "--time-report")[1], "steps") == steps, "the same input takes another number of steps")
    for option, enough, unit in (("--max-steps", steps, "steps"), ("--max-bytes", size, "bytes")):
        status, text = run("visac", path, "-o", os.devnull, f"{option}={enough // 2}")
        check(status == 1 and ids(text) == ["E-BUDGET"] and f"more than {enough // 2} {unit}" in text, option, text)
        check(run("visac", path, "-o", os.devnull, f"{option}={enough // 2}")[1] == text, option, "the same input has two verdicts")
        offered = re.search(rf"{option}=\d+", text)
        check(offered and run("visac", path, "-o", os.devnull, offered[0])[0] == 0, option, "what the help says does not do", text)
        check(run("visac", path, "-o", os.devnull, f"{option}={enough + 1000}")[0] == 0, option, enough + 1000, "is not enough")
        check(run("visac", path, "-o", os.devnull, f"{option}=0")[0] == 0, option, "0 is not `no limit`")
        check(run("visac", path, f"{option}=many")[0] == 2, option, "takes a word")


# Wherever the work ends, an answer is the one without a limit, or says that it was given up.
ANSWERS = (["-o", "-"], ["--emit=json"], ["--report=json"], ["--upgrade"], ["--format"], ["--explain-mapping"], ["--diagnostics-format=json", "--emit=ir"],
           ["--sweep=M=16,32"], ["--place=auto", "--jobs=1", "-o", "-"], ["--print-after-all", "--emit=order"])
FIRST = 12  # steps: as long as the tables are made that everything needs


def last_given_up(words):
    low, high = 1, 1 << 24
    while high - low > 1:
        middle = (low + high) // 2
        text = run("visac", *words, f"--max-steps={middle}")[1]
        low, high = (middle, high) if "E-BUDGET" in text else (low, middle)
    return low


def anywhere(folder):
    path, again = os.path.join(folder, "anywhere.vm"), os.path.join(folder, "again.vm")
    with open(os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), encoding="utf-8") as file:
        text = file.read()
    for name in (path, again):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    chance = random.Random(3)
    for words in [[path, *options] for options in ANSWERS] + [["advise", path], ["advise", "--apply", path], ["diff", path, again]]:
        status, plain = run("visac", *words)
        check(status in (0, 1), *words, plain[-300:])
        drawn = [int(20 * 1500 ** chance.random()) for _ in range(visa_tools.few(12))]
        if "--sweep" in words[-1]: # and when the last of several is written
            drawn += [last_given_up(words) - n for n in (0, 10, 40, 150)]
        for steps in list(range(1, FIRST)) + drawn:
            status, text = run("visac", *words, f"--max-steps={steps}")
            searched = words[0] == "advise" and "the search ended at its limit" in text
            gave_up = searched or "E-BUDGET" in text or "than are left; --max-steps=N" in text
            check(status == (0 if searched else 1) if gave_up else text == plain, *words, f"--max-steps={steps}", f"ends with {status}: {text[:300]}")


# The system gives less memory than a program wants: it says so, whatever it was about to write.
def memory(folder):
    if not LIMITED:
        return
    path, chance = os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), random.Random(4)

    def within(size, *words):
        def take():
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
        return subprocess.run([os.path.join(visa_tools.bin_dir(), words[0]), *words[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=visa_tools.environment(), preexec_fn=take, check=False)

    def least(low, *words):
        high = SPACE
        while high - low > 1 << 17:
            middle = (low + high) // 2
            low, high = (low, middle) if within(middle, *words).returncode == 0 else (middle, high)
        return high

    begins = least(1 << 20, "visac", "--version")
    for options in (["-o", os.path.join(folder, "k.bin")], ["--emit=json"], ["--emit=memory-json"], ["--upgrade"], ["--report=html"]):
        ends = least(begins, "visac", path, *options)
        for size in [chance.randrange(begins, ends) for _ in range(12 if ends - begins > 1 << 18 else 0)]:
            done = within(size, "visac", path, *options)
            check(done.returncode == 0 or (done.returncode == 1 and done.stderr), *options, size, "bytes: ends with", done.returncode, done.stderr[-300:])


# ---- runs of the machine ----

def with_large_dma(source, target):
    """The first DMA with three table entries counts through all that an entry can."""
    import change_binary
    dump = json.loads(run("visa-objdump", "--json", source)[1])
    for context, stream in dump["kernels"][0]["streams"].items():
        for command in visa_tools.commands(stream):
            if command["op"] == "dma" and "table" in command and len(command["table"]["entries"]) >= 3:
                change_binary.main([source, target] + [f"{context}/dma.{column}[{i}]={value}" for i in range(3)
                                                       for column, value in (("size", 65535), ("source_stride", 0), ("destination_stride", 0))])
                return
    raise Fault("no DMA with three entries")


def cycles(folder):
    example, binary = os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), os.path.join(folder, "m.bin")
    check(run("visac", example, "-o", binary)[0] == 0, "matmul does not compile")
    takes = int(re.search(r"(\d+) cycles", run("visa-run", binary, "--max-cycles=1")[1])[1])
    for words in (("visa-run", binary), ("visac", example, "--check")):
        status, text = run(*words, f"--max-cycles={takes - 1}")
        check(status == 1 and ids(text) == ["E-RUN-CYCLES"] and f"{takes} cycles" in text and f"may take {takes - 1}" in text, text)
        offered = re.search(r"--max-cycles=\d+", text.split("help:")[1])[0]
        for enough in (offered, f"--max-cycles={takes}", "--max-cycles=0"):
            check(words[0] == "visac" or run(*words, enough)[0] == 0, enough, "is not enough")
    check(run("visa-run", binary, "--max-cycles=x")[0] == 2, "--max-cycles takes a word")
    kernel = os.path.join(folder, "transpose.vm")
    with open(kernel, "w") as file:
        file.write("axes![A = 3, B = 5, C = 7, D = 8];\n#[device(chip = 1)]\n"
                   "fn k(ctx: &mut Context, a: &HbmTensor<i32, m![1], m![A, B, C, D]>) -> HbmTensor<i32, m![1], m![C, B, A, D]> {\n"
                   "    a.to_hbm(&mut ctx.tdma, 1 << 20)\n}\n")
    status, text = run("visac", kernel, "-o", binary)
    check(status == 0, text)
    large = os.path.join(folder, "large.bin")
    with_large_dma(binary, large)
    status, text = run("visa-run", large)
    check(status == 1 and ids(text) == ["E-RUN-CYCLES"], text)
    stream = os.path.join(folder, "stream.vm")
    with open(stream, "w") as file:
        file.write("#[stream]\nfn p(w: &Hbm<Tile<bf16, 16, 64>, {[4]}>) -> Stream<Tile<bf16, 16, 64>, {[1]}> {\n"
                   "    w.linear_load(once(), [1000000000], [0]).accum(1, add)\n}\n")
    status, text = run("visac", stream, "-o", binary)
    check(status == 0, text)
    status, text = run("visa-run", binary, "--timing-only", "--max-cycles=10000")
    check(status == 1 and ids(text) == ["E-RUN-CYCLES"] and "10000" in text, text)


# ---- the language server ----

class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([os.path.join(visa_tools.bin_dir(), "visa-lsp"), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=visa_tools.environment(), preexec_fn=limit)
        self.number = 0
        self.ask("initialize", {"capabilities": {}})

    def send(self, body):
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self):
        size = 0
        for line in iter(self.process.stdout.readline, b"\r\n"):
            if not line:
                raise Fault(f"the server has ended: {self.process.wait()}")
            size = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(size))

    def ask(self, method, params):
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode())
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                return answer

    def open(self, text):
        """The ids of its diagnostics."""
        uri = "file:///nowhere/bounded.vm"
        self.send(json.dumps({"jsonrpc": "2.0", "method": "textDocument/didOpen",
                              "params": {"textDocument": {"uri": uri, "languageId": "vm", "version": 1, "text": text}}}).encode())
        return [d["code"] for d in self.receive()["params"]["diagnostics"]]

    def end(self):
        self.ask("shutdown", None)
        self.send(b'{"jsonrpc": "2.0", "method": "exit"}')
        check(self.process.wait() == 0, "the server's status")


QUESTIONS = ("hover", "definition", "completion", "formatting", "documentSymbol", "codeAction")


def questions(server, text):
    """The error codes of the answers; None: an answer."""
    lines = text.split("\n")
    last = {"line": max(0, len(lines) - 4), "character": 4}
    params = {"textDocument": {"uri": "file:///nowhere/bounded.vm"}, "position": last, "range": {"start": last, "end": last}, "options": {}, "context": {"diagnostics": []}}
    return [server.ask("textDocument/" + q, params).get("error", {}).get("code") for q in QUESTIONS]


def editor(folder):
    del folder
    gave_up = -32803
    server = Server("--time-limit=1")
    for name in ("calls", "a loop in a loop", "unknown names"):
        said = server.open(WORK[name][0])
        check("E-BUDGET" in said, name, "is judged in a millisecond:", said[:3])
        check(questions(server, WORK[name][0])[:2] == [gave_up, gave_up], name, "does not say that it was given up")
    server.end()
    server = Server("--time-limit=0", "--max-steps=1000")
    check(server.open(WORK["calls"][0]) == ["E-BUDGET"], "1000 steps are enough")
    check(set(questions(server, WORK["calls"][0])) == {gave_up}, "an answer with nothing in it hides that it was given up")
    check(server.open(HEAD)[:1] == ["E-NO-KERNEL"], "and do not last for the next text")
    server.end()
    with open(os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), encoding="utf-8") as file:
        text = file.read()
    for steps in [*range(1, FIRST), 100, 1000]:
        server = Server("--time-limit=0", f"--max-steps={steps}")
        check(server.open(text) == ["E-BUDGET"], steps, "steps are enough")
        check(set(questions(server, text)) <= {gave_up, None}, steps, "steps")
        server.end()
    server = Server("--time-limit=60000") # what is found is little work; to say it takes more than an answer may hold
    said = server.open("axes![A = 2];\n" + "\n".join(f"fn k{i}(x: &HbmTensor<i8, m![1], m![Q{'q' * 6000}{i}]>) {{}}" for i in range(1000)))
    check(said[-1] == "E-BUDGET" and said.count("E-BUDGET") == 1 and 100 < said.count("E-AXIS-UNKNOWN") == len(said) - 1 < 1000, len(said), said[-1:])
    server.end()
    server = Server("--time-limit=0")
    many = server.open(WORK["unknown names"][0])
    check(many.count("E-NAME") == 1000 and many[-1] == "E-ERROR-LIMIT", len(many), "diagnostics")
    for name, make in NESTED.items():
        for depth in (127, 5000):
            text = HEAD + make(depth)
            said = server.open(text)
            check(said.count("E-NESTING") <= 1, name, depth, said)
            check(set(questions(server, text)) <= {None}, name, depth)
    for depth, error in ((200, -32600), (257, -32700), (100_000, -32700)):
        for before, after in (("[", "]"), ('{"a":', "}")):
            server.send((before * depth + "1" + after * depth).encode())
            answer = server.receive()
            check(answer["error"]["code"] == error, depth, answer)
    server.end()


# ---- a check: products that nobody asks for ----

def products(folder):
    """An operand that lies turned is multiplied first and summed then; of 2^30 products, four bytes each, none has a place in memory."""
    kernel = os.path.join(folder, "products.vm")
    tune = [os.path.join(visa_tools.bin_dir(), "visac"), "tune", "C[m, n] = sum(k) A[m, k] * B[k, n]", "-D", "m=1024,n=1024,k=1024", "--dtype=i8", "--no-cache", "-o", kernel]
    check(subprocess.run(tune, env=visa_tools.environment(), check=False).returncode == 0, "no answer")
    status, said = run("visac", kernel, "--check=numbers")
    check(status == 0 and "1048576 values agree" in said, status, said[-300:])


# ---- JSON files ----

def json_files(folder):
    stream, binary, tokens = (os.path.join(folder, name) for name in ("j.vm", "j.bin", "j.json"))
    with open(stream, "w") as file:
        file.write(f"#[stream]\nfn p(x: {TILES}) -> {TILES} {{\n    x.map(silu)\n}}\n")
    check(run("visac", stream, "-o", binary)[0] == 0, "the program does not compile")
    tensors = os.path.join(folder, "j.safetensors")
    kernel = os.path.join(folder, "k.bin")
    check(run("visac", os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), "-o", kernel)[0] == 0, "matmul does not compile")
    for depth, nests in ((250, False), (257, True), (300_000, True)):
        text = ("[" * depth + "]" * depth).encode()
        with open(tokens, "wb") as file:
            file.write(text)
        status, said = run("visa-run", binary, "--input", f"x={tokens}")
        check(status == 1 and (ids(said) == ["E-NESTING"]) == nests, depth, said[:300])
        status, said = run("visac", stream, "-o", os.devnull, f"--sizes={tokens}")
        check(status == 1 and ids(said) == ["E-STEP-TOKENS"], depth, said[:300])
        header = b'{"a": ' + text + b"}"
        with open(tensors, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
        status, said = run("visa-run", kernel, "--input", f"a={tensors}")
        check(status == 1, depth, said[:300])


def main():
    wanted = sys.argv[1:]
    light = [n for n in WORK if LIMITED or WORK[n][2] <= 20_000_000]  # steps; with sanitizers more of them take minutes
    cases = [(f"work: {n}", work, (n,)) for n in light] + [(f"nested: {n}", nested, (n,)) for n in list(NESTED)[::1 if LIMITED else 4]]
    cases += [(f"counted: {n}", counted, (n,)) for n in LONG if LIMITED]
    cases += [(f.__name__, f, ()) for f in (limits, anywhere, memory, cycles, editor, json_files)]
    cases += [("products", products, ())] if LIMITED else []
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, call, arguments in cases:
            if wanted and not any(w in name for w in wanted):
                continue
            count += 1
            try:
                call(*arguments, folder)
            except Fault as fault:
                failed += 1
                print(f"{name}: {fault}")
    print(f"{count - failed} bounded, {failed} failed" + ("" if LIMITED else "; a sanitizer is built in: without limits of stack and address space"))
    sys.exit(1 if failed or not count else 0)


if __name__ == "__main__":
    main()
