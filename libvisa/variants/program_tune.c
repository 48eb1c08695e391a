#include "libvisa/variants/program_tune.h"

#include <string.h>

#include "libvisa/variants/program_space.h"
#include "runtime/step/session.h"
#include "support/budget.h"

enum { MOST_PASSES = 16, MOST_AXES = 64, MOST_POINTS = 4096, MOVES_OF_STEP = 16 /* that take as long */ };

typedef struct tuning {
    const variant_source *source;
    const program_tune_options *options;
    arena *arena;
    diag_list *diags;
    program_answer *answer;
    swept *axes;
    program_point *points;
    size_t point_count, point_capacity;
    program_point *next; /* points that are tried together */
    size_t next_count;
    uint64_t done, spent;           /* work of all points; of this process's attempt */
    bool lost;                      /* another process has ended */
    const char *messages, *refused; /* diagnostics of the file as it is; why it is no point */
    const char *surroundings;       /* of the program as it is, where constants were found; else NULL */
} tuning;

/* ---- one point ---- */

/* A point at work, in an arena of its own. */
typedef struct attempt {
    tuning *t;
    const program_point *point;
    const swept *axes; /* of the point's values */
    size_t axis_count;
    arena *arena;
    diag_list diags;
    visa_compilation *compilation;
    binary binary;
    const step_program *program;
    step_session *session;
    const char *why; /* in its arena or the compilation: it is refused; NULL: it is not */
} attempt;

static const char *first_line(const char *text, arena *a)
{
    return arena_strndup(a, text, strcspn(text, "\n"));
}

static visa_options options_of(const attempt *x)
{
    const program_answer *answer = x->t->answer;
    visa_options options = x->t->options->variant.compile;
    visa_parameter *all = ARENA_ARRAY(x->arena, visa_parameter, options.parameter_count + x->axis_count + 1);
    const char **passes = ARENA_ARRAY(x->arena, const char *, answer->pass_count + 1);
    if (options.parameter_count > 0)
        memcpy(all, options.parameters, options.parameter_count * sizeof *all);
    for (size_t i = 0; i < x->axis_count; i++)
        all[options.parameter_count++] = (visa_parameter){.name = x->axes[i].name, .values = &x->point->values[i], .count = 1};
    options.parameters = all;
    options.step_pass_count = 0;
    for (size_t i = 0; i < answer->pass_count; i++)
        if (x->point->passes >> i & 1)
            passes[options.step_pass_count++] = answer->passes[i];
    options.step_passes = passes;
    options.kernel = x->t->options->program;
    options.binary_only = true;
    return options;
}

static bool compile(attempt *x)
{
    const variant_source *s = x->t->source;
    visa_options options = options_of(x);
    const unsigned char *data;
    size_t size;
    x->compilation = visa_compile(s->name, s->text, s->size, &options);
    if (!x->compilation) {
        x->why = "out of memory";
        return false;
    }
    bool good = visa_emit(x->compilation, VISA_EMIT_BINARY, &data, &size) && binary_read(data, size, x->arena, &x->diags, &x->binary);
    x->t->spent += visa_steps(x->compilation);
    x->program = good ? binary_program_by_name(&x->binary, options.kernel) : NULL;
    if (good && !x->program)
        x->why = "the file holds several programs or kernels besides it: --kernel=NAME chooses one";
    else if (!good)
        x->why = first_line(visa_diagnostics(x->compilation, VISA_DIAGNOSTICS_TEXT), x->arena);
    return x->program != NULL;
}

static bool run(attempt *x, step_figures *out)
{
    const program_tune_options *o = x->t->options;
    step_session_options options = {.seed = 1, .timing_only = true, .timing = o->variant.preset, .max_cycles = o->max_cycles};
    x->session = step_session_open(&x->binary, x->program, &options, x->arena, &x->diags);
    bool good = x->session != NULL;
    for (size_t i = 0; i < o->input_count && good; i++)
        good = step_session_input(x->session, o->inputs[i], &x->diags);
    good = good && step_session_run(x->session, &x->diags);
    if (good)
        *out = step_session_figures(x->session);
    else
        x->why = x->diags.count > 0 ? x->diags.items[0]->message : "it cannot be run";
    return good;
}

/* Does `work` in an arena that is forgotten afterwards, with everything that was made in it. False: it did not, or there was no memory. */
static bool attempted(attempt *x, bool (*work)(attempt *x, void *out), void *out)
{
    arena *a = arena_new();
    bool good = false;
    if (!a)
        return false;
    x->arena = a;
    diag_list_init(&x->diags, a);
    if (setjmp(*arena_guard(a)))
        x->why = "out of memory";
    else
        good = work(x, out);
    return good;
}

static void forget(attempt *x)
{
    step_session_close(x->session);
    visa_free(x->compilation);
    arena_free(x->arena);
}

/* A question that is asked by name, --sweep, is the writer's. */
static bool stands_alike(attempt *x)
{
    const char *surroundings = x->t->surroundings;
    bool alike = !surroundings || strcmp(surroundings, program_surroundings(x->program, x->arena)) == 0;
    x->why = alike ? x->why : "its tensors, its streams or its machine are others";
    return alike;
}

static bool compile_and_run(attempt *x, void *figures)
{
    return compile(x) && stands_alike(x) && run(x, figures);
}

/* What it takes is forgotten but for the figures; the diagnostics of a point stay its own. */
static void judge(void *user, size_t which, program_outcome *out)
{
    tuning *t = user;
    attempt x = {.t = t, .point = &t->next[which], .axes = t->axes, .axis_count = t->answer->axis_count};
    t->spent = 0;
    bool good = attempted(&x, compile_and_run, &out->figures);
    if (good)
        t->spent += (uint64_t)out->figures.moves / MOVES_OF_STEP;
    if (!good && t->point_count == 0 && !*t->messages && x.compilation)
        t->messages = arena_strdup(t->arena, visa_diagnostics(x.compilation, t->options->variant.format));
    out->refused = good ? NULL : arena_strdup(t->arena, x.why ? x.why : "out of memory");
    out->work = t->spent;
    forget(&x);
}

static bool judge_next(tuning *t, program_outcome *outcomes)
{
    memset(outcomes, 0, t->next_count * sizeof *outcomes);
    t->lost = t->lost || !program_team_run(&t->options->team, t->next_count, judge, t, t->arena, outcomes);
    return !t->lost;
}

/* One point alone. False: another process has ended. */
static bool judge_one(tuning *t, program_point *p)
{
    program_outcome out;
    t->next[0] = *p;
    t->next_count = 1;
    bool good = judge_next(t, &out);
    t->next_count = 0;
    p->refused = good ? out.refused : "another process has ended";
    p->figures = out.figures;
    t->done += good ? out.work : 0;
    return good;
}

/* ---- the space ---- */

static bool is_given(const tuning *t, const char *name)
{
    const visa_options *o = &t->options->variant.compile;
    for (size_t i = 0; i < o->parameter_count; i++)
        if (strcmp(o->parameters[i].name, name) == 0)
            return true;
    return false;
}

static bool look_around(attempt *x, void *out)
{
    if (!compile(x))
        return false;
    *(const char **)out = program_surroundings(x->program, x->arena);
    return true;
}

/* The surroundings with one constant changed, or none; NULL: it does not compile. */
static const char *surroundings_with(tuning *t, const swept *axis, const int64_t *value)
{
    program_point p = {.values = (int64_t *)value};
    attempt x = {.t = t, .point = &p, .axes = axis, .axis_count = axis != NULL};
    const char *text = NULL;
    text = attempted(&x, look_around, &text) ? arena_strdup(t->arena, text) : NULL;
    forget(&x);
    return text;
}

enum { FIRST_VALUES = 3 };

/* Is one of the first values with which it compiles another one that leaves the program's surroundings as they are? Of the others each
 * point says so. */
static void find_axis(tuning *t, const program_constant *all, size_t count, size_t which)
{
    int64_t *values;
    size_t found = program_candidates(all, count, which, t->arena, &values), compiled = 0;
    bool is_free = false;
    for (size_t i = 0; i < found && compiled < FIRST_VALUES && !is_free; i++) {
        const char *with = values[i] == all[which].value ? NULL : surroundings_with(t, &(swept){.name = all[which].name}, &values[i]);
        compiled += with != NULL;
        is_free = with && strcmp(with, t->surroundings) == 0;
    }
    if (is_free && t->answer->axis_count < MOST_AXES)
        t->axes[t->answer->axis_count++] = (swept){all[which].name, values, found};
}

static void find_axes(tuning *t)
{
    program_constant *all;
    size_t count = program_constants(t->source, t->arena, &all);
    t->surroundings = surroundings_with(t, NULL, NULL);
    for (size_t i = 0; i < count && t->surroundings; i++)
        if (!all[i].chooses && !is_given(t, all[i].name))
            find_axis(t, all, count, i);
}

/* Passes of the command line, or those that need no parameter. */
static void find_passes(tuning *t)
{
    static const char *const alone[] = {"dynamic-tiling", "hierarchical-tiling"};
    const visa_options *o = &t->options->variant.compile;
    bool given = o->step_pass_count > 0;
    t->answer->passes = given ? o->step_passes : alone;
    t->answer->pass_count = given ? o->step_pass_count : sizeof alone / sizeof *alone;
    if (t->answer->pass_count > MOST_PASSES)
        t->answer->pass_count = MOST_PASSES;
}

/* ---- the search ---- */

static bool is_among(const tuning *t, const program_point *all, size_t count, const program_point *p)
{
    for (size_t i = 0; i < count; i++) {
        const program_point *q = &all[i];
        size_t bytes = t->answer->axis_count * sizeof *q->values;
        if (q->passes == p->passes && (bytes == 0 || memcmp(q->values, p->values, bytes) == 0))
            return true;
    }
    return false;
}

static bool may_go_on(tuning *t)
{
    t->answer->stopped = t->answer->stopped || t->done >= t->options->work || t->point_count >= MOST_POINTS;
    return !t->answer->stopped && !t->lost;
}

/* Adds the points that were put together, one after the other: those past the work that may be done are none. */
static void try_next(tuning *t)
{
    program_outcome *outcomes = ARENA_ARRAY(t->arena, program_outcome, t->next_count + 1);
    if (t->next_count > 0 && judge_next(t, outcomes))
        for (size_t i = 0; i < t->next_count && may_go_on(t); i++) {
            t->next[i].refused = outcomes[i].refused;
            t->next[i].figures = outcomes[i].figures;
            t->done += outcomes[i].work;
            ARENA_PUSH(t->arena, t->points, t->point_count, t->point_capacity, t->next[i]);
        }
    t->next_count = 0;
    if (t->options->progress)
        t->options->progress(t->options->user, (int64_t)(t->done < t->options->work ? t->done : t->options->work),
                             (int64_t)t->options->work);
}

/* Adds the point, unless it is there already. */
static void try_point(tuning *t, program_point p)
{
    if (is_among(t, t->points, t->point_count, &p) || is_among(t, t->next, t->next_count, &p) || !may_go_on(t))
        return;
    int64_t *values = ARENA_ARRAY(t->arena, int64_t, t->answer->axis_count + 1);
    memcpy(values, p.values, t->answer->axis_count * sizeof *values);
    t->next[t->next_count++] = (program_point){.values = values, .passes = p.passes};
    if (t->next_count == peers_size(&t->options->team))
        try_next(t);
}

static bool beats(const step_figures *a, const step_figures *b)
{
    bool no_worse = a->cycles <= b->cycles && a->onchip_paper <= b->onchip_paper && a->offchip_bytes <= b->offchip_bytes;
    return no_worse && (a->cycles < b->cycles || a->onchip_paper < b->onchip_paper || a->offchip_bytes < b->offchip_bytes);
}

static bool same_figures(const step_figures *a, const step_figures *b)
{
    return a->cycles == b->cycles && a->onchip_paper == b->onchip_paper && a->offchip_bytes == b->offchip_bytes;
}

/* Of equal points the first one. */
static void mark_front(tuning *t)
{
    for (size_t i = 0; i < t->point_count; i++) {
        program_point *p = &t->points[i];
        p->front = !p->refused;
        for (size_t k = 0; k < t->point_count && p->front; k++) {
            const program_point *q = &t->points[k];
            p->front = q->refused || !(beats(&q->figures, &p->figures) || (k < i && same_figures(&q->figures, &p->figures)));
        }
    }
}

/* Where the value stands among those of the axis, or would. */
static int64_t place_of(const swept *axis, int64_t value)
{
    int64_t at = 0;
    while (at < (int64_t)axis->count && axis->values[at] < value)
        at++;
    return at;
}

static int64_t most_values(const tuning *t)
{
    size_t most = 0;
    for (size_t i = 0; i < t->answer->axis_count; i++)
        most = t->axes[i].count > most ? t->axes[i].count : most;
    return (int64_t)most;
}

/* The point with one axis at another of its values; one that it has not is nothing. */
static void try_value(tuning *t, int64_t *values, uint32_t passes, size_t axis, int64_t at)
{
    if (at < 0 || at >= (int64_t)t->axes[axis].count)
        return;
    int64_t own = values[axis];
    values[axis] = t->axes[axis].values[at];
    try_point(t, (program_point){.values = values, .passes = passes});
    values[axis] = own;
}

/* Everything that differs from the point in one thing: transformations, then values, those next to its own first. */
static void try_around(tuning *t, size_t number)
{
    size_t count = t->answer->axis_count;
    int64_t *values = ARENA_ARRAY(t->arena, int64_t, count + 1), most = most_values(t);
    uint32_t passes = t->points[number].passes;
    memcpy(values, t->points[number].values, count * sizeof *values);
    for (size_t i = 0; i < t->answer->pass_count; i++)
        try_point(t, (program_point){.values = values, .passes = passes ^ UINT32_C(1) << i});
    for (int64_t distance = 0; distance <= most; distance++)
        for (size_t i = 0; i < count; i++) {
            int64_t at = place_of(&t->axes[i], values[i]);
            try_value(t, values, passes, i, at + distance);
            try_value(t, values, passes, i, at - distance);
        }
    try_next(t);
}

/* The point of the front with the fewest cycles of those whose surroundings were not tried. */
static bool next_centre(const tuning *t, const bool *tried, size_t *out)
{
    bool any = false;
    for (size_t i = 0; i < t->point_count; i++)
        if (t->points[i].front && !tried[i] && (!any || t->points[i].figures.cycles < t->points[*out].figures.cycles)) {
            *out = i;
            any = true;
        }
    return any;
}

static void search(tuning *t)
{
    bool *tried = ARENA_ARRAY(t->arena, bool, MOST_POINTS + 1);
    size_t centre = 0;
    mark_front(t);
    while (may_go_on(t) && next_centre(t, tried, &centre)) {
        tried[centre] = true;
        try_around(t, centre);
        mark_front(t);
    }
}

/* ---- all of it ---- */

/* The file's own values, where they are among those that may be taken; else the first ones. */
static int64_t *own_values(const tuning *t)
{
    program_constant *all;
    size_t count = program_constants(t->source, t->arena, &all);
    int64_t *values = ARENA_ARRAY(t->arena, int64_t, t->answer->axis_count + 1);
    for (size_t i = 0; i < t->answer->axis_count; i++) {
        values[i] = t->axes[i].values[0]; /* of what is no constant of this file */
        for (size_t k = 0; k < count; k++)
            for (size_t n = 0; n < t->axes[i].count && strcmp(all[k].name, t->axes[i].name) == 0; n++)
                values[i] = t->axes[i].values[n] == all[k].value ? all[k].value : values[i];
    }
    return values;
}

static bool look_at_name(attempt *x, void *out)
{
    if (!compile(x))
        return false;
    *(const char **)out = x->program->name;
    return true;
}

static const char *name_of(tuning *t)
{
    attempt x = {.t = t, .point = &t->points[0], .axes = t->axes, .axis_count = t->answer->axis_count};
    const char *name = "";
    name = attempted(&x, look_at_name, &name) ? arena_strdup(t->arena, name) : "";
    forget(&x);
    return name;
}

/* The next combination, the last axis fastest. */
static bool next_combination(const tuning *t, size_t *at, int64_t *values)
{
    for (size_t i = t->answer->axis_count; i-- > 0;) {
        at[i] = at[i] + 1 < t->axes[i].count ? at[i] + 1 : 0;
        values[i] = t->axes[i].values[at[i]];
        if (at[i] > 0)
            return true;
    }
    return false;
}

/* Where the search begins: the file as it is; if that is refused, and its values were named, the first combination that is not. False:
 * there is none. */
static bool begin(tuning *t)
{
    program_point own = {.values = own_values(t)};
    judge_one(t, &own);
    size_t *at = ARENA_ARRAY(t->arena, size_t, t->answer->axis_count + 1);
    bool named = t->options->axis_count > 0;
    int64_t *values = ARENA_ARRAY(t->arena, int64_t, t->answer->axis_count + 1);
    for (size_t i = 0; i < t->answer->axis_count; i++)
        values[i] = t->axes[i].values[0];
    for (bool more = named; more && own.refused && may_go_on(t); more = next_combination(t, at, values)) {
        program_point p = {.values = ARENA_ARRAY(t->arena, int64_t, t->answer->axis_count + 1)};
        memcpy(p.values, values, t->answer->axis_count * sizeof *values);
        judge_one(t, &p);
        own = p.refused ? own : p;
    }
    t->refused = own.refused;
    ARENA_PUSH(t->arena, t->points, t->point_count, t->point_capacity, own);
    return !own.refused;
}

const program_answer *program_tune(const variant_source *s, const program_tune_options *o, arena *memory, diag_list *diags,
                                   const char **messages)
{
    program_answer *x = ARENA_NEW(memory, program_answer);
    *x = (program_answer){0};
    tuning t = {.source = s, .options = o, .arena = memory, .diags = diags, .answer = x, .messages = ""};
    t.axes = ARENA_ARRAY(memory, swept, o->axis_count + MOST_AXES + 1);
    t.next = ARENA_ARRAY(memory, program_point, peers_size(&o->team));
    if (o->axis_count > 0)
        memcpy(t.axes, o->axes, o->axis_count * sizeof *t.axes);
    x->axis_count = o->axis_count;
    find_passes(&t);
    if (o->axis_count == 0)
        find_axes(&t);
    bool good = begin(&t);
    *messages = t.messages;
    if (!good && !*t.messages) {
        diag *d = diag_add(diags, E_TUNE_NONE, SRC_NOWHERE, "the program as it is cannot be run: %s", t.refused);
        diag_help(diags, d, "give the tokens of its streams: --input STREAM=FILE, as visa-run takes them");
    }
    if (!good)
        return NULL;
    search(&t);
    if (t.lost) {
        diag *d = diag_add(diags, E_TUNE_NONE, SRC_NOWHERE, "another process ended before the answer was there");
        diag_help(diags, d, "run it again, or without mpirun: one process has the same answer");
        return NULL;
    }
    x->name = name_of(&t);
    x->axes = t.axes;
    x->points = t.points;
    x->point_count = t.point_count;
    return x;
}
