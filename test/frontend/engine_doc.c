/* Prints the tables of docs/engine/NAME.md from the rows of target/engine/NAME.def, and keeps the page in step:
 *
 *     engine_doc docs/engine/NAME.md            exit status 1 when the marked block is not what the rows say
 *     engine_doc --update docs/engine/NAME.md   writes the block anew
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/command.h"
#include "frontend/stage.h"
#include "ir/config.h"
#include "support/strbuf.h"
#include "test/page_block.h"

typedef enum row_kind { ROW_ENGINE, ROW_FORM, ROW_CONFIG, ROW_NUMBER, ROW_COMMAND, ROW_OPERATION, ROW_COMPARISON } row_kind;

/* Rows in the order of target/engines.def; forms, configurations and commands count on in their own tables. */
static const struct {
    row_kind kind;
    const char *name, *unit, *source;
    long long value;
} rows[] = {
#define ENGINE(symbol, name, summary) {ROW_ENGINE, #symbol, name, summary, 0},
#define FORM_ON(...) {ROW_FORM, NULL, NULL, NULL, 0},
#define CONFIG(name, key, summary) {ROW_CONFIG, #name, key, summary, CONFIG_##name},
#define CONFIG_PART(name, summary) {ROW_CONFIG, #name, #name, summary, CONFIG_##name},
#define LIMIT(field, value, unit, source) {ROW_NUMBER, #field, unit, source, (long long)(value)},
#define TIMING LIMIT
#define COMMAND(symbol, ...) {ROW_COMMAND, NULL, NULL, NULL, symbol},
#define VECTOR_OP(symbol, code, ...) {ROW_OPERATION, NULL, NULL, NULL, code},
#define VECTOR_COMPARE(symbol, code, ...) {ROW_COMPARISON, NULL, NULL, NULL, code},
#include "target/engines.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *engine; /* in capitals */

static void heading(strbuf *s, bool *begun, const char *text)
{
    if (!*begun)
        strbuf_puts(s, text);
    *begun = true;
}

static const char *values_text(const config_row *r, arena *a)
{
    const char *text = "";
    if (r->kind == FIELD_NUMBER)
        return r->most == INT64_MAX ? arena_printf(a, "from %lld on", (long long)r->least)
                                    : arena_printf(a, "%lld to %lld", (long long)r->least, (long long)r->most);
    for (size_t i = 0; r->kind == FIELD_CHOICE && i < r->choice_count; i++)
        text = arena_printf(a, "%s%s%lld", text, i ? ", " : "", (long long)r->choices[i]);
    return r->kind == FIELD_TERM    ? "a mapping"
           : r->kind == FIELD_FLAG  ? "yes or no"
           : r->kind == FIELD_DTYPE ? "an element type"
           : r->kind == FIELD_WORD  ? "a name"
                                    : text;
}

static void put_config(strbuf *s, config_id id, const char *key)
{
    for (size_t i = config_first_row(id); i < config_first_row(id + 1); i++) {
        const config_row *r = config_row_at(i);
        if (r->kind != FIELD_SHOWN)
            strbuf_printf(s, "| `%s.%s` | %s | %s | %s |\n", key, r->field, values_text(r, s->arena), r->unit ? r->unit : "", r->summary);
    }
}

static void put_operation(strbuf *s, unsigned code)
{
    const vector_op_row *r = vector_op_row_of(code);
    const char *name = r->type ? arena_printf(s->arena, "`%s::%s`", r->type, r->variant) : "";
    strbuf_printf(s, "| 0x%02x | `%s` | %s | %s | %u | %s | %s | %s |\n", code, r->name, name,
                  r->alu == VECTOR_ALU_NONE ? "" : vector_alu_name(r->alu), r->operands, dtype_row_of(r->from)->name,
                  dtype_row_of(r->to)->name, r->meaning);
}

/* Calls `put` for each of the engine's rows of a kind, under a heading where there is one. */
static void put_kind(strbuf *s, row_kind kind, const char *text)
{
    bool inside = false, begun = false;
    size_t form = 0;
    stage_description d;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].kind == ROW_ENGINE)
            inside = strcmp(rows[i].name, engine) == 0;
        bool described = rows[i].kind == ROW_FORM && stage_describe_form(form++, s->arena, &d);
        if (!inside || rows[i].kind != kind)
            continue;
        heading(s, &begun, text);
        if (described)
            strbuf_printf(s, "| `%s` | %s | %s | %s | %s |\n", d.signature, d.receivers, d.gives, d.dialects, d.summary);
        else if (kind == ROW_CONFIG)
            put_config(s, (config_id)rows[i].value, rows[i].unit);
        else if (kind == ROW_NUMBER)
            strbuf_printf(s, "| `%s` | %lld | %s | %s |\n", rows[i].name, rows[i].value, rows[i].unit, rows[i].source);
        else if (kind == ROW_COMMAND)
            strbuf_printf(s, "| [`%s`](../isa.md) | 0x%02x | %s |\n", command_row_of((command_op)rows[i].value)->name,
                          command_row_of((command_op)rows[i].value)->code, command_row_of((command_op)rows[i].value)->summary);
        else if (kind == ROW_OPERATION)
            put_operation(s, (unsigned)rows[i].value);
        else if (kind == ROW_COMPARISON)
            strbuf_printf(s, "| %lld | `Cmp::%s` | %s |\n", rows[i].value, vector_compare_row_of((unsigned)rows[i].value)->name,
                          vector_compare_row_of((unsigned)rows[i].value)->meaning);
    }
    strbuf_puts(s, begun ? "\n" : "");
}

static void put_all(strbuf *s)
{
    put_kind(s, ROW_FORM, "| method | called on | gives | releases | what it does |\n|---|---|---|---|---|\n");
    put_kind(s, ROW_OPERATION,
             "| code | operation | in the language | unit | operands | takes | gives | meaning |\n|---|---|---|---|---|---|---|---|\n");
    put_kind(s, ROW_COMPARISON, "| code | comparison | meaning |\n|---|---|---|\n");
    put_kind(s, ROW_CONFIG, "| configuration | values | unit | meaning |\n|---|---|---|---|\n");
    put_kind(s, ROW_NUMBER, "| number | value | unit | source |\n|---|---|---|---|\n");
    put_kind(s, ROW_COMMAND, "| command | opcode | what it does |\n|---|---|---|\n");
}

static const page_block page = {"engine_doc", "<!-- generated from target/engine: do not edit -->\n", put_all};

int main(int argc, char **argv)
{
    char name[64] = "";
    const char *path = argc > 1 ? argv[argc - 1] : "", *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    for (size_t i = 0; i + 1 < sizeof name && base[i] && base[i] != '.'; i++)
        name[i] = (char)toupper((unsigned char)base[i]);
    engine = name;
    return page_block_main(&page, argc, argv);
}
