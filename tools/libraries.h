/* What needs a library while it runs: LLVM for a check, MPI under mpirun.
 *
 * The one idea: a compile starts without a dynamic linker, because visac is linked statically. Asked for such work it becomes
 * visac-plugins: the same program with these functions in it, linked as others are, with the same arguments. It is an exec, so that
 * streams, signals, what a shell waits for and the exit status are those of one process. */
#ifndef VISA_TOOLS_LIBRARIES_H
#define VISA_TOOLS_LIBRARIES_H

#include "codegen/container.h"
#include "tools/ranks.h"

struct arguments;

typedef struct library_work {
    /* Checks one kernel, or all of the binary; the exit status. */
    int (*check)(struct arguments *a, const binary *b, const unsigned char *bytes, size_t size, arena *memory, diag_list *diags);
    /* llvm, bc, asm, obj, header. False: diagnosed. */
    bool (*emit)(const struct arguments *a, const binary *b, arena *memory, diag_list *diags, const unsigned char **data, size_t *size);
    bool (*ranks_begin)(ranks *r, diag_list *diags);
    int (*tune)(struct arguments *a, arena *memory, diag_list *diags); /* of stream programs; the exit status */
} library_work;

/* NULL: diagnosed. Where another program does it, there is no return. */
const library_work *library_work_begin(char **argv, diag_list *diags);

#endif
