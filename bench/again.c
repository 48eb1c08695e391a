/* A kernel again with another number for one of its axes, in this process: from its text, and by visa_compile_again, in turns. One line of
 * JSON for each round. Usage: bench_again FILE AXIS A B ROUNDS COMPILES */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/visa.h"

enum { MOST_BYTES = 1 << 20 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void write_binary(visa_compilation *c)
{
    const unsigned char *data;
    size_t size;
    if (c && visa_emit(c, VISA_EMIT_BINARY, &data, &size))
        return;
    fputs(c ? visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT) : "out of memory\n", stderr);
    exit(1);
}

int main(int argc, char **argv)
{
    static char text[MOST_BYTES];
    FILE *f = argc == 7 ? fopen(argv[1], "rb") : NULL;
    if (!f)
        return 2;
    size_t bytes = fread(text, 1, sizeof text, f);
    fclose(f);
    int64_t sizes[] = {strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10)};
    int rounds = atoi(argv[5]), compiles = atoi(argv[6]);
    visa_parameter parameters[] = {{argv[2], &sizes[0], 1}, {argv[2], &sizes[1], 1}};
    visa_options options[2];
    for (int i = 0; i < 2; i++)
        options[i] = (visa_options){.binary_only = true, .again = true, .parameters = &parameters[i], .parameter_count = 1};
    visa_compilation *kept = visa_compile(argv[1], text, bytes, &options[0]);
    write_binary(kept);
    for (int round = 0; round < rounds; round++) {
        double begin = now_us();
        for (int i = 0; i < compiles; i++) {
            if (!visa_compile_again(kept, &options[i % 2]))
                return 1;
            write_binary(kept);
        }
        double middle = now_us();
        for (int i = 0; i < compiles; i++) {
            visa_compilation *c = visa_compile(argv[1], text, bytes, &options[i % 2]);
            write_binary(c);
            visa_free(c);
        }
        printf("{\"again_us\": %.2f, \"text_us\": %.2f}\n", (middle - begin) / compiles, (now_us() - middle) / compiles);
        fflush(stdout);
    }
    visa_free(kept);
    return 0;
}
