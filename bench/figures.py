"""Figures 5 to 11 of the STeP paper, every panel that there is data for: ours, published, the difference, and a picture of each.

    bench/figures.py [BIN_DIR] [--out DIR] [--artifact DIR] [--counts FILE] [--quick] [FIGURE...]

FIGURE is fig5 .. fig11; --quick leaves out batches of 1024 rows and all but two requests of each kind of Fig. 11. Writes DIR/figN-PANEL.svg and DIR/figures.json
(DIR: build/figures). Which expert gets which row, and how long requests are, comes from
  --artifact DIR  a clone of the paper's artifact (github.com/stanford-ppl/step_artifact), which has no licence: nothing of it is here;
  --counts FILE   rows for each expert and tiles for each request, as JSON (default: ../shared/conformance/step-dataflow.json, where it is there).
Else the lengths of Fig. 11 are those of examples/step/lengths.json, of a data set with a licence, and rows for experts come from routing.py of examples/step: then
points say `synthetic`, and are of other rows than the published ones."""
import argparse
import ast
import glob
import json
import math
import os
import re
import struct
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "test/step"))
sys.path.insert(0, HERE)
import step as published  # noqa: E402

# Bytes off the chip of Fig. 5 by tile, in the order of published.TN; cycles of the hardware that are public.
FIG5_BYTES = {16: (8454144, 7405568, 6881280, 6619136, 6488064), 32: (5308416, 4259840, 3735552, 3473408, 3342336),
              64: (3735552, 2686976, 2162688, 1900544, 1769472)}
FIG5_HARDWARE = (36259, 30432, 27859, 29112, 25998)  # tiles of 16 rows
# Figs. 8 and 9: bytes on the chip, FLOPs per cycle that are allocated, percent of them that are used (the artifact counts SiLU once too often).
FIG8 = {128: (82595842, 787456, 6.91), 64: (66998274, 459776, 13.07), 32: (44716034, 295936, 18.23), 16: (32460802, 214016, 23.94), 8: (24662018, 173056, 24.72),
        4: (20205570, 152576, 14.92)}
FIG9 = {128: 2.01, 64: 3.48, 32: 5.05, 16: 6.84, 8: 8.18, 4: 5.77}
# Fig. 11: requests, variation of their lengths, standard deviation of the file's name, of equal ones by the number of the first request: cycles coarse,
# interleaved, dynamic.
FIG11 = {
    ("B=16", "high"): {1456: [(74622, 32424, 26043)], 1455: [(56500, 27325, 15218)], 1454: [(54450, 25687, 14752)]},
    ("B=16", "medium"): {987: [(56008, 23227, 18398), (52236, 20361, 17494)], 986: [(60026, 25042, 16433)]},
    ("B=16", "low"): {480: [(42970, 15361, 11641)], 479: [(31900, 10105, 9455), (41084, 12416, 13482)]},
    ("B=64", "high"): {1457: [(95860, 101499, 64554)], 1374: [(64548, 98375, 67025)], 1370: [(75526, 107580, 68970)]},
    ("B=64", "medium"): {996: [(70210, 64362, 49094)], 995: [(52164, 66244, 42671), (66610, 79782, 57669)]},
    ("B=64", "low"): {508: [(56188, 54448, 46770)], 484: [(48710, 48789, 42624)], 477: [(43392, 50172, 39962)]},
    ("B=64+16", "high"): {1413: [(146206, 128165, 82225)], 1334: [(107668, 119544, 77995)], 1310: [(136864, 120230, 75468)]},
    ("B=64+16", "medium"): {987: [(113488, 113420, 72531), (96273, 95869, 65553)], 986: [(130217, 86011, 64900)]},
    ("B=64+16", "low"): {562: [(88483, 70379, 54984)], 531: [(75528, 63086, 50743)], 529: [(83397, 70126, 58433)]},
}
KINDS = ("static-coarse", "static-interleave", "dynamic")
MODELS = {"Mixtral-8x7B": {"experts": 8, "topk": 2, "D": 4096, "F": 14336}, "Qwen3-30B-A3B": {"experts": 128, "topk": 8, "D": 2048, "F": 768}}
NOT_DRAWN = [
    ("Fig. 5, hardware", "cycles of the paper's hardware need its Bluespec model and Ramulator 2; 5 of the 15 are public, and stand there as published"),
    ("Figs. 8 and 9, published bandwidth", "the paper draws the utilisation of bandwidth without numbers, and its artifact has none: ours alone"),
    ("Fig. 9, published memory", "the artifact's files have bytes on the chip of static tiles only: ours alone"),
]


# ---- data ----

def read_array(data):
    """The rows of a .npy of 64-bit integers."""
    assert data[:6] == b"\x93NUMPY" and data[6] == 1, "no .npy of version 1"
    length = struct.unpack_from("<H", data, 8)[0]
    head = ast.literal_eval(data[10:10 + length].decode())
    assert head["descr"] == "<i8" and not head["fortran_order"], "no array of 64-bit integers"
    flat = struct.unpack_from(f"<{math.prod(head['shape'])}q", data, 10 + length)
    width = head["shape"][1] if len(head["shape"]) > 1 else 0
    return [list(flat[i:i + width]) for i in range(0, len(flat), width)] if width else list(flat)


class Data:
    """Routing of rows and tiles of requests, with where they are from."""

    def __init__(self, tools, artifact, counts):
        self.tools, self.artifact, self.cases = tools, artifact, []
        if not artifact and counts and os.path.exists(counts):
            with open(counts) as f:
                self.cases = [c for c in json.load(f) if c["kind"] in ("step-figure", "step-traffic")]

    def rows(self, model, batch):
        """(rows, each a list of experts; where they are from)."""
        short, m = model.split("-")[0].lower().rstrip("3"), MODELS[model]
        for path in glob.glob(f"{self.artifact}/dyn_tiling/expert_routing/{short}_b{batch}/*.npz") if self.artifact else ():
            with zipfile.ZipFile(path) as z:
                return read_array(z.read("data.npy")), "artifact"
        for c in self.cases:
            i = c["input"]
            if i.get("model", "").startswith(model[:4]) and i.get("batch") == batch and "tokens_per_expert" in i:
                return self.tools.routing.deal(i["tokens_per_expert"], m["topk"], batch, 1), "counts"
        return self.tools.routing.draw(batch, m["experts"], m["topk"], 0.5, 1), "synthetic"

    def requests(self, batch, variation, quick):
        """(name, tiles of each request, published cycles by placement, where they are from) of the batches of a panel."""
        wanted = FIG11[batch, variation]
        folder = {"B=16": "b16", "B=64": "b64", "B=64+16": "b80"}[batch]
        found = []
        for deviation, rows in wanted.items():
            files = sorted(glob.glob(f"{self.artifact}/dynamic_par/azure_trace/{folder}/conv_stdev{deviation:04}_*.npy")) if self.artifact else []
            for path, cycles in zip(files, rows):
                with open(path, "rb") as f:
                    tiles = [(n + 1 + 31) // 32 for n in read_array(f.read())]
                found.append((f"{deviation}-{int(path[-13:-9])}", tiles, dict(zip(KINDS, cycles)), "artifact"))
        if not self.artifact:
            found += self.shipped(folder, wanted)
        return found[:1] if quick else found

    def shipped(self, folder, wanted):
        """Batches of examples/step/lengths.json; with the tiles of --counts where it has them."""
        with open(os.path.join(ROOT, "examples/step/lengths.json")) as f:
            all_lengths = json.load(f)
        counted = {c["id"].rpartition("-")[0]: c["input"]["kv_tiles"] for c in self.cases if c["id"].startswith(f"fig11-{folder}-")}
        found = []
        for deviation, rows in wanted.items():
            first = sorted(int(n.split("-")[2]) for n in all_lengths if n.startswith(f"{folder}-{deviation}-"))
            for n, cycles in zip(first, rows):
                tiles, source = [(tokens + 1 + 31) // 32 for tokens in all_lengths[f"{folder}-{deviation}-{n}"]], "lengths"
                known = next((t for name, t in counted.items() if re.fullmatch(rf"fig11-{folder}-0*{deviation}-0*{n}", name)), None)
                found.append((f"{deviation}-{n}", known or tiles, dict(zip(KINDS, cycles)), "counts" if known else source))
        return found


# ---- figures: panels of points ----

def point(name, ours, paper=None, source="", series=""):
    return {"point": name, "series": series, "ours": ours, "published": paper, "percent": 100 * (ours / paper - 1) if paper else None, "data": source}


def panel(figure, letter, title, unit, points):
    return {"figure": figure, "panel": letter, "title": title, "unit": unit, "points": points}


def figure5(tools, data, quick):
    cycles, traffic = [], []
    for tm, row in published.FIG5.items():
        for k, tn in enumerate(published.TN):
            case = {"B": 64, "D": 256, "F": 512, "tile_b": tm, "tile_f": tn, "elem_bytes": 4, "hbm_channels": 8, "requests_per_cycle": 4,
                    "onchip_bytes_per_cycle": 256, "compute_flops_per_cycle": 4096, "fifo_depth": 1}
            report = tools.swiglu(case)
            cycles.append(point(f"{tm} x {tn}", report["cycles"], row[k], series="simulator"))
            traffic.append(point(f"{tm} x {tn}", report["offchip_bytes"], FIG5_BYTES[tm][k]))
    hardware = [point(f"16 x {tn}", c["ours"], paper, series="hardware") for tn, c, paper in zip(published.TN, cycles, FIG5_HARDWARE)]
    yield panel("fig5", "cycles", "SwiGLU layer, by tile", "cycles", cycles)
    yield panel("fig5", "hardware", "SwiGLU layer, against the hardware where that is public", "cycles", hardware)
    yield panel("fig5", "traffic", "SwiGLU layer, off-chip traffic", "bytes", traffic)


def moe_input(model, batch, rows, tiling, **more):
    m = MODELS[model]
    counts = [sum(e in r for r in rows) for e in range(m["experts"])]
    return {"model": model, "batch": batch, "topk": m["topk"], "D": m["D"], "F": m["F"], "tile_f": 64, "routing": rows, "tokens_per_expert": counts, "tiling": tiling,
            "fifo_depth": 2, "compute_flops_per_cycle": 4096, **more}


def memory_of(report):
    """As the artifact counts: stored rows at 4 bytes an element."""
    return report["onchip_bytes"]["artifact"] + sum(o["onchip_bytes"]["artifact"] for o in report["operators"] if o["operator"] == "linear_store")


def tiling(tools, data, figure, batch):
    cycles, memory, ratios = [], [], []
    for model in MODELS:
        rows, source = data.rows(model, batch)
        ours = {}
        for tile, (paper, held) in published.FIG67[model, batch].items():
            report = ours[tile] = tools.moe(moe_input(model, batch, rows, tile))
            name = f"{model.split('-')[0]}, {tile}"
            if report is None:
                continue
            cycles.append(point(name, report["cycles"], paper, source))
            memory.append(point(name, memory_of(report), held, source))
        theirs = published.FIG67[model, batch]
        for tile in (t for t in ours if t != "dynamic" and ours[t] and ours["dynamic"]):
            ratios.append(point(f"{model.split('-')[0]}, {tile}, cycles", ours[tile]["cycles"] / ours["dynamic"]["cycles"], theirs[tile][0] / theirs["dynamic"][0], source))
            ratios.append(point(f"{model.split('-')[0]}, {tile}, memory", memory_of(ours[tile]) / memory_of(ours["dynamic"]), theirs[tile][1] / theirs["dynamic"][1], source))
    yield panel(figure, "cycles", f"tiling of mixtures of experts, {batch} rows", "cycles", cycles)
    yield panel(figure, "memory", f"memory on the chip, {batch} rows", "bytes", memory)
    yield panel(figure, "ratio", f"static over dynamic tiles, {batch} rows", "times", ratios)


def figure6(tools, data, quick):
    yield from tiling(tools, data, "fig6", 64)


def figure7(tools, data, quick):
    if not quick:
        yield from tiling(tools, data, "fig7", 1024)


def shared(tools, data, figure, kind):
    rows, source = data.rows("Qwen3-30B-A3B", 64)
    panels = {name: [] for name in ("cycles", "memory", "compute", "used", "bandwidth")}
    for regions, paper in published.FIG89[kind].items():
        i = moe_input("Qwen3-30B-A3B", 64, rows, 32 if kind == "static" else "dynamic", tile_f=48, time_mux_regions=regions, compute_flops_per_cycle=1024)
        report = tools.moe(i)
        name, at = f"{regions}", FIG8[regions] if kind == "static" else (None, FIG8[regions][1] - 1024 * (regions == 128), FIG9[regions])
        used = 100 * tools.published_flops(i, report) / (report["allocated_flops_per_cycle"] * report["cycles"])
        panels["cycles"].append(point(name, report["cycles"], paper, source))
        panels["memory"].append(point(name, memory_of(report), at[0], source))
        panels["compute"].append(point(name, report["allocated_flops_per_cycle"], FIG8[regions][1] if kind == "static" else None, source))
        panels["used"].append(point(name, used, at[2], source, "as published"))
        panels["used"].append(point(name, report["compute_utilisation_percent"], None, source, "by the report"))
        panels["bandwidth"].append(point(name, report["bandwidth_utilisation_percent"], None, source))
    what = f"Qwen3-30B-A3B, {kind} tiles, by regions"
    for letter, title, unit in (("cycles", "cycles", "cycles"), ("memory", "memory on the chip", "bytes"), ("compute", "allocated compute", "FLOPs per cycle"),
                                ("used", "utilisation of allocated compute", "percent"), ("bandwidth", "utilisation of off-chip bandwidth", "percent")):
        yield panel(figure, letter, f"{what}: {title}", unit, panels[letter])


def figure8(tools, data, quick):
    yield from shared(tools, data, "fig8", "static")


def figure9(tools, data, quick):
    yield from shared(tools, data, "fig9", "dynamic")


def figure11(tools, data, quick):
    for batch, variation in FIG11:
        cycles, speed = [], []
        for name, tiles, paper, source in data.requests(batch, variation, quick):
            i = {"kv_tiles": tiles, "regions": 4, "tile_n": 32, "head_dim": 64, "q_heads_per_kv": 8, "metadata_fifo_depth": 1}
            ours = {kind: tools.attention({**i, "parallel": kind})["cycles"] for kind in KINDS}
            cycles += [point(f"{name} {kind}", ours[kind], paper.get(kind), source, kind) for kind in KINDS]
            both = KINDS[2] in paper
            speed += [point(f"{name} {kind}", ours[kind] / ours["dynamic"], paper[kind] / paper["dynamic"] if both and kind in paper else None, source, kind) for kind in KINDS[:2]]
        yield panel("fig11", f"{batch.replace('=', '').replace('+', '-')}-{variation}", f"attention, {batch}, {variation} variation", "cycles", cycles)
        yield panel("fig11", f"{batch.replace('=', '').replace('+', '-')}-{variation}-normalized", f"static over dynamic, {batch}, {variation} variation", "times", speed)


def figure10(tools, data, quick):
    """A graph and no chart: attention on two regions, drawn."""
    import subprocess
    done = subprocess.run([f"{tools.BIN}/visac", f"{tools.EXAMPLES}/attention.vm", "-DR=2", "-DSAFE=0", "--pass=dynamic-parallel:done=keys_read", "--emit=svg"],
                          capture_output=True, text=True, check=True)
    yield {**panel("fig10", "graph", "dynamic parallelization of attention, two regions", "graph", []), "svg": done.stdout}


FIGURES = {"fig5": figure5, "fig6": figure6, "fig7": figure7, "fig8": figure8, "fig9": figure9, "fig10": figure10, "fig11": figure11}


# ---- text and pictures ----

def number(x):
    return "" if x is None else f"{x:,}" if isinstance(x, int) else f"{x:,.3f}"


def text(p):
    out = [f"{p['figure']} {p['panel']}: {p['title']} ({p['unit']})", f"  {'':<28}{'ours':>18}{'published':>18}{'difference':>12}  data"]
    for q in p["points"]:
        percent = "" if q["percent"] is None else f"{q['percent']:+.2f} %"
        out.append(f"  {(q['point'] + (', ' + q['series'] if q['series'] and q['series'] not in q['point'] else ''))[:27]:<28}{number(q['ours']):>18}{number(q['published']):>18}{percent:>12}  {q['data']}")
    return "\n".join(out if p["points"] else out[:1])


def svg(p):
    if "svg" in p:
        return p["svg"]
    points = p["points"]
    top = max(max(q["ours"], q["published"] or 0) for q in points) or 1
    width, out = 44 * len(points) + 90, ""
    for i, q in enumerate(points):
        for k, (value, colour) in enumerate(((q["ours"], published.OURS), (q["published"], published.PAPER))):
            if value is not None:
                high = 180 * value / top
                out += f'<rect x="{60 + 44 * i + 17 * k}" y="{230 - high:.1f}" width="15" height="{high:.1f}" fill="{colour}"/>'
        out += f'<text transform="translate({70 + 44 * i},242) rotate(40)">{q["point"]}</text>'
    names = sorted({q["data"] for q in points} - {""})
    where = f", data: {', '.join(names)}" if names else ""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, 620)}" height="360" font-family="sans-serif" font-size="10"><text x="10" y="16" font-size="13">'
            f'{p["figure"]}, {p["title"]}: ours (blue), published (grey){where}</text><path d="M54 40V230H{width}" fill="none" stroke="black"/><text x="4" y="48">{number(top)}</text>'
            f'<text x="4" y="230">0</text><text x="60" y="34">{p["unit"]}</text>{out}</svg>\n')


def write(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w") as f:
        f.write(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="?", default=os.path.join(ROOT, "build/release/bin"))
    parser.add_argument("figures", nargs="*", metavar="FIGURE")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/figures"))
    parser.add_argument("--artifact", default="")
    parser.add_argument("--counts", default=os.path.join(ROOT, "../shared/conformance/step-dataflow.json"))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_intermixed_args()
    for name in options.figures:
        if name not in FIGURES:
            parser.error(f"there is no {name}; figures are {', '.join(FIGURES)}")
    if options.artifact and not os.path.isdir(os.path.join(options.artifact, "dynamic_par")):
        parser.error(f"{options.artifact} is no clone of step_artifact: it has no folder dynamic_par")
    os.environ["VISA_BIN"] = os.path.abspath(options.programs)
    import step_figures as tools
    data, made = Data(tools, options.artifact, options.counts), []
    for name in options.figures or FIGURES:
        for p in FIGURES[name](tools, data, options.quick):
            made.append(p)
            print(text(p), flush=True)
            write(options.out, f"{p['figure']}-{p['panel']}.svg", svg(p))
    write(options.out, "figures.json", json.dumps([{k: v for k, v in p.items() if k != "svg"} for p in made], indent=1) + "\n")
    compared = [abs(q["percent"]) for p in made for q in p["points"] if q["percent"] is not None and q["data"] != "synthetic"]
    if compared:
        print(f"{len(made)} panels in {options.out}; {len(compared)} points compared with published ones, {sum(c <= 5 for c in compared)} within 5 %, the furthest {max(compared):.1f} % away")
    for what, why in NOT_DRAWN:
        print(f"not drawn: {what}: {why}")
    if any(q["data"] == "synthetic" for p in made for q in p["points"]):
        print("synthetic: rows that examples/step/routing.py deals out, not those of the published points; --artifact DIR has those")


if __name__ == "__main__":
    main()
