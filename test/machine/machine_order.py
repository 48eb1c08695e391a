#!/usr/bin/env python3
"""Sums over groups of axes, in the machine's own order: random kernels, the same bits from the machine and the reference.

    machine_order.py [COUNT] [SEED]

Free order has no alarm over them either. Most groups are cut by time and packet; they are padded, inside too, and summed next to other axes in any order. A kernel that the compiler refuses is
drawn again; of the others every output agrees bit for bit, or the run fails and shows it. So do the examples and case files that pass a check: a
sample of them, or all in the long form.
"""
import collections
import glob
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

TYPES = {"bf16": (16, "f32"), "f8e4m3": (32, "f32"), "f8e5m2": (32, "f32"), "i8": (32, "i32")}  # elements of a flit; the sum's type


def group(chance, flit, axes):
    """A group that is cut at `flit` positions, inside a row of its last axes: it ends with that row, or the cut is none of the group."""
    row = chance.choice([n for n in range(2, flit) if flit % n])
    axes["X"] = -(-flit // row)
    form = chance.choice(["X, Y", "X, Y", "Y, X", "X, Y, Z", "X / 2, X % 2, Y"])
    divisors = [n for n in range(1, row) if row % n == 0]
    axes["Z"] = chance.choice(divisors) if "Z" in form else 1
    axes["Y"] = row // axes["Z"]
    return form if "Y, X" != form else (axes.update(X=axes["Y"], Y=axes["X"]) or form)


def uncut_group(chance, axes):
    """A group that stands in one place, with padding inside it or none."""
    axes.update(X=chance.randint(2, 4), Y=chance.randint(2, 4), Z=chance.randint(1, 2))
    return chance.choice(["X, Y", "X, Y, Z", f"X, Y # {axes['Y'] + chance.randint(1, 2)}"])


def kernel(chance):
    dtype = chance.choice([*TYPES, "bf16"])
    full, total = TYPES[dtype]
    axes = {"M": chance.randint(1, 7), "R": 8, "S": 3, "T": chance.randint(1, 5)}
    flit = chance.choice([full, full, full, full // 2])  # a part of a flit, and padding
    cut = chance.randrange(4) > 0
    inner = group(chance, flit, axes) if cut else uncut_group(chance, axes)
    size = flit * (chance.choice([2, 2, 3, 4]) if cut else 1)
    over_time = [f"[{inner}] # {size} / {flit}"] if cut else []
    packet = f"[{inner}] # {size} % {flit}" if cut else f"[{inner}] # {size}"
    summed = over_time + (["T"] if chance.randrange(2) else [])
    chance.shuffle(summed)
    time = summed + ["M"] if chance.randrange(4) == 0 else ["M"] + summed
    flits = packet if flit == full else f"{packet} # {full}"
    slices = chance.choice(["1", "1", "S # 4"])
    return f"""axes![{", ".join(f"{a} = {n}" for a, n in axes.items())}];

fn group(x: CollectTensor<{dtype}, m![1], m![1], m![{slices}], m![{", ".join(time)}], m![{flits}]>, w: &TrfTensor<{dtype}, m![1], m![1], m![{slices}], m![R], m![{", ".join(summed + [flits])}]>) -> AccumulationTensor<{total}, m![1], m![1], m![{slices}], m![M], m![R]> {{
    x.align::<m![{", ".join(time)}], m![{packet} # {2 * full}], _, _>(w).contract::<m![1]>().accumulate(AccumulationKind::Interleaved)
}}
"""


def files(chance):
    """Examples and cases that agree in an order of the reference's own."""
    found = [path for folder in ("examples", "test/cases") for path in sorted(glob.glob(os.path.join(visa_tools.SOURCE, folder, "*.vm")))]
    for path in chance.sample(found, visa_tools.few(12)):
        if visa_tools.run(["visac", path, "--check", "--reference-order=free"]).status == 0:
            yield path


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(24)
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    tally, refused = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path, binary = os.path.join(folder, "k.vm"), os.path.join(folder, "k.bin")
        while tally["checked"] < count and sum(refused.values()) < 100 * count:
            text = kernel(chance)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            made = visa_tools.run(["visac", path, "-o", binary])
            if made.status == 1 and not made.crashed:
                refused[made.text().split("[", 1)[1].split("]", 1)[0]] += 1
                if os.environ.get("VERBOSE"):
                    print(text, made.text())
                continue
            tally["checked"] += 1
            seed = chance.randrange(1 << 30)
            check = ["visa-run", binary, "--check", f"--seed={seed}"]
            ran, free = visa_tools.run(check), visa_tools.run([*check, "--reference-order=free"])
            if made.crashed or made.status or ran.status or free.status:
                tally["failed"] += 1
                print(f"{text}visa-run --seed={seed}: {made.text()}{ran.text()}{free.text()}")
            tally["judged together"] += b"; together " in free.out
            tally["with pieces"] += b" order group" in visa_tools.run(["visa-objdump", binary]).out
    for path in files(chance):
        tally["checked"] += 1
        ran = visa_tools.run(["visac", path, "--check"])
        if ran.status:
            tally["failed"] += 1
            print(f"{path}: {ran.text()}")
    print(", ".join(f"{n} {what}" for what, n in tally.items()) + "; refused: " + (", ".join(f"{n} {what}" for what, n in refused.items()) or "none"))
    print(f"{tally['checked'] - tally['failed']} passed, {tally['failed']} failed")
    all_sorts = tally["with pieces"] and tally["judged together"] or visa_tools.SLOWER > 1
    return 1 if tally["failed"] or tally["checked"] < count or not all_sorts else 0


if __name__ == "__main__":
    sys.exit(main())
