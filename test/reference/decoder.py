#!/usr/bin/env python3
"""examples/decoder on a small model of random weights, against the model's mathematics in Python: caches and logits of every position, and the
tokens that are chosen. Written from the published architecture (RMSNorm, rotary positions with halves exchanged, grouped queries, SiLU): it shares
nothing with the kernels or the driver but the file of weights. Values are rounded to bf16 where a tensor leaves a kernel."""
import array
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import visa_tools

DRIVER = pathlib.Path(visa_tools.SOURCE) / "examples" / "decoder" / "decoder.py"
# Of the largest value of a tensor. What is rounded to bf16 (2^-9 each) in other places, inside of attention, and sums in f32.
BOUND = 2.0 ** -5


def rounded(values):
    bits = [struct.unpack("<I", struct.pack("<f", v))[0] for v in values]
    return [struct.unpack("<f", struct.pack("<I", (b + 0x7FFF + (b >> 16 & 1)) >> 16 << 16))[0] for b in bits]


def floats(data):
    return [struct.unpack("<f", struct.pack("<I", b << 16))[0] for b in array.array("H", data)]


class Model:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        data = (folder / "model.safetensors").read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        self.tensors = {}
        for name, t in json.loads(data[8:8 + size]).items():
            begin, end = t["data_offsets"]
            values = floats(data[8 + size + begin:8 + size + end])
            columns = t["shape"][-1]
            self.tensors[name] = values if len(t["shape"]) == 1 else [values[i:i + columns] for i in range(0, len(values), columns)]
        self.cache = [[] for _ in range(self.config["num_hidden_layers"])]

    def weight(self, name):
        return self.tensors[name + ".weight"]

    def times(self, name, x):
        return rounded(sum(a * b for a, b in zip(row, x)) for row in self.weight(name))

    def norm(self, weight, x):
        root = math.sqrt(sum(v * v for v in x) / len(x) + self.config["rms_norm_eps"])
        return [v * w / root for v, w in zip(x, weight)]

    def heads(self, x, weight, position):
        """Each head normalized, then turned."""
        d, out = self.config["head_dim"], []
        for at in range(0, len(x), d):
            head = self.norm(weight, x[at:at + d])
            for i in range(d):
                angle = position * self.config["rope_theta"] ** (-2 * (i % (d // 2)) / d)
                cos, sin = rounded([math.cos(angle), math.sin(angle)])
                out.append(head[i] * cos + (head[i - d // 2] * sin if i >= d // 2 else -head[i + d // 2] * sin))
        return rounded(out)

    def attend(self, q, past):
        d, out = self.config["head_dim"], []
        group = self.config["num_attention_heads"] // self.config["num_key_value_heads"]
        for head in range(self.config["num_attention_heads"]):
            at, mine = head // group * d, q[head * d:head * d + d]
            scores = [sum(a * b for a, b in zip(mine, k[at:at + d])) / math.sqrt(d) for k, _ in past]
            powers = [math.exp(s - max(scores)) for s in scores]
            out += [sum(p * v[at + i] for p, (_, v) in zip(powers, past)) / sum(powers) for i in range(d)]
        return rounded(out)

    def token(self, token, position):
        """The logits after this token."""
        x = self.weight("model.embed_tokens")[token]
        for i, past in enumerate(self.cache):
            at = f"model.layers.{i}"
            n = rounded(self.norm(self.weight(f"{at}.input_layernorm"), x))
            q = self.heads(self.times(f"{at}.self_attn.q_proj", n), self.weight(f"{at}.self_attn.q_norm"), position)
            k = self.heads(self.times(f"{at}.self_attn.k_proj", n), self.weight(f"{at}.self_attn.k_norm"), position)
            past.append((k, self.times(f"{at}.self_attn.v_proj", n)))
            x = rounded(a + b for a, b in zip(x, self.times(f"{at}.self_attn.o_proj", self.attend(q, past))))
            n = rounded(self.norm(self.weight(f"{at}.post_attention_layernorm"), x))
            gate, up = self.times(f"{at}.mlp.gate_proj", n), self.times(f"{at}.mlp.up_proj", n)
            inner = rounded(g / (1 + math.exp(-g)) * u for g, u in zip(gate, up))
            x = rounded(a + b for a, b in zip(x, self.times(f"{at}.mlp.down_proj", inner)))
        return self.times("model.embed_tokens", rounded(self.norm(self.weight("model.norm"), x)))


def apart(found, wanted):
    """The largest difference, of the largest value."""
    return max(abs(a - b) for a, b in zip(found, wanted)) / max(abs(b) for b in wanted)


def main():
    tokens, count, context = [7, 300, 41, 500, 9, 210, 77], 3, 32  # a block of 4 tokens, two alone, the last one with its logits
    with tempfile.TemporaryDirectory() as scratch:
        model, kept = pathlib.Path(scratch) / "model", pathlib.Path(scratch) / "run"
        environment = dict(visa_tools.environment(), VISA_BIN=visa_tools.bin_dir())
        command = [sys.executable, str(DRIVER), str(model)]
        subprocess.run(command + ["--make=small"], check=True, env=environment)
        done = subprocess.run(command + ["--tokens=" + ",".join(map(str, tokens)), f"--count={count}", f"--keep={kept}", "--batch=4", "--check"], check=True, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        found = [int(t) for t in done.stdout.decode().split("\n")[0].split()[1:]]
        m, wanted, chain = Model(model), [], tokens + found
        for position in range(len(tokens) + count - 1):
            logits = m.token(chain[position], position)
            if position >= len(tokens) - 1:
                wanted.append((max(range(len(logits)), key=logits.__getitem__), logits))
        each = m.config["num_key_value_heads"] * m.config["head_dim"]
        worst = {"logits": apart(floats((kept / "logits.out").read_bytes()), wanted[-1][1])}
        for number, name in enumerate(("keys", "values")):
            data = floats((kept / f"{name}.out").read_bytes())
            for i, past in enumerate(m.cache):
                at = i * context * each
                worst[f"{name} of layer {i}"] = apart(data[at:at + len(past) * each], [v for row in past for v in row[number]])
        # A token may be another one only where its logit is as high as the bound says.
        wrong = [i for i, (token, logits) in enumerate(wanted) if logits[token] - logits[found[i]] > BOUND * max(map(abs, logits))]
        for name, by in worst.items():
            print(f"{'ok  ' if by <= BOUND else 'FAIL'} {name}: {by:.5f} of the largest value, at most {BOUND:.5f}")
        print(f"{'FAIL' if wrong else 'ok  '} tokens: {found}, by the mathematics {[token for token, _ in wanted]}")
        return 1 if wrong or max(worst.values()) > BOUND else 0


if __name__ == "__main__":
    sys.exit(main())
