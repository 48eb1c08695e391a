/* Fitting a table: merging neighbours, splitting what is too long, and the figures that follow from the loops. */
#include <string.h>

#include "ir/sequence/sequence.h"
#include "support/integer.h"

static bool fail(sequence *seq, sequence_failure failure, const mapping *term)
{
    seq->failure = failure;
    seq->term = term;
    return false;
}

/* What several neighbours run through together. */
static const mapping *join_terms(mapping_context *c, const mapping *const *terms, size_t count)
{
    const mapping *all;
    return terms[0] && mapping_concat(c, terms, count, &all) == MAPPING_OK ? all : terms[0];
}

void sequence_merge(mapping_context *c, sequence *seq, bool across_packet)
{
    arena *a = mapping_context_arena(c);
    const mapping **terms = ARENA_ARRAY(a, const mapping *, seq->count);
    size_t *first = ARENA_ARRAY(a, size_t, seq->count + 1); /* of the terms that part k is made of */
    size_t kept = 0;
    for (size_t i = 0; i < seq->count; i++) {
        sequence_part inner = seq->parts[i];
        terms[i] = inner.term;
        first[kept] = i;
        while (kept > 0) {
            sequence_part *outer = &seq->parts[kept - 1];
            if (outer->stride != inner.size * inner.stride || (!across_packet && outer->packet != inner.packet))
                break;
            inner.size *= outer->size;
            inner.packet = inner.packet && outer->packet;
            kept--;
        }
        seq->parts[kept++] = inner;
    }
    first[kept] = seq->count;
    for (size_t k = 0; k < kept; k++)
        if (first[k + 1] - first[k] > 1)
            seq->parts[k].term = join_terms(c, &terms[first[k]], first[k + 1] - first[k]);
    seq->count = kept;
}

/* The smallest divisor of n from `least` to `limit`; 1 when there is none. */
static int64_t smallest_divisor(int64_t n, int64_t least, int64_t limit)
{
    for (int64_t d = least > 2 ? least : 2; d <= limit; d++)
        if (n % d == 0)
            return d;
    return 1;
}

static bool stride_fits(const sequence_limits *l, int64_t stride, int64_t times)
{
    int64_t scaled;
    return !__builtin_mul_overflow(stride, l->scale, &scaled) && !__builtin_mul_overflow(scaled, times, &scaled) &&
           scaled >= l->stride_min && scaled <= l->stride_max;
}

/* Iterations of the inner of two entries that together are `part`; 1: there are none. The largest leaves least to the outer entry, so
 * two entries are enough whenever any two are; a smaller one keeps the outer stride inside its field. */
static int64_t split_at(const sequence_part *part, const sequence_limits *l)
{
    int64_t inner = largest_divisor(part->size, l->entry_size);
    if (inner == 1)
        return 1;
    if (part->size / inner > l->entry_size) { /* three entries or more: one that leaves a size of which two are made */
        for (int64_t d = inner; d > 1; d--)
            if (part->size % d == 0 && part->size / d / l->entry_size <= l->entry_size &&
                part->size / d / largest_divisor(part->size / d, l->entry_size) <= l->entry_size)
                return d;
        return inner;
    }
    if (stride_fits(l, part->stride, inner))
        return inner;
    int64_t small = smallest_divisor(part->size, (part->size + l->entry_size - 1) / l->entry_size, l->entry_size);
    return small > 1 ? small : inner;
}

static bool split_large(mapping_context *c, sequence *seq, sequence_limits limits)
{
    arena *a = mapping_context_arena(c);
    for (size_t i = 0; i < seq->count; i++) {
        sequence_part part = seq->parts[i];
        if (part.size <= limits.entry_size)
            continue;
        int64_t inner = split_at(&part, &limits);
        if (inner == 1) {
            seq->measure = part.size;
            seq->limit = limits.entry_size;
            return fail(seq, SEQUENCE_ENTRY_SIZE, part.term);
        }
        ARENA_PUSH(a, seq->parts, seq->count, seq->capacity, part); /* room for one more */
        memmove(&seq->parts[i + 1], &seq->parts[i], (seq->count - 1 - i) * sizeof part);
        seq->parts[i].size = part.size / inner;
        seq->parts[i].stride = part.stride * inner;
        seq->parts[i + 1].size = inner;
        i--; /* the outer part may still be too large */
    }
    return true;
}

bool sequence_fit(mapping_context *c, sequence *seq, sequence_limits limits)
{
    sequence_merge(c, seq, false);
    if ((int64_t)seq->count > limits.entries)
        sequence_merge(c, seq, true);
    if (!split_large(c, seq, limits))
        return false;
    if ((int64_t)seq->count > limits.entries) {
        seq->measure = (int64_t)seq->count;
        seq->limit = limits.entries;
        return fail(seq, SEQUENCE_ENTRIES, NULL);
    }
    for (size_t i = 0; i < seq->count; i++) {
        if (!stride_fits(&limits, seq->parts[i].stride, 1)) {
            seq->measure = seq->parts[i].stride;
            seq->limit = seq->parts[i].stride < 0 ? limits.stride_min : limits.stride_max;
            return fail(seq, SEQUENCE_STRIDE, seq->parts[i].term);
        }
    }
    if (seq->count == 0) {
        sequence_part one = {.term = mapping_identity(c), .size = 1, .live = 1};
        ARENA_PUSH(mapping_context_arena(c), seq->parts, seq->count, seq->capacity, one);
    }
    return true;
}

int64_t sequence_run(const sequence *seq)
{
    if (seq->count == 0)
        return 1;
    const sequence_part *inner = &seq->parts[seq->count - 1];
    if (inner->size == 1)
        return 1;
    if (inner->stride != 0 && inner->stride != 1)
        return 1;
    int64_t run = inner->size;
    for (size_t i = seq->count - 1; i-- > 0 && seq->parts[i].stride == run * inner->stride;)
        run *= seq->parts[i].size;
    return run;
}

void sequence_reach(const sequence *seq, int64_t *lowest, int64_t *highest)
{
    *lowest = *highest = 0;
    for (size_t i = 0; i < seq->count; i++) {
        int64_t span = (seq->parts[i].size - 1) * seq->parts[i].stride;
        *(span < 0 ? lowest : highest) += span;
    }
}
