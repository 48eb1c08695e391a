#include "libvisa/layout.h"

#include "include/visa.h"

bool source_lay_out(strbuf *source)
{
    const char *data;
    size_t size;
    visa_compilation *c = visa_compile("kernel", source->text, source->bytes, &(visa_options){.parse_only = true});
    bool ok = c && visa_format(c, &data, &size);
    if (ok) {
        strbuf_init(source, source->arena);
        strbuf_append(source, data, size);
    }
    visa_free(c);
    return ok;
}
