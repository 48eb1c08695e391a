#!/usr/bin/env python3
"""The kernels of this folder: each is what `visac tune` answers to the question in the file next to it. Usage: library.py [--update] [NAME ...]
Without names all of them. Compares the files and README.md with the answers; --update writes both. VISA_BIN: where visac is."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GEMM = "C[m, n] = sum(k) A[m, k] * B[n, k]"
CONV = "O[y, x, f] = relu((sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c] + bias[f]) * scale[f]: f32)"
LAYER = "O[y, x, f] = relu(sum(c) I[y, x, c] * W[f, c] + bias[f])"
# Name, what it is, question, sizes, types of the operands and of the result.
KERNELS = [
    ("gemm_bf16", "matrix product", GEMM, "m=1024,n=1024,k=1024", "bf16", "bf16"),
    ("gemm_i8", "the same in integers", GEMM, "m=1024,n=1024,k=1024", "i8", "i32"),
    ("gemm_scaled", "quantized: scaled, rounded, in i8 again", "C[m, n] = (sum(k) A[m, k] * B[n, k] + bias[n]) * scale[n]: f32", "m=512,n=512,k=512", "i8", "i8"),
    ("gemm_turned", "weights that lie turned", "C[m, n] = sum(k) A[m, k] * B[k, n]", "m=512,n=1024,k=512", "bf16", "bf16"),
    ("gemm_batched", "a product for each of 16", "C[b, m, n] = sum(k) A[b, m, k] * B[b, n, k]", "b=16,m=256,n=256,k=128", "bf16", "bf16"),
    ("gemv", "matrix by vector", "y[n] = sum(k) x[k] * W[n, k]", "n=4096,k=4096", "bf16", "f32"),
    ("gemv_wide", "a decoder's MLP, one token", "y[n] = sum(k) x[k] * W[n, k]", "n=11008,k=4096", "bf16", "f32"),
    ("mlp_up", "first layer of an MLP, GELU", "H[m, n] = gelu(sum(k) X[m, k] * W[n, k] + bias[n])", "m=128,n=2048,k=512", "bf16", "bf16"),
    ("mlp_gate", "the same, SiLU", "H[m, n] = silu(sum(k) X[m, k] * W[n, k])", "m=128,n=2048,k=512", "bf16", "bf16"),
    ("mlp_down", "second layer, what came in is added", "Y[m, n] = sum(k) H[m, k] * W[n, k] + bias[n] + R[m, n]: bf16", "m=128,n=512,k=2048", "bf16", "bf16"),
    ("attention_scores", "prefill: scores of 8 heads", "S[h, q, s] = (sum(d) Q[h, q, d] * K[h, s, d]) * 0.088388", "h=8,q=256,s=256,d=128", "bf16", "bf16"),
    ("attention_values", "prefill: values of 8 heads", "O[h, q, d] = sum(s) P[h, q, s] * V[h, s, d]", "h=8,q=256,s=256,d=128", "bf16", "bf16"),
    ("attention_decode", "decode: scores of 4 queries that share keys", "S[q, s] = (sum(d) Q[q, d] * K[s, d]) * 0.088388", "q=4,s=2048,d=128", "bf16", "f32"),
    ("attention_softmax", "prefill: weights of 8 heads", "P[h, q, s] = softmax(s) ((sum(d) Q[h, q, d] * K[h, s, d]) * 0.088388)", "h=8,q=256,s=256,d=128", "bf16", "bf16"),
    ("attention_prefill", "prefill: 8 heads from end to end", "O[h, q, e] = sum(s) (softmax(s) ((sum(d) Q[h, q, d] * K[h, s, d]) * 0.088388) * V[h, s, e])", "h=8,q=256,s=256,d=128,e=128", "bf16", "bf16"),
    ("softmax", "rows to weights", "Y[r, c] = softmax(c) X[r, c]", "r=2048,c=256", "bf16", "bf16"),
    ("rmsnorm", "RMS norm", "Y[r, c] = X[r, c] / sqrt(mean(c) X[r, c] * X[r, c] + 1e-6) * g[c]", "r=2048,c=256", "bf16", "bf16"),
    ("layernorm", "layer norm", "Y[r, c] = (X[r, c] - mean(c) X[r, c]) / sqrt(mean(c) square(X[r, c] - mean(c) X[r, c]) + 1e-5) * g[c] + b[c]", "r=512,c=1024", "bf16", "bf16"),
    ("residual_add", "what came in is added", "Y[r, c] = X[r, c] + R[r, c]", "r=2048,c=1024", "bf16", "bf16"),
    ("row_largest", "the largest of each row", "y[r] = max(c) X[r, c]", "r=4096,c=1024", "bf16", "f32"),
    ("resnet_conv2_1x1", "ResNet-50, conv2_x, 1 x 1 to 256", LAYER, "y=56,x=56,c=64,f=256", "i8", "i32"),
    ("resnet_conv4_1x1", "ResNet-50, conv4_x, 1 x 1 from 1024", LAYER, "y=14,x=14,c=1024,f=256", "i8", "i32"),
    ("resnet_conv2_3x3", "ResNet-50, conv2_x, 3 x 3", CONV, "y=56,x=56,r=3,s=3,c=64,f=64", "i8", "i8"),
    ("resnet_conv3_3x3", "ResNet-50, conv3_x, 3 x 3", CONV, "y=28,x=28,r=3,s=3,c=128,f=128", "i8", "i8"),
    ("resnet_conv3_down", "ResNet-50, conv3_x, 3 x 3 by steps of 2", CONV.replace("y + r, x + s", "y*2 + r, x*2 + s"), "y=28,x=28,r=3,s=3,c=128,f=128", "i8", "i8"),
    ("resnet_conv3_shortcut", "ResNet-50, conv3_x, 1 x 1 by steps of 2, linear", "O[y, x, f] = (sum(r, s, c) I[y*2 + r, x*2 + s, c] * W[f, r, s, c] + bias[f]) * scale[f]: f32", "y=28,x=28,r=1,s=1,c=256,f=512", "i8", "i8"),
    ("resnet_conv2_expand", "ResNet-50, conv2_x, 1 x 1, what came in is added", "O[y, x, f] = relu(sum(c) I[y, x, c] * W[f, c] + bias[f] + R[y, x, f]: bf16)", "y=56,x=56,c=64,f=256", "bf16", "bf16"),
    ("resnet_stem", "ResNet-50, conv1, 7 x 7 of 3 channels by steps of 2", CONV.replace("y + r, x + s", "y*2 + r, x*2 + s"), "y=112,x=112,r=7,s=7,c=3,f=64", "i8", "i8"),
    ("mobilenet_depthwise", "MobileNetV2, a filter for each channel, ReLU6", "O[y, x, c] = min(relu(sum(r, s) I[y + r, x + s, c] * W[r, s, c] + bias[c]), 6)", "y=14,x=14,r=3,s=3,c=384", "bf16", "bf16"),
    ("mobilenet_project", "MobileNetV2, projection, linear", "O[y, x, f] = sum(c) I[y, x, c] * W[f, c] + bias[f]", "y=14,x=14,c=384,f=96", "bf16", "bf16"),
    ("mobilenet_expand", "MobileNetV2, expansion by 6, ReLU6", "O[y, x, f] = min(relu(sum(c) I[y, x, c] * W[f, c] + bias[f]), 6)", "y=28,x=28,c=32,f=192", "bf16", "bf16"),
]


def answer(kernel):
    name, _, question, sizes, dtype, out = kernel
    visac = os.path.join(os.environ.get("VISA_BIN") or os.path.join(HERE, "..", "..", "build", "dev", "bin"), "visac")
    ran = subprocess.run([visac, "tune", "--no-cache", question, "-D", sizes, f"--dtype={dtype}", f"--out={out}"], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{name}: {ran.stderr}")
    return ran.stdout


def row(kernel, text):
    name, what, question, sizes, dtype, out = kernel
    cycles, times = re.search(r"// (\d+) cycles, ([0-9.]+) times", text).groups()
    return f"| [{name}]({name}.vm) | {what} | `{question}` | {sizes.replace(',', ', ')} | {dtype}, {out} | {int(cycles):,} | {times} |"


def table(texts):
    return "\n".join(["| kernel | | question | sizes | operands, result | cycles | over the bound |", "|---|---|---|---|---|---|---|"]
                     + [row(kernel, texts[kernel[0]]) for kernel in KERNELS])


def read(name):
    path = os.path.join(HERE, name)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    updates = "--update" in sys.argv
    names = [x for x in sys.argv[1:] if not x.startswith("-")] or [kernel[0] for kernel in KERNELS]
    texts = {kernel[0]: read(kernel[0] + ".vm") for kernel in KERNELS}
    different = []
    for kernel in KERNELS:
        if kernel[0] not in names:
            continue
        made = answer(kernel)
        if made != texts[kernel[0]]:
            different.append(kernel[0] + ".vm")
            texts[kernel[0]] = made
            if updates:
                with open(os.path.join(HERE, kernel[0] + ".vm"), "w", encoding="utf-8") as file:
                    file.write(made)
    page = read("README.md")
    made = re.sub(r"(<!-- kernels -->\n).*(<!-- end -->)", lambda m: m[1] + table(texts) + "\n" + m[2], page, flags=re.S)
    if made != page:
        different.append("README.md")
        if updates:
            with open(os.path.join(HERE, "README.md"), "w", encoding="utf-8") as file:
                file.write(made)
    for name in different:
        print(f"{name}: {'written' if updates else 'not what visac tune answers: library.py --update'}")
    print(f"library: {len(names)} kernels, {len(different)} files differ")
    return 0 if updates or not different else 1


if __name__ == "__main__":
    sys.exit(main())
