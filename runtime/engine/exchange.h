/* The packets of a cluster's slices, for a stage that sends them to others.
 *
 * The one idea: a chain runs slice by slice, and a slice that takes packets of others must find them; so what all slices of a cluster put
 * into the network is read first, and stands there while their chains run. Nothing that they write is read by another one then. */
#ifndef VISA_RUNTIME_ENGINE_EXCHANGE_H
#define VISA_RUNTIME_ENGINE_EXCHANGE_H

#include <pthread.h>

#include "runtime/machine/chain.h"

enum { EXCHANGE_MOST_SLICES = 256 };

typedef struct exchange {
    unsigned char *slices[EXCHANGE_MOST_SLICES]; /* each one's packets, one after the other; NULL: it has none */
    int64_t filled[EXCHANGE_MOST_SLICES];        /* bytes, while they are pushed */
    /* What leaves the network, for all slices that get the same; by the number that the stage gives to it. */
    unsigned char *streams[EXCHANGE_MOST_SLICES];
    int64_t stream_bytes; /* of all of them */
    pthread_mutex_t lock; /* of the streams */
} exchange;

/* Does the chain have a stage that takes packets of other slices? Of the source of the chain (the Switch Engine), */
bool exchange_is_gathered(const chain *c);
/* or of any kind. */
bool exchange_is_needed(const chain *c);
/* The number of the stage that reduces over slices; 0: there is none. */
unsigned exchange_recorder(const chain *c);
/* Reads what the source of the chain gives in the active slices of the cluster whose first unit that is. False with the fault; what
 * was read is freed by exchange_free in any case. */
bool exchange_gather(exchange *x, const chain *c, int64_t first_unit, fault *f);
/* Stream `number`, which make(user, to) writes where nobody has asked for it before. NULL with the fault. It stands until exchange_free. */
const unsigned char *exchange_stream(exchange *x, int64_t number, int64_t bytes, void (*make)(void *user, unsigned char *to), void *user,
                                     const command *at, fault *f);
void exchange_free(exchange *x);

#endif
