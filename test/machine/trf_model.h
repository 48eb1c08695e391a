/* The TRF's cycles once more, for the tests: written from the rules alone (docs/timing.md, "The TRF"), every Row's
 * tags, every cycle, nothing shared with runtime/ but the structs that say what is read and written. */
#ifndef VISA_TEST_MACHINE_TRF_MODEL_H
#define VISA_TEST_MACHINE_TRF_MODEL_H

#include <string.h>

#include "runtime/timing/trf_timing.h"

typedef struct trf_model {
    int64_t tag[8][2][4]; /* bank row, column, set: row in bank / 4, or -1 */
    trf_reads reads;
    trf_writes writes;
    bool has_reads, has_writes, apart;             /* apart: in different slices */
    int64_t read_position, read_total, read_cycle; /* read_cycle: cycles since the command began */
    int64_t now, write_number, write_arrival;      /* cycles: in which the next flit first tries */
    bool write_was_stalled;
    int64_t reads_done, hits, misses, flits, stall_cycles, stalled_flits, late_cycles;
} trf_model;

/* "TRF Memory Layout": 3 bits bank row, 7 or 6 bits row, 1 bit column, 5 bits of bytes; fewer Rows free bank-row
 * bits from below. */
static inline void trf_model_locate(const trf_view *v, int64_t row, int64_t byte, int64_t *bank_row, int64_t *line, int64_t *column)
{
    int64_t extension = v->rows == 8 ? 0 : v->rows == 4 ? 1 : v->rows == 2 ? 2 : 3;
    int64_t bits = v->mode == TRF_FULL ? 7 : 6;
    int64_t number = byte >> 6;
    *bank_row = (row << extension) | (number >> bits);
    *line = (number & ((1 << bits) - 1)) + (v->mode == TRF_SECOND_HALF ? 64 : 0);
    *column = byte >> 5 & 1;
}

static inline int64_t trf_model_address(const trf_reads *r, int64_t position)
{
    int64_t address = r->table.base;
    for (int i = (int)r->table.count - 1; i >= 0; i--) {
        address += position % r->table.size[i] * r->table.stride[i];
        position /= r->table.size[i];
    }
    return address;
}

static inline void trf_model_reads(trf_model *m, const trf_reads *r)
{
    memset(m->tag, -1, sizeof m->tag);
    m->reads = *r;
    m->has_reads = true;
    m->read_position = m->read_cycle = 0;
    m->read_total = 1;
    for (unsigned i = 0; i < r->table.count; i++)
        m->read_total *= r->table.size[i];
    m->reads_done = m->hits = m->misses = 0;
}

static inline void trf_model_writes(trf_model *m, const trf_writes *w)
{
    m->writes = *w;
    m->has_writes = w->flits > 0;
    m->write_number = 0;
    m->write_arrival = m->now + w->delay + w->cycles_per_flit - 1;
    m->write_was_stalled = false;
    m->flits = m->stall_cycles = m->stalled_flits = m->late_cycles = 0;
}

static inline void trf_model_read(trf_model *m, bool busy[2])
{
    int64_t address = trf_model_address(&m->reads, m->read_position++);
    int64_t capacity = (m->reads.view.mode == TRF_FULL ? 65536 : 32768) / m->reads.view.rows;
    m->reads_done++;
    if (address < 0 || address + m->reads.read_bytes > capacity)
        return;
    for (int64_t byte = address / 32 * 32; byte < address + m->reads.read_bytes; byte += 32) {
        bool missed = false;
        int64_t bank_row, line, column = 0;
        for (int64_t row = 0; row < m->reads.view.rows; row++) {
            trf_model_locate(&m->reads.view, row, byte, &bank_row, &line, &column);
            int64_t *tag = &m->tag[bank_row][column][line % 4];
            missed |= *tag != line / 4;
            *tag = line / 4;
        }
        busy[column] |= missed;
        m->misses += missed;
        m->hits += !missed;
    }
}

static inline void trf_model_write(trf_model *m, const bool busy[2])
{
    int64_t row = m->write_number / m->writes.flits_per_row;
    int64_t byte = m->writes.base + m->write_number % m->writes.flits_per_row * 32;
    int64_t bank_row, line, column;
    trf_model_locate(&m->writes.view, row, byte, &bank_row, &line, &column);
    if (busy[column] && !m->apart) {
        m->stall_cycles++;
        m->stalled_flits += !m->write_was_stalled;
        m->write_was_stalled = true;
        return;
    }
    if (!m->apart && bank_row < 8 && m->tag[bank_row][column][line % 4] == line / 4)
        m->tag[bank_row][column][line % 4] = -1;
    m->flits++;
    m->write_was_stalled = false;
    /* One flit of slack: the next one is on its way while this one waits, and tries when this one is out of its way. */
    int64_t undisturbed = m->write_arrival + m->writes.cycles_per_flit;
    m->has_writes = ++m->write_number < m->writes.flits;
    m->write_arrival = undisturbed > m->now ? undisturbed : m->now + 1;
    m->late_cycles += m->has_writes ? m->write_arrival - undisturbed : m->now + m->writes.cycles_per_flit - undisturbed;
}

static inline void trf_model_cycle(trf_model *m)
{
    bool busy[2] = {false, false};
    if (m->has_reads) {
        int64_t since = m->read_cycle++ - m->reads.delay;
        if (since >= 0 && since % m->reads.period < m->reads.tiling)
            trf_model_read(m, busy);
        m->has_reads = m->read_position < m->read_total;
    }
    if (m->has_writes && m->now >= m->write_arrival)
        trf_model_write(m, busy);
    m->now++;
}

/* As trf_timing_run: stops after the last flit. */
static inline int64_t trf_model_run(trf_model *m, int64_t cycles)
{
    for (int64_t i = 0; i < cycles; i++) {
        bool writing = m->has_writes;
        trf_model_cycle(m);
        if (writing && !m->has_writes)
            return i + 1;
    }
    return cycles;
}

#endif
