/* Generate mode over a field: the number that each code of the word stands for. */
#include "runtime/engine/generate.h"

#include "runtime/field/engine.h"
#include "runtime/field/function.h"
#include "runtime/tensor/numeric.h"

static void read_generate(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const generate *k = r->stage->plan;
    const dtype_row *row = dtype_row_of(k->dtype);
    unsigned char word[] = {(unsigned char)k->word, (unsigned char)(k->word >> 8), (unsigned char)(k->word >> 16),
                            (unsigned char)(k->word >> 24)};
    for (int64_t i = 0; i < count; i++) {
        double number = numeric_to_double(k->dtype, word, (first + i) % (32 / row->bits));
        bool is_float = row->kind == DTYPE_KIND_FLOAT;
        uint32_t bits = is_float ? f32_bits((float)number) : (uint32_t)(int64_t)number;
        out[i] = field_constant(r->run->machine->seed, is_float ? DTYPE_F32 : DTYPE_I32, bits);
    }
}

const field_stage field_generate = {.read = read_generate};
