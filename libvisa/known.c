/* What can be named on a command line: passes, warnings, dialects, machines, diagnostics. */

#include "libvisa/compilation.h"
#include "passes/pass.h"
#include "passes/step/rewrite.h"
#include "support/warning.h"

bool visa_knows_warning(const char *option)
{
    warning_levels levels = {0};
    return warning_option(&levels, option);
}

const char *visa_explain(const char *id, const char **title)
{
    diag_id found = diag_id_by_name(id);
    if (found == DIAG_ID_COUNT)
        return NULL;
    if (title)
        *title = diag_row_of(found)->title;
    return diag_row_of(found)->explanation;
}

const char *visa_dialect_name(size_t i)
{
    return i < DIALECT_COUNT ? dialect_name((dialect)i) : NULL;
}

bool visa_knows_dialect(const char *name)
{
    dialect d;
    return dialect_by_name(name, &d);
}

const char *visa_target_name(size_t i)
{
    return target_name(i);
}

const char *visa_step_pass_name(size_t i, const char **summary, const char **parameters)
{
    for (size_t k = 0; k <= i; k++)
        if (!step_passes[k].name)
            return NULL;
    *summary = step_passes[i].summary;
    *parameters = step_passes[i].parameters;
    return step_passes[i].name;
}

const char *visa_pass_name(size_t i, const char **summary)
{
    for (size_t k = 0; k <= i; k++)
        if (!pipeline[k].name)
            return NULL;
    if (summary)
        *summary = pipeline[i].summary;
    return pipeline[i].name;
}

const char *visa_version(void)
{
    return VISA_VERSION;
}
