/* Rules ("Memory and Stream", sizes that must match hardware): Cluster and Slice fill the device's part of the machine;
 * Chip is the device's chip count; every stage runs in a context that has its engine. Chip, Cluster and Slice pass through every stage of
 * the Tensor Unit unchanged. */
#include "passes/verify.h"

#include <string.h>

/* As many as the device says, of the machine's; 0: what it says was refused. */
static int64_t units_of(int64_t device, int64_t machine)
{
    return device > 0 ? device : device == 0 ? machine : 0;
}

/* Padding alone: nothing of it is anybody's. */
static bool is_idle(const pass_context *p, const mapping *m)
{
    return m && mapping_strip_padding(p->mappings, m)->size == 1;
}

/* A mapping of more units than there are: padding shrinks; else the units of the other level hold the rest if they hold nothing, the
 * outermost part in Cluster, and else Element does. */
static void help_fewer_units(pass_context *p, const op *o, diag *d, component c, int64_t units)
{
    const tensor *t = &o->out;
    const mapping *m = t->part[c], *idle = pass_pad(p, mapping_identity(p->mappings), units);
    component other = c == SLICE ? CLUSTER : c == CLUSTER ? SLICE : ELEMENT;
    int64_t ratio = m->size / units + (m->size % units != 0);
    const mapping *whole = pass_pad(p, m, ratio * units);
    if (is_idle(p, m)) {
        pass_help_part(p, o, d, c, idle, "write");
        return;
    }
    bool spread = other != ELEMENT && is_idle(p, t->part[other]) && t->part[other]->size == ratio;
    int64_t inner_size = spread && c == SLICE ? units : ratio;
    const mapping *outer = pass_outer(p, whole, inner_size), *inner = pass_inner(p, whole, inner_size);
    const mapping *kept = spread && c == SLICE ? inner : outer, *rest = kept == outer ? inner : outer;
    if (!spread) {
        other = ELEMENT;
        rest = rest && t->part[ELEMENT] ? pass_pair(p, rest, t->part[ELEMENT]) : NULL;
    }
    if (!kept || !rest) {
        diag_help(p->diags, d, "let %lld of it stay and the rest become Element or Time", (long long)units);
        return;
    }
    diag_help(p->diags, d, "write %s %s, %s %s", component_word(kept == outer ? c : other), pass_text(p, outer == kept ? kept : rest),
              component_word(kept == outer ? other : c), pass_text(p, outer == kept ? rest : kept));
    pass_replace(p, o, d, c, kept);
    pass_replace(p, o, d, other, rest);
}

static void verify_units(pass_context *p, kernel *k, op *o)
{
    static const diag_id ids[] = {E_CHIPS, E_CLUSTERS, E_SLICES};
    int64_t sizes[] = {k->chips, units_of(k->clusters, p->target->clusters_per_chip), units_of(k->slices, p->target->slices_per_cluster)};
    for (component c = CHIP; c <= SLICE && k->is_device; c++) {
        const mapping *m = o->out.part[c];
        if (!m || m->size == sizes[c] || o->kind == IR_PORT_OUT || sizes[c] == 0)
            continue;
        /* What flows through was reported where it began. */
        if (op_input(o) && op_input(o)->out.part[c] == m)
            continue;
        diag *d =
            pass_refuse(p, k, o, c, ids[c], "%s size must be %lld, got %lld", component_word(c), (long long)sizes[c], (long long)m->size);
        if (m->size < sizes[c]) {
            diag_help(p->diags, d, "pad to %lld: %s", (long long)sizes[c], pass_text(p, pass_pad(p, m, sizes[c])));
            pass_replace(p, o, d, c, pass_pad(p, m, sizes[c]));
        } else
            help_fewer_units(p, o, d, c, sizes[c]);
        return;
    }
}

/* A list in SPM is on the PEs of the slices that the device has. */
static void verify_pes(pass_context *p, kernel *k, op *o)
{
    const mapping *pe = o->out.part[PE];
    int64_t slices = units_of(k->slices, p->target->slices_per_cluster), pes = slices / p->target->slices_per_pe;
    if (!pe || o->bad || !k->is_device || slices == 0 || pe->size == pes)
        return;
    diag *d = pass_refuse(p, k, o, PE, E_PES, "Pe size must be %lld, a PE for %lld slices, got %lld", (long long)pes,
                          (long long)p->target->slices_per_pe, (long long)pe->size);
    if (pe->size < pes) {
        diag_help(p->diags, d, "pad to %lld: %s", (long long)pes, pass_text(p, pass_pad(p, pe, pes)));
        pass_replace(p, o, d, PE, pass_pad(p, pe, pes));
    } else
        diag_help(p->diags, d, "write m![1 # { Slice::SIZE / SLICES_PER_PE }]");
}

/* Does every unit component of a fragment fit the machine? (Device kernels must match exactly.) */
static void verify_fits(pass_context *p, kernel *k, op *o)
{
    int64_t sizes[] = {p->target->chips, p->target->clusters_per_chip, p->target->slices_per_cluster};
    static const diag_id ids[] = {E_CHIPS, E_CLUSTERS, E_SLICES};
    for (component c = CHIP; c <= SLICE; c++)
        if (o->out.part[c] && o->out.part[c]->size > sizes[c] && !o->bad) {
            diag *d = pass_refuse(p, k, o, c, ids[c], "%s size must be at most %lld, got %lld", component_word(c), (long long)sizes[c],
                                  (long long)o->out.part[c]->size);
            diag_help(p->diags, d, "let %lld of it stay and the rest become Element or Time", (long long)sizes[c]);
        }
}

void verify_counts(pass_context *p, kernel *k, op *o)
{
    const struct {
        component part;
        int64_t most;
        const char *what;
    } counts[] = {{TIME, p->target->stream_steps, "time steps"}, {PACKET, p->target->stream_packet_elements, "elements of a packet"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts && !o->bad; i++) {
        const mapping *m = o->out.part[counts[i].part];
        if (!m || m->size <= counts[i].most)
            continue;
        diag *d = pass_refuse(p, k, o, counts[i].part, E_STREAM_SIZE, "%s has %lld %s; a command counts %lld at most", pass_text(p, m),
                              (long long)m->size, counts[i].what, (long long)counts[i].most);
        diag_help(p->diags, d, "spread an axis over Slice, Cluster or several kernels");
    }
}

static void verify_context(pass_context *p, kernel *k, op *o)
{
    unsigned may = op_row_of(o->kind)->contexts;
    if (!op_kind_is_stage(o->kind) || may >> o->context & 1)
        return;
    bool sub = may & IN_SUB;
    diag *d =
        pass_refuse(p, k, o, MAPPING_COMPONENTS, E_CONTEXT, "`%s` runs in the main%s context, and this stream began in the %s context",
                    op_kind_word(o->kind), sub ? " or the sub" : "", context_name(o->context));
    diag_help(p->diags, d,
              o->context == CONTEXT_DMA ? "begin in @ctx.main or @ctx.sub; the dma context copies between HBM and DM: to_dm, to_hbm"
                                        : "begin in @ctx.main; the sub context fetches, collects, and stores or commits what it fetched");
}

/* Where the units of what is viewed begin in the memory's own. */
static int64_t first_unit(const op *view, component c)
{
    return view && view->window ? view->window->units[c] : 0;
}

static const op *begin_of(const op *o)
{
    while (o && !op_kind_is(o->kind, BEGINS_CHAIN))
        o = op_input(o);
    return o;
}

/* Is every stage between them on its own: no operand of other units' memory? */
static bool is_plain_chain(const op *begin, const op *end)
{
    for (const op *o = op_input(end); o && o != begin; o = op_input(o))
        if (o->operand_count > 1)
            return false;
    return !op_second(begin);
}

/* A stream runs in the chips and clusters that its tile holds, if all that it does is to write into a tile of the same ones. Of slices, and
 * else, it begins in every unit at its own DM: a tile of other units begins at their position 0, and no stage writes a part of them. */
static void verify_tiled_units(pass_context *p, kernel *k, op *o)
{
    const op *begin = op_kind_is(o->kind, ENDS_CHAIN) ? begin_of(o) : NULL, *into = o->kind == IR_COMMIT ? op_into(o) : NULL;
    const op *reads[] = {begin && begin->kind == IR_FETCH ? op_input(begin) : NULL, begin ? op_second(begin) : NULL};
    for (component c = CHIP; begin && c <= SLICE && !o->bad; c++) {
        bool same = c <= CLUSTER && reads[0] && into && first_unit(into, c) == first_unit(reads[0], c) && is_plain_chain(begin, o);
        diag *d = NULL;
        for (size_t i = 0; i < 2 && !o->bad; i++) {
            int64_t from = first_unit(reads[i], c);
            if (from && !same) {
                op *at = k->ops[begin->index];
                d = pass_refuse(p, k, at, c, E_UNITS_DIFFER, "the tile of `%s` begins at position %lld of %s, a stream of it at position 0",
                                op_root(reads[i])->name, (long long)from, component_word(c));
                diag_help(p->diags, d, "only DMA and switch move data between slices: copy the tile with to_dm");
                o->bad = true;
            }
        }
        if (o->bad || !into || same || into->out.part[c] == op_root(into)->out.part[c])
            continue;
        d = pass_refuse(p, k, o, c, E_UNITS_DIFFER, "commit writes in every unit of %s %s, and the tile of `%s` is a part of them",
                        component_word(c), pass_text(p, op_root(into)->out.part[c]), op_root(into)->name);
        diag_help(p->diags, d, "only DMA and switch move data between slices: copy the tile with to_dm_view");
    }
}

static void verify_flow(pass_context *p, kernel *k, op *o)
{
    for (component c = CHIP; c <= SLICE; c++)
        if (op_kind_is(o->kind, KEEPS_UNITS) && op_input(o)->out.part[c] && !op_lifts(o, c) &&
            !mapping_equal(p->mappings, o->out.part[c], op_input(o)->out.part[c]) && !o->bad) {
            diag *d = pass_refuse(p, k, o, c, E_UNITS_DIFFER, "%s passes through %s unchanged: it is %s, declared %s", component_word(c),
                                  op_kind_word(o->kind), pass_text(p, op_input(o)->out.part[c]), pass_text(p, o->out.part[c]));
            diag_help(p->diags, d, "only DMA and switch move data between slices");
        }
    if (!op_kind_is(o->kind, KEEPS_DTYPE | ACCUMULATES) || o->bad)
        return;
    dtype from = op_input(o)->out.dtype, expected = op_kind_is(o->kind, ACCUMULATES) ? dtype_row_of(from)->accumulates_in : from;
    if (o->commit_cast)
        expected = o->commit_cast->to;
    if (o->out.dtype != expected)
        diag_help(p->diags,
                  pass_refuse(p, k, o, MAPPING_COMPONENTS, E_TYPE, "%s gives %s elements, declared %s", op_kind_word(o->kind),
                              dtype_row_of(expected)->name, dtype_row_of(o->out.dtype)->name),
                  "declare %s; fetch and cast convert", dtype_row_of(expected)->name);
}

/* Elements of i5 and i9 go from a fetch to a contraction, and nowhere else ("Fetch Adapter", Contraction-Only Staging). */
static void verify_staging(pass_context *p, kernel *k, op *o)
{
    const op *in = op_input(o);
    dtype given = in ? in->out.dtype : o->out.dtype;
    if (!dtype_is_staging(given) || op_kind_is(o->kind, TAKES_STAGING) || (!in && !op_kind_is(o->kind, IS_PORT)))
        return;
    const char *name = dtype_row_of(given)->name;
    diag *d = in && !op_kind_is(o->kind, IS_PORT)
                  ? pass_refuse(p, k, o, MAPPING_COMPONENTS, E_STAGING, "`%s` takes no %s elements: a contraction does",
                                op_kind_word(o->kind), name)
                  : pass_refuse(p, k, o, MAPPING_COMPONENTS, E_STAGING,
                                "a stream of %s comes from a fetch of the kernel and ends in a contraction", name);
    diag_help(p->diags, d, "a zero point is subtracted for a contraction only; after it elements are i32");
}

/* Where a view of DM begins only a fetch asks a number of the launch. */
static void verify_starts(pass_context *p, kernel *k, op *o)
{
    for (size_t i = 0; i < o->operand_count && o->kind != IR_VIEW && !o->bad; i++) {
        bool fetched = o->kind == IR_FETCH && o->operands[i].role == OPERAND_INPUT && !op_second(o);
        if (!o->operands[i].of->starts || fetched)
            continue;
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_UNSUPPORTED,
                              "`%s` of a tile of DM that begins at a number of the launch is not supported%s", op_kind_word(o->kind),
                              op_second(o) ? " where two tensors are read by turns" : "");
        diag_help(p->diags, d,
                  "write the tile to memory of its own: ctx.main.begin(tile).fetch::<..>().collect().commit_trim::<..>().commit()");
    }
}

static void verify_one(pass_context *p, kernel *k, op *o)
{
    static void (*const rules[])(pass_context *, kernel *, op *) = {verify_context, verify_units,       verify_pes,
                                                                    verify_fits,    verify_counts,      verify_staging,
                                                                    verify_flow,    verify_tiled_units, verify_starts};
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !o->bad; i++)
        rules[i](p, k, o);
}

void pass_verify(pass_context *p, kernel *k)
{
    if (k->chips > p->target->chips) {
        diag *d = diag_add(p->diags, E_CHIPS, k->range, "the kernel runs on %lld chips, the machine has %lld", (long long)k->chips,
                           (long long)p->target->chips);
        diag_help(p->diags, d, "write #[device(chip = %lld)] or less", (long long)p->target->chips);
        k->bad = true;
        return;
    }
    pass_all(p, k, verify_one);
}
