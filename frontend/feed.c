/* What the grammar sees of the tokens: constructs that are kept but not read as one token each, and the words
 * that begin a statement as tokens of their own. */
#include <string.h>

#include "frontend/parse_state.h"

/* Is the ] at `index` the end of an attribute? */
static bool ends_attribute(const parse_state *p, uint32_t index)
{
    const token *t = token_at(p, index);
    if (t->kind != ']' || t->match == TOKEN_NONE || t->match == 0)
        return false;
    uint32_t before = t->match - 1;
    return kind_at(p, before, 0) == '#' || (kind_at(p, before, 0) == '!' && before > 0 && kind_at(p, before - 1, 0) == '#');
}

/* `'a:` in front of a loop or block: the label is read and forgotten. */
static bool is_label(const parse_state *p, uint32_t index)
{
    if (kind_at(p, index, 0) != T_LIFETIME || kind_at(p, index, 1) != ':')
        return false;
    int labelled = kind_at(p, index, 2);
    return labelled == T_FOR || labelled == T_WHILE || labelled == T_LOOP || labelled == '{';
}

/* `ref` in front of the name that a pattern binds: what it binds to is the same here. */
static bool is_binding_mode(const parse_state *p, uint32_t index)
{
    if (kind_at(p, index, 0) != T_IDENT)
        return false;
    int bound = kind_at(p, index, 1);
    return (bound == T_IDENT || bound == T_MUT) && token_is_word(p->source, token_at(p, index), "ref");
}

bool parse_begins_statement(const parse_state *p, uint32_t index)
{
    if (index >= 2 && is_label(p, index - 2))
        index -= 2;
    uint32_t parent = token_at(p, index)->parent;
    if (parent != TOKEN_NONE && token_at(p, parent)->kind != '{')
        return false;
    if (index == 0)
        return true;
    switch (token_at(p, index - 1)->kind) {
    case ';':
    case '{':
    case '}': return true;
    case T_MACRO_CLOSE: return token_at(p, token_at(p, index - 1)->match)->kind == T_AXES_OPEN;
    default: return ends_attribute(p, index - 1);
    }
}

static bool begins_item(const parse_state *p, uint32_t index)
{
    if (parse_begins_statement(p, index))
        return true;
    switch (token_at(p, index - 1)->kind) {
    case T_PUB:
    case ')': /* of pub(crate) */ return true;
    default: return false;
    }
}

/* Index of the last token of the block whose head (if, for, while, match, loop, unsafe, const or {) is at `index`,
 * with every else; TOKEN_NONE when it has no block. */
static uint32_t block_end(const parse_state *p, uint32_t index)
{
    for (;;) {
        int kind = kind_at(p, index, 0);
        uint32_t open = kind == '{' ? index : kind == T_UNSAFE || kind == T_CONST || kind == T_LOOP ? index + 1 : token_at(p, index)->match;
        if (open == TOKEN_NONE || kind_at(p, open, 0) != '{')
            return TOKEN_NONE;
        uint32_t close = token_at(p, open)->match;
        if (kind != T_IF || kind_at(p, close, 1) != T_ELSE)
            return close;
        index = close + 2;
    }
}

/* Is this the head of a block that is a statement of its own? `unsafe { x }.f()` is not. */
static bool is_block_statement(const parse_state *p, uint32_t index)
{
    if (!parse_begins_statement(p, index))
        return false;
    uint32_t end = block_end(p, index);
    if (end == TOKEN_NONE)
        return true;
    int after = kind_at(p, end, 1);
    return after != '.' && after != '?' && after != T_TUPLE_INDEX;
}

/* Is it an angle bracket, of *open ones? Counts it. */
static bool count_angle(const token *t, int *open)
{
    bool opens = t->kind == '<' || t->kind == T_LT_LT;
    bool closes = (t->kind == '>' || t->kind == T_GT_GT || t->kind == T_GT_EQ) && *open > 0;
    *open += opens - closes;
    return opens || closes;
}

/* Index of the last token of an item that is kept but not read: after its { } or `;`. Braces between < > are
 * const arguments, not the body; where a < is never closed, the first of them is the body. */
static uint32_t ignored_item_end(const parse_state *p, uint32_t index, bool body_ends)
{
    uint32_t braces = 0;
    int angles = 0;
    for (uint32_t i = index;; i++) {
        const token *t = token_at(p, i);
        if (t->kind == 0 || (t->match != TOKEN_NONE && t->match < i))
            return braces ? braces : i - 1; /* the end of what is around it */
        if (t->kind == ';')
            return i;
        if (!count_angle(t, &angles) && token_closer(t) != 0) {
            i = t->match;
            if (t->kind == '{' && angles == 0 && body_ends)
                return i;
            if (t->kind == '{' && body_ends && !braces)
                braces = i;
        }
    }
}

/* Index of the token before the body or `;` that ends a where clause. */
static uint32_t where_end(const parse_state *p, uint32_t index)
{
    int angles = 0;
    for (uint32_t i = index + 1;; i++) {
        const token *t = token_at(p, i);
        bool outside = t->kind == 0 || t->kind == ';' || (t->match != TOKEN_NONE && t->match < i);
        if (outside || (t->kind == '{' && angles == 0))
            return i - 1;
        if (!count_angle(t, &angles) && token_closer(t) != 0)
            i = t->match;
    }
}

/* Index of the last token of `impl Trait` or `dyn Trait` in a type. */
static uint32_t opaque_end(const parse_state *p, uint32_t index)
{
    int angles = 0;
    for (uint32_t i = index + 1;; i++) {
        const token *t = token_at(p, i);
        bool outside = t->kind == 0 || t->kind == ';' || t->kind == '{' || t->kind == T_WHERE || (t->match != TOKEN_NONE && t->match < i);
        bool ends = t->kind == ',' || t->kind == '=' || t->kind == '>' || t->kind == T_GT_GT || t->kind == T_GT_EQ || t->kind == '|';
        if (outside || (ends && angles == 0))
            return i - 1;
        if (!count_angle(t, &angles) && token_closer(t) != 0)
            i = t->match;
    }
}

/* A token as the grammar sees it: its kind, and the index of its last token when several are folded into it.
 */
typedef struct folded {
    int kind;
    uint32_t last;
} folded;

/* Index of the last word of the path that begins there: `std::pin::pin`. A path is looked through once, from its front. */
static uint32_t path_end(const parse_state *p, uint32_t index)
{
    if (index > 0 && kind_at(p, index - 1, 0) == T_COLON2)
        return index;
    while (kind_at(p, index, 1) == T_COLON2 && kind_at(p, index, 2) == T_IDENT)
        index += 2;
    return index;
}

static folded fold_name(const parse_state *p, uint32_t index)
{
    const token *t = token_at(p, index);
    if (kind_at(p, index, 1) == T_IDENT && token_is_word(p->source, t, "union") && begins_item(p, index))
        return (folded){T_IGNORED_ITEM, ignored_item_end(p, index, true)};
    uint32_t name = path_end(p, index);
    if (kind_at(p, name, 1) != '!')
        return (folded){t->kind, index};
    const token *open = token_at(p, name + 2 < p->tokens.count ? name + 2 : name);
    if (open->kind == '(' || open->kind == '[' || open->kind == '{') {
        int after = kind_at(p, open->match, 1);
        bool statement = open->kind == '{' && parse_begins_statement(p, index) && after != '.' && after != '?';
        return (folded){statement ? T_S_MACRO : T_MACRO_CALL, open->match};
    }
    if (open->kind == T_IDENT && token_is_word(p->source, t, "macro_rules"))
        return (folded){T_IGNORED_ITEM, ignored_item_end(p, index, true)};
    return (folded){t->kind, index};
}

static folded fold_attribute(const parse_state *p, uint32_t index)
{
    if (kind_at(p, index, 1) == '[')
        return (folded){T_OUTER_ATTR, token_at(p, index + 1)->match};
    if (kind_at(p, index, 1) == '!' && kind_at(p, index, 2) == '[')
        return (folded){T_INNER_ATTR, token_at(p, index + 2)->match};
    return (folded){'#', index};
}

static folded fold(const parse_state *p, uint32_t index)
{
    const token *t = token_at(p, index);
    uint32_t end;
    switch (t->kind) {
    case T_IDENT:
    case T_CRATE: return fold_name(p, index);
    case '#': return fold_attribute(p, index);
    case T_STRUCT:
    case T_ENUM:
    case T_TRAIT:
    case T_IMPL:
    case T_STATIC:
        if (begins_item(p, index))
            return (folded){T_IGNORED_ITEM, ignored_item_end(p, index, t->kind != T_STATIC)};
        if (t->kind == T_IMPL)
            return (folded){T_OPAQUE_TYPE, opaque_end(p, index)};
        break;
    case T_FN: /* a type of functions */
        if (kind_at(p, index, 1) == '(')
            return (folded){T_OPAQUE_TYPE, opaque_end(p, index)};
        break;
    case T_DYN: return (folded){T_OPAQUE_TYPE, opaque_end(p, index)};
    case T_ASYNC: /* a block, of the host */
        end = index + (kind_at(p, index, 1) == T_MOVE ? 2 : 1);
        if (kind_at(p, end, 0) == '{')
            return (folded){T_REFUSED, token_at(p, end)->match};
        break;
    case T_ELSE: return (folded){index > 0 && kind_at(p, index - 1, 0) == '}' ? T_ELSE : T_LET_ELSE, index};
    case T_EXTERN: /* functions of another language */
        if (kind_at(p, index, 1) == '{' || (kind_at(p, index, 1) == T_STRING && kind_at(p, index, 2) == '{'))
            return (folded){T_IGNORED_ITEM, ignored_item_end(p, index, true)};
        break;
    case T_WHERE: return (folded){T_WHERE_CLAUSE, where_end(p, index)};
    case T_IF:
        if (kind_at(p, index, 1) != T_LET)
            return (folded){is_block_statement(p, index) ? T_S_IF : T_IF, index};
        /* fall through */
    case T_MATCH:
    case T_WHILE:
    case T_LOOP:
        if ((end = block_end(p, index)) != TOKEN_NONE)
            return (folded){is_block_statement(p, index) ? T_S_REFUSED : T_REFUSED, end};
        break;
    case T_FOR: return (folded){is_block_statement(p, index) ? T_S_FOR : T_FOR, index};
    case T_CONST:
        if (kind_at(p, index, 1) == '{' && is_block_statement(p, index))
            return (folded){T_S_CONST, index};
        break;
    case T_UNSAFE:
        if (kind_at(p, index, 1) == '{' && is_block_statement(p, index))
            return (folded){T_S_UNSAFE, index};
        if (kind_at(p, index, 1) == T_TRAIT || kind_at(p, index, 1) == T_IMPL)
            return (folded){T_IGNORED_ITEM, ignored_item_end(p, index, true)};
        break;
    case '{':
        if (t->flags & TOKEN_COND_BLOCK)
            return (folded){T_COND_BLOCK, index};
        return (folded){is_block_statement(p, index) ? T_S_BLOCK : '{', index};
    default: break;
    }
    return (folded){t->kind, index};
}

/* Is it one of the many tokens that are what they are, whatever stands around them? */
static bool is_plain(const parse_state *p, uint32_t index)
{
    int kind = kind_at(p, index, 0), next;
    switch (kind) {
    case T_IDENT: next = kind_at(p, index, 1); return next != T_IDENT && next != T_MUT && next != T_COLON2 && next != '!';
    case T_INT:
    case T_COLON2:
    case T_MAP_OPEN:
    case T_MACRO_CLOSE: return true;
    default: return kind > 0 && kind < T_IDENT && kind != '#' && kind != '{'; /* a character */
    }
}

/* Apart, so that the many plain tokens save no registers for it. */
static __attribute__((noinline)) int next_folded(VISA_PARSE_STYPE *value, src_range *place, parse_state *p)
{
    uint32_t last_index = (uint32_t)p->tokens.count - 1;
    if (p->resync) {
        int kind = p->resync;
        p->resync = 0;
        p->next = p->resync_to;
        *place = (src_range){p->file, token_at(p, p->next)->begin, token_at(p, p->next)->begin};
        return kind;
    }
    p->current = p->given_up ? last_index : p->next;
    uint32_t begin = token_at(p, p->current)->begin;
    if (is_label(p, p->current))
        p->current += 2;
    else if (is_binding_mode(p, p->current))
        p->current += 1;
    const token *t = token_at(p, p->current);
    folded f = fold(p, p->current);
    /* The end of the file is given as often as it is asked for. */
    p->next = f.last < last_index ? f.last + 1 : last_index;
    value->token = t;
    *place = (src_range){p->file, begin, token_at(p, f.last)->end};
    return f.kind;
}

int parse_next(VISA_PARSE_STYPE *value, src_range *place, parse_state *p)
{
    if (p->resync || p->given_up || !is_plain(p, p->next))
        return next_folded(value, place, p);
    const token *t = token_at(p, p->next);
    p->current = p->next++; /* the last token is not plain */
    value->token = t;
    *place = (src_range){p->file, t->begin, t->end};
    return t->kind;
}

void parse_enter_block(parse_state *p, const token *open)
{
    /* Never full: the scanner bounds the nesting. */
    if (p->block_count < NESTING_MAX)
        p->blocks[p->block_count++] = (uint32_t)(open - p->tokens.items);
}

void parse_leave_block(parse_state *p)
{
    p->block_count--;
}

void parse_statement_done(parse_state *p, src_range statement)
{
    if (statement.end > p->statement_begin)
        p->statement_begin = statement.end;
}
