#include "codegen/copy_command.h"

copy_command copy_command_read(const command *c)
{
    bool by_index = c->op == OP_DMA_INDIRECT;
    copy_command k = {.count = c->entry_count, .by_index = by_index};
    if (by_index) {
        bool scatter = command_get(c, INDIRECT_SCATTER);
        k.packet_bytes = command_get(c, INDIRECT_PACKET_BYTES);
        k.source = (copy_side){.memory = scatter ? COPY_DM : COPY_HBM, .base = command_get(c, INDIRECT_SOURCE_BASE), .moved = !scatter};
        k.destination =
            (copy_side){.memory = scatter ? COPY_HBM : COPY_DM, .base = command_get(c, INDIRECT_DESTINATION_BASE), .moved = scatter};
        k.wide = command_get(c, INDIRECT_LIST) == COPY_HBM_WIDE;
        k.list = (copy_side){.memory = k.wide ? COPY_HBM : command_get(c, INDIRECT_LIST), .base = command_get(c, INDIRECT_LIST_BASE)};
        k.unit = command_get(c, INDIRECT_UNIT);
        k.positions = command_get(c, INDIRECT_POSITIONS);
        k.stride = command_get(c, INDIRECT_STRIDE);
        k.counted = command_get(c, INDIRECT_COUNTED);
        k.front = (copy_side){.memory = COPY_HBM, .base = command_get(c, INDIRECT_COUNT_BASE)};
        k.first = command_get(c, INDIRECT_FIRST);
    } else {
        k.packet_bytes = command_get(c, DMA_PACKET_BYTES);
        k.source = (copy_side){.memory = command_get(c, DMA_SOURCE), .base = command_get(c, DMA_SOURCE_BASE)};
        k.destination = (copy_side){.memory = command_get(c, DMA_DESTINATION), .base = command_get(c, DMA_DESTINATION_BASE)};
    }
    for (unsigned i = 0; i < c->entry_count; i++) {
        k.size[i] = command_entry(c, i, by_index ? INDIRECT_ENTRY_SIZE : DMA_ENTRY_SIZE);
        k.source.stride[i] = command_entry(c, i, by_index ? INDIRECT_ENTRY_SOURCE_STRIDE : DMA_ENTRY_SOURCE_STRIDE);
        k.destination.stride[i] = command_entry(c, i, by_index ? INDIRECT_ENTRY_DESTINATION_STRIDE : DMA_ENTRY_DESTINATION_STRIDE);
        k.list.stride[i] = by_index ? command_entry(c, i, INDIRECT_ENTRY_LIST_STRIDE) : 0;
    }
    return k;
}
