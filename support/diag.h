/* Diagnostics as values.
 *
 * The one idea: whoever finds a fault adds a value to a list and goes on; nobody below tools/ prints or
 * exits. The value has everything a reader needs: the id of the rule, a source range, the message with both
 * numbers and their units, notes with ranges of their own, and a next step. frontend/render.c turns a list
 * into text or JSON.
 *
 * The rules themselves are rows of support/diagnostics.def; docs/diagnostics.md, `--explain` and the tests
 * read the same rows. */
#ifndef VISA_SUPPORT_DIAG_H
#define VISA_SUPPORT_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/src_range.h"
#include "support/strbuf.h"

/* The smallest range that holds both. */
src_range src_range_join(src_range a, src_range b);

typedef enum diag_severity { DIAG_WARNING, DIAG_ERROR } diag_severity;

typedef enum diag_id {
#define DIAG(symbol, name, severity, title, explanation) symbol,
#include "support/diagnostics.def"
#undef DIAG
    DIAG_ID_COUNT
} diag_id;

/* One row of support/diagnostics.def. */
typedef struct diag_row {
    const char *name; /* "E-COLLECT-FLIT": what users search for */
    diag_severity severity;
    bool on_request;         /* a warning that is given only when asked for (support/warning.h) */
    const char *title;       /* one line: the rule */
    const char *explanation; /* what `--explain` prints */
} diag_row;

const diag_row *diag_row_of(diag_id id);
/* The row with that name ("E-COLLECT-FLIT", case ignored), or DIAG_ID_COUNT. */
diag_id diag_id_by_name(const char *name);

typedef struct diag_remark {
    src_range range;
    const char *text;
} diag_remark;

/* [range) of a text becomes `text`. */
typedef struct diag_edit {
    src_range range;
    const char *text;
} diag_edit;

typedef struct diag {
    diag_id id;
    diag_severity severity;
    src_range range;
    const char *message;
    diag_remark *notes;
    size_t note_count, note_capacity;
    const char *help; /* NULL: no next step is known */
    diag_edit *edits; /* the help as changes of the text, all of them together; none: it takes a person */
    size_t edit_count, edit_capacity;
    bool shared; /* a macro's text, which serves all its calls: no change of it is this diagnostic's */
} diag;

/* What the user chose for a warning; support/warning.h has the rule. */
typedef enum warning_choice { WARNING_DEFAULT, WARNING_OFF, WARNING_ON, WARNING_PLAIN, WARNING_ERROR } warning_choice;
typedef struct warning_levels {
    bool errors;                         /* -Werror */
    unsigned char chosen[DIAG_ID_COUNT]; /* warning_choice */
} warning_levels;

/* How a reader calls things: `of` gives the word for the one after `@` in a text ("@Row"); NULL: the word itself. */
typedef struct diag_words {
    const char *(*of)(int release, const char *word);
    int release;
} diag_words;

typedef struct diag_list {
    arena *arena; /* owns every text of the list */
    diag_words words;
    diag **items;
    size_t count, capacity;
    size_t error_count;
    warning_levels warnings;
    unsigned repeating; /* text is being read again (a loop's next iteration): nothing is reported twice for one place */
} diag_list;

void diag_list_init(diag_list *list, arena *a);

/* Adds a diagnostic and returns it, for diag_note and diag_help. Never NULL. `@word` in a text is printed as the list's words have it.
 * While `repeating` is not 0 a rule that was already broken at that range is not added once more, and neither is a warning that is not
 * wanted. */
diag *diag_add(diag_list *list, diag_id id, src_range range, const char *format, ...) __attribute__((format(printf, 4, 5)));
void diag_note(diag_list *list, diag *d, src_range range, const char *format, ...) __attribute__((format(printf, 4, 5)));
void diag_help(diag_list *list, diag *d, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* One of the changes that the help asks for. A range without a place has none: then d keeps none at all. */
void diag_replace(diag_list *list, diag *d, src_range range, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds what another list holds, whose arena lives as long as this one's. */
void diag_list_append(diag_list *list, const diag_list *more);
/* A list of the same arena whose diagnostics nobody else changes; their texts are those of `list`. */
diag_list diag_list_copy(const diag_list *list);

/* Orders by file and position (stable, so that equal places keep the order of discovery) and drops exact
 * repetitions: same id, range and message. */
void diag_list_sort(diag_list *list);

/* "E-ID: message", "note: .." and "help: .." in lines, the last one without its end; `where`, if it is not NULL, is what the ranges count
 * in: "E-ID: WHERE, byte 3: message". */
void diag_list_put(const diag_list *list, const char *where, strbuf *out);

#endif
