/* Which constants price a command: documented rates (the Switch Engine with one channel, or with both where the sub context leaves its own
 * free), what published schedules charge, or what the device took. */
#ifndef VISA_RUNTIME_TIMING_TIMING_PRESET_H
#define VISA_RUNTIME_TIMING_TIMING_PRESET_H

#include <stdbool.h>

typedef enum timing_preset { TIMING_DOCUMENTED, TIMING_SCHEDULE, TIMING_MEASURED, TIMING_CHANNELS, TIMING_PRESETS } timing_preset;

bool timing_preset_by_name(const char *name, timing_preset *out); /* "documented", "schedule", "measured", "channels" */
const char *timing_preset_name(timing_preset p);

/* Is the machine timed by documented rates, with its banks and caches? */
static inline bool timing_by_rates(timing_preset p)
{
    return p == TIMING_DOCUMENTED || p == TIMING_CHANNELS;
}

#endif
