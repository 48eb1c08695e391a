/* Copies that go another way in each chip or cluster, and copies inside a slice.
 *
 * The one idea: what chip (cluster) t takes is a tile of the source, where it goes is a tile of the target, so a shuffle is a copy for each
 * of them, by operations that are there: tiles and a DMA copy, or inside a slice a stream of the sub context from the one to the other.
 * Source: the releases define shuffles and parallel copies by such tiles. */
#include "frontend/stage_build.h"
#include "ir/mapping/mapping_without.h"

enum { MOST_UNITS = 256, MOST_SLICES = 8, UNITS = CLUSTER + 1, PACKET_BYTES = 32, WORD_BYTES = 8 };

/* Of an axis each chip (cluster) takes one position. */
typedef struct move_slice {
    component by; /* CHIP, CLUSTER */
    const mapping *axis;
    int64_t positions[MOST_UNITS]; /* by chip (cluster) that takes */
    src_range range;
} move_slice;

/* What is taken from where. */
typedef struct move_plan {
    op *source;                      /* a tensor or a view of one */
    bool shuffles[UNITS];            /* of CHIP, CLUSTER: from[] says which; else each its own */
    int64_t from[UNITS][MOST_UNITS]; /* by chip (cluster) that takes */
    move_slice slices[MOST_SLICES];
    size_t slice_count;
    const mapping *element; /* what is left of the source's */
    bool local;             /* inside each slice, by a stream */
} move_plan;

static bool refuse_move(const stage_call *call, diag *d, const char *help)
{
    diag_help(stage_diags(call), d, "%s", help);
    call->kernel->bad = true;
    return false;
}

static const char *text_of(const stage_call *call, const mapping *m)
{
    return mapping_text(m, scope_context_of(call->scope)->arena);
}

static const char *unit_word(component c)
{
    return c == CHIP ? "chip" : "cluster";
}

static bool names_axis(const mapping *m)
{
    const axis *first;
    return mapping_axes(m, &first, 1) > 0;
}

/* Does a position of the part hold something? */
static bool is_live(const mapping *m, int64_t position)
{
    for (size_t i = m->count; i-- > 0;) {
        const factor *f = &m->factors[i];
        if (position % f->extent >= f->live)
            return false;
        position /= f->extent;
    }
    return true;
}

static move_plan *new_plan(const stage_call *call, op *source)
{
    move_plan *p = ARENA_NEW(scope_context_of(call->scope)->arena, move_plan);
    *p = (move_plan){.source = source, .element = source->out.part[ELEMENT]};
    return p;
}

/* ---- the array of a shuffle ---- */

static src_range list_range(const stage_call *call)
{
    const ast *args = ast_kid(call->node, 2);
    for (unsigned i = 0; i < call->form->argument_count; i++)
        if (call->form->arguments[i] == ARGUMENT_POSITIONS)
            return args->kids[i]->range;
    return call->node->name_range;
}

/* One entry for each chip (cluster), and as many as the type argument says. False: refused. */
static bool read_list(const stage_call *call, const move_plan *p, component c, int64_t *out)
{
    const value *list = stage_argument_of(call, ARGUMENT_POSITIONS);
    const ast *written = stage_type_argument(call, TYPE_COUNT);
    int64_t units = p->source->out.part[c]->size, count = (int64_t)list->count;
    if (written && !ast_is(written, AST_TYPE_INFER) && (!scope_integer(call->scope, written, &count) || units > MOST_UNITS))
        return false;
    if (count == units && list->count == (size_t)units && units <= MOST_UNITS) {
        for (size_t i = 0; i < list->count; i++)
            out[i] = list->items[i].number;
        return true;
    }
    diag *d = diag_add(stage_diags(call), E_MOVE_UNITS, list_range(call), "the array has %zu entr%s, and the tensor %lld %s%s (%s m![%s])",
                       list->count, list->count == 1 ? "y" : "ies", (long long)units, unit_word(c), units == 1 ? "" : "s",
                       component_word(c), text_of(call, p->source->out.part[c]));
    return refuse_move(call, d, arena_printf(scope_context_of(call->scope)->arena, "write one entry for each %s", unit_word(c)));
}

/* Sources that exist and hold something; since 0.8 each chip gives to one. */
static bool check_sources(const stage_call *call, const move_plan *p, component c, bool permutation)
{
    const mapping *part = p->source->out.part[c];
    bool given[MOST_UNITS] = {false};
    for (int64_t t = 0; t < part->size; t++) {
        int64_t from = p->from[c][t];
        diag *d;
        if (from >= part->size) {
            d = diag_add(stage_diags(call), E_MOVE_UNITS, list_range(call), "%s %lld takes from %s %lld; the tensor has %lld", unit_word(c),
                         (long long)t, unit_word(c), (long long)from, (long long)part->size);
            return refuse_move(call, d,
                               arena_printf(scope_context_of(call->scope)->arena, "entries are 0 to %lld", (long long)part->size - 1));
        }
        if (is_live(part, t) && !is_live(part, from)) {
            d = diag_add(stage_diags(call), E_MOVE_UNITS, list_range(call),
                         "cannot read a padded source placement: %s %lld of m![%s] holds nothing, and %s %lld takes it", unit_word(c),
                         (long long)from, text_of(call, part), unit_word(c), (long long)t);
            return refuse_move(call, d, "take from one that holds a part of the tensor");
        }
        if (permutation && given[from]) {
            d = diag_add(stage_diags(call), E_MOVE_UNITS, list_range(call), "%s %lld occurs more than once in the pattern", unit_word(c),
                         (long long)from);
            return refuse_move(call, d,
                               "write a permutation; a chip gives to several by `dm_chip_shuffle` of a view of a tensor in DM (0.7)");
        }
        given[from] = true;
    }
    return true;
}

static bool add_shuffle(const stage_call *call, move_plan *p, component c, bool permutation)
{
    if (p->source->bad)
        return false;
    p->shuffles[c] = true;
    return read_list(call, p, c, p->from[c]) && check_sources(call, p, c, permutation);
}

static bool add_swap(const stage_call *call, move_plan *p)
{
    if (p->source->bad)
        return false;
    const mapping *part = p->source->out.part[CLUSTER];
    p->shuffles[CLUSTER] = true;
    if (part->size == 2 && is_live(part, 1)) {
        p->from[CLUSTER][0] = 1;
        p->from[CLUSTER][1] = 0;
        return true;
    }
    diag *d = diag_add(stage_diags(call), E_MOVE_UNITS, call->node->name_range,
                       "cannot read a padded source placement: `%s` needs two clusters that both hold data, and Cluster is m![%s]",
                       call->node->text, text_of(call, part));
    return refuse_move(call, d, "spread an axis of 2 over Cluster");
}

/* ---- the axis of a slice ---- */

static bool refuse_axis(const stage_call *call, src_range at, const char *help, const char *text)
{
    return refuse_move(call, diag_add(stage_diags(call), E_MOVE_AXIS, at, "%s", text), help);
}

/* Reads Axis and what is left, and the position that each chip (cluster) takes. */
static bool add_slice(const stage_call *call, move_plan *p, component by, bool outermost, bool words)
{
    if (p->source->bad)
        return false;
    scope_context *c = scope_context_of(call->scope);
    const ast *arg = stage_type_argument(call, TYPE_AXIS), *left = stage_type_argument(call, TYPE_ELEMENT),
              *tile = stage_type_argument(call, TYPE_SLICED);
    src_range at = arg ? arg->range : call->node->name_range;
    bool infer = false;
    const mapping *run = arg ? scope_mapping(call->scope, arg, &infer) : NULL, *without;
    if (!run && (!arg || infer))
        return refuse_axis(call, at, "name the axis as the first type argument",
                           "the axis of which one position is taken cannot be inferred");
    if (!run || p->slice_count == MOST_SLICES)
        return false;
    move_slice *s = &p->slices[p->slice_count++];
    *s = (move_slice){.by = by, .axis = run, .range = at};
    int64_t stride = 0;
    const mapping *element = p->element;
    without = mapping_without(c->mappings, element, run, &stride);
    if (!without)
        return refuse_axis(
            call, at, "name digits that are next to each other in Element, all of them",
            arena_printf(c->arena, "cannot locate AxisToSlice `%s` in Element m![%s]", text_of(call, run), text_of(call, element)));
    if (outermost && stride * run->size != element->size)
        return refuse_axis(call, at, "take it from the front of Element, or use chip_slice(..) and to_dm",
                           arena_printf(c->arena, "AxisToSlice `%s` must be the outermost axis of Element m![%s]", text_of(call, run),
                                        text_of(call, element)));
    mapping_without(c->mappings, p->source->out.part[ELEMENT], run, &stride);
    int64_t bits = stride * dtype_row_of(p->source->out.dtype)->bits;
    if (words && bits % (8 * WORD_BYTES))
        return refuse_axis(call, at, "let what is inside of it be a multiple of 8 bytes",
                           arena_printf(c->arena,
                                        "slicing requires the sliced-axis stride to be aligned to 8 bytes: `%s` steps by %lld bits",
                                        text_of(call, run), (long long)bits));
    if (outermost && mapping_has_gap(without))
        return refuse_axis(
            call, at, "declare the padding as `# n`, which may be written",
            arena_printf(c->arena, "what remains of Element, m![%s], has a must-not-write padding region", text_of(call, without)));
    const mapping *given = left ? scope_mapping(call->scope, left, &infer) : NULL;
    if (given && !mapping_equal(c->mappings, given, without))
        return refuse_axis(call, left->range, arena_printf(c->arena, "write m![%s]", text_of(call, without)),
                           arena_printf(c->arena, "Element2 must be Element with AxisToSlice removed: m![%s], but m![%s] is declared",
                                        text_of(call, without), text_of(call, given)));
    if (left && !given && !infer)
        return false;
    stage_tile cut;
    op whole = *p->source;
    whole.out.part[ELEMENT] = element;
    if (stage_cut_tile(call, &whole, ELEMENT, run, 1, 0, &cut) != TILE_OK)
        return refuse_axis(
            call, at, "name digits of Element that are no part of a padded group",
            arena_printf(c->arena, "cannot locate AxisToSlice `%s` in Element m![%s]", text_of(call, run), text_of(call, element)));
    const mapping *sliced = tile ? scope_mapping(call->scope, tile, &infer) : NULL;
    if (sliced && !mapping_equal(c->mappings, sliced, cut.mapping)) {
        diag *d = diag_add(c->diags, E_TILE_VIEW, tile->range,
                           "inconsistent view type after split: the tile's Element is m![%s], but m![%s] is declared",
                           text_of(call, cut.mapping), text_of(call, sliced));
        return refuse_move(call, d, arena_printf(c->arena, "write m![%s]", text_of(call, cut.mapping)));
    }
    p->element = without;
    if (!read_list(call, p, by, s->positions))
        return false;
    for (int64_t t = 0; t < p->source->out.part[by]->size; t++)
        if (s->positions[t] >= run->size) {
            diag *d = diag_add(c->diags, E_MOVE_UNITS, list_range(call), "%s %lld takes position %lld of `%s`, which has %lld",
                               unit_word(by), (long long)t, (long long)s->positions[t], text_of(call, run), (long long)run->size);
            return refuse_move(call, d, arena_printf(c->arena, "entries are 0 to %lld", (long long)run->size - 1));
        }
    return true;
}

/* ---- the copies ---- */

/* Can the innermost n positions be a packet? */
static bool is_packet(mapping_context *c, const mapping *from, const mapping *to, int64_t n, bool full, bool in_one_piece)
{
    const mapping *outer, *a, *b, *all;
    return mapping_stride(c, to, n, &outer) == MAPPING_OK && mapping_modulo(c, to, n, &a) == MAPPING_OK &&
           mapping_pair(c, outer, a, &all) == MAPPING_OK && mapping_equal(c, all, to) && (!full || mapping_is_full(a)) &&
           (!in_one_piece || (mapping_modulo(c, from, n, &b) == MAPPING_OK && mapping_equal(c, a, b)));
}

/* The stream's packet: whole words, a flit at most; the longest without padding that lies in one piece on both sides, else the longest
 * without padding, else the shortest. */
static int64_t packet_positions(mapping_context *c, const mapping *from, const mapping *to, int64_t bits)
{
    for (int pieces = 1; pieces >= 0; pieces--)
        for (int64_t bytes = PACKET_BYTES; bytes >= WORD_BYTES; bytes -= WORD_BYTES)
            if (is_packet(c, from, to, bytes * 8 / bits, true, pieces))
                return bytes * 8 / bits;
    for (int64_t bytes = WORD_BYTES; bytes <= PACKET_BYTES; bytes += WORD_BYTES)
        if (is_packet(c, from, to, bytes * 8 / bits, false, false))
            return bytes * 8 / bits;
    return to->size;
}

/* The live positions of each digit. */
static const mapping *without_padding(mapping_context *c, const mapping *m)
{
    const mapping *all = mapping_identity(c);
    for (size_t i = 0; i < m->count; i++)
        if (mapping_pair(c, all, mapping_without_padding(c, &m->factors[i]), &all) != MAPPING_OK)
            return m;
    return all;
}

/* A stream of the sub context from a view to memory: into new memory unless an operand is added that says into what. */
static op *stream(const stage_call *call, op *from, const tensor *to)
{
    mapping_context *c = scope_context_of(call->scope)->mappings;
    const mapping *element = to->part[ELEMENT], *time = element, *packet = mapping_identity(c);
    int64_t n = packet_positions(c, from->out.part[ELEMENT], element, dtype_row_of(to->dtype)->bits);
    if (mapping_stride(c, element, n, &time) != MAPPING_OK || mapping_modulo(c, element, n, &packet) != MAPPING_OK) {
        time = mapping_identity(c);
        packet = element;
    }
    tensor t = from->out;
    t.kind = TENSOR_FETCH;
    t.part[ELEMENT] = NULL;
    t.part[TIME] = without_padding(c, time);
    t.part[PACKET] = packet;
    op *fetch = stage_add_step(call, IR_FETCH, CONTEXT_SUB, from, &t);
    t.kind = TENSOR_COLLECT;
    t.part[TIME] = t.part[PACKET] = NULL;
    op *flits = stage_add_step(call, IR_COLLECT, CONTEXT_SUB, fetch, &t);
    op *commit = stage_add_step(call, IR_COMMIT, CONTEXT_SUB, flits, to);
    op *trim = kernel_note(call->kernel, scope_context_of(call->scope)->arena, IR_COMMIT_TRIM, CONTEXT_SUB, call->node->name_range);
    trim->out = t;
    trim->out.kind = TENSOR_COMMIT_TRIM;
    trim->out.part[PACKET] = packet;
    commit->trim = trim;
    return commit;
}

static void copy_into(const stage_call *call, bool local, op *from, op *to)
{
    arena *a = scope_context_of(call->scope)->arena;
    op *o = local ? stream(call, from, &to->out)
                  : stage_add_step(call, to->out.kind == TENSOR_DM ? IR_TO_DM : IR_TO_HBM, CONTEXT_DMA, from, &to->out);
    op_add_operand(o, a, OPERAND_INTO, to);
    o->name = to->name;
    o->bad = o->bad || to->bad;
}

/* The tile of one chip (cluster); where the part names no axis all of them are the same. NULL: refused. */
static op *unit_tile(const stage_call *call, op *of, component c, int64_t position)
{
    stage_tile tile;
    const mapping *part = of->out.part[c];
    if (!names_axis(part))
        return of;
    if (stage_cut_tile(call, of, c, part, 1, position, &tile) == TILE_OK)
        return stage_add_tile(call, of, &tile);
    diag *d = diag_add(stage_diags(call), E_MOVE_UNITS, call->node->name_range, "%s m![%s] does not cut into single %ss", component_word(c),
                       text_of(call, part), unit_word(c));
    refuse_move(call, d, "let it be digits of axes, without a padded group");
    return NULL;
}

static op *slice_tile(const stage_call *call, const move_slice *s, op *of, int64_t position)
{
    stage_tile tile;
    if (stage_cut_tile(call, of, ELEMENT, s->axis, 1, position, &tile) == TILE_OK)
        return stage_add_tile(call, of, &tile);
    refuse_axis(call, s->range, "take positions that hold data",
                arena_printf(scope_context_of(call->scope)->arena, "position %lld of `%s` is padding, or is cut by another slice",
                             (long long)position, text_of(call, s->axis)));
    return NULL;
}

static bool slices_by(const move_plan *p, component c)
{
    for (size_t i = 0; i < p->slice_count; i++)
        if (p->slices[i].by == c)
            return true;
    return false;
}

/* All positions that a slice takes are the same one. */
static bool takes_alike(const move_plan *p, component c)
{
    for (size_t i = 0; i < p->slice_count; i++)
        for (int64_t t = 1; p->slices[i].by == c && t < p->source->out.part[c]->size; t++)
            if (p->slices[i].positions[t] != p->slices[i].positions[0])
                return false;
    return true;
}

/* What one chip and cluster takes. */
static bool move_one(const stage_call *call, const move_plan *p, const int64_t *taker, const bool *apart, op *into)
{
    op *from = p->source, *to = into;
    for (component c = CHIP; c <= CLUSTER && from && to; c++)
        if (apart[c]) {
            from = unit_tile(call, from, c, p->shuffles[c] ? p->from[c][taker[c]] : taker[c]);
            to = from ? unit_tile(call, to, c, taker[c]) : NULL;
        }
    for (size_t i = 0; i < p->slice_count && from && to; i++)
        from = slice_tile(call, &p->slices[i], from, p->slices[i].positions[taker[p->slices[i].by]]);
    if (!from || !to)
        return false;
    copy_into(call, p->local, from, to);
    return true;
}

/* A copy for each chip and cluster that goes its own way. */
static bool move_all(const stage_call *call, const move_plan *p, op *to)
{
    const tensor *t = &p->source->out;
    bool apart[UNITS], repeating = call->kernel->repeating, ok = true;
    int64_t count[UNITS] = {1, 1};
    for (component c = CHIP; c <= CLUSTER; c++) {
        apart[c] = t->part[c] && names_axis(t->part[c]) && (p->shuffles[c] || slices_by(p, c));
        count[c] = apart[c] ? t->part[c]->size : 1;
        if (!apart[c] && slices_by(p, c) && !takes_alike(p, c)) {
            diag *d = diag_add(stage_diags(call), E_MOVE_UNITS, list_range(call),
                               "the %ss take different positions, and %s m![%s] names no axis that tells them apart", unit_word(c),
                               component_word(c), text_of(call, t->part[c]));
            return refuse_move(call, d, "spread an axis over them");
        }
    }
    for (int64_t chip = 0; chip < count[CHIP] && ok; chip++)
        for (int64_t cluster = 0; cluster < count[CLUSTER] && ok; cluster++) {
            const int64_t taker[UNITS] = {chip, cluster};
            if ((apart[CHIP] && !is_live(t->part[CHIP], chip)) || (apart[CLUSTER] && !is_live(t->part[CLUSTER], cluster)))
                continue;
            ok = move_one(call, p, taker, apart, to);
            call->kernel->repeating = true;
        }
    call->kernel->repeating = repeating;
    return ok;
}

/* New memory like the source's, of which the form or what is expected may name the parts anew. */
static value move_to_new(const stage_call *call, const move_plan *p)
{
    op *o = kernel_add(call->kernel, scope_context_of(call->scope)->arena, IR_ALLOC, CONTEXT_DMA, call->node->name_range);
    const tensor *from = &p->source->out;
    o->out = *from;
    o->out.part[ELEMENT] = NULL;
    o->releases = call->form->dialects;
    o->bad = p->source->bad;
    op_leave_unplaced(o);
    bool ok = stage_take_types(call, o);
    if (!o->out.part[ELEMENT])
        o->out.part[ELEMENT] = p->element;
    if (ok && p->element && !mapping_equal(scope_context_of(call->scope)->mappings, o->out.part[ELEMENT], p->element)) {
        diag *d =
            diag_add(stage_diags(call), E_MOVE_AXIS, call->node->name_range, "what is moved has Element m![%s], but m![%s] is declared",
                     text_of(call, p->element), text_of(call, o->out.part[ELEMENT]));
        ok = refuse_move(call, d, arena_printf(scope_context_of(call->scope)->arena, "declare m![%s]", text_of(call, p->element)));
    }
    value v = stage_finish(call, o, ok);
    if (!o->bad && !move_all(call, p, o))
        o->bad = call->kernel->bad = true;
    return v;
}

/* ---- shuffles ---- */

static op *viewed(const stage_call *call)
{
    const value *view = stage_argument_of(call, ARGUMENT_DM_VIEW);
    return view ? view->op : call->receiver.op;
}

static value shuffle(const stage_call *call, component c)
{
    move_plan *p = new_plan(call, viewed(call));
    if (!add_shuffle(call, p, c, c == CHIP && (call->form->dialects & SINCE(V0_8)))) {
        call->kernel->bad = true;
        return stage_error;
    }
    return move_to_new(call, p);
}

STAGE_IS(dm_chip_shuffle, shuffle(call, CHIP))
STAGE_IS(dm_cluster_shuffle, shuffle(call, CLUSTER))
STAGE_IS(hbm_chip_shuffle, shuffle(call, CHIP))

value stage_make_dm_cluster_swap(const stage_call *call)
{
    move_plan *p = new_plan(call, viewed(call));
    if (!add_swap(call, p)) {
        call->kernel->bad = true;
        return stage_error;
    }
    return move_to_new(call, p);
}

/* ---- plans ---- */

/* A plan of its own: the one that it continues stays as it is. */
static move_plan *continued(const stage_call *call)
{
    move_plan *p = new_plan(call, call->receiver.op);
    if (call->receiver.kind == VALUE_PLAN)
        *p = *call->receiver.plan;
    return p;
}

static value planned(const stage_call *call, const move_plan *p, bool ok)
{
    if (!ok) {
        call->kernel->bad = true;
        return stage_error;
    }
    return (value){.kind = VALUE_PLAN, .op = p->source, .plan = p};
}

/* The stages of a plan have one order. */
static bool in_order(const stage_call *call, bool too_late, const char *before)
{
    if (!too_late)
        return true;
    diag *d = diag_add(stage_diags(call), E_MOVE_UNITS, call->node->name_range, "`%s` follows `%s`", call->node->text, before);
    return refuse_move(call, d, "the order is chip_shuffle, cluster_swap, chip_slice, cluster_slice");
}

value stage_make_chip_shuffle(const stage_call *call)
{
    move_plan *p = continued(call);
    return planned(call, p, add_shuffle(call, p, CHIP, true));
}

value stage_make_cluster_swap(const stage_call *call)
{
    move_plan *p = continued(call);
    bool ok = in_order(call, p->shuffles[CLUSTER], "cluster_swap") &&
              in_order(call, p->slice_count > 0, p->slice_count && p->slices[0].by == CHIP ? "chip_slice" : "cluster_slice");
    return planned(call, p, ok && add_swap(call, p));
}

value stage_make_chip_slice(const stage_call *call)
{
    move_plan *p = continued(call);
    return planned(call, p, in_order(call, slices_by(p, CLUSTER), "cluster_slice") && add_slice(call, p, CHIP, false, true));
}

value stage_make_cluster_slice(const stage_call *call)
{
    move_plan *p = continued(call);
    return planned(call, p, add_slice(call, p, CLUSTER, false, true));
}

STAGE_IS(plan_to_dm, move_to_new(call, call->receiver.plan))

value stage_make_plan_to_dm_view(const stage_call *call)
{
    op *to = stage_argument_of(call, ARGUMENT_DM_VIEW_MUT)->op;
    const move_plan *p = call->receiver.plan;
    for (component c = CHIP; c <= CLUSTER; c++)
        if (!to->bad && !mapping_equal(scope_context_of(call->scope)->mappings, to->out.part[c], p->source->out.part[c])) {
            diag *d =
                diag_add(stage_diags(call), E_UNITS_DIFFER, call->node->name_range, "what is moved has %s m![%s], and the view m![%s]",
                         component_word(c), text_of(call, p->source->out.part[c]), text_of(call, to->out.part[c]));
            refuse_move(call, d, "a plan keeps the names of Chip and Cluster");
            return stage_error;
        }
    if (to->bad || !move_all(call, p, to))
        call->kernel->bad = true;
    return (value){.kind = VALUE_UNIT};
}

/* ---- parallel copies ---- */

value stage_make_to_dm_pcopy(const stage_call *call)
{
    op *o, *from = call->receiver.op;
    tensor to = from->out;
    to.part[SLICE] = to.part[ELEMENT] = NULL;
    op *wanted = kernel_note(call->kernel, scope_context_of(call->scope)->arena, IR_COMMIT, CONTEXT_SUB, call->node->name_range);
    wanted->out = to;
    bool ok = stage_take_types(call, wanted);
    for (component c = CHIP; c <= ELEMENT; c++)
        if (tensor_kind_has(TENSOR_DM, c) && !wanted->out.part[c])
            wanted->out.part[c] = from->out.part[c];
    if (from->bad || !wanted->out.part[ELEMENT]) {
        call->kernel->bad = true;
        return stage_error;
    }
    wanted->out.address = ADDRESS_NONE;
    o = stream(call, from, &wanted->out);
    op_leave_unplaced(o);
    return stage_finish(call, o, ok);
}

static value pcopy_into(const stage_call *call, op *to)
{
    if (!stage_may_write(call, to))
        return stage_error;
    if (to->out.dtype != call->receiver.op->out.dtype && !to->bad && !call->receiver.op->bad) {
        diag_add(stage_diags(call), E_TYPE, call->node->name_range, "%s elements are copied into a view of %s",
                 dtype_row_of(call->receiver.op->out.dtype)->name, dtype_row_of(to->out.dtype)->name);
        call->kernel->bad = true;
        return stage_error;
    }
    if (to->bad || call->receiver.op->bad)
        call->kernel->bad = true;
    else
        copy_into(call, true, call->receiver.op, to);
    return (value){.kind = VALUE_UNIT};
}

STAGE_IS(pcopy_into, pcopy_into(call, stage_argument_of(call, ARGUMENT_DM_MUT)->op))
STAGE_IS(to_dm_view_pcopy, pcopy_into(call, stage_argument_of(call, ARGUMENT_DM_VIEW_MUT)->op))

static value slice_inside(const stage_call *call, component by, bool outermost)
{
    move_plan *p = new_plan(call, viewed(call));
    p->local = true;
    if (!add_slice(call, p, by, outermost, outermost)) {
        call->kernel->bad = true;
        return stage_error;
    }
    return move_to_new(call, p);
}

STAGE_IS(parallel_copy_chip_slice, slice_inside(call, CHIP, false))
STAGE_IS(parallel_copy_cluster_slice, slice_inside(call, CLUSTER, false))
STAGE_IS(asymmetric_chip_slice, slice_inside(call, CHIP, true))
STAGE_IS(asymmetric_cluster_slice, slice_inside(call, CLUSTER, true))
