#include "runtime/tensor/mix.h"

void mix_words_avx2(const mix_form *form, uint64_t *words, int64_t count)
{
    mix_words_here(form, words, count);
}

void mix_counted_avx2(const mix_form *form, uint64_t first, uint64_t step, uint64_t *words, int64_t count)
{
    mix_counted_here(form, first, step, words, count);
}
