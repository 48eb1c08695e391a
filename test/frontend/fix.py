#!/usr/bin/env python3
"""`visac --fix`: what diagnostics say to write, written.

A kernel of the examples is made wrong in one place, as people do who change a size or a type, or mistype a word: in some the changes have to lead to a kernel
that compiles and agrees with its mathematics; in all of them, the second time changes nothing, and JSON and SARIF offer what was done. A source that is right
stays as it is, and so does text that means something else with each use, or where a change would be a guess (CHOICES)."""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

EXAMPLES = os.path.join(visa_tools.SOURCE, "examples")
# File, what is changed in it (all of it), how many fixes it takes; None: a person has to choose somewhere.
MISTAKES = [
    ("matmul.vm", r"K = 32", "K = 64", 1),
    ("matmul.vm", r"K = 32", "K = 48", 1),
    ("matmul.vm", r"K = 32", "K = 33", 8),
    ("matmul.vm", r"K = 32", "K = 4096", 1),
    ("matmul.vm", r"N = 8", "N = 7", 5),
    ("matmul.vm", r"N = 8", "N = 1", 3),
    ("matmul.vm", r"N = 8", "N = 16", None),
    ("matmul.vm", r"bf16", "i8", 3),
    ("matmul.vm", r"bf16", "f32", None),
    ("matmul.vm", r"\.fetch::", ".fecth::", 2),
    ("matmul.vm", r"a\.view\(\)", "a.view_mut()", 1),
    ("matmul.vm", r"&weights", "weights", 1),
    ("matmul.vm", r"&mut device\.tdma", "&mut device.sub", 3),
    ("matmul.vm", r"1 # 256", "1 # 128", 4),
    ("matmul.vm", r"m!\[1 # 256\]", "m![1 # 512]", 4),
    ("matmul.vm", r"m!\[N # 16\]", "m![N # 8]", 1),
    ("matmul.vm", r"K % 16\]>\(\)\n        \.to_trf", "K % 8]>()\n        .to_trf", 1),
    ("matmul.vm", r"m!\[M, K / 16\]", "m![K / 16, M]", 1),
]

TRF = "TrfTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![N], {}>"
DM = "DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], {}>"
STORED = "device.sub.begin(b.view()).fetch::<m![N], {0}>().collect::<m![N, {1} / 16], m![{1} % 16]>().to_trf()"
KERNEL = """
#[device(chip = 1)]
fn f(device: &mut Device, b: &HbmTensor<bf16, m![1], m![N, K]>) -> {} {{
    {}
}}
"""
IN_DM = "let b: " + DM.format("m![N, K]") + " = b.to_dm(&mut device.tdma);\n    "
HBM = "HbmTensor<bf16, m![1], m![N, K]>"
# What is wrong in it, and what becomes of it: (old, new) in the text; None: all of it stays.
CHOICES = [
    ("parameters that are mappings",
     "axes![N = 8, K = 33];\nfn w<X: M>(device: &mut Device, b: &" + DM.format("m![N, { X }]") + ") -> " + TRF.format("m![{ X }]") + " {\n    "
     + STORED.format("m![{ X }]", "{ X }") + "\n}\n" + KERNEL.format(TRF.format("m![K]"), IN_DM + "w::<m![K]>(device, &b)"), None),
    ("parameters that are numbers",
     "axes![N = 8, K = 64];\nfn w<const P: usize>(device: &mut Device, b: &" + DM.format("m![N, K]") + ") -> " + TRF.format("m![K]") + " {\n    "
     "device.sub.begin(b.view()).fetch::<m![N, K / { P }], m![K % { P }]>().collect::<m![N, K / { P }], m![K % { P }]>().to_trf()\n}\n"
     + KERNEL.format(TRF.format("m![K]"), IN_DM + "w::<32>(device, &b)"), None),
    ("an axis by another name", "mod inner {\n    axes![K = 33];\n}\nuse inner::K as Q;\naxes![N = 8, K = 64];\n#[device(chip = 1)]\nfn f(device: &mut Device, b: &"
     + DM.format("m![N, Q]") + ") -> CollectTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![N, Q # 48 / 16], m![Q # 48 % 16]> {\n"
     "    device.sub.begin(b.view()).fetch::<m![N], m![Q]>().collect::<m![N, Q # 48 / 16], m![Q # 48 % 16]>()\n}\n", None),
    ("units that an alias says", "axes![N = 8, K = 32];\ntype T = " + DM.format("m![N, K]").replace("256", "128") + ";"
     + KERNEL.format(HBM, "let b: T = b.to_dm::<m![1 # 2], m![1 # 256], m![N, K]>(&mut device.tdma);\n    b.to_hbm(&mut device.tdma)"), None),
    ("the parts of commit_view", "axes![P = 256, N = 4, K = 8];\n#[device(chip = 1)]\nfn f(device: &mut Device, x: &HbmTensor<i8, m![1], m![P, N, K]>) -> "
     "HbmTensor<i8, m![1], m![P, N, K]> {\n    let a: DmTensor<i8, m![1], m![1 # 2], m![P], m![N, K]> = x.to_dm(&mut device.tdma);\n"
     "    let mut other = DmTensor::new();\n    device.sub.begin(a.view()).fetch::<m![1], m![N, K]>().collect::<m![1], m![N, K]>().commit_trim::<m![N, K]>()\n"
     "        .commit_view::<m![P % 128], m![N, K]>(other.view_mut());\n    other.to_hbm(&mut device.tdma)\n}\n", ("m![P % 128]", "m![P % 128 # 256]")),
    ("a number by its name", "axes![P = 256, W = 8];\n#[device(chip = 1)]\nfn f(device: &mut Device, a: &DmTensor<f32, m![1], m![1 # 2], m![P], m![W]>) -> "
     "DmTensor<f32, m![1], m![1 # 2], m![P], m![W]> {\n    const SCALE: i32 = 3;\n    device.main.begin(a.view()).fetch::<m![1], m![W]>().collect::<m![1], m![W]>()"
     ".vector_init().vector_intra_slice_tag(TagMode::Zero)\n        .vector_narrow_split().vector_fp_binary(FpBinaryOp::AddF, SCALE).vector_widen_concat().vector_final()"
     ".commit_trim::<m![W]>().commit()\n}\n", None),
    ("a macro's text", "axes![N = 8, K = 32];\nmacro_rules! store { ($d:expr) => { bb.to_hbm(&mut $d.tdma) } }"
     + KERNEL.format(HBM, "let bbb: " + DM.format("m![N, K]") + " = b.to_dm(&mut device.tdma);\n    store!(device)"), None),
    ("names that differ in a number", "axes![N = 8, K = 32, Row1 = 2];" + KERNEL.format(HBM.replace("K", "Row2"), "b"), None),
    ("two names as near", "axes![N = 8, K = 32];" + KERNEL.format(HBM, "let bxa: " + DM.format("m![N, K]") + " = b.to_dm(&mut device.tdma);\n    let bxb: "
                                                                 + DM.format("m![N, K]") + " = b.to_dm(&mut device.tdma);\n    bxc.to_hbm(&mut device.tdma)"), None),
    ("a type with arguments", "axes![N = 8, K = 32];" + KERNEL.format(HBM, IN_DM.replace("DmTensor", "DmTenser") + "b.to_hbm(&mut device.tdma)"), ("DmTenser", "DmTensor")),
]


def fix(path, folder):
    out = os.path.join(folder, "fixed.vm")
    done = visa_tools.run(["visac", "--fix", path, "-o", out])
    with open(out) as file:
        return done.status, done.err.decode(), file.read()


def applied(text, edits):
    for e in sorted(edits, key=lambda e: -e["range"]["begin"]["offset"]):
        text = text[:e["range"]["begin"]["offset"]] + e["text"] + text[e["range"]["end"]["offset"]:]
    return text


def judge(folder, name, pattern, new, wanted):
    with open(os.path.join(EXAMPLES, name)) as file:
        text, count = re.subn(pattern, new, file.read())
    path = os.path.join(folder, "wrong.vm")
    with open(path, "w") as file:
        file.write(text)
    if not count:
        return "nothing was changed"
    offered = [d["edits"] for d in json.loads(visa_tools.run(["visac", path, "--diagnostics-format=json", "-o", os.devnull]).err)]
    sarif = json.loads(visa_tools.run(["visac", path, "--diagnostics-format=sarif", "-o", os.devnull]).err)["runs"][0]["results"]
    of_sarif = [[{"range": {side: {"offset": r["deletedRegion"]["byteOffset"] + (side == "end") * r["deletedRegion"]["byteLength"]} for side in ("begin", "end")},
                  "text": r["insertedContent"]["text"]} for r in f["fixes"][0]["artifactChanges"][0]["replacements"]] if "fixes" in f else [] for f in sarif]
    if [applied(text, e) for e in offered] != [applied(text, e) for e in of_sarif]:
        return "SARIF offers something else than JSON"
    status, said, fixed = fix(path, folder)
    if wanted is None:
        if status != 1 or "error[" not in said:
            return f"no choice was left: {status} {said}"
    elif status != 0 or said != f"visac: {path}: {wanted} fix{'' if wanted == 1 else 'es'} made\n":
        return f"{status} {said}"
    with open(path, "w") as file:
        file.write(fixed)
    if wanted is not None:
        check = visa_tools.run(["visac", path, "--check"])
        if check.status != 0 or b"values agree" not in check.out + check.err:
            return f"it does not agree: {check.err}"
    if fix(path, folder)[2] != fixed:
        return "the second time it changes something"
    return None


def judge_choice(folder, text, change):
    path = os.path.join(folder, "choice.vm")
    with open(path, "w") as file:
        file.write(text)
    refused = visa_tools.run(["visac", path, "-o", os.devnull]).err
    if b"error[" not in refused or (change is None and b"help: " not in refused):
        return f"nothing is wrong: {refused.decode()}"
    fixed = fix(path, folder)[2]
    return None if fixed == (text.replace(*change) if change else text) else f"it becomes {fixed}"


def judge_bytes(folder):
    """Line ends, a mark of byte order, tabs and wide characters stay; a module's file is named, and not written."""
    with open(os.path.join(EXAMPLES, "matmul.vm"), encoding="utf-8") as file:
        plain = file.read()
    wide = plain.replace("\n    ", "\n\t").replace(".collect", "/* é 𝄞 漢 */ .collect")
    path = os.path.join(folder, "bytes.vm")
    for right in (plain, wide, wide.replace("\n", "\r\n"), "\ufeff" + wide, plain.rstrip("\n")):
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(right.replace("m![K % 16]", "m![K % 8]"))
        done = visa_tools.run(["visac", "--fix", path, "-o", path])
        with open(path, encoding="utf-8", newline="") as file:
            if done.status != 0 or file.read() != right:
                return f"{right[:9]!a}: {done.err.decode()}"
    module = os.path.join(folder, "inner.vm")
    wrong = "pub " + plain[plain.index("axes!"):].replace("m![K % 16]", "m![K % 8]")
    for name, text in (("inner.vm", wrong), ("outer.vm", "mod inner;\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    status, said, fixed = fix(os.path.join(folder, "outer.vm"), folder)
    with open(module, encoding="utf-8") as file:
        if status != 1 or fixed != "mod inner;\n" or file.read() != wrong or said.count(f"visac --fix {module} -o {module}") != 1:
            return f"a module: {status} {said}"
    return None


def judge_calls(name):
    """What a help says to write stands there when its changes are made."""
    path = os.path.join(os.path.dirname(EXAMPLES), "test", "cases", name)
    with open(path) as file:
        text = file.read()
    found = 0
    for d in json.loads(visa_tools.run(["visac", path, "--diagnostics-format=json", "-o", os.devnull]).err):
        call = re.fullmatch(r"write ((?:switch|transpose)::<m.*)", d.get("help") or "")
        if call:
            found += 1
            if call.group(1) not in applied(text, d["edits"]).split("\n")[d["range"]["begin"]["line"] - 1]:
                return f"{name}:{d['range']['begin']['line']}: {d['help']}: {d['edits']}"
    return None if found > 8 else f"{name}: {found} calls"


def judge_chapter(folder):
    """Blocks of Markdown, in a list, a quotation, with hidden lines, and by either line end: the rest of the chapter stays."""
    with open(os.path.join(EXAMPLES, "matmul.vm"), encoding="utf-8") as file:
        lines = file.read().rstrip("\n").split("\n")
    hidden = ["# " + line if line.startswith("axes!") else line for line in lines]
    right = ["# m![K % 8]", "```rust", *hidden, "```", "- a list:", "", "  ~~~rust,ignore", *("  " + line for line in hidden), "  ~~~", "",
             "> ```rust", *("> " + line for line in lines), "> ```", "```text", "m![K % 8]", "```", "the end"]
    wrong = [line.replace("m![K % 16]", "m![K % 8]") for line in right]
    path = os.path.join(folder, "chapter.md")
    for end in ("\n", "\r\n"):
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(end.join(wrong))
        done = visa_tools.run(["visac", "--from-markdown", "--fix", path, "-o", path])
        with open(path, encoding="utf-8", newline="") as file:
            if done.status != 0 or file.read() != end.join(right):
                return f"a chapter: {done.err.decode()}"
    plain = visa_tools.run(["visac", path, "-o", os.devnull]).err.decode()
    return None if "help: visac --from-markdown compiles" in plain else f"a chapter that is taken for a source: {plain}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        verdicts = [(mistake, judge(folder, *mistake)) for mistake in MISTAKES]
        verdicts += [(what, judge_choice(folder, text, change)) for what, text, change in CHOICES]
        verdicts += [("bytes", judge_bytes(folder)), ("a chapter", judge_chapter(folder))]
        verdicts += [(name, judge_calls(name)) for name in ("switch-refused.vm", "transpose-refused.vm")]
        for name in sorted(os.listdir(EXAMPLES)):
            if name.endswith(".vm"):
                path = os.path.join(EXAMPLES, name)
                status, said, fixed = fix(path, folder)
                with open(path) as file:
                    unchanged = status == 0 and "0 fixes" in said and fixed == file.read()
                verdicts.append((name, None if unchanged else f"{status} {said}"))
    failures = [f"FAIL {what}: {fault}" for what, fault in verdicts if fault]
    return visa_tools.ended(failures, f"{len(MISTAKES)} mistakes, {len(CHOICES)} choices, {len(failures)} failures")


if __name__ == "__main__":
    sys.exit(main())
