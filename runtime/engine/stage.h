/* What an engine is to a chain.
 *
 * The one idea: a stage reads its own commands, says what leaves it when this arrives, and in every slice takes what the stage before it
 * pushes and pushes on what it made. Whatever asks about a chain (its cycles, its traffic, the proof) asks its stages one after the other,
 * so that an engine is known in its own file and by its CHAIN_STAGE row only. */
#ifndef VISA_RUNTIME_ENGINE_STAGE_H
#define VISA_RUNTIME_ENGINE_STAGE_H

#include "runtime/engine/stream.h"
#include "runtime/machine/machine_state.h"

struct chain;
struct duration;
struct field_stage;
struct proof_range;
struct schedule_item;

typedef struct stage_type stage_type;

/* A stage of a planned chain. */
typedef struct stage {
    const stage_type *type;
    command_op op; /* the command that it begins with */
    const struct chain *chain;
    const command *commands; /* its own; NULL: no command says that flits are taken as they come (collect) */
    size_t command_count;
    stream_shape in, out; /* `in` of a source and `out` of a sink are empty */
    dtype stored;         /* of a sink: the element type of what it writes */
    void *plan;           /* what the engine made of its commands; type->plan_bytes */
    int64_t out_bytes;    /* from one flit or beat that leaves to the next */
} stage;

/* A stage at work in one slice; a worker uses the same buffers slice after slice. */
typedef struct stage_run {
    const stage *stage;
    struct stage_run *before, *next; /* NULL: the source, the sink */
    void *state;                     /* type->run_bytes, zero at first */
    int64_t unit_index;
    struct exchange *exchange; /* of the chain's cluster, where packets go to other slices; else NULL */
    struct exchange *record;   /* where a stage keeps what is pushed to it, for other slices; else NULL */
    fault *fault;
} stage_run;

/* A function that is NULL does nothing, and succeeds. */
struct stage_type {
    bool packs; /* may leave no gaps between what it narrowed, when the sink asks for that (stage.out_bytes) */
    size_t plan_bytes, run_bytes;
    /* Takes the commands after the first one that are its own (chain_take), checks them against `in` and fills `out`. */
    bool (*plan)(stage *s, struct chain *c, fault *f);
    bool (*begin)(const stage *s, machine *m, fault *f); /* once, before any slice runs: what memory says of the plan */
    bool (*run_new)(stage_run *r);
    void (*run_free)(stage_run *r);
    bool (*open)(stage_run *r);
    /* Items of the form of `in`, one after the other: bytes of packets, flits, beats, stream_pair or stream_partial. */
    bool (*push)(stage_run *r, const void *items, int64_t count);
    bool (*finish)(stage_run *r);                                    /* pushes what it still holds */
    void (*read)(stage_run *r, unsigned char *to, int64_t elements); /* of what gives packets: the next ones, which fill whole bytes */
    /* The same without a copy. Can all be read where it lies, in runs of so many elements? Then where the next `count` runs lie, which are
     * read by that. True: one after the other, and only to[0] is set. */
    bool (*has_places)(const stage_run *r, int64_t elements);
    bool (*places)(stage_run *r, int64_t elements, const unsigned char **to, int64_t count);
    bool (*places_stand)(const stage_run *r); /* is what the slice is given not written before the last one has run? Others may be given
                                                 the same; NULL: no */
    bool (*drive)(stage_run *r);              /* sources, and collect: pushes the whole stream of the slice */
    void (*advance)(const stage *s, const int64_t *units, size_t count); /* the slices have run: moves cursors of ports */
    /* Questions, asked in the order of the chain. */
    void (*cycles)(const stage *s, struct duration *d);
    void (*traffic)(const stage *s, int64_t units, struct schedule_item *item);
    unsigned (*ranges)(const stage *s, struct proof_range *out); /* of memory that every slice has; at most one */
    void (*proof_reads)(const stage *s, int64_t unit_index);
    void (*proof_writes)(const stage *s, int64_t unit_index);
    const struct field_stage *field; /* the same over a field (runtime/field/NAME.c); every stage has it */
};

static inline bool stage_push(stage_run *r, const void *items, int64_t count)
{
    return r->stage->type->push(r, items, count);
}

/* The engines' stages, each in its own file, one for each CHAIN_STAGE row. */
#define CHAIN_STAGE(name, ...) \
    extern const stage_type stage_##name; \
    extern const struct field_stage field_##name;
#include "target/engines.def"

#endif
