#include "frontend/render.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/fix.h"
#include "support/budget.h"
#include "support/json_text.h"
#include "support/shown.h"
#include "support/strbuf.h"

enum { TAB_COLUMNS = 4 };

/* ---- Characters ---- */

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* Characters two columns wide on terminals (East Asian Wide and Fullwidth, emoji) and without width. Tables
 * of our own, since wcwidth depends on the process's locale. */
static const code_range wide[] = {
    {0x1100, 0x115f}, {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x2614, 0x2615},   {0x26a1, 0x26a1},
    {0x2705, 0x2705}, {0x274c, 0x274c},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa000, 0xa4cf}, {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};
static const code_range narrow[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
    {0x202a, 0x202e}, {0x2060, 0x206f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
};

static bool within(const code_range *ranges, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

static uint32_t columns_of(uint32_t c)
{
    if (c < 0x300)
        return 1;
    if (within(narrow, sizeof narrow / sizeof *narrow, c))
        return 0;
    return within(wide, sizeof wide / sizeof *wide, c) ? 2 : 1;
}

/* Appends the character as a terminal may show it (control characters and broken UTF-8 as U+FFFD, directional
 * marks too, for they could make a line look like another one) and returns its columns. */
static uint32_t put_character(strbuf *out, const char *text, uint32_t bytes, uint32_t column, uint32_t *used)
{
    uint32_t c = 0;
    *used = utf8_decode(text, bytes, &c);
    if (*used == 1 && c == '\t') {
        uint32_t blanks = TAB_COLUMNS - column % TAB_COLUMNS;
        strbuf_append(out, "    ", blanks);
        return blanks;
    }
    bool hidden = *used == 0 || utf8_is_hidden(c);
    if (*used == 0)
        *used = 1;
    if (hidden) {
        strbuf_puts(out, "\xef\xbf\xbd");
        return 1;
    }
    strbuf_append(out, text, *used);
    return columns_of(c);
}

const char *render_clean(const char *text, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    size_t bytes = strlen(text);
    for (size_t i = 0; i < bytes;) {
        uint32_t used, left = bytes - i < 8 ? (uint32_t)(bytes - i) : 8;
        if (text[i] == '\n') {
            strbuf_puts(&out, "\n");
            used = 1;
        } else {
            put_character(&out, text + i, left, 0, &used);
        }
        i += used;
    }
    return out.text;
}

/* ---- Text ---- */

typedef struct renderer {
    const source_map *sources;
    arena *arena;
    strbuf out;
    bool colour;
} renderer;

#define BOLD "\x1b[1m"
#define RED "\x1b[1;31m"
#define MAGENTA "\x1b[1;35m"
#define CYAN "\x1b[1;36m"
#define GREEN "\x1b[1;32m"
#define PLAIN "\x1b[0m"

static void put_coloured(renderer *r, const char *colour, const char *text)
{
    if (r->colour)
        strbuf_puts(&r->out, colour);
    strbuf_puts(&r->out, text);
    if (r->colour)
        strbuf_puts(&r->out, PLAIN);
}

static bool has_place(const renderer *r, src_range range)
{
    return range.file >= 0 && range.file < source_map_count(r->sources);
}

static void put_place(renderer *r, src_range range)
{
    if (!has_place(r, range))
        return;
    source_place at = source_locate(r->sources, range.file, range.begin);
    const char *name = shown_text(source_name(r->sources, range.file), r->arena);
    put_coloured(r, BOLD, arena_printf(r->arena, "%s:%u:%u:", name, at.line, at.column));
    strbuf_puts(&r->out, " ");
}

/* A source line longer than SHOWN_LINE_MAX is shown in part, from so many bytes in front of the range. */
enum { SHOWN_BEFORE = 100 };

/* The part of the line to show, in bytes of the line. */
static void choose_window(source_line line, uint32_t begin, uint32_t *first, uint32_t *end)
{
    *first = 0, *end = line.bytes;
    if (line.bytes <= SHOWN_LINE_MAX)
        return;
    *first = begin > SHOWN_BEFORE ? begin - SHOWN_BEFORE : 0;
    while (*first < begin && ((unsigned char)line.text[*first] & 0xc0) == 0x80)
        ++*first;
    *end = line.bytes - *first > SHOWN_LINE_MAX ? *first + SHOWN_LINE_MAX : line.bytes;
    while (*end > *first && *end < line.bytes && ((unsigned char)line.text[*end] & 0xc0) == 0x80)
        --*end;
}

/* The source line and under it `^~~~` as wide as the range; of a longer range the first line's part. */
static void put_snippet(renderer *r, src_range range)
{
    if (!has_place(r, range))
        return;
    source_place at = source_locate(r->sources, range.file, range.begin);
    source_line line = source_line_of(r->sources, range.file, at.line);
    uint32_t begin = range.begin > line.begin ? range.begin - line.begin : 0, first, shown_end;
    uint32_t end = range.end > line.begin ? range.end - line.begin : 0;
    begin = begin < line.bytes ? begin : line.bytes;
    end = end < line.bytes ? end : line.bytes;
    choose_window(line, begin, &first, &shown_end);

    char *gutter = arena_printf(r->arena, "%5u | ", at.line);
    strbuf_puts(&r->out, gutter);
    strbuf under;
    strbuf_init(&under, r->arena);
    bool marked = false;
    uint32_t column = 0, used;
    for (uint32_t i = first; i < shown_end; i += used) {
        uint32_t columns = put_character(&r->out, line.text + i, shown_end - i, column, &used);
        for (uint32_t c = 0; c < columns; c++) {
            bool inside = i >= begin && i < end;
            strbuf_puts(&under, inside ? (marked ? "~" : "^") : marked || i >= end ? "" : " ");
            marked |= inside;
        }
        column += columns;
    }
    strbuf_puts(&r->out, "\n      | ");
    put_coloured(r, GREEN, marked ? under.text : arena_printf(r->arena, "%s^", under.text));
    strbuf_puts(&r->out, "\n");
}

static void put_message(renderer *r, const char *text)
{
    put_coloured(r, BOLD, render_clean(text, r->arena));
    strbuf_puts(&r->out, "\n");
}

static void put_note(renderer *r, const diag_remark *note)
{
    put_place(r, note->range);
    put_coloured(r, CYAN, "note:");
    strbuf_puts(&r->out, " ");
    put_message(r, note->text);
    put_snippet(r, note->range);
}

static void put_diag(renderer *r, const diag *d)
{
    bool error = d->severity == DIAG_ERROR;
    put_place(r, d->range);
    const char *label = arena_printf(r->arena, "%s[%s]:", error ? "error" : "warning", diag_row_of(d->id)->name);
    put_coloured(r, error ? RED : MAGENTA, label);
    strbuf_puts(&r->out, " ");
    put_message(r, d->message);
    put_snippet(r, d->range);
    for (size_t i = 0; i < d->note_count; i++)
        put_note(r, &d->notes[i]);
    if (d->help != NULL) {
        put_coloured(r, CYAN, "help:");
        strbuf_printf(&r->out, " %s\n", render_clean(d->help, r->arena));
    }
}

const char *render_text(const diag_list *diags, const source_map *sources, bool colour, arena *a)
{
    renderer r = {.sources = sources, .arena = a, .colour = colour};
    strbuf_init(&r.out, a);
    for (size_t i = 0; i < diags->count; i++)
        put_diag(&r, diags->items[i]);
    return r.out.text;
}

/* ---- JSON ---- */

static json_t *json_text(const char *text, arena *a)
{
    return json_string(render_clean(text, a));
}

static json_t *json_place(const source_map *sources, int file, uint32_t offset)
{
    source_place at = source_locate(sources, file, offset);
    return json_pack("{s:I, s:I, s:I}", "line", (json_int_t)at.line, "column", (json_int_t)at.column, "offset",
                     (json_int_t)source_offset(sources, file, offset));
}

/* Sets file and range, both null without a place. */
static void json_set_range(json_t *object, const source_map *sources, src_range range, arena *a)
{
    bool known = range.file >= 0 && range.file < source_map_count(sources);
    json_object_set_new(object, "file", known ? json_string(shown_text(source_name(sources, range.file), a)) : json_null());
    if (!known) {
        json_object_set_new(object, "range", json_null());
        return;
    }
    json_t *place = json_object();
    json_object_set_new(place, "begin", json_place(sources, range.file, range.begin));
    json_object_set_new(place, "end", json_place(sources, range.file, range.end));
    json_object_set_new(object, "range", place);
}

static json_t *json_diag(const diag *d, const source_map *sources, arena *a)
{
    json_t *object = json_object();
    json_object_set_new(object, "id", json_text(diag_row_of(d->id)->name, a));
    json_object_set_new(object, "severity", json_string(d->severity == DIAG_ERROR ? "error" : "warning"));
    json_set_range(object, sources, d->range, a);
    json_object_set_new(object, "message", json_text(d->message, a));
    json_t *notes = json_array();
    for (size_t i = 0; i < d->note_count; i++) {
        json_t *note = json_object();
        json_object_set_new(note, "message", json_text(d->notes[i].text, a));
        json_set_range(note, sources, d->notes[i].range, a);
        json_array_append_new(notes, note);
    }
    json_object_set_new(object, "notes", notes);
    json_object_set_new(object, "help", d->help != NULL ? json_text(d->help, a) : json_null());
    const diag_edit *edits;
    size_t count = fix_edits(d, sources, a, &edits);
    json_t *changes = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *change = json_object();
        json_set_range(change, sources, edits[i].range, a);
        json_object_set_new(change, "text", json_string(edits[i].text));
        json_array_append_new(changes, change);
    }
    json_object_set_new(object, "edits", changes);
    return object;
}

const char *render_json(const diag_list *diags, const source_map *sources, arena *a)
{
    json_t *array = json_array();
    for (size_t i = 0; i < diags->count; i++)
        json_array_append_new(array, json_diag(diags->items[i], sources, a));
    const char *text = json_dump_text(array, JSON_INDENT(2) | JSON_PRESERVE_ORDER, a);
    return text ? text : "[]\n";
}
