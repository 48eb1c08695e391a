#!/usr/bin/env python3
"""The published kernels and books, as far as visac takes them.

    VISA_CORPUS=DIRECTORY test/corpus/corpus.py [--page FILE] [-v]

DIRECTORY is a snapshot of the public repository, or holds several; nothing of them is part of this one. One without a book has a section of its
own, which stays as it is where there is none. What counts are device functions, each
compiled by itself with what it calls: positive ones, which their public test accepts, and negative ones (published.py says which). What is accepted is
run, too, and compared with its reference. Every file and every Rust block of a book is a unit that has to parse; the second table counts the
constructs of the language in them. Without VISA_CORPUS the test is skipped. It fails when visac crashes, when a negative function is accepted or refused for another than the published reason,
when an accepted one does not check, when a kernel-relevant unit does not parse, or when docs/coverage.md is not what the runs give (--page
writes it)."""
import collections
import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools  # noqa: E402
import published  # noqa: E402

PAGE = os.path.join(visa_tools.SOURCE, "docs", "coverage.md")
SYNTAX = {"E-LEX", "E-DELIMITER", "E-PARSE", "E-MAP-SYNTAX", "E-NESTING"}

Unit = collections.namedtuple("Unit", "part place text ids")  # ids: of its errors, in order
Judged = collections.namedtuple("Judged", "function ids first checks")  # first: what refuses it; checks: of an accepted one, does it agree?

# The rule that a negative function is about, by its name in both snapshots: what its public test expects to be told, in visac's ids.
REASONS = [
    (r"invalid_size_(3|16)$", "E-TRF-ROWS"), (r"cpacket_size::invalid_size_", "E-ALIGN-WIDTH"),
    (r"cpacket_mapping::invalid_(mapping|one_collect_flit_no_padding_reversed)$", "E-ALIGN-PACKET"),
    (r"cpacket_mapping::invalid_one_collect_flit_no_padding$|invalid_time_mismatch$", "E-ALIGN-TIME"),
    (r"invalid_tiling_not_in_trf$", "E-ALIGN-TILING-TRF"), (r"invalid_swapped_time_axes$", "E-ALIGN-ORDER"),
    (r"invalid_tiling_not_innermost$", "E-ALIGN-TILING"), (r"invalid_(row|lane)_mapping$", "E-TRF-ROW"),
    (r"trf_mapping::invalid_mapping$", "E-TRF-ELEMENT"), (r"invalid_(row|lane)_(not_divisible_by|exceeds)_time$", "E-TRF-ROW-TIME"),
    (r"invalid_to_trf_", "E-TRF-CAPACITY"), (r"invalid_cluster_size$", "E-CLUSTERS"), (r"fetch_assertions::slice_size::invalid_slice_size$", "E-SLICES"),
    (r"unaligned_fetch_packet_|invalid_excessive_padding$", "E-COLLECT-FLIT"), (r"::packet_mismatch$", "E-COLLECT-PACKET"),
    (r"collect_time_mismatch$", "E-COLLECT-TIME"), (r"invalid_hbm_to_dm$", "E-DMA-ALIGN"),
    (r"invalid_slice[01]_zero$|broadcast\w+::invalid_slice_size$|inter_transpose::invalid_(time0|dims|time0_size)$", "E-SWITCH-SIZE"),
    (r"invalid_slice[02]_mismatch$|time1_mismatch$|invalid_transpose_placement$", "E-SWITCH-SLICE"),
    (r"invalid_broadcast_axes_not_new$|invalid_(slice|time)_axes_in_broadcast$", "E-SWITCH-AXES"),
    (r"invalid_out_time$|invalid_time_(size|mapping)$|time[02]_mismatch$|slice1_mismatch$", "E-SWITCH-TIME"),
    (r"ve_elementwise_fxp_chain$", "E-VECTOR-ALU"), (r"ve_stash_(fxp_fp|fp_fxp)$|runtime_if_scalar_immediate$", "E-VECTOR-OPERAND"),
    (r"scalar_cast_missing_const$|memset_missing_const_bf16$", "E-CONST"), (r"invalid_gather_unscaled_index_over_spm$", "E-INDEX-LIST"), (r"runtime_panic$", "E-UNSUPPORTED"), (r"generic_device::(?:[ab]::gen|where_bound)_copy$", "E-KERNEL"),
    # those of 0.7 to 0.9
    (r"array_index::branched$|dynamic_\w+_indices$", "E-CONST"), (r"::unroll_(dynamic_count|empty_range)$", "E-UNROLL"), (r"_blocking_flits_", "E-SWITCH-BLOCKED"),
    (r"asymmetric_(inner_axis|bottom_hole_tail)$|invalid_slice_output$|unaligned_slice_axis_stride$", "E-MOVE-AXIS"),
    (r"asymmetric_index_out_of_range$|padded_cluster_swap_source$", "E-MOVE-UNITS"),
    (r"live_placement_renamed$|unaligned_base_step$|fetch_lift::doctests::(twice|nondivisible|overshoots)$", "E-FETCH-LIFT"),
    (r"to_vrf_docs::", "E-CAPACITY"), (r"partitions::other_partition$", "E-VRF-UNITS"),
    (r"invalid_gather_index_(across_pes|on_other_chips)$", "E-INDEX-LIST"), (r"transpose_i4_doubled_tu$", "E-TRANSPOSE-COLUMNS"),
    (r"ve_vrf_strided_packet$", "E-VRF-WALK"), (r"ve_group_pair_over_cache$", "E-VECTOR-PAIR"),
]
# Negative functions that break another rule before the one that their test is about: what is read twice is refused where it is fetched or
# copied, those of flags of an overflow have one cluster of two, and a type of another size than the device's is refused where it is declared.
EARLIER = re.compile(r"inter_transpose::invalid_slice[02]_mismatch$|padded_slice_axis_index$|overflowing_(add|sub|mul)_flag$|doctests::resized(_slice)?$|relabel_other_size$")
# Those that wait for an engine: no rule of ours is asked.
WAITING = re.compile(r"memset_missing_const_bf16$|invalid_gather_unscaled_index_over_spm$")

TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|'[A-Za-z_]\w*(?!')|[A-Za-z_]\w*|\d[\w]*(?:\.\d\w*)?|::|->|=>|\.\.=?|==|!=|<=|<<|&&|\|\||\S""", re.S)

LIBRARY = re.compile(r"\b(struct|enum|impl|trait|self|Self)\b|\b(assert_eq|assert) ! \(|# \[ test \]|type \w+ <|[<,] [A-Z]\w* : (?!Tu\b)[A-Z]")

CONSTRUCTS = [
    ("use", r"\buse (?=[\w:{])"), ("use: glob", r"\buse [^;]*\* ;"), ("use: rename", r"(?<=\w )as \w+ (?=[,};])"), ("use: group", r"\buse [^;]*\{"),
    ("extern crate", r"\bextern crate "), ("inner attribute", r"# ! \["), ("outer attribute: device", r"# \[ device "),
    ("outer attribute: others", r"# \[ (?!device )"), ("axes!", r"\baxes ! "), ("m! type", r"\bm ! "), ("type alias", r"\btype \w+ ="),
    ("fn", r"\bfn \w+"), ("return type", r"\) ->"), ("&T in types", r": & (?:'\w+ )?(?!mut )"), ("&mut T in types", r": & (?:'\w+ )?mut "),
    ("lifetime", r"'[A-Za-z_]\w*"), ("const parameter", r"[<,] const \w+ :"), ("{Enum::Variant} argument", r"[<,] \{ \w+ (?::: \w+ )*\}"),
    ("mod foo;", r"\bmod \w+ ;"), ("mod foo {}", r"\bmod \w+ \{"), ("pub", r"\bpub (?!\()"), ("pub(crate), pub(super)", r"\bpub \("),
    ("let", r"\blet "), ("let with a type", r"\blet (?:mut )?\w+ :"), ("let mut", r"\blet mut "), ("assignment", r"[;{}] [a-z_]\w* = "),
    ("method call", r"\. [a-z_]\w* (?:\(|:: <)"), ("method call with type arguments", r"\. [a-z_]\w* :: <"), ("`_` argument", r"[<,] _ (?=[,>])"),
    ("integer argument", r"[<,] \d\w* (?=[,>])"), ("type arguments on a path", r"(?<!\. )\b[A-Z]\w* :: <"), ("function call", r"(?<![.!] )(?<!\bfn )\b[a-z_]\w* \("),
    ("path of several segments", r"\b\w+ :: (?=\w)"), ("field", r"(?<=[\w)\]] )\. [a-z_]\w* (?!\(|::)"), ("& borrow", r"[(,=] & (?!mut |')"), ("&mut borrow", r"[(,=] & mut "),
    ("struct literal", r":: [A-Z]\w* \{ \w+ :"), ("unsafe block", r"\bunsafe \{"), ("integer", r"(?<![\w.])\d\w*(?![\w.])"), ("hexadecimal", r"\b0x\w+"),
    ("float", r"\b\d+\.\d\w*|\b\d+f(?:32|64)"), ("bool", r"\b(?:true|false)\b"), ("arithmetic * + - / % <<", r"(?<=[\w)\]] )(?:\*|\+|-|/|%|<<) (?=[\w(<])"),
    ("comparison == <", r"(?<=[\w)\]] )== |\bif \w+ <"), ("if", r"\bif "), ("else", r"\belse "), ("for", r"\bfor [\w(]"), ("range", r"\.\. "), ("tuple pattern", r"\blet \(|\bfor \("),
    ("array", r"[(=,&] \[ "), ("const item", r"[;{}\]] (?:pub )?const \w+ :"), ("dereference", r"[(,=] (?:& (?:mut )?)?\* \w"), ("async fn", r"\basync fn "), (".await", r"\. await\b"),
]


def tokens_of(text, book):
    """The text's tokens with one blank between them; mappings are emptied, so that their operators do not count as arithmetic."""
    if book:
        text = re.sub(r"^([ \t]*)#(?=[ \t\r#]|$)", r"\1 ", text, flags=re.M)
    flat = " ".join(t for t in TOKEN.findall(text) if not t.startswith(("//", "/*"))) + " "
    return re.sub(r"\bm ! \[ (?:[^\[\]]|\[[^\[\]]*\])*\] ", "m ! [ ] ", flat)


def errors_of(result):
    return [d for d in json.loads(result.err) if d["severity"] == "error" and d["file"]]


def all_errors_of(result):
    return [d for d in json.loads(result.err) if d["severity"] == "error"]


def run(arguments):
    result = visa_tools.run(["visac", "--diagnostics-format=json", "-ferror-limit=0", *arguments])
    if result.crashed or result.status == 124:
        sys.exit(f"visac {' '.join(arguments)}: status {result.status}\n{result.text()[-2000:]}")
    return result


def examples(directory):
    """Each file is parsed alone; its types are judged in the crate that it is a module of."""
    for crate in published.crates(directory):
        base = os.path.join(crate, "src")
        in_crate = collections.defaultdict(list)
        for d in errors_of(run([os.path.join(base, "lib.rs"), "--emit=ir"])):
            in_crate[os.path.realpath(d["file"])].append(d["id"])
        for path in sorted(glob.glob(os.path.join(base, "**", "*.rs"), recursive=True)):
            alone = [d["id"] for d in errors_of(run([path, "--emit=ir"])) if d["file"] == path and d["id"] in SYNTAX]
            with open(path, encoding="utf-8") as file:
                yield Unit("examples", os.path.relpath(path, directory), file.read(), alone or in_crate[os.path.realpath(path)])


def chapters(directory):
    base = os.path.join(directory, "docs", "src")
    for path in sorted(glob.glob(os.path.join(base, "**", "*.md"), recursive=True)):
        result = run(["--from-markdown", path])
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        starts = [int(n) for n in re.findall(r"^.*?:(\d+): (?:accepted|refused)", result.out.decode(), re.M)]
        errors = errors_of(result)
        for start in starts:
            end = next(i for i in range(start - 1, len(lines)) if lines[i].lstrip().startswith(("```", "~~~")) or i + 1 == len(lines))
            ids = [d["id"] for d in errors if start <= d["range"]["begin"]["line"] <= end + 1]
            yield Unit("book", f"{os.path.relpath(path, directory)}:{start}", "\n".join(lines[start - 1:end]), ids)


def construct_of(error):
    """What a reader would look for: the name that is not supported, or the rule."""
    name = re.search(r"`([^`]*)`", error["message"])
    return f"`{name.group(1)}`" if error["id"] in ("E-UNSUPPORTED", "E-METHOD") and name else error["id"]


def checks(arguments):
    """Does what the binary computes agree with the reference? Without an output there is nothing to compare."""
    result = run([*arguments, "--check", "-o", os.devnull])
    return result.status == 0 or b"not checked: it has no output" in result.out


def judge(function):
    library = os.path.join(function.crate, "src", "lib.rs")
    arguments = [library, f"--kernel={function.path}"]
    result = run([*arguments, "--emit=ir"])
    errors = errors_of(result) or all_errors_of(result)
    if result.status == 0:
        return Judged(function, [], None, function.negative or checks(arguments))
    return Judged(function, [d["id"] for d in errors], construct_of(errors[0]) if errors else "no kernel", None)


def is_published_reason(judged):
    wanted = [rule for pattern, rule in REASONS if re.search(pattern, judged.function.path)]
    return bool(wanted) and bool(judged.ids) and judged.ids[0] == wanted[0]


def wrong_reasons(judged):
    """Negative functions that are refused, but not for the published reason."""
    for j in judged:
        if j.function.negative and j.first and not (is_published_reason(j) or EARLIER.search(j.function.path)):
            yield f"{j.function.snapshot} {j.function.path} is refused by {j.ids[0] if j.ids else j.first}, which is not the published reason"


def function_tables(judged):
    groups = sorted({(j.function.snapshot, os.path.basename(j.function.crate)) for j in judged})
    yield "| snapshot, crate | positive | accepted | of these checked | not supported yet | breaks a rule | negative | refused for the published reason | for another | accepted |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for snapshot, crate in groups:
        mine = [j for j in judged if (j.function.snapshot, os.path.basename(j.function.crate)) == (snapshot, crate)]
        good, bad = [j for j in mine if not j.function.negative], [j for j in mine if j.function.negative]
        accepted = [j for j in good if not j.first]
        missing = [j for j in good if j.first and "E-UNSUPPORTED" in j.ids]
        reason = [j for j in bad if j.first and is_published_reason(j)]
        wrong = [j for j in bad if not j.first]
        yield (f"| {snapshot}, {crate} | {len(good)} | {len(accepted)} | {sum(j.checks for j in accepted)} | {len(missing)} | "
               f"{len(good) - len(accepted) - len(missing)} | {len(bad)} | {len(reason)} | {len(bad) - len(reason) - len(wrong)} | {len(wrong)} |")
    yield "\nWhat refuses the positive functions first:\n"
    snapshots = sorted({s for s, _ in groups})
    yield "| construct or rule | " + " | ".join(snapshots) + " |\n|---|" + "---|" * len(snapshots)
    counts = collections.Counter((j.first, j.function.snapshot) for j in judged if j.first and not j.function.negative)
    totals = collections.Counter(j.first for j in judged if j.first and not j.function.negative)
    for first, _ in sorted(totals.items(), key=lambda c: (-c[1], c[0])):
        yield f"| {first} | " + " | ".join(str(counts[first, s] or "") for s in snapshots) + " |"


def rule_of(diagnostic):
    return visa_tools.run(["visac", f"--explain={diagnostic}"]).out.decode().split("\n")[0].partition(": ")[2]


def refused_tables(judged):
    """Which rule each positive function breaks, and each negative one that is refused for another than the published reason."""
    positive = [j for j in judged if j.ids and not j.function.negative]
    other = [j for j in judged if j.ids and j.function.negative and not is_published_reason(j)]
    for title, found in (("The positive functions that are refused, with the first rule that their text breaks:", positive),
                         ("Negative functions that break another rule before the one that is published:", other)):
        if found:
            yield f"\n{title}\n"
            yield "| snapshot | function | rule | what it says |\n|---|---|---|---|"
            for j in found:
                yield f"| {j.function.snapshot} | {j.function.path} | {j.ids[0]} | {rule_of(j.ids[0])} |"


def parses(unit):
    return not SYNTAX.intersection(unit.ids)


def kind_of(unit):
    """"include", "pseudo", "library" or "kernel"."""
    if "{{#include" in unit.text:
        return "include"
    if re.search(r"\.\.\.(?!\w)(?![^\n]*\*/)", re.sub(r"//[^\n]*", "", unit.text)) or not parses(unit):
        return "pseudo"
    return "library" if unit.part == "book" and LIBRARY.search(tokens_of(unit.text, True)) else "kernel"


def share(part, total):
    return f"{part} of {total}" if total else "-"


def table(units):
    flat = [(u, tokens_of(u.text, u.part == "book")) for u in units]
    yield "| construct | examples: uses / files | book: uses / blocks | parsed by visac | accepted by visac |"
    yield "|---|---|---|---|---|"
    for name, pattern in CONSTRUCTS:
        found = [(u, len(re.findall(pattern, text))) for u, text in flat]
        cells = [f"{sum(n for u, n in found if u.part == part)} / {sum(n > 0 for u, n in found if u.part == part)}" for part in ("examples", "book")]
        having = [u for u, n in found if n]
        yield (f"| {name.replace('|', chr(92) + '|')} | {cells[0]} | {cells[1]} | {share(sum(map(parses, having)), len(having))} | "
               f"{share(sum(not u.ids for u in having), len(having))} |")


NEWER = "\n## Newer examples\n"


def newer_page(judged):
    """Snapshots of examples alone, which may hold a part of what was published."""
    yield NEWER
    yield "Examples of 0.7 to 0.9, as far as they were here when this was counted: a snapshot without a book. Where there is none, the table stays."
    yield "Kernels that are generic have no sizes without a launch: they count as refused (E-KERNEL).\n"
    yield from function_tables(judged)
    yield from refused_tables(judged)


def page(judged, units):
    kinds = collections.Counter((u.part, kind_of(u)) for u in units)
    relevant = [u for u in units if kind_of(u) == "kernel"]
    yield "# Coverage of the published kernels\n"
    yield "How much of the public examples and books visac takes, over all snapshots that are here. The numbers are counted from runs; the"
    yield "texts are not part of this repository. The page is made by\n"
    yield "```sh\nVISA_CORPUS=DIRECTORY test/corpus/corpus.py --page docs/coverage.md\n```\n"
    yield "where DIRECTORY is a snapshot of the public repository, or holds several. The test `corpus` compares it when VISA_CORPUS is set, and skips"
    yield "otherwise. One case file for each construct runs always (`test/cases/syntax-*.vm`, `test/cases/dialect-*.vm`).\n"
    yield "## Device functions\n"
    yield "Each is compiled by itself, with what it calls. *Positive*: its public test accepts it. *Negative*: its public test expects a refusal, or it"
    yield "stands where the publisher keeps what must be refused. *Checked*: run, and equal to the reference (`--check`); `test/corpus/kernel_meaning.py` compares"
    yield "what they compute with what is written of them.\n"
    yield from function_tables(judged)
    yield from refused_tables(judged)
    yield "\n## Files and blocks\n"
    yield "| part | units | kernels | library code | pseudo-code | includes of files |\n|---|---|---|---|---|---|"
    for part in ("examples", "book"):
        yield f"| {part} | {sum(u.part == part for u in units)} | " + " | ".join(str(kinds[part, kind]) for kind in ("kernel", "library", "pseudo", "include")) + " |"
    yield f"\nOf the {len(relevant)} kernel-relevant units visac parses {sum(map(parses, relevant))}. It accepts {sum(not u.ids for u in relevant)} as they stand.\n"
    yield "The table counts the units that are neither includes nor pseudo-code. Uses are counted on tokens, without what stands"
    yield "inside `m![..]`. A unit is accepted when visac has no error for it, parsed when none of its errors is one of syntax.\n"
    yield from table([u for u in units if kind_of(u) in ("kernel", "library")])


def main(arguments):
    root = os.environ.get("VISA_CORPUS")
    if not root:
        print("skipped: VISA_CORPUS does not name the public corpus")
        return visa_tools.SKIPPED
    everything = [judge(f) for f in published.functions(root)]
    newer = {name for name, directory in published.snapshots(root) if not os.path.isdir(os.path.join(directory, "docs", "src"))}
    units_of = {name: [*examples(directory), *chapters(directory)] for name, directory in published.snapshots(root)}
    units = [u for name in units_of for u in units_of[name]]
    with open(PAGE) as file:
        old, _, old_newer = file.read().partition(NEWER)
    judged = [j for j in everything if j.function.snapshot not in newer]
    text = "\n".join(page(judged, [u for name in units_of if name not in newer for u in units_of[name]])) + "\n" if judged else old
    if judged != everything:
        text += "\n".join(newer_page([j for j in everything if j.function.snapshot in newer])) + "\n"
    elif old_newer:
        text += NEWER + old_newer
    judged = everything
    faults = [f"{u.place} does not parse" for u in units if kind_of(u) == "kernel" and not parses(u)]
    faults += [f"{j.function.path} is accepted, and must be refused" for j in judged if j.function.negative and not j.first]
    faults += wrong_reasons(judged)
    faults += [f"{j.function.path} does not check" for j in judged if not j.first and not j.checks]
    if "-v" in arguments:
        for j in judged:
            print(j.function.snapshot, j.function.path, "negative" if j.function.negative else "positive", j.first or "accepted")
        for u in units:
            print(u.place, kind_of(u), dict(collections.Counter(u.ids)))
    print("\n".join(faults))
    if "--page" in arguments:
        with open(arguments[arguments.index("--page") + 1], "w") as file:
            file.write(text)
        return 0
    with open(PAGE) as file:
        same = file.read() == text
    if not same:
        print("docs/coverage.md is not what the runs give: write it with --page docs/coverage.md")
    print(f"{len(judged)} device functions, {len(units)} units")
    return 1 if faults or not same else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
