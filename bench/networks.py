#!/usr/bin/env python3
"""Convolutions of well-known networks as they stand there, with padding, bias and activation, as questions to `visac tune`: the table of docs/tune-measured.md.
Usage: networks.py BIN_DIR [--csv=FILE] [WORD ...]: of the layers whose names have all words; times of the attainable bound, cycles and bound of each,
and the middle and the worst of all. --csv writes the rows, so that two builds can be compared."""
import concurrent.futures
import csv
import os
import re
import statistics
import subprocess
import sys

NONE, RELU, SILU, GELU = "{}", "relu({})", "silu({})", "gelu({})"


def by(n, what):
    return f"*{n}{what}" if n > 1 else what


def less(n):
    return f" - {n}" if n else ""


def layer(network, size, channels, filters, window, step=1, padding=None, act=RELU, apart=1, depthwise=False, residual=False, scale=False, dtype="bf16"):
    """An image of size x size; `window`: r x s of them, or (r, s); `apart`: dilation."""
    r, s = window if isinstance(window, tuple) else (window, window)
    before = [x // 2 * apart if padding is None else padding for x in (r, s)]
    y, x = [(size + 2 * b - apart * (w - 1) - 1) // step + 1 for w, b in zip((r, s), before)]
    places = [f"{own}{by(step, '')} + {tap}{by(apart, '')}{less(b)}" for own, tap, b in zip("yx", "rs", before)]
    sizes = dict(y=y, x=x, r=r, s=s, c=channels, f=filters)
    if any(before):
        places = [f"{own} = {p}" for own, p in zip("hw", places)]
        sizes.update(h=size, w=size)
    column, weights, summed = ("c", "W[r, s, c]", "r, s") if depthwise else ("f", "W[f, r, s, c]", "r, s, c")
    text = f"sum({summed}) I[{', '.join(places)}, c] * {weights} + bias[{column}]"
    if depthwise:
        del sizes["f"]
    if scale or dtype == "i8":
        text = f"({text}) * scale[{column}]: f32"
    if residual:
        text += f" + R[y, x, {column}]: {dtype}"
    wide = f" to {filters}" if not depthwise else " for each channel"
    name = f"{network}: {r} x {s}, {size} x {size} x {channels}{wide}" + (f" by {step}" if step > 1 else "") + (f", {apart} apart" if apart > 1 else "")
    return name + (", residual" if residual else "") + (", scale" if scale else "") + f", {dtype}", f"O[y, x, {column}] = {act.format(text)}", sizes, dtype


def line(network, size, channels, filters, window, step=1, padding=None, behind=None, act=GELU, apart=1, depthwise=False):
    """Along one axis; `behind`: places of padding there, where they are others than in front."""
    before = window // 2 * apart if padding is None else padding
    behind = before if behind is None else behind
    t = (size + before + behind - apart * (window - 1) - 1) // step + 1
    place = f"t{by(step, '')} + s{by(apart, '')}{less(before)}"
    sizes = dict(t=t, s=window, c=channels, f=filters)
    if before:
        place = f"x = {place}"
        sizes["x"] = size
    column, weights, summed = ("c", "W[s, c]", "s") if depthwise else ("f", "W[f, s, c]", "s, c")
    if depthwise:
        del sizes["f"]
    name = f"{network}: {window}, {size} x {channels}" + (" for each channel" if depthwise else f" to {filters}") + (f" by {step}" if step > 1 else "") + (f", {apart} apart" if apart > 1 else "")
    return name + ", bf16", f"Y[t, {column}] = {act.format(f'sum({summed}) X[{place}, c] * {weights} + b[{column}]')}", sizes, "bf16"


LAYERS = [line("Whisper", 3000, 80, 512, 3), line("Whisper", 3000, 512, 512, 3, step=2), line("Whisper", 3000, 80, 384, 3), line("Whisper", 3000, 384, 384, 3, step=2),
          line("Whisper", 3000, 80, 64, 3, act=NONE), line("Whisper", 3000, 768, 768, 3, step=2), line("Whisper", 3000, 128, 1280, 3), line("Whisper", 3000, 1280, 1280, 3, step=2),
          line("wav2vec", 16000, 1, 512, 10, step=5, padding=0), line("wav2vec", 3199, 512, 512, 3, step=2, padding=0), line("wav2vec", 199, 512, 512, 2, step=2, padding=0),
          line("Conformer", 1500, 512, 512, 31, depthwise=True, act=SILU), line("Mamba", 2048, 1536, 1536, 4, padding=3, behind=0, depthwise=True, act=SILU),
          line("WaveNet", 4000, 64, 128, 2, padding=8, behind=0, apart=8, act=NONE), line("HiFi-GAN", 2048, 256, 256, 7, act=RELU), line("TCN", 512, 128, 128, 3, apart=4, act=RELU)]
LAYERS += [layer("UNet", 64, 320, 320, 3, act=SILU), layer("UNet", 32, 320, 320, 3, act=SILU), layer("UNet", 32, 640, 640, 3, act=SILU), layer("UNet", 16, 1280, 1280, 3, act=SILU),
           layer("UNet", 8, 1280, 1280, 3, act=SILU), layer("UNet", 64, 4, 320, 3, act=NONE), layer("UNet", 64, 320, 4, 3, act=NONE), layer("UNet", 64, 320, 320, 3, step=2, act=NONE),
           layer("UNet", 64, 320, 320, 3, act=NONE, residual=True)]
LAYERS += [layer("ConvNeXt", size, c, c, 7, depthwise=True, act=NONE) for size, c in ((56, 96), (28, 192), (14, 384), (7, 768))]
LAYERS += [layer("ConvNeXt", 14, 384, 384, 7, depthwise=True, act=GELU, scale=True), layer("ConvNeXt", 224, 3, 96, 4, step=4, padding=0, act=NONE),
           layer("ConvNeXt", 56, 96, 192, 2, step=2, padding=0, act=NONE), layer("ConvNeXt", 14, 384, 768, 2, step=2, padding=0, act=NONE)]
LAYERS += [layer("MobileNet", 224, 3, 32, 3, step=2, act=SILU), layer("ResNet", 224, 3, 64, 7, step=2), layer("ViT", 224, 3, 768, 16, step=16, padding=0, act=NONE),
           layer("CLIP", 224, 3, 1024, 14, step=14, padding=0, act=NONE), layer("AlexNet", 224, 3, 64, 11, step=4, padding=2), layer("ResNet", 28, 256, 256, 3, step=2),
           layer("ResNet", 56, 64, 64, 3, residual=True), layer("ResNet", 14, 256, 256, 3, residual=True), layer("ResNet", 7, 512, 512, 3, residual=True)]
LAYERS += [layer("EfficientNet", size, c, c, window, step=step, depthwise=True, act=SILU) for size, c, window, step in
           ((112, 32, 3, 1), (112, 96, 3, 2), (56, 144, 5, 2), (28, 240, 5, 1), (28, 240, 3, 2), (14, 480, 5, 1), (14, 672, 5, 2), (7, 1152, 5, 1))]
LAYERS += [layer("YOLO", 640, 3, 16, 3, step=2, act=SILU), layer("YOLO", 320, 16, 32, 3, step=2, act=SILU), layer("YOLO", 80, 64, 64, 3, act=SILU), layer("YOLO", 40, 128, 128, 3, act=SILU),
           layer("YOLO", 20, 256, 256, 3, act=SILU), layer("YOLO", 80, 128, 256, 3, step=2, act=SILU), layer("YOLO", 20, 128, 128, 3, act=SILU, residual=True),
           layer("YOLO", 40, 128, 128, 3, act=SILU, dtype="i8")]
LAYERS += [layer("VGG", size, c, c, 3) for size, c in ((224, 64), (112, 128), (56, 256), (28, 512), (14, 512))]
LAYERS += [layer("Inception", 17, 192, 192, (1, 7)), layer("Inception", 35, 96, 96, 3), layer("AlexNet", 27, 64, 192, 5), layer("AlexNet", 13, 192, 384, 3),
           layer("DeepLab", 33, 512, 256, 3, apart=6), layer("SRGAN", 96, 64, 64, 3), layer("FSRCNN", 96, 1, 56, 5)]


def answer(bin_dir, asked):
    name, question, sizes, dtype = asked
    given = ",".join(f"{axis}={n}" for axis, n in sizes.items())
    ran = subprocess.run([os.path.join(bin_dir, "visac"), "tune", "--no-cache", question, "-D", given, f"--dtype={dtype}", f"--out={dtype}"], capture_output=True, text=True)
    found = re.search(r"// (\d+) cycles, [0-9.]+ times the least that the timing model allows, (\d+)", ran.stdout)
    return name, int(found[1]) if found else None, int(found[2]) if found else None, ran.stderr


def main():
    options = dict(x[2:].split("=", 1) for x in sys.argv[1:] if x.startswith("--"))
    bin_dir, *words = [x for x in sys.argv[1:] if not x.startswith("--")]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for row in pool.map(lambda x: answer(bin_dir, x), [x for x in LAYERS if all(word in x[0] for word in words)]):
            rows.append(row)
            name, cycles, bound, text = row
            print(f"{cycles / bound:5.2f} {cycles:7d} {bound:7d}  {name}" if cycles else f"{name}: {text}", flush=True)
    known = [row for row in rows if row[1]]
    if "csv" in options:
        with open(options["csv"], "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(row[:3] for row in known)
    times = [row[1] / row[2] for row in known]
    if times:
        print(f"\n{len(times)} of {len(rows)} answered, the middle one {statistics.median(times):.2f}, the worst one {max(times):.2f}")
    return 1 if len(known) < len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
