"""The limits of indirect copies at their edges (test/limits.py)."""
from limits import accepted, limit, refused


def gather(list_entries, in_dm):
    source = f"axes![K = 4, G = {list_entries}, D = 8];\n#[device(chip = 1)]\n"
    rows = "DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![G, D]>"
    if in_dm:
        return source + (f"fn k(ctx: &mut Context, t: &HbmTensor<i8, m![1], m![K, D]>, l: &HbmTensor<i32, m![1], m![G]>) -> {rows} {{\n"
                         f"    let l: DmTensor<i32, m![1], m![1 # 2], m![1 # 256], m![G # {list_entries + list_entries % 2}]> = l.to_dm(&mut ctx.tdma);\n"
                         f"    t.dma_gather_unscaled(&l)\n}}\n")
    return source + (f"fn k(ctx: &mut Context, t: &HbmTensor<i8, m![1], m![K, D]>, l: &HbmTensor<i32, m![1], m![G]>) -> "
                     f"DmTensor<i8, m![1], m![1 # 2], m![G / {list_entries // 256}], m![G % {list_entries // 256}, D]> {{\n    t.dma_gather_scaled(l)\n}}\n")


@limit
def indirect_list_entries(row):
    return [accepted(gather(row.value, True)), accepted(gather(row.value - 2, True)), refused(gather(row.value + 2, True), "E-INDEX-LIST")]


@limit
def indirect_list_most(row):
    return [accepted(gather(row.value, False)), refused(gather(row.value + 256, False), "E-INDEX-LIST")]
