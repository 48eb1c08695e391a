#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/render.h"
#include "test/suite.h"

typedef struct scene {
    arena *arena;
    source_map *sources;
    diag_list diags;
} scene;

static scene scene_of(const char *text)
{
    scene s = {.arena = arena_new()};
    s.sources = source_map_new(s.arena);
    diag_list_init(&s.diags, s.arena);
    source_map_add(s.sources, "k.vm", text, strlen(text));
    return s;
}

static src_range range(uint32_t begin, uint32_t end)
{
    return (src_range){0, begin, end};
}

/* The range of the first occurrence of `piece`. */
static src_range range_of(const scene *s, const char *piece)
{
    const char *text = source_text(s->sources, 0), *at = strstr(text, piece);
    ck_assert_ptr_nonnull(at);
    return range((uint32_t)(at - text), (uint32_t)(at - text + strlen(piece)));
}

static void check_text(scene *s, const char *expected)
{
    ck_assert_str_eq(render_text(&s->diags, s->sources, false, s->arena), expected);
    arena_free(s->arena);
}

START_TEST(range_is_underlined)
{
    scene s = scene_of("one\nlet a = bcd;\nthree\n");
    diag_add(&s.diags, E_PARSE, range_of(&s, "bcd"), "wrong %d", 1);
    check_text(&s, "k.vm:2:9: error[E-PARSE]: wrong 1\n"
                   "    2 | let a = bcd;\n"
                   "      |         ^~~\n");
}
END_TEST

START_TEST(notes_and_help)
{
    scene s = scene_of("first\nsecond\n");
    diag *d = diag_add(&s.diags, E_DELIMITER, range_of(&s, "second"), "message");
    diag_note(&s.diags, d, range_of(&s, "irs"), "note here");
    diag_note(&s.diags, d, SRC_NOWHERE, "note without a place");
    diag_help(&s.diags, d, "do this");
    check_text(&s, "k.vm:2:1: error[E-DELIMITER]: message\n"
                   "    2 | second\n"
                   "      | ^~~~~~\n"
                   "k.vm:1:2: note: note here\n"
                   "    1 | first\n"
                   "      |  ^~~\n"
                   "note: note without a place\n"
                   "help: do this\n");
}
END_TEST

START_TEST(one_of_a_thing)
{
    static const char *const texts[][2] = {{"1 flits are too few", "1 flit is too few"},
                                           {"takes 1 entries, 21 bytes and 1 bytes", "takes 1 entry, 21 bytes and 1 byte"},
                                           {"1 axes, (1 copies)", "1 axis, (1 copy)"},
                                           {"2^24 - 1 elements, 0.1 bytes, 1 bytes_each", "2^24 - 1 elements, 0.1 bytes, 1 bytes_each"},
                                           {"1 of 1 values, of 1 values, 2 x n0 1 flits", "1 of 1 values, of 1 value, 2 x n0 1 flits"},
                                           {"m![A / 1 slices], 4 x 1 this", "m![A / 1 slices], 4 x 1 this"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        scene s = scene_of("");
        diag *d = diag_add(&s.diags, E_PARSE, SRC_NOWHERE, "%s", texts[i][0]);
        ck_assert_str_eq(d->message, texts[i][1]);
        arena_free(s.arena);
    }
}
END_TEST

START_TEST(no_place)
{
    scene s = scene_of("x");
    diag_add(&s.diags, E_FILE_READ, SRC_NOWHERE, "no file");
    diag_add(&s.diags, E_FILE_READ, (src_range){9, 0, 4}, "unknown file");
    check_text(&s, "error[E-FILE-READ]: no file\nerror[E-FILE-READ]: unknown file\n");
}
END_TEST

/* One diagnostic with a place, and how it is shown. */
typedef struct one_place_case {
    const char *source;
    diag_id id;
    const char *piece, *message, *text;
} one_place_case;

static const one_place_case one_place_cases[] = {
    /* of several lines the first */
    {"  f(a,\n    b)\n", E_PARSE, "f(a,\n    b)", "long", "k.vm:1:3: error[E-PARSE]: long\n    1 |   f(a,\n      |   ^~~~\n"},
    /* a tab reaches to the next multiple of 4 columns, a Hangul syllable takes two; columns count characters */
    {"\ta\tb /* \xed\x95\x9c\xea\xb5\xad */ xy\r\n", E_PARSE, "xy", "m",
     "k.vm:1:15: error[E-PARSE]: m\n    1 |     a   b /* \xed\x95\x9c\xea\xb5\xad */ xy\n      |                      ^~\n"},
    /* nothing reaches the terminal raw */
    {"a\x1b[31m \xff\xc0\x80 \xe2\x80\xae b", E_LEX, "b", "found \x1b[0m \xfe",
     "k.vm:1:13: error[E-LEX]: found \xef\xbf\xbd[0m \xef\xbf\xbd\n    1 | a\xef\xbf\xbd[31m \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
     "\xef\xbf\xbd b\n"
     "      |              ^\n"},
};

START_TEST(one_place)
{
    const one_place_case *k = &one_place_cases[_i];
    scene s = scene_of(k->source);
    diag_add(&s.diags, k->id, range_of(&s, k->piece), "%s", k->message);
    check_text(&s, k->text);
}
END_TEST

START_TEST(wide_characters)
{
    scene s = scene_of("a \xed\x95\x9c\xea\xb5\xad e\xcc\x81z\n");
    diag_add(&s.diags, E_LEX, range_of(&s, "\xed\x95\x9c\xea\xb5\xad"), "m");
    diag_add(&s.diags, E_LEX, range_of(&s, "z"), "m");
    check_text(&s, "k.vm:1:3: error[E-LEX]: m\n"
                   "    1 | a \xed\x95\x9c\xea\xb5\xad e\xcc\x81z\n"
                   "      |   ^~~~\n"
                   "k.vm:1:8: error[E-LEX]: m\n"
                   "    1 | a \xed\x95\x9c\xea\xb5\xad e\xcc\x81z\n"
                   "      |         ^\n");
}
END_TEST

START_TEST(empty_ranges)
{
    scene s = scene_of("ab\n");
    diag_add(&s.diags, E_PARSE, range(2, 2), "end of line");
    diag_add(&s.diags, E_PARSE, range(1, 1), "inside");
    diag_add(&s.diags, E_PARSE, range(3, 3), "end of file");
    diag_add(&s.diags, E_PARSE, range(70, 90), "past the end");
    check_text(&s, "k.vm:1:3: error[E-PARSE]: end of line\n    1 | ab\n      |   ^\n"
                   "k.vm:1:2: error[E-PARSE]: inside\n    1 | ab\n      |  ^\n"
                   "k.vm:2:1: error[E-PARSE]: end of file\n    2 | \n      | ^\n"
                   "k.vm:2:1: error[E-PARSE]: past the end\n    2 | \n      | ^\n");
}
END_TEST

START_TEST(long_lines_are_shown_in_part)
{
    enum { BYTES = 100000 };
    char *text = malloc(BYTES + 1);
    memset(text, 'x', BYTES);
    text[BYTES] = '\0';
    text[50000] = 'y';
    scene s = scene_of(text);
    diag_add(&s.diags, E_LEX, range(50000, 50001), "m");
    const char *shown = render_text(&s.diags, s.sources, false, s.arena);
    ck_assert_uint_lt(strlen(shown), 2000);
    const char *line = strstr(shown, "    1 | "), *under = strstr(shown, "\n      | ");
    ck_assert_ptr_nonnull(strchr(under, '^'));
    ck_assert_int_eq(strchr(line, 'y') - line, strchr(under, '^') - under - 1);
    arena_free(s.arena);
    free(text);
}
END_TEST

START_TEST(colours)
{
    scene s = scene_of("ab");
    diag *d = diag_add(&s.diags, E_PARSE, range(0, 2), "m");
    diag_help(&s.diags, d, "h");
    const char *colour = render_text(&s.diags, s.sources, true, s.arena);
    ck_assert_str_eq(colour, "\x1b[1mk.vm:1:1:\x1b[0m \x1b[1;31merror[E-PARSE]:\x1b[0m \x1b[1mm\x1b[0m\n"
                             "    1 | ab\n      | \x1b[1;32m^~\x1b[0m\n\x1b[1;36mhelp:\x1b[0m h\n");
    d->severity = DIAG_WARNING;
    ck_assert_ptr_nonnull(strstr(render_text(&s.diags, s.sources, false, s.arena), "warning[E-PARSE]: m"));
    arena_free(s.arena);
}
END_TEST

static int64_t number(const json_t *object, const char *outer, const char *inner, const char *key)
{
    const json_t *place = json_object_get(json_object_get(json_object_get(object, outer), inner), key);
    ck_assert(json_is_integer(place));
    return json_integer_value(place);
}

START_TEST(json)
{
    scene s = scene_of("a \xed\x95\x9c b\n \"c\n");
    diag *d = diag_add(&s.diags, E_PARSE, range_of(&s, "b\n \"c"), "quote \" and \xff byte");
    diag_note(&s.diags, d, range_of(&s, "a"), "note");
    diag_note(&s.diags, d, SRC_NOWHERE, "nowhere");
    diag_add(&s.diags, E_FILE_READ, SRC_NOWHERE, "m");
    const char *text = render_json(&s.diags, s.sources, s.arena);
    json_t *array = json_loads(text, 0, NULL);
    ck_assert_msg(json_is_array(array) && json_array_size(array) == 2, "%s", text);
    const json_t *o = json_array_get(array, 0);
    ck_assert_str_eq(json_string_value(json_object_get(o, "id")), "E-PARSE");
    ck_assert_str_eq(json_string_value(json_object_get(o, "severity")), "error");
    ck_assert_str_eq(json_string_value(json_object_get(o, "file")), "k.vm");
    ck_assert_str_eq(json_string_value(json_object_get(o, "message")), "quote \" and \xef\xbf\xbd byte");
    ck_assert(json_is_null(json_object_get(o, "help")));
    ck_assert_int_eq(number(o, "range", "begin", "line"), 1);
    ck_assert_int_eq(number(o, "range", "begin", "column"), 5);
    ck_assert_int_eq(number(o, "range", "begin", "offset"), 6);
    ck_assert_int_eq(number(o, "range", "end", "line"), 2);
    ck_assert_int_eq(number(o, "range", "end", "column"), 4);
    ck_assert_int_eq(number(o, "range", "end", "offset"), 11);
    const json_t *notes = json_object_get(o, "notes");
    ck_assert_uint_eq(json_array_size(notes), 2);
    ck_assert_int_eq(number(json_array_get(notes, 0), "range", "end", "column"), 2);
    ck_assert(json_is_null(json_object_get(json_array_get(notes, 1), "range")));
    ck_assert(json_is_null(json_object_get(json_array_get(array, 1), "file")));
    json_decref(array);
    arena_free(s.arena);
}
END_TEST

START_TEST(empty_list)
{
    scene s = scene_of("");
    ck_assert_str_eq(render_text(&s.diags, s.sources, true, s.arena), "");
    ck_assert_str_eq(render_json(&s.diags, s.sources, s.arena), "[]\n");
    arena_free(s.arena);
}
END_TEST

int main(void)
{
    TCase *text = suite_case("text");
    suite_tests(text, range_is_underlined, notes_and_help, one_of_a_thing, no_place, wide_characters, empty_ranges,
                long_lines_are_shown_in_part, colours);
    tcase_add_loop_test(text, one_place, 0, sizeof one_place_cases / sizeof *one_place_cases);
    TCase *machine = suite_case("json");
    suite_tests(machine, json, empty_list);
    return suite_status("render", text, machine);
}
