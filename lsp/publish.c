/* Diagnostics to the editor.
 *
 * The one idea: a compilation has faults in its own text and in the files of its modules; each goes to the URI of its file. A document
 * that another open document has as a module is judged there, where the names it uses are known. */
#include <stdlib.h>
#include <string.h>

#include "lsp/json.h"
#include "lsp/server.h"
#include "support/choice.h"

/* `pending`: of so many functions it may be out of date; it is published again, then. No client has to know the member. */
static void publish(server *s, const char *uri, const document *of, json_t *diagnostics, size_t pending)
{
    json_t *params = json_pack("{s:o, s:o}", "uri", json_bytes(uri), "diagnostics", diagnostics);
    if (of)
        json_object_set_new(params, "version", json_integer(of->version));
    if (pending > 0)
        json_object_set_new(params, "pending", json_integer((json_int_t)pending));
    server_notify(s, "textDocument/publishDiagnostics", params);
}

/* Those of one file; without a place they are the first file's. Where they cost more than may be spent, the rest is left out and the last
 * one says so. */
static json_t *diagnostics_of(server *s, document *d, visa_compilation *c, int file)
{
    static const char message[] = "given up: to say more of what is wrong takes more time or work than visa-lsp may spend";
    documents *all = server_documents(s);
    json_t *array = json_array();
    visa_diagnostic from;
    answer_begin(&all->answer, &all->limits);
    for (size_t i = 0; visa_diagnostic_at(c, i, &from) && !all->answer.gave_up; i++)
        if ((from.place.file == file || (from.place.file < 0 && file == 0)) && json_spend_diagnostic(all, &from))
            json_array_append_new(array, json_diagnostic(all, d, c, &from));
    if (all->answer.gave_up) {
        visa_diagnostic last = {.id = "E-BUDGET", .is_error = true, .place = {file, 0, 0}, .message = message};
        json_array_append_new(array, json_diagnostic(all, d, c, &last));
    }
    return array;
}

static bool has_file(const visa_compilation *c, const char *path)
{
    const char *name;
    for (int file = 1; (name = visa_file_name(c, file)) != NULL; file++)
        if (strcmp(name, path) == 0)
            return true;
    return false;
}

static bool is_module(const documents *all, const document *d)
{
    for (const document *other = all->first; other; other = other->next) {
        const visa_compilation *c = other != d ? other->compilation : NULL;
        if (c && has_file(c, d->path))
            return true;
    }
    return false;
}

static bool was_published(const document *d, const char *uri)
{
    return choice_has((const char *const *)d->published, d->published_count, uri);
}

static void remember(document *d, const char *uri)
{
    char **grown = was_published(d, uri) ? NULL : realloc(d->published, (d->published_count + 1) * sizeof *grown);
    if (!grown)
        return;
    d->published = grown;
    d->published[d->published_count] = strdup(uri);
    d->published_count += d->published[d->published_count] != NULL;
}

/* The document that an editor calls by another URI of the same path goes by that one. */
static const document *open_at(const documents *all, const char *path)
{
    const document *d = all->first;
    while (d && strcmp(d->path, path) != 0)
        d = d->next;
    return d;
}

/* What a macro stands for is a file by the name of the one in which it is used; there nothing is shown. */
static bool is_text_of_macro(const visa_compilation *c, int file)
{
    const char *name = visa_file_name(c, file);
    int first = 0;
    while (first < file && strcmp(visa_file_name(c, first), name) != 0)
        first++;
    return first < file;
}

static void publish_modules(server *s, document *d, visa_compilation *c)
{
    const char *name;
    size_t old = d->published_count;
    for (size_t i = 0; i < old; i++) {
        char *path = path_of_uri(d->published[i]);
        if (path && !has_file(c, path) && !open_at(server_documents(s), path))
            publish(s, d->published[i], NULL, json_array(), 0);
        free(path);
    }
    for (int file = 1; (name = visa_file_name(c, file)) != NULL; file++) {
        const document *open = open_at(server_documents(s), name);
        if (is_text_of_macro(c, file))
            continue;
        char *uri = open ? strdup(open->uri) : uri_of_path(name);
        if (uri) {
            publish(s, uri, open, diagnostics_of(s, d, c, file), 0);
            remember(d, uri);
        }
        free(uri);
    }
}

static void publish_document(server *s, document *d)
{
    documents *all = server_documents(s);
    size_t pending = d->compilation && !d->hurried ? visa_pending(d->compilation) : 0;
    d->changed = d->hurried = pending > 0;
    if (!d->compilation)
        return;
    if (!is_module(all, d))
        publish(s, d->uri, d, diagnostics_of(s, d, d->compilation, 0), pending);
    publish_modules(s, d, d->compilation);
}

static bool somebody_asks(void *user)
{
    return server_is_asked(user);
}

static bool any_changed(const documents *all)
{
    bool found = false;
    for (const document *d = all->first; d; d = d->next)
        found = found || d->changed;
    return found;
}

/* Each document takes its time; a question that comes meanwhile is answered first, and its answer calls here again. What was put off is
 * done in the second round. */
void publish_changed(server *s)
{
    documents *all = server_documents(s);
    while (any_changed(all)) {
        for (document *d = all->first; d; d = d->next)
            if (d->changed && !document_judge(all, d, somebody_asks, s))
                return;
        for (document *d = all->first; d; d = d->next) {
            bool changed = d->changed;
            if (changed)
                publish_document(s, d);
            if (changed && server_is_asked(s))
                return;
        }
    }
}

void publish_nothing(server *s, document *d)
{
    publish(s, d->uri, NULL, json_array(), 0);
    for (size_t i = 0; i < d->published_count; i++)
        publish(s, d->published[i], NULL, json_array(), 0);
}
