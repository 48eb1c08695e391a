#include "runtime/engine/vector_set.h"

const vector_set *vector_set_of(cpu_level most)
{
    static const vector_set *const sets[] = {
#if defined(__x86_64__)
        &vector_avx512,
        &vector_avx2,
#endif
        &vector_plain,
    };
    size_t n = 0;
    while (sets[n] != &vector_plain && ((most != CPU_BEST && sets[n]->level > most) || !cpu_has(sets[n]->level, true)))
        n++;
    return sets[n];
}

vector_function vector_function_of(const vector_set *set, unsigned code)
{
    return code < VECTOR_CODES ? set->functions[code] : NULL;
}

void vector_compare_all(const vector_set *set, stream_word *tags, unsigned bit, const vector_comparison *c, dtype type,
                        const stream_word *words, int64_t count)
{
    set->compare[c->compare](tags, bit, type == DTYPE_F32, words, c->with, count);
}

void vector_select(const vector_set *set, stream_word *words, const stream_word *others, const stream_word *tag_of, unsigned tags,
                   int64_t count)
{
    set->select(words, others, tag_of, tags, count);
}
