/* What the functions behind the table of stages share: reading the call, adding the operation. */
#ifndef VISA_FRONTEND_STAGE_BUILD_H
#define VISA_FRONTEND_STAGE_BUILD_H

#include "frontend/stage.h"

static const value stage_error = {.kind = VALUE_ERROR};

diag_list *stage_diags(const stage_call *call);
/* An operation on the receiver, from the method's place. */
op *stage_add_op(const stage_call *call, op_kind kind, context c, const tensor *out);
/* Type argument `index`; NULL: absent. */
const ast *stage_generic(const stage_call *call, unsigned index);
/* Type argument `index` as a mapping into o's part; `_` and absent leave it. False: diagnosed. */
bool stage_take_part(const stage_call *call, op *o, unsigned index, component c);

/* The operation's tensor as a value; it is refused when `ok` is false or its type is not the expected one. */
value stage_finish(const stage_call *call, op *o, bool ok);
/* Parts named by letters must be known now. */
bool stage_require_parts(const stage_call *call, op *o, const char *letters);

/* Views and what begins a stream: stage_view.c. */
value stage_view(const stage_call *call);
value stage_view_mut(const stage_call *call);
value stage_tile(const stage_call *call);
value stage_chip_tile(const stage_call *call);
value stage_cluster_tile(const stage_call *call);
value stage_slice_tile(const stage_call *call);
value stage_reshape(const stage_call *call);
value stage_begin(const stage_call *call);
value stage_begin_interleaved(const stage_call *call);

#endif
