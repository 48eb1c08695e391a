/* The options of --explore. */
#ifndef VISA_TOOLS_EXPLORE_H
#define VISA_TOOLS_EXPLORE_H

#include "include/visa.h"

/* "multipliers=256,weight-bits=64,target" into the limits. EXIT_DONE, or the status of a usage error that was printed. */
int tool_explore_limits(const char *tool, visa_explore_options *o, const char *text);
/* Was any limit given? */
bool tool_explore_limited(const visa_explore_options *o);
int tool_explore_rate(const char *tool, visa_explore_options *o, const char *text);
int tool_explore_target(const char *tool, visa_explore_options *o, const char *text);

#endif
