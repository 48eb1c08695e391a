/* Makes `option_rows` of the rows of OPTIONS, a program's .def, for its one source file that has the functions. Included once there,
 * after `arguments`, without a guard:
 *
 * OPTION(symbol, name, letter, argument, form, of, help) argument is NONE, REQUIRED or OPTIONAL; option_symbol takes it; `of`: ANY, or what
 *                                                       a file has to hold for the option to mean something, OF_KERNELS | ..
 * OPTION_OF_RUN(symbol, ..)                             tool_option_symbol of tools/options.h takes it; `arguments` begins with a tool_run
 * OPTION_ONE_OF, OPTION_OF_RUN_ONE_OF(values, symbol, ..) the same with one of `values`, "a|b|c"
 * OPTION_FLAG, _TEXT, _NUMBER, _LIMIT(member, ..)       sets this member of `arguments`
 * OPTION_CHOICE(values, member, ..)                     sets this int to the number of the argument among `values`
 * OPTION_LINE(form, help)                               one more line of help
 * OPTION_USAGE(arguments, help), OPTION_ABOUT(text), OPTION_STATUS(text) of the program as a whole */
#define NONE no_argument
#define REQUIRED required_argument
#define OPTIONAL optional_argument
#define OPTION(symbol, name, letter, argument, form, of, help) static int option_##symbol(void *arguments, const char *text);
#define OPTION_ONE_OF(values, symbol, ...) OPTION(symbol, __VA_ARGS__)
#define OPTION_OF_RUN(symbol, ...)
#define OPTION_OF_RUN_ONE_OF(values, symbol, ...)
#define OPTION_FLAG(member, ...)
#define OPTION_TEXT(member, ...)
#define OPTION_NUMBER(member, ...)
#define OPTION_LIMIT(member, ...)
#define OPTION_CHOICE(values, member, ...)
#define OPTION_LINE(form, help)
#define OPTION_USAGE(form, help)
#define OPTION_ABOUT(text)
#define OPTION_STATUS(text)
#include OPTIONS
#include "tools/option_undef.h"
static const option_row option_rows[] = {
#define OPTION_ROW(kind, values, at, take, name, letter, argument, form, of, help) \
    {name, letter, argument, form, values, help, kind, of, at, take},
#define OPTION_SETS(kind, values, member, ...) OPTION_ROW(kind, values, offsetof(arguments, member), NULL, __VA_ARGS__)
#define OPTION(symbol, ...) OPTION_ROW(OPTION_IS_CALL, NULL, 0, option_##symbol, __VA_ARGS__)
#define OPTION_ONE_OF(values, symbol, ...) OPTION_ROW(OPTION_IS_CALL, values, 0, option_##symbol, __VA_ARGS__)
#define OPTION_OF_RUN(symbol, ...) OPTION_ROW(OPTION_IS_CALL, NULL, 0, tool_option_##symbol, __VA_ARGS__)
#define OPTION_OF_RUN_ONE_OF(values, symbol, ...) OPTION_ROW(OPTION_IS_CALL, values, 0, tool_option_##symbol, __VA_ARGS__)
#define OPTION_FLAG(...) OPTION_SETS(OPTION_IS_FLAG, NULL, __VA_ARGS__)
#define OPTION_TEXT(...) OPTION_SETS(OPTION_IS_TEXT, NULL, __VA_ARGS__)
#define OPTION_NUMBER(...) OPTION_SETS(OPTION_IS_NUMBER, NULL, __VA_ARGS__)
#define OPTION_LIMIT(...) OPTION_SETS(OPTION_IS_LIMIT, NULL, __VA_ARGS__)
#define OPTION_CHOICE(values, ...) OPTION_SETS(OPTION_IS_CHOICE, values, __VA_ARGS__)
#define OPTION_LINE(form, help) OPTION_ROW(OPTION_IS_LINE, NULL, 0, NULL, NULL, 0, 0, form, ANY, help)
#define OPTION_USAGE(form, help) OPTION_ROW(OPTION_IS_USAGE, NULL, 0, NULL, NULL, 0, 0, form, ANY, help)
#define OPTION_ABOUT(text) OPTION_ROW(OPTION_IS_ABOUT, NULL, 0, NULL, NULL, 0, 0, "", ANY, text)
#define OPTION_STATUS(text) OPTION_ROW(OPTION_IS_STATUS, NULL, 0, NULL, NULL, 0, 0, "", ANY, text)
#include OPTIONS
#include "tools/option_undef.h"
#undef OPTION_ROW
#undef OPTION_SETS
};
#undef NONE
#undef REQUIRED
#undef OPTIONAL
enum { OPTION_ROWS = sizeof option_rows / sizeof *option_rows };
