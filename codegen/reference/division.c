#include "codegen/reference/division.h"

/* Each part reads all of the side that is not divided. Of a long product that is little compared with the time of a processor that is
 * taken away for a few milliseconds. */
enum { PARTS_EACH = 2, LONG_PARTS_EACH = 4 };
#define LONG_CLOCKS 1e7
/* Taking a part costs some hundred. */
#define LEAST_CLOCKS 1e4

/* In so many parts, or a few less. */
static division divide(const kernel_form *f, plan_range panels, plan_range tiles, int64_t parts)
{
    division d = {.whole = f->whole, .panels = panels, .tiles = tiles, .kept = PLAN_BATCHES};
    int64_t count = f->whole.end[tiles];
    d.each = (count + parts - 1) / parts;
    d.count = (unsigned)((count + d.each - 1) / d.each);
    return d;
}

/* The side that is packed where the other one is not, if it has tiles for everybody; else the longer one. */
static bool divides_rows(const kernel_form *f, unsigned members)
{
    if (f->packs_rows != f->packs_columns && f->whole.end[f->packs_rows ? PLAN_ROW_TILES : PLAN_COLUMN_TILES] >= (int64_t)members)
        return f->packs_rows;
    return f->longer == PLAN_ROW;
}

static int64_t parts_of(double clocks, unsigned members)
{
    double each = clocks / members;
    return (int64_t)members * (each >= LONG_CLOCKS ? LONG_PARTS_EACH : each >= PARTS_EACH * LEAST_CLOCKS ? PARTS_EACH : 1);
}

division division_make(const kernel_form *f, double clocks, unsigned members)
{
    int64_t batches = f->whole.end[PLAN_BATCHES];
    if (batches >= (int64_t)members)
        return divide(f, PLAN_BATCHES, PLAN_BATCHES, parts_of(clocks, members));
    bool rows = divides_rows(f, members), keeps = f->blocks && batches == 1;
    division d = divide(f, rows ? PLAN_ROW_PANELS : PLAN_COLUMN_PANELS, rows ? PLAN_ROW_TILES : PLAN_COLUMN_TILES,
                        keeps ? parts_of(clocks, members) : members);
    if (keeps)
        d.kept = rows ? PLAN_COLUMN_PANELS : PLAN_ROW_PANELS;
    return d;
}

plan_part division_part(const division *d, unsigned number, bool first)
{
    plan_part part = d->whole;
    int64_t begin = number * d->each, end = begin + d->each, last = d->whole.end[d->tiles];
    part.first[d->panels] = part.first[d->tiles] = begin;
    part.end[d->panels] = part.end[d->tiles] = end < last ? end : last;
    if (d->kept != PLAN_BATCHES && !first)
        part.end[d->kept] = 0;
    return part;
}
