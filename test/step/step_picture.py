"""Pictures of stream programs: boxes stand apart, every edge of the graph is a line from box to box, and no line passes another box. Usage: step_picture.py
[SEED [COUNT]]: the examples, and so many random programs."""
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import step_matrix  # noqa: E402
import step_random  # noqa: E402
import visa_tools  # noqa: E402

BOX = re.compile(r'<g><rect class="[eom]" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)".*?font-size="11">([^<]*)<', re.S)
PATH = re.compile(r'<path( class="b")? d="M([^"]*)"><title>(\S+)\.\d+ to (\S+)\.\d+: ')


def points(d):
    """Points along `x yC..H..`, M left away."""
    parts = re.findall(r"[CH]|-?\d+", d)
    x, y = float(parts[0]), float(parts[1])
    at = 2
    yield x, y
    while at < len(parts):
        if parts[at] == "H":
            end = float(parts[at + 1])
            for k in range(1, 17):
                yield x + (end - x) * k / 16, y
            x, at = end, at + 2
        else:
            a, b, c, d, e, f = map(float, parts[at + 1:at + 7])
            for k in range(1, 17):
                t = k / 16
                u = 1 - t
                yield (u ** 3 * x + 3 * u * u * t * a + 3 * u * t * t * c + t ** 3 * e, u ** 3 * y + 3 * u * u * t * b + 3 * u * t * t * d + t ** 3 * f)
            x, y, at = e, f, at + 7


def faults(source, *options):
    made = [subprocess.run([f"{step_random.BIN}/visac", source, f"--emit={what}", *options], capture_output=True, text=True) for what in ("svg", "dot")]
    assert all(m.returncode == 0 for m in made), made[0].stderr
    svg, dot = (m.stdout for m in made)
    boxes = [tuple(map(int, b[:4])) for b in BOX.findall(svg)]
    lines = PATH.findall(svg)
    if len(boxes) != dot.count(" [label=") - dot.count("->") or len(lines) != dot.count("->"):
        return f"{len(boxes)} boxes and {len(lines)} lines"
    for i, (x, y, w, h) in enumerate(boxes):
        for p, q, v, u in boxes[:i]:
            if x < p + v and p < x + w and y < q + u and q < y + h:
                return "two boxes lie on each other"
    for back, d, a, b in lines:
        for px, py in points(d) if not back else ():
            for x, y, w, h in boxes:
                if x + 1 < px < x + w - 1 and y < py < y + h:
                    return f"the line from {a} to {b} passes a box at {x}, {y}"
    return None


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else visa_tools.few(40)
    found = {name: faults(os.path.join(step_matrix.SOURCE, f"examples/step/{name}.vm"), *sizes, f"--kernel={program}")
             for name, (program, sizes, _) in step_matrix.EXAMPLES.items()}
    with tempfile.TemporaryDirectory() as d:
        for i in range(seed, seed + count):
            with open(f"{d}/p.vm", "w") as f:
                f.write(step_random.program(random.Random(i))[0])
            found[f"seed {i}"] = faults(f"{d}/p.vm")
    for name, what in found.items():
        if what:
            print(f"{name}: {what}")
    bad = sum(what is not None for what in found.values())
    print(f"{len(found) - bad} pictures have every line outside of the boxes, {bad} have not")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
