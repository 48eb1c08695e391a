/* A packet loop written by hand for this processor: what the machine's speed is measured against. */
#ifndef VISA_BENCH_PACKET_LOOP_H
#define VISA_BENCH_PACKET_LOOP_H

#include <stdbool.h>

/* Packets against the weights of eight Rows that stay in registers' reach; bf16 keeps the order of the tree.
 * Returns the multiplications done; 0: there is no loop for this processor. */
double packet_loop(bool is_float);

#endif
