#!/usr/bin/env python3
"""`--emit=finn`: what is written is Python, has the methods that FINN's operators have, and says visac's figures. Neither FINN nor a network is
needed: the names that its classes have are listed here with their source, and stubs stand for them. Random items, each at its written point and at
another one that is set as FINN sets it, by attributes of the node. Usage: finn_operator.py [SEED]"""
import ast
import inspect
import os
import py_compile
import random
import re
import sys
import tempfile
import types

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import dataflow_conformance as conformance
import dataflow_random

# HWCustomOp of Xilinx/finn, src/finn/custom_op/fpgadataflow/hwcustomop.py at 003728eb961d: its methods, and how they are called.
HW_CUSTOM_OP = {
    "get_nodeattr_types": "self", "get_verilog_top_module_name": "self", "get_verilog_top_module_intf_names": "self", "get_rtlsim": "self",
    "close_rtlsim": "self sim", "node_res_estimation": "self fpgapart", "bram_efficiency_estimation": "self", "uram_efficiency_estimation": "self",
    "bram_estimation": "self", "uram_estimation": "self", "lut_estimation": "self", "dsp_estimation": "self fpgapart", "get_exp_cycles": "self",
    "get_op_and_param_counts": "self", "reset_rtlsim": "self sim", "toggle_clk": "self sim", "generate_params": "self model path",
    "get_number_output_values": "self", "get_input_datatype": "self ind", "get_output_datatype": "self ind", "get_normal_input_shape": "self ind",
    "get_normal_output_shape": "self ind", "get_folded_input_shape": "self ind", "get_folded_output_shape": "self ind", "get_instream_width": "self ind",
    "get_outstream_width": "self ind", "get_instream_width_padded": "self ind", "get_outstream_width_padded": "self ind"}
# CustomOp of fastmachinelearning/qonnx, src/qonnx/custom_op/base.py at 1ef4743edc8c: what every operator has to define.
CUSTOM_OP = {"get_nodeattr_types": "self", "make_shape_compatible_op": "self model", "infer_node_datatype": "self model", "execute_node": "self context graph",
             "verify_node": "self"}
# What raises in HWCustomOp, or is abstract or a placeholder there ("has to be filled by every node").
TO_DEFINE = {"get_number_output_values", "get_input_datatype", "get_output_datatype", "get_normal_input_shape", "get_normal_output_shape",
             "get_folded_input_shape", "get_folded_output_shape", "get_instream_width", "get_outstream_width", "get_exp_cycles", "bram_estimation",
             "uram_estimation", "lut_estimation", "dsp_estimation", "get_op_and_param_counts"} | set(CUSTOM_OP)
OUR_OWN = {"get_multipliers", "get_weight_memory", "__init__"}
# Names of element types, src/qonnx/core/datatype.py at 0bc740aff350 (resolve_datatype).
TYPE = re.compile(r"BINARY|FLOAT32|U?INT(\d+)|FLOAT<(\d+),(\d+)>")


class DataTypes:
    def __getitem__(self, name):
        found = TYPE.fullmatch(name)
        assert found and name != "UINT1", name
        bits = 1 if name == "BINARY" else 32 if name == "FLOAT32" else int(found[1]) if found[1] else 1 + int(found[2]) + int(found[3])
        return types.SimpleNamespace(name=name, bitwidth=lambda: bits)


class Stub:
    """What HWCustomOp and CustomOp give an operator; the rest is the operator's."""

    def __init__(self, onnx_node, **kwargs):
        self.onnx_node, self.values = onnx_node, kwargs

    def get_nodeattr_types(self):
        return {"backend": ("s", True, "fpgadataflow")}

    def get_nodeattr(self, name):
        kind, required, default = self.get_nodeattr_types()[name][:3]
        value = self.values.get(name, default)
        assert not required or name in self.values or name == "backend", f"{name} is required"
        assert isinstance(value, {"i": int, "s": str, "ints": list}[kind]), (name, kind, value)
        return value

    def set_nodeattr(self, name, value):
        assert name in self.get_nodeattr_types(), name
        self.values[name] = value

    def make_const_shape_op(self, shape):
        return list(shape)

    def get_instream_width_padded(self, ind=0):
        return -(-self.get_instream_width(ind=ind) // 8) * 8

    def get_outstream_width_padded(self, ind=0):
        return -(-self.get_outstream_width(ind=ind) // 8) * 8

    def get_verilog_top_module_intf_names(self):
        return {"clk": ["ap_clk"], "rst": ["ap_rst_n"], "s_axis": [("in0_V", 0)], "m_axis": [("out_V", 0)], "aximm": [], "axilite": [], "ap_none": []}


def modules():
    for name, values in (("finn.custom_op.fpgadataflow.hwcustomop", {"HWCustomOp": Stub}), ("qonnx.core.datatype", {"DataType": DataTypes()})):
        parts = name.split(".")
        for n in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:n]), types.ModuleType(parts[n - 1]))
        vars(sys.modules[name]).update(values)


def written(source, *options):
    """The module's namespace; it is Python that compiles, too."""
    status, text, error = conformance.run(source, "--emit=finn", *options)
    if status:
        raise AssertionError(error)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "operators.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        py_compile.compile(path, doraise=True)
    space = {}
    exec(compile(text, "operators.py", "exec"), space)  # pylint: disable=exec-used
    return space, text


def operator(kind, **attributes):
    streams = len(kind.INPUTS + kind.WEIGHTS)
    return kind(types.SimpleNamespace(name="node", op_type=kind.__name__, input=[f"in{n}" for n in range(streams)], output=[f"out{n}" for n in range(len(kind.OUTPUTS))]), **attributes)


def check_conventions():
    """Every method that has to be filled is, as FINN calls it; none is overwritten that FINN has not, and none is misspelt."""
    space, text = written(conformance.item([{"tensor": [1, 8], "block": [1, 8]}], [{"tensor": [4, 8], "block": [1, 8]}], [{"block": [1, 1]}]))
    faults, known = [], {**HW_CUSTOM_OP, **CUSTOM_OP}
    kind = space["CASE"]
    methods = {name: f for c in kind.__mro__ if c not in (Stub, object) for name, f in vars(c).items() if inspect.isfunction(f)}
    faults += [f"{name} is left to the operator, which does not define it" for name in TO_DEFINE - set(methods)]
    for name, function in methods.items():
        if name.startswith("_") or name in OUR_OWN:
            continue
        if name not in known:
            faults.append(f"{name} is no method of FINN's")
        elif " ".join(inspect.signature(function).parameters) != known[name]:
            faults.append(f"{name}{inspect.signature(function)} is called with {known[name]}")
        elif "ind" in known[name] and inspect.signature(function).parameters["ind"].default != 0:
            faults.append(f"{name}: ind is 0 where it is not given")
    for name, row in operator(kind).get_nodeattr_types().items():
        if len(row) not in (3, 4) or row[0] not in ("i", "s", "ints") or not isinstance(row[1], bool):
            faults.append(f"{name}: {row} is no attribute of a node")
    faults += [f"line {n} has {len(line)} columns" for n, line in enumerate(text.splitlines(), 1) if len(line) > 100 and n < text[:text.index("class CASE")].count("\n")]
    faults += [] if list(space["custom_op"]) == ["CASE"] else ["custom_op does not name the class"]
    used = {n.attr for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"}
    have = set(methods) | set(known) | {"get_nodeattr", "set_nodeattr", "make_const_shape_op", "onnx_node", "INPUTS", "WEIGHTS", "OUTPUTS", "DATATYPES", "PARALLEL", "GIVEN",
                                        "CONFIG", "CONTROL", "BATCH", "PADS"}
    return 1, faults + [f"self.{name} is nobody's" for name in used - have]


def agree(op, item):
    """Figures of an operator that are not those of the item, as --emit=dataflow-json has them."""
    faults = []

    def same(what, mine, other):
        if mine != other:
            faults.append(f"{item['name']}: {what}: {mine} and not {other}")
    for ind, face in enumerate(item["inputs"] + item["weights"]):
        same(f"folded input {ind}", list(op.get_folded_input_shape(ind)), face["folded_shape"])
        same(f"normal input {ind}", list(op.get_normal_input_shape(ind)), face["tensor"])
        same(f"width of input {ind}", op.get_instream_width(ind), face["word_bits"])
    for ind, face in enumerate(item["outputs"]):
        same(f"folded output {ind}", list(op.get_folded_output_shape(ind)), face["folded_shape"])
        same(f"normal output {ind}", list(op.get_normal_output_shape(ind)), face["calculated_tensor"])
        if "word_bits" in face:
            same(f"width of output {ind}", op.get_outstream_width(ind), face["word_bits"])
    same("cycles", op.get_exp_cycles(), item["L"])
    words = 0
    for face in item["outputs"]:
        n = 1
        for count in face["folded_shape"][:-1]:
            n *= count
        words += n
    same("output values", op.get_number_output_values(), words)
    same("what verify_node says", op.verify_node(), [])
    names = op.get_verilog_top_module_intf_names()
    same("s_axis", names["s_axis"], [(f"in{n}_V", -(-f["word_bits"] // 8) * 8) for n, f in enumerate(item["inputs"] + item["weights"])])
    same("axilite", names["axilite"], [f["name"] for f in item["config"]])
    same("shape inference", op.make_shape_compatible_op(None), item["outputs"][0]["calculated_tensor"])
    return faults


def at_point(kind, m):
    """The attributes that FINN would set for these iPar and wPar."""
    values = {}
    for key, faces in (("iPar", m[0]), ("wPar", m[1])):
        for number, f in enumerate(faces):
            attribute, dimension = kind.PARALLEL[f"{key[0]}{number}"]
            values[attribute] = f[key] if dimension is None else f[key][dimension]
    return values


def check_random(rng, count):
    faults = []
    for n in range(count):
        m = dataflow_random.tiling_model(rng)
        extra = rng.choice(["", "", "batch: 3, ", "pads: true, ", 'config: [Config { name: "s_axilite", bits: 7 }], '])
        while True:
            other = tuple([{**f, key: [rng.choice(dataflow_random.divisors(b if key == "iPar" else t // b)) for t, b in zip(f["tensor"], f["block"])]} for f in faces]
                          for key, faces in zip(("iPar", "wPar"), m[:2])) + (m[2],)
            if None not in sum(conformance.words(*other), []):
                break
        texts = [conformance.item(*one, f"M{n}", extra) for one in (m, other)]
        space, _ = written(texts[0])
        kind = space[f"M{n}"]
        here, there = (conformance.model(t)["items"][0] for t in texts)
        faults += agree(operator(kind), here) + [f"at another point: {f}" for f in agree(operator(kind, **at_point(kind, other)), there)]
    return count, faults


def check_layers():
    """FINN's own numbers of a matrix-vector unit: SIMD and PE, folded shapes, widths, cycles, counts; a point that does not tile is told."""
    source = conformance.item([{"tensor": [6, 784], "block": [1, 784], "iPar": [1, 49]}], [{"tensor": [64, 784], "block": [1, 784], "wPar": [16, 1], "dtype": "u1"}],
                              [{"block": [1, 1], "dtype": "i32"}])
    kind = written(source)[0]["CASE"]
    faults = []
    for simd, pe in ((49, 16), (784, 64), (1, 1), (8, 4)):
        op = operator(kind, SIMD=simd, PE=pe)
        expect = [((6, 784 // simd, simd), op.get_folded_input_shape()), ((6, 64 // pe, pe), op.get_folded_output_shape()), (8 * simd, op.get_instream_width()),
                  (pe * simd, op.get_instream_width(1)), (32 * pe, op.get_outstream_width()), (64 // pe * (784 // simd) * 6, op.get_exp_cycles()),
                  ({"op_mac_1bx8b": 784 * 64 * 6, "param_weight_1b": 784 * 64}, op.get_op_and_param_counts()), (simd * pe, op.get_multipliers()),
                  ([(784 * 64 // (simd * pe), simd * pe)], op.get_weight_memory()), ("BINARY", op.get_input_datatype(1).name)]
        faults += [f"SIMD {simd}, PE {pe}: {got} instead of {wanted}" for wanted, got in expect if wanted != got]
    faults += [f"verify_node({bad})" for bad in ({"SIMD": 50}, {"PE": 7}, {"SIMD": 0}, {"PE": 128}) if not operator(kind, **bad).verify_node()]
    try:
        operator(kind).get_input_datatype(2)
        faults.append("input 2 has a type")
    except Exception:  # pylint: disable=broad-except
        pass
    return 4, faults


def check_texts():
    """Names and types of all kinds; no class hides another, or a word of Python."""
    source = "".join(f'const {name}: Dataflow = Dataflow {{ inputs: [Input {{ name: "{face}", tensor: [4], block: [4], dtype: {dtype}{given} }}], '
                     f'outputs: [Output {{ name: "o", block: [4]{out} }}], control: [Control {{ name: "ap_clk", note: "é" }}] }};\n'
                     for name, face, dtype, given, out in (("None", "a b", "bf16", ", latency: 99", ", dtype: u64"), ("DataflowOp", "-", "f8e4m3", "", ""), ("A", "self", "f4e2m1", ", cii: 9", ""),
                                                            ("math", "in", "i1", "", ", dtype: f32"), ("B", "ünï", "f8e5m2", "", "")))
    source += "mod m { " + source.splitlines()[2] + " }\n"
    space, _ = written(source)
    faults = [] if list(space["custom_op"]) == ["None_2", "DataflowOp_2", "A", "math_2", "B", "A_2"] else [f"{list(space['custom_op'])}"]
    for kind, item in zip(space["custom_op"].values(), conformance.model(source)["items"]):
        faults += agree(operator(kind, **({} if "dtype" in item["outputs"][0] else {"outputDataType": "INT8"})), {**item, "outputs": [item["outputs"][0]]})
        if kind.CONTROL != {"ap_clk": 'note: "é"'}:
            faults.append(f"{kind.CONTROL}")
    for bits in (5, 9):  # which the machine keeps in 4 and 8
        text = conformance.item([{"tensor": [4], "block": [4], "dtype": f"i{bits}"}], [], [{"block": [4]}])
        item = conformance.model(text)["items"][0]
        if item["inputs"][0]["dtype"] != f"i{bits}" or item["inputs"][0]["word_bits"] != bits or f'"INT{bits}"' not in conformance.run(text, "--emit=finn")[1]:
            faults.append(f"i{bits}: {item['inputs']}")
    status, out, error = conformance.run("axes![A = 8];\n#[device(chip = 1)]\nfn k(ctx: &mut Context) {}\n", "--emit=finn")
    faults += [] if status == 1 and not out and "E-DATAFLOW-FINN" in error else [f"no item: {status} {error}"]
    return 6, faults


def main():
    rng, failed = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1), 0
    modules()
    for what, (count, faults) in (("list of FINN's methods", check_conventions()), ("points of a matrix-vector unit", check_layers()), ("names and types", check_texts()),
                                  ("random items", check_random(rng, 25 * visa_tools.LONGER))):
        print("\n".join(faults[:5] + [f"{count} {what}, {len(faults)} faults"]))
        failed += len(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
