/* Whom a change outside of bodies concerns.
 *
 * The one idea: what stands outside of a function reaches it by names alone. So the items of two texts are compared; the names of those
 * that differ have changed; an item that mentions such a name has changed, too; and a function is concerned that mentions one. Words are
 * compared and not what they mean, comments included: too many functions may be concerned, none too few. */
#ifndef VISA_LIBVISA_CONCERN_H
#define VISA_LIBVISA_CONCERN_H

#include "frontend/ast.h"

/* A piece of the text outside of bodies, in bytes: an axis, an alias, a constant, a function with its body, the head or the `}` of a
 * module. */
typedef struct outer_item {
    uint32_t begin, end, name_begin, name_end; /* no name: everything in it may be one */
    uint32_t around;                           /* a sum over the modules that it stands in */
    ast_kind kind;
    bool is_unit;   /* an axis of one element: while there is none, nobody asks which axes a mapping names */
    bool leaf;      /* nothing mentions it: set by who knows */
    bool structure; /* where it changes everything is concerned */
} outer_item;

typedef struct outer_items {
    outer_item *items; /* in the order of the text */
    size_t count, capacity;
} outer_items;

/* Those of a parsed file. */
outer_items outer_items_of(const ast *file, arena *a);

/* The one that the offset is in; `count`: none. */
size_t outer_items_find(const outer_items *of, uint32_t offset);

/* [begin, end) of the old text is [begin, end + by) of the new one. */
typedef struct text_change {
    uint32_t begin, end;
    int64_t by;
} text_change;

typedef struct concern {
    bool everything;
    bool *concerned;        /* by item of the new text */
    struct word_set *words; /* that have changed */
} concern;

/* What differs between two texts, and whom it concerns. */
concern concern_between(const char *old, const outer_items *before, const char *now, const outer_items *after, const text_change *by,
                        arena *a);
/* Whom some items of a text concern: those with a mark. */
concern concern_of_items(const char *text, const outer_items *items, const bool *marked, arena *a);

#endif
