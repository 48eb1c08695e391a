/* Rule ("Commit Engine"): each 32-byte flit is truncated to commit_in_size bytes, which the loops write to DM; one write (commit_size)
 * divides the truncated flit and the run of addresses. A cast narrows what was kept, so that the loops write elements of half the size;
 * what it leaves is in whole units of 8 bytes, too. commit_trim says what is kept of a packet: its front, live elements or not. */
#include "passes/pass.h"

static bool is_commit_width(const target *t, int64_t bytes)
{
    return bytes > 0 && bytes <= t->commit_max_bytes && bytes % t->commit_multiple_bytes == 0;
}

/* The live front of the packet in whole units of 8 bytes: what may always be kept of a flit. */
static const mapping *packet_front(pass_context *p, const op *o)
{
    const tensor *in = &op_input(o)->out;
    int64_t unit = p->target->commit_multiple_bytes * 8 / dtype_row_of(in->dtype)->bits;
    const mapping *live = mapping_strip_padding(p->mappings, in->part[PACKET]), *kept = NULL;
    int64_t size = (live->size + unit - 1) / unit * unit;
    return mapping_resize(p->mappings, in->part[PACKET], size, &kept) == MAPPING_OK ? kept : NULL;
}

static void help_trim(pass_context *p, const op *o, diag *d, const char *what, const mapping *packet)
{
    diag_help(p->diags, d, "%s@commit_trim::<%s>()", what, pass_text(p, packet));
    pass_replace(p, o->trim, d, PACKET, packet);
}

/* Does the machine narrow so on the way to DM, and in which context? ("Commit Adapter", Type Casting) */
static bool cast_fits(pass_context *p, kernel *k, op *o)
{
    const commit_cast_config *c = o->commit_cast;
    dtype from = op_input(o)->out.dtype;
    const char *name = c->relu ? "commit_cast_relu" : "commit_cast";
    diag *d;
    if (!target_converts(ENGINE_ID_COMMIT, from, c->to)) {
        d = pass_refuse_at(p, k, o, c->range, E_COMMIT_CAST, "the Commit Adapter cannot cast `%s` to `%s`", dtype_row_of(from)->name,
                           dtype_row_of(c->to)->name);
        const mapping *in = pass_pad(p, o->trim->out.part[PACKET], elements_of(c->to, p->target->flit_bytes));
        if (target_converts(ENGINE_ID_CAST, from, c->to) && in)
            diag_help(p->diags, d,
                      "narrow to anything but bf16 in the Cast Engine: instead of %s write cast::<%s, %s>() in front of commit_trim", name,
                      dtype_row_of(c->to)->name, pass_text(p, in));
        else
            diag_help(p->diags, d, "%s converts only `f32` to `bf16`", name);
        return false;
    }
    if (o->context != CONTEXT_MAIN) {
        d = pass_refuse_at(p, k, o, c->range, E_CONTEXT, "`%s` runs in the main context, and this stream began in the %s context", name,
                           context_name(o->context));
        diag_help(p->diags, d, "begin in @ctx.main");
        return false;
    }
    int64_t unit = p->target->commit_multiple_bytes * dtype_row_of(from)->bits / dtype_row_of(c->to)->bits;
    int64_t bytes = dtype_bytes(from, o->trim->out.part[PACKET]->size);
    if (bytes % unit == 0)
        return true;
    d = pass_refuse_at(p, k, o, c->range, E_COMMIT_CAST,
                       "%s input packet is %lld B, not a multiple of %lld B; re-trim it to one of [16, 32] B", name, (long long)bytes,
                       (long long)unit);
    const mapping *packet = NULL;
    if (mapping_resize(p->mappings, op_input(o)->out.part[PACKET], elements_of(from, bytes < unit ? unit : 2 * unit), &packet) ==
        MAPPING_OK)
        help_trim(p, o, d, "write ", packet);
    return false;
}

/* Elements kept of each flit: what one time step owns of Element where that is a legal width; otherwise the live front of
 * the packet, rounded up to 8 bytes (chunked commits). 0: neither is legal. */
static int64_t commit_elements(pass_context *p, const op *o)
{
    const tensor *in = &op_input(o)->out;
    int64_t owned = o->out.part[ELEMENT]->size % in->part[TIME]->size ? 0 : o->out.part[ELEMENT]->size / in->part[TIME]->size;
    if (is_commit_width(p->target, dtype_bytes(in->dtype, owned)) && owned <= in->part[PACKET]->size)
        return owned;
    const mapping *front = packet_front(p, o);
    return front ? front->size : 0;
}

/* Bytes of Element that one time step owns; -1: no whole number of them. */
static int64_t owned_bytes(const op *o)
{
    const tensor *in = &op_input(o)->out;
    int64_t elements = o->out.part[ELEMENT]->size, steps = in->part[TIME]->size;
    return elements % steps ? -1 : dtype_bytes(in->dtype, elements / steps);
}

/* Is what one time step owns a single block, the packet with more padding than a flit has? Blocks are 8, 16, 24 or 32 bytes; what is
 * chunked, W # 16 of a packet M, W, is several. (Blocks of other than whole units of 8 bytes have a stride to refuse.) */
static bool block_is_too_wide(pass_context *p, kernel *k, op *o)
{
    int64_t owned = owned_bytes(o);
    const mapping *element = o->out.part[ELEMENT], *time = op_input(o)->out.part[TIME], *front = packet_front(p, o);
    if (op_into(o) || owned <= p->target->commit_max_bytes || owned % p->target->commit_multiple_bytes || !front)
        return false;
    int64_t step = element->size / time->size;
    const mapping *block = pass_inner(p, element, step);
    if (!block || front->size > step || !mapping_equal(p->mappings, block, pass_pad(p, front, step)))
        return false;
    diag *d = pass_refuse(p, k, o, ELEMENT, E_COMMIT_WIDTH,
                          "Commit output packet must be one of [8, 16, 24, 32] bytes, got %lld: each step of Time %s owns %s of %s",
                          (long long)owned, pass_text(p, time), pass_text(p, block), pass_text(p, element));
    pass_help_part(p, o, d, ELEMENT, pass_pair(p, time, front), "declare the destination with at most a flit per step: Element");
    return true;
}

/* Does Time alone, whatever the packet, have a place in Element? What Time leaves unwritten is the packet's. */
static bool time_has_a_place(pass_context *p, const mapping *element, const mapping *time, sequence *seq)
{
    return sequence_derive(p->mappings, element, time, mapping_identity(p->mappings), SEQUENCE_WRITE, seq) ||
           seq->failure == SEQUENCE_UNWRITTEN;
}

/* The walk is right, but the table has no room for it. */
static bool does_not_fit(const sequence *seq)
{
    return seq->failure == SEQUENCE_ENTRIES || seq->failure == SEQUENCE_ENTRY_SIZE || seq->failure == SEQUENCE_STRIDE;
}

/* The destination in the stream's own order, which is always accepted: for a help line. NULL: it is not free, or there is none. */
static const mapping *own_order(pass_context *p, const op *o)
{
    const mapping *front = op_into(o) ? NULL : o->trim ? o->trim->out.part[PACKET] : packet_front(p, o);
    return front ? pass_pair(p, op_input(o)->out.part[TIME], front) : NULL;
}

/* Advice, and what would be accepted. */
static void help_element(pass_context *p, const op *o, diag *d, const char *advice, const mapping *accepted)
{
    diag_help(p->diags, d, "%s%s%s", advice, accepted ? "; accepted: Element " : "", accepted ? pass_text(p, accepted) : "");
    if (accepted)
        pass_replace(p, o, d, ELEMENT, accepted);
}

/* Less of each packet than commit_trim keeps, which Element has room for; NULL: it is not that. */
static const mapping *smaller_trim(pass_context *p, const op *o)
{
    const tensor *in = &op_input(o)->out;
    int64_t unit = p->target->commit_multiple_bytes * 8 / dtype_row_of(in->dtype)->bits;
    for (int64_t kept = o->trim ? o->trim->out.part[PACKET]->size - unit : 0; kept > 0; kept -= unit) {
        const mapping *packet = NULL;
        sequence seq;
        if (mapping_resize(p->mappings, in->part[PACKET], kept, &packet) == MAPPING_OK &&
            sequence_derive(p->mappings, o->out.part[ELEMENT], in->part[TIME], packet, SEQUENCE_WRITE, &seq) &&
            sequence_fit(p->mappings, &seq, sequencer_limits(p->target, 1)))
            return packet;
    }
    return NULL;
}

static void commit_mismatch(pass_context *p, kernel *k, op *o, const sequence *seq, const mapping *packet)
{
    const tensor *in = &op_input(o)->out;
    const mapping *element = o->out.part[ELEMENT], *time = in->part[TIME];
    int64_t owned = owned_bytes(o);
    sequence time_alone;
    bool time_fits = time_has_a_place(p, element, time, &time_alone);
    const char *reason = sequence_reason(p, time_fits ? seq : &time_alone);
    const mapping *smaller = op_into(o) ? NULL : smaller_trim(p, o);
    diag *d;
    if (does_not_fit(seq))
        d = pass_refuse(p, k, o, ELEMENT, sequence_id(seq), "commit cannot write this order to DM: %s", reason);
    else if (time_fits && owned > 0 && !is_commit_width(p->target, owned))
        d = pass_refuse(p, k, o, ELEMENT, E_COMMIT_WIDTH, "Commit output packet must be one of [8, 16, 24, 32] bytes, got %lld: %s",
                        (long long)owned, reason);
    else if (!smaller &&
             (!time_fits || (seq->term && (packet->size == 1 || !mapping_mentions(packet, seq->axis ? seq->axis : (const axis *)p)))))
        d = pass_refuse(p, k, o, ELEMENT, E_COMMIT_TIME, "Commit output Time of %s is not a valid transpose of the input Time %s: %s",
                        pass_text(p, element), pass_text(p, time), reason);
    else
        d = pass_refuse(p, k, o, ELEMENT, E_COMMIT_PACKET, "Commit packet mismatch: packet %s into %s: %s", pass_text(p, in->part[PACKET]),
                        pass_text(p, element), reason);
    sequence_explain(p, d, time_fits ? seq : &time_alone, element, time, packet, NULL);
    if (smaller) {
        help_trim(p, o, d, "Element has room for less of each packet: write ", smaller);
        return;
    }
    const mapping *good = does_not_fit(seq) || seq->failure >= SEQUENCE_WINDOW_WRITE ? NULL : own_order(p, o);
    if (good) {
        pass_help_part(p, o, d, ELEMENT, good, "declare the destination with exactly the stream's digits and padding: Element");
    }
}

/* All byte strides but the innermost, and the base, are multiples of 8. */
static bool commit_strides_aligned(pass_context *p, kernel *k, op *o, const sequence *seq, const mapping *packet)
{
    int64_t multiple = p->target->commit_multiple_bytes, bits = dtype_row_of(o->out.dtype)->bits;
    for (size_t i = 0; i + 1 < seq->count; i++)
        if (seq->parts[i].stride * bits % (8 * multiple)) {
            diag *d = pass_refuse(p, k, o, ELEMENT, E_COMMIT_STRIDE, "commit stride of `%s` is %s, not a multiple of %s",
                                  mapping_text(seq->parts[i].term, p->arena), pass_bytes(p, seq->parts[i].stride * bits),
                                  arena_count(p->arena, multiple, "byte"));
            if (!is_commit_width(p->target, owned_bytes(o)))
                diag_note(p->diags, d, SRC_NOWHERE, "Commit output packet must be one of [8, 16, 24, 32] bytes, got %lld",
                          (long long)owned_bytes(o));
            sequence_explain(p, d, seq, o->out.part[ELEMENT], op_input(o)->out.part[TIME], packet, NULL);
            help_element(p, o, d,
                         arena_printf(p->arena, "pad the innermost axis of Element to a multiple of %s",
                                      arena_count(p->arena, 8 * multiple / bits, "element")),
                         own_order(p, o));
            return false;
        }
    if (o->out.address % multiple) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_COMMIT_STRIDE, "commit address %lld is not a multiple of %s",
                              (long long)o->out.address, arena_count(p->arena, multiple, "byte"));
        diag_help(p->diags, d, "use %lld", (long long)((o->out.address + multiple - 1) / multiple * multiple));
        return false;
    }
    return true;
}

/* Is what commit_trim keeps the front of the packet, of a legal width? */
static bool trim_fits(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    const mapping *wanted = o->trim->out.part[PACKET], *front = NULL;
    int64_t bytes = dtype_bytes(in->dtype, wanted->size);
    diag *d;
    if (!is_commit_width(p->target, bytes)) {
        d = pass_refuse_at(p, k, o, op_part_range(o->trim, PACKET), E_COMMIT_WIDTH,
                           "@commit_trim output packet must be one of [8, 16, 24, 32] bytes, got %lld", (long long)bytes);
        const mapping *whole = packet_front(p, o);
        if (whole)
            help_trim(p, o, d, "the live elements in whole units of 8 bytes are ", whole);
        return false;
    }
    if (mapping_resize(p->mappings, in->part[PACKET], wanted->size, &front) == MAPPING_OK && mapping_equal(p->mappings, front, wanted))
        return true;
    d = pass_refuse_at(p, k, o, op_part_range(o->trim, PACKET), E_COMMIT_PACKET,
                       "@commit_trim packet mismatch: %s is not the packet %s or a trimming of it", pass_text(p, wanted),
                       pass_text(p, in->part[PACKET]));
    if (front)
        help_trim(p, o, d, "so many elements of it are ", front);
    return false;
}

/* Would it be legal if the padding `#{!}` of the destination might be written? */
static bool writes_guarded(pass_context *p, kernel *k, op *o, const mapping *packet)
{
    const mapping *declared = op_into(o) ? op_root(op_into(o))->out.part[ELEMENT] : o->out.part[ELEMENT];
    const mapping *plain = declared ? mapping_plain_padding(p->mappings, declared) : NULL;
    sequence seq;
    if (plain == declared || !sequence_derive(p->mappings, mapping_plain_padding(p->mappings, o->out.part[ELEMENT]),
                                              op_input(o)->out.part[TIME], packet, SEQUENCE_WRITE, &seq))
        return false;
    diag *d = pass_refuse(p, k, o, ELEMENT, E_PAD_WRITE, "commit writes %s of each packet, and reaches into padding `#{!}` of m![%s]",
                          pass_text(p, packet), mapping_text(declared, p->arena));
    diag_help(p->diags, d, "declare padding that may be written: m![%s]", mapping_text(plain, p->arena));
    pass_replace(p, op_into(o) ? op_root(op_into(o)) : o, d, ELEMENT, plain);
    return true;
}

/* What memset writes: all of the memory, 8 bytes at a time (passes/engine/generate.c). */
static void commit_generated(pass_context *p, op *o)
{
    const mapping *element = o->out.part[ELEMENT];
    int64_t unit = p->target->commit_multiple_bytes, each = elements_of(o->out.dtype, unit), steps = element->size / each;
    o->sequencer = ARENA_NEW(p->arena, sequencer_config);
    *o->sequencer = (sequencer_config){
        .walk = WALK_DM_WRITE, .base = o->out.address, .packet = each, .access_bytes = unit, .contiguous_bytes = steps * unit};
    if (steps > 1)
        o->sequencer->entries[o->sequencer->count++] = (sequencer_entry){.term = element, .size = steps, .stride = each};
    o->sequencer->entries[o->sequencer->count++] = (sequencer_entry){.term = element, .size = each, .stride = 1};
    o->commit = ARENA_NEW(p->arena, commit_config);
    *o->commit = (commit_config){.commit_in_bytes = unit, .commit_bytes = unit};
}

static void commit_one(pass_context *p, kernel *k, op *o)
{
    if (op_input(o)->kind == IR_GENERATE && o->out.address % p->target->commit_multiple_bytes == 0) {
        commit_generated(p, o);
        return;
    }
    const tensor *in = &op_input(o)->out;
    const mapping *element = o->out.part[ELEMENT];
    int64_t bits = dtype_row_of(o->out.dtype)->bits, in_bytes = dtype_bytes(in->dtype, in->part[PACKET]->size);
    if (in_bytes != p->target->flit_bytes) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_COMMIT_FLIT,
                              "Commit input packet must be exactly 32 bytes (one flit), got %lld", (long long)in_bytes);
        if (op_input(o)->kind == IR_FETCH)
            diag_help(p->diags, d, "put .collect() in front of commit: it pads and cuts packets to flits");
        else if (in_bytes >= 0 && in_bytes < p->target->flit_bytes)
            diag_help(p->diags, d, "pad the packet to %lld bytes: %s", (long long)p->target->flit_bytes,
                      pass_text(p, pass_pad(p, in->part[PACKET], elements_of(in->dtype, p->target->flit_bytes))));
        else
            diag_help(p->diags, d, "keep %lld elements of the packet, and let Time count the rest",
                      (long long)elements_of(in->dtype, p->target->flit_bytes));
        return;
    }
    if (o->trim ? !trim_fits(p, k, o) : block_is_too_wide(p, k, o))
        return;
    if (o->commit_cast && !cast_fits(p, k, o))
        return;
    int64_t kept = o->trim ? o->trim->out.part[PACKET]->size : commit_elements(p, o);
    sequence seq = {.failure = SEQUENCE_OUTSIDE};
    const mapping *packet = in->part[PACKET];
    bool ok = kept > 0 && mapping_resize(p->mappings, packet, kept, &packet) == MAPPING_OK &&
              sequence_derive(p->mappings, op_into(o) && op_into(o)->guard ? op_into(o)->guard : element, in->part[TIME], packet,
                              SEQUENCE_WRITE, &seq);
    int64_t run = sequence_run(&seq);
    if (!ok && kept > 0 && writes_guarded(p, k, o, packet))
        return;
    if (!ok || !sequence_fit(p->mappings, &seq, sequencer_limits(p->target, 1))) {
        commit_mismatch(p, k, o, &seq, packet);
        return;
    }
    int64_t kept_bytes = kept * bits / 8, multiple = p->target->commit_multiple_bytes;
    int64_t access = o->context == CONTEXT_SUB ? multiple : gcd(run * bits / 8, kept_bytes);
    if (run * bits % (8 * multiple) || access % multiple) {
        diag *d = pass_refuse(p, k, o, ELEMENT, E_COMMIT_STRIDE, "commit writes runs of %s; a write is 8, 16, 24 or 32 bytes",
                              pass_bytes(p, run * bits));
        sequence_explain(p, d, &seq, element, in->part[TIME], packet, NULL);
        help_element(p, o, d,
                     arena_printf(p->arena, "keep at least %s of the packet together in Element",
                                  arena_count(p->arena, 8 * multiple / bits, "element")),
                     own_order(p, o));
        return;
    }
    if (!commit_strides_aligned(p, k, o, &seq, packet))
        return;
    o->sequencer = ARENA_NEW(p->arena, sequencer_config);
    *o->sequencer = (sequencer_config){
        .walk = WALK_DM_WRITE, .base = o->out.address, .packet = kept, .access_bytes = access, .contiguous_bytes = run * bits / 8};
    sequencer_config_fill(o->sequencer, &seq, 1);
    o->commit = ARENA_NEW(p->arena, commit_config);
    if (op_input(o)->kind == IR_FETCH && !o->repeated) {
        diag *d = diag_add(p->diags, W_NO_COLLECT, o->range, "commit takes what fetch gives, without collect: only April does");
        diag_help(p->diags, d, "put .collect() in front of it: a packet of 32 bytes is a flit already");
    }
    *o->commit = (commit_config){.commit_in_bytes = dtype_bytes(in->dtype, kept), .commit_bytes = access};
}

void pass_commit(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_COMMIT, commit_one);
}
