/* Kernels as lists of operations on mapped tensors.
 *
 * The one idea: an operation is a stage of the machine with the tensor that leaves it; the tensor's mappings
 * are all that a pass needs to derive the stage's configuration. Sema builds the operations in program order
 * with their declared tensors; each pass fills in one configuration struct and nothing else; the encoder
 * reads them. An operation with `bad` set has been diagnosed and is skipped, and so is whatever uses it. */
#ifndef VISA_IR_KERNEL_H
#define VISA_IR_KERNEL_H

#include "ir/dataflow/dataflow.h"
#include "ir/einsum.h"
#include "ir/mapping/mapping.h"
#include "ir/mapping/tile.h"
#include "support/diag.h"
#include "target/dialect.h"
#include "target/target.h"
#include "target/vector.h"

typedef enum tensor_kind {
#define TENSOR(symbol, ...) symbol,
#include "ir/tensor.def"
    TENSOR_KIND_COUNT
} tensor_kind;

typedef enum component {
#define COMPONENT(symbol, ...) symbol,
#include "ir/tensor.def"
    MAPPING_COMPONENTS
} component;

const char *tensor_kind_name(tensor_kind kind); /* "FetchTensor" */
const char *tensor_kind_word(tensor_kind kind); /* "@FetchTensor": for a message, as its reader calls it (support/diag.h) */
/* In the order of the type's parameters, ended by MAPPING_COMPONENTS. */
const component *tensor_kind_components(tensor_kind kind);
bool tensor_kind_has(tensor_kind kind, component c);
const char *component_name(component c);      /* "chip": as in JSON */
const char *component_parameter(component c); /* "Chip": as in the type's parameter list */
const char *component_word(component c);      /* "@Row": for a message */
bool tensor_kind_is_stream(tensor_kind kind);

enum { ADDRESS_NONE = -1 }; /* not yet placed */

typedef struct tensor {
    tensor_kind kind;
    dtype dtype;
    const mapping *part[MAPPING_COMPONENTS]; /* NULL: the kind has no such component, or not yet inferred */
    trf_address trf_address;                 /* TENSOR_TRF */
    bool widened;                            /* TENSOR_TRF: 4-bit elements that stand in 8 bits, for 8-bit streams */
    int64_t address; /* bytes; TENSOR_HBM, TENSOR_DM, TENSOR_VRF, TENSOR_SPM; -1: none is given, passes/allocate.c chooses it */
} tensor;

/* The operations: rows of their engines (target/engines.def).
 * IR_PORT_IN: a parameter of the kernel. IR_TO_DM, IR_TO_HBM, IR_TO_SPM: copies. IR_FETCH: DM to stream; begin and view are folded into it.
 * IR_ALIGN: input is the stream, weights the TRF tensor. IR_COMMIT: stream to DM. IR_PORT_OUT: the kernel's result; input is what is
 * returned. IR_ALLOC: memory that is written later through views: from_addr, `&mut` parameters. IR_VIEW: a tile of the input's memory.
 * IR_RESHAPE: the input's memory under other axes. */
typedef enum op_kind {
#define OPERATION(symbol, ...) IR_##symbol,
#define PSEUDO(symbol, ...) IR_##symbol,
#include "target/engines.def"
    IR_OP_COUNT
} op_kind;

enum {
    IS_PORT = 1 << 0,
    BEGINS_CHAIN = 1 << 1,
    ENDS_CHAIN = 1 << 2,
    KEEPS_UNITS = 1 << 3,
    KEEPS_DTYPE = 1 << 4,
    ACCUMULATES = 1 << 5,
    KEEPS_ELEMENTS = 1 << 6,
    TAKES_STAGING = 1 << 7,
    ONLY_MOVES = 1 << 8
};

typedef struct op_row {
    const char *name;    /* "to_dm", "fetch": as in the language */
    const char *word;    /* op_kind_word */
    unsigned properties; /* IS_PORT | .. */
    unsigned contexts;   /* IN_MAIN | .., in which its command may stand; 0: it has no command */
} op_row;
const op_row *op_row_of(op_kind kind);
const char *op_kind_name(op_kind kind);
const char *op_kind_word(op_kind kind); /* "@align": for a message */
bool op_kind_is(op_kind kind, unsigned property);
/* A stage of the machine: what has a command and is no port. */
bool op_kind_is_stage(op_kind kind);

/* What an operation has to do with another one (target/engines.def): it reads its stream or its memory, or writes into its memory. */
typedef enum operand_role {
#define OPERAND(name, symbol, access, summary) OPERAND_##symbol,
#include "target/engines.def"
    OPERAND_ROLE_COUNT
} operand_role;
typedef enum operand_access { READS, WRITES } operand_access;

typedef struct op_operand {
    operand_role role;
    struct op *of; /* what made the stream or the memory, or a view of it */
} op_operand;
operand_access operand_access_of(operand_role role);

typedef enum accumulation_kind { INTERLEAVED = 0, SEQUENTIAL = 1 } accumulation_kind;

/* ---- configurations: what the passes derive ---- */

typedef struct sequencer_entry {
    const mapping *term; /* for readers */
    int64_t size;        /* iterations */
    int64_t stride;      /* in the sequencer's unit */
    int64_t stride2;     /* DMA: the destination's stride, bytes */
    int64_t stride3;     /* indirect DMA: that of the list, bytes */
} sequencer_entry;

enum { SEQUENCER_MAX_ENTRIES = 8 };

/* What a sequencer walks (target/engines.def). */
typedef enum walk_kind {
#define WALK(symbol, ...) WALK_##symbol,
#include "target/engines.def"
} walk_kind;
typedef struct walk_row {
    const char *memory, *access, *unit; /* "dm" "trf", NULL: a copy; "read" "write" "copy"; "element" "byte" */
} walk_row;
const walk_row *walk_row_of(walk_kind kind);

/* One term of a mask: (counter / div % mod) * weight. The counters are those of docs/isa.md, mask. */
typedef struct mask_term {
    int counter;
    int64_t div, mod, weight;
} mask_term;
enum { MASK_MAX_TERMS = 15 };
typedef struct lane_mask {
    int64_t limit;
    uint32_t count;
    mask_term terms[MASK_MAX_TERMS];
    struct lane_mask *next;
} lane_mask;

enum { ACCUMULATE_MAX_LOOPS = 15 };

/* A part of the Valid Count Generator (passes/engine/vector_count.h): the index of a flit is the sum of counter * stride over its loops. */
enum { VALID_COUNT_MAX_LOOPS = 8 };
typedef struct valid_loop {
    int64_t size, stride; /* iterations; coordinates of the axis */
} valid_loop;
typedef struct valid_count {
    valid_count_kind kind;
    int64_t span;              /* lanes; of a clipper */
    int64_t slice_mask, slice; /* of a filter */
    int64_t limit;             /* coordinates */
    uint32_t count;
    valid_loop loops[VALID_COUNT_MAX_LOOPS]; /* outermost first */
    struct valid_count *next;
} valid_count;

/* A digit of the number of a slice that sends: the receiving slice's own number / div % size, or where it moves all of its values; times
 * weight. */
typedef struct route_digit {
    int64_t div, size, weight; /* slices */
    bool moved;
} route_digit;
enum { ROUTE_MAX_DIGITS = 15 };

/* The arguments of one fetch_.._lift. */
typedef struct lift_call {
    component level;             /* CHIP, CLUSTER, SLICE */
    const mapping *in, *in_time; /* before it */
    const mapping *out, *out_time;
    src_range range, time_range; /* of its name, of out_time */
} lift_call;
/* The unit's number / div % 2, times stride_bytes, is added to the base. */
typedef struct lift_digit {
    component level;
    const mapping *term; /* for readers */
    int64_t div, stride_bytes;
} lift_digit;
/* What a view of DM that begins at a number of the launch adds to the view that it is a tile of. */
typedef struct run_start {
    const struct run_start *outer; /* of that view; NULL: nothing */
    const struct op *port;         /* of the number, in HBM */
    unsigned bits;                 /* of it that count, the lowest, without a sign: 32 or 64 */
    const mapping *index;
    int64_t positions, stride; /* that exist; elements from one to the next */
} run_start;
/* The number at an address of HBM, times stride_bytes, is added to the base. */
typedef struct start_number {
    const run_start *of;
    int64_t base, stride_bytes;
} start_number;
enum { LIFT_LEVELS = 3, LIFT_MAX_DIGITS = 15, START_MAX_NUMBERS = 4 };
/* A digit of the Time that arrives at a reduction over slices: a loop of what leaves, or, where `place` is not 0, one whose value is the
 * receiving slice's number in its group / place % size. */
typedef struct slice_loop {
    int64_t size, stride; /* iterations; time steps of what arrives */
    int64_t place;        /* slices */
} slice_loop;

/* The configurations, one struct for each CONFIG row. */
#define CONFIG(name, ...) typedef struct name##_config name##_config;
#define CONFIG_PART(name, ...) typedef struct name##_config name##_config;
#include "target/engines.def"

struct no_config {
    char none;
#define CONFIG(name, ...) \
    } \
    ; \
    struct name##_config {
#define CONFIG_PART CONFIG
#define CONFIG_NUMBER(config, field, ...) int64_t field;
#define CONFIG_CHOICE(config, field, ...) int64_t field;
#define CONFIG_FLAG(config, field, ...) bool field;
#define CONFIG_TERM(config, field, ...) const mapping *field;
#define CONFIG_DTYPE(config, field, ...) dtype field;
#define CONFIG_WORD(config, field, ...) int64_t field;
#define CONFIG_MEMBER(config, declaration) declaration;
#include "target/engines.def"
};

/* One digit of a memory that gets another name: positions as before, coordinates of `to` instead of `from`. */
typedef struct reshape_digit {
    const axis *from, *to;
    int64_t from_weight, to_weight, size;
} reshape_digit;
typedef struct reshape_config {
    const struct op *from; /* what made the memory under its first names */
    bool equal;            /* the mappings are: it has no digits */
    bool poison;           /* padding gets a name: what of it is live is not known (passes/coverage.c) */
    bool partial;          /* an axis is longer under one of its names */
    uint32_t count, poison_count;
    reshape_digit digits[EINSUM_MAX_DIGITS];
    const axis *poisons[EINSUM_MAX_DIGITS]; /* which axes name padding, each once */
    uint32_t copied_count, spread_count;
    const axis *copied[EINSUM_MAX_DIGITS];   /* along which all positions are declared equal: passes/mathematics checks it */
    reshape_digit spread[EINSUM_MAX_DIGITS]; /* digits that name a broadcast: only `to` */
} reshape_config;

/* Work that runs only where a number of the launch is in a range: number - first, modulo 2^bits, is at most span. */
typedef struct run_guard {
    const struct run_guard *outer; /* has to hold as well; NULL: nothing else */
    const struct op *port;         /* of the number, in HBM */
    unsigned bits;                 /* of it that count, the lowest: 8, 32 or 64 */
    uint64_t first, span;
} run_guard;

typedef struct op op;
struct op {
    op_kind kind;
    context context;
    uint32_t index;                                 /* place in the kernel */
    src_range range;                                /* the method's name, or the parameter */
    src_range parts[MAPPING_COMPONENTS];            /* where a declared mapping was written; SRC_NOWHERE: inferred */
    bool parts_elsewhere;                           /* in the declaration of an alias, which many operations may use */
    bool parts_generic;                             /* in text with parameters, which means something else with each use */
    const mapping_names *named[MAPPING_COMPONENTS]; /* IR_PORT_IN, IR_ALLOC: as kernel_port's */
    const char *name;                               /* the variable that holds the result, or the port's name; "" */
    op_operand *operands;                           /* what is read and written besides what it makes itself; several may have one role */
    size_t operand_count, operand_capacity;
    const axis *interleave;  /* IR_FETCH: its two positions are `input` and `second` */
    tile_window *window;     /* IR_VIEW: from the memory's tensor, all tiles together */
    const mapping *guard;    /* IR_VIEW: Element with PAD_BOTTOM outside the window */
    const run_start *starts; /* IR_VIEW: numbers of the launch that say where it begins; the window is that of the first positions */
    tensor out;
    unsigned releases;   /* of the language, which write it so (target/dialect.h) */
    src_range converted; /* IR_FETCH: where its element type was written; SRC_NOWHERE: with the rest */
    const op *trim;      /* IR_COMMIT: commit_trim in front of it, whose Packet is what is kept; NULL: what Element needs is */
    const op *kept_time; /* IR_ACCUMULATE: contract_time in front of it, whose Time is kept; NULL: OutTime has it */
    bool parameter;      /* IR_ALLOC: a `&mut` parameter */
    bool open;           /* IR_ALLOC: not all of its type is known; the rest follows from its first use */
    bool open_dtype;     /* the element type is a part of that */
    accumulation_kind accumulation;
    bool unplaced;       /* it makes memory and the source does not say where: `allocate` decides */
    int64_t stash_bytes; /* IR_VECTOR_STASH: so many at the end of each slice's VRF are taken while its pass runs */
    const op *after; /* `#[after(name)]`: the last operation of a piece of work that is complete before the one that this one ends begins */
    const op *gone;  /* memory that a reshape took over; NULL: it may be used */
    bool changes;    /* memory whose elements may differ between two reads: written twice, or read before they are written */
    bool reads_zeros; /* memory that begins as zeros in the mathematics alone: what is read of it is written before in any case */
    uint32_t port;    /* IR_PORT_IN, IR_PORT_OUT */
    bool bad;
    const run_guard *runs_if; /* of the last operation of a piece of work: that of all of it; NULL: always */
    bool repeated;            /* its text was read before: a loop's later iteration, a function's later call */

    /* `sequencer` of fetch and commit, `dma` of to_dm and to_hbm, .. */
#define CONFIG(name, ...) name##_config *name;
#include "target/engines.def"
    reshape_config *reshape;
};

typedef struct kernel_port {
    const char *name;
    bool is_output;
    tensor tensor;
    const mapping_names *named[MAPPING_COMPONENTS]; /* axes of size 1 are a port's too; NULL: the type names none */
    src_range range;
} kernel_port;

typedef struct kernel {
    const char *name;
    src_range range;          /* the function's name */
    dialect dialect;          /* of its file: whose rules hold, where releases differ */
    bool is_device;           /* #[device]: whole-machine sizes are checked */
    int64_t chips;            /* 0: refused */
    int64_t clusters, slices; /* of each chip and each cluster (target/topology.def); 0: those of the machine; -1: refused */
    op **ops;
    size_t op_count, op_capacity;
    const op **issue; /* the last operation of each piece of work (ir/work.h), in the order of issue; NULL: the order of `ops` */
    size_t issue_count;
    bool moved_for_room;         /* in the order of the text memory does not fit (passes/room.h) */
    int64_t text_cycles, cycles; /* by the timing model: in the order of the text, or the one found for room, and of `issue` */
    kernel_port *ports;
    size_t port_count, port_capacity;
    kernel_einsum *einsum;
    bool bad;                 /* any diagnostic of severity error; an operation is bad only where its kernel is */
    bool unfinished;          /* it unrolls to too much: bad, and its operations are only the first of all */
    const run_guard *runs_if; /* while it is built: of what is added now */
    bool repeating;           /* while it is built: what is added now is `repeated` */
} kernel;

typedef struct module {
    kernel **kernels;
    size_t count, capacity;
    dataflow_model **dataflows; /* items, evaluated, in source order; those with errors are not there */
    size_t dataflow_count, dataflow_capacity;
    const char **left_out; /* names of kernels and dataflow items, where one was asked for that is not there */
    size_t left_out_count, left_out_capacity;
} module;

/* Is it a fetch that lifts digits of Time onto this level of units? */
bool op_lifts(const op *o, component level);
/* " + Slice / 1 % 2 * 32 bytes (H)", and so on. */
const char *lift_text(const lift_config *c, arena *a);
/* " + `G` * 64 bytes (%2, of 4)", and so on. */
const char *start_text(const start_config *c, arena *a);
/* The arguments of a routing, after its name: ", slice1 = 2, slice0 = 4"; of a custom one where packets come from. */
const char *route_text(const route_config *c, arena *a);
/* "table to f8e4m3", "zero point 3" */
const char *adapter_text(const adapter_config *c, arena *a);
/* Leaves the name and what is known without operations and ports, whose memory goes. */
void kernel_forget(kernel *k);
/* An operation that is none of the machine's: the next one takes over its settings (op.trim, op.kept_time). It is not in the kernel. */
op *kernel_note(const kernel *k, arena *a, op_kind kind, context c, src_range range);
op *kernel_add(kernel *k, arena *a, op_kind kind, context c, src_range range);
void op_add_operand(op *o, arena *a, operand_role role, op *of);
/* Its input is a note: the input is what that has, and the note is given. */
op *op_take_over(op *o);
/* The first of this role; NULL: it has none. */
static inline op *op_operand_of(const op *o, operand_role role)
{
    for (size_t i = 0; i < o->operand_count; i++)
        if (o->operands[i].role == role)
            return o->operands[i].of;
    return NULL;
}
/* The same by name: op_input(o), op_weights(o), .. */
#define OPERAND(name, symbol, access, summary) \
    static inline op *op_##name(const op *o) \
    { \
        return op_operand_of(o, OPERAND_##symbol); \
    }
#include "target/engines.def"
/* Is something that it reads or writes bad? */
bool op_uses_bad(const op *o);
/* The memory that it makes has no address in the source. */
void op_leave_unplaced(op *o);
/* The operation whose memory `o` makes, is a view of, or has under other names. */
const op *op_memory(const op *o);
/* The operation that made the memory which `o` is, or is a view of. */
const op *op_root(const op *o);
/* The accumulation after a contraction; NULL: what leaves the Reducer goes to a port. */
const op *op_accumulation(const kernel *k, const op *contract);
/* The whole mapping of a tensor: the pair of its components, outermost first. MAPPING_TOO_LARGE when it overflows. */
mapping_status tensor_whole(mapping_context *c, const tensor *t, const mapping **out);
/* The axis after the others unless it is one of them; returns the new count. */
uint32_t axis_list_add(const axis **out, uint32_t count, uint32_t capacity, const axis *a);
/* Its axes in the order in which its components first name them: the order of its logical form. Fills at most `capacity`. */
uint32_t tensor_axes(const tensor *t, const axis **out, uint32_t capacity);
/* Those of a port, with the axes of size 1 that its type names. */
uint32_t port_axes(const kernel_port *p, arena *a, const axis **out, uint32_t capacity);
/* TENSOR_TRF: the reg_types code ("TRF Memory Layout"); -1: it cannot be stored there. */
int tensor_reg_type(const tensor *t);
/* Positions of one unit (DM: one slice; HBM: one chip) in bytes; -1: not whole bytes or too large. */
int64_t tensor_unit_bytes(const tensor *t);
/* "bf16 DmTensor [chip 1, slice 1 # 256, element M, K]" */
const char *tensor_text(const tensor *t, arena *a);

#endif
