/* Mapping expressions as isl relations, straight from their definition.
 *
 * The one idea: every constructor of the language is one relation between positions, so that an expression is a
 * composition of relations, and nothing is normalised. Shares no code with frontend/ or ir/. */
#ifndef VISA_TEST_MAPPING_ISL_MAPPING_H
#define VISA_TEST_MAPPING_ISL_MAPPING_H

#include <isl/ctx.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/val.h>
#include <stdint.h>

enum { ISL_MAX_AXES = 16 };

/* The coordinates of an index, in this order. */
typedef struct isl_axes {
    isl_ctx *ctx;
    int count;
    const char *name[ISL_MAX_AXES];
    int64_t size[ISL_MAX_AXES];
} isl_axes;

void isl_axes_add(isl_axes *axes, const char *name, int64_t size);

/* { [position] -> [coordinates] } of the live positions 0 .. size-1; an axis that is not mentioned is 0. The text must be legal
 * (names of axes, 1, operators, brackets): anything else ends the program. */
typedef struct isl_mapping {
    isl_map *map;
    int64_t size;
} isl_mapping;
isl_mapping isl_mapping_read(const isl_axes *axes, const char *text);

/* A stream's relation with every coordinate set to 0 of which the buffer says nothing: what a buffer sees of a broadcast. Takes `map`. */
isl_map *isl_mapping_seen_by(isl_map *map, isl_map *buffer);

/* A relation from formatted isl text. */
isl_map *isl_map_format(isl_ctx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
