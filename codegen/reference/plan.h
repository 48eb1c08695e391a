/* A contraction seen as a batched matrix product.
 *
 * The one idea: every digit of a statement is a row digit (kept, only the row source varies with it), a
 * column digit (kept, only the column source varies), a depth digit (summed) or a batch digit (kept, both
 * vary, or its axis is also summed). With the digits of a group taken as one index, any contraction is
 * C[batch][row][column] = sum over depth of R[batch][row][depth] * S[batch][column][depth], and that is what
 * the generator tiles. No LLVM here, nor in what it consists of: the rules an einsum must keep (check.h), strides (walk.h), tile sizes
 * (tile.h), where operands and sums lie (place.h), statements that share a function (sharing.h) or a loop (twin.h). */
#ifndef VISA_CODEGEN_REFERENCE_PLAN_H
#define VISA_CODEGEN_REFERENCE_PLAN_H

#include "target/einsum.h"

/* Digits of size 1 are dropped and combinations stay below 2^62, so more cannot remain. */
enum { PLAN_MAX_DIGITS = 62 };
/* Of a packet that are summed. */
enum { PLAN_MAX_LANES = 256 };
/* Of a statement into which others were fused. */
enum { PLAN_SOURCES = 16, PLAN_SIDES = 1 + PLAN_SOURCES, PLAN_TWINS = 4 /* statements in one loop */ };

typedef enum plan_group { PLAN_BATCH, PLAN_ROW, PLAN_COLUMN, PLAN_DEPTH, PLAN_GROUP_COUNT } plan_group;

typedef struct plan_digits {
    einsum_digit items[PLAN_MAX_DIGITS]; /* outermost first */
    unsigned count;
    int64_t combinations; /* product of the sizes */
} plan_digits;

/* How a product is summed: which instruction, and so what a *unit* is, 32 bits that hold one or several neighbours in depth. */
typedef enum plan_product {
    PRODUCT_I32,        /* one i32; wraps */
    PRODUCT_I16_PAIRS,  /* two i16, multiplied and added in pairs */
    PRODUCT_I8_DOT,     /* four i8; the rows' are stored plus 128, without sign, and the sum is corrected */
    PRODUCT_I8_TILES,   /* four i8, in tile registers */
    PRODUCT_F32,        /* one f32; fused where the CPU can */
    PRODUCT_BF16_DOT,   /* two bf16; subnormal sums become zero */
    PRODUCT_BF16_TILES, /* the same in tile registers */
    PRODUCT_F64,        /* one f32, f64 sums: for bounds of long sums */
    PRODUCT_TREE,       /* one f32, multiplied and added one by one: a tree over the lanes of a packet, and over time */
} plan_product;

/* Register tile and cache blocks of the matrix product. A panel is what a tile reads of one source, all depth of it:
 * columns by unit, [units][columns]; rows likewise, or by line, [units / unit_block][rows][unit_block]. */
typedef struct plan_tile {
    plan_product product;
    int64_t per;           /* items of depth in a unit */
    int64_t rows, columns; /* of one register tile; columns = vectors * lanes */
    int64_t lanes, vectors;
    int64_t live_columns;                /* of them; fewer than there are: the last vector is read in part */
    int64_t stored_columns;              /* whose sums are stored; more than are live where C is scratch storage */
    int64_t unit_line;                   /* values between the units of a column panel */
    int64_t padded_rows, padded_columns; /* whole tiles */
    int64_t units, unit_block;           /* a step of the kernel takes unit_block units; units is whole steps */
    int64_t live_units;                  /* of them; those that are no whole step are multiplied first, one by one */
    bool rows_by_line;
    bool rows_in_place;    /* the source's own rows are read: its lines are as long as the panel's are apart; a copy of the last tile */
    int64_t row_line;      /* units between rows that are read by line */
    bool columns_in_place; /* the source's own elements are read, whole tiles of them, and widened */
    int64_t column_line;   /* elements between items of depth of columns that are read in place */
    bool columns_apart;    /* of two vectors that are read in place, the even columns are in one register and the odd ones in the other */
    bool narrows;          /* C holds the destination's own codes, to which a sum is rounded where it ends, and not sums */
    dtype code;            /* of these */
    bool columns_once;     /* they are read in place a few lines at a time, each once */
    bool columns_kept; /* the first row tile stores what it reads in place as units, a column tile of a block of depth; others read that */
    dtype column_type; /* of what is read in place */
    bool along_depth;  /* lanes are neighbours in depth, in both sources' own lines; row_line and column_line are elements between these */
    int64_t column_group; /* along depth: columns that are summed at once */
    int64_t depth_items;
    dtype row_type;
    int64_t lane_count;                          /* of PRODUCT_TREE: live lanes of a packet, side by side in depth; a step takes them all */
    unsigned char lane[PLAN_MAX_LANES];          /* where each stands */
    bool one_pass;                               /* a column panel stays in the nearest cache whole: no sum is taken up again */
    int64_t depth_block;                         /* units for which a column panel stays in the nearest cache */
    int64_t row_block_tiles, column_block_tiles; /* whose sums stay in the next cache */
} plan_tile;

/* Do the CPU's two-dimensional registers hold the tile? */
static inline bool plan_in_tile_registers(const plan_tile *t)
{
    return t->product == PRODUCT_I8_TILES || t->product == PRODUCT_BF16_TILES;
}

/* Units of the kernel's whole steps. */
static inline int64_t plan_looped_units(const plan_tile *t)
{
    return t->live_units / t->unit_block * t->unit_block;
}

/* Elements between columns that are read in place. */
static inline int64_t plan_column_step(const plan_tile *t)
{
    return t->along_depth ? t->column_line : 1;
}

/* Units between the row tiles of a product. */
static inline int64_t plan_row_tile_units(const plan_tile *t)
{
    return t->rows * (t->rows_in_place ? t->row_line : t->units);
}

/* What is divided among threads: for each batch, panels are packed and then tiles computed. */
typedef enum plan_range {
    PLAN_BATCHES,
    PLAN_ROW_PANELS,
    PLAN_COLUMN_PANELS,
    PLAN_ROW_TILES,
    PLAN_COLUMN_TILES,
    PLAN_RANGE_COUNT
} plan_range;

/* A part of a contraction that threads share. The generated code reads it. */
typedef struct plan_part {
    int64_t first[PLAN_RANGE_COUNT], end[PLAN_RANGE_COUNT];
} plan_part;

/* Byte offsets in the scratch storage: packed sources, and the sums of values, magnitudes and input errors, and of values in f64. */
typedef struct plan_scratch {
    int64_t row_pack, column_pack, value, magnitude, error, precise, end, plain_end;
} plan_scratch;

/* A value of an expression: a scalar operation on values of nodes before it. */
typedef struct plan_node {
    scalar_op op; /* a leaf of scalar.h, PLAN_SUM, or an operation */
    uint32_t argument;
    uint16_t operands[SCALAR_OPERANDS]; /* nodes */
} plan_node;
enum { PLAN_MAX_NODES = 512 };
#define PLAN_SUM ((scalar_op)0) /* the sum of the contraction that the expression was fused into */

typedef struct plan_statement {
    const einsum_statement *of;
    bool absorbed;               /* computed inside another one: nothing is left of it */
    struct plan_statement *twin; /* computed in the same loops (twin.h); NULL: none, or no other */
    bool fused;                  /* others were fused into it: `of` is `made`, not the einsum's */
    einsum_statement *made;
    einsum_digit *made_digits;
    einsum_shift *made_shifts;
    plan_node *nodes; /* of a statement with an expression; the last one is its value */
    unsigned node_count;
    int64_t vector_lanes; /* of a statement that is no contraction: so many elements along its vector digit at once; 1: one by one */
    einsum_digit vector;
    bool unbounded;                       /* no rule bounds how far another implementation may be from its result */
    int64_t slots;                        /* places of a step of time in the order of a reduction; 0: it needs none */
    plan_digits digits[PLAN_GROUP_COUNT]; /* a copy has batch digits only */
    uint32_t
        sources[PLAN_SOURCES]; /* tensor numbers by side, from EINSUM_A on; more than the statement's where others were fused into it */
    unsigned source_count;
    uint32_t row_source, column_source; /* tensor numbers */
    einsum_side row_side, column_side;
    int64_t base[PLAN_SIDES]; /* elements from the beginning of each operand, from the shifts */
    uint32_t code;            /* the first statement that differs from this one only in where its operands begin: they share a function */
    bool base_varies[PLAN_SIDES]; /* among them; of the first one */
    bool parted;                  /* one of them is computed in parts; of the first one */
    bool first;                   /* nothing was assigned to its destination before */
    bool integer;
    bool exact_products;        /* f32 holds every product of the operand types */
    bool wide_bound;            /* so many terms that the bound itself is summed in f64 */
    bool precise_bound;         /* the reference's own error is not bounded but computed (bound.h): its terms are summed in f64 as well */
    bool sums_in_place;         /* the destination's elements are the sums of a form that stores blocks, where they are whole tiles */
    int64_t block_line;         /* values between the rows of a block of sums */
    bool covers;                /* every element of its destination */
    bool completed;             /* what it leaves others write, before anybody reads it */
    bool settled;               /* nobody reads what it leaves, whoever writes it */
    int64_t order_places;       /* of the machine's order, where pieces say it: terms stand at some of them; 0: depth itself is in order */
    bool stores_blocks;         /* vectors of the result lie side by side and all exist: they are stored block by block */
    bool flushes;               /* its products may turn sums below the f32 normals into zero */
    plan_tile tile, bound_tile; /* of the values, and of what bounds are made from */
    plan_tile block_tile;       /* of the values, where blocks are stored */
    plan_tile rest_tile;        /* of the last columns, where they are not a whole tile; live_columns is 0: they have a whole one */
    plan_scratch scratch;
} plan_statement;

/* The tensor that is accessed on a side. */
static inline uint32_t plan_operand(const plan_statement *s, unsigned side)
{
    return side == EINSUM_DST ? s->of->dst : s->sources[side - EINSUM_A];
}

/* What the tile sizes and products depend on: vector registers and their width in 32-bit lanes, caches, instructions. */
typedef struct plan_machine {
    int64_t lanes, registers;
    int64_t l1_bytes, l2_bytes;
    bool masks; /* vectors of any element are loaded and stored in part, without touching the rest */
    bool fused, i16_pairs, i8_dot, bf16_dot, i8_tiles, bf16_tiles;
} plan_machine;

/* What its code is for. */
typedef struct plan_purpose {
    bool machine_order; /* floats are added as the machine adds them (target/einsum.h) */
    bool whole;         /* tensors have all places: others index them */
    bool runs_once;     /* code that takes longer to compile is not repaid */
} plan_purpose;

typedef struct reference_plan {
    const einsum *e; /* `packed`, once it is there */
    einsum *packed;  /* what was given, with units; and these */
    int64_t **units;
    plan_statement *statements;
    bool *assigned; /* by tensor: written by a statement */
    bool *used;     /* by tensor: read by a statement */
    bool *exact;    /* by tensor: another summation order gives the same bits; its bound is 0 */
    plan_machine machine;
    plan_purpose purpose;
    bool calls_functions; /* there are expressions, which may call functions of the C library */
    bool has_indices;
    int64_t
        outside; /* bytes into the scratch storage: how many elements had an index outside its axis (i64); only where there are indices */
    int64_t scratch_bytes; /* of the form that computes bounds too */
    int64_t plain_scratch_bytes;
} reference_plan;

/* NULL, or a malloc'd text: the rule of target/einsum.h that the einsum breaks. */
char *plan_build(const einsum *e, plan_machine machine, plan_purpose purpose, reference_plan *out);
void plan_free(reference_plan *p);

/* About how many clocks its products take; those that its bound needs in addition. */
double plan_clocks(const plan_statement *s);
double plan_bound_clocks(const reference_plan *p, const plan_statement *s);
/* The same as it was measured, for dividing them: tile registers wait for memory, mostly. */
double plan_shared_clocks(const plan_statement *s);
/* Clocks that repay waking a thread, which costs some ten thousand; and those that repay the help of one that is awake. */
#define PLAN_WORTH_A_THREAD 1e5
#define PLAN_WORTH_HELP 2e4
/* Are parts of it computed at once? Not of little work. */
bool plan_is_shared(const reference_plan *p, const plan_statement *s);
/* All of a contraction, in the tiles of the form that stores blocks or in those of the other one. */
plan_part plan_whole(const plan_statement *s, bool blocks);
/* The side with more lines, along which a form that does not store blocks is divided. */
plan_group plan_longer(const plan_statement *s);
/* Do the kept digits count every coordinate of the axis, each once, and is no operand shifted along it? */
bool plan_covers_axis(const einsum *e, const einsum_statement *s, uint32_t axis);
/* Does the statement assign every element of its destination? */
bool plan_covers_destination(const einsum *e, const einsum_statement *s);
/* A port that is read or written: a parameter of the C function. */
bool plan_is_parameter(const reference_plan *p, uint32_t tensor);

#endif
