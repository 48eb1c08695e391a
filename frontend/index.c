#include "frontend/index.h"

static source_index *index_of(const scope_context *c)
{
    return c->diags->repeating ? NULL : c->index;
}

void index_add_name(scope_context *c, src_range range, symbol *y)
{
    source_index *index = index_of(c);
    index_name entry = {range, y};
    if (index && y)
        ARENA_PUSH(c->arena, index->names, index->name_count, index->name_capacity, entry);
}

void index_add_value(scope_context *c, src_range range, const value *v)
{
    source_index *index = index_of(c);
    index_value entry = {range, *v};
    if (index)
        ARENA_PUSH(c->arena, index->values, index->value_count, index->value_capacity, entry);
}

void index_add_scope(scope_context *c, src_range range, scope *s)
{
    source_index *index = index_of(c);
    index_scope entry = {range, s};
    if (index)
        ARENA_PUSH(c->arena, index->scopes, index->scope_count, index->scope_capacity, entry);
}

static bool holds(src_range range, int file, uint32_t offset)
{
    return range.file == file && range.begin <= offset && offset <= range.end;
}

symbol *index_find_name(const source_index *index, int file, uint32_t offset, src_range *range)
{
    for (size_t i = 0; i < index->name_count; i++)
        if (holds(index->names[i].range, file, offset)) {
            *range = index->names[i].range;
            return index->names[i].symbol;
        }
    return NULL;
}

const value *index_find_value(const source_index *index, int file, uint32_t offset)
{
    for (size_t i = 0; i < index->value_count; i++)
        if (holds(index->values[i].range, file, offset))
            return &index->values[i].value;
    return NULL;
}

scope *index_find_scope(const source_index *index, int file, uint32_t offset)
{
    const index_scope *best = NULL;
    for (size_t i = 0; i < index->scope_count; i++) {
        const index_scope *s = &index->scopes[i];
        if (holds(s->range, file, offset) && (!best || s->range.end - s->range.begin <= best->range.end - best->range.begin))
            best = s;
    }
    return best ? best->scope : NULL;
}
