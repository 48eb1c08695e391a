#!/usr/bin/env python3
"""A next step that is a mapping, applied, is accepted.

Every refusal of test/cases whose help line says which mapping to write is applied to the case: the mapping is put where the help
line says, and then this refusal is no longer there, nor any other. WAYS says how; a help line with a mapping that no way fits is
a failure, so that new advice is not forgotten here."""
import collections
import glob
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

CASES = os.path.join(visa_tools.SOURCE, "test", "cases")
MAPPING = r"m!\[[^`\n]*?\]"
PART = re.compile(r"m!\[(?:[^\[\]]|\[[^\[\]]*\])*\]")
# These show a form, or name something to look at, but no mapping to write here.
NO_MAPPING_TO_WRITE = re.compile(r"E-(PARSE|MACRO|CONST|SEQ-WINDOW|MAP-WINDOW|MAP-SYNTAX|MAP-SIZE|UNSUPPORTED|UNWRITTEN|TRF-PACKET|SHIFT-\w+)$|W-")
# One step of several: what is refused next says the next one.
LEADS_ON = {"E-ALIGN-UNUSED": ["E-TRF-PACKET"], "E-ALIGN-WIDTH": ["E-TRF-PACKET"], "E-FETCH-ALIGN": ["E-FETCH-SIZE"], "E-TRF-ROWS": ["E-TRF-ROW", "E-TRF-ELEMENT"]}


class Case:
    """A case's text and a refusal in it."""

    def __init__(self, text, refusal):
        self.text, self.refusal = text, refusal
        place = refusal["range"]["begin"]["offset"]
        starts = [m for m in re.finditer(r"^( *)(#\[device.*\n *)?fn ", text, re.M) if m.start() <= place]
        self.begin = starts[-1].start() if starts else 0
        close = "\n" + (starts[-1][1] if starts else "") + "}\n"
        end = text.find(close, self.begin)
        self.end = end + len(close) if end >= 0 else len(text)
        self.function = text[self.begin:self.end]

    def with_function(self, function):
        return self.text[:self.begin] + function + self.text[self.end:]

    def old(self):
        return self.text[self.refusal["range"]["begin"]["offset"]:self.refusal["range"]["end"]["offset"]]

    def at(self, place, new):
        return self.text[:place["begin"]["offset"]] + new + self.text[place["end"]["offset"]:]

    def behind_parameters(self, change):
        cut = self.function.find(") -> ")
        return self.with_function(self.function[:cut] + change(self.function[cut:]))


def with_result_inferred(function, count):
    """The last mappings of the result type left to the compiler."""
    if ") -> " not in function:
        return function
    at = function.index(") -> ") + 5
    end = function.index(" {\n", at)
    result = function[at:end]
    for part in [m.span() for m in PART.finditer(result)][-count:][::-1]:
        result = result[:part[0]] + "_" + result[part[1]:]
    return function[:at] + result + function[end:]


def change_part(case, new):
    """Where it was refused; with the result type left to the compiler; where the result type says the same; everywhere."""
    yield case.at(case.refusal["range"], new)
    begin = case.refusal["range"]["begin"]["offset"] - case.begin
    if begin > case.function.find(" {\n") >= 0:
        for count in (1, 2):
            yield case.with_function(with_result_inferred(case.function[:begin] + new + case.function[begin + len(case.old()):], count))
    yield case.behind_parameters(lambda text: text.replace(case.old(), new))
    yield case.with_function(case.function.replace(case.old(), new))


def change_edits(case):
    """What the diagnostic itself says to change; with the result type left to the compiler."""
    edits = sorted(case.refusal["edits"], key=lambda e: e["range"]["begin"]["offset"])
    text, grown = case.text, 0
    for e in edits:
        begin, end = (e["range"][side]["offset"] + grown for side in ("begin", "end"))
        text = text[:begin] + e["text"] + text[end:]
        grown += len(e["text"]) - (end - begin)
    yield text
    if all(case.begin < e["range"]["begin"]["offset"] < case.end for e in edits):
        function = text[case.begin:case.end + grown]
        for count in (1, 2, 3):
            yield text[:case.begin] + with_result_inferred(function, count) + text[case.end + grown:]
    news = {case.text[e["range"]["begin"]["offset"]:e["range"]["end"]["offset"]]: e["text"] for e in edits}
    if len(news) > 1:  # wherever the function says the same
        yield case.with_function(re.sub("|".join(map(re.escape, news)), lambda m: news[m[0]], case.function))
    if ".commit_trim::<" in case.text and len(edits) == 1:
        yield from change_trim(case, edits[0]["text"])
        yield case.with_function(case.function.replace(case.old()[len("m!["):-1], edits[0]["text"][len("m!["):-1]))
    if len(edits) == 1:
        yield from change_part(Case(case.text, {**case.refusal, "range": edits[0]["range"]}), edits[0]["text"])


def change_operator(case, new):
    operand = re.search(r"the size of `(.*?)`", case.refusal["message"])[1]
    front = case.text[:case.refusal["range"]["begin"]["offset"]].rstrip()
    yield front[:len(front) - len(operand)] + new + case.text[case.refusal["range"]["end"]["offset"]:]


def change_call(case, method, arguments, values):
    text = re.sub(rf"\.{method}(::<[^()]*>)?\([^()]*\)", lambda _: f".{method}::<{arguments}>({values})", case.function)
    if method != "commit_trim":
        yield case.with_function(with_result_inferred(text, arguments.count("m![") + (method == "switch")))  # Slice stands in front of Time and Packet
        return
    yield case.with_function(text)  # the result type says Element
    packet = re.search(rf"\.{method}::<m!\[(.*?)\]>", case.function)[1]
    yield case.with_function(case.function.replace(packet, arguments[len("m!["):-1]))


def change_declaration(case, new):
    yield case.at(case.refusal["notes"][0]["range"], new)


def change_input_packet(case, new):
    """The receiver of the first stage is the first parameter."""
    end = case.function.index(">")
    at = case.function.rindex("m![", 0, end)
    yield case.with_function(case.function[:at] + new + case.function[end:])


def change_buffer(case, new):
    """Some mapping of the parameters is the buffer."""
    cut = case.function.find(") -> ")
    for part in PART.finditer(case.function[:cut]):
        changed = case.function[:part.start()] + new + case.function[part.end():]
        yield case.with_function(changed)
        yield case.with_function(re.sub(r"\.align(::<[^()]*>)?\(", lambda call: call[0] if call[1] else ".align::<_, _, _, _>(", changed))


def change_any(case, new):
    """It belongs into some call or declaration of the function, another than the one that is refused. A mapping that a type hides is written out."""
    for part in PART.finditer(case.function):
        yield case.with_function(case.function[:part.start()] + new + case.function[part.end():])
    for part in PART.finditer(case.function):
        yield case.with_function(case.function.replace(part[0], new))


def change_moved(case, new):
    """Where it was refused, and in the result type, which an alias may hide."""
    name = re.search(r"\) -> (\w+) \{", case.function)
    alias = name and re.search(rf"^type {name[1]} = (.*);$", case.text, re.M)
    if not alias:
        return
    begin = case.refusal["range"]["begin"]["offset"] - case.begin
    text = case.function[:begin] + new + case.function[begin + len(case.old()):]
    last = [m.span() for m in PART.finditer(alias[1])][-1]
    yield case.with_function(text.replace(name[0], f") -> {alias[1][:last[0]] + new + alias[1][last[1]:]} {{"))


def change_units(case, cluster, slices, element):
    """The last three mappings of the result type."""
    begin, end = case.function.index(") -> "), case.function.index(" {\n")
    result, spans = case.function[begin:end], []
    spans = [m.span() for m in re.finditer(rf"{PART.pattern}|\bCluster\b", result)][-3:]
    for (start, stop), new in list(zip(spans, (cluster, slices, element)))[::-1]:
        result = result[:start] + new + result[stop:]
    yield case.with_function(case.function[:begin] + result + case.function[end:])


def change_trim(case, packet):
    """The packet that is kept, of a stream that has more; Element follows."""
    text = case.text[:case.refusal["range"]["begin"]["offset"]]
    line = text.count("\n")
    lines = case.text.split("\n")
    old = re.search(r"\.commit_trim::<m!\[(.*?)\]>", lines[line])
    lines[line] = lines[line][:old.start()] + lines[line][old.start():].replace(old[1], packet[len("m!["):-1])
    yield "\n".join(lines)


def change_cast(case, method, dtype, packet):
    """Another stage, in another place."""
    line = case.text[:case.refusal["range"]["begin"]["offset"]].count("\n")
    lines = case.text.split("\n")
    lines[line] = re.sub(rf"\.{method}::<\w+>\(\)", "", lines[line]).replace(".commit_trim", f".cast::<{dtype}, {packet}>().commit_trim")
    yield "\n".join(lines)


def change_fetch(case, time, packet):
    text = re.sub(r"\.fetch(::<[^()]*>)?\(\)", lambda _: f".fetch::<_, {time}, {packet}>()", case.function)
    yield case.with_function(with_result_inferred(text, 2))


REDUCE = r"\.vector_intra_slice_reduce::<(\w+), .*?>\((?=\w+::)"


def change_streamed(case, slices, time, packet, units=None):
    """The stream that comes, where it is written; what is made of it is left to the compiler. `units`: of Chip and Cluster."""
    end = case.function.index(">) -> ")
    parts = [m.span() for m in PART.finditer(case.function[:end])][-5:]
    text = case.function
    for (begin, stop), new in list(zip(parts, (units, units, slices, time, packet)))[::-1]:
        text = text[:begin] + new + text[stop:] if new else text
    text = re.sub(r"\.vector_narrow_\w+(::<[^()]*>)?\(\)", ".vector_narrow_trim()" if packet else lambda call: call[0].split("::")[0].rstrip("()") + "()", text)
    yield case.with_function(re.sub(REDUCE, lambda call: f".vector_intra_slice_reduce::<{call[1]}, _, _>(", text))


def change_slices(case, slices, time):
    yield from change_streamed(case, slices, time, None)


def change_lanes(case, time, packet):
    yield from change_streamed(case, "m![1]", time, packet, "m![1]")


def change_time(case, time):
    yield from change_streamed(case, None, time, None)


def change_tiled(case, tiled):
    """TileTime of an unzip, its second type argument."""
    yield case.with_function(re.sub(r"(_unzip::<\w+, )m!\[.*?\](?=, m!)", lambda call: call[1] + tiled, case.function))


def change_operand(case, slices):
    """The operand of the call that is refused, with other names of its slices."""
    begin = case.refusal["range"]["begin"]["offset"] - case.begin
    yield case.with_function(case.function[:begin] + re.sub(r"&(\w+)\)", rf"&unsafe {{ \1.reshape::<_, _, {slices}, _>() }})", case.function[begin:], count=1))


def change_blocked(case, time):
    """The order of the fetch's Time, of which an InterTranspose moves the innermost digit then."""
    text = re.sub(rf"\.fetch::<{MAPPING}", f".fetch::<{time}", case.function)
    yield case.with_function(re.sub(r"time0: \d+", "time0: 1", text))


WAYS = [
    ("E-NAME", r"a mapping is written m!\[\.\.\]", None),
    ("E-VECTOR-PAIR", rf"write TileTime ({MAPPING})", change_tiled),
    ("E-VECTOR-PAIR", rf"write Time ({MAPPING})", change_part),
    ("E-VRF-UNITS", rf"name its copies: reshape it to Slice ({MAPPING})", change_operand),
    ("E-VRF-UNITS", rf"store it with \w+ ({MAPPING}): .*", change_buffer),
    ("E-VRF-WALK", rf"store it with ({MAPPING}) innermost, or .*", change_buffer),
    ("E-VRF-WALK", r"pad with `#`", None),
    ("E-VECTOR-REDUCE", rf"collect Time ({MAPPING}) and Packet ({MAPPING}), and trim: with .*", change_lanes),
    ("E-VECTOR-REDUCE", rf"collect Time ({MAPPING}): with .*", change_time),
    ("E-VECTOR-REDUCE", r"name an axis of axes!\[\.\.\], then .*", None),
    ("E-VECTOR-SLICES", r"(?:fill freed places with padding:|the freed places take) .*", None),
    ("E-VALID-COUNT", rf"let Slice hold ({MAPPING}) and Time ({MAPPING}), or .*", change_slices),
    ("E-VALID-COUNT", rf"let Time hold ({MAPPING}) and Packet ({MAPPING}), with .*", change_lanes),
    ("E-VALID-COUNT", rf"collect Time ({MAPPING}), without the padding", change_time),
    ("E-SEQ-.*", rf".*; accepted: the buffer ({MAPPING})", change_buffer),
    ("E-SEQ-.*", rf".*; accepted: time ({MAPPING}), packet ({MAPPING})", change_fetch),
    ("E-FETCH-LIFT", rf"declare \w+ of the tensor in DM ({MAPPING}): .*", change_buffer),
    ("E-MISMATCH", rf"declare ({MAPPING})", change_declaration),
    ("E-MOVE-AXIS", rf"write ({MAPPING})", change_moved),
    ("E-MOVE-AXIS", rf"declare ({MAPPING})", change_any),
    ("E-MOVE-AXIS", r"declare the padding as `# n`, which may be written", None),
    ("E-SWITCH-BLOCKED", rf".*, with time0: 1: fetch::<({MAPPING}), \.\.>\(\)", change_blocked),
    ("E-INDEX-LIST", r"declare the list with Pe .*, and all of it in Element", None),
    ("E-INDEX-\w+", rf"(?:write|declare its Element) ({MAPPING})", change_any),
    ("E-INDEX-DATA", rf"declare Cluster ({MAPPING}), Slice ({MAPPING}), Element ({MAPPING})", change_units),
    ("E-MEMSET", rf"pad Element to a multiple of \d+: ({MAPPING})", change_any),
    ("E-COMMIT-CAST", rf".* instead of (\w+) write cast::<(\w+), ({MAPPING})>\(\) in front of commit_trim", change_cast),
    ("E-RESIZE-GROW|E-PAD-SHRINK", r"to .* write `(.*)`", change_operator),
    ("E-COMMIT-FLIT", rf"pad the packet to \d+ bytes: ({MAPPING})", change_input_packet),
    ("E-TRF-ROWS", rf"let Row be ({MAPPING}), and collect with it outermost in Time", change_part),
    ("E-.*", r".*(?:write|are|is) (\w+)::<(.*)>\((.*)\)", change_call),
    ("E-PAD-WRITE", rf"declare padding that may be written: ({MAPPING})", change_part),
    ("E-.*", rf"pad to \d+.*: ({MAPPING})", change_part),
    ("E-.*", rf".*write (?:OutTime |OutPacket )?({MAPPING})(?:[:,].*)?", change_part),
    ("E-DMA-COVER", rf"declare .*, as in Element ({MAPPING}); a part is moved through a tile", change_part),
    ("E-ALIGN-TIME", r"OutTime is .*, then what shifts, then what repeats", None),
    ("E-STEP-PROGRAM", r"take the tiles of a pair or a state apart: .*", None),
]


def has_mapping(refusal):
    text = refusal["help"] or ""
    return not NO_MAPPING_TO_WRITE.search(refusal["id"]) and ("m![" in text or re.search(r"`[^`]*[#%/=][^`]*`", text))


def declared_elsewhere(case):
    """Of a function with several callers: which of them is meant is a choice."""
    return case.refusal["id"] == "E-MISMATCH" and not case.begin <= case.refusal["notes"][0]["range"]["begin"]["offset"] < case.end


def way_of(refusal):
    """(function, its arguments), or None."""
    if refusal["edits"]:
        return change_edits, ()
    for ids, pattern, way in WAYS:
        matched = re.fullmatch(pattern, refusal["help"])
        if matched and re.fullmatch(ids, refusal["id"]):
            return way, matched.groups()
    return None


class Compiler:
    def __init__(self, folder):
        self.path = os.path.join(folder, "applied.vm")

    def refusals(self, text):
        with open(self.path, "w") as file:
            file.write(text)
        done = visa_tools.run(["visac", self.path, "--emit=tables", "--diagnostics-format=json", "-ferror-limit=0"])
        return [d for d in json.loads(done.err) if d["severity"] == "error"]


def new_refusals(before, after, refusal):
    """What came, and this refusal once more if it is still there."""
    def key(d):
        return d["id"], d["message"]
    left = collections.Counter(key(d) for d in before)
    left[key(refusal)] -= 1
    come = []
    for d in after:
        if left[key(d)] > 0:
            left[key(d)] -= 1
        elif d["id"] not in LEADS_ON.get(refusal["id"], []):
            come.append(d)
    return come


def apply(compiler, text, before, refusal):
    """None when one way of reading the help line is accepted, else what is refused instead."""
    way, arguments = way_of(refusal)
    come = []
    for changed in way(Case(text, refusal), *arguments):
        come = new_refusals(before, compiler.refusals(changed), refusal)
        if not come:
            return None
    return "\n".join(f"  then {d['id']}: {d['message']}" for d in come)


def main(names):
    count = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(folder)
        for path in sorted(glob.glob(os.path.join(CASES, "*-refused.vm"))):
            name = os.path.basename(path)
            if names and not any(part in name for part in names):
                continue
            with open(path, encoding="utf-8", errors="replace", newline="") as file:
                text = "".join(line for line in file if not line.startswith("//"))
            if not text.isascii():
                continue  # offsets are bytes
            before = compiler.refusals(text)
            for refusal in filter(has_mapping, before):
                place = f"{name}: {refusal['id']}: {refusal['help']}"
                way = way_of(refusal)
                if way is None or way[0] is None or declared_elsewhere(Case(text, refusal)):
                    count["a choice" if way else "failed"] += 1
                    if way is None:
                        print(f"FAIL {place}\n  no row of WAYS applies it")
                    continue
                wrong = apply(compiler, text, before, refusal)
                count["failed" if wrong else "accepted"] += 1
                if wrong:
                    print(f"FAIL {place}\n{wrong}")
    print(", ".join(f"{n} {what}" for what, n in sorted(count.items())))
    return 1 if count["failed"] or not count["accepted"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
