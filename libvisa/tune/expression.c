#include "libvisa/tune/expression.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/tune/factors.h"
#include "support/budget.h"
#include "support/integer.h"

const int64_t TUNE_MOST_PRODUCTS = INT64_C(1) << 52;

typedef struct reader {
    const char *text;
    size_t at;
    diag_list *diags;
    tune_expression *e;
    unsigned known;    /* axes that the result has, or a reduction around what is read */
    tune_node **nodes; /* all of the expression's */
    int attempts;      /* to take a factor into a sum */
} reader;

static src_range range_from(const reader *r, size_t begin)
{
    return (src_range){r->e->file, (uint32_t)begin, (uint32_t)r->at};
}

bool tune_is_axis(const tune_axis *axes, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(axes[i].name, name) == 0)
            return true;
    return false;
}

const char *tune_unused_name(const tune_axis *axes, size_t count, const char *name, arena *a)
{
    while (tune_is_axis(axes, count, name))
        name = arena_printf(a, "%s_", name);
    return name;
}

src_range tune_whole_range(int file, const char *text)
{
    return (src_range){file, 0, (uint32_t)strlen(text)};
}

bool tune_refuse_question(const char *text, diag_list *diags, src_range range, const char *what)
{
    diag *d = diag_add(diags, E_TUNE_QUESTION, range, "%s", what);
    bool ends = range.begin >= strlen(text); /* its other words may have been arguments of their own */
    diag_help(diags, d, "write it %s",
              ends ? "in quotes, 'C[m, n] = sum(k) A[m, k] * B[n, k]': a shell takes it apart without them"
                   : "as C[m, n] = sum(k) A[m, k] * B[n, k], or without a contraction as Y[r, c] = softmax(c) X[r, c]");
    return false;
}

static bool refuse(reader *r, src_range range, const char *what)
{
    return tune_refuse_question(r->text, r->diags, range, what);
}

static bool refuse_name(reader *r, src_range range, const char *name, const char *help)
{
    diag *d = diag_add(r->diags, E_TUNE_QUESTION, range, "two tensors are called `%s`", name);
    diag_help(r->diags, d, "%s", help);
    return false;
}

static void skip_blanks(reader *r)
{
    while (isspace((unsigned char)r->text[r->at]))
        r->at++;
}

static bool takes(reader *r, char c)
{
    skip_blanks(r);
    bool is = r->text[r->at] == c;
    r->at += is;
    return is;
}

static bool expect(reader *r, char c)
{
    if (takes(r, c))
        return true;
    src_range here = {r->e->file, (uint32_t)r->at, (uint32_t)(r->at + (r->text[r->at] != '\0'))};
    return refuse(r, here, arena_printf(r->diags->arena, "`%c` is expected here", c));
}

/* A letter and letters, digits and _; NULL: there is none, diagnosed. */
static const char *read_name(reader *r, const char *what, src_range *range)
{
    skip_blanks(r);
    size_t begin = r->at;
    while (isalnum((unsigned char)r->text[r->at]) || (r->at > begin && r->text[r->at] == '_'))
        r->at++;
    *range = (src_range){r->e->file, (uint32_t)begin, (uint32_t)(r->at + (r->at == begin && r->text[r->at] != '\0'))};
    if (r->at == begin || !isalpha((unsigned char)r->text[begin])) {
        refuse(r, *range, arena_printf(r->diags->arena, "%s is expected here: a letter, then letters, digits and _", what));
        return NULL;
    }
    return arena_strndup(r->diags->arena, r->text + begin, r->at - begin);
}

static const char *in_case(const char *name, int (*to)(int), arena *a)
{
    char *text = arena_strdup(a, name);
    for (char *c = text; *c; c++)
        *c = (char)to((unsigned char)*c);
    return text;
}

/* The axis with that name, made at its first mention. False: diagnosed. */
static bool axis_index(reader *r, const char *asked, src_range range, size_t *out)
{
    tune_expression *e = r->e;
    const char *name = in_case(asked, toupper, r->diags->arena);
    for (*out = 0; *out < e->axis_count; ++*out) {
        if (strcmp(e->axes[*out].asked, asked) == 0)
            return true;
        if (strcmp(e->axes[*out].name, name) == 0)
            return refuse(r, range,
                          arena_printf(r->diags->arena, "axes `%s` and `%s` differ in case alone: both are %s in a kernel",
                                       e->axes[*out].asked, asked, name));
    }
    if (e->axis_count == TUNE_AXES_MAX)
        return refuse(r, range, arena_printf(r->diags->arena, "a question has at most %d axes", TUNE_AXES_MAX));
    e->axes[e->axis_count++] = (tune_axis){.name = name, .asked = asked, .range = range};
    return true;
}

bool tune_refuse_window(diag_list *diags, src_range range, const char *what)
{
    diag *d = diag_add(diags, E_TUNE_LAYOUT, range, "%s", what);
    diag_help(
        diags, d,
        "a convolution is asked as O[n, y, x, f] = sum(r, s, c) I[n, y*2 + r, x*2 + s, c] * W[f, r, s, c], with or without n, with "
        "one window, too; with a border of zeros, padding of 1, as I[n, h = y*2 + r - 1, w = x*2 + s - 1, c], of h rows of w places; "
        "--free=I,W,O leaves it to the kernel how these lie, in whatever order the question has their axes; windows without filters are "
        "folded as Y[n, y, x, c] = max(r, s) I[n, y*2 + r, x*2 + s, c], by max, min, sum or mean");
    return false;
}

static bool refuse_window(reader *r, src_range range, const char *what)
{
    return tune_refuse_window(r->diags, range, what);
}

enum { WINDOW_PLACES_MAX = 99999 }; /* that an axis of a window counts by, and of a border */

/* "2" */
static bool read_places(reader *r, int64_t *out)
{
    skip_blanks(r);
    size_t begin = r->at, digits = strspn(r->text + begin, "0123456789");
    r->at += digits;
    *out = digits > 0 && digits < 6 ? strtol(r->text + begin, NULL, 10) : 0;
    return *out > 0 || refuse_window(r, range_from(r, begin), "an axis of a window counts by 1 to 99999 places, and a border has as many");
}

static bool begins_number(reader *r)
{
    skip_blanks(r);
    return isdigit((unsigned char)r->text[r->at]) != 0;
}

/* One more axis of a tensor, or of those that are summed. */
static bool add_axis(reader *r, size_t *axes, size_t *count, size_t *axis)
{
    src_range range;
    const char *name = read_name(r, "the name of an axis", &range);
    if (!name || !axis_index(r, name, range, axis))
        return false;
    for (size_t i = 0; i < *count; i++)
        if (axes[i] == *axis)
            return refuse(r, range, arena_printf(r->diags->arena, "axis `%s` stands here twice", name));
    axes[(*count)++] = *axis;
    return true;
}

/* The place of an operand's element along an axis: `k`, or in an image `y*2 + r - 1`, in whatever order. */
typedef struct place {
    int64_t factor[2]; /* of its axes */
    size_t axes[2], count;
    int64_t distance;
} place;

/* One of `y`, `y*2`, `2*y` and `1`; `sign`: of the last of these. */
static bool read_place_term(reader *r, tune_tensor *t, int64_t sign, place *out)
{
    size_t begin = r->at;
    int64_t factor = 1;
    bool in_front = begins_number(r);
    if (in_front && !read_places(r, &factor))
        return false;
    if (in_front && !takes(r, '*')) {
        out->distance += sign * factor;
        return true;
    }
    if (out->count == 2 || sign < 0)
        return refuse_window(r, range_from(r, begin), "a window is the sum of a kept axis and a summed one, and of a number");
    if (!add_axis(r, t->axes, &t->count, &out->axes[out->count]) || (!in_front && takes(r, '*') && !read_places(r, &factor)))
        return false;
    out->factor[out->count++] = factor;
    return true;
}

/* The name in front of `=`, an image's own axis; without one nothing is read. */
static bool read_own_axis(reader *r, tune_axis *out)
{
    size_t begin = r->at;
    skip_blanks(r);
    size_t length = strcspn(r->text + r->at, " =,]*+-[");
    if (r->text[r->at + length + strspn(r->text + r->at + length, " ")] != '=')
        return true;
    out->asked = read_name(r, "the name of an image's axis", &out->range);
    if (!out->asked || !takes(r, '='))
        return false;
    out->name = in_case(out->asked, toupper, r->diags->arena);
    for (size_t i = 0; i < r->e->window_count; i++)
        if (r->e->windows[i].own.name && strcmp(r->e->windows[i].own.name, out->name) == 0)
            return refuse(r, range_from(r, begin), arena_printf(r->diags->arena, "axis `%s` stands here twice", out->asked));
    return true;
}

/* An axis of a tensor, or what stands for the places of a window in it. */
static bool read_place(reader *r, tune_tensor *t, bool is_result)
{
    skip_blanks(r);
    size_t begin = r->at, first = t->count;
    tune_window w = {.tensor = r->e->tensor_count};
    place p = {.count = 0};
    if (!read_own_axis(r, &w.own))
        return false;
    int64_t sign = 1;
    bool more = true;
    while (more) {
        if (!read_place_term(r, t, sign, &p))
            return false;
        more = takes(r, '+');
        sign = more ? 1 : -1;
        more = more || takes(r, '-');
    }
    if (p.count == 1 && p.factor[0] == 1 && p.distance == 0 && !w.own.name)
        return true;
    if (is_result || r->e->window_count == TUNE_WINDOWS)
        return refuse_window(r, range_from(r, begin), "a window stands here, or a third one");
    if (p.count != 2)
        return refuse_window(r, range_from(r, begin), "a window is the sum of a kept axis and a summed one, and of a number");
    bool turned = (tune_axes_of(r->e, 0) >> p.axes[0] & 1) == 0 && (tune_axes_of(r->e, 0) >> p.axes[1] & 1) != 0;
    w.kept = p.axes[turned];
    w.summed = p.axes[!turned];
    w.stride = p.factor[turned];
    w.dilation = p.factor[!turned];
    w.before = -p.distance;
    t->axes[first] = w.kept;
    t->axes[first + 1] = w.summed;
    if (p.distance > WINDOW_PLACES_MAX || p.distance < -WINDOW_PLACES_MAX)
        return refuse_window(r, range_from(r, begin), "an axis of a window counts by 1 to 99999 places, and a border has as many");
    r->e->windows[r->e->window_count++] = w;
    return true;
}

/* Words of the language, and names that a kernel has itself. */
static bool is_taken(const char *name)
{
    static const char *const words[] = {"device",       "weights", "rows",    "columns",    "products",   "bordered",
                                        "zeros",        "pieces",  "lying",   "lying_rows", "turned",     "columns_by_flit",
                                        "rows_by_flit", "i",       "j",       "g",          "fn",         "let",
                                        "for",          "in",      "mut",     "const",      "type",       "struct",
                                        "if",           "as",      "use",     "axes",       "else",       "sums",
                                        "next",         "before",  "l",       "true",       "false",      "while",
                                        "loop",         "return",  "where",   "dyn",        "contract",   "break",
                                        "continue",     "crate",   "enum",    "extern",     "move",       "static",
                                        "super",        "trait",   "results", "unsafe",     "async",      "await",
                                        "gate",         "match",   "parts",   "more_parts", "last_parts", "h",
                                        "lower",        "upper",   "mod",     "pub",        "ref",        "self",
                                        "impl",         "framed"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return true;
    static const char *const beginnings[] = {"values", "lower_", "upper_", "own_"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static bool is_tensor(const tune_expression *e, const char *name)
{
    for (size_t i = 0; i < e->tensor_count; i++)
        if (strcmp(e->tensors[i].name, name) == 0)
            return true;
    return false;
}

/* The tensor in lower case: `b` beside `B` is b_2, and so is a `B` with its axes in another order. */
static void name_tensor(reader *r, tune_tensor *t)
{
    const char *name = in_case(t->asked, tolower, r->diags->arena);
    t->name = name;
    for (int i = 2; is_tensor(r->e, t->name); i++)
        t->name = arena_printf(r->diags->arena, "%s_%d", name, i);
    t->port = is_taken(t->name) ? arena_printf(r->diags->arena, "%s_port", t->name) : t->name;
}

/* A tensor, or the one that has that name and these axes already. */
static bool read_tensor(reader *r, size_t *out)
{
    tune_expression *e = r->e;
    tune_tensor t = {0};
    size_t windows = e->window_count;
    bool is_result = e->tensor_count == 0;
    if (!(t.asked = read_name(r, "the name of a tensor", &t.range)) || !expect(r, '['))
        return false;
    if (!takes(r, ']')) {
        do {
            if (!read_place(r, &t, is_result))
                return false;
        } while (takes(r, ','));
        if (!expect(r, ']'))
            return false;
    }
    src_range range;
    if (!is_result && takes(r, ':') && !(t.asked_type = read_name(r, "the type of a tensor", &range)))
        return false;
    for (*out = 0; *out < e->tensor_count; ++*out) {
        tune_tensor *k = &e->tensors[*out];
        if (strcmp(k->asked, t.asked) != 0)
            continue;
        if (*out == 0)
            return refuse_name(r, t.range, t.asked, "the result is none of the operands: call one of them otherwise");
        if (k->count != t.count || memcmp(k->axes, t.axes, t.count * sizeof *t.axes) != 0 || windows != e->window_count)
            continue; /* it is read in two ways */
        if (k->asked_type && t.asked_type && strcmp(k->asked_type, t.asked_type) != 0)
            return refuse_name(r, t.range, t.asked, "a tensor has one type wherever it stands: call one of them otherwise");
        k->asked_type = k->asked_type ? k->asked_type : t.asked_type;
        return true;
    }
    if (e->tensor_count == TUNE_TENSORS_MAX)
        return refuse(r, t.range, arena_printf(r->diags->arena, "a question has at most %d tensors", TUNE_TENSORS_MAX));
    name_tensor(r, &t);
    e->tensors[e->tensor_count++] = t;
    return true;
}

unsigned tune_axes_of(const tune_expression *e, size_t tensor)
{
    unsigned axes = 0;
    for (size_t i = 0; i < e->tensors[tensor].count; i++)
        axes |= 1U << e->tensors[tensor].axes[i];
    return axes;
}

/* ---- the right side ---- */

static const struct {
    const char *name;
    tune_operator what;
} functions[] = {{"exp", TUNE_EXP},   {"log", TUNE_LOG},         {"sqrt", TUNE_SQRT}, {"sin", TUNE_SIN},   {"cos", TUNE_COS},
                 {"tanh", TUNE_TANH}, {"sigmoid", TUNE_SIGMOID}, {"silu", TUNE_SILU}, {"gelu", TUNE_GELU}, {"square", TUNE_SQUARE}},
  binary[] = {{"max", TUNE_LARGER}, {"min", TUNE_SMALLER}};

static const struct {
    const char *name;
    tune_fold fold;
} folds[] = {{"sum", TUNE_FOLD_SUM},
             {"max", TUNE_FOLD_LARGEST},
             {"min", TUNE_FOLD_SMALLEST},
             {"mean", TUNE_FOLD_MEAN},
             {"softmax", TUNE_FOLD_SOFTMAX}};

static const tune_node *new_node(reader *r, size_t begin, tune_node n)
{
    if (r->e->node_count++ == TUNE_NODES_MAX) {
        refuse(r, range_from(r, begin),
               arena_printf(r->diags->arena, "a question has at most %d numbers, tensors and operations", TUNE_NODES_MAX));
        return NULL;
    }
    tune_node *out = ARENA_NEW(r->diags->arena, tune_node);
    *out = n;
    out->range = range_from(r, begin);
    r->nodes[r->e->node_count - 1] = out;
    return out;
}

static const tune_node *number(reader *r, size_t begin, double value)
{
    if (!isfinite((float)value)) {
        refuse(r, range_from(r, begin), "this number is none of f32");
        return NULL;
    }
    return new_node(r, begin, (tune_node){.kind = TUNE_NODE_NUMBER, .number = value});
}

static double folded(tune_operator what, double a, double b)
{
    switch (what) {
    case TUNE_ADD: return a + b;
    case TUNE_SUBTRACT: return a - b;
    case TUNE_TIMES: return a * b;
    case TUNE_DIVIDE: return a / b;
    case TUNE_LARGER: return a > b ? a : b;
    default: return a < b ? a : b;
    }
}

static double of_number(tune_operator what, double x)
{
    static const double LINEAR = 0.7978845608028654, CUBIC = 0.044715; /* of the tanh form of GELU: sqrt(2 / pi), and of x^3 */
    switch (what) {
    case TUNE_EXP: return exp(x);
    case TUNE_LOG: return log(x);
    case TUNE_SQRT: return sqrt(x);
    case TUNE_SIN: return sin(x);
    case TUNE_COS: return cos(x);
    case TUNE_TANH: return tanh(x);
    case TUNE_SIGMOID: return 1 / (1 + exp(-x));
    case TUNE_SILU: return x / (1 + exp(-x));
    case TUNE_GELU: return x / 2 * (1 + tanh(LINEAR * (x + CUBIC * x * x * x)));
    default: return x * x;
    }
}

bool tune_same_node(const tune_node *a, const tune_node *b)
{
    if (a == b || !a || !b)
        return a == b;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case TUNE_NODE_NUMBER: return a->number == b->number;
    case TUNE_NODE_TENSOR: return a->tensor == b->tensor;
    default:
        return a->what == b->what && a->fold == b->fold && a->over == b->over && tune_same_node(a->left, b->left) &&
               tune_same_node(a->right, b->right);
    }
}

bool tune_is_power_of_two(double x)
{
    int power;
    return fabs(frexp(x, &power)) == 0.5 && isnormal((float)x) && isnormal((float)(1 / x));
}

static bool is_function(const tune_node *n, tune_operator what, const tune_node *of)
{
    return n->kind == TUNE_NODE_FUNCTION && n->what == what && tune_same_node(n->left, of);
}

/* Is it 1 + exp(-x)? */
static bool is_below_sigmoid(const tune_node *n, const tune_node *x)
{
    if (n->kind != TUNE_NODE_BINARY || n->what != TUNE_ADD)
        return false;
    bool left = n->left->kind == TUNE_NODE_NUMBER;
    const tune_node *one = left ? n->left : n->right, *power = left ? n->right : n->left;
    if (one->kind != TUNE_NODE_NUMBER || one->number != 1 || power->kind != TUNE_NODE_FUNCTION || power->what != TUNE_EXP)
        return false;
    const tune_node *minus = power->left;
    return minus->kind == TUNE_NODE_BINARY && minus->what == TUNE_TIMES && minus->right->kind == TUNE_NODE_NUMBER &&
           minus->right->number == -1 && tune_same_node(minus->left, x);
}

/* `x * sigmoid(x)` and `x / (1 + exp(-x))`, which compute x once as a function does. */
static bool is_silu(tune_operator what, const tune_node *a, const tune_node *b)
{
    return (what == TUNE_TIMES && is_function(b, TUNE_SIGMOID, a)) || (what == TUNE_DIVIDE && is_below_sigmoid(b, a));
}

/* To divide by a power of two is to multiply, which fits into more passes. */
static const tune_node *combine(reader *r, size_t begin, tune_operator what, const tune_node *a, const tune_node *b)
{
    if (!a || !b)
        return NULL;
    if (a->kind == TUNE_NODE_NUMBER && b->kind == TUNE_NODE_NUMBER)
        return number(r, begin, folded(what, a->number, b->number));
    if (what == TUNE_DIVIDE && b->kind == TUNE_NODE_NUMBER && tune_is_power_of_two(b->number)) {
        what = TUNE_TIMES;
        b = number(r, begin, 1 / b->number);
    }
    if (!b)
        return NULL;
    if (what == TUNE_TIMES && tune_same_node(a, b))
        return new_node(r, begin, (tune_node){.kind = TUNE_NODE_FUNCTION, .what = TUNE_SQUARE, .left = a});
    if (is_silu(what, a, b) || (what == TUNE_TIMES && is_silu(what, b, a)))
        return new_node(r, begin, (tune_node){.kind = TUNE_NODE_FUNCTION, .what = TUNE_SILU, .left = is_silu(what, a, b) ? a : b});
    return new_node(r, begin, (tune_node){.kind = TUNE_NODE_BINARY, .what = what, .left = a, .right = b});
}

static const tune_node *read_expression(reader *r);
static const tune_node *read_unsigned(reader *r);

static const tune_node *read_number(reader *r)
{
    size_t begin = r->at, digits = strspn(r->text + r->at, "0123456789");
    r->at += digits;
    if (r->text[r->at] == '.')
        r->at += 1 + strspn(r->text + r->at + 1, "0123456789");
    if (r->text[r->at] == 'e' || r->text[r->at] == 'E') {
        size_t sign = r->text[r->at + 1] == '-' || r->text[r->at + 1] == '+', power = strspn(r->text + r->at + 1 + sign, "0123456789");
        r->at += power ? 1 + sign + power : 0;
    }
    return number(r, begin, strtod(arena_strndup(r->diags->arena, r->text + begin, r->at - begin), NULL));
}

static const tune_node *read_tensor_node(reader *r)
{
    skip_blanks(r);
    size_t begin = r->at, tensor;
    if (!read_tensor(r, &tensor))
        return NULL;
    return new_node(r, begin, (tune_node){.kind = TUNE_NODE_TENSOR, .tensor = tensor});
}

/* Does a letter's word stand here, and this behind it? Of `[`: a tensor. */
static bool precedes(reader *r, char what)
{
    skip_blanks(r);
    size_t at = r->at;
    if (!isalpha((unsigned char)r->text[at]))
        return false;
    while (isalnum((unsigned char)r->text[at]) || r->text[at] == '_')
        at++;
    while (isspace((unsigned char)r->text[at]))
        at++;
    return r->text[at] == what;
}

static const tune_node *read_signed(reader *r)
{
    skip_blanks(r);
    size_t begin = r->at;
    bool negative = false;
    while (takes(r, '-'))
        negative = !negative;
    const tune_node *n = read_unsigned(r);
    return n && negative ? combine(r, begin, TUNE_TIMES, n, number(r, begin, -1)) : n;
}

/* Axes of what a node makes that nothing in it ends. */
static unsigned open_axes(const reader *r, const tune_node *n)
{
    if (!n)
        return 0;
    if (n->kind == TUNE_NODE_TENSOR)
        return tune_axes_of(r->e, n->tensor);
    return (open_axes(r, n->left) | open_axes(r, n->right)) & ~(n->fold == TUNE_FOLD_SOFTMAX ? 0 : n->over);
}

/* A factor that is no tensor, `sum(k) ..` or `(..)`, if an axis of it has no end but in the sum around it; else nothing is read. False:
 * diagnosed. */
static bool read_open_factor(reader *r, unsigned ends, const tune_node **out)
{
    enum { ATTEMPTS = 32 }; /* each is read again, outside */
    const size_t at = r->at;
    const tune_expression e = *r->e;
    *out = NULL;
    if (ends == 0 || r->attempts++ >= ATTEMPTS)
        return true;
    if (!(*out = read_signed(r)))
        return false;
    if (open_axes(r, *out) & ends)
        return true;
    r->at = at;
    r->e->axis_count = e.axis_count;
    r->e->tensor_count = e.tensor_count;
    r->e->window_count = e.window_count;
    r->e->node_count = e.node_count;
    *out = NULL;
    return true;
}

/* What a reduction takes: a value, or two tensors with * between them. So `sum(k) A[m, k] * B[n, k] * s[n]` is a sum and its factor, as the
 * next factor is of each value that is no tensor, but one that has no meaning outside, and those in front of it: over an axis that nothing
 * but this reduction ends, `sum(h) relu(..) * D[n, h]`, `sum(k) A[m, k] * B[n, k] * s[k]`, `sum(g) s[g] * sum(k) ..`. A softmax ends none.
 * Numbers between these go along. */
static const tune_node *read_reduced(reader *r, unsigned over, tune_fold fold)
{
    skip_blanks(r);
    size_t begin = r->at;
    const unsigned outside = r->known, ends = fold == TUNE_FOLD_SOFTMAX ? 0 : over & ~outside;
    r->known |= over;
    const tune_node *a = read_signed(r), *all = a;
    size_t behind = r->at;
    bool takes_next = a && a->kind == TUNE_NODE_TENSOR;
    for (bool times; all && ((times = takes(r, '*')) || takes(r, '/'));) {
        bool is_number = begins_number(r), is_tensor = !is_number && times && precedes(r, '[');
        const tune_node *b = is_number ? read_number(r) : is_tensor ? read_tensor_node(r) : NULL;
        if (!is_number && !is_tensor) {
            if (!read_open_factor(r, ends, &b))
                return NULL;
            if (!b)
                break;
        }
        all = combine(r, begin, times ? TUNE_TIMES : TUNE_DIVIDE, all, b);
        if (all && is_number) /* goes along if a factor does that comes after it */
            continue;
        if (!all || (takes_next && is_tensor) || (open_axes(r, b) & ends)) {
            a = all;
            behind = r->at;
        }
        takes_next = false;
    }
    r->at = a ? behind : r->at;
    r->known = outside;
    return a;
}

/* A product without its numbers, which are the factor of its sum. */
STACK_APART static const tune_node *without_numbers(reader *r, size_t begin, const tune_node *n, double *factor)
{
    if (n->kind != TUNE_NODE_BINARY || n->what != TUNE_TIMES)
        return n;
    bool left = n->left->kind == TUNE_NODE_NUMBER;
    if (left || n->right->kind == TUNE_NODE_NUMBER) {
        *factor *= left ? n->left->number : n->right->number;
        return without_numbers(r, begin, left ? n->right : n->left, factor);
    }
    const tune_node *a = without_numbers(r, begin, n->left, factor), *b = a ? without_numbers(r, begin, n->right, factor) : NULL;
    return a == n->left && b == n->right ? n : b ? combine(r, begin, TUNE_TIMES, a, b) : NULL;
}

static const tune_node *reduce(reader *r, size_t begin, unsigned over, tune_fold fold, const tune_node *of)
{
    if (fold == TUNE_FOLD_SUM && of->kind == TUNE_NODE_BINARY && of->what == TUNE_TIMES && of->left->kind == TUNE_NODE_TENSOR &&
        of->right->kind == TUNE_NODE_TENSOR)
        return new_node(r, begin, (tune_node){.kind = TUNE_NODE_PRODUCT, .over = over, .left = of->left, .right = of->right});
    return new_node(r, begin, (tune_node){.kind = TUNE_NODE_REDUCTION, .fold = fold, .over = over, .left = of});
}

/* `sum(k)`, and what is summed. */
static const tune_node *read_reduction(reader *r, size_t begin, tune_fold fold)
{
    size_t axes[TUNE_AXES_MAX], count = 0, axis;
    unsigned over = 0;
    if (!expect(r, '('))
        return NULL;
    if (!takes(r, ')')) {
        do {
            if (!add_axis(r, axes, &count, &axis))
                return NULL;
            over |= 1U << axis;
        } while (takes(r, ','));
        if (!expect(r, ')'))
            return NULL;
    }
    double factor = 1;
    const tune_node *of = read_reduced(r, over, fold);
    if (of && (fold == TUNE_FOLD_SUM || fold == TUNE_FOLD_MEAN))
        of = without_numbers(r, begin, of, &factor);
    const tune_node *reduced = of ? reduce(r, begin, over, fold, of) : NULL;
    return reduced && factor != 1 ? combine(r, begin, TUNE_TIMES, reduced, number(r, begin, factor)) : reduced;
}

/* `name(`, without its blanks; r->at stays where it is if this is none. */
static bool takes_call(reader *r, const char *name)
{
    size_t begin = r->at, length = strlen(name);
    if (strncmp(r->text + r->at, name, length) == 0) {
        r->at += length;
        skip_blanks(r);
        if (r->text[r->at] == '(')
            return true;
        r->at = begin;
    }
    return false;
}

/* `(c, d)`: names alone, so these are axes. */
static bool has_names(const reader *r)
{
    const char *at = r->text + r->at + 1;
    return at[strspn(at, " \t\r\n\v\f,abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == ')' &&
           isalpha((unsigned char)at[strspn(at, " \t\r\n\v\f")]);
}

static const tune_node *read_pair(reader *r, size_t begin, tune_operator what)
{
    const tune_node *a = expect(r, '(') ? read_expression(r) : NULL, *b = a && expect(r, ',') ? read_expression(r) : NULL;
    return b && expect(r, ')') ? combine(r, begin, what, a, b) : NULL;
}

static const tune_node *read_argument(reader *r)
{
    const tune_node *n = expect(r, '(') ? read_expression(r) : NULL;
    return n && expect(r, ')') ? n : NULL;
}

/* A function of a number is a number. */
static const tune_node *apply(reader *r, size_t begin, tune_operator what, const tune_node *n)
{
    if (!n)
        return NULL;
    if (n->kind == TUNE_NODE_NUMBER)
        return number(r, begin, of_number(what, n->number));
    return new_node(r, begin, (tune_node){.kind = TUNE_NODE_FUNCTION, .what = what, .left = n});
}

/* Functions that are made of others: relu(x), relu6(x), clip(x, from, to), rsqrt(x). */
static const tune_node *read_made(reader *r, size_t begin, bool *is_call)
{
    *is_call = true;
    bool bounds_below = takes_call(r, "relu"), bounds = !bounds_below && takes_call(r, "relu6");
    if (bounds_below || bounds) {
        const tune_node *n = read_argument(r);
        n = n ? combine(r, begin, TUNE_LARGER, n, number(r, begin, 0)) : NULL;
        return n && bounds ? combine(r, begin, TUNE_SMALLER, n, number(r, begin, 6)) : n;
    }
    if (takes_call(r, "clip")) {
        const tune_node *n = expect(r, '(') ? read_expression(r) : NULL, *from = n && expect(r, ',') ? read_expression(r) : NULL,
                        *to = from && expect(r, ',') ? read_expression(r) : NULL;
        return to && expect(r, ')') ? combine(r, begin, TUNE_SMALLER, combine(r, begin, TUNE_LARGER, n, from), to) : NULL;
    }
    if (takes_call(r, "rsqrt")) {
        const tune_node *n = apply(r, begin, TUNE_SQRT, read_argument(r));
        return n ? combine(r, begin, TUNE_DIVIDE, number(r, begin, 1), n) : NULL;
    }
    *is_call = false;
    return NULL;
}

static const tune_node *read_call(reader *r, size_t begin, bool *is_call)
{
    *is_call = true;
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (takes_call(r, folds[i].name)) {
            if (folds[i].fold == TUNE_FOLD_SUM || folds[i].fold == TUNE_FOLD_MEAN || folds[i].fold == TUNE_FOLD_SOFTMAX || has_names(r))
                return read_reduction(r, begin, folds[i].fold);
            r->at = begin;
        }
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        if (takes_call(r, binary[i].name))
            return read_pair(r, begin, binary[i].what);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (takes_call(r, functions[i].name))
            return apply(r, begin, functions[i].what, read_argument(r));
    return read_made(r, begin, is_call);
}

/* A name in front of `(` that is none of a function. */
static const tune_node *refuse_call(reader *r)
{
    src_range range;
    const char *name = read_name(r, "the name of a function", &range);
    if (!name)
        return NULL;
    diag *d = diag_add(r->diags, E_TUNE_QUESTION, range, "`%s` is no function of a question", name);
    diag_help(r->diags, d,
              "functions are exp, log, sqrt, rsqrt, sin, cos, tanh, sigmoid, silu, gelu, square, relu, relu6, clip(x, from, to), max and "
              "min of two, and sum, mean, max, min and softmax over axes, softmax(c) X[r, c]");
    return NULL;
}

static const tune_node *read_primary(reader *r)
{
    skip_blanks(r);
    size_t begin = r->at;
    char c = r->text[begin];
    bool is_call;
    if (takes(r, '(')) {
        const tune_node *n = read_expression(r);
        return n && expect(r, ')') ? n : NULL;
    }
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)r->text[begin + 1])))
        return read_number(r);
    const tune_node *call = read_call(r, begin, &is_call);
    if (is_call)
        return call;
    return precedes(r, '(') ? refuse_call(r) : read_tensor_node(r);
}

/* Whatever nests has a factor in each level. */
STACK_APART static const tune_node *read_unsigned(reader *r)
{
    budget_enter(r->diags->arena);
    const tune_node *n = read_primary(r);
    budget_leave(r->diags->arena);
    return n;
}

static const tune_node *read_term(reader *r)
{
    skip_blanks(r);
    size_t begin = r->at;
    const tune_node *n = read_signed(r);
    while (n) {
        bool times = takes(r, '*');
        if (!times && !takes(r, '/'))
            break;
        n = combine(r, begin, times ? TUNE_TIMES : TUNE_DIVIDE, n, read_signed(r));
    }
    return n;
}

STACK_APART static const tune_node *read_expression(reader *r)
{
    skip_blanks(r);
    size_t begin = r->at;
    const tune_node *n = read_term(r);
    while (n) {
        bool plus = takes(r, '+');
        if (!plus && !takes(r, '-'))
            break;
        n = combine(r, begin, plus ? TUNE_ADD : TUNE_SUBTRACT, n, read_term(r));
    }
    return n;
}

size_t tune_count_products(const tune_node *n)
{
    return n ? (n->kind == TUNE_NODE_PRODUCT) + tune_count_products(n->left) + tune_count_products(n->right) : 0;
}

size_t tune_count_reductions(const tune_node *n)
{
    return n ? (n->kind == TUNE_NODE_REDUCTION) + tune_count_reductions(n->left) + tune_count_reductions(n->right) : 0;
}

int64_t tune_places_of(const tune_axis *axes, const tune_window *w)
{
    __int128 places = (__int128)(axes[w->kept].size - 1) * w->stride + (__int128)(axes[w->summed].size - 1) * w->dilation + 1;
    return places > TUNE_MOST_PRODUCTS ? TUNE_MOST_PRODUCTS + 1 : (int64_t)places;
}

/* Places of the image, which an axis of its own has. Without a name they follow where the border behind it is that in front, and its last
 * place is one of a window. */
static bool find_size_of_image(reader *r, const visa_tune_options *o, tune_window *w)
{
    const tune_expression *e = r->e;
    arena *a = r->diags->arena;
    int64_t taken = tune_places_of(e->axes, w);
    for (size_t p = 0; p < o->size_count && w->own.asked; p++)
        if (strcmp(o->sizes[p].name, w->own.asked) == 0)
            w->own.size = o->sizes[p].values[0];
    if (w->own.asked && w->own.size < 1) {
        diag *d = diag_add(r->diags, E_TUNE_SIZE, w->own.range, "axis `%s` has no size of at least 1", w->own.asked);
        diag_help(r->diags, d, "give it one: -D %s=%" PRId64, w->own.asked, larger(1, taken - 2 * w->before));
        return false;
    }
    if (larger(taken, w->own.size) > TUNE_MOST_PRODUCTS) {
        diag *d =
            diag_add(r->diags, E_TUNE_SIZE, w->own.asked ? w->own.range : e->axes[w->kept].range, "an image has more than 2^52 elements");
        diag_help(r->diags, d, "ask for a part of it that one launch computes");
        return false;
    }
    if (!w->own.asked && w->before != 0 && w->stride > 1) {
        diag *d = diag_add(r->diags, E_TUNE_SIZE, e->axes[w->kept].range,
                           "with windows that begin every %" PRId64 " places, an image of %" PRId64
                           " places has as many results as one of %" PRId64,
                           w->stride, taken - 2 * w->before, taken - 2 * w->before + w->stride - 1);
        diag_help(r->diags, d, "name its axis, and give it a size: h = %s*%" PRId64 " + .., -D h=%" PRId64, e->axes[w->kept].asked,
                  w->stride, taken - 2 * w->before + w->stride - 1);
        return false;
    }
    if (!w->own.asked) {
        w->own = (tune_axis){.size = taken - 2 * w->before, .range = e->axes[w->kept].range};
        w->own.name = w->own.asked = tune_unused_name(e->axes, e->axis_count, arena_printf(a, "%s_IN", e->axes[w->kept].name), a);
    }
    w->wide = tune_unused_name(e->axes, e->axis_count, arena_printf(a, "%s_WIDE", w->own.name), a);
    if (tune_is_axis(e->axes, e->axis_count, w->own.name))
        return refuse(r, w->own.range, arena_printf(a, "`%s` is an axis of the question, and none of an image alone", w->own.asked));
    if (w->own.size >= 1 && smaller(taken, w->before + w->own.size) - larger(0, w->before) >= 1)
        return true;
    return refuse_window(r, w->own.range, "no window takes a place of the image");
}

static bool find_sizes(reader *r, const visa_tune_options *o)
{
    tune_expression *q = r->e;
    __int128 products = 1;
    for (size_t i = 0; i < q->axis_count; i++) {
        tune_axis *a = &q->axes[i];
        for (size_t p = 0; p < o->size_count; p++)
            if (strcmp(o->sizes[p].name, a->asked) == 0)
                a->size = o->sizes[p].values[0];
        if (a->size < 1) {
            diag *d = diag_add(r->diags, E_TUNE_SIZE, a->range, "axis `%s` has no size of at least 1", a->asked);
            diag_help(r->diags, d, "give it one: -D %s=1024", a->asked);
            return false;
        }
        products *= a->size;
        if (products > TUNE_MOST_PRODUCTS) {
            diag *d = diag_add(r->diags, E_TUNE_SIZE, a->range,
                               "the question has more than 2^52 multiplications with the %" PRId64 " elements of `%s`", a->size, a->asked);
            diag_help(r->diags, d, "ask for a part of it that one launch computes");
            return false;
        }
    }
    for (size_t i = 0; i < q->window_count; i++)
        if (!find_size_of_image(r, o, &q->windows[i]))
            return false;
    for (size_t p = 0; p < o->size_count; p++) {
        size_t i = 0;
        while (i < q->axis_count && strcmp(q->axes[i].asked, o->sizes[p].name) != 0)
            i++;
        for (size_t k = 0; k < q->window_count; k++)
            if (q->windows[k].own.asked && strcmp(q->windows[k].own.asked, o->sizes[p].name) == 0)
                i = 0;
        for (size_t before = 0; before < p; before++)
            if (strcmp(o->sizes[before].name, o->sizes[p].name) == 0) {
                diag *d = diag_add(r->diags, E_TUNE_SIZE, SRC_NOWHERE, "-D gives axis `%s` a size twice", o->sizes[p].name);
                diag_help(r->diags, d, "leave one of them away");
                return false;
            }
        if (i == q->axis_count) {
            diag *d =
                diag_add(r->diags, E_TUNE_SIZE, SRC_NOWHERE, "the question has no axis `%s`, which -D gives a size", o->sizes[p].name);
            diag_help(r->diags, d, "its axes are those in the brackets of its tensors; case counts");
            return false;
        }
    }
    return true;
}

static unsigned moved_bits(unsigned bits, const size_t *number_of)
{
    unsigned moved = 0;
    for (size_t i = 0; i < TUNE_AXES_MAX; i++)
        moved |= bits >> i & 1 ? 1U << number_of[i] : 0;
    return moved;
}

/* Axes are in the order in which tensors have them, so that the one of sum(k, l) is nobody's. */
static void order_axes(reader *r)
{
    tune_expression *e = r->e;
    const tune_expression asked = *e;
    size_t number_of[TUNE_AXES_MAX] = {0}, count = 0;
    unsigned seen = 0;
    for (size_t t = 0; t <= e->tensor_count; t++) /* those of no tensor come last */
        for (size_t i = 0; i < (t < e->tensor_count ? e->tensors[t].count : e->axis_count); i++) {
            size_t axis = t < e->tensor_count ? e->tensors[t].axes[i] : i;
            if (seen >> axis & 1)
                continue;
            seen |= 1U << axis;
            e->axes[count] = asked.axes[axis];
            number_of[axis] = count++;
        }
    for (size_t t = 0; t < e->tensor_count; t++)
        for (size_t i = 0; i < e->tensors[t].count; i++)
            e->tensors[t].axes[i] = number_of[asked.tensors[t].axes[i]];
    for (size_t i = 0; i < e->window_count; i++) {
        e->windows[i].kept = number_of[asked.windows[i].kept];
        e->windows[i].summed = number_of[asked.windows[i].summed];
    }
    for (size_t i = 0; i < e->node_count; i++)
        r->nodes[i]->over = moved_bits(r->nodes[i]->over, number_of);
}

/* Names in a list, "b,c", in any case. */
static bool mark_free(reader *r, const char *names)
{
    for (const char *at = names; at && *at;) {
        size_t length = strcspn(at, ",");
        const char *name = in_case(arena_strndup(r->diags->arena, at, length), tolower, r->diags->arena);
        bool found = false;
        for (size_t i = 0; i < r->e->tensor_count; i++)
            if (strcmp(r->e->tensors[i].name, name) == 0)
                found = r->e->tensors[i].is_free = true;
        if (!found) {
            diag *d = diag_add(r->diags, E_TUNE_QUESTION, tune_whole_range(r->e->file, r->text),
                               "`%s` of --free is no tensor of the question", name);
            diag_help(r->diags, d, "name its tensors, with commas: --free=%s", r->e->tensors[0].name);
            return false;
        }
        at += length + (at[length] == ',');
    }
    return true;
}

static bool multiplies_floats(const visa_tune_options *o)
{
    dtype type;
    return !o->dtype || (dtype_by_name(o->dtype, &type) && dtype_row_of(type)->kind == DTYPE_KIND_FLOAT);
}

bool tune_expression_read(const char *text, int file, const visa_tune_options *options, diag_list *diags, tune_expression *out)
{
    *out = (tune_expression){.text = text, .file = file};
    reader r = {.text = text, .diags = diags, .e = out, .nodes = ARENA_ARRAY(diags->arena, tune_node *, TUNE_NODES_MAX)};
    size_t result;
    if (strlen(text) > TUNE_TEXT_MAX)
        return refuse(&r, (src_range){file, 0, 1}, arena_printf(diags->arena, "a question has at most %d bytes", TUNE_TEXT_MAX));
    if (!read_tensor(&r, &result) || !expect(&r, '='))
        return false;
    r.known = tune_axes_of(out, result);
    if (!(out->root = read_expression(&r)))
        return false;
    skip_blanks(&r);
    size_t begin = r.at;
    if (text[begin] != '\0') {
        r.at += strlen(text + begin);
        return refuse(&r, range_from(&r, begin), "the question has ended: an operation is expected here");
    }
    order_axes(&r);
    if (!mark_free(&r, options->free_tensors) || !find_sizes(&r, options))
        return false;
    tune_factors_arrange(out, r.nodes, smaller((int64_t)out->node_count, TUNE_NODES_MAX), multiplies_floats(options), diags->arena);
    return true;
}

/* Axes of one position that are reduced without others. */
static unsigned reduced_alone(const tune_node *n, unsigned single)
{
    if (!n)
        return 0;
    return (n->over & ~single ? 0 : n->over) | reduced_alone(n->left, single) | reduced_alone(n->right, single);
}

tune_expression tune_expression_flowing(const tune_expression *e, arena *a)
{
    tune_expression x = *e;
    bool has_scalar = false;
    for (size_t i = 0; i < e->axis_count; i++)
        x.absent |= e->axes[i].size == 1 ? 1U << i : 0;
    x.absent &= ~reduced_alone(e->root, x.absent);
    for (size_t t = 1; t < e->tensor_count; t++)
        has_scalar = has_scalar || !(tune_axes_of(e, t) & ~x.absent);
    if (!has_scalar || e->axis_count == TUNE_AXES_MAX)
        return x;
    const char *name = tune_unused_name(e->axes, e->axis_count, "ONE", a);
    x.implied = 1U << x.axis_count;
    for (size_t t = 0; t < x.tensor_count; t++) {
        tune_tensor *of = &x.tensors[t];
        memmove(&of->axes[1], &of->axes[0], of->count++ * sizeof *of->axes);
        of->axes[0] = x.axis_count;
    }
    x.axes[x.axis_count++] = (tune_axis){.name = name, .asked = name, .size = 1, .range = e->axes[0].range};
    return x;
}
