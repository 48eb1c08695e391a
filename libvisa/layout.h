/* A source that the library wrote, in the canonical layout of sources. */
#ifndef VISA_LIBVISA_LAYOUT_H
#define VISA_LIBVISA_LAYOUT_H

#include "support/strbuf.h"

/* False: it is no source that can be read, or there is no memory. */
bool source_lay_out(strbuf *source);

#endif
