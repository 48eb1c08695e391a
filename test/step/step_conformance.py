"""The operator cases of shared/conformance/step-dataflow.json against visac and visa-run: each becomes a program of one or a few operators
whose streams are fed and taken as tokens. Skips where the file is absent. Usage: step_conformance.py [-v] [ID ...]"""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

SOURCE = os.environ.get("VISA_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BIN = os.environ.get("VISA_BIN", os.path.join(SOURCE, "build/dev/bin"))
CASES = os.path.join(SOURCE, "../shared/conformance/step-dataflow.json")

# The conformance file's functions that this language spells otherwise, or composes.
FUNCTIONS = {"split_rows": "rows", "retile_row": "retile_rows", "retile_col": "retile_cols"}
# Functions of the file that exist for its own checks only; programs that need them cannot be written.
UNKNOWN = {"count", "pairs"}
# What a refusal is called in the file, and words of ours: one of them is reported.
REFUSALS = {
    "early-end": ("ends with the stop", "has its end", "the data ends"),
    "bad-rank": ("is no stop of a stream of rank", "`b` of", "input 0 has rank"),
    "leftover": ("have the same groups", "has ended and"),
    "tile-shape": ("columns of the first", "takes no tile of"),
    "stop-mismatch": ("streams in lock step need one structure",),
    "not-divisible": ("ends inside a chunk",),
    "bad-arg": ("`n` of",),
}
NOT_COMPARED = {"meaning": "the words of `error`, which is compared"}
# Cycles between arrivals: more than any of these programs needs for a chunk.
APART = 1000


def tile_of(tokens):
    """Rows and columns of the tiles; None when they differ."""
    sizes = {(len(t), len(t[0])) if isinstance(t, list) else (1, 1) for t in tokens if not isinstance(t, str)}
    return sizes.pop() if len(sizes) == 1 else (1, 1) if not sizes else None


def level(token):
    return int(token[1:]) if isinstance(token, str) else 0


def chunks(tokens, b):
    """A stream cut after each stop of level b; after each value for b = 0. Stops above b stay with the chunk."""
    parts, now = [], []
    for t in tokens:
        now.append(t)
        if level(t) >= b:
            parts.append(now)
            now = []
    return parts


def arriving(ports, order, b):
    """The streams of the ports, whose chunks come in this order of ports: each APART cycles after the one before."""
    left = [chunks(tokens, b) for tokens in ports]
    out = [[] for _ in ports]
    for number, port in enumerate(order):
        if left[port]: # a port may be short of what its selector wants
            out[port] += [{"at": (number + 1) * APART, "token": t} for t in left[port].pop(0)]
    for port, rest in enumerate(left):
        out[port] += [t for part in rest for t in part]
    return out


def under(tokens, outer):
    """The stream of which each value is the content of a group of that rank: its own stops are raised, its end closes the group."""
    out = []
    for t in tokens:
        if isinstance(t, str):
            out[-1] = f"S{outer + level(t)}"
        else:
            out += t
            out.append(f"S{outer}")
    return out


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


# What is called on a value, with what the step says; dup: a value twice, no dimension more; iota: the numbers below a value, as many addresses
# from 0 on.
OF_FUNCTION = {"dup": ".repeat(2).flatten(0, 1)", "iota": ".map(signal).flat_map({fn_rank}, addresses(0, 0), &{value})", "square": ".map(mul, &{value})"}
OF_OPERATOR = {"accum": ".accum({b}, {fn})", "scan": ".scan({b}, {fn})", "flatmap": ".flat_map({fn_rank}, {fn})", "flatten": ".flatten({min}, {max})",
               "repeat": ".repeat({n})", "promote": ".promote()", "map": ".map({fn})", "bufferize": ".bufferize({b})",
               "reshape": ".reshape({b}, {chunk}{pad_text}).0"}


def step_text(step, value):
    if step.get("fn") in OF_FUNCTION:
        return value + OF_FUNCTION[step["fn"]].format(**{**step, "value": value})
    if step["op"] not in OF_OPERATOR:
        raise NotImplementedError(step["op"])
    known = {"fn_rank": 0, **step, "pad_text": f", {step['pad']}" if "pad" in step else ""}
    if "fn" in step:
        known["fn"] = fn(step["fn"])
    return value + OF_OPERATOR[step["op"]].format(**known)


def unary(p, c):
    if tile_of(c["in"]) is None: # a type has one size: such tiles are made of their rows
        rows = [t if isinstance(t, str) else [[r] for r in t] for t in c["in"]]
        rows = under(rows, 1)
        p.stream("x", tile_data(rows), c["rank"] + 1, rows)
        p.body.append(step_text(c, "x.accum(1, retile_rows)"))
        return ["out"]
    p.regular = c["op"] == "bufferize" or (c["op"] == "reshape" and c["b"] > 0)
    p.stream("x", "Address" if c.get("fn") == "iota" else tile_data(c["in"]), c["rank"], c["in"])
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
    n = len(c["in"])
    order = [port for one in c.get("arrival", [s for s in c["sel"] if isinstance(s, list)]) for port in one]
    for i, tokens in enumerate(arriving(c["in"], order, c["b"])):
        p.stream(f"x{i}", tile_data(tokens), c["b"], tokens, "X")
        p.params[-1] = p.params[-1].replace("{[X0", "{[" + f"N{i}")
        p.symbols[f"N{i}"] = "Dim"
    p.stream("s", f"Selector<{n}>", c["sel_rank"], c["sel"])
    p.body.append(f"reassemble({c['b']}, [{', '.join(f'x{i}' for i in range(n))}], &s)")
    return ["out"]


def eager_merge(p, c):
    for i, tokens in enumerate(arriving(c["in"], c["arrival"], c["b"])):
        p.stream(f"x{i}", tile_data(c["in"][i]), c["b"], tokens, "X")
        p.params[-1] = p.params[-1].replace("{[X0", "{[" + f"N{i}")
        p.symbols[f"N{i}"] = "Dim"
    p.body.append(f"eager_merge([{', '.join(f'x{i}' for i in range(len(c['in'])))}])")
    return ["out0", "out1"]


def streamify(p, c):
    content = under([t if isinstance(t, str) else t["buffer"] for t in c["data"]], c["buffer_rank"])
    p.regular = True
    view = ""
    p.stream("x", "Tile<f32, 1, 1>", c["rank"] + c["buffer_rank"], content, "X")
    if "view" in c: # a walk is held against the buffer's size, which has to be known
        inner = content[:-1]
        sizes = [sum(level(t) >= i for t in inner) + 1 for i in range(c["buffer_rank"] - 1, 0, -1)]
        sizes.append(sum(level(t) == 0 for t in inner) // (sizes[0] if sizes else 1))
        for i, size in enumerate(sizes):
            p.params[-1] = p.params[-1].replace(f"X{c['rank'] + 1 + i}", str(size))
        view = f", {c['view']['shape']}, {c['view']['stride']}"
    p.stream("r", "Tile<f32, 1, 1>", c["rank"] + c["c"], c["ref"], "R")
    for i in range(c["rank"] + 1):
        p.params[-1] = p.params[-1].replace(f"R{i}", f"X{i}")
    outer = ", ".join(f"X{i}" for i in range(c["rank"] + 1)) # none of these buffers is empty
    p.body.append(f"x.bufferize({c['buffer_rank']}).assume([{outer}]).streamify(&r, {c['c']}{view})")
    return ["out"]


def decode(p, c):
    p.stream("x", "Tile<f32, 1, 1>", c["rank"], c["in"])
    p.body.append("x")
    return ["out"]


def linear_store(p, c):
    p.regular = True
    p.stream("x", tile_data(c["in"]), c["rank"], c["in"], "X")
    p.tensor("w", *tile_of(c["in"]), sum(not isinstance(t, str) for t in c["in"]), written=True)
    p.body.append("w.linear_store(x);")
    return ["w"]


def random_store(p, c):
    p.stream("a", "Address", c["rank"], c["waddr"], "X")
    p.stream("x", tile_data(c["wdata"]), c["rank"], c["wdata"], "X")
    p.tensor("w", *tile_of(c["wdata"]), max(t for t in c["waddr"] if not isinstance(t, str)) + 1, written=True)
    p.body.append("w.random_store(a, x)")
    return ["out", "w"]


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
         "eager_merge": eager_merge, "streamify": streamify, "decode": decode, "linear_offchip_store": linear_store, "random_offchip_store": random_store,
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


def nested(tokens, rank):
    """The nested list that a stream stands for."""
    if rank == 0:
        return tokens
    inner = [f"S{rank - 1}"] if rank > 1 else [] # the highest stop stands for those below it
    return [nested(part[:-1] + (inner if len(part) > 1 else []), rank - 1) for part in chunks(tokens, rank)]


def wanted(case):
    e = case["expect"]
    if "tensor" in e:
        return [e["tensor"]]
    if "memory_tiles" in e or "memory" in e:
        tiles = e["memory_tiles"] if "memory_tiles" in e else [e["memory"][str(i)] for i in range(len(e["memory"]))]
        return ([e["ack"]] if "ack" in e else []) + [tiles]
    if "sel" in e:
        return [e["out"], e["sel"]]
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
    if "stored_tiles" in c:
        tiles = c["stored_tiles"]
        path = os.path.join(folder, "w.raw")
        with open(path, "wb") as f:
            f.write(struct.pack(f"<{tiles}f", *range(tiles)))
        command += ["--input", f"w={path}"]
    for name in names:
        command += ["--output", f"{name}={os.path.join(folder, name + '.out')}"]
    if done.returncode == 0:
        done = subprocess.run(command, capture_output=True, text=True)
    if "error" in case["expect"]:
        return refused(case["expect"]["error"], done)
    if done.returncode != 0:
        return done.stderr.strip() + "\n" + p.text()
    if "rank" in case["expect"] and rank_of_result(binary) != case["expect"]["rank"]:
        return f"the rank is {rank_of_result(binary)}, not {case['expect']['rank']}"
    for name, want in zip(names, wanted(case)):
        with open(os.path.join(folder, name + ".out"), "rb") as f:
            data = f.read()
        if name == "w": # tiles of one element
            got = list(struct.unpack(f"<{len(data) // 4}f", data))
        else:
            got = [plain(bare(t)) for t in json.loads(data)]
        if "tensor" in case["expect"]:
            got = nested(got, c["rank"])
        else:
            want = [plain(t) for t in want]
        if got != want:
            return f"{name} is {got}, not {want}\n{p.text()}"
    return None


def refused(reason, done):
    if done.returncode != 1 or "internal" in done.stderr:
        return f"accepted, or crashed ({done.returncode})"
    return None if any(words in done.stderr for words in REFUSALS[reason]) else f"refused, but not as {reason}: {done.stderr}"


def rank_of_result(binary):
    """As visa-run lists the stream `out`: a rank is one less than the dimensions."""
    listed = subprocess.run([f"{BIN}/visa-run", binary, "--list"], capture_output=True, text=True).stdout
    shape = [line for line in listed.splitlines() if line.startswith("out out: stream [")][0]
    inside, depth = shape[shape.index("[") + 1:shape.rindex("]") if " of " not in shape else shape.index("] of ")], 0
    return sum(1 for c in inside if (depth := depth + (c in "([") - (c in ")]")) == 0 and c == ",")


def main():
    if not os.path.exists(CASES):
        print("skipped: shared/conformance is absent")
        return 77
    with open(CASES) as f:
        cases = [c for c in json.load(f) if c["kind"] == "step-op" and not c["input"]["op"].startswith("shape:")]
    only = [a for a in sys.argv[1:] if not a.startswith("-")]
    agree, wrong, left, judged = 0, 0, {}, []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if only and case["id"] not in only:
                continue
            case["expect"] = visa_tools.Watched(case["expect"])
            try:
                fault = run(folder, case)
            except NotImplementedError as why:
                left[str(why)] = left.get(str(why), 0) + 1
                continue
            agree += fault is None
            wrong += fault is not None
            judged.append(case)
            if fault:
                print(f"{case['id']}: {fault}")
    for why, count in sorted(left.items()):
        print(f"{count} not expressible: {why}")
    unread = visa_tools.unread(judged, NOT_COMPARED)
    print("".join(f"FAIL {line}\n" for line in unread), end="")
    print(f"{agree} agree, {wrong} differ, {sum(left.values())} left out")
    return wrong > 0 or bool(unread) or not judged


sys.exit(main())
