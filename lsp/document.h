/* The texts that an editor has open.
 *
 * The one idea: the editor's text is the truth, the disk's only where a file is not open. A document keeps one compilation of its
 * text, made at the first question after a change. */
#ifndef VISA_LSP_DOCUMENT_H
#define VISA_LSP_DOCUMENT_H

#include "include/visa_editor.h"
#include "lsp/answer.h"
#include "lsp/text.h"

typedef struct document {
    char *uri, *path; /* path: of a file: URI, else the URI */
    char *text;
    size_t bytes;
    int64_t version;
    text_lines lines;
    visa_recall *recall;           /* of its functions, from text to text; NULL: not compiled yet */
    visa_compilation *compilation; /* NULL: to be made */
    visa_compilation *tree; /* the text alone, its meaning not looked at; NULL: to be made, or not wanted in addition to `compilation` */
    text_lines *file_lines; /* of the other files of `compilation`, by number; read when a place in one is reported */
    int file_count;
    bool judged;      /* `compilation` gave up, if it did, for no question's sake: its diagnostics are all there are */
    bool hurried;     /* the diagnostics of some functions that the last change concerns were put off once */
    bool changed;     /* its diagnostics are to be published */
    char **published; /* URIs that got diagnostics from this document, itself apart */
    size_t published_count;
    struct document *next;
} document;

typedef struct documents {
    document *first;
    text_encoding encoding;
    answer_limits limits;
    answer_account answer;  /* the one under way */
    document *asked;        /* whose compilation it asks; NULL: none, or it has been told what that took */
    visa_compilation *asks; /* that one */
    uint64_t steps_before;  /* of it */
    bool gave_up_before;
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

/* Of which [begin, end) of the text can be asked about; all diagnostics are there. At the expense of the answer under way; NULL: no memory.
 */
visa_compilation *document_compilation(documents *all, document *d, uint32_t begin, uint32_t end);
/* What is around the offset alone; diagnostics of other functions may be out of date. NULL as there. */
visa_compilation *document_place(documents *all, document *d, uint32_t offset);
/* For its diagnostics: goes on past the answer's time while is_asked says that nobody asks anything. NULL: no memory, or it has to be
 * called again, after who asks was answered. The first time after a change those of functions that did not change may be out of date
 * (visa_pending): called again, it has them all. */
visa_compilation *document_judge(documents *all, document *d, bool (*is_asked)(void *user), void *user);
/* The same as document_compilation, and is asked for all names of the text: NULL as there. */
visa_compilation *document_names(documents *all, document *d, const visa_name **names, size_t *count);
/* For questions about the text alone. */
visa_compilation *document_tree(documents *all, document *d);
/* Lines of a file of the compilation; NULL: there is no such file, or no memory. */
const text_lines *document_lines(document *d, int file);
/* Questions to a compilation of the document, its own or its tree, are for the answer under way from here on. */
void documents_ask(documents *all, document *d, visa_compilation *c);
/* They are over. Did they, or the compilation, give up? */
bool documents_answered(documents *all);
/* For questions about a place that is being written; the caller frees it. NULL: no memory, or given up. */
visa_compilation *document_complete(documents *all, const document *d, uint32_t offset);
/* With all that its diagnostics say to write; the caller frees it. NULL: no memory, or given up. */
visa_compilation *document_fix(documents *all, const document *d, size_t *changes);

/* malloc; a file: URI's path, other URIs as they are. And back. */
char *path_of_uri(const char *uri);
char *uri_of_path(const char *path);

#endif
