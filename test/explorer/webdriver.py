"""A browser by the WebDriver protocol: chromedriver and what a test of a page needs of it, and no more."""
import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"enter": "\ue007", "escape": "\ue00c", "control": "\ue009", "backspace": "\ue003", "end": "\ue010", "home": "\ue011", "left": "\ue012", "up": "\ue013",
        "right": "\ue014", "down": "\ue015", "tab": "\ue004"}


def missing():
    """The first program that is needed and not there, or None."""
    return next((name for name in ("chromedriver", "chromium") if not shutil.which(name)), None)


class Refused(Exception):
    pass


class Browser:
    """One headless Chromium with a profile of its own; leaving the `with` ends both processes."""

    def __init__(self, width=1280, height=800):
        self.size = width, height

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        port = next(int(line.rstrip(".\n").split()[-1]) for line in self.driver.stdout if "started successfully on port" in line)
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={self.profile.name}",
                     f"--window-size={self.size[0]},{self.size[1]}", "--force-color-profile=srgb", "--disable-background-networking", "--no-first-run"]
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
                                                   "goog:loggingPrefs": {"browser": "ALL"}}}}
        try:
            self.base += "/session/" + self.ask("POST", "/session", wanted)["sessionId"]
        except BaseException:
            self.driver.kill()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.ask("DELETE", "", None)
        finally:
            self.driver.terminate()
            self.driver.wait(20)
            self.driver.stdout.close()
            self.profile.cleanup()

    def ask(self, method, path, body):
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method), timeout=1800) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise Refused(json.load(error)["value"]["message"].split("\n")[0]) from None

    def go(self, url):
        self.ask("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, css):
        return self.ask("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        """As a person does: what is covered or not to be seen cannot be clicked."""
        self.ask("POST", f"/element/{self.find(css)}/click", {})

    def type(self, text, css=None):
        """Keys, one after the other, to an element or to what has the focus."""
        if css:
            self.ask("POST", f"/element/{self.find(css)}/value", {"text": text})
            return
        self.keys([("keyDown", c) if down else ("keyUp", c) for c in text for down in (True, False)])

    def keys(self, actions):
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [{"type": kind, "value": value} for kind, value in actions]}]})

    def press(self, *names):
        """Held together: press("control", "a")."""
        values = [KEYS.get(name, name) for name in names]
        self.keys([("keyDown", v) for v in values] + [("keyUp", v) for v in reversed(values)])

    def move(self, css):
        """The pointer to the middle of an element."""
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": {ELEMENT: self.find(css)}}]}]})

    def wait(self, script, what, seconds=300, arguments=()):
        """Until `return SCRIPT` is true; its value."""
        last = time.monotonic() + seconds
        while True:
            value = self.run("return " + script, *arguments)
            if value:
                return value
            if time.monotonic() > last:
                raise AssertionError(f"not seen within {seconds} s: {what}")
            time.sleep(0.05)

    def resize(self, width, height):
        self.ask("POST", "/window/rect", {"width": width, "height": height})

    def complaints(self):
        """What the page wrote into the console as an error."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("GET", "/screenshot", None)))
