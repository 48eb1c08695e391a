#include "frontend/upgrade_move.h"

#include <string.h>

#include "frontend/stage.h"
#include "ir/mapping/mapping_without.h"

/* One call. */
typedef struct mover {
    const upgrade_input *in;
    const ast *node, *types, *arguments;
    const op *const *ops; /* that the call made */
    size_t op_count;
    const char *device;
    upgrade_move *out;
} mover;

/* The operation of that kind, where all of the call's are of the same tensors; NULL. */
static const op *made(const mover *m, op_kind kind)
{
    const op *found = NULL;
    for (size_t i = 0; i < m->op_count; i++) {
        const op *o = m->ops[i];
        if (o->kind == kind && found && memcmp(o->out.part, found->out.part, sizeof o->out.part) != 0)
            return NULL;
        found = o->kind == kind ? o : found;
    }
    return found && !found->bad ? found : NULL;
}

static void change(const mover *m, uint32_t begin, uint32_t end, const char *text)
{
    m->out->changes[m->out->count++] = (upgrade_change){{m->node->range.file, begin, end}, text};
}

static void refuse(const mover *m, const char *why, const char *help)
{
    m->out->refusal = why;
    m->out->help = help;
}

static const char *source_of(const mover *m, const ast *n)
{
    return arena_strndup(m->in->arena, source_text(m->in->sources, n->range.file) + n->range.begin, n->range.end - n->range.begin);
}

static const char *text_of(const mover *m, const mapping *x)
{
    return arena_printf(m->in->arena, "m![%s]", mapping_text(x, m->in->arena));
}

/* After the name and its type arguments. */
static uint32_t name_end(const mover *m)
{
    return ast_is(m->types, AST_GENERIC_ARGS) ? m->types->range.end : m->node->name_range.end;
}

static bool is_name(const ast *n)
{
    while (ast_is(n, AST_BORROW))
        n = ast_kid(n, 0);
    return ast_is(n, AST_PATH) && n->kid_count == 1;
}

/* A variable without `&` or `&mut` in front of it. */
static const char *name_of(const mover *m, const ast *n)
{
    while (ast_is(n, AST_BORROW))
        n = ast_kid(n, 0);
    return source_of(m, n);
}

/* ---- rows by a list ---- */

/* "gather::<m![K], m![D]>().by_byte_offsets::<m![G]>"; NULL: refused. */
static const char *plan_of(const mover *m, const char *verb, const op *o, const tensor *rows)
{
    const indirect_config *x = o ? o->indirect : NULL;
    int64_t stride;
    if (!x || !x->indexed || !x->domain) {
        refuse(m, "what its list counts through is known where the function is compiled only", "mend what is wrong with the kernel");
        return NULL;
    }
    const op *list = op_index(o);
    if (x->by_positions && list && list->out.kind != TENSOR_SPM) {
        refuse(m, "it lists numbers of rows in SPM only", "copy the list there with to_spm, or list byte offsets");
        return NULL;
    }
    const mapping *payload = x->payload ? x->payload : mapping_without(m->in->mappings, rows->part[ELEMENT], x->indexed, &stride);
    return arena_printf(m->in->arena, "%s::<%s, %s>().%s::<%s>", verb, text_of(m, x->indexed), payload ? text_of(m, payload) : "_",
                        x->by_positions ? "by_positions" : "by_byte_offsets", text_of(m, x->domain));
}

/* Of a gather's type arguments those that its copy to DM takes: Cluster, Slice, Element. */
static const char *copy_types(const mover *m, uint32_t first)
{
    if (!ast_is(m->types, AST_GENERIC_ARGS) || m->types->kid_count < first + 3)
        return "";
    return arena_printf(m->in->arena, "::<%s, %s, %s>", source_of(m, m->types->kids[first]), source_of(m, m->types->kids[first + 1]),
                        source_of(m, m->types->kids[first + 2]));
}

static void move_gather(const mover *m)
{
    const op *o = made(m, IR_GATHER);
    const char *plan = plan_of(m, "gather", o, o ? &op_input(o)->out : NULL);
    if (!plan)
        return;
    uint32_t list_end = m->arguments->kids[0]->range.end, end = m->arguments->kids[m->arguments->kid_count - 1]->range.end;
    bool in_spm = strcmp(m->node->text, "dma_gather_unscaled") == 0;
    change(m, m->node->name_range.begin, name_end(m), plan);
    if (end > list_end)
        change(m, list_end, end, "");
    change(m, m->node->range.end, m->node->range.end,
           arena_printf(m->in->arena, ".to_dm%s(&mut %s.tdma)", copy_types(m, in_spm ? 3 : 0), m->device));
}

static void move_scatter(const mover *m)
{
    const ast *data = ast_kid(m->node, 0), *list = ast_kid(m->arguments, 0), *into = ast_kid(m->arguments, 1);
    const op *o = made(m, IR_SCATTER);
    const char *plan = plan_of(m, "scatter", o, o && op_into(o) ? &op_into(o)->out : NULL);
    if (!plan)
        return;
    if (!is_name(data) || !is_name(list) || !is_name(into)) {
        refuse(m, "the memory that is written comes first, then what is copied", "give the tensors names with let, then upgrade");
        return;
    }
    change(m, m->node->range.begin, m->node->range.end,
           arena_printf(m->in->arena, "%s.view_mut().%s(%s%s).from_dm_view(&mut %s.tdma, %s.view())", name_of(m, into), plan,
                        ast_is(list, AST_BORROW) ? "&" : "", name_of(m, list), m->device, name_of(m, data)));
}

/* ---- from chip to chip and cluster to cluster ---- */

static int64_t entry_of(const ast *pattern, uint32_t i)
{
    const ast *n = i < pattern->kid_count ? pattern->kids[i] : NULL;
    return n && ast_is(n, AST_INT) ? n->value : -1;
}

/* "chip_shuffle([1, 0])", "cluster_swap()"; NULL: refused. */
static const char *shuffle_of(const mover *m, const ast *list)
{
    const ast *pattern = ast_is(list, AST_BORROW) ? ast_kid(list, 0) : list;
    if (strcmp(m->node->text, "dm_cluster_swap") == 0)
        return "cluster_swap()";
    if (strcmp(m->node->text, "dm_chip_shuffle") == 0)
        return arena_printf(m->in->arena, "chip_shuffle(%s)", source_of(m, pattern));
    if (ast_is(pattern, AST_ARRAY) && pattern->kid_count == 2 && entry_of(pattern, 0) == 1 && entry_of(pattern, 1) == 0)
        return "cluster_swap()";
    refuse(m, "of clusters it only swaps two", "write [1, 0], or take what another cluster holds with cluster_slice");
    return NULL;
}

/* The copy that a plan ends with, up to what it copies by. */
static const char *plan_copy(const mover *m)
{
    const op *o = made(m, IR_TO_DM);
    return o && o->out.part[ELEMENT] ? arena_printf(m->in->arena, ".to_dm::<%s>(", text_of(m, o->out.part[ELEMENT])) : ".to_dm(";
}

/* `view.dm_chip_shuffle::<4>(dma, &[..])`: the DMA stays where it is, the pattern goes in front of it. */
static void move_shuffle(const mover *m)
{
    const ast *dma = ast_kid(m->arguments, 0), *list = ast_kid(m->arguments, 1);
    const char *shuffle = shuffle_of(m, list);
    if (!shuffle)
        return;
    change(m, m->node->name_range.begin, dma->range.begin, arena_printf(m->in->arena, "%s%s", shuffle, plan_copy(m)));
    if (!ast_is(list, AST_NONE))
        change(m, dma->range.end, list->range.end, "");
}

/* `ctx.tdma.dm_chip_shuffle::<..>(view, &[..])` of April: the view stays. */
static void move_shuffled_view(const mover *m)
{
    const ast *view = ast_kid(m->arguments, 0), *list = ast_kid(m->arguments, 1);
    const char *shuffle = shuffle_of(m, list);
    if (!shuffle)
        return;
    change(m, m->node->range.begin, view->range.begin, "");
    change(m, view->range.end, m->node->range.end, arena_printf(m->in->arena, ".%s%s&mut %s.tdma)", shuffle, plan_copy(m), m->device));
}

/* `ctx.sub.parallel_copy_chip_slice::<n, Axis, ..>(view, &[..])` */
static void move_slices(const mover *m)
{
    const ast *view = ast_kid(m->arguments, 0), *list = ast_kid(m->arguments, 1);
    if (!ast_is(m->types, AST_GENERIC_ARGS) || m->types->kid_count < 2 || ast_is(m->types->kids[1], AST_TYPE_INFER)) {
        refuse(m, "it wants the axis of which each takes a position", "write the axis in place of `_`");
        return;
    }
    const op *o = made(m, IR_COMMIT);
    const char *element = o && o->out.part[ELEMENT] ? text_of(m, o->out.part[ELEMENT]) : "_";
    const char *name = strcmp(m->node->text, "parallel_copy_chip_slice") == 0 ? "asymmetric_chip_slice" : "asymmetric_cluster_slice";
    change(m, m->node->range.begin, view->range.begin, "");
    change(m, view->range.end, list->range.begin,
           arena_printf(m->in->arena, ".%s::<%s, %s>(&mut %s.sub, ", name, source_of(m, m->types->kids[1]), element, m->device));
}

/* ---- inside a slice ---- */

/* `x.to_dm_pcopy(sub)`, `x.to_dm_pcopy(sub, &mut y)`, `view.to_dm_view_pcopy(sub, view)`: the stages that they are. */
static void move_inside(const mover *m)
{
    const ast *from = ast_kid(m->node, 0), *into = ast_kid(m->arguments, 1);
    const op *read = made(m, IR_FETCH), *write = made(m, IR_COMMIT);
    const mapping *packet = write && op_input(write) ? op_input(write)->out.part[PACKET] : NULL, *kept;
    if (!read || !packet || !write->sequencer || mapping_resize(m->in->mappings, packet, write->sequencer->packet, &kept) != MAPPING_OK) {
        refuse(m, "which packets it copies is known where the function is compiled only", "mend what is wrong with the kernel");
        return;
    }
    const char *stages = arena_printf(m->in->arena, "%s).fetch::<%s, %s>().collect().commit_trim::<%s>()", is_name(from) ? ".view()" : "",
                                      text_of(m, read->out.part[TIME]), text_of(m, read->out.part[PACKET]), text_of(m, kept));
    change(m, m->node->range.begin, m->node->range.begin, arena_printf(m->in->arena, "%s.sub.begin(", m->device));
    if (ast_is(into, AST_NONE)) {
        change(m, from->range.end, m->node->range.end,
               arena_printf(m->in->arena, "%s.commit::<%s>()", stages, text_of(m, write->out.part[ELEMENT])));
    } else if (ast_is(into, AST_BORROW)) {
        change(m, from->range.end, m->node->range.end,
               arena_printf(m->in->arena, "%s.commit_view(%s.view_mut())", stages, name_of(m, into)));
    } else {
        change(m, from->range.end, into->range.begin, arena_printf(m->in->arena, "%s.commit_view(", stages));
    }
}

/* Is the call one of the DMA, `ctx.tdma.dm_chip_shuffle(..)`, and not of a view? */
static bool is_of_unit(const ast *node)
{
    return ast_is(ast_kid(node, 0), AST_FIELD);
}

bool upgrade_move_of(const upgrade_input *in, const ast *node, const op *const *ops, size_t count, const char *device, upgrade_move *out)
{
    static const struct {
        const char *name;
        uint32_t least, of_unit; /* arguments; of_unit: 1 only calls of ctx.tdma or ctx.sub, 0 only others */
        void (*move)(const mover *m);
        bool wants_device;
    } rows[] = {
        {"dma_gather", 2, 0, move_gather, true},
        {"dma_gather_scaled", 1, 0, move_gather, true},
        {"dma_gather_unscaled", 1, 0, move_gather, true},
        {"dma_scatter", 2, 0, move_scatter, true},
        {"dm_chip_shuffle", 2, 0, move_shuffle, false},
        {"dm_cluster_shuffle", 2, 0, move_shuffle, false},
        {"dm_cluster_swap", 1, 0, move_shuffle, false},
        {"dm_chip_shuffle", 2, 1, move_shuffled_view, true},
        {"dm_cluster_shuffle", 2, 1, move_shuffled_view, true},
        {"to_dm_pcopy", 1, 0, move_inside, true},
        {"to_dm_view_pcopy", 2, 0, move_inside, true},
        {"parallel_copy_chip_slice", 2, 1, move_slices, true},
        {"parallel_copy_cluster_slice", 2, 1, move_slices, true},
    };
    *out = (upgrade_move){.count = 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(node->text, rows[i].name) != 0 || ast_kid(node, 2)->kid_count < rows[i].least || is_of_unit(node) != rows[i].of_unit)
            continue;
        mover m = {in, node, ast_kid(node, 1), ast_kid(node, 2), ops, count, device, out};
        if (rows[i].wants_device && !device)
            refuse(&m, "it wants the DMA, and the function has no Device", "give the function a parameter `device: &mut Device`");
        else
            rows[i].move(&m);
        return true;
    }
    return false;
}
