#!/usr/bin/env python3
"""An independent judge of the machine over a field: test/field/field_machine.py, written from the documents on top of the second decoder,
recomputes what every output is, from the binary alone, and `visa-run --dump-field` must say the same, run as a whole and traced back.

    field_judge.py KERNEL.vm...   VISA_LONG=1: larger kernels too
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import field_machine
import second_decoder

SEED = 11
MOST_WORK = 400_000 * visa_tools.LONGER // max(3, visa_tools.SLOWER)


def judged(path, kernel, arguments):
    """The lines of visa-run as {(port, element): value}."""
    done = visa_tools.run(["visa-run", path, f"--kernel={kernel['name']}", f"--seed={SEED}", "--dump-field", *arguments])
    if done.status != 0:
        return done.text()
    ports = {p["name"]: i for i, p in enumerate(kernel["ports"])}
    out = {}
    for line in done.out.decode().splitlines():
        name, element, value = line.rsplit(" ", 2)
        out[ports[name], int(element)] = int(value)
    return out


def computed_list(kernel):
    """Is a list of rows computed? The algebra has no numbers for it."""
    return kernel["einsum"] and any(s["indices"] for s in kernel["einsum"]["statements"]) and any(s["op"] == "map" for s in kernel["einsum"]["statements"])


def compare(kernel, path, counts):
    if computed_list(kernel):
        return None
    try:
        known = field_machine.outputs(kernel, field_machine.Residues(SEED), MOST_WORK)
    except field_machine.TooLarge:
        counts["too large"] += 1
        return None
    by_index = kernel["einsum"] and (any(s["indices"] for s in kernel["einsum"]["statements"]) or any(
        c["op"] == "dma_indirect" for stream in kernel["streams"].values() for c in visa_tools.commands(stream)))
    flat = {(i, e): v for i, elements in known.items() for e, v in elements.items()}
    for arguments in ([], ["--samples=40"])[:1 if by_index else 2]:  # rows are not traced back
        theirs = judged(path, kernel, arguments)
        if isinstance(theirs, str):
            return theirs
        if not arguments and set(theirs) != set(flat):
            return f"{len(theirs)} values, {len(flat)} expected"
        for key, value in theirs.items():
            if flat[key] is field_machine.UNKNOWN:
                counts["unknown"] += 1
            elif flat[key] != value:
                return f"{' '.join(arguments)} {kernel['ports'][key[0]]['name']} element {key[1]}: {value}, the judge has {flat[key]}"
            else:
                counts["values"] += 1
    counts["kernels"] += 1
    return None


def unit_masks(folder, isa, counts):
    """A mask whose counter is the slice: slices below the limit sum everything, the others nothing, in bytes as in the field. No kernel that
    visac makes sums over slices, so a good binary is changed."""
    good, bad, out = (os.path.join(folder, name) for name in ("good.bin", "bad.bin", "out.npy"))
    visa_tools.run(["visac", os.path.join(visa_tools.SOURCE, "test", "cases", "masks.vm"), "--kernel=over_slices", "-o", good])
    tool = os.path.join(visa_tools.SOURCE, "test", "binary", "change_binary.py")
    subprocess.run([sys.executable, tool, good, bad, "main/mask.counter[0]=2", "main/mask.limit=4"], check=True)
    with open(bad, "rb") as binary:
        kernel = second_decoder.decode(binary.read(), isa)["kernels"][0]
    fault = compare(kernel, bad, counts)
    done = visa_tools.run(["visa-run", bad, f"--output=out={out}"])
    if fault or done.status != 0:
        return fault or done.text()
    known = field_machine.outputs(kernel, field_machine.Residues(SEED), MOST_WORK)[len(kernel["ports"]) - 1]
    with open(out, "rb") as file:
        words = file.read()[-4 * len(known):]
    nothing = {e for e in known if words[4 * e:4 * e + 4] == bytes(4)}
    zeros = {e for e, v in known.items() if v == 0}
    return None if zeros and zeros < set(known) and nothing == zeros else f"{len(nothing)} sums of nothing, the judge has {len(zeros)}"


def main(files):
    isa = second_decoder.Isa(os.path.join(visa_tools.SOURCE, "docs", "isa.md"))
    counts, faults = {"kernels": 0, "values": 0, "unknown": 0, "too large": 0}, 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.bin")
        for file in files:
            if visa_tools.run(["visac", file, "-o", path]).status != 0:
                continue
            with open(path, "rb") as binary:
                dump = second_decoder.decode(binary.read(), isa)
            for kernel in dump["kernels"]:
                fault = compare(kernel, path, counts)
                if fault:
                    faults += 1
                    print(f"{os.path.basename(file)}, kernel {kernel['name']}: {fault}")
        fault = unit_masks(folder, isa, counts)
        if fault:
            faults += 1
            print(f"masks of units: {fault}")
    print(f"{counts['kernels']} kernels, {counts['values']} values agree, {counts['unknown']} of memory that nobody wrote, "
          f"{counts['too large']} kernels are too large, {faults} failed")
    return 1 if faults or not counts["kernels"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
