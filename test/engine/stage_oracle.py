"""What enumerations of a stage (test/engine/*/oracle.py) have in common: a call as text with its mappings, cell by cell, and the run that compares what
visac says of many calls with what is possible.

map(i) is meaning.py's; nothing else is known of mappings."""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import meaning  # noqa: E402
from harness import check_all, compile_all  # noqa: E402
import visa_tools  # noqa: E402

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Call:
    """A stage between mappings, which are text. Who inherits has `source(name)`: a module of that name with the call in a function. `kind` is what
    accepted ones are counted as."""
    kind = "accepted"

    def __init__(self, sizes, maps):
        self.sizes, self.maps = dict(sizes), list(maps)

    def trees(self):
        trees = [meaning.parse(m) for m in self.maps]
        for tree in trees:
            meaning.check(tree, meaning.Axes(self.sizes))
        return trees

    def positions(self):
        """The size of each mapping; None where one of them is no mapping."""
        try:
            return [meaning.size(tree, meaning.Axes(self.sizes)) for tree in self.trees()]
        except meaning.MappingError:
            return None

    def tables(self):
        """The axes, and map(0), map(1), .. of each mapping."""
        axes = meaning.Axes(self.sizes)
        return axes, [meaning.table(tree, axes) for tree in self.trees()]


class Maker:
    """Gives new axes names."""

    def __init__(self, rng):
        self.rng, self.sizes = rng, {}

    def axis(self, size):
        turn, letter = divmod(len(self.sizes), len(LETTERS))
        name = LETTERS[letter] + (str(turn) if turn else "")
        self.sizes[name] = size
        return name


def live(axes, a, b):
    """The cell at the sum of two indices; None: padding."""
    return a + b if a is not None and b is not None and axes.live(a + b) else None


def run(draw, count, most=200):
    """`draw(rng)`: a call, and whether it is possible (None: visac may say either). Possible ones must be accepted and give what the reference gives, in
    numbers and algebra; the others must be refused. COUNT and SEED are the script's arguments; `most` calls are compiled at once. The exit status."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else visa_tools.few(count)
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    seen, ids, failures = {}, {}, 0
    for first in range(0, count, most):
        drawn = [draw(rng) for _ in range(min(most, count - first))]
        sources, good = [call.source(i) for i, (call, _) in enumerate(drawn)], []
        for i, ((call, able), said) in enumerate(zip(drawn, compile_all(sources))):
            if said.kind not in ("accepted", "refused") or able not in (None, said.kind == "accepted"):
                failures += 1
                print(f"{said.kind}, but {'possible' if able else 'impossible'}: {said.message}\n{sources[i]}")
                continue
            if said.kind == "accepted":
                good.append(i)
            else:
                ids[said.ids[0]] = ids.get(said.ids[0], 0) + 1
            what = call.kind if said.kind == "accepted" else "refused"
            seen[what] = seen.get(what, 0) + 1
        wrong = check_all([sources[i] for i in good], good)
        failures += len(wrong)
        for i, words in wrong.items():
            print(f"does not check: {words}\n{sources[i]}")
    print(", ".join(f"{n} {what}" for what, n in sorted(seen.items())) + "; refused: " + ", ".join(f"{n} {i}" for i, n in sorted(ids.items())))
    print(f"{sum(seen.values())} passed, {failures} failed")
    return 1 if failures else 0
