#include "target/einsum_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- tensors ---- */

bool einsum_is_dense(const einsum *e)
{
    for (uint32_t t = 0; t < e->tensor_count; t++)
        for (uint32_t i = 0; i < e->tensors[t].rank; i++)
            if (e->axes[e->tensors[t].axes[i]].name[1])
                return false;
    return true;
}

/* All but numbers: printf takes ten times as long, and every kernel has such a text. */
static void put_two(strbuf *out, const char *first, const char *second)
{
    strbuf_puts(out, first);
    strbuf_puts(out, second);
}

static void print_axes(strbuf *out, const einsum *e, uint32_t tensor, const char *between)
{
    const einsum_tensor *t = &e->tensors[tensor];
    for (uint32_t i = 0; i < t->rank; i++)
        put_two(out, i ? between : "", e->axes[t->axes[i]].name);
}

static void print_tensor(strbuf *out, const einsum *e, uint32_t tensor)
{
    put_two(out, e->tensors[tensor].name, "[");
    print_axes(out, e, tensor, ", ");
    strbuf_puts(out, "]");
}

/* The indexed tensor: after an axis, the index tensor that moves it. */
static void print_indexed(strbuf *out, const einsum *e, const einsum_statement *s, uint32_t tensor)
{
    const einsum_tensor *t = &e->tensors[tensor];
    put_two(out, t->name, "[");
    for (uint32_t i = 0; i < t->rank; i++) {
        put_two(out, i ? ", " : "", e->axes[t->axes[i]].name);
        for (uint32_t k = 0; k < einsum_index_count(s); k++) {
            if (s->indices[k].axis != t->axes[i])
                continue;
            strbuf_puts(out, " + ");
            print_tensor(out, e, s->sources[k + 1]);
            if (s->indices[k].step > 1 || s->indices[k].div > 1)
                strbuf_printf(out, " / %" PRId64, s->indices[k].step * s->indices[k].div);
            if (s->indices[k].mod > 0)
                strbuf_printf(out, " %% %" PRId64, s->indices[k].mod);
            if (s->indices[k].unit != 1)
                strbuf_printf(out, " * %" PRId64, s->indices[k].unit);
        }
    }
    strbuf_puts(out, "]");
    if (s->counted)
        strbuf_printf(out, ", the first %s", e->tensors[einsum_operand(s, einsum_count_side(s))].name);
}

/* ---- expressions ---- */

static void print_constant(strbuf *out, const scalar_step *step)
{
    float f;
    if (step->op == SCALAR_CONSTANT_I32) {
        strbuf_printf(out, "%" PRId32, (int32_t)step->argument);
        return;
    }
    memcpy(&f, &step->argument, sizeof f);
    if (isnan(f))
        strbuf_printf(out, "nan:%08" PRIx32, step->argument);
    else
        strbuf_printf(out, isfinite(f) && f == truncf(f) && fabsf(f) < 1e7f ? "%.1f" : "%.9g", (double)f);
}

/* Where the operands of step `at` begin. */
static uint32_t operand_begin(const scalar_step *steps, uint32_t at)
{
    unsigned missing = 1;
    for (uint32_t i = at + 1; i-- > 0;) {
        const scalar_row *row = scalar_row_of(steps[i].op);
        missing += row ? scalar_arity(row) : 0;
        if (--missing == 0)
            return i;
    }
    return 0;
}

/* The value that step `last` leaves. The depth is at most that of the stack. */
static void print_value(strbuf *out, const einsum *e, const einsum_statement *s, uint32_t last, bool outermost)
{
    const scalar_step *step = &s->steps[last];
    const scalar_row *row = scalar_row_of(step->op);
    if (step->op == SCALAR_SOURCE) {
        print_tensor(out, e, s->sources[step->argument]);
        return;
    }
    if (!row) {
        print_constant(out, step);
        return;
    }
    uint32_t ends[SCALAR_OPERANDS], end = last;
    for (unsigned i = scalar_arity(row); i-- > 0;) {
        ends[i] = end - 1;
        end = operand_begin(s->steps, ends[i]);
    }
    unsigned next = 0;
    size_t length = strlen(row->text);
    bool bare = outermost && row->text[0] == '(';
    for (size_t i = bare; i < length - bare; i++)
        if (row->text[i] == '$')
            print_value(out, e, s, ends[next++], false);
        else
            strbuf_append(out, &row->text[i], 1);
}

void einsum_print_expression(strbuf *out, const einsum *e, const einsum_statement *s)
{
    if (s->step_count)
        print_value(out, e, s, s->step_count - 1, true);
}

/* ---- statements ---- */

static void print_upper(strbuf *out, const char *name)
{
    for (; *name; name++)
        strbuf_append(out, &(char){(char)toupper((unsigned char)*name)}, 1);
}

static void print_summed(strbuf *out, const einsum *e, const einsum_statement *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        bool known = s->digits[i].kept;
        for (uint32_t k = 0; k < i; k++)
            known = known || (!s->digits[k].kept && s->digits[k].axis == s->digits[i].axis);
        if (!known)
            put_two(out, any ? ", " : "", e->axes[s->digits[i].axis].name);
        any = any || !known;
    }
}

static void print_assignment(strbuf *out, const einsum *e, const einsum_statement *s)
{
    print_upper(out, math_row_of(s->op)->name);
    strbuf_puts(out, " ");
    if (s->op == MATH_SCATTER)
        print_indexed(out, e, s, s->dst);
    else
        print_tensor(out, e, s->dst);
    strbuf_puts(out, " = ");
    if (s->op == MATH_REDUCE) {
        put_two(out, scalar_row_of(s->fold)->name, "[");
        print_summed(out, e, s);
        strbuf_puts(out, "] ");
    }
    if (s->op == MATH_FILL)
        strbuf_printf(out, "0x%" PRIx32, s->bits);
    else if (s->op == MATH_GATHER)
        print_indexed(out, e, s, s->sources[0]);
    else if (s->op == MATH_SCATTER)
        print_tensor(out, e, s->sources[0]);
    else
        einsum_print_expression(out, e, s);
}

void einsum_print_statement(strbuf *out, const einsum *e, const einsum_statement *s, bool dense)
{
    if (s->op != MATH_COPY && s->op != MATH_CONTRACT) {
        print_assignment(out, e, s);
        return;
    }
    for (uint32_t i = 0; i < s->source_count; i++) {
        strbuf_puts(out, i == 0 ? "" : dense ? "," : ", ");
        print_axes(out, e, s->sources[i], dense ? "" : " ");
    }
    strbuf_puts(out, dense ? "->" : " -> ");
    print_axes(out, e, s->dst, dense ? "" : " ");
}
