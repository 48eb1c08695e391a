#!/usr/bin/env bash
# The programs from the outside: what a stranger types, with the exit status and the files that are left.
#     test/cli_smoke.sh FOLDER-OF-PROGRAMS
set -u
programs=$(cd "$1" && pwd) || exit 1
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
PATH=$programs:$PATH
matmul=$source/examples/matmul.vm
checks=0 failures=0

# check WHAT COMMAND...: the command must succeed.
check() {
    local what=$1
    shift
    checks=$((checks + 1))
    if "$@" >check.log 2>&1; then
        printf 'ok    %s\n' "$what"
    else
        failures=$((failures + 1))
        printf 'FAIL  %s\n' "$what"
        sed 's/^/      /' check.log
    fi
}

# status N COMMAND...: it must end with exactly that status; its output stays in said.log.
status() {
    local wanted=$1 got=0
    shift
    "$@" >said.log 2>&1 </dev/null || got=$?
    cat said.log
    printf '(status %d, wanted %d)\n' "$got" "$wanted"
    [[ $got -eq $wanted ]]
}

# says TEXT N COMMAND...: the same, and it must say that.
says() {
    local text=$1
    shift
    status "$@" && grep -qF -- "$text" said.log
}

refused_without_output() {
    rm -f refused.bin
    status 1 visac "$1" -o refused.bin && [[ ! -e refused.bin && -s said.log ]]
}

# ---- a compile: the same bytes each time, an ELF file, without LLVM ----

check "matmul.vm compiles" status 0 visac "$matmul" -o first.bin
(mkdir -p elsewhere && cd elsewhere && visac -o ../second.bin - <"$matmul")
check "twice the same bytes, whatever the name and folder of the source" cmp first.bin second.bin

elf_sections() {
    readelf -SW first.bin >sections 2>complaints && cat sections complaints && [[ ! -s complaints ]] &&
        grep -q '\.visa\.main\.matmul' sections && grep -q '\.visa\.ports\.matmul' sections && grep -q '\.symtab' sections
}
check "readelf -S shows the sections and complains of nothing" elf_sections

libraries_of() { LD_DEBUG=libs "$@" 2>&1 >/dev/null </dev/null | grep -o 'calling init: .*' || true; }
compile_loads_no_llvm() { # a program that is linked whole (not under sanitizers) has no dynamic linker that could say anything
    libraries_of visac "$matmul" -o third.bin >libraries
    cat libraries
    if readelf -lW "$(command -v visac)" | grep -q INTERP; then grep -q 'libc\.so' libraries; else [[ ! -s libraries ]]; fi &&
        ! grep -q -e LLVM -e visa_reference libraries
}
check "a compile loads neither libLLVM nor the reference generator" compile_loads_no_llvm
check_loads_reference() { libraries_of visac "$matmul" --check | grep visa_reference; } # which has LLVM inside, or loads it
check "a check loads the reference generator (so the line above can fail)" check_loads_reference
alone() { mkdir -p alone && cp "$(command -v visac)" alone/ && alone/visac "$matmul" "$@"; }
check "visac without visac-plugins compiles" status 0 alone -o alone/matmul.bin
check "but does not check, and says why" says "error[E-PLUGINS]: visac-plugins cannot be started" 1 alone --check
piped_check() { visac - --check=numbers <"$matmul" | grep '256 values agree'; }
check "a source from a pipe is there for visac-plugins" piped_check
check "a full output is a fault of visac-plugins, not a signal" says "error[E-FILE-WRITE]" 1 bash -c 'visac "$0" --emit=llvm -o - >/dev/full' "$matmul"

# ---- a run: agreement, and the disagreement after one stride was changed ----

check "the binary's run agrees with the reference" says "256 values agree" 0 visa-run first.bin --check
change_stride() { # the fetch loop over M: size 32 (stored as 31), stride 32 elements -> 31
    local at
    at=$(grep -obUaP '\x1f\x00\x00\x00\x20\x00\x00\x00' first.bin | cut -d: -f1)
    [[ "$at" =~ ^[0-9]+$ ]] && cp first.bin changed.bin &&
        printf '\x1f' | dd of=changed.bin bs=1 seek=$((at + 4)) conv=notrunc status=none
}
check "one stride is changed by hand" change_stride
check "then the check finds it and names the first output that differs" says "out: 248 of 256 values differ, first at M=1, N=0" 3 visa-run changed.bin --check
check "seeds change the inputs" says "256 values agree" 0 visa-run first.bin --check --seed=7
same_output() { visa-run first.bin --output a.npy && visa-run first.bin --output b.npy && cmp a.npy b.npy; }
check "the same seed gives the same output" same_output
other_output() { visa-run first.bin --output b.npy --seed=2 && ! cmp -s a.npy b.npy; }
check "another seed another one" other_output

# ---- what is wrong: status, message, no file ----

sed 's/K = 32/K = 33/' "$matmul" >wrong.vm
check "a mapping that does not divide is refused" refused_without_output wrong.vm
sed 's/m!\[M, K\]/m![M, Q]/' "$matmul" >wrong.vm
check "an unknown axis is refused" refused_without_output wrong.vm
sed 's/let a/let let a/' "$matmul" >wrong.vm
check "a syntax error is refused" refused_without_output wrong.vm
check "an empty file is refused" refused_without_output /dev/null
check "a missing source is the input's fault" says "absent.vm" 1 visac absent.vm -o refused.bin
check "an unknown letter is told, and not the program" says "unknown option -x" 2 visac -xo "$matmul"
check "an unknown option is the command line's" says "--help" 2 visac --no-such "$matmul"
check "an unknown transformation too" says "it is one of dynamic-tiling" 2 visac --pass=no-such "$matmul"
check "a value of an option too" says "did you mean --color=always" 2 visac --color=alway "$matmul"
check "numbers do not wrap" says "takes a number, not \`-1\`" 2 visac --seed=-1 "$matmul"
check "nor are they cut" says "takes a number" 2 visa-run --seed=18446744073709551616 first.bin
check "a sweep keeps the other values" says "got 16 from m![N]" 1 visac --sweep=M=8 -D N=16 "$matmul"
check "a swept constant has no other value" says "has a value from -D" 2 visac --sweep=M=8,16 -D M=32 "$matmul"
check "a sweep stands alone" says "--sweep" 2 visac --sweep=M=8 --check "$matmul"
check "an axis takes one value" says "has one value" 1 visac -D M=1,2 "$matmul"
check "no file is the command line's" says "--help" 2 visa-run
head -c 700 first.bin >short.bin
for program in visa-run visa-objdump; do
    check "$program refuses half a binary" says "error" 1 "$program" short.bin
done
check "visa-lsp takes no file" says "--help" 2 visa-lsp "$matmul"
check "an ugly source is not in its canonical layout" status 1 visac --format-check wrong.vm
visac "$matmul" --format -o pretty.vm
check "what --format writes is" status 0 visac --format-check pretty.vm
check "--format stands alone" says "--help" 2 visac --format --check "$matmul"
sed 's/let a/let let a/' "$matmul" >wrong.vm
check "--upgrade stands alone" says "--help" 2 visac --upgrade --check "$matmul"
visac "$matmul" --upgrade -o upgraded.vm
check "what --upgrade writes is the newest release" status 0 visac --dialect=0.9 upgraded.vm -o upgraded.bin
check "--upgrade may write over its source" status 0 visac --upgrade upgraded.vm -o upgraded.vm
refuses_layout() { status 1 visac --format wrong.vm -o refused.vm && [[ ! -e refused.vm && -s said.log ]]; }
check "a source that cannot be read is not formatted" refuses_layout
cp "$matmul" source.bin && ln source.bin link.vm
for command in "visac source.bin" "visac source.bin -o link.vm" "visac source.bin --trace=link.vm" "visac source.bin --sweep=M=8,16 -o source.bin" "visa-objdump source.bin -o link.vm"; do
    check "$command: what is read is not written over" says "replace the input" 2 $command
done
check "and is as it was" cmp "$matmul" source.bin
check "a check writes nothing" status 0 visac source.bin --check
check "--format may" status 0 visac --format source.bin -o source.bin
transposed() {
    visa-run first.bin --output c.raw --output 'out[N,M]=t.npy' && tail -c 512 t.npy >t.raw || return 1
    for m in 0 7 31; do
        cmp <(od -An -v -tx2 -w2 -j $((2 * 8 * m)) -N 16 c.raw) <(for n in 0 1 2 3 4 5 6 7; do od -An -v -tx2 -j $((2 * (32 * n + m))) -N 2 t.raw; done) || return 1
    done
}
check "an output's axes are in the order that is asked for" transposed
check "what is for stream programs is refused for kernels" says "stream programs" 1 visa-run first.bin --sizes=sizes.json
check "a tensor file that is missing" says "absent.npy" 1 visa-run first.bin --input a=absent.npy --output refused.npy
check "leaves no output" test ! -e refused.npy

# ---- help and packages ----

for program in visac visa-run visa-objdump visa-lsp visa-explorer; do
    check "$program --help" status 0 "$program" --help
    check "$program --version" status 0 "$program" --version
done
options_explained() {
    local program option lacking=0
    for program in visac visa-run visa-objdump visa-lsp visa-explorer; do
        for option in $("$program" --help | grep -oE '^  --?[A-Za-z-]+'); do
            grep -qF -e "\`$option" -e ", \`$option" "$source/docs/usage.md" || { echo "docs/usage.md lacks $program $option"; lacking=1; }
        done
    done
    return $lacking
}
check "docs/usage.md explains every option of --help" options_explained
told_when_full() {
    local program option told lacking=0
    for program in visac visa-run visa-objdump visa-lsp; do
        for option in --help --version; do
            told=$("$program" $option 2>&1 >/dev/full)
            [[ $? -eq 1 && $told == "$program: error[E-FILE-WRITE]: cannot write standard output: "* ]] || { echo "$program $option: $told"; lacking=1; }
        done
    done
    return $lacking
}
check "a full disk under --help and --version is told" told_when_full
packages_explained() {
    local package
    for package in $(awk '$1 !~ /^#/ { print $1 }' "$source/cmake/packages.txt"); do
        grep -qF "\`$package\`" "$source/docs/dependencies.md" || { echo "docs/dependencies.md lacks $package"; return 1; }
    done
}
check "docs/dependencies.md explains every package" packages_explained

printf '%d passed, %d failed\n' $((checks - failures)) "$failures"
[[ $failures -eq 0 ]]
