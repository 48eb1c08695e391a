#include "frontend/stage.h"

#include <pthread.h>
#include <string.h>

#include "frontend/constant.h"
#include "frontend/index.h"
#include "frontend/stage_build.h"
#include "support/choice.h"

/* ---- the table ---- */

enum {
#define STAGE(name, ...) ROW_##name,
#include "target/engines.def"
};

static const stage_row rows[] = {
#define STAGE(name, operation, receivers, gives, properties, summary) {operation, receivers, gives, properties, summary, stage_make_##name},
#include "target/engines.def"
};

static const stage_form forms[] = {
#define TYPES(...) {__VA_ARGS__}, sizeof((stage_type[]){__VA_ARGS__}) / sizeof(stage_type)
#define ARGUMENTS(...) {__VA_ARGS__}, sizeof((stage_argument[]){__VA_ARGS__}) / sizeof(stage_argument)
#define FORM_ON(stage, receivers, dialects, spelling, ...) \
    {&rows[ROW_##stage], receivers, dialects, spelling, sizeof spelling - 1, __VA_ARGS__},
#include "target/engines.def"
};
enum { FORMS = sizeof forms / sizeof *forms };

static const stage_other_name other_names[] = {
#define OTHER_NAME(engine, spelling, since) {spelling, DIALECT_##since, ENGINE_ID_##engine},
#include "target/engines.def"
};
enum { OTHER_NAMES = sizeof other_names / sizeof *other_names };

static const char *const engine_names[] = {
#define ENGINE(symbol, name, what) [ENGINE_ID_##symbol] = name,
#include "target/engines.def"
};

static uint64_t receivers_of(const stage_form *f)
{
    return stage_form_receivers(f);
}

const stage_form *stage_form_at(size_t i)
{
    return i < FORMS ? &forms[i] : NULL;
}

/* How an argument is handed over, and how that is written. */
typedef enum borrow { NOT_BORROWED, BORROWED, BORROWED_MUT } borrow;
static const char *const borrow_texts[] = {"", "&", "&mut "};

/* What an argument must be. */
static const struct {
    const char *label, *name; /* in a signature, after its borrow; in a sentence */
    value_kind kind;
    tensor_kind tensor; /* VALUE_TENSOR, VALUE_VIEW */
    bool writable;      /* VALUE_VIEW */
    bool counts;        /* VALUE_INT: at least 0 */
    bool views;         /* VALUE_TENSOR: a view does as well */
    bool runs;          /* it need not be a constant, or whoever takes it says so */
    context context;    /* VALUE_UNIT_OF_CONTEXT */
    borrow borrow;
    const char *types[3]; /* VALUE_VARIANT */
    const char *usual[2]; /* what it mostly is, today and in April; NULL: nothing */
} arguments[] = {
    [ARGUMENT_DMA] = {"@ctx.tdma", "`&mut @ctx.tdma`", VALUE_UNIT_OF_CONTEXT, .context = CONTEXT_DMA, .borrow = BORROWED_MUT},
    [ARGUMENT_ADDRESS] = {"address", "an integer address", VALUE_INT},
    [ARGUMENT_START] = {"start", "an integer of at least 0", VALUE_INT, .counts = true, .runs = true},
    [ARGUMENT_WEIGHTS] = {"weights", "a reference to a TrfTensor", VALUE_TENSOR, TENSOR_TRF, .borrow = BORROWED},
    [ARGUMENT_DM_VIEW] = {"x.view()", "a view of a DmTensor (`x.view()`)", VALUE_VIEW, TENSOR_DM},
    [ARGUMENT_DM_VIEW_MUT] = {"x.view_mut()", "a view of a DmTensor to write (`x.view_mut()`)", VALUE_VIEW, TENSOR_DM, .writable = true},
    [ARGUMENT_HBM_VIEW_MUT] = {"x.view_mut()", "a view of an HbmTensor to write (`x.view_mut()`)", VALUE_VIEW, TENSOR_HBM,
                               .writable = true},
    [ARGUMENT_TRF_ADDRESS] = {"TrfAddress", "a TrfAddress (Full, FirstHalf or SecondHalf)", VALUE_TRF_ADDRESS},
    [ARGUMENT_SWITCH] = {"SwitchConfig", "a SwitchConfig (`SwitchConfig::Broadcast1 { slice1: 4, slice0: 8 }`)", VALUE_SWITCH_CONFIG},
    [ARGUMENT_ACCUMULATION] = {"AccumulationKind", "an AccumulationKind (Interleaved or Sequential)", VALUE_ACCUMULATION},
    [ARGUMENT_VECTOR_OP] = {"operation", "an operation of the Vector Engine (`FxpBinaryOp::AddFxp`)", VALUE_VECTOR_OP},
    [ARGUMENT_OP_WITH_MODE] = {"operation.with_mode(mode)",
                               "an operation with its mode (`FpDivBinaryOp::DivF.with_mode(BinaryArgMode::Mode01)`)", VALUE_OP_WITH_MODE},
    [ARGUMENT_MODE] = {"mode", "where the operands come from (`BinaryArgMode::Mode01`)", VALUE_VARIANT,
                       .types = {"UnaryArgMode", "BinaryArgMode", "TernaryArgMode"}},
    [ARGUMENT_TAG_MODE] = {"TagMode", "what the tags are (`TagMode::Zero`, in April `BranchMode::Unconditional`)", VALUE_VARIANT,
                           .types = {"TagMode", "BranchMode"}, .usual = {"TagMode::Zero", "BranchMode::Unconditional"}},
    [ARGUMENT_INT_WIDTH] = {"int_width", "an integer of 0 to 31", VALUE_INT, .counts = true},
    [ARGUMENT_OPERAND] = {"operand", "an operand", VALUE_ERROR, .runs = true},
    [ARGUMENT_DM_MUT] = {"x", "a reference to a DmTensor that is written (`&mut x`)", VALUE_TENSOR, TENSOR_DM, .borrow = BORROWED_MUT},
    [ARGUMENT_DM_GIVEN] = {"x", "a DmTensor, which is given away", VALUE_TENSOR, TENSOR_DM},
    [ARGUMENT_INDEX] = {"index", "a reference to an HbmTensor of indices, or a view of one", VALUE_TENSOR, TENSOR_HBM, .views = true,
                        .borrow = BORROWED},
    [ARGUMENT_INDEX_DM] = {"index", "a reference to a DmTensor of indices", VALUE_TENSOR, TENSOR_DM, .borrow = BORROWED},
    [ARGUMENT_INDEX_SPM] = {"index", "a reference to an SpmTensor of positions", VALUE_TENSOR, TENSOR_SPM, .borrow = BORROWED},
    [ARGUMENT_HBM_MUT] = {"out", "an HbmTensor that is written (`&mut out`)", VALUE_TENSOR, TENSOR_HBM, .borrow = BORROWED_MUT},
    [ARGUMENT_FLAG] = {"true", "a condition", VALUE_BOOL},
    [ARGUMENT_POSITIONS] = {"[0, 1]", "an array of integers of at least 0 (`&[1, 0]`)", VALUE_LIST, .borrow = BORROWED},
    [ARGUMENT_ZERO_POINT] = {"zero_point", "an integer, the zero point", VALUE_INT},
    [ARGUMENT_FILL] = {"value", "a constant", VALUE_ERROR},
    [ARGUMENT_OTHER_OPERAND] = {"operand of group 1", "an operand", VALUE_ERROR, .runs = true},
    [ARGUMENT_TAKEN] = {"group 0", "true or false", VALUE_BOOL},
    [ARGUMENT_OTHER_TAKEN] = {"group 1", "true or false", VALUE_BOOL},
    [ARGUMENT_RUNNING] = {"n", "a number that is known when the kernel runs, of `to_spm` of an HbmScalar", VALUE_RUNNING},
    [ARGUMENT_SUB] = {"@ctx.sub", "`&mut @ctx.sub`", VALUE_UNIT_OF_CONTEXT, .context = CONTEXT_SUB, .borrow = BORROWED_MUT},
    [ARGUMENT_LANE_MODE] = {"LaneMode", "a LaneMode (Interleaved or Sequential)", VALUE_ACCUMULATION},
};

static bool all_count(const value *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].kind != VALUE_INT || list->items[i].number < 0)
            return false;
    return list->count > 0;
}

static bool argument_fits(stage_argument a, const value *v)
{
    if (arguments[a].kind == VALUE_ERROR) /* what it may be depends on the operation, or on the element type */
        return true;
    if (v->kind != arguments[a].kind && !(arguments[a].views && v->kind == VALUE_VIEW))
        return false;
    switch (v->kind) {
    case VALUE_UNIT_OF_CONTEXT: return v->context == arguments[a].context;
    case VALUE_LIST: return all_count(v);
    case VALUE_INT: return !arguments[a].counts || v->number >= 0;
    case VALUE_TENSOR: return v->op->out.kind == arguments[a].tensor;
    case VALUE_VIEW: return v->op->out.kind == arguments[a].tensor && (v->writable || !arguments[a].writable);
    case VALUE_VARIANT:
        for (size_t i = 0; i < 3 && arguments[a].types[i]; i++)
            if (strcmp(arguments[a].types[i], v->variant) == 0)
                return true;
        return false;
    default: return true;
    }
}

/* ---- looking up ---- */

/* The forms of one name are found through chains of those whose names have one length and one first letter, in the order of the rows: every
 * call and every node of a file asks for them. */
enum { CHAINS = 256 };
static uint16_t chain_of[CHAINS], next_of[FORMS]; /* numbers of forms, 1 for the first; 0: the end */

static size_t chain_number(const char *name, size_t length)
{
    return ((unsigned char)name[0] + 7 * length) % CHAINS;
}

static void link_forms(void)
{
    for (size_t i = FORMS; i-- > 0;) {
        uint16_t *chain = &chain_of[chain_number(forms[i].name, forms[i].name_length)];
        next_of[i] = *chain;
        *chain = (uint16_t)(i + 1);
    }
}

typedef struct form_search {
    const char *name;
    size_t length;
    uint16_t next;
} form_search;

static form_search forms_of(const char *name)
{
    static pthread_once_t linked = PTHREAD_ONCE_INIT;
    pthread_once(&linked, link_forms);
    size_t length = strlen(name);
    return (form_search){name, length, chain_of[chain_number(name, length)]};
}

/* NULL: no more. */
static const stage_form *next_form(form_search *s)
{
    while (s->next) {
        const stage_form *f = &forms[s->next - 1];
        s->next = next_of[s->next - 1];
        if (f->name_length == s->length && memcmp(f->name, s->name, s->length) == 0)
            return f;
    }
    return NULL;
}

bool stage_is_known(const char *method)
{
    form_search s = forms_of(method);
    return next_form(&s) != NULL;
}

bool stage_takes(const char *method, tensor_kind kind)
{
    form_search s = forms_of(method);
    for (const stage_form *f; (f = next_form(&s));)
        if (receivers_of(f) >> kind & 1)
            return true;
    return false;
}

bool stage_is_of_type(const char *name)
{
    form_search s = forms_of(name);
    for (const stage_form *f; (f = next_form(&s));)
        if (receivers_of(f) & ON_TYPE)
            return true;
    return false;
}

bool stage_expects_dtype(const char *method)
{
    form_search s = forms_of(method);
    const stage_form *f = next_form(&s);
    return f && (f->row->properties & EXPECTS_DTYPE);
}

static uint64_t receiver_bit(const value *v)
{
    switch (v->kind) {
    case VALUE_TENSOR: return UINT64_C(1) << v->op->out.kind;
    case VALUE_VIEW: return UINT64_C(1) << (VIEW_BITS + v->op->out.kind);
    case VALUE_UNIT_OF_CONTEXT: return ON_UNIT | (v->context == CONTEXT_SUB ? ON_SUB : 0) | (v->context == CONTEXT_DMA ? ON_DMA : 0);
    case VALUE_PLAN: return ON_PLAN;
    case VALUE_INDIRECT: return ON_INDIRECT;
    case VALUE_SCALAR: return ON_SCALAR;
    case VALUE_BEGIN: return ON_BEGIN;
    case VALUE_TYPE: return ON_TYPE;
    default: return 0;
    }
}

/* Is it the form that stands for its stage where a release's stages are listed? Forms of one stage are together. */
static bool is_first_form(size_t i, dialect d, uint64_t receiver)
{
    const stage_form *f = &forms[i];
    if (!(f->dialects >> d & 1) || !(receivers_of(f) & receiver))
        return false;
    while (i-- > 0 && forms[i].row == f->row)
        if ((forms[i].dialects >> d & 1) && (receivers_of(&forms[i]) & receiver))
            return false;
    return true;
}

static dialect dialect_of(const stage_call *call)
{
    return scope_context_of(call->scope)->dialect;
}

/* "collect, commit" */
static const char *offered(const stage_call *call)
{
    strbuf s;
    strbuf_init(&s, scope_context_of(call->scope)->arena);
    uint64_t bit = receiver_bit(&call->receiver);
    for (size_t i = 0; i < FORMS; i++)
        if (is_first_form(i, dialect_of(call), bit))
            strbuf_printf(&s, "%s%s", s.bytes ? ", " : "", forms[i].name);
    if (!s.bytes && call->receiver.kind == VALUE_INT)
        return "min, max, clamp, pow, abs and other methods of integers (docs/language.md)";
    return s.bytes ? s.text : "no stage";
}

unsigned stage_dialects(const char *method, unsigned types, unsigned given)
{
    unsigned set = 0;
    form_search s = forms_of(method);
    for (const stage_form *f; (f = next_form(&s));)
        if (f->argument_count == given && (types == 0 || f->type_count == types))
            set |= f->dialects;
    return set;
}

const stage_other_name *stage_other_name_at(size_t i)
{
    return i < OTHER_NAMES ? &other_names[i] : NULL;
}

static const stage_other_name *other_name(const char *name)
{
    for (size_t i = 0; i < OTHER_NAMES; i++)
        if (strcmp(other_names[i].name, name) == 0)
            return &other_names[i];
    return NULL;
}

static const char *nearest(const char *name)
{
    const char *names[FORMS + 1];
    for (size_t i = 0; i < FORMS; i++)
        names[i] = forms[i].name;
    names[FORMS] = NULL;
    return choice_near(name, names);
}

/* Of what the receiver offers. */
static const char *nearest_offered(const stage_call *call)
{
    const char *names[FORMS + 1];
    size_t count = 0;
    for (size_t i = 0; i < FORMS; i++)
        if (is_first_form(i, dialect_of(call), receiver_bit(&call->receiver)))
            names[count++] = forms[i].name;
    names[count] = NULL;
    return choice_near(call->node->text, names);
}

/* A misspelt name, or a mapping that is none, is an error of its own even where what it is called on is not known. */
static void check_alone(const stage_call *call)
{
    const ast *generics = ast_kid(call->node, 1);
    bool infer;
    for (uint32_t i = 0; ast_is(generics, AST_GENERIC_ARGS) && i < generics->kid_count; i++)
        if (ast_is(generics->kids[i], AST_MAP))
            scope_mapping(call->scope, generics->kids[i], &infer);
    const char *name = call->node->text;
    if (stage_is_known(name) || other_name(name)) /* of a chain of a newer dialect the first is named */
        return;
    const char *near = nearest(name);
    if (!near)
        return;
    diag *d = diag_add(stage_diags(call), E_METHOD, call->node->name_range, "there is no method `%s`", name);
    diag_help(stage_diags(call), d, "did you mean `%s`?", near);
}

/* Is the form the first of its stage that the receiver offers, and its result one of those wanted? */
static bool leads_to(const stage_call *call, size_t i, uint64_t receiver, uint64_t wanted)
{
    int gives = forms[i].row->gives;
    return is_first_form(i, dialect_of(call), receiver) && gives < TENSOR_KIND_COUNT && (wanted >> gives & 1);
}

/* Is an operation among its arguments? */
static bool computes(const stage_form *f)
{
    for (unsigned i = 0; i < f->argument_count; i++)
        if (f->arguments[i] == ARGUMENT_VECTOR_OP)
            return true;
    return false;
}

/* A stage that the receiver offers and whose result offers what is asked for, or two of them: "write .commit_trim::<Packet>() in front of
 * it"; NULL: none. */
static const char *spelling(const stage_call *call, const stage_form *f, bool *is_whole);
static const char *missing_between(const stage_call *call, bool *is_whole)
{
    uint64_t bit = receiver_bit(&call->receiver), wanted = 0;
    form_search s = forms_of(call->node->text);
    for (const stage_form *f; (f = next_form(&s));)
        wanted |= f->dialects >> dialect_of(call) & 1 ? receivers_of(f) : 0;
    for (size_t i = 0; i < FORMS; i++)
        if (leads_to(call, i, bit, wanted))
            return spelling(call, &forms[i], is_whole);
    for (size_t i = 0; i < FORMS; i++) {
        int gives = forms[i].row->gives;
        if (!leads_to(call, i, bit, ~bit) || computes(&forms[i]) || gives == TENSOR_HBM || gives == TENSOR_DM) /* memory offers anything */
            continue;
        for (size_t k = 0; k < FORMS; k++)
            if (leads_to(call, k, UINT64_C(1) << gives, wanted) && !computes(&forms[k])) {
                bool first, second;
                const char *text = arena_printf(scope_context_of(call->scope)->arena, "%s.%s", spelling(call, &forms[i], &first),
                                                spelling(call, &forms[k], &second));
                *is_whole = first && second;
                return text;
            }
    }
    return NULL;
}

static void unknown_method(const stage_call *call, bool known)
{
    const char *name = call->node->text;
    diag_list *diags = stage_diags(call);
    const stage_other_name *other = other_name(name);
    if (other) {
        diag *d = diag_add(diags, E_UNSUPPORTED, call->node->name_range, "`%s` of the %s is not supported yet", name,
                           engine_names[other->engine]);
        diag_help(diags, d, "%s offers: %s", value_kind_name(&call->receiver), offered(call));
        return;
    }
    diag *d = diag_add(diags, E_METHOD, call->node->name_range, known ? "`%s` is not offered by %s" : "there is no method `%s` on %s", name,
                       value_kind_name(&call->receiver));
    bool is_whole = false;
    const char *near = known ? NULL : nearest_offered(call), *between = known ? missing_between(call, &is_whole) : NULL;
    near = near || known ? near : nearest(name);
    if (near)
        diag_help(diags, d, "did you mean `%s`?", near);
    else if (between) {
        diag_help(diags, d, "write .%s in front of it", between);
        src_range at = call->node->name_range;
        if (is_whole) /* else its arguments are the writer's to fill in */
            diag_replace(diags, d, (src_range){at.file, at.begin, at.begin}, "%s.", between);
    } else
        diag_help(diags, d, "%s offers: %s", value_kind_name(&call->receiver), offered(call));
}

/* ---- what is written ---- */

static const char *type_name(const stage_form *f, stage_type t)
{
    dialect d = dialect_newest(f->dialects);
    switch (t) {
    case TYPE_DTYPE: return "Dtype";
    case TYPE_INDEX: return "Index";
    case TYPE_LENGTH: return "LENGTH";
    case TYPE_WEIGHTS: return "Element";
    case TYPE_AXIS: return "Axis";
    case TYPE_COUNT: return "COUNT";
    case TYPE_KEY: return "Domain";
    case TYPE_PAYLOAD: return "Payload";
    case TYPE_SLICED: return "SlicedElement";
    case TYPE_TILED_TIME: return "TileTime";
    default: return stage_type_component(t) < MAPPING_COMPONENTS ? dialect_word(d, component_parameter(stage_type_component(t))) : "_";
    }
}

/* "Dtype, Time, Packet" */
static const char *parameters(const stage_form *f, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, "");
    for (unsigned i = 0; i < f->type_count; i++)
        strbuf_printf(&s, "%s%s", i ? ", " : "", type_name(f, f->types[i]));
    return s.text;
}

/* The i-th argument of a call; usual: what it mostly is, or NULL. */
static void put_argument(strbuf *out, unsigned i, stage_argument a, const char *usual)
{
    strbuf_printf(out, "%s%s%s", i ? ", " : "", usual ? "" : borrow_texts[arguments[a].borrow], usual ? usual : arguments[a].label);
}

/* "fetch::<Dtype, Time, Packet>()" */
static const char *signature(const stage_form *f, arena *a)
{
    strbuf text;
    strbuf_init(&text, a);
    strbuf_printf(&text, f->type_count ? "%s::<%s>(" : "%s%s(", f->name, parameters(f, a));
    for (unsigned i = 0; i < f->argument_count; i++)
        put_argument(&text, i, f->arguments[i], NULL);
    strbuf_puts(&text, ")");
    return text.text;
}

/* What commit_trim usually leaves of a packet: no padding after its elements. */
static const mapping *trimmed(const stage_call *call, const mapping *packet)
{
    if (packet->count == 1 && packet->factors[0].kind != FACTOR_COMPOSITE)
        mapping_resize(scope_context_of(call->scope)->mappings, packet, packet->factors[0].live, &packet);
    return packet;
}

/* The form as it can be written on this receiver: Time with Packet follow by themselves, a Packet alone is that of the stream, and
 * arguments are what they usually are. The rest stays a name. */
static const char *spelling(const stage_call *call, const stage_form *f, bool *is_whole)
{
    bool generic = scope_is_generic(call->scope);
    arena *a = scope_context_of(call->scope)->arena;
    const op *o = call->receiver.op;
    const mapping *packet = o && call->receiver.kind == VALUE_TENSOR ? o->out.part[PACKET] : NULL;
    strbuf text;
    strbuf_init(&text, a);
    strbuf_puts(&text, f->name);
    *is_whole = true;
    if (strcmp(f->name, "contract_packet") == 0) /* the tree usually sums the whole packet */
        strbuf_puts(&text, "::<m![1]>");
    else if (f->type_count == 1 && f->types[0] == TYPE_PACKET && packet) {
        const mapping *kept = strcmp(f->name, "commit_trim") == 0 ? trimmed(call, packet) : packet;
        strbuf_printf(&text, "::<m![%s]>", mapping_text(kept, a));
        *is_whole = !generic && !mapping_is_local(kept);
    } else if (f->type_count && !(f->type_count == 2 && f->types[0] == TYPE_TIME && f->types[1] == TYPE_PACKET)) {
        strbuf_printf(&text, "::<%s>", parameters(f, a));
        *is_whole = false;
    }
    strbuf_puts(&text, "(");
    for (unsigned i = 0; i < f->argument_count; i++) {
        const char *usual = arguments[f->arguments[i]].usual[dialect_of(call) == DIALECT_APRIL];
        *is_whole = *is_whole && usual;
        put_argument(&text, i, f->arguments[i], usual);
    }
    strbuf_puts(&text, ")");
    return text.text;
}

/* Where the variable that an argument names was bound. */
static const symbol *note_binding(const stage_call *call, diag *d, const ast *argument)
{
    while (ast_is(argument, AST_BORROW))
        argument = ast_kid(argument, 0);
    const symbol *y = ast_is(argument, AST_PATH) ? scope_find_path(call->scope, VALUE_NAMES, argument) : NULL;
    if (!y || y->kind != SYMBOL_VARIABLE)
        return NULL;
    diag_note(stage_diags(call), d, y->range, "`%s` is bound here", y->name);
    return y;
}

/* `device.main` where another part of `device` is wanted. */
static void help_unit(const stage_call *call, diag *d, const ast *argument, const char *label)
{
    while (ast_is(argument, AST_BORROW))
        argument = ast_kid(argument, 0);
    const ast *of = ast_is(argument, AST_FIELD) ? ast_kid(argument, 0) : NULL;
    const symbol *y = of && ast_is(of, AST_PATH) ? scope_find_path(call->scope, VALUE_NAMES, of) : NULL;
    if (y && y->kind == SYMBOL_VARIABLE) {
        diag_help(stage_diags(call), d, "write &mut %s%s", y->name, strchr(label, '.'));
        diag_replace(stage_diags(call), d, argument->range, "%s%s", y->name, strchr(label, '.'));
    } else
        diag_help(stage_diags(call), d, "write &mut device%s, by the name that the kernel's device has", strchr(label, '.'));
}

static unsigned types_given(const stage_call *call)
{
    const ast *generics = ast_kid(call->node, 1);
    return ast_is(generics, AST_GENERIC_ARGS) ? generics->kid_count : 0;
}

static bool counts_fit(const stage_call *call, const stage_form *f)
{
    unsigned given = types_given(call);
    return (given == 0 || given == f->type_count) && ast_kid(call->node, 2)->kid_count == f->argument_count;
}

void stage_help_unroll(diag_list *diags, diag *d, const ast *loop)
{
    diag_note(diags, d, loop->name_range, "what this loop counts is known when it runs");
    diag_help(diags, d, "write #[unroll] in front of the loop");
    diag_replace(diags, d, (src_range){loop->range.file, loop->range.begin, loop->range.begin}, "#[unroll] ");
}

/* `x.view()` where the other one is wanted. */
void stage_help_view(diag_list *diags, diag *d, const ast *written, bool mutable)
{
    const char *wanted = mutable ? "view_mut" : "view", *other = mutable ? "view" : "view_mut";
    diag_help(diags, d, "write %s() instead of %s()", wanted, other);
    if (ast_is(written, AST_METHOD) && strcmp(written->text, other) == 0)
        diag_replace(diags, d, written->name_range, "%s", wanted);
}

/* A command has the number in it, so it is the same in every turn of the loops around the call. Diagnoses. */
static bool check_constant(const stage_call *call, unsigned i)
{
    const value *v = &call->args[i];
    if (!v->loop || arguments[call->form->arguments[i]].runs)
        return true;
    diag *d = diag_add(stage_diags(call), E_CONST, ast_kid(call->node, 2)->kids[i]->range,
                       "argument %u of `%s` must be a compile-time constant", i + 1, call->form->name);
    stage_help_unroll(stage_diags(call), d, v->loop);
    return false;
}

bool stage_lacks_borrow(const ast *argument, const value *v, bool mutable)
{
    if (ast_is(argument, AST_BORROW))
        return mutable && argument->text[0] == '\0';
    return v->owned;
}

const char *stage_borrow_text(bool mutable)
{
    return mutable ? "&mut" : "&";
}

void stage_help_borrow(diag_list *diags, diag *d, const ast *argument, bool mutable)
{
    const ast *of = ast_is(argument, AST_BORROW) ? ast_kid(argument, 0) : argument;
    const char *mark = borrow_texts[mutable ? BORROWED_MUT : BORROWED];
    diag_help(diags, d, "write %s%s", mark, ast_text(of, diags->arena));
    diag_replace(diags, d, (src_range){of->range.file, argument->range.begin, of->range.begin}, "%s", mark);
}

static bool is_unborrowed_vrf(const ast *argument, const value *v)
{
    return v->kind == VALUE_TENSOR && v->op->out.kind == TENSOR_VRF && stage_lacks_borrow(argument, v, false);
}

const ast *stage_unborrowed_operand(const ast *argument, const value *v)
{
    if (is_unborrowed_vrf(argument, v))
        return argument;
    for (uint32_t i = 0; ast_is(argument, AST_TUPLE) && v->kind == VALUE_LIST && i < v->count && i < argument->kid_count; i++)
        if (is_unborrowed_vrf(argument->kids[i], &v->items[i]))
            return argument->kids[i];
    return NULL;
}

/* Is it borrowed, where the call takes a reference, and read, where it takes a view to read? Diagnoses. */
static bool check_borrowed(const stage_call *call, unsigned i)
{
    stage_argument wanted = call->form->arguments[i];
    const char *name = call->form->name;
    const value *v = &call->args[i];
    const ast *argument = ast_kid(call->node, 2)->kids[i];
    bool mutable = arguments[wanted].borrow == BORROWED_MUT;
    const ast *operand = wanted == ARGUMENT_OPERAND || wanted == ARGUMENT_OTHER_OPERAND ? stage_unborrowed_operand(argument, v) : NULL;
    if (operand) {
        diag *d = diag_add(stage_diags(call), E_ARGUMENTS, operand->range, "`%s` takes a VrfTensor by reference, got it without `&`", name);
        stage_help_borrow(stage_diags(call), d, operand, false);
        return false;
    }
    if (arguments[wanted].kind == VALUE_VIEW && v->writable && !arguments[wanted].writable) {
        diag *d = diag_add(stage_diags(call), E_ARGUMENTS, argument->range, "`%s` reads this view, which is one to write", name);
        stage_help_view(stage_diags(call), d, argument, false);
        return false;
    }
    if (arguments[wanted].borrow == NOT_BORROWED || v->kind == VALUE_LIST || !stage_lacks_borrow(argument, v, mutable))
        return true;
    diag *d = diag_add(stage_diags(call), E_ARGUMENTS, argument->range, "argument %u of `%s` must be %s, got it without `%s`", i + 1, name,
                       arguments[wanted].name, stage_borrow_text(mutable));
    stage_help_borrow(stage_diags(call), d, argument, mutable);
    return false;
}

static bool check_arguments(const stage_call *call)
{
    const stage_form *f = call->form;
    const ast *args = ast_kid(call->node, 2);
    arena *a = scope_context_of(call->scope)->arena;
    diag_list *diags = stage_diags(call);
    unsigned given = types_given(call);
    if (given && given != f->type_count) {
        diag *d = diag_add(diags, E_ARGUMENTS, ast_kid(call->node, 1)->range, "`%s` takes %u type argument%s or none, got %u", f->name,
                           f->type_count, f->type_count == 1 ? "" : "s", given);
        diag_help(diags, d, "they are %s", signature(f, a));
        return false;
    }
    if (args->kid_count != f->argument_count) {
        diag *d = diag_add(diags, E_ARGUMENTS, call->node->name_range, "`%s` takes %u argument%s, got %u", f->name, f->argument_count,
                           f->argument_count == 1 ? "" : "s", args->kid_count);
        diag_help(diags, d, "the call is %s", signature(f, a));
        return false;
    }
    for (unsigned i = 0; i < f->argument_count; i++) {
        const value *v = &call->args[i];
        stage_argument wanted = f->arguments[i];
        if (v->kind == VALUE_ERROR)
            return false;
        if (argument_fits(wanted, v)) {
            if (!check_constant(call, i) || !check_borrowed(call, i))
                return false;
            continue;
        }
        if (arguments[wanted].writable && v->kind == VALUE_VIEW && !v->writable) {
            diag *d = diag_add(diags, E_VIEW_READ_ONLY, args->kids[i]->range, "`%s` writes into this view, which is only read", f->name);
            stage_help_view(diags, d, args->kids[i], true);
            return false;
        }
        diag *d =
            diag_add(diags, E_ARGUMENTS, args->kids[i]->range, "argument %u of `%s` must be %s, got %s", i + 1, f->name,
                     arguments[wanted].name, v->kind == VALUE_INT ? arena_printf(a, "%lld", (long long)v->number) : value_kind_name(v));
        const symbol *named = note_binding(call, d, args->kids[i]);
        if (arguments[wanted].kind == VALUE_UNIT_OF_CONTEXT)
            help_unit(call, d, args->kids[i], arguments[wanted].label);
        if (named && arguments[wanted].kind == VALUE_VIEW && v->kind == VALUE_TENSOR && v->op &&
            v->op->out.kind == arguments[wanted].tensor) {
            diag_help(diags, d, "write %s.%s()", named->name, arguments[wanted].writable ? "view_mut" : "view");
            diag_replace(diags, d, args->kids[i]->range, "%s.%s()", named->name, arguments[wanted].writable ? "view_mut" : "view");
        }
        if (v->kind == VALUE_OP_WITH_MODE && wanted == ARGUMENT_VECTOR_OP)
            diag_help(diags, d,
                      stage_dialects(arena_printf(a, "%s_with_mode", f->name), 0, f->argument_count + 1)
                          ? "write %s_with_mode(operation, mode, ..)"
                          : "`%s` has the mode as an argument of its own",
                      f->name);
        if (arguments[wanted].kind == VALUE_VIEW && arguments[wanted].tensor == TENSOR_DM && v->kind == VALUE_VIEW)
            diag_help(diags, d, "the Tensor Unit reads and writes DM: copy it there first, with to_dm");
        return false;
    }
    return true;
}

enum { FITS = 4 };

/* How well a form answers the call: first what fits it altogether, of that what the file's release writes. */
static int rank_of(const stage_call *call, const stage_form *f)
{
    bool counts = counts_fit(call, f), fits = counts;
    for (unsigned i = 0; i < f->argument_count && fits; i++)
        fits = call->args[i].kind == VALUE_ERROR || argument_fits(f->arguments[i], &call->args[i]);
    return FITS * fits + 2 * (f->dialects >> dialect_of(call) & 1) + counts;
}

/* The form that the call has in the one release that is asked for; NULL: it has none there. */
static const stage_form *form_of_release(const stage_call *call, uint64_t receiver, dialect d)
{
    for (size_t i = 0; i < FORMS; i++)
        if (forms[i].row == call->row && (forms[i].dialects >> d & 1) && (receivers_of(&forms[i]) & receiver))
            return &forms[i];
    return NULL;
}

/* Where one release is asked for, is the form written so in it? Diagnoses. */
static bool check_release(const stage_call *call, uint64_t receiver)
{
    const scope_context *c = scope_context_of(call->scope);
    if (!c->one_dialect || (call->form->dialects >> c->dialect & 1))
        return true;
    const stage_form *f = form_of_release(call, receiver, c->dialect);
    diag *d = diag_add(stage_diags(call), E_DIALECT, call->node->name_range, "%s does not write `%s`", dialect_name(c->dialect),
                       signature(call->form, c->arena));
    if (f)
        diag_help(stage_diags(call), d,
                  c->dialect == DIALECT_NEWEST ? "in %s it is %s; visac --upgrade rewrites the file" : "in %s it is %s",
                  dialect_name(c->dialect), signature(f, c->arena));
    else
        diag_help(stage_diags(call), d, "%s offers: %s", value_kind_name(&call->receiver), offered(call));
    return false;
}

/* Memory whose type is not known yet may be viewed, as what is expected of the view, and committed to. */
static bool check_known(const stage_call *call)
{
    op *of = call->receiver.op;
    if (of && of->open && !stage_settle(of, call->expected) && call->row->gives != GIVES_VIEW)
        stage_refuse_open(call->kernel, stage_diags(call), of);
    bool known = !of || !of->open || call->row->gives == GIVES_VIEW;
    for (unsigned i = 0; i < call->form->argument_count; i++) {
        op *given = call->args[i].op;
        if (!given || !given->open || call->row->operation == IR_COMMIT)
            continue;
        stage_refuse_open(call->kernel, stage_diags(call), given);
        known = false;
    }
    return known && !(of && of->bad && of->kind == IR_ALLOC);
}

value stage_build(const stage_call *call)
{
    index_add_value(scope_context_of(call->scope), call->node->name_range, &call->receiver);
    if (call->receiver.kind == VALUE_ERROR) {
        check_alone(call);
        return stage_error;
    }
    bool known = false, own = false; /* own: the file's release has it, on whatever receiver */
    stage_call found = *call;
    uint64_t bit = receiver_bit(&call->receiver);
    int rank = -1;
    form_search s = forms_of(call->node->text);
    for (const stage_form *f; (f = next_form(&s));) {
        known = true;
        own = own || (f->dialects >> dialect_of(call) & 1);
        int its = receivers_of(f) & bit ? rank_of(call, f) : -1;
        found.form = its > rank ? f : found.form;
        rank = its > rank ? its : rank;
    }
    bool other = found.form && own && !(found.form->dialects >> dialect_of(call) & 1) && rank < FITS;
    if (found.form && !other) { /* a form of another release counts where it fits */
        found.row = found.form->row;
        if (check_release(&found, bit) && check_arguments(&found) && check_known(&found)) {
            value v = found.row->make(&found);
            v.owned = v.kind == VALUE_TENSOR;
            return v;
        }
    } else {
        unknown_method(call, known);
    }
    call->kernel->bad = true;
    return stage_error;
}

/* ---- for readers ---- */

static const char *receivers_text(uint64_t receivers, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    for (tensor_kind k = 0; k < TENSOR_KIND_COUNT; k++)
        if (receivers >> k & 1)
            strbuf_printf(&s, "%s`%s`", s.bytes ? ", " : "", tensor_kind_name(k));
    for (tensor_kind k = 0; VIEW_BITS + k < UNIT_BIT; k++)
        if (receivers >> (VIEW_BITS + k) & 1)
            strbuf_printf(&s, "%sa view of `%s`", s.bytes ? ", " : "", tensor_kind_name(k));
    if (receivers & ON_UNIT)
        strbuf_puts(&s, "`ctx.main`, `ctx.sub`");
    if (receivers & ON_SUB)
        strbuf_printf(&s, "%s`ctx.sub`", s.bytes ? ", " : "");
    if (receivers & ON_DMA)
        strbuf_printf(&s, "%s`ctx.tdma`", s.bytes ? ", " : "");
    if (receivers & ON_INDIRECT)
        strbuf_printf(&s, "%sa plan of rows", s.bytes ? ", " : "");
    if (receivers & ON_SCALAR)
        strbuf_printf(&s, "%s`HbmScalar`", s.bytes ? ", " : "");
    if (receivers & ON_PLAN)
        strbuf_printf(&s, "%sa plan of what moves", s.bytes ? ", " : "");
    if (receivers & ON_BEGIN)
        strbuf_puts(&s, "what `begin` gives");
    if (receivers & ON_TYPE)
        strbuf_puts(&s, "`HbmTensor`, `DmTensor`");
    return s.text;
}

static const char *gives_text(int gives, arena *a)
{
    switch (gives) {
    case GIVES_VIEW: return "a view";
    case GIVES_INDIRECT: return "a plan of rows";
    case GIVES_PLAN: return "a plan of what moves";
    case GIVES_RUNNING: return "a number";
    case GIVES_BEGIN: return "the beginning of a stream";
    case GIVES_NOTHING: return "";
    case GIVES_SAME: return "the same";
    case GIVES_OWN_TYPE: return "a tensor of that type";
    default: return arena_printf(a, "`%s`", tensor_kind_name((tensor_kind)gives));
    }
}

static const char *arguments_text(const stage_form *f, arena *a)
{
    const char *text = "";
    for (unsigned i = 0; i < f->argument_count; i++)
        text = arena_printf(a, "%s%s%s", text, i ? ", " : "", arguments[f->arguments[i]].name);
    return text;
}

static const char *dialects_text(unsigned dialects, arena *a)
{
    const char *text = "";
    for (dialect d = 0; d < DIALECT_COUNT; d++)
        if (dialects >> d & 1)
            text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", dialect_name(d));
    return text;
}

/* Without the marks of words that each release has its own for: descriptions are of all of them. */
static const char *unmarked(const char *text, arena *a)
{
    char *out = arena_strdup(a, text), *to = out;
    for (const char *at = text; *at; at++)
        if (*at != '@')
            *to++ = *at;
    *to = '\0';
    return out;
}

static void describe(const stage_form *f, arena *a, stage_description *out)
{
    *out = (stage_description){.name = f->name,
                               .parameters = parameters(f, a),
                               .generics = f->type_count,
                               .signature = unmarked(signature(f, a), a),
                               .summary = f->row->summary,
                               .receivers = receivers_text(receivers_of(f), a),
                               .arguments = unmarked(arguments_text(f, a), a),
                               .gives = gives_text(f->row->gives, a),
                               .dialects = dialects_text(f->dialects, a),
                               .on_value = !(receivers_of(f) & ON_TYPE)};
}

bool stage_describe(size_t i, dialect d, const value *receiver, arena *a, stage_description *out)
{
    uint64_t bit = receiver ? receiver_bit(receiver) : ~ON_TYPE;
    for (size_t f = 0; f < FORMS; f++)
        if (is_first_form(f, d, bit) && i-- == 0) {
            describe(&forms[f], a, out);
            return true;
        }
    return false;
}

bool stage_describe_form(size_t i, arena *a, stage_description *out)
{
    if (i < FORMS)
        describe(&forms[i], a, out);
    return i < FORMS;
}
