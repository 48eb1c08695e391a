/* The zeros around an image, where windows take places that it has not.
 *
 * The one idea: rows of the image get their zeros in DM, and are written to HBM as whole blocks, with rows of zeros from DM as well or
 * between such as are there; from there on the image is one with a border, as it could have been handed over, and no plan for its windows
 * knows of it. */
#ifndef VISA_LIBVISA_TUNE_BORDER_H
#define VISA_LIBVISA_TUNE_BORDER_H

#include "libvisa/tune/text.h"

/* Rows, places and channels of the image as it is handed over: "H, W, C # 8". */
const char *border_image(const tune_question *q, const char *channel, arena *a);

/* Places of a row in HBM: those that windows take, and more zeros up to whole blocks. `of_place`: elements of one. */
int64_t border_places(const target *t, const tune_question *q, int64_t of_place);

/* How rows of zeros get to HBM. */
typedef enum border_way {
    BORDER_TOGETHER, /* with those of the image, in one cluster */
    BORDER_APART,    /* by copies of their own, so that both clusters have rows of the image; */
    BORDER_AS_ROWS   /* always so: a row in HBM is one of those that windows take */
} border_way;

/* Can it be either way, which is then a choice? Else the way does not count. */
bool border_has_choice(const target *t, const tune_question *q, int64_t of_place);

/* The faster one, as estimated. */
border_way border_way_of(const target *t, const tune_question *q, int64_t of_place);

/* Rows in HBM: those that windows take, and more where slices have several. */
int64_t border_rows(const target *t, const tune_question *q, int64_t of_place, border_way way);

/* Axes of the kernel that the question has not, ", H = 14, H_WIDE = 16, ..". */
void border_write_axes(tune_page *w, const target *t, const tune_question *q, int64_t of_place, border_way way);

/* What lies around the image: as memset has it, and what that is called. */
typedef struct border_fill {
    const char *value, *name;
    bool is_short; /* little is filled, in more copies and passes: what is long in a slice takes memset longer than these, but may be hidden
                    */
} border_fill;

/* The image in HBM with its border, under the name of its port; `windows`: as they take it. `images`: the axis of several, NULL: one. */
void border_write(tune_page *w, const target *t, const tune_question *q, const border_fill *fill, const char *images, const char *channel,
                  int64_t of_place, border_way way, const char *windows);

#endif
