/* A place in a source text. */
#ifndef VISA_SUPPORT_SRC_RANGE_H
#define VISA_SUPPORT_SRC_RANGE_H

#include <stdint.h>

/* A range of bytes [begin, end) of one source text; {0, 0} of file -1 means "no place in a source". */
typedef struct src_range {
    int32_t file;
    uint32_t begin, end;
} src_range;

#define SRC_NOWHERE ((src_range){.file = -1})

#endif
