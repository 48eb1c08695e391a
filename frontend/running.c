#include "frontend/running.h"

#include <string.h>

#include "frontend/stage_build.h"

static const run_type types[] = {{"bool", 8, false, true}, {"i32", 32, true, false},  {"u32", 32, false, false},
                                 {"i64", 64, true, false}, {"u64", 64, false, false}, {"usize", 64, false, false}};
enum { TYPES = sizeof types / sizeof *types, WORD_BITS = 32 };

const run_type *run_type_of(scope *s, const ast *segment)
{
    diag_list *diags = scope_context_of(s)->diags;
    const ast *args = ast_kid(segment, 0),
              *last = ast_is(args, AST_GENERIC_ARGS) && args->kid_count == 1 ? ast_last_segment(args->kids[0]) : NULL;
    for (size_t i = 0; last && i < TYPES; i++)
        if (strcmp(types[i].name, last->text) == 0)
            return &types[i];
    diag *d =
        diag_add(diags, E_TYPE, segment->range, last ? "no HbmScalar is of `%s`" : "HbmScalar takes a type%s", last ? last->text : "");
    diag_help(diags, d, "write HbmScalar<T> with T one of bool, i32, u32, i64, u64, usize");
    return NULL;
}

bool run_type_tensor(scope_context *c, const run_type *t, const char *name, int64_t chips, tensor *out)
{
    const mapping *element = mapping_identity(c->mappings), *chip = NULL;
    if (t->bits > WORD_BITS) /* a name that no source can write */
        element = mapping_symbol(c->mappings, mapping_axis(c->mappings, arena_printf(c->arena, "%s.word", name), t->bits / WORD_BITS));
    if (mapping_broadcast(c->mappings, chips > 0 ? chips : 1, &chip) != MAPPING_OK)
        return false;
    *out = (tensor){.kind = TENSOR_HBM, .dtype = t->is_bool ? DTYPE_U8 : DTYPE_I32, .address = ADDRESS_NONE};
    out->part[CHIP] = chip;
    out->part[ELEMENT] = element;
    return true;
}

const run_number *run_number_new(arena *a, const run_type *t, op *port)
{
    run_number *n = ARENA_NEW(a, run_number);
    *n = (run_number){port, t};
    return n;
}

op *run_number_count(const run_number *n)
{
    return n->type->bits == WORD_BITS && n->type->is_signed && n->port->out.part[ELEMENT]->size == 1 ? n->port : NULL;
}

op *run_number_position(const run_number *n)
{
    bool one = n->port->out.part[ELEMENT]->size == 1 && n->port->out.dtype == DTYPE_I32;
    return one && strcmp(n->type->name, "usize") == 0 ? n->port : NULL;
}

const run_number *run_number_cast(arena *a, const run_number *n, const char *type)
{
    for (size_t i = 0; i < TYPES; i++)
        if (!types[i].is_bool && strcmp(types[i].name, type) == 0)
            return run_number_new(a, &types[i], n->port);
    return NULL;
}

value stage_make_scalar_to_spm(const stage_call *call)
{
    return (value){.kind = VALUE_RUNNING, .run = call->receiver.run};
}
