#include "codegen/reference/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char out_of_memory[] = "out of memory";

char *fault_text(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int bytes = vasprintf(&text, format, args);
    va_end(args);
    return bytes < 0 ? out_of_memory : text;
}

void fault_free(void *text)
{
    if (text != out_of_memory)
        free(text);
}
