#include "libvisa/variants/program_space.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "support/strbuf.h"

/* ---- words of a text ---- */

typedef struct words {
    const char *at, *end;
} words;

typedef struct word {
    const char *text; /* a name, a number, or one other character */
    size_t bytes;     /* 0: the text has ended */
} word;

static bool begins_comment(const words *w, char second)
{
    return w->end - w->at > 1 && w->at[0] == '/' && w->at[1] == second;
}

static void skip_comment(words *w)
{
    int inside = 0;
    if (begins_comment(w, '/')) {
        while (w->at < w->end && *w->at != '\n')
            w->at++;
        return;
    }
    do {
        if (begins_comment(w, '*')) {
            inside++;
            w->at += 2;
        } else if (w->end - w->at > 1 && w->at[0] == '*' && w->at[1] == '/') {
            inside--;
            w->at += 2;
        } else {
            w->at++;
        }
    } while (inside > 0 && w->at < w->end);
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static word next(words *w)
{
    while (w->at < w->end && (isspace((unsigned char)*w->at) || begins_comment(w, '/') || begins_comment(w, '*')))
        if (*w->at == '/')
            skip_comment(w);
        else
            w->at++;
    word found = {w->at, 0};
    while (w->at < w->end && in_name(*w->at))
        w->at++;
    if (w->at == found.text && w->at < w->end)
        w->at++;
    found.bytes = (size_t)(w->at - found.text);
    return found;
}

static bool is(word w, const char *text)
{
    return strlen(text) == w.bytes && strncmp(w.text, text, w.bytes) == 0;
}

static words words_of(const char *text, size_t bytes)
{
    return (words){text, text + bytes};
}

bool program_is_in(const char *text, size_t bytes)
{
    words w = words_of(text, bytes);
    bool streams = false;
    for (word one = next(&w); one.bytes > 0; one = next(&w)) {
        if (!is(one, "#") || !is(next(&w), "["))
            continue;
        one = next(&w);
        if (is(one, "einsum"))
            return false;
        streams = streams || is(one, "stream");
    }
    return streams;
}

/* ---- constants ---- */

/* Of a number with an optional type after it; false: it is none. */
static bool read_number(word w, int64_t *value)
{
    char digits[24];
    size_t count = 0;
    for (size_t i = 0; i < w.bytes && (isdigit((unsigned char)w.text[i]) || w.text[i] == '_'); i++)
        if (w.text[i] != '_' && count < 18)
            digits[count++] = w.text[i];
        else if (w.text[i] != '_')
            return false;
    digits[count] = '\0';
    *value = strtoll(digits, NULL, 10);
    return count > 0 && (w.bytes < 2 || !isalpha((unsigned char)w.text[1])); /* 0x.. */
}

/* `const NAME: TYPE = NUMBER;` after its first word. */
static bool read_constant(words *w, arena *a, program_constant *out)
{
    word name = next(w);
    if (name.bytes == 0 || !is(next(w), ":") || next(w).bytes == 0 || !is(next(w), "=") || !read_number(next(w), &out->value) ||
        !is(next(w), ";"))
        return false;
    *out = (program_constant){arena_strndup(a, name.text, name.bytes), out->value, true};
    return true;
}

/* Marks those that stand anywhere but between `if` and `{`. */
static void find_uses(const variant_source *s, program_constant *all, size_t count)
{
    words w = words_of(s->text, s->size);
    word before = {0};
    bool condition = false;
    for (word one = next(&w); one.bytes > 0; before = one, one = next(&w)) {
        condition = is(one, "if") || (condition && !is(one, "{"));
        for (size_t i = 0; i < count && !condition; i++)
            if (is(one, all[i].name) && !is(before, "const"))
                all[i].chooses = false;
    }
}

size_t program_constants(const variant_source *s, arena *a, program_constant **out)
{
    program_constant *all = NULL, one;
    size_t count = 0, capacity = 0;
    words w = words_of(s->text, s->size);
    for (word at = next(&w); at.bytes > 0; at = next(&w)) {
        words after = w;
        if (is(at, "const") && read_constant(&after, a, &one))
            ARENA_PUSH(a, all, count, capacity, one);
    }
    find_uses(s, all, count);
    *out = all;
    return count;
}

enum { MOST_CANDIDATE = 1 << 20 };

static bool divides_another(const program_constant *all, size_t count, size_t which, int64_t value)
{
    for (size_t i = 0; i < count; i++)
        if (i != which && all[i].value >= value && all[i].value % value == 0)
            return true;
    return false;
}

size_t program_candidates(const program_constant *all, size_t count, size_t which, arena *a, int64_t **values)
{
    int64_t largest = all[which].value, *list = NULL;
    size_t found = 0, capacity = 0;
    for (size_t i = 0; i < count; i++)
        largest = all[i].value > largest ? all[i].value : largest;
    largest = largest < MOST_CANDIDATE ? largest : MOST_CANDIDATE;
    ARENA_PUSH(a, list, found, capacity, INT64_C(0));
    for (int64_t v = 1; v <= largest; v++)
        if ((v & (v - 1)) == 0 || v == all[which].value || divides_another(all, count, which, v))
            ARENA_PUSH(a, list, found, capacity, v);
    *values = list;
    return found;
}

/* ---- what stands around a program ---- */

static void put_type(strbuf *s, const step_program *p, uint32_t type)
{
    const step_type *t = &p->types[type]; /* tables differ between programs: parts one by one */
    strbuf_printf(s, " %d.%d.%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64, (int)t->kind, (int)t->dtype, t->rows, t->columns, t->width,
                  t->hot);
}

enum { MOST_RATES = 64 }; /* that are told apart */

/* FLOPs per cycle of operators: which there are, not how many operators have each. */
static void put_rates(strbuf *s, const step_program *p)
{
    int64_t rates[MOST_RATES];
    size_t count = 0;
    for (uint32_t i = 0; i < p->node_count && count < MOST_RATES; i++) {
        bool seen = p->nodes[i].flops_per_cycle == 0;
        for (size_t k = 0; k < count && !seen; k++)
            seen = rates[k] == p->nodes[i].flops_per_cycle;
        if (seen)
            continue;
        rates[count++] = p->nodes[i].flops_per_cycle;
        strbuf_printf(s, " %" PRId64, p->nodes[i].flops_per_cycle);
    }
    strbuf_puts(s, "\n");
}

static void put_edge(strbuf *s, const step_program *p, const step_node *n)
{
    if (n->op == STEP_SOURCE) {
        strbuf_printf(s, "in %s", n->name);
        put_type(s, p, n->outputs[0].type);
        strbuf_printf(s, " %s\n", n->outputs[0].shape);
    }
    if (n->op == STEP_SINK) {
        const step_input *from = &n->inputs[0];
        strbuf_printf(s, "out %s", n->name);
        put_type(s, p, p->nodes[from->node].outputs[from->port].type);
        strbuf_puts(s, "\n");
    }
}

const char *program_surroundings(const step_program *p, arena *a)
{
    const step_machine *m = &p->machine;
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                  m->onchip_bytes_per_cycle, m->memory_channels, m->requests_per_cycle, m->request_bytes, m->memory_latency_cycles,
                  m->memory_interval_cycles, m->memory_startup_cycles, m->compute_tile, m->onchip_bytes);
    put_rates(&s, p);
    for (uint32_t i = 0; i < p->tensor_count; i++) {
        const step_tensor *t = &p->tensors[i];
        strbuf_printf(&s, "%s %d %" PRId64 " %d\n", t->name, (int)t->dtype, step_tensor_tiles(t) * t->rows * t->columns, t->written);
    }
    for (uint32_t i = 0; i < p->node_count; i++)
        put_edge(&s, p, &p->nodes[i]);
    return s.text;
}
