#include "libvisa/concern.h"

#include <string.h>

#include "support/budget.h"
#include "support/order.h"

/* Bytes that are looked at for names; past them everything is concerned. */
enum { CONCERN_BYTES_MAX = 4 << 20 };
/* Items of a change that are looked for under another place. */
enum { MOVED_ITEMS_MAX = 64 };
/* Bytes that are looked at for one step of work. */
enum { BYTES_OF_STEP = 64 };

/* A sum of bytes (FNV-1a), one more. */
static uint32_t sum_with(uint32_t sum, char c)
{
    return (sum ^ (unsigned char)c) * 0x01000193u;
}

/* ---- items ---- */

typedef struct items_of {
    arena *arena;
    outer_items out;
    uint32_t around;
} items_of;

static void add_item(items_of *to, outer_item item)
{
    item.around = to->around;
    ARENA_PUSH(to->arena, to->out.items, to->out.count, to->out.capacity, item);
}

static outer_item item_of(const ast *n)
{
    return (outer_item){.begin = n->range.begin, .end = n->range.end, .kind = n->kind};
}

static outer_item named_item(const ast *n)
{
    outer_item item = item_of(n);
    item.name_begin = n->name_range.begin;
    item.name_end = n->name_range.end;
    return item;
}

static void add_items(items_of *to, const ast *parent);

/* Its items are of it alone where its head and its end are where they were. */
static void add_module(items_of *to, const ast *n)
{
    const ast *body = ast_kid(n, 1);
    outer_item head = item_of(n), foot = head;
    uint32_t around = to->around;
    head.structure = foot.structure = true;
    if (!ast_is(body, AST_BLOCK) || body->range.end < body->range.begin + 2) {
        add_item(to, head);
        return;
    }
    head.end = body->range.begin + 1;
    foot.begin = body->range.end - 1;
    add_item(to, head);
    for (const char *c = n->text; *c; c++)
        to->around = sum_with(to->around, *c);
    add_items(to, body);
    to->around = around;
    add_item(to, foot);
}

static bool has_glob(const ast *n)
{
    bool found = ast_is(n, AST_USE_GLOB);
    for (uint32_t i = 0; i < n->kid_count && !found; i++)
        found = (ast_is(n->kids[i], AST_USE_GROUP) || ast_is(n->kids[i], AST_USE_GLOB)) && has_glob(n->kids[i]);
    return found;
}

static void add_items(items_of *to, const ast *parent)
{
    budget_enter(to->arena);
    for (uint32_t i = 0; i < parent->kid_count; i++) {
        const ast *n = parent->kids[i];
        budget_spend(to->arena, 1);
        if (ast_is(n, AST_MOD)) {
            add_module(to, n);
        } else if (ast_is(n, AST_AXES)) {
            for (uint32_t k = 0; k < n->kid_count; k++) {
                outer_item axis = named_item(n->kids[k]);
                axis.is_unit = ast_is(n->kids[k], AST_AXIS) && ast_kid(n->kids[k], 0)->value == 1;
                if (ast_is(n->kids[k], AST_AXIS))
                    add_item(to, axis);
            }
        } else if (ast_is(n, AST_TYPE_ALIAS) || ast_is(n, AST_CONST) || ast_is(n, AST_FN)) {
            add_item(to, named_item(n));
        } else if (!ast_is(n, AST_NONE) && n->range.begin < n->range.end) {
            outer_item other = item_of(n);
            other.structure = ast_is(n, AST_LIST) || ast_is(n, AST_ATTR) || has_glob(n);
            add_item(to, other);
        }
    }
    budget_leave(to->arena);
}

outer_items outer_items_of(const ast *file, arena *a)
{
    items_of all = {.arena = a, .around = 1};
    add_items(&all, file);
    for (size_t i = 1; i < all.out.count; i++) /* names of an error may stand anywhere */
        if (all.out.items[i].begin < all.out.items[i - 1].end)
            all.out.items[i].structure = all.out.items[i - 1].structure = true;
    return all.out;
}

size_t outer_items_find(const outer_items *of, uint32_t offset)
{
    size_t first;
    ORDER_FIRST(&first, of->count, i, of->items[i].end <= offset);
    return first < of->count && of->items[first].begin <= offset ? first : of->count;
}

/* ---- words ---- */

typedef struct word {
    const char *text;
    uint32_t bytes;
    uint32_t sum;
} word;

typedef struct word_set {
    arena *arena;
    word *words;
    size_t count, capacity;
    uint32_t *slots; /* by sum: 1 + the number of a word; a power of two */
    size_t slot_count;
    bool begins[256]; /* with which bytes one does */
    size_t looked;    /* bytes */
} word_set;

static bool is_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (unsigned char)c >= 0x80;
}

/* From *at on; false: there is none before the end. */
static bool next_word(const char *text, uint32_t *at, uint32_t end, word *out)
{
    uint32_t i = *at;
    while (i < end && !is_of_word(text[i]))
        i++;
    *out = (word){.text = text + i, .sum = 0x811c9dc5u};
    for (; i < end && is_of_word(text[i]); i++, out->bytes++)
        out->sum = sum_with(out->sum, text[i]);
    *at = i;
    return out->bytes > 0;
}

static uint32_t *slot_of(const word_set *s, const word *w)
{
    size_t i = w->sum & (s->slot_count - 1);
    for (; s->slots[i]; i = (i + 1) & (s->slot_count - 1)) {
        const word *known = &s->words[s->slots[i] - 1];
        if (known->sum == w->sum && known->bytes == w->bytes && memcmp(known->text, w->text, w->bytes) == 0)
            break;
    }
    return &s->slots[i];
}

static bool has_word(const word_set *s, const word *w)
{
    return s->begins[(unsigned char)w->text[0]] && *slot_of(s, w) != 0;
}

static void add_word(word_set *s, const word *w)
{
    if (has_word(s, w))
        return;
    s->begins[(unsigned char)w->text[0]] = true;
    ARENA_PUSH(s->arena, s->words, s->count, s->capacity, *w);
    if (2 * s->count >= s->slot_count) {
        s->slot_count *= 2;
        s->slots = ARENA_ARRAY(s->arena, uint32_t, s->slot_count);
        for (size_t i = 0; i + 1 < s->count; i++)
            *slot_of(s, &s->words[i]) = (uint32_t)i + 1;
    }
    *slot_of(s, w) = (uint32_t)s->count;
}

static word_set *word_set_new(arena *a)
{
    enum { SLOTS = 64 };
    word_set *s = ARENA_NEW(a, word_set);
    s->arena = a;
    s->slot_count = SLOTS;
    s->slots = ARENA_ARRAY(a, uint32_t, SLOTS);
    return s;
}

static void look(word_set *s, uint32_t begin, uint32_t end)
{
    s->looked += end - begin;
    budget_spend(s->arena, 1 + (end - begin) / BYTES_OF_STEP);
}

static void add_words(word_set *s, const char *text, uint32_t begin, uint32_t end)
{
    word w;
    look(s, begin, end);
    while (next_word(text, &begin, end, &w))
        add_word(s, &w);
}

/* Those that it may give a meaning to. */
static void add_names(concern *c, const char *text, const outer_item *item)
{
    bool named = item->name_begin < item->name_end;
    c->everything = c->everything || item->structure;
    add_words(c->words, text, named ? item->name_begin : item->begin, named ? item->name_end : item->end);
}

static bool has_changed(const concern *c, const char *text, uint32_t begin, uint32_t end)
{
    word w;
    bool found = c->everything;
    look(c->words, begin, end);
    while (!found && next_word(text, &begin, end, &w))
        found = has_word(c->words, &w);
    return found;
}

static bool look_at(concern *c, const char *text, const outer_items *of, size_t i)
{
    const outer_item *item = &of->items[i];
    c->everything = c->everything || c->words->looked > CONCERN_BYTES_MAX;
    if (c->concerned[i] || item->structure || !has_changed(c, text, item->begin, item->end))
        return false;
    c->concerned[i] = true;
    return true;
}

/* What mentions a changed name is another one than before. What nobody mentions is looked at once, after all others. */
static void spread(concern *c, const char *text, const outer_items *of)
{
    c->concerned = ARENA_ARRAY(c->words->arena, bool, of->count + 1);
    for (size_t words = SIZE_MAX; words != c->words->count && !c->everything;) {
        words = c->words->count;
        for (size_t i = 0; i < of->count && !c->everything; i++)
            if (!of->items[i].leaf && look_at(c, text, of, i))
                add_names(c, text, &of->items[i]);
    }
    for (size_t i = 0; i < of->count && !c->everything; i++)
        if (of->items[i].leaf)
            look_at(c, text, of, i);
}

/* ---- what differs ---- */

/* A comment or white space is one blank. */
static char next_spelt(const char *text, uint32_t *at, uint32_t end)
{
    uint32_t from = *at;
    for (;;) {
        while (*at < end && strchr(" \t\r\n", text[*at]))
            ++*at;
        if (*at + 1 >= end || text[*at] != '/' || text[*at + 1] != '/')
            break;
        while (*at < end && text[*at] != '\n')
            ++*at;
    }
    return *at > from ? ' ' : *at < end ? text[(*at)++] : '\0';
}

static bool is_spelt_alike(const char *a, const outer_item *x, const char *b, const outer_item *y)
{
    uint32_t i = x->begin, k = y->begin;
    bool plain = !memchr(a + i, '"', x->end - i) &&
                 !memchr(a + i, '*', x->end - i); /* a text, or a comment of several lines, is compared as it is */
    if (x->kind != y->kind || x->around != y->around)
        return false;
    if (!plain)
        return x->end - i == y->end - k && memcmp(a + i, b + k, x->end - i) == 0;
    char left, right;
    do {
        left = next_spelt(a, &i, x->end);
        right = next_spelt(b, &k, y->end);
    } while (left == right && left != '\0');
    return left == right;
}

/* Where it would be now; false: the change touches it, or what is between it and the one before. */
static bool moves_to(const outer_item *item, uint32_t from, const text_change *by, uint32_t *begin, uint32_t *end)
{
    if (item->end >= by->begin && from <= by->end)
        return false;
    int64_t moved = item->begin >= by->end ? by->by : 0;
    *begin = (uint32_t)(item->begin + moved);
    *end = (uint32_t)(item->end + moved);
    return true;
}

/* Marks those that are in both texts: by their places, then by what they say. */
typedef struct match {
    bool *old, *now;
} match;

static void match_places(match *m, const outer_items *before, const outer_items *after, const text_change *by)
{
    for (size_t i = 0, k = 0; i < before->count; i++) {
        uint32_t begin, end;
        const outer_item *item = &before->items[i];
        if (!moves_to(item, i ? before->items[i - 1].end : 0, by, &begin, &end))
            continue;
        while (k < after->count && after->items[k].begin < begin)
            k++;
        bool same = k < after->count && after->items[k].begin == begin && after->items[k].end == end &&
                    after->items[k].kind == item->kind && after->items[k].around == item->around;
        m->old[i] = same;
        if (same)
            m->now[k++] = true;
    }
}

static void match_words(match *m, const char *old, const outer_items *before, const char *now, const outer_items *after)
{
    size_t tried = 0, from = 0;
    for (size_t i = 0; i < before->count; i++) {
        size_t k = from, left = MOVED_ITEMS_MAX;
        if (m->old[i])
            continue;
        while (k < after->count && left && (m->now[k] || !is_spelt_alike(old, &before->items[i], now, &after->items[k]))) {
            left -= !m->now[k];
            k++;
        }
        if (k == after->count || !left || tried++ > MOVED_ITEMS_MAX)
            continue;
        m->old[i] = m->now[k] = true;
        from = k + 1;
    }
}

static bool has_unit(const outer_items *of)
{
    bool found = false;
    for (size_t i = 0; i < of->count; i++)
        found = found || of->items[i].is_unit;
    return found;
}

concern concern_between(const char *old, const outer_items *before, const char *now, const outer_items *after, const text_change *by,
                        arena *a)
{
    match m = {ARENA_ARRAY(a, bool, before->count + 1), ARENA_ARRAY(a, bool, after->count + 1)};
    concern c = {.everything = has_unit(before) != has_unit(after), .words = word_set_new(a)};
    match_places(&m, before, after, by);
    match_words(&m, old, before, now, after);
    for (size_t i = 0; i < before->count; i++)
        if (!m.old[i])
            add_names(&c, old, &before->items[i]);
    for (size_t i = 0; i < after->count; i++)
        if (!m.now[i])
            add_names(&c, now, &after->items[i]);
    spread(&c, now, after);
    return c;
}

concern concern_of_items(const char *text, const outer_items *items, const bool *marked, arena *a)
{
    concern c = {.words = word_set_new(a)};
    for (size_t i = 0; i < items->count; i++)
        if (marked[i])
            add_names(&c, text, &items->items[i]);
    spread(&c, text, items);
    return c;
}
