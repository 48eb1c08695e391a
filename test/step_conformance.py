"""The operator cases of shared/conformance/step-dataflow.json against visac and visa-run: each becomes a program of one or a few operators
whose streams are fed and taken as tokens. Skips where the file is absent. Usage: step_conformance.py [-v] [ID ...]"""
import json
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("VISA_SOURCE", os.path.join(os.path.dirname(__file__), ".."))
BIN = os.environ.get("VISA_BIN", os.path.join(SOURCE, "build/dev/bin"))
CASES = os.path.join(SOURCE, "../shared/conformance/step-dataflow.json")

# The conformance file's functions that this language spells otherwise, or composes.
FUNCTIONS = {"split_rows": "rows", "retile_row": "retile_rows", "retile_col": "retile_cols"}
# Functions of the file that exist for its own checks only; programs that need them cannot be written.
UNKNOWN = {"square", "count", "dup", "iota", "pairs", "neg", "double", "relu", "concat"}


def tile_of(tokens):
    """Rows and columns of the first tile; None when tiles differ."""
    sizes = {(len(t), len(t[0])) if isinstance(t, list) else (1, 1) for t in tokens if not isinstance(t, str)}
    return sizes.pop() if len(sizes) == 1 else (1, 1) if not sizes else None


class Program:
    """One #[stream] function under construction."""

    def __init__(self):
        self.params, self.body, self.inputs, self.symbols, self.regular = [], [], {}, {}, False

    def dims(self, rank, stem):
        """Sizes outermost first; all but the outermost may differ by outer index."""
        names = [f"{stem}{i}" for i in range(rank + 1)]
        for i, n in enumerate(names):
            self.symbols.setdefault(n, "Dim" if i == 0 or self.regular else "Ragged")
        return "{[" + ", ".join(names) + "]}"

    def stream(self, name, data, rank, tokens, stem=None):
        self.params.append(f"{name}: Stream<{data}, {self.dims(rank, stem or name.upper())}>")
        self.inputs[name] = tokens

    def tensor(self, name, rows, columns, tiles, written=False):
        self.params.append(f"{name}: &{'mut ' if written else ''}Hbm<Tile<f32, {rows}, {columns}>, {{[{tiles}]}}>")

    def text(self):
        symbols = ", ".join(f"const {n}: {k}" for n, k in self.symbols.items())
        return f"#[stream(depth = 0)]\nfn p<{symbols}>({', '.join(self.params)}) {{\n    " + "\n    ".join(self.body) + "\n}\n"


def fn(name):
    if name in UNKNOWN:
        raise NotImplementedError(f"the function `{name}`")
    return FUNCTIONS.get(name, name)


def tile_data(tokens):
    size = tile_of(tokens)
    if size is None:
        raise NotImplementedError("tiles of several sizes in one stream")
    return f"Tile<f32, {size[0]}, {size[1]}>"


def step_text(step, value):
    op = step["op"]
    if op in ("accum", "scan"):
        return f"{value}.{op}({step['b']}, {fn(step['fn'])})"
    if op == "flatmap":
        return f"{value}.flat_map({step.get('fn_rank', 0)}, {fn(step['fn'])})"
    if op == "flatten":
        return f"{value}.flatten({step['min']}, {step['max']})"
    if op == "repeat":
        return f"{value}.repeat({step['n']})"
    if op == "promote":
        return f"{value}.promote()"
    if op == "map":
        return f"{value}.map({fn(step['fn'])})"
    if op == "bufferize":
        return f"{value}.bufferize({step['b']})"
    if op == "reshape":
        pad = f", {step['pad']}" if "pad" in step else ""
        return f"{value}.reshape({step['b']}, {step['chunk']}{pad}).0"
    raise NotImplementedError(op)


def unary(p, c):
    p.regular = c["op"] == "bufferize" or (c["op"] == "reshape" and c["b"] > 0)
    p.stream("x", tile_data(c["in"]), c["rank"], c["in"])
    if c["op"] == "reshape" and c["b"] > 0: # that dimension has to be known to divide
        d = c["rank"] - c["b"]
        p.params[-1] = p.params[-1].replace(f"X{d}", f"X{d} * {c['chunk']}")
    if c["op"] == "reshape":
        pad = f", {c['pad']}" if "pad" in c else ""
        p.body.append(f"x.reshape({c['b']}, {c['chunk']}{pad})")
        return ["out0", "out1"]
    p.body.append(step_text(c, "x"))
    return ["out"]


def chain(p, c):
    p.stream("x", tile_data(c["in"]), c["rank"], c["in"])
    value = "x"
    for step in c["steps"]:
        value = step_text(step, value)
    p.body.append(value)
    return ["out"]


def lockstep(p, c):
    for name, tokens in zip("xy", c["in"]):
        p.stream(name, tile_data(tokens), c["rank"], tokens, "X")
    p.body.append("x.zip(&y)" if c["op"] == "zip" else f"x.map({fn(c['fn'])}, &y)")
    return ["out"]


def partition(p, c):
    n = c["outputs"]
    p.stream("x", tile_data(c["in"]), c["rank"], c["in"], "X")
    p.stream("s", f"Selector<{n}>", c["rank"] - c["b"], c["sel"], "X")
    if c["op"] == "roundtrip":
        p.body.append(f"let parts = x.partition({c['b']}, &s);")
        p.body.append(f"let again = reassemble({c['b']}, parts, &s);")
        p.body.append(f"(parts, again, again.flatten({c['b']}, {c['b'] + 1}))")
        return [f"out0{i}" for i in range(n)] + ["out1", "out2"]
    p.body.append(f"x.partition({c['b']}, &s)")
    return [f"out{i}" for i in range(n)]


def reassemble(p, c):
    if "arrival" in c:
        raise NotImplementedError("an order of arrival that is not that of the ports")
    n = len(c["in"])
    if c["b"] == 1 and max(len(s) for s in c["sel"] if isinstance(s, list)) > 1 and len(c["sel"]) > 2:
        raise NotImplementedError("an order of arrival that is not that of the ports")
    for i, tokens in enumerate(c["in"]):
        p.stream(f"x{i}", tile_data(tokens), c["b"], tokens, "X")
        p.params[-1] = p.params[-1].replace("{[X0", "{[" + f"N{i}")
        p.symbols[f"N{i}"] = "Dim"
    p.stream("s", f"Selector<{n}>", c["sel_rank"], c["sel"])
    p.body.append(f"reassemble({c['b']}, [{', '.join(f'x{i}' for i in range(n))}], &s)")
    return ["out"]


def expand(p, c):
    b, rank = c["b"], c["rank"]
    p.stream("x", "Tile<f32, 1, 1>", rank, c["data"], "R")
    p.params[-1] = p.params[-1].replace("{[" + ", ".join(f"R{i}" for i in range(rank + 1)) + "]}",
                                        "{[" + ", ".join(["1" if i > rank - b else f"R{i}" for i in range(rank + 1)]) + "]}")
    p.stream("r", "Tile<f32, 1, 1>", rank, c["ref"], "R")
    p.body.append(f"x.expand(&r, {b})")
    return ["out"]


def load(p, c):
    p.tensor("w", 1, 1, c["stored_tiles"])
    p.stream("r", "Tile<f32, 1, 1>", c["ref_rank"], c["ref"])
    p.body.append(f"w.linear_load(&r, {c['out_shape']}, {c['stride']})")
    return ["out"]


def random_load(p, c):
    p.tensor("w", 1, 1, c["stored_tiles"])
    p.stream("a", "Address", c["rank"], c["in"])
    p.body.append("w.random_load(&a)")
    return ["out"]


BUILD = {"map": unary, "accum": unary, "scan": unary, "flatmap": unary, "flatten": unary, "reshape": unary, "promote": unary, "repeat": unary,
         "chain": chain, "zip": lockstep, "map2": lockstep, "partition": partition, "roundtrip": partition, "reassemble": reassemble,
         "expand": expand, "linear_offchip_load": load, "random_offchip_load": random_load, "bufferize": unary}


def plain(token):
    """As visa-run writes it: a 1 x 1 tile is its number, a pair an object."""
    if isinstance(token, dict) and "tuple" in token:
        return {"pair": [plain(t) for t in token["tuple"]]}
    if isinstance(token, dict) and "buffer" in token:
        return {"buffer": [plain(t) for t in token["buffer"]]}
    if isinstance(token, list) and token and isinstance(token[0], list):
        return token[0][0] if len(token) == 1 and len(token[0]) == 1 else token
    return token


def bare(token):
    return token["tile"] if isinstance(token, dict) and "tile" in token else token


def wanted(case):
    e = case["expect"]
    if case["input"]["op"] == "roundtrip":
        return e["parts"] + [e["reassembled"], e["flattened"]]
    if "outs" in e:
        return e["outs"]
    return [e["out"]] + ([e["padding"]] if "padding" in e else [])


def run(folder, case):
    """None, or what is wrong."""
    c = case["input"]
    if c["op"] not in BUILD:
        raise NotImplementedError(f"the operator `{c['op']}` alone")
    p = Program()
    names = BUILD[c["op"]](p, c)
    source, binary = os.path.join(folder, "p.vm"), os.path.join(folder, "p.bin")
    with open(source, "w") as f:
        f.write(p.text())
    done = subprocess.run([f"{BIN}/visac", source, "-o", binary], capture_output=True, text=True)
    command = [f"{BIN}/visa-run", binary]
    for name, tokens in p.inputs.items():
        path = os.path.join(folder, name + ".json")
        with open(path, "w") as f:
            json.dump([t if isinstance(t, (str, dict)) or name == "s" else t for t in tokens], f)
        command += ["--input", f"{name}={path}"]
    if "w:" in p.text():
        tiles = c["stored_tiles"]
        path = os.path.join(folder, "w.raw")
        import struct
        with open(path, "wb") as f:
            f.write(struct.pack(f"<{tiles}f", *range(tiles)))
        command += ["--input", f"w={path}"]
    for name in names:
        command += ["--output", f"{name}={os.path.join(folder, name + '.out')}"]
    if done.returncode == 0:
        done = subprocess.run(command, capture_output=True, text=True)
    if "error" in case["expect"]:
        return None if done.returncode == 1 and "internal" not in done.stderr else f"accepted, or crashed ({done.returncode})"
    if done.returncode != 0:
        return done.stderr.strip() + "\n" + p.text()
    for name, want in zip(names, wanted(case)):
        with open(os.path.join(folder, name + ".out")) as f:
            got = [plain(bare(t)) for t in json.load(f)]
        if got != [plain(t) for t in want]:
            return f"{name} is {got}, not {want}\n{p.text()}"
    return None


def main():
    if not os.path.exists(CASES):
        print("skipped: shared/conformance is absent")
        return 77
    with open(CASES) as f:
        cases = [c for c in json.load(f) if c["kind"] == "step-op" and not c["input"]["op"].startswith("shape:")]
    only = [a for a in sys.argv[1:] if not a.startswith("-")]
    agree, wrong, left = 0, 0, {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if only and case["id"] not in only:
                continue
            try:
                fault = run(folder, case)
            except NotImplementedError as why:
                left[str(why)] = left.get(str(why), 0) + 1
                continue
            agree += fault is None
            wrong += fault is not None
            if fault:
                print(f"{case['id']}: {fault}")
    for why, count in sorted(left.items()):
        print(f"{count} not expressible: {why}")
    print(f"{agree} agree, {wrong} differ, {sum(left.values())} left out")
    return wrong > 0


sys.exit(main())
