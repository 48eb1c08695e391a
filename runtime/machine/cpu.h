/* What this processor can do, as far as the machine's loops differ by it.
 *
 * The one idea: a level names a set of instructions, each level holds the ones below it, and every level gives
 * the same bits; so a test, or a user in doubt, may ask for a lower one. */
#ifndef VISA_RUNTIME_MACHINE_CPU_H
#define VISA_RUNTIME_MACHINE_CPU_H

#include <stdbool.h>

typedef enum cpu_level {
    CPU_BEST,   /* the highest that the processor has */
    CPU_STEPS,  /* no blocks at all: a contraction goes step by step */
    CPU_PLAIN,  /* blocks in C for any processor */
    CPU_AVX2,   /* x86-64 with AVX2 */
    CPU_AVX512, /* F, BW, DQ and VL */
    CPU_DOT,    /* AVX-512 with dot products: VNNI for integers, BF16 for floats */
    CPU_TILES,  /* and tiles, AMX-INT8, for integers */
    CPU_LEVELS,
} cpu_level;

const char *cpu_level_name(cpu_level level);
/* The level that is called `name`; false: none is. */
bool cpu_level_named(const char *name, cpu_level *level);

/* Has this processor the level's instructions, for integer or for float contractions? */
bool cpu_has(cpu_level level, bool is_float);
/* Products of 52 bits, eight at a time (AVX-512 IFMA)? */
bool cpu_has_wide_products(void);

#endif
