/* The grammar of .vm files (docs/language.md). Each action is one call of a builder (frontend/build.h);
 * tokens come from parse_next (frontend/feed.c), which folds constructs that are kept but not read into one
 * token each and says which `if`, `{` .. begin a statement. The grammar is LALR(1) without conflicts. */
%require "3.8"
%define api.pure full
%define api.prefix {visa_parse_}
%define api.token.prefix {T_}
%define api.location.type {src_range}
%define parse.error custom
%define parse.lac full
%locations
%param { struct parse_state *p }

%code requires {
#include "frontend/ast.h"
#include "frontend/token.h"
struct parse_state;
}

%union {
    const token *token;
    int64_t flags; /* ast_fn_flag */
    ast *node;
}

%code {
#include "frontend/build.h"
#include "frontend/parse_state.h"

/* Symbols stand in the order of the text, so the first one begins the range and the last one ends it. Whole ranges are copied
 * before single fields are changed: that is what processors forward from store to load. */
#define YYLLOC_DEFAULT(Current, Rhs, N)                                                                      \
    do {                                                                                                     \
        (Current) = YYRHSLOC(Rhs, (N) > 0 ? 1 : 0);                                                          \
        if ((N) > 0)                                                                                         \
            (Current).end = YYRHSLOC(Rhs, N).end;                                                            \
        else                                                                                                 \
            (Current).begin = (Current).end;                                                                 \
    } while (0)
/* Before it reduces by default the parser makes sure that the next token can be shifted then, which is a second walk of each reduction. In a
 * text without errors it always can be: while the text is trusted, the parser is told with each token that it did. */
#undef yylex
#define yylex(value, place, p) (yy_lac_established = (p)->trusts, parse_next((value), (place), (p)))

static void visa_parse_error(const src_range *at, struct parse_state *p, const char *message);
#define NONE(at) build_none(p, at)
}

%token END 0 "the end of the file"
%token <token> IDENT "a name" INT "an integer" FLOAT "a float" STRING "a string" CHAR "a character literal"
%token <token> LIFETIME "a lifetime" TUPLE_INDEX "a tuple index" OP_ASSIGN "an assignment operator"
%token <token> AS "as" ASYNC "async" AWAIT "await" BREAK "break" CONST "const" CONTINUE "continue"
%token <token> CRATE "crate" ELSE "else" EXTERN "extern" FALSE "false" FN "fn" FOR "for" IF "if" IN "in"
%token <token> LET "let" MOD "mod" MOVE "move"
%token <token> MUT "mut" PUB "pub" RETURN "return" SELF "self" SELF_TYPE "Self"
%token <token> SUPER "super" TRUE "true" TYPE "type" UNSAFE "unsafe" USE "use" UNDERSCORE "_"
%token <token> STRUCT "struct" ENUM "enum" TRAIT "trait" IMPL "impl" STATIC "static" DYN "dyn"
%token <token> MATCH "match" WHILE "while" LOOP "loop" WHERE "where"
%token <token> COLON2 "::" ARROW "->" FAT_ARROW "=>" DOT2 ".." DOT2_EQ "..=" DOT3 "..."
%token <token> EQ_EQ "==" NOT_EQ "!=" LE "<=" OR_OR "||"
/* The first character of <<, >>, >= and &&: joined in expressions, single in types. */
%token <token> LT_LT "<<" GT_GT ">>" GT_EQ ">=" AND_AND "&&"
%token <token> MAP_OPEN "m![" AXES_OPEN "axes![" MACRO_CLOSE "]" PAD_KIND "#{!}"
%token BAD_TOKEN "a character"
/* Made by parse_next: folded constructs, words that begin a statement, the place to go on after an error. */
%token <token> OUTER_ATTR "an attribute" INNER_ATTR "an inner attribute" MACRO_CALL "a macro call"
%token <token> LET_ELSE "`else`" OPAQUE_TYPE "`impl`, `dyn` or `fn`"
%token <token> IGNORED_ITEM "an item" WHERE_CLAUSE "a where clause" REFUSED "a block expression"
%token <token> S_IF "`if`" S_FOR "`for`" S_UNSAFE "`unsafe`" S_CONST "`const`" S_BLOCK "`{`" S_REFUSED "a block statement"
%token <token> S_MACRO "a macro"
%token <token> COND_BLOCK "{"
%token LONE_MAPPING "a mapping alone" /* in front of a text that is one mapping and nothing else */
%token RESYNC "a new statement" RESYNC_BODY "a function body" RESYNC_MAP "the rest of a mapping"
%token RESYNC_AXIS "the rest of axes![..]" RESYNC_COMMA "an axis without a comma"
%token <token> '(' ')' '[' ']' '{' '}' '<' '>' ',' ';' ':' '.' '&' '*' '/' '%' '+' '-' '=' '!' '#' '|'
%token <token> '?' '^' '@' '$' '~'

%left OR_OR
%left AND_AND
%left EQ_EQ NOT_EQ '<' '>' LE GT_EQ
%left '|'
%left '^'
%left '&'
%left LT_LT GT_GT
%left '+' '-'
%left '*' '/' '%'
%precedence AS
%precedence UNARY

%type <token> segment_name lt gt crate_name
%type <flags> quals qual
%type <node> attrs item bare_item visible_item use_tree use_trees use_path use_group as_name mod_body
%type <node> axes axis_list axis resync_axis
%type <node> fn generics_opt generics gparam bounds bound params param_list param return_opt body_opt
%type <node> type type_opt types type_path generic_args garg_list garg cast_path
%type <node> map map_expr map_list map_term map_operand braced window_list window_part window_places qualified
%type <node> pattern patterns pattern_part pattern_path value_patterns field_patterns field_pattern qualified_value
%type <node> stmt resync_body sound_stmt expr_stmt stmts tail block cond_block stmt_block block_rest block_statement let
%type <node> expr expr_opt place range bin postfix callable path exprs args call_args
%type <node> if_rest else_if for_rest inits init closure literal

%%

file: parts
    | LONE_MAPPING map          { p->root = $2; }
    ;

/* The kids are pushed one by one, so that an error at the end of the file loses nothing. */
parts: %empty
    | parts stmt                { build_file_part(p, $2); }
    ;

/* ---- Items ---- */

attrs: OUTER_ATTR               { $$ = build_list_of(p, AST_LIST, @$, build_attribute(p, $1, @1, false)); }
    | attrs OUTER_ATTR          { $$ = build_push(p, $1, build_attribute(p, $2, @2, false), @$); }
    ;

item: visible_item
    | attrs visible_item        { $$ = build_with_attributes(p, $2, $1, @$); }
    ;

visible_item: bare_item
    | vis bare_item             { $$ = build_widen($2, @$); }
    ;

vis: PUB
    | PUB '(' vis_scope ')'
    ;

vis_scope: CRATE | SUPER | SELF
    | IN path
    ;

bare_item: USE use_tree ';'     { $$ = build_item(p, AST_USE, @$, $2, NULL); }
    | EXTERN CRATE crate_name as_name ';'
                                { $$ = build_named(p, build_item(p, AST_EXTERN_CRATE, @$, $4, NULL), $3); }
    | MOD IDENT mod_body        { $$ = build_named(p, build_item(p, AST_MOD, @$, $3, NULL), $2); }
    | TYPE IDENT generics_opt '=' type ';'
                                { $$ = build_named(p, build_item(p, AST_TYPE_ALIAS, @$, $3, $5, NULL), $2); }
    | CONST IDENT ':' type '=' expr ';'
                                { $$ = build_named(p, build_item(p, AST_CONST, @$, $4, $6, NULL), $2); }
    | CONST UNDERSCORE ':' type '=' expr ';'
                                { $$ = build_named(p, build_item(p, AST_CONST, @$, $4, $6, NULL), $2); }
    | axes
    | fn
    | IGNORED_ITEM              { $$ = build_ignored_item(p, @$, $1); }
    ;

crate_name: IDENT | SELF
    ;

as_name: %empty                 { $$ = NONE(@$); }
    | AS IDENT                  { $$ = build_named(p, build(p, AST_NAME, @2, NULL), $2); }
    | AS UNDERSCORE             { $$ = build_named(p, build(p, AST_NAME, @2, NULL), $2); }
    ;

use_tree: use_path              { $$ = build(p, AST_USE_NAME, @$, $1, NULL); }
    | use_path COLON2 '*'       { $$ = build_operator(build(p, AST_USE_GLOB, @$, $1, NULL), @3, ""); }
    | use_path COLON2 use_group { $$ = build_put_first(p, $3, $1, @$); }
    | use_path AS IDENT         { $$ = build_named(p, build(p, AST_USE_RENAME, @$, $1, NULL), $3); }
    | use_path AS UNDERSCORE    { $$ = build_named(p, build(p, AST_USE_RENAME, @$, $1, NULL), $3); }
    | use_group
    | '*'                       { $$ = build_operator(build(p, AST_USE_GLOB, @$, NONE(@$), NULL), @1, ""); }
    ;

use_path: segment_name          { $$ = build_path(p, AST_PATH, @$, $1, ""); }
    | COLON2 segment_name       { $$ = build_path(p, AST_PATH, @$, $2, "::"); }
    | use_path COLON2 segment_name  { $$ = build_path_add(p, $1, $3, @$); }
    ;

use_group: '{' '}'              { $$ = build(p, AST_USE_GROUP, @$, NONE(@1), NULL); }
    | '{' use_trees '}'         { $$ = build_widen($2, @$); }
    | '{' use_trees ',' '}'     { $$ = build_widen($2, @$); }
    ;

use_trees: use_tree             { $$ = build(p, AST_USE_GROUP, @$, NONE(@1), $1, NULL); }
    | use_trees ',' use_tree    { $$ = build_push(p, $1, $3, @$); }
    ;

mod_body: ';'                   { $$ = NONE(@$); }
    | block
    ;

axes: axes_open axis_list MACRO_CLOSE       { $$ = build_widen($2, @$); }
    | axes_open axis_list ',' MACRO_CLOSE   { $$ = build_widen($2, @$); }
    ;

axes_open: AXES_OPEN            { parse_statement_done(p, @1); }
    ;

axis_list: axis                 { $$ = build_item(p, AST_AXES, @$, $1, NULL); }
    | axis_list ',' axis        { $$ = build_push(p, $1, $3, @$); }
    | axis_list error resync_comma axis     { $$ = build_push(p, $1, $4, @$); }
    | axis_list error resync_axis           { $$ = build_push(p, $1, $3, @$); }
    ;

axis: IDENT '=' INT
                        { $$ = build_named(p, build(p, AST_AXIS, @$, build_integer(p, $3), NULL), $1); parse_statement_done(p, @$); }
    | OUTER_ATTR axis           { $$ = build_widen($2, @$); }
    | error resync_axis         { $$ = $2; }
    ;

resync_axis: RESYNC_AXIS        { $$ = build_skipped_axis(p, @1.begin); yyerrok; parse_statement_done(p, @1); }
    ;

resync_comma: RESYNC_COMMA      { yyerrok; }
    ;

fn: FN IDENT generics_opt '(' params ')' return_opt where_opt body_opt
                                { $$ = build_fn(p, @$, 0, $2, build_where(p, $3, @8), $5, $7, $9); }
    | quals FN IDENT generics_opt '(' params ')' return_opt where_opt body_opt
                                { $$ = build_fn(p, @$, $1, $3, build_where(p, $4, @9), $6, $8, $10); }
    ;

quals: qual
    | quals qual                { $$ = $1 | $2; }
    ;

qual: ASYNC                     { $$ = AST_FN_ASYNC; }
    | UNSAFE                    { $$ = AST_FN_UNSAFE; }
    | CONST                     { $$ = AST_FN_CONST; }
    | EXTERN STRING             { $$ = 0; }
    ;

generics_opt: %empty            { $$ = NONE(@$); }
    | lt gt                     { $$ = build(p, AST_GENERICS, @$, NULL); }
    | lt generics gt            { $$ = build_widen($2, @$); }
    | lt generics ',' gt        { $$ = build_widen($2, @$); }
    ;

generics: gparam                { $$ = build(p, AST_GENERICS, @$, $1, NULL); }
    | generics ',' gparam       { $$ = build_push(p, $1, $3, @$); }
    ;

gparam: LIFETIME                { $$ = build_named(p, build(p, AST_GENERIC_LIFETIME, @$, NULL), $1); }
    | LIFETIME ':' bounds       { $$ = build_named(p, build(p, AST_GENERIC_LIFETIME, @$, NULL), $1); }
    | CONST IDENT ':' type      { $$ = build_named(p, build(p, AST_GENERIC_CONST, @$, $4, NULL), $2); }
    | CONST IDENT ':' type '=' garg
                                { $$ = build_named(p, build(p, AST_GENERIC_CONST, @$, $4, NONE(@4), $6, NULL), $2); }
    | IDENT                     { $$ = build_named(p, build(p, AST_GENERIC_TYPE, @$, NONE(@1), NULL), $1); }
    | IDENT ':' bounds          { $$ = build_named(p, build(p, AST_GENERIC_TYPE, @$, $3, NULL), $1); }
    | IDENT '=' type            { $$ = build_named(p, build(p, AST_GENERIC_TYPE, @$, NONE(@1), NONE(@1), $3, NULL), $1); }
    | IDENT ':' bounds '=' type { $$ = build_named(p, build(p, AST_GENERIC_TYPE, @$, $3, NONE(@3), $5, NULL), $1); }
    | OUTER_ATTR gparam         { $$ = build_widen($2, @$); }
    ;

bounds: bound                   { $$ = build_list_of(p, AST_LIST, @$, $1); }
    | bounds '+' bound          { $$ = build_push(p, $1, $3, @$); }
    ;

bound: type
    | LIFETIME                  { $$ = build_named(p, build(p, AST_LIFETIME, @$, NULL), $1); }
    | '?' type_path             { $$ = build_raw(p, @$); }
    ;

params: %empty                  { $$ = build(p, AST_LIST, @$, NULL); }
    | param_list
    | param_list ','
    ;

param_list: param               { $$ = build_list_of(p, AST_LIST, @$, $1); }
    | param_list ',' param      { $$ = build_push(p, $1, $3, @$); }
    ;

param: pattern ':' type         { $$ = build(p, AST_PARAM, @$, NONE(@1), $1, $3, NULL); }
    | attrs pattern ':' type    { $$ = build(p, AST_PARAM, @$, $1, $2, $4, NULL); }
    ;

return_opt: %empty              { $$ = NONE(@$); }
    | ARROW type                { $$ = $2; }
    ;

where_opt: %empty
    | WHERE_CLAUSE
    ;

body_opt: block
    | ';'                       { $$ = NONE(@$); }
    ;

/* ---- Types ---- */

lt: '<' | LT_LT
    ;
gt: '>' | GT_GT | GT_EQ
    ;

segment_name: IDENT | CRATE | SUPER | SELF | SELF_TYPE
    ;

type: type_path
    | '&' type                  { $$ = build_prefix(p, AST_TYPE_REF, @$, @1, "", $2); }
    | '&' LIFETIME type         { $$ = build_prefix(p, AST_TYPE_REF, @$, @1, "", $3); }
    | '&' MUT type              { $$ = build_prefix(p, AST_TYPE_REF, @$, @1, "mut", $3); }
    | '&' LIFETIME MUT type     { $$ = build_prefix(p, AST_TYPE_REF, @$, @1, "mut", $4); }
    | AND_AND type              { $$ = build_prefix(p, AST_TYPE_REF, @$, @1, "", $2); }
    | '(' ')'                   { $$ = build(p, AST_TYPE_TUPLE, @$, NULL); }
    | '(' types ')'             { $$ = build_group($2, @$); }
    | '(' types ',' ')'         { $$ = build_widen($2, @$); }
    | '[' type ']'              { $$ = build(p, AST_TYPE_ARRAY, @$, $2, NONE(@3), NULL); }
    | '[' type ';' expr ']'     { $$ = build(p, AST_TYPE_ARRAY, @$, $2, $4, NULL); }
    | UNDERSCORE                { $$ = build(p, AST_TYPE_INFER, @$, NULL); }
    | map
    | qualified
    | OPAQUE_TYPE               { $$ = build(p, AST_TYPE_OPAQUE, @$, build_raw(p, @$), NULL); }
    | MACRO_CALL                { $$ = build_kind(build_macro(p, @$, $1), AST_TYPE_MACRO); }
    ;

types: type                     { $$ = build(p, AST_TYPE_TUPLE, @$, $1, NULL); }
    | types ',' type            { $$ = build_push(p, $1, $3, @$); }
    ;

qualified: lt type gt COLON2 IDENT
                        { $$ = build_named(p, build(p, AST_TYPE_QUALIFIED, @$, $2, NONE(@3), NULL), $5); }
    | lt type AS type gt COLON2 IDENT
                        { $$ = build_named(p, build(p, AST_TYPE_QUALIFIED, @$, $2, $4, NULL), $7); }
    ;

/* In an expression a function may be meant, with type arguments of its own. */
qualified_value: qualified
    | qualified COLON2 generic_args     { $$ = build_push(p, $1, $3, @$); }
    ;

type_path: segment_name         { $$ = build_path(p, AST_TYPE_PATH, @$, $1, ""); }
    | COLON2 segment_name       { $$ = build_path(p, AST_TYPE_PATH, @$, $2, "::"); }
    | type_path COLON2 segment_name     { $$ = build_path_add(p, $1, $3, @$); }
    | type_path generic_args    { $$ = build_path_arguments(p, $1, $2, @$); }
    | type_path COLON2 generic_args     { $$ = build_path_arguments(p, $1, $3, @$); }
    ;

generic_args: lt gt             { $$ = build(p, AST_GENERIC_ARGS, @$, NULL); }
    | lt garg_list gt           { $$ = build_widen($2, @$); }
    | lt garg_list ',' gt       { $$ = build_widen($2, @$); }
    ;

garg_list: garg                 { $$ = build(p, AST_GENERIC_ARGS, @$, $1, NULL); }
    | garg_list ',' garg        { $$ = build_push(p, $1, $3, @$); }
    ;

garg: LIFETIME                  { $$ = build_named(p, build(p, AST_LIFETIME, @$, NULL), $1); }
    | INT                       { $$ = build_integer(p, $1); }
    | '-' INT                   { $$ = build_prefix(p, AST_UNARY, @$, @1, "-", build_integer(p, $2)); }
    | TRUE                      { $$ = build_value(build(p, AST_BOOL, @$, NULL), 1); }
    | FALSE                     { $$ = build_value(build(p, AST_BOOL, @$, NULL), 0); }
    | '{' braced '}'            { $$ = build(p, AST_CONST_ARG, @$, $2, NULL); }
    | type
    ;

/* ---- Mappings ---- */

map: MAP_OPEN map_expr MACRO_CLOSE      { $$ = build(p, AST_MAP, @$, $2, NULL); }
    | MAP_OPEN error RESYNC_MAP MACRO_CLOSE
                                { yyerrok; $$ = build(p, AST_MAP, @$, build(p, AST_ERROR, @2, NULL), NULL); }
    ;

map_expr: map_term              { $$ = build_map_alone(p, $1); }
    | map_term ','              { $$ = build_map_list(p, build(p, AST_MAP_PAIR, @1, $1, NULL), @$, $2); }
    | map_list                  { $$ = build_map_list(p, $1, @$, NULL); }
    | map_list ','              { $$ = build_map_list(p, $1, @$, $2); }
    ;

map_list: map_term ',' map_term { $$ = build_push(p, build(p, AST_MAP_PAIR, @1, $1, NULL), $3, @$); }
    | map_list ',' map_term     { $$ = build_push(p, $1, $3, @$); }
    ;

map_term: IDENT                 { $$ = build_named(p, build(p, AST_MAP_AXIS, @$, NULL), $1); }
    | INT                       { $$ = build_map_number(build_integer(p, $1)); }
    | '(' map_expr ')'          { $$ = build_widen($2, @$); }
    | '[' map_expr ']'          { $$ = build_widen($2, @$); }
    | '{' type '}'              { $$ = build(p, AST_MAP_ESCAPE, @$, $2, NULL); }
    | '$' '(' window_list ')'   { $$ = build_widen($3, @$); }
    | '$' '(' window_list ',' ')'   { $$ = build_widen($3, @$); }
    | '$' '(' window_list '|' window_places ')'     { $$ = build_widen(build_push(p, $3, $5, @$), @$); }
    | map_term '/' map_operand  { $$ = build_map_operator(p, AST_MAP_DIV, @$, $1, @2, $3, NULL); }
    | map_term '%' map_operand  { $$ = build_map_operator(p, AST_MAP_MOD, @$, $1, @2, $3, NULL); }
    | map_term '=' map_operand  { $$ = build_map_operator(p, AST_MAP_RESIZE, @$, $1, @2, $3, NULL); }
    | map_term '#' map_operand  { $$ = build_map_operator(p, AST_MAP_PAD, @$, $1, @2, $3, NULL); }
    | map_term PAD_KIND map_operand     { $$ = build_map_operator(p, AST_MAP_PAD, @$, $1, @2, $3, $2); }
    ;

map_operand: INT                { $$ = build_integer(p, $1); }
    | '{' braced '}'            { $$ = build_widen(build(p, AST_CONST_ARG, @$, $2, NULL), @$); }
    | IDENT                     { $$ = build_named(p, build(p, AST_MAP_AXIS, @$, NULL), $1); }
    | '(' map_expr ')'          { $$ = build_widen($2, @$); }
    ;

braced: expr
    | block_statement           /* `{ if WIDE { 8 } else { 4 } }`: the scanner sees a statement */
    ;

window_places: map_operand DOT2 map_operand
                                { $$ = build(p, AST_MAP_PLACES, @$, $1, $3, NULL); }
    ;

window_list: window_part        { $$ = build(p, AST_MAP_WINDOW, @$, $1, NULL); }
    | window_list ',' window_part   { $$ = build_push(p, $1, $3, @$); }
    ;

window_part: map_term ':' map_operand
                                { $$ = build_map_operator(p, AST_MAP_SLIDE, @$, $1, @2, $3, NULL); }
    ;

/* ---- Statements ---- */

pattern: UNDERSCORE             { $$ = build(p, AST_PAT_WILD, @$, NULL); }
    | IDENT                     { $$ = build_named(p, build(p, AST_PAT_NAME, @$, NULL), $1); }
    | MUT IDENT                 { $$ = build_value(build_named(p, build(p, AST_PAT_NAME, @$, NULL), $2), 1); }
    | IDENT '@' pattern_part    { $$ = build_named(p, build(p, AST_PAT_NAME, @$, $3, NULL), $1); }
    | MUT IDENT '@' pattern_part
                                { $$ = build_value(build_named(p, build(p, AST_PAT_NAME, @$, $4, NULL), $2), 1); }
    | pattern_path '{' '}'      { $$ = build(p, AST_PAT_STRUCT, @$, $1, NULL); }
    | pattern_path '{' field_patterns '}'       { $$ = build_put_first(p, $3, $1, @$); }
    | pattern_path '{' field_patterns ',' '}'   { $$ = build_put_first(p, $3, $1, @$); }
    | pattern_path '(' ')'      { $$ = build(p, AST_PAT_TUPLE_STRUCT, @$, $1, NULL); }
    | pattern_path '(' value_patterns ')'       { $$ = build_put_first(p, $3, $1, @$); }
    | pattern_path '(' value_patterns ',' ')'   { $$ = build_put_first(p, $3, $1, @$); }
    | '(' ')'                   { $$ = build(p, AST_PAT_TUPLE, @$, NULL); }
    | '(' patterns ')'          { $$ = build_group($2, @$); }
    | '(' patterns ',' ')'      { $$ = build_widen($2, @$); }
    | '[' ']'                   { $$ = build(p, AST_PAT_ARRAY, @$, NULL); }
    | '[' patterns ']'          { $$ = build_widen(build_kind($2, AST_PAT_ARRAY), @$); }
    | '[' patterns ',' ']'      { $$ = build_widen(build_kind($2, AST_PAT_ARRAY), @$); }
    | '&' pattern               { $$ = build(p, AST_PAT_REF, @$, $2, NULL); }
    | AND_AND pattern           { $$ = build(p, AST_PAT_REF, @$, $2, NULL); }
    ;

patterns: pattern_part          { $$ = build(p, AST_PAT_TUPLE, @$, $1, NULL); }
    | patterns ',' pattern_part { $$ = build_push(p, $1, $3, @$); }
    ;

pattern_part: pattern
    | DOT2                      { $$ = build(p, AST_PAT_REST, @$, NULL); }
    ;

value_patterns: pattern_part    { $$ = build(p, AST_PAT_TUPLE_STRUCT, @$, NONE(@1), $1, NULL); }
    | value_patterns ',' pattern_part   { $$ = build_push(p, $1, $3, @$); }
    ;

pattern_path: IDENT             { $$ = build_path(p, AST_PATH, @$, $1, ""); }
    | pattern_path COLON2 IDENT { $$ = build_path_add(p, $1, $3, @$); }
    ;

field_patterns: field_pattern   { $$ = build(p, AST_PAT_STRUCT, @$, NONE(@1), $1, NULL); }
    | field_patterns ',' field_pattern  { $$ = build_push(p, $1, $3, @$); }
    ;

/* `x` is `x: x`. */
field_pattern: IDENT            { $$ = build_field_pattern(p, @$, $1, build_named(p, build(p, AST_PAT_NAME, @$, NULL), $1)); }
    | MUT IDENT                 { $$ = build_field_pattern(p, @$, $2, build_value(build_named(p, build(p, AST_PAT_NAME, @$, NULL), $2), 1)); }
    | IDENT ':' pattern         { $$ = build_field_pattern(p, @$, $1, $3); }
    | DOT2                      { $$ = build(p, AST_PAT_REST, @$, NULL); }
    ;

/* Three spellings of one bracket: parse_next knows which { ends a condition and which begins a statement. */
block: block_open block_rest            { $$ = build_labelled(p, $2, @$); }
    ;
cond_block: cond_open block_rest        { $$ = build_widen($2, @$); }
    ;
stmt_block: stmt_open block_rest        { $$ = build_labelled(p, $2, @$); }
    ;
block_open: '{'                         { parse_enter_block(p, $1); }
    ;
cond_open: COND_BLOCK                   { parse_enter_block(p, $1); }
    ;
stmt_open: S_BLOCK                      { parse_enter_block(p, $1); }
    ;

block_rest: stmts block_close
    | stmts tail block_close    { $$ = build_push(p, $1, $2, @$); }
    | stmts attrs tail block_close
                                { $$ = build_push(p, $1, build_pinned(p, $3, $2), @$); }
    ;

tail: expr                      { $$ = build(p, AST_EXPR_STMT, @$, $1, NULL); }
    ;

block_close: '}'                { parse_leave_block(p); }
    ;

stmts: %empty                   { $$ = build(p, AST_BLOCK, @$, NULL); }
    | stmts stmt                { $$ = $2 != NULL ? build_push(p, $1, $2, @$) : $1; }
    ;

stmt: sound_stmt                { $$ = $1; parse_statement_done(p, @$); }
    | error RESYNC              { $$ = build_skipped(p, @2.begin); yyerrok; parse_statement_done(p, @2); }
    | error resync_body block   { $$ = $2; parse_statement_done(p, @$); }
    ;

sound_stmt: ';'                 { $$ = NULL; }
    | item
    | INNER_ATTR                { $$ = build_attribute(p, $1, @1, true); }
    | let
    | attrs let                 { $$ = build_pinned(p, $2, $1); }
    | expr_stmt
    | attrs expr_stmt           { $$ = build_pinned(p, $2, $1); }
    ;

expr_stmt: block_statement      { $$ = build(p, AST_EXPR_STMT, @$, $1, NULL); }
    | expr ';'                  { $$ = build_text(build(p, AST_EXPR_STMT, @$, $1, NULL), ";"); }
    ;

/* The body of a function with a faulty head is read for its own errors and dropped. */
resync_body: RESYNC_BODY        { $$ = build_skipped(p, @1.begin); yyerrok; parse_statement_done(p, @1); }
    ;

let: LET pattern type_opt ';'   { $$ = build(p, AST_LET, @$, $2, $3, NONE(@4), NULL); }
    | LET pattern type_opt '=' expr ';'     { $$ = build(p, AST_LET, @$, $2, $3, $5, NULL); }
    | LET pattern type_opt '=' expr LET_ELSE block ';'
                                { $$ = build(p, AST_LET, @$, $2, $3, $5, $7, NULL); }
    ;

type_opt: %empty                { $$ = NONE(@$); }
    | ':' type                  { $$ = $2; }
    ;

/* What ends a statement without `;`: parse_next returns S_ tokens for these words at the start of one. */
block_statement: S_IF if_rest   { $$ = build_widen($2, @$); }
    | S_FOR for_rest            { $$ = build_labelled(p, $2, @$); }
    | S_UNSAFE block            { $$ = build(p, AST_UNSAFE, @$, $2, NULL); }
    | S_CONST block             { $$ = build(p, AST_CONST_BLOCK, @$, $2, NULL); }
    | S_REFUSED                 { $$ = build_refused(p, @$, $1, @1, NONE(@1)); }
    | S_MACRO                   { $$ = build_macro(p, @$, $1); }
    | stmt_block
    ;

/* ---- Expressions ---- */

expr: bin
    | range
    | place '=' expr            { $$ = build_operator(build(p, AST_ASSIGN, @$, $1, $3, NULL), @2, "="); }
    | place OP_ASSIGN expr      { $$ = build_operator(build(p, AST_ASSIGN, @$, $1, $3, NULL), @2, token_text(p->source, $2, p->arena)); }
    | closure
    | RETURN expr_opt           { $$ = build_refused(p, @$, $1, @1, $2); }
    | BREAK expr_opt            { $$ = build_refused(p, @$, $1, @1, $2); }
    | BREAK LIFETIME expr_opt   { $$ = build_refused(p, @$, $1, src_range_join(@1, @2), $3); }
    | CONTINUE                  { $$ = build_refused(p, @$, $1, @1, NONE(@1)); }
    | CONTINUE LIFETIME         { $$ = build_refused(p, @$, $1, @$, NONE(@1)); }
    ;

expr_opt: %empty                { $$ = NONE(@$); }
    | expr
    ;

closure: closure_head expr      { $$ = build_closure(p, @$, @1, $2); }
    | closure_head ARROW type block     { $$ = build_closure(p, @$, src_range_join(@1, @3), $4); }
    ;

closure_head: '|' closure_params '|'
    | '|' closure_params ',' '|'
    | OR_OR
    | MOVE '|' closure_params '|'
    | MOVE '|' closure_params ',' '|'
    | MOVE OR_OR
    ;

closure_params: closure_param
    | closure_params ',' closure_param
    ;

closure_param: pattern
    | pattern ':' type
    ;

place: bin
    | range
    ;

range: bin DOT2                 { $$ = build_range(p, @$, $1, @2, "..", NONE(@2)); }
    | bin DOT2 bin              { $$ = build_range(p, @$, $1, @2, "..", $3); }
    | bin DOT2_EQ bin           { $$ = build_range(p, @$, $1, @2, "..=", $3); }
    | DOT2                      { $$ = build_range(p, @$, NONE(@1), @1, "..", NONE(@1)); }
    | DOT2 bin                  { $$ = build_range(p, @$, NONE(@1), @1, "..", $2); }
    ;

bin: postfix
    | bin '+' bin               { $$ = build_binary(p, @$, $1, @2, "+", $3); }
    | bin '-' bin               { $$ = build_binary(p, @$, $1, @2, "-", $3); }
    | bin '*' bin               { $$ = build_binary(p, @$, $1, @2, "*", $3); }
    | bin '/' bin               { $$ = build_binary(p, @$, $1, @2, "/", $3); }
    | bin '%' bin               { $$ = build_binary(p, @$, $1, @2, "%", $3); }
    | bin '&' bin               { $$ = build_binary(p, @$, $1, @2, "&", $3); }
    | bin '^' bin               { $$ = build_binary(p, @$, $1, @2, "^", $3); }
    | bin '|' bin               { $$ = build_binary(p, @$, $1, @2, "|", $3); }
    | bin EQ_EQ bin             { $$ = build_binary(p, @$, $1, @2, "==", $3); }
    | bin NOT_EQ bin            { $$ = build_binary(p, @$, $1, @2, "!=", $3); }
    | bin '<' bin               { $$ = build_binary(p, @$, $1, @2, "<", $3); }
    | bin '>' bin               { $$ = build_binary(p, @$, $1, @2, ">", $3); }
    | bin LE bin                { $$ = build_binary(p, @$, $1, @2, "<=", $3); }
    | bin GT_EQ '=' bin %prec GT_EQ     { $$ = build_binary(p, @$, $1, src_range_join(@2, @3), ">=", $4); }
    | bin LT_LT '<' bin %prec LT_LT     { $$ = build_binary(p, @$, $1, src_range_join(@2, @3), "<<", $4); }
    | bin GT_GT '>' bin %prec GT_GT     { $$ = build_binary(p, @$, $1, src_range_join(@2, @3), ">>", $4); }
    | bin AND_AND '&' bin %prec AND_AND { $$ = build_binary(p, @$, $1, src_range_join(@2, @3), "&&", $4); }
    | bin OR_OR bin             { $$ = build_binary(p, @$, $1, @2, "||", $3); }
    | '-' bin %prec UNARY       { $$ = build_prefix(p, AST_UNARY, @$, @1, "-", $2); }
    | '!' bin %prec UNARY       { $$ = build_prefix(p, AST_UNARY, @$, @1, "!", $2); }
    | '*' bin %prec UNARY       { $$ = build_prefix(p, AST_DEREF, @$, @1, "", $2); }
    | '&' bin %prec UNARY       { $$ = build_prefix(p, AST_BORROW, @$, @1, "", $2); }
    | '&' MUT bin %prec UNARY   { $$ = build_prefix(p, AST_BORROW, @$, src_range_join(@1, @2), "mut", $3); }
    | AND_AND bin %prec UNARY   { $$ = build_prefix(p, AST_BORROW, @$, @1, "", $2); }
    | bin AS cast_path          { $$ = build_operator(build(p, AST_CAST, @$, $1, $3, NULL), @2, ""); }
    ;

/* Without generic arguments: `a as usize < b` compares. */
cast_path: segment_name         { $$ = build_path(p, AST_TYPE_PATH, @$, $1, ""); }
    | cast_path COLON2 segment_name     { $$ = build_path_add(p, $1, $3, @$); }
    ;

postfix: callable
    | postfix '.' IDENT         { $$ = build_named(p, build(p, AST_FIELD, @$, $1, NULL), $3); }
    | postfix TUPLE_INDEX       { $$ = build_tuple_index(p, @$, $1, $2); }
    ;

/* Everything but a field: `a.f(x)` is a method call. */
callable: literal
    | postfix '.' IDENT call_args           { $$ = build_method(p, @$, $1, $3, NONE(@3), $4); }
    | postfix '.' IDENT COLON2 generic_args call_args
                                            { $$ = build_method(p, @$, $1, $3, $5, $6); }
    | callable call_args        { $$ = build(p, AST_CALL, @$, $1, $2, NULL); }
    | postfix '[' expr ']'      { $$ = build(p, AST_INDEX, @$, $1, $3, NULL); }
    | postfix '.' AWAIT         { $$ = build_operator(build(p, AST_AWAIT, @$, $1, NULL), @3, ""); }
    | postfix '?'               { $$ = build_operator(build(p, AST_TRY, @$, $1, NULL), @2, ""); }
    | path
    | path '{' '}'              { $$ = build(p, AST_STRUCT_LITERAL, @$, $1, NULL); }
    | path '{' inits '}'        { $$ = build_put_first(p, $3, $1, @$); }
    | path '{' inits ',' '}'    { $$ = build_put_first(p, $3, $1, @$); }
    | '(' ')'                   { $$ = build(p, AST_TUPLE, @$, NULL); }
    | '(' exprs ')'             { $$ = build_group(build_kind($2, AST_TUPLE), @$); }
    | '(' exprs ',' ')'         { $$ = build_widen(build_kind($2, AST_TUPLE), @$); }
    | '[' args ']'              { $$ = build_widen(build_kind($2, AST_ARRAY), @$); }
    | '[' expr ';' expr ']'     { $$ = build(p, AST_ARRAY_REPEAT, @$, $2, $4, NULL); }
    | map
    | qualified_value           { $$ = build_value($1, AST_QUALIFIED_VALUE); }
    | MACRO_CALL                { $$ = build_macro(p, @$, $1); }
    | IF if_rest                { $$ = build_widen($2, @$); }
    | FOR for_rest              { $$ = build_labelled(p, $2, @$); }
    | UNSAFE block              { $$ = build(p, AST_UNSAFE, @$, $2, NULL); }
    | CONST block               { $$ = build(p, AST_CONST_BLOCK, @$, $2, NULL); }
    | REFUSED                   { $$ = build_refused(p, @$, $1, @1, NONE(@1)); }
    | block
    ;

call_args: '(' args ')'         { $$ = build_widen($2, @$); }
    ;

args: %empty                    { $$ = build(p, AST_LIST, @$, NULL); }
    | exprs
    | exprs ','
    ;

exprs: expr                     { $$ = build_list_of(p, AST_LIST, @$, $1); }
    | exprs ',' expr            { $$ = build_push(p, $1, $3, @$); }
    ;

literal: INT                    { $$ = build_integer(p, $1); }
    | FLOAT                     { $$ = build_named(p, build(p, AST_FLOAT, @$, NULL), $1); }
    | STRING                    { $$ = build_named(p, build(p, AST_STRING, @$, NULL), $1); }
    | CHAR                      { $$ = build_named(p, build(p, AST_STRING, @$, NULL), $1); }
    | TRUE                      { $$ = build_value(build(p, AST_BOOL, @$, NULL), 1); }
    | FALSE                     { $$ = build_value(build(p, AST_BOOL, @$, NULL), 0); }
    ;

path: segment_name              { $$ = build_path(p, AST_PATH, @$, $1, ""); }
    | COLON2 segment_name       { $$ = build_path(p, AST_PATH, @$, $2, "::"); }
    | path COLON2 segment_name  { $$ = build_path_add(p, $1, $3, @$); }
    | path COLON2 generic_args  { $$ = build_path_arguments(p, $1, $3, @$); }
    ;

inits: init                     { $$ = build(p, AST_STRUCT_LITERAL, @$, NONE(@1), $1, NULL); }
    | inits ',' init            { $$ = build_push(p, $1, $3, @$); }
    ;

init: IDENT                     { $$ = build_named(p, build(p, AST_FIELD_INIT, @$, NONE(@1), NULL), $1); }
    | IDENT ':' expr            { $$ = build_named(p, build(p, AST_FIELD_INIT, @$, $3, NULL), $1); }
    | DOT2 expr                 { $$ = build_operator(build(p, AST_FIELD_INIT, @$, $2, NULL), @1, ".."); }
    ;

if_rest: expr cond_block             { $$ = build(p, AST_IF, @$, $1, $2, NONE(@2), NULL); }
    | expr cond_block ELSE block     { $$ = build(p, AST_IF, @$, $1, $2, $4, NULL); }
    | expr cond_block ELSE else_if          { $$ = build(p, AST_IF, @$, $1, $2, $4, NULL); }
    ;

else_if: IF if_rest             { $$ = build_widen($2, @$); }
    | REFUSED                   { $$ = build_refused(p, @$, $1, @1, NONE(@1)); }
    ;

for_rest: pattern IN expr cond_block { $$ = build(p, AST_FOR, @$, $1, $3, $4, NULL); }
    ;

%%

/* Hands the names of what could stand here to parse_report (parse_report.c), which makes the message. Where the text was trusted these are not
 * known, and it is given up. */
static int yyreport_syntax_error(const yypcontext_t *context, struct parse_state *p)
{
    if (p->trusts) {
        p->doubts = true;
        return 2; /* as where there is no memory */
    }
    yysymbol_kind_t kinds[YYNTOKENS];
    const char *names[YYNTOKENS];
    int count = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    for (int i = 0; i < count; i++)
        names[i] = yysymbol_name(kinds[i]);
    parse_report(p, *yypcontext_location(context), names, count > 0 ? count : 0);
    return 0;
}

/* Called where the text is given up, and where the parser's stack is full. */
static void visa_parse_error(const src_range *at, struct parse_state *p, const char *message)
{
    (void)message;
    if (!p->doubts)
        parse_report_depth(p, *at);
}
