/* A command's table as the loop nest it is.
 *
 * The one idea: the hardware numbers table entries from the outside (fetch, commit, DMA) or from the inside
 * (TRF); a reader wants loops, outermost first. Which entry is which loop is stated by its
 * TABLE row alone (target/engines.def). */
#ifndef VISA_CODEGEN_LOOPS_H
#define VISA_CODEGEN_LOOPS_H

#include "codegen/command.h"

/* Loops of the command's table; 0 when it has none or when its entries are no loops (mask). */
unsigned command_loop_count(const command *c);
/* The hardware's number of the entry that is loop `depth` (0: the outermost). */
unsigned command_loop_entry(const command *c, unsigned depth);
/* Iterations of that loop. */
int64_t command_loop_size(const command *c, unsigned depth);
/* "source += i1*64 bytes, destination += i1*64 bytes": what the loop's counter does, without a newline. */
const char *command_loop_steps(const command *c, unsigned depth, arena *a);

#endif
