/* Functions of tiles that a program brings along: closures, and #[stream] functions by their names.
 *
 * The one idea: the body is evaluated once, as the program is, with its parameters standing for tiles; an operation on a tile appends an
 * instruction and stands for its result. So names, constants, loops and calls are those of stream programs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/step/evaluate.h"
#include "ir/step/formula.h"

typedef struct step_formula_builder {
    step_instruction *items;
    uint32_t count;
    size_t capacity;
    int64_t id; /* of the reading: a tile of another function is none of this one */
} step_formula_builder;

step_term step_closure(step_evaluation *e, const ast *n)
{
    (void)e;
    return (step_term){.kind = TERM_FUNCTION, .fn = STEP_FN_FORMULA, .body = n};
}

step_term step_float(step_evaluation *e, const ast *n)
{
    (void)e;
    return (step_term){.kind = TERM_FLOAT, .real = strtod(n->text, NULL)}; /* a suffix ends it */
}

/* ---- instructions ---- */

static step_term append(step_evaluation *e, src_range range, step_instruction one)
{
    step_formula_builder *b = e->formula;
    size_t count = b->count;
    if (b->count == STEP_FORMULA_MAX)
        return step_refuse(e, range, "the function has more than %d operations", STEP_FORMULA_MAX);
    ARENA_PUSH(e->arena, b->items, count, b->capacity, one);
    b->count = (uint32_t)count;
    return (step_term){.kind = TERM_TILE, .number = b->count - 1, .end = b->id};
}

static bool is_number(const step_term *t)
{
    return t->kind == TERM_INT || t->kind == TERM_FLOAT;
}

static double number_of(const step_term *t)
{
    return t->kind == TERM_INT ? (double)t->number : t->real;
}

/* The instruction that a term stands for; a number becomes one. False: diagnosed. */
static bool instruction_of(step_evaluation *e, src_range range, const step_term *t, uint32_t *out)
{
    if (is_number(t)) {
        step_term n = append(e, range, (step_instruction){.op = FORMULA_NUMBER, .number = (float)number_of(t)});
        *out = (uint32_t)n.number;
        return n.kind == TERM_TILE;
    }
    if (t->kind == TERM_TILE && t->end == e->formula->id) {
        *out = (uint32_t)t->number;
        return true;
    }
    const char *apart =
        t->kind == TERM_LIST ? "take the tiles of a pair or a state apart: `let (a, b) = both;`, or `(a, b)` as a parameter" : NULL;
    if (t->kind != TERM_ERROR)
        step_refuse_with(e, range, apart, "a function of tiles takes tiles and numbers, not %s",
                         t->kind == TERM_TILE ? "a tile of another function" : step_term_text(t));
    return false;
}

step_term step_formula_apply(step_evaluation *e, src_range range, const char *name, const step_term *operands, size_t count)
{
    const step_formula_row *row = step_formula_row_by_name(name);
    if (!row || !e->formula)
        return step_refuse_with(e, range, "docs/step.md has a table of what functions of tiles are made of", "a tile has no `%s`", name);
    if (count != row->operands)
        return step_refuse(e, range, "`%s` takes %u tile%s, not %zu", name, row->operands, row->operands == 1 ? "" : "s", count);
    step_instruction one = {.op = row->op};
    for (size_t i = 0; i < count; i++)
        if (!instruction_of(e, range, &operands[i], &one.operands[i]))
            return step_term_error;
    return append(e, range, one);
}

bool step_is_of_tiles(const step_term *a, const step_term *b)
{
    return a->kind == TERM_TILE || b->kind == TERM_TILE;
}

/* Of numbers, of which one is a float. */
static step_term of_numbers(step_evaluation *e, const ast *n, const step_term *a, const step_term *b)
{
    double x = number_of(a), y = number_of(b);
    switch (is_number(a) && is_number(b) && !n->text[1] ? n->text[0] : 0) {
    case '+': return (step_term){.kind = TERM_FLOAT, .real = x + y};
    case '-': return (step_term){.kind = TERM_FLOAT, .real = x - y};
    case '*': return (step_term){.kind = TERM_FLOAT, .real = x * y};
    case '/': return (step_term){.kind = TERM_FLOAT, .real = x / y};
    default: return step_refuse(e, n->name_range, "`%s` has no value for %s and %s", n->text, step_term_text(a), step_term_text(b));
    }
}

step_term step_formula_not(step_evaluation *e, src_range range, const step_term *a)
{
    step_term is_zero[] = {*a, {.kind = TERM_INT}};
    return a->kind == TERM_ERROR ? *a : step_formula_apply(e, range, "eq", is_zero, 2);
}

step_term step_formula_binary(step_evaluation *e, const ast *n, const step_term *a, const step_term *b)
{
    static const struct {
        const char *text, *name;
        bool swapped;
    } rows[] = {{"+", "add", false}, {"-", "sub", false}, {"*", "mul", false}, {"/", "div", false}, {"<", "lt", false},
                {">", "lt", true},   {"<=", "le", false}, {">=", "le", true},  {"==", "eq", false}};
    if (!step_is_of_tiles(a, b))
        return of_numbers(e, n, a, b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(n->text, rows[i].text) == 0) {
            step_term both[] = {rows[i].swapped ? *b : *a, rows[i].swapped ? *a : *b};
            return step_formula_apply(e, n->range, rows[i].name, both, 2);
        }
    if (strcmp(n->text, "!=") == 0) {
        step_term both[] = {*a, *b}, equal = step_formula_apply(e, n->range, "eq", both, 2);
        return step_formula_not(e, n->range, &equal);
    }
    bool joins = strcmp(n->text, "&&") == 0 || strcmp(n->text, "||") == 0;
    return step_refuse_with(e, n->name_range,
                            joins ? "comparisons are 1 or 0: `a * b` where both hold, `max(a, b)` where one does"
                                  : "docs/step.md has a table of what functions of tiles are made of",
                            "`%s` is no operation on tiles", n->text);
}

step_term step_initial_tile(step_evaluation *e, const ast *n, const step_term *items, size_t count)
{
    bool zero = count == 2;
    if ((count != 2 && count != 3) || items[0].kind != TERM_INT || items[1].kind != TERM_INT || (!zero && !is_number(&items[2])))
        return step_refuse(e, n->range, "a tile to begin with is `full(rows, columns, number)` or `zeros(rows, columns)`");
    if (items[0].number < 1 || items[0].number > STEP_TILE_MAX || items[1].number < 1 || items[1].number > STEP_TILE_MAX)
        return step_refuse(e, n->range, "a tile of %" PRId64 " x %" PRId64 "; each is 1 to %d", items[0].number, items[1].number,
                           STEP_TILE_MAX);
    return (step_term){.kind = TERM_INITIAL, .number = items[0].number, .end = items[1].number, .real = zero ? 0 : number_of(&items[2])};
}

/* ---- parameters ---- */

typedef struct parameters {
    step_evaluation *e;
    const step_term *items;
    size_t count, at;
} parameters;

static const step_term *next_parameter(parameters *p)
{
    return p->at < p->count ? &p->items[p->at++] : (p->at++, &step_term_error);
}

/* Names of a closure, `|a, (b, c), _|`, each with its term, a tuple with a list's parts; types are passed over. How many there are; bound
 * only where `binds`. */
static size_t read_parameters(step_evaluation *e, const ast *raw, const step_term *items, size_t count, bool binds)
{
    parameters outer = {e, items, count, 0}, inner = {e, NULL, 0, 0}, *p = &outer;
    bool type = false;
    int angles = 0;
    for (const char *at = raw->text; *at;) {
        size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        angles += *at == '<' ? 1 : *at == '>' ? -1 : 0;
        if (*at == ':')
            type = true;
        if (*at == ',' && angles == 0)
            type = false;
        if (*at == '(' && !type) {
            const step_term *list = next_parameter(&outer);
            inner = (parameters){e, list->items, list->kind == TERM_LIST ? list->count : 0, 0};
            p = &inner;
        }
        if (*at == ')' && !type) {
            if (binds && inner.at != inner.count)
                step_refuse(e, raw->range, "%zu names for %zu tiles", inner.at, inner.count);
            p = &outer;
        }
        if (word == 0 || type || (word == 3 && strncmp(at, "mut", 3) == 0)) {
            at += word ? word : 1;
            continue;
        }
        const step_term *t = next_parameter(p);
        if (binds)
            step_bind(e, arena_strndup(e->arena, at, word), raw->range, *t, true);
        at += word;
    }
    return outer.at;
}

/* ---- reading a function ---- */

static step_term leaf(step_evaluation *e, src_range range, uint32_t number)
{
    return append(e, range, (step_instruction){.op = FORMULA_VALUE, .operands = {number}});
}

/* Tiles of a stream or of the state: one, or a list of them. */
static step_term leaves(step_evaluation *e, src_range range, uint32_t first, uint32_t count)
{
    if (count == 1)
        return leaf(e, range, first);
    step_term list = {.kind = TERM_LIST, .count = count, .items = ARENA_ARRAY(e->arena, step_term, count + 1)};
    for (uint32_t i = 0; i < count; i++)
        list.items[i] = leaf(e, range, first + i);
    return list;
}

/* The tiles that a fold begins with. False: diagnosed. */
static bool read_states(step_evaluation *e, src_range range, const step_term *initial, step_formula *f)
{
    const step_term *items = initial->kind == TERM_LIST ? initial->items : initial;
    size_t count = initial->kind == TERM_LIST ? initial->count : 1;
    step_initial *states = ARENA_ARRAY(e->arena, step_initial, count + 1);
    if (count < 1 || count > STEP_LEAVES_MAX) {
        step_refuse(e, range, "a state of %zu tiles; it has 1 to %d", count, STEP_LEAVES_MAX);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (items[i].kind != TERM_INITIAL) {
            if (items[i].kind != TERM_ERROR)
                step_refuse(e, range, "a fold begins with `full(rows, columns, number)`, or a tuple of such tiles, not with %s",
                            step_term_text(&items[i]));
            return false;
        }
        states[i] = (step_initial){items[i].number, items[i].end, (float)items[i].real};
    }
    f->states = states;
    f->state_count = (uint32_t)count;
    return true;
}

/* The function's parameters as terms: the state, and a term for each stream; where there are as many names as tiles in all of these, a
 * tile for each name. */
static size_t make_arguments(step_evaluation *e, src_range range, const step_formula *f, const step_stream *const *inputs,
                             uint32_t input_count, size_t names, step_term *out)
{
    const step_data *tiles[STEP_LEAVES_MAX];
    size_t count = 0;
    uint32_t at = f->state_count, of_stream;
    bool spread = names == f->state_count + f->values && names != (f->state_count > 0) + input_count;
    for (uint32_t i = 0; i < names && spread; i++)
        out[count++] = leaf(e, range, i);
    if (f->state_count > 0 && !spread)
        out[count++] = leaves(e, range, 0, f->state_count);
    for (uint32_t i = 0; i < input_count && !spread; i++, at += of_stream) {
        step_formula_leaves(&inputs[i], 1, tiles, &of_stream);
        out[count++] = leaves(e, range, at, of_stream);
    }
    return count;
}

/* What the body's value is made of. False: diagnosed. */
static bool read_results(step_evaluation *e, src_range range, const step_term *value, step_formula *f)
{
    const step_term *items = value->kind == TERM_LIST ? value->items : value;
    size_t count = value->kind == TERM_LIST ? value->count : 1;
    if (value->kind == TERM_ERROR)
        return false;
    if (count < 1 || count > STEP_LEAVES_MAX || (f->state_count > 0 && count != f->state_count)) {
        step_refuse(e, range, "the function makes %zu tiles, where %" PRIu32 " are its state", count, f->state_count);
        return false;
    }
    uint32_t *results = ARENA_ARRAY(e->arena, uint32_t, count);
    for (size_t i = 0; i < count; i++)
        if (!instruction_of(e, range, &items[i], &results[i]))
            return false;
    f->results = results;
    f->result_count = (uint32_t)count;
    return true;
}

/* " (a, b)" for two tiles, with the next names. */
static void put_names(strbuf *s, uint32_t count, unsigned *next)
{
    strbuf_puts(s, s->bytes ? ", " : "");
    strbuf_puts(s, count > 1 ? "(" : "");
    for (uint32_t i = 0; i < count; i++, ++*next)
        strbuf_printf(s, "%s%c%.0u", i > 0 ? ", " : "", (int)('a' + *next % 26), *next / 26);
    strbuf_puts(s, count > 1 ? ")" : "");
}

/* The parameters that it may have, as a help. */
static const char *parameters_text(step_evaluation *e, const step_formula *f, const step_stream *const *inputs, uint32_t input_count)
{
    const step_data *tiles[STEP_LEAVES_MAX];
    uint32_t of_stream, all = f->state_count + f->values, grouped = (f->state_count > 0) + input_count;
    unsigned next = 0;
    strbuf s;
    strbuf_init(&s, e->arena);
    if (f->state_count > 0)
        put_names(&s, f->state_count, &next);
    for (uint32_t i = 0; i < input_count; i++) {
        step_formula_leaves(&inputs[i], 1, tiles, &of_stream);
        put_names(&s, of_stream, &next);
    }
    const char *state = f->state_count > 0 ? ", the state first" : "", *alone = "";
    if (all != grouped)
        alone = arena_printf(e->arena, ", or each of the %" PRIu32 " tiles alone", all);
    return arena_printf(e->arena, "it is given `|%s|`%s%s", s.text, state, alone);
}

/* The value of the body, and its parameters' number checked. */
static step_term read_body(step_evaluation *e, src_range range, const step_term *function, step_formula *f,
                           const step_stream *const *inputs, uint32_t input_count)
{
    const ast *body = function->body;
    bool operation = !body, closure = body && !ast_is(body, AST_FN);
    size_t names = operation ? function->operation->operands
                   : closure ? read_parameters(e, body->kids[0], NULL, 0, false)
                             : body->kids[2]->kid_count;
    step_term arguments[2 * STEP_LEAVES_MAX];
    size_t count = make_arguments(e, range, f, inputs, input_count, names, arguments);
    if (count != names)
        return step_refuse_with(e, range, parameters_text(e, f, inputs, input_count), "%s has %zu parameter%s for %zu",
                                operation ? arena_printf(e->arena, "`%s`", function->operation->name) : "the function", names,
                                names == 1 ? "" : "s", count);
    if (operation)
        return step_formula_apply(e, range, function->operation->name, arguments, count);
    if (!closure)
        return step_call_program(e, range, body, arguments, count);
    size_t mark = step_enter(e);
    read_parameters(e, body->kids[0], arguments, count, true);
    step_term value = step_evaluate(e, body->kids[1]);
    step_leave(e, mark);
    return value;
}

const step_formula *step_read_formula(step_evaluation *e, src_range range, const step_term *function, const step_stream *const *inputs,
                                      uint32_t input_count, const step_term *initial)
{
    step_formula *f = ARENA_NEW(e->arena, step_formula);
    step_formula_builder builder = {.id = (int64_t)++e->steps}, *outer = e->formula;
    const step_data *tiles[STEP_LEAVES_MAX];
    const char *wanted = e->wanted_name;
    *f = (step_formula){0};
    if (outer) {
        step_refuse(e, range, "a function of tiles has no streams");
        return NULL;
    }
    if (!step_formula_leaves(inputs, input_count, tiles, &f->values)) {
        step_refuse(e, range, "a function of your own takes tiles, bools, and pairs of them, at most %d together", STEP_LEAVES_MAX);
        return NULL;
    }
    if (initial && !read_states(e, range, initial, f))
        return NULL;
    e->formula = &builder;
    e->wanted_name = NULL;
    step_term value = read_body(e, range, function, f, inputs, input_count);
    bool good = !e->graph->bad && read_results(e, range, &value, f);
    e->formula = NULL;
    e->wanted_name = wanted;
    f->items = builder.items;
    f->count = builder.count;
    return good ? f : NULL;
}
