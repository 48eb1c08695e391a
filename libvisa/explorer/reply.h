/* What the page asks, and what it gets: JSON in, JSON out.
 *
 * The one idea: an answer is a function of the question's bytes and the limits alone. Each question brings the whole source, nothing is
 * remembered between two of them, no file is read, and what an answer may cost is bounded by the account of its compilation
 * (support/budget.h), whatever the source is. */
#ifndef VISA_LIBVISA_EXPLORER_REPLY_H
#define VISA_LIBVISA_EXPLORER_REPLY_H

#include <stddef.h>
#include <stdint.h>

/* As in visa_options; 0 is the default there, UINT64_MAX any number. */
typedef struct reply_limits {
    uint64_t max_steps, max_bytes, max_milliseconds;
} reply_limits;

typedef struct reply {
    int status; /* of HTTP: 200, 400 where the question is none, 404 where nobody answers such a one, 500 without memory */
    char *text; /* JSON, malloc'd; NULL: no memory */
    size_t bytes;
} reply;

/* `path` is "/api/compile", ..; reply.c has the rows. `body` has no NUL after it. */
reply reply_make(const char *path, const char *body, size_t bytes, const reply_limits *limits);

#endif
