#!/usr/bin/env python3
"""Passes whose results were worked out by hand, lane by lane, from the published meaning of their operations.

A row is a pass, what its lanes hold and what they must hold after it; nothing here computes. The machine's words are compared bit for bit, and the same
passes with the reference (visac --check)."""
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import visa_tools  # noqa: E402

MIN, MAX, NAN, INF = -(1 << 31), (1 << 31) - 1, float("nan"), float("inf")
TINY = 2.0 ** -126
TAG, BRANCH = ".vector_intra_slice_tag(TagMode::Zero)", ".vector_intra_slice_branch(BranchMode::Unconditional)"
ABS = ".vector_reinterpret::<i32>().vector_logic(LogicBinaryOpI32::BitAnd, 0x7fff_ffff).vector_reinterpret::<f32>()"


def guard(bits, negated=False):
    return f"TagGuard::{'not_matches' if negated else 'matches'}([{', '.join('BitReq::' + {'1': 'One', '0': 'Zero', '.': 'Ignore'}[b] for b in bits)}])"


def fxp(op, with_):
    return BRANCH + f".vector_fxp(FxpBinaryOp::{op}, {with_})"


BRANCHED = (".vector_intra_slice_tag(TagMode::Comparison([Cmp::Equal(0.0), Cmp::Greater(0.0), Cmp::Less(0.0), Cmp::LessUnsigned(-0.0)]))"
            f".vector_logic(LogicBinaryOpF32::BitAnd, Branched::imm({guard('001.')}, 0.0f32)).vector_narrow_split()"
            f".vector_fp_ternary(FpTernaryOp::FmaF, Branched::imm({guard('1...', True)}, (-2.0f32, 10.0f32))).vector_widen_concat()"
            f".vector_clip(ClipBinaryOpF32::Max, Branched::imm({guard('001.')}, 1.0f32).rf(TagGuard::all(), s))")
BIT_ORDER = (".vector_intra_slice_tag(TagMode::Comparison([Cmp::Equal(0), Cmp::Equal(5), Cmp::Less(10), Cmp::Greater(1000)])).vector_stash()"
             f".vector_logic(LogicBinaryOpI32::BitOr, Branched::imm({guard('1...')}, 0x100).imm({guard('..1.')}, 0x200).imm({guard('...1')}, 0x400))"
             f".vector_clip(ClipBinaryOpI32::Min, Branched::rf({guard('.1..')}, Stash))")
# name, element types, pass, what lanes hold, what they become
ROWS = [
    ("full_pipeline", "i32", "i32", TAG + ".vector_fxp(FxpBinaryOp::AddFxp, 100).vector_fxp_to_fp(31).vector_narrow_split()"
     ".vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), 2.5f32).vector_widen_concat().vector_fp_to_fxp(31).vector_clip(ClipBinaryOpI32::Max, 0)"
     ".vector_clip(ClipBinaryOpI32::Min, 1000)", [-101, -100, 0, 299, 300, 2147483600], [0, 0, 250, 998, 1000, 0]),
    ("fp_ternary_mode120", "f32", "f32", BRANCH + ".vector_split().vector_fp_ternary_with_mode(FpTernaryOp::FmaF, TernaryArgMode::Mode120, (2.0f32, 1.0f32)).vector_concat()",
     [5.0, -2.0], [7.0, 0.0]),
    ("logic_mode11", "i32", "i32", BRANCH + ".vector_logic_with_mode(LogicBinaryOpI32::BitXor, BinaryArgMode::Mode11, 0xff)", [0, -1, 5, MIN], [0, 0, 0, 0]),
    ("clip_mode11", "i32", "i32", BRANCH + ".vector_clip_with_mode(ClipBinaryOpI32::AddFxp, BinaryArgMode::Mode11, 3)", [0, -1, 5, MAX], [6, 6, 6, 6]),
    ("reinterpret_chain", "f32", "f32", TAG + ABS + ".vector_reinterpret::<i32>().vector_fxp(FxpBinaryOp::AddFxp, 1 << 23).vector_reinterpret::<f32>()"
     ".vector_clip(ClipBinaryOpF32::Min, 100.0f32)", [0.0, -0.0, -1.0, 1.0, -0.5, 3.25, -80.0, 120.0, TINY], [TINY, TINY, 2.0, 2.0, 1.0, 6.5, 100.0, 100.0, 2 * TINY]),
    ("reinterpret_abs", "f32", "f32", TAG + ABS, [0.0, -0.0, -1.0, 1.0, -0.5, 3.25, -80.0, 120.0, TINY], [0.0, 0.0, 1.0, 1.0, 0.5, 3.25, 80.0, 120.0, TINY]),
    ("stash_after_reinterpret", "f32", "f32", TAG + ABS + ".vector_stash().vector_clip(ClipBinaryOpF32::Add, Stash)", [-0.0, -1.0, 3.25], [0.0, 2.0, 6.5]),
    # the scale is read from the VRF, lane by lane
    ("branched", "f32", "f32", BRANCHED, [0.0, 3.0, -7.0, NAN, 0.0, 3.0, -7.0, NAN], [0.5, 4.0, 10.0, 0.25, 2.0, 5.0, 10.0, -1.0]),
    ("bit_order", "i32", "i32", BIT_ORDER, [0, 5, 7, 100, 3000, -1], [256, 5, 519, 100, 4024, -1]),
    ("mul_fxp_half", "i32", "i32", fxp("MulFxp", 1 << 30), [1 << 30, 1, -1], [1 << 29, 1, 0]),
    ("mul_fxp_one", "i32", "i32", fxp("MulFxp", 1), [MIN, 1 << 30, -(1 << 30)], [-1, 1, 0]),
    ("mul_fxp_least", "i32", "i32", fxp("MulFxp", MIN), [MIN, 1, MAX], [MAX, -1, -MAX]),
    ("fxp_to_fp_31", "i32", "f32", BRANCH + ".vector_fxp_to_fp(31)", [16777217, 16777219, -1, MIN, 0], [16777216.0, 16777220.0, -1.0, -2147483648.0, 0.0]),
    ("fxp_to_fp_0", "i32", "f32", BRANCH + ".vector_fxp_to_fp(0)", [1 << 30, MIN, 1], [0.5, -1.0, 2.0 ** -31]),
    ("fp_to_fxp_31", "f32", "i32", BRANCH + ".vector_fp_to_fxp(31)", [0.5, -0.5, 1.5, 2.5, 1e10, -1e10, NAN, INF, -INF], [1, -1, 2, 3, MAX, MIN, MAX, MAX, MIN]),
    ("abs_max_i32", "i32", "i32", BRANCH + ".vector_clip(ClipBinaryOpI32::AbsMax, -5)", [5, -5, 4, 6, MIN], [-5, -5, -5, 6, MIN]),
    ("abs_min_i32", "i32", "i32", BRANCH + ".vector_clip(ClipBinaryOpI32::AbsMin, -5)", [5, -5, 4, 6, MIN], [-5, -5, 4, -5, -5]),
    ("abs_max_f32", "f32", "f32", BRANCH + ".vector_clip(ClipBinaryOpF32::AbsMax, -5.0)", [5.0, 4.0, -6.0, NAN], [-5.0, -5.0, -6.0, -5.0]),
    ("abs_min_f32", "f32", "f32", BRANCH + ".vector_clip(ClipBinaryOpF32::AbsMin, -5.0)", [5.0, 4.0, -6.0, NAN], [-5.0, 4.0, -5.0, -5.0]),
    ("max_of_nan", "f32", "f32", BRANCH + ".vector_clip(ClipBinaryOpF32::Max, 1.0)", [NAN, 2.0, -INF], [1.0, 2.0, 1.0]),
    ("min_of_nan", "f32", "f32", BRANCH + ".vector_clip(ClipBinaryOpF32::Min, 1.0)", [NAN, 2.0, -INF], [1.0, 1.0, -INF]),
    ("fma_fused", "f32", "f32", BRANCH + ".vector_split().vector_fp_ternary(FpTernaryOp::FmaF, (1.0000001f32, -1.0f32)).vector_concat()", [1.0 + 2.0 ** -23], [2.0 ** -22 + 2.0 ** -46]),
    ("shift_sat", "i32", "i32", fxp("LeftShiftSat", 30), [1, -1, 2, -2, -3, 0], [1 << 30, -(1 << 30), MAX, MIN, MIN, 0]),
    # every operand whose group is the element's, one after the other; since 0.6 the first one alone
    ("april_each", "i32", "i32", ".vector_intra_slice_branch(BranchMode::Comparison([InputCmp::I32(InputCmpI32::False), InputCmp::I32(InputCmpI32::False), InputCmp::I32(InputCmpI32::False), "
     "InputCmp::I32(InputCmpI32::Less { boundary: 0 })])).vector_fxp(FxpBinaryOp::AddFxp, [VeBranchOperand::group(1, GroupId::One), VeBranchOperand::always(10)])", [-1, 0, 7], [10, 10, 17]),
    ("first_alone", "i32", "i32", ".vector_intra_slice_tag(TagMode::Comparison([Cmp::False, Cmp::False, Cmp::False, Cmp::Less(0)]))"
     ".vector_fxp(FxpBinaryOp::AddFxp, Branched::imm(TagGuard::group(GroupId::One), 1).imm(TagGuard::all(), 10))", [-1, 0, 7], [0, 10, 17]),
]
SCALE = [0.5, 1.0, 20.0, 0.25, 2.0, 5.0, 0.0, -1.0]
# name, lanes of group 0, of group 1, pass, result
PAIRS = [
    ("fp_zip_mode10", "f32", ".vector_split().vector_fp_zip_with_mode(FpBinaryOp::SubF, BinaryArgMode::Mode10).vector_concat()", [1.0, -3.0], [5.0, 0.5], [4.0, 3.5]),
    ("fp_zip_mode01", "f32", ".vector_split().vector_fp_zip(FpBinaryOp::SubF).vector_concat()", [1.0, -3.0], [5.0, 0.5], [-4.0, -3.5]),
    ("ternary_selective", "f32", ".vector_split().vector_fp_ternary(FpTernaryOp::FmaF, (2.0f32, 1.0f32), ()).vector_fp_zip(FpBinaryOp::DivF).vector_concat()", [2.0, -0.5], [4.0, 3.0], [1.25, 0.0]),
    ("post_zip", "i32", ".vector_clip_zip(ClipBinaryOpI32::AddFxp).vector_clip(ClipBinaryOpI32::Max, 0)", [MAX, 1, -5], [1, 2, 3], [0, 3, 0]),
]
LANES = 16  # two packets


def pack(values, dtype):
    whole = [values[i % len(values)] for i in range(LANES)]
    return struct.pack(f"<{LANES}{'f' if dtype == 'f32' else 'i'}", *whole)


def words(data):
    return struct.unpack(f"<{len(data) // 4}I", data)


def main():
    shape = "m![1], m![1], m![1], m![T], m![P]"
    text = "axes![T = 2, P = 8, I = 2];\n"
    for name, dtype, out, calls, _, _ in ROWS:
        scale = ", s: &VrfTensor<f32, m![1], m![1], m![1], m![P]>" if "s)" in calls and name == "branched" else ""
        text += f"fn {name}(x: CollectTensor<{dtype}, {shape}>{scale}) -> VectorFinalTensor<{out}, {shape}> {{ x.vector_init(){calls}.vector_final() }}\n"
    for name, dtype, calls, _, _, _ in PAIRS:
        text += (f"fn {name}(x: CollectTensor<{dtype}, m![1], m![1], m![1], m![T, I], m![P]>) -> VectorFinalTensor<{dtype}, {shape}> {{ "
                 f"x.vector_init().vector_intra_slice_unzip::<I, m![T, 1 # 2], m![T]>(){calls}.vector_final() }}\n")
    wrong = lanes = 0
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "lanes.vm")
        with open(path, "w") as file:
            file.write(text)
        made = visa_tools.run(["visac", path, "-o", path + ".bin"])
        checked = visa_tools.run(["visac", path, "--check"])
        if made.status != 0 or checked.status != 0:
            print((made if made.status else checked).text()[-2000:])
            return 1

        def run(name, files, wanted):
            nonlocal wrong, lanes
            arguments = []
            for port, data in files.items():
                with open(f"{path}.{port}", "wb") as file:
                    file.write(data)
                arguments += ["--input", f"{port}={path}.{port}"]
            done = visa_tools.run(["visa-run", path + ".bin", "--kernel", name, *arguments, "--output", f"out={path}.out"])
            if done.status != 0:
                print(f"{name}: {done.text()}")
                wrong += 1
                return
            with open(path + ".out", "rb") as file:
                got = file.read()
            for n, (g, w) in enumerate(zip(words(got), words(wanted))):
                lanes += 1
                if g != w:
                    wrong += 1
                    print(f"{name}, lane {n}: {g:08x}, by hand {w:08x}")
        for name, dtype, out, _, given, wanted in ROWS:
            if name == "branched":
                run(name, {"x": pack(given, dtype), "s": struct.pack("<8f", *SCALE)}, pack(wanted, out))
            else:
                run(name, {"x": pack(given, dtype)}, pack(wanted, out))
        for name, dtype, _, lhs, rhs, wanted in PAIRS:
            one, two = pack(lhs, dtype), pack(rhs, dtype)
            run(name, {"x": one[:32] + two[:32] + one[32:] + two[32:]}, pack(wanted, dtype))
    print(f"{len(ROWS) + len(PAIRS)} passes, {lanes} lanes, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
