/* What the answers to an editor share. */
#ifndef VISA_LIBVISA_EDITOR_H
#define VISA_LIBVISA_EDITOR_H

#include "frontend/token.h"
#include "include/visa_editor.h"
#include "libvisa/compilation.h"

static inline visa_place editor_place(src_range range)
{
    return (visa_place){range.file, range.begin, range.end};
}

/* The tokens of file 0, once more; faults were told when it was compiled. */
token_list editor_tokens(visa_compilation *c);
/* The token that holds the offset, or ends there; of two the name. TOKEN_NONE: none. */
uint32_t editor_token_at(const token_list *tokens, uint32_t offset);
/* By token: what analysis found that it names, or NULL. One pass over all of it, so that a name with many places costs no more than one
 * with few. */
symbol **editor_named_by_tokens(visa_compilation *c, const token_list *tokens);
/* What the name at the offset, token `i`, stands for: as analysis found it, else as the scope around it has it. NULL: nothing. */
symbol *editor_symbol_at(visa_compilation *c, const token_list *tokens, uint32_t i, uint32_t offset, src_range *range);
/* The `m![` around the token, or TOKEN_NONE. */
uint32_t editor_map_around(const token_list *tokens, uint32_t token);

/* Questions to a scope whose faults nobody wants to hear: between the two calls diagnostics go to `silent`. */
typedef struct editor_silence {
    scope_context *context;
    diag_list *diags, *silent;
    source_index *index;
} editor_silence;
editor_silence editor_silence_begin(visa_compilation *c, scope *s);
void editor_silence_end(const editor_silence *s);

/* "bf16 DmTensor<m![1], ..>", "32 elements", "8": what is known of a name. "" when nothing is. */
const char *editor_detail(visa_compilation *c, symbol *y);
visa_name_kind editor_kind(const symbol *y);

#endif
