#include "runtime/machine/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <pthread.h>
#include <stdint.h>
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
/* A set of instructions is there when the processor says so and the system keeps the registers that it uses. */
typedef struct feature {
    unsigned leaf; /* of LEAVES */
    enum { EAX, EBX, ECX, EDX } in;
    unsigned bit;
    uint64_t kept; /* bits of XCR0 */
} feature;

enum { KEPT_YMM = 0x6, KEPT_ZMM = 0xe6, KEPT_TILES = 0x60000 };
enum { LEAF_1, LEAF_7, LEAF_7_1, LEAVES };

/* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID; volume 1, XCR0. */
static const feature fma_set = {LEAF_1, ECX, 12, KEPT_YMM}, avx2_set = {LEAF_7, EBX, 5, KEPT_YMM},
                     avx512f_set = {LEAF_7, EBX, 16, KEPT_ZMM}, avx512dq_set = {LEAF_7, EBX, 17, KEPT_ZMM},
                     avx512ifma_set = {LEAF_7, EBX, 21, KEPT_ZMM}, avx512bw_set = {LEAF_7, EBX, 30, KEPT_ZMM},
                     avx512vl_set = {LEAF_7, EBX, 31, KEPT_ZMM}, avx512vnni_set = {LEAF_7, ECX, 11, KEPT_ZMM},
                     avx512bf16_set = {LEAF_7_1, EAX, 5, KEPT_ZMM}, amx_tile_set = {LEAF_7, EDX, 24, KEPT_TILES},
                     amx_int8_set = {LEAF_7, EDX, 25, KEPT_TILES};

static struct {
    unsigned in[LEAVES][4];
    uint64_t kept;
} answers;

/* Asked when a kernel is run, and not at the start of every program as the compiler's own test does: in a virtual machine each question is
 * a trap. */
static void ask(void)
{
    static const unsigned leaves[LEAVES][2] = {{1, 0}, {7, 0}, {7, 1}};
    for (unsigned i = 0; i < LEAVES; i++) {
        unsigned *in = answers.in[i];
        (void)__get_cpuid_count(leaves[i][0], leaves[i][1], &in[EAX], &in[EBX], &in[ECX], &in[EDX]); /* zeros where there is none */
    }
    if (answers.in[LEAF_1][ECX] & bit_OSXSAVE) {
        unsigned low, high;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        answers.kept = (uint64_t)high << 32 | low;
    }
}

static bool is_active(feature f)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask);
    return (answers.in[f.leaf][f.in] >> f.bit & 1) && (answers.kept & f.kept) == f.kept;
}

static bool has_avx512(void)
{
    return is_active(avx512f_set) && is_active(avx512bw_set) && is_active(avx512dq_set) && is_active(avx512vl_set);
}

/* Linux gives a process the tiles' registers when it asks for them. */
static bool has_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return is_active(amx_tile_set) && is_active(amx_int8_set) && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

bool cpu_has(cpu_level level, bool is_float)
{
    switch (level) {
    case CPU_AVX2: return is_active(avx2_set) && is_active(fma_set);
    case CPU_AVX512: return has_avx512();
    case CPU_DOT: return has_avx512() && is_active(is_float ? avx512bf16_set : avx512vnni_set);
    case CPU_TILES: return !is_float && cpu_has(CPU_DOT, false) && has_tiles();
    default: return true;
    }
}

bool cpu_has_wide_products(void)
{
    return is_active(avx512f_set) && is_active(avx512ifma_set);
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
