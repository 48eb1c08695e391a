/* Laws of division and refinement, by enumeration over random digit mappings, and the published divisions. */
#include <check.h>
#include <string.h>

#include "ir/mapping/division.h"
#include "test/suite.h"

enum { AXES = 3 };
static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

static const mapping *digits_of(mapping_context *c, const axis *const *axes, size_t axis_count)
{
    const mapping *parts[32], *all = mapping_identity(c);
    size_t count = 0;
    for (size_t k = 0; k < axis_count; k++) {
        const mapping *m = mapping_symbol(c, axes[k]);
        if (random_below(4) == 0)
            mapping_pad(c, m, m->size + random_below(6), PAD_TOP, &m);
        while (m->size > 1 && random_below(2)) {
            const mapping *outer, *inner;
            if (mapping_split(c, m, 1 + random_below((uint32_t)m->size), &outer, &inner) == MAPPING_OK) {
                parts[count++] = inner;
                m = outer;
            }
        }
        parts[count++] = m;
    }
    while (count > 0) {
        size_t i = random_below((uint32_t)count);
        ck_assert_int_eq(mapping_pair(c, all, parts[i], &all), MAPPING_OK);
        parts[i] = parts[--count];
    }
    return all;
}

START_TEST(division_law)
{
    int exact = 0, matched = 0;
    for (int round = 0; round < suite_rounds(5000); round++) {
        random_state = (uint64_t)round * 17 + 1;
        arena *a = arena_new();
        mapping_context *c = mapping_context_new(a);
        const axis *axes[AXES] = {mapping_axis(c, "A", 1 + random_below(16)), mapping_axis(c, "B", 1 + random_below(6)),
                                  mapping_axis(c, "C", 1 + random_below(4))};
        const mapping *x = digits_of(c, axes, AXES), *y = digits_of(c, axes, 1 + random_below(AXES));
        division d;
        mapping_divide(c, x, y, &d);
        exact += d.exact;
        matched += d.count > 0;
        ck_assert_int_eq(d.dividend_rest->size, x->size);
        ck_assert_int_eq(d.divisor_rest->size, y->size);
        for (int64_t p = 0; p < x->size; p++) {
            int64_t at_rest = p, at_divisor = 0;
            for (size_t i = 0; i < d.count; i++) {
                const division_match *m = &d.matches[i];
                int64_t digit = p / m->dividend_stride % m->size;
                at_rest -= digit * m->dividend_stride;
                at_divisor += digit * m->divisor_stride;
                ck_assert(i == 0 || m->dividend_stride < d.matches[i - 1].dividend_stride);
            }
            int64_t whole[AXES] = {0}, sum[AXES] = {0};
            bool live = mapping_map(x, p, whole);
            bool both = mapping_map(d.dividend_rest, at_rest, sum) && mapping_map(y, at_divisor, sum);
            for (int k = 0; k < AXES; k++)
                both = both && sum[axes[k]->number] < axes[k]->size;
            /* A divisor padded less than the dividend knows fewer dead positions; live ones must agree. */
            if (live)
                ck_assert_msg(both && memcmp(whole, sum, sizeof sum) == 0, "round %d: %s by %s at %lld", round, mapping_text(x, a),
                              mapping_text(y, a), (long long)p);
        }
        arena_free(a);
    }
    ck_assert_int_gt(exact, suite_rounds(5000) / 10);
    ck_assert_int_gt(matched, exact);
}
END_TEST

static bool is_run(const refined_digit *r, size_t count, int64_t weight, int64_t live, int64_t size)
{
    int64_t at = weight, covered = 1;
    for (size_t i = 0; i < count && covered < live; i++)
        if (r[i].weight == at) {
            covered *= r[i].size;
            at *= r[i].size;
        }
    return covered == live || (covered > live && at >= size);
}

START_TEST(refinement_law)
{
    int refined = 0;
    for (int round = 0; round < suite_rounds(5000); round++) {
        random_state = (uint64_t)round * 29 + 3;
        arena *a = arena_new();
        mapping_context *c = mapping_context_new(a);
        const axis *axes[1] = {mapping_axis(c, "A", 1 + random_below(60))};
        const mapping *m[2] = {digits_of(c, axes, 1), digits_of(c, axes, 1)};
        refined_digit r[32];
        size_t count;
        if (mapping_refine(m[0], m[1], axes[0], r, 32, &count)) {
            refined++;
            for (int k = 0; k < 2; k++)
                for (size_t i = 0; i < m[k]->count; i++)
                    if (m[k]->factors[i].axis)
                        ck_assert_msg(is_run(r, count, m[k]->factors[i].weight, m[k]->factors[i].live, axes[0]->size),
                                      "round %d: %s and %s", round, mapping_text(m[0], a), mapping_text(m[1], a));
        }
        arena_free(a);
    }
    ck_assert_int_gt(refined, suite_rounds(5000) / 5);
}
END_TEST

START_TEST(published_divisions)
{
    arena *a = arena_new();
    mapping_context *c = mapping_context_new(a);
    const mapping *A = mapping_symbol(c, mapping_axis(c, "A", 8)), *B = mapping_symbol(c, mapping_axis(c, "B", 4)), *x, *y;
    ck_assert_int_eq(mapping_pair(c, A, B, &x), MAPPING_OK);
    division d;
    mapping_divide(c, x, B, &d);
    ck_assert(d.exact);
    ck_assert_str_eq(mapping_text(d.dividend_rest, a), "A, 1 # 4");
    mapping_stride(c, A, 4, &x);
    mapping_modulo(c, A, 4, &y);
    mapping_divide(c, x, y, &d); /* different digits of one axis do not match */
    ck_assert(!d.exact && d.count == 0 && d.dividend_rest == x && d.divisor_rest == y);
    refined_digit r[4];
    size_t count;
    const mapping *by3, *by2, *twelve = mapping_symbol(c, mapping_axis(c, "T", 12));
    mapping_stride(c, twelve, 3, &by3);
    mapping_stride(c, twelve, 2, &by2);
    ck_assert(!mapping_refine(by2, by3, mapping_axis(c, "T", 12), r, 4, &count));
    arena_free(a);
}
END_TEST

int main(void)
{
    TCase *t = suite_case("laws");
    suite_tests(t, division_law, refinement_law, published_divisions);
    return suite_status("division", t);
}
