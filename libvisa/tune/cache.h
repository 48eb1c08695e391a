/* Answers that were found before, on disk.
 *
 * The one idea: a file begins with all that its answer depends on (question, sizes, types, work, and which build of which version
 * answered), and is taken only when that is what is asked now and the digest of the whole is right. A file that is damaged, or another
 * question's, is no answer, and is written over. There are so many places, and an answer has one of them by the digest of what is asked, so
 * that the folder does not grow without bound. */
#ifndef VISA_LIBVISA_TUNE_CACHE_H
#define VISA_LIBVISA_TUNE_CACHE_H

#include "include/visa.h"
#include "support/strbuf.h"

/* The answer to o->question, in the arena of *out. False: there is none. */
bool tune_cache_find(const visa_tune_options *o, strbuf *out);

/* Keeps it; what cannot be written is not kept, and nobody is told. */
void tune_cache_keep(const visa_tune_options *o, const strbuf *answer);

#endif
