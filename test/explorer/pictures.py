#!/usr/bin/env python3
"""Every walk that --emit=json tells of has a picture under its index, and all of them together are in the page of --report=html."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

# A weight that is read from the VRF; one that is read from the TRF.
KERNELS = (("bias_relu.vm", ["-DM=2048", "-DN=16"]), ("matmul.vm", []))


def main():
    faults, drawn = [], 0
    for name, sizes in KERNELS:
        path = os.path.join(visa_tools.SOURCE, "examples", name)
        told = visa_tools.run(["visac", path, "--emit=json", *sizes])
        if told.status:
            sys.exit(told.text())
        ops = [op for op in json.loads(told.out)["kernels"][0]["ops"] if "sequencer" in op or "dma" in op or "align" in op]
        for op in ops:
            picture = visa_tools.run(["visac", path, f"--draw={op['index']}", *sizes])
            title = re.search(rf"operation {op['index']}: (\w+) (reads|writes) the (\w+)", picture.out.decode())
            if picture.status or not title or title[1] != op["op"]:
                faults.append(f"{name} --draw={op['index']}, a {op['op']}: {picture.text()[:200]}")
            elif op.get("sequencer") and title[3].lower() != op["sequencer"]["memory"]:
                faults.append(f"{name} --draw={op['index']} walks {title[3]}, not {op['sequencer']['memory']}")
            drawn += 1
        page = visa_tools.run(["visac", path, "--report=html", "-o", "-", *sizes])
        if page.status or page.out.count(b'role="img"') < len(ops):
            faults.append(f"{name} --report=html: status {page.status}, {page.out.count(b'role=' + b'img')} pictures of {len(ops)}")
    print("\n".join(faults + [f"{drawn} pictures, {len(faults)} faults"]))
    sys.exit(bool(faults) or drawn < 10)


main()
