/* Messages of the base protocol: a header with Content-Length, an empty line, that many bytes.
 *
 * The one idea: bytes come in pieces of any size, so they are kept until a message is whole. What is no header is passed over up to
 * the next line that is one; a length that nobody sends (negative, not a number, above MESSAGE_BYTES_MAX) is such a fault. */
#ifndef VISA_LSP_MESSAGE_H
#define VISA_LSP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#define MESSAGE_BYTES_MAX ((size_t)64 << 20)
#define MESSAGE_HEADER_MAX ((size_t)8 << 10)

typedef struct message_reader {
    char *bytes; /* malloc; the reader's */
    size_t begin, end, capacity;
} message_reader;

typedef enum message_status {
    MESSAGE_WHOLE,  /* *body and *size are set and hold until the next call */
    MESSAGE_MORE,   /* more bytes are needed */
    MESSAGE_FAULTY, /* a header was no header and was dropped */
} message_status;

/* False: no memory. */
bool message_feed(message_reader *r, const char *bytes, size_t size);
message_status message_next(message_reader *r, const char **body, size_t *size);
void message_reader_free(message_reader *r);

#endif
