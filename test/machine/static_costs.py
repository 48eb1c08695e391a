#!/usr/bin/env python3
"""The preset --timing=schedule against every published figure of a pass or a transfer that this machine has.

The figures are those of the field notes (A2: passes, A4: replicated loads, A5: stores) and of the schedules that they were read
from (L, results/NAME/schedule.json), the cycles of the vendor's static schedules; and the three of the ten schedules that use none but
our engines, command by command. Exact, to the cycle: the smallest mistake that is seen is one cycle. A duration that is a row of target/static_point.def is compared with itself: that shows that the
row is read, and nothing about a formula, so such are told apart and counted apart. What is left judges the formulas: contractions and TRF fills from
shapes, replicated loads from their bytes (two constants were fitted to three of them), and when commands begin and end. Not here: vector passes and
reductions over slices (test/cases/vector-cycles.vm, vector-slices-cycles.vm), switch rings (switch-schedule.vm), table lookups.
"""
import csv
import io
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

# name, dtype, bytes of an element, rows of data per slice, K, rows of weights that replay the data; cycles of the contraction, of the TRF fill
CONTRACTIONS = [
    ("dot 2,048 bf16", "bf16", 2, 1, 2048, 1, 393, 775),
    ("gemm 512x512x64 bf16: 256 steps of 64 bytes", "bf16", 2, 4, 2048, 1, 777, 775),
    ("Q projection, 16x3840 bf16 per slice", "bf16", 2, 16, 3840, 1, 4105, 1223),
    ("K/V projection, 4x3840 f8, replayed twice", "f8e4m3", 1, 4, 3840, 2, 1225, 1223),
]
# name, element bytes, elements per slice, HBM axis order, replicated, clusters; cycles of the load, of the store (None: not published)
COPIES = [
    ("256 rows of 2 KB", "bf16", "M, K", 256, 1024, 1673, 1563),
    ("256 rows of 4 KB", "bf16", "M, K", 256, 2048, 2277, None),
    ("256 rows of 2,000 bytes", "bf16", "M, K", 256, 1000, 1905, 18204),
    ("256 rows of 16 bytes", "bf16", "M, K", 256, 8, 792, 9132),
    ("256 rows of 64 bytes", "bf16", "M, K", 256, 32, 707, None),
]
REPLICATED = [("256 x 4 KB", "m![1 # 2]", 2048, 10069), ("256 x 2 KB", "m![1 # 2]", 1024, 5308), ("2 x 256 x 7.5 KB", "m![C]", 3840, 18400)]

CONTRACTION = """axes![M = {M}, K = {K}, P = {P}];
#[device(chip = 1)]
fn k(ctx: &mut Context, w: &HbmTensor<{t}, m![1], m![P, K]>, a: &HbmTensor<{t}, m![1], m![M, K]>) -> HbmTensor<f32, m![1], m![P, M, 1 # 8]> {{
    let w: DmTensor<{t}, m![1], m![1 # 2], m![1 # 256], m![P, K]> = w.to_dm(&mut ctx.tdma, 0);
    let a: DmTensor<{t}, m![1], m![1 # 2], m![1 # 256], m![M, K]> = a.to_dm(&mut ctx.tdma, 1 << 16);
    let weights: TrfTensor<{t}, m![1], m![1 # 2], m![1 # 256], m![1], m![P, K]> = ctx.sub
        .begin(w.view()).fetch::<{t}, m![P], m![K]>().collect().to_trf(TrfAddress::Full);
    let c: DmTensor<f32, m![1], m![1 # 2], m![1 # 256], m![P, M, 1 # 8]> = ctx.main
        .begin(a.view()).fetch::<{t}, m![P, M], m![K]>().collect()
        .align::<m![P, M, K / {e}], m![K % {e}], _, _>(&weights)
        .contract::<m![1]>().accumulate::<m![P, M], m![1 # 8]>(AccumulationKind::Interleaved).commit(1 << 18);
    c.to_hbm(&mut ctx.tdma, 1 << 22)
}}
"""
COPY = """axes![M = {M}, K = {K}];
#[device(chip = 1)]
fn k(ctx: &mut Context, a: &HbmTensor<{t}, m![1], m![{order}]>) -> HbmTensor<{t}, m![1], m![{order}]> {{
    let a: DmTensor<{t}, m![1], m![1 # 2], m![M], m![K]> = a.to_dm(&mut ctx.tdma, 0);
    a.to_hbm(&mut ctx.tdma, 1 << 22)
}}
"""
TILES = """axes![M = 512, N = 512];
#[device(chip = 1)]
fn k(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![M, N]>) -> HbmTensor<bf16, m![1], m![M, N]> {
    let a: DmTensor<bf16, m![1], m![1 # 2], m![M / 32, N / 32], m![M % 32, N % 32]> = a.to_dm(&mut ctx.tdma, 0);
    a.to_hbm(&mut ctx.tdma, 1 << 22)
}
"""
REPLICA = """axes![S = 256, C = 2, K = {K}];
#[device(chip = 1)]
fn k(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![K]>) -> DmTensor<bf16, m![1], {cluster}, m![S], m![K]> {{
    a.to_dm(&mut ctx.tdma, 0)
}}
"""
# The published tiles are 32 of J, read again for each of J / 8 % 4: T, P and L are the digits of that J.
GEMM = """axes![I = 512, T = 16, P = 4, L = 8, K = 64];
type Slice = m![I / 32, T];
#[device(chip = 1)]
fn gemm(ctx: &mut Context, a: &HbmTensor<bf16, m![1], m![I, K]>, b: &HbmTensor<bf16, m![1], m![T, P, L, K]>) -> HbmTensor<bf16, m![1], m![I, T, P, L]> {
    let b: DmTensor<bf16, m![1], m![1 # 2], Slice, m![P, L, K]> = b.to_dm(&mut ctx.tdma, 0);
    let a: DmTensor<bf16, m![1], m![1 # 2], Slice, m![I % 32, K]> = a.to_dm(&mut ctx.tdma, 1 << 16);
    let weights: TrfTensor<bf16, m![1], m![1 # 2], Slice, m![L], m![P, K]> = ctx.sub
        .begin(b.view()).fetch::<bf16, m![L, P], m![K]>().collect().to_trf(TrfAddress::Full);
    let c: DmTensor<bf16, m![1], m![1 # 2], Slice, m![I % 32, P, L]> = ctx.main
        .begin(a.view()).fetch::<bf16, m![I % 32, P], m![K]>().collect()
        .align::<m![I % 32, P, K / 32], m![K % 32], _, _>(&weights)
        .contract::<m![1]>().accumulate::<m![I % 32, P], m![L]>(AccumulationKind::Interleaved)
        .cast::<bf16, m![L # 16]>().commit(1 << 18);
    c.to_hbm(&mut ctx.tdma, 1 << 22)
}
"""
DOT = """axes![A = 2048];
#[device(chip = 1)]
fn dot(ctx: &mut Context, x: &HbmTensor<bf16, m![1], m![A]>, y: &HbmTensor<bf16, m![1], m![A]>) -> HbmTensor<bf16, m![1], m![1]> {
    let y: DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![A]> = y.to_dm(&mut ctx.tdma, 0);
    let x: DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![A]> = x.to_dm(&mut ctx.tdma, 1 << 16);
    let w: TrfTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![1], m![A]> = ctx.sub
        .begin(y.view()).fetch::<bf16, m![1], m![A]>().collect().to_trf(TrfAddress::Full);
    let c: DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![1 # 8]> = ctx.main
        .begin(x.view()).fetch::<bf16, m![1], m![A]>().collect()
        .align::<m![A / 32], m![A % 32], _, _>(&w)
        .contract::<m![1]>().accumulate::<m![1], m![1 # 8]>(AccumulationKind::Interleaved)
        .cast::<bf16, m![1 # 16]>().commit(1 << 18);
    c.to_hbm(&mut ctx.tdma, 1 << 22)
}
"""
# name; begin and end of each command; the end of all
SCHEDULES = [
    ("gemv", [("dma", 1003, 11072), ("sub", 11072, 11847), ("dma", 11072, 13349), ("main", 13349, 13742), ("dma", 13742, 107376)], 107976),
    ("gemm", [("dma", 1003, 4121), ("sub", 4121, 4896), ("dma", 4321, 7341), ("main", 7341, 8118), ("dma", 8118, 80849)], 81449),
    ("dot", [("dma", 1003, 1502), ("sub", 1502, 2277), ("dma", 1502, 2001), ("main", 2277, 2670), ("dma", 2670, 3176)], 3776),
]


def report(text, form):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.vm")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = visa_tools.run(["visac", path, "--report=" + form, "--timing=schedule"])
    if done.status:
        raise SystemExit(done.text())
    return done.out.decode()


def cycles(text, commands):
    return [int(r["cycles"]) for r in csv.DictReader(io.StringIO(report(text, "csv"))) if r["commands"] == commands]


def schedule(text):
    """As the rows of SCHEDULES."""
    found = json.loads(report(text, "json"))
    return [(i["context"], i["start"], i["end"]) for i in found["items"]], found["cycles"]


def table_rows():
    """{(kind, piece bytes, pieces): cycles} of target/static_point.def."""
    with open(os.path.join(visa_tools.SOURCE, "target", "static_point.def"), encoding="utf-8") as file:
        found = re.findall(r"^STATIC_POINT\((\w+), (\d+), (\d+), \d+, (\d+),", file.read(), re.M)
    return {(kind, int(size), int(pieces)): int(cost) for kind, size, pieces, cost in found}


def figures(rows):
    """(name, what the report says, what is published, is it a row of the table)."""
    def is_row(kind, size, pieces, published):
        return rows.get((kind, size, pieces)) == published
    for name, t, size, m, k, p, contraction, fill in CONTRACTIONS:
        text = CONTRACTION.format(M=m, K=k, P=p, t=t, e=64 // size)
        yield name, cycles(text, "fetch .. commit"), [contraction], False
        yield name + ", TRF fill", cycles(text, "fetch .. trf_store"), [fill], False
    for name, t, order, m, k, load, store in COPIES:
        first, second = cycles(COPY.format(M=m, K=k, t=t, order=order), "dma")
        if load:
            yield "load of " + name, [first], [load], is_row("LOAD", k * 2, m, load)
        if store:
            yield "store of " + name, [second], [store], is_row("STORE", k * 2, m, store)
    yield "store of 8,192 pieces of 64 bytes", cycles(TILES, "dma")[1:], [72731], is_row("STORE", 64, 8192, 72731)
    for name, cluster, k, load in REPLICATED:
        yield "replicated load " + name, cycles(REPLICA.format(K=k, cluster=cluster), "dma"), [load], False
    with open(os.path.join(visa_tools.SOURCE, "examples", "gemv.vm"), encoding="utf-8") as file:
        texts = {"gemv": file.read(), "gemm": GEMM, "dot": DOT}
    for name, commands, end in SCHEDULES:
        found, last = schedule(texts[name])
        yield f"the {name} schedule: its commands", sorted(found), sorted(commands), False
        yield f"the {name} schedule: its end", last, end, False


def main():
    passed = failed = own = 0
    for name, found, published, is_row in figures(table_rows()):
        if "-v" in sys.argv:
            print(f"{name}: {found}{', a row of the table' if is_row else ''}")
        if found == published:
            passed += 1
            own += is_row
        else:
            failed += 1
            print(f"FAIL {name}: {found}, published {published}")
    print(f"{passed} passed, {own} of them rows of the table that are read back; {failed} failed")
    return 1 if failed or passed == own else 0


if __name__ == "__main__":
    sys.exit(main())
