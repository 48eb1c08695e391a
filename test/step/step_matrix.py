"""Every option and subcommand of visac and visa-run on every stream program of examples/step: each gives what it is there for, or is refused by a
diagnostic with an id. Nothing is empty with status 0. An option of --help without a row here is a failure; `-v` prints the matrix."""
import csv
import html.parser
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

SOURCE = os.environ.get("VISA_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BIN = os.environ.get("VISA_BIN", os.path.join(SOURCE, "build/dev/bin"))
MOE = "-DB=8 -DE=4 -DK=2 -DD=8 -DF=16 -DFT=8 -DT=4".split()
EXAMPLES = {  # file: (program, sizes, arguments of routing.py)
    "swiglu": ("swiglu", "-DB=8 -DD=16 -DF=32 -DTM=4 -DTN=8".split(), None),
    "moe_mixtral": ("moe", MOE, "moe OUT --rows 8 --experts 4 --top 2"),
    "moe_qwen": ("moe", MOE, "moe OUT --rows 8 --experts 4 --top 2"),
    "moe_time_multiplexed": ("moe", MOE + ["-DR=2"], "moe OUT --rows 8 --experts 4 --top 2"),
    "attention": ("attention", "-DB=4 -DR=2 -DMAX=64 -DN=32 -DH=4 -DQ=2".split(), "attention OUT --requests 4 --regions 2 --mean 3"),
    "decoder_layer": ("layer", "-DB=2 -DTILES=2".split(), None),
    "linear": ("linear", [], None),
}
KERNELS = {"linear"}  # they hold a kernel, too

# What an option gives with a program whose file has no kernel: a form of output, "2" (usage), or the id that refuses it.
TEXT, JSON, CSV, SVG, DOT, HTML, BYTES, NOTHING, USAGE = "text", "json", "csv", "svg", "dot", "html", "bytes", "nothing", "usage"
VISAC = {
    "--output=FILE": BYTES,
    "--emit=bin": BYTES, "--emit=tables": TEXT, "--emit=json": "E-STEP-OPTION", "--emit=ir": TEXT, "--emit=ast": TEXT, "--emit=llvm": "E-KERNEL",
    "--emit=bc": "E-KERNEL", "--emit=asm": "E-KERNEL", "--emit=obj": "E-KERNEL", "--emit=header": "E-KERNEL", "--emit=step-report": TEXT,
    "--emit=step-json": JSON, "--emit=dataflow": "E-STEP-OPTION", "--emit=dataflow-json": "E-STEP-OPTION", "--emit=finn": "E-DATAFLOW-FINN", "--emit=memory": "E-STEP-OPTION",
    "--emit=memory-json": "E-STEP-OPTION", "--emit=memory-svg": "E-STEP-OPTION", "--emit=order": "E-STEP-OPTION", "--emit=dot": DOT,
    "--emit=text": USAGE, "--emit=csv": USAGE, "--emit=svg": SVG, "--emit=vm": "E-DATAFLOW-EXPLORE", "--emit=vm,bin,report": USAGE, "--mcpu=x86-64": "E-STEP-OPTION",
    "--reference-order=free": "E-STEP-OPTION", "-D": BYTES, "--pass=dynamic-tiling": None, "--onchip-bytes=100": BYTES, "--compute-tile=8": BYTES,
    "--sizes=FILE": None, "--input=x=x.json": USAGE,
    "--place=auto": "E-STEP-OPTION", "--order=free": "E-STEP-OPTION", "--draw=fetch": "E-KERNEL",
    "--report": TEXT, "--report=text": TEXT, "--report=csv": CSV, "--report=json": JSON, "--report=html": HTML, "--timing=schedule": "E-STEP-OPTION",
    "--trace=FILE": "E-STEP-OPTION", "--sweep=SIZE": TEXT, "--format": TEXT, "--format-check": NOTHING, "--fix": TEXT, "--upgrade": TEXT,
    "--explain-mapping": "E-EXPLAIN", "--explore": "E-DATAFLOW-EXPLORE", "--limit=target": USAGE, "--target-cycles=3": USAGE, "--target-rate=3": USAGE, "--search=all": USAGE,
    "--dtype=bf16": USAGE, "--out=f32": USAGE, "--budget=1s": USAGE, "--no-cache": USAGE, "--clusters=1": USAGE, "--slices=64": USAGE, "--chips=2": USAGE, "--free=A": USAGE, "--check": None, "--check=numbers": None, "--check=algebra": None,
    "--check-format=json": USAGE, "--samples=2": USAGE, "--certificate=FILE": USAGE, "--seed=2": BYTES, "--max-cycles=5": BYTES, "--kernel=PROGRAM": BYTES, "--dialect=0.9": BYTES,
    "--target=rngd": BYTES, "--print-after=infer": BYTES, "--print-after-all": BYTES, "--time-report": BYTES, "--max-steps=0": BYTES,
    "--max-bytes=0": BYTES, "--jobs=2": BYTES, "--from-markdown": None, "-Wall": BYTES, "-Werror": BYTES, "-ferror-limit=3": BYTES, "--diagnostics-format=json": BYTES,
    "--color=never": BYTES, "--explain=E-STEP-OPTION": TEXT, "--version": TEXT, "--help": TEXT, "--apply": USAGE, "diff": None, "tune": None, "advise": "E-STEP-OPTION",
}
RUN = {
    "--input": TEXT, "--output": NOTHING, "--check": None, "--check=numbers": None, "--check=algebra": None, "--samples=2": USAGE,
    "--check-format=json": USAGE, "--certificate=FILE": USAGE, "--dump-field": "E-STEP-OPTION", "--reference-order=free": "E-STEP-OPTION", "--report": TEXT, "--report=text": TEXT,
    "--report=csv": CSV, "--report=json": JSON, "--report=html": HTML, "--timing=schedule": "E-STEP-OPTION", "--trace=FILE": "trace", "--seed=2": TEXT,
    "--convert": TEXT, "--threads=2": "E-STEP-OPTION", "--cpu=plain": "E-STEP-OPTION", "--max-cycles=0": TEXT, "--kernel=PROGRAM": TEXT, "--plan": None, "--timing-only": TEXT,
    "--unbounded": TEXT, "--onchip-bytes=100": TEXT, "--sizes=FILE": "sizes", "--list": TEXT, "--version": TEXT, "--help": TEXT,
}
# Where a file also has a kernel, these are about the kernel.
WITH_KERNEL = {"--mcpu=x86-64": BYTES, "--reference-order=free": BYTES, "--place=auto": BYTES, "--order=free": BYTES, "--timing=schedule": BYTES,
               "--emit=json": JSON, "--emit=llvm": TEXT, "--emit=bc": BYTES, "--emit=asm": TEXT, "--emit=obj": BYTES, "--emit=header": TEXT,
               "--emit=dataflow": TEXT, "--emit=dataflow-json": JSON, "--emit=memory": TEXT, "--emit=memory-json": JSON, "--emit=memory-svg": SVG,
               "--emit=order": TEXT, "--draw=fetch": None, "--report=json": JSON, "--report=html": HTML, "--trace=FILE": None,
               "--explain-mapping": TEXT, "--explore": "E-DATAFLOW-EXPLORE", "--dialect=0.9": "E-DIALECT", "advise": TEXT,
               "--onchip-bytes=100": "E-STEP-NUMBER"}
RUN_WITH_KERNEL = {"--timing=schedule": TEXT, "--onchip-bytes=100": "E-STEP-NUMBER"}


def tool(*command, cwd):
    return subprocess.run([f"{BIN}/{command[0]}", *command[1:]], capture_output=True, cwd=cwd)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)


def wrong(form, data):
    """What is wrong with an output of that form; None: nothing."""
    if form == NOTHING:
        return None if not data else "something"
    if not data.strip():
        return "empty"
    text = data.decode("utf-8", "replace")
    if form in (JSON, "trace", "sizes"):
        value = json.loads(text)
        if form == "trace":
            spans = [e for e in value["traceEvents"] if e["ph"] == "X"]
            return None if spans and any(e["ph"] == "C" for e in value["traceEvents"]) else "no spans or no counters"
        return None if value else "empty"
    if form == CSV:
        rows = list(csv.reader(io.StringIO(text)))
        return None if len(rows) > 2 and len({len(r) for r in rows}) == 1 else "rows of different length"
    if form == SVG:
        return None if xml.dom.minidom.parseString(text).getElementsByTagName("rect") else "no boxes"
    if form == DOT:
        nodes, edges = set(re.findall(r"^  (n\d+) \[", text, re.M)), re.findall(r"^  (n\d+) -> (n\d+) ", text, re.M)
        return None if nodes and edges and {n for e in edges for n in e} <= nodes else "an edge without its nodes"
    if form == HTML:
        page = Page()
        page.feed(text)
        return None if {"svg", "rect", "pre"} <= page.seen or "table" in page.seen else f"no picture: {page.seen}"
    return None


def judge(done, form, data):
    stderr = done.stderr.decode("utf-8", "replace")
    if done.returncode not in (0, 1, 2, 3):
        return f"status {done.returncode}"
    if form is None:  # may be either; never silent
        return None if done.returncode != 0 or data.strip() else "empty with status 0"
    if form == USAGE:
        return None if done.returncode == 2 and "error: " in stderr else f"status {done.returncode}, not 2"
    if re.match(r"[EW]-", form):
        return None if done.returncode in (1, 3) and f"[{form}]" in stderr else f"status {done.returncode}, no {form}: {stderr[:200]}"
    if done.returncode != 0:
        return f"status {done.returncode}: {stderr[:300]}"
    return wrong(form, data)


def options_of(help_text):
    """--report[=FORMAT] of a line of help, with each value where they are listed."""
    found = set()
    for line in help_text.splitlines():
        found |= set(re.findall(r"^ {1,6}(?:-\w, )?(--[a-z-]+|-[A-Za-z])\b", line))
    return found


def subjects(program):
    """(name, what a file has to hold) of each option that says nothing of other files."""
    with open(os.path.join(SOURCE, f"tools/{program.replace('-', '_')}.def")) as f:
        rows = re.findall(r'"([a-z-]+)", 0, \w+, "[^"]*", (OF_[A-Z_| ]+), "', f.read())
    return [(f"--{name}", set(of.split(" | "))) for name, of in rows]


def refused_elsewhere():
    """Options of one kind of file with files of the other kinds: each is refused by its name."""
    failures, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        binary, plan = os.path.join(folder, "k.bin"), os.path.join(folder, "p.json")
        kernel, item = (os.path.join(SOURCE, "examples", name) for name in ("matmul.vm", "dataflow/tfc.vm"))
        assert tool("visac", kernel, "-o", binary, cwd=folder).returncode == 0
        with open(plan, "w") as f:
            f.write("{}")
        files = [("visac", ["visac", kernel], {"OF_KERNELS"}), ("visac", ["visac", item, "--emit=dataflow"], set()),
                 ("visac", ["visac", "advise", kernel], {"OF_KERNELS"}), ("visac", ["visac", "diff", kernel, kernel], {"OF_KERNELS"}),
                 ("visac", ["visac", "tune", "C[m] = sum(k) A[m, k] * B[k]", "-Dm=8,k=8"], {"OF_KERNELS"}),
                 ("visac", ["visac", "tune", os.path.join(SOURCE, "examples/step/swiglu.vm")], {"OF_PROGRAMS"}),
                 ("visac", ["visac", kernel, "--sweep=M=64"], {"OF_KERNELS"}), ("visa-run", ["visa-run", binary], {"OF_KERNELS"}),
                 ("visa-run", ["visa-run", "--plan", plan], {"OF_PLANS"})]
        for program, command, holds in files:
            table = VISAC if program == "visac" else RUN
            for option, of in subjects(program):
                given = next(o for o in table if o.split("=")[0] == option).replace("PROGRAM", "x").replace("FILE", f"{folder}/out")
                if of & holds:
                    continue
                words = [given, "x=x.json"] if given in ("--input", "--output") else [given]
                extra = ["--check=algebra"] if option in ("--samples", "--certificate") else []
                done, count = tool(*command, *extra, *words, cwd=folder), count + 1
                if done.returncode != 1 or f"[E-STEP-OPTION]: {option} is for ".encode() not in done.stderr:
                    failures.append(f"{' '.join(command)} {given}: status {done.returncode}: {done.stderr.decode()[:300]}")
    return failures, count


def some_of(example, options):
    """All of them; under sanitizers a quarter, another one for each example."""
    return [(o, form) for o, form in options.items() if visa_tools.SLOWER == 1 or zlib.crc32(f"{example} {o}".encode()) % 4 == 0]


def main():
    verbose, failures, count = "-v" in sys.argv[1:], [], 0
    rows = {"visac": VISAC, "visa-run": RUN}
    for name, table in rows.items():
        text = subprocess.run([f"{BIN}/{name}", "--help"], capture_output=True, text=True, check=True).stdout
        have = {o.split("=")[0] if o.startswith("--") else o[:2] for o in table}
        missing = {o for o in options_of(text) if o not in have and o not in ("-o", "-h")}
        if missing or len(options_of(text)) < 20:
            failures.append(f"{name} --help lists {sorted(missing)}, the matrix does not")
    with open(os.path.join(SOURCE, "tools/visac.def")) as f:
        kinds = re.search(r'OPTION_CHOICE\("([a-z|,-]+)", emit_choice', f.read()).group(1).split("|")
    failures += [f"--emit={k} is not in the matrix" for k in kinds if f"--emit={k}" not in VISAC]
    for name, table in rows.items():
        failures += [f"{name} {o}: of kernels alone, and the matrix expects it of a stream program" for o, of in subjects(name) if not of & {"OF_PROGRAMS", "OF_CALLS"}
                     and any(x.split("=")[0] == o and form not in ("E-STEP-OPTION", USAGE) for x, form in table.items())]
    elsewhere, count = refused_elsewhere()
    failures += elsewhere
    for example, (program, sizes, routing) in EXAMPLES.items():
        with tempfile.TemporaryDirectory() as folder:
            source, binary = os.path.join(SOURCE, f"examples/step/{example}.vm"), os.path.join(folder, "p.bin")
            inputs = []
            if routing:
                subprocess.run([sys.executable, os.path.join(SOURCE, "examples/step/routing.py"), *routing.replace("OUT", folder).split()], check=True,
                               capture_output=True)
            if example == "linear":
                with open(os.path.join(folder, "x.json"), "w") as f:
                    json.dump([[[1] * 32] * 32] * 2, f)
            for name in sorted(os.listdir(folder)):
                if name.endswith(".json"):
                    inputs += ["--input", f"{name[:-5]}={folder}/{name}"]
            done = tool("visac", source, *sizes, "-o", binary, cwd=folder)
            assert done.returncode == 0, done.stderr.decode()
            run = ["visa-run", binary, *inputs, f"--kernel={program}"]
            done = tool(*run, f"--sizes={folder}/sizes.json", cwd=folder)
            assert done.returncode == 0, done.stderr.decode()
            for option, form in some_of(example, VISAC):
                if example in KERNELS and option in WITH_KERNEL:
                    form = WITH_KERNEL[option]
                out = os.path.join(folder, "out")
                if os.path.exists(out):
                    os.remove(out)
                given = option.replace("PROGRAM", program)
                given = given.replace("--sizes=FILE", f"--sizes={folder}/sizes.json").replace("=FILE", f"={folder}/out")
                given = given.replace("=SIZE", "=B=1,2" if example == "linear" else f"={sizes[0][2:].split('=')[0]}={sizes[0].split('=')[1]}")
                command = ["visac", source, *sizes, given]
                if option.startswith("--sweep") and example != "linear":
                    command = ["visac", source, *sizes[1:], given]
                if option == "diff":
                    command = ["visac", "diff", source, binary, *sizes]
                elif option == "advise":
                    command = ["visac", "advise", source]
                elif option == "tune":
                    command = ["visac", "tune", source]
                elif option == "-D":
                    command = ["visac", source, *sizes]
                elif option.startswith("--output"):
                    command = ["visac", source, *sizes, "-o", out]
                if option in ("--format", "--format-check", "--fix", "--upgrade"):
                    command = ["visac", source, given]
                done = tool(*command, *([] if "-o" in command or option in ("--format-check", "tune", "advise", "--trace=FILE", "--certificate=FILE") else ["-o", out]),
                            cwd=folder)
                data = done.stdout
                if os.path.exists(out):
                    with open(out, "rb") as f:
                        data += f.read()
                problem, count = judge(done, form, data), count + 1
                if verbose:
                    print(f"{example:22} visac {option:28} status {done.returncode} {len(data):8} bytes {form or 'either'}")
                if problem:
                    failures.append(f"{example}: visac {option}: {problem}")
            for option, form in some_of(example, RUN):
                if example in KERNELS:
                    form = RUN_WITH_KERNEL.get(option, form)
                out = os.path.join(folder, "out")
                if os.path.exists(out):
                    os.remove(out)
                given = option.replace("PROGRAM", program).replace("=FILE", f"={folder}/out")
                extra = [] if option == "--input" else [given]
                if option == "--output":
                    name = "out" if example == "linear" else "out" if example == "attention" else "y"
                    extra = ["--output", f"{name}={folder}/out"]
                done = tool(*run, *extra, cwd=folder)
                data = done.stdout
                if os.path.exists(out) and option != "--output":
                    with open(out, "rb") as f:
                        data = f.read()
                problem, count = judge(done, form, data), count + 1
                if option == "--output" and not problem and (not os.path.exists(out) or os.path.getsize(out) == 0):
                    problem = "no output"
                if verbose:
                    print(f"{example:22} visa-run {option:25} status {done.returncode} {len(data):8} bytes {form or 'either'}")
                if problem:
                    failures.append(f"{example}: visa-run {option}: {problem}")
    return visa_tools.ended(failures, f"step_matrix: {count} combinations of an option and a program, {len(failures)} fail")


if __name__ == "__main__":
    sys.exit(main())
