#include "codegen/reroll.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/copy_command.h"
#include "codegen/unroll.h"
#include "support/order.h"

/* A stretch of the stream: a unit of work (waits and units with the chain or the copy after them), or a loop over stretches. Two of one
 * shape differ in their values only. */
typedef struct node {
    size_t shape;
    const int64_t *values; /* the numbers of its commands in order, of a loop those of its first iteration */
    size_t value_count;
    size_t words, rows, depth; /* as it stands in the file, rows: of the lines section; loops inside each other */
    const command *commands;   /* of a unit of work */
    size_t command_count;
    const struct node *body; /* of a loop */
    size_t body_count;
    int64_t iterations;
    const int64_t *steps; /* of each value */
    size_t head;          /* words in front of the body */
} node;

/* Shapes are numbered by their keys, which are compared in full. */
typedef struct shape_table {
    const int64_t **keys; /* by number */
    size_t *key_bytes;
    size_t count, capacity, byte_capacity, byte_count;
    size_t *slots; /* number + 1; 0: free */
    size_t slot_count;
} shape_table;

typedef struct roller {
    arena *arena; /* scratch */
    shape_table shapes;
    node *nodes;
    size_t count;
} roller;

enum { LINE_WORDS = 2, MOST_PERIODS = 64 };
#define STEP_MOST (INT64_C(1) << 41)

/* ---- shapes ---- */

static uint64_t hash_of(const int64_t *key, size_t count)
{
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < count; i++) {
        h = (h ^ (uint64_t)key[i]) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    return h;
}

static void grow_slots(shape_table *t, arena *a)
{
    t->slot_count = t->slot_count ? 2 * t->slot_count : 64;
    t->slots = ARENA_ARRAY(a, size_t, t->slot_count);
    for (size_t i = 0; i < t->count; i++) {
        size_t at = hash_of(t->keys[i], t->key_bytes[i] / sizeof(int64_t)) % t->slot_count;
        while (t->slots[at])
            at = (at + 1) % t->slot_count;
        t->slots[at] = i + 1;
    }
}

static size_t shape_number(shape_table *t, const int64_t *key, size_t count, arena *a)
{
    if (2 * (t->count + 1) > t->slot_count)
        grow_slots(t, a);
    size_t at = hash_of(key, count) % t->slot_count;
    for (; t->slots[at]; at = (at + 1) % t->slot_count) {
        size_t i = t->slots[at] - 1;
        if (t->key_bytes[i] == count * sizeof *key && memcmp(t->keys[i], key, t->key_bytes[i]) == 0)
            return i;
    }
    ARENA_PUSH(a, t->keys, t->count, t->capacity, key);
    t->byte_count = t->count - 1;
    ARENA_PUSH(a, t->key_bytes, t->byte_count, t->byte_capacity, count * sizeof *key);
    t->slots[at] = t->count;
    return t->count - 1;
}

/* ---- units of work ---- */

static bool ends_work(const command *c)
{
    return command_is_copy(c) || c->op == OP_TRF_STORE || c->op == OP_COMMIT || c->op == OP_STREAM_OUT;
}

/* Numbers go to `values`, all else to `key`; both have room. */
static void split_rows(const command_field_row *rows, unsigned row_count, const int64_t *from, int64_t **values, int64_t **key)
{
    for (unsigned i = 0; i < row_count; i++)
        if (command_row_is_number(&rows[i]))
            *(*values)++ = from[i];
        else
            *(*key)++ = from[i];
}

static node unit_of_work(roller *r, const command *commands, size_t count)
{
    enum { KEY_HEAD = 3 };
    size_t numbers = 0;
    for (size_t i = 0; i < count; i++) {
        const command_row *row = command_row_of(commands[i].op);
        numbers += KEY_HEAD + row->field_count + (size_t)commands[i].entry_count * row->column_count;
    }
    int64_t *values = arena_alloc_unset(r->arena, numbers * sizeof *values), *key = arena_alloc_unset(r->arena, numbers * sizeof *key),
            *v = values, *k = key;
    node n = {.commands = commands, .command_count = count, .values = values};
    for (size_t i = 0; i < count; i++) {
        const command *c = &commands[i];
        const command_row *row = command_row_of(c->op);
        *k++ = c->op;
        *k++ = c->entry_count;
        *k++ = c->line;
        if (row->field_count)
            split_rows(command_field_row_of((command_field)row->first_field), row->field_count, c->fields, &v, &k);
        for (unsigned e = 0; e < c->entry_count; e++)
            split_rows(command_column_row_of((command_column)row->first_column), row->column_count, c->entries[e], &v, &k);
        n.words += command_words(c);
        n.rows += c->line != 0;
    }
    n.value_count = (size_t)(v - values);
    n.shape = shape_number(&r->shapes, key, (size_t)(k - key), r->arena);
    return n;
}

static void split_stream(roller *r, const command *commands, size_t count)
{
    size_t capacity = 0;
    for (size_t begin = 0, i = 0; i < count; i++)
        if (ends_work(&commands[i]) || i + 1 == count) {
            node n = unit_of_work(r, commands + begin, i + 1 - begin);
            ARENA_PUSH(r->arena, r->nodes, r->count, capacity, n);
            begin = i + 1;
        }
}

/* ---- runs ---- */

/* Does the value advance as it did one period before? */
static bool advances_evenly(const node *a, const node *b, const node *c)
{
    for (size_t i = 0; i < a->value_count; i++) {
        int64_t first, second;
        if (__builtin_sub_overflow(b->values[i], a->values[i], &first) || __builtin_sub_overflow(c->values[i], b->values[i], &second) ||
            first != second)
            return false;
    }
    return true;
}

static bool steps_fit(const node *a, const node *b)
{
    for (size_t i = 0; i < a->value_count; i++) {
        int64_t step;
        if (__builtin_sub_overflow(b->values[i], a->values[i], &step) || step < -STEP_MOST || step >= STEP_MOST)
            return false;
    }
    return true;
}

typedef struct run {
    size_t begin, iterations;
} run;

/* Words of the loop and advance commands of a loop whose body is `period` nodes from `begin` on. */
static size_t loop_words(const roller *r, size_t begin, size_t period)
{
    size_t advanced = 0;
    for (size_t j = begin; j < begin + period; j++)
        for (size_t i = 0; i < r->nodes[j].value_count; i++)
            advanced += r->nodes[j].values[i] != r->nodes[j + period].values[i];
    const command_row *advance = command_row_of(OP_ADVANCE);
    size_t commands = (advanced + advance->most_entries - 1) / advance->most_entries;
    return command_row_of(OP_LOOP)->field_words + commands * advance->field_words + advanced * advance->entry_words;
}

/* Is the file smaller with it? */
static bool saves(const roller *r, const run *x, size_t period)
{
    size_t words = 0, rows = 0;
    for (size_t j = x->begin; j < x->begin + period; j++) {
        words += r->nodes[j].words;
        rows += r->nodes[j].rows;
        if (r->nodes[j].depth == COMMAND_LOOP_MAX_DEPTH)
            return false;
    }
    return words <= (size_t)command_field_row_of(LOOP_BODY)->maximum &&
           (x->iterations - 1) * (words + LINE_WORDS * rows) > loop_words(r, x->begin, period);
}

static int run_order(const void *a, const void *b)
{
    const run *x = a, *y = b;
    return order_then(ORDER(y->iterations, x->iterations), ORDER(x->begin, y->begin));
}

/* All runs of a period, whether they save or not. */
static run *runs_of_period(const roller *r, size_t period, size_t *count)
{
    size_t *like = ARENA_ARRAY(r->arena, size_t, r->count + 1), *even = ARENA_ARRAY(r->arena, size_t, r->count + 1), capacity = 0;
    run *runs = NULL;
    *count = 0;
    for (size_t i = r->count - period; i-- > 0;) {
        const node *a = &r->nodes[i], *b = a + period, *c = b + period;
        bool same = a->shape == b->shape && steps_fit(a, b);
        like[i] = same ? like[i + 1] + 1 : 0;
        even[i] = same && i + 2 * period < r->count && like[i + period] && advances_evenly(a, b, c) ? even[i + 1] + 1 : 0;
        size_t iterations = 1 + like[i] / period, evenly = 2 + even[i] / period;
        iterations = iterations < evenly ? iterations : evenly;
        if (iterations > 1)
            ARENA_PUSH(r->arena, runs, *count, capacity, ((run){i, iterations}));
    }
    return runs;
}

/* The runs that become loops: those of most iterations first, none across another. `loop_at`: iterations by first node. */
static size_t choose_runs(const roller *r, size_t period, size_t *loop_at)
{
    size_t count, chosen = 0;
    run *runs = runs_of_period(r, period, &count);
    bool *taken = ARENA_ARRAY(r->arena, bool, r->count);
    order_sort(runs, count, sizeof *runs, run_order);
    for (size_t i = 0; i < count; i++) {
        size_t end = runs[i].begin + runs[i].iterations * period;
        if (taken[runs[i].begin] || taken[end - 1] || !saves(r, &runs[i], period))
            continue;
        for (size_t j = runs[i].begin; j < end; j++)
            taken[j] = true;
        loop_at[runs[i].begin] = runs[i].iterations;
        chosen++;
    }
    return chosen;
}

/* ---- loops ---- */

static node loop_of(roller *r, size_t begin, size_t period, size_t iterations)
{
    enum { KEY_HEAD = 3, LOOP_MARK = -1 };
    node *body = arena_grow(r->arena, r->nodes + begin, period, period, sizeof *body);
    node n = {.body = body, .body_count = period, .iterations = (int64_t)iterations, .head = loop_words(r, begin, period)};
    n.words = n.head;
    for (size_t i = 0; i < period; i++) {
        n.words += body[i].words;
        n.rows += body[i].rows;
        n.value_count += body[i].value_count;
        n.depth = body[i].depth + 1 > n.depth ? body[i].depth + 1 : n.depth;
    }
    int64_t *values = ARENA_ARRAY(r->arena, int64_t, n.value_count), *steps = ARENA_ARRAY(r->arena, int64_t, n.value_count);
    int64_t *key = ARENA_ARRAY(r->arena, int64_t, KEY_HEAD + period + n.value_count);
    key[0] = LOOP_MARK;
    key[1] = n.iterations;
    key[2] = (int64_t)period;
    for (size_t i = 0, v = 0; i < period; i++) {
        key[KEY_HEAD + i] = (int64_t)body[i].shape;
        for (size_t k = 0; k < body[i].value_count; k++, v++) {
            values[v] = body[i].values[k];
            steps[v] = r->nodes[begin + period + i].values[k] - values[v];
        }
    }
    if (n.value_count)
        memcpy(key + KEY_HEAD + period, steps, n.value_count * sizeof *steps);
    n.values = values;
    n.steps = steps;
    n.shape = shape_number(&r->shapes, key, KEY_HEAD + period + n.value_count, r->arena);
    return n;
}

static bool roll_period(roller *r, size_t period)
{
    size_t *loop_at = ARENA_ARRAY(r->arena, size_t, r->count), kept = 0;
    if (!choose_runs(r, period, loop_at))
        return false;
    for (size_t i = 0; i < r->count; kept++) {
        node n = loop_at[i] ? loop_of(r, i, period, loop_at[i]) : r->nodes[i];
        i += loop_at[i] ? period * loop_at[i] : 1;
        r->nodes[kept] = n;
    }
    r->count = kept;
    return true;
}

/* Distances between neighbours of one shape, ascending, at most MOST_PERIODS of them. */
static size_t find_periods(const roller *r, size_t *periods)
{
    size_t *last = ARENA_ARRAY(r->arena, size_t, r->shapes.count), count = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t before = last[r->nodes[i].shape], period = i + 1 - before, at = 0;
        last[r->nodes[i].shape] = i + 1;
        if (!before)
            continue;
        while (at < count && periods[at] < period)
            at++;
        if (at == MOST_PERIODS || (at < count && periods[at] == period))
            continue;
        count += count < MOST_PERIODS;
        memmove(periods + at + 1, periods + at, (count - 1 - at) * sizeof *periods);
        periods[at] = period;
    }
    return count;
}

/* After each change the shortest periods are tried again: a loop has made new neighbours. */
static bool roll_once(roller *r)
{
    size_t periods[MOST_PERIODS], count = find_periods(r, periods);
    for (size_t i = 0; i < count; i++)
        if (roll_period(r, periods[i]))
            return true;
    return false;
}

/* ---- the commands of the section ---- */

typedef struct writing {
    arena *arena;
    command *items;
    size_t count, capacity;
} writing;

typedef struct place {
    size_t word;
    unsigned low_bit;
    int64_t step;
} place;

/* Where the numbers of a row list stand. */
static place *rows_places(const command_field_row *rows, unsigned row_count, size_t word, place *out)
{
    for (unsigned i = 0; i < row_count; i++)
        if (command_row_is_number(&rows[i]))
            *out++ = (place){word + rows[i].word, rows[i].low_bit, 0};
    return out;
}

/* Where the values of a node stand, in their order, when its first word is `word`. */
static place *node_places(const node *n, size_t word, place *out)
{
    for (size_t i = 0; i < n->command_count; i++) {
        const command *c = &n->commands[i];
        const command_row *row = command_row_of(c->op);
        if (row->field_count)
            out = rows_places(command_field_row_of((command_field)row->first_field), row->field_count, word, out);
        for (unsigned e = 0; e < c->entry_count; e++)
            out = rows_places(command_column_row_of((command_column)row->first_column), row->column_count,
                              word + row->field_words + (size_t)e * row->entry_words, out);
        word += command_words(c);
    }
    word += n->head;
    for (size_t i = 0; i < n->body_count; i++) {
        out = node_places(&n->body[i], word, out);
        word += n->body[i].words;
    }
    return out;
}

static int place_order(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return order_then(ORDER(x->word, y->word), ORDER(x->low_bit, y->low_bit));
}

/* The places that the loop advances, ascending. */
static place *advanced_places(const node *loop, arena *a, size_t *count)
{
    place *places = ARENA_ARRAY(a, place, loop->value_count + 1), *end = places;
    size_t word = 0;
    for (size_t i = 0; i < loop->body_count; i++) {
        end = node_places(&loop->body[i], word, end);
        word += loop->body[i].words;
    }
    *count = 0;
    for (size_t i = 0; i < loop->value_count; i++)
        if (loop->steps[i]) {
            places[*count] = places[i];
            places[(*count)++].step = loop->steps[i];
        }
    order_sort(places, *count, sizeof *places, place_order);
    return places;
}

static void write_command(writing *w, const command *c)
{
    ARENA_PUSH(w->arena, w->items, w->count, w->capacity, *c);
}

static void write_advances(writing *w, const place *places, size_t count, context where)
{
    unsigned most = command_row_of(OP_ADVANCE)->most_entries;
    for (size_t i = 0; i < count;) {
        command c = {.op = OP_ADVANCE, .context = where};
        for (; i < count && c.entry_count < most; i++, c.entry_count++) {
            command_set_entry(&c, c.entry_count, ADVANCE_WORD, (int64_t)places[i].word);
            command_set_entry(&c, c.entry_count, ADVANCE_BIT, places[i].low_bit);
            command_set_entry(&c, c.entry_count, ADVANCE_STEP, places[i].step);
        }
        write_command(w, &c);
    }
}

static void write_node(writing *w, const node *n, context where, arena *scratch)
{
    for (size_t i = 0; i < n->command_count; i++)
        write_command(w, &n->commands[i]);
    if (!n->body_count)
        return;
    size_t count;
    const place *places = advanced_places(n, scratch, &count);
    command c = {.op = OP_LOOP, .context = where};
    command_set(&c, LOOP_COUNT, n->iterations);
    command_set(&c, LOOP_BODY, (int64_t)(n->words - n->head));
    write_command(w, &c);
    write_advances(w, places, count, where);
    for (size_t i = 0; i < n->body_count; i++)
        write_node(w, &n->body[i], where, scratch);
}

/* What repeats itself has its lines again: where those of the units of work only ascend, nothing does. */
static bool has_repetition(const command *commands, size_t count)
{
    const command *before = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!ends_work(&commands[i]))
            continue;
        if (before && commands[i].line <= before->line)
            return true;
        before = &commands[i];
    }
    return false;
}

void command_reroll(const command *commands, size_t count, size_t *left, arena *a, const command **out, size_t *out_count)
{
    *out = commands;
    *out_count = count;
    if (count > *left || !has_repetition(commands, count))
        return;
    arena *scratch = arena_new_inside(a);
    roller r = {.arena = scratch};
    split_stream(&r, commands, count);
    size_t works = r.count;
    while (roll_once(&r))
        ;
    if (r.count < works) {
        writing w = {.arena = a};
        for (size_t i = 0; i < r.count; i++)
            write_node(&w, &r.nodes[i], commands[0].context, scratch);
        *left -= count;
        *out = w.items;
        *out_count = w.count;
    }
    arena_free(scratch);
}
