/* The reference generator, judged by plain C.
 *
 * The judge walks every combination of digits as target/einsum.h defines it, rounds by looking the result up
 * among all codes of a type, and knows no LLVM. The same order of summation must give the same bits; another
 * order must stay within the bounds. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/reference_load.h"
#include "test/suite.h"

/* With LLVM loaded, LeakSanitizer of GCC 12 can take a wrong address for a thread-local block and crash when it
 * scans it at exit. Without these roots it reports more, never less. */
const char *__lsan_default_options(void);
__attribute__((visibility("default"))) const char *__lsan_default_options(void)
{
    return "use_tls=0";
}

enum { THREADS = 2 };

/* ck_assert_msg for what is asked of every element: libcheck writes a message to a file for each of its own. */
#define MUST(condition, ...) ((condition) ? (void)0 : ck_abort_msg(__VA_ARGS__))

static const reference_api *api;
static arena *memory;
static diag_list diags;

static uint64_t random_state = 0x9e3779b97f4a7c15u;

/* VISA_SEED: other random programs than those of every run. */
static void take_seed(void)
{
    const char *text = getenv("VISA_SEED");
    if (text)
        random_state ^= strtoull(text, NULL, 0) * 0xd1342543de82ef95u;
}

static void set_up(void)
{
    take_seed();
    memory = arena_new();
    diag_list_init(&diags, memory);
    api = reference_load(&diags);
    ck_assert_msg(api != NULL, "%s", diags.count ? diags.items[0]->message : "no diagnostic");
}

static void tear_down(void)
{
    arena_free(memory);
}

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1du >> 16;
}

static int64_t random_below(int64_t n)
{
    return (int64_t)(random_bits() % (uint64_t)n);
}

/* ---- element types by definition ---- */

static bool is_float(dtype t)
{
    return dtype_row_of(t)->kind == DTYPE_KIND_FLOAT;
}

static uint32_t float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double small_float(unsigned code, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(code >> fraction_bits) & ((1 << exponent_bits) - 1);
    int fraction = (int)code & ((1 << fraction_bits) - 1);
    double f = fraction / (double)(1 << fraction_bits);
    double size = exponent ? (1 + f) * pow(2, exponent - bias) : f * pow(2, 1 - bias);
    return code >> (exponent_bits + fraction_bits) & 1 ? -size : size;
}

static double decode(dtype t, uint32_t code)
{
    switch (t) {
    case DTYPE_I4: return (int)(code & 15) - (code & 8 ? 16 : 0);
    case DTYPE_I8: return (int8_t)code;
    case DTYPE_I16: return (int16_t)code;
    case DTYPE_I32: return (int32_t)code;
    case DTYPE_F8E4M3: return (code & 127) == 127 ? NAN : small_float(code, 4, 3);
    case DTYPE_F8E5M2:
        if ((code & 127) > 0x7c)
            return NAN;
        return (code & 127) == 0x7c ? (code & 128 ? -INFINITY : INFINITY) : small_float(code, 5, 2);
    case DTYPE_BF16:
        if ((code & 0x7fff) > 0x7f80)
            return NAN;
        if ((code & 0x7fff) == 0x7f80)
            return code & 0x8000 ? -INFINITY : INFINITY;
        return (code & 0x7f80) == 0 ? (code & 0x8000 ? -0.0 : 0.0) : small_float(code, 8, 7);
    default: return bits_float(code);
    }
}

/* The largest code in [0, most] whose value is not above `size`, for codes that grow with their values. */
static uint32_t code_not_above(dtype t, uint32_t most, double size)
{
    uint32_t low = 0, high = most;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (decode(t, middle) <= size)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static uint32_t encode_e4m3(double size)
{
    uint32_t low = code_not_above(DTYPE_F8E4M3, 0x7e, size);
    if (low == 0x7e)
        return low;
    double below = size - decode(DTYPE_F8E4M3, low), above = decode(DTYPE_F8E4M3, low + 1) - size;
    return below < above || (below == above && low % 2 == 0) ? low : low + 1;
}

static uint32_t encode_e5m2(double size)
{
    if (size >= 61440) /* half way from the largest number to where the next one would be */
        return 0x7c;
    uint32_t low = code_not_above(DTYPE_F8E5M2, 0x7b, size);
    if (low == 0x7b)
        return low;
    double below = size - decode(DTYPE_F8E5M2, low), above = decode(DTYPE_F8E5M2, low + 1) - size;
    uint32_t code = below < above ? low : low + 1;
    return low == 3 && code == 4 ? 3 : code; /* subnormals do not round up to a normal number */
}

static uint32_t encode_bf16(double size)
{
    if (size < 0x1p-126)
        return 0;
    uint32_t low = code_not_above(DTYPE_BF16, 0x7f7f, size);
    double next = low == 0x7f7f ? 0x1p128 : decode(DTYPE_BF16, low + 1);
    double below = size - decode(DTYPE_BF16, low), above = next - size;
    return below < above || (below == above && low % 2 == 0) ? low : low + 1;
}

static uint32_t encode_float(dtype t, float x)
{
    double size = fabs((double)x);
    bool negative = signbit(x);
    switch (t) {
    case DTYPE_F8E4M3: return isnan(x) ? 0x7f : encode_e4m3(size) | (negative ? 0x80 : 0);
    case DTYPE_F8E5M2: return isnan(x) ? 0x7e : encode_e5m2(size) | (negative ? 0x80 : 0);
    case DTYPE_BF16: return isnan(x) ? 0x7fc0 : encode_bf16(size) | (negative ? 0x8000 : 0);
    default: return float_bits(x);
    }
}

static uint32_t load_code(dtype t, const unsigned char *tensor, int64_t i)
{
    uint32_t code = 0;
    if (t == DTYPE_I4)
        return tensor[i / 2] >> (i % 2 * 4) & 15;
    for (unsigned byte = 0; byte < dtype_row_of(t)->bits / 8; byte++)
        code |= (uint32_t)tensor[i * (dtype_row_of(t)->bits / 8) + byte] << 8 * byte;
    return code;
}

static void store_code(dtype t, unsigned char *tensor, int64_t i, uint32_t code)
{
    if (t == DTYPE_I4) {
        unsigned shift = i % 2 * 4;
        tensor[i / 2] = (unsigned char)((tensor[i / 2] & ~(15u << shift)) | (code & 15) << shift);
        return;
    }
    for (unsigned byte = 0; byte < dtype_row_of(t)->bits / 8; byte++)
        tensor[i * (dtype_row_of(t)->bits / 8) + byte] = (unsigned char)(code >> 8 * byte);
}

/* ---- einsums by hand ---- */

enum { MAX_TENSORS = 8, MAX_STATEMENTS = 8, MAX_SHIFTS = 4, LETTERS = 26, MAX_DIGITS = 24, MAX_PIECES = 40, MAX_RANK = 8 };

typedef struct program {
    layout_axis axes[LETTERS];
    char names[LETTERS][2];
    einsum_tensor tensors[MAX_TENSORS];
    uint32_t tensor_axes[MAX_TENSORS][MAX_RANK];
    einsum_statement statements[MAX_STATEMENTS];
    einsum_digit digits[MAX_STATEMENTS][MAX_DIGITS];
    einsum_piece pieces[MAX_STATEMENTS][MAX_PIECES];
    einsum_shift shifts[MAX_STATEMENTS][MAX_SHIFTS];
    einsum_window windows[2];
    einsum_term terms[2][2];
    einsum e;
    bool same_order; /* the judge's rounding steps are the kernel's: no product leaves the f32 range */
} program;

static void program_init(program *p)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < LETTERS; i++) {
        p->names[i][0] = (char)('A' + i);
        p->axes[i] = (layout_axis){p->names[i], 1};
    }
    p->e = (einsum){.axes = p->axes,
                    .axis_count = LETTERS,
                    .tensors = p->tensors,
                    .statements = p->statements,
                    .text = "by hand",
                    .windows = p->windows};
    p->same_order = true;
}

static void size_of(program *p, char axis, int64_t size)
{
    p->axes[axis - 'A'].size = size;
}

/* `axis` becomes the window over two digits of other axes. */
static void window(program *p, char axis, einsum_term first, einsum_term second)
{
    uint32_t n = p->e.window_count++;
    ck_assert_uint_lt(n, 2);
    p->terms[n][0] = first;
    p->terms[n][1] = second;
    p->windows[n] = (einsum_window){(uint32_t)(axis - 'A'), 2, p->terms[n], false, 0};
    size_of(p, axis, 1 + (first.extent - 1) * first.stride + (second.extent - 1) * second.stride);
}

/* Of the last window only `size` places from `first` on are held. */
static void border(program *p, int64_t first, int64_t size)
{
    einsum_window *x = &p->windows[p->e.window_count - 1];
    x->bordered = true;
    x->first = first;
    p->axes[x->axis].size = size;
}

static uint32_t tensor(program *p, dtype t, const char *axes)
{
    uint32_t n = p->e.tensor_count++;
    ck_assert_uint_lt(n, MAX_TENSORS);
    p->tensors[n] = (einsum_tensor){.name = "t", .dtype = t, .port = (int32_t)n, .axes = p->tensor_axes[n]};
    for (; *axes; axes++)
        p->tensor_axes[n][p->tensors[n].rank++] = (uint32_t)(*axes - 'A');
    return n;
}

static void statement(program *p, math_op op, uint32_t dst, uint32_t a, uint32_t b)
{
    uint32_t n = p->e.statement_count++;
    ck_assert_uint_lt(n, MAX_STATEMENTS);
    p->statements[n] = (einsum_statement){.op = op,
                                          .dst = dst,
                                          .sources = {a, b},
                                          .source_count = math_row_of(op)->fewest_sources,
                                          .digits = p->digits[n],
                                          .shifts = p->shifts[n],
                                          .pieces = p->pieces[n]};
    p->statements[n].accumulator = is_float(p->tensors[dst].dtype) ? DTYPE_F32 : DTYPE_I32;
}

static void digit(program *p, bool kept, char axis, int64_t weight, int64_t size)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    einsum_digit *digits = p->digits[p->e.statement_count - 1];
    ck_assert_uint_lt(s->digit_count, MAX_DIGITS);
    digits[s->digit_count++] = (einsum_digit){(uint32_t)(axis - 'A'), kept, weight, size, 0, 0, 0, 0};
}

static void shift(program *p, einsum_side side, char axis, int64_t offset)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    ck_assert_uint_lt(s->shift_count, MAX_SHIFTS);
    p->shifts[p->e.statement_count - 1][s->shift_count++] = (einsum_shift){side, (uint32_t)(axis - 'A'), offset};
}

static void whole(program *p, bool kept, const char *axes)
{
    for (; *axes; axes++)
        digit(p, kept, *axes, 1, p->axes[*axes - 'A'].size);
}

/* ---- the judge ---- */

typedef enum order { FORWARD, BACKWARD, PAIRWISE, ORDERS, MACHINE = ORDERS } order;

typedef struct walk {
    const program *p;
    const einsum_statement *s;
    unsigned char **tensors;
    order order;
    int64_t counters[MAX_DIGITS];
} walk;

static int64_t combinations(const einsum_statement *s, bool kept)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].kept == kept)
            n *= s->digits[i].size;
    return n;
}

static void set_counters(walk *w, bool kept, int64_t n)
{
    for (uint32_t i = w->s->digit_count; i-- > 0;)
        if (w->s->digits[i].kept == kept) {
            w->counters[i] = n % w->s->digits[i].size;
            n /= w->s->digits[i].size;
        }
}

/* Does some value of the digit but 0 move the term? */
static bool moves(const einsum_digit *d, const einsum_term *t)
{
    for (int64_t i = 1; d->axis == t->axis && i < d->size; i++)
        if (i * d->weight / t->weight % t->extent != 0)
            return true;
    return false;
}

/* A window is indexed by its terms when digits move them. */
static void window_coordinate(const walk *w, einsum_side side, const einsum_window *x, int64_t *coords)
{
    bool by_terms = false;
    for (uint32_t i = 0; i < w->s->digit_count; i++)
        for (uint32_t k = 0; k < x->term_count && einsum_digit_indexes(&w->s->digits[i], side); k++)
            by_terms = by_terms || moves(&w->s->digits[i], &x->terms[k]);
    if (!by_terms)
        return;
    for (uint32_t i = 0; i < x->term_count; i++) {
        const einsum_term *t = &x->terms[i];
        coords[x->axis] += coords[t->axis] / t->weight % t->extent * t->stride;
    }
    coords[x->axis] -= x->first;
}

static int64_t shift_of(const einsum_statement *s, einsum_side side, int axis)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].side == side && s->shifts[i].axis == (uint32_t)axis)
            sum += s->shifts[i].offset;
    return sum;
}

/* The axis, less its largest shift. */
static int64_t reach_of(const walk *w, int axis)
{
    int64_t most = 0;
    for (einsum_side side = EINSUM_DST; side < EINSUM_SIDES; side++)
        most = shift_of(w->s, side, axis) > most ? shift_of(w->s, side, axis) : most;
    return w->p->axes[axis].size - most;
}

/* Where the operand is accessed: what it is broadcast over does not count. False when a coordinate reaches the end of its axis. */
static bool coordinates(const walk *w, einsum_side side, int64_t *coords)
{
    memset(coords, 0, LETTERS * sizeof *coords);
    for (uint32_t i = 0; i < w->s->digit_count; i++)
        if (side == EINSUM_DST ? w->s->digits[i].kept : einsum_digit_indexes(&w->s->digits[i], side))
            coords[w->s->digits[i].axis] += w->counters[i] * w->s->digits[i].weight;
    for (int i = 0; i < LETTERS; i++) {
        if (coords[i] >= reach_of(w, i))
            return false;
        coords[i] += shift_of(w->s, side, i);
    }
    for (uint32_t i = 0; i < w->p->e.window_count; i++)
        window_coordinate(w, side, &w->p->windows[i], coords);
    return true;
}

/* A term exists where no axis ends before the sum of all its digits. */
static bool term_exists(const walk *w)
{
    int64_t coords[LETTERS] = {0};
    for (uint32_t i = 0; i < w->s->digit_count; i++) {
        coords[w->s->digits[i].axis] += w->counters[i] * w->s->digits[i].weight;
        if (coords[w->s->digits[i].axis] >= reach_of(w, (int)w->s->digits[i].axis))
            return false;
    }
    return true;
}

static int64_t element(const program *p, uint32_t number, const int64_t *coords)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < p->tensors[number].rank; i++)
        at = at * p->axes[p->tensors[number].axes[i]].size + coords[p->tensors[number].axes[i]];
    return at;
}

static uint32_t source_code(const walk *w, einsum_side side, uint32_t number)
{
    int64_t coords[LETTERS];
    MUST(coordinates(w, side, coords), "a coordinate outside its axis");
    const einsum_tensor *t = &w->p->tensors[number];
    for (uint32_t i = 0; i < t->rank; i++) /* a border is zero */
        if (coords[t->axes[i]] < 0 || coords[t->axes[i]] >= w->p->axes[t->axes[i]].size)
            return 0;
    return load_code(t->dtype, w->tensors[number], element(w->p, number, coords));
}

static double source_value(const walk *w, einsum_side side, uint32_t number)
{
    return decode(w->p->tensors[number].dtype, source_code(w, side, number));
}

static float add_pairwise(const float *terms, int64_t n)
{
    if (n <= 1)
        return n ? terms[0] : 0;
    volatile float left = add_pairwise(terms, n / 2), right = add_pairwise(terms + n / 2, n - n / 2);
    return left + right;
}

static float add_in_order(const float *terms, int64_t n, order o)
{
    if (o == PAIRWISE)
        return add_pairwise(terms, n);
    volatile float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum = sum + terms[o == FORWARD ? i : n - 1 - i];
    return sum;
}

/* Which lanes of a packet hold a term, and what. */
typedef struct packet {
    volatile float value[256];
    bool live[256];
} packet;

/* The sum of the live lanes in pairs of neighbours, in place. */
static void add_lanes(packet *x)
{
    for (int n = 256; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++) {
            bool both = x->live[2 * i] && x->live[2 * i + 1];
            x->value[i] = both ? x->value[2 * i] + x->value[2 * i + 1] : x->live[2 * i] ? x->value[2 * i] : x->value[2 * i + 1];
            x->live[i] = x->live[2 * i] || x->live[2 * i + 1];
        }
}

/* A term of a sum, and when and where the machine meets it. */
typedef struct placed_term {
    int64_t step;
    int lane;
    float value;
} placed_term;

static void meet(placed_term *t, int64_t counter, int64_t size, int64_t lane)
{
    t->step = lane ? t->step : t->step * size + counter;
    t->lane += (int)(counter * lane);
}

static void place_term(const walk *w, placed_term *t)
{
    const einsum_statement *s = w->s;
    for (uint32_t i = 0; !s->piece_count && i < s->digit_count; i++)
        if (!s->digits[i].kept)
            meet(t, w->counters[i], s->digits[i].size, s->digits[i].lane);
    for (uint32_t k = 0; k < s->piece_count; k++) {
        int64_t position = 0;
        for (uint32_t i = 0; i < s->digit_count; i++)
            if (s->digits[i].group == s->pieces[k].group)
                position += w->counters[i] * s->digits[i].stride;
        meet(t, position / s->pieces[k].weight % s->pieces[k].size, s->pieces[k].size, s->pieces[k].lane);
    }
}

static int compare_steps(const void *x, const void *y)
{
    const placed_term *a = x, *b = y;
    return a->step < b->step ? -1 : a->step > b->step;
}

/* Steps of time one after the other; the first is stored. */
static float add_as_the_machine(walk *w)
{
    int64_t depth = combinations(w->s, false), count = 0;
    placed_term *terms = calloc((size_t)depth, sizeof *terms);
    for (int64_t k = 0; k < depth; k++) {
        set_counters(w, false, k);
        if (!term_exists(w))
            continue;
        place_term(w, &terms[count]);
        terms[count++].value = (float)(source_value(w, EINSUM_A, w->s->sources[0]) * source_value(w, EINSUM_B, w->s->sources[1]));
    }
    qsort(terms, (size_t)count, sizeof *terms, compare_steps);
    volatile float sum = 0;
    for (int64_t i = 0, first = 0; i < count; first = i) {
        packet x = {0};
        for (; i < count && terms[i].step == terms[first].step; i++) {
            MUST(!x.live[terms[i].lane], "two terms at step %lld, lane %d", (long long)terms[i].step, terms[i].lane);
            x.live[terms[i].lane] = true;
            x.value[terms[i].lane] = terms[i].value;
        }
        add_lanes(&x);
        sum = first ? sum + x.value[0] : x.value[0];
    }
    free(terms);
    return sum;
}

static uint32_t contract_element(walk *w, dtype to)
{
    if (w->order == MACHINE && is_float(to))
        return encode_float(to, add_as_the_machine(w));
    int64_t depth = combinations(w->s, false), live = 0;
    float *terms = malloc((size_t)depth * sizeof *terms);
    uint32_t integer = 0;
    for (int64_t k = 0; k < depth; k++) {
        set_counters(w, false, k);
        if (!term_exists(w))
            continue;
        double a = source_value(w, EINSUM_A, w->s->sources[0]), b = source_value(w, EINSUM_B, w->s->sources[1]);
        if (is_float(to))
            terms[live++] = (float)(a * b); /* an exact product in f64, rounded once */
        else
            integer += (uint32_t)((uint64_t)(int64_t)a * (uint64_t)(int64_t)b);
    }
    if (is_float(to))
        integer = encode_float(to, add_in_order(terms, live, w->order));
    free(terms);
    return integer;
}

static uint32_t copy_element(walk *w, dtype to)
{
    dtype from = w->p->tensors[w->s->sources[0]].dtype;
    uint32_t code = source_code(w, EINSUM_A, w->s->sources[0]);
    if (from == to)
        return code;
    double value = decode(from, code);
    if (!is_float(to))
        return (uint32_t)(int64_t)value;
    return isnan(value) && to == DTYPE_F32 ? 0x7fc00000 : encode_float(to, (float)value);
}

static void judge_statement(walk *w)
{
    const program *p = w->p;
    uint32_t dst = w->s->dst;
    dtype to = p->tensors[dst].dtype;
    bool first = true;
    for (const einsum_statement *before = p->statements; before < w->s; before++)
        first &= before->dst != dst;
    if (first)
        memset(w->tensors[dst], 0, (size_t)reference_tensor_bytes(&p->e, dst));
    int64_t kept = combinations(w->s, true), coords[LETTERS];
    for (int64_t i = 0; i < kept; i++) {
        set_counters(w, true, i);
        if (!coordinates(w, EINSUM_DST, coords))
            continue;
        uint32_t code = w->s->op == MATH_COPY ? copy_element(w, to) : contract_element(w, to);
        store_code(to, w->tensors[dst], element(p, dst, coords), code);
    }
}

static void judge(const program *p, unsigned char **tensors, order o)
{
    for (uint32_t i = 0; i < p->e.statement_count; i++)
        judge_statement(&(walk){.p = p, .s = &p->statements[i], .tensors = tensors, .order = o});
}

/* ---- comparing ---- */

typedef enum filling { MODERATE, POSITIVE, ANY_BITS } filling;

static uint32_t random_code(dtype t, filling f)
{
    uint32_t bits = (uint32_t)random_bits();
    if (f == ANY_BITS || !is_float(t))
        return bits;
    uint32_t sign = f == POSITIVE ? 0 : bits >> 31;
    switch (t) {
    case DTYPE_F8E4M3: return (bits % 0x7f) | sign << 7;
    case DTYPE_F8E5M2: return (bits % 0x7c) | sign << 7;
    case DTYPE_BF16: return (bits & 0x7f) | (uint32_t)(120 + random_below(12)) << 7 | sign << 15;
    default: return (bits & 0x7fffff) | (uint32_t)(120 + random_below(12)) << 23 | sign << 31;
    }
}

typedef struct storage {
    unsigned char *tensors[MAX_TENSORS];
    double *bounds[MAX_TENSORS];
} storage;

static bool assigned(const program *p, uint32_t number)
{
    for (uint32_t i = 0; i < p->e.statement_count; i++)
        if (p->statements[i].dst == number)
            return true;
    return false;
}

static storage storage_new(const program *p, filling f)
{
    storage s = {0};
    for (uint32_t i = 0; i < p->e.tensor_count; i++) {
        int64_t elements = einsum_tensor_elements(&p->e, i);
        s.tensors[i] = malloc((size_t)reference_tensor_bytes(&p->e, i));
        s.bounds[i] = malloc((size_t)elements * sizeof(double));
        memset(s.tensors[i], 0xa5, (size_t)reference_tensor_bytes(&p->e, i));
        memset(s.bounds[i], 0xff, (size_t)elements * sizeof(double));
        for (int64_t k = 0; k < elements; k++)
            store_code(p->tensors[i].dtype, s.tensors[i], k, random_code(p->tensors[i].dtype, f));
    }
    return s;
}

static storage storage_copy(const program *p, const storage *from)
{
    storage s = storage_new(p, MODERATE);
    for (uint32_t i = 0; i < p->e.tensor_count; i++)
        if (!assigned(p, i))
            memcpy(s.tensors[i], from->tensors[i], (size_t)reference_tensor_bytes(&p->e, i));
    return s;
}

static void storage_free(storage *s)
{
    for (int i = 0; i < MAX_TENSORS; i++) {
        free(s->tensors[i]);
        free(s->bounds[i]);
    }
}

static void compare_bits(const program *p, uint32_t number, const storage *got, const storage *want, const char *what)
{
    dtype t = p->tensors[number].dtype;
    for (int64_t i = 0; i < einsum_tensor_elements(&p->e, number); i++) {
        uint32_t g = load_code(t, got->tensors[number], i), w = load_code(t, want->tensors[number], i);
        if (is_float(t) && isnan(decode(t, g)) && isnan(decode(t, w)))
            continue;
        MUST(g == w, "%s: tensor %u (%s) element %lld is %x (%g), expected %x (%g)", what, number, dtype_row_of(t)->name, (long long)i, g,
             decode(t, g), w, decode(t, w));
    }
}

/* How many elements differ at all: a bound that nothing tests would prove nothing. */
static int64_t compare_bounds(const program *p, uint32_t number, const storage *got, const storage *other)
{
    dtype t = p->tensors[number].dtype;
    int64_t differing = 0;
    for (int64_t i = 0; i < einsum_tensor_elements(&p->e, number); i++) {
        double g = decode(t, load_code(t, got->tensors[number], i)), bound = got->bounds[number][i];
        double o = decode(t, load_code(t, other->tensors[number], i));
        MUST(bound >= 0, "tensor %u element %lld has bound %g", number, (long long)i, bound);
        if ((isnan(g) && isnan(o)) || g == o)
            continue;
        differing++;
        bool near = isinf(bound) || fabs(g - o) <= bound;
        MUST(near, "tensor %u (%s) element %lld is %g, another order gives %g, the bound is %g", number, dtype_row_of(t)->name,
             (long long)i, g, o, bound);
    }
    return differing;
}

/* This CPU, and lesser ones that it can be taken for: other vectors, other products. */
static const char *const cpus[] = {"native", "x86-64-v4", "x86-64-v3", "x86-64"};
enum { CPUS = sizeof cpus / sizeof *cpus };
static int next_cpu; /* moves on with every kernel */

static bool can_be(const char *cpu)
{
#if defined(__x86_64__)
    return strcmp(cpu, "x86-64-v4") == 0 ? __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")
                                         : strcmp(cpu, "x86-64-v3") != 0 || __builtin_cpu_supports("avx2");
#else
    return strcmp(cpu, "native") == 0;
#endif
}

static bool quick; /* how `compile` builds: both ways must give the same values */

static void choose_cpu(void)
{
    const char *cpu = cpus[next_cpu++ % CPUS];
    (void)setenv("VISA_MCPU", can_be(cpu) ? cpu : "native", 1);
}

static reference_kernel *compile(const program *p)
{
    choose_cpu();
    unsigned forms = REFERENCE_VALUES | REFERENCE_BOUNDS | (quick ? REFERENCE_QUICK : 0);
    reference_kernel *k = reference_compile(api, &p->e, "test kernel", forms, &diags);
    ck_assert_msg(k != NULL, "%s", diags.count ? diags.items[diags.count - 1]->message : "no diagnostic");
    return k;
}

/* Floats are added in an order that depends on the CPU. */
static bool adds_floats(const program *p)
{
    for (uint32_t i = 0; i < p->e.statement_count; i++)
        if (p->statements[i].op == MATH_CONTRACT && is_float(p->tensors[p->statements[i].dst].dtype))
            return true;
    return false;
}

/* Runs both forms on the inputs of `given`, compares with all orders; returns how many elements another order
 * changed. */
static int64_t check_inputs(const program *p, const storage *given)
{
    storage plain = storage_copy(p, given), bounded = storage_copy(p, given), want = storage_copy(p, given);
    reference_kernel *k = compile(p);
    ck_assert(reference_run(api, k, plain.tensors, NULL, THREADS, &diags));
    ck_assert(reference_run(api, k, bounded.tensors, bounded.bounds, THREADS, &diags));
    ck_assert_uint_gt(api->jit_nanoseconds(k), 0);
    api->release(k);
    int64_t differing = 0;
    for (order o = FORWARD; o < ORDERS; o++) {
        judge(p, want.tensors, o);
        for (uint32_t i = 0; i < p->e.tensor_count; i++) {
            if (!assigned(p, i))
                continue;
            compare_bounds(p, i, &bounded, &plain); /* the two forms may add in other orders, too */
            if (o == FORWARD && p->same_order && !adds_floats(p))
                compare_bits(p, i, &plain, &want, "value");
            differing += compare_bounds(p, i, &bounded, &want);
        }
    }
    storage_free(&plain);
    storage_free(&bounded);
    storage_free(&want);
    return differing;
}

static int64_t check_program(const program *p, filling f)
{
    storage s = storage_new(p, f);
    int64_t differing = check_inputs(p, &s);
    storage_free(&s);
    return differing;
}

/* ---- conversions ---- */

static const dtype narrow_floats[] = {DTYPE_BF16, DTYPE_F8E4M3, DTYPE_F8E5M2};

static void copy_program(program *p, dtype from, dtype to, int64_t size)
{
    program_init(p);
    size_of(p, 'A', size);
    tensor(p, from, "A");
    tensor(p, to, "A");
    statement(p, MATH_COPY, 1, 0, 0);
    whole(p, true, "A");
}

static void convert_all(dtype from, dtype to, const uint32_t *codes, int64_t count)
{
    program p;
    copy_program(&p, from, to, count);
    storage got = storage_new(&p, MODERATE);
    for (int64_t i = 0; i < count; i++)
        store_code(from, got.tensors[0], i, codes[i]);
    storage want = storage_copy(&p, &got);
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, got.tensors, NULL, THREADS, &diags));
    judge(&p, want.tensors, FORWARD);
    for (int64_t i = 0; i < count; i++)
        MUST(load_code(to, got.tensors[1], i) == load_code(to, want.tensors[1], i), "%s code %x to %s is %x, expected %x",
             dtype_row_of(from)->name, codes[i], dtype_row_of(to)->name, load_code(to, got.tensors[1], i),
             load_code(to, want.tensors[1], i));
    api->release(k);
    storage_free(&got);
    storage_free(&want);
}

START_TEST(every_code_widens)
{
    quick = _i;
    uint32_t *codes = malloc(65536 * sizeof *codes);
    for (uint32_t i = 0; i < 65536; i++)
        codes[i] = i;
    convert_all(DTYPE_BF16, DTYPE_F32, codes, 65536);
    convert_all(DTYPE_BF16, DTYPE_F8E4M3, codes, 65536);
    convert_all(DTYPE_BF16, DTYPE_F8E5M2, codes, 65536);
    convert_all(DTYPE_F8E4M3, DTYPE_F32, codes, 256);
    convert_all(DTYPE_F8E4M3, DTYPE_F8E5M2, codes, 256);
    convert_all(DTYPE_F8E5M2, DTYPE_F32, codes, 256);
    convert_all(DTYPE_F8E5M2, DTYPE_F8E4M3, codes, 256);
    convert_all(DTYPE_I4, DTYPE_I32, codes, 16);
    convert_all(DTYPE_I8, DTYPE_I32, codes, 256);
    convert_all(DTYPE_I16, DTYPE_I32, codes, 65536);
    for (dtype t = DTYPE_I4; t <= DTYPE_F32; t++)
        convert_all(t, t, codes, 65535); /* an odd count: half a byte is left over in i4 */
    free(codes);
}
END_TEST

/* Every upper half of an f32, with the lower halves that decide between neighbours. */
START_TEST(every_boundary_narrows)
{
    quick = _i;
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { LOW = sizeof low / sizeof *low };
    uint32_t *codes = malloc(65536 * LOW * sizeof *codes);
    for (uint32_t i = 0; i < 65536 * LOW; i++)
        codes[i] = i / LOW << 16 | low[i % LOW];
    for (size_t i = 0; i < sizeof narrow_floats / sizeof *narrow_floats; i++)
        convert_all(DTYPE_F32, narrow_floats[i], codes, 65536 * LOW);
    convert_all(DTYPE_I32, DTYPE_I16, codes, 65536 * LOW);
    convert_all(DTYPE_I32, DTYPE_I8, codes, 65536 * LOW);
    convert_all(DTYPE_I32, DTYPE_I4, codes, 65536 * LOW);
    free(codes);
}
END_TEST

typedef struct spot {
    dtype t;
    float value;
    uint32_t code;
} spot;

/* The published values: contraction "Number formats", not the judge. */
START_TEST(published_conversions)
{
    static const spot spots[] = {
        {DTYPE_F8E4M3, 1, 0x38},           {DTYPE_F8E4M3, 1.0625f, 0x38},   {DTYPE_F8E4M3, 1.1875f, 0x3a},
        {DTYPE_F8E4M3, 448, 0x7e},         {DTYPE_F8E4M3, 464, 0x7e},       {DTYPE_F8E4M3, INFINITY, 0x7e},
        {DTYPE_F8E4M3, -INFINITY, 0xfe},   {DTYPE_F8E4M3, 0x1p-9f, 0x01},   {DTYPE_F8E4M3, 0x1p-10f, 0x00},
        {DTYPE_F8E4M3, 0x1.8p-10f, 0x01},  {DTYPE_F8E4M3, NAN, 0x7f},       {DTYPE_F8E5M2, 1.125f, 0x3d},
        {DTYPE_F8E5M2, NAN, 0x7e},         {DTYPE_F8E5M2, INFINITY, 0x7c},  {DTYPE_F8E5M2, 0x1.cp-15f, 0x03},
        {DTYPE_F8E5M2, 0x1.ffp-15f, 0x03}, {DTYPE_F8E5M2, 0x1p-14f, 0x04},  {DTYPE_F8E5M2, 0x1p-17f, 0x01},
        {DTYPE_BF16, NAN, 0x7fc0},         {DTYPE_BF16, -NAN, 0x7fc0},      {DTYPE_BF16, -0x1p-127f, 0x8000},
        {DTYPE_BF16, FLT_MAX, 0x7f80},     {DTYPE_BF16, 0x1.01p0f, 0x3f80}, {DTYPE_BF16, 0x1.03p0f, 0x3f82},
    };
    for (size_t i = 0; i < sizeof spots / sizeof *spots; i++) {
        program p;
        copy_program(&p, DTYPE_F32, spots[i].t, 1);
        unsigned char from[4], to[4] = {0}, *tensors[] = {from, to};
        store_code(DTYPE_F32, from, 0, float_bits(spots[i].value));
        reference_kernel *k = compile(&p);
        ck_assert(reference_run(api, k, tensors, NULL, THREADS, &diags));
        ck_assert_msg(load_code(spots[i].t, to, 0) == spots[i].code, "%s of %a is %x, published is %x", dtype_row_of(spots[i].t)->name,
                      (double)spots[i].value, load_code(spots[i].t, to, 0), spots[i].code);
        api->release(k);
    }
}
END_TEST

/* ---- statements ---- */

typedef struct typing {
    dtype operand, result;
} typing;

static const typing typings[] = {
    {DTYPE_BF16, DTYPE_BF16},     {DTYPE_BF16, DTYPE_F32}, {DTYPE_F8E4M3, DTYPE_F8E4M3}, {DTYPE_F8E4M3, DTYPE_F32},
    {DTYPE_F8E5M2, DTYPE_F8E5M2}, {DTYPE_F32, DTYPE_F32},  {DTYPE_F32, DTYPE_BF16},      {DTYPE_I4, DTYPE_I32},
    {DTYPE_I4, DTYPE_I4},         {DTYPE_I8, DTYPE_I8},    {DTYPE_I8, DTYPE_I32},        {DTYPE_I8, DTYPE_I16},
    {DTYPE_I16, DTYPE_I32},       {DTYPE_I32, DTYPE_I32},
};

static void matmul_program(program *p, typing t, int64_t m, int64_t n, int64_t k)
{
    program_init(p);
    size_of(p, 'M', m);
    size_of(p, 'N', n);
    size_of(p, 'K', k);
    tensor(p, t.operand, "MK");
    tensor(p, t.operand, "NK");
    tensor(p, t.result, "MN");
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, true, "MN");
    whole(p, false, "K");
}

START_TEST(matmul_of_every_type)
{
    /* tile edges: one row, one column, a vector and one, several tiles, more than one depth and row block */
    static const int64_t shapes[][3] = {{1, 1, 1},   {1, 1, 40},    {7, 10, 33},   {3, 17, 16}, {29, 1, 64},
                                        {40, 3, 20}, {13, 70, 401}, {251, 33, 20}, {1, 1, 301}, {2, 37, 203}};
    for (size_t t = 0; t < sizeof typings / sizeof *typings; t++)
        for (size_t s = t % SLOWER; s < sizeof shapes / sizeof *shapes; s += SLOWER) {
            program p;
            quick = (t + s) % 4 != 0;
            next_cpu = (int)(t + s / 4); /* each CPU in both ways */
            matmul_program(&p, typings[t], shapes[s][0], shapes[s][1], shapes[s][2]);
            check_program(&p, MODERATE);
        }
}
END_TEST

/* Shares of the tiles, by columns and by rows, in threads: the same bits. */
/* Large enough that the parts of each product are given to threads. */
static const int64_t shared_shapes[][3] = {{701, 1100, 540}, {1310, 330, 1000}};

typedef struct one_run {
    reference_kernel *kernel;
    storage storage;
    const unsigned char *want;
    size_t bytes;
    int wrong;
    pthread_barrier_t *start;
    pthread_t thread;
} one_run;

static void *run_in_two(void *argument)
{
    one_run *r = argument;
    pthread_barrier_wait(r->start);
    for (int i = 0; i < 100; i++) {
        memset(r->storage.tensors[2], 0xa5, r->bytes);
        char *fault = api->run(r->kernel, r->storage.tensors, NULL, 2);
        r->wrong += fault || memcmp(r->storage.tensors[2], r->want, r->bytes) != 0;
        free(fault);
    }
    return NULL;
}

/* One run at a time has the kernel's threads. */
START_TEST(runs_at_once_are_apart)
{
    enum { RUNS = 3 };
    program p;
    matmul_program(&p, (typing){DTYPE_F32, DTYPE_F32}, 200, 330, 100);
    storage alone = storage_new(&p, MODERATE);
    reference_kernel *k = compile(&p);
    ck_assert_ptr_null(api->run(k, alone.tensors, NULL, 1));
    one_run runs[RUNS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, RUNS);
    for (int i = 0; i < RUNS; i++) {
        runs[i] = (one_run){.kernel = k,
                            .storage = storage_copy(&p, &alone),
                            .want = alone.tensors[2],
                            .bytes = (size_t)reference_tensor_bytes(&p.e, 2),
                            .start = &start};
        ck_assert_int_eq(pthread_create(&runs[i].thread, NULL, run_in_two, &runs[i]), 0);
    }
    for (int i = 0; i < RUNS; i++) {
        pthread_join(runs[i].thread, NULL);
        ck_assert_int_eq(runs[i].wrong, 0);
        storage_free(&runs[i].storage);
    }
    pthread_barrier_destroy(&start);
    api->release(k);
    storage_free(&alone);
}
END_TEST

/* The result, and its bounds where they are asked for, in one thread and in up to `most`. */
static void compare_threads(const program *p, reference_kernel *k, bool bounded, unsigned most)
{
    size_t bounds_bytes = (size_t)einsum_tensor_elements(&p->e, 2) * sizeof(double);
    storage one = storage_new(p, MODERATE), several = storage_copy(p, &one);
    ck_assert_ptr_null(api->run(k, one.tensors, bounded ? one.bounds : NULL, 1));
    for (unsigned threads = 2; threads <= most; threads++) {
        memset(several.tensors[2], 0xa5, (size_t)reference_tensor_bytes(&p->e, 2));
        memset(several.bounds[2], 0xa5, bounds_bytes);
        ck_assert_ptr_null(api->run(k, several.tensors, bounded ? several.bounds : NULL, threads));
        compare_bits(p, 2, &several, &one, "in threads");
        if (bounded)
            ck_assert_mem_eq(several.bounds[2], one.bounds[2], bounds_bytes);
    }
    api->release(k);
    storage_free(&one);
    storage_free(&several);
}

static const typing thread_typings[] = {{DTYPE_BF16, DTYPE_BF16}, {DTYPE_F32, DTYPE_F32}, {DTYPE_I8, DTYPE_I32}};

START_TEST(threads_change_nothing)
{
    for (size_t i = 0; i < 2 * sizeof thread_typings / sizeof *thread_typings; i++) {
        const int64_t *shape = shared_shapes[i % 2];
        program p;
        matmul_program(&p, thread_typings[i / 2], shape[0], shape[1], shape[2]);
        compare_threads(&p, compile(&p), false, 3);
    }
}
END_TEST

/* No vector of the result lies side by side: no form stores blocks. */
static void interleaved_program(program *p, typing t, int64_t m, int64_t n, int64_t k)
{
    program_init(p);
    size_of(p, 'M', m);
    size_of(p, 'N', n);
    size_of(p, 'K', k);
    size_of(p, 'B', 3);
    tensor(p, t.operand, "MKB");
    tensor(p, t.operand, "NKB");
    tensor(p, t.result, "MNB");
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, true, "MNB");
    whole(p, false, "K");
}

/* Shared by rows and by columns. */
START_TEST(threads_change_no_bound)
{
    static const int64_t shapes[][3] = {{515, 190, 600}, {190, 515, 600}, {150, 200, 1200}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * sizeof thread_typings / sizeof *thread_typings; i++) {
        const int64_t *shape = shapes[i % 3];
        program p;
        (i % 3 == 2 ? interleaved_program : matmul_program)(&p, thread_typings[i / 3], shape[0], shape[1], shape[2]);
        reference_kernel *k = reference_compile(api, &p.e, "threads", REFERENCE_BOUNDS, &diags);
        ck_assert_ptr_nonnull(k);
        compare_threads(&p, k, true, 5);
    }
}
END_TEST

/* A product for each of `outer` times `inner` batches. */
static void batched_program(program *p, typing t, int64_t outer, int64_t inner, const int64_t *shape)
{
    program_init(p);
    size_of(p, 'B', outer);
    size_of(p, 'C', inner);
    size_of(p, 'M', shape[0]);
    size_of(p, 'N', shape[1]);
    size_of(p, 'K', shape[2]);
    tensor(p, t.operand, "BMCK");
    tensor(p, t.operand, "CBNK");
    tensor(p, t.result, "BCMN");
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, true, "BCMN");
    whole(p, false, "K");
}

/* The rows of a batch, side by side. */
static void gather_rows(unsigned char *to, const unsigned char *from, int64_t rows, int64_t apart, int64_t bytes)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * bytes, from + i * apart, (size_t)bytes);
}

/* Fewer batches than threads are divided along a side, others as they are: the bits of each are those of a product of its own. */
START_TEST(batches_are_shared)
{
    static const int64_t counts[][2] = {{2, 1}, {3, 2}, {1, 7}}, shape[] = {131, 190, 140};
    static const typing each[] = {{DTYPE_BF16, DTYPE_BF16}, {DTYPE_F32, DTYPE_F32}, {DTYPE_I8, DTYPE_I32}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts * (sizeof each / sizeof *each); i++) {
        int64_t outer = counts[i % 3][0], inner = counts[i % 3][1], m = shape[0], n = shape[1], k = shape[2];
        int64_t line = k * dtype_row_of(each[i / 3].operand)->bits / 8, result = m * n * dtype_row_of(each[i / 3].result)->bits / 8;
        program all, one;
        batched_program(&all, each[i / 3], outer, inner, shape);
        matmul_program(&one, each[i / 3], m, n, k);
        storage s = storage_new(&all, MODERATE), single = storage_new(&one, MODERATE);
        reference_kernel *kernel = compile(&all);
        next_cpu--; /* both for the same one */
        reference_kernel *alone = compile(&one);
        for (unsigned threads = 1; threads < 4; threads++) {
            memset(s.tensors[2], 0xa5, (size_t)reference_tensor_bytes(&all.e, 2));
            ck_assert_ptr_null(api->run(kernel, s.tensors, NULL, threads));
            for (int64_t b = 0; b < outer * inner; b++) {
                int64_t at = b / inner, in = b % inner;
                gather_rows(single.tensors[0], s.tensors[0] + (at * m * inner + in) * line, m, inner * line, line);
                gather_rows(single.tensors[1], s.tensors[1] + (in * outer + at) * n * line, n, line, line);
                ck_assert_ptr_null(api->run(alone, single.tensors, NULL, 1));
                ck_assert_mem_eq(s.tensors[2] + b * result, single.tensors[2], (size_t)result);
            }
        }
        api->release(kernel);
        api->release(alone);
        storage_free(&s);
        storage_free(&single);
    }
}
END_TEST

/* Tiles of M by N: the last of M is short, and so is the last of N of the second result. */
static void tiled_program(program *p, typing t)
{
    program_init(p);
    size_of(p, 'M', 40);
    size_of(p, 'N', 34);
    size_of(p, 'K', 23);
    tensor(p, t.operand, "MK");
    tensor(p, t.operand, "NK");
    tensor(p, t.result, "MN");
    tensor(p, t.operand, "MK");
    tensor(p, t.result, "MN");
    for (int i = 0; i < 7; i++) {
        uint32_t source = i == 2 ? 3 : 0, result = i < 5 ? 2 : 4;
        int64_t rows = i % 3 * 16, columns = i == 6 ? 17 : i / 3 * 16;
        statement(p, MATH_CONTRACT, result, source, 1);
        digit(p, true, 'M', 1, 16);
        digit(p, true, 'N', 1, 16);
        whole(p, false, "K");
        if (rows)
            shift(p, EINSUM_DST, 'M', rows), shift(p, EINSUM_A, 'M', rows);
        if (columns)
            shift(p, EINSUM_DST, 'N', columns), shift(p, EINSUM_B, 'N', columns);
    }
}

/* Functions of statements in the generated text. */
static int functions_in(const program *p)
{
    unsigned char *text;
    size_t bytes;
    int count = 0;
    ck_assert_ptr_null(api->emit(&p->e, "tiles", 0, NULL, REFERENCE_LLVM, &text, &bytes));
    for (const char *at = (char *)text; (at = strstr(at, "define internal void @statement")); at++)
        count++;
    api->release_bytes(text);
    return count;
}

START_TEST(tiles_share_code)
{
    for (size_t t = 0; t < sizeof typings / sizeof *typings; t++) {
        program p;
        tiled_program(&p, typings[t]);
        check_program(&p, MODERATE);
        ck_assert_int_eq(functions_in(&p), 2); /* whole tiles, and the short ones */
    }
}
END_TEST

START_TEST(digit_kept_inside_a_sum)
{
    for (size_t t = 0; t < sizeof typings / sizeof *typings; t++) {
        program p;
        program_init(&p);
        size_of(&p, 'M', 5);
        size_of(&p, 'N', 9);
        size_of(&p, 'K', 64);
        tensor(&p, typings[t].operand, "MK");
        tensor(&p, typings[t].operand, "NK");
        tensor(&p, typings[t].result, "NKM");
        statement(&p, MATH_CONTRACT, 2, 0, 1);
        whole(&p, true, "MN");
        digit(&p, true, 'K', 4, 4); /* K % 16 / 4 */
        digit(&p, false, 'K', 16, 4);
        digit(&p, false, 'K', 1, 4);
        check_program(&p, MODERATE);
    }
}
END_TEST

START_TEST(batches_broadcasts_and_scalars)
{
    program p;
    program_init(&p);
    size_of(&p, 'B', 3);
    size_of(&p, 'M', 6);
    size_of(&p, 'N', 20);
    size_of(&p, 'K', 12);
    tensor(&p, DTYPE_BF16, "KMB");
    tensor(&p, DTYPE_BF16, "BNK");
    tensor(&p, DTYPE_F32, "NBM");
    tensor(&p, DTYPE_BF16, "");
    tensor(&p, DTYPE_BF16, "BC");
    tensor(&p, DTYPE_F32, "MC");
    statement(&p, MATH_CONTRACT, 2, 0, 1);
    whole(&p, true, "BMN");
    whole(&p, false, "K");
    statement(&p, MATH_CONTRACT, 4, 0, 3); /* a scalar operand, and a result repeated along C */
    size_of(&p, 'C', 2);
    whole(&p, true, "BC");
    whole(&p, false, "MK");
    statement(&p, MATH_CONTRACT, 5, 3, 3); /* both operands repeat */
    whole(&p, true, "MC");
    whole(&p, false, "K");
    ck_assert_int_gt(check_program(&p, MODERATE), 0);
}
END_TEST

START_TEST(elementwise_products)
{
    program p;
    program_init(&p);
    size_of(&p, 'A', 50);
    size_of(&p, 'B', 30);
    tensor(&p, DTYPE_BF16, "AB");
    tensor(&p, DTYPE_BF16, "BA");
    tensor(&p, DTYPE_BF16, "AB");
    statement(&p, MATH_CONTRACT, 2, 0, 1);
    whole(&p, true, "AB");
    ck_assert_int_eq(check_program(&p, MODERATE), 0); /* one exact product: no order to choose */
}
END_TEST

START_TEST(copies_move_and_cast)
{
    static const typing casts[] = {{DTYPE_I8, DTYPE_I8},    {DTYPE_I4, DTYPE_I4},    {DTYPE_I32, DTYPE_I4},
                                   {DTYPE_F32, DTYPE_BF16}, {DTYPE_BF16, DTYPE_F32}, {DTYPE_F8E5M2, DTYPE_BF16}};
    for (size_t t = 0; t < sizeof casts / sizeof *casts; t++) {
        program p;
        program_init(&p);
        size_of(&p, 'A', 7);
        size_of(&p, 'B', 14);
        size_of(&p, 'C', 3);
        tensor(&p, casts[t].operand, "AB");
        tensor(&p, casts[t].result, "BCA");
        statement(&p, MATH_COPY, 1, 0, 0);
        digit(&p, true, 'B', 4, 4); /* overshoots 14 */
        whole(&p, true, "CA");
        digit(&p, true, 'B', 1, 4);
        check_program(&p, MODERATE);
    }
}
END_TEST

/* Axis K has 14 elements and digits of 4 and 4: kept whole, summed whole, and one of each. */
START_TEST(digits_that_overshoot)
{
    for (int kept_high = 0; kept_high < 2; kept_high++)
        for (int kept_low = 0; kept_low < 2; kept_low++)
            for (size_t t = 0; t < sizeof typings / sizeof *typings; t++) {
                program p;
                program_init(&p);
                size_of(&p, 'M', 14);
                size_of(&p, 'K', 14);
                tensor(&p, typings[t].operand, "MK");
                tensor(&p, typings[t].operand, "K");
                tensor(&p, typings[t].result, kept_high || kept_low ? "MK" : "M");
                statement(&p, MATH_CONTRACT, 2, 0, 1);
                digit(&p, true, 'M', 4, 4);
                digit(&p, true, 'M', 1, 4);
                for (int kept = 1; kept >= 0; kept--) {
                    if (kept_high == kept)
                        digit(&p, kept, 'K', 4, 4);
                    if (kept_low == kept)
                        digit(&p, kept, 'K', 1, 4);
                }
                check_program(&p, MODERATE);
            }
}
END_TEST

/* K is summed but the second operand lacks it: its infinity must not meet the zeros of the terms that do not
 * exist. */
START_TEST(missing_terms_add_nothing)
{
    program p;
    program_init(&p);
    size_of(&p, 'M', 3);
    size_of(&p, 'K', 14);
    tensor(&p, DTYPE_BF16, "MK");
    tensor(&p, DTYPE_BF16, "M");
    tensor(&p, DTYPE_F32, "M");
    statement(&p, MATH_CONTRACT, 2, 0, 1);
    whole(&p, true, "M");
    digit(&p, false, 'K', 4, 4);
    digit(&p, false, 'K', 1, 4);
    unsigned char a[3 * 14 * 2], b[3 * 2], c[3 * 4], *tensors[] = {a, b, c};
    double bound[3], *bounds[] = {NULL, NULL, bound};
    for (int i = 0; i < 3 * 14; i++)
        store_code(DTYPE_BF16, a, i, 0x3f80);
    store_code(DTYPE_BF16, b, 0, 0x7f80);
    store_code(DTYPE_BF16, b, 1, 0x3f80);
    store_code(DTYPE_BF16, b, 2, 0x7fc0);
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, tensors, bounds, THREADS, &diags));
    api->release(k);
    ck_assert(isinf(decode(DTYPE_F32, load_code(DTYPE_F32, c, 0))) && bound[0] == 0);
    ck_assert(decode(DTYPE_F32, load_code(DTYPE_F32, c, 1)) == 14 && bound[1] > 0 && bound[1] < 1e-4);
    ck_assert(isnan(decode(DTYPE_F32, load_code(DTYPE_F32, c, 2))) && bound[2] == 0);
}
END_TEST

/* 15 cells X, Y at 3 steps of 8 lanes: the other nine places are no terms, and sums of -0 stay -0. */
static void group_program(program *p)
{
    program_init(p);
    size_of(p, 'X', 3);
    size_of(p, 'Y', 5);
    tensor(p, DTYPE_BF16, "XY");
    tensor(p, DTYPE_BF16, "YX");
    tensor(p, DTYPE_F32, "");
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, false, "XY");
    p->digits[0][0].group = p->digits[0][1].group = 1;
    p->digits[0][0].stride = 5;
    p->digits[0][1].stride = 1;
    p->pieces[0][0] = (einsum_piece){1, 0, 8, 3};
    p->pieces[0][1] = (einsum_piece){1, 1, 1, 8};
    p->statements[0].piece_count = 2;
}

START_TEST(absent_places_add_nothing)
{
    program p;
    group_program(&p);
    unsigned char a[15 * 2], b[15 * 2], c[4], *tensors[] = {a, b, c};
    for (int i = 0; i < 15; i++) {
        store_code(DTYPE_BF16, a, i, 0x8000);
        store_code(DTYPE_BF16, b, i, 0x3f80);
    }
    reference_kernel *k = reference_compile(api, &p.e, "cells", REFERENCE_VALUES | REFERENCE_MACHINE_ORDER, &diags);
    ck_assert(reference_run(api, k, tensors, NULL, THREADS, &diags));
    api->release(k);
    ck_assert_uint_eq(load_code(DTYPE_F32, c, 0), 0x80000000u);
}
END_TEST

/* As above with K / 4 kept: the last of its digits has two terms, and the other two must not meet the
 * infinity. */
START_TEST(kept_digits_decide_which_terms_exist)
{
    program p;
    program_init(&p);
    size_of(&p, 'M', 3);
    size_of(&p, 'K', 14);
    tensor(&p, DTYPE_BF16, "MK");
    tensor(&p, DTYPE_BF16, "");
    tensor(&p, DTYPE_F32, "MK");
    statement(&p, MATH_CONTRACT, 2, 0, 1);
    whole(&p, true, "M");
    digit(&p, true, 'K', 4, 4);
    digit(&p, false, 'K', 1, 4);
    storage s = storage_new(&p, POSITIVE);
    store_code(DTYPE_BF16, s.tensors[1], 0, 0x7f80);
    check_inputs(&p, &s);
    storage_free(&s);
}
END_TEST

static void chain_program(program *p, dtype operand, dtype middle)
{
    program_init(p);
    size_of(p, 'M', 11);
    size_of(p, 'N', 13);
    size_of(p, 'K', 60);
    size_of(p, 'P', 5);
    tensor(p, operand, "MK");
    tensor(p, operand, "NK");
    tensor(p, middle, "MN");
    tensor(p, middle, "PN");
    tensor(p, is_float(middle) ? DTYPE_F32 : DTYPE_I32, "MP");
    tensor(p, middle, "PM");
    tensor(p, is_float(middle) ? DTYPE_F32 : DTYPE_I32, "M");
    p->tensors[2].port = -1;
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, true, "MN");
    whole(p, false, "K");
    statement(p, MATH_CONTRACT, 4, 3, 2);
    whole(p, true, "MP");
    whole(p, false, "N");
    statement(p, MATH_COPY, 5, 4, 0);
    whole(p, true, "PM");
    statement(p, MATH_CONTRACT, 6, 4, 5); /* both operands are off */
    whole(p, true, "M");
    whole(p, false, "P");
    p->same_order = operand != DTYPE_F8E5M2; /* its sums of sums leave the range of its products */
}

START_TEST(chains_carry_bounds)
{
    static const typing chains[] = {{DTYPE_BF16, DTYPE_BF16},   {DTYPE_F8E4M3, DTYPE_BF16}, {DTYPE_BF16, DTYPE_F8E4M3},
                                    {DTYPE_BF16, DTYPE_F8E5M2}, {DTYPE_BF16, DTYPE_F32},    {DTYPE_I8, DTYPE_I8}};
    int64_t differing = 0;
    for (size_t t = 0; t < sizeof chains / sizeof *chains; t++)
        for (int round = 0; round < 3; round++) {
            program p;
            quick = round > 0;
            chain_program(&p, chains[t].operand, chains[t].result);
            differing += check_program(&p, MODERATE);
        }
    ck_assert_int_gt(differing, 100);
}
END_TEST

/* 1 + 2^27 - 2^27 is 0 from the front and 1 from the back: a source whose error is larger than itself. What
 * is made of it differs by as much as the errors say, and by nothing that rounding alone would explain. */
START_TEST(errors_multiply_through)
{
    static const float terms[] = {1, 0x1p27f, -0x1p27f}, factors[] = {3, INFINITY, -0.5f};
    program p;
    program_init(&p);
    size_of(&p, 'M', 3);
    size_of(&p, 'N', 3);
    size_of(&p, 'K', 3);
    tensor(&p, DTYPE_BF16, "MK");
    tensor(&p, DTYPE_BF16, "K");
    tensor(&p, DTYPE_BF16, "N");
    for (const char *const *axes = (const char *const[]){"M", "MN", "MN", "M", NULL}; *axes; axes++)
        tensor(&p, DTYPE_F32, *axes);
    tensor(&p, DTYPE_BF16, "M");
    statement(&p, MATH_CONTRACT, 3, 0, 1);
    whole(&p, true, "M");
    whole(&p, false, "K");
    statement(&p, MATH_CONTRACT, 4, 3, 2); /* the rows are off */
    whole(&p, true, "MN");
    statement(&p, MATH_CONTRACT, 5, 2, 3); /* the columns are off */
    whole(&p, true, "NM");
    statement(&p, MATH_CONTRACT, 6, 3, 3); /* 0 * 0 or 1 * 1: only the product of both errors tells */
    whole(&p, true, "M");
    storage s = storage_new(&p, MODERATE);
    for (int i = 0; i < 9; i++)
        store_code(DTYPE_BF16, s.tensors[0], i, encode_float(DTYPE_BF16, terms[i % 3]));
    for (int i = 0; i < 3; i++) {
        store_code(DTYPE_BF16, s.tensors[1], i, encode_float(DTYPE_BF16, 1));
        store_code(DTYPE_BF16, s.tensors[2], i, isinf(factors[i]) ? 0x7f80 : encode_float(DTYPE_BF16, factors[i]));
    }
    ck_assert_int_ge(check_inputs(&p, &s), 2 * (3 + 6 + 6 + 3)); /* every finite one, in both other orders */
    p.e.statement_count = 1;
    statement(&p, MATH_COPY, 7, 3, 0); /* the cast of what is off */
    whole(&p, true, "M");
    ck_assert_int_ge(check_inputs(&p, &s), 2 * (3 + 3));
    storage_free(&s);
}
END_TEST

/* Infinities, NaNs, subnormals and overflowing products: the same class in every order, or an infinite bound.
 */
START_TEST(any_bits_stay_within_bounds)
{
    quick = _i;
    for (size_t t = 0; t < sizeof typings / sizeof *typings; t++)
        for (int64_t depth = 1 + (int64_t)t % 6; depth < 40; depth += _i && SLOWER == 1 ? 6 : 18) {
            program p;
            matmul_program(&p, typings[t], 24, 24, depth);
            p.same_order = !is_float(typings[t].operand);
            check_program(&p, ANY_BITS);
        }
}
END_TEST

/* ---- random einsums ---- */

static void random_tensor(program *p, dtype t, const char *letters)
{
    char axes[MAX_RANK + 1] = "";
    size_t rank = 0;
    for (const char *at = letters; *at; at++)
        if (random_below(4)) {
            size_t place = (size_t)random_below((int64_t)rank + 1);
            memmove(axes + place + 1, axes + place, ++rank - place);
            axes[place] = *at;
        }
    axes[rank] = '\0';
    tensor(p, t, axes);
}

static bool has_axis(const program *p, uint32_t number, char axis)
{
    for (uint32_t i = 0; i < p->tensors[number].rank; i++)
        if (p->tensors[number].axes[i] == (uint32_t)(axis - 'A'))
            return true;
    return false;
}

/* Splits every axis into digits (the outermost may overshoot) and keeps a random part of them. */
static void random_digits(program *p, uint32_t dst, const char *letters, bool copy)
{
    einsum_digit kept[MAX_DIGITS], summed[MAX_DIGITS];
    int kept_count = 0, summed_count = 0;
    for (; *letters; letters++) {
        int64_t size = p->axes[*letters - 'A'].size, weight = 1;
        while (weight < size) {
            int64_t most = (size + weight - 1) / weight, n = most < 3 || !random_below(3) ? most : 2 + random_below(2);
            einsum_digit d = {(uint32_t)(*letters - 'A'), has_axis(p, dst, *letters) && (copy || random_below(3)), weight, n, 0, 0, 0, 0};
            weight *= n;
            if (d.kept)
                kept[kept_count++] = d;
            else if (!copy)
                summed[summed_count++] = d;
        }
    }
    for (int i = 0; i < kept_count; i++) {
        int other = (int)random_below(kept_count);
        einsum_digit swap = kept[i];
        kept[i] = kept[other];
        kept[other] = swap;
    }
    for (int i = 0; i < kept_count; i++)
        digit(p, true, (char)('A' + kept[i].axis), kept[i].weight, kept[i].size);
    for (int i = summed_count; i-- > 0;)
        digit(p, false, (char)('A' + summed[i].axis), summed[i].weight, summed[i].size);
}

/* Some digits that index a source are declared to be broadcast over it. */
static void random_broadcasts(program *p)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    einsum_digit *digits = p->digits[p->e.statement_count - 1];
    for (uint32_t i = 0; i < s->digit_count; i++)
        for (einsum_side side = EINSUM_A; side <= (s->op == MATH_COPY ? EINSUM_A : EINSUM_B); side++)
            if (digits[i].size > 1 && has_axis(p, einsum_operand(s, side), (char)('A' + digits[i].axis)) && !random_below(4))
                digits[i].broadcast |= (unsigned char)(1 << side);
}

/* Some of the innermost summed digits get a place in a packet, not all lanes of which are used. */
static void random_lanes(program *p)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    einsum_digit *digits = p->digits[p->e.statement_count - 1];
    for (int64_t i = s->digit_count, lane = 1 << random_below(2); i-- > 0 && !digits[i].kept && random_below(4);) {
        if (digits[i].size * lane > 128)
            return;
        digits[i].lane = (unsigned char)lane;
        lane = digits[i].size * lane + random_below(3);
    }
}

/* Summed digits from `digits` back to outer ones: strides in their group, with padding between them or none. Digits that count on from each
 * other may end with their axis. Returns the group's positions. */
static int64_t random_strides(const program *p, einsum_digit *digits, int count, unsigned group)
{
    int64_t positions = 1, run_weight = 1, run_stride = 1;
    for (int i = 0; i < count; i++) {
        einsum_digit *d = &digits[-i], *inner = d + 1;
        bool goes_on = i > 0 && d->axis == inner->axis && d->weight == inner->weight * inner->size && random_below(3);
        int64_t begin = i > 0 ? inner->stride * inner->size : 0;
        *d = (einsum_digit){
            d->axis, false, d->weight, d->size, d->broadcast, 0, (unsigned char)group, goes_on ? begin : positions + random_below(3) / 2};
        run_weight = goes_on ? run_weight : d->weight;
        run_stride = goes_on ? run_stride : d->stride;
        int64_t values = d->weight * d->size / run_weight, exist = (p->axes[d->axis].size - 1) / run_weight + 1;
        positions = run_stride * (values < exist ? values : exist);
    }
    return positions;
}

/* Groups of summed digits, cut into pieces anywhere, which are met in any order, some of the last ones in a packet. */
static void random_pieces(program *p)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    einsum_digit *digits = p->digits[p->e.statement_count - 1];
    einsum_piece *pieces = p->pieces[p->e.statement_count - 1];
    uint32_t first = 0;
    while (first < s->digit_count && digits[first].kept)
        first++;
    for (uint32_t end, group = 1; first < s->digit_count; first = end, group++) {
        end = first + 1 + (uint32_t)random_below(4);
        end = end < s->digit_count ? end : s->digit_count;
        int64_t positions = random_strides(p, &digits[end - 1], (int)(end - first), group), weight = 1;
        while (weight < positions) {
            int64_t rest = (positions + weight - 1) / weight,
                    size = rest < 2 || (random_below(3) && rest > 2) ? 2 + random_below(5) : rest + random_below(2);
            pieces[s->piece_count++] = (einsum_piece){(unsigned char)group, 0, weight, size};
            weight *= size;
        }
    }
    for (uint32_t i = s->piece_count; i > 1; i--) {
        uint32_t k = (uint32_t)random_below(i);
        einsum_piece swap = pieces[i - 1];
        pieces[i - 1] = pieces[k];
        pieces[k] = swap;
    }
    for (int64_t i = s->piece_count, lane = 1 << random_below(2); i-- > 0 && random_below(4) && pieces[i].size * lane <= 128;) {
        pieces[i].lane = (unsigned char)lane;
        lane = pieces[i].size * lane + random_below(3);
    }
}

/* A contraction, in the order that `order` gives it, and a copy of its result. */
static void random_program_of(program *p, void pick_order(program *))
{
    static const char letters[] = "ABCD";
    typing t = typings[random_below(sizeof typings / sizeof *typings)];
    program_init(p);
    for (const char *at = letters; *at; at++)
        size_of(p, *at, 1 + random_below(*at == 'A' ? 40 : 9));
    random_tensor(p, t.operand, letters);
    random_tensor(p, t.operand, letters);
    random_tensor(p, t.result, letters);
    random_tensor(p, t.result, letters);
    statement(p, MATH_CONTRACT, 2, 0, 1);
    random_digits(p, 2, letters, false);
    random_broadcasts(p);
    pick_order(p);
    statement(p, MATH_COPY, 3, 2, 0);
    random_digits(p, 3, letters, true);
    random_broadcasts(p);
}

static void random_program(program *p)
{
    random_program_of(p, random_lanes);
}

START_TEST(random_einsums)
{
    int64_t differing = 0;
    for (int round = 0; round < suite_rounds(250, 50000); round++) {
        program p;
        quick = round % 4 != 3;
        random_program(&p);
        differing += check_program(&p, MODERATE);
    }
    ck_assert_int_gt(differing, 100);
}
END_TEST

/* ---- random products ---- */

/* Batched products of every layout, large enough for whole tiles next to those that are not. Floats are small integers, of which every
 * order of summation gives the same: three nested loops judge them. */

static int64_t random_extent(int64_t most)
{
    switch (random_below(4)) {
    case 0: return 1 + random_below(5);
    case 1: return most < 16 ? most : 16 * (1 + random_below(most / 16));
    default: return 1 + random_below(most);
    }
}

static void shuffle(char *letters)
{
    for (size_t i = strlen(letters); i > 1; i--) {
        size_t j = (size_t)random_below((int64_t)i);
        char c = letters[i - 1];
        letters[i - 1] = letters[j];
        letters[j] = c;
    }
}

static int64_t stride_of(const program *p, uint32_t number, char axis)
{
    int64_t stride = 1;
    for (uint32_t i = p->tensors[number].rank; i-- > 0; stride *= p->axes[p->tensor_axes[number][i]].size)
        if (p->tensor_axes[number][i] == (uint32_t)(axis - 'A'))
            return stride;
    return 0;
}

typedef struct product {
    program p;
    unsigned char *tensors[3];
} product;

enum { CANARY_BYTES = 128 };

static void product_init(product *x)
{
    enum { MOST_TERMS = 150000 };
    char a[] = "BMK", b[] = "BKN", c[] = "BMN";
    typing t = typings[random_below(sizeof typings / sizeof *typings)];
    program *p = &x->p;
    program_init(p);
    int64_t batch = random_below(3) ? 1 : 2 + random_below(2), m = random_extent(100), n = random_extent(300), k = random_extent(600);
    while (batch * m * n * k > MOST_TERMS)
        *(m > 40 ? &m : k > 80 ? &k : n > 1 ? &n : &k) /= 2;
    size_of(p, 'B', batch);
    size_of(p, 'M', m);
    size_of(p, 'N', n);
    size_of(p, 'K', k);
    shuffle(a), shuffle(b), shuffle(c);
    tensor(p, t.operand, a);
    tensor(p, t.operand, b);
    tensor(p, t.result, c);
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, true, "BMN");
    whole(p, false, "K");
    for (uint32_t i = 0; i < 3; i++) {
        size_t bytes = (size_t)reference_tensor_bytes(&p->e, i);
        x->tensors[i] = malloc(bytes + CANARY_BYTES);
        memset(x->tensors[i], 0xa5, bytes + CANARY_BYTES);
        for (int64_t e = 0; i < 2 && e < einsum_tensor_elements(&p->e, i); e++)
            store_code(t.operand, x->tensors[i], e,
                       is_float(t.operand) ? encode_float(t.operand, (float)(random_below(5) - 2)) : (uint32_t)random_bits());
    }
}

static uint32_t product_element(const product *x, int64_t batch, int64_t row, int64_t column)
{
    const program *p = &x->p;
    dtype from = p->tensors[0].dtype, to = p->tensors[2].dtype;
    double real = 0;
    uint32_t integer = 0;
    int64_t a_at = batch * stride_of(p, 0, 'B') + row * stride_of(p, 0, 'M'),
            b_at = batch * stride_of(p, 1, 'B') + column * stride_of(p, 1, 'N');
    int64_t a_step = stride_of(p, 0, 'K'), b_step = stride_of(p, 1, 'K');
    for (int64_t k = 0; k < p->axes['K' - 'A'].size; k++) {
        double a = decode(from, load_code(from, x->tensors[0], a_at + k * a_step)),
               b = decode(from, load_code(from, x->tensors[1], b_at + k * b_step));
        real += a * b;
        integer += (uint32_t)((uint64_t)(int64_t)a * (uint64_t)(int64_t)b);
    }
    return is_float(to) ? encode_float(to, (float)real) : integer;
}

static void judge_product(const product *x)
{
    const program *p = &x->p;
    dtype to = p->tensors[2].dtype;
    int64_t batches = p->axes['B' - 'A'].size, rows = p->axes['M' - 'A'].size, columns = p->axes['N' - 'A'].size;
    uint32_t mask = dtype_row_of(to)->bits == 32 ? UINT32_MAX : (1u << dtype_row_of(to)->bits) - 1;
    for (int64_t i = 0; i < batches * rows * columns; i++) {
        int64_t batch = i / (rows * columns), row = i / columns % rows, column = i % columns;
        int64_t at = batch * stride_of(p, 2, 'B') + row * stride_of(p, 2, 'M') + column * stride_of(p, 2, 'N');
        uint32_t got = load_code(to, x->tensors[2], at), want = product_element(x, batch, row, column) & mask;
        MUST(got == want, "%s to %s, %lld of %lldx%lldx%lld: element %lld, %lld, %lld is %x, expected %x",
             dtype_row_of(p->tensors[0].dtype)->name, dtype_row_of(to)->name, (long long)batches, (long long)rows, (long long)columns,
             (long long)p->axes['K' - 'A'].size, (long long)batch, (long long)row, (long long)column, got, want);
    }
}

START_TEST(random_products)
{
    for (int round = 0; round < suite_rounds(540, 50000); round++) {
        product x;
        product_init(&x);
        choose_cpu();
        unsigned forms = REFERENCE_VALUES | (round / CPUS % 4 != 3 ? REFERENCE_QUICK : 0);
        reference_kernel *k = reference_compile(api, &x.p.e, "test kernel", forms, &diags);
        ck_assert_msg(k != NULL, "%s", diags.count ? diags.items[diags.count - 1]->message : "no diagnostic");
        ck_assert(reference_run(api, k, x.tensors, NULL, THREADS, &diags));
        api->release(k);
        judge_product(&x);
        for (uint32_t i = 0; i < 3; i++) {
            const unsigned char *end = x.tensors[i] + reference_tensor_bytes(&x.p.e, i);
            for (int c = 0; c < CANARY_BYTES; c++)
                MUST(end[c] == 0xa5, "tensor %u is written behind its end", i);
            free(x.tensors[i]);
        }
    }
}
END_TEST

/* The order that the digits say: the same bits, whatever the CPU. */
static void check_machine_order(const program *p, filling f)
{
    storage got = storage_new(p, f), want = storage_copy(p, &got);
    choose_cpu();
    reference_kernel *k =
        reference_compile(api, &p->e, "test kernel", REFERENCE_VALUES | REFERENCE_MACHINE_ORDER | (quick ? REFERENCE_QUICK : 0), &diags);
    ck_assert_msg(k != NULL, "%s", diags.count ? diags.items[diags.count - 1]->message : "no diagnostic");
    ck_assert(reference_run(api, k, got.tensors, NULL, THREADS, &diags));
    api->release(k);
    judge(p, want.tensors, MACHINE);
    for (uint32_t i = 0; i < p->e.tensor_count; i++)
        if (assigned(p, i))
            compare_bits(p, i, &got, &want, "value in the machine's order");
    storage_free(&got);
    storage_free(&want);
}

/* Steps whose lanes are no power of two, so that the last vector of depth is not whole steps; columns along depth and across it. */
START_TEST(steps_of_any_lanes_in_machine_order)
{
    for (int64_t lanes = 3; lanes < 40; lanes += 7)
        for (int64_t steps = 1; steps < 6; steps++)
            for (int across = 0; across < 2; across++) {
                program p;
                quick = steps % 2;
                program_init(&p);
                size_of(&p, 'M', 3);
                size_of(&p, 'N', 37);
                size_of(&p, 'T', steps);
                size_of(&p, 'L', lanes);
                tensor(&p, DTYPE_BF16, "MTL");
                tensor(&p, DTYPE_BF16, across ? "TLN" : "NTL");
                tensor(&p, DTYPE_F32, lanes % 2 ? "MN" : "NM");
                statement(&p, MATH_CONTRACT, 2, 0, 1);
                whole(&p, true, "MN");
                whole(&p, false, "TL");
                p.digits[0][3].lane = 1;
                check_machine_order(&p, MODERATE);
            }
}
END_TEST

START_TEST(random_einsums_in_machine_order)
{
    for (int round = 0; round < suite_rounds(60, 10000); round++) {
        program p;
        quick = round % 4 != 3;
        random_program(&p);
        check_machine_order(&p, MODERATE);
    }
}
END_TEST

START_TEST(random_groups_in_machine_order)
{
    for (int round = 0; round < suite_rounds(100, 10000); round++) {
        program p;
        quick = round % 4 != 3;
        random_program_of(&p, random_pieces);
        p.e.statement_count = 1;
        check_machine_order(&p, MODERATE);
    }
}
END_TEST

/* ---- sliding windows ---- */

static einsum_term term(char axis, int64_t weight, int64_t extent, int64_t stride)
{
    return (einsum_term){(uint32_t)(axis - 'A'), weight, extent, stride};
}

/* Half of the windows hold a part of their places only. */
static void random_border(program *p)
{
    int64_t size = p->axes[p->windows[p->e.window_count - 1].axis].size;
    if (size < 3 || random_below(2))
        return;
    int64_t first = random_below(size - 1), most = size - first - (first == 0);
    border(p, first, 2 + random_below(most - 1));
}

/* Y[O, P, N] = sum over F, G, C of X[$(O, F), $(P, G), C] * W[N, F, G, C], all strides and all digits at
 * random. */
static void random_convolution(program *p)
{
    typing t = typings[random_below(sizeof typings / sizeof *typings)];
    program_init(p);
    for (const char *at = "OPFGCN"; *at; at++)
        size_of(p, *at, 1 + random_below(*at == 'O' ? 12 : 6));
    window(p, 'X', term('O', 1, p->axes['O' - 'A'].size, 1 + random_below(3)), term('F', 1, p->axes['F' - 'A'].size, 1 + random_below(3)));
    random_border(p);
    window(p, 'Y', term('P', 1, p->axes['P' - 'A'].size, 1 + random_below(3)), term('G', 1, p->axes['G' - 'A'].size, 1 + random_below(3)));
    random_border(p);
    uint32_t image = tensor(p, t.operand, random_below(2) ? "XYC" : "CYX");
    uint32_t weights = tensor(p, t.operand, random_below(2) ? "NFGC" : "GFN");
    tensor(p, t.result, "NPO");
    tensor(p, t.operand, "XC");
    bool turned = random_below(2);
    statement(p, MATH_CONTRACT, 2, turned ? weights : image, turned ? image : weights);
    random_digits(p, 2, "OPFGCN", false);
    random_lanes(p);
    statement(p, MATH_COPY, 3, image, 0); /* the window as it is */
    random_digits(p, 3, "XC", true);
}

START_TEST(random_convolutions)
{
    for (int round = 0; round < suite_rounds(150, 10000); round++) {
        program p;
        quick = round % 4 != 3;
        random_convolution(&p);
        check_program(&p, MODERATE);
        if (round % 4 == 0)
            check_machine_order(&p, MODERATE);
    }
}
END_TEST

/* A convolution as anyone writes it: no digits, no judge. */
START_TEST(convolution_by_hand)
{
    static const struct {
        int64_t stride, dilation;
    } rows[] = {{1, 1}, {2, 1}, {1, 2}, {3, 2}};
    for (size_t r = 0; r < 3 * sizeof rows / sizeof *rows; r++) {
        enum { OUT = 5, FILTER = 3, CHANNELS = 4, RESULTS = 3 };
        int64_t stride = rows[r / 3].stride, dilation = rows[r / 3].dilation, before = r % 3, behind = r % 3 * 2,
                in = 1 + (OUT - 1) * stride + (FILTER - 1) * dilation - before - behind;
        program p;
        program_init(&p);
        size_of(&p, 'O', OUT);
        size_of(&p, 'P', OUT);
        size_of(&p, 'F', FILTER);
        size_of(&p, 'G', FILTER);
        size_of(&p, 'C', CHANNELS);
        size_of(&p, 'N', RESULTS);
        window(&p, 'X', term('O', 1, OUT, stride), term('F', 1, FILTER, dilation));
        if (r % 3)
            border(&p, before, in);
        window(&p, 'Y', term('P', 1, OUT, stride), term('G', 1, FILTER, dilation));
        if (r % 3)
            border(&p, before, in);
        tensor(&p, DTYPE_I8, "XYC");
        tensor(&p, DTYPE_I8, "NFGC");
        tensor(&p, DTYPE_I32, "OPN");
        statement(&p, MATH_CONTRACT, 2, 0, 1);
        whole(&p, true, "OPN");
        whole(&p, false, "FGC");
        storage s = storage_new(&p, MODERATE);
        reference_kernel *k = compile(&p);
        ck_assert(reference_run(api, k, s.tensors, NULL, THREADS, &diags));
        api->release(k);
        const int8_t *x = (const int8_t *)s.tensors[0], *w = (const int8_t *)s.tensors[1];
        const unsigned char *y = s.tensors[2];
        for (int64_t i = 0; i < OUT * OUT * RESULTS; i++) {
            int64_t sum = 0, n = i % RESULTS, column = i / RESULTS % OUT, row = i / RESULTS / OUT;
            for (int64_t f = 0; f < FILTER; f++)
                for (int64_t g = 0; g < FILTER; g++)
                    for (int64_t c = 0; c < CHANNELS; c++) {
                        int64_t h = row * stride + f * dilation - before, v = column * stride + g * dilation - before;
                        if (h >= 0 && h < in && v >= 0 && v < in)
                            sum += x[(h * in + v) * CHANNELS + c] * w[((n * FILTER + f) * FILTER + g) * CHANNELS + c];
                    }
            ck_assert_int_eq((int32_t)load_code(DTYPE_I32, y, i), sum);
        }
        storage_free(&s);
    }
}
END_TEST

/* A window over O % 4 next to O / 4: neighbouring digits of O must not become one. */
START_TEST(windows_over_digits)
{
    for (int variant = 0; variant < 4; variant++) {
        int split = variant & 1;
        program p;
        program_init(&p);
        size_of(&p, 'O', 12);
        size_of(&p, 'F', 3);
        size_of(&p, 'C', 5);
        window(&p, 'X', term('O', 1, 4, 2), term('F', 1, 3, 1));
        tensor(&p, DTYPE_I8, "OXC");
        tensor(&p, DTYPE_I8, "FC");
        tensor(&p, DTYPE_I32, "O");
        statement(&p, MATH_CONTRACT, 2, 0, 1);
        digit(&p, true, 'O', 4, 3);
        digit(&p, true, 'O', split ? 2 : 1, split ? 2 : 4);
        if (split)
            digit(&p, true, 'O', 1, 2);
        if (variant & 2) /* a's O / 4 is 0, and so is what its window takes from O */
            p.digits[0][0].broadcast = p.digits[0][1].broadcast = 1 << EINSUM_A;
        whole(&p, false, "FC");
        check_program(&p, MODERATE);
    }
}
END_TEST

/* ---- bounds ---- */

START_TEST(bounds_are_tight)
{
    static const typing tight[] = {{DTYPE_BF16, DTYPE_F32}, {DTYPE_F8E4M3, DTYPE_F32}, {DTYPE_F32, DTYPE_F32}};
    for (size_t t = 0; t < sizeof tight / sizeof *tight; t++) {
        program p;
        matmul_program(&p, tight[t], 8, 40, 512);
        storage s = storage_new(&p, POSITIVE);
        reference_kernel *k = compile(&p);
        ck_assert(reference_run(api, k, s.tensors, s.bounds, THREADS, &diags));
        for (int64_t i = 0; i < 8 * 40; i++) {
            double value = decode(DTYPE_F32, load_code(DTYPE_F32, s.tensors[2], i));
            ck_assert_double_gt(s.bounds[2][i], value * 1e-6);
            ck_assert_double_lt(s.bounds[2][i], value * 1e-4);
        }
        api->release(k);
        storage_free(&s);
    }
}
END_TEST

/* More terms than an f32 sum of magnitudes could count. */
START_TEST(bounds_of_long_sums)
{
    program p;
    matmul_program(&p, (typing){DTYPE_F8E4M3, DTYPE_F32}, 2, 3, 200000);
    p.same_order = true;
    ck_assert_int_gt(check_program(&p, POSITIVE), 0);
    storage s = storage_new(&p, POSITIVE);
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, s.tensors, s.bounds, THREADS, &diags));
    for (int64_t i = 0; i < 6; i++)
        ck_assert_double_lt(s.bounds[2][i], decode(DTYPE_F32, load_code(DTYPE_F32, s.tensors[2], i)) * 0.03);
    api->release(k);
    storage_free(&s);
}
END_TEST

START_TEST(integer_sums_wrap)
{
    program p;
    matmul_program(&p, (typing){DTYPE_I32, DTYPE_I32}, 1, 1, 3);
    unsigned char a[12], b[12], c[4], *tensors[] = {a, b, c};
    double bound = NAN, *bounds[] = {NULL, NULL, &bound};
    static const uint32_t left[] = {65536, 0x7fffffff, 1}, right[] = {65536, 1, 5};
    for (int i = 0; i < 3; i++) {
        store_code(DTYPE_I32, a, i, left[i]);
        store_code(DTYPE_I32, b, i, right[i]);
    }
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, tensors, bounds, THREADS, &diags));
    ck_assert_uint_eq(load_code(DTYPE_I32, c, 0), 0x80000004u);
    ck_assert(bound == 0);
    api->release(k);
}
END_TEST

/* ---- faults ---- */

static void refuses_order(const program *p, unsigned forms, const char *words)
{
    size_t before = diags.count;
    ck_assert_ptr_null(reference_compile(api, &p->e, "bad", REFERENCE_VALUES | forms, &diags));
    ck_assert_uint_eq(diags.count, before + 1);
    ck_assert_int_eq(diags.items[before]->id, E_REFERENCE);
    ck_assert_msg(strstr(diags.items[before]->message, words) != NULL, "\"%s\" lacks \"%s\"", diags.items[before]->message, words);
    unsigned char *bytes;
    size_t count;
    ck_assert(!reference_emit(api, &p->e, "bad", forms, NULL, REFERENCE_OBJECT, memory, &bytes, &count, &diags));
}

static void refuses(const program *p, const char *words)
{
    refuses_order(p, 0, words);
}

/* Y[O] = sum over F of X[$(O, F)] * W[F] */
static void convolution_program(program *p)
{
    program_init(p);
    size_of(p, 'O', 8);
    size_of(p, 'F', 3);
    window(p, 'X', term('O', 1, 8, 1), term('F', 1, 3, 1));
    tensor(p, DTYPE_I8, "X");
    tensor(p, DTYPE_I8, "F");
    tensor(p, DTYPE_I32, "O");
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, true, "O");
    whole(p, false, "F");
}

START_TEST(hostile_orders_are_refused)
{
    static const struct {
        einsum_piece pieces[2];
        uint32_t count;
        unsigned char lane, groups[2];
        int64_t strides[2];
        const char *words;
    } rows[] = {{{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 1, {1, 1}, {5, 1}, "without a group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 0}, {5, 1}, "without a group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {5, 0}, "without a group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {INT64_MAX, 1}, "without a group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {4, 1}, "two terms at one position"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {INT64_C(1) << 50, 1}, "more than 2^50 positions"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 2}, {5, 1}, "not the whole of group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 4}}, 2, 0, {1, 1}, {5, 1}, "not the whole of group"},
                {{{1, 0, 1, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "not the whole of group"},
                {{{1, 0, 4, 3}, {1, 1, 1, 4}}, 2, 0, {1, 1}, {5, 1}, "not the whole of group"},
                {{{1, 0, 8, 0}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "no size"},
                {{{1, 0, 8, INT64_MAX}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "no size"},
                {{{1, 0, 8, 3}, {1, 40, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "place in the packet"},
                {{{1, 8, 8, 3}, {1, 0, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "place in the packet"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        program p;
        group_program(&p);
        memcpy(p.pieces[0], rows[i].pieces, sizeof rows[i].pieces);
        p.statements[0].piece_count = rows[i].count;
        for (int d = 0; d < 2; d++) {
            p.digits[0][d].group = rows[i].groups[d];
            p.digits[0][d].stride = rows[i].strides[d];
        }
        p.digits[0][1].lane = rows[i].lane;
        refuses_order(&p, REFERENCE_MACHINE_ORDER, rows[i].words);
    }
}
END_TEST

START_TEST(hostile_einsums_are_refused)
{
    static const typing t = {DTYPE_BF16, DTYPE_F32};
    program p;
    matmul_program(&p, t, 4, 4, INT64_C(1) << 50);
    refuses(&p, "2^46 elements");
    matmul_program(&p, t, 1 << 20, 1 << 20, 1 << 20);
    refuses(&p, "2^50 combinations");
    matmul_program(&p, t, 1 << 15, 1 << 15, 1 << 20);
    refuses(&p, "scratch");
    matmul_program(&p, t, 4, 4, 0);
    refuses(&p, "size 0");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][0].weight = INT64_MAX;
    refuses(&p, "weight");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][0].size = INT64_MIN;
    refuses(&p, "size");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][0].weight = INT64_C(1) << 60;
    digit(&p, false, 'M', INT64_C(1) << 60, 2);
    refuses(&p, "2^62");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][0].axis = 99;
    refuses(&p, "axis");
    matmul_program(&p, t, 4, 4, 4);
    p.tensor_axes[0][0] = 26;
    refuses(&p, "axis");
    matmul_program(&p, t, 4, 4, 4);
    p.tensors[1].dtype = DTYPE_COUNT;
    refuses(&p, "element type");
    matmul_program(&p, t, 4, 4, 4);
    p.tensors[1].dtype = DTYPE_I8;
    refuses(&p, "mixes");
    matmul_program(&p, t, 4, 4, 4);
    p.statements[0].accumulator = DTYPE_I32;
    refuses(&p, "accumulates");
    matmul_program(&p, t, 4, 4, 4);
    p.statements[0].sources[1] = 3;
    refuses(&p, "beyond");
    matmul_program(&p, t, 4, 4, 4);
    p.statements[0].dst = 1;
    refuses(&p, "while it is read");
    matmul_program(&p, t, 4, 4, 4);
    p.statements[0].op = (math_op)8;
    refuses(&p, "operation");
    matmul_program(&p, t, 4, 4, 4);
    p.tensors[0].port = -1;
    refuses(&p, "before it is assigned");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][2].kept = true;
    refuses(&p, "destination lacks");
    copy_program(&p, DTYPE_I8, DTYPE_I8, 4);
    p.digits[0][0].kept = false;
    refuses(&p, "summed digit");
    convolution_program(&p);
    p.terms[0][0].extent = 9;
    refuses(&p, "no digit of an axis");
    convolution_program(&p);
    p.terms[0][0].axis = 'X' - 'A';
    refuses(&p, "no digit of an axis");
    convolution_program(&p);
    p.terms[0][0].stride = INT64_MAX;
    refuses(&p, "2^63");
    convolution_program(&p);
    p.terms[0][0].stride++;
    refuses(&p, "places");
    convolution_program(&p);
    p.windows[0].axis = 26;
    refuses(&p, "no axis");
    convolution_program(&p);
    border(&p, 3, p.axes['X' - 'A'].size - 2);
    refuses(&p, "places that it does not have");
    convolution_program(&p);
    window(&p, 'X', p.terms[0][0], p.terms[0][1]);
    refuses(&p, "the same as another");
    convolution_program(&p);
    p.digits[0][1] = (einsum_digit){'X' - 'A', false, 1, 3, 0, 0, 0, 0};
    refuses(&p, "by a window and by its terms");
    convolution_program(&p);
    p.terms[0][0] = term('O', 1, 4, 1);
    size_of(&p, 'X', 6);
    refuses(&p, "cuts");
    p.digits[0][0] = (einsum_digit){'O' - 'A', true, 3, 2, 0, 0, 0, 0};
    p.digits[0][1] = (einsum_digit){'O' - 'A', true, 1, 3, 0, 0, 0, 0};
    refuses(&p, "passes the end");
}
END_TEST

START_TEST(missing_inputs_are_refused)
{
    program p;
    matmul_program(&p, (typing){DTYPE_I8, DTYPE_I32}, 2, 2, 2);
    unsigned char a[4] = {1, 2, 3, 4}, *tensors[] = {a, NULL, NULL};
    reference_kernel *k = compile(&p);
    ck_assert(!reference_run(api, k, tensors, NULL, THREADS, &diags));
    ck_assert_msg(strstr(diags.items[diags.count - 1]->message, "tensor 1") != NULL, "names the tensor");
    api->release(k);
}
END_TEST

START_TEST(missing_library_is_a_diagnostic)
{
    setenv("VISA_REFERENCE", "/nowhere/libvisa_reference.so", 1);
    ck_assert_ptr_null(reference_load(&diags));
    ck_assert_uint_eq(diags.count, 1);
    ck_assert_int_eq(diags.items[0]->id, E_REFERENCE);
    ck_assert_ptr_nonnull(diags.items[0]->help);
    setenv("VISA_REFERENCE", "/proc/self/exe", 1); /* a file, but no library */
    ck_assert_ptr_null(reference_load(&diags));
    unsetenv("VISA_REFERENCE");
    ck_assert_ptr_eq(reference_load(&diags), api);
}
END_TEST

/* ---- files ---- */

START_TEST(files_are_reproducible)
{
    static const char *const begins[] = {[REFERENCE_LLVM] = "; ModuleID = 'a_b___ref'",
                                         [REFERENCE_BITCODE] = "BC\xc0\xde",
                                         [REFERENCE_ASSEMBLY] = "\t.text",
                                         [REFERENCE_OBJECT] = "\177ELF",
                                         [REFERENCE_HEADER] = "/* Reference kernel"};
    program p;
    chain_program(&p, DTYPE_BF16, DTYPE_BF16);
    p.e.text = "MK*/ evil";
    for (reference_output kind = REFERENCE_LLVM; kind <= REFERENCE_HEADER; kind++) {
        unsigned char *one, *two;
        size_t one_bytes, two_bytes;
        ck_assert(reference_emit(api, &p.e, "a.b*/", 0, NULL, kind, memory, &one, &one_bytes, &diags));
        ck_assert(reference_emit(api, &p.e, "a.b*/", 0, NULL, kind, memory, &two, &two_bytes, &diags));
        ck_assert_msg(one_bytes > 100 && strncmp((char *)one, begins[kind], strlen(begins[kind])) == 0, "kind %d: %.60s", (int)kind,
                      (char *)one);
        ck_assert(one_bytes == two_bytes && memcmp(one, two, one_bytes) == 0);
        if (kind != REFERENCE_OBJECT && kind != REFERENCE_BITCODE)
            ck_assert_ptr_nonnull(strstr((char *)one, "a_b___ref"));
        if (kind == REFERENCE_HEADER)
            ck_assert_ptr_null(strstr((char *)one, "*/ evil"));
    }
    unsigned char *none;
    size_t count;
    ck_assert(!reference_emit(api, &p.e, "x", 0, NULL, (reference_output)9, memory, &none, &count, &diags));
}
END_TEST

/* Of long runs too, the time limit is against hanging only. */
static TCase *random_case(const char *name)
{
    enum { LONG_SECONDS = 7200 };
    TCase *t = suite_case(name);
    tcase_add_checked_fixture(t, set_up, tear_down);
    if (getenv("VISA_LONG"))
        tcase_set_timeout(t, LONG_SECONDS);
    return t;
}

int main(void)
{
    Suite *s = suite_create("reference");
    TCase *t = suite_case("conversions");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, every_code_widens, 0, 2);
    tcase_add_loop_test(t, every_boundary_narrows, 0, 2);
    tcase_add_test(t, published_conversions);
    suite_add_tcase(s, t);
    t = suite_case("threads");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, threads_change_nothing);
    tcase_add_test(t, batches_are_shared);
    tcase_add_test(t, threads_change_no_bound);
    tcase_add_test(t, tiles_share_code);
    tcase_add_test(t, runs_at_once_are_apart);
    suite_add_tcase(s, t);
    t = suite_case("values");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, matmul_of_every_type);
    tcase_add_test(t, digit_kept_inside_a_sum);
    tcase_add_test(t, batches_broadcasts_and_scalars);
    tcase_add_test(t, elementwise_products);
    tcase_add_test(t, copies_move_and_cast);
    tcase_add_test(t, digits_that_overshoot);
    tcase_add_test(t, missing_terms_add_nothing);
    tcase_add_test(t, absent_places_add_nothing);
    tcase_add_test(t, kept_digits_decide_which_terms_exist);
    tcase_add_test(t, steps_of_any_lanes_in_machine_order);
    tcase_add_test(t, convolution_by_hand);
    tcase_add_test(t, windows_over_digits);
    tcase_add_test(t, integer_sums_wrap);
    suite_add_tcase(s, t);
    t = suite_case("bounds");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, chains_carry_bounds);
    tcase_add_test(t, errors_multiply_through);
    tcase_add_loop_test(t, any_bits_stay_within_bounds, 0, 2);
    tcase_add_test(t, bounds_are_tight);
    tcase_add_test(t, bounds_of_long_sums);
    suite_add_tcase(s, t);
    t = suite_case("refusals");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, hostile_einsums_are_refused);
    tcase_add_test(t, hostile_orders_are_refused);
    tcase_add_test(t, missing_inputs_are_refused);
    tcase_add_test(t, missing_library_is_a_diagnostic);
    tcase_add_test(t, files_are_reproducible);
    suite_add_tcase(s, t);
    t = random_case("random einsums");
    tcase_add_test(t, random_einsums);
    suite_add_tcase(s, t);
    t = random_case("random products and orders");
    tcase_add_test(t, random_products);
    tcase_add_test(t, random_einsums_in_machine_order);
    tcase_add_test(t, random_groups_in_machine_order);
    tcase_add_test(t, random_convolutions);
    suite_add_tcase(s, t);
    return suite_status(s);
}
