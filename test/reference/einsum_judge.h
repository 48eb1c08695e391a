/* The judge of the reference generator: plain C.
 *
 * The one idea: it walks every combination of digits as target/einsum.h defines it, rounds by looking the result up among all codes of a
 * type, and knows no LLVM. The same order of summation must give the same bits; another order must stay within the bounds. What the test
 * programs of this room share: einsums by hand, the judge, and how both are compared. */
#ifndef VISA_TEST_REFERENCE_EINSUM_JUDGE_H
#define VISA_TEST_REFERENCE_EINSUM_JUDGE_H

#include <check.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/reference_load.h"
#include "support/float_bits.h"
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
static inline void take_seed(void)
{
    const char *text = getenv("VISA_SEED");
    if (text)
        random_state ^= strtoull(text, NULL, 0) * 0xd1342543de82ef95u;
}

static inline void set_up(void)
{
    take_seed();
    memory = arena_new();
    diag_list_init(&diags, memory);
    api = reference_load(&diags);
    ck_assert_msg(api != NULL, "%s", diags.count ? diags.items[0]->message : "no diagnostic");
}

static inline void tear_down(void)
{
    arena_free(memory);
}

static inline uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1du >> 16;
}

static inline int64_t random_below(int64_t n)
{
    return (int64_t)(random_bits() % (uint64_t)n);
}

/* ---- element types by definition ---- */

static inline bool is_float(dtype t)
{
    return dtype_row_of(t)->kind == DTYPE_KIND_FLOAT;
}

static inline double small_float(unsigned code, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(code >> fraction_bits) & ((1 << exponent_bits) - 1);
    int fraction = (int)code & ((1 << fraction_bits) - 1);
    double f = fraction / (double)(1 << fraction_bits);
    double size = exponent ? (1 + f) * pow(2, exponent - bias) : f * pow(2, 1 - bias);
    return code >> (exponent_bits + fraction_bits) & 1 ? -size : size;
}

static inline double decode(dtype t, uint32_t code)
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
    default: return f32_of_bits(code);
    }
}

/* The largest code in [0, most] whose value is not above `size`, for codes that grow with their values. */
static inline uint32_t code_not_above(dtype t, uint32_t most, double size)
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

static inline uint32_t encode_e4m3(double size)
{
    uint32_t low = code_not_above(DTYPE_F8E4M3, 0x7e, size);
    if (low == 0x7e)
        return low;
    double below = size - decode(DTYPE_F8E4M3, low), above = decode(DTYPE_F8E4M3, low + 1) - size;
    return below < above || (below == above && low % 2 == 0) ? low : low + 1;
}

static inline uint32_t encode_e5m2(double size)
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

static inline uint32_t encode_bf16(double size)
{
    if (size < 0x1p-126)
        return 0;
    uint32_t low = code_not_above(DTYPE_BF16, 0x7f7f, size);
    double next = low == 0x7f7f ? 0x1p128 : decode(DTYPE_BF16, low + 1);
    double below = size - decode(DTYPE_BF16, low), above = next - size;
    return below < above || (below == above && low % 2 == 0) ? low : low + 1;
}

static inline uint32_t encode_float(dtype t, float x)
{
    double size = fabs((double)x);
    bool negative = signbit(x);
    switch (t) {
    case DTYPE_F8E4M3: return isnan(x) ? 0x7f : encode_e4m3(size) | (negative ? 0x80 : 0);
    case DTYPE_F8E5M2: return isnan(x) ? 0x7e : encode_e5m2(size) | (negative ? 0x80 : 0);
    case DTYPE_BF16: return isnan(x) ? 0x7fc0 : encode_bf16(size) | (negative ? 0x8000 : 0);
    default: return f32_bits(x);
    }
}

static inline uint32_t load_code(dtype t, const unsigned char *tensor, int64_t i)
{
    uint32_t code = 0;
    if (t == DTYPE_I4)
        return tensor[i / 2] >> (i % 2 * 4) & 15;
    for (unsigned byte = 0; byte < dtype_row_of(t)->bits / 8; byte++)
        code |= (uint32_t)tensor[i * (dtype_row_of(t)->bits / 8) + byte] << 8 * byte;
    return code;
}

static inline void store_code(dtype t, unsigned char *tensor, int64_t i, uint32_t code)
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

static inline void program_init(program *p)
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

static inline void size_of(program *p, char axis, int64_t size)
{
    p->axes[axis - 'A'].size = size;
}

/* `axis` becomes the window over two digits of other axes. */
static inline void window(program *p, char axis, einsum_term first, einsum_term second)
{
    uint32_t n = p->e.window_count++;
    ck_assert_uint_lt(n, 2);
    p->terms[n][0] = first;
    p->terms[n][1] = second;
    p->windows[n] = (einsum_window){(uint32_t)(axis - 'A'), 2, p->terms[n], false, 0};
    size_of(p, axis, 1 + (first.extent - 1) * first.stride + (second.extent - 1) * second.stride);
}

/* Of the last window only `size` places from `first` on are held. */
static inline void border(program *p, int64_t first, int64_t size)
{
    einsum_window *x = &p->windows[p->e.window_count - 1];
    x->bordered = true;
    x->first = first;
    p->axes[x->axis].size = size;
}

static inline uint32_t tensor(program *p, dtype t, const char *axes)
{
    uint32_t n = p->e.tensor_count++;
    ck_assert_uint_lt(n, MAX_TENSORS);
    p->tensors[n] = (einsum_tensor){.name = "t", .dtype = t, .port = (int32_t)n, .axes = p->tensor_axes[n]};
    for (; *axes; axes++)
        p->tensor_axes[n][p->tensors[n].rank++] = (uint32_t)(*axes - 'A');
    return n;
}

static inline void statement(program *p, math_op op, uint32_t dst, uint32_t a, uint32_t b)
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

static inline void digit(program *p, bool kept, char axis, int64_t weight, int64_t size)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    einsum_digit *digits = p->digits[p->e.statement_count - 1];
    ck_assert_uint_lt(s->digit_count, MAX_DIGITS);
    digits[s->digit_count++] = (einsum_digit){(uint32_t)(axis - 'A'), kept, weight, size, 0, 0, 0, 0};
}

static inline void shift(program *p, einsum_side side, char axis, int64_t offset)
{
    einsum_statement *s = &p->statements[p->e.statement_count - 1];
    ck_assert_uint_lt(s->shift_count, MAX_SHIFTS);
    p->shifts[p->e.statement_count - 1][s->shift_count++] = (einsum_shift){side, (uint32_t)(axis - 'A'), offset};
}

static inline void whole(program *p, bool kept, const char *axes)
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

static inline int64_t combinations(const einsum_statement *s, bool kept)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].kept == kept)
            n *= s->digits[i].size;
    return n;
}

static inline void set_counters(walk *w, bool kept, int64_t n)
{
    for (uint32_t i = w->s->digit_count; i-- > 0;)
        if (w->s->digits[i].kept == kept) {
            w->counters[i] = n % w->s->digits[i].size;
            n /= w->s->digits[i].size;
        }
}

/* Does some value of the digit but 0 move the term? */
static inline bool moves(const einsum_digit *d, const einsum_term *t)
{
    for (int64_t i = 1; d->axis == t->axis && i < d->size; i++)
        if (i * d->weight / t->weight % t->extent != 0)
            return true;
    return false;
}

/* A window is indexed by its terms when digits move them. */
static inline void window_coordinate(const walk *w, einsum_side side, const einsum_window *x, int64_t *coords)
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

static inline int64_t shift_of(const einsum_statement *s, einsum_side side, int axis)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].side == side && s->shifts[i].axis == (uint32_t)axis)
            sum += s->shifts[i].offset;
    return sum;
}

/* The axis, less its largest shift. */
static inline int64_t reach_of(const walk *w, int axis)
{
    int64_t most = 0;
    for (einsum_side side = EINSUM_DST; side < EINSUM_SIDES; side++)
        most = shift_of(w->s, side, axis) > most ? shift_of(w->s, side, axis) : most;
    return w->p->axes[axis].size - most;
}

/* Where the operand is accessed: what it is broadcast over does not count. False when a coordinate reaches the end of its axis. */
static inline bool coordinates(const walk *w, einsum_side side, int64_t *coords)
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
static inline bool term_exists(const walk *w)
{
    int64_t coords[LETTERS] = {0};
    for (uint32_t i = 0; i < w->s->digit_count; i++) {
        coords[w->s->digits[i].axis] += w->counters[i] * w->s->digits[i].weight;
        if (coords[w->s->digits[i].axis] >= reach_of(w, (int)w->s->digits[i].axis))
            return false;
    }
    return true;
}

static inline int64_t element(const program *p, uint32_t number, const int64_t *coords)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < p->tensors[number].rank; i++)
        at = at * p->axes[p->tensors[number].axes[i]].size + coords[p->tensors[number].axes[i]];
    return at;
}

static inline uint32_t source_code(const walk *w, einsum_side side, uint32_t number)
{
    int64_t coords[LETTERS];
    MUST(coordinates(w, side, coords), "a coordinate outside its axis");
    const einsum_tensor *t = &w->p->tensors[number];
    for (uint32_t i = 0; i < t->rank; i++) /* a border is zero */
        if (coords[t->axes[i]] < 0 || coords[t->axes[i]] >= w->p->axes[t->axes[i]].size)
            return 0;
    return load_code(t->dtype, w->tensors[number], element(w->p, number, coords));
}

static inline double source_value(const walk *w, einsum_side side, uint32_t number)
{
    return decode(w->p->tensors[number].dtype, source_code(w, side, number));
}

static inline float add_pairwise(const float *terms, int64_t n)
{
    if (n <= 1)
        return n ? terms[0] : 0;
    volatile float left = add_pairwise(terms, n / 2), right = add_pairwise(terms + n / 2, n - n / 2);
    return left + right;
}

static inline float add_in_order(const float *terms, int64_t n, order o)
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
static inline void add_lanes(packet *x)
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

static inline void meet(placed_term *t, int64_t counter, int64_t size, int64_t lane)
{
    t->step = lane ? t->step : t->step * size + counter;
    t->lane += (int)(counter * lane);
}

static inline void place_term(const walk *w, placed_term *t)
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

static inline int compare_steps(const void *x, const void *y)
{
    const placed_term *a = x, *b = y;
    return a->step < b->step ? -1 : a->step > b->step;
}

/* Steps of time one after the other; the first is stored. */
static inline float add_as_the_machine(walk *w)
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

static inline uint32_t contract_element(walk *w, dtype to)
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

static inline uint32_t copy_element(walk *w, dtype to)
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

static inline void judge_statement(walk *w)
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

static inline void judge(const program *p, unsigned char **tensors, order o)
{
    for (uint32_t i = 0; i < p->e.statement_count; i++)
        judge_statement(&(walk){.p = p, .s = &p->statements[i], .tensors = tensors, .order = o});
}

/* ---- comparing ---- */

typedef enum filling { MODERATE, POSITIVE, ANY_BITS } filling;

static inline uint32_t random_code(dtype t, filling f)
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

static inline bool assigned(const program *p, uint32_t number)
{
    for (uint32_t i = 0; i < p->e.statement_count; i++)
        if (p->statements[i].dst == number)
            return true;
    return false;
}

static inline storage storage_new(const program *p, filling f)
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

static inline storage storage_copy(const program *p, const storage *from)
{
    storage s = storage_new(p, MODERATE);
    for (uint32_t i = 0; i < p->e.tensor_count; i++)
        if (!assigned(p, i))
            memcpy(s.tensors[i], from->tensors[i], (size_t)reference_tensor_bytes(&p->e, i));
    return s;
}

static inline void storage_free(storage *s)
{
    for (int i = 0; i < MAX_TENSORS; i++) {
        free(s->tensors[i]);
        free(s->bounds[i]);
    }
}

static inline void compare_bits(const program *p, uint32_t number, const storage *got, const storage *want, const char *what)
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
static inline int64_t compare_bounds(const program *p, uint32_t number, const storage *got, const storage *other)
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

static inline bool can_be(const char *cpu)
{
#if defined(__x86_64__)
    return strcmp(cpu, "x86-64-v4") == 0 ? __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")
                                         : strcmp(cpu, "x86-64-v3") != 0 || __builtin_cpu_supports("avx2");
#else
    return strcmp(cpu, "native") == 0;
#endif
}

static bool quick; /* how `compile` builds: both ways must give the same values */

static inline void choose_cpu(void)
{
    const char *cpu = cpus[next_cpu++ % CPUS];
    (void)setenv("VISA_MCPU", can_be(cpu) ? cpu : "native", 1);
}

static inline reference_kernel *compile(const program *p)
{
    choose_cpu();
    unsigned forms = REFERENCE_VALUES | REFERENCE_BOUNDS | (quick ? REFERENCE_QUICK : 0);
    reference_kernel *k = reference_compile(api, &p->e, "test kernel", forms, &diags);
    ck_assert_msg(k != NULL, "%s", diags.count ? diags.items[diags.count - 1]->message : "no diagnostic");
    return k;
}

/* Floats are added in an order that depends on the CPU. */
static inline bool adds_floats(const program *p)
{
    for (uint32_t i = 0; i < p->e.statement_count; i++)
        if (p->statements[i].op == MATH_CONTRACT && is_float(p->tensors[p->statements[i].dst].dtype))
            return true;
    return false;
}

/* Runs both forms on the inputs of `given`, compares with all orders; returns how many elements another order
 * changed. */
static inline int64_t check_inputs(const program *p, const storage *given)
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

static inline int64_t check_program(const program *p, filling f)
{
    storage s = storage_new(p, f);
    int64_t differing = check_inputs(p, &s);
    storage_free(&s);
    return differing;
}

static inline void copy_program(program *p, dtype from, dtype to, int64_t size)
{
    program_init(p);
    size_of(p, 'A', size);
    tensor(p, from, "A");
    tensor(p, to, "A");
    statement(p, MATH_COPY, 1, 0, 0);
    whole(p, true, "A");
}

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

#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

static inline void sized_program(program *p, const char *axes, const int64_t *sizes)
{
    program_init(p);
    for (; *axes; axes++)
        size_of(p, *axes, *sizes++);
}

/* The result of two operands over axes of these sizes: digits for the axes that are kept and summed as a whole, others may follow. */
static inline void product_program(program *p, typing t, const char *axes, const int64_t *sizes, const char *a, const char *b,
                                   const char *result, const char *kept, const char *summed)
{
    sized_program(p, axes, sizes);
    tensor(p, t.operand, a);
    tensor(p, t.operand, b);
    tensor(p, t.result, result);
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, true, kept);
    whole(p, false, summed);
}

static inline void matmul_program(program *p, typing t, int64_t m, int64_t n, int64_t k)
{
    product_program(p, t, "MNK", SIZES(m, n, k), "MK", "NK", "MN", "MN", "K");
}

/* 15 cells X, Y at 3 steps of 8 lanes: the other nine places are no terms, and sums of -0 stay -0. */
static inline void group_program(program *p)
{
    product_program(p, (typing){DTYPE_BF16, DTYPE_F32}, "XY", SIZES(3, 5), "XY", "YX", "", "", "XY");
    p->digits[0][0].group = p->digits[0][1].group = 1;
    p->digits[0][0].stride = 5;
    p->digits[0][1].stride = 1;
    p->pieces[0][0] = (einsum_piece){1, 0, 8, 3};
    p->pieces[0][1] = (einsum_piece){1, 1, 1, 8};
    p->statements[0].piece_count = 2;
}

/* ---- random products ---- */

/* Batched products of every layout, large enough for whole tiles next to those that are not. Floats are small integers, of which every
 * order of summation gives the same: three nested loops judge them. */

typedef struct product {
    program p;
    unsigned char *tensors[3];
} product;

/* The order that the digits say: the same bits, whatever the CPU. */
static inline void check_machine_order(const program *p, filling f)
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

/* ---- sliding windows ---- */

static inline einsum_term term(char axis, int64_t weight, int64_t extent, int64_t stride)
{
    return (einsum_term){(uint32_t)(axis - 'A'), weight, extent, stride};
}

static inline TCase *random_case(const char *name)
{
    return suite_case_with(name, set_up, tear_down);
}

#endif
