"""The Transpose Engine as docs/isa.md says it, for the machine over a field in Python (test/field/field_machine.py)."""


def transpose(_, command, data, dtype, __):
    f = command["f"]
    flit = FLIT * 8 // BITS[dtype]  # noqa: F821
    flits = [data[at:at + flit] for at in range(0, len(data), flit)]
    size, out = f["in_rows"] * f["packets_per_col"], []
    for block in range(0, len(flits), size):
        for column in range(f["out_rows"]):
            piece, element = divmod(column, f["valid_size"])
            rows = [flits[block + row * f["packets_per_col"] + piece][element] for row in range(f["in_rows"])]
            out += rows + [UNKNOWN] * (flit - len(rows))  # noqa: F821
    return out, dtype


STAGES = {"transpose": transpose}
