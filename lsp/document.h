/* The texts that an editor has open.
 *
 * The one idea: the editor's text is the truth, the disk's only where a file is not open. A document keeps one compilation of its
 * text, made at the first question after a change. */
#ifndef VISA_LSP_DOCUMENT_H
#define VISA_LSP_DOCUMENT_H

#include "include/visa_editor.h"
#include "lsp/text.h"

typedef struct document {
    char *uri, *path; /* path: of a file: URI, else the URI */
    char *text;
    size_t bytes;
    int64_t version;
    text_lines lines;
    visa_compilation *compilation; /* NULL: to be made */
    bool changed;                  /* its diagnostics are to be published */
    char **published;              /* URIs that got diagnostics from this document, itself apart */
    size_t published_count;
    struct document *next;
} document;

/* What an answer may cost; as in visa_options. */
typedef struct answer_limits {
    uint64_t max_steps, max_bytes, max_milliseconds;
} answer_limits;

typedef struct documents {
    document *first;
    text_encoding encoding;
    answer_limits limits;
    bool gave_up; /* in the answer under way: some of it was not found in time */
} documents;

document *documents_find(const documents *d, const char *uri);
/* Opens or replaces; NULL: no memory. */
document *documents_open(documents *d, const char *uri, const char *text, size_t bytes, int64_t version);
/* Replaces [begin, end); false: no memory, and nothing is changed. */
bool document_replace(document *d, uint32_t begin, uint32_t end, const char *text, size_t bytes);
void documents_close(documents *d, document *which);
void documents_free(documents *d);
/* Everything that read another file's text is out of date. */
void documents_forget(documents *d);

/* NULL: no memory. */
visa_compilation *document_compilation(documents *all, document *d);
/* For questions about a place that is being written; the caller frees it. */
visa_compilation *document_complete(documents *all, const document *d, uint32_t offset);

/* malloc; a file: URI's path, other URIs as they are. And back. */
char *path_of_uri(const char *uri);
char *uri_of_path(const char *path);

#endif
