#!/usr/bin/env python3
"""The Vector Engine's operations by definition, in integers, against what the machine does (vector_table).

Each binary operation over all pairs of about 400 edge values, the ternary one over all triples of some of them, each unary one over all
2^16 bf16 inputs, and functions that are no arithmetic over random inputs as well. Nothing here computes with floats: a float is an
integer times a power of two, rounded by round_f32. Written from the meaning of the operations alone."""
import ast
import math
import os
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import visa_tools

MIN, MAX, NAN, INF = -(1 << 31), (1 << 31) - 1, 0x7FC00000, 0x7F800000
WORD = 0xFFFFFFFF


def signed(w):
    return w - (1 << 32) if w >> 31 else w


def clamp(n):
    return max(MIN, min(MAX, n))


def is_nan(w):
    return w & 0x7FFFFFFF > INF


def is_inf(w):
    return w & 0x7FFFFFFF == INF


def parts(w):
    """A finite float as (integer, exponent), its sign bit apart: zeros have one too."""
    e, m = w >> 23 & 255, w & 0x7FFFFF
    n, e = (m | 0x800000, e - 150) if e else (m, -149)
    return (-n if w >> 31 else n), e


def round_f32(n, e, zero_sign=0, sticky=0):
    """n * 2^e to nearest, ties to even; sticky: the magnitude is a little more."""
    if n == 0:
        return zero_sign << 31
    sign, n = (1, -n) if n < 0 else (0, n)
    if sticky:
        n, e = n * 4 + 1, e - 2
    drop = max(n.bit_length() - 24, -149 - e)
    if drop > 0:
        low, half = n & ((1 << drop) - 1), 1 << (drop - 1)
        n = (n >> drop) if drop <= n.bit_length() + 1 else 0
        n += low > half or (low == half and n & 1)
        e += drop
    elif drop < 0:
        n, e = n << -drop, e + drop
    if n >> 24:
        n, e = n >> 1, e + 1
    if e + 150 >= 255:
        return sign << 31 | INF
    return sign << 31 | (((e + 150) << 23) + n - 0x800000 if n >> 23 else n)


def add(a, b):
    if is_nan(a) or is_nan(b) or (is_inf(a) and is_inf(b) and a != b):
        return NAN
    if is_inf(a) or is_inf(b):
        return a if is_inf(a) else b
    (m, e), (n, f) = parts(a), parts(b)
    least = min(e, f)
    return round_f32((m << (e - least)) + (n << (f - least)), least, a >> 31 & b >> 31)


def negative(a):
    return a ^ 0x80000000


def sub(a, b):
    return add(a, negative(b))


def mul(a, b):
    sign = (a ^ b) >> 31
    if is_nan(a) or is_nan(b) or (is_inf(a) and not b << 1 & WORD) or (is_inf(b) and not a << 1 & WORD):
        return NAN
    if is_inf(a) or is_inf(b):
        return sign << 31 | INF
    (m, e), (n, f) = parts(a), parts(b)
    return round_f32(m * n, e + f, sign)


def div(a, b):
    sign = (a ^ b) >> 31
    zero_a, zero_b = not a << 1 & WORD, not b << 1 & WORD
    if is_nan(a) or is_nan(b) or (is_inf(a) and is_inf(b)) or (zero_a and zero_b):
        return NAN
    if is_inf(a) or zero_b:
        return sign << 31 | INF
    if is_inf(b) or zero_a:
        return sign << 31
    (m, e), (n, f) = parts(a), parts(b)
    q, r = divmod(abs(m) << 64, abs(n))
    return round_f32(-q if sign else q, e - f - 64, 0, r != 0)


def fma(a, b, c):
    sign = (a ^ b) >> 31
    if any(map(is_nan, (a, b, c))) or (is_inf(a) and not b << 1 & WORD) or (is_inf(b) and not a << 1 & WORD):
        return NAN
    if is_inf(a) or is_inf(b):
        return NAN if is_inf(c) and c >> 31 != sign else sign << 31 | INF
    if is_inf(c):
        return c
    (m, e), (n, f), (p, g) = parts(a), parts(b), parts(c)
    least = min(e + f, g)
    return round_f32((m * n << (e + f - least)) + (p << (g - least)), least, sign & c >> 31)


def sqrt(a):
    if is_nan(a) or (a >> 31 and a << 1 & WORD):
        return NAN
    if is_inf(a) or not a << 1 & WORD:
        return a
    n, e = parts(a)
    n, e = (n << 1, e - 1) if e & 1 else (n, e)
    n, e = n << 80, e - 80
    r = isqrt(n)
    return round_f32(r, e // 2, 0, r * r != n)


def isqrt(n):
    x = 1 << (n.bit_length() + 1) // 2
    while True:
        y = (x + n // x) // 2
        if y >= x:
            return x
        x = y


def order(a):
    """Floats but NaN in their order, -0 below 0."""
    return -(a & 0x7FFFFFFF) - 1 if a >> 31 else a


def least(a, b):
    return NAN if is_nan(a) and is_nan(b) else b if is_nan(a) else a if is_nan(b) else min(a, b, key=order)


def most(a, b):
    return NAN if is_nan(a) and is_nan(b) else b if is_nan(a) else a if is_nan(b) else max(a, b, key=order)


def abs_min_f(a, b):
    return a if not is_nan(a) and not is_nan(b) and a & 0x7FFFFFFF < b & 0x7FFFFFFF else b


def abs_max_f(a, b):
    return a if not is_nan(a) and not is_nan(b) and a & 0x7FFFFFFF > b & 0x7FFFFFFF else b


def of_i32(f):
    return lambda a, b: f(signed(a), signed(b)) & WORD


def mul_fxp(a, b):
    return MAX if a == b == MIN else ((a * b >> 30) + 1) >> 1


def shl_sat(a, b):
    b &= WORD
    return clamp(a << b) if b <= 30 else MAX if a > 0 else MIN if a < 0 else 0


def fxp_to_fp(a, w):
    return round_f32(signed(a), (w & 31) - 31)


def fp_to_fxp(a, w):
    if is_nan(a):
        return (MIN if a >> 31 else MAX) & WORD
    if is_inf(a):
        return (MIN if a >> 31 else MAX) & WORD
    n, e = parts(a)
    e += 31 - (w & 31)
    size = abs(n)
    size = size << e if e >= 0 else (size + (1 << (-e - 1))) >> -e if -e < 64 else 0
    return clamp(-size if n < 0 else size) & WORD


# ---- functions that are no arithmetic: to so many bits after the point, with integers ----

BITS = 240


def exp_bits(n, e):
    """e^(n 2^e) as (integer, exponent)."""
    x = n << (BITS + e) if BITS + e >= 0 else n >> -(BITS + e)
    k = (x + LN2 // 2) // LN2
    r, term, total, i = x - k * LN2, 1 << BITS, 0, 0
    while term:
        total += term
        i += 1
        term = term * r // i >> BITS if r >= 0 else -(-term * r // i >> BITS) if term > 0 else -term * -r // i >> BITS
    return total, k - BITS


def series(x, start, step, signs):
    """The sum of x^k / k! for k = start, start + step, .."""
    term, total = (x if start else 1 << BITS), 0
    k = start
    x2 = x * x >> BITS
    while term:
        total += term
        term = term * x2 // ((k + 1) * (k + 2)) >> BITS
        term = -term if signs else term
        k += step
        if abs(term) < 2:
            break
    return total


def atan_inverse(n, signs):
    term, total, k = (1 << BITS + 40) // n, 0, 1
    while term:
        total += term // k if not signs or k % 4 == 1 else -(term // k)
        term //= n * n
        k += 2
    return total


LN2 = 2 * atan_inverse(3, False) >> 40
PI = 4 * (4 * atan_inverse(5, True) - atan_inverse(239, True))  # 40 bits more


def exp(a):
    if is_nan(a):
        return NAN
    if is_inf(a):
        return 0 if a >> 31 else INF
    n, e = parts(a)
    if e > -18 and n > 0 and n << (e + 18) > 200 << 18:
        return INF
    if e > -18 and n < 0 and -n << (e + 18) > 200 << 18:
        return 0
    return round_f32(*exp_bits(n, e), 0, 1)


def sigmoid(a):
    return div(0x3F800000, add(0x3F800000, exp(negative(a))))


def to_one(a, most, of):
    """An odd function that is 1 from `most` on; of(n, e): the bits of its value at n 2^e > 0."""
    if is_nan(a):
        return NAN
    sign, a = a & 0x80000000, a & 0x7FFFFFFF
    if a >= most:
        return sign | 0x3F800000
    n, e = parts(a)
    return sign | of(n, e) if n else sign


def tanh(a):
    return to_one(a, 0x41A00000, tanh_bits)  # 20


def tanh_bits(n, e):
    if e + n.bit_length() < -20:  # x - x^3 / 3, to many bits
        return round_f32((n << 80) - (n ** 3 << 80 >> -2 * e) // 3, e - 80, 0, 1)
    m, f = exp_bits(2 * n, e)
    one = 1 << -f
    return round_f32(((m - one) << 200) // (m + one), -200, 0, 1)


def erf(a):
    return to_one(a, 0x40800000, erf_bits)  # 4


def erf_bits(n, e):
    """2 / sqrt(pi) (x - x^3 / 3 + x^5 / (2! 5) - ..), of 4 at most, with bits to spare for what cancels."""
    bits = BITS + 200
    one = 1 << bits
    x = n << (bits + e) if bits + e >= 0 else n >> -(bits + e)
    x2, term, total, k = x * x >> bits, x, 0, 0
    while abs(term) > 1:
        total += term // (2 * k + 1)
        k += 1
        term = -(term * x2 >> bits) // k
    root = math.isqrt((PI >> 40) << 2 * bits - BITS)
    return round_f32(2 * total * one // root, -bits, 0, 1)


def shift_round(a, b):
    size, b = abs(signed(a)), b & 31
    whole = (2 * size + (1 << b)) >> (b + 1)
    return (-whole if signed(a) < 0 else whole) & WORD


def log(a):
    if is_nan(a) or (a >> 31 and a << 1 & WORD):
        return NAN
    if not a << 1 & WORD:
        return 0x80000000 | INF
    if is_inf(a):
        return INF
    n, e = parts(a)
    k = n.bit_length() - 1
    if n * n > 1 << 2 * k + 1:
        k += 1
    x, e = n << (BITS - k) if BITS >= k else n, e + k
    one = 1 << BITS
    if x == one:
        total = 0
    else:
        s = ((x - one) << BITS) // (x + one)
        s2, term, total, i = s * s >> BITS, s, 0, 1
        while abs(term) > 1:
            total += term // i
            term = term * s2 >> BITS
            i += 2
    total = 2 * total + e * LN2
    return round_f32(total, -BITS, 0, total != 0)


def angle(a):
    """(quarter, rest): |a| = quarter pi / 2 + rest, rest with BITS bits."""
    n, e = parts(a & 0x7FFFFFFF)
    x = n << (BITS + 40 + e) if BITS + 40 + e >= 0 else n >> -(BITS + 40 + e)
    half = PI_LONG >> (LONG - BITS - 40 + 1)
    if e > 0:  # to as many more bits
        shift = LONG - 1
        k = ((n << e) << shift) // (PI_LONG >> 1)
        k2 = (n << (e + LONG)) // (PI_LONG >> 1)
        rest = (n << (e + LONG)) - k2 * (PI_LONG >> 1)
        if 2 * rest > PI_LONG >> 1:
            k2, rest = k2 + 1, rest - (PI_LONG >> 1)
        return k2 % 4, rest >> (LONG - BITS)
    k = (2 * x + half) // (2 * half)
    return k % 4, (x - k * half) >> 40


LONG = 900


def pi_long():
    global BITS
    kept, BITS = BITS, LONG - 40
    pi = 4 * (4 * atan_inverse(5, True) - atan_inverse(239, True))
    BITS = kept
    return pi


PI_LONG = pi_long()


def sine_like(a, turn):
    if is_nan(a) or is_inf(a):
        return NAN
    n, e = parts(a)
    if not turn and e + abs(n).bit_length() < -20:
        return round_f32((n << 80) - (n ** 3 << 80 >> -2 * e) // 6, e - 80, a >> 31, n != 0)
    quarter, rest = angle(a)
    sign = a >> 31 if not turn else 0
    quarter = (quarter + turn) % 4
    value = series(rest, 0 if quarter & 1 else 1, 2, True)
    sign ^= quarter >> 1
    if value == 1 << BITS and rest == 0:
        return sign << 31 | 0x3F800000
    return round_f32(-value if sign else value, -BITS, sign, 1)


def sin(a):
    return sine_like(a, 0)


def cos(a):
    return sine_like(a, 1)


BINARY = {
    "AND_I32": lambda a, b: a & b, "OR_I32": lambda a, b: a | b, "XOR_I32": lambda a, b: a ^ b,
    "AND_F32": lambda a, b: a & b, "OR_F32": lambda a, b: a | b, "XOR_F32": lambda a, b: a ^ b,
    "LOGIC_SHL": lambda a, b: a << (b & 31) & WORD, "LOGIC_SHR": lambda a, b: a >> (b & 31),
    "LOGIC_SAR": lambda a, b: signed(a) >> (b & 31) & WORD,
    "ADD_FXP": lambda a, b: a + b & WORD, "SUB_FXP": lambda a, b: a - b & WORD, "MUL_INT": lambda a, b: a * b & WORD,
    "ADD_FXP_SAT": of_i32(lambda a, b: clamp(a + b)), "SUB_FXP_SAT": of_i32(lambda a, b: clamp(a - b)),
    "FXP_SHL": lambda a, b: a << (b & 31) & WORD, "FXP_SHL_SAT": of_i32(shl_sat), "MUL_FXP": of_i32(mul_fxp),
    "FXP_SHR": lambda a, b: a >> (b & 31), "FXP_SAR": lambda a, b: signed(a) >> (b & 31) & WORD, "FXP_SAR_ROUND": shift_round,
    "FXP_TO_FP": fxp_to_fp, "FP_TO_FXP": fp_to_fxp,
    "ADD_F": add, "SUB_F": sub, "MUL_F0": mul, "MUL_F1": mul, "MUL_FMA": mul, "DIV_F": div, "FP_DIV": div,
    "CLIP_MIN_I32": of_i32(min), "CLIP_MAX_I32": of_i32(max),
    "CLIP_ABS_MIN_I32": of_i32(lambda a, b: a if abs(a) < abs(b) else b),
    "CLIP_ABS_MAX_I32": of_i32(lambda a, b: a if abs(a) > abs(b) else b),
    "CLIP_ADD_FXP": lambda a, b: a + b & WORD, "CLIP_ADD_FXP_SAT": of_i32(lambda a, b: clamp(a + b)),
    "CLIP_MIN_F32": least, "CLIP_MAX_F32": most, "CLIP_ABS_MIN_F32": abs_min_f, "CLIP_ABS_MAX_F32": abs_max_f, "CLIP_ADD_F32": add,
    "REDUCE_ADD_SAT": of_i32(lambda a, b: clamp(a + b)), "REDUCE_MAX_I32": of_i32(max), "REDUCE_MIN_I32": of_i32(min),
    "REDUCE_ADD_F32": add, "REDUCE_MAX_F32": most, "REDUCE_MIN_F32": least,
    "SLICES_ADD_I32": lambda a, b: a + b & WORD, "SLICES_ADD_SAT": of_i32(lambda a, b: clamp(a + b)), "SLICES_MAX_I32": of_i32(max), "SLICES_MIN_I32": of_i32(min),
    "SLICES_ADD_F32": add, "SLICES_MAX_F32": most, "SLICES_MIN_F32": least, "SLICES_MUL_F32": mul,
}
UNARY = {"F32_OF_BITS": lambda a: a, "BITS_OF_F32": lambda a: a, "EXP": exp, "NEG_EXP": lambda a: exp(negative(a)), "SQRT": sqrt,
         "TANH": tanh, "SIGMOID": sigmoid, "LOG": log, "SIN": sin, "COS": cos, "ERF": erf}
TERNARY = {"FMA_F": fma}


def edges():
    """About 400 words: ends and neighbours of both kinds of numbers."""
    words = {0, 1, 2, 3, 5, 7, 30, 31, 32, 33, 63, 64, 100, 255, 1000, 65535, 65536, MAX, MAX - 1, 0x40000000, 0x3FFFFFFF}
    for k in range(0, 32):
        words |= {1 << k, (1 << k) - 1, -(1 << k) & WORD, (-(1 << k) - 1) & WORD}
    for e in (0, 1, 2, 3, 23, 24, 64, 100, 103, 104, 110, 120, 125, 126, 127, 128, 129, 130, 134, 149, 150, 151, 157, 158, 160, 191, 200, 253, 254, 255):
        for m in (0, 1, 0x400000, 0x7FFFFF, 0x2AAAAB):
            words |= {e << 23 | m, 1 << 31 | e << 23 | m}
    return sorted(w & WORD for w in words)


def run(tool, code, groups):
    """Results, which are the same at all levels of processors."""
    flat = [w for g in groups for w in g]
    data = struct.pack(f"<{len(flat)}I", *flat)
    levels = {level: subprocess.run([tool, str(code), level], input=data, stdout=subprocess.PIPE, check=True).stdout for level in ("plain", "avx2", "avx512")}
    if len(set(levels.values())) > 1:
        sys.exit(f"operation {code}: the levels of processors have other bits")
    return struct.unpack(f"<{len(groups)}I", levels["plain"])


def main():
    tool, quick = os.path.join(visa_tools.bin_dir(), "vector_table"), visa_tools.SLOWER > 1
    draw = random.Random(23)
    rows = [line.split() for line in subprocess.run([tool], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()]
    tree = ast.parse(pathlib.Path(__file__).with_name("machine.py").read_text())
    codes = next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "EXPRESSIONS")
    missing = [name for code, _, name, *_ in rows if int(code) not in codes and not name.startswith(("REDUCE_", "SLICES_"))]  # which it has as loops
    if missing:
        sys.exit(f"EXPRESSIONS of machine.py do not have {', '.join(missing)}")
    values = edges()
    pairs = [(a, b) for b in values for a in values]  # the second one stays for a while, as a constant does
    some = values[::9]
    triples = [(a, b, c) for c in some for b in some for a in some]
    unary = [(w << 16,) for w in range(1 << 16)] + [(draw.getrandbits(32),) for _ in range(1 << 13)] + [(w,) for w in values]
    if not visa_tools.LONG:
        pairs, triples, unary = pairs[::3], triples[::3], unary[:1 << 16:3] + unary[1 << 16:]
    if quick:
        pairs, triples, unary = pairs[::53], triples[::53], unary[::53]
    wrong, compared = 0, 0
    for code, operands, name, *_ in rows:
        model = {"1": UNARY, "2": BINARY, "3": TERNARY}[operands].get(name)
        if model is None:
            sys.exit(f"{name}: the model does not have it")
        groups = {"1": unary, "2": pairs, "3": triples}[operands]
        for group, got in zip(groups, run(tool, code, groups)):
            wanted = model(*group)
            compared += 1
            if wanted != got:
                wrong += 1
                if wrong <= 40:
                    print(f"{name} of {' '.join(f'{w:08x}' for w in group)}: {got:08x}, by the model {wanted:08x}")
    print(f"{len(rows)} operations, {len(values)} edge values, {compared} results, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
