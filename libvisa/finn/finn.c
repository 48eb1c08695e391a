#include "libvisa/finn/finn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/embed.h"

EMBED_FILE(finn_operator, "libvisa/finn/operator.py")

typedef struct writing {
    visa_compilation *compilation;
    strbuf *out;
    const char **names; /* of the classes so far */
    size_t count;
} writing;

/* ---- names and types ---- */

/* What means something else in the module that is written. */
static const char *const taken[] = {
    "False",  "None",      "True",     "DataflowOp", "DataType", "Fraction",  "HWCustomOp", "and", "as",        "assert",
    "async",  "await",     "break",    "class",      "continue", "custom_op", "def",        "del", "elif",      "else",
    "except", "finally",   "for",      "from",       "global",   "if",        "import",     "in",  "is",        "lambda",
    "math",   "nonlocal",  "not",      "or",         "pass",     "raise",     "return",     "try", "while",     "with",
    "yield",  "_ceil_div", "_cover",   "_spread",    "all",      "dict",      "enumerate",  "len", "list",      "max",
    "min",    "range",     "reversed", "sorted",     "sum",      "super",     "tuple",      "zip", "Exception", "NotImplementedError"};

static bool is_taken(const writing *w, const char *name)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(taken[i], name) == 0)
            return true;
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->names[i], name) == 0)
            return true;
    return false;
}

static const char *class_name(const writing *w, const char *item)
{
    const char *name = item;
    for (unsigned n = 2; is_taken(w, name); n++)
        name = arena_printf(w->compilation->arena, "%s_%u", item, n);
    return name;
}

/* The name that QONNX has for a type. */
static const char *qonnx_type(const dataflow_interface *i, arena *a)
{
    unsigned exponent, mantissa;
    if (strcmp(i->type, "bf16") == 0)
        return "FLOAT<8,7>";
    if (strcmp(i->type, "f32") == 0)
        return "FLOAT32";
    if (sscanf(i->type, "f%*ue%um%u", &exponent, &mantissa) == 2)
        return arena_printf(a, "FLOAT<%u,%u>", exponent, mantissa);
    return strcmp(i->type, "u1") == 0 ? "BINARY" : arena_printf(a, "%s%" PRId64, i->type[0] == 'i' ? "INT" : "UINT", i->bits);
}

/* ---- Python ---- */

static void put_string(const char *text, strbuf *out)
{
    strbuf_puts(out, "\"");
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            strbuf_printf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            strbuf_printf(out, "\\x%02x", (unsigned)*text);
        else
            strbuf_append(out, text, 1);
    strbuf_puts(out, "\"");
}

static void put_sizes(const int64_t *list, uint32_t rank, strbuf *out)
{
    for (uint32_t i = 0; i < rank; i++)
        strbuf_printf(out, "%s%" PRId64, i ? ", " : "[", list[i]);
    strbuf_puts(out, "]");
}

/* `("x", "z")` */
static void put_names(const dataflow_model *m, dataflow_kind kind, const char *list, strbuf *out)
{
    strbuf_printf(out, "    %s = (", list);
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (m->interfaces[i].kind != kind)
            continue;
        strbuf_puts(out, count++ ? ", " : "");
        put_string(m->interfaces[i].name, out);
    }
    strbuf_puts(out, count == 1 ? ",)\n" : ")\n");
}

/* "inputDataType" of the first of a kind, and "z_dataType" of those after it. */
static const char *type_attribute(const dataflow_model *m, const dataflow_interface *i, arena *a)
{
    static const char *const first[] = {"inputDataType", "weightDataType", "outputDataType"};
    for (size_t k = 0; &m->interfaces[k] != i; k++)
        if (m->interfaces[k].kind == i->kind)
            return arena_printf(a, "%s_dataType", i->name);
    return first[i->kind];
}

/* Is only one number to be chosen among all inputs (or weights), in which dimension of this one? -1: no, or of another one. */
static int only_dimension(const dataflow_model *m, const dataflow_interface *of)
{
    int dimension = -1, count = 0;
    for (size_t k = 0; k < m->count; k++) {
        const dataflow_interface *i = &m->interfaces[k];
        for (uint32_t d = 0; d < i->rank && i->kind == of->kind; d++) {
            if ((i->kind == DATAFLOW_INPUT ? i->block[d] : dataflow_blocks(i, d)) == 1)
                continue;
            count++;
            dimension = i == of ? (int)d : -1;
        }
    }
    return count == 1 ? dimension : -1;
}

static void put_parallel(const dataflow_model *m, strbuf *out)
{
    const char *between = "";
    strbuf_puts(out, "    PARALLEL = {");
    for (size_t k = 0; k < m->count; k++) {
        const dataflow_interface *i = &m->interfaces[k];
        if (i->kind > DATAFLOW_WEIGHT)
            continue;
        bool input = i->kind == DATAFLOW_INPUT;
        int dimension = only_dimension(m, i);
        strbuf_puts(out, between);
        put_string(i->name, out);
        strbuf_puts(out, ": (");
        put_string(dimension >= 0 ? input ? "SIMD" : "PE" : arena_printf(out->arena, "%s_%s", i->name, input ? "iPar" : "wPar"), out);
        strbuf_puts(out, dimension >= 0 ? arena_printf(out->arena, ", %d)", dimension) : ", None)");
        between = ", ";
    }
    strbuf_puts(out, "}\n");
}

static void put_types(const dataflow_model *m, strbuf *out)
{
    const char *between = "";
    strbuf_puts(out, "    DATATYPES = {");
    for (size_t k = 0; k < m->count; k++) {
        if (m->interfaces[k].kind > DATAFLOW_OUTPUT)
            continue;
        strbuf_puts(out, between);
        put_string(m->interfaces[k].name, out);
        strbuf_puts(out, ": ");
        put_string(type_attribute(m, &m->interfaces[k], out->arena), out);
        between = ", ";
    }
    strbuf_puts(out, "}\n");
}

/* Intervals that inputs state. */
static void put_given(const dataflow_model *m, strbuf *out)
{
    static const char *const names[] = {"cii", "eii", "latency"};
    for (size_t k = 0; k < m->count; k++)
        for (int n = 0; n < DATAFLOW_INTERVALS; n++)
            if (m->interfaces[k].kind == DATAFLOW_INPUT && m->interfaces[k].given[n] > 0) {
                strbuf_puts(out, "    GIVEN.setdefault(");
                put_string(m->interfaces[k].name, out);
                strbuf_printf(out, ", {})[\"%s\"] = %" PRId64 "\n", names[n], m->interfaces[k].given[n]);
            }
}

/* Config and Control: names and descriptions. */
static void put_attributes(const dataflow_model *m, dataflow_kind kind, const char *list, strbuf *out)
{
    const char *between = "";
    strbuf_printf(out, "    %s = {", list);
    for (size_t k = 0; k < m->count; k++) {
        if (m->interfaces[k].kind != kind)
            continue;
        strbuf_puts(out, between);
        put_string(m->interfaces[k].name, out);
        strbuf_puts(out, ": ");
        put_string(m->interfaces[k].text, out);
        between = ", ";
    }
    strbuf_puts(out, "}\n");
}

static void put_attribute(const char *name, const char *type, strbuf *out)
{
    strbuf_puts(out, "                ");
    put_string(name, out);
    strbuf_printf(out, ": (\"%s\", False, ", type);
}

static void put_list(const char *name, const int64_t *list, uint32_t rank, strbuf *out)
{
    put_attribute(name, "ints", out);
    put_sizes(list, rank, out);
    strbuf_puts(out, "),\n");
}

/* The attributes of the node that are an interface's. */
static void put_interface(const dataflow_model *m, const dataflow_interface *i, strbuf *out)
{
    arena *a = out->arena;
    int dimension = i->kind == DATAFLOW_OUTPUT ? -1 : only_dimension(m, i);
    const char *type = i->bits ? qonnx_type(i, a) : "";
    if (i->tensor_rank)
        put_list(arena_printf(a, "%s_tensor", i->name), i->tensor, i->rank, out);
    put_list(arena_printf(a, "%s_block", i->name), i->block, i->rank, out);
    if (dimension >= 0) {
        put_attribute(i->kind == DATAFLOW_INPUT ? "SIMD" : "PE", "i", out);
        strbuf_printf(out, "%" PRId64 "),\n", i->parallel[dimension]);
    } else if (i->kind != DATAFLOW_OUTPUT)
        put_list(arena_printf(a, "%s_%s", i->name, i->kind == DATAFLOW_INPUT ? "iPar" : "wPar"), i->parallel, i->rank, out);
    strbuf_puts(out, "                ");
    put_string(type_attribute(m, i, a), out);
    strbuf_printf(out, ": (\"s\", %s, \"%s\"),\n", *type ? "False" : "True", type);
}

static void put_class(writing *w, const dataflow_model *m)
{
    static const char *const lists[] = {"INPUTS", "WEIGHTS", "OUTPUTS"};
    strbuf *out = w->out;
    const char *name = class_name(w, m->name);
    w->names[w->count++] = name;
    strbuf_printf(out, "\n\nclass %s(DataflowOp):\n", name);
    for (int kind = DATAFLOW_INPUT; kind <= DATAFLOW_OUTPUT; kind++)
        put_names(m, (dataflow_kind)kind, lists[kind], out);
    put_types(m, out);
    put_parallel(m, out);
    strbuf_puts(out, "    GIVEN = {}\n");
    put_given(m, out);
    put_attributes(m, DATAFLOW_CONFIG, "CONFIG", out);
    put_attributes(m, DATAFLOW_CONTROL, "CONTROL", out);
    strbuf_printf(out, "    BATCH = %" PRId64 "\n    PADS = %s\n", m->batch, m->pads ? "True" : "False");
    strbuf_puts(
        out,
        "\n    def get_nodeattr_types(self):\n        my_attrs = super().get_nodeattr_types()\n        my_attrs.update(\n            {\n");
    for (size_t k = 0; k < m->count; k++)
        if (m->interfaces[k].kind <= DATAFLOW_OUTPUT)
            put_interface(m, &m->interfaces[k], out);
    strbuf_puts(out, "            }\n        )\n        return my_attrs\n");
}

const char *finn_text(visa_compilation *c)
{
    const module *m = c->module;
    strbuf out;
    strbuf_init(&out, c->arena);
    writing w = {c, &out, ARENA_ARRAY(c->arena, const char *, m->dataflow_count + 1), 0};
    if (m->dataflow_count == 0) {
        diag *d = diag_add(&c->diags, E_DATAFLOW_FINN, SRC_NOWHERE, "the file has no dataflow item");
        diag_help(&c->diags, d, "write `const NAME: Dataflow = Dataflow { .. };`");
        return NULL;
    }
    strbuf_append(&out, (const char *)visa_embed_finn_operator, (size_t)(visa_embed_end_finn_operator - visa_embed_finn_operator));
    for (size_t i = 0; i < m->dataflow_count; i++)
        put_class(&w, m->dataflows[i]);
    strbuf_puts(&out, "\n\ncustom_op = dict()\n");
    for (size_t i = 0; i < w.count; i++)
        strbuf_printf(&out, "custom_op[\"%s\"] = %s\n", w.names[i], w.names[i]);
    return out.text;
}
