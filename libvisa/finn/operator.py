# The streams of kernels as operators of FINN, written by visac. A class at the end has what an item
# of the source says; what follows from that is in DataflowOp. SIMD and PE (or the iPar and wPar of
# an interface) are attributes of the node, so that FINN may fold it further.
import math
from fractions import Fraction

from finn.custom_op.fpgadataflow.hwcustomop import HWCustomOp
from qonnx.core.datatype import DataType


def _ceil_div(a, b):
    return -(-a // b)


def _spread(count, room):
    """A number of elements as a tile, from the innermost dimension on, and what is left of it."""
    tile = [1] * len(room)
    for d in reversed(range(len(room))):
        tile[d] = math.gcd(count, room[d])
        count //= tile[d]
    return tile, count


def _cover(count, room):
    """A number of elements that need not tile: whole rows, and so much of the next dimension."""
    tile = [1] * len(room)
    for d in reversed(range(len(room))):
        tile[d] = min(count, room[d])
        count = _ceil_div(count, tile[d])
    return tile


class DataflowOp(HWCustomOp):
    """What all operators described by their streams share: shapes, widths and cycles follow from
    tensors, blocks and parallelism. A subclass names its interfaces and their attributes."""

    INPUTS = ()
    WEIGHTS = ()
    OUTPUTS = ()
    DATATYPES = {}  # interface: node attribute
    PARALLEL = {}  # interface: (node attribute, its dimension; None: a number for each dimension)
    GIVEN = {}  # input: intervals that the kernel knows better than the formulas, in cycles
    CONFIG = {}  # AXI-Lite interfaces, with their descriptions
    CONTROL = {}  # clocks and resets
    BATCH = 1
    PADS = False

    def __init__(self, onnx_node, **kwargs):
        super().__init__(onnx_node, **kwargs)

    # ---- the model ----

    def _tensor(self, name):
        return list(self.get_nodeattr(name + "_tensor"))

    def _block(self, name):
        return list(self.get_nodeattr(name + "_block"))

    def _blocks(self, name):
        return [_ceil_div(t, b) for t, b in zip(self._tensor(name), self._block(name))]

    def _parallel(self, name):
        attribute, dimension = self.PARALLEL[name]
        value = self.get_nodeattr(attribute)
        if dimension is None:
            return list(value)
        return [value if d == dimension else 1 for d in range(len(self._block(name)))]

    def _cii(self, name):
        """Cycles of a calculation: an input block against one block of every weight."""
        words = [_ceil_div(b, p) for b, p in zip(self._block(name), self._parallel(name))]
        return self.GIVEN.get(name, {}).get("cii", math.prod(words))

    def _groups(self):
        """Steps through the blocks of the weights."""
        steps = [1]
        for name in self.WEIGHTS:
            pairs = zip(self._blocks(name), self._parallel(name))
            steps.append(math.prod(_ceil_div(b, p) for b, p in pairs))
        return max(steps)

    def _eii(self, name):
        """Cycles of an execution: an input block against all weights."""
        return self.GIVEN.get(name, {}).get("eii", self._cii(name) * self._groups())

    def _latency(self, name):
        cycles = self._eii(name) * math.prod(self._blocks(name))
        return self.GIVEN.get(name, {}).get("latency", cycles)

    def _slowest(self):
        return max(self.INPUTS, key=self._eii)

    def _rate(self, block, name):
        """Elements of a block per cycle, at the pace of this input."""
        parallel = math.prod(self._parallel(name)) * math.prod(block)
        return Fraction(parallel, math.prod(self._block(name)))

    def _part(self, block, name):
        """What a word carries of a block, at this input's pace; does that tile it?"""
        rates = []
        for d, elements in enumerate(block):
            at = d - len(block) + len(self._block(name))
            one = Fraction(self._parallel(name)[at], self._block(name)[at]) if at >= 0 else 1
            rates.append(Fraction(elements * one))
        rate = self._rate(block, name)
        whole = math.ceil(rate)
        if all(1 in (r.numerator, r.denominator) for r in rates):
            part = [math.ceil(r) for r in rates]
            if rate.denominator != 1 or math.prod(part) == whole:
                return part, True
        tile, left = _spread(whole, block)
        return (tile, True) if left == 1 else (_cover(whole, block), False)

    def _beside(self, name):
        """The input whose blocks this interface follows."""
        if name in self.WEIGHTS:
            return max(self.INPUTS, key=lambda i: self._rate(self._block(name), i))
        return self._slowest()

    def _weight_blocks(self):
        return max([1] + [math.prod(self._blocks(name)) for name in self.WEIGHTS])

    def _output_tensor(self, name):
        """As it is stated, or a block for each input block and each block of the weights."""
        if name + "_tensor" in self.get_nodeattr_types():
            return self._tensor(name)
        block = self._block(name)
        blocks = [1] * len(block)
        of_input = self._blocks(self._slowest())
        for d, count in enumerate(of_input):
            blocks[max(0, d - len(of_input) + len(block))] *= count
        blocks[-1] *= self._weight_blocks()
        return [n * b for n, b in zip(blocks, block)]

    def _across(self, name):
        """Blocks of the interface side by side in a word."""
        if name in self.INPUTS:
            return [1] * len(self._block(name))
        if name in self.WEIGHTS:
            return self._parallel(name)
        of_weights = self._weight_blocks()
        together = _ceil_div(of_weights, self._groups())
        pairs = zip(self._output_tensor(name), self._block(name))
        blocks = [_ceil_div(t, b) for t, b in pairs]
        for d in reversed(range(len(blocks))):
            if blocks[d] % of_weights == 0:
                return [together if k == d else 1 for k in range(len(blocks))]
        tile, left = _spread(together, blocks)
        return tile if left == 1 else _cover(together, blocks)

    def _fold(self, name):
        """The tensor as a grid of words, followed by the elements of a word."""
        block = self._block(name)
        part = self._part(block, self._beside(name))[0]
        if name in self.INPUTS:
            part = self._parallel(name)
        across = self._across(name)
        tensor = self._output_tensor(name) if name in self.OUTPUTS else self._tensor(name)
        folded = []
        for t, b, a, p in zip(tensor, block, across, part):
            folded.append(_ceil_div(_ceil_div(t, b), a) * _ceil_div(b, p))
        batch = 1 if name in self.WEIGHTS else self.BATCH
        return tuple(folded + [math.prod(across) * math.prod(part) * batch])

    def _stream(self, ind):
        """The interface of an input of the node: activations, then weights."""
        streams = self.INPUTS + self.WEIGHTS
        if ind not in range(len(streams)):
            raise Exception("Undefined input ind for this layer type")
        return streams[ind]

    def _tiling_faults(self):
        """What does not tile, as verify_node says it."""
        faults = []
        for name in self.INPUTS + self.WEIGHTS:
            room = self._block(name) if name in self.INPUTS else self._blocks(name)
            for d, (n, p) in enumerate(zip(room, self._parallel(name))):
                if not 1 <= p <= n or (n % p and not self.PADS):
                    faults.append("%s: %d does not tile %d in dimension %d" % (name, p, n, d))
        for name in self.WEIGHTS + self.OUTPUTS:
            if len(self.INPUTS) > 1 or self.PADS or faults:
                continue
            if not self._part(self._block(name), self._beside(name))[1]:
                faults.append("%s: its stream does not tile its block" % name)
        return faults

    # ---- what FINN asks of every operator ----

    def get_input_datatype(self, ind=0):
        return DataType[self.get_nodeattr(self.DATATYPES[self._stream(ind)])]

    def get_output_datatype(self, ind=0):
        return DataType[self.get_nodeattr(self.DATATYPES[self.OUTPUTS[ind]])]

    def get_normal_input_shape(self, ind=0):
        return tuple(self._tensor(self._stream(ind)))

    def get_normal_output_shape(self, ind=0):
        return tuple(self._output_tensor(self.OUTPUTS[ind]))

    def get_folded_input_shape(self, ind=0):
        """Of a weight: what one execution takes, which comes again for each input block."""
        return self._fold(self._stream(ind))

    def get_folded_output_shape(self, ind=0):
        return self._fold(self.OUTPUTS[ind])

    def get_instream_width(self, ind=0):
        return self.get_folded_input_shape(ind)[-1] * self.get_input_datatype(ind).bitwidth()

    def get_outstream_width(self, ind=0):
        return self.get_folded_output_shape(ind)[-1] * self.get_output_datatype(ind).bitwidth()

    def get_number_output_values(self):
        folded = [self.get_folded_output_shape(ind) for ind in range(len(self.OUTPUTS))]
        return sum(math.prod(shape[:-1]) for shape in folded)

    def get_exp_cycles(self):
        return max(self._latency(name) for name in self.INPUTS)

    def get_verilog_top_module_intf_names(self):
        names = super().get_verilog_top_module_intf_names()
        suffix = names["s_axis"][0][0][len("in0") :]
        names["s_axis"] = [
            ("in%d%s" % (ind, suffix), self.get_instream_width_padded(ind))
            for ind in range(len(self.INPUTS + self.WEIGHTS))
        ]
        first = names["m_axis"][0][0]
        names["m_axis"] = [
            ("out%d%s" % (ind, suffix) if ind else first, self.get_outstream_width_padded(ind))
            for ind in range(len(self.OUTPUTS))
        ]
        if self.CONFIG:
            names["axilite"] = list(self.CONFIG)
        return names

    def make_shape_compatible_op(self, model):
        return self.make_const_shape_op(self.get_normal_output_shape())

    def infer_node_datatype(self, model):
        node = self.onnx_node
        for ind in range(len(node.input)):
            idt = model.get_tensor_datatype(node.input[ind])
            self.set_nodeattr(self.DATATYPES[self._stream(ind)], idt.name)
        for ind in range(len(node.output)):
            model.set_tensor_datatype(node.output[ind], self.get_output_datatype(ind))

    def verify_node(self):
        messages = self._tiling_faults()
        if self.get_nodeattr("backend") != "fpgadataflow":
            messages.append('Attribute backend should be set to "fpgadataflow"')
        if len(self.onnx_node.input) != len(self.INPUTS + self.WEIGHTS):
            messages.append("%d inputs are expected" % len(self.INPUTS + self.WEIGHTS))
        return messages

    def execute_node(self, context, graph):
        raise NotImplementedError("streams do not say what is computed: fill this in")

    # ---- resource hooks: fill them in from measurements of the kernel ----

    def get_multipliers(self):
        """Elements of the inputs per cycle times blocks of the weights at a time."""
        elements = sum(math.prod(self._parallel(name)) for name in self.INPUTS)
        together = sum(math.prod(self._parallel(name)) for name in self.WEIGHTS)
        return elements * (together or 1)

    def get_weight_memory(self):
        """Words and bits per word of each weight."""
        memory = []
        for ind in range(len(self.INPUTS), len(self.INPUTS + self.WEIGHTS)):
            words = math.prod(self.get_folded_input_shape(ind)[:-1])
            memory.append((words, self.get_instream_width(ind)))
        return memory

    def get_op_and_param_counts(self):
        counts = {}
        for ind, name in enumerate(self.WEIGHTS, len(self.INPUTS)):
            bits = self.get_input_datatype(ind).bitwidth()
            key = "param_weight_%db" % bits
            counts[key] = counts.get(key, 0) + math.prod(self._tensor(name))
        blocks = [math.prod(self._block(name)) for name in self.INPUTS + self.WEIGHTS]
        if len(self.INPUTS) == 1 and len(self.WEIGHTS) == 1 and blocks[0] == blocks[1]:
            widths = sorted(self.get_input_datatype(ind).bitwidth() for ind in range(2))
            of_weights = math.prod(self._tensor(self.WEIGHTS[0]))
            macs = math.prod(self._blocks(self.INPUTS[0])) * of_weights * self.BATCH
            counts["op_mac_%dbx%db" % tuple(widths)] = macs
        return counts

    def bram_estimation(self):
        return 0

    def uram_estimation(self):
        return 0

    def lut_estimation(self):
        return 0

    def dsp_estimation(self, fpgapart):
        return 0

    def bram_efficiency_estimation(self):
        return 1

    def uram_efficiency_estimation(self):
        return 1
