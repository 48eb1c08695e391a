#!/usr/bin/env python3
"""`visac advise` over examples and cases: what it promises is what the better source takes, which is checked and never slower; and what a report
says of the whole kernel holds where the advice of test/machine/reports.py is taken.

A sample of the cases, a larger one with VISA_LONG=1."""
import glob
import json
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from random import Random

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from idle_slices import PRODUCT

SOURCE = visa_tools.SOURCE
PROMISE = re.compile(r"kernel (\w+) takes (\d+) cycles instead of (\d+)")
TALL = """axes![M = 256, N = 8, K = 512];
const R: usize = 256;
type Slice = m![M / { R } # 256];
#[device(chip = 1)]
fn tall(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![M, K]>) -> HbmTensor<i8, m![1], m![M, K]> {
    let a: DmTensor<i8, m![1], m![1 # 2], Slice, m![M % { R }, K]> = a.to_dm(&mut ctx.tdma, 0);
    a.to_hbm(&mut ctx.tdma, 1 << 20)
}
"""

COPY = """axes![M = {M}, K = {K}];
/* R: rows of a slice, m![ */
const R: usize = {R}; // R of m![M
"""
ROWS = """#[device(chip = 1)]
fn {name}(ctx: &mut Context, a: &HbmTensor<i8, m![1], {port}>) -> HbmTensor<i8, m![1], {port}> {{
    let a: DmTensor<i8, m![1], m![1 # 2], m![{slice}], m![{element}]> = a.to_dm(&mut ctx.tdma, 0);
    a.to_hbm(&mut ctx.tdma, {to})
}}
"""


def copy(m, k, r, *kernels):
    """Kernels that copy rows to slices and back: (slice, element[, port, address])."""
    text = COPY.replace("{M}", str(m)).replace("{K}", str(k)).replace("{R}", str(r))
    for i, (slices, element, *rest) in enumerate(kernels):
        port, to = rest or ("m![M, K]", "1 << 20")
        text += ROWS.format(name=f"k{i}", slice=slices, element=element, port=port, to=to)
    return text


NOTHING = "nothing that was tried is faster\n"
EACH, TURN = ("M / { R } # 256", "M % { R }, K"), ("M % { R } # 256", "M / { R }, K")
# The advice, word for word.
SAID = [
    (TALL, "R = 1 instead of 256: kernel tall takes 1256 cycles instead of 3048\n"),
    (copy(256, 512, 64, EACH), "R = 1 instead of 64: kernel k0 takes 1256 cycles instead of 3048\n"),  # words of comments are no uses
    # No kernel may become slower: R = 1 would gain as much in the first one as it loses in the second, and more than R = 256 does.
    (copy(256, 512, 64, EACH, TURN), "R = 256 instead of 64: kernel k1 takes 1256 cycles instead of 2024\n"),
    (copy(256, 512, 256, EACH, TURN), NOTHING),
    (copy(240, 512, 48, EACH), "R = 3 instead of 48: kernel k0 takes 1768 cycles instead of 2920\n"),  # no half of an odd number
    (copy(256, 512, 16, ("M % { R } # 256", "K", "m![M % { R }, K]", "1 << 20")), NOTHING),  # another port
    (copy(256, 512, 16, (*EACH, "m![M, K]", "R << 20")), NOTHING),  # a value
    (copy(8, 16384, 1, ("1 # 256", "M, K")),
     "M over clusters and slices: Cluster m![M / 4], Slice m![M % 4 # 256]: kernel k0 takes 2024 cycles instead of 3048\n"),
    (copy(512, 64, 1, ("1 # 256", "M, K")), "M over slices: Slice m![M / 4 # 256]: kernel k0 takes 1128 cycles instead of 1512\n"),
]

# An addition on packets of 4: (what the pass does, the advice). What is a comment, or no addition, stays.
WIDTH = """axes![A = 256, S = 256];
#[device(chip = 1)]
fn k(ctx: &mut Context, x: &HbmTensor<f32, m![1], m![S, A]>) -> HbmTensor<f32, m![1], m![S, A]> {
    let d: DmTensor<f32, m![1], m![1 # 2], m![S], m![A]> = x.to_dm(&mut ctx.tdma, 0);
    let y: DmTensor<f32, m![1], m![1 # 2], m![S], m![A]> = ctx.main.begin(d.view()).fetch::<f32, m![A / 8], m![A % 8]>().collect::<_, _>()
        .vector_init().vector_intra_slice_branch(BranchMode::Unconditional) // .vector_narrow_split()
        PASS.vector_final().commit(65536);
    y.to_hbm(&mut ctx.tdma, 1 << 24)
}
"""
WIDER = "line 7: packets of 8, without split and concat: kernel k takes {} cycles instead of {}\n"
SAID += [(WIDTH.replace("PASS", did), said) for did, said in [
    (".vector_narrow_split::<m![A / 4], m![A % 4]>().vector_fp_binary(FpBinaryOp::AddF, 1.0).vector_widen_concat::<m![A / 8], m![A % 8]>()", WIDER.format(1545, 1577)),
    (".vector_split::<_, _>()\n        .vector_fp_binary_with_mode(FpBinaryOp::AddF, BinaryArgMode::Mode10, -2.5)\n        .vector_concat::<_, _>()", WIDER.format(1545, 1577)),
    (".vector_narrow_split().vector_widen_concat()", WIDER.format(1544, 1576)),
    (".vector_narrow_split().vector_fp_binary(FpBinaryOp::AddF, 1.0).vector_widen_concat().vector_clip(ClipBinaryOpF32::Add, 1.0)", NOTHING),  # the unit is in use
    (".vector_narrow_split().vector_fp_binary(FpBinaryOp::SubF, 1.0).vector_widen_concat()", NOTHING)]]

# Two passes, the second of which reads what the first one leaves: (operations of both, what becomes of the second one's tensor, what is said).
TWO = """axes![A = 256, S = 256];
type Dm = DmTensor<f32, m![1], m![1 # 2], m![S], m![A]>;
#[device(chip = 1)]
fn k(device: &mut Device, x: &HbmTensor<f32, m![1], m![S, A]>) -> HbmTensor<f32, m![1], m![S, A]> {
    let d: Dm = x.to_dm(&mut device.tdma);
    let y: Dm = device.main.begin(d.view()).fetch::<m![A / 8], m![A % 8]>().collect() // let y = d;
        .vector_init().vector_intra_slice_tag(TagMode::Zero)FIRST.vector_final().commit_trim::<m![A % 8]>().commit();
    // of the first one
    let z: Dm = device
        .main
        .begin(y.view())
        .fetch::<m![A / 8], m![A % 8]>()
        .collect()
        .vector_init()
        .vector_intra_slice_tag(TAG) // none
        SECOND
        .vector_final().commit_trim::<m![A % 8]>().commit();
    LAST.to_hbm(&mut device.tdma)
}
"""
ON_FOUR = ".vector_narrow_split::<m![A / 4], m![A % 4]>(){}.vector_widen_concat::<m![A / 8], m![A % 8]>()"
ADD, MAX, ZERO = ".vector_clip(ClipBinaryOpF32::Add, 1.0)", ".vector_clip(ClipBinaryOpF32::Max, 0.0)", "TagMode::Zero"
ONE = "line 7: the operations of this pass and of the one that reads it in one pass: kernel k takes {} cycles instead of {}\n"
SAID += [(TWO.replace("FIRST", first).replace("SECOND", second).replace("LAST", last).replace("TAG", tag), said) for first, second, last, tag, said in [
    (ADD, MAX, "z", ZERO, ONE.format(1546, 1578)),
    (ON_FOUR.format(".vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), 2.0)"), ON_FOUR.format(".vector_fp_unary(FpUnaryOp::Exp)"), "z", ZERO, ONE.format(1578, 1642)),
    (ON_FOUR.format(".vector_fp_unary(FpUnaryOp::Exp)"), MAX, "z", ZERO, ONE.format(1578, 1610)),
    (MAX, MAX, "z", ZERO, NOTHING),  # the unit is in use
    (MAX, ON_FOUR.format(".vector_fp_unary(FpUnaryOp::Exp)"), "z", ZERO, NOTHING),  # that stage is behind it
    (ADD, ".vector_clip(ClipBinaryOpF32::Max, Branched::imm(TagGuard::group(GroupId::One), 0.0))", "z",
     "TagMode::Comparison([Cmp::Less(0.0), Cmp::False, Cmp::False, Cmp::Less(0.0)])", NOTHING),  # of elements as they are between the passes
    (ADD, MAX, "y", ZERO, NOTHING)]]  # the first one's tensor is read again

# Copies that the Tensor Unit does faster: a line of the report for each, and of the advice.
MOVED = """axes![A = 16, B = 16, K = 64, L = 16384, M = 64];
#[device(chip = 1)]
fn gathered(device: &mut Device, x: &HbmTensor<i8, m![1], m![A, B, K]>) -> HbmTensor<i8, m![1], m![A, B, K]> {
    let d: DmTensor<i8, m![1], m![1 # 2], m![A, B], m![K]> = x.to_dm(&mut device.tdma);
    let h = d.to_hbm::<m![A, B, K]>(&mut device.tdma); // goes
    let y: DmTensor<i8, m![1], m![1 # 2], m![A, B / 2 # 16], m![B % 2, K]> = h.to_dm(&mut device.tdma); // h.to_dm
    y.to_hbm(&mut device.tdma)
}
#[device(chip = 1)]
fn inside(device: &mut Device, x: &HbmTensor<i8, m![1], m![A, B, K]>) -> HbmTensor<i8, m![1], m![A, B, K]> {
    let d: DmTensor<i8, m![1], m![1 # 2], m![B # 256], m![A, K]> = x.to_dm(&mut device.tdma);
    let d = d.to_dm::<_, _, _, m![K / 32, A, K % 32]>(&mut device.tdma);
    d.to_hbm(&mut device.tdma)
}
#[device(chip = 1)]
fn repeated(device: &mut Device, x: &HbmTensor<i8, m![1], m![M, L]>) -> HbmTensor<i8, m![1], m![M, L]> {
    let d: DmTensor<i8, m![1], m![1 # 2], m![M, 4], m![L]> = x.to_dm(&mut device.tdma);
    let y: DmTensor<i8, m![1], m![1 # 2], m![M, 4], m![L]> = device.main.begin(d.view()).fetch::<m![L / 32], m![L % 32]>().collect().commit_trim::<m![L % 32]>().commit();
    y.to_hbm(&mut device.tdma)
}
"""
REPORTED = """could be a stream, which visac advise --apply writes:
line 6: the copy to `y` by device.main and rings of 16 slices, not through HBM: kernel gathered takes 2156 cycles instead of 5276
line 12: the copy to `d` by device.main: kernel inside takes 5528 cycles instead of 7020
line 17: the copy to `d` once for each ring of 4 slices, whose packets go around: kernel repeated takes 5815 cycles instead of 6632
"""
NOT_THE_SAME = [  # what only looks like one of these copies: (of what kind `x2` is, what is replaced, by what)
    ("&mut", "= h.to_dm(&mut device.tdma); // h.to_dm", "= h.to_dm(&mut device.tdma); h.view().to_hbm_view(&mut device.tdma, x2.view_mut());"),  # h has another reader
    ("&", "// goes\n", "let d = x2.view().to_dm::<m![1 # 2], m![A, B], m![K]>(&mut device.tdma);\n"),  # `d` is another one by then
]
MOVES = """axes![A = {A}, B = {B}, C = {C}, K = {K}];
#[device(chip = 1)]
fn k({context}, x: &HbmTensor<{dtype}, m![1], m![A, B, C, K]>) -> HbmTensor<{dtype}, m![1], m![A, B, C, K]> {{
    let d: DmTensor<{dtype}, m![1], m![1 # 2], m![{from_slice}], m![{from_element}]> = x.to_dm(&mut {ctx}.tdma{at[0]});
    let y: DmTensor<{dtype}, m![1], m![1 # 2], m![{to_slice}], m![{to_element}]> = {copy};
    y.to_hbm(&mut {ctx}.tdma{at[1]})
}}
"""


def moved_copy(random):
    """A copy between slices: digits of A, B and C in Slice, in another order or in Element afterwards, or one that changes places with Element's."""
    a, b, c = (random.choice((1, 2, 3, 4, 8)) for _ in range(3))
    april = random.random() < 0.4
    ctx = "ctx" if april else "device"
    where = [f", {n} << 16" if april else "" for n in (1, 4, 2, 3)]
    slices = random.sample(("A", "B", "C"), 3)
    gone = random.randrange(3)
    before, inner = slices[:], [x for x in slices[:gone]]
    after = [x for x in slices[gone:]]
    random.shuffle(after)
    total = {"A": a, "B": b, "C": c}
    size = 1
    for x in after:
        size *= total[x]
    padded = after[:-1] + [f"{after[-1]} # {total[after[-1]] * (256 // size)}"] if 256 % size == 0 else [f"[{', '.join(after)}] # 256"]
    whole = a * b * c
    first = before[:-1] + [f"{before[-1]} # {total[before[-1]] * (256 // whole)}"] if 256 % whole == 0 else [f"[{', '.join(before)}] # 256"]
    from_element, to_element = ["K"], inner + ["K"]
    if random.random() < 0.35:  # the last one starts in Element
        stays, goes, comes = slices
        total[comes] = total[goes]
        a, b, c = (total[x] for x in "ABC")
        one, other = ([stays, x] if gone else [x, stays] for x in (goes, comes))
        rest = 256 // (total[stays] * total[goes])
        first, padded = ([f"[{', '.join(x)}] # 256"] if random.random() < 0.5 or 256 % (total[stays] * total[goes]) else x + [f"1 # {rest}"] * (rest > 1) for x in (one, other))
        from_element, to_element = [comes, "K"], [goes, "K"]
    copy = f"d.to_dm(&mut {ctx}.tdma{where[1]})"
    if random.random() < 0.4:
        copy = f"d.to_hbm::<{'m![1], ' if april and random.random() < 0.5 else ''}m![A, B, C, K]>(&mut {ctx}.tdma{where[2]}).to_dm(&mut {ctx}.tdma{where[1]})"
    return MOVES.format(A=a, B=b, C=c, K=random.choice((8, 16, 24, 32, 48, 64, 128)), dtype=random.choice(("i8", "bf16", "i32")), ctx=ctx,
                        context="ctx: &mut Context" if april else "device: &mut Device", from_slice=", ".join(first), from_element=", ".join(from_element),
                        to_slice=", ".join(padded), to_element=", ".join(to_element), copy=copy, at=(where[0], where[3]))


def cycles_of(path):
    told = visa_tools.run(["visac", path, "--report"])
    return {name: int(cycles) for name, cycles in re.findall(r"^kernel (\w+): (\d+) cycles; one after", told.out.decode(), re.M)}


def judge(path, folder, must):
    """What is wrong, and how many promises were made."""
    name = os.path.basename(path)
    place = os.path.join(folder, name + ".d")
    os.mkdir(place)
    better = os.path.join(place, name)
    before = cycles_of(path)
    if not before:
        return [], 0
    with open(path, "rb") as file:
        read = file.read()
    for module in re.findall(r"^mod (\w+);", read.decode("utf-8", "replace"), re.M):  # in the folder of its name, or a file next to it
        if os.path.isdir(found := os.path.splitext(path)[0]):
            shutil.copytree(found, os.path.splitext(better)[0], dirs_exist_ok=True)
        for end in (".vm", ".rs"):
            if os.path.exists(found := os.path.join(os.path.dirname(path), module + end)):
                shutil.copy(found, place)
    done = visa_tools.run(["visac", "advise", path, "--apply", "-o", better])
    if done.status:
        return [f"{name}: {done.text()}"], 0
    promised, faults = dict(before), []
    made = PROMISE.findall(done.err.decode())
    for kernel, now, old in made:
        if promised.get(kernel) != int(old) or int(now) >= int(old):
            faults.append(f"{name}: {kernel} took {promised.get(kernel)}, said {old} -> {now}")
        promised[kernel] = int(now)
    after = cycles_of(better)
    if after != promised:
        faults.append(f"{name}: promised {promised}, takes {after}")
    with open(path, "rb") as file:
        if file.read() != read:
            faults.append(f"{name}: the input was written")
    if made:
        checked = visa_tools.run(["visac", better, "--check"])
        if checked.status:
            faults.append(f"{name}: {checked.text()}")
    if must and not made:
        faults.append(f"{name}: nothing was found")
    return faults, len(made)


def report_says(folder):
    """A report names each copy that would be faster, with the cycles that the kernel takes then, and no other."""
    path, faults = os.path.join(folder, "moved.vm"), []
    with open(path, "w", encoding="utf-8") as file:
        file.write(MOVED)
    told = visa_tools.run(["visac", path, "--report"]).out.decode()
    faults += [] if told.endswith(REPORTED) else [f"{told[-800:]}\nis not\n{REPORTED}"]
    faults += judge(path, os.path.join(folder, "better"), True)[0]
    for kind, old, new in NOT_THE_SAME:
        text = MOVED.replace(old, new).replace("fn gathered(device: &mut Device,", f"fn gathered(device: &mut Device, x2: {kind} HbmTensor<i8, m![1], m![A, B, K]>,")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = visa_tools.run(["visac", path, "--report"])
        if done.status or b"not through HBM" in done.out or b"line 17: the copy to `d` once" not in done.out:
            faults.append(f"{done.text()[-1500:]}\nfor {new}")
    return faults


def main():
    paths = sorted(glob.glob(os.path.join(SOURCE, "examples", "*.vm")))
    cases = sorted(glob.glob(os.path.join(SOURCE, "test", "cases", "*.vm")))
    modules = [p for p in cases if os.path.basename(p).startswith("syntax-module-")]
    sample = cases[::visa_tools.every(12)]
    paths = [p for p in paths if os.path.getsize(p) < 6000 and "4096" not in p] + sample + [p for p in modules if p not in sample]
    random = Random(int(os.environ.get("VISA_SEED", "1")))
    with tempfile.TemporaryDirectory() as folder:
        own = []
        idle = PRODUCT.replace("tdma, 0);", "tdma, 0); // not m![M]", 1)
        for name, text in (("tall.vm", TALL), ("idle.vm", idle)):
            own.append(os.path.join(folder, name))
            with open(own[-1], "w", encoding="utf-8") as file:
                file.write(text)
        moves = []
        for i in range(visa_tools.few(24)):
            moves.append(os.path.join(folder, f"move{i}.vm"))
            with open(moves[-1], "w", encoding="utf-8") as file:
                file.write(moved_copy(random))
        better = os.path.join(folder, "better")
        os.mkdir(better)
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda p: judge(p, better, p in own), own + paths))
            copies = list(pool.map(lambda p: judge(p, better, False), moves))
        results += copies
        twice = [visa_tools.run(["visac", "advise", own[1], "--apply"]).out for _ in range(2)]
        faults = [f for found, _ in results for f in found]
        faults += ["few of the copies are done otherwise"] if sum(1 for _, n in copies if n) < len(copies) // 4 else []
        faults += report_says(folder)
        faults += ["two answers"] if twice[0] != twice[1] else []
        faults += ["a comment was changed"] if b"// not m![M]\n" not in twice[0] else []
        for text, said in SAID:
            with open(own[0], "w", encoding="utf-8") as file:
                file.write(text)
            done = visa_tools.run(["visac", "advise", own[0]])
            faults += [] if done.out.decode() == said else [f"{done.text()}\nfor {said}of\n{text}"]
        onto = visa_tools.run(["visac", "advise", own[0], "--apply", "-o", own[0]])
        faults += ["wrote over its input"] if onto.status == 0 else []
        faults += ["--apply alone"] if visa_tools.run(["visac", own[0], "--apply"]).status != 2 else []
    print("\n".join("FAIL " + f for f in faults))
    print(f"{len(results)} files, {sum(n for _, n in results)} promises kept, {sum(1 for _, n in results if n)} files faster; {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
