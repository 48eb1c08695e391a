/* Rule ("Indirect DMA"): Element of the HBM tensor is payload and one run of digits, the indexed axis; the list says a position of it for
 * each value of Domain. So the HBM side is Element with a gap for the axis, the DM side holds payload and Domain, each pair once, and the
 * list holds Domain: the loops follow the DM side's digits, cut where payload or list are cut, and each moves either the HBM side or the
 * list. One derivation does both: the list's elements stand beyond all bits of the HBM tensor, LIST_BITS apart.
 *
 * Up to 0.8 axis and payload are not written: what the list (of a scatter: Key) names is Domain, the digits of Element that DM names next
 * to it are payload, and the rest is the axis. */
#include "passes/engine/dma.h"

#include <string.h>

#include "ir/mapping/mapping_without.h"
#include "support/order.h"

#define LIST_BITS (INT64_C(1) << 40) /* between two elements; a chip's HBM has fewer bits */
enum { LIST_SLICE = 1 << 11, LIST_CLUSTER = 1 << 20, LIST_ELEMENT_BYTES = 4, MOST_FACTORS = 64 };

/* A gather or scatter and its three tensors. */
typedef struct rows {
    pass_context *pass;
    kernel *kernel;
    op *op;
    const op *table, *local, *list; /* in HBM, in DM, wherever */
    const op *count;                /* how much of the list is taken; NULL: all */
    indirect_config *config;
    bool writes;
} rows;

static arena *arena_of(const rows *r)
{
    return r->pass->arena;
}

static void refuse(const rows *r, diag_id id, const char *help, const char *text)
{
    diag *d = pass_refuse(r->pass, r->kernel, r->op, MAPPING_COMPONENTS, id, "%s", text);
    diag_help(r->pass->diags, d, "%s", help);
}

static int64_t live_of(const mapping *m)
{
    int64_t live = 1;
    for (size_t i = 0; m && i < m->count; i++)
        live *= m->factors[i].live;
    return live;
}

static const mapping *live_part(const rows *r, const mapping *m)
{
    const mapping *all = mapping_identity(r->pass->mappings);
    for (size_t i = 0; m && i < m->count && all; i++)
        all = pass_pair(r->pass, all, mapping_without_padding(r->pass->mappings, &m->factors[i]));
    return all ? all : m;
}

/* The parts of a tensor from a component on as one mapping: Cluster, Slice, Element of DM. NULL: too large. */
static const mapping *parts_from(const rows *r, const tensor *t, component first)
{
    const mapping *all = mapping_identity(r->pass->mappings);
    for (component c = first; c <= ELEMENT && all; c++)
        if (t->part[c])
            all = pass_pair(r->pass, all, t->part[c]);
    return all;
}

/* The same values in an order of its own, to compare what is there. */
static const mapping *gathered(const rows *r, const mapping *m)
{
    const mapping *parts[] = {m};
    const mapping *g = m ? mapping_gather(r->pass->mappings, parts, 1) : NULL;
    return g ? g : m;
}

static bool names_axis(const mapping *m)
{
    const axis *first;
    return mapping_axes(m, &first, 1) > 0;
}

/* ---- the list ---- */

static bool check_chips(const rows *r)
{
    mapping_context *c = r->pass->mappings;
    const mapping *chip = r->table->out.part[CHIP], *list = r->list->out.part[CHIP];
    if (!mapping_equal(c, chip, r->local->out.part[CHIP])) {
        diag *d = pass_refuse(r->pass, r->kernel, r->op, CHIP, E_UNITS_DIFFER, "rows stay on their chip: Chip is %s in HBM and %s in DM",
                              pass_text(r->pass, chip), pass_text(r->pass, r->local->out.part[CHIP]));
        diag_help(r->pass->diags, d, "declare the same Chip; a shuffle moves data between chips");
        return false;
    }
    if (!names_axis(list) || mapping_equal(c, list, chip))
        return true;
    refuse(r, E_INDEX_LIST, "spread the list over the chips as the data is, or keep it without an axis on Chip",
           arena_printf(arena_of(r), "the list's Chip %s must either be broadcast or match the data's %s", pass_text(r->pass, list),
                        pass_text(r->pass, chip)));
    return false;
}

/* A count is of the list's elements as they follow each other in HBM, and in its logical form. */
static bool is_counted_in_order(const rows *r)
{
    const tensor *list = &r->list->out;
    const axis *axes[MOST_FACTORS];
    uint32_t count = mapping_axes(list->part[ELEMENT], axes, MOST_FACTORS);
    const mapping *order = mapping_identity(r->pass->mappings);
    for (uint32_t i = 0; i < count && i < MOST_FACTORS; i++)
        order = pass_pair(r->pass, order, mapping_symbol(r->pass->mappings, axes[i]));
    if (op_root(r->list) == r->list && mapping_equal(r->pass->mappings, order, list->part[ELEMENT]))
        return true;
    refuse(r, E_INDEX_LIST, "let a tensor of its own be the list, with whole axes in its Element",
           arena_printf(arena_of(r), "a count is of a whole list, in the order of its axes, which %s is not",
                        pass_text(r->pass, list->part[ELEMENT])));
    return false;
}

/* Of a list in SPM the PEs after the first have nothing, and clusters that are not named have one list. */
static const mapping *held_by(rows *r)
{
    const tensor *list = &r->list->out;
    if (list->kind != TENSOR_SPM || names_axis(list->part[CLUSTER]))
        return live_part(r, parts_from(r, list, CLUSTER));
    return live_part(r, list->part[ELEMENT]);
}

static bool is_on_first_pe(const rows *r)
{
    const mapping *pe = r->list->out.part[PE];
    if (!pe || (!names_axis(pe) && live_of(pe) == 1))
        return true;
    refuse(r, E_INDEX_LIST,
           pe->size == 1
               ? "declare the list with Pe m![1]"
               : arena_printf(arena_of(r), "declare the list with Pe m![1 # %lld], and all of it in Element", (long long)pe->size),
           arena_printf(arena_of(r), "an indirect DMA reads one list: it must keep the entire list on PE 0, and its Pe is %s",
                        pass_text(r->pass, pe)));
    return false;
}

static bool check_list(rows *r)
{
    const tensor *list = &r->list->out;
    pass_context *p = r->pass;
    bool dm = list->kind != TENSOR_HBM, spm = list->kind == TENSOR_SPM;
    if (list->dtype != DTYPE_I32) {
        refuse(r, E_INDEX_LIST, "convert it to i32",
               arena_printf(arena_of(r), "the list is of %s; indices are i32", dtype_row_of(list->dtype)->name));
        return false;
    }
    if (!is_on_first_pe(r))
        return false;
    const mapping *all = held_by(r), *said = r->config->domain;
    int64_t entries = live_of(all), most = dm ? p->target->indirect_list_entries : p->target->indirect_list_most;
    if ((!dm || spm) && !mapping_is_full(list->part[ELEMENT])) {
        refuse(r, E_INDEX_LIST, arena_printf(arena_of(r), "declare its Element %s", pass_text(p, live_part(r, list->part[ELEMENT]))),
               arena_printf(arena_of(r), "padding in the list: its Element is %s", pass_text(p, list->part[ELEMENT])));
        return false;
    }
    if (entries > most) {
        refuse(r, E_INDEX_LIST,
               dm ? "multiply the row numbers by the bytes of a row and keep the list in HBM, or take it in tiles of 1024"
                  : "take it in tiles",
               dm ? arena_printf(arena_of(r), "the list has %s of 4 bytes: it must keep the entire list on PE 0, whose SPM has %s",
                                 arena_count(arena_of(r), entries, "entry"), arena_count(arena_of(r), most * LIST_ELEMENT_BYTES, "byte"))
                  : arena_printf(arena_of(r), "the list has %s; one command walks %lld", arena_count(arena_of(r), entries, "entry"),
                                 (long long)most));
        return false;
    }
    if (said && !mapping_equal(p->mappings, live_part(r, said), all)) {
        refuse(r, E_INDEX_LIST, arena_printf(arena_of(r), "write %s", pass_text(p, all)),
               arena_printf(arena_of(r), "%s %s is not what the list holds, in its order: %s",
                            r->kernel->dialect >= DIALECT_V0_9 ? "Domain" : "Key", pass_text(p, said), pass_text(p, all)));
        return false;
    }
    r->config->domain = all;
    if (r->count && !is_counted_in_order(r))
        return false;
    return check_chips(r);
}

/* ---- the axis ---- */

/* Do values of the two factors meet in one digit of an axis? */
static bool meet(const factor *a, const factor *b)
{
    if (a->kind == FACTOR_COMPOSITE || b->kind == FACTOR_COMPOSITE)
        return a->inner && a->inner == b->inner;
    return a->axis && a->axis == b->axis && a->weight < b->weight * b->live && b->weight < a->weight * a->live;
}

static bool holds(const mapping *m, const factor *f)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].live > 1 && meet(&m->factors[i], f))
            return true;
    return false;
}

/* The run of Element's factors that is no payload; NULL with a refusal where it is none, or several. */
static const mapping *infer_axis(rows *r)
{
    const mapping *element = r->table->out.part[ELEMENT], *domain = r->config->domain, *local = parts_from(r, &r->local->out, CLUSTER);
    size_t first = element->count, last = 0;
    for (size_t i = 0; i < element->count; i++) {
        const factor *f = &element->factors[i];
        if (f->live == 1 || (holds(local, f) && !holds(domain, f)))
            continue;
        first = i < first ? i : first;
        last = i;
    }
    if (first == element->count) /* one row */
        return mapping_identity(r->pass->mappings);
    for (size_t i = first; i <= last; i++) {
        const factor *f = &element->factors[i];
        if (f->live > 1 && (!holds(local, f) || holds(domain, f)))
            continue;
        refuse(r, E_INDEX_AXIS, "let one axis of the HBM tensor be neither in the payload nor in the list",
               arena_printf(arena_of(r), "the digits of %s that are no payload must be consecutive: `%s` is between them",
                            pass_text(r->pass, element), mapping_text(mapping_of_factor(r->pass->mappings, f), arena_of(r))));
        return NULL;
    }
    return mapping_of_factors(r->pass->mappings, &element->factors[first], last - first + 1);
}

/* Positions between two of the axis; 0: Element has it not as one run. */
static int64_t run_stride(const rows *r, const mapping *run, const mapping **left)
{
    const mapping *element = r->table->out.part[ELEMENT];
    int64_t stride;
    const mapping *without = mapping_without(r->pass->mappings, element, run, &stride);
    *left = without ? without : element;
    return without ? stride : 0;
}

/* Sets the axis with its stride, unit and positions; *left: the payload in HBM. */
static bool find_axis(rows *r, const mapping **left)
{
    pass_context *p = r->pass;
    const tensor *table = &r->table->out;
    indirect_config *c = r->config;
    bool given = c->indexed != NULL, again = c->stride > 0;
    if (!given)
        c->indexed = infer_axis(r);
    if (!c->indexed)
        return false;
    int64_t stride = run_stride(r, c->indexed, left), bits = dtype_row_of(table->dtype)->bits;
    if (stride == 0) {
        refuse(r, E_INDEX_AXIS, "name digits that are next to each other in Element, all of them",
               arena_printf(arena_of(r), "IndexedAxis `%s` must be consecutive in %s", mapping_text(c->indexed, arena_of(r)),
                            pass_text(p, table->part[ELEMENT])));
        return false;
    }
    if (given && !again && r->writes && c->indexed->size == 1) {
        refuse(r, E_INDEX_AXIS, "name digits that have several positions; a table of one row is written by to_hbm_view",
               "scatter indexed axis must name an axis: what is written here has one position, which is the same as `1`");
        return false;
    }
    if (stride * bits % 8) {
        refuse(r, E_INDEX_AXIS, "let the payload inside of it have an even number of elements",
               arena_printf(arena_of(r), "positions of `%s` are %s apart, which is not whole bytes", mapping_text(c->indexed, arena_of(r)),
                            arena_count(arena_of(r), stride * bits, "bit")));
        return false;
    }
    c->stride = stride * bits / 8;
    c->unit = c->by_positions ? 1 : c->stride;
    c->positions = c->indexed->count <= 1 ? live_of(c->indexed) : c->indexed->size;
    if (c->indexed->count > 1 && !mapping_is_full(c->indexed)) {
        refuse(r, E_INDEX_AXIS, "let it be whole axes",
               arena_printf(arena_of(r), "padding inside IndexedAxis `%s`", mapping_text(c->indexed, arena_of(r))));
        return false;
    }
    return true;
}

/* Payload, as it is written, is what the HBM tensor has next to the axis; of a scatter its live values are. */
static bool check_payload(rows *r, const mapping *left)
{
    pass_context *p = r->pass;
    const mapping *said = r->config->payload;
    bool same =
        !said || (r->writes ? gathered(r, live_part(r, said)) == gathered(r, live_part(r, left)) : mapping_equal(p->mappings, said, left));
    if (same)
        return true;
    refuse(r, E_INDEX_AXIS, arena_printf(arena_of(r), "write %s", pass_text(p, left)),
           arena_printf(arena_of(r),
                        r->writes ? "the destination cannot hold payload %s: besides `%s` it has %s"
                                  : "gather payload must be table mapping without `%2$s`: %3$s, not %1$s",
                        pass_text(p, said), mapping_text(r->config->indexed, arena_of(r)), pass_text(p, left)));
    return false;
}

/* ---- loops ---- */

/* The list's components, its elements LIST_BITS apart and those of other slices and clusters where no loop goes on from one into the next.
 */
static size_t list_spaces(const rows *r, sequence_space *out)
{
    const tensor *t = &r->list->out;
    size_t count = 0;
    if (t->kind == TENSOR_SPM && names_axis(t->part[CLUSTER]))
        out[count++] = (sequence_space){t->part[CLUSTER], LIST_CLUSTER * LIST_BITS};
    if (t->kind == TENSOR_DM) {
        out[count++] = (sequence_space){t->part[CLUSTER], LIST_CLUSTER * LIST_BITS};
        out[count++] = (sequence_space){t->part[SLICE], LIST_SLICE * LIST_BITS};
    }
    out[count++] = (sequence_space){t->part[ELEMENT], LIST_BITS};
    return count;
}

/* Bytes of the DMA address space for so many of the list's elements. */
static int64_t list_bytes(const rows *r, int64_t elements)
{
    const target *t = r->pass->target;
    if (r->list->out.kind == TENSOR_HBM)
        return elements * LIST_ELEMENT_BYTES;
    return elements / LIST_CLUSTER * t->slices_per_cluster * t->dm_slice_stride_bytes +
           elements % LIST_CLUSTER / LIST_SLICE * t->dm_slice_stride_bytes + elements % LIST_SLICE * LIST_ELEMENT_BYTES;
}

typedef struct row_loop {
    const mapping *term;
    int64_t size, hbm, dm, list; /* bytes */
} row_loop;

/* The list outermost, in its order: of equal rows of a scatter the later one stays. */
static int by_list(const void *a, const void *b)
{
    const row_loop *x = a, *y = b;
    return order_then(ORDER(y->list, x->list), ORDER(y->dm, x->dm));
}

static int by_list_base(const void *a, const void *b)
{
    const copy *x = a, *y = b;
    return order_then(ORDER(x->source / LIST_BITS, y->source / LIST_BITS), ORDER(x->destination, y->destination));
}

static int by_weight(const void *a, const void *b)
{
    int64_t x = ((const sequence_part *)a)->term->factors[0].weight, y = ((const sequence_part *)b)->term->factors[0].weight;
    return ORDER(y, x);
}

/* A command in the making. */
typedef struct row_copy {
    row_loop loops[COPY_MAX_LOOPS + 2];
    size_t count;
    int64_t hbm, dm, list, packet; /* bytes */
} row_copy;

static dma_config **add_commands(const rows *r, const row_copy *c, size_t outer, row_copy at, dma_config **end)
{
    if (c->count - outer > SEQUENCER_MAX_ENTRIES) { /* the outermost loop as so many commands */
        const row_loop *l = &c->loops[outer];
        for (int64_t i = 0; i < l->size; i++) {
            end = add_commands(r, c, outer + 1, at, end);
            at.hbm += l->hbm;
            at.dm += l->dm;
            at.list += l->list;
        }
        return end;
    }
    dma_config *d = ARENA_NEW(arena_of(r), dma_config);
    *d = (dma_config){.source_base = r->writes ? at.dm : at.hbm,
                      .destination_base = r->writes ? at.hbm : at.dm,
                      .list_base = at.list,
                      .list_first = (at.list - dma_base(r->pass, r->list)) % r->pass->target->hbm_chip_stride_bytes / LIST_ELEMENT_BYTES,
                      .packet_bytes = c->packet};
    sequencer_config *s = &d->sequencer;
    *s = (sequencer_config){.walk = WALK_COPY, .packet = c->packet, .access_bytes = c->packet, .contiguous_bytes = c->packet};
    for (size_t i = outer; i < c->count; i++) {
        const row_loop *l = &c->loops[i];
        s->entries[s->count++] = (sequencer_entry){l->term, l->size, r->writes ? l->dm : l->hbm, r->writes ? l->hbm : l->dm, l->list};
    }
    if (s->count == 0)
        s->entries[s->count++] = (sequencer_entry){.term = mapping_identity(r->pass->mappings), .size = 1};
    *end = d;
    return &d->next;
}

static void add_loop(row_copy *c, const mapping *term, int64_t size, int64_t hbm, int64_t dm, int64_t list)
{
    if (size > 1)
        c->loops[c->count++] = (row_loop){term, size, hbm, dm, list};
}

/* Chips that hold data, as a loop; false: they are no front of all. */
static bool add_chips(const rows *r, row_copy *c)
{
    const mapping *chip = r->table->out.part[CHIP];
    const target *t = r->pass->target;
    int64_t live = live_of(chip), dm = t->dm_slice_stride_bytes * t->slices_per_cluster * t->clusters_per_chip;
    bool front = chip->count == 0 || live == chip->factors[0].live * (chip->size / chip->factors[0].extent);
    if (!front)
        return false;
    bool own = names_axis(r->list->out.part[CHIP]) || (r->list->out.kind == TENSOR_SPM && live_of(r->list->out.part[CHIP]) >= live);
    add_loop(c, chip, live, t->hbm_chip_stride_bytes, dm, own ? (r->list->out.kind == TENSOR_HBM ? t->hbm_chip_stride_bytes : dm) : 0);
    return true;
}

/* What DM cannot be walked in: the first quantity that is no multiple of 8 bytes; NULL: none. */
static const char *misaligned(const rows *r, const row_copy *c, int64_t *value)
{
    int64_t unit = r->pass->target->dma_dm_multiple_bytes;
    *value = c->packet;
    if (c->packet % unit)
        return "packet";
    *value = r->local->out.address;
    if (*value >= 0 && c->dm % unit)
        return "address";
    for (size_t i = 0; i < c->count; i++) {
        *value = c->loops[i].dm;
        if (*value % unit)
            return "stride";
    }
    return NULL;
}

/* The loops of one copy as commands; false: refused. */
static bool make_copy(rows *r, copy *from, int64_t *commands, dma_config ***end)
{
    pass_context *p = r->pass;
    int64_t bits = dtype_row_of(r->table->out.dtype)->bits, most = p->target->dma_packet_max_bytes;
    copy_merge(p, from, bits);
    row_copy c = {.packet = from->run_bits / 8,
                  .hbm = dma_base(p, r->table) + from->source % LIST_BITS / 8,
                  .dm = dma_base(p, r->local) + from->destination / 8,
                  .list = dma_base(p, r->list) + list_bytes(r, from->source / LIST_BITS)};
    bool whole = from->run_bits % 8 == 0 && from->source % LIST_BITS % 8 == 0 && from->destination % 8 == 0;
    for (size_t i = 0; i < from->count; i++) {
        const copy_loop *l = &from->loops[i];
        whole = whole && l->source % LIST_BITS % 8 == 0 && l->destination % 8 == 0;
        add_loop(&c, l->term, l->size, l->source % LIST_BITS / 8, l->destination / 8, list_bytes(r, l->source / LIST_BITS));
    }
    if (!whole) {
        refuse(r, E_DMA_ALIGN, "keep the innermost axis, with an even number of elements, the same on both sides",
               arena_printf(arena_of(r), "the copy would have to cut bytes: %s elements have %s", dtype_row_of(r->table->out.dtype)->name,
                            arena_count(arena_of(r), bits, "bit")));
        return false;
    }
    if (c.packet > most) {
        int64_t unit = p->target->dma_dm_multiple_bytes, run = c.packet;
        c.packet = run % unit == 0 ? unit * largest_divisor(run / unit, most / unit) : largest_divisor(run, most);
        add_loop(&c, mapping_identity(p->mappings), run / c.packet, c.packet, c.packet, 0);
    }
    if (!add_chips(r, &c)) {
        refuse(r, E_UNSUPPORTED, "let the chips that hold it be the first ones",
               "rows of a tensor that some chips in between do not hold are not supported");
        return false;
    }
    int64_t value = 0;
    const char *what = r->writes ? NULL : misaligned(r, &c, &value);
    if (what) {
        diag *d = pass_refuse(p, r->kernel, r->op, ELEMENT, E_DMA_ALIGN,
                              "DMA %s of %s is not a multiple of %lld bytes, which a DM destination needs", what,
                              arena_count(arena_of(r), value, "byte"), (long long)p->target->dma_dm_multiple_bytes);
        diag_help(p->diags, d, "let the part of a row that is in one piece be a multiple of 8 bytes");
        return false;
    }
    for (size_t i = 0; i < c.count; i++)
        if (c.loops[i].size > p->target->sequencer_entry_size) {
            diag *d = pass_refuse(p, r->kernel, r->op, ELEMENT, E_DMA_ENTRIES, "`%s` needs %lld iterations, an entry has at most %lld",
                                  mapping_text(c.loops[i].term, arena_of(r)), (long long)c.loops[i].size,
                                  (long long)p->target->sequencer_entry_size);
            diag_help(p->diags, d, "take the rows in tiles");
            return false;
        }
    order_sort(c.loops, c.count, sizeof *c.loops, by_list);
    int64_t here = 1;
    for (size_t i = 0; i + SEQUENCER_MAX_ENTRIES < c.count && here <= COPY_MAX_COMMANDS; i++)
        here *= c.loops[i].size;
    *commands += here;
    if (*commands <= COPY_MAX_COMMANDS)
        *end = add_commands(r, &c, 0, c, *end);
    return true;
}

/* The units of the tensor in DM, with nothing on this component. */
static const mapping *unnamed(rows *r, component c)
{
    return pass_pad(r->pass, mapping_identity(r->pass->mappings), r->local->out.part[c]->size);
}

/* The same positions with one of several copies: the first one. */
static const mapping *one_copy(const rows *r, const mapping *m)
{
    pass_context *p = r->pass;
    const mapping *all = mapping_identity(p->mappings), *none = all;
    for (size_t i = 0; i < m->count && all; i++) {
        const factor *f = &m->factors[i];
        const mapping *live = f->kind == FACTOR_BROADCAST ? none : mapping_without_padding(p->mappings, f);
        all = live ? pass_pair(p, all, pass_pad(p, live, f->extent)) : NULL;
    }
    return all ? all : m;
}

/* What of the tensor in DM takes part: of updates that several units hold those of the first one are written. */
static tensor taken_of(const rows *r)
{
    tensor taken = r->local->out;
    for (component c = CLUSTER; r->writes && c <= ELEMENT; c++)
        if (taken.part[c])
            taken.part[c] = one_copy(r, taken.part[c]);
    return taken;
}

/* Is it a digit of what the factor counts? */
static bool is_digit_of(const factor *f, const factor *whole)
{
    return f->axis && f->axis == whole->axis && f->weight >= whole->weight && f->weight * (f->live - 1) < whole->weight * whole->live;
}

static bool is_whole_group(const factor *f)
{
    return f->kind == FACTOR_COMPOSITE && f->weight == 1 && f->live == f->inner->size;
}

/* Positions of the digits of what the factor counts, of whole groups too. */
static int64_t positions_of(const mapping *m, const factor *whole)
{
    int64_t positions = 1;
    for (size_t i = 0; i < m->count; i++) {
        const factor *f = &m->factors[i];
        positions *= is_digit_of(f, whole) ? f->live : 1;
        for (size_t k = 0; is_whole_group(f) && k < f->inner->count; k++)
            positions *= is_digit_of(&f->inner->factors[k], whole) ? f->inner->factors[k].live : 1;
    }
    return positions;
}

/* Of `found` elements, those that are left where digits of these axes end with them. */
static int64_t ending_with(int64_t found, const mapping *local, const mapping *axes)
{
    for (size_t i = 0; i < axes->count; i++) {
        int64_t positions = positions_of(local, &axes->factors[i]);
        if (positions > axes->factors[i].live)
            found = found / positions * axes->factors[i].live;
    }
    return found;
}

static int64_t live_where_axes_end(const rows *r, const mapping *local, const mapping *left)
{
    return ending_with(ending_with(live_of(local), local, r->config->domain), local, left);
}

/* The DM side holds each payload of each row once: no more, no less. */
static bool check_data(rows *r, const sequence *seq, const mapping *left, const mapping *local)
{
    pass_context *p = r->pass;
    int64_t wanted = live_of(left) * live_of(r->config->domain), found = live_where_axes_end(r, local, left);
    const sequence_part *repeated = NULL;
    for (size_t i = 0; i < seq->count && !repeated; i++)
        repeated = seq->parts[i].stride == 0 ? &seq->parts[i] : NULL;
    if (!repeated && wanted == found)
        return true;
    const char *more = repeated ? arena_printf(arena_of(r), "; `%s` is in neither", mapping_text(repeated->term, arena_of(r))) : "";
    refuse(r, E_INDEX_DATA,
           arena_printf(arena_of(r), "declare Cluster %s, Slice %s, Element %s", pass_text(p, unnamed(r, CLUSTER)),
                        pass_text(p, unnamed(r, SLICE)), pass_text(p, pass_pair(p, r->config->domain, live_part(r, left)))),
           arena_printf(arena_of(r), "%s %s %s: it has %s, %lld of each of %s are needed%s", r->writes ? "the updates" : "the result",
                        pass_text(p, local),
                        r->writes ? "cannot supply payload for each entry once" : "cannot hold payload for each entry once",
                        arena_count(arena_of(r), found, "element"), (long long)live_of(left),
                        arena_count(arena_of(r), live_of(r->config->domain), "entry"), more));
    return false;
}

/* The digits of whole groups one by one, with the same positions: a group's padding is a step between what is outside of it and inside. */
static size_t open_groups(const rows *r, const sequence_space *from, size_t count, sequence_space *to)
{
    pass_context *p = r->pass;
    size_t opened = 0;
    for (size_t i = 0; i < count; i++) {
        const mapping *m = from[i].mapping, *inner = mapping_identity(p->mappings);
        int64_t stride = from[i].stride, size = 1;
        for (size_t k = m->count; k-- > 0 && inner;) {
            const factor *f = &m->factors[k];
            bool is_group = is_whole_group(f) && f->live < f->extent;
            inner = pass_pair(p, is_group ? f->inner : mapping_of_factor(p->mappings, f), inner);
            size *= f->extent;
            if (!is_group || k == 0 || !inner || opened + 1 + count - i >= COPY_SPACES)
                continue;
            to[opened++] = (sequence_space){inner, stride};
            stride *= size;
            size = 1;
            inner = mapping_identity(p->mappings);
        }
        to[opened++] = inner ? (sequence_space){inner, stride} : from[i];
    }
    return opened;
}

/* The loops of one axis that stand in several digits count past its end together: made one digit, whose loops end with it. */
static void join_digits(const rows *r, sequence *seq, const factor *whole)
{
    sequence_part *joined = ARENA_ARRAY(arena_of(r), sequence_part, seq->count),
                  *others = ARENA_ARRAY(arena_of(r), sequence_part, seq->count);
    size_t count = 0, left = 0;
    int64_t positions = 1;
    for (size_t i = 0; i < seq->count; i++) {
        const mapping *term = seq->parts[i].term;
        bool is_part = term->count == 1 && is_digit_of(&term->factors[0], whole);
        if (is_part)
            joined[count++] = seq->parts[i];
        else
            others[left++] = seq->parts[i];
        positions *= is_part ? seq->parts[i].size : 1;
    }
    if (count < 2 || positions <= whole->live)
        return;
    order_sort(joined, count, sizeof *joined, by_weight);
    for (size_t i = 0; i < count; i++) {
        joined[i].digit = joined[0].digit;
        joined[i].live = whole->live;
    }
    memcpy(seq->parts, others, left * sizeof *others);
    memcpy(seq->parts + left, joined, count * sizeof *joined);
}

/* Of the list and of what a row holds. */
static void join_all(const rows *r, sequence *seq, const mapping *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].kind == FACTOR_AXIS)
            join_digits(r, seq, &m->factors[i]);
}

static void make_loops(rows *r, const mapping *left)
{
    pass_context *p = r->pass;
    tile_window window = {0};
    const mapping *gap = NULL;
    sequence_space from[1 + 3], all_parts[COPY_SPACES], to[COPY_SPACES];
    if (mapping_tile(p->mappings, r->table->out.part[ELEMENT], r->config->indexed, 1, 0, &gap, NULL, &window) != TILE_OK) {
        refuse(r, E_INDEX_AXIS, "name digits of Element that are no part of a padded group",
               arena_printf(arena_of(r), "IndexedAxis `%s` must be consecutive in %s", mapping_text(r->config->indexed, arena_of(r)),
                            pass_text(p, r->table->out.part[ELEMENT])));
        return;
    }
    from[0] = (sequence_space){gap, dtype_row_of(r->table->out.dtype)->bits};
    tensor taken = taken_of(r);
    size_t from_count = 1 + list_spaces(r, from + 1), to_count = dma_spaces(p, &taken, all_parts) - 1;
    sequence seq;
    const mapping *local = parts_from(r, &taken, CLUSTER);
    if (live_where_axes_end(r, local, left) != live_of(local))
        to_count = open_groups(r, all_parts + 1, to_count, to);
    else
        memcpy(to, all_parts + 1, to_count * sizeof *to);
    if (!sequence_derive_spaces(p->mappings, from, from_count, NULL, to, to_count, SEQUENCE_COPY, &seq)) {
        diag *d =
            pass_refuse(p, r->kernel, r->op, ELEMENT, sequence_id(&seq), "no DMA loops copy these rows: %s", sequence_reason(p, &seq));
        diag_note(p->diags, d, SRC_NOWHERE, "payload %s, Domain %s; in DM %s", pass_text(p, left), pass_text(p, r->config->domain),
                  pass_text(p, local));
        diag_help(p->diags, d, "cut the axes at common divisors on both sides");
        return;
    }
    if (!check_data(r, &seq, left, local))
        return;
    join_all(r, &seq, r->config->domain);
    join_all(r, &seq, left);
    arena *scratch = arena_new_inside(p->arena);
    copy_list all = copy_expand(scratch, &seq, to);
    int64_t commands = 0;
    dma_config **end = &r->op->dma;
    bool good = true;
    order_sort(all.items, all.count, sizeof *all.items, by_list_base);
    for (size_t i = 0; i < all.count && good && !all.too_many; i++) {
        good = make_copy(r, &all.items[i], &commands, &end);
        all.too_many = commands > COPY_MAX_COMMANDS;
    }
    arena_free(scratch);
    if (good && all.too_many)
        refuse(r, E_DMA_ENTRIES, "keep neighbouring digits together on both sides",
               arena_printf(arena_of(r), "the copy would take more than %d DMA commands", COPY_MAX_COMMANDS));
}

static void indirect_one(pass_context *p, kernel *k, op *o)
{
    bool writes = o->kind == IR_SCATTER;
    rows r = {.pass = p,
              .kernel = k,
              .op = o,
              .table = writes ? op_into(o) : op_input(o),
              .local = writes ? op_input(o) : o,
              .list = op_index(o),
              .count = op_count(o),
              .config = o->indirect,
              .writes = writes};
    const mapping *left = NULL;
    o->dma = NULL;
    if (o->bad || op_uses_bad(o) || !check_list(&r) || !find_axis(&r, &left) || !check_payload(&r, left))
        return;
    r.config->counted = r.count;
    if (r.count)
        r.config->count_base = dma_base(p, r.count);
    make_loops(&r, left);
}

void pass_indirect(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_GATHER, indirect_one);
    pass_each(p, k, IR_SCATTER, indirect_one);
}
