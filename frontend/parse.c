#include "frontend/parse.h"

#include <stddef.h>
#include <string.h>

#include "frontend/parse_state.h"

#define MAPPING_TEXT_MAX ((size_t)1 << 20) /* bytes */

struct mapping_parser {
    token_scanner *scanner;
    parse_state state;
};

mapping_parser *mapping_parser_new(arena *a)
{
    mapping_parser *m = ARENA_NEW(a, mapping_parser);
    m->scanner = token_scanner_new(a);
    return m;
}

/* Most texts have no error, and are read as if they had none, which saves a sixth of the parser's work. One that has is read once more with
 * the care that tells what could stand where it is; of the first time nothing is left. */
static void read_tokens(parse_state *p)
{
    budget *account = arena_budget(p->arena);
    uint64_t steps = account->steps;
    size_t diag_count = p->diags->count, error_count = p->diags->error_count;
    ast none = {0}, root = p->root ? *p->root : none;
    parse_state begin;
    memcpy(&begin, p, offsetof(parse_state, blocks));
    p->trusts = true;
    visa_parse_parse(p);
    if (!p->doubts)
        return;
    memcpy(p, &begin, offsetof(parse_state, blocks));
    if (p->root)
        *p->root = root;
    p->diags->count = diag_count, p->diags->error_count = error_count;
    account->steps = steps;
    visa_parse_parse(p);
}

ast *parse_mapping(mapping_parser *m, const char *text, size_t bytes, arena *a, diag_list *diags)
{
    size_t before = diags->count;
    parse_state *p = &m->state;
    if (bytes > MAPPING_TEXT_MAX) {
        diag_add(diags, E_LEX, SRC_NOWHERE, "the mapping is longer than %zu bytes", MAPPING_TEXT_MAX);
        return NULL;
    }
    char *copy = arena_alloc(a, bytes + 2);
    memcpy(copy, text, bytes);
    memset(p, 0, offsetof(parse_state, blocks));
    p->arena = a, p->diags = diags, p->source = copy;
    p->resync = T_LONE_MAPPING;
    p->tokens = token_scan_text(m->scanner, copy, bytes, 0, true, a, diags);
    if (!p->tokens.too_deep)
        read_tokens(p);
    return diags->count == before ? p->root : NULL;
}

ast *parse_file(source_map *sources, int file, arena *a, diag_list *diags)
{
    return parse_file_part(sources, file, 0, (uint32_t)source_bytes(sources, file), a, diags);
}

ast *parse_file_part(source_map *sources, int file, uint32_t begin, uint32_t end, arena *a, diag_list *diags)
{
    src_range whole = {file, begin, end};
    arena *scratch = arena_new_inside(a);
    parse_state *p = ARENA_NEW(scratch, parse_state);
    *p = (parse_state){.arena = a, .diags = diags, .file = file, .source = source_text(sources, file)};
    ast *root = p->root = ast_new(a, AST_FILE, whole);
    p->resync_to = TOKEN_NONE;
    p->names = ARENA_ARRAY(scratch, parse_name, PARSE_NAMES);
    p->tokens = token_scan_part(sources, file, begin, end, scratch, diags);
    if (!p->tokens.too_deep)
        read_tokens(p);
    arena_free(scratch);
    return root;
}

static bool begins_in(src_range r, src_range range)
{
    return r.file == range.file && r.begin >= range.begin && r.begin < range.end;
}

/* Is the fault there, or what it points back to: the `}` that is one too many ends a function before its last line? */
static bool is_fault_of(const diag *d, src_range range)
{
    bool found = begins_in(d->range, range);
    for (size_t i = 0; i < d->note_count && !found; i++)
        found = begins_in(d->notes[i].range, range);
    return found;
}

bool parse_was_broken(const diag_list *diags, src_range range)
{
    for (size_t i = 0; i < diags->count; i++) {
        const diag *d = diags->items[i];
        bool syntax = d->id == E_LEX || d->id == E_DELIMITER || d->id == E_PARSE || d->id == E_MAP_SYNTAX || d->id == E_NESTING;
        if (syntax && is_fault_of(d, range))
            return true;
    }
    return false;
}
