/* libFuzzer's name for FUZZ_TARGET. */
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return FUZZ_TARGET(data, size);
}
