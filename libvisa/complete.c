/* include/visa_editor.h: what may be written at a place.
 *
 * The one idea: the word that is being written is replaced by a name that nobody uses, and closed so that the text around it can be
 * read; analysis then notes what that name is asked of. */
#include <string.h>

#include "frontend/parser.tab.h"
#include "frontend/stage.h"
#include "frontend/variant.h"
#include "libvisa/editor.h"
#include "support/budget.h"
#include "support/order.h"

static const char marker[] = "visa_completion_here";

typedef struct patched {
    strbuf text;
    uint32_t begin; /* of the marker */
} patched;

typedef struct candidate {
    visa_completion item;
    size_t order; /* of two equal labels the first one counts: it shadows the other */
} candidate;

typedef struct list {
    visa_compilation *c;
    candidate *items;
    size_t count, capacity;
    uint32_t offset;
    bool axes, aliases, values; /* which names */
    bool escaped;               /* an alias is written in { } */
} list;

static bool is_word(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* The closing brackets that are missing in front of the place, up to the block that it is in. */
static const char *missing_closers(const char *text, size_t bytes, arena *a)
{
    diag_list told;
    diag_list_init(&told, a);
    char *copy = arena_alloc(a, bytes + 2);
    memcpy(copy, text, bytes);
    token_list tokens = token_scan_text(token_scanner_new(a), copy, bytes, 0, false, a, &told);
    strbuf out;
    strbuf_init(&out, a);
    for (size_t i = tokens.count; i-- > 0;) {
        const token *t = &tokens.items[i];
        char closer = token_closer(t);
        bool open = closer && (t->match == TOKEN_NONE || (tokens.items[t->match].flags & TOKEN_SUPPLIED));
        if (open && closer == '}')
            break;
        if (open)
            strbuf_append(&out, &closer, 1);
    }
    return out.text;
}

static patched patch(const char *text, size_t bytes, uint32_t offset, int attempt, arena *a)
{
    patched p;
    uint32_t begin = offset, end = offset;
    strbuf_init(&p.text, a);
    while (begin > 0 && is_word(text[begin - 1]))
        begin--;
    while (end < bytes && is_word(text[end]))
        end++;
    p.begin = begin;
    strbuf_append(&p.text, text, begin);
    strbuf_puts(&p.text, marker);
    uint32_t next = end;
    while (next < bytes && (text[next] == ' ' || text[next] == '\n' || text[next] == '\t' || text[next] == '\r'))
        next++;
    bool called =
        next < bytes && (text[next] == '(' || (text[next] == ':' && next + 2 < bytes && text[next + 1] == ':' && text[next + 2] == '<'));
    uint32_t before = begin;
    while (before > 0 && strchr(" \n\t\r", text[before - 1]))
        before--;
    if (before > 0 && text[before - 1] == '.' && !called)
        strbuf_puts(&p.text, "()");
    if (attempt == 2)
        strbuf_puts(&p.text, missing_closers(text, begin, a));
    if (attempt > 0)
        strbuf_puts(&p.text, ";");
    strbuf_append(&p.text, text + end, bytes - end);
    return p;
}

/* ---- candidates ---- */

static void add(list *l, const char *label, visa_name_kind kind, const char *detail)
{
    candidate one = {{label, kind, detail}, l->count};
    ARENA_PUSH(l->c->arena, l->items, l->count, l->capacity, one);
}

static void add_name(void *user, symbol *named)
{
    list *l = user;
    symbol *y = symbol_meant(named);
    bool wanted = y->kind == SYMBOL_AXIS ? l->axes : y->kind == SYMBOL_ALIAS ? l->aliases : l->values;
    uint32_t known = y->kind == SYMBOL_VARIABLE && y->node ? y->node->range.end : y->range.begin;
    bool later = y->kind == SYMBOL_VARIABLE && y->range.file == 0 && known > l->offset;
    if (!wanted || later || strcmp(named->name, marker) == 0)
        return;
    const char *label = l->escaped && y->kind == SYMBOL_ALIAS ? arena_printf(l->c->arena, "{%s}", named->name) : named->name;
    add(l, label, editor_kind(y), editor_detail(l->c, y));
}

static void add_words(list *l, const char *const *words, visa_name_kind kind)
{
    for (; *words; words++)
        add(l, *words, kind, "");
}

static void add_methods(list *l, const value *receiver)
{
    static const char *const fields[] = {"main", "sub", "tdma", "pdma", NULL};
    static const char *const sequence[] = {"iter", "enumerate", "rev", "step_by", "len", NULL};
    if (receiver && receiver->kind == VALUE_CONTEXT)
        add_words(l, fields, VISA_NAME_FIELD);
    if (receiver && (receiver->kind == VALUE_RANGE || receiver->kind == VALUE_LIST))
        add_words(l, sequence, VISA_NAME_METHOD);
    stage_description d;
    bool known = receiver && receiver->kind != VALUE_ERROR;
    for (size_t i = 0; stage_describe(i, (dialect)l->c->diags.words.release, known ? receiver : NULL, l->c->arena, &d); i++)
        add(l, d.name, VISA_NAME_METHOD, d.signature);
}

/* Is the token in the body of a `#[stream]` function? */
static bool in_stream_program(const visa_compilation *c, const token_list *tokens, uint32_t i)
{
    const token *t = tokens->items;
    while (t[i].parent != TOKEN_NONE)
        i = t[i].parent;
    while (i > 0 && t[i].kind != T_FN && t[i].kind != ';')
        i--;
    while (t[i].kind == T_FN && i > 0 && t[i - 1].kind == T_PUB)
        i--;
    for (; i > 0 && t[i - 1].kind == ']' && t[i - 1].match != TOKEN_NONE && t[i - 1].match > 0 && t[t[i - 1].match - 1].kind == '#';
         i = t[i - 1].match - 1) {
        const token *word = &t[t[i - 1].match + 1];
        if (token_is_word(source_text(c->sources, 0), word, "stream"))
            return true;
    }
    return false;
}

static bool is_listed(const char *name, const char *const *words)
{
    while (*words && strcmp(name, *words) != 0)
        words++;
    return *words != NULL;
}

/* Operators of stream programs, and what is shown of them. */
static void add_operators(list *l)
{
    static const char *const functions[] = {"source", "sink", "once", "reassemble", "eager_merge", NULL}; /* called by their names */
    static const char *const settings[] = {"compute", "depth", "write_back", "assume", NULL};
    static const struct {
        const char *name, *summary;
    } rows[] = {
#define STEP_OP(symbol, code, name, least, most, outputs, summary) {name, summary},
#include "target/step/step.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!is_listed(rows[i].name, functions))
            add(l, rows[i].name, VISA_NAME_METHOD, rows[i].summary);
    add_words(l, settings, VISA_NAME_METHOD);
}

static void add_types(list *l)
{
    for (tensor_kind kind = 0; kind < TENSOR_KIND_COUNT; kind++)
        add(l, tensor_kind_name(kind), VISA_NAME_TYPE, "");
    for (dtype t = 0; t < DTYPE_COUNT; t++)
        add(l, dtype_row_of(t)->name, VISA_NAME_TYPE, arena_printf(l->c->arena, "%u bits", dtype_row_of(t)->bits));
}

static void add_variant(void *user, const char *name, const char *meaning)
{
    add(user, name, VISA_NAME_CONST, meaning);
}

/* After `name::`. */
static void add_members(list *l, scope *s, const char *name)
{
    static const char *const size[] = {"SIZE", NULL};
    if (scope_find(s, TYPE_NAMES, name))
        add_words(l, size, VISA_NAME_CONST);
    variant_visit(l->c->arena, name, add_variant, l);
    symbol *inner = scope_find(s, MODULE_NAMES, name);
    if (inner && inner->inner)
        scope_visit(inner->inner, add_name, l);
}

static void add_everything(list *l, scope *s)
{
    static const char *const words[] = {"axes!", "m![]", "fn",    "let", "mut", "for", "in",     "if",
                                        "else",  "type", "const", "mod", "use", "pub", "unsafe", NULL};
    scope_visit(s, add_name, l);
    add_types(l);
    add(l, "Context", VISA_NAME_TYPE, "");
    add(l, "TrfAddress", VISA_NAME_TYPE, "");
    add(l, "AccumulationKind", VISA_NAME_TYPE, "");
    add(l, "SwitchConfig", VISA_NAME_TYPE, "");
    add_words(l, words, VISA_NAME_KEYWORD);
}

static int by_label(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return order_then(strcmp(x->item.label, y->item.label), ORDER(x->order, y->order));
}

static void keep_sorted(list *l)
{
    order_sort(l->items, l->count, sizeof *l->items, by_label);
    visa_completion *kept = ARENA_ARRAY(l->c->arena, visa_completion, l->count);
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        if (count == 0 || strcmp(kept[count - 1].label, l->items[i].item.label) != 0)
            kept[count++] = l->items[i].item;
    l->c->completions = kept;
    l->c->completion_count = count;
}

static void complete(visa_compilation *c, uint32_t offset)
{
    list l = {.c = c, .offset = offset, .axes = true, .aliases = true, .values = true};
    token_list tokens = editor_tokens(c);
    uint32_t i = editor_token_at(&tokens, offset);
    scope *s = index_find_scope(c->index, 0, offset);
    if (i == TOKEN_NONE || !s || tokens.items[i].kind != T_IDENT)
        return; /* in a comment or a string */
    int before = i > 0 ? tokens.items[i - 1].kind : 0;
    if (before == '.' && in_stream_program(c, &tokens, i)) {
        add_operators(&l);
    } else if (before == '.') {
        add_methods(&l, index_find_value(c->index, 0, offset));
    } else if (before == T_COLON2) {
        if (i > 1 && tokens.items[i - 2].kind == T_IDENT)
            add_members(&l, s, token_text(source_text(c->sources, 0), &tokens.items[i - 2], c->arena));
    } else if (tokens.items[i].flags & TOKEN_IN_MAP) {
        l.values = false;
        l.escaped = true;
        scope_visit(s, add_name, &l);
    } else {
        add_everything(&l, s);
    }
    keep_sorted(&l);
}

static visa_compilation *attempt(const char *name, const patched *p, visa_options options)
{
    options.editor = true;
    visa_compilation *c = visa_compile(name, p->text.text, p->text.bytes, &options);
    if (!c || !c->module || COMPILATION_STOPS(c))
        return c;
    complete(c, p->begin);
    return c;
}

/* Was the method's receiver understood, or was there none to understand? */
static bool is_understood(visa_compilation *c, uint32_t marker_begin)
{
    if (!c || !c->module || COMPILATION_STOPS(c))
        return true;
    token_list tokens = editor_tokens(c);
    uint32_t i = editor_token_at(&tokens, marker_begin);
    return i == TOKEN_NONE || i == 0 || tokens.items[i - 1].kind != '.' || index_find_value(c->index, 0, marker_begin);
}

visa_compilation *visa_complete(const char *name, const char *text, size_t bytes, uint32_t offset, const visa_options *options)
{
    enum { ATTEMPTS = 3 };
    visa_options chosen = options ? *options : (visa_options){0};
    uint64_t most = chosen.max_steps ? chosen.max_steps : COMPILE_STEPS_MAX;
    arena *a = arena_new();
    visa_compilation *volatile c = NULL;
    if (!a || (budget_limit(a, most, UINT64_MAX, chosen.max_milliseconds), setjmp(*arena_guard(a)))) {
        arena_free(a);
        visa_free(c);
        return NULL;
    }
    for (volatile int i = 0; i < ATTEMPTS; i++) {
        patched p = patch(text, bytes, offset < bytes ? offset : (uint32_t)bytes, i, a);
        visa_free(c);
        c = NULL;
        chosen.max_milliseconds = budget_milliseconds_left(a);
        chosen.max_steps = most == UINT64_MAX ? most : most - arena_budget(a)->steps + 1;
        c = attempt(name, &p, chosen);
        if (is_understood(c, p.begin) || c->gave_up)
            break;
        budget_spend(a, visa_steps(c));
    }
    if (c)
        arena_budget(c->arena)->steps += arena_budget(a)->steps;
    arena_free(a);
    return c;
}

bool visa_completion_at(const visa_compilation *c, size_t i, visa_completion *out)
{
    if (c->exhausted || i >= c->completion_count)
        return false;
    *out = c->completions[i];
    return true;
}
