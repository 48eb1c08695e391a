#include "runtime/field/sums.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/engine/exchange.h"
#include "runtime/field/accumulate.h"
#include "runtime/field/align.h"
#include "runtime/field/contract.h"
#include "runtime/machine/parallel.h"
#include "support/integer.h"

enum { MOST_CLASSES = 64, MOST_KEYS = 1 << 22, MOST_STEPS = 1 << 22, MOST_WORKERS = 64, NONE = -1 };

/* A chain in a slice, whose sums have names. */
typedef struct named_run {
    int64_t unit;
    field_memory kept[FIELD_KEPT];
    field_value *factors; /* by sum; NULL: none is wanted */
} named_run;

typedef struct named_chain {
    size_t time, first_run, run_count;
    int64_t sums; /* of a slice */
} named_chain;

struct field_sums {
    named_chain *chains;
    size_t chain_count, chain_capacity;
    named_run *runs;
    size_t run_count, run_capacity;
    field_budget budget;
};

/* ---- names ---- */

field_sums *field_sums_new(void)
{
    return calloc(1, sizeof(field_sums));
}

void field_sums_free(field_sums *s)
{
    for (size_t i = 0; s && i < s->run_count; i++) {
        for (int k = 0; k < FIELD_KEPT; k++)
            field_memory_free(&s->runs[i].kept[k]);
        free(s->runs[i].factors);
    }
    if (s) {
        free(s->chains);
        free(s->runs);
    }
    free(s);
}

static int64_t emissions_of(const accumulate *k)
{
    int64_t emissions = 1;
    for (unsigned i = 0; i < k->count; i++)
        emissions *= k->loops[i].reduced ? 1 : k->loops[i].size;
    return emissions;
}

static int64_t sums_of(const accumulate *k)
{
    return emissions_of(k) * k->beats_each * k->lanes;
}

/* Does the stage give on what it takes? */
static bool moves(const stage *s)
{
    bool relu = s->type == &stage_commit && ((const commit *)s->plan)->relu;
    bool difference = s->type == &stage_fetch && dtype_is_staging(((const source *)s->plan)->shape.dtype);
    return s->type->field->moves && !relu && !difference;
}

bool field_sums_moved(const chain *c)
{
    bool all = true;
    for (unsigned i = 0; i < c->stage_count; i++)
        all = all && moves(&c->stages[i]);
    return all;
}

bool field_sums_named(const chain *c)
{
    const source *from = chain_source(c)->plan;
    const contraction *k = chain_contraction(c);
    const accumulate *sums = chain_accumulate(c);
    if (chain_source(c)->type != &stage_fetch || from->lift || from->start_count > 0 || !k || !sums || exchange_is_needed(c))
        return false;
    if (k->steps > MOST_STEPS || sums_of(sums) >= (int64_t)FIELD_NAMES_APART)
        return false;
    for (unsigned i = 0; i < c->stage_count; i++) {
        const stage_type *type = c->stages[i].type;
        if (type == &stage_align) {
            if (i + 2 >= c->stage_count || c->stages[i + 1].type != &stage_contract || c->stages[i + 2].type != &stage_accumulate)
                return false;
            i += 2;
        } else if (!moves(&c->stages[i]) && i > 0) { /* what the first one makes of values is known again from the pages */
            return false;
        }
    }
    return true;
}

/* Room for one more, which is zero. */
static void *pushed(void **items, size_t *count, size_t *capacity, size_t bytes)
{
    if (*count == *capacity) {
        size_t more = *capacity ? 2 * *capacity : 64;
        void *grown = realloc(*items, more * bytes);
        if (!grown)
            return NULL;
        *items = grown;
        *capacity = more;
    }
    return memset((unsigned char *)*items + (*count)++ * bytes, 0, bytes);
}

field_value field_sums_begin(field_sums *s, const field_machine *m, const chain *c, size_t time, const int64_t *units, size_t count)
{
    const source *from = chain_source(c)->plan;
    size_t first = s->run_count;
    named_chain *of = pushed((void **)&s->chains, &s->chain_count, &s->chain_capacity, sizeof *of);
    if (!of || first + count >= INT32_MAX)
        return 0;
    *of = (named_chain){time, first, count, sums_of(chain_accumulate(c))};
    for (size_t i = 0; i < count; i++) {
        named_run *r = pushed((void **)&s->runs, &s->run_count, &s->run_capacity, sizeof *r);
        if (!r)
            return 0;
        const field_memory *dm = &m->dm[units[i]], *trf = &m->trf[units[i]];
        r->unit = units[i];
        field_memory_init(&r->kept[FIELD_KEPT_DM], dm->bits, &s->budget);
        field_memory_init(&r->kept[FIELD_KEPT_TRF], trf->bits, &s->budget);
        if (!field_memory_keep(&r->kept[FIELD_KEPT_DM], dm, from->dm.low_byte * 8, from->dm.span_bytes * 8) ||
            !field_memory_keep(&r->kept[FIELD_KEPT_TRF], trf, 0, trf->bits))
            return 0;
    }
    return FIELD_NAME + first * FIELD_NAMES_APART;
}

bool field_sums_want(field_sums *s, field_value first, const field_value *factors, int64_t count)
{
    size_t number = (first - FIELD_NAME) / FIELD_NAMES_APART;
    int64_t sum = (int64_t)(first % FIELD_NAMES_APART);
    named_run *r = &s->runs[number];
    if (!r->factors) {
        const named_chain *of = s->chains;
        while (number >= of->first_run + of->run_count)
            of++;
        r->factors = calloc((size_t)of->sums, sizeof *r->factors);
    }
    if (!r->factors)
        return false;
    for (int64_t i = 0; i < count; i++)
        r->factors[sum + i] = field_add(r->factors[sum + i], factors[i]);
    return true;
}

/* ---- the steps of a chain, the same in every slice ---- */

/* A step adds to the sums of a state: those of a slot, from the store before an emission up to it. What it adds is wanted as often as the
 * sums of all states that the slot comes to before it is stored again. */
typedef struct steps {
    const chain *chain;
    const contraction *pairs;
    const accumulate *slots;
    unsigned align; /* number of its stage */
    int64_t count, state_count, width;
    int32_t *state;   /* by step; NONE: nobody asks for it */
    int32_t *read;    /* by step */
    int32_t *later;   /* by state: that which the slot comes to next; NONE: it is stored, or nothing */
    int64_t *emitted; /* by state */
    int32_t *sums;    /* by beat and lane of an emission: Row * columns + column; NONE: it is no sum */
} steps;

static void steps_free(steps *x)
{
    free(x->state);
    free(x->read);
    free(x->later);
    free(x->emitted);
    free(x->sums);
}

static void list_sums(steps *x)
{
    const accumulate *k = x->slots;
    for (int64_t i = 0; i < k->beats_each * k->lanes; i++) {
        int64_t row, column;
        bool zero, some = field_accumulate_lane(k, i / k->lanes, i % k->lanes, &row, &column, &zero);
        x->sums[i] = some ? (int32_t)(row * k->columns + column) : NONE;
    }
}

static bool steps_open(steps *x, const chain *c)
{
    *x = (steps){.chain = c, .pairs = chain_contraction(c), .slots = chain_accumulate(c)};
    while (c->stages[x->align].type != &stage_align)
        x->align++;
    x->count = c->stages[x->align + 2].in.packets;
    x->width = INT64_C(1) << x->pairs->tree.depth;
    size_t states = (size_t)emissions_of(x->slots) + 1, slots = (size_t)x->slots->slots;
    int32_t *now = malloc((slots + 1) * sizeof *now);
    x->state = malloc(((size_t)x->count + 1) * sizeof *x->state);
    x->read = malloc(((size_t)x->count + 1) * sizeof *x->read);
    x->later = malloc(states * sizeof *x->later);
    x->emitted = malloc(states * sizeof *x->emitted);
    x->sums = malloc((size_t)(x->slots->beats_each * x->slots->lanes + 1) * sizeof *x->sums);
    bool done = now && x->state && x->read && x->later && x->emitted && x->sums && field_align_steps(&x->pairs->weights, x->count, x->read);
    if (done)
        list_sums(x);
    for (size_t i = 0; done && i < slots; i++)
        now[i] = NONE;
    for (int64_t i = x->count; done && i-- > 0;) {
        field_step_place p = field_accumulate_place(x->slots, i);
        if (p.emits && x->state_count < (int64_t)states) {
            x->later[x->state_count] = now[p.slot];
            x->emitted[x->state_count] = p.emission;
            now[p.slot] = (int32_t)x->state_count++;
        }
        x->state[i] = now[p.slot];
        if (p.stores)
            now[p.slot] = NONE;
    }
    free(now);
    return done;
}

/* ---- what is wanted of a slice ---- */

/* Factors of the Rows of a column are those of a class, of which the first that is not zero is one, times a number. Of each class the
 * first number is put aside, so that slices that differ in it alone have the same numbers. */
typedef struct wanted {
    named_run *run;
    int32_t *classes;     /* by state and column; NONE: nothing of it is wanted */
    field_value *numbers; /* the same */
    field_value *rows;    /* by class and Row */
    field_value aside[MOST_CLASSES];
    int class_count;
    size_t packets, weights; /* numbers of its sums */
} wanted;

static void wanted_free(wanted *w)
{
    free(w->classes);
    free(w->numbers);
    free(w->rows);
}

static field_value inverse_of(field_value x)
{
    field_value power = 1;
    for (uint64_t left = FIELD_PRIME - 2; left > 0; left >>= 1) {
        power = left & 1 ? field_multiply(power, x) : power;
        x = field_multiply(x, x);
    }
    return power;
}

/* The class of these factors, of `apart` values between Rows. False: there are too many. */
static bool classify(wanted *w, const field_value *factors, int64_t apart, int64_t rows, int32_t *class, field_value *number)
{
    int64_t first = 0;
    while (first < rows && factors[first * apart] == 0)
        first++;
    *class = NONE;
    *number = 0;
    if (first == rows)
        return true;
    field_value lead = factors[first * apart];
    for (int i = 0; i < w->class_count; i++) {
        const field_value *of = w->rows + i * rows;
        int64_t row = 0;
        while (row < rows && (row < first ? of[row] == 0 : of[first] == 1 && field_multiply(lead, of[row]) == factors[row * apart]))
            row++;
        if (row < rows)
            continue;
        *class = i;
        *number = lead;
        return true;
    }
    if (w->class_count == MOST_CLASSES)
        return false;
    field_value *of = w->rows + w->class_count * rows, by = inverse_of(lead);
    for (int64_t row = 0; row < rows; row++)
        of[row] = field_multiply(by, factors[row * apart]);
    *class = w->class_count++;
    *number = lead;
    return true;
}

/* Factors of the states' Rows and columns. */
static void state_factors(const steps *x, const named_run *r, field_value *out)
{
    const accumulate *k = x->slots;
    int64_t each = k->rows * k->columns, lanes = k->beats_each * k->lanes;
    for (int64_t s = 0; s < x->state_count; s++) {
        field_value *to = out + s * each;
        const field_value *from = r->factors + x->emitted[s] * lanes;
        for (int64_t i = 0; i < each; i++)
            to[i] = x->later[s] < 0 ? 0 : out[x->later[s] * each + i];
        for (int64_t i = 0; i < lanes; i++)
            if (x->sums[i] >= 0)
                to[x->sums[i]] = field_add(to[x->sums[i]], from[i]);
    }
}

static void put_aside(wanted *w, int64_t count)
{
    field_value by[MOST_CLASSES];
    bool known[MOST_CLASSES] = {false};
    for (int64_t i = 0; i < count; i++) {
        int32_t class = w->classes[i];
        if (class < 0)
            continue;
        if (!known[class]) {
            w->aside[class] = w->numbers[i];
            by[class] = inverse_of(w->numbers[i]);
            known[class] = true;
        }
        w->numbers[i] = field_multiply(w->numbers[i], by[class]);
    }
}

/* False: no memory, or too many classes. */
static bool wanted_open(wanted *w, const steps *x, named_run *r)
{
    const accumulate *k = x->slots;
    size_t items = (size_t)(x->state_count * k->columns);
    *w = (wanted){.run = r,
                  .classes = malloc((items + 1) * sizeof *w->classes),
                  .numbers = malloc((items + 1) * sizeof *w->numbers),
                  .rows = malloc((size_t)(MOST_CLASSES * k->rows + 1) * sizeof *w->rows)};
    field_value *factors = malloc((items * (size_t)k->rows + 1) * sizeof *factors);
    bool done = w->classes && w->numbers && w->rows && factors;
    if (done)
        state_factors(x, r, factors);
    free(r->factors); /* the next slice's memory: nobody asks for them again */
    r->factors = NULL;
    for (int64_t i = 0; done && i < (int64_t)items; i++)
        done = classify(w, factors + i / k->columns * k->rows * k->columns + i % k->columns, k->columns, k->rows, &w->classes[i],
                        &w->numbers[i]);
    if (done)
        put_aside(w, (int64_t)items);
    free(factors);
    field_value *kept = done ? realloc(w->rows, (size_t)(w->class_count * k->rows + 1) * sizeof *w->rows) : NULL;
    w->rows = kept ? kept : w->rows;
    return done;
}

/* ---- sums of packets, and of weights ---- */

/* Each key is a read of weights and a class; packets are added up for each. */
typedef struct keys {
    int32_t *classes; /* of whom these are: of the first slice that has them */
    int32_t *of_step; /* by step and column */
    int32_t *read, *class;
    int64_t count;
} keys;

typedef struct added {
    size_t slice; /* the first of those that have it */
    size_t keys;
    field_value *values; /* by key and lane */
} added;

typedef struct summing {
    field_machine *machine;
    const named_chain *chain;
    steps steps;
    wanted *slices;
    size_t slice_count;
    keys *keys;
    size_t key_count;
    size_t *keys_of; /* by slice */
    added *packets, *weights;
    size_t packet_count, weight_count;
    struct row *rows;   /* by sum of packets */
    size_t *row_slices; /* of all rows */
    bool *failed;       /* by worker */
    field_value *sums;  /* by worker */
} summing;

static bool keys_open(keys *k, const steps *x, const wanted *w)
{
    int64_t columns = x->slots->columns, reads = x->pairs->weights.reads, most = reads * (w->class_count + 1);
    int32_t *number = most <= MOST_KEYS ? malloc((size_t)most * sizeof *number) : NULL;
    *k = (keys){.classes = w->classes,
                .of_step = malloc((size_t)(x->count * columns + 1) * sizeof *k->of_step),
                .read = malloc((size_t)(most + 1) * sizeof *k->read),
                .class = malloc((size_t)(most + 1) * sizeof *k->class)};
    bool done = number && k->of_step && k->read && k->class;
    for (int64_t i = 0; done && i < most; i++)
        number[i] = NONE;
    for (int64_t i = 0; done && i < x->count * columns; i++) {
        int32_t state = x->state[i / columns], read = x->read[i / columns],
                class = state < 0 ? NONE : w->classes[state * columns + i % columns];
        k->of_step[i] = NONE;
        if (class < 0)
            continue;
        int32_t *at = &number[read * w->class_count + class];
        if (*at < 0) {
            k->read[k->count] = read;
            k->class[k->count] = class;
            *at = (int32_t)k->count++;
        }
        k->of_step[i] = *at;
    }
    free(number);
    return done;
}

static void keys_free(keys *k)
{
    free(k->of_step);
    free(k->read);
    free(k->class);
}

static bool same_values(const void *a, const void *b, int64_t count, size_t each)
{
    return memcmp(a, b, (size_t)count * each) == 0;
}

static bool same_packets(const summing *s, const wanted *a, const wanted *b)
{
    int64_t items = s->steps.state_count * s->steps.slots->columns;
    const source *from = chain_source(s->steps.chain)->plan;
    return s->steps.pairs->masks.count == 0 && same_values(a->numbers, b->numbers, items, sizeof *a->numbers) &&
           field_memory_same(&a->run->kept[FIELD_KEPT_DM], &b->run->kept[FIELD_KEPT_DM], from->dm.low_byte * 8, from->dm.span_bytes * 8);
}

static bool same_weights(const summing *s, const wanted *a, const wanted *b)
{
    return a->class_count == b->class_count && same_values(a->rows, b->rows, a->class_count * s->steps.slots->rows, sizeof *a->rows) &&
           field_memory_same(&a->run->kept[FIELD_KEPT_TRF], &b->run->kept[FIELD_KEPT_TRF], 0, a->run->kept[FIELD_KEPT_TRF].bits);
}

/* The number of the slice's sums among those that there are; it becomes a new one if none is the same. */
static size_t number_of(const summing *s, added *list, size_t *count, size_t slice,
                        bool (*same)(const summing *s, const wanted *a, const wanted *b))
{
    for (size_t i = 0; i < *count; i++)
        if (list[i].keys == s->keys_of[slice] && same(s, &s->slices[list[i].slice], &s->slices[slice]))
            return i;
    list[*count] = (added){slice, s->keys_of[slice], NULL};
    return (*count)++;
}

static bool group(summing *s)
{
    int64_t items = s->steps.state_count * s->steps.slots->columns;
    for (size_t i = 0; i < s->slice_count; i++) {
        size_t k = 0;
        while (k < s->key_count && !same_values(s->keys[k].classes, s->slices[i].classes, items, sizeof(int32_t)))
            k++;
        if (k == s->key_count && !keys_open(&s->keys[s->key_count++], &s->steps, &s->slices[i]))
            return false;
        s->keys_of[i] = k;
        s->slices[i].packets = number_of(s, s->packets, &s->packet_count, i, same_packets);
        s->slices[i].weights = number_of(s, s->weights, &s->weight_count, i, same_weights);
    }
    return true;
}

/* Values side by side times others that are `apart`. */
static inline field_value sum_of_products(const field_value *values, const field_value *others, int64_t apart, int64_t count)
{
    field_sum sum = 0;
    for (int64_t i = 0, end; i < count; i = end) {
        end = smaller(i + FIELD_MOST_PRODUCTS, count);
        sum = i > 0 ? field_fold(sum) : 0;
#pragma GCC unroll 8
        for (int64_t j = i; j < end; j++)
            sum += (field_sum)values[j] * others[j * apart];
    }
    return field_of_sum(sum);
}

static bool open_run(const summing *s, field_run *r, const wanted *w, fault *f)
{
    if (!field_run_open(r, s->machine, s->steps.chain, s->chain->time, w->run->unit, f))
        return false;
    r->kept = w->run->kept;
    return true;
}

/* A packet's lanes that count, times a number. */
static void add_packet(field_sum *to, const field_value *packet, field_value number, int64_t count, const unsigned char *live)
{
    if (!live) {
#pragma GCC unroll 8
        for (int64_t l = 0; l < count; l++)
            to[l] += (field_sum)number * packet[l];
        return;
    }
    for (int64_t l = 0; l < count; l++)
        if (live[l])
            to[l] += (field_sum)number * packet[l];
}

/* Lines of values, each times a number, added up. */
typedef struct joined {
    int64_t lanes, products;  /* values of a line; lines */
    field_value number;       /* of a line alone, which stays where it is; */
    const field_value *alone; /* NULL: there are none, or several in `sums` */
    field_sum *sums;
} joined;

static void join_one(joined *j, const field_value *values, field_value number)
{
    if (j->products == 0) {
        j->alone = values;
        j->number = number;
    }
    if (j->products == 1) {
        memset(j->sums, 0, (size_t)j->lanes * sizeof *j->sums);
        add_packet(j->sums, j->alone, j->number, j->lanes, NULL);
        j->alone = NULL;
        j->number = 1;
    }
    if (j->products > 0)
        add_packet(j->sums, values, number, j->lanes, NULL);
    j->products++;
    for (int64_t l = 0; j->products % (FIELD_MOST_PRODUCTS - 1) == 0 && l < j->lanes; l++)
        j->sums[l] = field_fold(j->sums[l]);
}

static const field_value *joined_values(const joined *j, field_value *room)
{
    for (int64_t l = 0; !j->alone && l < j->lanes; l++)
        room[l] = field_of_sum(j->sums[l]);
    return j->alone ? j->alone : room;
}

/* Sums of a key and column, and how many products are in each since they were folded. */
typedef struct packet_sums {
    field_sum *sums;
    unsigned char *products;
} packet_sums;

static void packet_sums_free(packet_sums *p)
{
    free(p->sums);
    free(p->products);
}

static bool packet_sums_new(packet_sums *p, int64_t count, int64_t lanes)
{
    *p = (packet_sums){calloc((size_t)(count * lanes) + 1, sizeof *p->sums), calloc((size_t)count + 1, sizeof *p->products)};
    return p->sums && p->products;
}

/* Steps in order; the sums of keys are folded before they might overflow. */
static bool add_steps(const summing *s, const added *a, field_run *r, packet_sums *sums)
{
    const steps *x = &s->steps;
    const wanted *w = &s->slices[a->slice];
    const keys *k = &s->keys[a->keys];
    int64_t lanes = x->pairs->lanes, columns = x->slots->columns;
    for (int64_t i = 0; i < x->count && !r->fault->set; i++) {
        const unsigned char *live;
        mask_state count = field_contract_live(&r->stages[x->align + 1], i, &live);
        bool some = false;
        for (int64_t c = 0; c < columns; c++)
            some |= k->of_step[i * columns + c] >= 0;
        if (!some || count == MASK_NONE)
            continue;
        const field_value *packet = field_align_lanes(&r->stages[x->align], i);
        for (int64_t c = 0; c < columns; c++) {
            int32_t key = k->of_step[i * columns + c];
            if (key < 0)
                continue;
            field_sum *to = sums->sums + key * lanes;
            for (int64_t l = 0; sums->products[key] == FIELD_MOST_PRODUCTS && l < lanes; l++)
                to[l] = field_fold(to[l]);
            sums->products[key] = (unsigned char)(sums->products[key] % FIELD_MOST_PRODUCTS + 1);
            int64_t first = c * x->width;
            add_packet(to + first, packet + first, w->numbers[x->state[i] * columns + c], x->width,
                       count == MASK_ALL ? NULL : live + first);
        }
    }
    return !r->fault->set;
}

static bool add_packets(const summing *s, added *a)
{
    int64_t count = s->keys[a->keys].count, lanes = s->steps.pairs->lanes;
    field_run r;
    fault f = {0};
    packet_sums sums;
    bool done = packet_sums_new(&sums, count, lanes);
    if (done && open_run(s, &r, &s->slices[a->slice], &f)) {
        done = add_steps(s, a, &r, &sums);
        for (int64_t i = 0; i < count * lanes; i++)
            a->values[i] = field_of_sum(sums.sums[i]);
        field_run_close(&r);
    }
    packet_sums_free(&sums);
    return done && !f.set;
}

static bool add_weights(const summing *s, added *a)
{
    const steps *x = &s->steps;
    const wanted *w = &s->slices[a->slice];
    const keys *k = &s->keys[a->keys];
    int64_t lanes = x->pairs->lanes, each = x->pairs->weights.read_elements, row_values = 0, count = smaller(lanes, each);
    field_run r;
    fault f = {0};
    field_sum *sums = malloc((size_t)count * sizeof *sums);
    bool done = sums && open_run(s, &r, w, &f);
    const field_value *reads = done ? field_align_reads(&r.stages[x->align], &row_values) : NULL;
    for (int64_t i = 0; reads && i < k->count; i++) {
        const field_value *factors = w->rows + k->class[i] * x->slots->rows, *from = reads + k->read[i] * each;
        field_value *to = a->values + i * lanes;
        joined rows = {.lanes = count, .sums = sums};
        for (int64_t row = 0; row < x->slots->rows; row++)
            join_one(&rows, from + row * row_values, factors[row]);
        const field_value *values = joined_values(&rows, to);
        for (int64_t l = 0; rows.alone && l < count; l++)
            to[l] = field_multiply(values[l], rows.number);
        for (int64_t l = each; l < lanes; l++)
            to[l] = to[l - each];
    }
    if (done)
        field_run_close(&r);
    free(sums);
    return done && !f.set;
}

static void want_job(void *of, unsigned worker, size_t index)
{
    summing *s = of;
    bool done = wanted_open(&s->slices[index], &s->steps, s->slices[index].run);
    s->failed[worker] = s->failed[worker] || !done;
}

static void add_job(void *of, unsigned worker, size_t index)
{
    summing *s = of;
    bool packets = index < s->packet_count;
    added *a = packets ? &s->packets[index] : &s->weights[index - s->packet_count];
    a->values = malloc(((size_t)(s->keys[a->keys].count * s->steps.pairs->lanes) + 1) * sizeof *a->values);
    bool done = a->values && (packets ? add_packets(s, a) : add_weights(s, a));
    s->failed[worker] = s->failed[worker] || !done;
}

/* ---- packets times weights ---- */

/* The slices with the same sums of packets. Where the numbers that were put aside for them are those of another row times a number for each
 * class, slice by slice of the same weights, the packets of both are added up first: of a product that fills a grid of slices, each sum of
 * packets and of weights is met once. */
typedef struct row {
    const size_t *slices;
    size_t count;
    bool is_added;              /* to a row before it; */
    size_t members, next, last; /* of those that are added to this one, and it: how many; the row after this one; the last one */
} row;

static bool same_row(const summing *s, const row *a, const row *b)
{
    const wanted *first_a = &s->slices[a->slices[0]], *first_b = &s->slices[b->slices[0]];
    if (a->count != b->count || s->keys_of[a->slices[0]] != s->keys_of[b->slices[0]])
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const wanted *in_a = &s->slices[a->slices[i]], *in_b = &s->slices[b->slices[i]];
        if (in_a->weights != in_b->weights)
            return false;
        for (int c = 0; c < first_a->class_count; c++)
            if (field_multiply(in_a->aside[c], first_b->aside[c]) != field_multiply(in_b->aside[c], first_a->aside[c]))
                return false;
    }
    return true;
}

/* The slices of each sum of packets, in order. False: no memory. */
static bool rows_open(summing *s)
{
    size_t *first = calloc(s->packet_count + 2, sizeof *first);
    s->rows = calloc(s->packet_count + 1, sizeof *s->rows);
    s->row_slices = calloc(s->slice_count + 1, sizeof *s->row_slices);
    if (!first || !s->rows || !s->row_slices) {
        free(first);
        return false;
    }
    for (size_t i = 0; i < s->slice_count; i++)
        first[s->slices[i].packets + 2]++;
    for (size_t i = 2; i < s->packet_count + 2; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < s->slice_count; i++)
        s->row_slices[first[s->slices[i].packets + 1]++] = i;
    for (size_t i = 0; i < s->packet_count; i++) {
        row *r = &s->rows[i];
        *r = (row){.slices = s->row_slices + first[i], .count = first[i + 1] - first[i], .members = 1, .last = i};
        for (size_t j = 0; j < i && !r->is_added; j++) {
            row *before = &s->rows[j];
            if (before->is_added || !same_row(s, before, r))
                continue;
            r->is_added = true;
            before->members++;
            s->rows[before->last].next = i;
            before->last = i;
        }
    }
    free(first);
    return true;
}

/* What the numbers of a row's members are, by member and class, times those of the first one. */
static void member_ratios(const summing *s, size_t index, int classes, field_value *out)
{
    const row *r = &s->rows[index];
    for (int c = 0; c < classes; c++) {
        field_value by = inverse_of(s->slices[r->slices[0]].aside[c]);
        for (size_t m = 0, at = index; m < r->members; m++, at = s->rows[at].next)
            out[m * (size_t)classes + (size_t)c] = field_multiply(by, s->slices[s->rows[at].slices[0]].aside[c]);
    }
}

/* Of a key of a row and all its members: packets times weights. `sums`, `room`: for twice the lanes of a packet. */
static field_value join_key(const summing *s, size_t index, int64_t key, const field_value *ratios, field_sum *sums, field_value *room)
{
    const row *r = &s->rows[index];
    const wanted *first = &s->slices[r->slices[0]];
    int32_t class = s->keys[s->keys_of[r->slices[0]]].class[key];
    int64_t lanes = s->steps.pairs->lanes, from = key * lanes;
    joined of_packets = {.lanes = lanes, .sums = sums}, of_weights = {.lanes = lanes, .sums = sums + lanes};
    for (size_t m = 0, at = index; m < r->members; m++, at = s->rows[at].next)
        join_one(&of_packets, s->packets[at].values + from, ratios[m * (size_t)first->class_count + (size_t) class]);
    for (size_t i = 0; i < r->count; i++) {
        const wanted *w = &s->slices[r->slices[i]];
        join_one(&of_weights, s->weights[w->weights].values + from, w->aside[class]);
    }
    field_value sum = sum_of_products(joined_values(&of_packets, room), joined_values(&of_weights, room + lanes), 1, lanes);
    return field_multiply(sum, field_multiply(of_packets.number, of_weights.number));
}

static void join_job(void *of, unsigned worker, size_t index)
{
    summing *s = of;
    const row *r = &s->rows[index];
    if (r->is_added)
        return;
    int classes = s->slices[r->slices[0]].class_count;
    size_t lanes = (size_t)s->steps.pairs->lanes;
    field_sum *sums = malloc(2 * lanes * sizeof *sums);
    field_value *room = malloc(2 * lanes * sizeof *room), *ratios = malloc((r->members * (size_t)classes + 1) * sizeof *ratios);
    bool done = sums && room && ratios;
    if (done)
        member_ratios(s, index, classes, ratios);
    for (int64_t i = 0; done && i < s->keys[s->keys_of[r->slices[0]]].count; i++)
        s->sums[worker] = field_add(join_key(s, index, i, ratios, sums, room), s->sums[worker]);
    free(sums);
    free(room);
    free(ratios);
    s->failed[worker] = s->failed[worker] || !done;
}

/* ---- a chain ---- */

static bool summing_new(summing *s, field_sums *of)
{
    size_t most = s->chain->run_count + 1;
    s->slices = calloc(most, sizeof *s->slices);
    s->keys = calloc(most, sizeof *s->keys);
    s->keys_of = calloc(most, sizeof *s->keys_of);
    s->packets = calloc(most, sizeof *s->packets);
    s->weights = calloc(most, sizeof *s->weights);
    for (size_t i = 0; s->slices && i < s->chain->run_count; i++) {
        named_run *r = &of->runs[s->chain->first_run + i];
        if (r->factors)
            s->slices[s->slice_count++].run = r;
    }
    return s->slices && s->keys && s->keys_of && s->packets && s->weights;
}

static void summing_free(summing *s)
{
    steps_free(&s->steps);
    for (size_t i = 0; s->slices && i < s->slice_count; i++)
        wanted_free(&s->slices[i]);
    for (size_t i = 0; i < s->key_count; i++)
        keys_free(&s->keys[i]);
    for (size_t i = 0; i < s->packet_count; i++)
        free(s->packets[i].values);
    for (size_t i = 0; i < s->weight_count; i++)
        free(s->weights[i].values);
    free(s->slices);
    free(s->keys);
    free(s->keys_of);
    free(s->packets);
    free(s->weights);
    free(s->rows);
    free(s->row_slices);
}

/* False: one of them failed. */
static bool in_turns(summing *s, size_t count, void (*job)(void *of, unsigned worker, size_t index))
{
    unsigned workers = (unsigned)smaller(smaller(parallel_workers(s->machine->threads), (int64_t)count), MOST_WORKERS);
    bool done = true;
    if (count > 0)
        parallel_for(count, workers, job, s);
    for (int i = 0; i < MOST_WORKERS; i++)
        done = done && !s->failed[i];
    return done;
}

static bool add_chain(field_sums *of, field_machine *m, const named_chain *n, field_value *out)
{
    bool failed[MOST_WORKERS] = {false};
    field_value sums[MOST_WORKERS] = {0};
    summing s = {.machine = m, .chain = n, .failed = failed, .sums = sums};
    chain *c = m->plans->chain;
    fault f = {0};
    bool done = field_event_plan(m, n->time, c, &f) && summing_new(&s, of) && steps_open(&s.steps, c) &&
                in_turns(&s, s.slice_count, want_job) && group(&s) && in_turns(&s, s.packet_count + s.weight_count, add_job) &&
                rows_open(&s) && in_turns(&s, s.packet_count, join_job);
    for (int i = 0; i < MOST_WORKERS; i++)
        *out = field_add(*out, sums[i]);
    summing_free(&s);
    return done;
}

bool field_sums_total(field_sums *s, field_machine *m, field_value *out)
{
    bool done = true;
    *out = 0;
    for (size_t i = 0; i < s->chain_count && done; i++)
        done = add_chain(s, m, &s->chains[i], out);
    return done;
}
