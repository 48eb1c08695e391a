/* Residues of 2^61 - 1 for the reference's side of a proof: not the machine's (value.h), so that an error in one is seen. */
#ifndef VISA_RUNTIME_FIELD_RESIDUE_H
#define VISA_RUNTIME_FIELD_RESIDUE_H

#include <stdint.h>

enum { RESIDUE_PRODUCTS = 32 /* of residues, which may be added before they are reduced */ };

/* 2^61 is 1: three parts of 61, 61 and 6 bits are added. */
static inline uint64_t residue(unsigned __int128 x)
{
    const uint64_t prime = (UINT64_C(1) << 61) - 1;
    uint64_t sum = ((uint64_t)x & prime) + ((uint64_t)(x >> 61) & prime) + (uint64_t)(x >> 122);
    sum = (sum & prime) + (sum >> 61);
    return sum >= prime ? sum - prime : sum;
}

static inline uint64_t residue_product(uint64_t a, uint64_t b)
{
    const uint64_t prime = (UINT64_C(1) << 61) - 1;
    unsigned __int128 x = (unsigned __int128)a * b; /* of residues: two parts, whose sum is below twice the prime */
    uint64_t sum = ((uint64_t)x & prime) + (uint64_t)(x >> 61);
    return sum >= prime ? sum - prime : sum;
}

#endif
