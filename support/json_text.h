/* JSON as text that lives as long as everything else of a compilation.
 *
 * The one idea: whoever writes JSON hands the value over and has a text of the arena, so that no writer frees anything. */
#ifndef VISA_SUPPORT_JSON_TEXT_H
#define VISA_SUPPORT_JSON_TEXT_H

#include <jansson.h>

#include "support/arena.h"

/* The text of `root` with a newline after it; `flags` are jansson's. `root` is released; NULL where it is NULL or memory ends. */
const char *json_dump_text(json_t *root, size_t flags, arena *a);

#endif
