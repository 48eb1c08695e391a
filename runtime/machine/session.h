/* One kernel of a binary, its tensors, its runs and their check.
 *
 * The one idea: what goes in and out of a session is logical tensors; the machine sees the physical bytes of the ports, the
 * reference sees the logical ones, and neither sees the other. Memory that the kernel never writes must not matter, so a
 * checked kernel runs twice with different fillings of it. */
#ifndef VISA_RUNTIME_MACHINE_SESSION_H
#define VISA_RUNTIME_MACHINE_SESSION_H

#include "codegen/container.h"
#include "runtime/machine/cpu.h"
#include "runtime/tensor/finding.h"
#include "runtime/tensor/tensor.h"
#include "support/output.h"

typedef struct session session;

/* `kernel` may be NULL when the binary has one. NULL with a diagnostic. The session's memory outside the arena is freed by
 * session_close. */
session *session_open(const binary *b, const char *kernel, arena *a, diag_list *diags);
void session_close(session *s);

/* Binds "NAME=FILE", "NAME[K,M]=FILE" or "NAME:buffer=FILE"; with a single input the name may be left away. */
bool session_input(session *s, const char *spec, diag_list *diags);
/* The logical tensor of a port: to be filled before a run when it is an input, the result of the last run when it is an output. NULL with a
 * diagnostic: no memory. */
tensor *session_logical(session *s, uint32_t number, diag_list *diags);
/* Every input that no file was bound to gets seeded numbers. */
bool session_fill(session *s, uint64_t seed, diag_list *diags);

/* How the machine runs; all zero is as fast as it goes, and every choice gives the same bits. */
typedef struct session_options {
    unsigned threads; /* 0: one for each processor */
    cpu_level cpu;
    /* Called now and then with the commands of all runs that are done, and how many there are; may be NULL. */
    void (*progress)(void *context, int64_t done, int64_t commands);
    void *progress_context;
    /* HBM of each chip that holds the inputs in HBM and keeps the outputs there, the caller's; NULL: one of each run's own. With it,
     * tensors of ports in HBM are read only where they are compared. */
    struct memory *hbm;
    struct memory *dm; /* the same of the DM of each slice */
    bool compared;
    bool rounds; /* files of f32 are taken for narrower floats (tensor_file.h) */
} session_options;
void session_set_options(session *s, const session_options *options);

/* Will a run take no more than `most` cycles of the machine? False with a diagnostic. *cycles: how many it takes. */
bool session_cycles(session *s, uint64_t most, uint64_t *cycles, diag_list *diags);

/* Runs the binary on the machine. With `twice`, unless the first run is proven not to depend on it, a second time with other bytes in
 * unwritten memory and the contexts in another order: E_RUN_UNDEFINED when an output depends on them. */
bool session_run(session *s, bool twice, diag_list *diags);

/* Announces that session_check will follow the run, with that order of additions: the reference is built meanwhile, unless the session has
 * one thread only. */
void session_expect(session *s, bool machine_order);

/* Builds the reference from the einsum section, runs it on the same logical inputs and compares. With machine_order the reference adds
 * floats as the machine does, and values are equal. Else each has a bound, and those of seeded inputs are judged together (judge.h).
 * *agrees is false, with a diagnostic per output, when an output is not what it has to be (E_CHECK_MISMATCH) or no value of it was compared
 * (E_CHECK_NOTHING). *report: lines for people. */
bool session_check(session *s, bool machine_order, bool *agrees, const char **report, diag_list *diags);
/* What the last check found, output by output, in the session's arena. */
const finding_list *session_findings(const session *s);

/* Is all that went wrong that outputs are not what they have to be (E_CHECK_MISMATCH, E_RUN_UNDEFINED), or that nothing was compared
 * (E_CHECK_NOTHING)? */
bool session_found_mismatch(const diag_list *diags);

/* Can session_output write this? Asked before a run, which may be long. */
bool session_has_output(session *s, const char *spec, diag_list *diags);
/* Puts "NAME=FILE", "NAME[AXES]=FILE", "NAME:buffer=FILE", or "FILE" with a single output, where session_file of it was declared. */
bool session_output(session *s, const char *spec, output *to, diag_list *diags);

/* The file in what a user writes for an input or an output, before there is a session. */
const char *session_file(const char *spec, arena *a);

/* "in a: bf16 [M=32, K=32]" per line. */
const char *session_describe(const session *s);
/* The same as JSON (docs/usage.md); NULL: no memory. */
const char *session_describe_json(const session *s);

#endif
