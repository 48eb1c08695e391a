/* Rule ("Transpose Engine"): Time is [outer, in_rows, packets_per_col], and the first valid_size elements of Packet are live or padding.
 * A block is in_rows x in_cols elements, in_cols = packets_per_col x valid_size; the first out_rows of its columns leave, each as a packet
 * of in_rows elements. So OutTime is [outer, the first out_rows positions of [packets_per_col, Packet % valid_size]], and OutPacket is
 * in_rows with padding after it.
 *
 * The numbers are few (in_rows is at least the live part of OutPacket), so each is tried: cutting the stream there must give back the
 * stream, and what follows from the cut must be what is declared. Sizes of axes do not matter. */
#include "passes/pass.h"

/* A block, and the stream cut into blocks. */
typedef struct turn {
    int64_t valid_size, in_rows, packets_per_col, out_rows;
    const mapping *outer, *row, *step; /* Time: blocks, rows of one, flits of a row */
} turn;

enum { STEPS_SEEN = 64 }; /* flits of a row that a refusal looks for */

static int64_t in_cols(const turn *t)
{
    return t->packets_per_col * t->valid_size;
}

/* The elements of a flit that are read: no more than the least number, where that is all that is live. 0: there are live ones after any. */
static int64_t valid_size(pass_context *p, const tensor *in)
{
    unsigned bits = dtype_row_of(in->dtype)->bits;
    const mapping *packet = in->part[PACKET];
    for (int64_t n = bits == 4 ? 16 : 8; n <= 16 && n <= packet->size; n *= 2) {
        const mapping *first = pass_inner(p, packet, n), *padded = first ? pass_pad(p, first, packet->size) : NULL;
        if (padded && mapping_equal(p->mappings, padded, packet))
            return n;
    }
    return 0;
}

/* Cuts Time for these numbers; false: it is no stream of such blocks. Where no column after the first flit of a row leaves, the others may
 * hold anything. */
static bool cut_time(pass_context *p, const mapping *time, turn *t)
{
    if (time->size % t->packets_per_col || time->size / t->packets_per_col % t->in_rows)
        return false;
    const mapping *above = pass_outer(p, time, t->packets_per_col);
    t->step = pass_inner(p, time, t->packets_per_col);
    t->outer = above ? pass_outer(p, above, t->in_rows) : NULL;
    t->row = above ? pass_inner(p, above, t->in_rows) : NULL;
    const mapping *blocks = t->step && t->outer && t->row ? pass_pair(p, t->outer, t->row) : NULL;
    if (!blocks || !mapping_equal(p->mappings, blocks, above))
        return false;
    const mapping *all = pass_pair(p, blocks, t->step);
    return t->out_rows <= t->valid_size || (all && mapping_equal(p->mappings, all, time));
}

/* The columns that leave each block by the size of OutTime; more than there are: no whole number. */
static int64_t columns_left(const op *o, const turn *t)
{
    int64_t block = t->in_rows * t->packets_per_col, blocks = op_input(o)->out.part[TIME]->size / block, size = o->out.part[TIME]->size;
    return blocks == 0 || size % blocks ? INT64_MAX : size / blocks;
}

/* The same, and its rows are the elements of the packet that is declared. */
static bool cut_rows(pass_context *p, const op *o, turn *t)
{
    const mapping *packet = o->out.part[PACKET];
    t->out_rows = columns_left(o, t);
    if (!cut_time(p, op_input(o)->out.part[TIME], t))
        return false;
    const mapping *rows = pass_pad(p, t->row, packet->size);
    return rows && mapping_equal(p->mappings, rows, packet);
}

/* The first `count` columns of a block. */
static const mapping *columns(pass_context *p, const op *o, const turn *t, int64_t count)
{
    const mapping *lanes = pass_inner(p, op_input(o)->out.part[PACKET], t->valid_size), *all = lanes ? pass_pair(p, t->step, lanes) : NULL,
                  *first = NULL;
    return all && mapping_resize(p->mappings, all, count, &first) == MAPPING_OK ? first : NULL;
}

static const mapping *turned_time(pass_context *p, const op *o, const turn *t, int64_t out_rows)
{
    const mapping *first = columns(p, o, t, out_rows);
    return first ? pass_pair(p, t->outer, first) : NULL;
}

/* Does the cut give the Time that is declared? Then out_rows is set. */
static bool cut_fits(pass_context *p, const op *o, turn *t)
{
    const mapping *time = o->out.part[TIME];
    t->out_rows = time->size / t->outer->size;
    if (time->size % t->outer->size)
        return false;
    const mapping *turned = turned_time(p, o, t, t->out_rows);
    return turned && mapping_equal(p->mappings, turned, time);
}

/* Of elements of 4 bits a flit gives 16 at least. */
static bool is_legal_width(const turn *t)
{
    return in_cols(t) == 8 || in_cols(t) == 16 || in_cols(t) == 32;
}

static int64_t most_rows(pass_context *p, const tensor *t)
{
    return elements_of(t->dtype, p->target->transpose_row_bytes);
}

/* ---- refusals, in the published order ---- */

static const char *type_name(const tensor *t)
{
    return dtype_row_of(t->dtype)->name;
}

/* What is accepted: the stream in blocks like these, with all that is live. */
static void help_write(pass_context *p, diag *d, const op *o, const turn *t)
{
    const mapping *lanes = pass_inner(p, op_input(o)->out.part[PACKET], t->valid_size);
    int64_t live = lanes && t->packets_per_col == 1 ? mapping_strip_padding(p->mappings, lanes)->size : in_cols(t);
    const mapping *time = turned_time(p, o, t, live), *packet = pass_pad(p, t->row, elements_of(o->out.dtype, p->target->flit_bytes));
    if (!time || !packet)
        return;
    diag_help(p->diags, d, "write transpose::<%s, %s>()", pass_text(p, time), pass_text(p, packet));
    if (!mapping_equal(p->mappings, o->out.part[TIME], time))
        pass_replace(p, o, d, TIME, time);
    if (!mapping_equal(p->mappings, o->out.part[PACKET], packet))
        pass_replace(p, o, d, PACKET, packet);
}

/* The largest block of rows that Time ends in, one flit each. */
static void help_innermost(pass_context *p, diag *d, const op *o, int64_t valid)
{
    turn t = {.valid_size = valid, .packets_per_col = 1};
    for (t.in_rows = most_rows(p, &o->out); t.in_rows > 1 && !cut_time(p, op_input(o)->out.part[TIME], &t);)
        t.in_rows--;
    if (cut_time(p, op_input(o)->out.part[TIME], &t))
        help_write(p, d, o, &t);
}

static bool check_packets(pass_context *p, kernel *k, op *o)
{
    const tensor *sides[] = {&op_input(o)->out, &o->out};
    for (int i = 0; i < 2; i++) {
        const mapping *packet = sides[i]->part[PACKET];
        int64_t bytes = dtype_bytes(sides[i]->dtype, packet->size);
        if (bytes == p->target->flit_bytes)
            continue;
        diag *d = pass_refuse(p, k, o, i ? PACKET : MAPPING_COMPONENTS, E_TRANSPOSE_FLIT,
                              "Transpose %s packet must be %lld bytes, got %lld: %s of %s", i ? "output" : "input",
                              (long long)p->target->flit_bytes, (long long)bytes, pass_text(p, packet), type_name(sides[i]));
        if (i)
            diag_help(p->diags, d, "pad the rows to %lld elements", (long long)elements_of(sides[i]->dtype, p->target->flit_bytes));
        else
            diag_help(p->diags, d, "collect gives flits of %lld bytes", (long long)p->target->flit_bytes);
        return false;
    }
    return true;
}

/* Time has no such rows, or they are further out than an engine's row is long. */
static void refuse_rows(pass_context *p, kernel *k, op *o, turn *t, const mapping *rows)
{
    const tensor *in = &op_input(o)->out;
    for (t->packets_per_col = 1; t->packets_per_col <= STEPS_SEEN; t->packets_per_col++)
        if (cut_rows(p, o, t)) {
            unsigned bits = dtype_row_of(in->dtype)->bits;
            diag *d = pass_refuse(p, k, o, PACKET, E_TRANSPOSE_COLUMNS,
                                  "Transpose `in_cols` size (%lld) must be one of %s for %u-bit type: %s inside the rows %s, %s each",
                                  (long long)in_cols(t), bits == 4 ? "[16, 32]" : "[8, 16, 32]", bits, pass_text(p, t->step),
                                  pass_text(p, t->row), arena_count(p->arena, t->valid_size, "element"));
            help_innermost(p, d, o, t->valid_size);
            return;
        }
    diag *d = pass_refuse(p, k, o, PACKET, E_TRANSPOSE_ROWS, "Transpose `in_rows` (%s) must be present in the input Time (%s)",
                          pass_text(p, rows), pass_text(p, in->part[TIME]));
    help_innermost(p, d, o, t->valid_size);
}

/* OutTime is not what these blocks give. */
static void refuse_time(pass_context *p, kernel *k, op *o, const turn *t)
{
    const mapping *time = o->out.part[TIME], *inner = t->out_rows ? pass_inner(p, time, t->out_rows) : NULL;
    const mapping *wanted = inner && t->out_rows <= in_cols(t) ? columns(p, o, t, t->out_rows) : NULL;
    int64_t flits = t->out_rows / t->valid_size;
    diag *d;
    if (time->size % t->outer->size || (wanted && mapping_equal(p->mappings, wanted, inner)))
        d = pass_refuse(p, k, o, TIME, E_TRANSPOSE_TIME, "Transpose time mismatch: expected outer OutTime to be %s, got %s",
                        pass_text(p, t->outer), pass_text(p, inner ? pass_outer(p, time, t->out_rows) : time));
    else if (t->out_rows > in_cols(t))
        d = pass_refuse(p, k, o, TIME, E_TRANSPOSE_COLUMNS,
                        "Transpose `out_rows` (%lld) must be <= `in_cols` (%lld): %s of %s are left for each of %lld blocks",
                        (long long)t->out_rows, (long long)in_cols(t), pass_text(p, inner), pass_text(p, time), (long long)t->outer->size);
    else if (flits > 1 && flits * t->valid_size == t->out_rows && flits == t->packets_per_col &&
             !mapping_equal(p->mappings, pass_outer(p, inner, t->valid_size), t->step))
        d = pass_refuse(p, k, o, TIME, E_TRANSPOSE_TIME, "Transpose `packets_per_col` (%s) not found in OutTime (%s)",
                        pass_text(p, t->step), pass_text(p, time));
    else
        d = pass_refuse(p, k, o, TIME, E_TRANSPOSE_TIME, "Transpose `out_rows` (%s) must match `in_cols` (%s) (excluding padding)",
                        pass_text(p, inner), pass_text(p, columns(p, o, t, in_cols(t))));
    help_write(p, d, o, t);
}

/* in_rows is at most 8 bytes, and what is not read of a flit is padding. Sets valid_size. */
static bool check_block(pass_context *p, kernel *k, op *o, const mapping *rows, turn *t)
{
    const tensor *in = &op_input(o)->out;
    long long bytes = (long long)p->target->transpose_row_bytes, most = (long long)most_rows(p, &o->out);
    t->valid_size = valid_size(p, in);
    if (rows->size > most) {
        diag *d = pass_refuse(p, k, o, PACKET, E_TRANSPOSE_ROWS, "Transpose `in_rows` must be <= %s, got %lld: %s of %s",
                              arena_count(p->arena, bytes, "byte"), (long long)dtype_bytes(o->out.dtype, rows->size + rows->size % 2),
                              pass_text(p, rows), type_name(&o->out));
        diag_help(p->diags, d, "at most %s of %s: leave the outer ones in Time", arena_count(p->arena, most, "row"), type_name(&o->out));
        if (t->valid_size)
            help_innermost(p, d, o, t->valid_size);
        return false;
    }
    if (t->valid_size > 0)
        return true;
    diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_TRANSPOSE_COLUMNS,
                          "Transpose input packet beyond valid_size_per_packet: %s of %s is live after its first 16 elements",
                          pass_text(p, in->part[PACKET]), type_name(in));
    diag_help(p->diags, d, "fetch packets of at most 16 elements, and let the rest be Time");
    return false;
}

/* The block of the fewest rows and flits that gives what is declared. False: there is none; `near` has the first whose rows do. */
static bool find_block(pass_context *p, const op *o, turn *t, int64_t least_rows, turn *near)
{
    for (t->in_rows = least_rows; t->in_rows <= most_rows(p, &o->out); t->in_rows++)
        for (t->packets_per_col = 1; in_cols(t) <= p->target->transpose_columns; t->packets_per_col *= 2) {
            if (!is_legal_width(t) || !cut_rows(p, o, t))
                continue;
            if (cut_fits(p, o, t))
                return true;
            if (!near->outer)
                *near = *t;
        }
    return false;
}

static void transpose_one(pass_context *p, kernel *k, op *o)
{
    const mapping *rows = mapping_strip_padding(p->mappings, o->out.part[PACKET]);
    turn t = {0}, near = {0};
    if (!check_packets(p, k, o) || !check_block(p, k, o, rows, &t))
        return;
    if (find_block(p, o, &t, rows->size, &near)) {
        o->transpose = ARENA_NEW(p->arena, transpose_config);
        *o->transpose = (transpose_config){.valid_size = t.valid_size,
                                           .in_rows = t.in_rows,
                                           .packets_per_col = t.packets_per_col,
                                           .in_cols = in_cols(&t),
                                           .out_rows = t.out_rows};
        return;
    }
    t.in_rows = rows->size;
    if (near.outer)
        refuse_time(p, k, o, &near);
    else
        refuse_rows(p, k, o, &t, rows);
}

void pass_transpose(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_TRANSPOSE, transpose_one);
}
