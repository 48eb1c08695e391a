/* A mapping as the binary carries it: a postfix program of the m![] operators.
 *
 * The one idea: this is the *definition* of a mapping (reference "Mapping expressions, Semantics"), with
 * `layout_map` written straight from it. It shares nothing with ir/mapping, so that what the machine packs
 * and unpacks is an independent check of what the compiler derived. */
#ifndef VISA_CODEGEN_LAYOUT_H
#define VISA_CODEGEN_LAYOUT_H

#include "support/arena.h"
#include "support/diag.h"
#include "target/einsum.h"

/* Word: operator in bits 0..7, operand in bits 8..63 (so that an operand is below 2^56; zero for a pair). */
typedef enum layout_op {
    LAYOUT_AXIS = 1,      /* push axis number `operand` of the kernel's axis table */
    LAYOUT_BROADCAST = 2, /* push `operand` positions that all hold the empty index; 1 is the identity */
    LAYOUT_STRIDE = 3,    /* E / n */
    LAYOUT_MODULO = 4,    /* E % n */
    LAYOUT_RESIZE = 5,    /* E = n */
    LAYOUT_PAD = 6,       /* E # n */
    LAYOUT_PAIR = 7,      /* outer was pushed first, inner second */
} layout_op;

typedef struct layout {
    const uint64_t *words;
    size_t count;
} layout;

#define LAYOUT_WORD(op, operand) ((uint64_t)(op) | (uint64_t)(operand) << 8)

/* A program has at most so many words, and never more expressions at once on its stack. */
enum { LAYOUT_MAX_WORDS = 1024, LAYOUT_MAX_DEPTH = 256 };

/* Checks a program from a file: stack discipline, axis numbers, the static conditions of every operator,
 * sizes below 2^62. False with a diagnostic that starts with the place ("section .visa.ports.k offset 0x40"). */
bool layout_check(layout l, const layout_axis *axes, size_t axis_count, const char *section, size_t offset_bytes, diag_list *diags);

/* Positions of a checked layout. */
int64_t layout_size(layout l, const layout_axis *axes);

/* The tensor index at position `i`: adds every axis coordinate to coords[axis]; false when the position is
 * dead (padding, out of range, or an axis reached its size). coords must be zeroed by the caller and is
 * unspecified after a dead position. */
bool layout_map(layout l, const layout_axis *axes, int64_t i, int64_t *coords);

/* The program as an m![] expression without the m![]: "M, K / 16". */
const char *layout_text(layout l, const layout_axis *axes, arena *a);

#endif
