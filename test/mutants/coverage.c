/* Linked into every library and program of the coverage build, which the compiler fills with calls (-fsanitize-coverage=trace-pc), one for
 * each basic block. A call sets the byte of its place in a file that is shared by all processes of a test, so that a process that
 * was killed has left its traces too. Each object has its own copy of this file: places count from the object's first byte. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAP_BYTES = 16 << 20 };

extern __attribute__((visibility("hidden"))) const char __ehdr_start[];
static unsigned char *map;

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
    uintptr_t place = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start;
    if (map && place < MAP_BYTES)
        map[place] = 1;
}

static __attribute__((constructor(101))) void coverage_begin(void)
{
    const char *folder = getenv("MUTANTS_COVERAGE");
    Dl_info self;
    char path[4096];
    if (!folder || !dladdr(__ehdr_start, &self) || !self.dli_fname)
        return;
    const char *slash = strrchr(self.dli_fname, '/');
    snprintf(path, sizeof path, "%s/%s", folder, slash ? slash + 1 : self.dli_fname);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return;
    void *at = ftruncate(file, MAP_BYTES) == 0 ? mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (at != MAP_FAILED)
        map = at;
}
