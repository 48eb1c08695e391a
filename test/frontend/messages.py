#!/usr/bin/env python3
"""What every message must hold, over all case files: the order of the text, nothing twice, the same in each format, colours only
where they are wanted, and one verdict whatever is asked of the compiler.

All files are drawn with VISA_LONG=1, else every fourth, under sanitizers fewer, and those of ALWAYS, which have what few files have: they are what
notices a wrong end of a range of several lines. (Planted in turn: diagnostics unsorted, that end, colours by `--color=auto`; the quarter sees each.)"""
import glob
import json
import os
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

ALWAYS = ["range-lines.vm"]
CASES = os.path.join(visa_tools.SOURCE, "test", "cases")

# The part of the SARIF 2.1.0 schema that this log uses, with what the standard requires of it.
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}, "additionalProperties": False}
REGION = {"type": "object", "required": ["startLine", "startColumn", "endLine", "endColumn", "byteOffset", "byteLength"], "additionalProperties": False,
          "properties": {**{key: {"type": "integer", "minimum": 1} for key in ("startLine", "startColumn", "endLine", "endColumn")},
                         **{key: {"type": "integer", "minimum": 0} for key in ("byteOffset", "byteLength")}}}
PHYSICAL = {"type": "object", "required": ["artifactLocation", "region"], "additionalProperties": False,
            "properties": {"region": REGION, "artifactLocation": {"type": "object", "required": ["uri"], "additionalProperties": False,
                                                                  "properties": {"uri": {"type": "string", "pattern": "^[A-Za-z0-9._~/%-]+$"}}}}}
LOCATION = {"type": "object", "required": ["physicalLocation"], "additionalProperties": False, "properties": {"physicalLocation": PHYSICAL, "message": TEXT}}
LEVEL = {"enum": ["error", "warning", "note", "none"]}
RULE = {"type": "object", "required": ["id"], "additionalProperties": False,
        "properties": {"id": {"type": "string"}, "shortDescription": TEXT, "fullDescription": TEXT,
                       "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}, "additionalProperties": False}}}
REPLACEMENT = {"type": "object", "required": ["deletedRegion"], "additionalProperties": False, "properties": {"deletedRegion": REGION, "insertedContent": TEXT}}
CHANGE = {"type": "object", "required": ["artifactLocation", "replacements"], "additionalProperties": False,
          "properties": {"artifactLocation": PHYSICAL["properties"]["artifactLocation"], "replacements": {"type": "array", "minItems": 1, "items": REPLACEMENT}}}
FIX = {"type": "object", "required": ["artifactChanges"], "additionalProperties": False,
       "properties": {"description": TEXT, "artifactChanges": {"type": "array", "minItems": 1, "uniqueItems": True, "items": CHANGE}}}
RESULT = {"type": "object", "required": ["message"], "additionalProperties": False,
          "properties": {"ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": 0}, "level": LEVEL, "message": TEXT,
                         "locations": {"type": "array", "items": LOCATION}, "relatedLocations": {"type": "array", "items": LOCATION, "uniqueItems": True},
                         "fixes": {"type": "array", "minItems": 1, "uniqueItems": True, "items": FIX}}}
DRIVER = {"type": "object", "required": ["name"], "additionalProperties": False,
          "properties": {"name": {"const": "visac"}, "version": {"type": "string"}, "rules": {"type": "array", "items": RULE, "uniqueItems": True}}}
LOG = {"type": "object", "required": ["version", "runs"], "additionalProperties": False,
       "properties": {"$schema": {"type": "string", "format": "uri"}, "version": {"const": "2.1.0"},
                      "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
                          "type": "object", "required": ["tool", "results"], "additionalProperties": False,
                          "properties": {"tool": {"type": "object", "required": ["driver"], "additionalProperties": False, "properties": {"driver": DRIVER}},
                                         "columnKind": {"const": "unicodeCodePoints"}, "results": {"type": "array", "items": RESULT}}}}}}

faults = []


def expect(right, where, what):
    if not right:
        faults.append(f"{where}: {what}")


def visac(name, *options):
    result = visa_tools.run(["visac", name, *options], cwd=CASES)
    nothing = result.status == 3 and b"[E-CHECK-NOTHING]: there is no kernel to check" in result.err
    expect(not result.crashed and (result.status in (0, 1) or nothing), name, f"{' '.join(options)}: status {result.status}\n{result.text()[-500:]}")
    return result


# Runs of gigabytes, which this test would start in parallel with others.
LARGE = {"report-bounds.vm"}


def check_order(name, messages):
    places = [(m["file"] or "", m["range"]["begin"]["offset"]) for m in messages if m["range"]]
    files = list(dict.fromkeys(file for file, _ in places))
    expect(places == sorted(places, key=lambda p: (files.index(p[0]), p[1])), name, "messages are not in the order of the text")
    said = [(m["id"], m["file"], json.dumps(m["range"]), m["message"]) for m in messages]
    expect(len(said) == len(set(said)), name, "a message is there twice")


def check_sarif(name, messages, text, validator):
    log = json.loads(text)
    for error in validator.iter_errors(log):
        expect(False, name, f"SARIF: {'/'.join(map(str, error.absolute_path))}: {error.message}")
        return
    driver, results = log["runs"][0]["tool"]["driver"], log["runs"][0]["results"]
    expect(len(results) == len(messages), name, "SARIF has another number of results than JSON")
    for r, m in zip(results, messages):
        region = r["locations"][0]["physicalLocation"]["region"] if r["locations"] else None
        expect(driver["rules"][r["ruleIndex"]]["id"] == r["ruleId"] == m["id"], name, "SARIF: ruleIndex and ruleId disagree")
        expect(r["level"] == m["severity"] and r["message"]["text"].startswith(m["message"]), name, "SARIF says something else than JSON")
        if region and m["range"]:
            begin, end = m["range"]["begin"], m["range"]["end"]
            expect([region["startLine"], region["startColumn"], region["endLine"], region["endColumn"], region["byteOffset"]]
                   == [begin["line"], begin["column"], end["line"], end["column"], begin["offset"]], name, "SARIF has another region than JSON")


def check_colour(name):
    plain, auto, asked, colour = (visac(name, "--emit=ir", *option).err for option in (["--color=never"], [], ["--color=auto"], ["--color=always"]))
    expect(plain == auto == asked, name, "colours on something that is no terminal")
    expect(b"\x1b" not in plain and (b"\x1b" in colour or not plain), name, "--color=always or never is not obeyed")


def check_verdict(name, refused, run):
    """Type check, tables, binary and, with `run`, the simulation accept the same texts."""
    for emit in ("ir", "tables", "json", "bin"):
        done = visac(name, f"--emit={emit}", "-o", os.devnull, *(["--print-after-all"] if emit == "ir" else []))
        if b"[E-STEP-OPTION]" in done.err and not refused:  # a stream program, which has no such output
            continue
        expect((done.status == 1) == refused, name, f"--emit={emit} has another verdict than the others")
    if not run:
        return
    check = visac(name, "--check")
    no_room = b"[E-RUN-LIMIT]" in check.err  # of this computer, not of the kernel
    expect(no_room or (check.status == 1) == refused, name, "the simulation has another verdict than the compiler")


def check_file(name, validator):
    messages = json.loads(visac(name, "--emit=ir", "--diagnostics-format=json", "-Wall").err)
    check_order(name, messages)
    check_sarif(name, messages, visac(name, "--emit=ir", "--diagnostics-format=sarif", "-Wall").err, validator)
    often = visa_tools.LONG or zlib.crc32(name.encode()) % 4 == 0 # the case files run their kernels themselves
    if messages and often:
        check_colour(name)
    refused = any(m["severity"] == "error" for m in messages)
    check_verdict(name, refused, refused or (often and name not in LARGE))


def main():
    try:
        import jsonschema
    except ImportError:
        sys.exit("the Python module jsonschema is missing: install python3-jsonschema")
    validator = jsonschema.Draft202012Validator(LOG)
    names = [os.path.basename(path) for path in sorted(glob.glob(os.path.join(CASES, "*.vm")))]
    drawn = names[::visa_tools.every(4)]
    drawn += [name for name in ALWAYS if name not in drawn]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: check_file(name, validator), drawn))
    for option in ("-Wno-such", "--color=sometimes", "--diagnostics-format=xml"):
        expect(visa_tools.run(["visac", option, os.devnull]).status == 2, option, "is not refused")
    print("\n".join(faults + [f"{len(drawn)} of {len(names)} files, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
