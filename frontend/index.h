/* What was found where: names, receivers and scopes with their places in the text.
 *
 * The one idea: analysis knows at one moment what a name means, and an editor asks later. Whoever resolves notes it here, once
 * for each place of the text; without an index (every ordinary compilation) nothing is kept and nothing costs. */
#ifndef VISA_FRONTEND_INDEX_H
#define VISA_FRONTEND_INDEX_H

#include "frontend/scope.h"

typedef struct index_name {
    src_range range;
    symbol *symbol;
} index_name;

typedef struct index_value {
    src_range range; /* of a method's or field's name */
    value value;     /* what it is asked of */
} index_value;

typedef struct index_scope {
    src_range range;
    scope *scope;
} index_scope;

struct source_index {
    index_name *names;
    size_t name_count, name_capacity;
    index_value *values;
    size_t value_count, value_capacity;
    index_scope *scopes;
    size_t scope_count, scope_capacity;
    size_t lost_count; /* of names that were given up, or are in text that was: each is diagnosed once */
};

/* Nothing happens without an index, and while text is read again (a loop's next iteration). */
void index_add_name(scope_context *c, src_range range, symbol *y);
void index_add_value(scope_context *c, src_range range, const value *v);
void index_add_scope(scope_context *c, src_range range, scope *s);

/* The symbol whose name stands at the offset, or NULL; *range is the name's. */
symbol *index_find_name(const source_index *index, int file, uint32_t offset, src_range *range);
/* What the method or field named at the offset is asked of, or NULL. */
const value *index_find_value(const source_index *index, int file, uint32_t offset);
/* The innermost scope around the offset, or NULL. */
scope *index_find_scope(const source_index *index, int file, uint32_t offset);

#endif
