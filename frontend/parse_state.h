/* What the parser, its builders and its token feed share while one file is parsed.
 *
 * The one idea: after a syntax error the feed, not the grammar, decides where to go on. It knows every
 * bracket's partner and which blocks the parser has open, so it jumps to the next statement of the innermost
 * open block and announces it with a RESYNC token, which the error productions wait for. Inside m![..] it
 * goes on at the closing bracket, in the head of a function at its body. */
#ifndef VISA_FRONTEND_PARSE_STATE_H
#define VISA_FRONTEND_PARSE_STATE_H

#include "frontend/ast.h"
#include "frontend/parser.tab.h"
#include "frontend/token.h"

/* A name that was met: where, and its text in the tree. */
typedef struct parse_name {
    const char *spelt, *text;
    uint32_t bytes;
} parse_name;
enum { PARSE_NAMES = 128 };

typedef struct parse_state {
    arena *arena;
    diag_list *diags;
    int file;
    const char *source;
    token_list tokens;
    uint32_t next;    /* index of the token that parse_next reads next */
    uint32_t current; /* index of the first token after the one it returned last */
    int block_count;
    uint32_t statement_begin; /* offset after the last complete statement */
    int resync;               /* a RESYNC kind: the next token, at resync_to; 0 if none */
    uint32_t resync_to;
    int error_count;
    bool depth_reported, given_up;
    bool trusts; /* the text is read as one without errors (parse.c) */
    bool doubts; /* and has one */
    ast *root;
    parse_name *names;                /* PARSE_NAMES; NULL: a text of few */
    uint32_t blocks[NESTING_MAX + 1]; /* indexes of the { that the parser has open; last: never cleared */
} parse_state;

static inline const token *token_at(const parse_state *p, uint32_t index)
{
    return &p->tokens.items[index];
}

/* The kind of the token `ahead` after the one at `index`; 0 at the end. */
static inline int kind_at(const parse_state *p, uint32_t index, uint32_t ahead)
{
    return index + ahead < p->tokens.count ? p->tokens.items[index + ahead].kind : 0;
}

/* ---- feed.c ---- */

/* The parser's yylex. */
int parse_next(VISA_PARSE_STYPE *value, src_range *place, parse_state *p);

/* May a statement or an item begin at this token? */
bool parse_begins_statement(const parse_state *p, uint32_t index);

/* Called from grammar actions. */
void parse_enter_block(parse_state *p, const token *open);
void parse_leave_block(parse_state *p);
void parse_statement_done(parse_state *p, src_range statement);

/* ---- resume.c ---- */

typedef struct resumption {
    int kind; /* of RESYNC token */
    uint32_t index;
} resumption;

/* The place to go on after an error at the token of that index. */
resumption parse_resume_after(const parse_state *p, uint32_t error);
bool parse_first_on_line(const parse_state *p, uint32_t index);

/* ---- parse_report.c ---- */

/* A syntax error at the token returned last; the names of the tokens that could stand there. */
void parse_report(parse_state *p, src_range at, const char **expected, int expected_count);
/* The tree or the parser's stack is too deep; reported once per file. */
void parse_report_depth(parse_state *p, src_range at);
/* An error that an action found. */
diag *parse_error(parse_state *p, diag_id id, src_range at, const char *message);

#endif
