"""What visac tune answers: cycles of the kernels, how far they are above the bound, and what an answer costs."""
import re

from report import at_most, table

TITLE = "from a question to a kernel"
ROWS = "C[m, n] = sum(k) A[m, k] * B[n, k]"
TURNED = "C[m, n] = sum(k) A[m, k] * B[k, n]"
VECTOR = "y[n] = sum(k) x[k] * W[n, k]"
VECTOR_TURNED = "y[n] = sum(k) x[k] * W[k, n]"
# Question, sizes, type of operands and of the result ("": that of the sums), cycles of the best that was found by hand: of a sweep of two constants over a
# template (the first seven), of a kernel that was tuned, of examples/matmul_4096.vm.
QUESTIONS = [
    (ROWS, (64, 64, 256), "i8", "", 2789), (ROWS, (128, 64, 128), "bf16", "", 3556), (ROWS, (256, 64, 512), "i8", "", 7141),
    (ROWS, (64, 32, 256), "i8", "", 2213), (ROWS, (32, 8, 32), "bf16", "", 1570), (ROWS, (256, 256, 512), "i8", "", 10725),
    (ROWS, (1024, 64, 512), "i8", "", 13797), (ROWS, (1024, 1024, 1024), "i8", "", 99217), (ROWS, (2048, 2048, 2048), "i8", "", None),
    (ROWS, (4096, 4096, 4096), "i8", "", None), (ROWS, (1024, 1024, 1024), "bf16", "", None), (ROWS, (2048, 2048, 2048), "bf16", "", None),
    (ROWS, (4096, 4096, 4096), "bf16", "", None), (ROWS, (4096, 4096, 4096), "bf16", "bf16", 20999128),
    (TURNED, (1024, 1024, 1024), "i8", "", None), (TURNED, (2048, 2048, 2048), "i8", "", None), (TURNED, (4096, 4096, 4096), "i8", "", None),
    (TURNED, (1024, 1024, 1024), "bf16", "", None), (TURNED, (2048, 2048, 2048), "bf16", "", None),
    (TURNED, (4096, 4096, 4096), "bf16", "", None),
    (VECTOR, (1, 4096, 4096), "bf16", "", None), (VECTOR, (1, 4096, 4096), "i8", "", None), (VECTOR, (1, 11008, 4096), "bf16", "", None),
    (VECTOR, (1, 4096, 11008), "bf16", "", None), (VECTOR_TURNED, (1, 4096, 4096), "bf16", "", None), (VECTOR_TURNED, (1, 11008, 4096), "bf16", "", None)]


def first_number(pattern, text):
    return float(re.search(pattern, text)[1])


def run(bench, section):
    rows, longest = [], None
    for question, sizes, dtype, out, by_hand in QUESTIONS[:bench.count(len(QUESTIONS), 8, 2)]:
        given = ",".join(f"{axis}={size}" for axis, size in zip("mnk", sizes) if f"[{axis}" in question or f", {axis}" in question)
        path = bench.file("tuned.vm")
        command = [bench.program("visac"), "tune", "--no-cache", question, "-D", given, f"--dtype={dtype}", *([f"--out={out}"] if out else []), "-o", path]
        taken = bench.process(command)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        seconds = (taken["user"] + taken["system"]) / 1e3
        longest = seconds if sizes == (4096, 4096, 4096) and (longest is None or seconds > longest) else longest
        what = f"{' × '.join(map(str, sizes))} {dtype}" + (f", result in {out}" if out else "") + (", `B[k, n]`" if question in (TURNED, VECTOR_TURNED) else "")
        rows.append([what, int(first_number(r"// (\d+) cycles", text)), f"{first_number(r'cycles, ([0-9.]+) times', text):.2f}",
                     int(first_number(r"visac tune: (\d+) kernel", text)), seconds, by_hand])
    section["tables"].append(table("answers", ["question", "cycles", "over the bound", "kernels compiled", "processor time, s", "by hand, cycles"], rows))
    section["targets"] = [at_most("longest processor time to an answer for 4096 x 4096 x 4096", 10, longest, "s")]
