/* Syntax errors in the user's words. */
#include <string.h>

#include "frontend/parse_state.h"
#include "support/budget.h"
#include "support/order.h"

/* Is the syntax error at the token returned last a consequence of what the scanner found? It is when there is
 * a fault between the last complete statement and the end of the token. */
static bool follows_from_fault(const parse_state *p, src_range at)
{
    /* Inside a bracket whose end had to be supplied nothing is certain. */
    for (uint32_t open = token_at(p, p->current)->parent; open != TOKEN_NONE; open = token_at(p, open)->parent) {
        if (token_at(p, open)->kind == '{')
            break;
        if (token_at(p, token_at(p, open)->match)->flags & TOKEN_SUPPLIED)
            return true;
    }
    const token_list *l = &p->tokens;
    uint32_t end = token_at(p, p->current)->kind ? at.end : UINT32_MAX;
    size_t low;
    ORDER_FIRST(&low, l->fault_count, i, l->faults[i] < p->statement_begin);
    return low < l->fault_count && l->faults[low] <= end;
}

diag *parse_error(parse_state *p, diag_id id, src_range at, const char *message)
{
    if (p->error_count++ < SYNTAX_ERRORS_MAX)
        return diag_add(p->diags, id, at, "%s", message);
    if (!p->given_up)
        diag_add(p->diags, E_PARSE, at, "too many errors: the rest of the file is not read");
    p->given_up = true;
    return NULL;
}

void parse_report_depth(parse_state *p, src_range at)
{
    if (p->depth_reported)
        return;
    p->depth_reported = true;
    diag *d = diag_add(p->diags, E_NESTING, at, "expressions are nested more than %d levels deep", NESTING_MAX);
    diag_help(p->diags, d, "name a part of it with `let` or `type`");
}

/* A set of expected tokens by name, from which groups are taken out one after the other. */
typedef struct expectation {
    const char **names;
    int count;
    const char *phrases[4]; /* what the groups are called */
    int phrase_count;
} expectation;

static bool expects(const expectation *e, const char *name)
{
    for (int i = 0; i < e->count; i++)
        if (strcmp(e->names[i], name) == 0)
            return true;
    return false;
}

static void forget(expectation *e, const char *const *group)
{
    int kept = 0;
    for (int i = 0; i < e->count; i++) {
        const char *const *g = group;
        while (*g != NULL && strcmp(*g, e->names[i]) != 0)
            g++;
        if (*g == NULL)
            e->names[kept++] = e->names[i];
    }
    e->count = kept;
}

static const char *const statement_words[] = {"let",
                                              "fn",
                                              "use",
                                              "type",
                                              "const",
                                              "mod",
                                              "pub",
                                              "extern",
                                              "async",
                                              "axes![",
                                              "an attribute",
                                              "an inner attribute",
                                              "an item",
                                              "`if`",
                                              "`for`",
                                              "`unsafe`",
                                              "`const`",
                                              "`{`",
                                              "a block statement",
                                              "a macro",
                                              "';'",
                                              "a mapping alone",
                                              NULL};
static const char *const expression_words[] = {"a name",
                                               "an integer",
                                               "a float",
                                               "a string",
                                               "a character literal",
                                               "true",
                                               "false",
                                               "'('",
                                               "'['",
                                               "'{'",
                                               "'-'",
                                               "'!'",
                                               "'*'",
                                               "'&'",
                                               "&&",
                                               "'|'",
                                               "||",
                                               "'<'",
                                               "<<",
                                               "..",
                                               "::",
                                               "crate",
                                               "super",
                                               "self",
                                               "Self",
                                               "m![",
                                               "if",
                                               "for",
                                               "unsafe",
                                               "const",
                                               "return",
                                               "break",
                                               "continue",
                                               "move",
                                               "a macro call",
                                               "a block expression",
                                               NULL};
static const char *const type_words[] = {"a name", "'('",   "'['",   "'&'",  "&&",   "'<'", "<<",           "_",
                                         "::",     "crate", "super", "self", "Self", "m![", "a macro call", "`impl`, `dyn` or `fn`",
                                         NULL};
static const char *const argument_words[] = {"a lifetime", "an integer", "'-'", "true", "false", "'{'", NULL};
static const char *const pattern_words[] = {"a name", "mut", "_", "'('", "'['", "'&'", "&&", NULL};
static const char *const pattern_tail_words[] = {"'@'", "'('", "'{'", "::", NULL};
static const char *const operator_words[] = {"'+'", "'-'", "'*'", "'/'",
                                             "'%'", "'&'", "'|'", "'^'",
                                             "'<'", "'>'", "<<",  ">>",
                                             ">=",  "&&",  "||",  "==",
                                             "!=",  "<=",  "'='", "an assignment operator",
                                             "..",  "..=", "as",  "'.'",
                                             "'?'", "'('", "'['", "a tuple index",
                                             "::",  "'{'", NULL};
static const char *const map_operator_words[] = {"'/'", "'%'", "'='", "'#'", "#{!}", NULL};
static const char *const map_atom_words[] = {"a name", "an integer", "'('", "'['", "'{'", "'$'", NULL};
static const char *const size_words[] = {"'{'", "'('", NULL};
static const char *const root_words[] = {"crate", "super", "self", "Self", NULL};
static const char *const path_words[] = {"::", "'<'", "<<", NULL};
static const char *const angle_words[] = {">>", ">=", NULL};
/* What may stand in front of a name or behind a value, and is hardly ever what is missing. */
static const char *const rare_words[] = {"an attribute", "`else`", NULL};

static void take_group(expectation *e, const char *phrase, const char *const *group)
{
    forget(e, group);
    if (phrase != NULL && e->phrase_count < 4)
        e->phrases[e->phrase_count++] = phrase;
}

/* A comma is what people forget most. */
static void put_comma_first(expectation *e)
{
    for (int i = 1; i < e->count; i++)
        if (strcmp(e->names[i], "','") == 0) {
            e->names[i] = e->names[0];
            e->names[0] = "','";
        }
}

/* Replaces the many words that can begin the same thing by the name of that thing. */
static void group_expectations(expectation *e, bool in_map)
{
    if (expects(e, "let"))
        take_group(e, "a statement", statement_words);
    if (expects(e, "a float"))
        take_group(e, e->phrase_count == 0 ? "an expression" : NULL, expression_words);
    if (expects(e, "as") && expects(e, "'+'"))
        take_group(e, NULL, operator_words);
    if (in_map && expects(e, "'#'"))
        take_group(e, NULL, map_operator_words);
    if (in_map && expects(e, "'['"))
        take_group(e, "a mapping", map_atom_words);
    if (in_map && expects(e, "an integer"))
        forget(e, size_words);
    if (expects(e, "a lifetime") && expects(e, "m!["))
        take_group(e, NULL, argument_words);
    if (expects(e, "m!["))
        take_group(e, "a type", type_words);
    if (expects(e, "'@'")) /* after a name that binds */
        take_group(e, NULL, pattern_tail_words);
    if (expects(e, "mut") && expects(e, "_")) {
        take_group(e, "a pattern", pattern_words);
        if (e->count > 0 && expects(e, ".."))
            forget(e, (const char *const[]){"..", NULL});
    }
    if (e->count > 1 && !expects(e, "let"))
        forget(e, rare_words);
    if (expects(e, "super"))
        forget(e, root_words);
    if (e->count > 1 && expects(e, "::"))
        forget(e, path_words);
    if (expects(e, "'>'"))
        forget(e, angle_words);
    put_comma_first(e);
}

/* The spelling of a token's name: 'x' and words in backquotes, descriptions as they are. */
static const char *expected_text(const parse_state *p, const char *name)
{
    if (name[0] == '\'')
        return arena_printf(p->arena, "`%.*s`", (int)strlen(name) - 2, name + 1);
    if (strchr(name, ' ') != NULL || name[0] == '`')
        return name;
    if (strcmp(name, "]") == 0) { /* the end of m![..] or axes![..], which may be written with other brackets */
        uint32_t parent = token_at(p, p->current)->parent;
        const token *t = token_at(p, p->current);
        uint32_t open = t->kind == T_MACRO_CLOSE ? t->match : parent;
        return arena_printf(p->arena, "`%c`", open != TOKEN_NONE ? token_closer(token_at(p, open)) : ']');
    }
    return arena_printf(p->arena, "`%s`", name);
}

/* "expected `,` or `]`, " or nothing when too many things could stand there. */
static const char *expected_list(parse_state *p, expectation *e)
{
    int total = e->phrase_count + e->count;
    if (total == 0 || total > LISTED_MAX)
        return "";
    const char *text = "expected ";
    for (int i = 0; i < total; i++) {
        const char *item = i < e->phrase_count ? e->phrases[i] : expected_text(p, e->names[i - e->phrase_count]);
        text = arena_printf(p->arena, "%s%s%s", text, i == 0 ? "" : i + 1 < total ? ", " : " or ", item);
    }
    return arena_printf(p->arena, "%s, ", text);
}

static const char *found_text(const parse_state *p, src_range at)
{
    const token *t = token_at(p, p->current);
    if (t->kind == 0 || (t->kind == T_MACRO_CLOSE && t->begin == t->end)) /* of a mapping that stands alone */
        return t->kind == 0 ? "the end of the file" : "the end of the mapping";
    if (at.end - at.begin > t->end - t->begin)
        return t->kind == '#' ? "an attribute" : arena_printf(p->arena, "`%.*s ..`", (int)(t->end - t->begin), p->source + t->begin);
    if (t->end - t->begin > SHOWN_WORD_MAX)
        return t->kind == T_STRING ? "a string" : "a long name";
    return arena_printf(p->arena, "`%.*s`", (int)(t->end - t->begin), p->source + t->begin);
}

/* Messages for what people write in mappings because the documents do. */
static const struct map_habit {
    int kind;
    const char *message, *help;
} map_habits[] = {
    {'*', "mappings are not multiplied", "list the axes, outermost first: m![A, B]"},
    {'@', "a mapping has no address", "the address is an argument of the method that stores the tensor"},
    {T_DOT3, "`...` is no mapping", "write the whole mapping"},
    {T_DOT2, "`..` is no mapping", "write the whole mapping; a part of an axis is `A / n` or `A % n`"},
    {':', "a mapping has no sizes", "sizes are declared once, with axes![A = 8]; a mapping names the axis alone"},
    {'+', "mappings are not added", "list the axes, outermost first: m![A, B]"},
    {'-', "mappings are not subtracted", "`A = n` takes the first n elements of A"},
};

static diag *report_map_habit(parse_state *p, src_range at)
{
    const token *t = token_at(p, p->current);
    for (size_t i = 0; i < sizeof map_habits / sizeof *map_habits; i++)
        if (map_habits[i].kind == t->kind) {
            diag *d = parse_error(p, E_MAP_SYNTAX, at, map_habits[i].message);
            if (d != NULL)
                diag_help(p->diags, d, "%s", map_habits[i].help);
            return d;
        }
    return NULL;
}

static const char mapping_help[] = "a mapping is written m![..]";

/* The method or function in front of a `<` that was meant to open its type arguments; NULL: there is none. Types are upper-case. */
static const token *compared_by_mistake(const parse_state *p)
{
    uint32_t parent = token_at(p, p->current)->parent;
    for (uint32_t i = p->current; i-- > 1 && i != parent;) {
        const token *t = token_at(p, i), *name = token_at(p, i - 1);
        if (t->parent == parent && (t->kind == ';' || t->kind == '='))
            return NULL;
        if (t->parent == parent && t->kind == '<')
            return name->kind == T_IDENT && p->source[name->begin] >= 'a' && p->source[name->begin] <= 'z' ? name : NULL;
    }
    return NULL;
}

/* Ends an argument in `<..>`. */
static bool ends_argument(const parse_state *p, uint32_t i)
{
    int kind = kind_at(p, i, 0);
    return kind == ',' || kind == '>' || kind == T_GT_GT;
}

/* `Tile<f32, 2 * N, 4>`: the argument that goes on with an operator, in the braces that it needs. NULL: it is none, or has no end. */
static const char *in_braces(const parse_state *p)
{
    static const int operators[] = {'*', '+', '-', '/', '%'};
    bool is_operator = false;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        is_operator = is_operator || token_at(p, p->current)->kind == operators[i];
    uint32_t parent = token_at(p, p->current)->parent, i = p->current;
    if (!is_operator || i == 0 || token_at(p, i - 1)->parent != parent)
        return NULL;
    while (!ends_argument(p, i) && kind_at(p, i, 0) != 0 && kind_at(p, i, 0) != ';' && token_at(p, i)->parent == parent)
        i = token_at(p, i)->match != TOKEN_NONE && token_at(p, i)->match > i ? token_at(p, i)->match + 1 : i + 1;
    uint32_t begin = token_at(p, p->current - 1)->begin, end = token_at(p, i - 1)->end;
    if (!ends_argument(p, i) || end - begin > SHOWN_WORD_MAX)
        return "an argument that is calculated stands in braces: `{ .. }`";
    return arena_printf(p->arena, "an argument that is calculated stands in braces: `{ %.*s }`", (int)(end - begin), p->source + begin);
}

/* The next step, where one is likely. */
static const char *syntax_help(const parse_state *p)
{
    const token *compared;
    switch (token_at(p, p->current)->kind) {
    case T_DOT3: return "`...` stands for something that was left out: write it";
    case T_CHAR: return "character literals are not part of the kernel language";
    case T_IMPL:
    case T_DYN: return "name the type: kernels have no traits";
    case T_LET:
        if (p->current > 0 && token_at(p, p->current - 1)->kind == T_IF)
            return "conditions are constants: `if let` is not part of the kernel language";
        break;
    case '.':
        if (p->current > 0 && token_at(p, p->current - 1)->kind == ';')
            return "the `;` in front of it ends the chain: remove it";
        break;
    case ':':
        if (token_at(p, p->current)->parent != TOKEN_NONE && token_at(p, token_at(p, p->current)->parent)->kind == T_AXES_OPEN)
            return "a size is written with `=`: axes![A = 8]";
        break;
    case ',':
        compared = compared_by_mistake(p);
        if (compared)
            return arena_printf(p->arena, "type arguments are written with `::`: %s::<..>(..)", token_text(p->source, compared, p->arena));
        break;
    case '[':
        if (p->current > 0 && token_is_word(p->source, token_at(p, p->current - 1), "m"))
            return mapping_help;
        break;
    case T_IDENT:
        if (p->current > 0 && token_is_word(p->source, token_at(p, p->current - 1), "def") && kind_at(p, p->current, 1) == '(')
            return "a function begins with `fn`";
        if (token_is_word(p->source, token_at(p, p->current), "M") && kind_at(p, p->current, 1) == '!')
            return mapping_help;
        break;
    default: break;
    }
    return NULL;
}

/* An `if`, `for`, .. whose block is missed: it may have begun some lines above, in front of blocks that were taken for others. */
static void note_head(parse_state *p, diag *d)
{
    const token *found = token_at(p, p->current);
    uint32_t around = found->match != TOKEN_NONE && found->match < p->current ? found->match : found->parent;
    for (uint32_t i = p->current; i-- > 0 && i != around;) {
        const token *t = token_at(p, i);
        if (t->parent != around)
            continue;
        if (t->kind == ';')
            return;
        bool head = t->kind == T_IF || t->kind == T_FOR || t->kind == T_WHILE || t->kind == T_MATCH;
        if (head && t->match == TOKEN_NONE) {
            diag_note(p->diags, d, (src_range){p->file, t->begin, t->end}, "this `%.*s` has no block", (int)(t->end - t->begin),
                      p->source + t->begin);
            return;
        }
    }
}

static void report_syntax(parse_state *p, src_range at, expectation *e)
{
    bool in_map = token_at(p, p->current)->flags & TOKEN_IN_MAP;
    bool block = expects(e, "{"), argument = expects(e, "'>'") && expects(e, "','") && !expects(e, "as");
    if (in_map && p->error_count < SYNTAX_ERRORS_MAX && report_map_habit(p, at) != NULL)
        return;
    group_expectations(e, in_map);
    bool separates = expects(e, "';'") || expects(e, "','");
    const char *expected = expected_list(p, e), *found = found_text(p, at);
    const char *message = arena_printf(p->arena, expected[0] != '\0' ? "%sfound %s" : "%s%s does not fit here", expected, found);
    /* What ends a line is missing there, not in front of the next one. */
    if (separates && p->current > 0 && parse_first_on_line(p, p->current))
        at.begin = at.end = token_at(p, p->current - 1)->end;
    diag *d = parse_error(p, in_map ? E_MAP_SYNTAX : E_PARSE, at, message);
    const char *help = syntax_help(p);
    if (help == NULL && argument)
        help = in_braces(p);
    if (d != NULL && block)
        note_head(p, d);
    if (d != NULL && help != NULL)
        diag_help(p->diags, d, "%s", help);
}

void parse_report(parse_state *p, src_range at, const char **expected, int expected_count)
{
    resumption next = parse_resume_after(p, p->current);
    if (!follows_from_fault(p, at)) {
        expectation e = {.names = expected, .count = expected_count};
        report_syntax(p, at, &e);
    }
    p->resync_to = next.index;
    p->resync = next.kind;
}
