"""The Switch Engine as docs/isa.md says it, for the machine over a field in Python (test/field/field_machine.py)."""


def copied(entries, slice_):
    """The slices that a slice of a custom switch copies from, ascending."""
    base, found = 0, [0]
    for e in entries:
        if e["moved"]:
            found = [a + c * e["weight"] for a in found for c in range(e["size"])]
        else:
            base += slice_ // e["div"] % e["size"] * e["weight"]
    return sorted(base + a for a in found)


def origin(topology, f, d, u):
    """(slice, step) at which the packet of slice d at step u went in."""
    s1, s0, t0 = f["slice1"], f["slice0"], f["time0"]
    two, one, zero = d // (s1 * s0), d // s0 % s1, d % s0
    at = lambda k2, k1, k0: (k2 * s1 + k1) * s0 + k0
    if topology == "Broadcast01":
        u, b = divmod(u, s0)
        u, x = divmod(u, t0)
        u, a = divmod(u, s1)
        return at(two, a, b), u * t0 + x
    if topology == "Broadcast1":
        return at(two, u % s1, zero), u // s1
    if topology == "Transpose":
        return at(two, d % s1, d // s1 % s0), u
    if topology == "InterTranspose":
        u, a = divmod(u, s1)
        t2, x = divmod(u, t0)
        return at(two, a, zero), (t2 * s1 + one) * t0 + x
    if topology == "TransposedBroadcast1":
        return at(two, d % s1, u % s0), u // s0
    return d, u


def grows(topology, f):
    return {"Broadcast01": f["slice1"] * f["slice0"], "Broadcast1": f["slice1"], "TransposedBroadcast1": f["slice0"]}.get(topology, 1)


def packets_of(here, unit, commands):
    """All elements that the source gives in a slice; None: it is not active."""
    m = here.m
    if unit not in m.gathered:
        other, source = type(here)(m, unit), commands[0]
        other.ports = {}
        if unit not in m.senders:
            m.gathered[unit] = None
        else:
            m.gathered[unit] = other.fetch(source, other.begins(commands[1:])[0]) if source["op"] == "fetch" else other.stream_in(source, "switch")[1]
    return m.gathered[unit]


def switch(here, command, _, dtype, commands):
    f, topology = command["f"], command["m"]["topology"]
    source = commands[0]["f"]
    first, me = here.unit - here.unit % SLICES, here.unit % SLICES  # noqa: F821
    size = source["packet_elements"]
    given = next(p for p in (packets_of(here, u, commands) for u in sorted(here.m.senders)) if p is not None)
    steps, snoop = len(given) // size, next((c for c in commands if c["op"] == "snoop"), None)
    froms = copied(snoop["t"], me) if snoop else []
    out = []
    for u in range(steps * (len(froms) or grows(topology, f))):
        slice_, step = (froms[u % len(froms)], u // len(froms)) if snoop else origin(topology, f, me, u)
        packets = packets_of(here, first + slice_, commands)
        out += packets[step * size:(step + 1) * size] if packets is not None else [UNKNOWN] * size  # noqa: F821
    here.packet = size
    return out, dtype


def receivers(units, command):
    return dict(units, **{f"slices_{i}": command["f"][f"out_slices_{i}"] for i in range(4)})


STAGES = {"switch": switch}
RECEIVERS = {"switch": receivers}
