#include "frontend/flow.h"

#include <string.h>

#include "frontend/expand_state.h"
#include "frontend/parser.tab.h"
#include "support/budget.h"

typedef struct flow {
    expander *expander;
    const ast *node;
    token_text_list text;
    const diag *fault; /* the first part that cannot be read has it */
} flow;

static const token *at(const flow *f, uint32_t i)
{
    return &f->text.tokens.items[i];
}

/* The first token of that kind outside of brackets, or `end`. */
static uint32_t find(const flow *f, uint32_t i, uint32_t end, int kind)
{
    while (i < end && at(f, i)->kind != kind)
        i = macro_token_after(&f->text, i);
    return i < end ? i : end;
}

/* The one statement that a part is, with a text before and after it; NULL: it cannot be read. */
static const ast *part(flow *f, const char *before, uint32_t begin, uint32_t end, const char *after)
{
    arena *a = f->expander->arena;
    diag_list unsaid;
    diag_list_init(&unsaid, a);
    expansion x = {.call = f->node->range};
    pieced_text_init(&x.text, a);
    strbuf_puts(&x.text.text, before);
    pieced_text_add(&x.text, f->expander->sources, expand_places(&f->text, begin, end));
    strbuf_puts(&x.text.text, after);
    const ast *file = expand_parse(f->expander, x, &unsaid);
    if (unsaid.error_count == 0 && file->kid_count == 1)
        return file->kids[0];
    if (!f->fault && unsaid.count > 0)
        f->fault = unsaid.items[0];
    return NULL;
}

static const ast *expression(flow *f, uint32_t begin, uint32_t end)
{
    bool branches = end > begin && at(f, begin)->kind == T_IF; /* a `let` in brackets would be taken for one that is missing */
    const ast *statement = branches ? part(f, "let _ = ", begin, end, ";") : end > begin ? part(f, "(", begin, end, ");") : NULL;
    if (branches)
        return statement && ast_is(statement, AST_LET) ? ast_kid(statement, 2) : NULL;
    return statement && ast_is(statement, AST_EXPR_STMT) ? ast_kid(statement, 0) : NULL;
}

/* Tokens from a `{` on; its statements. */
static const ast *block(flow *f, uint32_t begin)
{
    const ast *statement = part(f, "", begin, macro_token_after(&f->text, begin), "");
    const ast *read = statement && ast_is(statement, AST_EXPR_STMT) ? ast_kid(statement, 0) : NULL;
    return read && ast_is(read, AST_BLOCK) ? read : NULL;
}

static ast *node_of(const flow *f, ast_kind kind, uint32_t begin, uint32_t end)
{
    return ast_new(f->expander->arena, kind, expand_places(&f->text, begin, end));
}

static bool push(const flow *f, ast *node, const ast *kid)
{
    if (!kid || kid->depth >= NESTING_MAX)
        return false;
    ast_push(f->expander->arena, node, (ast *)kid);
    return true;
}

/* ---- patterns ---- */

static const ast *pattern(flow *f, uint32_t i, uint32_t end);

/* The patterns between commas; NULL: one of them cannot be read. */
static const ast *patterns(flow *f, ast *node, uint32_t i, uint32_t end)
{
    while (i < end) {
        uint32_t comma = find(f, i, end, ',');
        if (!push(f, node, pattern(f, i, comma)))
            return NULL;
        i = comma + 1;
    }
    return node;
}

/* A number, a range of them, `-1`, `true`, `Type::NAME`: what is equal to a value. */
static bool is_value(const flow *f, uint32_t i, uint32_t end)
{
    int first = at(f, i)->kind;
    bool path = true;
    for (uint32_t k = i; k < end; k++)
        path = path && (at(f, k)->kind == T_IDENT || at(f, k)->kind == T_COLON2 || at(f, k)->kind == T_SELF_TYPE ||
                        at(f, k)->kind == T_CRATE || at(f, k)->kind == T_SELF || at(f, k)->kind == T_SUPER);
    return (path && end - i > 1) || first == T_INT || first == T_FLOAT || first == T_STRING || first == '-' || first == T_TRUE ||
           first == T_FALSE || (end - i > 1 && (find(f, i, end, T_DOT2) < end || find(f, i, end, T_DOT2_EQ) < end));
}

/* The patterns between `|`, as they stand in front of an arm. */
static bool alternatives(flow *f, ast *list, uint32_t i, uint32_t end)
{
    for (i += at(f, i)->kind == '|'; i < end;) {
        uint32_t bar = find(f, i, end, '|');
        if (!push(f, list, pattern(f, i, bar)))
            return false;
        i = bar + 1;
    }
    return list->kid_count > 0;
}

/* `Name { field, other: pattern, .. }` */
static const ast *struct_pattern(flow *f, uint32_t i, uint32_t open, uint32_t end)
{
    ast *whole = node_of(f, AST_PAT_STRUCT, i, end);
    if (!push(f, whole, expression(f, i, open)))
        return NULL;
    for (uint32_t k = open + 1; k < end - 1;) {
        uint32_t comma = find(f, k, end - 1, ','), name = k + (at(f, k)->kind == T_MUT);
        bool named = at(f, name)->kind == T_IDENT, alone = named && name + 1 == comma;
        bool given = named && name == k && at(f, k + 1)->kind == ':';
        if (at(f, k)->kind == T_DOT2 && comma == k + 1) {
            push(f, whole, node_of(f, AST_PAT_REST, k, comma));
        } else if (alone || given) {
            ast *field = node_of(f, AST_PAT_FIELD, k, comma);
            field->text = token_text(f->text.source, at(f, name), f->expander->arena);
            field->name_range = expand_places(&f->text, name, name + 1);
            if (!push(f, field, pattern(f, given ? k + 2 : k, comma)) || !push(f, whole, field))
                return NULL;
        } else {
            return NULL;
        }
        k = comma + 1;
    }
    return whole;
}

static const ast *pattern_kind(flow *f, uint32_t i, uint32_t end)
{
    if (find(f, i, end, '|') < end) {
        ast *either = node_of(f, AST_PAT_OR, i, end);
        return alternatives(f, either, i, end) ? either : NULL;
    }
    const token *first = at(f, i);
    uint32_t open = find(f, i, end, '(');
    bool whole = token_closer(first) && macro_token_after(&f->text, i) == end;
    if (first->kind == '&') {
        ast *reference = node_of(f, AST_PAT_REF, i, end);
        return push(f, reference, pattern(f, i + 1, end)) ? reference : NULL;
    }
    if (whole && first->kind == '(') {
        bool one = find(f, i + 1, end - 1, ',') == end - 1 && end - i > 2 && at(f, i + 1)->kind != T_DOT2;
        return one ? pattern(f, i + 1, end - 1) : patterns(f, node_of(f, AST_PAT_TUPLE, i, end), i + 1, end - 1);
    }
    if (whole && first->kind == '[')
        return patterns(f, node_of(f, AST_PAT_ARRAY, i, end), i + 1, end - 1);
    if (first->kind == T_DOT2 && end == i + 1)
        return node_of(f, AST_PAT_REST, i, end);
    if (first->kind == T_IDENT && at(f, i + 1)->kind == '@' && i + 2 < end) {
        ast *name = node_of(f, AST_PAT_NAME, i, end);
        name->text = token_text(f->text.source, first, f->expander->arena);
        name->name_range = expand_places(&f->text, i, i + 1);
        return push(f, name, pattern(f, i + 2, end)) ? name : NULL;
    }
    if (is_value(f, i, end)) {
        ast *value = node_of(f, AST_PAT_VALUE, i, end);
        return push(f, value, expression(f, i, end)) ? value : NULL;
    }
    if (open > i && open < end && macro_token_after(&f->text, open) == end) {
        ast *tuple = node_of(f, AST_PAT_TUPLE_STRUCT, i, end);
        return push(f, tuple, expression(f, i, open)) ? patterns(f, tuple, open + 1, end - 1) : NULL;
    }
    uint32_t brace = find(f, i, end, '{');
    if (brace > i && brace < end && macro_token_after(&f->text, brace) == end)
        return struct_pattern(f, i, brace, end);
    const ast *let = part(f, "let ", i, end, " = 0;");
    return let && ast_is(let, AST_LET) ? ast_kid(let, 0) : NULL;
}

static const ast *pattern(flow *f, uint32_t i, uint32_t end)
{
    if (i >= end)
        return NULL;
    budget_enter(f->expander->arena);
    const ast *read = pattern_kind(f, i, end);
    budget_leave(f->expander->arena);
    return read;
}

/* ---- match ---- */

/* Where the value of an arm ends: after its block, or in front of the comma. */
static uint32_t arm_end(const flow *f, uint32_t i, uint32_t close)
{
    uint32_t end = macro_token_after(&f->text, i);
    if (at(f, i)->kind == '{' && at(f, end)->kind != '.' && at(f, end)->kind != '?')
        return end;
    int angles = 0; /* of a turbofish: its commas separate no arms */
    for (; i < close && (at(f, i)->kind != ',' || angles > 0); i = macro_token_after(&f->text, i)) {
        bool opens = at(f, i)->kind == '<' && (angles > 0 || at(f, i - 1)->kind == T_COLON2);
        angles += opens ? 1 : angles > 0 && (at(f, i)->kind == '>' || at(f, i)->kind == T_GT_GT) ? -1 : 0;
    }
    return i;
}

/* `A | B if guard => value`, from `i` on. Returns the token after it, 0: it cannot be read. */
static uint32_t read_arm(flow *f, ast *match, uint32_t i, uint32_t close)
{
    while (at(f, i)->kind == '#' && token_closer(at(f, i + 1)))
        i = macro_token_after(&f->text, i + 1);
    uint32_t arrow = find(f, i, close, T_FAT_ARROW), guard = find(f, i, arrow, T_IF);
    if (arrow == close || arrow + 1 >= close)
        return 0;
    uint32_t end = arm_end(f, arrow + 1, close);
    bool is_block = at(f, arrow + 1)->kind == '{' && macro_token_after(&f->text, arrow + 1) == end;
    ast *arm = node_of(f, AST_ARM, i, end), *list = node_of(f, AST_LIST, i, guard);
    bool ok = alternatives(f, list, i, guard) && push(f, arm, list) &&
              push(f, arm, guard < arrow ? expression(f, guard + 1, arrow) : ast_new(f->expander->arena, AST_NONE, list->range)) &&
              push(f, arm, is_block ? block(f, arrow + 1) : expression(f, arrow + 1, end)) && push(f, match, arm);
    return !ok ? 0 : end < close && at(f, end)->kind == ',' ? end + 1 : end;
}

static const ast *read_match(flow *f, uint32_t word, uint32_t open)
{
    ast *match = ast_new(f->expander->arena, AST_MATCH, f->node->range);
    match->name_range = expand_places(&f->text, word, word + 1);
    if (!push(f, match, expression(f, word + 1, open)))
        return NULL;
    for (uint32_t i = open + 1, close = at(f, open)->match; i < close;)
        if (!(i = read_arm(f, match, i, close)))
            return NULL;
    return match;
}

/* ---- while, loop ---- */

static const ast *read_while(flow *f, uint32_t word, uint32_t open)
{
    ast *loop = ast_new(f->expander->arena, AST_WHILE, f->node->range);
    bool endless = at(f, word)->kind == T_LOOP;
    loop->name_range = expand_places(&f->text, word, word + 1);
    if (word > 0)
        loop->text = token_text(f->text.source, at(f, 0), f->expander->arena);
    const ast *condition = endless ? ast_new(f->expander->arena, AST_NONE, loop->name_range) : expression(f, word + 1, open);
    return push(f, loop, condition) && push(f, loop, block(f, open)) ? loop : NULL;
}

/* `if let PATTERN = value {..} else ..`: a match of two arms. */
static const ast *read_if_let(flow *f, uint32_t end)
{
    arena *a = f->expander->arena;
    uint32_t equal = find(f, 2, end, '='), open = find(f, equal, end, '{'),
             otherwise = open < end ? macro_token_after(&f->text, open) + 1 : end;
    if (open == end || otherwise == end)
        return NULL;
    ast *match = ast_new(a, AST_MATCH, f->node->range), *arms[2];
    match->name_range = expand_places(&f->text, 0, 1);
    const ast *other = otherwise > end                 ? ast_new(a, AST_TUPLE, match->name_range)
                       : at(f, otherwise)->kind == '{' ? block(f, otherwise)
                                                       : expression(f, otherwise, end);
    bool ok = push(f, match, expression(f, equal + 1, open));
    for (int i = 0; i < 2; i++) {
        const ast *meant = i == 0 ? pattern(f, 2, equal) : ast_new(a, AST_PAT_WILD, match->name_range);
        ast *list = ast_new(a, AST_LIST, match->name_range);
        arms[i] = ast_new(a, AST_ARM, match->name_range);
        ok = ok && push(f, list, meant) && push(f, arms[i], list) && push(f, arms[i], ast_new(a, AST_NONE, match->name_range)) &&
             push(f, arms[i], i == 0 ? block(f, open) : other) && push(f, match, arms[i]);
    }
    return ok ? match : NULL;
}

const ast *flow_read_matches(expander *e, const ast *n)
{
    flow f = {.expander = e, .node = n};
    arena *a = e->arena;
    if (!macro_scan(e->sources, ast_kid(n, 0)->range, expand_scanner(e), a, &f.text) || f.text.tokens.count < 5 || !token_closer(at(&f, 0)))
        return n;
    uint32_t close = at(&f, 0)->match, comma = find(&f, 1, close, ','), end = close - (at(&f, close - 1)->kind == ',');
    uint32_t guard = find(&f, comma, end, T_IF);
    ast *match = ast_new(a, AST_MATCH, n->range);
    match->name_range = n->name_range;
    bool ok = comma < end && push(&f, match, expression(&f, 1, comma));
    for (int i = 0; i < 2 && ok; i++) {
        ast *arm = ast_new(a, AST_ARM, n->name_range), *list = ast_new(a, AST_LIST, n->name_range),
            *is = ast_new(a, AST_BOOL, n->name_range);
        is->value = i == 0;
        ok = i == 0 ? alternatives(&f, list, comma + 1, guard) : push(&f, list, ast_new(a, AST_PAT_WILD, n->name_range));
        ok = ok && push(&f, arm, list) &&
             push(&f, arm, i == 0 && guard < end ? expression(&f, guard + 1, end) : ast_new(a, AST_NONE, n->name_range)) &&
             push(&f, arm, is) && push(&f, match, arm);
    }
    return ok ? match : n;
}

/* It stays text; the place and the words of its fault stand after what it has. */
static const ast *unread(const flow *f)
{
    ast *copy = ast_new(f->expander->arena, AST_UNSUPPORTED, f->node->range);
    copy->text = f->node->text;
    copy->name_range = f->node->name_range;
    ast_push_all(f->expander->arena, copy, f->node->kids, f->node->kid_count);
    if (f->fault) {
        ast *fault = ast_new(f->expander->arena, AST_RAW, f->fault->range);
        fault->text = f->fault->message;
        ast_push(f->expander->arena, copy, fault);
    }
    return copy;
}

const ast *flow_read(expander *e, const ast *n)
{
    bool is_match = strcmp(n->text, "match") == 0, is_if = strcmp(n->text, "if") == 0;
    if (n->kid_count > 2 || (!is_match && !is_if && strcmp(n->text, "while") != 0 && strcmp(n->text, "loop") != 0))
        return n;
    flow f = {.expander = e, .node = n};
    if (!macro_scan(e->sources, ast_kid(n, 0)->range, expand_scanner(e), e->arena, &f.text) || f.text.tokens.count < 4)
        return n;
    uint32_t word = at(&f, 0)->kind == T_LIFETIME ? 2 : 0, close = (uint32_t)f.text.tokens.count - 2, open = at(&f, close)->match;
    if (at(&f, close)->kind != '}' || open == TOKEN_NONE || open <= word)
        return n;
    const ast *read = is_if ? read_if_let(&f, close + 1) : is_match ? read_match(&f, word, open) : read_while(&f, word, open);
    return read ? read : unread(&f);
}
