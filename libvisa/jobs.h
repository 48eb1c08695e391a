/* The kernels of a file on several processors, where only their binary is asked for.
 *
 * The one idea: whoever has a thread reads the whole tree and takes the next kernel that nobody has; what each of them made is put together
 * in the order of the file. Where that could differ from one after the other, nothing of it is kept. */
#ifndef VISA_LIBVISA_JOBS_H
#define VISA_LIBVISA_JOBS_H

#include "frontend/sema.h"
#include "libvisa/compilation.h"

/* The tree of a file, each thread having read a part of it; NULL: it is short, or has errors, or macros that a later part might call.
 * Kernels may follow, by the same threads. */
ast *jobs_parse(visa_compilation *c, int file);
/* The survey of what jobs_parse gave; NULL: it gave nothing, or its parts alone do not tell. */
const sema_survey *jobs_survey(const visa_compilation *c);
/* Compiles the kernels of c->tree and leaves module, binary and warnings in `c`. False: it was not tried, or something is wrong with the
 * file, or it may cost too much: nothing happened, and one after the other says what. */
bool jobs_run(visa_compilation *c, const sema_options *options);
/* What they made, which the compilation used. */
typedef struct jobs jobs;
void jobs_free(jobs *j);

#endif
