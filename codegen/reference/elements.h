/* Statements that are no contraction, element by element: copy, map, gather, scatter, fill; and what a
 * reduction folds.
 *
 * The one idea: the digit along which the destination's elements lie side by side is walked in vectors,
 * innermost, where every element of it exists; each operand is then a vector in memory, one element for all
 * lanes, or elements apart that are loaded one by one. */
#ifndef VISA_CODEGEN_REFERENCE_ELEMENTS_H
#define VISA_CODEGEN_REFERENCE_ELEMENTS_H

#include "codegen/reference/expression.h"

typedef struct element_form {
    emitter *e;
    const plan_statement *p;
    const LLVMValueRef *at, *bound; /* operands and their bounds, by side */
    LLVMValueRef outside;           /* where indices outside their axes are counted */
    bool bounded;
} element_form;

void emit_elements(const element_form *f);
/* The statement's expression at the open digits, in so many lanes. */
expression_value emit_element_value(const element_form *f, int64_t lanes);
/* Casts the value to the destination's type and stores it there. */
void emit_element_store(const element_form *f, const expression_value *v, int64_t lanes);

/* An element of a source, widened, in lanes `stride` elements apart of which `live` are read. */
expression_value emit_element_load(const element_form *f, unsigned side, LLVMValueRef offset, int64_t stride, int64_t lanes, int64_t live);
/* How the error of a value passes through the cast that made `code` of it; NULL: none. */
LLVMValueRef emit_element_cast_error(emitter *e, dtype to, const expression_value *v, LLVMValueRef code);

/* Opens the plan's vector digit as a loop over counters from `first` to `end`; runs at least once. */
void emit_vector_open(const element_form *f, int64_t first, int64_t end, int64_t step);
void emit_vector_close(const element_form *f);

#endif
