#define _GNU_SOURCE /* memmem */
#include "libvisa/recall.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/dialect.h"
#include "frontend/parse.h"
#include "libvisa/concern.h"
#include "support/budget.h"
#include "support/choice.h"
#include "support/order.h"

/* The texts of what is forgotten stay in the arena; past so many bytes of them everything is forgotten. */
enum { KEPT_BYTES_MAX = 64 << 20 };
/* So much text is compiled at once for the sake of its names. */
enum { PORTION_BYTES = 64 << 10 };
/* A function that needs more others is compiled each time. */
enum { NEEDS_MAX = 64 };

struct visa_recall {
    arena *arena; /* of texts of diagnostics */
    arena_mark empty;
    char *text; /* the functions are those of this one; malloc */
    size_t bytes;
    recalled *functions; /* in the order of the text; malloc */
    size_t count, capacity;
    bool unfit;        /* of this text nothing is kept */
    outer_items outer; /* of the text; malloc */
    bool outer_known;
    size_t stale_bytes; /* so much of what is stale is compiled at once */
    uint64_t looked;    /* steps that it took to find out what a change concerns */
    uint32_t near;      /* where the text changed the last time */
    bool (*is_asked)(void *user);
    void *asked_user;
    uint64_t unasked_milliseconds;
};

visa_recall *visa_recall_new(void)
{
    visa_recall *r = calloc(1, sizeof *r);
    arena *a = arena_new();
    if (!r || !a) {
        free(r);
        arena_free(a);
        return NULL;
    }
    r->arena = a;
    r->empty = arena_mark_here(a);
    r->stale_bytes = SIZE_MAX;
    return r;
}

void visa_recall_unasked(visa_recall *r, bool (*is_asked)(void *user), void *user, uint64_t milliseconds)
{
    r->is_asked = is_asked;
    r->asked_user = user;
    r->unasked_milliseconds = milliseconds;
}

void visa_recall_put_off(visa_recall *r, size_t bytes)
{
    r->stale_bytes = bytes;
}

void recall_attend(const visa_recall *r, arena *a)
{
    budget *b = arena_budget(a);
    b->is_asked = r->is_asked;
    b->asked_user = r->asked_user;
    b->unasked_milliseconds = r->unasked_milliseconds;
}

void visa_recall_free(visa_recall *r)
{
    if (!r)
        return;
    arena_free(r->arena);
    free(r->functions);
    free(r->outer.items);
    free(r->text);
    free(r);
}

static void forget(visa_recall *r)
{
    arena_rewind(r->arena, r->empty);
    r->count = 0;
    r->unfit = false;
    r->outer_known = false;
}

/* ---- from one text to the next ---- */

static text_change change_between(const char *old, size_t old_bytes, const char *now, size_t now_bytes)
{
    size_t shorter = old_bytes < now_bytes ? old_bytes : now_bytes, front = 0, back = 0;
    while (front < shorter && old[front] == now[front])
        front++;
    while (back < shorter - front && old[old_bytes - 1 - back] == now[now_bytes - 1 - back])
        back++;
    return (text_change){(uint32_t)front, (uint32_t)(old_bytes - back), (int64_t)now_bytes - (int64_t)old_bytes};
}

static uint32_t moved(uint32_t offset, const text_change *by)
{
    return offset < by->end || offset <= by->begin ? offset : (uint32_t)(offset + by->by);
}

/* False: part of what it names has changed. */
static bool range_move(src_range *range, const text_change *by)
{
    if (range->file != 0 || range->end <= by->begin)
        return true;
    if (range->begin < by->end)
        return false;
    range->begin = (uint32_t)(range->begin + by->by);
    range->end = (uint32_t)(range->end + by->by);
    return true;
}

static bool place_move(visa_place *place, const text_change *by)
{
    src_range range = {place->file, place->begin, place->end};
    bool whole = range_move(&range, by);
    *place = (visa_place){range.file, range.begin, range.end};
    return whole;
}

static void names_move(recalled *f, const text_change *by)
{
    for (size_t i = 0; i < f->name_count && f->named; i++) {
        visa_name *n = &f->names[i];
        f->named = place_move(&n->place, by) && place_move(&n->given, by);
    }
}

/* Its places are where they were, in the text as it is now. */
static bool diag_move(diag *d, const text_change *by)
{
    bool whole = range_move(&d->range, by);
    for (size_t n = 0; n < d->note_count && whole; n++)
        whole = range_move(&d->notes[n].range, by);
    for (size_t n = 0; n < d->edit_count && whole; n++)
        whole = range_move(&d->edits[n].range, by);
    return whole;
}

static void function_move(recalled *f, const text_change *by)
{
    if (f->open <= by->begin && by->end <= f->close) { /* it is the one that changes */
        f->known = f->stale = false;
        f->end = (uint32_t)(f->end + by->by);
        f->close = (uint32_t)(f->close + by->by);
        return;
    }
    f->begin = moved(f->begin, by);
    f->end = moved(f->end, by);
    f->open = moved(f->open, by);
    f->close = moved(f->close, by);
    size_t kept = 0;
    for (size_t i = 0; i < f->diag_count && (f->known || f->stale); i++)
        if (diag_move(&f->diags[i], by))
            f->diags[kept++] = f->diags[i];
    if (kept < f->diag_count && f->known) {
        f->known = false;
        f->stale = true;
    }
    f->diag_count = kept;
    names_move(f, by);
}

/* The function whose body the change is in; `count`: none. */
static size_t function_changed(const visa_recall *r, const text_change *by)
{
    size_t i = 0;
    while (i < r->count && !(r->functions[i].open <= by->begin && by->end <= r->functions[i].close))
        i++;
    return i;
}

static bool needs(const recalled *f, const char *name)
{
    return choice_has(f->needs, f->need_count, name);
}

/* Something has changed that it needs. */
static void make_stale(recalled *f)
{
    f->stale = f->stale || f->known;
    f->known = false;
}

/* The body of a function has changed that others call: the diagnostics of those that need it are no longer known. */
static void forget_needing(visa_recall *r, size_t changed)
{
    const char *name = r->functions[changed].name;
    for (size_t i = 0; i < r->count; i++)
        if (!name || needs(&r->functions[i], name))
            make_stale(&r->functions[i]);
}

static bool has_text(const char *text, size_t begin, size_t end, const char *wanted)
{
    return begin < end && memmem(text + begin, end - begin, wanted, strlen(wanted));
}

/* Are the lines that [begin, end) touches empty or comments, wherever they stand? `//` in a comment of several lines is one too. */
static bool lines_say_nothing(const char *text, size_t bytes, size_t begin, size_t end)
{
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    while (end < bytes && text[end] != '\n')
        end++;
    if (end == bytes || has_text(text, begin, end, "/*") || has_text(text, begin, end, "*/"))
        return false;
    for (size_t i = begin; i < end; i++) {
        i += strspn(text + i, " \t\r");
        if (text[i] == '/' && text[i + 1] == '/')
            i = (size_t)((const char *)memchr(text + i, '\n', bytes - i) - text);
        else if (text[i] != '\n')
            return false;
    }
    return true;
}

/* Only comments change that stand on lines of their own, outside of all functions; a text in quotes there could hold such lines. */
static bool says_the_same(const visa_recall *r, const char *text, size_t bytes, const text_change *by)
{
    size_t from = 0;
    if (!r->count || !lines_say_nothing(r->text, r->bytes, by->begin, by->end) ||
        !lines_say_nothing(text, bytes, by->begin, (size_t)(by->end + by->by)))
        return false;
    for (size_t i = 0; i <= r->count; i++) {
        size_t to = i < r->count ? r->functions[i].begin : r->bytes;
        if (has_text(r->text, from, to, "\""))
            return false;
        from = i < r->count ? r->functions[i].end : to;
        if (i < r->count && by->begin <= r->functions[i].end && r->functions[i].begin <= by->end)
            return false;
    }
    return true;
}

typedef struct next_text {
    const char *text, *name;
    size_t bytes;
    visa_options *options; /* what is left of the limits */
} next_text;

static void follow_outside(visa_recall *r, const next_text *now, const text_change *by);

/* False: no memory. */
static bool follow(visa_recall *r, const next_text *now)
{
    bool same = r->text && r->bytes == now->bytes && memcmp(r->text, now->text, now->bytes) == 0;
    char *copy = same ? NULL : malloc(now->bytes + 1);
    if (same)
        return true;
    if (!copy || now->bytes >= UINT32_MAX) {
        free(copy);
        return false;
    }
    memcpy(copy, now->text, now->bytes);
    copy[now->bytes] = '\0';
    text_change by = change_between(r->text ? r->text : "", r->bytes, copy, now->bytes);
    size_t at = function_changed(r, &by);
    bool outside = at == r->count && !says_the_same(r, copy, now->bytes, &by);
    if (arena_used_since(r->arena, r->empty) > KEPT_BYTES_MAX || (outside && !r->outer_known))
        forget(r);
    else if (outside)
        follow_outside(r, &(next_text){copy, now->name, now->bytes, now->options}, &by);
    else if (at < r->count && !r->functions[at].kernel)
        forget_needing(r, at);
    for (size_t i = 0; i < r->count && !outside; i++)
        function_move(&r->functions[i], &by);
    r->outer_known = r->outer_known && outside; /* else where they are is known when the text was read */
    free(r->text);
    r->text = copy;
    r->bytes = now->bytes;
    r->near = by.begin;
    r->unfit = false;
    return true;
}

static bool is_asked_about(const recalled *f, uint32_t begin, uint32_t end)
{
    return begin <= f->end && f->begin <= end;
}

/* Is something asked about a function that it needs? What is known there depends on who calls it. */
static bool needs_asked(const visa_recall *r, const recalled *f, uint32_t begin, uint32_t end)
{
    for (size_t i = 0; i < r->count && f->need_count; i++)
        if (is_asked_about(&r->functions[i], begin, end) && r->functions[i].name && needs(f, r->functions[i].name))
            return true;
    return false;
}

/* The first function that does not end before the offset. */
static size_t function_from(const visa_recall *r, uint32_t offset)
{
    size_t low;
    ORDER_FIRST(&low, r->count, i, r->functions[i].end < offset);
    return low;
}

static void blank_body(char *text, const recalled *f)
{
    for (uint32_t k = f->open; k < f->close; k++)
        if (text[k] != '\n' && text[k] != '\r')
            text[k] = ' ';
}

/* The text without the bodies that nobody has to read; lines stay. Of what is stale those come first that stand below the last change.
 * NULL: no memory. */
static char *text_blanked(visa_recall *r, uint32_t begin, uint32_t end, bool named)
{
    char *text = malloc(r->bytes + 1);
    if (!text)
        return NULL;
    size_t portion = 0, stale = 0; /* of functions that are there for their names alone; of those that are stale */
    size_t first = function_from(r, r->near);
    memcpy(text, r->text, r->bytes + 1);
    for (size_t k = 0; k < r->count; k++) {
        recalled *f = &r->functions[(first + k) % r->count];
        bool asked = is_asked_about(f, begin, end) || needs_asked(r, f, begin, end) || (named && f->need_count);
        bool for_name = f->known && !asked && named && !f->named && portion < PORTION_BYTES;
        bool in_turn = f->stale && !asked && stale < r->stale_bytes;
        portion += for_name ? f->end - f->begin : 0;
        stale += in_turn ? f->end - f->begin : 0;
        f->blank = (f->known || f->stale) && !asked && !for_name && !in_turn;
        if (f->blank)
            blank_body(text, f);
    }
    return text;
}

/* ---- what stands in the text ---- */

typedef struct survey {
    visa_compilation *c;
    recalled *functions;
    const ast **nodes; /* theirs */
    size_t count, capacity, node_count, node_capacity;
    const char **calls; /* names that are called, or get another name */
    size_t call_count, call_capacity;
    const char **names; /* of functions, whatever they are called by */
    size_t name_count, name_capacity;
    bool has_macros, unfit;
} survey;

static bool is_stream_program(const ast *fn)
{
    const ast *attributes = ast_kid(fn, 0);
    for (uint32_t i = 0; i < attributes->kid_count; i++)
        if (strcmp(attributes->kids[i]->text, "stream") == 0)
            return true;
    return false;
}

static void survey_function(survey *s, const ast *fn)
{
    const ast *body = ast_kid(fn, 4);
    s->unfit = s->unfit || is_stream_program(fn);
    if (!ast_is(body, AST_BLOCK) || body->range.end < body->range.begin + 2)
        return;
    recalled f = {.begin = fn->range.begin, .end = fn->range.end, .open = body->range.begin + 1, .close = body->range.end - 1};
    ARENA_PUSH(s->c->arena, s->functions, s->count, s->capacity, f);
    ARENA_PUSH(s->c->arena, s->nodes, s->node_count, s->node_capacity, fn);
}

/* Calls, names and macros of everything below the node. */
static void survey_names(survey *s, const ast *n)
{
    arena *a = s->c->arena;
    const ast *named = ast_is(n, AST_CALL) || ast_is(n, AST_USE_RENAME) ? ast_kid(n, 0) : NULL;
    const ast *callee = named && named->kid_count ? named->kids[named->kid_count - 1] : NULL;
    budget_spend(a, 1);
    if (callee)
        ARENA_PUSH(a, s->calls, s->call_count, s->call_capacity, callee->text);
    if (ast_is(n, AST_FN) || ast_is(n, AST_USE_RENAME))
        ARENA_PUSH(a, s->names, s->name_count, s->name_capacity, n->text);
    s->has_macros = s->has_macros || ast_is(n, AST_MACRO) || ast_is(n, AST_TYPE_MACRO) ||
                    (ast_is(n, AST_ITEM_IGNORED) && strcmp(n->text, "macro_rules") == 0);
    budget_enter(a);
    for (uint32_t i = 0; i < n->kid_count; i++)
        if (!ast_is(n->kids[i], AST_MAP))
            survey_names(s, n->kids[i]);
    budget_leave(a);
}

/* Functions of the file and its modules; what stands between them must be such that only its text counts. */
static void survey_items(survey *s, const ast *parent)
{
    budget_enter(s->c->arena);
    for (uint32_t i = 0; i < parent->kid_count; i++) {
        const ast *n = parent->kids[i];
        bool had_macros = s->has_macros;
        if (ast_is(n, AST_FN)) {
            survey_function(s, n);
            continue;
        }
        if (ast_is(n, AST_MOD)) {
            s->unfit = s->unfit || !ast_is(ast_kid(n, 1), AST_BLOCK);
            survey_items(s, ast_kid(n, 1));
            continue;
        }
        s->has_macros = false;
        survey_names(s, n);
        s->unfit = s->unfit || s->has_macros;
        s->has_macros = had_macros;
    }
    budget_leave(s->c->arena);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_name(const char *const *names, size_t count, const char *name)
{
    return count && bsearch(&name, names, count, sizeof *names, by_name);
}

typedef struct calls_of {
    size_t from, to;
    bool has_macros;
} calls_of;

/* A function by its name. */
typedef struct named_function {
    const char *name;
    size_t number;
} named_function;

static int by_function(const void *a, const void *b)
{
    const named_function *x = a, *y = b;
    return order_then(strcmp(x->name, y->name), ORDER(x->number, y->number));
}

/* The first function of that name; `count`: there is none. */
static size_t first_named(const named_function *all, size_t count, const char *name)
{
    size_t low;
    ORDER_FIRST(&low, count, i, strcmp(all[i].name, name) < 0);
    return low < count && strcmp(all[low].name, name) == 0 ? low : count;
}

/* What the function needs, called by whatever way. False: something that is called has another name, or has a macro, or it is too much. */
static bool survey_needs(survey *s, const calls_of *own, const named_function *all, size_t number)
{
    arena *a = s->c->arena;
    recalled *f = &s->functions[number];
    size_t *left = ARENA_ARRAY(a, size_t, s->count + 1), left_count = 1; /* functions whose calls are to be looked at */
    bool *met = ARENA_ARRAY(a, bool, s->count + 1);
    f->needs = ARENA_ARRAY(a, const char *, NEEDS_MAX + 1);
    left[0] = number;
    met[number] = true;
    while (left_count > 0) {
        const calls_of *calls = &own[left[--left_count]];
        if (calls->has_macros)
            return false;
        for (size_t i = calls->from; i < calls->to; i++) {
            const char *name = s->calls[i];
            size_t at = first_named(all, s->count, name);
            budget_spend(a, 1);
            if (at == s->count && has_name(s->names, s->name_count, name))
                return false;
            if (at < s->count && !needs(f, name)) {
                if (f->need_count == NEEDS_MAX)
                    return false;
                f->needs[f->need_count++] = name;
            }
            for (; at < s->count && strcmp(all[at].name, name) == 0; at++)
                if (!met[all[at].number]) {
                    met[all[at].number] = true;
                    left[left_count++] = all[at].number;
                }
        }
    }
    return true;
}

/* Whose change concerns it alone, and which may be kept. What is not there calls what it called. */
static void survey_judge(survey *s, const visa_recall *r)
{
    calls_of *own = ARENA_ARRAY(s->c->arena, calls_of, s->count + 1);
    for (size_t i = 0; i < s->count; i++) {
        s->has_macros = false;
        own[i].from = s->call_count;
        survey_names(s, s->nodes[i]);
        own[i].to = s->call_count;
        own[i].has_macros = s->has_macros;
    }
    size_t call_count;
    const char *const *not_there = recall_called(s->c, &call_count);
    const char **calls = ARENA_ARRAY(s->c->arena, const char *, s->call_count + call_count + 1);
    if (call_count)
        memcpy(calls, not_there, call_count * sizeof *calls);
    if (s->call_count)
        memcpy(calls + call_count, s->calls, s->call_count * sizeof *calls);
    call_count += s->call_count;
    order_sort(calls, call_count, sizeof *calls, by_name);
    order_sort(s->names, s->name_count, sizeof *s->names, by_name);
    named_function *all = ARENA_ARRAY(s->c->arena, named_function, s->count + 1);
    for (size_t i = 0; i < s->count; i++)
        all[i] = (named_function){s->nodes[i]->text, i};
    order_sort(all, s->count, sizeof *all, by_function);
    for (size_t i = 0; i < s->count; i++) {
        recalled *f = &s->functions[i];
        bool blank = s->count == r->count && r->functions[i].blank;
        f->name = s->nodes[i]->text;
        f->kernel = !has_name(calls, call_count, f->name);
        f->simple = f->kernel && (blank || survey_needs(s, own, all, i));
    }
}

static bool is_at(const recalled *a, const recalled *b)
{
    return a->begin == b->begin && a->end == b->end && a->open == b->open && a->close == b->close;
}

/* What a function needs, in the recall's memory; what cannot be kept there is not simple. */
static void keep_needs(visa_recall *r, recalled *f, const recalled *from)
{
    f->name = NULL;
    f->need_count = 0;
    if (setjmp(*arena_guard(r->arena))) { /* no memory */
        f->simple = false;
        f->need_count = 0;
        return;
    }
    f->name = arena_strdup(r->arena, from->name);
    f->needs = ARENA_ARRAY(r->arena, const char *, from->need_count + 1);
    for (size_t i = 0; i < from->need_count; i++)
        f->needs[i] = arena_strdup(r->arena, from->needs[i]);
    f->need_count = from->need_count;
}

/* Other functions than those that were expected: of none is anything known. */
static bool take_functions(visa_recall *r, const survey *s)
{
    forget(r);
    if (s->count > r->capacity) {
        recalled *grown = realloc(r->functions, s->count * sizeof *grown);
        if (!grown)
            return false;
        r->functions = grown;
        r->capacity = s->count;
    }
    if (s->count)
        memcpy(r->functions, s->functions, s->count * sizeof *s->functions);
    r->count = s->count;
    return true;
}

/* What cannot be read is read again each time. */
static void mark_broken(visa_recall *r, const visa_compilation *c)
{
    for (size_t i = 0; i < c->diags_parsed; i++) {
        src_range range = c->diags.items[i]->range;
        for (size_t k = function_from(r, range.begin); range.file == 0 && k < r->count && r->functions[k].begin <= range.end; k++)
            r->functions[k].simple = false;
    }
}

/* What stands outside of bodies. */
static bool take_outer(visa_recall *r, const outer_items *from)
{
    outer_item *items = malloc((from->count + 1) * sizeof *items);
    r->outer_known = items != NULL;
    if (!items)
        return false;
    if (from->count)
        memcpy(items, from->items, from->count * sizeof *items);
    free(r->outer.items);
    r->outer = (outer_items){items, from->count, from->count};
    return true;
}

static void keep_outer(visa_recall *r, visa_compilation *c)
{
    outer_items items = outer_items_of(c->file, c->arena);
    take_outer(r, &items);
    c->doubted = ARENA_ARRAY(c->arena, bool, items.count + 1);
}

bool recall_follows(visa_compilation *c)
{
    visa_recall *r = c->recall;
    survey s = {.c = c};
    survey_items(&s, c->file);
    survey_judge(&s, r);
    bool same = s.count == r->count, has_blank = false;
    for (size_t i = 0; i < r->count; i++) {
        const recalled *f = &r->functions[i];
        has_blank = has_blank || f->blank;
        same = same && is_at(f, &s.functions[i]) && (!f->blank || s.functions[i].simple);
    }
    c->unlike = has_blank && (!same || s.unfit);
    if (c->unlike)
        return false;
    if (!same && !take_functions(r, &s))
        s.unfit = true;
    r->unfit = s.unfit;
    for (size_t i = 0; i < r->count; i++)
        if (!r->functions[i].blank) {
            r->functions[i].simple = s.functions[i].simple;
            r->functions[i].kernel = false; /* until it is read as one */
            r->functions[i].known = r->functions[i].stale = false;
            keep_needs(r, &r->functions[i], &s.functions[i]);
        }
    mark_broken(r, c);
    keep_outer(r, c);
    c->alone = ARENA_ARRAY(c->arena, bool, r->count + 1);
    src_range *blanks = ARENA_ARRAY(c->arena, src_range, r->count + 1);
    size_t called_count;
    const char *const *called = recall_called(c, &called_count);
    for (size_t i = 0; i < r->count; i++) {
        const char *name = r->functions[i].name;
        c->alone[i] = s.functions[i].kernel;
        if (r->functions[i].blank || (name && has_name(called, called_count, name))) /* nor of what it calls is all known */
            blanks[c->blank_count++] = (src_range){0, r->functions[i].begin, r->functions[i].end};
    }
    c->blanks = blanks;
    return true;
}

/* ---- a change outside of bodies ---- */

/* Those that stand as they are, in the text as it is now. Touched are also those that begin or end where it changes. */
static void move_untouched(visa_recall *r, const text_change *by)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++) {
        recalled f = r->functions[i];
        if (f.end >= by->begin && f.begin <= by->end)
            continue;
        function_move(&f, by);
        f.blank = f.known || f.stale;
        r->functions[kept++] = f;
    }
    r->count = kept;
}

/* The functions of the new text, with what is known of those that are the same; false: one that is has gone, or no memory. */
static bool take_next(visa_recall *r, const survey *s)
{
    recalled *next = calloc(s->count + 1, sizeof *next);
    size_t at = 0;
    for (size_t i = 0; i < s->count && next; i++) {
        next[i] = s->functions[i];
        while (at < r->count && r->functions[at].begin < next[i].begin && !r->functions[at].blank)
            at++;
        if (at < r->count && is_at(&r->functions[at], &next[i]))
            next[i] = r->functions[at++];
    }
    for (; next && at < r->count && !r->functions[at].blank; at++)
        ;
    if (!next || at < r->count) {
        free(next);
        return false;
    }
    free(r->functions);
    r->functions = next;
    r->count = s->count;
    r->capacity = s->count + 1;
    return true;
}

static void make_concerned_stale(visa_recall *r, const outer_items *items, const concern *c)
{
    for (size_t i = 0; i < r->count; i++) {
        recalled *f = &r->functions[i];
        size_t at = outer_items_find(items, f->begin);
        bool faulty = false; /* its messages may suggest other names */
        for (size_t k = 0; k < f->diag_count; k++)
            faulty = faulty || f->diags[k].severity == DIAG_ERROR;
        if (c->everything || faulty || at == items->count || c->concerned[at])
            make_stale(f);
    }
}

/* Which functions nothing calls. */
static void mark_leaves(const visa_recall *r, outer_items *items)
{
    for (size_t i = 0; i < r->count; i++) {
        size_t at = outer_items_find(items, r->functions[i].begin);
        if (at < items->count)
            items->items[at].leaf = r->functions[i].kernel;
    }
}

/* The new text was parsed. False: nothing that is known counts. */
static bool take_concern(visa_recall *r, visa_compilation *c, const char *text, const text_change *by)
{
    survey s = {.c = c};
    if (COMPILATION_STOPS(c) || !c->file)
        return false;
    survey_items(&s, c->file);
    outer_items items = outer_items_of(c->file, c->arena);
    if (s.unfit || !take_next(r, &s))
        return false;
    mark_leaves(r, &items);
    concern found = concern_between(r->text, &r->outer, text, &items, by, c->arena);
    make_concerned_stale(r, &items, &found);
    return take_outer(r, &items);
}

/* What a compilation took counts: steps that it and those before it spent. */
static uint64_t spend_options(visa_options *left, visa_compilation *c)
{
    uint64_t spent = visa_steps(c), most = left->max_steps ? left->max_steps : COMPILE_STEPS_MAX;
    left->max_steps = most == UINT64_MAX ? most : spent < most ? most - spent : 1;
    left->max_milliseconds = left->max_milliseconds ? budget_milliseconds_left(c->arena) : 0;
    visa_free(c);
    return spent;
}

/* The text is parsed without the bodies that did not change, to see what did. */
static void follow_outside(visa_recall *r, const next_text *now, const text_change *by)
{
    visa_options options = *now->options;
    char *text = malloc(now->bytes + 1);
    move_untouched(r, by);
    bool any = false;
    for (size_t i = 0; i < r->count; i++)
        any = any || r->functions[i].blank;
    if (!text || !any) {
        free(text);
        forget(r);
        return;
    }
    memcpy(text, now->text, now->bytes + 1);
    for (size_t i = 0; i < r->count; i++)
        if (r->functions[i].blank)
            blank_body(text, &r->functions[i]);
    options.parse_only = true;
    options.modules = false;
    visa_compilation *c = visa_compile(now->name, text, now->bytes, &options);
    free(text);
    if (!c || !take_concern(r, c, now->text, by))
        forget(r);
    if (c)
        r->looked = spend_options(now->options, c);
}

/* ---- while it is compiled ---- */

unsigned recall_dialects(const visa_recall *r)
{
    unsigned set = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->functions[i].blank)
            set = set ? set & r->functions[i].dialects : r->functions[i].dialects;
    return set;
}

const char *const *recall_called(visa_compilation *c, size_t *count)
{
    const visa_recall *r = c->recall;
    size_t most = 0;
    *count = 0;
    for (size_t i = 0; i < r->count; i++)
        most += r->functions[i].blank ? r->functions[i].need_count : 0;
    const char **names = ARENA_ARRAY(c->arena, const char *, most + 1);
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; r->functions[i].blank && k < r->functions[i].need_count; k++)
            names[(*count)++] = r->functions[i].needs[k];
    order_sort(names, *count, sizeof *names, by_name);
    return names;
}

static recalled *function_of(visa_recall *r, src_range range)
{
    size_t i = function_from(r, range.end);
    recalled *f = range.file == 0 && i < r->count ? &r->functions[i] : NULL;
    return f && f->begin == range.begin && f->end == range.end ? f : NULL;
}

bool recall_passes_over(void *compilation, const ast *fn, dialect d, bool mixed)
{
    visa_compilation *c = compilation;
    recalled *f = function_of(c->recall, fn->range);
    c->reads = f;
    c->reads_node = fn;
    c->diags_before = c->diags.count;
    c->lost_before = c->index->lost_count;
    c->unlike = c->unlike || (f && f->blank && (mixed || f->release != d));
    if (!f || mixed)
        c->recall->unfit = c->recall->unfit || mixed;
    else
        f->kernel = c->alone[f - c->recall->functions];
    return f && f->blank;
}

static bool is_within(src_range range, const recalled *f)
{
    return range.file == 0 && f->begin <= range.begin && range.end <= f->end;
}

static void diag_copy(diag *out, const diag *from, arena *a)
{
    *out = *from;
    out->message = arena_strdup(a, from->message);
    out->help = from->help ? arena_strdup(a, from->help) : NULL;
    out->notes = from->note_count ? ARENA_ARRAY(a, diag_remark, from->note_count) : NULL;
    out->note_capacity = from->note_count;
    for (size_t n = 0; n < from->note_count; n++)
        out->notes[n] = (diag_remark){from->notes[n].range, arena_strdup(a, from->notes[n].text)};
    out->edits = from->edit_count ? ARENA_ARRAY(a, diag_edit, from->edit_count) : NULL;
    out->edit_capacity = from->edit_count;
    for (size_t n = 0; n < from->edit_count; n++)
        out->edits[n] = (diag_edit){from->edits[n].range, arena_strdup(a, from->edits[n].text)};
}

static void keep_said(visa_compilation *c, recalled *f, bool known)
{
    arena *a = c->recall->arena;
    size_t count = c->diags.count - c->diags_before;
    f->known = f->stale = false;
    if (setjmp(*arena_guard(a))) /* no memory */
        return;
    f->diags = count ? ARENA_ARRAY(a, diag, count) : NULL;
    f->diag_count = count;
    for (size_t i = 0; i < count; i++)
        diag_copy(&f->diags[i], c->diags.items[c->diags_before + i], a);
    f->known = known;
    f->stale = !known;
    f->named = false;
}

/* What is reported outside of the function that asked was asked first by it, and what asks later says nothing: the item is in doubt, and
 * all that mention it are read again each time. False: nothing is. */
static bool doubt(visa_compilation *c, const recalled *f)
{
    visa_recall *r = c->recall;
    bool own = true;
    for (size_t i = c->diags_before; i < c->diags.count; i++) {
        src_range range = c->diags.items[i]->range;
        if (f && is_within(range, f))
            continue;
        size_t at = range.file == 0 && r->outer_known ? outer_items_find(&r->outer, range.begin) : r->outer.count;
        own = false;
        if (at == r->outer.count || r->outer.items[at].structure || range.end > r->outer.items[at].end)
            r->unfit = true;
        else
            c->doubted[at] = c->has_doubts = true;
    }
    return !own;
}

void recall_keep(visa_compilation *c, const kernel *k)
{
    recalled *f = c->reads;
    bool doubtful = doubt(c, f) || c->index->lost_count > c->lost_before;
    if (!f || !f->simple || c->recall->unfit || c->unlike)
        return;
    bool mixed = false;
    f->dialects = dialect_narrow(ALL_DIALECTS, c->reads_node, &mixed, c->arena);
    f->release = k->dialect;
    keep_said(c, f, !doubtful);
    c->learnt = c->learnt || f->known || f->stale;
}

/* Whoever mentions what is in doubt might have been the first to ask. */
static void mark_doubtful(visa_recall *r, visa_compilation *c)
{
    mark_leaves(r, &r->outer);
    concern doubts = concern_of_items(r->text, &r->outer, c->doubted, c->arena);
    for (size_t i = 0; i < r->count; i++) {
        recalled *f = &r->functions[i];
        size_t at = outer_items_find(&r->outer, f->begin);
        if (!doubts.everything && (at == r->outer.count || !doubts.concerned[at]))
            continue;
        c->unlike = c->unlike || (f->blank && f->known);
        make_stale(f);
    }
}

static bool is_said(const visa_compilation *c, const diag *d)
{
    bool found = false;
    for (size_t i = c->diags_parsed; i < c->diags.count && !found; i++) {
        const diag *said = c->diags.items[i];
        found = said->id == d->id && said->range.file == d->range.file && said->range.begin == d->range.begin &&
                said->range.end == d->range.end && strcmp(said->message, d->message) == 0;
    }
    return found;
}

void recall_add(visa_compilation *c)
{
    visa_recall *r = c->recall;
    if (c->has_doubts && !r->unfit && !c->unlike)
        mark_doubtful(r, c);
    if (r->unfit)
        for (size_t i = 0; i < r->count; i++)
            r->functions[i].known = r->functions[i].stale = false;
    c->unlike = c->unlike || (r->unfit && c->blank_count);
    for (size_t i = 0; i < r->count && !c->unlike; i++) {
        const recalled *f = &r->functions[i];
        c->pending += f->blank && f->stale;
        for (size_t k = 0; f->blank && k < f->diag_count; k++) {
            budget_spend(c->arena, 1);
            if (f->stale && !is_within(f->diags[k].range, f) && is_said(c, &f->diags[k]))
                continue;
            diag *d = ARENA_NEW(c->arena, diag);
            diag_copy(d, &f->diags[k], c->arena);
            ARENA_PUSH(c->arena, c->diags.items, c->diags.count, c->diags.capacity, d);
            c->diags.error_count += d->severity == DIAG_ERROR;
        }
    }
}

/* ---- the calls ---- */

static visa_compilation *compile_text(visa_recall *r, const char *name, const char *text, const visa_options *options)
{
    visa_compilation *c = compilation_compile(name, text, r->bytes, options, r);
    if (c)
        c->recall = NULL;
    return c;
}

/* The text is not what it seemed to be. */
static visa_compilation *compile_anew(visa_recall *r, const char *name, visa_options *options, visa_compilation *c)
{
    uint64_t spent = spend_options(options, c);
    forget(r);
    visa_compilation *whole = compile_text(r, name, r->text, options);
    if (whole)
        arena_budget(whole->arena)->steps += spent;
    return whole;
}

visa_compilation *visa_recompile(visa_recall *r, const char *name, const char *text, size_t bytes, uint32_t begin, uint32_t end, bool named,
                                 const visa_options *options)
{
    visa_options chosen = options ? *options : (visa_options){0};
    chosen.editor = true;
    for (size_t i = 0; r->unfit && i < r->count; i++)
        r->functions[i].known = r->functions[i].stale = false;
    r->looked = 0;
    char *shown = follow(r, &(next_text){text, name, bytes, &chosen}) ? text_blanked(r, begin, end, named) : NULL;
    if (!shown)
        return visa_compile(name, text, bytes, &chosen);
    visa_compilation *c = compile_text(r, name, shown, &chosen);
    free(shown);
    if (c && c->unlike)
        c = compile_anew(r, name, &chosen, c);
    if (c)
        arena_budget(c->arena)->steps += r->looked;
    return c;
}

size_t visa_pending(const visa_compilation *c)
{
    return c->pending;
}

bool visa_holds(const visa_compilation *c, uint32_t begin, uint32_t end)
{
    if (c->gave_up && (c->learnt || c->interrupted))
        return false;
    for (size_t i = 0; i < c->blank_count; i++)
        if (begin <= c->blanks[i].end && c->blanks[i].begin <= end)
            return false;
    return true;
}

/* ---- names ---- */

/* Those of a function that was compiled: [from, to) of the list. */
static void keep_names(visa_recall *r, recalled *f, const visa_name *names, size_t from, size_t to)
{
    if (!f->known || f->named || setjmp(*arena_guard(r->arena)))
        return;
    f->names = ARENA_ARRAY(r->arena, visa_name, to - from + 1);
    f->name_count = to - from;
    if (to > from)
        memcpy(f->names, names + from, (to - from) * sizeof *names);
    f->named = true;
}

/* The first of the names that does not stand before the function, and the first after it. */
static void names_of(const recalled *f, const visa_name *names, size_t count, size_t *from, size_t *to)
{
    while (*from < count && names[*from].place.begin < f->begin)
        ++*from;
    *to = *from;
    while (*to < count && names[*to].place.begin < f->end)
        ++*to;
}

/* Is that of all others known? */
static bool learn_names(visa_recall *r, const visa_name *own, size_t count)
{
    bool all = true;
    for (size_t i = 0, from = 0, to; i < r->count; i++, from = to) {
        recalled *f = &r->functions[i];
        names_of(f, own, count, &from, &to);
        if (!f->blank)
            keep_names(r, f, own, from, to);
        else
            all = all && f->known && f->named && f->need_count == 0; /* of what it calls the names are known where it is compiled */
    }
    return all;
}

/* What was compiled, and for the others what is known: both in the order of the text. */
static const visa_name *merge_names(const visa_recall *r, visa_compilation *c, const visa_name *own, size_t *count)
{
    size_t at = 0, merged_count = 0, capacity = 0;
    visa_name *merged = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const recalled *f = &r->functions[i];
        size_t from = at, to;
        names_of(f, own, *count, &from, &to);
        for (; at < (f->blank ? from : to); at++)
            ARENA_PUSH(c->arena, merged, merged_count, capacity, own[at]);
        for (size_t k = 0; f->blank && k < f->name_count; k++)
            ARENA_PUSH(c->arena, merged, merged_count, capacity, f->names[k]);
        at = to;
    }
    for (; at < *count; at++)
        ARENA_PUSH(c->arena, merged, merged_count, capacity, own[at]);
    *count = merged_count;
    return merged;
}

bool visa_recalled_names(visa_recall *r, visa_compilation *c, const visa_name **names, size_t *count)
{
    *count = visa_names(c, names);
    if (c->gave_up || !c->module || COMPILATION_STOPS(c))
        return true;
    if (!learn_names(r, *names, *count))
        return false;
    *names = merge_names(r, c, *names, count);
    return true;
}
