#!/usr/bin/env python3
"""visa-lsp from the outside: real sessions as an editor has them, and hostile bytes.

Usage: lsp_session.py [-v]. A request waits for its response; notifications that come meanwhile are kept."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

LIMIT = "--time-limit=1000000"  # milliseconds of processor time for an answer: no verdict depends on how fast the machine is

URI = "file:///tmp/visa%20test/kernel.vm"
# In April's words, which the sessions type.
MATMUL = os.path.join(visa_tools.SOURCE, "test", "frontend", "matmul_april.vm")


class Fault(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise Fault(" ".join(str(w) for w in what))


class Server:
    """One process; leaving the `with` checks that it ends in order and left no sanitizer's report."""

    def __init__(self, encodings=None, start=True, options=()):
        self.encodings, self.start, self.options = encodings, start, options
        self.number, self.notes, self.version = 0, [], 0
        self.put_off = 0 # publications after which others came
        self.ended = False # the session itself has sent `exit`

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([os.path.join(visa_tools.bin_dir(), "visa-lsp"), LIMIT, *self.options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, env=visa_tools.environment())
        if self.start:
            general = {"positionEncodings": self.encodings} if self.encodings else {}
            self.capabilities = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {"general": general}})["capabilities"]
            self.tell("initialized", {})
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None and self.start and not self.ended:
                check(self.ask("shutdown", None) is None, "shutdown has a result")
                self.tell("exit", None)
            self.process.stdin.close()
            status = self.process.wait(30)
        finally:
            self.process.kill()
        self.log.seek(0)
        said = self.log.read().decode("utf-8", "replace")
        check(not any(word in said for word in visa_tools.DAMAGE), said)
        if kind is None:
            check(status == (0 if self.start else 1), "exit status", status)

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self):
        length = None
        while True:
            line = self.process.stdout.readline()
            check(line, "the server ended")
            if line == b"\r\n":
                break
            name, value = line.split(b":")
            if name == b"Content-Length":
                length = int(value)
        return json.loads(self.process.stdout.read(length))

    def response(self, number):
        while True:
            message = self.receive()
            if "method" in message:
                self.notes.append(message)
            else:
                check(message["id"] == number, "response to", message["id"], "instead of", number)
                return message

    def ask(self, method, params, error=None):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        message = self.response(self.number)
        if error is not None:
            check(message.get("error", {}).get("code") == error, method, "gave", message)
            return None
        check("result" in message, method, "gave", message)
        return message["result"]

    def tell(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    # ---- a document ----

    def open(self, text, uri=URI):
        self.version += 1
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "vm", "version": self.version, "text": text}})
        return self.diagnostics(uri)

    def change(self, *changes, uri=URI):
        self.version += 1
        self.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": self.version}, "contentChanges": list(changes)})
        found = self.diagnostics(uri)
        check(self.published == self.version, "diagnostics of version", self.published, "and not", self.version)
        return found

    def diagnostics(self, uri=URI):
        """Those that are published next for the document, and are all there."""
        while True:
            for i, note in enumerate(self.notes):
                if note["method"] == "textDocument/publishDiagnostics" and note["params"]["uri"] == uri:
                    del self.notes[i]
                    if note["params"].get("pending"):
                        self.put_off += 1
                        break
                    self.published = note["params"].get("version")
                    return note["params"]["diagnostics"]
            else:
                self.notes.append(self.receive())

    def at(self, method, line, character, uri=URI, **more):
        return self.ask("textDocument/" + method, {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}, **more})

    def hover(self, text, needle, shift=0, nth=0):
        found = self.at("hover", *place(text, needle, shift, nth))
        return found["contents"]["value"] if found else ""

    def labels(self, text, needle, shift=0, nth=0):
        return {item["label"] for item in self.at("completion", *place(text, needle, shift, nth))}


def place(text, needle, shift=0, nth=0, units="utf-16-le"):
    """Line and character of the nth occurrence, `shift` characters on."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(needle, at + 1)
    at += shift
    line = text.count("\n", 0, at)
    before = text[text.rfind("\n", 0, at) + 1:at]
    return line, len(before.encode(units)) // (2 if units.startswith("utf-16") else 1)


def span(text, needle, nth=0):
    line, column = place(text, needle, 0, nth)
    return {"start": {"line": line, "character": column}, "end": {"line": line, "character": column + len(needle)}}


def apply(text, edits):
    lines = text.split("\n")
    begins = [sum(len(line) + 1 for line in lines[:i]) for i in range(len(lines))] + [len(text)]
    for e in sorted(edits, key=lambda e: -begins[min(e["range"]["start"]["line"], len(lines))] - e["range"]["start"]["character"]):
        first, last = (begins[min(e["range"][k]["line"], len(lines))] + e["range"][k]["character"] for k in ("start", "end"))
        text = text[:first] + e["newText"] + text[last:]
    return text


def source():
    with open(MATMUL, encoding="utf-8") as f:
        return f.read()


# ---- sessions ----

def a_day_at_work():
    text = source()
    with Server() as s:
        check(s.capabilities["positionEncoding"] == "utf-16", s.capabilities)
        check(s.open(text) == [], "matmul has diagnostics")
        # A misspelt axis: an error with its id, and the fix.
        broken = text.replace("m![N, K / 16]", "m![N, Kk / 16]", 1)
        found = s.change({"range": span(text, "K / 16"), "text": "Kk / 16"})
        check([d["code"] for d in found] == ["E-AXIS-UNKNOWN"], found)
        check(found[0]["severity"] == 1 and found[0]["source"] == "visac" and found[0]["range"] == span(broken, "Kk"), found)
        check("did you mean `K`?" in found[0]["message"], found)
        check("E-AXIS-UNKNOWN" in s.hover(broken, "Kk"), "no explanation")
        actions = s.ask("textDocument/codeAction", {"textDocument": {"uri": URI}, "range": span(broken, "Kk"), "context": {"diagnostics": found}})
        check(len(actions) == 1 and actions[0]["kind"] == "quickfix" and actions[0]["diagnostics"] == found, actions)
        fixed = apply(broken, actions[0]["edit"]["changes"][URI])
        check(fixed == text, "the fix does not restore the text")
        check(s.change({"range": span(broken, "Kk"), "text": "K"}) == [], "the error stays")
        # A help with two changes: one action, that makes both.
        broken = text.replace("m![N, K / 16], m![K % 16]", "m![N, K / 8], m![K % 8]", 1)
        found = s.change({"range": span(text, "m![N, K / 16], m![K % 16]"), "text": "m![N, K / 8], m![K % 8]"})
        check([d["code"] for d in found] == ["E-COLLECT-FLIT"], found)
        actions = s.ask("textDocument/codeAction", {"textDocument": {"uri": URI}, "range": span(broken, "m![K % 8]"), "context": {"diagnostics": found}})
        check(len(actions) == 1 and "this stream collects as" in actions[0]["title"], actions)
        check(apply(broken, actions[0]["edit"]["changes"][URI]) == text, "the two changes do not restore the text")
        check(s.change({"range": span(broken, "m![N, K / 8], m![K % 8]"), "text": "m![N, K / 16], m![K % 16]"}) == [], "the error stays")
        # All fixes, and those of what they show, where they are asked for by their kind.
        change = {"range": span(text, "K = 32"), "text": "K = 64"}
        broken = text.replace("K = 32", "K = 64", 1)
        check(s.change(change), "64 is two packets")
        ask = {"textDocument": {"uri": URI}, "range": span(broken, "K = 64")}
        actions = s.ask("textDocument/codeAction", {**ask, "context": {"diagnostics": [], "only": ["source.fixAll"]}})
        check([a["kind"] for a in actions] == ["source.fixAll"], actions)
        whole = actions[0]["edit"]["changes"][URI][0]
        check(s.change({"range": whole["range"], "text": whole["newText"]}) == [] and "K = 64" in whole["newText"], "the fixes do not mend it")
        check(s.ask("textDocument/codeAction", {**ask, "context": {"diagnostics": [], "only": ["source"]}}) == [], "a right text is fixed")
        check(s.ask("textDocument/codeAction", {**ask, "context": {"diagnostics": [], "only": ["refactor"]}}) == [], "there is nothing of that kind")
        check(s.change({"range": whole["range"], "text": text}) == [], "the first text again")
        # The configuration of the machine.
        check("32 elements" in s.hover(text, "m![M, K]", 3), s.hover(text, "m![M, K]", 3))
        fetch = s.hover(text, ".fetch", 2)
        check("fetch::<Dtype, Time, Packet>()" in fetch and "sequencer: dm read" in fetch and "Entry 0" in fetch, fetch)
        check("collect_flits = 2" in s.hover(text, ".align", 2), s.hover(text, ".align", 2))
        check("2 positions" in s.hover(text, "K / 16", 2), s.hover(text, "K / 16", 2))
        check("m![M, K]" in s.hover(text, "m![M, K]", 1) and "1024 positions = 32 × 32" in s.hover(text, "m![M, K]", 1), s.hover(text, "m![M, K]", 1))
        check("padding" in s.hover(text, "1 # 256", 2), "a padded mapping")
        check("TrfTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![N], m![K]>" in s.hover(text, "&weights", 2), s.hover(text, "&weights", 2))
        check("16 bits" in s.hover(text, "bf16", 0, 1) and "DmTensor<Dtype, Chip" in s.hover(text, "DmTensor"), "types")
        # What may stand in a place, and what it is.
        methods = {item["label"]: item for item in s.at("completion", *place(text, ".fetch", 1))}
        check(methods["fetch"]["kind"] == 2 and "fetch::<Dtype, Time, Packet>()" in methods["fetch"].get("detail", ""), methods["fetch"])
        check(s.labels(text, "AccumulationKind::", len("AccumulationKind::")) == {"Interleaved", "Sequential"}, "kinds of accumulation")
        for type_name, some in (("FxpBinaryOp", {"AddFxp", "SubFxp"}), ("BranchMode", {"Comparison"}), ("BinaryArgMode", {"Mode00"})):
            changed = text.replace("AccumulationKind::", f"{type_name}::")
            s.change({"text": changed})
            found = s.labels(changed, f"{type_name}::", len(f"{type_name}::"))
            check(some <= found and len(found) > 1, type_name, found)
        s.change({"text": text})
        # Names lead to where they were given; a shadowed one to the right one.
        found = s.at("definition", *place(text, "&weights", 3))
        check(found == {"uri": URI, "range": span(text, "weights", 1)}, found)
        check(s.at("definition", *place(text, "a.to_dm"))["range"] == span(text, "a", text.count("a", 0, text.index("a: &Hbm"))), "the parameter")
        check(s.at("definition", *place(text, "a.view()"))["range"] == span(text, "a", text.count("a", 0, text.index("a: DmTensor"))), "the variable")
        check(s.at("definition", *place(text, "N, K / 16"))["range"]["start"] == dict(zip(("line", "character"), place(text, "N = 8"))), "the axis")
        check(s.at("definition", 0, 3) is None and s.at("hover", 0, 3) is None, "a comment has a definition")
        # A name everywhere: the axis, and each of the shadowed variables by itself.
        where = lambda found: [(r["range"]["start"]["line"], r["range"]["start"]["character"]) for r in found]
        uses = where(s.at("references", *place(text, "N, K / 16")))
        words = [m.start() for m in re.finditer(r"\bN\b", re.sub(r"//.*", lambda m: " " * len(m[0]), text))]
        check(uses == [(text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1) for at in words], "the axis' places", uses)
        check(where(s.at("documentHighlight", *place(text, "N, K / 16"))) == uses, "the same highlighted")
        check(len(s.ask("textDocument/references", {"textDocument": {"uri": URI}, "position": dict(zip(("line", "character"), place(text, "N, K / 16"))),
                                                    "context": {"includeDeclaration": False}})) == len(uses) - 1, "without the declaration")
        port, variable = (set(where(s.at("references", *place(text, needle)))) for needle in ("a.to_dm", "a.view()"))
        check(len(port) == len(variable) == 2 and not port & variable, "what shadows is another name", port, variable)
        rename = lambda needle, name: s.ask("textDocument/rename", {"textDocument": {"uri": URI}, "newName": name,
                                            "position": dict(zip(("line", "character"), place(text, needle)))})
        check(s.at("prepareRename", *place(text, "&weights", 3))["start"]["character"] == place(text, "&weights", 1)[1], "what would be renamed")
        line, character = place(text, "&weights", 1)
        for at, begins in ((character, character), (character + len("weights") - 1, character), (character + len("weights"), None), (character - 1, None)):
            found = s.at("prepareRename", line, at)
            check((found and found["start"]["character"]) == begins, "at", at - character, found)
        renamed = apply(text, s.ask("textDocument/rename", {"textDocument": {"uri": URI}, "newName": "filter",
                                                            "position": dict(zip(("line", "character"), place(text, "&weights", 1)))})["changes"][URI])
        check(renamed.count("filter") == 2 and "&filter" in renamed and "let filter:" in renamed, renamed)
        check(s.change({"text": renamed}) == [] and s.change({"text": text}) == [], "what was renamed does not compile")
        for name in ("K", "1x", "9", "q b", "q-", "q{", "é", "", "_"):
            check(rename("N, K / 16", name) is None, "renamed to", name)
        # Words are taken whole: a part of one is free, and so is one that only begins as another; the last word of a text counts.
        for name in ("weight", "Weights", "A0", "zZ", "_x", "__"):
            check(rename("N, K / 16", name) is not None, "not renamed to", name)
        check(s.change({"text": text + "// tail0"}) == [] and rename("N, K / 16", "tail0") is None and rename("N, K / 16", "tail") is not None, "the last word")
        check(s.change({"text": text.replace("axes![", "/* zZ0+q */ axes![", 1)}) == [], "a comment in front")
        check(rename("let weights", "q") is None and rename("let weights", "zZ0") is None, "words of a comment, side by side")
        s.change({"text": "axes![N = 8]; // w1  w2\n"})
        for name, free in (("_", False), ("w1", False), ("w2", False), ("w", True), ("w3", True)):
            edit = s.ask("textDocument/rename", {"textDocument": {"uri": URI}, "newName": name, "position": {"line": 0, "character": 6}})
            check((edit is not None) == free, "renamed to", name, edit)
        check(s.change({"text": text}) == [], "the text again")
        check(s.at("references", 0, 3) == [] and s.at("prepareRename", 0, 3) is None, "a comment has references")
        folds = s.ask("textDocument/foldingRange", {"textDocument": {"uri": URI}})
        check(any(f["endLine"] == place(text, "\n}", 1)[0] for f in folds), "the kernel folds", folds)
        # Layout.
        ugly = text.replace("    ctx: &mut Context,", "  ctx   :&mut Context ,")
        s.change({"text": ugly})
        edits = s.ask("textDocument/formatting", {"textDocument": {"uri": URI}, "options": {"tabSize": 4, "insertSpaces": True}})
        pretty = apply(ugly, edits)
        check(pretty.encode() == visa_tools.run(["visac", "--format", "-"], stdin=ugly.encode()).out, "another layout than visac's")
        check(s.change({"text": pretty}) == [], "the layout has errors")
        check(s.ask("textDocument/formatting", {"textDocument": {"uri": URI}, "options": {}}) == [], "formatting twice")
        symbols = s.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
        check([x["name"] for x in symbols] == ["M", "N", "K", "matmul"], symbols)
        check([x["name"] for x in symbols[3]["children"]] == ["a", "b", "weights", "c"], symbols[3])
        # Saved, closed: nothing is left.
        s.tell("textDocument/didSave", {"textDocument": {"uri": URI}})
        check(s.diagnostics() == [], "saved")
        s.tell("textDocument/didClose", {"textDocument": {"uri": URI}})
        check(s.diagnostics() == [], "closed")
        s.ask("textDocument/hover", {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}, error=-32602)


def tokens_of(s, text, found):
    """(word, type, modifiers) of each semantic token."""
    legend = s.capabilities["semanticTokensProvider"]["legend"]
    lines, out, line, column = text.split("\n"), [], 0, 0
    check(len(found["data"]) % 5 == 0, found)
    for down, right, units, kind, bits in zip(*[iter(found["data"])] * 5):
        line, column = line + down, right if down else column + right
        out.append((lines[line][column:column + units], legend["tokenTypes"][kind], {m for i, m in enumerate(legend["tokenModifiers"]) if bits >> i & 1}))
    return out


CALLS = """axes![A = 4];
fn one() -> usize { 1 }
fn two() -> usize { one() + one() }
fn three() -> usize { two() * one() }
const N: usize = 8;
type T = m![A];
fn f(x: SwitchTensor<i8, m![1], m![1], m![1], T, m![A # 32]>) -> CollectTensor<i8, m![1], m![1], m![1], m![A], m![A # 32]> {
    let y = three() + N;
    x.collect()
}
"""


def derived():
    """Names by what they are, what was derived, calls."""
    text, document = source(), {"textDocument": {"uri": URI}}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 999, "character": 0}}
    with Server() as s:
        check(s.capabilities["inlayHintProvider"] and s.capabilities["callHierarchyProvider"] and s.capabilities["signatureHelpProvider"], s.capabilities)
        s.open(text)
        named = tokens_of(s, text, s.ask("textDocument/semanticTokens/full", document))
        axes = [n for n in named if n[0] == "N"]
        words = re.findall(r"\bN\b", re.sub(r"//.*", "", text))
        check(len(axes) == len(words) and all(n[1] == "enumMember" for n in axes) and [bool(n[2]) for n in axes] == [True] + [False] * (len(words) - 1), axes)
        check(("fetch", "method", set()) in named and ("bf16", "class", set()) in named and ("weights", "variable", {"declaration"}) in named, named)
        check(not any(n[0] in ("let", "fn", "Interleaved") for n in named), "words that the grammar has", named)
        line = place(text, ".fetch")[0]
        part = tokens_of(s, text, s.ask("textDocument/semanticTokens/range", {**document, "range": {"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}}}))
        check(part[0][0] == "fetch" and 0 < len(part) < len(named) / 4, part)
        # What was derived, where the call ends; cycles at the end of the line.
        hints = s.ask("textDocument/inlayHint", {**document, "range": whole})
        at = lambda needle, nth=0: [h["label"] for h in hints if h["position"]["line"] == place(text, needle, 0, nth)[0]]
        check("[8:32, 32:1]" in at(".fetch") and "[32:32, 32:1]" in at(".fetch", 1), "entries of the sequencers", hints)
        check(at(".contract") == ["Row m![N], Time m![M]"] and "Row m![N]" in at(".align"), "inferred mappings", hints)
        report = visa_tools.run(["visac", MATMUL, "--report=csv"]).out.decode().splitlines()
        columns = report[0].split(",")
        cycles = {}
        for row in report[1:]:
            cells = dict(zip(columns, row.split(",")))
            cycles[int(cells["line"])] = cycles.get(int(cells["line"]), 0) + int(cells["end"]) - int(cells["start"])
        shown = {h["position"]["line"] + 1: int(h["label"].split()[0]) for h in hints if h["label"].endswith(" cycles")}
        check(shown == cycles, "cycles as --report has them", shown, cycles)
        check(all(h["position"]["character"] <= len(text.split("\n")[h["position"]["line"]]) for h in hints), hints)
        few = s.ask("textDocument/inlayHint", {**document, "range": {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 200}}})
        check(few == [h for h in hints if h["position"]["line"] == line], "hints of a line", few)
        s.change({"range": span(text, "K / 16"), "text": "Kk / 16"})
        wrong = s.ask("textDocument/inlayHint", {**document, "range": whole})
        check(not any(h["label"].endswith(" cycles") for h in wrong) and wrong, "a text with errors has no cycles", wrong)
        # A stage's arguments, also while they are being written.
        s.change({"text": text})
        def signature(text, needle, shift):
            found = s.at("signatureHelp", *place(text, needle, shift))
            if not found:
                return None
            one, active = found["signatures"][0], found["activeParameter"]
            words = [one["label"][p["label"][0]:p["label"][1]] for p in one["parameters"]]
            return one["label"], words[active] if active < len(words) else None
        check(signature(text, ".fetch::<", 9) == ("fetch::<Dtype, Time, Packet>()", "Dtype"), signature(text, ".fetch::<", 9))
        check(signature(text, "fetch::<bf16, m![N]", 19) == ("fetch::<Dtype, Time, Packet>()", "Time"), "inside a mapping")
        check(signature(text, ".align::<m![M], m![K], _, _>(", 29)[1] == "a reference to a TrfTensor", signature(text, ".align::<m![M], m![K], _, _>(", 29))
        check(signature(text, "axes![", 6) is None and signature(text, "let a", 2) is None, "no call")
        torn = text[:text.index(".fetch::<") + 15]
        s.change({"text": torn})
        check(signature(torn, ".fetch::<bf16, ", 14)[1] == "Time", "half written")
        # Calls.
        check(s.change({"text": CALLS}) is not None, "calls")
        named = tokens_of(s, CALLS, s.ask("textDocument/semanticTokens/full", document))
        check(("N", "variable", {"declaration", "readonly"}) in named and ("N", "variable", {"readonly"}) in named, named)
        check(("T", "type", {"declaration"}) in named and ("T", "type", set()) in named and ("two", "function", set()) in named, named)
        item = lambda needle, nth=0: s.at("prepareCallHierarchy", *place(CALLS, needle, 0, nth))[0]
        one = item("one()", 1)
        check(one["name"] == "one" and one["selectionRange"] == span(CALLS, "one") and one == item("one"), one)
        incoming = s.ask("callHierarchy/incomingCalls", {"item": one})
        check([(c["from"]["name"], len(c["fromRanges"])) for c in incoming] == [("two", 2), ("three", 1)], incoming)
        check(incoming[1]["fromRanges"] == [span(CALLS, "one", 3)], incoming[1])
        outgoing = s.ask("callHierarchy/outgoingCalls", {"item": item("three")})
        check([(c["to"]["name"], c["fromRanges"]) for c in outgoing] == [("two", [span(CALLS, "two", 1)]), ("one", [span(CALLS, "one", 3)])], outgoing)
        check(s.at("prepareCallHierarchy", *place(CALLS, "A = 4")) is None, "an axis is not called")
        check(signature(CALLS, "three() +", 6) == ("fn three() -> usize", None), signature(CALLS, "three() +", 6))
        check(signature(CALLS, "x.collect(", 10)[0].startswith("collect"), "collect")
        s.change({"text": "axes![B = 4];\n"})
        check(s.ask("callHierarchy/incomingCalls", {"item": one}) == [], "a function that was removed")
        s.ask("callHierarchy/incomingCalls", {"item": {}}, error=-32602)
        s.ask("callHierarchy/outgoingCalls", None, error=-32602)


def half_written():
    """A text in the middle of being typed answers for what is fine."""
    text = source()
    with Server() as s:
        def typed(before, after):
            now = text.replace(before, after, 1)
            s.change({"text": now})
            return now

        s.open(text)
        now = typed(".collect::<m![M, K / 16], m![K % 16]>()\n", ".\n")
        got = s.labels(now, "        .\n", 9)
        check({"collect", "commit", "commit_view"} <= got and "align" not in got, got)
        check("8 elements" in s.hover(now, "m![N, K]>", 3, 1), "hover next to")
        now = typed("c.to_hbm(&mut ctx.tdma, 1 << 20)", "let d = c.\n    c.to_hbm(&mut ctx.tdma, 1 << 20)")
        got = s.labels(now, "= c.\n", 4)
        check({"view", "to_hbm", "view_mut"} <= got and "fetch" not in got, got)
        now = typed("c.to_hbm(&mut ctx.tdma, 1 << 20)", "let d = [(c.\n    c.to_hbm(&mut ctx.tdma, 1 << 20)")  # both brackets are closed behind the word
        check(s.labels(now, "(c.\n", 3) == got, s.labels(now, "(c.\n", 3))
        now = typed("c.to_hbm(&mut ctx.tdma, 1 << 20)", "c.to_hbm(&mut ctx.")
        check({"main", "sub", "tdma"} <= s.labels(now, "&mut ctx.", 9, 2), s.labels(now, "&mut ctx.", 9, 2))
        now = typed(".fetch::<bf16, m![N], m![K]>()", ".fetch::<bf16, m![N], m![")
        got = s.labels(now, "m![N], m![\n", 10)
        check(got == {"M", "N", "K"}, got)
        check("8 elements" in s.hover(now, "m![N], m![\n", 3), "an axis in a broken line")
        now = typed(".begin(b.view())", ".begin(b.)")
        check("view" in s.labels(now, "b.)", 2), s.labels(now, "b.)", 2))
        now = typed(".fetch::<bf16", ".fe::<bf16")
        check(s.labels(now, ".fe::", 3) == {"fetch"}, s.labels(now, ".fe::", 3))
        now = typed("TrfAddress::Full", "TrfAddress::")
        check(s.labels(now, "TrfAddress::", 12) == {"Full", "FirstHalf", "SecondHalf"}, s.labels(now, "TrfAddress::", 12))
        now = typed("TrfAddress::Full", "SwitchConfig::")
        check("InterTranspose" in s.labels(now, "SwitchConfig::", 14), s.labels(now, "SwitchConfig::", 14))
        now = typed("TrfAddress::Full", "K::")
        check(s.labels(now, "(K::", 4) == {"SIZE"}, s.labels(now, "(K::", 4))
        now = typed("axes!", "type Chip = m![1];\nconst ROWS: usize = 4 * 2;\naxes!")
        now = typed("axes!", "type Chip = m![1 # 4];\nconst ROWS: usize = 4 * 2;\naxes!").replace("c.to_hbm(", "let x: ")
        s.change({"text": now})
        got = s.labels(now, "let x: ", 7)
        check({"Chip", "ROWS", "DmTensor", "bf16", "a", "weights", "matmul", "let"} <= got and "x" not in got, got)
        check("= 8" in s.hover(now, "ROWS") and "4 positions" in s.hover(now, "Chip"), s.hover(now, "ROWS") + s.hover(now, "Chip"))
        check(s.labels(now, "// A bf16", 4) == set(), "in a comment")
        program = "type T = Tile<bf16, 4, 4>;\n#[stream(channels = 8)]\npub fn p(x: Stream<T, 0>) {\n    x.\n}\nfn q(x: &HbmTensor<i8, m![1], m![1]>) {\n    x.\n}\n"
        s.change({"text": program})
        got = s.labels(program, "    x.\n", 6)
        check({"map", "zip", "bufferize", "compute"} <= got and "fetch" not in got and "source" not in got, got)
        check("map" not in s.labels(program, "    x.\n", 6, 1), "next to a stream program")
        # At every place of every prefix's end something is answered.
        for cut in range(0, len(text), 97):
            s.change({"text": text[:cut]})
            line, column = place(text[:cut] + "|", "|")
            s.at("completion", line, column)
            s.at("hover", line, max(0, column - 1))
            s.at("definition", line, column)


def characters():
    """Columns are UTF-16 units, or bytes where both sides agree on them."""
    text = 'axes![A = 8]; // zwölf 🦀 Axen\n/* 🦀🦀 é */ axes![B = 4]; fn f(x: FetchTensor<i8, m![1], m![1], m![1], m![A], m![Bb]>) {}\n'
    for encoding, units in (("utf-16", "utf-16-le"), ("utf-8", "utf-8")):
        with Server(encodings=["utf-32", encoding]) as s:
            check(s.capabilities["positionEncoding"] == encoding, s.capabilities)
            found = s.open(text)
            line, column = place(text, "Bb", 0, 0, units)
            found = [d for d in found if d["code"] == "E-AXIS-UNKNOWN"]
            check(found[0]["range"] == {"start": {"line": line, "character": column}, "end": {"line": line, "character": column + 2}}, encoding, found)
            hover = s.at("hover", *place(text, "A]", 0, 0, units))
            check("8 elements" in hover["contents"]["value"], hover)
            # An edit after the crabs, one that takes a crab away, one that ends inside of one.
            end = place(text, "Bb", 2, 0, units)
            found = s.change({"range": {"start": {"line": line, "character": end[1] - 1}, "end": {"line": line, "character": end[1]}}, "text": ""})
            check("E-AXIS-UNKNOWN" not in [d["code"] for d in found], encoding, found)
            text2 = text.replace("Bb", "B")
            first, last = place(text2, "🦀🦀", 0, 0, units), place(text2, "🦀 é", 0, 0, units)
            s.change({"range": {"start": {"line": first[0], "character": first[1]}, "end": {"line": last[0], "character": last[1]}}, "text": "\n\r\n"})
            text3 = text2.replace("🦀🦀", "\n\r\n🦀", 1)
            hover = s.at("hover", *place(text3, "B]", 0, 0, units))
            check("4 elements" in hover["contents"]["value"], encoding, hover)
            inside = place(text3, "🦀 é", 0, 0, units)
            s.change({"range": {"start": {"line": inside[0], "character": inside[1] + 1}, "end": {"line": inside[0], "character": 10**6}}, "text": "*/ axes![C = 2];"})
            text4 = text3[:text3.index("🦀 é")] + "*/ axes![C = 2];\n"
            symbols = s.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
            check([x["name"] for x in symbols] == ["A", "C"], symbols)
            check(symbols[1]["selectionRange"]["start"]["character"] == place(text4, "C = 2", 0, 0, units)[1], symbols)


def edited(text, edits, units):
    """`text` after an editor's edits, whose columns are units of `units`."""
    size, begins = 2 if units.startswith("utf-16") else 1, [0]
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line.encode(units)))
    data = text.encode(units)
    for e in sorted(edits, key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True):
        first, last = (min(begins[min(e["range"][k]["line"], len(begins) - 1)] + e["range"][k]["character"] * size, len(data)) for k in ("start", "end"))
        data = data[:first] + e["newText"].encode(units) + data[last:]
    return data.decode(units)


def fixes_in_any_text():
    """Fixes, one and all, of texts with wide characters before and on the line, tabs, other line ends, a mark of byte order; of what was never saved."""
    right = source().replace("m![K % 16]>()\n        .contract_outer", "m![K % 16]>() /* é */\n        .contract_outer")
    dressed = right.replace("\n    ", "\n\t").replace(".collect", "/* 🦀 zwölf 𝄞 漢 */ .collect").replace("axes!", "/* 🦀🦀 */\naxes!", 1)
    check(dressed != right and dressed.count("🦀") > 2, "nothing was put in")
    for text in (dressed, dressed.replace("\n", "\r\n"), "\ufeff" + dressed, "\ufeff" + dressed.replace("\n", "\r\n")):
        wrong = text.replace("m![N, K / 16], m![K % 16]", "m![N, K / 8], m![K % 8]", 1)
        for encoding, units in (("utf-16", "utf-16-le"), ("utf-8", "utf-8")):
            with Server(encodings=[encoding]) as s:
                check(s.open(text) == [], "a right text", ascii(text[:9]))
                found = s.change({"text": wrong})
                check([d["code"] for d in found] == ["E-COLLECT-FLIT"], found)
                ask = {"textDocument": {"uri": URI}, "range": found[0]["range"]}
                for context in ({"diagnostics": found}, {"diagnostics": [], "only": ["source.fixAll"]}):
                    actions = s.ask("textDocument/codeAction", {**ask, "context": context})
                    check(len(actions) == 1, actions)
                    got = edited(wrong, actions[0]["edit"]["changes"][URI], units)
                    check(got == text, encoding, ascii(text[:9]), context, ascii(got))


def comments_that_hide():
    """A comment outside of all functions that opens or closes another one, or stands in a text in quotes, is no change of a comment alone."""
    rest = source().replace("K = 32", "Q = 32", 1)
    for before, after in (("/*\n//\naxes![K = 64];\n// */\naxes![K = 32];\n", "/*\n// */ //\naxes![K = 64];\n// */\naxes![K = 32];\n"),
                          ("//\n//\naxes![K = 64];\n// */\naxes![K = 32];\n", "/*\n//\naxes![K = 64];\n// */\naxes![K = 32];\n"),
                          ("//\naxes![K = 32];\n", "// a\n\n// b\naxes![K = 32];\n"), ("//\naxes![K = 32];\n", "\naxes![K = 64];\n")):
        with Server() as s, Server() as other:
            s.open(before + rest)
            s.change({"text": before + rest + " "})  # what is known of the kernels
            got, wanted = s.change({"text": after + rest + " "}), other.open(after + rest + " ")
            check(got == wanted, repr(after), [d["message"] for d in got], "and not", [d["message"] for d in wanted])


def modules():
    """A module's file: its errors under its own name, the editor's text before the disk's, names lead into it."""
    kernel = "use shapes::*;\nmod shapes;\nfn f(x: SwitchTensor<i8, m![1], m![1], m![1], m![A], m![B]>) -> CollectTensor<i8, m![1], m![1], m![1], m![A], m![B]> {\n    x.collect()\n}\n"
    with tempfile.TemporaryDirectory() as folder, Server() as s:
        outer, inner = (f"file://{folder}/{name}.vm" for name in ("kernel", "shapes"))
        with open(os.path.join(folder, "shapes.vm"), "w", encoding="utf-8") as f:
            f.write("axes![A = 4, B = 32];\n")
        check(s.open(kernel, outer) == [], "kernel with its module")
        check(s.at("definition", *place(kernel, "A]"), uri=outer) == {"uri": inner, "range": span("axes![A", "A")}, "an axis of a module")
        # A module alone would say that it has no kernel; here it belongs to one.
        s.notes.clear()
        check(s.open("axes![A = 4, B = 16];\n", inner) == [], "the module")
        found = s.diagnostics(outer)
        check([d["code"] for d in found] == ["E-COLLECT-PACKET"] or [d["code"] for d in found] == ["E-COLLECT-FLIT"], found)
        s.notes.clear()
        found = s.change({"text": "axes![A = 4, b = 32];\n"}, uri=inner)
        check([d["code"] for d in found] == ["E-AXIS-NAME"], found)
        related = [r for d in s.diagnostics(outer) for r in d["relatedInformation"]]
        check(all(r["location"]["uri"] in (outer, inner) for r in related), related)


def related_information():
    text = "axes![A = 4, A = 5];\n"
    with Server() as s:
        found = [d for d in s.open(text) if d["code"] == "E-AXIS-DUP"]
        check(found and found[0]["relatedInformation"][0]["location"] == {"uri": URI, "range": span(text, "A")}, found)


def protocol():
    with Server() as s:
        s.ask("textDocument/typeDefinition", {}, error=-32601)
        s.ask("no/such", None, error=-32601)
        s.ask("initialize", {"capabilities": {}}, error=-32600)
        s.tell("$/cancelRequest", {"id": 1})
        s.tell("no/such/notification", {"x": 1})
        for params in (None, [], {}, 3, {"textDocument": 3}, {"textDocument": {"uri": 7}}, {"textDocument": {"uri": "file:///none"}, "position": {"line": 0, "character": 0}}):
            for method in ("hover", "definition", "completion", "formatting", "documentSymbol", "codeAction", "semanticTokens/full", "semanticTokens/range",
                           "inlayHint", "signatureHelp", "prepareCallHierarchy"):
                s.ask("textDocument/" + method, params, error=-32602)
            for method in ("didOpen", "didChange", "didClose", "didSave"):
                s.tell("textDocument/" + method, params)
        s.open(source())
        for position in ({"line": -1, "character": 0}, {"line": 0, "character": -5}, {"line": 1.5, "character": 0}, {"line": "0", "character": 0}, None):
            s.ask("textDocument/hover", {"textDocument": {"uri": URI}, "position": position}, error=-32602)
        for position in ({"line": 10**15, "character": 10**15}, {"line": 3, "character": 10**9}):
            s.ask("textDocument/hover", {"textDocument": {"uri": URI}, "position": position})
            s.ask("textDocument/completion", {"textDocument": {"uri": URI}, "position": position})
        # Ranges that are upside down, beyond the end, no ranges.
        for rng in (span(source(), "axes"), {"start": {"line": 9, "character": 0}, "end": {"line": 2, "character": 1}}, {"start": {"line": 10**9, "character": 0}, "end": {"line": 10**10, "character": 0}}, {}, 3):
            s.change({"range": rng, "text": "x"})
        s.change({}, {"text": 5}, {"text": "axes![A = 8];\0\u0000"})
        s.change({"text": ""})
        check(s.ask("textDocument/formatting", {"textDocument": {"uri": URI}}) == [], "an empty text")
        # Strings and numbers are ids.
        s.send({"jsonrpc": "2.0", "id": "word", "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": URI}}})
        check(s.response("word")["result"] == [], "a string as id")
        s.send({"jsonrpc": "2.0", "id": 4, "result": None})
    with Server(start=False) as s:
        s.ask("textDocument/hover", {}, error=-32002)
        s.tell("textDocument/didOpen", {"textDocument": {"uri": URI, "version": 1, "text": "axes!["}})
        s.tell("exit", None)
    with Server() as s:
        s.ask("shutdown", None)
        s.ask("textDocument/hover", {}, error=-32600)
        s.ask("shutdown", None, error=-32600)
        s.tell("exit", None)
        check(s.process.wait(30) == 0, "exit after shutdown")
        s.ended = True


def hostile_bytes():
    """What is no message is answered with an error, and the next message is read."""
    faults = [b"Content-Length: -1\r\n\r\n", b"Content-Length: 99999999999999999999999999\r\n\r\n", b"Content-Length: 1e3\r\n\r\n", b"Content-Length:\r\n\r\n",
              b"Content-Type: text\r\n\r\n", b"\r\n\r\n", b"\n\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff\xfe\x00\x00\r\n\r\n", b"Content-Length: 4294967296\r\n\r\n"]
    bodies = [b"", b"{", b"[]", b"3", b"null", b'"x"', b"{}", b'{"id":{}}', b'{"method":3,"id":1}', b'{"id":null,"method":"x"}', b"\xff\xff", b'{"a":"\xed\xa0\x80"}', b'{"a":"\\ud800"}',
              b"[" * 100000, b'[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]', b'{"jsonrpc":"2.0","id":1.5,"method":"shutdown"}']
    with Server() as s:
        for fault in faults + [b"Content-Length: %d\r\n\r\n" % len(b) + b for b in bodies]:
            s.raw(fault)
            message = s.receive()
            check(message["id"] in (None, 1) and message["error"]["code"] in (-32700, -32600), fault[:80], message)
            s.ask("no/such", None, error=-32601)
        # One byte at a time, and two at once.
        body = b'{"jsonrpc":"2.0","id":77,"method":"a"}'
        for byte in b"content-length:%d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n" % len(body) + body:
            s.raw(bytes([byte]))
        check(s.response(77)["error"]["code"] == -32601, "byte by byte")
        one = b"Content-Length: %d\r\n\r\n" % len(body) + body
        s.raw(one + one)
        s.response(77), s.response(77)
    rng = random.Random(2)
    for cut in (b"Content-Le", b"Content-Length: 10\r\n", b"Content-Length: 10\r\n\r\n{", bytes(rng.randrange(256) for _ in range(20000)), b"x" * 100000):
        with Server(start=False) as s:
            s.raw(cut)


def broken_texts():
    """Random damage of real kernels: every request is answered."""
    rng = random.Random(3)
    text = source()
    rounds = 25 * visa_tools.LONGER
    with Server() as s:
        s.open(text)
        for _ in range(rounds):
            at, cut = rng.randrange(len(text)), rng.randrange(12)
            put = rng.choice(["", "(", ")", "}", "m![", "]", "<", ".", "::", "🦀", "\0", '"', "/*", "let", "\r", "#"])
            bad = text[:at] + put + text[at + cut:]
            s.change({"text": bad})
            for _ in range(6):
                line = max(0, bad.count("\n", 0, at) + rng.randint(-1, 1))
                for method in ("hover", "definition", "completion", "signatureHelp", "prepareCallHierarchy"):
                    s.at(method, line, rng.randrange(90))
            s.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
            tokens_of(s, bad.replace("\r", "\n"), s.ask("textDocument/semanticTokens/full", {"textDocument": {"uri": URI}}))
            s.ask("textDocument/inlayHint", {"textDocument": {"uri": URI}, "range": {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}})
            s.ask("textDocument/formatting", {"textDocument": {"uri": URI}})
            s.ask("textDocument/codeAction", {"textDocument": {"uri": URI}, "range": {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}, "context": {"diagnostics": []}})


def enumerations():
    """Values of enumerations and the enumerations themselves; a name of one is no other name, even if there is such an axis."""
    def read(*parts):
        with open(os.path.join(visa_tools.SOURCE, *parts), encoding="utf-8") as file:
            return file.read()

    text = read("examples", "matmul.vm")
    with Server() as s:
        s.open(text)
        member, whole = s.hover(text, "LaneMode::Interleaved", len("LaneMode::") + 1), s.hover(text, "LaneMode", 1)
        check("LaneMode::Interleaved" in member and "enum LaneMode" in whole and "- `Sequential`" in whole, member + whole)
        check(s.labels(text, "Interleaved", 1) >= {"Interleaved", "Sequential"}, s.labels(text, "Interleaved", 1))
        named = text.replace("axes![", "axes![Interleaved = 7, ", 1)
        s.change({"text": named})
        shown = s.hover(named, "LaneMode::Interleaved", len("LaneMode::") + 1)
        check("LaneMode::Interleaved" in shown and "7 elements" not in shown, shown)
        check(not s.at("definition", *place(named, "LaneMode::Interleaved", len("LaneMode::") + 1)), "a value of an enumeration is no axis")
        for file, needle, told in (("reshape-two-ways.vm", "SwitchConfig::Broadcast1 {", "slice1: .., slice0: .."), ("vector.vm", "LogicBinaryOpI32::BitXor", "bit by bit")):
            other = read("test", "cases", file)
            s.change({"text": other})
            check(told in s.hover(other, needle, needle.index("::") + 3), s.hover(other, needle, needle.index("::") + 3))


def main():
    failed = 0
    sessions = [a_day_at_work, enumerations, derived, half_written, characters, fixes_in_any_text, comments_that_hide, modules, related_information, protocol, hostile_bytes, broken_texts]
    for session in sessions:
        try:
            session()
            if "-v" in sys.argv:
                print("ok   ", session.__name__)
        except (Fault, ValueError, BrokenPipeError) as fault:
            failed += 1
            print("FAIL ", session.__name__, "line", fault.__traceback__.tb_lineno, str(fault)[:2000])
            trace = fault.__traceback__
            while trace:
                print("      ", os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
                trace = trace.tb_next
    print(f"{len(sessions) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
