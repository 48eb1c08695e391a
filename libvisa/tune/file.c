#include "libvisa/tune/file.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "frontend/parse.h"
#include "libvisa/layout.h"
#include "libvisa/tune/scaled.h"

enum { SIZES_MAX = TUNE_AXES_MAX, ALIASES = 5 };
static const char *const ALIAS[ALIASES] = {"Chip", "Cluster", "Slice", "ClusterOfRows", "SliceOfRows"};

typedef struct declaration {
    visa_compilation *c;
    const ast *tree, *function;
    bool renames; /* type aliases of a kernel: the file has such names */
} declaration;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool same_name(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b))
        a++, b++;
    return *a == *b;
}

/* The attribute's string, without its quotes; NULL: the function has none. */
static const char *question_of(const ast *function, arena *a, src_range *range)
{
    const ast *attribute = ast_attribute(function, "einsum");
    if (!attribute)
        return NULL;
    *range = attribute->range;
    const char *argument = ast_kid(attribute, 1)->text;
    size_t length = strlen(argument);
    bool is_string = attribute->kid_count == 2 && length > 2 && argument[0] == '"' && !strchr(argument, '\\');
    return is_string ? arena_printf(a, "%.*s", (int)(length - 2), argument + 1) : "";
}

static bool is_question(const ast *n, arena *a, src_range *range, const char **text)
{
    *text = ast_is(n, AST_FN) && ast_is(ast_kid(n, 4), AST_NONE) ? question_of(n, a, range) : NULL;
    return *text != NULL;
}

const ast *tune_tensor_arguments(const ast *type)
{
    while (ast_is(type, AST_TYPE_REF))
        type = ast_kid(type, 0);
    const ast *last = ast_is(type, AST_TYPE_PATH) ? ast_last_segment(type) : NULL;
    return last && strcmp(last->text, "HbmTensor") == 0 ? ast_kid(last, 0) : NULL;
}

/* Of a function, what it takes or gives by that name: the arguments of its type. NULL: nothing. */
static const ast *tensor_called(const ast *function, const char *name, bool is_result)
{
    const ast *parameters = ast_kid(function, 2);
    for (uint32_t i = 0; i < parameters->kid_count; i++)
        if (same_name(ast_kid(parameters->kids[i], 1)->text, name))
            return tune_tensor_arguments(ast_kid(parameters->kids[i], 2));
    return is_result ? tune_tensor_arguments(ast_kid(function, 3)) : NULL;
}

static const char *element_type(const ast *arguments)
{
    const ast *type = arguments ? ast_kid(arguments, 0) : NULL, *last = type && ast_is(type, AST_TYPE_PATH) ? ast_last_segment(type) : NULL;
    return last ? last->text : NULL;
}

/* Sizes of the question's axes, by the names that it has for the file's. */
static size_t sizes_of(const declaration *d, const char *question, visa_parameter *sizes)
{
    size_t count = 0;
    arena *a = d->c->arena;
    for (uint32_t i = 0; i < d->tree->kid_count; i++) {
        const ast *axes = d->tree->kids[i];
        for (uint32_t k = 1; ast_is(axes, AST_AXES) && k < axes->kid_count; k++) {
            const ast *one = axes->kids[k];
            int depth = 0;
            for (const char *at = question; *at && count < SIZES_MAX;) {
                const char *end = at;
                while (is_word(*end))
                    end++;
                if (end == at) {
                    depth += *at == '[' ? 1 : *at == ']' ? -1 : 0;
                    at++;
                    continue;
                }
                const char *name = arena_printf(a, "%.*s", (int)(end - at), at);
                at = end;
                if (depth == 0 || !same_name(name, one->text))
                    continue;
                int64_t *extent = ARENA_NEW(a, int64_t);
                *extent = ast_kid(one, 0)->value;
                sizes[count++] = (visa_parameter){.name = name, .values = extent, .count = 1};
                break;
            }
        }
    }
    return count;
}

/* The name of a tensor in front of the first `[` from `at` on. */
static const char *tensor_name(const char *at, arena *a)
{
    const char *open = strchr(at, '[');
    if (!open)
        return "";
    while (open > at && open[-1] == ' ')
        open--;
    const char *begin = open;
    while (begin > at && is_word(begin[-1]))
        begin--;
    return arena_printf(a, "%.*s", (int)(open - begin), begin);
}

static bool refused_type(const declaration *d, diag_id id, const char *name, const ast *stated, const char *as)
{
    diag *g = diag_add(&d->c->diags, id, stated ? stated->range : d->function->name_range,
                       "`%s` is declared otherwise than the kernel for this question has it", name);
    diag_help(&d->c->diags, g, "write %s, or leave out the parameters", as);
    return false;
}

/* Mappings as the file's axes have them: of several of one kind the kernel makes one axis, K_L. */
static const char *mapping_in_file(const tune_kernel *k, const ast *element, arena *a)
{
    const char *text = ast_text(element, a);
    for (size_t i = 0; i < k->axis_count; i++) {
        const char *joined = k->axes[i].text, *at = strcmp(joined, k->axes[i].parts) != 0 ? strstr(text, joined) : NULL;
        if (at)
            text = arena_printf(a, "%.*s%s%s", (int)(at - text), text, k->axes[i].parts, at + strlen(joined));
    }
    return text;
}

/* A mapping that is left open. */
static bool is_open(const ast *element, arena *a)
{
    return strcmp(ast_text(element, a), "_") == 0;
}

/* A Chip by its mapping: that of the alias where it is one. */
static const char *chip_of(const ast *tree, const ast *chip, arena *a)
{
    const ast *last = ast_is(chip, AST_TYPE_PATH) ? ast_last_segment(chip) : NULL;
    for (uint32_t i = 0; last && i < tree->kid_count; i++)
        if (ast_is(tree->kids[i], AST_TYPE_ALIAS) && strcmp(tree->kids[i]->text, last->text) == 0)
            return ast_text(ast_kid(tree->kids[i], tree->kids[i]->kid_count - 1), a);
    return ast_text(chip, a);
}

/* Whether what is declared is what the kernel in `answer` has: its tensors by name, with their types and mappings. */
static bool agrees(const declaration *d, const tune_kernel *k, const ast *answer, const ast *written_fn)
{
    arena *a = d->c->arena;
    const char *out = k->result;
    const ast *stated = ast_kid(d->function, 2), *written = ast_kid(written_fn, 2);
    bool has_tensors = false;
    for (uint32_t i = 0; i < stated->kid_count; i++) {
        const ast *parameter = stated->kids[i];
        const char *name = ast_kid(parameter, 1)->text;
        const ast *of = tune_tensor_arguments(ast_kid(parameter, 2));
        if (!of && i == 0 && ast_is(ast_kid(parameter, 2), AST_TYPE_REF))
            continue; /* the device */
        has_tensors = true;
        if (!of || !tensor_called(written_fn, name, same_name(name, out)))
            return refused_type(d, E_TUNE_QUESTION, name, parameter, "tensors of the question, as &HbmTensor<type, m![1], m![axes]>");
    }
    for (uint32_t i = 0; has_tensors && i <= written->kid_count; i++) {
        bool result = i == written->kid_count;
        if (result ? ast_is(ast_kid(written_fn, 3), AST_NONE) : !tune_tensor_arguments(ast_kid(written->kids[i], 2)))
            continue;
        const char *name = result ? out : ast_kid(written->kids[i], 1)->text;
        bool is_out = same_name(name, out);
        const ast *mine = tensor_called(written_fn, name, is_out), *theirs = tensor_called(d->function, name, is_out);
        const char *type = element_type(mine), *element = mapping_in_file(k, mine->kids[2], a);
        bool whole = theirs && theirs->kid_count == 3 && element_type(theirs), same_type = whole && strcmp(type, element_type(theirs)) == 0;
        const char *chip = chip_of(answer, mine->kids[1], a);
        bool same_chip = whole && (is_open(theirs->kids[1], a) || strcmp(chip, chip_of(d->tree, theirs->kids[1], a)) == 0);
        if (!same_type || !same_chip || (!is_open(theirs->kids[2], a) && strcmp(element, mapping_in_file(k, theirs->kids[2], a)) != 0))
            return refused_type(d, whole && !same_type ? E_TUNE_TYPE : E_TUNE_LAYOUT, name, theirs,
                                arena_printf(a, "HbmTensor<%s, %s, %s>", type, chip, element));
    }
    return true;
}

/* "gated_product" as a part of a type's name: "GatedProduct". */
static const char *camel(const char *name, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    bool starts = true;
    for (; *name; name++) {
        char letter = starts ? (char)toupper((unsigned char)*name) : *name;
        starts = *name == '_';
        if (*name != '_')
            strbuf_append(&out, &letter, 1);
    }
    return out.text;
}

/* The kernel under the function's name, its aliases under names of their own where the file has such. */
static void put_renamed(const declaration *d, const char *text, size_t bytes, strbuf *out)
{
    arena *a = d->c->arena;
    const char *prefix = camel(d->function->text, a), *end = text + bytes;
    while (text < end) {
        const char *word = text;
        while (text < end && is_word(*text))
            text++;
        if (text == word) {
            strbuf_append(out, text++, 1);
            continue;
        }
        const char *name = arena_printf(a, "%.*s", (int)(text - word), word);
        bool is_alias = false;
        for (int i = 0; i < ALIASES; i++)
            is_alias = is_alias || strcmp(name, ALIAS[i]) == 0;
        size_t length = strlen(name), end_of = strlen("_" TUNE_KERNEL);
        if (strcmp(name, TUNE_KERNEL) == 0)
            strbuf_puts(out, d->function->text);
        else if (length > end_of && strcmp(name + length - end_of, "_" TUNE_KERNEL) == 0) /* a function that it calls */
            strbuf_printf(out, "%.*s_%s", (int)(length - end_of), name, d->function->text);
        else
            strbuf_printf(out, "%s%s", is_alias && d->renames ? prefix : "", name);
    }
}

static bool has_axis(const ast *tree, const char *name)
{
    for (uint32_t i = 0; i < tree->kid_count; i++)
        for (uint32_t k = 1; ast_is(tree->kids[i], AST_AXES) && k < tree->kids[i]->kid_count; k++)
            if (strcmp(tree->kids[i]->kids[k]->text, name) == 0)
                return true;
    return false;
}

/* The text of the answer without the axes that the file has. */
static void put_answer(const declaration *d, const char *text, const ast *answer, strbuf *out)
{
    const ast *axes = NULL;
    for (uint32_t i = 0; i < answer->kid_count && !axes; i++)
        axes = ast_is(answer->kids[i], AST_AXES) ? answer->kids[i] : NULL;
    strbuf_append(out, text, axes->range.begin);
    for (uint32_t i = 1; i < axes->kid_count; i++) {
        const char *line = arena_printf(d->c->arena, "axes![%s = %" PRId64 "];\n", axes->kids[i]->text, ast_kid(axes->kids[i], 0)->value);
        if (!has_axis(d->tree, axes->kids[i]->text) && !strstr(out->text, line)) /* by the file, or for a question before */
            strbuf_puts(out, line);
    }
    const char *rest = text + axes->range.end;
    rest += strspn(rest, ";\n");
    size_t bytes = strlen(rest);
    while (bytes > 0 && rest[bytes - 1] == '\n')
        bytes--;
    strbuf_append(out, rest, bytes);
}

static const ast *kernel_of(const ast *answer)
{
    const ast *written_fn = NULL;
    for (uint32_t i = 0; i < answer->kid_count; i++)
        written_fn = ast_is(answer->kids[i], AST_FN) ? answer->kids[i] : written_fn;
    return written_fn;
}

/* Parameters, and the result, whose mapping is `_`: HbmTensor<i8, Chip, _>. How these lie is for the kernel to say. */
static const char *free_tensors_of(const declaration *d, const char *result)
{
    const ast *parameters = ast_kid(d->function, 2);
    const char *names = NULL;
    for (uint32_t i = 0; i <= parameters->kid_count; i++) {
        bool is_result = i == parameters->kid_count;
        const ast *of = tune_tensor_arguments(is_result ? ast_kid(d->function, 3) : ast_kid(parameters->kids[i], 2));
        const char *name = is_result ? result : ast_kid(parameters->kids[i], 1)->text;
        if (of && of->kid_count == 3 && is_open(of->kids[2], d->c->arena))
            names = names ? arena_printf(d->c->arena, "%s,%s", names, name) : name;
    }
    return names;
}

/* `#[device(pe = n)]` in front of a question says which part of the machine its kernel is for, in place of what options say of all. */
static bool read_device(const declaration *d, visa_tune_options *o)
{
    visa_compilation *c = d->c;
    const ast *device = ast_attribute(d->function, "device");
    for (uint32_t i = 1; device && i < device->kid_count; i++) {
        const ast *given = device->kids[i];
        int64_t n = ast_is(ast_kid(given, 0), AST_INT) ? ast_kid(given, 0)->value : 0, of_cluster = c->target->slices_per_cluster,
                pes = of_cluster / c->target->slices_per_pe, all = pes * c->target->clusters_per_chip;
        bool is_chip = strcmp(given->text, "chip") == 0, is_pe = strcmp(given->text, "pe") == 0;
        if (is_pe && (n == all || (n > 0 && n <= pes && (n & (n - 1)) == 0))) {
            o->clusters = n == all ? c->target->clusters_per_chip : 1;
            o->slices = n == all ? of_cluster : n * c->target->slices_per_pe;
            continue;
        }
        if (is_chip && n > 0) { /* what there is of them is for all options to say */
            o->chips = n;
            continue;
        }
        diag *g = diag_add(&c->diags, E_TUNE_MACHINE, given->range, "`%s` of a question's device is not known", given->text);
        diag_help(&c->diags, g, "write chip = 1, 2 or 4, and pe = 1, 2, 4 or 8");
        return false;
    }
    return true;
}

/* A tensor that is multiplied, whose type the others have that are: the first one of a sum, but none of the scales of its groups. */
static const char *operand_of(const declaration *d, const visa_tune_options *o, const char *question)
{
    tune_expression e, scaled;
    diag_list refusals;
    diag_list_init(&refusals, d->c->arena);
    if (tune_expression_read(question, 0, o, &refusals, &e) && tune_scaled_read(&e, d->c->arena, &scaled))
        return tune_scaled_operand(&scaled);
    const char *sum = strstr(question, "sum("), *equals = strchr(question, '=');
    return tensor_name(sum ? sum : equals ? equals : question, d->c->arena);
}

static bool answer_function(const declaration *d, const char *question, src_range asked, const visa_tune_options *given, strbuf *out)
{
    visa_compilation *c = d->c;
    if (!*question) {
        diag *g = diag_add(&c->diags, E_TUNE_QUESTION, asked, "`#[einsum]` takes one string, the question");
        diag_help(&c->diags, g, "write #[einsum(\"C[m, n] = sum(k) A[m, k] * B[n, k]\")]");
        return false;
    }
    visa_parameter sizes[SIZES_MAX];
    visa_tune_options o = *given;
    o.question = question;
    o.sizes = sizes;
    o.size_count = sizes_of(d, question, sizes);
    const char *operand = element_type(tensor_called(d->function, operand_of(d, &o, question), false));
    const char *result = element_type(tensor_called(d->function, tensor_name(question, c->arena), true));
    o.dtype = operand ? operand : given->dtype;
    o.out_dtype = result ? result : given->out_dtype;
    o.free_tensors = free_tensors_of(d, tensor_name(question, c->arena));
    if (!read_device(d, &o))
        return false;
    int file = source_map_add(c->sources, arena_printf(c->arena, "question of %s", d->function->text), question, strlen(question));
    tune_kernel k;
    strbuf text;
    if (file < 0 || !tune_answer_one(c, &o, file, &k))
        return false;
    strbuf_init(&text, c->arena);
    put_renamed(d, k.text.text, k.text.bytes, &text);
    if (!source_lay_out(&text))
        return false;
    int made = source_map_add(c->sources, "answer", text.text, text.bytes);
    const ast *answer = made < 0 ? NULL : parse_file(c->sources, made, c->arena, &c->diags),
              *written_fn = answer ? kernel_of(answer) : NULL;
    if (!written_fn || !agrees(d, &k, answer, written_fn))
        return false;
    put_answer(d, text.text, answer, out);
    return true;
}

bool tune_answer_file(visa_compilation *c, int file, const visa_tune_options *o, strbuf *out)
{
    const char *text = source_text(c->sources, file), *question;
    const ast *tree = parse_file(c->sources, file, c->arena, &c->diags);
    declaration d = {.c = c, .tree = tree};
    size_t asked = 0;
    src_range range;
    if (c->diags.error_count > 0)
        return false;
    for (uint32_t i = 0; i < tree->kid_count; i++) {
        asked += is_question(tree->kids[i], c->arena, &range, &question);
        for (int k = 0; k < ALIASES; k++)
            d.renames = d.renames || (ast_is(tree->kids[i], AST_TYPE_ALIAS) && strcmp(tree->kids[i]->text, ALIAS[k]) == 0);
    }
    d.renames = d.renames || asked > 1;
    if (asked == 0) {
        diag *g = diag_add(&c->diags, E_TUNE_QUESTION, (src_range){file, 0, 0}, "no function of this file is a question");
        diag_help(&c->diags, g,
                  "write #[einsum(\"C[m, n] = sum(k) A[m, k] * B[n, k]\")] in front of a function without a body, fn product();");
        return false;
    }
    strbuf_init(out, c->arena);
    uint32_t at = 0;
    for (uint32_t i = 0; i < tree->kid_count; i++) {
        d.function = tree->kids[i];
        if (!is_question(d.function, c->arena, &range, &question))
            continue;
        strbuf_append(out, text + at, d.function->range.begin - at);
        if (!answer_function(&d, question, range, o, out))
            return false;
        at = d.function->range.end;
    }
    strbuf_append(out, text + at, source_bytes(c->sources, file) - at);
    return true;
}
