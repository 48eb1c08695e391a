/* Packing: a source into the panels that a product reads (plan_tile).
 *
 * The one idea: where the source's elements lie side by side along depth or along the lines, whole vectors are loaded, converted
 * and put into place, transposed where the panel runs the other way; where they do not, or where some do not exist, the digits are
 * walked one element at a time. */
#ifndef VISA_CODEGEN_REFERENCE_PANEL_H
#define VISA_CODEGEN_REFERENCE_PANEL_H

#include "codegen/reference/emitter.h"

typedef enum panel_kind {
    PANEL_VALUE,     /* the element */
    PANEL_MAGNITUDE, /* |element|, 0 when it is not finite */
    PANEL_ERROR,     /* its bound */
    PANEL_LARGEST,   /* magnitude and bound together */
} panel_kind;

typedef struct panel_side {
    const plan_statement *of;
    const plan_tile *tile;
    plan_group group; /* PLAN_ROW or PLAN_COLUMN */
    uint32_t tensor;
    einsum_side side;
    LLVMValueRef source, bound, panel;
} panel_side;

/* The panels of tiles first to end, at their places after `panel`. The batch digits are open. */
void emit_panels(emitter *e, const panel_side *side, panel_kind kind, LLVMValueRef first, LLVMValueRef end);

#endif
