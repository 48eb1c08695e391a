"""How a compile grows: with the kernels of a file, with the sizes of axes, with the terms of an expression."""
from measure import ROOT, of, ratios, spread
from report import at_most, table

TITLE = "how a compile grows"


def kernels(count):
    """examples/matmul.vm with its kernel `count` times."""
    head, kernel = (ROOT / "examples/matmul.vm").read_text().split("#[device", 1)
    return head + "".join("#[device" + kernel.replace("fn matmul(", f"fn matmul_{i}(") for i in range(count))


def loop_nests(count):
    """bench/matmul.c with its function `count` times."""
    head, nest = (ROOT / "bench/matmul.c").read_text().split("void matmul(", 1)
    return head + "\n".join(f"void matmul_{i}(" + nest for i in range(count))


def one_axis(bits):
    """Tiles of an axis of 2^bits elements, of which every kernel moves the same ones."""
    return f"""axes![X = {1 << bits}, Y = 16];
#[device(chip = 1)]
fn tiles(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![Y, X = 8]>) -> HbmTensor<i8, m![1], m![X = 8, Y]> {{
    let d: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![Y, X = 8]> = a.to_dm(&mut ctx.tdma, 0);
    let t: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![X = 8, Y]> = ctx.main
        .begin(d.view()).fetch::<i8, m![X = 8], m![Y # 32]>().collect::<m![X = 8], m![Y # 32]>().commit(1 << 12);
    t.to_hbm(&mut ctx.tdma, 1 << 20)
}}
"""


def axes(count):
    """examples/matmul.vm beside so many axes more."""
    head, kernel = (ROOT / "examples/matmul.vm").read_text().split("#[device", 1)
    return head + "axes![" + ", ".join(f"X{i} = 8" for i in range(count)) + "];\n#[device" + kernel


# Kernels that are compiled again: the file, and an axis of it with two sizes.
AGAIN = ("matmul", "M", 32, 64), ("gelu", "M", 2048, 1024), ("attention", "T", 128, 256)


def again_table(bench, section):
    rows, at = [], {}
    for name, axis, first, second in AGAIN:
        lines = list(bench.lines_of([bench.program("bench_again"), ROOT / f"examples/{name}.vm", axis, str(first), str(second), *bench.count(("15", "200"), ("9", "60"), ("1", "2"))]))
        again, text = [line["again_us"] for line in lines], [line["text_us"] for line in lines]
        at[name] = spread(again)
        rows.append([name, f"{axis} = {first}, {second}", at[name], spread(text), ratios(text, again)])
    section["tables"].append(table("a kernel again with other numbers, in one process", ["kernel", "numbers", "µs", "µs from its text", "text / again"], rows))
    section["targets"].append(at_most("matmul again with other numbers, in one process", 60, at["matmul"], "µs"))


def terms(count):
    """A copy whose mappings have `count` terms; twelve axes have two elements, the others one."""
    axes = ", ".join(f"X{i} = {2 if i < 12 else 1}" for i in range(count))
    mapping = ", ".join(f"X{i}" for i in range(count))
    return f"""axes![{axes}];
#[device(chip = 1)]
fn copy(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![{mapping} # 8]>) -> HbmTensor<i8, m![1], m![{mapping} # 8]> {{
    let d: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![{mapping} # 8]> = a.to_dm(&mut ctx.tdma, 0);
    d.to_hbm(&mut ctx.tdma, 1 << 20)
}}
"""


def compiles(bench, name, text, rounds, command=None):
    """Samples of compiling a text: by visac, or by `command` with the file in the place of None."""
    path = bench.file(name, text)
    command = [path if part is None else part for part in command] if command else [bench.program("visac"), path, "-o", bench.file("growth.bin")]
    return bench.processes([("it", command)], rounds, warm_up=1)["it"]


def kernel_table(bench, section):
    gcc, rows, at = bench.peer("gcc", "gcc"), [], {}
    for count in bench.count((1, 100, 1000, 10000), (1, 100, 10000), (1, 20)):
        rounds = bench.count(5, 3) if count > 100 else bench.count(40, 10)
        at[count] = ours = compiles(bench, "kernels.vm", kernels(count), rounds)
        theirs = None
        if gcc and count <= bench.count(10000, 100, 1):
            theirs = compiles(bench, "kernels.c", loop_nests(count), 1 if count > 100 else rounds, [gcc, "-O2", f"-I{ROOT / 'bench'}", "-c", None, "-o", bench.file("kernels.o")])
        wall = spread(of(ours, "wall"))
        rows.append([count, wall, wall["median"] * 1e3 / count, spread(of(ours, "user"))["median"], max(of(ours, "peak")), max(of(ours, "peak")) * 1024 / count,
                     spread(of(theirs, "wall")) if theirs else "", ratios(of(theirs, "wall"), of(ours, "wall")) if theirs else ""])
    section["tables"].append(table("kernels in a file", ["kernels", "wall ms", "µs each", "user ms", "peak MiB", "KiB each", "gcc -O2 -c, wall ms", "gcc / visac"], rows))
    most = at.get(10000)
    section["targets"] = [at_most("10,000 kernels, wall", 800, spread(of(most, "wall")) if most else None, "ms"),
                          at_most("10,000 kernels, memory", 500, max(of(most, "peak")) if most else None, "MiB")]


def run(bench, section):
    kernel_table(bench, section)
    rounds = bench.count(60, 15)
    rows = [[f"2^{bits}", spread(of(compiles(bench, "axis.vm", one_axis(bits), rounds), "wall"))] for bits in bench.count((3, 8, 16, 24, 32, 40), (3, 16, 40), (3, 40))]
    section["tables"].append(table("elements of an axis", ["axis", "wall ms"], rows))
    rows = []
    for count in bench.count((1, 2, 5, 10, 20, 50, 100, 200), (1, 10, 50, 200), (1, 200)):
        taken = compiles(bench, "terms.vm", terms(count), rounds)
        rows.append([count, spread(of(taken, "wall")), spread(of(taken, "user"))["median"]])
    section["tables"].append(table("terms of an expression", ["terms", "wall ms", "user ms"], rows))
    rows = []
    for count in bench.count((2000, 20000, 200000), (2000, 20000), (20,)):
        taken = compiles(bench, "axes.vm", axes(count), bench.count(15, 7))
        rows.append([count, spread(of(taken, "wall")), spread(of(taken, "wall"))["median"] * 1e3 / count, max(of(taken, "peak"))])
    section["tables"].append(table("axes of a file", ["axes", "wall ms", "µs each", "peak MiB"], rows))
    again_table(bench, section)
