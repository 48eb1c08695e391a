#include "runtime/timing/trf_cache.h"

#include "runtime/engine/trf.h"

static int64_t line_bytes(const target *t)
{
    return t->trf_bank_columns * t->trf_row_bytes;
}

bool trf_cache_fits(const target *t)
{
    return t->rows * t->trf_bank_columns * t->trf_cache_sets <= TRF_CACHE_MAX_ENTRIES;
}

void trf_cache_clear(trf_cache *c, const target *t)
{
    c->target = t;
    for (unsigned i = 0; i < TRF_CACHE_MAX_ENTRIES; i++)
        c->tags[i] = TRF_CACHE_EMPTY;
}

int64_t trf_cache_column(const target *t, int64_t byte)
{
    return byte / t->trf_row_bytes % t->trf_bank_columns;
}

unsigned trf_cache_entry(const target *t, const trf_view *v, int64_t row, int64_t byte, int32_t *tag)
{
    int64_t line = trf_address_of(t, row, v->rows, v->mode, byte) / line_bytes(t);
    int64_t bank_row = line / t->trf_bank_rows, row_in_bank = line % t->trf_bank_rows;
    *tag = (int32_t)(row_in_bank / t->trf_cache_sets);
    return (unsigned)((bank_row * t->trf_bank_columns + trf_cache_column(t, byte)) * t->trf_cache_sets + row_in_bank % t->trf_cache_sets);
}

bool trf_cache_read(trf_cache *c, const trf_view *v, int64_t row, int64_t byte, unsigned *entry)
{
    int32_t tag;
    *entry = trf_cache_entry(c->target, v, row, byte, &tag);
    bool hit = c->tags[*entry] == tag;
    c->tags[*entry] = tag;
    return hit;
}

void trf_cache_write(trf_cache *c, const trf_view *v, int64_t row, int64_t byte)
{
    int32_t tag;
    unsigned entry = trf_cache_entry(c->target, v, row, byte, &tag);
    if (c->tags[entry] == tag)
        c->tags[entry] = TRF_CACHE_EMPTY;
}
