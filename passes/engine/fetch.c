/* Rule ("Fetch Engine"): the loops read DM in the order of [Time, Packet]. One access (fetch_size) may neither split over two packets
 * nor leave a run of addresses, so it is the largest allowed size that divides both. */
#include "passes/pass.h"

#include <string.h>

#include "passes/engine/lift.h"
#include "passes/remedy.h"
#include "target/dialect.h"

/* "i4, i8 and i16 convert to i32; .. to f32; f32 to bf16": the types that become one are together in the rows. */
static const char *conversions_text(const pass_context *p)
{
    strbuf s;
    strbuf_init(&s, p->arena);
    const dtype_conversion *c, *next;
    dtype last = DTYPE_COUNT;
    for (size_t i = 0; (c = target_conversion_at(i)); i++) {
        if (c->engine != ENGINE_ID_FETCH)
            continue;
        next = target_conversion_at(i + 1);
        bool ends = !next || next->engine != ENGINE_ID_FETCH || next->to != c->to;
        strbuf_printf(&s, "%s%s", c->to != last ? s.bytes ? "; " : "" : ends ? " and " : ", ", dtype_row_of(c->from)->name);
        if (ends)
            strbuf_printf(&s, "%s to %s", strchr(s.text, ';') ? "" : " convert", dtype_row_of(c->to)->name);
        last = c->to;
    }
    return s.text;
}

/* "f4e2m1 to f8e4m3, f8e5m2; .." */
static const char *lookups_text(const pass_context *p)
{
    strbuf s;
    strbuf_init(&s, p->arena);
    const dtype_conversion *c, *last = NULL;
    for (size_t i = 0; (c = target_lookup_at(i)); last = c, i++)
        if (last && last->from == c->from)
            strbuf_printf(&s, ", %s", dtype_row_of(c->to)->name);
        else
            strbuf_printf(&s, "%s%s to %s", last ? "; " : "", dtype_row_of(c->from)->name, dtype_row_of(c->to)->name);
    return s.text;
}

/* The type that holds the differences of elements of another; the type itself: none does. */
static dtype staging_of(dtype t)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (dtype_is_staging((dtype)i) && dtype_row_of((dtype)i)->staged == t)
            return (dtype)i;
    return t;
}

/* Rule ("Fetch Adapter"): the table makes one type of another, in the main context; the cast converts what it gives; the zero point, a
 * number of the type that arrives, turns that into the type that holds the differences. */
static bool adapter_fits(pass_context *p, kernel *k, op *o)
{
    dtype stored = op_input(o)->out.dtype, out = o->out.dtype;
    const adapter_config *a = o->adapter;
    diag *d = NULL;
    if (a && a->table && o->context != CONTEXT_MAIN) {
        d = pass_refuse_at(p, k, o, a->table_range, E_CONTEXT,
                           "`fetch_table_lookup` runs in the main context, and this stream began in the %s context",
                           context_name(o->context));
        diag_help(p->diags, d, "look up in @ctx.main, commit what it gives to DM, and fetch that in the sub context");
        return false;
    }
    if (a && a->table && !target_looks_up(stored, a->looked_up)) {
        d = pass_refuse_at(p, k, o, a->table_range, E_FETCH_TABLE, "there is no table from %s to %s", dtype_row_of(stored)->name,
                           dtype_row_of(a->looked_up)->name);
        diag_help(p->diags, d, "tables go from %s", lookups_text(p));
        return false;
    }
    dtype in = a && a->table ? a->looked_up : stored, cast = a && a->subtracts ? a->cast : out;
    if (in != cast && !target_converts(ENGINE_ID_FETCH, in, cast)) {
        d = pass_refuse_at(p, k, o, o->converted, E_FETCH_CAST, "fetch does not convert %s to %s", dtype_row_of(in)->name,
                           dtype_row_of(cast)->name);
        if (dtype_is_staging(cast) && dtype_row_of(cast)->staged == in && !(o->releases & APRIL))
            diag_help(p->diags, d, "fetch_zero_point_sub::<%s>(0) gives it", dtype_row_of(cast)->name);
        else if (target_looks_up(in, cast) && !(a && a->table) && !(o->releases & APRIL))
            diag_help(p->diags, d, "fetch_table_lookup::<%s>() gives it, in the main context", dtype_row_of(cast)->name);
        else
            diag_help(p->diags, d, "%s", conversions_text(p));
        return false;
    }
    if (!a || !a->subtracts)
        return true;
    if (!dtype_is_staging(out) || dtype_row_of(out)->staged != cast) {
        d = pass_refuse_at(p, k, o, a->zero_point_range, E_FETCH_ZERO_POINT, "less a zero point %s is no %s", dtype_row_of(cast)->name,
                           dtype_row_of(out)->name);
        dtype staging = staging_of(cast);
        if (staging != cast)
            diag_help(p->diags, d, "write fetch_zero_point_sub::<%s>(%lld)", dtype_row_of(staging)->name, (long long)a->zero_point);
        else
            diag_help(p->diags, d, "a zero point is subtracted from i4 or i8");
        return false;
    }
    int64_t half = INT64_C(1) << (dtype_row_of(cast)->bits - 1);
    if (a->zero_point >= -half && a->zero_point < half)
        return true;
    d = pass_refuse_at(p, k, o, a->zero_point_range, E_FETCH_ZERO_POINT,
                       "zero_point %lld is outside the source type's quantized range %lld..=%lld", (long long)a->zero_point,
                       (long long)-half, (long long)half - 1);
    diag_help(p->diags, d, "it is a number of %s", dtype_row_of(cast)->name);
    return false;
}

/* The largest allowed access in bytes of the stored type; 0: none. Rule: it divides the packet and the run, and what it
 * becomes after a conversion fits one flit. The sub context reads 8 bytes at a time, or what fits: 4 for i4 to i32. */
static int64_t fetch_access_bytes(const pass_context *p, const op *o, int64_t packet_bits, int64_t run_bits)
{
    dtype from = op_input(o)->out.dtype, to = o->out.dtype;
    int64_t ratio = dtype_row_of(to)->bits / dtype_row_of(from)->bits;
    int64_t common = gcd(packet_bits, run_bits);
    int64_t only = smaller(p->target->fetch_access_sub_bytes, p->target->flit_bytes / (ratio ? ratio : 1));
    for (int64_t bytes = p->target->fetch_access_max_bytes; bytes >= 1; bytes /= 2)
        if (common % (8 * bytes) == 0 && bytes * (ratio ? ratio : 1) <= p->target->flit_bytes &&
            (o->context != CONTEXT_SUB || bytes == only))
            return bytes;
    return 0;
}

/* The byte of the slice's DM after the last that the walk reads. */
static int64_t walk_end_bytes(const sequence *seq, const tensor *dm)
{
    int64_t lowest, highest, bits = dtype_row_of(dm->dtype)->bits;
    sequence_reach(seq, &lowest, &highest);
    return dm->address + (highest * bits + bits + 7) / 8;
}

/* Does the walk stay inside the slice's DM? Padding may be over-read, but not past the end of the memory. */
static void check_reach(pass_context *p, kernel *k, op *o, int64_t end)
{
    if (end <= p->target->dm_bytes_per_slice)
        return;
    diag *d = pass_refuse(p, k, o, PACKET, E_DM_RANGE, "the walk ends at byte %lld of the slice's DM, which has %lld bytes", (long long)end,
                          (long long)p->target->dm_bytes_per_slice);
    diag_help(p->diags, d, "place the tensor lower, or pad the packet less");
}

/* One read returns adjacent bytes, or one element repeated, so types of less than a byte may only begin on one: no loop outside the run
 * may step through a byte. The innermost loop that does; NULL: none. */
static const sequence_part *step_inside_byte(const sequence *seq, int64_t bits)
{
    int64_t run = sequence_run(seq), inside = 1;
    for (size_t i = seq->count; i-- > 0 && bits < 8;) {
        if (inside >= run && seq->parts[i].stride * bits % 8)
            return &seq->parts[i];
        inside *= seq->parts[i].size;
    }
    return NULL;
}

/* What a walk of `buffer` reads: the tensor, or two of them, which the interleaving axis tells apart. Their number. */
static size_t fetch_spaces(pass_context *p, const op *o, const mapping *buffer, sequence_space spaces[2])
{
    const tensor *dm = &op_input(o)->out;
    spaces[0] = spaces[1] = (sequence_space){buffer, 1};
    if (!op_second(o))
        return 1;
    int64_t apart_bits = (op_second(o)->out.address - dm->address) * 8;
    spaces[0] = (sequence_space){mapping_symbol(p->mappings, o->interleave), apart_bits / dtype_row_of(dm->dtype)->bits};
    return 2;
}

static bool names_both(pass_context *p, kernel *k, op *o)
{
    const mapping *time = o->out.part[TIME];
    if (!op_second(o) || mapping_mentions(time, o->interleave))
        return true;
    diag *d = pass_refuse(p, k, o, TIME, E_INTERLEAVE, "Time %s does not name %s, the axis that tells the two tensors apart",
                          pass_text(p, time), o->interleave->name);
    diag_help(p->diags, d, "write %s: it reads a packet of each by turns",
              pass_text(p, pass_pair(p, time, mapping_symbol(p->mappings, o->interleave))));
    return false;
}

/* What is to be known of a walk before it is taken or refused. */
typedef struct fetch_walk {
    sequence seq;
    int64_t run;              /* elements */
    int64_t end_bytes;        /* of the slice's DM */
    const sequence_part *cut; /* steps inside a byte; NULL: none does */
    int64_t access_bytes;     /* 0: there is no access size */
} fetch_walk;

/* False: no table walks it; seq says why. */
static bool fetch_measure(pass_context *p, const op *o, const walk_request *walk, fetch_walk *out)
{
    sequence_space spaces[2];
    const tensor *dm = &op_input(o)->out;
    int64_t bits = dtype_row_of(dm->dtype)->bits;
    bool ok = sequence_derive_stream(p->mappings, spaces, fetch_spaces(p, o, walk->buffer, spaces), walk->beside, walk->time, walk->packet,
                                     SEQUENCE_READ, &out->seq);
    out->run = sequence_run(&out->seq);
    if (!ok || !sequence_fit(p->mappings, &out->seq, sequencer_limits(p->target, 1)))
        return false;
    out->end_bytes = walk_end_bytes(&out->seq, dm);
    out->cut = step_inside_byte(&out->seq, bits);
    out->access_bytes = out->cut ? 0 : fetch_access_bytes(p, o, walk->packet->size * bits, out->run * bits);
    return true;
}

/* Does the packet, after a conversion, fill whole units of 8 bytes? */
static bool packet_is_aligned(const pass_context *p, const op *o, const mapping *packet, int64_t *out_bits)
{
    int64_t multiple = p->target->fetch_packet_multiple_bytes;
    return !__builtin_mul_overflow(packet->size, (int64_t)dtype_row_of(o->out.dtype)->bits, out_bits) && *out_bits % (8 * multiple) == 0;
}

static bool fetch_accepts(pass_context *p, const op *o, const walk_request *walk)
{
    fetch_walk w;
    int64_t out_bits;
    return packet_is_aligned(p, o, walk->packet, &out_bits) && fetch_measure(p, o, walk, &w) &&
           w.end_bytes <= p->target->dm_bytes_per_slice && w.access_bytes > 0;
}

/* Numbers of the launch that say where the view begins: whole bytes, and no farther than the memory. */
static bool start_derive(pass_context *p, kernel *k, op *o, const op *view, int64_t *end_bytes)
{
    int64_t bits = dtype_row_of(view->out.dtype)->bits;
    start_config *c = ARENA_NEW(p->arena, start_config);
    c->count = 0;
    for (const run_start *s = view->starts; s; s = s->outer) {
        diag *d = NULL;
        if (s->stride * bits % 8) {
            d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_ADDRESS, "positions of `%s` are %s apart, which is not whole bytes",
                            mapping_text(s->index, p->arena), arena_count(p->arena, s->stride * bits, "bit"));
            diag_help(p->diags, d, "let what is inside of `%s` have an even number of elements", mapping_text(s->index, p->arena));
            return false;
        }
        if (c->count == START_MAX_NUMBERS) {
            d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_TILE_SPLIT, "more than %d numbers say where this view begins",
                            START_MAX_NUMBERS);
            diag_help(p->diags, d, "copy a tile by some of them to memory of its own, and tile that by the others");
            return false;
        }
        c->numbers[c->count++] = (start_number){s, s->port->out.address, s->stride * bits / 8};
        *end_bytes += (s->positions - 1) * s->stride * bits / 8;
    }
    o->start = c;
    return true;
}

static void fetch_one(pass_context *p, kernel *k, op *o)
{
    const tensor *dm = &op_input(o)->out, *out = &o->out;
    const mapping *buffer = dm->part[ELEMENT], *time = out->part[TIME], *packet = out->part[PACKET];
    if (!adapter_fits(p, k, o))
        return;
    int64_t out_bits, multiple = p->target->fetch_packet_multiple_bytes, bits = dtype_row_of(dm->dtype)->bits;
    if (!packet_is_aligned(p, o, packet, &out_bits)) {
        int64_t elements = elements_of(out->dtype, (out_bits / 8 + multiple) / multiple * multiple);
        diag *d =
            pass_refuse(p, k, o, PACKET, E_FETCH_ALIGN, "Fetch output packet must be 8-byte aligned, got %s", pass_bytes(p, out_bits));
        diag_help(p->diags, d, "pad to %lld%s: %s", (long long)elements, out_bits % 8 ? ", in DM as well" : "",
                  pass_text(p, pass_pad(p, packet, elements)));
        if (out_bits % 8 == 0)
            pass_replace(p, o, d, PACKET, pass_pad(p, packet, elements));
        return;
    }
    if (!names_both(p, k, o) || (o->lift && !lift_derive(p, k, o)))
        return;
    fetch_walk w;
    walk_request walk = {buffer, NULL, time, packet, false};
    if (!fetch_measure(p, o, &walk, &w)) {
        diag *d = pass_refuse(p, k, o, PACKET, sequence_id(&w.seq), "fetch cannot read this order from DM: %s", sequence_reason(p, &w.seq));
        sequence_explain(p, d, &w.seq, buffer, time, packet, remedy_find(p, o, &w.seq, &walk, fetch_accepts));
        return;
    }
    for (uint32_t i = 0; o->lift && i < o->lift->count; i++)
        w.end_bytes += o->lift->digits[i].stride_bytes;
    if (op_input(o)->starts && !start_derive(p, k, o, op_input(o), &w.end_bytes))
        return;
    check_reach(p, k, o, w.end_bytes);
    if (w.cut && !o->bad) {
        diag *d = pass_refuse(p, k, o, PACKET, E_FETCH_SIZE, "a read would begin inside a byte: `%s` steps by %s, %s",
                              mapping_text(w.cut->term, p->arena), arena_count(p->arena, w.cut->stride, "element"),
                              arena_count(p->arena, w.cut->stride * bits, "bit"));
        sequence_explain(p, d, &w.seq, buffer, time, packet, NULL);
        diag_help(p->diags, d, "let every stride but the innermost be a multiple of %s", arena_count(p->arena, 8 / bits, "element"));
        return;
    }
    if (w.access_bytes == 0 && !o->bad) {
        diag *d =
            pass_refuse(p, k, o, PACKET, E_FETCH_SIZE, "no fetch_size of the %s context divides the packet of %s and the run of %s",
                        context_name(o->context), arena_count(p->arena, packet->size * bits / 8, "byte"), pass_bytes(p, w.run * bits));
        diag_help(p->diags, d, "keep at least %s together in DM and in the packet", o->context == CONTEXT_SUB ? "8 bytes" : "one byte");
        return;
    }
    o->sequencer = ARENA_NEW(p->arena, sequencer_config);
    *o->sequencer = (sequencer_config){.walk = WALK_DM_READ,
                                       .base = dm->address,
                                       .packet = packet->size,
                                       .access_bytes = w.access_bytes,
                                       .contiguous_bytes = w.run * bits / 8};
    sequencer_config_fill(o->sequencer, &w.seq, 1);
}

void pass_fetch(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_FETCH, fetch_one);
}
