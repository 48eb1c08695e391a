#!/usr/bin/env python3
"""Every recursion in the programs has a bound that somebody wrote down.

Usage: recursion.py [--print]

The compiler says who calls whom (gcc -fcallgraph-info, without optimisation, so that nothing is inlined). Functions that count their
levels with budget_enter (support/budget.h) cannot recurse without an end; what still goes round in a circle without one of them has to be
a row of test/recursion.txt, with the reason why its depth has a bound. A new recursion, and a row of one that no longer exists, fail.
--print shows the circles as rows without reasons."""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import visa_tools

COUNTS = "budget_enter"
ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recursion.txt")
NODE = re.compile(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"')


def compile_commands():
    path = os.path.join(visa_tools.bin_dir(), "..", "compile_commands.json")
    if not os.path.exists(path):
        print(f"skipped: no {path}")
        sys.exit(visa_tools.SKIPPED)
    commands = []
    for entry in json.load(open(path)):
        file = os.path.realpath(entry["file"])
        relative = os.path.relpath(file, visa_tools.SOURCE)
        if not relative.startswith(("test/", "bench/", "examples/")):
            commands.append((file, entry["directory"], shlex.split(entry["command"])))
    return commands


def call_graph(job):
    """The text of the call graph of one file; None: the compiler does not give one."""
    folder, number, (file, directory, command) = job
    output = os.path.join(folder, f"{number}.o")
    words = command[1:] if os.path.basename(command[0]) == "ccache" else command
    kept = [w for i, w in enumerate(words) if not w.startswith(("-fsanitize", "-O", "-o")) and w != "-c" and (i == 0 or words[i - 1] != "-o")]
    subprocess.run(kept + ["-O0", "-g0", "-w", "-S", "-fcallgraph-info", "-o", output], cwd=directory, stderr=subprocess.PIPE, check=False)
    path = os.path.join(folder, f"{number}.ci")
    return open(path).read() if os.path.exists(path) else None


def short(title):
    """frontend/scope.c:find_in of a function of one file, mapping_axes of one that others call."""
    file, _, name = title.rpartition(":")
    if not file:
        return name
    inside = os.path.relpath(file, visa_tools.SOURCE)
    return f"{os.path.basename(file) if inside.startswith(('..', 'build')) else inside}:{name}"


def edges_of(texts):
    edges = {}
    for text in texts:
        for source, target in NODE.findall(text):
            edges.setdefault(short(source), set()).add(short(target))
    return edges


def circles(edges):
    """Tarjan's strongly connected components that have an edge inside, without a recursion of their own."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for root in sorted(edges):
        work = [(root, None)] if root not in index else []
        while work:
            node, targets = work.pop()
            if targets is None:
                index[node] = low[node] = len(index)
                stack.append(node)
                on.add(node)
                targets = iter(sorted(edges.get(node, ())))
            for target in targets:
                if target not in index:
                    work += [(node, targets), (target, None)]
                    break
                if target in on:
                    low[node] = min(low[node], index[target])
            else:
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    part, stack = stack[at:], stack[:at]
                    on.difference_update(part)
                    if len(part) > 1 or node in edges.get(node, ()):
                        found.append(frozenset(part))
    return found


def uncounted(edges):
    counting = {f for f, targets in edges.items() if COUNTS in targets}
    return circles({f: targets - counting for f, targets in edges.items() if f not in counting})


def rows():
    """A line is FUNCTION...: REASON, or a continuation that begins with a blank."""
    text = re.sub(r"\n[ \t]+", " ", open(ROWS).read())
    return {frozenset(line.split(": ", 1)[0].split()): line.split(": ", 1)[1] for line in text.splitlines() if line and not line.startswith("#")}


def main():
    commands = compile_commands()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(call_graph, [(folder, i, c) for i, c in enumerate(commands)]))
    if not any(texts):
        print("skipped: the compiler has no -fcallgraph-info")
        sys.exit(visa_tools.SKIPPED)
    missing = [c[0] for c, text in zip(commands, texts) if text is None]
    edges = edges_of(text for text in texts if text)
    found = uncounted(edges)
    if "--print" in sys.argv:
        for circle in sorted(found, key=sorted):
            print(" ".join(sorted(circle)) + ": ")
        return
    known = rows()
    faults = [f"{file}: no call graph" for file in missing]
    faults += [f"a recursion without a bound: {' '.join(sorted(c))}; count its levels (support/budget.h), or give it a row in test/recursion.txt" for c in found if c not in known]
    faults += [f"test/recursion.txt has a row of what is no recursion any more: {' '.join(sorted(c))}" for c in known if c not in found]
    counting = sum(COUNTS in targets for targets in edges.values())
    if len(edges) < 1000 or counting < 5:
        faults.append(f"the call graph has {len(edges)} functions, {counting} of which count: it is not read correctly")
    for fault in faults:
        print(fault)
    print(f"{len(edges)} functions, {counting} count their levels, {len(found)} other recursions, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
