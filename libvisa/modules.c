/* Files of modules: `mod NAME;`. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/parse.h"
#include "libvisa/compilation.h"
#include "support/file.h"
#include "support/shown.h"

/* "mod.rs", "lib.rs" and "main.rs" are their folder's own file: its modules lie next to it. */
static bool is_folders_own(const char *name, size_t length)
{
    static const char *const names[] = {"mod", "lib", "main"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* The i-th place where `mod NAME;` of a file may be: of `x.rs` the folder x, and next to it; of a folder's own file next to it. NULL: no
 * more. */
static const char *module_path(visa_compilation *c, const ast *n, int i)
{
    static const char *const forms[] = {"%.*s%s.vm", "%.*s%s.rs", "%.*s%s/mod.vm", "%.*s%s/mod.rs"};
    const char *file = source_name(c->sources, n->range.file), *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    const char *dot = strrchr(name, '.');
    bool inside = dot && !is_folders_own(name, (size_t)(dot - name)) && i < 4;
    int folder = inside ? (int)(dot - file) : (int)(name - file);
    const char *parent = arena_printf(c->arena, "%.*s%s", folder, file, inside ? "/" : "");
    return i < 8 ? arena_printf(c->arena, forms[i % 4], (int)strlen(parent), parent, n->text) : NULL;
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
        if (file < 0)
            return NULL;
        read_module m = {.file = file, .parsed = parse_file(c->sources, file, c->arena, &c->diags)};
        m.tree = compilation_set_parameters(c, expand_file(c->expander, m.parsed));
        ARENA_PUSH(c->arena, c->modules, c->module_count, c->module_capacity, m);
        return m.tree;
    }
    diag *d = diag_add(&c->diags, E_NAME, n->name_range, "module `%s` has no file", n->text);
    diag_help(&c->diags, d, "write %s, or the module's items in { }", shown_text(module_path(c, n, 4), c->arena));
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
