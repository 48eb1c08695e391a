/* target/dialect.h: which word of a release is another one in the newest. */
#include <check.h>
#include <stdbool.h>
#include <string.h>

#include "target/dialect.h"
#include "test/suite.h"

typedef struct row {
    const char *word, *spelling;
    unsigned dialects;
} row;

static const row rows[] = {
#define WORD(...)
#define TYPE_WORD(word, dialects, spelling) {word, spelling, dialects},
#include "target/dialect.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static bool is_newest(const row *r)
{
    return r->dialects >> DIALECT_NEWEST & 1;
}

START_TEST(types_are_renamed_to_the_newest_release)
{
    int renamed = 0;
    for (int i = 0; i < ROWS; i++) {
        const char *newest = rows[i].word;
        for (int k = 0; k < ROWS; k++)
            if (is_newest(&rows[k]) && strcmp(rows[k].word, rows[i].word) == 0)
                newest = rows[k].spelling;
        ck_assert_msg(!dialect_renamed_type(newest), "%s is a word of the newest release", newest);
        const char *of[] = {rows[i].word, rows[i].spelling};
        for (int k = 0; k < 2; k++) {
            const char *to = dialect_renamed_type(of[k]);
            bool is_same = strcmp(of[k], newest) == 0;
            ck_assert_msg(is_same ? !to : to && strcmp(to, newest) == 0, "%s is %s now, not %s", of[k], newest, to ? to : "the same");
            renamed += !is_same;
        }
    }
    ck_assert_int_gt(renamed, 0);
}
END_TEST

START_TEST(other_words_stay)
{
    static const char *const words[] = {"", "Con", "Contexts", "HbmTensor", "bf16", "lanemode"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(!dialect_renamed_type(words[i]), "%s", words[i]);
}
END_TEST

int main(void)
{
    TCase *t = suite_case("dialect");
    suite_tests(t, types_are_renamed_to_the_newest_release, other_words_stay);
    return suite_status("dialect", t);
}
