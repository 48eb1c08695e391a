#include "runtime/tensor/mix.h"

#include "runtime/machine/cpu.h"

void mix_words(const mix_form *form, uint64_t *words, int64_t count)
{
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2, false)) {
        mix_words_avx2(form, words, count);
        return;
    }
#endif
    mix_words_here(form, words, count);
}

void mix_counted(const mix_form *form, uint64_t first, uint64_t step, uint64_t *words, int64_t count)
{
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2, false)) {
        mix_counted_avx2(form, first, step, words, count);
        return;
    }
#endif
    mix_counted_here(form, first, step, words, count);
}
