#include "support/warning.h"

#include <ctype.h>
#include <string.h>

enum { NAME_BYTES = 64 };

const char *warning_name(diag_id id, char *out, size_t bytes)
{
    const char *name = diag_row_of(id)->name + 2; /* after W- */
    size_t i = 0;
    for (; name[i] && i + 1 < bytes; i++)
        out[i] = (char)tolower((unsigned char)name[i]);
    out[i] = '\0';
    return out;
}

static bool is_meant(diag_id id, const char *name)
{
    char own[NAME_BYTES];
    if (diag_row_of(id)->severity != DIAG_WARNING)
        return false;
    if (strcmp(name, "all") == 0 || (strcmp(name, "performance") == 0 && diag_row_of(id)->on_request))
        return true;
    return strcmp(name, warning_name(id, own, sizeof own)) == 0;
}

static const char *behind(const char *text, const char *prefix)
{
    size_t bytes = strlen(prefix);
    return strncmp(text, prefix, bytes) == 0 ? text + bytes : NULL;
}

bool warning_option(warning_levels *levels, const char *option)
{
    static const struct {
        const char *prefix;
        warning_choice choice;
    } forms[] = {{"error=", WARNING_ERROR}, {"no-error=", WARNING_PLAIN}, {"no-", WARNING_OFF}, {"", WARNING_ON}};
    if (strcmp(option, "error") == 0) {
        levels->errors = true;
        return true;
    }
    bool known = false;
    for (size_t f = 0; f < sizeof forms / sizeof *forms && !known; f++) {
        const char *name = behind(option, forms[f].prefix);
        for (int id = 0; name && id < DIAG_ID_COUNT; id++)
            if (is_meant((diag_id)id, name)) {
                levels->chosen[id] = (unsigned char)forms[f].choice;
                known = true;
            }
    }
    return known;
}

bool warning_level(const warning_levels *levels, diag_id id, diag_severity *severity)
{
    const diag_row *row = diag_row_of(id);
    warning_choice choice = (warning_choice)levels->chosen[id];
    *severity = row->severity;
    if (row->severity == DIAG_ERROR)
        return true;
    if (choice == WARNING_OFF || (choice == WARNING_DEFAULT && row->on_request))
        return false;
    if (choice == WARNING_ERROR || (levels->errors && choice != WARNING_PLAIN))
        *severity = DIAG_ERROR;
    return true;
}
