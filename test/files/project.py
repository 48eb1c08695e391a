#!/usr/bin/env python3
"""visac init: a project that builds and agrees, by make and by the two commands of its README; never over what is there, whatever that is."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import visa_tools

FILES = [".gitignore", "Makefile", "README.md", "kernel.vm"]
faults, count = [], 0


def expect(condition, what):
    global count
    count += 1
    if not condition:
        faults.append(str(what))


def begins(folder):
    done = visa_tools.run(["visac", "init", "new project"], cwd=folder)
    expect(done.status == 0 and b"make -C" in done.out, done.text())
    new = os.path.join(folder, "new project")
    expect(sorted(os.listdir(new)) == FILES, os.listdir(new))
    made = subprocess.run(["make", "-C", new, "all", "check"], env=visa_tools.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(made.returncode == 0 and b"values agree" in made.stdout and b"values proven" in made.stdout, made.stdout)
    expect(os.path.exists(os.path.join(new, "kernel.bin")), "make wrote the binary")
    for axes in (["-D", "M=96"], ["-D", "K=64", "-D", "M=1"], ["-D", "N=4"]): # it is to be built on
        done = visa_tools.run(["visac", "kernel.vm", "--check=numbers", *axes], cwd=new)
        expect(done.status == 0, f"{axes}: {done.text()}")
    done = visa_tools.run(["visac", "kernel.vm", "--format-check", "-Wall"], cwd=new)
    expect(done.status == 0, f"the kernel is in its canonical layout: {done.text()}")
    text = open(os.path.join(new, "kernel.vm")).read().replace("<bf16", "<bf61", 1)
    with open(os.path.join(new, "kernel.vm"), "w") as file:
        file.write(text)
    made = subprocess.run(["make", "-C", new, "check"], env=visa_tools.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(made.returncode != 0, "make check fails with a kernel that is wrong")


def keeps(folder):
    there = os.path.join(folder, "there")
    os.mkdir(there)
    with open(os.path.join(there, "notes.txt"), "w") as file:
        file.write("mine\n")
    expect(visa_tools.run(["visac", "init"], cwd=there).status == 0, "a folder with other files, by its place")
    expect(sorted(os.listdir(there)) == sorted(FILES + ["notes.txt"]), os.listdir(there))
    for name in FILES:
        mixed = os.path.join(folder, "mixed" + name)
        os.mkdir(mixed)
        os.symlink("nowhere", os.path.join(mixed, name)) # a link to nothing is something
        done = visa_tools.run(["visac", "init", mixed])
        expect(done.status == 1 and b"error[E-PROJECT-EXISTS]" in done.err and name.encode() in done.err, done.text())
        expect(os.listdir(mixed) == [name] and os.readlink(os.path.join(mixed, name)) == "nowhere", f"{mixed} is as it was")


def refuses(folder):
    with open(os.path.join(folder, "file"), "w") as file:
        file.write("x")
    for where in ("file", "absent/deep", "file/deep"):
        done = visa_tools.run(["visac", "init", where], cwd=folder)
        expect(done.status == 1 and b"error[E-FILE-WRITE]" in done.err, f"{where}: {done.text()}")
    for words in (["init", "a", "b"], ["init", "a", "--check"], ["-o", "x", "init"]):
        expect(visa_tools.run(["visac", *words], cwd=folder).status == 2, words)
    expect(not os.path.exists(os.path.join(folder, "a")), "a command line that is wrong makes nothing")


def main():
    with tempfile.TemporaryDirectory() as folder:
        begins(folder)
        keeps(folder)
        refuses(folder)
    print("\n".join(faults + [f"{count} expectations, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
