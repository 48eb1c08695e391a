/* A mapping as the shortest expression that parses back to it. */
#include "ir/mapping/mapping_parts.h"

typedef struct step_list {
    arena *arena;
    mapping_step *items;
    size_t count, capacity;
} step_list;

static void push_step(step_list *l, char op, int64_t n)
{
    mapping_step s = {.op = op, .n = n};
    ARENA_PUSH(l->arena, l->items, l->count, l->capacity, s);
}

static void push_pad(step_list *l, int64_t n, pad_kind kind)
{
    mapping_step s = {.op = '#', .n = n, .pad = kind};
    ARENA_PUSH(l->arena, l->items, l->count, l->capacity, s);
}

/* What makes the digit f of something of `size` positions that has just been pushed, in the shortest form. */
static void digit_steps(step_list *l, int64_t size, const factor *f)
{
    int64_t have = ceil_div(size, f->weight); /* positions after the division */
    bool cut = f->live < have;
    if (f->weight > 1 && size % f->weight == 0) {
        push_step(l, '/', f->weight);
    } else if (f->weight > 1 && cut) { /* cut first: what is left is divisible */
        push_step(l, '=', f->live * f->weight);
        push_step(l, '/', f->weight);
        have = f->live;
        cut = false;
    } else if (f->weight > 1) { /* pad first, to the final extent where that is the same */
        if (f->pad == PAD_TOP && f->extent <= MAPPING_MAX_SIZE / f->weight)
            have = f->extent;
        push_pad(l, have * f->weight, PAD_TOP);
        push_step(l, '/', f->weight);
    }
    if (cut) {
        push_step(l, have % f->live == 0 ? '%' : '=', f->live);
        have = f->live;
    }
    if (have < f->extent)
        push_pad(l, f->extent, f->pad);
}

/* An axis digit, a hole or a broadcast. */
static void simple_steps(step_list *l, const factor *f)
{
    if (f->kind == FACTOR_AXIS) {
        mapping_step s = {.op = 'A', .axis = f->axis};
        ARENA_PUSH(l->arena, l->items, l->count, l->capacity, s);
        digit_steps(l, f->axis->size, f);
        return;
    }
    push_step(l, '1', f->live);
    if (f->live < f->extent)
        push_pad(l, f->extent, f->pad);
}

static void mapping_steps(step_list *l, const mapping *m)
{
    if (m->count == 0)
        push_step(l, '1', 1);
    for (size_t i = 0; i < m->count; i++) {
        const factor *f = &m->factors[i];
        if (f->kind == FACTOR_COMPOSITE) {
            mapping_steps(l, f->inner);
            digit_steps(l, f->inner->size, f);
        } else {
            simple_steps(l, f);
        }
        if (i > 0)
            push_step(l, ',', 0);
    }
}

/* ---- axes of size 1 ---- */

/* Of each name of size 1 the first one after it that m has: in front of that it stands; NULL: after them all. */
static const axis **anchors_of(const mapping *m, const mapping_names *names, arena *a)
{
    const axis **anchors = ARENA_ARRAY(a, const axis *, names->count + 1), *held[64], *next = NULL;
    uint32_t count = mapping_axes(m, held, 64);
    for (uint32_t i = names->count; i-- > 0;) {
        for (uint32_t k = 0; k < count && names->axes[i]->size > 1; k++)
            next = held[k] == names->axes[i] ? held[k] : next;
        anchors[i] = next;
    }
    return anchors;
}

/* The names that stand in front of `at`, or for NULL after everything. */
static uint32_t take_names(const mapping_names *names, const axis **anchors, const axis *at, const axis **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < names->count; i++)
        if (names->axes[i]->size == 1 && anchors[i] == at)
            out[count++] = names->axes[i];
    return count;
}

static void push_axis(step_list *l, const axis *a)
{
    mapping_step s = {.op = 'A', .axis = a};
    ARENA_PUSH(l->arena, l->items, l->count, l->capacity, s);
}

static bool was_pushed(const step_list *l, const axis *a)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].op == 'A' && l->items[i].axis == a)
            return true;
    return false;
}

/* Whatever E is, `U, E` is E where U has one position. */
static step_list with_names(const step_list *steps, const mapping *m, const mapping_names *names)
{
    step_list l = {.arena = steps->arena};
    const axis **anchors = anchors_of(m, names, l.arena), **units = ARENA_ARRAY(l.arena, const axis *, names->count + 1);
    for (size_t i = 0; i < steps->count; i++) {
        const mapping_step *s = &steps->items[i];
        uint32_t count = s->op == 'A' && !was_pushed(&l, s->axis) ? take_names(names, anchors, s->axis, units) : 0;
        for (uint32_t k = 0; k < count; k++)
            push_axis(&l, units[k]);
        ARENA_PUSH(l.arena, l.items, l.count, l.capacity, *s);
        for (uint32_t k = 0; k < count; k++)
            push_step(&l, ',', 0);
    }
    uint32_t count = take_names(names, anchors, NULL, units);
    if (m->count == 0 && count > 0)
        l.count = 0; /* the first one instead of the `1` */
    for (uint32_t k = 0; k < count; k++) {
        push_axis(&l, units[k]);
        if (l.count > 1)
            push_step(&l, ',', 0);
    }
    return l;
}

size_t mapping_postfix(const mapping *m, const mapping_names *names, arena *a, const mapping_step **out)
{
    step_list l = {.arena = a};
    mapping_steps(&l, m);
    if (names)
        l = with_names(&l, m, names);
    *out = l.items;
    return l.count;
}

static void print_step(const mapping_step *s, strbuf *out)
{
    static const char *const pads[] = {" #", " #{0}", " #{!}"};
    if (s->op == 'A')
        strbuf_puts(out, s->axis->name);
    else if (s->op == '1')
        strbuf_printf(out, "%lld", (long long)s->n);
    else if (s->op == '#')
        strbuf_printf(out, "%s %lld", pads[s->pad], (long long)s->n);
    else
        strbuf_printf(out, " %c %lld", s->op, (long long)s->n);
}

void mapping_print_factor(const factor *f, strbuf *out)
{
    step_list l = {.arena = out->arena};
    if (f->kind == FACTOR_COMPOSITE) {
        strbuf_puts(out, "[");
        mapping_print(f->inner, out);
        strbuf_puts(out, "]");
        digit_steps(&l, f->inner->size, f);
    } else {
        simple_steps(&l, f);
    }
    for (size_t k = 0; k < l.count; k++)
        print_step(&l.items[k], out);
}

void mapping_print(const mapping *m, strbuf *out)
{
    if (m->count == 0)
        strbuf_puts(out, "1");
    for (size_t i = 0; i < m->count; i++) {
        strbuf_puts(out, i > 0 ? ", " : "");
        mapping_print_factor(&m->factors[i], out);
    }
}

const char *mapping_text(const mapping *m, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    mapping_print(m, &s);
    return s.text;
}

const char *mapping_text_named(const mapping *m, const mapping_names *names, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    if (!names)
        return mapping_text(m, a);
    const axis **anchors = anchors_of(m, names, a), **units = ARENA_ARRAY(a, const axis *, names->count + 1);
    for (size_t i = 0; i < m->count; i++) {
        const axis *held[64];
        const factor *f = &m->factors[i];
        uint32_t count = f->inner ? mapping_axes(f->inner, held, 64) : f->axis ? 1 : 0;
        held[0] = f->inner ? held[0] : f->axis;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t found = take_names(names, anchors, held[k], units);
            for (uint32_t u = 0; u < found; u++)
                strbuf_printf(&s, "%s%s", s.bytes ? ", " : "", units[u]->name);
            for (uint32_t n = 0; n < names->count; n++) /* once */
                anchors[n] = anchors[n] == held[k] ? names->axes[n] : anchors[n];
        }
        strbuf_puts(&s, s.bytes ? ", " : "");
        mapping_print_factor(f, &s);
    }
    uint32_t count = take_names(names, anchors, NULL, units);
    for (uint32_t u = 0; u < count; u++)
        strbuf_printf(&s, "%s%s", s.bytes ? ", " : "", units[u]->name);
    strbuf_puts(&s, s.bytes ? "" : "1");
    return s.text;
}
