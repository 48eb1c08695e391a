#!/usr/bin/env python3
"""visa-explorer from the outside: requests that it must not answer, its end, and a person's session in headless Chromium, typed and clicked.

Usage: explorer.py [--pictures FOLDER]: also writes the screenshots of docs/explorer.md."""
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools
import webdriver

MATMUL = open(os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), encoding="utf-8").read()
# What is typed: the editor indents and closes brackets by itself, so it stands on one line, without what it would close.
TYPED = ("axes![A = 8, B = 64];#[device(chip = 1)] fn typed(device: &mut Device, x: &HbmTensor<i8, m![1], m![A, B]>) -> HbmTensor<i8, m![1], m![A, B]> "
         "{ let x: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![A, B]> = x.to_dm(&mut device.tdma); x.to_hbm(&mut device.tdma) }")


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


class Server:
    """One process; leaving the `with` ends it by SIGINT, and it has to end well."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.process = subprocess.Popen([os.path.join(visa_tools.bin_dir(), "visa-explorer"), "--port=0", *self.options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=visa_tools.environment(), text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])
        return self

    def __exit__(self, kind, value, trace):
        self.process.send_signal(signal.SIGINT)
        try:
            _, said = self.process.communicate(timeout=1800)
        finally:
            self.process.kill()
        check(self.process.returncode == 0 and not said, "SIGINT: status", self.process.returncode, said)

    def ask(self, method="POST", path="/api/start", body=b"{}", **headers):
        """Status and body; a header of None is left away."""
        sent = {"Content-Type": "application/json", "Host": f"127.0.0.1:{self.port}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1800)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders()
            try:
                connection.send(body)
            except BrokenPipeError:
                pass # it was refused by its headers
            answer = connection.getresponse()
            self.headers = dict(answer.getheaders())
            return answer.status, answer.read()
        finally:
            connection.close()

    def compile(self, source, **more):
        status, body = self.ask(path="/api/compile", body=json.dumps({"source": source, "views": ["tables", "timeline", "commands", "memory", "order"], **more}).encode())
        check(status == 200, "compile:", status, body[:200])
        return json.loads(body)


def self_only(headers):
    """Does a browser keep the page, and what it gets, from other pages and their scripts?"""
    rules = dict(rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";"))
    same = [headers.get(name) for name in ("Cross-Origin-Resource-Policy", "Cross-Origin-Opener-Policy")]
    return rules["default-src"] == rules["frame-ancestors"] == "'none'" and rules["script-src"] == "'self'" and same == ["same-origin"] * 2


def who_may_ask(server):
    ours = f"127.0.0.1:{server.port}"
    for headers, expected in (({}, 200), ({"Origin": f"http://{ours}"}, 200), ({"Origin": f"http://localhost:{server.port}", "Host": f"localhost:{server.port}"}, 200),
                              ({"Host": f"evil.example:{server.port}"}, 403), ({"Host": "127.0.0.1"}, 403), ({"Host": None}, 403),
                              ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Origin": f"http://127.0.0.1:{server.port + 1}"}, 403),
                              ({"Sec_Fetch_Site": "cross-site"}, 403), ({"Content_Type": "text/plain"}, 403), ({"Content_Type": None}, 403)):
        status, body = server.ask(**headers)
        check(status == expected, headers, "gives", status, body[:80])
    for path in ("/", "/explorer.js", "/explorer.css", "/licenses.txt"):
        check(server.ask("GET", path, b"")[0] == 200, path)
        check(self_only(server.headers), path, server.headers)
    for path in ("/../CMakeLists.txt", "/etc/passwd", "/api/compile", "//", "/explorer.js/", "/%2e%2e/x"):
        check(server.ask("GET", path, b"")[0] in (400, 404), path)
    check(server.ask("GET", "/", b"", Host="evil.example")[0] == 403, "the page is given to another name")
    check(server.ask("PUT", "/", b"")[0] == 405, "PUT")
    check(server.ask(body=b" " * (1 << 20) + b"{}")[0] == 413, "a large question")
    with open("/proc/net/tcp") as file: # only this machine reaches it: listened on (0A) is 127.0.0.1
        bound = [line.split()[1] for line in file if line.split()[3] == "0A" and line.split()[1].endswith(f":{server.port:04X}")]
    check(bound == [f"0100007F:{server.port:04X}"], bound, "is listened on")


def hostile(server, rounds):
    """Bytes that are no request, sources that are no kernels, many at once: it goes on to answer."""
    rng = random.Random(28)
    for raw in (b"", b"\0" * 100, b"GET / HTTP/9.9\r\n\r\n", b"POST /api/compile HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                b"POST /api/compile HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"A" * 100000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
            try:
                s.sendall(raw)
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
            except (OSError, socket.timeout):  # the server may hang up before all is sent
                pass
    for _ in range(rounds):
        text = list(MATMUL)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(text))
            text[at] = rng.choice(["", text[at] * 2, rng.choice("{}[]<>()#%/$;:=,.01&\"'é🦀\0")])
        server.compile("".join(text), define={"M": rng.choice([0, 1, -1, 2**62, 64])})
    # sources that cost far more than their size; docs/usage.md has the limits
    deep = "axes![A = 8];\ntype T = m![" + "(" * 5000 + "A" + ")" * 5000 + "];\n"
    wide = "const N: usize = 1 << 40;\naxes![A = 8];\n#[device(chip = 1)]\nfn f(device: &mut Device, x: &HbmTensor<i8, m![1], m![A]>) {\n    for i in 0..N {\n        for j in 0..N { let y = x.view(); }\n    }\n}\n"
    many = "axes![A = 8];\n" + "".join(f"const C{i}: usize = C{i + 1} + C{i + 1};\n" for i in range(200)) + "const C200: usize = 1;\n"
    began = time.process_time()
    for source in (deep, wide, many, "m![" * 100000, "/*" * 200000, "x" * 500000):
        server.compile(source)
    check(time.process_time() - began < 60, "too slow")
    results, threads = [], []
    for _ in range(12):
        threads.append(threading.Thread(target=lambda: results.append(server.compile(MATMUL)["errors"])))
        threads[-1].start()
    for t in threads:
        t.join()
    check(results == [0] * 12, "many at once:", results)


def ends_and_faults():
    with Server() as server:
        taken = visa_tools.run(["visa-explorer", f"--port={server.port}"])
        check(taken.status == 1 and f"error[E-SERVE]: port {server.port} of 127.0.0.1 cannot be listened on".encode() in taken.err
              and b"help: another program has it: --port=0" in taken.err, taken.text())
    for words in (["--port=65536"], ["--port=x"], ["file.vm"], ["--prot=1"]):
        done = visa_tools.run(["visa-explorer"] + words)
        check(done.status == 2, words, done.text())
    check(b"--port=N" in visa_tools.run(["visa-explorer", "--help"]).out, "--help")
    with Server("--max-steps=1000") as server:
        check(server.compile(MATMUL)["gave_up"], "1000 steps were enough")


# ---- in a browser ----

COMPILED = "document.querySelector('#status')?.classList.contains('{}') && !document.querySelector('#status').dataset.waiting"


def set_source(browser, text):
    """Types over everything."""
    browser.click(".cm-content")
    browser.press("control", "a")
    browser.press("backspace")
    browser.type(text)


def source(browser):
    return browser.run("return document.querySelector('.cm-content').innerText")


def choose(browser, example):
    browser.run(f"const e = document.querySelector('#examples'); e.value = '{example}'; e.dispatchEvent(new Event('change', {{ bubbles: true }}))")


def lay_out(browser):
    browser.click("#format")
    browser.wait("document.querySelectorAll('.cm-line').length > 5", "it is laid out")
    browser.wait(COMPILED.format("good"), "and compiles")


def session(server, pictures):
    with webdriver.Browser() as b:
        b.resize(1280, 940)
        b.go(server.url)
        b.wait(COMPILED.format("good"), "the example compiles")
        b.run("document.querySelector('#theme').getAttribute('aria-label') === 'light theme' && document.querySelector('#theme').click()")
        check(b.run("return document.querySelectorAll('#upper .stage').length") == 13, "stages of matmul")
        told = visa_tools.run(["visac", os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), "--report=json"])
        cycles = json.loads(told.out)["cycles"]
        check(f"{cycles:,} cycles" in b.run("return document.querySelector('#status').textContent"), "cycles are not visac's")

        # A line and what came from it, both ways.
        b.move("#lower .bar.critical")
        lines = b.run("return document.querySelector('#lower .bar.critical').dataset.lines.split(' ').length")
        b.wait(f"document.querySelectorAll('.cm-lit').length === {lines}", "a bar lights its lines")
        b.run("[...document.querySelectorAll('.cm-line')].find((l) => l.textContent.includes('.fetch::<m![M], m![K]>')).querySelector('span').id = 'fetched'")
        b.click("#fetched")
        b.wait("[...document.querySelectorAll('#upper .stage.lit')].some((s) => s.getAttribute('aria-label') === 'fetch, line 23')", "a line lights its stage")
        b.wait("(() => { const s = document.querySelector('#upper .stage.lit').getBoundingClientRect(), v = document.querySelector('#upper').getBoundingClientRect(); return s.top >= v.top - 1 && s.top < v.bottom; })()",
               "the stage is scrolled to")
        b.move("#upper .stage.lit h3")
        if pictures:
            b.screenshot(os.path.join(pictures, "explorer.png"))

        # Every view, by the keyboard.
        b.click("#upper-tab-tables")
        for name, what in (("pictures", ".picture"), ("timeline", ".bar"), ("memory", ".block"), ("commands", "pre[data-lines]"), ("order", "pre")):
            b.press("right")
            b.wait(f"document.activeElement.id === 'upper-tab-{name}' && document.querySelector('#upper {what}')", name)
        check(b.run("return document.querySelectorAll('#upper-tab-order[aria-selected=true]').length") == 1, "the tab is not chosen")
        b.click("#upper-tab-pictures")
        walks = b.wait("document.querySelectorAll('#upper .picture').length", "pictures")
        b.wait("[...document.querySelectorAll('#upper .picture > div')].every((d) => d.shadowRoot)", "what is drawn after the page is")
        drawn = b.run("return [...document.querySelectorAll('#upper .picture > div')].filter((d) => d.shadowRoot.querySelectorAll('path').length > 3).length")
        check(walks == drawn == 7, "pictures", walks, drawn)
        b.click("#lower-tab-memory")
        b.wait("document.querySelectorAll('#lower .memory').length === 3", "HBM, DM and TRF")
        if pictures:
            b.resize(1920, 1140)
            b.click("#theme")
            b.move(".picture")
            time.sleep(0.4)
            b.screenshot(os.path.join(pictures, "explorer-dark.png"))
            b.click("#theme")
            b.resize(1280, 940)

        # A kernel is typed, then an error, whose fix is taken.
        set_source(b, TYPED)
        b.wait(COMPILED.format("good") + " && document.querySelector('#lower .memory')", "what was typed compiles")
        b.click("#upper-tab-tables")
        b.wait("document.querySelectorAll('#upper .stage').length === 2", "two stages")
        lay_out(b)
        b.click(".cm-content")
        b.press("control", "f")
        b.type("to_dm(")
        b.press("enter")
        b.press("escape")
        b.press("right") # past what was found
        b.press("left")
        b.type("m")
        b.wait(COMPILED.format("bad"), "the error is told")
        told = b.wait("document.querySelector('#problems .problem.error')?.textContent", "the diagnostic")
        check("E-METHOD" in told and "there is no method `to_dmm` on HbmTensor" in told and "did you mean `to_dm`?" in told, told)
        b.wait("document.querySelector('.cm-lintRange-error')", "the error is underlined")
        b.click("#problems .problem-head .link") # the rule
        b.wait("document.querySelector('#problems .rule')", "the rule")
        if pictures:
            b.run("document.querySelector('.cm-scroller').scrollLeft = 0")
            b.screenshot(os.path.join(pictures, "explorer-fix.png"))
        b.click("#problems button.fix")
        b.wait(COMPILED.format("good"), "the fix is right")
        check("x.to_dm(&mut" in source(b) and not b.run("return document.querySelectorAll('#problems .problem').length"), "the fix was not taken")
        b.click(".cm-content")
        b.press("control", "z")
        b.wait(COMPILED.format("bad"), "a fix can be undone")
        b.press("control", "y")
        b.wait(COMPILED.format("good"), "and done again")

        # All that is known to mend a size that does not fit.
        choose(b, "matmul")
        b.wait("document.querySelector('.cm-content').textContent.includes('fn matmul(')", "the matrix product")
        b.click(".cm-content")
        b.press("control", "f")
        b.type("K = 32")
        b.press("enter")
        b.press("escape")
        b.type("K = 33")
        b.wait(COMPILED.format("bad"), "33 is no whole number of flits")
        b.click("#fix-all")
        b.wait(COMPILED.format("good"), "all fixes together are right")
        check("K # 48 / 16" in source(b), source(b))
        set_source(b, TYPED)
        b.wait(COMPILED.format("good"), "what was typed compiles again")
        lay_out(b)

        # Another size, which the link remembers with the source.
        b.click(".menu > summary")
        b.type("A=16", "#define")
        b.wait("document.querySelector('#upper')?.textContent.includes('1,024') && !document.querySelector('#status').dataset.waiting", "16 rows of 64")
        b.click(".menu > summary")
        b.click("#lower-tab-commands")
        b.click("#share")
        b.wait("/Link copied|The link is in the address bar/.test(document.body.textContent)", "the link is there")
        link = b.wait("(() => location.hash.length > 100 && location.href)()", "a link")
        check(len(link) < 2000, "a long link", len(link))

        # A question.
        b.click("#tune")
        b.run("document.querySelector('#tune-question').select()")
        b.type("C[m, n] = sum(k) A[m, k] * B[n, k", "#tune-question")
        b.click("#tune-go")
        b.wait("document.querySelector('dialog .problem')?.textContent.includes('E-TUNE-QUESTION')", "what is no question is refused")
        b.type("]", "#tune-question")
        b.run("document.querySelector('#tune-size-k').select()")
        b.type("64", "#tune-size-k")
        b.click("#tune-go")
        b.wait("!document.querySelector('dialog').open", "a kernel is found", 60)
        b.wait(COMPILED.format("good"), "it compiles")
        check(source(b).startswith("// C[m, n] = sum(k) A[m, k] * B[n, k]"), "not the question's kernel")

        # A check: the verdict, cleared by the next key; what is too long for the page says so.
        choose(b, "matmul")
        b.wait("document.querySelector('.cm-content').textContent.includes('fn matmul(')", "the matrix product")
        b.wait(COMPILED.format("good"), "it compiles")
        b.click("#check")
        b.wait("document.querySelector('#verdict.good')?.textContent.includes('out: 256 values agree')", "the kernel agrees", 60)
        check("all 256 values proven" in b.run("return document.querySelector('#verdict').textContent"), "by algebra, too")
        b.click(".cm-content")
        b.type("x")
        b.wait("!document.querySelector('#verdict')", "a verdict is of one text")
        choose(b, "matmul_4096")
        b.wait("document.querySelector('.cm-content').textContent.includes('4096')", "the large product")
        b.wait(COMPILED.format("good"), "it compiles")
        b.click("#check")
        b.wait("document.querySelector('#verdict.so-so')?.textContent.includes('64 MiB')", "too much for the page", 60)

        # The link, followed in a window that knows nothing.
        b.go("about:blank")
        b.go(link)
        b.wait(COMPILED.format("good"), "the link's source compiles")
        check("fn typed(" in source(b) and b.run("return document.querySelector('#lower-tab-commands').ariaSelected") == "true", "the link has lost something")
        b.wait("document.querySelector('#upper').textContent.includes('1,024')", "the link has lost the size")
        b.go("about:blank")
        b.go(server.url + "#1broken")
        b.wait(COMPILED.format("good"), "a broken link gives the first example")

        # What an editor does: names to take, what is under the pointer, layout; an example.
        choose(b, "softmax")
        b.wait("document.querySelector('#lower')?.textContent.includes('cycles') && document.querySelector('.cm-content').textContent.includes('Softmax')", "the example")
        b.wait(COMPILED.format("good"), "softmax compiles")
        set_source(b, TYPED.split("x.to_dm(")[0] + "x.")
        b.wait("[...document.querySelectorAll('.cm-completionLabel')].some((l) => l.textContent === 'to_dm')", "to_dm is offered")
        b.press("escape")
        check(not b.complaints(), "the console has", b.complaints())


def main():
    pictures = sys.argv[sys.argv.index("--pictures") + 1] if "--pictures" in sys.argv else None
    ends_and_faults()
    with Server() as server:
        who_may_ask(server)
        hostile(server, visa_tools.few(40))
        if visa_tools.SLOWER > 1: # the browser sees what the other build shows it
            print("requests as expected; no browser in this build")
        elif webdriver.missing():
            print(f"requests as expected; skipped: {webdriver.missing()} is missing (apt-get install chromium chromium-driver)")
        else:
            session(server, pictures)
            print("requests and session as expected")


main()
