#include "runtime/step/judge.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/step/mathematics.h"
#include "runtime/step/statement.h"
#include "support/strbuf.h"

/* ---- the whole graph ---- */

/* A statement is made when what it is about is known; that of a merge's selectors at once, so that feedback ends. */
static bool is_ready(const statements *s, const step_node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (!statement_input(s, n, i))
            return false;
    return true;
}

static void state_all(statements *s)
{
    const step_program *p = s->in->run->program;
    bool progress = true;
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].op == STEP_EAGER_MERGE)
            statement_order(s, &p->nodes[i]);
    while (progress && !s->why) {
        progress = false;
        for (uint32_t i = 0; i < p->node_count && !s->why; i++) {
            if (s->done[i] || !is_ready(s, &p->nodes[i]))
                continue;
            statement_make(s, &p->nodes[i]);
            s->done[i] = progress = true;
        }
    }
    for (uint32_t i = 0; i < p->node_count && !s->why; i++)
        if (!s->done[i])
            statement_unknown(s, &p->nodes[i], "what it takes depends on itself");
}

/* ---- memory ---- */

static bool reaches(const statements *s, uint32_t from, uint32_t to)
{
    const step_program *p = s->in->run->program;
    bool *seen = ARENA_ARRAY(s->arena, bool, p->node_count + 1), progress = true;
    seen[from] = true;
    while (progress && !seen[to]) {
        progress = false;
        for (uint32_t i = 0; i < p->node_count; i++)
            for (uint32_t k = 0; k < p->nodes[i].input_count && !seen[i]; k++)
                if (seen[p->nodes[i].inputs[k].node])
                    seen[i] = progress = true;
    }
    return seen[to];
}

/* Who writes a tile that another one reads has to come after it, by the graph. */
static void check_memory(statements *s)
{
    const step_program *p = s->in->run->program;
    for (uint32_t t = 0; t < p->tensor_count && !s->why; t++) {
        const statement_memory *m = &s->memory[t];
        uint32_t load = 0, store = 0;
        for (int64_t i = 0; m->result && i < step_tensor_tiles(&p->tensors[t]) && !s->why; i++) {
            bool both = m->loaded_by[i] && m->stored_by[i] && (m->loaded_by[i] != load || m->stored_by[i] != store);
            if (!both)
                continue;
            load = m->loaded_by[i];
            store = m->stored_by[i];
            if (load == STATEMENT_SEVERAL || store == STATEMENT_SEVERAL || !reaches(s, load - 1, store - 1))
                s->why = arena_printf(s->arena, "tile %" PRId64 " of `%s` is read and written, and which comes first is a matter of time",
                                      i, p->tensors[t].name);
        }
    }
}

/* ---- comparing ---- */

typedef struct comparison {
    arena *arena;
    const char *wrong; /* the first thing that is not what it has to be */
    int64_t numbers, unbounded;
    double largest; /* difference, as a part of what is allowed */
} comparison;

static void differs(comparison *c, const char *text)
{
    c->wrong = c->wrong ? c->wrong : text;
}

static void compare_number(comparison *c, double is, double should, double error, const char *where, int64_t i)
{
    bool same = is == should || (isnan(is) && isnan(should));
    c->numbers++;
    c->unbounded += isinf(error);
    if (same || isinf(error))
        return;
    double allowed = error + 0x1p-125, away = fabs(is - should); /* subnormal numbers may be zeros */
    c->largest = fmax(c->largest, away / allowed);
    if (!(away <= allowed))
        differs(c, arena_printf(c->arena, "%s, element %" PRId64 ": %.9g where the mathematics gives %.9g, not further away than %.3g",
                                where, i, is, should, error));
}

static void compare_tiles(comparison *c, const nested_value *is, const nested_value *should, const char *where)
{
    if (is->tile.rows != should->tile.rows || is->tile.columns != should->tile.columns || is->tile.valid != should->tile.valid) {
        differs(c, arena_printf(c->arena,
                                "%s: %" PRId64 " x %" PRId64 " with %" PRId64 " valid rows where the mathematics gives %" PRId64
                                " x %" PRId64 " with %" PRId64,
                                where, is->tile.rows, is->tile.columns, is->tile.valid, should->tile.rows, should->tile.columns,
                                should->tile.valid));
        return;
    }
    for (int64_t i = 0; i < is->tile.rows * is->tile.columns; i++)
        compare_number(c, mathematics_number(is, i), mathematics_number(should, i), mathematics_error(should, i), where, i);
}

static void compare_lists(comparison *c, const nested *is, const nested *should, const char *where);

static void compare_values(comparison *c, const nested_value *is, const nested_value *should, const char *where)
{
    bool same = is->kind == should->kind;
    if (same && is->kind == STEP_TILE) {
        compare_tiles(c, is, should, where);
    } else if (same && is->kind == STEP_PAIR) {
        compare_values(c, is->pair.first, should->pair.first, where);
        compare_values(c, is->pair.second, should->pair.second, where);
    } else if (same && is->kind == STEP_BUFFER) {
        compare_lists(c, is->buffer, should->buffer, where);
    } else {
        bool is_selector = is->kind == STEP_SELECTOR;
        same = same && (is_selector ? is->selector.count == should->selector.count &&
                                          (is->selector.count == 0 || memcmp(is->selector.picks, should->selector.picks,
                                                                             is->selector.count * sizeof *is->selector.picks) == 0)
                        : is->kind == STEP_BOOL ? is->flag == should->flag
                                                : is->address == should->address);
        c->numbers++;
        if (!same)
            differs(c, arena_printf(c->arena, "%s: another %s than the mathematics gives", where,
                                    is_selector             ? "selector"
                                    : is->kind == STEP_BOOL ? "bool"
                                                            : "address"));
    }
}

static void compare_lists(comparison *c, const nested *is, const nested *should, const char *where)
{
    for (uint32_t d = 0; d <= is->rank; d++) {
        const nested_sizes *a = &is->dims[d], *b = &should->dims[d];
        if (a->count != b->count || (a->count > 0 && memcmp(a->of, b->of, a->count * sizeof *a->of) != 0)) {
            differs(c, arena_printf(c->arena, "%s: dimension D%" PRIu32 " has other sizes than the mathematics gives", where, d));
            return;
        }
    }
    for (size_t i = 0; i < is->count; i++)
        compare_values(c, is->values[i], should->values[i], arena_printf(c->arena, "%s, value %zu", where, i));
}

/* Where what the comparisons say is kept. */
typedef struct judgement {
    strbuf report;
    finding_list *found;
    diag_list *diags;
} judgement;

static void say(const comparison *c, const char *name, judgement *j)
{
    bool compared = c->numbers == 0 || c->unbounded < c->numbers;
    finding one = {name,         !c->wrong && compared,           c->numbers - c->unbounded, c->wrong ? -1 : 0,
                   c->unbounded, c->largest > 0 ? c->largest : -1};
    ARENA_PUSH(c->arena, j->found->items, j->found->count, j->found->capacity, one);
    if (c->wrong) {
        diag_add(j->diags, E_CHECK_MISMATCH, SRC_NOWHERE, "%s", c->wrong);
        return;
    }
    strbuf_printf(&j->report, "%s: %" PRId64 " values are what the graph's mathematics gives", name, c->numbers);
    if (c->largest > 0)
        strbuf_printf(&j->report, "; at most %.2g of what rounding allows", c->largest);
    if (c->unbounded > 0)
        strbuf_printf(&j->report, "; %" PRId64 " of them may be anything", c->unbounded);
    strbuf_puts(&j->report, "\n");
    if (!compared)
        diag_add(j->diags, E_CHECK_NOTHING, SRC_NOWHERE, "no value of `%s` was compared: each of them may be anything", name);
}

static void compare_tensor(statements *s, uint32_t t, judgement *j)
{
    const step_tensor *tensor = &s->in->run->program->tensors[t];
    const statement_memory *m = &s->memory[t];
    comparison c = {.arena = s->arena};
    for (int64_t i = 0; i < step_tensor_tiles(tensor); i++) {
        const float *is = s->in->run->stores[t].elements + i * tensor->rows * tensor->columns,
                    *before = s->in->tensors[t] + i * tensor->rows * tensor->columns;
        const char *where = arena_printf(s->arena, "`%s`, tile %" PRId64, tensor->name, i);
        for (int64_t k = 0; k < tensor->rows * tensor->columns; k++) {
            double x = (double)before[k], error = 0;
            if (m->result[i]) {
                x = mathematics_number(m->result[i], k);
                error = mathematics_error(m->result[i], k);
                mathematics_round(tensor->dtype, &x, &error);
            }
            compare_number(&c, (double)is[k], x, error, where, k);
        }
    }
    say(&c, tensor->name, j);
}

/* One value at least, of all outputs together; else none of them agrees. */
static bool compared_any(finding_list *found)
{
    bool any = false;
    for (size_t i = 0; i < found->count; i++)
        any = any || found->items[i].compared > 0;
    for (size_t i = 0; i < found->count; i++)
        found->items[i].agrees = found->items[i].agrees && any;
    return any;
}

bool step_judge(const step_judge_input *in, arena *a, const char **report, finding_list *found, diag_list *diags)
{
    const step_program *p = in->run->program;
    statements *s = statements_new(in, a, diags);
    size_t before = diags->error_count;
    judgement j = {.found = found, .diags = diags};
    strbuf_init(&j.report, a);
    *found = (finding_list){0};
    state_all(s);
    if (!s->why)
        check_memory(s);
    *report = j.report.text;
    statements_free(s);
    if (s->why) {
        diag_help(diags, diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "`%s` cannot be judged: %s", p->name, s->why),
                  "docs/step.md says what the judge reads of a graph");
        return false;
    }
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].op == STEP_SINK) {
            comparison c = {.arena = a};
            const step_value *taken = in->run->feeds[i].taken;
            uint32_t rank = p->nodes[p->nodes[i].inputs[0].node].outputs[p->nodes[i].inputs[0].port].rank;
            compare_lists(&c, nested_of_tokens(taken->buffer.tokens, taken->buffer.count, rank, false, a),
                          statement_input(s, &p->nodes[i], 0), arena_printf(a, "`%s`", p->nodes[i].name));
            say(&c, p->nodes[i].name, &j);
        }
    for (uint32_t t = 0; t < p->tensor_count; t++)
        if (p->tensors[t].written)
            compare_tensor(s, t, &j);
    *report = j.report.text;
    if (diags->error_count == before && found->count == 0)
        diag_help(diags, diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "`%s` has no output: nothing was compared", p->name),
                  "return a stream, or store it in a tensor");
    else if (diags->error_count == before && !compared_any(found))
        diag_help(diags, diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "no output of `%s` has a value: nothing was compared", p->name),
                  "give its input streams values");
    return diags->error_count == before;
}
