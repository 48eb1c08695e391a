"""bench/figures.py (./visa figures): Figs. 5 and 11 within their bounds from what is in the checkout alone, pictures that are XML, points that say where their data is from, wrong words refused."""
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

SOURCE = os.environ.get("VISA_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BIN = os.environ.get("VISA_BIN", os.path.join(SOURCE, "build/dev/bin"))


def draw(*words):
    return subprocess.run([sys.executable, f"{SOURCE}/bench/figures.py", BIN, *words], capture_output=True, text=True)


def main():
    bad = []
    with tempfile.TemporaryDirectory() as d:
        done = draw("fig5", "fig10", "fig11", "--quick", "--counts", f"{d}/none.json", "--out", f"{d}/out")
        if done.returncode != 0:
            print(done.stderr)
            return 1
        with open(f"{d}/out/figures.json") as f:
            panels = json.load(f)
        names = {f"{p['figure']}-{p['panel']}" for p in panels}
        if not {"fig5-cycles", "fig5-hardware", "fig5-traffic", "fig10-graph"} <= names or sum(n.startswith("fig11-") for n in names) != 18:
            bad.append(f"panels: {sorted(names)}")
        for p in panels:
            xml.dom.minidom.parse(f"{d}/out/{p['figure']}-{p['panel']}.svg")
            for q in p["points"]:
                if (p["figure"] == "fig11") != (q["data"] == "lengths"):
                    bad.append(f"{p['figure']} {q}: where its data is from")
                if p["figure"] == "fig11" and (q["percent"] is None or abs(q["percent"]) > 0.05):
                    bad.append(f"{p['panel']} {q}")
                if p["figure"] == "fig5" and (q["percent"] is None or abs(q["percent"]) > {"cycles": 0.03, "traffic": 0, "hardware": 9}[p["panel"]]):
                    bad.append(f"{p['panel']} {q}")
        if "not drawn: " not in done.stdout or done.stdout.count("+0.00 %") < 15:
            bad.append(f"text: {done.stdout[-600:]}")
        with open(os.path.join(SOURCE, "examples/step/lengths.json")) as f:
            tiles = [(tokens + 32) // 32 for tokens in json.load(f)["b16-1454-985"]]
        with open(f"{d}/counts.json", "w") as f:  # of one batch and placement alone: what is published stands there all the same
            json.dump([{"kind": "step-figure", "id": "fig11-b16-1454-985-dyn", "input": {"kv_tiles": tiles}, "expect": {"cycles": 14752}}], f)
        done = draw("--quick", "--counts", f"{d}/counts.json", "--out", f"{d}/counted", "fig11")
        with open(f"{d}/counted/figures.json") as f:
            points = [q for p in json.load(f) if p["panel"] == "B16-high" for q in p["points"]] if done.returncode == 0 else []
        if len(points) != 3 or any(q["percent"] is None or abs(q["percent"]) > 0.05 for q in points):
            bad.append(f"with counts of one placement: {points} {done.stderr}")
        for words in (["fig12"], ["fig5", "--artifact", d]):
            refused = draw(*words, "--out", f"{d}/no")
            if refused.returncode != 2 or os.path.exists(f"{d}/no"):
                bad.append(f"{words}: status {refused.returncode}")
    print("\n".join(bad) or f"{len(panels)} panels are drawn, Fig. 5 as published")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
