#!/usr/bin/env python3
"""Ten handwritten digits through two compiled kernels: fc1 and fc2 of a trained 784-256-10 classifier.

The kernels do the contractions on the simulated machine, every output checked against the reference; the bias
of both layers and the ReLU between them are done here. Prints what was read off each image next to its label
and exits with 1 unless all agree, with 77 (skipped) where the weights are absent.

    examples/mnist.py [--bin DIR] [--data FILE] [--keep DIR]
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
IMAGES, PIXELS, HIDDEN, CLASSES, DIGITS = 10, 800, 256, 16, 10


# ---- bf16 is the upper half of an f32 ----

def f32_of_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def f32(value):
    """Rounds a Python number (f64) to f32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bf16_of_f32(value):
    """Nearest, ties to even; only finite numbers come here."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


# ---- files ----

class Weights:
    """The tensors of a .safetensors file: 8 bytes length, a JSON header, the data."""

    def __init__(self, path):
        data = path.read_bytes()
        length = struct.unpack_from("<Q", data)[0]
        self.header = json.loads(data[8:8 + length])
        self.data = data[8 + length:]

    def values(self, name, dtype):
        entry = self.header[name]
        if entry["dtype"] != dtype:
            raise ValueError(f"{name} is {entry['dtype']}, expected {dtype}")
        begin, end = entry["data_offsets"]
        letter, size = {"BF16": ("H", 2), "I32": ("i", 4)}[dtype]
        return struct.unpack(f"<{(end - begin) // size}{letter}", self.data[begin:end])


def write_npy(path, descr, letter, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"  # 10 bytes in front of it: the data begins at byte 128
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{letter}", *values))


def read_npy_f32(path, shape):
    data = path.read_bytes()
    length = struct.unpack_from("<H", data, 8)[0]
    header = data[10:10 + length].decode()
    if "'<f4'" not in header or str(shape) not in header:
        raise ValueError(f"{path} is not f32 {shape}: {header}")
    return struct.unpack(f"<{shape[0] * shape[1]}f", data[10 + length:])


# ---- the two layers ----

def run(*command):
    words = [str(word) for word in command]
    print("$ " + " ".join(words), flush=True)
    subprocess.run(words, check=True)


def layer(programs, kernel, inputs, shape, work):
    """Compiles examples/mnist_KERNEL.vm, runs its binary with --check, returns the f32 output."""
    binary, output = work / f"{kernel}.bin", work / f"{kernel}_out.npy"
    run(programs / "visac", HERE / f"mnist_{kernel}.vm", "-o", binary)
    given = [word for name, file in inputs.items() for word in ("--input", f"{name}={file}")]
    run(programs / "visa-run", binary, *given, "--output", f"out={output}", "--check")
    return read_npy_f32(output, shape)


def classify(programs, data, work):
    weights = Weights(data)
    images = [bits for i in range(IMAGES) for bits in weights.values(f"hw.image_{i}", "BF16")]
    write_npy(work / "x.npy", "<u2", "H", (IMAGES, PIXELS), images)
    hidden = layer(programs, "fc1", {"x": work / "x.npy", "w": f"{data}:hw.fc1.weight"}, (IMAGES, HIDDEN), work)

    bias = [f32_of_bf16(bits) for bits in weights.values("fc1.bias", "BF16")]
    relu = [bf16_of_f32(max(0.0, f32(sum_ + bias[i % HIDDEN]))) for i, sum_ in enumerate(hidden)]
    write_npy(work / "h.npy", "<u2", "H", (IMAGES, HIDDEN), relu)
    scores = layer(programs, "fc2", {"h": work / "h.npy", "w": f"{data}:hw.fc2.weight"}, (IMAGES, CLASSES), work)

    bias = [f32_of_bf16(bits) for bits in weights.values("hw.fc2.bias", "BF16")]
    rows = [[f32(scores[b * CLASSES + c] + bias[c]) for c in range(DIGITS)] for b in range(IMAGES)]
    return [row.index(max(row)) for row in rows], [weights.values(f"label_{i}", "I32")[0] for i in range(IMAGES)]


def main():
    parser = argparse.ArgumentParser(description="ten digits through mnist_fc1.vm and mnist_fc2.vm")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build/release/bin", help="where visac and visa-run are")
    parser.add_argument("--data", type=pathlib.Path, default=HERE.parent.parent / "shared/data/mnist.safetensors")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the files in between, which stay")
    options = parser.parse_args()
    if not options.data.exists():
        print(f"skipped: {options.data} is absent (the trained weights are not part of the repository)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        work = options.keep or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        read, labels = classify(options.bin.resolve(), options.data.resolve(), work.resolve())
    print("image  " + "  ".join(map(str, range(IMAGES))))
    print("read   " + "  ".join(map(str, read)))
    print("label  " + "  ".join(map(str, labels)))
    right = sum(a == b for a, b in zip(read, labels))
    print(f"{right} of {IMAGES} right")
    return 0 if right == IMAGES else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"mnist: {pathlib.Path(error.cmd[0]).name} ended with status {error.returncode}")
    except (OSError, ValueError, KeyError, struct.error) as error:
        sys.exit(f"mnist: {error}")
