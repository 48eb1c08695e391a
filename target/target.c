#include "target/target.h"

#include <string.h>

static const dtype_row dtype_rows[] = {
#define DTYPE(symbol, ...) {__VA_ARGS__},
#include "target/dtype.def"
#undef DTYPE
};

static const target targets[] = {
    {
        .name = "rngd",
#define LIMIT(field, value, unit, source) .field = (value),
#define TIMING LIMIT
#include "target/limits.def"

#include "target/engines.def"
    },
};

static const static_costs costs = {
#define STATIC_COST(field, value, unit, source) .field = (value),
#include "target/static_cost.def"
#undef STATIC_COST
};

static const static_point points[] = {
#define STATIC_POINT(kind, bytes, pieces, copies, cycles, source) {STATIC_POINT_##kind, bytes, pieces, copies, cycles},
#include "target/static_point.def"
#undef STATIC_POINT
};

static const dtype_conversion conversions[] = {
#define CONVERSION(engine, from, to) {ENGINE_ID_##engine, DTYPE_##from, DTYPE_##to},
#include "target/engines.def"
};

const dtype_conversion *target_conversion_at(size_t index)
{
    return index < sizeof conversions / sizeof *conversions ? &conversions[index] : NULL;
}

bool target_converts(engine_id engine, dtype from, dtype to)
{
    for (size_t i = 0; i < sizeof conversions / sizeof *conversions; i++)
        if (conversions[i].engine == engine && conversions[i].from == from && conversions[i].to == to)
            return true;
    return false;
}

static const dtype_conversion lookups[] = {
#define LOOKUP(from, to) {ENGINE_ID_FETCH, DTYPE_##from, DTYPE_##to},
#include "target/engines.def"
};

const dtype_conversion *target_lookup_at(size_t index)
{
    return index < sizeof lookups / sizeof *lookups ? &lookups[index] : NULL;
}

bool target_looks_up(dtype from, dtype to)
{
    for (size_t i = 0; i < sizeof lookups / sizeof *lookups; i++)
        if (lookups[i].from == from && lookups[i].to == to)
            return true;
    return false;
}

static const topology_row topologies[] = {
#define TOPOLOGY(symbol, number, ...) \
    {.code = (number), .name = TOPOLOGY_NAME(__VA_ARGS__, NULL), .fields = {TOPOLOGY_REST(__VA_ARGS__, NULL)}},
#define TOPOLOGY_NAME(name, ...) name
#define TOPOLOGY_REST(name, ...) __VA_ARGS__
#include "target/engines.def"
};

const topology_row *topology_row_at(size_t index)
{
    return index < sizeof topologies / sizeof *topologies ? &topologies[index] : NULL;
}

const char *topology_name(int64_t code)
{
    for (size_t i = 0; i < sizeof topologies / sizeof *topologies; i++)
        if ((int64_t)topologies[i].code == code)
            return topologies[i].name;
    return NULL;
}

const static_costs *target_static_costs(void)
{
    return &costs;
}

const static_point *target_static_point_at(size_t index)
{
    return index < sizeof points / sizeof *points ? &points[index] : NULL;
}

const dtype_row *dtype_row_of(dtype t)
{
    return &dtype_rows[t];
}

bool dtype_by_name(const char *name, dtype *out)
{
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (strcmp(dtype_rows[t].name, name) == 0) {
            *out = (dtype)t;
            return true;
        }
    return false;
}

bool dtype_is_operand(dtype t)
{
    return dtype_rows[t].max_tree_depth > 0;
}

bool dtype_is_staging(dtype t)
{
    return dtype_rows[t].staged != t;
}

int64_t dtype_bytes(dtype t, int64_t elements)
{
    int64_t bits;
    if (elements < 0 || __builtin_mul_overflow(elements, (int64_t)dtype_rows[t].bits, &bits) || bits % 8)
        return -1;
    return bits / 8;
}

const char *trf_address_name(trf_address mode)
{
    static const char *const names[] = {"Full", "FirstHalf", "SecondHalf"};
    return names[mode];
}

const char *context_name(context c)
{
    static const char *const names[] = {"main", "sub", "dma"};
    return names[c];
}

const target *target_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

const char *target_name(size_t i)
{
    return i < sizeof targets / sizeof *targets ? targets[i].name : NULL;
}

int64_t target_trf_capacity_bytes(const target *t, trf_address mode)
{
    return mode == TRF_FULL ? t->trf_bytes : t->trf_bytes / 2;
}
