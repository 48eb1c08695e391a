/* The einsum section: what a kernel computes (target/einsum.h), in words.
 *
 * The one idea: the section is written and read in one place, and every rule of target/einsum.h is checked
 * where its word is read. */
#ifndef VISA_CODEGEN_EINSUM_H
#define VISA_CODEGEN_EINSUM_H

#include "support/diag.h"
#include "target/einsum.h"

/* The section's bytes (a whole number of 64-bit words), in the arena. */
bool einsum_encode(const einsum *e, arena *a, uint64_t **words, size_t *count);
/* Decodes and checks everything: numbers in range, sizes positive, products below 2^62, digits inside their
 * axes, expressions of one result, sources assigned before use, port numbers below port_count. The axis table
 * is the kernel's. */
bool einsum_decode(const uint64_t *words, size_t word_count, const layout_axis *axes, uint32_t axis_count, uint32_t port_count,
                   const char *section, arena *a, diag_list *diags, einsum *out);

#endif
