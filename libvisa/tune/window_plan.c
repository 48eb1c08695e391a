#include "libvisa/tune/window_plan.h"

#include "libvisa/tune/machine.h"
#include "libvisa/tune/window_parts.h"
#include "support/integer.h"
#include "support/order.h"

static int64_t size_of(const tune_question *q, size_t axis)
{
    return q->axes[axis].size;
}

/* Elements of so many bytes. */
static int64_t elements_in(const tune_question *q, int64_t bytes)
{
    return bytes * 8 / dtype_row_of(q->type)->bits;
}

enum { WORD_BYTES = 8 }; /* that copies into DM move */

static bool has_gaps(const tune_question *q, size_t i)
{
    const tune_window *w = &q->windows[i];
    return w->stride > size_of(q, w->summed) && w->dilation == 1;
}

bool window_skips(const tune_question *q, const window_plan *p, size_t i)
{
    return p->skips && has_gaps(q, i);
}

int64_t window_places_of(const tune_question *q, const window_plan *p, size_t i, int64_t kept)
{
    const tune_window *w = &q->windows[i];
    int64_t summed = size_of(q, w->summed);
    return window_skips(q, p, i) ? kept * summed : (kept - 1) * w->stride + (summed - 1) * w->dilation + 1;
}

int64_t window_rows(const tune_question *q, const window_plan *p)
{
    return size_of(q, q->windows[0].kept) * (p->images_in_rows ? q->size[TUNE_BATCH] : 1);
}

int64_t window_iterations(const tune_question *q, const window_plan *p)
{
    return p->images_in_rows ? 1 : q->size[TUNE_BATCH];
}

bool window_rows_end(const tune_question *q, const window_plan *p, int64_t rows)
{
    int64_t of_image = size_of(q, q->windows[0].kept);
    return !p->images_in_rows || of_image % rows == 0 || rows % of_image == 0;
}

int64_t window_own_columns(const window_plan *p)
{
    return p->turns * p->columns;
}

int64_t window_columns(const target *t, const tune_question *q)
{
    return q->depthwise ? round_up(q->size[TUNE_COLUMN], larger(t->rows, elements_in(q, WORD_BYTES)))
                        : q->groups * round_up(q->size[TUNE_COLUMN] / q->groups, t->rows);
}

int64_t window_group_columns(const target *t, const tune_question *q)
{
    return window_columns(t, q) / q->groups;
}

int64_t window_groups_of(const target *t, const tune_question *q, int64_t columns)
{
    return q->groups == 1 ? 1 : ceil_div(columns, window_group_columns(t, q));
}

int64_t window_kept_lanes(const target *t, const tune_question *q)
{
    int64_t words = WORD_BYTES * 8 / dtype_row_of(q->out_type)->bits, columns = q->size[TUNE_COLUMN] / q->groups;
    return q->groups > 1 && columns < t->rows ? round_up(columns, words) : larger(t->rows, words);
}

bool window_columns_end(const target *t, const tune_question *q, int64_t columns)
{
    int64_t of_group = window_group_columns(t, q);
    return q->groups == 1 || of_group % columns == 0 || columns % of_group == 0;
}

int64_t window_place_elements(const target *t, const tune_question *q)
{
    int64_t channels = round_up(size_of(q, q->window_channel), elements_in(q, WORD_BYTES));
    return q->depthwise ? window_columns(t, q) : q->groups * channels;
}

/* Channels side by side in a packet, each with its own filter: what leaves a Row is 32 of them at most. */
static window_shape shape_of_channels(const target *t, const tune_question *q, const window_plan *p)
{
    int64_t flit = elements_in(q, t->flit_bytes), most = t->accumulator_columns, word = elements_in(q, WORD_BYTES);
    window_shape s = {.channels = p->columns, .taps = 1, .across = size_of(q, q->windows[1].summed), .rows = 1};
    for (s.live = most; s.live > t->rows && (p->columns % s.live != 0 || s.live % word != 0);)
        s.live /= 2;
    s.run = s.packet = round_up(s.live, flit);
    return s;
}

int64_t window_column_groups(const target *t, const tune_question *q, const window_plan *p)
{
    return p->columns / (q->depthwise ? shape_of_channels(t, q, p).live : t->rows);
}

window_shape window_shape_of(const target *t, const tune_question *q, const window_plan *p)
{
    if (q->depthwise)
        return shape_of_channels(t, q, p);
    int64_t flit = elements_in(q, t->flit_bytes), across = size_of(q, q->windows[1].summed);
    window_shape s = {
        .channels = round_up(size_of(q, q->window_channel), elements_in(q, WORD_BYTES)), .taps = 1, .across = across, .rows = t->rows};
    if (p->packed > 1) {
        s.live = p->packed * s.channels;
        s.run = s.packet = round_up(s.live, flit);
        return s;
    }
    bool is_power = (s.channels & (s.channels - 1)) == 0; /* a fetch collects whole flits of a packet of several places */
    if (s.channels < flit && is_power && q->windows[1].dilation == 1)
        while (s.taps < across && 2 * s.taps * s.channels <= 2 * flit)
            s.taps *= 2;
    if (s.taps > 1) {
        s.across = round_up(across, s.taps);
        s.live = s.taps * s.channels;
        s.run = s.packet = round_up(s.live, s.live <= flit ? flit : 2 * flit);
        return s;
    }
    window_spread x;
    int64_t here = s.channels / p->sum_slices;
    window_spread_of(t, q, p, &x);
    s.run = round_up(here, flit);
    s.packet = s.run / x.channels % (2 * flit) == 0 ? 2 * flit : flit;
    s.live = smaller(here, s.packet);
    return s;
}

/* Between slices with parts of the channels. A copy takes a cycle for each run, so packets of few channels are not worth it. */
static bool spread_between(const target *t, const tune_question *q, const window_plan *p, window_spread *out)
{
    int64_t here = size_of(q, q->window_channel) / p->sum_slices, down = size_of(q, q->windows[0].summed),
            padded = power_of_two_above(down);
    out->groups = gcd(p->around, window_column_groups(t, q, p));
    out->rows = down > 1 && p->around / out->groups % padded == 0 ? padded : 1;
    out->packets = p->around / (out->groups * out->rows);
    return out->packets == 1 || here % (out->packets * elements_in(q, t->dmn_bytes_per_cycle)) == 0;
}

/* What is left of the parts: rows of a window and places in them, padded to powers of two. */
static bool spread_taps(const tune_question *q, int64_t parts, window_spread *out)
{
    int64_t down = power_of_two_above(size_of(q, q->windows[0].summed)), across = power_of_two_above(size_of(q, q->windows[1].summed));
    out->filter_rows = gcd(parts, down);
    out->filter_places = parts / out->filter_rows;
    return across % out->filter_places == 0;
}

int64_t window_filter_rows(const tune_question *q, const window_spread *x)
{
    int64_t rows = size_of(q, q->windows[0].summed);
    return x->filter_rows > 1 ? power_of_two_above(rows) : rows;
}

int64_t window_filter_places(const tune_question *q, const window_spread *x)
{
    int64_t places = size_of(q, q->windows[1].summed);
    return x->filter_places > 1 ? power_of_two_above(places) : places;
}

bool window_spread_of(const target *t, const tune_question *q, const window_plan *p, window_spread *out)
{
    int64_t parts = p->around;
    *out = (window_spread){1, 1, 1, 1, 1, 1, 1};
    if (parts == 1)
        return true;
    if (p->idle_inside > 1)
        return false;
    int64_t flit = elements_in(q, t->flit_bytes), channels = size_of(q, q->window_channel);
    int64_t groups = window_column_groups(t, q, p);
    if (p->sum_slices > 1)
        return spread_between(t, q, p, out);
    out->lanes = q->depthwise ? 1 : smaller(parts, t->rows);
    int64_t left = parts / out->lanes;
    if (t->rows % out->lanes != 0 || parts % out->lanes != 0)
        return false;
    if (!q->depthwise) {
        out->groups = smaller(left, groups);
        out->channels = left / out->groups;
        bool cuts_channels = channels % (flit * out->channels) == 0;
        if (groups % out->groups == 0 && out->groups * out->channels == left && (out->channels == 1 || cuts_channels))
            return true;
        out->channels = 1;
        if (channels % flit != 0)
            return false;
    }
    out->groups = gcd(left, groups);
    return spread_taps(q, left / out->groups, out);
}

int64_t window_filters_in_packet(const target *t, const tune_question *q, const window_plan *p)
{
    int64_t packet = t->flit_bytes * 8 / dtype_row_of(q->stored[q->weights])->bits;
    while (p->columns % packet != 0)
        packet /= 2;
    return packet;
}

window_results window_results_of(const target *t, const window_plan *p)
{
    window_results r = {WINDOW_SHARES_NOTHING, p->rows, p->places, window_own_columns(p)};
    int64_t n = p->sum_slices;
    if (n == 1)
        return r;
    if (p->rows % n == 0) {
        r.share = WINDOW_SHARES_ROWS;
        r.rows /= n;
    } else if (p->places % n == 0) {
        r.share = WINDOW_SHARES_PLACES;
        r.places /= n;
    } else if (p->turns == 1 && p->columns % (n * t->rows) == 0) {
        r.share = WINDOW_SHARES_COLUMNS;
        r.columns /= n;
    }
    return r;
}

int64_t window_neighbours(const window_plan *p)
{
    return p->row_slices * p->place_slices * p->idle_inside * p->sum_slices;
}

int64_t window_handed(const window_plan *p)
{
    return p->hand_rows > 0 ? p->hand_rows * p->hand_places * p->idle_inside * p->sum_slices : 1;
}

int64_t window_hand_padding(const window_plan *p)
{
    return p->hand_parts > 0 ? window_handed(p) / p->hand_parts : 1;
}

int64_t window_filter_parts(const target *t, const tune_question *q, const window_plan *p)
{
    int64_t together = larger(window_filters_in_packet(t, q, p), window_shape_of(t, q, p).live); /* the TRF takes so many in a packet */
    return gcd(p->columns / together, larger(1, p->hand_parts));
}

int64_t window_ring(const window_plan *p)
{
    if (p->hand_parts > 0)
        return window_handed(p);
    int64_t each = window_handed(p), count = p->column_slices * window_neighbours(p) / each, ring = 1;
    for (int64_t i = 0; i < count; i++)
        while (i * each / ring != ((i + 1) * each - 1) / ring)
            ring *= 2;
    return ring;
}

int64_t window_joined_packet(const target *t, const tune_question *q, const window_plan *p)
{
    return largest_divisor(window_own_columns(p), t->flit_bytes * 8 / dtype_row_of(q->out_type)->bits);
}

int64_t window_rows_brought(const target *t, const tune_question *q, const window_plan *p)
{
    int64_t rows = window_rows(q, p), here = window_results_of(t, p).rows,
            of_cluster = !p->rows_of_clusters ? p->padded_rows
                         : p->apart           ? rows / t->clusters_per_chip
                                              : p->padded_rows / t->clusters_per_chip,
            bytes = size_of(q, q->windows[1].kept) * q->size[TUNE_COLUMN] * dtype_row_of(q->out_type)->bits / 8;
    for (int64_t each = 1; each <= rows / 2; each++)
        if (rows % each == 0 && window_rows_end(q, p, each) && (here % each == 0 || each % here == 0) &&
            (of_cluster % each == 0 || each % of_cluster == 0) && each * bytes % t->hbm_block_bytes == 0 &&
            power_of_two_above(rows / each) <= tune_slices_of(t, q->most_slices))
            return each;
    return smaller(rows, here);
}

/* ---- how long it takes, about: it says what is compiled first, and no more ---- */

/* Of the slices that work those under so many neighbours. */
static int64_t slices_within(const target *t, const window_plan *p, int64_t neighbours)
{
    int64_t used = p->column_slices * p->row_slices * p->place_slices * p->sum_slices, spaced = used * p->idle_inside;
    return spaced <= neighbours ? used : ceil_div(smaller(neighbours, t->slices_per_cluster), p->idle_inside);
}

static int64_t clusters_of(const target *t, const window_plan *p)
{
    return p->rows_of_clusters || p->columns_of_clusters ? t->clusters_per_chip : 1;
}

/* A copy of so many runs of so many bytes for each slice. */
static int64_t copy_cycles(const target *t, const window_plan *p, int64_t runs, int64_t bytes)
{
    int64_t engine = runs * slices_within(t, p, t->dm_slices_per_dmn * t->dma_dmns_per_engine) * ceil_div(bytes, t->dma_request_bytes),
            dmn = runs * slices_within(t, p, t->dm_slices_per_dmn) * ceil_div(bytes, t->dmn_bytes_per_cycle),
            all = runs * slices_within(t, p, t->slices_per_cluster) * clusters_of(t, p) * round_up(bytes, t->hbm_burst_bytes);
    int64_t channel = all / t->hbm_burst_bytes * t->hbm_burst_millicycles / 1000 / t->hbm_channels;
    return t->dma_startup_cycles + larger(engine, larger(dmn, channel));
}

/* Elements of the TRF that a slice's columns have. */
static int64_t elements_of_weights(const target *t, const tune_question *q, const window_plan *p)
{
    window_shape s = window_shape_of(t, q, p);
    window_spread x;
    window_spread_of(t, q, p, &x);
    if (q->depthwise)
        return window_column_groups(t, q, p) * window_filter_rows(q, &x) * window_filter_places(q, &x) * s.run;
    int64_t places = x.filter_places > 1 ? window_filter_places(q, &x) : s.across / s.taps;
    return p->columns / p->packed * larger(x.rows, window_filter_rows(q, &x)) * places * s.run;
}

static int64_t multiply_cycles(const target *t, const tune_question *q, const window_plan *p)
{
    window_shape s = window_shape_of(t, q, p);
    int64_t each = window_groups_of(t, q, p->columns); /* a packet meets the columns of its groups */
    int64_t groups = window_column_groups(t, q, p) / each, flits = ceil_div(s.packet, elements_in(q, t->flit_bytes)),
            steps = each / p->packed * p->rows * p->places * size_of(q, q->windows[0].summed) * (s.across / s.taps) * (s.run / s.packet);
    return q->depthwise ? steps * groups * flits : steps * larger(flits, groups);
}

/* Of rows that lie as slices have them. */
static int64_t lying_store_cycles(const target *t, const tune_question *q, const window_plan *p)
{
    window_results r = window_results_of(t, p);
    int64_t places = size_of(q, q->windows[1].kept), columns = q->size[TUNE_COLUMN], block = t->hbm_block_bytes;
    int64_t run = tune_bytes_of(q->out_type, r.columns < columns ? r.columns
                                             : r.places < places ? r.places * r.columns
                                                                 : r.rows * r.places * r.columns);
    if (window_kept_lanes(t, q) > columns / q->groups) /* padding stands between groups */
        run = smaller(run, tune_bytes_of(q->out_type, columns / q->groups));
    if (q->tensors[TUNE_OUT].is_free) /* as a slice has it, but for columns that are padding */
        run = tune_bytes_of(q->out_type, columns == window_columns(t, q) ? r.rows * r.places * r.columns : smaller(columns, r.columns));
    int64_t out = tune_bytes_of(q->out_type, window_rows(q, p) * places * columns), runs = ceil_div(out, larger(1, run));
    int64_t partial = tune_partial_block_cycles(t);
    if (p->brings) {
        int64_t engines = t->slices_per_cluster / (t->dm_slices_per_dmn * t->dma_dmns_per_engine);
        int64_t steps = tune_bytes_of(q->out_type, r.rows * r.places * r.columns) / larger(1, run) *
                        slices_within(t, p, t->dm_slices_per_dmn * t->dma_dmns_per_engine);
        /* where clusters have unlike numbers of slices with padding alone it is two commands */
        bool unlike = p->rows_of_clusters && !p->apart && p->padded_rows - window_rows(q, p) >= p->rows;
        /* a block in which a piece ends and the next one begins is written in part, twice */
        int64_t all_rows = window_rows(q, p), each = window_rows_brought(t, q, p),
                in_part = each * tune_bytes_of(q->out_type, places * columns) % block == 0 ? 0 : 2 * ceil_div(all_rows, each);
        return ceil_div(in_part, t->hbm_channels) * partial + (2 + unlike) * t->dma_startup_cycles +
               (2 + 2 * unlike) * steps * ceil_div(run, t->dma_request_bytes) + out / (engines * t->dma_request_bytes);
    }
    if (run % block == 0)
        return copy_cycles(t, p, ceil_div(tune_bytes_of(q->out_type, r.rows * r.places * r.columns), run), run);
    int64_t in_two = run >= block ? runs : block % run != 0 ? ceil_div(out, block) : 0;
    return t->dma_startup_cycles + ceil_div(runs + in_two, t->hbm_channels) * partial;
}

static int64_t store_cycles(const target *t, const tune_question *q, const window_plan *p)
{
    if (!p->joins)
        return lying_store_cycles(t, q, p);
    /* whole rows, which follow each other where none has padding after it */
    window_results r = window_results_of(t, p);
    int64_t around = p->place_slices * r.rows * r.places * (r.columns / window_joined_packet(t, q, p));
    window_plan joined = *p;
    joined.joins = false;
    joined.places = size_of(q, q->windows[1].kept);
    joined.idle_inside = p->place_slices;
    joined.place_slices = 1;
    return around + lying_store_cycles(t, q, &joined);
}

/* A copy of so many bytes for each slice that has the same columns, or so many parts of them for those that hand it on: of a few blocks
 * that many slices read few channels have something. */
static int64_t crowded_cycles(const target *t, const window_plan *p, int64_t bytes, int64_t all_bytes, int64_t parts)
{
    int64_t blocks = larger(1, all_bytes / t->hbm_block_bytes), of_ring = larger(1, parts), handed = window_handed(p),
            slices = ceil_div(slices_within(t, p, t->slices_per_cluster) * of_ring, handed) * clusters_of(t, p);
    bytes /= of_ring;
    return t->dma_startup_cycles +
           slices * ceil_div(bytes, t->hbm_burst_bytes) * t->hbm_burst_millicycles / 1000 / smaller(blocks, t->hbm_channels);
}

/* Of what meets the sums of columns. */
static int64_t crowded_extra_cycles(const target *t, const tune_question *q, const window_plan *p, const tune_extra *e)
{
    return crowded_cycles(t, p, tune_bytes_of(e->type, window_results_of(t, p).columns), tune_bytes_of(e->type, q->size[TUNE_COLUMN]),
                          p->hand_parts);
}

enum { SUB_ACCESSES = 4 }; /* of the sub context, for a flit */

/* Around the rings, where slices hand filters on: by the context that puts them into the TRF. What is padding is received, too. */
static int64_t filter_cycles(const target *t, const tune_question *q, const window_plan *p, int64_t taps)
{
    int64_t parts = window_filter_parts(t, q, p), packets = taps * p->columns / window_filters_in_packet(t, q, p),
            received = p->hand_parts > 0 ? packets * (window_handed(p) / parts) * (p->main_weights ? 1 : SUB_ACCESSES) : 0;
    return p->hands_filters ? larger(window_ring(p) * packets / parts, received) : 0;
}

/* The same of what meets the sums. */
static int64_t handing_cycles(const target *t, const window_plan *p)
{
    int64_t groups = ceil_div(window_results_of(t, p).columns, t->rows);
    if (p->hand_rows == 0)
        return 0;
    return larger(window_ring(p) * groups / larger(1, p->hand_parts), SUB_ACCESSES * groups * window_hand_padding(p));
}

static int64_t bitmap_cycles(const target *t, const window_plan *p)
{
    return p->hand_rows > 0 && p->hand_parts == 0 ? t->snoop_load_cycles : 0;
}

/* Sums that wait are read in halves of a flit by what has its units there, or whole. */
static int64_t waiting_cycles(const target *t, const tune_question *q, const window_plan *p)
{
    window_results r = window_results_of(t, p);
    bool narrow = false;
    for (size_t i = 0; i < q->waiting.count; i++)
        narrow = narrow || q->waiting.passes[i].narrow.count > 0;
    return r.rows * r.places * ceil_div(r.columns, t->rows) * (narrow ? 2 : 1);
}

static int64_t estimate(const target *t, const tune_question *q, const window_plan *p)
{
    const tune_window *down = &q->windows[0], *across = &q->windows[1];
    window_shape s = window_shape_of(t, q, p);
    window_spread x;
    window_spread_of(t, q, p, &x);
    int64_t channels = s.channels / p->sum_slices, high = window_places_of(q, p, 0, p->rows), wide = window_places_of(q, p, 1, p->places),
            taps = size_of(q, down->summed) * s.across, parts = x.lanes * x.groups * x.channels;
    bool is_between = x.rows * x.packets > 1 || p->sum_slices > 1;
    int64_t groups = window_groups_of(t, q, p->columns), apart = s.taps > 1 || p->sum_slices > 1 ? groups : 1;
    bool whole = q->depthwise ? p->columns >= q->size[TUNE_COLUMN] : p->sum_slices == 1 && groups == q->groups && apart == 1;
    int64_t together = !whole ? 1 : window_skips(q, p, 1) ? size_of(q, across->summed) : wide; /* places in a run */
    int64_t run = tune_bytes_of(q->stored[q->stream], groups / apart * channels * together), runs = apart * high * (wide / together);
    int64_t load_image = copy_cycles(t, p, runs, run);
    int64_t of_weights = q->depthwise ? p->columns : channels / x.channels * (p->sum_slices == 1 && x.channels == 1 ? taps : 1);
    int64_t weights = tune_bytes_of(q->stored[q->weights], of_weights),
            weight_runs = (q->depthwise ? taps : p->columns * taps * channels / (of_weights * x.channels)) / (parts / x.channels);
    int64_t own_rows = window_filter_rows(q, &x) / x.filter_rows, own_places = window_filter_places(q, &x) / x.filter_places;
    if (q->depthwise && p->around > 1) {
        weights /= x.groups;
        weight_runs = own_rows * own_places;
    } else if (x.filter_rows > 1) { /* where places are parts, too, a row is one */
        weights = tune_bytes_of(q->stored[q->weights], own_rows * own_places * channels);
        weight_runs = p->columns / (x.lanes * x.groups);
    }
    if (is_between) {
        int64_t packet = channels / x.packets;
        weights = tune_bytes_of(q->stored[q->weights], packet);
        weight_runs = p->columns / x.groups * (x.rows > 1 ? 1 : size_of(q, down->summed)) * s.across;
    }
    int64_t load_weights = copy_cycles(t, p, larger(1, weight_runs) * p->turns, weights);
    if (p->hands_filters)
        load_weights = crowded_cycles(t, p, taps * weights, taps * tune_bytes_of(q->stored[q->weights], q->size[TUNE_COLUMN]),
                                      window_filter_parts(t, q, p));
    int64_t flits = tune_bytes_of(q->type, elements_of_weights(t, q, p)) / t->flit_bytes,
            accesses = p->packed > 1 ? larger(1, t->flit_bytes / tune_bytes_of(q->type, s.channels)) : 1, /* of main, for a flit */
        fill = flits * (p->main_weights ? accesses : 1) * larger(p->main_weights ? 1 : SUB_ACCESSES, p->around > 1 ? p->sum_slices : 1);
    int64_t multiply = multiply_cycles(t, q, p), extras = bitmap_cycles(t, p), handed = extras;
    int64_t filters = filter_cycles(t, q, p, taps);
    for (size_t i = 0; i < q->extra_count; i++) {
        const tune_extra *e = &q->extras[i];
        window_results r = window_results_of(t, p);
        int64_t pieces = e->has[TUNE_ROW] ? r.rows * r.places : 1, bytes = tune_bytes_of(e->type, r.columns);
        if (e->has[TUNE_ROW])
            extras += copy_cycles(t, p, pieces, bytes);
        else
            extras += p->hand_rows > 0 ? crowded_extra_cycles(t, q, p, e)
                                       : larger(crowded_extra_cycles(t, q, p, e), copy_cycles(t, p, pieces, bytes));
        handed += e->has[TUNE_ROW] ? 0 : handing_cycles(t, p);
    }
    if (p->turns > 1) { /* the TRF is filled for the first one meanwhile */
        int64_t loaded = load_weights + load_image, each = p->main_weights ? fill + multiply : larger(fill, multiply),
                multiplied = larger(loaded, load_weights + fill) + multiply + (p->turns - 1) * each;
        return larger(multiplied, loaded + (p->sums_wait ? extras + handed : 0)) + (p->sums_wait ? waiting_cycles(t, q, p) : 0) +
               store_cycles(t, q, p);
    }
    if (p->sums_wait) {
        int64_t loaded = load_weights + load_image, multiplied = larger(loaded, load_weights + filters + fill) + multiply;
        return larger(multiplied, loaded + extras + (handed > 0 ? handed / (int64_t)q->extra_count : 0)) + waiting_cycles(t, q, p) +
               store_cycles(t, q, p);
    }
    int64_t arrived = load_weights + extras + load_image, ready = load_weights + filters + fill + (p->main_weights ? 0 : handed);
    return larger(arrived, larger(ready, load_weights + handed + (p->main_weights ? 0 : filters))) +
           window_iterations(q, p) * (multiply + store_cycles(t, q, p)) + (window_iterations(q, p) - 1) * load_image;
}

/* ---- enumeration ---- */

/* Slices of rows: those that share them evenly, and powers of two with padding after them. */
static bool row_slices_are_worth_it(int64_t rows, int64_t parts)
{
    return rows % parts == 0 || ((parts & (parts - 1)) == 0 && parts < 2 * rows);
}

typedef struct plans {
    const target *target;
    const tune_question *question;
    window_plan *best;
    size_t count, most;
} plans;

/* The faster first, and of equals the one that was found first. */
static int by_cycles(const void *a, const void *b)
{
    return ORDER(((const window_plan *)a)->cycles, ((const window_plan *)b)->cycles);
}

static const tune_extra *extra_of_columns(const tune_question *q)
{
    for (size_t i = 0; i < q->extra_count; i++)
        if (!q->extras[i].has[TUNE_ROW])
            return &q->extras[i];
    return NULL;
}

/* All slices with the same columns bring once what meets their sums, or each so many of them: the least of a copy and its rings, or of
 * all that is done, since rings are the sub context's, and other copies need not wait for them. */
enum { BROUGHT_BY_EACH, HANDED_TO_SOME, HANDED_MEANWHILE, HANDED_TO_ALL, HANDINGS };

/* Have operands after the sum room in the VRF, with the padding that they are handed on with? */
static bool has_room_for_operands(const target *t, const tune_question *q, const window_plan *p)
{
    window_results r = window_results_of(t, p);
    int64_t elements = 0;
    for (size_t i = 0; i < q->extra_count; i++)
        elements += r.columns * (q->extras[i].has[TUNE_ROW] ? r.rows * r.places : window_hand_padding(p));
    return 4 * elements <= t->vrf_bytes;
}

/* The best ways to hand on up to here. */
typedef struct handing_choice {
    window_plan copied, all; /* by copies and rings, by all that is done */
    int64_t least_copied, least;
} handing_choice;

static void take_handing(const target *t, const tune_question *q, int way, const window_plan *p, handing_choice *x)
{
    int64_t cycles = crowded_extra_cycles(t, q, p, extra_of_columns(q)) + handing_cycles(t, p) + bitmap_cycles(t, p);
    x->copied = cycles < x->least_copied ? *p : x->copied;
    x->least_copied = smaller(x->least_copied, cycles);
    cycles = way == HANDED_MEANWHILE ? estimate(t, q, p) : INT64_MAX;
    x->all = cycles < x->least ? *p : x->all;
    x->least = smaller(x->least, cycles);
}

static bool choose_handing(const target *t, const tune_question *q, int way, window_plan *p)
{
    int64_t inside = window_neighbours(p) / (p->column_slices == 1 ? p->row_slices : 1), neighbours = window_neighbours(p);
    p->hand_rows = p->hand_places = p->hand_parts = 0;
    if (way == BROUGHT_BY_EACH)
        return true;
    if (!extra_of_columns(q) || neighbours == p->idle_inside || window_results_of(t, p).share == WINDOW_SHARES_COLUMNS)
        return false;
    if (way == HANDED_TO_ALL) { /* copies are called rows and places where all slices have some */
        p->hand_rows = p->row_slices;
        p->hand_places = p->place_slices;
        return p->column_slices * neighbours == t->slices_per_cluster;
    }
    if (t->slices_per_cluster % inside != 0) /* slices are a group then, whose parts have no name */
        return false;
    handing_choice x = {*p, *p, INT64_MAX, INT64_MAX};
    int64_t groups = window_results_of(t, p).columns / t->rows;
    for (p->hand_rows = 1; p->hand_rows <= p->row_slices; p->hand_rows++)
        for (p->hand_places = p->hand_rows > 1 ? p->place_slices : 1; p->hand_places <= p->place_slices; p->hand_places++) {
            int64_t handed = window_handed(p);
            if (p->row_slices % p->hand_rows != 0 || p->place_slices % p->hand_places != 0 || handed <= p->idle_inside ||
                !window_rows_end(q, p, p->rows * p->hand_rows))
                continue;
            bool has_name = t->slices_per_cluster % handed == 0; /* whole rings */
            for (p->hand_parts = has_name ? smaller(handed, groups & -groups) : 0; p->hand_parts >= 1; p->hand_parts /= 2)
                if (has_room_for_operands(t, q, p) && window_columns_end(t, q, window_results_of(t, p).columns / p->hand_parts))
                    take_handing(t, q, way, p, &x);
            p->hand_parts = 0;
            if (handed < neighbours)
                take_handing(t, q, way, p, &x);
        }
    bool is_another =
        x.copied.hand_rows != x.all.hand_rows || x.copied.hand_places != x.all.hand_places || x.copied.hand_parts != x.all.hand_parts;
    *p = way == HANDED_MEANWHILE ? x.all : x.copied;
    return p->hand_rows > 0 && (way != HANDED_MEANWHILE || is_another);
}

/* Of the ways in which slices get what they share those that are the fastest, as estimated. */
static void add_handings(plans *x, window_plan p)
{
    enum { KEPT = 3, KEPT_WAITING = 2 };
    const size_t kept[] = {KEPT, KEPT_WAITING};
    window_plan ways[2][KEPT];
    size_t count[2] = {0};
    bool can_wait = x->question->waiting.count > 0 && window_iterations(x->question, &p) == 1;
    for (int way = 0; way < 2 * HANDINGS; way++) {
        p.hands_filters = way >= HANDINGS;
        if ((p.hands_filters && (!x->question->depthwise || p.around > 1 || way == HANDINGS)) ||
            !choose_handing(x->target, x->question, way % HANDINGS, &p))
            continue;
        for (int waits = p.turns > 1 && can_wait; waits < (can_wait ? 2 : 1); waits++) {
            window_parts parts;
            p.sums_wait = waits;
            if (!window_parts_of(x->target, x->question, &p, &parts))
                continue;
            p.cycles = estimate(x->target, x->question, &p);
            order_keep(ways[waits], &count[waits], kept[waits], sizeof p, &p, by_cycles);
        }
        p.sums_wait = false;
    }
    for (int waits = 0; waits < 2; waits++)
        for (size_t i = 0; i < count[waits]; i++)
            order_keep(x->best, &x->count, x->most, sizeof p, &ways[waits][i], by_cycles);
}

/* Can so many neighbours bring the weights together: all, or those that have places of the same rows, as the Switch Engine gives packets to
 * whole axes of slices? Others bring the same once more; one brings all that it needs. */
enum { AROUNDS = 3 };
static bool can_go_around(const target *t, const tune_question *q, window_plan p, int64_t around)
{
    window_spread spread;
    p.around = around;
    return around > 1 && p.packed == 1 && p.idle_inside == 1 && window_spread_of(t, q, &p, &spread) &&
           window_columns_end(t, q, p.columns / spread.groups);
}

/* Do columns of a group end inside of a word, with padding after them? */
static bool cuts_words(const target *t, const tune_question *q)
{
    int64_t columns = q->size[TUNE_COLUMN] / q->groups;
    return q->groups > 1 && columns != window_group_columns(t, q) && tune_bytes_of(q->out_type, columns) % WORD_BYTES != 0;
}

/* With the choices of how operands and results travel. */
static void add_ways(plans *x, window_plan p)
{
    const target *t = x->target;
    const tune_question *q = x->question;
    int64_t used = p.row_slices * p.place_slices * p.column_slices * p.sum_slices, spaced = 1;
    const int64_t arounds[AROUNDS] = {1, p.row_slices * p.place_slices, p.row_slices > 1 ? p.place_slices : 1};
    while (2 * spaced * used <= t->slices_per_cluster)
        spaced *= 2;
    bool can_join = p.place_slices > 1 && window_columns_end(t, q, window_joined_packet(t, q, &p)) && p.column_slices == 1 &&
                    !p.columns_of_clusters && p.sum_slices == 1;
    for (int way = 0; way < (has_gaps(q, 0) || has_gaps(q, 1) ? 32 : 16) * AROUNDS; way++) {
        int choice = way / AROUNDS;
        p.around = arounds[way % AROUNDS];
        p.main_weights = choice & 1;
        p.brings = choice & 2;
        p.idle_inside = choice & 4 ? spaced : 1;
        p.joins = choice & 8;
        p.skips = choice & 16;
        if (p.joins && (!can_join || p.brings || p.idle_inside > 1))
            continue;
        if (((choice & 4) && spaced == 1) || (p.brings && cuts_words(t, q)) || ((p.brings || p.joins) && q->tensors[TUNE_OUT].is_free) ||
            (way % AROUNDS > 0 && !can_go_around(t, q, p, p.around)) ||
            tune_bytes_of(q->type, elements_of_weights(t, q, &p)) > target_trf_capacity_bytes(t, TRF_FULL) || !window_has_room(t, q, &p))
            continue;
        add_handings(x, p);
    }
}

/* Parts of the channels: whole flits of them. */
static bool can_part_channels(const target *t, const tune_question *q, int64_t parts)
{
    return parts == 1 || (!q->depthwise && size_of(q, q->window_channel) % (parts * elements_in(q, t->flit_bytes)) == 0);
}

/* In as many turns as the TRF asks for. */
static void add_turns(plans *x, window_plan p)
{
    enum { MOST_TURNS = 16 };
    const target *t = x->target;
    const tune_question *q = x->question;
    bool can_turn = !q->depthwise && window_groups_of(t, q, p.columns) == 1 && window_iterations(q, &p) == 1 &&
                    (q->extra_count == 0 || q->waiting.count > 0);
    const int64_t own = p.columns, groups = own / t->rows;
    for (; tune_bytes_of(q->type, elements_of_weights(t, q, &p)) > target_trf_capacity_bytes(t, TRF_FULL); p.columns = own / p.turns) {
        if (!can_turn)
            return;
        do
            p.turns++;
        while (p.turns <= smaller(MOST_TURNS, groups) && groups % p.turns != 0);
        if (p.turns > smaller(MOST_TURNS, groups))
            return;
    }
    add_ways(x, p);
}

/* Groups of few channels side by side in a packet, or one after the other. */
static void add_packed(plans *x, window_plan p)
{
    const target *t = x->target;
    const tune_question *q = x->question;
    int64_t flit = elements_in(q, t->flit_bytes), channels = window_shape_of(t, q, &p).channels, groups = window_groups_of(t, q, p.columns);
    add_turns(x, p);
    for (p.packed = 2; p.sum_slices == 1 && p.packed * channels <= 2 * flit && p.packed <= t->accumulator_columns; p.packed *= 2)
        if (groups % p.packed == 0 && p.packed * channels >= flit && (channels & (channels - 1)) == 0)
            add_turns(x, p);
}

/* Slices share them as whole parts of an image, or whole images. */
static bool shares_images(const tune_question *q, const window_plan *p)
{
    return !p->images_in_rows || (p->padded_rows == window_rows(q, p) && p->rows <= size_of(q, q->windows[0].kept) &&
                                  window_rows_end(q, p, p->rows) && window_rows_end(q, p, p->rows * p->row_slices));
}

/* With images one after the other, or as rows. */
static void add_shares(plans *x, bool images_in_rows)
{
    const target *t = x->target;
    const tune_question *q = x->question;
    int64_t rows = window_rows(q, &(window_plan){.images_in_rows = images_in_rows}), places = size_of(q, q->windows[1].kept),
            columns = window_columns(t, q), clusters = t->clusters_per_chip, all = tune_slices_of(t, q->most_slices),
            unit = q->depthwise ? larger(t->rows, elements_in(q, WORD_BYTES)) : t->rows;
    for (int clustered = 0; clustered < (clusters > 1 ? 3 : 1); clustered++)
        for (int64_t r = 1; r <= smaller(2 * rows, all); r++) {
            int64_t row_parts = r * (clustered == 1 ? clusters : 1);
            if (!row_slices_are_worth_it(rows, row_parts))
                continue;
            for (int64_t w = 1; w < 2 * places && r * w <= all; w++) {
                int64_t tile = ceil_div(places, w);
                if (places % w != 0 && ((w & (w - 1)) != 0 || places % tile != 0 || places <= tile * w / 2))
                    continue;
                for (int64_t c = 1; c * r * w <= all; c++) {
                    int64_t column_parts = c * (clustered == 2 ? clusters : 1);
                    if (columns % (column_parts * unit) != 0)
                        continue;
                    window_plan p = {.row_slices = r,
                                     .rows = ceil_div(rows, row_parts),
                                     .place_slices = w,
                                     .places = tile,
                                     .padded_places = tile * w,
                                     .column_slices = c,
                                     .columns = columns / column_parts,
                                     .turns = 1,
                                     .packed = 1,
                                     .idle_inside = 1,
                                     .around = 1,
                                     .images_in_rows = images_in_rows,
                                     .rows_of_clusters = clustered == 1,
                                     .columns_of_clusters = clustered == 2};
                    p.padded_rows = p.rows * row_parts;
                    p.apart =
                        clustered == 1 && !images_in_rows && p.padded_rows != rows && rows % clusters == 0 && rows / clusters % p.rows == 0;
                    if (!shares_images(q, &p) || !window_columns_end(t, q, p.columns) || !window_columns_end(t, q, c * p.columns))
                        continue;
                    for (p.sum_slices = 1; p.sum_slices * c * r * w <= all && can_part_channels(t, q, p.sum_slices); p.sum_slices *= 2)
                        if (window_columns_end(t, q, window_results_of(t, &p).columns))
                            add_packed(x, p);
                }
            }
        }
}

size_t window_plans(const target *t, const tune_question *q, window_plan *best, size_t most)
{
    plans x = {t, q, best, 0, most};
    const border_way border = border_way_of(t, q, window_place_elements(t, q));
    for (int64_t ways = 0; ways < (q->size[TUNE_BATCH] > 1 ? 2 : 1); ways++)
        add_shares(&x, ways);
    for (size_t i = 0; i < x.count; i++)
        best[i].border = border;
    return x.count;
}
