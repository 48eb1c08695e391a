#include "libvisa/explorer/reply.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/dump.h"
#include "include/visa_editor.h"
#include "include/visa_run.h"
#include "libvisa/explorer/asset.h"
#include "runtime/tensor/port_data.h"
#include "runtime/timing/report.h"
#include "support/budget.h"
#include "support/json_nesting.h"

/* More of one view is not sent: nobody reads it, and a browser that shows it stands still. */
enum { VIEW_BYTES_MAX = 8 << 20, DIAGNOSTICS_SENT_MAX = 200, COMPLETIONS_SENT_MAX = 400, PARAMETERS_MAX = 64, PARAMETER_VALUES_MAX = 1024 };
enum { TUNE_SECONDS_MAX = 10 };
/* What a check from the page may cost: cycles of the machine, which bound what is computed; bytes of the ports, which are filled with
 * numbers; elements of the ports where the algebra follows each. */
enum { CHECK_CYCLES_MAX = 200000, CHECK_BYTES_MAX = 64 << 20, CHECK_THREADS = 2, CHECK_PROVEN_MAX = 1 << 16 };

/* ---- pieces of JSON ---- */

/* Texts of a source may be cut inside a character. */
static json_t *text_value(const char *text, size_t bytes)
{
    json_t *j = json_stringn(text, bytes);
    char *copy = j ? NULL : malloc(bytes + 1);
    for (size_t i = 0; copy && i < bytes; i++)
        copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    if (copy)
        j = json_stringn(copy, bytes);
    free(copy);
    return j;
}

static json_t *word(const char *text)
{
    return text ? text_value(text, strlen(text)) : json_null();
}

static const char *text_of(const json_t *question, const char *member)
{
    return json_string_value(json_object_get(question, member));
}

static json_t *fault(const char *message)
{
    return json_pack("{s:s}", "error", message);
}

static json_t *bad_question(int *status, const char *why)
{
    *status = 400;
    return fault(why);
}

/* ---- a question about a source ---- */

typedef struct source_question {
    const char *text;
    size_t bytes;
    uint32_t offset;
    const char *kernel; /* NULL: the first */
    timing_preset timing;
    visa_options options;
    visa_parameter parameters[PARAMETERS_MAX];
    int64_t values[PARAMETER_VALUES_MAX];
} source_question;

/* {"M": 64, "L": [2, 0, 5]} */
static const char *read_parameters(const json_t *define, source_question *q)
{
    const char *name;
    json_t *value;
    size_t count = 0, used = 0;
    if (define && !json_is_object(define))
        return "`define` is an object of numbers";
    json_object_foreach((json_t *)define, name, value)
    {
        size_t many = json_is_array(value) ? json_array_size(value) : 1;
        if (count == PARAMETERS_MAX || many > PARAMETER_VALUES_MAX - used)
            return "there are too many definitions";
        for (size_t i = 0; i < many; i++) {
            const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
            if (!json_is_integer(one))
                return "a definition is an integer, or an array of them";
            q->values[used + i] = json_integer_value(one);
        }
        q->parameters[count++] = (visa_parameter){name, q->values + used, many};
        used += many;
    }
    q->options.parameters = q->parameters;
    q->options.parameter_count = count;
    return NULL;
}

/* NULL, or what is wrong with the question. */
static const char *read_source(const json_t *question, const reply_limits *limits, source_question *q)
{
    const json_t *source = json_object_get(question, "source"), *offset = json_object_get(question, "offset");
    const char *place = text_of(question, "place"), *order = text_of(question, "order"), *timing = text_of(question, "timing"),
               *dialect = text_of(question, "dialect");
    *q = (source_question){.text = json_string_value(source), .bytes = json_string_length(source), .kernel = text_of(question, "kernel")};
    if (!q->text)
        return "a question has a `source`, a text";
    if (offset && (!json_is_integer(offset) || json_integer_value(offset) < 0 || (size_t)json_integer_value(offset) > q->bytes))
        return "`offset` is a place in the source, in bytes";
    q->offset = (uint32_t)json_integer_value(offset);
    q->options = (visa_options){.places_all = place && strcmp(place, "auto") == 0,
                                .order = order && strcmp(order, "source") == 0 ? VISA_ORDER_SOURCE
                                         : order && strcmp(order, "free") == 0 ? VISA_ORDER_FREE
                                                                               : VISA_ORDER_AUTO,
                                .error_limit = DIAGNOSTICS_SENT_MAX / 2,
                                .max_steps = limits->max_steps,
                                .max_bytes = limits->max_bytes,
                                .max_milliseconds = limits->max_milliseconds};
    if (dialect && dialect[0]) {
        if (!visa_knows_dialect(dialect))
            return "there is no such release of the language";
        q->options.dialect = dialect;
    }
    if (timing && timing[0] && !timing_preset_by_name(timing, &q->timing))
        return "there is no such timing";
    return read_parameters(json_object_get(question, "define"), q);
}

/* The page's name of the source; no file has it, and none is looked for. */
static const char source_name_of_page[] = "kernel.vm";

static visa_compilation *compile_source(const source_question *q)
{
    return visa_compile(source_name_of_page, q->text, q->bytes, &q->options);
}

/* ---- diagnostics ---- */

static json_t *json_of_place(visa_place p)
{
    return json_pack("[I,I]", (json_int_t)(p.file == 0 ? p.begin : 0), (json_int_t)(p.file == 0 ? p.end : 0));
}

static json_t *json_of_diagnostic(const visa_diagnostic *d)
{
    json_t *notes = json_array();
    const char *title = NULL, *rule = visa_explain(d->id, &title);
    for (size_t i = 0; i < d->note_count; i++) {
        json_t *note = json_pack("{s:o}", "message", word(d->notes[i].message));
        if (d->notes[i].place.file == 0)
            json_object_set_new(note, "range", json_of_place(d->notes[i].place));
        json_array_append_new(notes, note);
    }
    json_t *j = json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "id", d->id, "error", d->is_error, "range", json_of_place(d->place),
                          "message", word(d->message), "help", word(d->help), "notes", notes, "rule", word(rule));
    json_object_set_new(j, "title", word(title));
    json_t *edits = json_array();
    for (size_t i = 0; i < d->edit_count; i++)
        if (d->edits[i].place.file == 0)
            json_array_append_new(edits,
                                  json_pack("{s:o, s:o}", "text", word(d->edits[i].text), "range", json_of_place(d->edits[i].place)));
    if (json_array_size(edits) < d->edit_count) /* some of it would be in another file */
        json_array_clear(edits);
    json_object_set_new(j, "edits", edits);
    return j;
}

static json_t *diagnostics_of(visa_compilation *c)
{
    json_t *list = json_array();
    visa_diagnostic d;
    for (size_t i = 0; i < DIAGNOSTICS_SENT_MAX && visa_diagnostic_at(c, i, &d); i++)
        json_array_append_new(list, json_of_diagnostic(&d));
    return list;
}

/* ---- views ---- */

typedef struct view_context {
    visa_compilation *compilation;
    const source_question *question;
    const binary *binary;        /* NULL: it could not be read */
    const binary_kernel *kernel; /* that is looked at; NULL: the source has stream programs only */
    arena *arena;                /* with a budget of its own */
    diag_list diags;
} view_context;

/* Of a view that is not sent. */
static json_t *not_shown(const char *why)
{
    return json_pack("{s:s}", "left_out", why);
}

static json_t *view_of_text(const char *text, size_t bytes)
{
    return bytes > VIEW_BYTES_MAX ? not_shown("it has more than 8 MiB; visac writes it to a file") : text_value(text, bytes);
}

static json_t *view_of_json(const char *text, size_t bytes)
{
    return bytes > VIEW_BYTES_MAX ? not_shown("it has more than 8 MiB; visac writes it to a file") : json_loadb(text, bytes, 0, NULL);
}

static json_t *view_of_emit(const view_context *v, visa_emit_kind kind, json_t *(*form)(const char *text, size_t bytes))
{
    const unsigned char *data;
    size_t size;
    return visa_emit(v->compilation, kind, &data, &size) ? form((const char *)data, size) : NULL;
}

static json_t *view_tables(view_context *v)
{
    return view_of_emit(v, VISA_EMIT_JSON, view_of_json);
}

static json_t *view_memory(view_context *v)
{
    return view_of_emit(v, VISA_EMIT_MEMORY_JSON, view_of_json);
}

static json_t *view_order(view_context *v)
{
    return view_of_emit(v, VISA_EMIT_ORDER, view_of_text);
}

static json_t *view_stream(view_context *v)
{
    return v->binary && v->binary->program_count ? view_of_emit(v, VISA_EMIT_STEP_REPORT, view_of_text) : NULL;
}

static json_t *view_pictures(view_context *v)
{
    const unsigned char *data;
    size_t size;
    return v->kernel && visa_pictures(v->compilation, v->kernel->name, &data, &size) ? view_of_text((const char *)data, size) : NULL;
}

static json_t *view_timeline(view_context *v)
{
    report_options o = {.format = REPORT_JSON, .preset = v->question->timing};
    const char *text = v->kernel ? report_make(v->binary->target, v->kernel, &o, v->arena, &v->diags) : NULL;
    return text ? view_of_json(text, strlen(text)) : NULL;
}

static json_t *view_commands(view_context *v)
{
    const char *text = v->binary ? binary_to_text(v->binary, v->arena) : NULL;
    return text ? view_of_text(text, strlen(text)) : NULL;
}

/* A view that needs the binary unwinds to here when its memory or its work is spent. */
static json_t *make_view(json_t *(*make)(view_context *v), view_context *v)
{
    if (setjmp(*arena_guard(v->arena)))
        return not_shown("given up: it takes more time, work or memory than an answer may");
    json_t *j = make(v);
    return j                              ? j
           : visa_gave_up(v->compilation) ? not_shown("given up: it takes more time, work or memory than an answer may")
                                          : json_null();
}

static json_t *views_of(view_context *v, const json_t *wanted)
{
    static const struct {
        const char *name;
        json_t *(*make)(view_context *v);
    } rows[] = {{"tables", view_tables},     {"timeline", view_timeline}, {"memory", view_memory}, {"commands", view_commands},
                {"pictures", view_pictures}, {"order", view_order},       {"stream", view_stream}};
    json_t *out = json_object(), *one;
    size_t n;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        json_array_foreach(wanted, n, one) if (json_is_string(one) && strcmp(json_string_value(one), rows[i].name) == 0 &&
                                               !json_object_get(out, rows[i].name))
            json_object_set_new(out, rows[i].name, make_view(rows[i].make, v));
    return out;
}

/* The binary back from its bytes: what is shown of commands and cycles is what the machine gets. */
static void read_binary(view_context *v, binary *b)
{
    const unsigned char *data;
    size_t size;
    if (!visa_emit(v->compilation, VISA_EMIT_BINARY, &data, &size) || setjmp(*arena_guard(v->arena)) ||
        !binary_read(data, size, v->arena, &v->diags, b))
        return;
    v->binary = b;
    for (size_t i = 0; i < b->kernel_count; i++)
        if (!v->kernel || (v->question->kernel && strcmp(b->kernels[i].name, v->question->kernel) == 0))
            v->kernel = &b->kernels[i];
}

static json_t *kernel_names(const binary *b)
{
    json_t *names = json_array();
    for (size_t i = 0; b && i < b->kernel_count; i++)
        json_array_append_new(names, word(b->kernels[i].name));
    return names;
}

static json_t *answer_compile(const json_t *question, const reply_limits *limits, int *status)
{
    source_question q;
    const char *wrong = read_source(question, limits, &q);
    if (wrong)
        return bad_question(status, wrong);
    visa_compilation *c = compile_source(&q);
    view_context v = {.compilation = c, .question = &q, .arena = c ? arena_new() : NULL};
    json_t *j = NULL;
    if (v.arena) {
        binary b;
        budget_limit(v.arena, limits->max_steps ? limits->max_steps : COMPILE_STEPS_MAX,
                     limits->max_bytes ? limits->max_bytes : COMPILE_BYTES_MAX, limits->max_milliseconds);
        diag_list_init(&v.diags, v.arena);
        if (visa_error_count(c) == 0)
            read_binary(&v, &b);
        json_t *views = v.binary ? views_of(&v, json_object_get(question, "views")) : json_object();
        j = json_pack("{s:o, s:o, s:o, s:o, s:b}", "kernels", kernel_names(v.binary), "kernel", word(v.kernel ? v.kernel->name : NULL),
                      "views", views, "diagnostics", diagnostics_of(c), "gave_up", visa_gave_up(c));
        json_object_set_new(j, "errors", json_integer((json_int_t)visa_error_count(c)));
        json_object_set_new(j, "warnings", json_integer((json_int_t)visa_warning_count(c)));
        json_object_set_new(j, "steps", json_integer((json_int_t)visa_steps(c)));
        json_object_set_new(j, "has_programs", json_boolean(v.binary && v.binary->program_count > 0));
        arena_free(v.arena);
    }
    visa_free(c);
    return j;
}

/* ---- what an editor asks ---- */

static json_t *answer_hover(source_question *q)
{
    const char *markdown;
    visa_place place;
    q->options.editor = true;
    visa_compilation *c = compile_source(q);
    json_t *j = c && visa_hover(c, q->offset, &place, &markdown)
                    ? json_pack("{s:o, s:o}", "markdown", word(markdown), "range", json_of_place(place))
                : c ? json_pack("{s:n}", "markdown")
                    : NULL;
    visa_free(c);
    return j;
}

static json_t *answer_complete(source_question *q)
{
    static const char *const kinds[] = {
        [VISA_NAME_AXIS] = "constant",     [VISA_NAME_ALIAS] = "type",        [VISA_NAME_CONST] = "constant",
        [VISA_NAME_VARIABLE] = "variable", [VISA_NAME_FUNCTION] = "function", [VISA_NAME_MODULE] = "namespace",
        [VISA_NAME_METHOD] = "method",     [VISA_NAME_FIELD] = "property",    [VISA_NAME_TYPE] = "type",
        [VISA_NAME_KEYWORD] = "keyword"};
    visa_compilation *c = visa_complete(source_name_of_page, q->text, q->bytes, q->offset, &q->options);
    json_t *list = json_array();
    visa_completion item;
    for (size_t i = 0; c && i < COMPLETIONS_SENT_MAX && visa_completion_at(c, i, &item); i++)
        json_array_append_new(
            list, json_pack("{s:o, s:s, s:o}", "label", word(item.label), "type", kinds[item.kind], "detail", word(item.detail)));
    visa_free(c);
    return json_pack("{s:o}", "completions", list);
}

static json_t *answer_format(source_question *q)
{
    const char *text;
    size_t bytes;
    q->options.parse_only = true;
    visa_compilation *c = compile_source(q);
    json_t *j = c && visa_format(c, &text, &bytes) ? json_pack("{s:o}", "source", text_value(text, bytes))
                : c                                ? json_pack("{s:o}", "diagnostics", diagnostics_of(c))
                                                   : NULL;
    visa_free(c);
    return j;
}

static json_t *answer_fix(source_question *q)
{
    size_t changes, bytes;
    q->options.editor = true;
    visa_compilation *c = visa_fix(source_name_of_page, q->text, q->bytes, &q->options, &changes);
    const char *text = c ? visa_file_text(c, 0, &bytes) : NULL;
    json_t *j = text ? json_pack("{s:o, s:I}", "source", text_value(text, bytes), "changes", (json_int_t)changes) : NULL;
    visa_free(c);
    return j;
}

/* ---- check ---- */

/* Asked of the binary, before anything is allocated for a run. */
static bool ports_are_small(const binary_kernel *k, arena *a, bool *proven)
{
    uint64_t bytes = 0, all = 0;
    for (uint32_t i = 0; i < k->port_count; i++) {
        tensor_type t = port_logical_type(&k->ports[i], k->axes, k->axis_count, a);
        uint64_t elements = 1;
        for (int axis = 0; axis < t.rank; axis++)
            if (__builtin_mul_overflow(elements, (uint64_t)t.shape[axis], &elements) || elements > CHECK_BYTES_MAX)
                return false;
        bytes += elements * dtype_row_of(t.dtype)->bits / 8;
        all += elements;
    }
    *proven = all <= CHECK_PROVEN_MAX;
    return bytes <= CHECK_BYTES_MAX;
}

static json_t *json_of_check(const char *verdict, const char *report, const char *error)
{
    return json_pack("{s:s, s:o, s:o}", "verdict", verdict, "report", word(report), "error", word(error));
}

/* What was compared and differs is a verdict; anything else that went wrong is none. */
static json_t *check_kernel(visa_kernel *k, bool proven)
{
    const visa_run_options options = {.threads = CHECK_THREADS, .max_cycles = CHECK_CYCLES_MAX};
    const char *report = "", *error = visa_kernel_error(k);
    bool agrees = false;
    if (*error)
        return json_of_check("not checked", "", error);
    visa_kernel_check(k, &options, VISA_CHECK_NUMBERS | (proven ? VISA_CHECK_ALGEBRA : 0), &agrees, &report);
    const char *verdict = visa_kernel_verdict(k);
    return json_of_check(strcmp(verdict, "not compared") == 0 ? "not checked" : verdict, report, visa_kernel_error(k));
}

static json_t *answer_check(const json_t *question, const reply_limits *limits, int *status)
{
    source_question q;
    const char *wrong = read_source(question, limits, &q);
    const unsigned char *data;
    size_t size;
    if (wrong)
        return bad_question(status, wrong);
    visa_compilation *c = compile_source(&q);
    view_context v = {.compilation = c, .question = &q, .arena = c ? arena_new() : NULL};
    json_t *j = NULL;
    binary b;
    bool proven = false;
    if (v.arena) {
        budget_limit(v.arena, COMPILE_STEPS_MAX, COMPILE_BYTES_MAX, limits->max_milliseconds);
        diag_list_init(&v.diags, v.arena);
        if (visa_error_count(c) == 0)
            read_binary(&v, &b);
        if (!v.kernel)
            j = json_of_check("not checked", "",
                              visa_gave_up(c) ? "given up: it takes more work than an answer may" : "there is no kernel without errors");
        else if (!ports_are_small(v.kernel, v.arena, &proven))
            j = json_of_check("not checked", "", "its tensors have more than 64 MiB; visac --check takes any");
    }
    if (v.kernel && !j && visa_emit(c, VISA_EMIT_BINARY, &data, &size)) {
        visa_kernel *k = visa_kernel_open(data, size, v.kernel->name);
        j = k ? check_kernel(k, proven) : NULL;
        visa_kernel_close(k);
    }
    arena_free(v.arena);
    visa_free(c);
    return j;
}

/* ---- tune ---- */

static json_t *answer_tune(const json_t *question, const reply_limits *limits, int *status)
{
    const json_t *seconds = json_object_get(question, "seconds");
    source_question sizes = {0};
    const char *wrong = read_parameters(json_object_get(question, "sizes"), &sizes), *text = NULL;
    size_t bytes;
    visa_tune_options o = {
        .question = text_of(question, "question"), .dtype = text_of(question, "dtype"), .out_dtype = text_of(question, "out")};
    (void)limits; /* the search has its own: `seconds` */
    if (!o.question)
        wrong = "a question has a `question`, a text";
    for (size_t i = 0; i < sizes.options.parameter_count; i++)
        wrong = sizes.parameters[i].count == 1 ? wrong : "an axis has one size";
    if (seconds && (!json_is_integer(seconds) || json_integer_value(seconds) < 1 || json_integer_value(seconds) > TUNE_SECONDS_MAX))
        wrong = "`seconds` is a number from 1 to 10";
    if (wrong)
        return bad_question(status, wrong);
    o.sizes = sizes.parameters;
    o.size_count = sizes.options.parameter_count;
    o.dtype = o.dtype && o.dtype[0] ? o.dtype : NULL;
    o.out_dtype = o.out_dtype && o.out_dtype[0] ? o.out_dtype : NULL;
    o.work = (uint64_t)(seconds ? json_integer_value(seconds) : 1) * VISA_TUNE_STEPS_OF_SECOND;
    visa_compilation *c = visa_tune(&o, &text, &bytes);
    json_t *j =
        c ? json_pack("{s:o, s:o}", "source", text ? text_value(text, bytes) : json_null(), "diagnostics", diagnostics_of(c)) : NULL;
    visa_free(c);
    return j;
}

/* ---- what there is to begin with ---- */

static json_t *answer_start(const json_t *question, const reply_limits *limits, int *status)
{
    (void)question, (void)limits, (void)status;
    json_t *examples = json_array(), *dialects = json_array();
    asset a;
    for (size_t i = 0; asset_example(i, &a); i++)
        json_array_append_new(
            examples, json_pack("{s:s, s:s, s:o}", "name", a.name, "title", a.kind, "source", text_value((const char *)a.bytes, a.size)));
    for (size_t i = 0; visa_dialect_name(i); i++)
        json_array_append_new(dialects, word(visa_dialect_name(i)));
    return json_pack("{s:s, s:o, s:o}", "version", visa_version(), "examples", examples, "dialects", dialects);
}

/* One of a source has it read; what cannot be read is answered for it. */
static const struct {
    const char *path;
    json_t *(*make)(const json_t *question, const reply_limits *limits, int *status);
    json_t *(*of_source)(source_question *q);
} reply_rows[] = {{"/api/start", answer_start, NULL},       {"/api/compile", answer_compile, NULL}, {"/api/hover", NULL, answer_hover},
                  {"/api/complete", NULL, answer_complete}, {"/api/fix", NULL, answer_fix},         {"/api/format", NULL, answer_format},
                  {"/api/tune", answer_tune, NULL},         {"/api/check", answer_check, NULL}};
enum { REPLY_ROWS = sizeof reply_rows / sizeof *reply_rows };

static json_t *answer(size_t row, const json_t *question, const reply_limits *limits, int *status)
{
    if (reply_rows[row].make)
        return reply_rows[row].make(question, limits, status);
    source_question q;
    const char *wrong = read_source(question, limits, &q);
    return wrong ? bad_question(status, wrong) : reply_rows[row].of_source(&q);
}

reply reply_make(const char *path, const char *body, size_t bytes, const reply_limits *limits)
{
    size_t row = 0;
    while (row < REPLY_ROWS && strcmp(reply_rows[row].path, path) != 0)
        row++;
    json_error_t error = {.text = "arrays and objects are nested too deeply"};
    json_t *question = json_nests_too_deeply(body, bytes) ? NULL : json_loadb(body, bytes, JSON_ALLOW_NUL, &error);
    reply r = {.status = row == REPLY_ROWS ? 404 : json_is_object(question) ? 200 : 400};
    json_t *j = r.status == 200   ? answer(row, question, limits, &r.status)
                : r.status == 404 ? fault("nobody answers that")
                                  : fault(question ? "a question is an object" : error.text);
    r.text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    r.bytes = r.text ? strlen(r.text) : 0;
    r.status = r.text ? r.status : 500;
    json_decref(j);
    json_decref(question);
    return r;
}
