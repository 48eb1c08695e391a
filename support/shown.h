/* Text from outside, as it may be shown.
 *
 * The one idea: the name of a file is any bytes but NUL and /, so that it could end a line, move a terminal's cursor or break a reader of
 * UTF-8. Whoever puts a name into a message puts this form of it there. */
#ifndef VISA_SUPPORT_SHOWN_H
#define VISA_SUPPORT_SHOWN_H

#include <stdbool.h>

#include "support/arena.h"

/* One UTF-8 character; returns its bytes, or 0 when the bytes are no character. */
uint32_t utf8_decode(const char *text, uint32_t bytes, uint32_t *character);
/* Control characters, and marks of direction, which could make a line look like another one. */
bool utf8_is_hidden(uint32_t character);

/* The text in one line of UTF-8: \n, \t, \r, and \xNN for what else is hidden or no character. It may be the same pointer. */
const char *shown_text(const char *text, arena *a);
/* The name of a file that is read or written, where `-` is a standard stream. */
const char *shown_input(const char *path, arena *a);
const char *shown_output(const char *path, arena *a);

#endif
