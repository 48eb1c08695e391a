#include "lsp/text.h"

#include <stdlib.h>

bool text_lines_read(text_lines *l, const char *text, size_t bytes)
{
    uint32_t count = 1;
    bool ascii = true;
    for (size_t i = 0; i < bytes; i++) {
        count += text[i] == '\n' || text[i] == '\r';
        ascii = ascii && (unsigned char)text[i] < 0x80;
    }
    *l = (text_lines){.text = text, .bytes = bytes, .ascii = ascii, .begins = malloc(count * sizeof *l->begins), .count = 1};
    if (!l->begins)
        return false;
    l->begins[0] = 0;
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\n' || (text[i] == '\r' && !(i + 1 < bytes && text[i + 1] == '\n')))
            l->begins[l->count++] = (uint32_t)i + 1;
    return true;
}

void text_lines_free(text_lines *l)
{
    free(l->begins);
    *l = (text_lines){0};
}

/* Where the line's text ends, its line end left out. */
static uint32_t line_end(const text_lines *l, uint32_t line)
{
    uint32_t begin = l->begins[line], end = line + 1 < l->count ? l->begins[line + 1] : (uint32_t)l->bytes;
    while (end > begin && line + 1 < l->count && (l->text[end - 1] == '\n' || l->text[end - 1] == '\r'))
        end--;
    return end;
}

/* Bytes of the character at `at`, and its units; of a byte that begins none one of each. */
static uint32_t character(const text_lines *l, uint32_t at, uint32_t end, text_encoding encoding, uint32_t *units)
{
    unsigned char first = (unsigned char)l->text[at];
    uint32_t bytes = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
    for (uint32_t i = 1; i < bytes; i++)
        if (at + i >= end || ((unsigned char)l->text[at + i] & 0xc0) != 0x80)
            bytes = 1;
    *units = encoding == TEXT_UTF8 ? bytes : bytes == 4 ? 2 : 1;
    return bytes;
}

text_position text_position_of(const text_lines *l, text_encoding encoding, uint32_t offset)
{
    uint32_t low = 0, high = l->count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (l->begins[middle] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    text_position p = {.line = low};
    uint32_t end = line_end(l, low), units;
    if (l->ascii) {
        p.column = (offset < end ? offset : end) - l->begins[low];
        return p;
    }
    for (uint32_t at = l->begins[low]; at < offset && at < end; p.column += units) {
        uint32_t bytes = character(l, at, end, encoding, &units);
        if (at + bytes > offset)
            break;
        at += bytes;
    }
    return p;
}

uint32_t text_offset_of(const text_lines *l, text_encoding encoding, text_position p)
{
    if (p.line >= l->count)
        return (uint32_t)l->bytes;
    uint32_t at = l->begins[p.line], end = line_end(l, p.line), column = 0, units;
    while (at < end) {
        uint32_t bytes = character(l, at, end, encoding, &units);
        if (column + units > p.column)
            break;
        column += units;
        at += bytes;
    }
    return at;
}
