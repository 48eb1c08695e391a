/* What went wrong in the machine, before it becomes a diagnostic.
 *
 * The one idea: slices run on several threads and a diag_list belongs to one, so a stage writes its first
 * fault into a fixed-size value that names the command, and whoever started the slices turns one of them into
 * a diagnostic. */
#ifndef VISA_RUNTIME_MACHINE_FAULT_H
#define VISA_RUNTIME_MACHINE_FAULT_H

#include "codegen/command.h"
#include "support/diag.h"

enum { FAULT_TEXT_BYTES = 400 };

typedef struct fault {
    bool set;
    diag_id id;
    const command *command;
    char text[FAULT_TEXT_BYTES]; /* empty: the first fault has not happened */
} fault;

/* Keeps the first fault; always returns false, so that `return fault_set(...)` reads well. */
bool fault_set(fault *f, diag_id id, const command *c, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Out of memory for `what`: the one fault that any stage can have. */
bool fault_memory(fault *f, const command *c, const char *what);

/* Adds the fault to the list, with the command's kernel, context, offset and source line before its text. */
void fault_report(const fault *f, const char *kernel, diag_list *diags);

#endif
