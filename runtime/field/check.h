/* A proof by algebra: are the outputs of a kernel the polynomials that its mathematics says?
 *
 * The one idea: the machine runs over a field of p elements with random inputs, and so does the reference.
 * Two different polynomials of degree d agree at a random point with a probability of at most d / p
 * (Schwartz, Zippel), so what agrees is the same for all inputs, whatever their type and whatever rounds.
 * A product of many terms is proven by its projection: its elements, each times a random factor, in one sum. Where all of it is too large,
 * elements are sampled, and each is traced back to the inputs. What is shared with the machine of bytes, and so is not proven here, is in
 * docs/numerics.md. */
#ifndef VISA_RUNTIME_FIELD_CHECK_H
#define VISA_RUNTIME_FIELD_CHECK_H

#include "codegen/container.h"
#include "runtime/field/value.h"

typedef struct field_options {
    uint64_t seed;
    unsigned threads; /* 0: one for each processor */
    int64_t samples;  /* of each output; 0: all elements of a kernel that is small enough, else as many as are
                         traced in a second or so */
    bool singly;      /* each element by itself, also where a projection would do: for tests */
} field_options;

typedef struct field_output {
    const char *name;
    bool lists;                            /* rows were moved by lists: it is proven for those that were drawn */
    int64_t elements, compared, differing; /* elements of the tensor; that were looked at */
    int64_t degree;
    bool sampled;
    bool projected;  /* all of it in one sum (projection.h) */
    int64_t *sample; /* the elements that were compared; NULL: all */
    size_t sample_count;
    double log2_probability; /* that these agree although a polynomial differs, at most; a negative power of 2 */
} field_output;

typedef struct field_verdict {
    const binary_kernel *kernel;
    uint64_t seed;
    bool agrees;
    const char *undecided; /* why nothing was compared; NULL: it was */
    field_output *outputs;
    size_t output_count;
    double log2_probability; /* of any output */
    const char *text;        /* a line for each output */
} field_verdict;

/* Elements of a kernel's ports, as they are stored, and of all tensors of its mathematics. */
double field_stored_elements(const binary_kernel *k);

/* False with a diagnostic: it could not be decided. An output that differs has an E_CHECK_MISMATCH, with the
 * terms that it lacks or has too many. */
bool field_check(const target *t, const binary_kernel *k, const field_options *options, arena *a, diag_list *diags, field_verdict *out);

/* What was shown, as JSON: digests, seed, prime, degree, probability. `binary`: the file's bytes. */
const char *field_certificate(const field_verdict *verdicts, size_t count, const char *file, const unsigned char *binary, size_t bytes,
                              arena *a);

/* Every element of every output, "NAME ELEMENT VALUE" per line: what test/field/field_judge.py compares. False with
 * a diagnostic. */
bool field_dump(const target *t, const binary_kernel *k, const field_options *options, arena *a, diag_list *diags, const char **text);

#endif
