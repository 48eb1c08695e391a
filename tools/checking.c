#include "tools/checking.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/budget.h"

bool tool_run_length(const char *tool, session *s, const char *kernel, uint64_t most, diag_list *diags)
{
    uint64_t cycles;
    if (!session_cycles(s, most, &cycles, diags))
        return false;
    if (cycles >= RUN_CYCLES_ANNOUNCED)
        fprintf(stderr, "%s: note: kernel %s takes %" PRIu64 " cycles of the machine\n", tool, kernel, cycles);
    return true;
}

bool tool_has_output(const binary_kernel *k)
{
    for (uint32_t i = 0; i < k->port_count; i++)
        if (k->ports[i].direction == PORT_OUT)
            return true;
    return false;
}

/* Is there something to prove? */
static bool is_proven(const tool_check *c, const binary_kernel *k)
{
    return c->algebra && (k->einsum.statement_count > 0 || tool_has_output(k));
}

static field_options options_of(const tool_check *c, uint64_t seed, unsigned threads)
{
    return (field_options){.seed = seed, .threads = threads, .samples = c->samples};
}

void tool_check_begin(tool_check *c, const target *t, const binary_kernel *k, uint64_t seed, unsigned threads)
{
    field_options options = options_of(c, seed, threads);
    if (c->numbers && is_proven(c, k))
        c->beside = field_beside_begin(t, k, &options);
}

void tool_check_drop(tool_check *c)
{
    field_beside_drop(c->beside);
    c->beside = NULL;
}

bool tool_check_algebra(tool_check *c, const target *t, const binary_kernel *k, uint64_t seed, unsigned threads, arena *a, diag_list *diags,
                        bool *agrees, const char **report)
{
    *report = "";
    if (!c->algebra)
        return true;
    if (!is_proven(c, k)) {
        if (!c->numbers) /* they reported it */
            diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "kernel `%s` has no output", k->name);
        *agrees = false;
        return true;
    }
    field_options options = options_of(c, seed, threads);
    field_verdict *list = ARENA_ARRAY(a, field_verdict, c->verdict_count + 1);
    for (size_t i = 0; i < c->verdict_count; i++)
        list[i] = c->verdicts[i];
    c->verdicts = list;
    field_beside *beside = c->beside;
    c->beside = NULL;
    if (!(beside ? field_beside_end(beside, a, diags, &list[c->verdict_count])
                 : field_check(t, k, &options, a, diags, &list[c->verdict_count])))
        return false;
    *agrees = *agrees && list[c->verdict_count].agrees;
    *report = list[c->verdict_count++].text;
    return true;
}

const field_verdict *tool_check_last(const tool_check *c, const binary_kernel *k)
{
    const field_verdict *last = c->verdict_count ? &c->verdicts[c->verdict_count - 1] : NULL;
    return last && last->kernel == k ? last : NULL;
}

bool tool_check_certify(const tool_check *c, const char *file, const unsigned char *bytes, size_t size, arena *a)
{
    if (!c->certificate || !c->verdict_count)
        return true;
    const char *text = field_certificate(c->verdicts, c->verdict_count, file, bytes, size, a);
    return text && output_put(c->certificate_to, text, strlen(text));
}

void tool_check_say(const tool_check *c, const char *text, FILE *to)
{
    if (!c->json)
        fputs(text, to);
}

void tool_check_add(tool_check *c, const verdict_item *item, arena *a)
{
    if (c->json)
        verdict_book_add(&c->book, item, a);
}

int tool_check_print(const tool_run *r, const char *file, int status, diag_list *diags)
{
    if (!r->check.json || (status != EXIT_DONE && status != EXIT_MISMATCH))
        return status;
    verdict_head head = {tool_input_name(file), r->check.numbers, r->check.algebra, r->free_order, status == EXIT_MISMATCH, r->seed};
    const char *text = verdict_text(r->check.book, &head, diags);
    if (text)
        fputs(text, stdout);
    else
        fprintf(stderr, "%s: error: out of memory\n", r->tool);
    return text ? status : EXIT_INPUT;
}
