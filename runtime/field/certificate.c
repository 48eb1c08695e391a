/* What was shown, for whoever wants to see it shown again: the same seed gives the same inputs. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/field/check.h"
#include "support/json_text.h"
#include "support/sha256.h"

enum { CERTIFICATE_VERSION = 1 };

static json_t *output_json(const field_output *o)
{
    json_t *j = json_object();
    json_object_set_new(j, "name", json_string(o->name));
    json_object_set_new(j, "values", json_integer(o->elements));
    json_object_set_new(j, "compared", json_integer(o->compared));
    json_object_set_new(j, "sampled", json_boolean(o->sampled));
    json_t *sample = json_array();
    for (size_t i = 0; i < o->sample_count; i++)
        json_array_append_new(sample, json_integer(o->sample[i]));
    if (o->sampled)
        json_object_set(j, "elements", sample);
    json_decref(sample);
    json_object_set_new(j, "differing", json_integer(o->differing));
    json_object_set_new(j, "degree", json_integer(o->degree));
    json_object_set_new(j, "projected", json_boolean(o->projected));
    if (!o->projected)
        json_object_set_new(j, "probability_of_a_value", json_real((double)o->degree * 0x1p-61));
    json_object_set_new(j, "probability", json_real(exp2(o->log2_probability)));
    return j;
}

static json_t *kernel_json(const field_verdict *v)
{
    json_t *j = json_object(), *outputs = json_array();
    json_object_set_new(j, "name", json_string(v->kernel->name));
    json_object_set_new(j, "einsum", json_string(v->kernel->einsum.text));
    json_object_set_new(j, "seed", json_integer((json_int_t)v->seed));
    json_object_set_new(j, "verdict", json_string(v->undecided ? "not decided" : v->agrees ? "agrees" : "differs"));
    for (size_t i = 0; i < v->output_count; i++)
        json_array_append_new(outputs, output_json(&v->outputs[i]));
    json_object_set_new(j, "outputs", outputs);
    json_object_set_new(j, "probability", json_real(exp2(v->log2_probability)));
    return j;
}

const char *field_certificate(const field_verdict *verdicts, size_t count, const char *file, const unsigned char *bytes, size_t size,
                              arena *a)
{
    json_t *j = json_object(), *of = json_object(), *kernels = json_array();
    json_object_set_new(j, "certificate", json_integer(CERTIFICATE_VERSION));
    json_object_set_new(j, "method", json_string("polynomial identity over a prime field at a random point (Schwartz, Zippel)"));
    json_object_set_new(j, "prime", json_integer((json_int_t)FIELD_PRIME));
    json_object_set_new(of, "file", json_string(file));
    json_object_set_new(of, "bytes", json_integer((json_int_t)size));
    json_object_set_new(of, "sha256", json_string(sha256_text(bytes, size, a)));
    json_object_set_new(j, "binary", of);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(kernels, kernel_json(&verdicts[i]));
    json_object_set_new(j, "kernels", kernels);
    return json_dump_text(j, JSON_INDENT(2) | JSON_REAL_PRECISION(6), a);
}
