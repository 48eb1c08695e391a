#include "libvisa/tune/machine.h"

#include <inttypes.h>

#include "support/integer.h"

/* A power of two up to that; 0 stands for all. */
static bool is_part(diag_list *diags, const char *option, int64_t asked, int64_t all, const char *of)
{
    if (asked == 0 || (asked > 0 && asked <= all && (asked & (asked - 1)) == 0))
        return true;
    diag *d = asked > 0 && asked <= all
                  ? diag_add(diags, E_TUNE_MACHINE, SRC_NOWHERE, "--%s=%" PRId64 " is no power of two", option, asked)
                  : diag_add(diags, E_TUNE_MACHINE, SRC_NOWHERE, "--%s=%" PRId64 ": %s has %" PRId64 " of them", option, asked, of, all);
    diag_help(diags, d, "take a power of two, %" PRId64 " at most", all);
    return false;
}

bool tune_machine_read(const target *t, const visa_tune_options *o, diag_list *diags, target *out)
{
    *out = *t;
    if (!is_part(diags, "chips", o->chips, t->chips, "the machine") ||
        !is_part(diags, "clusters", o->clusters, t->clusters_per_chip, "a chip") ||
        !is_part(diags, "slices", o->slices, t->slices_per_cluster, "a cluster"))
        return false;
    if (o->clusters == 1) {
        out->clusters_per_chip = 1;
        out->slices_per_cluster = larger(t->slices_per_pe, tune_slices_of(t, o->slices));
    }
    return true;
}

int64_t tune_slices_of(const target *part, int64_t most)
{
    return most > 0 ? smaller(most, part->slices_per_cluster) : part->slices_per_cluster;
}

const char *tune_device(const target *part, int64_t chips, arena *a)
{
    const target *whole = target_by_name(part->name);
    int64_t slices = part->clusters_per_chip * part->slices_per_cluster;
    return slices == whole->clusters_per_chip * whole->slices_per_cluster
               ? arena_printf(a, "#[device(chip = %" PRId64 ")]", chips)
               : arena_printf(a, "#[device(chip = %" PRId64 ", pe = %" PRId64 ")]", chips, slices / part->slices_per_pe);
}

const char *tune_idle_clusters(const target *part, arena *a)
{
    return part->clusters_per_chip == 1 ? "1" : arena_printf(a, "1 # %" PRId64, part->clusters_per_chip);
}

int64_t tune_dmns_of(const target *part)
{
    return part->slices_per_cluster / part->dm_slices_per_dmn;
}

int64_t tune_partial_block_cycles(const target *part)
{
    return part->hbm_block_bytes / part->hbm_burst_bytes * part->hbm_burst_millicycles * part->hbm_partial_write_factor / 1000;
}
