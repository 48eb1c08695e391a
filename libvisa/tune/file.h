/* `#[einsum("C[m, n] = ..")]` on a function without a body: the question, asked in a file.
 *
 * The one idea: the file's text stays as it is, and each such function is replaced by the kernel that the command line would answer.
 * Sizes are those of the file's axes, types those of the function's parameters; what is declared otherwise than the kernel has it is
 * refused. */
#ifndef VISA_LIBVISA_TUNE_FILE_H
#define VISA_LIBVISA_TUNE_FILE_H

#include "libvisa/compilation.h"
#include "libvisa/tune/question.h"

/* From a question to its kernel's source, not laid out yet; false: diagnosed. File `file` of the map has the question as its text. */
bool tune_answer_one(visa_compilation *c, const visa_tune_options *o, int file, tune_question *q, strbuf *out);

/* The text of a file with kernels in the place of its questions; false: diagnosed. */
bool tune_answer_file(visa_compilation *c, int file, const visa_tune_options *o, strbuf *out);

#endif
