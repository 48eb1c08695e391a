#include "codegen/reference/reference.h"

#include "codegen/reference/fault.h"
#include "codegen/reference/field_run.h"
#include "codegen/reference/kernel.h"
#include "codegen/reference/output.h"
#include "codegen/reference/run.h"

__attribute__((visibility("default"))) const reference_api *visa_reference_api(int version)
{
    static const reference_api api = {
        .version = REFERENCE_API_VERSION,
        .build = kernel_build,
        .run = kernel_run,
        .run_field = kernel_run_field,
        .indices_outside = kernel_indices_outside,
        .jit_nanoseconds = kernel_jit_nanoseconds,
        .release = kernel_release,
        .emit = kernel_emit,
        .release_bytes = fault_free,
    };
    return version == REFERENCE_API_VERSION ? &api : NULL;
}
