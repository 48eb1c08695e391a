#!/usr/bin/env python3
"""Whole kernels that only move data (move_kernels.py): each is possible by its construction, so it must be accepted, and give what the reference gives, in
numbers and algebra. Usage: oracle.py [COUNT [SEED]]; VISA_LONG=1: many more."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from move_kernels import Kernel  # noqa: E402
from stage_oracle import run  # noqa: E402

if __name__ == "__main__":
    sys.exit(run(lambda rng: (Kernel(rng), True), 40, 20))
