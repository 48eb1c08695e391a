/* Operators on memory: loads and stores off the chip, buffers on it. */
#include "runtime/step/operators.h"

#include <inttypes.h>
#include <string.h>

/* ---- tiles off the chip ---- */

static const step_tensor *tensor_of(const step_actor *n)
{
    return &step_engine_run_of(n)->program->tensors[n->node->tensor];
}

static int64_t element_bytes(dtype t, int64_t elements)
{
    return (elements * (int64_t)dtype_row_of(t)->bits + 7) / 8;
}

/* Each row of a tile is whole requests. */
static int64_t tile_requests(const step_actor *n)
{
    const step_tensor *t = tensor_of(n);
    int64_t request = step_engine_run_of(n)->program->machine.request_bytes;
    return t->rows * ((element_bytes(t->dtype, t->columns) + request - 1) / request);
}

static int64_t tile_bytes(const step_actor *n)
{
    const step_tensor *t = tensor_of(n);
    return element_bytes(t->dtype, t->rows * t->columns);
}

static bool in_tensor(step_actor *n, int64_t index)
{
    int64_t tiles = step_tensor_tiles(tensor_of(n));
    if (index >= 0 && index < tiles)
        return true;
    actor_fault(n, "tile %" PRId64 " of `%s`, which has %" PRId64 " tiles", index, tensor_of(n)->name, tiles);
    return false;
}

/* The tile that an address stands for; -1, which no tensor has, when there is none. */
static int64_t place_of(const step_actor *n, const step_value *v)
{
    int64_t place;
    return __builtin_add_overflow(n->node->param[STEP_BASE], v->address, &place) ? -1 : place;
}

/* Asks for the tile and sends it. */
static void load_tile(step_actor *n, int64_t index)
{
    const step_tensor *t = tensor_of(n);
    if (!in_tensor(n, index))
        return;
    const float *from = step_engine_run_of(n)->stores[n->node->tensor].elements;
    step_value *v = step_tile_new(actor_pool(n), t->rows, t->columns);
    if (v->tile.elements && from)
        memcpy(v->tile.elements, from + index * t->rows * t->columns, (size_t)(t->rows * t->columns) * sizeof *from);
    step_token token = step_token_of(v);
    token.in_memory = !step_engine_run_of(n)->in_place[n->number];
    if (token.in_memory) {
        actor_ask(n, false, tile_requests(n), tile_bytes(n));
        actor_use(n, false, tile_bytes(n)); /* what finds no room when it comes is read again when it is taken */
    }
    actor_send(n, 0, token);
}

static bool store_tile(step_actor *n, int64_t index, const step_value *v)
{
    const step_tensor *t = tensor_of(n);
    if (!in_tensor(n, index))
        return false;
    if (v->tile.rows != t->rows || v->tile.columns != t->columns) {
        actor_fault(n, "a tile of %" PRId64 " x %" PRId64 " goes to `%s`, whose tiles are %" PRId64 " x %" PRId64, v->tile.rows,
                    v->tile.columns, t->name, t->rows, t->columns);
        return false;
    }
    float *to = step_engine_run_of(n)->stores[n->node->tensor].elements;
    if (v->tile.elements && to)
        for (int64_t i = 0; i < t->rows * t->columns; i++)
            to[index * t->rows * t->columns + i] = step_round(t->dtype, v->tile.elements[i]);
    actor_ask(n, true, tile_requests(n), tile_bytes(n));
    return true;
}

/* ---- affine walks: the load's over stored tiles, streamify's over a buffer ---- */

typedef struct walk {
    closing closing;
    bool inside; /* a walk: `index` is where it stands */
    int64_t index[STEP_RANK_MAX];
    step_value *buffer; /* streamify: what is walked */
    size_t at;          /* streamify without loops: the next token */
    bool pop;           /* streamify: the buffer was used; its stream has to close `level` dimensions (0: none) */
    unsigned level;
} walk;

static int64_t walk_place(const step_actor *n, const walk *w)
{
    int64_t place = 0;
    for (uint32_t i = 0; i < n->node->walk_count; i++)
        place += w->index[i] * n->node->walk_strides[i];
    return place;
}

/* Steps to the next place and returns how many inner dimensions ended; all of them: the walk has ended. */
static uint32_t walk_next(const step_actor *n, walk *w)
{
    uint32_t ended = 0;
    for (uint32_t i = n->node->walk_count; i-- > 0; ended++) {
        if (++w->index[i] < n->node->walk_sizes[i])
            break;
        w->index[i] = 0;
    }
    return ended;
}

static void load_step(step_actor *n, walk *w)
{
    load_tile(n, n->node->param[STEP_BASE] + walk_place(n, w));
    uint32_t ended = walk_next(n, w), rank = n->node->walk_count;
    if (ended < rank) {
        if (ended > 0)
            actor_send(n, 0, step_stop_of(ended));
        return;
    }
    w->inside = false;
    n->need = STEP_NEED_ALL;
    closing_owe(n, &w->closing, rank, actor_input_rank(n, 0));
}

static void linear_load_fire(step_actor *n)
{
    walk *w = n->state;
    if (w->inside) {
        load_step(n, w);
        return;
    }
    step_token t = *actor_head(n, 0);
    actor_take(n, 0);
    if (t.kind != STEP_VALUE) {
        closing_end(n, &w->closing, n->node->walk_count, t);
        return;
    }
    closing_settle(n, &w->closing, n->node->walk_count);
    w->inside = true;
    n->need = STEP_NEED_NOTHING;
}

const step_rule rule_linear_load = {.state_bytes = sizeof(walk), .fire = linear_load_fire};

static void linear_store_fire(step_actor *n)
{
    int64_t *next = n->state;
    step_token t = *actor_head(n, 0);
    if (t.kind == STEP_VALUE && !store_tile(n, n->node->param[STEP_BASE] + (*next)++, t.value))
        return;
    actor_take(n, 0);
    if (t.kind == STEP_DONE)
        actor_finish(n);
}

const step_rule rule_linear_store = {.state_bytes = sizeof(int64_t), .fire = linear_store_fire};

static void random_load_fire(step_actor *n)
{
    step_token t = *actor_head(n, 0);
    actor_take(n, 0); /* at once: the next address comes while the tile does */
    if (t.kind == STEP_VALUE)
        load_tile(n, place_of(n, t.value));
    else
        actor_send(n, 0, t);
    if (t.kind == STEP_DONE)
        actor_finish(n);
}

const step_rule rule_random_load = {.fire = random_load_fire};

static void random_store_fire(step_actor *n)
{
    if (!actor_in_step(n))
        return;
    step_token address = *actor_head(n, 0), data = *actor_head(n, 1);
    if (address.kind == STEP_VALUE && !store_tile(n, place_of(n, address.value), data.value))
        return;
    actor_send(n, 0, address.kind == STEP_VALUE ? step_token_of(step_bool_new(actor_pool(n), true)) : address);
    actor_take_all(n);
    if (address.kind == STEP_DONE)
        actor_finish(n);
}

const step_rule rule_random_store = {.fire = random_store_fire};

/* ---- buffers on the chip ---- */

static void bufferize_fire(step_actor *n)
{
    step_value **open = n->state;
    step_token t = *actor_head(n, 0);
    unsigned b = (unsigned)n->node->param[STEP_B];
    actor_take(n, 0);
    if (t.kind == STEP_DONE) {
        actor_send(n, 0, t);
        actor_finish(n);
        return;
    }
    if (!*open)
        *open = step_buffer_new(actor_pool(n), b);
    if (t.kind == STEP_VALUE || t.level < b) {
        step_buffer_push(actor_pool(n), *open, kept(t));
        actor_wait(n, t.kind == STEP_VALUE);
        actor_use_value(n, true, actor_input_type(n, 0), t);
        return;
    }
    actor_send(n, 0, step_token_of(*open));
    *open = NULL;
    if (t.level > b)
        actor_send(n, 0, step_stop_of(t.level - b));
}

const step_rule rule_bufferize = {.state_bytes = sizeof(step_value *), .fire = bufferize_fire};

enum { DATA = 0, REFERENCE = 1 };

/* Dimensions that a read of the buffer adds. */
static unsigned view_rank(const step_actor *n)
{
    uint32_t buffer = step_engine_run_of(n)->program->types[actor_input_type(n, DATA)].rank;
    return n->node->walk_count > 0 ? n->node->walk_count : buffer;
}

/* The value that is number `place` of a buffer. */
static const step_token *buffer_value(const step_value *buffer, int64_t place)
{
    if (place < 0 || place >= buffer->buffer.values)
        return NULL;
    for (size_t i = 0;; i++)
        if (buffer->buffer.tokens[i].kind == STEP_VALUE && place-- == 0)
            return &buffer->buffer.tokens[i];
}

/* Sends the next token of the view; true at its end. */
static bool view_step(step_actor *n, walk *w)
{
    if (n->node->walk_count == 0) {
        if (w->at < w->buffer->buffer.count) {
            step_token t = w->buffer->buffer.tokens[w->at++];
            t.in_memory = false;
            actor_wait(n, t.kind == STEP_VALUE);
            actor_use_value(n, false, n->node->outputs[0].type, t);
            actor_send(n, 0, kept(t));
        }
        return w->at == w->buffer->buffer.count;
    }
    const step_token *t = buffer_value(w->buffer, walk_place(n, w));
    if (!t) {
        actor_fault(n, "value %" PRId64 " of a buffer of %" PRId64, walk_place(n, w), w->buffer->buffer.values);
        return true;
    }
    actor_wait(n, 1);
    actor_use_value(n, false, n->node->outputs[0].type, *t);
    actor_send(n, 0, step_token_of(step_value_keep(t->value)));
    uint32_t ended = walk_next(n, w);
    if (ended > 0 && ended < n->node->walk_count)
        actor_send(n, 0, step_stop_of(ended));
    return ended == n->node->walk_count;
}

/* Takes the buffer; the data's next token has to be the stop that the reference's stop leaves for it. */
static void drop_buffer(step_actor *n, walk *w, unsigned reference_level)
{
    unsigned c = (unsigned)n->node->param[STEP_B];
    bool used = c == 0 && reference_level > 0; /* its buffer was taken after its only view */
    if (reference_level < c)
        return;
    if (actor_head(n, DATA)->kind == STEP_VALUE && !used)
        actor_take(n, DATA);
    else if (reference_level == c) {
        actor_fault(n, "the reference goes on after the last buffer of a group");
        return;
    }
    w->level = reference_level - c;
    w->pop = w->level > 0;
    if (w->pop)
        actor_need_port(n, DATA);
}

static void close_data(step_actor *n, walk *w)
{
    const step_token *t = actor_head(n, DATA);
    if (t->kind != STEP_STOP || t->level != w->level)
        actor_fault(n, "the reference closes %u dimensions of buffers and the data another number", w->level);
    actor_take(n, DATA);
    w->pop = false;
    n->need = STEP_NEED_ALL;
}

static void start_view(step_actor *n, walk *w, step_token data)
{
    if (data.kind != STEP_VALUE) {
        actor_fault(n, "the reference has a value where the data has no buffer");
        return;
    }
    closing_settle(n, &w->closing, view_rank(n));
    w->buffer = step_value_keep(data.value);
    w->inside = true;
    w->at = 0;
    n->need = STEP_NEED_NOTHING;
}

static void end_view(step_actor *n, walk *w)
{
    w->inside = false;
    step_value_drop(actor_pool(n), w->buffer);
    w->buffer = NULL;
    n->need = STEP_NEED_ALL;
    closing_owe(n, &w->closing, view_rank(n), actor_input_rank(n, REFERENCE));
    actor_take(n, REFERENCE);
    drop_buffer(n, w, 0);
}

static void streamify_fire(step_actor *n)
{
    walk *w = n->state;
    if (w->inside) {
        if (view_step(n, w))
            end_view(n, w);
        return;
    }
    if (w->pop) {
        close_data(n, w);
        return;
    }
    step_token data = *actor_head(n, DATA), reference = *actor_head(n, REFERENCE);
    if (reference.kind == STEP_VALUE) {
        start_view(n, w, data);
        return;
    }
    closing_end(n, &w->closing, view_rank(n), reference);
    actor_take(n, REFERENCE);
    if (reference.kind == STEP_STOP) {
        drop_buffer(n, w, reference.level);
        return;
    }
    if (data.kind != STEP_DONE)
        actor_fault(n, "the reference has ended and a buffer is left");
    actor_take(n, DATA);
}

const step_rule rule_streamify = {.state_bytes = sizeof(walk), .fire = streamify_fire};

const step_rule *step_rule_of(step_op op)
{
    switch (op) {
    case STEP_SOURCE: return &rule_source;
    case STEP_SINK: return &rule_sink;
    case STEP_ONCE: return &rule_once;
    case STEP_LINEAR_LOAD: return &rule_linear_load;
    case STEP_LINEAR_STORE: return &rule_linear_store;
    case STEP_RANDOM_LOAD: return &rule_random_load;
    case STEP_RANDOM_STORE: return &rule_random_store;
    case STEP_BUFFERIZE: return &rule_bufferize;
    case STEP_STREAMIFY: return &rule_streamify;
    case STEP_PARTITION: return &rule_partition;
    case STEP_REASSEMBLE: return &rule_reassemble;
    case STEP_EAGER_MERGE: return &rule_eager_merge;
    case STEP_PARALLELIZE: return &rule_parallelize;
    case STEP_BROADCAST: return &rule_broadcast;
    case STEP_MAP: return &rule_map;
    case STEP_ACCUM: return &rule_accum;
    case STEP_SCAN: return &rule_scan;
    case STEP_FLAT_MAP: return &rule_flat_map;
    case STEP_FLATTEN: return &rule_flatten;
    case STEP_RESHAPE: return &rule_reshape;
    case STEP_PROMOTE: return &rule_promote;
    case STEP_EXPAND: return &rule_expand;
    case STEP_REPEAT: return &rule_repeat;
    case STEP_ZIP: return &rule_zip;
    }
    return NULL;
}
