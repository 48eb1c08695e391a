/* visa_switched: one copy of the file by the Switch Engine. */
#include "frontend/switched.h"

#include "libvisa/compilation.h"

static bool write_switched(visa_compilation *c, size_t number, visa_switched_text *out)
{
    switched s;
    upgrade_input in = compilation_upgrade_input(c);
    if (!switched_text(&in, number, &s))
        return false;
    int file = c->tree->range.file;
    strbuf text;
    strbuf_init(&text, c->arena);
    if (edit_apply(&s.edits, source_text(c->sources, file), source_bytes(c->sources, file), &text))
        return false;
    *out = (visa_switched_text){text.text, s.words, source_line_at(c->sources, file, s.copy.begin), s.routes};
    return true;
}

bool visa_switched(visa_compilation *c, size_t number, visa_switched_text *out)
{
    volatile bool done = false;
    if (!COMPILATION_STOPS(c) && c->tree && c->syntax_errors == 0 && !c->is_book)
        done = write_switched(c, number, out);
    return done;
}
