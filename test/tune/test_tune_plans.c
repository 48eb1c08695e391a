/* Every plan of small questions that compiles: none takes less than the bound that an answer's header has, and estimates are near what
 * the schedule of the kernel's own commands says. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libvisa/tune/bound.h"
#include "libvisa/tune/folded_write.h"
#include "libvisa/tune/lanes_write.h"
#include "libvisa/tune/search.h"
#include "libvisa/tune/standing_write.h"
#include "runtime/timing/attainable.h"
#include "test/suite.h"

typedef struct asked {
    const char *text, *dtype, *out;
    int64_t sizes[6]; /* of axes b, k, m, n, r, s; 0: the question has no such axis */
    bool exact;       /* pieces of whole blocks: the median estimate is as the schedule has it */
    bool whole;       /* sizes that no copy cuts inside 8 bytes: every plan compiles */
} asked;

static const char ROWS[] = "C[m, n] = sum(k) A[m, k] * B[n, k]", TURNED[] = "C[m, n] = sum(k) A[k, m] * B[k, n]",
                  BATCH[] = "C[b, m, n] = sum(k) A[b, m, k] * B[b, n, k]", VECTOR[] = "y[n] = sum(k) x[k] * W[n, k]",
                  VECTOR_TURNED[] = "y[n] = sum(k) x[k] * W[k, n]", MIXED[] = "C[n, m] = sum(k) A[m, k] * B[k, n]",
                  COLUMNS_TURNED[] = "C[m, n] = sum(k) A[m, k] * B[k, n]", GATED[] = "C[m, n] = gelu(sum(k) A[m, k] * B[n, k])",
                  BIAS[] = "C[m, n] = relu(sum(k) A[m, k] * B[n, k] + bias[n])",
                  SCALED[] = "C[m, n] = (sum(k) A[m, k] * B[n, k]) * s[m] + t[n]: f32",
                  PASSES[] = "C[m, n] = gelu(sum(k) A[m, k] * B[n, k] + bias[n]) + R[m, n]";

static const asked QUESTIONS[] = {
    {ROWS, "i8", "i32", {0, 64, 64, 64}, true, true},           {ROWS, "i8", "i8", {0, 256, 64, 32}, false, true},
    {ROWS, "bf16", "f32", {0, 32, 32, 8}, false, true},         {ROWS, "bf16", "bf16", {0, 128, 48, 96}, false, true},
    {ROWS, "i4", "i32", {0, 128, 16, 16}, false, true},         {ROWS, "f8e4m3", "f32", {0, 61, 17, 31}, false, false},
    {ROWS, "i8", "i32", {0, 512, 8, 128}, false, true},         {ROWS, "bf16", "bf16", {0, 1024, 24, 24}, false, false},
    {ROWS, "i8", "i32", {0, 1000, 3, 7}, false, false},         {TURNED, "i8", "i32", {0, 64, 64, 64}, true, true},
    {TURNED, "bf16", "f32", {0, 128, 48, 32}, false, true},     {TURNED, "i4", "i8", {0, 64, 32, 16}, true, true},
    {TURNED, "f8e5m2", "f32", {0, 100, 12, 40}, false, false},  {BATCH, "i8", "i32", {4, 64, 16, 16}, false, true},
    {BATCH, "bf16", "bf16", {3, 96, 8, 24}, false, true},       {VECTOR, "bf16", "f32", {0, 256, 0, 128}, false, true},
    {VECTOR, "i8", "i8", {0, 300, 0, 64}, false, true},         {VECTOR_TURNED, "i8", "i32", {0, 128, 0, 256}, false, true},
    {MIXED, "i8", "i32", {0, 96, 40, 56}, false, false},        {MIXED, "bf16", "bf16", {0, 64, 128, 16}, false, true},
    {VECTOR, "bf16", "f32", {0, 4096, 0, 4096}, false, true},   {ROWS, "i8", "i32", {0, 512, 256, 64}, true, true},
    {ROWS, "i8", "i32", {0, 64, 256, 20}, false, false},        {GATED, "i8", "f32", {0, 64, 1024, 2048}, false, true},
    {COLUMNS_TURNED, "i4", "i32", {0, 128, 64, 8}, true, true}, {COLUMNS_TURNED, "i4", "i8", {0, 96, 24, 2}, false, true},
    {TURNED, "i8", "i32", {0, 1024, 128, 128}, false, true},
};
enum { QUESTION_COUNT = sizeof QUESTIONS / sizeof *QUESTIONS, MOST_PERCENT = 140 };

static bool read(const asked *x, arena *a, diag_list *diags, tune_question *q)
{
    static const char *const names[] = {"b", "k", "m", "n", "r", "s"};
    visa_parameter sizes[6];
    visa_tune_options o = {.question = x->text, .sizes = sizes, .dtype = x->dtype, .out_dtype = x->out};
    for (int i = 0; i < 6; i++)
        if (x->sizes[i] > 0)
            sizes[o.size_count++] = (visa_parameter){.name = names[i], .values = &x->sizes[i], .count = 1};
    diag_list_init(diags, a);
    tune_expression e;
    return tune_expression_read(x->text, 0, &o, diags, &e) && tune_question_read(&e, &o, diags, q);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

START_TEST(plans_of_a_question)
{
    const asked *x = &QUESTIONS[_i];
    const target *t = target_by_name("rngd");
    arena *a = arena_new(), *scratch = arena_new();
    diag_list diags;
    tune_question q;
    ck_assert(read(x, a, &diags, &q));
    attainable bound = tune_bound_of(t, &q);
    size_t count, compiled = 0;
    tune_plan *plans = tune_space(t, &q, TUNE_KEPT_OF_A_KIND, a, &count);
    size_t step = (size_t)suite_step(8); /* of plans in the order of their estimates every so many */
    int64_t *percent = ARENA_ARRAY(a, int64_t, count);
    for (size_t i = 0; i < count; i += i < 8 ? 1 : step) {
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one;
        ck_assert(tune_try(t, &q, &plans[i], scratch, &one));
        ck_assert_msg(!x->whole || !one.refusal, "%s: %s:\n%s", x->text, one.refusal, one.text.text.text);
        if (!one.refusal) {
            ck_assert_msg(one.cycles >= bound.cycles, "%s: a kernel of %" PRId64 " cycles, below the bound %" PRId64 ":\n%s", x->text,
                          one.cycles, bound.cycles, one.text.text.text);
            percent[compiled++] = plans[i].cycles * 100 / one.cycles;
        }
        arena_rewind(scratch, mark);
    }
    ck_assert_uint_gt(compiled, 0);
    qsort(percent, compiled, sizeof *percent, compare);
    int64_t middle = percent[compiled / 2], most = percent[compiled - 1];
    ck_assert_msg(!x->exact || (middle >= 95 && middle <= 105), "%s: the median estimate is %" PRId64 " %% of the cycles", x->text, middle);
    ck_assert_msg(most <= MOST_PERCENT, "%s: an estimate is %" PRId64 " %% of the cycles", x->text, most);
    if (getenv("VISA_SHOW"))
        printf("%s %s: %zu of %zu compile; estimates %" PRId64 " .. %" PRId64 " .. %" PRId64 " %%\n", x->text, x->dtype, compiled, count,
               percent[0], middle, most);
    arena_free(scratch);
    arena_free(a);
}
END_TEST

/* Plans of which an estimate was far off, by what they have in common: all of them are near. */
static bool stores_of_neighbours(const tune_plan *p)
{
    return p->spreads && p->results_stay && p->split[TUNE_COLUMN].slice >= 16;
}

static bool brings_padded(const tune_plan *p)
{
    return p->brought > 0 && p->split[TUNE_COLUMN].padded == 32 && p->split[TUNE_ROW].slice == 1;
}

static bool loads_apart(const tune_plan *p)
{
    return p->rings && p->results_stay && p->split[TUNE_ROW].slice == 128;
}

static bool shares_rows(const tune_plan *p)
{
    return p->row_sharers > 1 && p->row_parts > 1 && p->joined == 1 && p->split[TUNE_COLUMN].loop == 1;
}

static bool joins_a_row(const tune_plan *p)
{
    return p->row_sharers > 1 && p->joined > 1 && p->split[TUNE_COLUMN].loop == 1;
}

static bool joins_by_sub(const tune_plan *p)
{
    return p->joined > 1 && p->by_sub && p->idle_inside > 16;
}

START_TEST(estimates_of_a_kind)
{
    static const struct {
        asked question;
        bool (*is_one)(const tune_plan *p);
        int64_t least, most; /* of an estimate, percent of the cycles */
        timing_preset timing;
    } rows[] = {
        {{GATED, "i8", "f32", {0, 64, 1024, 2048}, false, true}, stores_of_neighbours, 80, 110, TIMING_DOCUMENTED},
        {{ROWS, "i8", "i32", {0, 64, 256, 20}, false, true}, brings_padded, 90, 110, TIMING_DOCUMENTED},
        {{ROWS, "i8", "i32", {0, 64, 256, 20}, false, true}, loads_apart, 90, 110, TIMING_DOCUMENTED},
        {{ROWS, "i8", "i32", {0, 64, 256, 20}, false, true}, joins_by_sub, 90, 110, TIMING_DOCUMENTED},
        {{VECTOR, "i8", "i32", {0, 512, 0, 2048}, false, true}, shares_rows, 80, 120, TIMING_DOCUMENTED},
        {{ROWS, "bf16", "f32", {0, 512, 4, 256}, false, true}, shares_rows, 80, 120, TIMING_DOCUMENTED},
        {{VECTOR, "f8e4m3", "f32", {0, 768, 0, 1024}, false, true}, joins_a_row, 80, 120, TIMING_MEASURED},
    };
    const target *t = target_by_name("rngd");
    arena *a = arena_new(), *scratch = arena_new();
    diag_list diags;
    tune_question q;
    ck_assert(read(&rows[_i].question, a, &diags, &q));
    q.timing = rows[_i].timing;
    size_t count, tried = 0;
    tune_plan *plans = tune_space(t, &q, TUNE_KEPT_OF_A_KIND, a, &count);
    for (size_t i = 0; i < count; i++) {
        if (!rows[_i].is_one(&plans[i]))
            continue;
        tune_trial one;
        arena_mark mark = arena_mark_here(scratch);
        ck_assert(tune_try(t, &q, &plans[i], scratch, &one) && !one.refusal);
        int64_t percent = plans[i].cycles * 100 / one.cycles;
        ck_assert_msg(percent >= rows[_i].least && percent <= rows[_i].most, "%s: an estimate is %" PRId64 " %% of the cycles of\n%s",
                      rows[_i].question.text, percent, one.text.text.text);
        arena_rewind(scratch, mark);
        tried++;
    }
    ck_assert_uint_gt(tried, 0);
    arena_free(scratch);
    arena_free(a);
}
END_TEST

/* Every plan whose sums are shared by slices, at most so many: it compiles, as fast as it is estimated. Pieces of a store that lie in few
 * channels, or in rows of HBM that are switched, are not in an estimate: those may take longer. */
START_TEST(folded_plans_of_a_question)
{
    static const asked rows[] = {
        {.text = ROWS, .dtype = "i8", .out = "i32", .sizes = {0, 256, 1024, 1024}},
        {.text = ROWS, .dtype = "bf16", .out = "bf16", .sizes = {0, 512, 1024, 512}},
        {.text = ROWS, .dtype = "f8e4m3", .out = "f32", .sizes = {0, 768, 512, 1536}},
        {.text = ROWS, .dtype = "i4", .out = "i32", .sizes = {0, 1024, 512, 512}},
        {.text = "C[n, m] = sum(k) A[m, k] * B[n, k]", .dtype = "bf16", .out = "f32", .sizes = {0, 1024, 512, 512}},
        {.text = ROWS, .dtype = "i8", .out = "i32", .sizes = {0, 768, 768, 768}},
        {.text = ROWS, .dtype = "bf16", .out = "f32", .sizes = {0, 512, 1000, 512}},
        {.text = COLUMNS_TURNED, .dtype = "i8", .out = "i32", .sizes = {0, 1024, 512, 512}},
        {.text = COLUMNS_TURNED, .dtype = "bf16", .out = "bf16", .sizes = {0, 768, 512, 1024}},
        {.text = COLUMNS_TURNED, .dtype = "i4", .out = "i32", .sizes = {0, 1024, 512, 512}},
        {.text = MIXED, .dtype = "f8e5m2", .out = "f32", .sizes = {0, 512, 1024, 512}},
        {.text = TURNED, .dtype = "i8", .out = "i32", .sizes = {0, 512, 512, 1024}},
        {.text = TURNED, .dtype = "bf16", .out = "f32", .sizes = {0, 1024, 512, 1024}},
        {.text = BIAS, .dtype = "i8", .out = "i32", .sizes = {0, 256, 1024, 1024}},
        {.text = SCALED, .dtype = "bf16", .out = "bf16", .sizes = {0, 512, 1024, 512}},
        {.text = SCALED, .dtype = "i8", .out = "i8", .sizes = {0, 512, 2048, 512}},
        {.text = GATED, .dtype = "i8", .out = "f32", .sizes = {0, 512, 512, 1024}},
        {.text = BATCH, .dtype = "i8", .out = "i32", .sizes = {2, 512, 512, 1024}},
    };
    enum { MOST = 256, FORMS = 16, LEAST_PERCENT = 65, MOST_OF_CYCLES_PERCENT = 101 };
    const target *t = target_by_name("rngd");
    arena *a = arena_new(), *scratch = arena_new();
    diag_list diags;
    tune_question q;
    folded_plan plans[MOST];
    ck_assert(read(&rows[_i], a, &diags, &q));
    size_t count = folded_plans(t, &q, plans, MOST);
    ck_assert_msg((count > 0) == (_i < FORMS) && count < MOST, "%s: %zu plans", rows[_i].text, count);
    int64_t least = INT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one = {.timing = TIMING_DOCUMENTED};
        folded_write(t, &q, &plans[i], "", NULL, scratch, &one.text);
        ck_assert(tune_try_text(scratch, &one));
        ck_assert_msg(!one.refusal, "%s: %s:\n%s", rows[_i].text, one.refusal, one.text.text.text);
        int64_t percent = plans[i].cycles * 100 / one.cycles;
        ck_assert_msg(percent >= LEAST_PERCENT && percent <= MOST_OF_CYCLES_PERCENT,
                      "an estimate is %" PRId64 " %% of %" PRId64 " cycles:\n%s", percent, one.cycles, one.text.text.text);
        ck_assert(i == 0 || plans[i - 1].cycles <= plans[i].cycles);
        least = percent < least ? percent : least;
        most = percent > most ? percent : most;
        arena_rewind(scratch, mark);
    }
    if (getenv("VISA_SHOW") && count > 0)
        printf("%s %s: %zu plans, estimates %" PRId64 " .. %" PRId64 " %%\n", rows[_i].text, rows[_i].dtype, count, least, most);
    arena_free(scratch);
    arena_free(a);
}
END_TEST

/* The same of those whose columns stand, the best few: with what has an element for each result, and several passes. What has
 * one for each row meets no sums there. */
START_TEST(standing_plans_of_a_question)
{
    static const asked rows[] = {
        {.text = ROWS, .dtype = "i8", .out = "i32", .sizes = {0, 512, 512, 512}},
        {.text = BIAS, .dtype = "bf16", .out = "f32", .sizes = {0, 512, 512, 512}},
        {.text = BIAS, .dtype = "i8", .out = "i8", .sizes = {0, 512, 512, 1024}},
        {.text = GATED, .dtype = "i8", .out = "f32", .sizes = {0, 512, 512, 1024}},
        {.text = PASSES, .dtype = "bf16", .out = "bf16", .sizes = {0, 512, 1024, 512}},
        {.text = SCALED, .dtype = "i8", .out = "i8", .sizes = {0, 512, 512, 1024}},
    };
    enum { MOST = 4, FORMS = 5, LEAST_PERCENT = 75, MOST_OF_CYCLES_PERCENT = 108 }; /* passes may be earlier */
    const target *t = target_by_name("rngd");
    arena *a = arena_new(), *scratch = arena_new();
    diag_list diags;
    tune_question q;
    standing_plan plans[MOST];
    ck_assert(read(&rows[_i], a, &diags, &q));
    size_t count = standing_plans(t, &q, a, plans, MOST);
    ck_assert_msg((count > 0) == (_i < FORMS), "%s: %zu plans", rows[_i].text, count);
    for (size_t i = 0; i < count; i++) {
        tune_trial one = {.timing = TIMING_DOCUMENTED};
        standing_write(t, &q, &plans[i], "", NULL, scratch, &one.text);
        ck_assert(tune_try_text(scratch, &one));
        ck_assert_msg(!one.refusal, "%s: %s:\n%s", rows[_i].text, one.refusal, one.text.text.text);
        int64_t percent = plans[i].order.cycles * 100 / one.cycles;
        ck_assert_msg(percent >= LEAST_PERCENT && percent <= MOST_OF_CYCLES_PERCENT,
                      "an estimate is %" PRId64 " %% of %" PRId64 " cycles:\n%s", percent, one.cycles, one.text.text.text);
    }
    arena_free(scratch);
    arena_free(a);
}
END_TEST

/* The same of those whose turned operand goes around as it lies: of either operand, of every type. Where both lie turned, or none, what
 * stands in the TRF would be turned. */
START_TEST(lanes_plans_of_a_question)
{
    static const asked rows[] = {
        {.text = COLUMNS_TURNED, .dtype = "i8", .out = "i32", .sizes = {0, 512, 512, 512}},
        {.text = COLUMNS_TURNED, .dtype = "bf16", .out = "bf16", .sizes = {0, 512, 1024, 512}},
        {.text = COLUMNS_TURNED, .dtype = "i4", .out = "i32", .sizes = {0, 1024, 512, 512}},
        {.text = MIXED, .dtype = "f8e4m3", .out = "f32", .sizes = {0, 512, 512, 1024}},
        {.text = MIXED, .dtype = "bf16", .out = "f32", .sizes = {0, 512, 1024, 512}},
        {.text = ROWS, .dtype = "bf16", .out = "f32", .sizes = {0, 512, 512, 512}},
        {.text = TURNED, .dtype = "bf16", .out = "f32", .sizes = {0, 512, 512, 512}},
    };
    enum { MOST = 4, FORMS = 5, LEAST_PERCENT = 75, MOST_OF_CYCLES_PERCENT = 103 };
    const target *t = target_by_name("rngd");
    arena *a = arena_new(), *scratch = arena_new();
    diag_list diags;
    tune_question q;
    lanes_plan plans[MOST];
    ck_assert(read(&rows[_i], a, &diags, &q));
    size_t count = lanes_plans(t, &q, plans, MOST);
    ck_assert_msg((count > 0) == (_i < FORMS), "%s: %zu plans", rows[_i].text, count);
    for (size_t i = 0; i < count; i++) {
        tune_trial one = {.timing = TIMING_DOCUMENTED};
        lanes_write(t, &q, &plans[i], "", NULL, scratch, &one.text);
        ck_assert(tune_try_text(scratch, &one));
        ck_assert_msg(!one.refusal, "%s: %s:\n%s", rows[_i].text, one.refusal, one.text.text.text);
        int64_t percent = plans[i].order.cycles * 100 / one.cycles;
        ck_assert_msg(percent >= LEAST_PERCENT && percent <= MOST_OF_CYCLES_PERCENT,
                      "an estimate is %" PRId64 " %% of %" PRId64 " cycles:\n%s", percent, one.cycles, one.text.text.text);
        ck_assert(i == 0 || plans[i - 1].order.cycles <= plans[i].order.cycles);
    }
    arena_free(scratch);
    arena_free(a);
}
END_TEST

/* 60 questions so small that every plan of them is compiled: every one that space.c enumerates, whatever its estimate and its kind. Their
 * answers are at most 3 % slower than the best of all. Plans that are the same text are compiled once. */
static const struct {
    const char *text;
    int64_t sizes[4]; /* of b, k, m, n */
} SMALL[] = {
    {ROWS, {0, 32, 8, 8}},    {ROWS, {0, 64, 4, 8}},           {ROWS, {0, 32, 2, 16}},
    {ROWS, {0, 128, 8, 4}},   {ROWS, {0, 64, 1, 32}},          {ROWS, {0, 61, 7, 11}},
    {ROWS, {0, 96, 3, 5}},    {ROWS, {0, 256, 8, 2}},          {ROWS, {0, 32, 16, 8}},
    {ROWS, {0, 64, 8, 16}},   {VECTOR, {0, 128, 0, 48}},       {VECTOR, {0, 64, 0, 24}},
    {VECTOR, {0, 300, 0, 9}}, {VECTOR_TURNED, {0, 64, 0, 64}}, {VECTOR_TURNED, {0, 128, 0, 32}},
    {TURNED, {0, 32, 8, 8}},  {MIXED, {0, 64, 4, 16}},         {BATCH, {3, 32, 4, 4}},
    {BATCH, {2, 64, 2, 8}},   {BIAS, {0, 64, 4, 8}},
};
static const char *const SMALL_TYPES[][2] = {{"i8", "i32"}, {"bf16", "bf16"}, {"f8e4m3", "f32"}};
enum {
    SMALL_SIZES = sizeof SMALL / sizeof *SMALL,
    SMALL_QUESTIONS = SMALL_SIZES * 3,
    EVERY_PLAN = 1 << 20,
    TEXTS = 1 << 16, /* places for digests of texts */
    WORK_OF_ANSWER = 2 * VISA_TUNE_STEPS_OF_SECOND
};

/* Was this text there before? */
static bool is_known(uint64_t *texts, const strbuf *text)
{
    uint64_t digest = 14695981039346656037U;
    for (size_t i = 0; i < text->bytes; i++)
        digest = (digest ^ (unsigned char)text->text[i]) * 1099511628211U;
    size_t at = digest % TEXTS;
    while (texts[at] != 0 && texts[at] != digest)
        at = (at + 1) % TEXTS;
    bool known = texts[at] == digest;
    texts[at] = digest;
    return known;
}

START_TEST(answer_against_all_plans)
{
    const int64_t *size = SMALL[_i % SMALL_SIZES].sizes;
    const char *const *types = SMALL_TYPES[_i / SMALL_SIZES];
    asked x = {.text = SMALL[_i % SMALL_SIZES].text, .dtype = types[0], .out = types[1], .sizes = {size[0], size[1], size[2], size[3]}};
    if (_i % suite_step(SMALL_QUESTIONS) != 0)
        return;
    const target *t = target_by_name("rngd");
    arena *a = arena_new(), *scratch = arena_new();
    diag_list diags;
    tune_question q;
    tune_answer answer;
    visa_tune_options o = {.work = WORK_OF_ANSWER};
    ck_assert(read(&x, a, &diags, &q));
    ck_assert(tune_search(t, &q, &o, a, &answer));
    size_t count;
    tune_plan *plans = tune_space(t, &q, SLOWER > 1 && !suite_is_long() ? TUNE_KEPT_OF_A_KIND : EVERY_PLAN, a, &count);
    int64_t best = INT64_MAX;
    uint64_t *texts = ARENA_ARRAY(a, uint64_t, TEXTS);
    size_t different = 0;
    ck_assert_uint_lt(count, TEXTS / 2);
    for (size_t i = 0; i < count; i++) {
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one = {.timing = q.timing};
        tune_write(&q, &plans[i], t, "", NULL, scratch, &one.text);
        if (!is_known(texts, &one.text.text)) {
            ck_assert(tune_try_text(scratch, &one));
            different++;
            if (!one.refusal && one.cycles < best)
                best = one.cycles;
        }
        arena_rewind(scratch, mark);
    }
    const char *what = arena_printf(a, "%s, b=%" PRId64 " k=%" PRId64 " m=%" PRId64 " n=%" PRId64 " %s %s", x.text, size[0], size[1],
                                    size[2], size[3], types[0], types[1]);
    if (getenv("VISA_SHOW"))
        printf("%s: %zu plans, %zu texts, best %" PRId64 ", answer %" PRId64 " of %zu\n", what, count, different, best, answer.cycles,
               answer.tried);
    ck_assert_msg(answer.cycles * 100 <= best * 103, "%s: %" PRId64 " cycles, of all plans the best takes %" PRId64, what, answer.cycles,
                  best);
    arena_free(scratch);
    arena_free(a);
}
END_TEST

/* Questions whose best plan has weights that go around rings, or rows that are closed up: it is the best one by estimate, that estimate is
 * near, and the kernel is as fast as was found. */
START_TEST(best_plan_of_a_kind)
{
    static const struct {
        asked question;
        bool spreads, closes;
        int64_t most; /* cycles */
    } rows[] = {
        {{ROWS, "i8", "i32", {0, 512, 1024, 64}, true, true}, true, false, 2398},
        {{ROWS, "i8", "i32", {0, 512, 256, 256}, true, true}, true, false, 2419},
        {{ROWS, "i8", "i32", {0, 64, 1024, 36}, true, true}, false, true, 2212},
    };
    const target *t = target_by_name("rngd");
    arena *a = arena_new();
    diag_list diags;
    tune_question q;
    ck_assert(read(&rows[_i].question, a, &diags, &q));
    size_t count;
    tune_plan *plans = tune_space(t, &q, TUNE_KEPT_OF_A_KIND, a, &count);
    tune_trial one;
    ck_assert(tune_try(t, &q, &plans[0], a, &one));
    ck_assert_msg(plans[0].spreads == rows[_i].spreads && plans[0].closes == rows[_i].closes, "the best plan is of another kind:\n%s",
                  one.text.text.text);
    ck_assert_msg(!one.refusal, "%s:\n%s", one.refusal, one.text.text.text);
    ck_assert_msg(one.cycles <= rows[_i].most, "%" PRId64 " cycles:\n%s", one.cycles, one.text.text.text);
    ck_assert_msg(plans[0].cycles * 100 >= one.cycles * 98 && plans[0].cycles * 100 <= one.cycles * 102,
                  "%" PRId64 " cycles, the estimate is %" PRId64, one.cycles, plans[0].cycles);
    arena_free(a);
}
END_TEST

/* Each way of dividing the axes is one plan: one that is there twice takes the place of another one among those of its kind. */
START_TEST(no_plan_is_there_twice)
{
    static const asked rows[] = {{ROWS, "i8", "i32", {0, 32, 4, 8}, false, false}, {ROWS, "bf16", "f32", {0, 61, 7, 12}, false, false}};
    arena *a = arena_new();
    diag_list diags;
    tune_question q;
    size_t count;
    ck_assert(read(&rows[_i], a, &diags, &q));
    tune_plan *plans = tune_space(target_by_name("rngd"), &q, EVERY_PLAN, a, &count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(memcmp(&plans[i], &plans[k], sizeof *plans) != 0, "plans %zu and %zu of %zu are the same", k, i, count);
    arena_free(a);
}
END_TEST

/* What a bound counts: copies that must start, bytes of the tensors, and cycles of 64 i8 or 32 bf16 products in each of 8 rows of 512
 * slices. */
START_TEST(bounds_of_questions)
{
    static const struct {
        asked question;
        int64_t starts, bytes, mac_cycles, partial;
    } rows[] = {
        {{ROWS, "i8", "i8", {0, 1024, 1024, 1024}, true, true}, 3, 3 << 20, 4096, 0},
        {{ROWS, "bf16", "f32", {0, 1024, 512, 1024}, true, true}, 3, 5 << 20, 4096, 0},
        {{BATCH, "bf16", "bf16", {4, 512, 256, 128}, true, true}, 3, 2 * 4 * (512 * 256 + 512 * 128 + 256 * 128), 4 * 256 * 128 / 256, 0},
        {{VECTOR, "i8", "i32", {0, 512, 0, 1024}, true, true}, 3, 512 + 512 * 1024 + 4 * 1024, 2, 0},
        {{"C[m, n] = sum(k) A[m, k] * B[n, k] + bias[n]", "bf16", "f32", {0, 64, 16, 32}, true, true},
         4,
         2 * 64 * (16 + 32) + 4 * (16 * 32 + 32),
         1,
         0},
        {{"O[m, n, b] = sum(r, s, k) I[m*2 + r, n + s, k] * W[b, r, s, k]", "i8", "i32", {8, 64, 4, 16, 3, 3}, true, true},
         3,
         9 * 18 * 64 + 8 * 9 * 64 + 4 * 4 * 16 * 8,
         2,
         0},
        /* the results end inside a block of HBM, which takes 50 times 5.3 cycles, a cycle of them for results of 1,545 bytes each */
        {{ROWS, "i8", "i8", {0, 64, 10, 15}, true, true}, 3, 64 * (10 + 15) + 10 * 15, 1, 264},
        {{VECTOR, "i8", "i32", {0, 64, 0, 1000}, true, true}, 3, 64 + 64 * 1000 + 4 * 1000, 1, 262},
    };
    const target *t = target_by_name("rngd");
    arena *a = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        diag_list diags;
        tune_question q;
        bool is_read = read(&rows[i].question, a, &diags, &q);
        ck_assert_msg(is_read, "%s: %s", rows[i].question.text, diags.count ? diags.items[0]->message : "");
        attainable x = tune_bound_of(t, &q);
        ck_assert_msg(x.starts == rows[i].starts && x.bytes == rows[i].bytes &&
                          x.products == 3 * t->dma_startup_cycles + rows[i].mac_cycles && x.partial_cycles == rows[i].partial,
                      "%s: %" PRId64 " copies, %" PRId64 " bytes, %" PRId64 " cycles of products, %" PRId64 " of a block written in part",
                      rows[i].question.text, x.starts, x.bytes, x.products, x.partial_cycles);
        int64_t carried = x.bytes * 1000 / x.bytes_per_kcycle;
        ck_assert_int_eq(x.copies, x.starts * x.start_cycles + x.row_cycles + carried + x.partial_cycles);
    }
    arena_free(a);
}
END_TEST

/* Few results and many products, of ever larger sizes: stores wait little, and that is found without trying as many as there could be. */
START_TEST(bounds_of_any_size)
{
    const target *t = target_by_name("rngd");
    for (int64_t cycles = 1 << 20; cycles <= INT64_C(1) << 40; cycles <<= 4) {
        attainable_work w = {
            .chips = 1, .loads = 2, .stores = 1, .bytes = 1, .mac_cycles = cycles, .first_loads = 1, .stored_mac_cycles = cycles};
        w.stored_bytes = w.bytes = attainable_of(t, TIMING_DOCUMENTED, &w).bytes_per_kcycle * (cycles / 1000) / 25;
        attainable x = attainable_of(t, TIMING_DOCUMENTED, &w);
        ck_assert_msg(x.waits >= x.products && x.waits <= x.products + t->dma_startup_cycles,
                      "%" PRId64 " cycles of products, %" PRId64 " with stores", x.products, x.waits);
    }
}
END_TEST

int main(void)
{
    TCase *bounds = suite_case("bounds");
    suite_tests(bounds, bounds_of_questions, bounds_of_any_size);
    TCase *t = suite_case("plans");
    tcase_add_loop_test(t, plans_of_a_question, 0, QUESTION_COUNT);
    tcase_add_loop_test(t, best_plan_of_a_kind, 0, 3);
    tcase_add_loop_test(t, no_plan_is_there_twice, 0, 2);
    TCase *kinds = suite_case("kinds");
    tcase_add_loop_test(kinds, estimates_of_a_kind, 0, 7);
    tcase_add_loop_test(kinds, folded_plans_of_a_question, 0, 18);
    tcase_add_loop_test(kinds, standing_plans_of_a_question, 0, 6);
    tcase_add_loop_test(kinds, lanes_plans_of_a_question, 0, 7);
    TCase *all = suite_case("all plans");
    tcase_add_loop_test(all, answer_against_all_plans, 0, SMALL_QUESTIONS);
    return suite_status("tune_plans", bounds, t, kinds, all);
}
