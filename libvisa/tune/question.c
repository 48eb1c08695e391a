#include "libvisa/tune/question.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/budget.h"
#include "support/integer.h"

static const int64_t MOST_PRODUCTS = INT64_C(1) << 52; /* multiplications of a question, so that sums of cycles stay in 64 bits */

typedef struct reader {
    const char *text;
    size_t at;
    int file;
    diag_list *diags;
    tune_question *q;
    bool has_sum, has_product; /* the text says sum(..); the operands are read */
} reader;

static src_range range_from(const reader *r, size_t begin)
{
    return (src_range){r->file, (uint32_t)begin, (uint32_t)r->at};
}

static bool refuse(reader *r, src_range range, const char *what)
{
    diag *d = diag_add(r->diags, E_TUNE_QUESTION, range, "%s", what);
    bool ends = range.begin >= strlen(r->text); /* its other words may have been arguments of their own */
    diag_help(r->diags, d, "write it %s",
              ends ? "in quotes, 'C[m, n] = sum(k) A[m, k] * B[n, k]': a shell takes it apart without them"
                   : "as C[m, n] = sum(k) A[m, k] * B[n, k]");
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
    src_range here = {r->file, (uint32_t)r->at, (uint32_t)(r->at + (r->text[r->at] != '\0'))};
    return refuse(r, here, arena_printf(r->diags->arena, "`%c` is expected here", c));
}

/* A letter and letters, digits and _; NULL: there is none, diagnosed. */
static const char *read_name(reader *r, const char *what, src_range *range)
{
    skip_blanks(r);
    size_t begin = r->at;
    while (isalnum((unsigned char)r->text[r->at]) || (r->at > begin && r->text[r->at] == '_'))
        r->at++;
    *range = (src_range){r->file, (uint32_t)begin, (uint32_t)(r->at + (r->at == begin && r->text[r->at] != '\0'))};
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
    tune_question *q = r->q;
    const char *name = in_case(asked, toupper, r->diags->arena);
    for (*out = 0; *out < q->axis_count; ++*out) {
        if (strcmp(q->axes[*out].asked, asked) == 0)
            return true;
        if (strcmp(q->axes[*out].name, name) == 0)
            return refuse(r, range,
                          arena_printf(r->diags->arena, "axes `%s` and `%s` differ in case alone: both are %s in a kernel",
                                       q->axes[*out].asked, asked, name));
    }
    if (q->axis_count == TUNE_AXES_MAX)
        return refuse(r, range, arena_printf(r->diags->arena, "a question has at most %d axes", TUNE_AXES_MAX));
    q->axes[q->axis_count++] = (tune_axis){.name = name, .asked = asked, .range = range};
    return true;
}

static bool refuse_window(reader *r, src_range range, const char *what)
{
    diag *d = diag_add(r->diags, E_TUNE_LAYOUT, range, "%s", what);
    diag_help(r->diags, d,
              "a convolution is asked as O[n, y, x, f] = sum(r, s, c) I[n, y*2 + r, x*2 + s, c] * W[f, r, s, c], with or without n; an "
              "image has its border of zeros "
              "in HBM");
    return false;
}

/* "* 2" behind an axis of a window. */
static bool read_factor_of_axis(reader *r, int64_t *out)
{
    *out = 1;
    if (!takes(r, '*'))
        return true;
    skip_blanks(r);
    size_t begin = r->at, digits = strspn(r->text + begin, "0123456789");
    r->at += digits;
    *out = digits > 0 && digits < 6 ? strtol(r->text + begin, NULL, 10) : 0;
    return *out > 0 || refuse_window(r, range_from(r, begin), "an axis of a window counts by 1 to 99999 places");
}

static bool axis_of_tensor(reader *r, tune_tensor *t, unsigned bit, size_t *axis)
{
    src_range range;
    const char *name = read_name(r, "the name of an axis", &range);
    if (!name || !axis_index(r, name, range, axis))
        return false;
    tune_axis *a = &r->q->axes[*axis];
    if (a->stands_in & bit)
        return refuse(r, range, arena_printf(r->diags->arena, "axis `%s` stands here twice", name));
    a->stands_in |= bit;
    if (t)
        t->axes[t->count++] = *axis;
    return true;
}

/* What may follow an axis of an operand: `y*2 + r`. */
static bool read_window(reader *r, tune_tensor *t, unsigned bit, size_t kept)
{
    skip_blanks(r);
    size_t begin = r->at;
    char c = r->text[begin];
    if (c != '*' && c != '+' && c != '-')
        return true;
    tune_window w = {.kept = kept};
    if (!t || !(bit & (1U << TUNE_LEFT | 1U << TUNE_RIGHT)) || r->q->window_count == TUNE_WINDOWS)
        return refuse_window(r, range_from(r, begin), "a window stands here, or a third one");
    if (!read_factor_of_axis(r, &w.stride))
        return false;
    if (!takes(r, '+'))
        return refuse_window(r, range_from(r, begin), "a window is a kept axis and a summed one, and begins inside of its image");
    skip_blanks(r);
    if (isdigit((unsigned char)r->text[r->at]))
        return refuse_window(r, range_from(r, begin), "a window has no distance of its own");
    if (!axis_of_tensor(r, t, bit, &w.summed) || !read_factor_of_axis(r, &w.dilation))
        return false;
    skip_blanks(r);
    if (r->text[r->at] == '-' || r->text[r->at] == '+')
        return refuse_window(r, range_from(r, begin), "a window begins inside of its image: padding is not made by the kernel");
    r->q->windows[r->q->window_count++] = w;
    return true;
}

/* Names up to `end`; of a tensor where there is one. */
static bool read_axes(reader *r, char end, tune_tensor *t, unsigned bit)
{
    if (takes(r, end))
        return true;
    do {
        size_t axis;
        if (!axis_of_tensor(r, t, bit, &axis) || !read_window(r, t, bit, axis))
            return false;
    } while (takes(r, ','));
    return expect(r, end);
}

static bool is_called(const tune_tensor *other, const tune_tensor *t)
{
    return other != t && other->name && strcmp(other->name, t->name) == 0;
}

/* Words of the language, and names that a kernel has itself. */
static bool is_taken(const char *name)
{
    static const char *const words[] = {
        "device", "weights", "rows",     "columns", "products", "pieces", "lying", "lying_rows", "i",     "j",      "g",
        "fn",     "let",     "for",      "in",      "mut",      "const",  "type",  "struct",     "if",    "as",     "use",
        "axes",   "else",    "sums",     "next",    "before",   "l",      "true",  "false",      "while", "loop",   "return",
        "where",  "dyn",     "contract", "break",   "continue", "crate",  "enum",  "extern",     "move",  "static", "super",
        "trait",  "unsafe",  "async",    "await",   "gate",     "match",  "mod",   "pub",        "ref",   "self",   "impl"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return strncmp(name, "values", 6) == 0;
}

static bool read_tensor(reader *r, tune_tensor *t, unsigned bit)
{
    const tune_question *q = r->q;
    const char *name = read_name(r, "the name of a tensor", &t->range);
    if (!name)
        return false;
    t->name = in_case(name, tolower, r->diags->arena);
    t->port = is_taken(t->name) ? arena_printf(r->diags->arena, "%s_port", t->name) : t->name;
    bool taken = false;
    for (int p = 0; p < TUNE_PLACES; p++)
        taken = taken || is_called(&q->tensors[p], t);
    for (size_t i = 0; i < q->extra_count; i++)
        taken = taken || is_called(&q->extras[i].tensor, t);
    if (taken)
        return refuse(r, t->range, arena_printf(r->diags->arena, "two tensors are called `%s`", t->name));
    return expect(r, '[') && read_axes(r, ']', t, bit);
}

/* Bits of tune_axis.stands_in: the tensors, sum(..), and operands after the sum. */
enum { SUMMED = 1 << TUNE_PLACES, EXTRA = 2 << TUNE_PLACES };

/* ---- what is done to a sum ---- */

/* A part of the right side: a number, a tensor, or what the operations up to here have made of the sum. */
typedef enum value_kind { VALUE_NUMBER, VALUE_TENSOR, VALUE_SUM } value_kind;
typedef struct value {
    value_kind kind;
    double number;
    const char *name; /* of a tensor */
} value;

static const struct {
    const char *name;
    tune_operator what;
} functions[] = {{"exp", TUNE_EXP},   {"log", TUNE_LOG},         {"sqrt", TUNE_SQRT}, {"sin", TUNE_SIN},  {"cos", TUNE_COS},
                 {"tanh", TUNE_TANH}, {"sigmoid", TUNE_SIGMOID}, {"silu", TUNE_SILU}, {"gelu", TUNE_GELU}};

static bool append(reader *r, size_t begin, tune_operation o)
{
    tune_question *q = r->q;
    if (q->operation_count == TUNE_OPERATIONS_MAX)
        return refuse(r, range_from(r, begin),
                      arena_printf(r->diags->arena, "at most %d operations are done to a sum", TUNE_OPERATIONS_MAX));
    q->operations[++q->operation_count] = o;
    return true;
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

/* Of two parts of which one may be the sum's. */
static bool combine(reader *r, size_t begin, tune_operator what, value *a, value b)
{
    if (a->kind == VALUE_NUMBER && b.kind == VALUE_NUMBER) {
        a->number = folded(what, a->number, b.number);
        return isfinite((float)a->number) || refuse(r, range_from(r, begin), "this number is none of f32");
    }
    if (a->kind != VALUE_SUM && b.kind != VALUE_SUM)
        return refuse(r, range_from(r, begin), "an operation without the sum: compute it in front of the kernel");
    bool reversed = b.kind == VALUE_SUM;
    value other = reversed ? *a : b;
    tune_operation o = {
        .what = what, .reversed = reversed && (what == TUNE_SUBTRACT || what == TUNE_DIVIDE), .operand = other.name, .value = other.number};
    if (what == TUNE_SUBTRACT && !reversed && !other.name) {
        o.what = TUNE_ADD;
        o.value = -other.number;
    }
    *a = (value){.kind = VALUE_SUM};
    return append(r, begin, o);
}

static bool apply(reader *r, size_t begin, tune_operator what, value *v)
{
    if (v->kind != VALUE_SUM)
        return refuse(r, range_from(r, begin), "a function without the sum: compute it in front of the kernel");
    return append(r, begin, (tune_operation){.what = what});
}

static bool read_expression(reader *r, value *out);

static bool read_number(reader *r, value *out)
{
    size_t begin = r->at, digits = strspn(r->text + r->at, "0123456789");
    r->at += digits;
    if (r->text[r->at] == '.')
        r->at += 1 + strspn(r->text + r->at + 1, "0123456789");
    if (r->text[r->at] == 'e' || r->text[r->at] == 'E') {
        size_t sign = r->text[r->at + 1] == '-' || r->text[r->at + 1] == '+', power = strspn(r->text + r->at + 1 + sign, "0123456789");
        r->at += power ? 1 + sign + power : 0;
    }
    *out = (value){.number = strtod(arena_strndup(r->diags->arena, r->text + begin, r->at - begin), NULL)};
    return isfinite((float)out->number) || refuse(r, range_from(r, begin), "this number is none of f32");
}

static bool read_product(reader *r, value *out)
{
    tune_tensor *operands = r->q->tensors;
    r->has_product = true;
    *out = (value){.kind = VALUE_SUM};
    return read_tensor(r, &operands[TUNE_LEFT], 1U << TUNE_LEFT) && expect(r, '*') &&
           read_tensor(r, &operands[TUNE_RIGHT], 1U << TUNE_RIGHT);
}

static bool read_sum(reader *r, size_t begin, value *out)
{
    if (r->has_product)
        return refuse(r, range_from(r, begin), "a question has one sum");
    return expect(r, '(') && read_axes(r, ')', NULL, SUMMED) && read_product(r, out);
}

static bool read_extra(reader *r, value *out)
{
    tune_question *q = r->q;
    src_range range;
    if (q->extra_count == TUNE_EXTRAS_MAX) {
        size_t begin = r->at;
        return refuse(r, range_from(r, begin), arena_printf(r->diags->arena, "at most %d tensors meet a sum", TUNE_EXTRAS_MAX));
    }
    tune_extra *e = &q->extras[q->extra_count++];
    if (!read_tensor(r, &e->tensor, (unsigned)EXTRA << (q->extra_count - 1)))
        return false;
    if (takes(r, ':') && !(e->asked_type = read_name(r, "the type of a tensor", &range)))
        return false;
    *out = (value){.kind = VALUE_TENSOR, .name = e->tensor.port};
    return true;
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

static bool read_call(reader *r, size_t begin, value *out, bool *is_call)
{
    static const struct {
        const char *name;
        tune_operator what;
    } binary[] = {{"max", TUNE_LARGER}, {"min", TUNE_SMALLER}};
    *is_call = true;
    if (takes_call(r, "sum"))
        return read_sum(r, begin, out);
    if (takes_call(r, "relu"))
        return expect(r, '(') && read_expression(r, out) && expect(r, ')') && combine(r, begin, TUNE_LARGER, out, (value){0});
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        if (takes_call(r, binary[i].name)) {
            value b;
            return expect(r, '(') && read_expression(r, out) && expect(r, ',') && read_expression(r, &b) && expect(r, ')') &&
                   combine(r, begin, binary[i].what, out, b);
        }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (takes_call(r, functions[i].name))
            return expect(r, '(') && read_expression(r, out) && expect(r, ')') && apply(r, begin, functions[i].what, out);
    *is_call = false;
    return true;
}

static bool read_factor(reader *r, value *out)
{
    skip_blanks(r);
    size_t begin = r->at;
    char c = r->text[begin];
    bool is_call;
    if (takes(r, '('))
        return read_expression(r, out) && expect(r, ')');
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)r->text[begin + 1])))
        return read_number(r, out);
    bool good = read_call(r, begin, out, &is_call);
    if (is_call)
        return good;
    return r->has_sum || r->has_product ? read_extra(r, out) : read_product(r, out);
}

static bool read_term(reader *r, value *out)
{
    skip_blanks(r);
    size_t begin = r->at;
    bool negative = takes(r, '-');
    if (!read_factor(r, out) || (negative && !combine(r, begin, TUNE_TIMES, out, (value){.number = -1})))
        return false;
    for (;;) {
        bool times = takes(r, '*');
        value b;
        if (!times && !takes(r, '/'))
            return true;
        if (!read_factor(r, &b) || !combine(r, begin, times ? TUNE_TIMES : TUNE_DIVIDE, out, b))
            return false;
    }
}

STACK_APART static bool read_expression(reader *r, value *out)
{
    budget_enter(r->diags->arena);
    skip_blanks(r);
    size_t begin = r->at;
    bool good = read_term(r, out);
    while (good) {
        bool plus = takes(r, '+');
        value b;
        if (!plus && !takes(r, '-'))
            break;
        good = read_term(r, &b) && combine(r, begin, plus ? TUNE_ADD : TUNE_SUBTRACT, out, b);
    }
    budget_leave(r->diags->arena);
    return good;
}

/* Does the text say sum(..)? Without one its first two tensors are the operands, of which assign_roles says more. */
static bool says_sum(const char *text)
{
    for (const char *at = strstr(text, "sum"); at; at = strstr(at + 1, "sum"))
        if ((at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) && at[3 + strspn(at + 3, " \t\r\n\v\f")] == '(')
            return true;
    return false;
}

static bool read_text(reader *r)
{
    value v;
    r->has_sum = says_sum(r->text);
    if (!read_tensor(r, &r->q->tensors[TUNE_OUT], 1U << TUNE_OUT) || !expect(r, '=') || !read_expression(r, &v))
        return false;
    skip_blanks(r);
    size_t begin = r->at;
    if (r->text[begin] == '\0')
        return true;
    r->at += strlen(r->text + begin);
    return refuse(r, range_from(r, begin), "the question has ended: an operation is expected here");
}

/* What each axis is, by the tensors that it stands in. */
static bool assign_roles(reader *r)
{
    enum { LEFT = 1 << TUNE_LEFT, RIGHT = 1 << TUNE_RIGHT, OUT = 1 << TUNE_OUT };
    tune_question *q = r->q;
    const tune_tensor *out = &q->tensors[TUNE_OUT];
    unsigned last = out->count ? q->axes[out->axes[out->count - 1]].stands_in : 0;
    q->weights = (last & (LEFT | RIGHT)) == LEFT ? TUNE_LEFT : TUNE_RIGHT;
    q->stream = q->weights == TUNE_LEFT ? TUNE_RIGHT : TUNE_LEFT;
    for (size_t i = 0; i < q->axis_count; i++) {
        tune_axis *a = &q->axes[i];
        unsigned in = a->stands_in & (LEFT | RIGHT | OUT);
        bool is_summed = a->stands_in & SUMMED;
        diag *d = NULL;
        if (in == (LEFT | RIGHT | OUT))
            a->role = TUNE_BATCH;
        else if (in == (OUT | 1U << q->stream))
            a->role = TUNE_ROW;
        else if (in == (OUT | 1U << q->weights))
            a->role = TUNE_COLUMN;
        else if (in == (LEFT | RIGHT))
            a->role = TUNE_SUM;
        else if (in == OUT || in == 0)
            d = diag_add(r->diags, E_TUNE_AXIS, a->range, "axis `%s` stands in no operand", a->asked);
        else
            d = diag_add(r->diags, E_TUNE_AXIS, a->range, "axis `%s` stands in one operand only: no multiplication is summed over it",
                         a->asked);
        if (!d && is_summed != (a->role == TUNE_SUM))
            d = diag_add(r->diags, E_TUNE_AXIS, a->range,
                         is_summed ? "axis `%s` is summed and stands in the result" : "axis `%s` is not in the result and not in sum(..)",
                         a->asked);
        if (d) {
            diag_help(r->diags, d,
                      "an axis stands in both operands, in one and the result, or in all three; sum(..) names those that the result lacks");
            return false;
        }
    }
    return true;
}

/* The axes of a role in a tensor, in its order, must be those of the question and lie together: [batch, kept, summed], or turned. */
static bool check_order(reader *r, tune_place place)
{
    tune_question *q = r->q;
    const tune_tensor *t = &q->tensors[place];
    size_t last[TUNE_ROLES] = {0};
    int role = TUNE_BATCH, inside = TUNE_ROLES; /* the kind at hand, and the one that may not come any more */
    for (size_t i = 0; i < t->count; i++) {
        const tune_axis *a = &q->axes[t->axes[i]];
        bool changes = (int)a->role != role;
        if (changes && (a->role == TUNE_BATCH || (int)a->role == inside)) {
            diag *d = diag_add(r->diags, E_TUNE_LAYOUT, t->range,
                               "the axes of `%s` are not in the order batch, kept, summed, or batch, summed, kept: `%s` stands apart from "
                               "its kind or after an axis of a later one",
                               t->name, a->asked);
            diag_help(r->diags, d,
                      "write them in that order; a tensor that lies otherwise in HBM is brought into it by a kernel of its own");
            return false;
        }
        if (changes) {
            q->turned[place] = role == TUNE_SUM;
            inside = role == TUNE_BATCH ? inside : role;
        }
        role = (int)a->role;
        if (last[role] > t->axes[i] + 1) {
            diag *d =
                diag_add(r->diags, E_TUNE_LAYOUT, t->range, "`%s` has `%s` in another order than the tensors before it", t->name, a->asked);
            diag_help(r->diags, d, "write axes of one kind in one order in all tensors");
            return false;
        }
        last[role] = t->axes[i] + 1;
    }
    return true;
}

int64_t tune_window_places(const tune_question *q, size_t window)
{
    const tune_window *w = &q->windows[window];
    return (q->axes[w->kept].size - 1) * w->stride + (q->axes[w->summed].size - 1) * w->dilation + 1;
}

/* A convolution in the one form that kernels are made for. */
static bool check_windows(reader *r)
{
    tune_question *q = r->q;
    const tune_tensor *image = &q->tensors[q->stream], *filter = &q->tensors[q->weights], *out = &q->tensors[TUNE_OUT];
    size_t first = image->count == 6, y = q->windows[0].kept, x = q->windows[1].kept, down = q->windows[0].summed,
           across = q->windows[1].summed;
    bool counts = q->window_count == TUNE_WINDOWS && (image->count == 5 || first) && filter->count == 4 && out->count == 3 + first;
    if (!counts || image->axes[first] != y || image->axes[first + 2] != x || out->axes[first] != y || out->axes[first + 1] != x ||
        (first && out->axes[0] != image->axes[0]) || filter->axes[0] != out->axes[first + 2] || filter->axes[1] != down ||
        filter->axes[2] != across || filter->axes[3] != image->axes[first + 4])
        return refuse_window(r, image->range, "windows stand in a question that is no convolution of images whose channels are innermost");
    q->window_channel = filter->axes[3];
    if (first)
        q->axes[out->axes[0]].role = TUNE_BATCH; /* an iteration for each image */
    __int128 cells = q->axes[q->window_channel].size;
    for (size_t i = 0; i < TUNE_WINDOWS; i++) {
        const tune_window *w = &q->windows[i];
        cells *= (__int128)(q->axes[w->kept].size - 1) * w->stride + (__int128)(q->axes[w->summed].size - 1) * w->dilation + 1;
        if (cells > MOST_PRODUCTS) {
            diag *d = diag_add(r->diags, E_TUNE_SIZE, image->range, "an image of `%s` has more than 2^52 elements", image->name);
            diag_help(r->diags, d, "ask for a part of it that one launch computes");
            return false;
        }
    }
    unsigned bits = dtype_row_of(q->type)->bits;
    if (q->axes[q->window_channel].size * bits % 256 != 0)
        return refuse_window(r, image->range,
                             arena_printf(r->diags->arena,
                                          "an image has channels in multiples of %d: they are the packets that are multiplied",
                                          (int)(256 / bits)));
    if (q->axes[filter->axes[0]].size % 8 != 0)
        return refuse_window(r, filter->range, "a convolution has columns in multiples of 8, the Rows of the Reducer");
    if (q->operation_count > 0 || q->whole.count > 0)
        return refuse_window(r, out->range, "operations on the sums of a convolution are not made yet: ask for the sums alone");
    return true;
}

static bool find_sizes(reader *r, const visa_tune_options *o)
{
    tune_question *q = r->q;
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
        if (products > MOST_PRODUCTS) {
            diag *d = diag_add(r->diags, E_TUNE_SIZE, a->range,
                               "the question has more than 2^52 multiplications with the %" PRId64 " elements of `%s`", a->size, a->asked);
            diag_help(r->diags, d, "ask for a part of it that one launch computes");
            return false;
        }
    }
    for (size_t p = 0; p < o->size_count; p++) {
        size_t i = 0;
        while (i < q->axis_count && strcmp(q->axes[i].asked, o->sizes[p].name) != 0)
            i++;
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

static bool refuse_extra(reader *r, const tune_extra *e, diag_id id, const char *what, const char *help)
{
    diag *d = diag_add(r->diags, id, e->tensor.range, "`%s` %s", e->tensor.name, what);
    diag_help(r->diags, d, "%s", help);
    return false;
}

/* Operands after the sum have whole groups of kept axes, in the order of the result. */
static bool check_extras(reader *r)
{
    tune_question *q = r->q;
    for (size_t i = 0; i < q->extra_count; i++) {
        tune_extra *e = &q->extras[i];
        size_t of_role[TUNE_ROLES] = {0}, before = 0;
        int role = TUNE_BATCH;
        for (size_t n = 0; n < e->tensor.count; n++) {
            const tune_axis *a = &q->axes[e->tensor.axes[n]];
            if (a->role == TUNE_SUM)
                return refuse_extra(r, e, E_TUNE_AXIS, "has an axis that is summed, and meets the sum",
                                    "multiply it in front of the kernel");
            if ((int)a->role < role || ((int)a->role == role && before > e->tensor.axes[n]))
                return refuse_extra(r, e, E_TUNE_LAYOUT, "has its axes in another order than the result has them",
                                    "write them as the result's: batches, those of rows, those of columns");
            role = (int)a->role;
            before = e->tensor.axes[n] + 1;
            of_role[role]++;
        }
        for (size_t n = 0; n < q->axis_count; n++)
            if (q->axes[n].role != TUNE_SUM && of_role[q->axes[n].role] > 0)
                of_role[q->axes[n].role] += TUNE_AXES_MAX;
        for (int k = TUNE_BATCH; k < TUNE_SUM; k++) {
            e->has[k] = of_role[k] > 0;
            if (e->has[k] && of_role[k] % (TUNE_AXES_MAX + 1) != 0)
                return refuse_extra(r, e, E_TUNE_LAYOUT, "has some axes of a kind and lacks others", "give it all of them, or none");
        }
        if (!e->has[TUNE_ROW] && !e->has[TUNE_COLUMN])
            return refuse_extra(r, e, E_TUNE_AXIS, "has no axis of the result that an operand keeps", "write a number in its place");
    }
    return true;
}

/* Are sums and all that is done to them integers? */
static bool stays_whole(const tune_question *q)
{
    bool whole = dtype_row_of(q->type)->accumulates_in == DTYPE_I32 && tune_operations_are_whole(q->operations + 1, q->operation_count);
    for (size_t i = 0; i < q->extra_count; i++) {
        dtype type;
        const char *asked = q->extras[i].asked_type;
        whole = whole && (!asked || !dtype_by_name(asked, &type) || dtype_row_of(type)->kind == DTYPE_KIND_INT);
    }
    return whole;
}

/* What is done to the sums, and in which types. */
static bool find_epilogue(reader *r)
{
    tune_question *q = r->q;
    dtype sums = dtype_row_of(q->type)->accumulates_in;
    bool whole = stays_whole(q);
    dtype meets = q->meets = whole ? DTYPE_I32 : DTYPE_F32;
    for (size_t i = 0; i < q->extra_count; i++) {
        tune_extra *e = &q->extras[i];
        e->type = meets;
        if (e->asked_type &&
            (!dtype_by_name(e->asked_type, &e->type) || (e->type != meets && !target_converts(ENGINE_ID_FETCH, e->type, meets))))
            return refuse_extra(r, e, E_TUNE_TYPE,
                                arena_printf(r->diags->arena, "is of `%s`, which is not fetched as the %s that it meets", e->asked_type,
                                             dtype_row_of(meets)->name),
                                "give it another type, or leave it away");
    }
    q->operations[0] = (tune_operation){.what = TUNE_ADD, .operand = "before"};
    q->whole = tune_epilogue_make(q->operations + 1, q->operation_count, whole, sums, q->out_type, r->diags->arena);
    q->last_part = tune_epilogue_make(q->operations, q->operation_count + 1, whole, sums, q->out_type, r->diags->arena);
    return true;
}

const tune_epilogue *tune_epilogue_of(const tune_question *q, int64_t parts)
{
    return parts > 1 ? &q->last_part : &q->whole;
}

static bool find_types(reader *r, const visa_tune_options *o)
{
    tune_question *q = r->q;
    const char *type = o->dtype ? o->dtype : "bf16";
    if (!dtype_by_name(type, &q->type) || !dtype_is_operand(q->type) || dtype_is_staging(q->type)) {
        diag *d = diag_add(r->diags, E_TUNE_TYPE, SRC_NOWHERE, "`%s` is no type that the Reducer multiplies", type);
        diag_help(r->diags, d, "take i4, i8, f8e4m3, f8e5m2 or bf16");
        return false;
    }
    bool whole = stays_whole(q);
    q->out_type = whole ? DTYPE_I32 : DTYPE_F32;
    if (!o->out_dtype)
        return true;
    const char *found = dtype_row_of(q->out_type)->name;
    bool known = dtype_by_name(o->out_dtype, &q->out_type);
    dtype last = whole || (known && dtype_row_of(q->out_type)->kind == DTYPE_KIND_INT) ? DTYPE_I32 : DTYPE_F32;
    if (!known || (q->out_type != last && !target_converts(ENGINE_ID_CAST, last, q->out_type))) {
        diag *d = diag_add(r->diags, E_TUNE_TYPE, SRC_NOWHERE, "%s of %s are %s, which the Cast Engine does not make `%s`",
                           q->operation_count ? "results" : "sums", type, found, o->out_dtype);
        diag_help(r->diags, d, "leave --out away for %s", found);
        return false;
    }
    return true;
}

static bool is_axis(const tune_question *q, const char *name)
{
    for (size_t i = 0; i < q->axis_count; i++)
        if (strcmp(q->axes[i].name, name) == 0)
            return true;
    return false;
}

/* Axes of a role follow each other in every tensor, so they are one axis to a kernel: "K_L". */
static void name_roles(tune_question *q, arena *a)
{
    for (int role = 0; role < TUNE_ROLES; role++) {
        q->size[role] = 1;
        bool joined = false;
        for (size_t i = 0; i < q->axis_count; i++)
            if ((int)q->axes[i].role == role) {
                q->size[role] *= q->axes[i].size;
                joined = q->axis_text[role] != NULL;
                q->axis_text[role] = joined ? arena_printf(a, "%s_%s", q->axis_text[role], q->axes[i].name) : q->axes[i].name;
            }
        while (joined && is_axis(q, q->axis_text[role]))
            q->axis_text[role] = arena_printf(a, "%s_", q->axis_text[role]);
    }
}

/* Rows of what lies turned are of the kept axis. Where either axis has one position nothing is turned. */
static void find_rows(tune_question *q)
{
    for (int p = TUNE_LEFT; p <= TUNE_RIGHT; p++)
        q->turned[p] = q->turned[p] && q->size[TUNE_SUM] > 1 && q->size[tune_kept_of(q, (tune_place)p)] > 1;
}

static bool check_rows(const tune_question *q, diag_list *diags)
{
    for (int p = TUNE_LEFT; p <= TUNE_RIGHT; p++) {
        int64_t row = q->size[q->turned[p] ? tune_kept_of(q, (tune_place)p) : TUNE_SUM];
        if (row * dtype_row_of(q->type)->bits % 8 == 0)
            continue;
        diag *d = diag_add(diags, E_TUNE_SIZE, SRC_NOWHERE,
                           "rows of %" PRId64 " elements of %s in `%s` do not end with a byte, which no copy can cut", row,
                           dtype_row_of(q->type)->name, q->tensors[p].name);
        diag_help(diags, d, "take an even number of elements; zeros change nothing");
        return false;
    }
    return true;
}

tune_role tune_kept_of(const tune_question *q, tune_place operand)
{
    return operand == q->weights ? TUNE_COLUMN : TUNE_ROW;
}

bool tune_question_read(const char *text, int file, const visa_tune_options *options, diag_list *diags, tune_question *out)
{
    *out = (tune_question){.text = text};
    reader r = {.text = text, .file = file, .diags = diags, .q = out};
    if (strlen(text) > TUNE_TEXT_MAX)
        return refuse(&r, (src_range){file, 0, 1}, arena_printf(diags->arena, "a question has at most %d bytes", TUNE_TEXT_MAX));
    if (!read_text(&r) || !assign_roles(&r) || !find_sizes(&r, options) || !find_types(&r, options) || !check_extras(&r) ||
        !find_epilogue(&r))
        return false;
    if (out->window_count > 0 && !check_windows(&r))
        return false;
    for (int p = 0; p < TUNE_PLACES && out->window_count == 0; p++)
        if (!check_order(&r, (tune_place)p))
            return false;
    name_roles(out, diags->arena);
    if (!out->axis_text[TUNE_SUM]) {
        diag *d = diag_add(diags, E_TUNE_AXIS, (src_range){file, 0, (uint32_t)strlen(text)},
                           "nothing is summed: no axis stands in both operands and not in the result");
        diag_help(diags, d, "the Reducer multiplies and adds; a product of elements alone is the Vector Engine's");
        return false;
    }
    if (out->window_count > 0)
        return true;
    find_rows(out);
    return check_rows(out, diags);
}
