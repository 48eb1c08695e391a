#include "libvisa/tune/space.h"

#include <stdlib.h>
#include <string.h>

#include "libvisa/tune/brought.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/plan_cycles.h"
#include "libvisa/tune/scaled_write.h"
#include "support/budget.h"
#include "support/integer.h"
#include "support/order.h"

/* A kind has some plans however slow they are; of more, those that take twice as long as the best at least are not looked at. */
enum { SOME_OF_A_KIND = 4, FAR_FROM_THE_BEST = 2 };
enum { MOST_DIGITS = 64, SHORTEST_PART = 128 };

typedef struct kind {
    tune_plan *plans;
    size_t count, capacity;
} kind;

/* Few of all kinds have a plan: they lie in pages, of which those are there that are used. */
enum { KINDS_OF_A_PAGE = 512, PAGES = (TUNE_KINDS + KINDS_OF_A_PAGE - 1) / KINDS_OF_A_PAGE };

typedef struct space {
    const target *target;
    const tune_question *question;
    kind **pages; /* PAGES */
    size_t kept;  /* of a kind */
    int64_t best; /* cycles, as estimated */
    bool evens;   /* the rows at hand have padding for what slices exchange */
    brought_memo brought;
    arena *arena;
} space;

unsigned tune_kind_of(const tune_question *q, const tune_plan *p)
{
    const tune_split *s = p->split;
    bool loops = s[TUNE_BATCH].loop * s[TUNE_ROW].loop * s[TUNE_COLUMN].loop > 1;
    bool shares_rows = p->row_sharers > 1; /* as if in both ways around rings, which no plan is */
    return (unsigned)(p->rings || shares_rows) | (unsigned)(p->regroup > 1) << 1 | (unsigned)loops << 2 |
           (unsigned)(s[TUNE_ROW].padded != q->size[TUNE_ROW]) << 3 | (unsigned)(s[TUNE_COLUMN].padded != q->size[TUNE_COLUMN]) << 4 |
           (unsigned)(s[TUNE_BATCH].padded != q->size[TUNE_BATCH]) << 5 | (unsigned)(p->ring_sums > 1) << 6 |
           (unsigned)(p->sum_loop > 1) << 7 | (unsigned)p->results_stay << 8 | (unsigned)(p->joined > 1) << 9 |
           (unsigned)(p->row_copies > 0 || p->sums_wait || p->rows_ahead) << 10 | /* of loops, of none, of parts of the sum */
           (unsigned)(p->aside[TUNE_ROW] + p->aside[TUNE_COLUMN] > 0) << 11 | (unsigned)(p->spreads || shares_rows) << 12 |
           (unsigned)p->closes << 13 | (unsigned)(p->brought > 0) << 14 | (unsigned)(p->handed > 1) << 15 |
           (unsigned)(s[TUNE_ROW].apart || s[TUNE_COLUMN].apart || s[TUNE_BATCH].apart) << 16 |
           (unsigned)(p->handed > 1 && p->hand_parts == 0) << 17;
}

/* Which of two plans is tried first: the faster, and of equals the one that was found first. */
static int by_cycles(const void *a, const void *b)
{
    return ORDER(((const tune_plan *)a)->cycles, ((const tune_plan *)b)->cycles);
}

static kind *kind_numbered(space *x, unsigned number)
{
    kind **page = &x->pages[number / KINDS_OF_A_PAGE];
    if (!*page)
        *page = ARENA_ARRAY(x->arena, kind, KINDS_OF_A_PAGE);
    return *page + number % KINDS_OF_A_PAGE;
}

static void keep(space *x, kind *k, const tune_plan *p)
{
    if (k->count < x->kept) { /* room for one more */
        ARENA_PUSH(x->arena, k->plans, k->count, k->capacity, *p);
        k->count--;
    }
    order_keep(k->plans, &k->count, x->kept, sizeof *p, p, by_cycles);
}

static void consider_store(space *x, const tune_plan *of)
{
    budget_spend(x->arena, 1);
    tune_plan p = *of;
    if (!tune_plan_complete(x->target, x->question, &p))
        return;
    kind *k = kind_numbered(x, tune_kind_of(x->question, &p));
    int64_t most = k->count == x->kept ? k->plans[k->count - 1].cycles : INT64_MAX;
    if (k->count >= SOME_OF_A_KIND && x->kept == TUNE_KEPT_OF_A_KIND)
        most = smaller(most, x->best * FAR_FROM_THE_BEST);
    tune_plan_estimate(x->target, x->question, most, &p);
    x->best = smaller(x->best, p.cycles);
    if (p.cycles < most)
        keep(x, k, &p);
}

/* Results are written as they are, or brought together first. */
static void consider_one(space *x, tune_plan *p)
{
    int64_t brought = p->brought;
    if (brought > 0 && p->regroup == 1 && p->joined == 1 && !p->closes && !p->by_sub)
        consider_store(x, p);
    p->brought = 0;
    consider_store(x, p);
    p->brought = brought;
}

static bool has_extra_of_columns(const tune_question *q, bool is_handed)
{
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].has[TUNE_COLUMN] && !q->extras[i].has[TUNE_ROW] &&
            (!is_handed || (q->extras[i].groups == 1 && q->extras[i].zero_of == TUNE_OUT)))
            return true;
    return false;
}

/* Rows of all iterations in as many copies as there are iterations, or in fewer; the exchange of columns by the main context or by sub;
 * what meets the sums in every iteration or once. */
static void consider_handings(space *x, const tune_plan *of)
{
    tune_plan p = *of, handings[TUNE_HANDINGS_MAX];
    budget_spend(x->arena, 1);
    if ((x->evens && !of->rings && of->regroup == 1) || !tune_plan_begin(x->target, x->question, &p)) /* most are none */
        return;
    p = *of;
    int64_t most = p.columns_outside && p.split[TUNE_ROW].loop > 1 ? p.split[TUNE_ROW].loop : 0, halvings = 0;
    while (most >> halvings > 1)
        halvings++;
    bool exchanges = p.regroup > 1 || p.joined > 1 || p.closes;
    bool has_iterations = has_extra_of_columns(x->question, false) && p.split[TUNE_COLUMN].loop > 1;
    bool can_wait = x->question->waiting.count > 0 && p.split[TUNE_BATCH].loop * p.split[TUNE_ROW].loop * p.split[TUNE_COLUMN].loop == 1;
    int handing_count = 1;
    if (has_extra_of_columns(x->question, true) && p.split[TUNE_ROW].slice * p.split[TUNE_BATCH].slice > 1)
        handing_count += (int)tune_handings(x->target, x->question, of, handings);
    for (int way = 0; way < (exchanges ? 2 : 1) * handing_count; way++)
        for (int once = has_iterations; once >= 0; once--) {
            int handing = exchanges ? way / 2 : way;
            p.by_sub = exchanges && way % 2;
            p.handed = handing > 0 ? handings[handing - 1].handed : of->handed;
            p.hand_parts = handing > 0 ? handings[handing - 1].hand_parts : of->hand_parts;
            p.extras_once = once;
            p.row_copies = 0;
            p.sums_wait = false;
            consider_one(x, &p);
            if (can_wait) {
                p.sums_wait = true;
                consider_one(x, &p);
                p.sums_wait = false;
            }
            for (int64_t h = most > 0 ? halvings : -1; h >= 0; h--) { /* of equals the one with the fewest copies */
                p.row_copies = most >> h;
                consider_one(x, &p);
            }
        }
}

/* Weights for each slice, or for one of those that share them; rows likewise. */
static void consider_sharers(space *x, tune_plan *p)
{
    p->column_sharers = p->row_sharers = p->row_parts = 1;
    consider_handings(x, p);
    p->column_sharers = tune_column_sharers(x->target, x->question, p);
    if (p->column_sharers > 1)
        consider_handings(x, p);
    p->column_sharers = 1;
    /* where main fills the TRF first, either may be sooner */
    for (int by_sub = 0; by_sub <= (p->main_weights && p->columns_outside); by_sub++) {
        p->rows_by_sub = by_sub;
        if (tune_share_rows(x->target, x->question, p))
            consider_handings(x, p);
    }
}

/* Rows with each part of the sum, or those of all parts ahead of the first. */
static void consider(space *x, tune_plan *p)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        p->rows_ahead = ahead;
        if (!ahead || tune_can_come_ahead(x->question, p))
            consider_sharers(x, p);
    }
    p->rows_ahead = false;
}

/* How what slices share gets to them: copies for each, rows around rings, or weights around rings. */
enum { COPIES, RINGS, SPREAD };

/* The fewest parts of a sum of whole packets, all alike, of which a column tile fits into the TRF, where powers of two are too few; else 1.
 */
static int64_t odd_parts(const space *x, const tune_plan *p)
{
    if (x->question->group > 0) /* whole sums alone */
        return 1;
    int64_t sum = x->question->size[TUNE_SUM], packet = tune_packet_of(x->target, x->question), packets = sum / packet,
            bytes = tune_bytes_of(x->question->type, p->split[TUNE_COLUMN].tile * sum),
            parts = ceil_div(bytes, target_trf_capacity_bytes(x->target, TRF_FULL));
    if (sum % packet != 0 || (packets & -packets) >= parts)
        return 1;
    while (parts <= TUNE_MOST_LOOPS && packets % parts != 0)
        parts++;
    return parts <= TUNE_MOST_LOOPS ? parts : 1;
}

/* The choices that are left when the splits are made. */
static void consider_ways(space *x, tune_plan p)
{
    const tune_split *s = p.split;
    int64_t slices = s[TUNE_BATCH].slice * s[TUNE_ROW].slice * s[TUNE_COLUMN].slice, all = x->target->slices_per_cluster;
    /* parts of a sum pay where weights are many: a slice of them is waited for before anything is multiplied */
    int64_t iterations = s[TUNE_BATCH].loop * s[TUNE_ROW].loop * s[TUNE_COLUMN].loop, parts = x->question->size[TUNE_SUM] / SHORTEST_PART,
            most_parts = s[TUNE_BATCH].loop * s[TUNE_COLUMN].loop > 1 || x->question->group > 0
                             ? 1
                             : larger(1, smaller(parts, TUNE_MOST_LOOPS / iterations));
    int64_t parts_of[MOST_DIGITS], odd = odd_parts(x, &p);
    size_t part_count = 0;
    for (int64_t n = 1; n <= most_parts; n *= 2)
        parts_of[part_count++] = n;
    if (odd > 1 && odd <= most_parts)
        parts_of[part_count++] = odd;
    int64_t around = x->target->switch_blocking_flits;     /* a packet is a flit: so many slices of a ring */
    bool is_free = x->question->tensors[TUNE_OUT].is_free; /* as slices have it */
    int64_t most_regrouped = is_free ? 1 : smaller(smaller(s[TUNE_COLUMN].slice, s[TUNE_ROW].tile), around);
    /* what is turned once is not gathered; runs of a gathered copy are a block of HBM or two at most */
    int64_t longest_run = 2 * x->target->hbm_block_bytes * 8 / dtype_row_of(x->question->type)->bits, most_gathered = 1;
    while (tune_lies_turned(x->question, &p, TUNE_COLUMN) && 2 * most_gathered <= smaller(s[TUNE_COLUMN].slice, around) &&
           2 * most_gathered * s[TUNE_COLUMN].tile <= larger(longest_run, 2 * s[TUNE_COLUMN].tile))
        most_gathered *= 2;
    /* neighbours join their columns into a block of HBM or two, or all that a cluster has where the last of them has less */
    int64_t of_columns = s[TUNE_COLUMN].tile * dtype_row_of(x->question->out_type)->bits / 8, longest = 2 * x->target->hbm_block_bytes;
    bool pads = tune_pads_inside(&s[TUNE_COLUMN], x->question->size[TUNE_COLUMN]);
    bool is_vector = s[TUNE_BATCH].padded * s[TUNE_ROW].padded == 1; /* whose pieces are alike however many join them */
    bool one_loop = (s[TUNE_ROW].loop > 1) != (s[TUNE_COLUMN].loop > 1), no_loop = s[TUNE_ROW].loop * s[TUNE_COLUMN].loop == 1;
    /* what stays is loaded outside of the only loop; parts of a sum need weights outside */
    int first = no_loop || (one_loop && s[TUNE_ROW].loop > 1), last = one_loop && s[TUNE_COLUMN].loop > 1 ? 0 : 1;
    /* without iterations all that a cluster has: rows are in one piece each then, or side by side */
    bool joins_once = s[TUNE_COLUMN].loop == 1 && !p.closes;
    for (int outside = first; outside <= last; outside++)
        for (int way = COPIES; way <= (s[TUNE_ROW].slice > 1 ? SPREAD : RINGS); way++)
            for (int by_main = 0; by_main < 2; by_main++)
                for (int64_t inside = 1; inside <= (way == SPREAD ? 1 : all / slices);
                     inside = inside == 1 && all / slices > 1 ? all / slices : all + 1)
                    for (int64_t regroup = p.closes ? s[TUNE_COLUMN].slice : 1; regroup <= (way == SPREAD ? 1 : most_regrouped);
                         regroup *= 2) {
                        p.columns_outside = outside;
                        p.rings = way == RINGS;
                        p.spreads = way == SPREAD;
                        p.main_weights = by_main;
                        p.idle_inside = inside;
                        p.regroup = regroup;
                        for (p.gather = 1; p.gather <= (way == SPREAD ? 1 : most_gathered); p.gather *= 2)
                            for (size_t part = 0; part < part_count; part++) {
                                p.sum_loop = parts_of[part];
                                for (int stay = 0; stay < (outside || s[TUNE_COLUMN].loop == 1 || p.closes ? 1 : 2); stay++) {
                                    p.results_stay = stay;
                                    int64_t most_joined = way == SPREAD || is_free               ? 1
                                                          : stay || (joins_once && regroup == 1) ? s[TUNE_COLUMN].slice
                                                                                                 : 1;
                                    for (p.joined = 1; p.joined <= most_joined; p.joined *= 2)
                                        if (p.joined == 1 || ((pads || !stay) && p.joined == s[TUNE_COLUMN].slice) ||
                                            ((stay ? !pads : is_vector) && p.joined * of_columns <= longest))
                                            consider(x, &p);
                                }
                            }
                    }
}

static bool is_turned(const tune_question *q, tune_role role)
{
    return (role == TUNE_ROW && q->turned[q->stream]) || (role == TUNE_COLUMN && q->turned[q->weights]);
}

/* Numbers of slices worth a try for an axis: powers of two, as the slices of a cluster are. */
static size_t slice_counts(int64_t size, int64_t most, int64_t *out)
{
    size_t count = 0;
    for (int64_t n = 1; n <= most && count < MOST_DIGITS; n *= 2)
        if (n == 1 || n < 2 * size)
            out[count++] = n;
    return count;
}

enum { WORD_BITS = 64 }; /* of what a copy to DM and the sub context take at least */

/* Rows of a tile come in so many: whole words of each operand after the sum that has no columns. */
static int64_t rows_unit(const tune_question *q)
{
    int64_t unit = 1;
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].has[TUNE_ROW] && !q->extras[i].has[TUNE_COLUMN] && !tune_is_one_element(q, &q->extras[i]) &&
            (q->extras[i].groups == 1 || q->extras[i].groups_first))
            unit = larger(unit, WORD_BITS / dtype_row_of(q->extras[i].type)->bits);
    return unit;
}

/* Columns of a tile come in so many: all Rows where there are that many, and whole words of 8 bytes of what the sub context fetches after
 * the sum and of what waits in DM. What goes to the VRF as a gate comes in packets of all lanes. */
static int64_t columns_unit(const target *t, const tune_question *q, int64_t tile)
{
    if (!q->axis_text[TUNE_COLUMN]) /* nothing to pad */
        return 1;
    int64_t unit = tile > 4 ? t->rows : tile > 2 ? 4 : tile;
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].zero_of != TUNE_OUT && q->extras[i].has[TUNE_COLUMN])
            unit = larger(unit, scaled_zero_unit(&q->extras[i]));
        else if (q->extras[i].has[TUNE_COLUMN])
            unit = larger(unit, scaled_is_turned(&q->extras[i]) ? SCALED_LANES
                                                                : smaller(t->rows, WORD_BITS / dtype_row_of(q->extras[i].type)->bits));
    if (q->whole.count > 1)
        unit = larger(unit, smaller(t->rows, WORD_BITS / dtype_row_of(q->out_type)->bits));
    return tune_epilogue_has_gate(&q->whole) ? t->rows : unit;
}

/* The least divisor of a size from `least` on that is a multiple of `unit`; 0: none. As slow as the size is longer than `least`. */
static int64_t divisor_from(int64_t size, int64_t least, int64_t unit)
{
    for (int64_t parts = size / least; parts >= 1; parts--)
        if (size % parts == 0 && size / parts % unit == 0)
            return size / parts;
    return 0;
}

/* A split of each axis: whether that is one which copies can take, and the slices and iterations are worth having. */
static bool split_all(const space *x, const int64_t loops_of[3], const int64_t slices[3], int clustered, int64_t rows_together, bool apart,
                      unsigned full, tune_plan *p)
{
    const int64_t *size = x->question->size;
    bool useful = true;
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++) {
        int64_t cluster = clustered == role ? x->target->clusters_per_chip : 1, parts = loops_of[role] * cluster * slices[role];
        int64_t tile = ceil_div(size[role], parts);
        tune_split *s = &p->split[role];
        int64_t unit = role == TUNE_COLUMN ? columns_unit(x->target, x->question, tile)
                       : role == TUNE_ROW  ? larger(rows_unit(x->question), rows_together)
                                           : 1;
        if (is_turned(x->question, (tune_role)role)) /* whole blocks of the Transpose Engine */
            unit = larger(unit, tune_turn_columns(x->question, 1));
        /* where that is more than all Rows, columns that are fewer have padding that is turned, too, and multiplied by nothing */
        bool pads_turned = role == TUNE_COLUMN && parts == 1 && unit > x->target->rows && size[role] <= x->target->rows &&
                           is_turned(x->question, TUNE_COLUMN);
        *s = tune_split_of(size[role], loops_of[role], cluster, slices[role],
                           pads_turned ? columns_unit(x->target, x->question, tile) : unit);
        s->padded = round_up(s->padded, pads_turned ? unit : 1);
        int64_t parts_alike = s->loop * s->cluster, part = size[role] / parts_alike;
        s->apart = apart && s->cluster > 1 && s->loop == 1;
        if (tune_pads_inside(s, size[role]) && size[role] % parts_alike == 0 && role != TUNE_BATCH) { /* whole tiles of what has a part */
            int64_t whole = divisor_from(part, s->tile, unit);
            s->tile = whole > 0 ? whole : larger(s->tile, round_up(part, unit));
            s->padded = s->tile * slices[role] * parts_alike;
        }
        if (full >> role & 1) {
            int64_t least = s->tile;
            bool has_rest = s->loop * s->cluster == 1 && s->slice > 1 && size[role] % least != 0;
            int64_t whole = has_rest ? divisor_from(size[role], least, unit) : 0;
            bool is_near = whole > 0 && whole < 2 * least;
            s->tile = is_near ? whole : has_rest ? 2 * least : least;
            s->padded = s->tile * parts;
            useful = useful && is_near;
        }
        useful = useful && (!apart || role != clustered || (s->apart && s->padded != size[role]));
        if (tune_pads_inside(s, size[role]) && (size[role] % parts_alike != 0 || size[role] / parts_alike % s->tile != 0))
            useful = false;                                                                    /* no copy has such parts */
        bool idles = s->loop == 1 && parts > 1 && s->padded - s->padded / parts >= size[role]; /* a part has padding alone */
        useful = useful && (!idles || s->padded < 2 * size[role]) && s->padded < 2 * size[role] + (s->loop == 1 ? larger(8, unit) : 0);
    }
    return useful && p->split[TUNE_BATCH].tile == 1;
}

/* With operands that lie turned as they are, or turned aside. */
static void consider_turned(space *x, tune_plan p)
{
    consider_ways(x, p);
    for (int role = TUNE_ROW; role < TUNE_SUM; role++)
        p.aside[role] = aside_kept_of(x->target, x->question, (tune_role)role);
    if (p.aside[TUNE_ROW] + p.aside[TUNE_COLUMN] > 0)
        consider_ways(x, p);
}

/* Rows that slices exchange or that go around are shared evenly: some of padding may be fewer than the rings that they save. */
static void consider_units(space *x, const int64_t loops_of[3], const int64_t slices[3], int clustered, bool apart, unsigned full,
                           tune_plan p)
{
    int64_t tile = 0, least = 0;
    for (int64_t unit = 1; unit <= x->target->switch_blocking_flits; unit *= 2) {
        bool splits = split_all(x, loops_of, slices, clustered, unit, apart, full, &p);
        least = unit == 1 ? p.split[TUNE_ROW].tile : least;
        if (!splits || p.split[TUNE_ROW].tile == tile || (unit > 1 && p.split[TUNE_ROW].tile >= 2 * least))
            continue;
        tile = p.split[TUNE_ROW].tile;
        x->evens = unit > 1;
        tune_bring_together(x->target, x->question, &x->brought, &p);
        consider_turned(x, p);
    }
    x->evens = false;
}

static void consider_splits(space *x, const int64_t loops_of[3], int clustered)
{
    const int64_t *size = x->question->size;
    int64_t all = tune_slices_of(x->target, x->question->most_slices), digits[3][MOST_DIGITS],
            together = tune_rows_of_blocks(x->target, x->question);
    size_t counts[3];
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
        counts[role] = slice_counts(size[role], all, digits[role]);
    for (size_t b = 0; b < counts[TUNE_BATCH]; b++)
        for (size_t r = 0; r < counts[TUNE_ROW]; r++)
            for (size_t c = 0; c < counts[TUNE_COLUMN]; c++) {
                int64_t slices[] = {digits[TUNE_BATCH][b], digits[TUNE_ROW][r], digits[TUNE_COLUMN][c]};
                if (slices[0] * slices[1] * slices[2] > all)
                    break;
                tune_plan p = {.idle_inside = 1, .regroup = 1, .gather = 1, .joined = 1, .handed = 1, .row_sharers = 1, .row_parts = 1};
                for (unsigned full = 0; full <= 3; full++) {
                    unsigned of = (full & 1) << TUNE_ROW | (full >> 1) << TUNE_COLUMN;
                    bool can = true; /* a tile without a rest is of slices alone */
                    for (int role = TUNE_ROW; role < TUNE_SUM; role++)
                        can = can && (!(of >> role & 1) || (loops_of[role] == 1 && clustered != role && slices[role] > 1));
                    if (!can)
                        continue;
                    consider_units(x, loops_of, slices, clustered, false, of, p);
                    if (clustered < TUNE_SUM && loops_of[clustered] == 1)
                        consider_units(x, loops_of, slices, clustered, true, of, p);
                }
                p.closes = !x->question->tensors[TUNE_OUT].is_free && together > 1 && size[TUNE_ROW] > 1 && loops_of[TUNE_COLUMN] == 1 &&
                           clustered != TUNE_COLUMN;
                for (int apart = 0; apart <= (p.closes && clustered == TUNE_ROW && loops_of[TUNE_ROW] == 1); apart++)
                    if (p.closes && split_all(x, loops_of, slices, clustered, slices[TUNE_COLUMN] * together, apart, 0, &p))
                        consider_turned(x, p);
            }
}

/* Numbers of iterations: a tile of a tensor in HBM is a whole part of it. */
static size_t loop_counts(int64_t size, int64_t *out)
{
    size_t count = 0;
    for (int64_t n = 1; n <= smaller(size, TUNE_MOST_LOOPS) && count < MOST_DIGITS; n++)
        if (size % n == 0)
            out[count++] = n;
    return count;
}

tune_plan *tune_space(const target *t, const tune_question *q, size_t kept, arena *a, size_t *count)
{
    space x = {t, q, ARENA_ARRAY(a, kind *, PAGES), kept, INT64_MAX / FAR_FROM_THE_BEST, false, brought_memo_new(a), a};
    int64_t loops[3][MOST_DIGITS];
    size_t counts[3];
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
        counts[role] = loop_counts(q->size[role], loops[role]);
    for (int clustered = TUNE_BATCH; clustered <= TUNE_SUM; clustered++) /* TUNE_SUM: one cluster works */
        for (size_t r = 0; r < counts[TUNE_ROW]; r++)
            for (size_t c = 0; c < counts[TUNE_COLUMN]; c++)
                for (size_t b = 0; b < counts[TUNE_BATCH]; b++) {
                    int64_t of[] = {loops[TUNE_BATCH][b], loops[TUNE_ROW][r], loops[TUNE_COLUMN][c]};
                    if (of[0] * of[1] * of[2] <= TUNE_MOST_LOOPS &&
                        (clustered == TUNE_SUM || (q->size[clustered] > 1 && t->clusters_per_chip > 1)))
                        consider_splits(&x, of, clustered);
                }
    *count = 0;
    for (int number = 0; number < PAGES; number++)
        for (int k = 0; x.pages[number] && k < KINDS_OF_A_PAGE; k++)
            *count += x.pages[number][k].count;
    tune_plan *all = ARENA_ARRAY(a, tune_plan, *count + 1);
    *count = 0;
    for (int number = 0; number < PAGES; number++)
        for (int k = 0; x.pages[number] && k < KINDS_OF_A_PAGE; k++) {
            const kind *of = &x.pages[number][k];
            if (of->count > 0)
                memcpy(all + *count, of->plans, of->count * sizeof *all);
            *count += of->count;
        }
    order_sort(all, *count, sizeof *all, by_cycles); /* equal estimates stay in the order of their kinds */
    return all;
}
