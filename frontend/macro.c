#include "frontend/macro.h"

#include <ctype.h>
#include <string.h>

#include "frontend/parser.tab.h"
#include "support/budget.h"

typedef struct token_span {
    uint32_t begin, end; /* indexes of tokens */
} token_span;

typedef struct macro_rule {
    token_span pattern, body; /* inside their brackets */
} macro_rule;

struct macro {
    const char *name;
    src_range range; /* of the name */
    token_text_list text;
    macro_rule *rules;
    size_t count, capacity;
};

/* What a name of a pattern stands for. */
typedef struct binding {
    const char *name;
    src_range text;
    bool is_expression; /* of several tokens: it keeps together */
} binding;

/* All names of a pattern or of one pass of a repetition; `groups`: its repetitions, each with a set for every pass. */
typedef struct binding_set binding_set;
typedef struct repetition {
    binding_set *items;
    size_t count, capacity;
    token_span pattern; /* what is repeated: its names are the group's, passes or not */
} repetition;
struct binding_set {
    binding *items;
    size_t count, capacity;
    repetition *groups;
    size_t group_count, group_capacity;
};

/* ---- texts ---- */

void pieced_text_init(pieced_text *t, arena *a)
{
    *t = (pieced_text){0};
    strbuf_init(&t->text, a);
    strbuf_puts(&t->text, "");
}

void pieced_text_add(pieced_text *t, const source_map *sources, src_range from)
{
    text_piece p = {(uint32_t)t->text.bytes, from};
    if (from.end <= from.begin)
        return;
    budget_spend(t->text.arena, from.end - from.begin);
    ARENA_PUSH(t->text.arena, t->pieces, t->count, t->capacity, p);
    strbuf_append(&t->text, source_text(sources, from.file) + from.begin, from.end - from.begin);
}

void pieced_text_put(pieced_text *t, const char *text, src_range from)
{
    text_piece p = {(uint32_t)t->text.bytes, from};
    ARENA_PUSH(t->text.arena, t->pieces, t->count, t->capacity, p);
    strbuf_puts(&t->text, text);
}

bool macro_scan(const source_map *sources, src_range range, token_scanner *scanner, arena *a, token_text_list *out)
{
    size_t bytes = range.end - range.begin;
    char *copy = arena_alloc(a, bytes + 2);
    memcpy(copy, source_text(sources, range.file) + range.begin, bytes);
    diag_list unsaid; /* whoever read the file reported it */
    diag_list_init(&unsaid, a);
    *out = (token_text_list){.range = range, .source = copy};
    out->tokens = token_scan_free(scanner, copy, bytes, range.file, a, &unsaid);
    return unsaid.error_count == 0 && !out->tokens.too_deep;
}

static const token *at(const token_text_list *t, uint32_t i)
{
    return &t->tokens.items[i];
}

static src_range range_of(const token_text_list *t, token_span s)
{
    uint32_t begin = t->range.begin + at(t, s.begin)->begin;
    return (src_range){t->range.file, begin, s.end > s.begin ? t->range.begin + at(t, s.end - 1)->end : begin};
}

static bool is_word(const token_text_list *t, uint32_t i)
{
    unsigned char c = (unsigned char)t->source[at(t, i)->begin];
    return at(t, i)->end > at(t, i)->begin && (isalpha(c) || c == '_') && token_closer(at(t, i)) == 0; /* m![ opens brackets */
}

static const char *text_at(const token_text_list *t, uint32_t i, arena *a)
{
    return token_text(t->source, at(t, i), a);
}

bool macro_same_token(const token_text_list *a, uint32_t i, const token_text_list *b, uint32_t j)
{
    size_t bytes = at(a, i)->end - at(a, i)->begin;
    return bytes == at(b, j)->end - at(b, j)->begin && memcmp(a->source + at(a, i)->begin, b->source + at(b, j)->begin, bytes) == 0;
}

uint32_t macro_token_after(const token_text_list *t, uint32_t i)
{
    return token_closer(at(t, i)) != 0 && at(t, i)->match != TOKEN_NONE ? at(t, i)->match + 1 : i + 1;
}

/* ---- definitions ---- */

static diag *refuse_macro(diag_list *diags, src_range at_range, const char *name, const char *why)
{
    return diag_add(diags, E_MACRO, at_range, "`%s!` %s", name, why);
}

macro *macro_define(const ast *item, const source_map *sources, token_scanner *scanner, arena *a, diag_list *diags)
{
    macro *m = ARENA_NEW(a, macro);
    const ast *raw = ast_kid(item, 1);
    bool ok = macro_scan(sources, raw->range, scanner, a, &m->text);
    const token_text_list *t = &m->text;
    if (!ok || t->tokens.count < 5 || !is_word(t, 2)) /* macro_rules ! name { } and the end */
        return NULL;
    m->name = text_at(t, 2, a);
    m->range = range_of(t, (token_span){2, 3});
    uint32_t end = at(t, 3)->match;
    for (uint32_t i = 4; ok && i < end;) {
        uint32_t arrow = macro_token_after(t, i), open = arrow + 1;
        ok =
            token_closer(at(t, i)) != 0 && arrow < end && at(t, arrow)->kind == T_FAT_ARROW && open < end && token_closer(at(t, open)) != 0;
        if (!ok)
            break;
        macro_rule r = {{i + 1, arrow - 1}, {open + 1, at(t, open)->match}};
        ARENA_PUSH(a, m->rules, m->count, m->capacity, r);
        i = macro_token_after(t, open);
        if (i < end && at(t, i)->kind == ';')
            i++;
    }
    if (ok && m->count > 0)
        return m;
    diag *d = refuse_macro(diags, m->range, m->name, "has no rule that can be read");
    diag_help(diags, d, "a rule is `(pattern) => { text };`");
    return NULL;
}

const char *macro_name(const macro *m)
{
    return m->name;
}

/* ---- matching ---- */

typedef struct matcher {
    const token_text_list *pattern, *input;
    arena *arena;
    const char *unknown; /* a kind of fragment that is not read */
    src_range unknown_at;
} matcher;

/* `$( .. ) separator op` at the `$`. */
typedef struct repeat_form {
    token_span inner;
    uint32_t separator; /* index of the token; TOKEN_NONE: none */
    char op;
    uint32_t end; /* index after the operator */
} repeat_form;

static bool read_repeat(const token_text_list *t, uint32_t dollar, uint32_t end, repeat_form *out)
{
    uint32_t open = dollar + 1;
    if (at(t, dollar)->kind != '$' || open >= end || at(t, open)->kind != '(')
        return false;
    uint32_t i = at(t, open)->match + 1;
    *out = (repeat_form){.inner = {open + 1, at(t, open)->match}, .separator = TOKEN_NONE};
    for (int tries = 0; tries < 2 && i < end; tries++, i++) {
        int kind = at(t, i)->kind;
        if (kind == '*' || kind == '+' || kind == '?') {
            out->op = (char)kind;
            out->end = i + 1;
            return true;
        }
        out->separator = i;
    }
    return false;
}

/* Where an expression ends: in front of a `,`, `;` or `=>` of its own level, counted < > left out. */
static uint32_t expression_end(const token_text_list *t, uint32_t i, uint32_t end)
{
    int angles = 0;
    for (; i < end; i = macro_token_after(t, i)) {
        int kind = at(t, i)->kind;
        bool opens = kind == '<' || kind == T_LT_LT;
        if (angles == 0 && (kind == ',' || kind == ';' || kind == T_FAT_ARROW))
            break;
        if (opens && (angles > 0 || (i > 0 && at(t, i - 1)->kind == T_COLON2)))
            angles++;
        else if ((kind == '>' || kind == T_GT_GT || kind == T_GT_EQ) && angles > 0)
            angles--;
    }
    return i;
}

/* The index after the `>` of the `<` there. */
static uint32_t angles_end(const token_text_list *t, uint32_t i, uint32_t end)
{
    int angles = 0;
    while (i < end) {
        int kind = at(t, i)->kind;
        angles += kind == '<' || kind == T_LT_LT ? 1 : kind == '>' || kind == T_GT_GT || kind == T_GT_EQ ? -1 : 0;
        i = macro_token_after(t, i);
        if (angles == 0)
            break;
    }
    return i;
}

static bool is_kind(const token_text_list *t, uint32_t i, uint32_t end, int kind)
{
    return i < end && at(t, i)->kind == kind;
}

/* The index after the path that begins there, generics included; the same index: there is none. */
static uint32_t path_end(const token_text_list *t, uint32_t i, uint32_t end)
{
    uint32_t begin = i;
    for (bool first = true;; first = false) {
        if (is_kind(t, i, end, T_COLON2))
            i++;
        else if (!first)
            return i;
        if (i < end && is_word(t, i))
            i++;
        else if (!is_kind(t, i, end, '<'))
            return begin;
        if (is_kind(t, i, end, '<') || is_kind(t, i, end, T_LT_LT)) /* A<B>, ::<B>, <A as B> */
            i = angles_end(t, i, end);
    }
}

/* The same of a type. */
static uint32_t type_end(const token_text_list *t, uint32_t i, uint32_t end)
{
    uint32_t begin = i;
    for (;;) {
        for (; i < end; i++) { /* what stands in front of a type: & 'a mut, *const, dyn, impl, unsafe */
            int kind = at(t, i)->kind;
            if (kind != '&' && kind != T_AND_AND && kind != '*' && kind != T_LIFETIME && kind != T_MUT && kind != T_CONST &&
                kind != T_DYN && kind != T_IMPL && kind != T_UNSAFE)
                break;
        }
        uint32_t stop = path_end(t, i, end);
        if (stop == i && i < end && token_closer(at(t, i)) != 0 && at(t, i)->kind != '{') /* a tuple, an array, a mapping */
            return macro_token_after(t, i);
        if (stop == i)
            return is_kind(t, i, end, '!') ? i + 1 : begin;
        if (is_kind(t, stop, end, '!') && stop + 1 < end && token_closer(at(t, stop + 1)) != 0)
            return macro_token_after(t, stop + 1);
        if (is_kind(t, stop, end, '(')) /* fn(A) -> B */
            stop = macro_token_after(t, stop);
        if (!is_kind(t, stop, end, T_ARROW) && !is_kind(t, stop, end, '+'))
            return stop;
        i = stop + 1;
    }
}

/* The index after a pattern: in front of `=>`, `=`, `,`, `if`, `in` of its own level, and of `|` where there is only one. */
static uint32_t pattern_end(const token_text_list *t, uint32_t i, uint32_t end, bool one)
{
    for (; i < end; i = macro_token_after(t, i)) {
        int kind = at(t, i)->kind;
        if (kind == T_FAT_ARROW || kind == '=' || kind == ',' || kind == T_IF || kind == T_IN || kind == ';' || (one && kind == '|'))
            break;
    }
    return i;
}

/* The index after an item: after its block, or its `;`. */
static uint32_t item_end(const token_text_list *t, uint32_t i, uint32_t end)
{
    while (is_kind(t, i, end, '#') && i + 1 < end && token_closer(at(t, i + 1)) != 0)
        i = macro_token_after(t, i + 1);
    bool valued = false; /* the braces of a value end no item */
    for (; i < end; i = macro_token_after(t, i)) {
        int kind = at(t, i)->kind;
        valued = valued || kind == '=';
        if (kind == ';')
            return i + 1;
        if (!valued && (kind == '{' || kind == T_AXES_OPEN) && !is_kind(t, i > 0 ? i - 1 : i, end, '<') &&
            !is_kind(t, i > 0 ? i - 1 : i, end, ','))
            return macro_token_after(t, i);
    }
    return i;
}

static bool begins_item(int kind)
{
    static const int kinds[] = {'#',    T_PUB,   T_FN,   T_CONST,  T_TYPE,  T_MOD,    T_USE,    T_STRUCT,
                                T_ENUM, T_TRAIT, T_IMPL, T_STATIC, T_ASYNC, T_UNSAFE, T_EXTERN, T_AXES_OPEN};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

/* A statement without the `;` that ends it. */
static uint32_t statement_end(const token_text_list *t, uint32_t i, uint32_t end)
{
    bool item = begins_item(at(t, i)->kind);
    while (i < end && at(t, i)->kind != ';' && !(item && at(t, i)->kind == '{'))
        i = macro_token_after(t, i);
    return item && is_kind(t, i, end, '{') ? macro_token_after(t, i) : i;
}

static bool is_literal(int kind)
{
    return kind == T_INT || kind == T_FLOAT || kind == T_STRING || kind == T_CHAR || kind == T_TRUE || kind == T_FALSE;
}

/* `>=`, `>>`, `<<` and `&&` are two tokens, and one token tree. */
static bool is_joined(const token_text_list *t, uint32_t i, uint32_t end)
{
    int kind = at(t, i)->kind;
    return (kind == T_GT_EQ || kind == T_GT_GT || kind == T_LT_LT || kind == T_AND_AND) && i + 1 < end &&
           at(t, i)->end == at(t, i + 1)->begin;
}

/* The index after the fragment that begins there; the same index: there is none. */
static uint32_t fragment_end(matcher *m, const char *kind, src_range kind_at, uint32_t i, uint32_t end)
{
    const token_text_list *t = m->input;
    if (i >= end)
        return i;
    if (strcmp(kind, "ident") == 0)
        return is_word(t, i) ? i + 1 : i;
    if (strcmp(kind, "meta") == 0) /* all of what stands in the brackets of an attribute */
        return is_word(t, i) ? end : i;
    if (strcmp(kind, "vis") == 0)
        return at(t, i)->kind == T_PUB ? (at(t, i + 1)->kind == '(' ? macro_token_after(t, i + 1) : i + 1) : i;
    if (strcmp(kind, "lifetime") == 0)
        return at(t, i)->kind == T_LIFETIME ? i + 1 : i;
    if (strcmp(kind, "tt") == 0)
        return is_joined(t, i, end) ? i + 2 : macro_token_after(t, i);
    if (strcmp(kind, "block") == 0)
        return at(t, i)->kind == '{' ? macro_token_after(t, i) : i;
    if (strcmp(kind, "literal") == 0) {
        uint32_t number = at(t, i)->kind == '-' ? i + 1 : i;
        return number < end && is_literal(at(t, number)->kind) ? number + 1 : i;
    }
    if (strcmp(kind, "expr") == 0)
        return expression_end(t, i, end);
    if (strcmp(kind, "ty") == 0)
        return type_end(t, i, end);
    if (strcmp(kind, "path") == 0)
        return path_end(t, i, end);
    if (strcmp(kind, "pat") == 0 || strcmp(kind, "pat_param") == 0)
        return pattern_end(t, i, end, kind[3] != '\0');
    if (strcmp(kind, "item") == 0)
        return begins_item(at(t, i)->kind) ? item_end(t, i, end) : i;
    if (strcmp(kind, "stmt") == 0)
        return statement_end(t, i, end);
    if (!m->unknown) {
        m->unknown = kind;
        m->unknown_at = kind_at;
    }
    return i;
}

static bool match_some(matcher *m, token_span pattern, uint32_t *next, uint32_t end, binding_set *out);

static bool match_repeat(matcher *m, const repeat_form *r, uint32_t *next, uint32_t end, binding_set *out)
{
    repetition g = {.pattern = r->inner};
    for (;;) {
        uint32_t i = *next;
        binding_set pass = {0};
        if (r->separator != TOKEN_NONE && g.count > 0) {
            if (i >= end || !macro_same_token(m->pattern, r->separator, m->input, i))
                break;
            i++;
        }
        uint32_t before = i;
        if (!match_some(m, r->inner, &i, end, &pass) || i == before)
            break;
        ARENA_PUSH(m->arena, g.items, g.count, g.capacity, pass);
        *next = i;
        if (r->op == '?')
            break;
    }
    ARENA_PUSH(m->arena, out->groups, out->group_count, out->group_capacity, g);
    return g.count > 0 || r->op != '+';
}

static bool match_fragment(matcher *m, uint32_t dollar, uint32_t *next, uint32_t end, binding_set *out)
{
    const char *kind = text_at(m->pattern, dollar + 3, m->arena);
    uint32_t stop = fragment_end(m, kind, range_of(m->pattern, (token_span){dollar + 3, dollar + 4}), *next, end);
    if (stop == *next && strcmp(kind, "vis") != 0) /* which may be empty */
        return false;
    binding b = {text_at(m->pattern, dollar + 1, m->arena), range_of(m->input, (token_span){*next, stop}),
                 strcmp(kind, "expr") == 0 && stop > *next + 1};
    ARENA_PUSH(m->arena, out->items, out->count, out->capacity, b);
    *next = stop;
    return true;
}

/* Brackets of the pattern, at `open`, stand for brackets of the input, all of what is in them. */
static bool match_brackets(matcher *m, uint32_t open, uint32_t *next, uint32_t end, binding_set *out)
{
    if (*next >= end || !macro_same_token(m->pattern, open, m->input, *next))
        return false;
    uint32_t close = at(m->input, *next)->match, i = *next + 1;
    if (!match_some(m, (token_span){open + 1, at(m->pattern, open)->match}, &i, close, out) || i != close)
        return false;
    *next = close + 1;
    return true;
}

/* A front of the input, from *next on, that the whole pattern matches. A separator after the last pass is left to what follows. */
static bool match_some(matcher *m, token_span pattern, uint32_t *next, uint32_t end, binding_set *out)
{
    const token_text_list *p = m->pattern;
    bool ok = true;
    budget_enter(m->arena);
    for (uint32_t i = pattern.begin; i < pattern.end && ok;) {
        repeat_form r;
        budget_spend(m->arena, 1);
        if (read_repeat(p, i, pattern.end, &r)) {
            ok = match_repeat(m, &r, next, end, out);
            i = r.end;
        } else if (at(p, i)->kind == '$' && i + 3 < pattern.end && is_word(p, i + 1) && at(p, i + 2)->kind == ':') {
            ok = match_fragment(m, i, next, end, out);
            i += 4;
        } else if (token_closer(at(p, i)) != 0) {
            ok = match_brackets(m, i, next, end, out);
            i = at(p, i)->match + 1;
        } else {
            ok = *next < end && macro_same_token(p, i, m->input, *next);
            ++*next;
            i++;
        }
    }
    budget_leave(m->arena);
    return ok;
}

/* ---- writing ---- */

typedef struct scope_of_names {
    const binding_set *set;
    const struct scope_of_names *outer;
} scope_of_names;

typedef struct transcriber {
    const macro *macro;
    const source_map *sources;
    arena *arena;
    diag_list *diags;
    src_range call;
    pieced_text *out;
    bool failed;
} transcriber;

static const binding *find_binding(const scope_of_names *s, const char *name)
{
    for (; s; s = s->outer)
        for (size_t i = 0; i < s->set->count; i++)
            if (strcmp(s->set->items[i].name, name) == 0)
                return &s->set->items[i];
    return NULL;
}

static bool mentions(const transcriber *w, token_span s, const char *name)
{
    const token_text_list *t = &w->macro->text;
    for (uint32_t i = s.begin; i + 1 < s.end; i++)
        if (at(t, i)->kind == '$' && is_word(t, i + 1) && strcmp(text_at(t, i + 1, w->arena), name) == 0)
            return true;
    return false;
}

/* The repetition that gives the name its meanings here; NULL: it has one meaning, or none. A pass of a repetition is an inner level:
 * what repeats in it is found there, and not once more in the repetition that it is a pass of. */
static const repetition *find_group(const transcriber *w, const scope_of_names *s, const char *name)
{
    for (; s; s = s->outer) {
        for (size_t i = 0; i < s->set->count; i++)
            if (strcmp(s->set->items[i].name, name) == 0)
                return NULL;
        for (size_t g = 0; g < s->set->group_count; g++)
            if (mentions(w, s->set->groups[g].pattern, name))
                return &s->set->groups[g];
    }
    return NULL;
}

enum { ZIPPED_MAX = 8 };

/* The repetitions that go on together here: those of the names of the body. */
static size_t find_groups(const transcriber *w, const scope_of_names *s, token_span body, const repetition **out)
{
    const token_text_list *t = &w->macro->text;
    size_t count = 0;
    for (uint32_t i = body.begin; i + 1 < body.end && count < ZIPPED_MAX; i++) {
        bool named = at(t, i)->kind == '$' && is_word(t, i + 1);
        const repetition *g = named ? find_group(w, s, text_at(t, i + 1, w->arena)) : NULL;
        size_t known = 0;
        while (known < count && out[known] != g)
            known++;
        if (g && known == count)
            out[count++] = g;
    }
    return count;
}

static void write_span(transcriber *w, token_span body, const scope_of_names *names);

static void refuse_repeat(transcriber *w, const repeat_form *r, const char *why, const char *help)
{
    diag *d = refuse_macro(w->diags, range_of(&w->macro->text, r->inner), w->macro->name, why);
    diag_help(w->diags, d, "%s", help);
    w->failed = true;
}

static void write_repeat(transcriber *w, const repeat_form *r, const scope_of_names *names)
{
    const repetition *groups[ZIPPED_MAX];
    size_t count = find_groups(w, names, r->inner, groups);
    if (count == 0) {
        refuse_repeat(w, r, "repeats nothing here", "name something in it that the pattern repeats");
        return;
    }
    for (size_t g = 1; g < count; g++)
        if (groups[g]->count != groups[0]->count) {
            refuse_repeat(w, r, "repeats two lists of different lengths together", "give as many of one as of the other");
            return;
        }
    for (size_t i = 0; i < groups[0]->count && !w->failed; i++) {
        scope_of_names inner[ZIPPED_MAX];
        for (size_t g = 0; g < count; g++)
            inner[g] = (scope_of_names){&groups[g]->items[i], g ? &inner[g - 1] : names};
        if (i > 0 && r->separator != TOKEN_NONE)
            pieced_text_add(w->out, w->sources, range_of(&w->macro->text, (token_span){r->separator, r->separator + 1}));
        strbuf_puts(&w->out->text, " ");
        write_span(w, r->inner, &inner[count - 1]);
    }
}

static void write_binding(transcriber *w, const binding *b)
{
    strbuf_puts(&w->out->text, b->is_expression ? " (" : " ");
    pieced_text_add(w->out, w->sources, b->text);
    strbuf_puts(&w->out->text, b->is_expression ? ") " : " ");
}

/* The text between two placeholders goes over as it is, blanks included. */
static void write_span(transcriber *w, token_span body, const scope_of_names *names)
{
    const token_text_list *t = &w->macro->text;
    uint32_t from = body.begin;
    budget_enter(w->arena);
    for (uint32_t i = body.begin; i < body.end && !w->failed;) {
        repeat_form r;
        budget_spend(w->arena, 1);
        bool repeats = read_repeat(t, i, body.end, &r), named = !repeats && at(t, i)->kind == '$' && i + 1 < body.end && is_word(t, i + 1);
        const binding *b = named ? find_binding(names, text_at(t, i + 1, w->arena)) : NULL;
        bool crate = named && at(t, i + 1)->kind == T_CRATE;
        if (!repeats && !b && !crate) {
            i++;
            continue;
        }
        if (i > from)
            pieced_text_add(w->out, w->sources, range_of(t, (token_span){from, i}));
        if (repeats)
            write_repeat(w, &r, names);
        else if (b)
            write_binding(w, b);
        else
            strbuf_puts(&w->out->text, " crate ");
        i = from = repeats ? r.end : i + 2;
    }
    if (from < body.end)
        pieced_text_add(w->out, w->sources, range_of(t, (token_span){from, body.end}));
    budget_leave(w->arena);
}

bool macro_expand(const macro *m, const ast *call, const source_map *sources, token_scanner *scanner, arena *a, diag_list *diags,
                  pieced_text *out)
{
    token_text_list input;
    if (!macro_scan(sources, ast_kid(call, 0)->range, scanner, a, &input) || input.tokens.count < 2 || token_closer(at(&input, 0)) == 0)
        return false;
    matcher x = {.pattern = &m->text, .input = &input, .arena = a};
    for (size_t i = 0; i < m->count; i++) {
        binding_set set = {0};
        uint32_t next = 1, end = at(&input, 0)->match;
        if (!match_some(&x, m->rules[i].pattern, &next, end, &set) || next != end)
            continue;
        transcriber w = {.macro = m, .sources = sources, .arena = a, .diags = diags, .call = call->range, .out = out};
        write_span(&w, m->rules[i].body, &(scope_of_names){&set, NULL});
        return !w.failed;
    }
    diag *d;
    if (x.unknown) {
        d = diag_add(diags, E_MACRO, x.unknown_at, "a fragment `%s` is not read", x.unknown);
        diag_help(diags, d, "ident, ty, expr, literal, tt, path, block, lifetime, meta, vis, pat, item and stmt are");
        return false;
    }
    d = refuse_macro(diags, call->name_range, m->name, "has no rule for these arguments");
    diag_note(diags, d, m->range, "it is defined here");
    diag_help(diags, d, "write the arguments as a pattern of it has them");
    return false;
}
