#!/usr/bin/env python3
"""Gathers and scatters, cell by cell: out[d, p] = table[position(d), p], dest[position(d), p] = updates[d, p], the last of equal ones stays.

Random tables (the indexed axis outermost, between payload axes, a digit of an axis, several axes), lists in HBM and DM, byte offsets and row
numbers, payload and list spread over clusters, slices and elements, and fronts of a list whose length a number in HBM says. The rule is read off the statement above, position by position; map(i) is
meaning.py's. Elements of the list that name no row must stop the run.
Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracle"))
import cells  # noqa: E402
import meaning  # noqa: E402

RELEASES = ("0.6", "0.9")


class Rows:
    """A table's Element with its indexed run, the list's Domain, and both in DM."""

    def __init__(self, rng, dtype):
        self.rng, self.dtype, self.sizes = rng, dtype, {}
        word = max(1, 8 // cells.BYTES[dtype])
        self.chips = rng.choice((1, 1, 1, 2, 4))
        self.chip = self.axis("C", self.chips) if self.chips > 1 else "1"
        form = rng.choice(("axis", "axis", "digit", "several"))
        if form == "axis":
            self.indexed = [self.axis("K", rng.choice((2, 3, 5, 7, 12)))]
            inside = []
        elif form == "digit":
            below = rng.choice((2, 4))
            self.axis("K", below * rng.choice((2, 3, 4)))
            self.indexed, inside = [f"K / {below}"], [f"K % {below}"]
        else:
            self.indexed, inside = [self.axis("K", rng.choice((2, 3))), self.axis("M", rng.choice((2, 3, 4)))], []
        self.inner = self.axis("L", word * rng.choice((1, 2, 3)))
        others = inside + [self.axis(n, rng.choice((1, 2, 3))) for n in rng.choice(("", "E", "EF"))]
        rng.shuffle(others)
        at = rng.randrange(len(others) + 1)
        self.payload = others + ["L"]
        self.element = others[:at] + self.indexed + others[at:] + ["L"]
        if rng.random() < 0.15:  # nothing of the payload is inside the axis but one packet's worth
            self.element = others + self.indexed + ["L"]
        names = list("GHI"[:rng.choice((1, 1, 2, 3))])
        self.domain = [self.axis(n, rng.choice((1, 2, 3, 4, 8))) for n in names]
        if form == "axis" and rng.random() < 0.2:  # the axis' own name means the place in the list
            self.domain[0] = "K"
            self.sizes = {n: s for n, s in self.sizes.items() if n != names[0]}
        self.form = form

    def axis(self, name, size):
        self.sizes[name] = size
        return name

    def spread(self):
        """Cluster, Slice, Element in DM: payload and list, each digit somewhere; L innermost."""
        digits = self.domain + [p for p in self.payload if p != "L"]
        self.rng.shuffle(digits)
        cluster, slices, room = "1 # 2", [], 256
        axes = meaning.Axes(self.sizes)
        rest = []
        for d in digits:
            size = len(cells.table(d, axes))
            if cluster == "1 # 2" and size == 2 and self.rng.random() < 0.3:
                cluster = d
            elif size <= room and room % size == 0 and self.rng.random() < 0.4:
                slices.append(d)
                room //= size
            elif size <= room and room == 256 and not slices and self.rng.random() < 0.2:
                slices.append(d + " # 256")
                room = 1
            else:
                rest.append(d)
        slice_ = ", ".join(slices) + (f", 1 # {room}" if slices and room > 1 else "") if slices else "1 # 256"
        return cluster, slice_, ", ".join(rest + ["L"])


def code_sum(parts, axes):
    """All codes of a list of digits, the last one fastest."""
    return cells.table(", ".join(parts), axes) if parts else [0]


def make(rng, number):
    dtype = rng.choice(("i32", "i32", "i16", "i8"))
    r = Rows(rng, dtype)
    axes = meaning.Axes(r.sizes)
    scatter = rng.random() < 0.5
    release = rng.choice(RELEASES)
    if release == "0.6" and r.form != "axis":
        release = "0.9"
    in_dm = release == "0.6" and not scatter and len(code_sum(r.domain, axes)) % 2 == 0 and rng.random() < 0.5
    cluster, slice_, element = r.spread()
    rows, entries = code_sum(r.indexed, axes), code_sum(r.domain, axes)
    table = cells.table(", ".join(r.element), axes)
    payload = code_sum(r.payload, axes)
    chips = cells.table(r.chip, axes)
    own_list = r.chips > 1 and rng.random() < 0.5
    step = (table.index(rows[1]) if len(rows) > 1 else len(table)) * cells.BYTES[dtype]
    in_spm = release == "0.9" and len(code_sum(r.domain, axes)) % 2 == 0 and len(code_sum(r.domain, axes)) <= 1024 and rng.random() < 0.5
    unit = 1 if in_dm or in_spm else step
    wrong = rng.random() < 0.1
    index = {}
    for c in chips if own_list else [0]:
        for d in entries:
            index[c + d] = rng.randrange(len(rows)) * unit
    if wrong:
        at = rng.choice(list(index))
        index[at] = rng.choice([-unit, len(rows) * unit] + ([index[at] + 1] if unit > 1 else []))
    chip_list = r.chip if own_list else str(r.chips)
    domain, run, pay = ", ".join(r.domain), ", ".join(r.indexed), ", ".join(p for p in r.element if p not in r.indexed)
    table_type = f"HbmTensor<{dtype}, m![{r.chip}], m![{', '.join(r.element)}]>"
    list_type = f"HbmTensor<i32, m![{chip_list}], m![{domain}]>"
    local = f"DmTensor<{dtype}, m![{r.chip}], m![{cluster}], m![{slice_}], m![{element}]>"
    flat = ", ".join(r.domain + r.payload)
    flat_type = f"HbmTensor<{dtype}, m![{r.chip}], m![{flat}]>"
    decl = ", ".join(f"{n} = {s}" for n, s in r.sizes.items())
    device = "Context" if release == "0.6" else "Device"
    numbers = lambda maps, start: {c: cells.wrap(start + 3 * i, dtype) for i, c in enumerate(cells.logical(cells.named(maps, axes), axes))}
    index_port = cells.Port("list", "i32", [chip_list, domain], index)
    of = lambda c, d: index[(c if own_list else 0) + d] // unit
    front = rng.choice((-3, 0, 1, len(entries) - 1, len(entries), len(entries) + 2, rng.randrange(len(entries) + 1))) if release == "0.9" and not scatter and not in_spm and rng.random() < 0.4 else None
    spm, by = "", f"by_byte_offsets::<m![{domain}]>(&list)"
    if in_spm:  # through DM, its first digit perhaps over slices
        first, *others = r.domain
        clusters = rng.choice(("m![2]", "m![1 # 2]"))
        spread = r.sizes[first] > 1 and len(entries) // r.sizes[first] % 2 == 0 and rng.random() < 0.6
        place = f"m![{first} # 256], m![{', '.join(others) or '1'}]" if spread else f"m![1 # 256], m![{domain}]"
        spm = (f"    let m: DmTensor<i32, m![{chip_list}], {clusters}, {place}> = list.to_dm(&mut d.tdma);\n"
               f"    let m: SpmTensor<i32, m![{chip_list}], {clusters}, m![1 # 4], m![{domain}]> = m.to_spm(&mut d.tdma);\n")
        by = f"by_positions::<m![{domain}]>(&m)"
    # With the axis' own name in the list, a row of the table and a place in the list have the same codes.
    if scatter:
        dest, source = cells.Port("t", dtype, [r.chip, ", ".join(r.element)]), cells.Port("x", dtype, [r.chip, flat])
        dest.cells, source.cells = numbers(dest.maps, 5), numbers(source.maps, 1000)
        expected = dict(dest.cells)
        for c in chips:
            for d in entries:
                for p in payload:
                    if not wrong:
                        expected[c + rows[of(c, d)] + p] = source.cells[c + d + p]
        call = (f"a.dma_scatter::<m![{domain}], _, _>(list, t);" if release == "0.6" else
                f"t.view_mut().scatter::<m![{run}], m![{pay}]>().{by.replace('&list', 'list.view()')}.from_dm(&mut d.tdma, a);")
        source_text = (f"axes![{decl}];\n#[device(chip = {r.chips})]\nfn f(d: &mut {device}, x: &{flat_type}, list: &{list_type}, t: &mut {table_type}) {{\n"
                       f"    let a: {local} = x.to_dm(&mut d.tdma);\n{spm}    {call}\n}}\n")
        kernel = cells.Kernel(f"{number}", source_text, r.sizes, [source, index_port, dest], cells.Port("t", dtype, dest.maps), expected)
    else:
        port, out = cells.Port("t", dtype, [r.chip, ", ".join(r.element)]), cells.Port("out", dtype, [r.chip, flat])
        port.cells = numbers(port.maps, 5)
        expected = {}
        for c in chips:
            for d in entries:
                for p in payload:
                    if not wrong:
                        expected[c + d + p] = port.cells[c + rows[of(c, d)] + p] if front is None or entries.index(d) < front else 0
        lines = ""
        number_type = ", n: &HbmScalar<i32>" if front is not None else ""
        if release == "0.9":
            counted = ".sparse_prefix(n.to_spm(&mut d.tdma))" if front is not None else ""
            lines, call = spm, f"t.gather::<m![{run}], m![{pay}]>().{by}{counted}.to_dm(&mut d.tdma)"
        elif in_dm:
            *outer, last = r.domain
            if r.sizes[last] % 2 == 0 and len(entries) <= 512 and rng.random() < 0.6:
                place = f"m![[{', '.join(outer + [last + ' / 2'])}] # 256], m![{last} % 2]"
            else:
                place = f"m![1 # 256], m![{domain}]"
            lines = f"    let l: DmTensor<i32, m![{chip_list}], m![1 # 2], {place}> = list.to_dm(&mut d.tdma);\n"
            call = "t.dma_gather_unscaled(&l)"
        else:
            call = "t.dma_gather_scaled(list)"
        source_text = (f"axes![{decl}];\n#[device(chip = {r.chips})]\nfn f(d: &mut {device}, t: &{table_type}, list: &{list_type}{number_type}) -> {flat_type} {{\n{lines}"
                       f"    let a: {local} = {call};\n    a.to_hbm(&mut d.tdma)\n}}\n")
        inputs = [port, index_port] + ([cells.Port("n", "i32", ["1"], {0: front})] if front is not None else [])
        kernel = cells.Kernel(f"{number}", source_text, r.sizes, inputs, out, expected)
    kind = f"{'scatter' if scatter else 'gather'} {r.form}{' in DM' if in_dm else ' in SPM' if in_spm else ''}{', its front' if front is not None else ''}"
    return kind, wrong, kernel


if __name__ == "__main__":
    sys.exit(cells.judge(make, 80))
