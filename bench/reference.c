/* The reference kernel next to oneDNN, OpenBLAS and a C compiler's plain loop nest.
 *
 * The one idea: on a machine that others use too, only pairs count. Each round times one call of ours and one of the other's, in
 * turns, and the median of the rounds' ratios is shown; all calls take plain row-major operands, so packing is inside. With one
 * thread the process's CPU time is taken, which others cannot lengthen by waiting; with several, the wall's, of each side's quickest call
 * in all rounds, since others' work stops one of the threads and so all of them in most; and each side begins rested: the other's threads
 * spin for more work and would hold a CPU of ours (20 ms, OpenBLAS 2^28 clocks; here they are told to spin for 1, which is longer than
 * anything that they wait for inside a call). */
#define _GNU_SOURCE /* sched_setaffinity */
#include <dirent.h>
#include <getopt.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "codegen/reference_load.h"

#ifdef HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

typedef struct kind {
    const char *name;
    dtype operand, result;
    int bytes, result_bytes;
} kind;

static const kind kinds[] = {
    {"f32", DTYPE_F32, DTYPE_F32, 4, 4}, {"bf16", DTYPE_BF16, DTYPE_BF16, 2, 2}, {"i8", DTYPE_I8, DTYPE_I32, 1, 4}};

typedef struct shape {
    int64_t m, n, k;
} shape;

typedef struct setting {
    unsigned threads;
    double budget;                    /* seconds for a comparison */
    const char *kind;                 /* NULL: all */
    int64_t largest;                  /* m of the shapes; of the matrix's, every size */
    bool json, builds, matrix, order; /* builds: compiling is compared, not running; order: the machine's next to a free one */
    const char *program;
    shape only; /* instead of all others; of no rows: not */
    int shown;
} setting;

/* Of few rows, of few columns, of little depth; small ones, primes, tails of every kind; and what libraries are made for. */
static const shape matrix_shapes[] = {
    {1, 64, 64},      {2, 64, 64},        {4, 64, 64},       {8, 64, 64},      {16, 64, 64},    {32, 64, 64},    {1, 256, 256},
    {2, 256, 256},    {4, 256, 256},      {8, 256, 256},     {16, 256, 256},   {32, 256, 256},  {1, 1000, 1000}, {2, 1000, 1000},
    {4, 1000, 1000},  {8, 1000, 1000},    {16, 1000, 1000},  {32, 1000, 1000}, {1, 1024, 1024}, {2, 1024, 1024}, {4, 1024, 1024},
    {8, 1024, 1024},  {16, 1024, 1024},   {32, 1024, 1024},  {1, 4096, 1024},  {2, 4096, 1024}, {4, 4096, 1024}, {8, 4096, 1024},
    {16, 4096, 1024}, {32, 4096, 1024},   {1, 1024, 4096},   {2, 1024, 4096},  {4, 1024, 4096}, {8, 1024, 4096}, {16, 1024, 4096},
    {32, 1024, 4096}, {3, 100, 100},      {6, 100, 100},     {12, 100, 100},   {24, 100, 100},  {3, 768, 768},   {6, 768, 768},
    {12, 768, 768},   {24, 768, 768},     {256, 1, 256},     {256, 8, 256},    {1000, 1, 1000}, {1000, 2, 1000}, {1000, 4, 1000},
    {1000, 8, 1000},  {1000, 16, 1000},   {256, 256, 1},     {256, 256, 8},    {1000, 1000, 1}, {1000, 1000, 2}, {1000, 1000, 4},
    {1000, 1000, 8},  {1000, 1000, 16},   {1, 1, 1000},      {3, 5, 7},        {8, 8, 8},       {16, 16, 16},    {17, 33, 65},
    {32, 32, 32},     {48, 48, 48},       {63, 65, 67},      {64, 64, 64},     {101, 103, 107}, {128, 128, 128}, {64, 64, 4096},
    {128, 4096, 128}, {200, 300, 400},    {256, 256, 256},   {384, 384, 384},  {511, 513, 509}, {512, 512, 512}, {512, 512, 2048},
    {768, 768, 768},  {1000, 1000, 1000}, {1024, 1024, 1024}};

static const shape shapes[] = {{32, 32, 32}, {256, 256, 256}, {512, 512, 2048}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}};

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void)
{
    return read_clock(CLOCK_MONOTONIC);
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

/* In the machine's order, K stands in packets of 32 lanes where it is a multiple of them. */
static reference_kernel *build(const reference_api *api, const kind *t, shape s, unsigned forms, diag_list *diags)
{
    enum { LANES = 32 };
    int64_t lanes = forms & REFERENCE_MACHINE_ORDER && s.k % LANES == 0 ? LANES : 1;
    static const uint32_t axes[3][2] = {{0, 2}, {2, 1}, {0, 1}}; /* M K, K N, M N */
    layout_axis sizes[] = {{"M", s.m}, {"N", s.n}, {"K", s.k}};
    einsum_tensor tensors[3];
    for (int i = 0; i < 3; i++)
        tensors[i] = (einsum_tensor){"t", i < 2 ? t->operand : t->result, i, 2, axes[i]};
    einsum_digit digits[] = {{.axis = 0, .kept = true, .weight = 1, .size = s.m},
                             {.axis = 1, .kept = true, .weight = 1, .size = s.n},
                             {.axis = 2, .weight = lanes, .size = s.k / lanes},
                             {.axis = 2, .weight = 1, .size = lanes, .lane = 1}};
    einsum_statement statement = {.op = MATH_CONTRACT,
                                  .dst = 2,
                                  .sources = {0, 1},
                                  .source_count = 2,
                                  .accumulator = t->operand == DTYPE_I8 ? DTYPE_I32 : DTYPE_F32,
                                  .digit_count = lanes > 1 ? 4 : 3,
                                  .digits = digits};
    einsum e = {sizes, 3, tensors, 3, &statement, 1, "MK,KN->MN", NULL, 0, NULL};
    return reference_compile(api, &e, "bench", REFERENCE_VALUES | forms, diags);
}

static void run_ours(void *argument)
{
    ours *o = argument;
    free(o->api->run(o->kernel, o->tensors, NULL, o->threads));
}

/* ---- theirs ---- */

#ifdef HAVE_OPENBLAS
typedef struct blas {
    shape s;
    float *tensors[3];
} blas;

static void run_blas(void *argument)
{
    const blas *b = argument;
    blasint m = (blasint)b->s.m, n = (blasint)b->s.n, k = (blasint)b->s.k;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, b->tensors[0], k, b->tensors[1], n, 0, b->tensors[2], n);
}
#endif

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
    size_t level;
} nest;

#define NEST_LEVEL(level) \
    void nest_f32_##level(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c); \
    void nest_bf16_##level(int64_t m, int64_t n, int64_t k, const uint16_t *a, const uint16_t *b, uint16_t *c); \
    void nest_i8_##level(int64_t m, int64_t n, int64_t k, const int8_t *a, const int8_t *b, int32_t *c);
NEST_LEVEL(native)
NEST_LEVEL(v2)
NEST_LEVEL(v3)
NEST_LEVEL(v4)

/* Compiled for each CPU level; `cpu` is what VISA_MCPU calls it. */
static const struct {
    const char *cpu;
    void (*f32)(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
    void (*bf16)(int64_t m, int64_t n, int64_t k, const uint16_t *a, const uint16_t *b, uint16_t *c);
    void (*i8)(int64_t m, int64_t n, int64_t k, const int8_t *a, const int8_t *b, int32_t *c);
} nests[] = {{"native", nest_f32_native, nest_bf16_native, nest_i8_native},
             {"x86-64-v2", nest_f32_v2, nest_bf16_v2, nest_i8_v2},
             {"x86-64-v3", nest_f32_v3, nest_bf16_v3, nest_i8_v3},
             {"x86-64-v4", nest_f32_v4, nest_bf16_v4, nest_i8_v4}};

/* For the CPU that ours is compiled for. */
static size_t nest_level(void)
{
    const char *cpu = getenv("VISA_MCPU");
    size_t level = 0;
    for (size_t i = 0; cpu && i < sizeof nests / sizeof *nests; i++)
        level = strcmp(nests[i].cpu, cpu) == 0 ? i : level;
    return level;
}

static void run_nest(void *argument)
{
    nest *o = argument;
    void *a = o->tensors[0], *b = o->tensors[1], *c = o->tensors[2];
    if (o->kind->operand == DTYPE_F32)
        nests[o->level].f32(o->s.m, o->s.n, o->s.k, a, b, c);
    else if (o->kind->operand == DTYPE_BF16)
        nests[o->level].bf16(o->s.m, o->s.n, o->s.k, a, b, c);
    else
        nests[o->level].i8(o->s.m, o->s.n, o->s.k, a, b, c);
}

/* ---- pairs ---- */

typedef void timed(void *argument);

static double seconds(clockid_t clock, timed *f, void *argument, int calls)
{
    double start = read_clock(clock);
    for (int i = 0; i < calls; i++)
        f(argument);
    return (read_clock(clock) - start) / calls;
}

/* Of one side in a round. */
static double round_seconds(const setting *how, timed *f, void *argument, int calls)
{
    if (how->threads == 1)
        return seconds(CLOCK_PROCESS_CPUTIME_ID, f, argument, calls);
    double least = 0;
    for (int i = 0; i < calls; i++) {
        double each = seconds(CLOCK_MONOTONIC, f, argument, 1);
        least = i == 0 || each < least ? each : least;
    }
    return least;
}

/* The calling thread gets a processor for itself and all others of the process the rest. Where no processor is idle Linux wakes a thread
 * next to the one that woke it, and leaves it there: then neither side's threads help, and chance says whose. */
static void part_threads(void)
{
    cpu_set_t all, own, rest;
    if (sched_getaffinity(getpid(), sizeof all, &all) != 0)
        return;
    static cpu_set_t first; /* what the process may use */
    if (CPU_COUNT(&first) == 0)
        first = all;
    CPU_ZERO(&own);
    rest = first;
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&own) == 0; i++)
        if (CPU_ISSET(i, &first)) {
            CPU_SET(i, &own);
            CPU_CLR(i, &rest);
        }
    DIR *threads = CPU_COUNT(&rest) ? opendir("/proc/self/task") : NULL;
    for (struct dirent *each; threads && (each = readdir(threads));) {
        pid_t thread = atoi(each->d_name);
        if (thread > 0)
            (void)sched_setaffinity(thread, sizeof own, thread == getpid() ? &own : &rest);
    }
    if (threads)
        closedir(threads);
}

/* Until the threads of the calls before have stopped spinning for more; and then calls that are not timed, which wake the other side's. */
static void rest(const setting *how, timed *f, void *argument)
{
    enum { CALLS = 2 };
    static const struct timespec spinning = {.tv_nsec = 5000000};
    if (how->threads == 1)
        return;
    nanosleep(&spinning, NULL);
    part_threads();
    for (int i = 0; i < CALLS; i++)
        f(argument);
}

typedef struct verdict {
    double ours, theirs, ratio; /* medians, in threads the least: seconds, seconds, theirs / ours */
} verdict;

/* For a fifth of a millisecond, in threads for ten. */
static int calls_of(const setting *how, double each)
{
    enum { SHARED_CALLS = 8 };
    double least = how->threads > 1 ? 10e-3 : 2e-4;
    int calls = each < least ? (int)(least / each) + 1 : 1;
    return how->threads > 1 && calls < SHARED_CALLS ? SHARED_CALLS : calls;
}

/* Enough rounds for `budget` seconds. With one thread both sides are called as often. */
static verdict compare(const setting *how, timed *one, void *a, timed *other, void *b)
{
    enum { MOST_ROUNDS = 501, SHARED_ROUNDS = 7 }; /* in threads most of a round is rest, and one in three can meet somebody else's work */
    static double mine[MOST_ROUNDS], others[MOST_ROUNDS], ratios[MOST_ROUNDS];
    double begin = now();
    round_seconds(how, one, a, 1);
    double second = round_seconds(how, other, b, 1), first = round_seconds(how, one, a, 1);
    int calls = calls_of(how, first), others_calls = how->threads > 1 ? calls_of(how, second) : calls;
    size_t rounds = 0;
    size_t fewest = how->threads > 1 ? SHARED_ROUNDS : 3;
    while (rounds < MOST_ROUNDS && (rounds < fewest || now() - begin < how->budget)) {
        rest(how, one, a);
        mine[rounds] = round_seconds(how, one, a, calls);
        rest(how, other, b);
        others[rounds] = round_seconds(how, other, b, others_calls);
        ratios[rounds] = others[rounds] / mine[rounds];
        rounds++;
    }
    verdict v = {median(mine, rounds), median(others, rounds), median(ratios, rounds)}; /* sorted now */
    return how->threads > 1 ? (verdict){mine[0], others[0], others[0] / mine[0]} : v;
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

#ifdef HAVE_DNNL
/* A side's name where its integers are ours, and else what it computes: oneDNN's sums of i8 products of AVX2 saturate at 16 bits. */
static const char *name_of(const char *name, const kind *t, shape s, timed *one, void *a, timed *other, void *b, unsigned char *sums)
{
    static char text[32];
    size_t bytes = (size_t)(s.m * s.n * t->result_bytes);
    unsigned char *mine = t->result == DTYPE_I32 ? malloc(bytes) : NULL;
    if (!mine)
        return name;
    one(a);
    memcpy(mine, sums, bytes);
    other(b);
    snprintf(text, sizeof text, "%s%s", name, memcmp(mine, sums, bytes) == 0 ? "" : ", other sums");
    free(mine);
    return text;
}
#endif

static void show(setting *how, const char *name, const kind *t, shape s, verdict v)
{
    double flops = 2.0 * (double)s.m * (double)s.n * (double)s.k;
    if (how->json)
        printf("%s\n  {\"type\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"threads\": %u, \"against\": \"%s\", \"seconds\": %.3e, "
               "\"theirs\": %.3e, \"ratio\": %.3f}",
               how->shown ? "," : "", t->name, (long long)s.m, (long long)s.n, (long long)s.k, how->threads, name, v.ours, v.theirs,
               v.ratio);
    else if (how->builds)
        printf("%-5s %4lldx%4lldx%4lld  generated and compiled in %6.1f ms  %-13s %6.1f ms  ratio %5.2f\n", t->name, (long long)s.m,
               (long long)s.n, (long long)s.k, v.ours * 1e3, name, v.theirs * 1e3, v.ratio);
    else
        printf("%-5s %4lldx%4lldx%4lld  %u thread%s  %8.1f GFlop/s  %-8s %8.1f  ratio %5.2f\n", t->name, (long long)s.m, (long long)s.n,
               (long long)s.k, how->threads, how->threads > 1 ? "s" : " ", flops / v.ours / 1e9, name, flops / v.theirs / 1e9, v.ratio);
    how->shown++;
    fflush(stdout);
}

/* ---- compiling, whole processes ---- */

static void run_process(void *argument)
{
    extern char **environ;
    char *const *command = argument;
    pid_t child;
    int status = 1;
    if (posix_spawnp(&child, command[0], NULL, NULL, command, environ) != 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "bench_reference: %s failed\n", command[0]);
        exit(1);
    }
}

static double children_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* This program once more, to build one kernel and end; and clang with the loop nest of that kernel alone. */
static void bench_build(setting *how, const kind *t, shape s)
{
    enum { ROUNDS = 15 };
    char size[96], define[32];
    snprintf(size, sizeof size, "--build=%s,%lld,%lld,%lld", t->name, (long long)s.m, (long long)s.n, (long long)s.k);
    snprintf(define, sizeof define, "-DONLY_%s", t->name);
    char *build_one[] = {(char *)how->program, size, NULL},
         *compile_nest[] = {VISA_CLANG, "-O2", "-c", define, "-DNEST_LEVEL=native", VISA_NEST, "-o", "/dev/null", NULL};
    double mine[ROUNDS], others[ROUNDS], ratios[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double start = children_seconds();
        run_process(build_one);
        double middle = children_seconds();
        run_process(compile_nest);
        mine[i] = middle - start;
        others[i] = children_seconds() - middle;
        ratios[i] = mine[i] / others[i];
    }
    show(how, "clang -O2 -c", t, s, (verdict){median(mine, ROUNDS), median(others, ROUNDS), median(ratios, ROUNDS)});
}

static bool build_only(const reference_api *api, const char *what, diag_list *diags)
{
    char name[8];
    long long m, n, k;
    if (sscanf(what, "%7[^,],%lld,%lld,%lld", name, &m, &n, &k) != 4)
        return false;
    for (size_t t = 0; t < sizeof kinds / sizeof *kinds; t++)
        if (strcmp(kinds[t].name, name) == 0) {
            reference_kernel *kernel = build(api, &kinds[t], (shape){m, n, k}, 0, diags);
            api->release(kernel);
            return kernel != NULL;
        }
    return false;
}

/* ---- all of them ---- */

static bool bench_one(const reference_api *api, const kind *t, shape s, setting *how, diag_list *diags)
{
    ours o = {.api = api, .threads = how->threads, .kernel = build(api, t, s, how->order ? REFERENCE_MACHINE_ORDER : 0, diags)};
    if (!o.kernel)
        return false;
    int64_t bytes[] = {s.m * s.k * t->bytes, s.k * s.n * t->bytes, s.m * s.n * t->result_bytes};
    for (int i = 0; i < 3; i++) {
        o.tensors[i] = aligned_alloc(64, (size_t)(bytes[i] + 63) / 64 * 64);
        fill(o.tensors[i], (size_t)bytes[i], t);
    }
#ifdef HAVE_DNNL
    theirs d = {0};
    if (!how->order && make_theirs(&d, t, s, o.tensors)) {
        const char *name = name_of("oneDNN", t, s, run_ours, &o, run_theirs, &d, o.tensors[2]);
        show(how, name, t, s, compare(how, run_ours, &o, run_theirs, &d));
        free_theirs(&d);
    }
#endif
#ifdef HAVE_OPENBLAS
    blas b = {s, {(float *)o.tensors[0], (float *)o.tensors[1], (float *)o.tensors[2]}};
    if (t->operand == DTYPE_F32 && !how->order)
        show(how, "OpenBLAS", t, s, compare(how, run_ours, &o, run_blas, &b));
#endif
    nest plain = {t, s, {o.tensors[0], o.tensors[1], o.tensors[2]}, nest_level()};
    ours free_order = {.api = api, .threads = how->threads, .kernel = how->order ? build(api, t, s, 0, diags) : NULL};
    memcpy(free_order.tensors, o.tensors, sizeof o.tensors);
    if (free_order.kernel) {
        show(how, "free order", t, s, compare(how, run_ours, &o, run_ours, &free_order));
        api->release(free_order.kernel);
    } else if ((how->threads == 1 || t->operand != DTYPE_F32) && s.m * s.n * s.k <= (int64_t)1 << 30) /* one thread, always */
        show(how, "clang -O3", t, s, compare(how, run_ours, &o, run_nest, &plain));
    for (int i = 0; i < 3; i++)
        free(o.tensors[i]);
    api->release(o.kernel);
    return true;
}

/* The rest of the file's first line that starts so; "" where there is none. */
static void read_line(const char *path, const char *start, char *out, size_t bytes)
{
    FILE *f = fopen(path, "r");
    char line[256];
    out[0] = '\0';
    while (f && !*out && fgets(line, sizeof line, f))
        if (strncmp(line, start, strlen(start)) == 0)
            snprintf(out, bytes, "%s", line + strlen(start));
    out[strcspn(out, "\n")] = '\0';
    if (f)
        fclose(f);
}

static void name_machine(const setting *how)
{
    char cpu[256], load[256];
    read_line("/proc/cpuinfo", "model name\t: ", cpu, sizeof cpu);
    read_line("/proc/loadavg", "", load, sizeof load);
    printf(how->json ? "{\"cpu\": \"%s\", \"load\": \"%s\", \"rows\": [" : "CPU: %s\nload: %s\n", cpu, load);
}

static bool bench_all(const reference_api *api, setting *how, diag_list *diags)
{
    bool ok = true;
    const shape *list = how->only.m ? &how->only : how->matrix ? matrix_shapes : shapes;
    size_t list_count = how->only.m ? 1 : (how->matrix ? sizeof matrix_shapes : sizeof shapes) / sizeof(shape);
    name_machine(how);
    for (size_t t = 0; ok && t < sizeof kinds / sizeof *kinds; t++)
        for (size_t s = 0; ok && s < list_count; s++) {
            shape each = list[s];
            if ((how->kind && strcmp(how->kind, kinds[t].name) != 0) || each.m > how->largest ||
                (how->matrix && (each.n > how->largest || each.k > how->largest)))
                continue;
            if (how->builds)
                bench_build(how, &kinds[t], each);
            else
                ok = bench_one(api, &kinds[t], each, how, diags);
        }
    if (how->json)
        puts("\n]}");
    return ok;
}

static const char usage[] =
    "usage: bench_reference [--threads=N] [--seconds=S] [--kind=f32|bf16|i8] [--largest=M] [--matrix | --shape=M,N,K] [--order] [--builds] "
    "[--json]\n"
    "A lesser CPU: VISA_MCPU for ours and clang's, DNNL_MAX_CPU_ISA and OPENBLAS_CORETYPE for the others.\n";

/* The libraries read how many threads they take, and how long these spin for more work, before main begins: the program begins again. */
static void tell_libraries(const setting *how, char **argv)
{
    char threads[16];
    snprintf(threads, sizeof threads, "%u", how->threads);
    const struct {
        const char *name, *value;
    } all[] = {{"OMP_NUM_THREADS", threads},
               {"OPENBLAS_NUM_THREADS", threads},
               {"OPENBLAS_THREAD_TIMEOUT", "22"}, /* 2^22 clocks */
               {"GOMP_SPINCOUNT", "20000"}};
    bool known = true, told = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *value = getenv(all[i].name);
        known = known && value && strcmp(value, all[i].value) == 0;
        told = setenv(all[i].name, all[i].value, 1) == 0 && told;
    }
    if (known)
        return;
    if (told)
        execv("/proc/self/exe", argv);
    fputs("bench_reference: the libraries could not be told how many threads they take\n", stderr);
}

static bool read_shape(const char *text, shape *s)
{
    long long m, n, k;
    bool ok = sscanf(text, "%lld,%lld,%lld", &m, &n, &k) == 3 && m > 0 && n > 0 && k > 0;
    *s = ok ? (shape){m, n, k} : (shape){0};
    return ok;
}

int main(int argc, char **argv)
{
    enum { THREADS = 256, SECONDS, KIND, LARGEST, BUILDS, BUILD, MATRIX, SHAPE, ORDER, JSON };
    static const struct option options[] = {{"threads", required_argument, NULL, THREADS},
                                            {"seconds", required_argument, NULL, SECONDS},
                                            {"kind", required_argument, NULL, KIND},
                                            {"largest", required_argument, NULL, LARGEST},
                                            {"builds", no_argument, NULL, BUILDS},
                                            {"build", required_argument, NULL, BUILD},
                                            {"matrix", no_argument, NULL, MATRIX},
                                            {"shape", required_argument, NULL, SHAPE},
                                            {"order", no_argument, NULL, ORDER},
                                            {"json", no_argument, NULL, JSON},
                                            {0}};
    setting how = {.threads = 1, .budget = 1, .largest = INT64_MAX, .program = argv[0]};
    const char *only = NULL;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (o) {
        case THREADS: how.threads = (unsigned)atoi(optarg); break;
        case SECONDS: how.budget = atof(optarg); break;
        case KIND: how.kind = optarg; break;
        case LARGEST: how.largest = atoll(optarg); break;
        case MATRIX: how.matrix = true; break;
        case SHAPE:
            if (!read_shape(optarg, &how.only)) {
                fputs(usage, stderr);
                return 2;
            }
            break;
        case ORDER: how.order = true; break;
        case BUILDS: how.builds = true; break;
        case BUILD: only = optarg; break;
        case JSON: how.json = true; break;
        default: fputs(usage, stderr); return 2;
        }
    tell_libraries(&how, argv);
    arena *memory = arena_new();
    diag_list diags;
    diag_list_init(&diags, memory);
    const reference_api *api = reference_load(&diags);
    bool ok = api && (only ? build_only(api, only, &diags) : bench_all(api, &how, &diags));
    for (size_t i = 0; i < diags.count; i++)
        fprintf(stderr, "bench_reference: %s\n", diags.items[i]->message);
    arena_free(memory);
    return ok ? 0 : 1;
}
