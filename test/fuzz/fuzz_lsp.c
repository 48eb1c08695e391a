/* libFuzzer: any bytes as what an editor sends. The first byte is the size of the pieces in which they come. */
#include "lsp/server.h"
#include "test/fuzz/fuzz.h"

static bool forget(void *user, const char *bytes, size_t size)
{
    (void)user, (void)bytes, (void)size;
    return true;
}

int fuzz_lsp(const unsigned char *data, size_t size)
{
    server *s = size ? server_new(&(server_ends){.send = forget}, &(answer_limits){.max_steps = FUZZ_STEPS}) : NULL;
    if (!s)
        return 0;
    size_t piece = (size_t)data[0] * 16 + 1;
    for (size_t at = 1; at < size; at += piece)
        if (!server_feed(s, (const char *)data + at, size - at < piece ? size - at : piece))
            break;
    server_free(s);
    return 0;
}
