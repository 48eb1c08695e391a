/* Which constants price a command: documented rates, what published schedules charge, or what the device took. */
#ifndef VISA_RUNTIME_TIMING_TIMING_PRESET_H
#define VISA_RUNTIME_TIMING_TIMING_PRESET_H

#include <stdbool.h>

typedef enum timing_preset { TIMING_DOCUMENTED, TIMING_SCHEDULE, TIMING_MEASURED } timing_preset;

bool timing_preset_by_name(const char *name, timing_preset *out); /* "documented", "schedule", "measured" */
const char *timing_preset_name(timing_preset p);

#endif
