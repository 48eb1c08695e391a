/* The tree in the input language (ast_text). Round brackets are put where the grammar needs them and nowhere
 * else. */
#include <inttypes.h>
#include <string.h>

#include "frontend/ast.h"
#include "support/strbuf.h"

typedef struct printer {
    strbuf *out;
    int indent;
    bool condition; /* inside the head of an if or for, where a struct literal needs brackets */
} printer;

static void print(printer *w, const ast *node);

static void put(printer *w, const char *text)
{
    strbuf_puts(w->out, text);
}

/* What may be left out, with what stands in front of it. */
static void print_given(printer *w, const char *in_front, const ast *node)
{
    if (node->kind == AST_NONE)
        return;
    put(w, in_front);
    print(w, node);
}

static void new_line(printer *w)
{
    strbuf_printf(w->out, "\n%*s", 4 * w->indent, "");
}

static void print_list(printer *w, const ast *node, uint32_t first, const char *separator)
{
    for (uint32_t i = first; i < node->kid_count; i++) {
        if (i > first)
            put(w, separator);
        print(w, node->kids[i]);
    }
}

static void print_enclosed(printer *w, const char *open, const ast *node, uint32_t first, const char *close)
{
    put(w, open);
    print_list(w, node, first, ", ");
    put(w, close);
}

/* ---- Expressions ---- */

/* How tightly an expression binds; the grammar's levels. */
enum level { LOOSE, RANGE, OR, AND, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, CAST, PREFIX, POSTFIX, PRIMARY };

static enum level binary_level(const char *op)
{
    static const struct {
        const char *op;
        enum level level;
    } rows[] = {{"||", OR},    {"&&", AND}, {"|", BIT_OR}, {"^", BIT_XOR}, {"&", BIT_AND}, {"<<", SHIFT},
                {">>", SHIFT}, {"+", SUM},  {"-", SUM},    {"*", PRODUCT}, {"/", PRODUCT}, {"%", PRODUCT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op, op) == 0)
            return rows[i].level;
    return COMPARE;
}

static bool is_block_like(const ast *node)
{
    return node->kind == AST_IF || node->kind == AST_FOR || node->kind == AST_UNSAFE || node->kind == AST_CONST_BLOCK ||
           node->kind == AST_BLOCK || node->kind == AST_WHILE || node->kind == AST_MATCH || node->kind == AST_UNSUPPORTED ||
           node->kind == AST_MACRO;
}

static enum level level_of(const ast *node)
{
    switch (node->kind) {
    case AST_ASSIGN:
    case AST_UNSUPPORTED: /* a closure reaches as far as it can */ return LOOSE;
    case AST_RANGE: return RANGE;
    case AST_BINARY: return binary_level(node->text);
    case AST_CAST: return CAST;
    case AST_UNARY:
    case AST_DEREF:
    case AST_BORROW: return PREFIX;
    case AST_FIELD:
    case AST_METHOD:
    case AST_CALL:
    case AST_INDEX:
    case AST_AWAIT:
    case AST_TRY: return POSTFIX;
    default: return PRIMARY;
    }
}

static void print_in_brackets(printer *w, const ast *node)
{
    put(w, "(");
    print(w, node);
    put(w, ")");
}

/* An operand that must bind at least that tightly. Blocks get brackets, since at the start of a statement
 * they would end it. */
static void print_operand(printer *w, const ast *node, enum level least)
{
    if (level_of(node) < least || is_block_like(node))
        print_in_brackets(w, node);
    else
        print(w, node);
}

static void print_binary(printer *w, const ast *node)
{
    enum level level = binary_level(node->text);
    print_operand(w, node->kids[0], level);
    strbuf_printf(w->out, " %s ", node->text);
    print_operand(w, node->kids[1], (enum level)(level + 1));
}

static void print_range(printer *w, const ast *node)
{
    if (node->kids[0]->kind != AST_NONE)
        print_operand(w, node->kids[0], OR);
    put(w, node->text);
    if (node->kids[1]->kind != AST_NONE)
        print_operand(w, node->kids[1], OR);
}

static void print_assign(printer *w, const ast *node)
{
    print_operand(w, node->kids[0], RANGE);
    strbuf_printf(w->out, " %s ", node->text);
    print(w, node->kids[1]);
}

static void print_prefix(printer *w, const char *op, const ast *node)
{
    put(w, op);
    print_operand(w, node->kids[0], PREFIX);
}

/* The digits of `(1).0` would otherwise become a float. */
static void print_receiver(printer *w, const ast *node)
{
    if (node->kind == AST_INT)
        print_in_brackets(w, node);
    else
        print_operand(w, node, POSTFIX);
}

static void print_method(printer *w, const ast *node)
{
    print_receiver(w, node->kids[0]);
    strbuf_printf(w->out, ".%s", node->text);
    print_given(w, "::", node->kids[1]);
    print_enclosed(w, "(", node->kids[2], 0, ")");
}

static void print_postfix(printer *w, const ast *node)
{
    const ast *operand = node->kids[0];
    if (node->kind == AST_CALL && operand->kind == AST_FIELD)
        print_in_brackets(w, operand);
    else
        print_receiver(w, operand);
    switch (node->kind) {
    case AST_FIELD: strbuf_printf(w->out, ".%s", node->text); break;
    case AST_CALL: print_enclosed(w, "(", node->kids[1], 0, ")"); break;
    case AST_INDEX: print_enclosed(w, "[", node, 1, "]"); break;
    default: put(w, node->kind == AST_AWAIT ? ".await" : "?");
    }
}

static void print_struct_literal(printer *w, const ast *node)
{
    put(w, w->condition ? "(" : "");
    print(w, node->kids[0]);
    print_enclosed(w, " { ", node, 1, " }");
    put(w, w->condition ? ")" : "");
}

static void print_field_init(printer *w, const ast *node)
{
    put(w, node->text);
    print_given(w, node->text[0] == '.' ? "" : ": ", node->kids[0]);
}

static void print_tuple(printer *w, const ast *node)
{
    print_enclosed(w, "(", node, 0, node->kid_count == 1 ? ",)" : ")");
}

/* ---- Blocks and statements ---- */

static void print_label(printer *w, const ast *node)
{
    if (node->text[0] != '\0')
        strbuf_printf(w->out, "%s: ", node->text);
}

static void print_block(printer *w, const ast *node)
{
    if (node->kind != AST_BLOCK) { /* an AST_ERROR */
        put(w, "{}");
        return;
    }
    bool condition = w->condition;
    w->condition = false;
    print_label(w, node);
    put(w, "{");
    w->indent++;
    for (uint32_t i = 0; i < node->kid_count; i++) {
        new_line(w);
        print(w, node->kids[i]);
    }
    w->indent--;
    new_line(w);
    put(w, "}");
    w->condition = condition;
}

static void print_head(printer *w, const ast *node)
{
    bool outer = w->condition;
    w->condition = true;
    /* A block at its end would be taken for the body. */
    if (is_block_like(node))
        print_in_brackets(w, node);
    else
        print(w, node);
    w->condition = outer;
}

static void print_if(printer *w, const ast *node)
{
    put(w, "if ");
    print_head(w, node->kids[0]);
    put(w, " ");
    print_block(w, node->kids[1]);
    print_given(w, " else ", node->kids[2]);
}

static void print_for(printer *w, const ast *node)
{
    put(w, node->value ? "#[unroll] " : "");
    print_label(w, node);
    put(w, "for ");
    print(w, node->kids[0]);
    put(w, " in ");
    print_head(w, node->kids[1]);
    put(w, " ");
    print_block(w, node->kids[2]);
}

static void print_while(printer *w, const ast *node)
{
    print_label(w, node);
    put(w, node->kids[0]->kind == AST_NONE ? "loop " : "while ");
    if (node->kids[0]->kind != AST_NONE) {
        print_head(w, node->kids[0]);
        put(w, " ");
    }
    print_block(w, node->kids[1]);
}

static void print_match(printer *w, const ast *node)
{
    put(w, "match ");
    print_head(w, node->kids[0]);
    print_enclosed(w, " { ", node, 1, " }");
}

static void print_arm(printer *w, const ast *node)
{
    print_list(w, node->kids[0], 0, " | ");
    print_given(w, " if ", node->kids[1]);
    put(w, " => ");
    print(w, node->kids[2]);
}

/* Would the expression end a statement by itself, without the `;` that follows it? */
static bool ends_statement(const ast *node)
{
    if (node->kind == AST_MACRO)
        return node->kids[0]->text[0] == '{';
    if (node->kind == AST_UNSUPPORTED)
        return strcmp(node->text, "match") == 0 || strcmp(node->text, "while") == 0 || strcmp(node->text, "loop") == 0;
    return is_block_like(node);
}

static void print_expression_statement(printer *w, const ast *node)
{
    if (node->text[0] != '\0' && ends_statement(node->kids[0]))
        print_in_brackets(w, node->kids[0]);
    else
        print(w, node->kids[0]);
    put(w, node->text);
}

static void print_let(printer *w, const ast *node)
{
    put(w, "let ");
    print(w, node->kids[0]);
    print_given(w, ": ", node->kids[1]);
    print_given(w, " = ", node->kids[2]);
    if (node->kid_count > 3) {
        put(w, " else ");
        print_block(w, node->kids[3]);
    }
    put(w, ";");
}

/* ---- Items ---- */

static void print_attribute(printer *w, const ast *node)
{
    strbuf_printf(w->out, "#%s[%s%s]", node->value ? "!" : "", node->text, node->kids[0]->text);
}

static void print_attributes(printer *w, const ast *list)
{
    for (uint32_t i = 0; i < list->kid_count; i++) {
        print(w, list->kids[i]);
        new_line(w);
    }
}

static void print_generics(printer *w, const ast *node)
{
    if (node->kind == AST_GENERICS)
        print_enclosed(w, "<", node, 0, ">");
}

static void print_fn(printer *w, const ast *node)
{
    put(w, node->value & AST_FN_CONST ? "const " : "");
    put(w, node->value & AST_FN_ASYNC ? "async " : "");
    put(w, node->value & AST_FN_UNSAFE ? "unsafe " : "");
    strbuf_printf(w->out, "fn %s", node->text);
    print_generics(w, node->kids[1]);
    print_enclosed(w, "(", node->kids[2], 0, ")");
    print_given(w, " -> ", node->kids[3]);
    if (node->kids[4]->kind == AST_NONE) {
        put(w, ";");
    } else {
        put(w, " ");
        print_block(w, node->kids[4]);
    }
}

static void print_param(printer *w, const ast *node)
{
    for (uint32_t i = 0; i < node->kids[0]->kid_count; i++) {
        print(w, node->kids[0]->kids[i]);
        put(w, " ");
    }
    print(w, node->kids[1]);
    put(w, ": ");
    print(w, node->kids[2]);
}

static void print_use_tree(printer *w, const ast *node)
{
    if (node->kids[0]->kind != AST_NONE) {
        print(w, node->kids[0]);
        put(w, node->kind == AST_USE_GLOB || node->kind == AST_USE_GROUP ? "::" : "");
    }
    if (node->kind == AST_USE_GLOB)
        put(w, "*");
    else if (node->kind == AST_USE_RENAME)
        strbuf_printf(w->out, " as %s", node->text);
    else if (node->kind == AST_USE_GROUP)
        print_enclosed(w, "{", node, 1, "}");
}

static void print_mod(printer *w, const ast *node)
{
    strbuf_printf(w->out, "mod %s", node->text);
    put(w, node->kids[1]->kind == AST_NONE ? ";" : " ");
    if (node->kids[1]->kind != AST_NONE)
        print_block(w, node->kids[1]);
}

static void print_extern_crate(printer *w, const ast *node)
{
    strbuf_printf(w->out, "extern crate %s", node->text);
    if (node->kids[1]->kind != AST_NONE)
        strbuf_printf(w->out, " as %s", node->kids[1]->text);
    put(w, ";");
}

static void print_item(printer *w, const ast *node)
{
    print_attributes(w, node->kids[0]);
    switch (node->kind) {
    case AST_AXES: print_enclosed(w, "axes![", node, 1, "];"); break;
    case AST_TYPE_ALIAS:
        strbuf_printf(w->out, "type %s", node->text);
        print_generics(w, node->kids[1]);
        print_enclosed(w, " = ", node, 2, ";");
        break;
    case AST_CONST:
        strbuf_printf(w->out, "const %s: ", node->text);
        print(w, node->kids[1]);
        print_enclosed(w, " = ", node, 2, ";");
        break;
    case AST_USE: print_enclosed(w, "use ", node, 1, ";"); break;
    case AST_EXTERN_CRATE: print_extern_crate(w, node); break;
    case AST_MOD: print_mod(w, node); break;
    case AST_FN: print_fn(w, node); break;
    default: /* AST_ITEM_IGNORED */ print(w, node->kids[1]);
    }
}

static void print_generic_parameter(printer *w, const ast *node)
{
    put(w, node->kind == AST_GENERIC_CONST ? "const " : "");
    put(w, node->text);
    if (node->kid_count > 0 && node->kids[0]->kind != AST_NONE) {
        put(w, ": ");
        if (node->kids[0]->kind == AST_LIST)
            print_list(w, node->kids[0], 0, " + ");
        else
            print(w, node->kids[0]);
    }
    print_enclosed(w, node->kid_count > 2 ? " = " : "", node, 2, "");
}

/* ---- Paths, types, patterns ---- */

static void print_path(printer *w, const ast *node)
{
    put(w, node->text);
    for (uint32_t i = 0; i < node->kid_count; i++) {
        const ast *segment = node->kids[i];
        put(w, i > 0 ? "::" : "");
        put(w, segment->text);
        print_given(w, node->kind == AST_PATH ? "::" : "", segment->kids[0]);
    }
}

static void print_qualified(printer *w, const ast *node)
{
    put(w, "<");
    print(w, node->kids[0]);
    print_given(w, " as ", node->kids[1]);
    strbuf_printf(w->out, ">::%s%s", node->text, node->kid_count > 2 ? "::" : "");
    print_list(w, node, 2, "");
}

static void print_array_type(printer *w, const ast *node)
{
    put(w, "[");
    print(w, node->kids[0]);
    print_given(w, "; ", node->kids[1]);
    put(w, "]");
}

/* ---- Mappings ---- */

static void print_map_operand(printer *w, const ast *node)
{
    bool list = node->kind == AST_MAP_PAIR;
    put(w, list ? "[" : "");
    print(w, node);
    put(w, list ? "]" : "");
}

static void print_map_list(printer *w, const ast *node)
{
    for (uint32_t i = 0; i < node->kid_count; i++) {
        put(w, i > 0 ? ", " : "");
        print_map_operand(w, node->kids[i]);
    }
    put(w, node->text);
}

static void print_map_window(printer *w, const ast *node)
{
    put(w, "$(");
    for (uint32_t i = 0; i < node->kid_count; i++) {
        put(w, i == 0 ? "" : node->kids[i]->kind == AST_MAP_PLACES ? " | " : ", ");
        print_map_operand(w, node->kids[i]);
    }
    put(w, ")");
}

static void print_map_operator(printer *w, const ast *node)
{
    print_map_operand(w, node->kids[0]);
    put(w, node->kind == AST_MAP_DIV      ? " / "
           : node->kind == AST_MAP_MOD    ? " % "
           : node->kind == AST_MAP_RESIZE ? " = "
           : node->kind == AST_MAP_SLIDE  ? ":"
                                          : " #");
    if (node->text[0] != '\0')
        strbuf_printf(w->out, "{%s}", node->text);
    put(w, node->kind == AST_MAP_PAD ? " " : "");
    if (node->kids[1]->kind == AST_NONE)
        strbuf_printf(w->out, "%" PRId64, node->value);
    else if (node->kids[1]->kind == AST_MAP_AXIS)
        print(w, node->kids[1]);
    else if (node->kids[1]->kind >= AST_MAP && node->kids[1]->kind <= AST_MAP_ESCAPE)
        print_enclosed(w, "(", node, 1, ")");
    else
        print_enclosed(w, "{", node, 1, "}");
}

static void print(printer *w, const ast *node)
{
    switch (node->kind) {
    case AST_NONE:
    case AST_KIND_COUNT: break;
    case AST_ERROR: put(w, "/* error */"); break;
    case AST_RAW:
    case AST_NAME:
    case AST_LIFETIME:
    case AST_INT:
    case AST_FLOAT:
    case AST_STRING:
    case AST_MAP_AXIS: put(w, node->text); break;
    case AST_LIST: print_list(w, node, 0, ", "); break;
    case AST_FILE:
        print_list(w, node, 0, "\n");
        put(w, node->kid_count > 0 ? "\n" : "");
        break;
    case AST_ATTR: print_attribute(w, node); break;
    case AST_ATTR_ARG:
        put(w, node->text);
        print_enclosed(w, node->kids[0]->kind == AST_NONE ? "" : " = ", node, 0, "");
        break;
    case AST_AXES:
    case AST_TYPE_ALIAS:
    case AST_CONST:
    case AST_USE:
    case AST_EXTERN_CRATE:
    case AST_MOD:
    case AST_FN:
    case AST_STRUCT:
    case AST_ITEM_IGNORED: print_item(w, node); break;
    case AST_AXIS:
        strbuf_printf(w->out, "%s = ", node->text);
        print(w, node->kids[0]);
        break;
    case AST_USE_NAME:
    case AST_USE_GLOB:
    case AST_USE_RENAME:
    case AST_USE_GROUP: print_use_tree(w, node); break;
    case AST_PARAM: print_param(w, node); break;
    case AST_GENERICS: print_generics(w, node); break;
    case AST_GENERIC_LIFETIME:
    case AST_GENERIC_CONST:
    case AST_GENERIC_TYPE: print_generic_parameter(w, node); break;
    case AST_GENERIC_ARGS: print_enclosed(w, "<", node, 0, ">"); break;
    case AST_CONST_ARG: print_enclosed(w, "{ ", node, 0, " }"); break;
    case AST_TYPE_PATH:
    case AST_PATH: print_path(w, node); break;
    case AST_SEGMENT:
        put(w, node->text);
        print(w, node->kids[0]);
        break;
    case AST_TYPE_REF:
        put(w, node->text[0] != '\0' ? "&mut " : "&");
        print(w, node->kids[0]);
        break;
    case AST_TYPE_TUPLE:
    case AST_PAT_TUPLE:
    case AST_TUPLE: print_tuple(w, node); break;
    case AST_TYPE_ARRAY: print_array_type(w, node); break;
    case AST_TYPE_INFER:
    case AST_PAT_WILD: put(w, "_"); break;
    case AST_TYPE_QUALIFIED: print_qualified(w, node); break;
    case AST_MAP: print_enclosed(w, "m![", node, 0, "]"); break;
    case AST_MAP_NUMBER: strbuf_printf(w->out, "%" PRId64, node->value); break;
    case AST_MAP_PAIR: print_map_list(w, node); break;
    case AST_MAP_DIV:
    case AST_MAP_MOD:
    case AST_MAP_RESIZE:
    case AST_MAP_PAD:
    case AST_MAP_SLIDE: print_map_operator(w, node); break;
    case AST_MAP_WINDOW: print_map_window(w, node); break;
    case AST_MAP_PLACES:
        print(w, node->kids[0]);
        put(w, "..");
        print(w, node->kids[1]);
        break;
    case AST_MAP_ESCAPE: print_enclosed(w, "{", node, 0, "}"); break;
    case AST_PAT_NAME:
        strbuf_printf(w->out, "%s%s%s", node->value ? "mut " : "", node->text, node->kid_count ? " @ " : "");
        print_list(w, node, 0, "");
        break;
    case AST_PAT_REST: put(w, ".."); break;
    case AST_PAT_STRUCT:
        print(w, node->kids[0]);
        print_enclosed(w, " { ", node, 1, " }");
        break;
    case AST_PAT_FIELD:
        strbuf_printf(w->out, "%s: ", node->text);
        print(w, node->kids[0]);
        break;
    case AST_PAT_TUPLE_STRUCT:
        print(w, node->kids[0]);
        print_enclosed(w, "(", node, 1, ")");
        break;
    case AST_PAT_ARRAY: print_enclosed(w, "[", node, 0, "]"); break;
    case AST_PAT_REF:
        put(w, "&");
        print(w, node->kids[0]);
        break;
    case AST_PAT_OR: print_list(w, node, 0, " | "); break;
    case AST_PAT_VALUE: print(w, node->kids[0]); break;
    case AST_LET: print_let(w, node); break;
    case AST_CFG:
        strbuf_printf(w->out, "#[cfg%s]", node->text);
        new_line(w);
        print(w, node->kids[0]);
        break;
    case AST_AFTER:
        strbuf_printf(w->out, "#[after(%s)]", node->text);
        new_line(w);
        print(w, node->kids[0]);
        break;
    case AST_EXPR_STMT: print_expression_statement(w, node); break;
    case AST_BOOL: put(w, node->value ? "true" : "false"); break;
    case AST_UNARY: print_prefix(w, node->text, node); break;
    case AST_DEREF: print_prefix(w, "*", node); break;
    case AST_BORROW: print_prefix(w, node->text[0] != '\0' ? "&mut " : "&", node); break;
    case AST_BINARY: print_binary(w, node); break;
    case AST_ASSIGN: print_assign(w, node); break;
    case AST_RANGE: print_range(w, node); break;
    case AST_CAST:
        print_operand(w, node->kids[0], CAST);
        put(w, " as ");
        print(w, node->kids[1]);
        break;
    case AST_ARRAY: print_enclosed(w, "[", node, 0, "]"); break;
    case AST_ARRAY_REPEAT:
        put(w, "[");
        print_list(w, node, 0, "; ");
        put(w, "]");
        break;
    case AST_METHOD: print_method(w, node); break;
    case AST_FIELD:
    case AST_CALL:
    case AST_INDEX:
    case AST_AWAIT:
    case AST_TRY: print_postfix(w, node); break;
    case AST_STRUCT_LITERAL: print_struct_literal(w, node); break;
    case AST_FIELD_INIT: print_field_init(w, node); break;
    case AST_BLOCK: print_block(w, node); break;
    case AST_UNSAFE:
        put(w, "unsafe ");
        print_block(w, node->kids[0]);
        break;
    case AST_CONST_BLOCK:
        put(w, "const ");
        print_block(w, node->kids[0]);
        break;
    case AST_IF: print_if(w, node); break;
    case AST_FOR: print_for(w, node); break;
    case AST_WHILE: print_while(w, node); break;
    case AST_MATCH: print_match(w, node); break;
    case AST_ARM: print_arm(w, node); break;
    case AST_TYPE_OPAQUE: print(w, node->kids[0]); break;
    case AST_TYPE_MACRO:
    case AST_MACRO: strbuf_printf(w->out, "%s!%s", node->text, node->kids[0]->text); break;
    case AST_UNSUPPORTED: print_list(w, node, 0, node->kids[1]->kind != AST_NONE ? " " : ""); break;
    }
}

const char *ast_text(const ast *node, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    printer w = {.out = &out};
    print(&w, node);
    return out.text;
}
