"""One kernel under test: axes, element types, mappings, and its source text.

`kind` says which sequencer it exercises: fetch (DM to stream), commit (stream to DM), to_dm and to_hbm (DMA), align
(TRF Element to OutTime and OutPacket). The mappings are trees of meaning.py by the names of the type arguments.
"""
import copy

from meaning import Axes, MappingError, ONE, check, pair, size, table, text

BITS = {"i4": 4, "i8": 8, "i16": 16, "i32": 32, "f8e4m3": 8, "f8e5m2": 8, "bf16": 16, "f32": 32}
ROLES = {"fetch": ("element", "time", "packet"),
         "commit": ("time", "packet", "element"),
         "copy": ("source", "time", "packet", "element"),
         "to_dm": ("source", "element"),
         "to_hbm": ("element", "target"),
         "align": ("time", "packet", "row", "element", "out_time", "out_packet")}


class Spec:
    def __init__(self, kind, sizes, dtype, maps, out=None, context="main", address=0):
        self.kind, self.sizes, self.dtype, self.out = kind, dict(sizes), dtype, out or dtype
        self.maps = {"chip": ONE, "cluster": ("#", ONE, 2), "slice": ("#", ONE, 256), **maps}
        self.context, self.address = context, address

    @property
    def axes(self):
        return Axes(self.sizes)

    def copy(self):
        return copy.deepcopy(self)

    def used(self):
        """The axes that some mapping names."""
        def names(tree):
            if tree[0] == "axis":
                return {tree[1]}
            if tree[0] == "pair":
                return names(tree[1]) | names(tree[2])
            return set() if tree[0] == "one" else names(tree[1])
        return set().union(*(names(tree) for tree in self.maps.values()))

    def valid(self):
        """Whether every expression is well-formed and the units have the sizes of the machine."""
        axes = self.axes
        try:
            for tree in self.maps.values():
                check(tree, axes)
        except MappingError:
            return False
        return (size(self.maps["chip"], axes) in (1, 2, 4) and size(self.maps["cluster"], axes) == 2
                and size(self.maps["slice"], axes) == 256)

    def sound(self):
        """Whether no tensor of the kernel has one index at two places (the parts are disjoint)."""
        axes, units = self.axes, ("chip", "cluster", "slice")
        sides = {"fetch": (("element",), ("time", "packet")), "commit": (("time", "packet"), ("element",)),
                 "copy": (("source",), ("time", "packet"), ("element",)), "to_dm": (("element",),),
                 "to_hbm": (("element",),), "align": (("time", "packet"), ("row", "element"),
                                                      ("row", "out_time", "out_packet"))}[self.kind]
        held = [code for code in table(pair(*(self.maps[role] for role in units)), axes) if code is not None]
        for side in sides:
            codes = [code for code in table(pair(*(self.maps[role] for role in side)), axes) if code is not None]
            if _doubled(held, codes, axes):
                return False
        if self.kind != "copy":
            for role in ("source", "target"):
                if role in self.maps and _doubled([0], table(self.maps[role], axes), axes):
                    return False
        return True

    def bits(self):
        return BITS[self.dtype]

    def source(self, name="kernel", suffix=""):
        def m(role):
            return "m![" + text(self.maps[role], lambda axis: axis + suffix) + "]"
        used = self.used()
        declared = [f"{axis}{suffix} = {n}" for axis, n in self.sizes.items() if axis in used] or [f"Z{suffix} = 1"]
        units = f"{m('chip')}, {m('cluster')}, {m('slice')}"
        chips = size(self.maps["chip"], self.axes)
        d, stream = self.dtype, "fn {}<'l, const T: Tu>".format(name)
        device = f"#[device(chip = {chips})]\nfn {name}(ctx: &mut Context, "
        body = {
            "fetch": lambda: device + f"x: &DmTensor<{d}, {units}, {m('element')}>) -> FetchTensor<{self.out}, {units}, "
            f"{m('time')}, {m('packet')}> {{\n    ctx.{self.context}.begin(x.view()).fetch()\n}}",
            "commit": lambda: f"{stream}(x: CollectTensor<'l, T, {d}, {units}, {m('time')}, {m('packet')}>) -> "
            f"DmTensor<{d}, {units}, {m('element')}> {{\n    x.commit({self.address})\n}}",
            "copy": lambda: device + f"x: &DmTensor<{d}, {units}, {m('source')}>) -> DmTensor<{self.out}, {units}, "
            f"{m('element')}> {{\n    ctx.{self.context}.begin(x.view()).fetch::<{self.out}, {m('time')}, {m('packet')}>()"
            f".commit({self.address})\n}}",
            "to_dm": lambda: device + f"x: &HbmTensor<{d}, {m('chip')}, {m('source')}>) -> DmTensor<{d}, {units}, "
            f"{m('element')}> {{\n    x.to_dm(&mut ctx.tdma, {self.address})\n}}",
            "to_hbm": lambda: device + f"x: &DmTensor<{d}, {units}, {m('element')}>) -> HbmTensor<{d}, {m('chip')}, "
            f"{m('target')}> {{\n    x.to_hbm(&mut ctx.tdma, {self.address})\n}}",
            "align": lambda: f"{stream}(x: CollectTensor<'l, T, {d}, {units}, {m('time')}, {m('packet')}>, "
            f"w: &TrfTensor<{d}, {units}, {m('row')}, {m('element')}>) -> AlignedPair<'l, T, {d}, {units}, {m('row')}, "
            f"{m('out_time')}, {m('out_packet')}> {{\n    x.align::<{m('out_time')}, {m('out_packet')}, _, _>(w)\n}}",
        }[self.kind]()
        return f"axes![{', '.join(declared)}];\n{body}"


def _doubled(held, codes, axes):
    seen, live = set(), axes.live
    for unit in held:
        for code in codes:
            if code is not None and live(unit + code):
                if unit + code in seen:
                    return True
                seen.add(unit + code)
    return False
