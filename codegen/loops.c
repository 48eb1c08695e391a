#include "codegen/loops.h"

#include <inttypes.h>
#include <string.h>

#include "support/strbuf.h"

unsigned command_loop_count(const command *c)
{
    const command_row *row = command_row_of(c->op);
    if (!row->column_count)
        return 0;
    const command_field_row *first = command_column_row_of((command_column)row->first_column);
    return strcmp(first->unit, "iterations") == 0 ? c->entry_count : 0;
}

unsigned command_loop_entry(const command *c, unsigned depth)
{
    bool from_inside = strcmp(command_row_of(c->op)->entry_order, "innermost first") == 0;
    return from_inside ? c->entry_count - 1 - depth : depth;
}

int64_t command_loop_size(const command *c, unsigned depth)
{
    return c->entries[command_loop_entry(c, depth)][0];
}

/* What a stride column adds to: "stride" steps the address, "source_stride" the source. */
static const char *stepped_name(const command_field_row *column, arena *a)
{
    size_t bytes = strlen(column->name), suffix = strlen("_stride");
    if (strcmp(column->name, "stride") == 0)
        return "addr";
    if (bytes > suffix && strcmp(column->name + bytes - suffix, "_stride") == 0)
        return arena_strndup(a, column->name, bytes - suffix);
    return NULL;
}

const char *command_loop_steps(const command *c, unsigned depth, arena *a)
{
    const command_row *row = command_row_of(c->op);
    const int64_t *entry = c->entries[command_loop_entry(c, depth)];
    strbuf s;
    strbuf_init(&s, a);
    for (unsigned i = 1; i < row->column_count; i++) {
        const command_field_row *column = command_column_row_of((command_column)(row->first_column + i));
        const char *stepped = stepped_name(column, a), *comma = s.bytes ? ", " : "";
        if (stepped)
            strbuf_printf(&s, "%s%s += i%u*%" PRId64 " %s", comma, stepped, depth, entry[i], column->unit);
        else if (strcmp(column->unit, "flag") == 0 && entry[i])
            strbuf_printf(&s, "%s%s", comma, column->name);
        else if (strcmp(column->unit, "flag") != 0 && c->op != OP_SHIFT) /* an initial shift belongs to an index of one loop */
            strbuf_printf(&s, "%s%s = %s", comma, column->name, command_value_text(column, entry[i], a));
    }
    return s.text;
}
