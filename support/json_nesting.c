#include "support/json_nesting.h"

#include "support/budget.h"

bool json_nests_too_deeply(const char *text, size_t bytes)
{
    bool in_string = false;
    int depth = 0;
    for (size_t i = 0; i < bytes && depth <= NESTING_MAX; i++) {
        char c = text[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{'))
            depth++;
        else if (!in_string && (c == ']' || c == '}'))
            depth--;
    }
    return depth > NESTING_MAX;
}
