/* Views of memory, their tiles, and what begins a stream from them. */
#include "frontend/stage_build.h"
#include "support/integer.h"

value stage_make_view(const stage_call *call)
{
    return (value){.kind = VALUE_VIEW, .op = call->receiver.op};
}

bool stage_may_write(const stage_call *call, const op *of)
{
    if (of->kind != IR_PORT_IN)
        return true;
    diag *d = diag_add(stage_diags(call), E_VIEW_READ_ONLY, call->node->name_range, "`%s` is an input of the kernel", of->name);
    diag_note(stage_diags(call), d, of->range, "it is declared here");
    diag_help(stage_diags(call), d, "pass it as `&mut` to write it");
    call->kernel->bad = true;
    return false;
}

value stage_make_view_mut(const stage_call *call)
{
    if (!stage_may_write(call, call->receiver.op))
        return stage_error;
    return (value){.kind = VALUE_VIEW, .op = call->receiver.op, .writable = true};
}

/* The operation with the names that are written. */
static value rename_parts(const stage_call *call, op *o)
{
    bool ok = stage_take_types(call, o);
    unsigned needs = 0;
    for (unsigned i = 0; i < call->form->type_count; i++) {
        component c = stage_type_component(call->form->types[i]);
        if (!o->out.part[c] && stage_type_argument(call, call->form->types[i])) /* `_`: as it was */
            o->out.part[c] = call->receiver.op->out.part[c];
        needs |= 1u << c;
    }
    return stage_finish(call, o, ok && stage_require_parts(call, o, needs));
}

/* The same memory under other axes. */
value stage_make_reshape(const stage_call *call)
{
    op *o = stage_new_op(call, CONTEXT_DMA);
    call->receiver.op->gone = o;
    return rename_parts(call, o);
}

value stage_make_reshape_hbm(const stage_call *call)
{
    return stage_make_reshape(call);
}

value stage_make_reshape_vrf(const stage_call *call)
{
    return stage_make_reshape(call);
}

/* What is written through a view under other names would be written under the old ones, too, which nothing here does. */
static value reshape_view(const stage_call *call)
{
    op *of = call->receiver.op;
    arena *a = scope_context_of(call->scope)->arena;
    diag *d = NULL;
    if (call->receiver.writable) {
        d = diag_add(stage_diags(call), E_UNSUPPORTED, call->node->name_range, "`reshape` of a view that is written is not supported yet");
        diag_help(stage_diags(call), d, "reshape the tensor, and write through a view of that");
    } else if (of->kind == IR_VIEW) {
        d = diag_add(stage_diags(call), E_UNSUPPORTED, call->node->name_range, "`reshape` of a tile is not supported yet");
        diag_help(stage_diags(call), d, "reshape the whole view, and tile that");
    }
    if (d) {
        call->kernel->bad = true;
        return stage_error;
    }
    tensor out = of->out;
    for (unsigned i = 0; i < call->form->type_count; i++)
        out.part[stage_type_component(call->form->types[i])] = NULL;
    op *o = kernel_add(call->kernel, a, IR_RESHAPE, CONTEXT_DMA, call->node->name_range);
    o->out = out;
    op_add_operand(o, a, OPERAND_INPUT, of);
    o->releases = call->form->dialects;
    o->name = of->name;
    o->bad = of->bad;
    value v = rename_parts(call, o);
    v.kind = v.kind == VALUE_TENSOR ? VALUE_VIEW : v.kind;
    return v;
}

value stage_make_reshape_view(const stage_call *call)
{
    return reshape_view(call);
}

value stage_make_reshape_hbm_view(const stage_call *call)
{
    return reshape_view(call);
}

/* As pass_replace; NULL: nothing is written. */
static void replace_mapping(const stage_call *call, diag *d, const ast *written, const mapping *m)
{
    bool ours = written && !scope_is_generic(call->scope) && !mapping_is_local(m);
    diag_replace(stage_diags(call), d, ours ? written->range : SRC_NOWHERE, "m![%s]",
                 mapping_text(m, scope_context_of(call->scope)->arena));
}

/* The same cells, of which Element says that there is more or less padding after them: `wide` is `narrow` with padding. */
static value repad(const stage_call *call, bool pads)
{
    scope_context *c = scope_context_of(call->scope);
    const op *of = call->receiver.op;
    const mapping *have = of->out.part[ELEMENT];
    const ast *written = stage_type_argument(call, TYPE_ELEMENT);
    const declared *e = call->expected;
    bool infer = !written;
    const mapping *want = written ? scope_mapping(call->scope, written, &infer) : NULL;
    if (!want && infer && e && e->kind == DECLARED_TENSOR)
        want = e->tensor.part[ELEMENT];
    if (call->receiver.writable || (!want && infer)) {
        diag *d = call->receiver.writable
                      ? diag_add(c->diags, E_VIEW_PAD, call->node->name_range, "`%s` of a view that is written", call->form->name)
                      : diag_add(c->diags, E_INFER, call->node->name_range, "Element of %s cannot be inferred", call->form->name);
        if (call->receiver.writable)
            diag_help(c->diags, d, "it is of a view that is read: view()");
        else
            diag_help(c->diags, d, "write %s::<Element>()", call->form->name);
        want = NULL;
    }
    if (!want || !have) {
        call->kernel->bad = true;
        return stage_error;
    }
    const mapping *narrow = pads ? have : want, *wide = pads ? want : have, *padded = NULL;
    bool same = mapping_pad(c->mappings, narrow, wide->size, PAD_TOP, &padded) == MAPPING_OK && mapping_equal(c->mappings, padded, wide);
    if (!same) {
        diag *d =
            diag_add(c->diags, E_VIEW_PAD, written ? written->range : call->node->name_range, "m![%s] is not m![%s] %s padding after it",
                     mapping_text(want, c->arena), mapping_text(have, c->arena), pads ? "with" : "without");
        if (pads && padded) {
            diag_help(c->diags, d, "write m![%s]", mapping_text(padded, c->arena));
            replace_mapping(call, d, written, padded);
        } else
            diag_help(c->diags, d, pads ? "pad to at least %lld" : "unpad to less than %lld", (long long)have->size);
        call->kernel->bad = true;
        return stage_error;
    }
    op *o = stage_add_op(call, CONTEXT_DMA, &of->out);
    o->out.part[ELEMENT] = want;
    o->guard = want;
    o->starts = of->starts;
    o->window = ARENA_NEW(c->arena, tile_window);
    if (of->window)
        *o->window = *of->window;
    o->name = of->name;
    return (value){.kind = VALUE_VIEW, .op = o};
}

STAGE_IS(pad, repad(call, true))
STAGE_IS(unpad, repad(call, false))

/* The window's length, the second type argument; false: diagnosed. */
static bool tile_length(const stage_call *call, component c, int64_t *out)
{
    const ast *arg = stage_type_argument(call, TYPE_LENGTH);
    if (!arg) {
        const char *name = call->node->text;
        diag *d = diag_add(stage_diags(call), E_ARGUMENTS, call->node->name_range, "`%s` needs its type arguments", name);
        diag_help(stage_diags(call), d, "write %s::<Index, LENGTH, %s>(start)", name, component_word(c));
        return false;
    }
    return scope_integer(call->scope, arg, out);
}

/* The group of the view that holds digits of the index; NULL: there is none. */
static const mapping *group_around(const mapping *view, const mapping *index)
{
    for (size_t i = 0; i < view->count; i++)
        for (size_t k = 0; k < index->count && view->factors[i].kind == FACTOR_COMPOSITE; k++) {
            const factor *f = &index->factors[k];
            if ((f->axis && mapping_mentions(view->factors[i].inner, f->axis)) || (f->inner && f->inner == view->factors[i].inner))
                return view->factors[i].inner;
        }
    return NULL;
}

static void refuse_tile(const stage_call *call, component c, tile_status status, const mapping *index, int64_t length)
{
    arena *a = scope_context_of(call->scope)->arena;
    diag_list *diags = stage_diags(call);
    const char *in = mapping_text(call->receiver.op->out.part[c], a), *of = mapping_text(index, a);
    long long start = call->args[0].number, size = index->size;
    src_range at = stage_type_argument(call, TYPE_INDEX)->range;
    const mapping *group;
    diag *d;
    switch (status) {
    case TILE_RANGE:
        d = diag_add(diags, E_TILE_RANGE, call->node->name_range, "the tile takes positions %lld..%lld of `%s`, which has %lld", start,
                     start + (long long)length, of, size);
        diag_help(diags, d, "start counts positions of `%s` and is at most %lld here", of,
                  size - (long long)length > 0 ? size - (long long)length : 0);
        break;
    case TILE_PADDING:
        d = diag_add(diags, E_TILE_PADDING, call->node->name_range,
                     "tile start maps to padding: positions %lld..%lld of `%s` are not all stored in m![%s]", start,
                     start + (long long)length, of, in);
        diag_help(diags, d, "cut the last, shorter part with a LEN of its own");
        break;
    case TILE_TERMS:
        d = diag_add(diags, E_TILE_SPLIT, at, "failed to split by the index expression: `%s` is several digits of m![%s], and LEN is %lld",
                     of, in, (long long)length);
        diag_help(diags, d, "tile one digit after the other, or with LEN = 1");
        break;
    case TILE_DEEP:
        diag_add(diags, E_TILE_SPLIT, at, "failed to split by the index expression: the tiles of this view fix more than %d digits",
                 TILE_MAX_SHIFTS);
        break;
    default:
        group = group_around(call->receiver.op->out.part[c], index);
        if (group) {
            d = diag_add(diags, E_TILE_SPLIT, at,
                         "failed to split by the index expression: `%s` is a part of the group `[%s]`, where a step carries from one axis "
                         "into the next",
                         of, mapping_text(group, a));
            diag_help(diags, d, "pad the axes one by one instead of the group, or move the group as a whole");
            break;
        }
        d = diag_add(diags, E_TILE_SPLIT, at, "failed to split by the index expression: m![%s] does not store `%s` as digits of its own",
                     in, of);
        diag_help(diags, d, "tile along an axis, or a part of one, that the view's %s names", component_word(c));
    }
}

/* The declared part must be the tile's. */
static bool check_tile_type(const stage_call *call, component part, const mapping *result)
{
    bool infer = false;
    const ast *written = stage_type_argument(call, (stage_type)(part + 1));
    const mapping *given = scope_mapping(call->scope, written, &infer);
    scope_context *c = scope_context_of(call->scope);
    if (!given || mapping_equal(c->mappings, given, result))
        return given || infer;
    diag *d = diag_add(c->diags, E_TILE_VIEW, written->range,
                       "inconsistent view type after split: the tile's %s is m![%s], but m![%s] is declared", component_word(part),
                       mapping_text(result, c->arena), mapping_text(given, c->arena));
    diag_help(c->diags, d, "write m![%s]", mapping_text(result, c->arena));
    replace_mapping(call, d, written, result);
    return false;
}

tile_status stage_cut_tile(const stage_call *call, const op *of, component part, const mapping *index, int64_t length, int64_t start,
                           stage_tile *out)
{
    scope_context *c = scope_context_of(call->scope);
    tile_window *w = ARENA_NEW(c->arena, tile_window), cut = {0};
    if (of->window)
        *w = cut = *of->window;
    cut.displacement = 0;
    *out = (stage_tile){part, NULL, of->guard ? of->guard : of->out.part[ELEMENT], w};
    tile_status status =
        mapping_tile(c->mappings, of->out.part[part], index, length, start, &out->mapping, part == ELEMENT ? &out->guard : NULL, &cut);
    int64_t moved = cut.displacement;
    cut.displacement = w->displacement;
    *w = cut;
    *(part == ELEMENT ? &w->displacement : &w->units[part]) += moved;
    return status;
}

op *stage_add_tile(const stage_call *call, op *of, const stage_tile *tile)
{
    op *o = stage_add_step(call, IR_VIEW, CONTEXT_DMA, of, &of->out);
    o->out.part[tile->part] = tile->mapping;
    o->guard = tile->guard;
    o->window = tile->window;
    o->starts = of->starts;
    o->name = of->name;
    return o;
}

bool stage_read_tile(const stage_call *call, component part, int64_t start, const mapping **out_index, int64_t *out_length, stage_tile *out)
{
    scope_context *c = scope_context_of(call->scope);
    op *of = call->receiver.op;
    int64_t length = 0;
    bool infer = false, sized = tile_length(call, part, &length);
    const mapping *index = sized ? scope_mapping(call->scope, stage_type_argument(call, TYPE_INDEX), &infer) : NULL;
    if (infer)
        diag_add(c->diags, E_INFER, stage_type_argument(call, TYPE_INDEX)->range, "the index of a tile cannot be inferred");
    call->kernel->bad = call->kernel->bad || !index;
    if (!index || !of->out.part[part]) /* the view's type was diagnosed */
        return false;
    tile_status status = stage_cut_tile(call, of, part, index, length, start, out);
    if (status != TILE_OK)
        refuse_tile(call, part, status, index, length);
    *out_index = index;
    *out_length = length;
    if (status == TILE_OK && check_tile_type(call, part, out->mapping))
        return true;
    call->kernel->bad = true;
    return false;
}

/* The window lies in one part of the view's tensor: Element, or the units that hold it. */
static value tile_of(const stage_call *call, component part)
{
    const mapping *index;
    int64_t length;
    stage_tile tile;
    if (!stage_read_tile(call, part, call->args[0].number, &index, &length, &tile))
        return stage_error;
    return (value){.kind = VALUE_VIEW, .op = stage_add_tile(call, call->receiver.op, &tile), .writable = call->receiver.writable};
}

bool stage_may_start(const stage_call *call, const run_number *n, int64_t length, run_position *out)
{
    bool takes_rows = call->receiver.op->out.kind != TENSOR_DM, is_long = takes_rows && length != 1;
    const char *wrong = is_long                   ? "a tile of HBM whose start is known when the kernel runs has one position"
                        : call->receiver.writable ? "a tile whose start is known when the kernel runs is only read"
                        : run_number_position(n, out)
                            ? NULL
                            : "`tile` takes a usize: a number of the launch of 32 or 64 bits, and at least 0 added to it";
    const char *help = is_long ? "let LEN be 1, and Index the digit that counts whole tiles"
                       : !call->receiver.writable
                           ? "declare the parameter HbmScalar<usize>, or write `as usize`; what is added is at least 0"
                       : !takes_rows ? "write `if i == n` in a loop over the positions i, and tile(i) inside"
                                     : "write `scatter::<Index, Payload>()` with a list of one element";
    if (!wrong)
        return true;
    diag *d = diag_add(stage_diags(call), E_UNSUPPORTED, call->node->name_range, "%s", wrong);
    diag_help(stage_diags(call), d, "%s", help);
    return false;
}

/* Does the tile that begins at position `at` lie at * stride elements after the first one, and mean the same? */
static bool tile_follows(const stage_call *call, const mapping *index, int64_t length, int64_t at, int64_t stride, const stage_tile *first)
{
    stage_tile next;
    return stage_cut_tile(call, call->receiver.op, ELEMENT, index, length, at, &next) == TILE_OK &&
           mapping_equal(scope_context_of(call->scope)->mappings, next.mapping, first->mapping) &&
           next.window->displacement - first->window->displacement == at * stride;
}

/* Elements between two of so many tiles that begin at positions of the index; 0: they are not as far apart everywhere, or differ. Where a
 * digit of the view begins the index goes on otherwise, and that is at a divisor of its size. */
static int64_t stride_of_tiles(const stage_call *call, const mapping *index, int64_t length, int64_t positions, const stage_tile *first)
{
    stage_tile next;
    if (positions == 1)
        return 1;
    if (stage_cut_tile(call, call->receiver.op, ELEMENT, index, length, 1, &next) != TILE_OK)
        return 0;
    int64_t stride = next.window->displacement - first->window->displacement;
    bool even = tile_follows(call, index, length, positions - 1, stride, first);
    for (int64_t d = 1; d <= index->size / d && even; d++) {
        if (index->size % d)
            continue;
        int64_t other = index->size / d;
        even = (d >= positions || tile_follows(call, index, length, d, stride, first)) &&
               (other >= positions || tile_follows(call, index, length, other, stride, first));
    }
    return even ? stride : 0;
}

/* The tile that begins at a number of the launch: that of the first position, and what each further one adds. */
value stage_make_running_tile_dm(const stage_call *call)
{
    const run_number *n = stage_argument_of(call, ARGUMENT_RUNNING)->run;
    arena *a = scope_context_of(call->scope)->arena;
    const mapping *index;
    int64_t length;
    stage_tile tile;
    run_position at;
    if (!stage_read_tile(call, ELEMENT, 0, &index, &length, &tile) || !stage_may_start(call, n, length, &at)) {
        call->kernel->bad = true;
        return stage_error;
    }
    int64_t size = index->count == 1 ? index->factors[0].live : index->size, positions = size - length + 1;
    int64_t stride = stride_of_tiles(call, index, length, positions, &tile);
    diag *d = NULL;
    if (at.more >= positions) {
        d = diag_add(stage_diags(call), E_TILE_RANGE, call->node->name_range,
                     "the tile takes a position past the %lldth of `%s`, which has %lld", (long long)(at.more + length - 1),
                     mapping_text(index, a), (long long)size);
        diag_help(stage_diags(call), d, "add at most %lld", (long long)positions - 1);
    } else if (stride == 0 || stage_cut_tile(call, call->receiver.op, ELEMENT, index, length, at.more, &tile) != TILE_OK) {
        d = diag_add(stage_diags(call), E_TILE_SPLIT, stage_type_argument(call, TYPE_INDEX)->range,
                     "failed to split by the index expression: positions of `%s` are not equal parts, equally far apart, in m![%s]",
                     mapping_text(index, a), mapping_text(call->receiver.op->out.part[ELEMENT], a));
        diag_help(stage_diags(call), d, "tile one digit after the other");
    }
    if (d) {
        call->kernel->bad = true;
        return stage_error;
    }
    op *view = stage_add_tile(call, call->receiver.op, &tile);
    run_start *start = ARENA_NEW(a, run_start);
    *start = (run_start){view->starts, at.port, at.bits, index, positions - at.more, stride};
    view->starts = start;
    return (value){.kind = VALUE_VIEW, .op = view};
}

STAGE_IS(tile, tile_of(call, ELEMENT))
STAGE_IS(chip_tile, tile_of(call, CHIP))
STAGE_IS(cluster_tile, tile_of(call, CLUSTER))
STAGE_IS(slice_tile, tile_of(call, SLICE))

value stage_make_begin(const stage_call *call)
{
    return (value){.kind = VALUE_BEGIN, .op = call->args[0].op, .context = call->receiver.context};
}

/* The axis that the first type argument names; NULL: diagnosed. */
static const axis *interleave_axis(const stage_call *call)
{
    scope_context *c = scope_context_of(call->scope);
    const ast *arg = stage_type_argument(call, TYPE_AXIS), *last = arg ? ast_last_segment(arg) : NULL;
    symbol *y = last ? scope_find_path(call->scope, TYPE_NAMES, arg) : NULL;
    if (y ? y->kind == SYMBOL_AXIS && !y->axis : last && scope_is_lost(call->scope, last->text)) /* refused where it is declared */
        return NULL;
    if (y && y->kind == SYMBOL_AXIS && y->axis->size == 2)
        return y->axis;
    diag *d;
    if (y && y->kind == SYMBOL_AXIS)
        d = diag_add(c->diags, E_INTERLEAVE, arg->range, "axis %s has %lld elements; two tensors are interleaved", y->axis->name,
                     (long long)y->axis->size);
    else
        d = diag_add(c->diags, E_INTERLEAVE, arg ? arg->range : call->node->name_range,
                     "`begin_interleaved` needs the axis that tells the two tensors apart");
    diag_help(c->diags, d, "declare axes![I = 2] and write begin_interleaved::<I, _, _, _, _, _>(..)");
    return NULL;
}

value stage_make_begin_interleaved(const stage_call *call)
{
    op *first = call->args[0].op, *second = call->args[1].op;
    const axis *a = interleave_axis(call);
    if (!a) {
        call->kernel->bad = true;
        return stage_error;
    }
    declared same = {.kind = DECLARED_TENSOR, .range = first->range, .has_dtype = true, .tensor = first->out};
    for (int c = 0; c < MAPPING_COMPONENTS; c++)
        same.parts[c] = first->parts[c].file >= 0 ? first->parts[c] : first->range;
    if (!first->bad && !second->bad && !stage_check_type(call->scope, ast_kid(call->node, 2)->kids[1]->range, &second->out, &same)) {
        call->kernel->bad = true;
        return stage_error;
    }
    return (value){.kind = VALUE_BEGIN, .op = first, .second = second, .interleave = a, .context = call->receiver.context};
}
