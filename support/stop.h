/* Files of a program that is stopped from outside.
 *
 * The one idea: a file that is not complete stands in a list that a signal handler can walk, so that a program that is told to end removes
 * it, says so and ends by that signal. The list is one for the process, as signals are. A reader that has closed its end, a limit of file
 * sizes and a closed standard stream are no ends: they are faults of the write that meets them. */
#ifndef VISA_SUPPORT_STOP_H
#define VISA_SUPPORT_STOP_H

#include <stdbool.h>
#include <sys/types.h>

/* The first thing that a program does. From here on descriptors 0 to 2 are never those of a file that it opens. */
void stop_begin(const char *program);

/* A file under a name of its own, until it is complete. Lives until unfinished_remove or unfinished_done. */
typedef struct unfinished {
    int folder;    /* descriptor */
    char name[32]; /* ".visa-0123456789abcdef.tmp" */
    struct unfinished *next;
} unfinished;

/* Makes an empty file of a name that nothing has. Its descriptor, or -1 with errno set. */
int unfinished_create(unfinished *u, int folder, mode_t mode);
/* 0, or the errno with which the file stays. */
int unfinished_remove(unfinished *u);

/* Between these two no signal stops the program; it does after them. */
void stop_hold(void);
void stop_release(void);
/* Held: the name is the file's no more, or it is to stay. */
void unfinished_done(unfinished *u);
/* Held: from here on outputs are in their places. */
void stop_outputs_written(void);

/* The files of a program that ends without its outputs. */
void unfinished_remove_all(void);

#endif
