/* The simulated machine: executes the decoded commands of one kernel.
 *
 * The one idea: memories and ports around three command streams. A context runs its commands in order; a
 * chain of commands of the main or sub context is checked as a whole and then run in every active slice, a
 * slice knowing nothing of the others. Everything never written holds the poison byte. */
#ifndef VISA_RUNTIME_MACHINE_MACHINE_H
#define VISA_RUNTIME_MACHINE_MACHINE_H

#include "codegen/container.h"
#include "runtime/machine/cpu.h"

typedef struct machine machine;

typedef struct machine_options {
    unsigned char poison;  /* fills everything that was never written */
    context first_context; /* the context that the scheduler tries first; another order shows missing waits */
    unsigned threads;      /* 0: one for each processor */
    cpu_level cpu;         /* the highest that may be used; all give the same bits */
    bool prove;            /* so that machine_is_proven has an answer */
    void (*progress)(void *context, size_t done, size_t total); /* commands; NULL: nobody asks */
    void *progress_context;
    int64_t memory_limit_bytes; /* of all simulated memories together; 0: none */
    bool sizes_only;            /* no memories: its commands are planned and timed, none is run */
    struct memory *hbm;         /* of each chip, the caller's, which keeps what it holds; NULL: an empty one of the machine's own */
    struct memory *dm;          /* of each slice, followed by the SPM, in the same way; NULL: empty ones */
    int64_t step_limit;         /* packets of one chain or DMA command over all slices; 0: none */
} machine_options;

/* A machine with empty memories. `k` and `a` must outlive it. options NULL: all zero. */
machine *machine_new(const target *t, const binary_kernel *k, arena *a, const machine_options *options);
/* Frees the memories; the rest is the arena's. */
void machine_free(machine *m);

/* Physical bytes of a port: the pair of its components (container.h) in their order, element 0 of i4 in the
 * low nibble. -1 when it does not fit the target. */
int64_t machine_port_bytes(const machine *m, uint32_t port);

/* Places / takes the physical bytes of a port. Only positions whose chip, cluster and slice are live touch a
 * memory; reading leaves the poison in the others. False, with a diagnostic, when the size is not
 * machine_port_bytes or the port does not fit. Writing a stream port rewinds it. */
bool machine_port_write(machine *m, uint32_t port, const unsigned char *bytes, size_t size, diag_list *diags);
bool machine_port_read(machine *m, uint32_t port, unsigned char *bytes, size_t size, diag_list *diags);

/* Runs all contexts to their ends. False, with a diagnostic that names command and source line, at the first
 * fault. */
bool machine_run(machine *m, diag_list *diags);

/* After the run, and after its outputs were taken: would another filling of unwritten memory and any other order of contexts give the same
 * outputs, certainly (proof.h)? False: it has to be tried. */
bool machine_is_proven(const machine *m);

#endif
