#!/usr/bin/env python3
"""examples/conv2d.vm on real files, against a convolution written down by hand: the image's dimensions in the port's order and
in another one. Usage: conv2d.py"""
import os
import random
import subprocess
import sys
import tempfile

import visa_tools

OUT, FILTER, CHANNELS, RESULTS = 14, 3, 64, 8
IN = OUT + FILTER - 1


def convolve(image, weights):
    result = []
    for row in range(OUT):
        for column in range(OUT):
            for n in range(RESULTS):
                result.append(sum(image[row + f][column + g][c] * weights[n][f][g][c]
                                  for f in range(FILTER) for g in range(FILTER) for c in range(CHANNELS)))
    return result


def flat(tensor):
    return [x for part in tensor for x in flat(part)] if isinstance(tensor, list) else [tensor]


def write(path, tensor):
    with open(path, "wb") as file:
        file.write(bytes(x & 255 for x in flat(tensor)))


def numbers(shape, values):
    return [numbers(shape[1:], values) for _ in range(shape[0])] if shape else random.choice(values)


def run(*command):
    done = subprocess.run(command, env=visa_tools.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout.decode()}")


def main():
    random.seed(1)
    image = numbers([IN, IN, CHANNELS], [-1, 0, 0, 1])
    weights = numbers([RESULTS, FILTER, FILTER, CHANNELS], [-1, 0, 0, 1])
    wanted = convolve(image, weights)
    if max(map(abs, wanted)) > 127:
        sys.exit("the result does not fit i8: the test is wrong")
    with tempfile.TemporaryDirectory() as directory:
        path = lambda name: os.path.join(directory, name)
        write(path("x"), image)
        write(path("turned"), [[[image[row][column][c] for row in range(IN)] for column in range(IN)] for c in range(CHANNELS)])
        write(path("w"), weights)
        run("visac", os.path.join(visa_tools.SOURCE, "examples", "conv2d.vm"), "-o", path("conv2d.bin"))
        for x in (f"x={path('x')}", f"x[C, $(Wo:1, Fw:1) $(Ho:1, Fh:1)]={path('turned')}"):
            run("visa-run", path("conv2d.bin"), "--input", x, "--input", f"w={path('w')}", "--output", f"out={path('y')}", "--check")
            with open(path("y"), "rb") as file:
                got = [x - 256 if x > 127 else x for x in file.read()]
            if got != wanted:
                at = [i for i, (g, w) in enumerate(zip(got, wanted)) if g != w]
                sys.exit(f"{len(at)} of {len(wanted)} elements differ, the first is {at[:1]}; {len(got)} bytes")
    print(f"{len(wanted)} elements agree, twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
