#include "frontend/upgrade.h"

#include <string.h>

#include "frontend/stage_build.h"
#include "frontend/upgrade_move.h"
#include "frontend/variant.h"
#include "support/budget.h"
#include "support/order.h"

enum { NEWEST = 1u << DIALECT_NEWEST };

typedef struct upgrader {
    const upgrade_input *in;
    edit_list *edits;
    const op **ops; /* of all kernels, by place */
    size_t op_count;
    const char *own[64]; /* types of the file that are called as one of the language is */
    size_t own_count;
    const ast *function; /* that is being read, or NULL */
    src_range *moved;    /* written anew as a whole: nothing in them is changed by itself */
    size_t moved_count, moved_capacity;
    bool refused;
} upgrader;

/* ---- places ---- */

static const char *text_of(const upgrader *u, int file)
{
    return source_text(u->in->sources, file);
}

/* The range in a file that somebody wrote; false: it stands there in several pieces. */
static bool written_at(const upgrader *u, src_range r, src_range *out)
{
    src_range call, first = {r.file, r.begin, r.begin + (r.end > r.begin)}, last = {r.file, r.end - (r.end > r.begin), r.end};
    first = expand_place(u->in->expander, first, &call);
    last = expand_place(u->in->expander, last, &call);
    *out = (src_range){first.file, first.begin, last.end};
    return first.file == last.file && first.begin <= last.end && last.end - first.begin == r.end - r.begin &&
           memcmp(text_of(u, r.file) + r.begin, text_of(u, first.file) + first.begin, r.end - r.begin) == 0;
}

__attribute__((format(printf, 3, 4))) static diag *refuse(upgrader *u, src_range at, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *text = arena_vprintf(u->in->arena, format, list);
    va_end(list);
    u->refused = true;
    return diag_add(u->in->diags, E_UPGRADE, at, "%s", text);
}

static void change_as(upgrader *u, src_range r, int rank, const char *text)
{
    src_range place;
    if (!written_at(u, r, &place))
        diag_help(u->in->diags, refuse(u, r, "this is put together by a macro, and cannot be rewritten where it was written"),
                  "write out what the macro's call gives, then upgrade");
    else if (place.file == u->in->tree->range.file)
        edit_add(u->edits, u->in->arena, place.begin, place.end, rank, text);
}

static void change(upgrader *u, src_range r, const char *text)
{
    for (size_t i = 0; i < u->moved_count; i++)
        if (u->moved[i].file == r.file && u->moved[i].begin <= r.begin && r.end <= u->moved[i].end && r.end > r.begin)
            return;
    change_as(u, r, 0, text);
}

static void insert(upgrader *u, int file, uint32_t at, const char *text)
{
    change(u, (src_range){file, at, at}, text);
}

static uint32_t comment_end(const char *s, uint32_t at, uint32_t end)
{
    if (s[at + 1] == '/') {
        const char *stop = memchr(s + at, '\n', end - at);
        return stop ? (uint32_t)(stop - s) + 1 : end;
    }
    uint32_t depth = 0;
    for (; at + 1 < end; at++) {
        bool opens = s[at] == '/' && s[at + 1] == '*', closes = s[at] == '*' && s[at + 1] == '/';
        depth += opens;
        depth -= closes;
        at += opens || closes;
        if (closes && depth == 0)
            return at + 1;
    }
    return end;
}

/* Takes a range out; the comments in it stay. */
static void take_out(upgrader *u, src_range r)
{
    const char *s = text_of(u, r.file);
    strbuf kept;
    strbuf_init(&kept, u->in->arena);
    strbuf_puts(&kept, "");
    for (uint32_t at = r.begin; at + 1 < r.end; at++)
        if (s[at] == '/' && (s[at + 1] == '/' || s[at + 1] == '*')) {
            uint32_t end = comment_end(s, at, r.end);
            strbuf_puts(&kept, " ");
            strbuf_append(&kept, s + at, end - at);
            at = end - 1;
        }
    change(u, r, kept.text);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The first place at or after `at` that is neither white space nor a comment. */
static uint32_t skip_space(const char *s, uint32_t at, uint32_t end)
{
    while (at < end && (is_space(s[at]) || (s[at] == '/' && (s[at + 1] == '/' || s[at + 1] == '*'))))
        at = is_space(s[at]) ? at + 1 : comment_end(s, at, end);
    return at;
}

/* ---- lists ---- */

/* Takes the elements of a list out that are not kept, each with its comma; a comma after the last one goes with it. */
static void thin_list(upgrader *u, const ast *list, const bool *kept)
{
    int file = list->range.file;
    for (uint32_t i = 0; i < list->kid_count; i++) {
        if (kept[i])
            continue;
        uint32_t first = i;
        while (i + 1 < list->kid_count && !kept[i + 1])
            i++;
        uint32_t begin = list->kids[first]->range.begin, end = list->kids[i]->range.end;
        if (i + 1 < list->kid_count) {
            end = list->kids[i + 1]->range.begin;
        } else {
            const char *s = text_of(u, file);
            uint32_t comma = skip_space(s, end, (uint32_t)source_bytes(u->in->sources, file));
            end = s[comma] == ',' ? comma + 1 : end;
            begin = first > 0 ? list->kids[first - 1]->range.end : begin;
        }
        take_out(u, (src_range){file, begin, end});
    }
}

/* "_, _" */
static const char *blanks(const upgrader *u, unsigned count, const char *before, const char *behind)
{
    const char *text = before;
    for (unsigned i = 0; i < count; i++)
        text = arena_printf(u->in->arena, "%s%s_", text, i ? ", " : "");
    return arena_printf(u->in->arena, "%s%s", text, behind);
}

static int place_of_type(const stage_form *f, stage_type t)
{
    for (unsigned i = 0; i < f->type_count; i++)
        if (f->types[i] == t && t != TYPE_REST)
            return (int)i;
    return -1;
}

/* Type arguments of the old form as the new one has them: `_` for what was not written. */
static void change_types(upgrader *u, const ast *node, const stage_form *old, const stage_form *new)
{
    const ast *list = ast_kid(node, 1);
    if (!ast_is(list, AST_GENERIC_ARGS) || list->kid_count != old->type_count ||
        (old->type_count == new->type_count &&memcmp(old->types, new->types, sizeof old->types) == 0))
        return;
    bool kept[STAGE_MAX_TYPES] = {false}, any = false;
    unsigned open = 0;
    uint32_t last = 0;
    for (unsigned i = 0; i < new->type_count; i++)
        any = any || place_of_type(old, new->types[i]) >= 0;
    if (!any) {
        src_range all = src_range_join(list->kids[0]->range, list->kids[list->kid_count - 1]->range);
        change(u, all, blanks(u, new->type_count, "", ""));
        return;
    }
    for (unsigned i = 0; i < new->type_count; i++) {
        int at = place_of_type(old, new->types[i]);
        if (at < 0) {
            open++;
            continue;
        }
        if (open)
            insert(u, list->range.file, list->kids[at]->range.begin, blanks(u, open, "", ", "));
        open = 0;
        kept[at] = true;
        last = list->kids[at]->range.end;
    }
    if (open)
        insert(u, list->range.file, last, blanks(u, open, ", ", ""));
    thin_list(u, list, kept);
}

static bool same_argument(stage_argument old, stage_argument new)
{
    return old == new || (old == ARGUMENT_ACCUMULATION && new == ARGUMENT_LANE_MODE) ||
           (old == ARGUMENT_OP_WITH_MODE && new == ARGUMENT_MODE);
}

/* Marks the old form's arguments that the new one takes; false: it takes another one. */
static bool match_arguments(const stage_form *old, const stage_form *new, bool *kept)
{
    unsigned at = 0;
    memset(kept, 0, STAGE_MAX_ARGUMENTS * sizeof *kept);
    for (unsigned i = 0; i < new->argument_count; i++) {
        while (at < old->argument_count && !same_argument(old->arguments[at], new->arguments[i]))
            at++;
        if (at == old->argument_count)
            return false;
        kept[at++] = true;
    }
    return true;
}

/* ---- operations ---- */

static int by_range(src_range a, src_range b)
{
    return order_then(ORDER(a.file, b.file), ORDER(a.begin, b.begin));
}

static int compare_ops(const void *left, const void *right)
{
    return by_range((*(const op *const *)left)->range, (*(const op *const *)right)->range);
}

static void collect_ops(upgrader *u)
{
    const module *m = u->in->module;
    size_t capacity = 0;
    for (size_t k = 0; m && k < m->count; k++)
        for (size_t i = 0; i < m->kernels[k]->op_count; i++)
            ARENA_PUSH(u->in->arena, u->ops, u->op_count, capacity, (const op *)m->kernels[k]->ops[i]);
    order_sort(u->ops, u->op_count, sizeof *u->ops, compare_ops);
}

/* Those that a call made: one for each time it was read. */
typedef struct made {
    const op *const *items;
    size_t count;
} made;

static made ops_of(const upgrader *u, const ast *node)
{
    size_t low;
    ORDER_FIRST(&low, u->op_count, i, by_range(u->ops[i]->range, node->name_range) < 0);
    made m = {u->ops + low, 0};
    while (low + m.count < u->op_count && by_range(m.items[m.count]->range, node->name_range) == 0)
        m.count++;
    return m;
}

/* ---- what a call is called on ---- */

/* `operation.with_mode(mode)`: its mode; NULL: it is something else. */
static const ast *mode_of(const ast *argument)
{
    const ast *list = ast_is(argument, AST_METHOD) && strcmp(argument->text, "with_mode") == 0 ? ast_kid(argument, 2) : NULL;
    return list && list->kid_count == 1 ? list->kids[0] : NULL;
}

static bool modes_fit(const ast *arguments, const stage_form *f)
{
    for (unsigned i = 0; i < f->argument_count; i++)
        if ((f->arguments[i] == ARGUMENT_OP_WITH_MODE) != (mode_of(arguments->kids[i]) != NULL))
            return false;
    return true;
}

/* No address is borrowed, and of ctx.sub nothing else is given. */
static bool addresses_fit(const ast *arguments, const stage_form *f)
{
    for (unsigned i = 0; i < f->argument_count; i++) {
        bool borrowed = ast_is(arguments->kids[i], AST_BORROW), named = ast_is(arguments->kids[i], AST_PATH);
        if ((f->arguments[i] == ARGUMENT_ADDRESS && borrowed) || (f->arguments[i] == ARGUMENT_SUB && !borrowed && !named))
            return false;
    }
    return true;
}

static bool counts_fit(const ast *node, const stage_form *f)
{
    const ast *types = ast_kid(node, 1);
    uint32_t given = ast_is(types, AST_GENERIC_ARGS) ? types->kid_count : 0;
    return (given == 0 || given == f->type_count) && ast_kid(node, 2)->kid_count == f->argument_count && modes_fit(ast_kid(node, 2), f) &&
           addresses_fit(ast_kid(node, 2), f);
}

/* Does the name stand anywhere in it? */
static bool names(const upgrader *u, const ast *n, const char *name)
{
    budget_enter(u->in->arena);
    bool found = (ast_is(n, AST_SEGMENT) || ast_is(n, AST_PAT_NAME) || ast_is(n, AST_FIELD_INIT)) && strcmp(n->text, name) == 0;
    for (uint32_t i = 0; i < n->kid_count && !found; i++)
        found = names(u, n->kids[i], name);
    budget_leave(u->in->arena);
    return found;
}

static bool binds(const upgrader *u, const ast *n, const char *name)
{
    budget_enter(u->in->arena);
    bool found = ast_is(n, AST_PAT_NAME) && strcmp(n->text, name) == 0;
    for (uint32_t i = 0; i < n->kid_count && !found; i++)
        found = binds(u, n->kids[i], name);
    budget_leave(u->in->arena);
    return found;
}

/* In text that is not compiled: a parameter that nothing shadows has its declared type. */
static uint64_t receivers_of_parameter(const upgrader *u, const ast *receiver)
{
    if (!u->function || !ast_is(receiver, AST_PATH) || receiver->kid_count != 1 ||
        binds(u, ast_kid(u->function, 4), receiver->kids[0]->text))
        return 0;
    const ast *list = ast_kid(u->function, 2);
    for (uint32_t i = 0; i < list->kid_count; i++) {
        const ast *pattern = ast_kid(list->kids[i], 1), *type = ast_kid(list->kids[i], 2), *last;
        while (ast_is(type, AST_TYPE_REF))
            type = ast_kid(type, 0);
        if (!ast_is(pattern, AST_PAT_NAME) || strcmp(pattern->text, receiver->kids[0]->text) != 0 || !(last = ast_last_segment(type)))
            continue;
        for (tensor_kind k = 0; k < TENSOR_KIND_COUNT; k++)
            if (dialect_spelt(tensor_kind_name(k), last->text))
                return UINT64_C(1) << k;
    }
    return 0;
}

/* What the call in front gives, else what its operations have: bits of receivers; 0: not known. */
static uint64_t receivers_of_call(const upgrader *u, const ast *node, made ops)
{
    const ast *receiver = ast_kid(node, 0);
    uint64_t bits = 0;
    const stage_form *f;
    for (size_t i = 0; ast_is(receiver, AST_METHOD) && (f = stage_form_at(i)); i++)
        if (strcmp(f->name, receiver->text) == 0 && counts_fit(receiver, f))
            bits |= f->row->gives == GIVES_BEGIN ? ON_BEGIN : f->row->gives < TENSOR_KIND_COUNT ? UINT64_C(1) << f->row->gives : 0;
    const op *stream = ops.count ? op_input(ops.items[0]) : NULL;
    uint64_t streamed = stream && stream->out.kind >= TENSOR_TRF ? UINT64_C(1) << stream->out.kind : 0;
    if (bits & streamed) /* stages of one name give one stream or two */
        return streamed;
    for (size_t i = 0; i < ops.count && !bits; i++) {
        const op *o = ops.items[i], *from = op_input(o);
        if (op_kind_is(o->kind, BEGINS_CHAIN))
            return ON_BEGIN;
        if (o->trim)
            return ON(COMMIT_TRIM);
        if (o->kept_time)
            return ON(CONTRACT_TIME);
        if (from)
            return UINT64_C(1) << from->out.kind | (from->out.kind < TENSOR_TRF ? UINT64_C(1) << (VIEW_BITS + from->out.kind) : 0);
    }
    return bits ? bits : receivers_of_parameter(u, receiver);
}

/* ---- stages before and after ---- */

static const char *source_of(const upgrader *u, const ast *n)
{
    return arena_strndup(u->in->arena, text_of(u, n->range.file) + n->range.begin, n->range.end - n->range.begin);
}

/* The type argument of that meaning; NULL: none is written. */
static const ast *type_argument(const ast *node, const stage_form *f, stage_type t)
{
    const ast *list = ast_kid(node, 1);
    int at = place_of_type(f, t);
    return ast_is(list, AST_GENERIC_ARGS) && at >= 0 && (uint32_t)at < list->kid_count ? list->kids[at] : NULL;
}

/* The packet of the call in front, as its author wrote it; NULL. */
static const ast *packet_in_front(const ast *node)
{
    const ast *receiver = ast_kid(node, 0);
    const stage_form *f;
    for (size_t i = 0; ast_is(receiver, AST_METHOD) && (f = stage_form_at(i)); i++)
        if (strcmp(f->name, receiver->text) == 0 && counts_fit(receiver, f) && place_of_type(f, TYPE_PACKET) >= 0)
            return type_argument(receiver, f, TYPE_PACKET);
    return NULL;
}

/* What a commit keeps of its packet. */
static const mapping *kept_packet(const upgrader *u, const op *o)
{
    const mapping *packet = op_input(o) ? op_input(o)->out.part[PACKET] : NULL, *kept = NULL;
    return packet && o->sequencer && mapping_resize(u->in->mappings, packet, o->sequencer->packet, &kept) == MAPPING_OK ? kept : NULL;
}

/* m![T, P] without what is written as m![P]: m![T]; NULL: it does not end so. */
static const char *without_end(const upgrader *u, const ast *time, const ast *packet)
{
    const ast *list = ast_is(time, AST_MAP) ? ast_kid(time, 0) : time, *end = packet && ast_is(packet, AST_MAP) ? ast_kid(packet, 0) : NULL;
    uint32_t count = end && ast_is(end, AST_MAP_PAIR) ? end->kid_count : 1;
    if (!end || !ast_is(list, AST_MAP_PAIR) || list->kid_count <= count)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!ast_equal(list->kids[list->kid_count - count + i], ast_is(end, AST_MAP_PAIR) ? end->kids[i] : end))
            return NULL;
    src_range kept = src_range_join(list->kids[0]->range, list->kids[list->kid_count - count - 1]->range);
    return arena_printf(u->in->arena, "m![%.*s]", (int)(kept.end - kept.begin), text_of(u, kept.file) + kept.begin);
}

static bool is_one(const ast *map)
{
    const ast *only = map && ast_is(map, AST_MAP) ? ast_kid(map, 0) : NULL;
    return only && ast_is(only, AST_MAP_NUMBER) && only->value == 1;
}

/* The mapping that all operations have; NULL: they have none, or several. */
static const mapping *common(const upgrader *u, made ops, const mapping *(*of)(const upgrader *u, const op *o))
{
    const mapping *all = NULL;
    for (size_t i = 0; i < ops.count; i++) {
        const mapping *m = of(u, ops.items[i]);
        if (!m || (all && !mapping_equal(u->in->mappings, all, m)))
            return NULL;
        all = m;
    }
    return all;
}

static const mapping *kept_time(const upgrader *u, const op *o)
{
    (void)u;
    return o->accumulate ? o->accumulate->kept : NULL;
}

static const char *as_text(const upgrader *u, const mapping *m)
{
    return arena_printf(u->in->arena, "m![%s]", mapping_text(m, u->in->arena));
}

/* What the stage in front says: of a commit what it keeps of the packet, of an accumulation what it keeps of time; NULL: not known. */
static const char *said_in_front(const upgrader *u, const ast *node, const stage_form *old, made ops, stage_type t)
{
    const ast *packet = packet_in_front(node);
    if (t == TYPE_PACKET) {
        bool whole = ops.count > 0;
        for (size_t i = 0; i < ops.count; i++) {
            const mapping *m = kept_packet(u, ops.items[i]);
            whole = whole && m && m->size == op_input(ops.items[i])->out.part[PACKET]->size;
        }
        const mapping *m = common(u, ops, kept_packet);
        return whole && packet && !ast_is(packet, AST_TYPE_INFER) ? source_of(u, packet) : m ? as_text(u, m) : NULL;
    }
    const ast *time = t == TYPE_TIME ? type_argument(node, old, TYPE_TIME) : NULL;
    bool written = time && !ast_is(time, AST_TYPE_INFER), all = ops.count > 0 || is_one(packet);
    for (size_t i = 0; i < ops.count; i++)
        all = all && kept_time(u, ops.items[i]) && kept_time(u, ops.items[i])->size == ops.items[i]->out.part[TIME]->size;
    if (t != TYPE_TIME || (written && all))
        return t == TYPE_TIME ? source_of(u, time) : NULL;
    const mapping *m = common(u, ops, kept_time);
    const char *shorter = written && ops.count && !m ? without_end(u, time, packet) : NULL;
    return m ? as_text(u, m) : shorter;
}

/* White space before the dot of a call; a call next to it gets the same. */
static const char *space_before(const upgrader *u, src_range dot)
{
    const char *s = text_of(u, dot.file);
    uint32_t begin = dot.begin;
    while (begin > 0 && is_space(s[begin - 1]))
        begin--;
    bool after_comment = begin > 1 && s[begin - 1] == '/' && s[begin - 2] == '*';
    for (uint32_t i = begin; i > 0 && s[i - 1] != '\n'; i--) /* after a line comment the line has to end */
        after_comment = after_comment || (s[i - 1] == '/' && s[i] == '/');
    return after_comment && !memchr(s + begin, '\n', dot.begin - begin) ? "" : arena_strndup(u->in->arena, s + begin, dot.begin - begin);
}

/* The dot in front of the call's name. */
static src_range dot_of(const upgrader *u, const ast *node)
{
    const char *s = text_of(u, node->range.file);
    uint32_t at = skip_space(s, ast_kid(node, 0)->range.end, node->name_range.begin);
    return (src_range){node->range.file, at, at + 1};
}

static void add_in_front(upgrader *u, const ast *node, const stage_form *old, const stage_form *front, made ops)
{
    strbuf text;
    strbuf_init(&text, u->in->arena);
    strbuf_printf(&text, ".%s::<", front->name);
    for (unsigned i = 0; i < front->type_count; i++) {
        const char *said = said_in_front(u, node, old, ops, front->types[i]);
        if (!said) {
            diag *d = refuse(u, node->name_range, "`%s` wants `%s` in front of it in %s, and what that says is not known here", old->name,
                             front->name, dialect_name(DIALECT_NEWEST));
            diag_help(u->in->diags, d,
                      ops.count ? "mend what is wrong with the kernel, or let all calls of the function keep the same"
                                : "it is read only where the function is compiled: visac says what stands in the way");
            return;
        }
        strbuf_printf(&text, "%s%s", i ? ", " : "", said);
    }
    src_range dot = dot_of(u, node);
    strbuf_printf(&text, ">()%s", space_before(u, dot));
    change_as(u, (src_range){dot.file, dot.begin, dot.begin}, 1, text.text); /* after what comes after the call before */
}

/* The newest form that takes an element type alone, of what `row` gives, and adds no operation; of several the last in the datapath: what
 * older releases convert to is what is left of it (fetch_cast, not a table in front of it). */
static const stage_form *dtype_stage(const stage_row *row)
{
    const stage_form *f, *last = NULL;
    for (size_t i = 0; (f = stage_form_at(i)); i++)
        if ((f->dialects & NEWEST) && f->type_count == 1 && f->types[0] == TYPE_DTYPE && f->argument_count == 0 &&
            f->row->operation == NO_OPERATION && row->gives < TENSOR_KIND_COUNT && (stage_form_receivers(f) >> row->gives & 1))
            last = f;
    return last;
}

/* The element type that is taken out of a call, or that what is expected gave it, in a stage of its own. */
static void add_behind(upgrader *u, const ast *node, const stage_form *old, made ops)
{
    const ast *written = type_argument(node, old, TYPE_DTYPE);
    bool named = written && !ast_is(written, AST_TYPE_INFER), converts = ops.count == 0, same = true;
    const stage_form *behind = dtype_stage(old->row);
    if (!behind)
        return;
    for (size_t i = 0; i < ops.count; i++) {
        const op *o = ops.items[i];
        converts = converts || (o->converted.file < 0 && op_input(o) && o->out.dtype != op_input(o)->out.dtype);
        same = same && o->out.dtype == ops.items[0]->out.dtype;
    }
    if (!converts || (!named && ops.count == 0 && !written))
        return;
    const char *name = named ? source_of(u, written) : ops.count && same ? dtype_row_of(ops.items[0]->out.dtype)->name : NULL;
    if (!name) {
        diag *d = refuse(u, node->name_range, "`%s` gives the element type in %s, and which it is is not known here", behind->name,
                         dialect_name(DIALECT_NEWEST));
        diag_help(u->in->diags, d, "write the element type in place of `_`");
        return;
    }
    if (!ast_is(ast_kid(node, 1), AST_GENERIC_ARGS)) { /* what is expected of a call no longer says its types when another one follows */
        const tensor *out = &ops.items[0]->out;
        const char *types = "";
        for (unsigned i = 0; i < old->type_count; i++) {
            component c = stage_type_component(old->types[i]);
            types = arena_printf(u->in->arena, "%s%s%s", types, i ? ", " : "",
                                 c < MAPPING_COMPONENTS && out->part[c] ? as_text(u, out->part[c]) : "_");
        }
        insert(u, node->range.file, node->name_range.end, arena_printf(u->in->arena, "::<%s>", types));
    }
    insert(u, node->range.file, node->range.end,
           arena_printf(u->in->arena, "%s.%s::<%s>()", space_before(u, dot_of(u, node)), behind->name, name));
}

/* ---- calls ---- */

/* The stage of the newest release whose result the form is called on, where the receivers moved; NULL: none is needed, or there is none. */
static const stage_form *front_of(const stage_form *new, uint64_t receivers)
{
    const stage_form *f;
    if (stage_form_receivers(new) & receivers)
        return NULL;
    for (size_t i = 0; (f = stage_form_at(i)); i++)
        if ((f->dialects & NEWEST) && f->row->gives < TENSOR_KIND_COUNT && (stage_form_receivers(new) >> f->row->gives & 1) &&
            (stage_form_receivers(f) & receivers) && f->argument_count == 0)
            return f;
    return NULL;
}

/* The form that the call has; the newest one, where it is that already. */
static const stage_form *form_of(const ast *node, const char *name, uint64_t receivers, made ops)
{
    const stage_form *f, *found = NULL;
    bool told = ops.count && ops.items[0]->releases && ast_kid(node, 2)->kid_count > 0; /* a name is an address or a context */
    unsigned releases = told ? ops.items[0]->releases : ~0u;
    for (size_t i = 0; (f = stage_form_at(i)); i++)
        if (strcmp(f->name, name) == 0 && counts_fit(node, f) && (f->dialects & releases) &&
            (!receivers || (stage_form_receivers(f) & receivers)) && (!found || (!(found->dialects & NEWEST) && (f->dialects & NEWEST))))
            found = f;
    return found;
}

static bool same_shape(const stage_form *a, const stage_form *b)
{
    return strcmp(a->name, b->name) == 0 && a->type_count == b->type_count && memcmp(a->types, b->types, sizeof a->types) == 0;
}

/* The newest form of the call's stage which takes most of what it has; *several: others take as much, otherwise. */
static const stage_form *newest_form(const stage_form *old, uint64_t receivers, bool has_types, bool *several)
{
    const stage_form *f, *found = NULL;
    bool kept[STAGE_MAX_ARGUMENTS];
    *several = false;
    for (size_t i = 0; (f = stage_form_at(i)); i++) {
        bool reached = (stage_form_receivers(f) & receivers) || front_of(f, receivers);
        if (f->row != old->row || !(f->dialects & NEWEST) || !reached || !match_arguments(old, f, kept))
            continue;
        if (!found || f->argument_count > found->argument_count) {
            found = f;
            *several = false;
        } else if (f->argument_count == found->argument_count && has_types && !same_shape(f, found)) {
            *several = true;
        }
    }
    return found;
}

/* Arguments that are left out must be ones that say nothing: where memory lies, or the only choice there is. */
static bool may_leave_out(stage_argument a, const ast *written)
{
    const ast *last = ast_last_segment(written);
    return a == ARGUMENT_ADDRESS || a == ARGUMENT_TRF_ADDRESS || (a == ARGUMENT_VECTOR_OP && last && written->kid_count > 1) ||
           (a == ARGUMENT_MODE && last && strcmp(last->text, "Mode0") == 0);
}

static void rewrite_call(upgrader *u, const ast *node, const stage_form *old, const stage_form *new, uint64_t receivers, made ops)
{
    const ast *arguments = ast_kid(node, 2);
    const stage_form *front = front_of(new, receivers);
    bool kept[STAGE_MAX_ARGUMENTS];
    match_arguments(old, new, kept);
    for (unsigned i = 0; i < old->argument_count; i++)
        if (!kept[i] && !may_leave_out(old->arguments[i], arguments->kids[i])) {
            diag *d = refuse(u, arguments->kids[i]->range, "`%s` does not take this in %s", new->name, dialect_name(DIALECT_NEWEST));
            diag_help(u->in->diags, d, "it has no such choice: write the call as %s has it", dialect_name(DIALECT_NEWEST));
            return;
        }
    if (front)
        add_in_front(u, node, old, front, ops);
    if (strcmp(old->name, new->name) != 0)
        change(u, node->name_range, new->name);
    change_types(u, node, old, new);
    for (unsigned i = 0; i < old->argument_count; i++)
        if (old->arguments[i] == ARGUMENT_OP_WITH_MODE) {
            src_range r = arguments->kids[i]->range, mode = mode_of(arguments->kids[i])->range;
            change(u, (src_range){r.file, r.begin, mode.begin}, "");
            change(u, (src_range){r.file, mode.end, r.end}, "");
        }
    thin_list(u, arguments, kept);
    if (place_of_type(old, TYPE_DTYPE) >= 0 && place_of_type(new, TYPE_DTYPE) < 0)
        add_behind(u, node, old, ops);
}

static bool is_other_name(const char *name)
{
    const stage_other_name *other;
    for (size_t i = 0; (other = stage_other_name_at(i)); i++)
        if (strcmp(other->name, name) == 0)
            return true;
    return false;
}

static const char *device_of(const upgrader *u);

/* A call that becomes something else as a whole; false: it does not. */
static bool upgrade_moved(upgrader *u, const ast *node, made ops)
{
    upgrade_move move;
    if (!upgrade_move_of(u->in, node, ops.items, ops.count, device_of(u), &move))
        return false;
    if (move.refusal) {
        diag *d = refuse(u, node->name_range, "%s writes `%s` otherwise: %s", dialect_name(DIALECT_NEWEST), node->text, move.refusal);
        diag_help(u->in->diags, d, "%s", move.help);
    }
    for (size_t i = 0; !move.refusal && i < move.count; i++) {
        change(u, move.changes[i].range, move.changes[i].text);
        ARENA_PUSH(u->in->arena, u->moved, u->moved_count, u->moved_capacity, move.changes[i].range);
    }
    return true;
}

/* April commits what is fetched in whole flits; since then collect stands in between. */
static uint64_t collect_in_front(upgrader *u, const ast *node, const stage_form *old, uint64_t receivers, bool has_types)
{
    bool several;
    if (newest_form(old, receivers, has_types, &several) || !(receivers & ON(FETCH)) || !newest_form(old, ON(COLLECT), has_types, &several))
        return receivers;
    src_range dot = dot_of(u, node);
    insert(u, dot.file, dot.begin, arena_printf(u->in->arena, ".collect()%s", space_before(u, dot)));
    return ON(COLLECT);
}

static void upgrade_call(upgrader *u, const ast *node)
{
    made ops = ops_of(u, node);
    uint64_t receivers = receivers_of_call(u, node, ops);
    const stage_form *old = form_of(node, node->text, receivers, ops);
    bool has_types = ast_is(ast_kid(node, 1), AST_GENERIC_ARGS), several;
    if (!(old && (old->dialects & NEWEST)) && upgrade_moved(u, node, ops))
        return;
    if (!old && is_other_name(node->text)) {
        diag *d = refuse(u, node->name_range, "`%s` is not supported yet, and so it is not known how %s writes it", node->text,
                         dialect_name(DIALECT_NEWEST));
        diag_help(u->in->diags, d, "upgrade the file without it");
    }
    if (!old)
        return;
    if (old->dialects & NEWEST) {
        if (place_of_type(old, TYPE_DTYPE) < 0 && ops.count && !has_types)
            add_behind(u, node, old, ops);
        return;
    }
    receivers = receivers ? receivers & stage_form_receivers(old) : stage_form_receivers(old);
    receivers = collect_in_front(u, node, old, receivers, has_types);
    const stage_form *new = newest_form(old, receivers, has_types, &several);
    if (!new || several) {
        diag *d = refuse(u, node->name_range,
                         new ? "%s writes `%s` in several ways, and what this is called on is not known" : "%s has nothing for this `%s`",
                         dialect_name(DIALECT_NEWEST), old->name);
        if (new)
            diag_help(u->in->diags, d, "it is known where the function is compiled: visac says what stands in the way");
        return;
    }
    rewrite_call(u, node, old, new, receivers, ops);
}

/* `HbmTensor::<..>::from_addr(address)`; true: it was rewritten. */
static bool upgrade_function(upgrader *u, const ast *node)
{
    const ast *path = ast_kid(node, 0), *last = ast_last_segment(path);
    if (!last || path->kid_count < 2 || !stage_is_of_type(last->text))
        return false;
    ast call = {.kind = AST_METHOD, .range = node->range, .name_range = last->name_range, .text = last->text, .kid_count = 3};
    ast none = {.kind = AST_NONE, .range = last->range, .text = ""};
    call.kids = (ast *[]){&none, &none, (ast *)ast_kid(node, 1)};
    const stage_form *old = form_of(&call, last->text, ON_TYPE, (made){0});
    if (!old || (old->dialects & NEWEST))
        return false;
    bool several;
    const stage_form *new = newest_form(old, ON_TYPE, false, &several);
    if (new)
        rewrite_call(u, &call, old, new, ON_TYPE, (made){0});
    return new;
}

/* `unsafe { X::new() }`: nothing of it is unsafe any more. */
static void open_unsafe(upgrader *u, const ast *node)
{
    const ast *block = ast_kid(node, 0), *only = ast_kid(block, 0), *call = ast_kid(only, 0);
    if (block->kid_count != 1 || !ast_is(only, AST_EXPR_STMT) || only->text[0] || !ast_is(call, AST_CALL))
        return;
    const ast *last = ast_last_segment(ast_kid(call, 0));
    if (!last || !stage_is_of_type(last->text) || ast_kid(call, 1)->kid_count == 0)
        return;
    src_range front = {node->range.file, node->range.begin, call->range.begin},
              behind = {node->range.file, call->range.end, node->range.end};
    take_out(u, front);
    take_out(u, behind);
}

/* ---- names ---- */

static bool is_own(const upgrader *u, const char *name)
{
    for (size_t i = 0; i < u->own_count; i++)
        if (strcmp(u->own[i], name) == 0)
            return true;
    return false;
}

static const char *renamed(const upgrader *u, const char *name)
{
    const char *to = dialect_renamed_type(name);
    return to && !is_own(u, name) ? to : NULL;
}

static void rename_path(upgrader *u, const ast *path)
{
    for (uint32_t i = 0; i < path->kid_count; i++) {
        const ast *segment = path->kids[i];
        const char *to = renamed(u, segment->text);
        if (!to)
            continue;
        src_range name = {segment->name_range.file, segment->name_range.begin, segment->name_range.begin + (uint32_t)strlen(segment->text)};
        change(u, name, to); /* of a type its arguments are in the range */
        const char *variant = i + 1 < path->kid_count ? variant_renamed(segment->text, path->kids[i + 1]->text, to) : NULL;
        if (variant && strcmp(variant, path->kids[i + 1]->text) != 0)
            change(u, path->kids[++i]->name_range, variant);
    }
}

static void rename_variable(upgrader *u, const ast *n, const char *from, const char *to)
{
    budget_enter(u->in->arena);
    bool alone = ast_is(n, AST_PATH) && n->kid_count == 1 && strcmp(n->kids[0]->text, from) == 0;
    if (alone || (ast_is(n, AST_PAT_NAME) && strcmp(n->text, from) == 0))
        change(u, alone ? n->kids[0]->name_range : n->name_range, to);
    for (uint32_t i = 0; i < n->kid_count; i++)
        rename_variable(u, n->kids[i], from, to);
    budget_leave(u->in->arena);
}

/* The name of a parameter of type Context or Device, as the newest release will have it; NULL: the function has none. */
static const char *device_of(const upgrader *u)
{
    const ast *list = u->function ? ast_kid(u->function, 2) : NULL;
    for (uint32_t i = 0; list && i < list->kid_count; i++) {
        const ast *pattern = ast_kid(list->kids[i], 1), *type = ast_kid(list->kids[i], 2), *last;
        type = ast_is(type, AST_TYPE_REF) ? ast_kid(type, 0) : type;
        last = ast_last_segment(type);
        if (!ast_is(pattern, AST_PAT_NAME) || !last || (strcmp(last->text, "Context") != 0 && strcmp(last->text, "Device") != 0))
            continue;
        const char *to = dialect_word(DIALECT_NEWEST, pattern->text);
        bool becomes =
            strcmp(pattern->text, "ctx") == 0 && strcmp(last->text, "Context") == 0 && renamed(u, last->text) && !names(u, u->function, to);
        return becomes ? to : pattern->text;
    }
    return NULL;
}

/* `ctx: &mut Context` is `device: &mut Device`, unless the function has a `device`. */
static void rename_context(upgrader *u, const ast *fn)
{
    static const char from[] = "ctx";
    const char *to = dialect_word(DIALECT_NEWEST, from);
    const ast *list = ast_kid(fn, 2);
    for (uint32_t i = 0; i < list->kid_count; i++) {
        const ast *pattern = ast_kid(list->kids[i], 1), *type = ast_kid(list->kids[i], 2), *last;
        if (ast_is(type, AST_TYPE_REF))
            type = ast_kid(type, 0);
        last = ast_last_segment(type);
        if (!ast_is(pattern, AST_PAT_NAME) || strcmp(pattern->text, from) != 0 || !last || strcmp(last->text, "Context") != 0 ||
            !renamed(u, last->text) || names(u, fn, to))
            continue;
        rename_variable(u, list, from, to);
        rename_variable(u, ast_kid(fn, 4), from, to);
    }
}

/* ---- the tree ---- */

/* What runs on the host, and tests: nothing of it is compiled, but what is defined in it. */
static bool is_host(const ast *fn)
{
    return (fn->value & AST_FN_ASYNC) || strcmp(fn->text, "main") == 0 || ast_attribute(fn, "test");
}

static void upgrade_node(upgrader *u, const ast *n);

static void upgrade_items(upgrader *u, const ast *block)
{
    budget_enter(u->in->arena);
    for (uint32_t i = 0; i < block->kid_count; i++)
        if (block->kids[i]->kind <= AST_ITEM_IGNORED && !ast_is(block->kids[i], AST_NONE))
            upgrade_node(u, block->kids[i]);
    budget_leave(u->in->arena);
}

static void upgrade_node(upgrader *u, const ast *n)
{
    budget_spend(u->in->arena, 1);
    if (ast_is(n, AST_MAP))
        return;
    if (ast_is(n, AST_FN) && is_host(n)) {
        upgrade_items(u, ast_kid(n, 4));
        return;
    }
    const ast *outer = u->function;
    u->function = ast_is(n, AST_FN) ? n : outer;
    budget_enter(u->in->arena);
    for (uint32_t i = 0; i < n->kid_count; i++)
        upgrade_node(u, n->kids[i]);
    u->function = outer;
    switch (n->kind) {
    case AST_METHOD: upgrade_call(u, n); break;
    case AST_CALL: upgrade_function(u, n); break;
    case AST_UNSAFE: open_unsafe(u, n); break;
    case AST_PATH:
    case AST_TYPE_PATH: rename_path(u, n); break;
    case AST_FN: rename_context(u, n); break;
    case AST_EXTERN_CRATE:
        if (renamed(u, n->text))
            change(u, n->name_range, renamed(u, n->text));
        break;
    default: break;
    }
    budget_leave(u->in->arena);
}

static void collect_own(upgrader *u, const ast *n)
{
    budget_enter(u->in->arena);
    bool names_type = ast_is(n, AST_STRUCT) || ast_is(n, AST_TYPE_ALIAS) || ast_is(n, AST_AXIS);
    if (names_type && dialect_renamed_type(n->text) && u->own_count < sizeof u->own / sizeof *u->own)
        u->own[u->own_count++] = n->text;
    for (uint32_t i = 0; i < n->kid_count; i++)
        collect_own(u, n->kids[i]);
    budget_leave(u->in->arena);
}

bool upgrade_edits(const upgrade_input *in, edit_list *out)
{
    upgrader u = {.in = in, .edits = out};
    collect_own(&u, in->tree);
    collect_ops(&u);
    upgrade_items(&u, in->tree); /* an implicit main is the host's */
    return !u.refused;
}
