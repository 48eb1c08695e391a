#!/usr/bin/env python3
"""cII, eII and L of stream operators (docs/dataflow.md) of examples/step/swiglu.vm: those worked by hand, and none longer than was measured, since an
operator alone on the machine is not slower than one that shares it. Usage: step_intervals.py"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools


def operators(folder, name, *options):
    binary = os.path.join(folder, "p.bin")
    done = visa_tools.run(["visac", os.path.join(visa_tools.SOURCE, "examples", "step", name), "-o", binary, *options])
    assert done.status == 0, done.text()
    done = visa_tools.run(["visa-run", binary, "--report=json"])
    assert done.status == 0, done.text()
    return json.loads(done.out)["operators"]


def main():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        found = {o["name"]: o for o in operators(folder, "swiglu.vm")}
    # 256 bytes a cycle: 64 tiles of 16 x 256 f32, of 256 x 32 f32; 4 tiles of 16 x 256 that leave.
    # 4096 FLOPs a cycle: 64 products of 16 x 256 with 256 x 32; 64 gates of 16 x 32 with 8 FLOPs an element.
    for name, expect in {"linear_load": (64, 64, 4096), "w1s": (128, 128, 8192), "accum": (64, 64, 4096), "accum.2": (64, 1024, 4096), "gate": (1, 1, 64),
                         "linear_store": (64, 64, 256)}.items():
        got = tuple(found[name].get(k) for k in ("cII", "eII", "L"))
        if got != expect:
            faults.append(f"{name}: {got} and not {expect}")
    for name, o in found.items():
        if ("L" in o) != (o["flops"] > 0 or o["offchip_bytes"] > 0):
            faults.append(f"{name}: {o} has figures, or lacks them")
        if o.get("L", 0) > o.get("measured_cycles", 0):
            faults.append(f"{name}: {o['L']} cycles alone, {o['measured_cycles']} measured")
    print("\n".join(faults + [f"{len(found)} operators, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
