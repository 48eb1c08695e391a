#include "tools/explore.h"

#include <stdio.h>
#include <string.h>

#include "tools/options.h"

static bool read_count(const char *text, int64_t *out)
{
    uint64_t n;
    if (!tool_number(text, &n) || n == 0 || n > INT64_MAX)
        return false;
    *out = (int64_t)n;
    return true;
}

int tool_explore_limits(const char *tool, visa_explore_options *o, const char *text)
{
    const struct {
        const char *name;
        int64_t *value;
    } limits[] = {{"multipliers=", &o->multipliers},
                  {"weight-bits=", &o->weight_bits},
                  {"input-bits=", &o->input_bits},
                  {"block-bits=", &o->block_bits},
                  {"rows=", &o->rows}};
    for (const char *at = text; *at;) {
        char word[64];
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        bool known = strcmp(word, "target") == 0;
        o->target_limits = o->target_limits || known;
        for (size_t i = 0; i < sizeof limits / sizeof *limits && !known; i++) {
            size_t name = strlen(limits[i].name);
            known = strncmp(word, limits[i].name, name) == 0 && read_count(word + name, limits[i].value);
        }
        if (!known)
            return tool_usage_error(tool, "--limit: `%s` is not target, multipliers=N, weight-bits=N, input-bits=N, block-bits=N or rows=N",
                                    word);
        at += length + (at[length] == ',');
    }
    return EXIT_DONE;
}

bool tool_explore_limited(const visa_explore_options *o)
{
    return o->target_limits || o->multipliers || o->weight_bits || o->input_bits || o->block_bits || o->rows;
}

int tool_explore_target(const char *tool, visa_explore_options *o, const char *text)
{
    return read_count(text, &o->target_cycles) ? EXIT_DONE
                                               : tool_usage_error(tool, "--target-cycles takes a number of cycles, not `%s`", text);
}

int tool_explore_rate(const char *tool, visa_explore_options *o, const char *text)
{
    return read_count(text, &o->target_rate)
               ? EXIT_DONE
               : tool_usage_error(tool, "--target-rate takes a number of inferences per second, not `%s`", text);
}
