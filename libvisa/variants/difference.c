#include "libvisa/variants/difference.h"

#include <string.h>

#include "runtime/step/diff.h"
#include "runtime/timing/kernel_diff.h"
#include "support/shown.h"

static bool is_binary(const variant_source *s)
{
    static const char magic[4] = {'\x7f', 'E', 'L', 'F'};
    return s->size >= sizeof magic && memcmp(s->text, magic, sizeof magic) == 0;
}

static bool load_binary(difference_side *side, arena *memory, diag_list *diags)
{
    size_t before = diags->count;
    bool ok = binary_read((const unsigned char *)side->source.text, side->source.size, memory, diags, &side->binary);
    for (size_t i = before; i < diags->count; i++) /* of which of the two files */
        diags->items[i]->message = arena_printf(memory, "%s: %s", shown_text(side->file, memory), diags->items[i]->message);
    return ok;
}

static bool load_source(difference_side *side, const variant_options *o, arena *memory, diag_list *diags)
{
    const unsigned char *data;
    size_t size;
    visa_compilation *c = visa_compile(side->source.name, side->source.text, side->source.size, &o->compile);
    if (!c) {
        side->fault = "out of memory";
        return false;
    }
    bool ok = visa_emit(c, VISA_EMIT_BINARY, &data, &size) && binary_read(data, size, memory, diags, &side->binary);
    if (ok && side->binary.program_count > 0 && visa_emit(c, VISA_EMIT_STEP_JSON, &data, &size))
        side->costs = arena_strndup(memory, (const char *)data, size);
    if (visa_error_count(c) > 0)
        side->messages = arena_strdup(memory, visa_diagnostics(c, o->format));
    visa_free(c);
    return ok;
}

bool difference_load(difference_side *side, const variant_options *o, arena *memory, diag_list *diags)
{
    side->costs = side->fault = NULL;
    side->messages = "";
    return is_binary(&side->source) ? load_binary(side, memory, diags) : load_source(side, o, memory, diags);
}

const char *difference_text(const difference_side *before, const difference_side *after, timing_preset preset, arena *memory,
                            diag_list *diags)
{
    const char *text = kernel_diff(&before->binary, &after->binary, preset, memory, diags);
    return text ? arena_printf(
                      memory, "%s%s", text,
                      step_diff((step_diff_side){&before->binary, before->costs}, (step_diff_side){&after->binary, after->costs}, memory))
                : NULL;
}
