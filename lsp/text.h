/* A text as an editor counts it: lines, and columns in UTF-16 units or bytes.
 *
 * The one idea: the compiler speaks in byte offsets and the protocol in lines and columns; here and nowhere else one becomes the
 * other. A column past a line's end is its end, one inside a character is that character's begin. Bytes that are no UTF-8 count
 * as one unit each. */
#ifndef VISA_LSP_TEXT_H
#define VISA_LSP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum text_encoding { TEXT_UTF16, TEXT_UTF8 } text_encoding;

typedef struct text_position {
    uint32_t line, column; /* from 0 */
} text_position;

/* A character's begin, and the units of all the text in front of it. */
typedef struct text_mark {
    uint32_t at, units;
} text_mark;
enum { TEXT_MARK_BYTES = 256 };

typedef struct text_lines {
    const char *text; /* not owned */
    size_t bytes;
    uint32_t *begins; /* malloc; offset of each line */
    uint32_t count;
    bool ascii; /* a byte is a character is a unit: nothing is counted */
    struct text_mark
        *marks[2]; /* malloc; by encoding, one for every TEXT_MARK_BYTES of a text that is not ASCII: from there characters are counted */
} text_lines;

/* False: no memory. Lines end with \n, \r\n or \r. */
bool text_lines_read(text_lines *l, const char *text, size_t bytes);
void text_lines_free(text_lines *l);

text_position text_position_of(const text_lines *l, text_encoding encoding, uint32_t offset);
uint32_t text_offset_of(const text_lines *l, text_encoding encoding, text_position p);

#endif
