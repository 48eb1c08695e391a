"""Points of a design space that --explore judges in a second, from text to picture."""
from measure import spread
from report import table

TITLE = "points of a design space per second"


def run(bench, section):
    command = [bench.program("bench_explore"), *bench.count([], [], ["first"])]
    points, seconds = {}, {}
    for _ in range(bench.count(5, 1)):
        for line in bench.lines_of(command):
            points[line["space"]] = line["points"]
            seconds.setdefault(line["space"], []).append(line["seconds"])
    rows = [[name, points[name], spread([1e3 * s for s in taken]), spread([points[name] / s / 1e6 for s in taken])] for name, taken in seconds.items()]
    section["tables"].append(table("design spaces", ["space", "points", "ms", "1e6 points / s"], rows))
