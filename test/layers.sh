#!/usr/bin/env bash
# Who includes whom: the table of docs/architecture.md ("Folders"), read from there and held against every #include.
# A folder without a row is a room of the nearest one above it that has a row.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Rows "| `ir/` | ... | `target` `support` |": the last column is what the folder may include from, itself apart.
allowed=$(awk -F'|' '/^\| `[a-z\/]+\/` \|/ { folder = $2; may = $4; gsub(/[` ]|\/ *$/, "", folder); sub(/\/$/, "", folder); gsub(/[`]/, " ", may); print folder, may }' docs/architecture.md)

faults=0
while read -r folder may; do
    [[ -d $folder ]] || { echo "docs/architecture.md names $folder/, which is not there"; faults=$((faults + 1)); }
done <<<"$allowed"

# "file header" of every #include "..." below the folders of the table, generated files apart.
includes=$(find $(awk '{ sub(/\/.*/, "", $1); print $1 }' <<<"$allowed" | sort -u) -name '*.[chly]' -exec grep -H '^#include "' {} + |
    sed -E 's|^([^:]*):#include "(.*)"|\1 \2|' | sort)
awk -v before="$faults" '
    function row_of(path) { # the nearest folder above it with a row; what has none is itself
        for (folder = path; sub(/\/[^\/]*$/, "", folder);)
            if (folder in may) return folder
        sub(/\/[^\/]*$/, "", path)
        return path
    }
    NR == FNR { folder = $1; $1 = ""; may[folder] = $0 " "; next }
    {
        from = row_of($1); to = row_of($2); checked++
        if (from in may && from != to && index(may[from], " " to " ") == 0 && index(may[from], " " $2 " ") == 0) {
            printf "%s includes %s; %s/ may use only:%s\n", $1, $2, from, may[from]; faults++
        }
    }
    END { printf "%d passed, %d failed\n", checked - faults, faults + before; exit faults + before > 0 || checked <= 100 }
' <(printf '%s\n' "$allowed") <(printf '%s\n' "$includes")
