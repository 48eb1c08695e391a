#include "lsp/message.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool message_feed(message_reader *r, const char *bytes, size_t size)
{
    if (r->begin > 0) {
        memmove(r->bytes, r->bytes + r->begin, r->end - r->begin);
        r->end -= r->begin;
        r->begin = 0;
    }
    if (r->capacity - r->end < size) {
        size_t capacity = 2 * (r->end + size);
        char *grown = realloc(r->bytes, capacity);
        if (!grown)
            return false;
        r->bytes = grown;
        r->capacity = capacity;
    }
    memcpy(r->bytes + r->end, bytes, size);
    r->end += size;
    return true;
}

/* The bytes up to and with the empty line, or 0 when it has not come yet. */
static size_t header_bytes(const char *text, size_t size)
{
    for (size_t i = 0; i + 1 < size && i < MESSAGE_HEADER_MAX; i++) {
        if (text[i] != '\n')
            continue;
        if (text[i + 1] == '\n')
            return i + 2;
        if (i + 2 < size && text[i + 1] == '\r' && text[i + 2] == '\n')
            return i + 3;
    }
    return 0;
}

/* The number after the name; false: none that a message has. */
static bool read_length(const char *at, const char *end, size_t *out)
{
    size_t digits = 0;
    *out = 0;
    while (at < end && *at == ' ')
        at++;
    for (; at < end && *at >= '0' && *at <= '9' && *out <= MESSAGE_BYTES_MAX; at++, digits++)
        *out = *out * 10 + (size_t)(*at - '0');
    return digits > 0 && *out <= MESSAGE_BYTES_MAX && at < end && (*at == '\r' || *at == '\n');
}

/* The last Content-Length of the header, wherever it stands in a line: after a fault the rest of a body may be in front of it. */
static bool content_length(const char *header, size_t size, size_t *out)
{
    static const char name[] = "content-length:";
    bool found = false;
    for (size_t i = 0; i + sizeof name - 1 < size; i++)
        if (strncasecmp(header + i, name, sizeof name - 1) == 0)
            found = read_length(header + i + sizeof name - 1, header + size, out);
    return found;
}

message_status message_next(message_reader *r, const char **body, size_t *size)
{
    const char *text = r->bytes + r->begin;
    size_t have = r->end - r->begin, header = have ? header_bytes(text, have) : 0, length;
    if (header == 0 && have < MESSAGE_HEADER_MAX)
        return MESSAGE_MORE;
    if (header == 0 || !content_length(text, header, &length)) {
        r->begin += header ? header : have;
        return MESSAGE_FAULTY;
    }
    if (have - header < length)
        return MESSAGE_MORE;
    *body = text + header;
    *size = length;
    r->begin += header + length;
    return MESSAGE_WHOLE;
}

void message_reader_free(message_reader *r)
{
    free(r->bytes);
    *r = (message_reader){0};
}
