/* The text of an operand that is turned aside: a copy into DM, the pass that turns it, and the copy back. */
#ifndef VISA_LIBVISA_TUNE_ASIDE_WRITE_H
#define VISA_LIBVISA_TUNE_ASIDE_WRITE_H

#include "libvisa/tune/aside.h"
#include "libvisa/tune/text.h"

/* All of the sum, or a part in front of its own products; of several parts the first one, ahead of their loop, and in it the next one. */
typedef enum aside_part { ASIDE_ONLY, ASIDE_FIRST, ASIDE_NEXT } aside_part;

/* `tile`: ".view().tile::<..>(l)", the part of the sum, or "". */
void aside_write(tune_page *w, const target *t, const tune_question *q, const aside *x, aside_part part, const char *tile);

/* What it is called in HBM then. */
const char *aside_name(tune_role role);

#endif
