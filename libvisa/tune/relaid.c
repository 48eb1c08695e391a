#include "libvisa/tune/relaid.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "frontend/parse.h"
#include "libvisa/tune/lay.h"
#include "libvisa/tune/lay_write.h"
#include "libvisa/tune/machine.h"
#include "support/integer.h"

#define INNER "inner_" TUNE_KERNEL

/* ---- the known question ---- */

static const tune_node *product_of(const tune_node *n)
{
    while (n && n->kind != TUNE_NODE_PRODUCT)
        n = tune_count_products(n->left) > 0 ? n->left : n->right;
    return n;
}

static size_t position_of(const tune_tensor *t, size_t one)
{
    size_t at = 0;
    while (at < t->count && t->axes[at] != one)
        at++;
    return at;
}

/* Columns of the result, and channels that have a filter each, stand innermost. */
static bool stands_inside(const tune_expression *e, const tune_tensor *filter, size_t one)
{
    for (size_t i = 0; i < e->window_count; i++)
        if (e->windows[i].kept == one)
            return false;
    return position_of(filter, one) < filter->count;
}

static void arrange_result(tune_expression *e, const tune_tensor *filter)
{
    tune_tensor *out = &e->tensors[0], before = *out;
    out->count = 0;
    for (int inside = 0; inside <= 1; inside++)
        for (size_t i = 0; i < before.count; i++)
            if (stands_inside(e, filter, before.axes[i]) == inside)
                out->axes[out->count++] = before.axes[i];
}

/* As the result has them. */
static void arrange_extra(const tune_tensor *out, tune_tensor *x)
{
    for (size_t i = 1; i < x->count; i++)
        for (size_t k = i; k > 0 && position_of(out, x->axes[k - 1]) > position_of(out, x->axes[k]); k--) {
            size_t axis_there = x->axes[k];
            x->axes[k] = x->axes[k - 1];
            x->axes[k - 1] = axis_there;
        }
}

bool relaid_read(const tune_expression *e, const visa_tune_options *o, arena *a, tune_question *out)
{
    const tune_node *product = product_of(e->root);
    if (e->window_count == 0 || o->chips > 1 || !product || tune_count_products(e->root) != 1 || product->left->kind != TUNE_NODE_TENSOR ||
        product->right->kind != TUNE_NODE_TENSOR)
        return false;
    size_t image = e->windows[0].tensor, filter = product->left->tensor == image ? product->right->tensor : product->left->tensor;
    tune_expression *known = ARENA_NEW(a, tune_expression);
    diag_list refusals;
    diag_list_init(&refusals, a);
    *known = *e;
    known->tensors[image].is_free = known->tensors[filter].is_free = true;
    if (!e->tensors[0].is_free)
        arrange_result(known, &e->tensors[filter]);
    for (size_t i = 1; i < e->tensor_count; i++)
        if (i != image && i != filter)
            arrange_extra(&known->tensors[0], &known->tensors[i]);
    if (!tune_question_read(known, o, &refusals, out))
        return false;
    out->tensors[out->stream].is_free = e->tensors[image].is_free;
    out->tensors[out->weights].is_free = e->tensors[filter].is_free;
    return true;
}

/* ---- one tensor ---- */

/* A part of a mapping: "C # 8", "$(Y:1, R:1)". */
typedef struct part {
    const char *name; /* an axis; of a window the image's own */
    int64_t size, padded;
    const char *axes[2]; /* of the question: one, or the kept and the summed one; NULL: none */
} part;

typedef struct relaid {
    const char *name, *function; /* of the port, or the result */
    const char *type;
    const char *given, *known; /* mappings, as the question has it and as the kernel in the middle does */
    lay_order order, apart;    /* with axes that are joined, and without */
    const char *dm_type;       /* of a result that comes from DM; NULL: from HBM */
    lay_plan plan;
    tune_answer answer;
    bool lies_otherwise;
} relaid;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The word that begins at or after `at`; it goes past it. */
static const char *take_word(const char **at, arena *a)
{
    while (**at && !is_word(**at))
        ++*at;
    const char *from = *at;
    while (is_word(**at))
        ++*at;
    return arena_printf(a, "%.*s", (int)(*at - from), from);
}

/* The image's places of that window, or its own axis. */
static bool take_window(const tune_question *q, const char *word, part *out)
{
    for (size_t i = 0; i < q->window_count; i++) {
        const tune_window *w = &q->windows[i];
        const char *kept = q->axes[w->kept].name, *summed = q->axes[w->summed].name;
        bool is_own = w->own.name && strcmp(w->own.name, word) == 0, is_place = kept && summed && strcmp(kept, word) == 0;
        if (!is_own && !is_place)
            continue;
        *out = (part){w->own.name, w->own.size, w->own.size, {kept, summed}};
        return w->own.name != NULL;
    }
    return false;
}

/* "C # 8", "$(X:1, S:1)", of which the kernel in the middle has one after the other. */
static bool read_part(const tune_question *q, const char *text, bool is_image, arena *a, part *out)
{
    const char *at = text, *word = take_word(&at, a), *padding = strchr(text, '#');
    bool is_window = strchr(text, '$') != NULL, known = is_image && take_window(q, word, out);
    for (size_t i = 0; i < q->axis_count && !known && !is_window; i++) {
        const tune_axis *one = &q->axes[i];
        if (strcmp(one->name, word) != 0)
            continue;
        *out = (part){one->name, one->size, one->size, {one->name, NULL}};
        known = true;
    }
    if (known && padding) {
        padding++;
        out->padded = 0;
        for (const char *digits = take_word(&padding, a); isdigit((unsigned char)*digits); digits++)
            out->padded = out->padded * 10 + (*digits - '0');
    }
    return known && out->padded >= out->size;
}

/* Of "m![A, $(B:1, C:1)]"; the count of parts, or 0. */
static size_t read_parts(const tune_question *q, const char *elements, bool is_image, arena *a, part *parts)
{
    size_t count = 0, length = strlen(elements);
    int depth = 0;
    const char *from = elements + strlen("m![");
    for (const char *at = from; at < elements + length; at++) {
        bool ends = depth == 0 && (*at == ',' || at + 1 == elements + length);
        depth += *at == '(' || *at == '[' ? 1 : *at == ')' || *at == ']' ? -1 : 0;
        if (!ends)
            continue;
        if (count == TUNE_AXES_MAX || !read_part(q, arena_printf(a, "%.*s", (int)(at - from), from), is_image, a, &parts[count++]))
            return 0;
        from = at + 1;
    }
    return count;
}

static bool is_of(const part *p, const char *name)
{
    return (p->axes[0] && strcmp(p->axes[0], name) == 0) || (p->axes[1] && strcmp(p->axes[1], name) == 0);
}

/* How a tensor lies in the question, and how in the kernel. False: that is not known. */
static bool read_tensor(const tune_expression *e, const tune_question *q, size_t number, const char *elements, arena *a, relaid *x)
{
    part parts[TUNE_AXES_MAX];
    const tune_tensor *asked = &e->tensors[number];
    size_t count = read_parts(q, elements, number > 0 && number == e->windows[0].tensor, a, parts), at[TUNE_AXES_MAX], sources = 0;
    unsigned seen = 0;
    const char *given = NULL;
    for (size_t i = 0; i < asked->count; i++) {
        const tune_axis *one = &e->axes[asked->axes[i]];
        size_t place = 0;
        while (place < count && !is_of(&parts[place], one->name))
            place++;
        if (place == count && one->size > 1)
            return false;
        if (place == count || seen >> place & 1)
            continue;
        seen |= 1U << place;
        at[sources++] = place;
        given = given ? arena_printf(a, "%s, %s", given, parts[place].name) : parts[place].name;
    }
    if (sources != count || count == 0)
        return false;
    bool is_result = number == 0;
    x->given = arena_printf(a, "m![%s]", given);
    x->known = elements;
    x->order.count = count;
    size_t last = 0;
    for (size_t i = 0; i < count; i++) {
        x->lies_otherwise = x->lies_otherwise || (parts[at[i]].size > 1 && at[i] < last);
        last = parts[at[i]].size > 1 ? at[i] : last;
    }
    for (size_t i = 0; i < count; i++) {
        const part *p = &parts[is_result ? at[i] : i];
        x->order.axes[i] = (lay_axis){.name = p->name, .parts = p->name, .size = p->size, .padded = p->padded};
        x->order.axes[i].apart = !is_result && tune_has_border(q) && p->axes[1] != NULL; /* it has another name next */
        if (p->padded > p->size)
            x->order.axes[i].wide = tune_unused_name(e->axes, e->axis_count, arena_printf(a, "%s_WIDE", p->name), a);
        if (is_result)
            x->order.source[at[i]] = i;
        else
            x->order.source[i] = at[i];
    }
    return true;
}

/* ---- the kernel around the known one ---- */

typedef struct weaver {
    visa_compilation *c;
    const tune_expression *e;
    const tune_question *q;
    arena *a;
    const ast *tree, *function;
    relaid tensors[TUNE_TENSORS_MAX]; /* parameters in their order, then the result */
    size_t parameters;                /* without the result */
    bool is_written;                  /* the result is a parameter of the known kernel */
    bool joins;                       /* axes that lie side by side */
    strbuf axes;                      /* that it has not */
} weaver;

static size_t tensor_named(const tune_expression *e, const char *name)
{
    for (size_t i = 0; i < e->tensor_count; i++)
        if (strcmp(e->tensors[i].port, name) == 0)
            return i;
    return e->tensor_count;
}

static void add_axis(weaver *w, const char *name, int64_t size)
{
    const char *one = arena_printf(w->a, "%s = %" PRId64 ", ", name, size);
    for (uint32_t i = 0; i < w->tree->kid_count; i++)
        for (uint32_t k = 1; ast_is(w->tree->kids[i], AST_AXES) && k < w->tree->kids[i]->kid_count; k++)
            if (strcmp(w->tree->kids[i]->kids[k]->text, name) == 0)
                return;
    if (!strstr(arena_printf(w->a, ", %s", w->axes.text), arena_printf(w->a, ", %s", one)))
        strbuf_puts(&w->axes, one);
}

/* A parameter or the result of the known kernel. */
static bool read_one(weaver *w, const visa_tune_options *o, const char *name, const ast *type, relaid *x)
{
    size_t number = tensor_named(w->e, name);
    const ast *of = tune_tensor_arguments(type);
    if (number == w->e->tensor_count || !of || of->kid_count != 3)
        return false;
    *x = (relaid){.name = name, .function = arena_printf(w->a, "lay_%s_" TUNE_KERNEL, name)};
    x->type = ast_last_segment(ast_kid(of, 0))->text;
    x->known = x->given = ast_text(of->kids[2], w->a);
    if (w->e->tensors[number].is_free || w->e->tensors[number].count < 2)
        return true;
    if (!dtype_by_name(x->type, &x->order.from) || !read_tensor(w->e, w->q, number, x->known, w->a, x))
        return false;
    if (!x->lies_otherwise) {
        x->given = x->known;
        return true;
    }
    for (size_t i = 0; i < x->order.count; i++)
        add_axis(w, x->order.axes[i].name, x->order.axes[i].size);
    x->order.into = x->order.from;
    x->order.most_slices = o->slices;
    x->apart = x->order;
    return w->joins ? lay_order_join(&x->order, w->a) : lay_order_trim(&x->order);
}

static bool read_known(weaver *w, const visa_tune_options *o)
{
    const ast *parameters = ast_kid(w->function, 2), *result = ast_kid(w->function, 3);
    const char *out = w->e->tensors[0].port;
    for (uint32_t i = 1; i < parameters->kid_count; i++) {
        const char *name = ast_kid(parameters->kids[i], 1)->text;
        const ast *type = ast_kid(parameters->kids[i], 2);
        bool is_out = strcmp(name, out) == 0;
        w->is_written = w->is_written || is_out;
        if (!is_out && !read_one(w, o, name, type, &w->tensors[w->parameters++]))
            return false;
        if (is_out)
            result = type;
    }
    return read_one(w, o, out, result, &w->tensors[w->parameters]);
}

static bool parse_known(weaver *w, const char *text, diag_list *diags)
{
    int file = source_map_add(w->c->sources, "known", text, strlen(text));
    w->tree = file < 0 ? NULL : parse_file(w->c->sources, file, w->a, diags);
    w->function = NULL;
    w->parameters = 0;
    w->is_written = false;
    strbuf_init(&w->axes, w->a);
    for (uint32_t i = 0; w->tree && i < w->tree->kid_count; i++)
        w->function = ast_is(w->tree->kids[i], AST_FN) ? w->tree->kids[i] : w->function;
    return w->function;
}

/* Of a plan that has been chosen. */
static void add_axes(weaver *w, relaid *x)
{
    for (size_t k = 0; k < x->apart.count; k++)
        add_axis(w, x->apart.axes[k].name, x->apart.axes[k].size);
    for (size_t k = 0; k < x->order.count; k++) {
        lay_axis *one = &x->order.axes[k];
        add_axis(w, one->name, one->size);
        if (x->plan.packs && strcmp(one->name, one->parts) != 0) {
            one->after = arena_printf(w->a, "%s_PACKED", one->name);
            add_axis(w, one->after, one->size);
        }
        if (one->wide)
            add_axis(w, one->wide, one->padded);
    }
    if (x->plan.packs)
        add_axis(w, lay_flat(&x->order, w->a), lay_flat_size(&x->order));
}

static bool find_orders(weaver *w, const target *t, const visa_tune_options *o, diag_list *diags)
{
    visa_tune_options share = *o;
    share.work = o->work / (w->parameters + 1);
    for (size_t i = 0; i <= w->parameters; i++) {
        relaid *x = &w->tensors[i];
        if (x->lies_otherwise && !lay_search(t, &share, &x->order, w->a, &x->answer, &x->plan))
            return tune_refuse_all(diags, tune_whole_range(w->e->file, w->e->text), x->answer.tried, x->answer.first_refusal);
        if (x->lies_otherwise)
            add_axes(w, x);
    }
    return true;
}

/* The known kernel's text with other names, and no kernel itself. */
static void put_known(const weaver *w, const char *text, strbuf *out)
{
    const char *axes = strstr(text, "axes!["), *device = strstr(text, "#[device("), *name = strstr(text, "fn " TUNE_KERNEL "(");
    strbuf_puts(out, "axes![");
    strbuf_puts(out, w->axes.text);
    axes += strlen("axes![");
    strbuf_append(out, axes, (size_t)(device - axes));
    strbuf_puts(out, "fn " INNER);
    strbuf_puts(out, name + strlen("fn " TUNE_KERNEL));
}

static void put_let(tune_page *p, const relaid *x, const char *name, const char *elements, const char *from)
{
    tune_line(p, "let %s: HbmTensor<%s, Chip, %s> = %s;", name, x->type, elements, from);
}

static void put_call(const weaver *w, tune_page *p, const relaid *x, bool is_result)
{
    const char *source = arena_printf(w->a, "m![%s]", lay_source(&x->order, w->a)),
               *made = arena_printf(w->a, "m![%s]", lay_target(&x->order, w->a)),
               *again = arena_printf(w->a, "unsafe { %s.reshape() }", x->name);
    tune_line(p, "// %s lies as %s, and %s as %s", x->name, x->given, is_result ? "is computed" : "is taken", x->known);
    if (!x->dm_type)
        put_let(p, x, x->name, source, again);
    put_let(p, x, x->name, made, arena_printf(w->a, "%s(device, &%s)", x->function, x->name));
    put_let(p, x, x->name, is_result ? x->given : x->known, again);
}

static void put_kernel(const weaver *w, const target *t, strbuf *out)
{
    tune_text text = {.text = *out};
    tune_page p = {.out = &text, .arena = w->a};
    const relaid *result = &w->tensors[w->parameters];
    tune_line(&p, "%s", tune_device(t, 1, w->a));
    tune_line(&p, "fn " TUNE_KERNEL "(");
    p.depth++;
    tune_line(&p, "device: &mut Device,");
    for (size_t i = 0; i < w->parameters; i++)
        tune_line(&p, "%s: &HbmTensor<%s, Chip, %s>,", w->tensors[i].name, w->tensors[i].type, w->tensors[i].given);
    p.depth--;
    tune_line(&p, ") -> HbmTensor<%s, Chip, %s> {", result->type, result->given);
    p.depth++;
    const char *arguments = "device";
    for (size_t i = 0; i < w->parameters; i++) {
        if (w->tensors[i].lies_otherwise)
            put_call(w, &p, &w->tensors[i], false);
        arguments = arena_printf(w->a, "%s, %s%s", arguments, w->tensors[i].lies_otherwise ? "&" : "", w->tensors[i].name);
    }
    if (w->is_written) {
        put_let(&p, result, arena_printf(w->a, "mut %s", result->name), result->known, "HbmTensor::new()");
        tune_line(&p, INNER "(%s, &mut %s);", arguments, result->name);
    } else
        tune_line(&p, "let %s: %s = " INNER "(%s);", result->name,
                  result->dm_type ? result->dm_type : arena_printf(w->a, "HbmTensor<%s, Chip, %s>", result->type, result->known),
                  arguments);
    if (result->lies_otherwise)
        put_call(w, &p, result, true);
    tune_line(&p, "%s", result->name);
    p.depth--;
    tune_line(&p, "}");
    *out = text.text;
}

/* Lines of the known kernel's head that say what a slice has. */
static const char *how_of(const char *text, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    while (strncmp(text, "//", 2) == 0) {
        size_t length = strcspn(text, "\n") + 1;
        if (strncmp(text, "//   ", 5) == 0)
            strbuf_append(&out, text, length);
        text += length;
    }
    return out.text;
}

/* What the known kernel leaves in DM, and would write to HBM at its end. */
typedef struct ending {
    const char *text; /* of a kernel that has it as its value */
    const char *type; /* NULL: results leave in parts */
} ending;

/* The line in which a name is given to a tensor in DM, before `end`; NULL: there is none. */
static const char *line_of_let(const char *text, const char *end, const char *name, arena *a)
{
    static const char *const lets[] = {"    let ", "    let mut "};
    const char *line = NULL;
    for (size_t i = 0; i < sizeof lets / sizeof *lets; i++) {
        const char *let = arena_printf(a, "\n%s%s: DmTensor<", lets[i], name);
        for (const char *at = strstr(text, let); at && at < end; at = strstr(at + 1, let))
            line = !line || at + 1 > line ? at + 1 : line;
    }
    return line;
}

/* The line in front of that one. */
static const char *line_before(const char *text, const char *line)
{
    for (line--; line > text && line[-1] != '\n';)
        line--;
    return line;
}

/* `brings`: of a copy from DM to DM that brings rows together what is in front of it. */
static ending ending_of(const char *text, const char *result_type, bool brings, arena *a)
{
    static const char OUT[] = ".to_hbm(&mut device.tdma)\n}", COPY[] = ".to_dm(&mut device.tdma);\n";
    const ending none = {text, NULL};
    const char *out = strstr(text, OUT), *arrow = strstr(text, ") -> ");
    if (!out || !arrow || out[strlen(OUT)] != '\n' || out[strlen(OUT) + 1])
        return none;
    const char *end = line_before(text, out + 1), *name = arena_printf(a, "%.*s", (int)(out - end - 4), end + 4),
               *let = line_of_let(text, end, name, a);
    if (!let || strncmp(end, "    ", 4) != 0)
        return none;
    const char *from = strstr(let, "> = ") + strlen("> = "), *type = strstr(let, ": ") + strlen(": ");
    size_t length = strcspn(from, ".\n"), type_length = (size_t)(from - 3 - type);
    const char *note = line_before(text, end), *last = strncmp(note, "    //", 6) == 0 ? note : end;
    if (brings) {
        if (strncmp(from + length, COPY, strlen(COPY)) != 0 || from + length + strlen(COPY) != last)
            return none;
        name = arena_printf(a, "%.*s", (int)length, from);
        note = line_before(text, let);
        last = strncmp(note, "    //", 6) == 0 ? note : let;
        let = line_of_let(text, let, name, a);
        if (!let)
            return none;
        type = strstr(let, ": ") + strlen(": ");
        from = strstr(type, "> = ");
        type_length = (size_t)(from + 1 - type);
    }
    const char *body = arrow + strlen(") -> ") + strlen(result_type);
    type = arena_printf(a, "%.*s", (int)type_length, type);
    return (ending){
        arena_printf(a, "%.*s%s%.*s    %s\n}\n", (int)(arrow + strlen(") -> ") - text), text, type, (int)(last - body), body, name), type};
}

/* The whole text with what has been chosen. */
static void put_all(const weaver *w, const target *t, const char *text, strbuf *out)
{
    strbuf_init(out, w->a);
    put_known(w, text, out);
    for (size_t i = 0; i <= w->parameters; i++) {
        const relaid *x = &w->tensors[i];
        if (!x->lies_otherwise)
            continue;
        strbuf_puts(out, "\n");
        lay_write_function(t, &x->order, &x->plan, &x->answer.found, x->function, x->dm_type, w->a, out);
    }
    strbuf_puts(out, "\n");
    put_kernel(w, t, out);
}

typedef struct woven {
    tune_trial best;     /* no text: none compiles */
    tune_answer counted; /* all that were tried */
} woven;

static void try_one(weaver *w, const target *t, const char *text, woven *out)
{
    tune_trial one = {.timing = out->counted.timing};
    put_all(w, t, text, &one.text.text);
    if (!tune_try_text(w->a, &one))
        return;
    out->counted.tried++;
    out->counted.refused += one.refusal != NULL;
    if (one.refusal && !out->counted.first_refusal)
        out->counted.first_refusal = one.refusal;
    if (!one.refusal && (!out->best.text.text.text || one.cycles < out->best.cycles))
        out->best = one;
}

/* By way of HBM. */
static void weave_by_hbm(weaver *w, const target *t, const visa_tune_options *o, const char *text, diag_list *diags, woven *out)
{
    if (!parse_known(w, text, diags) || !read_known(w, o) || !find_orders(w, t, o, diags))
        return;
    try_one(w, t, text, out);
    for (size_t i = 0; i <= w->parameters; i++) {
        out->counted.tried += w->tensors[i].answer.tried;
        out->counted.refused += w->tensors[i].answer.refused;
        out->counted.left += w->tensors[i].answer.left;
    }
}

/* The result straight from DM, where it lies otherwise; all others as they are chosen. */
static void weave_from_dm(weaver *w, const target *t, const char *text, woven *out)
{
    enum { PLANS = 8 };
    relaid *x = &w->tensors[w->parameters];
    lay_plan plans[PLANS];
    const char *type = arena_printf(w->a, "HbmTensor<%s, Chip, %s>", x->type, x->known);
    if (!x->lies_otherwise || !out->best.text.text.text || !lay_order_trim(&x->apart))
        return;
    x->order = x->apart;
    size_t count = lay_plans(t, &x->order, plans, PLANS);
    for (int brings = 0; brings <= 1; brings++) {
        ending e = ending_of(text, type, brings, w->a);
        x->dm_type = e.type;
        x->answer = (tune_answer){0};
        for (size_t i = 0; i < count && e.type; i++) {
            x->plan = plans[i];
            strbuf_init(&w->axes, w->a);
            for (size_t k = 0; k <= w->parameters; k++)
                if (w->tensors[k].lies_otherwise)
                    add_axes(w, &w->tensors[k]);
            try_one(w, t, e.text, out);
        }
    }
}

bool relaid_weave(visa_compilation *c, const target *t, const visa_tune_options *o, const tune_expression *e, const tune_question *q,
                  const tune_found *known, diag_list *diags, strbuf *out)
{
    diag_list refusals;
    diag_list_init(&refusals, c->arena);
    weaver w = {.c = c, .e = e, .q = q, .a = c->arena, .joins = true};
    woven x = {.counted = {.timing = tune_timing_of(o), .tried = known->tried, .refused = known->refused, .left = known->left}};
    const char *text = known->text.text;
    weave_by_hbm(&w, t, o, text, &refusals, &x);
    if (!x.best.text.text.text) { /* an axis that two tensors have beside others cannot be joined with both */
        w.joins = false;
        weave_by_hbm(&w, t, o, text, &refusals, &x);
    }
    weave_from_dm(&w, t, text, &x);
    if (!x.best.text.text.text)
        return tune_refuse_all(diags, tune_whole_range(e->file, e->text), x.counted.tried, x.counted.first_refusal);
    x.counted.cycles = x.best.cycles;
    x.counted.dma_cycles = x.best.dma_cycles;
    const char *how = how_of(text, w.a);
    strbuf_init(out, w.a);
    strbuf_puts(out, tune_head_of_contraction(q, &known->bound, &x.counted, how, w.a));
    strbuf_puts(out, x.best.text.text.text);
    return true;
}
