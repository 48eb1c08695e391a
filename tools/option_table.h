/* Makes `option_rows` of the rows of OPTIONS, a program's .def, for its one source file that has the functions. Included once there,
 * after `arguments`, without a guard:
 *
 * OPTION(symbol, name, letter, argument, form, help)    argument is NONE, REQUIRED or OPTIONAL; option_symbol takes it
 * OPTION_OF_RUN(symbol, ..)                             tool_option_symbol of tools/options.h takes it; `arguments` begins with a tool_run
 * OPTION_FLAG, _TEXT, _NUMBER, _LIMIT(member, ..)       sets this member of `arguments`
 * OPTION_LINE(form, help)                               one more line of help */
#define NONE no_argument
#define REQUIRED required_argument
#define OPTIONAL optional_argument
#define OPTION(symbol, name, letter, argument, form, help) static int option_##symbol(void *arguments, const char *text);
#define OPTION_OF_RUN(symbol, name, letter, argument, form, help)
#define OPTION_FLAG(member, name, letter, argument, form, help)
#define OPTION_TEXT OPTION_FLAG
#define OPTION_NUMBER OPTION_FLAG
#define OPTION_LIMIT OPTION_FLAG
#define OPTION_LINE(form, help)
#include OPTIONS
#undef OPTION
#undef OPTION_OF_RUN
#undef OPTION_FLAG
#undef OPTION_TEXT
#undef OPTION_NUMBER
#undef OPTION_LIMIT
#undef OPTION_LINE
static const option_row option_rows[] = {
#define OPTION(symbol, name, letter, argument, form, help) {name, letter, argument, form, help, OPTION_IS_CALL, 0, option_##symbol},
#define OPTION_OF_RUN(symbol, name, letter, argument, form, help) \
    {name, letter, argument, form, help, OPTION_IS_CALL, 0, tool_option_##symbol},
#define OPTION_SETS(kind, member, name, letter, argument, form, help) \
    {name, letter, argument, form, help, kind, offsetof(arguments, member), NULL},
#define OPTION_FLAG(...) OPTION_SETS(OPTION_IS_FLAG, __VA_ARGS__)
#define OPTION_TEXT(...) OPTION_SETS(OPTION_IS_TEXT, __VA_ARGS__)
#define OPTION_NUMBER(...) OPTION_SETS(OPTION_IS_NUMBER, __VA_ARGS__)
#define OPTION_LIMIT(...) OPTION_SETS(OPTION_IS_LIMIT, __VA_ARGS__)
#define OPTION_LINE(form, help) {NULL, 0, 0, form, help, OPTION_IS_LINE, 0, NULL},
#include OPTIONS
#undef OPTION
#undef OPTION_OF_RUN
#undef OPTION_SETS
#undef OPTION_FLAG
#undef OPTION_TEXT
#undef OPTION_NUMBER
#undef OPTION_LIMIT
#undef OPTION_LINE
};
#undef NONE
#undef REQUIRED
#undef OPTIONAL
enum { OPTION_ROWS = sizeof option_rows / sizeof *option_rows };
