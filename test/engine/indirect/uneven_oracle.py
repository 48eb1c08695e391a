#!/usr/bin/env python3
"""Gathers and scatters whose rows lie in DM in digits with padding, of odd numbers of rows and of what a row holds: what is copied ends with each axis.
Accepted ones must give what the reference gives, in numbers and algebra. Usage: uneven_oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from stage_oracle import run  # noqa: E402

GRANULE = {"i8": 8, "bf16": 4, "i32": 2, "f32": 2}  # 8 bytes: what a copy moves at least


def digits(rng, name, size):
    """An axis in one to three digits, the outermost padded where they do not divide it: (text, positions), outermost first."""
    if size == 1:
        return [(name, 1)]
    weights = [1]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        weights.append(weights[-1] * rng.choice((2, 3, 4)))
    weights = [w for w in weights if w <= size]
    whole = -(-size // weights[-1]) * weights[-1]
    out = []
    for i in reversed(range(len(weights))):
        outermost = i == len(weights) - 1
        positions = (whole if outermost else weights[i + 1]) // weights[i]
        text = name + (f" # {whole}" if whole != size else "") + (f" / {weights[i]}" if weights[i] > 1 else "")
        out.append((text + ("" if outermost else f" % {positions}"), positions))
    return out


class Rows:
    def __init__(self, rng):
        self.dtype = rng.choice(sorted(GRANULE))
        self.sizes = {"D": rng.randrange(1, 14), "K": rng.randrange(2, 9), "P": rng.randrange(1, 9), "Q": rng.choice((1, 2, 3, 5)), "L": GRANULE[self.dtype]}
        places = [d for name in "DPQ" for d in digits(rng, name, self.sizes[name])]
        rng.shuffle(places)
        slices, element, used = [], [], 1
        for text, positions in places:
            into_slices = rng.random() < 0.5 and used * positions <= 200
            (slices if into_slices else element).append(text)
            used *= positions if into_slices else 1
        self.dm = f"DmTensor<{self.dtype}, m![1], m![1 # 2], m![[{', '.join(slices) or '1'}] # 256], m![{', '.join(element + ['L'])}]>"
        payload = rng.sample("PQ", 2)
        at = rng.randrange(3)
        self.payload, self.table = ", ".join(payload), ", ".join(payload[:at] + ["K"] + payload[at:])
        self.kind = rng.choice(("gather", "prefix", "scatter"))

    def source(self, name):
        axes = ", ".join(f"{n} = {s}" for n, s in self.sizes.items())
        hbm = lambda parts: f"HbmTensor<{self.dtype}, m![1], m![{parts}, L]>"
        plan = f"::<m![K], m![{self.payload}, L]>().by_byte_offsets::<m![D]>"
        lists = "list: &HbmTensor<i32, m![1], m![D]>"
        if self.kind == "scatter":
            parameters, result = f"x: &{hbm('D, P, Q')}, {lists}, table: &mut {hbm(self.table)}", ""
            body = f"let x: {self.dm} = x.to_dm(&mut device.tdma);\n    table.view_mut().scatter{plan}(list.view()).from_dm(&mut device.tdma, x);"
        else:
            prefix = self.kind == "prefix"
            parameters = f"table: &{hbm(self.table)}, {lists}" + (", n: &HbmScalar<i32>" if prefix else "")
            result = f" -> {hbm('D, P, Q')}"
            count = ".sparse_prefix(n)" if prefix else ""
            body = (("let n = n.to_spm(&mut device.tdma);\n    " if prefix else "") +
                    f"let y: {self.dm} = table.gather{plan}(list){count}.to_dm(&mut device.tdma);\n    y.to_hbm(&mut device.tdma)")
        return f"mod m{name} {{\naxes![{axes}];\n#[device(chip = 1)]\nfn f(device: &mut Device, {parameters}){result} {{\n    {body}\n}}\n}}"


if __name__ == "__main__":  # where digits of a group count past an axis's end visac may say that there are too many elements
    sys.exit(run(lambda rng: (Rows(rng), None), 60, 20))
