#include "support/json_text.h"

#include <stdlib.h>

const char *json_dump_text(json_t *root, size_t flags, arena *a)
{
    char *text = root ? json_dumps(root, flags) : NULL;
    json_decref(root);
    const char *kept = text ? arena_printf(a, "%s\n", text) : NULL;
    free(text);
    return kept;
}
