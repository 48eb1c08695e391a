"""Stream programs against the STeP paper: cycles of its figures and the ratios that it claims (bench/step.py draws them too)."""
import step
from report import table

TITLE = "stream programs against the published figures"


def run(bench, section):
    claims = []
    for figure in step.figures(bench.programs, smallest=bench.mode != "full"):
        if not figure["points"]:
            bench.skip(f"{figure['figure']}: its counts are in shared/conformance, which is not next to the checkout")
            continue
        rows = [[p["point"], p["what"], p["ours"], p["paper"], f"{p['percent']:+.2f}"] for p in figure["points"]]
        section["tables"].append(table(f"{figure['figure']}, {figure['title']}", ["point", "what", "ours", "published", "%"], rows))
        claims += [[c["ratio"], f"{c['ours']:.3f}", f"{c['from_published_points']:.3f}", c["paper_says"], c["note"]] for c in figure["claims"]]
    if claims:
        section["tables"].append(table("ratios", ["ratio", "ours", "by the published points", "the paper says", "note"], claims))
