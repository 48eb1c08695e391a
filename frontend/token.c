#include "frontend/token.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/parser.tab.h"

#include "frontend/lexer.yy.h"
#include "support/order.h"

enum { KEYWORD_BYTES = 8 }; /* of the longest one */

/* Sorted by name: keyword_named searches it by halves. */
static const struct keyword {
    char name[KEYWORD_BYTES]; /* filled up with NULs */
    int kind;
} keywords[] = {
    {"Self", T_SELF_TYPE}, {"_", T_UNDERSCORE},      {"as", T_AS},         {"async", T_ASYNC}, {"await", T_AWAIT},   {"break", T_BREAK},
    {"const", T_CONST},    {"continue", T_CONTINUE}, {"crate", T_CRATE},   {"dyn", T_DYN},     {"else", T_ELSE},     {"enum", T_ENUM},
    {"extern", T_EXTERN},  {"false", T_FALSE},       {"fn", T_FN},         {"for", T_FOR},     {"if", T_IF},         {"impl", T_IMPL},
    {"in", T_IN},          {"let", T_LET},           {"loop", T_LOOP},     {"match", T_MATCH}, {"mod", T_MOD},       {"move", T_MOVE},
    {"mut", T_MUT},        {"pub", T_PUB},           {"return", T_RETURN}, {"self", T_SELF},   {"static", T_STATIC}, {"struct", T_STRUCT},
    {"super", T_SUPER},    {"trait", T_TRAIT},       {"true", T_TRUE},     {"type", T_TYPE},   {"unsafe", T_UNSAFE}, {"use", T_USE},
    {"where", T_WHERE},    {"while", T_WHILE},
};

char token_closer(const token *t)
{
    switch (t->kind) {
    case '(': return ')';
    case '[': return ']';
    case '{': return '}';
    case T_MAP_OPEN:
    case T_AXES_OPEN: return t->closer;
    default: return 0;
    }
}

bool token_in_map(const token_scanner *s)
{
    return s->open_count > 0 && s->open[s->open_count - 1].map;
}

static uint32_t last_end(const token_scanner *s)
{
    return s->list->count > 0 ? s->list->items[s->list->count - 1].end : 0;
}

/* Is it the first token of its line? Then *indent is the number of bytes in front of it. */
static bool begins_line(const token_scanner *s, uint32_t begin, uint32_t *indent)
{
    uint32_t gap = last_end(s), line = begin;
    while (line > gap && s->source[line - 1] != '\n')
        line--;
    *indent = begin - line;
    return line > gap || gap == 0;
}

/* Where a closing bracket is missing is seen by what follows it: as far out as the line of the bracket that is still open. */
static void look_at_indent(token_scanner *s, uint32_t begin)
{
    uint32_t indent;
    if (!begins_line(s, begin, &indent))
        return;
    s->indent = indent;
    token_bracket *open = s->open_count > 0 ? &s->open[s->open_count - 1] : NULL;
    if (!open || open->outdent || s->indent > open->indent)
        return;
    open->outdent = last_end(s) - 1;
    if (open->closer == '}' && s->outdent == 0) {
        s->outdent = open->outdent;
        s->outdent_block = open->index;
    }
}

static void look_at_list(token_bracket *open, int kind)
{
    if (kind == ',')
        open->comma = open->comma || open->angles <= 0;
    else if (kind == '<' || kind == T_LT_LT)
        open->angles++;
    else if (kind == '>' || kind == T_GT_GT || kind == T_GT_EQ)
        open->angles--;
}

static inline token *append(token_scanner *s, int kind, uint32_t begin, uint32_t end)
{
    token *t = &s->list->items[s->list->count++];
    *t = (token){.kind = (uint16_t)kind, .begin = begin, .end = end, .match = TOKEN_NONE, .parent = TOKEN_NONE};
    if (s->open_count > 0) {
        token_bracket *open = &s->open[s->open_count - 1];
        t->parent = open->index;
        t->flags = open->map ? TOKEN_IN_MAP : 0;
        look_at_list(open, kind);
    }
    if (kind == ';')
        s->fn_head = false;
    return t;
}

static __attribute__((noinline)) token *append_after_gap(token_scanner *s, int kind, uint32_t begin, uint32_t end)
{
    token_list *l = s->list;
    if (l->count == l->capacity) {
        size_t capacity = 2 * l->capacity;
        l->items = arena_grow(s->arena, l->items, l->count, capacity, sizeof *l->items);
        l->capacity = capacity;
    }
    if (!s->outermost)
        look_at_indent(s, begin);
    return append(s, kind, begin, end);
}

/* A token that follows another one at once is not the first of its line. */
token *token_add(token_scanner *s, int kind, uint32_t begin, uint32_t end)
{
    uint32_t gap = last_end(s);
    if (s->list->count == s->list->capacity || begin > gap || gap == 0)
        return append_after_gap(s, kind, begin, end);
    return append(s, kind, begin, end);
}

/* What follows a fault in the same statement is its consequence; the parser looks the places up here. */
static void remember_fault(token_scanner *s, uint32_t offset)
{
    token_list *l = s->list;
    ARENA_PUSH(s->arena, l->faults, l->fault_count, l->fault_capacity, offset);
}

static diag *add_fault(token_scanner *s, diag_id id, uint32_t begin, uint32_t end, const char *message)
{
    if (s->error_count++ >= SYNTAX_ERRORS_MAX)
        return NULL;
    return diag_add(s->diags, id, (src_range){s->file, begin, end}, "%s", message);
}

diag *token_fault(token_scanner *s, diag_id id, uint32_t begin, uint32_t end, const char *message)
{
    remember_fault(s, begin);
    return add_fault(s, id, begin, end, message);
}

/* ---- Brackets ---- */

/* May the ( after the last token be that of a function's parameters? It stands after the function's name, or after its generics. */
static bool opens_parameters(const token_scanner *s)
{
    const token *last = s->list->items + s->list->count - 1;
    return s->fn_head && s->list->count > 1 && (last->kind == '>' || (last->kind == T_IDENT && last[-1].kind == T_FN));
}

/* Does the last token end `macro_rules! name`, or the `name!` of such a macro? What is in its brackets follows no grammar. */
static bool opens_macro(token_scanner *s)
{
    const token *items = s->list->items;
    size_t n = s->list->count;
    if (n > 2 && items[n - 1].kind == T_IDENT && items[n - 2].kind == '!' && token_is_word(s->source, &items[n - 3], "macro_rules")) {
        ARENA_PUSH(s->arena, s->macros, s->macro_count, s->macro_capacity, (uint32_t)n - 1);
        return true;
    }
    for (size_t i = 0; n > 1 && items[n - 1].kind == '!' && items[n - 2].kind == T_IDENT && i < s->macro_count; i++) {
        const token *name = &items[s->macros[i]], *called = &items[n - 2];
        budget_spend(s->arena, 1);
        if (name->end - name->begin == called->end - called->begin &&
            memcmp(s->source + name->begin, s->source + called->begin, name->end - name->begin) == 0)
            return true;
    }
    return false;
}

bool token_open(token_scanner *s, int kind, uint32_t begin, uint32_t end, char closer)
{
    if (s->open_count == NESTING_MAX) {
        diag *d =
            diag_add(s->diags, E_NESTING, (src_range){s->file, begin, end}, "brackets are nested more than %d levels deep", NESTING_MAX);
        diag_help(s->diags, d, "name a part of it with `let` or `type`");
        s->list->too_deep = true;
        return false;
    }
    bool map = kind == T_MAP_OPEN || (token_in_map(s) && closer != '}');
    bool free = s->all_free || opens_macro(s) || (s->open_count > 0 && s->open[s->open_count - 1].free);
    bool head = kind == '(' && !free && opens_parameters(s);
    token *t = token_add(s, kind, begin, end);
    t->closer = closer;
    s->open[s->open_count++] = (token_bracket){
        .index = (uint32_t)s->list->count - 1, .indent = s->indent, .closer = closer, .map = map, .head = head, .free = free};
    s->fn_head = false;
    return true;
}

/* Adds the partner of the innermost open bracket. */
static token *add_closer(token_scanner *s, uint32_t begin, uint32_t end)
{
    token_bracket open = s->open[--s->open_count];
    int opener = s->list->items[open.index].kind;
    token *t = token_add(s, opener == T_MAP_OPEN || opener == T_AXES_OPEN ? T_MACRO_CLOSE : open.closer, begin, end);
    t->match = open.index;
    if (open.map)
        t->flags |= TOKEN_IN_MAP;
    s->list->items[open.index].match = (uint32_t)s->list->count - 1;
    return t;
}

/* Where the bracket's partner is missing, by the indentation. Of the blocks that are open at the end it is the first one that was not
 * closed in time: the closing brackets after it went to those around it. */
static void note_place(token_scanner *s, diag *d, const token_bracket *open, bool at_end)
{
    bool first = at_end && open->closer == '}';
    uint32_t place = first ? s->outdent : open->outdent;
    if (d == NULL || !place)
        return;
    diag_note(s->diags, d, (src_range){s->file, place, place + 1}, "by the indentation, a `%c` is missing after this", open->closer);
}

static void note_opener(token_scanner *s, diag *d, const token *opener, char closer)
{
    if (d != NULL)
        diag_note(s->diags, d, (src_range){s->file, opener->begin, opener->end}, "this bracket wants a `%c`", closer);
}

static int *supplied_count(token_scanner *s, char closer)
{
    return &s->supplied[closer == ')' ? 0 : closer == ']' ? 1 : 2];
}

/* Supplies the partner of the innermost open bracket in front of the text [begin, end). */
static void supply_closer(token_scanner *s, uint32_t begin, uint32_t end)
{
    token_bracket open = s->open[s->open_count - 1];
    const token opener = s->list->items[open.index];
    bool at_end = begin == end;
    uint32_t place = last_end(s);
    remember_fault(s, place);
    /* What is open at the end of the file after an earlier fault most likely follows from that. */
    if (!(at_end && s->bracket_fault)) {
        const char *found = at_end ? (s->outermost ? "the end of the mapping" : "the end of the file")
                                   : arena_printf(s->arena, "`%.*s`", (int)(end - begin), s->source + begin);
        diag *d = add_fault(s, E_DELIMITER, begin, end, arena_printf(s->arena, "expected `%c`, found %s", open.closer, found));
        note_place(s, d, &open, at_end);
        note_opener(s, d, at_end && open.closer == '}' && s->outdent ? &s->list->items[s->outdent_block] : &opener, open.closer);
    }
    s->bracket_fault = true;
    ++*supplied_count(s, open.closer);
    add_closer(s, place, place)->flags |= TOKEN_SUPPLIED;
}

/* The depth at which the closer's partner is open, or -1. Round and square brackets do not reach over a { of a block. */
static int find_open(const token_scanner *s, char closer)
{
    for (int i = s->open_count - 1; i >= s->outermost; i--) {
        if (s->open[i].closer == closer)
            return i;
        bool block = s->open[i].closer == '}' && !(i > 0 && s->open[i - 1].map);
        if (block && closer != '}')
            return -1;
    }
    return -1;
}

/* The one that was supplied too early is most likely this one; and of a run of them one is enough. */
static void report_superfluous(token_scanner *s, char closer, uint32_t begin, uint32_t end)
{
    int *supplied = supplied_count(s, closer);
    bool follows = *supplied > 0 || (closer == '}' && s->bracket_fault) || (begin > 0 && s->superfluous_end == begin);
    if (*supplied > 0)
        --*supplied;
    remember_fault(s, begin);
    diag *d = follows ? NULL : add_fault(s, E_DELIMITER, begin, end, arena_printf(s->arena, "`%c` without an opening bracket", closer));
    if (d != NULL && closer == '}' && s->odd_close)
        diag_note(s->diags, d, (src_range){s->file, s->odd_close - 1, s->odd_close}, "by the indentation, this one is too many");
    s->superfluous_end = end;
    s->bracket_fault = true;
}

/* A } that ends a block of several lines elsewhere than under the block's first line: too early, or it is that of the block around. */
static void look_at_close(token_scanner *s, uint32_t begin, uint32_t end)
{
    const token_bracket *open = &s->open[s->open_count - 1];
    uint32_t from = s->list->items[open->index].end, indent;
    bool first = begins_line(s, begin, &indent);
    if (memchr(s->source + from, '\n', begin - from) && !(first && indent == open->indent))
        s->odd_close = end;
    if (first && indent < open->indent && s->outdent == 0) {
        s->outdent = last_end(s) - 1;
        s->outdent_block = open->index;
    }
}

void token_close(token_scanner *s, char closer, uint32_t begin, uint32_t end)
{
    int partner = find_open(s, closer);
    if (partner >= 0) {
        while (s->open_count - 1 > partner)
            supply_closer(s, begin, end);
        if (closer == '}')
            look_at_close(s, begin, end);
        add_closer(s, begin, end);
        if (closer == '}')
            s->supplied[0] = s->supplied[1] = 0; /* what was supplied inside is settled */
        return;
    }
    if (s->open_count == s->outermost || s->open[s->open_count - 1].closer == '}') {
        report_superfluous(s, closer, begin, end);
        return;
    }
    char wanted = s->open[s->open_count - 1].closer;
    const token opener = s->list->items[s->open[s->open_count - 1].index];
    diag *d = token_fault(s, E_DELIMITER, begin, end, arena_printf(s->arena, "expected `%c`, found `%c`", wanted, closer));
    note_place(s, d, &s->open[s->open_count - 1], false);
    note_opener(s, d, &opener, wanted);
    s->bracket_fault = true;
    add_closer(s, begin, end);
}

void token_close_before(token_scanner *s, bool all, uint32_t begin, uint32_t end)
{
    while (s->open_count > s->outermost) {
        const token_bracket *open = &s->open[s->open_count - 1];
        int opener = s->list->items[open->index].kind;
        /* `;` stands in [T; 4] and in every { }, a statement only in { }. */
        bool allowed = open->closer == '}' ? opener == '{' : !all && !open->map && !open->comma && opener == '[';
        if (allowed || (open->free && !open->map))
            return;
        supply_closer(s, begin, end);
    }
}

/* Is the bracket closed further along the line? Then the `;` in front of that separates its entries. */
static bool closed_on_line(const char *line, char closer)
{
    int depth = 0;
    for (const char *c = line; *c != '\0' && *c != '"'; c++) {
        if (c[0] == '/' && (c[1] == '/' || c[1] == '*'))
            return false;
        depth += (*c == '(' || *c == '[' || *c == '{') - (*c == ')' || *c == ']' || *c == '}');
        if (depth < 0)
            return *c == closer;
    }
    return false;
}

void token_semicolon(token_scanner *s, uint32_t begin, uint32_t end, const char *line)
{
    const token_bracket *open = s->open_count > s->outermost ? &s->open[s->open_count - 1] : NULL;
    int opener = open ? s->list->items[open->index].kind : 0;
    bool lists =
        !(open && open->free) && (opener == T_AXES_OPEN || opener == T_MAP_OPEN || opener == '(') && s->list->count - 1 > open->index;
    if (lists && closed_on_line(line, open->closer)) {
        diag *d = token_fault(s, open->map ? E_MAP_SYNTAX : E_PARSE, begin, end,
                              arena_printf(s->arena, "expected `,` or `%c`, found `;`", open->closer));
        if (d != NULL)
            diag_help(s->diags, d, "entries are separated by commas");
        token_add(s, ',', begin, end);
        return;
    }
    token_close_before(s, false, begin, end);
    token_add(s, ';', begin, end);
}

void token_close_head(token_scanner *s, uint32_t begin, uint32_t end)
{
    const token_bracket *open = s->open_count > 0 ? &s->open[s->open_count - 1] : NULL;
    if (!open || !open->head || open->angles > 0)
        return;
    int before = s->list->items[s->list->count - 1].kind;
    uint32_t indent;
    bool arrow = s->source[begin] == '-'; /* after a ) it may belong to a function's type */
    bool body = before != '<' && before != ':' && (before != ',' || begins_line(s, begin, &indent)); /* else it is an argument */
    if (arrow ? before != ')' : body)
        supply_closer(s, begin, end);
}

void token_close_before_line(token_scanner *s, uint32_t begin, uint32_t end)
{
    uint32_t indent;
    if (begins_line(s, begin, &indent))
        token_close_before(s, true, begin, end);
}

/* ---- Words and numbers ---- */

/* By halves, the bytes of a word as one number. NULL: none. */
static const struct keyword *keyword_named(const char *word, size_t bytes)
{
    if (bytes == 0 || bytes > KEYWORD_BYTES)
        return NULL;
    uint64_t number = 0, other;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (unsigned char)word[i];
    number <<= 8 * (KEYWORD_BYTES - bytes);
    size_t low = 0, high = sizeof keywords / sizeof *keywords;
    while (low < high) {
        size_t middle = (low + high) / 2;
        memcpy(&other, keywords[middle].name, sizeof other);
        other = be64toh(other);
        if (other == number)
            return &keywords[middle];
        if (number < other)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void token_word(token_scanner *s, uint32_t begin, uint32_t end)
{
    char c = s->source[begin];
    bool upper = c >= 'A' && c <= 'Z' && c != 'S'; /* of those only Self is a keyword */
    const struct keyword *row = upper ? NULL : keyword_named(s->source + begin, end - begin);
    bool parameter = begin > 0 && s->source[begin - 1] == '$'; /* of a macro, whatever it is called */
    int kind = row != NULL && (!parameter || row->kind == T_CRATE) ? row->kind : T_IDENT;
    s->block_heads = s->block_heads || kind == T_IF || kind == T_WHILE || kind == T_MATCH || kind == T_FOR;
    if (kind == T_LET || kind == T_FN || kind == T_USE)
        token_close_before(s, true, begin, end);
    s->fn_head = s->fn_head || kind == T_FN;
    if (kind == T_TYPE || kind == T_MOD)
        token_close_before_line(s, begin, end);
    token_add(s, kind, begin, end);
}

void token_odd_bytes(token_scanner *s, uint32_t begin, uint32_t end)
{
    unsigned char first = (unsigned char)s->source[begin];
    bool name = (first | 0x20) >= 'a' && (first | 0x20) <= 'z';
    diag *d = token_fault(s, E_LEX, begin, end,
                          name ? "names are made of ASCII letters, digits and `_`"
                               : "characters outside ASCII stand only in comments and strings");
    if (d != NULL && memcmp(s->source + begin, "\xc2\xa0", end - begin < 2 ? end - begin : 2) == 0)
        diag_help(s->diags, d, "this is a non-breaking space: write a blank");
    /* A name stays a name, so that the declaration around it can be read. */
    token_add(s, name ? T_IDENT : T_BAD_TOKEN, begin, end);
}

/* Reads the digits of one base; returns how many bytes belong to them, or 0 when the value does not fit. */
static uint32_t read_digits(const char *text, uint32_t bytes, int base, int64_t *value, bool *fits)
{
    uint32_t used = 0;
    *value = 0, *fits = true;
    for (; used < bytes; used++) {
        char c = text[used];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
        if (c == '_')
            continue;
        if (digit >= base)
            break;
        if (__builtin_mul_overflow(*value, base, value) || __builtin_add_overflow(*value, digit, value))
            *fits = false;
    }
    return used;
}

static bool is_suffix(const char *text, uint32_t bytes)
{
    static const char *const suffixes[] = {"usize", "isize", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strlen(suffixes[i]) == bytes && memcmp(suffixes[i], text, bytes) == 0)
            return true;
    return bytes == 0;
}

typedef struct number {
    int64_t value;
    bool legal, fits, plain; /* plain: decimal digits and nothing else */
} number;

static number read_number(const char *text, uint32_t bytes)
{
    enum { SURE_DIGITS = 18 }; /* so many always fit */
    uint32_t plain = 0;
    int64_t value = 0;
    for (; plain < bytes && text[plain] >= '0' && text[plain] <= '9' && plain < SURE_DIGITS; plain++)
        value = 10 * value + (text[plain] - '0');
    if (plain == bytes)
        return (number){value, true, true, true};
    int base = 10;
    uint32_t prefix = 0;
    if (bytes > 1 && text[0] == '0')
        base = text[1] == 'x' ? 16 : text[1] == 'b' ? 2 : text[1] == 'o' ? 8 : 10;
    if (base != 10)
        prefix = 2;
    number n = {0};
    uint32_t digits = read_digits(text + prefix, bytes - prefix, base, &n.value, &n.fits);
    bool any = false;
    for (uint32_t i = 0; i < digits; i++)
        any |= text[prefix + i] != '_';
    n.legal = any && is_suffix(text + prefix + digits, bytes - prefix - digits);
    n.plain = prefix == 0 && digits == bytes && memchr(text, '_', bytes) == NULL;
    return n;
}

void token_number(token_scanner *s, uint32_t begin, uint32_t end)
{
    const char *text = s->source + begin;
    number n = read_number(text, end - begin);
    bool plain = n.plain || !token_in_map(s), poison = !n.legal || !n.fits || !plain;
    diag *d = NULL;
    if (!n.legal) {
        token_fault(s, E_LEX, begin, end, "this is neither a number nor a name");
    } else if (!n.fits) {
        d = token_fault(s, E_LEX, begin, end, "this number does not fit into 63 bits");
        if (d != NULL)
            diag_help(s->diags, d, "the largest number is %lld", (long long)INT64_MAX);
    } else if (!plain) {
        d = token_fault(s, E_MAP_SYNTAX, begin, end, "inside m![..] numbers are decimal digits only");
        if (d != NULL) {
            diag_help(s->diags, d, "write %lld", (long long)n.value);
            diag_replace(s->diags, d, d->range, "%lld", (long long)n.value);
        }
    }
    token *t = token_add(s, T_INT, begin, end);
    t->flags |= poison ? TOKEN_POISON : 0;
}

int64_t token_integer(const char *source, const token *t)
{
    return read_number(source + t->begin, t->end - t->begin).value;
}

/* The many names and numbers of one character are no allocations. */
#define SPELT(c) \
    {(c)}, {(c) + 1}, {(c) + 2}, {(c) + 3}, {(c) + 4}, {(c) + 5}, {(c) + 6}, \
    { \
        (c) + 7 \
    }
static const char characters[128][2] = {SPELT(0),  SPELT(8),  SPELT(16), SPELT(24), SPELT(32), SPELT(40),  SPELT(48),  SPELT(56),
                                        SPELT(64), SPELT(72), SPELT(80), SPELT(88), SPELT(96), SPELT(104), SPELT(112), SPELT(120)};

const char *token_text(const char *source, const token *t, arena *a)
{
    if (t->kind == T_STRING && (t->flags & TOKEN_POISON))
        return "\"\"";
    uint32_t bytes = t->end - t->begin;
    unsigned char first = (unsigned char)source[t->begin];
    if (bytes == 1 && first < sizeof characters / sizeof *characters)
        return characters[first];
    if (t->kind == T_IDENT && bytes > 2 && source[t->begin + 1] == '#') { /* `r#name` is `name`, where that is no keyword */
        bool keyword = keyword_named(source + t->begin + 2, bytes - 2);
        return keyword ? arena_strndup(a, source + t->begin, bytes) : arena_strndup(a, source + t->begin + 2, bytes - 2);
    }
    /* NULs are no tokens; those in comments, which no name has, end the text. */
    return arena_strndup(a, source + t->begin, t->kind == T_IDENT ? bytes : strnlen(source + t->begin, bytes));
}

uint32_t token_from(const token *tokens, uint32_t count, uint32_t begin)
{
    size_t low;
    ORDER_FIRST(&low, count, i, tokens[i].begin < begin);
    return (uint32_t)low;
}

bool token_is_word(const char *source, const token *t, const char *word)
{
    size_t bytes = strlen(word);
    return t->kind == T_IDENT && t->end - t->begin == bytes && memcmp(source + t->begin, word, bytes) == 0;
}

/* ---- The whole file ---- */

void token_scan_end(token_scanner *s)
{
    while (s->open_count > s->outermost)
        supply_closer(s, last_end(s), last_end(s));
    if (s->outermost)
        add_closer(s, s->offset, s->offset);
}

static bool ends_expression(int kind)
{
    switch (kind) {
    case T_IDENT:
    case T_INT:
    case T_FLOAT:
    case T_STRING:
    case T_CHAR:
    case T_TRUE:
    case T_FALSE:
    case T_SELF:
    case T_SELF_TYPE:
    case T_CRATE:
    case T_SUPER:
    case T_AWAIT:
    case T_TUPLE_INDEX:
    case T_MACRO_CLOSE:
    case T_DOT2:
    case '>':
    case ')':
    case ']':
    case '}':
    case '?': return true;
    default: return false;
    }
}

static void forget_pending(token *items, uint32_t *pending)
{
    while (*pending != TOKEN_NONE) {
        uint32_t outer = items[*pending].match;
        items[*pending].match = TOKEN_NONE;
        *pending = outer;
    }
}

/* Gives every if, for, while and match the { of its block: the first one at its own nesting level that
 * follows a complete expression (so it cannot begin one). Heads that still wait are chained through `match`.
 */
static void link_blocks(token_list *l)
{
    uint32_t pending[NESTING_MAX + 1];
    pending[0] = TOKEN_NONE;
    int level = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        token *t = &l->items[i];
        int next = i + 1 < l->count ? l->items[i + 1].kind : 0;
        if (t->kind == T_IF || t->kind == T_WHILE || t->kind == T_MATCH || (t->kind == T_FOR && next != '<' && next != T_LT_LT)) {
            t->match = pending[level];
            pending[level] = i;
        } else if (token_closer(t) != 0) {
            if (t->kind == '{' && pending[level] != TOKEN_NONE && ends_expression(l->items[i - 1].kind)) {
                token *head = &l->items[pending[level]];
                pending[level] = head->match;
                head->match = i;
                t->flags |= TOKEN_COND_BLOCK;
            }
            pending[++level] = TOKEN_NONE;
        } else if (t->kind == ';') {
            forget_pending(l->items, &pending[level]);
        } else if (t->match != TOKEN_NONE) {
            forget_pending(l->items, &pending[level--]);
        }
    }
    forget_pending(l->items, &pending[0]);
}

static int compare_offset(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return ORDER(x, y);
}

token_scanner *token_scanner_new(arena *home)
{
    token_scanner *s = ARENA_NEW(home, token_scanner);
    s->home = home;
    visa_yylex_init_extra(s, &s->lexer);
    visa_yy_scan_buffer(arena_alloc(home, 2), 2, s->lexer); /* token_run_lexer puts the texts into this one */
    return s;
}

/* What is not to be read as tokens at all is stated once. */
static void refuse_other_file(token_scanner *s, size_t bytes)
{
    static const struct {
        const char *begin;
        uint32_t bytes;
        const char *what, *help;
    } others[] = {
        {"\xff\xfe", 2, "the text is UTF-16", "save it as UTF-8"},
        {"\xfe\xff", 2, "the text is UTF-16", "save it as UTF-8"},
        {"\x7f"
         "ELF",
         4, "this is a binary and no source", "visa-run runs a binary, visa-objdump shows what is in it"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (bytes >= others[i].bytes && memcmp(s->source, others[i].begin, others[i].bytes) == 0) {
            diag *d = token_fault(s, E_LEX, 0, others[i].bytes, others[i].what);
            if (d != NULL)
                diag_help(s->diags, d, "%s", others[i].help);
            s->offset = (uint32_t)bytes;
        }
}

/* The source's bytes from `begin` to `end`, which are what `text` is, where the lexer puts its marks; it may be the source itself. */
static token_list scan_from(token_scanner *s, const char *source, char *text, size_t begin, size_t end, int file, bool lone_mapping,
                            bool all_free, arena *a, diag_list *diags)
{
    token_list list = {.capacity = (end - begin) / 2 + 8}; /* dense text has 2.4 bytes a token; to grow is to hold the list twice */
    ARENA_ALIGNED(token);
    list.items = arena_alloc_unset(a, list.capacity * sizeof *list.items);
    arena *home = s->home;
    void *lexer = s->lexer;
    memset(s, 0, offsetof(token_scanner, open));
    s->home = home, s->lexer = lexer, s->arena = a, s->diags = diags, s->file = file, s->list = &list, s->source = source,
    s->all_free = all_free;
    /* A byte order mark has no meaning here. */
    s->offset = begin == 0 && end >= 3 && memcmp(source, "\xef\xbb\xbf", 3) == 0 ? 3 : (uint32_t)begin;
    if (begin == 0)
        refuse_other_file(s, end);
    if (lone_mapping)
        token_open(s, T_MAP_OPEN, 0, 0, ']');
    s->outermost = lone_mapping;
    token_run_lexer(s, text + (s->offset - begin), end - s->offset);
    token_add(s, T_END, last_end(s), last_end(s)); /* after the last token: what is missing is missing there */
    if (!list.too_deep && s->block_heads)
        link_blocks(&list);
    order_sort(list.faults, list.fault_count, sizeof *list.faults, compare_offset);
    return list;
}

static token_list scan_text(token_scanner *s, char *text, size_t bytes, int file, bool lone_mapping, bool all_free, arena *a,
                            diag_list *diags)
{
    return scan_from(s, text, text, 0, bytes, file, lone_mapping, all_free, a, diags);
}

token_list token_scan_text(token_scanner *s, char *text, size_t bytes, int file, bool lone_mapping, arena *a, diag_list *diags)
{
    return scan_text(s, text, bytes, file, lone_mapping, false, a, diags);
}

token_list token_scan_free(token_scanner *s, char *text, size_t bytes, int file, arena *a, diag_list *diags)
{
    return scan_text(s, text, bytes, file, false, true, a, diags);
}

token_list token_scan(const source_map *sources, int file, arena *a, diag_list *diags)
{
    return token_scan_part(sources, file, 0, (uint32_t)source_bytes(sources, file), a, diags);
}

token_list token_scan_part(const source_map *sources, int file, uint32_t begin, uint32_t end, arena *a, diag_list *diags)
{
    arena *scratch = arena_new_inside(a);
    const char *source = source_text(sources, file);
    size_t bytes = end - begin;
    char *text = arena_alloc_unset(scratch, bytes + 2);
    memcpy(text, source + begin, bytes);
    text[bytes] = text[bytes + 1] = '\0';
    token_list list = scan_from(token_scanner_new(scratch), source, text, begin, end, file, false, false, a, diags);
    arena_free(scratch);
    return list;
}
