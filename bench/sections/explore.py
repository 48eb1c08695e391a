"""Points of a design space that `visac --explore` judges per second, from text to picture."""
from measure import spread
from report import table

TITLE = "points of a design space per second"


def run(bench, section):
    spaces, command = {}, [bench.program("bench_explore"), *(["one"] if bench.mode == "smoke" else [])]
    for _ in range(bench.count(5, 2)):
        for line in bench.lines_of(command):
            seconds, _ = spaces.setdefault(line["space"], ([], line["points"]))
            seconds.append(line["seconds"])
    rows = [[name, points, spread([1e3 * s for s in seconds]), spread([points / s / 1e6 for s in seconds])] for name, (seconds, points) in spaces.items()]
    section["tables"].append(table("by space", ["space", "points", "ms", "million points a second"], rows))
