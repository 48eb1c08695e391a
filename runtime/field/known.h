/* Values that were found before, by what they are values of.
 *
 * The one idea: who computes single elements that read each other asks here first, so that each is computed once. A table that cannot
 * grow forgets nothing and takes no more: what it does not know is computed again. */
#ifndef VISA_RUNTIME_FIELD_KNOWN_H
#define VISA_RUNTIME_FIELD_KNOWN_H

#include <stddef.h>

#include "runtime/field/value.h"

enum { FIELD_KNOWN_MOST = 1 << 24 /* places of a table; half of them are used */ };

/* Whose value: element number `element` of what the owner of the table calls (of, unit). */
typedef struct field_known_key {
    uint64_t of;
    int64_t unit, element;
} field_known_key;

typedef struct field_known_value {
    field_known_key key;
    field_value value; /* FIELD_NOTHING: the place is free */
} field_known_value;

/* Zeroed: empty. The places belong to the table until field_known_free. */
typedef struct field_known {
    field_known_value *places; /* by hash */
    size_t count, capacity;    /* used places, all places */
} field_known;

/* FIELD_NOTHING where nothing was added for the key. */
field_value field_known_find(const field_known *k, field_known_key key);
/* FIELD_NOTHING is nothing to know. Where no memory is left the value is not kept. */
void field_known_add(field_known *k, field_known_key key, field_value value);
void field_known_free(field_known *k);

#endif
