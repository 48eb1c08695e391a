#!/usr/bin/env python3
"""The published decoder's six kernels as they stand, chained by a plan (docs/plan.md) on one HBM, against the model's mathematics in NumPy.

    VISA_CORPUS=DIRECTORY test/corpus/model_chain.py [-v] [--layers=N] [--check] [layer] [step]

`layer`: one layer at a position of the second block of keys: embedding, projection, both kernels of attention, decoder.
`step`: two steps of decoding through all layers (2 of them; 28 with VISA_LONG or --layers=28), head and greedy choice included: the second
step reads what the first one put into the caches, and the token that it chose.

Weights are random, of the real shapes, in a file as the model is published (examples/decoder makes it); caches begin with random rows. What is
expected is written from the architecture, twice: in float64, and with every tensor between two stages rounded to bf16, as any machine of bf16
must. A tensor may differ from float64 by FACTOR times what that rounding alone makes of it. Both are largest differences in parts of the tensor's
largest value. Skipped without VISA_CORPUS or NumPy."""
import glob
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402
import model_kernels as kernels  # noqa: E402

np = kernels.np
HEADS, GROUP, DIM, KEYS, HIDDEN, INNER = kernels.HEADS, kernels.GROUP, kernels.DIM, kernels.KEYS, kernels.HIDDEN, kernels.INNER
VOCABULARY, ROWS_OF_HEAD = 151936, 155648  # the kernel's head has rows after the vocabulary's
THETA = 1.0e6
FACTOR = 4.0
NAMES = ("embedding", "projection", "attention_forward_first", "attention_forward", "decoder", "final_layer")
MATRICES = {"q_weight": "self_attn.q_proj", "k_weight": "self_attn.k_proj", "v_weight": "self_attn.v_proj", "o_weight": "self_attn.o_proj",
            "up_weight": "mlp.up_proj", "gate_weight": "mlp.gate_proj", "down_weight": "mlp.down_proj"}
VECTORS = {"input_rms_weight": "input_layernorm", "q_rms_weight": "self_attn.q_norm", "k_rms_weight": "self_attn.k_norm",
           "post_rms_weight": "post_attention_layernorm"}


def example():
    path = pathlib.Path(visa_tools.SOURCE) / "examples" / "decoder" / "decoder.py"
    spec = importlib.util.spec_from_file_location("decoder_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Weights:
    """The tensors of a file as it is published, read where they lie."""

    def __init__(self, file):
        self.bytes = np.memmap(file, np.uint8, "r")
        size = int(self.bytes[:8].view(np.uint64)[0])
        self.header, self.first = json.loads(bytes(self.bytes[8:8 + size])), 8 + size

    def words(self, name):
        at = self.header[name]
        begin, end = at["data_offsets"]
        return self.bytes[self.first + begin:self.first + end].view(np.uint16).reshape(at["shape"])

    def layer(self, number, port):
        return kernels.numbers(self.words(f"model.layers.{number}.{(MATRICES | VECTORS)[port]}.weight"))


class Model:
    """The mathematics. `near` is what happens to a tensor between two stages: nothing, or the nearest bf16."""

    def __init__(self, weights, caches, near):
        self.weights, self.near = weights, near
        self.keys, self.values = caches["keys"].copy(), caches["values"].copy()

    def layer(self, number, x, position):
        w, near = {p: self.weights.layer(number, p) for p in MATRICES | VECTORS}, self.near
        n = near(kernels.norm(x, w["input_rms_weight"]))
        angle = position * THETA ** (-np.arange(DIM // 2) / (DIM // 2))
        cos, sin = near(np.cos(np.concatenate([angle, angle]))), near(np.sin(np.concatenate([-angle, angle])))
        q = near(kernels.norm(near(w["q_weight"] @ n).reshape(HEADS, GROUP, DIM), w["q_rms_weight"]))
        k = near(kernels.norm(near(w["k_weight"] @ n).reshape(HEADS, DIM), w["k_rms_weight"]))
        q = near(kernels.turned(q, cos, sin))
        self.keys[number, position] = near(kernels.turned(k, cos, sin))
        self.values[number, position] = near(w["v_weight"] @ n).reshape(HEADS, DIM)
        keys, values = self.keys[number, :position + 1], self.values[number, :position + 1]
        scores = near(np.einsum("hgd,thd->hgt", q, keys) / np.sqrt(DIM))
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        attended = near(near(np.einsum("hgt,thd->hgd", near(e), values)) / e.sum(axis=-1)[..., None])
        x = near(x + near(w["o_weight"] @ attended.reshape(-1)))
        n = near(kernels.norm(x, w["post_rms_weight"]))
        gate, up = near(w["gate_weight"] @ n), near(w["up_weight"] @ n)
        return near(x + near(w["down_weight"] @ near(gate / (1 + np.exp(-gate)) * up)))

    def row(self, token):
        return kernels.numbers(self.weights.words("model.embed_tokens.weight")[token])

    def logits(self, x):
        n = self.near(kernels.norm(x, kernels.numbers(self.weights.words("model.norm.weight"))))
        table = self.weights.words("model.embed_tokens.weight")
        return self.near(np.concatenate([kernels.numbers(table[i:i + 8192]) @ n for i in range(0, VOCABULARY, 8192)]))


class Chain:
    """The plan of the published kernels: the steps that their driver launches, for positions `first` .. `last` - 1 of one block of keys."""

    def __init__(self, library, scratch, weights_file):
        self.scratch, self.weights_file = scratch, weights_file
        self.kernels, self.buffers = {}, {}
        for name in NAMES:
            binary = os.path.join(scratch, f"{name}.bin")
            done = visa_tools.run(["visac", library, f"--kernel=transformer::ops::{name}", "-o", binary], timeout=600)
            if done.status:
                sys.exit(f"{name} is refused: {done.text()[:500]}")
            self.kernels[name] = {"file": binary}

    def buffer(self, name, kind, shape, values=None, **more):
        if values is not None:
            more["file"] = os.path.join(self.scratch, f"{name}.npy")
            np.save(more["file"], values)
        self.buffers[name] = {"type": kind, "shape": list(shape), **more}

    def published(self, name, tensor, *shape, **more):
        self.buffer(name, "bf16", shape, file=f"{self.weights_file}:{tensor}", **more)

    def lay_out(self, layers, caches, positions, token, head):
        blocks = caches["keys"].shape[1] // KEYS
        for i in range(layers):
            for port, tensor in MATRICES.items():
                rows = {"q": HEADS * GROUP * DIM, "k": HEADS * DIM, "v": HEADS * DIM, "o": HIDDEN, "u": INNER, "g": INNER, "d": HIDDEN}[port[0]]
                columns = {"o": HEADS * GROUP * DIM, "d": INNER}.get(port[0], HIDDEN)
                self.published(f"{i}.{port}", f"model.layers.{i}.{tensor}.weight", rows, columns)
            for port, tensor in VECTORS.items():
                self.published(f"{i}.{port}", f"model.layers.{i}.{tensor}.weight", DIM if port[0] in "qk" else HIDDEN)
        if head:  # the embedding's rows, and as many of zeros as the kernel has after them
            self.buffer("head", "bf16", (ROWS_OF_HEAD, HIDDEN))
            self.published("embedding", "model.embed_tokens.weight", VOCABULARY, HIDDEN, of="head", first=0)
            self.published("norm", "model.norm.weight", HIDDEN)
            self.buffer("logits", "bf16", (len(positions), ROWS_OF_HEAD))
        else:
            self.published("embedding", "model.embed_tokens.weight", VOCABULARY, HIDDEN)
        for name in ("keys", "values"):
            self.buffer(name, "bf16", (layers, blocks, KEYS, HEADS, DIM), kernels.bits(caches[name]).reshape(layers, blocks, KEYS, HEADS, DIM))
        angle = np.arange(blocks * KEYS)[:, None] * THETA ** (-np.arange(DIM // 2) / (DIM // 2))
        self.buffer("cos", "bf16", (blocks, KEYS, DIM), kernels.bits(np.cos(np.concatenate([angle, angle], axis=1))).reshape(blocks, KEYS, DIM))
        self.buffer("sin", "bf16", (blocks, KEYS, DIM), kernels.bits(np.sin(np.concatenate([-angle, angle], axis=1))).reshape(blocks, KEYS, DIM))
        self.buffer("offset", "i32", (KEYS,), np.arange(KEYS, dtype=np.int32) * HEADS * DIM * 2)
        self.buffer("causal", "f32", (KEYS, KEYS), np.tril(np.ones((KEYS, KEYS), np.float32)))
        self.buffer("all", "f32", (KEYS,), np.ones(KEYS, np.float32))
        self.buffer("tokens", "i32", (KEYS + 1,), np.full(KEYS + 1, token, np.int32))
        self.buffer("x", "bf16", (HIDDEN,))
        self.buffer("states", "bf16", (len(positions), HIDDEN))
        self.buffer("q", "bf16", (HEADS, GROUP, DIM))
        self.buffer("max", "f32", (HEADS, GROUP))
        self.buffer("sum", "f32", (HEADS, GROUP))
        self.buffer("attended", "bf16", (HEADS, GROUP, DIM))

    def layer(self, block):
        weights = {p: f"{{l}}.{p}" for p in MATRICES | VECTORS}
        at = {"k": lambda b: {"buffer": "keys", "at": ["l", b]}, "v": lambda b: {"buffer": "values", "at": ["l", b]}}
        steps = [{"run": "projection", "ports": {
            "x": "x", "k_cache": at["k"](block), "v_cache": at["v"](block), "q_out": "q", "kv_offset": {"buffer": "offset", "at": ["t"]},
            "cos": {"buffer": "cos", "at": [block, "t"]}, "sin": {"buffer": "sin", "at": [block, "t"]},
            **{p: weights[p] for p in ("q_weight", "k_weight", "v_weight", "input_rms_weight", "q_rms_weight", "k_rms_weight")}}}]
        for b in range(block + 1):
            steps.append({"run": "attention_forward" if b else "attention_forward_first", "ports": {
                "q": "q", "k": at["k"](b), "v": at["v"](b), "mask": {"buffer": "causal", "at": ["t"]} if b == block else "all",
                "max_hbm": "max", "sum_hbm": "sum", "out_hbm": "attended"}})
        return steps + [{"run": "decoder", "ports": {"x": "attended", "sum_hbm": "sum", "rx_hbm": "x", **{
            p: weights[p] for p in ("o_weight", "post_rms_weight", "up_weight", "gate_weight", "down_weight")}}}]

    def run(self, layers, block, first, count, head, options):
        """Steps at rows first, first + 1, .. of the block."""
        steps = [{"run": "embedding", "ports": {"input": {"buffer": "embedding", "at": [{"buffer": "tokens", "at": ["t"]}]}, "out": "x"}},
                 {"for": "l", "to": layers, "steps": self.layer(block)},
                 {"run": "embedding", "ports": {"input": "x", "out": {"buffer": "states", "at": [f"t-{first}"]}}}]
        if head:
            logits = {"buffer": "logits", "at": [f"t-{first}"]}
            steps += [{"run": "final_layer", "ports": {"input": "x", "rms_weight": "norm", "lm_head_weight": "head", "out": logits}}]
        plan = []
        for i in range(count):  # the choice is among the vocabulary's rows, which are a part of each step's logits
            plan.append({"for": "t", "from": first + i, "to": first + i + 1, "steps": list(steps)})
            if head:
                self.buffer(f"chosen{i}", "bf16", (VOCABULARY,), of="logits", first=i * ROWS_OF_HEAD)
                plan[-1]["steps"].append({"argmax": f"chosen{i}", "into": {"buffer": "tokens", "at": ["t+1"]}})
        used = {name: self.kernels[name] for name in NAMES if block or name != "attention_forward"}
        outputs = {name: os.path.join(self.scratch, f"{name}.out.npy") for name in ("states", "keys", "values", "tokens") + (("logits",) if head else ())}
        path = os.path.join(self.scratch, "plan.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"plan": 1, "kernels": used, "buffers": self.buffers, "steps": plan, "outputs": outputs}, file)
        begun = os.times()
        done = visa_tools.run(["visa-run", "--plan", path, "--max-cycles=0", "--report=json", *options], timeout=3600)
        spent = os.times()
        if done.status:
            sys.exit(f"the plan does not run: {done.text()[:1500]}")
        report = json.loads(done.out[done.out.index(b"{"):])
        report["seconds"] = spent.children_user + spent.children_system - begun.children_user - begun.children_system
        return {name: np.load(file) for name, file in outputs.items()}, report


def caches_of(layers, positions, filled):
    random = np.random.default_rng(7)
    found = {}
    for name in ("keys", "values"):
        found[name] = np.zeros((layers, positions, HEADS, DIM))
        found[name][:, :filled] = kernels.numbers(kernels.bits(random.standard_normal((layers, filled, HEADS, DIM))))
    return found


def difference(found, expected):
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def compare(what, found, exact, near, verbose):
    made, allowed = difference(found, exact), FACTOR * difference(near, exact)
    if verbose or made > allowed:
        print(f"{what}: largest difference {made:.2g} of its largest value, bound {allowed:.2g}{': WRONG' if made > allowed else ''}")
    return made <= allowed


def go(library, scratch, weights_file, what, layers, options, verbose):
    block, first, count, head = (1, 5, 1, False) if what == "layer" else (0, 5, 2, True)
    token, position = 1234, block * KEYS + first
    caches = caches_of(layers, (block + 1) * KEYS, position)
    chain = Chain(library, scratch, weights_file)
    chain.lay_out(layers, caches, range(count), token, head)
    found, report = chain.run(layers, block, first, count, head, options)
    weights = Weights(weights_file)
    models = [Model(weights, caches, near) for near in (lambda x: x, lambda x: kernels.numbers(kernels.bits(x)))]
    tokens, good = [token, *found["tokens"][first + 1:first + count]], True
    for i in range(count):
        states = [model.row(tokens[i]) for model in models]
        for l in range(layers):
            states = [model.layer(l, x, position + i) for model, x in zip(models, states)]
        good &= compare(f"{what}, {layers} layers, position {position + i}: state", kernels.numbers(found["states"][i]), *states, verbose)
        if head:
            exact, near = (model.logits(x) for model, x in zip(models, states))
            logits = kernels.numbers(found["logits"][i])
            good &= compare(f"{what}, position {position + i}: logits", logits[:VOCABULARY], exact, near, verbose)
            chosen = int(found["tokens"][first + i + 1])
            if chosen != int(logits[:VOCABULARY].argmax()) or np.any(logits[VOCABULARY:] != 0):
                print(f"{what}: token {chosen} is not the largest logit, or rows of zeros give something else: WRONG")
                good = False
            if verbose:
                print(f"  token {chosen}; of the exact logits {int(exact.argmax())}, which are {exact[chosen]:.4f} and {exact.max():.4f} there")
    for name in ("keys", "values"):
        cache = kernels.numbers(found[name]).reshape(caches[name].shape)
        rows = np.s_[:, position:position + count]
        good &= compare(f"{what}: new rows of {name}", cache[rows], *(getattr(m, name)[rows] for m in models), verbose)
        rest = np.delete(cache, np.s_[position:position + count], axis=1)
        if np.any(rest != np.delete(caches[name], np.s_[position:position + count], axis=1)):
            print(f"{what}: other rows of {name} have changed: WRONG")
            good = False
    if verbose:
        print(f"  {report['runs']} runs of kernels, {report['cycles']} cycles, {report['seconds']:.1f} s of processor time, check and files included")
        for k in report["kernels"]:
            print(f"  {k['runs']:4} x {k['cycles']:8} cycles, {k['binds']}: {k['name']}")
    return good


def main():
    corpus = os.environ.get("VISA_CORPUS")
    parts = [a for a in sys.argv[1:] if not a.startswith("-")] or ["layer", "step"]
    named = [int(a.split("=")[1]) for a in sys.argv[1:] if a.startswith("--layers=")]
    libraries = glob.glob(os.path.join(corpus or "", "**", "src", "transformer", "kernel", "lm_head.rs"), recursive=True) if corpus else []
    if not libraries or not np:
        print("skipped: VISA_CORPUS names no snapshot with the decoder, or NumPy is absent")
        return visa_tools.SKIPPED
    library = os.path.join(os.path.dirname(libraries[0]), "..", "..", "lib.rs")
    layers = (named or [28 if visa_tools.LONG else 2])[0]
    decoder, begun, wrong = example(), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as scratch:
        model = pathlib.Path(scratch) / "model"
        decoder.make(model, decoder.FULL | {"num_hidden_layers": layers})
        options = ["--check=numbers"] if "--check" in sys.argv else []
        for what in parts:
            wrong += not go(library, scratch, str(model / "model.safetensors"), what, 1 if what == "layer" else layers, options, "-v" in sys.argv)
    print(f"{len(parts)} chains of the published decoder, {wrong} wrong, {time.monotonic() - begun:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
