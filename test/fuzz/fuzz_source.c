/* libFuzzer: any bytes as a .vm text, through every stage and every output; and as a chapter with such texts in it. */
#include "include/visa.h"
#include "test/fuzz/fuzz.h"

int fuzz_source(const unsigned char *data, size_t size)
{
    static const visa_options options = {.max_steps = FUZZ_STEPS}, book = {.book = true, .max_steps = FUZZ_STEPS};
    visa_compilation *c = visa_compile("fuzz.vm", (const char *)data, size, &options);
    if (!c)
        return 0;
    for (visa_emit_kind kind = VISA_EMIT_BINARY; kind <= VISA_EMIT_AST; kind++) {
        const unsigned char *out;
        size_t out_size;
        visa_emit(c, kind, &out, &out_size);
    }
    visa_diagnostics(c, VISA_DIAGNOSTICS_COLOUR);
    visa_diagnostics(c, VISA_DIAGNOSTICS_JSON);
    visa_diagnostics(c, VISA_DIAGNOSTICS_SARIF);
    visa_free(c);
    c = visa_compile("fuzz.md", (const char *)data, size, &book);
    if (c)
        visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT);
    visa_free(c);
    return 0;
}
