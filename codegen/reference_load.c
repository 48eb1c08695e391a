#include "codegen/reference_load.h"

#include <stdlib.h>
#include <string.h>

#include "support/plugin.h"

const reference_api *reference_load(diag_list *diags)
{
    void *library = plugin_open("libvisa_reference", "VISA_REFERENCE", false, diags->arena);
    if (!library) {
        diag *d = diag_add(diags, E_REFERENCE, SRC_NOWHERE, "the reference generator cannot be loaded: %s", plugin_error());
        diag_help(diags, d, "install libvisa_reference.so next to the program or in ../lib, or name it in VISA_REFERENCE");
        return NULL;
    }
    reference_api_function *entry;
    *(void **)&entry = plugin_function(library, "visa_reference_api");
    const reference_api *api = entry ? entry(REFERENCE_API_VERSION) : NULL;
    if (!api)
        diag_add(diags, E_REFERENCE, SRC_NOWHERE, "the reference generator is of another release: it does not speak version %d",
                 REFERENCE_API_VERSION);
    return api;
}

/* True without a fault. */
static bool take_fault(const reference_api *api, char *fault, diag_list *diags)
{
    if (!fault)
        return true;
    diag_add(diags, E_REFERENCE, SRC_NOWHERE, "reference kernel: %s", fault);
    api->release_bytes(fault);
    return false;
}

/* The same, of building a kernel. */
static bool take_build_fault(const reference_api *api, char *fault, const char *name, diag_list *diags)
{
    if (!fault)
        return true;
    diag_add(diags, E_REFERENCE, SRC_NOWHERE, "reference kernel of `%s`: %s", name, fault);
    api->release_bytes(fault);
    return false;
}

reference_kernel *reference_compile(const reference_api *api, const einsum *e, const char *name, unsigned forms, diag_list *diags)
{
    reference_kernel *k = NULL;
    const char *cpu = getenv("VISA_MCPU");
    return take_build_fault(api, api->build(e, name, forms, cpu && *cpu ? cpu : NULL, &k), name, diags) ? k : NULL;
}

bool reference_run(const reference_api *api, reference_kernel *k, unsigned char *const *tensors, double *const *bounds, unsigned threads,
                   diag_list *diags)
{
    uint64_t before = api->indices_outside(k);
    if (!take_fault(api, api->run(k, tensors, bounds, threads), diags))
        return false;
    uint64_t outside = api->indices_outside(k) - before;
    if (outside > 0) {
        diag *d = diag_add(diags, E_CHECK_INDEX, SRC_NOWHERE,
                           "reference kernel: %llu elements are gathered from or scattered to places outside an axis",
                           (unsigned long long)outside);
        diag_help(diags, d, "let every index, times its unit, name an element of the axis");
    }
    return true;
}

bool reference_run_field(const reference_api *api, reference_kernel *k, uint64_t *const *tensors, unsigned threads, diag_list *diags)
{
    return take_fault(api, api->run_field(k, tensors, threads), diags);
}

bool reference_emit(const reference_api *api, const einsum *e, const char *name, unsigned forms, const char *cpu, reference_output kind,
                    arena *a, unsigned char **bytes, size_t *byte_count, diag_list *diags)
{
    unsigned char *made = NULL;
    size_t count = 0;
    if (!take_build_fault(api, api->emit(e, name, forms, cpu, kind, &made, &count), name, diags))
        return false;
    *bytes = arena_alloc(a, count + 1);
    memcpy(*bytes, made, count);
    *byte_count = count;
    api->release_bytes(made);
    return true;
}

int64_t reference_tensor_bytes(const einsum *e, uint32_t tensor)
{
    int64_t elements = einsum_tensor_elements(e, tensor), bits = dtype_row_of(e->tensors[tensor].dtype)->bits;
    int64_t bytes;
    if (bits < 8)
        return elements / 2 + elements % 2;
    return __builtin_mul_overflow(elements, bits / 8, &bytes) ? -1 : bytes;
}
