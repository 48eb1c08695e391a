#!/usr/bin/env python3
"""visac --upgrade: the newest release's text, the same comments and commands, and nothing to do the second time.

Texts: every case, example and listing of the seeds, each also squeezed into few lines, torn into many and with comments put between its tokens;
with VISA_CORPUS every file of the published snapshots. What compiles is upgraded, but for the files in REFUSED, which say why not; what is printed
compiles with --dialect of the newest release alone to the commands that the text had with --place=auto, has the comments of the text in their order,
and is printed again as it is. What does not compile is upgraded to something that parses, or refused by name. Nothing crashes."""
import glob
import json
import os
import random
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402
import format as layout  # noqa: E402

NEWEST = "0.9"
# Files that compile and that the newest release cannot say, with what of the refusal says so.
REFUSED = {
    "dma-granule.vm": rb"E-DMA-ALIGN",  # runs below 8 bytes into DM
    "reshape.vm": rb"E-DMA-ALIGN",
    "upgrade-newest-refused.vm": rb"E-DMA-ALIGN",
    "upgrade-macro-refused.vm": rb"in different ways",
    "april/furiosa-visa-examples/src/fetch_commit.rs": rb"E-DMA-ALIGN",
    "april/furiosa-visa-examples/src/reshape.rs": rb"E-DMA-ALIGN",
    "april/furiosa-visa-examples/src/matmul/matmul_wo_broadcast.rs": rb"E-DMA-ALIGN",
    "april/furiosa-visa-examples/src/cluster_chip_shuffle_slice.rs": rb"E-MOVE-AXIS",
    "april/furiosa-visa-examples/src/vrf_add.rs": rb"E-DMA-ALIGN",
    "v06/furiosa-opt-examples/src/scatter_gather.rs": rb"numbers of rows in SPM only",
    "april/furiosa-opt-examples/src/scatter_gather.rs": rb"numbers of rows in SPM only",
    "macros.vm": rb"put together by a macro",
    "indirect.vm": rb"numbers of rows in SPM only",  # older ones list them in HBM and DM too
    "moves.vm": rb"of clusters it only swaps two",
    "vector.vm": rb"the stash is read twice",
    "syntax-inference.vm": rb"E-MISMATCH",  # to_hbm with a Chip of its own
}


def upgrade(text):
    return visa_tools.run(["visac", "--upgrade", "-"], stdin=text)


def comments(text):
    return [piece for piece in layout.pieces(text) if piece[:2] in (b"//", b"/*")]


def binary(text, folder, *options):
    """The path of what the text compiles to, or None."""
    path = os.path.join(folder, f"{random.getrandbits(64):x}.bin")
    done = visa_tools.run(["visac", *options, "--place=auto", "-", "-o", path], stdin=text)
    return path if done.status == 0 else None


# Files that commit what is fetched: the newest release has a collect in between, through which a flit goes as it is.
COLLECTED = {"commit-sizes.vm", "commit-without-collect.vm", "commit.vm", "group-parts.vm", "upgrade-moves.vm"}


def without_collects(path):
    """The commands of each kernel without such collects, and waits without the numbers that count them."""
    told, out = json.loads(visa_tools.run(["visa-objdump", "--json", path]).out), []
    for kernel in told["kernels"]:
        for context, stream in sorted(kernel["streams"].items()):
            for c in stream:
                fields = {f["name"]: f["value"] for f in c["fields"] if c["op"] != "wait" or f["name"] != "count"}
                if c["op"] != "collect" or fields["flits_per_packet"] != 1:
                    rest = {k: v for k, v in c.items() if k not in ("offset", "line", "words", "fields")}
                    out.append((kernel["name"], context, fields, rest))
    return out


def broken_promise(name, text, folder, must):
    """None, or what is wrong. `must`: it has to be upgraded if it compiles."""
    done = upgrade(text)
    if visa_tools.Result(done.status, b"", done.err).crashed or done.status not in (0, 1):
        return f"status {done.status}: {done.text()[:500]}"
    before = binary(text, folder)
    if done.status:
        if done.out or not re.search(rb"error\[", done.err):
            return f"refused without a word: {done.text()[:300]}"
        if before and b"E-UPGRADE" not in done.err:
            return "refused, though it compiles: " + done.text()[:300]
        known = REFUSED.get(name)
        return None if not before or not must or (known and re.search(known, done.err)) else "refused: " + done.text()[:800]
    if name in REFUSED:
        return "not refused"
    if comments(done.out) != comments(text):
        return "comments were lost or changed"
    again = upgrade(done.out)
    if again.status or again.out != done.out:
        return "upgrading twice: " + again.text()[:500]
    if visa_tools.run(["visac", "--format", "-"], stdin=done.out).status:
        return "what is printed does not parse"
    if before:
        after = binary(done.out, folder, f"--dialect={NEWEST}")
        if not after:
            return f"what is printed is not {NEWEST}"
        if name in COLLECTED and without_collects(before) != without_collects(after):
            return "other commands than collects"
        if name not in COLLECTED and not layout.same_binary(before, after):
            return "other commands"
        os.remove(after)
        os.remove(before)
    return None


def variants(text, rng):
    yield "as it is", text
    if not visa_tools.LONG and rng.randrange(6):  # a sixth of the files in the other forms
        return
    yield "squeezed", layout.squeezed(text)
    yield "torn", layout.torn(text)
    yield "commented", layout.commented(text, rng)


def corpus_files():
    root = os.environ.get("VISA_CORPUS")
    return sorted(glob.glob(os.path.join(root, "**", "*.rs"), recursive=True)) if root else []


# A crate of April: a module takes what it needs from the file around it, which no file alone knows.
CRATE = {
    "lib.rs": """//! A crate.
use furiosa_visa_std::prelude::*;
pub mod axes;
mod ops;
use axes::*;
#[device(chip = 1)]
pub fn top(ctx: &mut Context, x: &HbmTensor<i8, Chip, m![A, B]>) -> HbmTensor<i32, Chip, m![A, B]> {
    let x = x.to_dm::<m![1 # 2], m![A], m![B]>(&mut ctx.tdma, 0);
    let y = ops::widen(ctx, &x); // in the module
    y.to_hbm(&mut ctx.tdma, 0)
}
""",
    "axes.rs": """axes![A = 256, B = 64];
pub type Chip = m![1];
""",
    "ops/mod.rs": """use super::axes::*;
pub(crate) mod more;
pub fn widen(ctx: &mut Context, x: &DmTensor<i8, Chip, m![1 # 2], m![A], m![B]>) -> DmTensor<i32, Chip, m![1 # 2], m![A], m![B]> {
    ctx.main.begin(x.view()).fetch::<i32, m![1], m![B]>().collect().commit(1 << 12)
}
""",
    "ops/more.rs": """use super::*; // all of it
#[device(chip = 1)]
pub fn twice(ctx: &mut Context, x: &HbmTensor<i8, Chip, m![A, B]>) -> HbmTensor<i32, Chip, m![A, B]> {
    let x = x.to_dm::<m![1 # 2], m![A], m![B]>(&mut ctx.tdma, 0);
    widen(ctx, &x).to_hbm(&mut ctx.tdma, 0)
}
""",
}


def texts_of(folder):
    out = {}
    for name in CRATE:
        with open(os.path.join(folder, name), "rb") as file:
            out[name] = file.read()
    return out


def broken_crate():
    """Files are written together, over themselves, or not at all."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in CRATE.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        root, old, before = os.path.join(folder, "lib.rs"), os.path.join(folder, "old.bin"), texts_of(folder)
        printed = visa_tools.run(["visac", "--upgrade", root])
        if printed.status != 1 or printed.out or b"a module of it, is of an older release" not in printed.err:
            return "what is printed is of two releases: " + printed.text()
        with open(root, "a", encoding="utf-8") as file:
            file.write("fn wrong(ctx: &mut Context, x: &HbmTensor<i8, Chip, m![A, B]>) { x.to_dm::<m![1 # 2], m![A], m![B]>(&mut ctx.tdma, y); }\n")
        visa_tools.run(["visac", "--upgrade", root, "-o", os.path.join(folder, "ops/mod.rs")])
        if {**texts_of(folder), "lib.rs": before["lib.rs"]} != before:
            return "a module was written over"
        with open(root, "wb") as file:
            file.write(before["lib.rs"])
        if visa_tools.run(["visac", "--place=auto", root, "-o", old]).status:
            return "the crate does not compile"
        done = visa_tools.run(["visac", "--upgrade", root, "-o", root])
        after = texts_of(folder)
        if done.status or [n for n in CRATE if after[n] == before[n]] != ["axes.rs"]:
            return "other files than expected were rewritten: " + done.text()
        if any(comments(after[n]) != comments(before[n]) for n in CRATE):
            return "comments were lost or changed"
        new = os.path.join(folder, "new.bin")
        if visa_tools.run(["visac", f"--dialect={NEWEST}", "--place=auto", root, "-o", new]).status or not layout.same_binary(old, new):
            return "other commands"
        again = visa_tools.run(["visac", "--upgrade", root])
        return None if again.status == 0 and again.out == after["lib.rs"] else "upgrading twice: " + again.text()


def main():
    rng = random.Random(2)
    work = []
    for path in layout.sources()[::visa_tools.SLOWER]:
        with open(path, "rb") as file:
            text = file.read()
        work += [(os.path.basename(path), kind, variant, kind == "as it is") for kind, variant in variants(text, rng)]
    for path in corpus_files():
        with open(path, "rb") as file:
            work.append((os.path.relpath(path, os.environ["VISA_CORPUS"]), "as it is", file.read(), True))
    wrong = broken_crate()
    failures = [f"a crate: {wrong}"] if wrong else []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for (name, kind, _, _), wrong in zip(work, pool.map(lambda w: broken_promise(w[0], w[2], folder, w[3]), work)):
            if wrong:
                failures.append(f"{name} ({kind}): {wrong}")
    print("\n".join(failures[:40]))
    print(f"{len(work)} texts, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
