#include "libvisa/tune/question.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "support/integer.h"

static const int64_t MOST_PRODUCTS = INT64_C(1) << 52; /* multiplications of a question, so that sums of cycles stay in 64 bits */

typedef struct reader {
    const char *text;
    size_t at;
    int file;
    diag_list *diags;
    tune_question *q;
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

/* Names up to `end`; of a tensor where there is one. */
static bool read_axes(reader *r, char end, tune_tensor *t, unsigned bit)
{
    if (takes(r, end))
        return true;
    do {
        src_range range;
        size_t axis;
        const char *name = read_name(r, "the name of an axis", &range);
        if (!name || !axis_index(r, name, range, &axis))
            return false;
        tune_axis *a = &r->q->axes[axis];
        if (a->stands_in & bit)
            return refuse(r, range, arena_printf(r->diags->arena, "axis `%s` stands here twice", name));
        a->stands_in |= bit;
        if (t)
            t->axes[t->count++] = axis;
    } while (takes(r, ','));
    return expect(r, end);
}

static bool read_tensor(reader *r, tune_place place)
{
    tune_tensor *t = &r->q->tensors[place];
    const char *name = read_name(r, "the name of a tensor", &t->range);
    if (!name)
        return false;
    t->name = in_case(name, tolower, r->diags->arena);
    for (int p = 0; p < TUNE_PLACES; p++)
        if (p != (int)place && r->q->tensors[p].name && strcmp(r->q->tensors[p].name, t->name) == 0)
            return refuse(r, t->range, arena_printf(r->diags->arena, "two tensors are called `%s`", t->name));
    return expect(r, '[') && read_axes(r, ']', t, 1U << place);
}

enum { SUMMED = 1 << TUNE_PLACES };

static bool read_text(reader *r)
{
    if (!read_tensor(r, TUNE_OUT) || !expect(r, '='))
        return false;
    skip_blanks(r);
    if (strncmp(r->text + r->at, "sum", 3) == 0 && !isalnum((unsigned char)r->text[r->at + 3]) && r->text[r->at + 3] != '[') {
        r->at += 3;
        if (!expect(r, '(') || !read_axes(r, ')', NULL, SUMMED))
            return false;
    }
    if (!read_tensor(r, TUNE_LEFT) || !expect(r, '*') || !read_tensor(r, TUNE_RIGHT))
        return false;
    skip_blanks(r);
    size_t begin = r->at;
    if (r->text[begin] == '\0')
        return true;
    r->at += strlen(r->text + begin);
    return refuse(r, range_from(r, begin), "the question ends after its second operand");
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

static bool find_types(reader *r, const visa_tune_options *o)
{
    tune_question *q = r->q;
    const char *type = o->dtype ? o->dtype : "bf16";
    if (!dtype_by_name(type, &q->type) || !dtype_is_operand(q->type) || dtype_is_staging(q->type)) {
        diag *d = diag_add(r->diags, E_TUNE_TYPE, SRC_NOWHERE, "`%s` is no type that the Reducer multiplies", type);
        diag_help(r->diags, d, "take i4, i8, f8e4m3, f8e5m2 or bf16");
        return false;
    }
    dtype sum = dtype_row_of(q->type)->accumulates_in;
    q->out_type = sum;
    if (o->out_dtype &&
        (!dtype_by_name(o->out_dtype, &q->out_type) || (q->out_type != sum && !target_converts(ENGINE_ID_CAST, sum, q->out_type)))) {
        diag *d = diag_add(r->diags, E_TUNE_TYPE, SRC_NOWHERE, "sums of %s are %s, which the Cast Engine does not make `%s`", type,
                           dtype_row_of(sum)->name, o->out_dtype);
        diag_help(r->diags, d, "leave --out away for %s", dtype_row_of(sum)->name);
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
    if (!read_text(&r) || !assign_roles(&r) || !find_sizes(&r, options) || !find_types(&r, options))
        return false;
    for (int p = 0; p < TUNE_PLACES; p++)
        if (!check_order(&r, (tune_place)p))
            return false;
    name_roles(out, diags->arena);
    if (!out->axis_text[TUNE_SUM]) {
        diag *d = diag_add(diags, E_TUNE_AXIS, (src_range){file, 0, (uint32_t)strlen(text)},
                           "nothing is summed: no axis stands in both operands and not in the result");
        diag_help(diags, d, "the Reducer multiplies and adds; a product of elements alone is the Vector Engine's");
        return false;
    }
    find_rows(out);
    return check_rows(out, diags);
}
