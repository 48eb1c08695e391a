#!/usr/bin/env python3
"""Runs test/cases/*.vm: each file carries its own commands and expectations in comments, as LLVM's tests do.

    // RUN: visac %s --emit=tables | FileCheck %s
    // RUN: not visac %s 2>&1 | FileCheck %s --check-prefix=ERR
    // RUN-EXIT: 3
    // RUN-LARGE: visac %s --check

%s is the file's name (commands run in its directory, so that messages are the same everywhere), %t a fresh directory,
%shared the reference material. `not` turns exit status 1 into success; RUN-EXIT gives the exact status of all RUN
lines of the file that have no `not`; RUN-LARGE is RUN, but for builds with sanitizers, in which it takes too long. FileCheck is LLVM's (package llvm-19-tools) and always compares whole lines and
exact white space. What `--emit=json` prints is validated against docs/tables.schema.json (package
python3-jsonschema). Usage: run_cases.py [-v] [-j N] [PART-OF-A-NAME ...]"""
import argparse
import functools
import glob
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import visa_tools

CASES = os.path.join(visa_tools.SOURCE, "test", "cases")
SCHEMA = os.path.join(visa_tools.SOURCE, "docs", "tables.schema.json")
LIMIT = 1800  # seconds of a command: a machine may be busy
DIRECTIVE = re.compile(r"//\s*(RUN|RUN-EXIT|RUN-LARGE):\s*(.*?)\s*$")

# Stands in front of visac: keeps what --emit=json printed, for the schema.
VISAC = """#!/bin/sh
case " $* " in
*" --emit=json "*) "{bin}/visac" "$@" >"$VISA_KEPT.$$"; status=$?; cat "$VISA_KEPT.$$"; exit $status ;;
esac
exec "{bin}/visac" "$@"
"""
# Nothing that a reader must see may stand between or after the expected lines.
FILE_CHECK_OPTIONS = ("--strict-whitespace --match-full-lines --implicit-check-not='error[' "
                      "--implicit-check-not='warning[' --implicit-check-not='help:' --implicit-check-not='note:'")
# 1 becomes 0; 0 is a failure, and so is anything else: a crash is no refusal.
NOT = """#!/bin/sh
"$@"
status=$?
[ $status -eq 1 ] && exit 0
echo "not: exit status $status instead of 1" >&2
exit 70
"""


def file_check():
    for name in ("FileCheck-19", "FileCheck", "/usr/lib/llvm-19/bin/FileCheck"):
        path = shutil.which(name)
        if path:
            return path
    sys.exit("FileCheck is missing: install llvm-19-tools")


def schema_validator():
    try:
        import jsonschema
    except ImportError:
        sys.exit("the Python module jsonschema is missing: install python3-jsonschema")
    with open(SCHEMA) as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(complete(schema))


def complete(schema):
    """The schema lets readers expect fields they do not know; here each field that visac prints must be in it."""
    if isinstance(schema, dict):
        for value in schema.values():
            complete(value)
        if schema.get("type") == "object" and "properties" in schema:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        for value in schema:
            complete(value)
    return schema


def write_program(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def directives(path):
    runs, status = [], 0
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = DIRECTIVE.match(line.strip())
            if found and found.group(1) == "RUN-LARGE" and visa_tools.SLOWER > 1:
                continue
            if found and found.group(1) != "RUN-EXIT":
                runs.append(found.group(2))
            elif found:
                status = int(found.group(2))
    return runs, status


@functools.lru_cache(None)
def tools_of_cases(check):
    """A directory of programs for the shell: visac with its recorder, `not`, and FileCheck with our options. Made before the first case
    begins: a program that a thread still writes while another one forks cannot be run."""
    tools = tempfile.TemporaryDirectory()
    write_program(os.path.join(tools.name, "visac"), VISAC.format(bin=visa_tools.bin_dir()))
    write_program(os.path.join(tools.name, "not"), NOT)
    write_program(os.path.join(tools.name, "FileCheck"), f'#!/bin/sh\nexec "{check}" {FILE_CHECK_OPTIONS} "$@"\n')
    return tools


def run_case(path, check, validator):
    """None, or what went wrong."""
    runs, status = directives(path)
    if not runs:
        return "no RUN line"
    with tempfile.TemporaryDirectory() as directory:
        env = visa_tools.environment(tools_of_cases(check).name + os.pathsep + visa_tools.bin_dir())
        env["VISA_KEPT"] = os.path.join(directory, "json")
        temporary = os.path.join(directory, "t")
        os.mkdir(temporary)
        for command in runs:
            command = command.replace("%shared", os.path.join("..", "..", "..", "shared"))
            command = command.replace("%s", os.path.basename(path)).replace("%t", temporary)
            shell = ["bash", "-o", "pipefail", "-c", command]
            try:
                done = visa_tools.without_tracer_crash(env, lambda env: subprocess.run(
                    shell, cwd=os.path.dirname(path), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    timeout=LIMIT, check=False))
            except subprocess.TimeoutExpired:
                return f"$ {command}\ntime limit of {LIMIT} s"
            wanted = 0 if re.search(r"(^|\| )not ", command) else status
            if done.returncode != wanted:
                return (f"$ {command}\n{done.stdout.decode('utf-8', 'replace')}"
                        f"exit status {done.returncode}, wanted {wanted}")
        for kept in glob.glob(os.path.join(directory, "json.*")):
            with open(kept) as file:
                text = file.read()
            if not text:
                continue
            errors = sorted(validator.iter_errors(json.loads(text)), key=lambda e: list(e.absolute_path))
            if errors:
                return "\n".join(f"schema: {'/'.join(map(str, e.absolute_path))}: {e.message}" for e in errors[:5])
    return None


def main():
    parser = argparse.ArgumentParser(description="runs the case files")
    parser.add_argument("names", nargs="*", help="parts of names; default: all")
    parser.add_argument("-v", action="store_true", help="name each case that passed")
    parser.add_argument("-j", type=int, default=2, help="cases at the same time (default 2)")
    arguments = parser.parse_args()
    check, validator = file_check(), schema_validator()
    cases = [c for c in sorted(glob.glob(os.path.join(CASES, "*.vm")))
             if not arguments.names or any(n in os.path.basename(c) for n in arguments.names)]
    if not cases:
        sys.exit("no case has such a name")
    failed = 0
    tools_of_cases(check)
    with ThreadPoolExecutor(arguments.j) as pool:
        for path, wrong in zip(cases, pool.map(lambda c: run_case(c, check, validator), cases)):
            if wrong is not None:
                failed += 1
                print(f"FAIL {os.path.basename(path)}\n{wrong}\n")
            elif arguments.v:
                print(f"ok   {os.path.basename(path)}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
