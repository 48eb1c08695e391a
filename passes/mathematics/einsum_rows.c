#include "passes/mathematics/einsum_rows.h"

#include "passes/mathematics/einsum_guard.h"

/* Is the digit one of those that the list moves the place along? */
static bool is_indexed(const einsum_builder *b, const mapping *indexed, const einsum_digit *d)
{
    for (size_t i = 0; i < indexed->count; i++) {
        const factor *f = &indexed->factors[i];
        if (f->axis == b->axes[d->axis] && d->weight >= f->weight && d->weight < f->weight * f->live)
            return true;
    }
    return false;
}

/* An index for each digit of an axis: positions count through them, the last one fastest. False: refused. */
static bool add_digits_of(einsum_builder *b, einsum_step *step, op *o, const mapping *indexed, int64_t unit, int64_t positions,
                          reference list, einsum_index *indices, uint32_t *count)
{
    int64_t inner = indexed->size;
    uint32_t first = *count;
    for (size_t i = 0; i < indexed->count; i++) {
        const factor *f = &indexed->factors[i];
        inner /= f->extent;
        if (f->kind != FACTOR_AXIS || *count + 1 == EINSUM_SOURCES) {
            diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM,
                                  "IndexedAxis `%s` is part of a group, or has too many digits", mapping_text(indexed, b->context->arena));
            diag_help(b->context->diags, d, "let it be one axis, or a few whole ones");
            return false;
        }
        indices[*count] = (einsum_index){einsum_axis_number(b, f->axis), f->weight, unit, inner, *count > first ? f->live : 0, positions};
        step->s.sources[++*count] = list.value;
        if (*count > 1)
            einsum_add_shifts(b, step, (einsum_side)(EINSUM_A + *count), list.window);
    }
    return true;
}

/* `only`: the index of a table of one row, else NULL. */
static void add_indices(einsum_builder *b, einsum_step *step, op *o, reference list, einsum_index *only)
{
    uint32_t count = 0;
    einsum_index *indices = ARENA_ARRAY(b->context->arena, einsum_index, EINSUM_SOURCES);
    if (!add_digits_of(b, step, o, o->indirect->indexed, o->indirect->unit, o->indirect->positions, list, indices, &count))
        return;
    if (only)
        step->s.sources[++count] = list.value;
    step->s.indices = only ? only : indices;
    step->s.source_count = 1 + count;
    if (op_count(o)) {
        step->s.counted = true;
        step->s.count_span = op_index(o)->out.part[ELEMENT]->size;
        step->s.sources[step->s.source_count++] = b->of[op_count(o)->index].value;
    }
}

/* What the digits that the list is read by move: not the place that it says, and all elements of the list alike. */
static void settle_indices(const einsum_builder *b, einsum_step *step, const mapping *indexed, einsum_side side)
{
    for (uint32_t i = 0; i < step->s.digit_count; i++) {
        einsum_digit *d = &step->digits[i];
        if (is_indexed(b, indexed, d))
            d->broadcast |= 1u << side;
        for (uint32_t k = 2; k <= einsum_index_count(&step->s); k++)
            d->broadcast |= (d->broadcast >> EINSUM_B & 1) << (EINSUM_A + k);
    }
}

static bool has_one_row(const op *o)
{
    return o->indirect->indexed->count == 0;
}

/* Is one element of the operand there for all values of the digit? */
static bool repeats_along(einsum_builder *b, op *o, const op *source, const factor *f)
{
    const tensor digit = {.part = {[ELEMENT] = mapping_of_factor(b->context->mappings, f)}};
    return f->kind == FACTOR_AXIS && !einsum_source_holds(b, o, source, &digit);
}

/* Does a number move along digits that the operand's value repeats, or has no axis of? */
static bool moves_along_copies(einsum_builder *b, op *o, const op *source, const mapping *index)
{
    const einsum_tensor *v = &b->values[b->of[source->index].value];
    for (size_t i = 0; i < index->count; i++) {
        const factor *f = &index->factors[i];
        if (f->kind == FACTOR_AXIS && (!einsum_tensor_has(v, einsum_axis_number(b, f->axis)) || repeats_along(b, o, source, f)))
            return true;
    }
    return false;
}

/* A table of one row as the only position of an axis, which a list of zeros names as often as its count says. */
static reference with_row_axis(einsum_builder *b, op *o, reference rows, einsum_index *index)
{
    uint32_t dst = einsum_add_like(b, &op_input(o)->out, -1);
    uint32_t row = einsum_add_axis(b, dst, mapping_axis(b->context->mappings, "gather.row", 1));
    einsum_step *step = einsum_add_step(b, MATH_COPY, einsum_whole(dst), rows, rows);
    einsum_note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, &op_input(o)->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_input(o), NULL);
    *index = (einsum_index){.axis = row, .unit = 1, .step = o->indirect->unit, .div = 1, .positions = 1};
    return einsum_whole(dst);
}

void einsum_gather(einsum_builder *b, op *o)
{
    reference rows = b->of[op_input(o)->index], list = b->of[op_index(o)->index];
    uint32_t dst = einsum_add_like(b, &o->out, -1);
    b->of[o->index] = einsum_whole(dst);
    if (has_one_row(o) && !op_count(o)) { /* the list can only say 0 */
        einsum_add_copy(b, o, einsum_whole(dst), op_input(o), &o->out);
        return;
    }
    if (moves_along_copies(b, o, op_input(o), o->indirect->indexed))
        rows = einsum_copy_of(b, o, op_input(o), &op_input(o)->out);
    einsum_index *one = has_one_row(o) ? ARENA_NEW(b->context->arena, einsum_index) : NULL;
    if (one)
        rows = with_row_axis(b, o, rows, one);
    einsum_step *step = einsum_add_step(b, MATH_GATHER, einsum_whole(dst), rows, list);
    step->s.accumulator = o->out.dtype;
    add_indices(b, step, o, list, one);
    if (!o->bad)
        einsum_copy_digits(b, step, o, &o->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_input(o), op_index(o));
    settle_indices(b, step, o->indirect->indexed, EINSUM_A);
}

/* Positions of Domain between two values of the digit; 0: it is none of it. */
static int64_t domain_stride(const einsum_builder *b, const mapping *domain, const einsum_digit *d)
{
    int64_t position = 1;
    for (size_t i = domain->count; i-- > 0;) {
        const factor *f = &domain->factors[i];
        if (f->axis == b->axes[d->axis] && d->weight >= f->weight && d->weight < f->weight * f->live)
            return position * (d->weight / f->weight);
        position *= f->extent;
    }
    return 0;
}

/* The list's digits first, in its order: of two elements for one place the later one stays. */
static void order_digits(const einsum_builder *b, einsum_step *step, const mapping *domain)
{
    for (uint32_t i = 1; i < step->s.digit_count; i++) {
        einsum_digit d = step->digits[i];
        uint32_t k = i;
        for (; k > 0 && domain_stride(b, domain, &step->digits[k - 1]) < domain_stride(b, domain, &d); k--)
            step->digits[k] = step->digits[k - 1];
        step->digits[k] = d;
    }
}

void einsum_scatter(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index], list = b->of[op_index(o)->index],
              memory = {b->of[op_root(op_into(o))->index].value, op_into(o)->window}, to = memory;
    bool guarded = einsum_is_guarded(o);
    einsum_choice c = guarded ? einsum_begin_choice(b, o, memory) : (einsum_choice){0};
    if (guarded && !o->bad) { /* the second is what is there, with the rows */
        to = einsum_second_of(b, &c);
        einsum_copy_memory(b, o, to, memory);
    }
    einsum_step *step = einsum_add_step(b, MATH_SCATTER, to, from, list);
    step->s.accumulator = o->out.dtype;
    add_indices(b, step, o, list, NULL);
    if (!o->bad)
        einsum_copy_digits(b, step, o, &op_input(o)->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_input(o), op_index(o));
    settle_indices(b, step, o->indirect->indexed, EINSUM_DST);
    order_digits(b, step, o->indirect->domain);
    if (has_one_row(o))
        step->s.op = MATH_COPY;
    if (guarded && !o->bad)
        einsum_finish_choice(b, o, &c, memory);
}

/* ---- views that begin where a number says ---- */

/* Does the tile begin after the first value of a digit that its memory repeats? Of an axis that the value lacks all copies are equal
 * (drop_shifts). */
static bool begins_in_copies(einsum_builder *b, op *o, const op *root)
{
    for (component c = 0; c < MAPPING_COMPONENTS; c++)
        for (size_t i = 0; root->out.part[c] && i < root->out.part[c]->count; i++)
            for (uint32_t k = 0; k < o->window->shift_count; k++)
                if (root->out.part[c]->factors[i].axis == o->window->shifts[k].axis && o->window->shifts[k].offset != 0 &&
                    repeats_along(b, o, root, &root->out.part[c]->factors[i]))
                    return true;
    return false;
}

reference einsum_view_of(einsum_builder *b, op *o)
{
    const op *memory = op_root(o);
    reference root = begins_in_copies(b, o, memory) ? einsum_copy_of(b, o, memory, &memory->out) : b->of[memory->index];
    return (reference){root.value, root.window ? einsum_add_windows(b, root.window, o->window) : o->window};
}

/* The tile of a tile as one of the outer tile's value, whose places begin at 0 again. */
static const tile_window *inside_window(einsum_builder *b, const tile_window *w, const tile_window *outer)
{
    tile_window *back = ARENA_NEW(b->context->arena, tile_window);
    *back = *outer;
    for (uint32_t i = 0; i < back->shift_count; i++)
        back->shifts[i].offset = -back->shifts[i].offset;
    return einsum_add_windows(b, back, w);
}

/* Of a view and the tiles of it that begin at the same number the first one. */
static op *first_begun(op *view)
{
    op *begun = view;
    while (op_input(begun)->starts == view->starts)
        begun = op_input(begun);
    return begun;
}

/* What a view holds that begins where a number of the launch says: rows of the memory, or of a view that begins at another number and was
 * visited, whose list is this number. */
static void visit_start(einsum_builder *b, op *o, op *view)
{
    const run_start *s = view->starts;
    const op *outer = op_input(first_begun(view));
    const op *root = op_root(view);
    reference memory;
    if (s->outer) {
        memory = b->of[outer->index];
        const tile_window *inside = inside_window(b, view->window, outer->window);
        memory.window = memory.window ? einsum_add_windows(b, memory.window, inside) : inside;
    } else if (moves_along_copies(b, o, root, s->index)) {
        memory = (reference){einsum_copy_of(b, o, root, &root->out).value, view->window};
    } else {
        memory = einsum_view_of(b, view);
    }
    b->of[view->index] = memory;
    if (s->index->count == 0 || o->bad) /* the number can only say 0 */
        return;
    uint32_t dst = einsum_add_like(b, &view->out, -1), count = 0;
    einsum_index *indices = ARENA_ARRAY(b->context->arena, einsum_index, EINSUM_SOURCES);
    einsum_step *step = einsum_add_step(b, MATH_GATHER, einsum_whole(dst), memory, einsum_whole(0));
    b->computed[dst] = b->computed[memory.value];
    step->s.accumulator = view->out.dtype;
    if (!add_digits_of(b, step, o, s->index, 1, s->positions, einsum_whole(b->of[s->port->index].value), indices, &count))
        return;
    step->s.indices = indices;
    step->s.source_count = 1 + count;
    einsum_copy_digits(b, step, o, &view->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, view, NULL);
    b->of[view->index] = einsum_whole(dst);
}

void einsum_starts(einsum_builder *b, op *o, op *view)
{
    size_t depth = 1;
    for (const run_start *s = view->starts; s->outer; s = s->outer)
        depth++;
    op **views = ARENA_ARRAY(b->context->arena, op *, depth);
    for (size_t i = 0; i < depth; i++, view = op_input(first_begun(view)))
        views[i] = view;
    while (depth-- > 0)
        visit_start(b, o, views[depth]);
}
