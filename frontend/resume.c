/* Where the parser goes on after a syntax error. */
#include <string.h>

#include "frontend/parse_state.h"

bool parse_first_on_line(const parse_state *p, uint32_t index)
{
    uint32_t begin = index > 0 ? token_at(p, index - 1)->end : 0;
    return memchr(p->source + begin, '\n', token_at(p, index)->begin - begin) != NULL;
}

static bool is_statement_word(int kind)
{
    switch (kind) {
    case T_LET:
    case T_FN:
    case T_USE:
    case T_TYPE:
    case T_CONST:
    case T_MOD:
    case T_PUB:
    case T_EXTERN:
    case T_ASYNC:
    case T_STRUCT:
    case T_ENUM:
    case T_TRAIT:
    case T_IMPL:
    case T_STATIC:
    case T_AXES_OPEN:
    case '#': return true;
    default: return false;
    }
}

/* After a } the next statement begins, unless the text goes on as an expression does. */
static bool goes_on(int kind)
{
    return kind == T_ELSE || kind == ';' || kind == ',' || kind == '.' || kind == '?' || kind == '=' || kind == '+' || kind == '/' ||
           kind == '%' || kind == ')' || kind == ']' || kind == '>' || kind == T_TUPLE_INDEX || kind == T_AS || kind == T_DOT2 ||
           kind == T_COLON2 || kind == ':';
}

/* The innermost bracket of that kind around the token, unless a block that the parser has open is further in. */
static uint32_t bracket_around(const parse_state *p, uint32_t index, uint32_t block, int kind)
{
    const token *t = token_at(p, index);
    uint32_t open = t->kind == T_MACRO_CLOSE ? t->match : t->parent;
    while (open != TOKEN_NONE && open != block && token_at(p, open)->kind != kind)
        open = token_at(p, open)->parent;
    return open == block ? TOKEN_NONE : open;
}

/* Is the token in the head of a function, in front of its body? */
static bool in_function_head(const parse_state *p, uint32_t index, uint32_t block)
{
    for (uint32_t i = index; i-- > 0;) {
        const token *t = token_at(p, i);
        if (t->begin < p->statement_begin || i == block)
            return false;
        if (t->parent == block && t->kind == T_FN)
            return true;
        if (t->parent == block && t->kind == '{')
            return false;
    }
    return false;
}

/* The `,` or the end after a faulty entry of axes![..]; a name after a number begins the next one: its comma was forgotten. */
static resumption entry_after(const parse_state *p, uint32_t error, uint32_t axes)
{
    if (kind_at(p, error, 0) == T_IDENT && kind_at(p, error - 1, 0) == T_INT && p->resync_to != error)
        return (resumption){T_RESYNC_COMMA, error};
    uint32_t i = error;
    while (token_at(p, i)->parent != axes && i != token_at(p, axes)->match)
        i = token_at(p, i)->parent;
    while (i != token_at(p, axes)->match && kind_at(p, i, 0) != ',')
        i = token_closer(token_at(p, i)) ? token_at(p, i)->match + 1 : i + 1;
    return (resumption){T_RESYNC_AXIS, i};
}

/* The next place in the innermost open block where a statement may begin: after a `;` or a block, at a word
 * that only begins statements, or at the end of the block; for a faulty function head its body. */
static resumption statement_after(const parse_state *p, uint32_t error, uint32_t block)
{
    uint32_t block_close = block == TOKEN_NONE ? (uint32_t)p->tokens.count - 1 : token_at(p, block)->match;
    bool head = in_function_head(p, error, block);
    for (uint32_t i = error; i < block_close; i++) {
        const token *t = token_at(p, i);
        /* The token itself may be the end of a bracket, or be inside one: on to the end of that bracket. */
        if (t->parent != block) {
            while (t->parent != block)
                t = token_at(p, t->parent);
            i = t->match;
        } else if (t->kind == '{' && head) {
            return (resumption){T_RESYNC_BODY, i};
        } else if (token_closer(t) != 0 && t->kind != T_AXES_OPEN) {
            i = t->match;
        }
        t = token_at(p, i);
        if (t->kind == ';' || (t->kind == '}' && !goes_on(kind_at(p, i, 1))))
            return (resumption){T_RESYNC, i + 1};
        bool fresh = i > error || p->resync_to != error;
        if (fresh && i > 0 && is_statement_word(t->kind) && (parse_begins_statement(p, i) || parse_first_on_line(p, i)))
            return (resumption){T_RESYNC, i};
    }
    return (resumption){T_RESYNC, block_close};
}

resumption parse_resume_after(const parse_state *p, uint32_t error)
{
    uint32_t block = p->block_count > 0 ? p->blocks[p->block_count - 1] : TOKEN_NONE;
    uint32_t mapping = bracket_around(p, error, block, T_MAP_OPEN);
    if (mapping != TOKEN_NONE)
        return (resumption){T_RESYNC_MAP, token_at(p, mapping)->match};
    uint32_t axes = bracket_around(p, error, block, T_AXES_OPEN);
    if (axes != TOKEN_NONE)
        return entry_after(p, error, axes);
    return statement_after(p, error, block);
}
