/* support/order.h: in order, and what is equal as it was. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/order.h"
#include "test/suite.h"

typedef struct item {
    int64_t key, was; /* where it was before */
    char rest[5];     /* a size that is no power of two */
} item;

static int by_key(const void *a, const void *b)
{
    return ORDER(((const item *)a)->key, ((const item *)b)->key);
}

/* Of so many items, with keys below `keys`: in order, all there, equal ones as they were. */
static void sorted(size_t count, int64_t keys)
{
    item *all = calloc(count + 1, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = (item){(int64_t)(i * 2654435761U >> 7) % keys, (int64_t)i, "rest"};
    all[count].key = -1;
    order_sort(all, count, sizeof *all, by_key);
    ck_assert_int_eq(all[count].key, -1); /* what is behind them is not theirs */
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(all[i].key, (all[i].was * 2654435761U >> 7) % keys);
        ck_assert_str_eq(all[i].rest, "rest");
        if (i > 0)
            ck_assert(all[i - 1].key < all[i].key || (all[i - 1].key == all[i].key && all[i - 1].was < all[i].was));
    }
    free(all);
}

START_TEST(equal_ones_stay)
{
    for (size_t count = 0; count < 70; count++)
        for (int64_t keys = 1; keys < 100; keys = 3 * keys + 1)
            sorted(count, keys);
    sorted(1023, 7), sorted(1024, 1), sorted(100000, 1000), sorted(100000, INT64_C(1) << 40);
}
END_TEST

int main(void)
{
    TCase *cases = suite_case("order");
    suite_tests(cases, equal_ones_stay);
    return suite_status("order", cases);
}
