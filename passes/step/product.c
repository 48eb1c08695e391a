#include "passes/step/product.h"

/* Is the operand a tile of a stream? */
static bool is_leaf(const step_formula *f, uint32_t instruction, uint32_t *leaf)
{
    const step_instruction *i = &f->items[instruction];
    if (i->op != FORMULA_VALUE || i->operands[0] < f->state_count)
        return false;
    *leaf = i->operands[0] - f->state_count;
    return true;
}

/* Is the instruction a product of tiles that come in? */
static bool is_product_of(const step_formula *f, uint32_t i, step_product *p)
{
    *p = (step_product){.transposed = f->items[i].op == FORMULA_MATMUL_T};
    return (p->transposed || f->items[i].op == FORMULA_MATMUL) && is_leaf(f, f->items[i].operands[0], &p->leaves[0]) &&
           is_leaf(f, f->items[i].operands[1], &p->leaves[1]);
}

/* The product among them, counted from 1; 0: it is none. */
static uint32_t number_among(const step_product *list, size_t count, const step_product *p)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].transposed == p->transposed && list[i].leaves[0] == p->leaves[0] && list[i].leaves[1] == p->leaves[1])
            return i + 1;
    return 0;
}

uint32_t step_products_of(const step_formula *f, const step_product **out, arena *a)
{
    step_product *list = NULL, p;
    size_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < f->count; i++)
        if (is_product_of(f, i, &p) && number_among(list, count, &p) == 0)
            ARENA_PUSH(a, list, count, capacity, p);
    *out = list;
    return (uint32_t)count;
}

/* By instruction: the product that it is, counted from 1; 0: none. */
static uint32_t *numbers_of(const step_formula *f, const step_product *products, uint32_t count, arena *a)
{
    uint32_t *number = ARENA_ARRAY(a, uint32_t, f->count + 1);
    step_product p;
    for (uint32_t i = 0; i < f->count; i++)
        number[i] = is_product_of(f, i, &p) ? number_among(products, count, &p) : 0;
    return number;
}

/* By instruction: do the results need it where products come in? */
static bool *needed(const step_formula *f, const uint32_t *number, arena *a)
{
    bool *need = ARENA_ARRAY(a, bool, f->count + 1);
    for (uint32_t i = 0; i < f->result_count; i++)
        need[f->results[i]] = true;
    for (uint32_t i = f->count; i-- > 0;)
        for (unsigned k = 0; need[i] && !number[i] && k < step_formula_row_of(f->items[i].op)->operands; k++)
            need[f->items[i].operands[k]] = true;
    return need;
}

const bool *step_product_needs(const step_formula *f, const step_product *products, uint32_t count, arena *a)
{
    const bool *need = needed(f, numbers_of(f, products, count, a), a);
    bool *taken = ARENA_ARRAY(a, bool, f->values + 1);
    uint32_t leaf;
    for (uint32_t i = 0; i < f->count; i++)
        if (need[i] && is_leaf(f, i, &leaf))
            taken[leaf] = true;
    return taken;
}

const step_formula *step_product_without(const step_formula *f, const step_product *products, uint32_t count, const bool *kept, arena *a)
{
    const uint32_t *number = numbers_of(f, products, count, a);
    const bool *need = needed(f, number, a);
    uint32_t *value = ARENA_ARRAY(a, uint32_t, f->values + 1), *now = ARENA_ARRAY(a, uint32_t, f->count + 1), leaf, left = 0;
    uint32_t *results = ARENA_ARRAY(a, uint32_t, f->result_count + 1);
    step_instruction *items = ARENA_ARRAY(a, step_instruction, f->count + 1);
    step_formula *made = ARENA_NEW(a, step_formula);
    for (uint32_t i = 0; i < f->values; i++) {
        value[i] = f->state_count + left;
        left += kept[i];
    }
    *made = *f;
    made->count = 0;
    made->values = left + count;
    for (uint32_t i = 0; i < f->count; i++) {
        step_instruction one = f->items[i];
        if (!need[i])
            continue;
        if (number[i])
            one = (step_instruction){.op = FORMULA_VALUE, .operands = {f->state_count + left + number[i] - 1}};
        else if (is_leaf(f, i, &leaf))
            one.operands[0] = value[leaf];
        else if (one.op != FORMULA_VALUE)
            for (unsigned k = 0; k < step_formula_row_of(one.op)->operands; k++)
                one.operands[k] = now[one.operands[k]];
        now[i] = made->count;
        items[made->count++] = one;
    }
    for (uint32_t i = 0; i < f->result_count; i++)
        results[i] = now[f->results[i]];
    made->items = items;
    made->results = results;
    return made;
}
