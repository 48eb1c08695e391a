#define _GNU_SOURCE
#include "test/mapping/isl_mapping.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void isl_axes_add(isl_axes *axes, const char *name, int64_t size)
{
    if (axes->count == ISL_MAX_AXES)
        abort();
    axes->name[axes->count] = name;
    axes->size[axes->count++] = size;
}

isl_map *isl_map_format(isl_ctx *ctx, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
    va_end(args);
    isl_map *map = isl_map_read_from_str(ctx, text);
    if (!map) {
        fprintf(stderr, "isl does not read %s\n", text);
        abort();
    }
    free(text);
    return map;
}

/* "v0, v1, .." with every variable v replaced by what `of` writes for axis k. */
static void coordinates(const isl_axes *axes, char *out, void (*of)(char *out, const isl_axes *axes, int k, void *user), void *user)
{
    *out = '\0';
    for (int k = 0; k < axes->count; k++) {
        strcat(out, k ? ", " : "");
        of(out + strlen(out), axes, k, user);
    }
}

enum { TEXT_BYTES = 64 * ISL_MAX_AXES };

static void write_variable(char *out, const isl_axes *axes, int k, void *letter)
{
    (void)axes;
    sprintf(out, "%c%d", *(const char *)letter, k);
}

static void write_if_named(char *out, const isl_axes *axes, int k, void *symbol)
{
    strcpy(out, strcmp(axes->name[k], symbol) == 0 ? "i" : "0");
}

static void write_sum(char *out, const isl_axes *axes, int k, void *user)
{
    (void)axes, (void)user;
    sprintf(out, "x%d + y%d", k, k);
}

/* ---- the constructors ---- */

typedef struct reader {
    const isl_axes *axes;
    const char *at;
} reader;

static void bad(const reader *r, const char *what)
{
    fprintf(stderr, "isl_mapping: expected %s at `%s`\n", what, r->at);
    abort();
}

static int64_t axis_size(const isl_axes *axes, const char *name)
{
    for (int k = 0; k < axes->count; k++)
        if (strcmp(axes->name[k], name) == 0)
            return axes->size[k];
    return 0;
}

/* A: position i holds {A: i}. `1` is the symbol of no axis, with one position. */
static isl_mapping symbol(const reader *r, const char *name, int64_t size)
{
    char index[TEXT_BYTES];
    coordinates(r->axes, index, write_if_named, (void *)name);
    return (isl_mapping){isl_map_format(r->axes->ctx, "{ [i] -> [%s] : 0 <= i < %lld }", index, (long long)size), size};
}

/* L, R: position i holds map(L, i div SIZE(R)) + map(R, i mod SIZE(R)). */
static isl_mapping pair(const reader *r, isl_mapping left, isl_mapping right)
{
    char x[TEXT_BYTES], y[TEXT_BYTES], sum[TEXT_BYTES];
    coordinates(r->axes, x, write_variable, "x");
    coordinates(r->axes, y, write_variable, "y");
    coordinates(r->axes, sum, write_sum, NULL);
    long long n = right.size;
    isl_map *split = isl_map_format(r->axes->ctx, "{ [i] -> [l, r] : i = %lldl + r and 0 <= r < %lld }", n, n);
    isl_map *add = isl_map_format(r->axes->ctx, "{ [%s, %s] -> [%s] }", x, y, sum);
    isl_map *both = isl_map_apply_range(isl_map_flat_product(left.map, right.map), add);
    return (isl_mapping){isl_map_apply_range(split, both), left.size * right.size};
}

/* The first n positions of E, every `step`-th of them. E / n: step n. E % n, E = n: fewer. E # n: n above SIZE(E) adds dead ones. */
static isl_mapping select_positions(const reader *r, isl_mapping e, long long step, long long n)
{
    isl_map *to = isl_map_format(r->axes->ctx, "{ [i] -> [%lldi] : 0 <= i < %lld }", step, n);
    return (isl_mapping){isl_map_apply_range(to, e.map), n};
}

/* ---- the text ---- */

static char peek(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
    return *r->at;
}

static int64_t number(reader *r)
{
    if (!isdigit((unsigned char)peek(r)))
        bad(r, "a number");
    char *end;
    int64_t n = strtoll(r->at, &end, 10);
    r->at = end;
    return n;
}

static isl_mapping read_pair(reader *r);

static isl_mapping read_primary(reader *r)
{
    char name[32], c = peek(r);
    size_t n = 0;
    if (c == '[' || c == '(') {
        r->at++;
        isl_mapping inner = read_pair(r);
        if (peek(r) != ']' && peek(r) != ')')
            bad(r, "a bracket");
        r->at++;
        return inner;
    }
    if (c == '1' && number(r) == 1)
        return symbol(r, "", 1);
    while ((isalnum((unsigned char)*r->at) || *r->at == '_') && n + 1 < sizeof name)
        name[n++] = *r->at++;
    name[n] = '\0';
    if (axis_size(r->axes, name) == 0)
        bad(r, "an axis");
    return symbol(r, name, axis_size(r->axes, name));
}

static isl_mapping read_postfix(reader *r)
{
    isl_mapping m = read_primary(r);
    for (char c; (c = peek(r)) && strchr("/%=#", c);) {
        r->at++;
        int64_t n = number(r);
        m = c == '/' ? select_positions(r, m, n, m.size / n) : select_positions(r, m, 1, n);
    }
    return m;
}

static isl_mapping read_pair(reader *r)
{
    isl_mapping m = read_postfix(r);
    while (peek(r) == ',') {
        r->at++;
        m = pair(r, m, read_postfix(r));
    }
    return m;
}

/* An index with a coordinate outside its axis is none. */
static isl_map *within_axes(const isl_axes *axes, isl_map *map)
{
    for (int k = 0; k < axes->count; k++)
        map = isl_map_upper_bound_val(map, isl_dim_out, (unsigned)k, isl_val_int_from_si(axes->ctx, (long)axes->size[k] - 1));
    return map;
}

isl_mapping isl_mapping_read(const isl_axes *axes, const char *text)
{
    reader r = {axes, text};
    isl_mapping m = read_pair(&r);
    if (peek(&r) != '\0')
        bad(&r, "the end");
    m.map = within_axes(axes, m.map);
    return m;
}

/* A coordinate that is 0 everywhere says nothing: `A = 1` names A and means `1`. */
static bool says_nothing_of(isl_map *buffer, int k)
{
    isl_map *zero = isl_map_fix_si(isl_map_copy(buffer), isl_dim_out, (unsigned)k, 0);
    bool always = isl_map_is_subset(buffer, zero) == isl_bool_true;
    isl_map_free(zero);
    return always;
}

isl_map *isl_mapping_seen_by(isl_map *map, isl_map *buffer)
{
    unsigned axes = (unsigned)isl_map_dim(map, isl_dim_out);
    for (unsigned k = 0; k < axes; k++)
        if (says_nothing_of(buffer, (int)k)) {
            map = isl_map_project_out(map, isl_dim_out, k, 1);
            map = isl_map_insert_dims(map, isl_dim_out, k, 1);
            map = isl_map_fix_si(map, isl_dim_out, k, 0);
        }
    return map;
}
