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

/* The value of Content-Length; false: there is none, or no message has that length. */
static bool content_length(const char *header, size_t size, size_t *out)
{
    static const char name[] = "content-length:";
    bool found = false;
    for (size_t i = 0; i < size;) {
        const char *stop = memchr(header + i, '\n', size - i);
        size_t end = stop ? (size_t)(stop - header) : size, at = i + sizeof name - 1;
        if (end - i >= sizeof name && strncasecmp(header + i, name, sizeof name - 1) == 0) {
            while (at < end && header[at] == ' ')
                at++;
            size_t digits = 0;
            *out = 0;
            for (; at < end && header[at] >= '0' && header[at] <= '9' && *out <= MESSAGE_BYTES_MAX; at++, digits++)
                *out = *out * 10 + (size_t)(header[at] - '0');
            found = digits > 0 && *out <= MESSAGE_BYTES_MAX && (at == end || header[at] == '\r');
        }
        i = end + 1;
    }
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
