/* Which constants price a command: documented rates, or what published schedules charge. */
#ifndef VISA_RUNTIME_TIMING_TIMING_PRESET_H
#define VISA_RUNTIME_TIMING_TIMING_PRESET_H

#include <stdbool.h>

typedef enum timing_preset { TIMING_DOCUMENTED, TIMING_SCHEDULE } timing_preset;

bool timing_preset_by_name(const char *name, timing_preset *out); /* "documented", "schedule" */
const char *timing_preset_name(timing_preset p);

#endif
