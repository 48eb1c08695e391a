#include "runtime/field/known.h"

#include <stdlib.h>

/* The key's place, or the free one where it belongs; one is free. */
static field_known_value *place_of(const field_known *k, field_known_key key)
{
    uint64_t hash = field_hash(field_hash(key.of, (uint64_t)key.unit), (uint64_t)key.element);
    for (size_t i = hash % k->capacity;; i = (i + 1) % k->capacity) {
        field_known_value *at = &k->places[i];
        if (at->value == FIELD_NOTHING || (at->key.of == key.of && at->key.unit == key.unit && at->key.element == key.element))
            return at;
    }
}

static bool grow(field_known *k)
{
    enum { FIRST = 1024 };
    field_known bigger = {.count = k->count, .capacity = k->capacity ? 2 * k->capacity : FIRST};
    bigger.places = bigger.capacity <= FIELD_KNOWN_MOST ? malloc(bigger.capacity * sizeof *bigger.places) : NULL;
    if (!bigger.places)
        return false;
    for (size_t i = 0; i < bigger.capacity; i++)
        bigger.places[i].value = FIELD_NOTHING;
    for (size_t i = 0; i < k->capacity; i++)
        if (k->places[i].value != FIELD_NOTHING)
            *place_of(&bigger, k->places[i].key) = k->places[i];
    free(k->places);
    *k = bigger;
    return true;
}

field_value field_known_find(const field_known *k, field_known_key key)
{
    return k->capacity ? place_of(k, key)->value : FIELD_NOTHING;
}

void field_known_add(field_known *k, field_known_key key, field_value value)
{
    if (value == FIELD_NOTHING || (2 * k->count >= k->capacity && !grow(k)))
        return;
    field_known_value *at = place_of(k, key);
    k->count += at->value == FIELD_NOTHING;
    *at = (field_known_value){key, value};
}

void field_known_free(field_known *k)
{
    free(k->places);
    *k = (field_known){0};
}
