#include "runtime/field/memory.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/field/slab.h"

enum {
    PAGE_BITS = 8192,
    PAGE_CELLS = PAGE_BITS / FIELD_CELL_BITS,
    MIXED = 0xff,     /* a page of several types */
    UNWRITTEN = 0xff, /* tag of a cell */
    ANY_TYPE = 14     /* of cells that are zero in whatever type they are read */
};
_Static_assert((int)DTYPE_COUNT <= (int)ANY_TYPE, "a tag has four bits for the type");

/* What several memories hold alike is one page, until one of them writes into it: a copy of whole pages costs no memory. */
struct field_page {
    _Atomic uint32_t users; /* places in chunks */
    unsigned char type;     /* of all elements, each in its place; or MIXED */
    bool given;             /* elements of an input side by side: it has no values, each is known by its number */
    unsigned char *tags;    /* MIXED: per cell, type * 16 + part; UNWRITTEN */
    uint64_t key, first;    /* of what is given: the input's key, the number of the first element */
    field_value values[];   /* per element; MIXED: per cell */
};

field_value field_unknown(field_unknowns *u)
{
    return field_of_hash(field_hash(field_hash(u->seed, UINT64_C(0x300000000) ^ u->key), u->count++));
}

static unsigned bits_of(unsigned type)
{
    return dtype_row_of((dtype)type)->bits;
}

field_cell field_cell_zero(void)
{
    return (field_cell){0, (dtype)ANY_TYPE, 0, true};
}

field_value field_cells_read(const field_cell *cells, dtype type, field_unknowns *u)
{
    unsigned count = bits_of(type) / FIELD_CELL_BITS;
    bool whole = true, zeros = true;
    for (unsigned i = 0; i < count; i++) {
        zeros &= cells[i].written && (unsigned)cells[i].type == ANY_TYPE;
        whole &= cells[i].written && cells[i].type == type && cells[i].part == i && cells[i].value == cells[0].value;
    }
    if (whole || zeros)
        return zeros ? 0 : cells[0].value;
    field_function f = field_function_begin(u->seed, (uint64_t)type);
    for (unsigned i = 0; i < count; i++) {
        field_function_take(&f, cells[i].written ? cells[i].value : field_unknown(u));
        field_function_take(&f, cells[i].written ? (uint64_t)cells[i].type * 16 + cells[i].part : UNWRITTEN);
    }
    return field_function_end(&f);
}

/* ---- pages ---- */

/* Of a slice's memory little is touched, and there are many. */
static int64_t chunk_pages(const field_memory *m)
{
    return m->bits > INT64_C(1) << 28 ? 1024 : 64;
}

static int64_t chunk_count(const field_memory *m)
{
    return m->bits / (PAGE_BITS * chunk_pages(m)) + 1;
}

void field_memory_init(field_memory *m, int64_t bits, field_budget *budget)
{
    *m = (field_memory){.bits = bits, .budget = budget};
}

/* One user less. Who sees that it is the last one sees what the others read before. */
static void page_leave(field_page *p)
{
    if (!p || atomic_fetch_sub(&p->users, 1) > 1)
        return;
    if (p->given) {
        free(p);
        return;
    }
    free(p->tags);
    slab_give(p);
}

void field_memory_free(field_memory *m)
{
    for (int64_t i = 0; i < m->touched_to; i++) {
        for (int64_t j = 0; m->chunks[i] && j < chunk_pages(m); j++)
            page_leave(m->chunks[i][j]);
        free(m->chunks[i]);
    }
    free(m->chunks);
    m->chunks = NULL;
    m->touched_to = 0;
}

static field_page *page_at(const field_memory *m, int64_t page)
{
    field_page **chunk = m->chunks ? m->chunks[page / chunk_pages(m)] : NULL;
    return chunk ? chunk[page % chunk_pages(m)] : NULL;
}

/* `over`: all of its values are written over next. */
static field_page *page_new(field_memory *m, unsigned type, bool over)
{
    int64_t values = type == MIXED ? PAGE_CELLS : PAGE_BITS / bits_of(type);
    int64_t bytes = (int64_t)sizeof(field_page) + values * (int64_t)sizeof(field_value) + (type == MIXED ? PAGE_CELLS : 0);
    if (atomic_fetch_add(&m->budget->used_bytes, bytes) + bytes > m->budget->limit_bytes && m->budget->limit_bytes)
        return NULL;
    field_page *p = slab_take(sizeof *p + (size_t)values * sizeof *p->values);
    if (!p)
        return NULL;
    *p = (field_page){.users = 1, .type = (unsigned char)type};
    if (!over)
        memset(p->values, 0xff, (size_t)values * sizeof *p->values);
    if (type != MIXED)
        return p;
    p->tags = malloc(PAGE_CELLS);
    if (!p->tags) {
        slab_give(p);
        return NULL;
    }
    memset(p->tags, UNWRITTEN, PAGE_CELLS);
    return p;
}

/* Elements of a page that is not mixed. */
static void page_values(const field_page *p, int64_t first, int64_t count, field_value *out)
{
    if (!p->given) {
        memcpy(out, p->values + first, (size_t)count * sizeof *out);
        return;
    }
    field_inputs_from(p->key, p->first + (uint64_t)first, 1, count, out);
}

static field_cell cell_in(const field_page *p, int64_t cell)
{
    if (!p)
        return (field_cell){0};
    if (p->type == MIXED)
        return (field_cell){p->values[cell], (dtype)(p->tags[cell] / 16), p->tags[cell] % 16, p->tags[cell] != UNWRITTEN};
    unsigned cells = bits_of(p->type) / FIELD_CELL_BITS;
    field_value v;
    page_values(p, cell / cells, 1, &v);
    return (field_cell){v, (dtype)p->type, (unsigned char)(cell % cells), v != FIELD_NOTHING};
}

/* A page of several types with what the page held. */
static field_page *page_mix(field_memory *m, field_page *old)
{
    field_page *p = page_new(m, MIXED, false);
    for (int64_t i = 0; p && old && i < PAGE_CELLS; i++) {
        field_cell c = cell_in(old, i);
        if (c.written) {
            p->values[i] = c.value;
            p->tags[i] = (unsigned char)((unsigned)c.type * 16 + c.part);
        }
    }
    if (p)
        page_leave(old);
    return p;
}

/* Where the memory has the page; NULL: no memory left. */
static field_page **page_slot(field_memory *m, int64_t page)
{
    if (!m->chunks)
        m->chunks = calloc((size_t)chunk_count(m), sizeof *m->chunks);
    if (!m->chunks)
        return NULL;
    int64_t index = page / chunk_pages(m);
    field_page ***chunk = &m->chunks[index];
    if (!*chunk)
        *chunk = calloc((size_t)chunk_pages(m), sizeof **chunk);
    m->touched_to = index < m->touched_to ? m->touched_to : index + 1;
    return *chunk ? &(*chunk)[page % chunk_pages(m)] : NULL;
}

/* The page at the slot, for one that writes into it, or over all of it. */
static field_page *page_own(field_memory *m, field_page **at, bool over)
{
    field_page *old = *at;
    if (!old || (!old->given && atomic_load(&old->users) == 1))
        return old;
    field_page *p = old->type == MIXED ? page_mix(m, old) : page_new(m, old->type, true);
    if (!p)
        return NULL;
    if (old->type != MIXED) {
        if (!over)
            page_values(old, 0, PAGE_BITS / bits_of(old->type), p->values);
        page_leave(old);
    }
    return *at = p;
}

/* A page that takes elements of that type in their places (`aligned`) or anything. */
static field_page *page_for(field_memory *m, int64_t page, unsigned type, bool aligned, bool over)
{
    field_page **at = page_slot(m, page);
    if (!at)
        return NULL;
    if (!*at)
        return *at = page_new(m, aligned ? type : MIXED, over);
    if ((*at)->type == MIXED || (aligned && (*at)->type == type))
        return page_own(m, at, over);
    field_page *mixed = page_mix(m, *at);
    if (mixed)
        *at = mixed;
    return mixed;
}

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- elements ---- */

static bool write_cell(field_memory *m, int64_t bit, const field_cell *c)
{
    field_page *p = page_for(m, bit / PAGE_BITS, MIXED, false, false);
    if (!p)
        return false;
    int64_t cell = bit % PAGE_BITS / FIELD_CELL_BITS;
    p->values[cell] = c->value;
    p->tags[cell] = c->written ? (unsigned char)((unsigned)c->type * 16 + c->part) : UNWRITTEN;
    return true;
}

/* Elements that may stand anywhere, also over the end of a page. */
static bool write_cells(field_memory *m, int64_t bit, dtype type, int64_t count, const field_value *values)
{
    unsigned cells = bits_of(type) / FIELD_CELL_BITS;
    for (int64_t i = 0; i < count * cells; i++) {
        field_cell c = {values[i / cells], type, (unsigned char)(i % cells), true};
        if (!write_cell(m, bit + i * FIELD_CELL_BITS, &c))
            return false;
    }
    return true;
}

bool field_memory_write(field_memory *m, int64_t bit, dtype type, int64_t count, const field_value *values)
{
    int64_t bits = bits_of(type);
    if (bit % bits)
        return write_cells(m, bit, type, count, values);
    for (int64_t part; count > 0; bit += part * bits, values += part, count -= part) {
        part = smaller_of(count, (PAGE_BITS - bit % PAGE_BITS) / bits);
        field_page *p = page_for(m, bit / PAGE_BITS, type, true, part == PAGE_BITS / bits);
        if (!p)
            return false;
        if (p->type != MIXED)
            memcpy(p->values + bit % PAGE_BITS / bits, values, (size_t)part * sizeof *values);
        else if (!write_cells(m, bit, type, part, values))
            return false;
    }
    return true;
}

bool field_memory_give(field_memory *m, int64_t bit, dtype type, int64_t count, uint64_t key, uint64_t first)
{
    enum { BLOCK = 1024 };
    field_value values[BLOCK];
    int64_t bits = bits_of(type), whole = PAGE_BITS / bits;
    for (int64_t part; count > 0; bit += part * bits, first += (uint64_t)part, count -= part) {
        if (bit % PAGE_BITS || count < whole) { /* what is in front of a page, or behind the last one */
            part = smaller_of(smaller_of(count, BLOCK), bit % bits ? BLOCK : (PAGE_BITS - bit % PAGE_BITS) / bits);
            field_inputs_from(key, first, 1, part, values);
            if (!field_memory_write(m, bit, type, part, values))
                return false;
            continue;
        }
        part = whole;
        field_page **at = page_slot(m, bit / PAGE_BITS), *p = at ? malloc(sizeof *p) : NULL;
        if (!p)
            return false;
        *p = (field_page){.users = 1, .type = (unsigned char)type, .given = true, .key = key, .first = first};
        page_leave(*at);
        *at = p;
    }
    return true;
}

static field_value read_one(const field_memory *m, int64_t bit, dtype type, field_unknowns *u)
{
    field_cell cells[32 / FIELD_CELL_BITS];
    for (unsigned i = 0; i < bits_of(type) / FIELD_CELL_BITS; i++) {
        int64_t at = bit + i * FIELD_CELL_BITS;
        cells[i] = cell_in(page_at(m, at / PAGE_BITS), at % PAGE_BITS / FIELD_CELL_BITS);
    }
    return field_cells_read(cells, type, u);
}

/* Elements of a page of that type; how many could be read. */
static void read_page(const field_page *p, int64_t first, int64_t count, field_value *out, field_unknowns *u)
{
    field_value any = 0; /* bits */
    page_values(p, first, count, out);
    for (int64_t i = 0; !p->given && i < count; i++)
        any |= out[i];
    field_cell none[32 / FIELD_CELL_BITS] = {{0}};
    for (int64_t i = 0; any == FIELD_NOTHING && i < count; i++)
        if (out[i] == FIELD_NOTHING)
            out[i] = field_cells_read(none, (dtype)p->type, u);
}

void field_memory_read(const field_memory *m, int64_t bit, dtype type, int64_t stride, int64_t count, field_value *out, field_unknowns *u)
{
    int64_t bits = bits_of(type);
    for (int64_t i = 0; i < count;) {
        int64_t at = bit + i * stride * bits, part = 1;
        const field_page *p = page_at(m, at / PAGE_BITS);
        if (p && p->type == type && at % bits == 0) {
            if (stride == 1)
                part = smaller_of(count - i, (PAGE_BITS - at % PAGE_BITS) / bits);
            read_page(p, at % PAGE_BITS / bits, part, out + i, u);
        } else {
            out[i] = read_one(m, at, type, u);
        }
        i += part;
    }
}

/* The bits hold nothing any more. */
static bool forget(field_memory *m, int64_t bit, int64_t bits)
{
    field_page *p = page_at(m, bit / PAGE_BITS);
    int64_t width = p && p->type != MIXED ? (int64_t)bits_of(p->type) : FIELD_CELL_BITS;
    if (!p)
        return true;
    if (p->type != MIXED && bit % width == 0 && bits % width == 0) {
        p = page_for(m, bit / PAGE_BITS, p->type, true, false);
        if (p)
            memset(p->values + bit % PAGE_BITS / width, 0xff, (size_t)(bits / width) * sizeof *p->values);
        return p;
    }
    for (int64_t i = 0; i < bits; i += FIELD_CELL_BITS)
        if (!write_cell(m, bit + i, &(field_cell){0}))
            return false;
    return true;
}

static bool share(field_memory *to, int64_t page, field_page *p)
{
    field_page **at = page_slot(to, page);
    if (!at)
        return false;
    atomic_fetch_add(&p->users, 1);
    page_leave(*at);
    *at = p;
    return true;
}

bool field_memory_copy(field_memory *to, int64_t to_bit, const field_memory *from, int64_t from_bit, int64_t bits)
{
    for (int64_t part; bits > 0; to_bit += part, from_bit += part, bits -= part) {
        part = smaller_of(bits, smaller_of(PAGE_BITS - to_bit % PAGE_BITS, PAGE_BITS - from_bit % PAGE_BITS));
        field_page *p = page_at(from, from_bit / PAGE_BITS);
        int64_t width = p && p->type != MIXED ? (int64_t)bits_of(p->type) : PAGE_BITS;
        if (!p) {
            if (!forget(to, to_bit, part))
                return false;
            continue;
        }
        if (part == PAGE_BITS) {
            if (!share(to, to_bit / PAGE_BITS, p))
                return false;
            continue;
        }
        if (p->type != MIXED && to_bit % width == 0 && from_bit % width == 0 && part % width == 0) {
            field_page *q = page_for(to, to_bit / PAGE_BITS, p->type, true, false);
            if (!q)
                return false;
            if (q->type == p->type) {
                page_values(p, from_bit % PAGE_BITS / width, part / width, q->values + to_bit % PAGE_BITS / width);
                continue;
            }
        }
        for (int64_t i = 0; i < part; i += FIELD_CELL_BITS) {
            field_cell c = cell_in(page_at(from, from_bit / PAGE_BITS), (from_bit + i) % PAGE_BITS / FIELD_CELL_BITS);
            if (!write_cell(to, to_bit + i, &c))
                return false;
        }
    }
    return true;
}

bool field_memory_keep(field_memory *m, const field_memory *of, int64_t bit, int64_t bits)
{
    bool done = true;
    for (int64_t page = bit / PAGE_BITS; done && page * PAGE_BITS < bit + bits; page++) {
        field_page *p = page_at(of, page);
        done = !p || share(m, page, p);
    }
    return done;
}

bool field_memory_same(const field_memory *a, const field_memory *b, int64_t bit, int64_t bits)
{
    bool same = true;
    for (int64_t page = bit / PAGE_BITS; same && page * PAGE_BITS < bit + bits; page++)
        same = page_at(a, page) == page_at(b, page);
    return same;
}

bool field_memory_clear(field_memory *m, int64_t bit, int64_t bits)
{
    for (int64_t end = bit + bits; bit < end; bit += FIELD_CELL_BITS) {
        field_cell c = cell_in(page_at(m, bit / PAGE_BITS), bit % PAGE_BITS / FIELD_CELL_BITS);
        c.value = 0;
        if (c.written && !write_cell(m, bit, &c))
            return false;
    }
    return true;
}

bool field_memory_zero(field_memory *m, int64_t bit, int64_t bits)
{
    field_cell zero = field_cell_zero();
    for (int64_t end = bit + bits; bit < end; bit += FIELD_CELL_BITS)
        if (!write_cell(m, bit, &zero))
            return false;
    return true;
}
