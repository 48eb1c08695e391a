/* Map, reduce, gather, scatter and fill as the reference computes them, against test/reference/math_judge.h. */
#include <check.h>
#include <malloc.h>
#include <stdio.h>

#include "target/einsum_text.h"
#include "test/fixture.h"
#include "test/reference/math_judge.h"

/* As in test_reference.c: LeakSanitizer and LLVM. */
const char *__lsan_default_options(void);
__attribute__((visibility("default"))) const char *__lsan_default_options(void)
{
    return "use_tls=0";
}

static const reference_api *api;
static uint64_t random_state;

static void set_up(void)
{
    const char *seed = getenv("VISA_SEED");
    setup();
    mallopt(M_PERTURB, 0xb7); /* what nobody has cleared is not zero */
    random_state = 0x9e3779b97f4a7c15u ^ (seed ? strtoull(seed, NULL, 0) * 0xd1342543de82ef95u : 0);
    api = reference_load(&diags);
    ck_assert_msg(api != NULL, "%s", diags.count ? diags.items[0]->message : "");
}

static int64_t random_below(int64_t n)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int64_t)((random_state >> 33) % (uint64_t)n);
}

/* ---- statements by hand ---- */

enum { TENSORS = 12, STATEMENTS = 8, DIGITS = 24, STEPS = 64, PIECES = 8, SHIFTS = 4 };

typedef struct program {
    layout_axis axes[JUDGE_AXES];
    char names[JUDGE_AXES][2];
    einsum_tensor tensors[TENSORS];
    uint32_t tensor_axes[TENSORS][JUDGE_AXES];
    einsum_statement statements[STATEMENTS];
    einsum_digit digits[STATEMENTS][DIGITS];
    scalar_step steps[STATEMENTS][STEPS];
    einsum_piece pieces[STATEMENTS][PIECES];
    einsum_shift shifts[STATEMENTS][SHIFTS];
    einsum_index indices[STATEMENTS][4];
    einsum e;
    einsum_statement *s; /* the last one */
} program;

static void begin(program *p)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < JUDGE_AXES; i++) {
        p->names[i][0] = (char)('A' + i);
        p->axes[i] = (layout_axis){p->names[i], 1};
    }
    p->e = (einsum){.axes = p->axes, .axis_count = JUDGE_AXES, .tensors = p->tensors, .statements = p->statements, .text = "by hand"};
}

static uint32_t add_tensor(program *p, dtype t, const char *axes, bool port)
{
    uint32_t n = p->e.tensor_count++;
    ck_assert_uint_lt(n, TENSORS);
    p->tensors[n] =
        (einsum_tensor){.name = arena_printf(memory, "t%u", n), .dtype = t, .port = port ? (int32_t)n : -1, .axes = p->tensor_axes[n]};
    for (; *axes; axes++)
        p->tensor_axes[n][p->tensors[n].rank++] = (uint32_t)(*axes - 'A');
    return n;
}

static void add_statement(program *p, math_op op, uint32_t dst)
{
    uint32_t n = p->e.statement_count++;
    ck_assert_uint_lt(n, STATEMENTS);
    p->s = &p->statements[n];
    *p->s = (einsum_statement){.op = op,
                               .dst = dst,
                               .digits = p->digits[n],
                               .steps = p->steps[n],
                               .pieces = p->pieces[n],
                               .shifts = p->shifts[n],
                               .indices = p->indices[n]};
    p->s->accumulator = judge_is_float(p->tensors[dst].dtype) ? DTYPE_F32 : DTYPE_I32;
    if (op == MATH_FILL)
        p->s->accumulator = p->tensors[dst].dtype;
}

static void source(program *p, uint32_t tensor)
{
    if (p->s->source_count == 0 && (p->s->op == MATH_COPY || p->s->op == MATH_GATHER || p->s->op == MATH_SCATTER))
        p->s->accumulator = p->tensors[tensor].dtype;
    p->s->sources[p->s->source_count++] = tensor;
}

static einsum_digit *digit(program *p, bool kept, char axis, int64_t weight, int64_t size)
{
    einsum_digit *d = &p->digits[p->s - p->statements][p->s->digit_count++];
    ck_assert_uint_le(p->s->digit_count, DIGITS);
    *d = (einsum_digit){.axis = (uint32_t)(axis - 'A'), .kept = kept, .weight = weight, .size = size};
    return d;
}

static void whole(program *p, bool kept, const char *axes)
{
    for (; *axes; axes++)
        digit(p, kept, *axes, 1, p->axes[*axes - 'A'].size);
}

static void step(program *p, scalar_op op, uint32_t argument)
{
    ck_assert_uint_lt(p->s->step_count, STEPS);
    p->steps[p->s - p->statements][p->s->step_count++] = (scalar_step){op, argument};
}

static void add_index(program *p, uint32_t tensor, char axis, int64_t unit)
{
    p->indices[p->s - p->statements][p->s->source_count - 1] = (einsum_index){(uint32_t)(axis - 'A'), unit, 1, 1, 0, 0};
    source(p, tensor);
}

static void add_shift(program *p, einsum_side side, char axis, int64_t offset)
{
    p->shifts[p->s - p->statements][p->s->shift_count++] = (einsum_shift){side, (uint32_t)(axis - 'A'), offset};
}

/* ---- running and comparing ---- */

typedef struct storage {
    unsigned char *tensors[TENSORS];
    double *bounds[TENSORS];
} storage;

static uint32_t random_code(dtype t)
{
    uint32_t bits = (uint32_t)random_below(INT64_C(1) << 31) << 1 | (uint32_t)random_below(2);
    if (t == DTYPE_F32 && random_below(4))
        return (bits & 0x807fffff) | (uint32_t)(120 + random_below(14)) << 23;
    return t == DTYPE_BF16 && random_below(4) ? (bits & 0x807f) | (uint32_t)(120 + random_below(14)) << 7 : bits;
}

static storage new_storage(const program *p)
{
    storage s = {{0}, {0}};
    for (uint32_t i = 0; i < p->e.tensor_count; i++) {
        int64_t elements = einsum_tensor_elements(&p->e, i);
        s.tensors[i] = calloc((size_t)reference_tensor_bytes(&p->e, i) + 1, 1);
        s.bounds[i] = calloc((size_t)elements, sizeof(double));
        for (int64_t k = 0; k < elements; k++)
            judge_store(p->tensors[i].dtype, s.tensors[i], k, random_code(p->tensors[i].dtype));
    }
    return s;
}

static storage copy_storage(const program *p, const storage *from)
{
    storage s = new_storage(p);
    for (uint32_t i = 0; i < p->e.tensor_count; i++)
        memcpy(s.tensors[i], from->tensors[i], (size_t)reference_tensor_bytes(&p->e, i));
    return s;
}

static void free_storage(storage *s)
{
    for (int i = 0; i < TENSORS; i++) {
        free(s->tensors[i]);
        free(s->bounds[i]);
    }
}

static bool is_assigned(const program *p, uint32_t number)
{
    bool assigned = false;
    for (uint32_t i = 0; i < p->e.statement_count; i++)
        assigned = assigned || p->statements[i].dst == number;
    return assigned;
}

static double number_of(dtype t, uint32_t code)
{
    judge_value v = judge_widen(t, code);
    return judge_is_float(t) ? (double)v.f : v.i;
}

static int next_cpu;

static void choose_cpu(void)
{
#if defined(__x86_64__)
    static const char *const cpus[] = {"native", "x86-64-v4", "x86-64-v3", "x86-64"};
    int n = next_cpu++ % 4;
    bool wide = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"), can = n != 1 || wide;
    (void)setenv("VISA_MCPU", can && (n != 2 || __builtin_cpu_supports("avx2")) ? cpus[n] : "native", 1);
#endif
}

static reference_kernel *compile(const program *p, unsigned forms)
{
    choose_cpu();
    reference_kernel *k = reference_compile(api, &p->e, "by hand", forms, &diags);
    ck_assert_msg(k != NULL, "%s", diags.count ? diags.items[diags.count - 1]->message : "");
    return k;
}

static const char *text_of(const program *p)
{
    strbuf s;
    strbuf_init(&s, memory);
    for (uint32_t i = 0; i < p->e.statement_count; i++) {
        strbuf_puts(&s, i ? "; " : "");
        einsum_print_statement(&s, &p->e, &p->statements[i], true);
    }
    return s.text;
}

static void same_ports(const program *p, const storage *got, const storage *want, const char *what)
{
    for (uint32_t n = 0; n < p->e.tensor_count; n++)
        for (int64_t i = 0; p->tensors[n].port >= 0 && is_assigned(p, n) && i < einsum_tensor_elements(&p->e, n); i++) {
            dtype t = p->tensors[n].dtype;
            uint32_t g = judge_load(t, got->tensors[n], i), w = judge_load(t, want->tensors[n], i);
            if (g != w && !(isnan(number_of(t, g)) && isnan(number_of(t, w))))
                ck_abort_msg("%s: %s element %lld of %s is 0x%x (%g), expected 0x%x (%g); %s", what, p->tensors[n].name, (long long)i,
                             dtype_row_of(t)->name, g, number_of(t, g), w, number_of(t, w), text_of(p));
        }
}

/* How many elements differ; none by more than the bound. */
static int64_t within_bounds(const program *p, const storage *got, const storage *other)
{
    int64_t differing = 0;
    for (uint32_t n = 0; n < p->e.tensor_count; n++)
        for (int64_t i = 0; p->tensors[n].port >= 0 && is_assigned(p, n) && i < einsum_tensor_elements(&p->e, n); i++) {
            dtype t = p->tensors[n].dtype;
            double g = number_of(t, judge_load(t, got->tensors[n], i)), o = number_of(t, judge_load(t, other->tensors[n], i)),
                   bound = got->bounds[n][i];
            ck_assert_msg(bound >= 0, "bound %g of %s; %s", bound, p->tensors[n].name, text_of(p));
            if (g == o || (isnan(g) && isnan(o)))
                continue;
            differing++;
            if (!isinf(bound) && !(fabs(g - o) <= bound))
                ck_abort_msg("%s element %lld is %.9g, elsewhere %.9g, the bound is %g; %s", p->tensors[n].name, (long long)i, g, o, bound,
                             text_of(p));
        }
    return differing;
}

/* Both forms against the judge; how many indices were outside. `exact`: in bits. */
static int64_t check_on(const program *p, const storage *given, bool machine_order, bool exact)
{
    storage want = copy_storage(p, given), plain = copy_storage(p, given);
    int64_t outside = judge_einsum(&p->e, want.tensors, machine_order);
    size_t said = diags.count;
    reference_kernel *k = compile(p, machine_order ? REFERENCE_VALUES | REFERENCE_MACHINE_ORDER : REFERENCE_VALUES | REFERENCE_BOUNDS);
    ck_assert(reference_run(api, k, plain.tensors, NULL, 2, &diags));
    ck_assert_uint_eq(diags.count, said + (outside > 0));
    if (exact)
        same_ports(p, &plain, &want, machine_order ? "in the machine's order" : "value");
    if (!machine_order) {
        storage bounded = copy_storage(p, given);
        ck_assert(reference_run(api, k, bounded.tensors, bounded.bounds, 2, &diags));
        within_bounds(p, &bounded, &want);
        within_bounds(p, &bounded, &plain);
        if (exact)
            same_ports(p, &bounded, &want, "with bounds");
        free_storage(&bounded);
    }
    api->release(k);
    free_storage(&want);
    free_storage(&plain);
    return outside;
}

static int64_t check(const program *p, bool machine_order, bool exact)
{
    storage given = new_storage(p);
    int64_t outside = check_on(p, &given, machine_order, exact);
    free_storage(&given);
    return outside;
}

/* ---- operations ---- */

static const uint32_t edges_i32[] = {0,          1,          2,          3,          30,         31,         32,
                                     33,         0x7f,       0x80,       0x7fff,     0x8000,     0x3fffffff, 0x40000000,
                                     0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffff8, 0xfffffff7, 0xffffff80,
                                     0xffffff7f, 0x12345678, 16777217,   16777219};
static const float edges_f32[] = {
    0,          -0.0f,     1,     -1,     0.5f,    -0.5f,    1.5f,          2.5f,  -2.5f, 0x1p-126f, 0x1p-149f,
    -0x1p-140f, 3.25f,     1e10f, -1e10f, 0x1p31f, -0x1p31f, 2147483520.0f, 88.7f, -104,  1e-3f,     0x1.fffffep127f,
    INFINITY,   -INFINITY, NAN,   448,    464,     57344,    61440,         0.1f,  7,     120};
enum { EDGES_I32 = sizeof edges_i32 / sizeof *edges_i32, EDGES_F32 = sizeof edges_f32 / sizeof *edges_f32 };

/* One axis for each operand. */
static void operand(program *p, const scalar_row *row, unsigned i, const uint32_t *tensors, unsigned *next)
{
    step(p, SCALAR_SOURCE, *next);
    source(p, tensors[i]);
    ++*next;
    if (row->operands[i] == SCALAR_BOOL) {
        step(p, SCALAR_CONSTANT_I32, 3);
        step(p, SCALAR_LT_I32, 0);
    }
}

static void operation_program(program *p, const scalar_row *row)
{
    static const char *const axes[] = {"A", "B", "C"};
    uint32_t tensors[SCALAR_OPERANDS];
    unsigned arity = scalar_arity(row), next = 0;
    begin(p);
    for (unsigned i = 0; i < arity; i++) {
        bool f32 = row->operands[i] == SCALAR_F32;
        p->axes[i].size = f32 ? EDGES_F32 : EDGES_I32;
        tensors[i] = add_tensor(p, f32 ? DTYPE_F32 : DTYPE_I32, axes[i], true);
    }
    uint32_t out = add_tensor(p, row->result == SCALAR_F32 ? DTYPE_F32 : DTYPE_I32, arity == 1 ? "A" : arity == 2 ? "AB" : "ABC", true);
    add_statement(p, MATH_MAP, out);
    whole(p, true, arity == 1 ? "A" : arity == 2 ? "AB" : "ABC");
    for (unsigned i = 0; i < arity; i++)
        operand(p, row, i, tensors, &next);
    step(p, row->op, 0);
    if (row->result == SCALAR_BOOL) {
        step(p, SCALAR_CONSTANT_I32, 7);
        step(p, SCALAR_CONSTANT_I32, 9);
        step(p, SCALAR_SELECT_I32, 0);
    }
}

/* With sanitizers a third of what differs in its numbers alone. */
static bool is_left_out(size_t number)
{
    return SLOWER > 1 && !suite_is_long() && number % 3 != 0;
}

START_TEST(every_operation)
{
    for (size_t n = 0; scalar_row_at(n); n++)
        for (int cpu = 0; cpu < 4; cpu++) {
            if (is_left_out(n + (size_t)cpu))
                continue;
            program p;
            const scalar_row *row = scalar_row_at(n);
            operation_program(&p, row);
            storage s = new_storage(&p);
            for (unsigned i = 0; i < scalar_arity(row); i++)
                for (int64_t k = 0; k < p.axes[i].size; k++)
                    judge_store(DTYPE_I32, s.tensors[i], k, row->operands[i] == SCALAR_F32 ? f32_bits(edges_f32[k]) : edges_i32[k]);
            check_on(&p, &s, false, row->op != SCALAR_BITS_OF_F32);
            free_storage(&s);
        }
}
END_TEST

/* Published figures, which the judge must have as well. */
START_TEST(published_figures)
{
    static const struct {
        scalar_op op;
        int32_t a, b, result;
    } cases[] = {
        {SCALAR_MUL_FXP, 1 << 30, 1 << 30, 1 << 29},
        {SCALAR_MUL_FXP, 1, 1 << 30, 1},
        {SCALAR_MUL_FXP, -1, 1 << 30, 0},
        {SCALAR_MUL_FXP, INT32_MIN, 1, -1},
        {SCALAR_MUL_FXP, INT32_MIN, INT32_MIN, INT32_MAX},
        {SCALAR_F32_OF_FXP, 16777217, 31, 0x4b800000},
        {SCALAR_F32_OF_FXP, 16777219, 31, 0x4b800002},
        {SCALAR_F32_OF_FXP, -1, 31, (int32_t)0xbf800000},
        {SCALAR_F32_OF_FXP, 1 << 30, 0, 0x3f000000},
        {SCALAR_F32_OF_FXP, INT32_MIN, 7, (int32_t)0xc3000000},
        {SCALAR_FXP_OF_F32, 0x3f000000, 31, 1},
        {SCALAR_FXP_OF_F32, (int32_t)0xbf000000, 31, -1},
        {SCALAR_FXP_OF_F32, 0x3fc00000, 31, 2},
        {SCALAR_FXP_OF_F32, 0x40200000, 31, 3},
        {SCALAR_FXP_OF_F32, 0x501502f9, 31, INT32_MAX},
        {SCALAR_FXP_OF_F32, 0x7fc00000, 31, INT32_MAX},
        {SCALAR_FXP_OF_F32, (int32_t)0xffc00000, 31, INT32_MIN},
        {SCALAR_ADD_I32, 2147483600, 100, -2147483596},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p;
        begin(&p);
        bool from_f32 = cases[i].op == SCALAR_FXP_OF_F32, to_f32 = cases[i].op == SCALAR_F32_OF_FXP;
        uint32_t a = add_tensor(&p, from_f32 ? DTYPE_F32 : DTYPE_I32, "", true),
                 out = add_tensor(&p, to_f32 ? DTYPE_F32 : DTYPE_I32, "", true);
        add_statement(&p, MATH_MAP, out);
        source(&p, a);
        step(&p, SCALAR_SOURCE, 0);
        step(&p, SCALAR_CONSTANT_I32, (uint32_t)cases[i].b);
        step(&p, cases[i].op, 0);
        storage s = new_storage(&p);
        judge_store(DTYPE_I32, s.tensors[a], 0, (uint32_t)cases[i].a);
        check_on(&p, &s, false, true);
        judge_einsum(&p.e, s.tensors, false);
        ck_assert_int_eq((int32_t)judge_load(DTYPE_I32, s.tensors[out], 0), cases[i].result);
        free_storage(&s);
    }
}
END_TEST

/* ---- random expressions ---- */

/* What makes a NaN's bits, which have no meaning, visible. */
static bool shows_nans(scalar_op op)
{
    return op == SCALAR_BITS_OF_F32 || op == SCALAR_FXP_OF_F32;
}

static const scalar_row *random_row(scalar_type result)
{
    size_t count = 0;
    while (scalar_row_at(count))
        count++;
    for (;;) {
        const scalar_row *row = scalar_row_at((size_t)random_below((int64_t)count));
        if (row->result == result && !shows_nans(row->op))
            return row;
    }
}

static void random_value(program *p, scalar_type type, int depth)
{
    if (depth == 0 || (type != SCALAR_BOOL && random_below(4) == 0)) {
        for (uint32_t i = 0, from = (uint32_t)random_below(8); i < p->s->source_count; i++) {
            uint32_t n = (from + i) % p->s->source_count;
            if (scalar_type_of(p->tensors[p->s->sources[n]].dtype) == type && random_below(5)) {
                step(p, SCALAR_SOURCE, n);
                return;
            }
        }
        step(p, type == SCALAR_I32 ? SCALAR_CONSTANT_I32 : SCALAR_CONSTANT_F32,
             type == SCALAR_I32 ? edges_i32[random_below(EDGES_I32)] : f32_bits(edges_f32[random_below(24)]));
        return;
    }
    const scalar_row *row = random_row(type);
    for (unsigned i = 0; i < scalar_arity(row); i++)
        random_value(p, row->operands[i], row->operands[i] == SCALAR_BOOL && depth == 1 ? 1 : depth - 1);
    step(p, row->op, 0);
}

/* An expression over two or three sources; each that it does not name is added, or chosen by the smaller one.
 */
static void random_expression(program *p, scalar_type type)
{
    for (;;) {
        bool named[EINSUM_SOURCES] = {false};
        p->s->step_count = 0;
        random_value(p, type, 2);
        for (uint32_t i = 0; i < p->s->step_count; i++)
            if (p->s->steps[i].op == SCALAR_SOURCE)
                named[p->s->steps[i].argument] = true;
        for (uint32_t i = 0; i < p->s->source_count; i++) {
            if (named[i])
                continue;
            step(p, SCALAR_SOURCE, i);
            scalar_type from = scalar_type_of(p->tensors[p->s->sources[i]].dtype);
            if (from != type)
                step(p, from == SCALAR_I32 ? SCALAR_F32_OF_I32 : SCALAR_I32_OF_F32, 0);
            step(p, type == SCALAR_I32 ? SCALAR_XOR_I32 : SCALAR_MAX_F32, 0);
        }
        dtype types[EINSUM_SOURCES];
        for (uint32_t i = 0; i < p->s->source_count; i++)
            types[i] = p->tensors[p->s->sources[i]].dtype;
        if (scalar_result(p->s->steps, p->s->step_count, types, p->s->source_count) == type)
            return;
    }
}

static void random_axes(char *out, const char *from)
{
    size_t n = 0;
    for (; *from; from++)
        if (random_below(3))
            out[n++] = *from;
    out[n] = '\0';
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)random_below((int64_t)i);
        char c = out[i - 1];
        out[i - 1] = out[k];
        out[k] = c;
    }
}

/* Digits of an axis: one or two, which may pass its end. */
static void random_digits(program *p, bool kept, char axis)
{
    int64_t size = p->axes[axis - 'A'].size, inner = 1 + random_below(size);
    if (size == 1 || random_below(2)) {
        digit(p, kept, axis, 1, size);
        return;
    }
    digit(p, kept, axis, inner, (size + inner - 1) / inner);
    digit(p, kept, axis, 1, inner);
}

static void random_broadcasts_and_shifts(program *p)
{
    einsum_digit *digits = p->digits[p->s - p->statements];
    for (uint32_t i = 0; i < p->s->digit_count; i++)
        for (uint32_t k = 0; k < p->s->source_count; k++)
            if (digits[i].size > 1 && einsum_tensor_has(&p->tensors[p->s->sources[k]], digits[i].axis) && random_below(6) == 0)
                digits[i].broadcast |= 1u << (EINSUM_A + k);
    for (uint32_t k = 0; k < p->s->source_count && p->s->shift_count < SHIFTS; k++) {
        const einsum_tensor *t = &p->tensors[p->s->sources[k]];
        uint32_t axis = t->rank ? t->axes[0] : 0;
        if (t->rank && p->axes[axis].size > 1 && random_below(6) == 0)
            add_shift(p, (einsum_side)(EINSUM_A + k), (char)('A' + axis), 1 + random_below(p->axes[axis].size - 1));
    }
}

static dtype random_dtype(void)
{
    return (dtype)random_below(DTYPE_I5); /* those that memory can hold */
}

static void random_sizes(program *p, int axes)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 16, 17, 33, 40};
    for (int i = 0; i < axes; i++)
        p->axes[i].size = sizes[random_below(10)];
}

static void random_map(program *p, uint32_t dst, const char *axes, uint32_t sources)
{
    char own[8];
    uint32_t made[3];
    for (uint32_t i = 0; i < sources; i++) {
        random_axes(own, axes);
        made[i] = add_tensor(p, random_dtype(), own, true);
    }
    add_statement(p, MATH_MAP, dst);
    for (uint32_t i = 0; i < p->tensors[dst].rank; i++)
        random_digits(p, true, (char)('A' + p->tensors[dst].axes[i]));
    for (uint32_t i = 0; i < sources; i++)
        source(p, made[i]);
    random_expression(p, scalar_type_of(p->tensors[dst].dtype));
    random_broadcasts_and_shifts(p);
}

static int rounds(int few)
{
    return suite_rounds(few / 2);
}

START_TEST(random_maps)
{
    for (int i = 0; i < rounds(120); i++) {
        program p;
        char axes[8];
        begin(&p);
        random_sizes(&p, 3);
        random_axes(axes, "ABC");
        random_map(&p, add_tensor(&p, random_dtype(), axes, true), axes, (uint32_t)random_below(4));
        check(&p, false, true);
    }
}
END_TEST

/* ---- reductions ---- */

static const scalar_op folds[] = {SCALAR_ADD_I32, SCALAR_MUL_I32, SCALAR_ADD_SAT_I32, SCALAR_MIN_I32, SCALAR_MAX_I32, SCALAR_AND_I32,
                                  SCALAR_OR_I32,  SCALAR_XOR_I32, SCALAR_ADD_F32,     SCALAR_MUL_F32, SCALAR_MIN_F32, SCALAR_MAX_F32};
enum { FOLDS_COUNT = sizeof folds / sizeof *folds };

START_TEST(every_fold_is_listed)
{
    size_t found = 0;
    for (size_t i = 0; scalar_row_at(i); i++)
        found += (scalar_row_at(i)->flags & SCALAR_FOLDS) != 0;
    ck_assert_uint_eq(found, FOLDS_COUNT);
}
END_TEST

/* The summed digits that come last are lanes of a packet; or all are of groups cut at other places. */
static void random_order(program *p)
{
    einsum_digit *digits = p->digits[p->s - p->statements];
    int64_t lane = 1 + random_below(3), positions = 1;
    if (random_below(2)) {
        for (uint32_t i = p->s->digit_count; i-- > 0 && !digits[i].kept && lane * digits[i].size <= 128;) {
            digits[i].lane = (unsigned char)lane;
            lane *= digits[i].size + (lane * digits[i].size < 64 && random_below(3) == 0);
        }
        return;
    }
    for (uint32_t i = p->s->digit_count; i-- > 0 && !digits[i].kept;) {
        digits[i].group = 1;
        digits[i].stride = positions + random_below(2);
        positions = digits[i].stride * digits[i].size;
    }
    int64_t inner = 2 + random_below(15);
    if (positions <= inner)
        inner = positions < 2 ? 2 : positions;
    einsum_piece *pieces = p->pieces[p->s - p->statements];
    if (positions > inner)
        pieces[p->s->piece_count++] = (einsum_piece){1, 0, inner, (positions + inner - 1) / inner};
    pieces[p->s->piece_count++] = (einsum_piece){1, 1, 1, inner};
}

static void random_reduce(program *p, bool ordered)
{
    char axes[8] = "AB", summed[8] = "CD";
    scalar_op op = folds[random_below(FOLDS_COUNT)];
    bool f32 = scalar_row_of(op)->result == SCALAR_F32;
    random_sizes(p, 4);
    p->axes[3].size = 1 + random_below(6);
    if (random_below(3) == 0)
        axes[1] = '\0';
    uint32_t dst = add_tensor(p, f32 ? random_below(3) ? DTYPE_F32 : DTYPE_BF16 : random_below(3) ? DTYPE_I32 : DTYPE_I8, axes, true);
    uint32_t a = add_tensor(p, f32 ? DTYPE_F32 : DTYPE_I32, random_below(2) ? "ABCD" : "CDBA", true),
             b = add_tensor(p, f32 ? DTYPE_BF16 : DTYPE_I8, "CA", true);
    add_statement(p, MATH_REDUCE, dst);
    p->s->fold = op;
    for (const char *at = axes; *at; at++)
        random_digits(p, true, *at);
    for (const char *at = summed; *at; at++)
        random_digits(p, false, *at);
    source(p, a);
    step(p, SCALAR_SOURCE, 0);
    if (random_below(2)) {
        source(p, b);
        step(p, SCALAR_SOURCE, 1);
        step(p, f32 ? SCALAR_MUL_F32 : SCALAR_SUB_I32, 0);
    }
    if (ordered)
        random_order(p);
    else
        random_broadcasts_and_shifts(p);
}

START_TEST(random_reductions)
{
    for (int i = 0; i < rounds(150); i++) {
        program p;
        begin(&p);
        random_reduce(&p, false);
        check(&p, false, scalar_row_of(p.s->fold)->flags & SCALAR_ASSOCIATES);
    }
}
END_TEST

START_TEST(random_reductions_in_machine_order)
{
    for (int i = 0; i < rounds(150); i++) {
        program p;
        begin(&p);
        random_reduce(&p, true);
        check(&p, true, true);
    }
}
END_TEST

/* ---- gather, scatter, fill ---- */

static void fill_indices(const program *p, storage *s, uint32_t tensor, int64_t most)
{
    for (int64_t i = 0; i < einsum_tensor_elements(&p->e, tensor); i++)
        judge_store(p->tensors[tensor].dtype, s->tensors[tensor], i,
                    (uint32_t)(random_below(20) ? random_below(most) : random_below(50) - 25));
}

START_TEST(random_gathers)
{
    static const dtype index_types[] = {DTYPE_I32, DTYPE_I8, DTYPE_I16};
    int64_t outside = 0;
    for (int i = 0; i < rounds(60); i++) {
        program p;
        begin(&p);
        random_sizes(&p, 3);
        p.axes[5].size = 1 + random_below(30);
        dtype type = random_dtype(), to = random_below(2) || !judge_is_float(type) ? type : DTYPE_F32;
        uint32_t a = add_tensor(&p, type, random_below(2) ? "FB" : "BF", true),
                 at = add_tensor(&p, index_types[random_below(3)], random_below(3) ? "A" : "AB", true);
        uint32_t dst = add_tensor(&p, to, random_below(2) ? "AB" : "BA", true), count = add_tensor(&p, DTYPE_I32, "", true);
        add_statement(&p, MATH_GATHER, dst);
        random_digits(&p, true, 'A');
        random_digits(&p, true, 'B');
        source(&p, a);
        int64_t unit = 1 + random_below(p.axes[5].size);
        add_index(&p, at, 'F', unit);
        p.s->counted = random_below(2);
        p.s->count_span = einsum_tensor_elements(&p.e, at) / (random_below(2) ? p.axes[0].size : 1);
        if (p.s->counted)
            source(&p, count);
        storage s = new_storage(&p);
        judge_store(DTYPE_I32, s.tensors[count], 0, (uint32_t)(random_below(p.s->count_span + 4) - 2));
        fill_indices(&p, &s, at, (p.axes[5].size - 1) / unit + 1);
        outside += check_on(&p, &s, false, true);
        free_storage(&s);
    }
    ck_assert(outside > 0 || FEWER > 1); /* of two or three rounds none need be */
}
END_TEST

START_TEST(random_scatters)
{
    int64_t outside = 0;
    for (int i = 0; i < rounds(60); i++) {
        program p;
        begin(&p);
        random_sizes(&p, 3);
        p.axes[5].size = 1 + random_below(12); /* fewer places than elements: the last one stays */
        dtype type = random_dtype();
        uint32_t a = add_tensor(&p, type, random_below(2) ? "AB" : "BA", true),
                 at = add_tensor(&p, DTYPE_I32, random_below(3) ? "A" : "AB", true);
        uint32_t dst = add_tensor(&p, type, random_below(2) ? "FB" : "BF", true);
        if (random_below(2)) {
            add_statement(&p, MATH_FILL, dst);
            p.s->bits = random_code(type) & (uint32_t)((UINT64_C(1) << dtype_row_of(type)->bits) - 1);
            whole(&p, true, "FB");
        }
        add_statement(&p, MATH_SCATTER, dst);
        random_digits(&p, true, random_below(2) ? 'A' : 'B');
        random_digits(&p, true, p.digits[p.s - p.statements][0].axis == 0 ? 'B' : 'A');
        source(&p, a);
        add_index(&p, at, 'F', 1);
        storage s = new_storage(&p);
        fill_indices(&p, &s, at, p.axes[5].size);
        outside += check_on(&p, &s, false, true);
        free_storage(&s);
    }
    ck_assert(outside > 0 || FEWER > 1); /* of two or three rounds none need be */
}
END_TEST

START_TEST(places_outside_are_said)
{
    program p;
    begin(&p);
    p.axes[0].size = 4;
    uint32_t a = add_tensor(&p, DTYPE_I8, "A", true), at = add_tensor(&p, DTYPE_I32, "", true), dst = add_tensor(&p, DTYPE_I8, "", true);
    add_statement(&p, MATH_GATHER, dst);
    source(&p, a);
    add_index(&p, at, 'A', 1);
    storage s = new_storage(&p);
    judge_store(DTYPE_I32, s.tensors[at], 0, 4);
    ck_assert_int_eq(check_on(&p, &s, false, true), 1);
    char *text = arena_printf(memory, "%s: %s", diag_row_of(diags.items[0]->id)->name, diags.items[0]->message);
    ck_assert_str_eq(text, "E-CHECK-INDEX: reference kernel: 1 element is gathered from or scattered to "
                           "places outside an axis");
    free_storage(&s);
}
END_TEST

/* ---- chains ---- */

/* Was the intermediate computed without memory? Its storage is what it was. */
static void check_fused(const program *p, const uint32_t *between, size_t count, bool fused)
{
    storage given = new_storage(p), run = copy_storage(p, &given);
    reference_kernel *k = compile(p, REFERENCE_VALUES);
    ck_assert(reference_run(api, k, run.tensors, NULL, 1, &diags));
    for (size_t i = 0; i < count; i++) {
        bool same = memcmp(run.tensors[between[i]], given.tensors[between[i]], (size_t)reference_tensor_bytes(&p->e, between[i])) == 0;
        ck_assert_msg(same == fused, "%s %s; %s", p->tensors[between[i]].name, fused ? "was stored" : "was not stored", text_of(p));
    }
    api->release(k);
    free_storage(&given);
    free_storage(&run);
}

/* y = f(sum, its neighbours): a bias, a factor, a floor. */
static void add_epilogue(program *p, uint32_t dst, uint32_t from, uint32_t bias, uint32_t other)
{
    bool integer = scalar_type_of(p->tensors[from].dtype) == SCALAR_I32;
    add_statement(p, MATH_MAP, dst);
    whole(p, true, "AB");
    source(p, from);
    source(p, bias);
    source(p, other);
    step(p, SCALAR_SOURCE, 0);
    if (integer)
        step(p, SCALAR_F32_OF_I32, 0);
    step(p, SCALAR_SOURCE, 1);
    step(p, SCALAR_ADD_F32, 0);
    step(p, SCALAR_SOURCE, 2);
    step(p, SCALAR_MUL_F32, 0);
    step(p, SCALAR_CONSTANT_F32, 0);
    step(p, SCALAR_MAX_F32, 0);
    if (p->tensors[dst].dtype == DTYPE_I8) {
        step(p, SCALAR_I32_OF_F32, 0);
        step(p, SCALAR_SAT_I8, 0);
    }
}

static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {1, 64, 40}, {33, 17, 64}, {40, 100, 24}, {130, 70, 33}, {5, 1, 300}};

static void contraction_program(program *p, dtype from, dtype between, dtype to, const int64_t *shape, bool swapped, uint32_t *x)
{
    begin(p);
    p->axes[0].size = shape[0];
    p->axes[1].size = shape[1];
    p->axes[2].size = shape[2];
    uint32_t a = add_tensor(p, from, "AC", true), b = add_tensor(p, from, swapped ? "CB" : "BC", true);
    uint32_t bias = add_tensor(p, DTYPE_F32, "B", true), other = add_tensor(p, DTYPE_BF16, swapped ? "BA" : "A", true);
    *x = add_tensor(p, between, "AB", false);
    uint32_t dst = add_tensor(p, to, swapped ? "BA" : "AB", true);
    add_statement(p, MATH_CONTRACT, *x);
    whole(p, true, "AB");
    whole(p, false, "C");
    source(p, a);
    source(p, b);
    add_epilogue(p, dst, *x, bias, other);
}

START_TEST(maps_behind_contractions)
{
    static const dtype types[][3] = {{DTYPE_BF16, DTYPE_F32, DTYPE_BF16}, {DTYPE_BF16, DTYPE_BF16, DTYPE_F32},
                                     {DTYPE_I8, DTYPE_I32, DTYPE_F32},    {DTYPE_I8, DTYPE_I16, DTYPE_I8},
                                     {DTYPE_F32, DTYPE_F32, DTYPE_F32},   {DTYPE_F8E4M3, DTYPE_F32, DTYPE_F8E5M2}};
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            if (is_left_out(n + t))
                continue;
            program p;
            uint32_t x;
            contraction_program(&p, types[t][0], types[t][1], types[t][2], shapes[n], random_below(2), &x);
            check(&p, false, types[t][0] == DTYPE_I8);
            check(&p, true, true);
            check_fused(&p, &x, 1, true);
        }
}
END_TEST

/* Two maps and a reduction, whose intermediates are of narrow types. */
START_TEST(chains_of_maps)
{
    for (int i = 0; i < rounds(40); i++) {
        program p;
        begin(&p);
        random_sizes(&p, 3);
        for (int k = 0; k < 3; k++)
            p.axes[k].size += 1;
        uint32_t between[2] = {add_tensor(&p, random_dtype(), "ABC", false), add_tensor(&p, random_dtype(), "BAC", false)};
        dtype last = random_dtype();
        bool f32 = judge_is_float(last), reduces = random_below(2);
        uint32_t dst = add_tensor(&p, last, reduces ? "A" : "CAB", true), other = add_tensor(&p, random_dtype(), "BC", true);
        random_map(&p, between[0], "ABC", 2);
        add_statement(&p, MATH_MAP, between[1]);
        whole(&p, true, "ABC");
        source(&p, between[0]);
        source(&p, other);
        random_expression(&p, scalar_type_of(p.tensors[between[1]].dtype));
        add_statement(&p, reduces ? MATH_REDUCE : MATH_MAP, dst);
        p.s->fold = reduces ? f32 ? SCALAR_MAX_F32 : SCALAR_ADD_I32 : (scalar_op)0;
        random_digits(&p, true, 'A');
        random_digits(&p, !reduces, 'C');
        random_digits(&p, !reduces, 'B');
        source(&p, between[1]);
        random_expression(&p, f32 ? SCALAR_F32 : SCALAR_I32);
        check(&p, false, true);
        check(&p, true, true);
    }
}
END_TEST

static void plain_chain(program *p, bool broadcasts, uint32_t *between)
{
    begin(p);
    p->axes[0].size = 20;
    p->axes[1].size = 33;
    uint32_t a = add_tensor(p, DTYPE_F32, broadcasts ? "A" : "AB", true);
    *between = add_tensor(p, DTYPE_BF16, broadcasts ? "A" : "AB", false);
    uint32_t dst = add_tensor(p, DTYPE_F32, "AB", true);
    add_statement(p, MATH_MAP, *between);
    whole(p, true, broadcasts ? "A" : "AB");
    source(p, a);
    step(p, SCALAR_SOURCE, 0);
    step(p, SCALAR_EXP_F32, 0);
    add_statement(p, MATH_MAP, dst);
    whole(p, true, "AB");
    source(p, *between);
    step(p, SCALAR_SOURCE, 0);
    step(p, SCALAR_SOURCE, 0);
    step(p, SCALAR_MUL_F32, 0);
}

START_TEST(what_is_fused)
{
    program p;
    uint32_t between;
    plain_chain(&p, false, &between);
    check(&p, false, true);
    check_fused(&p, &between, 1, true);
    plain_chain(&p, true, &between); /* read 33 times */
    check_fused(&p, &between, 1, false);
    plain_chain(&p, false, &between);
    p.tensors[between].port = 7; /* wanted from outside */
    check_fused(&p, &between, 1, false);
    plain_chain(&p, false, &between);
    uint32_t second = add_tensor(&p, DTYPE_BF16, "AB", true); /* read twice */
    add_statement(&p, MATH_COPY, second);
    whole(&p, true, "AB");
    source(&p, between);
    check(&p, false, true);
    check_fused(&p, &between, 1, false);
    plain_chain(&p, false, &between); /* its source changes before it is read */
    uint32_t memory_of = add_tensor(&p, DTYPE_F32, "AB", false);
    p.statements[2] = p.statements[1];
    memcpy(p.digits[2], p.digits[1], sizeof p.digits[1]);
    memcpy(p.steps[2], p.steps[1], sizeof p.steps[1]);
    p.statements[2].digits = p.digits[2];
    p.statements[2].steps = p.steps[2];
    p.statements[0].sources[0] = memory_of;
    p.e.statement_count = 4;
    p.statements[3] = p.statements[2];
    p.statements[2] = p.statements[0];
    p.statements[1] = p.statements[0];
    static const einsum_digit row[] = {{.axis = 1, .kept = true, .weight = 1, .size = 33}};
    static const einsum_shift second_row = {EINSUM_DST, 0, 1};
    static const scalar_step negated[] = {{SCALAR_SOURCE, 0}, {SCALAR_NEG_F32, 0}};
    p.statements[0] = (einsum_statement){.op = MATH_MAP, /* a copy would be read where it was */
                                         .dst = memory_of,
                                         .sources = {0},
                                         .source_count = 1,
                                         .accumulator = DTYPE_F32,
                                         .digit_count = 2,
                                         .digits = p.digits[0],
                                         .step_count = 2,
                                         .steps = negated};
    p.statements[2] = (einsum_statement){.op = MATH_FILL,
                                         .dst = memory_of,
                                         .accumulator = DTYPE_F32,
                                         .digit_count = 1,
                                         .digits = row,
                                         .shift_count = 1,
                                         .shifts = &second_row,
                                         .bits = 0x40000000};
    check(&p, false, true);
    check_fused(&p, &between, 1, false);
}
END_TEST

/* A tensor that copies put together at places of the axis C, and what reads some of them; its result in parts. */
static void put_together(program *p, uint32_t *together, bool plain)
{
    static const dtype types[][2] = {{DTYPE_BF16, DTYPE_F32},  {DTYPE_F32, DTYPE_F32}, {DTYPE_F32, DTYPE_BF16},  {DTYPE_I8, DTYPE_I32},
                                     {DTYPE_BF16, DTYPE_BF16}, {DTYPE_I32, DTYPE_I8},  {DTYPE_F8E4M3, DTYPE_F32}};
    static const char *const orders[] = {"ABC", "CAB", "ACB", "BAC"};
    int64_t places = 2 + random_below(2), type = random_below(plain ? 2 : sizeof types / sizeof *types);
    begin(p);
    p->axes[0].size = 1 + random_below(5);
    p->axes[1].size = 1 + random_below(40);
    p->axes[2].size = places;
    p->axes[3].size = 3;
    bool lacks = random_below(4) == 0 && !plain, of_place = random_below(2);
    if (plain && p->axes[1].size == 1)
        of_place = false; /* A would be the innermost axis, and lie 3 elements apart where the copy has it 2 apart: rightly copied */
    uint32_t from[2], dst = 0;
    for (int i = 0; i < 2; i++)
        from[i] = add_tensor(p, types[type][0], lacks ? "B" : of_place ? "ADB" : random_below(2) || plain ? "AB" : "BA", true);
    *together = add_tensor(p, types[type][1], plain ? "ABC" : orders[random_below(4)], false);
    dst = add_tensor(p, types[type][1] == DTYPE_BF16 ? DTYPE_F32 : types[type][1], "ABC", true);
    bool changes = !plain && random_below(4) == 0;
    const char *all = lacks ? "B" : of_place ? "ABD" : "AB";
    if (changes) {
        p->tensors[from[0]].port = -1;
        add_statement(p, MATH_COPY, from[0]);
        whole(p, true, all);
        source(p, from[1]);
    }
    for (int64_t place = 0; place < places; place++) {
        if (!plain && place > 0 && random_below(6) == 0)
            continue; /* zero there */
        bool fills = !plain && random_below(6) == 0;
        add_statement(p, fills ? MATH_FILL : MATH_COPY, *together);
        whole(p, true, random_below(2) ? "AB" : "BA");
        if (fills)
            p->s->bits = 0x40;
        else
            source(p, from[random_below(2)]);
        if (!fills && of_place && !lacks && random_below(2))
            add_shift(p, EINSUM_A, 'D', 1 + random_below(2));
        if (place > 0)
            add_shift(p, EINSUM_DST, 'C', place);
    }
    if (changes) { /* what was copied, or one place of it */
        add_statement(p, MATH_FILL, random_below(2) ? *together : from[0]);
        whole(p, true, p->s->dst == *together ? "AB" : all);
        p->s->bits = 0x41;
    }
    bool reduces = !plain && random_below(3) == 0;
    for (int64_t place = 0; place < places; place++) {
        add_statement(p, reduces ? MATH_REDUCE : MATH_MAP, dst);
        bool is_float = judge_is_float(p->tensors[dst].dtype);
        whole(p, true, "AB");
        if (!plain && random_below(3) == 0)
            digit(p, !reduces, 'C', 1, places)->broadcast = random_below(2) ? 1u << EINSUM_B : 0;
        bool walks = p->s->digit_count == 3;
        source(p, *together);
        source(p, *together);
        step(p, SCALAR_SOURCE, 0);
        step(p, SCALAR_SOURCE, 1);
        step(p, is_float ? SCALAR_SUB_F32 : SCALAR_SUB_I32, 0);
        p->s->fold = reduces ? is_float ? SCALAR_MAX_F32 : SCALAR_ADD_I32 : (scalar_op)0;
        for (int side = EINSUM_DST; side <= (int)EINSUM_B && !walks; side++)
            if (side == EINSUM_DST ? place > 0 : random_below(2) == 0)
                add_shift(p, (einsum_side)side, 'C', side == EINSUM_DST ? place : 1 + random_below(places - 1));
    }
}

START_TEST(copies_are_read_where_they_were)
{
    for (int i = 0; i < rounds(300); i++) {
        program p;
        uint32_t together;
        put_together(&p, &together, i % 3 == 0);
        check(&p, false, true);
        if (i % 4 == 0)
            check(&p, true, true);
        if (i % 3 == 0)
            check_fused(&p, &together, 1, true);
    }
}
END_TEST

static void copy_or_multiply(program *p, bool multiplies, uint32_t dst, uint32_t a, uint32_t b)
{
    add_statement(p, multiplies ? MATH_CONTRACT : MATH_COPY, dst);
    source(p, a);
    if (multiplies)
        source(p, b);
}

/* An intermediate of which some statements write a part each, and some read one. */
static void parts_of_an_intermediate(program *p)
{
    bool multiplies = random_below(2), turned = random_below(2);
    int64_t size = 2 + random_below(14);
    begin(p);
    p->axes[0].size = size;
    p->axes[1].size = 1 + random_below(20);
    p->axes[2].size = 1 + random_below(5);
    uint32_t a = add_tensor(p, DTYPE_I8, multiplies ? "AC" : "AB", true), b = add_tensor(p, DTYPE_I8, "BC", true),
             parts = add_tensor(p, DTYPE_I32, turned ? "BA" : "AB", false);
    for (int64_t i = 0, count = 1 + random_below(3); i < count; i++) {
        int64_t first = random_below(size);
        copy_or_multiply(p, multiplies, parts, a, b);
        digit(p, true, 'A', 1, 1 + random_below(random_below(3) ? size - first : size)); /* what leaves the axis does not exist */
        whole(p, true, "B");
        if (multiplies)
            whole(p, false, "C");
        if (first > 0)
            add_shift(p, EINSUM_DST, 'A', first);
        if (random_below(3) == 0)
            add_shift(p, EINSUM_A, 'A', 1 + random_below(size - 1));
    }
    for (int64_t i = 0, count = 1 + random_below(3); i < count; i++) {
        int64_t first = random_below(size);
        add_statement(p, MATH_MAP, add_tensor(p, DTYPE_I32, "AB", true));
        digit(p, true, 'A', 1, 1 + random_below(size - first));
        whole(p, true, "B");
        source(p, parts);
        step(p, SCALAR_SOURCE, 0);
        step(p, SCALAR_CONSTANT_I32, 5);
        step(p, SCALAR_ADD_I32, 0);
        if (first > 0)
            add_shift(p, EINSUM_A, 'A', first);
    }
}

/* One statement writes the intermediate, along the whole axis but for what its source's offset leads past the end; all of it is read. */
static void end_of_an_intermediate(program *p, bool multiplies, int64_t past)
{
    begin(p);
    p->axes[0].size = 8;
    p->axes[1].size = 5;
    p->axes[2].size = 3;
    uint32_t a = add_tensor(p, DTYPE_I8, multiplies ? "AC" : "AB", true), b = add_tensor(p, DTYPE_I8, "BC", true),
             middle = add_tensor(p, DTYPE_I32, "AB", false);
    copy_or_multiply(p, multiplies, middle, a, b);
    whole(p, true, "AB");
    if (multiplies)
        whole(p, false, "C");
    add_shift(p, EINSUM_A, 'A', past);
    for (int reader = 0; reader < 2; reader++) {
        add_statement(p, MATH_MAP, add_tensor(p, DTYPE_I32, "AB", true));
        whole(p, true, "AB");
        source(p, middle);
        step(p, SCALAR_SOURCE, 0);
        step(p, SCALAR_CONSTANT_I32, 5 + (uint32_t)reader);
        step(p, SCALAR_ADD_I32, 0);
    }
}

START_TEST(what_nobody_writes_is_zero)
{
    for (int i = 0; i < 6; i++) {
        program p;
        end_of_an_intermediate(&p, i % 2, 1 + i);
        check(&p, false, true);
        check(&p, true, true);
    }
    for (int i = 0; i < rounds(400); i++) {
        program p;
        parts_of_an_intermediate(&p);
        check(&p, false, true);
        if (i % 8 == 0)
            check(&p, true, true);
    }
}
END_TEST

/* Errors of sums pass through every rule: two orders of the sums, one bound. */
START_TEST(errors_pass_through)
{
    int64_t differing = 0;
    for (size_t n = 0; scalar_row_at(n); n++) {
        const scalar_row *row = scalar_row_at(n);
        bool floats = row->result != SCALAR_I32;
        for (unsigned i = 0; i < scalar_arity(row); i++)
            floats = floats && row->operands[i] != SCALAR_I32;
        if (!floats || (row->op >= SCALAR_AND_BOOL && row->op <= SCALAR_NOT_BOOL) || is_left_out(n))
            continue;
        program p;
        begin(&p);
        p.axes[0].size = 50;
        p.axes[1].size = 60;
        uint32_t sums[3];
        uint32_t a = add_tensor(&p, DTYPE_F32, "AB", true), b = add_tensor(&p, DTYPE_F32, "BA", true);
        for (int i = 0; i < 3; i++)
            sums[i] = add_tensor(&p, DTYPE_F32, "A", false);
        uint32_t dst = add_tensor(&p, DTYPE_F32, "A", true);
        for (int i = 0; i < 3; i++) {
            add_statement(&p, MATH_CONTRACT, sums[i]);
            whole(&p, true, "A");
            whole(&p, false, "B");
            source(&p, a);
            source(&p, i == 1 ? a : b);
        }
        add_statement(&p, MATH_MAP, dst);
        whole(&p, true, "A");
        unsigned next = 0;
        for (unsigned i = 0; i < 3; i++)
            source(&p, sums[i]);
        for (unsigned i = 0; i < scalar_arity(row); i++, next++) {
            step(&p, SCALAR_SOURCE, i);
            if (row->operands[i] == SCALAR_BOOL) {
                step(&p, SCALAR_CONSTANT_F32, 0);
                step(&p, SCALAR_LT_F32, 0);
            }
        }
        step(&p, row->op, 0);
        if (row->result == SCALAR_BOOL) {
            step(&p, SCALAR_CONSTANT_F32, 0x3f800000);
            step(&p, SCALAR_CONSTANT_F32, 0);
            step(&p, SCALAR_SELECT_F32, 0);
        }
        for (; next < 3; next++) {
            step(&p, SCALAR_SOURCE, next);
            step(&p, SCALAR_CONSTANT_F32, 0);
            step(&p, SCALAR_MUL_F32, 0);
            step(&p, SCALAR_ADD_F32, 0);
        }
        storage given = new_storage(&p);
        for (int64_t i = 0; i < 50 * 60; i++) {
            judge_store(DTYPE_F32, given.tensors[a], i, f32_bits((float)(random_below(2000) - 1000) * 0.001f));
            judge_store(DTYPE_F32, given.tensors[b], i, f32_bits((float)(random_below(2000) - 900) * 0.001f));
        }
        storage bounded = copy_storage(&p, &given), other = copy_storage(&p, &given);
        for (int64_t i = 0; i < 50; i++)
            for (int64_t j = 0; j < 60; j++) { /* the sums run the other way */
                judge_store(DTYPE_F32, other.tensors[a], i * 60 + 59 - j, judge_load(DTYPE_F32, given.tensors[a], i * 60 + j));
                judge_store(DTYPE_F32, other.tensors[b], (59 - j) * 50 + i, judge_load(DTYPE_F32, given.tensors[b], j * 50 + i));
            }
        reference_kernel *k = compile(&p, REFERENCE_BOUNDS), *m = compile(&p, REFERENCE_VALUES | REFERENCE_MACHINE_ORDER);
        ck_assert(reference_run(api, k, bounded.tensors, bounded.bounds, 1, &diags));
        ck_assert(reference_run(api, m, other.tensors, NULL, 1, &diags));
        differing += within_bounds(&p, &bounded, &other);
        api->release(k);
        api->release(m);
        free_storage(&given);
        free_storage(&bounded);
        free_storage(&other);
    }
    ck_assert_int_gt(differing, 100);
}
END_TEST

/* ---- a composition: sums, their exponentials, and those divided by their own sums ---- */

enum { SOFTMAX_ROWS = 8, SOFTMAX_TERMS = 64, SOFTMAX_COLUMNS = 24 };
typedef struct softmax {
    uint32_t x, w, result;
} softmax;

static softmax softmax_program(program *p)
{
    begin(p);
    p->axes[0].size = SOFTMAX_ROWS;
    p->axes[1].size = SOFTMAX_TERMS;
    p->axes[2].size = SOFTMAX_COLUMNS;
    softmax s = {.x = add_tensor(p, DTYPE_F32, "AB", true), .w = add_tensor(p, DTYPE_F32, "BC", true)};
    uint32_t sums = add_tensor(p, DTYPE_F32, "AC", false), powers = add_tensor(p, DTYPE_F32, "AC", false),
             totals = add_tensor(p, DTYPE_F32, "A", false);
    s.result = add_tensor(p, DTYPE_F32, "AC", true);
    add_statement(p, MATH_CONTRACT, sums);
    whole(p, true, "AC");
    whole(p, false, "B");
    source(p, s.x);
    source(p, s.w);
    add_statement(p, MATH_MAP, powers);
    whole(p, true, "AC");
    source(p, sums);
    step(p, SCALAR_SOURCE, 0);
    step(p, SCALAR_EXP_F32, 0);
    add_statement(p, MATH_REDUCE, totals);
    p->s->fold = SCALAR_ADD_F32;
    whole(p, true, "A");
    whole(p, false, "C");
    source(p, powers);
    step(p, SCALAR_SOURCE, 0);
    add_statement(p, MATH_MAP, s.result);
    whole(p, true, "AC");
    source(p, powers);
    source(p, totals);
    step(p, SCALAR_SOURCE, 0);
    step(p, SCALAR_SOURCE, 1);
    step(p, SCALAR_DIV_F32, 0);
    return s;
}

/* Both factors of term b become those of term 63 - b. */
static void turn_terms(const softmax *s, const storage *from, storage *to)
{
    for (int64_t b = 0; b < SOFTMAX_TERMS; b++) {
        int64_t other = SOFTMAX_TERMS - 1 - b;
        for (int64_t a = 0; a < SOFTMAX_ROWS; a++)
            judge_store(DTYPE_F32, to->tensors[s->x], a * SOFTMAX_TERMS + other,
                        judge_load(DTYPE_F32, from->tensors[s->x], a * SOFTMAX_TERMS + b));
        for (int64_t c = 0; c < SOFTMAX_COLUMNS; c++)
            judge_store(DTYPE_F32, to->tensors[s->w], other * SOFTMAX_COLUMNS + c,
                        judge_load(DTYPE_F32, from->tensors[s->w], b * SOFTMAX_COLUMNS + c));
    }
}

typedef struct difference {
    double share;    /* the largest one, of its bound */
    int64_t noticed; /* elements beyond their bound */
} difference;

static difference difference_of(const softmax *s, const storage *bounded, const storage *other)
{
    difference d = {.share = 0};
    for (int64_t i = 0; i < SOFTMAX_ROWS * SOFTMAX_COLUMNS; i++) {
        double bound = bounded->bounds[s->result][i],
               share = fabs(number_of(DTYPE_F32, judge_load(DTYPE_F32, bounded->tensors[s->result], i)) -
                            number_of(DTYPE_F32, judge_load(DTYPE_F32, other->tensors[s->result], i))) /
                       bound;
        ck_assert(bound > 0 && isfinite(bound));
        d.share = fmax(d.share, share);
        d.noticed += share > 1;
    }
    return d;
}

/* What of a bound two orders use, and what it lets through: one factor of each row, of 64, rounded as bf16 would be at worst. */
START_TEST(bounds_of_a_composition_are_kept_and_not_idle)
{
    enum { SEEDS = 40, ELEMENTS = SOFTMAX_ROWS * SOFTMAX_COLUMNS };
    double most = 0;
    int64_t noticed = 0;
    int seeds = rounds(SEEDS);
    program p;
    softmax s = softmax_program(&p);
    reference_kernel *k = compile(&p, REFERENCE_BOUNDS), *m = compile(&p, REFERENCE_VALUES | REFERENCE_MACHINE_ORDER);
    for (int seed = 0; seed < seeds; seed++) {
        storage given = new_storage(&p);
        for (int64_t i = 0; i < SOFTMAX_ROWS * SOFTMAX_TERMS; i++)
            judge_store(DTYPE_F32, given.tensors[s.x], i, f32_bits((float)(random_below(2000) - 1000) * 0.001f));
        for (int64_t i = 0; i < SOFTMAX_TERMS * SOFTMAX_COLUMNS; i++)
            judge_store(DTYPE_F32, given.tensors[s.w], i, f32_bits((float)(random_below(2000) - 1000) * 0.001f));
        storage bounded = copy_storage(&p, &given), turned = copy_storage(&p, &given), wrong = copy_storage(&p, &given);
        turn_terms(&s, &given, &turned);
        for (int64_t a = 0; a < SOFTMAX_ROWS; a++) {
            int64_t at = a * SOFTMAX_TERMS + random_below(SOFTMAX_TERMS);
            float factor = f32_of_bits(judge_load(DTYPE_F32, given.tensors[s.x], at));
            judge_store(DTYPE_F32, wrong.tensors[s.x], at, f32_bits(factor * (1 + 0x1p-8f)));
        }
        ck_assert(reference_run(api, k, bounded.tensors, bounded.bounds, 1, &diags));
        ck_assert(reference_run(api, m, turned.tensors, NULL, 1, &diags));
        ck_assert(reference_run(api, m, wrong.tensors, NULL, 1, &diags));
        within_bounds(&p, &bounded, &turned);
        most = fmax(most, difference_of(&s, &bounded, &turned).share);
        noticed += difference_of(&s, &bounded, &wrong).noticed;
        free_storage(&given);
        free_storage(&bounded);
        free_storage(&turned);
        free_storage(&wrong);
    }
    api->release(k);
    api->release(m);
    if (getenv("VISA_SHOW"))
        printf("two orders differ by %.4f of the bound at most; a factor wrong by 2^-8 is noticed in %.4f of the elements\n", most,
               (double)noticed / (double)(seeds * ELEMENTS));
    ck_assert_double_gt(most, 0.01);
    ck_assert_int_gt(noticed, seeds * ELEMENTS * 7 / 10);
}
END_TEST

int main(void)
{
    TCase *t = suite_case_with("math", set_up, teardown);
    suite_tests(t, every_operation, published_figures, random_maps, every_fold_is_listed, random_reductions,
                random_reductions_in_machine_order, random_gathers, random_scatters, places_outside_are_said, maps_behind_contractions,
                chains_of_maps, what_is_fused, copies_are_read_where_they_were, what_nobody_writes_is_zero, errors_pass_through,
                bounds_of_a_composition_are_kept_and_not_idle);
    return suite_status("math", t);
}
