/* libFuzzer: any bytes as a .vm text. What can be read is laid out, and laid out again: the same; and every question of an editor is
 * asked at a place that the text chooses. */
#include <string.h>

#include "include/visa_editor.h"
#include "test/fuzz/fuzz.h"

static void ask(visa_compilation *c, uint32_t offset)
{
    visa_place place;
    const char *text;
    visa_outline item;
    visa_diagnostic diagnostic;
    visa_hover(c, offset, &place, &text);
    visa_definition(c, offset, &place);
    for (size_t i = 0; visa_outline_at(c, i, &item); i++)
        ;
    for (size_t i = 0; visa_diagnostic_at(c, i, &diagnostic); i++)
        ;
}

static void lay_out_again(const char *text, size_t bytes)
{
    static const visa_options options = {.parse_only = true};
    const char *again;
    size_t again_bytes;
    visa_compilation *c = visa_compile("fuzz.vm", text, bytes, &options);
    if (!c)
        return;
    if (!visa_format(c, &again, &again_bytes) || again_bytes != bytes || memcmp(again, text, bytes) != 0)
        __builtin_trap();
    visa_free(c);
}

int fuzz_editor(const unsigned char *data, size_t size)
{
    static const visa_options options = {.editor = true, .max_steps = FUZZ_STEPS};
    uint32_t offset = size ? (uint32_t)(data[0] * size / 256) : 0;
    visa_compilation *c = visa_compile("fuzz.vm", (const char *)data, size, &options);
    const char *text;
    size_t bytes;
    if (!c)
        return 0;
    ask(c, offset);
    if (visa_format(c, &text, &bytes))
        lay_out_again(text, bytes);
    visa_free(c);
    visa_free(visa_complete("fuzz.vm", (const char *)data, size, offset, &options));
    return 0;
}
