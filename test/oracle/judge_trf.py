"""The walker of `align`: which TRF byte and which stream flit byte meet in every Row, step and lane.

`Parts` are the mappings of a stream tensor, a TRF tensor and their computation mapping; they come from a Spec (pairs) or
from the mappings that JSON prints for the ops of a kernel (kernels). An operand is repeated over the
axes that its own Time, Packet, Row and Element do not mention; the units are the same on both sides."""
import nest
from judge import Problems, check_limits, check_printed, entries_of, mergeable
from meaning import final, mentioned, pair, table
from spec import BITS

CAPACITY = {"Full": 65536, "FirstHalf": 32768, "SecondHalf": 32768}  # bytes of all Rows together


class Parts:
    def __init__(self, axes, dtype, maps):
        self.axes, self.bits = axes, BITS[dtype]
        self.maps = maps
        self.row = table(maps["row"], axes)
        self.cells = table(maps["element"], axes)
        self.flits = table(pair(maps["time"], maps["packet"]), axes)
        self.time = table(maps["out_time"], axes)
        self.lanes = table(maps["out_packet"], axes)
        self.keep_stream = mentioned(final(self.flits, axes), axes)
        self.keep_trf = mentioned(final(table(pair(maps["row"], maps["element"]), axes), axes), axes)
        self.flit = 256 // self.bits

    def agreeing(self):
        """Elements of each read, longest first, on which Element, padded to whole reads, and OutPacket agree innermost."""
        axes, bits = self.axes, self.bits
        for s in (64, 32, 16, 8, 4, 2, 1):
            n = s * 8 // bits
            if s * 8 % bits or len(self.lanes) % n:
                continue
            cells = self.cells[:n] + [None] * (n - len(self.cells[:n]))
            if final(cells, axes) == final(self.lanes[:n], axes):
                yield n

    def live(self, n):
        return sum(code is not None for code in final(self.lanes[:n], self.axes))

    def read_elements(self):
        """Elements of reg_read_size: of the reads that agree and can be made at every step the longest, and of two that bring the
        same live elements the shorter; where this cannot say which can be made (Row and Time share digits of an axis), of those that agree.
        None: none agrees."""
        agreeing = list(self.agreeing())
        made = [n for n in agreeing if wanted_with(self, n) is not None] or agreeing
        if not made:
            return None
        return min(n for n in made if self.live(n) == self.live(made[0]))

    def collected(self):
        """1 or 2: whether the second half of OutPacket holds anything."""
        return 2 if any(c is not None for c in final(self.lanes[self.flit:], self.axes)) else 1


def _add(*codes):
    total = 0
    for code in codes:
        if code is None:
            return None
        total += code
    return total


def judge_align(parts, align, bad):
    """The emitted `align` object against the meaning of the three mappings."""
    axes, bits = parts.axes, parts.bits
    sequencer, rows = align["trf_sequencer"], len(parts.row)
    entries = entries_of(sequencer)
    check_limits(entries, bad)
    if align["rows"] != rows or rows not in (1, 2, 4, 8):
        bad.add("rows", f"rows {align['rows']}, Row has {rows}")
    if len(parts.lanes) * bits != 512:
        bad.add("packet", f"OutPacket of {len(parts.lanes)} elements")
        return
    if nest.volume(entries) != len(parts.time):
        bad.add("volume", f"{nest.volume(entries)} steps, OutTime has {len(parts.time)}")
        return
    n = parts.read_elements()
    if n is None or align["reg_read_size"] * 8 != n * bits:
        bad.add("read size", f"reg_read_size {align['reg_read_size']}, the rule gives {n and n * bits / 8}")
        return
    if align["broadcast"] * n != len(parts.lanes):
        bad.add("broadcast", f"broadcast {align['broadcast']} of {n} elements")
    collected, tiles = align["collect_flits"], len(parts.time) * align["collect_flits"]
    steps_in = len(parts.flits) // parts.flit
    if collected not in (1, 2) or not steps_in or tiles % steps_in:
        bad.add("collect", f"{steps_in} flits, {collected} per packet, for {len(parts.time)} steps")
        return
    _walk(parts, nest.walk(entries), sequencer["base"], n, collected, tiles // steps_in, bad)
    found = mergeable(entries)
    if found:
        bad.add("minimal", f"{found[0]} and {found[1]} of {entries} are one entry")
    read = align["reg_read_size"]
    if sequencer["base"] % read or any(stride % read for _, stride in entries):
        bad.add("align", f"strides {entries} or base {sequencer['base']} are not multiples of {read}")


def _walk(parts, addresses, base, n, collected, tiling, bad):
    axes, bits, flit = parts.axes, parts.bits, parts.flit
    live, limit = axes.live, len(parts.cells)
    for t, (step, address) in enumerate(zip(parts.time, addresses)):
        first = (base + address) * 8
        if first % bits:
            bad.add("walk", f"step {t} reads inside an element")
            return
        first //= bits
        packet = t // tiling * collected * flit
        for r, row in enumerate(parts.row):
            head = _add(row, step)
            if head is None:
                continue
            for p, lane in enumerate(parts.lanes):
                if lane is None or not live(head + lane):
                    continue
                code, cell = head + lane, first + p % n
                stored = _add(row, parts.cells[cell]) if 0 <= cell < limit else None
                if stored is None or stored != code & parts.keep_trf:
                    bad.add("weight", f"Row {r}, step {t}, lane {p} is {axes.show(code)}, TRF element {cell} holds "
                            f"{axes.show(stored)}")
                sent = parts.flits[packet + p] if p < collected * flit else None
                if sent is None or sent != code & parts.keep_stream:
                    bad.add("stream", f"Row {r}, step {t}, lane {p} is {axes.show(code)}, flit byte {packet + p} holds "
                            f"{axes.show(sent)}")


def wanted_align(parts):
    """TRF byte address that each step must read (None: any) and the bytes of a read, or None: nothing can do it."""
    n = parts.read_elements()
    return None if n is None else wanted_with(parts, n)


def wanted_with(parts, n):
    """The same for reads of n elements."""
    axes, bits, flit = parts.axes, parts.bits, parts.flit
    if len(parts.row) not in (1, 2, 4, 8) or len(parts.lanes) * bits != 512:
        return None
    if len(parts.flits) % flit or final(parts.lanes[:flit], axes) != final(table(parts.maps["packet"], axes), axes):
        return None
    collected, steps = parts.collected(), len(parts.flits) // flit
    if steps % collected or len(parts.time) % (steps // collected):
        return None
    if not _axes_fit(parts):
        return None
    tiling = len(parts.time) // (steps // collected)
    cells = final(parts.cells, axes)
    place = {code: e for e, code in reversed(list(enumerate(cells))) if code is not None}
    keep, wanted = mentioned(cells, axes), []
    for t, step in enumerate(parts.time):
        first = None
        for p in range(collected * flit if step is not None else 0):
            code = _add(step, parts.lanes[p])
            if code is None or not axes.live(code):
                continue
            at = place.get(code & keep)
            if at is None or parts.flits[t // tiling * collected * flit + p] != code & parts.keep_stream:
                return None
            at -= p % n
            if at % n or at != (at if first is None else first):
                return None
            first = at
        wanted.append(None if first is None else first * bits // 8)
    return wanted, n * bits // 8


def _axes_fit(parts):
    """Row axes come from the TRF alone, and nothing stored is left over; a time axis of neither operand repeats both."""
    axes = parts.axes
    row, element = mentioned(final(parts.row, axes), axes), mentioned(final(parts.cells, axes), axes)
    time = mentioned(final(parts.time, axes), axes)
    computed = time | mentioned(final(parts.lanes, axes), axes)
    return not (row & computed or element & ~computed or parts.keep_stream & row)


def _table_for(wanted, read, entries):
    return bool(entries is not None and nest.fits(entries) and all(stride % read == 0 for _, stride in entries)
                and all(w is None or w == a for w, a in zip(wanted, nest.walk(entries))))


# A Spec of kind align stands for a whole kernel.

def spec_parts(spec):
    return Parts(spec.axes, spec.dtype, spec.maps)


def judge_spec(spec, kernel):
    bad = Problems()
    op = [op for op in kernel["ops"] if op["op"] == "align"][0]
    parts = spec_parts(spec)
    judge_align(parts, op["align"], bad)
    if len(parts.row) * len(parts.cells) * parts.bits > CAPACITY["Full"] * 8:
        bad.add("capacity", f"{len(parts.row)} Rows of {len(parts.cells)} elements are more than the register file")
    check_printed(spec, {"row": "row", "time": "out_time", "packet": "out_packet"}, op, bad)
    return bad


def _legal(spec):
    parts = spec_parts(spec)
    if len(parts.row) * len(parts.cells) * parts.bits > CAPACITY["Full"] * 8 or len(parts.cells) * parts.bits % 8:
        return None
    return wanted_align(parts) if spec.dtype in ("i4", "i8", "f8e4m3", "f8e5m2", "bf16") else None


def possible_spec(spec):
    found = _legal(spec)
    if found is None:
        return False
    wanted, read = found
    return None if None in wanted else _table_for(wanted, read, nest.shortest(wanted))


def open_spec(spec):
    wanted, read = _legal(spec)
    found = nest.search(wanted)
    if found == "unknown":
        return found
    return "some" if found is not None and _table_for(wanted, read, nest.merge(found)) else "none"
