#!/usr/bin/env python3
"""visac -j: the same binary, messages and status with any number of threads.

Batches of case files and examples, each in a module of its own: kernels that are accepted, warned about and refused, in one file. And files whose parts
end where they should not: in a comment, a text, a module, between an attribute and its function; and limits that the last kernels pass."""
import glob
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402

LEAST_KERNELS, LEAST_BYTES = 16, 1 << 16  # libvisa/jobs.c: less is compiled by one thread


def sources():
    for path in sorted(glob.glob(os.path.join(visa_tools.SOURCE, "test/cases/**/*.vm"), recursive=True) +
                       glob.glob(os.path.join(visa_tools.SOURCE, "examples/*.vm"))):
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
        if "#[stream]" not in text and "\0" not in text and len(text) < 1 << 14:
            yield text


def kernel(number, body="", size=64):
    return f"""#[device(chip = 1)]
fn k{number}(device: &mut Device, a: &HbmTensor<i8, m![1], m![A]>) -> HbmTensor<i8, m![1], m![A]> {{
    {body}
    let a: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![A]> = a.to_dm::<m![1 # 2], m![1 # 256], m![A]>(&mut device.tdma);
    a.to_hbm(&mut device.tdma)
}}
"""


AXES = "axes![A = 64];\n"


def made(count, between="", body=lambda i: ""):
    return AXES + between.join(kernel(i, body(i)) for i in range(count))


def hand_made():
    padding = "// " + "x" * 400 + "\n"
    many = LEAST_BYTES // 500
    yield "plain", made(many)
    yield "long", made(3 * many, padding)
    yield "comment over all parts", made(many) + "/*\n}\n" + made(many) + "}\n*/\n" + kernel("last")
    yield "a part ends in a comment", "/*\n" + "}\n" * LEAST_BYTES + "*/\n" + made(many)
    yield "a part ends in a module", "mod x {\n" + made(many) + "}\n" + "mod y {\n" + made(many) + "}\n"
    yield "open at the end", made(many) + "fn f() {\n"
    yield "a bracket too many", made(many, "\n") + "}\n" + made(many).replace("fn k", "fn l").replace(AXES, "")
    yield "twice the same name", made(many) + kernel(many - 1)
    yield "attributes apart", made(many, "#[allow(unused)]\n")
    yield "macros", "macro_rules! same { ($x:expr) => { $x }; }\n" + made(many, padding, lambda i: "let b = same!(1);" if i % 7 == 0 else "")
    yield "faults in some", made(many, "", lambda i: "let b: DmTensor<i8, m![1], m![B]> = unknown;" if i % 31 == 5 else "")
    yield "an alias with a fault", made(many) + "type Bad = m![Nowhere];\n"
    yield "syntax", made(many, "", lambda i: "let = ;" if i == many - 2 else "")
    rest = made(3 * many, padding).replace(AXES, "")
    called = kernel("called").replace("#[device(chip = 1)]\n", "")
    head = kernel("caller").split("{", 1)[0]
    yield "a part calls a function of another", AXES + called + rest + head + "{\n    kcalled(device, a)\n}\n"

    def with_context(text):
        return text.replace("device: &mut Device", "ctx: &mut Context").replace("device.tdma", "ctx.tdma")

    newer, faulty = with_context(rest), with_context(kernel("faulty", "let b = a.to_dm(1, 2, 3, 4);"))  # how many, the release says
    older = newer.replace("fn k", "fn o").replace("::<m![1 # 2], m![1 # 256], m![A]>(&mut ctx.tdma)", "(&mut ctx.tdma, 0)")
    older = older.replace("(&mut ctx.tdma)", "(&mut ctx.tdma, 64)")
    yield "parts of two releases, the newer one first", AXES + newer + older + faulty
    yield "parts of two releases, the older one first", AXES + older + newer + faulty
    last = newer + faulty
    yield "parts of two releases that end where those of two threads do", AXES + " " * (len(last) - len(older) + 100) + older + last
    yield "constants", made(many) + "const N: usize = 3;\nconst _: () = assert!(N == 4);\n"


def batches(count):
    """Every other one of what no case says to be refused."""
    draw, texts = random.Random(27), list(sources())
    good = [t for t in texts if "E-" not in t and "error" not in t]
    for i in range(count):
        chosen = draw.sample(good, 20) if i % 2 else draw.sample(texts, 60)
        yield f"batch {i}", "".join(f"mod m{n} {{\n{text}\n}}\n" for n, text in enumerate(chosen))


def result(path, out, *options):
    if os.path.exists(out):
        os.remove(out)
    done = visa_tools.run(["visac", path, "-o", out, *options])
    data = None
    if os.path.exists(out):
        with open(out, "rb") as file:
            data = file.read()
    return done.status, done.out, done.err, data


def main():
    faults, written, refused = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "a.vm"), os.path.join(folder, "a.bin")
        for name, text in [*hand_made(), *batches(visa_tools.few(16))]:
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            for options in ([], ["-Wall", "--max-steps=2000000"]):
                one = result(path, out, "-j", "1", *options)
                written += one[3] is not None
                refused += one[3] is None
                for jobs in ("2", "5"):
                    if result(path, out, "-j", jobs, *options) != one:
                        faults.append(f"{name} {' '.join(options)}: -j {jobs} differs from -j 1")
        for bad in ("0", "x", "-1", "1025"):
            if result(path, out, "-j", bad)[0] != 2:
                faults.append(f"-j {bad} is taken")
    print(*faults, f"{written} files compiled, {refused} refused, by 1, 2 and 5 threads", sep="\n")
    sys.exit(bool(faults) or written < 5 or refused < 5)


if __name__ == "__main__":
    main()
