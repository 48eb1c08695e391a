#!/usr/bin/env python3
"""visac tune: tensors in other orders than kernels take them, permutations alone and convolutions around which they are brought into
order: numbers against loops in Python. Usage: layouts.py [SEED [QUESTIONS]]: random ones of that seed alone."""
import itertools
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

PACK = {"i8": lambda v: struct.pack("b", v), "i32": lambda v: struct.pack("<i", v), "bf16": lambda v: struct.pack("<f", v)[2:],
        "f32": lambda v: struct.pack("<f", v)}
WIDE = {"i8": "i32", "i32": "i32", "bf16": "f32", "f32": "f32"}


class Tensor:
    """Values by the positions of its axes, which lie in the order of their names."""

    def __init__(self, axes, sizes, values=None):
        self.axes, self.sizes = axes, [sizes[a] for a in axes]
        self.values = values or [0] * math.prod(self.sizes)

    def place(self, at):
        place = 0
        for a, size in zip(self.axes, self.sizes):
            place = place * size + at[a]
        return place

    def get(self, at):
        return self.values[self.place(at)]


def positions(axes, sizes):
    return (dict(zip(axes, at)) for at in itertools.product(*(range(sizes[a]) for a in axes)))


def ask(question, given, dtype, out, inputs, expected, work, budget="0s"):
    """The answer's cycles; 0: there is none."""
    what, path = f"{question} {given} {dtype} {out}", lambda name: os.path.join(work, name)
    made = tune(question, given, f"--dtype={dtype}", f"--out={out}", f"--budget={budget}", "--no-cache", "--emit=vm,bin,report", "-o", path("o"))
    if made.status != 0:
        check("E-TUNE" in made.text() and "help:" in made.text(), f"{what}: " + made.text())
        return 0
    with open(path("o.vm")) as file:
        text = file.read()
    ports = text.rsplit("fn contract(", 1)[1]
    port = lambda name: name if re.search(rf"\b{name}: &Hbm", ports) else name + "_port"
    found = computed(work, {port(name): b"".join(map(PACK[dtype], values)) for name, values in inputs.items()}, what)
    if found is None:
        return 0
    wanted = b"".join(PACK[out](v) for v in expected)
    if out == "f32": # 0 and -0 are equal
        found, wanted = (struct.unpack(f"<{len(values) // 4}f", values) for values in (found, wanted))
    check(found == wanted, f"{what}: other numbers than loops give")
    proof = visa_tools.run(["visac", path("o.vm"), "--check"])
    check(proof.status == 0 and "proven" in proof.text(), f"{what}: " + proof.text())
    return int(re.search(r"(\d+) cycles", text)[1])


def permutation(before, after, sizes, dtype, out, work):
    """`Y[after] = X[before]`."""
    rng = random.Random(3)
    x = Tensor(before, sizes, [rng.randint(-100, 100) for _ in range(math.prod(sizes.values()))])
    expected = [x.get(at) for at in positions(after, sizes)]
    return ask(f"Y[{', '.join(after)}] = X[{', '.join(before)}]", sizes, dtype, out, {"x": x.values}, expected, work)


def convolution(image, kernel, result, z, dtype, work, stride=1, before=None, depthwise=False, budget="0s"):
    """Orders as "nchw", "fcrs", "nfyx"; before: places of zeros in front of the image, whose own axes are named then."""
    rng = random.Random(7)
    taken = {"h": (z["y"] - 1) * stride + z["r"], "w": (z["x"] - 1) * stride + z["s"]}
    own = {a: taken[a] - 2 * (before or 0) for a in "hw"}
    places = {"h": "y" + (f"*{stride}" if stride > 1 else "") + " + r", "w": "x" + (f"*{stride}" if stride > 1 else "") + " + s"}
    if before is not None:
        places = {a: f"{a} = {p} - {before}" for a, p in places.items()}
    sums = "r, s" if depthwise else "r, s, c"
    question = (f"O[{', '.join(result)}] = sum({sums}) P[{', '.join(places.get(a, a) for a in image)}] * K[{', '.join(kernel)}]")
    sizes = dict(z, **own)
    p = Tensor(image, sizes, [rng.randint(-4, 4) for _ in range(math.prod(sizes[a] for a in image))])
    k = Tensor(kernel, sizes, [rng.randint(-4, 4) for _ in range(math.prod(sizes[a] for a in kernel))])
    expected = []
    for at in positions(result, sizes):
        total = 0
        for tap in positions("rs" if depthwise else "rsc", sizes):
            here = dict(at, **tap)
            here["h"] = here["y"] * stride + here["r"] - (before or 0)
            here["w"] = here["x"] * stride + here["s"] - (before or 0)
            if 0 <= here["h"] < own["h"] and 0 <= here["w"] < own["w"]:
                total += p.get(here) * k.get(here)
        expected.append(total)
    given = dict({a: z[a] for a in sorted(set(image + kernel + result) - set("hw"))}, **(own if before is not None else {}))
    return ask(question, given, dtype, WIDE[dtype], {"p": p.values, "k": k.values}, expected, work, budget)


PERMUTATIONS = [("mn", "nm", dict(m=64, n=64), "bf16", "bf16"), ("mn", "nm", dict(m=77, n=64), "bf16", "bf16"), ("mn", "nm", dict(m=64, n=77), "bf16", "f32"),
                ("nyxc", "ncyx", dict(n=2, y=7, x=7, c=32), "i8", "i8"), ("ncyx", "nyxc", dict(n=2, y=7, x=7, c=32), "i8", "i8"),
                ("abcd", "dbca", dict(a=4, b=3, c=5, d=8), "bf16", "bf16"), ("bshe", "behs", dict(b=2, s=12, h=3, e=16), "f32", "f32"),
                ("mon", "nom", dict(m=16, o=1, n=24), "i8", "i32")]
LAYERS = [("nchw", "fcrs", "nfyx", dict(n=2, y=6, x=6, f=8, c=16, r=3, s=3), "i8", {}), ("nhwc", "rscf", "nyxf", dict(n=1, y=6, x=6, f=8, c=16, r=3, s=3), "bf16", {}),
          ("nchw", "fcrs", "nfyx", dict(n=1, y=4, x=6, f=16, c=8, r=3, s=3), "i8", dict(before=1)), ("nchw", "fcrs", "nfyx", dict(n=1, y=6, x=6, f=8, c=3, r=3, s=3), "bf16", dict(before=1)),
          ("nchw", "crs", "ncyx", dict(n=2, y=6, x=6, c=16, r=3, s=3), "i8", dict(depthwise=True)), ("nhwc", "fcrs", "nyxf", dict(n=1, y=6, x=6, f=8, c=16, r=3, s=3), "i8", {}),
          ("chw", "fcrs", "fyx", dict(y=7, x=7, f=16, c=16, r=1, s=1), "i8", {})]


def random_question(rng, work):
    if rng.random() < 0.5:
        names = "abcd"[:rng.choice([2, 3, 3, 4])]
        sizes = {a: rng.choice([1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 28, 49, 64]) for a in names}
        after = "".join(rng.sample(names, len(names)))
        if math.prod(sizes.values()) > 60000:
            return
        dtype = rng.choice(["i8", "bf16", "f32", "i32"])
        permutation(names, after, sizes, dtype, rng.choice([dtype, WIDE[dtype]]), work)
        return
    depthwise, one = rng.random() < 0.25, rng.random() < 0.4
    z = dict(y=rng.randint(1, 7), x=rng.randint(1, 7), r=rng.randint(1, 3), s=rng.randint(1, 3), c=rng.choice([3, 8, 16, 24]), **({} if depthwise else dict(f=rng.choice([1, 8, 16, 20]))),
             **({} if one else dict(n=rng.choice([1, 2, 3]))))
    mix = lambda axes: "".join(rng.sample(axes, len(axes)))
    n = "" if one else "n"
    image, result = n + rng.choice(["chw", "hwc", "hcw"]), n + (rng.choice(["cyx", "yxc"]) if depthwise else rng.choice(["fyx", "yxf", "yfx"]))
    before = rng.choice([None, None, 0, 1])
    if before and (z["r"] < 2 or z["s"] < 2 or z["y"] < 3 or z["x"] < 3):
        before = None
    convolution(image, mix("crs" if depthwise else "fcrs"), result, z, rng.choice(["i8", "bf16"]), work, stride=rng.choice([1, 1, 2]), before=before, depthwise=depthwise)


def main():
    with tempfile.TemporaryDirectory() as work:
        if len(sys.argv) > 1:
            rng = random.Random(int(sys.argv[1]))
            for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 20):
                random_question(rng, work)
        else:
            for p in PERMUTATIONS:
                check(permutation(*p, work) > 0, f"{p}: no answer")
            for *layer, more in LAYERS:
                check(convolution(*layer, work, **more) > 0, f"{layer}: no answer")
    return verdict("orders of axes: permutations and convolutions compute what loops do")


if __name__ == "__main__":
    sys.exit(main())
