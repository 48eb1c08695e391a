"""Random contraction kernels: out[kept axes] = sum over K of x * w, in many shapes.

A kernel is a set of choices (`Kernel.choice`), each of which can be taken back to its plainest value, which is how a
failing one is made smaller; the mappings of all stages follow from the choices.
"""
import random

from generate import cut, divisors
from meaning import ONE, Axes, axis, pair, size, text
from spec import BITS

CASTS = {"i32": (None, "i8", "i4", "i16"), "f32": (None, "bf16", "f8e4m3", "f8e5m2")}
PLAIN = {"cast": None, "keep": "none", "reorder": 0, "tiles": [], "packed": 1, "pad_k": 0, "pad_m": 0, "rows_padded": 0,
         "spread": None, "cluster": 0, "address": "Full", "kind": "Interleaved", "cut_m": 0, "form": "device",
         "element_order": 0, "wide_x": 0, "two": 0, "group": 0, "k_steps": 1, "k_parts": 1, "m_sizes": [], "rows": 1, "batch": 1, "whole_fetch": 1, "split_m": 0}


def _flat(digits):
    return pair(*(d[0] for d in digits))


def _volume(digits):
    n = 1
    for d in digits:
        n *= d[1]
    return n


class Kernel:
    def __init__(self, choice):
        self.choice = choice
        self.sizes = {}
        self._build()

    def simpler(self):
        for key, plain in PLAIN.items():
            if self.choice[key] != plain:
                yield Kernel({**self.choice, key: plain})
        for key in ("m_sizes", "tiles"):
            for i in range(len(self.choice[key])):
                less = self.choice[key][:i] + self.choice[key][i + 1:]
                yield Kernel({**self.choice, key: less})

    @property
    def features(self):
        c = self.choice
        out = [c["dtype"], f"{c['rows']} Rows", c["kind"], f"collect_flits {c['packed']}", c["form"] + " form"]
        out += [name for name, on in (("tiling", c["tiles"]), ("partial sums", c["keep"] != "none"), ("cast", c["cast"]),
                                      ("padded K", c["pad_k"]), ("cut", c["cut_m"]), ("in slices", c["spread"]),
                                      ("padded Row", c["rows_padded"]), ("fetch cast", self.x_dtype != c["dtype"]), ("two TRF tensors", self.two),
                                      ("group", self.grouped)) if on]
        return out

    def _axis(self, name, n):
        self.sizes[name] = n
        return axis(name), n

    def _build(self):
        c, rng = self.choice, random.Random(self.choice["order"])
        self.flit = 256 // BITS[c["dtype"]]
        self.x_dtype = "f32" if c["wide_x"] and c["dtype"] == "bf16" and c["form"] == "device" else c["dtype"]
        self.two = c["two"] and c["form"] == "device"
        lanes = self.flit * c["packed"]
        self._packet(c, lanes)
        # what the stream brings: its own axes, maybe cut into digits, and the rest of K
        outer = []
        for i, n in enumerate(c["m_sizes"]):
            tree, n = self._axis("MAB"[i], n)
            if i == 0 and c["cut_m"] and n > 2:
                tree, n = ("=", tree, n - 1), n - 1
            elif i == 0 and c["pad_m"] and n > 1:
                tree, n = ("#", tree, n + c["pad_m"]), n + c["pad_m"]
            parts = [d for d in divisors(n) if 1 < d < n]
            outer += cut(tree, n, [1, parts[0], n]) if parts and c["split_m"] and not c["cut_m"] else [(tree, n)]
        self.tiles = [self._axis("TUV"[i], n) for i, n in enumerate(c["tiles"])]
        real = max(1, c["rows"] - c["rows_padded"]) if c["rows"] > 1 else 1
        self.row, row = self._axis("N", real * c["batch"])
        self.slice_digits, kept_row = [], (self.row, row)
        if c["batch"] > 1:
            digits = cut(self.row, row, [1, real, row] if real > 1 else [1, row])
            if c["spread"] == "N":
                self.slice_digits = digits[:1]
            else:
                self.tiles.insert(0, digits[0])
            kept_row = digits[1] if len(digits) > 1 else (ONE, 1)
        tree, n = kept_row
        self.row_tree = ("#", tree, c["rows"]) if n < c["rows"] else tree if n > 1 else ONE
        self.row_live = (tree, n)
        if c["spread"] == "M" and outer:
            self.slice_digits.append(outer.pop(0))
        self.cluster = ("#", ONE, 2)
        if c["cluster"]:
            self.cluster = self._axis("C", 2)[0]
        if c["reorder"]:
            rng.shuffle(outer)
            self.k_time = list(self.k_time)
            mixed = outer + self.k_time
            rng.shuffle(mixed)
        else:
            mixed = outer + list(self.k_time)
        self.time = mixed
        self.out_time = mixed + self.tiles
        self.kept_time = [d for d in self.out_time if d not in self.k_time]
        self.rng = rng
        self._results()

    def _packet(self, c, lanes):
        """The 64-byte packet: kept digits outside, contracted ones inside."""
        outside = []
        if c["keep"] == "stream" or c["keep"] == "both":
            p = 2 if lanes >= 4 else 1
            p *= c["keep_size"] if lanes % (2 * c["keep_size"]) == 0 else 1
            outside = [self._axis("P", p)]
        inner = lanes // _volume(outside)
        whole = inner * c["k_steps"]
        self.grouped = bool(c["group"]) and whole >= 4 * c["group"]
        if self.grouped:
            tree = self._group(c, whole)
        else:
            self.k_axis, k = self._axis("K", max(1, whole - min(c["pad_k"], inner - 1)))
            tree = self.k_axis if k == whole else ("#", self.k_axis, whole)
        bounds = [1, inner, whole] if c["k_steps"] > 1 else [1, whole]
        if c["k_steps"] > 1 and c["k_parts"] > 1:
            more = [d for d in divisors(c["k_steps"]) if 1 < d < c["k_steps"]]
            bounds = [1, inner] + [inner * d for d in more[:1]] + [whole]
        digits = cut(tree, whole, sorted(set(bounds))) if whole > 1 else [(ONE, 1)]
        self.k_in, self.k_time = digits[-1:], digits[:-1]
        if inner == 1:
            self.k_in, self.k_time = [(ONE, 1)], digits
        self.packet = _flat(outside + self.k_in)
        self.outside, self.inner = outside, inner
        self.kept = list(outside)
        if c["keep"] == "partial" and not c["pad_k"] and not self.grouped and inner >= 8:
            q = c["keep_size"] * 2
            q = q if inner % q == 0 and q < inner else 2
            digit, n = self.k_in[0]
            self.kept = [(("/", digit, n // q), q)]

    def _group(self, c, whole):
        """K and L as one group that no digits cut at the packet's end: padded after it, maybe inside it as well."""
        held = c["group"] + (1 if c["pad_k"] else 0)
        low = self._axis("L", c["group"])[0]
        high = self._axis("K", max(1, (whole - c["pad_k"]) // held))[0]
        return ("#", pair(high, ("#", low, held) if c["pad_k"] else low), whole)

    def _results(self):
        c = self.choice
        kept = _flat(self.kept) if self.kept else ONE
        m = _volume(self.kept)
        self.contracted = kept
        if c["kind"] == "Interleaved":
            self.acc_time = self.kept_time + self.kept
            self.acc_packet = ("#", self.row_tree, 8) if size(self.row_tree, Axes(self.sizes)) < 8 else self.row_tree
            self.last = [self.row_live]
        else:
            wide = -(-m // 8) * 8
            padded = ("#", kept, wide) if wide > m else kept
            row = [(self.row_tree, c["rows"])] if c["rows"] > 1 else []
            outer = [(("/", padded, 8), wide // 8)] if wide > 8 else []
            self.acc_time = self.kept_time + row + outer
            self.acc_packet = ("%", padded, 8) if wide > 8 else padded
            self.last = [(self.acc_packet if m >= 8 else kept, min(m, 8))]
        self.wide = "i32" if c["dtype"] in ("i4", "i8") else "f32"
        self.out = c["cast"] or self.wide

    def mappings(self):
        """Element mappings of x, w and the result in DM, and of the result in HBM."""
        rng = random.Random(self.choice["order"] + 1)
        unit = 64 // BITS[self.out]
        last, n = _flat(self.last), _volume(self.last)
        fitted = -(-n // unit) * unit
        steps = list(self.acc_time)
        if self.choice["element_order"]:
            rng.shuffle(steps)
        element = pair(*(d[0] for d in steps), ("#", last, fitted) if fitted > n else last)
        spread = list(self.slice_digits) + ([(self.cluster, 2)] if self.choice["cluster"] else [])
        back = [d for d in spread] + [d for d in steps if d[0] != self.row_tree] + \
            ([self.row_live] if self.choice["kind"] == "Sequential" and self.choice["rows"] > 1 else [])
        tail = ("#", last, fitted) if BITS[self.out] == 4 and fitted > n else last
        return element, pair(*(d[0] for d in back), tail)

    def source(self, name="kernel", suffix=""):
        c = self.choice

        def m(tree):
            return "m![" + text(tree, lambda a: a + suffix) + "]"
        d, flit = c["dtype"], self.flit
        lanes = flit * c["packed"]
        units = f"m![1], {m(self.cluster)}, {m(('#', _flat(self.slice_digits), 256))}"
        packet = self.packet
        if c["packed"] == 2:
            flit_time, flit_packet = [(("/", packet, flit), 2)], ("%", packet, flit)
            out_packet = packet
        else:
            flit_time, flit_packet, out_packet = [], packet, ("#", packet, 2 * flit)
        x_time = _flat(self.time + flit_time)
        fetch_time, fetch_packet = (_flat(self.time), packet) if c["whole_fetch"] else (x_time, flit_packet)
        shared = self.outside if c["keep"] == "both" else []
        stored = self.tiles + self.k_time
        w_digits = shared + self.k_in
        w_row = [(self.row_tree, c["rows"])] if c["rows"] > 1 else []
        w_tree, w_n = _flat(w_digits), _volume(w_digits)
        whole = w_n * BITS[d] % 256 == 0
        w_fitted = -(-w_n * BITS[d] // 256) * 256 // BITS[d]
        w_packet = w_tree if whole else ("#", w_tree, w_fitted)
        w_flits = w_fitted // flit
        w_time = w_row + stored
        collect_time = w_time + ([(("/", w_packet, flit), w_flits)] if w_flits > 1 else [])
        collect_packet = ("%", w_packet, flit) if w_flits > 1 else w_packet
        w_element = _flat(stored + [(w_packet, w_fitted)])
        row = self.row_tree
        element, result = self.mappings()
        order = sorted(self.sizes)
        declared = ", ".join(f"{a}{suffix} = {self.sizes[a]}" for a in order)
        x_dm = _flat(self.time + [(packet, lanes)])
        w_dm = _flat(w_row + stored + [(w_packet, w_fitted)])
        tail = (f"        .align::<{m(_flat(self.out_time))}, {m(out_packet)}, _, _>(WEIGHTS)\n"
                f"        .contract::<{m(self.contracted)}>()\n"
                f"        .accumulate::<{m(_flat(self.acc_time))}, {m(self.acc_packet)}>(AccumulationKind::{c['kind']})")
        cast_packet = ("#", self.acc_packet, 256 // BITS[self.out]) if c["cast"] else self.acc_packet
        if c["cast"]:
            tail += f"\n        .cast::<{c['cast']}, {m(cast_packet)}>()"
        x_dtype = self.x_dtype
        trf = f"TrfTensor<{d}, {units}, {m(row)}, {m(w_element)}>"
        if c["form"] == "stream":
            kind = "CastTensor" if c["cast"] else "AccumulationTensor"
            return (f"axes![{declared}];\nfn {name}<'l, const T: Tu>(x: CollectTensor<'l, T, {d}, {units}, {m(x_time)}, "
                    f"{m(flit_packet)}>, w: &{trf}) -> {kind}<'l, T, {self.out}, {units}, {m(_flat(self.acc_time))}, "
                    f"{m(cast_packet)}> {{\n    x\n{tail.replace('WEIGHTS', 'w')}\n}}")

        def store(name, t, at, half):
            return (f"    let {name}: DmTensor<{d}, {units}, {m(w_dm)}> = {name}.to_dm(&mut ctx.tdma, {at});\n"
                    f"    let {t}: {trf} = ctx.sub.begin({name}.view()).fetch::<{d}, {m(_flat(w_time))}, {m(w_packet)}>()\n"
                    f"        .collect::<{m(_flat(collect_time))}, {m(collect_packet)}>().to_trf(TrfAddress::{half});\n")

        def contract(name, t, at):
            out = "    z.view().to_hbm_view(&mut ctx.tdma, c.view_mut());\n" if name == "z" else ""
            return (f"    let {name}: DmTensor<{self.out}, {units}, {m(element)}> = ctx.main.begin(x.view())\n"
                    f"        .fetch::<{d}, {m(fetch_time)}, {m(fetch_packet)}>()\n"
                    f"        .collect::<{m(x_time)}, {m(flit_packet)}>()\n{tail.replace('WEIGHTS', '&' + t)}\n"
                    f"        .commit({at});\n{out}")
        names, results, second = [("w", "t", "1 << 17", c["address"])], [("y", "t", "1 << 18")], ""
        if self.two:
            halves = ("SecondHalf", "FirstHalf") if c["address"] == "SecondHalf" else ("FirstHalf", "SecondHalf")
            names = [("w", "t", "1 << 17", halves[0]), ("v", "s", "0x28000", halves[1])]
            results = [("z", "s", "0x60000"), ("y", "t", "1 << 18")]
            second = (f", v: &HbmTensor<{d}, m![1], {m(self._hbm(w_dm, True))}>, "
                      f"c: &mut HbmTensor<{self.out}, m![1], {m(result)}>")
        return (f"axes![{declared}];\n#[device(chip = 1)]\nfn {name}(ctx: &mut Context, "
                f"x: &HbmTensor<{x_dtype}, m![1], {m(self._hbm(x_dm))}>, w: &HbmTensor<{d}, m![1], {m(self._hbm(w_dm, True))}>{second}) -> "
                f"HbmTensor<{self.out}, m![1], {m(result)}> {{\n"
                f"    let x: DmTensor<{x_dtype}, {units}, {m(x_dm)}> = x.to_dm(&mut ctx.tdma, 0);\n"
                + "".join(store(name, t, at, half) for name, t, at, half in names)
                + "".join(contract(name, t, at) for name, t, at in results)
                + f"    y.to_hbm(&mut ctx.tdma, 1 << 24)\n}}")

    def _hbm(self, tree, weights=False):
        """The HBM side of a load: what DM holds in the slices stands outside."""
        spread = [d for d in self.slice_digits if ("N" in text(d[0])) == weights]
        if self.choice["cluster"] and not weights:
            spread.insert(0, (self.cluster, 2))
        return pair(*(d[0] for d in spread), tree)


def make(rng):
    """A random kernel, mostly legal."""
    while True:
        dtype = rng.choice(("i4", "i8", "i8", "f8e4m3", "f8e5m2", "bf16", "bf16"))
        wide = "i32" if dtype in ("i4", "i8") else "f32"
        rows = rng.choice((1, 2, 4, 8, 8))
        choice = {
            "dtype": dtype, "rows": rows, "order": rng.randrange(1 << 30), "packed": rng.choice((1, 2, 2)),
            "cast": rng.choice(CASTS[wide]), "kind": rng.choice(("Interleaved", "Interleaved", "Sequential")),
            "keep": rng.choice(("none", "none", "none", "stream", "both", "partial")), "keep_size": rng.choice((1, 2, 4)),
            "k_steps": rng.choice((1, 1, 2, 3, 4, 6)), "k_parts": rng.choice((1, 2)),
            "pad_k": rng.choice((0, 0, 0, 1, 3, 8)), "m_sizes": [rng.choice((1, 2, 3, 4, 5, 6, 8, 12, 16))
                                                                for _ in range(rng.choice((1, 1, 2, 3)))],
            "split_m": rng.random() < 0.3, "tiles": [rng.choice((2, 3, 4, 5)) for _ in range(rng.choice((0, 0, 0, 1, 2)))],
            "rows_padded": int(rows > 2 and rng.random() < 0.12), "batch": rng.choice((1, 1, 1, 1, 2, 3, 4)),
            "spread": rng.choice((None, None, "M", "N")), "cluster": int(rng.random() < 0.15),
            "cut_m": int(rng.random() < 0.08), "pad_m": rng.choice((0, 0, 0, 0, 1, 3)), "reorder": int(rng.random() < 0.5),
            "element_order": int(rng.random() < 0.4), "whole_fetch": int(rng.random() < 0.7),
            "address": rng.choice(("Full", "Full", "FirstHalf", "SecondHalf")),
            "form": rng.choice(("device", "device", "stream")), "wide_x": int(rng.random() < 0.3), "two": int(rng.random() < 0.15),
            "group": rng.choice((0, 0, 0, 0, 0, 0, 0, 3, 5, 7))}
        kernel = Kernel(choice)
        steps = _volume(kernel.out_time)
        if steps * rows <= 1024 and steps * kernel.flit <= 24576 and _volume(kernel.time) <= 512:
            return kernel
