#include "runtime/field/expected.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/reference_load.h"
#include "runtime/field/known.h"
#include "runtime/field/residue.h"
#include "runtime/machine/parallel.h"

enum { MOST_DEPTH = 64 /* statements that ask each other on the stack */ };

/* An element of a tensor, as the first `before` statements leave it. */
typedef struct wanted {
    uint32_t tensor, before;
    int64_t element;
} wanted;

struct field_expected {
    const binary_kernel *kernel;
    uint64_t seed;
    const field_inputs *inputs;
    int64_t **written; /* by statement, of a scatter: by element of its destination the source's element, -1: none; NULL: not asked yet */
    unsigned threads;
    field_value **tensors; /* whole: by tensor */
    field_known known;     /* one by one: by tensor, statements before and element */
    einsum_makers *makers;
    bool *copied; /* by tensor: nothing but copies make it, which are followed again rather than known; NULL: no memory */
    int depth;
    wanted *later; /* elements that were asked for too deep on the stack: as many as statements at most */
    size_t later_count;
};

static bool is_input(const field_expected *x, uint32_t tensor)
{
    int32_t number = x->kernel->einsum.tensors[tensor].port;
    return number >= 0 && x->kernel->ports[number].direction == PORT_IN;
}

static field_value input_value(const field_expected *x, uint32_t tensor, int64_t element)
{
    return field_inputs_value(x->inputs, (uint32_t)x->kernel->einsum.tensors[tensor].port, (uint64_t)element);
}

/* ---- all of it ---- */

typedef struct filling {
    const field_expected *x;
    uint32_t tensor;
} filling;

static void fill_part(void *of, unsigned part, int64_t first, int64_t end)
{
    filling *f = of;
    (void)part;
    for (int64_t i = first; i < end; i++)
        f->x->tensors[f->tensor][i] = input_value(f->x, f->tensor, i);
}

static bool make_tensors(field_expected *x, diag_list *diags)
{
    enum { LEAST = 1 << 16 };
    const einsum *e = &x->kernel->einsum;
    x->tensors = calloc((size_t)e->tensor_count + 1, sizeof *x->tensors);
    for (uint32_t t = 0; x->tensors && t < e->tensor_count; t++) {
        int64_t elements = einsum_tensor_elements(e, t);
        x->tensors[t] = malloc((size_t)elements * sizeof **x->tensors + 1);
        if (!x->tensors[t]) {
            diag_add(diags, E_REFERENCE, SRC_NOWHERE, "not enough memory for the reference's tensor `%s`", e->tensors[t].name);
            return false;
        }
        filling f = {x, t};
        if (is_input(x, t))
            parallel_parts(elements, LEAST, x->threads, fill_part, &f);
    }
    return x->tensors;
}

static bool compute(field_expected *x, diag_list *diags)
{
    const reference_api *api = reference_load(diags);
    reference_kernel *k =
        api ? reference_compile(api, &x->kernel->einsum, x->kernel->name, REFERENCE_FIELD | REFERENCE_QUICK, diags) : NULL;
    if (!k)
        return false;
    bool done = make_tensors(x, diags) && reference_run_field(api, k, x->tensors, x->threads, diags);
    api->release(k);
    return done;
}

static bool *copied_tensors(const einsum *e)
{
    bool *copied = malloc((size_t)e->tensor_count + 1);
    if (!copied)
        return NULL;
    memset(copied, true, e->tensor_count);
    for (uint32_t i = 0; i < e->statement_count; i++)
        copied[e->statements[i].dst] &= e->statements[i].op == MATH_COPY;
    return copied;
}

field_expected *field_expected_new(const binary_kernel *k, const field_inputs *inputs, bool whole, unsigned threads, diag_list *diags)
{
    field_expected *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    *x = (field_expected){.kernel = k, .seed = inputs->seed, .inputs = inputs, .threads = parallel_workers(threads)};
    x->copied = copied_tensors(&k->einsum);
    x->makers = einsum_makers_new(&k->einsum);
    if (!x->makers)
        diag_add(diags, E_REFERENCE, SRC_NOWHERE, "not enough memory for the reference's statements");
    else if (!whole || compute(x, diags))
        return x;
    field_expected_free(x);
    return NULL;
}

void field_expected_free(field_expected *x)
{
    if (!x)
        return;
    for (uint32_t t = 0; x->tensors && t < x->kernel->einsum.tensor_count; t++)
        free(x->tensors[t]);
    free(x->tensors);
    for (uint32_t i = 0; x->written && i < x->kernel->einsum.statement_count; i++)
        free(x->written[i]);
    free(x->written);
    free(x->later);
    free(x->copied);
    einsum_makers_free(x->makers);
    field_known_free(&x->known);
    free(x);
}

/* ---- one element ---- */

static field_known_key known_key(const wanted *w)
{
    return (field_known_key){w->tensor, w->before, w->element};
}

static bool value_of(field_expected *x, wanted w, field_value *out);

/* ---- sums ---- */

enum { RUN_BLOCK = 256 /* elements of a run that are asked for at once */ };

/* Elements of a tensor, in a row. */
typedef struct element_run {
    uint32_t tensor, before;
    int64_t element, step, count;
} element_run;

/* Follows copies to where the elements of a run come from; of so many as have one way. */
static void follow_copies(const field_expected *x, element_run *r)
{
    const einsum_statement *by;
    while (r->count > 1 && r->step > 0 && x->copied && x->copied[r->tensor] && !is_input(x, r->tensor)) {
        int64_t from, from_step,
            count = einsum_copied(x->makers, r->before, r->tensor, r->element, r->step, r->count, &by, &from, &from_step);
        if (count == 0) {
            r->count = 1;
            return;
        }
        *r = (element_run){by->sources[0], (uint32_t)(by - x->kernel->einsum.statements), from, from_step, count};
    }
}

static bool values_of(field_expected *x, element_run r, field_value *out)
{
    for (int64_t done = 0, all = r.count; done < all;) {
        element_run now = {r.tensor, r.before, r.element + done * r.step, r.step, all - done};
        follow_copies(x, &now);
        bool given = !x->tensors && is_input(x, now.tensor);
        if (given)
            field_inputs_run(x->inputs, (uint32_t)x->kernel->einsum.tensors[now.tensor].port, now.element, now.step, now.count, out + done);
        for (int64_t i = 0; !given && i < now.count; i++)
            if (!value_of(x, (wanted){now.tensor, now.before, now.element + i * now.step}, out + done + i))
                return false;
        done += now.count;
    }
    return true;
}

typedef struct summing {
    field_expected *x;
    uint64_t sum;
    bool failed;
} summing;

static bool add_run(void *of, const einsum_run *run)
{
    summing *s = of;
    const einsum_product *p = &run->first;
    field_value a[RUN_BLOCK], b[RUN_BLOCK];
    bool products = p->b != EINSUM_NO_TENSOR;
    for (int64_t i = 0, n; i < run->count && !s->failed; i += n) {
        n = run->count - i < RUN_BLOCK ? run->count - i : RUN_BLOCK;
        s->failed = !values_of(s->x, (element_run){p->a, p->before, p->a_element + i * run->a_step, run->a_step, n}, a) ||
                    (products && !values_of(s->x, (element_run){p->b, p->before, p->b_element + i * run->b_step, run->b_step, n}, b));
        for (int64_t j = 0; j < n && !s->failed; j++)
            s->sum = residue((unsigned __int128)a[j] * (products ? b[j] : 1) + s->sum);
    }
    return !s->failed;
}

/* ---- maps: arithmetic of this file, and functions that are nothing but their name and arguments ---- */

static field_value named_value(const field_expected *x, uint64_t name, const uint64_t *arguments, unsigned count)
{
    field_function f = field_function_begin(x->seed, name);
    for (unsigned i = 0; i < count; i++)
        field_function_take(&f, arguments[i]);
    return field_function_end(&f);
}

static field_value operate(const field_expected *x, const scalar_row *row, const field_value *of)
{
    const field_value minus_one = FIELD_PRIME - 1;
    switch (row->op) {
    case SCALAR_ADD_I32:
    case SCALAR_ADD_F32: return (of[0] + of[1]) % FIELD_PRIME;
    case SCALAR_SUB_I32:
    case SCALAR_SUB_F32: return (of[0] + residue_product(minus_one, of[1])) % FIELD_PRIME;
    case SCALAR_MUL_I32:
    case SCALAR_MUL_F32: return residue_product(of[0], of[1]);
    case SCALAR_FMA_F32: return (residue_product(of[0], of[1]) + of[2]) % FIELD_PRIME;
    case SCALAR_NEG_I32:
    case SCALAR_NEG_F32: return residue_product(minus_one, of[0]);
    case SCALAR_CANONICAL_F32: return of[0]; /* of numbers it is nothing */
    default: return named_value(x, row->op, of, scalar_arity(row));
    }
}

/* An element of a source of the statement. */
static bool source_value(field_expected *x, const einsum_statement *s, unsigned source, int64_t element, field_value *out)
{
    return value_of(x, (wanted){s->sources[source], (uint32_t)(s - x->kernel->einsum.statements), element}, out);
}

/* Is it what numbers of the launch decide? These are numbers on both sides, and no values of the field. */
static bool decides(const field_expected *x, const einsum_statement *s)
{
    bool numbers = s->digit_count == 0 && s->source_count > 0;
    for (uint32_t i = 0; i < s->source_count && numbers; i++) {
        int32_t number = x->kernel->einsum.tensors[s->sources[i]].port;
        numbers = is_input(x, s->sources[i]) && x->inputs->rows[number].count > 0;
    }
    return numbers;
}

static uint32_t integer_of(scalar_op op, const uint32_t *of)
{
    switch (op) {
    case SCALAR_ADD_I32: return of[0] + of[1];
    case SCALAR_SUB_I32: return of[0] - of[1];
    case SCALAR_AND_I32: return of[0] & of[1];
    case SCALAR_EQ_I32: return of[0] == of[1];
    case SCALAR_LT_U32: return of[0] < of[1];
    case SCALAR_AND_BOOL: return of[0] && of[1];
    case SCALAR_OR_BOOL: return of[0] || of[1];
    case SCALAR_NOT_BOOL: return !of[0];
    case SCALAR_SELECT_I32: return of[0] ? of[1] : of[2];
    default: return UINT32_MAX; /* no condition has it */
    }
}

static field_value decision(const field_expected *x, const einsum_statement *s, const int64_t *elements)
{
    uint32_t stack[SCALAR_MAX_DEPTH + SCALAR_OPERANDS] = {0};
    unsigned depth = 0;
    for (uint32_t i = 0; i < s->step_count; i++) {
        uint32_t argument = s->steps[i].argument;
        const scalar_row *row = scalar_row_of(s->steps[i].op);
        if (row) {
            depth -= scalar_arity(row);
            stack[depth] = integer_of(row->op, &stack[depth]);
        } else {
            stack[depth] = s->steps[i].op == SCALAR_SOURCE ? (uint32_t)input_value(x, s->sources[argument], elements[argument]) : argument;
        }
        depth++;
    }
    return stack[0];
}

static bool map_value(field_expected *x, const einsum_statement *s, const int64_t *elements, field_value *out)
{
    field_value stack[SCALAR_MAX_DEPTH + 1];
    unsigned depth = 0;
    if (decides(x, s)) {
        *out = decision(x, s, elements);
        return true;
    }
    for (uint32_t i = 0; i < s->step_count; i++) {
        uint32_t argument = s->steps[i].argument;
        uint64_t bits = argument;
        const scalar_row *row = scalar_row_of(s->steps[i].op);
        stack[depth] = 0;
        if (row) {
            depth -= scalar_arity(row);
            stack[depth] = operate(x, row, &stack[depth]);
        } else if (s->steps[i].op != SCALAR_SOURCE) {
            stack[depth] = named_value(x, s->steps[i].op, &bits, 1);
        } else if (elements[argument] >= 0 && !source_value(x, s, argument, elements[argument], &stack[depth])) {
            return false;
        }
        depth++;
    }
    *out = stack[0];
    return true;
}

/* ---- folds: a sum or product of the field, or the multiset of their terms ---- */

typedef struct folding {
    field_expected *x;
    const einsum_statement *s;
    uint64_t value;
    field_function terms;
    bool failed;
} folding;

static bool fold_term(void *of, const int64_t *elements)
{
    folding *f = of;
    field_value term;
    f->failed = f->failed || !map_value(f->x, f->s, elements, &term);
    if (f->failed)
        return false;
    switch (f->s->fold) {
    case SCALAR_ADD_I32:
    case SCALAR_ADD_F32: f->value = (f->value + term) % FIELD_PRIME; break;
    case SCALAR_MUL_I32:
    case SCALAR_MUL_F32: f->value = residue_product(f->value, term); break;
    default: field_function_join(&f->terms, f->x->seed, f->s->fold, term);
    }
    return true;
}

static bool fold_value(field_expected *x, const einsum_statement *s, int64_t element, field_value *out)
{
    bool multiplies = s->fold == SCALAR_MUL_I32 || s->fold == SCALAR_MUL_F32, adds = s->fold == SCALAR_ADD_I32 || s->fold == SCALAR_ADD_F32;
    folding f = {.x = x, .s = s, .value = multiplies, .terms = field_function_begin(x->seed, s->fold)};
    einsum_folded(&x->kernel->einsum, s, element, fold_term, &f);
    *out = adds || multiplies ? f.value : field_function_end(&f.terms);
    return !f.failed;
}

/* ---- rows by index: lists are numbers ---- */

static bool list_numbers(field_expected *x, const einsum_statement *s, const int64_t *elements, int64_t *numbers)
{
    for (uint32_t i = 0; i < einsum_index_count(s); i++) {
        field_value v = 0;
        if (elements[i + 1] >= 0 && !source_value(x, s, i + 1, elements[i + 1], &v))
            return false;
        numbers[i] = field_number(v);
    }
    return true;
}

static bool gathered_value(field_expected *x, const einsum_statement *s, const int64_t *elements, field_value *out)
{
    int64_t numbers[EINSUM_SOURCES];
    *out = 0;
    if (!list_numbers(x, s, elements, numbers))
        return false;
    int64_t from = elements[0] < 0 ? -1 : einsum_moved(&x->kernel->einsum, s, elements[0], numbers);
    if (s->counted) {
        field_value count = 0;
        if (!source_value(x, s, s->source_count - 1, 0, &count))
            return false;
        from = elements[1] % s->count_span < field_number(count) ? from : -1;
    }
    return from < 0 || source_value(x, s, 0, from, out);
}

typedef struct writing {
    field_expected *x;
    const einsum_statement *s;
    int64_t *written;
} writing;

static bool write_row(void *of, int64_t to, const int64_t *elements)
{
    writing *w = of;
    int64_t numbers[EINSUM_SOURCES];
    if (to < 0 || !list_numbers(w->x, w->s, elements, numbers))
        return false;
    to = einsum_moved(&w->x->kernel->einsum, w->s, to, numbers);
    if (to >= 0)
        w->written[to] = elements[0];
    return true;
}

/* Which element of the source the scatter left in the destination's; NULL: it cannot be known. */
static const int64_t *written_by(field_expected *x, uint32_t number)
{
    const einsum *e = &x->kernel->einsum;
    const einsum_statement *s = &e->statements[number];
    int64_t count = einsum_tensor_elements(e, s->dst);
    if (!x->written)
        x->written = calloc((size_t)e->statement_count + 1, sizeof *x->written);
    if (!x->written || x->written[number])
        return x->written ? x->written[number] : NULL;
    int64_t *list = malloc((size_t)count * sizeof *list + 1);
    for (int64_t i = 0; list && i < count; i++)
        list[i] = -1;
    if (list && einsum_scatter_each(e, s, write_row, &(writing){x, s, list}))
        return x->written[number] = list;
    free(list);
    return NULL;
}

/* The statement that made the element, past scatters that did not. False: it cannot be known. */
static bool find_maker(field_expected *x, const wanted *w, int64_t *elements, const einsum_statement **out)
{
    const einsum *e = &x->kernel->einsum;
    for (uint32_t before = w->before;;) {
        const einsum_statement *s = *out = einsum_maker(x->makers, before, w->tensor, w->element, elements);
        if (!s || s->op != MATH_SCATTER)
            return true;
        before = (uint32_t)(s - e->statements);
        const int64_t *written = written_by(x, before);
        if (!written)
            return false;
        elements[0] = written[w->element];
        if (elements[0] >= 0)
            return true;
    }
}

/* All of it was computed, and nothing wrote the tensor afterwards. */
static bool is_kept(const field_expected *x, const wanted *w)
{
    const einsum *e = &x->kernel->einsum;
    for (uint32_t i = w->before; x->tensors && i < e->statement_count; i++)
        if (e->statements[i].dst == w->tensor)
            return false;
    return x->tensors;
}

static bool ask_later(field_expected *x, const wanted *w)
{
    if (!x->later)
        x->later = calloc((size_t)x->kernel->einsum.statement_count + 1, sizeof *x->later);
    if (x->later && x->later_count <= x->kernel->einsum.statement_count)
        x->later[x->later_count++] = *w;
    return false;
}

static bool value_of(field_expected *x, wanted w, field_value *out)
{
    if (is_kept(x, &w) || is_input(x, w.tensor)) {
        *out = x->tensors ? x->tensors[w.tensor][w.element] : input_value(x, w.tensor, w.element);
        return true;
    }
    bool first = x->depth == 0, last = x->depth >= MOST_DEPTH; /* what was asked for later is known, whatever it is */
    bool knows = first || last || !x->copied || !x->copied[w.tensor];
    *out = knows ? field_known_find(&x->known, known_key(&w)) : FIELD_NOTHING;
    if (*out != FIELD_NOTHING)
        return true;
    if (last)
        return ask_later(x, &w);
    summing s = {x, 0, false};
    int64_t elements[EINSUM_SOURCES];
    const einsum *e = &x->kernel->einsum;
    const einsum_statement *maker;
    x->depth++;
    s.failed = !find_maker(x, &w, elements, &maker);
    if (!s.failed && maker && maker->op == MATH_COPY)
        s.failed = elements[0] >= 0 && !source_value(x, maker, 0, elements[0], &s.sum);
    else if (!s.failed && maker && maker->op == MATH_MAP)
        s.failed = !map_value(x, maker, elements, &s.sum);
    else if (!s.failed && maker && maker->op == MATH_REDUCE)
        s.failed = !fold_value(x, maker, w.element, &s.sum);
    else if (!s.failed && maker && maker->op == MATH_FILL)
        s.sum = 0;
    else if (!s.failed && maker && maker->op == MATH_GATHER)
        s.failed = !gathered_value(x, maker, elements, &s.sum);
    else if (!s.failed && maker && maker->op == MATH_SCATTER)
        s.failed = !source_value(x, maker, 0, elements[0], &s.sum);
    else if (!s.failed && maker)
        einsum_runs(e, (uint32_t)(maker - e->statements) + 1, w.tensor, w.element, add_run, &s);
    x->depth--;
    if (s.failed)
        return false;
    *out = s.sum;
    if (knows)
        field_known_add(&x->known, known_key(&w), s.sum);
    return true;
}

/* What was too deep is computed by itself, and found when it is asked for again. Every such element is of an earlier statement than the
 * one before it in the list. */
bool field_expected_value(field_expected *x, uint32_t tensor, uint32_t before, int64_t element, field_value *out)
{
    const wanted w = {tensor, before, element};
    bool done = value_of(x, w, out);
    while (!done && x->later_count > 0) {
        size_t count = x->later_count;
        wanted next = x->later[count - 1];
        if (value_of(x, next, out)) {
            x->later_count--;
            if (field_known_find(&x->known, known_key(&next)) == FIELD_NOTHING) /* no room to know it */
                break;
            done = x->later_count == 0 && value_of(x, w, out);
        } else if (x->later_count == count || x->later[count].before >= next.before) {
            break;
        }
    }
    x->later_count = 0;
    return done;
}

/* ---- names ---- */

enum { FILTER_BITS = 1 << 16 };

static uint64_t filter_bit(field_value v)
{
    return v % FILTER_BITS;
}

void field_expected_find(field_expected *x, const field_value *values, size_t count, uint32_t *tensors, int64_t *elements)
{
    static const int64_t most_elements = INT64_C(1) << 28;
    const einsum *e = &x->kernel->einsum;
    uint64_t *filter = calloc(FILTER_BITS / 64, sizeof *filter);
    for (size_t i = 0; i < count; i++) {
        tensors[i] = EINSUM_NO_TENSOR;
        if (filter)
            filter[filter_bit(values[i]) / 64] |= UINT64_C(1) << filter_bit(values[i]) % 64;
    }
    for (uint32_t t = 0; filter && t < e->tensor_count; t++) {
        int64_t all = einsum_tensor_elements(e, t);
        if ((!x->tensors && !is_input(x, t)) || all > most_elements)
            continue;
        for (int64_t j = 0; j < all; j++) {
            field_value v = x->tensors ? x->tensors[t][j] : input_value(x, t, j);
            for (size_t i = 0; filter[filter_bit(v) / 64] >> filter_bit(v) % 64 & 1 && i < count; i++)
                if (values[i] == v && tensors[i] == EINSUM_NO_TENSOR) {
                    tensors[i] = t;
                    elements[i] = j;
                }
        }
    }
    for (size_t i = 0; !x->tensors && i < x->known.capacity; i++)
        for (size_t j = 0; j < count; j++)
            if (x->known.places[i].value == values[j] && tensors[j] == EINSUM_NO_TENSOR) {
                tensors[j] = (uint32_t)x->known.places[i].key.of;
                elements[j] = x->known.places[i].key.element;
            }
    free(filter);
}
