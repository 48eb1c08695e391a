/* Streams as text: JSON arrays of tokens, as one writes them down.
 *
 * The one idea: a stop is "S1", everything else is a value that looks like its type: a tile is a list of rows (a number alone: 1 x 1;
 * {"tile": rows, "valid": n} when not all rows are real), a selector a list of the outputs that it names, an address a number, a bool true
 * or false, a pair {"pair": [a, b]}, a buffer {"buffer": tokens}. The end is the end of the array. Of what comes in, {"at": n, "token": t}
 * is the token t, which is not sent before cycle n. */
#ifndef VISA_RUNTIME_STEP_TOKENS_H
#define VISA_RUNTIME_STEP_TOKENS_H

#include "runtime/step/engine.h"

/* The tokens of a stream of that type and rank, checked: levels, sizes, and that the last group is closed. False with a diagnostic that
 * names `what` and the token. */
bool step_tokens_read(const step_program *p, const step_output *stream, const char *text, size_t bytes, const char *what, step_pool *pool,
                      arena *a, diag_list *diags, step_feed *feed);

/* One line. */
const char *step_tokens_text(const step_program *p, uint32_t type, const step_value *buffer, arena *a);

#endif
