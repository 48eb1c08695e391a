/* From a point to a kernel. The fastest of the machine: blocks are padded to whole packets and weights to whole Rows, so that the point is
 * one the machine has. A batch is one inference per slice, all with the same weights. Time is [input blocks, packets of a block, weight
 * blocks / Rows], the last one innermost, as tiling: an execution's order. The point that is written is taken as it is, or refused. What is
 * written was compiled. */
#include <inttypes.h>
#include <string.h>

#include "libvisa/explore.h"
#include "libvisa/layout.h"
#include "support/integer.h"

typedef struct matmul {
    const dataflow_interface *input, *weight, *output;
    dtype type;
    int64_t m, n, k, n_padded, k_padded; /* elements */
    int64_t flit, packet;                /* elements of 32 bytes, of one packet (a flit or two) */
    int64_t rows;
} matmul;

static bool refuse(const explore *x, diag_list *diags, src_range at, const char *what, const char *help)
{
    diag_help(diags, diag_add(diags, E_DATAFLOW_KERNEL, at, "`%s` %s", x->model->name, what), "%s", help);
    return false;
}

/* All of the block along the innermost dimension. */
static bool is_row(const dataflow_interface *i)
{
    return dataflow_block_elements(i) == i->block[i->rank - 1];
}

static bool read_matmul(const explore *x, const target *t, diag_list *diags, matmul *mm)
{
    const dataflow_model *m = x->model;
    size_t others = 0;
    *mm = (matmul){0};
    for (size_t i = 0; i < m->count; i++) {
        const dataflow_interface *f = &m->interfaces[i];
        const dataflow_interface **place = f->kind == DATAFLOW_INPUT ? &mm->input : f->kind == DATAFLOW_WEIGHT ? &mm->weight : &mm->output;
        if (f->kind > DATAFLOW_OUTPUT)
            continue;
        others += *place != NULL;
        *place = f;
    }
    if (!mm->weight || others)
        return refuse(x, diags, m->range, "is no matrix multiplication: it has not one input, one weight and one output",
                      "--emit=vm writes kernels y[M, N] = sum over K of x[M, K] * w[N, K]");
    if (!is_row(mm->input) || !is_row(mm->weight) || dataflow_block_elements(mm->input) != dataflow_block_elements(mm->weight))
        return refuse(x, diags, mm->weight->block_range,
                      "is no matrix multiplication: an input block is not one row of K that meets a weight block of K",
                      "write both blocks as [1, K]");
    if (dataflow_block_elements(mm->output) != 1)
        return refuse(x, diags, mm->output->block_range,
                      arena_printf(x->arena,
                                   "is no matrix multiplication: its output blocks have %" PRId64
                                   " elements, and a row with a row of weights has one sum",
                                   dataflow_block_elements(mm->output)),
                      "write the output's block as [1, 1]");
    if (m->batch > t->slices_per_cluster)
        return refuse(x, diags, m->range, "has a batch of more inferences than a cluster has slices",
                      arena_printf(x->arena, "each slice takes one: at most %" PRId64, (int64_t)t->slices_per_cluster));
    if (strcmp(mm->input->type, mm->weight->type) != 0 || !dtype_by_name(mm->input->type, &mm->type) || !dtype_is_operand(mm->type))
        return refuse(x, diags, mm->input->range, "has operands that the Reducer does not multiply",
                      "both are i4, i8, f8e4m3, f8e5m2 or bf16");
    mm->m = mm->input->num_blocks;
    mm->n = mm->weight->num_blocks;
    mm->k = dataflow_block_elements(mm->input);
    if (mm->k * mm->input->bits % 8 != 0)
        return refuse(x, diags, mm->input->block_range, "has rows that do not end with a byte, which no copy can cut",
                      "take an even number of 4-bit elements; a weight of 0 changes nothing");
    mm->flit = t->flit_bytes * 8 / mm->input->bits;
    return true;
}

/* The model with whole packets and whole Rows. */
static dataflow_model *padded_model(const explore *x, const matmul *mm, diag_list *diags)
{
    dataflow_model *m = ARENA_NEW(x->arena, dataflow_model);
    *m = (dataflow_model){.name = x->model->name,
                          .range = x->model->range,
                          .batch = x->model->batch,
                          .interfaces = ARENA_ARRAY(x->arena, dataflow_interface, x->model->count)};
    for (size_t i = 0; i < x->model->count; i++) {
        dataflow_interface f = x->model->interfaces[i];
        if (f.kind > DATAFLOW_OUTPUT)
            continue;
        f.rank = f.tensor_rank = f.parallel_rank = 2;
        if (f.kind == DATAFLOW_OUTPUT) /* it follows */
            f.tensor_rank = 0;
        f.block[0] = f.parallel[0] = f.parallel[1] = 1;
        f.block[1] = f.tensor[1] = f.kind == DATAFLOW_OUTPUT ? 1 : mm->k_padded;
        f.tensor[0] = f.kind == DATAFLOW_WEIGHT ? mm->n_padded : mm->m;
        m->interfaces[m->count++] = f;
    }
    return dataflow_evaluate(m, diags) ? m : NULL;
}

/* Is there a point of the space with this packet and these Rows? Its cycles, or 0. */
static int64_t cycles_at(const explore *x, const matmul *mm)
{
    for (size_t i = 0; i < x->count; i++)
        for (size_t k = 0; k < x->front[i].count; k++)
            if (explore_product(x, &x->front[i], k, 0) == mm->packet && explore_product(x, &x->front[i], k, 1) == mm->rows)
                return x->front[i].latency;
    return 0;
}

/* The machine has packets of one flit or two, and 1, 2, 4 or 8 Rows: explores the model padded to each of them, and keeps the fastest. */
static bool choose(const explore *x, const target *t, diag_list *diags, matmul *mm)
{
    matmul best = *mm;
    int64_t least = 0;
    for (int64_t flits = 2; flits >= 1; flits--)
        for (int64_t rows = t->rows; rows >= 1; rows /= 2) {
            matmul one = *mm;
            explore machine;
            one.packet = flits * mm->flit;
            one.rows = rows;
            one.n_padded = round_up(mm->n, rows);
            one.k_padded = round_up(mm->k, one.packet);
            dataflow_model *m = padded_model(x, &one, diags);
            if (!m || !explore_open(&machine, m, x->arena, diags))
                return false;
            machine.limits = x->limits;
            explore_run(&machine);
            int64_t cycles = cycles_at(&machine, &one);
            if (cycles == 0 || (least != 0 && cycles > least) || (cycles == least && one.packet * one.rows >= best.packet * best.rows))
                continue;
            least = cycles;
            best = one;
        }
    *mm = best;
    return least != 0;
}

/* What one slice holds. */
static bool fits(const explore *x, const target *t, const matmul *mm, diag_list *diags)
{
    int64_t bits = mm->input->bits, tiles = mm->n_padded / mm->rows, lanes = t->output_lanes;
    __int128 input = (__int128)mm->m * mm->k_padded * bits / 8, weights = (__int128)mm->n_padded * mm->k_padded * bits / 8,
             result = (__int128)mm->m * tiles * lanes * 4;
    if (input + weights + result > t->dm_bytes_per_slice)
        return refuse(x, diags, x->model->range, "does not fit the DM of a slice", "cut the model: fewer input blocks, or fewer weights");
    if (weights > target_trf_capacity_bytes(t, TRF_FULL))
        return refuse(x, diags, x->model->range, "does not fit the TRF", "cut the model: fewer weights");
    if (mm->k_padded > mm->packet && tiles > t->accumulator_columns * t->accumulator_registers)
        return refuse(x, diags, x->model->range, "keeps more partial sums than the accumulator has",
                      "allow more Rows, or cut the model: fewer weights");
    return true;
}

/* The type in which sums leave. */
static const char *sum_of(const matmul *mm)
{
    return dtype_row_of(dtype_row_of(mm->type)->accumulates_in)->name;
}

static void write_kernel(const matmul *mm, const explore *x, strbuf *out)
{
    arena *a = x->arena;
    const char *type = mm->input->type, *sum = dtype_row_of(dtype_row_of(mm->type)->accumulates_in)->name;
    const char *n = arena_printf(a, "N # %" PRId64, mm->n_padded), *k = arena_printf(a, "K # %" PRId64, mm->k_padded),
               *row = arena_printf(a, "%s %% %" PRId64, n, mm->rows);
    const char *tile = arena_printf(a, "%s / %" PRId64, n, mm->rows), *flits = arena_printf(a, "%s / %" PRId64, k, mm->flit),
               *flit = arena_printf(a, "%s %% %" PRId64, k, mm->flit);
    const char *packet = arena_printf(a, "%s %% %" PRId64, k, mm->packet);
    const char *slices = x->model->batch > 1 ? "B" : "1", *batch = x->model->batch > 1 ? "B, " : "";
    strbuf_printf(out, "// %s as a kernel: iPar %" PRId64 ", wPar %" PRId64 ", L %" PRId64 " cycles of the Reducer.\n", x->model->name,
                  mm->packet, mm->rows, mm->m * (mm->k_padded / mm->packet) * (mm->n_padded / mm->rows));
    if (mm->output->type && strcmp(mm->output->type, sum_of(mm)) != 0)
        strbuf_printf(out, "// Its outputs are sums as they are, %s; the item's are %s.\n", sum_of(mm), mm->output->type);
    strbuf_puts(out, "axes![");
    if (x->model->batch > 1)
        strbuf_printf(out, "B = %" PRId64 ", ", x->model->batch);
    strbuf_printf(out, "M = %" PRId64 ", N = %" PRId64 ", K = %" PRId64 "];\n\n", mm->m, mm->n, mm->k);
    strbuf_printf(
        out,
        "type Chip = m![1];\ntype Cluster = m![1 # 2];\ntype Slice = m![%s # 256];\n\n#[device(chip = 1)]\nfn matmul(\n    device: "
        "&mut Device,\n",
        slices);
    strbuf_printf(out, "    x: &HbmTensor<%s, Chip, m![%sM, %s]>,\n    w: &HbmTensor<%s, Chip, m![%s, %s]>,\n", type, batch, k, type, n, k);
    strbuf_printf(out, ") -> HbmTensor<%s, Chip, m![%sM, %s, %s # 8]> {\n", sum, batch, tile, row);
    strbuf_printf(out, "    let x: DmTensor<%s, Chip, Cluster, Slice, m![M, %s]> = x.to_dm(&mut device.tdma);\n", type, k);
    strbuf_printf(out, "    let w: DmTensor<%s, Chip, Cluster, Slice, m![%s, %s, %s]> = w.to_dm(&mut device.tdma);\n\n", type, row, tile,
                  k);
    strbuf_printf(out, "    let weights: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s, %s]> = device.sub\n        .begin(w.view())\n",
                  type, row, tile, k);
    strbuf_printf(out, "        .fetch::<m![%s, %s], m![%s]>()\n        .collect::<m![%s, %s, %s], m![%s]>()\n        .to_trf();\n\n", row,
                  tile, k, row, tile, flits, flit);
    strbuf_printf(out, "    let y: DmTensor<%s, Chip, Cluster, Slice, m![M, %s, %s # 8]> = device.main\n        .begin(x.view())\n", sum,
                  tile, row);
    strbuf_printf(out, "        .fetch::<m![M, %s / %" PRId64 "], m![%s]>()\n        .collect::<m![M, %s], m![%s]>()\n", k, mm->packet,
                  packet, flits, flit);
    strbuf_printf(out, "        .contract_outer::<m![M, %s / %" PRId64 ", %s], m![%s # %" PRId64 "], _, _, _>(&weights)\n", k, mm->packet,
                  tile, packet, 2 * mm->flit);
    strbuf_printf(out,
                  "        .contract_packet::<m![1]>()\n        .contract_time::<m![M, %s]>()\n        .contract_lane::<m![M, %s], m![%s # "
                  "8]>(LaneMode::Interleaved)\n"
                  "        .commit_trim::<m![%s # 8]>()\n        .commit();\n\n",
                  tile, tile, row, row);
    strbuf_puts(out, "    y.to_hbm(&mut device.tdma)\n}\n");
}

/* ---- the point that is written ---- */

/* One of the packets that divides a row, the largest first; 0: neither. */
static int64_t packet_of(const matmul *mm)
{
    return mm->k % (2 * mm->flit) == 0 ? 2 * mm->flit : mm->k % mm->flit == 0 ? mm->flit : 0;
}

static bool take_packet(const explore *x, diag_list *diags, matmul *mm)
{
    arena *a = x->arena;
    const dataflow_interface *i = mm->input;
    mm->packet = 1;
    for (uint32_t d = 0; d < i->rank; d++)
        mm->packet *= i->parallel[d]; /* of one block */
    mm->k_padded = round_up(mm->k, mm->packet);
    if (mm->packet == mm->flit || mm->packet == 2 * mm->flit)
        return true;
    int64_t other = packet_of(mm);
    const char *help = other              ? arena_printf(a, "write `i_par: %" PRId64 "`", other)
                       : mm->k > mm->flit ? arena_printf(a, "write `i_par: %" PRId64 "` and `pads: true`", mm->flit)
                                          : arena_printf(a, "--explore --emit=vm pads the rows to %" PRId64 " elements", mm->flit);
    return refuse(x, diags, i->parallel_range,
                  arena_printf(a,
                               "is written with iPar %" PRId64 " of %s, %" PRId64 " bits per cycle: the Reducer takes packets of %" PRId64
                               " or %" PRId64 " elements (%" PRId64 " or %" PRId64 " bits)",
                               mm->packet, i->type, mm->packet * i->bits, mm->flit, 2 * mm->flit, mm->flit * i->bits,
                               2 * mm->flit * i->bits),
                  help);
}

static bool take_rows(const explore *x, const target *t, diag_list *diags, matmul *mm)
{
    const dataflow_interface *w = mm->weight;
    mm->rows = 1;
    for (uint32_t d = 0; d < w->rank; d++)
        mm->rows *= w->parallel[d]; /* of the blocks */
    mm->n_padded = round_up(mm->n, mm->rows);
    int64_t other = t->rows;
    for (; other > 1; other /= 2) {
        if (mm->rows == other)
            return true;
        if (mm->n % other == 0 && other <= mm->rows)
            break;
    }
    return mm->rows == 1 || refuse(x, diags, w->parallel_range,
                                   arena_printf(x->arena, "is written with wPar %" PRId64 ": a slice has 1, 2, 4 or %" PRId64 " Rows",
                                                mm->rows, (int64_t)t->rows),
                                   arena_printf(x->arena, "write `w_par: %" PRId64 "`", other));
}

/* Packet and Rows as they are written, of a model that the formulas describe. */
static bool take_written(const explore *x, const target *t, diag_list *diags, matmul *mm)
{
    const char *sum = sum_of(mm);
    for (int k = 0; k < DATAFLOW_INTERVALS; k++)
        if (x->model->intervals[k])
            return refuse(x, diags, mm->input->range, "says its intervals itself, and a kernel has those of the formulas",
                          "take cii, eii and latency away");
    if (mm->output->type && strcmp(mm->output->type, sum) != 0)
        return refuse(x, diags, mm->output->range,
                      arena_printf(x->arena, "has outputs of %s, and sums of %s are %s", mm->output->type, mm->input->type, sum),
                      arena_printf(x->arena, "write `dtype: %s`, or leave it away", sum));
    return take_packet(x, diags, mm) && take_rows(x, t, diags, mm);
}

/* What is written compiles. */
static bool compiles(const explore *x, diag_list *diags, const strbuf *source)
{
    visa_options options = {0};
    visa_compilation *c = visa_compile("kernel.vm", source->text, source->bytes, &options);
    bool good = c && visa_error_count(c) == 0;
    if (!good)
        refuse(x, diags, x->model->range,
               arena_printf(x->arena, "has no kernel that compiles: %s", c ? visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT) : "no memory"),
               "cut the model: fewer input blocks, or fewer weights");
    visa_free(c);
    return good;
}

bool explore_kernel(const explore *x, bool written, const target *t, diag_list *diags, strbuf *out)
{
    matmul mm;
    if (!read_matmul(x, t, diags, &mm) || (written && !take_written(x, t, diags, &mm)))
        return false;
    if (!written && !choose(x, t, diags, &mm))
        return diags->error_count == 0 && refuse(x, diags, x->model->range, "has no point within the limits that the machine has",
                                                 "it has packets of 32 or 64 bytes, and 1, 2, 4 or 8 Rows");
    if (!fits(x, t, &mm, diags))
        return false;
    write_kernel(&mm, x, out);
    return source_lay_out(out) && compiles(x, diags, out);
}
