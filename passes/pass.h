/* What every pass gets, and how it refuses.
 *
 * The one idea: a pass reads the tensors of one kind of operation, writes that operation's configuration, and
 * when the operation is not legal says so once and marks it bad; whatever uses a bad operation is bad without
 * another word, so that no message is a consequence of another. */
#ifndef VISA_PASSES_PASS_H
#define VISA_PASSES_PASS_H

#include "ir/kernel.h"
#include "ir/sequence/sequence.h"
#include "support/integer.h"

typedef struct pass_context {
    mapping_context *mappings;
    arena *arena;
    const target *target;
    diag_list *diags;
    bool places_all;  /* addresses of the source are not looked at */
    bool keeps_order; /* --order=source: where memory does not fit in the order of the text, no other is looked for */
} pass_context;

typedef struct pass {
    const char *name, *summary;
    void (*run)(pass_context *p, kernel *k);
} pass;

/* One for each PASS row of an engine (target/engines.def): passes/engine/. */
#define PASS(name, summary) void pass_##name(pass_context *p, kernel *k);
#include "target/engines.def"

/* The passes in order, ended by a row without a name (passes/pipeline.c). */
extern const pass pipeline[];

/* Runs them all over a kernel. `after` (may be NULL) is called after each pass. */
void pipeline_run(pass_context *p, kernel *k, void (*after)(void *user, const pass *done, const kernel *k), void *user);

/* Of a good kernel those that read addresses, after a memory has moved. Nothing is reported; false: where it lies now the kernel is
 * refused. */
bool pipeline_run_again(pass_context *p, kernel *k);

/* Calls `visit` for every operation of that kind that is still good. */
void pass_each(pass_context *p, kernel *k, op_kind kind, void (*visit)(pass_context *, kernel *, op *));
/* The same for all kinds, in program order. */
void pass_all(pass_context *p, kernel *k, void (*visit)(pass_context *, kernel *, op *));

/* Refuses an operation: the range is that of the written mapping of `part` where there is one, else the method's
 * name. `part` may be MAPPING_COMPONENTS for "no component". Never NULL. */
diag *pass_refuse(pass_context *p, kernel *k, op *o, component part, diag_id id, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* The same at a range of its own; SRC_NOWHERE: the method's name. */
diag *pass_refuse_at(pass_context *p, kernel *k, op *o, src_range range, diag_id id, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* The same range rule, for warnings. */
src_range op_part_range(const op *o, component part);
/* The help of `d` as a change of the text: the mapping where the operation says its `part`. None where that is inferred, or stands in an
 * alias that others use, or in text with parameters; or where the mapping has names that may not be known there. */
void pass_replace(pass_context *p, const op *o, diag *d, component part, const mapping *m);
void pass_replace_at(pass_context *p, const op *o, diag *d, src_range range, const mapping *m);
/* The help "WORDS m![..]" of a part, and the same as a change of the text. */
void pass_help_part(pass_context *p, const op *o, diag *d, component part, const mapping *m, const char *words);
typedef struct written_part {
    component part;
    const char *name;
    const mapping *mapping;
} written_part;
/* Of two parts: "WORDS NAME m![..], NAME m![..]"; of Time and Packet of a stage that gives OutTime and OutPacket. */
void pass_help_parts(pass_context *p, const op *o, diag *d, const char *words, written_part first, written_part second);
void pass_help_out(pass_context *p, const op *o, diag *d, const char *words, const mapping *time, const mapping *packet);

/* "m![K # 32]" */
const char *pass_text(pass_context *p, const mapping *m);
/* "1 byte", "2.5 bytes": of a number of half bytes. */
const char *pass_bytes(pass_context *p, int64_t bits);
/* Of the memory, for a message: its variable, or what made it. */
const char *pass_name(const op *o);

/* Elements of `bytes` bytes of a type. */
int64_t elements_of(dtype t, int64_t bytes);

/* Splits or pairs where the sizes are known to allow it; NULL when they do not, or a mapping is NULL. */
const mapping *pass_outer(pass_context *p, const mapping *m, int64_t n); /* m / n */
const mapping *pass_inner(pass_context *p, const mapping *m, int64_t n); /* m % n */
/* m / low % size */
const mapping *pass_digit(pass_context *p, const mapping *m, int64_t low, int64_t size);
const mapping *pass_pair(pass_context *p, const mapping *outer, const mapping *inner);
const mapping *pass_pad(pass_context *p, const mapping *m, int64_t n);

/* Are these pieces of one group (FACTOR_COMPOSITE of one inner mapping), each without its own padding and taken by descending
 * weight, the whole group and padding after it? Sorts them. */
bool pass_is_group(pass_context *p, const factor **pieces, size_t count);

/* Chip, Cluster, Slice and Row of a tensor: what names axes besides a unit's own share. */
const mapping *pass_beside(pass_context *p, const tensor *t);
/* The axis of a digit of `a` that counts through a digit of `b`; NULL: they have none in common. */
const axis *pass_shared_digit(const mapping *a, const mapping *b);

/* Adds the failed derivation's reason, the entries so far and what to do to a diagnostic; `remedy` (passes/remedy.h): a walk that is
 * accepted, NULL: none is known. */
void sequence_explain(pass_context *p, diag *d, const sequence *seq, const mapping *buffer, const mapping *time, const mapping *packet,
                      const char *remedy);
/* The diagnostic of a failure. */
diag_id sequence_id(const sequence *seq);
/* One sentence for the failure: "the buffer stores no digit A / 4". */
const char *sequence_reason(pass_context *p, const sequence *seq);
/* "1, 2, 4, or 8": how many Rows the machine's TRF may be read in. */
const char *pass_row_counts(const pass_context *p);
/* What to do, in words. */
const char *sequence_advice(pass_context *p, const sequence *seq);
/* The loops, as "term size : stride" in a line. */
const char *sequence_table(pass_context *p, const sequence *seq);
/* Copies the parts of a fitted sequence into a table; strides are multiplied by `scale`. */
void sequencer_config_fill(sequencer_config *config, const sequence *seq, int64_t scale);
sequence_limits sequencer_limits(const target *t, int64_t scale);

#endif
