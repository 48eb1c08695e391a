/* What follows from rows of the engines in files that are JSON themselves, kept in step:
 *
 *     engine_json grammar FILE            the methods that an editor colours: exit status 1 when they are not those of the rows
 *     engine_json schema FILE             element types, stages and the simple fields of configurations in the schema of --emit=json
 *     engine_json report FILE             parts of engines whose cycles are counted, in the schema of --report=json
 *     engine_json --update grammar FILE   writes the file anew
 *
 * The rest of the files is written by hand and stays. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/stage.h"
#include "ir/config.h"
#include "support/file.h"
#include "support/output.h"

/* ---- grammar ---- */

/* Types of the language that are no tensors. */
#define OTHER_TYPES "HbmTensorView|HbmTensorViewMut|DmTensorView|DmTensorViewMut|Context|TrfAddress|AccumulationKind|SwitchConfig"

static int longer_first(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    size_t m = strlen(x), n = strlen(y);
    return m != n ? (m < n) - (m > n) : strcmp(x, y);
}

static bool update_grammar(json_t *root, arena *a)
{
    const char *names[256];
    size_t count = 0;
    stage_description d;
    for (size_t i = 0; count < sizeof names / sizeof *names && stage_describe_form(i, a, &d); i++)
        if (d.on_value)
            names[count++] = d.name;
    qsort(names, count, sizeof *names, longer_first); /* the first that matches is taken */
    const char *all = "";
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            all = arena_printf(a, "%s%s%s", all, i ? "|" : "", names[i]);
    json_t *rules = json_object_get(root, "repository"), *stage = json_object_get(rules, "stage");
    json_t *type = json_array_get(json_object_get(json_object_get(rules, "type"), "patterns"), 0);
    const char *types = "";
    for (tensor_kind k = 0; k < TENSOR_KIND_COUNT; k++)
        types = arena_printf(a, "%s%s|", types, tensor_kind_name(k));
    types = arena_printf(a, "\\b(?:%s" OTHER_TYPES ")\\b", types);
    return json_object_set_new(stage, "match", json_string(arena_printf(a, "(\\.)\\s*(%s)\\b", all))) == 0 &&
           json_object_set_new(type, "match", json_string(types)) == 0;
}

/* ---- schema ---- */

static json_t *reference(const char *name)
{
    return json_pack("{s:s+}", "$ref", "#/$defs/", name);
}

static void add_property(json_t *p, const config_row *r)
{
    switch (r->kind) {
    case FIELD_NUMBER:
        if (r->most == INT64_MAX && r->least <= 1 && r->least >= 0) {
            json_object_update_new(p, reference(r->least ? "positive" : "count"));
            return;
        }
        json_object_set_new(p, "type", json_string("integer"));
        json_object_set_new(p, "minimum", json_integer(r->least));
        if (r->most < INT64_MAX)
            json_object_set_new(p, "maximum", json_integer(r->most));
        return;
    case FIELD_CHOICE: {
        json_t *values = json_array();
        for (size_t i = 0; i < r->choice_count; i++)
            json_array_append_new(values, json_integer(r->choices[i]));
        json_object_set_new(p, "enum", values);
        return;
    }
    case FIELD_FLAG: json_object_set_new(p, "type", json_string("boolean")); return;
    case FIELD_TERM: json_object_update_new(p, reference("mapping")); return;
    case FIELD_DTYPE: json_object_update_new(p, reference("dtype")); return;
    case FIELD_WORD: json_object_set_new(p, "type", json_string("string")); return;
    case FIELD_SHOWN: return;
    }
}

static bool update_property(json_t *defs, const config_row *r, arena *a)
{
    json_t *properties = json_object_get(json_object_get(defs, r->config), "properties");
    if (!properties || (r->kind == FIELD_SHOWN && !json_object_get(properties, r->field))) {
        fprintf(stderr, "engine_json: the schema has no %s of %s\n", r->field, r->config);
        return false;
    }
    if (r->kind == FIELD_SHOWN)
        return true;
    json_t *p = json_object();
    json_object_set_new(p, "description", json_string(r->unit ? arena_printf(a, "%s %s", r->unit, r->summary) : r->summary));
    add_property(p, r);
    return json_object_set_new(properties, r->field, p) == 0;
}

/* A configuration that the schema does not know: all of its fields, shown by the operation of its name. */
static bool add_config(json_t *defs, const char *name, const char *key, config_id id)
{
    json_t *required = json_array(), *operation = json_object_get(defs, "op");
    for (size_t row = config_first_row(id); row < config_first_row(id + 1); row++)
        json_array_append_new(required, json_string(config_row_at(row)->field));
    json_t *rule = json_pack("{s:{s:{s:{s:s}}}, s:{s:[s]}}", "if", "properties", "op", "const", name, "then", "required", key);
    return json_object_set_new(defs, name, json_pack("{s:s, s:o, s:{}}", "type", "object", "required", required, "properties")) == 0 &&
           json_object_set_new(json_object_get(operation, "properties"), key, reference(name)) == 0 &&
           json_array_append_new(json_object_get(operation, "allOf"), rule) == 0;
}

static bool add_configs(json_t *defs)
{
    static const struct {
        const char *name, *key; /* NULL: a part of another */
        config_id id;
    } configs[] = {
#define CONFIG(name, key, summary) {#name, key, CONFIG_##name},
#define CONFIG_PART(name, summary) {#name, NULL, CONFIG_##name},
#include "target/engines.def"
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        if (configs[i].key && !json_object_get(defs, configs[i].name))
            ok = add_config(defs, configs[i].name, configs[i].key, configs[i].id) && ok;
    return ok;
}

static bool update_schema(json_t *root, arena *a)
{
    json_t *defs = json_object_get(root, "$defs"), *types = json_array(), *stages = json_array();
    for (int t = 0; t < DTYPE_COUNT; t++)
        json_array_append_new(types, json_string(dtype_row_of((dtype)t)->name));
    for (op_kind k = 0; k < IR_OP_COUNT; k++)
        if (op_kind_is_stage(k))
            json_array_append_new(stages, json_string(op_kind_name(k)));
    bool ok = json_object_set_new(json_object_get(defs, "dtype"), "enum", types) == 0;
    json_t *operation = json_object_get(json_object_get(json_object_get(defs, "op"), "properties"), "op");
    ok = json_object_set_new(operation, "enum", stages) == 0 && ok;
    ok = add_configs(defs) && ok;
    for (size_t i = 0; config_row_at(i); i++)
        ok = update_property(defs, config_row_at(i), a) && ok;
    return ok;
}

/* ---- report ---- */

static bool update_report(json_t *root, arena *a)
{
    (void)a;
    static const char *const names[] = {
#define BUSY(symbol, name) name,
#include "target/engines.def"
    };
    json_t *engines = json_object_get(json_object_get(root, "$defs"), "engines"), *required = json_array(), *properties = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_array_append_new(required, json_string(names[i]));
        json_object_set_new(properties, names[i], reference("count"));
    }
    bool ok = json_object_set_new(engines, "required", required) == 0;
    return json_object_set_new(engines, "properties", properties) == 0 && ok;
}

/* ---- files ---- */

static int print_faults(const diag_list *diags)
{
    for (size_t i = 0; i < diags->count; i++)
        fprintf(stderr, "engine_json: %s\n", diags->items[i]->message);
    return EXIT_FAILURE;
}

static int run(bool update, bool (*change)(json_t *, arena *), const char *path, arena *a)
{
    diag_list diags;
    size_t size;
    diag_list_init(&diags, a);
    unsigned char *bytes = file_read_all(path, &size, &diags);
    if (!bytes)
        return print_faults(&diags);
    json_t *root = json_loadb((const char *)bytes, size, 0, NULL);
    bool changed = root && change(root, a);
    char *dumped = changed ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    const char *wanted = dumped ? arena_printf(a, "%s\n", dumped) : NULL;
    bool same = wanted && strlen(wanted) == size && memcmp(wanted, bytes, size) == 0;
    free(dumped);
    free(bytes);
    if (!wanted || same)
        return same ? EXIT_SUCCESS : EXIT_FAILURE;
    if (!update) {
        fprintf(stderr, "engine_json: %s is out of date; run it with --update\n", path);
        return EXIT_FAILURE;
    }
    return output_write(path, wanted, strlen(wanted), &diags) ? EXIT_SUCCESS : print_faults(&diags);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*change)(json_t *, arena *);
    } files[] = {{"grammar", update_grammar}, {"schema", update_schema}, {"report", update_report}};
    bool update = argc == 4 && strcmp(argv[1], "--update") == 0;
    size_t i = 0, count = sizeof files / sizeof *files;
    while (i < count && (argc != 3 + update || strcmp(argv[1 + update], files[i].name) != 0))
        i++;
    if (i == count) {
        fprintf(stderr, "usage: %s [--update] grammar|schema|report FILE\n", argv[0]);
        return 2;
    }
    arena *a = arena_new();
    int status = a ? run(update, files[i].change, argv[2 + update], a) : EXIT_FAILURE;
    arena_free(a);
    return status;
}
