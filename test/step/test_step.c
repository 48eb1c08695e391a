/* Stream programs from the inside: laws of queues and of the memory, equal runs, and binaries that were tampered with. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/container.h"
#include "include/visa.h"
#include "ir/step/expr.h"
#include "ir/step/graph.h"
#include "runtime/step/engine.h"
#include "runtime/step/record.h"
#include "support/file.h"
#include "test/suite.h"

static arena *memory;

static void setup(void)
{
    memory = arena_new();
    ck_assert_ptr_nonnull(memory);
}

static void teardown(void)
{
    arena_free(memory);
}

#define GUARD(a) ck_assert_int_eq(setjmp(*arena_guard(a)), 0)

/* ---- queues ---- */

START_TEST(a_queue_has_room_one_cycle_behind_a_taking)
{
    GUARD(memory);
    step_queue q;
    step_queue_init(&q, 2, 0, 1, memory);
    for (int64_t i = 0; i < 2; i++) {
        ck_assert_int_eq(step_queue_room(&q), 0);
        step_queue_push(&q, step_token_of(NULL), i + 1, memory);
    }
    ck_assert(step_queue_room(&q) == INT64_MAX);
    step_queue_push(&q, step_stop_of(1), 2, memory); /* a stop takes no place */
    step_queue_pop(&q, 7);
    ck_assert_int_eq(step_queue_room(&q), 8);
    step_queue_push(&q, step_token_of(NULL), 9, memory);
    ck_assert(step_queue_room(&q) == INT64_MAX);
    ck_assert_int_eq(step_queue_head(&q)->visible, 2);
    ck_assert_int_eq(step_queue_second(&q)->token.kind, STEP_STOP);
    step_queue_free(&q);
}
END_TEST

START_TEST(a_queue_without_limit_keeps_the_order)
{
    GUARD(memory);
    step_queue q;
    step_queue_init(&q, 0, 0, 1, memory);
    int64_t sent = 0, taken = 0;
    for (int round = 1; round < 60; round++) {
        for (int i = 0; i < round; i++, sent++)
            step_queue_push(&q, step_stop_of((unsigned)(sent % 15 + 1)), sent, memory);
        for (int i = 0; i < round / 2; i++, taken++) {
            ck_assert_int_eq(step_queue_head(&q)->visible, taken);
            ck_assert_int_eq(step_queue_pop(&q, sent).level, taken % 15 + 1);
        }
    }
    step_queue_free(&q);
}
END_TEST

/* ---- memory ---- */

static step_machine machine(int64_t channels, int64_t group)
{
    step_machine m = STEP_MACHINE_DEFAULT;
    m.memory_channels = channels;
    m.requests_per_cycle = group;
    return m;
}

/* Tiles of these sizes, one after the other, by one reader. */
static int64_t reads(const int64_t *requests, int count, step_machine m)
{
    GUARD(memory);
    step_offchip *o = step_offchip_new(&m, 1, memory);
    int64_t now = 0, sum = 0;
    for (int i = 0; i < count; i++) {
        const step_answer *answers;
        step_offchip_ask(o, 0, false, requests[i], now);
        ck_assert_uint_eq(step_offchip_run(o, INT64_MAX, &answers), 1);
        now = answers[0].cycle;
        sum += requests[i];
    }
    ck_assert_int_eq(step_offchip_requests(o), sum);
    ck_assert(step_offchip_next(o) == INT64_MAX);
    step_offchip_free(o);
    return now;
}

START_TEST(one_reader_needs_n_plus_18_cycles)
{
    for (int64_t n = 1; n <= 300; n++)
        for (int64_t channels = 2; channels <= 64; channels *= 2)
            ck_assert_int_eq(reads(&n, 1, machine(channels, 1)), n + 18);
    int64_t n = 64;
    ck_assert_int_eq(reads(&n, 1, machine(1, 1)), 145);
    ck_assert_int_eq(reads((int64_t[]){5, 3, 9}, 3, machine(4, 2)), 64); /* reference/step.md's engine */
}
END_TEST

START_TEST(a_late_asker_is_served_from_the_cycle_that_comes_next)
{
    GUARD(memory);
    step_machine m = machine(32, 1);
    step_offchip *o = step_offchip_new(&m, 2, memory);
    const step_answer *answers;
    step_offchip_ask(o, 0, false, 100, 0);
    step_offchip_run(o, INT64_MAX, &answers);
    step_offchip_ask(o, 1, false, 1, 10); /* cycles up to 100 were simulated */
    ck_assert_uint_eq(step_offchip_run(o, INT64_MAX, &answers), 1);
    ck_assert_int_eq(answers[0].cycle, 101 + 18);
    step_offchip_ask(o, 0, false, 1, 1000000000);
    ck_assert_uint_eq(step_offchip_run(o, 1000000000, &answers), 0);
    step_offchip_run(o, INT64_MAX, &answers);
    ck_assert_int_eq(answers[0].cycle, 1000000019);
    step_offchip_free(o);
}
END_TEST

/* ---- whole programs ---- */

static const char *example(const char *name, arena *a)
{
    const char *source = getenv("VISA_SOURCE");
    return arena_printf(a, "%s/examples/step/%s.vm", source ? source : ".", name);
}

static unsigned char *compiled_text(const char *name, const char *text, size_t bytes, const visa_options *options, arena *a, size_t *size)
{
    visa_compilation *c = visa_compile(name, text, bytes, options);
    const unsigned char *data;
    ck_assert_msg(visa_emit(c, VISA_EMIT_BINARY, &data, size), "%s", visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT));
    unsigned char *copy = arena_alloc(a, *size);
    memcpy(copy, data, *size);
    visa_free(c);
    return copy;
}

static unsigned char *compiled(const char *name, const visa_parameter *defines, size_t count, arena *a, size_t *size)
{
    diag_list diags;
    diag_list_init(&diags, a);
    size_t bytes;
    unsigned char *text = file_read_all(example(name, a), &bytes, &diags);
    ck_assert_ptr_nonnull(text);
    unsigned char *made =
        compiled_text(name, (const char *)text, bytes, &(visa_options){.parameters = defines, .parameter_count = count}, a, size);
    free(text);
    return made;
}

/* Without values and with empty streams. False: refused, faulty or past the limit. */
static bool run_timed(const step_program *p, int64_t limit, arena *a, diag_list *diags, step_run *r)
{
    *r = (step_run){.program = p, .arena = a, .pool = step_pool_new(a, false), .limit = limit};
    r->stores = ARENA_ARRAY(a, step_store, p->tensor_count + 1);
    r->feeds = ARENA_ARRAY(a, step_feed, p->node_count + 1);
    bool good = step_engine_run(r, diags);
    step_pool_free(r->pool);
    return good;
}

#define SET(name, number) \
    { \
        name, (const int64_t[]){number}, 1 \
    }
static const visa_parameter small_layer[] = {SET("B", 32), SET("D", 64), SET("F", 128)};
static const visa_parameter small_experts[] = {SET("B", 16),  SET("E", 4),   SET("K", 1), SET("D", 64),
                                               SET("F", 128), SET("FT", 64), SET("T", 2)};
static const visa_parameter small_regions[] = {SET("B", 16),  SET("E", 4),   SET("K", 1), SET("D", 64),
                                               SET("F", 128), SET("FT", 64), SET("T", 2), SET("R", 2)};
static const struct {
    const char *name;
    const visa_parameter *parameters;
    size_t count;
} samples[] = {
    {"swiglu", small_layer, 3}, {"moe_mixtral", small_experts, 7}, {"moe_time_multiplexed", small_regions, 8}, {"attention", NULL, 0}};

START_TEST(equal_programs_run_alike)
{
    GUARD(memory);
    size_t size;
    unsigned char *bytes = compiled("swiglu", NULL, 0, memory, &size);
    int64_t cycles[2];
    const step_totals *totals[2];
    binary b;
    diag_list diags;
    diag_list_init(&diags, memory);
    ck_assert(binary_read(bytes, size, memory, &diags, &b));
    ck_assert_uint_eq(b.program_count, 1);
    for (int i = 0; i < 2; i++) {
        step_run r;
        ck_assert(run_timed(&b.programs[0], 0, memory, &diags, &r));
        cycles[i] = r.cycles;
        totals[i] = r.totals;
    }
    ck_assert_int_eq(cycles[0], 29398); /* the published 29400 less the reference engine's 2 cycles of shutdown */
    ck_assert_int_eq(cycles[0], cycles[1]);
    ck_assert_int_eq(memcmp(totals[0], totals[1], b.programs[0].node_count * sizeof *totals[0]), 0);
}
END_TEST

static uint64_t next_random(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33;
}

/* One changed word or byte: refused, or run to some end. */
static bool try_changed(const unsigned char *bytes, size_t size, uint64_t *seed)
{
    arena *a = arena_new();
    ck_assert_ptr_nonnull(a);
    unsigned char *copy = malloc(size);
    memcpy(copy, bytes, size);
    static const uint64_t words[] = {0, 1, 2, 3, 255, 1 << 20, UINT64_C(1) << 31, UINT64_C(1) << 50, UINT64_C(1) << 62, UINT64_MAX};
    size_t at = next_random(seed) % (size / 8) * 8;
    uint64_t word = words[next_random(seed) % (sizeof words / sizeof *words)];
    if (next_random(seed) % 2)
        copy[at + next_random(seed) % 8] ^= (unsigned char)(1u << next_random(seed) % 8);
    else
        memcpy(copy + at, &word, sizeof word);
    volatile bool loaded = false;
    if (setjmp(*arena_guard(a)) == 0) {
        diag_list diags;
        binary b;
        step_run r;
        diag_list_init(&diags, a);
        loaded = binary_read(copy, size, a, &diags, &b);
        for (size_t i = 0; loaded && i < b.program_count; i++)
            if (!run_timed(&b.programs[i], 1 << 12, a, &diags, &r))
                ck_assert_uint_gt(diags.error_count, 0);
        ck_assert(loaded || diags.error_count > 0);
    }
    free(copy);
    arena_free(a);
    return loaded;
}

START_TEST(a_changed_binary_is_refused_or_runs)
{
    GUARD(memory);
    size_t size;
    unsigned char *bytes = compiled(samples[_i].name, samples[_i].parameters, samples[_i].count, memory, &size);
    uint64_t seed = (uint64_t)_i + 1;
    int rounds = suite_rounds(1500), loaded = 0;
    for (int i = 0; i < rounds; i++)
        loaded += try_changed(bytes, size, &seed);
    ck_assert_int_gt(loaded, 0);
    ck_assert_int_lt(loaded, rounds);
}
END_TEST

/* What the reader says of the program with these nodes; "" where it takes them. */
static const char *refusal_of(step_program p, const step_node *nodes, arena *a)
{
    uint64_t *words;
    size_t count;
    step_program read;
    diag_list diags;
    diag_list_init(&diags, a);
    p.nodes = nodes;
    ck_assert(step_program_encode(&p, a, &words, &count));
    step_program_decode(words, count, "s", a, &diags, &read);
    return diags.count > 0 ? diags.items[0]->message : "";
}

/* The halves of a pair are two operands where it comes alone; with another stream it is one, and no tile. */
START_TEST(a_pair_is_two_operands_where_it_is_alone)
{
    static const char text[] = "#[stream]\n"
                               "fn p(x: Stream<Tile<f32, 2, 4>, {[3]}>, y: Stream<Tile<f32, 2, 4>, {[3]}>) { x.zip(y).map(add) }\n";
    GUARD(memory);
    size_t size;
    unsigned char *bytes = compiled_text("pair.vm", text, sizeof text - 1, &(visa_options){0}, memory, &size);
    binary b;
    diag_list diags;
    diag_list_init(&diags, memory);
    ck_assert(binary_read(bytes, size, memory, &diags, &b));
    const step_program *p = &b.programs[0];
    step_node *nodes = ARENA_ARRAY(memory, step_node, p->node_count);
    memcpy(nodes, p->nodes, p->node_count * sizeof *nodes);
    ck_assert_str_eq(refusal_of(*p, nodes, memory), "");
    uint32_t map = 0;
    while (map < p->node_count && nodes[map].op != STEP_MAP)
        map++;
    ck_assert_uint_lt(map, p->node_count);
    nodes[map].inputs = (const step_input[]){nodes[map].inputs[0], nodes[map].inputs[0]};
    nodes[map].input_count = 2;
    ck_assert_msg(strstr(refusal_of(*p, nodes, memory), "its function takes tiles"), "%s", refusal_of(*p, nodes, memory));
}
END_TEST

/* ---- numbers of operators, at the edges of their rows ---- */

/* Does the compiler take a node with this number? What else is wrong with it is reported after that. */
static bool graph_takes(const step_param_row *row, int64_t value, arena *a)
{
    diag_list diags;
    diag_list_init(&diags, a);
    step_graph g = {.name = "g", .arena = a, .diags = &diags, .exprs = step_exprs_new(a), .machine = STEP_MACHINE_DEFAULT};
    static const step_kernel kernel = {
        .name = "k", .input_count = 1, .output_count = 1, .inputs = {{.rows = 1, .columns = 1}}, .outputs = {{.rows = 1, .columns = 1}}};
    static const int64_t one[] = {1};
    const step_expr *unit = step_expr_number(g.exprs, 1), *dims[] = {unit, unit};
    step_data tile = {.kind = STEP_TILE, .rows = unit, .columns = unit};
    step_graph_node source = {.name = "source"};
    step_stream stream = {.node = &source, .data = &tile, .rank = 1, .dims = dims};
    const step_stream *inputs[] = {&stream, &stream, &stream};
    step_graph_tensor tensor = {.name = "t", .rows = 1, .columns = 1, .dim_count = 1, .shape = one};
    int least = step_op_row_of(row->op)->least_inputs;
    step_spec spec = {.op = row->op,
                      .fn = row->fn,
                      .kernel = &kernel,
                      .inputs = inputs,
                      .input_count = (uint32_t)least,
                      .output_count = 1,
                      .tensor = &tensor};
    source.outputs = &stream;
    source.output_count = 1;
    for (size_t i = 0; step_param_row_at(i); i++)
        if (step_param_row_is_of(step_param_row_at(i), row->op, row->fn))
            spec.param[step_param_row_at(i)->slot] = step_param_row_at(i)->minimum;
    spec.param[row->slot] = value;
    step_graph_add(&g, &spec);
    const char *refusal =
        arena_printf(a, "`%s` of %s is %lld %s; it has to be", row->name, step_op_row_of(row->op)->name, (long long)value, row->unit);
    for (size_t i = 0; i < diags.count; i++)
        if (diags.items[i]->id == E_STEP_NUMBER && strstr(diags.items[i]->message, refusal))
            return false;
    return true;
}

/* Does the reader of binaries? */
static bool reader_takes(const step_param_row *row, int64_t value, arena *a)
{
    const step_op_row *op = step_op_row_of(row->op);
    step_type type = {.kind = STEP_BOOL};
    step_tensor tensor = {.name = "t", .rows = 1, .columns = 1, .dim_count = 1, .shape = (const int64_t[]){1}};
    step_output output = {.shape = "[1]"};
    step_input inputs[4] = {{0}};
    step_node node = {.op = row->op,
                      .fn = row->fn,
                      .name = "n",
                      .input_count = op->least_inputs < 0 ? 1 : (uint32_t)op->least_inputs,
                      .output_count = op->outputs < 0 ? 1 : (uint32_t)op->outputs,
                      .inputs = inputs,
                      .outputs = (const step_output[]){output, output},
                      .kernel = row->fn == STEP_FN_KERNEL ? "k" : NULL};
    ck_assert_uint_le(node.input_count, 4);
    ck_assert_uint_le(node.output_count, 2);
    for (size_t i = 0; step_param_row_at(i); i++)
        if (step_param_row_is_of(step_param_row_at(i), row->op, row->fn))
            node.param[step_param_row_at(i)->slot] = step_param_row_at(i)->minimum;
    node.param[row->slot] = value;
    step_program p = {.name = "p",
                      .machine = STEP_MACHINE_DEFAULT,
                      .types = &type,
                      .type_count = 1,
                      .tensors = &tensor,
                      .tensor_count = 1,
                      .nodes = &node,
                      .node_count = 1},
                 read;
    uint64_t *words;
    size_t count;
    diag_list diags;
    diag_list_init(&diags, a);
    ck_assert(step_program_encode(&p, a, &words, &count));
    step_program_decode(words, count, "s", a, &diags, &read);
    const char *refusal = arena_printf(a, "`%s` of node `n` is %lld, outside", row->name, (long long)value);
    for (size_t i = 0; i < diags.count; i++) {
        ck_assert_msg(!strstr(diags.items[i]->message, "unknown head") && !strstr(diags.items[i]->message, " inputs and "), "%s",
                      diags.items[i]->message);
        if (strstr(diags.items[i]->message, refusal))
            return false;
    }
    return true;
}

START_TEST(numbers_are_taken_to_the_edges_of_their_rows)
{
    GUARD(memory);
    static bool (*const takers[])(const step_param_row *, int64_t, arena *) = {graph_takes, reader_takes};
    size_t rows = 0;
    for (const step_param_row *row; (row = step_param_row_at(rows)); rows++)
        for (int i = 0; i < 2; i++) {
            ck_assert_msg(takers[i](row, row->minimum, memory), "%d: `%s` of %s, least", i, row->name, step_op_row_of(row->op)->name);
            ck_assert_msg(takers[i](row, row->maximum, memory), "%d: `%s` of %s, most", i, row->name, step_op_row_of(row->op)->name);
            ck_assert_msg(row->minimum == INT64_MIN || !takers[i](row, row->minimum - 1, memory), "%d: `%s` of %s, below", i, row->name,
                          step_op_row_of(row->op)->name);
            ck_assert_msg(row->maximum == INT64_MAX || !takers[i](row, row->maximum + 1, memory), "%d: `%s` of %s, above", i, row->name,
                          step_op_row_of(row->op)->name);
        }
    ck_assert_uint_gt(rows, 20);
}
END_TEST

/* ---- sizes ---- */

START_TEST(equal_sizes_are_one_expression)
{
    GUARD(memory);
    step_exprs *x = step_exprs_new(memory);
    const step_expr *b = step_expr_symbol(x, "B", false), *c = step_expr_symbol(x, "C", false), *two = step_expr_number(x, 2);
    ck_assert_ptr_eq(step_expr_add(x, b, c), step_expr_add(x, c, b));
    ck_assert_ptr_eq(step_expr_multiply(x, two, step_expr_add(x, b, c)),
                     step_expr_add(x, step_expr_multiply(x, b, two), step_expr_multiply(x, two, c)));
    ck_assert_ptr_eq(step_expr_add(x, b, b), step_expr_multiply(x, b, two));
    ck_assert_ptr_eq(step_expr_ceil_divide(x, step_expr_multiply(x, two, b), 2), b);
    ck_assert_ptr_ne(step_expr_ceil_divide(x, b, 2), b);
}
END_TEST

/* A flag is a product of present(..) and absent(..) once, nothing else; 0 and 1 are none. */
START_TEST(flags_are_told_from_other_sizes)
{
    GUARD(memory);
    step_exprs *x = step_exprs_new(memory);
    const step_expr *b = step_expr_symbol(x, "B", false), *c = step_expr_symbol(x, "C", true), *two = step_expr_number(x, 2);
    const step_expr *there = step_expr_present(x, b), *bare = step_expr_absent(x, c), *both = step_expr_multiply(x, there, bare);
    const step_expr *const flags[] = {there, bare, both}, *const others[] = {step_expr_number(x, 0),
                                                                             step_expr_number(x, 1),
                                                                             two,
                                                                             b,
                                                                             step_expr_multiply(x, b, there),
                                                                             step_expr_multiply(x, two, there),
                                                                             step_expr_add(x, there, bare),
                                                                             step_expr_add(x, there, step_expr_number(x, 1))};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        ck_assert_msg(step_expr_is_flag(flags[i]), "%s", step_expr_text(flags[i], memory));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!step_expr_is_flag(others[i]), "%s", step_expr_text(others[i], memory));
}
END_TEST

/* ---- where the time went ---- */

/* Cycles of each state and values in a queue, cycle by cycle, against a record whose buckets have grown several times. */
START_TEST(a_record_counts_each_cycle_once)
{
    enum { NODES = 9000, CYCLES = 1000, STEP = 7 }; /* so many nodes that there are 64 buckets */
    GUARD(memory);
    step_record *r = step_record_new(NODES, 1, memory);
    int state[CYCLES], held[CYCLES], now = 0;
    for (int c = 0; c < CYCLES; c++) {
        state[c] = c / STEP % (STEP_STATES + 1); /* the last one: nothing */
        if (c % STEP == 0 && state[c] < STEP_STATES)
            step_record_node(r, 1, (step_state)state[c], c, c + STEP < CYCLES ? c + STEP : CYCLES);
        int change = c % 13 == 0 ? 1 : c % 29 == 0 && now > 0 ? -1 : 0;
        if (change != 0)
            step_record_queue(r, 0, c, change);
        now += change;
        held[c] = now;
    }
    int64_t width = step_record_width(r), before = 0;
    ck_assert_int_eq(width, 16);
    ck_assert_uint_eq(step_record_buckets(r), (CYCLES + 15) / 16);
    for (uint32_t b = 0; b < step_record_buckets(r); b++) {
        int64_t cycles[STEP_STATES + 1] = {0}, values = 0;
        for (int64_t c = b * width; c < (b + 1) * width; c++) {
            cycles[c < CYCLES ? state[c] : STEP_STATES]++;
            values += held[c < CYCLES ? c : CYCLES - 1];
        }
        int most = STEP_BUSY;
        for (int k = 0; k < STEP_STATES; k++) {
            ck_assert_int_eq(step_record_cycles(r, 1, (step_state)k, b), cycles[k]);
            ck_assert_int_eq(step_record_cycles(r, 0, (step_state)k, b), 0);
            most = cycles[k] > cycles[most] ? k : most;
        }
        most = cycles[STEP_STATES] > cycles[most] ? STEP_STATES : most;
        ck_assert_int_eq(step_record_state(r, 1, b), most);
        double fill = step_record_fill(r, 0, b, &before);
        ck_assert_msg(fill * (double)width == (double)values, "bucket %u holds %g values, not %g", b, fill, (double)values / 16);
    }
}
END_TEST

int main(void)
{
    TCase *t = suite_case_with("step", setup, teardown);
    suite_tests(t, a_queue_has_room_one_cycle_behind_a_taking, a_queue_without_limit_keeps_the_order, one_reader_needs_n_plus_18_cycles,
                a_late_asker_is_served_from_the_cycle_that_comes_next, equal_programs_run_alike);
    tcase_add_loop_test(t, a_changed_binary_is_refused_or_runs, 0, 4);
    suite_tests(t, numbers_are_taken_to_the_edges_of_their_rows, equal_sizes_are_one_expression, flags_are_told_from_other_sizes,
                a_pair_is_two_operands_where_it_is_alone, a_record_counts_each_cycle_once);
    return suite_status("step", t);
}
