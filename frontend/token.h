/* Tokens: a file's text as a list in which every bracket has its partner.
 *
 * The one idea: the file is scanned once, before parsing, and the scanner settles what a grammar is bad at.
 * Brackets are matched here: a missing one is supplied (an empty token), a superfluous one dropped and a
 * wrong one replaced, each with its diagnostic, so the parser always reads balanced text, can skip a
 * construct in one step and finds its way after an error. The block that ends a condition is marked here too,
 * so that the grammar needs no second set of expressions without struct literals.
 *
 * Inside m![..] other rules hold (numbers are decimal only, `#{!}` is one token): each bracket has its mode.
 */
#ifndef VISA_FRONTEND_TOKEN_H
#define VISA_FRONTEND_TOKEN_H

#include <stdbool.h>

#include "frontend/source.h"
#include "support/budget.h"
#include "support/diag.h"

/* Brackets may nest this deep. */
/* After this many faults in one file the scanner and the parser fall silent. */
#define SYNTAX_ERRORS_MAX 100
#define TOKEN_NONE UINT32_MAX

enum token_flag {
    TOKEN_SUPPLIED = 1,   /* a closing bracket that the text has not */
    TOKEN_COND_BLOCK = 2, /* the { after the condition of an if, the iterator of a for .. */
    TOKEN_POISON = 4,     /* a number or a string that was diagnosed: its value must not be used */
    TOKEN_IN_MAP = 8,     /* stands directly inside the brackets of m![..] */
};

/* Small, since all tokens of a file are there at once: how one is spelt, and the value of a number, is in the source. */
typedef struct token {
    uint16_t kind; /* a character or an enumerator of the generated parser.tab.h */
    uint8_t flags;
    char closer;         /* of m![ and axes![ */
    uint32_t begin, end; /* bytes of the source */
    uint32_t parent;     /* index of the bracket around it, or TOKEN_NONE */
    uint32_t match;      /* bracket: its partner; if, for, while, match: the { of their block; or TOKEN_NONE */
} token;

typedef struct token_list {
    token *items; /* the last one (kind 0) is empty, after the last of the text: what is missing is missing there */
    size_t count, capacity;
    uint32_t *faults; /* offsets of what was diagnosed, ascending: errors next to them are consequences */
    size_t fault_count, fault_capacity;
    bool too_deep; /* nesting was diagnosed: the list ends there and is not balanced */
} token_list;

/* The bracket that closes an opening token, or 0. */
char token_closer(const token *t);
/* The spelling of a name or literal; "" of one that is supplied. */
const char *token_text(const char *source, const token *t, arena *a);
bool token_is_word(const char *source, const token *t, const char *word);
/* Of an integer, which is not poisoned. */
int64_t token_integer(const char *source, const token *t);

/* The first of `count` tokens that begins at `begin` bytes or after; `count`: there is none. */
uint32_t token_from(const token *tokens, uint32_t count, uint32_t begin);

/* The list in `a`. */
token_list token_scan(const source_map *sources, int file, arena *a, diag_list *diags);
/* The same of the bytes from `begin` to `end`, which follow a line's end. */
token_list token_scan_part(const source_map *sources, int file, uint32_t begin, uint32_t end, arena *a, diag_list *diags);

/* A scanner for many texts; what it needs itself lives in `home`. */
typedef struct token_scanner token_scanner;
token_scanner *token_scanner_new(arena *home);
/* Scans text[0 .. bytes), after which stand two NULs, in place: on the way it is changed, and is as it was afterwards. With
 * `lone_mapping` the text is what is between `m![` and `]`, and both tokens are there, empty. */
token_list token_scan_text(token_scanner *s, char *text, size_t bytes, int file, bool lone_mapping, arena *a, diag_list *diags);

/* The text of a macro's definition or call: any tokens in balanced brackets, of which nothing is repaired. */
token_list token_scan_free(token_scanner *s, char *text, size_t bytes, int file, arena *a, diag_list *diags);

/* ---- Between token.c and lexer.l ---- */

typedef struct token_bracket {
    uint32_t index;  /* of the opening token */
    uint32_t indent; /* bytes in front of the first token of its line */
    char closer;
    bool map;         /* the rules of m![..] hold inside */
    bool comma;       /* one was seen inside: no [T; n] any more */
    bool head;        /* the parameters of a function */
    bool free;        /* of a macro: nothing is repaired in it */
    int angles;       /* how many < are open */
    uint32_t outdent; /* last byte in front of the first token inside that stands no further in than the bracket's line; 0: none */
} token_bracket;

struct token_scanner {
    arena *home;
    void *lexer; /* flex's state */
    arena *arena;
    diag_list *diags;
    int file;
    const char *source;
    token_list *list;
    uint32_t offset; /* bytes scanned so far */
    uint32_t comment_begin;
    int comment_depth;
    int open_count;
    int outermost; /* brackets that the text cannot close: 1 in a lone mapping, else 0 */
    int error_count;
    bool all_free;    /* the text is a macro's */
    uint32_t *macros; /* tokens: the names of the macros so far */
    size_t macro_count, macro_capacity;
    bool fn_head;                    /* after `fn`, in front of the first bracket or `;` */
    int supplied[3];                 /* how many ) ] } were */
    uint32_t superfluous_end;        /* offset after the last superfluous bracket */
    uint32_t indent;                 /* of the line at hand, bytes in front of its first token */
    uint32_t outdent;                /* that of the first { which has one */
    uint32_t outdent_block;          /* index of that { */
    uint32_t odd_close;              /* after the last } whose place does not fit that of its {; 0: none */
    bool string_fault;               /* one without an end was diagnosed */
    bool bracket_fault;              /* one was diagnosed: what is left open at the end follows from it */
    bool block_heads;                /* an if, for, while or match was seen */
    token_bracket open[NESTING_MAX]; /* the last member: it need not be cleared between texts */
};

/* lexer.l: feeds the whole text to the functions below. */
void token_run_lexer(token_scanner *s, char *text, size_t bytes);

bool token_in_map(const token_scanner *s);
token *token_add(token_scanner *s, int kind, uint32_t begin, uint32_t end);
/* Adds a diagnostic of the scanner and remembers its place; NULL when there were too many. */
diag *token_fault(token_scanner *s, diag_id id, uint32_t begin, uint32_t end, const char *message);
/* Returns false when the nesting limit is reached. */
bool token_open(token_scanner *s, int kind, uint32_t begin, uint32_t end, char closer);
void token_close(token_scanner *s, char closer, uint32_t begin, uint32_t end);
/* Supplies the closing brackets of m![..] (of every round and square bracket when `all`) in front of a token
 * that cannot stand in them. */
void token_close_before(token_scanner *s, bool all, uint32_t begin, uint32_t end);
/* A `;`: in front of it the brackets in which it cannot stand are closed, unless it is one that was meant as a comma. `line`: what
 * follows it on its line, up to another one. */
void token_semicolon(token_scanner *s, uint32_t begin, uint32_t end, const char *line);
/* Supplies the `)` of a function's parameters in front of a `->` or `{` that belongs after it. */
void token_close_head(token_scanner *s, uint32_t begin, uint32_t end);
/* The same as token_close_before in front of a word that begins an item, where it begins a line: in an attribute it may be any word. */
void token_close_before_line(token_scanner *s, uint32_t begin, uint32_t end);
void token_number(token_scanner *s, uint32_t begin, uint32_t end);
void token_word(token_scanner *s, uint32_t begin, uint32_t end);
void token_odd_bytes(token_scanner *s, uint32_t begin, uint32_t end);
void token_scan_end(token_scanner *s);

#endif
