"""The device functions of published snapshots, and what their public tests say of each.

A snapshot is a directory with crates; a crate is a directory with src/lib.rs. A device function is what `#[device(..)]` stands in front of;
a macro_rules! that writes some is expanded, so that what it makes counts as well. A function is negative when a public test of its name
expects a panic, or when it stands in a module `negative`; every other one is positive. Nothing here asks visac."""
import collections
import glob
import os
import re

# path: "module::module::name"; expected: the text that the test expects of the refusal, "" where none is published
Function = collections.namedtuple("Function", "snapshot crate path file negative expected")

TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|r?"(?:[^"\\]|\\.)*"|'[A-Za-z_]\w*(?!')|\$?[A-Za-z_]\w*|\d[\w.]*|::|=>|\S""", re.S)
CLOSE = {"(": ")", "[": "]", "{": "}"}


def tokens_of(text):
    return [t for t in TOKEN.findall(text) if not t.startswith(("//", "/*"))]


def closing(tokens, at):
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] in CLOSE) - (tokens[i] in CLOSE.values())
        if depth == 0:
            return i
    return len(tokens) - 1


def split_commas(tokens):
    parts, depth = [[]], 0
    for t in tokens:
        depth += (t in CLOSE) - (t in CLOSE.values())
        if t == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(t)
    return [p for p in parts if p]


def macros_of(tokens):
    """name: (its parameters' names, its body) of macros with one rule."""
    found = {}
    for i in range(len(tokens) - 3):
        if tokens[i] == "macro_rules" and tokens[i + 1] == "!" and tokens[i + 3] in CLOSE:
            pattern_end = closing(tokens, i + 4)
            body = pattern_end + 2 + (tokens[pattern_end + 1] == "=" and tokens[pattern_end + 2] == ">")
            parameters = [p[0] for p in split_commas(tokens[i + 5:pattern_end])]
            found[tokens[i + 2]] = parameters, tokens[body + 1:closing(tokens, body)]
    return found


def device_functions(tokens, macros, path):
    """The paths of the device functions among the items; modules and macros are looked into."""
    i, device = 0, False
    while i < len(tokens):
        t = tokens[i]
        following = tokens[i + 1:i + 3]
        if t == "#" and following[:1] == ["["]:
            device = device or following[1:] == ["device"]
            i = closing(tokens, i + 1)
        elif t == "macro_rules":
            i = closing(tokens, i + 3)
        elif t == "mod" and following[1:] == ["{"]:
            end = closing(tokens, i + 2)
            yield from device_functions(tokens[i + 3:end], macros, [*path, following[0]])
            i = end
        elif t == "fn":
            if device:
                yield "::".join([*path, following[0]])
            device = False
            while i < len(tokens) and tokens[i] not in "{;":
                i = closing(tokens, i) + 1 if tokens[i] in "([" else i + 1
            i = closing(tokens, i) if i < len(tokens) and tokens[i] == "{" else i
        elif t in macros and following[:1] == ["!"]:
            parameters, body = macros[t]
            end = closing(tokens, i + 2)
            given = dict(zip(parameters, split_commas(tokens[i + 3:end])))
            yield from device_functions([u for b in body for u in given.get(b, [b])], macros, path)
            i = end
        elif t in CLOSE:
            i = closing(tokens, i)
        i += 1


def panics(crate):
    """By device function: of each test that launches it the text that it must panic with, None where it must pass."""
    found = {}
    for path in glob.glob(os.path.join(crate, "tests", "**", "*.rs"), recursive=True):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for test in re.split(r"#\[tokio::test\]|#\[test\]", text)[1:]:
            name = re.search(r"\bfn (\$?\w+)", test)
            caught = "catch_unwind" in test and "is_err()" in test
            panic = re.search(r'should_panic(?:\(\s*expected = "((?:[^"\\]|\\.)*)"\s*\))?', test[:name.start()])
            launched = re.search(r"launch\(\s*([\w:]+)\s*,", test)
            if launched:
                found.setdefault(launched.group(1).split("::")[-1], []).append(panic.group(1) or "" if panic else "" if caught else None)
    return found


def crate_functions(snapshot, crate):
    base = os.path.join(crate, "src")
    tests = panics(crate)
    for path in sorted(glob.glob(os.path.join(base, "**", "*.rs"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            tokens = tokens_of(file.read())
        modules = os.path.relpath(path, base)[:-3].split(os.sep)
        modules = modules[:-1] if modules[-1] in ("mod", "lib") else modules
        for name in device_functions(tokens, macros_of(tokens), modules):
            said = tests.get(name.split("::")[-1], [])
            panic = said[0] if said and None not in said else None
            yield name, path, "negative" in modules or panic is not None, panic or ""


def snapshots(root):
    """(name, directory): the root itself, or each directory in it."""
    own = glob.glob(os.path.join(root, "*", "src", "lib.rs"))
    for directory in [root] if own else sorted(d for d in glob.glob(os.path.join(root, "*")) if os.path.isdir(d)):
        yield os.path.basename(os.path.normpath(directory)), directory


def crates(directory):
    """Those that hold device functions."""
    for library in sorted(glob.glob(os.path.join(directory, "*", "src", "lib.rs"))):
        crate = os.path.dirname(os.path.dirname(library))
        if any(True for _ in crate_functions("", crate)):
            yield crate


def functions(root):
    for snapshot, directory in snapshots(root):
        for crate in crates(directory):
            for name, path, negative, expected in crate_functions(snapshot, crate):
                yield Function(snapshot, crate, name, path, negative, expected)
