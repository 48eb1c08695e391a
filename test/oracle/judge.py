"""The walkers: what visac emitted for a kernel against what the mappings mean.

Each judge takes a Spec and the kernel's JSON and returns a list of (class, text): the rules of the reference that the
tables break. `possible_*` decide for a refused kernel whether a table within the limits exists: True (the refusal is a
bug), False, or None where padding leaves addresses open (then `open_*` says what a search finds)."""
import re
from math import gcd

import nest
from meaning import MASK, MappingError, equal, final, mentioned, pair, parse, size, table
from spec import BITS

SUFFIX = re.compile(r"_\d+\b")  # what tells the axes of kernels in one file apart
DM_BYTES = 512 * 1024
SLICE_STRIDE = 4 << 20
CHIP_STRIDE = 1 << 36
CONVERSIONS = {("i4", "i32"), ("i8", "i32"), ("i16", "i32"), ("f8e4m3", "f32"), ("f8e5m2", "f32"), ("bf16", "f32"),
               ("f32", "bf16")}


class Problems(list):
    def add(self, kind, text):
        if sum(k == kind for k, _ in self) < 3:
            self.append((kind, text))


def entries_of(sequencer):
    return [(e["size"], e["stride"]) for e in sequencer["entries"]]


def check_limits(entries, bad, stride_limit=nest.STRIDE_LIMIT):
    if not 1 <= len(entries) <= nest.ENTRY_LIMIT:
        bad.add("limit", f"{len(entries)} entries")
    for n, stride in entries:
        if not 1 <= n <= nest.SIZE_LIMIT or not -stride_limit <= stride < stride_limit:
            bad.add("limit", f"entry {n} : {stride}")
    if len(entries) > 1 and any(n == 1 for n, _ in entries):
        bad.add("minimal", f"a loop of one iteration in {entries}")


def mergeable(entries):
    """The first neighbours that could be one entry, or None."""
    for (n1, s1), (n2, s2) in zip(entries, entries[1:]):
        if s1 == n2 * s2 and n1 * n2 <= nest.SIZE_LIMIT:
            return (n1, s1), (n2, s2)
    return None


EXHAUSTIVE_STEPS = 96


def check_minimal(entries, packet, bad):
    """No neighbours merge, but for those on both sides of the boundary of Time and Packet; in a short walk no nest whatever
    has fewer loops."""
    if nest.volume(entries) <= EXHAUSTIVE_STEPS:
        best, merged = nest.fewest(nest.walk(entries)), len(nest.merge(entries))
        if merged != best or len(entries) > max(best, 1) + 1:
            bad.add("minimal", f"{entries} where {best} loops do it")
    inside, at = 1, len(entries)
    while at and inside < packet:
        at -= 1
        inside *= entries[at][0]
    parts = (entries[:at], entries[at:]) if inside == packet else (entries,)
    for part in parts:
        found = mergeable(part)
        if found:
            bad.add("minimal", f"{found[0]} and {found[1]} of {entries} are one entry")


def check_printed(spec, roles, op, bad):
    """The mapping that JSON prints means what the source says."""
    for field, role in roles.items():
        printed = op["mapping"].get(field)
        try:
            if printed is None or not equal(parse(SUFFIX.sub("", printed)), spec.maps[role], spec.axes):
                bad.add("printed", f"{field} is printed as {printed}")
        except MappingError as error:
            bad.add("printed", f"{field} is printed as {printed}: {error}")


def stored(spec, role):
    """What the units hold: the Element table, dead where no index is, and the fields of the axes that it mentions. A sequencer
    knows Element only; a copy knows which unit holds what as well."""
    axes = spec.axes
    cells = final(table(spec.maps[role], axes), axes)
    if spec.kind == "fetch":
        return cells, mentioned(cells, axes)
    units = final(table(pair(spec.maps["chip"], spec.maps["cluster"], spec.maps["slice"]), axes), axes)
    return cells, mentioned(cells, axes) | mentioned(set(units), axes)


# ---------------------------------------------------------------------------------------------------------- fetch

def fetch_access(spec, packet, entries):
    """fetch_size in bytes by 11.2, or None."""
    d, d2 = BITS[spec.dtype], BITS[spec.out]
    common = gcd(packet * d, nest.run(entries) * d)
    if spec.context == "main":
        allowed = (32, 16, 8, 4, 2, 1)
    else:
        allowed = (4,) if (spec.dtype, spec.out) == ("i4", "i32") else (8,)
    for f in allowed:
        if common % (8 * f) == 0 and f * d2 <= 32 * d:
            return f
    return None


def _inside_byte(addresses, stream, step, bits):
    """Whether an access that brings live elements begins inside a byte."""
    return any(a * bits % 8 and any(code is not None for code in stream[p:p + step])
               for p, a in zip(range(0, len(addresses), step), addresses[::step]))


def judge_fetch(spec, kernel):
    bad, axes = Problems(), spec.axes
    op = kernel["ops"][0]
    sequencer = op["sequencer"]
    entries = entries_of(sequencer)
    packet = size(spec.maps["packet"], axes)
    cells, keep = stored(spec, "source" if spec.kind == "copy" else "element")
    stream = final(table(pair(spec.maps["time"], spec.maps["packet"]), axes), axes)
    check_limits(entries, bad)
    if nest.volume(entries) != len(stream):
        bad.add("volume", f"{nest.volume(entries)} positions, the stream has {len(stream)}")
        return bad
    addresses = nest.walk(entries)
    for p, (code, a) in enumerate(zip(stream, addresses)):
        if code is not None and (not 0 <= a < len(cells) or cells[a] != code & keep):
            held = axes.show(cells[a]) if 0 <= a < len(cells) else "outside"
            bad.add("walk", f"position {p} is {axes.show(code)}, address {a} holds {held}")
    check_minimal(entries, packet, bad)
    base = sequencer["base"] * 8
    if base != kernel["ports"][0]["address"] * 8:
        bad.add("base", f"base {sequencer['base']}")
    bits = spec.bits()
    if base + min(addresses) * bits < 0 or base + (max(addresses) + 1) * bits > DM_BYTES * 8:
        bad.add("range", "the walk leaves DM")
    run, access = nest.run(entries), fetch_access(spec, packet, entries)
    if sequencer["access_bytes"] != access:
        bad.add("access", f"access_bytes {sequencer['access_bytes']}, the rule gives {access}")
    if sequencer["contiguous_bytes"] * 8 != run * bits:
        bad.add("run", f"contiguous_bytes {sequencer['contiguous_bytes']}, the rule gives {run * bits / 8}")
    if sequencer["packet"] != packet:
        bad.add("packet", f"packet {sequencer['packet']}, the mapping has {packet}")
    if access and bits < 8:
        step = access * 8 // bits
        if _inside_byte(addresses, stream, step, bits):
            bad.add("nibble", "an access begins inside a byte")
    if packet * BITS[spec.out] % 64:
        bad.add("align", "the output packet is not a multiple of 8 bytes")
    if spec.dtype != spec.out and (spec.dtype, spec.out) not in CONVERSIONS:
        bad.add("cast", f"{spec.dtype} to {spec.out}")
    check_printed(spec, {"time": "time", "packet": "packet", "slice": "slice"}, op, bad)
    return bad


def wanted_fetch(spec):
    """Address that each stream position must read: an integer, None (dead), or "absent"."""
    axes = spec.axes
    cells, keep = stored(spec, "source" if spec.kind == "copy" else "element")
    place = {}
    for a, code in enumerate(cells):
        if code is not None:
            place.setdefault(code, a)
    stream = final(table(pair(spec.maps["time"], spec.maps["packet"]), axes), axes)
    return [None if code is None else place.get(code & keep, "absent") for code in stream]


def fetch_rules(spec, entries):
    packet = size(spec.maps["packet"], spec.axes)
    return (packet * BITS[spec.out] % 64 == 0 and fetch_access(spec, packet, entries) is not None
            and (spec.dtype == spec.out or (spec.dtype, spec.out) in CONVERSIONS)
            and (spec.bits() >= 8 or _whole_bytes(spec, entries, packet)))


def _whole_bytes(spec, entries, packet):
    step = fetch_access(spec, packet, entries) * 8 // spec.bits()
    stream = final(table(pair(spec.maps["time"], spec.maps["packet"]), spec.axes), spec.axes)
    return not _inside_byte(nest.walk(entries), stream, step, spec.bits())


def odd_bytes(spec):
    """A tensor of 4-bit elements that does not fill whole bytes is refused before any sequencer."""
    roles = ("element", "source", "target", "packet")
    return any(size(spec.maps[role], spec.axes) * bits % 8 for role in roles if role in spec.maps
               for bits in {spec.bits(), BITS[spec.out]})


def possible_fetch(spec):
    wanted = wanted_fetch(spec)
    if "absent" in wanted or odd_bytes(spec):
        return False
    if None in wanted:
        return None
    entries = nest.shortest(wanted)
    return bool(entries is not None and nest.fits(entries) and fetch_rules(spec, entries))


def open_fetch(spec):
    """For padded streams: "none" (no nest meets the live positions), "some" or "unknown"."""
    wanted = wanted_fetch(spec)
    found = nest.search(wanted)
    if found == "unknown":
        return "unknown"
    if found is None or not nest.fits(nest.merge(found)):
        return "none"
    return "some" if fetch_rules(spec, nest.merge(found)) else "none"


# --------------------------------------------------------------------------------------------------------- commit

def commit_kept(spec):
    """commit_in_size in bytes by 13.2."""
    axes, bits = spec.axes, BITS[spec.out]
    steps, whole = size(spec.maps["time"], axes), size(spec.maps["element"], axes)
    if whole % steps == 0 and whole // steps * bits in (64, 128, 192, 256):
        return whole // steps * bits // 8
    packet = final(table(spec.maps["packet"], axes), axes)
    live = max(i for i, code in enumerate(packet) if code is not None) + 1
    return -(-live * bits // 64) * 8


def kept_stream(spec, kept):
    """The stream positions that are written, in their order."""
    axes = spec.axes
    n = kept * 8 // BITS[spec.out]
    packet = size(spec.maps["packet"], axes)
    whole = final(table(pair(spec.maps["time"], spec.maps["packet"]), axes), axes)
    return [code for at in range(0, len(whole), packet) for code in whole[at:at + n]]


def commit_sizes(spec, kept, entries):
    """commit_size in bytes, or None where no write is legal."""
    bits = BITS[spec.out]
    common = gcd(nest.run(entries) * bits, kept * 8)
    if spec.context == "sub":
        return 8 if common % 64 == 0 else None
    return common // 8 if common in (64, 128, 192, 256) else None


def check_writes(spec, kept, entries, base, bad):
    """Every live cell once and right, padding only onto padding inside the tensor."""
    axes = spec.axes
    cells, _ = stored(spec, "element")
    written = {}
    for p, (code, a) in enumerate(zip(kept_stream(spec, kept), nest.walk(entries))):
        if not 0 <= a < len(cells):
            bad.add("walk", f"position {p} ({axes.show(code)}) goes to {a}, outside the tensor")
        elif cells[a] != code:
            bad.add("walk", f"position {p} is {axes.show(code)}, address {a} stands for {axes.show(cells[a])}")
        elif code is not None:
            written[a] = written.get(a, 0) + 1
    for a, code in enumerate(cells):
        if code is not None and written.get(a, 0) != 1:
            bad.add("cover", f"cell {a} {axes.show(code)} is written {written.get(a, 0)} times")
    bits = BITS[spec.out]
    if any(stride * bits % 64 for n, stride in nest.merge(entries)[:-1] if n > 1) or base % 8:
        bad.add("stride", f"strides of {entries} or base {base} are not multiples of 8 bytes")


def judge_commit(spec, kernel):
    bad, axes = Problems(), spec.axes
    op = [op for op in kernel["ops"] if op["op"] == "commit"][0]
    sequencer, kept, bits = op["sequencer"], op["commit"]["commit_in_bytes"], BITS[spec.out]
    entries = entries_of(sequencer)
    check_limits(entries, bad)
    if kept != commit_kept(spec):
        bad.add("kept", f"commit_in_bytes {kept}, the rule gives {commit_kept(spec)}")
    if kept not in (8, 16, 24, 32) or nest.volume(entries) != len(kept_stream(spec, kept)):
        bad.add("volume", f"{nest.volume(entries)} positions for {kept} bytes of {size(spec.maps['time'], axes)} steps")
        return bad
    check_writes(spec, kept, entries, sequencer["base"], bad)
    check_minimal(entries, kept * 8 // bits, bad)
    wide = commit_sizes(spec, kept, entries)
    if op["commit"]["commit_bytes"] != wide or sequencer["access_bytes"] != wide:
        bad.add("access", f"commit_bytes {op['commit']['commit_bytes']}, the rule gives {wide}")
    if sequencer["contiguous_bytes"] * 8 != nest.run(entries) * bits:
        bad.add("run", f"contiguous_bytes {sequencer['contiguous_bytes']}, the rule gives {nest.run(entries) * bits / 8}")
    if sequencer["packet"] * bits != kept * 8:
        bad.add("packet", f"packet {sequencer['packet']}")
    if sequencer["base"] != spec.address:
        bad.add("base", f"base {sequencer['base']}")
    check_printed(spec, {"element": "element", "slice": "slice"}, op, bad)
    return bad


def wanted_commit(spec):
    """Cell that each kept position must go to: an integer, None (dead), or "absent"; and the bytes kept."""
    kept = commit_kept(spec)
    if kept > 32:
        return ["absent"], kept
    cells, _ = stored(spec, "element")
    place = {code: a for a, code in enumerate(cells) if code is not None}
    wanted = [None if code is None else place.pop(code, "absent") for code in kept_stream(spec, kept)]
    return (wanted if not place else ["absent"]), kept


def one_wide_block(spec):
    """Whether a step owns more than a flit, of which only the front holds elements: "Commit output packet must be one of .."."""
    axes, bits = spec.axes, BITS[spec.out]
    steps, whole = size(spec.maps["time"], axes), size(spec.maps["element"], axes)
    owned = whole // steps if whole % steps == 0 else 0
    if owned * bits <= 256 or owned * bits % 64:
        return False
    packet, cells = (final(table(spec.maps[part], axes), axes) for part in ("packet", "element"))
    kept = commit_kept(spec) * 8 // bits
    return cells[:owned] == packet[:kept] + [None] * (owned - kept)


def commit_rules(spec, kept, entries):
    bits = BITS[spec.out]
    entries = nest.merge(entries)
    return (commit_sizes(spec, kept, entries) is not None and spec.address % 8 == 0
            and not any(stride * bits % 64 for _, stride in entries[:-1]) and not one_wide_block(spec)
            and size(spec.maps["packet"], spec.axes) * bits == 256)


def possible_commit(spec):
    wanted, kept = wanted_commit(spec)
    if "absent" in wanted or odd_bytes(spec):
        return False
    if None in wanted:
        return None
    entries = nest.shortest(wanted)
    return bool(entries is not None and nest.fits(entries) and commit_rules(spec, kept, entries))


def open_commit(spec):
    wanted, kept = wanted_commit(spec)
    found = nest.search(wanted)
    if found == "unknown":
        return "unknown"
    if not found or not nest.fits(nest.merge(found)) or not commit_rules(spec, kept, found):
        return "none"
    bad = Problems()
    check_writes(spec, kept, found, 0, bad)
    return "unknown" if bad else "some"


# ------------------------------------------------------------------------------------------------------------ DMA

def memory(spec, role, bits):
    """{element address: index} of all cells of a tensor, and the index of each, in the DMA's address space."""
    axes, place = spec.axes, {}
    chips = table(spec.maps["chip"], axes)
    if role == "dm":
        units = table(pair(spec.maps["chip"], spec.maps["cluster"], spec.maps["slice"]), axes)
        cells, distance = table(spec.maps["element"], axes), SLICE_STRIDE
    else:
        units, distance = chips, CHIP_STRIDE
        cells = table(spec.maps["source" if "source" in spec.maps else "target"], axes)
    live = axes.live
    for u, unit in enumerate(units):
        if unit is None:
            continue
        at = u * distance * 8 // bits
        for a, code in enumerate(cells):
            total = None if code is None else unit + code
            place[at + a] = total if live(total) else None
    return place


def dma_sides(spec):
    """Source and destination cells, and the fields of the axes that the source mentions."""
    bits = spec.bits()
    source, target = ("hbm", "dm") if spec.kind == "to_dm" else ("dm", "hbm")
    source, target = memory(spec, source, bits), memory(spec, target, bits)
    return source, target, mentioned(source.values(), spec.axes)


def judge_dma(spec, kernel):
    bad, axes, bits = Problems(), spec.axes, spec.bits()
    op = kernel["ops"][0]
    source, target, keep = dma_sides(spec)
    target_base, source_base = spec.address, kernel["ports"][0]["address"]
    written, read = {}, set()
    for command in op["dma"]:
        entries = [(e["size"], (e["source_stride"], e["destination_stride"])) for e in command["entries"]]
        packet = command["packet_bytes"]
        _dma_rules(spec, command, entries, bad)
        if packet * 8 % bits or packet < 1:
            bad.add("packet", f"packet of {packet} bytes")
            continue
        froms = nest.walk([(n, s[0]) for n, s in entries])
        tos = nest.walk([(n, s[1]) for n, s in entries])
        for f, t in zip(froms, tos):
            f = (command["source_base"] - source_base + f) * 8 // bits
            t = (command["destination_base"] - target_base + t) * 8 // bits
            for k in range(packet * 8 // bits):
                code = target.get(t + k, "outside")
                if code == "outside":
                    bad.add("outside", f"byte {(t + k) * bits // 8} is outside the destination")
                elif code is not None:
                    written[t + k] = written.get(t + k, 0) + 1
                    held = source.get(f + k, "outside")
                    if held != code & keep:
                        held = "outside" if held == "outside" else axes.show(held)
                        bad.add("walk", f"destination {t + k} is {axes.show(code)}, source {f + k} holds {held}")
                    read.add(held)
    for t, code in target.items():
        if code is not None and written.get(t, 0) != 1:
            bad.add("cover", f"destination {t} {axes.show(code)} is written {written.get(t, 0)} times")
    for code in source.values():
        if code is not None and code not in read:
            bad.add("lost", f"source {axes.show(code)} does not arrive")
    role = "element" if spec.kind == "to_dm" else "target"
    check_printed(spec, {"element": role}, op, bad)
    if len(op["dma"]) > 1 and possible_dma(spec):
        bad.add("minimal", f"{len(op['dma'])} commands where one does it")
    return bad


def _dma_rules(spec, command, entries, bad):
    n = [(size, 0) for size, _ in entries]
    check_limits(n, bad)
    if any(not -(1 << 47) <= s < 1 << 47 for _, strides in entries for s in strides):
        bad.add("limit", "a stride has more than 48 bits")
    for (_, outer), (size2, inner) in zip(entries, entries[1:]):
        if all(o == size2 * i for o, i in zip(outer, inner)):
            bad.add("minimal", f"neighbours of {entries} are one entry")
    packet = command["packet_bytes"]
    last = entries[-1]
    if last[1] == (packet, packet) and last[0] > 1 and packet * last[0] <= 4096:
        bad.add("minimal", f"packet {packet} could be {packet * last[0]}")
    if not 1 <= packet <= 4096 or command["packet"] * 8 % spec.bits():
        bad.add("packet", f"packet of {packet} bytes")
    if command["granular"]:
        if packet * 8 != spec.bits():
            bad.add("granular", f"element by element in packets of {packet} bytes")
    elif spec.kind == "to_dm" and (packet % 8 or command["destination_base"] % 8 or any(s[1] % 8 for _, s in entries)):
        bad.add("align", "a DM destination is written in parts of 8 bytes")


def possible_dma(spec):
    """Walks the live destination cells in address order: what no nest does in this order no nest does in another."""
    source, target, keep = dma_sides(spec)
    bits = spec.bits()
    place = {code: a for a, code in source.items() if code is not None}
    pairs = [(place.get(code & keep), a) for a, code in sorted(target.items()) if code is not None]
    if odd_bytes(spec) or any(f is None for f, _ in pairs) or len({f for f, _ in pairs}) < len(place):
        return False
    entries = nest.shortest(pairs)
    if entries is None:
        return None if None in source.values() or None in target.values() else False
    run = 1
    if entries and entries[-1][1] == (1, 1):
        run = entries[-1][0]
        entries = entries[:-1]
    unit = 64 if spec.kind == "to_dm" else 8
    packets = [p for p in range(1, run + 1) if run % p == 0 and p * bits % unit == 0 and p * bits <= 4096 * 8]
    if not packets or any(s[1] * bits % unit or s[0] * bits % 8 for _, s in entries):
        return None if None in source.values() or None in target.values() else False
    if packets[-1] < run:
        entries = entries + [(run // packets[-1], (0, 0))]
    needed = nest.entries_needed(entries)
    return bool(needed is not None and needed <= nest.ENTRY_LIMIT and spec.address % (unit // 8) == 0)


def open_dma(spec):
    """Walks all cells of the destination's live units in address order; the padding among them may receive anything."""
    source, target, keep = dma_sides(spec)
    bits = spec.bits()
    place = {code: a for a, code in source.items() if code is not None}
    distance = (SLICE_STRIDE if spec.kind == "to_dm" else CHIP_STRIDE) * 8 // bits
    used = {a // distance for a, code in target.items() if code is not None}
    cells = sorted((a, code) for a, code in target.items() if a // distance in used)
    wanted = [None if code is None else place.get(code & keep, "absent") for _, code in cells]
    if odd_bytes(spec) or "absent" in wanted or len({w for w in wanted if w is not None}) < len(place):
        return "none"
    found = nest.search(wanted, 300)
    if not found or found == "unknown":
        return "unknown"
    both, inside = [], 1
    for n, stride in reversed(found):
        both.append((n, (stride, cells[inside][0] - cells[0][0])))
        inside *= n
    if nest.walk([(n, s[1]) for n, s in reversed(both)]) != [a - cells[0][0] for a, _ in cells]:
        return "unknown"
    run, outer = 1, 0
    while outer < len(both) and both[outer][1] == (run, run):
        run *= both[outer][0]
        outer += 1
    rest = nest.entries_needed([(n, s[0]) for n, s in both[outer:]]) or 99
    unit = 64 if spec.kind == "to_dm" else 8
    fits = run * bits % unit == 0 and all(s[1] * bits % unit == 0 and s[0] * bits % 8 == 0 for _, s in both[outer:])
    return "some" if fits and rest <= nest.ENTRY_LIMIT else "unknown"
