/* `#[einsum("C[m, n] = ..")]` on a function without a body: the question, asked in a file.
 *
 * The one idea: the file's text stays as it is, and each such function is replaced by the kernel that the command line would answer.
 * Sizes are those of the file's axes, types those of the function's parameters; what is declared otherwise than the kernel has it is
 * refused. */
#ifndef VISA_LIBVISA_TUNE_FILE_H
#define VISA_LIBVISA_TUNE_FILE_H

#include "libvisa/compilation.h"
#include "libvisa/tune/expression.h"
#include "support/strbuf.h"

/* An axis of a kernel: one of the question, or several that lie side by side, K_L of K, L. */
typedef struct tune_kernel_axis {
    const char *text, *parts;
    int64_t size; /* elements */
} tune_kernel_axis;

/* An answer: its source, not laid out yet, with one kernel, called TUNE_KERNEL. */
#define TUNE_KERNEL "contract"
typedef struct tune_kernel {
    strbuf text;
    const char *result; /* the question's name for it, in lower case */
    tune_kernel_axis axes[2 * TUNE_AXES_MAX];
    size_t axis_count;
} tune_kernel;

/* From a question to its kernel's source; false: diagnosed. File `file` of the map has the question as its text. */
bool tune_answer_one(visa_compilation *c, const visa_tune_options *o, int file, tune_kernel *out);

/* The type inside references: of HbmTensor<type, chip, element> what is between the brackets; NULL: it is another type. */
const ast *tune_tensor_arguments(const ast *type);

/* The text of a file with kernels in the place of its questions; false: diagnosed. */
bool tune_answer_file(visa_compilation *c, int file, const visa_tune_options *o, strbuf *out);

#endif
