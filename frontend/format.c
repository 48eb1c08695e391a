#include "frontend/format.h"

#include <string.h>

#include "frontend/format_tokens.h"

/* A short `if` that is a value stays on one line up to this width, a chain of calls up to that one; in columns, as in rustfmt. */
enum { SHORT_IF = 50, SHORT_CHAIN = 60 };

typedef struct formatter {
    format_tokens t;
    arena *arena;
} formatter;

static document *walk(formatter *f, const ast *node, const ast *parent);
static void fill(formatter *f, document *out, const ast *node, uint32_t *kid, uint32_t first, uint32_t from, uint32_t to);

static uint32_t begin_of(const formatter *f, const ast *n)
{
    return format_token_at(&f->t, n->range.begin);
}

static uint32_t end_of(const formatter *f, const ast *n)
{
    return format_token_at(&f->t, n->range.end);
}

static bool is_present(const formatter *f, const ast *n)
{
    return begin_of(f, n) < end_of(f, n);
}

static document *new_sequence(formatter *f, document_kind kind)
{
    return document_new(f->arena, kind);
}

static void add(formatter *f, document *out, document *kid)
{
    document_add(f->arena, out, kid);
}

static void add_break(formatter *f, document *out, break_kind at)
{
    add(f, out, document_break(f->arena, at));
}

static void add_token(formatter *f, document *out, uint32_t i)
{
    add(f, out, format_text_of(&f->t, i));
}

/* ---- what is kept as it is ---- */

static bool is_verbatim(const ast *n)
{
    switch (n->kind) {
    case AST_RAW:
    case AST_ITEM_IGNORED:
    case AST_MACRO:
    case AST_TYPE_MACRO:
    case AST_UNSUPPORTED:
    case AST_ERROR: return true;
    default: return false;
    }
}

/* Tokens that no node stands for: a where clause. The end of such a run at i, or i. */
static uint32_t unread_end(const formatter *f, const ast *node, uint32_t i, uint32_t to)
{
    const token *t = &f->t.items[i];
    if (ast_is(node, AST_FN) && t->kind == T_WHERE) {
        const ast *body = ast_kid(node, 4);
        return is_present(f, body) ? begin_of(f, body) : to - 1;
    }
    return i;
}

/* The tokens of an attribute, whatever is in it. */
static document *attribute(formatter *f, uint32_t from, uint32_t to)
{
    static const ast nothing = {.kind = AST_ATTR};
    document *out = new_sequence(f, DOC_SEQUENCE);
    uint32_t kid = 0;
    fill(f, out, &nothing, &kid, from, from, to);
    return document_close(out, DOCUMENT_WIDE);
}

/* ---- brackets ---- */

/* A list that ends in a comma is written one element a line, as its writer did: the comma is a token and stays. */
static bool ends_in_comma(const formatter *f, const ast *node, uint32_t close)
{
    bool one = (ast_is(node, AST_TUPLE) || ast_is(node, AST_TYPE_TUPLE) || ast_is(node, AST_PAT_TUPLE)) && node->kid_count == 1;
    return f->t.items[close - 1].kind == ',' && !one && !(f->t.items[close].flags & TOKEN_IN_MAP);
}

static bool is_spaced(const formatter *f, const ast *node, uint32_t open)
{
    return f->t.items[open].kind == '{' && !ast_is(node, AST_USE_GROUP) && !ast_is(node, AST_MAP_ESCAPE);
}

static document *list(formatter *f, const ast *node, uint32_t *kid, uint32_t open, uint32_t close)
{
    document *group = new_sequence(f, DOC_GROUP), *inner = new_sequence(f, DOC_INDENT);
    break_kind edge = is_spaced(f, node, open) ? BREAK_SOFT : BREAK_SOFT_NONE;
    bool empty = close == open + 1 && !format_has_comment(&f->t, close);
    add_token(f, group, open);
    if (!empty) {
        if (close > open + 1)
            format_gap(&f->t, inner, open + 1, edge, false);
        fill(f, inner, node, kid, open + 1, open + 1, close);
        bool line_end = format_comments(&f->t, inner, close, false);
        add(f, group, document_close(inner, DOCUMENT_WIDE));
        add_break(f, group, line_end ? BREAK_HARD : edge);
    }
    add_token(f, group, close);
    return document_close(group, !empty && ends_in_comma(f, node, close) ? 0 : DOCUMENT_WIDE);
}

/* A block of one value may stand on the line of what it belongs to. */
static bool is_short_block(const formatter *f, const ast *block)
{
    const ast *only = ast_kid(block, 0);
    return ast_is(block, AST_BLOCK) && block->kid_count == 1 && ast_is(only, AST_EXPR_STMT) && only->text[0] == '\0' &&
           !format_has_comment(&f->t, begin_of(f, only)) && !format_has_comment(&f->t, end_of(f, only)) &&
           end_of(f, only) + 1 == end_of(f, block) && begin_of(f, block) + 1 == begin_of(f, only);
}

/* The statements of a block or file between two tokens, each on its line. */
static void statements(formatter *f, document *out, const ast *node, uint32_t *kid, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to;) {
        while (*kid < node->kid_count && end_of(f, node->kids[*kid]) <= i)
            ++*kid;
        const ast *k = ast_kid(node, *kid);
        bool is_kid = is_present(f, k) && begin_of(f, k) == i, stray = !is_kid && f->t.items[i].kind == ';';
        bool is_attribute = !is_kid && f->t.items[i].kind == '#'; /* of a statement: no node stands for it */
        uint32_t end = is_kid ? end_of(f, k) : is_attribute ? f->t.items[i + 1].match + 1 : i + 1;
        format_gap(&f->t, out, i, stray || i == 0 ? BREAK_NONE : BREAK_HARD, true);
        if (is_kid)
            add(f, out, walk(f, k, node));
        else if (is_attribute)
            add(f, out, attribute(f, i, end));
        else
            add_token(f, out, i);
        i = end;
    }
}

static document *block(formatter *f, const ast *node, uint32_t *kid, uint32_t open, uint32_t close, bool may_be_short)
{
    document *out = new_sequence(f, DOC_SEQUENCE), *inner = new_sequence(f, DOC_INDENT);
    bool empty = close == open + 1 && !format_has_comment(&f->t, close);
    add_token(f, out, open);
    if (may_be_short && is_short_block(f, node)) {
        add_break(f, inner, BREAK_SOFT);
        add(f, inner, walk(f, node->kids[0], node));
        add(f, out, document_close(inner, DOCUMENT_WIDE));
        add_break(f, out, BREAK_SOFT);
    } else if (!empty) {
        statements(f, inner, node, kid, open + 1, close);
        format_comments(&f->t, inner, close, true);
        add(f, out, document_close(inner, DOCUMENT_WIDE));
        add_break(f, out, BREAK_HARD);
    }
    add_token(f, out, close);
    return document_close(out, DOCUMENT_WIDE);
}

static document *brackets(formatter *f, const ast *node, const ast *parent, uint32_t *kid, uint32_t open, uint32_t close)
{
    if (f->t.items[open].kind == '{' && ast_is(node, AST_BLOCK))
        return block(f, node, kid, open, close, ast_is(parent, AST_IF) || ast_is(parent, AST_UNSAFE) || ast_is(parent, AST_CONST_BLOCK));
    return list(f, node, kid, open, close);
}

/* ---- sequences ---- */

/* The tokens and kids of a node in [from, to); the caller has written what precedes `first`. */
static void fill_in(formatter *f, document *out, const ast *node, const ast *parent, uint32_t *kid, uint32_t first, uint32_t from,
                    uint32_t to)
{
    for (uint32_t i = from; i < to;) {
        while (*kid < node->kid_count && (!is_present(f, node->kids[*kid]) || end_of(f, node->kids[*kid]) <= i))
            ++*kid;
        const ast *k = ast_kid(node, *kid);
        if (i != first)
            format_gap(&f->t, out, i, format_space(&f->t, i), false);
        uint32_t close = format_partner(&f->t, i), end = unread_end(f, node, i, to);
        if (is_present(f, k) && begin_of(f, k) == i) {
            add(f, out, walk(f, k, node));
            end = end_of(f, k);
        } else if (end > i) {
            add(f, out, format_verbatim(&f->t, i, end));
        } else if (close != TOKEN_NONE && close < to) {
            add(f, out, brackets(f, node, parent, kid, i, close));
            end = close + 1;
        } else {
            add_token(f, out, i);
            end = i + 1;
        }
        i = end;
    }
}

static void fill(formatter *f, document *out, const ast *node, uint32_t *kid, uint32_t first, uint32_t from, uint32_t to)
{
    fill_in(f, out, node, node, kid, first, from, to);
}

static document *plain(formatter *f, const ast *node, const ast *parent, document_kind kind, int limit)
{
    document *out = new_sequence(f, kind);
    uint32_t kid = 0, from = begin_of(f, node);
    fill_in(f, out, node, parent, &kid, from, from, end_of(f, node));
    document_close(out, limit);
    return kind == DOC_SEQUENCE && out->count == 1 ? out->kids[0] : out;
}

static bool is_in_brackets(const formatter *f, const ast *node)
{
    return format_partner(&f->t, begin_of(f, node)) == end_of(f, node) - 1;
}

/* Do the two operators bind equally? */
static bool is_level(const ast *a, const ast *b)
{
    static const char *const levels[] = {"+-", "*/%"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (a->text[1] == '\0' && b->text[1] == '\0' && strchr(levels[i], a->text[0]) && strchr(levels[i], b->text[0]))
            return true;
    return strcmp(a->text, b->text) == 0;
}

/* Operators begin the lines after the first one. */
static document *operators(formatter *f, const ast *node)
{
    document *out = new_sequence(f, DOC_GROUP);
    add(f, out, plain(f, node, node, DOC_INDENT, DOCUMENT_WIDE));
    return document_close(out, DOCUMENT_WIDE);
}

/* `left = right`, the right side being the last kid. */
static document *assignment(formatter *f, const ast *node)
{
    bool has_else = ast_is(node, AST_LET) && node->kid_count > 3;
    const ast *right = ast_kid(node, has_else ? 2 : node->kid_count - 1);
    uint32_t from = begin_of(f, node), to = end_of(f, node), value = begin_of(f, right), kid = 0;
    if (!is_present(f, right) || format_has_comment(&f->t, value) || (ast_is(node, AST_ASSIGN) && is_in_brackets(f, node)))
        return plain(f, node, node, DOC_INDENT, DOCUMENT_WIDE);
    document *out = new_sequence(f, DOC_SEQUENCE), *sides = new_sequence(f, DOC_ASSIGN), *left = new_sequence(f, DOC_SEQUENCE);
    fill(f, left, node, &kid, from, from, value);
    add(f, sides, document_close(left, DOCUMENT_WIDE));
    add(f, sides, walk(f, right, node));
    add(f, out, document_close(sides, DOCUMENT_WIDE));
    kid = has_else ? 3 : node->kid_count;
    fill(f, out, node, &kid, value, end_of(f, right), to);
    return document_close(out, DOCUMENT_WIDE);
}

/* ---- chains ---- */

static bool is_postfix(const ast *n)
{
    switch (n->kind) {
    case AST_METHOD:
    case AST_FIELD:
    case AST_CALL:
    case AST_INDEX:
    case AST_AWAIT:
    case AST_TRY: return true;
    default: return false;
    }
}

/* Is the operand the beginning of the node's text? Else brackets stand around the node. */
static bool is_open(const formatter *f, const ast *n)
{
    return begin_of(f, ast_kid(n, 0)) == begin_of(f, n);
}

/* What follows the operand of a postfix node. */
static void add_link(formatter *f, document *out, const ast *n, break_kind at)
{
    uint32_t from = end_of(f, ast_kid(n, 0)), kid = 1;
    format_gap(&f->t, out, from, at, false);
    fill(f, out, n, &kid, from, from, end_of(f, n));
}

/* `receiver.field` and below it each call on a line of its own; a receiver not wider than the indentation takes the first call along. */
static document *chain(formatter *f, const ast *node)
{
    uint32_t count = 0, calls = 0;
    const ast *n = node;
    for (; is_postfix(n) && is_open(f, n); n = ast_kid(n, 0))
        count++;
    const ast **links = ARENA_ARRAY(f->arena, const ast *, count);
    for (n = node, count = 0; is_postfix(n) && is_open(f, n); n = ast_kid(n, 0)) {
        links[count++] = n;
        calls += ast_is(n, AST_METHOD);
    }
    document *out = new_sequence(f, DOC_GROUP), *head = new_sequence(f, DOC_SEQUENCE), *tail = new_sequence(f, DOC_INDENT);
    add(f, head, walk(f, n, node));
    for (; count > 0 && !ast_is(links[count - 1], AST_METHOD); count--)
        add_link(f, head, links[count - 1], BREAK_NONE);
    document_close(head, DOCUMENT_WIDE);
    if (count > 0 && (calls < 2 || head->flat <= DOCUMENT_INDENT) && !format_has_comment(&f->t, end_of(f, ast_kid(links[count - 1], 0))))
        add_link(f, head, links[--count], BREAK_NONE);
    add(f, out, document_close(head, DOCUMENT_WIDE));
    while (count > 0) {
        const ast *link = links[--count];
        add_link(f, tail, link, ast_is(link, AST_METHOD) && calls > 1 ? BREAK_SOFT_NONE : BREAK_NONE);
    }
    add(f, out, document_close(tail, DOCUMENT_WIDE));
    return document_close(out, calls > 1 ? SHORT_CHAIN : DOCUMENT_WIDE);
}

/* ---- nodes ---- */

static document *conditional(formatter *f, const ast *node, const ast *parent)
{
    bool nested = ast_is(parent, AST_IF), statement = ast_is(parent, AST_EXPR_STMT) || ast_is(parent, AST_BLOCK);
    return plain(f, node, parent, nested ? DOC_SEQUENCE : DOC_GROUP, nested ? DOCUMENT_WIDE : statement ? 0 : SHORT_IF);
}

static document *walk(formatter *f, const ast *node, const ast *parent)
{
    if (is_verbatim(node))
        return format_verbatim(&f->t, begin_of(f, node), end_of(f, node));
    if (is_postfix(node) && is_open(f, node))
        return chain(f, node);
    switch (node->kind) {
    case AST_CFG:
    case AST_AFTER: return walk(f, node->kids[0], parent);
    case AST_ATTR: return attribute(f, begin_of(f, node), end_of(f, node));
    case AST_LET:
    case AST_CONST:
    case AST_TYPE_ALIAS:
    case AST_ASSIGN: return assignment(f, node);
    case AST_BINARY:
        return is_in_brackets(f, node) || (ast_is(parent, AST_BINARY) && is_level(node, parent))
                   ? plain(f, node, parent, DOC_SEQUENCE, DOCUMENT_WIDE)
                   : operators(f, node);
    case AST_IF: return conditional(f, node, parent);
    case AST_CONST_BLOCK:
    case AST_UNSAFE: return plain(f, node, parent, DOC_GROUP, DOCUMENT_WIDE);
    default: return plain(f, node, parent, DOC_SEQUENCE, DOCUMENT_WIDE);
    }
}

void format_file(const source_map *sources, const ast *file, strbuf *out)
{
    formatter f = {.arena = out->arena};
    format_tokens_read(&f.t, sources, file, f.arena);
    if (strncmp(f.t.source, "\xef\xbb\xbf", 3) == 0) /* a text may have fewer bytes */
        strbuf_puts(out, "\xef\xbb\xbf");
    document *all = new_sequence(&f, DOC_SEQUENCE);
    uint32_t kid = 0, end = f.t.count - 1;
    statements(&f, all, file, &kid, 0, end);
    format_comments(&f.t, all, end, true);
    if (all->count > 0)
        add_break(&f, all, BREAK_HARD);
    document_print(document_close(all, DOCUMENT_WIDE), f.t.line_end, out);
}
