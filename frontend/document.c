#include "frontend/document.h"

#include <string.h>

document *document_new(arena *a, document_kind kind)
{
    document *d = ARENA_NEW(a, document);
    d->kind = kind;
    return d;
}

static int columns_of(const char *text, uint32_t bytes)
{
    int columns = 0;
    for (uint32_t i = 0; i < bytes; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

document *document_text(arena *a, const char *text, uint32_t bytes)
{
    document *d = document_new(a, DOC_TEXT);
    d->text = text;
    d->bytes = bytes;
    const char *line_end = memchr(text, '\n', bytes);
    d->flat = line_end ? DOCUMENT_WIDE : columns_of(text, bytes);
    d->lead = d->first = line_end ? columns_of(text, (uint32_t)(line_end - text)) : d->flat;
    return d;
}

document *document_break(arena *a, break_kind at)
{
    document *d = document_new(a, DOC_BREAK);
    d->at = at;
    d->flat = at >= BREAK_HARD ? DOCUMENT_WIDE : at == BREAK_SPACE || at == BREAK_SOFT;
    d->has_soft = at == BREAK_SOFT || at == BREAK_SOFT_NONE;
    return d;
}

void document_add(arena *a, document *d, document *kid)
{
    ARENA_PUSH(a, d->kids, d->count, d->capacity, kid);
}

static bool is_wide(const document *d)
{
    return d->flat >= DOCUMENT_WIDE;
}

/* Can a line end inside or at it? */
static bool may_end(const document *d)
{
    return is_wide(d) || d->first < d->flat || d->has_soft;
}

document *document_close(document *d, int limit)
{
    bool lead_known = false, first_known = false;
    int flat = 0;
    d->lead = d->first = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        const document *k = d->kids[i];
        flat = is_wide(k) || flat >= DOCUMENT_WIDE - k->flat ? DOCUMENT_WIDE : flat + k->flat;
        bool soft = k->has_soft && k->kind != DOC_GROUP;
        if (!lead_known)
            d->lead += soft ? k->first : is_wide(k) ? k->lead : k->flat;
        if (!first_known)
            d->first += may_end(k) ? k->first : k->flat;
        lead_known = lead_known || soft || is_wide(k);
        first_known = first_known || may_end(k);
        d->has_soft = d->has_soft || soft;
    }
    if (d->kind == DOC_ASSIGN) {
        flat += flat < DOCUMENT_WIDE;
        d->first = d->kids[0]->first;
    }
    d->flat = flat > limit ? DOCUMENT_WIDE : flat;
    if (!is_wide(d))
        d->lead = flat;
    return d;
}

/* ---- printing ---- */

/* A comment at the end of a line. */
typedef struct trailing {
    size_t begin; /* offset of the output */
    uint32_t line, aligned;
    int column; /* of the output */
} trailing;

typedef struct printer {
    strbuf *out;
    arena *arena;
    const char *line_end;
    int column;
    uint32_t line;
    trailing *comments;
    size_t count, capacity;
} printer;

static void print(printer *w, const document *d, int indent, bool broken, int after);

static void end_line(printer *w, int indent)
{
    if (w->out->bytes == 0) /* nothing stands in front of the first line */
        return;
    strbuf_printf(w->out, "%s%*s", w->line_end, indent, "");
    w->column = indent;
    w->line++;
}

static void print_break(printer *w, const document *d, int indent, bool broken)
{
    bool ends = d->at >= BREAK_HARD || (broken && d->has_soft);
    if (!ends) {
        if (d->flat)
            strbuf_puts(w->out, " ");
        w->column += d->flat;
        return;
    }
    if (d->at == BREAK_EMPTY)
        end_line(w, 0);
    end_line(w, indent);
}

static void print_text(printer *w, const document *d)
{
    if (d->comment && d->aligned) {
        trailing t = {w->out->bytes, w->line, d->aligned, w->column};
        ARENA_PUSH(w->arena, w->comments, w->count, w->capacity, t);
    }
    strbuf_append(w->out, d->text, d->bytes);
    for (uint32_t i = 0; i < d->bytes; i++) {
        bool line_end = d->text[i] == '\n';
        w->column = line_end ? 0 : w->column + (((unsigned char)d->text[i] & 0xc0) != 0x80);
        w->line += line_end;
    }
}

static void print_sequence(printer *w, const document *d, int indent, bool broken, int after)
{
    int *behind = ARENA_ARRAY(w->arena, int, d->count + 1);
    behind[d->count] = after;
    for (uint32_t i = d->count; i-- > 0;) {
        const document *k = d->kids[i];
        bool second = i > 0 && k->kind == DOC_GROUP && d->kids[i - 1]->kind == DOC_GROUP; /* `<..>(..)`: the second one breaks first */
        if (second || (broken && k->has_soft && k->kind != DOC_GROUP))
            behind[i] = k->first;
        else
            behind[i] = is_wide(k) ? k->lead : k->flat + behind[i + 1];
        if (behind[i] > DOCUMENT_WIDE)
            behind[i] = DOCUMENT_WIDE;
    }
    for (uint32_t i = 0; i < d->count; i++)
        print(w, d->kids[i], indent, broken, behind[i + 1]);
}

/* On the same line when it fits or must break anyway; on the next one when that makes it fit; else where its first part fits. After a
 * left side of several lines it goes on on the last of them. */
static void print_assign(printer *w, const document *d, int indent, int after)
{
    const document *left = d->kids[0], *right = d->kids[1];
    int reserved = is_wide(right) ? right->lead : right->first;
    bool fits = !is_wide(d) && w->column + d->flat + after <= DOCUMENT_COLUMNS;
    bool left_fits = !is_wide(left) && w->column + left->flat <= DOCUMENT_COLUMNS;
    bool fits_below = !is_wide(right) && indent + DOCUMENT_INDENT + right->flat + after <= DOCUMENT_COLUMNS;
    bool beside = fits || (left_fits && (is_wide(right) || !fits_below) && w->column + left->flat + 1 + reserved <= DOCUMENT_COLUMNS &&
                           may_end(right));
    print(w, left, indent, false, beside ? 1 + reserved : 0);
    int wanted = may_end(right) ? reserved : right->flat + after;
    if (beside || (!left_fits && w->column + 1 + wanted <= DOCUMENT_COLUMNS)) {
        strbuf_puts(w->out, " ");
        w->column++;
        print(w, right, indent, false, after);
        return;
    }
    end_line(w, indent + DOCUMENT_INDENT);
    print(w, right, indent + DOCUMENT_INDENT, false, after);
}

static void print(printer *w, const document *d, int indent, bool broken, int after)
{
    switch (d->kind) {
    case DOC_TEXT: print_text(w, d); break;
    case DOC_BREAK: print_break(w, d, indent, broken); break;
    case DOC_SEQUENCE: print_sequence(w, d, indent, broken, after); break;
    case DOC_INDENT: print_sequence(w, d, indent + DOCUMENT_INDENT, broken, after); break;
    case DOC_ASSIGN: print_assign(w, d, indent, after); break;
    case DOC_GROUP: print_sequence(w, d, indent, is_wide(d) || w->column + d->flat + after > DOCUMENT_COLUMNS, after); break;
    }
}

/* Comments of neighbouring lines that stood in one column do so again. `blanks` gets what each needs in front. */
static void align_comments(printer *w, int *blanks)
{
    for (size_t i = 0, end; i < w->count; i = end) {
        int column = w->comments[i].column;
        for (end = i + 1;
             end < w->count && w->comments[end].line == w->comments[end - 1].line + 1 && w->comments[end].aligned == w->comments[i].aligned;
             end++)
            column = w->comments[end].column > column ? w->comments[end].column : column;
        for (size_t k = i; k < end; k++)
            blanks[k] = column - w->comments[k].column;
    }
}

void document_print(const document *d, const char *line_end, strbuf *out)
{
    arena *a = out->arena;
    strbuf raw;
    strbuf_init(&raw, a);
    printer w = {.out = &raw, .arena = a, .line_end = line_end};
    print(&w, d, 0, true, 0);
    int *blanks = ARENA_ARRAY(a, int, w.count + 1);
    align_comments(&w, blanks);
    size_t done = 0;
    for (size_t i = 0; i < w.count; i++) {
        strbuf_append(out, raw.text + done, w.comments[i].begin - done);
        strbuf_printf(out, "%*s", blanks[i], "");
        done = w.comments[i].begin;
    }
    strbuf_append(out, raw.text + done, raw.bytes - done);
}
