#!/usr/bin/env python3
"""Copies between chips, clusters and inside a slice, cell by cell: shuffles, slices, plans of both, parallel copies, copies inside DM and HBM.

Every position (chip, cluster, slice, element) of the target is asked what it takes, by the array of the call; map(i) is meaning.py's, and
nothing else is known of mappings or copies. The machine runs the binary on numbered cells, next to the reference (--check).
Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracle"))
import cells  # noqa: E402
import meaning  # noqa: E402


class Shape:
    """A tensor in DM: texts of Chip, Cluster, Slice, Element; and what of Element can be sliced."""

    def __init__(self, rng, dtype):
        word = max(1, 8 // cells.BYTES[dtype])
        self.chips = rng.choice((1, 2, 4, 4))
        self.sizes, self.dtype = {}, dtype
        chip = self.axis("C", self.chips)
        if self.chips > 1 and rng.random() < 0.5:  # a digit in the middle of an axis
            below, above = rng.choice((1, 2)), rng.choice((1, 2))
            self.sizes["C"] = self.chips * below * above
            chip = f"C / {below} % {self.chips}" if above > 1 else f"C / {below}"
            rest = ([f"C / {below * self.chips}"] if above > 1 else []) + ([f"C % {below}"] if below > 1 else [])
        else:
            rest = []
        self.two = rng.random() < 0.6
        self.cluster = self.axis("U", 2) if self.two else "1 # 2"
        slices = rng.choice((1, 2, 4))
        self.slice = f"{self.axis('S', slices)} # 256" if slices > 1 else "1 # 256"
        if slices > 1 and rng.random() < 0.3:
            self.slice = f"S, 1 # {256 // slices}"
        self.sliced = rng.choice((2, 2, 3, 4))
        self.axis("A", self.sliced)
        parts = rest + [self.axis(n, rng.choice((1, 2, 3))) for n in "EF"]
        rng.shuffle(parts)
        self.inner = self.axis("L", word * rng.choice((1, 1, 2, 3, 4)))
        at = rng.randrange(len(parts) + 1)
        self.parts, self.at, self.chip = parts, at, chip
        self.element = ", ".join(parts[:at] + ["A"] + parts[at:] + ["L"])
        self.left = ", ".join(parts + ["L"])
        self.gap = ", ".join(parts[:at] + [f"1 # {self.sliced}"] + parts[at:] + ["L"])

    def axis(self, name, size):
        self.sizes[name] = size
        return name

    def type(self, element):
        return f"DmTensor<{self.dtype}, m![{self.chip}], m![{self.cluster}], m![{self.slice}], m![{element}]>"


def placed(shape, axes, element):
    return [cells.table(t, axes) for t in (shape.chip, shape.cluster, shape.slice, element)]


def moved(shape, x, axes, chips, clusters, slices):
    """What each position of the target takes: chips and clusters say from where, slices = [(by, indices)] which value of A."""
    live = lambda code: axes.live(code)
    source = {at: code for at, code in positions_live(placed(shape, axes, shape.element), live)}
    step = 1 << axes.shift["A"]
    out, value_of = {}, lambda code: (code & axes.field("A")) >> axes.shift["A"]
    if not slices:
        for (c, u, s, e), code in source.items():
            out[code] = x[source[chips[c], clusters[u], s, e]]
        return out
    by, indices = slices[0]
    taken = {}
    for (c, u, s, e), code in source.items():
        taken[c, u, s, e] = (value_of(code), code)
    for (c, u, s, e), (a, code) in taken.items():
        target_index = indices[c] if by == "chip" else indices[u]
        if a != target_index:
            continue
        from_code = source[chips[c], clusters[u], s, e]
        out[code - a * step] = x[from_code]
    return out


def positions_live(tables, live):
    for c, chip in enumerate(tables[0]):
        for u, cluster in enumerate(tables[1]):
            for s, slice_ in enumerate(tables[2]):
                for e, element in enumerate(tables[3]):
                    if None in (chip, cluster, slice_, element):
                        continue
                    code = chip + cluster + slice_ + element
                    if live(code):
                        yield (c, u, s, e), code


def array(numbers):
    return "[" + ", ".join(str(n) for n in numbers) + "]"


def make(rng, number):
    dtype = rng.choice(("i32", "i32", "i16", "i8"))
    shape = Shape(rng, dtype)
    axes = meaning.Axes(shape.sizes)
    one, clusters = list(range(shape.chips)), [0, 1]
    permuted = lambda n: rng.sample(range(n), n)
    kinds = ["pcopy", "hbm_copy", "dm_copy"] + ["chip_slice", "cluster_slice", "plan"] * 2
    if shape.chips > 1:
        kinds += ["chip_shuffle", "chip_shuffle_plan", "hbm_shuffle"]
    if shape.two:
        kinds += ["cluster_shuffle", "cluster_swap"]
    kind = rng.choice(kinds)
    if not shape.two and kind == "cluster_slice" or shape.chips == 1 and kind == "chip_slice":
        kind = "pcopy"
    from_chips, from_clusters, slices, left = one, clusters if shape.two else [0, 1], [], shape.element
    device, name = "Device", "d"
    call = None
    order = [t for t in (shape.element if kind == "hbm_shuffle" else ", ".join(["A"] + shape.parts[::-1] + ["L"])).split(", ")]
    hbm = ", ".join((["U"] if shape.two else []) + (["S"] if shape.sizes.get("S", 1) > 1 else []) + order)
    if kind == "chip_shuffle":
        device = "Context"
        from_chips = [rng.randrange(shape.chips) for _ in one]
        call = f"a.view().dm_chip_shuffle::<{shape.chips}>(&mut d.tdma, &{array(from_chips)})"
    elif kind == "chip_shuffle_plan":
        from_chips = permuted(shape.chips)
        call = f"a.chip_shuffle({array(from_chips)}).to_dm(&mut d.tdma)"
    elif kind == "hbm_shuffle":
        from_chips = permuted(shape.chips)
        call = "a"
    elif kind == "cluster_shuffle":
        device = "Context"
        from_clusters = [rng.randrange(2) for _ in clusters]
        call = f"a.view().dm_cluster_shuffle::<2>(&mut d.tdma, &{array(from_clusters)})"
    elif kind == "cluster_swap":
        from_clusters = [1, 0]
        call = "a.view().cluster_swap().to_dm(&mut d.tdma)"
    elif kind in ("chip_slice", "cluster_slice"):
        by = kind.split("_")[0]
        indices = [rng.randrange(shape.sliced) for _ in range(shape.chips if by == "chip" else 2)]
        slices, left, device = [(by, indices)], shape.left, "Context"
        call = (f"d.sub.parallel_copy_{by}_slice::<{len(indices)}, m![A], m![{shape.gap}], m![{left}], _, _, _, _, _>(a.view(), &{array(indices)})")
    elif kind == "plan":
        text = "a"
        if shape.chips > 1 and rng.random() < 0.6:
            from_chips = permuted(shape.chips)
            text += f".chip_shuffle({array(from_chips)})"
        if shape.two and rng.random() < 0.6:
            from_clusters = [1, 0]
            text += ".cluster_swap()"
        by = rng.choice(["chip"] * (shape.chips > 1) + ["cluster"] * shape.two + [None])
        if by:
            indices = [rng.randrange(shape.sliced) for _ in range(shape.chips if by == "chip" else 2)]
            slices, left = [(by, indices)], shape.left
            text += f".{by}_slice::<m![A], m![{left}]>({array(indices)})"
        call = text + ".to_dm(&mut d.tdma)" if text != "a" else "a"
    elif kind == "pcopy":
        device = "Context"
        parts = shape.element.split(", ")[:-1]
        rng.shuffle(parts)
        left = ", ".join(parts + ["L"])
        call = f"a.to_dm_pcopy::<_, m![{left}]>(&mut d.sub)"
    elif kind == "dm_copy":
        parts = shape.element.split(", ")[:-1]
        rng.shuffle(parts)
        left = ", ".join(parts + ["L"])
        call = "a.to_dm(&mut d.tdma)"
    else:
        call = "a"
    chip = f"m![{shape.chip}]"
    first = "x.to_dm(&mut d.tdma)"
    lines = []
    if kind == "hbm_shuffle":
        lines.append(f"    let x = x.hbm_chip_shuffle(&mut d.tdma, &{array(from_chips)});")
    if kind == "hbm_copy":
        parts = hbm.split(", ")
        rng.shuffle(parts)
        lines.append(f"    let x: HbmTensor<{dtype}, {chip}, m![{', '.join(parts)}]> = x.view().to_hbm::<_, m![{', '.join(parts)}]>(&mut d.tdma);")
        if parts[-1] != "L":
            parts.remove("L")
            lines[-1] = (f"    let x: HbmTensor<{dtype}, {chip}, m![{', '.join(parts + ['L'])}]> = "
                         f"x.view().to_hbm::<_, m![{', '.join(parts + ['L'])}]>(&mut d.tdma);")
    back = ", ".join((["U"] if shape.two else []) + (["S"] if shape.sizes.get("S", 1) > 1 else []) + left.split(", "))
    decl = ", ".join(f"{n} = {s}" for n, s in shape.sizes.items())
    source = (f"axes![{decl}];\n#[device(chip = {shape.chips})]\nfn f({name}: &mut {device}, x: &HbmTensor<{dtype}, {chip}, m![{hbm}]>) -> "
              f"HbmTensor<{dtype}, {chip}, m![{back}]> {{\n" + "\n".join(lines) + ("\n" if lines else "") +
              f"    let a: {shape.type(shape.element)} = {first};\n    let b: {shape.type(left)} = {call};\n    b.to_hbm(&mut d.tdma)\n}}\n")
    port = cells.Port("x", dtype, [shape.chip, hbm])
    codes = cells.logical(cells.named(port.maps, axes), axes)
    port.cells = {code: cells.wrap(i * 7 + 1, dtype) for i, code in enumerate(codes)}
    if kind in ("pcopy", "dm_copy", "hbm_copy"):
        expected = dict(port.cells)
    else:
        expected = moved(shape, port.cells, axes, from_chips, from_clusters, slices)
    return kind, False, cells.Kernel(f"{number} {kind}", source, shape.sizes, [port], cells.Port("out", dtype, [shape.chip, back]), expected)


if __name__ == "__main__":
    sys.exit(cells.judge(make, 60))
