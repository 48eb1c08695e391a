"""The limits of the Transpose Engine at their edges (test/limits.py)."""
from limits import FRAGMENT, accepted, limit, refused


def turn(axes, time, packet, out_time, out_packet):
    return (f"axes![{axes}];\nfn k(x: CollectTensor<i8, {FRAGMENT}, m![{time}], m![{packet}]>) -> TransposeTensor<i8, {FRAGMENT}, m![{out_time}], m![{out_packet}]> {{\n"
            f"    x.transpose::<m![{out_time}], m![{out_packet}]>()\n}}\n")


@limit
def transpose_row_bytes(row):
    def of(rows):
        return turn(f"R = {rows}, E = 8", "R", "E # 32", "E", "R # 32")
    return [accepted(of(row.value)), accepted(of(row.value - 1)), refused(of(row.value + 1), "E-TRANSPOSE-ROWS")]


@limit
def transpose_columns(row):
    def of(flits):
        return turn(f"R = 4, P = {flits}, E = 8", "R, P", "E # 32", "P, E", "R # 32")
    return [accepted(of(row.value // 8)), refused(of(row.value // 8 + 1), "E-TRANSPOSE-COLUMNS"), refused(of(row.value // 4), "E-TRANSPOSE-COLUMNS")]
