#!/usr/bin/env python3
"""Every byte of three good binaries is changed, one at a time: no change may go through unseen.

A change is *refused* (visa-run says why and exits 1), *noticed* (the check finds other outputs, or some that depend on unwritten
memory), or it survives. A survivor is fine only when a reason is computed:

* the second dump differs from the first in nothing that a run reads: names of ports, source lines, what visa-objdump does not show at all;
* the commands that differ do the same (mutations.same_steps);
* the elements of the outputs are the same bytes for other inputs too, and the check accepts them (mutations.py says why that is
  enough).

    single_bytes.py BIN_DIR [BITS]     a sample of the bytes; BITS 1: one change of every byte, 8: each of its eight bits
"""
import collections
import os
import random
import resource
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import mutations

KERNELS = ("matmul", "gemv", "conv2d")
SAMPLE = 20  # quick: bytes of each binary
MEMORY_BYTES = 1 << 30  # a size may become any number: what does not fit is refused
UNREAD = {"line", "source", "symbols", "file"}  # keys of a dump that no run looks at


def bare(value, key=None):
    """A dump without what no run reads; ports have their numbers for names."""
    if isinstance(value, dict):
        return {k: bare(v, k) for k, v in value.items() if k not in UNREAD}
    if isinstance(value, list) and key == "ports":
        return [{**bare(port), "name": number} for number, port in enumerate(value)]
    return [bare(v) for v in value] if isinstance(value, list) else value


def flat(kernel):
    return [(context, command) for context, stream in kernel["streams"].items() for command in visa_tools.commands(stream)]


def reason(subject, kernel):
    """Why the changed binary, whose check passed, does the same; or None."""
    after = subject.decoded()
    if not after:
        return None
    if bare(after) == bare(subject.dump):
        return "nothing that a run reads"
    before = next(k for k in subject.dump["kernels"] if k["name"] == kernel)
    now = after["kernels"][0] if len(after["kernels"]) == 1 else None
    if now and len(flat(now)) == len(flat(before)):
        rest = [{key: v for key, v in bare(k).items() if key != "streams"} for k in (before, now)]
        pairs = [(a, b) for a, b in zip(flat(before), flat(now)) if bare(a[1]) != bare(b[1])]
        if rest[0] == rest[1] and all(a[0] == b[0] and mutations.same_steps(a[1], b[1]) for a, b in pairs):
            return "the same addresses or lanes"
    return subject.same_elements(kernel)


def judge(subject, kernel, count, at, bit):
    """Counts what becomes of one change."""
    first = min(at, len(subject.binary) - 8)  # of the word
    subject.change(first, 1 << 8 * (at - first) + bit)
    subject.write()
    done = visa_tools.run(["visa-run", subject.bad, "--check"])
    if done.status in (1, 3) and "error[" in done.text() and not done.crashed:
        count["noticed" if done.status == 3 or "[E-RUN-UNDEFINED]" in done.text() else "refused"] += 1
        return
    why = reason(subject, kernel) if done.status == 0 and not done.crashed else None
    count[why or "missed"] += 1
    if not why:
        print(f"missed (exit {done.status}): {subject.name}, byte {at:#x}, bit {bit}: of {subject.binary[at]:#04x}\n{done.text()[-600:]}")


def limit_memory():
    """Of the programs; the address space of a sanitizer's is larger, which has a limit of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, hard))
    if visa_tools.run(["visa-run", "--version"]).status:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        os.environ["ASAN_OPTIONS"] = f"max_allocation_size_mb={MEMORY_BYTES >> 20}:" + os.environ.get("ASAN_OPTIONS", "")


def main():
    os.environ["VISA_BIN"] = sys.argv[1]
    limit_memory()
    bits, chance, all_bytes = int(sys.argv[2]) if len(sys.argv) > 2 else 0, random.Random(1), 0
    count = collections.Counter(refused=0, noticed=0, missed=0)
    for name in KERNELS:
        with tempfile.TemporaryDirectory() as folder:
            with mutations.Subject(folder, name, os.path.join(visa_tools.SOURCE, "examples", name + ".vm")) as subject:
                (kernel,) = [k["name"] for k in subject.dump["kernels"]]
                all_bytes += len(subject.binary)
                places = range(len(subject.binary))
                if not bits:
                    places = chance.sample(places, min(len(places), visa_tools.few(SAMPLE)))
                sys.stdout.flush()
                for at in places:
                    for bit in range(8) if bits == 8 else (chance.randrange(8),):
                        judge(subject, kernel, count, at, bit)
    total = sum(count.values())
    print(f"{total} changes in {all_bytes} bytes of {len(KERNELS)} binaries: " + ", ".join(f"{n} {what}" for what, n in count.items()))
    print(f"{total - count['missed']} passed, {count['missed']} failed")
    return 1 if count["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
