/* vector_table CODE [LEVEL]: what the machine's operation of that code gives, for test/engine/vector_model.py. LEVEL is one of `visa-run
 * --cpu`. Operands are 32-bit words of standard input, in groups as long as it has operands; results are words of standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/engine/vector_ops.h"

enum { GROUPS = 4096 };

/* Are they other words than those of the loop that takes any operands? */
static bool differs(const char *name, const stream_word *words, const stream_word *others, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] != others[i]) {
            fprintf(stderr, "%s: %08x and %08x of one\n", name, others[i], words[i]);
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    cpu_level level = CPU_BEST;
    bool right = argc < 3 || cpu_level_named(argv[2], &level);
    const vector_set *set = vector_set_of(level);
    unsigned code = argc > 1 && right ? (unsigned)strtoul(argv[1], NULL, 0) : 0;
    const vector_op_row *row = vector_op_row_of(code);
    if (!row || !vector_function_of(set, code)) {
        for (size_t i = 0; argc == 1 && (row = vector_op_row_at(i)); i++) /* without a code: the table */
            printf("%u %u %s %s %s %s\n", row->op, row->operands, row->name, row->type ? row->type : "-", row->variant ? row->variant : "-",
                   vector_alu_name(row->alu));
        return argc != 1;
    }
    static stream_word in[GROUPS * 3], apart[3][GROUPS], out[GROUPS], again[GROUPS];
    size_t n = row->operands, got;
    while ((got = fread(in, n * sizeof *in, GROUPS, stdin)) > 0) {
        vector_operand strided[3], packed[3];
        for (size_t i = 0; i < n; i++) {
            strided[i] = (vector_operand){in + i, (int64_t)n};
            packed[i] = (vector_operand){apart[i], 1};
            for (size_t k = 0; k < got; k++)
                apart[i][k] = in[k * n + i];
        }
        vector_function_of(set, code)(out, strided, (int64_t)got);
        vector_function_of(set, code)(again, packed, (int64_t)got);
        if (differs(row->name, again, out, got))
            return 1;
        /* runs in which the other operands are one word for all */
        for (size_t from = 0, to; n > 1 && from < got; from = to) {
            for (to = from + 1; to < got && apart[1][to] == apart[1][from] && (n < 3 || apart[2][to] == apart[2][from]);)
                to++;
            vector_operand same[3] = {{apart[0] + from, 1}, {apart[1] + from, 0}, {apart[2] + from, 0}};
            vector_function_of(set, code)(again, same, (int64_t)(to - from));
            if (differs(row->name, again, out + from, to - from))
                return 1;
        }
        fwrite(out, sizeof *out, got, stdout);
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
