#include "runtime/machine/session.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/index_values.h"
#include "runtime/machine/launch.h"
#include "runtime/machine/machine.h"
#include "runtime/machine/parallel.h"
#include "runtime/tensor/compare.h"
#include "runtime/tensor/expected.h"
#include "runtime/tensor/judge.h"
#include "runtime/tensor/mismatch.h"
#include "runtime/tensor/port_data.h"
#include "runtime/tensor/tensor_file.h"
#include "runtime/timing/cycles.h"
#include "support/json_text.h"
#include "support/shown.h"

/* The second is a NaN in every float type: what it touches shows. */
enum { FIRST_POISON = 0xa5, SECOND_POISON = 0xff };

typedef struct session_port {
    const port *port;
    tensor_type type;
    tensor logical;
    unsigned char *physical, *covered; /* NULL where they are those of `logical` and all of it; */
    int64_t physical_bytes;
    port_copies copies; /* of the last run */
    int64_t undefined;  /* the first copy that differs, when it held the fill of every run so far; -1: none */
    bool ran;           /* once at least */
    bool bound;
    bool seeded;    /* with numbers of session_fill */
    bool is_buffer; /* bound to physical bytes: there is no logical tensor to check with */
} session_port;

struct session {
    const binary *binary;
    const binary_kernel *kernel;
    arena *arena;
    session_port *ports;
    session_options options;
    int runs, run;             /* of one session_run, at most; the one under way */
    const machine *machine;    /* its own */
    bool proven;               /* the last run: what it gave depends on nothing that another would change */
    uint64_t seed;             /* of session_fill */
    const struct drawn *drawn; /* for each port, of a check */
    bool draws;                /* any of them */
    finding_list found;
    expected *expected; /* under construction since session_expect; NULL: none */
    bool expects_order; /* its additions are in the machine's order */
};

static bool no_memory(diag_list *diags, const port *p)
{
    diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "not enough memory for port `%s`", p->name);
    return false;
}

/* A run touches all bytes of its ports, three times: as a file has them, as the machine has them, and of outputs what is compared with
 * them. More than there is would not be refused by the system, which gives memory when it is touched and ends whoever it likes when there
 * is none. */
static bool has_memory(const session *s, diag_list *diags)
{
    enum { COPIES = 3 };
    int64_t bytes = 0, most = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / COPIES;
    for (uint32_t i = 0; i < s->kernel->port_count && most > 0; i++) {
        bytes = s->ports[i].physical_bytes > most - bytes ? INT64_MAX : bytes + s->ports[i].physical_bytes;
        if (bytes > most) {
            diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE,
                     "the ports of kernel `%s` up to `%s` have more than %lld bytes, a third of this machine's memory", s->kernel->name,
                     s->ports[i].port->name, (long long)most);
            return false;
        }
    }
    return true;
}

/* Its type is the port's, which lives as long as the session. */
static bool new_logical(session *s, session_port *p)
{
    if (!tensor_new(&p->type, s->arena, &p->logical))
        return false;
    p->logical.type = p->type;
    return true;
}

session *session_open(const binary *b, const char *kernel, arena *a, diag_list *diags)
{
    const binary_kernel *k = binary_choose_kernel(b, kernel, diags);
    if (!k)
        return NULL;
    session *s = ARENA_NEW(a, session);
    *s = (session){.binary = b, .kernel = k, .arena = a, .ports = ARENA_ARRAY(a, session_port, k->port_count)};
    for (uint32_t i = 0; i < k->port_count; i++) {
        session_port *p = &s->ports[i];
        p->port = &k->ports[i];
        p->type = port_logical_type(p->port, k->axes, k->axis_count, a);
        p->physical_bytes = port_physical_bytes(p->port, k->axes);
        if (p->physical_bytes < 0 || tensor_elements(&p->type) < 0) {
            diag_add(diags, E_RUN_ACCESS, SRC_NOWHERE, "port `%s` is too large to be run", p->port->name);
            return NULL;
        }
    }
    return s;
}

void session_close(session *s)
{
    if (s)
        expected_close(s->expected);
    for (uint32_t i = 0; s && i < s->kernel->port_count; i++) {
        tensor_free(&s->ports[i].logical);
        free(s->ports[i].physical);
        free(s->ports[i].covered);
    }
}

static session_port *find_port(session *s, const char *name, size_t bytes, port_direction direction, diag_list *diags)
{
    session_port *only = NULL;
    unsigned count = 0;
    const char *names = "";
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        const port *p = s->ports[i].port;
        if (p->direction != direction)
            continue;
        only = &s->ports[i];
        count++;
        names = arena_printf(s->arena, "%s%s%s", names, *names ? ", " : "", p->name);
        if (bytes && strlen(p->name) == bytes && memcmp(p->name, name, bytes) == 0)
            return &s->ports[i];
    }
    if (bytes == 0 && count == 1)
        return only;
    diag *d = bytes ? diag_add(diags, E_PORT, SRC_NOWHERE, "kernel `%s` has no %s `%.*s`", s->kernel->name,
                               direction == PORT_IN ? "input" : "output", (int)bytes, name)
                    : diag_add(diags, E_PORT, SRC_NOWHERE, "kernel `%s` has %u %s; name one", s->kernel->name, count,
                               direction == PORT_IN ? "inputs" : "outputs");
    diag_help(diags, d, "it has: %s%s", *names ? names : "none",
              s->binary->program_count > 0 ? arena_printf(s->arena, "; --kernel=%s is a stream program", s->binary->programs[0].name) : "");
    return NULL;
}

/* ---- what a user writes: NAME[AXES]=FILE, NAME:buffer=FILE ---- */

typedef struct binding {
    const char *name, *axes, *file;
    size_t name_bytes, axes_bytes;
    bool buffer;
} binding;

static binding parse_binding(const char *spec)
{
    binding b = {.file = spec};
    const char *equals = strchr(spec, '=');
    if (!equals)
        return b;
    b.name = spec;
    b.file = equals + 1;
    b.name_bytes = (size_t)(equals - spec);
    const char *open = memchr(spec, '[', b.name_bytes), *colon = memchr(spec, ':', b.name_bytes);
    if (open && equals[-1] == ']') {
        b.axes = open + 1;
        b.axes_bytes = (size_t)(equals - 1 - b.axes);
        b.name_bytes = (size_t)(open - spec);
    } else if (colon && b.name_bytes - (size_t)(colon - spec) == 7 && memcmp(colon, ":buffer", 7) == 0) {
        b.buffer = true;
        b.name_bytes = (size_t)(colon - spec);
    }
    return b;
}

/* The next name of a list that commas and blanks separate, outside the brackets of a window's name; NULL: none. */
static char *next_axis(char **rest)
{
    char *name = *rest + strspn(*rest, ", "), *end = name;
    for (int depth = 0; *end && (depth > 0 || !strchr(", ", *end)); end++)
        depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
    *rest = end + (*end != '\0');
    *end = '\0';
    return *name ? name : NULL;
}

/* order[i]: the place in the file's axes of the port's axis i. Where `named` is not NULL it counts those that are named, and axes of size
 * 1, whose order is without meaning, may be left out: they come last. */
static bool parse_order(session *s, const session_port *p, const binding *b, int *order, int *named, diag_list *diags)
{
    char *list = arena_strndup(s->arena, b->axes, b->axes_bytes), *rest = list;
    int place = 0;
    for (int i = 0; i < p->type.rank; i++)
        order[i] = -1;
    for (char *name = next_axis(&rest); name; name = next_axis(&rest), place++) {
        int found = -1;
        for (int i = 0; i < p->type.rank; i++)
            if (strcmp(p->type.names[i], name) == 0 && order[i] < 0)
                found = i;
        if (found < 0) {
            diag_add(diags, E_PORT, SRC_NOWHERE, "port `%s` has no axis `%s`, or it is named twice; its axes are %s", p->port->name, name,
                     tensor_shape_text(&p->type, s->arena));
            return false;
        }
        order[found] = place;
    }
    bool whole = true;
    for (int i = 0, last = place; i < p->type.rank; i++) {
        whole = whole && (order[i] >= 0 || (named && p->type.shape[i] == 1));
        order[i] = order[i] < 0 ? last++ : order[i];
    }
    if (named)
        *named = place;
    if (!whole)
        diag_add(diags, E_PORT, SRC_NOWHERE, "port `%s` has %d axes, %d are named", p->port->name, p->type.rank, place);
    return whole;
}

static bool read_ordered(session *s, session_port *p, const binding *b, diag_list *diags)
{
    int *order = ARENA_ARRAY(s->arena, int, (size_t)p->type.rank + 1);
    int named;
    if (!parse_order(s, p, b, order, &named, diags))
        return false;
    int64_t *shape = ARENA_ARRAY(s->arena, int64_t, (size_t)p->type.rank + 1);
    const char **names = ARENA_ARRAY(s->arena, const char *, (size_t)p->type.rank + 1);
    for (int i = 0; i < p->type.rank; i++) {
        shape[order[i]] = p->type.shape[i];
        names[order[i]] = p->type.names[i];
    }
    tensor_type stored = {p->type.dtype, named, shape, names};
    tensor file;
    if (!tensor_file_read(b->file, &stored, s->options.rounds, s->arena, diags, &file))
        return false;
    file.type = (tensor_type){p->type.dtype, p->type.rank, shape, names};
    bool ok = tensor_permute(&file, order, s->arena, &p->logical);
    tensor_free(&file);
    return ok || no_memory(diags, p->port);
}

static bool read_buffer(session *s, session_port *p, const char *file, diag_list *diags)
{
    tensor raw;
    int64_t shape[1] = {p->physical_bytes};
    tensor_type bytes = {DTYPE_F8E4M3, 1, shape, NULL}; /* any 8 bits: the type whose files are bit patterns */
    if (!tensor_file_read(file, &bytes, false, s->arena, diags, &raw))
        return false;
    p->physical = raw.bytes;
    p->is_buffer = true;
    return true;
}

bool session_input(session *s, const char *spec, diag_list *diags)
{
    binding b = parse_binding(spec);
    session_port *p = find_port(s, b.name, b.name_bytes, PORT_IN, diags);
    if (!p)
        return false;
    if (p->bound) {
        diag *d = diag_add(diags, E_PORT, SRC_NOWHERE, "the input `%s` is given twice, the second time from %s", p->port->name,
                           shown_input(b.file, s->arena));
        diag_help(diags, d, "give it once");
        return false;
    }
    if (b.buffer)
        p->bound = read_buffer(s, p, b.file, diags);
    else if (b.axes)
        p->bound = read_ordered(s, p, &b, diags);
    else
        p->bound = tensor_file_read(b.file, &p->type, s->options.rounds, s->arena, diags, &p->logical);
    return p->bound;
}

tensor *session_logical(session *s, uint32_t number, diag_list *diags)
{
    session_port *p = &s->ports[number];
    if (!p->logical.bytes && !new_logical(s, p)) {
        no_memory(diags, p->port);
        return NULL;
    }
    p->bound = p->bound || p->port->direction == PORT_IN;
    return &p->logical;
}

static unsigned workers_of(const session *s)
{
    return parallel_workers(s->options.threads);
}

bool session_fill(session *s, uint64_t seed, diag_list *diags)
{
    if (!has_memory(s, diags))
        return false;
    s->seed = seed;
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        session_port *p = &s->ports[i];
        if (p->port->direction != PORT_IN || p->bound)
            continue;
        if (!new_logical(s, p))
            return no_memory(diags, p->port);
        index_values rows;
        if (index_values_of_port(s->kernel, i, s->arena, &rows))
            tensor_fill_multiples(&p->logical, seed + i, &rows);
        else
            tensor_fill_random(&p->logical, seed + i, workers_of(s));
        p->bound = p->seeded = true;
    }
    return true;
}

/* ---- runs ---- */

void session_set_options(session *s, const session_options *options)
{
    s->options = *options;
}

/* A run that is proven so far is the last one. */
static void run_progress(void *of, size_t done, size_t total)
{
    session *s = of;
    int64_t each = (int64_t)total, runs = machine_is_proven(s->machine) ? s->run + 1 : s->runs;
    s->options.progress(s->options.progress_context, s->run * each + (int64_t)done, runs * each);
}

/* The port is where it is in the caller's HBM or DM. */
static bool is_shared(const session *s, const session_port *p)
{
    return (s->options.hbm && p->port->space == PORT_HBM) || (s->options.dm && p->port->space == PORT_DM);
}

/* Are the bytes of the logical tensor those of the port? Then there is no other copy of them. */
static bool is_its_bytes(const session_port *p)
{
    return !p->is_buffer && port_is_in_order(p->port) && dtype_row_of(p->port->dtype)->bits >= 8;
}

/* As the machine has them: of inputs for the time of a load. False: no memory. */
static bool new_physical(session_port *p, unsigned char poison)
{
    free(p->physical);
    p->physical = malloc((size_t)p->physical_bytes + 1);
    if (p->physical)
        memset(p->physical, poison, (size_t)p->physical_bytes);
    return p->physical;
}

static bool take_port(session *s, machine *m, uint32_t i, unsigned char poison, diag_list *diags);

static bool load_input(const session *s, machine *m, uint32_t i, unsigned char poison, diag_list *diags)
{
    session_port *p = &s->ports[i];
    if (p->is_buffer)
        return machine_port_write(m, i, p->physical, (size_t)p->physical_bytes, diags);
    if (is_its_bytes(p))
        return machine_port_write(m, i, p->logical.bytes, p->logical.size, diags);
    bool packed = new_physical(p, poison) && port_pack(p->port, s->kernel->axes, s->kernel->axis_count, p->logical.bytes, p->physical);
    bool done = packed ? machine_port_write(m, i, p->physical, (size_t)p->physical_bytes, diags) : no_memory(diags, p->port);
    free(p->physical);
    p->physical = NULL;
    return done;
}

static bool load_inputs(session *s, machine *m, unsigned char poison, diag_list *diags)
{
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        session_port *p = &s->ports[i];
        if (p->port->direction != PORT_IN)
            continue;
        if (is_shared(s, p)) {
            if (s->options.compared && !take_port(s, m, i, poison, diags))
                return false;
            continue;
        }
        if (!load_input(s, m, i, poison, diags))
            return false;
    }
    return true;
}

/* A copy that differs from the first one holds a value, or, in every run, what the memory was filled with. */
static void note_disagreement(session_port *p, unsigned char poison)
{
    int64_t bits = dtype_row_of(p->port->dtype)->bits, at = p->copies.first * bits / 8;
    for (int64_t i = 0; i < (bits + 7) / 8; i++)
        if (p->physical[at + i] != poison) {
            p->undefined = -1;
            return;
        }
    if (!p->ran || p->undefined != p->copies.first)
        p->undefined = p->ran ? -1 : p->copies.first;
}

/* Every copy of an element, in every slice and cluster, holds it, or the first place where it does not is named. */
static bool copies_agree(session *s, diag_list *diags)
{
    bool agree = true;
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        session_port *p = &s->ports[i];
        if (p->port->direction != PORT_OUT || p->copies.disagreements == 0)
            continue;
        const char *place = mismatch_position_text(s->kernel, p->port, p->copies.first, s->arena);
        if (p->undefined == p->copies.first)
            diag_add(diags, E_RUN_UNDEFINED, SRC_NOWHERE,
                     "output `%s` is not written as declared: %lld cells hold what the memory was filled with, first %s", p->port->name,
                     (long long)p->copies.disagreements, place);
        else
            diag_add(diags, E_CHECK_MISMATCH, SRC_NOWHERE, "%s: %lld copies of broadcast elements differ from the first, first %s",
                     p->port->name, (long long)p->copies.disagreements, place);
        agree = false;
    }
    return agree;
}

/* The logical tensor of what the machine holds. */
static bool take_port(session *s, machine *m, uint32_t i, unsigned char poison, diag_list *diags)
{
    session_port *p = &s->ports[i];
    int64_t elements = tensor_elements(&p->type);
    if (!p->logical.bytes && !new_logical(s, p))
        return no_memory(diags, p->port);
    if (is_its_bytes(p))
        return machine_port_read(m, i, p->logical.bytes, p->logical.size, diags);
    if (!p->covered)
        p->covered = malloc((size_t)elements + 1);
    if (!p->covered || !new_physical(p, poison))
        return no_memory(diags, p->port);
    memset(p->logical.bytes, 0, p->logical.size);
    if (!machine_port_read(m, i, p->physical, (size_t)p->physical_bytes, diags))
        return false;
    if (!port_unpack(p->port, s->kernel->axes, s->kernel->axis_count, p->physical, p->logical.bytes, p->covered, &p->copies))
        return no_memory(diags, p->port);
    if (p->copies.disagreements > 0)
        note_disagreement(p, poison);
    p->ran = true;
    return true;
}

static bool run_once(session *s, unsigned char poison, context first, diag_list *diags)
{
    machine_options options = {.poison = poison,
                               .first_context = first,
                               .threads = s->options.threads,
                               .cpu = s->options.cpu,
                               .prove = s->runs > 1,
                               .hbm = s->options.hbm,
                               .dm = s->options.dm,
                               .progress = s->options.progress ? run_progress : NULL,
                               .progress_context = s};
    machine *m = machine_new(s->binary->target, s->kernel, s->arena, &options);
    s->machine = m;
    bool ok = load_inputs(s, m, poison, diags) && machine_run(m, diags);
    for (uint32_t i = 0; ok && i < s->kernel->port_count; i++)
        if (s->ports[i].port->direction == PORT_OUT && (!is_shared(s, &s->ports[i]) || s->options.compared))
            ok = take_port(s, m, i, poison, diags);
    s->proven = ok && machine_is_proven(m);
    machine_free(m);
    s->machine = NULL;
    s->run++;
    return ok;
}

/* The first element of an output that is not the same in both runs. */
static bool outputs_are_defined(session *s, const tensor *before, diag_list *diags)
{
    bool defined = true;
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        session_port *p = &s->ports[i];
        if (p->port->direction != PORT_OUT || memcmp(before[i].bytes, p->logical.bytes, p->logical.size) == 0)
            continue;
        compare_result r;
        compare_elements(&p->type, before[i].bytes, p->logical.bytes, NULL, p->covered, workers_of(s), &r);
        diag *d = diag_add(diags, E_RUN_UNDEFINED, SRC_NOWHERE, "output `%s` depends on memory that was never written, first at %s",
                           p->port->name, compare_place_text(&p->type, r.first_mismatch < 0 ? 0 : r.first_mismatch, s->arena));
        diag_note(diags, d, SRC_NOWHERE, "two runs with different bytes in unwritten memory gave %g and %g", r.reference, r.machine);
        diag_help(diags, d, "write all that is read, or read less: padding that is summed needs a value");
        defined = false;
    }
    return defined;
}

bool session_cycles(session *s, uint64_t most, uint64_t *cycles, diag_list *diags)
{
    return cycles_within(s->binary->target, s->kernel, most, s->arena, cycles, diags);
}

bool session_run(session *s, bool twice, diag_list *diags)
{
    if (!has_memory(s, diags))
        return false;
    for (uint32_t i = 0; i < s->kernel->port_count; i++)
        s->ports[i].undefined = -1;
    s->runs = twice ? 2 : 1;
    s->run = 0;
    if (!run_once(s, FIRST_POISON, CONTEXT_MAIN, diags))
        return false;
    for (uint32_t i = 0; s->proven && i < s->kernel->port_count; i++)
        s->ports[i].undefined = -1;
    if (!twice || s->proven)
        return copies_agree(s, diags);
    tensor *before = ARENA_ARRAY(s->arena, tensor, s->kernel->port_count);
    bool ok = true;
    for (uint32_t i = 0; i < s->kernel->port_count && ok; i++)
        if (s->ports[i].port->direction == PORT_OUT) {
            before[i] = s->ports[i].logical;
            ok = new_logical(s, &s->ports[i]) || no_memory(diags, s->ports[i].port);
        }
    ok = ok && run_once(s, SECOND_POISON, CONTEXT_DMA, diags) && outputs_are_defined(s, before, diags) && copies_agree(s, diags);
    for (uint32_t i = 0; i < s->kernel->port_count; i++)
        tensor_free(&before[i]);
    return ok;
}

bool session_found_mismatch(const diag_list *diags)
{
    bool found = false;
    for (size_t i = 0; i < diags->count; i++) {
        bool differs =
            diags->items[i]->id == E_RUN_UNDEFINED || diags->items[i]->id == E_CHECK_MISMATCH || diags->items[i]->id == E_CHECK_NOTHING;
        if (diags->items[i]->severity == DIAG_ERROR && !differs)
            return false;
        found = found || differs;
    }
    return found;
}

/* ---- the check ---- */

/* The reference's tensor of a port has the port's axes in the port's order: the einsum section is built that way, and a
 * binary where it is not is refused. */
static bool same_shape(const session *s, uint32_t t, const session_port *p)
{
    const einsum_tensor *e = &s->kernel->einsum.tensors[t];
    bool same = (int)e->rank == p->type.rank && e->dtype == p->type.dtype;
    for (uint32_t i = 0; same && i < e->rank; i++)
        same = strcmp(s->kernel->axes[e->axes[i]].name, p->type.names[i]) == 0 && s->kernel->axes[e->axes[i]].size == p->type.shape[i];
    return same;
}

/* What of a check is the same for all outputs. */
typedef struct check {
    expected *expected;
    bool random;        /* all inputs are seeded numbers */
    double false_alarm; /* an output's share */
    bool agrees;
    const char **report;
} check;

static bool all_inputs_are_seeded(const session *s)
{
    bool seeded = true;
    for (uint32_t i = 0; i < s->kernel->port_count; i++)
        seeded = seeded && (s->ports[i].seeded || s->ports[i].port->direction == PORT_OUT);
    return seeded;
}

/* "; together .." or why it is not judged; *wrong: what rounding does not explain, else NULL. False: no memory. */
static bool judge_port(session *s, const session_port *p, const check *c, const expected_tensor *x, const char **said, const char **wrong,
                       diag_list *diags)
{
    *said = "";
    *wrong = NULL;
    if (!x->bounds || dtype_row_of(p->type.dtype)->kind != DTYPE_KIND_FLOAT)
        return true;
    if (!x->sums || !c->random) {
        *said = c->random ? "; not judged together: its errors may depend on each other"
                          : "; not judged together: inputs from files may be no random ones";
        return true;
    }
    judge_case of = {&p->type, p->logical.bytes, x->sums, x->sum_bounds, p->covered, x->roundings, c->false_alarm};
    judge_verdict verdict;
    if (!judge_output(&of, &verdict))
        return no_memory(diags, p->port);
    const char *text = judge_text(&of, &verdict, s->arena);
    *said = arena_printf(s->arena, "; %s", text);
    *wrong = verdict.worst > 1 ? text : NULL;
    return true;
}

static bool compare_output(session *s, const session_port *p, uint32_t t, check *c, diag_list *diags)
{
    expected_tensor x = expected_of(c->expected, t);
    compare_result r;
    compare_elements(&p->type, x.values, p->logical.bytes, x.bounds, p->covered, workers_of(s), &r);
    const char *line = compare_text(p->port->name, &p->type, &r, s->arena), *said = "", *wrong = NULL;
    if (r.has_allowance && !judge_port(s, p, c, &x, &said, &wrong, diags))
        return false;
    *c->report = arena_printf(s->arena, "%s%s: %s%s\n", *c->report, s->kernel->name, line, said);
    bool agrees = r.mismatches == 0 && !wrong && r.compared > 0;
    int64_t undecided = r.both_nan + r.both_infinite + r.unbounded + r.uncovered;
    finding one = {p->port->name, agrees, r.compared, r.mismatches, undecided, r.has_allowance ? r.worst_fraction : -1};
    ARENA_PUSH(s->arena, s->found.items, s->found.count, s->found.capacity, one);
    c->agrees = c->agrees && agrees;
    if (r.mismatches > 0) {
        mismatch m = {s->binary->target, s->kernel, p->port, &p->logical, x.values, x.bounds, p->covered};
        diag *d = diag_add(diags, E_CHECK_MISMATCH, SRC_NOWHERE, "%s", line);
        mismatch_explain(&m, diags, d);
        if (wrong)
            diag_note(diags, d, SRC_NOWHERE, "together they are %s", wrong);
    } else if (wrong) {
        diag *d =
            diag_add(diags, E_CHECK_MISMATCH, SRC_NOWHERE, "%s: every value is within its bound, but they are %s", p->port->name, wrong);
        diag_help(diags, d, "--reference-order=hardware shows which values differ");
    } else if (r.compared == 0) {
        diag *d = diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "%s", line);
        if (r.both_nan + r.both_infinite + r.unbounded > 0)
            diag_help(diags, d, "give inputs whose sums are finite numbers; without --input they are in [-1, 1)");
    }
    return true;
}

static bool compare_outputs(session *s, check *c, diag_list *diags)
{
    const einsum *e = &s->kernel->einsum;
    c->agrees = true;
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        session_port *p = &s->ports[i];
        uint32_t t = 0;
        while (t < e->tensor_count && e->tensors[t].port != (int32_t)i)
            t++;
        if (t == e->tensor_count || !same_shape(s, t, p)) {
            diag_add(diags, E_BIN_FORMAT, SRC_NOWHERE, "section .visa.einsum.%s has no tensor that fits port `%s`", s->kernel->name,
                     p->port->name);
            return false;
        }
        if (p->port->direction == PORT_OUT && !compare_output(s, p, t, c, diags))
            return false;
    }
    return true;
}

/* The logical bytes of the inputs, by einsum tensor; NULL: it is none. */
static unsigned char **input_bytes(session *s, bool *is_input)
{
    const einsum *e = &s->kernel->einsum;
    unsigned char **bytes = ARENA_ARRAY(s->arena, unsigned char *, (size_t)e->tensor_count + 1);
    for (uint32_t t = 0; t < e->tensor_count; t++) {
        int32_t number = e->tensors[t].port;
        is_input[t] = number >= 0 && s->ports[number].port->direction == PORT_IN;
        bytes[t] = is_input[t] ? s->ports[number].logical.bytes : NULL;
    }
    return bytes;
}

const finding_list *session_findings(const session *s)
{
    return &s->found;
}

/* ---- other launches ---- */

enum { MOST_LAUNCHES = 8, DRAWS = 64 };

/* Of a port: one number that was made up, and that a condition reads, or that says which row is moved, or how many. */
typedef struct drawn {
    bool is;
    index_values of;
} drawn;

/* Once for all draws: each answer walks all statements. */
static void find_drawn(session *s)
{
    drawn *all = ARENA_ARRAY(s->arena, drawn, (size_t)s->kernel->port_count + 1);
    s->draws = false;
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        drawn *d = &all[i];
        d->is = s->ports[i].seeded && index_values_of_port(s->kernel, i, s->arena, &d->of) &&
                (d->of.counts || tensor_elements(&s->ports[i].type) == 1);
        s->draws = s->draws || d->is;
    }
    s->drawn = all;
}

/* A session next to this one: its inputs, but for drawn numbers, which are those of draw `draw`. */
static session *other_launch(session *s, uint64_t draw, diag_list *diags)
{
    session *t = ARENA_NEW(s->arena, session);
    *t = *s;
    t->found = (finding_list){0};
    t->options.progress = NULL;
    t->ports = ARENA_ARRAY(s->arena, session_port, s->kernel->port_count);
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        session_port *p = &t->ports[i];
        *p = (session_port){.port = s->ports[i].port,
                            .type = s->ports[i].type,
                            .physical_bytes = s->ports[i].physical_bytes,
                            .bound = s->ports[i].bound,
                            .seeded = s->ports[i].seeded,
                            .logical = s->ports[i].logical};
        const drawn *d = &s->drawn[i];
        if (d->is || p->port->direction == PORT_OUT)
            p->logical = (tensor){0};
        if (d->is && !new_logical(t, p)) {
            no_memory(diags, p->port);
            return NULL;
        }
        if (d->is)
            tensor_fill_multiples(&p->logical, s->seed + i + draw * UINT64_C(0x9e3779b97f4a7c15), &d->of);
    }
    return t;
}

static void other_launch_end(const session *s, session *t)
{
    for (uint32_t i = 0; t && i < s->kernel->port_count; i++)
        if (t->ports[i].logical.bytes == s->ports[i].logical.bytes)
            t->ports[i].logical = (tensor){0}; /* the other one's */
    session_close(t);
}

/* The bytes of every input, as many as a guard may read at least. */
static const unsigned char *const *numbers_of(const session *s)
{
    enum { MOST_BYTES = 8 };
    const unsigned char **numbers = ARENA_ARRAY(s->arena, const unsigned char *, (size_t)s->kernel->port_count + 1);
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        const tensor *t = &s->ports[i].logical;
        numbers[i] = s->ports[i].port->direction == PORT_IN ? t->bytes : NULL;
        if (numbers[i] && t->size < MOST_BYTES)
            numbers[i] = memcpy(ARENA_ARRAY(s->arena, unsigned char, MOST_BYTES), t->bytes, t->size);
    }
    return numbers;
}

/* "n = 6, m = 0" of those that are not this session's. */
static const char *numbers_text(const session *s, const session *t)
{
    const char *text = "";
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        const session_port *p = &t->ports[i];
        uint64_t bits = 0;
        if (p->port->direction == PORT_OUT || p->logical.bytes == s->ports[i].logical.bytes)
            continue;
        for (size_t byte = p->logical.size < 8 ? p->logical.size : 8; byte-- > 0;)
            bits = bits << 8 | p->logical.bytes[byte];
        long long number = p->logical.size == 4 ? (long long)(int32_t)(uint32_t)bits : (long long)bits;
        text = arena_printf(s->arena, "%s%s%s = %lld", text, *text ? ", " : "", p->port->name, number);
        if (number < 0) /* the binary does not say whether its type has a sign */
            text = arena_printf(s->arena, "%s (%llu without a sign)", text, (unsigned long long)bits);
    }
    return text;
}

/* What is to be seen once: each condition that holds, and after these for each port whose number is drawn the largest, or a row that is
 * not the first. How much is new with these inputs; `seen` has it then. */
static size_t see(const session *s, const session *t, bool *seen)
{
    size_t more = launch_hold(s->kernel, numbers_of(t), seen), conditions = launch_conditions(s->kernel);
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        const index_values *of = &s->drawn[i].of;
        int32_t number;
        if (seen[conditions + i] || !s->drawn[i].is || t->ports[i].logical.size < sizeof number)
            continue;
        memcpy(&number, t->ports[i].logical.bytes, sizeof number);
        seen[conditions + i] = of->counts ? number == (of->count - 1) * of->unit : number > 0;
        more += seen[conditions + i];
    }
    return more;
}

/* The one of many draws with which most is seen that was not yet; NULL: none. */
static session *next_launch(session *s, const bool *seen, size_t things, uint64_t from, bool *ok, diag_list *diags)
{
    session *best = NULL;
    size_t most = 0;
    for (uint64_t draw = from; draw < from + DRAWS && *ok; draw++) {
        bool *then = ARENA_ARRAY(s->arena, bool, things + 1);
        memcpy(then, seen, things * sizeof *then);
        session *t = other_launch(s, draw, diags);
        size_t more = t ? see(s, t, then) : 0;
        *ok = t != NULL;
        if (more > most) {
            other_launch_end(s, best);
            best = t;
            most = more;
        } else {
            other_launch_end(s, t);
        }
    }
    return best;
}

/* Runs and compares it; what differs, or is undefined, is reported with its numbers. False: the run is at fault. */
static bool check_launch(session *s, session *t, const check *of, bool *agrees, diag_list *diags)
{
    const char *unsaid = "";
    bool *is_input = ARENA_ARRAY(s->arena, bool, s->kernel->einsum.tensor_count);
    check c = {.expected = of->expected, .random = of->random, .false_alarm = of->false_alarm, .report = &unsaid};
    size_t before = diags->count;
    bool ran = session_run(t, true, diags);
    bool ok = ran && expected_run(of->expected, input_bytes(t, is_input), workers_of(s), diags) && compare_outputs(t, &c, diags);
    for (size_t i = before; i < diags->count; i++)
        diag_note(diags, diags->items[i], SRC_NOWHERE, "in a launch with %s", numbers_text(s, t));
    for (size_t i = 0; i < t->found.count && i < s->found.count; i++) {
        s->found.items[i].agrees = s->found.items[i].agrees && t->found.items[i].agrees;
        s->found.items[i].differing += t->found.items[i].differing;
    }
    *agrees = ok && c.agrees;
    return ok || (!ran && session_found_mismatch(diags));
}

/* What the run that was compared left out, for the numbers that it had, is run and compared in others, as far as draws reach; the rest is
 * reported. A plan's kernels have their numbers from the plan. */
static bool check_launches(session *s, check *c, diag_list *diags)
{
    size_t conditions = launch_conditions(s->kernel), things = conditions + s->kernel->port_count, never = 0;
    if (s->options.hbm || s->options.dm || (conditions == 0 && !s->draws))
        return true;
    bool *seen = ARENA_ARRAY(s->arena, bool, things + 1), ok = true;
    see(s, s, seen);
    const char *launches = "";
    for (uint64_t i = 0; i < MOST_LAUNCHES && ok && c->agrees; i++) {
        session *t = next_launch(s, seen, things, 1 + i * DRAWS, &ok, diags);
        if (!t)
            break;
        launches = arena_printf(s->arena, "%s%s%s", launches, *launches ? "; " : "", numbers_text(s, t));
        see(s, t, seen);
        ok = check_launch(s, t, c, &c->agrees, diags);
        if (!c->agrees)
            *c->report = arena_printf(s->arena, "%s%s: a launch with %s does not agree\n", *c->report, s->kernel->name, numbers_text(s, t));
        other_launch_end(s, t);
    }
    for (size_t i = 0; i < conditions; i++)
        never += !seen[i];
    if (*launches && c->agrees)
        *c->report = arena_printf(s->arena, "%s%s: other launches agree, too: %s\n", *c->report, s->kernel->name, launches);
    if (never > 0 && c->agrees)
        *c->report = arena_printf(s->arena, "%s%s: %zu of %zu conditions on numbers did not hold: what they guard was not run\n",
                                  *c->report, s->kernel->name, never, conditions);
    return ok;
}

void session_expect(session *s, bool machine_order)
{
    const einsum *e = &s->kernel->einsum;
    if (s->expected || e->tensor_count == 0 || workers_of(s) == 1)
        return;
    bool *is_input = ARENA_ARRAY(s->arena, bool, e->tensor_count);
    input_bytes(s, is_input);
    s->expected = expected_begin(e, is_input, s->kernel->name, machine_order, s->arena);
    s->expects_order = machine_order;
}

/* The reference that session_expect began if it has this order, otherwise a new one. NULL with a diagnostic. */
static expected *ready_expected(session *s, const bool *is_input, bool machine_order, diag_list *diags)
{
    expected *x = s->expected;
    s->expected = NULL;
    bool begun = x && s->expects_order == machine_order;
    if (begun && expected_ready(x, diags))
        return x;
    expected_close(x);
    return begun ? NULL : expected_open(&s->kernel->einsum, is_input, s->kernel->name, machine_order, s->arena, diags);
}

bool session_check(session *s, bool machine_order, bool *agrees, const char **report, diag_list *diags)
{
    *report = "";
    s->found = (finding_list){0};
    *agrees = false;
    uint32_t outputs = 0;
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        outputs += s->ports[i].port->direction == PORT_OUT;
        if (s->ports[i].is_buffer) {
            diag_add(diags, E_PORT, SRC_NOWHERE, "port `%s` was given physical bytes; a check needs logical tensors",
                     s->ports[i].port->name);
            return false;
        }
    }
    const einsum *e = &s->kernel->einsum;
    if (outputs == 0) {
        diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "kernel `%s` has no output", s->kernel->name);
        return true;
    }
    if (e->tensor_count == 0) {
        diag_add(diags, E_BIN_FORMAT, SRC_NOWHERE, "the binary has no section .visa.einsum.%s to check against", s->kernel->name);
        return false;
    }
    bool *is_input = ARENA_ARRAY(s->arena, bool, e->tensor_count);
    unsigned char **inputs = input_bytes(s, is_input);
    expected *x = ready_expected(s, is_input, machine_order, diags);
    if (!x)
        return false;
    find_drawn(s);
    double launches = s->draws ? MOST_LAUNCHES + 1 : 1;
    check c = {.expected = x, .random = all_inputs_are_seeded(s), .false_alarm = JUDGE_FALSE_ALARM / outputs / launches, .report = report};
    bool ok = expected_run(x, inputs, workers_of(s), diags) && compare_outputs(s, &c, diags) && check_launches(s, &c, diags);
    *agrees = c.agrees;
    *report = arena_printf(s->arena, "%sreference: built in %.1f ms\n", *report, expected_build_milliseconds(x));
    expected_close(x);
    return ok;
}

/* The port that is written, NULL when there is none; from[i]: the port's axis that is axis i of the file, where the axes are named. */
static session_port *output_port(session *s, const binding *b, int **from, diag_list *diags)
{
    session_port *p = find_port(s, b->name, b->name_bytes, PORT_OUT, diags);
    if (!p || !b->axes)
        return p;
    int *order = ARENA_ARRAY(s->arena, int, (size_t)p->type.rank + 1);
    *from = ARENA_ARRAY(s->arena, int, (size_t)p->type.rank + 1);
    if (!parse_order(s, p, b, order, NULL, diags))
        return NULL;
    for (int i = 0; i < p->type.rank; i++)
        (*from)[order[i]] = i;
    return p;
}

bool session_has_output(session *s, const char *spec, diag_list *diags)
{
    binding b = parse_binding(spec);
    int *from;
    return output_port(s, &b, &from, diags) != NULL;
}

static bool put_ordered(session *s, const session_port *p, const int *from, const char *file, output *to, diag_list *diags)
{
    tensor stored;
    if (!tensor_permute(&p->logical, from, s->arena, &stored))
        return no_memory(diags, p->port);
    bool ok = tensor_file_put(file, &stored, to, s->arena, diags);
    tensor_free(&stored);
    return ok;
}

bool session_output(session *s, const char *spec, output *to, diag_list *diags)
{
    binding b = parse_binding(spec);
    int *from;
    session_port *p = output_port(s, &b, &from, diags);
    if (!p)
        return false;
    if (b.axes)
        return put_ordered(s, p, from, b.file, to, diags);
    if (!b.buffer)
        return tensor_file_put(b.file, &p->logical, to, s->arena, diags);
    int64_t shape[1] = {p->physical_bytes};
    tensor raw = {{DTYPE_F8E4M3, 1, shape, NULL}, is_its_bytes(p) ? p->logical.bytes : p->physical, (size_t)p->physical_bytes};
    return tensor_file_put(b.file, &raw, to, s->arena, diags);
}

const char *session_file(const char *spec, arena *a)
{
    return tensor_file_path(parse_binding(spec).file, a);
}

const char *session_describe(const session *s)
{
    const char *text = "";
    for (uint32_t i = 0; i < s->kernel->port_count; i++) {
        const session_port *p = &s->ports[i];
        text = arena_printf(s->arena, "%s%s %s: %s %s\n", text, p->port->direction == PORT_IN ? "in" : "out", p->port->name,
                            dtype_row_of(p->type.dtype)->name, tensor_shape_text(&p->type, s->arena));
    }
    return text;
}

static json_t *json_of_port(const session_port *p)
{
    json_t *shape = json_array(), *axes = json_array();
    for (int axis = 0; axis < p->type.rank; axis++) {
        json_array_append_new(shape, json_integer(p->type.shape[axis]));
        json_array_append_new(axes, json_string(p->type.names[axis]));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", p->port->name, "direction", p->port->direction == PORT_IN ? "in" : "out", "dtype",
                     dtype_row_of(p->type.dtype)->name, "shape", shape, "axes", axes);
}

const char *session_describe_json(const session *s)
{
    json_t *ports = json_array(), *root = json_pack("{s:i, s:s}", "format", 1, "kernel", s->kernel->name);
    for (uint32_t i = 0; i < s->kernel->port_count; i++)
        json_array_append_new(ports, json_of_port(&s->ports[i]));
    json_object_set_new(root, "ports", ports);
    return json_dump_text(root, JSON_INDENT(2), s->arena);
}
