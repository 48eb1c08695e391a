/* Whole files in and out, `-` for the standard streams; refusals of the system become diagnostics. */
#ifndef VISA_SUPPORT_FILE_H
#define VISA_SUPPORT_FILE_H

#include "support/arena.h"
#include "support/diag.h"

/* The bytes of a file (a pipe or `-` as well), malloc'd: the caller frees. NULL with E-FILE-READ. */
unsigned char *file_read_all(const char *path, size_t *size, diag_list *diags);

/* Are both names one regular file? */
bool file_is_same(const char *a, const char *b);

/* Replaces a file. A regular file appears whole or not at all: it is written beside its place and renamed, where its directory
 * takes another file. */
bool file_write_all(const char *path, const void *bytes, size_t size, diag_list *diags);

#endif
