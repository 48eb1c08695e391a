/* A host program that compiles a kernel, runs it on the simulated machine and checks it, with the installed library:
 *
 *     cc examples/host/run.c $(pkg-config --cflags --libs visa) -o run
 *     ./run examples/matmul.vm
 *
 * It multiplies two matrices of small integers as bf16 and prints a row of the product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <visa_run.h>

static char text[1 << 16];

int main(int argc, char **argv)
{
    FILE *file = fopen(argc > 1 ? argv[1] : "examples/matmul.vm", "r");
    size_t bytes = file ? fread(text, 1, sizeof text, file) : 0;
    const unsigned char *binary;
    size_t size;
    visa_compilation *c = visa_compile("matmul.vm", text, bytes, NULL);
    if (!file || !c || !visa_emit(c, VISA_EMIT_BINARY, &binary, &size)) {
        fputs(c ? visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT) : "no memory\n", stderr);
        return EXIT_FAILURE;
    }
    visa_kernel *k = visa_kernel_open(binary, size, NULL);
    visa_port p;
    for (size_t i = 0; visa_port_at(k, i, &p); i++) {
        uint16_t *at = visa_port_data(k, i, &size);
        for (size_t e = 0; e < size / sizeof *at && !p.is_output; e++) {
            float value = (float)((int)(e % 5) - 2);
            memcpy(&at[e], (char *)&value + 2, sizeof *at); /* bf16 is the upper half of an f32 */
        }
        printf("%s %s: %s, %zu bytes\n", p.is_output ? "out" : "in", p.name, p.type, size);
    }
    const char *report;
    bool agrees;
    if (!visa_kernel_check(k, NULL, VISA_CHECK_NUMBERS | VISA_CHECK_ALGEBRA, &agrees, &report)) {
        fprintf(stderr, "%s\n", visa_kernel_error(k));
        return EXIT_FAILURE;
    }
    printf("%s%lld cycles\n", report, (long long)visa_kernel_cycles(k, NULL));
    visa_kernel_close(k);
    visa_free(c);
    return EXIT_SUCCESS;
}
