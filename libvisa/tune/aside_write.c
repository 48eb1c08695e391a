#include "libvisa/tune/aside_write.h"

#include <inttypes.h>

#include "libvisa/tune/machine.h"
#include "libvisa/tune/write.h"

const char *aside_name(tune_role role)
{
    return role == TUNE_ROW ? "rows_by_flit" : "columns_by_flit";
}

/* Of a next part steps and types are known. */
static void begin_step(tune_page *w, tune_step step, aside_part part, const char *why)
{
    if (part != ASIDE_NEXT)
        tune_begin_step(w, step, why);
}

static void end_step(tune_page *w, tune_step step, aside_part part)
{
    if (part != ASIDE_NEXT)
        tune_end_step(w, step);
}

void aside_write(tune_page *w, const target *t, const tune_question *q, const aside *x, aside_part part, const char *tile)
{
    arena *a = w->arena;
    tune_role role = x->role;
    aside_turners of = aside_turners_of(t, q, x);
    bool rows = role == TUNE_ROW;
    tune_step load = rows ? TUNE_LOAD_LYING_ROWS : TUNE_LOAD_LYING, turn = rows ? TUNE_TURN_ROWS : TUNE_TURN_WEIGHTS,
              store = rows ? TUNE_STORE_TURNED_ROWS : TUNE_STORE_TURNED;
    int64_t size = q->size[role], all = q->size[TUNE_SUM], unit = tune_turn_rows(t, q), columns = tune_turn_columns(q, x->kept),
            slices = of.of_sum * of.of_kept, flit = aside_flit_of(t, q);
    const char *cluster = of.clusters > 1 ? tune_digit(q, TUNE_SUM, all, of.sums * of.of_sum, of.clusters, a) : tune_idle_clusters(t, a),
               *idle = slices < t->slices_per_cluster ? arena_printf(a, "1 # %" PRId64, t->slices_per_cluster / slices) : NULL,
               *type = dtype_row_of(q->type)->name, *port = q->tensors[rows ? q->stream : q->weights].port,
               *lying = rows ? "lying_rows" : "lying";
    const char *slice =
        TUNE_LIST(a, tune_digit(q, TUNE_SUM, all, of.sums, of.of_sum, a), tune_digit(q, role, size, x->kept, of.of_kept, a), idle);
    const char *flits = tune_digit(q, TUNE_SUM, all, flit, of.sums / flit, a), *blocks = tune_digit(q, TUNE_SUM, all, unit, flit / unit, a),
               *row = tune_digit(q, TUNE_SUM, all, 1, unit, a), *groups = tune_digit(q, role, size, columns, x->kept / columns, a),
               *packet = tune_digit(q, role, size, 1, columns, a), *here = tune_digit(q, role, size, 1, x->kept, a),
               *in_flit = tune_digit(q, TUNE_SUM, all, 1, flit, a);
    begin_step(w, load, part,
               arena_printf(a, "Packets are of the sum, and %s lies the other way: each slice takes a piece of it, once", port));
    tune_line(w, "let %s: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = %s%s.to_dm(&mut device.tdma);", lying, type, cluster, slice,
              TUNE_LIST(a, tune_digit(q, TUNE_SUM, all, 1, of.sums, a), here), port, tile);
    end_step(w, load, part);
    begin_step(w, turn, part, "Turns it");
    tune_line(w, "let turned: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = device.main", type, cluster, slice,
              TUNE_LIST(a, flits, here, in_flit));
    tune_line(w, "    .begin(%s.view())", lying);
    tune_line(w, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(a, flits, blocks, groups, row), packet);
    tune_line(w, "    .collect()");
    tune_line(w, "    .transpose::<m![%s], m![%s%s]>()", TUNE_LIST(a, flits, blocks, groups, packet), row,
              unit < flit ? arena_printf(a, " # %" PRId64, flit) : "");
    tune_line(w, "    .commit_trim::<m![%s]>()", row);
    tune_line(w, "    .commit();");
    end_step(w, turn, part);
    if (part == ASIDE_NEXT) {
        tune_line(w, "%s = turned.to_hbm(&mut device.tdma);", aside_name(role));
        return;
    }
    begin_step(w, store, part, "And writes it, flits of the sum side by side, so that what slices need of it has long runs");
    tune_line(w, "let %s%s: HbmTensor<%s, Chip, m![%s]> = turned.to_hbm(&mut device.tdma);", part == ASIDE_FIRST ? "mut " : "",
              aside_name(role), type,
              TUNE_LIST(a, tune_digit(q, role, size, x->block, size / x->block, a), tune_digit(q, TUNE_SUM, all, flit, x->sums / flit, a),
                        tune_digit(q, role, size, 1, x->block, a), in_flit));
    end_step(w, store, part);
}
