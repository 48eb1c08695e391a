"""Stream programs: requests off the chip and tokens that the simulator does in a second, files and start included."""
import json
import random
import sys

from measure import ROOT, of, spread
from report import table

sys.path.insert(0, str(ROOT / "examples/step"))
import routing  # noqa: E402

TITLE = "the simulator of stream programs: requests off the chip and tokens per second"


def swiglu(tile_b, tile_f):
    return "swiglu.vm", {"B": 64, "D": 256, "F": 512, "TM": tile_b, "TN": tile_f, "CHANNELS": 8, "GROUP": 4, "ONCHIP": 256, "COMPUTE": 4096, "DEPTH": 1}, {}, []


def moe(rows, experts, top, d, f, tile):
    streams = routing.moe_tokens(routing.draw(rows, experts, top, 0.5, 1))
    return "moe_mixtral.vm", {"B": rows, "E": experts, "K": top, "D": d, "F": f, "FT": 64, "T": tile, "DEPTH": 2, "COMPUTE": 4096}, streams, []


def attention(requests, regions):
    rng = random.Random(1)
    tiles = [max(1, min(256, round(rng.expovariate(1 / 64)))) for _ in range(requests)]
    defines = {"B": requests, "R": regions, "N": 32, "H": 128, "Q": 4, "MAX": max(tiles), "META": 16, "BLOCK": 1, "SAFE": 0}
    return "attention.vm", defines, routing.attention_tokens(tiles, regions, "dynamic"), ["--pass=dynamic-parallel:done=keys_read"]


def programs(bench):
    yield "swiglu, tiles of 16 x 16", swiglu(16, 16)
    yield "attention, requests on regions placed as they end", attention(*bench.count((64, 4), (64, 4), (8, 2)))
    if bench.mode != "smoke":
        yield "mixture of 8 experts, 64 rows", moe(64, 8, 2, *bench.count((4096, 14336), (1024, 3584)), 16)


def prepare(bench, source, defines, streams, passes):
    """The command that simulates a program."""
    binary, folder = bench.file("step.bin"), bench.file("tokens")
    bench.run([bench.program("visac"), str(ROOT / "examples/step" / source), "-o", binary, *passes, *(f"-D{name}={value}" for name, value in defines.items())])
    routing.write(folder, streams)
    return [bench.program("visa-run"), "--timing-only", "--report=json", binary, *(part for name in streams for part in ("--input", f"{name}={folder}/{name}.json"))]


def run(bench, section):
    rows = []
    for name, program in programs(bench):
        command = prepare(bench, *program)
        report = json.loads(bench.run(command))
        tokens = sum(operator["values_out"] for operator in report["operators"])
        wall = of(bench.processes([("it", command)], bench.count(10, 3), warm_up=1)["it"], "wall")
        rows.append([name, report["cycles"], report["offchip_requests"], tokens, spread(wall), spread([report["offchip_requests"] / ms / 1e3 for ms in wall]), spread([tokens / ms / 1e3 for ms in wall])])
    section["tables"].append(table("stream programs", ["program", "cycles", "requests", "tokens", "wall ms", "1e6 requests / s", "1e6 tokens / s"], rows))
