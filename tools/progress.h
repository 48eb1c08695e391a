/* A line on the terminal that says how far a long run is.
 *
 * The one idea: nothing is shown in the first second, nothing where standard error is no terminal, and the line
 * is cleared when the run ends. */
#ifndef VISA_TOOLS_PROGRESS_H
#define VISA_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct progress {
    const char *name;
    struct timespec begun;
    bool shown;  /* standard error is a terminal */
    int percent; /* on the line; -1: there is none */
} progress;

progress progress_begin(const char *name);
/* `line` is a progress; `done` of `all` things are done, of one at least. */
void progress_show(void *line, int64_t done, int64_t all);
void progress_end(progress *p);

#endif
