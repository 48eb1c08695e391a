/* The commands of one binary with the mathematics of another: what a compiler that misunderstood a kernel would write.
 *
 *     field_transplant MEANT.bin DONE.bin OUT.bin
 *
 * Of each kernel of DONE the einsum is that of MEANT's kernel of the same name. Exit status 1 where axes or ports differ, so that the
 * mathematics cannot be asked of it; 2: a file is at fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/container.h"

static unsigned char *read_file(const char *path, size_t *size)
{
    enum { MOST = 1 << 24 };
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = file ? malloc(MOST) : NULL;
    *size = bytes ? fread(bytes, 1, MOST, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static bool same_axes(const binary_kernel *a, const binary_kernel *b)
{
    bool same = a->axis_count == b->axis_count && a->port_count == b->port_count;
    for (uint32_t i = 0; same && i < a->axis_count; i++)
        same = strcmp(a->axes[i].name, b->axes[i].name) == 0 && a->axes[i].size == b->axes[i].size;
    for (uint32_t i = 0; same && i < a->port_count; i++)
        same = strcmp(a->ports[i].name, b->ports[i].name) == 0 && a->ports[i].direction == b->ports[i].direction &&
               a->ports[i].dtype == b->ports[i].dtype;
    return same;
}

static int write_mixed(const binary *meant, const binary *done, const char *path, arena *a, diag_list *diags)
{
    binary_writer *w = binary_writer_new(done->target, a, diags);
    for (size_t i = 0; w && i < done->kernel_count; i++) {
        binary_kernel mixed = done->kernels[i];
        const binary_kernel *of = binary_kernel_by_name(meant, mixed.name);
        if (!of || !same_axes(of, &mixed))
            return 1;
        mixed.einsum = of->einsum;
        if (!binary_writer_kernel(w, &mixed, a))
            return 1;
    }
    const unsigned char *bytes;
    size_t size;
    FILE *file = w && binary_writer_finish(w, &bytes, &size) ? fopen(path, "wb") : NULL;
    bool written = file && fwrite(bytes, 1, size, file) == size;
    return file && fclose(file) == 0 && written ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    binary b[2];
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        size_t size;
        unsigned char *bytes = read_file(argv[1 + i], &size);
        good = bytes && binary_read(bytes, size, a, &diags, &b[i]);
        free(bytes);
    }
    int status = good ? write_mixed(&b[0], &b[1], argv[3], a, &diags) : 2;
    arena_free(a);
    return status;
}
