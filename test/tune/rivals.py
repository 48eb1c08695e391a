#!/usr/bin/env python3
"""visac tune against kernels that people wrote: those of examples, cases and, where VISA_CORPUS names them, of published snapshots. At a kernel's own shape
the answer is never slower by the same timing model. Usage: rivals.py [WORD]: kernels whose name has the word, with all messages about each."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

ROWS, VECTOR, TURNED = "C[m, n] = sum(k) A[m, k] * B[n, k]", "y[n] = sum(k) x[k] * W[n, k]", "C[m, n] = sum(k) A[m, k] * B[k, n]"
LAYER = "C[m, n] = relu(sum(k) A[m, k] * B[n, k] + bias[n])"
CONVOLUTION = "O[y, x, f] = sum(r, s, c) I[y + r, x + s, c] * W[f, r, s, c]"
# Of this repository: file, kernel, what it computes in words of our own, sizes, types of operands and result.
OWN = [
    ("examples/matmul.vm", "matmul", ROWS, "m=32,n=8,k=32", "bf16", "bf16"),
    ("examples/matmul_4096.vm", "matmul", ROWS, "m=4096,n=4096,k=4096", "bf16", "bf16"),
    ("examples/matmul_switch.vm", "copied", ROWS, "m=256,n=128,k=512", "bf16", "bf16"),
    ("examples/matmul_switch.vm", "switched", ROWS, "m=256,n=128,k=512", "bf16", "bf16"),
    ("examples/split_k.vm", "split_k", ROWS, "m=1024,n=8,k=256", "bf16", "f32"),
    ("examples/gemv.vm", "gemv", VECTOR, "n=256,k=2048", "bf16", "bf16"),
    ("examples/layer.vm", "layer", LAYER, "m=64,n=512,k=256", "bf16", "bf16"),
    ("examples/mnist_fc1.vm", "fc1", LAYER, "m=10,n=256,k=800", "bf16", "bf16"),
    ("examples/mnist_fc2.vm", "fc2", "C[m, n] = sum(k) A[m, k] * B[n, k] + bias[n]", "m=10,n=16,k=256", "bf16", "f32"),
    ("examples/conv2d.vm", "conv2d", CONVOLUTION, "y=14,x=14,r=3,s=3,c=64,f=8", "i8", "i8"),
    ("examples/decoder/decoder.vm", "linear", VECTOR, "n=2048,k=1024", "bf16", "bf16"),
    ("examples/step/linear.vm", "matmul", ROWS, "m=32,n=8,k=32", "bf16", "bf16"),
    ("test/cases/switch-instead.vm", "product", ROWS, "m=64,n=16,k=64", "i8", "i32"),
    ("test/cases/reshape-two-ways.vm", "comes_back", VECTOR, "n=1024,k=64", "bf16", "bf16"),
    ("test/cases/reshape-digits.vm", "product", VECTOR, "n=256,k=64", "bf16", "bf16"),
    ("test/cases/transpose-contraction.vm", "q", VECTOR, "n=256,k=64", "bf16", "bf16"),
    ("test/cases/upgrade.vm", "matmul", ROWS, "m=32,n=8,k=64", "i8", "i8"),
    ("test/cases/dialect-memory.vm", "rows", ROWS, "m=16,n=16,k=64", "i8", "i32"),
    ("test/cases/guards.vm", "products", "C[s, e, o] = sum(r) X[s, r] * W[s, e, o, r]", "s=64,e=6,o=8,r=16", "bf16", "f32"),
    ("test/cases/fetch-adapter.vm", "of_both", ROWS, "m=8,n=8,k=128", "i4", "i32"),
    ("test/cases/dialect-contraction.vm", "one_flit", ROWS, "m=8,n=8,k=32", "i8", "i32"),
    ("test/cases/algebra-stash.vm", "silu", "C[m, n] = silu(sum(k) A[m, k] * B[n, k] * 0.001)", "m=8,n=8,k=32", "i8", "f32"),
]
# The same of snapshots: name, crate, device function.
SMALL_APRIL, SMALL = "aligner_assertions", "contract_outer_assertions"
PUBLISHED = [
    ("april", "furiosa-visa-examples", "matmul::matmul_4096::matmul_4096", VECTOR, "n=4096,k=4096", "i8", "i8"),
    ("april", "furiosa-visa-examples", "matmul::matmul_split_reduce::matmul_with_split_reduce", VECTOR, "n=1024,k=2048", "i8", "i8"),
    ("april", "furiosa-visa-examples", "matmul::matmul_split_reduce2::matmul_with_split_reduce2", TURNED + " + start[m, n]: bf16", "m=64,n=128,k=1024", "bf16", "bf16"),
    ("april", "furiosa-visa-examples", "matmul::matmul_wo_broadcast::matmul_wo_broadcast", "d[] = sum(a, b) x[a, b] * y[a, b]", "a=4096,b=8", "i8", "i8"),
    ("april", "furiosa-visa-examples", f"{SMALL_APRIL}::row_size::valid_size_1", VECTOR, "n=8,k=64", "i8", "i32"),
    ("april", "furiosa-visa-examples", f"{SMALL_APRIL}::row_size::valid_size_8", ROWS, "m=8,n=8,k=64", "i8", "i32"),
    ("april", "furiosa-visa-examples", f"{SMALL_APRIL}::cpacket_mapping::valid_one_collect_flit", ROWS, "m=8,n=8,k=32", "i8", "i32"),
    ("april", "furiosa-visa-examples", f"{SMALL_APRIL}::time_broadcast::valid_single_tiling", ROWS, "m=8,n=40,k=32", "i8", "i32"),
    ("april", "furiosa-visa-examples", f"{SMALL_APRIL}::time_broadcast::valid_double_tiling", ROWS, "m=8,n=120,k=32", "i8", "i32"),
    ("april", "furiosa-visa-examples", f"{SMALL_APRIL}::time_broadcast::valid_transposed_tiling", ROWS, "m=8,n=80,k=32", "i8", "i32"),
    ("v06", "base-template", "kernel::dot_product_kernel::dot_product_kernel", "d[] = sum(a) x[a] * y[a]", "a=2048", "bf16", "bf16"),
    ("v06", "base-template", "kernel::gemm_kernel::gemm_kernel", ROWS, "m=512,n=512,k=64", "bf16", "bf16"),
    ("v06", "base-template", "kernel::gemv_kernel::gemv_kernel", VECTOR, "n=256,k=2048", "bf16", "bf16"),
    ("v06", "furiosa-opt-examples", "contract_element_types::i8_contract", ROWS, "m=8,n=8,k=32", "i8", "i32"),
    ("v06", "furiosa-opt-examples", "contract_element_types::f8e4m3_contract", ROWS, "m=8,n=8,k=32", "f8e4m3", "f32"),
    ("v06", "furiosa-opt-examples", "contract_element_types::f8e5m2_contract", ROWS, "m=8,n=8,k=32", "f8e5m2", "f32"),
    ("v06", "furiosa-opt-examples", "contract_element_types::i4_contract", ROWS, "m=8,n=8,k=64", "i4", "i32"),
    ("v06", "furiosa-opt-examples", "contract_element_types::bf16_contract", ROWS, "m=8,n=8,k=16", "bf16", "f32"),
    ("v06", "furiosa-opt-examples", f"{SMALL}::lane_size::valid_size_8", ROWS, "m=8,n=8,k=64", "i8", "i32"),
    ("v06", "furiosa-opt-examples", f"{SMALL}::cpacket_size::valid_size_32", ROWS, "m=8,n=8,k=32", "i8", "i32"),
    ("v06", "furiosa-opt-examples", f"{SMALL}::time_broadcast::valid_single_tiling", ROWS, "m=8,n=40,k=32", "i8", "i32"),
    ("v06", "furiosa-opt-examples", f"{SMALL}::time_broadcast::valid_double_tiling", ROWS, "m=8,n=120,k=32", "i8", "i32"),
    ("v06", "furiosa-opt-examples", f"{SMALL}::time_broadcast::valid_transposed_tiling", ROWS, "m=8,n=80,k=32", "i8", "i32"),
]
# Published kernels that do more than products: what their products take alone, one after the other, y[n] = sum(k) x[k] * W[n, k] of these sizes.
PARTS = [
    ("v06", "furiosa-opt-examples", "transformer::ops::projection", ["n=2048,k=1024", "n=1024,k=1024", "n=1024,k=1024"]),
    ("v06", "furiosa-opt-examples", "transformer::ops::decoder", ["n=1024,k=2048", "n=3072,k=1024", "n=3072,k=1024", "n=1024,k=3072"]),
    ("v06", "furiosa-opt-examples", "transformer::ops::final_layer", ["n=155648,k=1024"]),
]
# Kernels that multiply and are no one question, and why.
OTHERS = {
    "attention": "two products with a softmax between them", "conv2d_shift": "channels outside of the places of an image", "double_buffer": "a layer after a layer",
    "two_products": "a product after a product", "repeated": "the result has an axis that no operand has", "weights": "an axis of all tensors stands inside another",
    "of_data": "operands through a table", "mixed": "operands of two types", "two_flits": "the result has an axis that no operand has", "columns": "nothing is summed",
    "mnist": "two layers", "attention_forward": "two products with a softmax between them", "zero_point_sub": "a zero point is taken off an operand",
    "stotrf_table_lookup": "weights through a table", "valid_size_2, valid_size_4": "as valid_size_8, of which they use fewer Rows", "tiling_not_in_trf": "the result has an axis that no operand has",
}
SAMPLE = ["matmul", "gemv", "fc2", "upgrade", "time_broadcast::valid_single_tiling", "dot_product"]


def cycles_of(arguments, stdin=None):
    ran = visa_tools.run(["visac", *arguments, "--report"], stdin=stdin)
    found = re.search(r"kernel \S+: (\d+) cycles", ran.text())
    return int(found[1]) if found else ran.text()[:400]


def cases():
    for file, kernel, *asked in OWN:
        yield f"{file} {kernel}", [os.path.join(visa_tools.SOURCE, file), f"--kernel={kernel}"], [tuple(asked)]
    root = os.environ.get("VISA_CORPUS")
    for snapshot, crate, function, *asked in PUBLISHED if root else []:
        library = os.path.join(root, snapshot, crate, "src", "lib.rs")
        if os.path.exists(library):
            yield f"{snapshot} {function}", [library, f"--kernel={function}"], [tuple(asked)]
    for snapshot, crate, function, products in PARTS if root else []:
        library = os.path.join(root, snapshot, crate, "src", "lib.rs")
        if os.path.exists(library):
            yield f"{snapshot} {function}", [library, f"--kernel={function}"], [(VECTOR, sizes, "bf16", "bf16") for sizes in products]


def is_asked(name, words):
    if words or visa_tools.LONG:
        return all(word in name for word in words)
    return "4096" not in name and any(word in name for word in SAMPLE)


def main():
    failures, compared, answers = [], 0, {}
    for name, kernel, asked in cases():
        if not is_asked(name, sys.argv[1:]):
            continue
        for one in asked:
            question, sizes, dtype, out = one
            if one not in answers:
                ran = visa_tools.run(["visac", "tune", question, "-D", sizes, f"--dtype={dtype}", f"--out={out}"])
                answers[one] = cycles_of(["-"], ran.out) if ran.status == 0 else ran.text()[:400]
        theirs, taken = cycles_of(kernel), [answers[one] for one in asked]
        compared += 1
        if not isinstance(theirs, int) or not all(isinstance(cycles, int) for cycles in taken):
            failures.append(f"{name}: {theirs}; {asked}: {taken}")
            continue
        ours = sum(taken)
        print(f"{name}: {theirs} cycles by hand, {ours} by visac tune{' for its products' if len(asked) > 1 else ''}: {ours / theirs:.2f}", flush=True)
        if ours > theirs:
            failures.append(f"{name}: {asked} take {ours} cycles, the kernel {theirs}")
    for name, why in OTHERS.items() if visa_tools.LONG else []:
        print(f"{name}: no one question: {why}")
    print("\n".join(failures + [f"{compared} kernels by hand, {len(failures)} failures"]))
    return 1 if failures or compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
