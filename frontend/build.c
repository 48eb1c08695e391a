#include "frontend/build.h"

#include <ctype.h>
#include <string.h>

static src_range token_range(const parse_state *p, const token *t)
{
    return (src_range){p->file, t->begin, t->end};
}

static const char *source_slice(const parse_state *p, uint32_t begin, uint32_t end)
{
    /* NULs are no tokens; those in comments end the text. */
    return arena_strndup(p->arena, p->source + begin, strnlen(p->source + begin, end - begin));
}

/* A node that would make the tree too deep is dropped; the first one is reported. */
static ast *within_depth(parse_state *p, ast *node)
{
    if (node->depth <= NESTING_MAX)
        return node;
    parse_report_depth(p, node->range);
    return ast_new(p->arena, AST_ERROR, node->range);
}

ast *build_node(parse_state *p, ast_kind kind, src_range range, ast *const *kids, size_t count)
{
    return within_depth(p, ast_new_of(p->arena, kind, range, kids, count));
}

ast *build_none(parse_state *p, src_range at)
{
    at.begin = at.end;
    return ast_new(p->arena, AST_NONE, at);
}

static ast *lost_name(parse_state *p, const token *t, const char *name)
{
    return build_text(ast_new(p->arena, AST_NAME, token_range(p, t)), name);
}

/* Does a `let` bind the name at that token? */
static bool is_bound(const parse_state *p, uint32_t i)
{
    bool mut = i > 1 && kind_at(p, i - 1, 0) == T_MUT;
    return i > 0 && kind_at(p, i - (mut ? 2 : 1), 0) == T_LET;
}

ast *build_skipped(parse_state *p, uint32_t end)
{
    uint32_t begin = p->statement_begin < end ? p->statement_begin : end;
    ast *node = ast_new(p->arena, AST_ERROR, (src_range){p->file, begin, end});
    const token *found = token_at(p, p->current);
    if (found->kind == '.' && p->current > 0 && token_at(p, p->current - 1)->kind == ';')
        build_text(node, "."); /* the chain of the statement in front of it goes on */
    for (uint32_t i = p->next < p->tokens.count ? p->next : (uint32_t)p->tokens.count - 1; i-- > 0 && token_at(p, i)->begin >= begin;) {
        const token *t = token_at(p, i);
        bool names = t->kind == T_TYPE || t->kind == T_CONST || t->kind == T_FN || t->kind == T_MOD;
        if (names && t->begin < end && kind_at(p, i, 1) != T_IDENT)
            ast_push(p->arena, node, lost_name(p, t, ""));
        else if (t->kind == T_IDENT && t->begin < end)
            ast_push(p->arena, node, build_value(lost_name(p, t, token_text(p->source, t, p->arena)), is_bound(p, i)));
    }
    return node;
}

/* An entry that has no name any more may be any axis: "". */
ast *build_skipped_axis(parse_state *p, uint32_t end)
{
    ast *node = build_skipped(p, end);
    if (node->kid_count == 0)
        ast_push(p->arena, node, lost_name(p, token_at(p, p->resync_to), ""));
    return node;
}

/* The tokens and the white space of the range; where comments stood are blanks, since who reads it knows no comments. */
ast *build_raw(parse_state *p, src_range range)
{
    uint32_t bytes = range.end - range.begin;
    char *text = arena_alloc(p->arena, bytes + 1);
    for (uint32_t i = 0; i < bytes; i++)
        text[i] = isspace((unsigned char)p->source[range.begin + i]) ? p->source[range.begin + i] : ' ';
    text[bytes] = '\0';
    for (uint32_t i = token_from(p->tokens.items, (uint32_t)p->tokens.count, range.begin);
         i < p->tokens.count && token_at(p, i)->end <= range.end; i++)
        memcpy(text + (token_at(p, i)->begin - range.begin), p->source + token_at(p, i)->begin,
               token_at(p, i)->end - token_at(p, i)->begin);
    return build_text(ast_new(p->arena, AST_RAW, range), text);
}

ast *build_list_of(parse_state *p, ast_kind kind, src_range range, ast *first)
{
    return build(p, kind, range, first, NULL);
}

/* The same of what gets a node around it, or could have one. */
static ast *kid_within_depth(parse_state *p, ast *kid)
{
    if (kid->depth < NESTING_MAX)
        return kid;
    parse_report_depth(p, kid->range);
    return ast_new(p->arena, AST_ERROR, kid->range);
}

ast *build_push(parse_state *p, ast *list, ast *kid, src_range range)
{
    ast_push(p->arena, list, kid_within_depth(p, kid));
    return build_widen(list, range);
}

ast *build_widen(ast *node, src_range range)
{
    bool unnamed = node->name_range.begin == node->range.begin && node->name_range.end == node->range.end;
    node->range = range;
    if (unnamed)
        node->name_range = range;
    return node;
}

ast *build_kind(ast *node, ast_kind kind)
{
    if (node->kind != AST_ERROR)
        node->kind = kind;
    return node;
}

ast *build_value(ast *node, int64_t value)
{
    node->value = value;
    return node;
}

ast *build_text(ast *node, const char *text)
{
    node->text = text;
    return node;
}

/* Of a file's names most were met before. */
static const char *name_text(parse_state *p, const token *name)
{
    uint32_t bytes = name->end - name->begin;
    if (!p->names || name->kind != T_IDENT || bytes < 2)
        return token_text(p->source, name, p->arena);
    const char *spelt = p->source + name->begin;
    unsigned first = (unsigned char)spelt[0], last = (unsigned char)spelt[bytes - 1];
    parse_name *known = &p->names[(first + 5 * last + 11 * bytes) % PARSE_NAMES];
    if (known->bytes != bytes || memcmp(known->spelt, spelt, bytes) != 0)
        *known = (parse_name){spelt, token_text(p->source, name, p->arena), bytes};
    return known->text;
}

ast *build_named(parse_state *p, ast *node, const token *name)
{
    return build_operator(node, token_range(p, name), name_text(p, name));
}

ast *build_operator(ast *node, src_range name_range, const char *text)
{
    node->name_range = name_range;
    node->text = text;
    return node;
}

ast *build_put_first(parse_state *p, ast *node, ast *kid, src_range range)
{
    if (node->kind == AST_ERROR)
        return build_widen(node, range);
    node->kids[0] = kid;
    if (kid->depth >= node->depth)
        node->depth = kid->depth + 1;
    return within_depth(p, build_widen(node, range));
}

ast *build_group(ast *list, src_range range)
{
    bool group = list->kid_count == 1 && list->kids[0]->kind != AST_PAT_REST; /* `(..)` is a tuple */
    return build_widen(group ? list->kids[0] : list, range);
}

/* ---- Items ---- */

ast *build_item_node(parse_state *p, ast_kind kind, src_range range, ast *const *kids, size_t count)
{
    ast *node = ast_new(p->arena, kind, range);
    ast_push(p->arena, node, build_none(p, (src_range){range.file, range.begin, range.begin}));
    ast_push_all(p->arena, node, kids, count);
    return within_depth(p, node);
}

ast *build_with_attributes(parse_state *p, ast *item, ast *attributes, src_range range)
{
    for (uint32_t i = 0; p->root && i < attributes->kid_count; i++)
        if (strcmp(attributes->kids[i]->text, "cfg") == 0)
            p->root->value = 1;
    /* Attributes are shallower than any limit. */
    if (item->kind != AST_ERROR) {
        item->kids[0] = attributes;
        if (item->depth <= attributes->depth)
            item->depth = attributes->depth + 1;
    }
    return build_widen(item, range);
}

static ast *attribute_value(parse_state *p, const token *first, const token *end)
{
    src_range range = {p->file, first->begin, (end - 1)->end};
    if (end - first == 1 && first->kind == T_INT)
        return build_integer(p, first);
    if (end - first == 1 && first->kind == T_STRING)
        return build_named(p, build(p, AST_STRING, range, NULL), first);
    return build_raw(p, range);
}

/* One of `key`, `key = value` or anything else between two commas. */
static ast *attribute_argument(parse_state *p, const token *first, const token *end)
{
    src_range range = {p->file, first->begin, (end - 1)->end};
    bool has_value = end - first > 2 && first[1].kind == '=';
    ast *value = has_value ? attribute_value(p, first + 2, end) : build_none(p, range);
    ast *argument = build(p, AST_ATTR_ARG, range, value, NULL);
    if (!has_value && end - first > 1)
        return build_text(argument, source_slice(p, range.begin, range.end));
    return build_operator(argument, token_range(p, first), source_slice(p, first->begin, first->end));
}

static void attribute_arguments(parse_state *p, ast *attribute, const token *open)
{
    const token *items = p->tokens.items, *close = &items[open->match], *first = open + 1;
    for (const token *t = first; t <= close; t++) {
        if (t->kind == ',' || t == close) {
            if (t > first)
                ast_push(p->arena, attribute, attribute_argument(p, first, t));
            first = t + 1;
        } else if (token_closer(t) != 0) {
            t = &items[t->match];
        }
    }
}

ast *build_attribute(parse_state *p, const token *first, src_range range, bool inner)
{
    const token *open = first + (inner ? 2 : 1), *close = &p->tokens.items[open->match], *t = open + 1;
    while (t < close && t->kind != '(' && t->kind != '=' && t->kind != '[' && t->kind != '{')
        t++;
    uint32_t path_begin = open + 1 < close ? open[1].begin : close->begin;
    uint32_t path_end = t > open + 1 ? t[-1].end : path_begin;
    ast *node = ast_new(p->arena, AST_ATTR, range);
    build_operator(node, (src_range){p->file, path_begin, path_end}, source_slice(p, path_begin, path_end));
    node->value = inner;
    ast_push(p->arena, node, build_raw(p, (src_range){p->file, path_end, close->begin}));
    if (t->kind == '(')
        attribute_arguments(p, node, t);
    return node;
}

ast *build_pinned(parse_state *p, ast *statement, const ast *attributes)
{
    for (uint32_t i = attributes->kid_count; i-- > 0;) {
        const ast *attribute = attributes->kids[i], *name = ast_kid(attribute, 1);
        if (strcmp(attribute->text, "unroll") == 0 && ast_is(statement, AST_EXPR_STMT) && ast_is(ast_kid(statement, 0), AST_FOR))
            statement->kids[0]->value = 1;
        if (strcmp(attribute->text, "cfg") == 0 && !ast_is(statement, AST_ERROR)) {
            if (p->root)
                p->root->value = 1;
            statement = build_text(build(p, AST_CFG, statement->range, statement, NULL), ast_kid(attribute, 0)->text);
        }
        if (strcmp(attribute->text, "after") != 0 || ast_is(statement, AST_ERROR))
            continue;
        bool named = attribute->kid_count == 2 && ast_is(name, AST_ATTR_ARG) && ast_is(ast_kid(name, 0), AST_NONE);
        ast *pinned = build(p, AST_AFTER, statement->range, statement, NULL);
        statement = build_operator(pinned, named ? name->name_range : attribute->range, named ? name->text : "");
    }
    return statement;
}

/* The type parameter of that name that has no bound yet, or NULL. */
static ast *unbound(const parse_state *p, const ast *generics, const token *name)
{
    for (uint32_t i = 0; i < generics->kid_count; i++)
        if (ast_is(generics->kids[i], AST_GENERIC_TYPE) && ast_is(generics->kids[i]->kids[0], AST_NONE) &&
            token_is_word(p->source, name, generics->kids[i]->text))
            return generics->kids[i];
    return NULL;
}

ast *build_where(parse_state *p, ast *generics, src_range clause)
{
    if (!ast_is(generics, AST_GENERICS) || clause.begin == clause.end)
        return generics;
    ast *bound = NULL; /* whose bounds are being read */
    for (uint32_t i = token_from(p->tokens.items, (uint32_t)p->tokens.count, clause.begin);
         token_at(p, i)->kind && token_at(p, i)->begin < clause.end; i++) {
        const token *t = token_at(p, i);
        bool begins = kind_at(p, i, 1) == ':' && (kind_at(p, i - 1, 0) == T_WHERE || kind_at(p, i - 1, 0) == ',');
        if (t->kind == T_IDENT && begins)
            bound = unbound(p, generics, t);
        else if (t->kind == T_IDENT && bound && token_is_word(p->source, t, "AxisName"))
            bound->kids[0] = build_list_of(p, AST_LIST, token_range(p, t), build_path(p, AST_TYPE_PATH, token_range(p, t), t, ""));
    }
    return generics;
}

ast *build_fn(parse_state *p, src_range range, int64_t flags, const token *name, ast *generics, ast *params, ast *result, ast *body)
{
    ast *node = build_item(p, AST_FN, range, generics, params, result, body, NULL);
    return build_named(p, build_value(node, flags), name);
}

ast *build_ignored_item(parse_state *p, src_range range, const token *first)
{
    const token *keyword = first->kind == T_UNSAFE ? first + 1 : first;
    p->root->value = 1;
    return build_named(p, build_item(p, AST_ITEM_IGNORED, range, build_raw(p, range), NULL), keyword);
}

void build_file_part(parse_state *p, ast *part)
{
    if (part != NULL)
        build_push(p, p->root, part, p->root->range);
}

/* ---- Paths and expressions ---- */

static ast *segment(parse_state *p, const token *name)
{
    return build_named(p, build(p, AST_SEGMENT, token_range(p, name), ast_no_kid(), NULL), name);
}

ast *build_path(parse_state *p, ast_kind kind, src_range range, const token *name, const char *global)
{
    return build_text(build(p, kind, range, segment(p, name), NULL), global);
}

ast *build_path_add(parse_state *p, ast *path, const token *name, src_range range)
{
    return path->kind == AST_ERROR ? build_widen(path, range) : build_push(p, path, segment(p, name), range);
}

ast *build_path_arguments(parse_state *p, ast *path, ast *arguments, src_range range)
{
    if (path->kind == AST_ERROR)
        return build_widen(path, range);
    ast *last = path->kids[path->kid_count - 1];
    if (last->kids[0]->kind != AST_NONE) {
        parse_error(p, E_PARSE, arguments->range, "a second list of generic arguments");
        return build_widen(path, range);
    }
    build_put_first(p, last, arguments, src_range_join(last->range, arguments->range));
    if (last->depth >= path->depth)
        path->depth = last->depth + 1;
    return within_depth(p, build_widen(path, range));
}

ast *build_integer(parse_state *p, const token *t)
{
    if (t->flags & TOKEN_POISON)
        return ast_new(p->arena, AST_ERROR, token_range(p, t));
    return build_value(build_named(p, ast_new(p->arena, AST_INT, token_range(p, t)), t), token_integer(p->source, t));
}

ast *build_binary(parse_state *p, src_range range, ast *left, src_range name_range, const char *text, ast *right)
{
    return build_operator(build(p, AST_BINARY, range, left, right, NULL), name_range, text);
}

ast *build_prefix(parse_state *p, ast_kind kind, src_range range, src_range name_range, const char *text, ast *operand)
{
    return build_operator(build(p, kind, range, operand, NULL), name_range, text);
}

ast *build_range(parse_state *p, src_range range, ast *low, src_range name_range, const char *text, ast *high)
{
    return build_operator(build(p, AST_RANGE, range, low, high, NULL), name_range, text);
}

ast *build_method(parse_state *p, src_range range, ast *receiver, const token *name, ast *generics, ast *args)
{
    return build_named(p, build(p, AST_METHOD, range, receiver, generics, args, NULL), name);
}

ast *build_tuple_index(parse_state *p, src_range range, ast *operand, const token *index)
{
    src_range name = {p->file, index->begin + 1, index->end};
    return build_operator(build(p, AST_FIELD, range, operand, NULL), name, token_text(p->source, index, p->arena) + 1);
}

ast *build_macro(parse_state *p, src_range range, const token *name)
{
    /* A path, the name, `!`, the brackets. */
    while (name[1].kind == T_COLON2)
        name += 2;
    src_range body = {p->file, name[2].begin, range.end};
    if (p->root)
        p->root->value = 1;
    return build_named(p, build(p, AST_MACRO, range, build_raw(p, body), NULL), name);
}

ast *build_refused(parse_state *p, src_range range, const token *first, src_range unread, ast *operand)
{
    if (p->root)
        p->root->value = 1; /* frontend/flow.h may read it */
    return build_named(p, build(p, AST_UNSUPPORTED, range, build_raw(p, unread), operand, NULL), first);
}

ast *build_labelled(parse_state *p, ast *node, src_range range)
{
    uint32_t end = range.begin + 1;
    if (node->kind != AST_ERROR && p->source[range.begin] == '\'') {
        while (p->source[end] == '_' || isalnum((unsigned char)p->source[end]))
            end++;
        node->text = source_slice(p, range.begin, end);
    }
    return build_widen(node, range);
}

ast *build_closure(parse_state *p, src_range range, src_range params, ast *body)
{
    ast *node = build(p, AST_UNSUPPORTED, range, build_raw(p, params), body, NULL);
    return build_operator(node, params, "closure");
}

ast *build_field_pattern(parse_state *p, src_range range, const token *field, ast *pattern)
{
    return build_named(p, build(p, AST_PAT_FIELD, range, pattern, NULL), field);
}

/* ---- Mappings ---- */

ast *build_map_list(parse_state *p, ast *list, src_range range, const token *trailing_comma)
{
    return trailing_comma ? build_operator(build_widen(list, range), token_range(p, trailing_comma), ",") : build_widen(list, range);
}

/* A list of one, which is that one, and as deep as a list. */
ast *build_map_alone(parse_state *p, ast *term)
{
    return kid_within_depth(p, term);
}

ast *build_map_number(ast *integer)
{
    /* The value has all that the spelling means. */
    return integer->kind == AST_ERROR ? integer : build_text(build_kind(integer, AST_MAP_NUMBER), "");
}

/* `#{!}` as the scanner saw it, blanks and all. */
static const char *pad_kind_text(const parse_state *p, const token *pad_kind)
{
    static const char *const kinds[] = {"!", "0", "*"};
    for (size_t i = 0; pad_kind != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (memchr(p->source + pad_kind->begin, kinds[i][0], pad_kind->end - pad_kind->begin) != NULL)
            return kinds[i];
    return "";
}

ast *build_map_operator(parse_state *p, ast_kind kind, src_range range, ast *operand, src_range name_range, ast *number,
                        const token *pad_kind)
{
    name_range = src_range_join(name_range, number->range);
    bool escape = number->kind == AST_CONST_ARG;
    if (number->kind == AST_ERROR)
        return ast_new(p->arena, AST_ERROR, range);
    int64_t value = number->kind == AST_INT ? number->value : 0;
    if (number->kind == AST_INT) { /* the operator has it: its node is what stands in its place */
        src_range nothing = {number->range.file, number->range.end, number->range.end};
        *number = (ast){.kind = AST_NONE, .range = nothing, .name_range = nothing, .text = "", .depth = 1};
    }
    ast *node = build(p, kind, range, operand, escape ? number->kids[0] : number, NULL);
    return build_value(build_operator(node, name_range, pad_kind_text(p, pad_kind)), value);
}
