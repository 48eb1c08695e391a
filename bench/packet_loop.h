/* A shape's loop written by hand for a level of this processor: what the machine's speed is measured against.
 *
 * The one idea: the same multiplications of as many packets, which lie in as much memory, with weights that stand ready as the loop wants
 * them. Where commands, slices, tables of accesses and stores with their conversions come from is not in it. */
#ifndef VISA_BENCH_PACKET_LOOP_H
#define VISA_BENCH_PACKET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/machine/cpu.h"

typedef struct packet_shape {
    bool is_float; /* bf16, in the order of the machine's tree; else i8 */
    int64_t slices, rows, tiles, packets, vectors;
} packet_shape;

/* Everything that the loop reads and writes; NULL: there is no such loop, or no memory. */
typedef struct packet_loop packet_loop;
packet_loop *packet_loop_new(cpu_level level, const packet_shape *s);
/* All multiplications once. */
void packet_loop_run(const packet_loop *l);
void packet_loop_free(packet_loop *l);

#endif
