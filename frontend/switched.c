#include "frontend/switched.h"

#include <string.h>

#include "frontend/stage.h"
#include "ir/mapping/division.h"
#include "support/budget.h"

enum { LARGEST_PACKET = 32, SMALLEST_PACKET = 8 }; /* bytes: what a commit writes at once */

/* The search: candidates are counted down to the one that is wanted. */
typedef struct search {
    const upgrade_input *in;
    size_t left;
    const ast *function;
    switched *out;
    bool found;
} search;

/* ---- the tree ---- */

static const char *source_of(const search *s, src_range r)
{
    return arena_strndup(s->in->arena, source_text(s->in->sources, r.file) + r.begin, r.end - r.begin);
}

/* The first operation that the call made, where all that it made are of the same tensors; NULL. */
static const op *op_of(const search *s, const ast *node)
{
    const op *found = NULL;
    const module *m = s->in->module;
    for (size_t k = 0; m && k < m->count; k++)
        for (size_t i = 0; i < m->kernels[k]->op_count; i++) {
            const op *o = m->kernels[k]->ops[i];
            if (o->range.file != node->name_range.file || o->range.begin != node->name_range.begin)
                continue;
            if (found && (o->kind != found->kind || o->out.dtype != found->out.dtype ||
                          memcmp(o->out.part, found->out.part, sizeof found->out.part) != 0 || !op_input(o) ||
                          memcmp(op_input(o)->out.part, op_input(found)->out.part, sizeof found->out.part) != 0))
                return NULL;
            found = o;
        }
    return found && op_input(found) && !found->bad ? found : NULL;
}

typedef const ast *finder(const search *s, const ast *n, const void *what);

/* The first node, in the order of the text, of which `is` says what is looked for. */
static const ast *find(const search *s, const ast *n, finder *is, const void *what)
{
    budget_enter(s->in->arena);
    budget_spend(s->in->arena, 1);
    const ast *found = is(s, n, what);
    for (uint32_t i = 0; i < n->kid_count && !found; i++)
        found = find(s, n->kids[i], is, what);
    budget_leave(s->in->arena);
    return found;
}

static const ast *is_made_by(const search *s, const ast *n, const void *what)
{
    (void)s;
    const op *o = what;
    return ast_is(n, AST_METHOD) && n->name_range.file == o->range.file && n->name_range.begin == o->range.begin ? n : NULL;
}

static const ast *is_let_of(const search *s, const ast *n, const void *what)
{
    (void)s;
    return ast_is(n, AST_LET) && ast_kid(n, 2) == what && ast_is(ast_kid(n, 0), AST_PAT_NAME) ? n : NULL;
}

/* A name from a place on, and what of it was met. */
typedef struct name_use {
    const char *name;
    uint32_t from, to; /* in the file */
} name_use;

static const ast *is_bound(const search *s, const ast *n, const void *what)
{
    (void)s;
    const name_use *x = what;
    return ast_is(n, AST_PAT_NAME) && strcmp(n->text, x->name) == 0 && n->range.begin >= x->from && n->range.begin < x->to ? n : NULL;
}

static const ast *is_let_binding(const search *s, const ast *n, const void *what)
{
    return ast_is(n, AST_LET) && is_bound(s, ast_kid(n, 0), what) ? n : NULL;
}

static const ast *is_used(const search *s, const ast *n, const void *what)
{
    (void)s;
    const name_use *x = what;
    bool names = (ast_is(n, AST_PATH) && n->kid_count == 1 && strcmp(n->kids[0]->text, x->name) == 0) ||
                 (ast_is(n, AST_FIELD_INIT) && strcmp(n->text, x->name) == 0) || ast_is(n, AST_MACRO) || ast_is(n, AST_TYPE_MACRO);
    return names && n->range.begin >= x->from && n->range.begin < x->to ? n : NULL;
}

/* Where the variable of a `let` ends: after the next one of its name, which may still read it. 0: a pattern of something else has it. */
static uint32_t end_of_variable(const search *s, const ast *let)
{
    name_use x = {ast_kid(let, 0)->text, let->range.end, UINT32_MAX};
    const ast *body = ast_kid(s->function, 4), *again = find(s, body, is_bound, &x), *by = find(s, body, is_let_binding, &x);
    if (!again)
        return body->range.end;
    return by && ast_kid(by, 0) == again ? by->range.end : 0;
}

/* The uses of a `let`'s variable, at most `capacity`; -1: it cannot be told. */
static int uses_of(const search *s, const ast *let, const ast **uses, int capacity)
{
    uint32_t end = end_of_variable(s, let);
    name_use x = {ast_kid(let, 0)->text, let->range.end, end};
    int count = 0;
    for (const ast *n; end > 0 && (n = find(s, ast_kid(s->function, 4), is_used, &x)); x.from = n->range.begin + 1) {
        if (count == capacity || !ast_is(n, AST_PATH))
            return -1;
        uses[count++] = n;
    }
    return end > 0 ? count : -1;
}

static bool is_view_of(const ast *n)
{
    return ast_is(n, AST_METHOD) && strcmp(n->text, "view") == 0;
}

/* `x`, `x.view()`, `x.view().tile(..)`: memory as it lies, nothing is done with it on the way. */
static bool is_plain(const ast *n)
{
    while (is_view_of(n) || (ast_is(n, AST_METHOD) && strcmp(n->text, "tile") == 0))
        n = ast_kid(n, 0);
    return ast_is(n, AST_PATH) && n->kid_count == 1;
}

static const char *as_view(const search *s, const ast *n)
{
    const char *text = source_of(s, n->range);
    return ast_is(n, AST_PATH) ? arena_printf(s->in->arena, "%s.view()", text) : text;
}

static void replace(search *s, src_range r, const char *text)
{
    edit_add(&s->out->edits, s->in->arena, r.begin, r.end, 0, text);
}

/* ---- mappings ---- */

static const char *text_of(const search *s, const mapping *m)
{
    return arena_printf(s->in->arena, "m![%s]", mapping_text(m, s->in->arena));
}

static bool has_digit(const mapping *m, const axis *of, int64_t weight)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const factor *f = &m->factors[i];
        if (f->kind == FACTOR_AXIS && f->axis == of && f->weight <= weight && weight < f->weight * f->extent)
            return true;
    }
    return false;
}

/* Adds the digits of one factor that `to` has not, outermost first. False: they cannot be told apart. */
static bool add_gone(const search *s, const factor *f, const mapping *from, const mapping *to, const mapping **gone)
{
    enum { MOST_DIGITS = 64 };
    refined_digit digits[MOST_DIGITS];
    size_t count;
    if (f->kind == FACTOR_COMPOSITE || (f->kind == FACTOR_AXIS && !mapping_refine(from, to, f->axis, digits, MOST_DIGITS, &count)))
        return false;
    for (size_t i = f->kind == FACTOR_AXIS ? count : 0; i-- > 0;) {
        factor digit = *f;
        digit.weight = digits[i].weight;
        digit.live = digit.extent = digits[i].size;
        if (digit.weight < f->weight || digit.weight >= f->weight * f->extent || has_digit(to, f->axis, digit.weight))
            continue;
        if (mapping_pair(s->in->mappings, *gone, mapping_of_factor(s->in->mappings, &digit), gone) != MAPPING_OK)
            return false;
    }
    return true;
}

/* Digits of `from` that are none of `to`, in their order; NULL: one of them cannot be named alone. */
static const mapping *digits_gone(const search *s, const mapping *from, const mapping *to)
{
    const mapping *gone = mapping_identity(s->in->mappings);
    for (uint32_t i = 0; i < from->count; i++)
        if (!add_gone(s, &from->factors[i], from, to, &gone))
            return NULL;
    return gone;
}

/* The coordinates of a position, by number of axis, without the digits that go; false: nothing is there. */
static bool kept_coordinates(const mapping *m, int64_t position, const mapping *gone, int64_t *coords, size_t count)
{
    memset(coords, 0, count * sizeof *coords);
    if (!mapping_map(m, position, coords))
        return false;
    for (uint32_t i = 0; i < gone->count; i++) {
        const factor *f = &gone->factors[i];
        int64_t *x = &coords[f->axis->number];
        *x -= *x / f->weight % f->extent * f->weight;
    }
    return true;
}

static size_t coordinate_count(const mapping *m)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = mapping_axes(m, axes, EINSUM_MAX_AXES), most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = axes[i]->number > most ? axes[i]->number : most;
    return most + 1;
}

/* Does slice `d` of `to` want what slice `p` of `from` has? Axes that `from` has not are new. */
static bool wants(const mapping *from, const int64_t *p, const int64_t *d)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const factor *f = &from->factors[i];
        if (f->kind == FACTOR_AXIS && p[f->axis->number] != d[f->axis->number])
            return false;
    }
    return true;
}

/* The smallest block of slices, 1, 2, 4, .., in which every slice finds what it wants. */
static int64_t ring_of(const search *s, const mapping *from, const mapping *to, const mapping *gone)
{
    enum { MOST_SLICES = 256 };
    size_t count = coordinate_count(from), others = coordinate_count(to);
    count = others > count ? others : count;
    int64_t *at = ARENA_ARRAY(s->in->arena, int64_t, count * MOST_SLICES), *want = ARENA_ARRAY(s->in->arena, int64_t, count), ring = 1;
    bool live[MOST_SLICES];
    budget_spend(s->in->arena, (uint64_t)(from->size * to->size));
    for (int64_t p = 0; p < from->size && p < MOST_SLICES; p++)
        live[p] = kept_coordinates(from, p, gone, at + (size_t)p * count, count);
    for (int64_t d = 0; d < to->size; d++)
        for (int64_t p = 0; kept_coordinates(to, d, gone, want, count) && p < from->size && p < MOST_SLICES; p++)
            while (live[p] && wants(from, at + (size_t)p * count, want) && p / ring != d / ring)
                ring *= 2;
    return ring;
}

/* `slice` with padding in place of what holds the same again, numbers and digits of axes that the tensor has not; NULL: there are none, or
 * one cannot be told apart. */
static const mapping *without_repeats(const search *s, const mapping *slice, const tensor *of)
{
    mapping_context *c = s->in->mappings;
    const mapping *rest = mapping_identity(c);
    bool any = false;
    for (uint32_t i = 0; i < slice->count; i++) {
        const factor *f = &slice->factors[i];
        bool repeats = f->kind == FACTOR_AXIS ? !mapping_mentions(of->part[ELEMENT], f->axis) && !mapping_mentions(of->part[CHIP], f->axis)
                                              : f->live > 1;
        const mapping *one = mapping_identity(c);
        if (f->kind == FACTOR_COMPOSITE || (repeats && mapping_pad(c, one, f->extent, PAD_TOP, &one) != MAPPING_OK) ||
            mapping_pair(c, rest, repeats ? one : mapping_of_factor(c, f), &rest) != MAPPING_OK)
            return NULL;
        any = any || repeats;
    }
    return any ? rest : NULL;
}

/* The longest packet that lies together at both ends, and what is read one after the other. */
static bool cut_packet(const search *s, const tensor *in, const tensor *out, const mapping **time, const mapping **packet)
{
    int64_t bits = dtype_row_of(in->dtype)->bits;
    for (int64_t bytes = LARGEST_PACKET; bytes >= SMALLEST_PACKET; bytes /= 2) {
        const mapping *rest, *other;
        int64_t n = bytes * 8 / bits;
        if (mapping_split(s->in->mappings, in->part[ELEMENT], n, time, packet) == MAPPING_OK &&
            mapping_split(s->in->mappings, out->part[ELEMENT], n, &rest, &other) == MAPPING_OK && other == *packet)
            return true;
    }
    return false;
}

/* ---- a copy inside DM ---- */

/* ctx.main of `&mut ctx.tdma`; NULL: the DMA is a parameter. */
static const char *context_of(const search *s, const ast *dma, const char *field)
{
    while (ast_is(dma, AST_BORROW))
        dma = ast_kid(dma, 0);
    return ast_is(dma, AST_FIELD) ? arena_printf(s->in->arena, "%s.%s", source_of(s, ast_kid(dma, 0)->range), field) : NULL;
}

static const char *switch_call(const search *s, const mapping *slice, const mapping *time, int64_t ring)
{
    return arena_printf(s->in->arena, ".switch::<%s, %s>(SwitchConfig::CustomBroadcast { ring_size: %lld })", text_of(s, slice),
                        text_of(s, time), (long long)ring);
}

/* "the copy to `y`" */
static const char *copy_words(const search *s, const op *o)
{
    return o->name[0] ? arena_printf(s->in->arena, "the copy to `%s`", o->name) : "the copy";
}

/* Digits of Slice that change places with as many of Time, which the Switch Engine does by name. `time` is then the order in which it takes
 * the steps, with those digits inside of all others. NULL: the mappings are others. */
static const char *exchange_call(const search *s, const tensor *from, const tensor *to, const mapping *gone, const mapping **time)
{
    mapping_context *c = s->in->mappings;
    const mapping *come = digits_gone(s, to->part[SLICE], from->part[SLICE]), *rest = come ? digits_gone(s, *time, come) : NULL;
    if (!rest || gone->size == 1 || come->size != gone->size || rest->size * come->size != (*time)->size)
        return NULL;
    for (int64_t inner = 1; inner * gone->size <= from->part[SLICE]->size; inner *= 2) {
        const mapping *a, *b, *whole, *out_time;
        if (mapping_split(c, from->part[SLICE], inner, &a, &b) != MAPPING_OK || mapping_split(c, a, gone->size, &a, &whole) != MAPPING_OK ||
            whole != gone || mapping_pair(c, a, come, &a) != MAPPING_OK || mapping_pair(c, a, b, &a) != MAPPING_OK ||
            a != to->part[SLICE] || mapping_pair(c, rest, come, time) != MAPPING_OK || mapping_pair(c, rest, gone, &out_time) != MAPPING_OK)
            continue;
        return arena_printf(s->in->arena, ".switch::<%s, %s>(SwitchConfig::InterTranspose { slice1: %lld, slice0: %lld, time0: 1 })",
                            text_of(s, to->part[SLICE]), text_of(s, out_time), (long long)gone->size, (long long)inner);
    }
    return NULL;
}

/* The stages in place of `copy`, from the tensor `from`, which `receiver` is. False: mappings do not allow it. */
static bool write_stages(search *s, const ast *copy, const ast *receiver, const op *o, const tensor *from, const char *field)
{
    arena *a = s->in->arena;
    const ast *arguments = ast_kid(copy, 2);
    const char *unit = context_of(s, ast_kid(arguments, 0), field);
    const tensor *to = &o->out;
    const mapping *time, *packet, *gone = digits_gone(s, from->part[SLICE], to->part[SLICE]), *out_time;
    if (!unit || !gone || !cut_packet(s, from, to, &time, &packet) || mapping_pair(s->in->mappings, time, gone, &out_time) != MAPPING_OK)
        return false;
    bool into_view = strcmp(copy->text, "to_dm_view") == 0, april = arguments->kid_count > 1 && !into_view;
    const char *exchange = exchange_call(s, from, to, gone, &time);
    int64_t ring = exchange ? 1 : ring_of(s, from->part[SLICE], to->part[SLICE], gone);
    s->out->routes = from->part[SLICE] != to->part[SLICE];
    strbuf text;
    strbuf_init(&text, a);
    strbuf_printf(&text, "%s.begin(%s).fetch::<", unit, as_view(s, receiver));
    if (april)
        strbuf_printf(&text, "%s, ", dtype_row_of(to->dtype)->name);
    strbuf_printf(&text, "%s, %s>()", text_of(s, time), text_of(s, packet));
    if (s->out->routes)
        strbuf_puts(&text, exchange ? exchange : switch_call(s, to->part[SLICE], out_time, ring));
    strbuf_puts(&text, ".collect()");
    if (!april)
        strbuf_printf(&text, ".commit_trim::<%s>()", text_of(s, packet));
    if (into_view)
        strbuf_printf(&text, ".commit_view(%s)", source_of(s, ast_kid(arguments, 1)->range));
    else
        strbuf_printf(&text, ".commit::<%s>(%s)", text_of(s, to->part[ELEMENT]), april ? source_of(s, ast_kid(arguments, 1)->range) : "");
    replace(s, copy->range, text.text);
    s->out->copy = copy->name_range;
    s->out->words = arena_printf(a, "%s by %s%s", copy_words(s, o), unit,
                                 exchange         ? " and slices that exchange steps"
                                 : s->out->routes ? arena_printf(a, " and rings of %lld slices", (long long)ring)
                                                  : "");
    return true;
}

static bool same_units(const tensor *a, const tensor *b)
{
    return a->dtype == b->dtype && a->part[CHIP] == b->part[CHIP] && a->part[CLUSTER] == b->part[CLUSTER];
}

/* What a copy to DM reads that came from DM: `*receiver`, and the statement that is not needed any more, or NULL. */
static const op *source_in_dm(const search *s, const ast *copy, const op *o, const ast **receiver, const ast **needless)
{
    const op *in = op_input(o);
    *receiver = ast_kid(copy, 0);
    *needless = NULL;
    if (in->out.kind == TENSOR_DM)
        return is_plain(*receiver) ? in : NULL;
    const op *before = in->kind == IR_TO_HBM ? op_input(in) : NULL;
    const ast *store = before && before->out.kind == TENSOR_DM ? find(s, ast_kid(s->function, 4), is_made_by, in) : NULL, *uses[1];
    if (!store || !is_plain(ast_kid(store, 0)))
        return NULL;
    const ast *from = *receiver, *name = ast_kid(store, 0);
    *receiver = name;
    while (ast_is(name, AST_METHOD))
        name = ast_kid(name, 0);
    name_use x = {name->kids[0]->text, store->range.begin, copy->name_range.begin};
    if (from == store)
        return before;
    from = is_view_of(from) ? ast_kid(from, 0) : from;
    *needless = find(s, ast_kid(s->function, 4), is_let_of, store);
    bool only = *needless && uses_of(s, *needless, uses, 1) == 1 && uses[0] == from;
    return only && !find(s, ast_kid(s->function, 4), is_bound, &x) ? before : NULL;
}

/* With the blanks in front of it and the end of its line, where nothing else stands there. */
static src_range whole_line(const search *s, src_range r)
{
    const char *text = source_text(s->in->sources, r.file);
    uint32_t begin = r.begin, end = r.end;
    while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t'))
        begin--;
    bool alone = (begin == 0 || text[begin - 1] == '\n') && text[end] == '\n';
    return alone ? (src_range){r.file, begin, end + 1} : r;
}

static bool try_copy(search *s, const ast *copy, const char *field)
{
    const ast *receiver, *needless;
    const op *o = op_of(s, copy), *from = o && o->kind == IR_TO_DM ? source_in_dm(s, copy, o, &receiver, &needless) : NULL;
    if (!from || o->out.kind != TENSOR_DM || !same_units(&from->out, &o->out) || !write_stages(s, copy, receiver, o, &from->out, field))
        return false;
    if (needless) {
        replace(s, whole_line(s, needless->range), "");
        s->out->words = arena_printf(s->in->arena, "%s, not through HBM", s->out->words);
    }
    return true;
}

/* ---- a load that gives several slices the same ---- */

/* Where the Slice of what the call makes was written; false: nowhere. */
static bool written_slice(const ast *let, const ast *load, src_range *out)
{
    const ast *type = ast_last_segment(ast_kid(let, 1)), *list = type ? ast_kid(type, 0) : NULL;
    if (list && strcmp(type->text, "DmTensor") == 0 && ast_is(list, AST_GENERIC_ARGS) && list->kid_count == 5 &&
        !ast_is(list->kids[3], AST_TYPE_INFER)) {
        *out = list->kids[3]->range;
        return true;
    }
    list = ast_kid(load, 1);
    if (!ast_is(list, AST_GENERIC_ARGS) || list->kid_count != 3 || ast_is(list->kids[1], AST_TYPE_INFER))
        return false;
    *out = list->kids[1]->range;
    return true;
}

/* The collect of a chain that begins with the tensor, and its fetch; NULL. */
static const ast *is_collect_of(const search *s, const ast *n, const void *what)
{
    (void)s;
    if (!ast_is(n, AST_METHOD) || strcmp(n->text, "collect") != 0)
        return NULL;
    const ast *at = ast_kid(n, 0);
    for (; ast_is(at, AST_METHOD) && strcmp(at->text, "begin") != 0; at = ast_kid(at, 0))
        if (strcmp(at->text, "switch") == 0)
            return NULL;
    const ast *list = ast_is(at, AST_METHOD) ? ast_kid(at, 2) : NULL;
    const ast *begun = list && list->kid_count == 1 ? list->kids[0] : NULL;
    while (begun && (is_view_of(begun) || ast_is(begun, AST_BORROW)))
        begun = ast_kid(begun, 0);
    return begun == what ? n : NULL;
}

/* A switch in front of the collect of one chain. */
static bool route_chain(search *s, const ast *use, const mapping *slice, int64_t ring)
{
    const ast *collect = find(s, ast_kid(s->function, 4), is_collect_of, use);
    const op *o = collect ? op_of(s, collect) : NULL, *in = o ? op_input(o) : NULL;
    if (!in || in->out.part[SLICE] != slice || collect->range.file != s->in->tree->range.file)
        return false;
    uint32_t at = ast_kid(collect, 0)->range.end;
    edit_add(&s->out->edits, s->in->arena, at, at, 0, switch_call(s, slice, in->out.part[TIME], ring));
    return true;
}

static bool try_load(search *s, const ast *load)
{
    enum { MOST_CHAINS = 16 };
    const ast *uses[MOST_CHAINS], *let = find(s, ast_kid(s->function, 4), is_let_of, load);
    const op *o = op_of(s, load);
    src_range written;
    if (!let || !o || o->kind != IR_TO_DM || op_input(o)->out.kind != TENSOR_HBM || !written_slice(let, load, &written) ||
        written.file != s->in->tree->range.file)
        return false;
    const mapping *once = without_repeats(s, o->out.part[SLICE], &op_input(o)->out);
    int count = once ? uses_of(s, let, uses, MOST_CHAINS) : 0;
    int64_t ring = count > 0 ? ring_of(s, once, o->out.part[SLICE], mapping_identity(s->in->mappings)) : 0;
    for (int i = 0; i < count; i++)
        if (!route_chain(s, uses[i], o->out.part[SLICE], ring))
            return false;
    if (count <= 0)
        return false;
    replace(s, written, text_of(s, once));
    s->out->copy = load->name_range;
    s->out->routes = true;
    s->out->words =
        arena_printf(s->in->arena, "%s once for each ring of %lld slices, whose packets go around", copy_words(s, o), (long long)ring);
    return true;
}

/* ---- all of them ---- */

/* True: it is the one that was looked for. */
static bool take(search *s, bool made)
{
    if (made && s->left-- == 0)
        return s->found = true;
    s->out->edits.count = 0;
    return false;
}

static bool is_copy(const ast *n)
{
    return ast_is(n, AST_METHOD) && (strcmp(n->text, "to_dm") == 0 || strcmp(n->text, "to_dm_view") == 0) && ast_kid(n, 2)->kid_count > 0;
}

static void search_node(search *s, const ast *n)
{
    budget_enter(s->in->arena);
    budget_spend(s->in->arena, 1);
    const ast *outer = s->function;
    s->function = ast_is(n, AST_FN) ? n : outer;
    for (uint32_t i = 0; i < n->kid_count && !s->found; i++)
        search_node(s, n->kids[i]);
    if (!s->found && s->function && is_copy(n) && n->range.file == s->in->tree->range.file)
        (void)(take(s, try_copy(s, n, "main")) || take(s, try_copy(s, n, "sub")) || take(s, try_load(s, n)));
    s->function = outer;
    budget_leave(s->in->arena);
}

bool switched_text(const upgrade_input *in, size_t number, switched *out)
{
    *out = (switched){0};
    search s = {.in = in, .left = number, .out = out};
    search_node(&s, in->tree);
    return s.found;
}
