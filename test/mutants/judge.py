"""One mutant: planted, compiled, compared with the original's object, linked, and given to the tests that reach its line."""
import hashlib
import os
import shutil
import subprocess

import coverage
import units

COMPILER_SECONDS = 300


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Judge:
    """What a worker knows. Everything it writes is in its own folder, whose bin has hard links to all programs and libraries."""

    def __init__(self, build, folder, listed, seconds, lines, tests_seconds, grace):
        self.build, self.folder = build, folder
        self.units = {unit.name: unit for unit in listed}
        self.seconds, self.lines, self.tests_seconds, self.grace = seconds, lines, tests_seconds, grace
        self.compilations, self.links = build.compilations(), build.links()
        self.originals = {}  # source -> digest of its object, compiled in this folder
        self.known_lines = {}  # source -> test -> how many of its lines it reaches
        self.sound = {}  # unit -> whether it passes with the original programs
        self.bin = os.path.join(folder, "bin")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(self.bin)
        for name in sorted(os.listdir(build.programs)):
            os.link(os.path.join(build.programs, name), os.path.join(self.bin, name))

    def compile(self, source, text):
        """The object's path, or None where the compiler refuses."""
        words, folder, made = self.compilations[source]
        path, out = os.path.join(self.folder, os.path.basename(source)), os.path.join(self.folder, "mutant.o")
        with open(path, "w") as file:
            file.write(text)
        words = [out if word == made else path if os.path.basename(word) == os.path.basename(source) and os.path.isabs(word) else word for word in words]
        words += ["-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-iquote", os.path.dirname(os.path.join(self.build.tree, source))]
        try:
            done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=COMPILER_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None
        return out if done.returncode == 0 else None

    def link(self, source):
        """Puts what the mutant's object belongs to in the place of the originals, and returns their names."""
        made, names = self.compilations[source][2], []
        for target, words in self.links[made]:
            name = os.path.basename(target)
            out = os.path.join(self.folder, name)
            words = [out if word == target else os.path.join(self.folder, "mutant.o") if word == made else word for word in words]
            subprocess.run(words, cwd=self.build.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            os.replace(out, os.path.join(self.bin, name))  # never through the hard link
            names.append(name)
        return names

    def restore(self, names):
        for name in names:
            os.unlink(os.path.join(self.bin, name))
            os.link(os.path.join(self.build.programs, name), os.path.join(self.bin, name))

    def limit(self, name):
        return self.grace + 10 * self.seconds[name]

    def passes_unchanged(self, name):
        if name not in self.sound:
            self.sound[name] = units.execute(self.units[name], self.build, self.build.programs, self.limit(name))[0]
        return self.sound[name]

    def tests_of(self, source, line):
        """First what costs least for each line of the file that it reaches: who knows a file well finds what is wrong in it. A line that stands
        in no table (a declaration, the rest of a long statement) has the tests of the nearest one above."""
        known = self.lines.get(source, {})
        if source not in self.known_lines:
            counts = self.known_lines[source] = {}
            for tests in known.values():
                for name in tests:
                    counts[name] = counts.get(name, 0) + 1
        counts = self.known_lines[source]
        for nearest in range(line, max(0, line - 12), -1):
            if nearest in known:
                return sorted((name for name in known[nearest] if name in self.units), key=lambda name: (self.seconds[name] / counts[name], name))
        return []

    def judge(self, source, mutant, text, passed):
        """A dictionary with the verdict: refused, same, caught, survived or unreached. `passed`: tests that it survived before."""
        if source not in self.compilations or self.compilations[source][2] not in self.links:
            return {"verdict": "not built"}
        if source not in self.originals:
            made = self.compile(source, text)
            self.originals[source] = digest(made)
        made = self.compile(source, mutant.apply(text))
        if not made:
            return {"verdict": "refused"}
        if digest(made) == self.originals[source]:
            return {"verdict": "same"}
        tests = self.tests_of(source, mutant.line)
        if not tests:
            return {"verdict": "unreached"}
        names = self.link(source)
        spent, ran, passed = 0.0, 0, list(passed)
        try:
            for test in [test for test in tests if test not in passed]:
                if ran and spent + self.seconds[test] > self.tests_seconds:
                    break
                good, seconds, why = units.execute(self.units[test], self.build, self.bin, self.limit(test))
                spent, ran = spent + seconds, ran + 1
                if why.startswith("status 127") and "shared librar" in why:
                    raise RuntimeError(f"{source}: {why}")  # ours, not the mutant's
                if good:
                    passed.append(test)
                elif self.passes_unchanged(test):
                    return {"verdict": "caught", "by": test, "why": why.splitlines()[0] if why else "", "ran": ran, "seconds": round(spent, 1)}
        finally:
            self.restore(names)
        return {"verdict": "survived", "passed": passed, "of": len(tests), "seconds": round(spent, 1), "budget": self.tests_seconds}


_judge = None


def begin(build, folder, listed, map_path, tests_seconds, grace):
    """In each worker, once."""
    global _judge
    seconds, _, lines = coverage.load(map_path)
    _judge = Judge(build, os.path.join(folder, f"worker-{os.getpid()}"), [u for u in listed if u.name in seconds], seconds, lines, tests_seconds, grace)


def work(job):
    source, mutant, text, passed = job
    return _judge.judge(source, mutant, text, passed)
