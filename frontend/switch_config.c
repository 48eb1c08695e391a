/* `SwitchConfig::Broadcast1 { slice1: 4, slice0: 8 }`: rings of the Switch Engine, by the rows of target/engine/switch.def. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/variant.h"
#include "support/budget.h"
#include "support/choice.h"

/* The row of `SwitchConfig::name`; NULL: there is none. */
static const topology_row *topology_named(const char *name)
{
    for (size_t i = 0; topology_row_at(i); i++)
        if (strcmp(topology_row_at(i)->name, name) == 0)
            return topology_row_at(i);
    return NULL;
}

/* "SwitchConfig::Broadcast1 { slice1: .., slice0: .. }" */
static const char *topology_text(analysis *s, const topology_row *row)
{
    const char *fields = variant_fields(s->context.arena, row);
    return arena_printf(s->context.arena, "SwitchConfig::%s%s%s", row->name, *fields ? " " : "", fields);
}

static value unknown_topology(analysis *s, const ast *path, const char *name)
{
    enum { MOST = 15 };
    const char *names[MOST + 1] = {0}, *all = "";
    for (size_t i = 0; i < MOST && topology_row_at(i); i++) {
        names[i] = topology_row_at(i)->name;
        all = arena_printf(s->context.arena, "%s%s%s", all, i ? ", " : "", names[i]);
    }
    const char *near = choice_near(name, names);
    return refuse(s, E_NAME, path->range,
                  near ? arena_printf(s->context.arena, "did you mean `SwitchConfig::%s`?", near)
                       : arena_printf(s->context.arena, "known are SwitchConfig::{%s}", all),
                  "`SwitchConfig::%s` is not known here", name);
}

value evaluate_switch_name(analysis *s, const ast *path)
{
    const char *name = path->kids[path->kid_count - 1]->text;
    const topology_row *row = topology_named(name);
    if (!row)
        return unknown_topology(s, path, name);
    if (row->fields[0])
        return refuse(s, E_ARGUMENTS, path->range, arena_printf(s->context.arena, "write %s", topology_text(s, row)),
                      "`SwitchConfig::%s` has fields", name);
    return (value){.kind = VALUE_SWITCH_CONFIG, .number = row->code};
}

STACK_APART value evaluate_switch_config(analysis *s, scope *names, const ast *n)
{
    const ast *path = ast_kid(n, 0);
    const char *name = path->kids[path->kid_count - 1]->text;
    const topology_row *row = topology_named(name);
    if (!row)
        return unknown_topology(s, path, name);
    value *items = ARENA_ARRAY(s->context.arena, value, TOPOLOGY_FIELDS);
    size_t count = 0;
    for (; row->fields[count]; count++) {
        const ast *init = NULL;
        for (uint32_t i = 1; i < n->kid_count; i++)
            if (strcmp(n->kids[i]->text, row->fields[count]) == 0)
                init = n->kids[i];
        if (!init)
            return refuse(s, E_ARGUMENTS, n->range, arena_printf(s->context.arena, "it is %s", topology_text(s, row)),
                          "`SwitchConfig::%s` needs `%s`", name, row->fields[count]);
        items[count] = evaluate_init(s, names, init, NULL);
        if (items[count].kind == VALUE_ERROR)
            return items[count];
        if (items[count].kind != VALUE_INT)
            return refuse(s, E_ARGUMENTS, init->range, "write a number of slices, or of time steps", "`%s` must be an integer, got %s",
                          init->text, value_kind_name(&items[count]));
    }
    if (n->kid_count != count + 1)
        return refuse(s, E_ARGUMENTS, n->range, arena_printf(s->context.arena, "it is %s", topology_text(s, row)),
                      "`SwitchConfig::%s` takes %zu fields, got %u", name, count, n->kid_count - 1);
    return (value){.kind = VALUE_SWITCH_CONFIG, .number = row->code, .items = items, .count = count};
}

bool is_switch_config(const ast *path)
{
    return ast_is(path, AST_PATH) && path->kid_count >= 2 && strcmp(path->kids[path->kid_count - 2]->text, "SwitchConfig") == 0;
}
