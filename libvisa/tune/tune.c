/* visa_tune: from a question to a source. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/source.h"
#include "libvisa/compilation.h"
#include "libvisa/layout.h"
#include "libvisa/tune/bound.h"
#include "libvisa/tune/cache.h"
#include "libvisa/tune/detour.h"
#include "libvisa/tune/file.h"
#include "libvisa/tune/flow_search.h"
#include "libvisa/tune/folded.h"
#include "libvisa/tune/forms.h"
#include "libvisa/tune/lanes.h"
#include "libvisa/tune/lay.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/pointwise.h"
#include "libvisa/tune/pool.h"
#include "libvisa/tune/ranges.h"
#include "libvisa/tune/relaid.h"
#include "libvisa/tune/scaled.h"
#include "libvisa/tune/search.h"
#include "libvisa/tune/standing.h"
#include "libvisa/tune/team.h"
#include "libvisa/tune/window.h"
#include "libvisa/tune/window_write.h"
#include "support/integer.h"

void tune_describe_split(const char *name, const tune_share *share, int64_t size, int64_t loop, int64_t cluster, int64_t slice,
                         int64_t tile, int64_t padded, strbuf *out)
{
    strbuf_printf(out, "//   %s:", share->axis ? share->axis : name);
    if (share->axis)
        strbuf_printf(out, " %" PRId64 " chips x", share->chips);
    if (loop > 1)
        strbuf_printf(out, " %" PRId64 " iterations x", loop);
    if (cluster > 1)
        strbuf_printf(out, " %" PRId64 " clusters x", cluster);
    if (slice > 1)
        strbuf_printf(out, " %" PRId64 " slices x", slice);
    strbuf_printf(out, " %" PRId64 " in a slice", tile);
    if (padded != size)
        strbuf_printf(out, ", padded to %" PRId64, padded);
    strbuf_puts(out, "\n");
}

static const char *describe_plan(const tune_question *q, const tune_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++) {
        const tune_split *s = &p->split[role];
        if (q->axis_text[role] || q->share[role].axis)
            tune_describe_split(q->axis_text[role], &q->share[role], q->size[role], s->loop, s->cluster, s->slice, s->tile, s->padded,
                                &out);
    }
    if (p->sum_loop > 1)
        strbuf_printf(&out, "//   %s: %" PRId64 " parts of %" PRId64 "\n", q->axis_text[TUNE_SUM], p->sum_loop, tune_sum_part(p));
    return out.text;
}

bool tune_refuse_all(diag_list *diags, src_range question, size_t tried, const char *first_refusal)
{
    diag *d = tried ? diag_add(diags, E_TUNE_NONE, question, "no kernel of the %zu that were tried compiles", tried)
                    : diag_add(diags, E_TUNE_NONE, question,
                               "no way was found to share these sizes out over the chip's memories: no kernel was tried");
    if (first_refusal)
        diag_note(diags, d, SRC_NOWHERE, "the first one: %s", first_refusal);
    diag_help(diags, d, "ask for sizes that are multiples of 64 elements, or for a part of the tensors");
    return false;
}

const char *tune_head(const char *question, const char *types, const char *work, const attainable *b, const tune_answer *x, const char *how,
                      arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    strbuf_puts(&out, "// ");
    for (const char *c = question; *c; c++) /* one line */
        strbuf_append(&out, *c == '\n' || *c == '\r' || *c == '\t' || *c == '\v' || *c == '\f' ? " " : c, 1);
    strbuf_printf(&out, "\n// %s\n//\n// %" PRId64 " cycles", types, x->cycles);
    if (x->timing != TIMING_DOCUMENTED)
        strbuf_printf(&out, " by --timing=%s", timing_preset_name(x->timing));
    if (b->cycles > 0) /* published schedules state no limits */
        strbuf_printf(
            &out,
            ", %" PRId64 ".%02" PRId64 " times the least that the timing model allows, %" PRId64 " (copies %" PRId64 ", %s %" PRId64 "%s)",
            x->cycles / b->cycles, x->cycles * 100 / b->cycles % 100, b->cycles, b->copies, work, b->products,
            b->waits > b->copies && b->waits > b->products ? arena_printf(a, ", where stores wait for them %" PRId64, b->waits) : "");
    strbuf_puts(&out, ".\n");
    strbuf_printf(&out, "// The DMA Engine works in %" PRId64 " %% of them.\n", x->dma_cycles * 100 / x->cycles);
    strbuf_puts(&out, tune_singular(a, how));
    strbuf_puts(
        &out,
        tune_singular(a, arena_printf(a, "// Made by visac tune: %zu kernels compiled, %zu of them refused, %zu more left by the budget.\n",
                                      x->tried, x->refused, x->left)));
    return out.text;
}

static const char *types_of(const tune_question *q, arena *a)
{
    return arena_printf(a, "in %s, sums in %s, out %s.", dtype_row_of(q->type)->name,
                        dtype_row_of(dtype_row_of(q->type)->accumulates_in)->name, dtype_row_of(q->out_type)->name);
}

const char *tune_head_of_contraction(const tune_question *q, const attainable *bound, const tune_answer *x, const char *how, arena *a)
{
    return tune_head(q->text, types_of(q, a), "products", bound, x, how, a);
}

/* ---- flows ---- */

static void add_axis(tune_kernel *k, tune_kernel_axis one)
{
    for (size_t i = 0; i < k->axis_count; i++)
        if (strcmp(k->axes[i].text, one.text) == 0)
            return;
    k->axes[k->axis_count++] = one;
}

static bool read_flow(diag_list *diags, const visa_tune_options *o, const tune_expression *e, tune_flow *f, tune_kernel *out)
{
    if (!tune_flow_read(e, o, (flow_reading){0}, diags, f))
        return false;
    for (size_t g = 0; g < f->group_count; g++)
        add_axis(out, (tune_kernel_axis){f->groups[g].text, f->groups[g].parts, f->groups[g].size});
    return true;
}

/* ---- contractions ---- */

/* Axes of a role, of those that have a bit: "K, L"; NULL: there are none. */
static const char *names_of(const tune_question *q, int role, unsigned of, arena *a)
{
    const char *parts = NULL;
    for (size_t i = 0; i < q->axis_count; i++)
        if ((int)q->axes[i].role == role && (of >> i & 1))
            parts = parts ? arena_printf(a, "%s, %s", parts, q->axes[i].name) : q->axes[i].name;
    return parts;
}

static bool read_contraction(diag_list *diags, const visa_tune_options *o, const tune_expression *e, tune_question *q, tune_kernel *out)
{
    if (!tune_question_read(e, o, diags, q))
        return false;
    if (q->group > 0) {
        add_axis(out, (tune_kernel_axis){q->group_axis, names_of(q, TUNE_SUM, e->grouped, diags->arena), tune_groups_of(q)});
        add_axis(out, (tune_kernel_axis){q->added_axis, names_of(q, TUNE_SUM, ~e->grouped, diags->arena), q->group});
    }
    for (int role = 0; role < (q->group > 0 ? TUNE_SUM : TUNE_ROLES); role++) {
        const char *parts = names_of(q, role, ~0U, diags->arena);
        if (parts)
            add_axis(out, (tune_kernel_axis){q->axis_text[role], parts, q->size[role]});
    }
    return true;
}

/* The form of a question with the fastest kernel, and its plan. */
typedef struct found_form {
    const tune_question *question; /* NULL: none has a kernel */
    tune_answer answer;            /* plans of all forms are counted */
    window_plan window;            /* of a convolution */
    const tune_family *family;     /* of the kernel; NULL: it is one of whole sums, or a convolution */
    const void *plan;              /* of the family */
} found_form;

/* What is searched for beside kernels of whole sums, in this order. */
static const tune_family *const families[] = {&lanes_family, &folded_family, &standing_family, &pointwise_family, &ranges_family};

/* All forms share the work; those that cannot be faster are left out, and those that come when to find the plans of others took longer than
 * the budget, and a second. Kernels whose sums slices share are few, and their estimates close: a part of the work is theirs where plans
 * took all. */
static void search_forms(arena *a, const target *t, const visa_tune_options *o, const tune_question *forms, size_t count, found_form *out)
{
    enum { PART_OF_OTHERS = 8, LOOKED_FOR_ANYWAY = 4000000 };
    visa_tune_options part = *o;
    uint64_t looked_for = 0;
    part.work = o->work / count;
    *out = (found_form){0};
    for (size_t i = 0; i < count; i++) {
        const tune_question *q = &forms[i];
        const tune_answer before = out->answer;
        tune_answer x;
        window_plan window;
        const tune_family *family = NULL;
        const void *plan = NULL;
        const bool is_alone = q->group > 0 || tune_is_widened(q, TUNE_ROW) || tune_is_widened(q, TUNE_COLUMN);
        if (out->question && (tune_bound_of(t, q).cycles >= before.cycles || looked_for > o->work + LOOKED_FOR_ANYWAY))
            break;
        bool found = q->window_count > 0 ? tune_window_search(t, q, &part, a, &x, &window) : tune_search(t, q, &part, a, &x);
        looked_for += x.looked_for;
        x.work_left = (uint64_t)larger((int64_t)x.work_left, (int64_t)(part.work / PART_OF_OTHERS));
        for (size_t k = 0; q->window_count == 0 && !is_alone && k < sizeof families / sizeof *families; k++) {
            const void *faster = tune_search_family(families[k], t, q, a, &x);
            family = faster ? families[k] : family;
            plan = faster ? faster : plan;
        }
        if ((found || family) && (!out->question || x.cycles < before.cycles)) {
            out->question = q;
            out->answer = x;
            out->family = family;
            out->plan = plan;
            if (q->window_count > 0)
                out->window = window;
        }
        out->answer.tried = before.tried + x.tried;
        out->answer.refused = before.refused + x.refused;
        out->answer.left = before.left + x.left;
        out->answer.first_refusal = before.first_refusal ? before.first_refusal : x.first_refusal;
    }
}

static bool refuse_shares(diag_list *diags, src_range question, const visa_tune_options *o)
{
    diag *d = diag_add(diags, E_TUNE_MACHINE, question, "the result has no axis of which each of %" PRId64 " chips has a part", o->chips);
    diag_help(diags, d, "ask for a size that is a multiple of %" PRId64 ", or for fewer chips", o->chips);
    return false;
}

/* A contraction as flows: without the kept axes that have one position, so that a vector is an operand like any other, and with one for
 * each operand; with a sum over one position and without it; and each with the other one of two values as the stream. */
typedef struct contraction_flows {
    tune_flow of[8];
    size_t count;
} contraction_flows;

/* A contraction is a flow as well, whose slices may share what is summed: where its own answer is far from the bound, or there is none. A
 * part of the work is enough, since the search ends at the cycles that are known. */
static bool answer_by_flow(visa_compilation *c, const target *t, const visa_tune_options *o, const contraction_flows *f,
                           const found_form *x, tune_found *out)
{
    enum { FAR_PERCENT = 125, PART = 4 };
    visa_tune_options part = *o;
    part.work = o->work / PART;
    part.progress = NULL;
    int64_t cycles = x->question ? x->answer.cycles : 0;
    return o->chips <= 1 && (!x->question || cycles > tune_bound_of(t, x->question).cycles * FAR_PERCENT / 100) &&
           flow_beats(t, f->of, f->count, &part, cycles, c->arena, out);
}

static bool answer_contraction(visa_compilation *c, const target *t, const visa_tune_options *o, const tune_question *q,
                               const contraction_flows *f, diag_list *diags, tune_found *out)
{
    arena *a = c->arena;
    src_range range = tune_whole_range(q->tensors[TUNE_OUT].range.file, q->text);
    tune_question *forms = ARENA_ARRAY(a, tune_question, TUNE_FORMS_MAX);
    size_t count = tune_forms_of(t, q, larger(1, o->chips), a, forms);
    tune_text text;
    found_form x;
    if (count == 0)
        return refuse_shares(diags, range, o);
    search_forms(a, t, o, forms, count, &x);
    if (answer_by_flow(c, t, o, f, &x, out))
        return true;
    if (!x.question)
        return tune_refuse_all(diags, range, x.answer.tried, x.answer.first_refusal);
    attainable bound = tune_bound_of(t, &forms[0]); /* the least */
    bool has_window = q->window_count > 0;
    const char *how = has_window ? tune_window_describe(x.question, &x.window, a)
                      : x.family ? x.family->describe(x.question, x.plan, a)
                                 : describe_plan(x.question, &x.answer.plan, a),
               *head = tune_head_of_contraction(q, &bound, &x.answer, how, a);
    if (has_window)
        window_write(t, x.question, &x.window, head, &x.answer.found, a, &text);
    else if (x.family)
        x.family->write_text(t, x.question, x.plan, head, &x.answer.found, a, &text);
    else
        tune_write(x.question, &x.answer.plan, t, head, &x.answer.found, a, &text);
    *out = (tune_found){text.text, x.answer.cycles, bound, types_of(q, a), "products", x.answer.tried, x.answer.refused, x.answer.left};
    return true;
}

static bool answer_flow(visa_compilation *c, const target *t, const visa_tune_options *o, const tune_flow *f, diag_list *diags,
                        tune_found *out)
{
    enum { AGAIN = 1, AFTER = 2, LESS = 4, LEFT = 8, LYING = 16, READINGS = 32 };
    tune_flow *x = ARENA_ARRAY(c->arena, tune_flow, READINGS);
    int64_t chips = larger(1, o->chips);
    diag_list refusals;
    size_t count = 0;
    diag_list_init(&refusals, c->arena);
    if (tune_forms_of_flow(f, chips, c->arena, &x[count++]) == 0)
        return refuse_shares(diags, tune_whole_range(f->e->file, f->e->text), o);
    for (int way = 1; way < READINGS; way++) {
        const flow_reading how = {.multiplies_again = way & AGAIN,
                                  .divides_after = way & AFTER,
                                  .streams_less = way & LESS,
                                  .leaves_sums = way & LEFT,
                                  .streams_lying = way & LYING};
        tune_flow *read = ARENA_NEW(c->arena, tune_flow);
        if ((how.multiplies_again && !f->has_sums_again) || (how.divides_after && !f->has_divisions) ||
            (how.streams_less && !f->has_choice) || (how.leaves_sums && !f->has_meeting) || (how.streams_lying && !f->has_lying))
            continue;
        if (tune_flow_read(f->e, o, how, &refusals, read) && tune_forms_of_flow(read, chips, c->arena, &x[count]) > 0)
            count++;
    }
    return flow_answer(t, x, count, o, diags, out);
}

/* ---- both ---- */

/* Are its sums of integers too small to saturate in a slice? Those are the same however slices share them, and so is what is done to them
 * in i32. Not with operands, whose types the contraction has from its sums. */
static bool has_exact_sums(const tune_question *q)
{
    int64_t least = INT64_C(1) << (dtype_row_of(q->type)->bits - 1), products = INT32_MAX / (least * least);
    return q->extra_count == 0 && q->meets == DTYPE_I32 && dtype_row_of(q->out_type)->kind == DTYPE_KIND_INT &&
           q->size[TUNE_SUM] <= products;
}

/* A contraction that is flows, too. Not of integers whose sums would saturate in each slice, nor of an image. What the kernel calls the
 * flow's axes is known as well, whichever of both is the answer. */
static void read_as_flows(visa_compilation *c, const visa_tune_options *o, const tune_expression *e, const tune_question *q,
                          contraction_flows *f, tune_kernel *out)
{
    diag_list refusals;
    diag_list_init(&refusals, c->arena);
    f->count = 0;
    if (q->window_count > 0 || (dtype_row_of(q->type)->accumulates_in != DTYPE_F32 && !has_exact_sums(q)))
        return;
    for (int sums = 1; sums >= (q->size[TUNE_SUM] > 1); sums--)
        for (int implies = 0; implies <= (q->size[TUNE_ROW] == 1 || q->size[TUNE_COLUMN] == 1); implies++) {
            tune_expression *joined = ARENA_NEW(c->arena, tune_expression);
            *joined = tune_question_joined(e, q, implies, sums, c->arena);
            tune_flow *read = &f->of[f->count];
            if (!read_flow(&refusals, o, joined, read, out))
                continue;
            f->count++;
            f->count += read->has_choice && tune_flow_read(joined, o, (flow_reading){.streams_less = true}, &refusals, read + 1);
        }
}

/* The question as a flow: as it is, or, where it has none then, without the axes of one position. */
static tune_expression flow_of(const visa_tune_options *o, const tune_expression *e, arena *a)
{
    diag_list refusals;
    tune_flow f;
    bool has_scalar = false; /* which no slice has room for */
    diag_list_init(&refusals, a);
    for (size_t t = 1; t < e->tensor_count; t++)
        has_scalar = has_scalar || e->tensors[t].count == 0;
    return has_scalar || !tune_flow_read(e, o, (flow_reading){0}, &refusals, &f) ? tune_expression_flowing(e, a) : *e;
}

/* Is one product asked that no contraction has, with what is around it, `.. + (x[m, n] + r[m, n])`, or as its operands lie, but a flow has?
 * Not of integers, nor of an image, as above. */
static bool is_flow_alone(visa_compilation *c, const visa_tune_options *o, const tune_expression *flowing, const tune_expression *e)
{
    diag_list refusals;
    tune_question q;
    tune_flow f;
    diag_list_init(&refusals, c->arena);
    if (e->window_count > 0 || tune_question_read(e, o, &refusals, &q))
        return false;
    diag_id id = refusals.items[0]->id;
    return (id == E_TUNE_QUESTION || id == E_TUNE_LAYOUT || id == E_TUNE_AXIS) &&
           tune_flow_read(flowing, o, (flow_reading){0}, &refusals, &f) && dtype_row_of(f.type)->accumulates_in == DTYPE_F32;
}

/* The options with which a half of a detour is asked. */
static visa_tune_options asked_of(const visa_tune_options *o, const detour_question *q)
{
    enum { PART = 4 };
    visa_tune_options x = *o;
    x.question = q->text;
    x.sizes = q->sizes;
    x.size_count = q->size_count;
    x.out_dtype = q->out_type;
    x.work = o->work / PART;
    x.progress = NULL;
    return x;
}

/* The contraction, into rows of whole blocks. False: it has no kernel, and nothing is diagnosed. */
static bool answer_first(visa_compilation *c, const target *t, const visa_tune_options *o, const detour *d, int file, tune_found *out)
{
    visa_tune_options of = asked_of(o, &d->first);
    tune_expression e;
    tune_question q;
    tune_kernel names = {0};
    contraction_flows flows = {.count = 0};
    diag_list refusals;
    diag_list_init(&refusals, c->arena);
    if (!tune_expression_read(of.question, file, &of, &refusals, &e) || !read_contraction(&refusals, &of, &e, &q, &names))
        return false;
    read_as_flows(c, &of, &e, &q, &flows, &names);
    return answer_contraction(c, t, &of, &q, &flows, &refusals, out);
}

/* What is done to the sums. */
static bool answer_second(visa_compilation *c, const target *t, const visa_tune_options *o, const detour *d, int file, tune_kernel *names,
                          tune_found *out)
{
    visa_tune_options of = asked_of(o, &d->second);
    tune_expression e;
    tune_flow f;
    diag_list refusals;
    diag_list_init(&refusals, c->arena);
    if (!tune_expression_read(of.question, file, &of, &refusals, &e))
        return false;
    for (size_t i = 1; i < e.tensor_count; i++)
        if (strcmp(e.tensors[i].name, d->sums) == 0) {
            e.tensors[i].row_axes = d->column_axes;
            e.tensors[i].row_in_hbm = d->padded;
        }
    const tune_expression flowing = flow_of(&of, &e, c->arena);
    return read_flow(&refusals, &of, &flowing, &f, names) && answer_flow(c, t, &of, &f, &refusals, out);
}

/* Where an answer is far from its bound: sums by way of HBM, if that is faster. */
static void take_detour(visa_compilation *c, const target *t, const visa_tune_options *o, const tune_expression *e, tune_kernel *out,
                        tune_found *x)
{
    enum { FAR = 2 };
    detour d;
    tune_found first, second;
    arena *a = c->arena;
    tune_kernel names = {0};
    tune_trial one = {.timing = tune_timing_of(o)};
    if (x->cycles <= FAR * x->bound.cycles || !detour_of(t, e, o, a, &d) || !answer_first(c, t, o, &d, e->file, &first) ||
        first.cycles >= x->cycles || !answer_second(c, t, o, &d, e->file, &names, &second) || first.cycles + second.cycles >= x->cycles ||
        !detour_join(t, &d, "", first.text.text, second.text.text, a, &one.text.text) || !tune_try_text(a, &one) || one.refusal ||
        one.cycles >= x->cycles)
        return;
    tune_answer answer = {.timing = one.timing,
                          .cycles = one.cycles,
                          .dma_cycles = one.dma_cycles,
                          .tried = x->tried + first.tried + second.tried + 1,
                          .refused = x->refused + first.refused + second.refused,
                          .left = x->left + first.left + second.left};
    const char *how = arena_printf(a, "%s%s", detour_choices(first.text.text, a), detour_choices(second.text.text, a));
    for (size_t i = 0; i < names.axis_count; i++)
        add_axis(out, names.axes[i]);
    add_axis(out, (tune_kernel_axis){d.own, d.own_parts, d.columns});
    x->cycles = one.cycles;
    detour_join(t, &d, tune_head(e->text, x->types, x->work, &x->bound, &answer, how, a), first.text.text, second.text.text, a, &x->text);
}

/* The answer that the cache has; of several processes the first one looks. */
static bool found_before(visa_compilation *c, const visa_tune_options *o, strbuf *out)
{
    strbuf_init(out, c->arena);
    unsigned char *text = o->part == 0 && tune_cache_find(o, out) ? (unsigned char *)out->text : NULL;
    size_t bytes = out->bytes;
    if (!tune_team_share(o, &text, &bytes) || !text)
        return false;
    if (o->part > 0) {
        strbuf_append(out, (const char *)text, bytes);
        free(text);
    }
    return true;
}

/* On disk, by one of several processes. */
static bool keep_answer(const visa_tune_options *o, const tune_kernel *k)
{
    if (o->part == 0)
        tune_cache_keep(o, &k->text);
    return true;
}

/* Is it a tensor in another order, which no flow has? */
static bool lay_is_asked(visa_compilation *c, const visa_tune_options *o, const tune_expression *e, lay_order *x, tune_kernel *out)
{
    diag_list refusals;
    tune_flow f;
    diag_list_init(&refusals, c->arena);
    const tune_expression flowing = flow_of(o, e, c->arena);
    if (!lay_read(e, o, c->arena, x) || tune_flow_read(&flowing, o, (flow_reading){0}, &refusals, &f))
        return false;
    for (size_t i = 0; i < x->count; i++)
        add_axis(out, (tune_kernel_axis){x->axes[i].name, x->axes[i].parts, x->axes[i].size});
    return true;
}

/* Is it a convolution that is none as its tensors lie, but otherwise? */
static bool is_relaid(visa_compilation *c, const visa_tune_options *o, const tune_expression *e, tune_question *known)
{
    diag_list refusals;
    diag_list_init(&refusals, c->arena);
    return tune_is_contraction(e) && e->window_count > 0 && !tune_question_read(e, o, &refusals, known) &&
           refusals.items[0]->id == E_TUNE_LAYOUT && relaid_read(e, o, c->arena, known);
}

static bool answer_relaid(visa_compilation *c, const target *t, const visa_tune_options *o, const tune_expression *e,
                          const tune_question *known, tune_kernel *out)
{
    static const contraction_flows none = {.count = 0};
    tune_found found;
    for (size_t i = 0; i < e->axis_count; i++)
        add_axis(out, (tune_kernel_axis){e->axes[i].name, e->axes[i].name, e->axes[i].size});
    return found_before(c, o, &out->text) || (answer_contraction(c, t, o, known, &none, &c->diags, &found) &&
                                              relaid_weave(c, t, o, e, known, &found, &c->diags, &out->text) && keep_answer(o, out));
}

/* ---- sums of groups that meet their scales ---- */

static bool has_zeros(const tune_expression *e)
{
    bool has = false;
    for (size_t i = 0; i < e->tensor_count; i++)
        has = has || e->tensors[i].has_zero;
    return has;
}

static bool refuse_groups(diag_list *diags, const tune_expression *e, const tune_question *q)
{
    diag *d = diag_add(diags, E_TUNE_SIZE, tune_whole_range(e->file, e->text),
                       "a sum of %" PRId64 " elements of %s in groups of %" PRId64
                       " has no packets of 32 or 64 bytes that are whole groups, or equal parts of one",
                       q->size[TUNE_SUM], dtype_row_of(q->type)->name, q->group);
    diag_help(diags, d, "take groups of 32, 64 or 128 elements, an even number of them; a group more whose scale is zero changes nothing");
    return false;
}

/* As flows; of integers whose scales are not rounded to them, and whose sums do not saturate. Types are those of the contraction. */
static void read_scaled_as_flows(visa_compilation *c, const visa_tune_options *o, const tune_expression *scaled, const tune_question *q,
                                 contraction_flows *f)
{
    diag_list refusals;
    const int64_t least = INT64_C(1) << (dtype_row_of(q->type)->bits - 1);
    const bool is_float = dtype_row_of(q->type)->accumulates_in == DTYPE_F32;
    diag_list_init(&refusals, c->arena);
    f->count = 0;
    if (!is_float && q->group > INT32_MAX / (least * least))
        return;
    for (int flat = 0; flat <= is_float; flat++) {
        tune_expression *flowing = ARENA_NEW(c->arena, tune_expression);
        *flowing = tune_scaled_flowing(scaled, flat, c->arena);
        f->count += tune_flow_read(flowing, o, (flow_reading){0}, &refusals, &f->of[f->count]);
    }
}

static bool answer_scaled(visa_compilation *c, const target *t, const visa_tune_options *o, const tune_expression *scaled, tune_kernel *out)
{
    tune_question q;
    contraction_flows flows = {.count = 0};
    tune_found found;
    if (!read_contraction(&c->diags, o, scaled, &q, out))
        return false;
    if (!has_zeros(scaled))
        read_scaled_as_flows(c, o, scaled, &q, &flows);
    for (size_t i = 0; i < flows.count; i++)
        for (size_t g = 0; g < flows.of[i].group_count; g++)
            add_axis(out, (tune_kernel_axis){flows.of[i].groups[g].text, flows.of[i].groups[g].parts, flows.of[i].groups[g].size});
    if (found_before(c, o, &out->text))
        return true;
    const found_form none = {.question = NULL};
    if (tune_packet_of(t, &q) == 0) {
        if (!answer_by_flow(c, t, o, &flows, &none, &found))
            return refuse_groups(&c->diags, scaled, &q);
    } else if (!answer_contraction(c, t, o, &q, &flows, &c->diags, &found))
        return false;
    out->text = found.text;
    return keep_answer(o, out);
}

/* Is it a contraction with scales or zero points, or a sum of sums that is a contraction? Where it has no kernel as such a flow may have
 * one, else why it has none says more. *as_contraction: the contraction that it would be; NULL: it is none. */
static bool is_scaled(visa_compilation *c, const visa_tune_options *o, const tune_expression *e, const tune_expression **as_contraction)
{
    diag_list refusals;
    tune_question q;
    tune_flow f;
    diag_list_init(&refusals, c->arena);
    *as_contraction = NULL;
    if (tune_is_contraction(e))
        return false;
    tune_expression *scaled = ARENA_NEW(c->arena, tune_expression);
    if (!tune_scaled_read(e, c->arena, scaled))
        return false;
    *as_contraction = scaled;
    if (tune_question_read(scaled, o, &refusals, &q))
        return true;
    const tune_expression flowing = flow_of(o, e, c->arena);
    return (scaled->scale_count > 0 || has_zeros(scaled)) && !tune_flow_read(&flowing, o, (flow_reading){0}, &refusals, &f);
}

static bool answer_pool(visa_compilation *c, const target *t, const visa_tune_options *o, const tune_expression *e, tune_kernel *out)
{
    pool_question *q = ARENA_NEW(c->arena, pool_question);
    if (!pool_read(e, o, &c->diags, q))
        return false;
    for (int d = 0; d < POOL_DIMS; d++)
        if (q->dims[d].name)
            add_axis(out, (tune_kernel_axis){q->dims[d].name, q->dims[d].parts, q->dims[d].size});
    return found_before(c, o, &out->text) || (pool_answer(t, o, e, q, &c->diags, &out->text) && keep_answer(o, out));
}

bool tune_answer_one(visa_compilation *c, const visa_tune_options *o, int file, tune_kernel *out)
{
    tune_expression e;
    tune_question q;
    tune_flow f;
    contraction_flows flows = {.count = 0};
    tune_found found;
    target part;
    *out = (tune_kernel){0};
    if (!tune_machine_read(c->target, o, &c->diags, &part))
        return false;
    if (!tune_expression_read(o->question, file, o, &c->diags, &e))
        return false;
    out->result = e.tensors[0].name;
    const tune_expression *as_contraction;
    if (is_scaled(c, o, &e, &as_contraction)) {
        if (as_contraction->scale_count > 0 || has_zeros(as_contraction))
            return answer_scaled(c, &part, o, as_contraction, out);
        e = *as_contraction;
    }
    const tune_expression flowing = flow_of(o, &e, c->arena);
    lay_order order;
    if (lay_is_asked(c, o, &e, &order, out))
        return found_before(c, o, &out->text) || (lay_answer(&part, o, &e, &order, &c->diags, &out->text) && keep_answer(o, out));
    if (pool_is_asked(&e))
        return answer_pool(c, &part, o, &e, out);
    if (is_relaid(c, o, &e, &q))
        return answer_relaid(c, &part, o, &e, &q, out);
    const bool is_contraction = tune_is_contraction(&e), contracts = is_contraction && !is_flow_alone(c, o, &flowing, &e);
    if (contracts ? !read_contraction(&c->diags, o, &e, &q, out) : !read_flow(&c->diags, o, &flowing, &f, out))
        return false;
    if (contracts)
        read_as_flows(c, o, &e, &q, &flows, out);
    if (found_before(c, o, &out->text))
        return true;
    as_contraction = is_contraction ? &e : as_contraction;
    if (as_contraction && !contracts) { /* of no kernel, why it is no contraction says more */
        diag_list refusals;
        diag_list_init(&refusals, c->arena);
        if (!answer_flow(c, &part, o, &f, &refusals, &found))
            return read_contraction(&c->diags, o, as_contraction, &q, out);
    } else if (contracts ? !answer_contraction(c, &part, o, &q, &flows, &c->diags, &found)
                         : !answer_flow(c, &part, o, &f, &c->diags, &found))
        return false;
    take_detour(c, &part, o, &e, out, &found);
    out->text = found.text;
    return keep_answer(o, out);
}

static const visa_options any_work = {.max_steps = UINT64_MAX};

visa_compilation *visa_tune(const visa_tune_options *o, const char **text, size_t *bytes)
{
    *text = NULL;
    *bytes = 0;
    visa_compilation *c = compilation_new(&any_work);
    if (!c || COMPILATION_STOPS(c))
        return c;
    int file = source_map_add(c->sources, "question", o->question, strlen(o->question));
    tune_kernel k;
    if (file >= 0 && tune_answer_one(c, o, file, &k) && source_lay_out(&k.text)) {
        *text = k.text.text;
        *bytes = k.text.bytes;
    }
    return c;
}

visa_compilation *visa_tune_file(const char *name, const char *source, size_t source_size, const visa_tune_options *o, const char **text,
                                 size_t *bytes)
{
    *text = NULL;
    *bytes = 0;
    visa_compilation *c = compilation_new(&any_work);
    if (!c || COMPILATION_STOPS(c))
        return c;
    int file = source_map_add(c->sources, name, source, source_size);
    strbuf out;
    if (file >= 0 && tune_answer_file(c, file, o, &out)) {
        *text = out.text;
        *bytes = out.bytes;
    }
    return c;
}
