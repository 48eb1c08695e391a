/* Writes a binary with every kind of statement (math_sample.h) to the standard output: no kernel of the
 * language has all of them. */
#include <stdio.h>
#include <stdlib.h>

#include "test/reference/math_sample.h"

static const uint64_t t_layout[] = {LAYOUT_WORD(LAYOUT_AXIS, MATH_T)}, e_layout[] = {LAYOUT_WORD(LAYOUT_AXIS, MATH_E)};
static const uint64_t te_layout[] = {LAYOUT_WORD(LAYOUT_AXIS, MATH_T), LAYOUT_WORD(LAYOUT_AXIS, MATH_E), LAYOUT_WORD(LAYOUT_PAIR, 0)};
static const uint64_t ve_layout[] = {LAYOUT_WORD(LAYOUT_AXIS, MATH_V), LAYOUT_WORD(LAYOUT_AXIS, MATH_E), LAYOUT_WORD(LAYOUT_PAIR, 0)};
static const layout layouts[MATH_PORTS] = {{ve_layout, 3},  {e_layout, 1},  {t_layout, 1}, {ve_layout, 3},
                                           {sample_one, 1}, {te_layout, 3}, {ve_layout, 3}};

int main(void)
{
    arena *a = arena_new();
    diag_list found;
    port ports[MATH_PORTS];
    const unsigned char *bytes;
    size_t size;
    diag_list_init(&found, a);
    for (int i = 0; i < MATH_PORTS; i++) {
        ports[i] = (port){.name = math_tensors[i].name,
                          .direction = i >= MATH_Y ? PORT_OUT : PORT_IN,
                          .dtype = math_tensors[i].dtype,
                          .address = 65536 * i};
        ports[i].mapping[COMPONENT_CHIP] = (layout){sample_one, 1};
        ports[i].mapping[COMPONENT_ELEMENT] = layouts[i];
    }
    binary_kernel k = {
        .name = "math", .axes = math_axes, .axis_count = MATH_AXES, .ports = ports, .port_count = MATH_PORTS, .einsum = math_sample};
    command *c = ARENA_NEW(a, command);
    *c = (command){.op = OP_DMA, .context = CONTEXT_DMA, .line = 1};
    command_set(c, DMA_PACKET_BYTES, 32);
    command_set(c, DMA_DESTINATION_BASE, 65536 * MATH_Y);
    sample_entry(c, 1, 0, 0);
    k.streams[CONTEXT_DMA].commands = c;
    k.streams[CONTEXT_DMA].count = 1;
    binary b = {.target = target_by_name("rngd"), .kernels = &k, .kernel_count = 1};
    bool good = sample_write(&b, a, &found, &bytes, &size) && fwrite(bytes, 1, size, stdout) == size;
    for (size_t i = 0; i < found.count; i++)
        fprintf(stderr, "math_binary: %s\n", found.items[i]->message);
    arena_free(a);
    return good && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
