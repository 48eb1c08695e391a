/* Makes `option_rows` of the rows of OPTIONS, a program's .def, for its one source file that has the functions. Included once there,
 * without a guard:
 *
 * OPTION(symbol, name, letter, argument, form, help)   argument is NONE, REQUIRED or OPTIONAL; the rest is as in option_row
 * OPTION_LINE(form, help)                              one more line of help */
#define NONE no_argument
#define REQUIRED required_argument
#define OPTIONAL optional_argument
#define OPTION(symbol, name, letter, argument, form, help) static int option_##symbol(void *arguments, const char *text);
#define OPTION_LINE(form, help)
#include OPTIONS
#undef OPTION
#undef OPTION_LINE
static const option_row option_rows[] = {
#define OPTION(symbol, name, letter, argument, form, help) {name, letter, argument, form, help, option_##symbol},
#define OPTION_LINE(form, help) {NULL, 0, 0, form, help, NULL},
#include OPTIONS
#undef OPTION
#undef OPTION_LINE
};
#undef NONE
#undef REQUIRED
#undef OPTIONAL
enum { OPTION_ROWS = sizeof option_rows / sizeof *option_rows };
