/* vector_table CODE: what the machine's operation of that code gives, for test/engine/vector_model.py. Operands are 32-bit words of
 * standard input, in groups as long as it has operands; results are words of standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/engine/vector_ops.h"

enum { GROUPS = 4096 };

int main(int argc, char **argv)
{
    unsigned code = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 0) : 0;
    const vector_op_row *row = vector_op_row_of(code);
    if (!row || !vector_function_of(code)) {
        for (size_t i = 0; argc == 1 && (row = vector_op_row_at(i)); i++) /* without a code: the table */
            printf("%u %u %s %s %s %s\n", row->op, row->operands, row->name, row->type ? row->type : "-", row->variant ? row->variant : "-",
                   vector_alu_name(row->alu));
        return argc != 1;
    }
    static stream_word in[GROUPS * 3], out[GROUPS];
    size_t n = row->operands, got;
    while ((got = fread(in, n * sizeof *in, GROUPS, stdin)) > 0) {
        vector_operand operands[3];
        for (size_t i = 0; i < n; i++)
            operands[i] = (vector_operand){in + i, (int64_t)n};
        vector_function_of(code)(out, operands, (int64_t)got);
        /* the same with what is one word for all of them kept in a register */
        for (size_t i = 0; i < got && n > 1; i++) {
            stream_word again, first = in[i * n];
            vector_operand alone[3] = {{&first, 1}, {in + i * n + 1, 0}, {in + i * n + 2, 0}};
            vector_function_of(code)(&again, alone, 1);
            if (again != out[i]) {
                fprintf(stderr, "%s: %08x and %08x of one\n", row->name, out[i], again);
                return 1;
            }
        }
        fwrite(out, sizeof *out, got, stdout);
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
