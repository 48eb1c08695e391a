#!/usr/bin/env python3
"""The Python package: kernels called with NumPy arrays give what NumPy computes, errors carry their diagnostics, and the structures that it
hands to the library are those of the headers, field by field.

Usage: python.py BUILD/bin (environment VISA_SOURCE). Exit status 77: there is no NumPy."""
import ctypes
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

SOURCE = os.environ["VISA_SOURCE"]
np = visa_tools.of_debian("numpy", "python3-numpy")
os.environ["VISA_LIBRARY"] = os.path.join(sys.argv[1], "libvisa.so.0")
sys.path.insert(0, os.path.join(SOURCE, "python"))
import visa
from visa import _library

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        expect(all(w in str(error) for w in words), f"{kind.__name__} says {error}, without {words}")
        return error
    failures.append(f"{kind.__name__} with {words} was not raised")
    return None


def bf16(values):
    """Bit patterns of small integers, which bf16 holds exactly."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (np.asarray(bits).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def structures(folder):
    """sizeof and offsetof of each member, from C and from ctypes."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "visa_run.h"', "int main(void) {"]
    expected = []
    for name, structure in sorted(_library.STRUCTURES.items()):
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(structure)}")
        for field, _ in structure._fields_:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
            expected.append(f"{name}.{field} {getattr(structure, field).offset}")
    lines.append("return 0; }")
    source, program = os.path.join(folder, "s.c"), os.path.join(folder, "s")
    with open(source, "w", encoding="utf-8") as f:
        f.write("\n".join(lines))
    subprocess.run(["cc", "-I", os.path.join(SOURCE, "include"), source, "-o", program], check=True)
    found = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    expect(found == expected, f"structures differ: {[p for p in zip(found, expected) if p[0] != p[1]]}")
    with open(os.path.join(SOURCE, "include/visa.h"), encoding="utf-8") as f:
        kinds = re.findall(r"^    (VISA_EMIT_\w+),", f.read(), re.M)
    names = {"bin": "BINARY", "memory-json": "MEMORY_JSON", "memory-svg": "MEMORY_SVG"}
    for name, number in _library.EMIT.items():
        expect(kinds[number] == "VISA_EMIT_" + names.get(name, name.upper()), f"EMIT[{name}] is {kinds[number]}")


def matmul():
    rng = np.random.default_rng(1)
    with open(os.path.join(SOURCE, "examples/matmul.vm"), encoding="utf-8") as f:
        text = f.read()
    for m in (32, 64):
        k = visa.compile(text, M=m)
        a, b = rng.integers(-3, 4, (m, 32)), rng.integers(-3, 4, (8, 32))
        out = k(bf16(a), b=bf16(b))
        expect(out.shape == (m, 8) and np.array_equal(from_bf16(out), (a @ b.T).astype(np.float32)), f"the product with M = {m}")
        verdict = k.check()
        expect(verdict and f"{m * 8} values agree" in verdict.report and "proven" in verdict.report, f"check: {verdict}")
    expect(k.report("json")["cycles"] == k.cycles > 0 and "Stream Adapter" in k.tables() and "out out: bf16[64, 8]" in repr(k), repr(k))
    expect("<iframe" in k._repr_html_(), "the picture in a notebook")
    raises(TypeError, lambda: k(bf16(a)), "lacks b")
    raises(TypeError, lambda: k(a.astype(np.float32), bf16(b)), "a takes", "float32")
    raises(ValueError, lambda: k(bf16(a[:2]), bf16(b)), "M=64")
    rounded = visa.compile(text, M=64, convert=True)
    third = np.full((64, 32), 1 / 3)
    expect(np.array_equal(rounded(a.astype(np.float32), b.astype(np.float64)), out), "f32 and f64 rounded to bf16")
    expect(np.array_equal(rounded(third, bf16(b)), k(np.full((64, 32), 0x3eab, np.uint16), bf16(b))), "1/3 rounded to bf16")
    raises(TypeError, lambda: rounded(a, bf16(b)), "a takes", "int64")
    raises(ValueError, lambda: rounded(third[:2], bf16(b)), "M=64")
    for i in range(50):
        k(bf16(a), bf16(b))


def arrays():
    """Arrays as they come: other strides, the other byte order, no axes; values that are rounded once, and numbers that are not cut off."""
    with open(os.path.join(SOURCE, "examples/matmul.vm"), encoding="utf-8") as f:
        text = f.read()
    rng = np.random.default_rng(7)
    k, rounded = visa.compile(text), visa.compile(text, convert=True)
    a, b = rng.integers(-3, 4, (32, 32)).astype(np.float32), rng.integers(-3, 4, (8, 32)).astype(np.float32)
    want = (a @ b.T).astype(np.float32)
    wide = np.zeros((64, 96), np.float32)
    wide[::2, ::3] = a
    for name, same in (("columns first", np.asfortranarray(a)), ("strides", wide[::2, ::3]), ("from the end", a[::-1].copy()[::-1]), ("big-endian", a.astype(">f4")),
                       ("big-endian f64", a.astype(">f8"))):
        expect(np.array_equal(from_bf16(rounded(same, b)), want), name)
        if same.dtype.itemsize == 4:
            codes = (same.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            expect(np.array_equal(from_bf16(k(codes.astype(">u2"), bf16(b))), want), name + ", patterns in the other byte order")
    raises(ValueError, lambda: k(np.uint16(1), bf16(b)), "M=32")
    raises(TypeError, lambda: rounded(a.astype(np.float16), b), "float32 and float64")
    x = 1 + 2.0**-8 + 2.0**-40  # above the middle of two bf16; its f32 is the middle
    rounded(np.full((32, 32), x), b)
    expect(rounded._bytes_of(0)[:2].view(np.uint16)[0] == 0x3f81, "a float64 is rounded once")
    for values, expected in (((np.nan, np.inf, -0.0, 5e-324), ("nan", "inf", "-0.0", "1e-45")), ((1e300, -1e300, x), ("3.4028235e+38", "-3.4028235e+38", "1.0039064"))):
        expect(tuple(map(str, visa._single(np.array(values)))) == expected, f"f32 of {values}: {visa._single(np.array(values))}")
    raises(ValueError, lambda: visa.compile(text, M=2**64 + 64), "64 bits")
    raises(TypeError, lambda: visa.compile(text, M=1.5), "M takes an integer")
    raises(TypeError, lambda: visa.compile(b"axes![];"), "bytes")
    raises(ValueError, lambda: visa.compile(text, place="somewhere"), "source, auto")
    error = raises(visa.Error, lambda: visa.compile(text, Zz=3), "Zz")
    expect(error and error.diagnostics[0].line == 0, "a message without a place")
    expect(visa.compile(text, M=np.int64(64)).ports[0].shape == (64, 32), "a number of NumPy")


def errors():
    error = raises(visa.Error, lambda: visa.compile("axes![M = 32];\n#[device(chip = 1)]\nfn f(d: &mut Device, a: &HbmTensor<i8, m![1], m![Q]>) {}\n"), "Q")
    expect(error and error.diagnostics[0].id == "E-AXIS-UNKNOWN" and error.diagnostics[0].line == 3 and error.diagnostics[0].help, f"{error and error.diagnostics}")
    raises(visa.Error, lambda: visa.compile("axes![M = 32];"), "no kernel")
    raises(visa.Error, lambda: visa.tune("C[m] = ", m=3))


def fixes():
    with open(os.path.join(SOURCE, "examples", "matmul.vm"), encoding="utf-8") as f:
        text = f.read()
    fixed = visa.fix(text.replace("K = 32", "K = 33"))
    expect(fixed.changes == 8 and not fixed.diagnostics and bool(visa.compile(fixed.source).check()), fixed)
    expect(visa.fix(text) == visa.Fixed(text, 0, ()), "a right text is changed")
    expect(visa.fix(text, N=7).changes == 5, "of another size")
    left = visa.fix(text.replace("bf16", "f32"))
    expect(left.changes == 2 and left.diagnostics[0].id == "E-TRF-TYPE", left)
    raises(TypeError, lambda: visa.fix(3), "fix takes a text")


def four_bits():
    text = """axes![M = 6, N = 64];
#[device(chip = 1)]
fn copy(device: &mut Device, a: &HbmTensor<i4, m![1], m![M, N]>) -> HbmTensor<i4, m![1], m![M, N]> {
    let dm: DmTensor<i4, m![1], m![1 # 2], m![1 # 256], m![M, N]> = a.to_dm(&mut device.tdma);
    dm.to_hbm(&mut device.tdma)
}
"""
    k = visa.compile(text)
    a = np.random.default_rng(2).integers(-8, 8, (6, 64)).astype(np.int8)
    expect(np.array_equal(k(a), a), "a copy of i4")
    raises(ValueError, lambda: k(a + np.int8(8)), "-8 to 7")


def numbers():
    """HbmScalar: any integer or bool that fits its bits."""
    text = """axes![M = 256, N = 16, T = 4];
#[device(chip = 1)]
fn pick(device: &mut Device, x: &HbmTensor<i32, m![1], m![T, M, N]>, i: HbmScalar<u32>, wide: HbmScalar<i64>, flag: HbmScalar<bool>, out: &mut HbmTensor<i32, m![1], m![M, N]>) {
    let i = i.to_spm(&mut device.tdma);
    let wide = wide.to_spm(&mut device.tdma);
    let flag = flag.to_spm(&mut device.tdma);
    let t: DmTensor<i32, m![1], m![1 # 2], m![M], m![N]> = x.view().tile::<m![T], 1, m![1 # 4, M, N]>(i as usize).to_dm(&mut device.tdma);
    if flag && wide < -4294967296 {
        t.to_hbm_view(&mut device.tdma, out.view_mut());
    }
}
"""
    k = visa.compile(text)
    x = np.arange(4 * 256 * 16, dtype=np.int32).reshape(4, 256, 16)
    out = np.zeros((256, 16), np.int32)
    expect(np.array_equal(k(x, 2, -2**40, True, out), x[2]), "numbers of Python")
    expect(np.array_equal(k(x, np.uint8(3), np.int64(-2**40), np.array([True]), out), x[3]), "numbers of NumPy")
    expect(np.array_equal(k(x, 3, 2**40, True, out), out), "a number of 64 bits that is not below")
    raises(ValueError, lambda: k(x, 2**32, 0, True, out), "i has 32 bits")
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        with open(at("pick.vm"), "w", encoding="utf-8") as file:
            file.write(text)
        given = {"x": x, "i": np.int64(1), "wide": np.array(-2**40), "flag": np.array(True), "beyond": np.int64(-2**31 - 1)}
        for name, value in given.items():
            np.save(at(name + ".npy"), value)
        tool = lambda name, *arguments: subprocess.run([os.path.join(sys.argv[1], name), *arguments], capture_output=True, text=True)
        inputs = [f"--input={name}={at(name)}.npy" for name in ("x", "wide", "flag")]
        expect(tool("visac", at("pick.vm"), "-o", at("pick.bin")).returncode == 0, "pick.vm")
        ran = tool("visa-run", at("pick.bin"), *inputs, f"--input=i={at('i')}.npy", "--output=out=" + at("out.npy"))
        expect(ran.returncode == 0 and np.array_equal(np.load(at("out.npy")), x[1]), f"numbers from .npy: {ran.stderr}")
        ran = tool("visa-run", at("pick.bin"), *inputs, f"--input=i={at('beyond')}.npy")
        expect(ran.returncode == 1 and "the number is -2147483649, the port has 32 bits" in ran.stderr, f"beyond: {ran.stderr}")


def tune():
    k = visa.tune("C[m, n] = sum(k) A[m, k] * B[n, k]", m=32, n=16, k=64, dtype="i8", budget=0.2)
    rng = np.random.default_rng(3)
    a, b = rng.integers(-128, 128, (32, 64)).astype(np.int8), rng.integers(-128, 128, (16, 64)).astype(np.int8)
    expect(np.array_equal(k(a, b), a.astype(np.int32) @ b.T.astype(np.int32)) and "axes![" in k.source, "a tuned product")


def main():
    with tempfile.TemporaryDirectory() as folder:
        structures(folder)
    for part in (matmul, arrays, errors, fixes, four_bits, numbers, tune):
        part()
    return visa_tools.ended(failures, "python: " + ("failed" if failures else "passed"))


if __name__ == "__main__":
    sys.exit(main())
