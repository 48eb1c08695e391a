/* Rule ("TRF Sequencer", to_trf): the outermost part of Time becomes Row, what remains of Time and the Packet become
 * Element. Flit k goes to Row k / flits_per_row. The store is a short command when the whole load is one contiguous run
 * ("SRAM-to-TRF"): same type in the stream and in the TRF, no padding added, and the fetch is a single loop of stride 1 over the whole
 * tensor. */
#include "passes/pass.h"

static bool is_row_count(const target *t, int64_t rows)
{
    return rows >= 1 && rows <= t->rows && (rows & (rows - 1)) == 0;
}

/* Is the load that feeds this store one run of addresses? */
static bool is_contiguous(const op *store)
{
    const op *collect = op_input(store), *fetch = collect->kind == IR_COLLECT ? op_input(collect) : NULL;
    if (!fetch || fetch->kind != IR_FETCH || !fetch->sequencer || !collect->collect || collect->collect->pad_bytes)
        return false;
    const tensor *dm = &op_input(fetch)->out;
    return fetch->out.dtype == dm->dtype && fetch->sequencer->contiguous_bytes == tensor_unit_bytes(dm) &&
           fetch->sequencer->contiguous_bytes == dtype_bytes(dm->dtype, fetch->out.part[TIME]->size * fetch->out.part[PACKET]->size);
}

/* The outermost positions of Time that are the Row when they are padded; NULL: none are. *inner: what remains. */
static const mapping *time_for_row(pass_context *p, const mapping *time, const mapping *row, const mapping **inner)
{
    for (int64_t n = row->size; n > 0; n--) {
        const mapping *outer = time->size % n == 0 ? pass_outer(p, time, time->size / n) : NULL;
        const mapping *padded = outer ? pass_pad(p, outer, row->size) : NULL;
        if (padded && mapping_equal(p->mappings, padded, row)) {
            *inner = pass_inner(p, time, time->size / n);
            return padded;
        }
    }
    return NULL;
}

/* Row outermost in Time: reported at the stage that chooses Time, since collect takes it as it comes. `instead`: it is another Row than
 * that of the tensor. */
static void help_outermost(pass_context *p, diag *d, const op *o, const mapping *row, bool instead)
{
    const op *from = op_input(o);
    while (from->kind != IR_FETCH && from->kind != IR_SWITCH && op_input(from))
        from = op_input(from);
    bool chooses = from->kind == IR_FETCH || from->kind == IR_SWITCH;
    const char *verb = from->kind == IR_FETCH ? "fetch" : from->kind == IR_SWITCH ? "switch" : "collect";
    const mapping *time = chooses ? from->out.part[TIME] : op_input(o)->out.part[TIME], *inner;
    const mapping *outer = time_for_row(p, time, row, &inner), *wanted = outer && chooses ? pass_pair(p, outer, inner) : NULL;
    const char *first = instead ? arena_printf(p->arena, "let @Row be %s, and ", pass_text(p, row)) : "";
    const char *last = "";
    if (wanted)
        last = arena_printf(p->arena, ": %s", pass_text(p, wanted));
    else if (!instead && time->size % row->size)
        last = arena_printf(p->arena, ", which is %s", pass_text(p, time));
    diag_help(p->diags, d, "%s%s with %s outermost in Time%s", first, verb, instead ? "it" : mapping_text(row, p->arena), last);
    if (wanted)
        pass_replace(p, from, d, TIME, wanted);
    if (wanted && instead)
        pass_replace(p, o, d, ROW, row);
}

/* As many Rows as the stream's Time can be parted into, and what is left as Element. Which of padded Rows are left out is a choice, and
 * what would be stored of them is nothing that a stream asks for: none is spelt. */
static void help_fewer(pass_context *p, const op *o, diag *d)
{
    const tensor *in = &op_input(o)->out;
    const mapping *time = in->part[TIME];
    int64_t rows = p->target->rows;
    while (time->size % rows)
        rows /= 2;
    int64_t left = time->size / rows;
    const mapping *row = pass_outer(p, time, left), *element = pass_pair(p, pass_inner(p, time, left), in->part[PACKET]);
    if (row && element && mapping_is_full(time)) {
        pass_help_parts(p, o, d, "write", (written_part){ROW, "@Row", row}, (written_part){ELEMENT, "Element", element});
    } else
        diag_help(p->diags, d, "let %lld of it be @Row and the rest Element or time", (long long)p->target->rows);
}

static diag *check_store(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out, *out = &o->out;
    const mapping *row = out->part[ROW], *element = out->part[ELEMENT], *time = in->part[TIME];
    const char *type = dtype_row_of(in->dtype)->name;
    if (dtype_row_of(in->dtype)->trf_reg_type < 0) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_TRF_TYPE, "%s elements cannot be stored in the TRF", type);
        diag_help(p->diags, d, "it stores i4, i8, f8e4m3, f8e5m2 and bf16; fetch converts f32 to bf16");
        return d;
    }
    if (!is_row_count(p->target, row->size)) {
        diag *d = pass_refuse(p, k, o, ROW, E_TRF_ROWS, "@Row::SIZE must be %s, got %lld from %s", pass_row_counts(p), (long long)row->size,
                              pass_text(p, row));
        int64_t next = 1;
        while (next < row->size && next < p->target->rows)
            next *= 2;
        if (row->size < next)
            help_outermost(p, d, o, pass_pad(p, row, next), true);
        else
            help_fewer(p, o, d);
        return d;
    }
    int64_t packet_bytes = dtype_bytes(in->dtype, in->part[PACKET]->size);
    if (packet_bytes != p->target->flit_bytes) { /* of a parameter: what collect gives is checked there */
        diag *d =
            pass_refuse(p, k, o, MAPPING_COMPONENTS, E_COLLECT_FLIT, "to_trf stores flits of %lld bytes, got a packet of %s from %s",
                        (long long)p->target->flit_bytes, arena_count(p->arena, packet_bytes, "byte"), pass_text(p, in->part[PACKET]));
        diag_help(p->diags, d, "let the packet be %lld elements", (long long)elements_of(in->dtype, p->target->flit_bytes));
        return d;
    }
    int64_t per_row = tensor_unit_bytes(out), capacity = target_trf_capacity_bytes(p->target, out->trf_address);
    if (per_row < 0) {
        diag *d = pass_refuse(p, k, o, ELEMENT, E_COLLECT_BYTES, "%lld %s elements per @Row are not a whole number of bytes",
                              (long long)element->size, type);
        diag_help(p->diags, d, "store an even number of elements per @Row");
        return d;
    }
    if (per_row > capacity / row->size) {
        diag *d = pass_refuse(p, k, o, ELEMENT, E_TRF_CAPACITY,
                              "TRF data (%lld bytes = %lld rows x %lld bytes) exceeds register file capacity (%lld bytes for "
                              "TrfAddress::%s)",
                              (long long)(per_row * row->size), (long long)row->size, (long long)per_row, (long long)capacity,
                              trf_address_name(out->trf_address));
        if (out->trf_address != TRF_FULL && per_row <= p->target->trf_bytes / row->size)
            diag_help(p->diags, d, "TrfAddress::Full holds it");
        else
            diag_help(p->diags, d, "store at most %lld elements per @Row at a time",
                      (long long)elements_of(out->widened ? DTYPE_I8 : in->dtype, capacity / row->size));
        return d;
    }
    if (time->size % row->size) {
        bool more = row->size > time->size;
        diag *d =
            pass_refuse(p, k, o, ROW, E_TRF_ROW_TIME,
                        more ? "@Row::SIZE must be <= Time::SIZE, got %lld > %lld" : "@Row::SIZE (%lld) does not divide Time::SIZE (%lld)",
                        (long long)row->size, (long long)time->size);
        help_outermost(p, d, o, row, false);
        return d;
    }
    const mapping *outer = pass_outer(p, time, time->size / row->size), *inner = pass_inner(p, time, time->size / row->size);
    if (!mapping_equal(p->mappings, outer, row)) {
        diag *d = pass_refuse(p, k, o, ROW, E_TRF_ROW,
                              "`to_trf` row mismatch: time_outer != @Row: the outermost part of Time %s is %s, @Row is %s",
                              pass_text(p, time), pass_text(p, outer), pass_text(p, row));
        help_outermost(p, d, o, row, false);
        return d;
    }
    const mapping *rest = pass_pair(p, inner, in->part[PACKET]);
    if (rest && !mapping_equal(p->mappings, rest, element)) {
        diag *d = pass_refuse(p, k, o, ELEMENT, E_TRF_ELEMENT, "Element %s is not what remains of the stream inside @Row, which is %s",
                              pass_text(p, element), pass_text(p, rest));
        pass_help_part(p, o, d, ELEMENT, rest, "declare the TrfTensor with Element");
        return d;
    }
    return NULL;
}

static void store_one(pass_context *p, kernel *k, op *o)
{
    if (check_store(p, k, o))
        return;
    int64_t rows = o->out.part[ROW]->size;
    o->to_trf = ARENA_NEW(p->arena, to_trf_config);
    *o->to_trf = (to_trf_config){.rows = rows,
                                 .bytes_per_row = tensor_unit_bytes(&o->out),
                                 .flits_per_row = op_input(o)->out.part[TIME]->size / rows,
                                 .reg_type = tensor_reg_type(&o->out),
                                 .short_command = !o->out.widened && is_contiguous(o)};
}

void pass_trf_store(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_TO_TRF, store_one);
}
