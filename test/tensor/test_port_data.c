/* Packing of ports, judged position by position.
 *
 * The judge goes over all positions of all components, asks layout_map for every one and adds the
 * coordinates: the definition without tables, factors or joined loops. Random layouts name an axis in several
 * components, overshoot, pad and broadcast. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tensor/numeric.h"
#include "runtime/tensor/port_data.h"
#include "test/fixture.h"

enum { AXES = 3, MAX_POSITIONS = 6000 };

static uint64_t random_state = 4711;

static int64_t random_below(int64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((random_state >> 33) % (uint64_t)n);
}

/* ---- random layouts ---- */

typedef struct builder {
    uint64_t *words;
    size_t count, capacity;
    const layout_axis *axes;
} builder;

static void put(builder *b, layout_op op, int64_t operand)
{
    ARENA_PUSH(memory, b->words, b->count, b->capacity, LAYOUT_WORD(op, operand));
}

static int64_t divisor_of(int64_t size)
{
    int64_t d;
    do
        d = 1 + random_below(size);
    while (size % d);
    return d;
}

/* Appends a random expression and returns its size, at most `limit`. */
static int64_t build(builder *b, int depth, int64_t limit)
{
    int64_t n, size;
    if (depth == 0 || random_below(4) == 0) {
        int64_t axis = random_below(AXES);
        if (random_below(5) == 0 || b->axes[axis].size > limit) {
            put(b, LAYOUT_BROADCAST, n = 1 + random_below(limit < 3 ? limit : 3));
            return n;
        }
        put(b, LAYOUT_AXIS, axis);
        return b->axes[axis].size;
    }
    if (random_below(2)) {
        n = build(b, depth - 1, limit);
        size = build(b, depth - 1, limit / n);
        put(b, LAYOUT_PAIR, 0);
        return n * size;
    }
    size = build(b, depth - 1, limit);
    switch (random_below(4)) {
    case 0: put(b, LAYOUT_STRIDE, n = divisor_of(size)); return size / n;
    case 1: put(b, LAYOUT_MODULO, n = divisor_of(size)); return n;
    case 2: put(b, LAYOUT_RESIZE, n = 1 + random_below(size)); return n;
    default:
        n = size + random_below(3);
        n = n > limit ? limit : n;
        put(b, LAYOUT_PAD, n);
        return n;
    }
}

static const port_component components_of[4][COMPONENT_COUNT] = {
    [PORT_HBM] = {COMPONENT_CHIP, COMPONENT_ELEMENT, COMPONENT_COUNT},
    [PORT_DM] = {COMPONENT_CHIP, COMPONENT_CLUSTER, COMPONENT_SLICE, COMPONENT_ELEMENT, COMPONENT_COUNT},
    [PORT_TRF] = {COMPONENT_CHIP, COMPONENT_CLUSTER, COMPONENT_SLICE, COMPONENT_ROW, COMPONENT_ELEMENT, COMPONENT_COUNT},
    [PORT_STREAM] = {COMPONENT_CHIP, COMPONENT_CLUSTER, COMPONENT_SLICE, COMPONENT_ROW, COMPONENT_TIME, COMPONENT_PACKET, COMPONENT_COUNT},
};

static port random_port(const layout_axis *axes)
{
    port p = {.name = "p", .space = (port_space)random_below(4), .dtype = (dtype)random_below(DTYPE_COUNT)};
    int64_t limit = MAX_POSITIONS;
    for (int i = 0; components_of[p.space][i] != COMPONENT_COUNT; i++) {
        builder b = {.axes = axes};
        limit /= build(&b, (int)random_below(5), limit);
        layout l = {b.words, b.count};
        ck_assert(layout_check(l, axes, AXES, "test", 0, &diags));
        p.mapping[components_of[p.space][i]] = l;
    }
    return p;
}

/* ---- the judge ---- */

typedef struct judge {
    const port *port;
    const layout_axis *axes;
    const uint32_t *order;
    uint32_t rank;
} judge;

/* The logical element at a physical position, or -1. */
static int64_t element_at(const judge *g, int64_t position)
{
    int64_t coords[AXES] = {0};
    bool live = true;
    for (int c = COMPONENT_COUNT - 1; c >= 0; c--) {
        layout l = g->port->mapping[c];
        if (!l.count)
            continue;
        int64_t size = layout_size(l, g->axes), one[AXES] = {0};
        live = layout_map(l, g->axes, position % size, one) && live;
        for (int a = 0; live && a < AXES; a++)
            coords[a] += one[a];
        position /= size;
    }
    int64_t element = 0;
    for (uint32_t i = 0; i < g->rank; i++)
        element = element * g->axes[g->order[i]].size + coords[g->order[i]];
    for (int a = 0; a < AXES; a++)
        live = live && coords[a] < g->axes[a].size;
    return live ? element : -1;
}

static uint32_t bits_at(dtype t, const unsigned char *bytes, int64_t i)
{
    unsigned bits = dtype_row_of(t)->bits;
    uint32_t value = 0;
    if (bits == 4)
        return bytes[i / 2] >> (i % 2 ? 4 : 0) & 15;
    for (unsigned b = 0; b < bits / 8; b++)
        value |= (uint32_t)bytes[(size_t)i * (bits / 8) + b] << 8 * b;
    return value;
}

static unsigned char *random_bytes(int64_t size)
{
    unsigned char *bytes = malloc((size_t)size + 1);
    for (int64_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)random_below(256);
    return bytes;
}

static void judge_pack(const judge *g, int64_t positions, int64_t bytes, int64_t logical_bytes)
{
    unsigned char *logical = random_bytes(logical_bytes), *physical = random_bytes(bytes), *before = malloc((size_t)bytes + 1);
    dtype t = g->port->dtype;
    memcpy(before, physical, (size_t)bytes);
    ck_assert(port_pack(g->port, g->axes, AXES, logical, physical));
    for (int64_t i = 0; i < positions; i++) {
        int64_t element = element_at(g, i);
        uint32_t want = element < 0 ? bits_at(t, before, i) : bits_at(t, logical, element);
        ck_assert_msg(bits_at(t, physical, i) == want, "%s, position %ld", layout_text(g->port->mapping[0], g->axes, memory), (long)i);
    }
    free(logical);
    free(physical);
    free(before);
}

static void judge_unpack(const judge *g, int64_t positions, int64_t bytes, int64_t elements, int64_t logical_bytes)
{
    unsigned char *logical = random_bytes(logical_bytes), *want = malloc((size_t)logical_bytes + 1);
    unsigned char *physical = random_bytes(bytes), *covered = malloc((size_t)elements), *seen = calloc((size_t)elements, 1);
    dtype t = g->port->dtype;
    int64_t disagreements = 0;
    port_copies got;
    memcpy(want, logical, (size_t)logical_bytes);
    memset(covered, 7, (size_t)elements);
    for (int64_t i = 0; i < positions; i++) {
        int64_t element = element_at(g, i);
        if (element < 0)
            continue;
        if (seen[element]) {
            disagreements += bits_at(t, want, element) != bits_at(t, physical, i);
            continue;
        }
        seen[element] = 1;
        unsigned bits = dtype_row_of(t)->bits;
        if (bits == 4)
            numeric_i4_put(want, element, (int32_t)bits_at(t, physical, i));
        else
            memcpy(want + element * (bits / 8), physical + i * (bits / 8), bits / 8);
    }
    ck_assert(port_unpack(g->port, g->axes, AXES, physical, logical, covered, &got));
    ck_assert_mem_eq(logical, want, (size_t)logical_bytes);
    ck_assert_mem_eq(covered, seen, (size_t)elements);
    ck_assert_int_eq(got.disagreements, disagreements);
    ck_assert(got.first >= 0 || disagreements == 0);
    memset(logical, 0, (size_t)logical_bytes);
    ck_assert(port_unpack(g->port, g->axes, AXES, physical, logical, NULL, NULL));
    free(logical);
    free(want);
    free(physical);
    free(covered);
    free(seen);
}

START_TEST(random_ports)
{
    for (int round = 0; round < 1500; round++) {
        arena *outer = memory;
        memory = arena_new();
        diag_list_init(&diags, memory);
        layout_axis axes[AXES] = {{"A", 1 + random_below(14)}, {"B", 1 + random_below(6)}, {"C", 1 + random_below(3)}};
        port p = random_port(axes);
        uint32_t *order, rank = port_logical_axes(&p, axes, AXES, memory, &order);
        judge g = {&p, axes, order, rank};
        tensor_type type = port_logical_type(&p, axes, AXES, memory);
        ck_assert_int_eq(type.rank, (int)rank);
        int64_t elements = tensor_elements(&type), logical_bytes = tensor_bytes(p.dtype, elements), positions = 1;
        for (int c = 0; c < COMPONENT_COUNT; c++)
            positions *= p.mapping[c].count ? layout_size(p.mapping[c], axes) : 1;
        ck_assert_int_eq(port_physical_elements(&p, axes), positions);
        int64_t bytes = port_physical_bytes(&p, axes);
        ck_assert_int_eq(bytes, (positions * dtype_row_of(p.dtype)->bits + 7) / 8);
        judge_pack(&g, positions, bytes, logical_bytes);
        judge_unpack(&g, positions, bytes, elements, logical_bytes);
        arena_free(memory);
        memory = outer;
    }
}
END_TEST

/* ---- by hand ---- */

#define WORDS(...) \
    (layout) \
    { \
        (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t) \
    }
#define AXIS(n) LAYOUT_WORD(LAYOUT_AXIS, n)
#define ONE LAYOUT_WORD(LAYOUT_BROADCAST, 1)
#define PAIR LAYOUT_WORD(LAYOUT_PAIR, 0)

/* m![B, A] on a slice mapping of A's tens: axes in the order of their first mention, over all components. */
START_TEST(axes_are_named_in_order)
{
    const layout_axis axes[AXES] = {{"A", 6}, {"B", 2}, {"C", 3}};
    port p = {.name = "p", .space = PORT_DM, .dtype = DTYPE_I8};
    p.mapping[COMPONENT_CHIP] = WORDS(ONE);
    p.mapping[COMPONENT_CLUSTER] = WORDS(AXIS(2));
    p.mapping[COMPONENT_SLICE] = WORDS(AXIS(0), LAYOUT_WORD(LAYOUT_STRIDE, 2));
    p.mapping[COMPONENT_ELEMENT] = WORDS(AXIS(1), AXIS(0), LAYOUT_WORD(LAYOUT_MODULO, 2), PAIR);
    tensor_type type = port_logical_type(&p, axes, AXES, memory);
    ck_assert_str_eq(tensor_shape_text(&type, memory), "[C=3, A=6, B=2]");
    ck_assert_int_eq(port_physical_bytes(&p, axes), 36);
    unsigned char logical[36], physical[36];
    for (int i = 0; i < 36; i++)
        logical[i] = (unsigned char)i;
    ck_assert(port_pack(&p, axes, AXES, logical, physical));
    /* C=1, A/2=2, B=1, A%2=1: element 1*12 + 5*2 + 1 = 23 at position ((1*3 + 2)*2 + 1)*2 + 1 = 23 */
    ck_assert_uint_eq(physical[23], 23);
    /* C=0, A/2=0, B=1, A%2=0: element 1 at position 2 */
    ck_assert_uint_eq(physical[2], 1);
    ck_assert_uint_eq(physical[1], 2);
}
END_TEST

/* m![A / 4 # 3, A % 4] with A = 10: the last two positions of the third part are dead, and so would be
 * part 3. */
START_TEST(overshoot_is_dead)
{
    const layout_axis axes[AXES] = {{"A", 10}, {"B", 2}, {"C", 3}};
    port p = {.name = "p", .space = PORT_HBM, .dtype = DTYPE_I8};
    p.mapping[COMPONENT_CHIP] = WORDS(AXIS(0), LAYOUT_WORD(LAYOUT_PAD, 12), LAYOUT_WORD(LAYOUT_STRIDE, 4));
    p.mapping[COMPONENT_ELEMENT] = WORDS(AXIS(0), LAYOUT_WORD(LAYOUT_PAD, 12), LAYOUT_WORD(LAYOUT_MODULO, 4));
    unsigned char logical[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, physical[12], covered[10];
    memset(physical, 0xee, sizeof physical);
    ck_assert(port_pack(&p, axes, AXES, logical, physical));
    ck_assert_mem_eq(physical, "\0\1\2\3\4\5\6\7\x8\x9\xee\xee", 12);
    port_copies copies;
    ck_assert(port_unpack(&p, axes, AXES, physical, logical, covered, &copies));
    ck_assert_mem_eq(covered, "\1\1\1\1\1\1\1\1\1\1", 10);
    ck_assert_int_eq(copies.disagreements, 0);
    ck_assert_int_eq(copies.first, -1);
}
END_TEST

START_TEST(copies_that_disagree_are_counted)
{
    const layout_axis axes[AXES] = {{"A", 2}, {"B", 2}, {"C", 3}};
    port p = {.name = "p", .space = PORT_HBM, .dtype = DTYPE_I4};
    p.mapping[COMPONENT_CHIP] = WORDS(LAYOUT_WORD(LAYOUT_BROADCAST, 3));
    p.mapping[COMPONENT_ELEMENT] = WORDS(AXIS(0), LAYOUT_WORD(LAYOUT_RESIZE, 1), AXIS(1), PAIR);
    unsigned char physical[3] = {0x21, 0x21, 0x31}, logical[2] = {0xcc, 0xcc}, covered[4];
    port_copies copies;
    ck_assert(port_unpack(&p, axes, AXES, physical, logical, covered, &copies));
    ck_assert_int_eq(copies.disagreements, 1);
    ck_assert_int_eq(copies.first, 5); /* chip 2, B 1 */
    ck_assert_mem_eq(covered, "\1\1\0\0", 4);
    ck_assert_mem_eq(logical, "\x21\xcc", 2);
}
END_TEST

/* A port without any axis holds one element; it may still be padded. */
START_TEST(scalars)
{
    const layout_axis axes[AXES] = {{"A", 2}, {"B", 2}, {"C", 3}};
    port p = {.name = "p", .space = PORT_HBM, .dtype = DTYPE_BF16};
    p.mapping[COMPONENT_CHIP] = WORDS(ONE);
    p.mapping[COMPONENT_ELEMENT] = WORDS(ONE, LAYOUT_WORD(LAYOUT_PAD, 3));
    tensor_type type = port_logical_type(&p, axes, AXES, memory);
    ck_assert_int_eq(type.rank, 0);
    ck_assert_int_eq(tensor_elements(&type), 1);
    unsigned char physical[6] = {9, 9, 9, 9, 9, 9}, logical[2] = {1, 2}, covered[1];
    ck_assert(port_pack(&p, axes, AXES, logical, physical));
    ck_assert_mem_eq(physical, "\1\2\x9\x9\x9\x9", 6);
    ck_assert(port_unpack(&p, axes, AXES, physical, logical, covered, NULL));
    ck_assert_uint_eq(covered[0], 1);
}
END_TEST

/* Sizes whose products pass 2^60 are refused, not wrapped. */
START_TEST(huge_ports_are_refused)
{
    const layout_axis axes[AXES] = {{"A", INT64_C(1) << 40}, {"B", INT64_C(1) << 40}, {"C", 1}};
    port p = {.name = "p", .space = PORT_HBM, .dtype = DTYPE_F32};
    p.mapping[COMPONENT_CHIP] = WORDS(AXIS(0));
    p.mapping[COMPONENT_ELEMENT] = WORDS(AXIS(1));
    unsigned char byte[4] = {0};
    ck_assert_int_eq(port_physical_elements(&p, axes), -1);
    ck_assert_int_eq(port_physical_bytes(&p, axes), -1);
    ck_assert(!port_pack(&p, axes, AXES, byte, byte));
    ck_assert(!port_unpack(&p, axes, AXES, byte, byte, NULL, NULL));
    /* few positions of a huge axis: the logical tensor cannot be had, the physical bytes can */
    p.mapping[COMPONENT_CHIP] = WORDS(AXIS(0), LAYOUT_WORD(LAYOUT_RESIZE, 2));
    p.mapping[COMPONENT_ELEMENT] = WORDS(AXIS(1), LAYOUT_WORD(LAYOUT_STRIDE, INT64_C(1) << 39));
    ck_assert_int_eq(port_physical_bytes(&p, axes), 16);
    tensor_type type = port_logical_type(&p, axes, AXES, memory);
    ck_assert_int_eq(tensor_elements(&type), -1);
    ck_assert(!port_pack(&p, axes, AXES, byte, byte));
}
END_TEST

/* Left-nested pairs as deep as a program may be. */
START_TEST(deep_pairs)
{
    const layout_axis axes[AXES] = {{"A", 3}, {"B", 2}, {"C", 5}};
    builder b = {.axes = axes};
    put(&b, LAYOUT_AXIS, 0);
    while (b.count + 4 < LAYOUT_MAX_WORDS) {
        put(&b, LAYOUT_BROADCAST, 1);
        put(&b, LAYOUT_PAIR, 0);
    }
    put(&b, LAYOUT_AXIS, 1);
    put(&b, LAYOUT_PAIR, 0);
    port p = {.name = "p", .space = PORT_HBM, .dtype = DTYPE_I8};
    p.mapping[COMPONENT_CHIP] = WORDS(ONE);
    p.mapping[COMPONENT_ELEMENT] = (layout){b.words, b.count};
    ck_assert(layout_check(p.mapping[COMPONENT_ELEMENT], axes, AXES, "test", 0, &diags));
    unsigned char logical[6] = {1, 2, 3, 4, 5, 6}, physical[6] = {0};
    ck_assert(port_pack(&p, axes, AXES, logical, physical));
    ck_assert_mem_eq(physical, logical, 6);
}
END_TEST

/* Many elements, blocked and transposed: what a real port looks like. Times are not judged here; a table for
 * every position would run into the suite's time limit. */
START_TEST(large_ports)
{
    const layout_axis axes[AXES] = {{"M", 2048}, {"K", 1024}, {"C", 1}};
    port p = {.name = "p", .space = PORT_DM, .dtype = DTYPE_BF16};
    p.mapping[COMPONENT_CHIP] = WORDS(ONE);
    p.mapping[COMPONENT_CLUSTER] = WORDS(AXIS(1), LAYOUT_WORD(LAYOUT_STRIDE, 512));
    p.mapping[COMPONENT_SLICE] = WORDS(AXIS(0), LAYOUT_WORD(LAYOUT_STRIDE, 8));
    p.mapping[COMPONENT_ELEMENT] = WORDS(AXIS(1), LAYOUT_WORD(LAYOUT_MODULO, 512), AXIS(0), LAYOUT_WORD(LAYOUT_MODULO, 8), PAIR);
    tensor_type type = port_logical_type(&p, axes, AXES, memory);
    ck_assert_str_eq(tensor_shape_text(&type, memory), "[K=1024, M=2048]");
    tensor in, out;
    ck_assert(tensor_new(&type, memory, &in));
    ck_assert(tensor_new(&type, memory, &out));
    tensor_fill_random(&in, 3, 1);
    unsigned char *physical = malloc(in.size), *covered = malloc(in.size / 2);
    ck_assert_int_eq(port_physical_bytes(&p, axes), (int64_t)in.size);
    ck_assert(port_pack(&p, axes, AXES, in.bytes, physical));
    for (int k = 0; k < 1024; k += 37)
        for (int m = 0; m < 2048; m += 41) {
            int position = ((k / 512 * 256 + m / 8) * 512 + k % 512) * 8 + m % 8;
            ck_assert_mem_eq(physical + 2 * position, in.bytes + 2 * (k * 2048 + m), 2);
        }
    ck_assert(port_unpack(&p, axes, AXES, physical, out.bytes, covered, NULL));
    ck_assert_mem_eq(in.bytes, out.bytes, in.size);
    ck_assert_ptr_null(memchr(covered, 0, in.size / 2));
    free(physical);
    free(covered);
    tensor_free(&in);
    tensor_free(&out);
}
END_TEST

int main(void)
{
    return suite_of("port_data", setup, teardown, random_ports, axes_are_named_in_order, overshoot_is_dead,
                    copies_that_disagree_are_counted, scalars, huge_ports_are_refused, deep_pairs, large_ports);
}
