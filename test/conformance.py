#!/usr/bin/env python3
"""The conformance vectors of the reference material, each as a kernel of its own.

Every vector of the April dialect whose operation visac has becomes a small .vm file. What is compared: whether it is
accepted, with which class of diagnostic it is refused, the wording that a source states, and the figures (flits,
reg_read_size, tree depth, buffer, access sizes). Sequencer entries are compared as the addresses they walk, because
visac's tables are minimal and a source's need not be. Usage: conformance.py [-v] [ID ...]"""
import json
import math
import os
import re
import struct
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import visa_tools
import mapping_oracle as oracle

UNITS = "m![1], m![1], m![1]"
DEVICE_UNITS = "m![1], m![1 # 2], m![1 # 256]"
BITS = {"i4": 4, "i8": 8, "i16": 16, "i32": 32, "f8e4m3": 8, "f8e5m2": 8, "bf16": 16, "f32": 32, "f16": 16}

# Vectors that visac answers differently on purpose. The reason is printed with the count.
KNOWN = {
    "write-axis-reorder": "a commit packet of one element would need strides below 8 bytes; the vector describes the "
                          "pure sequencer",
    "fetch-batch-1": "the corrected packet has 4 bytes, which breaks the 8-byte rule (the vector says so itself)",
    "window-dilation2": "the formula of the window gives 31 places, the source prints 32 (contraction reference, C16)",
    "transpose-example-computation": "a packet of two flits is no transposed flit (contraction reference, C15)",
    "hbm-to-dm-identity": "eight chips where a machine has four, and 4 bytes in each slice's DM where a write takes 8 (the vector says that itself)",
    "parse-trailing-comma-april": "one grammar reads every release, and 0.6 ends a list in a comma (dialect of 0.6, section 5)",
    "cast-pair-f32-f16": "f16 is refused (contraction reference, C23)",
}

# The error classes of the sources and the diagnostics that stand for them.
CLASSES = {
    "collect-output-not-flit": "E-COLLECT-FLIT", "collect-packet-mismatch": "E-COLLECT-PACKET",
    "collect-time-mismatch": "E-COLLECT-TIME", "row-size": "E-TRF-ROWS", "trf-capacity": "E-TRF-CAPACITY",
    "row-exceeds-time": "E-TRF-ROW-TIME", "row-not-dividing-time": "E-TRF-ROW-TIME", "trf-row-mismatch": "E-TRF-ROW",
    "trf-element-mismatch": "E-TRF-ELEMENT", "align-packet-size": "E-ALIGN-WIDTH",
    "align-packet-mismatch": "E-ALIGN-PACKET", "align-time-not-dividing": "E-ALIGN-TIME",
    "align-time-reordered": "E-ALIGN-ORDER", "align-tiling-not-innermost": "E-ALIGN-TILING",
    "tiling-not-in-trf": "E-ALIGN-TILING-TRF", "contract-too-wide": "E-CONTRACT-WIDE",
    "contract-not-pow2": "E-CONTRACT-POWER", "not-a-contraction": "E-CONTRACT",
    "accumulate-packet-too-wide": "E-CONTRACT-WIDE", "accumulate-out-packet-size": "E-ACCUMULATE-PACKET",
    "accumulate-out-packet-mismatch": "E-ACCUMULATE-PACKET", "accumulate-out-time-mismatch": "E-ACCUMULATE-TIME",
    "accumulate-time-reordered": "E-ACCUMULATE-ORDER", "accumulate-padding-mismatch": "E-ACCUMULATE-PADDING",
    "accumulate-buffer": "E-ACCUMULATE-BUFFER", "cast-input-not-flit": "E-CAST-FLIT",
    "cast-output-not-flit": "E-CAST-FLIT", "cast-packet-mismatch": "E-CAST-PACKET",
}


class NotExpressible(Exception):
    pass


class Disagreement(Exception):
    pass


def m(text):
    return f"m![{text}]"


def axes_line(axes, extra=None):
    every = dict(axes, **(extra or {}))
    return "axes![" + ", ".join(f"{k} = {v}" for k, v in every.items()) + "];\n" if every else ""


def stream(kind, dtype, *parts, units=UNITS):
    return f"{kind}<{dtype}, {units}, " + ", ".join(m(p) for p in parts) + ">"


def function(parameters, result, body, name="vector"):
    listed = ", ".join(f"{n}: {t}" for n, t in parameters)
    return f"fn {name}({listed}) -> {result} {{\n    {body}\n}}\n"


def generic(*parts):
    return "::<" + ", ".join(m(p) if p != "_" else p for p in parts) + ">"


# ---- one kernel per vector ----

def kernel_collect(v):
    out = v.get("collect") or v["out"]
    return axes_line(v["axes"]) + function(
        [("input", stream("SwitchTensor", v["dtype"], v["in"]["time"], v["in"]["packet"]))],
        stream("CollectTensor", v["dtype"], out["time"], out["packet"]), "input.collect()")


def kernel_to_trf(v):
    t = v["trf"]
    return axes_line(v["axes"]) + function(
        [("input", stream("CollectTensor", v["dtype"], v["collect"]["time"], v["collect"]["packet"]))],
        stream("TrfTensor", v["dtype"], t["row"], t["element"]), f"input.to_trf(TrfAddress::{t['address']})")


def kernel_align(v):
    t, a = v["trf"], v["align"]
    return axes_line(v["axes"]) + function(
        [("input", stream("CollectTensor", v["dtype"], v["collect"]["time"], v["collect"]["packet"])),
         ("trf", "&" + stream("TrfTensor", v["dtype"], t["row"], t["element"]))],
        stream("AlignedPair", v["dtype"], t["row"], a["time"], a["packet"]),
        f"input.align{generic(a['time'], a['packet'], '_', '_')}(trf)")


def split_packet(packet, lanes, axes):
    """Time and Packet of a stream whose aligned packet of two flits is `packet`."""
    half = lanes // 2
    outer = oracle.parse(f"[{packet}] / {half}", axes)
    padding = all(outer.raw(i) is None for i in range(1, outer.size))
    return ("1" if padding else f"[{packet}] / {half}"), f"[{packet}] % {half}"


def accumulate_type(dtype):
    return "i32" if dtype in ("i4", "i8") else "f32"


def kernel_contract(v):
    lanes = 512 // BITS[v["dtype"]]
    time, packet = split_packet(v["packet"], lanes, v["axes"])
    return axes_line(v["axes"]) + function(
        [("input", stream("CollectTensor", v["dtype"], time, packet)),
         ("trf", "&" + stream("TrfTensor", v["dtype"], "1", v["packet"]))],
        stream("ContractionTensor", accumulate_type(v["dtype"]), "1", "1", v["contract"]),
        f"input.align{generic('1', v['packet'], '_', '_')}(trf).contract{generic(v['contract'])}()")


def kernel_accumulate(v):
    """bf16 operands: the vector's packet, each element a sum over lanes of a fresh axis."""
    axes, lanes = dict(v["axes"]), 32
    columns = oracle.size(v["packet"], axes)
    if lanes % columns:
        raise NotExpressible("columns do not divide 32 lanes")
    full = v["packet"]
    if lanes // columns > 1:
        axes["Summed"] = lanes // columns
        full = f"{v['packet']}, Summed"
    time, packet = split_packet(full, lanes, axes)
    a = v["accumulate"]
    return axes_line(axes) + function(
        [("input", stream("CollectTensor", "bf16", f"{v['time']}, {time}", packet)),
         ("trf", "&" + stream("TrfTensor", "bf16", v["row"], full))],
        stream("AccumulationTensor", "f32", a["time"], a["packet"]),
        f"input.align{generic(v['time'], full, '_', '_')}(trf).contract{generic(v['packet'])}()"
        f".accumulate{generic(a['time'], a['packet'])}(AccumulationKind::{a['kind']})")


def kernel_cast(v):
    return axes_line(v["axes"]) + function(
        [("input", stream("CollectTensor", v["dtype"], v["time"], v["packet"]))],
        stream("CastTensor", v["out_dtype"], v["time"], v["out_packet"]), "input.cast()")


def kernel_cast_pair(v):
    return kernel_cast({"axes": {"A": 8}, "dtype": v["dtype"], "out_dtype": v["out_dtype"], "time": "1",
                        "packet": "A", "out_packet": f"A # {v['flit_elements']}"})


def kernel_operand_pair(v):
    if v["stream"] != v["weight"]:
        raise NotExpressible("operands of two types")
    lanes = 512 // BITS[v["stream"]]
    return axes_line({"K": lanes, "M": 4, "N": 8}) + function(
        [("input", stream("CollectTensor", v["stream"], f"M, K / {lanes // 2}", f"K % {lanes // 2}")),
         ("trf", "&" + stream("TrfTensor", v["weight"], "N", "K"))],
        stream("AccumulationTensor", v["expect"]["accumulator"], "M", "N"),
        "input.align::<m![M], m![K], _, _>(trf).contract::<m![1]>()"
        ".accumulate::<m![M], m![N]>(AccumulationKind::Interleaved)")


def kernel_pipeline(v):
    t, a, acc, c = v["trf"], v["align"], v["accumulate"], v["collect"]
    first, steps = ("CollectTensor", c), ""
    if "in" in v:
        first, steps = ("FetchTensor", v["in"]), f".collect{generic(c['time'], c['packet'])}()"
    text = axes_line(v["axes"]) + function(
        [("input", stream(first[0], v["dtype"], first[1]["time"], first[1]["packet"])),
         ("trf", "&" + stream("TrfTensor", v["dtype"], t["row"], t["element"]))],
        stream("AccumulationTensor", accumulate_type(v["dtype"]), acc["time"], acc["packet"]),
        f"input{steps}.align{generic(a['time'], a['packet'], '_', '_')}(trf).contract{generic(v['contract'])}()"
        f".accumulate{generic(acc['time'], acc['packet'])}(AccumulationKind::{acc['kind']})")
    if "time" in t:
        text += function([("weights", stream("CollectTensor", v["dtype"], t["time"], t["packet"]))],
                         stream("TrfTensor", v["dtype"], t["row"], t["element"]),
                         f"weights.to_trf(TrfAddress::{t['address']})", "store")
    return text


def kernel_fetch(v):
    source, out = v["in"], v["out"]
    units = f"m![1], m![{source.get('cluster', '1 # 2')}], m![{source.get('slice', '1 # 256')}]"
    dtype = v["dtype"]
    if "interleaved" in source:
        held = stream("DmTensor", dtype, source["element"], units=units)
        whole = stream("HbmTensor", dtype, ", ".join(name for name in v["axes"] if name != source["time"]), units="m![1]")
        bases = source.get("base", [0, oracle.size(source["element"], v["axes"]) * BITS[dtype] // 8])
        text = "".join(f"    let {name}: {held} = {name}.to_dm(&mut ctx.tdma, {base});\n" for name, base in zip("ab", bases))
        begin = f"begin_interleaved::<{source['time']}, _, _, _, _, _>(a.view(), b.view())"
        return axes_line(v["axes"]) + "#[device(chip = 1)]\n" + function(
            [("ctx", "&mut Context"), ("a", "&" + whole), ("b", "&" + whole)], stream("FetchTensor", dtype, out["time"], out["packet"], units=units),
            text + f"    ctx.{v.get('context', 'main')}.{begin}.fetch()")
    return axes_line(v["axes"]) + "#[device(chip = 1)]\n" + function(
        [("ctx", "&mut Context"), ("a", "&" + stream("DmTensor", dtype, source["element"], units=units))],
        stream("FetchTensor", out.get("dtype", dtype), out["time"], out["packet"], units=units),
        f"ctx.{v.get('context', 'main')}.begin(a.view()).fetch()")


def kernel_read(v):
    """The pure sequencer, through fetch: 4-byte elements where the packet allows, else a broadcast packet after it."""
    elements, out = oracle.size(v["out"]["packet"], v["axes"]), dict(v["out"])
    axes = dict(v["axes"])
    if elements % 2:
        axes["Repeat"] = 8
        out = {"time": f"{out['time']}, {out['packet']}", "packet": "Repeat"}
    small = oracle.size(v["in"]["element"], axes) * 4 <= 1 << 19
    if not small and elements % 8:
        padded = (elements + 7) // 8 * 8
        out["packet"] = f"{out['packet']} # {padded}"
        expected = v.get("derived", {}).get("entries")
        if expected:
            expected[-1][0] = padded
            v["derived"].update(packet_size=padded, merged=expected, contiguous_bytes=None)
    return kernel_fetch(dict(v, axes=axes, out=out, dtype="i32" if small else v["dtype"]))


def kernel_commit(v):
    return axes_line(v["axes"]) + function(
        [("input", stream("CollectTensor", v["dtype"], v["in"]["time"], v["in"]["packet"]))],
        stream("DmTensor", v["dtype"], v["out"]["element"]), "input.commit(0)")


def kernel_write(v):
    packet, time = v["in"]["packet"], v["in"]["time"]
    flit = 256 // BITS[v["dtype"]]
    elements = oracle.size(packet, v["axes"])
    if elements > flit and elements % flit == 0:
        time, packet = f"{time}, [{packet}] / {flit}", f"[{packet}] % {flit}"
    return kernel_commit(dict(v, **{"in": {"time": time, "packet": packet}}))


def kernel_fetch_commit(v):
    fixed = v.get("corrected", {})
    fetch, element = fixed.get("fetch"), fixed.get("element")
    if not fetch:
        raise NotExpressible("the vector names no stream")
    return axes_line(v["axes"]) + "#[device(chip = 1)]\n" + function(
        [("ctx", "&mut Context"), ("a", "&" + stream("DmTensor", v["dtype"], v["in"]["element"], units=DEVICE_UNITS))],
        stream("DmTensor", v["dtype"], element, units=DEVICE_UNITS),
        f"ctx.main.begin(a.view()).fetch::<{v['dtype']}, {m(fetch['time'])}, {m(fetch['packet'])}>().collect()"
        f".commit({v['out']['base']})")


def kernel_fetch_cast(v):
    if "fetch_size" in v["in"]:
        raise NotExpressible("fetch_size is derived, never asked for")
    return kernel_fetch({"axes": {"A": 64}, "dtype": v["in"]["from"], "in": {"element": "A"},
                         "out": {"time": "1", "packet": "A", "dtype": v["in"]["to"]}})


def kernel_check(v):
    chain = v["in"].get("chain")
    if chain != ["fetch", "collect", "cast", "commit"]:
        raise NotExpressible("a derived size cannot be asked for")
    return axes_line({"A": 4, "B": 8}) + "#[device(chip = 1)]\n" + function(
        [("ctx", "&mut Context"), ("a", "&" + stream("DmTensor", "i32", "A, B", units=DEVICE_UNITS))],
        stream("DmTensor", "i8", "A, B", units=DEVICE_UNITS),
        f"ctx.{v['in']['context']}.begin(a.view()).fetch::<i32, m![A], m![B]>().collect::<m![A], m![B]>()"
        ".cast::<i8, m![B # 32]>().commit(4096)")


def kernel_equiv(v):
    return axes_line(v["axes"]) + function(
        [("input", stream("CollectTensor", "i8", v["in"]["left"], "1 # 32"))],
        stream("CollectTensor", "i8", v["in"]["right"], "1 # 32"), "input")


def kernel_mapping(v):
    if "derived_axes" in v["in"]:
        raise NotExpressible("a skewed axis has no grammar")
    aliases = "".join(f"type {name} = {m(text)};\n" for name, text in v.get("alias", {}).items())
    return axes_line(v["axes"]) + aliases + function(
        [("input", stream("CollectTensor", "i8", v["in"]["mapping"], "1 # 32"))],
        stream("CollectTensor", "i8", v["in"]["mapping"], "1 # 32"), "input")


def kernel_axes(v):
    return f"axes![{v['in']['axes']}];\n" + function(
        [("input", stream("CollectTensor", "i8", "1", "1 # 32"))], stream("CollectTensor", "i8", "1", "1 # 32"), "input")


def kernel_capacity(v):
    given = v["in"]
    if given.get("tier") == "DM" and "address" in given:
        element = given.get("element")
        axes = v.get("axes") or {"E": given.get("element_size", 4)}
        element = element or "E"
        if given["address"] % 8:
            raise NotExpressible("every stage that writes DM needs multiples of 8 bytes")
        return axes_line(axes) + function(
            [("ctx", "&mut Context"), ("a", "&" + f"HbmTensor<{given.get('dtype', v.get('dtype'))}, m![1], {m(element)}>")],
            stream("DmTensor", given.get("dtype", v.get("dtype")), element, units=DEVICE_UNITS),
            f"a.to_dm(&mut ctx.tdma, {given['address']})")
    if given.get("tier") == "TRF" and "element_size" in given:
        elements = given["element_size"]
        flit = 256 // BITS[given["dtype"]]
        padded = (elements + flit - 1) // flit * flit
        return axes_line({"R": given["row_size"], "E": elements}) + function(
            [("input", stream("CollectTensor", given["dtype"], f"R, E # {padded} / {flit}", f"E # {padded} % {flit}"))],
            stream("TrfTensor", given["dtype"], "R", f"E # {padded}"), "input.to_trf(TrfAddress::Full)")
    raise NotExpressible("no stage has this memory or size")


def kernel_dma(v):
    fixed = v.get("corrected", {})
    source, target = (dict(v[side], **fixed.get(side, {})) for side in ("in", "out"))
    if "derived" in source: # a name for an axis with its padding
        name, meaning = source.pop("derived").split(" = ")
        source = {key: text.replace(name, f"[{meaning}]") for key, text in source.items()}
    if source["media"] == "HBM" and "slice" in source:
        raise NotExpressible("a stream per engine is derived, not written")
    chips = oracle.size(source.get("chip", "1"), v["axes"])

    def held(side):
        def filled(mapping, total):
            return mapping if oracle.size(mapping, v["axes"]) == total else f"[{mapping}] # {total}"
        units = [m(side.get("chip", "1"))]
        if side["media"] == "DM":
            units += [m(filled(side.get("cluster", "1"), 2)), m(filled(side.get("slice", "1"), 256))]
        return stream({"HBM": "HbmTensor", "DM": "DmTensor"}[side["media"]], v.get("dtype", "i8"), side["element"], units=", ".join(units))
    method = {"HBM": "to_hbm", "DM": "to_dm"}[target["media"]]
    base = v["expect"].get("write_base", 0)
    return axes_line(v["axes"]) + f"#[device(chip = {chips})]\n" + function(
        [("ctx", "&mut Context"), ("a", "&" + held(source))], held(target), f"a.{method}(&mut ctx.tdma, {base})")


# ---- what is compared ----

def op(tables, name):
    for kernel in tables["kernels"]:
        for one in kernel["ops"]:
            if one["op"] == name:
                return one
    raise Disagreement(f"no {name} in the tables")


def has_op(tables, name):
    return any(one["op"] == name for kernel in tables["kernels"] for one in kernel["ops"])


def same(what, ours, theirs):
    if ours != theirs:
        raise Disagreement(f"{what}: visac has {ours}, the vector {theirs}")


def figure(expected, key, what, ours):
    """Only what the vector states, or what was recomputed for it."""
    if expected.get(key) is not None:
        same(what, ours, expected[key])


def same_walk(what, ours, theirs):
    if oracle.walk(ours) != oracle.walk(theirs):
        raise Disagreement(f"{what}: visac walks {ours}, the vector {theirs} (outermost first)")


def entries(sequencer):
    return [(e["size"], e["stride"]) for e in sequencer["entries"]]


# Of each configuration: what a vector calls a figure, what a message calls it, its name in the report where that is another.
FIGURES = {
    ("collect", "collect"): [("flits_per_packet", "flits per packet"), ("pad_bytes", "bytes of padding")],
    ("to_trf", "to_trf"): [("rows", "Rows"), ("bytes_per_row", "bytes per Row")],
    ("align", "align"): [("collect_flits", "collect_flits"), ("rows", "Rows"), ("reg_read_size", "reg_read_size"), ("packet_broadcast", "packet broadcast", "broadcast")],
    ("contract", "reduce"): [("tree_depth", "tree depth"), ("columns", "columns")],
    ("accumulate", "reduce"): [("inner_time", "slots", "slots"), ("buffer", "buffer"), ("limit", "buffer limit", "buffer_limit"), ("buffer_limit", "buffer limit")],
}


def check_figures(tables, x, name, configuration):
    ours = op(tables, name)[configuration]
    for key, what, *other in FIGURES[name, configuration]:
        figure(x, key, what, ours[other[0] if other else key])
    return ours


def check_collect(tables, x):
    check_figures(tables, x, "collect", "collect")


def check_to_trf(tables, x):
    t = check_figures(tables, x, "to_trf", "to_trf")
    figure(x, "flits_per_row", "flits per Row", t["bytes_per_row"] // 32)


def check_align(tables, x):
    a = check_figures(tables, x, "align", "align")
    if x.get("tiling") is not None:
        same("tiling", [t["term"] for t in a["tiling"]], x["tiling"])
    if x.get("trf_entries"):
        same_walk("TRF entries", entries(a["trf_sequencer"]), [tuple(e) for e in reversed(x["trf_entries"])])
    if x.get("trf_entries_merged"):
        same_walk("TRF entries, merged", entries(a["trf_sequencer"]), [tuple(e) for e in reversed(x["trf_entries_merged"])])


def check_contract(tables, x):
    check_figures(tables, x, "contract", "reduce")


def check_accumulate(tables, x):
    check_figures(tables, x, "accumulate", "reduce")


def check_beats(tables, x, axes):
    """Packets that the accumulator gives: the size of its Time."""
    figure(x, "out_beats", "packets out", oracle.parse(op(tables, "accumulate")["mapping"]["time"], axes).size)


def check_pipeline(tables, x):
    check_align(tables, x)
    check_contract(tables, x)
    check_accumulate(tables, x)


def check_stream(x, s, bits):
    """What a walk says of its packets and steps; `bits` of an element in memory."""
    packets = math.prod(e["size"] for e in s["entries"]) // s["packet"]
    figure(x, "packet_size", "elements of a packet", s["packet"])
    figure(x, "time_size", "packets", packets)
    figure(x, "contiguous_bytes", "contiguous bytes", s["contiguous_bytes"])
    if x.get("merged"):
        same_walk("merged entries", entries(s), [tuple(e) for e in x["merged"]])
    if bits:
        accesses = s["packet"] * bits // 8 // s["access_bytes"]
        figure(x, "packet_bytes", "bytes of a packet", s["packet"] * bits // 8)
        figure(x, "fetches_per_packet", "fetches of a packet", accesses)
        figure(x, "cycles", "cycles", packets * accesses)


def check_fetch(tables, x, dtype):
    s = op(tables, "fetch")["sequencer"]
    check_stream(x, s, BITS[dtype])
    figure(x, "packet_out_bytes", "bytes of a packet after the conversion", s["packet"] * BITS[op(tables, "fetch")["dtype"]] // 8)
    for key in ("entries",):
        if x.get(key) and all(isinstance(e[1], int) for e in x[key]):
            same_walk("entries", entries(s), [tuple(e) for e in x[key]])
    figure(x, "fetch_size", "fetch_size", s["access_bytes"])


def check_read(tables, x):
    walk = op(tables, "fetch")["sequencer"]
    s = entries(walk)
    check_stream(x, {**walk, "contiguous_bytes": walk["contiguous_bytes"] // 4}, 0)  # i32 stands for the vector's bytes
    if not x.get("entries"):
        return
    ours, theirs = oracle.walk(s), oracle.walk([tuple(e) for e in x["entries"]])
    repeat = len(ours) // len(theirs)
    if ours[::repeat] != theirs:
        raise Disagreement(f"entries: visac walks {s}, the vector {x['entries']} (outermost first)")
    if "entry_count" in x:
        same("entry count", len(s), x["entry_count"])


def check_commit(tables, x):
    o = op(tables, "commit")
    if x.get("entries"):
        same_walk("entries", entries(o["sequencer"]), [tuple(e) for e in x["entries"]])
    figure(x, "commit_in_size", "commit_in_size", o["commit"]["commit_in_bytes"])
    figure(x, "commit_size", "commit_size", o["commit"]["commit_bytes"])
    s, size = o["sequencer"], BITS[o["dtype"]] // 8
    check_stream(x, s, 0)
    figure(x, "packet_suffix", "bytes of a write", o["commit"]["commit_bytes"])
    if x.get("writes"):
        each = x["writes"][0]["packet"][1] - x["writes"][0]["packet"][0]
        same("where each write of a packet goes", oracle.walk(entries(s))[:s["packet"]:each], [w["offset"] for w in x["writes"]])
    figure(x, "writes_per_step", "writes of a packet", s["packet"] * size // o["commit"]["commit_bytes"])
    figure(x, "strides_8_byte_multiple", "all strides of packets are multiples of 8 bytes",
           all(e["stride"] * size % 8 == 0 for e in s["entries"] if e["stride"] * size >= o["commit"]["commit_bytes"]))


def check_write(tables, x):
    if x.get("entries"):
        same_walk("entries", entries(op(tables, "commit")["sequencer"]), [tuple(e) for e in x["entries"]])


def check_fetch_commit(tables, x):
    o = op(tables, "commit")
    s = op(tables, "fetch")["sequencer"]
    figure(x, "fetch_size", "fetch_size", s["access_bytes"])
    figure(x, "time_size", "packets", math.prod(e["size"] for e in s["entries"]) // s["packet"])
    figure(x, "commit_in_size", "commit_in_size", o["commit"]["commit_in_bytes"])
    figure(x, "commit_size", "commit_size", o["commit"]["commit_bytes"])
    if x.get("commit_entries"):
        same_walk("commit entries", entries(o["sequencer"]), [tuple(e) for e in x["commit_entries"]])


def check_operand_pair(tables, x):
    same("accumulator", op(tables, "accumulate")["dtype"], x["accumulator"])


def copied(entries_of_two_strides, packet, unit):
    """{(source, destination)} in units of `unit` bytes."""
    pairs = [(0, 0)]
    for size, source, destination in entries_of_two_strides:
        pairs = [(a + i * source, b + i * destination) for a, b in pairs for i in range(size)]
    return {(a + k, b + k) for a, b in pairs for k in range(0, packet, unit)}


def check_dma(tables, x):
    """Loop orders may differ: the pairs of addresses are compared, from the lowest of each side on."""
    slice_bytes = 4 << 20
    symbols = {"slice_stride": slice_bytes, "32*slice_stride": 32 * slice_bytes, "DMN_stride": 32 * slice_bytes}
    loops = x.get("paired") or [(r[0], r[1], w[1]) for r, w in zip(x.get("read_entries", []), x.get("write_entries", []))]
    if not loops:
        return
    packet = x.get("packet_size", loops[-1][0])
    figure(x, "slice_stride_bytes", "slice stride", slice_bytes)
    wanted = copied([(size, symbols.get(a, a), symbols.get(b, b)) for size, a, b in loops[:-1]], packet, packet)
    for side, key in enumerate(("read_entries", "write_entries")):
        if x.get("paired") and key in x:
            same_walk(key, [(r[0], symbols.get(r[1 + side], r[1 + side])) for r in x["paired"]], [(n, symbols.get(s, s)) for n, s in x[key]])
    ours = set()
    for command in (op(tables, "to_dm") if has_op(tables, "to_dm") else op(tables, "to_hbm"))["dma"]:
        loops = [(e["size"], e["source_stride"], e["destination_stride"]) for e in command["entries"]]
        base = (command["source_base"], command["destination_base"])
        ours |= {(a + base[0], b + base[1]) for a, b in copied(loops, command["packet_bytes"], packet)}
    first = [min(pair[side] for pair in ours) for side in (0, 1)]
    if not wanted <= {(a - first[0], b - first[1]) for a, b in ours}:
        raise Disagreement("the copied addresses differ")
    for side, key in enumerate(("read_base", "write_base")):
        if side == 1 and isinstance(x.get(key), int):
            same(key, first[side], x[key])


def kernel_dma_requests(v):
    return axes_line({"A": v["in"]["packet"]}) + "#[device(chip = 1)]\n" + function(
        [("ctx", "&mut Context"), ("a", "&HbmTensor<i8, m![1], m![A]>")], "HbmTensor<i8, m![1], m![A]>", "a.to_hbm(&mut ctx.tdma, 0x8000)")


def check_dma_requests(tables, x):
    packets = [d["packet_bytes"] for d in op(tables, "to_hbm")["dma"] for _ in range(math.prod(e["size"] for e in d["entries"]))]
    if "split" in x:
        same("packets of two commands", packets, x["split"])
    else:
        same("requests", [sum((n + 255) // 256 for n in packets), len(packets)], [x["requests"], 1])
        figure(x, "full", "requests of 256 bytes", sum(n // 256 for n in packets))
        figure(x, "tail_bytes", "bytes of the last request", packets[-1] % 256)


def check_mapping(tables, v):
    """The text that visac prints, evaluated: equal to the vector's own mapping, and to its table."""
    printed = tables["kernels"][0]["ports"][0]["mapping"]["time"]
    axes = dict(v["axes"])
    text = v["in"]["mapping"]
    for name, meaning in v.get("alias", {}).items():
        text = text.replace(f"{{ {name} }}", f"[{meaning}]")
    ours = oracle.parse(printed, axes)
    figure(v["expect"], "identity", "what is printed means what was read", True)
    if "size" in v["expect"]:
        same("size", ours.size, v["expect"]["size"])
    if ours.size <= 1 << 17 and not oracle.equal(printed, text, axes):
        raise Disagreement(f"visac prints m![{printed}] for m![{text}]")
    mapped = oracle.parse(printed, axes)
    for position, index in v["expect"].get("map", {}).items():
        same(f"position {position}", mapped.raw(int(position)), index)


# ---- the Stream Adapter's advanced modes: seen from the outside, with words of the command changed by hand ----

def compiled(text, name, directory):
    """The binary, its path, and what visa-objdump reads from it."""
    source, binary = os.path.join(directory, name + ".vm"), os.path.join(directory, name + ".bin")
    with open(source, "w") as file:
        file.write(text)
    done = visa_tools.run(["visac", source, "-o", binary])
    if done.status != 0:
        raise Disagreement(f"visac refuses it:\n{done.text()}")
    with open(binary, "rb") as file:
        return file.read(), binary, json.loads(visa_tools.run(["visa-objdump", "--json", binary]).out)


def command(dump, name):
    return [c for c in dump["kernels"][0]["streams"]["main"] if c["op"] == name][0]


def field(one, name):
    return [f["value"] for f in one["fields"] if f["name"] == name][0]


def judge_window(v, directory):
    """$(T0:s0, ..) as the Time of a stream: as many packets as places."""
    axes = {f"T{i}": size for i, (size, _) in enumerate(v["terms"])}
    time = "$(" + ", ".join(f"T{i}:{stride}" for i, (_, stride) in enumerate(v["terms"])) + ")"
    text = axes_line(axes) + function([("input", stream("CollectTensor", "i8", time, "1 # 32"))],
                                      stream("CollectTensor", "i8", time, "1 # 32"), "input")
    _, _, dump = compiled(text, v["id"], directory)
    figure(v["expect"], "size", "places", field(command(dump, "stream_in"), "packets"))


def kernel_slide(dtype, flits, pops):
    """A window over all collected flits, of which OutPacket sees every lane."""
    lanes, held = 512 // BITS[dtype], flits * 256 // BITS[dtype]
    shifts = max(2, held - lanes + 1)
    border = "" if lanes + shifts - 1 == held else f" | 0..{held}"
    window = f"$(L:1, Z:1{border})"
    return axes_line({"A": pops, "L": lanes, "Z": shifts, "N": 1}) + function(
        [("input", stream("CollectTensor", dtype, f"A, {window} / {held // flits}", f"{window} % {held // flits}")),
         ("trf", "&" + stream("TrfTensor", dtype, "1", "Z" if BITS[dtype] > 4 else "Z, 1 # 2"))],
        stream("AlignedPair", dtype, "1", "A, Z", "L"), "input.align(trf)")


def run_slide(v, directory, pops, changes):
    """The first packet of each pop, as source indices (None: zero), with {(word, low bit, width): value} put into the shift command."""
    dtype, flits = v["dtype"], v["feed_flits"]
    held, lanes = flits * 256 // BITS[dtype], 512 // BITS[dtype]
    binary, path, dump = compiled(kernel_slide(dtype, flits, pops), v["id"], directory)
    start, = [s["offset"] for s in sections(binary) if s["name"] == ".visa.main.vector"]
    data = bytearray(binary)
    for (word, low, width), value in changes.items():
        at = start + command(dump, "shift")["offset"] + 8 * word
        mask = (1 << width) - 1
        old, = struct.unpack_from("<Q", data, at)
        struct.pack_into("<Q", data, at, old & ~(mask << low) | (value & mask) << low)
    with open(path, "wb") as file:
        file.write(data)
    code = "B" if BITS[dtype] == 8 else "H"
    for name, values in (("input", list(range(1, held + 1)) * pops), ("trf", [0] * max(2, held - lanes + 1))):
        with open(os.path.join(directory, v["id"] + name), "wb") as file:
            file.write(struct.pack(f"<{len(values)}{code}", *values))
    files = [os.path.join(directory, v["id"] + name) for name in ("input", "trf", "out")]
    done = visa_tools.run(["visa-run", path, "--input", f"input={files[0]}", "--input", f"trf={files[1]}", "--output", f"out={files[2]}"])
    if done.status != 0:
        return None
    with open(files[2], "rb") as file:
        out = struct.unpack(f"<{pops * max(2, held - lanes + 1) * lanes}{code}", file.read())
    return [[x - 1 if x else None for x in out[i:i + lanes]] for i in range(0, len(out), len(out) // pops)]


def sections(binary):
    shoff, = struct.unpack_from("<Q", binary, 40)
    size, count, names = struct.unpack_from("<HHH", binary, 58)
    rows = [struct.unpack_from("<IIQQQQ", binary, shoff + i * size) for i in range(count)]
    base = rows[names][4]
    return [{"name": binary[base + r[0]:binary.index(b"\0", base + r[0])].decode(), "offset": r[4]} for r in rows]


INITIAL = (2, 48, 6)  # of entry 0; the next entry is a word further
INITIAL_DIM = (1, 4, 4)
POP_LOOP = 2


def judge_shift(v, directory):
    if "initial_shift_elements" in v:
        shifts = v["initial_shift_elements"]
        changes = {(INITIAL[0] + i, INITIAL[1], INITIAL[2]): x for i, x in enumerate(shifts)}
        packets = run_slide(v, directory, len(shifts), {**changes, INITIAL_DIM: POP_LOOP})
        if packets is None:
            raise Disagreement("visa-run refuses the command")
        same("offsets", [[x - lane for lane, x in enumerate(p) if x is not None][0] for p in packets], v["expect"]["offsets"])
        return
    packets = run_slide(v, directory, 1, {INITIAL: v["initial_shift"]})
    if packets is None:
        raise Disagreement("visa-run refuses the command")
    wanted = [None] * len(packets[0])
    for part in v["expect"]["packet"]:
        for lane in range(*part["lanes"]):
            wanted[lane] = None if part.get("zero") else part["source"][0] + lane - part["lanes"][0]
    same("packet", packets[0], wanted)


def judge_limits(v, directory):
    """At a limit it is accepted, beyond it it is not."""
    x, dtype = v["expect"], v.get("dtype")
    if "initial_shift" in x:
        low, high = x["initial_shift"]
        figure(x, "distinct", "values of initial_shift", high - low + 1)
        like = {"id": v["id"], "dtype": dtype, "feed_flits": 3}
        for value, legal in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
            if (run_slide(like, directory, 1, {INITIAL: value}) is not None) != legal:
                raise Disagreement(f"initial_shift {value} is {'refused' if legal else 'accepted'}")
    elif "shift_stride" in x:
        high, lanes = x["shift_stride"][1], 512 // BITS[dtype]
        for stride, legal in ((high, True), (high + 1, False)):
            window = f"$(L:1, Z:{stride} | 0..{lanes})"
            text = axes_line({"L": lanes, "Z": 3}) + function(
                [("input", stream("CollectTensor", dtype, f"{window} / {lanes // 2}", f"{window} % {lanes // 2}")),
                 ("trf", "&" + stream("TrfTensor", dtype, "1", "Z, 1 # 2"))],
                stream("AccumulationTensor", "i32", "L / 4", "1 # 8"),
                "input.align::<m![Z], m![L], _, _>(trf).contract::<m![L / 4]>().accumulate(AccumulationKind::Interleaved)")
            path = os.path.join(directory, v["id"] + ".vm")
            with open(path, "w") as file:
                file.write(text)
            ids = ids_of(visa_tools.run(["visac", path, "--emit=json"]).text())
            if ("E-SHIFT-STRIDE" not in ids) != legal:
                raise Disagreement(f"shift_stride {stride}: {ids}")
    else:
        raise NotExpressible("a limit of another unit")


def judge_transpose(v, directory):
    if "rows" not in v:
        raise Disagreement("two flits are not one transposed flit")
    rows, columns, lanes = v["rows"], v["cols"], 512 // BITS[v["dtype"]]
    axes = v.get("axes", {"R": rows, "C": columns})
    packet, turned = v.get("packet", "R, C"), v["expect"].get("out_packet", "C, R")
    kept = turned.split(", ")[0]
    text = axes_line(dict(axes, N=8, A=3)) + function(
        [("input", stream("CollectTensor", v["dtype"], "A", packet)),
         ("trf", "&" + stream("TrfTensor", v["dtype"], "N", ", ".join(turned.split(", ")[1:])))],
        stream("AlignedPair", v["dtype"], "N", "A", f"[{turned}] # {lanes}"), "input.align(trf)")
    _, path, dump = compiled(text, v["id"], directory)
    same("rows", field(command(dump, "shift"), "transpose_rows"), rows)
    same(f"shape, {kept} outermost", [columns, rows], v["expect"].get("out_shape", [columns, rows]))
    run = visa_tools.run(["visa-run", path, "--check"])
    if run.status != 0:
        raise Disagreement(f"the run differs from the reference (status {run.status}):\n{run.text()}")


# Vectors that are more than one compilation.
JUDGES = {"window": judge_window, "shift": judge_shift, "limits": judge_limits, "flit_transpose": judge_transpose}

OPS = {
    "collect": (kernel_collect, check_collect), "to_trf": (kernel_to_trf, check_to_trf),
    "align": (kernel_align, check_align), "contract": (kernel_contract, check_contract),
    "accumulate": (kernel_accumulate, check_accumulate), "cast": (kernel_cast, None),
    "cast_pair": (kernel_cast_pair, None), "operand_pair": (kernel_operand_pair, check_operand_pair),
    "pipeline": (kernel_pipeline, check_pipeline), "fetch": (kernel_fetch, check_fetch),
    "read": (kernel_read, check_read), "write": (kernel_write, check_write), "commit": (kernel_commit, check_commit),
    "fetch_commit": (kernel_fetch_commit, check_fetch_commit), "fetch_cast": (kernel_fetch_cast, None),
    "check": (kernel_check, None), "equiv": (kernel_equiv, None), "map": (kernel_mapping, "mapping"),
    "roundtrip": (kernel_mapping, "mapping"), "parse": (kernel_mapping, "mapping"), "axes": (kernel_axes, None),
    "capacity": (kernel_capacity, None), "dma": (kernel_dma, check_dma), "dma_requests": (kernel_dma_requests, check_dma_requests),
}


# By operation: what the vectors state and nothing here compares, and why. One that nobody reads and that is not named is a failure, and so is a
# name of one that is read everywhere.
HOW = "how much the source's own check looked at, not what visac derives"
TIME = "durations are a matter of a timing preset: test/machine/static_costs.py compares them with published ones"
PLACE = "where a port lies is the runtime's choice; the address that a kernel gives is compared"
I32 = "the vector's bytes are elements of 4 bytes here, so that reads may be shorter than 8 bytes: `fetch` compares accesses"
OTHER_TEXT = "a spelling: its walk is compared"
NOT_COMPARED = {
    "align": {"lanes_checked": HOW, "row_lanes_checked": HOW},
    "pipeline": {"lanes_checked": HOW, "row_lanes_checked": HOW, "outputs_checked": HOW},
    "capacity": {"first": "a range of addresses of one tensor: that it fits is compared", "end": "as `first`"},
    "commit": {"input_packet_bytes": "32 of every vector: a flit, which is the rule of collect", "written_packet": OTHER_TEXT},
    "write": {"written_packet": OTHER_TEXT, "commit_in_size": "of the pure sequencer, which the kernel's commit is not", "commit_size": "as commit_in_size",
              "contiguous_bytes": "as commit_in_size", "merged": "the entries are compared"},
    "dma": {"cycles": TIME, "data_cycles": TIME, "read_base": PLACE, "engine_3": "work of several engines, which visac leaves to the runtime",
            "engines_0_2": "as engine_3", "packet_size": "of the several engines' example", "requests": "a model of memory, not a field: `dma_requests` compares it for packets",
            "read_requests": "as requests", "write_requests": "as requests"},
    "dma_requests": {"extra_startup_cycles": TIME, "single_command_packet": "the packet that one command would have: the two that visac makes are compared"},
    "equiv": {"ok": "`equivalent` is what is asked"},
    "fetch": {"max_tensors": "two streams of one fetch, of which visac has one", "order": "as max_tensors"},
    "fetch_cast": {"target": "the only one that visac has"},
    "map": {"formula": "the mapping in words: `map` has its values"},
    "parse": {"tree": "a spelling of the tree: its meaning is compared"},
    "read": {"cycles": I32, "fetch_size": I32, "fetches_per_packet": I32, "packet_bytes": I32},
}


def ids_of(text):
    return re.findall(r"error\[([A-Z0-9-]+)\]", text)


def compare(v, directory):
    if v["op"] in JUDGES:
        JUDGES[v["op"]](v, directory)
        same("accepted", True, v["expect"]["ok"])
        return
    build, check = OPS[v["op"]]
    path = os.path.join(directory, v["id"] + ".vm")
    with open(path, "w") as file:
        file.write(build(v))
    for more in (v.get("derived") or {}).items():
        v["expect"].setdefault(*more)
    expect = v["expect"]
    fixed = v.get("corrected") or {}
    expect.update({key: value for key, value in fixed.items() if key in expect or key in ("fetch_size", "entries")})
    done = visa_tools.run(["visac", path, "--emit=json"])
    text = done.text()
    if done.crashed:
        raise Disagreement("visac crashed:\n" + text)
    wanted = expect["ok"] if "equivalent" not in expect else expect["equivalent"]
    if (done.status == 0) != wanted:
        raise Disagreement(f"visac {'accepts' if done.status == 0 else 'refuses'} it:\n" + ("" if done.status == 0 else text))
    if done.status == 0:
        if check:
            tables = json.loads(done.out)
            if check == "mapping":
                check_mapping(tables, v)
            elif check == check_fetch:
                check(tables, expect, v.get("dtype", "i8"))
            else:
                check(tables, expect)
            if v["op"] in ("accumulate", "pipeline"):
                check_beats(tables, expect, v["axes"])
        if v["op"] == "pipeline" and math.prod(v["axes"].values()) < 1 << 28:  # ports hold whole axes
            run = visa_tools.run(["visac", path, "--check"])
            if run.status != 0:
                raise Disagreement(f"the run differs from the reference (status {run.status}):\n{run.text()}")
        return
    ids = ids_of(text)
    if expect.get("error") in CLASSES and CLASSES[expect["error"]] not in ids:
        raise Disagreement(f"refused as {ids}, the vector says {expect['error']}:\n{text}")
    wording = expect.get("message_contains", "").rstrip(".").replace("`", "")
    if wording not in text.replace("`", ""):
        raise Disagreement(f"the wording `{wording}` is missing:\n{text}")


def vectors(names):
    for area in ("contraction.json", "mapping-and-movement.json"):
        with open(visa_tools.shared("conformance", area)) as file:
            for v in json.load(file):
                if v["dialect"] in ("april", "both") and v["op"] in {**OPS, **JUDGES} and (not names or v["id"] in names):
                    yield v


def judge(v, directory):
    v["expect"] = visa_tools.Watched(v["expect"])
    try:
        compare(v, directory)
        if v["id"] in KNOWN:
            return "disagree", "it is listed as a known difference, but agrees: remove it from the list"
        return "agree", ""
    except NotExpressible as reason:
        return "not expressible", str(reason)
    except Disagreement as reason:
        return ("known" if v["id"] in KNOWN else "disagree"), str(reason)


def main(arguments):
    verbose = "-v" in arguments
    names = [a for a in arguments if a != "-v"]
    if not visa_tools.shared("conformance", "contraction.json"):
        print("conformance: skipped, the reference material (../shared) is not here")
        return visa_tools.SKIPPED
    every = list(vectors(names))
    counts, verdicts_of = {}, []
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(2) as pool:
        for v, (verdict, reason) in zip(every, pool.map(lambda v: judge(v, directory), every)):
            verdicts_of.append(verdict)
            row = counts.setdefault(v["op"], {})
            row[verdict] = row.get(verdict, 0) + 1
            if verdict == "disagree" or verbose:
                print(f"{v['op']} {v['id']}: {verdict}: {reason.rstrip()}")
                if verdict == "disagree":
                    path = os.path.join(directory, v["id"] + ".vm")
                    print(open(path).read() if os.path.exists(path) else "")
            if verdict == "known":
                print(f"{v['op']} {v['id']}: differs on purpose: {KNOWN[v['id']]}")
    verdicts = ("agree", "known", "disagree", "not expressible")
    print(f"{'op':16}" + "".join(f"{name:>17}" for name in verdicts))
    for name in sorted(counts):
        print(f"{name:16}" + "".join(f"{counts[name].get(verdict, 0):17}" for verdict in verdicts))
    judged = [v for v, verdict in zip(every, verdicts_of) if verdict == "agree"]
    lines = []
    for name in sorted({v["op"] for v in judged}) if not names else ():
        lines += [f"{name}: {line}" for line in visa_tools.unread([v for v in judged if v["op"] == name], NOT_COMPARED.get(name, {}))]
    print("".join(f"{line}\n" for line in lines), end="")
    total = {verdict: sum(row.get(verdict, 0) for row in counts.values()) for verdict in verdicts}
    print(f"{'all':16}" + "".join(f"{total[verdict]:17}" for verdict in verdicts))
    return 1 if total["disagree"] or lines or not judged else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
