#!/usr/bin/env python3
"""Ports whose types name axes of size 1: whatever is reported about a port of size 1 is what is reported about the same port with size 2, with the size
replaced. Kernels are copies of random mappings; what is compared is --list, the einsum, the tables, the files that are written and those
that are read. Usage: unit_axes.py [-n KERNELS]"""
import ast
import os
import random
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

KERNEL = """axes![{axes}];
type Inner = m![{alias}];
#[device(chip = 1)]
fn copy(ctx: &mut Context, a: &HbmTensor<f32, m![1], {source}>) -> HbmTensor<f32, m![1], {target}> {{
    let a: DmTensor<f32, m![1], m![1 # 2], m![1 # 256], {source}> = a.to_dm(&mut ctx.tdma, 0);
    a.to_hbm(&mut ctx.tdma, 1 << 22)
}}
"""


def run(*arguments):
    done = visa_tools.run(arguments)
    if done.status:
        raise SystemExit(" ".join(map(str, arguments)) + ":\n" + done.text())
    return done.out.decode()


def npy_shape(path):
    with open(path, "rb") as f:
        data = f.read()
    return ast.literal_eval(data[10:10 + struct.unpack("<H", data[8:10])[0]].decode())["shape"]


def mapping(r, names, alias):
    """The names in a random order; one of the many is cut into two digits around the others, or all of them stand in an alias."""
    order = r.sample(names, len(names))
    if order == alias or r.random() < 0.2:
        return "m![{ Inner }]", alias
    many = [n for n in order if n.startswith("M")]
    cut = r.choice(many)
    at = order.index(cut)
    words = [f"{n} / 4" if n == cut else n for n in order]
    words.insert(r.randint(at + 1, len(order)), f"{cut} % 4")
    return f"m![{', '.join(words)}]", order


def axes_of(text):
    """name: [names] of --list."""
    found = {}
    for line in text.splitlines():
        name, rest = line.split(": ")
        inside = rest[rest.index("[") + 1:rest.index("]")]
        found[name.split()[1]] = [tuple(a.split("=")) for a in inside.split(", ") if a]
    return found


def check(folder, r, number):
    units = [f"U{i}" for i in range(r.randint(1, 3))]
    many = ["M0", "M1"]
    names = units + many
    alias = r.sample(names, len(names))
    (source, order), (target, target_order) = mapping(r, names, alias), mapping(r, names, alias)
    said = []
    for size in (1, 2):
        sizes = {n: size for n in units} | {"M0": 8, "M1": 16}
        path, binary = os.path.join(folder, f"k{number}.vm"), os.path.join(folder, f"k{size}.bin")
        with open(path, "w") as f:
            f.write(KERNEL.format(axes=", ".join(f"{n} = {sizes[n]}" for n in names), alias=", ".join(alias), source=source, target=target))
        run("visac", path, "-o", binary)
        listed = axes_of(run("visa-run", binary, "--list"))
        wanted = {"a": [(n, str(sizes[n])) for n in order], "out": [(n, str(sizes[n])) for n in target_order]}
        if listed != wanted:
            return f"--list says {listed}, the types {wanted}\n{source} -> {target}"
        einsum = [line.strip() for line in run("visa-objdump", binary).splitlines() if line.startswith("    tensor ") or line.startswith("  einsum ")]
        tables = [line for line in run("visac", path, "--emit=tables").splitlines() if line.startswith("  port ")]
        said.append(einsum)
        for name, wants in (("a", order), ("out", target_order)):
            row = [t for t in tables if t.startswith(f"  port {name}:")][0]
            if not all(n in row for n in wants):
                return f"the tables leave an axis away: {row}"
        if size == 2:
            continue
        values = [float(i) for i in range(8 * 16)]
        full, bare, out = (os.path.join(folder, n) for n in ("full.npy", "bare.npy", "out.npy"))
        visa_tools.write_npy(full, [sizes[n] for n in order], values)
        visa_tools.write_npy(bare, [sizes[n] for n in order if sizes[n] > 1], values)
        for given in (f"a={full}", f"a={bare}", f"a[{','.join(order)}]={full}", f"a[{','.join(n for n in order if sizes[n] > 1)}]={bare}"):
            text = run("visa-run", binary, "--input", given, "--output", f"out={out}", "--check")
            if "128 values agree" not in text:
                return text
            if npy_shape(out) != tuple(sizes[n] for n in target_order):
                return f"out has the shape {npy_shape(out)}, its type {target_order}"
        wrong = os.path.join(folder, "wrong.npy")
        visa_tools.write_npy(wrong, [sizes[n] for n in order] + [1], values)
        if visa_tools.run(["visa-run", binary, "--input", f"a={wrong}", "--output", out]).status != 1:
            return "a file with one dimension more is taken"
    return None if said[0] == said[1] else f"the einsum of size 1 is {said[0]}, of size 2 {said[1]}"


def main():
    count = int(sys.argv[sys.argv.index("-n") + 1]) if "-n" in sys.argv else visa_tools.few(12)
    r, bad = random.Random(7), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            fault = check(folder, r, number)
            if fault:
                bad += 1
                print(f"FAIL {number}: {fault}")
    print(f"{count - bad} of {count} kernels agree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
