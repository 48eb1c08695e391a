#include "runtime/machine/fault.h"

#include <stdarg.h>
#include <stdio.h>

bool fault_set(fault *f, diag_id id, const command *c, const char *format, ...)
{
    if (f->set)
        return false;
    f->set = true;
    f->id = id;
    f->command = c;
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    return false;
}

bool fault_memory(fault *f, const command *c, const char *what)
{
    return fault_set(f, E_RUN_LIMIT, c, "no memory left for %s", what);
}

/* A number that names no row came in with the kernel, or was computed of such ones. */
static void help_report(const fault *f, diag *d, diag_list *diags)
{
    if (f->id == E_RUN_INDEX)
        diag_help(diags, d, "give what the index is, or is computed of: --input=NAME=FILE; without it, what comes in is drawn");
}

void fault_report(const fault *f, const char *kernel, diag_list *diags)
{
    const command *c = f->command;
    diag *d;
    if (!c)
        d = diag_add(diags, f->id, SRC_NOWHERE, "kernel %s: %s", kernel, f->text);
    else if (c->line)
        d = diag_add(diags, f->id, SRC_NOWHERE, "kernel %s, %s context, offset 0x%x, line %u: %s: %s", kernel, context_name(c->context),
                     c->offset, c->line, command_row_of(c->op)->name, f->text);
    else
        d = diag_add(diags, f->id, SRC_NOWHERE, "kernel %s, %s context, offset 0x%x: %s: %s", kernel, context_name(c->context), c->offset,
                     command_row_of(c->op)->name, f->text);
    help_report(f, d, diags);
}
