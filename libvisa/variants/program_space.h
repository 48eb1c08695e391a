/* What of a stream program can be chosen: which constants of its file, and which values they may take.
 *
 * The one idea: a constant is free if another value leaves what stands around the program as it is: every tensor with as many elements,
 * every stream of its edge with its type and shape, and the machine. That is read from the binary of the program with that value. A
 * constant that stands in nothing but conditions chooses between programs, and is left alone. */
#ifndef VISA_LIBVISA_VARIANTS_PROGRAM_SPACE_H
#define VISA_LIBVISA_VARIANTS_PROGRAM_SPACE_H

#include "libvisa/variants/variant.h"

/* A constant of the file whose value is a number. */
typedef struct program_constant {
    const char *name;
    int64_t value;
    bool chooses; /* it stands in conditions of `if` alone */
} program_constant;

size_t program_constants(const variant_source *s, arena *a, program_constant **out);

/* Values that constant number `which` may be tried with, ascending: 0, powers of two up to the largest constant, and what divides another
 * one. */
size_t program_candidates(const program_constant *all, size_t count, size_t which, arena *a, int64_t **values);

/* A text that two programs share if what stands around them is the same. */
const char *program_surroundings(const step_program *p, arena *a);

/* Does the text hold stream programs, and no question to `visac tune`? Comments do not count. */
bool program_is_in(const char *text, size_t bytes);

#endif
