#include "frontend/cfg.h"

#include <ctype.h>
#include <string.h>

typedef enum truth { IS_FALSE, IS_TRUE, UNKNOWN } truth;

static const char *blanks(const char *c)
{
    return c + strspn(c, " \t\r\n");
}

static truth opposite(truth t)
{
    return t == UNKNOWN ? t : t == IS_TRUE ? IS_FALSE : IS_TRUE;
}

/* `name` or `name = "value"`. */
static truth option(const char *name, size_t length, const char *value)
{
    static const struct {
        const char *name, *value; /* NULL: any */
        truth is;
    } rows[] = {{"feature", NULL, IS_FALSE},
                {"debug_assertions", NULL, IS_FALSE},
                {"furiosa_opt", NULL, IS_TRUE},
                {"backend", "\"npu\"", IS_TRUE},
                {"backend", NULL, IS_FALSE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool named = strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0;
        if (named && (!rows[i].value || strncmp(rows[i].value, value, strlen(rows[i].value)) == 0))
            return rows[i].is;
    }
    return UNKNOWN;
}

enum { LEVELS = 16 }; /* of brackets: what is deeper is not known */

static truth predicate(const char **at, int level);

/* What stands between brackets, from `(` to behind `)`. */
static truth list(const char **at, bool all, int level)
{
    truth out = all ? IS_TRUE : IS_FALSE;
    if (level >= LEVELS) {
        *at += strlen(*at);
        return UNKNOWN;
    }
    for (*at = blanks(*at + 1); **at != ')' && **at != '\0'; *at = blanks(*at)) {
        truth t = predicate(at, level + 1);
        bool decides = t == (all ? IS_FALSE : IS_TRUE);
        out = decides ? t : t == UNKNOWN && out != (all ? IS_FALSE : IS_TRUE) ? UNKNOWN : out;
        *at = blanks(*at);
        *at += **at == ',';
    }
    *at += **at == ')';
    return out;
}

static truth predicate(const char **at, int level)
{
    const char *name = blanks(*at), *end = name;
    while (isalnum((unsigned char)*end) || *end == '_')
        end++;
    size_t length = (size_t)(end - name);
    *at = blanks(end);
    if (length == 0) {
        *at += strlen(*at);
        return UNKNOWN;
    }
    if (**at == '(') {
        bool negates = length == 3 && memcmp(name, "not", 3) == 0, any = length == 3 && memcmp(name, "any", 3) == 0;
        truth t = list(at, !any, level);
        return negates ? opposite(t) : any || (length == 3 && memcmp(name, "all", 3) == 0) ? t : UNKNOWN;
    }
    const char *value = "";
    if (**at == '=') {
        value = blanks(*at + 1);
        *at = *value == '"' ? strchr(value + 1, '"') : NULL;
        *at = *at ? *at + 1 : value + strlen(value);
    }
    return option(name, length, value);
}

bool cfg_holds(const char *text, bool *out)
{
    const char *at = blanks(text);
    truth t = *at == '(' ? list(&at, true, 0) : UNKNOWN;
    *out = t == IS_TRUE;
    return t != UNKNOWN;
}

bool cfg_leaves_out(const char *text)
{
    const char *at = blanks(text);
    return *at == '(' && list(&at, true, 0) == IS_FALSE;
}
