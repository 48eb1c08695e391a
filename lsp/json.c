#include "lsp/json.h"

#include <stdlib.h>
#include <string.h>

json_t *json_bytes(const char *text)
{
    json_t *j = json_string(text);
    char *copy = j ? NULL : strdup(text);
    for (char *p = copy; p && *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    if (copy)
        j = json_string(copy);
    free(copy);
    return j;
}

static json_t *json_position(text_position p)
{
    return json_pack("{s:I, s:I}", "line", (json_int_t)p.line, "character", (json_int_t)p.column);
}

static json_t *range_in(const text_lines *lines, text_encoding encoding, visa_place place)
{
    return json_pack("{s:o, s:o}", "start", json_position(text_position_of(lines, encoding, place.begin)), "end",
                     json_position(text_position_of(lines, encoding, place.end)));
}

json_t *json_range(const documents *all, document *d, visa_place place)
{
    static const visa_place beginning;
    const text_lines *lines = document_lines(d, place.file);
    return lines ? range_in(lines, all->encoding, place) : range_in(&d->lines, all->encoding, beginning);
}

json_t *json_location(const documents *all, document *d, const visa_compilation *c, visa_place place)
{
    const char *name = place.file > 0 ? visa_file_name(c, place.file) : NULL;
    char *uri = name ? uri_of_path(name) : NULL;
    json_t *j = json_pack("{s:o, s:o}", "uri", json_bytes(uri ? uri : d->uri), "range", json_range(all, d, place));
    free(uri);
    return j;
}

json_t *json_diagnostic(const documents *all, document *d, const visa_compilation *c, const visa_diagnostic *from)
{
    enum { ERROR = 1, WARNING = 2 }; /* DiagnosticSeverity */
    json_t *related = json_array();
    for (size_t i = 0; i < from->note_count; i++)
        if (from->notes[i].place.file >= 0)
            json_array_append_new(related, json_pack("{s:o, s:o}", "location", json_location(all, d, c, from->notes[i].place), "message",
                                                     json_bytes(from->notes[i].message)));
    json_t *j = json_pack("{s:o, s:i, s:s, s:s}", "range", json_range(all, d, from->place), "severity", from->is_error ? ERROR : WARNING,
                          "code", from->id, "source", "visac");
    size_t bytes = strlen(from->message) + (from->help ? strlen(from->help) : 0) + 16;
    for (size_t i = 0; i < from->note_count; i++)
        bytes += strlen(from->notes[i].message) + 16;
    char *message = malloc(bytes), *end = message;
    if (message) {
        end = stpcpy(end, from->message);
        for (size_t i = 0; i < from->note_count; i++)
            if (from->notes[i].place.file < 0)
                end = stpcpy(stpcpy(end, "\nnote: "), from->notes[i].message);
        if (from->help)
            stpcpy(stpcpy(end, "\nhelp: "), from->help);
    }
    json_object_set_new(j, "message", json_bytes(message ? message : from->message));
    free(message);
    json_object_set_new(j, "relatedInformation", related);
    return j;
}

bool json_spend_diagnostic(documents *all, const visa_diagnostic *from)
{
    uint64_t bytes = strlen(from->message) + (from->help ? strlen(from->help) : 0);
    for (size_t i = 0; i < from->note_count; i++)
        bytes += strlen(from->notes[i].message);
    return answer_make(&all->answer, 16 + 8 * from->note_count, bytes);
}

bool json_to_offset(const documents *all, const document *d, const json_t *position, uint32_t *out)
{
    const json_t *line = json_object_get(position, "line"), *column = json_object_get(position, "character");
    if (!json_is_integer(line) || !json_is_integer(column) || json_integer_value(line) < 0 || json_integer_value(column) < 0)
        return false;
    json_int_t l = json_integer_value(line), k = json_integer_value(column);
    text_position p = {(uint32_t)(l < UINT32_MAX ? l : UINT32_MAX), (uint32_t)(k < UINT32_MAX ? k : UINT32_MAX)};
    *out = text_offset_of(&d->lines, all->encoding, p);
    return true;
}
