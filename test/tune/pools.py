#!/usr/bin/env python3
"""visac tune: windows that are folded, with no filters, `max(r, s) I[y*2 + r, x*2 + s, c]`: numbers against loops in Python, in every spelling of a place and of a fold.
Usage: pools.py [SEED [QUESTIONS]]: random ones of that seed alone."""
import math
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, computed, tune, verdict
from borders import PLACES, distance

FOLDS = {"max": max, "min": min, "sum": sum, "mean": sum}
FORMATS = {"i8": "b", "i16": "h", "i32": "i", "f32": "f"}


def pack(dtype, values):
    if dtype == "i4":
        return bytes(a & 15 | (b & 15) << 4 for a, b in zip(values[::2], values[1::2] + [0]))
    if dtype == "bf16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


class Pool:
    """A window along each axis of `axes`: results, places of a window, stride, dilation, what is passed in front of the image, and the image's own size; `n` images outside, `c` channels inside."""

    def __init__(self, fold, n, axes, c, dtype="bf16", behind="", front="", out=None):
        self.fold, self.n, self.axes, self.c, self.dtype, self.behind, self.front = fold, n, axes, c, dtype, behind, front
        self.whole = dtype[0] == "i" and fold != "mean"
        self.out = out or ("i32" if self.whole else "f32")

    @staticmethod
    def taken(results, taps, stride, dilation):
        return (results - 1) * stride + (taps - 1) * dilation + 1

    def question(self, spelling=0, nested=False):
        kept, summed, own = "yx", "rs", "hw"
        places = [f"{own[i]} = " + PLACES[(spelling + i) % len(PLACES)].format(y=kept[i], r=summed[i], a=a[2], b=a[3], d=distance(a[4])) for i, a in enumerate(self.axes)]
        n = "n, " if self.n else ""
        over = [summed[i] for i in range(len(self.axes))]
        image = f"P[{n}{', '.join(places)}, c]"
        image = self.front.format(image) if self.front else image
        fold = "".join(f"{self.fold}({axis}) " for axis in over) if nested else f"{self.fold}({', '.join(over)}) "
        axes = f"{n}{', '.join(kept[:len(self.axes)])}, c"
        return f"O[{axes}] = " + (self.behind or "{}").format(fold + image, axes=axes)

    def given(self):
        given = {"c": self.c, **({"n": self.n} if self.n else {})}
        for i, a in enumerate(self.axes):
            given.update({"yx"[i]: a[0], "rs"[i]: a[1], "hw"[i]: a[5]})
        return given

    def expected(self, image, extras):
        """Of 1 or 2 axes."""
        axes = self.axes if len(self.axes) == 2 else [*self.axes, (1, 1, 1, 1, 0, 1)]
        (ys, rs, sy, dy, by, h), (xs, ss, sx, dx, bx, w) = axes
        out = []
        for n in range(self.n or 1):
            for y in range(ys):
                for x in range(xs):
                    taps = [((n * h + y * sy + r * dy - by) * w + x * sx + s * dx - bx) * self.c for r in range(rs) for s in range(ss)
                            if 0 <= y * sy + r * dy - by < h and 0 <= x * sx + s * dx - bx < w]
                    for c in range(self.c):
                        values = [image[at + c] for at in taps]
                        if self.front:
                            values = [eval(self.front.format("v"), {"v": v, **NAMES}) for v in values]
                        v = FOLDS[self.fold](values) / (rs * ss if self.fold == "mean" else 1)
                        if self.behind:
                            v = eval(self.behind.format("v", axes="at"), {"v": v, "c": c, "at": len(out), **NAMES, **extras})
                        out.append(v)
        return out


NAMES = {"relu": lambda v: max(v, 0), "square": lambda v: v * v, "exp": math.exp}


def ask(pool, spelling=0, nested=False, work=None):
    """The answer's cycles; its numbers are judged."""
    what = f"{pool.question(spelling, nested)} {pool.given()} {pool.dtype} to {pool.out}"
    path = lambda name: os.path.join(work, name)
    made = tune(pool.question(spelling, nested), pool.given(), f"--dtype={pool.dtype}", f"--out={pool.out}", "--budget=0s", "--no-cache", "--emit=vm,bin,report", "-o", path("o"))
    check(made.status == 0 and "warning" not in made.text(), f"{what}: " + made.text())
    if made.status != 0:
        return 0
    with open(path("o.vm")) as file:
        text = file.read()
    rng = random.Random(5)
    elements = (pool.n or 1) * pool.c * math.prod(a[5] for a in pool.axes)
    results = (pool.n or 1) * pool.c * math.prod(a[0] for a in pool.axes)
    draw = lambda count, low, high: [rng.randint(low, high) for _ in range(count)]
    image = draw(elements, -8, -1) if pool.fold == "max" and not pool.front else draw(elements, 1, 7) if pool.fold == "min" and not pool.front else draw(elements, -4, 4)
    extras = {name: draw(count, -3, 3) for name, count in (("B", pool.c), ("S", pool.c), ("R", results)) if f"{name}[" in pool.behind}
    found = computed(work, {name.lower(): pack(pool.dtype, values) for name, values in (("p", image), *extras.items())}, what)
    if found is None:
        return 0
    if pool.out == "bf16":
        found = struct.unpack(f"<{len(found) // 2}f", b"".join(b"\0\0" + found[i:i + 2] for i in range(0, len(found), 2)))
    else:
        found = struct.unpack(f"<{len(found) // struct.calcsize(FORMATS[pool.out])}{FORMATS[pool.out]}", found)
    expected = pool.expected(image, extras)
    near = 1e-2 if pool.out == "bf16" else 2e-6
    wrong = [i for i, (a, b) in enumerate(zip(found, expected)) if abs(a - b) > near * max(1, abs(b)) * (pool.out[0] != "i")]
    check(len(found) == len(expected) and not wrong, f"{what}: {len(wrong)} of {len(expected)} other numbers than loops give, {len(found)} found")
    proof = visa_tools.run(["visac", path("o.vm"), "--check"])
    check(proof.status == 0 and "proven" in proof.text() and "warning" not in proof.text(), f"{what}: " + proof.text())
    return int(re.search(r"(\d+) cycles", text)[1])


def square(results, taps, stride, before, image=None, dilation=1):
    return (results, taps, stride, dilation, before, image or Pool.taken(results, taps, stride, dilation) - 2 * before)


POOLS = [Pool("max", 0, [square(14, 3, 2, 1, 28), square(14, 3, 2, 1, 28)], 64, out="bf16"), Pool("max", 0, [square(10, 5, 1, 2), square(10, 5, 1, 2)], 32, "i8", out="i8"),
         Pool("max", 2, [square(16, 3, 1, 1), square(12, 3, 2, 1, 24)], 128, "i8", out="i8"), Pool("min", 0, [square(24, 3, 2, 1, 48)], 512, "f32"),  # parts of the image in slices
         Pool("mean", 2, [square(7, 2, 2, 0), square(7, 2, 2, 0)], 40, out="bf16"), Pool("mean", 0, [square(7, 3, 1, 1), square(5, 3, 1, 1)], 24, "i8"),
         Pool("min", 3, [square(9, 3, 3, 0, 28), square(6, 2, 1, 0, 9)], 16, "f32"), Pool("sum", 0, [square(30, 4, 2, 0)], 20),
         Pool("max", 2, [square(11, 3, 2, 1, 22)], 8, "i16"), Pool("max", 0, [square(5, 2, 2, 0, 11), square(5, 2, 2, 0, 10)], 3),  # the last row is in no window
         Pool("min", 0, [square(4, 3, 1, -2, 9), square(4, 1, 1, 0)], 16, "i8"),  # nor are the first
         Pool("max", 0, [square(6, 1, 2, 0, 12), square(6, 1, 2, 0, 12)], 16), Pool("sum", 1, [square(1, 3, 1, 0), square(1, 3, 1, 0)], 8, "i8"),
         Pool("max", 0, [square(6, 2, 2, 0), square(6, 2, 2, 0)], 16, behind="relu({})"), Pool("sum", 0, [square(6, 2, 2, 0), square(6, 2, 2, 0)], 24, behind="({}) * S[c] + B[c]"),
         Pool("max", 2, [square(6, 3, 1, 1), square(5, 3, 1, 1)], 16, behind="({}) * S[c] + R[{axes}]"), Pool("mean", 0, [square(6, 3, 1, 0)], 16, "i8", behind="relu({} - 1) * 2"),
         Pool("sum", 0, [square(6, 3, 1, 0), square(4, 3, 1, 0)], 16, front="square({})"), Pool("max", 0, [square(6, 3, 1, 1), square(4, 3, 1, 1)], 16, front="relu({})"),
         Pool("max", 0, [square(6, 3, 1, 1), square(4, 3, 1, 1)], 16, "i4", out="i8"), Pool("max", 0, [square(3, 3, 1, 1), square(4, 3, 1, 1)], 8, "i32")]


def random_pool(rng):
    while True:
        axes = []
        for _ in range(rng.choice([1, 2, 2])):
            results, taps, stride, dilation, before = rng.randint(1, 12), rng.randint(1, 5), rng.choice([1, 1, 2, 2, 3]), rng.choice([1, 1, 1, 2]), rng.choice([-1, 0, 0, 0, 1, 1, 2])
            image = Pool.taken(results, taps, stride, dilation) - before + rng.choice([-1, -before, -before, 0, 0, 1, 2])
            if rng.random() < 0.3:  # slices have equal parts of the image
                results, stride, before = rng.choice([8, 12, 20]), rng.choice([1, 2]), rng.randint(0, 2)
                image = results * stride
            axes.append((results, taps, stride, dilation, before, image))
        if all(a[5] >= 1 and min(Pool.taken(*a[:4]), a[4] + a[5]) - max(0, a[4]) >= 1 for a in axes):
            misses = any(not any(0 <= y * a[2] + r * a[3] - a[4] < a[5] for r in range(a[1])) for a in axes for y in range(a[0]))
            fold, dtype = rng.choice(["max", "max", "min", "sum", "mean"]), rng.choice(["bf16", "bf16", "i8", "f32", "i16", "i4"])
            whole = dtype[0] == "i" and fold != "mean"
            if misses and fold in ("max", "min"):
                continue
            behind = rng.choice(["", "", "relu({})", "({}) * 2 + B[c]", "({}) * S[c]", "max({}, 1) - R[{axes}]"]) if whole or dtype in ("bf16", "f32") else ""
            return Pool(fold, rng.choice([0, 0, 1, 2, 3]), axes, rng.choice([3 if "[" in behind else 1, 3, 8, 16, 20, 24, 40, 64, 130]), dtype, behind)


def refusals():
    """What is no such question says so, with the form that one has."""
    sizes = dict(y=4, x=4, r=3, s=3, c=16)
    for question, more, dtype, text in [("O[x, y, c] = max(r, s) P[y + r, x + s, c]", {}, "bf16", "in its order"), ("O[y, x] = max(r, s, c) P[y + r, x + s, c]", {}, "bf16", "is in no window"),
                                        ("O[y, x, c] = max(r) P[y + r, x + s, c]", {}, "bf16", "not folded"), ("O[y, x, c] = softmax(r, s) P[y + r, x + s, c]", {}, "bf16", "two ways"),
                                        ("O[y, x, c] = max(r) min(s) P[y + r, x + s, c]", {}, "bf16", "two ways"), ("O[c, y, x] = max(r, s) P[c, y + r, x + s]", {}, "bf16", "side by side"),
                                        ("O[y, x, c] = sum(r, s) P[y + r - 1, x + s, c]", {}, "f8e5m2", "is not filled"), ("O[y, x, c] = sum(r, s) exp(P[y + r - 1, x + s, c])", {}, "bf16", "places around it"),
                                        ("O[y, x, c] = max(r, s) P[h = y + r - 3, x + s, c]", {"h": 4}, "bf16", "no place of the image"),
                                        ("O[y, x, c] = max(r, s) P[y + r, x + s, c] * Q[y + r, x + s, c]", {}, "bf16", "help")]:
        ran = tune(question, dict(sizes, **more), f"--dtype={dtype}", "--budget=0s", "--no-cache")
        check(ran.status != 0 and text in ran.text() and "help" in ran.text(), f"{question}: " + ran.text())
    ran = tune("O[y, x, c] = max(r, s) P[y + r, x + s, c]", sizes, "--chips=2", "--budget=0s", "--no-cache")
    check(ran.status != 0 and "of one chip" in ran.text(), "two chips: " + ran.text())


def main():
    with tempfile.TemporaryDirectory() as work:
        if len(sys.argv) > 1:
            rng = random.Random(int(sys.argv[1]))
            for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 20):
                ask(random_pool(rng), number, number % 2 == 1, work)
            return verdict("pools")
        for i, pool in enumerate(POOLS):
            ask(pool, i, False, work)
        same = [ask(POOLS[5], spelling, nested, work) for spelling in range(len(PLACES)) for nested in (False, True)]
        check(len(set(same)) == 1, f"spellings of one window: cycles {same}")
        refusals()
    return verdict("pools")


if __name__ == "__main__":
    sys.exit(main())
