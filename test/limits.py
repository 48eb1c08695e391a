#!/usr/bin/env python3
"""Every limit at its edge, from its row: a kernel at the limit is accepted, one beyond it is refused with the id of the rule.

The rows of target/limits.def are read, not repeated: each name has a function here that is given the row's value and makes the two sides.
A row that neither has one nor says by its unit or in COSTS that it bounds nothing is a failure, as is a function without a row. The rows
of target/step/step.def are judged in test/step/test_step.c, those of target/command.def in test/binary/test_command.c, both from the rows.
"""
import glob
import os
import re
import runpy
import sys
import tempfile

import limit_rows
import visa_tools

HEAD = "#[device(chip = 1)]\n"
UNITS = "m![1], m![1 # 2], m![1 # 256]"
FRAGMENT = "m![1], m![1], m![1]"

# Numbers of a model: how long something takes, not what may be written. Which test holds them to their published figures.
COST_UNITS = {"cycles", "cycles / 1000", "bytes per cycle", "times a full block"}
COSTS = {
    "trf_bank_rows": "test_trf_timing", "trf_bank_columns": "test_trf_timing", "trf_row_bytes": "test_trf_timing", "trf_cache_sets": "test_trf_timing",
    "dma_request_bytes": "test_schedule", "dma_dmns_per_engine": "test_schedule", "dm_slices_per_dmn": "test_schedule", "hbm_block_bytes": "test_schedule", "hbm_channels": "test_schedule",
    "hbm_burst_bytes": "test_schedule", "dm_bank_bytes": "test_schedule", "dm_starving_accesses": "test_schedule",
    "dm_slice_stride_bytes": "test_machine",
}
# No source text comes near: a slice's DM ends first.
ELSEWHERE = {"hbm_chip_stride_bytes": "test_machine", "spm_base_bytes": "cases", "sequencer_stride_min": "test_sequence", "sequencer_stride_max": "test_sequence"}

LIMITS = limit_rows.Limits("target/limits.def", {**COSTS, **ELSEWHERE})
limit = LIMITS.limit


class Row:
    def __init__(self, value, all_rows):
        self.value, self.all = value, all_rows


def accepted(text):
    return text, None, None


def refused(text, rule):
    return text, rule, None


def shows(text, pattern):
    """Accepted, and the tables have this."""
    return text, None, pattern


def fetch(axes, element, time, packet, dtype="i8", context="main", units=UNITS, chip=1, to=None):
    to = to or dtype
    return (f"axes![{axes}];\n#[device(chip = {chip})]\n"
            f"fn k(ctx: &mut Context, d: &DmTensor<{dtype}, {units}, m![{element}]>) -> FetchTensor<{to}, {units}, m![{time}], m![{packet}]> {{\n"
            f"    ctx.{context}.begin(d.view()).fetch::<{to}, m![{time}], m![{packet}]>()\n}}\n")


def load(axes, hbm, dm, address=0):
    return (f"axes![{axes}];\n{HEAD}fn k(ctx: &mut Context, h: &HbmTensor<i8, m![1], m![{hbm}]>) -> DmTensor<i8, {UNITS}, m![{dm}]> {{\n"
            f"    h.to_dm(&mut ctx.tdma, {address})\n}}\n")


def chip_units(chips, clusters, slices):
    return f"m![1 # {chips}], m![1 # {clusters}], m![1 # {slices}]"


@limit
def clusters_per_chip(row):
    def of(n):
        return fetch("K = 32", "K", "1", "K", units=chip_units(1, n, row.all["slices_per_cluster"]))
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-CLUSTERS"), refused(of(row.value - 1), "E-CLUSTERS")]


def index_list(entries, pes):
    slices = "m![1 # 256]"
    return (f"axes![G = {entries}];\n{HEAD}fn k(device: &mut Device, l: &HbmTensor<i32, m![1], m![G]>) -> DmTensor<i32, m![1], m![1 # 2], {slices}, m![G]> {{\n"
            f"    let l: DmTensor<i32, m![1], m![1 # 2], {slices}, m![G]> = l.to_dm(&mut device.tdma);\n"
            f"    let l: SpmTensor<i32, m![1], m![1 # 2], m![1 # {pes}], m![G]> = l.to_spm(&mut device.tdma);\n    l.to_dm(&mut device.tdma)\n}}\n")


@limit
def slices_per_pe(row):
    pes = row.all["slices_per_cluster"] // row.value
    return [accepted(index_list(8, pes)), refused(index_list(8, pes + 1), "E-PES"), refused(index_list(8, pes - 1), "E-PES")]


@limit
def spm_bytes_per_pe(row):
    return [accepted(index_list(row.value // 4, 4)), refused(index_list(row.value // 4 + 2, 4), "E-CAPACITY")]


@limit
def slices_per_cluster(row):
    def of(n):
        return fetch("K = 32", "K", "1", "K", units=chip_units(1, row.all["clusters_per_chip"], n))
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-SLICES"), refused(of(row.value - 1), "E-SLICES")]


@limit
def chips(row):
    def of(n):
        return fetch("K = 32", "K", "1", "K", units=chip_units(n, row.all["clusters_per_chip"], row.all["slices_per_cluster"]), chip=n)
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-CHIPS")]


@limit
def dm_bytes_per_slice(row):
    return [accepted(load(f"B = {row.value}", "B", "B")), refused(load(f"B = {row.value + 1}", "B", "B"), "E-CAPACITY"),
            accepted(load("K = 64", "K", "K", row.value - 64)), refused(load("K = 64", "K", "K", row.value - 56), "E-CAPACITY")]


@limit
def hbm_bytes_per_chip(row):
    return [accepted(load("K = 64", f"K # {row.value}", "K")), refused(load("K = 64", f"K # {row.value + 1}", "K"), "E-CAPACITY")]


def collect(flit):
    return (f"axes![M = 4, K = {flit}];\nfn k(x: FetchTensor<i8, {FRAGMENT}, m![M], m![K]>) -> CollectTensor<i8, {FRAGMENT}, m![M], m![K]> {{\n"
            f"    x.collect::<m![M], m![K]>()\n}}\n")


@limit
def flit_bytes(row):
    return [accepted(collect(row.value)), refused(collect(row.value + 8), "E-COLLECT-FLIT"), refused(collect(row.value - 8), "E-COLLECT-FLIT")]


def align(row_axis, packet, flit=32, rows="R"):
    return (f"axes![A = 4, R = {row_axis}, E = {flit}];\n"
            f"fn k(x: CollectTensor<i8, {FRAGMENT}, m![A], m![E]>, w: &TrfTensor<i8, {FRAGMENT}, m![{rows}], m![E]>) -> AlignedPair<i8, {FRAGMENT}, m![{rows}], m![A], m![E # {packet}]> {{\n"
            f"    x.align::<m![A], m![E # {packet}], _, _>(w)\n}}\n")


@limit
def mac_width_bytes(row):
    return [accepted(align(8, row.value)), refused(align(8, row.value + 1), "E-ALIGN-WIDTH"), refused(align(8, row.value - 1), "E-ALIGN-WIDTH")]


@limit
def rows(row):
    return [accepted(align(row.value, 64)), refused(align(row.value + 1, 64), "E-TRF-ROWS"), refused(align(2 * row.value, 64), "E-TRF-ROWS")]


def shift(axes, window, flits, packet):
    whole = f"$({window}) # {flits * 32}"
    return (f"axes![{axes}];\n"
            f"fn k(i: CollectTensor<i8, {FRAGMENT}, m![A, {whole} / 32], m![{whole} % 32]>, w: &TrfTensor<i8, {FRAGMENT}, m![N], m![F]>) -> "
            f"AlignedPair<i8, {FRAGMENT}, m![N], m![A, F], m![{packet}]> {{\n    i.align(w)\n}}\n")


@limit
def flit_buffer_bytes(row):
    def of(flits):
        return shift(f"A = 4, N = 8, F = 3, V = {32 * flits - 2}", "V:1, F:1", flits, "V = 64")
    most = row.value // row.all["flit_bytes"]
    return [accepted(of(most)), refused(of(most + 1), "E-SHIFT-FLITS")]


@limit
def shift_stride_bytes(row):
    def of(step):
        return shift(f"A = 4, N = 8, F = 2, X = {64 - step}", f"X:1, F:{step}", 2, "X # 64")
    return [accepted(of(row.value - 1)), refused(of(row.value), "E-SHIFT-STRIDE")]


def trf(flits, rows_of):
    return (f"axes![R = {rows_of}, E = {32 * flits}];\n"
            f"fn k(x: CollectTensor<i8, {FRAGMENT}, m![R, E / 32], m![E % 32]>) -> TrfTensor<i8, {FRAGMENT}, m![R], m![E]> {{\n    x.to_trf(TrfAddress::Full)\n}}\n")


@limit
def trf_bytes(row):
    most = row.value // 32 // 8
    return [accepted(trf(most, 8)), refused(trf(most + 1, 8), "E-TRF-CAPACITY")]


@limit
def sequencer_entries(row):
    def of(loops):
        names = [f"L{i}" for i in range(loops)]
        axes = ", ".join([f"{name} = 2" for name in names] + ["P = 8"])
        return fetch(axes, ", ".join(names + ["P"]), ", ".join(reversed(names)), "P")
    return [accepted(of(row.value - 1)), refused(of(row.value), "E-SEQ-ENTRIES")]  # the packet is an entry too


def next_prime(n):
    while any(n % d == 0 for d in range(2, int(n ** 0.5) + 1)):
        n += 1
    return n


@limit
def sequencer_entry_size(row):
    beyond = next_prime(row.value + 1)
    return [shows(fetch(f"P = 8, T = {row.value}", "P", "T", "P"), rf"\{{ size: {row.value}, stride: 0 \}}"),
            refused(fetch(f"P = 8, T = {beyond}", "P", "T", "P"), "E-SEQ-ITER"),
            shows(fetch(f"P = 8, T = {2 * row.value}", "P", "T", "P"), rf"\{{ size: 2, stride: 0 \}}")]


@limit
def fetch_packet_multiple_bytes(row):
    n = row.value
    return [accepted(fetch(f"A = 4, P = {n}", "A, P", "A", "P")), refused(fetch(f"A = 4, P = {n + 1}", "A, P", "A", "P"), "E-FETCH-ALIGN"),
            refused(fetch(f"A = 4, P = {n - 1}", "A, P", "A", "P"), "E-FETCH-ALIGN")]


@limit
def fetch_access_max_bytes(row):
    n = row.value
    return [shows(fetch(f"A = 4, P = {n}", "A, P", "A", "P"), rf"access {n} bytes"), shows(fetch(f"A = 4, P = {2 * n}", "A, P", "A", "P"), rf"access {n} bytes"),
            shows(fetch(f"A = 4, P = {n // 2}", "A, P # 256", "A", "P"), rf"access {n // 2} bytes")]


@limit
def fetch_access_sub_bytes(row):
    n = row.value
    fits = row.all["flit_bytes"] // 8  # of i4, 8 times as large as i32
    return [shows(fetch(f"A = 4, P = {4 * n}", "A, P", "A", "P", context="sub"), rf"access {n} bytes"),
            refused(fetch(f"B = 2, A = 4, C = {n // 2}", "B, A, C", "A", "B, C", context="sub"), "E-FETCH-SIZE"),
            shows(fetch(f"A = 4, P = {2 * fits}", "A, P", "A", "P", "i4", "sub", to="i32"), rf"access {fits} bytes"),
            refused(fetch(f"B = 2, A = 4, C = {fits}", "B, A, C", "A", "B, C", "i4", "sub", to="i32"), "E-FETCH-SIZE"),
            shows(fetch(f"A = 4, P = {n}", "A, P", "A", "P", "i8", "sub", to="i32"), rf"access {n} bytes"),
            refused(fetch(f"B = 2, A = 4, C = {n // 2}", "B, A, C", "A", "B, C", "i8", "sub", to="i32"), "E-FETCH-SIZE")]


def commit(kept, cell, address=0, flit=32):
    return (f"axes![M = 4, N = {kept}];\nfn k(x: CollectTensor<i8, {FRAGMENT}, m![M], m![N # {flit}]>) -> DmTensor<i8, {FRAGMENT}, m![M, N # {cell}]> {{\n"
            f"    x.commit::<m![M, N # {cell}]>({address})\n}}\n")


def narrowed(kept):
    return (f"axes![M = 4, N = {kept}];\nfn k(x: CollectTensor<f32, {FRAGMENT}, m![M], m![N # 8]>) -> DmTensor<bf16, {FRAGMENT}, m![M, N]> {{\n"
            f"    x.commit_trim::<m![N]>().commit_cast::<bf16>().commit()\n}}\n")


@limit
def commit_multiple_bytes(row):
    n = row.value
    return [accepted(narrowed(n // 2)), refused(narrowed(n // 4), "E-COMMIT-CAST"), accepted(narrowed(n)), accepted(commit(n, n)), refused(commit(n, n + 1), "E-COMMIT-STRIDE"), accepted(commit(n, n, n)), refused(commit(n, n, n - 1), "E-COMMIT-STRIDE"),
            refused(commit(n, n, n + 1), "E-COMMIT-STRIDE")]


@limit
def commit_max_bytes(row):
    n, step = row.value, row.all["commit_multiple_bytes"]
    return [accepted(commit(n, n)), refused(commit(n, n + step), "E-COMMIT-WIDTH")]


@limit
def dma_packet_max_bytes(row):
    n = row.value
    return [shows(load(f"B = {n}", "B", "B"), rf"packet {n} bytes"), shows(load(f"B = {n + 8}", "B", "B"), rf"packet (?!{n + 8} )\d+ bytes")]


@limit
def dma_dm_multiple_bytes(row):
    n = row.value
    return [accepted(load(f"A = 4, B = {n}", "A, B", f"A, B # {2 * n}")), refused(load(f"A = 4, B = {n + 1}", "A, B", f"A, B # {2 * n}"), "E-DMA-ALIGN"),
            refused(load(f"A = 4, B = {n - 1}", "A, B", f"A, B # {2 * n}"), "E-DMA-ALIGN"),
            accepted(load("B = 32", "B", "B", n)), refused(load("B = 32", "B", "B", n // 2), "E-DMA-ALIGN"), refused(load("B = 32", "B", "B", n + 1), "E-DMA-ALIGN")]


def stream(time, packet, dtype="i8"):
    return (f"axes![K = 32];\nfn k(x: FetchTensor<{dtype}, {FRAGMENT}, m![1 # {time}], m![{packet}]>) -> CollectTensor<{dtype}, {FRAGMENT}, _, _> {{\n    x.collect()\n}}\n")


@limit
def stream_steps(row):
    return [accepted(stream(row.value, "K")), refused(stream(row.value + 1, "K"), "E-STREAM-SIZE")]


@limit
def collect_packet_flits(row):
    each = row.all["flit_bytes"]
    return [accepted(stream(1, f"K # {row.value * each}")), refused(stream(1, f"K # {row.value * each + 1}"), "E-STREAM-SIZE")]


@limit
def stream_packet_elements(row):
    # A packet of so many elements is more flits than collect counts: what else is wrong with it is not asked then.
    def of(n):
        return f"axes![K = 8];\nfn k(x: FetchTensor<i4, {FRAGMENT}, m![1], m![K # {n}]>) -> FetchTensor<i4, {FRAGMENT}, m![1], m![K # {n}]> {{\n    x\n}}\n"
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-STREAM-SIZE")]


def contract(columns):
    return (f"axes![M = 4, K = 64, R = 8];\n"
            f"fn k(x: CollectTensor<i8, {FRAGMENT}, m![M, K / 32], m![K % 32]>, w: &TrfTensor<i8, {FRAGMENT}, m![R], m![K]>) -> ContractionTensor<i32, {FRAGMENT}, m![R], m![M], m![K / {64 // columns}]> {{\n"
            f"    x.align::<m![M], m![K], _, _>(w).contract::<m![K / {64 // columns}]>()\n}}\n")


@limit
def accumulator_columns(row):
    return [accepted(contract(row.value)), refused(contract(2 * row.value), "E-CONTRACT-WIDE")]


def accumulate(slots, kind, rows_of):
    row_mapping, packet = ("N", "N") if rows_of > 1 else ("1", "1 # 8")
    return (f"axes![A = 4, E = {slots}, H = 16, N = 8];\n"
            f"fn k(x: CollectTensor<bf16, {FRAGMENT}, m![A, E], m![H]>, w: &TrfTensor<bf16, {FRAGMENT}, m![{row_mapping}], m![A, H]>) -> AccumulationTensor<f32, {FRAGMENT}, m![E], m![{packet}]> {{\n"
            f"    x.align::<m![A, E], m![H # 32], _, _>(w).contract::<m![1]>().accumulate(AccumulationKind::{kind})\n}}\n")


@limit
def accumulator_registers(row):
    wide, narrow = row.value * row.all["accumulator_columns"], row.value * row.all["rows"]
    return [accepted(accumulate(wide, "Interleaved", 8)), refused(accumulate(wide + 1, "Interleaved", 8), "E-ACCUMULATE-BUFFER"),
            accepted(accumulate(narrow, "Sequential", 1)), refused(accumulate(narrow + 1, "Sequential", 1), "E-ACCUMULATE-BUFFER")]


@limit
def output_lanes(row):
    def of(lanes):
        return (f"axes![A = 4, H = 16];\n"
                f"fn k(x: CollectTensor<bf16, {FRAGMENT}, m![A], m![H]>, w: &TrfTensor<bf16, {FRAGMENT}, m![1], m![H]>) -> AccumulationTensor<f32, {FRAGMENT}, m![A], m![1 # {lanes}]> {{\n"
                f"    x.align::<m![A], m![H # 32], _, _>(w).contract::<m![1]>().accumulate(AccumulationKind::Interleaved)\n}}\n")
    return [accepted(of(row.value)), refused(of(row.value + 1), "E-ACCUMULATE-PACKET"), refused(of(row.value - 1), "E-ACCUMULATE-PACKET")]


@limit
def initial_shift_bytes(row):
    # A window whose first element stands so many places before the flits, where there are zeros.
    def of(first):
        held = f"$(W:1, G:{first} | {first}..{first + 32})"
        return (f"axes![A = 4, G = 2, N = 8, W = 32];\n"
                f"fn k(i: CollectTensor<i8, {FRAGMENT}, m![A], m![{held}]>, w: &TrfTensor<i8, {FRAGMENT}, m![N], m![G]>) -> AlignedPair<i8, {FRAGMENT}, m![N], m![A, G], m![W # 64]> {{\n"
                f"    i.align(w)\n}}\n")
    return [accepted(of(row.value - 1)), refused(of(row.value), "E-SHIFT-START")]


def judge(folder, case):
    """None, or what went wrong."""
    text, rule, pattern = case
    path = os.path.join(folder, "edge.vm")
    with open(path, "w") as file:
        file.write(text)
    result = visa_tools.run(["visac", path, "--emit=tables"])
    said = result.text()
    ids = set(re.findall(r"error\[([\w-]+)\]", said))
    if result.crashed:
        return f"crashed\n{said}"
    if rule and (result.status != 1 or ids != {rule}):
        return f"wanted {rule} alone, got {sorted(ids) or 'no refusal'}\n{said[:1500]}"
    if not rule and result.status != 0:
        return f"wanted no refusal\n{said[:1500]}"
    if pattern and not re.search(pattern, said):
        return f"the tables have no {pattern}\n{said[:2500]}"
    return None


def load_engines():
    """The functions of the engines that have their own: test/engine/NAME/limits.py, which imports what it needs from here."""
    sys.modules["limits"] = sys.modules["__main__"]
    for path in sorted(glob.glob(os.path.join(visa_tools.SOURCE, "test", "engine", "*", "limits.py"))):
        runpy.run_path(path)


def main():
    load_engines()
    rows = LIMITS.rows(visa_tools.engine_rows())
    values = {name: value for name, (value, _) in rows.items()}
    LIMITS.elsewhere |= {name: unit for name, (_, unit) in rows.items() if unit in COST_UNITS}
    sides = 0
    with tempfile.TemporaryDirectory() as folder:
        def faults(name, function, value):
            nonlocal sides
            cases = function(Row(value, values))
            sides += len(cases)
            found = [f"{wrong}\n--- of\n{case[0]}" for case in cases for wrong in [judge(folder, case)] if wrong]
            if not any(rule for _, rule, _ in cases) and not all(pattern for _, _, pattern in cases):
                found.append("nothing is refused and nothing is looked at")
            return found
        status = LIMITS.judge(rows, faults)
    print(f"{sides} sides")
    return status


if __name__ == "__main__":
    sys.exit(main())
