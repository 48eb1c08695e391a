#!/usr/bin/env python3
"""The reports, from the outside.

`visac --report` (commands alone) and `visa-run --report` (after a run) say the same of every kernel of the examples and cases;
the forms agree with each other; the critical path adds up; a trace is valid; a page needs no network and lays out in headless
Chromium (skipped with a word where that is missing); diff and sweep say what was changed. Usage: reports.py [SCREENSHOT.png]"""
import csv
import glob
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
from idle_slices import PRODUCT

SOURCE = visa_tools.SOURCE
CHROMIUM_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars"]


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def that(self, condition, what):
        self.passed += bool(condition)
        self.failed += not condition
        if not condition:
            print(f"FAIL {what}")


def run(*arguments, **options):
    return visa_tools.run([str(a) for a in arguments], **options)


def kernels_of(path, folder):
    """(binary, kernel names) of a file that compiles, else None."""
    target = os.path.join(folder, "k.bin")
    if run("visac", path, "-o", target).status:
        return None
    return target, [k["name"] for k in json.loads(run("visa-objdump", "--json", target).out)["kernels"]]


def same_figures(check, path, binary, kernel):
    """A kernel that runs has one report, whoever makes it."""
    for form in ("text", "csv", "json"):
        alone = run("visac", path, f"--kernel={kernel}", f"--report={form}")
        behind = run("visa-run", binary, f"--kernel={kernel}", f"--report={form}", "--max-cycles=100000")
        if behind.status:
            check.that(alone.status in (0, 1) and not alone.crashed, f"{path} {kernel}: {alone.text()}")
            return
        # What the binary does not know: the order that the text had, and how the text could be written.
        moved = alone.out[len(behind.out):] if form == "text" else b""
        check.that(re.fullmatch(rb"(kernel .* (?:\d+ saved|in the order of the text memory does not fit)\n(  +\d+  (main|sub|dma) .*\n)+)?"
                                rb"(could be a stream, which visac advise --apply writes:\n(line \d+: the copy .*\n)+)?", moved), f"{path} {kernel}: {moved[:200]}")
        check.that(alone.status == 0 and alone.out == behind.out + moved, f"{os.path.basename(path)} {kernel}: visac and visa-run differ in {form}")
    adds_up(check, json.loads(alone.out), f"{os.path.basename(path)} {kernel}")


def adds_up(check, report, name):
    """Predecessors end where an item begins, the critical path reaches from 0 to the end without a gap, slack is never negative."""
    items = report["items"]
    for item in items:
        before = item["predecessor"]
        check.that(item["start"] == (items[before]["end"] if before is not None else 0), f"{name}: an item does not begin where its predecessor ends")
        check.that(item["slack"] >= 0 and (item["slack"] == 0 or not item["critical"]), f"{name}: slack {item['slack']}")
        check.that(item["formula"]["text"].endswith(f"= {item['cycles']}"), f"{name}: {item['formula']['text']}")
    on_path = sum(i["cycles"] for i in items if i["critical"])
    check.that(on_path == report["cycles"], f"{name}: the critical path has {on_path} of {report['cycles']} cycles")
    check.that(report["cycles"] >= report["lower_bound"]["cycles"], f"{name}: below the lower bound")
    used = report["use"]
    check.that(used["multiplications"] <= used["lane_products"], f"{name}: {used['multiplications']} multiplications by lanes that did {used['lane_products']}")
    least = report["attainable"] # none where no port is in HBM and nothing is multiplied
    check.that(not least or report["lower_bound"]["multiplications"] <= least["cycles"] <= report["cycles"], f"{name}: {report['cycles']} cycles, attainable {least}")
    check.that(not least or least["cycles"] == max(least["starts"] * least["start_cycles"] + least["row_cycles"] + least["bytes"] * 1000 // least["bytes_per_kcycle"], least["products"], least["waits"]), f"{name}: {least}")


# Kernels with a piece of advice each, and the advice taken: rule, kernel, what is replaced by what, the context of the commands that it is about.
PIECES = """axes![M = 512, K = 64];
#[device(chip = 1)]
fn k(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![M, K]>) -> HbmTensor<i8, m![1], m![M, K]> {
    let a: DmTensor<i8, m![1], m![M / 256], m![M % 256], m![K]> = a.to_dm(&mut ctx.tdma, 0);
    a.to_hbm(&mut ctx.tdma, 1 << 20)
}
"""
FOUR_ROWS = (PRODUCT.replace("N % 8", "N % 4").replace("N / 8", "N / 4").replace(", m![N % 4]>(Acc", ", m![N % 4 # 8]>(Acc")
             .replace("m![M, N]> = ctx.main", "m![M, N / 4, N % 4 # 8]> = ctx.main"))
HALF_PACKETS = PRODUCT.replace("align::<m![M, N / 8], m![K]", "align::<m![M, K / 32, N / 8], m![K % 32 # 64]")
BANKS = """axes![A = 512, B = 8, K = 1024];
#[device(chip = 1)]
fn k(ctx: &mut Context, x: &HbmTensor<i8, m![1], m![A, B]>, y: &HbmTensor<i8, m![1], m![A, K]>) -> (HbmTensor<i8, m![1], m![A, B]>, DmTensor<i8, m![1], m![A / 256], m![A % 256], m![K]>) {
    let x: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![A, B # 128]> = x.to_dm(&mut ctx.tdma, 0);
    let y: DmTensor<i8, m![1], m![A / 256], m![A % 256], m![K]> = y.to_dm(&mut ctx.tdma, 1 << 18);
    let x: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![A, B]> = ctx.main.begin(x.view()).fetch::<_, m![A], m![B]>().collect().commit(1 << 17);
    (x.to_hbm(&mut ctx.tdma, 1 << 20), y)
}
"""
VECTOR = """axes![A = 256, S = 256];
#[device(chip = 1)]
fn k(ctx: &mut Context, x: &HbmTensor<f32, m![1], m![S, A]>) -> HbmTensor<f32, m![1], m![S, A]> {
    let d: DmTensor<f32, m![1], m![1 # 2], m![S], m![A]> = x.to_dm(&mut ctx.tdma, 0);
    let y: DmTensor<f32, m![1], m![1 # 2], m![S], m![A]> = ctx.main.begin(d.view()).fetch::<f32, m![A / 8], m![A % 8]>().collect::<_, _>()
        .vector_init().vector_intra_slice_branch(BranchMode::Unconditional)OPERATIONS.vector_final().commit(65536);
    y.to_hbm(&mut ctx.tdma, 1 << 24)
}
"""
HALVES = ".vector_narrow_split::<m![A / 4], m![A % 4]>().vector_fp_OP.vector_widen_concat::<m![A / 8], m![A % 8]>()"
ADDED, EXP, CLIPPED = HALVES.replace("OP", "binary(FpBinaryOp::AddF, 1.0)"), HALVES.replace("OP", "unary(FpUnaryOp::Exp)"), ".vector_clip(ClipBinaryOpF32::Max, 0.0)"
SECOND = """.vector_final().commit(65536);
    let y: DmTensor<f32, m![1], m![1 # 2], m![S], m![A]> = ctx.main.begin(y.view()).fetch::<f32, m![A / 8], m![A % 8]>().collect::<_, _>()
        .vector_init().vector_intra_slice_branch(BranchMode::Unconditional)"""
ADVICE = [
    ("W-VECTOR-NARROW", VECTOR.replace("OPERATIONS", ADDED), "`vector_clip` with Add", {ADDED: ".vector_clip(ClipBinaryOpF32::Add, 1.0)"}),
    ("W-VECTOR-PASSES", VECTOR.replace("OPERATIONS", EXP + SECOND + CLIPPED).replace("commit(65536);\n    y.to", "commit(1 << 17);\n    y.to"), "the operations of both", {SECOND: ""}),
    ("W-DMA-PIECES", PIECES, "m![M % 4, K] of `a`", {"m![M / 256], m![M % 256], m![K]": "m![M / 256], m![M / 4 % 64, 1 # 4], m![M % 4, K]"}),
    ("W-DMA-PIECES", PIECES, "m![M % 4, K] of `out`", {"m![M / 256], m![M % 256], m![K]": "m![M / 256], m![M / 4 % 64, 1 # 4], m![M % 4, K]"}),
    ("W-IDLE-SLICES", PRODUCT, "Slice m![M # 256]", {"m![1 # 256]": "m![M # 256]", "m![M, K]> = a": "m![K]> = a", "m![M, N]> = ctx": "m![N]> = ctx", "fetch::<i8, m![M]": "fetch::<i8, m![1]",
                                                     "align::<m![M, N / 8]": "align::<m![N / 8]", "accumulate::<m![M, N / 8]": "accumulate::<m![N / 8]"}),
    ("W-MAC-IDLE", FOUR_ROWS, "Row m![N % 8]", {"N % 4 # 8": "N % 8", "N % 4": "N % 8", "N / 4": "N / 8"}),
    ("W-MAC-IDLE", HALF_PACKETS, "an align packet of 64 bytes", {"M, K / 32, N / 8": "M, N / 8", "K % 32 # 64": "K"}),
    ("W-DM-BANK", BANKS, "an inner loop", {"B # 128": "B # 136"}),
]


def advice_holds(check, folder):
    """What a report advises compiles, agrees, and saves what it promised."""
    def reported(text, name):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        checked = run("visac", path, "--check")
        check.that(checked.status == 0, f"{name}: {checked.text()}")
        return json.loads(run("visac", path, "--report=json").out)

    for number, (rule, before, nearest, changes) in enumerate(ADVICE):
        old = reported(before, f"before{number}.vm")
        found = [x for x in old["lints"] if x["rule"] == rule and x["nearest"].startswith(nearest)]
        check.that(len(found) == 1, f"advice {number}: {old['lints']}")
        after = before
        for what, by in changes.items():
            check.that(what in after, f"advice {number}: no {what}")
            after = after.replace(what, by)
        new = reported(after, f"after{number}.vm")
        check.that(not [x for x in new["lints"] if x in found], f"advice {number} is given again")
        place = [i for i, x in enumerate(old["items"]) if x["commands"][0]["line"] == found[0]["line"]]
        saved = sum(old["items"][i]["cycles"] - new["items"][i]["cycles"] for i in place)
        if rule in ("W-DM-BANK", "W-VECTOR-PASSES"):
            saved = old["cycles"] - new["cycles"]
        if rule in ("W-DM-BANK", "W-VECTOR-NARROW", "W-VECTOR-PASSES"): # of these nothing else changes
            check.that(found[0]["kernel_cycles"] == new["cycles"], f"advice {number}: {found[0]['kernel_cycles']} cycles promised for the kernel, {new['cycles']} taken")
        check.that(found[0]["kernel_cycles"] <= old["cycles"] - min(saved, 1), f"advice {number}: the kernel is promised to take {found[0]['kernel_cycles']}, before {old['cycles']}")
        check.that(saved == found[0]["cost_cycles"], f"advice {number}: {found[0]['cost_cycles']} cycles promised, {saved} saved")


def formulas_add_up(check, path, kernel, timing):
    """The numbers of a formula give its result: "load: 499 + 255 x 6.973 (4096 bytes each) = 2277"."""
    told = json.loads(run("visac", path, f"--kernel={kernel}", f"--timing={timing}", "--report=json").out)
    for item in told["items"]:
        terms, result = item["formula"]["text"].rsplit(" = ", 1)
        terms = re.sub(r"^[a-zA-Z ]+:|\(\d+ (bytes each|copies|engines)\)|channel|dmn|late|held|rings", "", terms).replace(" x ", " * ")
        if not terms.startswith("smallest"):
            value = eval(terms, {"__builtins__": {}, "max": max})  # numbers of our own report
            check.that(int(value + 0.5) == int(result) and not re.search(r"[-+*] *-", terms), f"{path} {kernel} {timing}: {item['formula']['text']}")


def forms_agree(check, path):
    told = json.loads(run("visac", path, "--report=json").out)
    table = list(csv.DictReader(io.StringIO(run("visac", path, "--report=csv").out.decode())))
    check.that([(int(r["start"]), int(r["end"])) for r in table] == [(i["start"], i["end"]) for i in told["items"]], "CSV and JSON differ")
    several = list(csv.DictReader(io.StringIO(run("visac", os.path.join(SOURCE, "examples", "double_buffer.vm"), "--report=csv").out.decode())))
    check.that({r["kernel"] for r in several} == {"serial", "halves", "resident"} and all(r["start"].isdigit() for r in several), "the CSV of several kernels is not one table")


def trace_is_valid(check, path, folder):
    target = os.path.join(folder, "t.json")
    check.that(run("visac", path, f"--trace={target}").status == 0, "no trace")
    events = json.load(open(target, encoding="utf-8"))["traceEvents"]
    rows = {e["tid"] for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    check.that(spans and all(e["tid"] in rows and e["dur"] > 0 and e["ts"] >= 0 for e in spans), "a span has no row")
    check.that({"dma engine", "fetch engine", "reducer engine"} <= {e["args"]["name"] for e in events if e["name"] == "thread_name"}, "engines have no rows")
    told = json.loads(run("visac", path, "--report=json").out)
    check.that(max(e["ts"] + e["dur"] for e in spans) == told["cycles"], "the trace ends elsewhere")


def page_lays_out(check, path, folder, picture):
    page = os.path.join(folder, "page.html")
    check.that(run("visac", path, "--report=html", "-o", page).status == 0, "no page")
    text = open(page, encoding="utf-8").read()
    check.that(not re.search(r"(src|href)=|@import|<script|url\((?!#)", text), "the page refers to something outside")
    told = json.loads(run("visac", path, "--report=json").out)
    check.that(text.count("<svg") > 3 and f"{told['cycles']} cycles" in text, "pictures or figures are missing")
    if visa_tools.SLOWER > 1: # the page's bytes are those of the other build, which shows them to the browser
        return
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("skipped: chromium is missing (apt-get install chromium), the page was not laid out")
        return
    shot = picture or os.path.join(folder, "page.png")
    profile = os.path.join(folder, "profile")
    done = subprocess.run([browser, *CHROMIUM_FLAGS, f"--user-data-dir={profile}", "--window-size=1240,900", f"--screenshot={shot}", "file://" + page],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800, check=False)
    check.that(done.returncode == 0 and os.path.exists(shot) and os.path.getsize(shot) > 5000, f"no screenshot: {done.stdout.decode()[-300:]}")
    dom = subprocess.run([browser, *CHROMIUM_FLAGS, f"--user-data-dir={profile}2", "--dump-dom", "file://" + page], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, timeout=1800, check=False).stdout.decode()
    check.that(f"{told['cycles']} cycles" in dom and dom.count("<rect") >= len(told["items"]), "Chromium does not see the timeline")


# One load into several slices, small next to what they cost together, and a store of many pieces.
COPIES = """axes![S = SLICES, K = 512, M = 512];
#[device(chip = 1)]
fn copies(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![K]>, b: &HbmTensor<i8, m![1], m![M, K]>) -> (DmTensor<i8, m![1], m![1 # 2], m![S # 256], m![K]>, HbmTensor<i8, m![1], m![M, K]>) {
    let a: DmTensor<i8, m![1], m![1 # 2], m![S # 256], m![K]> = a.to_dm(&mut ctx.tdma, 0);
    let b: DmTensor<i8, m![1], m![M / 256], m![M % 256], m![K]> = b.to_dm(&mut ctx.tdma, 4096);
    (a, b.to_hbm(&mut ctx.tdma, 1 << 24))
}
"""
LONG = """axes![M = 4096, K = 64];
const ROWS: usize = 2;
#[device(chip = 1)]
fn long(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![M, K]>, c: &mut HbmTensor<i8, m![1], m![M, K]>) {
    for i in 0..M::SIZE / ROWS {
        let t: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![M = { ROWS }, K]> = a.view().tile::<m![M], ROWS, _>(ROWS * i).to_dm(&mut ctx.tdma, 0);
        t.view().to_hbm_view(&mut ctx.tdma, c.view_mut().tile::<m![M], ROWS, _>(ROWS * i));
    }
}
"""


def long_page_is_short(check, folder):
    """Copies of a stage share a picture, commands in the middle are counted, bars that cover each other are one."""
    path, page = os.path.join(folder, "long.vm"), os.path.join(folder, "long.html")
    with open(path, "w", encoding="utf-8") as out:
        out.write(LONG)
    check.that(run("visac", path, "--report=html", "-o", page).status == 0, "no page of a long kernel")
    text = open(page, encoding="utf-8").read()
    items = json.loads(run("visac", path, "--report=json").out)["items"]
    check.that(len(items) == 4096 and f"{len(items) - 1000} more, which --report=csv lists" in text, "the table is not shortened")
    check.that(text.count("<svg") == 3 and text.count("and 2047 like it") == 2, "a picture for each copy of a stage")
    check.that("more lines, which --emit=tables prints" in text and "2048 x MK-&gt;MK" in text, "the tables are not shortened")
    check.that(len(text) < 1 << 20, f"the page of a long kernel has {len(text)} bytes")
    check.that(str(items[0]["formula"]["text"]) in text and str(items[-1]["end"]) in text, "the ends are missing")


def diff_and_sweep(check, path, folder):
    twice = run("visac", "diff", "-", "-")
    check.that(twice.status == 2 and b"only one of them can be standard input" in twice.err, "diff read standard input twice")
    same = run("visac", "diff", path, path)
    check.that(same.status == 0 and b"the same commands" in same.out, "a file differs from itself")
    other = os.path.join(folder, "m64.vm")
    with open(path, encoding="utf-8") as file, open(other, "w", encoding="utf-8") as out:
        out.write(file.read().replace("M = 32", "M = 64"))
    told = run("visac", "diff", path, other).out.decode()
    cycles = [json.loads(run("visac", p, "--report=json").out)["cycles"] for p in (path, other)]
    check.that(re.search(rf"all +{cycles[0]} -> +{cycles[1]}  \+{cycles[1] - cycles[0]}\n", told), told)
    check.that("packets: 32 -> 64 packets" in told and "table: [32:32, 32:1] -> [64:32, 32:1]" in told, told)
    binary = os.path.join(folder, "m64.bin")
    run("visac", other, "-o", binary)
    check.that(run("visac", "diff", path, binary).out.decode() == told, "diff of a binary differs from diff of its source")
    with open(binary, "rb") as file, open(binary + ".cut", "wb") as out:
        out.write(file.read()[:700])
    refused = run("visac", "diff", path, binary + ".cut")
    check.that(refused.status == 1 and f"error[E-BIN-FORMAT]: {binary}.cut: " in refused.text(), refused.text())
    with open(path, encoding="utf-8") as file, open(other, "w", encoding="utf-8") as out:
        out.write(file.read().replace("        .cast::<bf16, m![N # 16]>()\n", "").replace("-> HbmTensor<bf16", "-> HbmTensor<f32").replace("let c: DmTensor<bf16", "let c: DmTensor<f32"))
    told = run("visac", "diff", path, other).text()
    check.that("      dtype: bf16 -> f32\n" in told and "- main" in told, told)
    lines = run("visac", path, "--sweep=M=32,64,0").out.decode().splitlines()
    check.that([line.split()[:2] for line in lines[1:]] == [["32", "legal"], ["64", "legal"], ["0", "refused"]], "\n".join(lines))
    check.that([line.split()[3] for line in lines[1:3]] == [str(c) for c in cycles], "sweep and report differ: " + "\n".join(lines))
    check.that(run("visac", path, "--sweep=M=0,NOPE").status == 2 and run("visac", path, "--sweep=M=0").status == 1, "a sweep without a legal value succeeds")
    check.that(run("visac", path, "--sweep=M=32", "--sweep=N=8").status == 2, "of two sweeps one is taken")


# A run of it takes seconds, and minutes with sanitizers; its chains are those of the other matmuls.
LARGE = {"matmul_4096.vm", "report-bounds.vm"}  # the second has an input of 4 GiB


def main():
    check, picture, number = Checks(), sys.argv[1] if len(sys.argv) > 1 else None, 0
    matmul = os.path.join(SOURCE, "examples", "matmul.vm")
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted(glob.glob(os.path.join(SOURCE, "examples", "*.vm")) + glob.glob(os.path.join(SOURCE, "test", "cases", "*.vm")))
        for path in paths[::visa_tools.every(1)]:
            found = None if os.path.basename(path) in LARGE else kernels_of(path, folder)
            for kernel in found[1] if found else ():
                number += 1
                if number % 4 == 0 or visa_tools.LONG:
                    same_figures(check, path, found[0], kernel)
            for kernel in found[1] if found and "examples" in path else ():
                formulas_add_up(check, path, kernel, "documented")
                formulas_add_up(check, path, kernel, "schedule")
                formulas_add_up(check, path, kernel, "measured")
        copies = os.path.join(folder, "copies.vm")
        for slices in (2, 4, 16, 32, 128, 256):
            with open(copies, "w", encoding="utf-8") as out:
                out.write(COPIES.replace("SLICES", str(slices)))
            formulas_add_up(check, copies, "copies", "schedule")
        forms_agree(check, matmul)
        trace_is_valid(check, matmul, folder)
        page_lays_out(check, matmul, folder, picture)
        long_page_is_short(check, folder)
        advice_holds(check, folder)
        diff_and_sweep(check, matmul, folder)
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed or not check.passed else 0


if __name__ == "__main__":
    sys.exit(main())
