"""The limits of the Vector Engine at their edges (test/limits.py)."""
from limits import FRAGMENT, accepted, limit, refused


def through(axes, packet, stages):
    return (f"axes![{axes}];\nfn k(x: CollectTensor<f32, {FRAGMENT}, m![1], m![{packet}]>) -> VectorFinalTensor<f32, {FRAGMENT}, _, _> {{\n"
            f"    x.vector_init().vector_intra_slice_branch(BranchMode::Unconditional){stages}.vector_final()\n}}\n")


@limit
def vector_lanes(row):
    def of(lanes):
        return through(f"L = {lanes}", "L", "")
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-VECTOR-FLIT"), refused(of(row.value - 1), "E-VECTOR-FLIT")]


@limit
def vector_narrow_lanes(row):
    def of(live):
        return through(f"L = {live}", f"L # {2 * row.value}", ".vector_trim_way4().vector_pad_way8()")
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-VECTOR-WIDTH")]
