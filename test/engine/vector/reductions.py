"""What the oracles of both reductions share: axes of the machine's files by map(i), a run of a kernel on drawn words, and the judgement of what was accepted."""
import os
import random
import re
import runpy
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..", "..", "oracle")]
import meaning  # noqa: E402
import visa_tools  # noqa: E402

MODEL = runpy.run_path(os.path.join(HERE, "model.py"))
EDGES = MODEL["edges"]()


def names_in_order(texts, axes):
    """Axes in the order in which the parts first name them: those of which a part holds more than one coordinate."""
    out = []
    for text in texts:
        codes = [c for c in meaning.table(meaning.parse(text), axes) if c and axes.live(c)]
        for name in re.findall(r"[A-Z]\w*", text):
            if name not in out and any(c & axes.field(name) for c in codes):
                out.append(name)
    return out


def dense(axes, names, code):
    """The element of a tensor of these axes, the last one fastest, at the coordinates of a code."""
    index = 0
    for name in names:
        index = index * axes.sizes[name] + ((code >> axes.shift[name]) & meaning.MASK)
    return index


def edge_words(rng, count):
    return [rng.choice(EDGES) if rng.random() < 0.6 else rng.getrandbits(32) for _ in range(count)]


def is_same(dtype, found, word):
    """Bit for bit, but any NaN is as good as another."""
    return found == word or (dtype == "f32" and MODEL["is_nan"](found) and MODEL["is_nan"](word))


def run_kernel(case, name, binary, directory, parts, draw):
    """(what the run printed when it failed, axes of the input, its words, words of the output). `draw(count)` gives the words."""
    names, total = names_in_order(parts, case.axes), 1
    for n in names:
        total *= case.sizes[n]
    words = draw(total)
    raw, out = os.path.join(directory, "x.raw"), os.path.join(directory, "out.raw")
    with open(raw, "wb") as file:
        file.write(struct.pack(f"<{total}I", *words))
    done = visa_tools.run(["visa-run", binary, "--kernel", name, "--input", f"x={raw}", "--output", f"out={out}"])
    if done.status != 0:
        return done.text(), names, words, ()
    with open(out, "rb") as file:
        data = file.read()
    return None, names, words, struct.unpack(f"<{len(data) // 4}I", data)


def drawn(make, count, seed):
    """Cases in lots of 50, each with what draws for them."""
    for first in range(0, count, 50):
        rng = random.Random(seed * 1000003 + first)
        cases = [make(rng) for _ in range(min(50, count - first))]
        for c in cases:
            c.tables()
        yield rng, cases


def judge_good(cases, sources, good, directory, run_one):
    """Faults of the accepted ones: against the reference, in numbers and in algebra, and then each by `run_one(case, name, binary)`."""
    path, faults = os.path.join(directory, "good.vm"), []
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(sources[i] for i in good) + "\n")
    if not good:
        return faults
    made = visa_tools.run(["visac", path, "-o", path + ".bin"])
    checked = visa_tools.run(["visac", path, "--check"])
    bad = re.sub(r"error\[E-CHECK-NOTHING\].*", "", checked.text())
    if made.status != 0 or checked.crashed or "error[" in bad:
        named = re.search(r"^(p\d+): .*(?:other polynomials|differ)", bad, re.M)
        return [(sources[int(named.group(1)[1:])] if named else "") + (made.text() + bad)[-800:]]
    for i in good:
        fault = run_one(cases[i], f"p{i}", path + ".bin")
        if fault:
            faults.append(f"{sources[i]}\n{fault}")
    return faults
