/* How deep a JSON text nests, before a parser that calls itself reads it. */
#ifndef VISA_SUPPORT_JSON_NESTING_H
#define VISA_SUPPORT_JSON_NESTING_H

#include <stdbool.h>
#include <stddef.h>

/* Are arrays and objects of the text, whatever else it is, nested more than NESTING_MAX levels deep? */
bool json_nests_too_deeply(const char *text, size_t bytes);

#endif
