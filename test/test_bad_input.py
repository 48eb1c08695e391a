#!/usr/bin/env python3
"""Input that is wrong in every way we can think of: a clear error with its place, exit status 1 (2 for the command
line), no output file, no crash and no sanitizer report.

VISA_BIN chooses the programs (a sanitizer build is worth a run), VISA_LONG=1 tries many more truncations, byte
flips and token mutations. Usage: test_bad_input.py [NAME ...]"""
import glob
import json
import os
import random
import re
import struct
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import visa_tools
from visa_tools import run

CYCLES = 1_000_000  # of a damaged binary
PLACE = re.compile(rb"^[^\n:]+:\d+:\d+: (error|warning)\[[EW]-[A-Z-]+\]: ", re.M)
PLAIN = re.compile(rb"error\[E-[A-Z-]+\]: ")
MATMUL = os.path.join(visa_tools.SOURCE, "examples", "matmul.vm")


class Failures:
    def __init__(self):
        self.count, self.checks = 0, 0

    def add(self, what, result=None):
        self.count += 1
        if self.count <= 40:
            print(f"FAIL {what}")
            if result is not None:
                print(f"  exit status {result.status}\n  " + result.text()[:1500].replace("\n", "\n  "))

    def expect(self, ok, what, result=None):
        self.checks += 1
        if not ok:
            self.add(what, result)
        return ok


failures = Failures()


def expect_refused(what, result, status=1, place=False, contains=()):
    """The error is reported, the status is right, and nothing crashed."""
    ok = failures.expect(not result.crashed and result.status == status, f"{what}: status {status} wanted", result)
    if ok and status == 1:
        failures.expect(PLAIN.search(result.err), f"{what}: no error text", result)
    if ok and place:
        failures.expect(PLACE.search(result.err), f"{what}: no place", result)
    for word in contains:
        failures.expect(word.encode() in result.err, f"{what}: `{word}` is missing", result)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def in_parallel(function, items):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, items))


# ---- command line ----

def test_command_line(directory):
    ok = write(os.path.join(directory, "ok.vm"), open(MATMUL).read())
    binary = os.path.join(directory, "ok.bin")
    run(["visac", ok, "-o", binary])
    for arguments in (["visac"], ["visac", "--no-such-option", ok], ["visac", ok, "-ferror-limit=x"], ["visac", ok, "-fast"], ["visac", ok, ok], ["visac", ok, "--emit=picture"],
                      ["visac", ok, "--target=abacus"], ["visac", ok, "--print-after=lunch"], ["visac", ok, "--seed=x"],
                      ["visac", ok, "-Wunknown"], ["visac", ok, "-o"], ["visac", "--explain", "E-NOTHING"],
                      ["visac", ok, "--diagnostics-format=verse"], ["visa-run"], ["visa-run", binary, binary],
                      ["visa-run", binary, "--seed=x"], ["visa-run", binary, "--input"], ["visa-run", binary, "--zzz"],
                      ["visa-objdump"], ["visa-objdump", "--zzz", binary]):
        result = run(arguments, cwd=directory)
        expect_refused(" ".join(map(os.path.basename, arguments)), result, status=2)
        failures.expect(result.err, f"{arguments}: no message", result)


# ---- files ----

def test_files(directory):
    ok = write(os.path.join(directory, "ok.vm"), open(MATMUL).read())
    os.mkdir(os.path.join(directory, "folder"))
    for program, option in (("visac", "--emit=tables"), ("visa-run", "--check"), ("visa-objdump", "--json")):
        for name in ("missing", "folder"):
            expect_refused(f"{program} {name}", run([program, os.path.join(directory, name), option]),
                           contains=[name])
    for target in ("no/such/folder/x.bin", "folder"):
        result = run(["visac", ok, "-o", target], cwd=directory)
        expect_refused(f"visac -o {target}", result, contains=[target])
    failures.expect(not os.path.exists(os.path.join(directory, "no")), "visac -o made folders")
    failures.expect(os.listdir(os.path.join(directory, "folder")) == [], "visac -o wrote into a folder")
    result = run(["visac", ok, "--kernel=nothing", "--check"])
    expect_refused("--kernel", result, contains=["nothing"])


def test_nothing_is_left(directory):
    bad = write(os.path.join(directory, "bad.vm"), "axes![A = 8];\nfn f(x: CollectTensor<i8, m![B]>) {\n")
    kept = write(os.path.join(directory, "kept.bin"), "do not touch")
    for arguments in (["visac", bad], ["visac", bad, "-o", "new.bin"], ["visac", bad, "-o", kept],
                      ["visac", bad, "--check"], ["visac", bad, "--emit=obj"], ["visac", bad, "--emit=json", "-o", kept]):
        before = sorted(os.listdir(directory))
        expect_refused(" ".join(map(os.path.basename, arguments)), run(arguments, cwd=directory), place=True)
        failures.expect(sorted(os.listdir(directory)) == before, f"{arguments}: a file was left after")
    failures.expect(open(kept).read() == "do not touch", "an existing output was touched")


# ---- source text ----

STREAM = "CollectTensor<i8, m![1], m![1], m![1], m![%s], m![1 # 32]>"
GARBAGE = [
    b"", b"\0", b"\xff\xfe\x00\x01" * 64, bytes(range(256)) * 8, b"axes![A = 8];\n" + b"\x80" * 100, b"\xef\xbb\xbf",
    b"(" * 100000, b"[" * 100000, b"{" * 100000, b"m![" * 20000, b"fn f() {" * 20000, b"&" * 100000, b"-" * 100000,
    b"a." * 100000, b"a::" * 100000, b"x.f(" * 20000, b"/*" * 50000, b"1+" * 100000, b"axes![" + b"A = 1, " * 1000,
    b"<" * 100000, b"A" * 1000000, b"9" * 1000000, b'"' + b"\\" * 100000, b"#" * 100000, b"#[" * 20000,
    b"type A = m![{A}];\nfn f(x: CollectTensor<i8, A, A, A, A, A>) -> A { x }\n", b"'" * 1000, b"r#" * 1000,
    b"if " * 50000, b"let x = " * 50000, b"return " * 50000, b"|" * 50000, b"!" * 50000, b"*" * 50000, b"a as " * 50000,
    ("type A0 = m![1];\n" + "".join(f"type A{i} = m![{{A{i-1}}}, {{A{i-1}}}];\n" for i in range(1, 40)) +
     "fn f(x: CollectTensor<i8, m![1], m![1], m![1], A39, m![1 # 32]>) -> CollectTensor<i8, m![1], m![1], m![1], A39, "
     "m![1 # 32]> { x }\n").encode(),
]


def test_garbage(directory):
    generator = random.Random(7)
    texts = GARBAGE + [bytes(generator.randrange(256) for _ in range(generator.randrange(400))) for _ in range(visa_tools.few(60))]

    def one(text):
        return run(["visac", "-", "--emit=tables"], stdin=text, cwd=directory)
    for text, result in zip(texts, in_parallel(one, texts)):
        what = f"garbage {text[:30]!r} ({len(text)} bytes)"
        if text.startswith(b"type A0"):
            failures.expect(not result.crashed and result.status in (0, 1), what, result)
            continue
        expect_refused(what, result, place=True)
        failures.expect(len(result.err) < 1 << 22, f"{what}: {len(result.err)} bytes of errors")
    failures.expect(os.listdir(directory) == [], "garbage left a file after")


# Sizes at every edge of 64-, 32- and 16-bit numbers, in every stage.
EDGES = (1 << 62, (1 << 62) - 1, 1 << 61, (1 << 60) + 8, 1 << 40, (1 << 32) + 32, 1 << 31, 65537, 65536)
HUGE_KERNELS = [
    "fn f(x: FetchTensor<{d}, m![1], m![1], m![1], m![A], m![B]>) -> CollectTensor<{d}, m![1], m![1], m![1], _, _> {{ x.collect() }}",
    "fn f(x: CollectTensor<{d}, m![1], m![1], m![1], m![A], m![1 # {f}]>) -> TrfTensor<{d}, m![1], m![1], m![1], m![1], m![A, 1 # {f}]> {{ x.to_trf(TrfAddress::Full) }}",
    "fn f(x: CollectTensor<{d}, m![1], m![1], m![1], m![A], m![1 # {f}]>, w: &TrfTensor<{d}, m![1], m![1], m![1], m![1], m![B, 1 # {f}]>) -> AlignedPair<{d}, m![1], m![1], m![1], m![1], m![A, B], m![1 # {g}]> {{ x.align::<m![A, B], m![1 # {g}], _, _>(w) }}",
    "fn f(x: CollectTensor<{d}, m![1], m![1], m![1], m![A], m![1 # {f}]>) -> DmTensor<{d}, m![1], m![1], m![1], m![A, 1 # {f}]> {{ x.commit(0) }}",
    "fn f(x: CollectTensor<{d}, m![1], m![1], m![1], m![A], m![1 # {f}]>) -> DmTensor<{d}, m![1], m![1], m![1], m![1 # {f}]> {{ x.commit({n} * 2 - 1) }}",
    "#[device(chip = 1)]\nfn f(ctx: &mut Context, h: &HbmTensor<{d}, m![1], m![A]>) -> DmTensor<{d}, m![1], m![1 # 2], m![1 # 256], m![A]> {{ h.to_dm(&mut ctx.tdma, 0) }}",
    "#[device(chip = 1)]\nfn f(ctx: &mut Context, h: &HbmTensor<{d}, m![1], m![A # {n}, B]>) -> DmTensor<{d}, m![1], m![1 # 2], m![B # 256], m![A]> {{ h.to_dm(&mut ctx.tdma, {n}) }}",
    "#[device(chip = 1)]\nfn f(ctx: &mut Context, h: &DmTensor<{d}, m![1], m![1 # 2], m![1 # 256], m![1 # 8]>) -> HbmTensor<{d}, m![1], m![A, 1 # 8]> {{ h.to_hbm(&mut ctx.tdma, {n}) }}",
    "#[device(chip = 1)]\nfn f(ctx: &mut Context, h: &DmTensor<{d}, m![1], m![1 # 2], m![1 # 256], m![C]>) -> FetchTensor<{d}, m![1], m![1 # 2], m![1 # 256], m![A], m![C # {n}]> {{ ctx.main.begin(h.view()).fetch() }}",
    "#[device(chip = {n})]\nfn f(ctx: &mut Context, h: &DmTensor<{d}, m![A], m![1 # 2], m![1 # 256], m![C]>) -> FetchTensor<{d}, m![A], m![1 # 2], m![1 # 256], m![A, B], m![C]> {{ ctx.main.begin(h.view()).fetch() }}",
    "fn f(x: CollectTensor<i32, m![1], m![1], m![1], m![A], m![C]>) -> CastTensor<i8, m![1], m![1], m![1], _, m![B]> {{ x.cast() }}",
    "fn f(x: CollectTensor<{d}, m![1], m![1], m![1], m![A / 2, A % 2], m![1 # {f}]>) -> CollectTensor<{d}, m![1], m![1], m![1], m![A], m![1 # {f}]> {{ x }}",
]


def huge_texts():
    for template in HUGE_KERNELS:
        for n in EDGES:
            for dtype, flit in (("i4", 64), ("i8", 32), ("f32", 8)):
                yield (f"axes![A = {n}, B = {min(n, 1 << 20)}, C = 8];\n" +
                       template.format(d=dtype, f=flit, g=2 * flit, n=n))


def test_sizes(directory):
    texts = list(huge_texts())
    texts = random.Random(3).sample(texts, min(len(texts), visa_tools.few(150)))

    def one(text):
        return [run(["visac", "-", "--emit=json"], stdin=text.encode()),
                run(["visac", "-", "-o", "-"], stdin=text.encode())]
    refused = 0
    for text, results in zip(texts, in_parallel(one, texts)):
        for result in results:
            failures.expect(not result.crashed and result.status in (0, 1), f"sizes:\n{text}", result)
            failures.expect(result.status == 0 or PLACE.search(result.err), f"sizes, no place:\n{text}", result)
        failures.expect(results[0].status == results[1].status, f"accepted by one output only:\n{text}", results[1])
        refused += results[0].status
    failures.expect(0 < refused < len(texts) or visa_tools.SLOWER > 1, "sizes: all or none refused")
    failures.expect(os.listdir(directory) == [], "sizes left a file after")


# ---- one token of a case file less, or more ----

TOKEN = re.compile(r"//[^\n]*|[A-Za-z_][A-Za-z_0-9]*|\d+|::|->|<<|>>|\S")


def mutations(path, generator, count):
    text = open(path).read()
    tokens = [t for t in TOKEN.finditer(text) if not t.group().startswith("//")]
    for token in generator.sample(tokens, min(count, len(tokens))):
        line = text.count("\n", 0, token.start()) + 1
        yield line, "delete", token.group(), text[:token.start()] + text[token.end():]
        yield line, "duplicate", token.group(), text[:token.end()] + " " + text[token.start():]


def test_tokens(directory):
    generator, every = random.Random(11), []
    cases = sorted(glob.glob(os.path.join(visa_tools.SOURCE, "test", "cases", "*.vm")))
    for path in cases[::visa_tools.every(3)]:
        for line, what, token, text in mutations(path, generator, 3 if visa_tools.LONG else 1):
            every.append((path, line, what, token, text))

    def one(mutation):
        return run(["visac", "-", "--emit=tables"], stdin=mutation[4].encode(), cwd=directory)
    far = 0
    for mutation, result in zip(every, in_parallel(one, every)):
        path, line, what, token, text = mutation
        name = f"{os.path.basename(path)}:{line}: {what} `{token}`"
        if not failures.expect(not result.crashed and result.status in (0, 1), name, result) or result.status == 0:
            continue
        lines = [int(m.group(1)) for m in re.finditer(rb"^<stdin>:(\d+):", result.err, re.M)]
        failures.expect(lines, f"{name}: no place", result)
        far += bool(lines) and min(abs(at - line) for at in lines) > 2
    print(f"tokens: {len(every)} mutations, {far} whose errors are all more than two lines away")


# ---- tensor files ----

def npy(dtype, shape, data, version=1, order="False"):
    header = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}"
    header = (header + " " * (63 - (10 + len(header)) % 64) + "\n").encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(header)) + header + data


def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def bad_tensors():
    good = b"\0" * (32 * 32 * 2)
    entry = {"dtype": "BF16", "shape": [32, 32], "data_offsets": [0, len(good)]}
    yield "empty.npy", b"", ""
    yield "magic.npy", b"NUMPY" + good, ""
    yield "header.npy", npy("<u2", "(32, 32)", good)[:40], ""
    yield "short.npy", npy("<u2", "(32, 32)", good[:-2]), ""
    yield "long.npy", npy("<u2", "(32, 32)", good + b"\0\0"), ""
    yield "version.npy", npy("<u2", "(32, 32)", good, version=9), ""
    yield "type.npy", npy("<f8", "(32, 32)", good * 4), ""
    yield "big-endian.npy", npy(">u2", "(32, 32)", good), ""
    yield "shape.npy", npy("<u2", "(16, 64)", good), ""
    yield "rank.npy", npy("<u2", "(1024,)", good), ""
    yield "huge.npy", npy("<u2", "(9223372036854775807, 9223372036854775807)", good), ""
    yield "negative.npy", npy("<u2", "(-32, -32)", good), ""
    yield "words.npy", npy("<u2", "('a', 'b')", good), ""
    yield "raw-short.raw", good[:-1], ""
    yield "raw-long.raw", good + b"\0", ""
    yield "empty.safetensors", b"", ":a"
    yield "length.safetensors", struct.pack("<Q", 1 << 63) + b"{}", ":a"
    yield "header.safetensors", struct.pack("<Q", 100) + b"{}", ":a"
    yield "json.safetensors", safetensors(b'{"a": [', good), ":a"
    yield "list.safetensors", safetensors([1, 2], good), ":a"
    yield "name.safetensors", safetensors({"b": entry}, good), ":a"
    yield "noname.safetensors", safetensors({"a": entry, "b": entry}, good), ""
    yield "type.safetensors", safetensors({"a": dict(entry, dtype="F64")}, good), ":a"
    yield "unknown.safetensors", safetensors({"a": dict(entry, dtype="Q3")}, good), ":a"
    yield "shape.safetensors", safetensors({"a": dict(entry, shape=[32, 31])}, good), ":a"
    yield "negative.safetensors", safetensors({"a": dict(entry, shape=[-32, -32])}, good), ":a"
    yield "after.safetensors", safetensors({"a": dict(entry, data_offsets=[8, 8 + len(good)])}, good), ":a"
    yield "backwards.safetensors", safetensors({"a": dict(entry, data_offsets=[len(good), 0])}, good), ":a"
    yield "deep.safetensors", safetensors(b"[" * 100000, good), ":a"


def test_tensors(directory):
    binary = os.path.join(directory, "matmul.bin")
    run(["visac", MATMUL, "-o", binary])
    output = os.path.join(directory, "out.npy")

    def refused(what, arguments, contains=()):
        expect_refused(what, run(["visa-run", binary, *arguments, "--output", f"out={output}"]), contains=contains)
        failures.expect(not os.path.exists(output), f"{what}: an output file was written")
    for name, data, suffix in bad_tensors():
        path = write(os.path.join(directory, name), data)
        refused(name, ["--input", f"a={path}{suffix}"], contains=[name])
    good = write(os.path.join(directory, "good.npy"), npy("<u2", "(32, 32)", b"\0" * 2048))
    refused("missing file", ["--input", "a=nowhere.npy"], contains=["nowhere.npy"])
    refused("folder", ["--input", f"a={directory}"])
    refused("unknown port", ["--input", f"z={good}"], contains=["z"])
    refused("output as input", ["--input", f"out={good}"])
    refused("unknown axis", ["--input", f"a[M,Q]={good}"])
    refused("missing axis", ["--input", f"a[M]={good}"])
    refused("axis twice", ["--input", f"a[M,M]={good}"])
    refused("buffer size", ["--input", f"a:buffer={write(os.path.join(directory, 'b.raw'), b'0' * 7)}"])
    refused("kernel", ["--kernel=other"], contains=["other"])
    result = run(["visa-run", binary, "--output", "z=z.npy"], cwd=directory)
    expect_refused("unknown output", result, contains=["z"])
    result = run(["visa-run", binary, "--output", "out=no/such/folder/x.npy"], cwd=directory)
    expect_refused("output without a folder", result, contains=["no/such/folder"])
    kept = write(os.path.join(directory, "kept.npy"), "do not touch")
    run(["visa-run", binary, "--input", "a=nowhere.npy", "--output", f"out={kept}"])
    failures.expect(open(kept).read() == "do not touch", "an existing output was touched")
    result = run(["visa-run", binary, "--input", f"a={good}", "--output", f"out={output}"])
    failures.expect(result.status == 0 and os.path.exists(output), "the good file was refused", result)


# ---- binaries ----

def read_binary(data, directory):
    """Both readers on the same damaged bytes. A larger axis is a legal binary with more to compute: what would take too many cycles is refused."""
    return [run(["visa-objdump", "-"], stdin=data),
            run(["visa-run", "-", f"--max-cycles={CYCLES}"], stdin=data, cwd=directory)]


def test_truncated_binaries(directory):
    binary = os.path.join(directory, "matmul.bin")
    run(["visac", MATMUL, "-o", binary])
    data = open(binary, "rb").read()
    sizes = sorted(set(range(0, len(data), visa_tools.every(9))) | set(range(0, 80, visa_tools.every(1))) | {len(data) - 1})

    def one(size):
        return read_binary(data[:size], directory)
    for size, results in zip(sizes, in_parallel(one, sizes)):
        for result in results:
            expect_refused(f"binary cut at {size} of {len(data)}", result)
            failures.expect(b"E-BIN-" in result.err, f"binary cut at {size}: no E-BIN error", result)


def test_damaged_binaries(directory):
    binary = os.path.join(directory, "matmul.bin")
    run(["visac", MATMUL, "-o", binary])
    data, generator = open(binary, "rb").read(), random.Random(5)
    flips = [(generator.randrange(len(data)), 1 << generator.randrange(8)) for _ in range(visa_tools.few(250))]
    flips += [(at, 0xff) for at in range(0, len(data), visa_tools.every(37))]

    def one(flip):
        damaged = bytearray(data)
        damaged[flip[0]] ^= flip[1]
        return read_binary(bytes(damaged), directory)
    refused = long = 0
    for flip, results in zip(flips, in_parallel(one, flips)):
        for result in results:
            what = f"binary with {flip[1]:#x} flipped at {flip[0]:#x}"
            failures.expect(not result.crashed and result.status in (0, 1), what, result)
            failures.expect(result.status == 0 or PLAIN.search(result.err), f"{what}: no error text", result)
            refused += result.status == 1
            long += b"E-RUN-CYCLES" in result.err
    print(f"flips: {len(flips)}, {refused} of {2 * len(flips)} readings refused, {long} of them for their cycles")
    failures.expect(refused > len(flips) / 4, "hardly any damage was noticed")
    failures.expect(long <= 3 + len(flips) / 50, "too many damaged binaries run for long")


def changed_stride(data, listing, elements):
    """The bytes with the outer stride of the main context's fetch changed by a number of elements."""
    for command in listing["kernels"][0]["streams"]["main"]:
        if command["op"] != "fetch":
            continue
        words = b"".join(struct.pack("<Q", int(word, 16)) for word in command["words"])
        at = data.find(words)
        entry = command["table"]["entries"][0]
        for index, word in enumerate(command["words"]):
            if int(word, 16) == (entry["stride"] << 32 | entry["size"] - 1):
                at += 8 * index
                return data[:at] + struct.pack("<Q", int(word, 16) + (elements << 32)) + data[at + 8:]
    raise AssertionError("no fetch command with such an entry")


def test_changed_stride(directory):
    binary, changed = os.path.join(directory, "matmul.bin"), os.path.join(directory, "changed.bin")
    output = os.path.join(directory, "out.npy")
    run(["visac", MATMUL, "-o", binary])
    good = run(["visa-run", binary, "--check"])
    failures.expect(good.status == 0, "the unchanged binary", good)
    listing = json.loads(run(["visa-objdump", "--json", binary]).out)
    data = open(binary, "rb").read()
    write(changed, changed_stride(data, listing, 32))
    result = run(["visa-run", changed, "--check", "--output", f"out={output}"])
    expect_refused("a stride that leaves the tensor", result, status=3, contains=["E-RUN-UNDEFINED", "M=20"])
    write(changed, changed_stride(data, listing, -1))
    result = run(["visa-run", changed, "--check", "--output", f"out={output}"])
    failures.expect(result.status == 3, "changed stride: exit status 3 wanted", result)
    failures.expect(b"E-CHECK-MISMATCH" in result.err, "changed stride: no E-CHECK-MISMATCH", result)
    # Row 0 is read as before; the first output of row 1 is the first that can differ.
    first = re.search(rb"M[ :=]*1\b", result.out + result.err)
    failures.expect(first, "changed stride: the first differing output coordinate (M = 1) is not named", result)
    failures.expect(not os.path.exists(output), "changed stride: an output was written", result)


TESTS = [test_command_line, test_files, test_nothing_is_left, test_garbage, test_sizes, test_tokens, test_tensors,
         test_truncated_binaries, test_damaged_binaries, test_changed_stride]


def main(names):
    for test in TESTS:
        if names and not any(name in test.__name__ for name in names):
            continue
        before = failures.count
        with tempfile.TemporaryDirectory() as directory:
            test(directory)
        print(f"{'ok  ' if failures.count == before else 'FAIL'} {test.__name__}", flush=True)
    print(f"{failures.checks} checks, {failures.count} failed")
    return 1 if failures.count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
