#!/usr/bin/env python3
"""--emit=memory-json of every case and example, with the source's places and with visac's, against docs/memory.schema.json; and against what the numbers
must say of each other."""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402


def wrong(told):
    """What the schema cannot say."""
    for kernel in told["kernels"]:
        for room in ("hbm", "dm", "trf"):
            r = kernel[room]
            if r["memories"] and r["peak"] > r["limit"] or r["peak"] != max((m["end"] for m in r["memories"]), default=0):
                yield f"{kernel['name']}: {room} ends at {r['peak']}"
            for m in r["memories"]:
                if not (m["begin"] < m["end"] and m["work"][0] <= m["work"][1] <= kernel["works"]):
                    yield f"{kernel['name']}: {m}"


def main():
    try:
        import jsonschema
    except ImportError:
        sys.exit("the Python module jsonschema is missing: install python3-jsonschema")
    with open(os.path.join(visa_tools.SOURCE, "docs", "memory.schema.json")) as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator, failures, texts = jsonschema.Draft202012Validator(schema), [], 0
    paths = glob.glob(os.path.join(visa_tools.SOURCE, "examples", "*.vm")) + glob.glob(os.path.join(visa_tools.SOURCE, "test", "cases", "*.vm"))
    for path in sorted(paths)[::visa_tools.every(3)]:
        for place in ("source", "auto"):
            done = visa_tools.run(["visac", path, f"--place={place}", "--emit=memory-json"])
            if done.crashed:
                failures.append(f"{path}: {done.text()[:300]}")
            if done.status:
                continue
            told, texts = json.loads(done.out), texts + 1
            failures += [f"{path}: {e.json_path}: {e.message}" for e in validator.iter_errors(told)] + [f"{path}: {w}" for w in wrong(told)]
    refused = [dict(format=1, target="rngd"), dict(format=1, target="rngd", kernels=[dict(name="k")])]
    failures += [f"the schema takes {told}" for told in refused if not list(validator.iter_errors(told))]
    print("\n".join(failures[:20]))
    print(f"{texts} maps, {len(failures)} faults")
    return 1 if failures or texts < 50 // visa_tools.SLOWER else 0


if __name__ == "__main__":
    sys.exit(main())
