/* The text of scales that sums of groups meet: from HBM as they lie, into the VRF as the sums leave the Reducer. */
#ifndef VISA_LIBVISA_TUNE_SCALED_WRITE_H
#define VISA_LIBVISA_TUNE_SCALED_WRITE_H

#include "libvisa/tune/text.h"

/* A digit of a sum of groups, of whole groups, of what each of them adds, or of both: "G % 4, K / 64". */
const char *scaled_sum_digit(const tune_question *q, int64_t stride, int64_t count, arena *a);

/* A digit of groups, with what pads them to whole words where they are a tensor's innermost axis: "G # 88 % 8". */
const char *scaled_digit(const tune_question *q, const tune_extra *e, int64_t stride, int64_t count, arena *a);

/* Groups of a scale that lies with them innermost, with that padding. */
int64_t scaled_padded_groups(const tune_extra *e);

/* Of a zero point, positions of what is kept that come together: whole words, where they are innermost in it. */
int64_t scaled_zero_unit(const tune_extra *e);

/* Does a slice turn it, so that columns are side by side? */
bool scaled_is_turned(const tune_extra *e);

/* It is turned as the Vector Engine has it: so many lanes are a word of 8 bytes. */
enum { SCALED_LANES = 2 };

/* Elements of a packet of groups that is turned, and what it takes for so many columns. */
int64_t scaled_packet(const target *t, const tune_extra *e);
int64_t scaled_turn_cycles(const target *t, const tune_extra *e, int64_t rows, int64_t columns);

/* What is turned: the tensor in DM, digits outside of the lanes of a packet of results, those lanes by words of 8 bytes, and the lanes of
 * a word. */
typedef struct scaled_turn {
    const char *name, *from; /* "s", "s.view()" */
    const char *outside, *words, *word, *lanes;
} scaled_turn;

/* [outside, lanes, groups] becomes [outside, groups, lanes]. */
void scaled_write_turn(tune_page *w, const target *t, const tune_question *q, const tune_extra *e, const scaled_turn *x);

#endif
