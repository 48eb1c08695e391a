#!/usr/bin/env python3
"""Random kernels without addresses: copies, chains, weights, results that are stored and loaded again, tensors written in tiles, large ones that must
share memory. In the order that visac chooses they compute what the reference computes, and end no later than in the order of the text. The same again with
addresses written out, where bytes that the text writes again must not be written too early.

Usage: random_order.py [COUNT [FIRST-SEED]]"""
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import visa_tools  # noqa: E402

CYCLES = re.compile(r"^kernel k: (\d+) cycles", re.M)
HEAD = """axes![M = 32, N = 8, K = 64];
type Chip = m![1];
type Cluster = m![1 # 2];
type Slice = m![1 # 256];
"""
SMALL, LARGE = "m![M, K]", "m![M, K # 3072]"  # 4 and 192 KiB of a slice's 512


def needs(letter):
    """A step that takes one of the tensors in DM with those rows: a load where there is none."""
    def decorate(step):
        def taken(self):
            rows = [d for d in self.dm if d[1] == letter]
            return step(self, rows) if rows else self.load()
        return taken
    return decorate


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.count = [], 0
        self.hbm = [("x", "M"), ("y", "M"), ("w", "N")]  # bf16 tensors [M, K] or [N, K]
        self.dm, self.weights, self.results = [], [], []

    def new(self):
        self.count += 1
        return f"v{self.count}"

    def put(self, line):
        self.lines.append("    " + line)

    def load(self):
        source, rows = self.random.choice(self.hbm)
        name = self.new()
        element = "m![N, K]" if rows == "N" else self.random.choice([SMALL, SMALL, LARGE])
        self.put(f"let {name}: DmTensor<bf16, Chip, Cluster, Slice, {element}> = {source}.to_dm(&mut ctx.tdma, 0);")
        self.dm.append((name, rows, element))

    @needs("M")
    def chain(self, rows):
        source, name = self.random.choice(rows), self.new()
        element = self.random.choice([SMALL, LARGE])
        self.put(f"let {name}: DmTensor<bf16, Chip, Cluster, Slice, {element}> = ctx.main.begin({source[0]}.view())"
                 f".fetch::<bf16, m![M], m![K]>().collect().commit(0);")
        self.dm.append((name, "M", element))

    def in_dm(self, rows):
        return [d for d in self.dm if d[1] == rows]

    @needs("M")
    def tiles(self, rows):
        """Memory that is written half by half, from two tensors, and then read."""
        name = self.new()
        self.put(f"let mut {name} = unsafe {{ DmTensor::<bf16, Chip, Cluster, Slice, {SMALL}>::from_addr(0) }};")
        for half in (0, 1):
            source = self.random.choice(rows)
            tile = f".tile::<m![M / 16], 1, m![1 # 2, M % 16, {source[2][5:-1].split(', ')[-1]}]>({half})"
            target = f"{name}.view_mut().tile::<m![M / 16], 1, m![1 # 2, M % 16, K]>({half})"
            self.put(f"ctx.main.begin({source[0]}.view(){tile}).fetch::<bf16, m![M % 16], m![K]>().collect().commit_view::<_>({target});")
        self.dm.append((name, "M", SMALL))

    @needs("N")
    def store_weights(self, rows):
        name = self.new()
        self.put(f"let {name}: TrfTensor<bf16, Chip, Cluster, Slice, m![N], m![K]> = ctx.sub.begin({self.random.choice(rows)[0]}.view())"
                 f".fetch::<bf16, m![N], m![K]>().collect().to_trf(TrfAddress::Full);")
        self.weights = (self.weights + [name])[-2:]

    def contract(self):
        rows = self.in_dm("M")
        if not rows or not self.weights:
            return self.store_weights()
        name = self.new()
        self.put(f"let {name}: DmTensor<f32, Chip, Cluster, Slice, m![M, N]> = ctx.main.begin({self.random.choice(rows)[0]}.view())"
                 f".fetch::<bf16, m![M], m![K]>().collect().align::<m![M, K / 32], m![K % 32], _, _>(&{self.random.choice(self.weights)})"
                 f".contract::<m![1]>().accumulate::<m![M], m![N]>(AccumulationKind::Interleaved).commit(0);")
        out = self.new()
        self.put(f"let {out}: HbmTensor<f32, Chip, m![M, N]> = {name}.to_hbm(&mut ctx.tdma, 0);")
        self.results.append((out, "f32", "m![M, N]"))

    @needs("M")
    def save(self, rows):
        name = self.new()
        self.put(f"let {name}: HbmTensor<bf16, Chip, {SMALL}> = {self.random.choice(rows)[0]}.to_hbm(&mut ctx.tdma, 0);")
        self.hbm.append((name, "M"))
        self.results.append((name, "bf16", SMALL))

    def text(self):
        steps = [self.load, self.load, self.chain, self.tiles, self.store_weights, self.contract, self.contract, self.save]
        for _ in range(self.random.randrange(4, 24)):
            self.random.choice(steps)()
        while not self.results:
            self.save()
        results = self.random.sample(self.results, min(len(self.results), 3))
        types = [f"HbmTensor<{dtype}, Chip, {element}>" for _, dtype, element in results]
        names = [r[0] for r in results]
        one = len(results) == 1
        head = ("#[device(chip = 1)]\nfn k(ctx: &mut Context, x: &HbmTensor<bf16, Chip, m![M, K]>, y: &HbmTensor<bf16, Chip, m![M, K]>, "
                f"w: &HbmTensor<bf16, Chip, m![N, K]>) -> {types[0] if one else '(' + ', '.join(types) + ')'} {{\n")
        return HEAD + head + "\n".join(self.lines) + "\n    " + (names[0] if one else f"({', '.join(names)})") + "\n}\n"


NAMED = re.compile(r" +let (?:mut )?(v\d+)(?:: (Hbm|Dm|Trf)Tensor<(\w+), .*?(m!\[[^]]*\])>)? = (?:unsafe { (Dm)Tensor::<(\w+), .*?(m!\[[^]]*\])>::from_addr)?")


def bytes_of(dtype, element):
    sizes = {"M": 32, "N": 8, "K": 64, "K # 3072": 3072}
    count = 1
    for part in element[3:-1].split(", "):
        count *= sizes[part]
    return count * (2 if dtype == "bf16" else 4)


def with_addresses(text):
    """The program with addresses: the lowest that are free, so that bytes are written again as soon as the text no longer reads them. None: too large."""
    lines = text.splitlines()
    last = {}
    for i, line in enumerate(lines):
        for name in re.findall(r"\bv\d+\b", line):
            last[name] = i
    live = {"Hbm": [], "Dm": [], "Trf": []}  # (begin, end, last line)
    for i, line in enumerate(lines):
        named = NAMED.match(line)
        if not named:
            continue
        name, kind, dtype, element = named.group(1), *(named.group(2, 3, 4) if named.group(2) else named.group(5, 6, 7))
        if kind == "Trf":
            busy = [h for h, _, until in live[kind] if until >= i]
            half = 0 if 0 not in busy else 1
            if half in busy:
                return None
            live[kind].append((half, half + 1, last[name]))
            lines[i] = line.replace("TrfAddress::Full", ("TrfAddress::FirstHalf", "TrfAddress::SecondHalf")[half])
            continue
        begin, size = 1 << 20 if kind == "Hbm" else 0, bytes_of(dtype, element)
        for other, end, _ in sorted(x for x in live[kind] if x[2] >= i):
            if other < begin + size and begin < end:
                begin = end
        if kind == "Dm" and begin + size > 1 << 19:
            return None
        live[kind].append((begin, begin + size, last[name]))
        lines[i] = re.sub(r"\b0\)(;| };)$", f"{begin})\\1", line)
    return "\n".join(lines) + "\n"


def visac(path, *options):
    command = [os.path.join(visa_tools.bin_dir(), "visac"), path, *options]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=1800, check=False)


def judge(seed, path, options):
    """Cycles saved by the chosen order; ends the test where it is slower or computes something else."""
    text, chosen = visac(path, *options, "--order=source", "--report"), visac(path, *options, "--order=free", "--report")
    done = [text, chosen, visac(path, *options, "--order=free", "--check=numbers")]
    cycles = [CYCLES.search(d.stdout) for d in done[:2]]
    if all(d.returncode == 0 for d in done) and int(cycles[1].group(1)) <= int(cycles[0].group(1)):
        return int(cycles[0].group(1)) - int(cycles[1].group(1))
    with open(path, encoding="utf-8") as file:
        print(file.read())
    sys.exit(f"seed {seed} {' '.join(options)}: " + "\n".join(d.stdout[:400] + d.stderr for d in done))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(50)
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    refused, saved = 0, {"placed": [], "written": []}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.vm")
        for seed in range(first, first + count):
            text = Program(seed).text()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = visac(path, "--place=auto", "--order=source", "--emit=tables")
            if done.returncode != 0:
                other = [line for line in done.stderr.splitlines() if "error[" in line and "error[E-PLACE]" not in line]
                if other:
                    sys.exit(f"seed {seed}: {done.stderr}")
                refused += 1
                continue
            saved["placed"].append(judge(seed, path, ["--place=auto"]))
            written = with_addresses(text)
            if not written:
                continue
            with open(path, "w", encoding="utf-8") as file:
                file.write(written)
            saved["written"].append(judge(seed, path, []))
    for what, cycles in saved.items():
        print(f"{what}: {len(cycles)} kernels compute what they should, {sum(c > 0 for c in cycles)} end earlier, by {sum(cycles)} cycles in all")
    print(f"{refused} do not fit")
    return 0 if len(saved["placed"]) > refused and sum(saved["placed"]) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
