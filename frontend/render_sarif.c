/* SARIF 2.1.0 (OASIS standard, errata 01): what code hosts and editors read. Columns count Unicode code points (3.14.17), which
 * is how source_locate counts. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/fix.h"
#include "frontend/render.h"
#include "support/json_text.h"
#include "support/strbuf.h"

static json_t *text_object(const char *text, arena *a)
{
    return json_pack("{s:o}", "text", json_string(render_clean(text, a)));
}

/* A relative URI reference (RFC 3986): what may not stand in one is percent-encoded. */
static const char *uri_of(const char *name, arena *a)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    strbuf out;
    strbuf_init(&out, a);
    for (; *name; name++)
        if (strchr(plain, *name))
            strbuf_append(&out, name, 1);
        else
            strbuf_printf(&out, "%%%02X", (unsigned char)*name);
    return out.text ? out.text : "";
}

static bool has_place(const source_map *sources, src_range range)
{
    return range.file >= 0 && range.file < source_map_count(sources);
}

static json_t *region_of(const source_map *sources, src_range range)
{
    source_place begin = source_locate(sources, range.file, range.begin), end = source_locate(sources, range.file, range.end);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "startLine", (json_int_t)begin.line, "startColumn", (json_int_t)begin.column,
                     "endLine", (json_int_t)end.line, "endColumn", (json_int_t)end.column, "byteOffset",
                     (json_int_t)source_offset(sources, range.file, range.begin), "byteLength",
                     (json_int_t)(range.end > range.begin ? range.end - range.begin : 0));
}

static json_t *artifact_of(const source_map *sources, int file, arena *a)
{
    return json_pack("{s:o}", "uri", json_string(uri_of(source_name(sources, file), a)));
}

static json_t *location(const source_map *sources, src_range range, arena *a)
{
    return json_pack("{s:o, s:o}", "artifactLocation", artifact_of(sources, range.file, a), "region", region_of(sources, range));
}

/* 3.55: the changes of a help, all of them one fix. */
static json_t *fix(const diag *d, const source_map *sources, arena *a)
{
    const diag_edit *edits;
    size_t count = fix_edits(d, sources, a, &edits);
    json_t *changes = json_array(), *replacements = NULL;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || edits[i].range.file != edits[i - 1].range.file) {
            replacements = json_array();
            json_array_append_new(changes, json_pack("{s:o, s:o}", "artifactLocation", artifact_of(sources, edits[i].range.file, a),
                                                     "replacements", replacements));
        }
        json_array_append_new(replacements, json_pack("{s:o, s:o}", "deletedRegion", region_of(sources, edits[i].range), "insertedContent",
                                                      text_object(edits[i].text, a)));
    }
    if (count)
        return json_pack("{s:o, s:o}", "description", text_object(d->help, a), "artifactChanges", changes);
    json_decref(changes);
    return NULL;
}

static const char *level_of(diag_severity severity)
{
    return severity == DIAG_ERROR ? "error" : "warning";
}

/* Notes with a place are related locations; those without are lines of the message, as the help is. */
static json_t *result(const diag *d, json_int_t rule, const source_map *sources, arena *a)
{
    strbuf message;
    strbuf_init(&message, a);
    strbuf_puts(&message, d->message);
    json_t *related = json_array(), *locations = json_array();
    for (size_t i = 0; i < d->note_count; i++)
        if (has_place(sources, d->notes[i].range))
            json_array_append_new(related, json_pack("{s:o, s:o}", "physicalLocation", location(sources, d->notes[i].range, a), "message",
                                                     text_object(d->notes[i].text, a)));
        else
            strbuf_printf(&message, "\nnote: %s", d->notes[i].text);
    if (d->help)
        strbuf_printf(&message, "\nhelp: %s", d->help);
    if (has_place(sources, d->range))
        json_array_append_new(locations, json_pack("{s:o}", "physicalLocation", location(sources, d->range, a)));
    json_t *out =
        json_pack("{s:s, s:I, s:s, s:o, s:o, s:o}", "ruleId", diag_row_of(d->id)->name, "ruleIndex", rule, "level", level_of(d->severity),
                  "message", text_object(message.text, a), "locations", locations, "relatedLocations", related);
    json_t *change = fix(d, sources, a);
    if (change)
        json_object_set_new(out, "fixes", json_pack("[o]", change));
    return out;
}

static json_t *rule(diag_id id, arena *a)
{
    const diag_row *row = diag_row_of(id);
    return json_pack("{s:s, s:o, s:o, s:{s:s}}", "id", row->name, "shortDescription", text_object(row->title, a), "fullDescription",
                     text_object(row->explanation, a), "defaultConfiguration", "level", level_of(row->severity));
}

const char *render_sarif(const diag_list *diags, const source_map *sources, const char *version, arena *a)
{
    json_int_t index[DIAG_ID_COUNT];
    bool broken[DIAG_ID_COUNT] = {false};
    json_t *rules = json_array(), *results = json_array();
    for (size_t i = 0; i < diags->count; i++)
        broken[diags->items[i]->id] = true;
    for (int id = 0; id < DIAG_ID_COUNT; id++)
        if (broken[id]) {
            index[id] = (json_int_t)json_array_size(rules);
            json_array_append_new(rules, rule((diag_id)id, a));
        }
    for (size_t i = 0; i < diags->count; i++)
        json_array_append_new(results, result(diags->items[i], index[diags->items[i]->id], sources, a));
    json_t *log = json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:s, s:o}]}", "$schema",
                            "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "version",
                            "2.1.0", "runs", "tool", "driver", "name", "visac", "version", version, "rules", rules, "columnKind",
                            "unicodeCodePoints", "results", results);
    const char *text = json_dump_text(log, JSON_INDENT(2) | JSON_PRESERVE_ORDER, a);
    return text ? text : "{}\n";
}
