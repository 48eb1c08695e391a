/* libFuzzer: any bytes as a tensor file. The first byte chooses format and element type, the rest is the file. */
#include "runtime/tensor/tensor_file.h"
#include "test/fuzz/fuzz.h"

int fuzz_tensor(const unsigned char *data, size_t size)
{
    static const char *const names[] = {"f.npy", "f.safetensors", "f.safetensors:a", "f.raw"};
    arena *a = size ? arena_new() : NULL;
    if (!a)
        return 0;
    if (setjmp(*arena_guard(a)) == 0) {
        int64_t shape[] = {2, 3};
        tensor_type want = {(dtype)(data[0] / 4 % DTYPE_COUNT), 2, shape, NULL};
        diag_list diags;
        tensor t;
        diag_list_init(&diags, a);
        if (tensor_file_read_image(names[data[0] % 4], data + 1, size - 1, &want, a, &diags, &t))
            tensor_free(&t);
    }
    arena_free(a);
    return 0;
}
