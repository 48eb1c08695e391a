#include "runtime/plan/plan.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "support/choice.h"
#include "support/file.h"
#include "support/json_nesting.h"
#include "support/order.h"
#include "support/shown.h"

enum { MOST_DEPTH = 2 /* an index that is read at an index that is read */ };

typedef struct reader {
    plan *plan;
    arena *arena;
    diag_list *diags;
    size_t steps; /* so far */
    const char *loops[PLAN_MOST_LOOPS];
    int loop_count;
} reader;

static bool wrong(reader *r, const char *where, const char *what)
{
    diag_add(r->diags, E_PLAN, SRC_NOWHERE, "%s: %s", where, what);
    return false;
}

static const char *text_of(reader *r, const json_t *j)
{
    const char *text = json_string_value(j);
    return text ? arena_strdup(r->arena, text) : NULL;
}

/* Every key of an object is one of a NULL-ended list. */
static bool keys_are(reader *r, const char *where, json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return wrong(r, where, arena_printf(r->arena, "nothing is called %s here", shown_input(key, r->arena)));
    }
    return true;
}

static const char *path_of(reader *r, const char *file)
{
    return *r->plan->folder && file[0] != '/' ? arena_printf(r->arena, "%s/%s", r->plan->folder, file) : file;
}

/* ---- kernels ---- */

static const binary *binary_of(reader *r, const char *file)
{
    for (size_t i = 0; i < r->plan->kernel_count; i++)
        if (strcmp(r->plan->kernels[i].file, file) == 0)
            return r->plan->kernels[i].binary;
    size_t size;
    unsigned char *bytes = file_read_all(file, &size, r->diags);
    if (!bytes)
        return NULL;
    binary *b = ARENA_NEW(r->arena, binary);
    bool good = binary_read(bytes, size, r->arena, r->diags, b);
    free(bytes);
    return good ? b : NULL;
}

static bool read_kernel(reader *r, const char *name, json_t *j)
{
    static const char *const keys[] = {"file", "kernel", NULL};
    const char *where = arena_printf(r->arena, "kernel %s", shown_input(name, r->arena));
    plan_kernel *k = &r->plan->kernels[r->plan->kernel_count];
    const char *file = text_of(r, json_object_get(j, "file"));
    if (!json_is_object(j) || !file)
        return wrong(r, where, "an object with the \"file\" of its binary");
    if (!keys_are(r, where, j, keys))
        return false;
    *k = (plan_kernel){.name = arena_strdup(r->arena, name), .file = path_of(r, file)};
    k->binary = binary_of(r, k->file);
    k->kernel = k->binary ? binary_choose_kernel(k->binary, text_of(r, json_object_get(j, "kernel")), r->diags) : NULL;
    if (!k->kernel)
        return false;
    r->plan->target = k->binary->target;
    r->plan->kernel_count++;
    return true;
}

/* ---- buffers ---- */

static bool read_shape(reader *r, const char *where, const json_t *j, tensor_type *type)
{
    size_t rank = json_array_size(j);
    if (!json_is_array(j) || rank > PLAN_MOST_RANK)
        return wrong(r, where, "\"shape\" is an array of at most 8 sizes");
    int64_t *shape = ARENA_ARRAY(r->arena, int64_t, rank + 1);
    for (size_t i = 0; i < rank; i++) {
        shape[i] = json_integer_value(json_array_get(j, i));
        if (shape[i] < 1)
            return wrong(r, where, "a size is an integer of at least 1");
    }
    *type = (tensor_type){type->dtype, (int)rank, shape, NULL};
    return true;
}

static bool read_buffer(reader *r, const char *name, json_t *j)
{
    static const char *const keys[] = {"type", "shape", "file", "of", "first", "in", NULL};
    const char *where = arena_printf(r->arena, "buffer %s", shown_input(name, r->arena));
    plan *p = r->plan;
    plan_buffer *b = &p->buffers[p->buffer_count];
    const char *type = text_of(r, json_object_get(j, "type"));
    *b = (plan_buffer){.name = arena_strdup(r->arena, name), .file = text_of(r, json_object_get(j, "file"))};
    if (!json_is_object(j) || !type)
        return wrong(r, where, "an object with \"type\" and \"shape\"");
    if (strlen(name) > PLAN_MOST_NAME)
        return wrong(r, where, arena_printf(r->arena, "a name has at most %d bytes, this one %zu", PLAN_MOST_NAME, strlen(name)));
    if (!keys_are(r, where, j, keys))
        return false;
    if (!dtype_by_name(type, &b->type.dtype))
        return wrong(r, where, arena_printf(r->arena, "no element type is called %s", shown_input(type, r->arena)));
    if (!read_shape(r, where, json_object_get(j, "shape"), &b->type))
        return false;
    json_t *in = json_object_get(j, "in");
    b->resident = in != NULL;
    if (in && (!json_is_string(in) || strcmp(json_string_value(in), "dm") != 0))
        return wrong(r, where, "\"in\" is \"dm\"; a buffer in HBM has none");
    if (b->resident && (json_object_get(j, "file") || json_object_get(j, "of")))
        return wrong(r, where, "a buffer in DM begins with zeros: it has no file and is no part");
    int64_t elements = tensor_elements(&b->type);
    b->bytes = elements < 0 ? -1 : tensor_bytes(b->type.dtype, elements);
    b->address = p->scratch;
    b->file = b->file ? path_of(r, b->file) : NULL;
    b->of = text_of(r, json_object_get(j, "of"));
    b->first = json_integer_value(json_object_get(j, "first"));
    int64_t capacity = p->target->hbm_bytes_per_chip - PLAN_BUFFER_ALIGNMENT;
    if (b->bytes < 0 || b->bytes > capacity - p->scratch)
        return wrong(r, where,
                     arena_printf(r->arena, "it does not fit: HBM has %lld bytes, the buffers before it take %lld",
                                  (long long)p->target->hbm_bytes_per_chip, (long long)p->scratch));
    p->scratch += b->of || b->resident ? 0 : (b->bytes + PLAN_BUFFER_ALIGNMENT - 1) / PLAN_BUFFER_ALIGNMENT * PLAN_BUFFER_ALIGNMENT;
    p->buffer_count++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const plan_buffer *)a)->name, ((const plan_buffer *)b)->name);
}

const plan_buffer *plan_buffer_named(const plan *p, const char *name)
{
    plan_buffer key = {.name = name};
    return p->buffer_count ? bsearch(&key, p->buffers, p->buffer_count, sizeof key, by_name) : NULL;
}

/* The place of a part in its buffer. */
static bool place_part(reader *r, plan_buffer *b)
{
    const char *where = arena_printf(r->arena, "buffer %s", shown_input(b->name, r->arena));
    const plan_buffer *whole = plan_buffer_named(r->plan, b->of);
    int64_t bits = dtype_row_of(b->type.dtype)->bits;
    if (!whole || whole->of || whole->resident) {
        diag_add(r->diags, E_PLAN_NAME, SRC_NOWHERE, "%s: no buffer with a place of its own is called %s", where,
                 shown_input(b->of, r->arena));
        return false;
    }
    int64_t elements = tensor_elements(&whole->type);
    if (whole->type.dtype == b->type.dtype && b->first >= 0 && b->first <= elements && tensor_elements(&b->type) <= elements - b->first &&
        b->first * bits % 8 == 0) {
        b->address = whole->address + b->first * bits / 8;
        return true;
    }
    diag_add(r->diags, E_PLAN_FIT, SRC_NOWHERE, "%s: %lld elements of %s from element %lld on are no part of the %lld of %s in buffer `%s`",
             where, (long long)tensor_elements(&b->type), dtype_row_of(b->type.dtype)->name, (long long)b->first, (long long)elements,
             dtype_row_of(whole->type.dtype)->name, whole->name);
    return false;
}

/* ---- steps ---- */

static bool is_loop(const reader *r, const char *name)
{
    return choice_has(r->loops, (size_t)r->loop_count, name);
}

static bool read_place(reader *r, const char *where, json_t *j, int depth, plan_place *out);

/* 3, "t", "t+1", "t-1", or {"buffer": .., "at": ..}. */
static bool read_index(reader *r, const char *where, json_t *j, int depth, plan_index *out)
{
    *out = (plan_index){0};
    if (json_is_integer(j)) {
        out->number = json_integer_value(j);
        return true;
    }
    if (json_is_object(j)) {
        plan_place *place = ARENA_NEW(r->arena, plan_place);
        out->value = place;
        return depth < MOST_DEPTH ? read_place(r, where, j, depth + 1, place) : wrong(r, where, "an index is read at most twice");
    }
    char *name = json_is_string(j) ? arena_strdup(r->arena, json_string_value(j)) : NULL, *sign = name ? strpbrk(name, "+-") : NULL;
    if (sign) {
        char *end;
        out->number = strtol(sign, &end, 10);
        if (*end || end == sign + 1 || out->number > INT32_MAX || out->number < -INT32_MAX)
            return wrong(r, where, "an index is written t, t+1 or t-1");
        *sign = '\0';
    }
    out->loop = name;
    return name && is_loop(r, name)
               ? true
               : wrong(r, where, "an index in \"at\" is a number, the index of a repetition around it, or a place of an i32 buffer");
}

static bool read_place(reader *r, const char *where, json_t *j, int depth, plan_place *out)
{
    static const char *const keys[] = {"buffer", "at", NULL};
    *out = (plan_place){.buffer = text_of(r, json_is_object(j) ? json_object_get(j, "buffer") : j)};
    json_t *at = json_object_get(j, "at");
    if (!out->buffer)
        return wrong(r, where, "a place is the name of a buffer, or an object with \"buffer\" and \"at\"");
    if (json_is_object(j) && !keys_are(r, where, j, keys))
        return false;
    if (at && (!json_is_array(at) || json_array_size(at) > PLAN_MOST_RANK))
        return wrong(r, where, "\"at\" is an array of at most 8 indices");
    for (; out->at_count < (int)json_array_size(at); out->at_count++)
        if (!read_index(r, where, json_array_get(at, (size_t)out->at_count), depth, &out->at[out->at_count]))
            return false;
    return true;
}

static bool read_run(reader *r, const char *where, json_t *j, plan_step *out)
{
    static const char *const keys[] = {"run", "ports", NULL};
    const char *name = json_string_value(json_object_get(j, "run")), *port_name;
    json_t *ports = json_object_get(j, "ports"), *place;
    for (size_t i = 0; name && i < r->plan->kernel_count; i++)
        if (strcmp(r->plan->kernels[i].name, name) == 0)
            out->kernel = &r->plan->kernels[i];
    if (!keys_are(r, where, j, keys))
        return false;
    if (!out->kernel) {
        diag_add(r->diags, E_PLAN_NAME, SRC_NOWHERE, "%s: no kernel of the plan is called %s", where,
                 shown_input(name ? name : "", r->arena));
        return false;
    }
    if (!json_is_object(ports))
        return wrong(r, where, "\"ports\" is an object: a place for each port");
    out->bindings = ARENA_ARRAY(r->arena, plan_binding, json_object_size(ports) + 1);
    json_object_foreach(ports, port_name, place)
    {
        plan_binding *b = &out->bindings[out->binding_count++];
        b->port = arena_strdup(r->arena, port_name);
        if (!read_place(r, arena_printf(r->arena, "%s, port %s", where, shown_input(port_name, r->arena)), place, 0, &b->place))
            return false;
    }
    return true;
}

static bool read_steps(reader *r, json_t *list, plan_step **out, size_t *count);

static bool read_repeat(reader *r, const char *where, json_t *j, plan_step *out)
{
    static const char *const keys[] = {"for", "from", "to", "steps", NULL};
    json_t *from = json_object_get(j, "from"), *to = json_object_get(j, "to");
    out->index = text_of(r, json_object_get(j, "for"));
    out->from = json_integer_value(from);
    out->to = json_integer_value(to);
    if (!keys_are(r, where, j, keys))
        return false;
    if (!out->index || !*out->index || strpbrk(out->index, "+-{}") || (from && !json_is_integer(from)) || !json_is_integer(to))
        return wrong(r, where, "a repetition has an index \"for\", the numbers \"from\" and \"to\", and \"steps\"");
    if (out->from < -INT32_MAX || out->to > INT32_MAX || out->from > out->to)
        return wrong(r, where, "it counts from one 32-bit number up to another");
    if (r->loop_count == PLAN_MOST_LOOPS || is_loop(r, out->index))
        return wrong(r, where, "its index is taken, or 8 repetitions are around it");
    r->loops[r->loop_count++] = out->index;
    bool good = read_steps(r, json_object_get(j, "steps"), &out->body, &out->body_count);
    r->loop_count--;
    return good;
}

static bool read_argmax(reader *r, const char *where, json_t *j, plan_step *out)
{
    static const char *const keys[] = {"argmax", "into", NULL};
    return keys_are(r, where, j, keys) && read_place(r, where, json_object_get(j, "argmax"), 0, &out->source) &&
           read_place(r, where, json_object_get(j, "into"), 0, &out->into);
}

static bool read_step(reader *r, json_t *j, plan_step *out)
{
    *out = (plan_step){.number = ++r->steps};
    const char *where = arena_printf(r->arena, "step %zu", out->number);
    if (json_object_get(j, "run"))
        return read_run(r, where, j, out);
    out->kind = PLAN_REPEAT;
    if (json_object_get(j, "for"))
        return read_repeat(r, where, j, out);
    out->kind = PLAN_ARGMAX;
    if (json_object_get(j, "argmax"))
        return read_argmax(r, where, j, out);
    return wrong(r, where, "a step has \"run\", \"for\" or \"argmax\"");
}

static bool read_steps(reader *r, json_t *list, plan_step **out, size_t *count)
{
    if (!json_is_array(list))
        return wrong(r, "plan", "\"steps\" is an array");
    *out = ARENA_ARRAY(r->arena, plan_step, json_array_size(list) + 1);
    for (size_t i = 0; i < json_array_size(list); i++, ++*count)
        if (!read_step(r, json_array_get(list, i), &(*out)[i]))
            return false;
    return true;
}

static bool read_outputs(reader *r, json_t *j)
{
    const char *name;
    json_t *file;
    plan *p = r->plan;
    p->outputs = ARENA_ARRAY(r->arena, plan_output, json_object_size(j) + 1);
    json_object_foreach(j, name, file)
    {
        if (!json_is_string(file))
            return wrong(r, "outputs", "each is a buffer's name with the name of a file");
        if (plan_buffer_named(p, name) && plan_buffer_named(p, name)->resident) {
            diag_add(r->diags, E_PLAN_FIT, SRC_NOWHERE, "outputs: buffer %s is in DM; let a kernel copy it to one in HBM",
                     shown_input(name, r->arena));
            return false;
        }
        if (!plan_buffer_named(p, name)) {
            diag_add(r->diags, E_PLAN_NAME, SRC_NOWHERE, "outputs: no buffer is called %s", shown_input(name, r->arena));
            return false;
        }
        p->outputs[p->output_count++] = (plan_output){arena_strdup(r->arena, name), path_of(r, text_of(r, file))};
    }
    return true;
}

static bool read_all(reader *r, json_t *root)
{
    static const char *const keys[] = {"plan", "kernels", "buffers", "steps", "outputs", NULL};
    json_t *kernels = json_object_get(root, "kernels"), *buffers = json_object_get(root, "buffers"), *value,
           *outputs = json_object_get(root, "outputs");
    const char *name;
    plan *p = r->plan;
    if (!json_is_object(root) || json_integer_value(json_object_get(root, "plan")) != 1)
        return wrong(r, "plan", "an object whose \"plan\" is 1, the version of the format");
    if (!keys_are(r, "plan", root, keys))
        return false;
    if (!json_is_object(kernels) || json_object_size(kernels) == 0 || json_object_size(kernels) > PLAN_MOST_KERNELS ||
        !json_is_object(buffers) || json_object_size(buffers) > PLAN_MOST_BUFFERS || (outputs && !json_is_object(outputs)))
        return wrong(r, "plan", "\"kernels\", \"buffers\" and \"outputs\" are objects; 1 to 4096 kernels, 65536 buffers at most");
    p->kernels = ARENA_ARRAY(r->arena, plan_kernel, json_object_size(kernels));
    p->buffers = ARENA_ARRAY(r->arena, plan_buffer, json_object_size(buffers) + 1);
    json_object_foreach(kernels, name, value) if (!read_kernel(r, name, value)) return false;
    json_object_foreach(buffers, name, value) if (!read_buffer(r, name, value)) return false;
    order_sort(p->buffers, p->buffer_count, sizeof *p->buffers, by_name);
    for (size_t i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].of && !place_part(r, &p->buffers[i]))
            return false;
    return read_steps(r, json_object_get(root, "steps"), &p->steps, &p->step_count) && read_outputs(r, outputs);
}

plan *plan_read(const char *file, const char *text, size_t bytes, arena *a, diag_list *diags)
{
    const char *slash = strrchr(file, '/');
    plan *p = ARENA_NEW(a, plan);
    *p = (plan){.folder = slash ? arena_strndup(a, file, (size_t)(slash - file)) : ""};
    if (slash == file)
        p->folder = "/.";
    reader r = {.plan = p, .arena = a, .diags = diags};
    json_error_t error;
    if (bytes > PLAN_MOST_BYTES || json_nests_too_deeply(text, bytes)) {
        wrong(&r, "plan", "it has more than 64 MiB, or nests too deeply");
        return NULL;
    }
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        diag_add(diags, E_PLAN, SRC_NOWHERE, "line %d: %s", error.line, shown_input(error.text, a));
        return NULL;
    }
    bool good = read_all(&r, root);
    json_decref(root);
    return good ? p : NULL;
}
