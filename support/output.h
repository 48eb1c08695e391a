/* What a run writes, and what it must not hurt by that.
 *
 * The one idea: a run says which files it reads and which it will write before it writes any; they are compared by what they are (device
 * and inode, of a file that is not there yet its folder's and its name), and an output that is an input, or another output, is refused.
 * Then each output grows under a name of its own next to its place, and only when all are complete and on the disk do they take their
 * places. Whatever happens before that, a full disk, a signal or kill -9, leaves what was there.
 *
 * A file that is replaced keeps its mode, its owner and its attributes; a link stays, and what it points at is replaced. Pipes, terminals
 * and descriptors (`-`, /dev/stdout, /dev/fd/3) are written as they are: what went into them cannot be taken back. Every writer of a file
 * in the tree goes through here. */
#ifndef VISA_SUPPORT_OUTPUT_H
#define VISA_SUPPORT_OUTPUT_H

#include "support/arena.h"
#include "support/diag.h"

typedef struct output_set output_set;
typedef struct output output;

/* The arena outlives the set, and so do the texts that it is given. */
output_set *output_set_new(arena *a, diag_list *diags);
/* Gives up what is not committed, and closes. */
void output_set_free(output_set *s);

/* A file is read; `-` is standard input. False: E-OUTPUT-INPUT, or E-INPUT-TWICE for a pipe. A name that leads nowhere is left to whoever
 * reads it. */
bool output_set_reads(output_set *s, const char *path);
/* A file will be written; `-` is standard output. NULL: E-OUTPUT-INPUT, -TWICE, -READ-ONLY or E-FILE-WRITE; nothing was touched. */
output *output_declare(output_set *s, const char *path);
/* Is it written as it comes, without a place to take? Such outputs are put after the others, for they cannot be taken back. */
bool output_is_stream(const output *o);

/* Appends; 0 bytes make an empty file. What is declared and never put is not touched. False: E-FILE-WRITE, reported once. */
bool output_put(output *o, const void *bytes, size_t size);
/* Ends the run's writing, and what was printed: all outputs take their places, or none. False: E-FILE-WRITE. */
bool output_set_commit(output_set *s);

/* A set of one. */
bool output_write(const char *path, const void *bytes, size_t size, diag_list *diags);
/* All bytes to a descriptor; 0 or the errno. */
int output_write_descriptor(int descriptor, const void *bytes, size_t size);

#endif
