#!/usr/bin/env bash
# Every C source is as clang-format writes it (.clang-format: one line length, one way to break a line), and sorts by order_sort.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v clang-format >/dev/null || { echo "skipped: clang-format is missing: apt-get install clang-format"; exit 77; }
mapfile -d '' files < <(find bench codegen examples frontend include ir lsp libvisa passes runtime support target test tools -name '*.[ch]' -print0 | sort -z)
if grep -n '\bqsort(' $(printf '%s\n' "${files[@]}" | grep -v -e '^test/' -e '^bench/'); then
    echo "qsort may change the order of what is equal: order_sort (support/order.h) keeps it"
    exit 1
fi
clang-format --dry-run -Werror "${files[@]}"
echo "${#files[@]} files are as clang-format writes them"
