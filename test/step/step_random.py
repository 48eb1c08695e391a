"""Random stream programs against whole nested lists: each operator's rule is written here once more, on lists, with no stream and no stop. Groups
may be empty; chunks are routed, merged and taken back. Of every third program what visac derives of each operator has to be what visa-run
counts. Usage: step_random.py [SEED [COUNT]]; VISA_LONG=1: many more."""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

BIN = os.environ.get("VISA_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/dev/bin"))


# ---- between nested lists and tokens. A value of rank 0 is {"v": number}: lists are dimensions. ----

def values(x, depth):
    """The lists `depth` dimensions down, in order."""
    return [x] if depth == 0 else [v for part in x for v in values(part, depth - 1)]


def mapped(x, depth, f):
    return f(x) if depth == 0 else [mapped(part, depth - 1, f) for part in x]


def tokens(x, rank):
    """x has rank + 1 dimensions. A bare stop of level k closes one empty innermost group and all around it."""
    out = []
    for part in x:
        body(part, rank, out)
    return out


def body(x, level, out):
    if level == 0:
        out.append(x)
        return
    for part in x:
        body(part, level - 1, out)
    if x and level > 1:  # the last inner stop rises
        out[-1] = f"S{level}"
    else:
        out.append(f"S{level}")


# ---- operators on nested lists: (text of the call, rank of the result, the result); None when the operator does not apply ----

def op_map(r, x, rank):
    return ".map(add, {0})", rank, mapped(x, rank + 1, lambda v: 2 * v)


def op_accum(r, x, rank):
    if rank == 0:
        return None
    b = r.randint(1, rank)
    return f".accum({b}, add)", rank - b, mapped(x, rank + 1 - b, lambda part: sum(values(part, b)))


def op_scan(r, x, rank):
    if rank == 0:
        return None
    b = r.randint(1, rank)

    def scan(part, depth, state):
        if depth == 0:
            state[0] += part
            return state[0]
        return [scan(p, depth - 1, state) for p in part]
    return f".scan({b}, add)", rank, mapped(x, rank + 1 - b, lambda part: scan(part, b, [0]))


def op_flatten(r, x, rank):
    if rank == 0:
        return None
    low = r.randint(0, rank - 1)
    high = r.randint(low + 1, rank)
    return f".flatten({low}, {high})", rank - (high - low), mapped(x, rank - high, lambda part: values(part, high - low + 1))


def op_reshape(r, x, rank):
    size = r.randint(1, 4)

    def chunks(part):
        out = [part[i:i + size] for i in range(0, len(part), size)]
        if out:
            out[-1] = out[-1] + [7] * (size - len(out[-1]))
        return out or ([[]] if rank > 0 else [])  # the canonical reading of an empty group
    return f".reshape(0, {size}, 7).0", rank + 1, mapped(x, rank, chunks)


def op_promote(r, x, rank):
    return ".promote()", rank + 1, [x] if x else []


def op_repeat(r, x, rank):
    n = r.randint(1, 3)
    empty = (lambda part: [[v] * n for v in part] or [[]]) if rank > 0 else (lambda part: [[v] * n for v in part])
    return f".repeat({n})", rank + 1, mapped(x, rank, empty)


def op_zip(r, x, rank):
    return r.choice([(".zip(&{0}.map(add, {0})).map(add)", rank, mapped(x, rank + 1, lambda v: 3 * v)),
                     (".zip(&{0}.map(add, {0})).map(second)", rank, mapped(x, rank + 1, lambda v: 2 * v))])


def op_buffer(r, x, rank):
    """n copies of each value through a buffer: read once, m times, or twice along a walk, which no empty buffer allows."""
    n, m, way = r.randint(1, 3), r.randint(1, 2), r.randrange(3)
    if way == 2 and rank > 0 and not all(values(x, rank)):
        return None
    copies, empty = f"{{0}}.repeat({n})", [] if rank == 0 else [[[]]]
    reference = f"&{copies}.accum(1, add)"
    if way == 0:
        return f".repeat({n}).bufferize(1).streamify({reference}, 0)", rank + 1, mapped(x, rank, lambda part: [[v] * n for v in part] or ([[]] if rank else []))
    if way == 1:
        return (f".repeat({n}).bufferize(1).streamify({reference}.repeat({m}), 1)", rank + 2,
                mapped(x, rank, lambda part: [[[v] * n for _ in range(m)] for v in part] or [e * m for e in empty]))
    return (f".repeat({n}).scan(1, add).bufferize(1).streamify({reference}, 0, [2, {n}], [0, 1])", rank + 2,
            mapped(x, rank, lambda part: [[[v * (i + 1) for i in range(n)]] * 2 for v in part]))


def op_parallelize(r, x, rank):
    """Dealt out in turn and taken back in turn."""
    b = r.randint(0, rank)
    n = r.randint(1, 3)
    chunks = values(x, rank + 1 - b)
    turn = r.randrange(n)
    return f".parallelize({b}, {n})[{turn}]", b, chunks[turn::n]


# ---- operators that need another source, or a name: they write statements of their own ----

class Writer:
    """The text of a program and what it is fed."""

    def __init__(self, r):
        self.r, self.generics, self.params, self.lines, self.feeds, self.sizes_of, self.name, self.count = r, [], [], [], {}, {}, "s0", 0

    def sizes(self, x, rank, stem="Q"):
        """New names for the sizes of a stream, which the writer knows to be what they are."""
        self.count += 1
        names = [f"{stem}{self.count}_{i}" for i in range(rank + 1)]
        self.generics += [f"const {n}: {'Ragged' if i else 'Dim'}" for i, n in enumerate(names)]
        self.sizes_of.update({n: [len(part) for part in values(x, i)] or [0] for i, n in enumerate(names)})
        return names

    def let(self, text):
        self.count += 1
        self.name = f"v{self.count}"
        self.lines.append(f"    let {self.name} = {text};")
        return self.name

    def feed(self, data, dims, tokens_of):
        self.count += 1
        name = f"in{self.count}"
        self.params.append(f"{name}: Stream<{data}, {{[{', '.join(dims)}]}}>")
        self.feeds[name] = tokens_of
        return name


def times(v, n):
    return tuple(n * row for row in v) if isinstance(v, tuple) else n * v


def routed(w, x, rank):
    """Chunks to n streams by selectors: one of the streams, all of them together again, or merged by arrival and taken apart again."""
    r = w.r
    b, n = r.randint(0, rank), r.randint(1, 3)
    dims = w.sizes(x, rank)
    way = r.choice(["one", "again", "merge"])
    if way == "again" and rank + 1 > 6:
        return None
    branches = way == "again" and r.random() < 0.5
    pick = (lambda _: {"pick": [r.randrange(n)]}) if branches else (lambda _: {"pick": sorted(r.sample(range(n), r.randint(0, n)))})
    selectors = mapped(x, rank + 1 - b, pick)
    picks = values(selectors, rank + 1 - b)
    selector = w.feed(f"Selector<{n}{', 1' if branches else ''}>", dims[:rank + 1 - b], tokens(selectors, rank - b))
    parts = w.let(f"{w.name}.assume([{', '.join(dims)}]).partition({b}, &{selector})")
    chunks = list(zip(values(x, rank + 1 - b), picks))
    streams = [[c for c, p in chunks if i in p["pick"]] for i in range(n)]
    w.sizes_of.update({f"{selector}{i}": [len(part)] for i, part in enumerate(streams)})
    if way == "merge":
        merged = w.let(f"eager_merge([{', '.join(f'{parts}[{i}]' for i in range(n))}])")
        total = w.sizes([c for chunks_of in streams for c in chunks_of], b)
        parts = w.let(f"{merged}.0.assume([{', '.join(total)}]).partition({b}, &{merged}.1.assume([{total[0]}]))")
    if way != "again":
        i = r.randrange(n)
        w.let(f"{parts}[{i}].map(identity)")
        return b, streams[i]
    changed = [f"{parts}[{i}]" + (f"{'.map(add, ' + parts + f'[{i}])' if i % 2 else ''}" if branches else "") for i in range(n)]
    w.let(f"reassemble({b}, [{', '.join(changed)}], &{selector})")

    def back(pair):
        chunk, p = pair
        return [mapped(chunk, b, lambda v: times(v, 2 if branches and i % 2 else 1)) for i in p["pick"]] or ([] if b == 0 else [canonical([], b)])
    it = iter([back(pair) for pair in chunks])
    return rank + 1, mapped(x, rank + 1 - b, lambda _: next(it))


def retiled(w, x, rank):
    """Each group as one tile with as many rows as it has values; the tiles are routed; rows again."""
    if rank == 0:
        return None
    b = w.r.randint(1, rank)
    padded = ".reshape(" in "".join(w.lines) # padding has no valid rows
    w.let(f"{w.name}.accum({b}, retile_rows)")
    rank, x = rank - b, canonical(mapped(x, rank + 1 - b, lambda part: tuple(values(part, b))), rank - b)
    for _ in range(w.r.randint(0, 2)):
        rank, x = routed(w, x, rank) or (rank, x)
        x = canonical(x, rank)
    w.let(f"{w.name}.map(add, {w.name}).flat_map(0, {'rows' if padded else w.r.choice(['rows', 'valid_rows'])})")
    return rank, mapped(x, rank, lambda part: [2 * v for tile in part for v in tile])


def expanded(w, x, rank):
    """The sum of each group, for each value of the group; the reference may be another structure of as many groups."""
    if rank == 0:
        return None
    b = w.r.randint(1, rank)
    dims = w.sizes(x, rank)
    x0 = w.let(f"{w.name}.assume([{', '.join(dims)}])")
    ones = "".join(".repeat(1)" for _ in range(b))
    w.let(f"{x0}.accum({b}, add){ones}.assume([{', '.join(dims[:rank + 1 - b] + ['1'] * b)}]).expand(&{x0}, {b})")

    def spread(part):
        total = sum(values(part, b))
        return mapped(part, b, lambda _: total)
    return rank, mapped(x, rank + 1 - b, spread)


WRITERS = [routed, routed, retiled, expanded]
OPERATORS = [op_zip, op_buffer, op_parallelize, op_map, op_accum, op_scan, op_flatten, op_reshape, op_promote, op_repeat]


def canonical(x, rank):
    """Deeper emptiness: a group without groups is read as one empty group."""
    if rank == 0:
        return x
    return [canonical(part, rank - 1) if part or rank == 1 else canonical([[]], rank - 1) for part in x]


def nested(r, rank):
    if rank < 0:
        return r.randint(-4, 4)
    return [nested(r, rank - 1) for _ in range(r.choice([0, 1, 1, 2, 3]) if r.random() < 0.9 else 5)]


def program(r):
    """Operators one after the other, on one random stream and what they need besides: source text, tokens in, tokens out."""
    rank = r.randint(0, 3)
    x = canonical(nested(r, rank), rank)
    w = Writer(r)
    w.feeds["s0"] = tokens(x, rank)
    w.params = [f"s0: Stream<Tile<f32, 1, 1>, {{[{', '.join(w.sizes(x, rank, 'D'))}]}}>"]
    routes = r.random() < 0.6
    for _ in range(r.randint(1, 5 if routes else 6)):
        made = None
        while made is None:
            made = step(w, x, rank, routes)
        rank, x = made
        x = canonical(x, rank)
        if len(str(x)) > 4000:
            break
    depth = 0 if w.feeds.keys() != {"s0"} or "streamify" in " ".join(w.lines) or "expand" in " ".join(w.lines) else r.choice([0, 0, 2])
    source = (f"#[stream(depth = {depth})]\nfn p<{', '.join(w.generics)}>({', '.join(w.params)}) {{\n" + "\n".join(w.lines) + f"\n    {w.name}\n}}\n")
    return source, w, tokens(x, rank)


def step(w, x, rank, routes):
    r = w.r
    if routes and r.random() < 0.4:
        return r.choice(WRITERS)(w, x, rank)
    made = r.choice(OPERATORS)(r, x, rank)
    if made is None or made[1] > 6:
        return None
    w.let(f"{w.name}{made[0].format(w.name)}{r.choice(['', '.broadcast()'])}")
    return made[1], made[2]


def run(d, source, feeds):
    command = [f"{BIN}/visa-run", f"{d}/p.bin", "--report=json", "--check", f"--sizes={d}/sizes.json", "--output", f"out={d}/out.json"]
    with open(os.path.join(d, "p.vm"), "w") as f:
        f.write(source)
    for name, fed in feeds.items():
        with open(os.path.join(d, name + ".json"), "w") as f:
            json.dump([t["pick"] if isinstance(t, dict) else t for t in fed], f)
        command += ["--input", f"{name}={d}/{name}.json"]
    r = subprocess.run([f"{BIN}/visac", f"{d}/p.vm", "-o", f"{d}/p.bin"], capture_output=True, text=True)
    if r.returncode != 0:
        return None, r.stderr
    r = subprocess.run(command, capture_output=True, text=True)
    nothing = r.returncode == 3 and "has a value: nothing was compared" in r.stderr
    if nothing: # a check says so; the tokens are compared here all the same
        command.remove("--check")
        r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode != 0:
        return None, r.stderr
    with open(f"{d}/out.json") as f:
        got = json.load(f)
    if nothing and any(not isinstance(t, str) for t in got):
        return None, "nothing is compared of an output with values"
    return got, r.stdout


def figures(operator):
    """(name, what visac says) of an operator in --emit=step-json; None where a size is not known."""
    outputs = [o["values"]["value"] for o in operator["outputs"]]
    onchip = {k: v["value"] for k, v in operator["onchip_bytes"].items()}
    return {"values": None if None in outputs else sum(outputs), "FLOPs": operator["flops"]["value"], "bytes off the chip": operator["offchip_bytes"]["value"],
            "bytes on the chip, paper": onchip["paper"], "bytes on the chip, artifact": onchip["artifact"]}


def derived(d, w, report):
    """What visac derives of each operator against what the simulator counted: (figures compared, figures not known from the writer's sizes, what
    differs). With the sizes that the writer of the program knows, what is known has to agree; which of them came where, after routing, only the values
    say. With the sizes of the run every figure has to be known."""
    compared = unknown = 0
    named = [x for name, sizes in w.sizes_of.items() for x in ("-D", f"{name}={','.join(map(str, sizes))}")]
    for given in (named, [f"--sizes={d}/sizes.json"]):
        done = subprocess.run([f"{BIN}/visac", f"{d}/p.vm", "--emit=step-json", *given], capture_output=True, text=True)
        if done.returncode != 0:
            return 0, 0, done.stderr
        for ours, counted in zip(json.loads(done.stdout)[0]["operators"], json.loads(report)["operators"], strict=True):
            seen = {"values": counted["values_out"], "FLOPs": counted["flops"], "bytes off the chip": counted["offchip_bytes"],
                    "bytes on the chip, paper": counted["onchip_bytes"]["paper"], "bytes on the chip, artifact": counted["onchip_bytes"]["artifact"]}
            for what, said in figures(ours).items():
                if given is named:
                    compared += said is not None
                    unknown += said is None
                if what.endswith("paper") and ours["operator"] == "bufferize" and counted["values_in"] == 0: # the run saw no buffer with anything in it
                    continue
                if said != seen[what] and (said is not None or given is not named):
                    return compared, unknown, f"{ours['name']}: {said} {what} derived, {seen[what]} counted, given {given}"
    return compared, unknown, ""


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else visa_tools.few(150)
    bad = known = unknown = 0
    with tempfile.TemporaryDirectory() as d:
        for i in range(seed, seed + count):
            source, w, wanted = program(random.Random(i))
            got, said = run(d, source, w.feeds)
            why = said if got is None else ""
            if got is not None and i % 3 == 0:
                more, less, why = derived(d, w, said)
                known, unknown = known + more, unknown + less
            if got is None or why or [flat(t) for t in got] != wanted:
                bad += 1
                if bad <= 5:
                    print(f"seed {i}:\n{source}in  {w.feeds}\nout {got and [flat(t) for t in got]}\nwant {wanted}\n{why}")
    print(f"{count - bad} of {count} random programs agree with nested lists; of every third {known} figures derived from its sizes are what was counted, "
          f"{unknown} need those of the run, and with them all are")
    return bad > 0 or known == 0


def flat(token):
    """The number of a 1 x 1 tile; a stop as it is."""
    if isinstance(token, dict):
        token = token["tile"]
    return token[0][0] if isinstance(token, list) else token


if __name__ == "__main__":
    sys.exit(main())
