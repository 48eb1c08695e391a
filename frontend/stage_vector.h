/* What the stages of the Vector Engine share (stage_vector.c). */
#ifndef VISA_FRONTEND_STAGE_VECTOR_H
#define VISA_FRONTEND_STAGE_VECTOR_H

#include "frontend/stage_build.h"

/* Marks the kernel; the diagnostic was added. */
value vector_stage_refuse(const stage_call *call);
/* The operation that the stage was told; NULL: diagnosed, since it is none of the class, or of another element type than the stream. */
const vector_op_row *vector_stage_operation(const stage_call *call, vector_class class);

#endif
