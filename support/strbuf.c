#include "support/strbuf.h"

#include <string.h>

void strbuf_init(strbuf *s, arena *a)
{
    *s = (strbuf){.arena = a, .text = arena_alloc(a, 64), .capacity = 64};
}

void strbuf_append(strbuf *s, const char *text, size_t bytes)
{
    if (s->capacity - s->bytes <= bytes) {
        size_t capacity = 2 * s->capacity > s->bytes + bytes + 1 ? 2 * s->capacity : s->bytes + bytes + 1;
        s->text = arena_grow(s->arena, s->text, s->bytes, capacity, 1);
        s->capacity = capacity;
    }
    memcpy(s->text + s->bytes, text, bytes);
    s->bytes += bytes;
    s->text[s->bytes] = '\0';
}

void strbuf_puts(strbuf *s, const char *text)
{
    strbuf_append(s, text, strlen(text));
}

void strbuf_printf(strbuf *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    strbuf_puts(s, arena_vprintf(s->arena, format, args));
    va_end(args);
}

void strbuf_pad_to(strbuf *s, size_t column)
{
    size_t line = s->bytes;
    while (line > 0 && s->text[line - 1] != '\n')
        line--;
    do
        strbuf_append(s, " ", 1);
    while (s->bytes - line < column);
}

void strbuf_append_xml(strbuf *s, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        const char *safe = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : NULL;
        if (safe)
            strbuf_puts(s, safe);
        else
            strbuf_append(s, text + i, 1);
    }
}

void strbuf_puts_xml(strbuf *s, const char *text)
{
    strbuf_append_xml(s, text, strlen(text));
}
