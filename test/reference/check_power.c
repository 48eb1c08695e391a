/* What does a check notice?
 *
 *     check_power               the small form, for the suite: asserts what is certain
 *     check_power PAGE          compares the tables of docs/numerics.md with measured ones; check_power
 * --update PAGE writes them
 *
 * The one idea: real kernels run on the machine, then their outputs, or the inputs of the machine alone, are
 * changed in ways that bugs have, and it is counted how often each order of the reference notices. What
 * changes no bit of an output is not counted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/container.h"
#include "include/visa.h"
#include "runtime/machine/session.h"
#include "runtime/tensor/compare.h"
#include "runtime/tensor/expected.h"
#include "runtime/tensor/judge.h"
#include "runtime/tensor/numeric.h"
#include "support/strbuf.h"
#include "test/page_block.h"

enum { ROWS = 32, COLUMNS = 8, OUTPUTS = ROWS * COLUMNS, FLITS_BYTES = 64, TRF_BYTES = 1 << 16, MOST_ROWS = 512 };
enum { HARDWARE, FREE, ORDERS };

typedef enum change { ULP_1, ULP_10, ULP_100, PER_MILLE, DROPPED, SWAPPED_TERMS, SWAPPED_OUTPUTS, CHANGES } change;
/* Of one value, of all. */
enum { ONE, ALL, EXTENTS };

typedef struct share {
    int changed, noticed;
} share;

typedef struct row {
    dtype operand, result;
    int64_t terms;
    share shares[ORDERS][CHANGES][EXTENTS];
} row;

typedef struct experiment {
    arena *arena;
    session *session;
    expected *expected[ORDERS];
    tensor *a, *b, *out;
    unsigned char good[OUTPUTS * 4];
    uint64_t state; /* of random numbers */
    row *row;
} experiment;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "check_power: %s: %s\n", what, why);
    exit(1);
}

static int64_t below(experiment *x, int64_t limit)
{
    x->state = x->state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((x->state >> 33) % (uint64_t)limit);
}

/* ---- kernels ---- */

/* out[M, N] = sum over K of a[M, K] b[N, K], 4 rows of a and as many of b in a slice as its TRF holds. */
static const char *source_text(const row *r, arena *a)
{
    const dtype_row *operand = dtype_row_of(r->operand), *result = dtype_row_of(r->result);
    int64_t lanes = FLITS_BYTES * 8 / operand->bits, places = r->terms > lanes ? r->terms : lanes, held = COLUMNS;
    while (held * places * operand->bits / 8 > TRF_BYTES)
        held /= 2;
    const char *t = operand->name, *padded = places == r->terms ? "K" : arena_printf(a, "K # %lld", (long long)places);
    const char *whole = places == r->terms ? "K" : arena_printf(a, "[%s]", padded);
    const char *columns = arena_printf(a, "N %% %lld%s", (long long)held, held < COLUMNS ? " # 8" : "");
    int64_t beat = 8 * 8 / result->bits, stored = held > beat ? held : beat;
    const char *cast = "";
    if (r->result != operand->accumulates_in)
        cast = arena_printf(a, ".cast::<%s, m![N %% %lld # %d]>()", result->name, (long long)held, 32 * 8 / result->bits);
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s,
                  "axes![M = 32, N = 8, K = %lld];\n"
                  "type Chip = m![1];\n"
                  "type Cluster = m![1 # 2];\n"
                  "type Slice = m![M / 4, N / %lld # 32];\n",
                  (long long)r->terms, (long long)held);
    strbuf_printf(&s,
                  "#[device(chip = 1)]\n"
                  "fn matmul(ctx: &mut Context, a: &HbmTensor<%s, Chip, m![M, %s]>, b: &HbmTensor<%s, Chip, "
                  "m![N, %s]>) -> HbmTensor<%s, Chip, m![M, N]> {\n",
                  t, padded, t, padded, result->name);
    strbuf_printf(&s, "let a: DmTensor<%s, Chip, Cluster, Slice, m![M %% 4, %s]> = a.to_dm(&mut ctx.tdma, 0);\n", t, padded);
    strbuf_printf(&s, "let b: DmTensor<%s, Chip, Cluster, Slice, m![N %% %lld, %s]> = b.to_dm(&mut ctx.tdma, 1 << 18);\n", t,
                  (long long)held, padded);
    strbuf_printf(&s,
                  "let weights: TrfTensor<%s, Chip, Cluster, Slice, m![N %% %lld], m![%s]> = ctx.sub.begin(b.view())"
                  ".fetch::<%s, m![N %% %lld], m![%s]>().collect().to_trf(TrfAddress::Full);\n",
                  t, (long long)held, padded, t, (long long)held, padded);
    strbuf_printf(&s,
                  "let c: DmTensor<%s, Chip, Cluster, Slice, m![M %% 4, N %% %lld # %lld]> = "
                  "ctx.main.begin(a.view()).fetch::<%s, m![M %% 4], m![%s]>().collect()\n",
                  result->name, (long long)held, (long long)stored, t, padded);
    strbuf_printf(&s, ".align::<m![M %% 4, %s / %lld], m![%s %% %lld], _, _>(&weights).contract::<m![1]>()\n", whole, (long long)lanes,
                  whole, (long long)lanes);
    strbuf_printf(&s, ".accumulate::<m![M %% 4], m![%s]>(AccumulationKind::Interleaved)%s.commit(3 << 17);\n", columns, cast);
    strbuf_puts(&s, "c.to_hbm(&mut ctx.tdma, 1 << 28)\n}\n");
    return s.text;
}

static void explain(const char *what, const diag_list *diags)
{
    die(what, diags->count ? diags->items[0]->message : "no reason was given");
}

static void open_kernel(experiment *x, visa_compilation **c, binary *b, diag_list *diags)
{
    const unsigned char *bytes;
    size_t size;
    const char *text = source_text(x->row, x->arena);
    *c = visa_compile("power.vm", text, strlen(text), NULL);
    if (!*c || !visa_emit(*c, VISA_EMIT_BINARY, &bytes, &size))
        die(text, *c ? visa_diagnostics(*c, VISA_DIAGNOSTICS_TEXT) : "no memory");
    if (!binary_read(bytes, size, x->arena, diags, b))
        explain("a binary", diags);
    x->session = session_open(b, NULL, x->arena, diags);
    x->a = x->session ? session_logical(x->session, 0, diags) : NULL;
    x->b = x->session ? session_logical(x->session, 1, diags) : NULL;
    const bool is_input[] = {true, true, false};
    for (int order = 0; order < ORDERS; order++)
        x->expected[order] = expected_open(&b->kernels[0].einsum, is_input, "power", order == HARDWARE, x->arena, diags);
    if (!x->a || !x->b || !x->expected[HARDWARE] || !x->expected[FREE])
        explain("a session", diags);
}

static void run_machine(experiment *x, diag_list *diags)
{
    if (!session_run(x->session, false, diags))
        explain("a run", diags);
    x->out = session_logical(x->session, 2, diags);
}

/* ---- verdicts ---- */

static bool is_noticed(const experiment *x, int order)
{
    expected_tensor e = expected_of(x->expected[order], 2);
    compare_result r;
    compare_elements(&x->out->type, e.values, x->out->bytes, e.bounds, NULL, 1, &r);
    if (r.mismatches || !e.sums)
        return r.mismatches > 0;
    if (e.roundings != 2.0 * (double)(x->row->terms - 1))
        die("an output", "another number of roundings");
    judge_verdict v;
    judge_case c = {&x->out->type, x->out->bytes, e.sums, e.sum_bounds, NULL, e.roundings, JUDGE_FALSE_ALARM};
    if (!judge_output(&c, &v))
        die("a verdict", "no memory");
    return v.worst > 1;
}

static void count_trial(experiment *x, change c, int extent)
{
    if (memcmp(x->good, x->out->bytes, x->out->size) == 0)
        return;
    for (int order = 0; order < ORDERS; order++) {
        x->row->shares[order][c][extent].changed++;
        x->row->shares[order][c][extent].noticed += is_noticed(x, order);
    }
}

/* ---- changes of outputs ---- */

/* So many values of the type further from zero; an integer's last place is 1. */
static void move_value(experiment *x, int64_t element, int places)
{
    dtype t = x->row->result;
    if (dtype_row_of(t)->kind == DTYPE_KIND_INT) {
        numeric_from_double(t, x->out->bytes, element, numeric_to_double(t, x->out->bytes, element) + places);
        return;
    }
    unsigned bytes = dtype_row_of(t)->bits / 8;
    uint32_t code = 0;
    memcpy(&code, x->out->bytes + element * bytes, bytes);
    code += (uint32_t)places;
    memcpy(x->out->bytes + element * bytes, &code, bytes);
}

/* 1.001 times the sum, after its cast; where that is the same value, nothing. */
static void scale_value(experiment *x, int64_t element)
{
    dtype t = x->row->result;
    const float *sums = expected_of(x->expected[FREE], 2).sums;
    double sum = sums ? sums[element] : numeric_to_double(t, x->out->bytes, element);
    unsigned char was[4] = {0}, is[4] = {0};
    numeric_from_double(t, was, 0, sum);
    numeric_from_double(t, is, 0, sum * 1.001);
    if (memcmp(was, is, sizeof was) != 0)
        memcpy(x->out->bytes + element * dtype_row_of(t)->bits / 8, is, dtype_row_of(t)->bits / 8);
}

static void change_value(experiment *x, change c, int64_t element)
{
    static const int places[] = {[ULP_1] = 1, [ULP_10] = 10, [ULP_100] = 100};
    if (c == PER_MILLE)
        scale_value(x, element);
    else
        move_value(x, element, places[c]);
}

static void swap_outputs(experiment *x)
{
    size_t bytes = dtype_row_of(x->row->result)->bits / 8;
    unsigned char kept[4], *one = x->out->bytes + (size_t)below(x, OUTPUTS) * bytes,
                           *other = x->out->bytes + (size_t)below(x, OUTPUTS) * bytes;
    memcpy(kept, one, bytes);
    memcpy(one, other, bytes);
    memcpy(other, kept, bytes);
}

static void change_outputs(experiment *x, int trials)
{
    for (change c = ULP_1; c <= PER_MILLE; c++) {
        for (int i = 0; i < trials; i++) {
            change_value(x, c, below(x, OUTPUTS));
            count_trial(x, c, ONE);
            memcpy(x->out->bytes, x->good, x->out->size);
        }
        for (int64_t i = 0; i < OUTPUTS; i++)
            change_value(x, c, i);
        count_trial(x, c, ALL);
        memcpy(x->out->bytes, x->good, x->out->size);
    }
    for (int i = 0; i < trials; i++) {
        swap_outputs(x);
        count_trial(x, SWAPPED_OUTPUTS, ONE);
        memcpy(x->out->bytes, x->good, x->out->size);
    }
}

/* ---- changes of what the machine alone is given ---- */

static void swap_terms(experiment *x)
{
    dtype t = x->row->operand;
    int64_t one = below(x, ROWS) * x->row->terms + below(x, x->row->terms),
            other = below(x, ROWS) * x->row->terms + below(x, x->row->terms);
    double first = numeric_to_double(t, x->a->bytes, one), second = numeric_to_double(t, x->a->bytes, other);
    numeric_from_double(t, x->a->bytes, one, second);
    numeric_from_double(t, x->a->bytes, other, first);
}

/* Of every sum: the same one. */
static void drop_term(experiment *x)
{
    int64_t term = below(x, x->row->terms);
    for (int64_t m = 0; m < ROWS; m++)
        numeric_from_double(x->row->operand, x->a->bytes, m * x->row->terms + term, 0);
}

static void change_inputs(experiment *x, int trials, diag_list *diags)
{
    unsigned char *kept = malloc(x->a->size);
    if (!kept)
        die("inputs", "no memory");
    memcpy(kept, x->a->bytes, x->a->size);
    for (int i = 0; i < 2 * trials; i++) {
        change c = i < trials ? DROPPED : SWAPPED_TERMS;
        (c == DROPPED ? drop_term : swap_terms)(x);
        run_machine(x, diags);
        count_trial(x, c, c == DROPPED ? ALL : ONE);
        memcpy(x->a->bytes, kept, x->a->size);
    }
    free(kept);
}

static void measure_row(row *r, int seeds, int trials)
{
    experiment x = {.arena = arena_new(), .row = r, .state = 1};
    if (!x.arena || setjmp(*arena_guard(x.arena)))
        die("a row", "no memory");
    visa_compilation *c;
    binary b;
    diag_list diags;
    diag_list_init(&diags, x.arena);
    open_kernel(&x, &c, &b, &diags);
    for (int seed = 1; seed <= seeds; seed++) {
        tensor_fill_random(x.a, (uint64_t)(2 * seed), 1);
        tensor_fill_random(x.b, (uint64_t)(2 * seed + 1), 1);
        run_machine(&x, &diags);
        memcpy(x.good, x.out->bytes, x.out->size);
        unsigned char *inputs[] = {x.a->bytes, x.b->bytes, NULL};
        for (int order = 0; order < ORDERS; order++)
            if (!expected_run(x.expected[order], inputs, 1, &diags) || is_noticed(&x, order))
                die(source_text(r, x.arena), order == FREE ? "free order speaks against a run without a change"
                                                           : "the machine's order speaks against a run without a change");
        change_outputs(&x, trials);
        change_inputs(&x, trials, &diags);
    }
    for (int order = 0; order < ORDERS; order++)
        expected_close(x.expected[order]);
    session_close(x.session);
    visa_free(c);
    arena_free(x.arena);
}

static size_t measure(const int64_t *terms, size_t count, int seeds, int trials, row *rows)
{
    size_t rows_made = 0;
    for (int t = 0; t < DTYPE_COUNT; t++)
        for (int cast = 0; cast < 2 && dtype_is_operand((dtype)t) && !dtype_is_staging((dtype)t); cast++)
            for (size_t i = 0; i < count; i++) {
                bool is_float = dtype_row_of((dtype)t)->kind == DTYPE_KIND_FLOAT;
                dtype result = !cast ? dtype_row_of((dtype)t)->accumulates_in : is_float ? DTYPE_BF16 : DTYPE_I8;
                rows[rows_made] = (row){.operand = (dtype)t, .result = result, .terms = terms[i]};
                measure_row(&rows[rows_made++], seeds, trials);
            }
    return rows_made;
}

/* ---- tables ---- */

static const bool has_extent[CHANGES][EXTENTS] = {
    [ULP_1] = {true, true},    [ULP_10] = {true, true},         [ULP_100] = {true, true},         [PER_MILLE] = {true, true},
    [DROPPED] = {false, true}, [SWAPPED_TERMS] = {true, false}, [SWAPPED_OUTPUTS] = {true, false}};

static void put_share(strbuf *s, share h)
{
    if (h.changed == 0)
        strbuf_puts(s, "=");
    else
        strbuf_printf(s, "%d", (int)lround(100.0 * h.noticed / h.changed));
}

static const char *cells_text(const row *r, int order, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    for (int c = 0; c < CHANGES; c++) {
        strbuf_puts(&s, c ? " | " : "");
        for (int extent = 0; extent < EXTENTS; extent++) {
            if (extent == ALL && has_extent[c][ONE] && has_extent[c][ALL])
                strbuf_puts(&s, ", ");
            if (has_extent[c][extent])
                put_share(&s, r->shares[order][c][extent]);
        }
    }
    return s.text;
}

/* Rows of one kernel that differ only in K, and not in what is noticed, are one. */
static void put_table(strbuf *s, const row *rows, size_t count, int order)
{
    strbuf_printf(s, "\nShare of the changes that %s notices, in %%:\n\n", order == HARDWARE ? "the machine's order" : "free order");
    strbuf_puts(s, "| operands | result | K | 1 ulp: one value, all | 10 ulp | 100 ulp | 0.1 % | a dropped "
                   "term | swapped terms | swapped outputs |\n");
    strbuf_puts(s, "|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0, next; i < count; i = next) {
        const row *r = &rows[i];
        const char *cells = cells_text(r, order, s->arena);
        strbuf_printf(s, "| %s | %s | %lld", dtype_row_of(r->operand)->name, dtype_row_of(r->result)->name, (long long)r->terms);
        for (next = i + 1; next < count && rows[next].operand == r->operand && rows[next].result == r->result &&
                           strcmp(cells_text(&rows[next], order, s->arena), cells) == 0;
             next++)
            strbuf_printf(s, ", %lld", (long long)rows[next].terms);
        strbuf_printf(s, " | %s |\n", cells);
    }
}

static void put_tables(strbuf *s)
{
    static const int64_t terms[] = {32, 512, 4096, 16384};
    static row rows[MOST_ROWS];
    size_t count = measure(terms, sizeof terms / sizeof *terms, 5, 8, rows);
    for (int order = 0; order < ORDERS; order++)
        put_table(s, rows, count, order);
    strbuf_puts(s, "\n");
}

/* ---- the small form ---- */

static bool all_noticed(const row *r, int order, change c, int extent)
{
    share h = r->shares[order][c][extent];
    if (h.noticed == h.changed)
        return true;
    fprintf(stderr, "check_power: %s, K = %lld, %s: %s order noticed %d of %d changes of kind %d\n", dtype_row_of(r->operand)->name,
            (long long)r->terms, dtype_row_of(r->result)->name, order == FREE ? "free" : "the machine's", h.noticed, h.changed, (int)c);
    return false;
}

/* The machine's order notices whatever changes a bit, and so does free order for integers. What bugs do, free
 * order notices in sums that are not cast. */
static bool has_power(const row *r)
{
    static const change bugs[] = {DROPPED, SWAPPED_TERMS, SWAPPED_OUTPUTS};
    bool power = true, integer = dtype_row_of(r->result)->kind == DTYPE_KIND_INT;
    for (int c = 0; c < CHANGES; c++)
        for (int extent = 0; extent < EXTENTS; extent++) {
            power = all_noticed(r, HARDWARE, (change)c, extent) && power;
            power = (!integer || all_noticed(r, FREE, (change)c, extent)) && power;
        }
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        int extent = bugs[i] == DROPPED ? ALL : ONE;
        power = (r->result != DTYPE_F32 || all_noticed(r, FREE, bugs[i], extent)) && power;
        if (!integer && r->shares[HARDWARE][bugs[i]][extent].changed == 0) {
            fprintf(stderr, "check_power: nothing was changed\n");
            power = false;
        }
    }
    return (r->result != DTYPE_F32 || all_noticed(r, FREE, PER_MILLE, ALL)) && power;
}

static int small_form(void)
{
    static const int64_t terms[] = {32, 4096};
    static row rows[MOST_ROWS];
    size_t count = measure(terms, sizeof terms / sizeof *terms, 1, 2, rows), failed = 0;
    for (size_t i = 0; i < count; i++)
        failed += !has_power(&rows[i]);
    printf("%zu kernels, %zu failed\n", count, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const page_block page = {"check_power", "<!-- measured by check_power: do not edit -->\n", put_tables};

int main(int argc, char **argv)
{
    return argc == 1 ? small_form() : page_block_main(&page, argc, argv);
}
