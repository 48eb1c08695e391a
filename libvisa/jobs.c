#define _GNU_SOURCE /* memmem */
#include "libvisa/jobs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/parse.h"
#include "runtime/machine/parallel.h"
#include "support/budget.h"
#include "support/integer.h"

/* Fewer kernels are done before a thread has read what surrounds them. */
enum { LEAST_KERNELS = 16 };
/* Of the text, whose tokens a thread holds at once. */
enum { TOKENS_OF_BYTES = 1 << 18 };

/* A kernel that a worker compiled, and its diagnostics. */
typedef struct piece {
    size_t number; /* of the file's kernels */
    size_t diag_begin, diag_end;
    src_range text; /* of its function */
} piece;

struct jobs {
    visa_compilation *of;
    const sema_options *options;
    atomic_size_t next; /* the first kernel that nobody has taken */
    struct worker *workers;
    unsigned count;
    int file; /* that is parsed */
};

typedef struct worker {
    jobs *jobs;
    visa_compilation *c; /* of its own: it shares the tree and the texts, which nobody writes */
    size_t taken;        /* the kernel that is its next one */
    piece *pieces;
    size_t count, capacity;
    bool done;
    uint32_t begin, end; /* of the file, bytes: what it parses */
    ast *part;
    const sema_survey **surveys; /* of the pieces of that */
    size_t survey_count, survey_capacity;
} worker;

static bool takes_kernel(void *user, size_t number, src_range text)
{
    worker *w = user;
    if (number != w->taken)
        return false;
    w->taken = atomic_fetch_add(&w->jobs->next, 1);
    piece p = {.number = number, .diag_begin = w->c->diags.count, .text = text};
    ARENA_PUSH(w->c->arena, w->pieces, w->count, w->capacity, p);
    return true;
}

static void kernel_done(void *user, kernel *k)
{
    worker *w = user;
    compilation_finish_kernel(w->c, k);
    w->pieces[w->count - 1].diag_end = w->c->diags.count;
}

static void share(visa_compilation *to, const visa_compilation *from)
{
    to->sources = from->sources;
    to->expander = from->expander;
    to->file = from->file;
    to->tree = from->tree;
    to->mappings = mapping_context_new(to->arena);
    to->kernel_arena = arena_new_inside(to->arena);
    to->no_kernel = arena_mark_here(to->kernel_arena);
}

static void work(void *user, unsigned number, size_t index)
{
    worker *w = &((jobs *)user)->workers[index];
    visa_compilation *c = w->c;
    (void)number;
    if (!c || COMPILATION_STOPS(c))
        return;
    share(c, w->jobs->of);
    compilation_begin_file(c);
    sema_options options = *w->jobs->options;
    options.user = w;
    options.done = kernel_done;
    options.takes = takes_kernel;
    options.kernels = c->kernel_arena;
    w->taken = atomic_fetch_add(&w->jobs->next, 1);
    c->module = sema_module(c->tree, c->mappings, c->arena, &c->diags, &options);
    w->done = true;
}

/* ---- was it as it would be one after the other? ---- */

static bool lies_in(src_range inner, src_range outer)
{
    return inner.file == outer.file && inner.begin >= outer.begin && inner.end <= outer.end;
}

/* Nothing but warnings about a kernel's own text: what concerns others too is reported once, by the first that meets it. */
static bool says_its_own(const worker *w)
{
    size_t own = 0;
    for (size_t i = 0; i < w->count; i++)
        for (size_t d = w->pieces[i].diag_begin; d < w->pieces[i].diag_end; d++, own++)
            if (!lies_in(w->c->diags.items[d]->range, w->pieces[i].text))
                return false;
    return own == w->c->diags.count && w->c->diags.error_count == 0;
}

/* Together they cost no less than one after the other: within the limits, that would be too. */
static bool all_well(const jobs *j)
{
    const budget *account = arena_budget(j->of->arena);
    uint64_t steps = account->steps, bytes = account->bytes;
    size_t loops = COMMAND_LOOP_MAX_COMMANDS, kernels = 0;
    for (unsigned i = 0; i < j->count; i++) {
        const worker *w = &j->workers[i];
        if (!w->done || w->c->write_failed || w->c->write_diags.count > 0 || !says_its_own(w))
            return false;
        const budget *own = arena_budget(w->c->arena);
        steps += own->steps;
        bytes += own->bytes;
        size_t used = binary_writer_loops_used(w->c->writer);
        if (used > loops)
            return false;
        loops -= used;
        kernels += w->count;
    }
    return steps <= account->max_steps && bytes <= account->max_bytes && kernels == j->workers[0].c->module->count;
}

/* ---- put together ---- */

static void join(const jobs *j)
{
    visa_compilation *c = j->of;
    module *all = j->workers[0].c->module;
    size_t *next = ARENA_ARRAY(c->arena, size_t, j->count);
    compilation_begin_file(c);
    for (size_t k = 0; k < all->count; k++) {
        unsigned i = 0;
        while (next[i] == j->workers[i].count || j->workers[i].pieces[next[i]].number != k)
            i++;
        const worker *w = &j->workers[i];
        const piece *p = &w->pieces[next[i]];
        binary_writer_take(c->writer, w->c->writer, next[i]++);
        all->kernels[k] = w->c->module->kernels[k];
        diag_list said = {.items = w->c->diags.items + p->diag_begin, .count = p->diag_end - p->diag_begin};
        diag_list_append(&c->diags, &said);
    }
    c->diags.words = j->workers[0].c->diags.words;
    c->module = all;
}

/* ---- is it worth it, and is the binary all that is asked for? ---- */

static size_t count_functions(const ast *n)
{
    size_t count = 0;
    for (uint32_t i = 0; i < n->kid_count && count < LEAST_KERNELS; i++)
        count += ast_is(n->kids[i], AST_FN) ? 1 : ast_is(n->kids[i], AST_MOD) ? count_functions(ast_kid(n->kids[i], 1)) : 0;
    return count;
}

/* Its file would be read by each of them. */
static bool loads_modules(const ast *n)
{
    bool loads = false;
    for (uint32_t i = 0; i < n->kid_count && !loads; i++)
        loads = ast_is(n->kids[i], AST_MOD) && (ast_is(ast_kid(n->kids[i], 1), AST_NONE) || loads_modules(ast_kid(n->kids[i], 1)));
    return loads;
}

static bool may_run(const visa_compilation *c)
{
    const visa_options *o = c->options;
    bool is_plain = c->binary_only && !c->has_programs && !c->index && !c->is_book && !o->kernel && !o->print_after && !o->time_report &&
                    !c->max_milliseconds && c->diags.count == 0;
    return is_plain && o->jobs > 1 && !o->again && count_functions(c->tree) >= LEAST_KERNELS && !(o->modules && loads_modules(c->tree));
}

/* Their lines are looked up by all of them. */
static void number_lines(visa_compilation *c)
{
    for (int file = 0; file < source_map_count(c->sources); file++)
        source_locate(c->sources, file, 0);
}

void jobs_free(jobs *j)
{
    for (unsigned i = 0; j && i < j->count; i++)
        visa_free(j->workers[i].c);
    if (j)
        free(j->workers);
    free(j);
}

/* Their memory is theirs. */
static jobs *jobs_new(visa_compilation *c)
{
    jobs *j = calloc(1, sizeof *j);
    worker *workers = calloc(c->options->jobs, sizeof *workers);
    if (!j || !workers) {
        free(j);
        free(workers);
        return NULL;
    }
    *j = (jobs){.of = c, .workers = workers};
    for (; j->count < c->options->jobs; j->count++)
        workers[j->count] = (worker){.jobs = j, .c = compilation_new(c->options)};
    return j;
}

bool jobs_run(visa_compilation *c, const sema_options *options)
{
    if (!may_run(c) || (!c->jobs && !(c->jobs = jobs_new(c))))
        return false;
    c->jobs->options = options;
    number_lines(c);
    parallel_for(c->jobs->count, c->jobs->count, work, c->jobs);
    if (!all_well(c->jobs))
        return false;
    join(c->jobs);
    return true;
}

/* ---- parts of a file ---- */

/* The first byte after a line that is `}` alone, from `at` on: items end there. Where none does, the part in front has an error. */
static uint32_t after_item(const char *text, uint32_t at, uint32_t bytes)
{
    static const char end[] = "\n}\n";
    const char *found = at < bytes ? memmem(text + at, bytes - at, end, sizeof end - 1) : NULL;
    return found ? (uint32_t)(found - text + (ptrdiff_t)sizeof end - 1) : bytes;
}

static void take_part(arena *a, ast *root, const ast *part)
{
    ast_push_all(a, root, part->kids, part->kid_count);
    root->value |= part->value; /* is there something to expand? */
}

/* Piece by piece: the tokens of each lie where those of the one before did, and its tree is surveyed while it is in this one's cache. */
static void parse_part(void *user, unsigned number, size_t index)
{
    jobs *j = user;
    worker *w = &j->workers[index];
    (void)number;
    if (!w->c || COMPILATION_STOPS(w->c))
        return;
    const char *text = source_text(j->of->sources, j->file);
    ast *all = ast_new(w->c->arena, AST_FILE, (src_range){j->file, w->begin, w->end});
    for (uint32_t at = w->begin, end; at < w->end; at = end) {
        end = after_item(text, (uint32_t)smaller((int64_t)at + TOKENS_OF_BYTES, w->end), w->end);
        const ast *read = parse_file_part(j->of->sources, j->file, at, end, w->c->arena, &w->c->diags);
        if (w->c->diags.count > 0)
            return;
        take_part(w->c->arena, all, read);
        const sema_survey *survey = sema_survey_of(read, 0, w->c->arena);
        ARENA_PUSH(w->c->arena, w->surveys, w->survey_count, w->survey_capacity, survey);
    }
    w->part = all;
}

/* What they took to read it counts as if one had; false: somebody found a fault, or it is too much. */
static bool charge(const jobs *j)
{
    budget *account = arena_budget(j->of->arena);
    uint64_t steps = account->steps, bytes = account->bytes;
    for (unsigned i = 0; i < j->count; i++) {
        if (!j->workers[i].part)
            return false;
        const budget *own = arena_budget(j->workers[i].c->arena);
        steps += own->steps;
        bytes += own->bytes;
    }
    if (steps > account->max_steps || bytes > account->max_bytes)
        return false;
    account->bytes = bytes;
    budget_spend(j->of->arena, steps - account->steps);
    return true;
}

static ast *root_of(const jobs *j)
{
    arena *a = j->of->arena;
    ast *root = ast_new(a, AST_FILE, (src_range){j->file, 0, (uint32_t)source_bytes(j->of->sources, j->file)});
    for (unsigned i = 0; i < j->count; i++)
        take_part(a, root, j->workers[i].part);
    return root;
}

const sema_survey *jobs_survey(const visa_compilation *c)
{
    const jobs *j = c->jobs;
    const sema_survey **parts = NULL;
    size_t count = 0, capacity = 0;
    for (unsigned i = 0; j && i < j->count; i++)
        for (size_t k = 0; k < j->workers[i].survey_count; k++)
            ARENA_PUSH(c->arena, parts, count, capacity, j->workers[i].surveys[k]);
    return count > 0 ? sema_survey_join(parts, count, c->arena) : NULL;
}

ast *jobs_parse(visa_compilation *c, int file)
{
    enum { LEAST_BYTES = 1 << 16 };
    const char *text = source_text(c->sources, file);
    uint32_t bytes = (uint32_t)source_bytes(c->sources, file), at = 0;
    const visa_options *o = c->options;
    bool may = c->binary_only && o->jobs > 1 && !o->again && !o->editor && !o->time_report && !c->is_book && !c->max_milliseconds &&
               c->diags.count == 0;
    if (!may || bytes < LEAST_BYTES || memmem(text, bytes, "macro_rules", strlen("macro_rules")) || !(c->jobs = jobs_new(c)))
        return NULL;
    jobs *j = c->jobs;
    j->file = file;
    for (unsigned i = 0; i < j->count; i++) {
        j->workers[i].begin = at;
        at = i + 1 == j->count ? bytes : after_item(text, (uint32_t)larger(at, (int64_t)bytes * (i + 1) / j->count), bytes);
        j->workers[i].end = at;
    }
    parallel_for(j->count, j->count, parse_part, j);
    if (charge(j))
        return root_of(j);
    jobs_free(j);
    c->jobs = NULL;
    return NULL;
}
