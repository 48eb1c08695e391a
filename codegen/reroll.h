/* The repetitions of a command stream as loops.
 *
 * The one idea: a `for` around stages has been unrolled before anything was derived, so each of its iterations stands in the stream as the
 * same commands with other numbers. Where such numbers advance evenly, the iterations are one body and a `loop` in front of it, where that
 * takes fewer bytes of the file; innermost loops first, so that nests come out as nests. Nothing about the commands themselves changes:
 * command_unroll gives the same list back. */
#ifndef VISA_CODEGEN_REROLL_H
#define VISA_CODEGEN_REROLL_H

#include "codegen/command.h"

/* The commands as they are to stand in the section. `left` as in command_unroll: a stream that expands to more stays as it is. Without a
 * repetition *out is `commands`. */
void command_reroll(const command *commands, size_t count, size_t *left, arena *a, const command **out, size_t *out_count);

#endif
