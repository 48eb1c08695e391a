#!/usr/bin/env python3
"""The convolutions of the examples on real files, against loops written down by hand: conv2d.vm with the image's dimensions in the
port's order and in another one, conv2d_shift.vm with stride, dilation and border. Usage: conv2d.py"""
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools


class Convolution:
    """Image[c][h][w], weights[n][c][i][j]; `border` columns of zeros on either side of an image row."""

    def __init__(self, out, taps, channels, results, stride=1, dilation=1, border=0):
        self.out, self.taps, self.stride, self.dilation, self.border = out, taps, stride, dilation, border
        span = [(o - 1) * stride + (f - 1) * dilation + 1 for o, f in zip(out, taps)]
        self.image = numbers([channels, span[0], span[1] - 2 * border], [-1, 0, 0, 1])
        self.weights = numbers([results, channels, *taps], [-1, 0, 0, 1])

    def at(self, channel, row, column):
        line = channel[row]
        return line[column - self.border] if 0 <= column - self.border < len(line) else 0

    def results(self):
        """[h][w][n], flat"""
        out = []
        for h in range(self.out[0]):
            for w in range(self.out[1]):
                for of_result in self.weights:
                    out.append(sum(self.at(channel, h * self.stride + i * self.dilation, w * self.stride + j * self.dilation) * taps[i][j]
                                   for channel, taps in zip(self.image, of_result)
                                   for i in range(self.taps[0]) for j in range(self.taps[1])))
        return out


def numbers(shape, values):
    return [numbers(shape[1:], values) for _ in range(shape[0])] if shape else random.choice(values)


def flat(tensor):
    return [x for part in tensor for x in flat(part)] if isinstance(tensor, list) else [tensor]


def channels_last(image):
    return [[[channel[h][w] for channel in image] for w in range(len(image[0][0]))] for h in range(len(image[0]))]


def taps_first(weights):
    return [channels_last(of_result) for of_result in weights]


def pack(dtype, tensor):
    if dtype == "i8":
        return bytes(x & 255 for x in flat(tensor))
    return b"".join(struct.pack("<f", x)[2:] for x in flat(tensor))


def unpack(dtype, data):
    if dtype == "i8":
        return [x - 256 if x > 127 else x for x in data]
    return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]


def run(*command):
    done = subprocess.run(command, env=visa_tools.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout.decode()}")


def agree(directory, binary, kernel, dtype, wanted, x, w, x_dims=""):
    path = lambda name: os.path.join(directory, name)
    for name, tensor in (("x", x), ("w", w)):
        with open(path(name), "wb") as file:
            file.write(pack(dtype, tensor))
    if max(map(abs, wanted)) > 127:
        sys.exit("the result does not fit i8: the test is wrong")
    run("visa-run", binary, f"--kernel={kernel}", "--input", f"x{x_dims}={path('x')}", "--input", f"w={path('w')}", "--output",
        f"out={path('y')}", "--check")
    with open(path("y"), "rb") as file:
        got = unpack(dtype, file.read())
    if got != wanted:
        at = [i for i, (g, v) in enumerate(zip(got, wanted)) if g != v]
        sys.exit(f"{kernel}: {len(at)} of {len(wanted)} elements differ, the first is {at[:1]}; there are {len(got)}")
    return len(wanted)


def main():
    random.seed(1)
    with tempfile.TemporaryDirectory() as directory:
        def compiled(name):
            binary = os.path.join(directory, name + ".bin")
            run("visac", os.path.join(visa_tools.SOURCE, "examples", name + ".vm"), "-o", binary)
            return binary
        c = Convolution((14, 14), (3, 3), 64, 8)
        plain, x, w, wanted = compiled("conv2d"), channels_last(c.image), taps_first(c.weights), c.results()
        turned = [[list(column) for column in zip(*channel)] for channel in c.image]
        count = agree(directory, plain, "conv2d", "i8", wanted, x, w)
        count += agree(directory, plain, "conv2d", "i8", wanted, turned, w, "[C, $(Wo:1, Fw:1) $(Ho:1, Fh:1)]")

        shifted = compiled("conv2d_shift")
        c = Convolution((6, 30), (3, 3), 4, 8)
        count += agree(directory, shifted, "conv2d_stride1", "i8", c.results(), c.image, c.weights)
        c = Convolution((5, 16), (4, 4), 4, 8, stride=2)
        count += agree(directory, shifted, "conv2d_stride2", "bf16", c.results(), c.image, c.weights)
        c = Convolution((5, 16), (3, 3), 4, 8, dilation=2)
        count += agree(directory, shifted, "conv2d_dilation2", "i8", c.results(), channels_last(c.image), taps_first(c.weights))
        c = Convolution((6, 32), (3, 3), 4, 8, border=1)
        count += agree(directory, shifted, "conv2d_border", "i8", c.results(), c.image, c.weights)
    print(f"{count} elements agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
