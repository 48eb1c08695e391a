"""Less memory on the chip than operators want (--onchip-bytes): what a run moves because of it, against what visac derives from the sizes of the run,
and against a model here that knows the counts of a run without a limit alone. Usage: step_spill.py [SEED [COUNT]]"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from fractions import Fraction

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import step_matrix  # noqa: E402
import step_random  # noqa: E402
import visa_tools  # noqa: E402

BIN, EXAMPLES = step_random.BIN, os.path.join(step_matrix.SOURCE, "examples/step")
BYTES = {"f32": 4, "bf16": 2}
# Two rows of two sums, by hand: repeat holds a tile of 16 bytes, writes each of 2 values and reads each of 3 copies: (2 + 6) x 16 bytes; accum holds one, too,
# and reads and writes it for each of 6 values: 12 x 16. So accum keeps what there is.
BY_HAND = """#[stream(depth = 0)]
fn p(x: Stream<Tile<f32, 2, 2>, {[2]}>) { x.repeat(3).accum(1, add).map(silu) }
"""
HAND = {1: {"repeat": 128, "accum": -(-192 * 15 // 16)}, 16: {"repeat": 128, "accum": 0}, 20: {"repeat": 96, "accum": 0}, 31: {"repeat": 8, "accum": 0}, 32: {}}


def run(d, *options):
    feeds = [x for f in sorted(os.listdir(d)) if f.endswith(".json") and f != "sizes.json" for x in ("--input", f"{f[:-5]}={d}/{f}")]
    done = subprocess.run([f"{BIN}/visa-run", f"{d}/p.bin", "--timing-only", "--report=json", *feeds, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def derived(d, source, *options):
    done = subprocess.run([f"{BIN}/visac", source, "--emit=step-json", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[0]


def width(text):
    """Bytes of a value of that type, where the type says them."""
    if text.startswith("pairs"):
        return sum(width(t) for t in re.findall(r"\w+ tiles \d+ x \d+|\w+ tiles? of \d+ x \d+", text))
    found = re.match(r"(\w+) tiles (\d+) x (\d+)$", text)
    return BYTES[found[1]] * int(found[2]) * int(found[3]) if found else None


def modelled(plain, types, capacity, stacks):
    """Bytes moved for each operator: accesses from its counts and the types of its streams, the room shared out by exact fractions. `stacks` are those that put
    tiles side by side. None: some type does not say its size."""
    nodes = {o["name"]: o for o in plain["operators"]}
    into = {name: [e for e in plain["edges"] if e["to"] == name] for name in nodes}
    accesses, owner = {}, {}
    for name, o in nodes.items():
        owner[name] = name
        first = into[name][0] if into[name] else None
        given = width(types[first["from"]][first["output"]]) if first else 0
        made = width(types[name][0]) if types[name] else 0
        uses = {"bufferize": ("given",), "streamify": ("made",), "expand": ("given", "made"), "repeat": ("given", "made"), "accum": ("fold",), "scan": ("fold",)}.get(o["operator"], ())
        total = 0
        for use in uses:
            size, count = {"given": (given, first and first["values"]), "made": (made, o["values_out"]), "fold": (made, first and 2 * (o["values_out"] if name in stacks else first["values"]))}[use]
            if size is None:
                return None
            total += size * count
        accesses[name] = total
        at = name
        while o["operator"] == "streamify" and nodes[at]["operator"] != "bufferize":
            at = into[at][0]["from"]
        owner[name] = at
    wanted = {name: o["onchip_bytes"]["paper"] for name, o in nodes.items()}
    needs = {name: sum(accesses[k] for k in nodes if owner[k] == name) for name in nodes}
    left, kept = capacity, {}
    for name in sorted((n for n in nodes if wanted[n]), key=lambda n: -Fraction(needs[n], wanted[n])):
        kept[name] = min(left, wanted[name])
        left -= kept[name]
    spilled = {name: wanted[name] - kept.get(name, 0) for name in nodes}
    return {name: -(-accesses[name] * spilled[owner[name]] // wanted[owner[name]]) if wanted[owner[name]] else 0 for name in nodes}


def check(d, source, options, program):
    """What is wrong with the program's spilling at several capacities; the number of them."""
    done = subprocess.run([f"{BIN}/visac", source, "-o", f"{d}/p.bin", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plain = run(d, f"--sizes={d}/sizes.json", f"--kernel={program}")
    wanted = plain["onchip_bytes"]["paper"]
    if any(o["operator"] == "bufferize" and o["values_in"] == 0 for o in plain["operators"]): # the run saw no buffer with anything in it
        return "", 0
    known = derived(d, source, *options)
    types = {o["name"]: [s["type"] for s in o["outputs"]] for o in known["operators"]}
    with open(source) as f:
        stacks = set(re.findall(r"let (\w+) = [\w.]+\.(?:accum|scan)\(\d+, retile_", f.read()))
    moved, found, room = None, 0, sum(k["onchip_bytes"] for k in plain["kernels"])  # kernels keep theirs, and do not run with less
    for command in ([f"{BIN}/visac", source, *options, "--emit=ir"], [f"{BIN}/visa-run", f"{d}/p.bin", "--timing-only", f"--kernel={program}"]) if room else ():
        done = subprocess.run([*command, f"--onchip-bytes={room - 1}"], capture_output=True, text=True)
        if done.returncode != 1 or f"keep {room} bytes on the chip, and it holds {room - 1}" not in done.stderr:
            return f"{room - 1} bytes for kernels that keep {room}: {done.stderr}", 0
    for capacity in sorted({max(c, room) for c in (1, wanted // 3, 2 * wanted // 3, wanted - 1, wanted, wanted + 5)} - {0, -1}):
        report = run(d, f"--onchip-bytes={capacity}", f"--kernel={program}")
        ours = derived(d, source, *options, f"--onchip-bytes={capacity}", f"--sizes={d}/sizes.json")
        by_node = {o["name"]: o["spill_traffic_bytes"] for o in report["operators"]}
        if report["spilled_bytes"] != max(0, wanted - capacity):
            return f"{capacity} of {wanted} bytes: {report['spilled_bytes']} spilled", 0
        if ours["total"]["spilled_bytes"] != report["spilled_bytes"] or {o["name"]: o["spill_traffic_bytes"] for o in ours["operators"]} != by_node:
            return f"{capacity} of {wanted} bytes: {ours['total']['spill_traffic_bytes']} derived, {report['spill_traffic_bytes']} moved", 0
        if report["offchip_bytes"] != plain["offchip_bytes"] + report["spill_traffic_bytes"] or sum(by_node.values()) != report["spill_traffic_bytes"]:
            return f"{capacity} bytes: {report['offchip_bytes']} off the chip", 0
        if moved is not None and report["spill_traffic_bytes"] > moved:
            return f"{capacity} bytes: more is moved than with less room", 0
        moved = report["spill_traffic_bytes"]
        model = modelled(plain, types, capacity, stacks) if not any(o["operator"].endswith(("load", "store")) for o in plain["operators"]) else None
        if model is not None and model != by_node:
            return f"{capacity} of {wanted} bytes: modelled {model}, moved {by_node}", 0
        found += model is not None
    return ("with room for everything something is moved" if moved else ""), found


def by_hand():
    with tempfile.TemporaryDirectory() as d:
        with open(f"{d}/p.vm", "w") as f:
            f.write(BY_HAND)
        with open(f"{d}/x.json", "w") as f:
            json.dump([[[1, 2], [3, 4]]] * 2, f)
        assert subprocess.run([f"{BIN}/visac", f"{d}/p.vm", "-o", f"{d}/p.bin"]).returncode == 0
        plain = run(d)["cycles"]
        for capacity, wanted in HAND.items():
            report = run(d, f"--onchip-bytes={capacity}")
            got = {o["name"]: o["spill_traffic_bytes"] for o in report["operators"] if o["name"] in wanted}
            if got != wanted or (report["cycles"] > plain) != (report["spill_traffic_bytes"] > 0):
                return f"by hand, {capacity} bytes: {got}, {report['cycles']} cycles, not {wanted}"
    return ""


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else visa_tools.few(25)
    why, modelled_count, ran = by_hand(), 0, 0
    for name, (program, sizes, feeds) in step_matrix.EXAMPLES.items():
        with tempfile.TemporaryDirectory() as d:
            if feeds:
                subprocess.run([sys.executable, f"{EXAMPLES}/routing.py", *feeds.replace("OUT", d).split()], check=True, capture_output=True)
            if name == "linear":
                with open(f"{d}/x.json", "w") as f:
                    json.dump([[[1] * 32] * 32] * 3, f)
            said, _ = check(d, f"{EXAMPLES}/{name}.vm", [*sizes, f"--kernel={program}"], program)
            why = why or (said and f"{name}: {said}")
            ran += 1
    for i in range(seed, seed + count):
        source, w, _ = step_random.program(random.Random(i))
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/p.vm", "w") as f:
                f.write(source)
            for name, fed in w.feeds.items():
                with open(f"{d}/{name}.json", "w") as f:
                    json.dump([t["pick"] if isinstance(t, dict) else t for t in fed], f)
            said, found = check(d, f"{d}/p.vm", [], "p")
        why = why or (said and f"seed {i}: {said}\n{source}")
        modelled_count, ran = modelled_count + found, ran + 1
    print(why or f"{ran} programs spill what is derived, {modelled_count} times as a model of their counts says")
    return bool(why) or modelled_count == 0


if __name__ == "__main__":
    sys.exit(main())
