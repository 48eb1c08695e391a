/* Rules ("TRF Sequencer"). A reg_read_size is a power of two of bytes, at most 64, on which the innermost parts of the TRF Element and of
 * OutPacket agree: the rest of the packet repeats those bytes, so it may not name anything stored. The entries walk OutTime over Element;
 * what is not stored has stride 0. Strides are bytes and multiples of the read. Padding of OutTime may be read from anywhere in the Row's
 * share of the register file. Of all sizes the largest whose walk obeys these rules is taken, and of two that read the same live bytes
 * the smaller: what lies after the innermost run, and how many of the outer axes there are, decides nothing. */
#include "passes/engine/trf_sequencer.h"

#include "passes/remedy.h"

/* Is each run of n lanes the first run over again, for another value of what is outside? A group that does not cut there is not. */
static bool repeats(pass_context *p, const mapping *packet, int64_t n)
{
    return mapping_equal(p->mappings, pass_pair(p, pass_outer(p, packet, n), pass_inner(p, packet, n)), packet);
}

/* Are the first n elements of Element and of OutPacket the same, n filling whole bytes? Padding after Element counts as its own. */
static bool same_front(pass_context *p, const mapping *element, const mapping *packet, int64_t n)
{
    const mapping *padded = element->size % n ? pass_pad(p, element, round_up(element->size, n)) : element;
    const mapping *stored = padded ? pass_inner(p, padded, n) : NULL, *read = packet->size % n == 0 ? pass_inner(p, packet, n) : NULL;
    return stored && read && mapping_equal(p->mappings, stored, read);
}

/* Do they agree on a read of n elements? */
static bool agree(pass_context *p, const mapping *element, const mapping *packet, int64_t n)
{
    return same_front(p, element, packet, n) && repeats(p, packet, n);
}

/* Elements of the first n of a packet that are no padding. */
static int64_t live_elements(pass_context *p, const mapping *packet, int64_t n)
{
    const mapping *read = pass_inner(p, packet, n);
    int64_t live = 1;
    for (size_t i = 0; i < read->count; i++)
        live *= read->factors[i].live;
    return live;
}

/* Does the packet beyond the read ask for stored elements that are not adjacent? */
static const mapping *stored_outside_read(pass_context *p, const mapping *element, const mapping *rest)
{
    sequence seq;
    if (!sequence_derive(p->mappings, element, rest, mapping_identity(p->mappings), SEQUENCE_READ, &seq))
        return seq.term;
    for (size_t i = 0; i < seq.count; i++)
        if (seq.parts[i].stride != 0)
            return seq.parts[i].term;
    return NULL;
}

/* What is to be known of a walk before it is taken or refused. */
typedef struct trf_walk {
    int64_t n;              /* elements of a read; 0: there is no read */
    const mapping *outside; /* stored, asked for in one cycle, and not in the read; NULL: nothing is */
    sequence seq;
    bool fits;                       /* else seq says why not */
    const sequence_part *misaligned; /* its stride is no multiple of the read; NULL: none */
} trf_walk;

/* The entries walk in the order of OutTime alone, since the packet is read at each of its steps: the same for reads of all sizes. */
static trf_walk measure_time(pass_context *p, const op *o, const walk_request *walk)
{
    trf_walk w = {0};
    w.fits = sequence_derive(p->mappings, walk->buffer, walk->time, mapping_identity(p->mappings), SEQUENCE_READ, &w.seq) &&
             sequence_fit(p->mappings, &w.seq, sequencer_limits(p->target, (dtype_row_of(o->out.dtype)->bits + 7) / 8));
    return w;
}

/* The walk of OutTime with a read of n elements. */
static trf_walk measure_size(pass_context *p, const op *o, const walk_request *walk, const trf_walk *time, int64_t n)
{
    trf_walk w = *time;
    w.n = n;
    w.outside = stored_outside_read(p, walk->buffer, pass_outer(p, o->out.part[PACKET], n));
    for (size_t i = 0; !w.outside && w.fits && i < w.seq.count && !w.misaligned; i++)
        w.misaligned = w.seq.parts[i].stride % n ? &w.seq.parts[i] : NULL;
    return w;
}

static bool is_walked(const trf_walk *w)
{
    return w->n > 0 && !w->outside && w->fits && !w->misaligned;
}

/* The size that is taken, or, where none is, the largest on which Element and OutPacket agree: what is wrong with it is reported. */
static trf_walk trf_measure(pass_context *p, const op *o, const walk_request *walk)
{
    const mapping *packet = o->out.part[PACKET];
    int64_t bits = dtype_row_of(o->out.dtype)->bits;
    trf_walk best = {0}, time = measure_time(p, o, walk);
    for (int64_t bytes = p->target->mac_width_bytes; bytes >= 1; bytes /= 2) {
        int64_t n = bytes * 8 / bits;
        if (bytes * 8 % bits || !agree(p, walk->buffer, packet, n))
            continue;
        if (is_walked(&best) && live_elements(p, packet, n) < live_elements(p, packet, best.n))
            break; /* and the smaller ones have no more than this one */
        trf_walk w = measure_size(p, o, walk, &time, n);
        if (best.n == 0 || is_walked(&w))
            best = w;
    }
    return best;
}

static bool trf_accepts(pass_context *p, const op *o, const walk_request *walk)
{
    trf_walk w = trf_measure(p, o, walk);
    return is_walked(&w);
}

/* Does the walk stay in a Row's share of the register file? Padding may be over-read, but not past its end. */
static bool check_reach(pass_context *p, kernel *k, op *o, const trf_walk *w)
{
    int64_t lowest, highest, bits = dtype_row_of(o->out.dtype)->bits;
    const tensor *trf = &op_weights(o)->out;
    sequence_reach(&w->seq, &lowest, &highest);
    int64_t end = (highest + w->n) * bits / 8, share = target_trf_capacity_bytes(p->target, trf->trf_address) / trf->part[ROW]->size;
    if (end <= share)
        return true;
    diag *d = pass_refuse(p, k, o, TIME, E_TRF_CAPACITY,
                          "the walk of OutTime %s ends at byte %lld of a @Row's share of TrfAddress::%s, which has %s with %s",
                          pass_text(p, o->out.part[TIME]), (long long)end, trf_address_name(trf->trf_address),
                          arena_count(p->arena, share, "byte"), arena_count(p->arena, trf->part[ROW]->size, "@Row"));
    diag_help(p->diags, d, "pad OutTime less: the TRF tensor itself has %s per @Row",
              arena_count(p->arena, tensor_unit_bytes(trf), "byte"));
    return false;
}

static void sequence_one(pass_context *p, kernel *k, op *o)
{
    const mapping *element = op_weights(o)->out.part[ELEMENT], *packet = o->out.part[PACKET], *time = o->out.part[TIME];
    walk_request walk = {element, NULL, time, packet, true};
    trf_walk w = trf_measure(p, o, &walk);
    int64_t bits = dtype_row_of(o->out.dtype)->bits, read_bits = w.n * bits;
    if (w.n == 0) {
        diag *d = pass_refuse(p, k, o, PACKET, E_TRF_READ,
                              "no reg_read_size: the innermost parts of the TRF Element %s and of OutPacket %s differ",
                              pass_text(p, element), pass_text(p, packet));
        diag_help(p->diags, d, "store the packet's innermost axis innermost in the TRF");
        return;
    }
    if (w.outside) {
        diag *d = pass_refuse(p, k, o, PACKET, E_TRF_PACKET,
                              "OutPacket %s needs `%s` of the TRF Element %s in one cycle, but the longest read, a power of two of bytes, "
                              "that is contiguous in both has %s",
                              pass_text(p, packet), mapping_text(w.outside, p->arena), pass_text(p, element),
                              arena_count(p->arena, read_bits / 8, "byte"));
        diag_help(p->diags, d, "store the weights in the packet's order, or move `%s` to OutTime", mapping_text(w.outside, p->arena));
        return;
    }
    if (!w.fits) {
        diag *d = pass_refuse(p, k, o, TIME, sequence_id(&w.seq), "the TRF Sequencer cannot walk OutTime: %s", sequence_reason(p, &w.seq));
        sequence_explain(p, d, &w.seq, element, time, packet, remedy_find(p, o, &w.seq, &walk, trf_accepts));
        return;
    }
    if (w.misaligned) {
        int64_t stride_bits = w.misaligned->stride * bits;
        diag *d = pass_refuse(p, k, o, TIME, E_TRF_ALIGN, "the stride of `%s`, %s, is not a multiple of reg_read_size, %s",
                              mapping_text(w.misaligned->term, p->arena), pass_bytes(p, stride_bits),
                              arena_count(p->arena, read_bits / 8, "byte"));
        diag_help(p->diags, d, "pad the TRF Element so that its inner part is a multiple of %s", arena_count(p->arena, w.n, "element"));
        return;
    }
    if (!check_reach(p, k, o, &w))
        return;
    o->align->reg_read_size = read_bits / 8;
    o->align->broadcast = packet->size / w.n;
    sequencer_config *s = &o->align->trf_sequencer;
    *s = (sequencer_config){
        .walk = WALK_TRF_READ, .packet = w.n, .access_bytes = read_bits / 8, .contiguous_bytes = sequence_run(&w.seq) * bits / 8};
    sequencer_config_fill(s, &w.seq, 1);
    for (uint32_t i = 0; i < s->count; i++)
        s->entries[i].stride = s->entries[i].stride * bits / 8;
}

/* ---- for readers ---- */

/* The longest run of whole bytes, of any length, on which both agree; 0: none. */
static int64_t common_bytes(pass_context *p, const mapping *element, const mapping *packet, int64_t bits)
{
    int64_t longest = 0;
    for (int64_t bytes = 1; bytes <= p->target->mac_width_bytes; bytes++)
        if (bytes * 8 % bits == 0 && same_front(p, element, packet, bytes * 8 / bits))
            longest = bytes;
    return longest;
}

/* Why a size is not taken; `taken` is the one that is. */
static const char *verdict(pass_context *p, const op *o, const trf_walk *w, const trf_walk *taken, int64_t bits)
{
    const mapping *packet = o->out.part[PACKET];
    if (w->outside)
        return arena_printf(p->arena, "refused: `%s` of Element is asked for in the same cycle, outside of the read",
                            mapping_text(w->outside, p->arena));
    if (!w->fits)
        return arena_printf(p->arena, "refused: %s", sequence_reason(p, &w->seq));
    if (w->misaligned)
        return arena_printf(p->arena, "refused: the stride of `%s`, %s, is no multiple of the read",
                            mapping_text(w->misaligned->term, p->arena), pass_bytes(p, w->misaligned->stride * bits));
    if (w->n == taken->n)
        return "taken";
    bool less = live_elements(p, packet, w->n) < live_elements(p, packet, taken->n);
    return less ? "legal, fewer live bytes than the one that is taken" : "legal, no more live bytes than the smaller one that is taken";
}

bool trf_sequencer_explain(pass_context *p, const op *o, strbuf *out)
{
    const op *weights = op_weights(o);
    const mapping *packet = o->out.part[PACKET], *time = o->out.part[TIME], *element = weights ? weights->out.part[ELEMENT] : NULL;
    if (!packet || !time || !element || !weights->out.part[ROW] || !dtype_is_operand(o->out.dtype))
        return false;
    int64_t bits = dtype_row_of(o->out.dtype)->bits, lanes = p->target->mac_width_bytes * 8 / bits, rows = weights->out.part[ROW]->size;
    walk_request walk = {element, NULL, time, packet, true};
    trf_walk taken = trf_measure(p, o, &walk), of_time = measure_time(p, o, &walk);
    int64_t common = common_bytes(p, element, packet, bits);
    strbuf_printf(out, "  TRF Element %s, OutPacket %s (%s), OutTime %s\n", pass_text(p, element), pass_text(p, packet),
                  arena_count(p->arena, packet->size * bits / 8, "byte"), pass_text(p, time));
    strbuf_printf(out, "  common run, innermost in both: %s\n", arena_count(p->arena, common, "byte"));
    for (int64_t bytes = p->target->mac_width_bytes; bytes >= 1; bytes /= 2) {
        int64_t n = bytes * 8 / bits;
        if (bytes * 8 % bits)
            continue;
        trf_walk w = {0};
        bool agrees = agree(p, element, packet, n);
        if (agrees)
            w = measure_size(p, o, &walk, &of_time, n);
        strbuf_printf(out, "  reg_read_size %2lld: %s\n", (long long)bytes,
                      agrees ? verdict(p, o, &w, &taken, bits) : "refused: Element and OutPacket do not agree on so many bytes");
    }
    if (is_walked(&taken)) {
        int64_t live = live_elements(p, packet, taken.n);
        strbuf_printf(out, "  of each read %lld of %s are live, %lld padding; it is repeated x%lld over the packet\n",
                      (long long)(live * bits / 8), arena_count(p->arena, taken.n * bits / 8, "byte"),
                      (long long)((taken.n - live) * bits / 8), (long long)(packet->size / taken.n));
    }
    int64_t used = packet->size <= lanes ? live_elements(p, packet, packet->size) * rows : 0, all = lanes * p->target->rows;
    if (used > 0)
        strbuf_printf(out, "  multipliers: %s x %lld %s of %lld x %lld have data, %.1f %%\n", arena_count(p->arena, used / rows, "lane"),
                      (long long)rows, rows == 1 ? "Row" : "Rows", (long long)lanes, (long long)p->target->rows,
                      100.0 * (double)used / (double)all);
    return true;
}

void pass_trf_sequencer(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_ALIGN, sequence_one);
}
