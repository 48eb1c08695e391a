/* Who may ask: the page that this server gave out, and programs of this machine.
 *
 * The one idea: a page of somebody else's that a browser shows can send requests to 127.0.0.1, too, under its own name or, with a DNS entry
 * that changes, under one that it owns. So the name that was asked for is one of ours, with our port, and where a browser says which page
 * asks, that is ours. */
#ifndef VISA_LIBVISA_EXPLORER_ORIGIN_H
#define VISA_LIBVISA_EXPLORER_ORIGIN_H

#include <stdbool.h>

/* "127.0.0.1:PORT" or "localhost:PORT", case ignored; the port may be left away where it is 80. */
bool origin_host_is_ours(const char *host, unsigned port);
/* NULL (not given), or "http://" and such a host. */
bool origin_page_is_ours(const char *page, unsigned port);

#endif
