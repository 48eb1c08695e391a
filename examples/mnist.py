#!/usr/bin/env python3
"""Ten handwritten digits through two compiled kernels: fc1 and fc2 of a trained 784-256-10 classifier, with the Python package.

Both layers run whole on the simulated machine, bias and ReLU included, and every value is checked against the reference. Prints what was
read off each image next to its label, and exits with 1 unless all agree, with 77 (skipped) where the weights or NumPy are absent.

    examples/mnist.py [--bin DIR] [--data FILE]
"""
import argparse
import json
import os
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
IMAGES, PIXELS, HIDDEN, CLASSES, DIGITS = 10, 800, 256, 16, 10


def load_packages(programs):
    """NumPy and the package, with the library of this checkout where none is installed. False: NumPy is absent."""
    global np, visa
    try:
        import numpy as np
    except ImportError:
        if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
            os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # Debian's NumPy belongs to Debian's Python
        return False
    if (programs / "libvisa.so.0").exists():
        os.environ.setdefault("VISA_LIBRARY", str(programs / "libvisa.so.0"))
        sys.path.insert(0, str(HERE.parent / "python"))
    import visa
    return True


class Weights:
    """The tensors of a .safetensors file: 8 bytes length, a JSON header, the data."""

    def __init__(self, path):
        data = path.read_bytes()
        length = struct.unpack_from("<Q", data)[0]
        self.header, self.data = json.loads(data[8:8 + length]), data[8 + length:]

    def bits(self, name, dtype):
        entry = self.header[name]
        if entry["dtype"] != dtype:
            raise ValueError(f"{name} is {entry['dtype']}, expected {dtype}")
        begin, end = entry["data_offsets"]
        return np.frombuffer(self.data[begin:end], {"BF16": "<u2", "I32": "<i4"}[dtype])

    def f32(self, name):
        """bf16 is the upper half of an f32."""
        return (self.bits(name, "BF16").astype(np.uint32) << 16).view(np.float32)


def run_checked(kernel, *inputs):
    out = kernel(*inputs)
    verdict = kernel.check()
    print(f"{kernel.name}: {kernel.cycles} cycles\n{verdict.report}", end="")
    if not verdict:
        raise ValueError(f"{kernel.name} differs from its reference")
    return out


def classify(weights):
    fc1, fc2 = (visa.compile(HERE / f"mnist_{name}.vm") for name in ("fc1", "fc2"))
    images = np.stack([weights.bits(f"hw.image_{i}", "BF16") for i in range(IMAGES)])
    hidden = run_checked(fc1, images, weights.bits("hw.fc1.weight", "BF16").reshape(HIDDEN, PIXELS), weights.f32("fc1.bias"))
    scores = run_checked(fc2, hidden, weights.bits("hw.fc2.weight", "BF16").reshape(CLASSES, HIDDEN), weights.f32("hw.fc2.bias"))
    return scores[:, :DIGITS].argmax(axis=1), [int(weights.bits(f"label_{i}", "I32")[0]) for i in range(IMAGES)]


def main():
    parser = argparse.ArgumentParser(description="ten digits through mnist_fc1.vm and mnist_fc2.vm")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build/release/bin", help="where libvisa.so.0 is, else the installed one")
    parser.add_argument("--data", type=pathlib.Path, default=HERE.parent.parent / "shared/data/mnist.safetensors")
    options = parser.parse_args()
    if not options.data.exists():
        print(f"skipped: {options.data} is absent (the trained weights are not part of the repository)")
        return SKIPPED
    if not load_packages(options.bin.resolve()):
        print("skipped: NumPy is missing: apt-get install python3-numpy")
        return SKIPPED
    read, labels = classify(Weights(options.data))
    print("image  " + "  ".join(map(str, range(IMAGES))))
    print("read   " + "  ".join(map(str, read)))
    print("label  " + "  ".join(map(str, labels)))
    right = sum(int(a == b) for a, b in zip(read, labels))
    print(f"{right} of {IMAGES} right")
    return 0 if right == IMAGES else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError, struct.error, ImportError) as error:
        sys.exit(f"mnist: {error}")
