#!/usr/bin/env python3
"""Plans (docs/plan.md): a chain of kernels on one HBM gives what the same kernels give one by one, with files between them; every refusal
has its id and names the step; the schema says the same as the reader of what is no plan."""
import copy
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import visa_tools

KERNELS = """axes![A = 64, B = 16, C = 4];
type One = m![1 # 256];

#[device(chip = 1)]
fn step(device: &mut Device, x: &HbmTensor<i32, m![1], m![A, B]>, y: &HbmTensor<i32, m![1], m![A, B]>) -> HbmTensor<i32, m![1], m![A / 2, A % 2, B]> {
    let x: DmTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = x.to_dm(&mut device.tdma);
    let y: DmTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = y.to_dm(&mut device.tdma);
    let y: VrfTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = device.sub.begin(y.view()).fetch::<m![1], m![B]>().collect::<m![B / 8], m![B % 8]>().to_vrf();
    let z: DmTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = device.main.begin(x.view()).fetch::<m![1], m![B]>().collect::<m![B / 8], m![B % 8]>()
        .vector_init().vector_intra_slice_tag(TagMode::Zero).vector_fxp(FxpBinaryOp::MulInt, 3).vector_clip(ClipBinaryOpI32::AddFxp, &y)
        .vector_final().commit_trim::<m![B % 8]>().commit();
    // By way of HBM that is no port.
    let z: HbmTensor<i32, m![1], m![A, B]> = z.to_hbm(&mut device.tdma);
    let z: DmTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = z.to_dm(&mut device.tdma);
    z.to_hbm(&mut device.tdma)
}

#[device(chip = 1)]
fn turned(device: &mut Device, x: &HbmTensor<i32, m![1], m![B, A # 128]>) -> HbmTensor<i32, m![1], m![B, A]> {
    let x: DmTensor<i32, m![1], m![1 # 2], m![B # 256], m![A]> = x.to_dm(&mut device.tdma);
    x.to_hbm(&mut device.tdma)
}

// Every second row.
#[device(chip = 1)]
fn holes(device: &mut Device, x: &HbmTensor<i32, m![1], m![A / 2, B]>) -> HbmTensor<i32, m![1], m![A / 2, B]> {
    let x: DmTensor<i32, m![1], m![1 # 2], m![A / 2 # 256], m![B]> = x.to_dm(&mut device.tdma);
    x.to_hbm(&mut device.tdma)
}

// Rows that a list names, as many as a number says; by way of HBM that is no port.
#[device(chip = 1)]
fn gathered(device: &mut Device, table: &HbmTensor<i32, m![1], m![A, B]>, list: &HbmTensor<i32, m![1], m![C]>, n: &HbmScalar<i32>) -> HbmTensor<i32, m![1], m![C, B]> {
    let n = n.to_spm(&mut device.tdma);
    let rows: DmTensor<i32, m![1], m![1 # 2], m![C # 256], m![B]> = table.gather::<m![A], m![B]>().by_byte_offsets::<m![C]>(list).sparse_prefix(n).to_dm(&mut device.tdma);
    rows.to_hbm(&mut device.tdma)
}

// What is read and written is one memory, and two ports of one name.
#[device(chip = 1)]
fn add_to(device: &mut Device, y: &HbmTensor<i32, m![1], m![A, B]>, sum: &mut HbmTensor<i32, m![1], m![A, B]>) {
    let x: DmTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = sum.to_dm(&mut device.tdma);
    let y: DmTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = y.to_dm(&mut device.tdma);
    let y: VrfTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = device.sub.begin(y.view()).fetch::<m![1], m![B]>().collect::<m![B / 8], m![B % 8]>().to_vrf();
    let z: DmTensor<i32, m![1], m![1 # 2], m![A # 256], m![B]> = device.main.begin(x.view()).fetch::<m![1], m![B]>().collect::<m![B / 8], m![B % 8]>()
        .vector_init().vector_intra_slice_tag(TagMode::Zero).vector_clip(ClipBinaryOpI32::AddFxp, &y)
        .vector_final().commit_trim::<m![B % 8]>().commit();
    z.view().to_hbm_view(&mut device.tdma, sum.view_mut());
}
"""
RESIDENT = """axes![S = 64, E = 8];
type Dm = DmTensor<i32, m![1], m![1], m![S], m![E]>;
type Hbm = HbmTensor<i32, m![1], m![S, E]>;

#[device(chip = 1, pe = 1)]
fn stage(ctx: &mut Device, input: &Hbm, output: &mut Dm) {
    input.view().to_dm_view(&mut ctx.tdma, output.view_mut());
}
#[device(chip = 1, pe = 1)]
fn increment(ctx: &mut Device, input: &Dm, output: &mut Dm) {
    ctx.main.begin(input.view()).fetch::<m![1], m![E]>().collect::<m![1], m![E]>().vector_init().vector_intra_slice_tag(TagMode::Zero)
        .vector_fxp(FxpBinaryOp::AddFxp, 1).vector_final().commit_trim::<m![E]>().commit_view(output.view_mut());
}
#[device(chip = 1, pe = 1)]
fn both(ctx: &mut Device, input: &Dm, output: &mut Dm) -> (Hbm, Hbm) {
    (input.to_hbm(&mut ctx.tdma), output.to_hbm(&mut ctx.tdma))
}
#[device(chip = 1, pe = 1)]
fn back(ctx: &mut Device, input: &Dm) -> Hbm {
    input.to_hbm(&mut ctx.tdma)
}
#[device(chip = 1, pe = 1)]
fn swapped(ctx: &mut Device, input: &DmTensor<i32, m![1], m![1], m![S % 32, S / 32], m![E]>) -> Hbm {
    input.to_hbm(&mut ctx.tdma)
}
// Tensors in DM of its own, and a list in SPM.
#[device(chip = 1, pe = 1)]
fn aside(ctx: &mut Device, input: &Hbm) -> Hbm {
    let x: Dm = input.to_dm(&mut ctx.tdma);
    let y: Dm = ctx.main.begin(x.view()).fetch::<m![1], m![E]>().collect::<m![1], m![E]>().vector_init().vector_intra_slice_tag(TagMode::Zero)
        .vector_fxp(FxpBinaryOp::AddFxp, 3).vector_final().commit_trim::<m![E]>().commit();
    let y: SpmTensor<i32, m![1], m![1], m![1], m![S, E]> = y.to_spm(&mut ctx.tdma);
    let y: Dm = y.to_dm(&mut ctx.tdma);
    y.to_hbm(&mut ctx.tdma)
}
"""
ROWS, WORDS = 6, 64 * 16


def plan(**changes):
    made = {"plan": 1, "kernels": {"step": {"file": "k.bin", "kernel": "step"}},
            "buffers": {"rows": {"type": "i32", "shape": [ROWS, 64, 16], "file": "rows.bin"}, "at": {"type": "i32", "shape": [2], "file": "at.bin"},
                        "last": {"type": "i32", "shape": [WORDS], "of": "rows", "first": (ROWS - 1) * WORDS},
                        "best": {"type": "i32", "shape": [3]}},
            "steps": [{"for": "i", "from": 2, "to": 5, "steps": [
                {"run": "step", "ports": {"x": {"buffer": "rows", "at": ["i-1"]}, "y": {"buffer": "rows", "at": [{"buffer": "at", "at": [1]}]},
                                          "out": {"buffer": "rows", "at": ["i"]}}}]},
                {"run": "step", "ports": {"x": "last", "y": {"buffer": "rows", "at": [0]}, "out": "last"}},
                {"argmax": "last", "into": {"buffer": "best", "at": [1]}}],
            "outputs": {"rows": "out.bin", "best": "best.bin"}}
    made.update(changes)
    return made


def binding(x):
    return [{"run": "step", "ports": {"x": x, "y": {"buffer": "rows", "at": [0]}, "out": {"buffer": "rows", "at": [1]}}}]


def nested(names):
    """Repetitions inside of each other."""
    steps = binding("last")
    for name in reversed(names):
        steps = [{"for": name, "to": 1, "steps": steps}]
    return steps


def read_at(index):
    return {"buffer": "at", "at": [index]}


PARTS = {"a": {"type": "i32", "shape": [4]}, "b": {"type": "i32", "shape": [2], "of": "a", "first": 1}}
# changes, id, words of the message; schema: does the schema refuse it too?
REFUSED = [
    ({"plan": 2}, "E-PLAN", "the version", True),
    ({"more": 1}, "E-PLAN", "called more", True),
    ({"buffers": {"a": {"type": "i33", "shape": [1]}}}, "E-PLAN", "element type", False),
    ({"buffers": {"a": {"type": "i32", "shape": [0]}}}, "E-PLAN", "at least 1", True),
    ({"buffers": {"a": {"type": "i32", "shape": [1 << 40]}}}, "E-PLAN", "does not fit: HBM has", False),
    ({"buffers": {"a": {"type": "i32", "shape": [2]}, "b": {"type": "i32", "shape": [2], "of": "a", "first": 1}}}, "E-PLAN-FIT", "no part of", False),
    ({"buffers": {"b": {"type": "i32", "shape": [2], "of": "a"}}}, "E-PLAN-NAME", "called a", False),
    ({"steps": [{"walk": 1}]}, "E-PLAN", "step 1", True),
    ({"steps": [{"for": "i", "to": 2, "steps": []}]}, "E-PLAN", "no steps", True),
    ({"steps": [{"for": "i", "to": 1 << 21, "steps": binding({"buffer": "rows", "at": [2]})}]}, "E-PLAN", "more than 1048576 steps", False),
    ({"steps": [{"for": "i", "to": 1 << 21, "steps": [{"argmax": "last", "into": "none"}]}]}, "E-PLAN", "more than 1048576 steps", False),
    ({"steps": [{"for": "i", "to": 1 << 20, "steps": [{"argmax": "last", "into": {"buffer": "best", "at": [1]}}]}]}, "E-RUN-CYCLES",
     f"compares {WORDS << 20} elements for argmax", False),
    ({"buffers": {"b" * 256: {"type": "i32", "shape": [1]}}}, "E-PLAN", "at most 255 bytes, this one 256", False),
    ({"buffers": {"b" * 255: {"type": "i32", "shape": [1]}}}, "E-PLAN-NAME", "called rows", False),
    ({"steps": [{"for": "i", "from": 3, "to": 4, "steps": [{"argmax": "{i}" * 256, "into": "best"}]}]}, "E-PLAN-NAME", "at most 255 bytes", False),
    ({"steps": [{"for": "i", "from": 3, "to": 4, "steps": [{"argmax": "{i}" * 255, "into": "best"}]}]}, "E-PLAN-NAME", "called 333", False),
    ({"steps": [{"for": "i", "from": 3, "to": 4, "steps": [{"argmax": "{i}" * 1000000, "into": "best"}]}]}, "E-PLAN-NAME", "at most 255 bytes", False),
    ({"steps": [{"run": "none", "ports": {}}]}, "E-PLAN-NAME", "called none", False),
    ({"steps": [{"run": "step", "ports": {"x": "rows"}}]}, "E-PLAN-FIT", "what is left of buffer `rows` is 6144", False),
    ({"steps": [{"run": "step", "ports": {"z": "last"}}]}, "E-PLAN-NAME", "no port z", False),
    ({"steps": [{"run": "step", "ports": {"x": "last"}}]}, "E-PLAN-NAME", "port `y` of kernel `step` is bound to no buffer", False),
    ({"steps": binding("nowhere")}, "E-PLAN-NAME", "called nowhere", False),
    ({"steps": binding({"buffer": "rows", "at": [6]})}, "E-PLAN-FIT", "is 6, buffer `rows` has 6", False),
    ({"steps": binding({"buffer": "rows", "at": ["i"]})}, "E-PLAN", "index", False),
    ({"steps": binding({"buffer": "rows", "at": [{"buffer": "at"}]})}, "E-PLAN-FIT", "one element of type i32", False),
    ({"steps": binding({"buffer": "rows", "at": [0, 0, 0, 0]})}, "E-PLAN-FIT", "4 indices", False),
    ({"steps": [{"argmax": "rows", "into": "at"}]}, "E-PLAN-FIT", "argmax", False),
    ({"kernels": {"step": {"file": "k.bin", "kernel": "turned"}}, "steps": [{"run": "step", "ports": {"x": "last"}}]}, "E-PLAN-FIT", "not dense", False),
    ({"kernels": {"step": {"file": "k.bin", "kernel": "nothing"}}}, "E-KERNEL", "nothing", False),
    ({"kernels": {f"k{i}": {"file": "k.bin", "kernel": "step"} for i in range(4097)}}, "E-PLAN", "1 to 4096 kernels", True),
    ({"kernels": {"step": {"file": "none.bin"}}}, "E-FILE-READ", "none.bin", False),
    ({"outputs": {"none": "x.bin"}}, "E-PLAN-NAME", "called none", False),
    ({"buffers": {"a": {"type": "i32", "shape": [1] * 9}}}, "E-PLAN", "at most 8 sizes", True),
    ({"buffers": {"a": {"type": "i32", "shape": [1]}, "b": {"type": "i32", "shape": [1 << 40]}}}, "E-PLAN", "the buffers before it take 4096", False),
    ({"buffers": {**PARTS, "c": {"type": "i32", "shape": [1], "of": "b"}}}, "E-PLAN-NAME", "called b", False),
    ({"buffers": {**PARTS, "c": {"type": "i32", "shape": [1], "of": "a", "first": -1}}}, "E-PLAN-FIT", "from element -1 on", True),
    ({"buffers": {**PARTS, "c": {"type": "f32", "shape": [1], "of": "a"}}}, "E-PLAN-FIT", "1 element of f32", False),
    ({"buffers": {"a": {"type": "i4", "shape": [4]}, "c": {"type": "i4", "shape": [2], "of": "a", "first": 1}}}, "E-PLAN-FIT", "no part of", False),
    ({"steps": [{"for": "i", "from": 3, "to": 2, "steps": binding("last")}]}, "E-PLAN", "up to another", False),
    ({"steps": nested([f"i{k}" for k in range(9)])}, "E-PLAN", "8 repetitions are around it", False),
    ({"steps": nested(["i", "i"])}, "E-PLAN", "its index is taken", False),
    ({"steps": binding({"buffer": "rows", "at": [read_at(read_at(read_at(0)))]})}, "E-PLAN", "read at most twice", False),
    ({"steps": binding({"buffer": "rows", "at": [-1]})}, "E-PLAN-FIT", "is -1, buffer `rows` has 6", False),
    ({"outputs": {}, "buffers": {"a": {"type": "f32", "shape": [WORDS]}}, "steps": [{"run": "step", "ports": {"x": "a"}}]}, "E-PLAN-FIT", "1024 of f32", False),
    ({"outputs": {}, "buffers": {"n": {"type": "i4", "shape": [4]}, "to": {"type": "i32", "shape": [1]}}, "steps": [{"argmax": {"buffer": "n", "at": [1]}, "into": "to"}]},
     "E-PLAN-FIT", "in the middle of a byte", False),
    ({"kernels": {"step": {"file": "k.bin", "kernel": "holes"}}, "outputs": {}, "buffers": {"a": {"type": "i32", "shape": [32, 16]}},
      "steps": [{"run": "step", "ports": {"x": "a"}}]}, "E-PLAN-FIT", "not dense", False),
]


class Tests:
    def __init__(self, folder):
        self.folder, self.failed = folder, 0

    def expect(self, good, what):
        self.failed += not good
        if not good:
            print(f"FAIL  {what}")

    def run(self, *command):
        return subprocess.run(command, cwd=self.folder, env=visa_tools.environment(), capture_output=True, timeout=1800)

    def plan(self, made, *options):
        with open(os.path.join(self.folder, "plan.json"), "w") as f:
            f.write(made if isinstance(made, str) else json.dumps(made))
        return self.run("visa-run", "--plan", "plan.json", *options)

    def path(self, name):
        return os.path.join(self.folder, name)

    def bytes(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)

    def one_by_one(self, rows):
        """The same steps, a program run for each."""
        rows = list(rows)

        def step(x, y):
            self.write("x.bin", x)
            self.write("y.bin", y)
            done = self.run("visa-run", "k.bin", "--kernel=step", "--input", "x=x.bin", "--input", "y=y.bin", "--output", "out=o.bin")
            self.expect(done.returncode == 0, f"a run of its own: {done.stderr.decode()}")
            return self.bytes("o.bin")
        for i in range(2, 5):
            rows[i] = step(rows[i - 1], rows[1])
        rows[ROWS - 1] = step(rows[ROWS - 1], rows[0])
        words = memoryview(rows[ROWS - 1]).cast("i").tolist()
        return rows, words.index(max(words))

    def chains(self):
        row = WORDS * 4
        data = self.bytes("rows.bin")
        rows, best = self.one_by_one(data[i * row:i * row + row] for i in range(ROWS))
        done = self.plan(plan(), "--check")
        self.expect(done.returncode == 0 and b"step: 4 of 4 runs agree" in done.stdout, f"the plan: {done.stdout + done.stderr}")
        self.expect(self.bytes("out.bin") == b"".join(rows), "the plan's rows are those of single runs")
        self.expect(memoryview(self.bytes("best.bin")).cast("i").tolist() == [0, best, 0], "argmax")

    def places(self):
        """Places by several indices and by names with an index; of equal elements the first is the largest, and they may all be negative."""
        self.write("low.bin", b"".join(v.to_bytes(4, "little", signed=True) for v in (-5, -3, -9, -3)))
        row = {"type": "i32", "shape": [2, 512], "of": "rows"}
        buffers = {**plan()["buffers"], "part0": {**row, "first": 0}, "part1": {**row, "first": 5 * WORDS}, "low": {"type": "i32", "shape": [4], "file": "low.bin"},
                   "best": {"type": "i32", "shape": [2, 2, 1]}, "least": {"type": "i32", "shape": [2]}}
        steps = [{"for": "i", "to": 2, "steps": [{"for": "j", "to": 2, "steps": [
            {"argmax": {"buffer": "part{j}", "at": ["i"]}, "into": {"buffer": "best", "at": ["j", "i"]}}]}]},
            {"argmax": "low", "into": {"buffer": "least", "at": [1]}}]
        done = self.plan(plan(buffers=buffers, steps=steps, outputs={"best": "best.bin", "least": "least.bin"}))
        words = memoryview(self.bytes("rows.bin")).cast("i").tolist()
        parts = [words[first + i * 512:][:512] for first in (0, 5 * WORDS) for i in range(2)]
        self.expect(done.returncode == 0 and memoryview(self.bytes("best.bin")).cast("i").tolist() == [p.index(max(p)) for p in parts], f"argmax of parts: {done.stderr}")
        self.expect(memoryview(self.bytes("least.bin")).cast("i").tolist() == [0, 1], "argmax of negative numbers")

    def gathers(self):
        """A list and a count are moved to their buffers, as rows are."""
        row, list_of = 16 * 4, [3, 60, 0, 7]
        self.write("list.bin", b"".join((4 * 16 * v).to_bytes(4, "little") for v in list_of))
        self.write("n.bin", (3).to_bytes(4, "little"))
        buffers = {"front": {"type": "i32", "shape": [5000]}, "list": {"type": "i32", "shape": [4], "file": "list.bin"}, "n": {"type": "i32", "shape": [1], "file": "n.bin"},
                   "rows": {"type": "i32", "shape": [ROWS, 64, 16], "file": "rows.bin"}, "out": {"type": "i32", "shape": [4, 16]}}
        steps = [{"run": "g", "ports": {"table": {"buffer": "rows", "at": [2]}, "list": "list", "n": "n", "out": "out"}}]
        done = self.plan(plan(kernels={"g": {"file": "k.bin", "kernel": "gathered"}}, buffers=buffers, steps=steps, outputs={"out": "out.bin"}), "--check")
        table = self.bytes("rows.bin")[2 * WORDS * 4:]
        self.expect(done.returncode == 0 and self.bytes("out.bin")[:3 * row] == b"".join(table[v * row:v * row + row] for v in list_of[:3]), f"gathered: {done.stderr}")

    def written_inputs(self):
        """Row 0 and then each row i of the others are added to the last one, which is a part with a file of its own."""
        made = plan(kernels={"add": {"file": "k.bin", "kernel": "add_to"}},
                    steps=[{"for": "i", "to": 3, "steps": [{"run": "add", "ports": {"y": {"buffer": "rows", "at": ["i"]}, "sum": "last"}}]}],
                    outputs={"rows": "out.bin"})
        made["buffers"]["last"]["file"] = "last.bin"
        self.write("last.bin", b"".join(i.to_bytes(4, "little") for i in range(WORDS)))
        done = self.plan(made, "--check")
        self.expect(done.returncode == 0 and b"add: 3 of 3 runs agree" in done.stdout, f"sums: {done.stdout + done.stderr}")
        given, found = memoryview(self.bytes("rows.bin")).cast("i"), memoryview(self.bytes("out.bin")).cast("i")
        self.expect(list(found[-WORDS:]) == [i + sum(given[r * WORDS + i] for r in range(3)) for i in range(WORDS)], "sums of rows in a part")
        self.expect(list(found[:-WORDS]) == list(given[:-WORDS]), "the other rows")
        made["steps"][0]["steps"][0]["ports"].pop("sum")
        self.expect(b"port `sum` of kernel `add_to` is bound to no buffer" in self.plan(made).stderr, "both ports of a name are bound together")

    def moved(self):
        """HBM of a kernel that is no port's is moved past all buffers, also where one lies at its address, 1 MiB; a copy that runs over the end of
        its port, and ports in one place, cannot be moved."""
        buffers = {**plan()["buffers"], "front": {"type": "i32", "shape": [(1 << 18) - 2048]}, "there": {"type": "i32", "shape": [8, 64, 16], "file": "there.bin"}}
        buffers = {name: buffers[name] for name in ("best", "at", "front", "there", "rows")}
        self.write("there.bin", bytes(range(256)) * (8 * WORDS * 4 // 256))
        run = {"run": "step", "ports": {"x": {"buffer": "rows", "at": [0]}, "y": {"buffer": "rows", "at": [1]}, "out": {"buffer": "rows", "at": [2]}}}
        made = plan(buffers=buffers, steps=[run], outputs={"there": "kept.bin"})
        done = self.plan(made, "--check")
        self.expect(done.returncode == 0 and self.bytes("kept.bin") == self.bytes("there.bin"), f"memory of the kernel's own: {done.stderr}")
        for change, words in (("dma/dma.source_base=64", "in another port or outside of all"), ("@.visa.ports.step+0x78=0000000000000000", "`x` and `y` overlap in HBM"),
                              ("@.visa.ports.step+0xb8=0000000000000000", "`x` and `out` overlap in HBM")):
            script = os.path.join(visa_tools.SOURCE, "test", "binary", "change_binary.py")
            subprocess.run([sys.executable, script, self.path("k.bin"), self.path("changed.bin"), change], env=visa_tools.environment(), check=True)
            made["kernels"] = {"step": {"file": "changed.bin", "kernel": "step"}}
            done = self.plan(made)
            self.expect(done.returncode == 1 and b"error[E-PLAN-FIT]" in done.stderr and words in done.stderr.decode(), f"{change}: {done.stderr}")

    def resident(self):
        """Tensors in DM stay from step to step, in two places by turns, among kernels that use DM for other things; numbers by Python."""
        self.write("dm.vm", RESIDENT.encode())
        self.expect(self.run("visac", "dm.vm", "-o", "dm.bin").returncode == 0, "kernels with tensors in DM")
        kernels = {k: {"file": "dm.bin", "kernel": k} for k in ("stage", "increment", "both", "back", "swapped", "aside")}
        dm = {"type": "i32", "shape": [512], "in": "dm"}
        made = {"plan": 1, "kernels": kernels,
                "buffers": {"x": {"type": "i32", "shape": [64, 8], "file": "x.bin"}, "a": dm, "b": dm, "y": {"type": "i32", "shape": [512]}, "z": {"type": "i32", "shape": [512]},
                            "w": {"type": "i32", "shape": [512]}},
                "steps": [{"run": "stage", "ports": {"input": "x", "output": "a"}},
                          {"for": "i", "to": 3, "steps": [{"run": "increment", "ports": {"input": "a", "output": "b"}},
                                                          {"run": "aside", "ports": {"input": "x", "out": "w"}},
                                                          {"run": "increment", "ports": {"input": "b", "output": "a"}}]},
                          {"run": "both", "ports": {"input": "a", "output": "b", "out0": "y", "out1": "z"}}],
                "outputs": {"y": "y.bin", "z": "z.bin", "w": "w.bin"}}
        drawn = random.Random(7)
        numbers = [drawn.randrange(-2**31, 2**31) for _ in range(512)]
        self.write("x.bin", b"".join(n.to_bytes(4, "little", signed=True) for n in numbers))

        def plus(name, more):
            wanted = b"".join(((n + more) & 0xffffffff).to_bytes(4, "little") for n in numbers)
            self.expect(self.bytes(name) == wanted, f"{name} is the input plus {more}")
        for options in ((), ("--check",)):
            done = self.plan(made, *options)
            self.expect(done.returncode == 0, f"tensors in DM: {done.stdout + done.stderr}")
            plus("y.bin", 6)
            plus("z.bin", 5)
            plus("w.bin", 3)
        for changes, words in (({"steps": [{"run": "stage", "ports": {"input": "x", "output": "y"}}]}, "is in DM, buffer `y` in HBM"),
                               ({"steps": [{"run": "stage", "ports": {"input": "a", "output": "b"}}]}, "is in HBM, buffer `a` in DM"),
                               ({"steps": [made["steps"][0], {"run": "swapped", "ports": {"input": "a", "out": "y"}}]}, "another layout in DM than port `output`"),
                               ({"buffers": {**made["buffers"], "a": {**dm, "shape": [256]}}}, "buffer `a` is 256 of i32"),
                               ({"steps": [{"run": "stage", "ports": {"input": "x", "output": {"buffer": "a", "at": [0]}}}]}, "is in DM, and is used as a whole"),
                               ({"outputs": {"a": "a.bin"}}, "let a kernel copy it")):
            done = self.plan({**made, **changes})
            self.expect(done.returncode == 1 and b"error[E-PLAN-FIT]" in done.stderr and words in done.stderr.decode(), f"{words}: {done.stderr}")
        unit = 512  # bytes of a slice's DM that a buffer takes at least
        for full in (0, 1):  # the kernel has two tensors: as much is left as they take, or one unit less
            many = {f"d{i}": dm for i in range((512 << 10) // unit - 3 + full)}
            done = self.plan({**made, "buffers": {**made["buffers"], **many}, "outputs": {},
                              "steps": [{"run": "stage", "ports": {"input": "x", "output": d}} for d in many] + [{"run": "aside", "ports": {"input": "x", "out": "w"}}]})
            self.expect(done.returncode == full and (b"past the plan's buffers, and does not fit there" in done.stderr) == bool(full), f"DM to its end: {done.stderr}")
        for buffer in ({**dm, "in": "trf"}, {**dm, "file": "x.bin"}):
            done = self.plan({**made, "buffers": {**made["buffers"], "a": buffer}})
            self.expect(done.returncode == 1 and b"error[E-PLAN]" in done.stderr, f"{buffer}: {done.stderr}")

    def names(self):
        """What a plan and its file are called does not move a cursor, and empties no report."""
        made = json.dumps(plan()).replace('"step"', '"st\\u001b[2Jep"').replace('"kernel": "st\\u001b[2Jep"', '"kernel": "step"')
        folder = self.folder.encode()
        with open(os.path.join(folder, b"\xff.json"), "w") as f:
            f.write(made)
        for options in (["--check"], ["--report"], ["--report=json"], ["--report=html"]):
            done = subprocess.run(["visa-run", "--plan", b"\xff.json", *options], cwd=self.folder, env=visa_tools.environment(), capture_output=True)
            self.expect(done.returncode == 0 and len(done.stdout) > 10 and b"\x1b" not in done.stdout and b"\xff" not in done.stdout, f"{options}: {done}")

    def damaged(self):
        """Anything in a plan's JSON may be anything: a run ends by itself, with a status of its own, and in little time."""
        drawn = random.Random(visa_tools.SLOWER)
        odd = [None, True, -1, 0, 1, 3.5, 1 << 31, 1 << 62, "", "rows", "i", "i+1", "{i}", "at", [], [0], {}, {"buffer": "at", "at": [0]}, [[[]]]]
        for _ in range(visa_tools.few(80)):
            made = json.loads(json.dumps(plan()))
            for _ in range(drawn.randint(1, 3)):
                at = made
                while isinstance(at, (dict, list)) and at and (at is made or drawn.random() < 0.85):
                    key = drawn.choice(list(at) if isinstance(at, dict) else range(len(at)))
                    holder, at = at, at[key]
                if drawn.random() < 0.2 and isinstance(holder, dict):
                    holder.pop(key)
                else:
                    holder[key] = copy.deepcopy(drawn.choice(odd))
            done = self.plan(made, "--check", "--max-cycles=1000000")
            self.expect(done.returncode in (0, 1, 3) and (done.returncode == 0) == (b"error[" not in done.stderr), f"{made}: {done}")

    def reports(self):
        done = self.plan(plan(), "--report=json")
        made = json.loads(done.stdout)
        alone = json.loads(self.run("visa-run", "k.bin", "--kernel=step", "--report=json").stdout)
        self.expect(made["runs"] == 4 and made["order"] == [0, 0, 0, 0] and made["cycles"] == 4 * made["kernels"][0]["cycles"], "sums of the report")
        self.expect(made["kernels"][0]["cycles"] == alone["cycles"], "cycles of a step are the kernel's own")
        each, moved = made["kernels"][0], 5 * WORDS * 4  # three ports, and once by way of HBM
        self.expect(each["hbm_read_bytes"] + each["hbm_written_bytes"] == moved and made["hbm_bytes"] == 4 * moved, "bytes of HBM")
        self.expect(made["lower_bound"] == 4 * each["lower_bound"] > 0, "the bound of all runs")
        text = self.plan(plan(), "--report").stdout
        shares = [f" {name} {busy * 1000 // each['cycles'] / 10:.1f} %" for name, busy in each["engine_cycles"].items()]
        self.expect(b"4 runs of kernels" in text and len(shares) > 1 and all(s.encode() in text for s in shares), f"text: {shares} of {text}")
        for less, status in ((0, 0), (1, 1)):
            self.expect(self.plan(plan(), f"--max-cycles={made['cycles'] - less}").returncode == status, "the limit of cycles at its edge")
        argmax = plan(steps=[{"for": "i", "to": 30, "steps": [{"argmax": "last", "into": {"buffer": "best", "at": [1]}}]}])
        for less, status in ((0, 0), (1, 1)):
            self.expect(self.plan(argmax, f"--max-cycles={30 * WORDS - less}").returncode == status, "the limit of elements compared at its edge")
        page = self.plan(plan(), "--report=html").stdout
        self.expect(page.count(b"<rect") == 4 and page.endswith(b"</html>\n"), "page")
        for options in (["--report=csv"], ["--check=algebra"]):
            self.expect(self.plan(plan(), *options).returncode == 2, f"{options} are not for plans")
        for options in (["--input", "x=rows.bin"], ["--list"], ["--timing-only"]):
            done = self.plan(plan(), *options)
            self.expect(done.returncode == 1 and f"[E-STEP-OPTION]: {options[0]} is for ".encode() in done.stderr, f"{options} are refused by name")
        self.expect(b"E-RUN-CYCLES" in self.plan(plan(), "--max-cycles=5000").stderr, "cycles of all steps are limited")

    def refusals(self):
        try:
            import jsonschema
            with open(os.path.join(visa_tools.SOURCE, "docs", "plan.schema.json")) as f:
                schema = jsonschema.Draft202012Validator(json.load(f))
        except ImportError:
            schema = None
        self.expect(schema is None or schema.is_valid(plan()), "the schema takes the plan")
        for changes, identity, words, by_schema in REFUSED:
            done = self.plan(plan(**changes))
            text = done.stderr.decode()
            self.expect(done.returncode == 1 and f"error[{identity}]" in text and words in text, f"{changes}: {identity}, {words}; got {done.returncode} {text}")
            self.expect(schema is None or schema.is_valid(plan(**changes)) != by_schema, f"{changes}: the schema")
        for text in ("", "[", "{}", "[]", '{"plan": 1, "plan": 1}', "[" * 100000):
            done = self.plan(text)
            self.expect(done.returncode == 1 and b"error[E-PLAN]" in done.stderr, f"{text[:20]}: {done.stderr}")

    def nothing(self):
        """Empty ranges cost nothing, however often they are repeated; a check of no run is not passed."""
        inner = {"for": "k", "from": 5, "to": 5, "steps": binding("last")}
        deep = [{"for": "i", "to": 2000000000, "steps": [{"for": "j", "to": 2000000000, "steps": [inner, dict(inner, **{"from": 0, "to": 0})]}]}]
        for steps in ([], deep):
            done = self.plan(plan(steps=steps))
            self.expect(done.returncode == 0 and self.bytes("out.bin") == self.bytes("rows.bin"), f"no runs: {done.stderr}")
            os.remove(self.path("out.bin"))
            done = self.plan(plan(steps=steps), "--check")
            self.expect(done.returncode == 3 and b"error[E-CHECK-NOTHING]" in done.stderr and not os.path.exists(self.path("out.bin")),
                        f"a check of no runs: {done.returncode} {done.stderr}")

    def differences(self):
        """A command that adds 4 for 3 is found, in its step, and no output is written."""
        done = self.run("visac", "wrong.vm", "-o", "wrong.bin")
        good, wrong = self.bytes("k.bin"), self.bytes("wrong.bin")
        self.expect(done.returncode == 0 and len(good) == len(wrong), "a kernel that multiplies by 5")
        # the words of the wrong kernel with the einsum of the good one: the first byte that differs is the command's
        at = next(i for i, (a, b) in enumerate(zip(good, wrong)) if a != b)
        self.write("k.bin", good[:at] + wrong[at:at + 1] + good[at + 1:])
        done = self.plan(plan(), "--check")
        self.expect(done.returncode == 3 and b"error[E-PLAN-STEP]: step 2: kernel `step` differs" in done.stderr and not os.path.exists(self.path("out.bin")),
                    f"a wrong command: {done.returncode} {done.stdout} {done.stderr}")
        # so many that the rest is not run: still a difference, no failure to run
        many = [{"for": "i", "to": 30, "steps": binding({"buffer": "rows", "at": [2]})}]
        done = self.plan(plan(steps=many), "--check")
        self.expect(done.returncode == 3 and b"step: 0 of 30 runs agree" in done.stdout and not os.path.exists(self.path("out.bin")),
                    f"30 wrong steps: {done.returncode} {done.stdout} {done.stderr}")
        self.write("k.bin", good)


def main():
    with tempfile.TemporaryDirectory() as folder:
        t = Tests(folder)
        t.write("k.vm", KERNELS.encode())
        t.write("wrong.vm", KERNELS.replace("MulInt, 3", "MulInt, 5").encode())
        done = t.run("visac", "k.vm", "-o", "k.bin")
        t.expect(done.returncode == 0, done.stderr.decode())
        t.write("rows.bin", b"".join((i * i * 7919 % 100003 - 50000).to_bytes(4, "little", signed=True) for i in range(ROWS * WORDS)))
        t.write("at.bin", (0).to_bytes(4, "little") + (1).to_bytes(4, "little"))
        t.chains()
        t.written_inputs()
        t.reports()
        t.places()
        t.gathers()
        t.moved()
        t.resident()
        t.names()
        t.damaged()
        t.refusals()
        t.nothing()
        t.differences()
    print("plans: all as told" if not t.failed else f"plans: {t.failed} failures")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
