/* One step of a sum: the instruction that multiplies a vector of row units with one of column units and adds them.
 *
 * The one idea: a unit is 32 bits of items that are neighbours in depth; whoever loads units into lanes decides what a lane is. */
#ifndef VISA_CODEGEN_REFERENCE_PRODUCT_H
#define VISA_CODEGEN_REFERENCE_PRODUCT_H

#include "codegen/reference/emitter.h"

/* Of a lane. */
LLVMTypeRef product_sum_type(emitter *e, const plan_tile *t);
/* The same bits seen as items of the product. */
LLVMValueRef product_items(emitter *e, const plan_tile *t, LLVMValueRef units);
/* A vector of units from neighbouring elements in depth, of a type that the product takes as it is or widened (plan_tile.along_depth). */
LLVMValueRef product_units(emitter *e, const plan_tile *t, dtype type, LLVMValueRef codes);
LLVMValueRef product_add(emitter *e, const plan_tile *t, LLVMValueRef sum, LLVMValueRef row, LLVMValueRef column);

#endif
