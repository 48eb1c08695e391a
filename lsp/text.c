#include "lsp/text.h"

#include <stdlib.h>

/* Bytes of the character at `at`, and its units; of a byte that begins none one of each. No character has a line's end in it. */
static uint32_t character(const text_lines *l, uint32_t at, text_encoding encoding, uint32_t *units)
{
    unsigned char first = (unsigned char)l->text[at];
    uint32_t bytes = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
    for (uint32_t i = 1; i < bytes; i++)
        if (at + i >= l->bytes || ((unsigned char)l->text[at + i] & 0xc0) != 0x80)
            bytes = 1;
    *units = encoding == TEXT_UTF8 ? bytes : bytes == 4 ? 2 : 1;
    return bytes;
}

/* Where a character of every TEXT_MARK_BYTES begins, so that no answer counts through a long line. False: no memory. */
static bool read_marks(text_lines *l, text_encoding encoding)
{
    text_mark *marks = malloc((l->bytes / TEXT_MARK_BYTES + 1) * sizeof *marks);
    uint32_t at = 0, sum = 0, units;
    if (!marks)
        return false;
    for (size_t count = 0; count <= l->bytes / TEXT_MARK_BYTES; count++) {
        for (; at < count * TEXT_MARK_BYTES; sum += units)
            at += character(l, at, encoding, &units);
        marks[count] = (text_mark){at, sum};
    }
    l->marks[encoding] = marks;
    return true;
}

/* Units of the whole characters in front of an offset. */
static uint32_t units_before(const text_lines *l, text_encoding encoding, uint32_t offset)
{
    const text_mark *m = &l->marks[encoding][offset / TEXT_MARK_BYTES];
    if (m->at > offset)
        m--; /* a character over the border, whose begin is in front of it */
    uint32_t at = m->at, sum = m->units, units;
    while (at < offset) {
        uint32_t bytes = character(l, at, encoding, &units);
        if (at + bytes > offset)
            break;
        at += bytes;
        sum += units;
    }
    return sum;
}

bool text_lines_read(text_lines *l, const char *text, size_t bytes)
{
    uint32_t count = 1;
    unsigned char all = 0; /* without a branch, so that many bytes are looked at together: this is done at every key */
    for (size_t i = 0; i < bytes; i++)
        all |= (unsigned char)text[i];
    for (size_t i = 0; i < bytes; i++)
        count += (text[i] == '\n') | (text[i] == '\r');
    bool ascii = all < 0x80;
    *l = (text_lines){.text = text, .bytes = bytes, .ascii = ascii, .begins = malloc(count * sizeof *l->begins), .count = 1};
    if (!l->begins)
        return false;
    l->begins[0] = 0;
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\n' || (text[i] == '\r' && !(i + 1 < bytes && text[i + 1] == '\n')))
            l->begins[l->count++] = (uint32_t)i + 1;
    if (ascii || (read_marks(l, TEXT_UTF16) && read_marks(l, TEXT_UTF8)))
        return true;
    text_lines_free(l);
    return false;
}

void text_lines_free(text_lines *l)
{
    free(l->begins);
    free(l->marks[TEXT_UTF16]);
    free(l->marks[TEXT_UTF8]);
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
    uint32_t end = line_end(l, low), begin = l->begins[low];
    if (l->ascii) {
        p.column = (offset < end ? offset : end) - begin;
        return p;
    }
    p.column = units_before(l, encoding, offset < end ? offset : end) - units_before(l, encoding, begin);
    return p;
}

uint32_t text_offset_of(const text_lines *l, text_encoding encoding, text_position p)
{
    if (p.line >= l->count)
        return (uint32_t)l->bytes;
    uint32_t at = l->begins[p.line], end = line_end(l, p.line), column = 0, units;
    while (at < end) {
        uint32_t bytes = character(l, at, encoding, &units);
        if (column + units > p.column)
            break;
        column += units;
        at += bytes;
    }
    return at;
}
