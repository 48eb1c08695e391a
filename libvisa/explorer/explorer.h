/* visa-explorer: a page of the browser over the library, given out on this machine only.
 *
 * The one idea: a request is checked before it is read (who asks, how large it is), and its answer is a function of its bytes (reply.h) or
 * a file that is compiled in (asset.h). Each connection has a thread, and a few answers are made at a time. */
#ifndef VISA_LIBVISA_EXPLORER_EXPLORER_H
#define VISA_LIBVISA_EXPLORER_EXPLORER_H

#include "libvisa/explorer/reply.h"
#include "support/diag.h"

typedef struct explorer_settings {
    uint64_t port; /* of 127.0.0.1; 0: any that is free */
    reply_limits limits;
} explorer_settings;

typedef struct explorer explorer;

/* Serves in threads of its own from here on. NULL: diagnosed. */
explorer *explorer_begin(const explorer_settings *settings, diag_list *diags);
unsigned explorer_port(const explorer *e);
/* Answers that are being made are finished first. */
void explorer_end(explorer *e);

#endif
