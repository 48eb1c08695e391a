/* What is between the compiler and an editor: positions, messages, descriptions of stages, fixes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/stage.h"
#include "include/visa_editor.h"
#include "lsp/document.h"
#include "lsp/message.h"
#include "lsp/text.h"
#include "test/suite.h"

/* ---- positions ---- */

static const char *const pieces[] = {"a",    "\n",   "\r\n",      "\r", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\xa6\x80",
                                     "\xff", "\x80", "\xf0\x9fz", " "};
enum { PIECES = sizeof pieces / sizeof *pieces };

static size_t random_text(char *text, unsigned length)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < length; i++)
        bytes += (size_t)(stpcpy(text + bytes, pieces[rand() % PIECES]) - (text + bytes));
    return bytes;
}

/* The column by a second way: from the line's begin, counting the units of whole characters. */
static uint32_t units_before(const char *line, size_t bytes, text_encoding encoding)
{
    uint32_t units = 0;
    for (size_t i = 0; i < bytes; units++) {
        size_t step = 1;
        for (int p = 4; p < 7; p++)
            if (strncmp(line + i, pieces[p], strlen(pieces[p])) == 0)
                step = strlen(pieces[p]);
        units += encoding == TEXT_UTF8 ? (uint32_t)step - 1 : step == 4;
        i += step;
    }
    return units;
}

START_TEST(positions_and_offsets_are_inverse)
{
    srand(_i + 1);
    char text[256];
    size_t bytes = random_text(text, (unsigned)rand() % 40);
    for (text_encoding encoding = TEXT_UTF16; encoding <= TEXT_UTF8; encoding++) {
        text_lines lines;
        ck_assert(text_lines_read(&lines, text, bytes));
        for (uint32_t offset = 0; offset <= bytes; offset++) {
            text_position p = text_position_of(&lines, encoding, offset);
            uint32_t back = text_offset_of(&lines, encoding, p);
            ck_assert_uint_le(back, offset);
            ck_assert_uint_le(offset - back, 3); /* inside a character, or of a line end */
            ck_assert_uint_eq(p.column, units_before(text + lines.begins[p.line], back - lines.begins[p.line], encoding));
            text_position again = text_position_of(&lines, encoding, back);
            ck_assert(again.line == p.line && again.column == p.column);
        }
        text_position beyond = {lines.count + 7, 3}, wide = {0, UINT32_MAX};
        ck_assert_uint_eq(text_offset_of(&lines, encoding, beyond), bytes);
        ck_assert_uint_le(text_offset_of(&lines, encoding, wide), bytes);
        text_lines_free(&lines);
    }
}
END_TEST

/* ---- messages ---- */

START_TEST(messages_come_in_pieces_of_any_size)
{
    static const char stream[] = "Content-Length: 3\r\n\r\nabcContent-Type: x\r\ncontent-length:0\r\n\r\nContent-Length: 5\n\n\n\r\n\r\n";
    static const char *const wanted[] = {"abc", "", "\n\r\n\r\n"};
    message_reader r = {0};
    size_t found = 0, piece = (size_t)_i + 1, total = sizeof stream - 1;
    for (size_t at = 0; at < total; at += piece) {
        const char *body;
        size_t size;
        ck_assert(message_feed(&r, stream + at, total - at < piece ? total - at : piece));
        while (message_next(&r, &body, &size) == MESSAGE_WHOLE) {
            ck_assert_uint_lt(found, 3);
            ck_assert_uint_eq(size, strlen(wanted[found]));
            ck_assert_mem_eq(body, wanted[found], size);
            found++;
        }
    }
    ck_assert_uint_eq(found, 3);
    message_reader_free(&r);
}
END_TEST

START_TEST(a_length_that_nobody_sends_is_a_fault)
{
    static const char *const headers[] = {
        "Content-Length: -1\r\n\r\n", "Content-Length: 67108865\r\n\r\n", "Content-Length: 18446744073709551617\r\n\r\n",
        "Content-Length: x\r\n\r\n",  "Content-Length: 1 2\r\n\r\n",      "nothing\r\n\r\n"};
    message_reader r = {0};
    const char *body;
    size_t size;
    ck_assert(message_feed(&r, headers[_i], strlen(headers[_i])));
    ck_assert_int_eq(message_next(&r, &body, &size), MESSAGE_FAULTY);
    ck_assert(message_feed(&r, "Content-Length: 1\r\n\r\nx", 22));
    ck_assert_int_eq(message_next(&r, &body, &size), MESSAGE_WHOLE);
    ck_assert_uint_eq(size, 1);
    message_reader_free(&r);
}
END_TEST

START_TEST(paths_and_uris_are_inverse)
{
    static const char *const paths[] = {"/a/b.vm", "/with blank/\xc3\xa9%25.vm", "/100%", "/a+b&c?d#e"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *uri = uri_of_path(paths[i]), *path = path_of_uri(uri);
        ck_assert_str_eq(path, paths[i]);
        ck_assert_ptr_null(strpbrk(uri, " ?#\xc3"));
        free(uri);
        free(path);
    }
    char *odd = path_of_uri("file://localhost/a%2fb%zz%0");
    ck_assert_str_eq(odd, "/a/b%zz%0");
    free(odd);
}
END_TEST

/* ---- stages ---- */

START_TEST(every_stage_is_described)
{
    arena *a = arena_new();
    stage_description d;
    size_t count = 0;
    for (; stage_describe(count, DIALECT_APRIL, NULL, a, &d); count++) {
        unsigned parameters = d.parameters[0] != '\0';
        for (const char *p = d.parameters; *p; p++)
            parameters += *p == ',';
        ck_assert_msg(parameters == d.generics, "%s takes %u type arguments, described are %s", d.name, d.generics, d.parameters);
        ck_assert_msg(d.summary[0], "%s is not described", d.name);
    }
    ck_assert_uint_gt(count, 10);
    arena_free(a);
}
END_TEST

/* ---- fixes ---- */

START_TEST(fixes_replace_the_name_behind_a_path)
{
    static const char text[] = "mod a { pub const SIXTEEN: usize = 16; }\nfn f(x: &HbmTensor<i8, m![1], m![1]>) -> DmTensor<i8, m![1], "
                               "m![1], m![1], m![1]> { x.to_dm(&mut ctx.tdma, SIXTEN) }\n"
                               "const SIXTEEN: usize = 1;\n";
    visa_options options = {.editor = true};
    visa_compilation *c = visa_compile("/none/k.vm", text, sizeof text - 1, &options);
    visa_diagnostic d;
    bool found = false;
    for (size_t i = 0; visa_diagnostic_at(c, i, &d); i++)
        if (d.edit_count == 1 && strcmp(d.edits[0].text, "SIXTEEN") == 0) {
            found = true;
            ck_assert_uint_eq(d.edits[0].place.end - d.edits[0].place.begin, strlen("SIXTEN"));
        }
    ck_assert(found);
    visa_free(c);
}
END_TEST

int main(void)
{
    TCase *cases = suite_case("editor");
    tcase_add_loop_test(cases, positions_and_offsets_are_inverse, 0, 300);
    tcase_add_loop_test(cases, messages_come_in_pieces_of_any_size, 0, 40);
    tcase_add_loop_test(cases, a_length_that_nobody_sends_is_a_fault, 0, 6);
    suite_tests(cases, paths_and_uris_are_inverse, every_stage_is_described, fixes_replace_the_name_behind_a_path);
    return suite_status("editor", cases);
}
