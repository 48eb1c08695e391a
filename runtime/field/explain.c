#include "runtime/field/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tensor/fold.h"
#include "support/integer.h"
#include "support/order.h"
#include "support/strbuf.h"

enum { LOOKED_AT = 16 /* wrong elements */, SHOWN_FAULTS = 3, NAMED_FAULTS = 16, SHOWN_ELEMENTS = 3, MOST_NAMED = 512 };

/* A term, by its factors in order of value, so that a * b is b * a. */
typedef struct product {
    field_value low, high;
    size_t order;         /* in the list that it came from */
    einsum_product named; /* of those that should be there */
    uint32_t lane_first;  /* of the machine's: its lane is the lower factor */
} product;

typedef struct products {
    product *items;
    size_t count, capacity;
    arena *arena;
    field_expected *expected;
} products;

static void products_add(products *list, field_value a, field_value b, const einsum_product *named)
{
    if (a == 0 || b == 0)
        return; /* what is padded with zeros */
    product p = {a < b ? a : b, a < b ? b : a, list->count, named ? *named : (einsum_product){0}, a < b};
    ARENA_PUSH(list->arena, list->items, list->count, list->capacity, p);
}

static int compare_factors(const product *x, const product *y)
{
    return order_then(ORDER(x->low, y->low), ORDER(x->high, y->high));
}

static int compare_products(const void *a, const void *b)
{
    const product *x = a, *y = b;
    return order_then(compare_factors(x, y), ORDER(x->order, y->order));
}

static int compare_orders(const void *a, const void *b)
{
    const product *x = a, *y = b;
    return ORDER(x->order, y->order);
}

/* ---- what should be there ---- */

static bool add_expected(void *of, const einsum_product *p)
{
    products *list = of;
    field_value a = 0, b = 1;
    if (field_expected_value(list->expected, p->a, p->before, p->a_element, &a) &&
        (p->b == EINSUM_NO_TENSOR || field_expected_value(list->expected, p->b, p->before, p->b_element, &b)))
        products_add(list, a, b, p);
    return true;
}

static bool take_copied(void *of, const einsum_product *p)
{
    *(einsum_product *)of = *p;
    return true;
}

/* The terms of an element, through statements that only copy it. */
static void expected_terms(const einsum *e, uint32_t tensor, int64_t element, products *out)
{
    for (uint32_t before = e->statement_count;;) {
        bool sums = false, assigned = false;
        for (uint32_t i = 0; i < before; i++)
            if (e->statements[i].dst == tensor) {
                assigned = true;
                sums = sums || e->statements[i].op != MATH_COPY;
            }
        einsum_product from = {.b = EINSUM_NO_TENSOR};
        if (sums || !assigned || !einsum_terms(e, before, tensor, element, take_copied, &from) || e->tensors[from.a].port >= 0) {
            einsum_terms(e, before, tensor, element, add_expected, out);
            return;
        }
        tensor = from.a;
        element = from.a_element;
        before = from.before;
    }
}

/* ---- faults of an element ---- */

typedef enum fault_kind { TERM_LACKS, TERM_TWICE, TERM_OTHER, TERM_MORE } fault_kind;

typedef struct term_fault {
    fault_kind kind;
    product should, has; /* TERM_OTHER: both; TERM_MORE: has; else should */
    size_t times;
} term_fault;

typedef struct finding {
    int64_t element;
    const char *holds; /* what another element should be */
    term_fault *faults;
    size_t count, capacity;
} finding;

static bool shares_factor(const product *a, const product *b)
{
    return a->low == b->low || a->high == b->high || a->low == b->high || a->high == b->low;
}

/* What is lacking and what is in its place: terms with a factor in common first, then in their order. */
static void pair_up(finding *f, products *lacking, products *more, arena *a)
{
    enum { FEW = 4096 };
    order_sort(lacking->items, lacking->count, sizeof *lacking->items, compare_orders);
    order_sort(more->items, more->count, sizeof *more->items, compare_orders);
    bool *used = ARENA_ARRAY(a, bool, more->count + 1);
    size_t next = 0;
    for (size_t i = 0; i < lacking->count; i++) {
        size_t found = more->count;
        if (i < more->count && !used[i] && shares_factor(&lacking->items[i], &more->items[i]))
            found = i;
        for (size_t j = 0; found == more->count && j < more->count && more->count < FEW; j++)
            if (!used[j] && shares_factor(&lacking->items[i], &more->items[j]))
                found = j;
        while (next < more->count && used[next])
            next++;
        if (found == more->count && lacking->count == more->count)
            found = next;
        term_fault t = {.kind = TERM_LACKS, .should = lacking->items[i]};
        if (found < more->count) {
            used[found] = true;
            t.kind = TERM_OTHER;
            t.has = more->items[found];
        }
        ARENA_PUSH(a, f->faults, f->count, f->capacity, t);
    }
    for (size_t j = 0; j < more->count; j++)
        if (!used[j]) {
            term_fault t = {.kind = TERM_MORE, .has = more->items[j]};
            ARENA_PUSH(a, f->faults, f->count, f->capacity, t);
        }
}

/* Both lists side by side, as multisets. */
static void compare_lists(finding *f, products *should, products *has, arena *a)
{
    products lacking = {.arena = a}, more = {.arena = a};
    size_t capacity_l = 0, capacity_m = 0;
    order_sort(should->items, should->count, sizeof *should->items, compare_products);
    order_sort(has->items, has->count, sizeof *has->items, compare_products);
    for (size_t i = 0, j = 0; i < should->count || j < has->count;) {
        const product *x = i < should->count ? &should->items[i] : NULL, *y = j < has->count ? &has->items[j] : NULL;
        int order = !x ? 1 : !y ? -1 : compare_factors(x, y);
        size_t wanted = 0, there = 0;
        product first = order <= 0 ? *x : *y, one = order == 0 ? *y : first;
        for (; i < should->count && should->items[i].low == first.low && should->items[i].high == first.high; i++)
            wanted++;
        for (; j < has->count && has->items[j].low == first.low && has->items[j].high == first.high; j++)
            there++;
        for (size_t n = there; n < wanted; n++)
            ARENA_PUSH(a, lacking.items, lacking.count, capacity_l, first);
        if (wanted == 0)
            for (size_t n = 0; n < there; n++)
                ARENA_PUSH(a, more.items, more.count, capacity_m, one);
        else if (there > wanted) {
            term_fault t = {.kind = TERM_TWICE, .should = first, .times = there - wanted + 1};
            ARENA_PUSH(a, f->faults, f->count, f->capacity, t);
        }
    }
    pair_up(f, &lacking, &more, a);
}

/* ---- tracing ---- */

static bool trace_terms(field_machine *m, uint32_t port_number, const field_wrong *w, products *out, bool *is_unwritten)
{
    const port *p = &m->plans->kernel->ports[port_number];
    field_place at;
    fault f = {0};
    field_terms terms = {0};
    field_value value;
    field_port_place(m, port_number, w->position, &at);
    field_run end = {.machine = m, .time = m->event_count, .unknowns = {.seed = m->seed, .key = (uint64_t)w->element}, .fault = &f};
    field_trace_terms(m->trace, &terms);
    field_read(&end, &at, p->dtype, 1, 1, &value);
    field_trace_terms(m->trace, NULL);
    for (size_t i = 0; i < terms.count && !f.set; i++)
        products_add(out, terms.items[i].lane, terms.items[i].weight, NULL);
    if (!terms.is_sum && !f.set && field_trace_unwritten(m->trace, value))
        *is_unwritten = true;
    else if (!terms.is_sum && !f.set)
        products_add(out, value, 1, NULL);
    free(terms.items);
    return !f.set;
}

/* The elements whose values wrong elements hold. */
static void find_exchanged(const einsum *e, field_expected *x, uint32_t tensor, const field_wrong *wrong, finding *findings, size_t count,
                           arena *a)
{
    field_value values[LOOKED_AT];
    uint32_t tensors[LOOKED_AT];
    int64_t elements[LOOKED_AT];
    for (size_t i = 0; i < count; i++)
        values[i] = wrong[i].machine;
    field_expected_find(x, values, count, tensors, elements);
    for (size_t i = 0; i < count; i++) {
        if (findings[i].holds || tensors[i] == EINSUM_NO_TENSOR || einsum_degree(e, tensors[i]) != einsum_degree(e, tensor) ||
            einsum_degree(e, tensor) < 2)
            continue;
        const char *name = e->tensors[tensors[i]].name, *at = einsum_element_text(e, tensors[i], elements[i], a);
        findings[i].holds = arena_printf(a, "what %s%s%s%s should be", name, *at ? "[" : "", at, *at ? "]" : "");
    }
}

/* ---- words ---- */

typedef struct names {
    const einsum *einsum;
    const struct field_trace *trace;
    field_value values[MOST_NAMED];
    uint32_t tensors[MOST_NAMED];
    int64_t elements[MOST_NAMED];
    size_t count;
} names;

static void names_add(names *n, field_value v)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->values[i] == v)
            return;
    if (n->count < MOST_NAMED)
        n->values[n->count++] = v;
}

static const char *element_name(const einsum *e, uint32_t tensor, int64_t element, arena *a)
{
    const char *at = einsum_element_text(e, tensor, element, a);
    return arena_printf(a, "%s%s%s%s", e->tensors[tensor].name, *at ? "[" : "", at, *at ? "]" : "");
}

static const char *value_name(const names *n, field_value v, arena *a)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->values[i] == v && n->tensors[i] != EINSUM_NO_TENSOR)
            return element_name(n->einsum, n->tensors[i], n->elements[i], a);
    return field_trace_unwritten(n->trace, v) ? "memory that nobody wrote" : "a value that is no tensor's";
}

static const char *should_name(const names *n, const product *p, arena *a)
{
    const char *first = element_name(n->einsum, p->named.a, p->named.a_element, a);
    if (p->named.b == EINSUM_NO_TENSOR)
        return first;
    return arena_printf(a, "%s * %s", first, element_name(n->einsum, p->named.b, p->named.b_element, a));
}

static const char *has_name(const names *n, const product *p, arena *a)
{
    if (p->low == 1)
        return value_name(n, p->high, a);
    field_value lane = p->lane_first ? p->low : p->high, weight = p->lane_first ? p->high : p->low;
    return arena_printf(a, "%s * %s", value_name(n, lane, a), value_name(n, weight, a));
}

static const char *fault_text(const names *n, const term_fault *t, arena *a)
{
    switch (t->kind) {
    case TERM_LACKS: return arena_printf(a, "lacks %s", should_name(n, &t->should, a));
    case TERM_TWICE:
        return t->times == 2 ? arena_printf(a, "has %s twice", should_name(n, &t->should, a))
                             : arena_printf(a, "has %s %zu times", should_name(n, &t->should, a), t->times);
    case TERM_OTHER: return arena_printf(a, "has %s in place of %s", has_name(n, &t->has, a), should_name(n, &t->should, a));
    default: return arena_printf(a, "has %s too many", has_name(n, &t->has, a));
    }
}

static const char *finding_text(const names *n, uint32_t tensor, const finding *f, arena *a)
{
    const char *text = element_name(n->einsum, tensor, f->element, a);
    if (f->holds)
        return arena_printf(a, "%s is %s", text, f->holds);
    if (f->count == 0)
        return arena_printf(a, "%s has its terms, and is another value", text);
    for (size_t i = 0; i < f->count && i < SHOWN_FAULTS; i++)
        text = arena_printf(a, "%s%s %s", text, i ? "," : "", fault_text(n, &f->faults[i], a));
    return f->count > SHOWN_FAULTS ? arena_printf(a, "%s, and %zu more", text, f->count - SHOWN_FAULTS) : text;
}

/* ---- what findings have in common ---- */

static bool axis_of_tensor(const einsum *e, uint32_t tensor, uint32_t axis)
{
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        if (e->tensors[tensor].axes[i] == axis)
            return true;
    return false;
}

static int64_t coordinate_of(const einsum *e, uint32_t tensor, int64_t element, uint32_t axis)
{
    for (uint32_t i = e->tensors[tensor].rank; i-- > 0;) {
        int64_t size = e->axes[e->tensors[tensor].axes[i]].size;
        if (e->tensors[tensor].axes[i] == axis)
            return element % size;
        element /= size;
    }
    return -1;
}

/* "K = 4094", the coordinates of the terms of a kind along the axes that are summed; "": none. */
static const char *summed_text(const einsum *e, uint32_t tensor, const finding *f, fault_kind kind, arena *a)
{
    const char *text = "";
    for (uint32_t axis = 0; axis < e->axis_count; axis++) {
        int64_t *values = ARENA_ARRAY(a, int64_t, f->count + 1);
        size_t count = 0;
        for (size_t i = 0; i < f->count; i++) {
            const einsum_product *p = &f->faults[i].should.named;
            if (f->faults[i].kind != kind || kind == TERM_MORE || p->b == EINSUM_NO_TENSOR || axis_of_tensor(e, tensor, axis))
                continue;
            int64_t c = coordinate_of(e, p->a, p->a_element, axis);
            c = c < 0 ? coordinate_of(e, p->b, p->b_element, axis) : c;
            if (c >= 0)
                values[count++] = c;
        }
        if (count > 0)
            text = arena_printf(a, "%s%s%s%s%s", text, *text ? ", " : "", e->axes[axis].name, count > 1 ? " " : " = ",
                                fold_text(values, count, e->axes[axis].size, a));
    }
    return text;
}

static bool named_at(const names *n, field_value v, uint32_t tensor, int64_t *element)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->values[i] == v && n->tensors[i] == tensor) {
            *element = n->elements[i];
            return true;
        }
    return false;
}

/* How much further along an axis the factors of replaced terms are than they should be, if all are as far. */
static bool common_distance(const names *n, const finding *f, bool second, uint32_t axis, int64_t *distance)
{
    bool some = false;
    for (size_t i = 0; i < f->count && i < NAMED_FAULTS; i++) {
        const einsum_product *p = &f->faults[i].should.named;
        uint32_t tensor = second ? p->b : p->a;
        int64_t there = 0, element = second ? p->b_element : p->a_element;
        if (f->faults[i].kind != TERM_OTHER)
            continue;
        if (tensor == EINSUM_NO_TENSOR || !axis_of_tensor(n->einsum, tensor, axis) ||
            (!named_at(n, f->faults[i].has.low, tensor, &there) && !named_at(n, f->faults[i].has.high, tensor, &there)))
            return false;
        int64_t apart = coordinate_of(n->einsum, tensor, there, axis) - coordinate_of(n->einsum, tensor, element, axis);
        if (some && apart != *distance)
            return false;
        *distance = apart;
        some = true;
    }
    return some;
}

/* ", a[K + 4]": where the factors that are there instead are found. */
static const char *distance_text(const names *n, const finding *f, arena *a)
{
    const einsum *e = n->einsum;
    const char *text = "";
    for (size_t i = 0; i < f->count; i++) {
        if (f->faults[i].kind != TERM_OTHER)
            continue;
        const einsum_product *p = &f->faults[i].should.named;
        for (int second = 0; second < 2; second++)
            for (uint32_t axis = 0; axis < e->axis_count; axis++) {
                int64_t d = 0;
                if (common_distance(n, f, second, axis, &d) && d != 0)
                    text = arena_printf(a, "%s%s %s[%s %c %" PRId64 "]", text, *text ? "," : " by", e->tensors[second ? p->b : p->a].name,
                                        e->axes[axis].name, d < 0 ? '-' : '+', d < 0 ? -d : d);
            }
        break;
    }
    return *text && f->count > NAMED_FAULTS ? arena_printf(a, "%s, the first %d at least", text, NAMED_FAULTS) : text;
}

static const char *pattern_text(const names *n, uint32_t tensor, const finding *f, arena *a)
{
    const einsum *e = n->einsum;
    static const char *const words[] = {
        [TERM_LACKS] = "missing", [TERM_TWICE] = "there too often", [TERM_OTHER] = "replaced", [TERM_MORE] = ""};
    const char *text = "";
    for (int kind = 0; kind < TERM_MORE && !f->holds; kind++) {
        const char *axes = summed_text(e, tensor, f, (fault_kind)kind, a);
        if (*axes)
            text = arena_printf(a, "%s%s%s %s %s%s", text, *text ? "; " : "", axes, strchr(axes, '=') ? "is" : "are", words[kind],
                                kind == TERM_OTHER ? distance_text(n, f, a) : "");
    }
    return text;
}

static void note_pattern(const names *n, uint32_t tensor, const finding *findings, size_t count, size_t all, diag_list *diags, diag *d)
{
    arena *a = diags->arena;
    const einsum *e = n->einsum;
    const char *first = count > 1 ? pattern_text(n, tensor, &findings[0], a) : "", *axes = "";
    for (size_t i = 1; i < count; i++)
        if (strcmp(first, pattern_text(n, tensor, &findings[i], a)) != 0)
            first = "";
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        axes = arena_printf(a, "%s%s%s", axes, i ? ", " : "", e->axes[e->tensors[tensor].axes[i]].name);
    if (!*first)
        return;
    if ((int64_t)all == einsum_tensor_elements(e, tensor))
        diag_note(diags, d, SRC_NOWHERE, "for all %s: %s", axes, first);
    else
        diag_note(diags, d, SRC_NOWHERE, "in all of them: %s", first);
}

void field_explain(field_machine *m, field_expected *x, uint32_t port_number, uint32_t tensor, const field_wrong *wrong, size_t count,
                   diag_list *diags, diag *d)
{
    const einsum *e = &m->plans->kernel->einsum;
    arena *a = diags->arena;
    size_t looked = count < LOOKED_AT ? count : LOOKED_AT;
    field_wrong chosen[LOOKED_AT];
    finding findings[LOOKED_AT] = {{0}};
    struct field_trace *own = m->trace ? NULL : field_trace_new(m);
    if (own)
        m->trace = own;
    names *n = ARENA_NEW(a, names);
    n->einsum = e;
    n->trace = m->trace;
    for (size_t i = 0; i < looked && m->trace; i++) { /* spread over all of them, the first one among them */
        chosen[i] = wrong[i * count / looked];
        products should = {.arena = a, .expected = x}, has = {.arena = a};
        findings[i].element = chosen[i].element;
        expected_terms(e, tensor, chosen[i].element, &should);
        bool is_unwritten = false;
        if (trace_terms(m, port_number, &chosen[i], &has, &is_unwritten) && !is_unwritten)
            compare_lists(&findings[i], &should, &has, a);
        findings[i].holds = is_unwritten ? "memory that nobody wrote" : NULL;
        for (size_t j = 0; j < findings[i].count && j < NAMED_FAULTS; j++) {
            names_add(n, findings[i].faults[j].has.low);
            names_add(n, findings[i].faults[j].has.high);
        }
    }
    if (m->trace) {
        find_exchanged(e, x, tensor, chosen, findings, looked, a);
        field_expected_find(x, n->values, n->count, n->tensors, n->elements);
        for (size_t i = 0; i < looked && i < SHOWN_ELEMENTS; i++)
            diag_note(diags, d, SRC_NOWHERE, "%s", finding_text(n, tensor, &findings[i], a));
        note_pattern(n, tensor, findings, looked, count, diags, d);
    }
    if (own) {
        m->trace = NULL;
        field_trace_free(own);
    }
}
