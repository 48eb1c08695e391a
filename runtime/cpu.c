#include "runtime/cpu.h"

#include <string.h>
#if defined(__x86_64__)
#include <sys/platform/x86.h>
#endif

static const char *const names[CPU_LEVELS] = {"best", "steps", "plain", "avx2", "avx512", "dot"};

const char *cpu_level_name(cpu_level level)
{
    return names[level];
}

bool cpu_level_named(const char *name, cpu_level *level)
{
    for (int i = 0; i < CPU_LEVELS; i++)
        if (strcmp(names[i], name) == 0) {
            *level = (cpu_level)i;
            return true;
        }
    return false;
}

#if defined(__x86_64__)
/* What the dynamic linker found out already. The compiler's own test asks the processor again at the start of every program, also of those
 * that never run a kernel; in a virtual machine each question is a trap. */
static bool has_avx512(void)
{
    return CPU_FEATURE_ACTIVE(AVX512F) && CPU_FEATURE_ACTIVE(AVX512BW) &&
           CPU_FEATURE_ACTIVE(AVX512DQ) && CPU_FEATURE_ACTIVE(AVX512VL);
}

bool cpu_has(cpu_level level, bool is_float)
{
    switch (level) {
    case CPU_AVX2:
        return CPU_FEATURE_ACTIVE(AVX2);
    case CPU_AVX512:
        return has_avx512();
    case CPU_DOT:
        return has_avx512() && (is_float ? CPU_FEATURE_ACTIVE(AVX512_BF16) : CPU_FEATURE_ACTIVE(AVX512_VNNI));
    default:
        return true;
    }
}
#else
bool cpu_has(cpu_level level, bool is_float)
{
    (void)is_float;
    return level <= CPU_PLAIN;
}
#endif
