#include "codegen/draw.h"

#include <stdlib.h>
#include <string.h>

#include "support/budget.h"
#include "support/choice.h"
#include "support/integer.h"

/* ---- which walk ---- */

/* Loops over a memory, in elements of it. */
typedef struct walk {
    const kernel *kernel;
    const op *op;
    const mapping *cells; /* of one unit's memory; position = cell */
    const char *memory;   /* "DM slice", for readers */
    const char *verb;     /* "reads", "writes" */
    const char *unit;     /* of the strides, for readers */
    uint32_t count;
    const mapping *term[SEQUENCER_MAX_ENTRIES];
    int64_t size[SEQUENCER_MAX_ENTRIES];
    int64_t stride[SEQUENCER_MAX_ENTRIES]; /* as in the table */
    int64_t bits_per_stride, element_bits; /* a stride of 1, an element */
    int64_t first;                         /* bits in front of the walk's first access */
    int64_t run;                           /* elements that one step accesses, one after the other */
    size_t others;                         /* operations that walk alike and have no picture of their own */
} walk;

static void walk_loops(walk *w, const sequencer_config *s, bool destination)
{
    w->count = s->count;
    for (uint32_t i = 0; i < s->count; i++) {
        w->term[i] = s->entries[i].term;
        w->size[i] = s->entries[i].size;
        w->stride[i] = destination ? s->entries[i].stride2 : s->entries[i].stride;
    }
}

/* The side of a copy that lies in HBM; a transfer of several commands is drawn of the first one. */
static bool walk_dma(walk *w, const target *t, const op *o)
{
    const tensor *hbm = o->kind == IR_TO_DM ? &op_input(o)->out : &o->out;
    bool writes = o->kind == IR_TO_HBM || o->kind == IR_TO_SPM;
    *w = (walk){.cells = hbm->part[ELEMENT],
                .memory = hbm->kind == TENSOR_SPM ? "SPM of a PE" : "HBM of a chip",
                .verb = writes ? "writes" : "reads",
                .unit = "bytes",
                .bits_per_stride = 8,
                .element_bits = dtype_row_of(hbm->dtype)->bits};
    walk_loops(w, &o->dma->sequencer, writes);
    w->first = ((writes ? o->dma->destination_base : o->dma->source_base) - hbm->address) * 8;
    if (hbm->kind == TENSOR_SPM) /* it follows the DM of a slice */
        w->first -= t->spm_base_bytes * 8;
    w->run = o->dma->packet_bytes * 8 / w->element_bits;
    return true;
}

static bool walk_of(walk *w, const target *t, const op *o)
{
    if (o->dma)
        return walk_dma(w, t, o);
    if (o->align) {
        const sequencer_config *s = &o->align->trf_sequencer;
        *w = (walk){.cells = op_weights(o)->out.part[ELEMENT],
                    .memory = "TRF of a Row",
                    .verb = "reads",
                    .unit = "bytes",
                    .run = s->packet,
                    .bits_per_stride = 8,
                    .element_bits = dtype_row_of(op_weights(o)->out.dtype)->bits};
        walk_loops(w, s, false);
        return true;
    }
    if (o->sequencer && op_vrf(o)) {
        *w = (walk){.cells = op_vrf(o)->out.part[ELEMENT],
                    .memory = "VRF of a slice",
                    .verb = "reads",
                    .unit = "bytes",
                    .run = o->sequencer->packet,
                    .bits_per_stride = 8,
                    .element_bits = dtype_row_of(op_vrf(o)->out.dtype)->bits};
        walk_loops(w, o->sequencer, false);
        return true;
    }
    if (!o->sequencer)
        return false;
    bool writes = o->kind == IR_COMMIT;
    const tensor *dm = writes ? &o->out : &op_input(o)->out;
    *w = (walk){.cells = dm->part[ELEMENT], .memory = "DM of a slice", .verb = writes ? "writes" : "reads", .unit = "elements", .run = 1};
    w->bits_per_stride = w->element_bits = dtype_row_of(dm->dtype)->bits;
    walk_loops(w, o->sequencer, false);
    return w->cells;
}

/* ---- choosing it ---- */

static const kernel *choose_kernel(const module *m, const char *what, size_t bytes, diag_list *diags)
{
    for (size_t i = 0; i < m->count; i++)
        if (strlen(m->kernels[i]->name) == bytes && memcmp(m->kernels[i]->name, what, bytes) == 0)
            return m->kernels[i];
    if (bytes == 0 && m->count == 1)
        return m->kernels[0];
    const char **names = ARENA_ARRAY(diags->arena, const char *, m->count + 1);
    for (size_t i = 0; i < m->count; i++)
        names[i] = m->kernels[i]->name;
    choice_refuse_kernel(diags, NULL, bytes ? arena_strndup(diags->arena, what, bytes) : NULL, names);
    return NULL;
}

/* "1 (fetch), 4 (fetch)": what can be drawn of a kernel. */
static const char *drawable(const emit_context *e, const kernel *k)
{
    strbuf s;
    strbuf_init(&s, e->arena);
    walk w;
    for (size_t i = 0; i < k->op_count; i++)
        if (walk_of(&w, e->target, k->ops[i]))
            strbuf_printf(&s, "%s%zu (%s)", s.bytes ? ", " : "", i, op_kind_name(k->ops[i]->kind));
    return s.bytes ? s.text : "nothing";
}

static bool choose_walk(const emit_context *e, const module *m, const char *what, walk *w, diag_list *diags)
{
    const char *colon = strrchr(what, ':'), *name = colon ? colon + 1 : what;
    const kernel *k = choose_kernel(m, what, colon ? (size_t)(colon - what) : 0, diags);
    if (!k)
        return false;
    char *end;
    unsigned long index = strtoul(name, &end, 10);
    bool by_index = *end == '\0' && end != name;
    const op *found = NULL;
    size_t matches = 0;
    for (size_t i = 0; i < k->op_count; i++)
        if (by_index ? i == index : strcmp(op_kind_name(k->ops[i]->kind), name) == 0) {
            found = k->ops[i];
            matches++;
        }
    if (matches == 1 && walk_of(w, e->target, found)) {
        w->kernel = k;
        w->op = found;
        return true;
    }
    const char *why = matches > 1 ? "occurs more than once" : matches == 1 ? "has no sequencer" : "does not occur";
    diag *d = diag_add(diags, E_KERNEL, SRC_NOWHERE, "operation `%s` %s in kernel %s", name, why, k->name);
    diag_help(diags, d, "choose one by its index: %s", drawable(e, k));
    return false;
}

/* ---- walking ---- */

typedef struct cell {
    int64_t first;  /* time of the first access; -1: none */
    uint32_t count; /* no more than DRAW_MAX_ACCESSES */
    bool live;
} cell;

typedef struct footprint {
    cell *cells;
    int64_t cell_count, accesses, outside;
    int64_t touched; /* cells that are accessed at all */
    bool padding;    /* of the tensor: a cell that is not live */
    int64_t *path;   /* cells in order of access, while there are few; -1: outside */
    int64_t path_count;
} footprint;

enum { PATH_MAX = 1024 };

/* All element accesses of the walk; -1: more than can be drawn. */
static int64_t walk_accesses(const walk *w)
{
    int64_t n = w->run;
    for (uint32_t i = 0; i < w->count; i++)
        if (__builtin_mul_overflow(n, w->size[i], &n) || n > DRAW_MAX_ACCESSES)
            return -1;
    return n;
}

static void touch(footprint *f, int64_t at)
{
    bool inside = at >= 0 && at < f->cell_count;
    if (inside && f->cells[at].count++ == 0) {
        f->cells[at].first = f->accesses;
        f->touched++;
    }
    f->outside += !inside;
    if (f->path)
        f->path[f->path_count++] = inside ? at : -1;
    f->accesses++;
}

static void walk_all(const walk *w, footprint *f)
{
    int64_t counter[SEQUENCER_MAX_ENTRIES] = {0}, bits = w->first;
    for (;;) {
        for (int64_t k = 0; k < w->run; k++)
            touch(f, (bits + k * w->element_bits) / w->element_bits);
        uint32_t i = w->count;
        for (; i > 0; i--) {
            bits += w->stride[i - 1] * w->bits_per_stride;
            if (++counter[i - 1] < w->size[i - 1])
                break;
            bits -= w->size[i - 1] * w->stride[i - 1] * w->bits_per_stride;
            counter[i - 1] = 0;
        }
        if (i == 0)
            return;
    }
}

static void mark_live(arena *a, const mapping *m, footprint *f)
{
    const axis *axes[64];
    uint32_t count = mapping_axes(m, axes, 64), coordinates = 0;
    for (uint32_t i = 0; i < count; i++)
        coordinates = axes[i]->number >= coordinates ? axes[i]->number + 1 : coordinates;
    int64_t *index = ARENA_ARRAY(a, int64_t, (size_t)coordinates + 1);
    for (int64_t i = 0; i < f->cell_count; i++) {
        memset(index, 0, coordinates * sizeof *index);
        f->cells[i].live = mapping_map(m, i, index);
        f->padding = f->padding || !f->cells[i].live;
    }
}

/* An access costs a few instructions, an allocation a hundred. */
enum { ACCESSES_OF_STEP = 16 };

static bool take_footprint(const emit_context *e, const walk *w, footprint *f, diag_list *diags)
{
    int64_t accesses = walk_accesses(w);
    if (accesses < 0 || w->cells->size > DRAW_MAX_ACCESSES) {
        diag *d =
            diag_add(diags, E_KERNEL, SRC_NOWHERE, "%s of kernel %s is too large to draw: pictures show at most %lld accesses and cells",
                     op_kind_name(w->op->kind), w->kernel->name, (long long)DRAW_MAX_ACCESSES);
        diag_help(diags, d, "draw the same kernel with smaller axes: the entries differ in their sizes only");
        return false;
    }
    *f = (footprint){.cell_count = w->cells->size};
    budget_spend(e->arena, (uint64_t)(accesses + f->cell_count) / ACCESSES_OF_STEP);
    f->cells = ARENA_ARRAY(e->arena, cell, (size_t)f->cell_count);
    for (int64_t i = 0; i < f->cell_count; i++)
        f->cells[i].first = -1;
    if (accesses < PATH_MAX)
        f->path = ARENA_ARRAY(e->arena, int64_t, (size_t)accesses);
    mark_live(e->arena, w->cells, f);
    walk_all(w, f);
    return true;
}

/* ---- the grid ---- */

enum { GRID_MAX = 64, PANEL_PIXELS = 416, CELL_MAX = 30 };

/* Cells row by row; where there are too many, a drawn box stands for several cells. */
typedef struct grid {
    int64_t columns, rows;           /* cells */
    int64_t box_columns, box_rows;   /* cells in a box */
    int64_t across, down;            /* boxes */
    int64_t column_group, row_group; /* boxes between two gaps: the innermost factor of each side; 0: no gaps */
    int pixels;                      /* of a box */
    const char *column_text, *row_text;
} grid;

/* How far from a square; the smaller the better. */
static int64_t elongation(int64_t columns, int64_t rows)
{
    return columns > rows ? ceil_div(columns, rows) : ceil_div(rows, columns);
}

/* A row is a number of innermost factors, so that rows mean something; a single factor is cut in the middle. */
static int64_t choose_columns(const mapping *m)
{
    int64_t best = 0, inner = 1;
    if (m->size <= GRID_MAX / 2)
        return m->size > 8 ? m->factors[m->count - 1].extent : m->size;
    for (size_t i = m->count; i-- > 1;) {
        inner *= m->factors[i].extent;
        if (!best || elongation(inner, m->size / inner) < elongation(best, m->size / best))
            best = inner;
    }
    if (best && elongation(best, m->size / best) <= 16)
        return best;
    for (int64_t d = GRID_MAX; d > 7; d--)
        if (m->size % d == 0)
            return d;
    return m->size < GRID_MAX ? m->size : GRID_MAX;
}

/* The innermost factor on one side of a cut after `inside` positions: where the digit there starts anew. */
static int64_t group_outside(const mapping *m, int64_t inside, int64_t size)
{
    int64_t inner = 1;
    for (size_t i = m->count; i-- > 0;) {
        if (inner == inside)
            return m->factors[i].extent < size ? m->factors[i].extent : 0;
        inner *= m->factors[i].extent;
    }
    return 0;
}

/* The factors of positions [inside, inside * size), as text; "" when they are cut. */
static const char *side_text(const emit_context *e, const mapping *m, int64_t inside, int64_t size)
{
    strbuf s;
    strbuf_init(&s, e->arena);
    int64_t outer = m->size;
    for (size_t i = 0; i < m->count; i++) {
        int64_t inner = outer / m->factors[i].extent;
        if (inner >= inside && outer <= inside * size) {
            strbuf_puts(&s, s.bytes ? ", " : "");
            mapping_print_factor(&m->factors[i], &s);
        } else if (inner < inside * size && outer > inside) {
            return "";
        }
        outer = inner;
    }
    return s.text;
}

static grid choose_grid(const emit_context *e, const mapping *m)
{
    grid g = {.columns = choose_columns(m)};
    g.rows = ceil_div(m->size, g.columns);
    g.box_columns = ceil_div(g.columns, GRID_MAX);
    g.box_rows = ceil_div(g.rows, GRID_MAX);
    g.across = ceil_div(g.columns, g.box_columns);
    g.down = ceil_div(g.rows, g.box_rows);
    int64_t longest = g.across > g.down ? g.across : g.down;
    g.pixels = (int)(PANEL_PIXELS / longest);
    g.pixels = g.pixels > CELL_MAX ? CELL_MAX : g.pixels;
    int64_t columns = group_outside(m, 1, g.columns), rows = group_outside(m, g.columns, g.rows);
    g.column_group = columns % g.box_columns == 0 ? columns / g.box_columns : 0;
    g.row_group = rows % g.box_rows == 0 ? rows / g.box_rows : 0;
    g.column_text = side_text(e, m, 1, g.columns);
    g.row_text = side_text(e, m, g.columns, g.rows);
    return g;
}

enum { GAP_PIXELS = 3 };

static int64_t place(int64_t box, int64_t group, int pixels)
{
    return box * pixels + (group > 1 ? box / group * GAP_PIXELS : 0);
}

static int64_t grid_width(const grid *g)
{
    return place(g->across - 1, g->column_group, g->pixels) + g->pixels;
}

static int64_t grid_height(const grid *g)
{
    return place(g->down - 1, g->row_group, g->pixels) + g->pixels;
}

/* What a box shows of its cells. */
typedef struct box {
    int64_t first; /* earliest; -1: none */
    int64_t count; /* the largest of a cell */
    bool live, exists;
} box;

static box box_at(const grid *g, const footprint *f, int64_t column, int64_t row)
{
    box b = {.first = -1};
    for (int64_t r = row * g->box_rows; r < (row + 1) * g->box_rows && r < g->rows; r++)
        for (int64_t c = column * g->box_columns; c < (column + 1) * g->box_columns && c < g->columns; c++) {
            int64_t at = r * g->columns + c;
            if (at >= f->cell_count)
                continue;
            const cell *x = &f->cells[at];
            b.exists = true;
            b.live = b.live || x->live;
            b.count = x->count > b.count ? x->count : b.count;
            if (x->first >= 0 && (b.first < 0 || x->first < b.first))
                b.first = x->first;
        }
    return b;
}

/* ---- colours ---- */

enum { LEVELS = 48 };

typedef struct rgb {
    int r, g, b;
} rgb;

/* From dark violet (first) over green to yellow (last): as even to the eye in grey as in colour. */
static const rgb time_stops[] = {{68, 1, 84},    {70, 50, 126},  {54, 92, 141},  {39, 127, 142},
                                 {31, 161, 135}, {74, 193, 109}, {160, 218, 57}, {253, 231, 37}};
static const rgb count_stops[] = {{189, 215, 231}, {140, 191, 222}, {66, 146, 198}, {8, 81, 156}, {8, 48, 107}};

static rgb colour(const rgb *stops, int count, int level)
{
    int scaled = level * (count - 1), i = scaled / (LEVELS - 1), part = scaled % (LEVELS - 1);
    if (i >= count - 1)
        return stops[count - 1];
    rgb a = stops[i], b = stops[i + 1];
    return (rgb){a.r + (b.r - a.r) * part / (LEVELS - 1), a.g + (b.g - a.g) * part / (LEVELS - 1), a.b + (b.b - a.b) * part / (LEVELS - 1)};
}

static rgb time_colour(int level)
{
    return colour(time_stops, sizeof time_stops / sizeof *time_stops, level);
}

static rgb count_colour(int level)
{
    return colour(count_stops, sizeof count_stops / sizeof *count_stops, level);
}

static const char *text_on(rgb c)
{
    return 2 * c.r + 5 * c.g + c.b < 8 * 130 ? "#fff" : "#222";
}

static int level_of(int64_t value, int64_t least, int64_t most)
{
    return most > least ? (int)((value - least) * (LEVELS - 1) / (most - least)) : 0;
}

/* ---- the panels ---- */

typedef struct picture {
    const emit_context *e;
    const walk *w;
    const footprint *f;
    grid g;
    int64_t least, most; /* counts of accessed boxes */
    int64_t last;        /* time of the last first access */
    strbuf out;
} picture;

typedef enum panel { ORDER, COUNT } panel;

/* -1: never accessed. */
static int box_level(const picture *p, panel which, box b)
{
    if (b.first < 0)
        return -1;
    return which == ORDER ? level_of(b.first, 0, p->last) : level_of(b.count, p->least, p->most);
}

/* Boxes from `column` on, at most to the end of their group, that have this level. */
static int64_t run_of(const picture *p, panel which, int level, int64_t column, int64_t row)
{
    const grid *g = &p->g;
    int64_t n = 0;
    for (; column + n < g->across && (n == 0 || g->column_group < 2 || (column + n) % g->column_group != 0); n++) {
        box b = box_at(g, p->f, column + n, row);
        if (!b.exists || box_level(p, which, b) != level)
            break;
    }
    return n;
}

/* One path per colour, one rectangle per run of boxes. */
static void draw_level(picture *p, panel which, int level)
{
    const grid *g = &p->g;
    bool open = false;
    for (int64_t row = 0; row < g->down; row++)
        for (int64_t column = 0; column < g->across; column++) {
            int64_t n = run_of(p, which, level, column, row);
            if (n == 0)
                continue;
            rgb c = which == ORDER ? time_colour(level < 0 ? 0 : level) : count_colour(level < 0 ? 0 : level);
            if (!open && level < 0)
                strbuf_puts(&p->out, "<path fill=\"#f4f4f4\" d=\"");
            else if (!open)
                strbuf_printf(&p->out, "<path fill=\"#%02x%02x%02x\" d=\"", c.r, c.g, c.b);
            open = true;
            strbuf_printf(&p->out, "M%lld %lldh%lldv%dh-%lldz", (long long)place(column, g->column_group, g->pixels),
                          (long long)place(row, g->row_group, g->pixels), (long long)n * g->pixels, g->pixels, (long long)n * g->pixels);
            column += n - 1;
        }
    if (open)
        strbuf_puts(&p->out, "\"/>\n");
}

/* White lines between the boxes, where these are large enough to be told apart. */
static void draw_lines(picture *p)
{
    const grid *g = &p->g;
    if (g->pixels < 6)
        return;
    strbuf_puts(&p->out, "<path stroke=\"#fff\" d=\"");
    for (int64_t c = 0; c < g->across; c++)
        strbuf_printf(&p->out, "M%lld.5 0v%lld", (long long)place(c, g->column_group, g->pixels) + g->pixels - 1,
                      (long long)grid_height(g));
    for (int64_t r = 0; r < g->down; r++)
        strbuf_printf(&p->out, "M0 %lld.5h%lld", (long long)place(r, g->row_group, g->pixels) + g->pixels - 1, (long long)grid_width(g));
    strbuf_puts(&p->out, "\"/>\n");
}

/* Hatches boxes without a live cell. */
static void draw_padding(picture *p)
{
    const grid *g = &p->g;
    bool open = false;
    for (int64_t row = 0; row < g->down; row++)
        for (int64_t column = 0; column < g->across; column++) {
            box b = box_at(g, p->f, column, row);
            if (!b.exists || b.live)
                continue;
            if (!open)
                strbuf_puts(&p->out, "<path stroke=\"#7f7f7f\" fill=\"none\" d=\"");
            open = true;
            int side = g->pixels > 5 ? g->pixels - 1 : g->pixels;
            strbuf_printf(&p->out, "M%lld %lldl%d -%d", (long long)place(column, g->column_group, g->pixels),
                          (long long)place(row, g->row_group, g->pixels) + side, side, side);
        }
    if (open)
        strbuf_puts(&p->out, "\"/>\n");
}

static int64_t centre_x(const grid *g, int64_t column)
{
    return place(column, g->column_group, g->pixels) + (g->pixels - 1) / 2;
}

static int64_t centre_y(const grid *g, int64_t row)
{
    return place(row, g->row_group, g->pixels) + (g->pixels - 1) / 2;
}

/* Does the step from `b` on continue the one from `a` to it, on the picture? */
static bool goes_straight(const grid *g, int64_t a, int64_t b, int64_t c)
{
    return a >= 0 && c >= 0 && b % g->columns - a % g->columns == c % g->columns - b % g->columns &&
           b / g->columns - a / g->columns == c / g->columns - b / g->columns;
}

static bool shows_path(const picture *p)
{
    return p->f->path && p->f->path_count > 1 && p->g.pixels >= 8 && p->g.box_columns * p->g.box_rows == 1;
}

/* The numbers in one colour of ink: in the corner where a path runs through the middle. */
static void draw_ink(picture *p, panel which, const char *ink)
{
    const grid *g = &p->g;
    bool corner = which == ORDER && shows_path(p);
    strbuf_printf(&p->out, "<g fill=\"%s\" text-anchor=\"%s\" font-size=\"%d\">\n", ink, corner ? "start" : "middle",
                  corner || p->f->accesses > 999 ? 9 : 10);
    for (int64_t row = 0; row < g->down; row++)
        for (int64_t column = 0; column < g->across; column++) {
            box b = box_at(g, p->f, column, row);
            int level = box_level(p, which, b);
            if (level < 0 || strcmp(ink, text_on(which == ORDER ? time_colour(level) : count_colour(level))) != 0)
                continue;
            int64_t x = corner ? place(column, g->column_group, g->pixels) + 2 : centre_x(g, column);
            int64_t y = corner ? place(row, g->row_group, g->pixels) + 8 : centre_y(g, row) + 3;
            strbuf_printf(&p->out, "<text x=\"%lld\" y=\"%lld\">%lld</text>\n", (long long)x, (long long)y,
                          (long long)(which == ORDER ? b.first : b.count));
        }
    strbuf_puts(&p->out, "</g>\n");
}

/* The number that a box's colour stands for, where there is room for it. */
static void draw_numbers(picture *p, panel which)
{
    if (p->g.pixels < 20 || p->g.box_columns * p->g.box_rows > 1 || p->f->accesses > 9999 || p->f->cell_count > 400)
        return;
    draw_ink(p, which, "#fff");
    draw_ink(p, which, "#222");
}

/* A thin line from access to access, broken where the walk is outside; with points only where it turns. */
static void draw_path(picture *p)
{
    const grid *g = &p->g;
    const footprint *f = p->f;
    strbuf_puts(&p->out, "<path fill=\"none\" stroke=\"#e6550d\" stroke-width=\"1\" stroke-opacity=\".8\" marker-end=\"url(#arrow)\" d=\"");
    for (int64_t i = 0; i < f->path_count; i++) {
        int64_t before = i > 0 ? f->path[i - 1] : -1, at = f->path[i], next = i + 1 < f->path_count ? f->path[i + 1] : -1;
        if (at >= 0 && !goes_straight(g, before, at, next))
            strbuf_printf(&p->out, "%s%lld %lld", before < 0 ? "M" : "L", (long long)centre_x(g, at % g->columns),
                          (long long)centre_y(g, at / g->columns));
    }
    strbuf_puts(&p->out, "\"/>\n");
    if (f->path[0] >= 0)
        strbuf_printf(&p->out, "<circle cx=\"%lld\" cy=\"%lld\" r=\"3\" fill=\"#e6550d\"/>\n",
                      (long long)centre_x(g, f->path[0] % g->columns), (long long)centre_y(g, f->path[0] / g->columns));
}

/* ---- around the panels ---- */

static void text_at(picture *p, int64_t x, int64_t y, const char *attributes, const char *text)
{
    strbuf_printf(&p->out, "<text x=\"%lld\" y=\"%lld\"%s%s>", (long long)x, (long long)y, *attributes ? " " : "", attributes);
    for (; *text; text++)
        if (*text == '<')
            strbuf_puts(&p->out, "&lt;");
        else if (*text == '&')
            strbuf_puts(&p->out, "&amp;");
        else
            strbuf_append(&p->out, text, 1);
    strbuf_puts(&p->out, "</text>\n");
}

static const char *number_text(const picture *p, int64_t n)
{
    return arena_printf(p->e->arena, "%lld", (long long)n);
}

/* Ticks: the first box, the last one, and every group or power of two between, so that they keep apart. */
static int64_t tick_step(int64_t boxes, int64_t group, int pixels, int room)
{
    int64_t step = group > 1 ? group : 1;
    while (step * pixels < room)
        step *= 2;
    return step < boxes ? step : boxes;
}

static void draw_ticks(picture *p)
{
    const grid *g = &p->g;
    int64_t step = tick_step(g->across, g->column_group, g->pixels, 32);
    for (int64_t c = 0; c < g->across; c += step)
        text_at(p, centre_x(g, c), -6, "text-anchor=\"middle\" class=\"t\"", number_text(p, c * g->box_columns));
    step = tick_step(g->down, g->row_group, g->pixels, 16);
    for (int64_t r = 0; r < g->down; r += step)
        text_at(p, -6, centre_y(g, r) + 3, "text-anchor=\"end\" class=\"t\"", number_text(p, r * g->box_rows));
    text_at(p, grid_width(g) / 2, -22, "text-anchor=\"middle\" class=\"a\"", g->column_text);
    text_at(p, -grid_height(g) / 2, -42, "text-anchor=\"middle\" class=\"a\" transform=\"rotate(-90)\"", g->row_text);
}

static void draw_panel(picture *p, panel which, int64_t x, int64_t y)
{
    strbuf_printf(&p->out, "<g transform=\"translate(%lld %lld)\">\n", (long long)x, (long long)y);
    text_at(p, 0, -44, "class=\"h\"", which == ORDER ? "Order: when a cell is first accessed" : "Count: how often a cell is accessed");
    draw_ticks(p);
    for (int level = -1; level < LEVELS; level++)
        draw_level(p, which, level);
    draw_lines(p);
    draw_padding(p);
    if (which == ORDER && shows_path(p))
        draw_path(p);
    draw_numbers(p, which);
    strbuf_puts(&p->out, "</g>\n");
}

enum { BAR_WIDTH = 160, BAR_HEIGHT = 10 };

static void draw_bar(picture *p, panel which, int64_t x, int64_t y, int64_t least, int64_t most)
{
    int steps = least == most ? 1 : LEVELS / 3;
    for (int i = 0; i < steps; i++) {
        int level = steps == 1 ? 0 : i * (LEVELS - 1) / (steps - 1), from = i * BAR_WIDTH / steps, to = (i + 1) * BAR_WIDTH / steps;
        rgb c = which == ORDER ? time_colour(level) : count_colour(level);
        strbuf_printf(&p->out, "<rect x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\"/>\n", (long long)x + from,
                      (long long)y, steps == 1 ? BAR_HEIGHT : to - from, BAR_HEIGHT, c.r, c.g, c.b);
    }
    const char *text = least == most ? arena_printf(p->e->arena, "%s%lld", which == ORDER ? "access " : "accesses: ", (long long)least)
                                     : arena_printf(p->e->arena, "%s %lld .. %lld",
                                                    which == ORDER ? "access" : "accesses:", (long long)least, (long long)most);
    if (which == ORDER)
        text = arena_printf(p->e->arena, "%s of %lld", text, (long long)p->f->accesses);
    text_at(p, x + (steps == 1 ? BAR_HEIGHT : BAR_WIDTH) + 8, y + 9, "", text);
}

static void draw_legend(picture *p, int64_t x, int64_t second, int64_t y)
{
    const footprint *f = p->f;
    draw_bar(p, ORDER, x, y, 0, p->last);
    draw_bar(p, COUNT, second, y, p->least, p->most);
    y += 20;
    if (f->touched < f->cell_count) {
        strbuf_printf(&p->out, "<rect x=\"%lld\" y=\"%lld\" width=\"10\" height=\"10\" fill=\"#f4f4f4\" stroke=\"#ddd\"/>\n", (long long)x,
                      (long long)y);
        text_at(p, x + 16, y + 9, "", "never accessed");
    }
    if (f->padding) {
        strbuf_printf(&p->out, "<path d=\"M%lld %lldl10 -10\" stroke=\"#7f7f7f\"/>\n", (long long)x + 130, (long long)y + 10);
        text_at(p, x + 146, y + 9, "", "padding of the tensor");
    }
    if (p->g.box_columns * p->g.box_rows > 1)
        text_at(p, second, y + 9, "",
                arena_printf(p->e->arena, "one box is %lld x %lld cells: first access of any, largest count", (long long)p->g.box_rows,
                             (long long)p->g.box_columns));
}

static void draw_table(picture *p, int64_t x, int64_t y)
{
    const walk *w = p->w;
    text_at(p, x, y, "class=\"h\"", arena_printf(p->e->arena, "Sequencer entries, outermost first (strides in %s)", w->unit));
    for (uint32_t i = 0; i < w->count; i++) {
        const char *text = arena_printf(p->e->arena, "%lld : %lld", (long long)w->size[i], (long long)w->stride[i]);
        y += 16;
        text_at(p, x, y, "class=\"m\"", text);
        text_at(p, x + 120, y, "class=\"m\"", mapping_text(w->term[i], p->e->arena));
    }
    const char *rest = w->run > 1 ? arena_printf(p->e->arena, "each step accesses %lld elements side by side", (long long)w->run) : "";
    if (p->f->outside > 0)
        rest = arena_printf(p->e->arena, "%s%s%lld accesses past the tensor's end are not shown", rest, *rest ? "; " : "",
                            (long long)p->f->outside);
    if (*rest)
        text_at(p, x, y + 18, "", rest);
}

static const char style[] =
    "<style>text{font:12px sans-serif;fill:#222}.h{font-weight:bold}.t{font-size:11px;fill:#555}.a{font:11px monospace}.m{font:12px "
    "monospace}"
    "g>g>text{font-size:inherit;fill:inherit}</style>\n"
    "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
    "<path d=\"M0 0L8 4L0 8z\" fill=\"#e6550d\"/></marker></defs>\n";

static void draw_all(picture *p)
{
    const walk *w = p->w;
    enum { LEFT = 64, TOP = 104, BETWEEN = 72, BELOW = 96 };
    int64_t panel_width = grid_width(&p->g) > 260 ? grid_width(&p->g) : 260, second = LEFT + panel_width + BETWEEN;
    int64_t legend = TOP + grid_height(&p->g) + 20, table = legend + 60;
    int64_t width = second + panel_width + 24, height = table + 16 * w->count + BELOW - 60;
    const char *like = w->others ? arena_printf(p->e->arena, " and %zu like it", w->others) : "";
    const char *title = arena_printf(p->e->arena, "%s, operation %zu%s: %s %s the %s, m![%s]", w->kernel->name, (size_t)w->op->index, like,
                                     op_kind_name(w->op->kind), w->verb, w->memory, mapping_text(w->cells, p->e->arena));
    const tensor *t = &w->op->out;
    const char *stream = "";
    if (t->part[TIME])
        stream = arena_printf(p->e->arena, "stream: Time m![%s], Packet m![%s]", mapping_text(t->part[TIME], p->e->arena),
                              mapping_text(t->part[PACKET], p->e->arena));
    else if (op_input(w->op) && op_input(w->op)->out.part[TIME])
        stream = arena_printf(p->e->arena, "stream: Time m![%s], Packet m![%s]", mapping_text(op_input(w->op)->out.part[TIME], p->e->arena),
                              mapping_text(op_input(w->op)->out.part[PACKET], p->e->arena));
    enum { LETTER = 8 }; /* pixels of a wide one */
    size_t letters = strlen(title) > strlen(stream) ? strlen(title) : strlen(stream);
    int64_t text_width = 32 + LETTER * (int64_t)letters;
    width = text_width > width ? text_width : width;
    strbuf_printf(&p->out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%lld\" height=\"%lld\" viewBox=\"0 0 %lld %lld\" role=\"img\">\n",
                  (long long)width, (long long)height, (long long)width, (long long)height);
    strbuf_printf(&p->out, "<title>%s %s %s</title>\n", w->kernel->name, op_kind_name(w->op->kind), w->verb);
    strbuf_puts(&p->out, style);
    strbuf_puts(&p->out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    text_at(p, 16, 22, "class=\"h\"", title);
    text_at(p, 16, 40, "", stream);
    draw_panel(p, ORDER, LEFT, TOP);
    draw_panel(p, COUNT, second, TOP);
    draw_legend(p, LEFT, second, legend);
    draw_table(p, LEFT, table);
    strbuf_puts(&p->out, "</svg>\n");
}

static void count_range(picture *p)
{
    p->least = INT64_MAX;
    for (int64_t row = 0; row < p->g.down; row++)
        for (int64_t column = 0; column < p->g.across; column++) {
            box b = box_at(&p->g, p->f, column, row);
            if (b.count == 0)
                continue;
            p->last = b.first > p->last ? b.first : p->last;
            p->least = b.count < p->least ? b.count : p->least;
            p->most = b.count > p->most ? b.count : p->most;
        }
    p->least = p->most == 0 ? 0 : p->least;
}

static const char *draw_walk(const emit_context *e, const walk *w, diag_list *diags)
{
    footprint f;
    if (!take_footprint(e, w, &f, diags))
        return NULL;
    picture p = {.e = e, .w = w, .f = &f, .g = choose_grid(e, w->cells)};
    count_range(&p);
    strbuf_init(&p.out, e->arena);
    draw_all(&p);
    return p.out.text;
}

/* Copies of one stage that a loop of the source made: they walk the same way, from other addresses. */
static bool walks_alike(const walk *a, const walk *b)
{
    const src_range *x = &a->op->range, *y = &b->op->range;
    bool alike = x->file == y->file && x->begin == y->begin && a->op->kind == b->op->kind && a->cells == b->cells && a->count == b->count &&
                 a->run == b->run;
    for (uint32_t i = 0; alike && i < a->count; i++)
        alike = a->size[i] == b->size[i] && a->stride[i] == b->stride[i];
    return alike;
}

const char *draw_kernel(const emit_context *e, const kernel *k)
{
    strbuf s;
    diag_list too_large; /* such a walk has no picture here */
    strbuf_init(&s, e->arena);
    diag_list_init(&too_large, e->arena);
    walk *drawn = ARENA_ARRAY(e->arena, walk, DRAW_PAGE_PICTURES);
    size_t count = 0;
    for (size_t i = 0; i < k->op_count; i++) {
        walk w;
        if (!walk_of(&w, e->target, k->ops[i]) || w.cells->size > DRAW_PAGE_CELLS)
            continue;
        w.kernel = k;
        w.op = k->ops[i];
        size_t like = 0;
        while (like < count && !walks_alike(&drawn[like], &w))
            like++;
        if (like < count)
            drawn[like].others++;
        else if (count < DRAW_PAGE_PICTURES)
            drawn[count++] = w;
    }
    for (size_t i = 0; i < count; i++) {
        const char *svg = draw_walk(e, &drawn[i], &too_large);
        strbuf_puts(&s, svg ? svg : "");
    }
    return s.text;
}

const char *draw_svg(const emit_context *e, const module *m, const char *what, diag_list *diags)
{
    walk w;
    return choose_walk(e, m, what, &w, diags) ? draw_walk(e, &w, diags) : NULL;
}
