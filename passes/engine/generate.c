/* Rule ("Commit Adapter", Generate Mode): the sub context writes one word of 32 bits over all that a slice has of a tensor, 8 bytes at a
 * time. Each step of Time is a flit, of which as much is kept as divides the tensor: 32, 24, 16 or 8 bytes. */
#include "passes/pass.h"

static void generate_one(pass_context *p, kernel *k, op *o)
{
    const op *into = NULL;
    for (size_t i = 0; i < k->op_count; i++)
        if (op_input(k->ops[i]) == o)
            into = op_into(k->ops[i]);
    const mapping *element = into->out.part[ELEMENT];
    int64_t bytes = dtype_bytes(o->out.dtype, element->size), unit = p->target->commit_multiple_bytes;
    if (bytes < 0 || bytes % unit) {
        diag *d =
            pass_refuse(p, k, o, MAPPING_COMPONENTS, E_MEMSET, "memset fills whole units of %lld bytes, and `%s` has %lld %s elements",
                        (long long)unit, into->name, (long long)element->size, dtype_row_of(o->out.dtype)->name);
        int64_t whole = elements_of(o->out.dtype, unit);
        diag_help(p->diags, d, "pad Element to a multiple of %lld: %s", (long long)whole,
                  pass_text(p, pass_pad(p, element, (element->size + whole - 1) / whole * whole)));
        return;
    }
    int64_t kept = p->target->commit_max_bytes;
    while (bytes % kept || !pass_inner(p, element, elements_of(o->out.dtype, kept)))
        kept -= unit;
    int64_t each = elements_of(o->out.dtype, kept);
    o->out.part[TIME] = pass_outer(p, element, each);
    o->out.part[PACKET] = pass_pad(p, pass_inner(p, element, each), elements_of(o->out.dtype, p->target->flit_bytes));
}

void pass_generate(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_GENERATE, generate_one);
}
