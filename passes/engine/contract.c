/* Rule ("Reducer", contract): the tree sums 2^depth neighbouring lanes, so OutPacket is what Packet keeps outside its innermost
 * 2^depth lanes. Where padding makes several depths fit, the deepest is taken. */
#include "passes/pass.h"

static int64_t tree_depth(pass_context *p, const mapping *packet, const mapping *kept)
{
    int64_t depth = 0;
    while (packet->size % ((int64_t)2 << depth) == 0)
        depth++;
    for (; depth >= 0; depth--) {
        const mapping *outer = mapping_strip_padding(p->mappings, pass_outer(p, packet, (int64_t)1 << depth));
        if (mapping_equal(p->mappings, outer, kept))
            return depth;
    }
    return -1;
}

static void contract_one(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out, *out = &o->out;
    const mapping *packet = in->part[PACKET], *out_packet = out->part[PACKET];
    int64_t columns = p->target->accumulator_columns;
    if (out_packet->size > columns && packet->size >= out_packet->size) {
        diag *d = pass_refuse(p, k, o, PACKET, E_CONTRACT_WIDE, "OutPacket::SIZE must be at most %lld, got %lld from %s",
                              (long long)columns, (long long)out_packet->size, pass_text(p, out_packet));
        const mapping *sums = pass_outer(p, packet, packet->size / columns);
        diag_help(p->diags, d, "sum %lld lanes into one%s", (long long)(packet->size / columns),
                  sums ? arena_printf(p->arena, ": write @contract::<%s>()", pass_text(p, sums)) : "");
        return;
    }
    if (out_packet->size & (out_packet->size - 1)) {
        diag *d = pass_refuse(p, k, o, PACKET, E_CONTRACT_POWER, "OutPacket::SIZE must be a power of two, got %lld from %s",
                              (long long)out_packet->size, pass_text(p, out_packet));
        diag_help(p->diags, d, "keep 1, 2, 4, 8, 16 or 32 columns; pad them where an axis has another size");
        return;
    }
    const mapping *kept = mapping_strip_padding(p->mappings, out_packet);
    int64_t depth = tree_depth(p, packet, kept);
    if (depth < 0) {
        diag *d = pass_refuse(p, k, o, PACKET, E_CONTRACT, "OutPacket %s is not a valid contraction of Packet %s", pass_text(p, out_packet),
                              pass_text(p, packet));
        diag_note(p->diags, d, SRC_NOWHERE, "the tree sums the innermost 1, 2, 4, ... lanes; axes to keep stand outside them");
        diag_help(p->diags, d, "to sum all of it write @contract::<m![1]>()");
        return;
    }
    o->contract = ARENA_NEW(p->arena, contract_config);
    *o->contract = (contract_config){.tree_depth = depth, .columns = kept->size, .kept = kept};
}

void pass_contract(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_CONTRACT, contract_one);
}
