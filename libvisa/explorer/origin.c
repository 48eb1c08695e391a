#include "libvisa/explorer/origin.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HTTP_PORT = 80 };

bool origin_host_is_ours(const char *host, unsigned port)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char with_port[32];
    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        snprintf(with_port, sizeof with_port, "%s:%u", names[i], port);
        if (strcasecmp(host, with_port) == 0 || (port == HTTP_PORT && strcasecmp(host, names[i]) == 0))
            return true;
    }
    return false;
}

bool origin_page_is_ours(const char *page, unsigned port)
{
    static const char scheme[] = "http://";
    return !page || (strncmp(page, scheme, sizeof scheme - 1) == 0 && origin_host_is_ours(page + sizeof scheme - 1, port));
}
