/* What a check found: in one word, and as a JSON document (docs/check.schema.json).
 *
 * The one idea: the lines for people, the document and the word are made of the same findings. They are kept while one kernel is checked
 * after the other, and become a document at the end. */
#ifndef VISA_RUNTIME_FIELD_VERDICT_H
#define VISA_RUNTIME_FIELD_VERDICT_H

#include "runtime/field/check.h"
#include "runtime/tensor/finding.h"

/* What was checked: a kernel, a stream program, or all runs of a plan's kernel. */
typedef struct verdict_item {
    const char *name;
    bool is_program;
    const char *left_out;        /* why it was not checked; NULL: it was */
    bool differs;                /* also where no output has a finding: it depends on what nobody wrote */
    const finding_list *numbers; /* NULL: not asked for, or not come to */
    const field_verdict *algebra;
    int64_t runs, compared, differing; /* of a plan; runs 0: it is of none */
} verdict_item;

/* "agrees", "differs" or "not compared". */
const char *verdict_word(const verdict_item *v);

/* Did a run or a comparison that was not finished say that something differs (E_CHECK_MISMATCH, E_RUN_UNDEFINED)? */
bool verdict_is_difference(const diag_list *diags);

/* Those of a document, in the order in which they came. */
typedef struct verdict_book verdict_book;
/* The texts outlive the document. *book NULL: the first. */
void verdict_book_add(verdict_book **book, const verdict_item *item, arena *a);

typedef struct verdict_head {
    const char *file;
    bool numbers, algebra; /* asked for */
    bool free_order;       /* of the reference */
    bool mismatch;         /* something differs, or was not compared */
    uint64_t seed;
} verdict_head;
/* `book` NULL: nothing was checked. NULL: no memory. */
const char *verdict_text(const verdict_book *book, const verdict_head *head, diag_list *diags);

#endif
