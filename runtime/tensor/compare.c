#include "runtime/tensor/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/machine/parallel.h"
#include "runtime/tensor/numeric.h"
#include "support/strbuf.h"

/* A bound that is not a number allows nothing. */
static double allowance(const double *allowed, int64_t i)
{
    return allowed && allowed[i] > 0 ? allowed[i] : 0;
}

bool compare_agrees(double machine, double reference, double allowed)
{
    if (isinf(allowed) || (isnan(machine) && isnan(reference)) || machine == reference)
        return true;
    return fabs(machine - reference) <= allowed && isfinite(machine) && isfinite(reference);
}

static void note_agreement(double machine, double reference, double allowed, compare_result *out)
{
    double fraction = fabs(machine - reference) / allowed;
    if (isfinite(fraction) && fraction > out->worst_fraction)
        out->worst_fraction = fraction;
}

static void note_mismatch(int64_t element, double machine, double reference, double allowed, compare_result *out)
{
    if (out->mismatches++ > 0)
        return;
    out->first_mismatch = element;
    out->machine = machine;
    out->reference = reference;
    out->allowed = allowed;
}

typedef struct comparison {
    const tensor_type *type;
    const unsigned char *reference, *machine, *covered;
    const double *allowed;
    compare_result parts[PARALLEL_PARTS];
} comparison;

/* The end of elements from `first` on that are integers of the same bytes, with nothing else to say of them. */
static int64_t same_integers(const comparison *c, int64_t first, int64_t end)
{
    enum { BLOCK = 4096 };
    const dtype_row *row = dtype_row_of(c->type->dtype);
    int64_t bytes = row->bits / 8;
    if (c->covered || c->allowed || row->kind == DTYPE_KIND_FLOAT || row->bits % 8)
        return first;
    while (first + BLOCK <= end && memcmp(c->machine + first * bytes, c->reference + first * bytes, (size_t)(BLOCK * bytes)) == 0)
        first += BLOCK;
    return first;
}

static void compare_part(void *of, unsigned part, int64_t first, int64_t end)
{
    comparison *c = of;
    int64_t same = same_integers(c, first, end);
    compare_result out = {.first_mismatch = -1, .compared = same - first};
    for (int64_t i = same; i < end; i++) {
        if (c->covered && !c->covered[i]) {
            out.uncovered++;
            continue;
        }
        double m = numeric_to_double(c->type->dtype, c->machine, i), r = numeric_to_double(c->type->dtype, c->reference, i);
        double a = allowance(c->allowed, i);
        if (isinf(a) || (isnan(m) && isnan(r)) || (isinf(m) && m == r)) {
            *(isinf(a) ? &out.unbounded : isnan(m) ? &out.both_nan : &out.both_infinite) += 1;
            continue;
        }
        out.compared++;
        out.has_allowance = out.has_allowance || a > 0;
        if (!compare_agrees(m, r, a))
            note_mismatch(i, m, r, a, &out);
        else if (a > 0)
            note_agreement(m, r, a, &out);
    }
    c->parts[part] = out;
}

/* What the elements after those of `out` gave. */
static void result_add(compare_result *out, const compare_result *behind)
{
    if (out->mismatches == 0 && behind->mismatches > 0) {
        out->first_mismatch = behind->first_mismatch;
        out->machine = behind->machine;
        out->reference = behind->reference;
        out->allowed = behind->allowed;
    }
    out->compared += behind->compared;
    out->mismatches += behind->mismatches;
    out->both_nan += behind->both_nan;
    out->both_infinite += behind->both_infinite;
    out->unbounded += behind->unbounded;
    out->uncovered += behind->uncovered;
    out->has_allowance = out->has_allowance || behind->has_allowance;
    if (behind->worst_fraction > out->worst_fraction)
        out->worst_fraction = behind->worst_fraction;
}

void compare_elements(const tensor_type *type, const unsigned char *reference, const unsigned char *machine, const double *allowed,
                      const unsigned char *covered, unsigned threads, compare_result *out)
{
    enum { LEAST = 1 << 17 /* elements that repay a thread */ };
    comparison c = {type, reference, machine, covered, allowed, {{0}}};
    unsigned parts = parallel_parts(tensor_elements(type), LEAST, threads, compare_part, &c);
    *out = c.parts[0];
    for (unsigned i = 1; i < parts; i++)
        result_add(out, &c.parts[i]);
}

const char *compare_place_text(const tensor_type *type, int64_t element, arena *a)
{
    int64_t *coords = ARENA_ARRAY(a, int64_t, (size_t)type->rank + 1);
    for (int i = type->rank - 1; i >= 0; i--) {
        coords[i] = element % type->shape[i];
        element /= type->shape[i];
    }
    strbuf s;
    strbuf_init(&s, a);
    for (int i = 0; i < type->rank; i++) {
        strbuf_puts(&s, i ? ", " : "");
        if (type->names)
            strbuf_printf(&s, "%s=", type->names[i]);
        strbuf_printf(&s, "%" PRId64, coords[i]);
    }
    return type->rank ? s.text : "its only element";
}

/* As few digits as tell two values of the type apart. */
static const char *value_text(dtype t, double value, arena *a)
{
    if (isnan(value))
        return "NaN";
    if (isinf(value))
        return value < 0 ? "-infinity" : "infinity";
    if (dtype_row_of(t)->kind == DTYPE_KIND_INT)
        return arena_printf(a, "%.0f", value);
    for (int digits = 6; digits < 9; digits++) {
        const char *text = arena_printf(a, "%.*g", digits, value);
        if ((double)strtof(text, NULL) == value)
            return text;
    }
    return arena_printf(a, "%.9g", value);
}

static int64_t count_values(const compare_result *r)
{
    return r->compared + r->both_nan + r->both_infinite + r->unbounded;
}

/* ", 4 NaN in both, 2 with an infinite bound": what a comparison says nothing of. */
static void skipped_text(strbuf *s, const compare_result *r)
{
    if (r->both_nan)
        strbuf_printf(s, ", %" PRId64 " NaN in both", r->both_nan);
    if (r->both_infinite)
        strbuf_printf(s, ", %" PRId64 " infinite in both", r->both_infinite);
    if (r->unbounded)
        strbuf_printf(s, ", %" PRId64 " with an infinite bound", r->unbounded);
}

static void agreement_text(strbuf *s, const compare_result *r)
{
    int64_t values = count_values(r);
    if (values == 0) {
        strbuf_puts(s, "no values to compare");
        return;
    }
    strbuf_printf(s, "%" PRId64 " value%s", values, values == 1 ? "" : "s");
    if (r->compared == 0)
        strbuf_puts(s, ", none compared");
    else if (r->compared == values)
        strbuf_puts(s, values == 1 ? " agrees" : " agree");
    else
        strbuf_printf(s, ": %" PRId64 " agree%s", r->compared, r->compared == 1 ? "s" : "");
    skipped_text(s, r);
    if (r->has_allowance)
        strbuf_printf(s, ", worst error %.2g of its bound", r->worst_fraction);
}

static void mismatch_text(strbuf *s, const tensor_type *type, const compare_result *r)
{
    arena *a = s->arena;
    strbuf_printf(s, "%" PRId64 " of %" PRId64 " values differ", r->mismatches, count_values(r));
    skipped_text(s, r);
    strbuf_printf(s, ", first at %s: ", compare_place_text(type, r->first_mismatch, a));
    strbuf_printf(s, "machine %s, reference %s, ", value_text(type->dtype, r->machine, a), value_text(type->dtype, r->reference, a));
    if (r->allowed > 0)
        strbuf_printf(s, "allowed %.3g", r->allowed);
    else
        strbuf_puts(s, "must be equal");
}

const char *compare_text(const char *port, const tensor_type *type, const compare_result *r, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "%s: ", port);
    if (r->mismatches)
        mismatch_text(&s, type, r);
    else
        agreement_text(&s, r);
    if (r->uncovered)
        strbuf_printf(&s, " (%" PRId64 " not held by the output)", r->uncovered);
    return s.text;
}
