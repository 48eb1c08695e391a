#!/usr/bin/env python3
"""Every distinct layer of ResNet-50 and MobileNetV2, one image, as questions to `visac tune`: the table of docs/tune-measured.md.
Usage: layers.py BIN_DIR [--type=i8|bf16] [--csv=FILE] [--keep=FOLDER] [WORD ...]: of the layers whose names have all words; times of the
attainable bound, cycles and bound of each, and the middle and the worst of each kind. --csv writes the rows, so that two builds can be
compared, --keep the answers."""
import concurrent.futures
import csv
import os
import re
import statistics
import subprocess
import sys

POINTWISE, STEPS, WINDOW, STEM, DEPTHWISE, FULL = "1 x 1", "1 x 1 by steps of 2", "3 x 3", "7 x 7 of 3 channels", "depthwise", "fully connected"
KINDS = [POINTWISE, STEPS, WINDOW, STEM, DEPTHWISE, FULL]
NONE, RELU, RELU6 = "{}", "relu({})", "min(relu({}), 6)"

# Kind, size of the result's image, channels in and out, step, activation.
RESNET = [(STEM, 112, 3, 64, 2, RELU),
          (POINTWISE, 56, 64, 64, 1, RELU), (WINDOW, 56, 64, 64, 1, RELU), (POINTWISE, 56, 64, 256, 1, NONE), (POINTWISE, 56, 256, 64, 1, RELU),
          (POINTWISE, 56, 256, 128, 1, RELU), (WINDOW, 28, 128, 128, 2, RELU), (POINTWISE, 28, 128, 512, 1, NONE), (POINTWISE, 28, 512, 128, 1, RELU),
          (WINDOW, 28, 128, 128, 1, RELU), (STEPS, 28, 256, 512, 2, NONE),
          (POINTWISE, 28, 512, 256, 1, RELU), (WINDOW, 14, 256, 256, 2, RELU), (POINTWISE, 14, 256, 1024, 1, NONE), (POINTWISE, 14, 1024, 256, 1, RELU),
          (WINDOW, 14, 256, 256, 1, RELU), (STEPS, 14, 512, 1024, 2, NONE),
          (POINTWISE, 14, 1024, 512, 1, RELU), (WINDOW, 7, 512, 512, 2, RELU), (POINTWISE, 7, 512, 2048, 1, NONE), (POINTWISE, 7, 2048, 512, 1, RELU),
          (WINDOW, 7, 512, 512, 1, RELU), (STEPS, 7, 1024, 2048, 2, NONE),
          (FULL, 1, 2048, 1000, 1, NONE)]
MOBILENET = [(WINDOW, 112, 3, 32, 2, RELU6), (DEPTHWISE, 112, 32, 32, 1, RELU6), (POINTWISE, 112, 32, 16, 1, NONE), (POINTWISE, 112, 16, 96, 1, RELU6),
             (DEPTHWISE, 56, 96, 96, 2, RELU6), (POINTWISE, 56, 96, 24, 1, NONE), (POINTWISE, 56, 24, 144, 1, RELU6), (DEPTHWISE, 56, 144, 144, 1, RELU6),
             (POINTWISE, 56, 144, 24, 1, NONE), (DEPTHWISE, 28, 144, 144, 2, RELU6), (POINTWISE, 28, 144, 32, 1, NONE), (POINTWISE, 28, 32, 192, 1, RELU6),
             (DEPTHWISE, 28, 192, 192, 1, RELU6), (POINTWISE, 28, 192, 32, 1, NONE), (DEPTHWISE, 14, 192, 192, 2, RELU6), (POINTWISE, 14, 192, 64, 1, NONE),
             (POINTWISE, 14, 64, 384, 1, RELU6), (DEPTHWISE, 14, 384, 384, 1, RELU6), (POINTWISE, 14, 384, 64, 1, NONE), (POINTWISE, 14, 384, 96, 1, NONE),
             (POINTWISE, 14, 96, 576, 1, RELU6), (DEPTHWISE, 14, 576, 576, 1, RELU6), (POINTWISE, 14, 576, 96, 1, NONE), (DEPTHWISE, 7, 576, 576, 2, RELU6),
             (POINTWISE, 7, 576, 160, 1, NONE), (POINTWISE, 7, 160, 960, 1, RELU6), (DEPTHWISE, 7, 960, 960, 1, RELU6), (POINTWISE, 7, 960, 160, 1, NONE),
             (POINTWISE, 7, 960, 320, 1, NONE), (POINTWISE, 7, 320, 1280, 1, RELU6), (FULL, 1, 1280, 1000, 1, NONE)]


def question_of(layer, dtype):
    kind, size, channels, filters, step, activation = layer
    by = f"*{step}" if step > 1 else ""
    image, side, sizes = f"I[y{by} + r, x{by} + s, c]", {STEPS: 1, STEM: 7}.get(kind, 3), dict(y=size, x=size)
    column = "f"
    if kind == FULL:
        text, sizes, out = "sum(c) x[c] * W[f, c]", dict(c=channels, f=filters), "y[f]"
    elif kind == POINTWISE:
        text, out = "sum(c) I[y, x, c] * W[f, c]", "O[y, x, f]"
        sizes.update(c=channels, f=filters)
    elif kind == DEPTHWISE:
        text, out, column = f"sum(r, s) {image} * W[r, s, c]", "O[y, x, c]", "c"
        sizes.update(r=side, s=side, c=channels)
    else:
        text, out = f"sum(r, s, c) {image} * W[f, r, s, c]", "O[y, x, f]"
        sizes.update(r=side, s=side, c=channels, f=filters)
    text = f"{text} + bias[{column}]"
    if dtype == "i8":
        text = f"({text}) * scale[{column}]: f32"
    return f"{out} = {activation.format(text)}", ",".join(f"{axis}={n}" for axis, n in sizes.items())


def name_of(layer, dtype):
    kind, size, channels, filters, step, _ = layer
    by = f" by steps of {step}" if step > 1 and kind in (WINDOW, DEPTHWISE) else ""
    return f"{kind}{by}: {size} x {size} x {channels} to {filters}, {dtype}"


def answer(bin_dir, layer, dtype):
    question, sizes = question_of(layer, dtype)
    ran = subprocess.run([os.path.join(bin_dir, "visac"), "tune", "--no-cache", question, "-D", sizes, f"--dtype={dtype}", f"--out={dtype}"],
                         capture_output=True, text=True)
    found = re.search(r"// (\d+) cycles, [0-9.]+ times the least that the timing model allows, (\d+)", ran.stdout)
    if not found:
        return layer, dtype, None, None, ran.stderr
    return layer, dtype, int(found[1]), int(found[2]), ran.stdout


def main():
    options = dict(x[2:].split("=", 1) for x in sys.argv[1:] if x.startswith("--"))
    bin_dir, *words = [x for x in sys.argv[1:] if not x.startswith("--")]
    asked = [(layer, dtype) for layer in RESNET + MOBILENET for dtype in ([options["type"]] if "type" in options else ["i8", "bf16"])
             if all(word in name_of(layer, dtype) for word in words)]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for row in pool.map(lambda x: answer(bin_dir, *x), asked):
            rows.append(row)
            layer, dtype, cycles, bound, text = row
            print(f"{cycles / bound:5.2f} {cycles:7d} {bound:7d}  {name_of(layer, dtype)}" if cycles else f"{name_of(layer, dtype)}: {text}", flush=True)
            if "keep" in options:
                name = name_of(layer, dtype).replace(" ", "").replace(":", "_").replace(",", "_")
                with open(os.path.join(options["keep"], name + ".vm"), "w", encoding="utf-8") as file:
                    file.write(text)
    refused = [row for row in rows if row[2] is None]
    rows = [row for row in rows if row[2]]
    if "csv" in options:
        with open(options["csv"], "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows((name_of(layer, dtype), cycles, bound) for layer, dtype, cycles, bound, _ in rows)
    print()
    for kind in KINDS + ["all"]:
        times = [row[2] / row[3] for row in rows if kind in (row[0][0], "all")]
        if times:
            print(f"{kind}: {len(times)} answered, the middle one {statistics.median(times):.3f}, the worst one {max(times):.2f}, at most 1.5: "
                  f"{sum(x <= 1.5 for x in times)}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
