/* Text under construction: appended piece by piece in an arena, always NUL-terminated. */
#ifndef VISA_SUPPORT_STRBUF_H
#define VISA_SUPPORT_STRBUF_H

#include "support/arena.h"

typedef struct strbuf {
    arena *arena;
    char *text; /* never NULL once initialised */
    size_t bytes, capacity;
} strbuf;

void strbuf_init(strbuf *s, arena *a);
void strbuf_append(strbuf *s, const char *text, size_t bytes);
void strbuf_puts(strbuf *s, const char *text);
void strbuf_printf(strbuf *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For the text of an element or an attribute of XML. */
void strbuf_puts_xml(strbuf *s, const char *text);
void strbuf_append_xml(strbuf *s, const char *text, size_t bytes);
/* Appends blanks until the current line is `column` characters wide (at least one blank). */
void strbuf_pad_to(strbuf *s, size_t column);

#endif
