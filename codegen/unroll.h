/* A command stream as it stands in a section, and as it is run.
 *
 * The one idea: `loop` and `advance` are commands of the file only. They are checked as a whole before anything is
 * expanded, so that expansion cannot fail; after it there are the commands that a machine runs, each a copy of the one in a
 * loop's body with the numbers of its iteration. */
#ifndef VISA_CODEGEN_UNROLL_H
#define VISA_CODEGEN_UNROLL_H

#include "codegen/command.h"

enum { COMMAND_LOOP_MAX_DEPTH = 8 }; /* loops inside each other */

/* What a column of `advance` entries names: a field of the command `at`, or a column of its entry (-1: no entry). */
typedef struct command_place {
    const command *at;
    int entry;
    const command_field_row *row;
} command_place;

/* The first command of the body of the loop `stored[loop]`, after its advance commands. */
size_t command_loop_body(const command *stored, size_t count, size_t loop);
/* The command after the body. */
size_t command_loop_end(const command *stored, size_t count, size_t loop);
/* The place that an entry of an advance command names in the body that begins with `body`. Only of checked commands. */
command_place command_advance_place(const command *stored, size_t count, size_t body, const command *advance, unsigned entry);

/* The commands that run. `stored` are the decoded commands of a section, with their offsets, and `lines` of them; what they expand to
 * carries both of its origin. `left`: commands that the streams of this file may still expand to, less those of this one afterwards.
 * Without a loop *out is `stored`. False with a diagnostic that names section and offset. */
bool command_unroll(const command *stored, size_t count, const char *section, size_t *left, arena *a, diag_list *diags, const command **out,
                    size_t *out_count);

#endif
