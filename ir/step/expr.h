/* Sizes of stream dimensions as expressions over symbols.
 *
 * The one idea: every expression is kept in one normal form and only once, so two sizes are equal when their pointers are. The form is a
 * sum of products: a whole coefficient times atoms in order, where an atom is a symbol, ceil(expression / number), floor(expression /
 * number), present(expression): 1 when it is at least 1, else 0, or absent(expression), the other way round. Values are non-negative
 * integers. A symbol may be ragged: it then stands for all the sizes that a dimension has, one for each outer index. */
#ifndef VISA_IR_STEP_EXPR_H
#define VISA_IR_STEP_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

typedef struct step_exprs step_exprs; /* owns what is interned; lives in its arena */
typedef struct step_expr step_expr;

step_exprs *step_exprs_new(arena *a);

const step_expr *step_expr_number(step_exprs *c, int64_t value);
/* The symbol of that name; the same name is the same symbol. */
const step_expr *step_expr_symbol(step_exprs *c, const char *name, bool ragged);
/* A symbol that nothing else uses: `stem`, or `stem.2`, .. where that is taken. */
const step_expr *step_expr_fresh(step_exprs *c, const char *stem, bool ragged);

/* NULL stands for a number past 2^62 and stays NULL. */
const step_expr *step_expr_add(step_exprs *c, const step_expr *a, const step_expr *b);
const step_expr *step_expr_multiply(step_exprs *c, const step_expr *a, const step_expr *b);
const step_expr *step_expr_ceil_divide(step_exprs *c, const step_expr *a, int64_t divisor); /* divisor >= 1 */
const step_expr *step_expr_floor_divide(step_exprs *c, const step_expr *a, int64_t divisor);
const step_expr *step_expr_present(step_exprs *c, const step_expr *a);
const step_expr *step_expr_absent(step_exprs *c, const step_expr *a);

/* Product `i` of the sum in two parts: the coefficient with the plain atoms, and the ragged atoms (the number 1 when there are none). False
 * past the last. */
bool step_expr_part(step_exprs *c, const step_expr *e, uint32_t i, const step_expr **plain, const step_expr **ragged);
/* a / b, where b is one product that divides every product of a, or a is one product times b; else NULL. */
const step_expr *step_expr_divide(step_exprs *c, const step_expr *a, const step_expr *b);
/* Where every one of the symbols, `count` different ones, stands alone with a factor, those that they have in common: the smallest factor
 * times `whole` stands for that many of each. Else the expression itself. */
const step_expr *step_expr_gather(step_exprs *c, const step_expr *e, const step_expr *const *symbols, uint32_t count,
                                  const step_expr *whole);
/* The expression with other ones for symbols; `replace` returns its argument for a symbol that stays. */
const step_expr *step_expr_replace(step_exprs *c, const step_expr *e, const step_expr *(*replace)(void *user, const step_expr *symbol),
                                   void *user);
/* Is it one symbol and nothing else? */
bool step_expr_is_symbol(const step_expr *e);
/* The name of a symbol. */
const char *step_expr_name(const step_expr *symbol);
/* Is it never more than 1 and made of present(..) and absent(..) alone? */
bool step_expr_is_flag(const step_expr *e);
/* Was a symbol of that name made? */
bool step_expr_knows(const step_exprs *c, const char *symbol);
/* Its names, in the order in which they were made, ended by NULL. */
const char *const *step_expr_names(const step_exprs *c, arena *a);
bool step_expr_is_ragged_name(const step_exprs *c, const char *symbol);

/* The number that it always is; false when it has a symbol. */
bool step_expr_is_number(const step_expr *e, int64_t *value);
/* Does a ragged symbol occur in it? */
bool step_expr_is_ragged(const step_expr *e);
/* "4*B + ceil(C/16)": parses back by eye; ragged symbols have a ~ in front. */
const char *step_expr_text(const step_expr *e, arena *a);

/* The value with symbols replaced; `lookup` returns false for a symbol without a value. False then, with its name in *missing, or past
 * 2^62 (*missing NULL). */
typedef bool step_expr_lookup(void *user, const char *symbol, int64_t *value);
bool step_expr_evaluate(const step_expr *e, step_expr_lookup *lookup, void *user, int64_t *value, const char **missing);

/* Calls visit with every symbol of the expression, also inside atoms, in the order in which they are printed. */
void step_expr_symbols(const step_expr *e, void (*visit)(void *user, const char *name, bool ragged), void *user);

#endif
