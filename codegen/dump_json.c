#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/dump.h"
#include "codegen/loops.h"
#include "codegen/step/json.h"
#include "codegen/unroll.h"
#include "support/json_text.h"

/* jansson's setters take over the value and accept NULL, so that a failed allocation only makes them fail;
 * `failed` remembers it. */
typedef struct json_dump {
    arena *arena;
    bool failed;
} json_dump;

static void set(json_dump *j, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value))
        j->failed = true;
}

static void push(json_dump *j, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value))
        j->failed = true;
}

static void set_number(json_dump *j, json_t *object, const char *key, int64_t value)
{
    set(j, object, key, json_integer(value));
}

static void set_text(json_dump *j, json_t *object, const char *key, const char *text)
{
    set(j, object, key, json_string(text));
}

static json_t *axes_json(json_dump *j, const binary_kernel *k)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < k->axis_count; i++) {
        json_t *axis = json_object();
        set_text(j, axis, "name", k->axes[i].name);
        set_number(j, axis, "size", k->axes[i].size);
        push(j, list, axis);
    }
    return list;
}

static json_t *port_json(json_dump *j, const binary_kernel *k, const port *p)
{
    static const char *const spaces[] = {"hbm", "dm", "trf", "stream", "vrf"};
    json_t *out = json_object(), *mapping = json_object(), *positions = json_object();
    set_text(j, out, "name", p->name);
    set_text(j, out, "direction", p->direction == PORT_IN ? "in" : "out");
    set_text(j, out, "dtype", dtype_row_of(p->dtype)->name);
    set_text(j, out, "space", spaces[p->space]);
    if (p->space == PORT_TRF)
        set_text(j, out, "trf_address", trf_address_name(p->trf_address));
    set_number(j, out, "address", p->address);
    for (int c = 0; c < COMPONENT_COUNT; c++) {
        if (!p->mapping[c].count)
            continue;
        const char *name = port_component_name((port_component)c);
        set_text(j, mapping, name, layout_text(p->mapping[c], k->axes, j->arena));
        set_number(j, positions, name, layout_size(p->mapping[c], k->axes));
    }
    set(j, out, "mapping", mapping);
    set(j, out, "positions", positions);
    return out;
}

static json_t *tensor_json(json_dump *j, const einsum *e, const einsum_tensor *t)
{
    json_t *out = json_object(), *axes = json_array();
    set_text(j, out, "name", t->name);
    set_text(j, out, "dtype", dtype_row_of(t->dtype)->name);
    set(j, out, "port", t->port < 0 ? json_null() : json_integer(t->port));
    for (uint32_t i = 0; i < t->rank; i++)
        push(j, axes, json_string(e->axes[t->axes[i]].name));
    set(j, out, "axes", axes);
    return out;
}

/* The sources, by their place in `sources`, that the digit does not index. */
static json_t *broadcast_json(json_dump *j, const einsum_digit *d)
{
    json_t *out = json_array();
    for (einsum_side side = EINSUM_A; side < EINSUM_SIDES; side++)
        if (!einsum_digit_indexes(d, side))
            push(j, out, json_integer(side - EINSUM_A));
    return out;
}

static json_t *pieces_json(json_dump *j, const einsum_statement *s)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < s->piece_count; i++) {
        json_t *piece = json_object();
        set_number(j, piece, "group", s->pieces[i].group);
        set_number(j, piece, "weight", s->pieces[i].weight);
        set_number(j, piece, "size", s->pieces[i].size);
        set_number(j, piece, "lane", s->pieces[i].lane);
        push(j, out, piece);
    }
    return out;
}

/* Constants as 32 bits, because a float may be no number. */
static json_t *step_json(json_dump *j, const scalar_step *step)
{
    const scalar_row *row = scalar_row_of(step->op);
    json_t *out = json_object();
    set_text(j, out, "op", row ? row->name : step->op == SCALAR_SOURCE ? "source" : step->op == SCALAR_CONSTANT_I32 ? "i32" : "f32");
    if (step->op == SCALAR_SOURCE)
        set_number(j, out, "source", step->argument);
    else if (!row)
        set_text(j, out, "bits", arena_printf(j->arena, "0x%08" PRIx32, step->argument));
    return out;
}

/* What only some statements have. */
static void set_rest_of_statement(json_dump *j, json_t *out, const einsum *e, const einsum_statement *s)
{
    json_t *steps = json_array(), *indices = json_array();
    for (uint32_t i = 0; i < s->step_count; i++)
        push(j, steps, step_json(j, &s->steps[i]));
    set(j, out, "expression", steps);
    set(j, out, "fold", s->fold ? json_string(scalar_row_of(s->fold)->name) : json_null());
    for (uint32_t i = 0; i < einsum_index_count(s); i++) {
        json_t *index = json_object();
        set_text(j, index, "axis", e->axes[s->indices[i].axis].name);
        set_number(j, index, "source", i + 1);
        set_number(j, index, "unit", s->indices[i].unit);
        set_number(j, index, "step", s->indices[i].step);
        set_number(j, index, "div", s->indices[i].div);
        set_number(j, index, "mod", s->indices[i].mod);
        set_number(j, index, "positions", s->indices[i].positions);
        push(j, indices, index);
    }
    set(j, out, "indices", indices);
    set(j, out, "count_span", s->counted ? json_integer(s->count_span) : json_null());
    set(j, out, "bits", s->op == MATH_FILL ? json_string(arena_printf(j->arena, "0x%" PRIx32, s->bits)) : json_null());
}

static json_t *statement_json(json_dump *j, const einsum *e, const einsum_statement *s)
{
    json_t *out = json_object(), *sources = json_array(), *digits = json_array();
    set_text(j, out, "op", math_row_of(s->op)->name);
    set_text(j, out, "destination", e->tensors[s->dst].name);
    for (uint32_t i = 0; i < s->source_count; i++)
        push(j, sources, json_string(e->tensors[s->sources[i]].name));
    set(j, out, "sources", sources);
    set_text(j, out, "accumulator", dtype_row_of(s->accumulator)->name);
    for (uint32_t i = 0; i < s->digit_count; i++) {
        json_t *digit = json_object();
        set_text(j, digit, "axis", e->axes[s->digits[i].axis].name);
        set_number(j, digit, "weight", s->digits[i].weight);
        set_number(j, digit, "size", s->digits[i].size);
        set(j, digit, "kept", json_boolean(s->digits[i].kept));
        set(j, digit, "broadcast", broadcast_json(j, &s->digits[i]));
        set(j, digit, "of_sources", json_boolean(!einsum_digit_indexes(&s->digits[i], EINSUM_DST)));
        set_number(j, digit, "lane", s->digits[i].lane);
        set_number(j, digit, "group", s->digits[i].group);
        set_number(j, digit, "stride", s->digits[i].stride);
        push(j, digits, digit);
    }
    set(j, out, "digits", digits);
    set(j, out, "pieces", pieces_json(j, s));
    json_t *shifts = json_array();
    for (uint32_t i = 0; i < s->shift_count; i++) {
        json_t *shift = json_object();
        set_text(j, shift, "operand", einsum_side_name(s->shifts[i].side));
        set_text(j, shift, "axis", e->axes[s->shifts[i].axis].name);
        set_number(j, shift, "offset", s->shifts[i].offset);
        push(j, shifts, shift);
    }
    set(j, out, "shifts", shifts);
    set_rest_of_statement(j, out, e, s);
    return out;
}

static json_t *window_json(json_dump *j, const einsum *e, const einsum_window *x)
{
    json_t *out = json_object(), *terms = json_array();
    set_text(j, out, "axis", e->axes[x->axis].name);
    for (uint32_t i = 0; i < x->term_count; i++) {
        json_t *term = json_object();
        set_text(j, term, "axis", e->axes[x->terms[i].axis].name);
        set_number(j, term, "weight", x->terms[i].weight);
        set_number(j, term, "extent", x->terms[i].extent);
        set_number(j, term, "stride", x->terms[i].stride);
        push(j, terms, term);
    }
    set(j, out, "terms", terms);
    if (x->bordered)
        set_number(j, out, "first", x->first);
    return out;
}

static json_t *einsum_json(json_dump *j, const einsum *e)
{
    if (!e->tensor_count)
        return json_null();
    json_t *out = json_object(), *windows = json_array(), *tensors = json_array(), *statements = json_array();
    set_text(j, out, "text", e->text);
    for (uint32_t i = 0; i < e->tensor_count; i++)
        push(j, tensors, tensor_json(j, e, &e->tensors[i]));
    for (uint32_t i = 0; i < e->window_count; i++)
        push(j, windows, window_json(j, e, &e->windows[i]));
    set(j, out, "windows", windows);
    set(j, out, "tensors", tensors);
    for (uint32_t i = 0; i < e->statement_count; i++)
        push(j, statements, statement_json(j, e, &e->statements[i]));
    set(j, out, "statements", statements);
    return out;
}

/* A number; a bit mask as "0x..." because it may not fit a reader's integers. */
static json_t *value_json(json_dump *j, const command_field_row *row, int64_t value)
{
    if (strcmp(row->unit, "bit mask") == 0)
        return json_string(command_value_text(row, value, j->arena));
    return json_integer(value);
}

static json_t *field_json(json_dump *j, const command_field_row *row, int64_t value)
{
    json_t *out = json_object();
    const char *name = command_value_name(row, value);
    set_text(j, out, "name", row->name);
    set(j, out, "value", value_json(j, row, value));
    set_text(j, out, "unit", row->unit);
    if (name)
        set_text(j, out, "meaning", name);
    return out;
}

static json_t *entries_json(json_dump *j, const command *c)
{
    const command_row *row = command_row_of(c->op);
    json_t *list = json_array();
    for (unsigned e = 0; e < c->entry_count; e++) {
        json_t *entry = json_object();
        set_number(j, entry, "entry", e);
        for (unsigned i = 0; i < row->column_count; i++) {
            const command_field_row *column = command_column_row_of((command_column)(row->first_column + i));
            set(j, entry, column->name, value_json(j, column, c->entries[e][i]));
        }
        push(j, list, entry);
    }
    return list;
}

static json_t *loops_json(json_dump *j, const command *c)
{
    json_t *list = json_array();
    for (unsigned depth = 0; depth < command_loop_count(c); depth++) {
        json_t *loop = json_object();
        set_number(j, loop, "entry", command_loop_entry(c, depth));
        set(j, loop, "counter", json_string(arena_printf(j->arena, "i%u", depth)));
        set_number(j, loop, "size", command_loop_size(c, depth));
        set_text(j, loop, "steps", command_loop_steps(c, depth, j->arena));
        push(j, list, loop);
    }
    return list;
}

static json_t *table_json(json_dump *j, const command *c)
{
    const command_row *row = command_row_of(c->op);
    json_t *out = json_object(), *units = json_object();
    set_text(j, out, "order", row->entry_order);
    for (unsigned i = 0; i < row->column_count; i++) {
        const command_field_row *column = command_column_row_of((command_column)(row->first_column + i));
        set_text(j, units, column->name, column->unit);
    }
    set(j, out, "units", units);
    set(j, out, "entries", entries_json(j, c));
    if (command_loop_count(c))
        set(j, out, "loops", loops_json(j, c));
    return out;
}

static json_t *command_json(json_dump *j, const command *c, const uint64_t *words, size_t word_count)
{
    const command_row *row = command_row_of(c->op);
    json_t *out = json_object(), *raw = json_array(), *fields = json_array();
    set_number(j, out, "offset", c->offset);
    set(j, out, "line", c->line ? json_integer(c->line) : json_null());
    set_text(j, out, "op", row->name);
    for (size_t i = 0; i < word_count; i++)
        push(j, raw, json_string(arena_printf(j->arena, "0x%016" PRIx64, words[i])));
    set(j, out, "words", raw);
    for (unsigned i = 0; i < row->field_count; i++)
        push(j, fields, field_json(j, command_field_row_of((command_field)(row->first_field + i)), c->fields[i]));
    set(j, out, "fields", fields);
    if (row->column_count)
        set(j, out, "table", table_json(j, c));
    return out;
}

typedef struct stream_dump {
    const command *stored;
    size_t count;
    const uint64_t *words;
} stream_dump;

static json_t *stored_json(json_dump *j, const stream_dump *d, size_t number)
{
    return command_json(j, &d->stored[number], d->words + d->stored[number].offset / 8, command_words(&d->stored[number]));
}

/* What an advance command adds to what. */
static json_t *advances_json(json_dump *j, const stream_dump *d, size_t body, const command *advance)
{
    json_t *list = json_array();
    for (unsigned e = 0; e < advance->entry_count; e++) {
        command_place p = command_advance_place(d->stored, d->count, body, advance, e);
        json_t *out = json_object();
        set_number(j, out, "offset", p.at->offset);
        set_text(j, out, "op", command_row_of(p.at->op)->name);
        set(j, out, "entry", p.entry < 0 ? json_null() : json_integer(p.entry));
        set_text(j, out, "name", p.row->name);
        set_number(j, out, "step", command_entry(advance, e, ADVANCE_STEP));
        set_text(j, out, "unit", p.row->unit);
        push(j, list, out);
    }
    return list;
}

/* The commands from `begin` to `end`; a loop holds its body. */
static json_t *range_json(json_dump *j, const stream_dump *d, size_t begin, size_t end)
{
    json_t *list = json_array();
    for (size_t i = begin; i < end; i++) {
        json_t *out = stored_json(j, d, i);
        push(j, list, out);
        if (d->stored[i].op != OP_LOOP)
            continue;
        size_t body = command_loop_body(d->stored, d->count, i), after = command_loop_end(d->stored, d->count, i);
        json_t *advances = json_array();
        for (i++; i < body; i++) {
            json_t *advance = stored_json(j, d, i);
            set(j, advance, "advances", advances_json(j, d, body, &d->stored[i]));
            push(j, advances, advance);
        }
        set(j, out, "advances", advances);
        set(j, out, "body", range_json(j, d, body, after));
        i = after - 1;
    }
    return list;
}

static json_t *stream_json(json_dump *j, const binary_kernel *k, context where)
{
    uint64_t *words;
    size_t count;
    if (!binary_stream_words(k, where, j->arena, &words, &count))
        return json_array();
    return range_json(j, &(stream_dump){k->streams[where].stored, k->streams[where].stored_count, words}, 0,
                      k->streams[where].stored_count);
}

static json_t *kernel_json(json_dump *j, const binary_kernel *k)
{
    json_t *out = json_object(), *ports = json_array(), *streams = json_object();
    set_text(j, out, "name", k->name);
    set(j, out, "axes", axes_json(j, k));
    for (uint32_t i = 0; i < k->port_count; i++)
        push(j, ports, port_json(j, k, &k->ports[i]));
    set(j, out, "ports", ports);
    set(j, out, "einsum", einsum_json(j, &k->einsum));
    for (int where = CONTEXT_MAIN; where <= CONTEXT_DMA; where++)
        set(j, streams, context_name((context)where), stream_json(j, k, (context)where));
    set(j, out, "streams", streams);
    return out;
}

static json_t *symbols_json(json_dump *j, const binary *b)
{
    json_t *list = json_array();
    for (size_t i = 0; i < b->symbol_count; i++) {
        json_t *symbol = json_object();
        set_text(j, symbol, "name", b->symbols[i].name);
        set_text(j, symbol, "section", b->symbols[i].section);
        set_number(j, symbol, "offset", (int64_t)b->symbols[i].offset);
        set_number(j, symbol, "size", (int64_t)b->symbols[i].size);
        push(j, list, symbol);
    }
    return list;
}

const char *binary_to_json(const binary *b, arena *a)
{
    json_dump j = {.arena = a};
    json_t *root = json_object(), *kernels = json_array(), *programs = json_array();
    set_number(&j, root, "format", BINARY_FORMAT_VERSION);
    set_text(&j, root, "target", b->target->name);
    for (size_t i = 0; i < b->kernel_count; i++)
        push(&j, kernels, kernel_json(&j, &b->kernels[i]));
    set(&j, root, "kernels", kernels);
    for (size_t i = 0; i < b->program_count; i++)
        push(&j, programs, step_program_json(&b->programs[i]));
    set(&j, root, "programs", programs);
    set(&j, root, "symbols", symbols_json(&j, b));
    const char *text = json_dump_text(root, JSON_INDENT(2), a);
    return j.failed ? NULL : text;
}
