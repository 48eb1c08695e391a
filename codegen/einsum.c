#include "codegen/einsum.h"

#include <inttypes.h>

#include "codegen/words.h"

#define COUNT_LIMIT (INT64_C(1) << 62)

enum { TENSOR_WORDS = 2, STATEMENT_WORDS = 2, DIGIT_WORDS = 3, PIECE_WORDS = 3, SHIFT_WORDS = 2, INDEX_WORDS = 6, TERM_WORDS = 4 };
enum { MAX_RANK = 0xffff, MAX_TENSORS = 0xffff, MAX_WINDOWS = 0xffff, MAX_TERMS = 8, MAX_SHIFTS = 255, MAX_PIECES = 255 };

/* Encoder: docs/format.md, "Einsum section". */

static void put_tensor(word_writer *w, const einsum_tensor *t)
{
    word_writer_put(w, (uint64_t)t->dtype | (uint64_t)t->rank << 8 | word_writer_string(w, t->name) << 32);
    word_writer_put(w, (uint64_t)((int64_t)t->port + 1));
    for (uint32_t i = 0; i < t->rank; i++)
        word_writer_put(w, t->axes[i]);
}

static void put_window(word_writer *w, const einsum_window *x)
{
    word_writer_put(w, x->axis | (uint64_t)x->term_count << 32 | (uint64_t)x->bordered << 40);
    if (x->bordered)
        word_writer_put(w, (uint64_t)x->first);
    for (uint32_t i = 0; i < x->term_count; i++) {
        word_writer_put(w, x->terms[i].axis);
        word_writer_put(w, (uint64_t)x->terms[i].weight);
        word_writer_put(w, (uint64_t)x->terms[i].extent);
        word_writer_put(w, (uint64_t)x->terms[i].stride);
    }
}

static void put_digit(word_writer *w, const einsum_digit *d)
{
    word_writer_put(w, d->axis | (uint64_t)d->kept << 32 | (uint64_t)(d->broadcast >> EINSUM_A) << 33 | (uint64_t)(d->broadcast & 1) << 57 |
                           (uint64_t)d->lane << 41 | (uint64_t)d->group << 49);
    word_writer_put(w, (uint64_t)d->weight);
    word_writer_put(w, (uint64_t)d->size);
    if (d->group)
        word_writer_put(w, (uint64_t)d->stride);
}

static void put_statement(word_writer *w, const einsum_statement *s)
{
    word_writer_put(w, (uint64_t)s->op | (uint64_t)s->accumulator << 8 | (uint64_t)s->source_count << 16 | (uint64_t)s->shift_count << 24 |
                           (uint64_t)s->digit_count << 32 | (uint64_t)s->piece_count << 48 | (uint64_t)s->counted << 56);
    word_writer_put(w, s->dst | (uint64_t)s->step_count << 32 | (uint64_t)s->fold << 48);
    for (uint32_t i = 0; i < s->source_count; i++)
        word_writer_put(w, s->sources[i]);
    for (uint32_t i = 0; i < s->digit_count; i++)
        put_digit(w, &s->digits[i]);
    for (uint32_t i = 0; i < s->piece_count; i++) {
        word_writer_put(w, s->pieces[i].group | (uint64_t)s->pieces[i].lane << 8);
        word_writer_put(w, (uint64_t)s->pieces[i].weight);
        word_writer_put(w, (uint64_t)s->pieces[i].size);
    }
    for (uint32_t i = 0; i < s->shift_count; i++) {
        word_writer_put(w, s->shifts[i].axis | (uint64_t)s->shifts[i].side << 32);
        word_writer_put(w, (uint64_t)s->shifts[i].offset);
    }
    for (uint32_t i = 0; i < s->step_count; i++)
        word_writer_put(w, (uint64_t)s->steps[i].op | (uint64_t)s->steps[i].argument << 32);
    for (uint32_t i = 0; i < einsum_index_count(s); i++) {
        word_writer_put(w, s->indices[i].axis);
        word_writer_put(w, (uint64_t)s->indices[i].unit);
        word_writer_put(w, (uint64_t)s->indices[i].step);
        word_writer_put(w, (uint64_t)s->indices[i].div);
        word_writer_put(w, (uint64_t)s->indices[i].mod);
        word_writer_put(w, (uint64_t)s->indices[i].positions);
    }
    if (s->counted)
        word_writer_put(w, (uint64_t)s->count_span);
    if (s->op == MATH_FILL)
        word_writer_put(w, s->bits);
}

/* Does what the statement has fit its fields? */
static bool statement_fits(const einsum_statement *s)
{
    return s->source_count <= EINSUM_SOURCES && s->shift_count <= MAX_SHIFTS && s->piece_count <= MAX_PIECES &&
           s->digit_count <= EINSUM_STATEMENT_DIGITS && s->step_count <= SCALAR_MAX_STEPS;
}

bool einsum_encode(const einsum *e, arena *a, uint64_t **words, size_t *count)
{
    word_writer w;
    word_writer_init(&w, a);
    if (e->tensor_count > MAX_TENSORS || e->window_count > MAX_WINDOWS)
        return false;
    word_writer_put(&w, e->tensor_count | (uint64_t)e->window_count << 16 | (uint64_t)e->statement_count << 32);
    word_writer_put(&w, 0);
    uint64_t text = word_writer_string(&w, e->text);
    for (uint32_t i = 0; i < e->window_count; i++)
        put_window(&w, &e->windows[i]);
    for (uint32_t i = 0; i < e->tensor_count; i++) {
        if (e->tensors[i].rank > MAX_RANK || e->tensors[i].port < -1)
            return false;
        put_tensor(&w, &e->tensors[i]);
    }
    for (uint32_t i = 0; i < e->statement_count; i++) {
        if (!statement_fits(&e->statements[i]))
            return false;
        put_statement(&w, &e->statements[i]);
    }
    w.words[1] = text | (uint64_t)w.string_bytes << 32;
    word_writer_finish(&w);
    *words = w.words;
    *count = w.count;
    return !w.failed;
}

/* Decoder. Every check stands next to the word it reads, so that the offset in the message is that word's. */

typedef struct einsum_reader {
    word_reader in;
    arena *arena;
    const layout_axis *axes;
    uint32_t axis_count, port_count;
    uint32_t window_count;
    einsum_window *windows;
    const einsum_window **window_of; /* by axis; NULL: no window */
    uint32_t tensor_count;
    einsum_tensor *tensors;
    bool *assigned, *used; /* by tensor */
    size_t digit_at;       /* word of the digit being read */
    uint32_t *axis_mark;   /* by axis: number of the tensor or side that named it last */
    bool *port_taken;      /* by port */
} einsum_reader;

static bool fault_here(einsum_reader *r, const char *text)
{
    return word_reader_fault(&r->in, r->in.at - 1, "%s", text);
}

/* ---- windows ---- */

static bool read_term(einsum_reader *r, einsum_term *t, int64_t *size)
{
    uint64_t axis = word_reader_next(&r->in);
    if (axis >= r->axis_count)
        return word_reader_fault(&r->in, r->in.at - 1, "axis number %" PRIu64 " of %u axes", axis, r->axis_count);
    t->axis = (uint32_t)axis;
    uint64_t limit = (uint64_t)r->axes[axis].size;
    uint64_t weight = word_reader_next(&r->in), extent = word_reader_next(&r->in), stride = word_reader_next(&r->in);
    if (weight < 1 || weight > limit || extent < 1 || extent > (limit - 1) / weight + 1)
        return word_reader_fault(&r->in, r->in.at - 4, "weight %" PRIu64 " and extent %" PRIu64 " of a digit of axis %s (size %" PRIu64 ")",
                                 weight, extent, r->axes[axis].name, limit);
    int64_t reach;
    if (stride < 1 || stride >= (uint64_t)COUNT_LIMIT || __builtin_mul_overflow((int64_t)extent - 1, (int64_t)stride, &reach) ||
        __builtin_add_overflow(*size, reach, size) || *size >= COUNT_LIMIT)
        return fault_here(r, "a window has 2^62 places or more, or a stride of 0");
    t->weight = (int64_t)weight;
    t->extent = (int64_t)extent;
    t->stride = (int64_t)stride;
    return true;
}

/* Ranges of weights; the products are below 2^63 because a digit ends less than its weight after its axis. */
static bool terms_meet(const einsum_term *a, const einsum_term *b)
{
    return a->axis == b->axis && a->weight < b->weight * b->extent && b->weight < a->weight * a->extent;
}

static bool read_window(einsum_reader *r, einsum_window *x)
{
    uint64_t word = word_reader_next(&r->in);
    x->axis = (uint32_t)word_bits(word, 0, 32);
    x->term_count = (uint32_t)word_bits(word, 32, 8);
    x->bordered = word_bits(word, 40, 1);
    x->first = 0;
    if (word_bits(word, 41, 23) != 0)
        return fault_here(r, "reserved bits of a window are not zero");
    if (x->axis >= r->axis_count)
        return word_reader_fault(&r->in, r->in.at - 1, "axis number %u of %u axes", x->axis, r->axis_count);
    if (r->window_of[x->axis])
        return word_reader_fault(&r->in, r->in.at - 1, "axis %s is two windows", r->axes[x->axis].name);
    if (x->term_count < 1 || x->term_count > MAX_TERMS)
        return word_reader_fault(&r->in, r->in.at - 1, "%u terms of a window, allowed are 1 to %d", x->term_count, MAX_TERMS);
    if (x->bordered)
        x->first = (int64_t)word_reader_next(&r->in);
    if (!word_reader_has(&r->in, x->term_count, TERM_WORDS, "terms"))
        return false;
    einsum_term *terms = ARENA_ARRAY(r->arena, einsum_term, x->term_count);
    int64_t size = 1;
    for (uint32_t i = 0; i < x->term_count; i++) {
        if (!read_term(r, &terms[i], &size))
            return false;
        if (terms[i].axis == x->axis)
            return fault_here(r, "a window is a term of its own");
        for (uint32_t k = 0; k < i; k++)
            if (terms_meet(&terms[i], &terms[k]))
                return fault_here(r, "two terms of a window count through the same coordinates");
    }
    if (x->bordered && (x->first < 0 || x->first >= size || r->axes[x->axis].size > size - x->first || r->axes[x->axis].size == size))
        return word_reader_fault(&r->in, r->in.at - 1, "window %s holds %" PRId64 " places from place %" PRId64 " on, of %" PRId64,
                                 r->axes[x->axis].name, r->axes[x->axis].size, x->first, size);
    if (!x->bordered && size != r->axes[x->axis].size)
        return word_reader_fault(&r->in, r->in.at - 1, "window %s has %" PRId64 " places by its terms and %" PRId64 " as an axis",
                                 r->axes[x->axis].name, size, r->axes[x->axis].size);
    x->terms = terms;
    r->window_of[x->axis] = x;
    return true;
}

static bool read_windows(einsum_reader *r)
{
    r->windows = ARENA_ARRAY(r->arena, einsum_window, r->window_count);
    r->window_of = ARENA_ARRAY(r->arena, const einsum_window *, r->axis_count);
    for (uint32_t i = 0; i < r->window_count; i++)
        if (!read_window(r, &r->windows[i]))
            return false;
    return true;
}

static bool read_axes(einsum_reader *r, einsum_tensor *t, uint32_t mark)
{
    uint32_t *axes = ARENA_ARRAY(r->arena, uint32_t, t->rank);
    int64_t elements = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint64_t axis = word_reader_next(&r->in);
        if (axis >= r->axis_count)
            return word_reader_fault(&r->in, r->in.at - 1, "axis number %" PRIu64 " of %u axes", axis, r->axis_count);
        if (r->axis_mark[axis] == mark)
            return word_reader_fault(&r->in, r->in.at - 1, "tensor %s names axis %s twice", t->name, r->axes[axis].name);
        r->axis_mark[axis] = mark;
        if (__builtin_mul_overflow(elements, r->axes[axis].size, &elements) || elements >= COUNT_LIMIT)
            return word_reader_fault(&r->in, r->in.at - 1, "tensor %s has 2^62 elements or more", t->name);
        axes[i] = (uint32_t)axis;
    }
    t->axes = axes;
    return true;
}

static bool read_port(einsum_reader *r, einsum_tensor *t)
{
    uint64_t port = word_reader_next(&r->in);
    if (port > r->port_count)
        return word_reader_fault(&r->in, r->in.at - 1, "tensor %s is port %" PRIu64 " of %u ports", t->name, port - 1, r->port_count);
    t->port = (int32_t)port - 1;
    if (port > 0 && r->port_taken[port - 1])
        return word_reader_fault(&r->in, r->in.at - 1, "port %" PRIu64 " is two tensors", port - 1);
    if (port > 0)
        r->port_taken[port - 1] = true;
    return true;
}

static bool read_tensor(einsum_reader *r, uint32_t number)
{
    einsum_tensor *t = &r->tensors[number];
    uint64_t word = word_reader_next(&r->in);
    t->rank = (uint32_t)word_bits(word, 8, 16);
    t->name = word_reader_name(&r->in, word_bits(word, 32, 32));
    if (!t->name)
        return false;
    if (word_bits(word, 0, 8) >= DTYPE_COUNT)
        return word_reader_fault(&r->in, r->in.at - 1, "tensor %s has dtype code %u, allowed are 0 to %d", t->name,
                                 (unsigned)word_bits(word, 0, 8), DTYPE_COUNT - 1);
    t->dtype = (dtype)word_bits(word, 0, 8);
    if (word_bits(word, 24, 8))
        return fault_here(r, "reserved bits are not zero");
    return read_port(r, t) && word_reader_has(&r->in, t->rank, 1, "axes") && read_axes(r, t, number + 1);
}

static bool read_digit(einsum_reader *r, einsum_digit *d)
{
    r->digit_at = r->in.at;
    uint64_t word = word_reader_next(&r->in);
    d->axis = (uint32_t)word_bits(word, 0, 32);
    d->kept = word_bits(word, 32, 1);
    d->broadcast = (uint32_t)word_bits(word, 33, EINSUM_SOURCES) << EINSUM_A | (uint32_t)word_bits(word, 57, 1);
    d->lane = (unsigned char)word_bits(word, 41, 8);
    d->group = (unsigned char)word_bits(word, 49, 8);
    if (word_bits(word, 58, 6))
        return fault_here(r, "reserved bits are not zero");
    if (d->axis >= r->axis_count)
        return word_reader_fault(&r->in, r->in.at - 1, "axis number %u of %u axes", d->axis, r->axis_count);
    const layout_axis *axis = &r->axes[d->axis];
    uint64_t weight = word_reader_next(&r->in);
    if (weight < 1 || weight > (uint64_t)axis->size)
        return word_reader_fault(&r->in, r->in.at - 1, "weight %" PRIu64 " of a digit of axis %s, allowed are 1 to %" PRId64, weight,
                                 axis->name, axis->size);
    uint64_t size = word_reader_next(&r->in), most = (uint64_t)(axis->size - 1) / weight + 1;
    if (size < 1 || size > most)
        return word_reader_fault(&r->in, r->in.at - 1,
                                 "size %" PRIu64 " of a digit of axis %s (size %" PRId64 ") with weight %" PRIu64
                                 ", allowed are 1 to %" PRIu64,
                                 size, axis->name, axis->size, weight, most);
    d->weight = (int64_t)weight;
    d->size = (int64_t)size;
    uint64_t stride = d->group ? word_reader_next(&r->in) : 0;
    if (d->group && (stride < 1 || stride >= (uint64_t)COUNT_LIMIT))
        return word_reader_fault(&r->in, r->in.at - 1,
                                 "a digit of axis %s is %" PRIu64 " positions of its group apart, allowed are 1 to 2^62 - 1", axis->name,
                                 stride);
    d->stride = (int64_t)stride;
    return true;
}

/* Two digits that reach the same coordinate would count it twice. */
static bool digits_overlap(const einsum_digit *a, const einsum_digit *b)
{
    if (a->axis != b->axis || a->size == 1 || b->size == 1)
        return false;
    const einsum_digit *low = a->weight <= b->weight ? a : b, *high = low == a ? b : a;
    return (low->size - 1) * low->weight >= high->weight;
}

/* The places of a scatter are those of its index tensors as well. */
static bool moves_an_index(const einsum_reader *r, const einsum_statement *s, const einsum_digit *d)
{
    for (uint32_t i = 1; i < s->source_count; i++)
        if (einsum_tensor_has(&r->tensors[s->sources[i]], d->axis) && einsum_digit_indexes(d, (einsum_side)(EINSUM_A + i)))
            return true;
    return false;
}

static bool check_digit(einsum_reader *r, const einsum_statement *s, const einsum_digit *digits, uint32_t number)
{
    const einsum_digit *d = &digits[number];
    size_t at = r->digit_at;
    const char *axis = r->axes[d->axis].name;
    if (d->kept && d->size > 1 && !einsum_tensor_has(&r->tensors[s->dst], d->axis) && !(s->op == MATH_SCATTER && moves_an_index(r, s, d)))
        return word_reader_fault(&r->in, at, "a digit of axis %s is kept, but tensor %s has no such axis", axis, r->tensors[s->dst].name);
    if (!d->kept && !math_row_of(s->op)->sums)
        return word_reader_fault(&r->in, at, "a %s sums over a digit of axis %s", math_row_of(s->op)->name, axis);
    if (number > 0 && d->kept && !digits[number - 1].kept)
        return word_reader_fault(&r->in, at, "a kept digit of axis %s stands after a summed one", axis);
    for (uint32_t i = 0; i < number; i++)
        if (digits_overlap(&digits[i], d))
            return word_reader_fault(&r->in, at, "digits %u and %u reach the same coordinates of axis %s", i, number, axis);
    return true;
}

/* Lanes go from the outermost digit of the packet to the innermost, each digit inside a step of the one before it. */
static bool check_lane(einsum_reader *r, const einsum_statement *s, const einsum_digit *digits, uint32_t number)
{
    enum { LANES = 256 };
    const einsum_digit *d = &digits[number], *before = number > 0 ? &digits[number - 1] : NULL;
    int64_t room = before && before->lane ? before->lane : LANES;
    bool fits = d->lane ? !d->kept && d->size <= room / d->lane : !before || !before->lane;
    if (fits && !(s->piece_count && d->lane))
        return true;
    return word_reader_fault(&r->in, r->digit_at, "a digit of axis %s has no lanes inside the digit before it", r->axes[d->axis].name);
}

/* ---- groups and their pieces ---- */

/* Where there are pieces, each summed digit is of a group, and those of one stand side by side. */
static bool check_group(einsum_reader *r, const einsum_statement *s, const einsum_digit *digits, uint32_t number)
{
    const einsum_digit *d = &digits[number];
    unsigned before = number > 0 ? digits[number - 1].group : 0;
    if (s->piece_count && !d->kept ? d->group > 0 && (d->group == before || d->group == before + 1) : !d->group)
        return true;
    return word_reader_fault(&r->in, r->digit_at, "a digit of axis %s is of group %u after group %u, %s", r->axes[d->axis].name, d->group,
                             before,
                             d->kept          ? "and is kept"
                             : s->piece_count ? "allowed are that one and the next"
                                              : "in a statement without pieces");
}

/* Digits of one axis that count on from each other, as one: it ends with the axis. */
typedef struct digit_run {
    const einsum_digit *outer;
    int64_t weight, stride, size;
} digit_run;

static bool run_goes_on(const digit_run *run, const einsum_digit *d)
{
    int64_t weight, stride;
    return run->outer && d->axis == run->outer->axis && !__builtin_mul_overflow(run->outer->weight, run->outer->size, &weight) &&
           d->weight == weight && !__builtin_mul_overflow(run->outer->stride, run->outer->size, &stride) && d->stride == stride;
}

static int64_t run_size(const einsum_reader *r, const digit_run *run, const einsum_digit *d)
{
    int64_t most = (r->axes[d->axis].size - 1) / run->weight + 1, size;
    return __builtin_mul_overflow(run->size, d->size, &size) || size > most ? most : size;
}

/* Positions of the group, of which no two combinations that exist are the same one: a digit begins where those inside it end. 0: a fault.
 */
static int64_t group_positions(einsum_reader *r, const einsum_statement *s, unsigned group)
{
    digit_run run = {.size = 1};
    int64_t positions = 1;
    for (uint32_t i = s->digit_count; i-- > 0;) {
        const einsum_digit *d = &s->digits[i];
        if (d->group != group || d->size == 1)
            continue;
        if (!run_goes_on(&run, d)) {
            if (d->stride < positions) {
                fault_here(r,
                           arena_printf(r->arena,
                                        "a digit of axis %s is %" PRId64 " positions of group %u apart, and those inside it take %" PRId64,
                                        r->axes[d->axis].name, d->stride, group, positions));
                return 0;
            }
            run = (digit_run){.weight = d->weight, .stride = d->stride, .size = 1};
        }
        run.size = run_size(r, &run, d);
        run.outer = d;
        if (__builtin_mul_overflow(run.size, run.stride, &positions) || positions >= COUNT_LIMIT) {
            fault_here(r, "a group has 2^62 positions or more");
            return 0;
        }
    }
    return positions;
}

/* The pieces of a group count all its positions, each once. */
static bool check_pieces_of(einsum_reader *r, const einsum_statement *s, unsigned group)
{
    int64_t positions = group_positions(r, s, group), next = 1;
    uint32_t mine = 0, used = 0;
    if (positions == 0)
        return false;
    for (uint32_t i = 0; i < s->piece_count; i++)
        mine += s->pieces[i].group == group;
    for (bool found = true; found;) {
        found = false;
        for (uint32_t i = 0; i < s->piece_count && !found; i++)
            if (s->pieces[i].group == group && s->pieces[i].weight == next) {
                next *= s->pieces[i].size;
                used++;
                found = true;
            }
    }
    if (used == mine && next >= positions)
        return true;
    return word_reader_fault(&r->in, r->in.at - 1,
                             "%u of the %u pieces of group %u count on from each other, to position %" PRId64 " of %" PRId64, used, mine,
                             group, next, positions);
}

static bool read_piece(einsum_reader *r, const einsum_statement *s, einsum_piece *p, const einsum_piece *before)
{
    enum { LANES = 256 };
    uint64_t word = word_reader_next(&r->in), groups = s->digit_count ? s->digits[s->digit_count - 1].group : 0;
    p->group = (unsigned char)word_bits(word, 0, 8);
    p->lane = (unsigned char)word_bits(word, 8, 8);
    if (word_bits(word, 16, 48))
        return fault_here(r, "reserved bits are not zero");
    if (p->group < 1 || p->group > groups)
        return word_reader_fault(&r->in, r->in.at - 1, "a piece of group %u of %" PRIu64, p->group, groups);
    uint64_t weight = word_reader_next(&r->in), size = word_reader_next(&r->in);
    if (weight < 1 || size < 2 || weight >= (uint64_t)COUNT_LIMIT || size > (uint64_t)COUNT_LIMIT / weight)
        return word_reader_fault(&r->in, r->in.at - 2, "weight %" PRIu64 " and size %" PRIu64 " of a piece of group %u", weight, size,
                                 p->group);
    p->weight = (int64_t)weight;
    p->size = (int64_t)size;
    int64_t room = before && before->lane ? before->lane : LANES;
    if (p->lane ? p->size <= room / p->lane : !before || !before->lane)
        return true;
    return word_reader_fault(&r->in, r->in.at - PIECE_WORDS, "a piece of group %u has no lanes inside the piece before it", p->group);
}

static bool read_pieces(einsum_reader *r, einsum_statement *s)
{
    if (!word_reader_has(&r->in, s->piece_count, PIECE_WORDS, "pieces"))
        return false;
    einsum_piece *pieces = ARENA_ARRAY(r->arena, einsum_piece, s->piece_count);
    int64_t places = 1;
    for (uint32_t i = 0; i < s->piece_count; i++) {
        if (!read_piece(r, s, &pieces[i], i > 0 ? &pieces[i - 1] : NULL))
            return false;
        if (__builtin_mul_overflow(places, pieces[i].size, &places) || places >= COUNT_LIMIT)
            return fault_here(r, "the pieces of a statement have 2^62 combinations or more");
    }
    s->pieces = pieces;
    for (unsigned group = 1; s->piece_count && group <= s->digits[s->digit_count - 1].group; group++)
        if (!check_pieces_of(r, s, group))
            return false;
    return true;
}

/* Digits of a term inside it, whose sum does not pass its end except at the axis's end, where nothing exists. */
static const char *term_fault(const einsum_reader *r, const einsum_statement *s, einsum_side side, const einsum_term *t, bool *used)
{
    int64_t last = 0, end = t->weight * t->extent;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (einsum_digit_outside(t, d) || !einsum_digit_indexes(d, side))
            continue;
        if (d->weight % t->weight || (d->size - 1) * d->weight >= end)
            return "a digit lies inside a window's term and outside it";
        last += (d->size - 1) * (d->weight / t->weight); /* digits do not overlap: below twice the axis's size */
        *used = true;
    }
    return last < t->extent || end >= r->axes[t->axis].size ? NULL : "digits add up to more than a window's term";
}

/* A window is indexed by its own digits or by those of its terms, in a destination only by its own. */
static bool check_windows(einsum_reader *r, const einsum_statement *s)
{
    for (unsigned i = 0; i < einsum_side_count(s); i++) {
        const einsum_tensor *t = &r->tensors[einsum_operand(s, (einsum_side)i)];
        for (uint32_t k = 0; k < t->rank; k++) {
            const einsum_window *x = r->window_of[t->axes[k]];
            bool used = false;
            for (uint32_t n = 0; x && n < x->term_count; n++) {
                const char *fault = term_fault(r, s, (einsum_side)i, &x->terms[n], &used);
                if (fault)
                    return fault_here(r, fault);
            }
            if (used && (i == 0 || einsum_walks_axis(s, (einsum_side)i, x->axis)))
                return word_reader_fault(&r->in, r->in.at - 1, "tensor %s is indexed by window %s and by its terms", t->name,
                                         r->axes[x->axis].name);
        }
    }
    return true;
}

/* Does the digit move the place in the tensor, by its own axis or by a window? */
static bool digit_moves(const einsum_reader *r, uint32_t tensor, const einsum_digit *d)
{
    const einsum_tensor *t = &r->tensors[tensor];
    bool moves = false;
    for (uint32_t i = 0; i < t->rank && d->size > 1; i++) {
        const einsum_window *x = r->window_of[t->axes[i]];
        moves = moves || t->axes[i] == d->axis;
        for (uint32_t k = 0; x && k < x->term_count; k++)
            moves = moves || !einsum_digit_outside(&x->terms[k], d);
    }
    return moves;
}

/* Only what would move a source can be broadcast over it: so that nothing can be expressed in two ways. A scatter's destination, too, where
 * the digit moves an index. */
static bool check_broadcast(einsum_reader *r, const einsum_statement *s, const einsum_digit *d)
{
    if (!einsum_digit_indexes(d, EINSUM_DST) && (s->op != MATH_SCATTER || !digit_moves(r, s->dst, d) || !moves_an_index(r, s, d)))
        return word_reader_fault(&r->in, r->digit_at, "a digit of axis %s does not move the destination, which it does not index",
                                 r->axes[d->axis].name);
    for (einsum_side side = EINSUM_A; side < EINSUM_SIDES; side++) {
        if (einsum_digit_indexes(d, side))
            continue;
        if (side >= einsum_side_count(s) || !digit_moves(r, einsum_operand(s, side), d))
            return word_reader_fault(&r->in, r->digit_at, "a digit of axis %s is broadcast over source %c, which it does not index",
                                     r->axes[d->axis].name, 'a' + (int)(side - EINSUM_A));
    }
    return true;
}

static bool read_digits(einsum_reader *r, einsum_statement *s)
{
    if (!word_reader_has(&r->in, s->digit_count, DIGIT_WORDS, "digits"))
        return false;
    einsum_digit *digits = ARENA_ARRAY(r->arena, einsum_digit, s->digit_count);
    int64_t points = 1;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        if (!read_digit(r, &digits[i]) || !check_digit(r, s, digits, i) || !check_broadcast(r, s, &digits[i]) ||
            !check_lane(r, s, digits, i) || !check_group(r, s, digits, i))
            return false;
        if (__builtin_mul_overflow(points, digits[i].size, &points) || points >= COUNT_LIMIT)
            return fault_here(r, "the digits of a statement have 2^62 combinations or more");
    }
    s->digits = digits;
    return true;
}

/* A source holds something: an input port, or a tensor that a statement before this one assigned. */
static bool check_source(einsum_reader *r, uint32_t number, size_t at)
{
    if (r->tensors[number].port < 0 && !r->assigned[number])
        return word_reader_fault(&r->in, at, "tensor %s is read before it is assigned", r->tensors[number].name);
    r->used[number] = true;
    return true;
}

static bool check_destination(einsum_reader *r, const einsum_statement *s, size_t at)
{
    if (s->dst >= r->tensor_count)
        return word_reader_fault(&r->in, at, "tensor number %u of %u tensors", s->dst, r->tensor_count);
    bool read = r->used[s->dst] && !r->assigned[s->dst];
    for (uint32_t i = 0; i < s->source_count; i++)
        read = read || s->sources[i] == s->dst;
    if (read)
        return word_reader_fault(&r->in, at, "tensor %s is assigned after it was read", r->tensors[s->dst].name);
    r->assigned[s->dst] = true;
    return true;
}

static bool read_shifts(einsum_reader *r, einsum_statement *s)
{
    if (!word_reader_has(&r->in, s->shift_count, SHIFT_WORDS, "shifts"))
        return false;
    einsum_shift *shifts = ARENA_ARRAY(r->arena, einsum_shift, s->shift_count);
    for (uint32_t i = 0; i < s->shift_count; i++) {
        uint64_t word = word_reader_next(&r->in);
        uint32_t axis = (uint32_t)word_bits(word, 0, 32), side = (uint32_t)word_bits(word, 32, 32);
        if (side >= einsum_side_count(s))
            return word_reader_fault(&r->in, r->in.at - 1, "a shift of operand %u", side);
        if (axis >= r->axis_count)
            return word_reader_fault(&r->in, r->in.at - 1, "axis number %u of %u axes", axis, r->axis_count);
        uint32_t number = einsum_operand(s, (einsum_side)side);
        if (!einsum_tensor_has(&r->tensors[number], axis))
            return word_reader_fault(&r->in, r->in.at - 1, "tensor %s has no axis %s to shift", r->tensors[number].name,
                                     r->axes[axis].name);
        for (uint32_t k = 0; k < i; k++)
            if (shifts[k].axis == axis && shifts[k].side == side)
                return word_reader_fault(&r->in, r->in.at - 1, "axis %s of tensor %s is shifted twice", r->axes[axis].name,
                                         r->tensors[number].name);
        uint64_t offset = word_reader_next(&r->in);
        if (offset < 1 || offset >= (uint64_t)r->axes[axis].size)
            return word_reader_fault(&r->in, r->in.at - 1, "shift %" PRIu64 " along axis %s, allowed are 1 to %" PRId64, offset,
                                     r->axes[axis].name, r->axes[axis].size - 1);
        shifts[i] = (einsum_shift){(einsum_side)side, axis, (int64_t)offset};
    }
    s->shifts = shifts;
    return true;
}

/* ---- what a statement has besides its digits ---- */

static bool read_sources(einsum_reader *r, einsum_statement *s)
{
    if (!word_reader_has(&r->in, s->source_count, 1, "sources"))
        return false;
    for (uint32_t i = 0; i < s->source_count; i++) {
        uint64_t number = word_reader_next(&r->in);
        if (number >= r->tensor_count)
            return word_reader_fault(&r->in, r->in.at - 1, "tensor number %" PRIu64 " of %u tensors", number, r->tensor_count);
        s->sources[i] = (uint32_t)number;
        if (!check_source(r, s->sources[i], r->in.at - 1))
            return false;
    }
    return true;
}

/* Every source is named, and one number comes out. */
static bool read_expression(einsum_reader *r, einsum_statement *s)
{
    size_t at = r->in.at;
    if (!math_row_of(s->op)->has_expression)
        return true;
    if (!word_reader_has(&r->in, s->step_count, 1, "steps"))
        return false;
    scalar_step *steps = ARENA_ARRAY(r->arena, scalar_step, s->step_count);
    scalar_stack stack = {.depth = 0};
    dtype types[EINSUM_SOURCES];
    unsigned named = 0;
    for (uint32_t i = 0; i < s->source_count; i++)
        types[i] = r->tensors[s->sources[i]].dtype;
    for (uint32_t i = 0; i < s->step_count; i++) {
        uint64_t word = word_reader_next(&r->in);
        steps[i] = (scalar_step){(scalar_op)word_bits(word, 0, 16), (uint32_t)word_bits(word, 32, 32)};
        if (word_bits(word, 16, 16))
            return fault_here(r, "reserved bits are not zero");
        const char *fault = scalar_take(&stack, &steps[i], types, s->source_count);
        if (fault)
            return fault_here(r, fault);
        named |= steps[i].op == SCALAR_SOURCE ? 1u << steps[i].argument : 0u;
    }
    s->steps = steps;
    if (stack.depth != 1 || stack.types[0] == SCALAR_BOOL)
        return word_reader_fault(&r->in, at, "an expression leaves %u values, the last a %s; allowed is one i32 or f32", stack.depth,
                                 scalar_type_name(stack.depth ? stack.types[stack.depth - 1] : SCALAR_NONE));
    if (named != (1u << s->source_count) - 1)
        return word_reader_fault(&r->in, at, "an expression does not name all %u sources", s->source_count);
    if (stack.types[0] != scalar_type_of(s->accumulator) || (s->accumulator != DTYPE_I32 && s->accumulator != DTYPE_F32))
        return word_reader_fault(&r->in, at, "an expression gives %s and the statement says %s", scalar_type_name(stack.types[0]),
                                 dtype_row_of(s->accumulator)->name);
    return true;
}

static bool check_fold(einsum_reader *r, const einsum_statement *s, size_t at)
{
    const scalar_row *row = scalar_row_of(s->fold);
    if (s->op != MATH_REDUCE)
        return s->fold ? word_reader_fault(&r->in, at, "a %s has an operation to fold", math_row_of(s->op)->name) : true;
    if (!row || !(row->flags & SCALAR_FOLDS) || row->result != scalar_type_of(s->accumulator))
        return word_reader_fault(&r->in, at, "operation 0x%x does not fold %s", (unsigned)s->fold, dtype_row_of(s->accumulator)->name);
    return true;
}

/* Index tensors are integers, one at most for an axis. */
static bool read_indices(einsum_reader *r, einsum_statement *s)
{
    uint32_t count = einsum_index_count(s);
    if (!word_reader_has(&r->in, count, INDEX_WORDS, "indices"))
        return false;
    einsum_index *indices = ARENA_ARRAY(r->arena, einsum_index, count);
    for (uint32_t i = 0; i < count; i++) {
        const einsum_tensor *index = &r->tensors[s->sources[i + 1]], *indexed = &r->tensors[einsum_operand(s, einsum_indexed_side(s))];
        uint64_t axis = word_reader_next(&r->in), unit = word_reader_next(&r->in), parts[4];
        for (int k = 0; k < 4; k++)
            parts[k] = word_reader_next(&r->in);
        if (dtype_row_of(index->dtype)->kind != DTYPE_KIND_INT)
            return word_reader_fault(&r->in, r->in.at - INDEX_WORDS, "index tensor %s is of %s, allowed are integers", index->name,
                                     dtype_row_of(index->dtype)->name);
        if (axis >= r->axis_count || !einsum_tensor_has(indexed, (uint32_t)axis) || r->window_of[axis])
            return word_reader_fault(&r->in, r->in.at - INDEX_WORDS, "tensor %s has no axis number %" PRIu64 " to index, or it is a window",
                                     indexed->name, axis);
        for (uint32_t k = 0; k < i; k++)
            if (indices[k].axis == axis)
                return word_reader_fault(&r->in, r->in.at - INDEX_WORDS, "axis %s of tensor %s has two index tensors", r->axes[axis].name,
                                         indexed->name);
        if (unit < 1 || unit > (uint64_t)r->axes[axis].size)
            return word_reader_fault(&r->in, r->in.at - 5, "an index counts %" PRIu64 " along axis %s, allowed are 1 to %" PRId64, unit,
                                     r->axes[axis].name, r->axes[axis].size);
        if (parts[0] < 1 || parts[1] < 1 || parts[0] >> 48 || parts[1] >> 48 || parts[2] > (uint64_t)r->axes[axis].size)
            return word_reader_fault(&r->in, r->in.at - 3,
                                     "an index of axis %s has step %" PRIu64 ", div %" PRIu64 " and mod %" PRIu64
                                     ", allowed are 1 to 2^48 - 1 twice and 0 to %" PRId64,
                                     r->axes[axis].name, parts[0], parts[1], parts[2], r->axes[axis].size);
        if (parts[3] >> 48)
            return word_reader_fault(&r->in, r->in.at - 1, "an index of axis %s has %" PRIu64 " positions, allowed are 0 to 2^48 - 1",
                                     r->axes[axis].name, parts[3]);
        indices[i] =
            (einsum_index){(uint32_t)axis, (int64_t)unit, (int64_t)parts[0], (int64_t)parts[1], (int64_t)parts[2], (int64_t)parts[3]};
    }
    s->indices = indices;
    return true;
}

/* A count is one element of i32, of spans that make up the first index. */
static bool read_count(einsum_reader *r, einsum_statement *s)
{
    if (!s->counted)
        return true;
    const einsum_tensor *count = &r->tensors[einsum_operand(s, einsum_count_side(s))], *list = &r->tensors[s->sources[1]];
    uint64_t span = word_reader_next(&r->in);
    int64_t elements = 1; /* below 2^62: checked where the tensor was read */
    for (uint32_t i = 0; i < list->rank; i++)
        elements *= r->axes[list->axes[i]].size;
    if (count->rank > 0 || count->dtype != DTYPE_I32)
        return word_reader_fault(&r->in, r->in.at - 1, "the count %s is no single i32", count->name);
    if (span < 1 || span > (uint64_t)elements || elements % (int64_t)span)
        return word_reader_fault(&r->in, r->in.at - 1, "a count of %" PRIu64 " elements each of the %" PRId64 " of %s", span, elements,
                                 list->name);
    s->count_span = (int64_t)span;
    return true;
}

static bool read_fill(einsum_reader *r, einsum_statement *s)
{
    if (s->op != MATH_FILL)
        return true;
    uint64_t word = word_reader_next(&r->in);
    if (word >> dtype_row_of(r->tensors[s->dst].dtype)->bits)
        return word_reader_fault(&r->in, r->in.at - 1, "an element of %s does not have the bits 0x%" PRIx64,
                                 dtype_row_of(r->tensors[s->dst].dtype)->name, word);
    s->bits = (uint32_t)word;
    return true;
}

/* ---- statements ---- */

static bool check_operation(einsum_reader *r, const einsum_statement *s, size_t at)
{
    const math_row *row = math_row_of(s->op);
    if (!row)
        return word_reader_fault(&r->in, at, "operation code %u is not known", (unsigned)s->op);
    if ((unsigned)s->accumulator >= DTYPE_COUNT)
        return word_reader_fault(&r->in, at, "accumulator dtype code %u, allowed are 0 to %d", (unsigned)s->accumulator, DTYPE_COUNT - 1);
    if (s->op == MATH_CONTRACT && s->accumulator != DTYPE_I32 && s->accumulator != DTYPE_F32)
        return word_reader_fault(&r->in, at, "a contraction accumulates in %s, allowed are i32 and f32",
                                 dtype_row_of(s->accumulator)->name);
    if (s->source_count < row->fewest_sources || s->source_count > row->most_sources)
        return word_reader_fault(&r->in, at, "a %s has %u sources, allowed are %u to %u", row->name, s->source_count, row->fewest_sources,
                                 row->most_sources);
    if (s->counted && (s->op != MATH_GATHER || s->source_count < 3))
        return word_reader_fault(&r->in, at, "a %s of %u sources has a count", row->name, s->source_count);
    if (s->digit_count > EINSUM_STATEMENT_DIGITS)
        return word_reader_fault(&r->in, at, "%u digits, allowed are at most %d", s->digit_count, EINSUM_STATEMENT_DIGITS);
    if (s->piece_count && !row->sums)
        return word_reader_fault(&r->in, at, "a %s has pieces of a sum", row->name);
    if (row->has_expression ? s->step_count < 1 || s->step_count > SCALAR_MAX_STEPS : s->step_count > 0)
        return word_reader_fault(&r->in, at, "an expression of %u steps in a %s", s->step_count, row->name);
    return true;
}

/* Elements are moved as they are, or filled in: the accumulator is their own type. */
static bool check_moved(einsum_reader *r, const einsum_statement *s, size_t at)
{
    bool moves = s->op == MATH_FILL || math_row_of(s->op)->indexed != MATH_INDEXED_NONE;
    uint32_t made = s->op == MATH_FILL ? s->dst : s->sources[0];
    if (moves && s->accumulator != r->tensors[made].dtype)
        return word_reader_fault(&r->in, at, "a %s of %s has the accumulator %s", math_row_of(s->op)->name,
                                 dtype_row_of(r->tensors[made].dtype)->name, dtype_row_of(s->accumulator)->name);
    bool floats = scalar_type_of(r->tensors[s->dst].dtype) == SCALAR_F32;
    if (s->op != MATH_COPY && s->op != MATH_CONTRACT && (scalar_type_of(s->accumulator) == SCALAR_F32) != floats)
        return word_reader_fault(&r->in, at, "a %s gives %s, which tensor %s of %s does not take", math_row_of(s->op)->name,
                                 dtype_row_of(s->accumulator)->name, r->tensors[s->dst].name, dtype_row_of(r->tensors[s->dst].dtype)->name);
    return true;
}

static bool read_statement(einsum_reader *r, einsum_statement *s)
{
    uint64_t word = word_reader_next(&r->in), second = word_reader_next(&r->in);
    size_t at = r->in.at - STATEMENT_WORDS;
    if (r->in.failed)
        return false;
    s->op = (math_op)word_bits(word, 0, 8);
    s->accumulator = (dtype)word_bits(word, 8, 8);
    s->source_count = (uint32_t)word_bits(word, 16, 8);
    s->shift_count = (uint32_t)word_bits(word, 24, 8);
    s->digit_count = (uint32_t)word_bits(word, 32, 16);
    s->piece_count = (uint32_t)word_bits(word, 48, 8);
    s->dst = (uint32_t)word_bits(second, 0, 32);
    s->step_count = (uint32_t)word_bits(second, 32, 16);
    s->fold = (scalar_op)word_bits(second, 48, 16);
    s->counted = word_bits(word, 56, 1);
    if (word_bits(word, 57, 7))
        return word_reader_fault(&r->in, at, "reserved bits are not zero");
    return check_operation(r, s, at) && read_sources(r, s) && check_destination(r, s, at + 1) && check_moved(r, s, at) &&
           check_fold(r, s, at + 1) && read_digits(r, s) && check_windows(r, s) && read_pieces(r, s) && read_shifts(r, s) &&
           read_expression(r, s) && read_indices(r, s) && read_count(r, s) && read_fill(r, s);
}

static bool read_head(einsum_reader *r, einsum *out)
{
    uint64_t counts = word_reader_next(&r->in), strings = word_reader_next(&r->in);
    word_reader_take_strings(&r->in, word_bits(strings, 32, 32), r->arena);
    out->text = word_reader_text(&r->in, word_bits(strings, 0, 32));
    out->tensor_count = r->tensor_count = (uint32_t)word_bits(counts, 0, 16);
    out->window_count = r->window_count = (uint32_t)word_bits(counts, 16, 16);
    out->statement_count = (uint32_t)word_bits(counts, 32, 32);
    if (!r->in.failed && out->tensor_count == 0)
        return word_reader_fault(&r->in, 0, "an einsum without tensors");
    return word_reader_has(&r->in, out->window_count, 1 + TERM_WORDS, "windows") &&
           word_reader_has(&r->in, out->tensor_count, TENSOR_WORDS, "tensors") &&
           word_reader_has(&r->in, out->statement_count, STATEMENT_WORDS, "statements");
}

bool einsum_decode(const uint64_t *words, size_t word_count, const layout_axis *axes, uint32_t axis_count, uint32_t port_count,
                   const char *section, arena *a, diag_list *diags, einsum *out)
{
    einsum_reader r = {.arena = a, .axes = axes, .axis_count = axis_count, .port_count = port_count};
    *out = (einsum){.axes = axes, .axis_count = axis_count};
    word_reader_init(&r.in, words, word_count, section, diags);
    if (!read_head(&r, out))
        return false;
    r.tensors = ARENA_ARRAY(a, einsum_tensor, out->tensor_count);
    r.assigned = ARENA_ARRAY(a, bool, out->tensor_count);
    r.used = ARENA_ARRAY(a, bool, out->tensor_count);
    r.axis_mark = ARENA_ARRAY(a, uint32_t, axis_count);
    r.port_taken = ARENA_ARRAY(a, bool, port_count);
    if (!read_windows(&r))
        return false;
    for (uint32_t i = 0; i < out->tensor_count; i++)
        if (!read_tensor(&r, i))
            return false;
    einsum_statement *statements = ARENA_ARRAY(a, einsum_statement, out->statement_count);
    for (uint32_t i = 0; i < out->statement_count; i++)
        if (!read_statement(&r, &statements[i]))
            return false;
    out->windows = r.windows;
    out->tensors = r.tensors;
    out->statements = statements;
    return word_reader_end(&r.in);
}
