/* What the parts of a scope know of each other (scope.c, scope_module.c, scope_mapping.c, scope_integer.c). */
#ifndef VISA_FRONTEND_SCOPE_STATE_H
#define VISA_FRONTEND_SCOPE_STATE_H

#include "frontend/scope.h"

struct scope {
    scope_context *context;
    arena *arena; /* the context's when it was made: within a kernel, the kernel's; what is added to it later lives as long */
    scope *parent;
    symbol **symbols; /* in order of declaration */
    size_t count, capacity;
    symbol **buckets;        /* by name, the latest first; as many as `capacity` */
    bool is_module, is_type; /* scope_set_module, scope_set_type */
    bool is_generic;         /* scope_set_generic */
    scope *lost;             /* names in text that was not understood, or NULL */
    bool visiting;           /* a search through globs has been here */
    const ast *dead_use;     /* the first `use` of what is neither in the file nor the library's, or NULL */
    scope **globs;           /* `use x::*` */
    size_t glob_count, glob_capacity;
};

/* Which names an item of the kind is among. */
name_space scope_space_of(symbol_kind kind);
/* The scope's own names, then what it imports as a whole. */
symbol *scope_find_in(scope *s, name_space space, const char *name);
/* Is it in text of this scope that was not understood? */
bool scope_has_lost(scope *s, const char *name);
/* A name that is not found may be what a `use` was meant to import that imports nothing. */
void scope_note_dead_use(scope *s, diag *d);
/* A parameter of an alias, a type or an `impl`: what `argument` is in `s`; NULL: unknown. */
void scope_bind_argument(scope *inner, const ast *parameter, scope *s, const ast *argument);
/* NULL: the axis was refused where it is declared. */
const mapping *scope_axis_mapping(scope *s, const symbol *y);
/* The item, or NULL: it is being resolved, so it is defined by itself, which is diagnosed. */
symbol *scope_enter(scope_context *c, symbol *y, src_range range);

#endif
