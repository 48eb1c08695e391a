/* Proofs by algebra of many good kernels in one process: none may be accused.
 *
 *     field_alarms PROOFS SEED < texts
 *
 * Texts of kernels, each ended by a NUL, are compiled and read as visa-run reads them. Each kernel is proven as a whole with one seed, by
 * its projection where it has one and element by element, and PROOFS - 1 times with others, from elements that are traced back.
 * test/field/field_alarms.py draws the kernels. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa.h"
#include "runtime/field/check.h"

enum { TRACED = 7 /* elements of each output */, TOLD_EACH = 1000 /* proofs */ };

typedef struct counts {
    uint64_t texts, refused, kernels, whole, projected, traced, undecided, alarms;
} counts;

static void tell(const counts *c)
{
    printf("%" PRIu64 " proofs (%" PRIu64 " whole, %" PRIu64 " of them by projection, %" PRIu64 " traced) of %" PRIu64 " kernels, %" PRIu64
           " texts refused, %" PRIu64 " proofs undecided: %" PRIu64 " false alarms\n",
           c->whole + c->traced, c->whole, c->projected, c->traced, c->kernels, c->refused, c->undecided, c->alarms);
    fflush(stdout);
}

typedef enum way { WAY_WHOLE, WAY_SINGLY, WAY_TRACED } way;
static const char *const way_names[] = {"whole", "element by element", "traced"};

static void prove(const binary *b, const binary_kernel *k, uint64_t seed, way how, const char *text, counts *c)
{
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    field_options options = {.seed = seed, .threads = 1, .samples = how == WAY_TRACED ? TRACED : 0, .singly = how == WAY_SINGLY};
    field_verdict v;
    bool decided = field_check(b->target, k, &options, a, &diags, &v);
    if (!decided || !v.agrees) {
        c->alarms++;
        printf("seed %" PRIu64 ", %s, kernel %s:\n%s%s\n", seed, way_names[how], k->name, text, decided ? v.text : "");
        for (size_t i = 0; i < diags.count; i++)
            printf("%s\n", diags.items[i]->message);
    } else if (v.undecided) {
        c->undecided++;
    } else {
        c->whole += how != WAY_TRACED;
        c->projected += v.output_count > 0 && v.outputs[0].projected;
        c->traced += how == WAY_TRACED;
        if ((c->whole + c->traced) % TOLD_EACH == 0)
            tell(c);
    }
    arena_free(a);
}

static void prove_text(const char *text, size_t bytes, unsigned proofs, uint64_t seed, counts *c)
{
    c->texts++;
    visa_compilation *compiled = visa_compile("kernel.vm", text, bytes, NULL);
    const unsigned char *data = NULL;
    size_t size = 0;
    if (!compiled || visa_error_count(compiled) > 0 || !visa_emit(compiled, VISA_EMIT_BINARY, &data, &size)) {
        c->refused++;
        visa_free(compiled);
        return;
    }
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    binary b;
    if (!binary_read(data, size, a, &diags, &b)) {
        c->alarms++;
        printf("a binary that cannot be read:\n%s\n", text);
        b.kernel_count = 0;
    }
    for (size_t i = 0; i < b.kernel_count; i++) {
        c->kernels++;
        prove(&b, &b.kernels[i], seed + c->texts * proofs, WAY_WHOLE, text, c);
        prove(&b, &b.kernels[i], seed + c->texts * proofs, WAY_SINGLY, text, c);
        for (unsigned n = 1; n < proofs; n++)
            prove(&b, &b.kernels[i], seed + c->texts * proofs + n, WAY_TRACED, text, c);
    }
    arena_free(a);
    visa_free(compiled);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: field_alarms PROOFS SEED < texts\n");
        return 2;
    }
    counts c = {0};
    char *text = NULL;
    size_t capacity = 0;
    for (ssize_t bytes; (bytes = getdelim(&text, &capacity, '\0', stdin)) > 0;)
        prove_text(text, strlen(text), (unsigned)strtoul(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), &c);
    free(text);
    tell(&c);
    return c.alarms > 0 || c.kernels == 0 || c.projected == 0;
}
