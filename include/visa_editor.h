/* What an editor asks of a text: places, explanations, names and what may be written next.
 *
 * All of it is asked of a compilation made with `editor` set in visa_options; a text with errors is answered as far as it can be
 * read. Places are offsets in bytes of a file of the compilation: file 0 is the text that was compiled, the others are those of
 * its `mod x;`. Texts that are handed out belong to the compilation. */
#ifndef VISA_EDITOR_H
#define VISA_EDITOR_H

#include "visa.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct visa_place {
    int file; /* -1: no place */
    uint32_t begin, end;
} visa_place;

/* NULL: there is no such file. */
VISA_API const char *visa_file_name(const visa_compilation *c, int file);
VISA_API const char *visa_file_text(const visa_compilation *c, int file, size_t *bytes);

typedef struct visa_note {
    visa_place place;
    const char *message;
} visa_note;

typedef struct visa_edit {
    visa_place place;
    const char *text; /* what is to stand there */
} visa_edit;

typedef struct visa_diagnostic {
    const char *id; /* "E-COLLECT-FLIT" */
    bool is_error;
    visa_place place;
    const char *message;
    const char *help;       /* NULL: no next step is known */
    const visa_edit *edits; /* what the help asks for, all of them together; none: somebody has to choose */
    size_t edit_count;
    const visa_note *notes;
    size_t note_count;
} visa_diagnostic;

/* The i-th one in source order; false: there are fewer. */
VISA_API bool visa_diagnostic_at(visa_compilation *c, size_t i, visa_diagnostic *out);

/* The text with what its diagnostics ask for (their edits in file 0), again and again until none asks, or a text comes back; what that
 * compiles to: file 0 is the text. *changes is how many diagnostics were taken. As visa_compile, with limits for all of it: where the next
 * text would pass them the last one stays. NULL: no memory. */
VISA_API visa_compilation *visa_fix(const char *name, const char *text, size_t bytes, const visa_options *options, size_t *changes);

/* That text; of a chapter of a book (`book` of visa_options), whose files are its blocks, the whole chapter. NULL: nothing was read. */
VISA_API const char *visa_fixed_text(const visa_compilation *c, size_t *bytes);

/* What is known of the functions of a text that changes bit by bit; one for each text. NULL: no memory. */
typedef struct visa_recall visa_recall;
VISA_API visa_recall *visa_recall_new(void);
VISA_API void visa_recall_free(visa_recall *r);
/* What is compiled from here on may pass the milliseconds of its options, up to these, as long as is_asked says that nobody waits; where
 * somebody does, it gives up, visa_holds is false of it, and it is no verdict. NULL: those of its options alone. */
VISA_API void visa_recall_unasked(visa_recall *r, bool (*is_asked)(void *user), void *user, uint64_t milliseconds);
/* As visa_compile with `editor`, and says the same; functions that did not change are not compiled again. What [begin, end) of the text
 * touches can be asked about afterwards, and maybe more (visa_holds); with `named` something of which the names are not known
 * (visa_recalled_names). `options` name no kernel and no parameters, and are the same at every call. What was done before limits of the
 * options were met need not be done again: where visa_holds is false of a compilation that gave up, the next call comes further. */
VISA_API visa_compilation *visa_recompile(visa_recall *r, const char *name, const char *text, size_t bytes, uint32_t begin, uint32_t end,
                                          bool named, const visa_options *options);
/* From here on visa_recompile compiles about so many bytes of the functions that did not change themselves, but something that they need;
 * of the others it repeats what was said last. SIZE_MAX, which it is at first: all of them. */
VISA_API void visa_recall_put_off(visa_recall *r, size_t bytes);
/* Of how many functions the diagnostics may be out of date for that. */
VISA_API size_t visa_pending(const visa_compilation *c);
/* Can [begin, end) of file 0 be asked about? */
VISA_API bool visa_holds(const visa_compilation *c, uint32_t begin, uint32_t end);

/* What is at an offset of file 0, as Markdown: an axis, a mapping with its size and shortest form, a variable's tensor, a stage
 * with its signature and what was derived for it, the rule of a diagnostic. False: nothing that is known. */
VISA_API bool visa_hover(visa_compilation *c, uint32_t offset, visa_place *place, const char **markdown);

/* Where the name at an offset of file 0 was given. */
VISA_API bool visa_definition(visa_compilation *c, uint32_t offset, visa_place *out);

/* Where file 0 has the name at an offset of it, in the order of the text, the place where it was given included; 0: nothing that is known,
 * or it was given in another file. *places holds until visa_free. */
VISA_API size_t visa_references(visa_compilation *c, uint32_t offset, const visa_place **places);

typedef enum visa_name_kind {
    VISA_NAME_AXIS,
    VISA_NAME_ALIAS,
    VISA_NAME_CONST,
    VISA_NAME_VARIABLE,
    VISA_NAME_FUNCTION,
    VISA_NAME_MODULE,
    VISA_NAME_METHOD,
    VISA_NAME_FIELD,
    VISA_NAME_TYPE,
    VISA_NAME_KEYWORD,
} visa_name_kind;

typedef struct visa_completion {
    const char *label;
    visa_name_kind kind;
    const char *detail; /* a signature, a size; "" */
} visa_completion;

/* Compiles the text as if the word at the offset were just being written, and knows what may stand there: the methods of what is in front
 * of a `.`; inside m![..] axes and aliases; else names, types and words. As visa_compile; `editor` is set. The text is compiled up to three
 * times; limits of the options are for all of it, and NULL is given, too, where one is met in between. */
VISA_API visa_compilation *visa_complete(const char *name, const char *text, size_t bytes, uint32_t offset, const visa_options *options);
VISA_API bool visa_completion_at(const visa_compilation *c, size_t i, visa_completion *out);

typedef struct visa_outline {
    const char *name;
    visa_name_kind kind;
    const char *detail;
    visa_place place, name_place;
    int depth; /* 0: of the file; one more than the item that it stands in, which came before */
} visa_outline;

/* The i-th item of file 0, in source order: axes, aliases, constants, functions with their variables, modules. */
VISA_API bool visa_outline_at(visa_compilation *c, size_t i, visa_outline *out);

/* A name in the text, and what it stands for. */
typedef struct visa_name {
    visa_place place;
    visa_name_kind kind;
    bool is_given;    /* here it gets its meaning */
    visa_place given; /* where it got it; file -1: the language has it */
} visa_name;
/* The names of file 0 of which something is known, in the order of the text; 0: none is. *names holds until visa_free. */
VISA_API size_t visa_names(visa_compilation *c, const visa_name **names);

/* The same of a compilation that visa_recompile made of the recall's text the last time: what is known of functions that were not compiled
 * is there, too. False: it is not for some; visa_recompile with `named` compiles some of them, and the next call knows more. */
VISA_API bool visa_recalled_names(visa_recall *r, visa_compilation *c, const visa_name **names, size_t *count);

typedef enum visa_hint_kind { VISA_HINT_MAPPING, VISA_HINT_SEQUENCER, VISA_HINT_CYCLES } visa_hint_kind;
/* What was derived and does not stand in the text. */
typedef struct visa_hint {
    uint32_t offset; /* after which it may be shown */
    visa_hint_kind kind;
    const char *text; /* "Time m![M, K / 16]", "[32:32, 2:16]", "321 cycles" */
    const char *more; /* a sentence about it */
} visa_hint;
/* Hints of [begin, end) of file 0, in the order of the text: mappings that a stage inferred, entries of sequencers, outermost first
 * (iterations:stride), cycles of what begins on a line, when the text has no errors. *hints holds until visa_free. */
VISA_API size_t visa_hints(visa_compilation *c, uint32_t begin, uint32_t end, const visa_hint **hints);

/* A stage or function whose arguments the offset is among. */
typedef struct visa_signature {
    const char *label;   /* "fetch::<Time, Packet>()" */
    const char *summary; /* "" */
    struct visa_signature_part {
        uint32_t begin, end; /* bytes of the label */
    } const *parameters;
    size_t parameter_count, active; /* active: parameter_count where there are fewer */
} visa_signature;
VISA_API bool visa_signature_at(visa_compilation *c, uint32_t offset, visa_signature *out);

#ifdef __cplusplus
}
#endif

#endif
