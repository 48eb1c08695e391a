"""Routings and request lengths for the stream programs in this folder, as token files. Usage:
  routing.py moe OUT_DIR --rows B --experts E --top K [--seed N] [--skew S]     routing.json, picks.json: K distinct experts for each row
  routing.py moe OUT_DIR --top K --counts 13,10,17,..                           the same, with so many rows for each expert
  routing.py attention OUT_DIR --requests B --regions R [--placement P] [--seed N] [--mean M]   the streams of attention.vm
  routing.py attention OUT_DIR --regions R --counts 3,1,40,..                   the same, with so many tiles of keys for each request
Prints the statistics of what it made. Experts are drawn with probabilities that fall as 1 / (rank + 1)^S, numbers of tiles from an exponential
distribution cut to 1 .. 256."""
import argparse
import json
import os
import random
import statistics


def deal(counts, top, rows, seed):
    """Rows of `top` distinct experts in which expert e occurs counts[e] times, in seeded order."""
    left, out, rng = list(counts), [], random.Random(seed)
    assert sum(counts) == rows * top and max(counts) <= rows
    for _ in range(rows):
        order = sorted(range(len(left)), key=lambda e: (-left[e], rng.random()))
        row = order[:top]
        for e in row:
            left[e] -= 1
        out.append(row)
    assert not any(left)
    rng.shuffle(out)
    return out


def draw(rows, experts, top, skew, seed):
    rng = random.Random(seed)
    rank = list(range(experts))
    rng.shuffle(rank)
    weights = [1 / (r + 1) ** skew for r in rank]
    out = []
    for _ in range(rows):
        keys = sorted(range(experts), key=lambda e: -rng.random() ** (1 / weights[e]))
        out.append(keys[:top])
    return out


def moe_tokens(rows):
    """The streams of moe_*.vm: for each row its experts, and the same one by one in the order of the stored routing weights."""
    return {"routing": [sorted(r) for r in rows], "picks": [[e] for r in rows for e in r] + ["S1"]}


def attention_tokens(tiles, regions, kind, block=16, tokens_per_tile=32):
    """The streams of attention.vm. kind: dynamic or static-interleave, or static-coarse (blocks of requests to the regions in turn)."""
    n = len(tiles)
    assert n >= regions
    place = [r // block % regions if kind == "static-coarse" else r % regions for r in range(n)]
    order = list(range(n)) if kind != "static-coarse" else sorted(range(n), key=lambda r: (sum(p == place[r] for p in place[:r]), place[r]))
    rows = {"index": order, "count": [tiles[r] for r in order], "valid": [tokens_per_tile - 1] * n, "place": [[place[r]] for r in order]}
    return {name: row + ["S1"] for name, row in rows.items()}


def write(folder, streams):
    os.makedirs(folder, exist_ok=True)
    for name, tokens in streams.items():
        with open(os.path.join(folder, name + ".json"), "w") as f:
            json.dump(tokens, f, separators=(",", ":"))
            f.write("\n")


def numbers(text):
    """Of "3,1,40", or of a file that holds them so or as a JSON list."""
    if os.path.exists(text):
        with open(text) as f:
            text = f.read()
    return [int(word) for word in text.strip().strip("[]").split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    moe = kinds.add_parser("moe")
    for flag, default in (("rows", 64), ("experts", 8), ("top", 2), ("seed", 1)):
        moe.add_argument(f"--{flag}", type=int, default=default)
    moe.add_argument("--skew", type=float, default=0.5)
    moe.add_argument("--counts", help="rows for each expert, or a file with them; --rows and --experts follow")
    moe.add_argument("out")
    attention = kinds.add_parser("attention")
    for flag, default in (("requests", 16), ("regions", 4), ("mean", 32), ("seed", 1)):
        attention.add_argument(f"--{flag}", type=int, default=default)
    attention.add_argument("--placement", choices=("dynamic", "static-interleave", "static-coarse"), default="dynamic")
    attention.add_argument("out")
    attention.add_argument("--counts", help="tiles of keys for each request, or a file with them; --requests follows")
    a = parser.parse_args()
    try:
        counts = numbers(a.counts) if a.counts else []
    except ValueError:
        parser.error(f"--counts={a.counts}: neither a file nor numbers with commas between them")
    if a.kind == "attention":
        rng = random.Random(a.seed)
        tiles = counts or [max(1, min(256, round(rng.expovariate(1 / a.mean)))) for _ in range(a.requests)]
        a.requests = len(tiles)
        if a.requests < a.regions or not 1 <= min(tiles) <= max(tiles) <= 256:
            parser.error(f"{a.requests} requests of {min(tiles)} to {max(tiles)} tiles: at least one for each of {a.regions} regions, of 1 to 256 tiles")
        write(a.out, attention_tokens(tiles, a.regions, a.placement))
        print(f"{a.requests} requests on {a.regions} regions, {a.placement}: {min(tiles)} to {max(tiles)} tiles of keys, mean {statistics.mean(tiles):.1f}, "
              f"standard deviation {statistics.pstdev(tiles):.1f}")
        return
    if counts:
        a.rows, a.experts = sum(counts) // a.top, len(counts)
        if sum(counts) % a.top or min(counts) < 0 or not 0 < max(counts) <= a.rows:
            parser.error(f"{sum(counts)} rows of experts, at most {max(counts)} of one: a whole number of rows with {a.top} distinct experts each has none such")
    rows = deal(counts, a.top, a.rows, a.seed) if counts else draw(a.rows, a.experts, a.top, a.skew, a.seed)
    counts = [sum(e in r for r in rows) for e in range(a.experts)]
    write(a.out, moe_tokens(rows))
    print(f"{a.rows} rows, {a.top} of {a.experts} experts each: {sum(c > 0 for c in counts)} experts active, "
          f"{min(counts)} to {max(counts)} rows, standard deviation {statistics.pstdev(counts):.1f}")


if __name__ == "__main__":
    main()
