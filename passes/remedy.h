/* What would be accepted instead of a refused walk.
 *
 * The one idea: a help line that names a mapping must have tried it. The few changes that a reader would try first are made one by
 * one, and the first that the stage itself accepts is the remedy. */
#ifndef VISA_PASSES_REMEDY_H
#define VISA_PASSES_REMEDY_H

#include "passes/pass.h"

/* A walk of `buffer` in the order [time, packet]; `beside` as in sequence_derive_stream. */
typedef struct walk_request {
    const mapping *buffer, *beside, *time, *packet;
    bool stream_given; /* by earlier stages: only another buffer is a remedy */
} walk_request;

/* Would the stage take this walk? Adds no diagnostic. */
typedef bool walk_judge(pass_context *p, const op *o, const walk_request *walk);

/* The judge where a table has to hold the walk and nothing else is asked; `o` is not looked at. */
bool walk_fits(pass_context *p, const op *o, const walk_request *walk);

/* An accepted walk near the refused one of `seq`, for a help line; NULL: none of the simple ones is accepted. */
const char *remedy_find(pass_context *p, const op *o, const sequence *seq, const walk_request *walk, walk_judge *accepts);

#endif
