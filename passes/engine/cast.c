/* Rule ("Cast Engine"): a beat of 32 bytes of i32 or f32 becomes a flit of the narrow type; the live elements stay, the rest
 * is padding. */
#include "passes/pass.h"

/* "i32 casts to i4, i8, i16; f32 casts to .." */
static const char *casts_text(const pass_context *p)
{
    strbuf s;
    strbuf_init(&s, p->arena);
    const dtype_conversion *c, *last = NULL;
    for (size_t i = 0; (c = target_conversion_at(i)); i++) {
        if (c->engine != ENGINE_ID_CAST)
            continue;
        if (!last || last->from != c->from)
            strbuf_printf(&s, "%s%s casts to ", last ? "; " : "", dtype_row_of(c->from)->name);
        strbuf_printf(&s, "%s%s", last && last->from == c->from ? ", " : "", dtype_row_of(c->to)->name);
        last = c;
    }
    return s.text;
}

static void cast_one(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    tensor *out = &o->out;
    if (!out->part[TIME])
        out->part[TIME] = in->part[TIME];
    const char *from = dtype_row_of(in->dtype)->name, *to = dtype_row_of(out->dtype)->name;
    if (!target_converts(ENGINE_ID_CAST, in->dtype, out->dtype)) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_CAST_TYPE, "there is no cast from %s to %s", from, to);
        diag_help(p->diags, d, "%s", casts_text(p));
        return;
    }
    int64_t flit_bytes = p->target->flit_bytes, in_bytes = dtype_bytes(in->dtype, in->part[PACKET]->size);
    if (in_bytes != flit_bytes) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_CAST_FLIT, "cast input packet must be exactly 32 bytes, got %s from %s",
                              arena_count(p->arena, in_bytes, "byte"), pass_text(p, in->part[PACKET]));
        diag_help(p->diags, d, "collect gives flits of 32 bytes, 8 elements of %s", from);
        return;
    }
    const mapping *packet = pass_pad(p, in->part[PACKET], elements_of(out->dtype, flit_bytes));
    if (!out->part[PACKET])
        out->part[PACKET] = packet;
    int64_t out_bytes = dtype_bytes(out->dtype, out->part[PACKET]->size);
    diag *d = NULL;
    if (out_bytes != flit_bytes)
        d = pass_refuse(p, k, o, PACKET, E_CAST_FLIT, "cast output packet must be exactly 32 bytes, got %s from %s of %s",
                        arena_count(p->arena, out_bytes, "byte"), pass_text(p, out->part[PACKET]), to);
    else if (!mapping_equal(p->mappings, packet, out->part[PACKET]))
        d = pass_refuse(p, k, o, PACKET, E_CAST_PACKET, "cast packet mismatch: %s of %s becomes %s of %s, not %s",
                        pass_text(p, in->part[PACKET]), from, pass_text(p, packet), to, pass_text(p, out->part[PACKET]));
    if (d) {
        diag_help(p->diags, d, "write cast::<%s, %s>()", to, pass_text(p, packet));
        pass_replace(p, o, d, PACKET, packet);
        return;
    }
    o->cast = ARENA_NEW(p->arena, cast_config);
    *o->cast = (cast_config){.from = in->dtype, .to = out->dtype};
}

void pass_cast(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_CAST, cast_one);
}
