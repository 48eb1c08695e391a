#!/usr/bin/env python3
"""`visac --fix`: what diagnostics say to write, written.

A kernel of the examples is made wrong in one place, as people do who change a size or a type, or mistype a word: in some the changes have to lead to a kernel
that compiles and agrees with its mathematics; in all of them, the second time changes nothing, and JSON and SARIF offer what was done. A source that is right
stays as it is."""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

EXAMPLES = os.path.join(visa_tools.SOURCE, "examples")
# File, what is changed in it (all of it), how many fixes it takes; None: a person has to choose somewhere.
MISTAKES = [
    ("matmul.vm", r"K = 32", "K = 64", 1),
    ("matmul.vm", r"K = 32", "K = 48", 1),
    ("matmul.vm", r"K = 32", "K = 33", 8),
    ("matmul.vm", r"K = 32", "K = 4096", 1),
    ("matmul.vm", r"N = 8", "N = 7", 5),
    ("matmul.vm", r"N = 8", "N = 1", 3),
    ("matmul.vm", r"N = 8", "N = 16", None),
    ("matmul.vm", r"bf16", "i8", 3),
    ("matmul.vm", r"bf16", "f32", None),
    ("matmul.vm", r"\.fetch::", ".fecth::", 2),
    ("matmul.vm", r"a\.view\(\)", "a.view_mut()", 1),
    ("matmul.vm", r"&weights", "weights", 1),
    ("matmul.vm", r"&mut device\.tdma", "&mut device.sub", 3),
    ("matmul.vm", r"1 # 256", "1 # 128", 4),
    ("matmul.vm", r"m!\[1 # 256\]", "m![1 # 512]", 4),
    ("matmul.vm", r"m!\[N # 16\]", "m![N # 8]", 1),
    ("matmul.vm", r"K % 16\]>\(\)\n        \.to_trf", "K % 8]>()\n        .to_trf", 1),
    ("matmul.vm", r"m!\[M, K / 16\]", "m![K / 16, M]", 1),
]


def fix(path, folder):
    out = os.path.join(folder, "fixed.vm")
    done = visa_tools.run(["visac", "--fix", path, "-o", out])
    with open(out) as file:
        return done.status, done.err.decode(), file.read()


def applied(text, edits):
    for e in sorted(edits, key=lambda e: -e["range"]["begin"]["offset"]):
        text = text[:e["range"]["begin"]["offset"]] + e["text"] + text[e["range"]["end"]["offset"]:]
    return text


def judge(folder, name, pattern, new, wanted):
    with open(os.path.join(EXAMPLES, name)) as file:
        text, count = re.subn(pattern, new, file.read())
    path = os.path.join(folder, "wrong.vm")
    with open(path, "w") as file:
        file.write(text)
    if not count:
        return "nothing was changed"
    offered = [d["edits"] for d in json.loads(visa_tools.run(["visac", path, "--diagnostics-format=json", "-o", os.devnull]).err)]
    sarif = json.loads(visa_tools.run(["visac", path, "--diagnostics-format=sarif", "-o", os.devnull]).err)["runs"][0]["results"]
    of_sarif = [[{"range": {side: {"offset": r["deletedRegion"]["byteOffset"] + (side == "end") * r["deletedRegion"]["byteLength"]} for side in ("begin", "end")},
                  "text": r["insertedContent"]["text"]} for r in f["fixes"][0]["artifactChanges"][0]["replacements"]] if "fixes" in f else [] for f in sarif]
    if [applied(text, e) for e in offered] != [applied(text, e) for e in of_sarif]:
        return "SARIF offers something else than JSON"
    status, said, fixed = fix(path, folder)
    if wanted is None:
        if status != 1 or "error[" not in said:
            return f"no choice was left: {status} {said}"
    elif status != 0 or said != f"visac: {path}: {wanted} fix{'' if wanted == 1 else 'es'} made\n":
        return f"{status} {said}"
    with open(path, "w") as file:
        file.write(fixed)
    if wanted is not None:
        check = visa_tools.run(["visac", path, "--check"])
        if check.status != 0 or b"values agree" not in check.out + check.err:
            return f"it does not agree: {check.err}"
    if fix(path, folder)[2] != fixed:
        return "the second time it changes something"
    return None


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for mistake in MISTAKES:
            fault = judge(folder, *mistake)
            failed += fault is not None
            if fault:
                print(f"FAIL {mistake}: {fault}")
        for name in sorted(os.listdir(EXAMPLES)):
            if name.endswith(".vm"):
                path = os.path.join(EXAMPLES, name)
                status, said, fixed = fix(path, folder)
                with open(path) as file:
                    if status != 0 or "0 fixes" not in said or fixed != file.read():
                        failed += 1
                        print(f"FAIL {name}: {status} {said}")
    print(f"{len(MISTAKES)} mistakes, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
