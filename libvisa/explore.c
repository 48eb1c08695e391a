#include "libvisa/explore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/layout.h"

/* The parameters of one interface, all dimensions. */
static void choice_of(const explore *x, size_t face, const int64_t *choice, strbuf *out)
{
    const dataflow_interface *i = &x->model->interfaces[face];
    for (uint32_t d = 0; d < i->rank; d++) {
        int64_t chosen = 1;
        for (size_t k = 0; k < x->parameter_count; k++)
            if (x->parameters[k].interface == face && x->parameters[k].dimension == d)
                chosen = x->parameters[k].divisors[choice[k]];
        strbuf_printf(out, "%s%" PRId64, d ? ", " : "", chosen);
    }
}

const char *explore_choice_text(const explore *x, const int64_t *choice)
{
    strbuf out;
    strbuf_init(&out, x->arena);
    for (int kind = DATAFLOW_INPUT; kind <= DATAFLOW_WEIGHT; kind++)
        for (size_t i = 0; i < x->model->count; i++)
            if (x->model->interfaces[i].kind == (dataflow_kind)kind) {
                strbuf_printf(&out, "%s%s [", out.bytes ? "  " : "", x->model->interfaces[i].name);
                choice_of(x, i, choice, &out);
                strbuf_puts(&out, "]");
            }
    return out.text;
}

void explore_text(const explore *x, strbuf *out)
{
    strbuf_printf(out, "%s: %" PRId64 " points, %" PRId64 " within the limits, %zu on the front\n", x->model->name, x->points, x->legal,
                  x->count);
    if (x->count == 0)
        return;
    strbuf_printf(out, "%12s %12s %12s %12s  %s\n", "L", "multipliers", "weight bits", "input bits", "iPar and wPar");
    for (size_t i = 0; i < x->count; i++) {
        const explore_point *p = &x->front[i];
        int64_t *choices;
        size_t ways = explore_ways(x, p, &choices);
        for (size_t k = 0; k < ways; k++) {
            const int64_t *way = choices + k * x->parameter_count;
            explore_cost c = explore_cost_of(x, way);
            strbuf_printf(out, "%12" PRId64 " %12" PRId64 " %12" PRId64 " %12" PRId64 "  %s\n", c.latency, c.multipliers, c.weight_bits,
                          c.input_bits, explore_choice_text(x, way));
        }
        if (p->ways > (int64_t)ways)
            strbuf_printf(out, "%52s  and %" PRId64 " ways more\n", "", p->ways - (int64_t)ways);
    }
    const explore_point *cheap = &x->front[0], *fast = &x->front[x->count - 1];
    if (x->limits.cycles)
        strbuf_printf(out, "cheapest in at most %" PRId64 " cycles: %" PRId64 " multipliers, L %" PRId64 ", %" PRId64 " way%s\n",
                      x->limits.cycles, cheap->multipliers, cheap->latency, cheap->ways, cheap->ways == 1 ? "" : "s");
    strbuf_printf(out, "fastest: L %" PRId64 " with %" PRId64 " multipliers, %" PRId64 " way%s\n", fast->latency, fast->multipliers,
                  fast->ways, fast->ways == 1 ? "" : "s");
}

/* A heading; in quotes, and quotes doubled, where it has what CSV means something by. */
static void csv_name(const char *name, uint32_t dimension, strbuf *out)
{
    bool quoted = strpbrk(name, ",\"\r\n") != NULL;
    strbuf_puts(out, quoted ? ",\"" : ",");
    for (; *name; name++)
        strbuf_append(out, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
    strbuf_printf(out, ".%" PRIu32 "%s", dimension, quoted ? "\"" : "");
}

void explore_csv(const explore *x, strbuf *out)
{
    strbuf_puts(out, "L,multipliers,weight_bits,input_bits,ways");
    for (size_t k = 0; k < x->parameter_count; k++)
        csv_name(x->model->interfaces[x->parameters[k].interface].name, x->parameters[k].dimension, out);
    strbuf_puts(out, "\n");
    for (size_t i = 0; i < x->count; i++) {
        int64_t *choices;
        size_t ways = explore_ways(x, &x->front[i], &choices);
        for (size_t n = 0; n < ways; n++) {
            const int64_t *way = choices + n * x->parameter_count;
            explore_cost c = explore_cost_of(x, way);
            strbuf_printf(out, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, c.latency, c.multipliers, c.weight_bits,
                          c.input_bits, x->front[i].ways);
            for (size_t k = 0; k < x->parameter_count; k++)
                strbuf_printf(out, ",%" PRId64, x->parameters[k].divisors[way[k]]);
            strbuf_puts(out, "\n");
        }
    }
}

/* log2 in thousandths, without floating point: the picture is the same everywhere. */
static int64_t log2_thousandths(int64_t n)
{
    int64_t whole = 63 - __builtin_clzll((unsigned long long)n);
    unsigned __int128 mantissa = ((unsigned __int128)n << 62) >> whole; /* 1 to 2, with 62 bits after the point */
    int64_t fraction = 0;
    for (int bit = 0; bit < 12; bit++) {
        mantissa = (mantissa >> 31) * (mantissa >> 31);
        fraction *= 2;
        if (mantissa >> 63) {
            fraction++;
            mantissa >>= 1;
        }
    }
    return whole * 1000 + fraction * 1000 / 4096;
}

void explore_svg(const explore *x, strbuf *out)
{
    enum { WIDTH = 640, HEIGHT = 400, LEFT = 60, BELOW = 40 };
    int64_t across = 1, up = 1;
    for (size_t i = 0; i < x->count; i++) {
        int64_t a = log2_thousandths(x->front[i].multipliers), u = log2_thousandths(x->front[i].latency);
        across = a > across ? a : across;
        up = u > up ? u : up;
    }
    strbuf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n",
                  WIDTH + LEFT + 20, HEIGHT + BELOW + 20);
    strbuf_printf(out, "<text x=\"%d\" y=\"%d\">multipliers (log)</text>\n<text x=\"4\" y=\"14\">L in cycles (log)</text>\n",
                  LEFT + WIDTH / 2, HEIGHT + BELOW + 10);
    strbuf_printf(out, "<path d=\"M%d 20V%dH%d\" fill=\"none\" stroke=\"#888\"/>\n", LEFT, HEIGHT + 20, LEFT + WIDTH);
    for (size_t i = 0; i < x->count; i++) {
        int64_t *choices;
        explore_ways(x, &x->front[i], &choices);
        const explore_cost c = explore_cost_of(x, choices);
        int64_t at = LEFT + log2_thousandths(c.multipliers) * (WIDTH - 10) / across,
                down = 20 + HEIGHT - log2_thousandths(c.latency) * (HEIGHT - 10) / up;
        strbuf_printf(out,
                      "<circle cx=\"%" PRId64 "\" cy=\"%" PRId64 "\" r=\"3\" fill=\"#1f6fb2\"><title>L %" PRId64 ", %" PRId64
                      " multipliers, %" PRId64 " weight bits: ",
                      at, down, c.latency, c.multipliers, c.weight_bits);
        strbuf_puts_xml(out, explore_choice_text(x, choices));
        strbuf_puts(out, "</title></circle>\n");
    }
    strbuf_puts(out, "</svg>\n");
}

/* ---- the query ---- */

/* `together`: may all of them be asked for at once? */
static const dataflow_model *model_named(visa_compilation *c, const char *name, const char *option, bool together)
{
    const module *m = c->module;
    const char *names = "";
    for (size_t i = 0; i < m->dataflow_count; i++) {
        if (name ? strcmp(m->dataflows[i]->name, name) == 0 : m->dataflow_count == 1)
            return m->dataflows[i];
        names = arena_printf(c->arena, "%s%s%s", names, i ? ", " : "", m->dataflows[i]->name);
    }
    diag *d = m->dataflow_count == 0 ? diag_add(&c->diags, E_DATAFLOW_EXPLORE, SRC_NOWHERE, "the file has no dataflow item")
              : name                 ? diag_add(&c->diags, E_DATAFLOW_EXPLORE, SRC_NOWHERE, "there is no dataflow item `%s`", name)
                     : diag_add(&c->diags, E_DATAFLOW_EXPLORE, SRC_NOWHERE, "the file has %zu dataflow items", m->dataflow_count);
    if (m->dataflow_count == 0)
        diag_help(&c->diags, d, "write `const NAME: Dataflow = Dataflow { .. };`");
    else
        diag_help(&c->diags, d, "%s=NAME with one of: %s%s", option, names,
                  !name && together ? "; --search=chain or folding takes all together" : "");
    return NULL;
}

static int64_t tighter(int64_t limit, int64_t other)
{
    return limit == 0 || other < limit ? other : limit;
}

/* A slice multiplies one packet by so many Rows per cycle; each inference of a batch has a slice. */
void explore_limit_to_target(explore_limits *l, const target *t, int64_t batch)
{
    int64_t bits;
    if (!__builtin_mul_overflow(t->mac_width_bytes * 8, batch, &bits))
        l->input_bits = tighter(l->input_bits, bits);
    l->rows = tighter(l->rows, t->rows);
}

/* What the other processes found, in the one that writes. */
static bool gather(explore *x, const visa_explore_options *o)
{
    int64_t *mine, *all;
    size_t count = explore_save(x, &mine), *counts, ranks;
    if (!o->gather(o->user, mine, count, &all, &counts, &ranks))
        return false;
    if (ranks == 0)
        return true;
    bool same = true;
    const int64_t *others = all + counts[0];
    for (size_t i = 1; i < ranks && same; others += counts[i], i++)
        same = explore_merge(x, others, counts[i]);
    free(all);
    free(counts);
    return same;
}

bool explore_target(visa_compilation *c, const dataflow_model *m, const visa_explore_options *o, int64_t *cycles)
{
    *cycles = o->target_cycles;
    if (o->target_rate == 0)
        return true;
    __int128 most = (__int128)m->clock_hz * m->batch;
    *cycles = most / o->target_rate > INT64_MAX ? INT64_MAX : (int64_t)(most / o->target_rate);
    if (*cycles > 0)
        return true;
    if (m->clock_hz == 0)
        diag_help(&c->diags,
                  diag_add(&c->diags, E_DATAFLOW_EXPLORE, m->range,
                           "`%s` says no clock, and %" PRId64 " inferences per second are asked for", m->name, o->target_rate),
                  "write `clock_hz: 100_000_000`, or ask for --target-cycles");
    else
        diag_help(&c->diags,
                  diag_add(&c->diags, E_DATAFLOW_EXPLORE, m->range,
                           "`%s` makes %" PRId64 " inferences per second at most, one (of a batch of %" PRId64 ") per cycle; %" PRId64
                           " are asked for",
                           m->name, most > INT64_MAX ? INT64_MAX : (int64_t)most, m->batch, o->target_rate),
                  "ask for fewer");
    return false;
}

int64_t explore_fold_target(const visa_explore_options *o, int64_t cycles)
{
    return o->target_rate && cycles < INT64_MAX ? cycles + 1 : cycles; /* FINN's folding goes below its target */
}

/* All items, or the one that is named. */
static bool write_network(visa_compilation *c, const visa_explore_options *o, const unsigned char **data, size_t *size)
{
    const dataflow_model **models = (const dataflow_model **)c->module->dataflows, *one;
    size_t count = c->module->dataflow_count;
    strbuf out;
    strbuf_init(&out, c->arena);
    if (o->model || count == 0) {
        models = &one;
        count = 1;
        if (!(one = model_named(c, o->model, "--explore", false)))
            return false;
    }
    if (!network_explore(c, models, count, o, &out))
        return false;
    if (o->part > 0) /* another process writes */
        return true;
    *data = (const unsigned char *)out.text;
    *size = out.bytes;
    return true;
}

/* The kernel of the point that is written. */
static bool write_point(visa_compilation *c, const visa_explore_options *o, const unsigned char **data, size_t *size)
{
    const dataflow_model *m = model_named(c, o->model, "--kernel", false);
    explore x = {.model = m, .arena = c->arena};
    strbuf out;
    strbuf_init(&out, c->arena);
    if (!m || !explore_kernel(&x, true, c->target, &c->diags, &out))
        return false;
    *data = (const unsigned char *)out.text;
    *size = out.bytes;
    return true;
}

bool visa_explore(visa_compilation *c, const visa_explore_options *o, const unsigned char **data, size_t *size)
{
    *data = NULL;
    *size = 0;
    if (COMPILATION_STOPS(c) || c->diags.error_count > 0 || c->is_book || c->binary_only)
        return false;
    if (o->form != VISA_EXPLORE_POINT && (o->chain || (o->folding && !o->model && c->module->dataflow_count > 1)))
        return write_network(c, o, data, size);
    explore x;
    if (o->form == VISA_EXPLORE_POINT)
        return write_point(c, o, data, size);
    const dataflow_model *m = model_named(c, o->model, "--explore", o->form == VISA_EXPLORE_TEXT || o->form == VISA_EXPLORE_JSON);
    if (!m || !explore_open(&x, m, c->arena, &c->diags))
        return false;
    int64_t cycles;
    if (!explore_target(c, m, o, &cycles))
        return false;
    x.limits = (explore_limits){o->multipliers, o->weight_bits, o->input_bits, o->block_bits, o->rows, o->folding ? 0 : cycles};
    if (o->target_limits || o->form == VISA_EXPLORE_KERNEL)
        explore_limit_to_target(&x.limits, c->target, m->batch);
    x.part = o->part;
    x.parts = o->parts > 0 ? o->parts : 1;
    x.progress = o->progress;
    x.user = o->user;
    bool walks = !o->folding && o->form != VISA_EXPLORE_KERNEL;
    if (o->folding)
        explore_fold(&x, explore_fold_target(o, cycles));
    else if (walks)
        explore_run(&x);
    if (walks && o->gather && !gather(&x, o))
        return false;
    if (o->part > 0)
        return true;
    strbuf out;
    strbuf_init(&out, c->arena);
    switch (o->form) {
    case VISA_EXPLORE_CSV: explore_csv(&x, &out); break;
    case VISA_EXPLORE_SVG: explore_svg(&x, &out); break;
    case VISA_EXPLORE_JSON: explore_json(&x, &out); break;
    case VISA_EXPLORE_KERNEL:
        if (!explore_kernel(&x, false, c->target, &c->diags, &out))
            return false;
        break;
    default: explore_text(&x, &out);
    }
    *data = (const unsigned char *)out.text;
    *size = out.bytes;
    return true;
}
