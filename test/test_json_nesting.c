/* support/json_nesting.h: levels of arrays and objects are counted, and what stands in strings is no level. */
#include <check.h>
#include <string.h>

#include "support/budget.h"
#include "support/json_nesting.h"
#include "test/suite.h"

enum { BYTES = 8 * NESTING_MAX };

static char text[BYTES];
static size_t used;

static void begin(void)
{
    used = 0;
}

static void put(const char *piece, int times)
{
    for (int i = 0; i < times; i++) {
        ck_assert_uint_lt(used + strlen(piece), BYTES);
        memcpy(text + used, piece, strlen(piece));
        used += strlen(piece);
    }
}

static bool is_deep(void)
{
    return json_nests_too_deeply(text, used);
}

START_TEST(levels_up_to_the_limit)
{
    static const char *const openers[] = {"[", "{", "{\"a\":[", "[\"[\",{"};
    static const int levels[] = {1, 1, 2, 2};
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
        begin();
        put(openers[i], NESTING_MAX / levels[i]);
        put("[", NESTING_MAX % levels[i]);
        ck_assert_msg(!is_deep(), "%s", openers[i]);
        put("1", 1);
        ck_assert_msg(!is_deep(), "%s", openers[i]);
        put("[", 1);
        ck_assert_msg(is_deep(), "%s", openers[i]);
    }
}
END_TEST

START_TEST(what_is_closed_is_no_level)
{
    begin();
    put("[]{}", NESTING_MAX);
    ck_assert(!is_deep());
    put("[{", NESTING_MAX / 2);
    put("}]", NESTING_MAX / 2);
    put("[", NESTING_MAX);
    ck_assert(!is_deep());
    put("{", 1);
    ck_assert(is_deep());
}
END_TEST

START_TEST(strings_hold_no_levels)
{
    begin();
    put("\"", 1);
    put("[{", NESTING_MAX);
    put("\\\"", 1); /* a quote of the string: it goes on */
    put("[{", NESTING_MAX);
    put("\"", 1);
    ck_assert(!is_deep());

    begin();
    put("\"\\\\\"", 1); /* a backslash that is escaped escapes nothing: the string ends */
    put("[", NESTING_MAX);
    ck_assert(!is_deep());
    put("[", 1);
    ck_assert(is_deep());

    begin();
    put("[", NESTING_MAX);
    put("\"]]\"", 1); /* neither do they close one */
    put("[", 1);
    ck_assert(is_deep());

    begin();
    put("[", NESTING_MAX);
    put("\\[", 1); /* outside of a string a backslash is no escape, whatever else it is */
    ck_assert(is_deep());

    begin();
    put("\"\\", 1); /* the end of the text */
    ck_assert(!is_deep());
}
END_TEST

int main(void)
{
    TCase *t = suite_case("json_nesting");
    suite_tests(t, levels_up_to_the_limit, what_is_closed_is_no_level, strings_hold_no_levels);
    return suite_status("json_nesting", t);
}
