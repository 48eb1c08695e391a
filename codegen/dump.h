/* A binary for people and for programs.
 *
 * The one idea: both forms show everything in the file, decoded from its bytes, every value with its
 * name and unit, and the same file always gives the same text. */
#ifndef VISA_CODEGEN_DUMP_H
#define VISA_CODEGEN_DUMP_H

#include "codegen/container.h"

/* Lines, for reading. */
const char *binary_to_text(const binary *b, arena *a);

/* One JSON object (docs/format.md, "The dump as JSON"), indented, with a newline at the end. NULL: out of
 * memory. */
const char *binary_to_json(const binary *b, arena *a);

#endif
