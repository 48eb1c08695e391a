/* What the passes derived, for readers (--emit=tables) and for programs (--emit=json, docs/tables.schema.json).
 *
 * The one idea: both are printed from the same configuration structs that the encoder reads. JSON entries are always
 * outermost first; the text shows the hardware's own entry numbers, which count from the inside for the TRF Sequencer. */
#ifndef VISA_CODEGEN_TABLES_H
#define VISA_CODEGEN_TABLES_H

#include "codegen/emit.h"

const char *tables_text(const emit_context *e, const module *m);
/* One operation of it; NULL when it was refused or is no stage. */
const char *tables_op_text(const emit_context *e, const op *o);
/* NULL: out of memory. */
const char *tables_json(const emit_context *e, const module *m);

#endif
