#!/usr/bin/env python3
"""The published decoder's kernels and the classifier's as they stand, with random weights of the real shapes, against the models' mathematics in NumPy.

    VISA_CORPUS=DIRECTORY test/corpus/model_kernels.py [-v] [PART OF A NAME]..

What is expected is written from the architecture (RMSNorm, grouped queries, rotary positions with halves exchanged, softmax over blocks of keys with a
running maximum, SiLU) in float64; of the kernels only the names of their ports and what each is for (../shared/conformance) have a part in it.
The largest difference of each output is held to BOUND of its largest value. Chained they are in model_chain.py. Skipped without VISA_CORPUS or
NumPy."""
import glob
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

HEADS, GROUP, DIM, KEYS, HIDDEN, INNER, LOGITS = 8, 2, 128, 512, 1024, 3072, 155648
ROW = 5  # of the caches, that a step writes
# Of the largest value of a tensor: values are bf16 (2^-9 each) wherever they leave a stage, a few times in a row.
BOUND = 2.0 ** -6


def bits(values):
    """float64 to bf16, to nearest even."""
    b = np.asarray(values, np.float32).view(np.uint32)
    return ((b + 0x7FFF + (b >> 16 & 1)) >> 16).astype(np.uint16)


def numbers(words):
    return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Draw:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.inputs = {}

    def take(self, name, shape, scale=1.0, about=0.0, single=False):
        """An input of bf16, or of f32: what is written is what is computed with."""
        values = self.random.standard_normal(shape) * scale + about
        self.inputs[name] = np.asarray(values, np.float32) if single else bits(values)
        return self.inputs[name].astype(np.float64) if single else numbers(self.inputs[name])

    def weight(self, name, rows, columns):
        return self.take(name, (rows, columns), columns ** -0.5)


def norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 6.25e-8) * weight


def turned(x, cos, sin):
    """The sign of the half that is exchanged is in sin."""
    return x * cos + np.roll(x, DIM // 2, axis=-1) * sin


def embedding(d):
    return {"out": d.take("input", HIDDEN)}


def projection(d):
    x = d.take("x", HIDDEN)
    wq, wk, wv = (d.weight(f"{n}_weight", rows, HIDDEN) for n, rows in (("q", HEADS * GROUP * DIM), ("k", HEADS * DIM), ("v", HEADS * DIM)))
    x = norm(x, d.take("input_rms_weight", HIDDEN, 0.1, 1))
    q_norm, k_norm = d.take("q_rms_weight", DIM, 0.1, 1), d.take("k_rms_weight", DIM, 0.1, 1)
    angle = ROW * 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2))
    d.inputs["cos"] = bits(np.cos(np.concatenate([angle, angle])))
    d.inputs["sin"] = bits(np.sin(np.concatenate([-angle, angle])))
    cos, sin = numbers(d.inputs["cos"]), numbers(d.inputs["sin"])
    d.inputs["kv_offset"] = np.array(ROW * HEADS * DIM * 2, np.int32)
    k_cache, v_cache = d.take("k_cache", (KEYS, HEADS, DIM)), d.take("v_cache", (KEYS, HEADS, DIM))
    k_cache[ROW] = turned(norm((wk @ x).reshape(HEADS, DIM), k_norm), cos, sin)
    v_cache[ROW] = (wv @ x).reshape(HEADS, DIM)
    return {"q_out": turned(norm((wq @ x).reshape(HEADS, GROUP, DIM), q_norm), cos, sin), "k_cache": k_cache, "v_cache": v_cache}


def block(d, live):
    """Of one block of keys: the largest product of a query with any of them, and what those that count add."""
    q = d.take("q", (HEADS, GROUP, DIM))
    k, v = d.take("k", (KEYS, HEADS, DIM)), d.take("v", (KEYS, HEADS, DIM))
    d.inputs["mask"] = (np.arange(KEYS) < live).astype(np.float32)
    scores = np.einsum("ngd,tnd->ngt", q, k) / np.sqrt(DIM)
    return scores, d.inputs["mask"].astype(np.float64), v, scores.max(axis=-1)


def attention_forward_first(d):
    scores, mask, v, largest = block(d, 300)
    e = np.exp(scores - largest[..., None]) * mask
    return {"max_hbm": largest, "sum_hbm": e.sum(axis=-1), "out_hbm": np.einsum("ngt,tnd->ngd", e, v)}


def attention_forward(d):
    scores, mask, v, largest = block(d, 170)
    old_largest = d.take("max_hbm", (HEADS, GROUP), 0.5, 3, single=True)
    old_sum = d.take("sum_hbm", (HEADS, GROUP), 1, 20, single=True)
    old_out = d.take("out_hbm", (HEADS, GROUP, DIM), 4)
    largest = np.maximum(largest, old_largest)
    e, rest = np.exp(scores - largest[..., None]) * mask, np.exp(old_largest - largest)
    return {"max_hbm": largest, "sum_hbm": old_sum * rest + e.sum(axis=-1),
            "out_hbm": old_out * rest[..., None] + np.einsum("ngt,tnd->ngd", e, v)}


def decoder(d):
    x = d.take("x", (HEADS, GROUP, DIM), 4) / (d.take("sum_hbm", (HEADS, GROUP), 1, 10, single=True)[..., None])
    r = d.take("rx_hbm", HIDDEN) + d.weight("o_weight", HIDDEN, HEADS * GROUP * DIM) @ x.reshape(-1)
    x = norm(r, d.take("post_rms_weight", HIDDEN, 0.1, 1))
    up, gate = d.weight("up_weight", INNER, HIDDEN) @ x, d.weight("gate_weight", INNER, HIDDEN) @ x
    return {"rx_hbm": r + d.weight("down_weight", HIDDEN, INNER) @ (gate / (1 + np.exp(-gate)) * up)}


def final_layer(d):
    """Rows after the vocabulary's are the host's, too. A prime number of numbers, again and again: rows differ."""
    x = norm(d.take("input", HIDDEN), d.take("rms_weight", HIDDEN, 0.1, 1))
    some = bits(d.random.standard_normal(1000003) * HIDDEN ** -0.5)
    d.inputs["lm_head_weight"] = np.resize(some, (LOGITS, HIDDEN))
    return {"out": np.concatenate([numbers(d.inputs["lm_head_weight"][i:i + 8192]) @ x for i in range(0, LOGITS, 8192)])}


def classifier(d):
    x = d.take("input", 800)
    h = np.maximum(d.weight("fc1_weight", 256, 800) @ x + d.take("fc1_bias", 256), 0)
    return {"out": d.weight("fc2_weight", 16, 256) @ h + d.take("fc2_bias", 16)}


KERNELS = {f"transformer::ops::{f.__name__}": f for f in (embedding, projection, attention_forward_first, attention_forward, decoder, final_layer)}
KERNELS["mnist::forward"] = classifier


def run(library, name, scratch):
    """{output: the largest difference, of its largest value}"""
    binary, short = os.path.join(scratch, "kernel.bin"), name.replace("::", "_")
    done = visa_tools.run(["visac", library, f"--kernel={name}", "-o", binary])
    if done.status:
        sys.exit(f"{name} is refused: {done.text()[:500]}")
    d = Draw(list(KERNELS).index(name) + 1)
    expected = KERNELS[name](d)
    arguments = ["visa-run", binary]
    for port, values in d.inputs.items():
        path = os.path.join(scratch, f"{short}_{port}.npy")
        np.save(path, values)
        arguments += ["--input", f"{port}={path}"]
    for port in expected:
        arguments += ["--output", f"{port}={os.path.join(scratch, f'{short}_{port}_out.npy')}"]
    done = visa_tools.run(arguments)
    if done.status:
        sys.exit(f"{name} does not run: {done.text()[:500]}")
    found = {}
    for port, values in expected.items():
        out = np.load(os.path.join(scratch, f"{short}_{port}_out.npy"))
        out = out.astype(np.float64) if out.dtype == np.float32 else numbers(out)
        found[port] = float(np.abs(out.reshape(values.shape) - values).max() / np.abs(values).max())
    return found


def main():
    corpus = os.environ.get("VISA_CORPUS")
    parts = [a for a in sys.argv[1:] if a != "-v"]
    libraries = glob.glob(os.path.join(corpus or "", "**", "src", "transformer", "kernel", "lm_head.rs"), recursive=True) if corpus else []
    if not libraries or not np:
        print("skipped: VISA_CORPUS names no snapshot with the decoder, or NumPy is absent")
        return visa_tools.SKIPPED
    library = os.path.join(os.path.dirname(libraries[0]), "..", "..", "lib.rs")
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in [n for n in KERNELS if not parts or any(p in n for p in parts)]:
            for port, difference in run(library, name, scratch).items():
                good = difference <= BOUND
                failed += not good
                if not good or "-v" in sys.argv:
                    print(f"{name}: {port}: largest difference {difference:.2g} of its largest value, bound {BOUND:.2g}{'' if good else ': WRONG'}")
    print(f"{len(KERNELS)} kernels, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
