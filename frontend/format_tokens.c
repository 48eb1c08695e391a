#include "frontend/format_tokens.h"

#include <string.h>

enum mark {
    OPENS = 1,         /* the < of generic parameters or arguments */
    CLOSES = 2,        /* its > */
    PREFIX = 4,        /* a sign in front of its operand */
    OPERATOR = 8,      /* first token of an operator between two operands */
    OPERATOR_END = 16, /* last token of one */
    TIGHT = 32,        /* the `:` of a window's term */
    LINE = 64,         /* begins a line */
    QUALIFIED = 128,   /* the < of a qualified type: stands as a name does */
};

/* ---- reading ---- */

uint32_t format_token_at(const format_tokens *t, uint32_t offset)
{
    return token_from(t->items, t->count - 1, offset);
}

static void mark_pair(format_tokens *t, uint32_t open, uint32_t close, uint8_t mark)
{
    t->marks[open] |= mark;
    t->marks[close] |= CLOSES;
    t->partners[open] = close;
}

static bool is_item(const ast *n)
{
    return n->kind >= AST_AXES && n->kind <= AST_ITEM_IGNORED;
}

/* A where clause and the block after it begin lines. */
static void mark_where(format_tokens *t, const ast *fn)
{
    uint32_t body = format_token_at(t, ast_kid(fn, 4)->range.begin), at = format_token_at(t, ast_kid(fn, 2)->range.end);
    while (at < body && t->items[at].kind != T_WHERE)
        at++;
    if (at < body && ast_is(ast_kid(fn, 4), AST_BLOCK))
        t->marks[at] |= LINE, t->marks[body] |= LINE;
}

static void mark_tokens(format_tokens *t, const ast *n)
{
    uint32_t first = format_token_at(t, n->range.begin), end = format_token_at(t, n->range.end);
    uint32_t name = format_token_at(t, n->name_range.begin), name_end = format_token_at(t, n->name_range.end);
    switch (n->kind) {
    case AST_GENERICS:
    case AST_GENERIC_ARGS:
        if (first < end)
            mark_pair(t, first, end - 1, OPENS);
        break;
    case AST_TYPE_QUALIFIED: mark_pair(t, first, name - 2, QUALIFIED); break;
    case AST_UNARY:
    case AST_DEREF:
    case AST_BORROW:
    case AST_TYPE_REF:
    case AST_PAT_REF: t->marks[ast_is(n, AST_PAT_REF) ? first : name] |= PREFIX; break;
    case AST_BINARY:
    case AST_ASSIGN:
        t->marks[name] |= OPERATOR;
        t->marks[name_end - 1] |= OPERATOR_END;
        break;
    case AST_FN: mark_where(t, n); break;
    case AST_MAP_SLIDE: t->marks[name] |= TIGHT; break;
    case AST_RAW:
    case AST_ATTR:
    case AST_ITEM_IGNORED:
    case AST_MACRO:
    case AST_TYPE_MACRO:
    case AST_UNSUPPORTED:
    case AST_ERROR: return; /* kept as it is */
    default: break;
    }
    if (is_item(n) && ast_is(ast_kid(n, 0), AST_LIST)) {
        const ast *attributes = n->kids[0];
        for (uint32_t i = 0; i < attributes->kid_count; i++)
            t->marks[format_token_at(t, attributes->kids[i]->range.end)] |= LINE;
    }
    for (uint32_t i = 0; i < n->kid_count; i++)
        mark_tokens(t, n->kids[i]);
}

void format_tokens_read(format_tokens *t, const source_map *sources, const ast *file, arena *a)
{
    diag_list known; /* the parser read the same text without a fault */
    diag_list_init(&known, a);
    token_list list = token_scan(sources, file->range.file, a, &known);
    *t = (format_tokens){.arena = a, .items = list.items, .count = (uint32_t)list.count, .source = source_text(sources, file->range.file)};
    t->marks = ARENA_ARRAY(a, uint8_t, t->count);
    t->partners = ARENA_ARRAY(a, uint32_t, t->count);
    memset(t->partners, 0xff, t->count * sizeof *t->partners);
    size_t bytes = source_bytes(sources, file->range.file);
    list.items[list.count - 1].begin = list.items[list.count - 1].end = (uint32_t)bytes; /* comments stand in front of it */
    const char *first = memchr(t->source, '\n', bytes);
    t->line_end = first && first > t->source && first[-1] == '\r' ? "\r\n" : "\n";
    mark_tokens(t, file);
}

uint32_t format_partner(const format_tokens *t, uint32_t i)
{
    const token *k = &t->items[i];
    return t->partners[i] != TOKEN_NONE ? t->partners[i] : token_closer(k) ? k->match : TOKEN_NONE;
}

/* ---- texts ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

document *format_verbatim(const format_tokens *t, uint32_t from, uint32_t to)
{
    uint32_t begin = t->items[from].begin;
    return document_text(t->arena, t->source + begin, t->items[to - 1].end - begin);
}

/* `m ! [` is one token, and so is `# { 0 }`: they are written without blanks, or as they are where a comment stands in them. */
document *format_text_of(const format_tokens *t, uint32_t i)
{
    const token *k = &t->items[i];
    bool in_parts = k->kind == T_MAP_OPEN || k->kind == T_AXES_OPEN || k->kind == T_PAD_KIND;
    if (!in_parts || memchr(t->source + k->begin, '/', k->end - k->begin))
        return format_verbatim(t, i, i + 1);
    strbuf text;
    strbuf_init(&text, t->arena);
    for (uint32_t at = k->begin; at < k->end; at++)
        if (!is_blank(t->source[at]))
            strbuf_append(&text, &t->source[at], 1);
    return document_text(t->arena, text.text, (uint32_t)text.bytes);
}

/* ---- spaces ---- */

/* Does this end what a call, an index or `::` may follow? */
static bool ends_name(const format_tokens *t, uint32_t i)
{
    switch (t->items[i].kind) {
    case T_IDENT:
    case T_SELF:
    case T_SELF_TYPE:
    case T_CRATE:
    case T_SUPER:
    case T_AWAIT:
    case T_MACRO_CLOSE:
    case T_TUPLE_INDEX:
    case ')':
    case ']':
    case '?': return true;
    default: return t->marks[i] & CLOSES;
    }
}

static bool ends_operand(const format_tokens *t, uint32_t i)
{
    switch (t->items[i].kind) {
    case T_INT:
    case T_FLOAT:
    case T_STRING:
    case T_TRUE:
    case T_FALSE:
    case '}': return true;
    default: return ends_name(t, i);
    }
}

/* Nothing in front of it, whatever precedes. */
static bool joins_left(const format_tokens *t, uint32_t i)
{
    switch (t->items[i].kind) {
    case ',':
    case ';':
    case '?':
    case '.':
    case T_TUPLE_INDEX:
    case ')':
    case ']':
    case T_MACRO_CLOSE:
    case ':': return true;
    case '(':
    case '[': return ends_name(t, i - 1) || t->items[i - 1].kind == T_PUB;
    case T_COLON2: return ends_name(t, i - 1);
    case T_DOT2:
    case T_DOT2_EQ: return ends_operand(t, i - 1);
    default: return (t->marks[i] & CLOSES) || ((t->marks[i] & OPENS) && ends_name(t, i - 1));
    }
}

/* Nothing after it, whatever follows. */
static bool joins_right(const format_tokens *t, uint32_t i)
{
    switch (t->items[i].kind) {
    case '(':
    case '[':
    case T_MAP_OPEN:
    case T_AXES_OPEN:
    case '.':
    case T_COLON2:
    case '$': return true;
    case '#': return !(t->items[i].flags & TOKEN_IN_MAP);
    case '!': return (t->marks[i] & PREFIX) || (i > 0 && t->items[i - 1].kind == '#'); /* `#![` */
    case T_DOT2:
    case T_DOT2_EQ: return t->items[i + 1].kind != '{' && t->items[i + 1].kind != '}';
    default: return t->marks[i] & (PREFIX | TIGHT | OPENS | QUALIFIED);
    }
}

break_kind format_space(const format_tokens *t, uint32_t i)
{
    if (t->marks[i] & LINE)
        return BREAK_HARD;
    bool inside_operator = (t->marks[i - 1] & OPERATOR) && !(t->marks[i - 1] & OPERATOR_END);
    if (inside_operator || joins_left(t, i) || joins_right(t, i - 1))
        return BREAK_NONE;
    if (t->items[i - 1].kind == ',')
        return BREAK_SOFT;
    return (t->marks[i] & OPERATOR) && t->items[i].kind != '=' && t->items[i].kind != T_OP_ASSIGN ? BREAK_SOFT : BREAK_SPACE;
}

/* ---- gaps ---- */

typedef struct comment {
    uint32_t begin, end; /* offsets; 0, 0: none is left */
    uint32_t lines_before, line_ends_behind;
    bool is_line;
} comment;

static uint32_t gap_begin(const format_tokens *t, uint32_t i)
{
    bool mark = strncmp(t->source, "\xef\xbb\xbf", 3) == 0; /* a text may have fewer bytes */
    return i > 0 ? t->items[i - 1].end : mark ? 3 : 0;
}

static uint32_t count_lines(const char *source, uint32_t from, uint32_t to)
{
    uint32_t lines = 0;
    for (; from < to; from++)
        lines += source[from] == '\n';
    return lines;
}

static uint32_t comment_end(const char *source, uint32_t at, uint32_t end)
{
    if (source[at + 1] == '/') {
        const char *stop = memchr(source + at, '\n', end - at);
        return stop ? (uint32_t)(stop - source) : end;
    }
    int depth = 0;
    for (; at + 1 < end; at++) {
        int step = source[at] == '/' && source[at + 1] == '*' ? 1 : source[at] == '*' && source[at + 1] == '/' ? -1 : 0;
        depth += step;
        at += step != 0;
        if (step < 0 && depth == 0)
            return at + 1;
    }
    return end;
}

/* The comment at or after offset `from` in front of token i. */
static comment next_comment(const format_tokens *t, uint32_t i, uint32_t from)
{
    uint32_t end = t->items[i].begin, at = from;
    while (at < end && t->source[at] != '/')
        at++;
    if (at >= end)
        return (comment){.lines_before = count_lines(t->source, from, end)};
    comment c = {.begin = at,
                 .end = comment_end(t->source, at, end),
                 .is_line = t->source[at + 1] == '/',
                 .lines_before = count_lines(t->source, from, at)};
    uint32_t next = c.end;
    while (next < end && t->source[next] != '/')
        next++;
    c.line_ends_behind = count_lines(t->source, c.end, next);
    return c;
}

bool format_has_comment(const format_tokens *t, uint32_t i)
{
    return next_comment(t, i, gap_begin(t, i)).end > 0;
}

/* The comment's lines without blanks at their ends, ended as the file's lines are. */
static document *comment_text(const format_tokens *t, const comment *c)
{
    strbuf text;
    strbuf_init(&text, t->arena);
    for (uint32_t at = c->begin; at <= c->end;) {
        const char *stop = memchr(t->source + at, '\n', c->end - at);
        uint32_t end = stop ? (uint32_t)(stop - t->source) : c->end, kept = end;
        while (kept > at && is_blank(t->source[kept - 1]))
            kept--;
        strbuf_append(&text, t->source + at, kept - at);
        if (stop)
            strbuf_puts(&text, t->line_end);
        at = end + 1;
    }
    document *d = document_text(t->arena, text.text, (uint32_t)text.bytes);
    if (!c->is_line)
        return d;
    d->comment = true;
    d->flat = d->lead = d->first = 0; /* a comment may be wider than the line */
    return d;
}

static uint32_t column_of(const format_tokens *t, uint32_t offset)
{
    uint32_t column = 1;
    while (offset > 0 && t->source[offset - 1] != '\n') {
        offset--;
        column += ((unsigned char)t->source[offset] & 0xc0) != 0x80;
    }
    return column;
}

static bool is_opener(const format_tokens *t, uint32_t i)
{
    return token_closer(&t->items[i]) != 0 || (t->marks[i] & (OPENS | QUALIFIED));
}

/* `lines`: how many ended in the gap; `first`: nothing stands in front of it in its block. */
static void add_line_end(const format_tokens *t, document *out, uint32_t lines, bool first, bool statement)
{
    document_add(t->arena, out, document_break(t->arena, statement && lines > 1 && !first ? BREAK_EMPTY : BREAK_HARD));
}

bool format_comments(const format_tokens *t, document *out, uint32_t i, bool statement)
{
    bool line_end = false;
    uint32_t from = gap_begin(t, i);
    bool first = i == 0 || is_opener(t, i - 1);
    for (comment c = next_comment(t, i, from); c.end > 0; c = next_comment(t, i, c.end)) {
        document *text = comment_text(t, &c);
        if (c.lines_before > 0 || line_end)
            add_line_end(t, out, c.lines_before, first, statement);
        else if (i > 0 || !first)
            document_add(t->arena, out, document_break(t->arena, first && !c.is_line ? BREAK_NONE : BREAK_SPACE));
        if (c.is_line && c.lines_before == 0 && i > 0)
            text->aligned = column_of(t, c.begin);
        document_add(t->arena, out, text);
        first = false;
        line_end = c.is_line || c.line_ends_behind > 0;
    }
    return line_end;
}

void format_gap(const format_tokens *t, document *out, uint32_t i, break_kind at, bool statement)
{
    bool line_end = format_comments(t, out, i, statement);
    uint32_t last = gap_begin(t, i);
    bool first = (i == 0 || is_opener(t, i - 1)) && !format_has_comment(t, i);
    for (comment c = next_comment(t, i, last); c.end > 0; c = next_comment(t, i, c.end))
        last = c.end;
    if (line_end || at == BREAK_HARD)
        add_line_end(t, out, count_lines(t->source, last, t->items[i].begin), first, statement);
    else if (at != BREAK_NONE)
        document_add(t->arena, out, document_break(t->arena, at));
}
