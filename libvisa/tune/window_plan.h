/* What is chosen for a convolution: which results a slice has, and what of the sum.
 *
 * The one idea: what the Reducer takes in a step is a run of DM: channels of a place, or of neighbouring places where channels are few.
 * Where each channel has a filter of its own, the channels are the run, and nothing of it is summed: the columns are the channels. */
#ifndef VISA_LIBVISA_TUNE_WINDOW_PLAN_H
#define VISA_LIBVISA_TUNE_WINDOW_PLAN_H

#include "libvisa/tune/border.h"
#include "libvisa/tune/question.h"

/* Slices of columns are outermost, then those of rows, and of places in a row, of which the last ones may have
 * padding alone, and of channels.
 */
typedef struct window_plan {
    int64_t row_slices, rows, padded_rows, place_slices, places, padded_places, column_slices, columns;
    int64_t turns;  /* parts of a slice's columns, whose weights are in the TRF one after the other: `columns` are those of one part */
    int64_t packed; /* groups of few channels that lie in a packet, side by side: of each the Reducer makes a sum; 1: channels of one */
    bool images_in_rows; /* slices share images as they do rows: rows are those of all images, and a slice has some of one */
    int64_t sum_slices;  /* that have a part of the channels each, whose sums the Vector Engine adds */
    int64_t idle_inside; /* of the slices that idle, as a digit between those of places and of channels; the others are at the end */
    bool rows_of_clusters, columns_of_clusters, main_weights;
    int64_t around; /* so many neighbours bring a part of the weights each, which go around by the Switch Engine on their way into the TRF;
                       1: each slice gets all of its own */
    /* Of the slices with the same columns so many, of rows and of places, bring once what meets their sums, and the Switch Engine hands it
     * on; 0: each brings it. Of them so many bring a part of the columns, by a named topology; 0: one brings all, and bitmaps say who
     * copies it. */
    int64_t hand_rows, hand_places, hand_parts;
    bool hands_filters; /* and the filters of channels that have one each */
    bool skips;         /* a copy of the image leaves out the places that a stride passes: fewer bytes, and shorter runs */
    bool apart;         /* clusters of rows have padding each */
    bool joins;         /* or the Switch Engine brings the places of a row into one of the slices that share it */
    bool sums_wait;     /* in DM, for the operands of what is done to them: these are copied last, while others are multiplied */
    bool brings;        /* a copy from DM to DM brings whole rows of results together before they are written */
    border_way border;  /* how zeros around the image get to HBM */
    bool short_border;  /* little is filled around it (border.h) */
    int64_t cycles;     /* as estimated */
} window_plan;

/* Rows of results that slices share, and images that are computed one after the other. */
int64_t window_rows(const tune_question *q, const window_plan *p);
int64_t window_iterations(const tune_question *q, const window_plan *p);

/* Do so many rows end where an image does, or inside of one? What slices have of rows ends there, since images are an axis of their own. */
bool window_rows_end(const tune_question *q, const window_plan *p, int64_t rows);

/* What is multiplied in a step. */
typedef struct window_shape {
    int64_t channels; /* with what pads them to whole 8 bytes, in HBM, too */
    int64_t taps;     /* places of the window that lie in a packet, side by side; 1: channels of one place */
    int64_t across;   /* places of a row of the window, with what pads them to whole packets */
    int64_t run;      /* elements of the TRF for a place, or a packet of several */
    int64_t packet;   /* elements of one step of multiplications: one flit, or two */
    int64_t live;     /* of them those that are no padding, where packets are not cut out of a longer run */
    int64_t rows;     /* Rows of the Reducer that work */
} window_shape;
window_shape window_shape_of(const target *t, const tune_question *q, const window_plan *p);

/* The parts of a slice's weights that neighbours bring. Where no slices stand between them, they are the outermost digits of lanes, of
 * their groups and of channels; what is of one part of the channels is side by side in the TRF then, so the image is fetched in that order,
 * too. Between slices with parts of the channels they are the innermost digits in front of a packet: rows of the window, with padding
 * after them, groups of lanes, and channels. */
typedef struct window_spread {
    int64_t lanes, groups, channels;
    int64_t rows, packets;              /* rows of the window that are parts, and packets of channels inside of all that; 1: none */
    int64_t filter_rows, filter_places; /* or parts of those and of places in them, both padded, after lanes and groups */
} window_spread;

/* Rows of a window in the TRF, and places in them, with the padding that parts of them have. */
int64_t window_filter_rows(const tune_question *q, const window_spread *x);
int64_t window_filter_places(const tune_question *q, const window_spread *x);

/* False: neighbours do not share evenly. */
bool window_spread_of(const target *t, const tune_question *q, const window_plan *p, window_spread *out);

/* Filters of channels that are side by side in a packet that is handed on. */
int64_t window_filters_in_packet(const target *t, const tune_question *q, const window_plan *p);

/* What a slice has of the results. Those that had parts of a sum share them: rows, or else places, or else columns; or one has all. */
typedef enum window_share { WINDOW_SHARES_ROWS, WINDOW_SHARES_PLACES, WINDOW_SHARES_COLUMNS, WINDOW_SHARES_NOTHING } window_share;
typedef struct window_results {
    window_share share;
    int64_t rows, places, columns;
} window_results;
window_results window_results_of(const target *t, const window_plan *p);

/* Does the stride of that window pass places which a copy leaves out? And places of the image in DM for so many windows. */
bool window_skips(const tune_question *q, const window_plan *p, size_t i);
int64_t window_places_of(const tune_question *q, const window_plan *p, size_t i, int64_t kept);

/* Elements of a place of the image in HBM, with what pads them. */
int64_t window_place_elements(const target *t, const tune_question *q);

/* Columns of a slice, in all turns. */
int64_t window_own_columns(const window_plan *p);

/* Columns with their padding: whole Rows, in each group, and of channels whole 8 bytes. */
int64_t window_columns(const target *t, const tune_question *q);

/* Of a group of channels; and groups of which a slice has so many columns. */
int64_t window_group_columns(const target *t, const tune_question *q);
int64_t window_groups_of(const target *t, const tune_question *q, int64_t columns);

/* Of a packet of results in DM: whole words of 8 bytes; of groups with fewer columns than that without what pads them. */
int64_t window_kept_lanes(const target *t, const tune_question *q);

/* Do so many columns end where a group does, or inside of one? What slices have of them ends there, as groups are an axis of their own. */
bool window_columns_end(const target *t, const tune_question *q, int64_t columns);

/* Columns that packets of the Reducer have, or that meet the same packet. */
int64_t window_column_groups(const target *t, const tune_question *q, const window_plan *p);

/* Slices that have the same columns, side by side. */
int64_t window_neighbours(const window_plan *p);

/* Of them those that what is brought once is handed on to, 1: none; how many are around a ring in which each finds it; and of a named
 * topology as many bring padding as bring one part, which goes around, too. */
int64_t window_handed(const window_plan *p);
int64_t window_ring(const window_plan *p);
int64_t window_hand_padding(const window_plan *p);

/* Of filters, packets of them are shared evenly. */
int64_t window_filter_parts(const target *t, const tune_question *q, const window_plan *p);

/* Elements of a packet of results on its way to the slice that has its row. */
int64_t window_joined_packet(const target *t, const tune_question *q, const window_plan *p);

/* Rows of results that a slice writes after a copy: whole tiles, and whole blocks of HBM where they come to that. */
int64_t window_rows_brought(const target *t, const tune_question *q, const window_plan *p);

/* The plans that are possible, the best estimate first; at most `most`. */
size_t window_plans(const target *t, const tune_question *q, window_plan *plans, size_t most);

#endif
