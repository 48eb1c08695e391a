/* The page and the examples, as bytes of the program: nothing is read from the disk while it serves. */
#ifndef VISA_LIBVISA_EXPLORER_ASSET_H
#define VISA_LIBVISA_EXPLORER_ASSET_H

#include <stdbool.h>
#include <stddef.h>

typedef struct asset {
    const char *name; /* "/explorer.js"; of an example "matmul" */
    const char *kind; /* its media type; of an example its title */
    const unsigned char *bytes;
    size_t size;
} asset;

/* False: there is none. */
bool asset_find(const char *path, asset *out);
/* The i-th example; false: there are fewer. */
bool asset_example(size_t i, asset *out);

#endif
