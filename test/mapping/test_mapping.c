/* The laws of the mapping algebra, judged by enumeration.
 *
 * The judge is a tree of the expression as written, evaluated straight from the definition ("Mapping
 * Expressions", Semantics); it knows no factors. Random expressions over small axes cover every constructor
 * and nesting; for each the whole function is compared, position by position. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/mapping/mapping.h"
#include "ir/mapping/mapping_parts.h"
#include "test/suite.h"

enum { AXES = 4, MAX_POSITIONS = 4096 };

static const char *const axis_names[AXES] = {"A", "B", "Cc", "D_1"};

/* ---- the definition ---- */

typedef struct tree {
    char op; /* 'A' axis, 'n' broadcast, ',' '/' '%' '=' '#' */
    int axis;
    int64_t n, size;
    struct tree *left, *right;
} tree;

typedef struct index_value {
    bool live;
    int64_t coords[AXES];
} index_value;

static int64_t axis_sizes[AXES];

static index_value define(const tree *t, int64_t i)
{
    index_value v = {.live = i >= 0 && i < t->size};
    if (!v.live)
        return v;
    switch (t->op) {
    case 'A': v.coords[t->axis] = i; return v;
    case 'n': return v;
    case '/': return define(t->left, i * t->n);
    case '%':
    case '=': return define(t->left, i);
    case '#': return i < t->left->size ? define(t->left, i) : (index_value){.live = false};
    default:;
        index_value l = define(t->left, i / t->right->size), r = define(t->right, i % t->right->size);
        v.live = l.live && r.live;
        for (int a = 0; a < AXES; a++) {
            v.coords[a] = l.coords[a] + r.coords[a];
            v.live = v.live && v.coords[a] < axis_sizes[a];
        }
        return v;
    }
}

/* ---- random expressions ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

static tree *tree_new(arena *a, char op, tree *l, tree *r, int64_t n, int64_t size)
{
    tree *t = ARENA_NEW(a, tree);
    *t = (tree){.op = op, .left = l, .right = r, .n = n, .size = size};
    return t;
}

static int64_t random_divisor(int64_t size)
{
    int64_t d;
    do
        d = 1 + random_below((uint32_t)size);
    while (size % d);
    return d;
}

/* t / n next to t % n, some of them with a cut of t / n between: often, but not always, t again. */
static tree *parts_of(arena *a, tree *t)
{
    int64_t n = random_divisor(t->size), more = random_divisor(t->size / n);
    tree *inner = tree_new(a, '%', t, NULL, n, n), *rest = tree_new(a, '/', t, NULL, n, t->size / n);
    if (more > 1 && more < t->size / n && random_below(2)) {
        inner = tree_new(a, ',', tree_new(a, '%', rest, NULL, more, more), inner, 0, n * more);
        rest = tree_new(a, '/', t, NULL, n * more, t->size / n / more);
    }
    return tree_new(a, ',', rest, inner, 0, t->size);
}

static tree *random_tree(arena *a, int depth)
{
    uint32_t pick = depth == 0 ? random_below(6) : random_below(18);
    if (pick < 5) {
        tree *t = tree_new(a, 'A', NULL, NULL, 0, 0);
        t->axis = (int)random_below(AXES);
        t->size = axis_sizes[t->axis];
        return t;
    }
    if (pick == 5) {
        int64_t n = 1 + random_below(3);
        return tree_new(a, 'n', NULL, NULL, n, n);
    }
    tree *l = random_tree(a, depth - 1);
    if (pick < 10) {
        tree *r = random_tree(a, depth - 1);
        return l->size * r->size > MAX_POSITIONS ? l : tree_new(a, ',', l, r, 0, l->size * r->size);
    }
    if (pick >= 16)
        return parts_of(a, l);
    int64_t n;
    switch (pick) {
    case 10:
    case 11: n = random_divisor(l->size); return tree_new(a, '/', l, NULL, n, l->size / n);
    case 12:
    case 13: n = random_divisor(l->size); return tree_new(a, '%', l, NULL, n, n);
    case 14: n = 1 + random_below((uint32_t)l->size); return tree_new(a, '=', l, NULL, n, n);
    default:
        n = l->size + random_below(random_below(2) ? 8 : (uint32_t)l->size * 2 + 1);
        return n > MAX_POSITIONS ? l : tree_new(a, '#', l, NULL, n, n);
    }
}

/* t in other words at some of its nodes, mostly with the same meaning. */
static tree *respell(arena *a, tree *t)
{
    tree *out = tree_new(a, t->op, t->left ? respell(a, t->left) : NULL, t->right ? respell(a, t->right) : NULL, t->n, t->size);
    out->axis = t->axis;
    int64_t n = 1 + random_below(4);
    if (out->size * n > MAX_POSITIONS)
        return out;
    switch (random_below(12)) {
    case 0: return parts_of(a, out);
    case 1: return tree_new(a, '%', tree_new(a, '#', out, NULL, out->size * n, out->size * n), NULL, out->size, out->size);
    case 2: return tree_new(a, '=', tree_new(a, '#', out, NULL, out->size + n, out->size + n), NULL, out->size, out->size);
    case 3: return tree_new(a, '/', tree_new(a, ',', out, tree_new(a, 'n', NULL, NULL, n, n), 0, out->size * n), NULL, n, out->size);
    case 4:
        return tree_new(a, '/', parts_of(a, tree_new(a, ',', out, tree_new(a, 'n', NULL, NULL, n, n), 0, out->size * n)), NULL, n,
                        out->size);
    default: return out;
    }
}

static const mapping *build(mapping_context *c, const tree *t)
{
    const mapping *out = NULL;
    mapping_status s = MAPPING_OK;
    switch (t->op) {
    case 'A': return mapping_symbol(c, mapping_axis(c, axis_names[t->axis], axis_sizes[t->axis]));
    case 'n': s = mapping_broadcast(c, t->n, &out); break;
    case ',': s = mapping_pair(c, build(c, t->left), build(c, t->right), &out); break;
    case '/': s = mapping_stride(c, build(c, t->left), t->n, &out); break;
    case '%': s = mapping_modulo(c, build(c, t->left), t->n, &out); break;
    case '=': s = mapping_resize(c, build(c, t->left), t->n, &out); break;
    case '#': s = mapping_pad(c, build(c, t->left), t->n, PAD_TOP, &out); break;
    }
    ck_assert_int_eq(s, MAPPING_OK);
    return out;
}

/* ---- a reader for printed mappings, so that printing is checked without the compiler's parser ---- */

static tree *read_mapping(arena *a, const char **p);

static void skip_blanks(const char **p)
{
    while (**p == ' ')
        ++*p;
}

static tree *read_primary(arena *a, const char **p)
{
    skip_blanks(p);
    if (**p == '[') {
        ++*p;
        tree *t = read_mapping(a, p);
        ck_assert_int_eq(**p, ']');
        ++*p;
        return t;
    }
    if (**p >= '0' && **p <= '9') {
        int64_t n = strtoll(*p, (char **)p, 10);
        return tree_new(a, 'n', NULL, NULL, n, n);
    }
    for (int k = 0; k < AXES; k++) {
        size_t bytes = strlen(axis_names[k]);
        if (strncmp(*p, axis_names[k], bytes) == 0) {
            *p += bytes;
            tree *t = tree_new(a, 'A', NULL, NULL, 0, axis_sizes[k]);
            t->axis = k;
            return t;
        }
    }
    ck_abort_msg("cannot read printed mapping at `%s`", *p);
    return NULL;
}

static tree *read_postfix(arena *a, const char **p)
{
    tree *t = read_primary(a, p);
    for (;;) {
        skip_blanks(p);
        char op = **p;
        if (!op || !strchr("/%=#", op))
            return t;
        ++*p;
        skip_blanks(p);
        int64_t n = strtoll(*p, (char **)p, 10);
        if (op == '/' || op == '%')
            ck_assert_msg(n > 0 && t->size % n == 0, "printed %c %lld of %lld", op, (long long)n, (long long)t->size);
        if (op == '=')
            ck_assert(n <= t->size);
        if (op == '#')
            ck_assert(n >= t->size);
        t = tree_new(a, op, t, NULL, n, op == '/' ? t->size / n : n);
    }
}

static tree *read_mapping(arena *a, const char **p)
{
    tree *t = read_postfix(a, p);
    skip_blanks(p);
    if (**p != ',')
        return t;
    ++*p;
    tree *r = read_mapping(a, p);
    return tree_new(a, ',', t, r, 0, t->size * r->size);
}

static void write_tree(const tree *t, strbuf *s)
{
    if (t->op == 'A')
        strbuf_puts(s, axis_names[t->axis]);
    else if (t->op == 'n')
        strbuf_printf(s, "%lld", (long long)t->n);
    else if (t->op == ',') {
        strbuf_puts(s, "[");
        write_tree(t->left, s);
        strbuf_puts(s, ", ");
        write_tree(t->right, s);
        strbuf_puts(s, "]");
    } else {
        write_tree(t->left, s);
        strbuf_printf(s, " %c %lld", t->op, (long long)t->n);
    }
}

static void random_axes(void)
{
    for (int k = 0; k < AXES; k++)
        axis_sizes[k] = 1 + random_below(k == 0 ? 16 : 7);
}

static index_value meaning(mapping_context *c, const mapping *m, int64_t i)
{
    int64_t coords[AXES] = {0};
    index_value v = {.live = mapping_map(m, i, coords)};
    for (int k = 0; k < AXES && v.live; k++)
        v.coords[k] = coords[mapping_axis(c, axis_names[k], axis_sizes[k])->number];
    return v;
}

static bool same_index(index_value x, index_value y)
{
    return x.live == y.live && (!x.live || memcmp(x.coords, y.coords, sizeof x.coords) == 0);
}

static mapping_context *new_context(arena *a)
{
    mapping_context *c = mapping_context_new(a);
    for (int k = 0; k < AXES; k++)
        mapping_axis(c, axis_names[k], axis_sizes[k]);
    return c;
}

static int rounds(void)
{
    return suite_rounds(20000);
}

/* Law: the factors mean what the expression says; the printed form reads back to the same object. */
START_TEST(means_and_prints)
{
    for (int round = 0; round < rounds(); round++) {
        random_state = (uint64_t)round * 77 + 1;
        random_axes();
        arena *a = arena_new();
        mapping_context *c = new_context(a);
        tree *t = random_tree(a, 4);
        const mapping *m = build(c, t);
        strbuf spelt;
        strbuf_init(&spelt, a);
        write_tree(t, &spelt);
        const char *text = mapping_text(m, a);
        ck_assert_int_eq(m->size, t->size);
        bool full = true;
        for (int64_t i = 0; i < t->size; i++) {
            index_value want = define(t, i);
            full = full && want.live;
            ck_assert_msg(same_index(want, meaning(c, m, i)), "round %d: m![%s] became %s, differs at position %lld", round, spelt.text,
                          text, (long long)i);
        }
        if (mapping_is_full(m))
            ck_assert_msg(full, "round %d: %s claims to be full", round, text);
        int64_t none[AXES] = {0};
        ck_assert(!mapping_map(m, m->size, none) && !mapping_map(m, -1, none));
        const char *p = text;
        tree *again = read_mapping(a, &p);
        ck_assert_int_eq(*p, 0);
        ck_assert_msg(build(c, again) == m, "round %d: m![%s] printed as %s, which means %s", round, spelt.text, text,
                      mapping_text(build(c, again), a));
        ck_assert_msg(strchr(text, '[') || strlen(text) <= spelt.bytes, "round %d: %s printed longer: %s", round, spelt.text, text);
        arena_free(a);
    }
}
END_TEST

/* Law: two expressions with the same function are equal, and the same object unless a composite is involved. */
START_TEST(equal_functions_are_one_object)
{
    int equal = 0, apart = 0;
    for (int round = 0; round < rounds(); round++) {
        random_state = (uint64_t)round * 31 + 7;
        for (int k = 0; k < AXES; k++)
            axis_sizes[k] = 1 + random_below(4);
        arena *a = arena_new();
        mapping_context *c = new_context(a);
        tree *x = random_tree(a, 3), *y = round % 2 ? respell(a, x) : random_tree(a, 3);
        bool same = x->size == y->size;
        for (int64_t i = 0; i < x->size && same; i++)
            same = same_index(define(x, i), define(y, i));
        const mapping *mx = build(c, x), *my = build(c, y);
        if (mx == my)
            ck_assert(same);
        equal += same;
        ck_assert_int_eq(mapping_equal(c, mx, my), same);
        if (same && mx != my) {
            apart++;
            ck_assert_msg(strchr(mapping_text(mx, a), '[') || strchr(mapping_text(my, a), '['), "digits told apart");
            strbuf s;
            strbuf_init(&s, a);
            write_tree(x, &s);
            strbuf_puts(&s, "  and  ");
            write_tree(y, &s);
            if (apart < 20)
                printf("same function, two objects: %s: %s and %s\n", s.text, mapping_text(mx, a), mapping_text(my, a));
        }
        arena_free(a);
    }
    printf("%d pairs mean the same, %d of them are two objects\n", equal, apart);
    ck_assert_int_gt(equal, rounds() / 4);
    ck_assert_int_le(apart, equal / 1000);
}
END_TEST

/* What stretch s, which begins at `from`, says about the definition. */
static void check_stretch(const tree *t, int64_t from, mapping_stretch s, const char *text)
{
    int64_t drift[AXES];
    bool known = false;
    ck_assert(s.period > 0 && s.window > s.period && from + s.window <= t->size);
    for (int64_t j = from; j + s.period < from + s.window; j++) {
        index_value x = define(t, j), y = define(t, j + s.period);
        ck_assert_msg(x.live == y.live, "%s: %lld + %lld in the window %lld from %lld", text, (long long)j, (long long)s.period,
                      (long long)s.window, (long long)from);
        for (int k = 0; k < AXES && x.live; k++) {
            ck_assert_msg(!known || y.coords[k] - x.coords[k] == drift[k], "%s: drift at %lld", text, (long long)j);
            drift[k] = y.coords[k] - x.coords[k];
        }
        known = known || x.live;
    }
}

START_TEST(stretches_repeat)
{
    int64_t checked = 0;
    for (int round = 0; round < rounds(); round++) {
        random_state = (uint64_t)round * 83 + 29;
        random_axes();
        arena *a = arena_new();
        mapping_context *c = new_context(a);
        const tree *t = random_tree(a, 4);
        const mapping *m = build(c, t);
        mapping_stretch s[MAPPING_MAX_STRETCHES];
        for (int k = 0; k < 4; k++) {
            int64_t from = (int64_t)random_below((uint32_t)t->size);
            size_t count = mapping_stretches(c, m, from, s);
            checked += (int64_t)count;
            for (size_t i = 0; i < count; i++)
                check_stretch(t, from, s[i], mapping_text(m, a));
        }
        arena_free(a);
    }
    ck_assert_int_gt(checked, rounds());
}
END_TEST

/* Law: what the comparison by stretches says is what enumeration says, of equal and of almost equal functions. */
START_TEST(stretches_decide)
{
    int equal = 0, apart = 0;
    for (int round = 0; round < rounds(); round++) {
        random_state = (uint64_t)round * 57 + 11;
        random_axes();
        arena *a = arena_new();
        mapping_context *c = new_context(a);
        tree *x = random_tree(a, 3), *y = respell(a, x);
        bool same = x->size == y->size;
        for (int64_t i = 0; i < x->size && same; i++)
            same = same_index(define(x, i), define(y, i));
        int64_t steps = MAPPING_EQUAL_STEPS;
        const mapping *mx = build(c, x), *my = build(c, y);
        ck_assert_msg(mapping_agree(c, mx, my, &steps) == same, "round %d: %s and %s are %s", round, mapping_text(mx, a),
                      mapping_text(my, a), same ? "the same" : "apart");
        *(same ? &equal : &apart) += 1;
        arena_free(a);
    }
    ck_assert_int_gt(equal, rounds() / 2);
    ck_assert_int_gt(apart, rounds() / 100);
}
END_TEST

/* ---- axes of any size ---- */

static int64_t huge_divisor(int64_t size)
{
    for (int tries = 0; tries < 20; tries++) {
        int64_t d = random_below(4) ? 1 + random_below(12) : axis_sizes[random_below(AXES)];
        if (size % d == 0)
            return random_below(3) ? d : size / d;
    }
    return 1;
}

static tree *pad_of(arena *a, tree *t, int64_t more)
{
    return tree_new(a, '#', t, NULL, t->size + more, t->size + more);
}

/* Pairs, cuts and padding of large and small axes, each of them once; `used`: by bits. */
static tree *huge_tree(arena *a, int depth, unsigned *used)
{
    uint32_t pick = depth == 0 ? 0 : random_below(11);
    if (pick < 2) {
        int k = (int)random_below(AXES);
        if (*used & 1u << k)
            return tree_new(a, 'n', NULL, NULL, 3, 3);
        *used |= 1u << k;
        tree *t = tree_new(a, 'A', NULL, NULL, 0, axis_sizes[k]);
        t->axis = k;
        return t;
    }
    tree *l = huge_tree(a, depth - 1, used);
    int64_t n = huge_divisor(l->size), size = 0;
    if (pick < 6) {
        tree *r = huge_tree(a, depth - 1, used);
        return __builtin_mul_overflow(l->size, r->size, &size) || size > MAPPING_MAX_SIZE >> 12 ? l : tree_new(a, ',', l, r, 0, size);
    }
    if (pick == 6)
        return l->size > MAPPING_MAX_SIZE >> 12 ? l : pad_of(a, l, 1 + random_below(12));
    tree *outer = tree_new(a, '/', l, NULL, n, l->size / n), *inner = tree_new(a, '%', l, NULL, n, n);
    return pick == 7 ? inner : pick < 10 ? outer : tree_new(a, ',', outer, inner, 0, l->size);
}

/* The same in other words by laws that hold for all mappings, or its parts, which may be something else. */
static tree *huge_respell(arena *a, tree *t)
{
    int64_t n = 2 + random_below(40), m = 1 + random_below(6), d = huge_divisor(t->size);
    switch (random_below(4)) {
    case 0: return tree_new(a, '=', pad_of(a, t, n), NULL, t->size, t->size);
    case 1: return tree_new(a, '/', tree_new(a, ',', t, tree_new(a, 'n', NULL, NULL, n, n), 0, t->size * n), NULL, n, t->size);
    case 2:
        t = tree_new(a, '/', tree_new(a, ',', t, tree_new(a, 'n', NULL, NULL, n * m, n * m), 0, t->size * n * m), NULL, n, t->size * m);
        return tree_new(a, '/', t, NULL, m, t->size / m);
    default: return tree_new(a, ',', tree_new(a, '/', t, NULL, d, t->size / d), tree_new(a, '%', t, NULL, d, d), 0, t->size);
    }
}

/* Random positions, and those around multiples of numbers that the trees are made of. */
static bool same_at_samples(const tree *x, const tree *y)
{
    for (int k = 0; k < 400; k++) {
        int64_t i = (int64_t)(((uint64_t)random_below(1u << 31) << 31 | random_below(1u << 31)) % (uint64_t)x->size);
        int64_t unit = axis_sizes[random_below(AXES)] * (1 + random_below(12));
        i = k % 2 ? i : i / unit * unit + (int64_t)random_below(25) - 12;
        if (!same_index(define(x, i), define(y, i)))
            return false;
    }
    return true;
}

/* Law: an axis of 2^40 elements is as quick as one of 8; what is reported about it holds wherever one looks. */
START_TEST(huge_axes_cost_nothing)
{
    static const int64_t sizes[] = {(int64_t)1 << 40, ((int64_t)1 << 40) - 1, 3 * ((int64_t)1 << 30), 1000000007, 2, 3, 4, 5, 6, 7, 12};
    int equal = 0, apart = 0, undecided = 0;
    int64_t most = 0;
    for (int round = 0; round < rounds(); round++) {
        random_state = (uint64_t)round * 41 + 23;
        for (int k = 0; k < AXES; k++)
            axis_sizes[k] = sizes[random_below(k == 0 ? 4 : 11)];
        arena *a = arena_new();
        mapping_context *c = new_context(a);
        unsigned used = 0;
        tree *x = huge_tree(a, 4, &used), *y = huge_respell(a, x);
        int64_t steps = MAPPING_EQUAL_STEPS;
        const mapping *mx = build(c, x), *my = build(c, y);
        ck_assert_int_eq(mx->size, my->size);
        bool same = mapping_agree(c, mx, my, &steps);
        if (steps < 0)
            printf("not decided, round %d: %s and %s\n", round, mapping_text(mx, a), mapping_text(my, a));
        undecided += steps < 0;
        ck_assert_msg(!same || same_at_samples(x, y), "round %d: %s and %s differ", round, mapping_text(mx, a), mapping_text(my, a));
        ck_assert_msg(same || steps < 0 || mx != my, "round %d: %s is not itself", round, mapping_text(mx, a));
        most = MAPPING_EQUAL_STEPS - steps > most ? MAPPING_EQUAL_STEPS - steps : most;
        *(same ? &equal : &apart) += 1;
        arena_free(a);
    }
    printf("huge axes: %d pairs equal, %d apart, at most %lld steps\n", equal, apart, (long long)most);
    ck_assert_int_gt(equal, rounds() / 2);
    ck_assert_int_gt(apart, rounds() / 200);
    ck_assert_int_le(undecided, rounds() / 20000); /* an axis that stands twice in what no digit cuts */
}
END_TEST

/* Law: split gives m / n and m % n; every position of m / n at i is position i * n of m. */
START_TEST(split_cuts)
{
    for (int round = 0; round < rounds() / 4; round++) {
        random_state = (uint64_t)round * 13 + 5;
        random_axes();
        arena *a = arena_new();
        mapping_context *c = new_context(a);
        const tree *t = random_tree(a, 3);
        const mapping *m = build(c, t), *outer, *inner;
        int64_t n = random_divisor(t->size);
        ck_assert_int_eq(mapping_split(c, m, n, &outer, &inner), MAPPING_OK);
        ck_assert_int_eq(outer->size, t->size / n);
        ck_assert_int_eq(inner->size, n);
        for (int64_t i = 0; i < outer->size; i++)
            ck_assert(same_index(define(t, i * n), meaning(c, outer, i)));
        for (int64_t i = 0; i < n; i++)
            ck_assert(same_index(define(t, i), meaning(c, inner, i)));
        const mapping *stripped = mapping_strip_padding(c, m);
        for (int64_t i = 0; i < m->size; i++)
            ck_assert(i < stripped->size ? same_index(define(t, i), meaning(c, stripped, i)) : !define(t, i).live);
        arena_free(a);
    }
}
END_TEST

/* The published identities and printed forms ("Mapping Expressions", Equivalent Mapping; unit tests). */
START_TEST(published_identities)
{
    static const struct {
        int64_t sizes[AXES]; /* A, B, Cc, D_1 */
        const char *left, *right, *printed;
    } rows[] = {
        {{5, 2, 2, 2}, "A # 16 / 4", "1 # 2, [A # 8] / 4", "A # 16 / 4"},
        {{3, 2, 2, 2}, "A # 64 / 8", "1 # 8", "1 # 8"},
        {{3, 5, 2, 2}, "A # 16 / 4, B", "B # 20", "B # 20"},
        {{3, 5, 2, 2}, "A # 64 / 8, B", "B # 40", "B # 40"},
        {{5, 5, 2, 2}, "A # 16 / 4, B", "[[[A # 8] / 4] # 4], B", "A # 16 / 4, B"},
        {{5, 2, 2, 2}, "[A # 16 / 4] / 2", "1 # 2", "1 # 2"},
        {{14, 2, 2, 2}, "A # 16 / 4, A # 16 % 4", "A # 16", "A # 16"},
        {{8, 2, 2, 2}, "A % 1", "1", "1"},
        {{8, 2, 2, 2}, "A / 2, A % 2", "A", "A"},
        {{8, 4, 2, 2}, "[A, B] / 4", "A", "A"},
        {{8, 4, 2, 2}, "[A, B] % 4", "B", "B"},
        {{8, 4, 2, 2}, "A % 4 = 3", "A = 3", "A = 3"},
        {{3, 5, 2, 2}, "[A, B, Cc] # 32", "[[A, B] # 16], Cc", "[A, B] # 16, Cc"},
        {{2, 5, 2, 2}, "[A, B] # 16 / 8, [A, B] # 16 % 8", "[A, B] # 16", "[A, B] # 16"},
        {{3, 3, 2, 2}, "[A, B] # 32 / 16, [A, B] # 32 / 8 % 2, [A, B] # 32 % 8", "[A, B] # 32", "[A, B] # 32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memcpy(axis_sizes, rows[i].sizes, sizeof axis_sizes);
        arena *a = arena_new();
        mapping_context *c = new_context(a);
        const char *l = rows[i].left, *r = rows[i].right;
        const mapping *m = build(c, read_mapping(a, &l));
        ck_assert_msg(m == build(c, read_mapping(a, &r)), "row %zu", i);
        ck_assert_str_eq(mapping_text(m, a), rows[i].printed);
        arena_free(a);
    }
}
END_TEST

START_TEST(operators_refuse)
{
    memcpy(axis_sizes, (int64_t[]){6, 4, 2, 2}, sizeof axis_sizes);
    arena *a = arena_new();
    mapping_context *c = new_context(a);
    const mapping *m = mapping_symbol(c, mapping_axis(c, "A", 6)), *out = NULL;
    ck_assert_int_eq(mapping_stride(c, m, 4, &out), MAPPING_NOT_DIVISIBLE);
    ck_assert_int_eq(mapping_modulo(c, m, 5, &out), MAPPING_NOT_DIVISIBLE);
    ck_assert_int_eq(mapping_stride(c, m, 0, &out), MAPPING_ZERO);
    ck_assert_int_eq(mapping_resize(c, m, 7, &out), MAPPING_GROWS);
    ck_assert_int_eq(mapping_pad(c, m, 5, PAD_TOP, &out), MAPPING_SHRINKS);
    ck_assert_int_eq(mapping_pad(c, m, INT64_MAX, PAD_TOP, &out), MAPPING_TOO_LARGE);
    const mapping *huge = mapping_symbol(c, mapping_axis(c, "H", MAPPING_MAX_SIZE));
    ck_assert_int_eq(mapping_pair(c, huge, m, &out), MAPPING_TOO_LARGE);
    ck_assert_ptr_null(out);
    ck_assert_int_eq(mapping_stride(c, huge, (int64_t)1 << 40, &out), MAPPING_OK);
    ck_assert_str_eq(mapping_text(out, a), "H / 1099511627776");
    arena_free(a);
}
END_TEST

/* ---- sliding windows ---- */

enum { MAX_PARTS = 4 };

/* Up to four parts of one or two axis digits each, of different digits. */
static size_t random_window(mapping_context *c, window_part *parts)
{
    const mapping *digits[2 * AXES];
    size_t digit_count = 0, count = 0;
    for (int k = 0; k < AXES; k++) {
        const mapping *m = mapping_symbol(c, mapping_axis(c, axis_names[k], axis_sizes[k])), *outer, *inner;
        if (random_below(2) && mapping_split(c, m, random_divisor(m->size), &outer, &inner) == MAPPING_OK) {
            digits[digit_count++] = outer;
            m = inner;
        }
        digits[digit_count++] = m;
    }
    for (size_t wanted = 1 + random_below(MAX_PARTS); count < wanted && digit_count > 0; count++) {
        size_t i = random_below((uint32_t)digit_count);
        parts[count] = (window_part){digits[i], 1 + random_below(7)};
        digits[i] = digits[--digit_count];
        if (digit_count > 0 && random_below(4) == 0) {
            i = random_below((uint32_t)digit_count);
            ck_assert_int_eq(mapping_pair(c, parts[count].mapping, digits[i], &parts[count].mapping), MAPPING_OK);
            digits[i] = digits[--digit_count];
        }
    }
    return count;
}

/* The next combination of positions of the parts; false after the last. */
static bool next_combination(const window_part *parts, size_t count, int64_t *at)
{
    while (count-- > 0) {
        if (++at[count] < parts[count].mapping->size)
            return true;
        at[count] = 0;
    }
    return false;
}

/* The relation of the formal notation: place s holds index t iff there are sk with s = sum sk * nk, t = sum map(ek, sk). */
static void check_relation(mapping_context *c, const mapping *m, const window_part *parts, size_t count)
{
    int64_t at[MAX_PARTS] = {0}, last = 0, coords[64];
    const axis *w = m->count == 1 && m->factors[0].kind == FACTOR_AXIS ? m->factors[0].axis : NULL;
    bool is_window = w && w->term_count > 0;
    do {
        int64_t place = 0, held[64] = {0};
        memset(coords, 0, sizeof coords);
        for (size_t i = 0; i < count; i++) {
            ck_assert(mapping_map(parts[i].mapping, at[i], coords));
            place += at[i] * parts[i].stride;
        }
        last = place > last ? place : last;
        ck_assert(mapping_map(m, place, held));
        if (is_window) { /* map gives the place, window_place the relation */
            ck_assert_int_eq(held[w->number], place);
            ck_assert_int_eq(window_place(w, coords), place);
        } else { /* as many places as indices: the ordinary pair */
            ck_assert_mem_eq(held, coords, sizeof held);
        }
    } while (next_combination(parts, count, at));
    ck_assert_int_eq(m->size, last + 1);
    ck_assert(!mapping_map(m, m->size, (int64_t[64]){0}));
    (void)c;
}

START_TEST(windows_hold)
{
    int windows = 0, pairs = 0;
    for (int round = 0; round < rounds() / 4; round++) {
        random_state = (uint64_t)round * 77 + 9;
        random_axes();
        arena *a = arena_new();
        mapping_context *c = new_context(a);
        window_part parts[MAX_PARTS], turned[MAX_PARTS], halves[2];
        size_t count = random_window(c, parts);
        const mapping *m, *again;
        ck_assert_int_eq(mapping_window(c, parts, count, &m), MAPPING_OK);
        check_relation(c, m, parts, count);
        bool is_window = m->count == 1 && m->factors[0].axis && m->factors[0].axis->term_count > 0;
        *(is_window ? &windows : &pairs) += 1;
        for (size_t i = 0; i < count; i++)
            turned[i] = parts[count - 1 - i];
        ck_assert_int_eq(mapping_window(c, turned, count, &again), MAPPING_OK);
        ck_assert_msg(m == again, "%s", mapping_text(m, a));
        /* A window in a window, at stride 3 next to nothing, is the window of all the strides times 3. */
        for (size_t i = 0; i < count; i++)
            turned[i].stride = parts[count - 1 - i].stride * 3;
        halves[0] = (window_part){m, 3};
        const mapping *flat, *nested;
        ck_assert_int_eq(mapping_window(c, turned, count, &flat), MAPPING_OK);
        ck_assert_int_eq(mapping_window(c, halves, 1, &nested), MAPPING_OK);
        ck_assert_msg(flat == nested, "%s and %s", mapping_text(flat, a), mapping_text(nested, a));
        arena_free(a);
    }
    ck_assert_int_gt(windows, rounds() / 16);
    ck_assert_int_gt(pairs, 10);
}
END_TEST

static mapping_status window_status(mapping_context *c, const mapping *l, int64_t n, const mapping *r, int64_t k, const mapping **out)
{
    const window_part parts[] = {{l, n}, {r, k}};
    return mapping_window(c, parts, r ? 2 : 1, out);
}

/* Axes of 8, 3, 4 and 5 places. */
static mapping_context *slid_axes(arena *a, const mapping **m)
{
    memcpy(axis_sizes, (int64_t[]){8, 3, 4, 5}, sizeof axis_sizes);
    mapping_context *c = new_context(a);
    for (int k = 0; k < AXES; k++)
        m[k] = mapping_symbol(c, mapping_axis(c, axis_names[k], axis_sizes[k]));
    return c;
}

/* Printed forms, digits and operators of windows; what does not slide. */
START_TEST(windows_print_and_refuse)
{
    arena *a = arena_new();
    const mapping *m[AXES], *w, *v, *out = NULL;
    mapping_context *c = slid_axes(a, m);
    ck_assert_int_eq(window_status(c, m[1], 1, m[0], 2, &w), MAPPING_OK);
    ck_assert_str_eq(mapping_text(w, a), "$(A:2, B:1)");
    ck_assert_int_eq(w->size, 1 + 7 * 2 + 2);
    ck_assert_int_eq(mapping_pad(c, w, 20, PAD_TOP, &v), MAPPING_OK);
    ck_assert_str_eq(mapping_text(v, a), "$(A:2, B:1) # 20");
    ck_assert(!mapping_is_full(v) && mapping_is_full(w));
    /* A window's digit slides no further, nor do padding and broadcasts. */
    ck_assert_int_eq(mapping_stride(c, v, 4, &v), MAPPING_OK);
    ck_assert_int_eq(window_status(c, v, 1, m[2], 1, &out), MAPPING_WINDOW_TERM);
    ck_assert_int_eq(mapping_pad(c, m[1], 4, PAD_TOP, &v), MAPPING_OK);
    ck_assert_int_eq(window_status(c, v, 1, m[2], 1, &out), MAPPING_WINDOW_TERM);
    ck_assert_int_eq(mapping_broadcast(c, 3, &v), MAPPING_OK);
    ck_assert_int_eq(window_status(c, v, 1, m[2], 1, &out), MAPPING_WINDOW_TERM);
    const mapping *outer, *inner;
    ck_assert_int_eq(mapping_split(c, m[0], 4, &outer, &inner), MAPPING_OK);
    ck_assert_int_eq(window_status(c, inner, 2, m[1], 1, &v), MAPPING_OK);
    ck_assert_str_eq(mapping_text(v, a), "$(A % 4:2, B:1)");
    /* Digits of an axis adjacent are one again; twice the same is refused. */
    const window_part both[] = {{outer, 8}, {inner, 2}, {m[1], 1}};
    ck_assert_int_eq(mapping_window(c, both, 3, &v), MAPPING_OK);
    ck_assert_ptr_eq(v, w);
    ck_assert_int_eq(window_status(c, inner, 2, m[0], 1, &out), MAPPING_WINDOW_TWICE);
    ck_assert_int_eq(window_status(c, m[0], 2, m[0], 1, &out), MAPPING_WINDOW_TWICE);
    /* Padding that two digits together have. */
    ck_assert_int_eq(mapping_pad(c, m[3], 8, PAD_TOP, &v), MAPPING_OK);
    ck_assert_int_eq(mapping_split(c, v, 4, &outer, &inner), MAPPING_OK);
    ck_assert_int_eq(window_status(c, outer, 4, inner, 1, &out), MAPPING_WINDOW_TERM);
    ck_assert_int_eq(window_status(c, m[0], 0, m[1], 1, &out), MAPPING_ZERO);
    ck_assert_int_eq(window_status(c, m[0], -1, m[1], 1, &out), MAPPING_ZERO);
    ck_assert_int_eq(window_status(c, m[0], INT64_MAX, m[1], 1, &out), MAPPING_TOO_LARGE);
    ck_assert_int_eq(window_status(c, m[0], MAPPING_MAX_SIZE / 7, m[1], MAPPING_MAX_SIZE / 2, &out), MAPPING_TOO_LARGE);
    /* The ordinary pair, and the position of the published example: N + 2F of N = 5 and F = 3. */
    ck_assert_int_eq(window_status(c, m[0], 3, m[1], 1, &v), MAPPING_OK);
    ck_assert_int_eq(mapping_pair(c, m[0], m[1], &w), MAPPING_OK);
    ck_assert_ptr_eq(v, w);
    ck_assert_int_eq(window_status(c, m[3], 1, m[1], 2, &w), MAPPING_OK);
    ck_assert_int_eq(w->size, 9);
    for (int64_t f = 0; f < 3; f++) {
        int64_t coords[16] = {0};
        coords[m[1]->factors[0].axis->number] = f;
        coords[m[3]->factors[0].axis->number] = 4 - 2 * f;
        ck_assert_int_eq(window_place(w->factors[0].axis, coords), 4);
    }
    ck_assert_ptr_null(out);
    arena_free(a);
}
END_TEST

/* Only some of the places are held: a coordinate each, and zeros before and after them. */
START_TEST(windows_with_borders)
{
    arena *a = arena_new();
    const mapping *m[AXES], *w, *whole, *again, *out = NULL;
    mapping_context *c = slid_axes(a, m);
    const window_part parts[] = {{m[0], 2}, {m[1], 1}}, pairs[] = {{m[0], 3}, {m[1], 1}};
    ck_assert_int_eq(mapping_window(c, parts, 2, &whole), MAPPING_OK);
    ck_assert_int_eq(mapping_window_held(c, parts, 2, 0, whole->size, &again), MAPPING_OK);
    ck_assert_ptr_eq(whole, again);
    ck_assert_int_eq(mapping_window_held(c, parts, 2, 1, 16, &w), MAPPING_OK);
    ck_assert_int_eq(mapping_window_held(c, parts, 2, 1, 16, &again), MAPPING_OK);
    ck_assert_ptr_eq(w, again);
    ck_assert_int_eq(w->size, 15);
    ck_assert_str_eq(mapping_text(w, a), "$(A:2, B:1 | 1..16)");
    for (int64_t i = 0; i < 8 * 3; i++) {
        int64_t coords[16] = {0};
        coords[m[0]->factors[0].axis->number] = i / 3;
        coords[m[1]->factors[0].axis->number] = i % 3;
        ck_assert_int_eq(window_place(w->factors[0].axis, coords), i / 3 * 2 + i % 3 - 1);
    }
    /* As many places as indices, but not all held: no pair. */
    ck_assert_int_eq(mapping_window_held(c, pairs, 2, 0, 23, &again), MAPPING_OK);
    ck_assert_str_eq(mapping_text(again, a), "$(A:3, B:1 | 0..23)");
    static const int64_t bad[][2] = {{-1, 4}, {4, 4}, {5, 4}, {0, 18}, {17, 18}, {INT64_MIN, 4}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(mapping_window_held(c, parts, 2, bad[i][0], bad[i][1], &out), MAPPING_WINDOW_RANGE);
    const window_part nested[] = {{w, 2}};
    ck_assert_int_eq(mapping_window(c, nested, 1, &out), MAPPING_WINDOW_TERM);
    ck_assert_ptr_null(out);
    arena_free(a);
}
END_TEST

/* Nine digits are too many. */
START_TEST(windows_are_short)
{
    arena *a = arena_new();
    mapping_context *c = mapping_context_new(a);
    window_part parts[WINDOW_MAX_TERMS + 1];
    for (int i = 0; i <= WINDOW_MAX_TERMS; i++)
        parts[i] = (window_part){mapping_symbol(c, mapping_axis(c, (char[]){(char)('A' + i), 0}, 2)), 1};
    const mapping *out = NULL;
    ck_assert_int_eq(mapping_window(c, parts, WINDOW_MAX_TERMS + 1, &out), MAPPING_WINDOW_TERMS);
    ck_assert_ptr_null(out);
    ck_assert_int_eq(mapping_window(c, parts, WINDOW_MAX_TERMS, &out), MAPPING_OK);
    ck_assert_int_eq(out->size, WINDOW_MAX_TERMS + 1);
    arena_free(a);
}
END_TEST

int main(void)
{
    TCase *t = suite_case("laws");
    suite_tests(t, means_and_prints, equal_functions_are_one_object, stretches_repeat, stretches_decide, huge_axes_cost_nothing, split_cuts,
                published_identities, operators_refuse, windows_hold, windows_print_and_refuse, windows_are_short, windows_with_borders);
    return suite_status("mapping", t);
}
