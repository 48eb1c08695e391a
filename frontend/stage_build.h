/* The rows of the stages (target/engines.def), and what their functions share: reading the call, adding the operation.
 *
 * The one idea: a stage is what is done, a form is how some releases write it. What a type argument means is in the form, so a function
 * asks for it by its meaning and never by its place. */
#ifndef VISA_FRONTEND_STAGE_BUILD_H
#define VISA_FRONTEND_STAGE_BUILD_H

#include "frontend/running.h"
#include "frontend/stage.h"

/* What is between ::< and >. The components first, each one more than its number. */
typedef enum stage_type {
    TYPE_NONE,
#define COMPONENT(symbol, ...) TYPE_##symbol,
#include "ir/tensor.def"
    TYPE_DTYPE,
    TYPE_INDEX,   /* of a tile */
    TYPE_LENGTH,  /* of a tile */
    TYPE_WEIGHTS, /* Element of the argument */
    TYPE_AXIS,
    TYPE_REST,       /* `_`, which is not read */
    TYPE_COUNT,      /* of chips or clusters */
    TYPE_SLICED,     /* Element with a gap for one position of an axis */
    TYPE_TILED_TIME, /* Time with the axis of two streams as padding */
    TYPE_KEY,        /* what a list has an element for each of */
    TYPE_PAYLOAD,
} stage_type;

static inline component stage_type_component(stage_type t)
{
    return t > TYPE_NONE && t <= TYPE_PE ? (component)(t - 1) : MAPPING_COMPONENTS;
}

typedef enum stage_argument {
    ARGUMENT_DMA,
    ARGUMENT_ADDRESS,
    ARGUMENT_START,
    ARGUMENT_WEIGHTS,
    ARGUMENT_DM_VIEW,
    ARGUMENT_DM_VIEW_MUT,
    ARGUMENT_HBM_VIEW_MUT,
    ARGUMENT_TRF_ADDRESS,
    ARGUMENT_ACCUMULATION,
    ARGUMENT_VECTOR_OP,
    ARGUMENT_OP_WITH_MODE,
    ARGUMENT_MODE,
    ARGUMENT_TAG_MODE,
    ARGUMENT_INT_WIDTH,
    ARGUMENT_OPERAND,
    ARGUMENT_LANE_MODE,
    ARGUMENT_SWITCH,
    ARGUMENT_SUB,
    ARGUMENT_DM_MUT,
    ARGUMENT_DM_GIVEN,
    ARGUMENT_POSITIONS,
    ARGUMENT_INDEX,
    ARGUMENT_INDEX_DM,
    ARGUMENT_INDEX_SPM,
    ARGUMENT_HBM_MUT,
    ARGUMENT_FLAG,
    ARGUMENT_ZERO_POINT,
    ARGUMENT_FILL,
    ARGUMENT_OTHER_OPERAND,
    ARGUMENT_TAKEN,
    ARGUMENT_OTHER_TAKEN,
    ARGUMENT_RUNNING,
} stage_argument;

enum {
    GIVES_VIEW = TENSOR_KIND_COUNT,
    GIVES_BEGIN,
    GIVES_PLAN,
    GIVES_INDIRECT,
    GIVES_RUNNING,
    GIVES_NOTHING,
    GIVES_SAME,
    GIVES_OWN_TYPE,
    EXPECTS_DTYPE = 1,
    STAGE_MAX_TYPES = 9,
    STAGE_MAX_ARGUMENTS = 4,
};

#define NO_OPERATION IR_OP_COUNT

struct stage_row {
    op_kind operation;
    uint64_t receivers;
    int gives; /* a tensor_kind, or GIVES_.. */
    unsigned properties;
    const char *summary;
    value (*make)(const stage_call *call);
};

struct stage_form {
    const stage_row *row;
    uint64_t receivers; /* 0: the row's */
    unsigned dialects;  /* APRIL | .. */
    const char *name;
    size_t name_length; /* bytes */
    stage_type types[STAGE_MAX_TYPES];
    unsigned type_count;
    stage_argument arguments[STAGE_MAX_ARGUMENTS];
    unsigned argument_count;
};

/* Bits of stage_row.receivers: tensors by their kinds, then views of memory, whose kinds are the first ones, then the rest. */
enum {
    VIEW_BITS = TENSOR_KIND_COUNT,
    UNIT_BIT = VIEW_BITS + TENSOR_TRF,
    SUB_BIT,
    DMA_BIT,
    BEGIN_BIT,
    TYPE_BIT,
    PLAN_BIT,
    INDIRECT_BIT,
    SCALAR_BIT
};
_Static_assert(SCALAR_BIT < 64, "a bit for each receiver");
#define ON(kind) (UINT64_C(1) << TENSOR_##kind)
#define ON_VIEW(kind) (UINT64_C(1) << (VIEW_BITS + TENSOR_##kind))
#define ON_UNIT (UINT64_C(1) << UNIT_BIT)
#define ON_SUB (UINT64_C(1) << SUB_BIT)
#define ON_DMA (UINT64_C(1) << DMA_BIT)
#define ON_PLAN (UINT64_C(1) << PLAN_BIT)
#define ON_INDIRECT (UINT64_C(1) << INDIRECT_BIT)
#define ON_SCALAR (UINT64_C(1) << SCALAR_BIT)
#define ON_BEGIN (UINT64_C(1) << BEGIN_BIT)
#define ON_TYPE (UINT64_C(1) << TYPE_BIT)

/* The forms in the order of the rows; NULL: there are fewer. Those of one stage are together. */
const stage_form *stage_form_at(size_t i);
static inline uint64_t stage_form_receivers(const stage_form *f)
{
    return f->receivers ? f->receivers : f->row->receivers;
}

static const value stage_error = {.kind = VALUE_ERROR};

diag_list *stage_diags(const stage_call *call);
/* The row's operation on the receiver, from the method's place. */
op *stage_add_op(const stage_call *call, context c, const tensor *out);
/* The same with the receiver's tensor as one of the kind that the row gives: parts that the form names are not known yet. */
op *stage_new_op(const stage_call *call, context c);
/* A note that the next operation takes over (kernel_note): the settings of a stage without a command. */
op *stage_new_note(const stage_call *call);
/* NULL: absent, or the form has none of that meaning. */
const ast *stage_type_argument(const stage_call *call, stage_type type);
/* All type arguments into the operation's tensor, and what they leave open from the type that is expected. False: diagnosed. */
bool stage_take_types(const stage_call *call, op *o);

/* The operation's tensor as a value; it is refused when `ok` is false or its type is not the expected one. */
value stage_finish(const stage_call *call, op *o, bool ok);
/* Components of the set (1 << CHIP ..) must be known now. */
bool stage_require_parts(const stage_call *call, op *o, unsigned parts);

/* A tile of memory before it is an operation: the part that it cuts, and where it lies. */
typedef struct stage_tile {
    component part;
    const mapping *mapping, *guard;
    tile_window *window;
} stage_tile;
/* Positions start .. start + length - 1 of the index, in that part of a tensor or of a view of it. */
tile_status stage_cut_tile(const stage_call *call, const op *of, component part, const mapping *index, int64_t length, int64_t start,
                           stage_tile *out);
/* Index, LEN and Element of a call of `tile` that begins at `start`. False: diagnosed. */
bool stage_read_tile(const stage_call *call, component part, int64_t start, const mapping **index, int64_t *length, stage_tile *out);
/* May a tile of that length begin at this number of the launch? *out: where. False: diagnosed. */
bool stage_may_start(const stage_call *call, const run_number *n, int64_t length, run_position *out);
/* The tile as a view. */
op *stage_add_tile(const stage_call *call, op *of, const stage_tile *tile);
/* An operation that the stage's row does not name, on `input`, from the method's place. */
op *stage_add_step(const stage_call *call, op_kind kind, context c, op *input, const tensor *out);
/* The memory of a tensor may be written; else it is refused. */
bool stage_may_write(const stage_call *call, const op *of);

/* The argument of that meaning; NULL: the form has none. */
const value *stage_argument_of(const stage_call *call, stage_argument wanted);

/* One for each row: stage_build.c; of views and of what begins a stream: stage_view.c; of adapters: stage_adapter.c; of the Vector Engine:
 * stage_vector.c; of copies between chips, clusters and inside a slice: stage_move.c; of rows by index: stage_indirect.c. */
#define STAGE(name, ...) value stage_make_##name(const stage_call *call);
#include "target/engines.def"

/* A stage that differs from others in what one function of theirs is given. */
#define STAGE_IS(name, made) \
    value stage_make_##name(const stage_call *call) \
    { \
        return made; \
    }

#endif
