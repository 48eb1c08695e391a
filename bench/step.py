"""Stream programs against the STeP paper: cycles and memory of its figures, and the ratios that it claims. Nothing is judged here; test/step/step_figures.py
holds the cycles to bounds.

    bench/step.py [BIN_DIR] [--svg DIR] [--json FILE]

Routing counts and tile counts come from shared/conformance next to the checkout; without it, only the points that need none are run."""
import argparse
import json
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../test/step"))

FIG5 = {16: (33289, 29400, 27503, 26993, 27509), 32: (21223, 17097, 15277, 14773, 15305), 64: (15218, 11188, 9537, 9260, 11088)}
TN = (16, 32, 64, 128, 256)
# Published cycles and bytes on the chip of Figs. 6 and 7, by model, batch and tile.
FIG67 = {("Mixtral-8x7B", 64): {16: (4644999, 18915330), 64: (2813010, 37789698), "dynamic": (2782672, 18915330)},
         ("Mixtral-8x7B", 1024): {256: (14870882, 113287170), 1024: (29803436, 415277058), "dynamic": (7942058, 113287170)},
         ("Qwen3-30B-A3B", 64): {16: (712164, 70799362), 64: (577007, 141578242), "dynamic": (580999, 59789314)},
         ("Qwen3-30B-A3B", 1024): {256: (1335125, 587485186), 1024: (1154880, 2154057730), "dynamic": (1051196, 266620930)}}
FIG89 = {"static": {128: 789895, 64: 715519, 32: 796725, 16: 839090, 8: 1004877, 4: 1888072},
         "dynamic": {128: 713539, 64: 704732, 32: 754098, 16: 769760, 8: 796622, 4: 1280865}}


def geomean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def point(name, ours, paper, what="cycles", **more):
    return {"point": name, "what": what, "ours": ours, "paper": paper, "percent": 100 * (ours / paper - 1), **more}


def claim(what, ours, data, paper, note=""):
    """A ratio: from our points, from the published points, and as the paper's text has it."""
    return {"ratio": what, "ours": ours, "from_published_points": data, "paper_says": paper, "note": note}


def figure5(tools, smallest=False):
    points = []
    for tm, row in FIG5.items():
        for tn, paper in list(zip(TN, row))[-1 if smallest else 0:]:
            case = {"B": 64, "D": 256, "F": 512, "tile_b": tm, "tile_f": tn, "elem_bytes": 4, "hbm_channels": 8, "requests_per_cycle": 4,
                    "onchip_bytes_per_cycle": 256, "compute_flops_per_cycle": 4096, "fifo_depth": 1}
            points.append(point(f"tile {tm} x {tn}", tools.swiglu(case)["cycles"], paper))
    return {"figure": "Fig. 5", "title": "SwiGLU layer", "points": points, "claims": []}


def counts_of(cases):
    """Rows for each expert of the published batches, and the model's sizes."""
    out = {}
    for c in cases:
        i = c["input"]
        if "model" in i and "tokens_per_expert" in i:
            out.setdefault((i["model"], i["batch"]), {k: v for k, v in i.items() if k != "time_mux_regions"})
    return out


def moe_case(i, tiling, **more):
    return {**i, "tiling": tiling, "fifo_depth": 2, "compute_flops_per_cycle": 4096, **more}


def onchip_bytes(tools, i, tiling):
    """By the artifact's equations, which the published figures follow."""
    counts = i["tokens_per_expert"]
    sizes = {"B": i["batch"], "E": len(counts), "K": i["topk"], "D": i["D"], "F": i["F"], "FT": 64, "T": 0 if tiling == "dynamic" else tiling}
    sizes.update({f"{who}{e}": n for e, n in enumerate(counts) for who in ("routing", "picks")})
    command = [f"{tools.BIN}/visac", f"{tools.EXAMPLES}/{'moe_qwen' if i['model'].startswith('Qwen') else 'moe_mixtral'}.vm", "--emit=step-json"]
    done = subprocess.run([*command, *(f"-D{k}={v}" for k, v in sizes.items())], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[0]["total"]["onchip_bytes"]["artifact"]["value"]


def figures67(tools, counts):
    points, cycles, memory, data_cycles, data_memory = [], [], [], [], []
    for key, row in FIG67.items():
        if key not in counts:
            continue
        ours = {t: tools.moe(moe_case(counts[key], t, tile_f=64))["cycles"] for t in row}
        held = {t: onchip_bytes(tools, counts[key], t) for t in row}
        for t, (paper, bytes_) in row.items():
            name = f"{key[0]} {key[1]}, tile {t}"
            points += [point(name, ours[t], paper, held=held[t]), point(name, held[t], bytes_, "bytes on the chip")]
        static = [t for t in row if t != "dynamic"]
        cycles += [ours[t] / ours["dynamic"] for t in static]
        memory += [held[t] / held["dynamic"] for t in static]
        data_cycles += [row[t][0] / row["dynamic"][0] for t in static]
        data_memory += [row[t][1] / row["dynamic"][1] for t in static]
    claims = [claim("dynamic tiling: static cycles over dynamic", geomean(cycles), geomean(data_cycles), "1.45"),
              claim("dynamic tiling: static bytes on the chip over dynamic", geomean(memory), geomean(data_memory), "2.18 (abstract), 2.1 (introduction)",
                    "2.18 does not follow from the published points")] if cycles else []
    return {"figure": "Figs. 6 and 7", "title": "mixtures of experts", "points": points, "claims": claims}


def figures89(tools, counts):
    i = counts.get(("Qwen3-30B-A3B", 64))
    out = {"figure": "Figs. 8 and 9", "title": "time-multiplexed experts", "points": [], "claims": []}
    reports = {}
    for kind, row in FIG89.items() if i else ():
        for regions, paper in row.items():
            case = moe_case(i, 32 if kind == "static" else "dynamic", tile_f=48, time_mux_regions=regions)
            reports[kind, regions] = tools.moe({**case, "compute_flops_per_cycle": 1024})
            out["points"].append(point(f"{kind}, {regions} regions", reports[kind, regions]["cycles"], paper, series=kind, x=regions))
    if i:
        used = {k: r["flops"] / r["cycles"] / (1024 * (5 * k[1] + 128 + (k[0] == "static"))) for k, r in reports.items()}
        gains = [used[k, 32] / used[k, 128] for k in FIG89]
        out["claims"].append(claim("time-multiplexing: utilisation at 32 regions over 128", geomean(gains), math.sqrt(18.23 / 6.91 * 5.05 / 2.01), "2.57",
                                   "the paper's utilisations count SiLU D times, 2.33 x too high; their ratios stand"))
        ours, data = (r["dynamic", 32] / r["dynamic", 128] - 1 for r in ({k: v["cycles"] for k, v in reports.items()}, {(k, n): c for k, row in FIG89.items() for n, c in row.items()}))
        out["claims"].append(claim("time-multiplexing: more cycles at 32 regions, dynamic tiles", 1 + ours, 1 + data, "less than 5 %", "5.68 % by the published points"))
    return out


def figure11(tools, cases):
    batches, points, ratios = {}, [], {"static-coarse": [], "static-interleave": []}
    for c in cases:
        if c["id"].startswith("fig11"):
            batches.setdefault(tuple(c["input"]["kv_tiles"]), []).append(c)
    for group in batches.values():
        cycles = {kind: tools.attention({**group[0]["input"], "parallel": kind})["cycles"] for kind in ("dynamic", *ratios)}
        points += [point(c["id"][6:], cycles[c["input"]["parallel"]], c["expect"]["cycles"]) for c in group]
        for kind, all_ratios in ratios.items():
            all_ratios.append(cycles[kind] / cycles["dynamic"])
    claims = [claim("dynamic parallelization: coarse cycles over dynamic", geomean(ratios["static-coarse"]), 1.850, "1.85 (v2)"),
              claim("dynamic parallelization: interleaved cycles over dynamic", geomean(ratios["static-interleave"]), 1.362, "1.36 (v2)"),
              claim("dynamic parallelization: both", geomean(ratios["static-coarse"] + ratios["static-interleave"]), 1.588, "1.5",
                    f"{len(batches)} batches here; the published points are 27")] if batches else []
    return {"figure": "Fig. 11", "title": "decoding attention, dynamic placement by --pass=dynamic-parallel", "points": points, "claims": claims}


def figures(programs, smallest=False):
    """Each figure as soon as it is there. `smallest`: three points."""
    os.environ["VISA_BIN"] = os.path.abspath(programs)
    import step_figures as tools
    yield figure5(tools, smallest)
    if smallest:
        return
    cases = []
    if os.path.exists(tools.CASES):
        with open(tools.CASES) as f:
            cases = [c for c in json.load(f) if c["kind"] in ("step-figure", "step-traffic")]
    counts = counts_of(cases)
    yield figures67(tools, counts)
    yield figures89(tools, counts)
    yield figure11(tools, cases)


# ---- pictures ----

OURS, PAPER = "#3366aa", "#999999"


def svg(figure):
    points = [p for p in figure["points"] if p["what"] == "cycles"]
    draw = scatter if any("held" in p for p in points) else lines if any("x" in p for p in points) else bars
    width, body = draw(points, [p for p in figure["points"] if p["what"] != "cycles"])
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="300" font-family="sans-serif" font-size="10">'
            f'<text x="10" y="16" font-size="13">{figure["figure"]}, {figure["title"]}: ours (blue), published (grey)</text>{body}</svg>\n')


def bars(points, _):
    top = max(max(p["ours"], p["paper"]) for p in points)
    out = ""
    for i, p in enumerate(points):
        for k, (value, colour) in enumerate(((p["ours"], OURS), (p["paper"], PAPER))):
            high = 180 * value / top
            out += f'<rect x="{20 + 40 * i + 16 * k}" y="{220 - high:.1f}" width="14" height="{high:.1f}" fill="{colour}"/>'
        out += f'<text transform="translate({30 + 40 * i},230) rotate(40)">{p["point"]}</text>'
    return 40 * len(points) + 80, out + f'<text x="10" y="34">cycles, highest {top}</text>'


def place(value, low, high, begin, end):
    """On a logarithmic axis."""
    return begin + (end - begin) * (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))


def axes(x_low, x_high, x_name, y_low, y_high, y_name):
    return (f'<path d="M60 40V240H560" fill="none" stroke="black"/><text x="60" y="256">{x_low}</text><text x="520" y="256">{x_high}</text>'
            f'<text x="250" y="270">{x_name}, logarithmic</text><text x="4" y="240">{y_low}</text><text x="4" y="46">{y_high}</text><text x="66" y="36">{y_name}, logarithmic</text>')


def scatter(points, memory):
    """Cycles against memory, as the paper has it."""
    marks = [(p["point"], p["held"], p["ours"], OURS) for p in points] + [(p["point"], m["paper"], p["paper"], PAPER) for p, m in zip(points, memory)]
    xs, ys = [m[1] for m in marks], [m[2] for m in marks]
    out = axes(min(xs), max(xs), "bytes on the chip", min(ys), max(ys), "cycles")
    for name, x, y, colour in marks:
        at = place(x, min(xs), max(xs), 60, 540), place(y, min(ys), max(ys), 240, 50)
        out += f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{5 if colour == PAPER else 3}" fill="{"none" if colour == PAPER else colour}" stroke="{colour}"/>'
        out += f'<text x="{at[0] + 7:.1f}" y="{at[1] + 3:.1f}">{name}</text>' if colour == OURS else ""
    return 760, out


def lines(points, _):
    xs, ys = [p["x"] for p in points], [v for p in points for v in (p["ours"], p["paper"])]
    out = axes(min(xs), max(xs), "regions", min(ys), max(ys), "cycles")
    for series in sorted({p["series"] for p in points}):
        for key, colour in (("ours", OURS), ("paper", PAPER)):
            path = " ".join(f'{place(p["x"], min(xs), max(xs), 60, 540):.1f},{place(p[key], min(ys), max(ys), 240, 50):.1f}' for p in points if p["series"] == series)
            out += f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{1.5 if colour == OURS else 3}" {"" if series == "static" else "stroke-dasharray=" + chr(34) + "5 3" + chr(34)}/>'
    return 620, out + '<text x="380" y="36">full: static tiles, dashed: dynamic</text>'


# ---- text ----

def text(figure):
    out = [f"{figure['figure']}, {figure['title']}", f"  {'':<40}{'ours':>14}{'published':>14}"]
    out += [f"  {p['point'] + ('' if p['what'] == 'cycles' else ', ' + p['what']):<40}{p['ours']:>14}{p['paper']:>14}{p['percent']:>+9.2f} %" for p in figure["points"]]
    for c in figure["claims"]:
        out.append(f"  {c['ratio']}: {c['ours']:.3f} ours, {c['from_published_points']:.3f} by the published points, the paper says {c['paper_says']}" + (f" ({c['note']})" if c["note"] else ""))
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description="stream programs against the STeP paper")
    parser.add_argument("programs", nargs="?", default=os.path.join(HERE, "../build/release/bin"), metavar="BIN_DIR")
    parser.add_argument("--svg", metavar="DIR", help="write a picture of each figure")
    parser.add_argument("--json", metavar="FILE", help="write all points and ratios")
    options = parser.parse_args()
    made = []
    for figure in figures(options.programs):
        if not figure["points"]:
            continue
        made.append(figure)
        print(text(figure), flush=True)
        if options.svg:
            os.makedirs(options.svg, exist_ok=True)
            with open(os.path.join(options.svg, figure["figure"].lower().replace(". ", "").replace(" and ", "-") + ".svg"), "w") as f:
                f.write(svg(figure))
    if options.json:
        with open(options.json, "w") as f:
            json.dump(made, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
