#!/usr/bin/env python3
"""Every option of --help alone and with every other: a program ends with one of its four statuses, never by a signal, and does not
destroy what it read. (visac --check --certificate=FILE crashed when no test had ever asked for both.) The options are read from --help."""
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import visa_tools

# A value that each option takes; an option of --help that is not here fails the test.
VALUES = {
    "visac": {"-o": "{out}", "--emit": "json", "--mcpu": "native", "--reference-order": "free", "-D": "K=64", "--pass": "time-multiplex",
              "--onchip-bytes": "4096", "--compute-tile": "8", "--sizes": "{sizes}", "--place": "auto", "--order": "free", "--draw": "fetch",
              "--report": "csv", "--timing": "schedule", "--trace": "{trace}", "--sweep": "K=32,64", "--explore": None, "--limit": "target",
              "--target-cycles": "100", "--search": "folding", "--target-rate": "100", "--input": "x=x.json",
              "--dtype": "i8", "--out": "i32", "--budget": "1s", "--clusters": "1", "--slices": "64", "--chips": "2", "--free": "A",
              "--check": None, "--check-format": "json", "--version": "json", "--samples": "4", "--certificate": "{certificate}", "--seed": "2", "--max-cycles": "1000000", "--kernel": "matmul",
              "--dialect": "0.9", "--target": "rngd", "--print-after": "all", "--max-steps": "1000000", "--max-bytes": "100000000", "--jobs": "2",
              "--explain-mapping": None, "-W": "performance", "-f": "error-limit=2", "--diagnostics-format": "json", "--color": "always", "--explain": "E-ADDRESS"},
    "visa-run": {"--list": "json", "--input": "a={input}", "--output": "{out}", "--check": None, "--check-format": "json", "--samples": "4", "--certificate": "{certificate}",
                 "--reference-order": "free", "--report": "json", "--timing": "schedule", "--trace": "{trace}", "--seed": "2", "--convert": None, "--threads": "1",
                 "--cpu": "plain", "--max-cycles": "1000000", "--kernel": "matmul", "--sizes": "{sizes}", "--onchip-bytes": "4096"},
    "visa-objdump": {"-o": "{out}"},
}


def options(program):
    text = visa_tools.run([program, "--help"]).out.decode()
    text = text[text.index("Options:"):].split("\nExit status")[0]
    for line in text.splitlines():
        found = re.match(r"  (-\w|--[a-z-]+)(\S*)( [A-Z]\S*)?", line)
        if found and not found.group(0).startswith(("  -Werror", "  --input NAME:")):
            yield found.group(1), bool(found.group(2) or found.group(3)), (found.group(2) or "").startswith("[")


def choices():
    """Each value of each option that takes one of some words, from the rows: what a row offers is understood."""
    for program in ("visac", "visa-run"):
        with open(os.path.join(visa_tools.SOURCE, "tools", program.replace("-", "_") + ".def")) as file:
            for values, name in re.findall(r'ONE_OF\("([^"]+)", \w+, "([\w-]+)"', file.read()):
                yield from ((program, f"--{name}={value}") for value in values.split("|"))


def words(program, option, takes, optional):
    if not takes:
        return [option]
    value = VALUES[program].get(option, "")
    if value is None and optional:
        return [option]
    assert value, f"{program} {option}: the test knows no value for it"
    return [f"{option}={value}"] if option.startswith("--") else [option + value]


def run_one(folder, sources, program, arguments, number):
    here = os.path.join(folder, str(number))
    os.mkdir(here)
    names = {name: os.path.join(here, name) for name in ("out", "trace", "certificate")}
    names.update(sources)
    file = {"visac": names["vm"], "visa-run": names["bin"], "visa-objdump": names["bin"]}[program]
    done = visa_tools.run([program] + [a.format(**names) for a in arguments] + [file], cwd=here)
    shutil.rmtree(here)
    return f"{program} {' '.join(arguments)}: status {done.status}\n{done.text()[-500:]}" if done.crashed else None


def main():
    faults, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        sources = {name: os.path.join(folder, "matmul." + name) for name in ("vm", "bin", "input", "sizes")}
        shutil.copy(os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), sources["vm"])
        assert visa_tools.run(["visac", sources["vm"], "-o", sources["bin"]]).status == 0
        for name in ("input", "sizes"):
            with open(sources[name], "wb") as file:
                file.write(b"x = 1\n")
        before = {path: open(path, "rb").read() for path in sources.values()}
        lines = []
        for program in VALUES:
            known = [words(program, *option) for option in options(program)]
            assert len(known) >= len(VALUES[program]), f"{program} --help was not understood"
            lines += [(program, one) for one in known]
            lines += [(program, a + b) for i, a in enumerate(known) for j, b in enumerate(known) if i < j and (i + j) % visa_tools.SLOWER == 0]
        with ThreadPoolExecutor(2) as pool:
            for fault in pool.map(lambda job: run_one(folder, sources, *job[1], job[0]), enumerate(lines)):
                count += 1
                faults += [fault] if fault else []
        offered = list(choices())
        assert len(offered) > 20, "the rows were not understood"
        for program, option in offered:
            whole = [option, "--check=numbers"] if option.startswith("--check-format") else [option] # which belongs to it
            done = visa_tools.run([program, *whole, sources["vm" if program == "visac" else "bin"]], cwd=folder)
            faults += [f"{program} {option}: {done.text()}"] if done.status == 2 or done.crashed else []
        faults += [f"{path} was changed" for path, data in before.items() if open(path, "rb").read() != data]
    print("\n".join(faults + [f"{count} command lines, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
