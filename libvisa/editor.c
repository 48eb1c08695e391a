/* include/visa_editor.h: what is at a place. */
#include "libvisa/editor.h"

#include <string.h>

#include "codegen/tables.h"
#include "frontend/constant.h"
#include "frontend/fix.h"
#include "frontend/parse.h"
#include "frontend/parser.tab.h"
#include "frontend/stage.h"
#include "frontend/variant.h"
#include "passes/engine/trf_sequencer.h"
#include "support/budget.h"

const char *visa_file_name(const visa_compilation *c, int file)
{
    return c->exhausted || file < 0 || file >= source_map_count(c->sources) ? NULL : source_name(c->sources, file);
}

const char *visa_file_text(const visa_compilation *c, int file, size_t *bytes)
{
    if (!visa_file_name(c, file))
        return NULL;
    *bytes = source_bytes(c->sources, file);
    return source_text(c->sources, file);
}

/* ---- diagnostics ---- */

static void find_edits(visa_compilation *c, const diag *d, visa_diagnostic *out)
{
    const diag_edit *edits;
    out->edit_count = fix_edits(d, c->sources, c->arena, &edits);
    visa_edit *own = ARENA_ARRAY(c->arena, visa_edit, out->edit_count);
    for (size_t i = 0; i < out->edit_count; i++)
        own[i] = (visa_edit){editor_place(edits[i].range), edits[i].text};
    out->edits = own;
}

bool visa_diagnostic_at(visa_compilation *c, size_t i, visa_diagnostic *out)
{
    if (c->exhausted || (budget_lift(c->arena), setjmp(*arena_guard(c->arena))))
        return false;
    const diag_list *shown = compilation_shown(c);
    if (i >= shown->count)
        return false;
    const diag *d = shown->items[i];
    visa_note *notes = ARENA_ARRAY(c->arena, visa_note, d->note_count);
    for (size_t n = 0; n < d->note_count; n++)
        notes[n] = (visa_note){editor_place(d->notes[n].range), d->notes[n].text};
    *out = (visa_diagnostic){.id = diag_row_of(d->id)->name,
                             .is_error = d->severity == DIAG_ERROR,
                             .place = editor_place(d->range),
                             .message = d->message,
                             .help = d->help,
                             .notes = notes,
                             .note_count = d->note_count};
    find_edits(c, d, out);
    return true;
}

/* ---- tokens ---- */

/* Scanned at the first question: an editor asks many of one text. */
token_list editor_tokens(visa_compilation *c)
{
    diag_list told;
    diag_list_init(&told, c->arena);
    if (!c->tokens) {
        token_list *made = ARENA_NEW(c->arena, token_list);
        *made = token_scan(c->sources, 0, c->arena, &told);
        c->tokens = made;
    }
    return *c->tokens;
}

uint32_t editor_token_at(const token_list *tokens, uint32_t offset)
{
    uint32_t found = TOKEN_NONE;
    for (uint32_t i = 0; i < tokens->count && tokens->items[i].begin <= offset; i++) {
        const token *t = &tokens->items[i];
        if (t->begin < t->end && (offset < t->end || (offset == t->end && t->kind == T_IDENT)))
            found = i;
    }
    return found;
}

uint32_t editor_map_around(const token_list *tokens, uint32_t i)
{
    if (i == TOKEN_NONE || tokens->items[i].kind == T_MAP_OPEN)
        return i;
    if (tokens->items[i].kind == T_MACRO_CLOSE && tokens->items[i].match != TOKEN_NONE)
        i = tokens->items[i].match;
    while (i != TOKEN_NONE && tokens->items[i].kind != T_MAP_OPEN)
        i = tokens->items[i].parent;
    return i;
}

/* ---- what is known of a name ---- */

/* The list lives in the arena: it is still there when the arena's exit is taken between the two calls. */
editor_silence editor_silence_begin(visa_compilation *c, scope *s)
{
    scope_context *asked = scope_context_of(s);
    editor_silence out = {asked, asked->diags, ARENA_NEW(c->arena, diag_list), asked->index};
    diag_list_init(out.silent, c->arena);
    asked->diags = out.silent;
    asked->index = NULL;
    return out;
}

void editor_silence_end(const editor_silence *s)
{
    s->context->diags = s->diags;
    s->context->index = s->index;
}

visa_name_kind editor_kind(const symbol *y)
{
    switch (y->kind) {
    case SYMBOL_AXIS: return VISA_NAME_AXIS;
    case SYMBOL_ALIAS: return VISA_NAME_ALIAS;
    case SYMBOL_FUNCTION: return VISA_NAME_FUNCTION;
    case SYMBOL_MODULE: return VISA_NAME_MODULE;
    case SYMBOL_VARIABLE: return VISA_NAME_VARIABLE;
    case SYMBOL_OWN_TYPE: return VISA_NAME_TYPE;
    default: return VISA_NAME_CONST;
    }
}

static const char *tensor_type_text(visa_compilation *c, const tensor *t)
{
    strbuf s;
    strbuf_init(&s, c->arena);
    strbuf_printf(&s, "%s<%s", tensor_kind_name(t->kind), dtype_row_of(t->dtype)->name);
    for (const component *p = tensor_kind_components(t->kind); *p < MAPPING_COMPONENTS; p++) {
        const mapping *m = t->part[*p];
        strbuf_puts(&s, m ? ", m![" : ", _");
        if (m) {
            mapping_print(m, &s);
            strbuf_puts(&s, "]");
        }
    }
    strbuf_puts(&s, ">");
    return s.text;
}

static const char *value_text(visa_compilation *c, const value *v)
{
    switch (v->kind) {
    case VALUE_ERROR: return "";
    case VALUE_INT: return arena_printf(c->arena, "%lld", (long long)v->number);
    case VALUE_BOOL: return v->number ? "true" : "false";
    case VALUE_TENSOR: return tensor_type_text(c, &v->op->out);
    case VALUE_VIEW: return arena_printf(c->arena, "a view%s of %s", v->writable ? " to write" : "", tensor_type_text(c, &v->op->out));
    case VALUE_CONTEXT: return "the Context";
    case VALUE_UNIT_OF_CONTEXT: return value_kind_name(v) + 1; /* without the mark of a word that releases call otherwise */
    case VALUE_ACCUMULATION: return v->number == SEQUENTIAL ? "Sequential" : "Interleaved";
    default: return value_kind_name(v);
    }
}

/* An alias: of a mapping, a tensor, an element type or something else. */
static const char *alias_text(visa_compilation *c, symbol *y)
{
    editor_silence silence = editor_silence_begin(c, y->scope);
    bool infer = false;
    dtype type;
    const char *text = "";
    declared d = scope_type(y->scope, y->node);
    const mapping *m = scope_alias(y, &infer);
    if (d.kind == DECLARED_TENSOR)
        text = tensor_type_text(c, &d.tensor);
    else if (m)
        text = arena_printf(c->arena, "m![%s], %s", mapping_text(m, c->arena), arena_count(c->arena, m->size, "position"));
    else if (scope_dtype(y->scope, y->node, &type, &infer))
        text = dtype_row_of(type)->name;
    editor_silence_end(&silence);
    return text;
}

static const char *const_text(visa_compilation *c, symbol *y)
{
    editor_silence silence = editor_silence_begin(c, y->scope);
    int64_t number;
    bool ok = y->node && scope_integer(y->scope, y->node, &number);
    editor_silence_end(&silence);
    return ok ? arena_printf(c->arena, "%lld", (long long)number) : "";
}

/* `fn name(..) -> T`, as written. */
static const char *function_text(visa_compilation *c, const ast *fn)
{
    const ast *body = ast_kid(fn, 4), *result = ast_kid(fn, 3);
    const char *text = source_text(c->sources, fn->range.file);
    uint32_t begin = fn->name_range.begin, end = ast_is(body, AST_BLOCK) ? body->range.begin : result->range.end;
    while (end > begin && strchr(" \t\r\n", text[end - 1]))
        end--;
    return arena_printf(c->arena, "fn %.*s", (int)(end - begin), text + begin);
}

const char *editor_detail(visa_compilation *c, symbol *y)
{
    switch (y->kind) {
    case SYMBOL_AXIS: return y->axis ? arena_count(c->arena, y->axis->size, "element") : "";
    case SYMBOL_ALIAS: return alias_text(c, y);
    case SYMBOL_CONST: return const_text(c, y);
    case SYMBOL_VARIABLE: return value_text(c, &y->value);
    case SYMBOL_FUNCTION: return function_text(c, y->node);
    default: return "";
    }
}

/* ---- names at a place ---- */

typedef struct name_search {
    uint32_t offset;
    const char *name;
    symbol *declared, *visible; /* whose declaration the offset is in; which a use there means */
} name_search;

static void match_name(void *user, symbol *y)
{
    name_search *n = user;
    const symbol *own = symbol_meant(y);
    if (strcmp(y->name, n->name) != 0)
        return;
    if (own->range.file == 0 && own->range.begin <= n->offset && n->offset <= own->range.end)
        n->declared = symbol_meant(y);
    bool later = own->kind == SYMBOL_VARIABLE && own->range.begin > n->offset;
    if (!n->visible && !later)
        n->visible = symbol_meant(y);
}

static void count_variant(void *user, const char *name, const char *meaning)
{
    (void)name, (void)meaning;
    ++*(size_t *)user;
}

/* The enumeration of the name at token i, as in `TrfAddress::Full`; NULL: it is no member of one. */
static const char *enumeration_at(visa_compilation *c, const token_list *tokens, uint32_t i)
{
    if (i < 2 || tokens->items[i - 1].kind != T_COLON2 || tokens->items[i - 2].kind != T_IDENT)
        return NULL;
    const char *type = token_text(source_text(c->sources, 0), &tokens->items[i - 2], c->arena);
    size_t members = 0;
    variant_visit(c->arena, type, count_variant, &members);
    return members ? type : NULL;
}

symbol *editor_symbol_at(visa_compilation *c, const token_list *tokens, uint32_t i, uint32_t offset, src_range *range)
{
    if (i == TOKEN_NONE || tokens->items[i].kind != T_IDENT || (i > 0 && tokens->items[i - 1].kind == '.'))
        return NULL;
    symbol *found = index_find_name(c->index, 0, offset, range);
    if (found || enumeration_at(c, tokens, i)) /* an axis `Full` is not what TrfAddress::Full means */
        return found;
    const token *t = &tokens->items[i];
    *range = (src_range){0, t->begin, t->end};
    name_search n = {.offset = offset, .name = token_text(source_text(c->sources, 0), t, c->arena)};
    scope *s = index_find_scope(c->index, 0, offset);
    if (s)
        scope_visit(s, match_name, &n);
    return n.declared ? n.declared : n.visible;
}

static bool is_ready(const visa_compilation *c)
{
    return !c->exhausted && c->index && c->module;
}

bool visa_definition(visa_compilation *c, uint32_t offset, visa_place *out)
{
    if (!is_ready(c) || COMPILATION_STOPS(c))
        return false;
    token_list tokens = editor_tokens(c);
    src_range range;
    symbol *y = editor_symbol_at(c, &tokens, editor_token_at(&tokens, offset), offset, &range);
    if (y)
        *out = editor_place(y->range);
    return y != NULL;
}

/* A name is given at one place, whatever was made of it there. */
static bool is_given_at(const symbol *y, src_range given)
{
    return y && y->range.file == given.file && y->range.begin == given.begin;
}

size_t visa_references(visa_compilation *c, uint32_t offset, const visa_place **places)
{
    enum { SYMBOLS_OF_STEP = 16 };
    *places = NULL;
    if (!is_ready(c) || COMPILATION_STOPS(c))
        return 0;
    token_list tokens = editor_tokens(c);
    uint32_t at = editor_token_at(&tokens, offset);
    src_range range;
    const symbol *y = editor_symbol_at(c, &tokens, at, offset, &range);
    if (!y || y->range.file != 0)
        return 0;
    const char *text = source_text(c->sources, 0);
    uint32_t from = tokens.items[at].begin, bytes = tokens.items[at].end - from;
    symbol **named = editor_named_by_tokens(c, &tokens);
    visa_place *found = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < tokens.count; i++) {
        const token *t = &tokens.items[i];
        if (t->kind != T_IDENT || t->end - t->begin != bytes || memcmp(text + t->begin, text + from, bytes) != 0)
            continue;
        const symbol *here = named[i];
        if (!here && t->begin != y->range.begin) { /* of what was not analysed */
            budget_spend(c->arena, 1 + (c->index->name_count + c->index->scope_count) / SYMBOLS_OF_STEP);
            here = editor_symbol_at(c, &tokens, i, t->begin, &range);
        }
        if (t->begin == y->range.begin || is_given_at(here, y->range))
            ARENA_PUSH(c->arena, found, count, capacity, ((visa_place){0, t->begin, t->end}));
    }
    *places = found;
    return count;
}

/* ---- hover ---- */

typedef struct hover {
    visa_compilation *c;
    strbuf text;
    src_range range;
} hover;

static void begin_part(hover *h)
{
    if (h->text.bytes)
        strbuf_puts(&h->text, "\n\n---\n\n");
}

static void put_code(hover *h, const char *text)
{
    strbuf_printf(&h->text, "```rust\n%s\n```", text);
}

static void hover_symbol(hover *h, symbol *y)
{
    static const char *const words[] = {
        [SYMBOL_AXIS] = "axis ",    [SYMBOL_ALIAS] = "type ", [SYMBOL_CONST] = "const ", [SYMBOL_CONST_PARAM] = "const ",
        [SYMBOL_VARIABLE] = "let ", [SYMBOL_FUNCTION] = "",   [SYMBOL_MODULE] = "mod ",  [SYMBOL_OWN_TYPE] = "type "};
    const char *detail = editor_detail(h->c, y);
    begin_part(h);
    if (y->kind == SYMBOL_FUNCTION)
        put_code(h, detail);
    else if (y->kind == SYMBOL_AXIS)
        put_code(h, arena_printf(h->c->arena, "axis %s%s%s", y->name, *detail ? ": " : "", detail));
    else
        put_code(h, arena_printf(h->c->arena, "%s%s%s%s", words[y->kind], y->name,
                                 !*detail                     ? ""
                                 : y->kind == SYMBOL_VARIABLE ? ": "
                                                              : " = ",
                                 detail));
}

/* The smallest expression of a mapping that holds the offset. */
static const ast *map_part_at(const ast *n, uint32_t offset)
{
    for (uint32_t i = 0; i < n->kid_count; i++) {
        const ast *k = n->kids[i];
        bool is_part = k->kind >= AST_MAP && k->kind <= AST_MAP_ESCAPE && k->range.begin < k->range.end;
        if (is_part && k->range.begin <= offset && offset < k->range.end)
            return map_part_at(k, offset);
    }
    return n;
}

/* A mapping is read by itself, so that it has a meaning even where the text around it cannot be read. */
static void hover_mapping(hover *h, const token_list *tokens, uint32_t i, uint32_t offset)
{
    uint32_t open = editor_map_around(tokens, i);
    scope *s = index_find_scope(h->c->index, 0, offset);
    if (open == TOKEN_NONE || !s || tokens->items[open].match == TOKEN_NONE)
        return;
    uint32_t begin = tokens->items[open].end, end = tokens->items[tokens->items[open].match].begin;
    editor_silence silence = editor_silence_begin(h->c, s);
    const ast *tree =
        parse_mapping(mapping_parser_new(h->c->arena), source_text(h->c->sources, 0) + begin, end - begin, h->c->arena, silence.silent);
    const ast *part = tree && offset >= begin ? map_part_at(tree, offset - begin) : tree;
    bool infer = false;
    const mapping *m = part && !ast_is(part, AST_MAP_SLIDE) ? scope_mapping(s, part, &infer) : NULL;
    editor_silence_end(&silence);
    if (!m)
        return;
    h->range = part == tree ? (src_range){0, tokens->items[open].begin, end + 1}
                            : (src_range){0, begin + part->range.begin, begin + part->range.end};
    begin_part(h);
    put_code(h, arena_printf(h->c->arena, "m![%s]", mapping_text(m, h->c->arena)));
    strbuf_printf(&h->text, "\n\n%s", arena_count(h->c->arena, m->size, "position"));
    if (m->count > 1) {
        strbuf_puts(&h->text, " =");
        for (uint32_t f = 0; f < m->count; f++)
            strbuf_printf(&h->text, "%s %lld", f ? " ×" : "", (long long)m->factors[f].extent);
    }
    if (!mapping_is_full(m))
        strbuf_puts(&h->text, ", some of them padding");
}

static void hover_method(hover *h, const char *name, uint32_t offset)
{
    const value *receiver = index_find_value(h->c->index, 0, offset);
    stage_description d;
    for (size_t i = 0; stage_describe(i, (dialect)h->c->diags.words.release, receiver && receiver->kind != VALUE_ERROR ? receiver : NULL,
                                      h->c->arena, &d);
         i++)
        if (strcmp(d.name, name) == 0) {
            begin_part(h);
            put_code(h, d.signature);
            strbuf_printf(&h->text, "\n\n%s", d.summary);
            return;
        }
}

/* What the passes derived for the stage whose name or annotation this is. */
static void hover_tables(hover *h, uint32_t offset)
{
    emit_context e = {.arena = h->c->arena, .target = h->c->target, .line_of = compilation_line_of, .user = h->c};
    for (size_t k = 0; k < h->c->module->count; k++)
        for (size_t i = 0; i < h->c->module->kernels[k]->op_count; i++) {
            const op *o = h->c->module->kernels[k]->ops[i];
            bool here = o->range.file == 0 && o->range.begin <= offset && offset <= o->range.end && !o->repeated;
            const char *text = here ? tables_op_text(&e, o) : NULL;
            pass_context p = {.mappings = h->c->mappings, .arena = h->c->arena, .target = h->c->target, .diags = &h->c->diags};
            strbuf reads;
            strbuf_init(&reads, h->c->arena);
            bool explained = here && o->kind == IR_ALIGN && trf_sequencer_explain(&p, o, &reads);
            if (!text && !explained)
                continue;
            begin_part(h);
            strbuf_printf(&h->text, "```text\n%s%s```", text ? text : "", explained ? reads.text : "");
            return;
        }
}

static void hover_type(hover *h, const char *name)
{
    dtype type;
    for (tensor_kind kind = 0; kind < TENSOR_KIND_COUNT; kind++) {
        if (strcmp(name, tensor_kind_name(kind)) != 0)
            continue;
        strbuf s;
        strbuf_init(&s, h->c->arena);
        strbuf_printf(&s, "%s<Dtype", name);
        for (const component *p = tensor_kind_components(kind); *p < MAPPING_COMPONENTS; p++)
            strbuf_printf(&s, ", %s", component_parameter(*p));
        strbuf_puts(&s, ">");
        begin_part(h);
        put_code(h, s.text);
    }
    if (!dtype_by_name(name, &type))
        return;
    const dtype_row *row = dtype_row_of(type);
    begin_part(h);
    put_code(h, row->name);
    strbuf_printf(&h->text, "\n\n%u bits; products and sums are %s", row->bits, dtype_row_of(row->accumulates_in)->name);
}

typedef struct variant_hover {
    hover *h;
    const char *type, *name; /* NULL: all of them, as a list */
    size_t shown;
} variant_hover;

static void hover_variant(void *user, const char *name, const char *meaning)
{
    variant_hover *v = user;
    strbuf *text = &v->h->text;
    bool fields = meaning[0] == '{';
    if (v->name && strcmp(v->name, name) != 0)
        return;
    if (v->shown++ == 0 && !v->name) {
        begin_part(v->h);
        put_code(v->h, arena_printf(v->h->c->arena, "enum %s", v->type));
        strbuf_puts(text, "\n");
    }
    if (!v->name) {
        strbuf_printf(text, "\n- `%s%s%s`%s%s", name, fields ? " " : "", fields ? meaning : "", !fields && *meaning ? ": " : "",
                      fields ? "" : meaning);
        return;
    }
    begin_part(v->h);
    put_code(v->h, arena_printf(v->h->c->arena, "%s::%s%s%s", v->type, name, fields ? " " : "", fields ? meaning : ""));
    if (!fields && *meaning)
        strbuf_printf(text, "\n\n%s", meaning);
}

/* A value of an enumeration of a stage's arguments, or the enumeration. */
static void hover_enumeration(hover *h, const char *type, const char *name)
{
    variant_hover v = {h, type, name, 0};
    variant_visit(h->c->arena, type, hover_variant, &v);
}

static void hover_diagnostics(hover *h, uint32_t offset)
{
    expand_settle(h->c->expander, &h->c->diags);
    diag_list_sort(&h->c->diags);
    for (size_t i = 0; i < h->c->diags.count; i++) {
        const diag *d = h->c->diags.items[i];
        if (d->range.file != 0 || offset < d->range.begin || offset > d->range.end)
            continue;
        begin_part(h);
        if (h->range.begin == h->range.end)
            h->range = d->range;
        strbuf_printf(&h->text, "**%s**: %s\n\n%s", diag_row_of(d->id)->name, diag_row_of(d->id)->title, diag_row_of(d->id)->explanation);
    }
}

bool visa_hover(visa_compilation *c, uint32_t offset, visa_place *place, const char **markdown)
{
    if (!is_ready(c) || COMPILATION_STOPS(c))
        return false;
    hover h = {.c = c, .range = {0, offset, offset}};
    strbuf_init(&h.text, c->arena);
    token_list tokens = editor_tokens(c);
    uint32_t i = editor_token_at(&tokens, offset);
    src_range name;
    symbol *y = editor_symbol_at(c, &tokens, i, offset, &name);
    if (i != TOKEN_NONE)
        h.range = (src_range){0, tokens.items[i].begin, tokens.items[i].end};
    if (y) {
        h.range = name;
        hover_symbol(&h, y);
    } else if (i != TOKEN_NONE && tokens.items[i].kind == T_IDENT && i > 0 && tokens.items[i - 1].kind == '.') {
        hover_method(&h, token_text(source_text(c->sources, 0), &tokens.items[i], c->arena), offset);
        hover_tables(&h, offset);
    } else if (editor_map_around(&tokens, i) != TOKEN_NONE) {
        hover_mapping(&h, &tokens, i, offset);
    } else if (i != TOKEN_NONE && tokens.items[i].kind == T_IDENT) {
        const char *word = token_text(source_text(c->sources, 0), &tokens.items[i], c->arena), *type = enumeration_at(c, &tokens, i);
        hover_type(&h, word);
        hover_enumeration(&h, type ? type : word, type ? word : NULL);
    }
    hover_diagnostics(&h, offset);
    *place = editor_place(h.range);
    *markdown = h.text.text;
    return h.text.bytes > 0;
}
