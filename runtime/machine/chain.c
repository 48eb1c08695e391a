#include "runtime/machine/chain.h"

#include <assert.h>
#include <stdio.h>

/* What a CHAIN_STAGE row's second column is made of. */
enum { NOTHING = 0, PACKETS = 1 << STREAM_PACKETS, FLITS = 1 << STREAM_FLITS, PAIRS = 1 << STREAM_PAIRS };
enum { PARTIALS = 1 << STREAM_PARTIALS, BEATS = 1 << STREAM_BEATS, LAST = 1 << STREAM_FORMS };

/* Sets of commands, a bit for each; of up to 16 that are listed. */
#define IN_SET(op) (UINT64_C(1) << (op))
#define SET_OF(...) SET_OF_16(__VA_ARGS__, REST_OF_16)
#define REST_OF_16 NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE
#define SET_OF_16(...) SET_OF_THESE(__VA_ARGS__)
#define SET_OF_THESE(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ...) \
    (IN_SET(a) | IN_SET(b) | IN_SET(c) | IN_SET(d) | IN_SET(e) | IN_SET(f) | IN_SET(g) | IN_SET(h) | IN_SET(i) | IN_SET(j) | IN_SET(k) | \
     IN_SET(l) | IN_SET(m) | IN_SET(n) | IN_SET(o) | IN_SET(p))
#define FIRST_OF(...) FIRST_OF_TWO(__VA_ARGS__, NONE)
#define FIRST_OF_TWO(first, ...) first
enum { NONE = 63 };
_Static_assert((int)COMMAND_OP_COUNT <= (int)NONE, "a set of commands is one word");

/* The stages of every engine, and the commands that belong to each, its first one among them. */
typedef struct member {
    const stage_type *type;
    unsigned takes;
    command_op first;
    uint64_t commands;
} member;

static const member members[] = {
#define CHAIN_STAGE(name, takes, ...) {&stage_##name, takes, FIRST_OF(__VA_ARGS__), SET_OF(__VA_ARGS__)},
#include "target/engines.def"
};
enum { MEMBERS = sizeof members / sizeof *members };

static const member *member_of(command_op op)
{
    for (int i = 0; i < MEMBERS; i++)
        if (members[i].commands >> op & 1)
            return &members[i];
    return NULL;
}

/* The first command of a chain. */
static bool begins(const member *t, const command *k)
{
    return !t->takes && t->first == k->op;
}

bool chain_extent(const command *commands, size_t available, size_t *count, fault *f)
{
    const member *first = member_of(commands[0].op);
    if (!first || !begins(first, commands))
        return fault_set(f, E_RUN_CHAIN, commands, "does not begin a chain; fetch and stream_in do");
    for (size_t i = 1; i < available; i++) {
        const member *t = member_of(commands[i].op);
        if (t && t->takes & LAST) {
            *count = i + 1;
            return true;
        }
        if (!t || begins(t, &commands[i]))
            return fault_set(f, E_RUN_CHAIN, &commands[i], "stands inside the chain that begins at offset 0x%x", commands[0].offset);
    }
    return fault_set(f, E_RUN_CHAIN, commands, "begins a chain that does not end");
}

const command *chain_peek(const chain *c)
{
    return &c->commands[c->next];
}

const command *chain_take(chain *c, command_op op)
{
    const command *k = chain_peek(c);
    if (k->op != op || c->next + 1 == c->count)
        return NULL;
    c->next++;
    return k;
}

bool chain_unexpected(const chain *c, const char *after, fault *f)
{
    return fault_set(f, E_RUN_CHAIN, chain_peek(c), "cannot follow %s", after);
}

/* "fetch; collect, commit and stream_out can" */
static bool refuse_next(const chain *c, const stream_shape *shape, fault *f)
{
    char text[FAULT_TEXT_BYTES / 2] = "";
    size_t used = 0;
    const char *offered[MEMBERS];
    int count = 0;
    for (unsigned code = 0; code <= UINT8_MAX; code++) /* in one order, whatever that of the rows is */
        for (int i = 0; i < MEMBERS; i++)
            if (command_row_of(members[i].first)->code == code && members[i].takes >> shape->form & 1)
                offered[count++] = command_row_of(members[i].first)->name;
    for (int i = 0; i < count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", offered[i]);
    return fault_set(f, E_RUN_CHAIN, chain_peek(c), "cannot follow %s; %s can", command_row_of(c->stages[c->stage_count - 1].op)->name,
                     text);
}

/* Flits that come from a port, or a packet of one flit that is committed as it is, need no collect. */
static bool takes_packets_as_flits(const chain *c, const member *t)
{
    return t->takes & FLITS && t->type != &stage_collect && (c->commands[0].op == OP_STREAM_IN || t->type == &stage_commit);
}

static bool add_stage(chain *c, const member *t, const stream_shape *in, fault *f)
{
    if (c->stage_count == CHAIN_MAX_STAGES)
        return fault_set(f, E_RUN_CHAIN, chain_peek(c), "is one of more than %d stages of a chain", CHAIN_MAX_STAGES);
    stage *s = &c->stages[c->stage_count++];
    size_t first = c->next;
    const stage_type *type = t->type;
    bool own = chain_peek(c)->op == t->first;
    *s = (stage){.type = type,
                 .op = t->first,
                 .chain = c,
                 .commands = own ? chain_peek(c) : NULL,
                 .in = *in,
                 .stored = in->dtype,
                 .out_bytes = c->machine->target->flit_bytes,
                 .plan = c->plans + c->plan_bytes};
    c->plan_bytes += (type->plan_bytes + 15) / 16 * 16;
    assert(c->plan_bytes <= sizeof c->plans && type->field);
    c->next += own;
    if (!type->plan(s, c, f))
        return false;
    s->command_count = c->next - first;
    if (s->out.form == STREAM_PAIRS)
        c->steps = s->out.packets;
    return true;
}

/* Stage by stage, each against what leaves the one before it. */
static bool plan_stages(chain *c, fault *f)
{
    if (!add_stage(c, member_of(c->commands[0].op), &(stream_shape){0}, f))
        return false;
    c->steps = c->stages[0].out.packets;
    while (c->next < c->count) {
        const stream_shape *shape = &c->stages[c->stage_count - 1].out;
        const member *t = member_of(chain_peek(c)->op);
        if (shape->form == STREAM_PACKETS && !(t->takes & PACKETS) && takes_packets_as_flits(c, t))
            t = member_of(OP_COLLECT);
        else if (chain_peek(c)->op != t->first || !(t->takes >> shape->form & 1))
            return refuse_next(c, shape, f);
        if (!add_stage(c, t, shape, f))
            return false;
    }
    return true;
}

const void *chain_part(const chain *c, const stage_type *type)
{
    for (unsigned i = 0; i < c->stage_count; i++)
        if (c->stages[i].type == type)
            return c->stages[i].plan;
    return NULL;
}

const stage *chain_source(const chain *c)
{
    return &c->stages[0];
}

const stage *chain_sink(const chain *c)
{
    return &c->stages[c->stage_count - 1];
}

/* Every packet of every slice is one step of work. */
static bool within_step_limit(const chain *c, fault *f)
{
    int64_t limit = c->machine->options.step_limit, units = 0;
    for (int i = 0; i < 4; i++)
        units += __builtin_popcountll(c->units.slices[i]);
    units *= __builtin_popcount(c->units.chips) * __builtin_popcount(c->units.clusters);
    if (limit == 0 || units == 0 || c->steps <= limit / units)
        return true;
    return fault_set(f, E_RUN_LIMIT, c->commands, "%lld steps in %lld slices pass the limit of %lld", (long long)c->steps, (long long)units,
                     (long long)limit);
}

bool chain_plan(chain *c, machine *m, const unit_mask *units, const command *commands, size_t available, fault *f)
{
    c->machine = m;
    c->units = c->mid_units = c->out_units = *units;
    c->commands = commands;
    c->count = c->next = c->plan_bytes = 0;
    c->stage_count = 0;
    if (!chain_extent(commands, available, &c->count, f))
        return false;
    if (!units->set)
        return fault_set(f, E_RUN_CHAIN, commands, "no units command before the context's first chain");
    if (!plan_stages(c, f))
        return false;
    int64_t at_sink = chain_sink(c)->in.packets;
    c->steps = at_sink > c->steps ? at_sink : c->steps;
    return within_step_limit(c, f);
}
