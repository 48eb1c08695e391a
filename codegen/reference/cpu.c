#include "codegen/reference/cpu.h"

#include <string.h>
#include <unistd.h>

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#endif

/* Later entries win, as in LLVM. */
static bool has_feature(const char *features, const char *name)
{
    size_t bytes = strlen(name);
    bool has = false;
    for (const char *at = strstr(features, name); at; at = strstr(at + 1, name))
        if (at > features && (at[bytes] == ',' || at[bytes] == '\0')) {
            if (at[-1] == '+')
                has = true;
            else if (at[-1] == '-')
                has = false;
        }
    return has;
}

bool cpu_tiles_permitted(void)
{
#if defined(__linux__) && defined(__x86_64__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

/* Bytes of a data cache: this machine's where it is reported, else what most have. */
static int64_t cache_bytes(bool here, int name, int64_t usual)
{
    long bytes = here ? sysconf(name) : 0;
    return bytes > 0 ? bytes : usual;
}

plan_machine cpu_machine(const char *triple, const char *features, bool here)
{
    plan_machine m = {.lanes = 4, .registers = 32, .fused = true};
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    m.l1_bytes = cache_bytes(here, _SC_LEVEL1_DCACHE_SIZE, 32 << 10);
    m.l2_bytes = cache_bytes(here, _SC_LEVEL2_CACHE_SIZE, 512 << 10);
#else
    m.l1_bytes = cache_bytes(false, 0, 32 << 10);
    m.l2_bytes = cache_bytes(false, 0, 512 << 10);
#endif
    if (strncmp(triple, "x86_64", 6) != 0) {
        m.fused = strncmp(triple, "aarch64", 7) == 0 || strncmp(triple, "arm64", 5) == 0;
        m.registers = m.fused ? 32 : 16;
        return m;
    }
    bool wide = has_feature(features, "avx512f") && has_feature(features, "avx512bw") && has_feature(features, "avx512vl");
    bool tiles = wide && has_feature(features, "amx-tile") && here && cpu_tiles_permitted();
    m.lanes = wide ? 16 : has_feature(features, "avx2") ? 8 : 4;
    m.registers = wide ? 32 : 16;
    m.masks = wide;
    m.fused = has_feature(features, "fma");
    m.i16_pairs = true; /* SSE2 is part of x86-64 */
    m.i8_dot = wide && has_feature(features, "avx512vnni");
    m.bf16_dot = wide && has_feature(features, "avx512bf16");
    m.i8_tiles = tiles && has_feature(features, "amx-int8");
    m.bf16_tiles = tiles && has_feature(features, "amx-bf16");
    return m;
}

static const struct {
    const char *name, *features;
} rows[] = {
#define CPU(name, features) {name, features},
#include "codegen/reference/cpu.def"
#undef CPU
};

const char *cpu_features_of(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].features;
    return NULL;
}

const char *cpu_name(size_t number)
{
    return number < sizeof rows / sizeof *rows ? rows[number].name : NULL;
}

bool cpu_has_all(const char *features, const char *wanted)
{
    for (const char *at = wanted; *at;) {
        size_t bytes = strcspn(at, ",");
        char name[32] = "";
        if (bytes > sizeof name)
            return false;
        memcpy(name, at + 1, bytes - 1); /* after the + */
        if (!has_feature(features, name))
            return false;
        at += bytes + (at[bytes] == ',');
    }
    return true;
}
