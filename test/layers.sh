#!/usr/bin/env bash
# Who includes whom: the table of docs/architecture.md ("Folders"), read from there and held against every #include.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Rows "| `ir/` | ... | `target` `support` |": the last column is what the folder may include from, itself apart.
allowed=$(awk -F'|' '/^\| `[a-z\/]+\/` \|/ { folder = $2; may = $4; gsub(/[` ]|\/ *$/, "", folder); sub(/\/$/, "", folder); gsub(/[`]/, " ", may); print folder, may }' docs/architecture.md)

included() { # included FOLDER: "file folder-of-what-it-includes header" per #include "..."
    find "$1" -maxdepth 1 -name '*.[chly]' -exec grep -H '^#include "' {} + |
        sed -E 's|^([^:]*):#include "(.*)/([^/"]*)"|\1 \2 \2/\3|'
}

checked=0 faults=0
while read -r folder may; do
    [[ -d $folder ]] || { echo "docs/architecture.md names $folder/, which is not there"; faults=$((faults + 1)); continue; }
    while read -r file from header; do
        checked=$((checked + 1))
        case " $folder $may " in
            *" $from "* | *" $header "*) ;;
            *) echo "$file includes $header; $folder/ may use only: $may"; faults=$((faults + 1)) ;;
        esac
    done < <(included "$folder")
done <<<"$allowed"
printf '%d passed, %d failed\n' $((checked - faults)) "$faults"
[[ $faults -eq 0 && $checked -gt 100 ]]
