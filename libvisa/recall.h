/* What is known of the functions of a text that changes bit by bit.
 *
 * The one idea: the diagnostics of a kernel follow from its own text, from the bodies of the functions that it calls, they themselves or
 * others for them, and from what stands outside of all bodies. So where one body changes, those of the kernels that do not need it are
 * blanked before the text is compiled: every place stays where it was, next to nothing is read, and the diagnostics of those kernels are
 * reported again, moved to where they now stand. Functions that are called stand there, always. Where something outside of bodies changes,
 * that is done with the functions that it does not concern (libvisa/concern.h). Whatever is not as simple as that (macros, modules of other
 * files, stream programs, words of several releases, functions by other names) is compiled each time.
 *
 * A function that did not change, but something that it needs, is stale: what was said of it may be repeated once more, until it is
 * compiled. */
#ifndef VISA_LIBVISA_RECALL_H
#define VISA_LIBVISA_RECALL_H

#include "include/visa_editor.h"
#include "libvisa/compilation.h"

/* A function of a file or of a module in it, not one inside of a function. Offsets in bytes. */
typedef struct recalled {
    uint32_t begin, end, open, close; /* the whole of it; after its `{`, and at its `}` */
    bool kernel;                      /* it was read as one, and nothing calls it: a change of its body concerns nobody else */
    bool simple;                      /* nor does it use a macro, or what it needs: its diagnostics may be kept */
    const char *name;                 /* NULL: no memory */
    const char **needs;               /* names of the functions of the file that it calls, and that those call */
    size_t need_count;
    bool known;        /* its diagnostics are known: */
    bool stale;        /* they were, or would be if it were the only one: */
    dialect release;   /* of the file, when they were found */
    unsigned dialects; /* the releases of its body */
    diag *diags;
    size_t diag_count;
    bool named;       /* so are its names, where `known` is set: */
    visa_name *names; /* as visa_names has them */
    size_t name_count;
    bool blank; /* its body is not in the text that is being compiled */
} recalled;

/* The compilation's account is one of visa_recall_unasked. */
void recall_attend(const visa_recall *r, arena *a);
/* After the text was parsed: is it the text that the recall is about? Else nothing that follows counts: c->unlike. */
bool recall_follows(visa_compilation *c);
/* The releases in which the bodies may be written that are not there; 0: any. */
unsigned recall_dialects(const visa_recall *r);
/* For sema_options: the functions that are called by what is not there. */
const char *const *recall_called(visa_compilation *c, size_t *count);
bool recall_passes_over(void *compilation, const ast *fn, dialect d, bool mixed);
/* A kernel has been read and derived. */
void recall_keep(visa_compilation *c, const kernel *k);
/* All kernels have: what is known of those that were not there is reported, too. */
void recall_add(visa_compilation *c);

#endif
