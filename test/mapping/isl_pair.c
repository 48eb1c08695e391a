#include "test/mapping/isl_pair.h"

#include <stdio.h>
#include <string.h>

enum { OPERATIONS_MAX = 20000 };

/* { [p] -> [a] }: p in mixed radix, a = sum of digit * stride. */
static isl_map *walk_relation(isl_ctx *ctx, const visa_entry *entries, size_t count)
{
    char digits[256] = "", address[512] = "0", position[512] = "0", bounds[512] = "true";
    int64_t radix = 1;
    for (size_t i = count; i-- > 0;) {
        snprintf(digits + strlen(digits), sizeof digits - strlen(digits), "%sd%zu", *digits ? ", " : "", i);
        snprintf(address + strlen(address), sizeof address - strlen(address), " + %lldd%zu", (long long)entries[i].stride, i);
        snprintf(position + strlen(position), sizeof position - strlen(position), " + %lldd%zu", (long long)radix, i);
        snprintf(bounds + strlen(bounds), sizeof bounds - strlen(bounds), " and 0 <= d%zu < %lld", i, (long long)entries[i].size);
        radix *= entries[i].size;
    }
    return isl_map_format(ctx, "{ [p] -> [a] : exists (%s : p = %s and a = %s and %s) }", digits, position, address, bounds);
}

/* What a pair is judged by. */
typedef struct question {
    const isl_axes *axes;
    isl_map *access; /* stream position to address */
    isl_map *walk;   /* the same, of the entries */
    isl_set *live;   /* stream positions */
    isl_set *cells;  /* live positions of the buffer */
    int64_t buffer_size, stream_size;
    bool write;
} question;

typedef enum verdict { RIGHT, WRONG, UNDECIDED } verdict;

/* Frees the set; a NULL set is no answer. */
static verdict must_be_empty(isl_set *s)
{
    isl_bool empty = s ? isl_set_is_empty(s) : isl_bool_error;
    isl_set_free(s);
    return empty == isl_bool_true ? RIGHT : empty == isl_bool_false ? WRONG : UNDECIDED;
}

static verdict is_subset(isl_set *a, isl_set *b)
{
    isl_bool inside = a && b ? isl_set_is_subset(a, b) : isl_bool_error;
    isl_set_free(a);
    isl_set_free(b);
    return inside == isl_bool_true ? RIGHT : inside == isl_bool_false ? WRONG : UNDECIDED;
}

static isl_set *range_between(const question *q, int64_t first, int64_t end)
{
    return isl_map_domain(isl_map_format(q->axes->ctx, "{ [i] -> [] : %lld <= i < %lld }", (long long)first, (long long)end));
}

/* The parts of "a pair is right", each with its name. */
static verdict live_positions_are_placed(const question *q)
{
    return is_subset(isl_set_copy(q->live), isl_map_domain(isl_map_copy(q->access)));
}

static verdict live_addresses_agree(const question *q)
{
    isl_map *walked = isl_map_intersect_domain(isl_map_copy(q->walk), isl_set_copy(q->live));
    isl_bool inside = walked ? isl_map_is_subset(walked, q->access) : isl_bool_error;
    isl_map_free(walked);
    return inside == isl_bool_true ? RIGHT : inside == isl_bool_false ? WRONG : UNDECIDED;
}

static verdict dead_positions_hit_nothing(const question *q)
{
    isl_map *dead = isl_map_subtract_domain(isl_map_copy(q->walk), isl_set_copy(q->live));
    return must_be_empty(isl_set_intersect(isl_map_range(dead), isl_set_copy(q->cells)));
}

static verdict all_cells_are_written(const question *q)
{
    isl_map *walked = isl_map_intersect_domain(isl_map_copy(q->walk), isl_set_copy(q->live));
    return is_subset(isl_set_copy(q->cells), isl_map_range(walked));
}

static verdict walk_stays_inside(const question *q)
{
    return is_subset(isl_map_range(isl_map_copy(q->walk)), range_between(q, 0, q->buffer_size));
}

static const struct part {
    verdict (*ask)(const question *q);
    const char *fault;
    bool of_writes;
} parts[] = {
    {live_positions_are_placed, "accepted, but a live position has no address", false},
    {live_addresses_agree, "a live position is walked at another address", false},
    {dead_positions_hit_nothing, "a dead position overwrites a live cell", true},
    {all_cells_are_written, "a live cell is not written", true},
    {walk_stays_inside, "the walk leaves the buffer", true},
};

/* All parts for all positions; NULL: right, or not decided with *undecided set. */
static const char *fault_of(const question *q, bool *undecided)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].of_writes && !q->write)
            continue;
        isl_ctx_reset_operations(q->axes->ctx);
        verdict v = parts[i].ask(q);
        if (v == WRONG)
            return parts[i].fault;
        *undecided = *undecided || v == UNDECIDED;
    }
    return NULL;
}

static int64_t below(uint64_t *random, int64_t n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((*random >> 11) % (uint64_t)n);
}

/* The same at a few positions. */
static const char *fault_at_samples(question q, uint64_t *random, bool *undecided)
{
    isl_set *live = q.live;
    isl_map *walk = q.walk, *access = q.access;
    const char *fault = NULL;
    for (int i = 0; i < ISL_PAIR_SAMPLES && !fault; i++) {
        isl_ctx_reset_operations(q.axes->ctx);
        int64_t at = i == 0 ? 0 : i == 1 ? q.stream_size - 1 : below(random, q.stream_size);
        isl_set *point = range_between(&q, at, at + 1);
        q.live = isl_set_intersect(isl_set_copy(live), isl_set_copy(point));
        q.walk = isl_map_intersect_domain(isl_map_copy(walk), isl_set_copy(point));
        q.access = isl_map_intersect_domain(isl_map_copy(access), point);
        bool skipped = false;
        question here = q;
        here.write = false;
        fault = fault_of(&here, &skipped);
        if (!fault && q.write && dead_positions_hit_nothing(&q) == WRONG)
            fault = parts[2].fault;
        *undecided = *undecided || skipped;
        isl_set_free(q.live);
        isl_map_free(q.walk);
        isl_map_free(q.access);
    }
    return fault;
}

isl_pair_verdict isl_pair_judge(const isl_axes *axes, const isl_pair *p, const visa_entry *entries, size_t count, const char **fault)
{
    isl_ctx_set_max_operations(axes->ctx, 0);
    char stream_text[1100];
    snprintf(stream_text, sizeof stream_text, "[%s], [%s]", p->time, p->packet);
    isl_mapping buffer = isl_mapping_read(axes, p->buffer), stream = isl_mapping_read(axes, stream_text);
    question q = {.axes = axes, .buffer_size = buffer.size, .stream_size = stream.size, .write = p->write};
    q.live = isl_map_domain(isl_map_copy(stream.map));
    q.cells = isl_map_domain(isl_map_copy(buffer.map));
    isl_map *seen = p->write ? stream.map : isl_mapping_seen_by(stream.map, buffer.map);
    q.access = isl_map_apply_range(seen, isl_map_reverse(buffer.map));
    q.walk = walk_relation(axes->ctx, entries, count);
    isl_ctx_set_max_operations(axes->ctx, OPERATIONS_MAX);
    isl_ctx_reset_operations(axes->ctx);
    bool undecided = false, unsampled = false;
    uint64_t random = (uint64_t)stream.size;
    *fault = fault_of(&q, &undecided);
    if (!*fault && undecided)
        *fault = fault_at_samples(q, &random, &unsampled);
    isl_ctx_reset_error(axes->ctx);
    isl_ctx_set_max_operations(axes->ctx, 0);
    isl_set_free(q.live);
    isl_set_free(q.cells);
    isl_map_free(q.access);
    isl_map_free(q.walk);
    return *fault ? ISL_PAIR_WRONG : unsampled ? ISL_PAIR_UNDECIDED : undecided ? ISL_PAIR_RIGHT_AT_SAMPLES : ISL_PAIR_RIGHT;
}
