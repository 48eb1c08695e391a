#include "runtime/engine/alike.h"

#include <stdlib.h>

#include "runtime/machine/proof.h"

/* Is there nothing in the chain that a slice has for itself but what it reads? */
static bool only_moves(const chain *c)
{
    const source *from = chain_source(c)->plan;
    const trf_store *to = chain_trf_store(c);
    bool moves = chain_source(c)->type == &stage_fetch && !from->lift && from->start_count == 0 && to && !to->signs;
    for (unsigned i = 1; i + 1 < c->stage_count; i++)
        moves = moves && c->stages[i].type == &stage_collect;
    return moves;
}

typedef struct filled {
    const unsigned char *bytes; /* that it reads */
    int64_t unit;
} filled;

size_t alike_find(const chain *c, int64_t *units, size_t count, int64_t *like)
{
    machine_unit *all = c->machine->units;
    filled *firsts = only_moves(c) ? malloc((count + 1) * sizeof *firsts) : NULL;
    int64_t *others = firsts ? malloc((count + 1) * sizeof *others) : NULL;
    size_t first_count = 0, run_count = 0, other_count = 0;
    const dm_walk *read = &((const source *)chain_source(c)->plan)->dm;
    for (size_t i = 0; others && i < count; i++) {
        const unsigned char *bytes = memory_shared_at(&all[units[i]].dm, read->low_byte, read->span_bytes);
        size_t k = bytes ? 0 : first_count;
        while (k < first_count && (firsts[k].bytes != bytes || !memory_is_same(&all[units[i]].trf, &all[firsts[k].unit].trf)))
            k++;
        if (k < first_count) {
            like[other_count] = firsts[k].unit;
            others[other_count++] = units[i];
            continue;
        }
        if (bytes)
            firsts[first_count++] = (filled){bytes, units[i]};
        units[run_count++] = units[i];
    }
    for (size_t i = other_count; i-- > 0;) {
        units[run_count + i] = others[i];
        like[run_count + i] = like[i];
    }
    free(firsts);
    free(others);
    return others ? run_count : count;
}

bool alike_take(const chain *c, int64_t unit, int64_t like)
{
    machine *m = c->machine;
    const stage *from = chain_source(c);
    if (!memory_share_all(&m->units[unit].trf, &m->units[like].trf))
        return false;
    if (proof_is_open(m))
        from->type->proof_reads(from, unit); /* what is written there, the other one's file knows */
    return true;
}
