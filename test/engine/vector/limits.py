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


def reducing(axes, time, kept, slice_="1", counted="R"):
    return (f"axes![{axes}];\nfn k(x: CollectTensor<f32, m![1], m![1], m![{slice_}], m![{time}], m![L]>) -> VectorFinalTensor<f32, m![1], m![1], m![{slice_}], _, _> {{\n"
            f"    x.vector_init().vector_intra_slice_branch(BranchMode::Unconditional).vector_split()\n"
            f"        .vector_intra_slice_reduce::<{counted}, m![{kept}], m![1 # 4]>(IntraSliceReduceOpF32::Add).vector_pad_way8().vector_final()\n}}\n")


@limit
def vector_reduce_slots(row):
    def of(slots):
        return reducing(f"L = 8, R = 16, A = {slots}", "R / 8, A", "A").replace("m![L]", "m![R % 8]")
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-VECTOR-REDUCE")]


@limit
def vector_time_filters(row):
    def of(filters):  # a digit of padding between kept axes takes one each
        names = "ABCDEFGH"[:filters]
        axes = ", ".join(f"{n} = 2" for n in names)
        return reducing(f"R = 8, {axes}", ", ".join(f"{n}, 1 # 2" for n in names), ", ".join(names)).replace("m![L]", "m![R]").replace("L = 8, ", "")
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-VALID-COUNT")]


@limit
def vector_count_entries(row):
    def of(loops):  # digits of R from the lightest on: neighbours are no one loop
        padded = 2 ** loops
        time = [f"R # {padded}" + (f" / {1 << i}" if i else "") + (" % 2" if i + 1 < loops else "") for i in range(loops)]
        source = reducing(f"P = 8, R = {padded - 1}", ", ".join(time), "P / 4").replace("m![L]", "m![P]")
        return source.replace("m![1 # 4]", "m![P % 4]")
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-VALID-COUNT")]


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
