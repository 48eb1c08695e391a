/* Files of modules: `mod NAME;`. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/parse.h"
#include "libvisa/compilation.h"
#include "support/file.h"
#include "support/shown.h"

/* Where `mod NAME;` of a file may be: next to it, in a folder of its name, or in the folder of the module it is. */
static const char *module_path(visa_compilation *c, const ast *n, int i)
{
    static const char *const forms[] = {"%.*s%s.vm", "%.*s%s.rs", "%.*s%s/mod.vm", "%.*s%s/mod.rs"};
    const char *file = source_name(c->sources, n->range.file), *slash = strrchr(file, '/');
    int folder = slash ? (int)(slash - file) + 1 : 0;
    const char *dot = strrchr(file + folder, '.');
    if (i < 4)
        return arena_printf(c->arena, forms[i], folder, file, n->text);
    if (i >= 8 || !dot)
        return NULL;
    const char *inner = arena_printf(c->arena, "%.*s/", (int)(dot - file), file);
    return arena_printf(c->arena, forms[i - 4], (int)strlen(inner), inner, n->text);
}

static int add_module_file(visa_compilation *c, const char *path)
{
    size_t bytes;
    const char *open;
    if (c->options->open_text && c->options->open_text(c->options->user, path, &open, &bytes))
        return source_map_add(c->sources, path, open, bytes);
    unsigned char *text = file_read_all(path, &bytes, &c->diags);
    int file = text ? source_map_add(c->sources, path, (const char *)text, bytes) : -1;
    free(text);
    ARENA_PUSH(c->arena, c->module_files, c->module_file_count, c->module_file_capacity, path);
    return file;
}

enum { PLACES = 8 };

const ast *compilation_load_module(void *user, const ast *n)
{
    visa_compilation *c = user;
    for (int i = 0; i < PLACES; i++) {
        const char *path = module_path(c, n, i);
        if (!path || access(path, R_OK) != 0)
            continue;
        for (int f = 0; f < source_map_count(c->sources); f++)
            if (strcmp(source_name(c->sources, f), path) == 0) {
                diag_add(&c->diags, E_DUPLICATE, n->name_range, "%s is a module already", shown_text(path, c->arena));
                return NULL;
            }
        int file = add_module_file(c, path);
        return file < 0 ? NULL : expand_file(c->expander, parse_file(c->sources, file, c->arena, &c->diags));
    }
    diag *d = diag_add(&c->diags, E_NAME, n->name_range, "module `%s` has no file", n->text);
    diag_help(&c->diags, d, "write %s, or the module's items in { }", shown_text(module_path(c, n, 0), c->arena));
    return NULL;
}

/* Modules in modules in the order in which they stand; those in files are of this file, whatever is around them. */
void compilation_name_modules(visa_compilation *c)
{
    const ast **rest = NULL;
    size_t count = 0, capacity = 0;
    ARENA_PUSH(c->arena, rest, count, capacity, c->file);
    for (size_t at = 0; at < count; at++)
        for (uint32_t k = 0; k < rest[at]->kid_count; k++) {
            const ast *n = rest[at]->kids[k], *body = ast_is(n, AST_MOD) ? ast_kid(n, 1) : NULL;
            if (body && !ast_is(body, AST_NONE))
                ARENA_PUSH(c->arena, rest, count, capacity, body);
            for (int i = 0; body && ast_is(body, AST_NONE) && i < PLACES; i++) {
                const char *path = module_path(c, n, i);
                if (path && access(path, F_OK) == 0)
                    ARENA_PUSH(c->arena, c->module_files, c->module_file_count, c->module_file_capacity, path);
            }
        }
}
