/* include/visa_editor.h: the items of a file. They are read from the tree alone, so that they are there while a body has errors. */
#include "libvisa/editor.h"

static void visit(visa_compilation *c, const ast *n, int depth);

static const char *source_of(const visa_compilation *c, src_range range)
{
    return arena_strndup(c->arena, source_text(c->sources, range.file) + range.begin, range.end - range.begin);
}

static void item(visa_compilation *c, const ast *n, src_range whole, visa_name_kind kind, const char *detail, int depth)
{
    visa_outline o = {n->text, kind, detail, editor_place(whole), editor_place(n->name_range), depth};
    if (n->text[0])
        ARENA_PUSH(c->arena, c->outline, c->outline_count, c->outline_capacity, o);
}

static void visit_kids(visa_compilation *c, const ast *n, int depth)
{
    for (uint32_t i = 0; i < n->kid_count; i++)
        visit(c, n->kids[i], depth);
}

static void visit_pattern(visa_compilation *c, const ast *pattern, const ast *let, int depth)
{
    const ast *type = ast_kid(let, 1);
    if (ast_is(pattern, AST_PAT_NAME))
        item(c, pattern, let->range, VISA_NAME_VARIABLE, ast_is(type, AST_NONE) ? "" : source_of(c, type->range), depth);
    for (uint32_t i = 0; i < pattern->kid_count; i++)
        visit_pattern(c, pattern->kids[i], let, depth);
}

static void visit(visa_compilation *c, const ast *n, int depth)
{
    switch (n->kind) {
    case AST_AXIS: item(c, n, n->range, VISA_NAME_AXIS, source_of(c, ast_kid(n, 0)->range), depth); break;
    case AST_TYPE_ALIAS: item(c, n, n->range, VISA_NAME_ALIAS, source_of(c, ast_kid(n, 2)->range), depth); break;
    case AST_CONST: item(c, n, n->range, VISA_NAME_CONST, source_of(c, ast_kid(n, 2)->range), depth); break;
    case AST_FN:
        item(c, n, n->range, VISA_NAME_FUNCTION, "", depth);
        visit(c, ast_kid(n, 4), depth + 1);
        break;
    case AST_MOD:
        item(c, n, n->range, VISA_NAME_MODULE, "", depth);
        visit(c, ast_kid(n, 1), depth + 1);
        break;
    case AST_LET: visit_pattern(c, ast_kid(n, 0), n, depth); break;
    case AST_CFG:
    case AST_AFTER:
    case AST_FILE:
    case AST_AXES:
    case AST_BLOCK: visit_kids(c, n, depth); break;
    default: break;
    }
}

bool visa_outline_at(visa_compilation *c, size_t i, visa_outline *out)
{
    if (!c->file || COMPILATION_STOPS(c))
        return false;
    if (!c->outlined) {
        c->outline_count = 0;
        visit(c, c->file, 0);
        c->outlined = true;
    }
    if (i >= c->outline_count)
        return false;
    *out = c->outline[i];
    return true;
}
