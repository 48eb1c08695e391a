// A module of 0.6, for upgrade-module-refused.vm.
axes![A = 2048];
#[device(chip = 1)]
fn copy(ctx: &mut Context, x: &HbmTensor<i32, m![1], m![A]>) -> HbmTensor<i32, m![1], m![A]> {
    let dm: DmTensor<i32, m![1], m![1 # 2], m![A / 8], m![A % 8]> = x.to_dm(&mut ctx.tdma);
    dm.to_hbm(&mut ctx.tdma)
}
