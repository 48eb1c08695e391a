/* Is a decoded graph well typed? What runs it takes for granted that every value is of the kind that its stream says, and that ranks follow
 * from the operators; sizes of tiles are looked at when they meet. */
#ifndef VISA_CODEGEN_STEP_CHECK_H
#define VISA_CODEGEN_STEP_CHECK_H

#include "codegen/step/program.h"
#include "codegen/words.h"

/* False with a fault of the section (at its end) that names the node. */
bool step_program_check(const step_program *p, word_reader *in);

#endif
