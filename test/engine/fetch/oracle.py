#!/usr/bin/env python3
"""The Fetch and Commit Adapters against an enumeration: what is accepted, and every value to the bit.

A kernel reads a tensor in some order of its axes, lets each element go through a table, a cast, a zero point, a trim, a cast on the way to DM,
or writes a constant over it; or it contracts data and weights less their zero points. What leaves is computed here element by element, from the
definitions of the element types and the tables of the published pages alone; what is no combination of those must be refused, for its reason.
Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracle"))
from harness import compile_all, visac  # noqa: E402
import visa_tools  # noqa: E402

BITS = {"i4": 4, "i8": 8, "i16": 16, "i32": 32, "u8": 8, "f4e2m1": 4, "f8e4m3": 8, "f8e5m2": 8, "bf16": 16, "f32": 32, "i5": 4, "i9": 8}
TABLES = {("f4e2m1", "f8e4m3"), ("f4e2m1", "f8e5m2"), ("f8e4m3", "bf16"), ("f8e5m2", "bf16")}
CASTS = {("i4", "i32"), ("i8", "i32"), ("i16", "i32"), ("f8e4m3", "f32"), ("f8e5m2", "f32"), ("bf16", "f32"), ("f32", "bf16")}
STORED = ["i4", "i8", "i16", "i32", "u8", "f4e2m1", "f8e4m3", "f8e5m2", "bf16", "f32"]
FORMATS = {"f4e2m1": (2, 1, 1), "f8e4m3": (4, 3, 7), "f8e5m2": (5, 2, 15), "bf16": (8, 7, 127), "f32": (8, 23, 127)}
NAN = float("nan")


# ---------------------------------------------------------------- element types, from their definitions


def number(dtype, code):
    """What a code stands for; a NaN is NAN."""
    bits = BITS[dtype]
    if dtype not in FORMATS:
        return code if dtype == "u8" else code - (code >> bits - 1 << bits)
    eb, fb, bias = FORMATS[dtype]
    sign, e, f = code >> eb + fb, code >> fb & (1 << eb) - 1, code & (1 << fb) - 1
    top = (1 << eb) - 1
    if dtype in ("f8e5m2", "bf16", "f32") and e == top:
        value = NAN if f else float("inf")
    elif dtype == "f8e4m3" and e == top and f == 7:
        value = NAN
    elif e == 0:
        value = 0.0 if dtype == "bf16" else f * 2.0 ** (1 - bias - fb)
    else:
        value = (1 + f / (1 << fb)) * 2.0 ** (e - bias)
    return -value if sign else value


def f32(value):
    if value != value:
        return 0x7fc00000
    return struct.unpack("<I", struct.pack("<f", value))[0]


def bf16(value):
    """Nearest, ties to even; what f32 holds as a subnormal is a zero of its sign; a NaN is 0x7fc0."""
    if value != value:
        return 0x7fc0
    sign = 0x8000 if str(value)[0] == "-" else 0
    magnitude = abs(value)
    if magnitude < 2.0 ** -126:
        return sign
    if magnitude == float("inf"):
        return sign | 0x7f80
    e = -126
    while magnitude >= 2.0 ** (e + 1):
        e += 1
    steps = magnitude / 2.0 ** (e - 7)  # 128 .. 256, exact
    whole = int(steps)
    if steps - whole > 0.5 or (steps - whole == 0.5 and whole % 2):
        whole += 1
    return sign | (((e + 127) << 7) + whole - 128)


def small(dtype, value):
    """The code of an exact number, by search over all of them."""
    for code in range(1 << BITS[dtype]):
        at = number(dtype, code)
        if at == value and str(at)[0] == str(value)[0] or (at != at and value != value):
            return code
    raise ValueError((dtype, value))


SMALL = {}


def code_of(dtype, value):
    if dtype == "f32":
        return f32(value)
    if dtype == "bf16":
        return bf16(value)
    if dtype in FORMATS:
        key = (dtype, str(value))
        if key not in SMALL:
            SMALL[key] = small(dtype, value)
        return SMALL[key]
    return value & (1 << BITS[dtype]) - 1


def packed(dtype, codes):
    bits = BITS[dtype]
    if bits == 4:
        return bytes(codes[i] | codes[i + 1] << 4 for i in range(0, len(codes), 2))
    return b"".join(c.to_bytes(bits // 8, "little") for c in codes)


# ---------------------------------------------------------------- kernels


class Kernel:
    """source text, what must come of it (ids: refused with one of these), inputs as (name, bytes), and the output's bytes."""

    def __init__(self, source, ids=None, inputs=(), output=None):
        self.source, self.ids, self.inputs, self.output = source, ids, list(inputs), output


def codes_for(rng, dtype, count):
    bits = BITS[dtype]
    if dtype == "f32":
        edge = [0, 0x80000000, 1, 0x80000001, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f7fffff, 0x3f808000, 0x3f818000, 0xbf808000, 0x00800000]
        return [rng.choice(edge) if rng.random() < 0.3 else rng.getrandbits(32) for _ in range(count)]
    return [rng.getrandbits(bits) for _ in range(count)]


def adapters(rng, i):
    """One read and one write of DM: what the elements go through, drawn mostly from what is legal."""
    wild = rng.random() < 0.2
    stored = rng.choice(STORED)
    table = cast = None
    at, ids, calls = stored, set(), ""
    options = [b for a, b in sorted(TABLES) if a == at] if not wild else STORED
    if options and rng.random() < 0.7:
        table = rng.choice(options)
        calls += f".fetch_table_lookup::<{table}>()"
        if (at, table) not in TABLES:
            ids.add("E-FETCH-TABLE")
        at = table
    options = [b for a, b in sorted(CASTS) if a == at] + [at] if not wild else STORED
    if rng.random() < 0.6:
        cast = rng.choice(options)
        calls += f".fetch_cast::<{cast}>()"
        if at != cast and (at, cast) not in CASTS:
            ids.add("E-FETCH-CAST")
        at = cast
    t, u = rng.choice((1, 2, 3, 4, 5)), rng.choice((1, 2, 3, 4, 7))
    p = rng.choice((16, 32, 64) if BITS[stored] == 4 or BITS[at] == 4 else (8, 16, 32))
    each = 256 // BITS[at]  # elements of a flit
    flits = max(p // each, 1)
    kept, out = min(p, each), at
    time = rng.choice((["T", "U"], ["U", "T"]))
    split = f"P % {each}" if p > each else "P"
    packet = split if p >= each else f"P # {each}"
    steps = time + ([f"P / {each}"] if p > each else [])
    narrow = None
    if at == "f32" and rng.random() < 0.6 or rng.random() < 0.05:
        narrow = rng.choice(("commit_cast", "commit_cast_relu"))
        out = "bf16" if rng.random() < 0.9 else rng.choice(("f8e4m3", "bf16", "f32"))
        if at != "f32" or out != "bf16":
            ids.add("E-COMMIT-CAST")
    live = kept
    trims = [k for k in range(1, kept) if k * BITS[at] % 64 == 0]
    if trims and rng.random() < 0.5:
        live = rng.choice(trims)
        split = f"{split} = {live}"
    if narrow and not ids and live * 32 // 8 % 16:
        ids.add("E-COMMIT-CAST")
    context = "sub" if rng.random() < 0.15 and (table or narrow) else "main"
    if context == "sub":
        ids = {"E-CONTEXT"} | ids
    size, place = (1, 1) if "f4e2m1" == at and False else (flits, live)
    order = rng.choice((time, time[::-1]))
    element = ", ".join(order + ([f"P / {each}"] if p > each else []) + [split])
    whole = ", ".join(["T", "U"] + ([f"P / {each}"] if p > each else []) + [split])
    commit = f".commit_trim::<m![{split}]>()" + (f".{narrow}::<{out}>()" if narrow else "")
    source = f"""mod m{i} {{
axes![T = {t}, U = {u}, P = {p}];
#[device(chip = 1)]
fn k{i}(ctx: &mut Context, x: &HbmTensor<{stored}, m![1], m![T, U, P]>) -> HbmTensor<{out}, m![1], m![{whole}]> {{
    let d: DmTensor<{stored}, m![1], m![1 # 2], m![1 # 256], m![T, U, P]> = x.to_dm(&mut ctx.tdma);
    let y: DmTensor<{out}, m![1], m![1 # 2], m![1 # 256], m![{element}]> = ctx.{context}.begin(d.view()).fetch::<m![{', '.join(time)}], m![P]>(){calls}
        .collect::<m![{', '.join(steps)}], m![{packet}]>(){commit}.commit();
    y.to_hbm(&mut ctx.tdma)
}}
}}"""
    if ids:
        return Kernel(source, ids)
    codes = codes_for(rng, stored, t * u * p)
    result = []
    for n, code in enumerate(codes):
        element = n % p
        if element % each >= live:
            result.append(0)
            continue
        value = number(stored, code)
        moved = at == stored and not narrow
        if narrow == "commit_cast_relu" and value == value and str(value)[0] == "-":
            value = 0.0
        result.append(code if moved else code_of(out, value))
    kernel = Kernel(source, None, [("x", packed(stored, codes))], packed(out, result))
    kernel.live = [n % p % each < live for n in range(t * u * p)]
    kernel.bits = BITS[out]
    return kernel


def contraction(rng, i):
    """Data and weights of 4 or 8 bits, less zero points."""
    data, weights = rng.choice((("i4", "i4"), ("i8", "i8"), ("i8", "i4"), ("i8", "i4")))
    if rng.random() < 0.05:
        data, weights = "i4", "i8"
    staging = {"i4": "i5", "i8": "i9"}
    zero = {}
    names = {"x": data, "w": weights}
    ids = {"E-ALIGN-TYPE"} if (data, weights) == ("i4", "i8") else set()
    calls = {"x": "", "w": ""}
    for side, base in (("x", data), ("w", weights)):
        zero[side] = 0
        if rng.random() < 0.6:
            half = 1 << BITS[base] - 1
            zero[side] = rng.choice((-half, half - 1, 0, rng.randrange(-half, half)))
            if rng.random() < 0.06:
                zero[side] = rng.choice((-half - 1, half, 1000))
                ids.add("E-FETCH-ZERO-POINT")
            to = staging[base]
            if rng.random() < 0.04:
                to = staging["i4" if base == "i8" else "i8"]
                ids.add("E-FETCH-ZERO-POINT")
            names[side] = to
            calls[side] = f".fetch_zero_point_sub::<{to}>({zero[side]})"
    if "E-FETCH-ZERO-POINT" in ids:
        ids |= {"E-ALIGN-TYPE"}
    mac = 512 // BITS[data]
    flit = {"x": 256 // BITS[data], "w": 256 // BITS[weights]}
    k = rng.choice((mac // 2, mac, 2 * mac))
    a, r = rng.choice((1, 2, 5, 8)), rng.choice((1, 2, 4, 8))
    steps = lambda first, n, e: (f"{first}, K / {e}", f"K % {e}") if n > e else (first, "K" if n == e else f"K # {e}")
    xt, xp = steps("A", k, flit["x"])
    wt, wp = steps("R", k, flit["w"])
    time, packet = (f"A, K / {mac}", f"K % {mac}") if k > mac else ("A", "K")
    element = f"K # {flit['w']}" if k < flit["w"] else "K"
    source = f"""mod m{i} {{
axes![A = {a}, R = {r}, K = {k}];
#[device(chip = 1)]
fn k{i}(ctx: &mut Context, x: &HbmTensor<{data}, m![1], m![A, K]>, w: &HbmTensor<{weights}, m![1], m![R, K]>) -> HbmTensor<i32, m![1], m![A, R]> {{
    let d: DmTensor<{data}, m![1], m![1 # 2], m![1 # 256], m![A, K]> = x.to_dm(&mut ctx.tdma);
    let e: DmTensor<{weights}, m![1], m![1 # 2], m![1 # 256], m![R, K]> = w.to_dm(&mut ctx.tdma);
    let t: TrfTensor<{names['w']}, m![1], m![1 # 2], m![1 # 256], m![R], m![{element}]> = ctx.sub.begin(e.view()).fetch::<m![R], m![K]>(){calls['w']}.collect::<m![{wt}], m![{wp}]>().to_trf();
    let y: DmTensor<i32, m![1], m![1 # 2], m![1 # 256], m![A, R # 8]> = ctx.main.begin(d.view()).fetch::<m![A], m![K]>(){calls['x']}.collect::<m![{xt}], m![{xp}]>()
        .contract_outer::<m![{time}], m![{packet}], _, _, _>(&t).contract_packet::<m![1]>().contract_time::<m![A]>().contract_lane::<m![A], m![R # 8]>(LaneMode::Interleaved)
        .commit_trim::<m![R # 8]>().commit();
    y.to_hbm(&mut ctx.tdma)
}}
}}"""
    if ids:
        return Kernel(source, ids)
    x, w = codes_for(rng, data, a * k), codes_for(rng, weights, r * k)
    less = lambda codes, base, side: [number(base, c) - zero[side] for c in codes]
    xs, ws = less(x, data, "x"), less(w, weights, "w")
    sums = [sum(xs[m * k + n] * ws[o * k + n] for n in range(k)) & 0xffffffff for m in range(a) for o in range(r)]
    return Kernel(source, None, [("x", packed(data, x)), ("w", packed(weights, w))], packed("i32", sums))


FILLS = {"i4": "const {{ i4::from_i32({}) }}", "f8e4m3": "const {{ f8e4m3::from_f32({}) }}", "bf16": "const {{ bf16::from_f32({}) }}"}


def memset(rng, i):
    dtype = rng.choice(("i4", "i8", "i16", "i32", "f8e4m3", "bf16", "f32", "u8", "f4e2m1", "f8e5m2"))
    a, b = rng.choice((1, 2, 3, 5)), rng.choice((16, 32, 48, 64, 80, 112))
    pad = rng.choice(("", f" # {b + 16}"))
    ids, bits = set(), BITS[dtype]
    if dtype in ("u8", "f4e2m1", "f8e5m2"):
        ids.add("E-MEMSET")
    if dtype in ("f32", "bf16", "f8e4m3", "f8e5m2", "f4e2m1"):
        finite = [c for c in (rng.getrandbits(bits) for _ in range(64)) if abs(number(dtype, c)) < 400 and number(dtype, c) == number(dtype, c)]
        value = number(dtype, rng.choice(finite)) if dtype != "f32" else rng.choice((0.0, -0.0, 1.5, -2.25, 1e-3, 65536.0))
        value = struct.unpack("<f", struct.pack("<f", value))[0]
        text, code = "%.60f" % value, f32(value) if dtype == "f32" else code_of(dtype, value)
        text = text.rstrip("0") + "0"
    else:
        value = rng.randrange(-(1 << bits - 1), 1 << bits - 1) if dtype != "u8" else rng.randrange(256)
        text, code = str(value), value & (1 << bits) - 1
    argument = FILLS.get(dtype, "{}").format(text)
    if dtype in FILLS and rng.random() < 0.1:
        argument, ids = argument[8:-2], {"E-MEMSET", "E-CONST"}
    source = f"""mod m{i} {{
axes![A = {a}, B = {b}];
#[device(chip = 1)]
fn k{i}(ctx: &mut Context, x: &HbmTensor<{dtype}, m![1], m![A, B]>) -> HbmTensor<{dtype}, m![1], m![A, B]> {{
    let mut d: DmTensor<{dtype}, m![1], m![1 # 2], m![1 # 256], m![A, B{pad}]> = x.to_dm(&mut ctx.tdma);
    d.view_mut().memset({argument}, &mut ctx.sub);
    d.to_hbm(&mut ctx.tdma)
}}
}}"""
    if ids:
        return Kernel(source, ids)
    return Kernel(source, None, [("x", packed(dtype, codes_for(rng, dtype, a * b)))], packed(dtype, [code] * (a * b)))


def same(kernel, got):
    """Elements that a trim leaves out are not compared."""
    live = getattr(kernel, "live", None)
    if live is None or all(live):
        return got == kernel.output
    if len(got) != len(kernel.output):
        return False
    step = max(kernel.bits // 8, 1)
    for n, alive in enumerate(live):
        if kernel.bits == 4:
            ok = (got[n // 2] >> n % 2 * 4 ^ kernel.output[n // 2] >> n % 2 * 4) & 15 == 0
        else:
            ok = got[n * step:(n + 1) * step] == kernel.output[n * step:(n + 1) * step]
        if alive and not ok:
            return False
    return True


def run(folder, binary, i, kernel):
    arguments = [os.path.join(os.path.dirname(visac()), "visa-run"), binary, f"--kernel=k{i}"]
    for name, data in kernel.inputs:
        path = os.path.join(folder, f"{name}.bin")
        with open(path, "wb") as file:
            file.write(data)
        arguments += ["--input", f"{name}={path}"]
    out = os.path.join(folder, "out.bin")
    done = subprocess.run(arguments + ["--output", out], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr[-600:]
    with open(out, "rb") as file:
        return None if same(kernel, file.read()) else "wrong values"


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(120)
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    seen, failures = {"right": 0, "refused for its reason": 0}, 0
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, count, 100):
            kernels = [rng.choice((adapters, adapters, adapters, contraction, contraction, memset))(rng, i) for i in range(min(100, count - first))]
            good = []
            for i, (kernel, verdict) in enumerate(zip(kernels, compile_all([k.source for k in kernels]))):
                if verdict.kind == "accepted" and kernel.ids is None:
                    good.append(i)
                elif verdict.kind == "refused" and kernel.ids and set(verdict.ids) & kernel.ids:
                    seen["refused for its reason"] += 1
                else:
                    failures += 1
                    print(f"{verdict.kind}, expected {kernel.ids or 'accepted'}: {verdict.message}\n{kernel.source}")
            path, binary = os.path.join(folder, "all.vm"), os.path.join(folder, "all.bin")
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(kernels[i].source for i in good) + "\n")
            subprocess.run([visac(), path, "-o", binary], capture_output=True, check=True)
            for i in good:
                fault = run(folder, binary, i, kernels[i])
                if fault:
                    failures += 1
                    print(f"{fault}\n{kernels[i].source}")
                else:
                    seen["right"] += 1
    print(", ".join(f"{n} {what}" for what, n in seen.items()) + f", {failures} wrong")
    if not all(seen.values()):
        sys.exit("nothing was judged")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
