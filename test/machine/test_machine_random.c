/* Contractions and accumulations of random shapes against the definitions.
 *
 * The judge holds every lane as "a value or nothing" and builds the tree recursively; number formats are
 * decoded with ldexp; slots do not exist, only sums over loop counters. */
#include <math.h>

#include "runtime/engine/tree.h"
#include "runtime/tensor/convert.h"
#include "test/machine/machine_bench.h"
#include "test/suite.h"

enum { MOST_STEPS = 96, MOST_LANES = 128 };

/* --- the definitions
 * ----------------------------------------------------------------------------------------- */

static float decode_float(int exponent_bits, int fraction_bits, int bias, unsigned bits)
{
    unsigned fraction = bits & ((1u << fraction_bits) - 1);
    int exponent = (int)(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    float value = exponent ? ldexpf((float)(fraction | 1u << fraction_bits), exponent - bias - fraction_bits)
                           : ldexpf((float)fraction, 1 - bias - fraction_bits);
    return bits >> (exponent_bits + fraction_bits) & 1 ? -value : value;
}

static float decode(dtype type, const unsigned char *bytes, int64_t i)
{
    uint16_t half;
    switch (type) {
    case DTYPE_I4: {
        int v = bytes[i / 2] >> i % 2 * 4 & 15;
        return (float)(v > 7 ? v - 16 : v);
    }
    case DTYPE_I8: return (float)(signed char)bytes[i];
    case DTYPE_F8E4M3: return (bytes[i] & 0x7f) == 0x7f ? NAN : decode_float(4, 3, 7, bytes[i]);
    case DTYPE_F8E5M2:
        if ((bytes[i] & 0x7c) == 0x7c)
            return bytes[i] & 3 ? NAN : bytes[i] & 0x80 ? -INFINITY : INFINITY;
        return decode_float(5, 2, 15, bytes[i]);
    default:
        memcpy(&half, bytes + 2 * i, 2);
        if ((half & 0x7f80) == 0x7f80)
            return half & 0x7f ? NAN : half & 0x8000 ? -INFINITY : INFINITY;
        if ((half & 0x7f80) == 0) /* the device has no bf16 subnormals */
            return half & 0x8000 ? -0.0f : 0.0f;
        return decode_float(8, 7, 127, half);
    }
}

typedef struct maybe {
    bool present;
    float value;
} maybe;

static maybe tree_of(const maybe *lanes, int64_t count)
{
    if (count == 1)
        return lanes[0];
    maybe a = tree_of(lanes, count / 2), b = tree_of(lanes + count / 2, count / 2);
    if (!a.present || !b.present)
        return a.present ? a : b;
    volatile float sum = a.value + b.value;
    return (maybe){true, sum};
}

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* --- random contractions
 * ------------------------------------------------------------------------------------- */

typedef struct shape {
    dtype type;
    trf_address mode;
    int64_t rows, flits, tiling, packets, steps, depth, columns, lanes, bits;
    int64_t read_bytes, base, partition;
    int entries;
    int64_t size[4], stride[4]; /* innermost first */
    int masks;
    int64_t limit[2];
    int terms[2];
    int64_t term[2][3][4];
} shape;

static int64_t pick_power(uint64_t *seed, int64_t low, int64_t high)
{
    int64_t value = low;
    while (value < high && bench_random(seed) % 3)
        value *= 2;
    return value;
}

/* Up to 20 reads between the iterations of an entry, all of which stay within what is left of the partition. */
static void pick_stride(shape *s, int entry, int64_t *room_bytes, uint64_t *seed)
{
    int64_t steps = s->size[entry] - 1, most = 20;
    if (steps > 0 && *room_bytes / (steps * s->read_bytes) < most)
        most = *room_bytes / (steps * s->read_bytes);
    s->stride[entry] = s->read_bytes * bench_pick(seed, 0, most);
    *room_bytes -= s->stride[entry] * steps;
}

static void pick_masks(shape *s, uint64_t *seed)
{
    s->masks = (int)bench_pick(seed, 0, 2);
    for (int i = 0; i < s->masks; i++) {
        s->terms[i] = (int)bench_pick(seed, 1, 3);
        s->limit[i] = bench_pick(seed, 1, s->lanes * 2);
        for (int j = 0; j < s->terms[i]; j++) {
            s->term[i][j][0] = bench_pick(seed, 0, 1);
            s->term[i][j][1] = pick_power(seed, 1, 16);
            s->term[i][j][2] = bench_pick(seed, 1, s->lanes);
            s->term[i][j][3] = bench_pick(seed, 1, 3);
        }
    }
}

static shape pick_shape(uint64_t *seed)
{
    static const dtype types[] = {DTYPE_I4, DTYPE_I8, DTYPE_F8E4M3, DTYPE_F8E5M2, DTYPE_BF16};
    shape s = {.type = types[bench_random(seed) % 5], .mode = (trf_address)(bench_random(seed) % 3)};
    s.bits = dtype_row_of(s.type)->bits;
    s.rows = INT64_C(1) << bench_random(seed) % 4;
    s.flits = bench_pick(seed, 1, 3);
    s.tiling = bench_pick(seed, 1, 4);
    s.lanes = 512 / s.bits;
    s.depth = bench_pick(seed, 0, dtype_row_of(s.type)->max_tree_depth);
    s.columns = bench_pick(seed, 1, s.lanes >> s.depth < 32 ? s.lanes >> s.depth : 32);
    s.read_bytes = pick_power(seed, s.bits == 16 ? 2 : 1, 64);
    s.partition = (s.mode == TRF_FULL ? 65536 : 32768) / s.rows;
    s.base = bench_pick(seed, 0, 3) * s.read_bytes;
    s.entries = (int)bench_pick(seed, 1, 3);
    s.steps = 1;
    int64_t room = s.partition - s.base - s.read_bytes;
    for (int i = 0; i < s.entries; i++) {
        s.size[i] = bench_pick(seed, 1, 4);
        pick_stride(&s, i, &room, seed);
        s.steps *= s.size[i];
    }
    s.size[s.entries] = s.tiling; /* makes the steps a multiple of the tiling */
    pick_stride(&s, s.entries++, &room, seed);
    if (bench_random(seed) % 4 == 0) /* the last read ends with the partition */
        s.base += room;
    s.packets = s.steps;
    s.steps *= s.tiling;
    pick_masks(&s, seed);
    return s;
}

static bool lane_live(const shape *s, int64_t step, int64_t lane)
{
    for (int i = 0; i < s->masks; i++) {
        int64_t sum = 0;
        for (int j = 0; j < s->terms[i]; j++) {
            const int64_t *t = s->term[i][j];
            sum += (t[0] ? lane : step) / t[1] % t[2] * t[3];
        }
        if (sum >= s->limit[i])
            return false;
    }
    return true;
}

/* The result of one Row, step and column. */
static maybe expected_column(const shape *s, const unsigned char *weights, const unsigned char *data, int64_t row, int64_t step,
                             int64_t column)
{
    int64_t address = s->base, rest = step, width = INT64_C(1) << s->depth;
    for (int i = 0; i < s->entries; i++) {
        address += rest % s->size[i] * s->stride[i];
        rest /= s->size[i];
    }
    maybe lanes[MOST_LANES];
    for (int64_t i = 0; i < width; i++) {
        int64_t lane = column * width + i;
        bool padded = lane * s->bits >= s->flits * 256;
        float a = padded ? 0 : decode(s->type, data + step / s->tiling * s->flits * 32, lane);
        int64_t element = address * 8 / s->bits + lane % (s->read_bytes * 8 / s->bits);
        float w = decode(s->type, weights + row * s->partition, element);
        lanes[i] = (maybe){lane_live(s, step, lane), a * w};
    }
    return tree_of(lanes, width);
}

static void add_contraction(bench *b, const shape *s)
{
    ADD(b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(b, CONTEXT_MAIN, OP_STREAM_IN, 1, s->type, 1, 256 / s->bits, s->packets * s->flits);
    ADD(b, CONTEXT_MAIN, OP_ALIGN, s->flits, s->rows, s->type, s->tiling, s->packets);
    command *read =
        ADD(b, CONTEXT_MAIN, OP_TRF_READ, s->mode, s->rows, dtype_row_of(s->type)->trf_reg_type, s->read_bytes, s->base, s->type);
    for (int i = 0; i < s->entries; i++)
        ENTRY(read, s->size[i], s->stride[i]);
    ADD(b, CONTEXT_MAIN, OP_CONTRACT, s->type, s->depth, s->columns);
    for (int i = 0; i < s->masks; i++) {
        command *mask = ADD(b, CONTEXT_MAIN, OP_MASK, s->limit[i]);
        for (int j = 0; j < s->terms[i]; j++)
            ENTRY(mask, s->term[i][j][0], s->term[i][j][1], s->term[i][j][2], s->term[i][j][3]);
    }
    ADD(b, CONTEXT_MAIN, OP_STREAM_OUT, 2, dtype_row_of(s->type)->accumulates_in, s->rows, 32, s->steps);
}

START_TEST(contractions_follow_the_definition)
{
    uint64_t seed = 0x9e3779b97f4a7c15u + (uint64_t)_i;
    for (int round = 0; round < suite_rounds(150); round++) {
        shape s = pick_shape(&seed);
        dtype out_type = dtype_row_of(s.type)->accumulates_in;
        bench b;
        bench_init(&b);
        bench_trf(&b, PORT_IN, s.type, s.mode, s.rows, s.partition * 8 / s.bits);
        bench_stream(&b, PORT_IN, s.type, 1, s.packets * s.flits, 256 / s.bits);
        bench_stream(&b, PORT_OUT, out_type, s.rows, s.steps, 32);
        add_contraction(&b, &s);
        bench_build(&b);
        size_t weight_bytes = (size_t)(s.partition * s.rows), data_bytes = (size_t)(s.packets * s.flits * 32);
        size_t out_bytes = (size_t)(s.rows * s.steps * 32 * 4);
        unsigned char *weights = malloc(weight_bytes), *data = malloc(data_bytes), *out = malloc(out_bytes);
        bool tame = bench_random(&seed) % 2; /* no NaN everywhere */
        for (size_t i = 0; i < weight_bytes; i++)
            weights[i] = (unsigned char)(bench_random(&seed) & (tame ? 0xbf : 0xff));
        for (size_t i = 0; i < data_bytes; i++)
            data[i] = (unsigned char)(bench_random(&seed) & (tame ? 0xbf : 0xff));
        bench_write(&b, 0, weights, weight_bytes);
        bench_write(&b, 1, data, data_bytes);
        bench_run(&b);
        bench_read(&b, 2, out, out_bytes);
        for (int64_t i = 0; i < s.rows * s.steps * 32; i++) {
            int64_t row = i / (s.steps * 32), step = i / 32 % s.steps, column = i % 32;
            uint32_t bits;
            memcpy(&bits, out + i * 4, 4);
            if (column >= s.columns) {
                ck_assert_uint_eq(bits, 0xa5a5a5a5);
                continue;
            }
            maybe m = expected_column(&s, weights, data, row, step, column);
            float value = m.present ? m.value : 0, got = f32_of_bits(bits);
            if (out_type == DTYPE_I32)
                ck_assert_int_eq((int32_t)bits, (int32_t)value);
            else
                ck_assert_msg(same(got, value), "round %d %s: Row %lld step %lld column %lld is %a instead of %a", round,
                              dtype_row_of(s.type)->name, (long long)row, (long long)step, (long long)column, (double)got, (double)value);
        }
        free(weights);
        free(data);
        free(out);
        bench_free(&b);
    }
}
END_TEST

/* What is drawn is legal: few of the shapes run in the short form, and large strides in a small partition are rare. */
START_TEST(drawn_reads_stay_in_the_partition)
{
    enum { SHAPES = 20000 };
    uint64_t seed = 41;
    int to_the_end = 0;
    for (int round = 0; round < SHAPES; round++) {
        shape s = pick_shape(&seed);
        int64_t end = s.base + s.read_bytes;
        for (int i = 0; i < s.entries; i++)
            end += (s.size[i] - 1) * s.stride[i];
        ck_assert_int_le(end, s.partition);
        to_the_end += end == s.partition;
    }
    ck_assert_int_gt(to_the_end, SHAPES / 5);
}
END_TEST

START_TEST(operand_conversions_agree)
{
    static const dtype types[] = {DTYPE_I4, DTYPE_I8, DTYPE_F8E4M3, DTYPE_F8E5M2, DTYPE_BF16};
    enum { COUNT = 65536 };
    uint16_t *all = malloc(COUNT * 2);
    float *fast = malloc(COUNT * 4), *portable = malloc(COUNT * 4);
    for (int i = 0; i < COUNT; i++)
        all[i] = (uint16_t)i;
    for (int k = 0; k < 5; k++) {
        const unsigned char *bytes = (const unsigned char *)all;
        convert_operand(types[k])(fast, bytes, COUNT);
        convert_operand_portable(types[k])(portable, bytes, COUNT);
        for (int i = 0; i < COUNT; i++) {
            ck_assert(same(fast[i], decode(types[k], bytes, i)));
            ck_assert_mem_eq(&fast[i], &portable[i], 4);
        }
    }
    ck_assert_ptr_null(convert_operand(DTYPE_I16));
    free(all);
    free(fast);
    free(portable);
}
END_TEST

/* All kernels of one shape against the recursive tree, Row counts of other machines included. */
START_TEST(tree_kernels_agree)
{
    static const int64_t rows[] = {1, 2, 3, 4, 8, 16};
    uint64_t seed = 31337;
    for (int round = 0; round < suite_rounds(600); round++) {
        int64_t lanes = INT64_C(32) << bench_random(&seed) % 3, depth = bench_pick(&seed, 0, 7);
        if (lanes >> depth == 0)
            continue;
        tree_shape s = {.rows = rows[bench_random(&seed) % 6], .depth = (unsigned)depth};
        s.columns = bench_pick(&seed, 1, lanes >> depth);
        s.period = pick_power(&seed, 8, lanes);
        float a[MOST_LANES], w[MOST_LANES * 16], scratch[2 * MOST_LANES * 16], out[2][MOST_LANES * 16];
        unsigned char live[MOST_LANES];
        int density = (int)(bench_random(&seed) % 4);
        for (int64_t i = 0; i < MOST_LANES * 16; i++) {
            a[i % MOST_LANES] = ldexpf((float)bench_pick(&seed, -255, 255), (int)bench_pick(&seed, -8, 8));
            w[i] = ldexpf((float)bench_pick(&seed, -255, 255), (int)bench_pick(&seed, -8, 8));
            live[i % MOST_LANES] = i / 8 % 4 == density || bench_random(&seed) % 4 < (unsigned)density;
        }
        const unsigned char *mask = density ? live : NULL;
        tree_kernel_for (&s)(&s, a, w, mask, out[0], scratch);
        tree_kernel_portable (&s)(&s, a, w, mask, out[1], scratch);
        for (int64_t i = 0; i < s.columns * s.rows; i++) {
            maybe products[MOST_LANES];
            int64_t column = i / s.rows, width = INT64_C(1) << depth;
            for (int64_t j = 0; j < width; j++) {
                int64_t lane = column * width + j, in_read = lane % s.period, row = i % s.rows;
                int64_t weight = tree_rows_apart(s.rows) ? row * s.period + in_read : in_read * s.rows + row;
                products[j] = (maybe){!mask || live[lane], a[lane] * w[weight]};
            }
            maybe wanted = tree_of(products, width);
            for (int k = 0; k < 2; k++)
                ck_assert(same(out[k][i], wanted.present ? wanted.value : -0.0f));
        }
    }
}
END_TEST

/* --- random accumulations
 * ------------------------------------------------------------------------------------ */

typedef struct sums {
    bool sequential, is_float;
    int64_t rows, columns, packet, steps, slots;
    int loops;
    int64_t size[4], slot[4];
    bool reduced[4];
} sums;

static sums pick_sums(uint64_t *seed)
{
    for (;;) {
        sums s = {.sequential = bench_random(seed) % 2, .is_float = bench_random(seed) % 2};
        s.rows = INT64_C(1) << bench_random(seed) % 4;
        s.columns = bench_pick(seed, 1, 20);
        s.packet = s.columns + bench_pick(seed, 0, 3);
        s.loops = (int)bench_pick(seed, 1, 4);
        s.steps = s.slots = 1;
        int outermost = 4;
        for (int i = 0; i < s.loops; i++) {
            s.size[i] = bench_pick(seed, 1, 4);
            s.reduced[i] = bench_random(seed) % 2;
            s.steps *= s.size[i];
            if (s.reduced[i] && outermost == 4)
                outermost = i;
        }
        for (int i = s.loops; i-- > 0;)
            if (!s.reduced[i] && i > outermost) {
                s.slot[i] = s.slots;
                s.slots *= s.size[i];
            } else {
                s.slot[i] = bench_pick(seed, 0, 1023); /* has no meaning */
            }
        int64_t columns = 1;
        while (columns < s.columns)
            columns *= 2;
        if (s.sequential ? s.slots * s.rows <= 32 : s.slots * columns <= 128)
            return s;
    }
}

/* Counters of a step; `number` gets the kept ones as one number, `first` and `last` whether the reduced ones
 * are at their ends. */
static void step_counters(const sums *s, int64_t step, int64_t *number, bool *last)
{
    int64_t weight = 1;
    *number = 0;
    *last = true;
    for (int i = s->loops; i-- > 0;) {
        int64_t c = step % s->size[i];
        step /= s->size[i];
        if (s->reduced[i]) {
            *last &= c == s->size[i] - 1;
        } else {
            *number += c * weight;
            weight *= s->size[i];
        }
    }
}

/* Sum over all steps with the same kept counters, in time order, the first one stored. */
static uint32_t expected_sum(const sums *s, const uint32_t *in, int64_t number, int64_t row, int64_t column)
{
    uint32_t total = 0;
    bool begun = false;
    for (int64_t step = 0; step < s->steps; step++) {
        int64_t here;
        bool last;
        step_counters(s, step, &here, &last);
        if (here != number)
            continue;
        uint32_t word = in[(row * s->steps + step) * s->packet + column];
        float a, b;
        memcpy(&a, &total, 4);
        memcpy(&b, &word, 4);
        volatile float sum = a + b;
        float rounded = sum;
        if (!begun)
            total = word;
        else if (s->is_float)
            memcpy(&total, &rounded, 4);
        else
            total += word;
        begun = true;
    }
    return total;
}

START_TEST(accumulations_follow_the_definition)
{
    uint64_t seed = 77 + (uint64_t)_i * 1000003;
    for (int round = 0; round < suite_rounds(200); round++) {
        sums s = pick_sums(&seed);
        dtype type = s.is_float ? DTYPE_F32 : DTYPE_I32;
        int64_t each = s.sequential ? s.rows * ((s.columns + 7) / 8) : s.columns, kept = 1;
        for (int i = 0; i < s.loops; i++)
            kept *= s.reduced[i] ? 1 : s.size[i];
        bench b;
        bench_init(&b);
        bench_stream(&b, PORT_IN, type, s.rows, s.steps, s.packet);
        bench_stream(&b, PORT_OUT, type, 1, kept * each, 8);
        ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
        ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, 0, type, s.rows, s.packet, s.steps);
        command *k = ADD(&b, CONTEXT_MAIN, OP_ACCUMULATE, s.sequential, s.rows, s.columns, s.slots);
        for (int i = 0; i < s.loops; i++)
            ENTRY(k, s.size[i], s.reduced[i], s.slot[i]);
        ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, 1, type, 1, 8, kept * each);
        bench_build(&b);
        size_t in_words = (size_t)(s.rows * s.steps * s.packet), out_words = (size_t)(kept * each * 8);
        uint32_t *in = malloc(in_words * 4), *out = malloc(out_words * 4);
        for (size_t i = 0; i < in_words; i++) {
            float value = ldexpf((float)bench_pick(&seed, -1000000, 1000000), (int)bench_pick(&seed, -20, 20));
            in[i] = (uint32_t)bench_random(&seed);
            if (s.is_float)
                memcpy(&in[i], &value, 4);
        }
        bench_write(&b, 0, in, in_words * 4);
        bench_run(&b);
        bench_read(&b, 1, out, out_words * 4);
        int64_t beat = 0;
        for (int64_t step = 0; step < s.steps; step++) {
            int64_t number;
            bool last;
            step_counters(&s, step, &number, &last);
            for (int64_t i = 0; last && i < each; i++, beat++)
                for (int64_t lane = 0; lane < 8; lane++) {
                    int64_t per_row = (s.columns + 7) / 8;
                    int64_t row = s.sequential ? i / per_row : lane, column = s.sequential ? i % per_row * 8 + lane : i;
                    uint32_t wanted = 0xa5a5a5a5;
                    if (column >= s.columns)
                        wanted = 0;
                    else if (row < s.rows)
                        wanted = expected_sum(&s, in, number, row, column);
                    ck_assert_uint_eq(out[beat * 8 + lane], wanted);
                }
        }
        ck_assert_int_eq(beat, kept * each);
        free(in);
        free(out);
        bench_free(&b);
    }
}
END_TEST

/* --- random moves: fetch any walk, commit it back
 * ------------------------------------------------------------ */

START_TEST(moves_follow_the_counters)
{
    static const dtype types[] = {DTYPE_I4, DTYPE_I8, DTYPE_I16, DTYPE_I32};
    uint64_t seed = 4242 + (uint64_t)_i * 7919;
    for (int round = 0; round < suite_rounds(200); round++) {
        dtype type = types[bench_random(&seed) % 4];
        int64_t bits = dtype_row_of(type)->bits, flit = 256 / bits, reach = 0, positions = 1;
        int64_t size[5], stride[5], packet = 64 / bits * bench_pick(&seed, 1, 5);
        int loops = (int)bench_pick(&seed, 1, 3);
        for (int i = 0; i < loops; i++) {
            size[i] = bench_pick(&seed, 1, 5);
            stride[i] = bench_pick(&seed, 0, 40);
        }
        size[loops] = packet; /* one packet per iteration, with a stride of its own */
        stride[loops++] = bench_pick(&seed, 0, 2);
        for (int i = 0; i < loops; i++) {
            positions *= size[i];
            reach += stride[i] * (size[i] - 1);
        }
        int64_t packets = positions / packet, flits_each = (packet * bits + 255) / 256, flits = packets * flits_each;
        int64_t access = bits < 8 ? 1 : bits / 8, in_bytes = reach * bits / 8 + 8;
        bool nibble_runs = bits == 4 && (stride[loops - 1] != 1);
        for (int i = 0; bits == 4 && i < loops - 1; i++)
            nibble_runs |= stride[i] == 1 && size[i] > 1;
        if (nibble_runs) /* an access of a byte needs two neighbouring nibbles */
            continue;
        bench b;
        bench_init(&b);
        int64_t base = bench_pick(&seed, 0, 100);
        uint32_t in = bench_dm(&b, PORT_IN, base, in_bytes), out = bench_dm(&b, PORT_OUT, 65536, flits * 32);
        ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
        command *fetch = ADD(&b, CONTEXT_SUB, OP_FETCH, base, type, type, access, packet);
        for (int i = 0; i < loops; i++)
            ENTRY(fetch, size[i], stride[i]);
        ADD(&b, CONTEXT_SUB, OP_COLLECT, type, flits_each, packet);
        command *commit = ADD(&b, CONTEXT_SUB, OP_COMMIT, 65536, type, 32, 8);
        ENTRY(commit, flits, -flit); /* the flits come back in reverse */
        ENTRY(commit, flit, 1);
        commit->fields[0] = 65536 + (flits - 1) * 32;
        bench_build(&b);
        unsigned char *data = malloc((size_t)in_bytes), *got = malloc((size_t)flits * 32);
        for (int64_t i = 0; i < in_bytes; i++)
            data[i] = (unsigned char)bench_random(&seed);
        bench_write(&b, in, data, (size_t)in_bytes);
        bench_run(&b);
        bench_read(&b, out, got, (size_t)flits * 32);
        for (int64_t f = 0; f < flits; f++)
            for (int64_t e = 0; e < flit; e++) {
                int64_t in_packet = f % flits_each * flit + e, position = f / flits_each * packet + in_packet;
                int64_t to = (flits - 1 - f) * flit + e, from = 0;
                for (int i = loops; i-- > 0; position /= size[i])
                    from += position % size[i] * stride[i];
                for (int64_t bit = 0; bit < bits; bit += 4) {
                    int64_t a = from * bits + bit, z = to * bits + bit;
                    int wanted = in_packet < packet ? data[a / 8] >> a % 8 & 15 : 0;
                    ck_assert_int_eq(got[z / 8] >> z % 8 & 15, wanted);
                }
            }
        free(data);
        free(got);
        bench_free(&b);
    }
}
END_TEST

int main(void)
{
    TCase *t = suite_case("definitions");
    tcase_add_loop_test(t, contractions_follow_the_definition, 0, 4);
    suite_tests(t, drawn_reads_stay_in_the_partition, operand_conversions_agree, tree_kernels_agree);
    tcase_add_loop_test(t, accumulations_follow_the_definition, 0, 4);
    tcase_add_loop_test(t, moves_follow_the_counters, 0, 4);
    return suite_status("machine, random", t);
}
