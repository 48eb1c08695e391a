/* How visac and visa-run check a kernel.
 *
 * The one idea: apart from what the command line says of a check, because these functions bring the machine and the field, which a program
 * that only compiles does not link. */
#ifndef VISA_TOOLS_CHECKING_H
#define VISA_TOOLS_CHECKING_H

#include <stdio.h>

#include "runtime/field/beside.h"
#include "runtime/field/verdict.h"
#include "runtime/machine/session.h"
#include "tools/options.h"

/* May the kernel be run? Says on standard error how long it will be, where that is long. False: diagnosed. */
bool tool_run_length(const char *tool, session *s, const char *kernel, uint64_t most, diag_list *diags);
/* Has the kernel something to compare? */
bool tool_has_output(const binary_kernel *k);
/* Announces tool_check_algebra, which may begin while numbers are run. It has to follow, or tool_check_drop. */
void tool_check_begin(tool_check *c, const target *t, const binary_kernel *k, uint64_t seed, unsigned threads);
void tool_check_drop(tool_check *c);
/* Proves a kernel, where that is wanted; *report: lines for people. */
bool tool_check_algebra(tool_check *c, const target *t, const binary_kernel *k, uint64_t seed, unsigned threads, arena *a, diag_list *diags,
                        bool *agrees, const char **report);
/* What was just proven of a kernel; NULL: nothing. */
const field_verdict *tool_check_last(const tool_check *c, const binary_kernel *k);
/* Writes the certificate of what was proven, if one is wanted. */
bool tool_check_certify(const tool_check *c, const char *file, const unsigned char *bytes, size_t size, arena *a);

/* A line for people, where no document is wanted. */
void tool_check_say(const tool_check *c, const char *text, FILE *to);
/* For the document, where one is wanted. The texts outlive it. */
void tool_check_add(tool_check *c, const verdict_item *item, arena *a);
/* Prints the document, where one is wanted and the status is that of a check that came to its end. Returns the status. */
int tool_check_print(const tool_run *r, const char *file, int status, diag_list *diags);

#endif
