/* A chapter of a book: every ```rust block is a file of its own and gets a verdict.
 *
 * The one idea: a block is compiled as a part of the chapter, so that places are lines and columns of the chapter. Lines that the
 * book hides (`# use ..;`) are part of the block; only their `#` is blanked. So a change of a block is one of the chapter, as many bytes
 * further on. */
#include <string.h>

#include "frontend/ast.h"
#include "frontend/fix.h"
#include "libvisa/compilation.h"
#include "support/shown.h"

typedef struct line {
    const char *text;
    size_t bytes; /* without its line end */
    size_t begin, next;
} line;

static bool read_line(const char *text, size_t bytes, size_t at, line *out)
{
    if (at >= bytes)
        return false;
    const char *end = memchr(text + at, '\n', bytes - at);
    size_t length = end ? (size_t)(end - text) - at : bytes - at;
    *out = (line){text + at, length, at, at + length + (end != NULL)};
    return true;
}

static size_t blanks(const line *l)
{
    size_t i = 0;
    while (i < l->bytes && (l->text[i] == ' ' || l->text[i] == '\t' || l->text[i] == '>'))
        i++;
    return i;
}

/* The length of a run of ``` or ~~~ that begins the line; 0: no fence. */
static size_t fence_of(const line *l, char *mark)
{
    size_t from = blanks(l), to = from;
    while (to < l->bytes && l->text[to] == l->text[from] && (l->text[from] == '`' || l->text[from] == '~'))
        to++;
    *mark = from < l->bytes ? l->text[from] : '\0';
    return to - from >= 3 ? to - from : 0;
}

/* ```rust, ```rust,ignore, ``` rust {..} */
static bool is_rust(const line *l, size_t fence)
{
    const char *info = l->text + blanks(l) + fence, *end = l->text + l->bytes;
    while (info < end && *info == ' ')
        info++;
    return end - info >= 4 && strncmp(info, "rust", 4) == 0 && (end - info == 4 || strchr(", \t\r{", info[4]));
}

static bool closes(const line *l, char mark, size_t fence)
{
    char own;
    size_t length = fence_of(l, &own);
    if (own != mark || length < fence)
        return false;
    size_t at = blanks(l) + length; /* an info string would open another block; `-->` may end a comment that holds this one */
    while (at < l->bytes && strchr(" \t\r", l->text[at]))
        at++;
    return at == l->bytes || (l->bytes - at >= 3 && strncmp(l->text + at, "-->", 3) == 0);
}

/* mdBook's {{#include ..}}: text that is not here. The first such line, or NULL. */
static const char *include_of(const char *text, size_t bytes)
{
    line l;
    for (size_t at = 0; read_line(text, bytes, at, &l); at = l.next)
        if (l.bytes - blanks(&l) >= 10 && strncmp(l.text + blanks(&l), "{{#include", 10) == 0)
            return l.text;
    return NULL;
}

/* rustdoc's hidden lines: `# text` and a lone `#`; `##` stands for a `#`. Attributes (`#[`, `#!`) are none. */
static void uncover(char *text, const line *l)
{
    size_t at = blanks(l);
    bool hidden = at < l->bytes && l->text[at] == '#' && (at + 1 == l->bytes || strchr(" \t\r#", l->text[at + 1]));
    if (hidden)
        text[at] = ' ';
    for (size_t i = 0; i < at; i++)
        if (text[i] == '>')
            text[i] = ' '; /* of a quotation */
}

typedef struct tally {
    size_t blocks, accepted, without;
} tally;

static void put_verdict(visa_compilation *c, const char *name, uint32_t first_line, size_t first_diag, size_t errors, tally *t)
{
    strbuf_printf(&c->verdicts, "%s:%u: ", name, first_line);
    if (errors > 0) {
        const diag *first = NULL;
        for (size_t i = first_diag; i < c->diags.count; i++) {
            const diag *d = c->diags.items[i];
            if (d->severity == DIAG_ERROR && (!first || d->range.begin < first->range.begin))
                first = d;
        }
        uint32_t at = source_line_at(c->sources, first->range.file, first->range.begin);
        strbuf_printf(&c->verdicts, "refused: %s, the first at line %u: %s\n", arena_count(c->arena, errors, "error"), at,
                      diag_row_of(first->id)->name);
    } else if (c->module->count == 0) {
        t->without++;
        strbuf_puts(&c->verdicts, "accepted, without a kernel\n");
    } else {
        strbuf_puts(&c->verdicts, "accepted:");
        for (size_t i = 0; i < c->module->count; i++)
            strbuf_printf(&c->verdicts, "%s %s", i ? "," : "", c->module->kernels[i]->name);
        strbuf_puts(&c->verdicts, "\n");
    }
    t->accepted += errors == 0;
    t->blocks++;
}

static void run_block(visa_compilation *c, const char *name, const char *text, size_t bytes, uint32_t first_line, size_t first_byte,
                      tally *t)
{
    size_t errors = c->diags.error_count, diags = c->diags.count;
    char *copy = arena_alloc(c->arena, bytes + 1);
    memcpy(copy, text, bytes);
    line l;
    for (size_t at = 0; read_line(text, bytes, at, &l); at = l.next)
        uncover(copy + l.begin, &l);
    int file = source_map_add_part(c->sources, name, copy, bytes, first_line, (uint32_t)first_byte);
    book_block block = {file, (uint32_t)first_byte};
    ARENA_PUSH(c->arena, c->blocks, c->block_count, c->block_capacity, block);
    const char *include = include_of(text, bytes);
    uint32_t at = include ? (uint32_t)(include - text) : 0;
    if (include)
        diag_add(&c->diags, E_PARSE, (src_range){file, at, at + 10}, "the block includes a file, which is not read");
    else
        compilation_run_file(c, file);
    put_verdict(c, name, first_line, diags, c->diags.error_count - errors, t);
}

void compilation_run_book(visa_compilation *c, const char *name, const char *text, size_t bytes)
{
    if (bytes > SOURCE_BYTES_MAX) {
        diag_add(&c->diags, E_LEX, SRC_NOWHERE, "%s is larger than %zu bytes", name, SOURCE_BYTES_MAX);
        return;
    }
    tally t = {0};
    line l;
    uint32_t number = 1;
    c->chapter = arena_strndup(c->arena, text, bytes);
    c->chapter_bytes = bytes;
    for (size_t at = 0; read_line(text, bytes, at, &l); at = l.next, number++) {
        char mark;
        size_t fence = fence_of(&l, &mark), begin = l.next, end = bytes;
        bool rust = fence && is_rust(&l, fence);
        uint32_t first_line = number + 1;
        if (!fence)
            continue;
        for (end = l.next; read_line(text, bytes, end, &l) && !closes(&l, mark, fence); end = l.next)
            number++;
        number += end < bytes;
        l.next = end < bytes ? l.next : bytes;
        if (rust)
            run_block(c, name, text + begin, end - begin, first_line, begin, &t);
    }
    if (t.blocks == 0) {
        diag *d = diag_add(&c->diags, W_NO_BLOCK, SRC_NOWHERE, "%s has no ```rust block: nothing was compiled", shown_text(name, c->arena));
        diag_help(&c->diags, d, "a block begins with a line ```rust and ends with a line ```");
    }
    strbuf_printf(&c->verdicts, "%s: %s, %zu accepted (%zu without a kernel), %zu refused\n", name,
                  arena_count(c->arena, t.blocks, "block"), t.accepted, t.without, t.blocks - t.accepted);
}

/* ---- what its blocks' helps ask for ---- */

/* What stands in front of the code of a line: blanks, the `>` of a quotation, the `# ` of a hidden line. */
static size_t front_of(const line *l)
{
    size_t at = blanks(l);
    bool hidden = at + 1 < l->bytes && l->text[at] == '#' && strchr(" \t", l->text[at + 1]);
    return hidden ? at + 2 : at;
}

/* The line that an offset of the chapter is in. */
static line line_at(const visa_compilation *c, uint32_t at)
{
    line l = {c->chapter, 0, at, at};
    uint32_t begin = at;
    while (begin > 0 && c->chapter[begin - 1] != '\n')
        begin--;
    read_line(c->chapter, c->chapter_bytes, begin, &l);
    return l;
}

size_t compilation_fix_book(visa_compilation *c, strbuf *out)
{
    edit_list all = {0};
    size_t count = 0;
    for (size_t i = 0; i < c->block_count; i++) {
        const book_block *b = &c->blocks[i];
        edit_list taken = {0};
        count += fix_collect(compilation_shown(c), c->sources, b->file, c->arena, &taken);
        for (size_t k = 0; k < taken.count; k++) {
            uint32_t begin = b->first_byte + taken.items[k].begin, end = b->first_byte + taken.items[k].end;
            line l = line_at(c, begin);
            uint32_t code = (uint32_t)(l.begin + front_of(&l));
            if (end <= code && l.bytes > 0) /* before the line, so before its code */
                begin = end = code;
            edit_add(&all, c->arena, begin, end, taken.items[k].rank, taken.items[k].text);
        }
    }
    return count && !edit_apply(&all, c->chapter, c->chapter_bytes, out) ? count : 0;
}
