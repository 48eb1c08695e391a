#include "lsp/document.h"

#include "support/budget.h"

#include <stdlib.h>
#include <string.h>

static const char scheme[] = "file://";

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

char *path_of_uri(const char *uri)
{
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0)
        return strdup(uri);
    const char *path = strchr(uri + sizeof scheme - 1, '/'); /* after the host, which is empty or localhost */
    char *out = strdup(path ? path : "");
    if (!out)
        return NULL;
    size_t used = 0;
    for (const char *p = path ? path : ""; *p; p++) {
        bool escape = p[0] == '%' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0 && (p[1] != '0' || p[2] != '0');
        out[used++] = escape ? (char)(hex_digit(p[1]) * 16 + hex_digit(p[2])) : *p;
        p += escape ? 2 : 0;
    }
    out[used] = '\0';
    return out;
}

char *uri_of_path(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~";
    static const char digits[] = "0123456789ABCDEF";
    char *out = malloc(sizeof scheme + 3 * strlen(path));
    if (!out)
        return NULL;
    size_t used = sizeof scheme - 1;
    memcpy(out, scheme, used);
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;
        if (strchr(plain, c)) {
            out[used++] = (char)c;
        } else {
            out[used++] = '%';
            out[used++] = digits[c >> 4];
            out[used++] = digits[c & 15];
        }
    }
    out[used] = '\0';
    return out;
}

document *documents_find(const documents *d, const char *uri)
{
    document *found = d->first;
    while (found && strcmp(found->uri, uri) != 0)
        found = found->next;
    return found;
}

/* Takes over `text`; false: no memory, and nothing is changed. */
static bool set_text(document *d, char *text, size_t bytes)
{
    text_lines lines;
    if (!text || !text_lines_read(&lines, text, bytes)) {
        free(text);
        return false;
    }
    text_lines_free(&d->lines);
    free(d->text);
    d->text = text;
    d->bytes = bytes;
    d->lines = lines;
    d->changed = true;
    d->hurried = false;
    return true;
}

static void forget_compilations(document *d)
{
    visa_free(d->compilation);
    visa_free(d->tree);
    for (int file = 0; file < d->file_count; file++)
        text_lines_free(&d->file_lines[file]);
    free(d->file_lines);
    d->compilation = d->tree = NULL;
    d->judged = false;
    d->file_lines = NULL;
    d->file_count = 0;
}

static void document_free(document *d)
{
    forget_compilations(d);
    text_lines_free(&d->lines);
    for (size_t i = 0; i < d->published_count; i++)
        free(d->published[i]);
    free(d->published);
    visa_recall_free(d->recall);
    free(d->text);
    free(d->uri);
    free(d->path);
    free(d);
}

document *documents_open(documents *all, const char *uri, const char *text, size_t bytes, int64_t version)
{
    document *d = documents_find(all, uri);
    if (!d) {
        d = calloc(1, sizeof *d);
        if (!d)
            return NULL;
        d->uri = strdup(uri);
        d->path = path_of_uri(uri);
        if (!d->uri || !d->path || !document_replace(d, 0, 0, text, bytes)) {
            document_free(d);
            return NULL;
        }
        d->next = all->first;
        all->first = d;
    } else if (!document_replace(d, 0, (uint32_t)d->bytes, text, bytes)) {
        return NULL;
    }
    d->version = version;
    documents_forget(all);
    return d;
}

bool document_replace(document *d, uint32_t begin, uint32_t end, const char *text, size_t bytes)
{
    if (end < begin)
        end = begin;
    size_t total = d->bytes - (end - begin) + bytes;
    char *changed = total < UINT32_MAX / 2 ? malloc(total + 1) : NULL;
    if (!changed)
        return false;
    if (d->bytes)
        memcpy(changed, d->text, begin);
    memcpy(changed + begin, text, bytes);
    if (d->bytes)
        memcpy(changed + begin + bytes, d->text + end, d->bytes - end);
    changed[total] = '\0';
    return set_text(d, changed, total);
}

void documents_close(documents *all, document *which)
{
    document **link = &all->first;
    while (*link && *link != which)
        link = &(*link)->next;
    if (*link)
        *link = which->next;
    document_free(which);
    documents_forget(all);
}

void documents_free(documents *all)
{
    while (all->first)
        documents_close(all, all->first);
}

void documents_forget(documents *all)
{
    for (document *d = all->first; d; d = d->next) {
        forget_compilations(d);
        d->changed = true;
    }
}

/* What `mod x;` reads: the editor's text before the disk's. */
static bool open_text(void *user, const char *path, const char **text, size_t *bytes)
{
    const documents *all = user;
    for (const document *d = all->first; d; d = d->next)
        if (strcmp(d->path, path) == 0) {
            *text = d->text;
            *bytes = d->bytes;
            return true;
        }
    return false;
}

/* A text without a place on the disk (untitled:..) has no modules there. */
static visa_options options_of(documents *all, const document *d)
{
    bool is_file = strncmp(d->uri, scheme, sizeof scheme - 1) == 0;
    return (visa_options){.editor = true,
                          .modules = is_file,
                          .open_text = open_text,
                          .user = all,
                          .error_limit = PUBLISHED_ERRORS_MAX,
                          .max_steps = answer_steps_left(&all->answer),
                          .max_bytes = all->limits.max_bytes,
                          .max_milliseconds = answer_milliseconds_left(&all->answer)};
}

/* `stale`: so many bytes of functions that a change concerns in which they did not take part. */
static visa_compilation *compile(documents *all, document *d, uint32_t begin, uint32_t end, bool named, size_t stale)
{
    visa_options options = options_of(all, d);
    if (!d->recall)
        d->recall = visa_recall_new();
    if (d->recall)
        visa_recall_put_off(d->recall, stale);
    forget_compilations(d);
    d->compilation = d->recall ? visa_recompile(d->recall, d->path, d->text, d->bytes, begin, end, named, &options)
                               : visa_compile(d->path, d->text, d->bytes, &options);
    if (d->compilation)
        answer_spend(&all->answer, visa_steps(d->compilation));
    return d->compilation;
}

visa_compilation *document_compilation(documents *all, document *d, uint32_t begin, uint32_t end)
{
    bool holds = d->compilation && visa_holds(d->compilation, begin, end) && visa_pending(d->compilation) == 0;
    return holds ? d->compilation : compile(all, d, begin, end, false, SIZE_MAX);
}

visa_compilation *document_place(documents *all, document *d, uint32_t offset)
{
    bool holds = d->compilation && visa_holds(d->compilation, offset, offset);
    return holds ? d->compilation : compile(all, d, offset, offset, false, 0);
}

visa_compilation *document_judge(documents *all, document *d, bool (*is_asked)(void *user), void *user)
{
    if (!d->recall)
        d->recall = visa_recall_new();
    for (;;) {
        bool whole = d->compilation && visa_holds(d->compilation, 0, 0) && (!d->hurried || visa_pending(d->compilation) == 0);
        size_t stale = d->hurried || !all->limits.first_bytes ? SIZE_MAX : (size_t)all->limits.first_bytes;
        if (whole && (d->judged || !visa_gave_up(d->compilation)))
            return d->compilation;
        answer_begin(&all->answer, &all->limits);
        if (d->recall)
            visa_recall_unasked(d->recall, is_asked, user, EDITOR_UNASKED_TIMES * all->limits.max_milliseconds);
        bool compiled = compile(all, d, 0, 0, false, stale);
        if (d->recall)
            visa_recall_unasked(d->recall, NULL, NULL, 0);
        d->judged = compiled;
        if (!compiled || is_asked(user))
            return NULL;
    }
}

visa_compilation *document_names(documents *all, document *d, const visa_name **names, size_t *count)
{
    visa_compilation *c = document_compilation(all, d, 0, 0);
    *count = 0;
    for (size_t portion = 0; c && portion <= d->bytes; portion++) { /* each brings a function's names at least */
        documents_ask(all, d, c);
        if (d->recall ? visa_recalled_names(d->recall, c, names, count) : (*count = visa_names(c, names)) < SIZE_MAX)
            return c;
        if (!answer_spend(&all->answer, 1))
            break;
        c = compile(all, d, 0, 0, true, SIZE_MAX);
    }
    *count = 0;
    return c;
}

/* That of the whole compilation where it is there: a question about the text does not wait for its meaning. */
visa_compilation *document_tree(documents *all, document *d)
{
    if (d->compilation && visa_holds(d->compilation, 0, UINT32_MAX))
        return d->compilation;
    if (d->tree)
        return d->tree;
    visa_options options = options_of(all, d);
    options.parse_only = true;
    d->tree = visa_compile(d->path, d->text, d->bytes, &options);
    if (d->tree)
        answer_spend(&all->answer, visa_steps(d->tree));
    return d->tree;
}

const text_lines *document_lines(document *d, int file)
{
    size_t bytes;
    const char *text = file > 0 && d->compilation ? visa_file_text(d->compilation, file, &bytes) : NULL;
    if (file == 0 || !text)
        return file == 0 ? &d->lines : NULL;
    if (file >= d->file_count) {
        text_lines *grown = realloc(d->file_lines, (size_t)(file + 1) * sizeof *grown);
        if (!grown)
            return NULL;
        d->file_lines = grown;
        while (d->file_count <= file)
            d->file_lines[d->file_count++] = (text_lines){0};
    }
    text_lines *l = &d->file_lines[file];
    return l->begins || text_lines_read(l, text, bytes) ? l : NULL;
}

void documents_ask(documents *all, document *d, visa_compilation *c)
{
    all->asked = d;
    all->asks = c;
    all->steps_before = visa_steps(c);
    all->gave_up_before = visa_gave_up(c);
    visa_ask(c, answer_steps_left(&all->answer), answer_milliseconds_left(&all->answer));
}

/* Of a compilation that a question has unwound not much is left: it is made anew. One that gave up by itself would again. */
bool documents_answered(documents *all)
{
    if (!all->asked)
        return all->answer.gave_up;
    answer_spend(&all->answer, visa_steps(all->asks) - all->steps_before);
    bool gave_up = visa_gave_up(all->asks);
    if (gave_up && !all->gave_up_before)
        forget_compilations(all->asked);
    all->asked = NULL;
    return gave_up || all->answer.gave_up;
}

/* A compilation that is the answer's alone. */
static visa_compilation *asked_apart(documents *all, visa_compilation *c)
{
    all->answer.gave_up = all->answer.gave_up || !c || visa_gave_up(c);
    if (c)
        answer_spend(&all->answer, visa_steps(c));
    return c;
}

visa_compilation *document_complete(documents *all, const document *d, uint32_t offset)
{
    visa_options options = options_of(all, d);
    return asked_apart(all, visa_complete(d->path, d->text, d->bytes, offset, &options));
}

visa_compilation *document_fix(documents *all, const document *d, size_t *changes)
{
    visa_options options = options_of(all, d);
    return asked_apart(all, visa_fix(d->path, d->text, d->bytes, &options, changes));
}
