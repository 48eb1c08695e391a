#include "frontend/ast.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/dataflow.h"
#include "support/integer.h"
#include "support/strbuf.h"

static const char *const kind_names[] = {
#define AST(symbol, name, layout) name,
#include "frontend/ast.def"
#undef AST
};

static const char *const kind_symbols[] = {
#define AST(symbol, name, layout) #symbol,
#include "frontend/ast.def"
#undef AST
};

static const ast missing = {.kind = AST_NONE, .range = {.file = -1}, .name_range = {.file = -1}, .text = "", .depth = 1};

const char *ast_kind_name(ast_kind kind)
{
    return kind < AST_KIND_COUNT ? kind_names[kind] : "?";
}

ast *ast_no_kid(void)
{
    return (ast *)&missing;
}

const ast *ast_kid(const ast *node, uint32_t position)
{
    return position < node->kid_count ? node->kids[position] : &missing;
}

ast *ast_new(arena *a, ast_kind kind, src_range range)
{
    ARENA_ALIGNED(ast);
    ast *node = arena_alloc_unset(a, sizeof *node);
    *node = (ast){.kind = kind, .range = range, .name_range = range, .text = "", .depth = 1};
    return node;
}

/* Of a list of so many kids: the next power of two. Most nodes have one or two. */
static size_t kid_capacity(size_t count)
{
    return count ? (size_t)power_of_two_above((int64_t)count) : 0;
}

static void make_room(arena *a, ast *node, size_t more)
{
    size_t capacity = kid_capacity(node->kid_count + more);
    if (node->kid_count == 0)
        node->kids = arena_alloc(a, capacity * sizeof *node->kids);
    else if (capacity > kid_capacity(node->kid_count))
        node->kids = arena_grow(a, node->kids, node->kid_count, capacity, sizeof *node->kids);
}

static inline void adopt(ast *node, ast *kid)
{
    node->kids[node->kid_count++] = kid;
    if (kid->depth >= node->depth)
        node->depth = kid->depth + 1;
}

/* One piece of memory: the list of the kids stands behind the node. */
ast *ast_new_of(arena *a, ast_kind kind, src_range range, ast *const *kids, size_t count)
{
    ast *node = arena_alloc_unset(a, sizeof *node + kid_capacity(count) * sizeof *node->kids);
    *node = (ast){.kind = kind, .range = range, .name_range = range, .text = "", .depth = 1};
    node->kids = count > 0 ? (ast **)(node + 1) : NULL;
    for (size_t i = 0; i < count; i++)
        adopt(node, kids[i]);
    return node;
}

void ast_push_all(arena *a, ast *node, ast *const *kids, size_t count)
{
    if (count > 0)
        make_room(a, node, count);
    for (size_t i = 0; i < count; i++)
        adopt(node, kids[i]);
}

void ast_push(arena *a, ast *node, ast *kid)
{
    if ((node->kid_count & (node->kid_count - 1)) == 0)
        make_room(a, node, 1);
    adopt(node, kid);
}

bool ast_equal(const ast *a, const ast *b)
{
    if (a->kind != b->kind || a->value != b->value || a->kid_count != b->kid_count || strcmp(a->text, b->text) != 0)
        return false;
    for (uint32_t i = 0; i < a->kid_count; i++)
        if (!ast_equal(a->kids[i], b->kids[i]))
            return false;
    return true;
}

static void dump(const ast *node, strbuf *out, int level)
{
    strbuf_printf(out, "%*s%s", 2 * level, "", kind_symbols[node->kind]);
    if (node->text[0] != '\0')
        strbuf_printf(out, " %s", node->text);
    if (node->value != 0)
        strbuf_printf(out, " =%" PRId64, node->value);
    strbuf_puts(out, "\n");
    for (uint32_t i = 0; i < node->kid_count; i++)
        dump(node->kids[i], out, level + 1);
}

const char *ast_dump(const ast *node, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    dump(node, &out, 0);
    return out.text;
}

static const ast *with_kid(const ast *node, uint32_t position, const ast *kid, arena *a)
{
    ast *copy = ARENA_NEW(a, ast);
    *copy = *node;
    copy->kids = ARENA_ARRAY(a, ast *, node->kid_count);
    for (uint32_t i = 0; i < node->kid_count; i++)
        copy->kids[i] = i == position ? (ast *)kid : node->kids[i];
    return copy;
}

/* A const item or an axis with a number. */
static bool is_number_item(const ast *node)
{
    return (ast_is(node, AST_CONST) || ast_is(node, AST_AXIS)) && node->kid_count > 0;
}

static bool is_parameter(const ast *node)
{
    return ast_is(node, AST_GENERIC_TYPE) || ast_is(node, AST_GENERIC_CONST);
}

static bool holds_items(const ast *node)
{
    return ast_is(node, AST_GENERICS) || ast_is(node, AST_FILE) || ast_is(node, AST_MOD) || ast_is(node, AST_AXES) ||
           ast_is(node, AST_FN) || ast_is(node, AST_BLOCK);
}

static void add_names(const ast *node, const char ***names, size_t *count, size_t *capacity, arena *a)
{
    if ((is_number_item(node) && !dataflow_is_item(node) && strcmp(node->text, "_") != 0) || is_parameter(node))
        ARENA_PUSH(a, *names, *count, *capacity, node->text);
    for (uint32_t i = 0; holds_items(node) && i < node->kid_count; i++)
        add_names(node->kids[i], names, count, capacity, a);
}

const char *const *ast_number_names(const ast *tree, arena *a)
{
    const char **names = NULL;
    size_t count = 0, capacity = 0;
    add_names(tree, &names, &count, &capacity, a);
    ARENA_PUSH(a, names, count, capacity, NULL);
    return names;
}

const ast *ast_with_number(const ast *node, const char *name, int64_t size, arena *a, bool *found)
{
    if (is_number_item(node) && strcmp(node->text, name) == 0) {
        ast *number = ast_new(a, AST_INT, node->kids[node->kid_count - 1]->range);
        number->value = size;
        number->text = arena_printf(a, "%lld", (long long)size);
        *found = true;
        return with_kid(node, node->kid_count - 1, number, a);
    }
    if (is_parameter(node) && strcmp(node->text, name) == 0) {
        ast *number = ast_new(a, AST_INT, node->range), *copy = ast_new(a, node->kind, node->range);
        number->value = size;
        number->text = arena_printf(a, "%lld", (long long)size);
        copy->text = node->text;
        copy->name_range = node->name_range;
        copy->value = node->value;
        ast_push(a, copy, node->kids[0]);
        ast_push(a, copy, number);
        *found = true;
        return copy;
    }
    for (uint32_t i = 0; holds_items(node) && i < node->kid_count; i++) {
        const ast *kid = ast_with_number(node->kids[i], name, size, a, found);
        if (kid != node->kids[i])
            node = with_kid(node, i, kid, a);
    }
    return node;
}

const ast *ast_statement(const ast *node)
{
    while (ast_is(node, AST_AFTER) || ast_is(node, AST_CFG))
        node = node->kids[0];
    return node;
}

const ast *ast_given(const ast *expression)
{
    return ast_is(expression, AST_UNSUPPORTED) && strcmp(expression->text, "return") == 0 ? ast_kid(expression, 1) : expression;
}

uint32_t ast_pattern_rest(const ast *pattern, uint32_t first)
{
    uint32_t i = first;
    while (i < pattern->kid_count && !ast_is(pattern->kids[i], AST_PAT_REST) && !ast_is(ast_kid(pattern->kids[i], 0), AST_PAT_REST))
        i++;
    return i - first;
}

const ast *ast_last_segment(const ast *path)
{
    return (ast_is(path, AST_PATH) || ast_is(path, AST_TYPE_PATH)) && path->kid_count ? path->kids[path->kid_count - 1] : NULL;
}

const ast *ast_attribute(const ast *fn, const char *name)
{
    const ast *attributes = ast_kid(fn, 0);
    for (uint32_t i = 0; i < attributes->kid_count; i++)
        if (ast_is(attributes->kids[i], AST_ATTR) && strcmp(attributes->kids[i]->text, name) == 0)
            return attributes->kids[i];
    return NULL;
}
