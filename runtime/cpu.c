#include "runtime/cpu.h"

#include <string.h>

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
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool cpu_has(cpu_level level, bool is_float)
{
    switch (level) {
    case CPU_AVX2:
        return __builtin_cpu_supports("avx2");
    case CPU_AVX512:
        return has_avx512();
    case CPU_DOT:
        return has_avx512() && (is_float ? __builtin_cpu_supports("avx512bf16") : __builtin_cpu_supports("avx512vnni"));
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
