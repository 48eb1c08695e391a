#include "codegen/layout.h"

#include "support/strbuf.h"
#include <inttypes.h>

#define SIZE_LIMIT (INT64_C(1) << 62)

static layout_op op_of(uint64_t word)
{
    return (layout_op)(word & 0xff);
}

static int64_t operand_of(uint64_t word)
{
    return (int64_t)(word >> 8);
}

/* SIZE of the expression that `word` ends, from the sizes of its operands (section "Constructors"). */
static int64_t size_of_word(uint64_t word, const layout_axis *axes, int64_t outer, int64_t inner)
{
    int64_t n = operand_of(word);
    switch (op_of(word)) {
    case LAYOUT_AXIS: return axes[n].size;
    case LAYOUT_STRIDE: return inner / n;
    case LAYOUT_PAIR: return outer * inner;
    case LAYOUT_BROADCAST:
    case LAYOUT_MODULO:
    case LAYOUT_RESIZE:
    case LAYOUT_PAD: break;
    }
    return n;
}

static unsigned operands_of(layout_op op)
{
    if (op == LAYOUT_PAIR)
        return 2;
    return op == LAYOUT_AXIS || op == LAYOUT_BROADCAST ? 0 : 1;
}

/* The static conditions of a unary operator on an expression of `size` positions; NULL when they hold. */
static const char *unary_fault(layout_op op, int64_t n, int64_t size, arena *a)
{
    if (n == 0)
        return "an operand is zero";
    if (op == LAYOUT_STRIDE && size % n)
        return arena_printf(a, "stride %" PRId64 " does not divide size %" PRId64, n, size);
    if (op == LAYOUT_MODULO && size % n)
        return arena_printf(a, "modulo %" PRId64 " does not divide size %" PRId64, n, size);
    if (op == LAYOUT_RESIZE && n > size)
        return arena_printf(a, "resize to %" PRId64 " is above size %" PRId64, n, size);
    if (op == LAYOUT_PAD && n < size)
        return arena_printf(a, "padding to %" PRId64 " is below size %" PRId64, n, size);
    return NULL;
}

static const char *leaf_fault(layout_op op, int64_t n, const layout_axis *axes, size_t axis_count, arena *a)
{
    if (op == LAYOUT_AXIS && (uint64_t)n >= axis_count)
        return arena_printf(a, "axis number %" PRId64 " of %zu axes", n, axis_count);
    if (op == LAYOUT_AXIS && (axes[n].size < 1 || axes[n].size >= SIZE_LIMIT))
        return arena_printf(a, "axis number %" PRId64 " has size %" PRId64, n, axes[n].size);
    if (op == LAYOUT_BROADCAST && n == 0)
        return "a broadcast of zero positions";
    return NULL;
}

static const char *pair_fault(int64_t n, int64_t outer, int64_t inner)
{
    int64_t size;
    if (n != 0)
        return "a pair with an operand";
    if (__builtin_mul_overflow(outer, inner, &size) || size >= SIZE_LIMIT)
        return "a pair with 2^62 positions or more";
    return NULL;
}

static const char *word_fault(uint64_t word, const int64_t *sizes, size_t depth, const layout_axis *axes, size_t axis_count, arena *a)
{
    layout_op op = op_of(word);
    int64_t n = operand_of(word);
    if (op < LAYOUT_AXIS || op > LAYOUT_PAIR)
        return arena_printf(a, "operator code %u is not known", (unsigned)op);
    if (depth < operands_of(op))
        return arena_printf(a, "operator code %u lacks an operand on the stack", (unsigned)op);
    if (op == LAYOUT_PAIR)
        return pair_fault(n, sizes[depth - 2], sizes[depth - 1]);
    if (operands_of(op) == 1)
        return unary_fault(op, n, sizes[depth - 1], a);
    if (depth == LAYOUT_MAX_DEPTH)
        return "more operands on the stack than LAYOUT_MAX_DEPTH";
    return leaf_fault(op, n, axes, axis_count, a);
}

/* Replaces the operands of `word` on the stack of sizes by its result; returns the new depth. */
static size_t push_size(uint64_t word, int64_t *sizes, size_t depth, const layout_axis *axes)
{
    unsigned operands = operands_of(op_of(word));
    int64_t inner = operands > 0 ? sizes[depth - 1] : 0, outer = operands > 1 ? sizes[depth - 2] : 0;
    depth -= operands;
    sizes[depth] = size_of_word(word, axes, outer, inner);
    return depth + 1;
}

bool layout_check(layout l, const layout_axis *axes, size_t axis_count, const char *section, size_t offset_bytes, diag_list *diags)
{
    int64_t sizes[LAYOUT_MAX_DEPTH];
    size_t depth = 0;
    const char *text = NULL;
    if (l.count == 0 || l.count > LAYOUT_MAX_WORDS)
        text = arena_printf(diags->arena, "%zu words, allowed are 1 to %d", l.count, LAYOUT_MAX_WORDS);
    size_t i = 0;
    for (; !text && i < l.count; i++) {
        text = word_fault(l.words[i], sizes, depth, axes, axis_count, diags->arena);
        if (text)
            break;
        depth = push_size(l.words[i], sizes, depth, axes);
    }
    if (!text && depth != 1)
        text = arena_printf(diags->arena, "%zu expressions are left on the stack, one is the result", depth);
    if (text)
        diag_add(diags, E_BIN_FORMAT, SRC_NOWHERE, "section %s offset 0x%zx: mapping, word %zu: %s", section, offset_bytes, i, text);
    return text == NULL;
}

int64_t layout_size(layout l, const layout_axis *axes)
{
    int64_t sizes[LAYOUT_MAX_DEPTH];
    size_t depth = 0;
    for (size_t i = 0; i < l.count; i++)
        depth = push_size(l.words[i], sizes, depth, axes);
    return sizes[0];
}

/* SIZE of every pair's inner operand, by the number of the pair, in order of the words. */
static size_t inner_sizes(layout l, const layout_axis *axes, int64_t *inner)
{
    int64_t sizes[LAYOUT_MAX_DEPTH];
    size_t depth = 0, pairs = 0;
    for (size_t i = 0; i < l.count; i++) {
        if (op_of(l.words[i]) == LAYOUT_PAIR)
            inner[pairs++] = sizes[depth - 1];
        depth = push_size(l.words[i], sizes, depth, axes);
    }
    return pairs;
}

static bool map_axis(const layout_axis *axis, int64_t i, int64_t *coord)
{
    if (i >= axis->size || *coord >= axis->size - i)
        return false;
    *coord += i;
    return true;
}

/* The program is walked from its end: there every operator stands before its operands, the inner one of a
 * pair first. `pending` holds the position at which each expression that is still to come is asked. */
bool layout_map(layout l, const layout_axis *axes, int64_t i, int64_t *coords)
{
    int64_t inner[LAYOUT_MAX_WORDS / 2], pending[LAYOUT_MAX_DEPTH];
    size_t pairs = inner_sizes(l, axes, inner), depth = 1;
    if (i < 0)
        return false;
    pending[0] = i;
    for (size_t w = l.count; w-- > 0;) {
        int64_t n = operand_of(l.words[w]), at = pending[--depth];
        switch (op_of(l.words[w])) {
        case LAYOUT_AXIS:
            if (!map_axis(&axes[n], at, &coords[n]))
                return false;
            break;
        case LAYOUT_BROADCAST:
            if (at >= n)
                return false;
            break;
        case LAYOUT_STRIDE: /* map(E, i * n); a product past 2^63 is past SIZE(E) too */
            if (__builtin_mul_overflow(at, n, &pending[depth++]))
                return false;
            break;
        case LAYOUT_MODULO:
        case LAYOUT_RESIZE:
        case LAYOUT_PAD: /* positions SIZE(E) .. n-1 are dead because E has no such position */
            if (at >= n)
                return false;
            pending[depth++] = at;
            break;
        case LAYOUT_PAIR:
            pending[depth++] = at / inner[--pairs];
            pending[depth++] = at % inner[pairs];
            break;
        }
    }
    return true;
}

/* Where brackets and commas stand in the text: before word `i`, a comma when an inner operand of a pair
 * starts there, and a bracket for every unary operator whose operand is a pair that starts there. */
typedef struct text_marks {
    bool comma[LAYOUT_MAX_WORDS];
    uint16_t brackets[LAYOUT_MAX_WORDS];
} text_marks;

static void mark_text(layout l, text_marks *marks)
{
    size_t starts[LAYOUT_MAX_DEPTH], depth = 0;
    for (size_t i = 0; i < l.count; i++) {
        unsigned operands = operands_of(op_of(l.words[i]));
        if (operands == 0)
            starts[depth++] = i;
        else if (operands == 2)
            marks->comma[starts[--depth]] = true;
        else if (op_of(l.words[i - 1]) == LAYOUT_PAIR)
            marks->brackets[starts[depth - 1]]++;
    }
}

static void put_word(layout l, size_t i, const layout_axis *axes, strbuf *s)
{
    static const char signs[] = {[LAYOUT_STRIDE] = '/', [LAYOUT_MODULO] = '%', [LAYOUT_RESIZE] = '=', [LAYOUT_PAD] = '#'};
    layout_op op = op_of(l.words[i]);
    int64_t n = operand_of(l.words[i]);
    if (op == LAYOUT_AXIS)
        strbuf_puts(s, axes[n].name);
    else if (op == LAYOUT_BROADCAST)
        strbuf_printf(s, "%" PRId64, n);
    else if (op != LAYOUT_PAIR)
        strbuf_printf(s, "%s %c %" PRId64, op_of(l.words[i - 1]) == LAYOUT_PAIR ? "]" : "", signs[op], n);
}

const char *layout_text(layout l, const layout_axis *axes, arena *a)
{
    text_marks marks = {0};
    strbuf s;
    strbuf_init(&s, a);
    mark_text(l, &marks);
    for (size_t i = 0; i < l.count; i++) {
        if (marks.comma[i])
            strbuf_puts(&s, ", ");
        for (unsigned b = 0; b < marks.brackets[i]; b++)
            strbuf_puts(&s, "[");
        put_word(l, i, axes, &s);
    }
    return s.text;
}
