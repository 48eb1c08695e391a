/* Streams as text: JSON arrays of tokens, as one writes them down.
 *
 * The one idea: a stop is "S1", everything else is a value that looks like its type: a tile is a list of rows (a number alone: 1 x 1;
 * {"tile": rows, "valid": n} when not all rows are real), a selector a list of the outputs that it names, an address a number, a bool true
 * or false, a pair {"pair": [a, b]}, a buffer {"buffer": tokens}. The end is the end of the array. */
#ifndef VISA_RUNTIME_STEP_TOKENS_H
#define VISA_RUNTIME_STEP_TOKENS_H

#include "runtime/step/value.h"

/* The tokens of a stream of that type and rank, checked: levels, sizes, and that the last group is closed. NULL with a diagnostic that
 * names `what` and the token. */
const step_token *step_tokens_read(const step_program *p, const step_output *stream, const char *text, size_t bytes, const char *what, step_pool *pool,
                                   arena *a, diag_list *diags, size_t *count);

/* One line. */
const char *step_tokens_text(const step_program *p, uint32_t type, const step_value *buffer, arena *a);

#endif
