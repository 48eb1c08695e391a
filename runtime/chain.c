#include "runtime/chain.h"

#include "runtime/port.h"

static bool is_end(command_op op)
{
    return op == OP_TRF_STORE || op == OP_COMMIT || op == OP_STREAM_OUT;
}

static bool is_stage(command_op op)
{
    return op == OP_COLLECT || op == OP_ALIGN || op == OP_SHIFT || op == OP_TRF_READ || op == OP_CONTRACT || op == OP_MASK ||
           op == OP_ACCUMULATE || op == OP_CAST;
}

/* The commands of one chain, read from the first to the last. */
typedef struct chain_reader {
    const command *commands;
    size_t count, next;
    fault *fault;
} chain_reader;

static bool chain_length(chain_reader *r, const command *commands, size_t available, fault *f)
{
    *r = (chain_reader){.commands = commands, .fault = f};
    if (commands[0].op != OP_FETCH && commands[0].op != OP_STREAM_IN)
        return fault_set(f, E_RUN_CHAIN, commands, "does not begin a chain; fetch and stream_in do");
    for (size_t i = 1; i < available; i++) {
        if (is_end(commands[i].op)) {
            r->count = i + 1;
            return true;
        }
        if (!is_stage(commands[i].op))
            return fault_set(f, E_RUN_CHAIN, &commands[i],
                             "stands inside the chain that begins at offset 0x%x", commands[0].offset);
    }
    return fault_set(f, E_RUN_CHAIN, commands, "begins a chain that does not end");
}

/* The next command if it is `op`. The last command is never passed over, so there always is a next one. */
static const command *take(chain_reader *r, command_op op)
{
    const command *c = &r->commands[r->next];
    if (c->op != op)
        return NULL;
    r->next += r->next + 1 < r->count;
    return c;
}

static const command *peek(const chain_reader *r)
{
    return &r->commands[r->next];
}

static bool unexpected(chain_reader *r, const char *after)
{
    return fault_set(r->fault, E_RUN_CHAIN, peek(r), "cannot follow %s", after);
}

static bool plan_contraction(chain *c, chain_reader *r)
{
    contraction_commands k = {.align = take(r, OP_ALIGN), .shift = take(r, OP_SHIFT), .trf_read = take(r, OP_TRF_READ)};
    if (!k.trf_read)
        return unexpected(r, "align, which trf_read completes");
    k.contract = take(r, OP_CONTRACT);
    if (!k.contract && peek(r)->op != OP_STREAM_OUT)
        return unexpected(r, "trf_read; contract and stream_out can");
    k.masks = peek(r);
    while (k.contract && take(r, OP_MASK))
        k.mask_count++;
    const target *t = c->machine->target;
    if (!contraction_plan(&c->contraction, t, &c->shape, &k, c->machine->arena, r->fault))
        return false;
    c->shape = c->contraction.shape;
    if (!k.contract) {
        c->form = CHAIN_PAIR;
        c->shape = (stream_shape){c->contraction.operand, c->contraction.lanes, t->mac_width_bytes,
                                  c->contraction.steps, c->contraction.rows};
        return true;
    }
    const command *sums = take(r, OP_ACCUMULATE);
    if (!sums && peek(r)->op != OP_STREAM_OUT)
        return unexpected(r, "contract; mask, accumulate and stream_out can");
    c->form = sums ? CHAIN_CONTRACTION : CHAIN_PARTIALS;
    if (sums && !accumulate_plan(&c->accumulate, t, sums, &c->shape, r->fault))
        return false;
    if (sums)
        c->shape = c->accumulate.shape;
    return true;
}

/* From the source to where flits or packets leave for the cast and the sink. */
static bool plan_stages(chain *c, chain_reader *r)
{
    const target *t = c->machine->target;
    bool fetched = take(r, OP_FETCH) != NULL;
    if (!fetched)
        take(r, OP_STREAM_IN);
    c->shape = c->source.shape;
    if (peek(r)->op == OP_STREAM_OUT) {
        c->form = CHAIN_PACKETS;
        return c->shape.rows == 1 || unexpected(r, "stream_in of a contraction tensor; accumulate can");
    }
    const command *sums = fetched ? NULL : take(r, OP_ACCUMULATE);
    if (sums) {
        c->form = CHAIN_SUMS;
        if (!accumulate_plan(&c->accumulate, t, sums, &c->shape, r->fault))
            return false;
        c->shape = c->accumulate.shape;
        return true;
    }
    const command *flits = take(r, OP_COLLECT);
    if (fetched && !flits && peek(r)->op != OP_COMMIT)
        return unexpected(r, "fetch; collect, commit and stream_out can");
    if (!collect_plan(&c->collect, t, &c->shape, flits, peek(r), r->fault))
        return false;
    c->shape = c->collect.shape;
    c->form = CHAIN_FLITS;
    return peek(r)->op != OP_ALIGN || plan_contraction(c, r);
}

static bool plan_cast(chain *c, chain_reader *r)
{
    const command *k = take(r, OP_CAST);
    if (!k)
        return true;
    dtype from = (dtype)command_get(k, CAST_FROM), to = (dtype)command_get(k, CAST_TO);
    c->cast = convert_cast(from, to);
    if (!c->cast)
        return fault_set(r->fault, E_RUN_CHAIN, k, "no cast from %s to %s", dtype_row_of(from)->name,
                         dtype_row_of(to)->name);
    if (from != c->shape.dtype)
        return fault_set(r->fault, E_RUN_CHAIN, k, "takes %s elements, the stream has %s",
                         dtype_row_of(from)->name, dtype_row_of(c->shape.dtype)->name);
    c->cast_bytes = c->machine->target->flit_bytes;
    c->shape.dtype = to;
    c->shape.packet_elements = c->shape.packet_bytes * 8 / dtype_row_of(to)->bits;
    return true;
}

static bool plan_stream_out(chain *c, const command *k, fault *f)
{
    stream_shape *s = &c->shape;
    int64_t elements = command_get(k, STREAM_OUT_PACKET_ELEMENTS);
    if (c->form == CHAIN_PARTIALS && elements >= s->packet_elements) {
        s->packet_elements = elements; /* the columns past the computed ones are padding */
        s->packet_bytes = elements * 4;
    }
    if ((dtype)command_get(k, STREAM_OUT_DTYPE) != s->dtype || command_get(k, STREAM_OUT_ROWS) != s->rows ||
        elements != s->packet_elements || command_get(k, STREAM_OUT_PACKETS) != s->packets)
        return fault_set(
            f, E_RUN_CHAIN, k,
            "gives %lld packets of %lld Rows x %lld %s elements, the stream has %lld of %lld x %lld %s",
            (long long)command_get(k, STREAM_OUT_PACKETS), (long long)command_get(k, STREAM_OUT_ROWS),
            (long long)elements, dtype_row_of((dtype)command_get(k, STREAM_OUT_DTYPE))->name,
            (long long)s->packets, (long long)s->rows, (long long)s->packet_elements,
            dtype_row_of(s->dtype)->name);
    c->port = (uint32_t)command_get(k, STREAM_OUT_PORT);
    return stream_port_ready(c->machine, k, c->port, s, PORT_OUT, f) &&
           (c->form != CHAIN_PAIR || stream_port_ready(c->machine, k, c->port + 1, s, PORT_OUT, f));
}

/* Narrowed flits of which no more than the elements is committed stand without gaps. */
static bool plan_narrow_commit(chain *c)
{
    int64_t elements = c->machine->target->flit_bytes / 4, bytes = elements * dtype_row_of(c->shape.dtype)->bits / 8;
    if (c->commit.in_bytes <= bytes)
        c->cast_bytes = c->commit.flit_bytes = bytes;
    return true;
}

static bool plan_sink(chain *c, chain_reader *r)
{
    const command *k = c->sink = peek(r);
    if (k->op == OP_STREAM_OUT)
        return plan_stream_out(c, k, r->fault);
    if (k->op == OP_COMMIT)
        return commit_plan(&c->commit, c->machine->target, k, &c->shape, r->fault) && (c->cast == NULL || plan_narrow_commit(c));
    if (k->op != OP_TRF_STORE || c->form != CHAIN_FLITS || c->cast)
        return unexpected(r, r->next ? command_row_of(r->commands[r->next - 1].op)->name : "nothing");
    return trf_store_plan(&c->trf_store, c->machine->target, k, &c->shape, r->fault);
}

/* Every packet of every slice is one step of work. */
static bool within_step_limit(const chain *c, fault *f)
{
    int64_t steps = c->source.shape.packets, limit = c->machine->options.step_limit, units = 0;
    if (c->form == CHAIN_PAIR || c->form == CHAIN_PARTIALS || c->form == CHAIN_CONTRACTION)
        steps = c->contraction.steps;
    if (c->shape.packets > steps)
        steps = c->shape.packets;
    for (int i = 0; i < 4; i++)
        units += __builtin_popcountll(c->units.slices[i]);
    units *= __builtin_popcount(c->units.chips) * __builtin_popcount(c->units.clusters);
    if (limit == 0 || units == 0 || steps <= limit / units)
        return true;
    return fault_set(f, E_RUN_LIMIT, c->commands, "%lld steps in %lld slices pass the limit of %lld",
                     (long long)steps, (long long)units, (long long)limit);
}

bool chain_plan(chain *c, machine *m, const unit_mask *units, const command *commands, size_t available,
                fault *f)
{
    *c = (chain){.machine = m, .units = *units, .commands = commands};
    chain_reader r;
    if (!chain_length(&r, commands, available, f))
        return false;
    c->count = r.count;
    if (!units->set)
        return fault_set(f, E_RUN_CHAIN, commands, "no units command before the context's first chain");
    if (!source_plan(&c->source, m, commands, f) || !plan_stages(c, &r))
        return false;
    if (c->form != CHAIN_PACKETS && c->form != CHAIN_PAIR && c->form != CHAIN_PARTIALS && !plan_cast(c, &r))
        return false;
    return plan_sink(c, &r) && within_step_limit(c, f);
}
