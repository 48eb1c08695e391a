#!/usr/bin/env bash
# Every C source is as clang-format writes it (.clang-format: one line length, one way to break a line).
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v clang-format >/dev/null || { echo "skipped: clang-format is missing: apt-get install clang-format"; exit 77; }
mapfile -d '' files < <(find bench codegen examples frontend include ir lsp libvisa passes runtime support target test tools -name '*.[ch]' -print0 | sort -z)
clang-format --dry-run -Werror "${files[@]}"
echo "${#files[@]} files are as clang-format writes them"
