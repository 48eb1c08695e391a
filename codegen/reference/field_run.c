#include "codegen/reference/field_run.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/reference/fault.h"
#include "codegen/reference/kernel.h"

enum { MOST_PARTS = 64 };

typedef struct field_job {
    const reference_kernel *kernel;
    uint64_t *const *tensors;
    unsigned char *scratch;
    int64_t scratch_each, statement;
    unsigned parts;
} field_job;

/* Batches are divided where there are enough of them, rows where not. */
static void run_part(void *argument, unsigned number, unsigned member)
{
    const field_job *j = argument;
    const field_shape *s = &j->kernel->steps[j->statement].field;
    int64_t range[4] = {0, s->batches, 0, s->row_tiles}, *at = s->batches >= j->parts ? range : range + 2, all = at[1];
    at[0] = all * number / j->parts;
    at[1] = all * (number + 1) / j->parts;
    if (at[0] < at[1])
        j->kernel->field(j->tensors, j->scratch + member * j->scratch_each, j->statement, range[0], range[1], range[2], range[3]);
}

static char *run_statement(const reference_kernel *k, uint64_t *const *tensors, int64_t statement, unsigned threads)
{
    static const double worth_a_thread = 1e6;
    const kernel_step *step = &k->steps[statement];
    unsigned parts = step->field.clocks < 2 * worth_a_thread ? 1 : threads < MOST_PARTS ? threads : MOST_PARTS;
    if (step->field.batches < 0)
        return fault_text("statement %lld is too large to be computed over a field as a whole", (long long)statement);
    field_job job = {.kernel = k,
                     .tensors = tensors,
                     .scratch_each = step->field.scratch_bytes + 64,
                     .statement = statement,
                     .parts = parts > 0 ? parts : 1};
    job.scratch = malloc((size_t)job.scratch_each * job.parts);
    if (!job.scratch)
        return fault_text("out of memory");
    if (step->first)
        memset(tensors[step->dst], 0, (size_t)k->tensors[step->dst].elements * sizeof **tensors);
    team *helpers = job.parts > 1 ? team_new(job.parts - 1) : NULL;
    if (helpers)
        team_run(helpers, job.parts, job.parts, run_part, &job);
    else
        for (unsigned i = 0; i < job.parts; i++)
            run_part(&job, i, 0);
    team_free(helpers);
    free(job.scratch);
    return NULL;
}

char *kernel_run_field(reference_kernel *k, uint64_t *const *tensors, unsigned threads)
{
    if (!k->field)
        return fault_text("the kernel was built without this form");
    char *fault = NULL;
    for (uint32_t i = 0; i < k->step_count && !fault; i++)
        fault = run_statement(k, tensors, i, threads);
    return fault;
}
