#include "runtime/step/diff.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "codegen/step/text.h"
#include "support/align.h"
#include "support/strbuf.h"

typedef struct side {
    const step_program *program;
    const json_t *costs; /* NULL: not known */
    uint32_t *partner;   /* by node: of the other side, or NONE */
} side;

enum { NONE = UINT32_MAX };

/* ---- alignment ---- */

/* Compilers' names, `map.3`, are numbered, and say little. */
static bool is_written_name(const step_node *n)
{
    const char *op = step_op_row_of(n->op)->name;
    size_t bytes = strlen(op);
    return strncmp(n->name, op, bytes) != 0 || (n->name[bytes] != '\0' && n->name[bytes] != '.');
}

typedef struct side_pair {
    const side *a, *b;
    const char **text_a, **text_b; /* of each node */
} side_pair;

static unsigned likeness(const void *user, size_t i, size_t k)
{
    const side_pair *of = user;
    const step_node *x = &of->a->program->nodes[i], *y = &of->b->program->nodes[k];
    bool one_name = strcmp(x->name, y->name) == 0 && is_written_name(x);
    if (x->op != y->op)
        return one_name ? 1 : 0;
    return 2 + (one_name ? 4 : 0) + (strcmp(of->text_a[i], of->text_b[k]) == 0 ? 2 : 0);
}

static const char **texts_of(const side *s, arena *a)
{
    const char **texts = ARENA_ARRAY(a, const char *, s->program->node_count + 1);
    for (uint32_t i = 0; i < s->program->node_count; i++)
        texts[i] = step_node_text(s->program, &s->program->nodes[i], a);
    return texts;
}

/* Those of one name and operator, where the programs are too long for a table. */
static void pair_by_name(side *a, side *b)
{
    for (uint32_t i = 0; i < a->program->node_count; i++)
        for (uint32_t k = 0; k < b->program->node_count; k++)
            if (a->program->nodes[i].op == b->program->nodes[k].op && strcmp(a->program->nodes[i].name, b->program->nodes[k].name) == 0) {
                a->partner[i] = k;
                b->partner[k] = i;
            }
}

static void align(side *a, side *b, arena *arena_of)
{
    size_t rows = a->program->node_count, columns = (size_t)b->program->node_count + 1;
    a->partner = ARENA_ARRAY(arena_of, uint32_t, rows + 1);
    b->partner = ARENA_ARRAY(arena_of, uint32_t, columns);
    memset(a->partner, 0xff, (rows + 1) * sizeof *a->partner);
    memset(b->partner, 0xff, columns * sizeof *b->partner);
    side_pair of = {a, b, texts_of(a, arena_of), texts_of(b, arena_of)};
    size_t *partner = ARENA_ARRAY(arena_of, size_t, rows + 1);
    if (!align_lists(rows, columns - 1, likeness, &of, arena_of, partner)) {
        pair_by_name(a, b);
        return;
    }
    for (size_t i = 0; i < rows; i++)
        if (partner[i] != SIZE_MAX) {
            a->partner[i] = (uint32_t)partner[i];
            b->partner[partner[i]] = (uint32_t)i;
        }
}

/* ---- what changed ---- */

static void changed(strbuf *s, const char *indent, const char *what, const char *was, const char *is)
{
    if (strcmp(was, is) != 0)
        strbuf_printf(s, "%s%s: %s -> %s\n", indent, what, was, is);
}

/* Without the numbers of sizes that have no name of their own: ~R.5 is ~R. */
static const char *unnumbered(const char *text, arena *a)
{
    char *out = arena_strdup(a, text), *to = out;
    for (const char *at = text; *at;)
        if (at[0] == '.' && isdigit((unsigned char)at[1]))
            for (at++; isdigit((unsigned char)*at);)
                at++;
        else
            *to++ = *at++;
    *to = '\0';
    return out;
}

/* The name that the producer has afterwards: one that only has another number is the same one. */
static const char *producer_text(const side *s, const side *after, const step_input *in, arena *a)
{
    bool paired = s != after && s->partner[in->node] != NONE;
    const char *name = paired ? after->program->nodes[s->partner[in->node]].name : s->program->nodes[in->node].name;
    return arena_printf(a, "%s.%" PRIu32 ", %s", name, in->port, step_depth_text(in, a));
}

static const json_t *cost_of(const json_t *costs, const char *name)
{
    const json_t *onchip = json_object_get(costs, "onchip_bytes");
    return strcmp(name, "on-chip bytes, paper") == 0      ? json_object_get(onchip, "paper")
           : strcmp(name, "on-chip bytes, artifact") == 0 ? json_object_get(onchip, "artifact")
           : strcmp(name, "FLOPs") == 0                   ? json_object_get(costs, "flops")
                                                          : json_object_get(costs, "offchip_bytes");
}

/* "4*B = 256", "4*B", "256" */
static const char *cost_text(const json_t *cost, arena *a)
{
    const char *expression = json_string_value(json_object_get(cost, "expr"));
    const json_t *value = json_object_get(cost, "value");
    const char *number = json_is_integer(value) ? arena_printf(a, "%" JSON_INTEGER_FORMAT, json_integer_value(value)) : NULL;
    if (!expression || !number || strcmp(expression, number) == 0)
        return expression ? expression : "(past 2^62)";
    return arena_printf(a, "%s = %s", expression, number);
}

static const char *const cost_names[] = {"off-chip bytes", "on-chip bytes, paper", "on-chip bytes, artifact", "FLOPs"};
enum { COSTS = sizeof cost_names / sizeof *cost_names };

/* Those that differ, or all of them. */
static void diff_costs(strbuf *s, const char *indent, const json_t *a, const json_t *b, bool all)
{
    for (size_t i = 0; a && b && i < COSTS; i++) {
        const json_t *x = cost_of(a, cost_names[i]), *y = cost_of(b, cost_names[i]);
        const json_t *m = json_object_get(x, "value"), *n = json_object_get(y, "value");
        const char *was = cost_text(x, s->arena), *is = cost_text(y, s->arena);
        bool same_value = json_is_integer(m) ? json_equal(m, n) : strcmp(unnumbered(was, s->arena), unnumbered(is, s->arena)) == 0;
        if (same_value && all)
            strbuf_printf(s, "%s%s: %s\n", indent, cost_names[i], is);
        if (same_value)
            continue;
        strbuf_printf(s, "%s%s: %s -> %s", indent, cost_names[i], was, is);
        if (json_is_integer(m) && json_is_integer(n))
            strbuf_printf(s, "  %+" JSON_INTEGER_FORMAT, json_integer_value(n) - json_integer_value(m));
        strbuf_puts(s, "\n");
    }
}

static const json_t *costs_of_node(const side *s, uint32_t node)
{
    return json_array_get(json_object_get(s->costs, "operators"), node);
}

static void diff_node(strbuf *s, const side *a, uint32_t i, const side *b)
{
    const step_node *x = &a->program->nodes[i], *y = &b->program->nodes[a->partner[i]];
    strbuf inner;
    strbuf_init(&inner, s->arena);
    const char *indent = "      ";
    changed(&inner, indent, "operator", step_node_text(a->program, x, s->arena), step_node_text(b->program, y, s->arena));
    for (uint32_t k = 0; k < x->input_count || k < y->input_count; k++)
        changed(&inner, indent, arena_printf(s->arena, "in %" PRIu32, k),
                k < x->input_count ? producer_text(a, b, &x->inputs[k], s->arena) : "none",
                k < y->input_count ? producer_text(b, b, &y->inputs[k], s->arena) : "none");
    for (uint32_t k = 0; k < x->output_count || k < y->output_count; k++) {
        const char *was = k < x->output_count ? step_output_text(a->program, &x->outputs[k], s->arena) : "none";
        const char *is = k < y->output_count ? step_output_text(b->program, &y->outputs[k], s->arena) : "none";
        if (strcmp(unnumbered(was, s->arena), unnumbered(is, s->arena)) != 0)
            changed(&inner, indent, arena_printf(s->arena, "out %" PRIu32, k), was, is);
    }
    diff_costs(&inner, indent, costs_of_node(a, i), costs_of_node(b, a->partner[i]), false);
    bool renamed = strcmp(x->name, y->name) != 0 && (is_written_name(x) || is_written_name(y));
    if (inner.bytes > 0 || renamed)
        strbuf_printf(s, "  ~ %s, line %" PRIu32 " -> %s, line %" PRIu32 "\n%s", x->name, x->line, y->name, y->line, inner.text);
}

static void alone(strbuf *s, char sign, const side *from, uint32_t i)
{
    const step_node *n = &from->program->nodes[i];
    strbuf_printf(s, "  %c %s = %s, line %" PRIu32 ": %s", sign, n->name, step_node_text(from->program, n, s->arena), n->line,
                  sign == '-' ? "removed" : "added");
    for (uint32_t k = 0; k < n->output_count; k++)
        strbuf_printf(s, ", %s", step_output_text(from->program, &n->outputs[k], s->arena));
    strbuf_puts(s, "\n");
}

static const step_tensor *tensor_named(const step_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->tensor_count; i++)
        if (strcmp(p->tensors[i].name, name) == 0)
            return &p->tensors[i];
    return NULL;
}

static void diff_tensors(strbuf *s, const step_program *a, const step_program *b)
{
    for (uint32_t i = 0; i < a->tensor_count; i++) {
        const step_tensor *other = tensor_named(b, a->tensors[i].name);
        changed(s, "  ", arena_printf(s->arena, "tensor %s", a->tensors[i].name), step_tensor_text(&a->tensors[i], s->arena),
                other ? step_tensor_text(other, s->arena) : "removed");
    }
    for (uint32_t i = 0; i < b->tensor_count; i++)
        if (!tensor_named(a, b->tensors[i].name))
            strbuf_printf(s, "  tensor %s: added, %s\n", b->tensors[i].name, step_tensor_text(&b->tensors[i], s->arena));
}

static void diff_programs(strbuf *s, side a, side b)
{
    strbuf_printf(s, strcmp(a.program->name, b.program->name) ? "stream program %s -> %s\n" : "stream program %s\n", a.program->name,
                  b.program->name);
    size_t nothing = s->bytes;
    align(&a, &b, s->arena);
    changed(s, "  ", "machine", step_machine_text(&a.program->machine, s->arena), step_machine_text(&b.program->machine, s->arena));
    diff_tensors(s, a.program, b.program);
    uint32_t k = 0;
    for (uint32_t i = 0; i < a.program->node_count; i++) {
        if (a.partner[i] == NONE) {
            alone(s, '-', &a, i);
            continue;
        }
        for (; k < a.partner[i]; k++)
            if (b.partner[k] == NONE)
                alone(s, '+', &b, k);
        diff_node(s, &a, i, &b);
    }
    for (; k < b.program->node_count; k++)
        if (b.partner[k] == NONE)
            alone(s, '+', &b, k);
    if (s->bytes == nothing) {
        strbuf_puts(s, "  the same operators\n");
        return;
    }
    if (!a.costs || !b.costs) {
        strbuf_puts(s, "  costs: known of two sources only\n");
        return;
    }
    strbuf_puts(s, "  total\n");
    diff_costs(s, "    ", json_object_get(a.costs, "total"), json_object_get(b.costs, "total"), true);
}

/* ---- files ---- */

static const step_program *program_named(const binary *b, const char *name)
{
    for (size_t i = 0; i < b->program_count; i++)
        if (strcmp(b->programs[i].name, name) == 0)
            return &b->programs[i];
    return NULL;
}

static const json_t *costs_named(const json_t *costs, const char *name)
{
    for (size_t i = 0; i < json_array_size(costs); i++) {
        const char *program = json_string_value(json_object_get(json_array_get(costs, i), "program"));
        if (program && strcmp(program, name) == 0)
            return json_array_get(costs, i);
    }
    return NULL;
}

static void diff_files(strbuf *s, const binary *before, const json_t *costs_before, const binary *after, const json_t *costs_after)
{
    bool one_each = before->program_count == 1 && after->program_count == 1;
    for (size_t i = 0; i < before->program_count; i++) {
        const step_program *p = &before->programs[i], *other = one_each ? &after->programs[0] : program_named(after, p->name);
        if (!other)
            strbuf_printf(s, "stream program %s: removed\n", p->name);
        else
            diff_programs(s, (side){.program = p, .costs = costs_named(costs_before, p->name)},
                          (side){.program = other, .costs = costs_named(costs_after, other->name)});
    }
    for (size_t i = 0; i < after->program_count && !one_each; i++)
        if (!program_named(before, after->programs[i].name))
            strbuf_printf(s, "stream program %s: added\n", after->programs[i].name);
}

const char *step_diff(step_diff_side before, step_diff_side after, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    json_t *x = before.costs ? json_loads(before.costs, 0, NULL) : NULL, *y = after.costs ? json_loads(after.costs, 0, NULL) : NULL;
    diff_files(&s, before.programs, x, after.programs, y);
    json_decref(x);
    json_decref(y);
    return s.text;
}
