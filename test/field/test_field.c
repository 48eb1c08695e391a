/* The field's arithmetic, its memory against a list of cells, walks searched backwards against enumeration.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/transpose.h"
#include "runtime/field/engine.h"
#include "runtime/field/product.h"
#include "runtime/field/slab.h"
#include "support/sha256.h"
#include "test/suite.h"

static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
    state = mix_word(state + UINT64_C(0x9e3779b97f4a7c15));
    return state % below;
}

START_TEST(arithmetic_is_that_of_residues)
{
    for (int i = 0; i < 100000; i++) {
        field_value a = draw(FIELD_PRIME), b = draw(FIELD_PRIME);
        ck_assert_uint_eq(field_multiply(a, b), (field_value)((unsigned __int128)a * b % FIELD_PRIME));
        ck_assert_uint_eq(field_add(a, b), (field_value)(((unsigned __int128)a + b) % FIELD_PRIME));
    }
    field_value last = FIELD_PRIME - 1;
    ck_assert_uint_eq(field_multiply(last, last), 1);
    ck_assert_uint_eq(field_add(last, 1), 0);
    ck_assert_uint_eq(field_reduce(FIELD_PRIME), 0);
    field_sum most = 0;
    for (int i = 0; i < FIELD_MOST_PRODUCTS; i++)
        most += (field_sum)last * last;
    ck_assert_uint_eq(field_of_sum(field_fold(most) + (field_sum)last * last), FIELD_MOST_PRODUCTS + 1);
}
END_TEST

/* Edges of the limbs among the values: those of 52 bits, and the largest. */
static field_value draw_edge(void)
{
    const field_value edges[] = {0, 1, FIELD_PRIME - 1, (UINT64_C(1) << 52) - 1, UINT64_C(1) << 52};
    uint64_t which = draw(10);
    return which < 5 ? edges[which] : draw(FIELD_PRIME);
}

START_TEST(products_are_the_same_every_way)
{
    enum { LANES = 128, ROWS = 8, APART = 130 };
    static field_value lanes[LANES], factors[ROWS * APART], best[ROWS * LANES], portable[ROWS * LANES];
    for (int round = 0; round < suite_rounds(400); round++) {
        int64_t width = INT64_C(1) << draw(8), columns = INT64_C(1) << draw(8), rows = (int64_t)draw(ROWS) + 1;
        if (width * columns > LANES)
            continue;
        bool largest = draw(4) == 0;
        for (int i = 0; i < LANES; i++)
            lanes[i] = largest ? FIELD_PRIME - 1 : draw_edge();
        for (int i = 0; i < ROWS * APART; i++)
            factors[i] = largest ? FIELD_PRIME - 1 : draw_edge();
        field_packet p = {lanes, factors, APART, rows, columns, width};
        field_products_best()(&p, best);
        field_products_portable(&p, portable);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++) {
                field_value sum = 0;
                for (int64_t i = column * width; i < (column + 1) * width; i++)
                    sum = field_add(sum, field_multiply(lanes[i], factors[row * APART + i]));
                ck_assert_uint_eq(best[row * columns + column], sum);
                ck_assert_uint_eq(portable[row * columns + column], sum);
            }
    }
}
END_TEST

/* Copies of whole pages share them until one side is written. */
START_TEST(copies_are_apart)
{
    enum { ELEMENTS = 2048 };
    field_budget budget = {0};
    field_memory m[2];
    field_unknowns u = {1, 2, 0};
    static field_value values[ELEMENTS], other[ELEMENTS], got[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = draw(FIELD_PRIME);
        other[i] = draw(FIELD_PRIME);
    }
    for (int writes = 0; writes < 2; writes++)
        for (int kind = 0; kind < 3; kind++) {
            field_memory_init(&m[0], 16 * ELEMENTS, &budget);
            field_memory_init(&m[1], 16 * ELEMENTS, &budget);
            ck_assert(field_memory_write(&m[0], 0, DTYPE_BF16, ELEMENTS, values));
            if (kind == 2) /* of several types */
                ck_assert(field_memory_write(&m[0], 16, DTYPE_I8, 1, other));
            ck_assert(field_memory_copy(&m[1], 0, &m[0], 0, 16 * ELEMENTS));
            if (kind == 1)
                ck_assert(field_memory_copy(&m[writes], 16 * 5, &m[writes], 16 * 8, 16));
            else
                ck_assert(field_memory_write(&m[writes], 16 * 5, DTYPE_BF16, 1, other + 5));
            field_memory_read(&m[!writes], 16 * 2, DTYPE_BF16, 1, ELEMENTS - 2, got, &u);
            ck_assert(memcmp(got, values + 2, (ELEMENTS - 2) * sizeof *got) == 0);
            field_memory_read(&m[writes], 16 * 5, DTYPE_BF16, 1, 1, got, &u);
            ck_assert_uint_eq(got[0], kind == 1 ? values[8] : other[5]);
            field_memory_free(&m[writes]);
            field_memory_read(&m[!writes], 16 * 2, DTYPE_BF16, 1, ELEMENTS - 2, got, &u);
            ck_assert(memcmp(got, values + 2, (ELEMENTS - 2) * sizeof *got) == 0);
            field_memory_free(&m[!writes]);
        }
}
END_TEST

/* As many as fill no vector, one and some. */
START_TEST(words_that_are_mixed_together_are_those_mixed_alone)
{
    enum { MOST = 37 };
    for (int64_t count = 0; count <= MOST; count++) {
        uint64_t key = draw(UINT64_MAX), first = draw(UINT64_MAX), step = draw(1000), words[MOST + 1], counted[MOST + 1];
        for (int64_t i = 0; i <= MOST; i++)
            words[i] = counted[i] = first + (uint64_t)i * step;
        field_inputs_at(key, words, count);
        field_inputs_from(key, first, (int64_t)step, count, counted);
        for (int64_t i = 0; i < count; i++) {
            ck_assert_uint_eq(words[i], field_input_at(key, first + (uint64_t)i * step));
            ck_assert_uint_eq(counted[i], words[i]);
        }
        ck_assert_uint_eq(words[count], first + (uint64_t)count * step); /* what is behind them stays */
        ck_assert_uint_eq(counted[count], words[count]);
        uint64_t one = mix_word((first + 5) ^ key) >> 7, other[MOST];
        for (int64_t i = 0; i < count; i++)
            other[i] = i == count - 1 ? first : first + 1;
        mix_words(&(mix_form){5, key, 7, one}, other, count);
        for (int64_t i = 0; i < count; i++)
            ck_assert_uint_eq(other[i], i == count - 1 ? 0 : mix_word((first + 6) ^ key) >> 7);
    }
}
END_TEST

START_TEST(functions_know_what_order_means)
{
    field_function a = field_function_begin(1, 2), b = a, c = a, d = a;
    field_function_take(&a, 3), field_function_take(&a, 4);
    field_function_take(&b, 4), field_function_take(&b, 3);
    ck_assert_uint_ne(field_function_end(&a), field_function_end(&b));
    field_function_join(&c, 1, 2, 3), field_function_join(&c, 1, 2, 4), field_function_join(&c, 1, 2, 3);
    field_function_join(&d, 1, 2, 4), field_function_join(&d, 1, 2, 3);
    ck_assert_uint_ne(field_function_end(&c), field_function_end(&d));
    field_function_join(&d, 1, 2, 3);
    ck_assert_uint_eq(field_function_end(&c), field_function_end(&d));
}
END_TEST

/* ---- memory ---- */

enum { MODEL_CELLS = 6000, MODEL_BITS = MODEL_CELLS * FIELD_CELL_BITS };

static void model_write(field_cell *cells, int64_t bit, dtype type, field_value v)
{
    for (unsigned i = 0; i < dtype_row_of(type)->bits / FIELD_CELL_BITS; i++)
        cells[bit / FIELD_CELL_BITS + i] = (field_cell){v, type, (unsigned char)i, true};
}

/* Is the element at the place whole in the model? Then its value. */
static bool model_whole(const field_cell *cells, int64_t bit, dtype type, field_value *out)
{
    bool whole = true;
    const field_cell *at = cells + bit / FIELD_CELL_BITS;
    for (unsigned i = 0; i < dtype_row_of(type)->bits / FIELD_CELL_BITS; i++)
        whole = whole && at[i].written && at[i].type == type && at[i].part == i && at[i].value == at[0].value;
    *out = at[0].value;
    return whole;
}

/* Elements of an input, over whole pages or parts of them. */
static void give_some(field_memory *m, field_cell *model, dtype type, int64_t bit)
{
    enum { PAGE_BITS = 8192 };
    int64_t bits = dtype_row_of(type)->bits, at = draw(2) ? bit / PAGE_BITS * PAGE_BITS : bit;
    int64_t count = (int64_t)draw((uint64_t)((MODEL_BITS - at) / bits)) + 1;
    uint64_t key = draw(FIELD_PRIME), first = draw(1 << 20);
    ck_assert(field_memory_give(m, at, type, count, key, first));
    for (int64_t i = 0; i < count; i++)
        model_write(model, at + i * bits, type, field_input_at(key, first + (uint64_t)i));
}

START_TEST(memory_is_a_list_of_cells)
{
    field_budget budget = {0};
    for (int round = 0; round < 20; round++) {
        field_memory m[2];
        field_cell *model[2];
        for (int i = 0; i < 2; i++) {
            field_memory_init(&m[i], MODEL_BITS, &budget);
            model[i] = calloc(MODEL_CELLS, sizeof(field_cell));
        }
        bool odd = draw(2);
        field_unknowns u = {1, 2, 0};
        for (int step = 0; step < 2000; step++) {
            dtype type = (dtype)draw(8);
            int64_t bits = dtype_row_of(type)->bits, count = (int64_t)draw(200) + 1, unit = odd ? FIELD_CELL_BITS : bits;
            int64_t bit = (int64_t)draw((uint64_t)((MODEL_BITS - count * bits) / unit)) * unit;
            int which = (int)draw(2);
            field_value values[200];
            switch (draw(4)) {
            case 0: give_some(&m[which], model[which], type, bit); break;
            case 1:
                for (int64_t i = 0; i < count; i++) {
                    values[i] = draw(FIELD_PRIME);
                    model_write(model[which], bit + i * bits, type, values[i]);
                }
                ck_assert(field_memory_write(&m[which], bit, type, count, values));
                break;
            case 2: {
                int64_t to = (int64_t)draw((uint64_t)((MODEL_BITS - count * bits) / unit)) * unit;
                ck_assert(field_memory_copy(&m[!which], to, &m[which], bit, count * bits));
                memcpy(model[!which] + to / FIELD_CELL_BITS, model[which] + bit / FIELD_CELL_BITS,
                       (size_t)(count * bits / FIELD_CELL_BITS) * sizeof(field_cell));
                break;
            }
            default:
                field_memory_read(&m[which], bit, type, 1, count, values, &u);
                for (int64_t i = 0; i < count; i++) {
                    field_value v, again;
                    if (model_whole(model[which], bit + i * bits, type, &v)) {
                        ck_assert_uint_eq(values[i], v);
                    } else { /* a function of the cells; with an unwritten one among them never the same */
                        field_memory_read(&m[which], bit + i * bits, type, 1, 1, &again, &u);
                        bool written = true;
                        for (int64_t c = 0; c < bits / FIELD_CELL_BITS; c++)
                            written = written && model[which][bit / FIELD_CELL_BITS + i * bits / FIELD_CELL_BITS + c].written;
                        ck_assert(written == (values[i] == again));
                    }
                }
            }
        }
        for (int i = 0; i < 2; i++) {
            field_memory_free(&m[i]);
            free(model[i]);
        }
    }
}
END_TEST

/* Pieces taken and given back in any order keep what was written into them. */
START_TEST(pieces_of_slabs_are_apart)
{
    enum { PIECES = 3000, ROUNDS = 40000 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    for (int round = 0; round < ROUNDS + PIECES; round++) {
        size_t i = round < ROUNDS ? (size_t)draw(PIECES) : (size_t)(round - ROUNDS); /* at last every piece that is left */
        if (pieces[i]) {
            for (size_t b = 0; b < sizes[i]; b++)
                if (pieces[i][b] != (unsigned char)i)
                    ck_abort_msg("byte %zu of piece %zu of %zu bytes", b, i, sizes[i]);
            slab_give(pieces[i]);
            pieces[i] = NULL;
        } else if (round < ROUNDS) {
            sizes[i] = (size_t)1 << (8 + draw(7)); /* of 8 KiB there are more than a slab holds */
            sizes[i] = draw(2) ? 8192 : sizes[i] + (size_t)draw(64);
            pieces[i] = slab_take(sizes[i]);
            ck_assert_ptr_nonnull(pieces[i]);
            memset(pieces[i], (unsigned char)i, sizes[i]);
        }
    }
    slab_give(NULL);
}
END_TEST

START_TEST(a_memory_keeps_to_its_budget)
{
    field_budget budget = {.limit_bytes = 10000};
    field_memory m;
    field_memory_init(&m, INT64_C(1) << 40, &budget);
    field_value v = 7;
    ck_assert(field_memory_write(&m, 0, DTYPE_F32, 1, &v));
    bool fits = true;
    for (int64_t i = 1; i < 100 && fits; i++)
        fits = field_memory_write(&m, i << 20, DTYPE_F32, 1, &v);
    ck_assert(!fits);
    field_memory_free(&m);
}
END_TEST

/* ---- walks ---- */

START_TEST(a_walk_backwards_is_the_last_position)
{
    for (int round = 0; round < suite_rounds(3000); round++) {
        walk w = {.count = (unsigned)draw(4) + 1, .base = (int64_t)draw(100)};
        int64_t positions = 1;
        for (unsigned i = 0; i < w.count; i++) {
            w.size[i] = (int64_t)draw(5) + 1;
            w.stride[i] = (int64_t)draw(21) - 8;
            positions *= w.size[i];
        }
        int64_t size = (int64_t)draw(4) + 1, limit = draw(3) ? -1 : (int64_t)draw((uint64_t)positions);
        for (int64_t at = -60; at < 260; at++) {
            int64_t last = -1;
            for (int64_t p = 0; p < positions; p++) {
                int64_t address = field_walk_address(&w, p);
                if (address <= at && at < address + size && (limit < 0 || p < limit))
                    last = p;
            }
            ck_assert_int_eq(field_walk_find(&w, at, size, limit), last);
        }
    }
}
END_TEST

static int64_t nth_of(const field_spans *l, int64_t n)
{
    size_t i = 0;
    for (; n >= l->items[i].count; i++)
        n -= l->items[i].count;
    return l->items[i].first == FIELD_ZEROS ? FIELD_ZEROS : l->items[i].first + n * l->items[i].apart;
}

START_TEST(a_list_of_runs_is_its_numbers)
{
    enum { MOST = 64 };
    for (int round = 0; round < suite_rounds(3000); round++) {
        field_spans l = {0};
        int64_t numbers[MOST], count = 0;
        while (count < MOST) {
            field_span s = {(int64_t)draw(6) - 1, (int64_t)draw(4), (int64_t)draw(3) + 1};
            for (int64_t i = 0; i < s.count && count < MOST; i++, count++)
                numbers[count] = s.first < 0 ? FIELD_ZEROS : s.first + i * s.apart;
            s.count = count < MOST ? s.count : 1;
            if (count < MOST)
                field_spans_add(&l, s);
        }
        int64_t listed = 0;
        for (size_t i = 0; i < l.count; i++)
            listed += l.items[i].count;
        for (int64_t i = 0; i < listed; i++)
            ck_assert_int_eq(nth_of(&l, i), numbers[i]);
        field_spans_free(&l);
    }
}
END_TEST

/* Of a walk whose strides mostly step over each other, and of one whose addresses meet. */
START_TEST(addresses_apart_are_followed_to_their_last_positions)
{
    for (int round = 0; round < suite_rounds(3000); round++) {
        walk w = {.count = (unsigned)draw(4) + 1, .base = (int64_t)draw(100)};
        int64_t positions = 1, reached = 1, size = (int64_t)draw(3) + 1, along, found = 0;
        unsigned first = (unsigned)draw(w.count);
        for (unsigned i = 0; i < w.count; i++) {
            unsigned at = (first + i) % w.count;
            w.size[at] = (int64_t)draw(4) + 1;
            w.stride[at] = draw(6) ? (reached + (int64_t)draw(2)) * (i ? 1 : size) : (int64_t)draw(5) - 1;
            reached += w.stride[at] * (w.size[at] - 1);
            positions *= w.size[at];
        }
        int64_t from = (int64_t)draw((uint64_t)positions), apart = (int64_t)draw(9) + 1, count = (int64_t)draw(12) + 1;
        int64_t address = field_walk_address(&w, from);
        from = field_walk_find(&w, address, size, -1); /* the last position is the one that is asked for */
        address = field_walk_address(&w, from);
        int64_t n = field_walk_follow(&w, from, size, apart, count, &along);
        ck_assert(n >= 1 && n <= count);
        for (int64_t i = 1; i < n; i++) {
            ck_assert_int_eq(field_walk_address(&w, from + i * along), address + i * apart);
            ck_assert_int_eq(field_walk_find(&w, address + i * apart, size, -1), from + i * along);
        }
        field_spans l = {0};
        from = field_walk_find(&w, address, 1, -1);
        found = field_walk_follow_all(&w, from, apart, count, &l);
        ck_assert(found >= 1 && found <= count);
        for (int64_t i = 0; i < found; i++)
            ck_assert_int_eq(field_walk_find(&w, address + i * apart, 1, -1), nth_of(&l, i));
        field_spans_free(&l);
        field_span asked = {(int64_t)draw((uint64_t)positions), (int64_t)draw(5), (int64_t)draw(6) + 1};
        asked.count = asked.first + asked.apart * (asked.count - 1) < positions ? asked.count : 1;
        n = field_walk_along(&w, asked, &along);
        ck_assert(n >= 1 && n <= asked.count);
        for (int64_t i = 0; i < n; i++)
            ck_assert_int_eq(field_walk_address(&w, asked.first + i * asked.apart), field_walk_address(&w, asked.first) + i * along);
    }
}
END_TEST

/* A stage whose elements are their own numbers. */
static void read_numbers(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    (void)r;
    for (int64_t i = 0; i < count; i++)
        out[i] = (field_value)(first + i);
}

/* A transpose whose elements may be asked for by list, and what they are asked of. */
typedef struct turned {
    field_stage numbers;
    stage_type types[2];
    transpose plan;
    stage stages[2];
    fault fault;
    field_machine machine;
    field_run run;
    field_stage_run runs[2];
} turned;

static void turned_draw(turned *t)
{
    static const int64_t sizes[] = {1, 2, 4, 8, 16, 32};
    *t = (turned){.numbers = {.read = read_numbers}};
    int64_t flit = sizes[3 + draw(3)];
    t->plan = (transpose){.bits = (unsigned)(256 / flit), .flit_bytes = 32, .packets_per_col = sizes[draw(3)]};
    t->plan.valid = flit / sizes[draw(3)];
    t->plan.in_rows = draw(2) ? flit : (int64_t)draw((uint64_t)flit) + 1;
    t->plan.out_rows = (int64_t)draw((uint64_t)(t->plan.valid * t->plan.packets_per_col)) + 1;
    t->plan.block_flits = t->plan.in_rows * t->plan.packets_per_col;
    t->types[0].field = &t->numbers;
    t->types[1] = stage_transpose;
    for (int i = 0; i < 2; i++)
        t->stages[i] = (stage){.type = &t->types[i], .plan = &t->plan};
    t->machine.trace = (struct field_trace *)t; /* there is one, which nobody looks into */
    t->run = (field_run){.machine = &t->machine, .fault = &t->fault};
    t->runs[0] = (field_stage_run){.stage = &t->stages[0], .run = &t->run};
    t->runs[1] = (field_stage_run){.stage = &t->stages[1], .run = &t->run, .before = &t->runs[0]};
}

START_TEST(a_transpose_by_list_is_one_by_one)
{
    enum { MOST = 64, BLOCKS = 5 };
    for (int round = 0; round < suite_rounds(3000); round++) {
        turned t;
        turned_draw(&t);
        const field_stage *type = t.runs[1].stage->type->field;
        int64_t flit = 256 / t.plan.bits, block = flit * t.plan.out_rows, all = BLOCKS * block, total = 0;
        const int64_t steps[] = {1, flit, block, flit * (int64_t)(draw(4) + 1), (int64_t)draw(40) + 1};
        field_span spans[3];
        for (int i = 0; i < 3; i++) {
            int64_t apart = steps[draw(5)], first = (int64_t)draw((uint64_t)(all / flit)) * flit + (int64_t)draw((uint64_t)t.plan.in_rows);
            int64_t count = (int64_t)draw(MOST) + 1;
            while (first + (count - 1) * apart >= all) /* the first is inside */
                count--;
            for (int64_t j = 0; j < count; j++) /* what lies after the rows is nobody's */
                if ((first + j * apart) % flit >= t.plan.in_rows)
                    count = j;
            spans[i] = (field_span){first, apart, count};
            total += count;
        }
        field_value listed[3 * MOST], alone[3 * MOST], *to = alone;
        type->read_spans(&t.runs[1], spans, 3, listed);
        for (int i = 0; i < 3; i++)
            for (int64_t j = 0; j < spans[i].count; j++)
                type->read(&t.runs[1], spans[i].first + j * spans[i].apart, 1, to++);
        for (int64_t i = 0; i < total; i++)
            ck_assert_msg(listed[i] == alone[i], "round %d: element %lld: %lld, not %lld", round, (long long)i, (long long)listed[i],
                          (long long)alone[i]);
    }
}
END_TEST

START_TEST(digests_are_those_of_the_standard)
{
    arena *a = arena_new();
    ck_assert_str_eq(sha256_text((const unsigned char *)"abc", 3, a), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_str_eq(sha256_text((const unsigned char *)"", 0, a), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    unsigned char long_text[119];
    memset(long_text, 'a', sizeof long_text);
    ck_assert_str_eq(sha256_text(long_text, 64, a), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    arena_free(a);
}
END_TEST

int main(void)
{
    TCase *tests = suite_case("field");
    suite_tests(tests, arithmetic_is_that_of_residues, products_are_the_same_every_way, words_that_are_mixed_together_are_those_mixed_alone,
                functions_know_what_order_means, memory_is_a_list_of_cells, copies_are_apart, pieces_of_slabs_are_apart,
                a_memory_keeps_to_its_budget, a_walk_backwards_is_the_last_position, a_list_of_runs_is_its_numbers,
                addresses_apart_are_followed_to_their_last_positions, a_transpose_by_list_is_one_by_one, digests_are_those_of_the_standard);
    return suite_status("field", tests);
}
