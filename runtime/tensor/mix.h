/* Words that count on, as random numbers.
 *
 * The one idea: the last step of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014) takes any word to
 * another one, none to the same, so that a seeded sequence needs no state but the number of its element, and many are made side by side. */
#ifndef VISA_RUNTIME_TENSOR_MIX_H
#define VISA_RUNTIME_TENSOR_MIX_H

#include <stdint.h>

/* By which the sequence counts. */
#define MIX_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mix_word(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* What is done around it: mix_word((x + add) ^ key) >> shift, and 0 for what comes out as `never`. */
typedef struct mix_form {
    uint64_t add, key;
    unsigned shift;
    uint64_t never;
} mix_form;

/* Each of the words. */
void mix_words(const mix_form *form, uint64_t *words, int64_t count);
/* Each of `first`, first + step, .. */
void mix_counted(const mix_form *form, uint64_t first, uint64_t step, uint64_t *words, int64_t count);

/* The loops, compiled for a processor's level. */
void mix_words_avx2(const mix_form *form, uint64_t *words, int64_t count);
void mix_counted_avx2(const mix_form *form, uint64_t first, uint64_t step, uint64_t *words, int64_t count);

static inline uint64_t mix_one(const mix_form *f, uint64_t word)
{
    uint64_t x = mix_word((word + f->add) ^ f->key) >> f->shift;
    return x == f->never ? 0 : x;
}

static inline void mix_words_here(const mix_form *form, uint64_t *words, int64_t count)
{
    const mix_form f = *form;
    for (int64_t i = 0; i < count; i++)
        words[i] = mix_one(&f, words[i]);
}

static inline void mix_counted_here(const mix_form *form, uint64_t first, uint64_t step, uint64_t *words, int64_t count)
{
    const mix_form f = *form;
    for (int64_t i = 0; i < count; i++, first += step)
        words[i] = mix_one(&f, first);
}

#endif
