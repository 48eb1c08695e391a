/* The walk over the products of each interface. */
#include "ir/dataflow/explore_front.h"
#include "support/budget.h"

typedef struct walk {
    explore *x;
    int64_t products[EXPLORE_FACES_MAX]; /* chosen; 1 from the face on that is chosen next */
    int64_t levels[EXPLORE_FACES_MAX];
    int64_t most[EXPLORE_FACES_MAX];
    int64_t below[EXPLORE_FACES_MAX + 1]; /* points from that face on */
    size_t split;                         /* pieces of the space are told apart by the faces before it */
    int64_t done, said;
} walk;

static bool over(int64_t limit, int64_t value)
{
    return limit != 0 && value > limit;
}

/* Of the smallest corner: a larger one breaks them too. */
static bool breaks_widths(const explore_limits *l, const explore_cost *c)
{
    return over(l->multipliers, c->multipliers) || over(l->weight_bits, c->weight_bits) || over(l->input_bits, c->input_bits) ||
           over(l->block_bits, c->block_bits) || over(l->rows, c->rows);
}

/* So many points more need no visit. With several processes, this one's share stands for all. */
static void finish(walk *w, int64_t points)
{
    enum { EVERY = 1 << 20 };
    explore *x = w->x;
    w->done += points;
    if (!x->progress || w->done - w->said < EVERY)
        return;
    int64_t all = x->points / x->parts;
    w->said = w->done;
    x->progress(x->user, w->done < all ? w->done : all, all > 0 ? all : 1);
}

/* Is what lies below the face counted or left out as a whole? `least` is its smallest corner. */
static bool whole(walk *w, size_t at, const explore_cost *least, int64_t ways)
{
    explore *x = w->x;
    int64_t corner[EXPLORE_FACES_MAX];
    for (size_t f = 0; f < x->face_count; f++)
        corner[f] = f < at ? w->products[f] : w->most[f];
    explore_cost most = explore_cost_of_products(x, corner);
    bool slow = over(x->limits.cycles, most.latency);
    bool legal = !breaks_widths(&x->limits, &most) && !over(x->limits.cycles, least->latency);
    if (!slow && !(legal && explore_dominated(x, most.latency, least->multipliers)))
        return false;
    x->legal += slow ? 0 : ways * w->below[at];
    finish(w, ways * w->below[at]);
    return true;
}

/* Everything below face `at`, with the ones before it chosen, in `ways` ways. False: larger products break a limit too. */
static bool descend(walk *w, size_t at, int64_t ways, int64_t piece)
{
    explore *x = w->x;
    const explore_face *f = &x->faces[at];
    if (at == w->split && piece % x->parts != x->part)
        return true;
    budget_spend(x->arena, 1);
    explore_cost least = explore_cost_of_products(x, w->products);
    if (breaks_widths(&x->limits, &least))
        return false;
    if (at == x->face_count) {
        finish(w, ways);
        if (over(x->limits.cycles, least.latency))
            return true;
        x->legal += ways;
        explore_add(x, least.latency, least.multipliers, w->levels, ways);
        return true;
    }
    if (at >= w->split && whole(w, at, &least, ways))
        return true;
    bool goes_on = true;
    for (size_t k = 0; k < f->level_count; k++) {
        int64_t of_this = ways * f->levels[k].ways;
        w->products[at] = f->levels[k].product;
        w->levels[at] = (int64_t)k;
        goes_on = goes_on && descend(w, at + 1, of_this, at < w->split ? piece * (int64_t)f->level_count + (int64_t)k : piece);
        if (!goes_on) {
            budget_spend(x->arena, 1);
            finish(w, of_this * w->below[at + 1]);
        }
    }
    w->products[at] = 1;
    return true;
}

void explore_run(explore *x)
{
    enum { PIECES = 64 };
    walk w = {.x = x};
    w.below[x->face_count] = 1;
    for (size_t f = x->face_count; f-- > 0;) {
        const explore_face *face = &x->faces[f];
        int64_t ways = 0;
        for (size_t k = 0; k < face->level_count; k++)
            ways += face->levels[k].ways;
        w.products[f] = 1;
        w.most[f] = face->levels[face->level_count - 1].product;
        w.below[f] = w.below[f + 1] * ways;
    }
    for (int64_t pieces = 1; x->parts > 1 && w.split < x->face_count && pieces < PIECES * x->parts; w.split++)
        pieces *= (int64_t)x->faces[w.split].level_count;
    descend(&w, 0, 1, 0);
}
