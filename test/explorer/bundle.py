#!/usr/bin/env python3
"""The page in libvisa/explorer/bundle is what page/build.mjs made of the sources that are there now: sums of both, without npm.

Where the packages are installed (page/node_modules), the page is built anew and has to come out the same. The lock file names no host."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

HERE = os.path.join(visa_tools.SOURCE, "libvisa", "explorer")
BUILD = "run `npm ci --ignore-scripts && node build.mjs` in libvisa/explorer/page"


def sums(folder):
    with open(os.path.join(folder, "bundle", "sums.txt"), encoding="utf-8") as file:
        return {name: told for told, name in (line.split() for line in file)}


def main():
    faults, told = [], sums(HERE)
    page = os.path.join(HERE, "page")
    for name, value in told.items():
        path = os.path.join(HERE, name)
        if not os.path.exists(path):
            faults.append(f"{name} is missing: {BUILD}")
        elif hashlib.sha256(open(path, "rb").read()).hexdigest() != value:
            faults.append(f"{name} has changed since the page was built: {BUILD}")
    there = {"page/src/" + name for name in os.listdir(os.path.join(page, "src")) if name.endswith((".js", ".jsx"))}
    there |= {"page/" + name for name in ("build.mjs", "package.json", "package-lock.json", "index.html", "icon.svg", "style.css")}
    there |= {"bundle/" + name for name in os.listdir(os.path.join(HERE, "bundle")) if name != "sums.txt"}
    faults += [f"{name} is in no sum: {BUILD}" for name in sorted(there - set(told))]
    with open(os.path.join(page, "package-lock.json"), encoding="utf-8") as file:
        lock = file.read()
    faults += [f"package-lock.json has {word}" for word in re.findall(r'"resolved"|https?://\S+', lock)]
    if "integrity" not in lock:
        faults.append("package-lock.json has no sums of its packages")
    if os.path.isdir(os.path.join(page, "node_modules")) and shutil.which("node"):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(page, os.path.join(folder, "page"), symlinks=True)
            os.mkdir(os.path.join(folder, "bundle"))
            subprocess.run(["node", "build.mjs"], cwd=os.path.join(folder, "page"), check=True)
            if sums(folder) != told:
                faults.append(f"the page built from these sources is another one: {BUILD}")
    print("\n".join(faults + [f"{len(told)} files, {len(faults)} faults"]))
    sys.exit(bool(faults))


main()
