#include "runtime/field/verdict.h"

#include <jansson.h>
#include <math.h>

#include "support/json_text.h"
#include "support/shown.h"

enum { VERDICT_FORMAT = 1 };

struct verdict_book {
    verdict_item *items;
    size_t count, capacity;
};

void verdict_book_add(verdict_book **book, const verdict_item *item, arena *a)
{
    if (!*book)
        *book = ARENA_NEW(a, verdict_book);
    ARENA_PUSH(a, (*book)->items, (*book)->count, (*book)->capacity, *item);
}

static json_t *word(const char *text, arena *a)
{
    return json_string(shown_text(text, a));
}

/* ---- the words of a verdict ---- */

static const char agrees[] = "agrees", differs[] = "differs", not_compared[] = "not compared";

static bool has_agreement(const verdict_item *v)
{
    return v->compared > 0 || (v->numbers && v->numbers->count > 0) ||
           (v->algebra && !v->algebra->undecided && v->algebra->output_count > 0);
}

static const char *word_of_finding(const finding *f)
{
    return f->agrees ? agrees : f->differing != 0 || f->compared > 0 ? differs : not_compared;
}

static bool has_finding(const verdict_item *v, const char *wanted)
{
    for (size_t i = 0; v->numbers && i < v->numbers->count; i++)
        if (word_of_finding(&v->numbers->items[i]) == wanted)
            return true;
    return false;
}

const char *verdict_word(const verdict_item *v)
{
    bool found = v->differs || v->differing > 0 || (v->algebra && !v->algebra->agrees) || has_finding(v, differs);
    return v->left_out ? not_compared : found ? differs : has_agreement(v) && !has_finding(v, not_compared) ? agrees : not_compared;
}

bool verdict_is_difference(const diag_list *diags)
{
    bool found = false;
    for (size_t i = 0; i < diags->count; i++)
        found = found || diags->items[i]->id == E_CHECK_MISMATCH || diags->items[i]->id == E_RUN_UNDEFINED;
    return found;
}

/* ---- the document ---- */

static json_t *json_of_finding(const finding *f, arena *a)
{
    json_t *j = json_object();
    json_object_set_new(j, "name", word(f->output, a));
    json_object_set_new(j, "verdict", json_string(word_of_finding(f)));
    json_object_set_new(j, "compared", json_integer(f->compared));
    json_object_set_new(j, "differing", f->differing < 0 ? json_null() : json_integer(f->differing));
    json_object_set_new(j, "undecided", json_integer(f->undecided));
    json_object_set_new(j, "worst", f->worst < 0 || !isfinite(f->worst) ? json_null() : json_real(f->worst));
    return j;
}

static json_t *json_of_algebra(const field_verdict *v, arena *a)
{
    json_t *j = json_object(), *outputs = json_array();
    json_object_set_new(j, "verdict", json_string(v->undecided ? "not decided" : v->agrees ? agrees : differs));
    json_object_set_new(j, "undecided_by", v->undecided ? word(v->undecided, a) : json_null());
    for (size_t i = 0; i < v->output_count; i++) {
        const field_output *o = &v->outputs[i];
        json_t *one = json_object();
        json_object_set_new(one, "name", word(o->name, a));
        json_object_set_new(one, "verdict", json_string(o->differing ? differs : agrees));
        json_object_set_new(one, "elements", json_integer(o->elements));
        json_object_set_new(one, "compared", json_integer(o->compared));
        json_object_set_new(one, "differing", json_integer(o->differing));
        json_object_set_new(one, "sampled", json_boolean(o->sampled));
        json_object_set_new(one, "degree", json_integer(o->degree));
        json_object_set_new(one, "probability", json_real(exp2(o->log2_probability)));
        json_array_append_new(outputs, one);
    }
    json_object_set_new(j, "outputs", outputs);
    return j;
}

static json_t *json_of_item(const verdict_item *v, arena *a)
{
    json_t *j = json_object();
    json_object_set_new(j, v->is_program ? "program" : "kernel", word(v->name, a));
    json_object_set_new(j, "verdict", json_string(verdict_word(v)));
    if (v->left_out)
        json_object_set_new(j, "left_out", word(v->left_out, a));
    if (v->runs) {
        json_object_set_new(j, "runs", json_integer(v->runs));
        json_object_set_new(j, "compared", json_integer(v->compared));
        json_object_set_new(j, "differing", json_integer(v->differing));
    }
    if (v->numbers) {
        json_t *outputs = json_array();
        for (size_t i = 0; i < v->numbers->count; i++)
            json_array_append_new(outputs, json_of_finding(&v->numbers->items[i], a));
        json_object_set_new(j, "numbers", outputs);
    }
    if (v->algebra)
        json_object_set_new(j, "algebra", json_of_algebra(v->algebra, a));
    return j;
}

static json_t *json_of_diags(diag_list *diags)
{
    json_t *list = json_array();
    diag_list_sort(diags);
    for (size_t i = 0; i < diags->count; i++) {
        const diag *d = diags->items[i];
        json_t *j = json_object(), *notes = json_array();
        for (size_t n = 0; n < d->note_count; n++)
            json_array_append_new(notes, word(d->notes[n].text, diags->arena));
        json_object_set_new(j, "id", json_string(diag_row_of(d->id)->name));
        json_object_set_new(j, "severity", json_string(d->severity == DIAG_ERROR ? "error" : "warning"));
        json_object_set_new(j, "message", word(d->message, diags->arena));
        json_object_set_new(j, "notes", notes);
        json_object_set_new(j, "help", d->help ? word(d->help, diags->arena) : json_null());
        json_array_append_new(list, j);
    }
    return list;
}

const char *verdict_text(const verdict_book *book, const verdict_head *head, diag_list *diags)
{
    json_t *j = json_object(), *checked = json_array(), *kinds = json_array();
    const char *of_all = not_compared;
    for (size_t i = 0; book && i < book->count; i++) {
        const char *of_one = verdict_word(&book->items[i]);
        of_all = of_one == differs || of_all == not_compared ? of_one : of_all;
        json_array_append_new(checked, json_of_item(&book->items[i], diags->arena));
    }
    if (head->mismatch && of_all == agrees) /* of one of several nothing was compared */
        of_all = not_compared;
    if (head->numbers)
        json_array_append_new(kinds, json_string("numbers"));
    if (head->algebra)
        json_array_append_new(kinds, json_string("algebra"));
    json_object_set_new(j, "format", json_integer(VERDICT_FORMAT));
    json_object_set_new(j, "file", word(head->file, diags->arena));
    json_object_set_new(j, "verdict", json_string(of_all));
    json_object_set_new(j, "kinds", kinds);
    json_object_set_new(j, "reference_order", json_string(head->free_order ? "free" : "hardware"));
    json_object_set_new(j, "seed", json_integer((json_int_t)head->seed));
    json_object_set_new(j, "checked", checked);
    json_object_set_new(j, "diagnostics", json_of_diags(diags));
    return json_dump_text(j, JSON_INDENT(2) | JSON_REAL_PRECISION(6), diags->arena);
}
