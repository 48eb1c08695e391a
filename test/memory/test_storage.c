/* passes/storage.h against exhaustive search: no set of memories is refused that fits, nothing overlaps, and with up to ten of them the
 * peak is the least there is. The judge knows nothing of orders: it tries every offset of every memory, byte by byte. */
#include "passes/storage.h"

#include "test/fixture.h"

enum { MOST = 10, STEPS = 8, LARGE = 120 };

static uint64_t state;

static int64_t draw(int64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)below);
}

static bool meet(const storage_item *a, const storage_item *b)
{
    return a->first <= b->last && b->first <= a->last && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* ---- the judge ---- */

/* Can items i.. be given offsets below `peak`, together with those before them? */
static bool fits_from(storage_item *items, size_t count, size_t i, int64_t peak)
{
    if (i == count)
        return true;
    int64_t from = items[i].fixed ? items[i].offset : 0, to = items[i].fixed ? from : peak - items[i].bytes;
    for (int64_t at = from; at <= to; at += items[i].alignment) {
        bool free = at + items[i].bytes <= peak;
        items[i].offset = at;
        for (size_t j = 0; j < i && free; j++)
            free = !meet(&items[i], &items[j]);
        if (free && fits_from(items, count, i + 1, peak))
            return true;
    }
    return false;
}

static int by_bytes(const void *a, const void *b)
{
    const storage_item *x = a, *y = b;
    if (x->fixed != y->fixed)
        return x->fixed ? -1 : 1;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* From `low` bytes on: the most that are live in one step. */
static int64_t least_peak(const storage_item *items, size_t count, int64_t low)
{
    storage_item copy[MOST];
    memcpy(copy, items, count * sizeof *items);
    qsort(copy, count, sizeof *copy, by_bytes);
    while (!fits_from(copy, count, 0, low))
        low++;
    return low;
}

static int64_t load(const storage_item *items, size_t count)
{
    int64_t most = 0;
    for (int64_t step = 0; step < STEPS; step++) {
        int64_t bytes = 0;
        for (size_t i = 0; i < count; i++)
            bytes += items[i].first <= step && step <= items[i].last ? items[i].bytes : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ---- sets ---- */

/* Fixed ones first, as the judge wants them, and apart from each other. */
static size_t draw_set(storage_item *items, size_t most, int64_t bytes, int64_t steps)
{
    size_t count = 1 + (size_t)draw((int64_t)most), fixed = draw(3) ? 0 : 1;
    for (size_t i = 0; i < count; i++) {
        int64_t first = draw(steps), length = draw(4) ? draw(4) : draw(steps);
        items[i] = (storage_item){.bytes = 1 + draw(bytes),
                                  .alignment = draw(3) ? 1 : 1 << draw(3),
                                  .first = first,
                                  .last = first + length < steps ? first + length : steps - 1};
        if (i < fixed) {
            items[i].alignment = 1;
            items[i].fixed = true;
            items[i].offset = draw(2 * bytes);
        }
    }
    return count;
}

static void check_packing(const storage_item *before, const storage_item *after, size_t count, storage_result r)
{
    int64_t peak = 0;
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_ge(after[i].offset, 0);
        ck_assert_int_eq(after[i].offset % after[i].alignment, 0);
        if (before[i].fixed)
            ck_assert_int_eq(after[i].offset, before[i].offset);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(!meet(&after[i], &after[j]), "items %zu and %zu overlap", j, i);
        peak = after[i].offset + after[i].bytes > peak ? after[i].offset + after[i].bytes : peak;
    }
    ck_assert_int_eq(peak, r.peak);
    ck_assert_int_le(r.bound, r.peak);
}

/* ---- tests ---- */

START_TEST(least_of_all)
{
    int rounds = suite_rounds(400), above_bound = 0;
    state = 1;
    for (int i = 0; i < rounds; i++) {
        storage_item items[MOST], before[MOST];
        size_t count = draw_set(items, MOST, 5, STEPS);
        memcpy(before, items, sizeof items);
        storage_result r = storage_pack(items, count, 0, memory);
        check_packing(before, items, count, r);
        int64_t least = least_peak(before, count, load(before, count));
        ck_assert_msg(r.peak == least, "round %d: peak %lld, %lld is possible", i, (long long)r.peak, (long long)least);
        ck_assert(r.is_least);
        ck_assert_int_le(r.bound, least);
        above_bound += least > r.bound;
    }
    ck_assert_int_gt(above_bound, 0); /* sets that only a search settles are among them */
}
END_TEST

START_TEST(order_of_items_does_not_matter)
{
    state = 7;
    for (int i = 0; i < suite_rounds(500); i++) {
        storage_item items[MOST], turned[MOST];
        size_t count = draw_set(items, MOST, 40, STEPS);
        for (size_t k = 0; k < count; k++)
            turned[count - 1 - k] = items[k];
        ck_assert_int_eq(storage_pack(items, count, 0, memory).peak, storage_pack(turned, count, 0, memory).peak);
    }
}
END_TEST

START_TEST(many)
{
    state = 3;
    int64_t peaks = 0, bounds = 0;
    for (int i = 0; i < suite_rounds(60); i++) {
        static storage_item items[LARGE], before[LARGE];
        size_t count = draw_set(items, LARGE, 1000, 64);
        memcpy(before, items, sizeof items);
        storage_result r = storage_pack(items, count, 0, memory);
        check_packing(before, items, count, r);
        bool fixed = before[0].fixed;
        peaks += fixed ? 0 : r.peak;
        bounds += fixed ? 0 : r.bound;
    }
    ck_assert_msg(peaks * 100 <= bounds * 105, "peaks of %lld bytes in all, the loads are %lld", (long long)peaks, (long long)bounds);
}
END_TEST

START_TEST(nothing_and_fixed_only)
{
    ck_assert_int_eq(storage_pack(NULL, 0, 0, memory).peak, 0);
    storage_item one = {.bytes = 5, .alignment = 1, .first = 0, .last = 3, .offset = 7, .fixed = true};
    ck_assert_int_eq(storage_pack(&one, 1, 0, memory).peak, 12);
    ck_assert_int_eq(one.offset, 7);
}
END_TEST

int main(void)
{
    TCase *t = suite_case_with("packings", setup, teardown);
    suite_tests(t, least_of_all, order_of_items_does_not_matter, many, nothing_and_fixed_only);
    return suite_status("storage", t);
}
