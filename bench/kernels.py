"""Matmul kernels over any sizes that fit: 16 blocks of rows of A by 32 blocks of rows of B, one product per slice.

C[M, N] = sum over K of A[M, K] * B[N, K]; A stays, B becomes weights of 8 Rows, N / 32 of them in tiles of 8.
"""
ROW_BLOCKS, COLUMN_BLOCKS, ROWS = 16, 32, 8
TRF_BYTES, DM_BYTES = 64 << 10, 512 << 10
BYTES = {"i8": 1, "bf16": 2}
RESULT = {"i8": "i32", "bf16": "bf16"}


def fits(m, n, k, dtype):
    rows, columns, bytes_each = m // ROW_BLOCKS, n // COLUMN_BLOCKS, BYTES[dtype]
    held = (rows + columns) * k * bytes_each + rows * columns * 4
    return columns % ROWS == 0 and columns * k * bytes_each <= TRF_BYTES and held <= DM_BYTES


def matmul(m, n, k, dtype, blocks=False):
    """The source of a kernel; `blocks`: the result lies in HBM block by block, else row by row."""
    rows, columns, lanes = m // ROW_BLOCKS, n // COLUMN_BLOCKS, 64 // BYTES[dtype]
    tiles, step = columns // ROWS, rows * k * BYTES[dtype]
    tile = f", N / {ROWS} % {tiles}" if tiles > 1 else ""
    tiled = f"N / {ROWS} % {tiles}, " if tiles > 1 else ""
    result = RESULT[dtype]
    cast = "\n        .cast::<bf16, m![N % 8 # 16]>()" if dtype == "bf16" else ""
    out = f"M / {rows}, N / {columns}, M % {rows}, N % {columns}" if blocks else "M, N"
    return f"""axes![M = {m}, N = {n}, K = {k}];

type Chip = m![1];
type Cluster = m![N / {n // 2}];
type Slice = m![M / {rows}, N / {columns} % 16];

#[device(chip = 1)]
fn matmul(ctx: &mut Context, a: &HbmTensor<{dtype}, Chip, m![M, K]>, b: &HbmTensor<{dtype}, Chip, m![N, K]>) -> HbmTensor<{result}, Chip, m![{out}]> {{
    let rows: DmTensor<{dtype}, Chip, Cluster, Slice, m![M % {rows}, K]> = a.to_dm(&mut ctx.tdma, 0);
    let columns: DmTensor<{dtype}, Chip, Cluster, Slice, m![N % {columns}, K]> = b.to_dm(&mut ctx.tdma, {step});
    let weights: TrfTensor<{dtype}, Chip, Cluster, Slice, m![N % {ROWS}], m![{tiled}K]> = ctx.sub
        .begin(columns.view())
        .fetch::<{dtype}, m![N % {ROWS}{tile}], m![K]>()
        .collect()
        .to_trf(TrfAddress::Full);
    let product: DmTensor<{result}, Chip, Cluster, Slice, m![M % {rows}, N % {columns}]> = ctx.main
        .begin(rows.view())
        .fetch::<{dtype}, m![M % {rows}], m![K]>()
        .collect()
        .align::<m![M % {rows}, K / {lanes}{tile}], m![K % {lanes}], _, _>(&weights)
        .contract::<m![1]>()
        .accumulate::<m![M % {rows}{tile}], m![N % {ROWS}]>(AccumulationKind::Interleaved){cast}
        .commit({step + columns * k * BYTES[dtype]});
    product.to_hbm(&mut ctx.tdma, 1 << 28)
}}
"""
