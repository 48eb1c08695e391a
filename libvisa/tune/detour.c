#include "libvisa/tune/detour.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/tune/machine.h"
#include "libvisa/tune/text.h"
#include "support/integer.h"

/* ---- questions ---- */

/* The only contraction of a tree; NULL: there is none. */
static const tune_node *contraction_in(const tune_node *n)
{
    const tune_node *found = !n || n->kind == TUNE_NODE_PRODUCT ? n : contraction_in(n->left);
    return found || !n ? found : contraction_in(n->right);
}

/* Columns of the result: its innermost axes, which the weights alone have. */
typedef struct columns_of_result {
    unsigned axes;
    size_t first, count; /* in the result */
    int64_t elements;
} columns_of_result;

static columns_of_result find_columns(const tune_expression *e, size_t stream, size_t weights)
{
    const tune_tensor *out = &e->tensors[0];
    unsigned only = tune_axes_of(e, weights) & ~tune_axes_of(e, stream);
    columns_of_result c = {.first = out->count, .elements = 1};
    while (c.first > 0 && only >> out->axes[c.first - 1] & 1) {
        c.axes |= 1U << out->axes[--c.first];
        c.elements *= e->axes[out->axes[c.first]].size;
        c.count++;
    }
    return c;
}

/* Do the columns stand in the weights as they do in the result? */
static bool stand_together(const tune_expression *e, size_t weights, const columns_of_result *c)
{
    const tune_tensor *w = &e->tensors[weights], *out = &e->tensors[0];
    size_t at = 0;
    while (at < w->count && !(c->axes >> w->axes[at] & 1))
        at++;
    for (size_t i = 0; i < c->count; i++)
        if (at + i >= w->count || w->axes[at + i] != out->axes[c->first + i])
            return false;
    return at + c->count < w->count; /* what is summed is behind them */
}

/* "Q[h, q, e]"; `wide` in the place of columns, NULL: as they are. */
static const char *spell(const tune_expression *e, const tune_tensor *x, unsigned columns, const char *wide, arena *a)
{
    const char *axes = NULL;
    bool has_wide = false;
    for (size_t i = 0; i < x->count; i++) {
        bool is_column = wide && columns >> x->axes[i] & 1;
        const char *axis = is_column ? wide : e->axes[x->axes[i]].asked;
        if (is_column && has_wide)
            continue;
        has_wide = has_wide || is_column;
        axes = axes ? arena_printf(a, "%s, %s", axes, axis) : axis;
    }
    return arena_printf(a, "%s[%s]", x->asked, axes);
}

static void add_size(detour_question *q, const char *axis, int64_t size, arena *a)
{
    int64_t *value = ARENA_NEW(a, int64_t);
    *value = size;
    q->sizes[q->size_count++] = (visa_parameter){axis, value, 1};
}

static void add_sizes(detour_question *q, const tune_expression *e, unsigned axes, arena *a)
{
    for (size_t i = 0; i < e->axis_count; i++)
        if (axes >> i & 1)
            add_size(q, e->axes[i].asked, e->axes[i].size, a);
}

static const char *axis_names(const tune_expression *e, unsigned axes, arena *a)
{
    const char *text = "";
    for (size_t i = 0; i < e->axis_count; i++)
        if (axes >> i & 1)
            text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", e->axes[i].asked);
    return text;
}

/* A name that no tensor has. */
static const char *unused_tensor(const tune_expression *e, const char *name, arena *a)
{
    for (size_t i = 0; i < e->tensor_count; i++)
        if (strcmp(e->tensors[i].name, name) == 0) {
            name = arena_printf(a, "%s_", name);
            i = SIZE_MAX;
        }
    return name;
}

/* Positions of a tensor's axes, all together. */
static int64_t elements_of(const tune_expression *e, unsigned axes)
{
    int64_t elements = 1;
    for (size_t i = 0; i < e->axis_count; i++)
        elements *= axes >> i & 1 ? e->axes[i].size : 1;
    return elements;
}

/* Without axes of one position in its tensors, which are none. */
static tune_expression without_units(const tune_expression *e)
{
    tune_expression x = *e;
    for (size_t t = 0; t < x.tensor_count; t++) {
        tune_tensor *one = &x.tensors[t];
        one->count = 0;
        for (size_t i = 0; i < e->tensors[t].count; i++)
            if (e->axes[e->tensors[t].axes[i]].size > 1)
                one->axes[one->count++] = e->tensors[t].axes[i];
    }
    return x;
}

bool detour_of(const target *t, const tune_expression *asked, const visa_tune_options *o, arena *a, detour *out)
{
    const tune_expression without = without_units(asked), *e = &without;
    const tune_node *product = contraction_in(e->root);
    dtype type = DTYPE_BF16, result;
    if (!product || tune_count_products(e->root) != 1 || e->window_count > 0 || o->chips > 1 || o->free_tensors ||
        (o->dtype && !dtype_by_name(o->dtype, &type)))
        return false;
    size_t innermost = e->tensors[0].count > 0 ? e->tensors[0].axes[e->tensors[0].count - 1] : 0,
           operands[] = {product->left->tensor, product->right->tensor};
    size_t right = tune_axes_of(e, operands[1]) >> innermost & 1, weights = operands[right], stream = operands[1 - right];
    const tune_tensor *w = &e->tensors[weights], *x = &e->tensors[stream];
    unsigned has = tune_axes_of(e, weights) | tune_axes_of(e, stream), made = has & ~product->over, over = has & product->over;
    columns_of_result c = find_columns(e, stream, weights);
    bool is_whole = product == e->root;
    result = dtype_row_of(type)->accumulates_in;
    if (is_whole && o->out_dtype && !dtype_by_name(o->out_dtype, &result))
        return false;
    if (w->asked_type || x->asked_type || made != tune_axes_of(e, 0) || over == 0 || c.count == 0 || !stand_together(e, weights, &c) ||
        strcmp(w->asked, x->asked) == 0 || (!is_whole && result != DTYPE_F32))
        return false;
    int64_t bits = dtype_row_of(result)->bits, block = t->hbm_block_bytes * 8 / bits,
            batches = elements_of(e, made & tune_axes_of(e, weights) & tune_axes_of(e, stream));
    *out = (detour){.weights = w->port, .columns = c.elements, .padded = round_up(c.elements, block), .column_axes = c.count};
    if (batches == 1 || c.elements % block == 0)
        return false;
    const char *wide = tune_unused_name(e->axes, e->axis_count, arena_printf(a, "WIDE_%" PRId64, out->padded), a);
    out->wide = wide;
    out->own_parts = e->axes[e->tensors[0].axes[c.first]].name;
    for (size_t i = 1; i < c.count; i++)
        out->own_parts = arena_printf(a, "%s, %s", out->own_parts, e->axes[e->tensors[0].axes[c.first + i]].name);
    out->own = tune_unused_name(e->axes, e->axis_count, arena_printf(a, "COLUMNS_%" PRId64, out->columns), a);
    out->sums = unused_tensor(e, "sums_in_hbm", a);
    tune_tensor sums = e->tensors[0];
    sums.asked = out->sums;
    out->first.text = arena_printf(a, "%s = sum(%s) %s * %s", spell(e, &sums, c.axes, wide, a), axis_names(e, over, a),
                                   spell(e, x, c.axes, wide, a), spell(e, w, c.axes, wide, a));
    out->first.out_type = is_whole ? o->out_dtype : NULL;
    add_sizes(&out->first, e, (made | over) & ~c.axes, a);
    add_size(&out->first, wide, out->padded, a);
    out->second.text = arena_printf(a, "%.*s(%s: %s)%s", (int)product->range.begin, e->text, spell(e, &sums, 0, NULL, a),
                                    dtype_row_of(result)->name, e->text + product->range.end);
    out->second.out_type = o->out_dtype ? o->out_dtype : is_whole ? dtype_row_of(result)->name : NULL;
    unsigned rest = made; /* and what is around the contraction has, if only one position of it */
    for (size_t i = 0; i < asked->tensor_count; i++)
        rest |= i == weights || i == stream ? 0 : tune_axes_of(asked, i);
    add_sizes(&out->second, e, rest, a);
    return true;
}

/* ---- kernels ---- */

typedef struct line {
    const char *text;
    size_t bytes;
} line;

/* A kernel in parts: lines of its text. */
typedef struct kernel_text {
    line axes, device, types[8], ports[TUNE_TENSORS_MAX + 1], out; /* out: the port that it writes; 0 bytes: it returns the result */
    size_t type_count, port_count;
    line head; /* behind the ports: ") -> .. {" */
    const char *body;
    size_t body_bytes; /* without the last brace */
} kernel_text;

static line next_line(const char **at)
{
    const char *end = strchr(*at, '\n');
    line l = {*at, end ? (size_t)(end - *at) : strlen(*at)};
    *at = end ? end + 1 : *at + l.bytes;
    return l;
}

static bool begins(line l, const char *with)
{
    return l.bytes >= strlen(with) && strncmp(l.text, with, strlen(with)) == 0;
}

static bool holds(line l, const char *what)
{
    size_t bytes = strlen(what);
    for (size_t i = 0; i + bytes <= l.bytes; i++)
        if (strncmp(l.text + i, what, bytes) == 0)
            return true;
    return false;
}

static bool read_kernel(const char *text, kernel_text *k)
{
    *k = (kernel_text){0};
    const char *at = text;
    while (*at && !begins((line){at, strlen(at)}, "fn ")) {
        line l = next_line(&at);
        if (begins(l, "axes!["))
            k->axes = l;
        else if (begins(l, "#["))
            k->device = l;
        else if (begins(l, "type ") && k->type_count < sizeof k->types / sizeof *k->types)
            k->types[k->type_count++] = l;
    }
    next_line(&at);
    next_line(&at); /* the device */
    while (*at && *at != ')') {
        line l = next_line(&at);
        if (holds(l, ": &mut HbmTensor<"))
            k->out = l;
        else if (k->port_count < sizeof k->ports / sizeof *k->ports)
            k->ports[k->port_count++] = l;
    }
    k->head = next_line(&at);
    k->body = at;
    const char *end = strrchr(at, '}');
    k->body_bytes = end ? (size_t)(end - at) : 0;
    return end && k->axes.bytes > 0 && k->device.bytes > 0;
}

/* "    a: &HbmTensor<bf16, Chip, m![M, K]>,": a name, a type, a mapping. */
typedef struct port_text {
    const char *name, *type, *mapping;
} port_text;

static port_text read_port(line l, arena *a)
{
    const char *text = arena_printf(a, "%.*s", (int)l.bytes, l.text), *colon = strchr(text, ':'), *type = strchr(text, '<'),
               *comma = type ? strchr(type, ',') : NULL, *mapping = comma ? strstr(comma, "m![") : NULL,
               *end = mapping ? strrchr(mapping, ']') : NULL;
    if (!end)
        return (port_text){"", "", ""};
    text += strspn(text, " ");
    return (port_text){arena_printf(a, "%.*s", colon && colon > text ? (int)(colon - text) : 0, text),
                       arena_printf(a, "%.*s", (int)(comma - type - 1), type + 1),
                       arena_printf(a, "%.*s", (int)(end - mapping - 3), mapping + 3)};
}

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* A text with another word in the place of one. */
static void put_replaced(strbuf *out, const char *text, size_t bytes, const char *word, const char *by)
{
    size_t length = strlen(word);
    for (size_t i = 0; i < bytes;) {
        bool is = i + length <= bytes && strncmp(text + i, word, length) == 0 && (i == 0 || !is_of_word(text[i - 1])) &&
                  (i + length == bytes || !is_of_word(text[i + length]));
        strbuf_append(out, is ? by : text + i, is ? strlen(by) : 1);
        i += is ? length : 1;
    }
}

static const char *replaced(const char *text, const char *word, const char *by, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    put_replaced(&out, text, strlen(text), word, by);
    return out.text;
}

/* Axes of both kernels, each once; false: two are called the same and are not. */
static bool put_axes(strbuf *out, const detour *d, const kernel_text *first, const kernel_text *second, arena *a)
{
    const line from[] = {first->axes, second->axes};
    const char *all = "";
    for (int k = 0; k < 2; k++) {
        const char *at = from[k].text + strlen("axes!["), *end = from[k].text + from[k].bytes - strlen("];");
        while (at < end) {
            const char *comma = memchr(at, ',', (size_t)(end - at)), *here = comma ? comma : end;
            const char *axis = arena_printf(a, "%.*s", (int)(here - at), at),
                       *name = arena_printf(a, ", %.*s =", (int)strcspn(axis, " "), axis), *has = strstr(all, name);
            if (has && strncmp(has + 2, axis, strlen(axis)) != 0)
                return false;
            if (!has)
                all = arena_printf(a, "%s, %s", all, axis);
            at = here + (comma ? 2 : 0);
        }
    }
    strbuf_printf(out, "axes![%s, %s = %" PRId64 "];\n\n", all + 2, d->own, d->columns);
    return true;
}

/* The name of a type's line, "type Slice = ..". */
static const char *type_of_line(line l, arena *a)
{
    const char *name = l.text + strlen("type ");
    return arena_printf(a, "%.*s", (int)strcspn(name, " "), name);
}

/* What the second kernel calls Cluster and Slice are others. */
static const char *second_text(const kernel_text *k, const char *text, size_t bytes, arena *a)
{
    const char *out = arena_printf(a, "%.*s", (int)bytes, text);
    for (size_t i = 0; i < k->type_count; i++) {
        const char *name = type_of_line(k->types[i], a);
        if (strcmp(name, "Chip") != 0)
            out = replaced(out, name, arena_printf(a, "%sOfRows", name), a);
    }
    return out;
}

static int64_t size_of_axis(const kernel_text *k, const char *name, arena *a)
{
    const char *axes = arena_printf(a, ", %.*s", (int)(k->axes.bytes - strlen("axes![")), k->axes.text + strlen("axes![")),
               *found = strstr(axes, arena_printf(a, ", %s = ", name));
    return found ? strtoll(strchr(found, '=') + 1, NULL, 10) : 0;
}

/* The weights with rows that nobody reads: the first ones once more, so that no other copy is needed to fill them. Each batch of them is in
 * a slice. */
static bool put_weights(tune_page *page, const target *t, const detour *d, const kernel_text *first, const port_text *w)
{
    enum { MOST_BYTES = 1 << 17 };
    arena *a = page->arena;
    const char *at = strstr(w->mapping, d->wide), *behind = at ? at + strlen(d->wide) : NULL;
    if (!at || at == w->mapping || *behind != ',')
        return false;
    const char *batch = arena_printf(a, "%.*s", (int)(at - w->mapping - 2), w->mapping);
    int64_t batches = size_of_axis(first, batch, a), slices = t->slices_per_cluster, idle = 1, clusters = batches % 2 == 0 ? 2 : 1,
            sums = size_of_axis(first, behind + 2, a);
    dtype type;
    if (batches == 0 || sums == 0 || !dtype_by_name(w->type, &type) || t->clusters_per_chip < clusters)
        return false;
    int64_t here = power_of_two_above(batches / clusters), bytes = ceil_div(d->padded * sums * dtype_row_of(type)->bits, 8);
    if (here > slices || bytes > MOST_BYTES)
        return false;
    idle = slices / here;
    const char *in_cluster = clusters > 1 ? arena_printf(a, "%s / 2", batch) : batch, *name = w->name;
    if (batches / clusters != here)
        in_cluster = arena_printf(a, "%s # %" PRId64, clusters > 1 ? arena_printf(a, "[%s]", in_cluster) : in_cluster, here);
    tune_line(page,
              "// Rows that are no whole blocks of HBM are dear: of %" PRId64 " columns there are %" PRId64
              " for now, the first ones once more",
              d->columns, d->padded);
    tune_line(page, "let mut own: DmTensor<%s, Chip, m![%s], m![%s], m![%s%s]> = DmTensor::new();", w->type,
              clusters > 1 ? arena_printf(a, "%s %% 2", batch) : tune_idle_clusters(t, a),
              TUNE_LIST(a, in_cluster, idle > 1 ? arena_printf(a, "1 # %" PRId64, idle) : NULL), d->wide, behind);
    tune_line(page, "let %s = %s.view().reshape::<Chip, m![%s, %s = %" PRId64 "%s]>();", name, name, batch, d->wide, d->columns, behind);
    tune_line(page, "%s.to_dm_view(&mut device.tdma, own.view_mut().tile::<m![%s], %" PRId64 ", _>(0));", name, d->wide, d->columns);
    for (int64_t from = d->columns, count; from < d->padded; from += count) {
        count = smaller(d->columns, d->padded - from);
        const char *part = count == d->columns ? "" : arena_printf(a, ".tile::<m![%s], %" PRId64 ", _>(0)", d->wide, count);
        tune_line(page, "%s%s.to_dm_view(&mut device.tdma, own.view_mut().tile::<m![%s], %" PRId64 ", _>(%" PRId64 "));", name, part,
                  d->wide, count, from);
    }
    tune_line(page, "let %s: HbmTensor<%s, Chip, m![%s]> = own.to_hbm(&mut device.tdma);", name, w->type, w->mapping);
    return true;
}

/* The first kernel's body, which makes `sums`. */
static bool put_first(strbuf *out, const detour *d, const kernel_text *k, port_text *made, arena *a)
{
    if (k->out.bytes > 0) {
        *made = read_port(k->out, a);
        strbuf_printf(out, "    let mut %s: HbmTensor<%s, Chip, m![%s]> = HbmTensor::new();\n", made->name, made->type, made->mapping);
        strbuf_append(out, k->body, k->body_bytes);
        return true;
    }
    *made = read_port(k->head, a);
    size_t end = k->body_bytes, begin;
    while (end > 0 && k->body[end - 1] == '\n')
        end--;
    for (begin = end; begin > 0 && k->body[begin - 1] != '\n'; begin--)
        ;
    line last = {k->body + begin, end - begin};
    if (!begins(last, "    ") || !holds(last, ".to_hbm(&mut device.tdma)"))
        return false;
    made->name = d->sums;
    strbuf_append(out, k->body, begin);
    strbuf_printf(out, "    let %s: HbmTensor<%s, Chip, m![%s]> = %.*s;\n", made->name, made->type, made->mapping, (int)(last.bytes - 4),
                  last.text + 4);
    return true;
}

bool detour_join(const target *t, const detour *d, const char *head, const char *first, const char *second, arena *a, strbuf *out)
{
    kernel_text one, two;
    port_text weights = {0}, sums = {0}, made;
    if (!read_kernel(first, &one) || !read_kernel(second, &two) || one.device.bytes != two.device.bytes ||
        strncmp(one.device.text, two.device.text, one.device.bytes) != 0)
        return false;
    for (size_t i = 0; i < two.port_count; i++) {
        port_text p = read_port(two.ports[i], a);
        if (strcmp(p.name, d->sums) == 0)
            sums = p;
    }
    if (!sums.name)
        return false;
    tune_text text = {0};
    strbuf_init(&text.text, a);
    strbuf *x = &text.text;
    tune_page page = {&text, NULL, a, 1};
    strbuf_puts(x, head);
    if (!put_axes(x, d, &one, &two, a))
        return false;
    for (size_t i = 0; i < one.type_count; i++)
        strbuf_printf(x, "%.*s\n", (int)one.types[i].bytes, one.types[i].text);
    for (size_t i = 0; i < two.type_count; i++)
        if (strcmp(type_of_line(two.types[i], a), "Chip") != 0)
            strbuf_printf(x, "%s\n", second_text(&two, two.types[i].text, two.types[i].bytes, a));
    strbuf_printf(x, "\n%.*s\nfn contract(\n    device: &mut Device,\n", (int)one.device.bytes, one.device.text);
    for (size_t i = 0; i < one.port_count; i++) {
        port_text p = read_port(one.ports[i], a);
        if (strcmp(p.name, d->weights) == 0)
            weights = p;
        put_replaced(x, one.ports[i].text, one.ports[i].bytes, d->wide, d->own);
        strbuf_puts(x, "\n");
    }
    for (size_t i = 0; i < two.port_count; i++) {
        port_text p = read_port(two.ports[i], a);
        for (size_t k = 0; k < one.port_count; k++)
            if (strcmp(read_port(one.ports[k], a).name, p.name) == 0)
                return false;
        if (holds((line){one.body, one.body_bytes}, arena_printf(a, "let %s", p.name)) ||
            holds((line){one.body, one.body_bytes}, arena_printf(a, "let mut %s", p.name)))
            return false;
        if (strcmp(p.name, d->sums) != 0)
            strbuf_printf(x, "%.*s\n", (int)two.ports[i].bytes, two.ports[i].text);
    }
    if (two.out.bytes > 0)
        strbuf_printf(x, "%.*s\n", (int)two.out.bytes, two.out.text);
    strbuf_printf(x, "%.*s\n", (int)two.head.bytes, two.head.text);
    if (!weights.name || !put_weights(&page, t, d, &one, &weights))
        return false;
    tune_line(&page, "// Sums, in rows of whole blocks");
    if (!put_first(x, d, &one, &made, a))
        return false;
    tune_line(&page, "// What is done to them, row by row, whatever batch a row is of");
    tune_line(&page, "let %s: HbmTensor<%s, Chip, m![%s]> = unsafe { %s.reshape() };", d->sums, sums.type, sums.mapping, made.name);
    strbuf_puts(x, second_text(&two, two.body, two.body_bytes, a));
    strbuf_puts(x, "}\n");
    *out = text.text;
    return true;
}

const char *detour_choices(const char *answer, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    for (const char *at = answer; begins((line){at, strlen(at)}, "//");) {
        line l = next_line(&at);
        if (begins(l, "//   "))
            strbuf_printf(&out, "%.*s\n", (int)l.bytes, l.text);
    }
    return out.text;
}
