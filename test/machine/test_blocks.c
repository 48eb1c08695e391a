/* Contractions by blocks against the same step by step, on random nests: every level gives the same bits. */
#include "runtime/fast/blocks.h"
#include "runtime/machine/chain.h"
#include "test/machine/machine_bench.h"
#include "test/suite.h"

enum { MOST_LOOPS = 6, ROUNDS = 120, OUT_ADDRESS = 1 << 18 };

typedef struct loop {
    int64_t size, stride, slot;
    bool reduced;
} loop;

typedef struct shape {
    dtype type;
    trf_address mode;
    bool sequential, cast;
    int64_t bits, rows, flits, lanes, depth, columns, read_bytes, partition, base;
    int64_t tiling, packets, steps, slots, kept;
    int count;
    loop loops[MOST_LOOPS]; /* outermost first */
    int masks;
    int64_t limit[3];
    int terms[3];
    int64_t term[3][4][4];
} shape;

static bool pick_loops(shape *s, uint64_t *seed)
{
    bool inside = false;
    int tiled = (int)bench_pick(seed, 0, 2);
    int64_t reach = s->base;
    s->count = (int)bench_pick(seed, 1, MOST_LOOPS);
    s->steps = s->slots = s->tiling = s->kept = 1;
    int large = (int)(bench_random(seed) % 10); /* this loop, if there is one, is more than a region holds */
    for (int i = 0; i < s->count; i++) {
        loop *l = &s->loops[i];
        *l = (loop){.size = bench_pick(seed, 1, bench_random(seed) % 3 ? 5 : 24), .reduced = bench_random(seed) % 2};
        if (i == large)
            l->size = bench_pick(seed, 300, 1500);
        l->stride = bench_random(seed) % 3 ? s->read_bytes * bench_pick(seed, -2, 12) : 0;
        s->steps *= l->size;
        s->tiling *= i >= s->count - tiled ? l->size : 1;
        s->kept *= l->reduced ? 1 : l->size;
        inside |= l->reduced;
        if (l->stride < 0)
            s->base -= l->stride * (l->size - 1);
        else
            reach += l->stride * (l->size - 1);
    }
    for (int i = s->count; i-- > 0;) {
        bool within = false;
        for (int j = 0; j <= i; j++)
            within |= s->loops[j].reduced;
        if (!within || s->loops[i].reduced)
            continue;
        s->loops[i].slot = s->slots;
        if (bench_random(seed) % 12 == 0 && s->slots > 1)
            s->loops[i].slot = 0; /* kept iterations that share slots */
        s->slots *= s->loops[i].size;
    }
    s->packets = s->steps / s->tiling;
    int64_t columns = 1;
    while (columns < s->columns)
        columns *= 2;
    return s->steps <= 20000 && s->kept * s->columns * s->rows <= 40000 && reach + s->base + 64 <= s->partition &&
           s->base + s->read_bytes <= s->partition && (s->sequential ? s->slots * s->rows <= 32 : s->slots * columns <= 128);
}

/* Masks whose terms follow the loops' boundaries, and some that do not. */
static void pick_masks(shape *s, uint64_t *seed)
{
    s->masks = bench_random(seed) % 2 ? 0 : (int)bench_pick(seed, 1, 3);
    for (int i = 0; i < s->masks; i++) {
        s->terms[i] = (int)bench_pick(seed, 1, 4);
        s->limit[i] = bench_pick(seed, 1, s->lanes * 3);
        for (int j = 0; j < s->terms[i]; j++) {
            int64_t *t = s->term[i][j];
            t[0] = bench_random(seed) % 2;
            t[1] = 1, t[2] = s->lanes, t[3] = bench_pick(seed, 1, 3);
            if (t[0]) {
                t[1] = INT64_C(1) << bench_pick(seed, 0, 3);
                continue;
            }
            int at = (int)bench_pick(seed, 0, s->count - 1);
            for (int k = s->count - 1; k > at; k--)
                t[1] *= s->loops[k].size;
            t[2] = s->loops[at].size;
            t[3] = bench_pick(seed, 1, s->lanes);
            if (bench_random(seed) % 16 == 0)
                t[1]++;
        }
    }
}

static shape pick_shape(uint64_t *seed)
{
    static const dtype types[] = {DTYPE_I4, DTYPE_I8, DTYPE_F8E4M3, DTYPE_F8E5M2, DTYPE_BF16, DTYPE_BF16, DTYPE_I8};
    for (;;) {
        shape s = {.type = types[bench_random(seed) % 7], .mode = (trf_address)(bench_random(seed) % 3)};
        s.sequential = bench_random(seed) % 3 == 0;
        s.cast = bench_random(seed) % 2;
        s.bits = dtype_row_of(s.type)->bits;
        s.rows = INT64_C(1) << (bench_random(seed) % 2 ? 3 : bench_random(seed) % 4);
        s.flits = bench_pick(seed, 1, 3);
        s.lanes = 512 / s.bits;
        s.depth = dtype_row_of(s.type)->max_tree_depth;
        if (bench_random(seed) % 2)
            s.depth = bench_pick(seed, 0, s.depth);
        s.columns = bench_pick(seed, 1, s.lanes >> s.depth < 32 ? s.lanes >> s.depth : 32);
        s.read_bytes = bench_random(seed) % 2 ? 64 : INT64_C(2) << bench_random(seed) % 5;
        s.partition = (s.mode == TRF_FULL ? 65536 : 32768) / s.rows;
        s.base = bench_pick(seed, 0, 3) * s.read_bytes;
        if (pick_loops(&s, seed)) {
            pick_masks(&s, seed);
            return s;
        }
    }
}

static int64_t beats_of(const shape *s)
{
    return s->kept * (s->sequential ? s->rows * ((s->columns + 7) / 8) : s->columns);
}

static dtype out_type(const shape *s)
{
    dtype sum = dtype_row_of(s->type)->accumulates_in;
    if (!s->cast)
        return sum;
    return sum == DTYPE_I32 ? DTYPE_I8 : DTYPE_BF16;
}

static void add_commands(bench *b, const shape *s)
{
    dtype sum = dtype_row_of(s->type)->accumulates_in;
    ADD(b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(b, CONTEXT_MAIN, OP_STREAM_IN, 1, s->type, 1, 256 / s->bits, s->packets * s->flits);
    ADD(b, CONTEXT_MAIN, OP_ALIGN, s->flits, s->rows, s->type, s->tiling, s->packets);
    command *read =
        ADD(b, CONTEXT_MAIN, OP_TRF_READ, s->mode, s->rows, dtype_row_of(s->type)->trf_reg_type, s->read_bytes, s->base, s->type);
    for (int i = s->count; i-- > 0;)
        ENTRY(read, s->loops[i].size, s->loops[i].stride);
    ADD(b, CONTEXT_MAIN, OP_CONTRACT, s->type, s->depth, s->columns);
    for (int i = 0; i < s->masks; i++) {
        command *k_mask = ADD(b, CONTEXT_MAIN, OP_MASK, s->limit[i]);
        for (int j = 0; j < s->terms[i]; j++)
            ENTRY(k_mask, s->term[i][j][0], s->term[i][j][1], s->term[i][j][2], s->term[i][j][3]);
    }
    command *k = ADD(b, CONTEXT_MAIN, OP_ACCUMULATE, s->sequential, s->rows, s->columns, s->slots);
    for (int i = 0; i < s->count; i++)
        ENTRY(k, s->loops[i].size, s->loops[i].reduced, s->loops[i].slot);
    if (s->cast)
        ADD(b, CONTEXT_MAIN, OP_CAST, sum, out_type(s));
    ADD(b, CONTEXT_MAIN, OP_STREAM_OUT, 2, out_type(s), 1, 256 / dtype_row_of(out_type(s))->bits, beats_of(s));
}

static void bench_of(bench *b, const shape *s, cpu_level level)
{
    bench_init(b);
    b->options.cpu = level;
    bench_trf(b, PORT_IN, s->type, s->mode, s->rows, s->partition * 8 / s->bits);
    bench_stream(b, PORT_IN, s->type, 1, s->packets * s->flits, 256 / s->bits);
    bench_stream(b, PORT_OUT, out_type(s), 1, beats_of(s), 256 / dtype_row_of(out_type(s))->bits);
    add_commands(b, s);
    bench_build(b);
}

enum { KINDS = 6, SMALL = 4 };

/* Random bytes: everything, no NaN, few exponents, many zeros, bf16 subnormals, large exponents. */
static void fill(unsigned char *to, size_t bytes, const shape *s, unsigned kind, uint64_t *seed)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned value = (unsigned)bench_random(seed) >> 8 & 0xff;
        if (kind == 1)
            value &= 0xbf;
        if (kind >= 2 && s->type == DTYPE_BF16 && i % 2)
            value = (value & 0x80) | 0x3f;
        if (kind == 3 && bench_random(seed) % 4 == 0)
            value = 0;
        if (kind == SMALL && s->type == DTYPE_BF16)
            value = i % 2 ? value & 0x80 : value & 0x7f;
        if (kind == SMALL + 1 && s->type == DTYPE_BF16 && i % 2)
            value = (value & 0x80) | 0x7e;
        to[i] = (unsigned char)value;
    }
}

/* Zeros but for one value of 16 bits, which a look at some of the packets only would not see. */
static void keep_one(unsigned char *to, size_t bytes, uint64_t *seed)
{
    size_t at = (size_t)bench_random(seed) % (bytes / 2) * 2;
    memset(to, 0, at);
    memset(to + at + 2, 0, bytes - at - 2);
}

/* NaNs have no bits of their own. */
static bool same_word(const unsigned char *a, const unsigned char *b, dtype type)
{
    if (memcmp(a, b, 4) == 0)
        return true;
    float x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return type == DTYPE_F32 && x != x && y != y;
}

static bool is_blocked(const bench *b, cpu_level level)
{
    chain c;
    blocks plan;
    fault f = {0};
    unit_mask units = {0};
    unit_mask_select(&units, &b->commands[CONTEXT_MAIN][0]);
    ck_assert(chain_plan(&c, b->machine, &units, b->commands[CONTEXT_MAIN] + 1, b->counts[CONTEXT_MAIN] - 1, &f));
    bool blocked = chain_contraction(&c) && chain_accumulate(&c) && blocks_plan(&plan, chain_contraction(&c), chain_accumulate(&c), level);
    if (blocked)
        blocks_free(&plan);
    return blocked;
}

/* Every level gives what one step after the other gives. */
static bool agree(const shape *s, unsigned kind, int round, uint64_t *seed)
{
    bool blocked = false;
    size_t weight_bytes = (size_t)(s->partition * s->rows), data_bytes = (size_t)(s->packets * s->flits * 32);
    size_t out_bytes = (size_t)(beats_of(s) * 32);
    unsigned char *held = malloc(weight_bytes), *data = malloc(data_bytes), *wanted = malloc(out_bytes), *out = malloc(out_bytes);
    fill(held, weight_bytes, s, kind == SMALL ? SMALL + 1 : kind, seed); /* products of subnormals that a sum would show */
    fill(data, data_bytes, s, kind, seed);
    if (kind == SMALL && s->type == DTYPE_BF16 && bench_random(seed) % 2)
        keep_one(data, data_bytes, seed);
    for (cpu_level level = CPU_STEPS; level < CPU_LEVELS; level++) {
        bench b;
        bench_of(&b, s, level);
        bench_write(&b, 0, held, weight_bytes);
        bench_write(&b, 1, data, data_bytes);
        blocked |= level == CPU_PLAIN && is_blocked(&b, level);
        bench_run(&b);
        bench_read(&b, 2, level == CPU_STEPS ? wanted : out, out_bytes);
        for (size_t i = 0; level != CPU_STEPS && i < out_bytes; i += 4)
            ck_assert_msg(same_word(out + i, wanted + i, out_type(s)), "round %d, %s, %s: word %zu of %zu differs", round,
                          cpu_level_name(level), dtype_row_of(s->type)->name, i / 4, out_bytes / 4);
        bench_free(&b);
    }
    free(held);
    free(data);
    free(wanted);
    free(out);
    return blocked;
}

START_TEST(levels_agree)
{
    uint64_t seed = 0x2545f4914f6cdd1du * (uint64_t)(_i + 1);
    int blocked = 0;
    for (int round = 0; round < suite_rounds(ROUNDS); round++) {
        shape s = pick_shape(&seed);
        blocked += agree(&s, (unsigned)(bench_random(&seed) % (KINDS - 1)), round, &seed);
    }
    ck_assert_msg(blocked > suite_rounds(ROUNDS) / 2, "only %d of %d nests went by blocks", blocked, suite_rounds(ROUNDS));
}
END_TEST

/* Steps that go on one after the other in packets and weights, more than a kernel takes together, of one column and of several, where all
 * lanes count or not those of the last ones. */
START_TEST(steps_that_follow_each_other_agree)
{
    enum { STEPS = 25, TIMES = 3, PACKETS = 5, LANES = 64 };
    uint64_t seed = 1;
    for (int round = 0; round < 12; round++) {
        shape s = {
            .type = DTYPE_I8, .mode = TRF_FULL, .bits = 8, .rows = round % 2 ? 8 : 4, .flits = 2, .lanes = LANES, .read_bytes = LANES};
        s.depth = round / 2 % 2 ? 6 : 5;
        s.columns = LANES >> s.depth;
        s.partition = 65536 / s.rows;
        s.tiling = s.slots = 1;
        s.packets = s.steps = STEPS * TIMES * PACKETS;
        s.kept = PACKETS;
        s.count = 3;
        s.loops[0] = (loop){.size = PACKETS};
        s.loops[1] = (loop){.size = TIMES, .stride = (STEPS + 1) * LANES, .reduced = true};
        s.loops[2] = (loop){.size = STEPS, .stride = LANES, .reduced = true};
        s.masks = round / 4 > 0;
        s.terms[0] = 2;
        s.limit[0] = LANES * (STEPS - (round / 4)) - 13;
        static const int64_t terms[][4] = {{0, 1, STEPS, LANES}, {1, 1, LANES, 1}}; /* of a step, and of a lane */
        memcpy(s.term[0], terms, sizeof terms);
        ck_assert(agree(&s, 0, round, &seed));
    }
}
END_TEST

/* What may be asked for by name. */
START_TEST(levels_have_names)
{
    for (cpu_level level = CPU_BEST; level < CPU_LEVELS; level++) {
        cpu_level named;
        ck_assert(cpu_level_named(cpu_level_name(level), &named));
        ck_assert_int_eq(named, level);
    }
    cpu_level named;
    ck_assert(!cpu_level_named("sse", &named));
}
END_TEST

int main(void)
{
    TCase *t = suite_case("levels");
    tcase_add_loop_test(t, levels_agree, 0, 6);
    suite_tests(t, steps_that_follow_each_other_agree, levels_have_names);
    return suite_status("blocks", t);
}
