#!/usr/bin/env python3
"""Greedy decoding with a Qwen3 model on the simulated machine.

    examples/decoder/decoder.py MODEL [--tokens=3,14,15] [--count=N] [--context=T] [--batch=S] [--check] [--report=FILE.html] [--keep=FOLDER]
    examples/decoder/decoder.py --make=small|full MODEL

MODEL is a folder with config.json and model.safetensors as the model is published. --make writes one of random weights: of a small model of the
same architecture, or of the full shapes of Qwen3-0.6B. Tokens are numbers; a tokenizer is left to the user. Only the standard library is used: the
script compiles decoder.vm for the model's shapes, writes a plan (docs/plan.md) and runs visa-run once; weights are read where they lie.
"""
import argparse
import array
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROWS = 4096  # of weights, that one run of the linear kernel takes: 8 for each of 256 slices in both clusters
CLOCK_HZ = 1.0e9

SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "vocab_size": 512, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 32, "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": True}
FULL = {"num_hidden_layers": 28, "hidden_size": 1024, "intermediate_size": 3072, "vocab_size": 151936, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": True}


def rows_of_slices(count, columns):
    """How `linear` shares its rows out: constants of its kernel."""
    to_a_slice = 4 if 512 <= columns and count <= 1024 else 8
    slices = -(-count // to_a_slice)  # of both clusters, if there are more than one has
    return {"ROWS": to_a_slice, "SLICES": slices if slices <= 256 else -(-slices // 16) * 8}


def piece_of_slice(inner, batch):
    """Of the inner size, to a slice of silu: pieces of 256 bytes where they are no more than slices."""
    return next(p for p in (128, 64, 32, 16, 256, 512, 1024) if inner % p == 0 and batch * inner // p <= 256)


def bf16(value):
    """The nearest bf16, ties to even, as its 16 bits."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def tensors_of(c):
    """Name and shape of every tensor, as the model is published."""
    h, q, p, d = c["hidden_size"], c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"], c["head_dim"]
    yield "model.embed_tokens.weight", [c["vocab_size"], h]
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}"
        yield f"{at}.input_layernorm.weight", [h]
        yield f"{at}.self_attn.q_proj.weight", [q, h]
        yield f"{at}.self_attn.k_proj.weight", [p, h]
        yield f"{at}.self_attn.v_proj.weight", [p, h]
        yield f"{at}.self_attn.q_norm.weight", [d]
        yield f"{at}.self_attn.k_norm.weight", [d]
        yield f"{at}.self_attn.o_proj.weight", [h, q]
        yield f"{at}.post_attention_layernorm.weight", [h]
        yield f"{at}.mlp.gate_proj.weight", [c["intermediate_size"], h]
        yield f"{at}.mlp.up_proj.weight", [c["intermediate_size"], h]
        yield f"{at}.mlp.down_proj.weight", [h, c["intermediate_size"]]
    yield "model.norm.weight", [h]
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", [c["vocab_size"], h]


def make(folder, config, seed=1):
    """A model of random weights: norms around 1, the others with the deviation that keeps sums of `I` products at about 1."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    header, at = {}, 0
    for name, shape in tensors_of(config):
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * math.prod(shape)]}
        at += 2 * math.prod(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    draw = random.Random(seed)
    with open(folder / "model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors_of(config):
            one = len(shape) == 1
            drawn = array.array("H", (bf16(draw.gauss(1, 0.1) if one else draw.gauss(0, shape[1] ** -0.5)) for _ in range(min(math.prod(shape), 65521))))
            data = drawn.tobytes()
            for left in range(2 * math.prod(shape), 0, -len(data)):  # a prime number of them, again and again: rows differ
                f.write(data[:left])


class Decoder:
    def __init__(self, model, context, folder, batch=8):
        self.model, self.context, self.folder, self.most_batch = model, context, folder, batch
        self.config = c = json.loads((model / "config.json").read_text())
        self.h, self.d, self.layers = c["hidden_size"], c["head_dim"], c["num_hidden_layers"]
        self.heads, self.key_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.kernels, self.buffers = {}, {}

    @staticmethod
    def program(name):
        """In VISA_BIN, else in PATH, else as ./visa demo builds it."""
        folder = os.environ.get("VISA_BIN")
        return os.path.join(folder, name) if folder else shutil.which(name) or str(HERE.parent.parent / "build" / "release" / "bin" / name)

    # ---- kernels ----

    def kernel(self, name, kernel, **sizes):
        """decoder.vm's kernel with these axes; once for each name."""
        if name not in self.kernels:
            file = f"{name}.bin"
            sizes = dict(H=self.h, L=self.config["intermediate_size"], N=self.key_heads, G=self.heads // self.key_heads, D=self.d, T=self.context,
                         O=self.key_heads * self.d, I=self.h, M=self.key_heads, **{}) | sizes
            command = [self.program("visac"), str(HERE / "decoder.vm"), f"--kernel={kernel}", "-o", str(self.folder / file)]
            for axis, size in sizes.items():
                command += ["-D", f"{axis}={size}"]
            subprocess.run(command, check=True)
            self.kernels[name] = {"file": file}
        return name

    # ---- buffers ----

    def buffer(self, name, kind, *shape, **more):
        self.buffers[name] = {"type": kind, "shape": list(shape), **more}
        return name

    def weight(self, name, tensor, *shape):
        return self.buffer(name, "bf16", *shape, file=f"{(self.model / 'model.safetensors').resolve()}:{tensor}")

    def raw(self, name, kind, code, numbers, *shape):
        (self.folder / name).write_bytes(array.array(code, numbers).tobytes())
        return self.buffer(name, kind, *shape, file=name)

    # ---- steps ----

    def linear(self, weight, rows, columns, x, out, out_at=None, batch=1):
        """y = x w^T: rows of at most ROWS a run, each of them a part of the weights' buffer. `out` is a buffer, whole or at indices."""
        steps, first = [], 0
        while first < rows:
            count = min(ROWS, rows - first)
            name = self.kernel(f"linear_{count}x{columns}" + (f"_of_{batch}" if batch > 1 else ""), "linear", O=count, I=columns, S=batch,
                               **rows_of_slices(count, columns))
            part, place = weight, out
            if count < rows:
                part = f"{weight}.{first}"
                for i in range(self.layers if "{l}" in weight else 1):
                    whole = weight.replace("{l}", str(i))
                    self.buffer(f"{whole}.{first}", "bf16", count, columns, of=whole, first=first * columns)
                place = self.buffer(f"{out}.{first}", "bf16", count, of=out, first=first)
            steps.append({"run": name, "ports": {"x": x, "w": part, "out": {"buffer": place, "at": out_at} if out_at else place}})
            first += count
        return steps

    def layer_weights(self):
        h, d, key, inner = self.h, self.d, self.key_heads, self.config["intermediate_size"]
        rows = self.heads * d
        for i in range(self.layers):
            at = f"model.layers.{i}"
            for short, tensor, *shape in (
                    ("input_norm", "input_layernorm", h), ("q", "self_attn.q_proj", rows, h), ("k", "self_attn.k_proj", key * d, h),
                    ("v", "self_attn.v_proj", key * d, h), ("q_norm", "self_attn.q_norm", d), ("k_norm", "self_attn.k_norm", d),
                    ("o", "self_attn.o_proj", h, rows), ("post_norm", "post_attention_layernorm", h), ("gate", "mlp.gate_proj", inner, h),
                    ("up", "mlp.up_proj", inner, h), ("down", "mlp.down_proj", h, inner)):
                self.weight(f"{i}.{short}", f"{at}.{tensor}.weight", *shape)

    def layer(self, batch=1):
        """The steps of layer l: of the token at t, or of a whole block b of the prompt. Of a block each token is turned and attends by itself, with all
        of the block's keys in the cache already: those after it are masked."""
        h, d, key = self.h, self.d, self.key_heads
        rows, inner = self.heads * d, self.config["intermediate_size"]
        names = ("x", "x1", "n", "q", "q_turned", "k", "attended", "o", "gate", "up", "inner", "down")
        of = {n: f"block_{n}" if batch > 1 else n for n in names}
        token = ["b", "j"] if batch > 1 else ["t"]
        end = f"_of_{batch}" if batch > 1 else ""

        def one(name):
            return {"buffer": of[name], "at": ["j"]} if batch > 1 else name

        def at(name, *before):
            return {"buffer": f"{name}_in_blocks" if batch > 1 else name, "at": [*before, *token]}
        norm, add, silu = (self.kernel(n + end, n, S=batch, PIECE=piece_of_slice(self.config["intermediate_size"], batch)) for n in ("norm", "add", "silu"))
        attend = [
            {"run": self.kernel("rope_q", "rope", M=self.heads), "ports": {"x": one("q"), "weight": "{l}.q_norm", "cos": at("cos"), "sin": at("sin"),
                                                                           "out": one("q_turned")}},
            {"run": self.kernel("attention", "attention"), "ports": {
                "q": one("q_turned"), "k": {"buffer": "keys", "at": ["l"]}, "v": {"buffer": "values", "at": ["l"]}, "mask": at("mask"), "scale": "scale",
                "out": one("attended")}}]
        turn = [{"run": self.kernel("rope_k", "rope", M=key), "ports": {"x": one("k"), "weight": "{l}.k_norm", "cos": at("cos"), "sin": at("sin"),
                                                                        "out": at("keys", "l")}}]
        if batch > 1:
            turn, attend = ([{"for": "j", "to": batch, "steps": steps}] for steps in (turn, attend))
        return [
            {"run": norm, "ports": {"x": of["x"], "weight": "{l}.input_norm", "out": of["n"]}},
            *self.linear("{l}.q", rows, h, of["n"], of["q"], batch=batch),
            *self.linear("{l}.k", key * d, h, of["n"], of["k"], batch=batch),
            *self.linear("{l}.v", key * d, h, of["n"], *(("values_in_blocks", ["l", "b"]) if batch > 1 else ("values", ["l", "t"])), batch=batch),
            *turn,
            *attend,
            *self.linear("{l}.o", h, rows, of["attended"], of["o"], batch=batch),
            {"run": add, "ports": {"x": of["x"], "y": of["o"], "out": of["x1"]}},
            {"run": norm, "ports": {"x": of["x1"], "weight": "{l}.post_norm", "out": of["n"]}},
            *self.linear("{l}.gate", inner, h, of["n"], of["gate"], batch=batch),
            *self.linear("{l}.up", inner, h, of["n"], of["up"], batch=batch),
            {"run": silu, "ports": {"gate": of["gate"], "up": of["up"], "out": of["inner"]}},
            *self.linear("{l}.down", h, inner, of["inner"], of["down"], batch=batch),
            {"run": add, "ports": {"x": of["x1"], "y": of["down"], "out": of["x"]}},
        ]

    def prefill(self, count, row):
        """Steps for as many whole blocks of the prompt's first `count` tokens as there are, and how many tokens these are."""
        c, h, d, t = self.config, self.h, self.d, self.context
        batch = max(s for s in (1, 2, 4, 8, 16, 32) if s <= min(max(count, 1), self.most_batch))
        if batch == 1 or max(self.heads * d, c["intermediate_size"], h) > ROWS:
            return [], 0
        for name, *shape in (("tokens", t // batch, batch), ("cos", t // batch, batch, d), ("sin", t // batch, batch, d), ("mask", t // batch, batch, t),
                             ("keys", self.layers, t // batch, batch, self.key_heads, d), ("values", self.layers, t // batch, batch, self.key_heads, d)):
            self.buffer(f"{name}_in_blocks", self.buffers[name]["type"], *shape, of=name)
        for name in ("x", "x1", "n", "q", "q_turned", "k", "attended", "o", "gate", "up", "inner", "down"):
            self.buffer(f"block_{name}", "bf16", batch, *self.buffers[name]["shape"])
        place = row | {"at": [{"buffer": "tokens_in_blocks", "at": ["b", "j"]}]}
        copies = {"for": "j", "to": batch, "steps": [{"run": "copy", "ports": {"row": place, "out": {"buffer": "block_x", "at": ["j"]}}}]}
        return [{"for": "b", "to": count // batch, "steps": [copies, {"for": "l", "to": self.layers, "steps": self.layer(batch)}]}], count // batch * batch

    def angles(self):
        half = self.d // 2
        each = [[t * self.config["rope_theta"] ** (-2 * i / self.d) for i in range(half)] for t in range(self.context)]
        self.raw("cos", "bf16", "H", [bf16(math.cos(a)) for row in each for a in row + row], self.context, self.d)
        self.raw("sin", "bf16", "H", [bf16(math.sin(a) * (1 if i >= half else -1)) for row in each for i, a in enumerate(row + row)], self.context, self.d)

    def plan(self, tokens, count):
        c, h, d, key, t = self.config, self.h, self.d, self.key_heads, self.context
        last = len(tokens) + count - 1  # positions that are run
        self.weight("embedding", "model.embed_tokens.weight", c["vocab_size"], h)
        self.weight("norm", "model.norm.weight", h)
        head = "embedding" if c["tie_word_embeddings"] else self.weight("head", "lm_head.weight", c["vocab_size"], h)
        for name, size in (("x", h), ("x1", h), ("n", h), ("q", self.heads * d), ("q_turned", self.heads * d), ("k", key * d), ("attended", self.heads * d),
                           ("o", h), ("gate", c["intermediate_size"]), ("up", c["intermediate_size"]), ("inner", c["intermediate_size"]), ("down", h),
                           ("logits", c["vocab_size"])):
            self.buffer(name, "bf16", size)
        self.layer_weights()
        self.buffer("keys", "bf16", self.layers, t, key, d)
        self.buffer("values", "bf16", self.layers, t, key, d)
        self.angles()
        self.raw("mask", "f32", "f", [0.0 if j <= i else -1e30 for i in range(t) for j in range(t)], t, t)
        self.raw("scale", "f32", "f", [d ** -0.5] * t, t)
        self.raw("tokens", "i32", "i", tokens + [0] * (t + 1 - len(tokens)), t + 1)
        row = {"buffer": "embedding", "at": [{"buffer": "tokens", "at": ["t"]}]}
        token = [{"run": self.kernel("copy", "copy"), "ports": {"row": row, "out": "x"}},
                 {"for": "l", "to": self.layers, "steps": self.layer()}]
        choose = [{"run": "norm", "ports": {"x": "x", "weight": "norm", "out": "n"}}, *self.linear(head, c["vocab_size"], h, "n", "logits"),
                  {"argmax": "logits", "into": {"buffer": "tokens", "at": ["t+1"]}}]
        blocks, done = self.prefill(len(tokens) - 1, row)
        steps = [*blocks, {"for": "t", "from": done, "to": len(tokens) - 1, "steps": token},
                 {"for": "t", "from": len(tokens) - 1, "to": last, "steps": token + choose}]
        return {"plan": 1, "kernels": self.kernels, "buffers": self.buffers, "steps": steps,
                "outputs": {"tokens": "tokens.out", "logits": "logits.out", "keys": "keys.out", "values": "values.out"}}

    def run(self, tokens, count, check, page):
        """The tokens after those that are given, and the plan's report."""
        (self.folder / "plan.json").write_text(json.dumps(self.plan(tokens, count), indent=1))
        command = [self.program("visa-run"), "--plan", str(self.folder / "plan.json"), "--max-cycles=0"]
        shown = subprocess.run(command + ["--report=json"] + (["--check=numbers"] if check else []), check=True, stdout=subprocess.PIPE)
        if page:
            page.write_bytes(subprocess.run(command + ["--report=html"], check=True, stdout=subprocess.PIPE).stdout)
        given = array.array("i", (self.folder / "tokens.out").read_bytes())
        return list(given[len(tokens):len(tokens) + count]), json.loads(shown.stdout)


def tell(report, positions, seconds):
    cycles = report["cycles"]
    print(f"{positions} positions, {report['runs']} runs of kernels, {cycles} cycles: {positions * CLOCK_HZ / cycles:.1f} tokens a second at 1 GHz; "
          f"lower bound {report['lower_bound']}, {100 * report['lower_bound'] / cycles:.1f} %; simulated in {seconds:.1f} s")
    for k in sorted(report["kernels"], key=lambda k: -k["runs"] * k["cycles"]):
        print(f"{100 * k['runs'] * k['cycles'] / cycles:6.1f} %  {k['runs']:6} x {k['cycles']:8} cycles, bound by {k['binds']:10}  {k['name']}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=pathlib.Path)
    p.add_argument("--make", choices=("small", "full"))
    p.add_argument("--tokens", default="1,2,3", type=lambda text: [int(t) for t in text.split(",")])
    p.add_argument("--count", default=4, type=int)
    p.add_argument("--context", default=32, type=int, help="positions of the cache: a multiple of 32, at most 256")
    p.add_argument("--batch", default=8, type=int, help="tokens of the prompt that go through a layer together, at most 32; 1: one after the other")
    p.add_argument("--check", action="store_true", help="compare each step with its kernel's reference")
    p.add_argument("--report", type=pathlib.Path, help="a page with the kernels on a timeline")
    p.add_argument("--keep", type=pathlib.Path, help="the folder for binaries, plan and results")
    a = p.parse_args()
    if a.make:
        make(a.model, SMALL if a.make == "small" else FULL)
        return 0
    if a.context % 32 or not 0 < a.context <= 256 or not a.tokens or a.count < 1 or len(a.tokens) + a.count > a.context + 1 or not 0 < a.batch <= 32:
        p.error("tokens and what follows them have to fit into --context, a multiple of 32 up to 256; --batch is 1 to 32")
    with tempfile.TemporaryDirectory() as scratch:
        folder = a.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        decoder = Decoder(a.model, a.context, folder, a.batch)
        found, report = decoder.run(a.tokens, a.count, a.check, a.report)
        print("tokens:", *found)
        tell(report, len(a.tokens) + a.count - 1, time.monotonic() - begun)
    return 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has all that it wanted, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
