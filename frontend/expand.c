#include "frontend/expand.h"

#include <string.h>

#include "frontend/cfg.h"
#include "frontend/expand_state.h"
#include "frontend/flow.h"
#include "frontend/parse.h"
#include "frontend/parser.tab.h"
#include "support/budget.h"
#include "support/order.h"

expander *expander_new(source_map *sources, arena *a, diag_list *diags)
{
    expander *e = ARENA_NEW(a, expander);
    *e = (expander){.sources = sources, .arena = a, .diags = diags};
    return e;
}

const expander *expand_keep(const expander *e)
{
    expander *kept = ARENA_NEW(e->arena, expander);
    *kept = *e;
    kept->scanner = NULL; /* its memory may have grown where a rewind forgets it */
    return kept;
}

void expand_restore(expander *e, const expander *kept)
{
    *e = *kept;
}

token_scanner *expand_scanner(expander *e)
{
    if (!e->scanner)
        e->scanner = token_scanner_new(e->arena);
    return e->scanner;
}

/* ---- texts of their own ---- */

ast *expand_parse(expander *e, expansion x, diag_list *diags)
{
    const char *name = source_name(e->sources, x.text.count ? x.text.pieces[0].from.file : x.call.file);
    x.file = source_map_add(e->sources, name, x.text.text.text, x.text.text.bytes);
    if (x.file < 0)
        return ast_new(e->arena, AST_FILE, x.call);
    ARENA_PUSH(e->arena, e->expansions, e->count, e->capacity, x);
    return parse_file(e->sources, x.file, e->arena, diags);
}

static const expansion *expansion_of(const expander *e, int file)
{
    size_t low; /* files are numbered in the order of the list */
    ORDER_FIRST(&low, e->count, i, e->expansions[i].file < file);
    return low < e->count && e->expansions[low].file == file ? &e->expansions[low] : NULL;
}

/* The piece around the offset, or the next one after it, or the last. */
static const text_piece *piece_at(const expansion *x, uint32_t offset)
{
    size_t i = 0;
    while (i + 1 < x->text.count && x->text.pieces[i].begin + (x->text.pieces[i].from.end - x->text.pieces[i].from.begin) <= offset)
        i++;
    return x->text.count ? &x->text.pieces[i] : NULL;
}

/* One step back. A range over several pieces is what it has of the first one. */
static src_range place_before(const expansion *x, src_range range)
{
    const text_piece *p = piece_at(x, range.begin);
    if (!p)
        return x->call;
    uint32_t length = p->from.end - p->from.begin, begin = range.begin > p->begin ? range.begin - p->begin : 0,
             end = range.end > p->begin ? range.end - p->begin : 0;
    begin = begin < length ? begin : length;
    end = end < length ? end : length;
    return (src_range){p->from.file, p->from.begin + begin, p->from.begin + (end > begin ? end : begin)};
}

src_range expand_place(const expander *e, src_range range, src_range *call)
{
    const expansion *x;
    *call = SRC_NOWHERE;
    while (e && (x = expansion_of(e, range.file))) {
        range = place_before(x, range);
        if (x->macro)
            *call = x->call;
    }
    while (e && call->file >= 0 && (x = expansion_of(e, call->file))) /* the outermost one stands in a file */
        *call = x->macro ? x->call : place_before(x, *call);
    return range;
}

static bool lies_in(src_range inner, src_range outer)
{
    return inner.file == outer.file && inner.begin >= outer.begin && inner.end <= outer.end;
}

/* Is all of the range one piece of a text that is nobody's macro? Else no change of it is any diagnostic's: a macro's text serves all its
 * calls, and of several pieces the first is not what was meant. */
static bool is_whole(const expander *e, src_range range)
{
    const expansion *x;
    while ((x = expansion_of(e, range.file))) {
        src_range before = place_before(x, range);
        if (x->macro || before.end - before.begin != range.end - range.begin || range.begin < piece_at(x, range.begin)->begin)
            return false;
        range = before;
    }
    return true;
}

static void settle_edits(const expander *e, diag *d)
{
    src_range unused;
    for (size_t i = 0; i < d->edit_count && !d->shared; i++) {
        d->shared = !is_whole(e, d->edits[i].range);
        d->edits[i].range = expand_place(e, d->edits[i].range, &unused);
    }
}

void expand_settle(const expander *e, diag_list *diags)
{
    for (size_t i = 0; i < diags->count && e->count > 0; i++) {
        diag *d = diags->items[i];
        src_range call, unused;
        const expansion *x = expansion_of(e, d->range.file);
        if (x) {
            d->shared = d->shared || !is_whole(e, d->range);
            d->range = expand_place(e, d->range, &call);
            if (call.file >= 0 && !lies_in(d->range, call))
                diag_note(diags, d, call, "in what this call gives");
        }
        for (size_t k = 0; k < d->note_count; k++)
            d->notes[k].range = expand_place(e, d->notes[k].range, &unused);
        settle_edits(e, d);
    }
}

/* ---- macros ---- */

static const macro *macro_named(const expander *e, const char *name)
{
    for (size_t i = e->macro_count; i-- > 0;)
        if (strcmp(macro_name(e->macros[i]), name) == 0)
            return e->macros[i];
    return NULL;
}

static void define(expander *e, const ast *item)
{
    macro *m = macro_define(item, e->sources, expand_scanner(e), e->arena, e->diags);
    if (m)
        ARENA_PUSH(e->arena, e->macros, e->macro_count, e->macro_capacity, m);
}

/* The AST_FILE that a call of a macro gives, between `before` and `after`; NULL: it is none of the file's, or was refused. */
static ast *expand_call(expander *e, const ast *call, const char *before, const char *after, bool *known)
{
    const macro *m = macro_named(e, call->text);
    expansion x = {.call = call->range, .macro = call->text};
    *known = m != NULL;
    if (!m)
        return NULL;
    pieced_text_init(&x.text, e->arena);
    strbuf_puts(&x.text.text, before);
    if (!macro_expand(m, call, e->sources, expand_scanner(e), e->arena, e->diags, &x.text))
        return NULL;
    strbuf_puts(&x.text.text, after);
    return expand_parse(e, x, e->diags);
}

/* ---- assertions ---- */

static bool is_assertion(const ast *n)
{
    static const char *const names[] = {"assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"};
    for (size_t i = 0; ast_is(n, AST_MACRO) && n->kid_count == 1 && i < sizeof names / sizeof *names; i++)
        if (strcmp(n->text, names[i]) == 0)
            return true;
    return false;
}

/* `[a, b]` for what is between the brackets: the elements become arguments. */
static const ast *read_assertion(expander *e, const ast *n)
{
    src_range raw = ast_kid(n, 0)->range, inside = {raw.file, raw.begin + 1, raw.end > raw.begin + 1 ? raw.end - 1 : raw.end};
    expansion x = {.call = n->range};
    pieced_text_init(&x.text, e->arena);
    strbuf_puts(&x.text.text, "[");
    pieced_text_add(&x.text, e->sources, inside);
    strbuf_puts(&x.text.text, "];");
    const ast *file = expand_parse(e, x, e->diags), *list = ast_kid(ast_kid(file, 0), 0);
    if (!ast_is(list, AST_ARRAY))
        return n;
    ast *copy = ast_new(e->arena, AST_MACRO, n->range), *arguments = ast_new(e->arena, AST_LIST, list->range);
    ast_push_all(e->arena, arguments, list->kids, list->kid_count);
    copy->text = n->text;
    copy->name_range = n->name_range;
    ast_push(e->arena, copy, n->kids[0]);
    ast_push(e->arena, copy, arguments);
    return copy;
}

/* ---- structs ---- */

/* Without `pub` and what may stand in brackets after it. */
static uint32_t after_visibility(const token_text_list *t, uint32_t i)
{
    const token *k = &t->tokens.items[i];
    if (k->kind != T_PUB)
        return i;
    return k[1].kind == '(' ? k[1].match + 1 : i + 1;
}

src_range expand_places(const token_text_list *t, uint32_t begin, uint32_t end)
{
    const token *items = t->tokens.items;
    return (src_range){t->range.file, t->range.begin + items[begin].begin, t->range.begin + items[end > begin ? end - 1 : begin].end};
}

/* The fields as the parameters of a function: `x: T, y: U`; of a tuple struct, `_0: T`. */
static void write_fields(expander *e, const token_text_list *t, uint32_t open, pieced_text *out)
{
    const token *items = t->tokens.items;
    uint32_t end = items[open].match, number = 0;
    for (uint32_t i = open + 1; i < end; number++) {
        uint32_t from = i;
        int angles = 0;
        while (items[from].kind == '#' && from + 1 < end) /* attributes */
            from = items[from + 1].match + 1;
        from = after_visibility(t, from);
        for (i = from; i < end && (items[i].kind != ',' || angles > 0); i = token_closer(&items[i]) ? items[i].match + 1 : i + 1)
            angles += items[i].kind == '<' ? 1 : items[i].kind == '>' || items[i].kind == T_GT_GT || items[i].kind == T_GT_EQ ? -1 : 0;
        if (items[open].kind == '(') {
            const char *name = arena_printf(e->arena, "_%u: ", number);
            strbuf_puts(&out->text, name);
        }
        if (i > from)
            pieced_text_add(out, e->sources, expand_places(t, from, i));
        strbuf_puts(&out->text, ", ");
        i += i < end;
    }
}

/* `struct Name<..> { x: T }` is read as `fn Name<..>(x: T) {}`, `struct Name;` as `fn Name() {}`. What the parser cannot read stays text:
 * no kernel may use it. */
static const ast *read_struct(expander *e, const ast *n)
{
    token_text_list t;
    src_range raw = ast_kid(n, 1)->range;
    if (!macro_scan(e->sources, raw, expand_scanner(e), e->arena, &t) || t.tokens.count < 4 || t.tokens.items[1].kind != T_IDENT)
        return n;
    const token *items = t.tokens.items;
    uint32_t open = 2;
    for (int angles = 0; items[open].kind && (angles > 0 || (items[open].kind != '{' && items[open].kind != '(' &&
                                                             items[open].kind != ';' && items[open].kind != T_WHERE));
         open++)
        angles += items[open].kind == '<'                                                                 ? 1
                  : items[open].kind == '>' || items[open].kind == T_GT_GT || items[open].kind == T_GT_EQ ? -1
                                                                                                          : 0;
    uint32_t head = open;
    while (items[open].kind && items[open].kind != '{' && items[open].kind != '(' && items[open].kind != ';')
        open++;
    if (!items[open].kind)
        return n;
    expansion x = {.call = n->range};
    pieced_text_init(&x.text, e->arena);
    strbuf_puts(&x.text.text, "fn ");
    pieced_text_add(&x.text, e->sources, expand_places(&t, 1, head));
    strbuf_puts(&x.text.text, "(");
    if (items[open].kind != ';')
        write_fields(e, &t, open, &x.text);
    strbuf_puts(&x.text.text, ") {}");
    diag_list unsaid;
    diag_list_init(&unsaid, e->arena);
    const ast *file = expand_parse(e, x, &unsaid), *fn = ast_kid(file, 0);
    if (unsaid.error_count > 0 || !ast_is(fn, AST_FN))
        return n;
    ast *out = ast_new(e->arena, AST_STRUCT, n->range);
    out->text = fn->text;
    out->name_range = fn->name_range;
    ast_push(e->arena, out, n->kids[0]);
    ast_push(e->arena, out, fn->kids[1]);
    ast_push(e->arena, out, fn->kids[2]);
    return out;
}

/* ---- the tree ---- */

/* The node with other kids; only its own head is copied. */
static ast *head_of(expander *e, const ast *node)
{
    ast *copy = ARENA_NEW(e->arena, ast);
    *copy = *node;
    copy->kids = NULL;
    copy->kid_count = 0;
    copy->depth = 1;
    return copy;
}

/* ---- impl ---- */

/* The token after `<..>`, or `i` where there is none. */
static uint32_t after_angles(const token_text_list *t, uint32_t i)
{
    const token *items = t->tokens.items;
    if (items[i].kind != '<')
        return i;
    for (int angles = 0; items[i].kind; i++) {
        angles += items[i].kind == '<' ? 1 : items[i].kind == '>' ? -1 : items[i].kind == T_GT_GT ? -2 : 0;
        if (angles <= 0)
            return i + 1;
    }
    return i;
}

/* `impl<'a> Name<'a> {`, `impl Trait for Name {`: the indices of its tokens. */
typedef struct impl_head {
    uint32_t generics, generics_end; /* what stands between the angles, of the block */
    uint32_t name, type_end;         /* the name, and the end of its arguments */
    uint32_t trait, trait_end;       /* the name of the trait that it is of, and the end of its arguments; 0: none */
    uint32_t open;
    const token_text_list *text;
    const own_trait *own_trait; /* the trait itself, where the file has it */
} impl_head;

static bool read_impl_head(const token_text_list *t, impl_head *h)
{
    const token *items = t->tokens.items;
    uint32_t i = items[0].kind == T_UNSAFE ? 2 : 1, end = after_angles(t, i);
    *h = (impl_head){.generics = i + 1, .generics_end = end > i ? end - 1 : i + 1, .text = t};
    for (i = end; items[i].kind && items[i].kind != '{' && items[i].kind != T_WHERE;) {
        if (items[i].kind == T_FOR) {
            h->trait = h->name;
            h->trait_end = h->type_end;
            i++;
        } else if (items[i].kind == T_IDENT) { /* the last segment of the last path: that after `for` */
            h->name = i;
            h->type_end = i = after_angles(t, i + 1);
        } else {
            i++;
        }
    }
    while (items[i].kind && items[i].kind != '{')
        i++;
    h->open = i;
    return h->name > 0 && items[i].kind == '{';
}

/* An item of the block: `from` is its first token after attributes and visibility. */
typedef struct impl_item {
    uint32_t from, name, generics_end; /* generics_end: after `<..>` */
    uint32_t params, end;              /* the bracket, 0: no function; after the body */
    bool is_constant;                  /* or a type */
    bool is_whole;                     /* it has a body, or a value */
    bool is_read;                      /* it takes tensors or a context, or is a `const fn` */
    bool uses_self;
} impl_item;

static bool is_kernel_word(const char *text, size_t length)
{
    static const char *const ends[] = {"Tensor", "TensorView", "TensorViewMut", "TensorPair", "AlignedPair", "Context", "Device"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t tail = strlen(ends[i]);
        if (length >= tail && memcmp(text + length - tail, ends[i], tail) == 0)
            return true;
    }
    return false;
}

static bool names_kernel_text(const token_text_list *t, const token *k)
{
    return k->kind == T_IDENT && is_kernel_word(t->source + k->begin, k->end - k->begin);
}

/* The item at `i`. Returns the token after it. */
static uint32_t read_impl_item(const token_text_list *t, uint32_t i, uint32_t end, impl_item *f)
{
    const token *items = t->tokens.items;
    *f = (impl_item){0};
    while (items[i].kind == '#' && i + 1 < end)
        i = items[i + 1].match + 1;
    f->from = i = after_visibility(t, i);
    uint32_t last = i;
    f->is_constant = items[i].kind == T_TYPE || (items[i].kind == T_CONST && items[i + 1].kind == T_IDENT);
    for (; last < end && items[last].kind != ';' && (items[last].kind != '{' || f->is_constant);
         last = token_closer(&items[last]) ? items[last].match + 1 : last + 1)
        f->is_whole = f->is_whole || items[last].kind == '=';
    f->end = items[last].kind == '{' && last < end ? items[last].match + 1 : last + (last < end);
    f->name = f->is_constant ? i + 1 : 0;
    for (; i < last && items[i].kind != T_FN; i++)
        f->is_read = f->is_read || items[i].kind == T_CONST;
    if (i + 1 >= last || items[i + 1].kind != T_IDENT || items[last].kind != '{')
        return f->end;
    f->name = i + 1;
    f->generics_end = after_angles(t, i + 2);
    if (items[f->generics_end].kind != '(')
        return f->end;
    f->params = f->generics_end;
    f->is_whole = true;
    for (i = f->params; i < last; i++)
        f->is_read = f->is_read || names_kernel_text(t, &items[i]);
    for (i = items[f->params].match; i < f->end; i++)
        f->uses_self = f->uses_self || (items[i].kind == T_SELF && items[i + 1].kind != T_COLON2);
    return f->end;
}

/* After the comma after the parameter or argument that begins at `i`. */
static uint32_t after_argument(const token_text_list *t, uint32_t i, uint32_t end)
{
    int angles = 0;
    for (; i < end && (t->tokens.items[i].kind != ',' || angles > 0); i = macro_token_after(t, i)) {
        int kind = t->tokens.items[i].kind;
        angles += kind == '<' ? 1 : kind == '>' || kind == T_GT_GT || kind == T_GT_EQ ? -1 : 0;
    }
    return i + 1;
}

/* What a name in a trait stands for that is one of its parameters: the argument of the `impl`, or the parameter's default. *of: the text
 * that has it. False: it is none. */
static bool trait_argument(const impl_head *h, const token_text_list *t, uint32_t name, const token_text_list **of, uint32_t *begin,
                           uint32_t *end)
{
    const token *items = t->tokens.items;
    if (!h->own_trait || t != &h->own_trait->text || items[name].kind != T_IDENT || (name > 0 && items[name - 1].kind == '.'))
        return false;
    uint32_t first = items[0].kind == T_UNSAFE ? 3 : 2, last = after_angles(t, first), k = h->trait + 2;
    for (uint32_t i = first + 1; i + 1 < last;) {
        uint32_t next = after_argument(t, i, last - 1), own = i + (items[i].kind == T_CONST), equal = own;
        uint32_t given = k, given_end = k + 1 < h->trait_end ? after_argument(h->text, k, h->trait_end - 1) - 1 : k;
        while (equal + 1 < next && items[equal].kind != '=')
            equal = macro_token_after(t, equal);
        if (items[own].kind == T_IDENT && macro_same_token(t, own, t, name)) {
            *of = given_end > given ? h->text : t;
            *begin = given_end > given ? given : equal + 1;
            *end = given_end > given ? given_end : next - 1;
            return *end > *begin;
        }
        k = given_end + 1;
        i = next;
    }
    return false;
}

/* Tokens with the type for `Self`, `this` for `self`, and the arguments of a trait for its parameters. */
static void write_impl_tokens(expander *e, const token_text_list *t, const impl_head *h, uint32_t begin, uint32_t end, pieced_text *out)
{
    const token *items = t->tokens.items;
    uint32_t from = begin;
    for (uint32_t i = begin; i < end; i++) {
        const token_text_list *of;
        uint32_t first, last;
        if (trait_argument(h, t, i, &of, &first, &last)) {
            if (i > from)
                pieced_text_add(out, e->sources, expand_places(t, from, i));
            strbuf_puts(&out->text, " ");
            pieced_text_add(out, e->sources, expand_places(of, first, last));
            strbuf_puts(&out->text, " ");
            from = i + 1;
            continue;
        }
        if (items[i].kind != T_SELF_TYPE && (items[i].kind != T_SELF || items[i + 1].kind == T_COLON2))
            continue;
        bool is_type = items[i].kind == T_SELF_TYPE;
        if (i > from)
            pieced_text_add(out, e->sources, expand_places(t, from, i));
        strbuf_puts(&out->text, " ");
        pieced_text_put(out, is_type ? token_text(h->text->source, &h->text->tokens.items[h->name], e->arena) : "this",
                        expand_places(t, i, i + 1));
        if (is_type && h->type_end > h->name + 1) { /* a path may go on after it */
            strbuf_puts(&out->text, "::");
            pieced_text_add(out, e->sources, expand_places(h->text, h->name + 1, h->type_end));
        }
        from = i + 1;
    }
    if (end > from)
        pieced_text_add(out, e->sources, expand_places(t, from, end));
}

/* `fn f(&self, x: T) ..` as `fn f(this: Name, x: T) ..`; without a use of it the receiver is left away. */
static void write_impl_function(expander *e, const token_text_list *t, const impl_head *h, const impl_item *f, pieced_text *out)
{
    const token *items = t->tokens.items;
    uint32_t begin = f->params + 1, end = items[f->params].match, i = begin;
    pieced_text_add(out, e->sources, expand_places(t, f->from, f->name + 1));
    bool own = f->generics_end > f->name + 1, outer = h->generics_end > h->generics;
    if (own || outer) {
        strbuf_puts(&out->text, "<");
        if (outer)
            pieced_text_add(out, e->sources, expand_places(h->text, h->generics, h->generics_end));
        strbuf_puts(&out->text, own && outer && h->text->tokens.items[h->generics_end - 1].kind != ',' ? ", " : "");
        if (own)
            write_impl_tokens(e, t, h, f->name + 2, f->generics_end - 1, out);
        strbuf_puts(&out->text, ">");
    }
    strbuf_puts(&out->text, "(");
    bool owned = true, changes = false;
    for (; i < end && (items[i].kind == '&' || items[i].kind == T_LIFETIME || items[i].kind == T_MUT); i++) {
        owned = owned && items[i].kind != '&';
        changes = items[i].kind == T_MUT;
    }
    if (i < end && items[i].kind == T_SELF) {
        if (f->uses_self) {
            strbuf_puts(&out->text, owned && changes ? "mut this: " : "this: ");
            pieced_text_add(out, e->sources, expand_places(h->text, h->name, h->type_end));
            strbuf_puts(&out->text, ", ");
        }
        while (i < end && items[i].kind != ',') /* a type of its own */
            i = token_closer(&items[i]) ? items[i].match + 1 : i + 1;
        begin = i < end ? i + 1 : end;
    }
    write_impl_tokens(e, t, h, begin, end, out);
    strbuf_puts(&out->text, ")");
    write_impl_tokens(e, t, h, end + 1, f->end, out);
    strbuf_puts(&out->text, "\n");
}

/* What only the host calls may be any Rust: it is read where the parser can. */
static bool is_readable(expander *e, const token_text_list *t, const impl_head *h, const impl_item *f)
{
    expansion x = {.call = t->range};
    diag_list unsaid;
    diag_list_init(&unsaid, e->arena);
    pieced_text_init(&x.text, e->arena);
    write_impl_function(e, t, h, f, &x.text);
    expand_parse(e, x, &unsaid);
    return unsaid.error_count == 0;
}

/* The parameters of the block, as the AST_GENERICS of `fn Name<..>(x: Name<..>) {}`. The value of each is the place among the arguments of
 * the type in which it stands, from 1 on, or AST_OF_NO_ARGUMENT. NULL: there are none but lifetimes. */
static const ast *read_impl_generics(expander *e, const token_text_list *t, const impl_head *h)
{
    expansion x = {.call = t->range};
    diag_list unsaid;
    diag_list_init(&unsaid, e->arena);
    if (h->generics_end == h->generics)
        return NULL;
    pieced_text_init(&x.text, e->arena);
    strbuf_puts(&x.text.text, "fn ");
    pieced_text_add(&x.text, e->sources, expand_places(t, h->name, h->name + 1));
    pieced_text_add(&x.text, e->sources, expand_places(t, h->generics - 1, h->generics_end + 1));
    strbuf_puts(&x.text.text, "(x: ");
    pieced_text_add(&x.text, e->sources, expand_places(t, h->name, h->type_end));
    strbuf_puts(&x.text.text, ") {}");
    const ast *file = expand_parse(e, x, &unsaid), *fn = ast_kid(file, 0), *generics = ast_kid(fn, 1);
    if (unsaid.error_count > 0 || !ast_is(fn, AST_FN) || !ast_is(generics, AST_GENERICS))
        return NULL;
    const ast *type = ast_last_segment(ast_kid(ast_kid(ast_kid(fn, 2), 0), 2)), *given = type ? ast_kid(type, 0) : NULL;
    bool any = false;
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        int64_t place = 0;
        any = any || !ast_is(generics->kids[i], AST_GENERIC_LIFETIME);
        generics->kids[i]->value = AST_OF_NO_ARGUMENT;
        for (uint32_t k = 0; given && k < given->kid_count; k++) {
            const ast *argument = ast_is(given->kids[k], AST_CONST_ARG) ? ast_kid(given->kids[k], 0) : given->kids[k];
            bool named = (ast_is(argument, AST_TYPE_PATH) || ast_is(argument, AST_PATH)) && argument->kid_count == 1;
            place += !ast_is(argument, AST_LIFETIME);
            if (named && strcmp(argument->kids[0]->text, generics->kids[i]->text) == 0)
                generics->kids[i]->value = place;
        }
    }
    return any ? generics : NULL;
}

/* The arguments of the type of `impl Name<4>`, which has parameters that the block has not; NULL: there are none but lifetimes. */
static const ast *read_impl_arguments(expander *e, const token_text_list *t, const impl_head *h)
{
    expansion x = {.call = t->range};
    diag_list unsaid;
    diag_list_init(&unsaid, e->arena);
    if (h->type_end == h->name + 1)
        return NULL;
    pieced_text_init(&x.text, e->arena);
    strbuf_puts(&x.text.text, "type Given = ");
    pieced_text_add(&x.text, e->sources, expand_places(t, h->name, h->type_end));
    strbuf_puts(&x.text.text, ";");
    const ast *file = expand_parse(e, x, &unsaid), *type = ast_last_segment(ast_kid(ast_kid(file, 0), 2)),
              *given = type ? ast_kid(type, 0) : NULL;
    bool any = false;
    for (uint32_t i = 0; given && ast_is(given, AST_GENERIC_ARGS) && i < given->kid_count; i++)
        any = any || !ast_is(given->kids[i], AST_LIFETIME);
    return unsaid.error_count == 0 && any ? given : NULL;
}

/* The constants, types and functions of the block that begins at `open`; those of a trait (`own`: the block of the `impl`) where the `impl`
 * has none of the name. False: there is nothing that kernels may use. */
static bool write_impl_items(expander *e, const token_text_list *t, uint32_t open, const impl_head *h, const token_text_list *own,
                             pieced_text *out)
{
    const token *items = t->tokens.items;
    bool found = false;
    for (uint32_t i = open + 1, end = items[open].match; i < end;) {
        impl_item f, other = {0};
        i = read_impl_item(t, i, end, &f);
        for (uint32_t k = h->open + 1; own && f.is_whole && k < own->tokens.items[h->open].match && other.name == 0;) {
            k = read_impl_item(own, k, own->tokens.items[h->open].match, &other);
            if (other.name > 0 && !macro_same_token(own, other.name, t, f.name))
                other.name = 0;
        }
        if (f.name == 0 || !f.is_whole || other.name > 0)
            continue;
        if (f.is_constant)
            write_impl_tokens(e, t, h, f.from, f.end, out);
        bool readable = f.params > 0 && (f.is_read || is_readable(e, t, h, &f));
        if (readable)
            write_impl_function(e, t, h, &f, out);
        found = found || f.is_constant || readable;
    }
    return found;
}

/* The trait that the `impl` is of, where the file has it. */
static const own_trait *trait_of(const expander *e, const impl_head *h)
{
    const char *name = h->trait ? token_text(h->text->source, &h->text->tokens.items[h->trait], e->arena) : "";
    for (size_t i = e->trait_count; i-- > 0;)
        if (strcmp(e->traits[i].name, name) == 0)
            return &e->traits[i];
    return NULL;
}

/* `trait Name<..> { .. }` */
static void read_trait(expander *e, const ast *n)
{
    own_trait r;
    src_range raw = ast_kid(n, 1)->range;
    if (!macro_scan(e->sources, raw, expand_scanner(e), e->arena, &r.text) || r.text.tokens.count < 4)
        return;
    const token *items = r.text.tokens.items;
    uint32_t name = items[0].kind == T_UNSAFE ? 2 : 1;
    for (r.open = after_angles(&r.text, name + 1); items[r.open].kind && items[r.open].kind != '{'; r.open++)
        ;
    if (items[name].kind != T_IDENT || items[r.open].kind != '{')
        return;
    r.name = token_text(r.text.source, &items[name], e->arena);
    ARENA_PUSH(e->arena, e->traits, e->trait_count, e->trait_capacity, r);
}

/* `impl Name { fn f(..) {..} }` is read as `mod Name { fn f(..) {..} }`, of which names are found by a path alone: constants, types, and
 * functions; those that take tensors or a context whether the parser can read them or not. Parameters of the block are also those of each
 * function, in front of its own. Blocks of the library's own types describe what is there already, and a kernel stands in none. */
static const ast *read_impl(expander *e, const ast *n)
{
    token_text_list t;
    impl_head h;
    src_range raw = ast_kid(n, 1)->range;
    if (!macro_scan(e->sources, raw, expand_scanner(e), e->arena, &t) || t.tokens.count < 4 || !read_impl_head(&t, &h))
        return n;
    const token *items = t.tokens.items;
    if (names_kernel_text(&t, &items[h.name]))
        return n;
    for (uint32_t i = h.open + 1; i + 2 < items[h.open].match; i = token_closer(&items[i]) ? items[i].match + 1 : i + 1)
        if (items[i].kind == '#' && token_is_word(t.source, &items[i + 2], "device"))
            return n;
    expansion x = {.call = n->range};
    pieced_text_init(&x.text, e->arena);
    strbuf_puts(&x.text.text, "mod ");
    pieced_text_add(&x.text, e->sources, expand_places(&t, h.name, h.name + 1));
    strbuf_puts(&x.text.text, " { ");
    const own_trait *trait = trait_of(e, &h);
    h.own_trait = trait;
    bool found = write_impl_items(e, &t, h.open, &h, NULL, &x.text);
    found = (trait && write_impl_items(e, &trait->text, trait->open, &h, &t, &x.text)) || found;
    strbuf_puts(&x.text.text, "}");
    if (!found)
        return n;
    const ast *file = expand_parse(e, x, e->diags), *module = ast_kid(file, 0);
    if (!ast_is(module, AST_MOD))
        return ast_new(e->arena, AST_ERROR, n->range);
    ast *own = head_of(e, module);
    own->value = AST_MOD_OF_TYPE;
    ast_push_all(e->arena, own, module->kids, module->kid_count);
    const ast *generics = read_impl_generics(e, &t, &h), *block = ast_kid(module, 1);
    const ast *given = generics ? NULL : read_impl_arguments(e, &t, &h);
    if (generics || given)
        ast_push(e->arena, own, generics ? (ast *)generics : ast_new(e->arena, AST_NONE, n->range));
    if (given)
        ast_push(e->arena, own, (ast *)given);
    for (uint32_t i = 0; generics && i < block->kid_count; i++)
        for (uint32_t k = 0; ast_is(block->kids[i], AST_FN) && k < generics->kid_count && k < ast_kid(block->kids[i], 1)->kid_count; k++)
            ast_kid(block->kids[i], 1)->kids[k]->value = generics->kids[k]->value;
    return expand_walk(e, own);
}

/* The node that a text gives which the parser can read, with the attributes of `n`; NULL: it cannot. */
static ast *read_item(expander *e, const ast *n, expansion x, ast_kind kind)
{
    diag_list unsaid;
    diag_list_init(&unsaid, e->arena);
    const ast *file = expand_parse(e, x, &unsaid), *item = ast_kid(file, 0);
    if (unsaid.error_count > 0 || file->kid_count != 1 || !ast_is(item, kind))
        return NULL;
    ast *copy = head_of(e, item);
    copy->range = n->range;
    ast_push(e->arena, copy, n->kids[0]);
    ast_push_all(e->arena, copy, item->kids + 1, item->kid_count - 1);
    return copy;
}

/* `static NAME: T = value;`, which nobody changes, is read as a const item; what the parser cannot read stays text. */
static const ast *read_static(expander *e, const ast *n)
{
    token_text_list t;
    expansion x = {.call = n->range};
    if (!macro_scan(e->sources, ast_kid(n, 1)->range, expand_scanner(e), e->arena, &t) || t.tokens.count < 4 ||
        t.tokens.items[1].kind == T_MUT)
        return n;
    pieced_text_init(&x.text, e->arena);
    strbuf_puts(&x.text.text, "const ");
    pieced_text_add(&x.text, e->sources, expand_places(&t, 1, (uint32_t)t.tokens.count - 1));
    const ast *item = read_item(e, n, x, AST_CONST);
    return item ? expand_walk(e, item) : n;
}

/* Of `enum Name { A, B = 4 }` without fields: `mod Name { const A: Name = 0; const B: Name = (4); }`, of which names are found by a path
 * alone. NULL: it has fields, or cannot be read. */
static const ast *read_enum(expander *e, const ast *n)
{
    token_text_list t;
    if (!macro_scan(e->sources, ast_kid(n, 1)->range, expand_scanner(e), e->arena, &t) || t.tokens.count < 5)
        return NULL;
    const token *items = t.tokens.items;
    if (items[1].kind != T_IDENT || items[2].kind != '{')
        return NULL;
    expansion x = {.call = n->range};
    pieced_text_init(&x.text, e->arena);
    strbuf_puts(&x.text.text, "mod ");
    pieced_text_add(&x.text, e->sources, expand_places(&t, 1, 2));
    strbuf_puts(&x.text.text, " { ");
    uint32_t base = 0, base_end = 0, steps = 0; /* the value that was written last, and how many names ago */
    for (uint32_t i = 3, end = items[2].match; i < end; steps++) {
        while (items[i].kind == '#' && token_closer(&items[i + 1]))
            i = items[i + 1].match + 1;
        uint32_t name = i++;
        if (items[name].kind != T_IDENT)
            return NULL;
        if (items[i].kind == '=') {
            base = ++i;
            while (i < end && items[i].kind != ',')
                i = macro_token_after(&t, i);
            base_end = i;
            steps = 0;
        }
        if (i < end && items[i].kind != ',')
            return NULL;
        strbuf_puts(&x.text.text, "const ");
        pieced_text_add(&x.text, e->sources, expand_places(&t, name, name + 1));
        strbuf_puts(&x.text.text, ": ");
        pieced_text_add(&x.text, e->sources, expand_places(&t, 1, 2));
        strbuf_puts(&x.text.text, " = ");
        if (base_end > base) {
            strbuf_puts(&x.text.text, "(");
            pieced_text_add(&x.text, e->sources, expand_places(&t, base, base_end));
            strbuf_puts(&x.text.text, ") + ");
        }
        strbuf_printf(&x.text.text, "%u; ", steps);
        i += i < end;
    }
    strbuf_puts(&x.text.text, "}");
    ast *module = read_item(e, n, x, AST_MOD);
    if (module)
        module->value = AST_MOD_OF_TYPE;
    return module;
}

static void push(expander *e, ast *node, const ast *kid)
{
    if (kid->depth >= NESTING_MAX) {
        diag *d = diag_add(e->diags, E_NESTING, kid->range, "what macros give nests more than %d levels deep", NESTING_MAX);
        diag_help(e->diags, d, "let a macro give less at once");
        kid = ast_new(e->arena, AST_ERROR, kid->range);
    }
    ast_push(e->arena, node, (ast *)kid);
}

/* A call as a statement or an item: what it gives stands in its place. */
static const ast *called(const ast *kid)
{
    const ast *n = ast_is(kid, AST_EXPR_STMT) ? ast_kid(kid, 0) : kid;
    return ast_is(n, AST_MACRO) ? n : NULL;
}

/* Is the item or statement left out by one of its `#[cfg(..)]`? */
static bool is_left_out(const ast *n)
{
    const ast *attributes = n->kind >= AST_AXES && n->kind <= AST_ITEM_IGNORED ? ast_kid(n, 0) : n;
    for (; ast_is(n, AST_CFG) || ast_is(n, AST_AFTER); n = ast_kid(n, 0))
        if (ast_is(n, AST_CFG) && cfg_leaves_out(n->text))
            return true;
    for (uint32_t i = 0; ast_is(attributes, AST_LIST) && i < attributes->kid_count; i++)
        if (strcmp(attributes->kids[i]->text, "cfg") == 0 && cfg_leaves_out(ast_kid(attributes->kids[i], 0)->text))
            return true;
    return false;
}

/* Is it a function, a module, a constant or an alias for which no other of its name stands in? Kernels are compiled whoever wants them, and
 * nobody is told of one that is not. */
static bool stays_alone(expander *e, const ast *list, const ast *item)
{
    budget_spend(e->arena, list->kid_count);
    if (!ast_is(item, AST_FN) && !ast_is(item, AST_MOD) && !ast_is(item, AST_CONST) && !ast_is(item, AST_TYPE_ALIAS))
        return false;
    for (uint32_t i = 0; i < list->kid_count; i++)
        if (list->kids[i] != item && list->kids[i]->kind == item->kind && strcmp(list->kids[i]->text, item->text) == 0 &&
            !is_left_out(list->kids[i]))
            return false;
    return true;
}

static ast *with_kids(expander *e, const ast *node)
{
    ast *copy = head_of(e, node);
    bool list = ast_is(node, AST_FILE) || ast_is(node, AST_BLOCK);
    for (uint32_t i = 0; list && i < node->kid_count; i++) /* traits may follow the items that implement them */
        if (ast_is(node->kids[i], AST_ITEM_IGNORED) && strcmp(node->kids[i]->text, "trait") == 0)
            read_trait(e, node->kids[i]);
    for (uint32_t i = 0; i < node->kid_count; i++) {
        const ast *kid = node->kids[i];
        if (list && is_left_out(kid) && !stays_alone(e, node, kid))
            continue;
        while (ast_is(kid, AST_CFG))
            kid = ast_kid(kid, 0);
        const ast *call = list ? called(kid) : NULL;
        bool is_value = i + 1 == node->kid_count && ast_is(node, AST_BLOCK) && node != e->items && kid->text[0] == '\0', known = false;
        const ast *given = call && !is_value ? expand_call(e, call, "", "\n", &known) : NULL;
        const ast *values = list && ast_is(kid, AST_ITEM_IGNORED) && strcmp(kid->text, "enum") == 0 ? read_enum(e, kid) : NULL;
        if (values)
            push(e, copy, values);
        if (!known) {
            push(e, copy, expand_walk(e, kid));
            continue;
        }
        if (!given) {
            push(e, copy, ast_new(e->arena, AST_ERROR, kid->range));
            continue;
        }
        given = expand_walk(e, given);
        for (uint32_t k = 0; k < given->kid_count; k++)
            push(e, copy, given->kids[k]);
    }
    return copy;
}

/* `<T as Trait>::name` of a type that is named: not the size of a mapping, and nothing of the library's types. */
static bool is_of_own_type(const ast *n)
{
    const ast *last = ast_last_segment(ast_kid(n, 0));
    return last && !ast_is(ast_kid(n, 1), AST_NONE) && strcmp(n->text, "SIZE") != 0 && !is_kernel_word(last->text, strlen(last->text));
}

/* It is read as the path `T::name`. */
static const ast *read_qualified(expander *e, const ast *n)
{
    ast *path = ast_new(e->arena, n->value == AST_QUALIFIED_VALUE ? AST_PATH : AST_TYPE_PATH, n->range),
        *name = ast_new(e->arena, AST_SEGMENT, n->name_range);
    const ast *type = ast_kid(n, 0);
    name->text = n->text;
    ast_push(e->arena, name, (ast *)ast_kid(n, 2));
    ast_push_all(e->arena, path, type->kids, type->kid_count);
    ast_push(e->arena, path, name);
    return path;
}

static const ast *walk_kind(expander *e, const ast *node)
{
    bool known = false;
    if (ast_is(node, AST_CFG)) /* with_kids looked at it */
        return expand_walk(e, ast_kid(node, 0));
    if (ast_is(node, AST_ITEM_IGNORED) && strcmp(node->text, "macro_rules") == 0) {
        define(e, node);
        return node;
    }
    if (ast_is(node, AST_ITEM_IGNORED))
        return strcmp(node->text, "struct") == 0   ? read_struct(e, node)
               : strcmp(node->text, "impl") == 0   ? read_impl(e, node)
               : strcmp(node->text, "static") == 0 ? read_static(e, node)
                                                   : node;
    if (ast_is(node, AST_UNSUPPORTED)) {
        const ast *read = flow_read(e, node);
        return read->kid_count > 0 ? with_kids(e, read) : read;
    }
    if (is_assertion(node)) {
        const ast *read = read_assertion(e, node);
        return read->kid_count > 1 ? with_kids(e, read) : read; /* else it cannot be read, which was reported */
    }
    if (ast_is(node, AST_MACRO) && node->kid_count == 1 && strcmp(node->text, "matches") == 0) {
        const ast *read = flow_read_matches(e, node);
        return read->kid_count > 0 && !ast_is(read, AST_MACRO) ? with_kids(e, read) : read;
    }
    if (ast_is(node, AST_TYPE_QUALIFIED) && is_of_own_type(node))
        return expand_walk(e, read_qualified(e, node));
    if (ast_is(node, AST_MACRO) && node->kid_count == 1) {
        const ast *given = expand_call(e, node, "{ ", " }", &known);
        const ast *block = given ? ast_kid(ast_kid(given, 0), 0) : NULL;
        return !known ? node : block && ast_is(block, AST_BLOCK) ? expand_walk(e, block) : ast_new(e->arena, AST_ERROR, node->range);
    }
    if (ast_is(node, AST_TYPE_MACRO)) {
        const ast *given = expand_call(e, node, "type Given = ", ";", &known), *alias = given ? ast_kid(given, 0) : NULL;
        return !known                                   ? node
               : alias && ast_is(alias, AST_TYPE_ALIAS) ? expand_walk(e, ast_kid(alias, 2))
                                                        : ast_new(e->arena, AST_ERROR, node->range);
    }
    if (ast_is(node, AST_MOD))
        e->items = ast_kid(node, 1);
    return node->kid_count > 0 ? with_kids(e, node) : node;
}

const ast *expand_walk(expander *e, const ast *node)
{
    budget_spend_at(e->arena, node->range, 1);
    budget_enter(e->arena);
    const ast *out = walk_kind(e, node);
    budget_leave(e->arena);
    return out;
}

void expand_begin(expander *e)
{
    e->macro_count = 0;
}

const ast *expand_file(expander *e, const ast *file)
{
    return file->value ? expand_walk(e, file) : file; /* 1: there is something to read */
}
