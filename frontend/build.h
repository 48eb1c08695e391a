/* Builders of syntax nodes: what the grammar's actions call.
 *
 * The one idea: a builder takes finished kids and returns a finished node, and every node goes through
 * `build` or `build_push`, which keep the tree within NESTING_MAX. */
#ifndef VISA_FRONTEND_BUILD_H
#define VISA_FRONTEND_BUILD_H

#include "frontend/parse_state.h"

/* A node with the given kids, ended by NULL. */
#define build(p, kind, range, ...) build_node((p), (kind), (range), BUILD_KIDS(__VA_ARGS__))
ast *build_node(parse_state *p, ast_kind kind, src_range range, ast *const *kids, size_t count);
/* An array and its length, without the NULL. */
#define BUILD_KIDS(...) (ast *[]){__VA_ARGS__}, sizeof((ast *[]){__VA_ARGS__}) / sizeof(ast *) - 1
ast *build_none(parse_state *p, src_range at);
/* What lies between the last complete statement and `end`, where the parser goes on: an AST_ERROR with the names in it; value 1: a
 * `let` binds it. */
ast *build_skipped(parse_state *p, uint32_t end);
/* The same for a faulty entry of axes![..]. */
ast *build_skipped_axis(parse_state *p, uint32_t end);
/* The source text of a range, as it is. */
ast *build_raw(parse_state *p, src_range range);
ast *build_list_of(parse_state *p, ast_kind kind, src_range range, ast *first);
/* Appends and takes over the list's new range. */
ast *build_push(parse_state *p, ast *list, ast *kid, src_range range);

/* These change a node that was just built and return it. */
ast *build_widen(ast *node, src_range range);
ast *build_kind(ast *node, ast_kind kind);
ast *build_value(ast *node, int64_t value);
ast *build_text(ast *node, const char *text);
/* The statement, after the one that `#[after(name)]` names; other attributes of statements mean nothing here. */
ast *build_pinned(parse_state *p, ast *statement, const ast *attributes);
ast *build_named(parse_state *p, ast *node, const token *name);
ast *build_operator(ast *node, src_range name_range, const char *text);
ast *build_put_first(parse_state *p, ast *node, ast *kid, src_range range);
/* A list in round brackets: of one element that element, with the brackets' range. */
ast *build_group(ast *list, src_range range);

/* Items; the kids after attributes, ended by NULL. */
#define build_item(p, kind, range, ...) build_item_node((p), (kind), (range), BUILD_KIDS(__VA_ARGS__))
ast *build_item_node(parse_state *p, ast_kind kind, src_range range, ast *const *kids, size_t count);
ast *build_with_attributes(parse_state *p, ast *item, ast *attributes, src_range range);
ast *build_attribute(parse_state *p, const token *first, src_range range, bool inner);
/* The generics with what a where clause says of those that have no bound of their own: `where A: AxisName`. */
ast *build_where(parse_state *p, ast *generics, src_range clause);
ast *build_fn(parse_state *p, src_range range, int64_t flags, const token *name, ast *generics, ast *params, ast *result, ast *body);
ast *build_ignored_item(parse_state *p, src_range range, const token *first);
void build_file_part(parse_state *p, ast *part);

/* Paths and expressions */
ast *build_path(parse_state *p, ast_kind kind, src_range range, const token *name, const char *global);
ast *build_path_add(parse_state *p, ast *path, const token *name, src_range range);
ast *build_path_arguments(parse_state *p, ast *path, ast *arguments, src_range range);
ast *build_integer(parse_state *p, const token *t);
ast *build_binary(parse_state *p, src_range range, ast *left, src_range name_range, const char *text, ast *right);
ast *build_prefix(parse_state *p, ast_kind kind, src_range range, src_range name_range, const char *text, ast *operand);
ast *build_range(parse_state *p, src_range range, ast *low, src_range name_range, const char *text, ast *high);
ast *build_method(parse_state *p, src_range range, ast *receiver, const token *name, ast *generics, ast *args);
ast *build_tuple_index(parse_state *p, src_range range, ast *operand, const token *index);
ast *build_macro(parse_state *p, src_range range, const token *name);
/* Legal Rust that the language has not: `first` is its first word, `unread` the tokens that stay text. */
ast *build_refused(parse_state *p, src_range range, const token *first, src_range unread, ast *operand);
/* With the label in front of it, `'a:`, as its text. */
ast *build_labelled(parse_state *p, ast *node, src_range range);
ast *build_closure(parse_state *p, src_range range, src_range params, ast *body);
ast *build_field_pattern(parse_state *p, src_range range, const token *field, ast *pattern);

/* Mappings */
ast *build_map_alone(parse_state *p, ast *term);
ast *build_map_list(parse_state *p, ast *list, src_range range, const token *trailing_comma);
ast *build_map_number(ast *integer);
ast *build_map_operator(parse_state *p, ast_kind kind, src_range range, ast *operand, src_range name_range, ast *number,
                        const token *pad_kind);

#endif
