#include "runtime/machine/cpu.h"

#if defined(__x86_64__)
#include <sys/platform/x86.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "support/choice.h"

static const char *const names[CPU_LEVELS] = {"best", "steps", "plain", "avx2", "avx512", "dot", "tiles"};

const char *cpu_level_name(cpu_level level)
{
    return names[level];
}

bool cpu_level_named(const char *name, cpu_level *level)
{
    size_t i = choice_index(names, CPU_LEVELS, name);
    if (i < CPU_LEVELS)
        *level = (cpu_level)i;
    return i < CPU_LEVELS;
}

#if defined(__x86_64__)
/* What the dynamic linker found out already. The compiler's own test asks the processor again at the start of every program, also of those
 * that never run a kernel; in a virtual machine each question is a trap. */
static bool is_active(unsigned feature)
{
    /* CPU_FEATURE_ACTIVE shifts an int into its sign for bit 31, which the sanitizers end a program for. */
    enum { REGISTER_BITS = 32, LEAF_BITS = 4 * REGISTER_BITS };
    const struct cpuid_feature *leaf = __x86_get_cpuid_feature_leaf(feature / LEAF_BITS);
    return leaf->active_array[feature % LEAF_BITS / REGISTER_BITS] >> feature % REGISTER_BITS & 1;
}

static bool has_avx512(void)
{
    return is_active(x86_cpu_AVX512F) && is_active(x86_cpu_AVX512BW) && is_active(x86_cpu_AVX512DQ) && is_active(x86_cpu_AVX512VL);
}

/* Linux gives a process the tiles' registers when it asks for them. */
static bool has_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return is_active(x86_cpu_AMX_TILE) && is_active(x86_cpu_AMX_INT8) &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

bool cpu_has(cpu_level level, bool is_float)
{
    switch (level) {
    case CPU_AVX2: return is_active(x86_cpu_AVX2) && is_active(x86_cpu_FMA);
    case CPU_AVX512: return has_avx512();
    case CPU_DOT: return has_avx512() && is_active(is_float ? x86_cpu_AVX512_BF16 : x86_cpu_AVX512_VNNI);
    case CPU_TILES: return !is_float && cpu_has(CPU_DOT, false) && has_tiles();
    default: return true;
    }
}

bool cpu_has_wide_products(void)
{
    return is_active(x86_cpu_AVX512F) && is_active(x86_cpu_AVX512_IFMA);
}
#else
bool cpu_has(cpu_level level, bool is_float)
{
    (void)is_float;
    return level <= CPU_PLAIN;
}

bool cpu_has_wide_products(void)
{
    return false;
}
#endif
