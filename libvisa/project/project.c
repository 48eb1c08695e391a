#include "libvisa/project/project.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/embed.h"
#include "support/shown.h"
#include "support/strbuf.h"

#define PROJECT_FILE(symbol, name, file) EMBED_FILE(symbol, file)
#include "libvisa/project/project.def"
#undef PROJECT_FILE

static const struct {
    const char *name;
    const unsigned char *begin, *end;
} rows[] = {
#define PROJECT_FILE(symbol, name, file) {name, visa_embed_##symbol, visa_embed_end_##symbol},
#include "libvisa/project/project.def"
#undef PROJECT_FILE
};
enum { ROWS = sizeof rows / sizeof *rows };

/* False: one of them is there, whatever it is. */
static bool is_free(const char *const *paths, diag_list *diags)
{
    struct stat there;
    diag *d = NULL;
    for (size_t i = 0; i < ROWS; i++) {
        if (lstat(paths[i], &there) != 0)
            continue;
        const char *shown = shown_text(paths[i], diags->arena);
        if (d)
            diag_note(diags, d, SRC_NOWHERE, "so is %s", shown);
        else
            d = diag_add(diags, E_PROJECT_EXISTS, SRC_NOWHERE, "%s is there already", shown);
    }
    if (d)
        diag_help(diags, d, "visac init DIR begins in another folder; nothing was written");
    return !d;
}

static bool write_all(const char *const *paths, output_set *files)
{
    output *to[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        if (!(to[i] = output_declare(files, paths[i])))
            return false;
    for (size_t i = 0; i < ROWS; i++)
        if (!output_put(to[i], rows[i].begin, (size_t)(rows[i].end - rows[i].begin)))
            return false;
    return output_set_commit(files);
}

static const char *text_of_next_step(const char *folder, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "%s:", folder);
    for (size_t i = 0; i < ROWS; i++)
        strbuf_printf(&s, " %s", rows[i].name);
    strbuf_printf(&s, "\nnext: make -C %s check\n", folder);
    return s.text;
}

const char *project_begin(const char *folder, output_set *files, diag_list *diags)
{
    arena *a = diags->arena;
    const char *paths[ROWS], *shown = shown_text(folder, a);
    for (size_t i = 0; i < ROWS; i++)
        paths[i] = arena_printf(a, "%s/%s", folder, rows[i].name);
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST) {
        diag_add(diags, E_FILE_WRITE, SRC_NOWHERE, "cannot make the folder %s: %s", shown, strerror(errno));
        return NULL;
    }
    if (is_free(paths, diags) && write_all(paths, files))
        return text_of_next_step(shown, a);
    if (made)
        rmdir(folder);
    return NULL;
}
