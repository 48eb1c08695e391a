"""A product in one slice, which visac warns of and visac advise spreads."""
PRODUCT = """axes![M = 64, N = 64, K = 64];
#[device(chip = 1)]
fn k(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![M, K]>, b: &HbmTensor<i8, m![1], m![N, K]>) -> HbmTensor<i32, m![1], m![M, N]> {
    let a: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![M, K]> = a.to_dm(&mut ctx.tdma, 0);
    let b: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![N, K]> = b.to_dm(&mut ctx.tdma, 1 << 16);
    let w: TrfTensor<i8, m![1], m![1 # 2], m![1 # 256], m![N % 8], m![N / 8, K]> =
        ctx.sub.begin(b.view()).fetch::<i8, m![N % 8, N / 8], m![K]>().collect().to_trf(TrfAddress::Full);
    let c: DmTensor<i32, m![1], m![1 # 2], m![1 # 256], m![M, N]> = ctx.main.begin(a.view()).fetch::<i8, m![M], m![K]>().collect()
        .align::<m![M, N / 8], m![K], _, _>(&w).contract::<m![1]>().accumulate::<m![M, N / 8], m![N % 8]>(AccumulationKind::Interleaved).commit(1 << 17);
    c.to_hbm(&mut ctx.tdma, 1 << 20)
}
"""
