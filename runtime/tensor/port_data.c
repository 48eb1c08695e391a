#include "runtime/tensor/port_data.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/tensor/numeric.h"

#define POSITION_LIMIT (INT64_C(1) << 60)

/* Tables of neighbouring factors are joined up to this many positions, so that inner loops are long. */
enum { JOINED_POSITIONS = 1 << 10 };

static layout_op op_of(uint64_t word)
{
    return (layout_op)(word & 0xff);
}

uint32_t port_logical_axes(const port *p, const layout_axis *axes, uint32_t axis_count, arena *a, uint32_t **order)
{
    (void)axes;
    bool *seen = ARENA_ARRAY(a, bool, (size_t)axis_count + 1);
    uint32_t count = 0;
    *order = ARENA_ARRAY(a, uint32_t, (size_t)axis_count + 1);
    for (int c = 0; c < COMPONENT_COUNT; c++)
        for (size_t w = 0; w < p->mapping[c].count; w++) {
            uint64_t word = p->mapping[c].words[w], axis = word >> 8;
            if (op_of(word) != LAYOUT_AXIS || axis >= axis_count || seen[axis])
                continue;
            seen[axis] = true;
            (*order)[count++] = (uint32_t)axis;
        }
    return count;
}

tensor_type port_logical_type(const port *p, const layout_axis *axes, uint32_t axis_count, arena *a)
{
    uint32_t *order, rank = port_logical_axes(p, axes, axis_count, a, &order);
    int64_t *shape = ARENA_ARRAY(a, int64_t, (size_t)rank + 1);
    const char **names = ARENA_ARRAY(a, const char *, (size_t)rank + 1);
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = axes[order[i]].size;
        names[i] = axes[order[i]].name;
    }
    return (tensor_type){p->dtype, (int)rank, shape, names};
}

int64_t port_physical_elements(const port *p, const layout_axis *axes)
{
    int64_t elements = 1;
    for (int c = 0; c < COMPONENT_COUNT; c++)
        if (p->mapping[c].count &&
            (__builtin_mul_overflow(elements, layout_size(p->mapping[c], axes), &elements) || elements > POSITION_LIMIT))
            return -1;
    return elements;
}

int64_t port_physical_bytes(const port *p, const layout_axis *axes)
{
    return tensor_bytes(p->dtype, port_physical_elements(p, axes));
}

/* ---- tables ---- */

/* Where the positions of a part of the mapping lie: a component, a factor of its top-level pairs, or several.
 */
typedef struct table {
    int64_t size;    /* positions */
    int64_t *linear; /* offset in the logical tensor, elements; -1: dead */
    int64_t *coords; /* [position][checked axis]; NULL: no axis is checked */
    bool contiguous; /* all live, each offset one more than the one before */
} table;

/* An axis of which several tables hold a part and whose parts may add up to its size or more. */
typedef struct packing {
    const layout_axis *axes;
    uint32_t axis_count, checked_count;
    uint32_t *checked;      /* axis numbers */
    int64_t *checked_sizes; /* by checked axis */
    int64_t *weights;       /* by axis number: stride in the logical tensor, elements */
    table *tables;          /* outermost first */
    size_t table_count;
    arena *arena; /* small things; the tables' arrays are malloc'd */
} packing;

typedef struct factor {
    layout layout;
    int64_t size;
} factor;

typedef struct factor_list {
    factor *items;
    size_t count, capacity;
    const layout_axis *axes;
    arena *arena;
} factor_list;

/* First word of the expression that ends at word `end`. */
static size_t expression_begin(layout l, size_t end)
{
    size_t at = end + 1;
    for (size_t missing = 1; missing > 0 && at > 0;) {
        layout_op op = op_of(l.words[--at]);
        missing += op == LAYOUT_PAIR ? 1 : 0;
        missing -= op == LAYOUT_AXIS || op == LAYOUT_BROADCAST ? 1 : 0;
    }
    return at;
}

/* A pair is its outer and its inner expression as two digits of the position, so each may have its own table.
 */
static void add_factors(factor_list *f, layout l)
{
    layout *inside = NULL; /* of each pair the inner part, from the last one on: a list is as long as its author likes */
    size_t count = 0, capacity = 0;
    while (l.count && op_of(l.words[l.count - 1]) == LAYOUT_PAIR) {
        size_t inner = expression_begin(l, l.count - 2);
        ARENA_PUSH(f->arena, inside, count, capacity, ((layout){l.words + inner, l.count - 1 - inner}));
        l = (layout){l.words, inner};
    }
    ARENA_PUSH(f->arena, f->items, f->count, f->capacity, ((factor){l, layout_size(l, f->axes)}));
    while (count > 0)
        add_factors(f, inside[--count]);
}

/* The highest coordinate that any live position has, by axis; -1: not named by this factor. Fills linear too.
 */
static void fill_table(const packing *k, const factor *f, table *t, int64_t *coords, int64_t *highest)
{
    memset(highest, 0xff, (k->axis_count + 1) * sizeof *highest);
    for (int64_t i = 0; i < t->size; i++) {
        for (size_t w = 0; w < f->layout.count; w++)
            if (op_of(f->layout.words[w]) == LAYOUT_AXIS)
                coords[f->layout.words[w] >> 8] = 0;
        t->linear[i] = -1;
        if (!layout_map(f->layout, k->axes, i, coords))
            continue;
        t->linear[i] = 0;
        for (size_t w = 0; w < f->layout.count; w++) {
            if (op_of(f->layout.words[w]) != LAYOUT_AXIS)
                continue;
            uint64_t axis = f->layout.words[w] >> 8;
            t->linear[i] += coords[axis] * k->weights[axis];
            highest[axis] = coords[axis] > highest[axis] ? coords[axis] : highest[axis];
            coords[axis] = 0; /* counted once, however often the expression names the axis */
        }
    }
}

/* Coordinates of the checked axes at every position. */
static bool fill_coords(const packing *k, const factor *f, table *t, int64_t *coords)
{
    if (k->checked_count == 0)
        return true;
    t->coords = calloc((size_t)t->size, k->checked_count * sizeof *t->coords);
    for (int64_t i = 0; t->coords && i < t->size; i++) {
        memset(coords, 0, k->axis_count * sizeof *coords);
        if (t->linear[i] < 0 || !layout_map(f->layout, k->axes, i, coords))
            continue;
        for (uint32_t c = 0; c < k->checked_count; c++)
            t->coords[i * k->checked_count + c] = coords[k->checked[c]];
    }
    return t->coords != NULL;
}

/* Tables of all factors; then the axes whose parts may add up too far, and their coordinates. */
static bool make_tables(packing *k, const factor_list *f)
{
    int64_t *coords = ARENA_ARRAY(k->arena, int64_t, (size_t)k->axis_count + 1);
    int64_t *highest = ARENA_ARRAY(k->arena, int64_t, (size_t)k->axis_count + 1);
    int64_t *sums = ARENA_ARRAY(k->arena, int64_t, (size_t)k->axis_count + 1);
    k->tables = ARENA_ARRAY(k->arena, table, f->count);
    for (size_t i = 0; i < f->count; i++) {
        table *t = &k->tables[k->table_count++];
        t->size = f->items[i].size;
        t->linear = malloc((size_t)t->size * sizeof *t->linear);
        if (!t->linear)
            return false;
        fill_table(k, &f->items[i], t, coords, highest);
        for (uint32_t x = 0; x < k->axis_count; x++)
            if (highest[x] > 0 && __builtin_add_overflow(sums[x], highest[x], &sums[x]))
                sums[x] = INT64_MAX;
    }
    for (uint32_t x = 0; x < k->axis_count; x++)
        if (sums[x] >= k->axes[x].size) {
            k->checked_sizes[k->checked_count] = k->axes[x].size;
            k->checked[k->checked_count++] = x;
        }
    for (size_t i = 0; i < f->count; i++)
        if (!fill_coords(k, &f->items[i], &k->tables[i], coords))
            return false;
    return true;
}

static void free_table(table *t)
{
    free(t->linear);
    free(t->coords);
    *t = (table){0};
}

/* Sum of the coordinates of two positions; false when a checked axis reaches its size. */
static bool add_coords(const packing *k, const int64_t *a, const int64_t *b, int64_t *sum)
{
    for (uint32_t c = 0; c < k->checked_count; c++) {
        sum[c] = a[c] + b[c];
        if (sum[c] >= k->checked_sizes[c])
            return false;
    }
    return true;
}

/* One table for both; false: no memory, and nothing changed. */
static bool join(const packing *k, table *outer, table *inner)
{
    size_t n = k->checked_count;
    table t = {.size = outer->size * inner->size};
    t.linear = malloc((size_t)t.size * sizeof *t.linear);
    t.coords = n ? calloc((size_t)t.size, n * sizeof *t.coords) : NULL;
    if (!t.linear || (n && !t.coords)) {
        free_table(&t);
        return false;
    }
    for (int64_t i = 0, at = 0; i < outer->size; i++)
        for (int64_t j = 0; j < inner->size; j++, at++) {
            bool live = outer->linear[i] >= 0 && inner->linear[j] >= 0 &&
                        (!n || add_coords(k, outer->coords + i * (int64_t)n, inner->coords + j * (int64_t)n, t.coords + at * (int64_t)n));
            t.linear[at] = live ? outer->linear[i] + inner->linear[j] : -1;
        }
    free_table(outer);
    free_table(inner);
    *outer = t;
    return true;
}

/* From the inside, so that the innermost table is long. */
static bool join_tables(packing *k)
{
    table *joined = ARENA_ARRAY(k->arena, table, k->table_count);
    size_t count = 0, at = k->table_count;
    table *list = k->tables;
    bool done = true;
    while (at > 0 && done) {
        table *inner = &list[--at];
        while (done && at > 0 && list[at - 1].size <= JOINED_POSITIONS / inner->size) {
            done = join(k, &list[at - 1], inner);
            inner = done ? &list[--at] : inner;
        }
        if (done) {
            joined[count++] = *inner;
            *inner = (table){0};
        }
    }
    if (!done) {
        for (size_t i = 0; i < count; i++)
            free_table(&joined[i]);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        list[i] = joined[count - 1 - i];
    for (size_t i = count; i < k->table_count; i++)
        list[i] = (table){0};
    k->table_count = count;
    return true;
}

static void mark_contiguous(const packing *k, table *t)
{
    t->contiguous = k->checked_count == 0 && t->linear[0] >= 0;
    for (int64_t i = 1; t->contiguous && i < t->size; i++)
        t->contiguous = t->linear[i] == t->linear[0] + i;
}

static void packing_free(packing *k)
{
    for (size_t i = 0; k->tables && i < k->table_count; i++)
        free_table(&k->tables[i]);
    arena_free(k->arena);
}

/* Strides of a row-major tensor, by axis number; false when its elements pass 2^60. */
static bool fill_weights(packing *k, const port *p)
{
    uint32_t *order, rank = port_logical_axes(p, k->axes, k->axis_count, k->arena, &order);
    int64_t weight = 1;
    for (uint32_t i = rank; i-- > 0;) {
        k->weights[order[i]] = weight;
        if (__builtin_mul_overflow(weight, k->axes[order[i]].size, &weight) || weight > POSITION_LIMIT)
            return false;
    }
    return true;
}

static bool packing_fill(packing *k, const port *p)
{
    size_t axes = (size_t)k->axis_count + 1;
    k->weights = ARENA_ARRAY(k->arena, int64_t, axes);
    k->checked = ARENA_ARRAY(k->arena, uint32_t, axes);
    k->checked_sizes = ARENA_ARRAY(k->arena, int64_t, axes);
    factor_list f = {.axes = k->axes, .arena = k->arena};
    for (int c = 0; c < COMPONENT_COUNT; c++)
        if (p->mapping[c].count)
            add_factors(&f, p->mapping[c]);
    if (f.count == 0) /* a port of one position */
        ARENA_PUSH(f.arena, f.items, f.count, f.capacity, ((factor){{NULL, 0}, 1}));
    if (port_physical_elements(p, k->axes) < 0 || !fill_weights(k, p))
        return false;
    if (!make_tables(k, &f) || !join_tables(k))
        return false;
    mark_contiguous(k, &k->tables[k->table_count - 1]);
    return true;
}

/* ---- copying ---- */

typedef struct copy {
    packing packing;
    dtype dtype;
    unsigned char *physical, *logical;
    const unsigned char *from_physical, *from_logical; /* one of them, by direction */
    unsigned char *covered;                            /* unpack */
    port_copies copies;
    bool whole; /* no position is without an element */
} copy;

/* A function per element width; `at` is a physical, `l` a logical element. */
#define ELEMENT_COPY(to, i, from, j, bits) \
    do { \
        if ((bits) == 4) \
            numeric_i4_put((to), (i), (int32_t)numeric_i4_bits((from), (j))); \
        else \
            memcpy((to) + (i) * ((bits) / 8), (from) + (j) * ((bits) / 8), (bits) / 8); \
    } while (0)

static inline bool same_element(const unsigned char *a, int64_t i, const unsigned char *b, int64_t j, unsigned bits)
{
    if (bits == 4)
        return numeric_i4_bits(a, i) == numeric_i4_bits(b, j);
    return memcmp(a + i * (bits / 8), b + j * (bits / 8), bits / 8) == 0;
}

static inline void pack_element(copy *c, int64_t at, int64_t l, unsigned bits)
{
    ELEMENT_COPY(c->physical, at, c->from_logical, l, bits);
}

static inline void unpack_element(copy *c, int64_t at, int64_t l, unsigned bits)
{
    if (c->covered[l]) {
        if (!same_element(c->logical, l, c->from_physical, at, bits)) {
            c->copies.disagreements++;
            if (c->copies.first < 0 || at < c->copies.first)
                c->copies.first = at;
        }
        return;
    }
    c->covered[l] = 1;
    ELEMENT_COPY(c->logical, l, c->from_physical, at, bits);
}

/* The innermost table, at one combination of the outer ones: offset, physical position, sums of checked axes.
 */
static inline void copy_run(copy *c, int64_t at, int64_t offset, const int64_t *coords, unsigned bits)
{
    const packing *k = &c->packing;
    const table *t = &k->tables[k->table_count - 1];
    int64_t n = k->checked_count;
    for (int64_t i = 0; i < t->size; i++) {
        if (t->linear[i] < 0)
            continue;
        bool live = true;
        for (int64_t x = 0; x < n; x++)
            live = live && coords[x] + t->coords[i * n + x] < k->checked_sizes[x];
        if (!live)
            continue;
        if (c->physical)
            pack_element(c, at + i, offset + t->linear[i], bits);
        else
            unpack_element(c, at + i, offset + t->linear[i], bits);
    }
}

static void copy_innermost(copy *c, int64_t at, int64_t offset, const int64_t *coords)
{
    const table *t = &c->packing.tables[c->packing.table_count - 1];
    unsigned bits = dtype_row_of(c->dtype)->bits;
    if (t->contiguous && bits >= 8 && c->physical) {
        size_t each = bits / 8;
        memcpy(c->physical + (size_t)at * each, c->from_logical + (size_t)(offset + t->linear[0]) * each, (size_t)t->size * each);
        return;
    }
    switch (bits) { /* constants, so that the copies become single moves */
    case 4: copy_run(c, at, offset, coords, 4); break;
    case 8: copy_run(c, at, offset, coords, 8); break;
    case 16: copy_run(c, at, offset, coords, 16); break;
    default: copy_run(c, at, offset, coords, 32); break;
    }
}

/* All combinations of table `level` and the ones inside it; `at` counts positions of the tables outside. */
static void copy_level(copy *c, size_t level, int64_t at, int64_t offset, int64_t *coords)
{
    const packing *k = &c->packing;
    const table *t = &k->tables[level];
    at *= t->size;
    if (level + 1 == k->table_count) {
        copy_innermost(c, at, offset, coords);
        return;
    }
    int64_t n = k->checked_count, *sums = coords + n;
    for (int64_t i = 0; i < t->size; i++)
        if (t->linear[i] >= 0 && (!n || add_coords(k, coords, t->coords + i * n, sums)))
            copy_level(c, level + 1, at + i, offset + t->linear[i], sums);
}

static bool is_whole(const packing *k)
{
    bool whole = k->checked_count == 0;
    for (size_t i = 0; i < k->table_count; i++)
        for (int64_t j = 0; whole && j < k->tables[i].size; j++)
            whole = k->tables[i].linear[j] >= 0;
    return whole;
}

static bool copy_port(copy *c, const port *p, const layout_axis *axes, uint32_t axis_count)
{
    packing *k = &c->packing;
    *k = (packing){.axes = axes, .axis_count = axis_count, .arena = arena_new()};
    if (!k->arena)
        return false;
    if (setjmp(*arena_guard(k->arena))) {
        packing_free(k);
        return false;
    }
    bool done = packing_fill(k, p);
    c->whole = done && is_whole(k);
    if (done && (c->physical || c->logical)) {
        int64_t *coords = ARENA_ARRAY(k->arena, int64_t, (k->table_count + 1) * k->checked_count + 1);
        copy_level(c, 0, 0, 0, coords);
    }
    packing_free(k);
    return done;
}

bool port_pack(const port *p, const layout_axis *axes, uint32_t axis_count, const unsigned char *logical, unsigned char *physical)
{
    copy c = {.dtype = p->dtype, .physical = physical, .from_logical = logical};
    return copy_port(&c, p, axes, axis_count);
}

bool port_is_in_order(const port *p)
{
    const layout *l = p->mapping;
    for (int c = 0; c < COMPONENT_COUNT; c++)
        for (size_t w = 0; w < l[c].count; w++) {
            uint64_t word = l[c].words[w];
            bool known = false; /* an axis that is named twice is walked twice */
            for (int d = 0; d <= c; d++)
                for (size_t v = 0; v < (d < c ? l[d].count : w); v++)
                    known |= l[d].words[v] == word;
            if (word != LAYOUT_WORD(LAYOUT_PAIR, 0) && word != LAYOUT_WORD(LAYOUT_BROADCAST, 1) && ((word & 0xff) != LAYOUT_AXIS || known))
                return false;
        }
    return true;
}

bool port_is_whole(const port *p, const layout_axis *axes, uint32_t axis_count)
{
    copy c = {.dtype = p->dtype};
    return copy_port(&c, p, axes, axis_count) && c.whole;
}

static int64_t logical_elements(const port *p, const layout_axis *axes, uint32_t axis_count)
{
    arena *a = arena_new();
    if (!a)
        return -1;
    if (setjmp(*arena_guard(a))) {
        arena_free(a);
        return -1;
    }
    tensor_type type = port_logical_type(p, axes, axis_count, a);
    int64_t elements = tensor_elements(&type);
    arena_free(a);
    return elements;
}

bool port_unpack(const port *p, const layout_axis *axes, uint32_t axis_count, const unsigned char *physical, unsigned char *logical,
                 unsigned char *covered, port_copies *copies)
{
    int64_t elements = logical_elements(p, axes, axis_count);
    if (elements < 0)
        return false;
    unsigned char *own = covered ? NULL : malloc((size_t)elements + 1);
    copy c = {.dtype = p->dtype, .logical = logical, .from_physical = physical, .covered = covered ? covered : own, .copies.first = -1};
    if (!c.covered)
        return false;
    memset(c.covered, 0, (size_t)elements);
    bool done = copy_port(&c, p, axes, axis_count);
    if (copies)
        *copies = c.copies;
    free(own);
    return done;
}
