#include "runtime/step/tokens.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/budget.h"
#include "support/json_nesting.h"
#include "support/strbuf.h"

#define LATEST_CYCLE (INT64_C(1) << 50) /* sums of it with what a run can last are no overflow */

typedef struct token_reader {
    const step_program *program;
    step_pool *pool;
    arena *arena;
    diag_list *diags;
    const char *what;
    size_t at;
} token_reader;

/* Always NULL. */
static step_value *wrong(token_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static step_value *wrong(token_reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(r->arena, format, args);
    va_end(args);
    diag_add(r->diags, E_STEP_TOKENS, SRC_NOWHERE, "%s, token %zu: %s", r->what, r->at, text);
    return NULL;
}

/* ---- values ---- */

static bool tile_sizes(const json_t *rows, size_t *row_count, size_t *columns)
{
    *row_count = json_array_size(rows);
    *columns = *row_count > 0 ? json_array_size(json_array_get(rows, 0)) : 0;
    for (size_t i = 0; i < *row_count; i++) {
        const json_t *row = json_array_get(rows, i);
        if (!json_is_array(row) || json_array_size(row) != *columns)
            return false;
        for (size_t k = 0; k < *columns; k++)
            if (!json_is_number(json_array_get(row, k)))
                return false;
    }
    return true;
}

static step_value *read_tile(token_reader *r, const step_type *t, const json_t *j)
{
    const json_t *rows = json_is_object(j) ? json_object_get(j, "tile") : j,
                 *valid = json_is_object(j) ? json_object_get(j, "valid") : NULL;
    size_t row_count = 1, columns = 1;
    if (!json_is_number(rows) && (!json_is_array(rows) || !tile_sizes(rows, &row_count, &columns)))
        return wrong(r, "a tile is a list of rows of equal length");
    if ((t->rows >= 0 && (size_t)t->rows != row_count) || (t->columns >= 0 && (size_t)t->columns != columns))
        return wrong(r, "a tile of %zu x %zu where the stream has %" PRId64 " x %" PRId64, row_count, columns, t->rows, t->columns);
    if (valid && (!json_is_integer(valid) || json_integer_value(valid) < 0 || (size_t)json_integer_value(valid) > row_count))
        return wrong(r, "`valid` is a number of the tile's %zu rows", row_count);
    step_value *v = step_tile_new(r->pool, (int64_t)row_count, (int64_t)columns);
    v->tile.valid = valid ? json_integer_value(valid) : (int64_t)row_count;
    for (size_t i = 0; v->tile.elements && i < row_count * columns; i++) {
        const json_t *x = json_is_number(rows) ? rows : json_array_get(json_array_get(rows, i / columns), i % columns);
        v->tile.elements[i] = step_round(t->dtype, (float)json_number_value(x));
    }
    return v;
}

static step_value *read_selector(token_reader *r, const step_type *t, const json_t *j)
{
    size_t count = json_array_size(j);
    uint32_t *picks = ARENA_ARRAY(r->arena, uint32_t, count + 1);
    if (!json_is_array(j))
        return wrong(r, "a selector is a list of the outputs that it names");
    for (size_t i = 0; i < count; i++) {
        const json_t *x = json_array_get(j, i);
        int64_t pick = json_is_integer(x) ? json_integer_value(x) : -1;
        if (pick < 0 || pick >= t->width || (i > 0 && (uint32_t)pick <= picks[i - 1]))
            return wrong(r, "a selector names outputs 0 to %" PRId64 " in ascending order", t->width - 1);
        picks[i] = (uint32_t)pick;
    }
    if (t->hot > 0 && (int64_t)count != t->hot)
        return wrong(r, "a selector of %zu output%s where the stream has selectors of %" PRId64 " of %" PRId64, count,
                     count == 1 ? "" : "s", t->hot, t->width);
    return step_selector_new(r->pool, picks, (uint32_t)count);
}

static step_value *read_value(token_reader *r, uint32_t type, const json_t *j)
{
    const step_type *t = &r->program->types[type];
    switch (t->kind) {
    case STEP_TILE: return read_tile(r, t, j);
    case STEP_SELECTOR: return read_selector(r, t, j);
    case STEP_BOOL: return json_is_boolean(j) ? step_bool_new(r->pool, json_is_true(j)) : wrong(r, "a bool is true or false");
    case STEP_ADDRESS:
        return json_is_integer(j) && json_integer_value(j) >= 0 ? step_address_new(r->pool, json_integer_value(j))
                                                                : wrong(r, "an address is a number from 0 on");
    default: return wrong(r, "streams of pairs and buffers are made inside a program");
    }
}

/* ---- tokens ---- */

/* The level of "S2"; 0 when it is no stop. A level has one spelling: no sign, no zero before it, nothing around it. */
static unsigned stop_level(const json_t *j)
{
    const char *text = json_string_value(j);
    char spelt[16];
    unsigned level = text && *text == 'S' ? (unsigned)strtoul(text + 1, NULL, 10) : 0;
    snprintf(spelt, sizeof spelt, "S%u", level);
    return text && strcmp(text, spelt) == 0 ? level : 0;
}

static bool read_token(token_reader *r, const step_output *s, const json_t *j, step_token *out)
{
    if (json_is_string(j)) {
        unsigned level = stop_level(j);
        if (level < 1 || level > s->rank)
            return wrong(r, "`%s` is no stop of a stream of rank %" PRIu32, json_string_value(j), s->rank) != NULL;
        *out = step_stop_of(level);
        return true;
    }
    *out = step_token_of(read_value(r, s->type, j));
    return out->value != NULL;
}

/* {"at": n, "token": t}; NULL with a diagnostic. */
static const json_t *read_time(token_reader *r, const json_t *j, int64_t *cycle)
{
    const json_t *at = json_object_get(j, "at"), *token = json_object_get(j, "token");
    *cycle = json_is_integer(at) ? json_integer_value(at) : -1;
    if (*cycle >= 0 && *cycle <= LATEST_CYCLE && token)
        return token;
    wrong(r, "a token that waits is {\"at\": cycle, \"token\": token}, its cycle at most %" PRId64, LATEST_CYCLE);
    return NULL;
}

static bool read_all(token_reader *r, const step_output *s, const json_t *list, step_feed *feed)
{
    size_t count = json_array_size(list);
    step_token *tokens = ARENA_ARRAY(r->arena, step_token, count + 1);
    int64_t *cycles = NULL;
    if (!json_is_array(list))
        return wrong(r, "a stream is a JSON array of tokens") != NULL;
    for (r->at = 0; r->at < count; r->at++) {
        const json_t *j = json_array_get(list, r->at);
        if (json_object_get(j, "at")) {
            cycles = cycles ? cycles : ARENA_ARRAY(r->arena, int64_t, count);
            j = read_time(r, j, &cycles[r->at]);
        }
        if (!j || !read_token(r, s, j, &tokens[r->at]))
            return false;
    }
    const step_token *last = count > 0 ? &tokens[count - 1] : NULL;
    if (last && s->rank > 0 && (last->kind != STEP_STOP || last->level != s->rank))
        return wrong(r, "a stream of rank %" PRIu32 " ends with the stop S%" PRIu32, s->rank, s->rank) != NULL;
    feed->tokens = tokens;
    feed->not_before = cycles;
    feed->count = count;
    return true;
}

bool step_tokens_read(const step_program *p, const step_output *stream, const char *text, size_t bytes, const char *what, step_pool *pool,
                      arena *a, diag_list *diags, step_feed *feed)
{
    token_reader r = {p, pool, a, diags, what, 0};
    json_error_t error;
    if (json_nests_too_deeply(text, bytes)) {
        diag_add(diags, E_NESTING, SRC_NOWHERE, "%s: arrays nest more than %d levels deep", what, NESTING_MAX);
        return false;
    }
    json_t *list = json_loadb(text, bytes, JSON_DECODE_ANY, &error);
    if (!list) {
        diag_add(diags, E_STEP_TOKENS, SRC_NOWHERE, "%s: line %d: %s", what, error.line, error.text);
        return false;
    }
    bool good = read_all(&r, stream, list, feed);
    json_decref(list);
    return good;
}

/* ---- text ---- */

/* As JSON has numbers; what it has not is a string. */
static void put_number(strbuf *s, float x)
{
    if (isfinite(x))
        strbuf_printf(s, "%.9g", (double)x);
    else
        strbuf_puts(s, isnan(x) ? "\"nan\"" : x > 0 ? "\"inf\"" : "\"-inf\"");
}

static void put_rows(strbuf *s, const step_value *v)
{
    strbuf_puts(s, "[");
    for (int64_t i = 0; i < v->tile.rows; i++) {
        strbuf_puts(s, i > 0 ? ", [" : "[");
        for (int64_t k = 0; k < v->tile.columns; k++) {
            strbuf_puts(s, k > 0 ? ", " : "");
            put_number(s, v->tile.elements ? v->tile.elements[i * v->tile.columns + k] : 0);
        }
        strbuf_puts(s, "]");
    }
    strbuf_puts(s, "]");
}

static void put_tile(strbuf *s, const step_value *v)
{
    if (v->tile.rows == 1 && v->tile.columns == 1 && v->tile.valid == 1) {
        put_number(s, v->tile.elements ? v->tile.elements[0] : 0);
        return;
    }
    bool padded = v->tile.valid != v->tile.rows;
    strbuf_puts(s, padded ? "{\"tile\": " : "");
    put_rows(s, v);
    if (padded)
        strbuf_printf(s, ", \"valid\": %" PRId64 "}", v->tile.valid);
}

static void put_tokens(strbuf *s, const step_program *p, uint32_t type, const step_value *buffer);

static void put_value(strbuf *s, const step_program *p, uint32_t type, const step_value *v)
{
    const step_type *t = &p->types[type];
    switch (v->kind) {
    case STEP_TILE: put_tile(s, v); return;
    case STEP_BOOL: strbuf_puts(s, v->flag ? "true" : "false"); return;
    case STEP_ADDRESS: strbuf_printf(s, "%" PRId64, v->address); return;
    case STEP_SELECTOR:
        for (uint32_t i = 0; i < v->selector.count; i++)
            strbuf_printf(s, "%s%" PRIu32, i > 0 ? ", " : "[", v->selector.picks[i]);
        strbuf_puts(s, v->selector.count > 0 ? "]" : "[]");
        return;
    case STEP_PAIR:
        strbuf_puts(s, "{\"pair\": [");
        put_value(s, p, t->first, v->pair[0]);
        strbuf_puts(s, ", ");
        put_value(s, p, t->second, v->pair[1]);
        strbuf_puts(s, "]}");
        return;
    default:
        strbuf_puts(s, "{\"buffer\": ");
        put_tokens(s, p, t->first, v);
        strbuf_puts(s, "}");
    }
}

static void put_tokens(strbuf *s, const step_program *p, uint32_t type, const step_value *buffer)
{
    strbuf_puts(s, "[");
    for (size_t i = 0; i < buffer->buffer.count; i++) {
        const step_token *t = &buffer->buffer.tokens[i];
        strbuf_puts(s, i > 0 ? ", " : "");
        if (t->kind == STEP_STOP)
            strbuf_printf(s, "\"S%u\"", t->level);
        else
            put_value(s, p, type, t->value);
    }
    strbuf_puts(s, "]");
}

const char *step_tokens_text(const step_program *p, uint32_t type, const step_value *buffer, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    put_tokens(&s, p, type, buffer);
    strbuf_puts(&s, "\n");
    return s.text;
}
