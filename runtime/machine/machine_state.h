/* The inside of a machine, for the engines.
 *
 * The one idea: a unit is a slice with its DM, its TRF and its VRF, and the SPM of a PE follows the DM of its first slice, as in the
 * DMA address space; HBM belongs to a chip; a stream port is a buffer with one cursor per unit. */
#ifndef VISA_RUNTIME_MACHINE_MACHINE_STATE_H
#define VISA_RUNTIME_MACHINE_MACHINE_STATE_H

#include "runtime/machine/fault.h"
#include "runtime/machine/machine.h"
#include "runtime/machine/memory.h"

typedef struct machine_unit {
    memory dm, trf, vrf;
    memory trf_signs; /* the bit that an element of i5 and i9 has more: all ones in its place where it is negative */
} machine_unit;

/* A stream port: for every unit position of its mapping, Rows x time steps x packets. */
typedef struct stream_port {
    unsigned char *bytes;     /* NULL until used */
    int64_t *cursors;         /* per unit position: time steps done; NULL until used */
    int64_t unit_count;       /* chips * clusters * slices of the mapping */
    int64_t clusters, slices; /* positions of the components, at least 1 */
    int64_t chips;
    int64_t rows, steps, packet_elements;
    int64_t packet_bytes; /* -1: not whole bytes */
    bool *live;           /* per unit position */
    bool usable;          /* the sizes fit */
} stream_port;

/* Selected by OP_UNITS. */
typedef struct unit_mask {
    bool set;
    unsigned chips, clusters;
    uint64_t slices[4];
} unit_mask;

/* What an OP_UNITS command selects. */
void unit_mask_select(unit_mask *units, const command *c);
/* Is the context's next command, a `guard`, one of a whole copy or chain, and of a number that there is? */
bool guard_check(const machine *m, int number, const command *c, fault *f);
/* Numbers of the units in the mask, in order; cluster: of that one only, -1: of all. Returns how many. */
size_t unit_mask_list(const struct machine *m, const unit_mask *units, int64_t cluster, int64_t *list);

struct machine {
    const target *target;
    const binary_kernel *kernel;
    arena *arena;
    machine_options options;
    memory_budget budget;
    machine_unit *units; /* chip, cluster, slice */
    int64_t unit_count;
    memory *hbm;          /* per chip */
    int64_t *coords;      /* one per axis, for layout_map */
    stream_port *streams; /* per port; unused for the other spaces */
    unit_mask masks[3];   /* per context */
    size_t done[3];       /* completed commands per context */
    struct proof *proof;  /* NULL: none was asked for */
    struct chain *chain;  /* the one that is planned or runs: too large for a stack */
};

/* Is there memory at these bytes of a slice's window of the DMA address space: its DM, or of the first slice of a PE the PE's SPM? */
static inline bool target_unit_holds(const target *t, int64_t unit, int64_t offset, int64_t bytes)
{
    if (offset >= t->spm_base_bytes)
        return unit % t->slices_per_cluster % t->slices_per_pe == 0 && offset - t->spm_base_bytes <= t->spm_bytes_per_pe - bytes;
    return offset <= t->dm_bytes_per_slice - bytes;
}

/* HBM of all chips, empty, in the arena; machine_hbm_free gives its blocks back. */
memory *machine_hbm_new(const target *t, arena *a, unsigned char poison, memory_budget *budget);
void machine_hbm_free(const target *t, memory *hbm);
/* The same of the DM of all slices. */
memory *machine_dm_new(const target *t, arena *a, unsigned char poison, memory_budget *budget);
void machine_dm_free(const target *t, memory *dm);

/* The other way round: which slice, cluster and chip it is. */
static inline void machine_unit_place(const machine *m, int64_t unit, int64_t *slice, int64_t *cluster, int64_t *chip)
{
    *slice = unit % m->target->slices_per_cluster;
    *cluster = unit / m->target->slices_per_cluster % m->target->clusters_per_chip;
    *chip = unit / m->target->slices_per_cluster / m->target->clusters_per_chip;
}

static inline int64_t machine_unit_index(const machine *m, int64_t chip, int64_t cluster, int64_t slice)
{
    return (chip * m->target->clusters_per_chip + cluster) * m->target->slices_per_cluster + slice;
}

#endif
