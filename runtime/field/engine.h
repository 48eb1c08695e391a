/* The machine over a field: what its parts know of each other.
 *
 * The one idea: commands, addresses, counters and masks are those that the machine of bytes decodes
 * (chain_plan and what the stages planned), and every value is another: an element of a memory or of a lane
 * is a value of the field. A stage's twin says the value of any element that leaves it, by number, and asks
 * the stage before it for those that it needs; a sink's says where its elements go. So one and the same
 * description runs forwards, all of it, and backwards, from one cell of an output to what it is made of
 * (trace.c). */
#ifndef VISA_RUNTIME_FIELD_ENGINE_H
#define VISA_RUNTIME_FIELD_ENGINE_H

#include <pthread.h>

#include "runtime/field/inputs.h"
#include "runtime/field/memory.h"
#include "runtime/field/spans.h"
#include "runtime/machine/chain.h"

typedef enum field_space { FIELD_HBM, FIELD_DM, FIELD_TRF, FIELD_PORT, FIELD_VRF, FIELD_SPACES } field_space;

/* HBM of a chip, DM, TRF and VRF of a slice, the buffer of a stream port. */
typedef struct field_place {
    field_space space;
    int64_t number, bit;
} field_place;

/* A sink writes somewhere in these bits of the memories of its slices. */
typedef struct field_range {
    field_space space;
    int64_t port; /* FIELD_PORT: its number */
    int64_t low_bit, end_bit;
} field_range;
enum { FIELD_SINK_RANGES = 2 };

struct field_machine;
enum { FIELD_KEPT_DM, FIELD_KEPT_TRF, FIELD_KEPT };

/* A chain in one slice. */
typedef struct field_run {
    struct field_machine *machine;
    const chain *chain;
    size_t time; /* number of its event */
    int64_t unit;
    int64_t cursors[2]; /* time steps of the slice at the ports of source or sink that are done; of a sink's
                           second port, too */
    field_unknowns unknowns;
    const field_memory *kept; /* NULL, or DM and TRF of the slice as they were when it ran (sums.h) */
    field_value first_name;   /* of its sums; 0: they are summed */
    bool computes;            /* with the values that it reads: names of sums are of no use to it */
    struct field_stage_run *stages;
    unsigned stage_count;
    fault *fault;
} field_run;

typedef struct field_stage_run {
    const stage *stage;
    field_run *run;
    struct field_stage_run *before;
    void *state; /* field->state_bytes, zero at first */
} field_stage_run;

/* The twin of a stage. Elements that leave it are numbered: those of packets, flits and beats as they follow
 * each other; of pairs
 * ((step * 2 + side) * Rows + Row) * lanes + lane, side 0 the data, 1 the weights; of partial results (step *
 * Rows + Row) * columns + column. */
typedef struct field_stage {
    bool moves; /* values as they are, if its commands ask for nothing else */
    size_t state_bytes;
    bool (*open)(field_stage_run *r); /* false: no memory, or a fault */
    void (*close)(field_stage_run *r);
    void (*read)(field_stage_run *r, int64_t first, int64_t count, field_value *out);
    /* The same of elements in a list without zeros; NULL: they are read run by run. */
    void (*read_spans)(field_stage_run *r, const field_span *spans, size_t count, field_value *out);
    /* Of sinks, whose elements are those that they write. */
    int64_t (*count)(const field_stage_run *r);
    /* Where element `first` goes (number -1: nowhere); how many stand side by side from there on. */
    int64_t (*place)(const field_stage_run *r, int64_t first, field_place *to);
    /* The last element that has the cell, and how many stand side by side from there on; -1: none. `part`:
     * which cell of the element it is. */
    int64_t (*find)(const field_stage_run *r, const field_place *at, int64_t *count, unsigned *part);
    /* Of elements that are `apart_bits` from each other, of which `find` said the first: how many, from that on, are known; they are added
     * to the list. NULL: nothing is known but what stands side by side. */
    int64_t (*follow)(const field_stage_run *r, int64_t first, int64_t apart_bits, int64_t count, field_spans *elements);
    unsigned (*ranges)(const stage *s, field_range *out); /* at most FIELD_SINK_RANGES */
} field_stage;

/* ---- events: what happens in the machine, one after the other ---- */

typedef enum field_event_kind { FIELD_LOAD, FIELD_DMA, FIELD_INDIRECT, FIELD_CHAIN } field_event_kind;

typedef struct field_event {
    field_event_kind kind;
    uint32_t port; /* FIELD_LOAD */
    const command *commands;
    size_t available;           /* commands from there to the context's end */
    unit_mask units, out_units; /* in which a chain begins and ends */
    unsigned range_count;
    field_range ranges[FIELD_SINK_RANGES]; /* of a chain */
    int64_t *cursors[2];                   /* of the ports of source and sink, by unit position, before it */
    int64_t low, end;                      /* of a DMA: bytes of its destination, in the address space of all memories */
    int64_t inner_low, inner_end;          /* the same in each memory */
    bool overlaps;                         /* of a DMA: it may read what it wrote */
} field_event;

typedef struct field_term {
    field_value lane, weight;
} field_term;

/* Terms of a sum, as the machine meets them; or a single value. */
typedef struct field_terms {
    field_term *items;
    size_t count, capacity;
    bool is_sum;
    int depth; /* of contractions that are under way: only the outermost one's are noted */
} field_terms;

typedef struct field_machine {
    machine *plans; /* decodes; no memory of it is touched */
    uint64_t seed;
    field_inputs inputs;
    unsigned threads;
    fault *faults; /* of each worker of a chain: too large for a stack */
    field_memory *hbm, *dm, *trf, *vrf, *ports;
    pthread_mutex_t ports_lock; /* held by a slice that writes a port */
    field_budget budget;
    field_event *events;
    size_t event_count, event_capacity;
    double work, named_products; /* products and elements moved, of all of it; products of sums that may be names */
    struct field_sums *sums;     /* not NULL: what is only moved on is left as names; */
    _Atomic bool named;          /* and something computed with one */
    struct field_trace *trace;   /* not NULL: memories are not kept, a value is traced back to the inputs */
} field_machine;

/* Decodes all of a kernel's commands in the order in which they run. NULL, with a diagnostic, when the
 * machine refuses them. */
field_machine *field_machine_new(const target *t, const binary_kernel *k, uint64_t seed, unsigned threads, arena *a, diag_list *diags);
void field_machine_free(field_machine *m);
/* The seed of its inputs, from that of the check. */
uint64_t field_machine_seed(uint64_t seed);

typedef enum field_result { FIELD_DONE, FIELD_FAILED, FIELD_TOO_LARGE, FIELD_NAMED } field_result;
/* Runs all of it; memories keep their values. FIELD_TOO_LARGE: they would pass `limit_bytes`; FIELD_NAMED: something computes with sums
 * that were left as names. */
field_result field_machine_run(field_machine *m, int64_t limit_bytes, diag_list *diags);

/* Values of elements in a memory: from what it keeps, or traced back. `r`: who asks, and when. */
void field_read(field_run *r, const field_place *at, dtype type, int64_t stride, int64_t count, field_value *out);
/* The same of elements in a list of bits without zeros, of the memory at `at`. */
void field_read_spans(field_run *r, const field_place *at, dtype type, const field_spans *bits, field_value *out);
field_memory *field_memory_of(const field_machine *m, const field_place *at);

/* The plan of the chain that is event number `time`. */
bool field_event_plan(const field_machine *m, size_t time, chain *c, fault *f);
/* The byte of a Row's partition that is at a byte of the file, and the Row; -1: the mode does not use it. */
int64_t field_trf_byte(const field_machine *m, int64_t rows, trf_address mode, int64_t address, int64_t *row);

/* Opens a chain in a slice; false with the fault. */
bool field_run_open(field_run *r, field_machine *m, const chain *c, size_t time, int64_t unit, fault *f);
void field_run_close(field_run *r);
/* The same without its stages: enough for a sink that is asked where its elements are. */
field_run field_run_unopened(field_machine *m, const chain *c, size_t time, int64_t unit, fault *f);

static inline void field_before(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    field_stage_run *b = r->before;
    b->stage->type->field->read(b, first, count, out);
}

/* The same of the stage before it in another slice, which has nothing before it. */
void field_before_in(field_stage_run *r, int64_t unit, int64_t first, int64_t count, field_value *out);

/* Elements of a stage, by list without zeros. */
void field_stage_read_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out);

/* Of a stage that hands on what is before it, by the same list. */
void field_before_listed(field_stage_run *r, const field_span *spans, size_t count, field_value *out);

/* Elements of the stage before it, by list, which is freed; with a fault if it lacks memory. */
void field_before_spans(field_stage_run *r, field_spans *spans, field_value *out);
/* The same, of a list without zeros, of the stage before it in another slice; the list is emptied. */
void field_before_spans_in(field_stage_run *r, int64_t unit, field_spans *spans, field_value *out);

/* Which elements of the stage before it these are: how many from the first on, and they. */
typedef int64_t field_span_map(const field_stage_run *r, field_span of, field_span *from);
/* Reads a list through such a map. */
void field_mapped_spans(field_stage_run *r, field_span_map *map, const field_span *spans, size_t count, field_value *out);

/* ---- places of ports ---- */

/* Logical element at a physical position of a port; -1: none. */
int64_t field_port_element(const field_machine *m, uint32_t port, int64_t position);
int64_t field_port_positions(const field_machine *m, uint32_t port);
/* Where a position is; how many stand side by side from there on. Number -1: its slice is dead. */
int64_t field_port_place(const field_machine *m, uint32_t port, int64_t position, field_place *out);
/* The position that is there; -1: none. */
int64_t field_port_find(const field_machine *m, uint32_t port, const field_place *at, unsigned *part);
/* Elements by position. */
typedef struct field_numbers {
    bool in_order; /* each position has the element of its number */
    int32_t *list; /* else what it has, -1: none; malloc'd */
} field_numbers;
/* False: no memory, or too many. */
bool field_port_numbers(const field_machine *m, uint32_t port, field_numbers *out);
static inline int64_t field_number_at(const field_numbers *n, int64_t position)
{
    return n->in_order ? position : n->list[position];
}

/* ---- walks, backwards ---- */

/* The last position below `limit` (-1: any) whose address is in (at - size, at]; -1: none, -2: given up. */
int64_t field_walk_find(const walk *w, int64_t at, int64_t size, int64_t limit);
/* The address of a position. */
int64_t field_walk_address(const walk *w, int64_t position);
/* How many of these positions, from the first on, have addresses that are *apart from each other. */
int64_t field_walk_along(const walk *w, field_span positions, int64_t *apart);
/* Addresses that are `apart` from each other begin with that of a position, each of `size` units: how many, from the first on, are those of
 * positions that are *positions_apart from each other, and of no others. */
int64_t field_walk_follow(const walk *w, int64_t position, int64_t size, int64_t apart, int64_t count, int64_t *positions_apart);
/* The same of units, however far apart their positions are, which are added to the list. */
int64_t field_walk_follow_all(const walk *w, int64_t position, int64_t apart, int64_t count, field_spans *positions);

/* ---- DMA ---- */

bool field_dma_run(field_machine *m, const field_event *e, fault *f);
/* Reads the command into the event; false with a fault. */
bool field_dma_plan(field_machine *m, field_event *e, fault *f);
/* Elements of a memory: so many of `width` bits, that are so many bits apart. */
typedef struct field_cells {
    field_place at;
    int64_t apart, count, width;
} field_cells;
/* Where the first cell of these came from, unless it is a zero without a source, and how many of the elements from there on, and how far
 * apart (count 0: the element is not in one piece); -1: the transfer did not write it, -2: given up, else the packet. */
int64_t field_dma_source(const field_machine *m, const field_event *e, const field_cells *of, int64_t limit, field_cells *from);

/* A gather or scatter. It is not traced back: where a row came from the list says. */
bool field_indirect_run(field_machine *m, const field_event *e, fault *f);

/* ---- the way back (trace.c) ---- */

struct field_trace *field_trace_new(field_machine *m);
void field_trace_free(struct field_trace *t);
/* Elements in a list of bits of the memory at `at`, as they are before event number `time`. */
void field_trace_read(struct field_trace *t, const field_place *at, dtype type, const field_spans *bits, size_t time, field_value *out,
                      field_unknowns *u, fault *f);
/* Notes the terms of what is traced next; NULL: no more. */
void field_trace_terms(struct field_trace *t, field_terms *terms);
field_terms *field_trace_noting(const struct field_trace *t);
/* Was that value lately made of a cell that nobody wrote? */
bool field_trace_unwritten(const struct field_trace *t, field_value v);

#endif
