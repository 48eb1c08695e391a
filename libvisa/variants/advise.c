#include "libvisa/variants/advise.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "include/visa_editor.h"
#include "runtime/timing/report.h"
#include "support/strbuf.h"

enum { MOST_CHANGES = 16, MOST_SLICES = 256, MOST_TIMES_LOG2 = 8, MOST_WAYS = 64 };
static const int64_t LARGEST_CONSTANT = INT64_C(1) << 20;

/* What is known of a text. */
typedef struct judged {
    const char *text;
    binary binary;
    int64_t *cycles; /* of each kernel */
    int64_t total;
} judged;

typedef struct adviser {
    const char *name; /* of the source */
    const variant_options *options;
    arena *arena;
    uint64_t left;          /* steps */
    judged now, best;       /* so far; best: of the changes that are tried at the moment */
    const char *best_words; /* NULL: none of them is better */
    bool is_over;           /* there was no work left for a text that would have been tried */
} adviser;

/* ---- is it a better form of the same kernels? ---- */

static bool same_layout(layout a, layout b)
{
    return a.count == b.count && (a.count == 0 || memcmp(a.words, b.words, a.count * sizeof *a.words) == 0);
}

static bool same_ports(const binary_kernel *a, const binary_kernel *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->port_count == b->port_count && a->axis_count == b->axis_count &&
                a->einsum.statement_count == b->einsum.statement_count;
    for (uint32_t i = 0; same && i < a->axis_count; i++)
        same = strcmp(a->axes[i].name, b->axes[i].name) == 0 && a->axes[i].size == b->axes[i].size;
    for (uint32_t i = 0; same && i < a->port_count; i++) {
        const port *p = &a->ports[i], *q = &b->ports[i];
        same = strcmp(p->name, q->name) == 0 && p->dtype == q->dtype && p->space == q->space;
        for (int c = 0; same && c < COMPONENT_COUNT; c++)
            same = same_layout(p->mapping[c], q->mapping[c]);
    }
    for (uint32_t i = 0; same && i < a->einsum.statement_count; i++)
        same = a->einsum.statements[i].op == b->einsum.statements[i].op;
    return same;
}

/* Is there no work left for another text, or was `c` given up for want of it? */
static bool is_over(adviser *s, const visa_compilation *c)
{
    s->is_over = s->is_over || s->left <= 1 || (c && visa_gave_up(c));
    return s->is_over;
}

/* Compiles and times a text. False: it is refused, or there is no work left. */
static bool judge(adviser *s, const char *text, judged *out)
{
    visa_options options = s->options->compile;
    options.max_steps = s->left;
    options.binary_only = true;
    *out = (judged){.text = text};
    if (is_over(s, NULL))
        return false;
    visa_compilation *c = visa_compile(s->name, text, strlen(text), &options);
    if (!c)
        return false;
    const unsigned char *data;
    size_t size;
    diag_list silent;
    diag_list_init(&silent, s->arena);
    bool ok = visa_error_count(c) == 0 && visa_emit(c, VISA_EMIT_BINARY, &data, &size) &&
              binary_read(data, size, s->arena, &silent, &out->binary);
    ok = !is_over(s, c) && ok;
    variant_spend(&s->left, c);
    visa_free(c);
    out->cycles = ok ? ARENA_ARRAY(s->arena, int64_t, out->binary.kernel_count + 1) : NULL;
    for (size_t i = 0; ok && i < out->binary.kernel_count; i++) {
        report_figures f;
        ok = report_figures_of(out->binary.target, &out->binary.kernels[i], s->options->preset, s->arena, &silent, &f);
        out->cycles[i] = ok ? f.cycles : 0;
        out->total += out->cycles[i];
    }
    return ok;
}

static void take_better(adviser *s, const judged *x, const char *words)
{
    if (x->binary.kernel_count != s->now.binary.kernel_count)
        return;
    for (size_t i = 0; i < x->binary.kernel_count; i++)
        if (!same_ports(&x->binary.kernels[i], &s->now.binary.kernels[i]) || x->cycles[i] > s->now.cycles[i])
            return;
    if (x->total < s->now.total && (!s->best_words || x->total < s->best.total)) {
        s->best = *x;
        s->best_words = words;
    }
}

static void try_text(adviser *s, const char *text, const char *words)
{
    judged x;
    if (judge(s, text, &x))
        take_better(s, &x, words);
}

/* ---- text ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool starts_word(const char *text, const char *at, const char *word)
{
    size_t n = strlen(word);
    return (at == text || !is_word(at[-1])) && strncmp(at, word, n) == 0 && !is_word(at[n]);
}

/* Where the list that begins at "m![" ends, after its "]"; NULL: nowhere. */
static const char *mapping_end(const char *at)
{
    int depth = 0;
    for (const char *c = at + 2; *c; c++) {
        depth += (*c == '[') - (*c == ']');
        if (depth == 0)
            return c + 1;
    }
    return NULL;
}

static const char *comment_end(const char *at)
{
    if (strncmp(at, "//", 2) == 0)
        return at + strcspn(at, "\n");
    const char *end = strncmp(at, "/*", 2) == 0 ? strstr(at + 2, "*/") : NULL;
    return end ? end + 2 : at;
}

/* Is the name used in mappings only, but for where it is declared? Then no value depends on it. */
static bool only_in_mappings(const char *text, const char *name, const char *declared)
{
    for (const char *at = text; *at; at++) {
        const char *end = comment_end(at);
        if (end == at && strncmp(at, "m![", 3) == 0)
            end = mapping_end(at);
        if (!end)
            return false;
        if (end > at)
            at = end - 1;
        else if (at != declared && starts_word(text, at, name))
            return false;
    }
    return true;
}

/* ---- constants ---- */

static void try_constant(adviser *s, const char *text, const char *name, const char *digits, int64_t value)
{
    size_t length = strspn(digits, "0123456789");
    for (int log2 = -MOST_TIMES_LOG2; log2 <= MOST_TIMES_LOG2; log2++) {
        int64_t other = log2 < 0 ? value >> -log2 : value << log2;
        if (log2 == 0 || other < 1 || other > LARGEST_CONSTANT || (log2 < 0 && other << -log2 != value))
            continue;
        const char *changed = arena_printf(s->arena, "%.*s%" PRId64 "%s", (int)(digits - text), text, other, digits + length);
        try_text(s, changed, arena_printf(s->arena, "%s = %" PRId64 " instead of %" PRId64, name, other, value));
    }
}

static void try_constants(adviser *s)
{
    const char *text = s->now.text;
    for (const char *at = strstr(text, "const "); at; at = strstr(at + 1, "const ")) {
        char name[64];
        int digits = 0, begin = 0;
        long long value;
        bool reads =
            (at == text || at[-1] == '\n') && sscanf(at, "const %n%63[A-Za-z0-9_]: usize = %n%lld", &begin, name, &digits, &value) == 2;
        const char *end = reads ? at + digits + strspn(at + digits, "0123456789") : at;
        if (reads && value > 0 && value <= LARGEST_CONSTANT && *end == ';' && only_in_mappings(text, name, at + begin))
            try_constant(s, text, arena_strdup(s->arena, name), at + digits, value);
    }
}

/* ---- an axis spread over slices ---- */

typedef struct spread {
    const char *axis;
    const char *slice, *cluster; /* what takes the place of `1 # 256`, and of `1 # 2` where that is not NULL */
    const char *rest;            /* of the axis in other lists; NULL: nothing */
} spread;

/* A list with its terms, those that are the axis alone replaced. */
static void put_list(strbuf *out, const char *begin, const char *end, const spread *x)
{
    size_t terms = 0;
    strbuf_puts(out, "m![");
    for (const char *at = begin; at < end;) {
        const char *stop = at;
        for (int depth = 0; stop < end && (depth > 0 || *stop != ','); stop++)
            depth += (*stop == '[' || *stop == '{') - (*stop == ']' || *stop == '}');
        const char *from = at + strspn(at, " \n"), *to = stop;
        while (to > from && isspace((unsigned char)to[-1]))
            to--;
        size_t n = (size_t)(to - from);
        bool is_axis = n == strlen(x->axis) && strncmp(from, x->axis, n) == 0;
        if (!is_axis || x->rest) {
            strbuf_puts(out, terms++ ? ", " : "");
            is_axis ? strbuf_puts(out, x->rest) : strbuf_append(out, from, n);
        }
        at = stop + (stop < end);
    }
    strbuf_puts(out, terms ? "]" : "1]");
}

static bool is_list(const char *begin, const char *end, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(end - begin) == n && strncmp(begin, text, n) == 0;
}

/* All mappings but those of tensors in HBM, which are the ports. NULL: no list of idle slices. */
static const char *spread_over_slices(const adviser *s, const spread *x)
{
    strbuf out;
    strbuf_init(&out, s->arena);
    bool in_port = false, found = false; /* a port's mappings have no `>` outside of their lists */
    for (const char *at = s->now.text; *at;) {
        const char *end = comment_end(at);
        if (end == at && strncmp(at, "m![", 3) == 0 && (end = mapping_end(at)) && !in_port) {
            const char *begin = at + 3, *last = end - 1;
            if (is_list(begin, last, "1 # 256")) {
                strbuf_printf(&out, "m![%s]", x->slice);
                found = true;
            } else if (x->cluster && is_list(begin, last, "1 # 2")) {
                strbuf_printf(&out, "m![%s]", x->cluster);
            } else {
                put_list(&out, begin, last, x);
            }
            at = end;
            continue;
        }
        if (end && end > at) {
            strbuf_append(&out, at, (size_t)(end - at));
            at = end;
            continue;
        }
        in_port = starts_word(s->now.text, at, "HbmTensor") || (in_port && *at != '>');
        strbuf_append(&out, at++, 1);
    }
    return found ? out.text : NULL;
}

static void try_spread(adviser *s, const spread *x)
{
    const char *text = spread_over_slices(s, x);
    if (text)
        try_text(s, text,
                 x->cluster
                     ? arena_printf(s->arena, "%s over clusters and slices: Cluster m![%s], Slice m![%s]", x->axis, x->cluster, x->slice)
                     : arena_printf(s->arena, "%s over slices: Slice m![%s]", x->axis, x->slice));
}

static const char *padded_to_slices(arena *a, const char *term, int64_t size)
{
    return size == MOST_SLICES ? term : arena_printf(a, "%s # %d", term, MOST_SLICES);
}

static void try_axis(adviser *s, const char *name, int64_t size)
{
    arena *a = s->arena;
    if (size > 1 && size <= MOST_SLICES)
        try_spread(s, &(spread){name, padded_to_slices(a, name, size), NULL, NULL});
    for (int64_t each = 2; each <= 64 && each < size; each *= 2)
        if (size % each == 0 && size / each <= MOST_SLICES)
            try_spread(s, &(spread){name, padded_to_slices(a, arena_printf(a, "%s / %" PRId64, name, each), size / each), NULL,
                                    arena_printf(a, "%s %% %" PRId64, name, each)});
    if (size > 2 && size % 2 == 0 && size <= 2 * MOST_SLICES)
        try_spread(s, &(spread){name, padded_to_slices(a, arena_printf(a, "%s %% %" PRId64, name, size / 2), size / 2),
                                arena_printf(a, "%s / %" PRId64, name, size / 2), NULL});
}

static void try_axes(adviser *s)
{
    for (size_t i = 0; i < s->now.binary.kernel_count; i++) {
        const binary_kernel *k = &s->now.binary.kernels[i];
        for (uint32_t x = 0; i == 0 && x < k->axis_count; x++)
            try_axis(s, k->axes[x].name, k->axes[x].size);
    }
}

/* ---- packets of 8 for what was done on packets of 4 ---- */

/* The text after `.name::<..>(..)`, which begins at the dot; NULL: there is no such call. */
static const char *call_end(const char *at)
{
    int depth = 0;
    const char *c = at + 1;
    while (is_word(*c))
        c++;
    if (strncmp(c, "::<", 3) == 0)
        for (c += 2; *c; c++) {
            const char *list = strncmp(c, "m![", 3) == 0 ? mapping_end(c) : c;
            c = list ? list : c;
            depth += (*c == '<') - (*c == '>');
            if (depth == 0) {
                c++;
                break;
            }
        }
    if (*c != '(')
        return NULL;
    for (; *c; c++) {
        depth += (*c == '(') - (*c == ')');
        if (depth == 0)
            return c + 1;
    }
    return NULL;
}

static bool starts_call(const char *at, const char *april, const char *later)
{
    return *at == '.' && (starts_word(at, at + 1, april) || starts_word(at, at + 1, later));
}

/* The pass from its split, at `split`, to its concat without both, its additions by the clippers; NULL: it has other operations there. */
static const char *on_wide_packets(const adviser *s, const char *split)
{
    static const char add[] = "vector_fp_binary", adds[] = "FpBinaryOp::AddF", clip[] = "vector_clip", clips[] = "ClipBinaryOpF32::Add";
    const char *text = s->now.text, *at = call_end(split);
    strbuf out;
    strbuf_init(&out, s->arena);
    strbuf_append(&out, text, (size_t)(split - text));
    while (at && !starts_call(at, "vector_concat", "vector_widen_concat")) {
        const char *end = *at == '.' ? call_end(at) : at + strspn(at, " \n");
        const char *variant = *at == '.' && strncmp(at + 1, add, strlen(add)) == 0 ? strchr(at, '(') + 1 : NULL;
        if (!end || end == at || (*at == '.' && (!variant || strncmp(variant, adds, strlen(adds)) != 0)))
            return NULL;
        if (variant) {
            strbuf_printf(&out, ".%s", clip);
            strbuf_append(&out, at + 1 + strlen(add), (size_t)(variant - at) - 1 - strlen(add));
            strbuf_puts(&out, clips);
            at = variant + strlen(adds);
        }
        strbuf_append(&out, at, (size_t)(end - at));
        at = end;
    }
    const char *rest = at ? call_end(at) : NULL;
    if (!rest)
        return NULL;
    strbuf_puts(&out, rest);
    return out.text;
}

static uint32_t line_of(const char *text, const char *at)
{
    uint32_t line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

/* The same statements of whole axes: their digits are of other packets. */
static bool same_formulas(const adviser *s, const judged *x)
{
    bool same = x->binary.kernel_count == s->now.binary.kernel_count;
    for (size_t i = 0; same && i < x->binary.kernel_count; i++)
        same = strcmp(x->binary.kernels[i].einsum.text, s->now.binary.kernels[i].einsum.text) == 0;
    return same;
}

static void try_widths(adviser *s)
{
    for (const char *at = s->now.text; *at; at++) {
        const char *end = comment_end(at), *text = NULL;
        judged x;
        if (end && end > at)
            at = end - 1;
        else if (starts_call(at, "vector_split", "vector_narrow_split"))
            text = on_wide_packets(s, at);
        if (text && judge(s, text, &x) && same_formulas(s, &x))
            take_better(s, &x,
                        arena_printf(s->arena, "line %" PRIu32 ": packets of 8, without split and concat", line_of(s->now.text, at)));
    }
}

/* ---- two passes in one ---- */

/* Behind blanks and comments; of NULL it is NULL. */
static const char *skip_blanks(const char *at)
{
    for (const char *end; at && *at; at = end) {
        end = comment_end(at);
        end = end && end == at && isspace((unsigned char)*at) ? at + 1 : end;
        if (!end || end == at)
            break;
    }
    return at;
}

/* The first `word` from `at` on, up to where the bracket closes that holds `at`; no deeper than `deepest` brackets. NULL: there is none. */
static const char *find_inside(const char *at, const char *word, int deepest)
{
    int depth = 0;
    for (const char *end; *at && depth >= 0; at = end) {
        end = comment_end(at);
        if (!end)
            return NULL;
        if (end > at)
            continue;
        if (depth <= deepest && strncmp(at, word, strlen(word)) == 0)
            return at;
        depth += (*at == '(' || *at == '[' || *at == '{') - (*at == ')' || *at == ']' || *at == '}');
        end = at + 1;
    }
    return NULL;
}

/* `let NAME: TYPE = CALLS .vector_final() ..;`, of a pass that leaves a tensor. */
typedef struct pass_text {
    const char *let, *end; /* of the statement, behind its `;` */
    const char *name;
    size_t name_length;
    const char *calls, *final; /* where the calls begin, and the last of them that the next pass needs ends */
} pass_text;

static bool read_pass(const char *let, pass_text *out)
{
    const char *name = skip_blanks(let + strlen("let"));
    name = strncmp(name, "mut ", 4) == 0 ? skip_blanks(name + 4) : name;
    const char *equals = find_inside(name, "=", 0), *end = find_inside(name, ";", 0);
    *out = (pass_text){.let = let, .name = name};
    while (is_word(name[out->name_length]))
        out->name_length++;
    if (!out->name_length || !equals || !end || equals > end)
        return false;
    out->calls = skip_blanks(equals + 1);
    const char *init = find_inside(out->calls, ".vector_init", 0),
               *final = init && init < end ? find_inside(init, ".vector_final", 0) : NULL;
    out->final = final;
    out->end = end + 1;
    return final && final < end;
}

/* Where the calls `device.main.begin(..)` begin of which this is the `.begin`. */
static const char *calls_begin(const char *text, const char *begin)
{
    const char *at = begin;
    while (at > text && (is_word(at[-1]) || at[-1] == '.' || isspace((unsigned char)at[-1])))
        at--;
    return skip_blanks(at);
}

/* The calls after vector_init, and what gives no tags, of a pass that reads the tensor as it lies: NULL: another one. */
static const char *operations_of(const char *begin)
{
    static const char *const carries[] = {".fetch", ".collect", ".vector_init", ".vector_intra_slice_tag", ".vector_intra_slice_branch"};
    enum { CARRIES = sizeof carries / sizeof *carries, INIT = 2 };
    bool begun = false;
    const char *at = skip_blanks(call_end(begin));
    for (bool carried = at != NULL; carried;) {
        carried = false;
        for (size_t i = 0; i < CARRIES && !carried; i++)
            carried = *at == '.' && starts_word(at, at + 1, carries[i] + 1);
        begun = begun || (carried && starts_word(at, at + 1, carries[INIT] + 1));
        const char *end = carried ? call_end(at) : at;
        if (!end)
            return NULL;
        at = skip_blanks(end);
    }
    return begun ? at : NULL;
}

/* Is the last call of [from, to) the end of packets of 4? Then where it begins, else `to`. */
static const char *before_concat(const char *from, const char *to)
{
    const char *found = to;
    for (const char *at = from; at < to; at++)
        if (starts_call(at, "vector_concat", "vector_widen_concat") && call_end(at) && skip_blanks(call_end(at)) == to)
            found = at;
    return found;
}

/* The text with the second pass's operations behind those of the first; where `stays`, on packets of 4 all along. NULL: there is no such
 * second pass. */
static const char *in_one_pass(const adviser *s, const pass_text *first, bool stays)
{
    const char *text = s->now.text, *read = arena_printf(s->arena, ".begin(%.*s.view())", (int)first->name_length, first->name);
    const char *begin = find_inside(first->end, read, INT_MAX), *calls = begin ? calls_begin(text, begin) : NULL;
    const char *operations = begin && calls >= first->end ? operations_of(begin) : NULL, *to = first->final;
    if (!operations)
        return NULL;
    if (stays) {
        to = before_concat(first->calls, first->final);
        if (to == first->final || !starts_call(operations, "vector_split", "vector_narrow_split") || !call_end(operations))
            return NULL;
        operations = skip_blanks(call_end(operations));
    }
    return arena_printf(s->arena, "%.*s%.*s%.*s%s", (int)(first->let - text), text, (int)(calls - skip_blanks(first->end)),
                        skip_blanks(first->end), (int)(to - first->calls), first->calls, operations);
}

static void try_passes(adviser *s)
{
    const char *end;
    for (const char *at = s->now.text; *at; at = end) {
        pass_text first;
        judged x;
        end = comment_end(at);
        if (!end)
            return;
        if (end > at)
            continue;
        end = at + 1;
        if (!starts_word(s->now.text, at, "let") || !read_pass(at, &first))
            continue;
        for (int stays = 0; stays < 2; stays++) {
            const char *text = in_one_pass(s, &first, stays);
            if (text && judge(s, text, &x) && same_formulas(s, &x))
                take_better(s, &x,
                            arena_printf(s->arena, "line %" PRIu32 ": the operations of this pass and of the one that reads it in one pass",
                                         line_of(s->now.text, first.final)));
        }
    }
}

/* ---- the text of the advice ---- */

static void say_change(const adviser *s, strbuf *out)
{
    const char *before = ":";
    strbuf_puts(out, s->best_words);
    for (size_t i = 0; i < s->best.binary.kernel_count; i++)
        if (s->best.cycles[i] != s->now.cycles[i]) {
            strbuf_printf(out, "%s kernel %s takes %" PRId64 " cycles instead of %" PRId64, before, s->best.binary.kernels[i].name,
                          s->best.cycles[i], s->now.cycles[i]);
            before = ",";
        }
    strbuf_puts(out, "\n");
}

/* ---- a copy by the Switch Engine ---- */

static bool same_mathematics(const adviser *s, const judged *x)
{
    bool same = x->binary.kernel_count == s->now.binary.kernel_count;
    for (size_t i = 0; same && i < x->binary.kernel_count; i++) {
        uint64_t *a, *b;
        size_t n, m;
        same = einsum_encode(&x->binary.kernels[i].einsum, s->arena, &a, &n) &&
               einsum_encode(&s->now.binary.kernels[i].einsum, s->arena, &b, &m) && n == m && (n == 0 || memcmp(a, b, n * sizeof *a) == 0);
    }
    return same;
}

/* A text of which only a `custom` routing is asked: with the named topology that sends the same, which loads no bitmaps; else as it is. */
static const char *with_named(adviser *s, const char *text)
{
    static const char *const only_this[] = {"no-all", "switch-custom", NULL};
    visa_options options = s->options->compile;
    options.max_steps = s->left;
    options.warnings = only_this;
    visa_compilation *c = strstr(s->now.text, "CustomBroadcast") ? NULL : visa_compile(s->name, text, strlen(text), &options);
    visa_diagnostic d;
    for (size_t i = 0; c && visa_diagnostic_at(c, i, &d); i++) {
        const char *call = text + d.place.begin, *config = strstr(call, "SwitchConfig::"), *end = config ? strchr(config, ')') : NULL;
        static const char write[] = "write ";
        if (strcmp(d.id, "W-SWITCH-CUSTOM") != 0 || !end || strncmp(d.help, write, strlen(write)) != 0)
            continue;
        text = arena_printf(s->arena, "%.*s%s%s", (int)(config - text), text, d.help + strlen(write), end);
        break;
    }
    if (c)
        variant_spend(&s->left, c);
    visa_free(c);
    return text;
}

/* One way to do one copy. */
static void try_switch(adviser *s, const visa_switched_text *way)
{
    judged x;
    if (!judge(s, arena_strdup(s->arena, way->text), &x) || !same_mathematics(s, &x))
        return;
    const char *named = way->routes ? with_named(s, x.text) : x.text;
    if (named == x.text || judge(s, named, &x))
        take_better(s, &x, arena_printf(s->arena, "line %u: %s", way->line, way->words));
}

/* Says the best way of each copy in *each, or where that is NULL leaves the best of all. */
static void try_ways(adviser *s, visa_compilation *c, strbuf *each)
{
    visa_switched_text way;
    uint32_t line = 0;
    for (size_t number = 0; number < MOST_WAYS && visa_switched(c, number, &way); number++) {
        if (number == 0 && !s->now.cycles && !judge(s, s->now.text, &s->now))
            return;
        if (each && s->best_words && way.line != line) {
            say_change(s, each);
            s->best_words = NULL;
        }
        line = way.line;
        try_switch(s, &way);
    }
    if (each && s->best_words)
        say_change(s, each);
}

static void try_switches(adviser *s, strbuf *each)
{
    if (!strstr(s->now.text, "to_dm"))
        return;
    visa_options options = s->options->compile;
    options.max_steps = s->left;
    visa_compilation *c = visa_compile(s->name, s->now.text, strlen(s->now.text), &options);
    if (!c)
        return;
    if (!is_over(s, c) && visa_error_count(c) == 0)
        try_ways(s, c, each);
    variant_spend(&s->left, c);
    visa_free(c);
}

/* ---- all of it ---- */

/* The source as it is compiles, and is a text. */
static bool compiles(const variant_source *source, const variant_options *o, arena *memory, advice *out)
{
    visa_compilation *c = visa_compile(source->name, source->text, source->size, &o->compile);
    bool good = c && visa_error_count(c) == 0 && strlen(source->text) == source->size;
    const unsigned char *data;
    size_t size;
    if (good && visa_kernel_count(c) == 0) /* dataflow items alone: no binary, and why */
        good = visa_emit(c, VISA_EMIT_BINARY, &data, &size);
    if (!c)
        out->fault = "out of memory";
    else if (!good)
        out->refused = arena_strdup(memory, visa_diagnostics(c, o->format));
    visa_free(c);
    return good;
}

bool advise_source(const variant_source *source, const variant_options *o, arena *memory, advice *out)
{
    *out = (advice){.changes = "", .source = source->text, .refused = ""};
    if (!compiles(source, o, memory, out))
        return false;
    adviser s = {.name = source->name, .options = o, .arena = memory, .left = variant_steps(o)};
    if (!judge(&s, source->text, &s.now)) {
        out->fault = s.is_over ? "compiling it again takes more steps of work than are left; --max-steps=N raises the limit"
                               : "the kernels cannot be timed";
        return false;
    }
    out->no_kernel = s.now.binary.kernel_count == 0;
    if (out->no_kernel)
        return false;
    strbuf changes;
    strbuf_init(&changes, memory);
    size_t count = 0;
    for (; count < MOST_CHANGES; count++) {
        s.best_words = NULL;
        try_constants(&s);
        try_axes(&s);
        try_widths(&s);
        try_passes(&s);
        try_switches(&s, NULL);
        if (!s.best_words)
            break;
        say_change(&s, &changes);
        s.now = s.best;
    }
    if (count == 0)
        strbuf_puts(&changes, "nothing that was tried is faster\n");
    if (s.is_over)
        strbuf_printf(&changes, "the search ended at its limit of %" PRIu64 " steps of work; --max-steps=N raises it\n", variant_steps(o));
    out->changes = changes.text;
    out->source = s.now.text;
    return true;
}

const char *advise_switches(const variant_source *source, const variant_options *o, arena *memory)
{
    adviser s = {.name = source->name, .options = o, .arena = memory, .left = variant_steps(o)};
    strbuf said;
    strbuf_init(&said, memory);
    strbuf_puts(&said, "");
    s.now.text = arena_strndup(memory, source->text, source->size);
    if (strlen(s.now.text) == source->size)
        try_switches(&s, &said);
    return said.text;
}
