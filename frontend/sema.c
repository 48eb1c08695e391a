#include "frontend/sema.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/dataflow.h"
#include "frontend/dialect.h"
#include "frontend/index.h"
#include "frontend/parse.h"
#include "frontend/stage.h"
#include "support/budget.h"
#include "support/choice.h"
#include "support/order.h"

/* ---- functions ---- */

/* What `pe = n` leaves of a chip. */
static const struct {
    int64_t pe, clusters, slices;
} topologies[] = {
#define TOPOLOGY(pe, clusters, slices) {pe, clusters, slices},
#include "target/topology.def"
};
enum { TOPOLOGIES = sizeof topologies / sizeof *topologies };

static void read_pe(analysis *s, const ast *arg, int64_t pe)
{
    size_t i = 0;
    while (i < TOPOLOGIES && topologies[i].pe != pe)
        i++;
    if (i < TOPOLOGIES) {
        s->kernel->clusters = topologies[i].clusters;
        s->kernel->slices = topologies[i].slices;
        return;
    }
    strbuf known;
    strbuf_init(&known, s->context.arena);
    for (i = 0; i < TOPOLOGIES; i++)
        strbuf_printf(&known, "%s%lld", i == 0 ? "" : i + 1 < TOPOLOGIES ? ", " : " or ", (long long)topologies[i].pe);
    refuse(s, E_PE, arg->range, arena_printf(s->context.arena, "write %s; without the attribute's `pe` it is all of them", known.text),
           "a kernel runs on %s processing elements of a chip, got %lld", known.text, (long long)pe);
}

static void read_chips(analysis *s, const ast *arg, int64_t chips)
{
    s->kernel->chips = chips;
    if (chips < 1)
        refuse(s, E_CHIPS, arg->range, "without the attribute's `chip` it is one", "a kernel runs on at least 1 chip, got 0");
}

static void read_device_argument(analysis *s, const ast *arg)
{
    bool is_number = ast_is(ast_kid(arg, 0), AST_INT), is_chip = strcmp(arg->text, "chip") == 0, is_pe = strcmp(arg->text, "pe") == 0;
    if (is_chip && !is_number)
        s->kernel->chips = 0;
    if (is_pe)
        s->kernel->clusters = s->kernel->slices = -1;
    if (!is_number || !(is_chip || is_pe))
        refuse(s, E_UNSUPPORTED, arg->range, "device takes `chip = n` and `pe = n`",
               is_chip || is_pe ? "`%s` of device is not a number" : "device attribute `%s` is not known", arg->text);
    else if (is_chip)
        read_chips(s, arg, ast_kid(arg, 0)->value);
    else
        read_pe(s, arg, ast_kid(arg, 0)->value);
}

/* #[device(chip = n, pe = m)]; chip absent means 1, pe absent a whole chip. */
static void read_device(analysis *s, const ast *fn)
{
    const ast *attributes = ast_kid(fn, 0), *first = NULL;
    for (uint32_t i = 0; i < attributes->kid_count; i++) {
        const ast *a = attributes->kids[i];
        if (strcmp(a->text, "device") != 0)
            continue;
        if (first) {
            diag *d = diag_add(s->context.diags, E_DUPLICATE, a->range, "`%s` has two device attributes", fn->text);
            diag_note(s->context.diags, d, first->range, "the first is here");
            diag_help(s->context.diags, d, "write one of them");
            continue;
        }
        first = a;
        s->kernel->is_device = true;
        for (uint32_t j = 1; j < a->kid_count; j++)
            read_device_argument(s, a->kids[j]);
    }
}

static const symbol *kernel_named(analysis *s, const char *name)
{
    return scope_find_here(s->kernel_names, VALUE_NAMES, name);
}

/* `A: AxisName` */
static bool is_axis_name(const ast *parameter)
{
    const ast *bounds = ast_kid(parameter, 0);
    for (uint32_t i = 0; ast_is(parameter, AST_GENERIC_TYPE) && i < bounds->kid_count; i++) {
        const ast *last = ast_last_segment(bounds->kids[i]);
        if (last && strcmp(last->text, "AxisName") == 0)
            return true;
    }
    return false;
}

/* What gives values to the parameters from that one on, " -D A=SIZE -D N=VALUE"; *count: so many. */
static const char *options_from(analysis *s, const ast *fn, const ast *first, uint32_t *count)
{
    const ast *parameters = ast_kid(fn, 1);
    strbuf options;
    strbuf_init(&options, s->arena);
    *count = 0;
    for (uint32_t i = 0; i < parameters->kid_count; i++) {
        const ast *x = parameters->kids[i];
        bool is_axis = is_axis_name(x), given = ast_is(ast_kid(x, 1), AST_INT);
        if (x->range.begin < first->range.begin || given || !(is_axis || ast_is(x, AST_GENERIC_CONST)))
            continue;
        strbuf_printf(&options, " -D %s=%s", x->text, is_axis ? "SIZE" : "VALUE");
        ++*count;
    }
    return options.text;
}

/* A kernel that has no sizes yet is skipped, with a warning that names it and what it needs. */
static bool is_generic(analysis *s, const ast *fn)
{
    const ast *missing = missing_generic(fn);
    if (!missing)
        return false;
    bool is_axis = is_axis_name(missing), is_const = ast_is(missing, AST_GENERIC_CONST);
    diag *d = diag_add(s->context.diags, W_GENERIC, fn->name_range, "kernel `%s` is not compiled: its parameter `%s` has no %s", fn->text,
                       missing->text,
                       is_axis    ? "size"
                       : is_const ? "value"
                                  : "type");
    diag_note(s->context.diags, d, missing->name_range, "declared here");
    uint32_t count;
    const char *options = options_from(s, fn, missing, &count);
    if ((is_axis || is_const) && count > 1)
        diag_help(s->context.diags, d, "give them all:%s", options);
    else if (is_axis || is_const)
        diag_help(s->context.diags, d, "give it one: -D %s=%s", missing->text, is_axis ? "SIZE, an axis of that name" : "VALUE");
    else
        diag_help(s->context.diags, d, "call it in a kernel: `%s::<..>(..)`, or say that it is an axis: `%s: AxisName`", fn->text,
                  missing->text);
    return true;
}

/* Of another module: its path tells them apart. */
static const char *kernel_name(analysis *s, const ast *fn)
{
    const char *name = s->only ? s->only : fn->text;
    return kernel_named(s, name) ? arena_printf(s->arena, "%s%s", s->module_path ? s->module_path : "", fn->text) : name;
}

/* Memory whose type nobody told, neither where it is made nor where it is used. */
static void refuse_unknown(analysis *s, const value *result, const declared *expected)
{
    if (result->kind == VALUE_TENSOR)
        stage_settle(result->op, expected);
    for (size_t i = 0; i < s->kernel->op_count; i++) {
        op *o = s->kernel->ops[i];
        if (o->open && !s->kernel->bad)
            stage_refuse_open(s->kernel, s->context.diags, o);
        o->bad = o->bad || o->open; /* the kernel has another fault: what is missing follows from it, perhaps */
    }
}

static void analyse_kernel(analysis *s, scope *outer, const ast *fn)
{
    if (s->options->passes_over && s->options->passes_over(s->options->user, fn, s->context.dialect, s->mixed)) {
        scope_add(s->kernel_names, SYMBOL_FUNCTION, kernel_name(s, fn), fn->name_range);
        return;
    }
    if (is_generic(s, fn))
        return;
    arena *outer_arena = s->context.arena;
    kernel *k = ARENA_NEW(s->arena, kernel);
    *k = (kernel){.name = kernel_name(s, fn), .range = fn->name_range, .dialect = s->context.dialect, .chips = 1};
    symbol *self = scope_find_here(outer, VALUE_NAMES, fn->text);
    if (self && self->kind == SYMBOL_FUNCTION)
        self->busy = true;
    const symbol *twin = kernel_named(s, k->name);
    if (twin) {
        diag *d = diag_add(s->context.diags, E_DUPLICATE, fn->name_range, "kernel `%s` is defined twice", fn->text);
        diag_note(s->context.diags, d, twin->range, "first defined here");
        diag_help(s->context.diags, d, "kernel names are the names of the binary's sections");
        k->bad = true;
    }
    s->kernel = k;
    s->steps = 0;
    s->stopped = false;
    s->keeps_names = s->returning = s->may_leave = false;
    s->leaving = LEAVES_NOTHING;
    s->frames = NULL;
    s->broken = parse_was_broken(s->context.diags, fn->range);
    size_t errors_before = s->context.diags->error_count;
    ARENA_PUSH(s->arena, s->module->kernels, s->module->count, s->module->capacity, k);
    scope_add(s->kernel_names, SYMBOL_FUNCTION, k->name, k->range);
    if (s->options->takes && !s->options->takes(s->options->user, s->module->count - 1, fn->range)) {
        if (self)
            self->busy = false;
        s->kernel = NULL;
        return;
    }
    if (s->options->kernels)
        s->context.arena = s->options->kernels;
    if (!s->context.index) /* which keeps the scopes for who asks later */
        s->context.names = arena_new_inside(s->context.arena);
    scope *names = scope_new(&s->context, outer);
    index_add_scope(&s->context, fn->range, names);
    read_device(s, fn);
    declare_generics(s, names, fn, NULL, NULL, NULL);
    const ast *params = ast_kid(fn, 2);
    for (uint32_t i = 0; i < params->kid_count; i++)
        declare_parameter(s, names, params->kids[i]);
    declared result = scope_type(names, ast_kid(fn, 3));
    const ast *body = ast_kid(fn, 4);
    if (ast_is(body, AST_BLOCK)) {
        const ast *given;
        value v = evaluate_body(s, names, body, &result, &result, &given);
        k->unfinished = s->stopped;
        if (s->stopped)
            v = error_value;
        refuse_unknown(s, &v, &result);
        add_outputs(s, names, fn, given, v, &result);
    } else {
        refuse(s, E_UNSUPPORTED, fn->name_range, ast_attribute(fn, "einsum") ? "`visac tune FILE.vm` writes it" : NULL,
               "kernel `%s` has no body", fn->text);
    }
    if (s->context.diags->error_count > errors_before)
        k->bad = true;
    s->context.diags->repeating = 0;
    if (self)
        self->busy = false;
    s->kernel = NULL;
    arena_free(s->context.names);
    s->context.names = NULL;
    s->context.arena = outer_arena;
    if (s->options->done)
        s->options->done(s->options->user, k);
}

/* ---- items ---- */

static symbol *collect_item(analysis *s, scope *names, const ast *n, symbol_kind kind)
{
    symbol *known = scope_find_here(names, kind == SYMBOL_ALIAS ? TYPE_NAMES : kind == SYMBOL_MODULE ? MODULE_NAMES : VALUE_NAMES, n->text);
    bool other = known && s->given && known->given && !ast_equal(s->given, known->given);
    if (known && !other && kind == SYMBOL_FUNCTION) /* two kernels of one name are refused where they are compiled */
        return known;
    if (known && !other && !known->target) {
        diag *d = diag_add(s->context.diags, E_DUPLICATE, n->name_range, "`%s` is defined twice", n->text);
        diag_note(s->context.diags, d, known->range, "first defined here");
        diag_help(s->context.diags, d, "rename one of the two");
        return NULL;
    }
    symbol *y = scope_add(names, kind, n->text, n->name_range);
    y->given = s->given;
    y->other = other ? known : NULL;
    y->node = kind == SYMBOL_FUNCTION ? n : ast_kid(n, 2);
    y->type = ast_kid(n, 1);
    y->generics = kind == SYMBOL_ALIAS && ast_is(y->type, AST_GENERICS) ? y->type : NULL;
    if (kind == SYMBOL_ALIAS && !y->generics && ast_is(y->node, AST_MAP) && !s->kernel)
        ARENA_PUSH(s->arena, s->aliases, s->alias_count, s->alias_capacity, y);
    return y;
}

/* The body of `mod x { .. }`, or what `mod x;` names; an empty block when it was diagnosed. */
static const ast *module_body(analysis *s, const ast *n)
{
    const ast *body = ast_kid(n, 1);
    if (!ast_is(body, AST_NONE) || !s->options || !s->options->load)
        return body;
    for (size_t i = 0; i < s->loaded_count; i++)
        if (s->loaded[i].node == n)
            return s->loaded[i].body;
    loaded_module m = {n, s->options->load(s->options->user, n)};
    if (!m.body)
        m.body = ast_new(s->arena, AST_BLOCK, n->range);
    ARENA_PUSH(s->arena, s->loaded, s->loaded_count, s->loaded_capacity, m);
    return m.body;
}

static void collect_module(analysis *s, scope *names, const ast *n)
{
    symbol *known = n->value == AST_MOD_OF_TYPE ? scope_find_here(names, MODULE_NAMES, n->text) : NULL;
    symbol *y = known ? known : collect_item(s, names, n, SYMBOL_MODULE); /* another block of the type */
    if (!y)
        return;
    if (!y->inner) {
        y->inner = scope_new(&s->context, names);
        if (n->value == AST_MOD_OF_TYPE)
            scope_set_type(y->inner);
        else
            scope_set_module(y->inner);
    }
    index_add_scope(&s->context, module_body(s, n)->range, y->inner);
    budget_spend_at(s->arena, n->name_range, 1);
    budget_enter(s->arena);
    const ast *body = module_body(s, n), *given = s->given;
    s->given = n->value == AST_MOD_OF_TYPE && ast_is(ast_kid(n, 3), AST_GENERIC_ARGS) ? ast_kid(n, 3) : NULL;
    collect_items(s, y->inner, body, 0);
    s->given = given;
    for (uint32_t i = 0; n->value == AST_MOD_OF_TYPE && ast_is(ast_kid(n, 2), AST_GENERICS) && i < body->kid_count; i++) {
        const ast *item = body->kids[i];
        bool is_type = ast_is(item, AST_TYPE_ALIAS);
        symbol *named =
            is_type || ast_is(item, AST_CONST) ? scope_find_here(y->inner, is_type ? TYPE_NAMES : VALUE_NAMES, item->text) : NULL;
        if (named)
            named->of_type = ast_kid(n, 2);
    }
    budget_leave(s->arena);
}

/* The name after `struct`, `enum` or `trait`, for which the words in front are all that is read. */
static void collect_own_type(analysis *s, scope *names, const ast *n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    const char *text = ast_kid(n, 1)->text;
    if (strcmp(n->text, "struct") != 0 && strcmp(n->text, "enum") != 0 && strcmp(n->text, "trait") != 0 && strcmp(n->text, "union") != 0)
        return;
    text = strstr(text, n->text);
    if (!text)
        return;
    text += strlen(n->text);
    text += strspn(text, " \t\r\n");
    const char *name = arena_printf(s->context.arena, "%.*s", (int)strspn(text, letters), text);
    if (name[0] != '\0' && strcmp(name, n->text) != 0) {
        scope_add(names, SYMBOL_OWN_TYPE, name, n->name_range);
        return;
    }
    diag *d = diag_add(s->context.diags, E_PARSE, n->name_range, "expected a name after `%s`", n->text);
    diag_help(s->context.diags, d, "host code is not compiled, but what it calls its types is no tensor");
    scope_add_lost(names, ""); /* any name may be meant */
}

/* A kernel among the functions of a type: nobody reads it. */
static void refuse_inner_kernel(analysis *s, const ast *n)
{
    const char *text = ast_kid(n, 1)->text;
    if (strcmp(n->text, "impl") != 0 && strcmp(n->text, "trait") != 0)
        return;
    for (const char *at = strchr(text, '#'); at; at = strchr(at + 1, '#')) {
        const char *word = at + 1 + strspn(at + 1, " \t\r\n");
        word += *word == '[';
        word += strspn(word, " \t\r\n");
        if (strncmp(word, "device", strlen("device")) != 0)
            continue;
        diag *d = diag_add(s->context.diags, E_UNSUPPORTED, n->name_range, "a kernel in `%s` is not supported", n->text);
        diag_help(s->context.diags, d, "write the function outside of the block; `mod name { .. }` keeps names apart");
        return;
    }
}

/* `Name = m![..];`: a type alias without its `type`. */
static bool is_wordless_alias(const ast *n)
{
    const ast *assign = ast_is(n, AST_EXPR_STMT) ? ast_kid(n, 0) : n;
    return ast_is(n, AST_EXPR_STMT) && ast_is(assign, AST_ASSIGN) && ast_is(ast_kid(assign, 0), AST_PATH) &&
           ast_kid(assign, 0)->kid_count == 1 && ast_is(ast_kid(assign, 1), AST_MAP);
}

/* `axis![..]`: a macro of the file that nobody defined, near to the one that declares axes. Others may be anything. */
static void refuse_misspelt_axes(analysis *s, scope *names, const ast *n)
{
    static const char *const known[] = {"axes", NULL};
    const ast *call = ast_is(n, AST_EXPR_STMT) ? ast_kid(n, 0) : n;
    if (!choice_near(call->text, known))
        return;
    diag *d = diag_add(s->context.diags, E_NAME, call->name_range, "there is no macro `%s!`", call->text);
    diag_help(s->context.diags, d, "did you mean `axes!`?");
    scope_add_lost(names, ""); /* what it was to declare */
}

void collect_items(analysis *s, scope *names, const ast *parent, uint32_t first)
{
    for (uint32_t i = first; i < parent->kid_count; i++) {
        const ast *n = parent->kids[i];
        if (ast_is(n, AST_AXES)) {
            scope_add_axes(names, n);
        } else if (ast_is(n, AST_CONST) && strcmp(n->text, "_") == 0) {
            pending_item c = {names, n};
            ARENA_PUSH(s->arena, s->unnamed, s->unnamed_count, s->unnamed_capacity, c);
        } else if (ast_is(n, AST_TYPE_ALIAS) || ast_is(n, AST_CONST)) {
            collect_item(s, names, n, ast_is(n, AST_CONST) ? SYMBOL_CONST : SYMBOL_ALIAS);
            if (!s->kernel && dataflow_is_item(n)) {
                pending_item d = {names, n};
                ARENA_PUSH(s->arena, s->dataflows, s->dataflow_count, s->dataflow_capacity, d);
            }
        } else if (ast_is(n, AST_STRUCT)) {
            scope_add(names, SYMBOL_OWN_TYPE, n->text, n->name_range)->node = n;
        } else if (ast_is(n, AST_FN)) {
            collect_item(s, names, n, SYMBOL_FUNCTION);
        } else if (ast_is(n, AST_MOD)) {
            collect_module(s, names, n);
        } else if (is_wordless_alias(n)) {
            const ast *name = ast_kid(ast_kid(n, 0), 0)->kids[0];
            diag *d = diag_add(s->context.diags, E_PARSE, n->range, "a mapping is not assigned to `%s`", name->text);
            diag_help(s->context.diags, d, "write `type` in front of it");
            scope_add_lost(names, name->text);
        } else if (ast_is(n, AST_MACRO) || (ast_is(n, AST_EXPR_STMT) && ast_is(ast_kid(n, 0), AST_MACRO))) {
            refuse_misspelt_axes(s, names, n);
        } else if (ast_is(n, AST_ERROR)) {
            scope_add_lost_names(names, n);
        } else if (ast_is(n, AST_ITEM_IGNORED)) {
            collect_own_type(s, names, n);
            refuse_inner_kernel(s, n);
        } else if (ast_is(n, AST_USE)) {
            pending_item u = {names, n};
            ARENA_PUSH(s->arena, s->uses, s->use_count, s->use_capacity, u);
        }
    }
}

/* Imports may go through imports of other modules: until nothing new comes. */
void resolve_uses(analysis *s)
{
    enum { ROUNDS = 16 };
    bool grew = true;
    for (int round = 0; round < ROUNDS && grew; round++) {
        grew = false;
        for (size_t i = 0; i < s->use_count; i++)
            grew = scope_use(s->uses[i].scope, s->uses[i].node) || grew;
    }
    for (size_t i = 0; i < s->use_count; i++)
        scope_check_use(s->uses[i].scope, s->uses[i].node);
    s->use_count = 0;
}

/* scope_context.compute: for the kernel at hand or for none. */
static value compute_constant(void *computer, scope *names, const ast *n)
{
    analysis *s = computer;
    kernel *at = s->kernel;
    size_t ops_before = at ? at->op_count : 0, steps = s->steps;
    bool may_return = s->may_return, may_leave = s->may_leave;
    if (!at) {
        s->kernel = ARENA_NEW(s->arena, kernel);
        s->kernel->name = "_";
        s->kernel->chips = 1;
    }
    s->may_return = s->may_leave = false;
    s->in_const++;
    value v = evaluate(s, names, n, NULL);
    s->in_const--;
    if (s->kernel->op_count != ops_before)
        v = refuse(s, E_CONST, n->range, "take the stages out of it", "a constant is computed without stages");
    s->steps = at ? s->steps : steps;
    s->kernel = at;
    s->may_return = may_return;
    s->may_leave = may_leave;
    return v;
}

void read_unnamed(analysis *s, size_t from)
{
    kernel nobody = {.name = "_", .chips = 1}, *at = s->kernel;
    s->kernel = at ? at : &nobody;
    for (size_t i = from; i < s->unnamed_count; i++) {
        const ast *n = s->unnamed[i].node;
        s->in_const++;
        value v = evaluate(s, s->unnamed[i].scope, ast_kid(n, 2), NULL);
        s->in_const--;
        if (v.kind != VALUE_ERROR)
            is_of_type(s, "_", ast_kid(n, 1), ast_kid(n, 2), &v);
    }
    s->unnamed_count = from;
    s->kernel = at;
}

/* ---- which functions are kernels ---- */

/* Text of the host, whose calls make no function a part of a kernel: statements outside of functions, `main` and its like, what is async.
 */
static bool is_host(const ast *fn)
{
    return !fn || fn->value & AST_FN_ASYNC || ast_kid(fn, 2)->kid_count == 0;
}

typedef struct called_names {
    const char **names;
    size_t count, capacity;
    arena *arena;
} called_names;

/* What a function of kernels calls is compiled there. `caller`: the innermost function around, or NULL. A node without kids calls nothing.
 */
static void collect_calls(called_names *c, const ast *n, const ast *caller)
{
    const ast *callee = ast_is(n, AST_CALL) && !is_host(caller) ? ast_last_segment(ast_kid(n, 0)) : NULL;
    if (ast_is(n, AST_METHOD) && !is_host(caller) && !stage_is_known(n->text)) /* of an `impl` */
        callee = n;
    if (callee && strcmp(callee->text, caller->text) != 0)
        ARENA_PUSH(c->arena, c->names, c->count, c->capacity, callee->text);
    for (uint32_t i = 0; i < n->kid_count; i++)
        if (n->kids[i]->kid_count)
            collect_calls(c, n->kids[i], ast_is(n, AST_FN) ? n : caller);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const sema_survey *sema_survey_of(const ast *file, unsigned dialects, arena *a)
{
    sema_survey *y = ARENA_NEW(a, sema_survey);
    called_names c = {.arena = a};
    collect_calls(&c, file, NULL);
    order_sort(c.names, c.count, sizeof *c.names, by_name);
    y->called = c.names;
    y->called_count = c.count;
    y->dialects = dialect_narrow(dialects ? dialects : ALL_DIALECTS, file, &y->mixed, a);
    return y;
}

/* Where none is mixed, a part's releases are those that have all that it says, so that of the file only what all parts have is left. Else
 * which words are the odd ones is decided word by word. */
const sema_survey *sema_survey_join(const sema_survey *const *parts, size_t count, arena *a)
{
    sema_survey *y = ARENA_NEW(a, sema_survey);
    y->dialects = ALL_DIALECTS;
    for (size_t i = 0; i < count; i++) {
        y->dialects &= parts[i]->dialects;
        y->called_count += parts[i]->called_count;
        if (parts[i]->mixed || !y->dialects)
            return NULL;
    }
    y->called = ARENA_ARRAY(a, const char *, y->called_count + 1);
    size_t next = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < parts[i]->called_count; k++)
            y->called[next++] = parts[i]->called[k];
    order_sort(y->called, y->called_count, sizeof *y->called, by_name);
    return y;
}

static bool is_kernel(analysis *s, scope *names, const ast *fn)
{
    if (s->only && !s->lists) {
        const char *path = arena_printf(s->context.arena, "%s%s", s->module_path ? s->module_path : "", fn->text);
        if (strcmp(s->only, path) != 0 && (strcmp(s->only, fn->text) != 0 || s->module->count > 0))
            return false;
    }
    if (ast_attribute(fn, "device"))
        return true;
    const char *name = fn->text;
    bool called = s->called_count && bsearch(&name, s->called, s->called_count, sizeof *s->called, by_name);
    return !called && is_tensor_function(names, fn);
}

/* For the message that says what there is instead of `only`. */
static void leave_out(analysis *s, const char *name)
{
    const char *path = s->module_path ? arena_printf(s->context.arena, "%s%s", s->module_path, name) : name;
    ARENA_PUSH(s->arena, s->module->left_out, s->module->left_out_count, s->module->left_out_capacity, path);
}

/* Functions after all items of their names are known; host functions and modules are only searched for kernels. */
static void analyse_functions(analysis *s, scope *outer, const ast *parent)
{
    for (uint32_t i = 0; i < parent->kid_count; i++) {
        const ast *n = parent->kids[i];
        if (ast_is(n, AST_FN) && is_kernel(s, outer, n)) {
            if (s->lists)
                leave_out(s, n->text);
            else
                analyse_kernel(s, outer, n);
        } else if (ast_is(n, AST_FN) && ast_is(ast_kid(n, 4), AST_BLOCK)) {
            scope *inner = scope_new(&s->context, outer);
            collect_items(s, inner, ast_kid(n, 4), 0);
            resolve_uses(s);
            analyse_functions(s, inner, ast_kid(n, 4));
        } else if (ast_is(n, AST_MOD)) {
            symbol *y = scope_find_here(outer, MODULE_NAMES, n->text);
            const char *path = s->module_path;
            if (!y || !y->inner)
                continue;
            budget_enter(s->arena);
            s->module_path = arena_printf(s->context.arena, "%s%s::", path ? path : "", n->text);
            analyse_functions(s, y->inner, module_body(s, n));
            s->module_path = path;
            budget_leave(s->arena);
        }
    }
}

/* Dataflow items, those of modules too; with `only`, that one. */
static void read_dataflows(analysis *s)
{
    for (size_t i = 0; i < s->dataflow_count; i++) {
        const ast *n = s->dataflows[i].node;
        if ((s->only && strcmp(s->only, n->text) != 0) || parse_was_broken(s->context.diags, n->range))
            continue;
        dataflow_model *m = dataflow_read(s->dataflows[i].scope, n);
        if (m)
            ARENA_PUSH(s->arena, s->module->dataflows, s->module->dataflow_count, s->module->dataflow_capacity, m);
    }
}

static const char *word_of(int release, const char *word)
{
    return dialect_word((dialect)release, word);
}

/* Who is called, and the file's release, with all modules that it loads. */
static void read_survey(analysis *s, const ast *file)
{
    const sema_survey *y = s->options->survey ? s->options->survey : sema_survey_of(file, 0, s->arena);
    called_names c = {.arena = s->arena};
    unsigned set = y->dialects;
    s->mixed = y->mixed;
    s->called = y->called;
    s->called_count = y->called_count;
    for (size_t i = 0; i < s->loaded_count; i++)
        collect_calls(&c, s->loaded[i].body, NULL);
    for (size_t i = 0; i < s->options->called_count; i++)
        ARENA_PUSH(s->arena, c.names, c.count, c.capacity, s->options->called[i]);
    if (c.count > 0) {
        for (size_t i = 0; i < y->called_count; i++)
            ARENA_PUSH(s->arena, c.names, c.count, c.capacity, y->called[i]);
        order_sort(c.names, c.count, sizeof *c.names, by_name);
        s->called = c.names;
        s->called_count = c.count;
    }
    for (size_t i = 0; i < s->loaded_count; i++)
        set = dialect_narrow(set, s->loaded[i].body, &s->mixed, s->arena);
    s->context.dialect = s->options->dialect ? *s->options->dialect : dialect_newest(set);
    s->context.one_dialect = s->options->dialect != NULL;
    s->context.diags->words = (diag_words){word_of, (int)s->context.dialect};
}

module *sema_module(const ast *file, mapping_context *mappings, arena *a, diag_list *diags, const sema_options *options)
{
    static const sema_options none;
    analysis *s = ARENA_NEW(a, analysis);
    s->arena = a;
    s->context = (scope_context){.mappings = mappings,
                                 .arena = a,
                                 .diags = diags,
                                 .index = options ? options->index : NULL,
                                 .suggestions_left = SUGGESTIONS_MAX,
                                 .compute = compute_constant,
                                 .computer = s};
    s->module = ARENA_NEW(a, module);
    s->options = options ? options : &none;
    s->only = s->options->only;
    s->kernel_names = scope_new(&s->context, NULL);
    scope *root = scope_new(&s->context, NULL);
    scope_set_module(root);
    index_add_scope(&s->context, file->range, root);
    collect_items(s, root, file, 0);
    resolve_uses(s);
    read_survey(s, file);
    read_unnamed(s, 0);
    analyse_functions(s, root, file);
    read_unnamed(s, 0);
    read_dataflows(s);
    bool infer = false;
    for (size_t i = 0; i < s->alias_count && !s->only; i++)
        scope_alias(s->aliases[i], &infer);
    if (s->only && s->module->count + s->module->dataflow_count == 0 && diags->error_count == 0) {
        s->lists = true;
        analyse_functions(s, root, file);
        for (size_t i = 0; i < s->dataflow_count; i++)
            leave_out(s, s->dataflows[i].node->text);
    }
    return s->module;
}
