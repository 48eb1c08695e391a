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


def stored(flits, more=""):
    return (f"axes![L = {flits}, B = 8];\nfn k(x: CollectTensor<f32, {FRAGMENT}, m![L], m![B]>) -> VrfTensor<f32, {FRAGMENT}, m![L, B]> {{\n"
            f"    x{more}.to_vrf()\n}}\n")


@limit
def vrf_bytes(row):
    most = row.value // 32
    return [accepted(stored(most)), refused(stored(most + 1), "E-CAPACITY")]


@limit
def vrf_stash_bytes(row):
    def of(flits):  # since 0.7
        return stored(flits, ".vector_init().vector_intra_slice_tag(TagMode::Zero).vector_stash().vector_clip(ClipBinaryOpF32::Max, Stash).vector_final()"
                      ).replace("fn k(", "#[allow(unused)]\nfn k(")
    most = (row.all["vrf_bytes"] - row.value) // 32
    return [accepted(of(most)), refused(of(most + 1), "E-VRF-STASH")]


@limit
def vector_pair_elements(row):
    def of(steps):
        return (f"axes![L = {steps}, I = 2, B = 8];\nfn k(x: CollectTensor<f32, {FRAGMENT}, m![I, L], m![B]>) -> VectorFinalTensor<f32, {FRAGMENT}, _, _> {{\n"
                f"    x.vector_init().vector_intra_slice_unzip::<I, m![1 # 2, L], m![L]>().vector_clip_zip(ClipBinaryOpF32::Add).vector_final()\n}}\n")
    most = row.value // row.all["vector_lanes"]
    return [accepted(of(most)), refused(of(most + 1), "E-VECTOR-PAIR")]
