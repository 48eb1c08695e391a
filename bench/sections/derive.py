"""One mapping pair through the C API, from text to sequencer entries, against isl composing the same two relations."""
from measure import of, ratios, spread
from report import at_most, table, target

# A deriver remembers the texts that it read (include/visa.h), so both are measured: a pair whose three texts are new to it, and one it knows.
TITLE = "mapping pairs through the C API, from text to sequencer entries, against isl"


def grouped(lines, name, key):
    """{key: [line]} of the lines of a table, in order."""
    groups = {}
    for line in lines:
        if line["table"] == name:
            groups.setdefault(line[key], []).append(line)
    return groups


def microseconds(lines, field="ns"):
    return spread([line[field] / 1e3 for line in lines])


def pair_rows(lines):
    agrees = {line["pair"]: line["isl"] for line in lines if line["table"] == "agrees"}
    rows = []
    for name, taken in grouped(lines, "pairs", "pair").items():
        isl = [microseconds(taken, "isl_ns"), ratios(of(taken, "isl_ns"), of(taken, "ns")), agrees[name]] if name in agrees else ["", "", ""]
        rows.append([name, microseconds(taken, "new_ns"), microseconds(taken), 1e6 / microseconds(taken)["median"], *isl])
    return rows


def run(bench, section):
    lines = bench.lines_of([bench.program("bench_derive"), str(bench.count(30, 10)), str(bench.count(2000, 500, 2))])
    rows = pair_rows(lines)
    if not rows[0][6]:
        bench.skip("isl: not there at build time (apt-get install libisl-dev)")
    section["tables"].append(table("mapping pairs", ["pair", "µs, new texts", "µs, known texts", "pairs per second, known", "isl µs", "isl / visac", "isl agrees"], rows))
    section["tables"].append(table("elements of an axis", ["axis", "µs"], [[f"2^{bits}", microseconds(taken)] for bits, taken in grouped(lines, "sizes", "bits").items()]))
    section["tables"].append(table("terms, each once in the buffer and once in the stream", ["terms", "µs", "ns each"],
                                   [[n, microseconds(taken), microseconds(taken)["median"] * 1e3 / n] for n, taken in grouped(lines, "terms", "terms").items()]))
    section["targets"] = [at_most(f"one pair, {texts} texts, the median of the pairs", 2, spread([row[column]["median"] for row in rows]), "µs") for column, texts in ((1, "new"), (2, "known"))]
    if rows[0][6]:
        wrong = [row[0] for row in rows if row[6] == "WRONG"]
        section["targets"].append(target("pairs on which isl disagrees", "none", ", ".join(wrong) or "none", not wrong))
