#include "libvisa/explorer/asset.h"

#include <string.h>

#include "support/embed.h"

#define ASSET(symbol, path, type, file) EMBED_FILE(symbol, file)
#define EXAMPLE(symbol, name, title) EMBED_FILE(symbol, "examples/" name ".vm")
#include "libvisa/explorer/asset.def"
#undef ASSET
#undef EXAMPLE

/* The ends are addresses that the linker knows, so the sizes are taken when they are asked for. */
typedef struct row {
    asset what;
    const unsigned char *end;
} row;

static const row assets[] = {
#define ASSET(symbol, path, type, file) {{path, type, visa_embed_##symbol, 0}, visa_embed_end_##symbol},
#define EXAMPLE(symbol, name, title)
#include "libvisa/explorer/asset.def"
#undef ASSET
#undef EXAMPLE
};
static const row examples[] = {
#define ASSET(symbol, path, type, file)
#define EXAMPLE(symbol, name, title) {{name, title, visa_embed_##symbol, 0}, visa_embed_end_##symbol},
#include "libvisa/explorer/asset.def"
#undef ASSET
#undef EXAMPLE
};
enum { ASSETS = sizeof assets / sizeof *assets, EXAMPLES = sizeof examples / sizeof *examples };

static asset asset_of(const row *r)
{
    asset a = r->what;
    a.size = (size_t)(r->end - r->what.bytes);
    return a;
}

bool asset_find(const char *path, asset *out)
{
    for (size_t i = 0; i < ASSETS; i++)
        if (strcmp(assets[i].what.name, path) == 0) {
            *out = asset_of(&assets[i]);
            return true;
        }
    return false;
}

bool asset_example(size_t i, asset *out)
{
    if (i >= EXAMPLES)
        return false;
    *out = asset_of(&examples[i]);
    return true;
}
