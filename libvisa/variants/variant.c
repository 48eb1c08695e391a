#include "libvisa/variants/variant.h"

#include "support/budget.h"

uint64_t variant_steps(const variant_options *o)
{
    return o->compile.max_steps ? o->compile.max_steps : COMPILE_STEPS_MAX;
}

void variant_spend(uint64_t *left, const visa_compilation *c)
{
    if (*left != UINT64_MAX)
        *left -= visa_steps(c) < *left ? visa_steps(c) : *left - 1;
}
