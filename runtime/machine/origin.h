/* Where a cell of HBM came from: the slice, and the flit and lane of the commit that wrote it.
 *
 * The one idea: the tables of the commands say where each byte goes, so they are walked once and asked backwards; nothing is
 * known of mappings here. Only what the last copies and commits wrote is reported, and only while the walks are short. */
#ifndef VISA_RUNTIME_MACHINE_ORIGIN_H
#define VISA_RUNTIME_MACHINE_ORIGIN_H

#include "codegen/container.h"

typedef struct origin {
    int64_t slice; /* among all slices of all clusters and chips */
    int64_t time;  /* flit of the chain that committed; -1: not known */
    int64_t lane;  /* element in the flit */
    int64_t row;   /* -1: lanes are not Rows there */
} origin;

typedef struct origin_map origin_map;

/* NULL when the walks together are too long. */
origin_map *origin_map_new(const target *t, const binary_kernel *k, arena *a);

/* False: no copy of the kernel wrote there. */
bool origin_of(const origin_map *m, int64_t hbm_address, origin *out);

#endif
