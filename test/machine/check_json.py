#!/usr/bin/env python3
"""--check-format=json (docs/check.schema.json): one document on standard output or nothing, the statuses of the text form, the verdicts of
its lines; kernels, stream programs and plans, by visac and by visa-run."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import visa_tools

JSON = "--check-format=json"
TWO = """axes![A = 8, B = 64];

#[device(chip = 1)]
fn good(device: &mut Device, x: &HbmTensor<i8, m![1], m![A, B]>) -> HbmTensor<i8, m![1], m![A, B]> {
    let x: DmTensor<i8, m![1], m![1 # 2], m![A # 256], m![B]> = x.to_dm(&mut device.tdma);
    x.to_hbm(&mut device.tdma)
}

#[device(chip = 1)]
fn other(device: &mut Device, x: &HbmTensor<i8, m![1], m![B, A]>) -> HbmTensor<i8, m![1], m![B, A]> {
    let x: DmTensor<i8, m![1], m![1 # 2], m![B # 256], m![A]> = x.to_dm(&mut device.tdma);
    x.to_hbm(&mut device.tdma)
}

#[stream]
fn fed(x: Stream<Tile<f32, 1, 4>, { [2] }>) -> Stream<Tile<f32, 1, 4>, { [2] }> {
    x.map(silu)
}
"""
PLAN = {"plan": 1, "kernels": {"k": {"file": "k.bin", "kernel": "good"}},
        "buffers": {"a": {"type": "i8", "shape": [8, 64]}, "b": {"type": "i8", "shape": [8, 64]}},
        "steps": [{"for": "i", "to": 3, "steps": [{"run": "k", "ports": {"x": "a", "out": "b"}}]}]}


class Session:
    def __init__(self, folder):
        self.folder, self.faults, self.count = folder, [], 0
        try:
            import jsonschema
            with open(os.path.join(visa_tools.SOURCE, "docs", "check.schema.json")) as f:
                self.schema = jsonschema.Draft202012Validator(json.load(f))
        except ImportError:
            self.schema = None

    def expect(self, condition, what):
        self.count += 1
        if not condition:
            self.faults.append(what)

    def check(self, *command, status=0, verdict="agrees"):
        done = visa_tools.run(list(command) + [JSON], cwd=self.folder)
        name = " ".join(command)
        self.expect(done.status == status, f"{name}: status {done.status} and not {status}: {done.text()}")
        if status in (1, 2):
            self.expect(done.out == b"" and done.err, f"{name}: standard output is empty, the fault is on standard error: {done.text()}")
            return None
        try:
            made = json.loads(done.out)
        except ValueError:
            self.faults.append(f"{name}: no document: {done.text()}")
            return {"checked": [{}], "diagnostics": []}
        for fault in self.schema.iter_errors(made) if self.schema else ():
            self.faults.append(f"{name}: {fault.message}")
        self.expect(made["verdict"] == verdict, f"{name}: {made['verdict']} and not {verdict}: {done.text()}")
        return made


def matmul(s):
    path = os.path.join(visa_tools.SOURCE, "examples", "matmul.vm")
    visa_tools.run(["visac", path, "-o", "m.bin"], cwd=s.folder)
    for command in (["visac", path], ["visa-run", "m.bin"]):
        made = s.check(*command, "--check", "--seed=7")
        one = made["checked"][0]
        s.expect(made["kinds"] == ["numbers", "algebra"] and made["seed"] == 7 and one["kernel"] == "matmul", f"both kinds: {made}")
        s.expect(one["numbers"] == [{"name": "out", "verdict": "agrees", "compared": 256, "differing": 0, "undecided": 0, "worst": None}], one)
        s.expect(one["algebra"]["outputs"][0]["compared"] == 256 and one["algebra"]["outputs"][0]["degree"] == 2, one)
        made = s.check(*command, "--check=algebra", "--samples=4")
        s.expect("numbers" not in made["checked"][0] and made["checked"][0]["algebra"]["outputs"][0]["compared"] == 4, made)
    free = s.check("visa-run", "m.bin", "--check=numbers", "--reference-order=free")
    s.expect(free["reference_order"] == "free" and isinstance(free["checked"][0]["numbers"][0]["worst"], (int, float)), free)
    data = bytearray(open(os.path.join(s.folder, "m.bin"), "rb").read())
    data[data.index(b"\x1f\0\0\0\x20\0\0\0") + 4] = 0x1f # a stride: 32 elements become 31
    with open(os.path.join(s.folder, "changed.bin"), "wb") as f:
        f.write(data)
    made = s.check("visa-run", "changed.bin", "--check", status=3, verdict="differs")
    one = made["checked"][0]
    s.expect(one["numbers"][0]["verdict"] == "differs" and one["numbers"][0]["differing"] == 248 and one["algebra"]["verdict"] == "differs", one)
    s.expect("E-CHECK-MISMATCH" in [d["id"] for d in made["diagnostics"]] and any("M 1..31" in n for d in made["diagnostics"] for n in d["notes"]), made)
    with open(os.path.join(s.folder, "nan.raw"), "wb") as f:
        f.write(b"\xff" * 2048)
    made = s.check("visa-run", "m.bin", "--check=numbers", "--input", "a=nan.raw", status=3, verdict="not compared")
    s.expect(made["checked"][0]["numbers"][0]["undecided"] == 256 and made["diagnostics"][0]["id"] == "E-CHECK-NOTHING", made)
    s.check("visa-run", "m.bin", "--check", "--output", "out.npy")
    s.expect(os.path.exists(os.path.join(s.folder, "out.npy")), "the output is written next to the document")


def several(s):
    with open(os.path.join(s.folder, "two.vm"), "w") as f:
        f.write(TWO)
    made = s.check("visac", "two.vm", "--check=numbers")
    found = {one.get("kernel") or one["program"]: one["verdict"] for one in made["checked"]}
    s.expect(found == {"good": "agrees", "other": "agrees", "fed": "not compared"}, found)
    s.expect(all("left_out" in one for one in made["checked"] if "program" in one), made)
    made = s.check("visac", "two.vm", "--check", "--kernel=other")
    s.expect([one.get("kernel") for one in made["checked"]] == ["other"], made)
    s.check("visac", "two.vm", "--check", "--kernel=fed", status=3, verdict="not compared")


def streams(s):
    path = os.path.join(visa_tools.SOURCE, "examples", "step", "swiglu.vm")
    done = visa_tools.run(["visac", path, "--check=numbers"], cwd=s.folder)
    made = s.check("visac", path, "--check=numbers")
    one = [one for one in made["checked"] if "program" in one][0]
    lines = [line for line in done.out.decode().splitlines() if "values are what" in line]
    s.expect(len(lines) == len(one["numbers"]) > 0 and one["verdict"] == "agrees", f"as many outputs as lines: {lines} {one}")
    s.expect(all(f"{n['name']}: {n['compared'] + n['undecided']} values" in line for n, line in zip(one["numbers"], lines)), f"{lines} {one}")


def plans(s):
    visa_tools.run(["visac", "two.vm", "--kernel=good", "-o", "k.bin"], cwd=s.folder)
    with open(os.path.join(s.folder, "p.plan"), "w") as f:
        json.dump(PLAN, f)
    made = s.check("visa-run", "--plan", "p.plan", "--check=numbers")
    s.expect(made["checked"] == [{"kernel": "k", "verdict": "agrees", "runs": 3, "compared": 3, "differing": 0}], made)
    with open(os.path.join(s.folder, "p.plan"), "w") as f:
        json.dump(dict(PLAN, steps=[]), f)
    s.check("visa-run", "--plan", "p.plan", "--check=numbers", status=3, verdict="not compared")


def refused(s):
    with open(os.path.join(s.folder, "wrong.vm"), "w") as f:
        f.write("axes![A = ];")
    s.check("visac", "wrong.vm", "--check", status=1)
    s.check("visac", "absent.vm", "--check", status=1)
    s.check("visa-run", "m.bin", "--check", "--max-cycles=5", status=1)
    for command in (["visac", "two.vm"], ["visac", "two.vm", "--check", "--emit=tables"], ["visac", "two.vm", "--check", "-o", "-"],
                    ["visa-run", "m.bin"], ["visa-run", "m.bin", "--check", "--report"], ["visa-run", "m.bin", "--check", "--output", "-"],
                    ["visa-run", "m.bin", "--check", "--certificate=-"], ["visac", "two.vm", "--check", "--certificate=-"]):
        s.check(*command, status=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        s = Session(folder)
        for part in (matmul, several, streams, plans, refused):
            part(s)
    for fault in s.faults:
        print("FAIL ", fault)
    print(f"{s.count} expectations, {len(s.faults)} faults")
    return 1 if s.faults else 0


if __name__ == "__main__":
    sys.exit(main())
