#!/usr/bin/env python3
"""visac tune: convolutions whose windows take places that the image has not, or not all that it has, and those of groups of channels: numbers against loops in Python.
Usage: borders.py [SEED [QUESTIONS]]: random ones of that seed alone."""
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from asking import check, computed, tune, verdict

# One place of a window, in every spelling: {y} the kept axis, {r} the summed one, {a} stride, {b} dilation, {d} " - 1", or nothing.
PLACES = ["{y}*{a} + {r}*{b}{d}", "{a}*{y} + {b}*{r}{d}", "{r}*{b} + {y}*{a}{d}", "{y}*{a}{d} + {r}*{b}", "{y} * {a}{d} + {b} * {r}"]


def distance(before):
    return f" - {before}" if before > 0 else f" + {-before}" if before < 0 else ""


class Layer:
    """Sizes, what is passed in front of the image, and the image's own sizes."""

    def __init__(self, n, y, x, f, r, s, c, stride=1, dilation=1, before=(1, 1), image=None, depthwise=False, dtype="i8", chips=1, along=None, groups=0):
        self.sizes = dict(y=y, x=x, r=r, s=s, c=c, **({} if depthwise else {"f": f}), **({"n": n} if n else {}), **({"g": groups} if groups else {}))
        self.groups = groups  # each with channels and columns of its own
        self.along = along  # "y": there is no x and no s; "x": x has no window
        self.n, self.stride, self.dilation, self.before, self.depthwise, self.dtype, self.chips = n, stride, dilation, before, depthwise, dtype, chips
        taken = [(a - 1) * stride + (b - 1) * dilation + 1 for a, b in ((y, r), (x, s))]
        self.image = image or tuple(t - 2 * b for t, b in zip(taken, before))

    def question(self, spelling=0, named=True):
        places = [PLACES[(spelling + i) % len(PLACES)].format(y=a, r=b, a=self.stride, b=self.dilation, d=distance(d)) for i, (a, b, d) in
                  enumerate((("y", "r", self.before[0]), ("x", "s", self.before[1])))]
        places = [f"{own} = {p}" for own, p in zip("hw", places)] if named else places
        g = "g, " if self.groups else ""
        if self.along:
            rest = "" if self.along == "y" else ", x"
            return f"O[y{rest}, {g}f] = sum(r, c) P[{places[0]}{rest}, {g}c] * K[{g}f, r, c]"
        image, n = f"P[{'n, ' if self.n else ''}{places[0]}, {places[1]}, {g}c]", "n, " if self.n else ""
        if self.depthwise:
            return f"O[{n}y, x, c] = sum(r, s) {image} * K[r, s, c]"
        return f"O[{n}y, x, {g}f] = sum(r, s, c) {image} * K[{g}f, r, s, c]"

    def given(self, named=True):
        given = dict(self.sizes, **(dict(zip("hw", self.image)) if named else {}))
        return {name: size for name, size in given.items() if not self.along or name in "yrcfhg" + ("x" if self.along == "x" else "")}

    def expected(self, image, kernel):
        z, (high, wide), groups = self.sizes, self.image, self.groups or 1
        out = []
        for n in range(self.n or 1):
            for y in range(z["y"]):
                for x in range(z["x"]):
                    taps = [(u, v, (n * high + h) * wide + w) for u in range(z["r"]) for v in range(z["s"])
                            for h, w in [(y * self.stride + u * self.dilation - self.before[0], x * self.stride + v * self.dilation - self.before[1])]
                            if 0 <= h < high and 0 <= w < wide]
                    c = z["c"]
                    if self.depthwise:
                        out += [sum(image[at * c + k] * kernel[(u * z["s"] + v) * c + k] for u, v, at in taps) for k in range(c)]
                    else:
                        out += [sum(image[(at * groups + g) * c + k] * kernel[(((g * z["f"] + f) * z["r"] + u) * z["s"] + v) * c + k] for u, v, at in taps for k in range(c))
                                for g in range(groups) for f in range(z["f"])]
        return tuple(out)


def ask(layer, spelling=0, named=True, work=None):
    """The answer's cycles; its numbers are judged."""
    what = f"{layer.question(spelling, named)} {layer.given(named)} {layer.dtype}"
    path = lambda name: os.path.join(work, name)
    more = [f"--chips={layer.chips}"] if layer.chips > 1 else []
    made = tune(layer.question(spelling, named), layer.given(named), f"--dtype={layer.dtype}", f"--out={'i32' if layer.dtype in ('i8', 'i4') else 'f32'}", "--budget=0s", *more,
                "--no-cache", "--emit=vm,bin,report", "-o", path("o"))
    check(made.status == 0 and "warning" not in made.text(), f"{what}: " + made.text())
    if made.status != 0:
        return 0
    with open(path("o.vm")) as file:
        text = file.read()
    rng, z = random.Random(5), layer.sizes
    c = z["c"]
    image = [rng.randint(-4, 4) for _ in range((layer.n or 1) * layer.image[0] * layer.image[1] * c * z.get("g", 1))]
    kernel = [rng.randint(-4, 4) for _ in range(z["r"] * z["s"] * c * (1 if layer.depthwise else z["f"]) * z.get("g", 1))]
    pack = {"i8": lambda v: struct.pack("b", v), "bf16": lambda v: struct.pack("<f", v)[2:], "f32": lambda v: struct.pack("<f", v)}[layer.dtype]
    found = computed(work, {"p": b"".join(map(pack, image)), "k": b"".join(map(pack, kernel))}, what)
    if found is None:
        return 0
    found = struct.unpack(f"<{len(found) // 4}{'i' if layer.dtype == 'i8' else 'f'}", found)
    expected = layer.expected(image, kernel)
    check(found == expected, f"{what}: {sum(a != b for a, b in zip(found, expected))} of {len(expected)} other numbers than loops give, {len(found)} found")
    proof = visa_tools.run(["visac", path("o.vm"), "--check"])
    check(proof.status == 0 and "proven" in proof.text(), f"{what}: " + proof.text())
    return int(re.search(r"(\d+) cycles", text)[1])


LAYERS = [Layer(0, 6, 6, 8, 3, 3, 32), Layer(2, 4, 5, 8, 3, 3, 16, stride=2, image=(8, 10)), Layer(0, 5, 7, 16, 3, 3, 3, stride=2, image=(10, 14)),
          Layer(0, 6, 6, 0, 3, 3, 32, depthwise=True, dtype="bf16"), Layer(3, 5, 4, 8, 3, 2, 8, dilation=2, before=(2, 1), dtype="bf16"),
          Layer(0, 1, 40, 16, 1, 3, 16, before=(0, 1), dtype="bf16"),  # along x alone
          Layer(0, 4, 4, 8, 1, 1, 16, stride=2, before=(0, 0), image=(8, 8)),  # the last places are in no window
          Layer(0, 4, 4, 8, 3, 3, 16, before=(-2, 0)),  # nor are the first
          Layer(0, 3, 3, 8, 5, 5, 8, before=(4, 4), image=(1, 2)),  # nearly all is border
          Layer(0, 30, 1, 16, 3, 1, 80, stride=2, before=(1, 0), image=(60, 1), dtype="bf16", along="y"),
          Layer(0, 9, 5, 16, 3, 1, 24, before=(1, 0), along="x"), Layer(0, 5, 8, 8, 3, 3, 8, stride=3, image=(13, 22)),  # windows that share no place
          Layer(1, 6, 6, 8, 3, 3, 16),
          # groups in slices, side by side in a packet, with padding, of one channel, one group
          Layer(2, 5, 6, 16, 3, 3, 32, groups=4, before=(0, 0)), Layer(0, 6, 6, 8, 3, 3, 8, groups=8, stride=2, image=(12, 12), dtype="bf16"),
          Layer(0, 6, 6, 4, 3, 3, 4, groups=16, dtype="bf16"), Layer(0, 4, 6, 4, 3, 3, 4, groups=8), Layer(0, 4, 4, 12, 3, 3, 20, groups=3, before=(0, 0)),
          Layer(0, 4, 3, 1, 3, 3, 1, groups=3, before=(0, 0), dtype="bf16"), Layer(0, 6, 6, 16, 3, 3, 16, groups=1),
           Layer(2, 2, 9, 8, 3, 3, 24, groups=8, before=(0, 0), image=(3, 11)),
           Layer(0, 9, 1, 8, 3, 1, 8, groups=4, before=(1, 0), along="y", dtype="bf16"),
          # several rows in a slice, of which the first and the last ones have zeros, too; a row of one element; a prime number of rows, and one of which half is odd
          Layer(0, 337, 1, 8, 2, 1, 3, before=(2, 0), image=(333, 1), along="y"), Layer(0, 481, 1, 8, 2, 1, 1, stride=3, before=(4, 0), image=(1437, 1), along="y", dtype="bf16"),
          Layer(2, 296, 1, 0, 3, 3, 16, stride=2, dilation=2, before=(2, 1), image=(595, 3), depthwise=True, dtype="bf16"),
          Layer(0, 272, 2, 8, 5, 3, 16, stride=2, before=(1, 1), image=(547, 3))]


def random_layer(rng):
    while True:
        stride, dilation = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
        z = [rng.randint(1, 9), rng.randint(1, 9), rng.choice([1, 8, 16, 20]), rng.randint(1, 5), rng.randint(1, 4), rng.choice([1, 3, 8, 16, 24, 40])]
        before = (rng.randint(-1, 3), rng.randint(-1, 3))
        taken = [(z[i] - 1) * stride + (z[i + 3] - 1) * dilation + 1 for i in range(2)]
        image = tuple(t - b + rng.randint(-3, 2) for t, b in zip(taken, before))
        groups = rng.choice([0, 0, 2, 3, 4, 8])
        if all(i >= 1 and min(t, b + i) - max(0, b) >= 1 for i, b, t in zip(image, before, taken)):
            depthwise = not groups and rng.random() < 0.4
            return Layer(rng.choice([0, 0, 1, 2, 3]), *z, stride=stride, dilation=dilation, before=before, image=image, depthwise=depthwise, groups=groups, dtype=rng.choice(["i8", "bf16"]))


def refusals():
    """What a window cannot be is named, with what it is instead."""
    layer = "O[y, x, f] = sum(r, s, c) P[{}, x + s, c] * K[f, r, s, c]"
    sizes = dict(y=4, x=4, f=8, r=3, s=3, c=16)
    for place, more, text in [("2*y + r - 1", {}, "-D h=8"), ("h = 2*y + r - 1", {}, "give it one: -D h=7"), ("y + r - 9", {}, "no window takes a place"),
                              ("y + r - 100000", {}, "99999 places"), ("y - r", {}, "a kept axis and a summed one"), ("h = y", {"h": 4}, "a kept axis and a summed one"),
                              ("r = y + r - 1", {}, "of an image alone"), ("h = y + r - 1", {"h": 1 << 60}, "2^52 elements"), ("y + r + c", {}, "a kept axis and a summed one")]:
        ran = tune(layer.format(place), dict(sizes, **more), "--dtype=i8", "--budget=0s")
        check(ran.status != 0 and text in ran.text() and "crash" not in ran.text(), f"{place}: " + ran.text())
    ran = tune("O[y, x, f] = sum(r, s, c) P[y*99999 + r - 1, x + s, c] * K[f, r, s, c]", dict(y=1 << 50, x=1, f=1, r=1, s=1, c=1), "--dtype=i8", "--budget=0s")
    check(ran.status != 0 and "more than 2^52 elements" in ran.text(), "an image of 2^66 places: " + ran.text())
    ran = tune(layer.format("y + r - 1"), sizes, "--dtype=f8e5m2", "--budget=0s")
    check(ran.status != 0 and "filled with zeros" in ran.text(), "f8e5m2: " + ran.text())


def main():
    with tempfile.TemporaryDirectory() as work:
        if len(sys.argv) > 1:
            rng = random.Random(int(sys.argv[1]))
            for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 20):
                ask(random_layer(rng), number, True, work)
            return verdict("borders")
        for i, layer in enumerate(LAYERS):
            ask(layer, i, True, work)
        same = [ask(LAYERS[0], spelling, named, work) for spelling in range(len(PLACES)) for named in (True, False)]
        check(len(set(same)) == 1, f"spellings of one layer: cycles {same}")
        refusals()
    return verdict("borders")


if __name__ == "__main__":
    sys.exit(main())
