/* What a comparison found of one output, for programs that read it; the lines for people say the same. */
#ifndef VISA_RUNTIME_TENSOR_FINDING_H
#define VISA_RUNTIME_TENSOR_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct finding {
    const char *output;
    bool agrees;
    int64_t compared;  /* values that could have differed */
    int64_t differing; /* of these; -1: nobody counted on after the first */
    int64_t undecided; /* further values, of which a comparison says nothing */
    double worst;      /* part of what rounding allows, of the values that agree; -1: equal values were asked for */
} finding;

typedef struct finding_list {
    finding *items;
    size_t count, capacity;
} finding_list;

#endif
