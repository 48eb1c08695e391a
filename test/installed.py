#!/usr/bin/env python3
"""What `cmake --install` puts down works from where it is: programs, the library as C and CMake programs find it, manual pages, completions.

The installation is moved first, so that nothing may know where it was made. What the library exports is what its headers declare.
Usage: installed.py BUILD (environment VISA_SOURCE)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import visa_tools

SOURCE = os.environ["VISA_SOURCE"]
PROGRAMS = ("visac", "visa-run", "visa-objdump", "visa-lsp", "visa-explorer")
failures = []


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, **options)
    if done.returncode:
        failures.append(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, what):
    if not condition:
        failures.append(what)


def exported(library):
    """{name: version} of the symbols that a shared library defines."""
    found = re.findall(r" T (\w+)@@(\w+)", run(["nm", "-D", "--defined-only", library]))
    return dict(found)


def declared(prefix):
    names = set()
    for header in ("visa.h", "visa_editor.h", "visa_run.h"):
        with open(os.path.join(prefix, "include", header), encoding="utf-8") as f:
            names |= set(re.findall(r"^VISA_API [^;(]*?(\w+)\(", f.read(), re.M))
    return names


def bash_completes(page, program, words):
    script = (f"source {page}; compopt() {{ :; }}; COMP_WORDS=({' '.join(words)}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
              f"_{program.replace('-', '_')}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return run(["bash", "-c", script]).split()


def check_pages(prefix):
    for program in PROGRAMS:
        page = os.path.join(prefix, "share/man/man1", program + ".1")
        with open(page, encoding="utf-8") as f:
            text = f.read()
        offered = set(re.findall(r"^  (--[a-z-]+)", run([os.path.join(prefix, "bin", program), "--help"]), re.M))
        expect(offered <= {"--" + n.replace("\\-", "-") for n in re.findall(r"\\fB\\-\\-([a-z\\-]+)\\fR", text)},
               f"{page} lacks an option of --help")
        if shutil.which("groff"):
            warned = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z", page], capture_output=True, text=True, timeout=1800, check=False).stderr
            expect(not warned, f"{page}: {warned}")
        completion = os.path.join(prefix, "share/bash-completion/completions", program)
        expect("--help" in bash_completes(completion, program, [program, "--he"]), f"{completion}: --he is not completed")
        for shell, place in (("zsh", "zsh/vendor-completions/_" + program), ("fish", f"fish/vendor_completions.d/{program}.fish")):
            path = os.path.join(prefix, "share", place)
            expect(os.path.exists(path), f"{path} is missing")
            if shutil.which(shell):
                run([shell, "-n", path])
    found = bash_completes(os.path.join(prefix, "share/bash-completion/completions/visac"), "visac", ["visac", "--order", "=", "s"])
    expect(found == ["source"], f"visac --order=s completes to {found}")


def check_library(prefix, folder):
    library = os.path.join(prefix, "lib", "libvisa.so")
    symbols = exported(library)
    expect(set(symbols) == declared(prefix), f"declared and not exported, or the other way: {sorted(set(symbols) ^ declared(prefix))}")
    with open(os.path.join(SOURCE, "libvisa/visa.map"), encoding="utf-8") as file:
        versions = set(re.findall(r"^(VISA_\d+) \{", file.read(), re.M))
    expect(set(symbols.values()) == versions, f"symbol versions {sorted(set(symbols.values()))}, libvisa/visa.map has {sorted(versions)}")
    program, source = os.path.join(folder, "run"), os.path.join(SOURCE, "examples/host/run.c")
    search = {**os.environ, "PKG_CONFIG_PATH": os.path.join(prefix, "lib/pkgconfig")}
    flags = run(["pkg-config", "--cflags", "--libs", "visa"], env=search).split()
    run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", source, *flags, "-o", program])
    out = run([program, os.path.join(SOURCE, "examples/matmul.vm")], env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(library)})
    expect("256 values agree" in out and "all 256 values proven" in out and " cycles" in out, f"run.c prints: {out}")
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as f:
        f.write("cmake_minimum_required(VERSION 3.25)\nproject(host C)\nfind_package(visa 0.1 REQUIRED)\n"
                f"add_executable(host {source})\ntarget_link_libraries(host visa::visa)\n")
    run(["cmake", "-S", folder, "-B", os.path.join(folder, "host"), f"-DCMAKE_PREFIX_PATH={prefix}"])
    run(["cmake", "--build", os.path.join(folder, "host")])
    expect("256 values agree" in run([os.path.join(folder, "host/host"), os.path.join(SOURCE, "examples/matmul.vm")]), "the CMake program")
    plus = os.path.join(folder, "headers.cc")
    with open(plus, "w", encoding="utf-8") as f:
        f.write("#include <visa.h>\n#include <visa_editor.h>\n#include <visa_run.h>\nint main() { return visa_version() == nullptr; }\n")
    if shutil.which("c++"):
        run(["c++", "-Wall", "-Wextra", "-Werror", plus, *flags, "-o", os.path.join(folder, "plus")])


def main():
    with tempfile.TemporaryDirectory() as folder:
        made, prefix = os.path.join(folder, "made"), os.path.join(folder, "moved")
        run(["cmake", "--install", sys.argv[1], "--prefix", made])
        os.rename(made, prefix)
        bare = {"PATH": "/usr/bin:/bin"}
        out = run([os.path.join(prefix, "bin/visac"), os.path.join(SOURCE, "examples/matmul.vm"), "--check"], env=bare)
        expect("256 values agree" in out, f"the installed visac --check prints: {out}")
        check_pages(prefix)
        check_library(prefix, folder)
    return visa_tools.ended(failures, "installed: " + ("failed" if failures else "passed"))


if __name__ == "__main__":
    sys.exit(main())
