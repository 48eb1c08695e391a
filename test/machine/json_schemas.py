#!/usr/bin/env python3
"""What programs print for programs, against the schemas in docs/: --report=json of kernels, visa-run --list=json of kernels and stream programs,
visa-objdump --json; of cases and examples. Each schema also refuses what lacks a member or has one of another type."""
import copy
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

KERNELS = 3  # of a file


def schema_of(name):
    import jsonschema
    with open(os.path.join(visa_tools.SOURCE, "docs", f"{name}.schema.json")) as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def printed(path, binary):
    """(schema, what was printed) of one source."""
    if visa_tools.run(["visac", path, "-o", binary]).status:
        return
    dump = json.loads(visa_tools.run(["visa-objdump", "--json", binary]).out)
    yield "dump", dump
    for kernel in dump["kernels"][:KERNELS]:
        name = f"--kernel={kernel['name']}"
        report = visa_tools.run(["visac", path, name, "--report=json"])
        if report.status == 0:
            yield "report", json.loads(report.out)
    for named in dump["kernels"][:KERNELS] + dump["programs"][:KERNELS]:
        yield "list", json.loads(visa_tools.run(["visa-run", binary, f"--kernel={named['name']}", "--list=json"]).out)


def spoilt(told):
    """Without each of its members, and with each of another type."""
    for key in told:
        less, other = copy.deepcopy(told), copy.deepcopy(told)
        del less[key]
        other[key] = {"not": "this"}
        yield less
        yield other
    yield {**told, "unknown": 1}


def main():
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        sys.exit("the Python module jsonschema is missing: install python3-jsonschema")
    validators = {name: schema_of(name) for name in ("report", "list", "dump")}
    failures, counts, last = [], dict.fromkeys(validators, 0), {}
    paths = sorted(path for where in ("examples", "test/cases") for path in glob.glob(os.path.join(visa_tools.SOURCE, where, "**", "*.vm"), recursive=True))
    with tempfile.TemporaryDirectory() as folder:
        for path in paths[::visa_tools.every(3)]:
            for name, told in printed(path, os.path.join(folder, "x.bin")):
                counts[name], last[name] = counts[name] + 1, told
                failures += [f"{path}: {name}: {e.json_path}: {e.message[:200]}" for e in validators[name].iter_errors(told)]
    failures += [f"the schema {name} takes {str(told)[:200]}" for name in last for told in spoilt(last[name]) if validators[name].is_valid(told)]
    print("\n".join(failures[:20]))
    print(counts, f"{len(failures)} faults")
    return 1 if failures or min(counts.values()) < 50 // visa_tools.SLOWER else 0


if __name__ == "__main__":
    sys.exit(main())
