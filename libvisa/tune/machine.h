/* The part of the machine that a kernel is for: so many clusters of a chip, so many slices of each.
 *
 * The one idea: processing elements are what a kernel can leave to others. In one cluster it is for the fewest that have its slices, which
 * is a machine with less of everything, of DMA engines and DMNs, too. Of the slices of its processing elements so many as are asked for
 * work at most, and the search says which. */
#ifndef VISA_LIBVISA_TUNE_MACHINE_H
#define VISA_LIBVISA_TUNE_MACHINE_H

#include "include/visa.h"
#include "support/diag.h"
#include "target/target.h"

/* What options ask for, of that machine: *out has the clusters and slices of the processing elements. False: diagnosed. */
bool tune_machine_read(const target *t, const visa_tune_options *o, diag_list *diags, target *out);

/* Slices of a cluster that may work, where at most `most` do; 0: all. */
int64_t tune_slices_of(const target *part, int64_t most);

/* DMNs of a cluster. */
int64_t tune_dmns_of(const target *part);

/* Cycles of a channel for a block of HBM that is written in part. */
int64_t tune_partial_block_cycles(const target *part);

/* "#[device(chip = 1, pe = 2)]"; all processing elements of a chip are what no `pe` means. */
const char *tune_device(const target *part, int64_t chips, arena *a);

/* Clusters of which one works: "1 # 2", or "1" where there is one. */
const char *tune_idle_clusters(const target *part, arena *a);

#endif
