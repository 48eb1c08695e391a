"""The copy of the sources that mutants are built from, its two builds, and what they know of each file.

In the copy every static library is a shared one next to the programs ($ORIGIN), so that a mutant costs one compile and one link; its
library or program then stands in a folder of hard links to all the others. Two builds: "plain", which mutants are judged in, and
"coverage", each basic block of which says that it was reached (coverage.c).
"""
import json
import os
import re
import shlex
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
LEFT_OUT = {".git", "build", "__pycache__"}
# Assertions stay on: the suite has them.
FLAGS = {"plain": "-O1", "coverage": "-O1 -g -fno-inline -fno-crossjumping -fno-tree-tail-merge -fsanitize-coverage=trace-pc"}


def run(command, cwd=None):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise SystemExit(f"$ {shlex.join(command)}\n{done.stdout.decode('utf-8', 'replace')[-4000:]}")
    return done.stdout.decode("utf-8", "replace")


def shared(text):
    """A CMakeLists.txt with shared libraries in the place of static ones, all names visible; no program is static as a whole, nothing is
    installed, and libvisa.so is the library that the programs use: the one to install would be a second file of its objects."""
    text = re.sub(r"(add_library\(\w+) STATIC", r"\1 SHARED", text)
    text = re.sub(r"^(visa_link_whole\(.*|include\(cmake/install\.cmake\))$", "", text, flags=re.M)
    text = re.sub(r"^\w+\(visa_shared\b[^)]*\)\n", "", text, flags=re.M)
    return text.replace("set(CMAKE_C_VISIBILITY_PRESET hidden)", "")


def copy(source, target):
    """Makes `target` what `source` is; files that did not change keep their times. Returns whether the list of files changed."""
    wanted = set()
    for folder, folders, names in os.walk(source):
        folders[:] = [f for f in folders if f not in LEFT_OUT]
        for name in names:
            path = os.path.join(folder, name)
            wanted.add(os.path.relpath(path, source))
            to = os.path.join(target, os.path.relpath(path, source))
            with open(path, "rb") as file:
                data = file.read()
            if name == "CMakeLists.txt":
                data = shared(data.decode()).encode()
            if os.path.exists(to):
                with open(to, "rb") as file:
                    if file.read() == data:
                        continue
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "wb") as file:
                file.write(data)
            shutil.copymode(path, to)
    for folder, _, names in os.walk(target):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, target) not in wanted and "__pycache__" not in path:
                os.remove(path)


class Build:
    def __init__(self, name, tree, folder):
        self.name, self.tree, self.folder = name, tree, folder
        self.programs = os.path.join(folder, "bin")

    def make(self, jobs):
        flags, link = FLAGS[self.name], ""
        if self.name == "coverage":
            os.makedirs(self.folder, exist_ok=True)
            traces = os.path.join(self.folder, "coverage.o")
            run(["cc", "-O2", "-fPIC", "-c", os.path.join(HERE, "coverage.c"), "-o", traces])
            link = traces
        command = ["cmake", "-G", "Ninja", "-S", self.tree, "-B", self.folder, "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                   f"-DCMAKE_C_FLAGS_RELWITHDEBINFO={flags}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
                   "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON"]
        command += [f"-DCMAKE_{kind}_LINKER_FLAGS={link} -Wl,-Bsymbolic-functions -Wl,--unresolved-symbols=ignore-in-shared-libs" for kind in ("EXE", "SHARED", "MODULE")]
        if shutil.which("ccache"):
            command.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
        run(command)
        run(["cmake", "--build", self.folder, "--", f"-j{jobs}"])

    def compilations(self):
        """source, relative to the tree -> (command line, folder, object)."""
        found = {}
        with open(os.path.join(self.folder, "compile_commands.json")) as file:
            for entry in json.load(file):
                words = shlex.split(entry["command"])
                if os.path.basename(words[0]) == "ccache":
                    words = words[1:]
                path = os.path.relpath(entry["file"], self.tree)
                if not path.startswith(".."):
                    found[path] = (words, entry["directory"], words[words.index("-o") + 1])
        return found

    def links(self):
        """object -> [(file made from it, command line)], for libraries and programs in bin."""
        text = run(["ninja", "-t", "commands"], cwd=self.folder)
        found = {}
        for line in text.splitlines():
            words = [word.replace("\\$", "$") for word in shlex.split(line.replace("&& :", "").replace(": &&", ""))]  # "\$ORIGIN"
            if "-o" not in words or "-c" in words:
                continue
            made = words[words.index("-o") + 1]
            if os.path.dirname(made) != "bin":
                continue
            for word in words:
                if word.endswith(".o") and not os.path.isabs(word):
                    found.setdefault(word, []).append((made, words))
        return found

    def tests(self):
        """ctest's tests: name -> (command, environment, folder)."""
        listed = json.loads(run(["ctest", "--show-only=json-v1"], cwd=self.folder))
        found = {}
        for test in listed["tests"]:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
            found[test["name"]] = (test.get("command", []), environment)
        return found
