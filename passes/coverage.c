/* Rule: memory whose padding got names (passes/reshape.c) holds what it held before, and nothing else of it may be read.
 * Rule: of memory that is written through views each element is what was written last, and zero where nothing was: then the memory is
 * filled with zeros first, with a warning that names the first element. A `&mut` parameter is read where it was written only. A view's
 * elements are a displacement plus the digits of its Element, so with the positions cut at every stride that the memory or one of its views
 * has, they are boxes of digits: two writes are apart when their boxes are, and what is covered is a sum of volumes. */
#include "passes/coverage.h"

#include <string.h>

#include "passes/engine/dma.h"
#include "passes/poison.h"
#include "support/budget.h"
#include "support/strbuf.h"

enum { MAX_LEVELS = 48, MAX_COMPARED = 1 << 16 };

typedef struct box {
    int64_t begin[MAX_LEVELS], end[MAX_LEVELS];
} box;

typedef struct box_list {
    box *items;
    size_t count, capacity;
} box_list;

/* One memory that is written in parts. */
typedef struct memory {
    const op *root;
    int64_t cuts[MAX_LEVELS + 1]; /* strides, ascending, and the size */
    size_t levels;
    bool in_units;         /* a view is a tile of Chip, Cluster or Slice: positions count through all units, not through Element alone */
    bool undecided;        /* the strides do not divide each other */
    int64_t live, covered; /* elements */
    box_list boxes;
    const op **writers; /* by box */
    size_t writer_count, writer_capacity;
    bool whole;                     /* written at once, by the operation that made it */
    bool told;                      /* reported already: judge no more */
    bool zeros, written, rewritten; /* it begins as zeros; views of it are written; elements of it more than once */
    bool by_cases;                  /* of some elements each block of an `if` is a writer */
    bool was_read;                  /* so that what is written again was of use */
    bool aligned;                   /* all boxes have the size of the first and begin at a multiple of it: equal or apart */
    size_t *table, table_size;      /* of boxes, by where they begin; entries are number + 1 */
} memory;

typedef struct coverage {
    pass_context *context;
    kernel *kernel;
    memory **of; /* by operation: of its root; NULL: made at once */
} coverage;

/* ---- levels ---- */

static void add_cut(memory *m, int64_t cut)
{
    size_t i = 0;
    while (i < m->levels && m->cuts[i] < cut)
        i++;
    if (i < m->levels && m->cuts[i] == cut)
        return;
    if (m->levels == MAX_LEVELS) {
        m->undecided = true;
        return;
    }
    memmove(&m->cuts[i + 1], &m->cuts[i], (m->levels - i) * sizeof *m->cuts);
    m->cuts[i] = cut;
    m->levels++;
}

/* The positions that the boxes count: Element, or with the units around it. NULL: more than can be counted. */
static const mapping *positions(coverage *c, const memory *m, const tensor *t)
{
    const mapping *whole = t->part[ELEMENT];
    return !m->in_units || tensor_whole(c->context->mappings, t, &whole) == MAPPING_OK ? whole : NULL;
}

static int64_t displacement_of(const memory *m, const op *view)
{
    if (!view->window)
        return 0;
    int64_t unit = m->root->out.part[ELEMENT]->size, at = view->window->displacement;
    for (int c = TILE_UNITS - 1; m->in_units && c >= 0; c--) {
        at += view->window->units[c] * unit;
        unit *= m->root->out.part[c] ? m->root->out.part[c]->size : 1;
    }
    return at;
}

static void add_strides(memory *m, const mapping *element)
{
    int64_t stride = 1;
    m->undecided = m->undecided || !element;
    if (!element)
        return;
    for (size_t i = element->count; i-- > 0;) {
        add_cut(m, stride);
        stride *= element->factors[i].extent;
    }
}

static void finish_cuts(coverage *c, memory *m)
{
    const mapping *all = positions(c, m, &m->root->out);
    add_cut(m, 1);
    m->cuts[m->levels] = all ? all->size : 1;
    for (size_t i = 0; i < m->levels; i++)
        m->undecided = m->undecided || m->cuts[i + 1] % m->cuts[i];
}

/* ---- boxes ---- */

typedef struct expansion {
    coverage *c;
    const memory *m;
    const mapping *element;
    box_list out;
} expansion;

/* How many values the digit of the element that starts at this stride has; 1: none starts there. */
static int64_t digit_at(const mapping *element, int64_t stride)
{
    int64_t at = 1;
    for (size_t i = element->count; i-- > 0;) {
        if (at == stride)
            return element->factors[i].live;
        at *= element->factors[i].extent;
    }
    return 1;
}

/* Fixes level `i` and those above; `values` of a digit go on from the levels below (1: none). */
static void expand(expansion *x, size_t i, int64_t displacement, int64_t values, box *b)
{
    if (i == x->m->levels) {
        ARENA_PUSH(x->c->context->arena, x->out.items, x->out.count, x->out.capacity, *b);
        return;
    }
    int64_t radix = x->m->cuts[i + 1] / x->m->cuts[i], from = displacement / x->m->cuts[i] % radix;
    if (values == 1)
        values = digit_at(x->element, x->m->cuts[i]);
    if (values <= radix - from) {
        b->begin[i] = from;
        b->end[i] = from + values;
        expand(x, i + 1, displacement, 1, b);
        return;
    }
    if (from > 0) { /* up to the end of this level's digit, then the rest */
        int64_t head = radix - from;
        b->begin[i] = from;
        b->end[i] = radix;
        expand(x, i + 1, displacement, 1, b);
        displacement += head * x->m->cuts[i];
        values -= head;
        if (values < radix) {
            b->begin[i] = 0;
            b->end[i] = values;
            expand(x, i + 1, displacement, 1, b);
            return;
        }
    }
    b->begin[i] = 0;
    b->end[i] = radix;
    expand(x, i + 1, displacement, values / radix, b);
    if (values % radix) {
        b->end[i] = values % radix;
        expand(x, i + 1, displacement + values / radix * x->m->cuts[i + 1], 1, b);
    }
}

static box_list boxes_of(coverage *c, const memory *m, const op *view)
{
    expansion x = {.c = c, .m = m, .element = positions(c, m, &view->out)};
    box b;
    if (x.element)
        expand(&x, 0, displacement_of(m, view), 1, &b);
    return x.out;
}

static int64_t common_elements(const memory *m, const box *a, const box *b)
{
    int64_t volume = 1;
    for (size_t i = 0; i < m->levels; i++) {
        int64_t begin = a->begin[i] > b->begin[i] ? a->begin[i] : b->begin[i], end = a->end[i] < b->end[i] ? a->end[i] : b->end[i];
        if (end <= begin)
            return 0;
        volume *= end - begin;
    }
    return volume;
}

/* ---- boxes of one grid ---- */

static bool is_of_grid(const memory *m, const box *b)
{
    const box *first = m->boxes.count ? &m->boxes.items[0] : b;
    for (size_t i = 0; i < m->levels; i++) {
        int64_t length = b->end[i] - b->begin[i];
        if (length != first->end[i] - first->begin[i] || b->begin[i] % length)
            return false;
    }
    return true;
}

static size_t grid_slot(const memory *m, const box *b)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < m->levels; i++)
        hash = (hash ^ (uint64_t)b->begin[i]) * 1099511628211u;
    hash ^= hash >> 29;
    size_t slot = (size_t)hash & (m->table_size - 1);
    while (m->table[slot] && memcmp(m->boxes.items[m->table[slot] - 1].begin, b->begin, m->levels * sizeof *b->begin) != 0)
        slot = (slot + 1) & (m->table_size - 1);
    return slot;
}

static void grid_add(coverage *c, memory *m, size_t number)
{
    if (2 * (number + 1) > m->table_size) {
        m->table_size = m->table_size ? 4 * m->table_size : 64;
        m->table = ARENA_ARRAY(c->context->arena, size_t, m->table_size);
        for (size_t i = 0; i < number; i++)
            m->table[grid_slot(m, &m->boxes.items[i])] = i + 1;
    }
    m->table[grid_slot(m, &m->boxes.items[number])] = number + 1;
}

/* ---- writes and reads ---- */

/* The write that has elements in common with the box, or NULL; *undecided when there are too many to compare. */
static const op *writer_of(const memory *m, const box *b, bool *undecided)
{
    if (m->whole)
        return m->root;
    if (m->aligned && m->table_size && is_of_grid(m, b)) {
        size_t number = m->table[grid_slot(m, b)];
        return number ? m->writers[number - 1] : NULL;
    }
    *undecided = *undecided || m->boxes.count > MAX_COMPARED;
    for (size_t i = 0; i < m->boxes.count && !*undecided; i++)
        if (common_elements(m, b, &m->boxes.items[i]))
            return m->writers[i];
    return NULL;
}

static void add_box(coverage *c, memory *m, const box *b, const op *writer)
{
    m->aligned = m->boxes.count == 0 ? is_of_grid(m, b) : m->aligned && is_of_grid(m, b);
    ARENA_PUSH(c->context->arena, m->boxes.items, m->boxes.count, m->boxes.capacity, *b);
    ARENA_PUSH(c->context->arena, m->writers, m->writer_count, m->writer_capacity, writer);
    if (m->aligned)
        grid_add(c, m, m->boxes.count - 1);
    m->covered += common_elements(m, b, b);
}

/* Warns that the memory is zero where nothing is written; it is not refused. */
static diag *begin_with_zeros(coverage *c, op *o, memory *m, const char *message)
{
    m->zeros = m->told = true;
    diag *d = diag_add(c->context->diags, W_UNWRITTEN, o->range, "%s", message);
    if (m->root->range.file >= 0 && m->root->range.begin != o->range.begin)
        diag_note(c->context->diags, d, m->root->range, "`%s` is filled with zeros here, before anything is written", pass_name(m->root));
    return d;
}

static void tell_undecided(coverage *c, op *o, memory *m)
{
    const char *text =
        arena_printf(c->context->arena, "it cannot be decided which elements of `%s` its many different tiles write", pass_name(m->root));
    diag *d = begin_with_zeros(c, o, m, text);
    diag_help(c->context->diags, d, "cut `%s` into tiles of one size", pass_name(m->root));
}

/* What a copy or chain writes as it is, from where that is made or lies. */
static const op *unchanged_from(const op *o)
{
    const op *from = op_input(o);
    while (from && (from->kind == IR_COLLECT || from->kind == IR_FETCH || from->kind == IR_COMMIT_TRIM))
        from = op_input(from);
    return from;
}

/* Does it write one number everywhere, or copy memory that was filled so? That is done in order to write over it. */
static bool fills_with_number(const coverage *c, const op *o)
{
    const op *from = unchanged_from(o);
    const memory *m = from && from->kind != IR_GENERATE ? c->of[op_root(from)->index] : NULL;
    bool all = from && (from->kind == IR_GENERATE || (m && m->writer_count > 0));
    for (size_t i = 0; m && i < m->writer_count; i++)
        all = all && op_input(m->writers[i]) && op_input(m->writers[i])->kind == IR_GENERATE;
    return all;
}

static void tell_written_twice(coverage *c, const op *o, const op *view, memory *m, const op *other)
{
    if (m->rewritten || fills_with_number(c, other))
        return;
    m->rewritten = true;
    if (m->whole || m->was_read) /* what it holds is replaced: that is why it is written */
        return;
    diag *d =
        diag_add(c->context->diags, W_WRITTEN_TWICE, o->range, "%s writes elements of `%s` that were written before: the last write stays",
                 op_kind_name(o->kind), pass_name(m->root));
    diag_note(c->context->diags, d, other->range,
              other->range.begin == o->range.begin ? "by the same statement, an iteration before" : "by this");
    if (view->kind == IR_VIEW)
        diag_help(c->context->diags, d, "let the tiles of `%s` lie next to each other: start counts positions of Index",
                  pass_name(m->root));
    else
        diag_help(c->context->diags, d, "leave out the write before, or let it go to memory of its own");
}

/* The parts of a box that the other one leaves, on the list. */
static void add_rest(coverage *c, const memory *m, const box *b, const box *taken, box_list *rest)
{
    box left = *b;
    for (size_t i = 0; i < m->levels; i++) {
        box part = left;
        if (left.begin[i] < taken->begin[i]) {
            part.end[i] = taken->begin[i];
            ARENA_PUSH(c->context->arena, rest->items, rest->count, rest->capacity, part);
            left.begin[i] = taken->begin[i];
        }
        part = left;
        if (left.end[i] > taken->end[i]) {
            part.begin[i] = taken->end[i];
            ARENA_PUSH(c->context->arena, rest->items, rest->count, rest->capacity, part);
            left.end[i] = taken->end[i];
        }
    }
}

/* What of the box was not written before; false: that takes too long to find. */
static bool unwritten_parts(coverage *c, const memory *m, const box *b, box_list *out)
{
    ARENA_PUSH(c->context->arena, out->items, out->count, out->capacity, *b);
    for (size_t k = 0; k < m->boxes.count; k++) {
        box_list rest = {0};
        for (size_t i = 0; i < out->count; i++) {
            if (common_elements(m, &out->items[i], &m->boxes.items[k]))
                add_rest(c, m, &out->items[i], &m->boxes.items[k], &rest);
            else
                ARENA_PUSH(c->context->arena, rest.items, rest.count, rest.capacity, out->items[i]);
        }
        budget_spend(c->context->arena, rest.count + 1);
        *out = rest;
        if (rest.count > MAX_COMPARED)
            return false;
    }
    return true;
}

static void write_part(coverage *c, op *o, const op *view, memory *m)
{
    bool undecided = m->undecided;
    m->written = true;
    if (m->told)
        return;
    box_list boxes = boxes_of(c, m, view);
    for (size_t i = 0; i < boxes.count && !undecided; i++) {
        const op *other = writer_of(m, &boxes.items[i], &undecided);
        box_list parts = {0};
        if (other)
            tell_written_twice(c, o, view, m, other);
        if (m->whole || undecided)
            continue;
        if (!other)
            add_box(c, m, &boxes.items[i], o);
        else if (!unwritten_parts(c, m, &boxes.items[i], &parts))
            undecided = true;
        for (size_t k = 0; k < parts.count && !undecided; k++)
            add_box(c, m, &parts.items[k], o);
    }
    if (undecided && !m->whole)
        tell_undecided(c, o, m);
}

/* The box that holds a point; NULL: none was written there. */
static const box *box_around(const memory *m, const int64_t *point)
{
    for (size_t i = 0; i < m->boxes.count; i++) {
        const box *b = &m->boxes.items[i];
        size_t level = 0;
        while (level < m->levels && b->begin[level] <= point[level] && point[level] < b->end[level])
            level++;
        if (level == m->levels)
            return b;
    }
    return NULL;
}

/* The first position of a box that was not written; -1: it takes too long to find. Written ones are passed a box at a time. */
static int64_t first_unwritten(const memory *m, const box *wanted, int64_t *compared)
{
    int64_t point[MAX_LEVELS], position = 0;
    memcpy(point, wanted->begin, sizeof point);
    const box *written;
    while ((written = box_around(m, point))) {
        size_t level = 0;
        point[0] = written->end[0];
        while (level + 1 < m->levels && point[level] >= wanted->end[level]) {
            point[level] = wanted->begin[level];
            point[++level]++;
        }
        *compared += (int64_t)m->boxes.count;
        if (point[level] >= wanted->end[level] || *compared > (int64_t)MAX_COMPARED << 6)
            return -1;
    }
    for (size_t i = 0; i < m->levels; i++)
        position += point[i] * m->cuts[i];
    return position;
}

/* "; A=14, B=0 is the first that is not", or nothing. */
static const char *first_missing(coverage *c, const memory *m, const box_list *boxes, const char *verb)
{
    const mapping *all = positions(c, m, &m->root->out);
    int64_t least = -1, compared = 0;
    for (size_t i = 0; i < boxes->count; i++) {
        int64_t at = first_unwritten(m, &boxes->items[i], &compared);
        least = at >= 0 && (least < 0 || at < least) ? at : least;
    }
    const axis *axes[MAX_LEVELS];
    uint32_t count = all ? mapping_axes(all, axes, MAX_LEVELS) : 0, coordinates = 0;
    for (uint32_t i = 0; i < count; i++)
        coordinates = axes[i]->number >= coordinates ? axes[i]->number + 1 : coordinates;
    int64_t *index = ARENA_ARRAY(c->context->arena, int64_t, (size_t)coordinates + 1);
    if (least < 0 || count == 0 || !mapping_map(all, least, index))
        return "";
    strbuf s;
    strbuf_init(&s, c->context->arena);
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(&s, "%s%s=%lld", i ? ", " : "; ", axes[i]->name, (long long)index[axes[i]->number]);
    strbuf_printf(&s, " is the first that %s not", verb);
    return s.text;
}

static bool names_padding(const op *o)
{
    return o->kind == IR_RESHAPE && o->reshape && o->reshape->poison;
}

/* What the host hands over to be written: what else it holds is the host's. */
static bool is_parameter(const coverage *c, const op *root)
{
    for (size_t i = 0; i < c->kernel->op_count; i++)
        if (c->kernel->ops[i]->kind == IR_PORT_OUT && op_input(c->kernel->ops[i]) == root &&
            c->kernel->ops[i]->range.begin == root->range.begin)
            return true;
    return false;
}

static void read_part(coverage *c, op *o, const op *view, memory *m)
{
    m->was_read = true;
    if (m->covered == m->live || m->whole || m->told)
        return;
    int64_t wanted = 0, found = 0;
    bool undecided = m->undecided;
    box_list boxes = boxes_of(c, m, view);
    for (size_t i = 0; i < boxes.count; i++) {
        const box *b = &boxes.items[i];
        wanted += common_elements(m, b, b);
        bool one = m->aligned && is_of_grid(m, b) && m->table_size;
        undecided = undecided || (!one && m->boxes.count > MAX_COMPARED);
        if (one && m->table[grid_slot(m, b)])
            found += common_elements(m, b, b);
        for (size_t k = 0; k < m->boxes.count && !one && !undecided; k++)
            found += common_elements(m, b, &m->boxes.items[k]);
    }
    if (undecided) {
        tell_undecided(c, o, m);
    } else if (found < wanted) {
        if (names_padding(m->root)) {
            m->told = true;
            const op *reader = poison_reader(c->context, c->kernel, m->root);
            if (!reader)
                return;
            diag *d = pass_refuse(c->context, c->kernel, o, MAPPING_COMPONENTS, E_POISON,
                                  "of the %lld elements of `%s` that are read here only %lld hold a value, the others were padding%s",
                                  (long long)wanted, pass_name(m->root), (long long)found, first_missing(c, m, &boxes, "does"));
            diag_note(c->context->diags, d, m->root->range, "padding gets a name here");
            if (reader->range.begin > o->range.begin) /* else it is the same statement */
                diag_note(c->context->diags, d, reader->range, "and a result depends on it here");
            diag_help(c->context->diags, d, "copy the elements to where they are read, or tile `%s` as far as it holds them",
                      pass_name(m->root));
            return;
        }
        bool output = o->kind == IR_PORT_OUT, given = !output && is_parameter(c, m->root);
        const char *text =
            arena_printf(c->context->arena,
                         output ? "of output `%s` only %lld of %lld elements are written%s"
                                : "of `%s` only %lld of the %lld elements that are read here were written%s",
                         pass_name(m->root), (long long)found, (long long)wanted, first_missing(c, m, &boxes, output ? "is" : "was"));
        if (given) {
            m->told = true;
            diag *d = pass_refuse(c->context, c->kernel, o, MAPPING_COMPONENTS, E_UNWRITTEN, "%s", text);
            diag_help(c->context->diags, d,
                      m->boxes.count == 0 ? "a tensor that is only read is passed as `&`, not `&mut`"
                                          : "write the missing elements, or pass what is read as a tensor of its own");
        } else {
            diag *d = begin_with_zeros(c, o, m, arena_printf(c->context->arena, "%s; the others are zero", text));
            diag_help(c->context->diags, d, "write the missing elements, or tile `%s` as far as it is written", pass_name(m->root));
        }
    }
}

/* ---- all of the kernel ---- */

static memory *memory_of(coverage *c, const op *o)
{
    const op *root = op_root(o);
    memory *m = c->of[root->index];
    if (m)
        return m;
    m = ARENA_NEW(c->context->arena, memory);
    bool poison = names_padding(root);
    *m = (memory){.root = root, .live = 1, .whole = root->kind != IR_ALLOC && !poison, .in_units = poison};
    return c->of[root->index] = m;
}

static bool tiles_units(const op *view, const op *root)
{
    for (component c = CHIP; c <= SLICE; c++)
        if (view->out.part[c] != root->out.part[c])
            return true;
    return false;
}

static void measure(coverage *c, memory *m)
{
    const mapping *all = positions(c, m, &m->root->out);
    for (size_t i = 0; all && i < all->count; i++)
        m->live *= all->factors[i].live;
    add_strides(m, all);
}

static bool is_part(const op *o)
{
    return o->kind == IR_ALLOC || op_into(o) != NULL || names_padding(o);
}

/* Which rows it writes the list says: all others keep what they hold, which is zero where nothing was written. */
static void write_somewhere(coverage *c, op *o, memory *m)
{
    m->written = m->rewritten = true;
    if (m->told || m->whole || m->covered == m->live)
        return;
    diag *d = begin_with_zeros(c, o, m,
                               arena_printf(c->context->arena, "`%s` holds no elements but those that %s writes here; the others are zero",
                                            pass_name(m->root), op_kind_name(o->kind)));
    diag_help(c->context->diags, d, "pass it as an `&mut` parameter, whose elements come in");
}

/* Whether it writes only a number of the launch says: all keep what they hold, which is zero where nothing was written. Inside of what
 * runs on the same condition it is as if there were none. */
static bool is_uncertain(const op *o, const memory *m)
{
    return o->runs_if != m->root->runs_if && o->runs_if;
}

/* Conditions that hold together, each without those around it; the order says nothing. */
enum { MOST_CONDITIONS = 16 };
typedef struct conditions {
    const run_guard *all[MOST_CONDITIONS];
    size_t count;
} conditions;

static bool same_condition(const run_guard *a, const run_guard *b)
{
    return a->port == b->port && a->bits == b->bits && a->first == b->first && a->span == b->span;
}

/* Exactly one of the two holds. */
static bool is_opposite(const run_guard *a, const run_guard *b)
{
    uint64_t most = a->bits < 64 ? ((uint64_t)1 << a->bits) - 1 : UINT64_MAX;
    return a->port == b->port && a->bits == b->bits && a->span < most && b->first == ((a->first + a->span + 1) & most) &&
           b->span == most - a->span - 1;
}

static bool has_condition(const conditions *c, const run_guard *g)
{
    bool has = false;
    for (size_t i = 0; i < c->count; i++)
        has = has || same_condition(c->all[i], g);
    return has;
}

/* Those of the guard that are not around it anyway; false: too many. */
static bool conditions_of(const run_guard *g, const run_guard *around, conditions *out)
{
    conditions given = {.count = 0};
    out->count = 0;
    for (; around && given.count < MOST_CONDITIONS; around = around->outer)
        given.all[given.count++] = around;
    for (; g; g = g->outer) {
        if (has_condition(&given, g) || has_condition(out, g))
            continue;
        if (out->count == MOST_CONDITIONS)
            return false;
        out->all[out->count++] = g;
    }
    return true;
}

/* Where both are the same but for one condition, of which the other one has the opposite: what they have in common, in `a`. */
static bool join(conditions *a, const conditions *b)
{
    size_t apart = a->count;
    for (size_t i = 0; i < a->count; i++) {
        if (has_condition(b, a->all[i]))
            continue;
        if (apart < a->count)
            return false;
        apart = i;
    }
    if (a->count != b->count || apart == a->count)
        return false;
    for (size_t i = 0; i < b->count; i++)
        if (is_opposite(a->all[apart], b->all[i])) {
            a->all[apart] = a->all[--a->count];
            return true;
        }
    return false;
}

/* Joins one pair of the cases; false: none is left that can be. */
static bool join_two(conditions *cases, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        for (size_t k = 0; k < *count; k++)
            if (i != k && join(&cases[i], &cases[k])) {
                cases[k] = cases[--*count];
                return true;
            }
    return false;
}

/* Does one of the cases hold always? */
static bool are_all_cases(conditions *cases, size_t count)
{
    bool all = false;
    while (join_two(cases, &count))
        ;
    for (size_t i = 0; i < count; i++)
        all = all || cases[i].count == 0;
    return all;
}

static bool same_boxes(const coverage *c, const memory *m, const box_list *a, const box_list *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++)
        for (size_t level = 0; level < m->levels && same; level++)
            same = a->items[i].begin[level] == b->items[i].begin[level] && a->items[i].end[level] == b->items[i].end[level];
    budget_spend(c->context->arena, a->count + 1);
    return same;
}

/* Who writes the same in other cases, in the order of the text. */
enum { MOST_CASES = 64 };
typedef struct case_writers {
    const op *all[MOST_CASES];
    size_t count;
} case_writers;

/* Is that what is written here written in every case, by the other block of the `if`? */
static bool is_written_anyway(coverage *c, const op *o, const memory *m, const box_list *boxes, case_writers *by)
{
    conditions *cases = ARENA_ARRAY(c->context->arena, conditions, MOST_CASES);
    by->count = 0;
    for (size_t i = o->index; i < c->kernel->op_count && by->count < MOST_CASES; i++) {
        const op *other = c->kernel->ops[i];
        const op *into = other->runs_if && other->kind != IR_VIEW ? op_into(other) : NULL;
        budget_spend(c->context->arena, 1);
        if (!into || op_root(into) != m->root)
            continue;
        box_list written = boxes_of(c, m, into);
        if (same_boxes(c, m, boxes, &written) && conditions_of(other->runs_if, m->root->runs_if, &cases[by->count]))
            by->all[by->count++] = other;
    }
    return are_all_cases(cases, by->count);
}

static bool reads(const op *o, const memory *m)
{
    for (size_t j = 0; j < o->operand_count && o->kind != IR_VIEW; j++)
        if (operand_access_of(o->operands[j].role) != WRITES && op_root(o->operands[j].of) == m->root)
            return true;
    return false;
}

/* Does the writer run wherever the other operation does? */
static bool runs_as_well(const op *writer, const op *other, const memory *m)
{
    conditions wanted, given;
    bool all = conditions_of(writer->runs_if, m->root->runs_if, &wanted) && conditions_of(other->runs_if, m->root->runs_if, &given);
    for (size_t i = 0; all && i < wanted.count; i++)
        all = has_condition(&given, wanted.all[i]);
    return all;
}

/* Is the memory read, before the last of them, by what may run without any that comes first? */
static bool is_read_between(coverage *c, const memory *m, const case_writers *by)
{
    for (size_t i = by->all[0]->index; i <= by->all[by->count - 1]->index; i++) {
        const op *o = c->kernel->ops[i];
        bool before = !reads(o, m);
        for (size_t w = 0; w < by->count && by->all[w]->index < i && !before; w++)
            before = runs_as_well(by->all[w], o, m);
        if (!before)
            return true;
        budget_spend(c->context->arena, 1);
    }
    return false;
}

static void write_perhaps(coverage *c, op *o, const op *view, memory *m)
{
    bool undecided = m->undecided, covered = m->whole || m->covered == m->live;
    m->written = m->rewritten = true;
    if (m->told || covered)
        return;
    int64_t wanted = 0, found = 0;
    box_list boxes = boxes_of(c, m, view);
    for (size_t i = 0; i < boxes.count && !undecided; i++) {
        undecided = m->boxes.count > MAX_COMPARED;
        wanted += common_elements(m, &boxes.items[i], &boxes.items[i]);
        for (size_t k = 0; k < m->boxes.count && !undecided; k++)
            found += common_elements(m, &boxes.items[i], &m->boxes.items[k]);
    }
    if (!undecided && found == wanted)
        return;
    case_writers by;
    if (!undecided && is_written_anyway(c, o, m, &boxes, &by)) {
        m->by_cases = true;
        m->zeros = m->zeros || is_read_between(c, m, &by);
        write_part(c, o, view, m);
        return;
    }
    diag *d = begin_with_zeros(c, o, m,
                               arena_printf(c->context->arena,
                                            "`%s` is written here only where a number of the launch says so; elsewhere it is zero",
                                            pass_name(m->root)));
    diag_help(c->context->diags, d, "write it before the `if`: view_mut().memset(0, &mut device.sub)");
}

/* Of a view that begins where a number of the launch says: what it is a tile of, all of which it may be. */
static const op *known_view(const op *view)
{
    while (view->starts)
        view = op_input(view);
    return view;
}

static void use_operand(coverage *c, op *o, const op_operand *x)
{
    memory *m = c->of[op_root(x->of)->index];
    if (operand_access_of(x->role) == WRITES && o->kind == IR_SCATTER)
        write_somewhere(c, o, m);
    else if (operand_access_of(x->role) == WRITES && is_uncertain(o, m))
        write_perhaps(c, o, x->of, m);
    else if (operand_access_of(x->role) == WRITES)
        write_part(c, o, x->of, m);
    else if (m && !(o->kind == IR_RESHAPE && names_padding(m->root))) /* a name reads nothing */
        read_part(c, o, known_view(x->of), m);
}

void pass_coverage(pass_context *p, kernel *k)
{
    coverage c = {p, k, ARENA_ARRAY(p->arena, memory *, k->op_count + 1)};
    if (k->bad)
        return;
    for (size_t i = 0; i < k->op_count; i++)
        if (is_part(k->ops[i]))
            memory_of(&c, op_into(k->ops[i]) ? op_into(k->ops[i]) : k->ops[i]);
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i]->kind == IR_VIEW && c.of[op_root(k->ops[i])->index] && tiles_units(k->ops[i], op_root(k->ops[i])))
            c.of[op_root(k->ops[i])->index]->in_units = true;
    for (size_t i = 0; i < k->op_count; i++)
        if (c.of[i])
            measure(&c, c.of[i]);
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i]->kind == IR_VIEW && c.of[op_root(k->ops[i])->index])
            add_strides(c.of[op_root(k->ops[i])->index], positions(&c, c.of[op_root(k->ops[i])->index], &k->ops[i]->out));
    for (size_t i = 0; i < k->op_count; i++)
        if (names_padding(k->ops[i]))
            add_strides(c.of[i], positions(&c, c.of[i], &k->ops[i]->reshape->from->out));
    for (size_t i = 0; i < k->op_count; i++)
        if (c.of[i])
            finish_cuts(&c, c.of[i]);
    for (size_t i = 0; i < k->op_count; i++) {
        op *o = k->ops[i];
        p->diags->repeating = o->repeated;
        for (size_t j = 0; j < o->operand_count && o->kind != IR_VIEW && !o->bad; j++)
            use_operand(&c, o, &o->operands[j]);
        if (names_padding(o) && !o->bad)
            write_part(&c, o, o->reshape->from, c.of[i]);
    }
    p->diags->repeating = 0;
    for (size_t i = 0; i < k->op_count && !k->bad; i++) {
        if (!c.of[i])
            continue;
        k->ops[i]->reads_zeros = c.of[i]->by_cases;
        k->ops[i]->changes = c.of[i]->zeros || c.of[i]->rewritten || (c.of[i]->whole && c.of[i]->written);
        if (c.of[i]->zeros)
            dma_zero(p, k->ops[i]);
    }
}
