#include "support/shown.h"

#include <string.h>

#include "support/strbuf.h"

uint32_t utf8_decode(const char *text, uint32_t bytes, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    uint32_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (length == 0 || length > bytes)
        return 0;
    uint32_t c = length == 1 ? first : first & (0x7fu >> length);
    for (uint32_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | ((unsigned char)text[i] & 0x3f);
    }
    bool surrogate = c >= 0xd800 && c < 0xe000;
    *character = c;
    return c < least[length] || surrogate || c > 0x10ffff ? 0 : length;
}

bool utf8_is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void put_escape(strbuf *out, unsigned char byte)
{
    static const char names[] = "\nn\tt\rr";
    const char *known = byte ? strchr(names, byte) : NULL;
    if (known && byte < ' ')
        strbuf_printf(out, "\\%c", known[1]);
    else
        strbuf_printf(out, "\\x%02x", byte);
}

const char *shown_text(const char *text, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    size_t bytes = strlen(text);
    for (size_t i = 0; i < bytes;) {
        uint32_t c, used = utf8_decode(text + i, bytes - i < 4 ? (uint32_t)(bytes - i) : 4, &c);
        bool hidden = used == 0 || utf8_is_hidden(c);
        used = used ? used : 1;
        if (!hidden)
            strbuf_append(&out, text + i, used);
        for (uint32_t k = 0; hidden && k < used; k++)
            put_escape(&out, (unsigned char)text[i + k]);
        i += used;
    }
    return out.bytes == bytes ? text : out.text;
}

const char *shown_input(const char *path, arena *a)
{
    return strcmp(path, "-") == 0 ? "standard input" : shown_text(path, a);
}

const char *shown_output(const char *path, arena *a)
{
    return strcmp(path, "-") == 0 ? "standard output" : shown_text(path, a);
}
