/* What musl does not have of the C library that libelf, libz and jansson were compiled for.
 *
 * The one idea: the archives of a Debian system are compiled against glibc's headers, with checked forms of a few functions; a program that
 * is linked with musl (cmake/dependencies.cmake) checks nothing there and calls the functions themselves. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int __snprintf_chk(char *text, size_t room, int flag, size_t bytes, const char *format, ...);
int __vsnprintf_chk(char *text, size_t room, int flag, size_t bytes, const char *format, va_list arguments);
char *__strncpy_chk(char *to, const char *from, size_t count, size_t bytes);

int __vsnprintf_chk(char *text, size_t room, int flag, size_t bytes, const char *format, va_list arguments)
{
    (void)flag, (void)bytes;
    return vsnprintf(text, room, format, arguments);
}

int __snprintf_chk(char *text, size_t room, int flag, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = __vsnprintf_chk(text, room, flag, bytes, format, arguments);
    va_end(arguments);
    return length;
}

char *__strncpy_chk(char *to, const char *from, size_t count, size_t bytes)
{
    (void)bytes;
    return strncpy(to, from, count);
}

void *rawmemchr(const void *from, int byte)
{
    const unsigned char *p = from;
    while (*p != (unsigned char)byte)
        p++;
    return (void *)p;
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}
