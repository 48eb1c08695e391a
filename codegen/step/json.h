/* A decoded stream program as JSON (docs/format.md, "The dump as JSON"). */
#ifndef VISA_CODEGEN_STEP_JSON_H
#define VISA_CODEGEN_STEP_JSON_H

#include <jansson.h>

#include "codegen/step/program.h"

/* A new reference; NULL: out of memory. */
json_t *step_program_json(const step_program *p);

#endif
