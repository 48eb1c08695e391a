/* include/visa.h: pairs of mappings.
 *
 * The one idea: whoever derives pairs by the thousand writes the same mappings again and again (one buffer and many streams), and to read
 * a text costs more than to derive. What was read stays: first parser, scope and axes, then mappings that were read, then what the last
 * call made; each call goes back to the second mark, and to the first when what was read has become much. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/parse.h"
#include "frontend/scope.h"
#include "include/visa.h"
#include "passes/pass.h"
#include "passes/remedy.h"
#include "support/budget.h"

_Static_assert((int)VISA_MAX_ENTRIES == (int)SEQUENCER_MAX_ENTRIES, "a caller's table holds a sequencer's");

enum { READINGS = 512, KEPT_BYTES = 1 << 20 };

/* A text that was read. */
typedef struct reading {
    uint64_t hash;
    const char *text; /* NULL: none */
    size_t bytes;
    const mapping *mapping;
} reading;

struct visa_deriver {
    arena *arena;
    arena_mark empty;           /* without axes */
    mapping_mark ready;         /* after the axes */
    mapping_mark kept;          /* after the mappings that were read */
    reading readings[READINGS]; /* by hash; of two texts in one place the later stays */
    const target *target;
    mapping_parser *parser;
    scope_context context;
    scope *scope;
    diag_list diags;
    const char *error;
    uint64_t max_steps; /* of a call */
    bool exhausted;     /* memory ran out while an axis was declared: what is known of axes is void */
};

/* Why the call was unwound: static, since there may be no memory. */
static const char *unwound_text(const visa_deriver *d)
{
    switch (arena_budget(d->arena)->end) {
    case BUDGET_STEPS: return "E-BUDGET: this takes more steps of work than a call may\nhelp: visa_deriver_limit sets another limit";
    case BUDGET_BYTES: return "E-BUDGET: this takes more bytes of memory than a compilation may";
    case BUDGET_NESTING: return "E-NESTING: the expression nests too deeply";
    default: return "out of memory";
    }
}

/* ---- life ---- */

static void forget_readings(visa_deriver *d)
{
    memset(d->readings, 0, sizeof d->readings);
    d->kept = d->ready;
}

static void axes_changed(visa_deriver *d)
{
    d->ready = mapping_context_mark(d->context.mappings);
    forget_readings(d);
}

void visa_deriver_clear(visa_deriver *d)
{
    budget_lift(d->arena);
    if (setjmp(*arena_guard(d->arena))) {
        d->exhausted = true;
        return;
    }
    arena_rewind(d->arena, d->empty);
    d->error = "";
    d->context = (scope_context){.mappings = mapping_context_new(d->arena), .arena = d->arena, .diags = &d->diags};
    d->scope = scope_new(&d->context, NULL);
    d->exhausted = false;
    axes_changed(d);
}

static bool set_up(visa_deriver *d)
{
    if (setjmp(*arena_guard(d->arena)))
        return false;
    d->parser = mapping_parser_new(d->arena);
    d->empty = arena_mark_here(d->arena);
    visa_deriver_clear(d);
    return !d->exhausted;
}

visa_deriver *visa_deriver_new(const char *name)
{
    const target *t = target_by_name(name ? name : "rngd");
    visa_deriver *d = t ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return NULL;
    *d = (visa_deriver){.arena = arena_new(), .target = t, .error = "", .max_steps = COMPILE_STEPS_MAX};
    if (d->arena && set_up(d))
        return d;
    visa_deriver_free(d);
    return NULL;
}

void visa_deriver_free(visa_deriver *d)
{
    if (!d)
        return;
    arena_free(d->arena);
    free(d);
}

void visa_deriver_limit(visa_deriver *d, uint64_t max_steps)
{
    d->max_steps = max_steps ? max_steps : COMPILE_STEPS_MAX;
}

const char *visa_deriver_error(const visa_deriver *d)
{
    return d->error;
}

/* ---- one call ---- */

static void begin(visa_deriver *d)
{
    uint64_t spent = arena_budget(d->arena)->steps;
    budget_limit(d->arena, d->max_steps < UINT64_MAX - spent ? spent + d->max_steps : UINT64_MAX, COMPILE_BYTES_MAX, 0);
    mapping_context_rewind(d->context.mappings, d->kept);
    if (arena_used_since(d->arena, d->ready.arena) > KEPT_BYTES) {
        mapping_context_rewind(d->context.mappings, d->ready);
        forget_readings(d);
    }
    diag_list_init(&d->diags, d->arena);
    d->error = "";
}

static bool fail(visa_deriver *d, const char *text)
{
    d->error = text;
    return false;
}

/* Everything that was diagnosed; `where` is what the ranges count in, or NULL. */
static bool refuse(visa_deriver *d, const char *where)
{
    strbuf s;
    strbuf_init(&s, d->arena);
    diag_list_put(&d->diags, where, &s);
    return fail(d, s.bytes ? s.text : "this is no mapping");
}

static uint64_t text_hash(const char *text, size_t bytes)
{
    uint64_t h = bytes, part;
    for (; bytes >= sizeof part; text += sizeof part, bytes -= sizeof part) {
        memcpy(&part, text, sizeof part);
        h = (h ^ part) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    part = 0;
    memcpy(&part, text, bytes);
    h = (h ^ part) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* `what` names the text in messages. */
static const mapping *read_mapping(visa_deriver *d, const char *what, const char *text)
{
    size_t bytes = strlen(text);
    uint64_t hash = text_hash(text, bytes);
    reading *known = &d->readings[hash % READINGS];
    if (known->text && known->hash == hash && known->bytes == bytes && memcmp(known->text, text, bytes) == 0)
        return known->mapping;
    bool infer = false;
    const ast *n = parse_mapping(d->parser, text, bytes, d->arena, &d->diags);
    const mapping *m = n ? scope_mapping(d->scope, n, &infer) : NULL;
    if (!m) {
        refuse(d, what);
        return NULL;
    }
    *known = (reading){hash, arena_strndup(d->arena, text, bytes), bytes, m};
    d->kept = mapping_context_mark(d->context.mappings);
    return m;
}

static bool is_axis_name(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return name[0] >= 'A' && name[0] <= 'Z' && name[n] == '\0';
}

bool visa_deriver_axis(visa_deriver *d, const char *name, int64_t size)
{
    if (d->exhausted || setjmp(*arena_guard(d->arena))) {
        d->exhausted = true;
        return fail(d, unwound_text(d));
    }
    begin(d);
    mapping_context_rewind(d->context.mappings, d->ready);
    forget_readings(d);
    if (!is_axis_name(name))
        return fail(d, "an axis name is an upper-case letter and then letters, digits and _");
    if (size < 1 || size > MAPPING_MAX_SIZE)
        return fail(d, "an axis has 1 to 2^62 elements");
    symbol *known = scope_find(d->scope, TYPE_NAMES, name);
    if (!known)
        known = scope_add(d->scope, SYMBOL_AXIS, arena_strdup(d->arena, name), SRC_NOWHERE);
    known->axis = mapping_axis(d->context.mappings, name, size);
    axes_changed(d);
    return true;
}

static bool derive(visa_deriver *d, const mapping *buffer, const mapping *time, const mapping *packet, sequence_access access,
                   visa_entry *entries, size_t *count)
{
    sequence seq;
    mapping_context *c = d->context.mappings;
    sequence_limits limits = sequencer_limits(d->target, 1);
    if (!sequence_derive(c, buffer, time, packet, access | SEQUENCE_NAMELESS, &seq) || !sequence_fit(c, &seq, limits)) {
        /* Once more, with names for the explanation. */
        if (sequence_derive(c, buffer, time, packet, access, &seq))
            sequence_fit(c, &seq, limits);
        pass_context p = {.mappings = d->context.mappings, .arena = d->arena, .target = d->target, .diags = &d->diags};
        diag *g = diag_add(&d->diags, sequence_id(&seq), SRC_NOWHERE, "%s", sequence_reason(&p, &seq));
        walk_request walk = {buffer, NULL, time, packet, false};
        sequence_explain(&p, g, &seq, buffer, time, packet, access == SEQUENCE_READ ? remedy_find(&p, NULL, &seq, &walk, walk_fits) : NULL);
        return refuse(d, NULL);
    }
    *count = seq.count;
    for (size_t i = 0; i < seq.count; i++)
        entries[i] = (visa_entry){seq.parts[i].size, seq.parts[i].stride};
    return true;
}

bool visa_derive(visa_deriver *d, const char *buffer, const char *time, const char *packet, visa_access access, visa_entry *entries,
                 size_t *count)
{
    if (d->exhausted || setjmp(*arena_guard(d->arena)))
        return fail(d, unwound_text(d));
    begin(d);
    const mapping *b = read_mapping(d, "buffer", buffer);
    const mapping *t = b ? read_mapping(d, "time", time) : NULL;
    const mapping *p = t ? read_mapping(d, "packet", packet) : NULL;
    return p && derive(d, b, t, p, access == VISA_WRITE ? SEQUENCE_WRITE : SEQUENCE_READ, entries, count);
}

static const mapping *begin_with(visa_deriver *d, const char *text)
{
    begin(d);
    return read_mapping(d, "mapping", text);
}

bool visa_mapping(visa_deriver *d, const char *text, int64_t *size, const char **shortest)
{
    if (d->exhausted || setjmp(*arena_guard(d->arena)))
        return fail(d, unwound_text(d));
    const mapping *m = begin_with(d, text);
    if (!m)
        return false;
    *size = m->size;
    *shortest = mapping_text(m, d->arena);
    return true;
}

bool visa_map(visa_deriver *d, const char *text, int64_t position, const char **index)
{
    if (d->exhausted || setjmp(*arena_guard(d->arena)))
        return fail(d, unwound_text(d));
    const mapping *m = begin_with(d, text);
    if (!m)
        return false;
    *index = NULL;
    int64_t *coordinates = ARENA_ARRAY(d->arena, int64_t, mapping_context_mark(d->context.mappings).axis_count);
    if (!mapping_map(m, position, coordinates))
        return true;
    const axis *axes[64];
    uint32_t count = mapping_axes(m, axes, 64);
    strbuf s;
    strbuf_init(&s, d->arena);
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(&s, "%s%s:%lld", i ? " " : "", axes[i]->name, (long long)coordinates[axes[i]->number]);
    *index = s.text;
    return true;
}

bool visa_equal(visa_deriver *d, const char *left, const char *right, bool *equal)
{
    if (d->exhausted || setjmp(*arena_guard(d->arena)))
        return fail(d, unwound_text(d));
    begin(d);
    const mapping *l = read_mapping(d, "left mapping", left), *r = l ? read_mapping(d, "right mapping", right) : NULL;
    if (r)
        *equal = mapping_equal(d->context.mappings, l, r);
    return r != NULL;
}
