/* Whole files in, `-` for standard input; refusals of the system become diagnostics. What goes out is support/output.h. */
#ifndef VISA_SUPPORT_FILE_H
#define VISA_SUPPORT_FILE_H

#include "support/arena.h"
#include "support/diag.h"

/* The bytes of a file (a pipe or `-` as well), malloc'd: the caller frees. NULL with E-FILE-READ, also for more than 1 GiB. */
unsigned char *file_read_all(const char *path, size_t *size, diag_list *diags);

#endif
