/* Rule ("Commit Adapter", Generate Mode): the sub context writes one word of 32 bits over all that a slice has of a tensor, 8 bytes at a
 * time. So a flit is kept to 8 bytes, and the walk is one run of them, whatever Element is. */
#include "passes/pass.h"

static void generate_one(pass_context *p, kernel *k, op *o)
{
    const op *into = NULL;
    for (size_t i = 0; i < k->op_count; i++)
        if (op_input(k->ops[i]) == o)
            into = op_into(k->ops[i]);
    const mapping *element = into->out.part[ELEMENT];
    int64_t bytes = dtype_bytes(o->out.dtype, element->size), unit = p->target->commit_multiple_bytes;
    int64_t whole = elements_of(o->out.dtype, unit);
    if (bytes < 0 || bytes % unit) {
        diag *d =
            pass_refuse(p, k, o, MAPPING_COMPONENTS, E_MEMSET, "memset fills whole units of %lld bytes, and `%s` has %lld %s elements",
                        (long long)unit, into->name, (long long)element->size, dtype_row_of(o->out.dtype)->name);
        diag_help(p->diags, d, "pad Element to a multiple of %lld: %s", (long long)whole,
                  pass_text(p, pass_pad(p, element, (element->size + whole - 1) / whole * whole)));
        return;
    }
    const mapping *one = mapping_identity(p->mappings);
    o->out.part[TIME] = pass_pad(p, one, bytes / unit);
    o->out.part[PACKET] = pass_pad(p, one, elements_of(o->out.dtype, p->target->flit_bytes));
}

void pass_generate(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_GENERATE, generate_one);
}
