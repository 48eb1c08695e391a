#include <inttypes.h>
#include <string.h>

#include "codegen/dump.h"
#include "codegen/loops.h"
#include "codegen/step/text.h"
#include "codegen/unroll.h"
#include "support/strbuf.h"
#include "target/einsum_text.h"

static void put_axes(strbuf *s, const binary_kernel *k)
{
    strbuf_puts(s, "  axes\n");
    for (uint32_t i = 0; i < k->axis_count; i++)
        strbuf_printf(s, "    %" PRIu32 ": %s = %" PRId64 " elements\n", i, k->axes[i].name, k->axes[i].size);
}

static const char *space_name(port_space space)
{
    static const char *const names[] = {"hbm", "dm", "trf", "stream", "vrf"};
    return names[space];
}

static void put_port(strbuf *s, const binary_kernel *k, uint32_t number)
{
    const port *p = &k->ports[number];
    strbuf_printf(s, "    %" PRIu32 ": %s %s %s in %s", number, p->direction == PORT_IN ? "in" : "out", p->name,
                  dtype_row_of(p->dtype)->name, space_name(p->space));
    if (p->space == PORT_TRF)
        strbuf_printf(s, ", %s", trf_address_name(p->trf_address));
    if (p->space == PORT_HBM || p->space == PORT_DM || p->space == PORT_VRF)
        strbuf_printf(s, ", address %" PRId64 " bytes", p->address);
    strbuf_puts(s, "\n");
    for (int c = 0; c < COMPONENT_COUNT; c++) {
        if (!p->mapping[c].count)
            continue;
        strbuf_printf(s, "      %s", port_component_name((port_component)c));
        strbuf_pad_to(s, 15);
        strbuf_printf(s, "m![%s]", layout_text(p->mapping[c], k->axes, s->arena));
        strbuf_printf(s, ", %" PRId64 " positions\n", layout_size(p->mapping[c], k->axes));
    }
}

static void put_statement(strbuf *s, const einsum *e, const einsum_statement *st)
{
    strbuf_printf(s, "    %s = ", e->tensors[st->dst].name);
    strbuf_puts(s, math_row_of(st->op)->name);
    if (st->fold)
        strbuf_printf(s, " by %s", scalar_row_of(st->fold)->name);
    strbuf_puts(s, " ");
    einsum_print_expression(s, e, st);
    for (uint32_t i = 0; i < st->source_count && !st->step_count; i++)
        strbuf_printf(s, "%s%s", i ? ", " : "", e->tensors[st->sources[i]].name);
    if (st->op == MATH_FILL)
        strbuf_printf(s, "0x%" PRIx32, st->bits);
    strbuf_printf(s, " in %s as %s\n", dtype_row_of(st->accumulator)->name, dtype_row_of(e->tensors[st->dst].dtype)->name);
    for (uint32_t i = 0; i < st->digit_count; i++) {
        const einsum_digit *d = &st->digits[i];
        strbuf_printf(s, "      %s %s: size %" PRId64 ", weight %" PRId64 " elements", d->kept ? "for" : "sum", e->axes[d->axis].name,
                      d->size, d->weight);
        for (uint32_t k = 0; k < st->source_count; k++)
            if (!einsum_digit_indexes(d, (einsum_side)(EINSUM_A + k)))
                strbuf_printf(s, ", repeats %s", e->tensors[st->sources[k]].name);
        if (!einsum_digit_indexes(d, EINSUM_DST))
            strbuf_puts(s, ", not of the destination");
        if (d->lane)
            strbuf_printf(s, ", %u lanes apart", d->lane);
        if (d->group)
            strbuf_printf(s, ", %" PRId64 " positions of group %u apart", d->stride, d->group);
        strbuf_puts(s, "\n");
    }
    for (uint32_t i = 0; i < st->piece_count; i++) {
        const einsum_piece *p = &st->pieces[i];
        strbuf_printf(s, "      order group %u: position / %" PRId64 " %% %" PRId64, p->group, p->weight, p->size);
        if (p->lane)
            strbuf_printf(s, ", %u lanes apart", p->lane);
        strbuf_puts(s, "\n");
    }
    for (uint32_t i = 0; i < st->shift_count; i++) {
        const einsum_shift *h = &st->shifts[i];
        strbuf_printf(s, "      %s from %s %" PRId64 "\n", e->tensors[einsum_operand(st, h->side)].name, e->axes[h->axis].name, h->offset);
    }
}

static const char *index_text(const einsum_index *x, arena *a)
{
    const char *text = arena_printf(a, " of element / %" PRId64, x->step * x->div);
    text = x->mod ? arena_printf(a, "%s %% %" PRId64, text, x->mod) : text;
    return x->positions ? arena_printf(a, "%s, %" PRId64 " positions", text, x->positions) : text;
}

static void put_indices(strbuf *s, const einsum *e, const einsum_statement *st)
{
    for (uint32_t i = 0; i < einsum_index_count(st); i++)
        strbuf_printf(s, "      %s of %s from %s, %" PRId64 " each%s\n", e->axes[st->indices[i].axis].name,
                      e->tensors[einsum_operand(st, einsum_indexed_side(st))].name, e->tensors[st->sources[i + 1]].name,
                      st->indices[i].unit, !einsum_index_divides(&st->indices[i]) ? "" : index_text(&st->indices[i], s->arena));
    if (st->counted)
        strbuf_printf(s, "      the first %s of each %" PRId64 " of %s\n", e->tensors[einsum_operand(st, einsum_count_side(st))].name,
                      st->count_span, e->tensors[st->sources[1]].name);
}

static void put_einsum(strbuf *s, const einsum *e)
{
    if (!e->tensor_count)
        return;
    strbuf_printf(s, "  einsum %s\n", e->text);
    for (uint32_t i = 0; i < e->window_count; i++) {
        const einsum_window *x = &e->windows[i];
        strbuf_printf(s, "    window %s:", e->axes[x->axis].name);
        for (uint32_t k = 0; k < x->term_count; k++)
            strbuf_printf(s, "%s %s / %" PRId64 " %% %" PRId64 " * %" PRId64, k ? " +" : "", e->axes[x->terms[k].axis].name,
                          x->terms[k].weight, x->terms[k].extent, x->terms[k].stride);
        if (x->bordered)
            strbuf_printf(s, ", held from place %" PRId64 " on", x->first);
        strbuf_puts(s, "\n");
    }
    for (uint32_t i = 0; i < e->tensor_count; i++) {
        const einsum_tensor *t = &e->tensors[i];
        strbuf_printf(s, "    tensor %s: %s[", t->name, dtype_row_of(t->dtype)->name);
        for (uint32_t r = 0; r < t->rank; r++)
            strbuf_printf(s, "%s%s", r ? ", " : "", e->axes[t->axes[r]].name);
        strbuf_puts(s, "]");
        if (t->port >= 0)
            strbuf_printf(s, ", port %" PRId32, t->port);
        strbuf_puts(s, "\n");
    }
    for (uint32_t i = 0; i < e->statement_count; i++) {
        put_statement(s, e, &e->statements[i]);
        put_indices(s, e, &e->statements[i]);
    }
}

static void put_value(strbuf *s, const command_field_row *row, int64_t value)
{
    strbuf_printf(s, "%s", command_value_text(row, value, s->arena));
    if (command_value_name(row, value))
        strbuf_printf(s, " (%s %" PRId64 ")", row->unit, value);
    else
        strbuf_printf(s, " %s", row->unit);
}

static void put_table(strbuf *s, const command *c)
{
    const command_row *row = command_row_of(c->op);
    if (!row->column_count)
        return;
    strbuf_printf(s, "      table, %s\n", row->entry_order);
    for (unsigned e = 0; e < c->entry_count; e++) {
        strbuf_printf(s, "        entry %u:", e);
        for (unsigned i = 0; i < row->column_count; i++) {
            const command_field_row *column = command_column_row_of((command_column)(row->first_column + i));
            strbuf_printf(s, "%s %s ", i ? "," : "", column->name);
            put_value(s, column, c->entries[e][i]);
        }
        strbuf_puts(s, "\n");
    }
    if (command_loop_count(c))
        strbuf_puts(s, "      loops\n");
    for (unsigned depth = 0; depth < command_loop_count(c); depth++) {
        strbuf_printf(s, "        %*sfor i%u in 0..%" PRId64 ":", (int)depth * 2, "", depth, command_loop_size(c, depth));
        const char *steps = command_loop_steps(c, depth, s->arena);
        strbuf_printf(s, "%s%s\n", *steps ? " " : "", steps);
    }
}

static void put_command(strbuf *s, const command *c, const uint64_t *words, unsigned word_count)
{
    const command_row *row = command_row_of(c->op);
    strbuf_printf(s, "    0x%04" PRIx32 " %s", c->offset, row->name);
    if (c->line)
        strbuf_printf(s, ", line %" PRIu32, c->line);
    strbuf_puts(s, "\n      words");
    for (unsigned i = 0; i < word_count; i++)
        strbuf_printf(s, "%s%016" PRIx64, i && i % 4 == 0 ? "\n            " : " ", words[i]);
    strbuf_puts(s, "\n");
    for (unsigned i = 0; i < row->field_count; i++) {
        const command_field_row *field = command_field_row_of((command_field)(row->first_field + i));
        strbuf_printf(s, "      %s", field->name);
        strbuf_pad_to(s, 24);
        put_value(s, field, c->fields[i]);
        strbuf_puts(s, "\n");
    }
    put_table(s, c);
}

typedef struct stream_dump {
    const command *stored;
    size_t count;
    const uint64_t *words;
} stream_dump;

/* What an advance command adds in iteration n of its loop. */
static void put_advance(strbuf *s, const stream_dump *d, size_t body, const command *advance, unsigned depth)
{
    for (unsigned e = 0; e < advance->entry_count; e++) {
        command_place p = command_advance_place(d->stored, d->count, body, advance, e);
        strbuf_printf(s, "        0x%04" PRIx32 " %s", p.at->offset, command_row_of(p.at->op)->name);
        if (p.entry >= 0)
            strbuf_printf(s, " entry %d", p.entry);
        strbuf_printf(s, ": %s += n%u*%" PRId64 " %s\n", p.row->name, depth, command_entry(advance, e, ADVANCE_STEP), p.row->unit);
    }
}

static void put_indented(strbuf *s, const char *text)
{
    for (const char *end; *text; text = end) {
        end = strchr(text, '\n') + 1;
        strbuf_puts(s, "    ");
        strbuf_append(s, text, (size_t)(end - text));
    }
}

/* The commands from `begin` to `end`, inside of `depth` loops, each loop with its body. */
static void put_range(strbuf *s, const stream_dump *d, size_t begin, size_t end, unsigned depth)
{
    for (size_t i = begin; i < end; i++) {
        put_command(s, &d->stored[i], d->words + d->stored[i].offset / 8, command_words(&d->stored[i]));
        if (d->stored[i].op != OP_LOOP)
            continue;
        size_t body = command_loop_body(d->stored, d->count, i), after = command_loop_end(d->stored, d->count, i);
        int64_t iterations = command_get(&d->stored[i], LOOP_COUNT);
        for (i++; i < body; i++) {
            put_command(s, &d->stored[i], d->words + d->stored[i].offset / 8, command_words(&d->stored[i]));
            strbuf_puts(s, "      advances\n");
            put_advance(s, d, body, &d->stored[i], depth);
        }
        strbuf inside;
        strbuf_init(&inside, s->arena);
        put_range(&inside, d, body, after, depth + 1);
        strbuf_printf(s, "    for n%u in 0..%" PRId64 ":\n", depth, iterations);
        put_indented(s, inside.text);
        i = after - 1;
    }
}

static void put_stream(strbuf *s, const binary_kernel *k, context where)
{
    uint64_t *words;
    size_t count, commands = k->streams[where].count, stored = k->streams[where].stored_count;
    if (!commands || !binary_stream_words(k, where, s->arena, &words, &count))
        return;
    strbuf_printf(s, "  %s context, %zu commands, %zu bytes", context_name(where), stored, count * 8);
    if (stored != commands)
        strbuf_printf(s, "; with loops %zu are run", commands);
    strbuf_puts(s, "\n");
    put_range(s, &(stream_dump){k->streams[where].stored, stored, words}, 0, stored, 0);
}

const char *binary_to_text(const binary *b, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "visa binary, format %d, target %s\n", BINARY_FORMAT_VERSION, b->target->name);
    for (size_t i = 0; i < b->kernel_count; i++) {
        const binary_kernel *k = &b->kernels[i];
        strbuf_printf(&s, "\nkernel %s\n", k->name);
        put_axes(&s, k);
        strbuf_puts(&s, "  ports\n");
        for (uint32_t p = 0; p < k->port_count; p++)
            put_port(&s, k, p);
        put_einsum(&s, &k->einsum);
        for (int where = CONTEXT_MAIN; where <= CONTEXT_DMA; where++)
            put_stream(&s, k, (context)where);
    }
    for (size_t i = 0; i < b->program_count; i++) {
        strbuf_puts(&s, "\n");
        step_program_print(&b->programs[i], &s);
    }
    strbuf_puts(&s, "\nsymbols\n");
    for (size_t i = 0; i < b->symbol_count; i++) {
        const binary_symbol *y = &b->symbols[i];
        strbuf_printf(&s, "  %s: %s, offset 0x%" PRIx64 ", %" PRIu64 " bytes\n", y->name, y->section, y->offset, y->size);
    }
    return s.text;
}
