#include "passes/step/named.h"

#include <string.h>

#include "support/budget.h"
#include "support/choice.h"

/* Is it ".12"? */
static bool is_number(const char *rest)
{
    return *rest == '.' && rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1);
}

bool step_is_named(const step_graph_node *n, const char *stem)
{
    size_t bytes = strlen(stem);
    if (strncmp(n->name, stem, bytes) != 0)
        return false;
    const char *rest = n->name + bytes;
    return !*rest || is_number(rest);
}

/* The next of "a+=b.2+c", and where the one after it begins; NULL: there is none. */
static const char *next_name(const step_rewrite *r, const char **names)
{
    size_t bytes = strcspn(*names, "+");
    const char *name = bytes > 0 ? arena_strndup(r->from->arena, *names, bytes) : NULL;
    *names += bytes + ((*names)[bytes] == '+');
    return name;
}

static bool is_meant(const step_graph_node *n, const char *name)
{
    return name[0] == '=' ? strcmp(n->name, name + 1) == 0 : step_is_named(n, name);
}

bool step_is_wanted(const step_rewrite *r, const step_graph_node *n)
{
    const char *names = step_rewrite_text(r, "node", NULL);
    bool wanted = !names;
    while (names && *names && !wanted) {
        const char *name = next_name(r, &names);
        wanted = name && is_meant(n, name);
    }
    return wanted;
}

static bool fits(step_rewrite *r, const step_graph_node *n, const step_wanted *w)
{
    return !w->fits || w->fits(r, n);
}

/* "tile" of "tile.12". */
static const char *stem_of(const step_graph_node *n, arena *a)
{
    const char *dot = strrchr(n->name, '.');
    return dot && is_number(dot) ? arena_strndup(a, n->name, (size_t)(dot - n->name)) : n->name;
}

/* Names of those that fit, each once, in the order of the graph, ended by NULL: of all under a name that name, or the names themselves. */
static const char **known_names(step_rewrite *r, const step_wanted *w, bool exact, size_t *count)
{
    arena *a = r->from->arena;
    const char **known = ARENA_ARRAY(a, const char *, r->from->node_count + 1);
    *count = 0;
    for (size_t i = 0; i < r->from->node_count; i++) {
        const step_graph_node *n = r->from->nodes[i];
        if (!fits(r, n, w))
            continue;
        const char *name = exact ? n->name : stem_of(n, a);
        bool is_new = true;
        for (size_t k = 0; k < *count && is_new && !exact; k++)
            is_new = strcmp(known[k], name) != 0;
        budget_spend(a, *count + 1);
        if (is_new)
            known[(*count)++] = name;
    }
    return known;
}

static bool refuse(step_rewrite *r, const char *name, const step_wanted *w, const step_graph_node *other)
{
    enum { SHOWN_MAX = 12 };
    arena *a = r->from->arena;
    bool exact = name[0] == '=';
    size_t count;
    const char *bare = name + exact, **known = known_names(r, w, exact, &count), *near = choice_near(bare, known);
    const char *more = count > SHOWN_MAX ? arena_printf(a, " and %zu others", count - SHOWN_MAX) : "";
    known[count > SHOWN_MAX ? SHOWN_MAX : count] = NULL;
    const char *all = arena_printf(a, "%s are %s%s; all of one `let` have its name, and `=NAME.2` is the one that --emit=ir shows so",
                                   w->all, choice_list(a, known), more);
    const char *help = near && !other ? arena_printf(a, "did you mean `%s%s`? %s", exact ? "=" : "", near, all) : all;
    if (other)
        step_rewrite_refuse(r, other, help, "`%s` (%s) is no %s", bare, step_op_row_of(other->spec.op)->name, w->one);
    else
        step_rewrite_refuse(r, NULL, help, "no operator is called `%s`", bare);
    return false;
}

bool step_wanted_exists(step_rewrite *r, const char *name, const step_wanted *w)
{
    const step_graph_node *other = NULL;
    bool any = false;
    budget_spend(r->from->arena, r->from->node_count);
    for (size_t i = 0; i < r->from->node_count; i++) {
        const step_graph_node *n = r->from->nodes[i];
        bool fit = fits(r, n, w), meant = is_meant(n, name);
        if (fit && meant)
            return true;
        any = any || fit;
        other = meant && !other ? n : other;
    }
    return !any || refuse(r, name, w, other);
}

bool step_wanted_exist(step_rewrite *r, const step_wanted *w)
{
    const char *names = step_rewrite_text(r, "node", NULL);
    while (names && *names) {
        const char *name = next_name(r, &names);
        if (!name || !name[name[0] == '=']) {
            step_rewrite_refuse(r, NULL, "write node=A, node=A+B or node==A.2", "`node` has an empty name");
            return false;
        }
        if (!step_wanted_exists(r, name, w))
            return false;
    }
    return true;
}
