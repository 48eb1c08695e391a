#include "tools/progress.h"

#include <stdio.h>
#include <unistd.h>

progress progress_begin(const char *name)
{
    progress p = {.name = name, .shown = isatty(STDERR_FILENO) == 1, .percent = -1};
    clock_gettime(CLOCK_MONOTONIC, &p.begun);
    return p;
}

void progress_show(void *line, int64_t done, int64_t all)
{
    progress *p = line;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double part = (double)done / (double)all;
    int percent = (int)(part * 100);
    double seconds = (double)(now.tv_sec - p->begun.tv_sec) + (double)(now.tv_nsec - p->begun.tv_nsec) * 1e-9;
    if (seconds < 1 || percent == p->percent)
        return;
    p->percent = percent;
    fprintf(stderr, "\r\033[K%s: %d %%", p->name, percent);
    if (part > 0.01)
        fprintf(stderr, ", %.0f seconds left", seconds / part - seconds);
    fflush(stderr);
}

void progress_end(progress *p)
{
    if (p->percent >= 0)
        fputs("\r\033[K", stderr);
    p->percent = -1;
}
