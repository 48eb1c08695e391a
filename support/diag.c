#include "support/diag.h"

#include <string.h>
#include <strings.h>

#include "support/budget.h"
#include "support/order.h"
#include "support/strbuf.h"
#include "support/warning.h"

static const diag_row rows[] = {
#define WARNING DIAG_WARNING, false
#define PERFORMANCE DIAG_WARNING, true
#define ERROR DIAG_ERROR, false
#define DIAG(symbol, name, severity, title, explanation) {name, severity, title, explanation},
#include "support/diagnostics.def"
#undef DIAG
#undef ERROR
#undef PERFORMANCE
#undef WARNING
};

src_range src_range_join(src_range a, src_range b)
{
    if (a.file < 0 || a.file != b.file)
        return a.file < 0 ? b : a;
    return (src_range){a.file, a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

const diag_row *diag_row_of(diag_id id)
{
    return &rows[id];
}

diag_id diag_id_by_name(const char *name)
{
    for (int id = 0; id < DIAG_ID_COUNT; id++)
        if (strcasecmp(rows[id].name, name) == 0)
            return (diag_id)id;
    return DIAG_ID_COUNT;
}

void diag_list_init(diag_list *list, arena *a)
{
    *list = (diag_list){.arena = a};
}

static bool is_known(const diag_list *list, diag_id id, src_range range)
{
    budget_spend(list->arena, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const diag *d = list->items[i];
        if (d->id == id && d->range.file == range.file && d->range.begin == range.begin && d->range.end == range.end)
            return true;
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Is it spoken with a vowel first? The letters of HBM, SPM and the like are. */
static bool takes_an(const char *word)
{
    return strchr("AEIOaeio", word[0]) || strncmp(word, "Hbm", 3) == 0 || strncmp(word, "Spm", 3) == 0;
}

/* The article at the end of the text, if there is one, as the word after it asks for. */
static void correct_article(strbuf *s, const char *word)
{
    size_t end = s->bytes;
    bool an = end >= 3 && strcmp(s->text + end - 3, "an ") == 0, a = end >= 2 && strcmp(s->text + end - 2, "a ") == 0;
    size_t letters = an ? 2 : 1;
    if ((!a && !an) || (end > letters + 1 && s->text[end - letters - 2] != ' '))
        return;
    s->bytes -= letters + 1;
    strbuf_puts(s, takes_an(word) ? "an " : "a ");
}

/* The text with each `@word` as the reader calls it, and the article in front of it. An `@` inside a word or in front of none is no mark.
 */
static const char *spell(diag_list *list, const char *text)
{
    if (!strchr(text, '@'))
        return text;
    strbuf s;
    strbuf_init(&s, list->arena);
    strbuf_puts(&s, "");
    for (const char *at = text; *at;) {
        size_t letters = 0;
        while (*at == '@' && is_letter(at[1 + letters]))
            letters++;
        if (letters == 0 || (at > text && (is_letter(at[-1]) || (at[-1] >= '0' && at[-1] <= '9')))) {
            strbuf_printf(&s, "%c", *at++);
            continue;
        }
        const char *word = arena_strndup(list->arena, at + 1, letters);
        if (list->words.of)
            word = list->words.of(list->words.release, word);
        correct_article(&s, word);
        strbuf_puts(&s, word);
        at += 1 + letters;
    }
    return s.text;
}

/* ---- one of a thing ---- */

/* Things that messages count: those of which one is more than an s less, and the others. */
static const char *const plurals[][2] = {
    {"entries", "entry"}, {"copies", "copy"}, {"axes", "axis"}, {"halves", "half"}, {"indices", "index"}};
static const char *const things[] = {"arguments",  "bits",       "bytes",   "channels", "chips",      "clusters", "columns",
                                     "commands",   "conditions", "cycles",  "digits",   "dimensions", "elements", "flits",
                                     "groups",     "inputs",     "lanes",   "Lanes",    "levels",     "loops",    "multiplications",
                                     "operations", "operators",  "outputs", "packets",  "PEs",        "pieces",   "places",
                                     "positions",  "requests",   "rows",    "Rows",     "slices",     "slots",    "steps",
                                     "streams",    "tiles",      "times",   "tokens",   "values"};
static const char *const verbs[][2] = {{" are ", " is "}, {" have ", " has "}, {" were ", " was "}, {" do ", " does "}};

enum { PLURALS = sizeof plurals / sizeof *plurals, THINGS = sizeof things / sizeof *things, VERBS = sizeof verbs / sizeof *verbs };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Is the `1` a number of its own, and not the end of a longer one, of a formula or of `1 of 1`? */
static bool counts(const char *text, const char *at)
{
    if (at == text || at[-1] == '(')
        return true;
    if (at - text >= 5 && strncmp(at - 4, " of ", 4) == 0 && is_digit(at[-5]))
        return false;
    return at[-1] == ' ' && (at - text < 2 || is_letter(at[-2]) || strchr(",:;.)`", at[-2]));
}

/* The word for one of what is spoken of in the plural, of `letters` letters; NULL: no such thing. */
static const char *one_of(arena *a, const char *word, size_t letters)
{
    for (size_t i = 0; i < PLURALS; i++)
        if (strlen(plurals[i][0]) == letters && strncmp(word, plurals[i][0], letters) == 0)
            return plurals[i][1];
    for (size_t i = 0; i < THINGS; i++)
        if (strlen(things[i]) == letters && strncmp(word, things[i], letters) == 0)
            return arena_strndup(a, word, letters - 1);
    return NULL;
}

/* The text with `1 flit is` for `1 flits are`. */
static const char *count_ones(arena *a, const char *text)
{
    strbuf s;
    strbuf_init(&s, a);
    const char *from = text;
    for (const char *at = strstr(text, "1 "); at; at = strstr(at + 1, "1 ")) {
        const char *word = at + 2, *one = NULL;
        size_t letters = 0;
        while (is_letter(word[letters]))
            letters++;
        if (counts(text, at) && (one = one_of(a, word, letters))) {
            strbuf_append(&s, from, (size_t)(word - from));
            strbuf_puts(&s, one);
            from = word + letters;
            for (size_t i = 0; i < VERBS; i++)
                if (strncmp(from, verbs[i][0], strlen(verbs[i][0])) == 0) {
                    strbuf_puts(&s, verbs[i][1]);
                    from += strlen(verbs[i][0]);
                    break;
                }
        }
    }
    if (from == text)
        return text;
    strbuf_puts(&s, from);
    return s.text;
}

static const char *said(diag_list *list, const char *text)
{
    return count_ones(list->arena, spell(list, text));
}

diag *diag_add(diag_list *list, diag_id id, src_range range, const char *format, ...)
{
    diag *d = ARENA_NEW(list->arena, diag);
    d->id = id;
    bool wanted = warning_level(&list->warnings, id, &d->severity);
    d->range = range;
    if (!wanted)
        return d; /* without a text, which nobody reads */
    va_list args;
    va_start(args, format);
    d->message = said(list, arena_vprintf(list->arena, format, args));
    va_end(args);
    if (list->repeating && is_known(list, id, range))
        return d;
    if (d->severity == DIAG_ERROR)
        list->error_count++;
    ARENA_PUSH(list->arena, list->items, list->count, list->capacity, d);
    return d;
}

void diag_note(diag_list *list, diag *d, src_range range, const char *format, ...)
{
    if (!d->message)
        return;
    va_list args;
    va_start(args, format);
    diag_remark note = {range, said(list, arena_vprintf(list->arena, format, args))};
    va_end(args);
    ARENA_PUSH(list->arena, d->notes, d->note_count, d->note_capacity, note);
}

void diag_help(diag_list *list, diag *d, const char *format, ...)
{
    if (!d->message)
        return;
    va_list args;
    va_start(args, format);
    d->help = said(list, arena_vprintf(list->arena, format, args));
    va_end(args);
}

void diag_replace(diag_list *list, diag *d, src_range range, const char *format, ...)
{
    bool begun = d->edit_count > 0 || d->edit_capacity == 0;
    va_list args;
    va_start(args, format);
    diag_edit edit = {range, arena_vprintf(list->arena, format, args)};
    va_end(args);
    if (begun)
        ARENA_PUSH(list->arena, d->edits, d->edit_count, d->edit_capacity, edit);
    if (range.file < 0)
        d->edit_count = 0; /* and no later one is taken: the capacity says that there was one */
}

void diag_list_append(diag_list *list, const diag_list *more)
{
    for (size_t i = 0; i < more->count; i++)
        ARENA_PUSH(list->arena, list->items, list->count, list->capacity, more->items[i]);
    list->error_count += more->error_count;
}

static void *copy_of(arena *a, void *items, size_t count, size_t capacity, size_t bytes_each)
{
    return capacity ? arena_grow(a, items, count, capacity, bytes_each) : NULL;
}

diag_list diag_list_copy(const diag_list *list)
{
    arena *a = list->arena;
    diag_list copy = *list;
    copy.items = copy_of(a, list->items, list->count, list->capacity, sizeof *list->items);
    for (size_t i = 0; i < list->count; i++) {
        diag *d = copy.items[i] = copy_of(a, list->items[i], 1, 1, sizeof *d);
        d->notes = copy_of(a, d->notes, d->note_count, d->note_capacity, sizeof *d->notes);
        d->edits = copy_of(a, d->edits, d->edit_count, d->edit_capacity, sizeof *d->edits);
    }
    return copy;
}

static int diag_order(const diag *a, const diag *b)
{
    return order_then(ORDER(a->range.file, b->range.file), ORDER(a->range.begin, b->range.begin));
}

static int found_order(const void *a, const void *b)
{
    const diag *const *x = a, *const *y = b;
    return diag_order(*x, *y);
}

void diag_list_sort(diag_list *list)
{
    order_sort(list->items, list->count, sizeof *list->items, found_order);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        diag *d = list->items[i];
        bool repeated = false;
        for (size_t j = kept; j-- > 0 && !repeated && diag_order(list->items[j], d) == 0;) {
            diag *e = list->items[j];
            repeated = e->id == d->id && e->range.end == d->range.end && strcmp(e->message, d->message) == 0;
        }
        if (!repeated)
            list->items[kept++] = d;
        else if (d->severity == DIAG_ERROR)
            list->error_count--;
    }
    list->count = kept;
}

void diag_list_put(const diag_list *list, const char *where, strbuf *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const diag *d = list->items[i];
        strbuf_printf(out, "%s%s: ", i ? "\n" : "", diag_row_of(d->id)->name);
        if (where)
            strbuf_printf(out, "%s, byte %u: ", where, d->range.begin);
        strbuf_puts(out, d->message);
        for (size_t n = 0; n < d->note_count; n++)
            strbuf_printf(out, "\nnote: %s", d->notes[n].text);
        if (d->help)
            strbuf_printf(out, "\nhelp: %s", d->help);
    }
}
