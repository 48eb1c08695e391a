#include "runtime/timing/hbm_tally.h"

#include <string.h>

#include "support/integer.h"

enum { CHANNELS_OF_CHIP = HBM_TALLY_CHANNELS / HBM_TALLY_CHIPS };

void hbm_tally_init(hbm_tally *t, const target *k)
{
    memset(t, 0, offsetof(hbm_tally, open_row));
    t->chip = size_divisor_of(k->hbm_chip_stride_bytes);
    t->block = size_divisor_of(k->hbm_block_bytes);
    t->burst = size_divisor_of(k->hbm_burst_bytes);
    t->burst_millicycles = k->hbm_burst_millicycles;
    t->row_millicycles = k->hbm_row_switch_cycles * 1000;
    t->partial_millicycles = k->hbm_block_bytes / k->hbm_burst_bytes * k->hbm_burst_millicycles * k->hbm_partial_write_factor;
}

/* So many bytes of a block of a chip, so many times in a row. Another row than the bank's open one costs its switch, and is open from then
 * on.
 */
static void touch_block(hbm_tally *t, int64_t chip, int64_t in_chip, int64_t bytes, bool write, int64_t times)
{
    bool in_part = write && bytes < t->block.value;
    int64_t cost = in_part ? t->partial_millicycles : size_quotient(bytes + t->burst.value - 1, t->burst) * t->burst_millicycles;
    uint16_t row = (uint16_t)((in_chip >> HBM_ROW_BIT) + 1);
    unsigned channel = (unsigned)chip * CHANNELS_OF_CHIP + hbm_channel_of(in_chip);
    uint16_t *open = &t->open_row[channel][hbm_bank_of(in_chip)];
    t->channel_millicycles[channel] += (*open && *open != row && !in_part ? t->row_millicycles : cost) + (times - 1) * cost;
    t->partial_writes += in_part ? times : 0;
    t->looks++;
    *open = row;
}

/* The chip of an address, whose rows are ready. */
static int64_t chip_at(hbm_tally *t, int64_t address)
{
    int64_t chip = size_quotient(address, t->chip) & (HBM_TALLY_CHIPS - 1);
    if (!t->knows_rows[chip])
        memset(&t->open_row[chip * CHANNELS_OF_CHIP], 0, CHANNELS_OF_CHIP * sizeof *t->open_row);
    t->knows_rows[chip] = true;
    return chip;
}

/* A packet whose blocks are touched so many times in a row each. */
static void touch_packet(hbm_tally *t, int64_t address, int64_t bytes, bool write, int64_t times)
{
    for (int64_t end = address + bytes; address < end;) {
        int64_t chip = chip_at(t, address), in_chip = size_rest(address, t->chip), in_block = size_rest(in_chip, t->block);
        int64_t here = smaller(smaller(t->block.value - in_block, t->chip.value - in_chip), end - address);
        touch_block(t, chip, in_chip, here, write, times);
        address += here;
    }
}

void hbm_tally_packet(hbm_tally *t, int64_t address, int64_t bytes, bool write)
{
    touch_packet(t, address, bytes, write, 1);
}

/* Packets that follow each other, each so many times in a row. Blocks have whole ones where `cuts_no_packet`. */
static void touch_run(hbm_tally *t, int64_t address, int64_t bytes, int64_t packets, bool cuts_no_packet, bool write, int64_t times)
{
    if (!cuts_no_packet) {
        for (int64_t i = 0; i < packets; i++)
            touch_packet(t, address + i * bytes, bytes, write, times);
        return;
    }
    for (int64_t end = address + packets * bytes; address < end;) {
        int64_t in_chip = size_rest(address, t->chip), here = smaller(t->block.value - size_rest(in_chip, t->block), end - address);
        touch_block(t, chip_at(t, address), in_chip, bytes, write, here / bytes * times);
        address += here;
    }
}

/* Is every packet inside of a block, and are there whole ones in each? */
static bool packets_part_blocks(const hbm_tally *t, const walk *w, int64_t bytes)
{
    bool parts = t->block.value % bytes == 0 && w->base % bytes == 0;
    for (unsigned i = 0; i < w->count && parts; i++)
        parts = w->stride[i] % bytes == 0;
    return parts;
}

/* Do all touches of a block take equally long? Packets that cross blocks end in them anywhere. */
static bool are_alike(const hbm_tally *t, const walk *w, int64_t bytes, bool cuts_no_packet)
{
    bool alike = bytes % t->block.value == 0 && w->base % t->block.value == 0;
    for (unsigned i = 0; i < w->count && alike; i++)
        alike = w->stride[i] % t->block.value == 0;
    return alike || cuts_no_packet;
}

/* Of the inner loops that stay so near that no bank has two rows the order does not count, nor what is touched in between: those that stay
 * where they are are how often each packet is touched in a row, and where touches are alike the others go upwards in long runs. */
static int64_t order_inner_loops(walk *w, int64_t bytes, bool is_alike)
{
    unsigned first = w->count;
    int64_t reach = bytes, times = 1;
    while (first > 0 &&
           (walk_address)(w->stride[first - 1] < 0 ? -w->stride[first - 1] : w->stride[first - 1]) * (w->size[first - 1] - 1) <=
               HBM_ONE_ROW_BYTES - reach) {
        first--;
        reach += (w->stride[first] < 0 ? -w->stride[first] : w->stride[first]) * (w->size[first] - 1);
    }
    for (unsigned i = first; i < w->count; i++) {
        int64_t size = w->size[i], stride = w->stride[i];
        if (stride == 0) {
            times *= size;
            w->size[i] = 1;
        }
        if (stride == 0 || !is_alike)
            continue;
        w->base += stride < 0 ? stride * (size - 1) : 0;
        stride = stride < 0 ? -stride : stride;
        unsigned at = i;
        for (; at > first && w->stride[at - 1] < stride; at--) {
            w->size[at] = w->size[at - 1];
            w->stride[at] = w->stride[at - 1];
        }
        w->size[at] = size;
        w->stride[at] = stride;
    }
    walk_merge(w);
    return times;
}

/* What was counted when a loop that stays where it is had gone around once. */
typedef struct once {
    int64_t channel_millicycles[HBM_TALLY_CHANNELS], partial_writes;
} once;

static void note_once(const hbm_tally *t, once *o)
{
    memcpy(o->channel_millicycles, t->channel_millicycles, sizeof o->channel_millicycles);
    o->partial_writes = t->partial_writes;
}

/* So many times more what was counted since. */
static void count_again(hbm_tally *t, const once *o, int64_t times)
{
    for (int i = 0; i < HBM_TALLY_CHANNELS; i++)
        t->channel_millicycles[i] += times * (t->channel_millicycles[i] - o->channel_millicycles[i]);
    t->partial_writes += times * (t->partial_writes - o->partial_writes);
    t->looks++;
}

void hbm_tally_walk(hbm_tally *t, const walk *of, int64_t bytes, bool write)
{
    walk w = *of;
    once before[COPY_MAX_ENTRIES]; /* of the loops that stay where they are */
    int64_t counter[COPY_MAX_ENTRIES] = {0}, address = w.base, packets = 1;
    walk_merge(&w);
    bool cuts_no_packet = packets_part_blocks(t, &w, bytes);
    int64_t times = order_inner_loops(&w, bytes, are_alike(t, &w, bytes, cuts_no_packet));
    if (w.stride[w.count - 1] == bytes)
        packets = w.size[--w.count];
    for (bool goes_on = true; goes_on;) {
        touch_run(t, address, bytes, packets, cuts_no_packet, write, times);
        goes_on = false;
        for (unsigned i = w.count; i-- > 0 && !goes_on;) {
            counter[i]++;
            if (w.stride[i] == 0 && counter[i] == 1 && w.size[i] > 2)
                note_once(t, &before[i]);
            if (w.stride[i] == 0 && counter[i] == 2 && w.size[i] > 2) {
                count_again(t, &before[i], w.size[i] - 2);
                counter[i] = w.size[i];
            }
            goes_on = counter[i] < w.size[i];
            address += goes_on ? w.stride[i] : -w.stride[i] * (w.size[i] - 1);
            counter[i] = goes_on ? counter[i] : 0;
        }
    }
}
