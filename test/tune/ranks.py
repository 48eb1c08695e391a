#!/usr/bin/env python3
"""`mpirun -n N visac tune` answers what `visac tune` answers, with 1, 2 and 4 processes. Skips where the plugin or mpirun is absent."""
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visa_tools

PRODUCT = "C[m, n] = sum(k) A[m, k] * B[n, k]"
FILE = """axes![M = 24, N = 16, K = 64];
#[einsum("C[m, n] = sum(k) A[m, k] * B[n, k]")]
fn product();
#[einsum("y[m] = sum(n, k) W[m, n, k] * x[n, k]")]
fn second();
"""
# Such that ends when nothing better is left, such that its budget ends, with refused plans among them, a convolution, refusals, outputs.
QUESTIONS = [[PRODUCT, "-D", "m=64,n=64,k=256", "--dtype=i8"], [PRODUCT, "-D", "m=250,n=310,k=520", "--budget=1s"],
             ["C[m, n] = gelu(sum(k) A[k, m] * B[k, n] + bias[n])", "-D", "m=61,n=17,k=100", "--out=bf16", "--report"],
             ["O[y, x, f] = sum(r, s, c) I[y*2 + r, x + s, c] * W[f, r, s, c]", "-D", "y=5,x=6,r=3,s=2,c=32,f=48"],
             [PRODUCT, "-D", "m=64,n=64,k=256", "--budget=0s", "--check=numbers"], [PRODUCT, "-D", "m=8,n=8"], ["C[m, n] ="], [PRODUCT, "-D", "m=64,n=64,k=256", "--clusters=1", "--slices=64", "--chips=2", "--budget=1s"],
             [PRODUCT, "-D", "m=64,n=72,k=256", "--free=A,C", "--budget=1s"], [PRODUCT, "-D", "m=8,n=8,k=8", "--dtype=i4", "--out=f64"]]
RANKS = (1, 2, 4)
FEW = visa_tools.SLOWER > 1 and not visa_tools.LONG  # with sanitizers: what is exchanged, of each kind once


def main():
    found = visa_tools.mpi()
    if not found:
        return visa_tools.SKIPPED
    mpirun, env = found
    faults, compared = [], 0

    def said(text):
        """Errors, but for those of processes that mpirun stops because another one has ended, whose last words it may cut."""
        return len(re.findall(rb"error\[(?!E-STOPPED\])[A-Z0-9-]+\]", text))

    def compare(what, one, several):
        nonlocal compared
        compared += 1
        if (one.returncode, plain(one.stdout)) != (several.returncode, plain(several.stdout)) or said(several.stderr) != said(one.stderr):
            faults.append(f"{what}: status {several.returncode} and not {one.returncode}, or other bytes: {several.stdout[:300]} {several.stderr[:1500]}")

    def plain(text):
        """Without the line that says how long LLVM took."""
        return b"\n".join(line for line in text.split(b"\n") if not line.startswith(b"reference: built"))

    for n, question in enumerate(QUESTIONS[:1] if FEW else QUESTIONS):
        one = visa_tools.mpi_run(env, ["visac", "tune", *question])
        for ranks in (2,) if FEW else RANKS if n < 2 or visa_tools.LONG else RANKS[-1:]:
            compare(f"{ranks} processes, {question}", one, visa_tools.mpi_run(env, [mpirun, "-n", str(ranks), "visac", "tune", *question]))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "asked.vm")
        with open(path, "w", encoding="utf-8") as file:
            file.write(FILE)
        one = visa_tools.mpi_run(env, ["visac", "tune", path, "--budget=0s"])
        compare("a file", one, visa_tools.mpi_run(env, [mpirun, "-n", "3", "visac", "tune", path, "--budget=0s"]))
        compare("a file from standard input", one, visa_tools.mpi_run(env, [mpirun, "-n", "3", "visac", "tune", "-", "--budget=0s"], FILE.encode()))
        streams = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples/step")
        swiglu = ["visac", "tune", f"{streams}/swiglu.vm", "-D", "B=16", "-D", "D=32", "-D", "F=64", "--budget=1s"]
        asked = (("a stream program", [*swiglu, "--emit=json"]), ("one that stops early", [*swiglu[:-1], "--budget=0s", "--emit=json"]),
                 ("values that are named", [*swiglu, "--sweep=TM=3,5,8,16,TN=7,16,32", "--onchip-bytes=9000"]),
                 ("one without its tokens", ["visac", "tune", f"{streams}/moe_qwen.vm", "-D", "E=4", "-D", "K=2", "-D", "B=4", "-D", "D=8", "-D", "F=8", "-D", "FT=4", "--budget=0s"]),
                 ("one that does not compile", ["visac", "tune", f"{streams}/swiglu.vm", "-D", "TM=0", "--budget=0s"]),
                 ("an output of one that cannot be written", [*swiglu, "-o", "/proc/x"]))
        for what, command in asked[:1] if FEW else asked:
            one = visa_tools.mpi_run(env, command)
            for ranks in (2, 3) if what == "a stream program" else (3,):
                compare(what, one, visa_tools.mpi_run(env, [mpirun, "-n", str(ranks), *command]))
        compare("a file that is not there", visa_tools.mpi_run(env, ["visac", "tune", "no.vm"]), visa_tools.mpi_run(env, [mpirun, "-n", "2", "visac", "tune", "no.vm"]))
        env["XDG_CACHE_HOME"] = folder
        asked = ["visac", "tune", PRODUCT, "-D", "m=24,n=16,k=64", "--budget=0s"]
        one = visa_tools.mpi_run(env, asked)
        compare("kept by one process", one, visa_tools.mpi_run(env, [mpirun, "-n", "2", *asked]))
        shutil.rmtree(os.path.join(folder, "visac"))
        compare("kept by nobody", one, visa_tools.mpi_run(env, [mpirun, "-n", "2", *asked]))
        if len(os.listdir(os.path.join(folder, "visac"))) != 1:
            faults.append("several processes have kept nothing, or each something")
        compare("kept by several", one, visa_tools.mpi_run(env, [mpirun, "-n", "2", *asked]))
        compare("an output that cannot be written", visa_tools.mpi_run(env, ["visac", *asked[1:], "-o", "/proc/x"]), visa_tools.mpi_run(env, [mpirun, "-n", "2", *asked, "-o", "/proc/x"]))
    print("\n".join(faults + [f"{compared} runs, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
