/* visa_upgrade: the file and those of its modules in the newest release, and the proof that they mean the same.
 *
 * The one idea: what was rewritten is compiled once more, as the newest release and nothing else; where the file compiled before, the
 * commands of each kernel must be the ones that it had, with all memory placed by the compiler; a collect that passes whole flits on may be
 * new. Files are rewritten together, since what a module takes from the file around it (`use super::*`) is not known in it alone. */
#include <stdlib.h>
#include <string.h>

#include "codegen/container.h"
#include "frontend/format.h"
#include "libvisa/compilation.h"
#include "target/dialect.h"

static diag *refuse(visa_compilation *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static diag *refuse(visa_compilation *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *text = arena_vprintf(c->arena, format, list);
    va_end(list);
    return diag_add(&c->diags, E_UPGRADE, (src_range){c->file->range.file, 0, 0}, "%s", text);
}

/* A flit goes through it as it is: April commits such a stream without it. */
static bool is_idle(const command *c)
{
    return c->op == OP_COLLECT && command_get(c, COLLECT_FLITS) == 1;
}

/* Which command of the new kernel each of the old one is, by context. */
typedef struct twins {
    size_t *of[3];
} twins;

static bool find_twins(const binary_kernel *old, const binary_kernel *new, arena *a, twins *out)
{
    for (context x = 0; x < 3; x++) {
        size_t to = 0, count = old->streams[x].count, end = new->streams[x].count;
        out->of[x] = ARENA_ARRAY(a, size_t, count + 1);
        for (size_t i = 0; i < count; i++) {
            const command *c = new->streams[x].commands + to;
            to += to + 1 < end && old->streams[x].commands[i].op != OP_COLLECT && is_idle(c);
            if (to >= end)
                return false;
            out->of[x][i] = to++;
        }
        if (to != end)
            return false;
    }
    return true;
}

/* A wait counts commands, those that are new included. */
static bool same_command(const command *old, const command *new, const binary_kernel *of, const twins *t)
{
    command c = *old;
    if (c.op == OP_WAIT) {
        context x = (context)command_get(&c, WAIT_CONTEXT);
        size_t count = (size_t)command_get(&c, WAIT_COUNT);
        if (count == 0 || count > of->streams[x].count)
            return false;
        command_set(&c, WAIT_COUNT, (int64_t)t->of[x][count - 1] + 1);
    }
    return c.op == new->op &&memcmp(c.fields, new->fields, sizeof c.fields) == 0 && command_same_entries(&c, new);
}

static bool same_commands(const binary_kernel *old, const binary_kernel *new, arena *scratch)
{
    twins t;
    bool same = find_twins(old, new, scratch, &t);
    for (context x = 0; x < 3; x++)
        for (size_t i = 0; same && i < old->streams[x].count; i++)
            same = same_command(&old->streams[x].commands[i], &new->streams[x].commands[t.of[x][i]], old, &t);
    return same;
}

/* A binary, and whether there is one. */
typedef struct image {
    const unsigned char *bytes;
    size_t size;
    bool made;
} image;

/* The name of a kernel whose commands differ; NULL: there is none. */
static const char *first_difference(visa_compilation *c, const image *before, const image *after)
{
    binary old, new;
    if (!before->made || !after->made || !binary_read(before->bytes, before->size, c->arena, &c->diags, &old) ||
        !binary_read(after->bytes, after->size, c->arena, &c->diags, &new) || old.kernel_count != new.kernel_count)
        return "the file";
    for (size_t i = 0; i < old.kernel_count; i++)
        if (!same_commands(&old.kernels[i], &new.kernels[i], c->arena))
            return old.kernels[i].name;
    return NULL;
}

/* The compilation of what was rewritten came to a limit of work, memory or nesting: that is reported, and nothing about the text. */
static bool came_to_a_limit(visa_compilation *c, const visa_compilation *after)
{
    for (size_t i = 0; i < after->diags.count; i++) {
        const diag *d = after->diags.items[i];
        if (d->id == E_BUDGET || d->id == E_NESTING) {
            diag *told = diag_add(&c->diags, d->id, SRC_NOWHERE, "%s", d->message);
            diag_note(&c->diags, told, SRC_NOWHERE, "this was the file as it is rewritten");
            if (d->help)
                diag_help(&c->diags, told, "%s", d->help);
            return true;
        }
    }
    return false;
}

/* Is what was made a text of the newest release, with the same commands? */
static bool check(visa_compilation *c, const image *before, visa_compilation *after)
{
    bool was_right = c->diags.error_count == 0 && visa_kernel_count(c) > 0;
    image now = {0};
    if (was_right && after->diags.error_count == 0) /* a guard of its own, of another arena */
        now.made = visa_emit(after, VISA_EMIT_BINARY, &now.bytes, &now.size);
    if (came_to_a_limit(c, after))
        return false;
    const diag *first = NULL;
    for (size_t i = 0; i < after->diags.count && !first; i++)
        first = after->diags.items[i]->severity == DIAG_ERROR ? after->diags.items[i] : NULL;
    if (after->syntax_errors > 0 || (was_right && first)) {
        diag *d = refuse(c, "%s refuses the file, rewritten", dialect_name(DIALECT_NEWEST));
        if (first && first->range.file == 0)
            diag_note(&c->diags, d, SRC_NOWHERE, "line %u of it: [%s] %s", source_line_at(after->sources, 0, first->range.begin),
                      diag_row_of(first->id)->name, first->message);
        else if (first)
            diag_note(&c->diags, d, SRC_NOWHERE, "line %u of %s: [%s] %s",
                      source_line_at(after->sources, first->range.file, first->range.begin), source_name(after->sources, first->range.file),
                      diag_row_of(first->id)->name, first->message);
        diag_help(&c->diags, d, "write what that release demands, or keep the older one");
        return false;
    }
    const char *differs = was_right ? first_difference(c, before, &now) : NULL;
    if (differs)
        diag_help(&c->diags,
                  refuse(c, "rewritten in %s, %s would not have the commands that it has", dialect_name(DIALECT_NEWEST), differs),
                  "compare visac --place=auto --emit=tables of both");
    return !differs;
}

static const char *formatted(visa_compilation *c, const ast *parsed, arena *a)
{
    strbuf text;
    strbuf_init(&text, a);
    format_file(c->sources, parsed, &text);
    return text.text;
}

/* The text of a file rewritten, in c's arena; NULL: something is refused. */
static const char *rewritten(visa_compilation *c, int file, const ast *tree)
{
    edit_list edits = {0};
    upgrade_input in = compilation_upgrade_input(c);
    in.tree = tree;
    if (!upgrade_edits(&in, &edits))
        return NULL;
    strbuf text;
    strbuf_init(&text, c->arena);
    const edit *conflict = edit_apply(&edits, source_text(c->sources, file), source_bytes(c->sources, file), &text);
    if (!conflict)
        return text.text;
    diag *d = diag_add(&c->diags, E_UPGRADE, (src_range){file, conflict->begin, conflict->end},
                       "a macro's calls want this rewritten in different ways");
    diag_help(&c->diags, d, "write out what the macro's calls give, then upgrade");
    return NULL;
}

/* For the compilation of what was rewritten: the text of a module's file. */
static bool open_upgraded(void *user, const char *path, const char **text, size_t *bytes)
{
    const visa_compilation *c = user;
    for (size_t i = 0; i < c->module_count; i++)
        if (strcmp(source_name(c->sources, c->modules[i].file), path) == 0) {
            *text = c->modules[i].upgraded;
            *bytes = strlen(*text);
            return true;
        }
    return false;
}

/* What is in the canonical layout is in it again. */
static const char *laid_out(visa_compilation *c, int file, const ast *parsed, const char *text, visa_compilation *after, const ast *again)
{
    bool canonical = strcmp(formatted(c, parsed, c->arena), source_text(c->sources, file)) == 0;
    return canonical && again ? formatted(after, again, c->arena) : text;
}

upgrade_input compilation_upgrade_input(visa_compilation *c)
{
    return (upgrade_input){.sources = c->sources,
                           .expander = c->expander,
                           .tree = c->tree,
                           .module = c->module,
                           .mappings = c->mappings,
                           .arena = c->arena,
                           .diags = &c->diags};
}

static bool upgrade(visa_compilation *c, const visa_options *options, const image *before, visa_compilation **after, const char **data,
                    size_t *size)
{
    int file = c->file->range.file;
    const char *text = rewritten(c, file, c->tree);
    for (size_t i = 0; i < c->module_count && text; i++)
        if (!(c->modules[i].upgraded = rewritten(c, c->modules[i].file, c->modules[i].tree)))
            return false;
    if (!text)
        return false;
    visa_options newest = *options;
    newest.dialect = dialect_name(DIALECT_NEWEST);
    newest.places_all = true;
    newest.binary_only = false;
    newest.open_text = open_upgraded;
    newest.user = c;
    *after = visa_compile(source_name(c->sources, file), text, strlen(text), &newest);
    if (!*after || (*after)->exhausted)
        c->exhausted = true;
    if (c->exhausted || !check(c, before, *after))
        return false;
    *data = laid_out(c, file, c->file, text, *after, (*after)->file);
    *size = strlen(*data);
    for (size_t i = 0; i < c->module_count; i++) {
        read_module *m = &c->modules[i];
        const ast *again = i < (*after)->module_count ? (*after)->modules[i].parsed : NULL; /* read in the same order */
        m->upgraded = laid_out(c, m->file, m->parsed, m->upgraded, *after, again);
    }
    return true;
}

bool visa_upgraded_module(const visa_compilation *c, size_t number, const char **path, const char **data, size_t *size)
{
    for (size_t i = 0; i < c->module_count; i++) {
        const read_module *m = &c->modules[i];
        if (!m->upgraded || strcmp(m->upgraded, source_text(c->sources, m->file)) == 0 || number-- > 0)
            continue;
        *path = source_name(c->sources, m->file);
        *data = m->upgraded;
        *size = strlen(m->upgraded);
        return true;
    }
    return false;
}

bool visa_upgrade(visa_compilation *c, const visa_options *options, const char **data, size_t *size)
{
    visa_compilation **after = calloc(1, sizeof *after); /* outlives a jump to the guard */
    volatile bool done = false;
    image before = {0};
    if (!c->exhausted && c->module && c->diags.error_count == 0) /* with a guard of its own: before this one's */
        before.made = visa_emit(c, VISA_EMIT_BINARY, &before.bytes, &before.size);
    if (after && c->module && !COMPILATION_STOPS(c) && c->file && c->tree && c->syntax_errors == 0 && !c->is_book)
        done = upgrade(c, options, &before, after, data, size);
    visa_free(after ? *after : NULL);
    free(after);
    return done;
}
