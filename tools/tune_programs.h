/* `visac tune FILE.vm` of a file with a stream program (libvisa/variants/program_tune.h). */
#ifndef VISA_TOOLS_TUNE_PROGRAMS_H
#define VISA_TOOLS_TUNE_PROGRAMS_H

#include "support/arena.h"
#include "support/diag.h"

struct arguments;

/* The exit status. */
int tune_programs(struct arguments *a, arena *memory, diag_list *diags);

#endif
