"""What the language server's dearest answers take: every question about documents that cost too much, asked right after a change."""
import json
import pathlib
import subprocess
import time

from measure import ROOT, Missing, spread
from report import at_most, table

TITLE = "answers of visa-lsp about documents that cost too much: its processor time from a change to the answer after it"
QUESTIONS = ROOT / "test/frontend/answers.json"
URI = "file:///nowhere/answers.vm"


def text_of(document):
    def turn(index):
        return document["item"].replace("%d", str(index)).replace("%e", str(index - 1))
    return document["before"] + "".join(turn(i) for i in range(1, document["count"] + 1)) + document["after"]


class Server:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.clock = (~self.process.pid << 3) | 2  # Linux: the processor time of another process, all its threads
        self.asked = 0
        self.ask("initialize", {"capabilities": {"general": {"positionEncodings": ["utf-16"]}}})

    def now_ms(self):
        return time.clock_gettime_ns(self.clock) / 1e6

    def put(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method, params):
        self.put({"method": method, "params": params})

    def receive(self):
        size = 0
        while (line := self.process.stdout.readline()) != b"\r\n":
            if not line:
                raise Missing("visa-lsp ended")
            size = int(line.split(b":")[1]) if line.startswith(b"Content-Length") else size
        return json.loads(self.process.stdout.read(size))

    def ask(self, method, params):
        self.asked += 1
        self.put({"id": self.asked, "method": method, "params": params})
        while (answer := self.receive()).get("id") != self.asked:
            pass
        return answer

    def end(self):
        self.process.kill()
        self.process.communicate()


def places_of(text):
    lines = text.split("\n")
    longest = max(range(len(lines)), key=lambda i: len(lines[i]))
    return [(0, 3), (max(len(lines) - 3, 0), 5), (longest, len(lines[longest]) // 2)]


def dearest(program, text, methods):
    """The longest of all answers about a text that has just changed: (ms, method, given up)."""
    server, most = Server(program), (0.0, "", False)
    try:
        server.tell("textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "vm", "version": 1, "text": text}})
        for method, at_place in ((row["method"], row["at"]) for row in methods):
            for line, column in places_of(text)[:3 if at_place else 1]:
                server.ask("textDocument/hover", {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}})  # nothing is under way
                begin, at = server.now_ms(), {"line": line, "character": column}
                server.tell("textDocument/didChange", {"textDocument": {"uri": URI, "version": server.asked},
                                                       "contentChanges": [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": " "}]})
                answer = server.ask(f"textDocument/{method}", {"textDocument": {"uri": URI}, "position": at, "range": {"start": at, "end": at},
                                                               "context": {"diagnostics": []}, "options": {}, "newName": "renamed"})
                most = max(most, (server.now_ms() - begin, method, "error" in answer))
    finally:
        server.end()
    return most


def run(bench, section):
    program, questions = bench.program("visa-lsp"), json.loads(pathlib.Path(QUESTIONS).read_text(encoding="utf-8"))
    rows, medians = [], []
    for document in questions["documents"][::bench.count(1, 6, 15)]:
        text = text_of(document)
        tries = [dearest(program, text, questions["methods"]) for _ in range(bench.count(5, 2))]
        taken = spread([ms for ms, _, _ in tries])
        medians.append(taken["median"])
        method = max(tries)[1]
        rows.append([document["name"], f"{len(text.encode()) / 1e6:.1f}", taken, method, "given up" if max(tries)[2] else "answered"])
    section["tables"].append(table("documents", ["document", "MB", "processor ms, the dearest answer", "of", "and it was"], rows))
    section["targets"] = [at_most("from a change to the answer, the dearest document", 200, max(medians), "ms")]
