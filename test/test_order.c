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

/* Of items that come one by one the least `most`, as a sort of all of them has them in front. */
START_TEST(the_first_are_kept)
{
    enum { COUNT = 40 };
    for (size_t most = 0; most < COUNT + 3; most++)
        for (int64_t keys = 1; keys < 100; keys = 3 * keys + 1) {
            item all[COUNT], kept[COUNT + 4] = {0};
            size_t count = 0;
            for (size_t i = 0; i < COUNT; i++) {
                all[i] = (item){(int64_t)(i * 2654435761U >> 7) % keys, (int64_t)i, "rest"};
                order_keep(kept, &count, most, sizeof *kept, &all[i], by_key);
                ck_assert_str_eq(kept[most].rest, ""); /* nothing is written behind them */
            }
            order_sort(all, COUNT, sizeof *all, by_key);
            ck_assert_uint_eq(count, most < COUNT ? most : COUNT);
            for (size_t i = 0; i < count; i++)
                ck_assert(kept[i].key == all[i].key && kept[i].was == all[i].was && strcmp(kept[i].rest, "rest") == 0);
        }
}
END_TEST

int main(void)
{
    TCase *cases = suite_case("order");
    suite_tests(cases, equal_ones_stay, the_first_are_kept);
    return suite_status("order", cases);
}
