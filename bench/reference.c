/* The reference kernel beside oneDNN and beside a C compiler's plain loop nest.
 *
 * The one idea: on a machine that others use too, only pairs count. Each round times one call of ours and one of the other's, in
 * turns, and the median of the rounds' ratios is shown; all calls take plain row-major operands, so packing is inside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codegen/reference_load.h"

#ifdef HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

typedef struct kind {
    const char *name;
    dtype operand, result;
    int bytes, result_bytes;
} kind;

static const kind kinds[] = {{"f32", DTYPE_F32, DTYPE_F32, 4, 4}, {"bf16", DTYPE_BF16, DTYPE_BF16, 2, 2}, {"i8", DTYPE_I8, DTYPE_I32, 1, 4}};

typedef struct shape {
    int64_t m, n, k;
} shape;

static const shape shapes[] = {{32, 32, 32}, {256, 256, 256}, {512, 512, 2048}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

/* ---- ours ---- */

typedef struct ours {
    const reference_api *api;
    reference_kernel *kernel;
    unsigned char *tensors[3];
    unsigned threads;
} ours;

static reference_kernel *build(const reference_api *api, const kind *t, shape s, diag_list *diags)
{
    static const uint32_t axes[3][2] = {{0, 2}, {2, 1}, {0, 1}}; /* M K, K N, M N */
    layout_axis sizes[] = {{"M", s.m}, {"N", s.n}, {"K", s.k}};
    einsum_tensor tensors[3];
    for (int i = 0; i < 3; i++)
        tensors[i] = (einsum_tensor){"t", i < 2 ? t->operand : t->result, i, 2, axes[i]};
    einsum_digit digits[] = {{.axis = 0, .kept = true, .weight = 1, .size = s.m}, {.axis = 1, .kept = true, .weight = 1, .size = s.n}, {.axis = 2, .weight = 1, .size = s.k}};
    einsum_statement statement = {EINSUM_CONTRACT, 2, 0, 1, t->operand == DTYPE_I8 ? DTYPE_I32 : DTYPE_F32, 3, digits, 0, NULL};
    einsum e = {sizes, 3, tensors, 3, &statement, 1, "MK,KN->MN", NULL, 0};
    return reference_compile(api, &e, "bench", REFERENCE_VALUES, diags);
}

static void run_ours(void *argument)
{
    ours *o = argument;
    free(o->api->run(o->kernel, o->tensors, NULL, o->threads));
}

/* ---- theirs ---- */

#ifdef HAVE_DNNL
typedef struct theirs {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[3];
} theirs;

static dnnl_memory_t memory_of(theirs *o, const dnnl_memory_desc_t *d, void *data)
{
    dnnl_memory_t m = NULL;
    return dnnl_memory_create(&m, d, o->engine, data) == dnnl_success ? m : NULL;
}

static bool make_theirs(theirs *o, const kind *t, shape s, unsigned char **tensors)
{
    dnnl_data_type_t operand = t->operand == DTYPE_F32 ? dnnl_f32 : t->operand == DTYPE_BF16 ? dnnl_bf16 : dnnl_s8;
    dnnl_data_type_t result = t->result == DTYPE_F32 ? dnnl_f32 : t->result == DTYPE_BF16 ? dnnl_bf16 : dnnl_s32;
    dnnl_dims_t a = {s.m, s.k}, b = {s.k, s.n}, c = {s.m, s.n};
    dnnl_memory_desc_t da, db, dc;
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_desc_t described;
    if (dnnl_engine_create(&o->engine, dnnl_cpu, 0) || dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags) ||
        dnnl_memory_desc_init_by_tag(&da, 2, a, operand, dnnl_ab) || dnnl_memory_desc_init_by_tag(&db, 2, b, operand, dnnl_ab) ||
        dnnl_memory_desc_init_by_tag(&dc, 2, c, result, dnnl_ab) || dnnl_matmul_desc_init(&matmul, &da, &db, NULL, &dc) ||
        dnnl_primitive_desc_create(&described, &matmul, NULL, o->engine, NULL) || dnnl_primitive_create(&o->primitive, described))
        return false;
    o->args[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, memory_of(o, &da, tensors[0])};
    o->args[1] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, memory_of(o, &db, tensors[1])};
    o->args[2] = (dnnl_exec_arg_t){DNNL_ARG_DST, memory_of(o, &dc, tensors[2])};
    dnnl_primitive_desc_destroy(described);
    return o->args[0].memory && o->args[1].memory && o->args[2].memory;
}

static void run_theirs(void *argument)
{
    theirs *o = argument;
    dnnl_primitive_execute(o->primitive, o->stream, 3, o->args);
    dnnl_stream_wait(o->stream);
}

static void free_theirs(theirs *o)
{
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(o->args[i].memory);
    dnnl_primitive_destroy(o->primitive);
    dnnl_stream_destroy(o->stream);
    dnnl_engine_destroy(o->engine);
}
#endif

/* ---- the plain loop nest, as a C compiler vectorises it ---- */

typedef struct nest {
    const kind *kind;
    shape s;
    unsigned char *tensors[3];
} nest;

void nest_f32(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
void nest_bf16(int64_t m, int64_t n, int64_t k, const uint16_t *a, const uint16_t *b, uint16_t *c);
void nest_i8(int64_t m, int64_t n, int64_t k, const int8_t *a, const int8_t *b, int32_t *c);

static void run_nest(void *argument)
{
    nest *o = argument;
    void *a = o->tensors[0], *b = o->tensors[1], *c = o->tensors[2];
    if (o->kind->operand == DTYPE_F32)
        nest_f32(o->s.m, o->s.n, o->s.k, a, b, c);
    else if (o->kind->operand == DTYPE_BF16)
        nest_bf16(o->s.m, o->s.n, o->s.k, a, b, c);
    else
        nest_i8(o->s.m, o->s.n, o->s.k, a, b, c);
}

/* ---- pairs ---- */

typedef void timed(void *argument);

static double seconds(timed *f, void *argument, int calls)
{
    double start = now();
    for (int i = 0; i < calls; i++)
        f(argument);
    return (now() - start) / calls;
}

typedef struct verdict {
    double ours, theirs, ratio; /* medians: seconds, seconds, theirs / ours */
} verdict;

/* Enough calls for a fifth of a millisecond, enough rounds for `budget` seconds. */
static verdict compare(timed *one, void *a, timed *other, void *b, double budget)
{
    enum { MOST_ROUNDS = 501 };
    static double mine[MOST_ROUNDS], others[MOST_ROUNDS], ratios[MOST_ROUNDS];
    double first = seconds(one, a, 1), begin = now();
    seconds(other, b, 1);
    first = seconds(one, a, 1);
    int calls = first < 2e-4 ? (int)(2e-4 / first) + 1 : 1;
    size_t rounds = 0;
    while (rounds < MOST_ROUNDS && (rounds < 3 || now() - begin < budget)) {
        mine[rounds] = seconds(one, a, calls);
        others[rounds] = seconds(other, b, calls);
        ratios[rounds] = others[rounds] / mine[rounds];
        rounds++;
    }
    return (verdict){median(mine, rounds), median(others, rounds), median(ratios, rounds)};
}

static void fill(unsigned char *at, size_t bytes, const kind *t)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < bytes; i += (size_t)t->bytes) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        float f = (float)(int)(state % 2001) / 1000.0f - 1;
        uint32_t bits;
        memcpy(&bits, &f, 4);
        bits = t->operand == DTYPE_BF16 ? bits >> 16 : t->operand == DTYPE_I8 ? (uint32_t)state : bits;
        memcpy(at + i, &bits, (size_t)t->bytes);
    }
}

static void show(const char *name, const kind *t, shape s, unsigned threads, verdict v)
{
    double flops = 2.0 * (double)s.m * (double)s.n * (double)s.k;
    printf("%-5s %4lldx%4lldx%4lld  %u thread%s  %8.1f GFlop/s  %-8s %8.1f  ratio %5.2f\n", t->name, (long long)s.m, (long long)s.n, (long long)s.k,
           threads, threads > 1 ? "s" : " ", flops / v.ours / 1e9, name, flops / v.theirs / 1e9, v.ratio);
    fflush(stdout);
}

static bool bench_one(const reference_api *api, const kind *t, shape s, unsigned threads, double budget, diag_list *diags)
{
    ours o = {.api = api, .threads = threads, .kernel = build(api, t, s, diags)};
    if (!o.kernel)
        return false;
    int64_t bytes[] = {s.m * s.k * t->bytes, s.k * s.n * t->bytes, s.m * s.n * t->result_bytes};
    for (int i = 0; i < 3; i++) {
        o.tensors[i] = aligned_alloc(64, (size_t)(bytes[i] + 63) / 64 * 64);
        fill(o.tensors[i], (size_t)bytes[i], t);
    }
#ifdef HAVE_DNNL
    theirs d = {0};
    if (make_theirs(&d, t, s, o.tensors)) {
        show("oneDNN", t, s, threads, compare(run_ours, &o, run_theirs, &d, budget));
        free_theirs(&d);
    }
#endif
    nest plain = {t, s, {o.tensors[0], o.tensors[1], o.tensors[2]}};
    if (threads == 1 && s.m * s.n * s.k <= (int64_t)1 << 30)
        show("clang", t, s, threads, compare(run_ours, &o, run_nest, &plain, budget));
    for (int i = 0; i < 3; i++)
        free(o.tensors[i]);
    api->release(o.kernel);
    return true;
}

static void name_cpu(void)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0) {
            fputs(line, stdout);
            break;
        }
    if (f)
        fclose(f);
    if ((f = fopen("/proc/loadavg", "r")) && fgets(line, sizeof line, f))
        printf("load: %s", line);
    if (f)
        fclose(f);
}

/* bench_reference THREADS [SECONDS [KIND [LARGEST]]]; OMP_NUM_THREADS decides about oneDNN. */
int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    double budget = argc > 2 ? atof(argv[2]) : 1;
    int64_t largest = argc > 4 ? atoll(argv[4]) : INT64_MAX;
    arena *memory = arena_new();
    diag_list diags;
    diag_list_init(&diags, memory);
    const reference_api *api = reference_load(&diags);
    bool ok = api != NULL;
    name_cpu();
    for (size_t t = 0; ok && t < sizeof kinds / sizeof *kinds; t++)
        for (size_t s = 0; ok && s < sizeof shapes / sizeof *shapes; s++)
            if ((argc <= 3 || strcmp(argv[3], "all") == 0 || strcmp(argv[3], kinds[t].name) == 0) && shapes[s].m <= largest)
                ok = bench_one(api, &kinds[t], shapes[s], threads, budget, &diags);
    for (size_t i = 0; i < diags.count; i++)
        fprintf(stderr, "bench_reference: %s\n", diags.items[i]->message);
    arena_free(memory);
    return ok ? 0 : 1;
}
