#include "passes/poison.h"

#include "ir/work.h"
#include "support/budget.h"

/* Memories that hold elements of the padding, still to be followed. */
typedef struct pending {
    const op **items;
    size_t count, capacity;
} pending;

static bool only_moves(const op *o)
{
    return op_kind_is(o->kind, ONLY_MOVES) && !op_into(o) && !op_second(o) && !o->lift;
}

/* The operation of the chain that takes the stream; NULL: none does, or several do. */
static const op *consumer(const kernel *k, const op *stream)
{
    const op *found = NULL;
    for (size_t i = stream->index + 1; i < k->op_count; i++)
        if (op_input(k->ops[i]) == stream) {
            if (found)
                return NULL;
            found = k->ops[i];
        }
    return found;
}

/* Does the tensor name all axes that name padding? */
static bool names_all(const tensor *t, const reshape_config *c)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = tensor_axes(t, axes, EINSUM_MAX_AXES);
    for (uint32_t i = 0; i < c->poison_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < count; k++)
            found = found || axes[k] == c->poisons[i];
        if (!found)
            return false;
    }
    return true;
}

/* Does a memory that holds padding under these names keep one of them, or give it another one? */
static bool names_one(const reshape_config *again, const reshape_config *c)
{
    for (uint32_t i = 0; i < c->poison_count; i++)
        for (uint32_t k = 0; k < again->count; k++)
            if (again->digits[k].from == c->poisons[i] && again->digits[k].size > 1)
                return true;
    return again->equal;
}

/* The memory that a piece of work makes of what `o` reads, all of whose stages only move it; NULL: one does not. */
static const op *copy_of(pass_context *p, const kernel *k, const op *o)
{
    while (o && only_moves(o) && !op_ends_work(o)) {
        budget_spend(p->arena, 1 + k->op_count);
        o = consumer(k, o);
    }
    return o && only_moves(o) ? o : NULL;
}

/* One use of a memory that holds padding: what it makes goes on the list. False: a result depends on it. */
static bool follow_use(pass_context *p, const kernel *k, const op *named, const op *memory, const op *o, pending *list)
{
    const reshape_config *c = named->reshape;
    for (size_t j = 0; j < o->operand_count; j++) {
        const op_operand *x = &o->operands[j];
        if (op_root(x->of) != memory)
            continue;
        if (operand_access_of(x->role) == WRITES || x->of->kind == IR_VIEW)
            return false;
    }
    if (o->kind == IR_RESHAPE)
        return o->reshape && o->reshape->from == memory && !names_one(o->reshape, c);
    const op *copy = copy_of(p, k, o);
    if (!copy || !names_all(&copy->out, c))
        return false;
    ARENA_PUSH(p->arena, list->items, list->count, list->capacity, copy);
    return true;
}

static bool uses(const op *o, const op *memory)
{
    for (size_t j = 0; j < o->operand_count && o->kind != IR_VIEW; j++)
        if (op_root(o->operands[j].of) == memory)
            return true;
    return false;
}

const op *poison_reader(pass_context *p, const kernel *k, const op *named)
{
    pending list = {0};
    bool *is_listed = ARENA_ARRAY(p->arena, bool, k->op_count + 1);
    ARENA_PUSH(p->arena, list.items, list.count, list.capacity, named);
    while (list.count > 0) {
        const op *memory = list.items[--list.count];
        if (is_listed[memory->index])
            continue;
        is_listed[memory->index] = true;
        budget_spend(p->arena, 1 + k->op_count);
        for (size_t i = memory->index + 1; i < k->op_count; i++)
            if (uses(k->ops[i], memory) && !follow_use(p, k, named, memory, k->ops[i], &list))
                return k->ops[i];
    }
    return NULL;
}
