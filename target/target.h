/* The machine as data.
 *
 * The one idea: a hardware number exists once, as a row of limits.def or of its engine (engines.def), and is read by whoever needs it:
 * verifier, encoder, decoder, machine, documentation. Another machine is another filled struct. */
#ifndef VISA_TARGET_TARGET_H
#define VISA_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dtype {
#define DTYPE(symbol, ...) symbol,
#include "target/dtype.def"
#undef DTYPE
    DTYPE_COUNT
} dtype;

typedef enum dtype_kind { DTYPE_KIND_INT, DTYPE_KIND_FLOAT } dtype_kind;

typedef struct dtype_row {
    const char *name;
    unsigned bits;      /* of one element in memory */
    int trf_reg_type;   /* -1: not storable in the TRF */
    unsigned trf_slots; /* 5-bit slots per element in a TRF row */
    dtype_kind kind;
    dtype accumulates_in;
    unsigned max_tree_depth;
    unsigned transpose_rows; /* sum of the row counts in which a flit can be transposed */
    dtype staged;            /* the type of which it holds differences, in streams only; else itself */
} dtype_row;

const dtype_row *dtype_row_of(dtype t);
/* False when no type has that name. */
bool dtype_by_name(const char *name, dtype *out);
/* May elements of this type be multiplied by `contract` ("Reducer", element types)? */
bool dtype_is_operand(dtype t);
/* Does it hold differences from a zero point, which no memory holds (i5, i9)? */
bool dtype_is_staging(dtype t);
/* Bytes of `elements` elements, or -1 when they do not fill whole bytes or overflow. */
int64_t dtype_bytes(dtype t, int64_t elements);

/* The engines in datapath order (engines.def). */
typedef enum engine_id {
#define ENGINE(symbol, ...) ENGINE_ID_##symbol,
#include "target/engines.def"
    ENGINE_ID_COUNT
} engine_id;

/* A pair of types that an engine converts. */
typedef struct dtype_conversion {
    engine_id engine;
    dtype from, to;
} dtype_conversion;
/* All engines' in the order of their rows; NULL past the end. */
const dtype_conversion *target_conversion_at(size_t index);
/* The same of what tables of the fetch path make of codes; their engine is FETCH. */
const dtype_conversion *target_lookup_at(size_t index);
bool target_looks_up(dtype from, dtype to);
bool target_converts(engine_id engine, dtype from, dtype to);

/* The ways for packets through the Switch Engine ("Switch Engine"); the values are the binary's codes. */
typedef enum topology {
#define TOPOLOGY(symbol, code, ...) TOPOLOGY_##symbol = (code),
#include "target/engines.def"
} topology;
const char *topology_name(int64_t code); /* "Broadcast01" */
/* TOPOLOGY rows: SwitchConfig::name { fields }. */
enum { TOPOLOGY_FIELDS = 3 };
typedef struct topology_row {
    topology code;
    const char *name, *fields[TOPOLOGY_FIELDS + 1]; /* ended by NULL */
} topology_row;
const topology_row *topology_row_at(size_t index); /* NULL past the end */

/* TRF address modes ("TRF Sequencer", TRF Address Modes); the values are the binary's codes. */
typedef enum trf_address { TRF_FULL = 0, TRF_FIRST_HALF = 1, TRF_SECOND_HALF = 2 } trf_address;
const char *trf_address_name(trf_address mode); /* "Full", "FirstHalf", "SecondHalf" */

/* A loop of time in the accumulator's table, as the compiler derives it and the machine runs it. */
typedef struct accumulate_loop {
    int64_t size;        /* iterations */
    int64_t slot_stride; /* slots from one iteration to the next */
    bool reduced;        /* summed over; else kept */
} accumulate_loop;

/* Contexts of the command stream ("Contexts": main, sub, DMA). */
typedef enum context { CONTEXT_MAIN = 0, CONTEXT_SUB = 1, CONTEXT_DMA = 2 } context;
enum { IN_MAIN = 1 << CONTEXT_MAIN, IN_SUB = 1 << CONTEXT_SUB, IN_DMA = 1 << CONTEXT_DMA, IN_ANY = IN_MAIN | IN_SUB | IN_DMA };
const char *context_name(context c); /* "main", "sub", "dma" */

typedef struct target {
    const char *name;
#define LIMIT(field, value, unit, source) int64_t field;
#define TIMING LIMIT
#include "target/limits.def"

#include "target/engines.def"
} target;

/* The machine with that name ("rngd"), or NULL. The default is target_by_name("rngd"). */
const target *target_by_name(const char *name);
/* The name of the i-th machine, or NULL. */
const char *target_name(size_t i);

/* What published schedules charge (static_cost.def), for the preset that reproduces them. */
typedef struct static_costs {
#define STATIC_COST(field, value, unit, source) int64_t field;
#include "target/static_cost.def"
#undef STATIC_COST
} static_costs;
const static_costs *target_static_costs(void);

typedef enum static_point_kind {
    STATIC_POINT_LOAD,
    STATIC_POINT_COPIES_INSIDE,
    STATIC_POINT_COPIES_OUTSIDE,
    STATIC_POINT_STORE
} static_point_kind;
/* A published transfer of whole pieces (static_point.def). */
typedef struct static_point {
    static_point_kind kind;
    int64_t piece_bytes, pieces, copies, cycles;
} static_point;
/* Ascending in piece_bytes within a kind; NULL past the end. */
const static_point *target_static_point_at(size_t index);

/* Bytes of TRF storage that an address mode gives. */
int64_t target_trf_capacity_bytes(const target *t, trf_address mode);

#endif
